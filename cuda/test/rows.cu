/*
 * rows.cu
 *	  Tests of select, pick, keys, aggregate, gather and rebase_refs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "test.cuh"

/* ---- select, pick */

/* Three integer columns, a float one and a bool one. */
static std::vector<Column>
computable(Random &random, uint32_t n, double null_rate)
{
	return {random_column(random, GJ_INT4, 4, 0, n, null_rate, 100),
			random_column(random, GJ_INT4, 4, 0, n, 0, 0),
			random_column(random, GJ_INT8, 8, 0, n, null_rate, 0),
			random_column(random, GJ_FLOAT8, 8, 0, n, null_rate, 0),
			random_column(random, GJ_BOOL, 1, 0, n, null_rate, 0),
			random_column(random, GJ_INT2, 2, 0, n, null_rate, 1000),
			random_column(random, GJ_UINT4, 4, 0, n, null_rate, 0)};
}

static Program
program_for(const std::vector<Column> &columns)
{
	Program program;

	for (const Column &c : columns)
		program.types.push_back(c.type);
	return program;
}

/* An expression of random operators; its registers keep their types. */
static uint32_t
random_expr(Random &random, Program &program, uint32_t ncolumns)
{
	static const GjOp compare_i[] = {GJ_OP_EQ_I, GJ_OP_NE_I, GJ_OP_LT_I,
									 GJ_OP_LE_I, GJ_OP_GT_I, GJ_OP_GE_I};
	static const GjOp compare_f[] = {GJ_OP_EQ_F, GJ_OP_NE_F, GJ_OP_LT_F,
									 GJ_OP_LE_F, GJ_OP_GT_F, GJ_OP_GE_F};
	static const GjOp arith_i[] = {GJ_OP_ADD_I, GJ_OP_SUB_I, GJ_OP_MUL_I, GJ_OP_DIV_I, GJ_OP_MOD_I};
	static const GjOp arith_f[] = {GJ_OP_ADD_F, GJ_OP_SUB_F, GJ_OP_MUL_F, GJ_OP_DIV_F};
	static const GjOp logic[] = {GJ_OP_AND, GJ_OP_OR};
	static const GjOp unary[] = {GJ_OP_NOT, GJ_OP_IS_NULL, GJ_OP_IS_TRUE, GJ_OP_IS_FALSE};
	const uint32_t nregisters = 1 + random() % GJ_MAX_REGISTERS;
	std::vector<GjInstr> code;
	std::vector<int> is_float(nregisters); /* 0 integer, 1 float */

	for (uint16_t r = 0; r < nregisters; r++)
	{
		uint32_t column = random() % ncolumns;

		if (random() % 8 == 0)
		{
			code.push_back(constant(r, (int64_t) (random() % 50)));
			code.back().n = random() % 4 == 0;
		}
		else
			code.push_back(load(r, column));
		is_float[r] = code.back().op == GJ_OP_LOAD && program.types[column].kind == GJ_FLOAT8;
	}
	for (uint32_t i = random() % 8; i > 0; i--)
	{
		uint16_t a = (uint16_t) (random() % nregisters);
		uint16_t b = (uint16_t) (random() % nregisters);
		uint16_t dst = (uint16_t) (random() % nregisters);

		if (random() % 4 == 0)
		{
			bool strict = random() % 2;

			code.push_back(
				op(strict && !is_float[a] ? unary[random() % 4] : GJ_OP_IS_NULL, dst, a, a));
			is_float[dst] = 0;
		}
		else if (is_float[a] != is_float[b])
		{
			uint16_t integer = is_float[a] ? b : a;

			code.push_back(op(GJ_OP_I_TO_F, dst, integer, integer));
			is_float[dst] = 1;
		}
		else if (random() % 4 == 0)
		{
			code.push_back(is_float[a] ? op(arith_f[random() % 4], dst, a, b)
									   : op(arith_i[random() % 5], dst, a, b, GJ_INT8));
			is_float[dst] = is_float[a];
		}
		else
		{
			bool use_logic = !is_float[a] && random() % 2;

			code.push_back(op(use_logic     ? logic[random() % 2]
							  : is_float[a] ? compare_f[random() % 6]
											: compare_i[random() % 6],
							  dst, a, b));
			is_float[dst] = 0;
		}
	}
	for (uint16_t r = 0; r < nregisters; r++)
	{
		if (!is_float[r])
		{
			code.push_back(op(GJ_OP_IS_TRUE, r, r, r));
			return program.expr(GJ_BOOL, code);
		}
	}
	code.push_back(op(GJ_OP_LT_F, 0, 0, (uint16_t) (nregisters - 1)));
	return program.expr(GJ_BOOL, code);
}

