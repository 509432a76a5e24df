/*
 * bench_plan.cuh
 *	  What the benchmarks of fused plans share.
 */
#ifndef GJ_CUDA_TEST_BENCH_PLAN_CUH
#define GJ_CUDA_TEST_BENCH_PLAN_CUH

#include "bench.cuh"

#define RUNS 7
#define PARTS 50
#define PART_ROWS (1u << 20)

/* a <op> b, or <op> constant where b is -1, of columns of the sources in these slots. */
static inline GjFusedExpr
binary(GjOp op, int16_t a, uint8_t slot_a, int16_t b, uint8_t slot_b, int64_t constant)
{
	GjFusedExpr e = {};

	e.form = GJ_FUSED_SIMPLE;
	e.op = (uint8_t) op;
	e.arg = op == GJ_OP_ADD_I || op == GJ_OP_MUL_I ? GJ_INT8 : 0;
	e.a = a;
	e.slot_a = slot_a;
	e.b = b;
	e.slot_b = slot_b;
	e.constant = constant;
	return e;
}

/* low <= column <= high */
static inline GjFusedExpr
range(int16_t column, int64_t low, int64_t high)
{
	GjFusedExpr e = binary(GJ_OP_LOAD, column, 0, -1, 0, low);

	e.form = GJ_FUSED_RANGE;
	e.high = high;
	return e;
}

/* count(*), sum(argument) */
static inline void
add_aggregates(GjFusedPlan &plan, const GjFusedExpr &argument)
{
	plan.naggregates = 2;
	plan.aggregate_op[0] = GJ_AGG_COUNT_STAR;
	plan.aggregate_expr[0] = plan.nexprs;
	plan.exprs[plan.nexprs++] = {};
	plan.aggregate_op[1] = GJ_AGG_SUM_I;
	plan.aggregate_expr[1] = plan.nexprs;
	plan.exprs[plan.nexprs++] = argument;
}

#endif
