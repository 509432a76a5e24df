/*
 * plain.cu
 *	  Tests of the fused operator with plans of sums, ranges and joins over integers, which a GPU
 *	  has kernels of its own for: all of their operands, direct and hash tables, NULL and equal
 *	  keys, overflows, rows that end anywhere, parts that are not aligned, rows that another kernel
 *	  aggregates; and the same with a NULL, with sums of products and with more joins, where they
 *	  are not taken.
 */
#include <algorithm>
#include <unordered_map>

#include "rows/aggregate.h"
#include "device/fused_rows.h"
#include "../internal.cuh"
#include "test.cuh"

#define NOUTER 5
#define NINNER GJ_FUSED_STEPS /* sides of one column each, at most */
#define USUAL_STEPS 4
#define INNER_ROWS 1500u
#define KEY_SPREAD 2 /* every other key has a row */

enum
{
	SMALL,
	WIDE,
	KEY,
	WIDE_KEY,
	ANY
};

struct PlainTest
{
	Random &random;
	uint32_t n;
	int64_t middle; /* of the keys: mostly 0, else where tables reach beyond what int4 can have */
	std::vector<Column> columns;
	Program program;
	GjFusedPlan plan = {};
	std::unordered_map<int64_t, uint32_t> row[NINNER]; /* of a key */
	std::vector<GjColumn> device;
	std::string where;

	PlainTest(Random &random, uint32_t n);
	bool readable(int32_t column) const;
	int16_t any_column();
	GjFusedExpr any_value();
	GjFusedExpr any_products();
	void add_range();
	void add_step(Queue &q, uint32_t s);
	bool get(const GjFusedExpr &e, bool b, const uint32_t *rows, int64_t *value) const;
	bool evaluate(const GjFusedExpr &e, const uint32_t *rows, int64_t *value, bool *over) const;
	bool products(const GjFusedExpr &e, const uint32_t *rows, int64_t *value, bool *over) const;
	bool take(uint32_t r, uint32_t *rows, std::vector<uint64_t> *counts) const;
	bool expect(std::vector<GjAggState> *states, std::vector<uint64_t> *counts) const;
	void run(const Device &device);
};

/* Moves the keys of a column; those of int4 wrap around. */
static void
move_keys(Column *column, int64_t middle)
{
	for (size_t at = 0; at < column->data.size(); at += column->type.width)
	{
		int64_t key = 0;

		memcpy(&key, &column->data[at], column->type.width);
		key = (int64_t) ((uint64_t) key + (uint64_t) middle);
		memcpy(&column->data[at], &key, column->type.width);
	}
}

PlainTest::PlainTest(Random &r, uint32_t nrows) : random(r), n(nrows)
{
	static const int64_t middles[] = {0,
									  0,
									  0,
									  0,
									  INT32_MIN,
									  INT32_MAX,
									  (int64_t) INT32_MIN + 700 * KEY_SPREAD,
									  (int64_t) INT32_MIN - 700 * KEY_SPREAD,
									  (int64_t) INT32_MAX + 700 * KEY_SPREAD};

	/* now and then one that the kernel does not read */
	const double null_rate = random() % 8 == 0 ? 0.1 : 0.0;

	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, null_rate, 2000));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.0, random() % 8 ? 1000 : 0));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, 2 * INNER_ROWS * KEY_SPREAD));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.0, 2 * INNER_ROWS * KEY_SPREAD));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, random() % 8 ? 30000 : 0));
	middle = middles[random() % 9];
	move_keys(&columns[KEY], middle);
	move_keys(&columns[WIDE_KEY], middle);
	for (uint32_t s = 0; s < NINNER; s++)
		columns.push_back(
			s % 2
				? random_column(random, GJ_INT8, 8, (uint8_t) (s + 1), INNER_ROWS, 0.0, 5000)
				: random_column(random, GJ_INT4, 4, (uint8_t) (s + 1), INNER_ROWS, null_rate, 500));
	for (const Column &c : columns)
		program.types.push_back(c.type);
}

/* True if tuples that have come through all steps have a row of the column's source. */
bool
PlainTest::readable(int32_t column) const
{
	return column < NOUTER || (column - NOUTER < plan.nsteps &&
							   plan.steps[column - NOUTER].join_type == GJ_JOIN_INNER);
}

