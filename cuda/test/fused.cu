/*
 * fused.cu
 *	  Tests of the fused operator: plans of two steps, by every join type, of values in both
 *	  forms, with one row a key, several or none; with aggregates of all rows, and of groups that
 *	  are so few that a block has several tables of them, that it has one, that it has a large one,
 *	  and that it has none.
 */
#include <algorithm>

#include <string.h>

#include "rows/aggregate.h"
#include "device/fused_rows.h"
#include "../internal.cuh"
#include "fused_case.cuh"

/* One number for two keys: the second one is from -100 to 99. */
static int64_t
key_of(int64_t a, int64_t b)
{
	return a * 1000 + b;
}

/* Texts of all lengths up to 400: that is what is looked at. */
static Column
text_column(Random &random, uint32_t n)
{
	Column c = {{GJ_REF, 8, 1, 0}, Bytes((size_t) n * 8), Bytes(n), Bytes(800, 'x')};

	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t ref = gj_ref_make(random() % 50 * 8, random() % 400);

		c.nulls[i] = random() % 10 == 0;
		memcpy(&c.data[(size_t) i * 8], &ref, 8);
	}
	return c;
}

static uint8_t
slot_of(int32_t column)
{
	return column == INNER ? 1 : column == INNER_2 ? 2 : 0;
}

Fused::Fused(Random &r, GjJoinType t, bool l, bool code, uint32_t rows_of_key, uint32_t nrows,
			 uint32_t range)
	: random(r), type(t), left(l), has_code(code), code_rows(code && r() % 2), per_key(rows_of_key),
	  nkeys(rows_of_key > 1 ? 1 + r() % 2 : 1),
	  residual(gj_fused_ends(t) ? r() % 2 : rows_of_key <= 1 || r() % 4), n(nrows), build_side{}
{
	where = "type " + std::to_string(type) + (left ? ", left" : "") + (has_code ? ", code" : "") +
			", " + std::to_string(per_key) + " rows of " + std::to_string(nkeys) + " keys" +
			(residual ? ", residual" : "") + ", n = " + std::to_string(n) + ", range " +
			std::to_string(range);
	/* columns of int4 without NULLs are read in a way of their own */
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, random() % 2 ? 0.1 : 0.0, 200));
	if (random() % 2)
		columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.1, 3000));
	else
		columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, 3000));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, 30));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.1, 0));
	columns.push_back(random_column(random, GJ_FLOAT8, 8, 0, n, 0.1, 1000));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, random() % 2 ? 0.01 : 0.0, range));
	columns.push_back(random_column(random, GJ_BYTES, 1, 0, n, 0.0, 0));
	for (uint8_t &byte : columns[BYTE].data)
		byte %= 2;
	columns.push_back(text_column(random, n));
	columns.push_back(random_column(random, GJ_INT8, 8, 1, 2000, 0.2, 200));
	columns.push_back(random_column(random, GJ_INT4, 4, 2, 4000, 0.2, 200));
	/* after SEMI and ANTI their side is not read */
	if (type > GJ_JOIN_FULL)
		arg[4] = VALUE;
	for (const Column &c : columns)
		program.types.push_back(c.type);
	for (uint32_t a = 0; a < 8; a++)
	{
		const int32_t e = arg[a] < 0 ? -1
									 : (int32_t) program.expr(arg[a] == REAL ? GJ_FLOAT8 : GJ_INT8,
															  {load(0, (uint32_t) arg[a])});

		program.aggregates.push_back({ops[a], e});
	}
	program.group_keys = {{GJ_GROUP_INTEGER, program.expr(GJ_INT4, {load(0, GROUP)})},
						  {GJ_GROUP_FIXED, BYTE}};
	make_plan();
}

/* A column, as code if that is wanted. */
GjFusedExpr
Fused::value(int32_t column, bool code)
{
	GjFusedExpr e = {};

	if (column < 0)
		return e;
	e.form = GJ_FUSED_SIMPLE;
	e.op = GJ_OP_LOAD;
	e.slot_a = slot_of(column);
	e.a = (int16_t) column;
	e.b = -1;
	if (!code)
		return e;
	e.form = GJ_FUSED_CODE;
	e.expr = (int32_t) program.expr(column == REAL ? GJ_FLOAT8 : GJ_INT8,
									{constant(1, 5), load(0, (uint32_t) column)});
	return e;
}