/* Positions that gj_eval accepts on the host; the status of the rows. */
static uint32_t
reference_select(const Program &program, uint32_t e, const std::vector<Column> &columns,
				 const std::vector<uint32_t> &rowid, uint32_t n, std::vector<uint32_t> *positions)
{
	std::vector<int64_t> values;
	std::vector<uint8_t> nulls;
	const uint32_t status = eval_on_host(program, e, columns, rowid, n, &values, &nulls);

	positions->clear();
	for (uint32_t i = 0; i < n; i++)
	{
		if (!nulls[i] && values[i])
			positions->push_back(i);
	}
	return status;
}

static void
test_select_once(const Device &device, Random &random, uint32_t n, double null_rate, bool rowids,
				 bool simple)
{
	std::vector<Column> columns = computable(random, n, null_rate);
	Program program = program_for(columns);
	std::vector<uint32_t> rowid = rowids ? random_rows(random, n, n) : std::vector<uint32_t>();
	std::vector<uint32_t> expected;
	uint32_t expr = simple ? program.expr(GJ_BOOL, {load(0, 0), constant(1, (int64_t) 10),
													op(GJ_OP_LT_I, 0, 0, 1)})
						   : random_expr(random, program, (uint32_t) columns.size());
	uint32_t status = reference_select(program, expr, columns, rowid, n, &expected);
	Queue q(device, program);
	GjView view = q.view(columns, n, {rowid});
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t));
	uint32_t *picked = (uint32_t *) q.alloc(n * sizeof(uint32_t));
	uint32_t m = 12345;
	GjStatus result = q.ops->columns->select(q.queue, &view, expr, positions, &m);
	std::vector<uint32_t> rows;

	if (status != GJ_OK)
	{
		check(result == GJ_OVERFLOW || result == GJ_DIVISION_BY_ZERO, "row error of select", at(n));
		return;
	}
	if (!check(result == GJ_OK, "select", q.ops->queues->queue_error(q.queue)) ||
		!check(m == expected.size(), "number selected", at(n)))
		return;
	check(q.download(positions, m) == expected, "positions", at(n));
	check(q.ops->columns->pick(q.queue, picked, view.rowid[0], 7, positions, m) == GJ_OK, "pick",
		  at(n));
	rows = q.download(picked, m);
	for (uint32_t i = 0; i < m; i++)
		expected[i] = rowid.empty() ? expected[i] + 7 : rowid[expected[i]];
	check(rows == expected, "picked rows", at(n));
}

/* Values at positions in any order, some of them several times, to any place. */
static void
test_pick_values(const Device &device, Random &random)
{
	std::vector<Column> columns = computable(random, 1, 0.0);
	Program program = program_for(columns);
	Queue q(device, program);

	for (uint32_t n : sizes)
	{
		const uint32_t nvalues = n / 2 + 1;
		std::vector<int64_t> values(nvalues);
		std::vector<uint32_t> positions = random_rows(random, n, nvalues);
		std::vector<int64_t> expected(n + 1, -1);
		int64_t *to;

		for (int64_t &value : values)
			value = (int64_t) (random() * UINT64_C(0x9E3779B97F4A7C15));
		for (uint32_t i = 0; i < n; i++)
			expected[i + 1] = values[positions[i]];
		to = q.upload(std::vector<int64_t>(n + 1, -1));
		check(q.ops->columns->pick_values(q.queue, to + 1, q.upload(values), q.upload(positions),
										  n) == GJ_OK,
			  "pick_values", q.ops->queues->queue_error(q.queue));
		check(q.download(to, n + 1) == expected, "picked values", at(n));
	}
}