int16_t
PlainTest::any_column()
{
	for (;;)
	{
		const int16_t column = (int16_t) (random() % (NOUTER + NINNER));

		if (readable(column))
			return column;
	}
}

GjFusedExpr
PlainTest::any_value()
{
	static const uint8_t ops[] = {GJ_OP_LOAD, GJ_OP_LOAD, GJ_OP_ADD_I, GJ_OP_SUB_I, GJ_OP_MUL_I};
	GjFusedExpr e = {};

	e.form = GJ_FUSED_SIMPLE;
	e.op = ops[random() % 5];
	e.a = any_column();
	e.b = -1;
	e.constant = random() % 20 ? (int64_t) (random() % 100) - 50 : INT64_MAX - 1000;
	if (e.op != GJ_OP_LOAD && random() % 4)
		e.b = any_column();
	else if (e.op != GJ_OP_LOAD && random() % 4 == 0)
		std::swap(e.a, e.b);
	e.slot_a = (uint8_t) (e.a < NOUTER ? 0 : e.a - NOUTER + 1);
	e.slot_b = (uint8_t) (e.b < NOUTER ? 0 : e.b - NOUTER + 1);
	e.arg = GJ_INT8;
	if ((e.a < 0 || columns[e.a].type.kind == GJ_INT4) &&
		(e.b < 0 ? e.constant == (int32_t) e.constant : columns[e.b].type.kind == GJ_INT4) &&
		random() % 2)
		e.arg = GJ_INT4;
	return e;
}

/* A sum of products of up to four factors. */
GjFusedExpr
PlainTest::any_products()
{
	static const uint8_t joins[] = {GJ_OP_MUL_I, GJ_OP_MUL_I, GJ_OP_ADD_I, GJ_OP_SUB_I};
	static const uint8_t ops[] = {GJ_OP_LOAD, GJ_OP_ADD_I, GJ_OP_SUB_I};
	GjFusedExpr e = {};

	e.form = GJ_FUSED_PRODUCTS;
	e.expr = plan.nfactors;
	e.arg = (uint8_t) (1 + random() % 4);
	for (uint32_t k = 0; k < e.arg; k++)
	{
		GjFusedFactor &f = plan.factors[plan.nfactors++];

		f.join = k == 0 ? (uint8_t) GJ_OP_ADD_I : joins[random() % 4];
		f.column = random() % 6 ? any_column() : (int16_t) -1;
		f.op = f.column < 0 ? (uint8_t) GJ_OP_LOAD : ops[random() % 3];
		f.slot = (uint8_t) (f.column < NOUTER ? 0 : f.column - NOUTER + 1);
		f.constant = random() % 40 ? (int64_t) (random() % 100) - 50 : INT64_MIN + 1000;
	}
	return e;
}

void
PlainTest::add_range()
{
	GjFusedExpr &term = plan.terms[plan.nterms++];
	const int64_t ends[] = {INT64_MIN, INT64_MAX, (int64_t) INT32_MAX + 1, INT32_MIN,
							-900,      INT32_MAX, (int64_t) INT32_MIN - 5};

	term = {};
	term.form = GJ_FUSED_RANGE;
	term.op = GJ_OP_LOAD;
	term.a = (int16_t) (random() % NOUTER);
	term.b = -1;
	term.constant = random() % 3 ? -(int64_t) (random() % 900) : ends[random() % 7];
	term.high = random() % 3 ? (int64_t) (random() % 1500) : ends[random() % 7];
	plan.filter.form = GJ_FUSED_ALL_TERMS;
	plan.filter.n = plan.nterms;
}

