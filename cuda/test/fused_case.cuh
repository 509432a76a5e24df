/*
 * fused_case.cuh
 *	  A random plan of the fused operator with its columns, and what it means: the tuples that get
 *	  through, by rows of the host.
 */
#ifndef GJ_CUDA_TEST_FUSED_CASE_CUH
#define GJ_CUDA_TEST_FUSED_CASE_CUH

#include <unordered_map>

#include "test.cuh"

/* Columns: of the probe rows, and one of each build side. */
enum
{
	FILTER,
	KEY,
	KEY_2,
	VALUE,
	REAL,
	GROUP,
	BYTE,
	TEXT,
	INNER,
	INNER_2,
	NCOLUMNS
};

#define NOUTER INNER
#define LESS_THAN 60
#define MORE_THAN (-40)

static const uint32_t ops[] = {GJ_AGG_COUNT_STAR, GJ_AGG_SUM_I, GJ_AGG_MIN_I, GJ_AGG_MAX_I,
							   GJ_AGG_COUNT,      GJ_AGG_SUM_F, GJ_AGG_MAX_F, GJ_AGG_SUM_SQUARES_I};

/* Of each part, the tuples that came back: numbers of their probe rows and rows of the second step.
 */
typedef std::vector<std::vector<std::vector<uint32_t>>> MissedRows;

struct BuildSide
{
	GjHashTable table;
	std::unordered_map<int64_t, std::vector<uint32_t>> rows; /* of a key, as key_of makes it */
};

struct Fused
{
	Random &random;
	GjJoinType type; /* of the first step; the second one is INNER, with a filter, or LEFT */
	bool left;
	bool has_code;
	bool code_rows;   /* conditions and keys, too, not only what comes out */
	uint32_t per_key; /* rows of a key of the first step; 0: its build side is empty */
	uint32_t nkeys;   /* of the first step */
	bool residual;    /* it has a residual condition */
	uint32_t n;
	std::vector<Column> columns;
	Program program;
	GjFusedPlan plan = {};
	int32_t arg[8] = {-1, VALUE, VALUE, INNER_2, INNER, REAL, REAL, FILTER};
	GjOp how[8]; /* LOAD; IF, ONLY_IF: a CASE; EXTRACT_DATE */
	BuildSide build_side[2];
	std::vector<GjColumn> device;
	std::string where;

	Fused(Random &random, GjJoinType type, bool left, bool has_code, uint32_t per_key, uint32_t n,
		  uint32_t range);
	GjFusedExpr value(int32_t column, bool code);
	GjFusedExpr argument(uint32_t a);
	bool is_case(uint32_t row) const;
	GjFusedExpr term(GjOp op, int32_t column, int32_t other, int64_t constant);
	GjFusedCondition condition(GjOp op, int32_t column, int32_t other, int64_t constant, bool code);
	void make_plan();
	void build(Queue &q, uint32_t i, uint32_t nkeys, uint32_t rows_of_key);
	bool passes(uint32_t row, uint32_t build_row) const;
	bool join(uint32_t row, uint32_t *build_row, Bytes *marks) const;
	bool take(uint32_t row, uint32_t rows[3], std::vector<uint64_t> *counts, Bytes *marks) const;
	void aggregate(const uint32_t rows[3], std::vector<GjAggState> *states) const;
	std::vector<GjFusedPart> parts(std::vector<std::vector<GjColumn>> *memory,
								   std::vector<uint32_t> *first) const;
	void run(const Device &device);
	bool same_together(Queue &q, const GjFusedMissed &missed, const std::vector<uint32_t> &first,
					   const MissedRows &rows) const;
	void run_groups(Queue &q, const std::vector<GjFusedPart> &part,
					const std::vector<uint32_t> &first);
};

/* Are the first n states at a, stride apart, those of b? */
bool same_states(const GjAggState *a, uint32_t stride, const std::vector<GjAggState> &b,
				 uint32_t n);

/* Tests that most of many tuples come back where few groups are known. */
void test_few_found(const Device &device, Random &random, uint32_t nknown);

#endif /* GJ_CUDA_TEST_FUSED_CASE_CUH */
