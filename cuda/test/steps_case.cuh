/*
 * steps_case.cuh
 *	  Random programs of joins, and what they mean: their result by nested loops over the host's
 *	  columns.
 */
#ifndef GJ_CUDA_TEST_STEPS_CASE_CUH
#define GJ_CUDA_TEST_STEPS_CASE_CUH

#include <functional>

#include "test.cuh"

#define NO_ROW (-1)

/* Columns of every source, in this order. */
enum
{
	C_ID,   /* int4, the row number */
	C_K1,   /* int4 */
	C_K2,   /* int8 */
	C_F,    /* float8 */
	C_V,    /* int4 */
	C_W,    /* int4, never NULL */
	C_TEXT, /* reference */
	NCOLUMNS
};

/* One row of every source, or NO_ROW; sources that are not joined yet have NO_ROW too. */
typedef std::vector<int64_t> Tuple;
typedef std::vector<Tuple> Tuples;

struct Value
{
	bool null;
	int64_t v;
	double
	f() const
	{
		return gj_bits_to_double(v);
	}
};

/* TRUE is 1, FALSE 0, NULL -1. */
typedef std::function<int(const Tuple &)> Condition;

/* A program, its columns, and what it means. */
struct Case
{
	Program program;
	std::vector<Column> columns; /* of source s: s * NCOLUMNS .. */
	std::vector<uint32_t> nrows; /* of each source */
	std::vector<Condition> source_filter;
	struct Step
	{
		Condition matches;
		Condition filter;
	};
	std::vector<Step> steps;
	std::vector<uint32_t> alive; /* sources that can be read at the end */
	std::string name;

	Value
	value(const Tuple &t, uint32_t source, uint32_t column) const
	{
		const Column &c = columns[source * NCOLUMNS + column];

		if (t[source] == NO_ROW || c.null((uint32_t) t[source]))
			return {true, 0};
		return {false, c.value((uint32_t) t[source])};
	}
};

static uint32_t
column_of(uint32_t source, uint32_t column)
{
	return source * NCOLUMNS + column;
}

/* ---- conditions */