/* More than one tile's registers, and IN lists. */
static void
test_in(const Device &device, Random &random)
{
	const uint32_t n = 5000;
	std::vector<Column> columns = computable(random, n, 0.1);
	Program program = program_for(columns);
	GjInstr in_i = op(GJ_OP_IN_I, 1, 0, 0);
	GjInstr in_f = op(GJ_OP_IN_F, 3, 2, 2);
	std::vector<uint32_t> expected;
	uint32_t m = 0;
	uint32_t e;

	program.constants = {-20,
						 -3,
						 0,
						 1,
						 2,
						 17,
						 gj_double_to_bits(-1.25),
						 gj_double_to_bits(0.0),
						 gj_double_to_bits(33.5),
						 INT64_C(0x7FF8000000000000)};
	in_i.n = 6;
	in_f.arg = 6;
	in_f.n = 4;
	in_f.imm = 1;
	e = program.expr(GJ_BOOL, {load(0, 0), in_i, load(2, 3), in_f, op(GJ_OP_OR, 4, 1, 3)});
	reference_select(program, e, columns, {}, n, &expected);
	Queue q(device, program);
	GjView view = q.view(columns, n, {});
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t));

	check(q.ops->columns->select(q.queue, &view, e, positions, &m) == GJ_OK, "select", "IN");
	check(m > 0 && q.download(positions, m) == expected, "positions", "IN");
}

void
test_select(const Device &device)
{
	Random random(2);

	for (uint32_t n : sizes)
	{
		test_select_once(device, random, n, 0.0, false, true);
		test_select_once(device, random, n, 0.2, n > 0, true);
	}
	for (int i = 0; i < 150; i++)
		test_select_once(device, random, random() % 3000, i % 2 * 0.1, i % 3 == 0, false);
	test_pick_values(device, random);
	test_in(device, random);
	group(device.ops->name, "select, pick");
}

/* ---- keys */

static int64_t
key_bits(const Column &c, uint32_t row)
{
	int64_t v = c.value(row);
	double d;

	memcpy(&d, &v, sizeof(d));
	if (c.type.kind != GJ_FLOAT8)
		return v;
	if (isnan(d))
		return INT64_C(0x7FF8000000000000);
	return d == 0 ? 0 : v;
}

static void
test_keys_once(const Device &device, Random &random, uint32_t n, bool rowids, bool plain)
{
	std::vector<Column> columns = computable(random, n, 0.1);
	Program program = program_for(columns);
	const uint32_t nkeys = (uint32_t) columns.size();
	std::vector<uint32_t> rowid = rowids ? random_rows(random, n, n) : std::vector<uint32_t>();
	GjKeys keys = {};
	const uint32_t first = n / 3;
	Bytes nulls;

	/* the first key decides whether the keys are plain columns */
	program.expr(GJ_INT8, plain ? std::vector<GjInstr>{load(0, 0)}
								: std::vector<GjInstr>{load(0, 0), constant(1, 5),
													   op(GJ_OP_ADD_I, 2, 0, 1, GJ_INT8)});
	for (uint32_t k = 1; k < nkeys; k++)
		program.expr((GjKind) columns[k].type.kind, {load(0, k)});
	Queue q(device, program);
	GjView view = q.view(columns, n, {rowid});

	keys.nkeys = nkeys;
	keys.nrows = n;
	keys.null = (uint8_t *) q.alloc(n);
	for (uint32_t k = 0; k < nkeys; k++)
		keys.value[k] = (int64_t *) q.alloc((size_t) n * 8);
	/* in two pieces */
	check(q.ops->columns->keys(q.queue, &view, 0, first, 0, &keys) == GJ_OK, "keys", at(n));
	check(q.ops->columns->keys(q.queue, &view, first, n - first, 0, &keys) == GJ_OK, "keys", at(n));
	nulls = q.download(keys.null, n);
	for (uint32_t k = 0; k < nkeys; k++)
	{
		std::vector<int64_t> values = q.download(keys.value[k], n);
		bool ok = true;

		for (uint32_t i = 0; i < n; i++)
		{
			const uint32_t row = rowid.empty() ? i : rowid[i];
			bool null = false;

			for (const Column &c : columns)
				null |= c.null(row);
			ok &= (nulls[i] != 0) == null;
			if (!null)
				ok &= values[i] == key_bits(columns[k], row) + (k == 0 && !plain ? 5 : 0);
		}
		check(ok, "key values", at(n));
	}
}

