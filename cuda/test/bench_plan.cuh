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

/* Makes groups, whose keys and their kinds are told, of tuples with hashes that are not made yet.
 */
static inline void
add_groups(Queue &q, GjGroupRows &tuples, GjGroups &groups, uint32_t naggregates)
{
	const uint32_t n = tuples.nrows;
	uint32_t *slot_of = (uint32_t *) q.alloc((size_t) n * 4);
	uint32_t *positions = (uint32_t *) q.alloc((size_t) n * 4);
	uint64_t *heap_at = (uint64_t *) q.alloc((size_t) n * 8 + 8);
	uint64_t nbytes;
	uint32_t added = 0;

	tuples.null = q.upload(std::vector<uint32_t>(n));
	tuples.hash = q.upload(std::vector<uint64_t>(n));
	groups.rows.null = (uint32_t *) q.alloc((size_t) n * 4);
	groups.rows.hash = (uint64_t *) q.alloc((size_t) n * 8);
	for (uint32_t k = 0; k < tuples.nkeys; k++)
		groups.rows.value[k] = (int64_t *) q.alloc((size_t) n * 8);
	for (uint32_t a = 0; a < naggregates; a++)
		groups.state[a] = (GjAggState *) q.alloc((size_t) n * sizeof(GjAggState));
	groups.nslots = 4 * (uint64_t) n;
	groups.slots = (uint64_t *) q.alloc(groups.nslots * 8);
	must(q, q.ops->groups->group_hash(q.queue, &tuples), "group_hash");
	must(q, q.ops->groups->group_rehash(q.queue, &groups), "group_rehash");
	must(q,
		 q.ops->groups->group_find(q.queue, &tuples, &groups, slot_of, positions, heap_at, &added,
								   &nbytes),
		 "group_find");
	must(q,
		 q.ops->groups->group_add(q.queue, &tuples, &groups, slot_of, positions, heap_at, added, 0),
		 "group_add");
	groups.rows.nrows = added;
}

#endif