/* Is the condition of a CASE true for a probe row?  Its terms: argument. */
bool
Fused::is_case(uint32_t row) const
{
	const int64_t key = columns[KEY_2].value(row);

	return (key > 0 && columns[FILTER].value(row) < 0) || key > 10;
}

/*
 * What an aggregate takes: now and then as a product, of one factor, or a CASE with one; or the
 * year of a date.
 */
GjFusedExpr
Fused::argument(uint32_t a)
{
	const int32_t column = arg[a];
	GjFusedExpr e = value(column, has_code);
	GjFusedFactor &f = plan.factors[plan.nfactors];

	how[a] = GJ_OP_LOAD;
	if (column < 0 || column == REAL || random() % 2)
		return e;
	if ((column == INNER || column == INNER_2) && random() % 2)
	{
		how[a] = GJ_OP_EXTRACT_DATE;
		e = value(column, false);
		e.op = (uint8_t) how[a];
		e.arg = GJ_FIELD_YEAR;
		return e;
	}
	e = {};
	e.form = GJ_FUSED_PRODUCTS;
	e.expr = plan.nfactors++;
	e.arg = 1;
	if (random() % 2 && plan.nterms + 4 <= GJ_FUSED_TERMS)
	{
		how[a] = random() % 2 ? GJ_OP_IF : GJ_OP_ONLY_IF;
		e.form = GJ_FUSED_CASE;
		e.op = (uint8_t) how[a];
		e.slot_a = plan.nterms;
		e.slot_b = 4;
		plan.terms[plan.nterms++] = term(GJ_OP_GT_I, KEY_2, -1, 0);
		plan.terms[plan.nterms++] = term(GJ_OP_LT_I, FILTER, -1, 0);
		plan.terms[plan.nterms++].form = GJ_FUSED_OR;
		plan.terms[plan.nterms++] = term(GJ_OP_GT_I, KEY_2, -1, 10);
	}
	f.join = GJ_OP_ADD_I;
	f.op = GJ_OP_LOAD;
	f.slot = slot_of(column);
	f.column = (int16_t) column;
	return e;
}

GjFusedExpr
Fused::term(GjOp op, int32_t column, int32_t other, int64_t constant)
{
	GjFusedExpr e = {};

	e.form = GJ_FUSED_SIMPLE;
	e.op = (uint8_t) op;
	e.slot_a = slot_of(column);
	e.slot_b = slot_of(other);
	e.a = (int16_t) column;
	e.b = (int16_t) other;
	e.constant = constant;
	if (op != GJ_OP_LT_I || other >= 0 || random() % 2)
		return e;
	e.form = GJ_FUSED_RANGE;
	e.op = GJ_OP_LOAD;
	e.constant = random() % 2 ? INT64_MIN : -1000;
	e.high = constant - 1;
	/* what no value of an int4 reaches does not matter */
	if (constant > INT32_MAX)
		e.high = INT64_MAX;
	return e;
}

GjFusedCondition
Fused::condition(GjOp o, int32_t column, int32_t other, int64_t number, bool code)
{
	GjFusedCondition c = {};

	c.form = code ? GJ_FUSED_CODE : GJ_FUSED_ALL_TERMS;
	c.first = plan.nterms;
	c.n = 1;
	if (!code)
		plan.terms[plan.nterms++] = term(o, column, other, number);
	else
		c.expr = (int32_t) program.expr(
			GJ_BOOL, {load(0, (uint32_t) column),
					  other < 0 ? constant(1, number) : load(1, (uint32_t) other), op(o, 0, 0, 1)});
	return c;
}