/* A join with a table of one key, direct, dense, or of slots; or of two that are the same. */
void
PlainTest::add_step(Queue &q, uint32_t s)
{
	static const uint8_t types[] = {GJ_JOIN_INNER, GJ_JOIN_INNER, GJ_JOIN_SEMI, GJ_JOIN_ANTI};
	GjFusedStep &step = plan.steps[s];
	GjFusedExpr &key = plan.exprs[plan.nexprs];
	std::vector<int64_t> value(INNER_ROWS);
	std::vector<int64_t> second;
	Bytes null(INNER_ROWS);
	GjHashTable table;
	GjKeys keys = {};

	step.join_type = types[random() % 4];
	step.source = (uint8_t) (s + 1);
	step.nkeys = random() % 4 == 0 ? 2 : 1;
	step.first_key = plan.nexprs;
	plan.nexprs += step.nkeys;
	key.form = GJ_FUSED_SIMPLE;
	key.op = GJ_OP_LOAD;
	key.a = random() % 2 ? KEY : WIDE_KEY;
	key.b = -1;
	if (step.nkeys == 2)
		plan.exprs[step.first_key + 1] = key;
	for (uint32_t r = 0; r < INNER_ROWS; r++)
		value[r] = middle + ((int64_t) r - 700) * KEY_SPREAD;
	if (random() % 4 == 0)
	{
		/* a dense table: each key has a row, in their order */
		for (uint32_t r = 0; r < INNER_ROWS; r++)
			value[r] = middle + (int64_t) r - 700;
	}
	else
		std::shuffle(value.begin(), value.end(), random);
	if (random() % 3 == 0)
	{
		for (uint32_t r = 0; r < INNER_ROWS; r++)
			null[r] = random() % 10 == 0;
	}
	/* which of the rows with a key it is does not matter then */
	if (step.join_type != GJ_JOIN_INNER && random() % 2)
	{
		for (uint32_t r = 0; r < INNER_ROWS; r++)
			value[r] = value[random() % INNER_ROWS];
	}
	second = value;
	for (uint32_t r = 0; r < INNER_ROWS; r++)
	{
		/* another second key than the first, which nothing looks up */
		if (step.nkeys == 2 && r % 7 == 3)
			second[r]++;
		else if (!null[r])
			row[s][value[r]] = r;
	}
	keys.nkeys = step.nkeys;
	keys.nrows = INNER_ROWS;
	keys.value[0] = q.upload(value);
	if (step.nkeys == 2)
		keys.value[1] = q.upload(second);
	keys.null = q.upload(null);
	check(q.ops->tables->hash_build(q.queue, &keys, NULL, random() % 2 ? 1 << 20 : 0, never, NULL,
									&table) == GJ_OK,
		  "hash_build", q.ops->queues->queue_error(q.queue));
	plan.nsteps = (uint8_t) (s + 1);
	/* values of the side beside its keys */
	if (q.ops->tables->reads_payloads && gj_table_has_places(&table) && table.max_count == 1 &&
		(step.nkeys == 1 || table.kind == GJ_TABLE_WIDE) && random() % 3 &&
		columns[NOUTER + s].nulls.empty())
	{
		const GjColumn column = q.upload_columns({columns[NOUTER + s]})[0];

		check(q.ops->tables->hash_payload(q.queue, &table, &column, INNER_ROWS,
										  &table.has_payload) == GJ_OK,
			  "hash_payload", q.ops->queues->queue_error(q.queue));
		step.payload = (int16_t) (NOUTER + s);
	}
	if (q.ops->tables->asks_filters && gj_table_has_places(&table) && step.nkeys == 1 &&
		random() % 3)
	{
		check(q.ops->tables->hash_filter(q.queue, &table) == GJ_OK, "hash_filter",
			  q.ops->queues->queue_error(q.queue));
	}
	step.table = gj_table_ref(&table);
	if (table.kind != GJ_TABLE_DENSE || step.join_type == GJ_JOIN_INNER || middle != 0)
		return;
	/* a row for each key of int4, and so more than 32 bits can count; none of them is read */
	step.table.low = INT32_MIN;
	step.table.nslots = UINT64_C(1) << 32;
	for (uint32_t r = 0; r < n; r++)
		row[s][columns[key.a].value(r)] = 0;
}

/* An operand of e for a tuple; true: NULL. */
bool
PlainTest::get(const GjFusedExpr &e, bool b, const uint32_t *rows, int64_t *value) const
{
	const int32_t column = b ? e.b : e.a;

	*value = e.constant;
	if (column < 0)
		return false;
	*value = columns[column].value(rows[b ? e.slot_b : e.slot_a]);
	return columns[column].null(rows[b ? e.slot_b : e.slot_a]);
}