void
test_keys(const Device &device)
{
	Random random(3);

	for (uint32_t n : sizes)
	{
		test_keys_once(device, random, n, false, true);
		test_keys_once(device, random, n, true, true);
		test_keys_once(device, random, n, n > 0, false);
	}
	group(device.ops->name, "keys");
}

/* ---- aggregate */

static void
reference_step(uint32_t op, GjAggState *state, const Column &c, uint32_t row, int64_t added,
			   __int128 *sum)
{
	const int64_t v = c.value(row) + added;
	const double f = gj_bits_to_double(v);
	unsigned __int128 square;

	switch (op)
	{
		case GJ_AGG_SUM_I:
			*sum += v;
			state->lo = (uint64_t) *sum;
			state->hi = (int64_t) (*sum >> 64);
			break;
		case GJ_AGG_SUM_SQUARES_I:
		case GJ_AGG_SUM_SQUARES_HIGH_I:
			square = (unsigned __int128) ((__int128) v * v);
			*sum += (uint64_t) (op == GJ_AGG_SUM_SQUARES_I ? square : square >> 64);
			state->lo = (uint64_t) *sum;
			state->hi = (int64_t) (*sum >> 64);
			break;
		case GJ_AGG_SUM_F:
			state->f += f;
			break;
		case GJ_AGG_SPREAD_F:
			/* of eighths: exact, and made a spread where it is compared */
			state->hi = gj_double_to_bits(gj_bits_to_double(state->hi) + f);
			state->f += f * f;
			break;
		case GJ_AGG_MIN_I:
			state->hi = state->count == 0 ? v : std::min(state->hi, v);
			break;
		case GJ_AGG_MAX_I:
			state->hi = state->count == 0 ? v : std::max(state->hi, v);
			break;
		case GJ_AGG_MIN_F:
			if (state->count == 0 || isnan(state->f) || f < state->f)
				state->f = f;
			break;
		case GJ_AGG_MAX_F:
			if (state->count == 0 || (!isnan(state->f) && (isnan(f) || f > state->f)))
				state->f = f;
			break;
		default:
			break;
	}
	state->count++;
}

static bool
states_equal(uint32_t op, const GjAggState &a, const GjAggState &b)
{
	if (a.count != b.count)
		return false;
	if (a.count == 0)
		return true;
	switch (op)
	{
		case GJ_AGG_SUM_I:
		case GJ_AGG_SUM_SQUARES_I:
		case GJ_AGG_SUM_SQUARES_HIGH_I:
			return a.lo == b.lo && a.hi == b.hi;
		case GJ_AGG_SPREAD_F:
		{
			const double sum = gj_bits_to_double(b.hi);
			const double spread = b.f - sum * sum / (double) b.count;

			return a.hi == b.hi && fabs(a.f - spread) <= 1e-9 * (1 + spread);
		}
		case GJ_AGG_SUM_F:
			return fabs(a.f - b.f) <= 1e-9 * (1 + fabs(b.f)) + 1e-3;
		case GJ_AGG_MIN_I:
		case GJ_AGG_MAX_I:
			return a.hi == b.hi;
		case GJ_AGG_MIN_F:
		case GJ_AGG_MAX_F:
			return a.f == b.f || (isnan(a.f) && isnan(b.f));
		default:
			return true;
	}
}