void
Fused::make_plan()
{
	plan.ncolumns = NCOLUMNS;
	plan.nprobe_columns = NOUTER;
	plan.nsteps = 2;
	plan.filter = condition(GJ_OP_LT_I, FILTER, -1, LESS_THAN, code_rows || random() % 3 == 0);
	/* the same, in other words */
	if (plan.filter.form == GJ_FUSED_ALL_TERMS && random() % 2)
	{
		plan.filter.n = 4;
		plan.terms[1].form = GJ_FUSED_OR;
		plan.terms[2] = term(GJ_OP_GT_I, KEY_2, -1, INT32_MAX);
		plan.terms[3] = plan.terms[0];
		plan.nterms = 4;
	}
	plan.nregisters = has_code || plan.filter.form == GJ_FUSED_CODE ? 2 : 0;
	plan.steps[0].join_type = (uint8_t) type;
	plan.steps[0].source = 1;
	plan.steps[0].nkeys = (uint8_t) nkeys;
	plan.steps[0].first_key = plan.nexprs;
	plan.exprs[plan.nexprs++] = value(KEY, code_rows);
	if (nkeys > 1)
		plan.exprs[plan.nexprs++] = value(KEY_2, code_rows);
	if (residual)
		plan.steps[0].residual = condition(GJ_OP_GT_I, INNER, FILTER, 0, code_rows);
	if (gj_fused_ends(type))
	{
		plan.nsteps = 1;
		return;
	}
	plan.steps[1].join_type = (uint8_t) (left ? GJ_JOIN_LEFT : GJ_JOIN_INNER);
	plan.steps[1].source = 2;
	plan.steps[1].nkeys = 2;
	plan.steps[1].first_key = plan.nexprs;
	plan.exprs[plan.nexprs++] = value(KEY_2, false);
	plan.exprs[plan.nexprs++] = value(FILTER, code_rows);
	/* one condition is of terms in any plan */
	if (!left)
		plan.steps[1].filter = condition(GJ_OP_GT_I, INNER_2, -1, MORE_THAN, false);
	plan.no_row = (uint16_t) ((gj_fused_keeps_all(type) ? 1u << 1 : 0) | (left ? 1u << 2 : 0));
	/* without sums of floats tuples may also go by lists */
	plan.naggregates = random() % 2 ? 8 : 5;
	for (uint32_t a = 0; a < 8; a++)
	{
		plan.aggregate_op[a] = (uint8_t) ops[a];
		plan.aggregate_expr[a] = plan.nexprs;
		plan.exprs[plan.nexprs++] = argument(a);
	}
	plan.ngroup_keys = 2;
	plan.group_how[0] = GJ_GROUP_INTEGER;
	plan.group_expr[0] = plan.nexprs;
	plan.exprs[plan.nexprs++] = value(GROUP, has_code);
	plan.group_how[1] = GJ_GROUP_FIXED;
	plan.group_expr[1] = plan.nexprs;
	plan.exprs[plan.nexprs++] = term(GJ_OP_LOAD, BYTE, -1, 0);
}

/*
 * A table over the rows of a build side, whose row ids are not their numbers if it has two keys.
 * Where keys have several rows, some keys are NULL.
 */
void
Fused::build(Queue &q, uint32_t i, uint32_t nkeys, uint32_t rows_of_key)
{
	const uint32_t nrows =
		(uint32_t) columns[INNER + i].data.size() / columns[INNER + i].type.width;
	const bool marks = gj_fused_marks(plan.steps[i].join_type);
	Bytes null(nrows);
	std::vector<std::vector<int64_t>> key(nkeys, std::vector<int64_t>(nrows));
	std::vector<uint32_t> rowid(nrows);
	GjFusedStep &step = plan.steps[i];
	GjHashTable &table = build_side[i].table;
	const bool rowids = nkeys > 1 || random() % 2;
	GjKeys keys = {};

	for (uint32_t r = 0; r < nrows; r++)
		rowid[r] = r;
	std::shuffle(rowid.begin(), rowid.end(), random);
	for (uint32_t r = 0; r < nrows; r++)
	{
		/* different ones, of which the probe rows have most, and some that they have not */
		const int64_t number = r / rows_of_key;

		null[r] = rows_of_key > 1 && random() % 16 == 0;
		key[0][r] = i == 0 ? number * rows_of_key * 2 - 2000 : number % 40 - 20;
		if (nkeys > 1)
			key[1][r] = i == 0 ? number % 7 - 3 : number / 40 - 100;
		if (!null[r])
			build_side[i].rows[nkeys == 1 ? key[0][r] : key_of(key[0][r], key[1][r])].push_back(
				rowids ? rowid[r] : r);
	}
	keys.nkeys = nkeys;
	keys.nrows = nrows;
	for (uint32_t k = 0; k < nkeys; k++)
		keys.value[k] = q.upload(key[k]);
	keys.null = q.upload(null);
	check(q.ops->tables->hash_build(q.queue, &keys, rowids ? q.upload(rowid) : NULL,
									random() % 2 ? nrows * 24 : 0, NULL, NULL, &table) == GJ_OK &&
			  table.max_count >= 1 && table.max_count <= rows_of_key,
		  "hash_build", q.ops->queues->queue_error(q.queue));
	step.table = gj_table_ref(&table);
	step.walks = table.max_count > 1 && (residual || marks);
	step.marks = marks ? q.upload(Bytes(nrows)) : NULL;
}