/* Adds a random condition over an probe source a and a build source b; what it means. */
static Condition
random_condition(Random &random, Case &c, uint32_t a, uint32_t b, uint32_t which, int32_t *expr)
{
	Program &p = c.program;
	const int64_t limit = (int64_t) (random() % 40) - 20;
	const Case *k = &c;

	switch (which)
	{
		case 0: /* a.v < b.w */
			*expr =
				(int32_t) p.expr(GJ_BOOL, {load(0, column_of(a, C_V)), load(1, column_of(b, C_W)),
										   op(GJ_OP_LT_I, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, a, C_V), y = k->value(t, b, C_W);

				return x.null || y.null ? -1 : x.v < y.v;
			};
		case 1: /* a.v <= b.v and b.v <= a.w */
			*expr =
				(int32_t) p.expr(GJ_BOOL, {load(0, column_of(b, C_V)), load(1, column_of(a, C_V)),
										   op(GJ_OP_GE_I, 1, 0, 1), load(2, column_of(a, C_W)),
										   op(GJ_OP_LE_I, 2, 0, 2), op(GJ_OP_AND, 0, 1, 2)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, b, C_V), low = k->value(t, a, C_V),
					  high = k->value(t, a, C_W);
				int l = x.null || low.null ? -1 : x.v >= low.v;
				int h = x.null || high.null ? -1 : x.v <= high.v;

				return l == 0 || h == 0 ? 0 : l < 0 || h < 0 ? -1 : 1;
			};
		case 2: /* (a.w + b.v) % 3 = 0 */
			*expr = (int32_t) p.expr(GJ_BOOL,
									 {load(0, column_of(a, C_W)), load(1, column_of(b, C_V)),
									  op(GJ_OP_ADD_I, 0, 0, 1, GJ_INT8), constant(1, (int64_t) 3),
									  op(GJ_OP_MOD_I, 0, 0, 1, GJ_INT8), constant(1, (int64_t) 0),
									  op(GJ_OP_EQ_I, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, a, C_W), y = k->value(t, b, C_V);

				return x.null || y.null ? -1 : (x.v + y.v) % 3 == 0;
			};
		case 3: /* b.v is null or b.v > limit */
			*expr = (int32_t) p.expr(GJ_BOOL, {op(GJ_OP_LOAD_IS_NULL, 0, 0, 0, column_of(b, C_V)),
											   load(1, column_of(b, C_V)), constant(2, limit),
											   op(GJ_OP_GT_I, 1, 1, 2), op(GJ_OP_OR, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value y = k->value(t, b, C_V);

				return y.null || y.v > limit;
			};
		case 4: /* a.f >= b.f */
			*expr =
				(int32_t) p.expr(GJ_BOOL, {load(0, column_of(a, C_F)), load(1, column_of(b, C_F)),
										   op(GJ_OP_GE_F, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, a, C_F), y = k->value(t, b, C_F);

				return x.null || y.null ? -1 : !gj_lt_f(x.f(), y.f());
			};
		case 5: /* a.v <> b.v and b.text is not null */
			*expr =
				(int32_t) p.expr(GJ_BOOL, {load(0, column_of(a, C_V)), load(1, column_of(b, C_V)),
										   op(GJ_OP_NE_I, 0, 0, 1),
										   op(GJ_OP_LOAD_IS_NULL, 1, 1, 1, column_of(b, C_TEXT)),
										   op(GJ_OP_NOT, 1, 1, 1), op(GJ_OP_AND, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, a, C_V), y = k->value(t, b, C_V);
				bool text = !k->value(t, b, C_TEXT).null;

				return !text ? 0 : x.null || y.null ? -1 : x.v != y.v;
			};
		default: /* a.v = b.v, the other way round, and a.f < b.f */
			*expr =
				(int32_t) p.expr(GJ_BOOL, {load(0, column_of(b, C_V)), load(1, column_of(a, C_V)),
										   op(GJ_OP_EQ_I, 0, 0, 1), load(1, column_of(b, C_F)),
										   load(2, column_of(a, C_F)), op(GJ_OP_GT_F, 1, 1, 2),
										   op(GJ_OP_AND, 0, 0, 1)});
			return [=](const Tuple &t) -> int
			{
				Value x = k->value(t, a, C_V), y = k->value(t, b, C_V);
				Value f = k->value(t, a, C_F), g = k->value(t, b, C_F);
				int l = x.null || y.null ? -1 : x.v == y.v;
				int h = f.null || g.null ? -1 : gj_lt_f(f.f(), g.f());

				return l == 0 || h == 0 ? 0 : l < 0 || h < 0 ? -1 : 1;
			};
	}
}

static Condition
column_filter(Random &random, Case &c, uint32_t source, int32_t *expr)
{
	return random_condition(random, c, source, source, 3, expr);
}

/* ---- steps */

/* Key columns, in the order in which a step may use them. */
static const uint32_t key_columns[] = {C_K1, C_K2, C_F};

struct Shape
{
	GjJoinType type;
	GjAlgorithm algorithm;
	uint32_t nkeys;
	int residual; /* number of the condition, -1: none */
	bool filter;
	int range; /* 1: lower bound, 2: upper bound, 3: both, 0: none */
	bool range_is_float;
};

/* Adds keys `first` .. of a side as expressions next to each other. */
static uint32_t
add_keys(Case &c, uint32_t source, uint32_t nkeys)
{
	uint32_t first = (uint32_t) c.program.exprs.size();

	for (uint32_t i = 0; i < nkeys; i++)
		c.program.expr((GjKind) c.columns[column_of(source, key_columns[i])].type.kind,
					   {load(0, column_of(source, key_columns[i]))});
	return first;
}

/* Is x within the bounds that the step has?  Like PostgreSQL's comparisons. */
static int
in_range(const GjStep &step, bool is_float, Value x, Value low, Value high)
{
	auto less = [=](Value a, Value b) { return is_float ? gj_lt_f(a.f(), b.f()) : a.v < b.v; };
	int result = 1;

	if (step.range_low >= 0)
	{
		if (x.null || low.null)
			return -1;
		result &= step.low_strict ? less(low, x) : !less(x, low);
	}
	if (step.range_high >= 0)
	{
		if (x.null || high.null)
			return -1;
		result &= step.high_strict ? less(x, high) : !less(high, x);
	}
	return result;
}

/* Joins source s to `outer`, one of the sources that can be read. */
static void
add_step(Random &random, Case &c, const Shape &shape, uint32_t s)
{
	const uint32_t probe_side = c.alive[random() % c.alive.size()];
	const uint32_t range_column = shape.range_is_float ? C_F : C_V;
	const uint32_t low_column = shape.range_is_float ? C_F : C_V;
	const uint32_t high_column = shape.range_is_float ? C_F : C_W;
	GjStep step = {};
	Case::Step meaning;
	Condition residual;
	const Case *k = &c;

	step.join_type = (uint8_t) shape.type;
	step.algorithm = (uint8_t) shape.algorithm;
	step.nkeys = (uint8_t) shape.nkeys;
	step.source = (uint8_t) s;
	step.residual = step.filter = step.range_key = step.range_low = step.range_high = -1;
	step.probe_keys = add_keys(c, probe_side, shape.nkeys);
	step.build_keys = add_keys(c, s, shape.nkeys);
	if (shape.range)
	{
		const GjKind kind = shape.range_is_float ? GJ_FLOAT8 : GJ_INT4;

		step.range_key = (int32_t) c.program.expr(kind, {load(0, column_of(s, range_column))});
		if (shape.range & 1)
			step.range_low =
				(int32_t) c.program.expr(kind, {load(0, column_of(probe_side, low_column))});
		if (shape.range & 2)
			step.range_high =
				(int32_t) c.program.expr(kind, {load(0, column_of(probe_side, high_column))});
		step.low_strict = (uint8_t) (random() % 2);
		step.high_strict = (uint8_t) (random() % 2);
	}
	if (shape.residual >= 0)
		residual =
			random_condition(random, c, probe_side, s, (uint32_t) shape.residual, &step.residual);
	meaning.matches = [=](const Tuple &t) -> int
	{
		for (uint32_t i = 0; i < step.nkeys; i++)
		{
			Value a = k->value(t, probe_side, key_columns[i]), b = k->value(t, s, key_columns[i]);

			if (a.null || b.null || (key_columns[i] == C_F ? !gj_eq_f(a.f(), b.f()) : a.v != b.v))
				return 0;
		}
		if (step.range_key >= 0 &&
			in_range(step, shape.range_is_float, k->value(t, s, range_column),
					 k->value(t, probe_side, low_column),
					 k->value(t, probe_side, high_column)) != 1)
			return 0;
		return residual ? residual(t) == 1 : 1;
	};
	if (shape.type == GJ_JOIN_RIGHT_SEMI || shape.type == GJ_JOIN_RIGHT_ANTI)
		c.alive = {s};
	else if (shape.type != GJ_JOIN_SEMI && shape.type != GJ_JOIN_ANTI)
		c.alive.push_back(s);
	if (shape.filter)
		meaning.filter = column_filter(random, c, c.alive[random() % c.alive.size()], &step.filter);
	c.program.steps.push_back(step);
	c.steps.push_back(meaning);
	c.name += " " + std::to_string(shape.type) + "/" + std::to_string(shape.algorithm) + " keys " +
			  std::to_string(shape.nkeys) + " residual " + std::to_string(shape.residual) +
			  " range " + std::to_string(shape.range) + (shape.filter ? " filter" : "");
}

static void
add_source(Random &random, Case &c, uint32_t s, uint32_t n, double null_rate, uint64_t range,
		   double skew)
{
	std::vector<Column> columns = {random_column(random, GJ_INT4, 4, s, n, 0, 0),
								   random_column(random, GJ_INT4, 4, s, n, null_rate, range),
								   random_column(random, GJ_INT8, 8, s, n, null_rate, 3),
								   random_column(random, GJ_FLOAT8, 8, s, n, null_rate, 0),
								   random_column(random, GJ_INT4, 4, s, n, null_rate, 100),
								   random_column(random, GJ_INT4, 4, s, n, 0, 100),
								   random_column(random, GJ_REF, 8, s, n, null_rate, 0)};

	for (uint32_t i = 0; i < n; i++)
	{
		((int32_t *) columns[C_ID].data.data())[i] = (int32_t) i;
		if ((double) (random() % 1000) < skew * 1000)
			((int32_t *) columns[C_K1].data.data())[i] = 1;
		/* few kinds of floats, so that they meet */
		if (random() % 4 != 0)
			((double *) columns[C_F].data.data())[i] = (double) (random() % 5) / 2;
	}
	/* chunks have heaps of their own: the tests use empty texts and held ones */
	for (uint32_t i = 0; i < n; i++)
		((uint64_t *) columns[C_TEXT].data.data())[i] =
			i % 2 ? gj_ref_make(i, GJ_REF_HELD) : gj_ref_make(0, 0);
	for (Column &column : columns)
	{
		column.heap.clear();
		c.columns.push_back(column);
		c.program.types.push_back(column.type);
	}
	c.nrows.push_back(n);
	c.source_filter.push_back(nullptr);
	c.program.filters.push_back(-1);
	if (random() % 3 == 0)
		c.source_filter[s] = column_filter(random, c, s, &c.program.filters[s]);
}

/* ---- reference */

static std::vector<uint32_t>
rows_of(const Case &c, uint32_t s)
{
	std::vector<uint32_t> rows;
	Tuple t(c.nrows.size(), NO_ROW);

	for (uint32_t i = 0; i < c.nrows[s]; i++)
	{
		t[s] = i;
		if (!c.source_filter[s] || c.source_filter[s](t) == 1)
			rows.push_back(i);
	}
	return rows;
}

/* What step i makes of tuples. */
static Tuples
reference_step(const Case &c, uint32_t i, const Tuples &in)
{
	const GjStep &step = c.program.steps[i];
	const std::vector<uint32_t> rows = rows_of(c, step.source);
	std::vector<bool> row_matched(rows.size());
	const GjJoinType type = (GjJoinType) step.join_type;
	Tuples made;
	Tuples out;

	for (const Tuple &tuple : in)
	{
		Tuple t = tuple;
		bool matched = false;

		for (size_t r = 0; r < rows.size(); r++)
		{
			t[step.source] = rows[r];
			if (c.steps[i].matches(t) != 1)
				continue;
			matched = row_matched[r] = true;
			if (type <= GJ_JOIN_FULL)
				made.push_back(t);
		}
		t[step.source] = NO_ROW;
		if (matched ? type == GJ_JOIN_SEMI
					: type == GJ_JOIN_LEFT || type == GJ_JOIN_FULL || type == GJ_JOIN_ANTI)
			made.push_back(t);
	}
	for (size_t r = 0; r < rows.size(); r++)
	{
		Tuple t(c.nrows.size(), NO_ROW);

		t[step.source] = rows[r];
		if (row_matched[r]
				? type == GJ_JOIN_RIGHT_SEMI
				: type == GJ_JOIN_RIGHT || type == GJ_JOIN_FULL || type == GJ_JOIN_RIGHT_ANTI)
			made.push_back(t);
	}
	for (const Tuple &t : made)
	{
		if (!c.steps[i].filter || c.steps[i].filter(t) == 1)
			out.push_back(t);
	}
	return out;
}

#endif /* GJ_CUDA_TEST_STEPS_CASE_CUH */