struct AddedAggregate
{
	uint32_t op;
	uint32_t column;
	int64_t added;
};

static void
test_aggregate_once(const Device &device, Random &random, uint32_t n, double null_rate)
{
	static const AddedAggregate aggregates[] = {{GJ_AGG_COUNT_STAR, 0, 0},
												{GJ_AGG_COUNT, 0, 0},
												{GJ_AGG_SUM_I, 0, 0},
												{GJ_AGG_MIN_I, 0, 0},
												{GJ_AGG_MAX_I, 0, 0},
												{GJ_AGG_SUM_I, 0, 0},
												{GJ_AGG_SUM_I, 0, 9},
												{GJ_AGG_SUM_I, 2, 0},
												{GJ_AGG_MIN_I, 2, 0},
												{GJ_AGG_MAX_I, 2, 0},
												{GJ_AGG_MIN_F, 3, 0},
												{GJ_AGG_MAX_F, 3, 0},
												{GJ_AGG_SUM_F, 7, 0},
												{GJ_AGG_MIN_F, 7, 0},
												{GJ_AGG_COUNT_STAR, 0, 0},
												{GJ_AGG_SUM_SQUARES_I, 0, 0},
												{GJ_AGG_SUM_SQUARES_HIGH_I, 0, 0},
												{GJ_AGG_SPREAD_F, 7, 0}};
	const uint32_t naggregates = sizeof(aggregates) / sizeof(aggregates[0]);
	std::vector<Column> columns = computable(random, n, null_rate);
	std::vector<GjAggState> expected(naggregates);
	std::vector<__int128> sums(naggregates);
	std::vector<GjAggState> states(naggregates);
	std::vector<uint32_t> rowid = random_rows(random, n / 2 + (n > 0), n);
	Program program;

	columns.push_back(random_column(random, GJ_FLOAT8, 8, 0, n, null_rate, 1000));
	program = program_for(columns);
	for (uint32_t a = 0; a < naggregates; a++)
	{
		const uint32_t c = aggregates[a].column;
		uint32_t arg = 0;
		bool found = false;

		/* equal arguments share an expression */
		for (uint32_t b = 0; b < a && !found; b++)
		{
			found = aggregates[b].op != GJ_AGG_COUNT_STAR && aggregates[b].column == c &&
					aggregates[b].added == aggregates[a].added;
			if (found)
				arg = (uint32_t) program.aggregates[b].arg;
		}
		if (!found && aggregates[a].op != GJ_AGG_COUNT_STAR)
			arg = aggregates[a].added
					  ? program.expr(GJ_INT8, {load(0, c), constant(1, aggregates[a].added),
											   op(GJ_OP_ADD_I, 2, 0, 1, GJ_INT8)})
					  : program.expr((GjKind) columns[c].type.kind, {load(0, c)});
		program.aggregates.push_back(
			{aggregates[a].op, aggregates[a].op == GJ_AGG_COUNT_STAR ? -1 : (int32_t) arg});
	}
	Queue q(device, program);
	GjView all = q.view(columns, n, {});
	GjView some = all;
	GjView none = all;

	some.nrows = (uint32_t) rowid.size();
	some.rowid[0] = q.upload(rowid);
	none.nrows = 0;
	check(q.ops->groups->aggregate(q.queue, &none) == GJ_OK, "aggregate", at(0));
	check(q.ops->groups->aggregate(q.queue, &all) == GJ_OK, "aggregate", at(n));
	check(q.ops->groups->aggregate(q.queue, &some) == GJ_OK, "aggregate", at(n));
	if (!check(q.ops->groups->aggregate_read(q.queue, states.data()) == GJ_OK, "aggregate_read",
			   q.ops->queues->queue_error(q.queue)))
		return;
	for (uint32_t a = 0; a < naggregates; a++)
	{
		const Column &c = columns[aggregates[a].column];
		const bool star = aggregates[a].op == GJ_AGG_COUNT_STAR;

		for (uint32_t i = 0; i < n + rowid.size(); i++)
		{
			const uint32_t row = i < n ? i : rowid[i - n];

			if (star || !c.null(row))
				reference_step(aggregates[a].op, &expected[a], c, row, aggregates[a].added,
							   &sums[a]);
		}
		check(states_equal(aggregates[a].op, states[a], expected[a]), "state",
			  at(n) + ", aggregate " + std::to_string(a));
	}
}