bool
PlainTest::products(const GjFusedExpr &e, const uint32_t *rows, int64_t *value, bool *over) const
{
	const GjFusedFactor *factor = &plan.factors[e.expr];
	__int128 sum = 0;
	__int128 product = 0;
	bool minus = false;
	bool null = false;
	bool null_product = false;
	bool fits = true;

	/* NULL is 0 here, and what has NULL in it always fits */
	for (uint32_t k = 0; k < e.arg && fits; k++)
	{
		const GjFusedFactor &f = factor[k];
		const bool null_factor = f.column >= 0 && columns[f.column].null(rows[f.slot]);
		__int128 x = f.column < 0  ? f.constant
					 : null_factor ? 0
								   : columns[f.column].value(rows[f.slot]);

		if (!null_factor)
			x = f.op == GJ_OP_ADD_I ? f.constant + x : f.op == GJ_OP_SUB_I ? f.constant - x : x;
		fits = x == (int64_t) x;
		if (f.join == GJ_OP_MUL_I)
		{
			null_product |= null_factor;
			product *= x;
		}
		else
		{
			null |= null_product;
			sum += minus ? -product : product;
			product = x;
			null_product = null_factor;
			minus = f.join == GJ_OP_SUB_I;
		}
		if (null_product)
			product = 0;
		if (null)
			sum = 0;
		fits = fits && sum == (int64_t) sum && product == (int64_t) product;
	}
	null |= null_product;
	sum += minus ? -product : product;
	*value = null ? 0 : (int64_t) sum;
	*over |= !fits || (!null && sum != *value);
	return null;
}

bool
PlainTest::evaluate(const GjFusedExpr &e, const uint32_t *rows, int64_t *value, bool *over) const
{
	int64_t a;
	int64_t b;

	if (e.form == GJ_FUSED_PRODUCTS)
		return products(e, rows, value, over);
	if (get(e, false, rows, &a))
		return true;
	*value = a;
	if (e.op == GJ_OP_LOAD)
		return false;
	if (get(e, true, rows, &b))
		return true;

	const __int128 r = e.op == GJ_OP_ADD_I   ? (__int128) a + b
					   : e.op == GJ_OP_SUB_I ? (__int128) a - b
											 : (__int128) a * b;

	*value = (int64_t) r;
	*over |= r != (e.arg == GJ_INT4 ? (__int128) (int32_t) r : (__int128) (int64_t) r);
	return false;
}

bool
PlainTest::take(uint32_t r, uint32_t *rows, std::vector<uint64_t> *counts) const
{
	rows[0] = r;
	for (uint32_t k = 0; k < plan.nterms; k++)
	{
		const Column &c = columns[plan.terms[k].a];

		if (c.null(r) || c.value(r) < plan.terms[k].constant || c.value(r) > plan.terms[k].high)
			return false;
	}
	(*counts)[0]++;
	for (uint32_t s = 0; s < plan.nsteps; s++)
	{
		const GjFusedStep &step = plan.steps[s];
		const auto found = row[s].find(columns[plan.exprs[step.first_key].a].value(r));

		if ((found == row[s].end()) != (step.join_type == GJ_JOIN_ANTI))
			return false;
		if (found != row[s].end())
			rows[s + 1] = found->second;
		(*counts)[s + 1]++;
	}
	return true;
}

/* False: some value overflows. */
bool
PlainTest::expect(std::vector<GjAggState> *states, std::vector<uint64_t> *counts) const
{
	bool over = false;

	for (uint32_t r = 0; r < n; r++)
	{
		uint32_t rows[NINNER + 1];

		if (!take(r, rows, counts))
			continue;
		for (uint32_t a = 0; a < plan.naggregates; a++)
		{
			int64_t value = 0;

			if (plan.aggregate_op[a] == GJ_AGG_COUNT_STAR ||
				!evaluate(plan.exprs[plan.aggregate_expr[a]], rows, &value, &over))
				gj_agg_step(plan.aggregate_op[a], &(*states)[a], value);
		}
	}
	return !over;
}