/* Is the first step's residual condition true for two rows? */
bool
Fused::passes(uint32_t row, uint32_t build_row) const
{
	return !residual || (!columns[INNER].null(build_row) &&
						 columns[INNER].value(build_row) > columns[FILTER].value(row));
}

/* Has an probe row a match in the first step, and which? */
bool
Fused::join(uint32_t row, uint32_t *build_row, Bytes *marks) const
{
	int64_t key;

	*build_row = GJ_NO_ROW;
	if (columns[KEY].null(row))
		return false;
	key = columns[KEY].value(row);
	if (nkeys > 1)
		key = key_of(key, columns[KEY_2].value(row));

	const auto rows = build_side[0].rows.find(key);

	if (rows == build_side[0].rows.end())
		return false;
	for (uint32_t r : rows->second)
	{
		if (!passes(row, r))
			continue;
		*build_row = r;
		(*marks)[r] = 1;
	}
	return *build_row != GJ_NO_ROW;
}

/* Does an probe row get through, and with which rows? */
bool
Fused::take(uint32_t row, uint32_t rows[3], std::vector<uint64_t> *counts, Bytes *marks) const
{
	const Column &filter = columns[FILTER];
	bool found;

	rows[0] = row;
	if (filter.null(row) || filter.value(row) >= LESS_THAN)
		return false;
	(*counts)[0]++;
	found = join(row, &rows[1], marks);
	if (gj_fused_ends(type) || (!gj_fused_keeps_all(type) && found == (type == GJ_JOIN_ANTI)))
		return false;
	(*counts)[1]++;

	const auto r = build_side[1].rows.find(key_of(columns[KEY_2].value(row), filter.value(row)));

	rows[2] = r == build_side[1].rows.end() ? GJ_NO_ROW : r->second[0];
	if (!left && (rows[2] == GJ_NO_ROW || columns[INNER_2].null(rows[2]) ||
				  columns[INNER_2].value(rows[2]) <= MORE_THAN))
		return false;
	(*counts)[2]++;
	return true;
}

void
Fused::aggregate(const uint32_t rows[3], std::vector<GjAggState> *states) const
{
	for (uint32_t a = 0; a < 8; a++)
	{
		const uint32_t row = arg[a] < 0 ? 0 : rows[slot_of(arg[a])];

		if (arg[a] < 0)
			(*states)[a].count++;
		else if ((how[a] == GJ_OP_IF || how[a] == GJ_OP_ONLY_IF) && !is_case(rows[0]))
		{
			if (how[a] == GJ_OP_IF)
				gj_agg_step(ops[a], &(*states)[a], 0);
		}
		else if (row != GJ_NO_ROW && !columns[arg[a]].null(row))
		{
			int64_t value = columns[arg[a]].value(row);

			if (how[a] == GJ_OP_EXTRACT_DATE)
				gj_extract_date(value, GJ_FIELD_YEAR, &value);
			gj_agg_step(ops[a], &(*states)[a], value);
		}
	}
}

bool
same_states(const GjAggState *a, uint32_t stride, const std::vector<GjAggState> &b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		const GjAggState &x = a[(size_t) i * stride];
		const GjAggState &y = b[i];

		/* floats are multiples of 1/8: their sums are exact */
		if (x.count != y.count || (x.count > 0 && (x.lo != y.lo || x.hi != y.hi || x.f != y.f)))
			return false;
	}
	return true;
}