/* The row error of an argument comes back with the states. */
static void
test_aggregate_error(const Device &device, Random &random)
{
	std::vector<Column> columns = {random_column(random, GJ_INT4, 4, 0, 5000, 0, 100)};
	Program program = program_for(columns);
	GjAggState state;

	((int32_t *) columns[0].data.data())[4321] = INT32_MAX;
	program.aggregates.push_back(
		{GJ_AGG_SUM_I, (int32_t) program.expr(GJ_INT4, {load(0, 0), constant(1, 1000),
														op(GJ_OP_ADD_I, 0, 0, 1, GJ_INT4)})});
	Queue q(device, program);
	GjView view = q.view(columns, 5000, {});

	check(q.ops->groups->aggregate(q.queue, &view) == GJ_OK, "aggregate", "overflow");
	check(q.ops->groups->aggregate_read(q.queue, &state) == GJ_OVERFLOW, "aggregate_read",
		  "overflow");
}

void
test_aggregate(const Device &device)
{
	Random random(4);

	for (uint32_t n : sizes)
	{
		test_aggregate_once(device, random, n, 0.0);
		test_aggregate_once(device, random, n, 0.3);
		test_aggregate_once(device, random, n, 1.0);
	}
	test_aggregate_error(device, random);
	group(device.ops->name, "aggregate");
}

/* ---- gather, rebase_refs */

/* Columns of two sources with every width. */
static std::vector<Column>
carried(Random &random, uint32_t n, uint32_t m, double null_rate)
{
	return {random_column(random, GJ_INT4, 4, 0, n, null_rate, 0),
			random_column(random, GJ_REF, 8, 0, n, null_rate, 0),
			random_column(random, GJ_BYTES, 16, 0, n, null_rate, 0),
			random_column(random, GJ_BYTES, 1, 0, n, 0, 0),
			random_column(random, GJ_INT2, 2, 0, n, null_rate, 0),
			random_column(random, GJ_FLOAT8, 8, 1, m, null_rate, 0),
			random_column(random, GJ_REF, 8, 1, m, null_rate, 0),
			random_column(random, GJ_BOOL, 1, 1, m, null_rate, 0)};
}

/* Makes values that the backend would have held empty ones: such columns can be packed. */
static void
hold_none(std::vector<Column> &columns)
{
	for (Column &c : columns)
		for (uint32_t i = 0; c.type.kind == GJ_REF && i < c.data.size() / 8; i++)
			if (gj_ref_length(c.ref(i)) == GJ_REF_HELD)
				memset(&c.data[i * 8], 0, 8);
}