void
PlainTest::run(const Device &under_test)
{
	static const uint8_t aggregates[] = {GJ_AGG_COUNT_STAR, GJ_AGG_SUM_I, GJ_AGG_SUM_I,
										 GJ_AGG_SUM_I,      GJ_AGG_COUNT, GJ_AGG_MIN_I};
	/* another kernel aggregates then */
	const uint32_t nops = random() % 3 ? 5 : 6;
	const uint32_t nsteps =
		(uint32_t) (random() % ((random() % 4 ? USUAL_STEPS : GJ_FUSED_STEPS) + 1));
	const uint32_t nranges = (uint32_t) (random() % 4);

	plan.ncolumns = NOUTER + NINNER;
	plan.nprobe_columns = NOUTER;
	plan.naggregates = (uint8_t) (1 + random() % 4);
	for (uint32_t a = 0; a < plan.naggregates; a++)
		program.aggregates.push_back(
			{GJ_AGG_SUM_I, (int32_t) program.expr(GJ_INT8, {load(0, WIDE)})});

	Lists lists(under_test, random() % 2);
	Queue q(under_test, program);

	for (uint32_t s = 0; s < nsteps; s++)
		add_step(q, s);
	for (uint32_t k = 0; k < nranges; k++)
		add_range();
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		plan.aggregate_op[a] = aggregates[random() % nops];
		plan.aggregate_expr[a] = plan.nexprs;
		/* often one argument for two */
		plan.exprs[plan.nexprs++] =
			plan.aggregate_op[a] == GJ_AGG_COUNT_STAR ? GjFusedExpr{}
			: a > 0 && random() % 2 && plan.aggregate_op[a - 1] != GJ_AGG_COUNT_STAR
				? plan.exprs[plan.aggregate_expr[a - 1]]
			: random() % 4 ? any_value()
						   : any_products();
	}
	device = q.upload_columns(columns);

	/* parts, whose rows mostly start at a multiple of four */
	const uint32_t unit = random() % 5 ? 4 : 1;
	const std::vector<uint32_t> ends = {n / 3 / unit * unit, n / 3 / unit * unit,
										n / 2 / unit * unit, n};
	std::vector<std::vector<GjColumn>> memory;
	std::vector<GjFusedPart> parts;
	uint32_t from = 0;

	for (uint32_t end : ends)
	{
		memory.push_back({device.begin(), device.begin() + NOUTER});
		for (GjColumn &c : memory.back())
			gj_column_skip(&c, from);
		parts.push_back({NULL, end - from});
		from = end;
	}
	for (uint32_t p = 0; p < parts.size(); p++)
		parts[p].columns = memory[p].data();

	std::vector<GjAggState> states(plan.naggregates);
	std::vector<GjAggState> expected(plan.naggregates);
	std::vector<uint64_t> counts(GJ_FUSED_STEPS + 1);
	std::vector<uint64_t> found(GJ_FUSED_STEPS + 1);
	const bool fits = expect(&expected, &counts);
	GjStatus status = q.ops->pass->fused(q.queue, &plan, device.data(), parts.data(),
										 (uint32_t) parts.size(), UINT64_MAX, NULL, NULL);
	bool same = true;

	where = "n = " + std::to_string(n) + ", steps " + std::to_string(plan.nsteps) + ", ranges " +
			std::to_string(plan.nterms);
	if (status == GJ_OK)
		status = q.ops->groups->aggregate_read(q.queue, states.data());
	if (!check(status == (fits ? GJ_OK : GJ_OVERFLOW), "status", where) || !fits)
		return;
	for (uint32_t a = 0; a < plan.naggregates; a++)
		same &= states[a].count == expected[a].count &&
				(plan.aggregate_op[a] != GJ_AGG_SUM_I || states[a].lo == expected[a].lo) &&
				(plan.aggregate_op[a] == GJ_AGG_COUNT || states[a].count == 0 ||
				 states[a].hi == expected[a].hi);
	check(same, "states", where);
	check(q.ops->pass->fused_counts(q.queue, found.data()) == GJ_OK && found == counts,
		  "tuples of the steps", where);
}

void
test_plain(const Device &device)
{
	Random random(31);

	for (uint32_t n : {0u, 1u, 3u, 5u, 1023u, 4096u, 30001u})
		for (uint32_t round = 0; round < (quick ? 40u : 150u); round++)
			PlainTest(random, n).run(device);
	for (uint32_t round = 0; round < (quick ? 3u : 10u); round++)
		PlainTest(random, 1500000).run(device);
	group(device.ops->name, "fused sums of integers");
}