/* The probe rows in pieces that start anywhere, one of which is empty. */
std::vector<GjFusedPart>
Fused::parts(std::vector<std::vector<GjColumn>> *memory, std::vector<uint32_t> *first) const
{
	std::vector<GjFusedPart> parts;

	for (uint32_t end : {n / 3 + 1, n / 3 + 1, n / 2, n})
	{
		const uint32_t from = first->empty() ? 0 : first->back();
		std::vector<GjColumn> some(device.begin(), device.begin() + NOUTER);

		for (GjColumn &c : some)
			gj_column_skip(&c, from);
		end = std::min(std::max(end, from), n);
		if (first->empty())
			first->push_back(0);
		memory->push_back(some);
		parts.push_back({NULL, end - from});
		first->push_back(end);
	}
	for (uint32_t p = 0; p < parts.size(); p++)
		parts[p].columns = (*memory)[p].data();
	return parts;
}

Lists::Lists(const Device &d, bool always) : device(d.ops->kind == GJ_DEVICE_CUDA ? d.device : NULL)
{
	if (device == NULL)
		return;
	sample = device->fused_sample;
	cut = device->fused_cut;
	device->fused_sample = always ? 0 : UINT64_MAX;
	device->fused_cut = 1.0;
}

Lists::~Lists()
{
	if (device == NULL)
		return;
	device->fused_sample = sample;
	device->fused_cut = cut;
}

void
Fused::run(const Device &under_test)
{
	std::vector<std::vector<GjColumn>> memory;
	std::vector<uint32_t> first;
	std::vector<GjAggState> states(8);
	std::vector<GjAggState> expected(8);
	std::vector<uint64_t> counts(3);
	Bytes marks(columns[INNER].data.size() / columns[INNER].type.width);
	uint64_t found[GJ_FUSED_STEPS + 1];
	std::vector<GjFusedPart> part;
	Lists lists(under_test, random() % 2);
	Queue q(under_test, program);

	device = q.upload_columns(columns);
	if (per_key > 0)
		build(q, 0, nkeys, per_key);
	if (plan.nsteps > 1)
		build(q, 1, 2, 1);
	part = parts(&memory, &first);
	for (uint32_t row = 0; row < n; row++)
	{
		uint32_t rows[3];

		if (take(row, rows, &counts, &marks))
			aggregate(rows, &expected);
	}
	check(q.ops->pass->fused(q.queue, &plan, device.data(), part.data(), (uint32_t) part.size(),
							 UINT64_MAX, NULL, NULL) == GJ_OK &&
			  q.ops->groups->aggregate_read(q.queue, states.data()) == GJ_OK,
		  "fused", q.ops->queues->queue_error(q.queue));
	check(same_states(states.data(), 1, expected, plan.naggregates), "states", where);
	check(q.ops->pass->fused_counts(q.queue, found) == GJ_OK &&
			  std::equal(counts.begin(), counts.end(), found),
		  "tuples of the steps", where);
	if (!gj_fused_ends(type))
		run_groups(q, part, first);
	if (plan.steps[0].marks != NULL)
		check(q.download(plan.steps[0].marks, marks.size()) == marks, "marked rows", where);
}

void
test_fused(const Device &device)
{
	static const GjJoinType types[] = {GJ_JOIN_INNER, GJ_JOIN_LEFT,       GJ_JOIN_SEMI,
									   GJ_JOIN_ANTI,  GJ_JOIN_RIGHT_SEMI, GJ_JOIN_RIGHT_ANTI,
									   GJ_JOIN_RIGHT, GJ_JOIN_FULL};
	Random random(31);

	for (GjJoinType type : types)
		for (int mode = 0; mode < 4; mode++)
		{
			for (uint32_t n : {1u, 33u, 1025u, 30000u})
				for (uint32_t per_key : {0u, 1u, 3u, 40u})
					if (per_key <= 1 || type >= GJ_JOIN_SEMI)
						Fused(random, type, mode & 1, mode >> 1, per_key, n, 10).run(device);
			/* twice as many groups, of 256 bytes each: with enough rows for tables of blocks */
			for (uint32_t range : {3u, 30u, 110u, 2000u})
				if (!quick || range == 110)
					Fused(random, type, mode & 1, mode >> 1, type >= GJ_JOIN_SEMI ? 2 : 1, 300000,
						  range)
						.run(device);
		}
	for (uint32_t nknown : {100u, 5000u})
		test_few_found(device, random, nknown);
	group(device.ops->name, "fused");
}