/* One output of one row of a batch equals the column's. */
static bool
cell_equal(const Column &c, uint32_t row, const uint8_t *slot, const GjLayout &layout,
		   const GjColumnPlace &place, uint32_t output, uint32_t i, uint32_t heap_used)
{
	const bool null = gj_slot_has_nulls(slot)[output] && slot[place.nulls + i];
	const uint8_t *data = slot + place.data + (size_t) i * c.type.width;
	uint64_t ref;

	if (null != c.null(row))
		return false;
	if (null)
		return true;
	if (c.type.kind != GJ_REF)
		return memcmp(data, c.data.data() + (size_t) row * c.type.width, c.type.width) == 0;
	memcpy(&ref, data, sizeof(ref));
	if (gj_ref_length(c.ref(row)) == GJ_REF_HELD)
		return ref == c.ref(row);
	return gj_ref_length(ref) == gj_ref_length(c.ref(row)) && gj_ref_offset(ref) % 8 == 0 &&
		   gj_ref_offset(ref) + gj_ref_space(ref) <= heap_used &&
		   memcmp(slot + layout.heap + gj_ref_offset(ref),
				  c.heap.data() + gj_ref_offset(c.ref(row)), gj_ref_length(ref)) == 0 &&
		   memcmp(slot + layout.heap + gj_ref_offset(ref) + gj_ref_length(ref), "\0\0\0\0\0\0\0",
				  gj_ref_space(ref) - gj_ref_length(ref)) == 0;
}

static uint64_t
row_space(const std::vector<Column> &columns, const std::vector<uint32_t> *rowid, uint32_t i)
{
	uint64_t space = 0;

	for (const Column &c : columns)
	{
		const uint32_t row = rowid[c.type.source].empty() ? i : rowid[c.type.source][i];

		if (c.type.kind == GJ_REF && !c.null(row))
			space += gj_ref_space(c.ref(row));
	}
	return space;
}

static void
test_gather_once(const Device &device, Random &random, uint32_t n, uint32_t capacity,
				 uint32_t slot_size, double null_rate, bool rowids, bool refs)
{
	const uint32_t m = n / 2 + 1;
	std::vector<Column> columns = carried(random, n, rowids ? m : n, null_rate);
	std::vector<uint32_t> rowid[2];
	std::vector<GjColumnType> types;
	Program program;
	Slot slot(device, slot_size);
	GjBatchTarget target = {};

	if (random() % 2)
		hold_none(columns);
	if (!refs)
		columns.erase(columns.begin() + 6), columns.erase(columns.begin() + 1);
	program = program_for(columns);
	/* outputs in another order than the columns */
	for (uint32_t c = (uint32_t) columns.size(); c-- > 0;)
	{
		program.outputs.push_back(c);
		types.push_back(columns[c].type);
	}
	std::vector<GjColumnPlace> places(types.size());

	if (!check(gj_layout(types.data(), (uint32_t) types.size(), capacity, slot_size, &target.layout,
						 places.data()),
			   "layout", at(capacity)))
		return;
	target.slot = slot.memory;
	target.places = places.data();
	if (rowids)
	{
		rowid[0] = random_rows(random, n, n);
		rowid[1] = random_rows(random, n, m);
	}
	Queue q(device, program);
	GjView view = q.view(columns, n, {rowid[0], rowid[1]});

	for (uint32_t first = 0; first < n;)
	{
		const uint32_t max = std::min(n - first, capacity);
		uint32_t got = 0;
		GjSlotHeader header;
		bool ok = true;

		if (!check(q.ops->columns->gather(q.queue, &view, first, n - first, &target, &got) == GJ_OK,
				   "gather", q.ops->queues->queue_error(q.queue)))
			return;
		memcpy(&header, slot.memory, sizeof(header));
		if (!check(got >= 1 && got <= max && header.nrows == got &&
					   header.heap_used <= target.layout.heap_size,
				   "rows of a batch", at(n)))
			return;
		if (got < max)
			check(header.heap_used + row_space(columns, rowid, first + got) >
					  target.layout.heap_size,
				  "batch is full", at(n));
		for (uint32_t o = 0; o < program.outputs.size(); o++)
		{
			const Column &c = columns[program.outputs[o]];

			for (uint32_t i = 0; i < got; i++)
			{
				const uint32_t row =
					rowid[c.type.source].empty() ? first + i : rowid[c.type.source][first + i];

				ok &= cell_equal(c, row, slot.memory, target.layout, places[o], o, i,
								 header.heap_used);
			}
		}
		check(ok, "batch", at(n) + ", first " + std::to_string(first));
		first += got;
	}
}

/* A row that is larger than the heap. */
static void
test_gather_too_large(const Device &device, Random &random)
{
	std::vector<Column> columns = {random_column(random, GJ_REF, 8, 0, 10, 0, 0)};
	Program program = program_for(columns);
	Slot slot(device, 8192);
	GjBatchTarget target = {};
	GjColumnPlace place;
	uint32_t n = 0;
	uint64_t ref;

	program.outputs = {0};
	columns[0].heap.assign(16384, 1);
	for (uint32_t i = 0; i < 10; i++)
	{
		ref = gj_ref_make(0, i < 5 ? 1000 : 12000);
		memcpy(columns[0].data.data() + i * 8, &ref, 8);
	}
	check(gj_layout(program.types.data(), 1, 16, 8192, &target.layout, &place), "layout", "");
	target.slot = slot.memory;
	target.places = &place;
	Queue q(device, program);
	GjView view = q.view(columns, 10, {});

	check(q.ops->columns->gather(q.queue, &view, 0, 10, &target, &n) == GJ_OK && n == 5, "gather",
		  "before the large row");
	check(q.ops->columns->gather(q.queue, &view, 5, 5, &target, &n) == GJ_TOO_LARGE, "gather",
		  "large row");
	check(q.ops->columns->gather(q.queue, &view, 2, 2, &target, &n) == GJ_OK && n == 2, "gather",
		  "after the error");
}

static void
test_rebase(const Device &device, Random &random, uint32_t n)
{
	Program program;
	Column c = random_column(random, GJ_REF, 8, 0, n, 0.1, 0);
	const uint64_t base = UINT64_C(1) << 35;
	std::vector<uint64_t> refs(n);
	std::vector<uint64_t> moved;
	uint64_t *device_refs;
	bool ok = true;

	if (n > 0)
		memcpy(refs.data(), c.data.data(), n * 8);
	Queue q(device, program);
	device_refs = q.upload(refs);
	check(q.ops->columns->rebase_refs(q.queue, device_refs, n, base, c.heap.size()) == GJ_OK,
		  "rebase_refs", at(n));
	moved = q.download(device_refs, n);
	for (uint32_t i = 0; i < n; i++)
		ok &=
			moved[i] == (gj_ref_length(refs[i]) == GJ_REF_HELD ? refs[i] : refs[i] + (base << 24));
	check(ok, "references", at(n));
	if (n == 0)
		return;
	/* one that does not lie within the heap */
	refs[n / 2] = gj_ref_make(c.heap.size() & ~UINT64_C(7), 1);
	device_refs = q.upload(refs);
	check(q.ops->columns->rebase_refs(q.queue, device_refs, n, 0, c.heap.size()) == GJ_OK,
		  "rebase_refs", at(n));
	check(q.ops->queues->sync(q.queue) == GJ_BAD_PROGRAM, "bad reference", at(n));
}

void
test_gather(const Device &device)
{
	Random random(5);

	for (uint32_t n : sizes)
	{
		if (n > 100000)
			continue;
		test_gather_once(device, random, n, 1000, 1u << 18, 0.1, false, true);
		test_gather_once(device, random, n, 32768, 4u << 20, 0.0, true, true);
		test_gather_once(device, random, n, 32768, 4u << 20, 0.2, true, false);
		if (n < 100)
			test_gather_once(device, random, n, 1, 32768, 0.5, true, true);
		test_rebase(device, random, n);
	}
	test_gather_too_large(device, random);
	group(device.ops->name, "gather, rebase_refs");
}
