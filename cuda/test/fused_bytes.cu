/*
 * fused_bytes.cu
 *	  Tests of the fused operator on bytes: keys that are hashes of texts and uuids, or halves of
 *	  their keys, and conditions on a column's bytes, in all forms in which columns lie on a
 *	  device.
 */
#include <map>

#include "rows/text.h"
#include "device/fused_rows.h"
#include "test.cuh"

/* Columns: three of the probe rows, and two of the build side. */
enum
{
	NAME,
	OTHER,
	VALUE,
	INNER_NAME,
	INNER_VALUE,
	NCOLUMNS
};

#define NINNER 700
#define HEADER(n) ((uint32_t) ((n) + 4) << 2)

/* A column of values, some of them NULL: a reference to each, or, of 16 bytes, themselves. */
struct Values
{
	Column column;
	std::vector<std::string> value;
	bool fixed;

	Values(uint32_t source, bool is_fixed) : fixed(is_fixed)
	{
		column.type = {(uint8_t) (fixed ? GJ_BYTES : GJ_REF), (uint8_t) (fixed ? 16 : 8), 1,
					   (uint8_t) source};
	}
	/* `packs`: behind a header of one byte, where that will do */
	void
	add(const std::string &bytes, bool null, bool packs)
	{
		const uint64_t offset = column.heap.size();
		const uint32_t n = (uint32_t) bytes.size();
		std::string stored = packs && n + 1 <= 127 ? std::string(1, (char) ((n + 1) << 1 | 1))
												   : std::string(4, '\0');

		value.push_back(bytes);
		column.nulls.push_back(null);
		if (fixed)
		{
			column.data.insert(column.data.end(), bytes.begin(), bytes.end());
			return;
		}
		if (stored.size() == 4)
		{
			const uint32_t header = HEADER(n);

			memcpy(&stored[0], &header, 4);
		}
		stored += bytes;

		const uint64_t ref = gj_ref_make(offset, stored.size());

		column.data.insert(column.data.end(), (const uint8_t *) &ref, (const uint8_t *) (&ref + 1));
		column.heap.insert(column.heap.end(), stored.begin(), stored.end());
		column.heap.resize((column.heap.size() + 7) / 8 * 8);
	}
};

/* What a join's keys are. */
enum Keys
{
	HASHED,
	HALVES, /* of texts of all lengths */
	EXACT,  /* of texts that have no other key, which the join does not compare */
	NKEYS
};

/* Value `number` of a domain: of all lengths, with the same bytes first. */
static std::string
value_of(uint64_t number, bool fixed, Keys keys)
{
	std::string value = "value ";

	for (uint64_t n = number; n > 0; n /= 7)
		value += (char) ('a' + n % 7);
	if (number % 50 == 3 && keys != EXACT)
		value.append(100 + number % 90, 'x');
	if (number == 1)
		value = "";
	if (fixed)
	{
		value.resize(16, ' ');
		memcpy(&value[8], &number, 8);
	}
	return value;
}

static int64_t
hash_of(const std::string &value)
{
	Bytes bytes(value.begin(), value.end());

	bytes.resize((value.size() + 15) / 8 * 8);
	return gj_hash_t(gj_text(bytes.data(), (uint32_t) value.size()));
}

static int64_t
half_of(const std::string &value, uint32_t how)
{
	Bytes bytes(value.begin(), value.end());

	bytes.resize((value.size() + 15) / 8 * 8);
	return gj_key_t(gj_text(bytes.data(), (uint32_t) value.size()), how);
}

static GjFusedExpr
bytes_expr(GjOp op, bool fixed, int16_t a, uint8_t slot_a, int16_t b, uint8_t slot_b)
{
	GjFusedExpr e = {};

	e.form = GJ_FUSED_BYTES;
	e.op = (uint8_t) op;
	e.arg = fixed ? GJ_BYTES_FIXED : GJ_BYTES_VARLENA;
	e.constant = e.arg;
	e.a = a;
	e.slot_a = slot_a;
	e.b = b;
	e.slot_b = slot_b;
	return e;
}

/* Conditions on the probe rows. */
enum
{
	SAME,     /* both columns */
	CONTAINS, /* LIKE '%ab%' */
	STARTS,   /* NOT LIKE 'value a%' */
	DIFFERS,  /* <> a constant */
	NOTHING,  /* none: a plain plan, if nothing else is wanted */
	NFILTERS
};

static const char *const constant_of[NFILTERS] = {"", "%ab%", "value a%", "value cd", ""};

static GjFusedExpr
filter_expr(uint32_t filter, bool fixed, Program *program)
{
	const std::string text = constant_of[filter];
	GjFusedExpr e = bytes_expr(filter == SAME || filter == DIFFERS ? GJ_OP_EQ_T : GJ_OP_LIKE, fixed,
							   NAME, 0, filter == SAME ? OTHER : -1, 0);

	if (filter == SAME || filter == NOTHING)
		return e;
	/* behind another one, and of less than 16 bytes */
	program->constants.resize(3);
	for (size_t i = 0; i < text.size(); i++)
		((char *) &program->constants[1])[i] = text[i];
	e.constant = GJ_FUSED_TEXT(1, text.size());
	e.high = filter == CONTAINS ? GJ_BYTES_UTF8 : GJ_BYTES_NOT;
	return e;
}

static bool
passes(uint32_t filter, const Values &name, const Values &other, uint32_t r)
{
	const std::string &value = name.value[r];

	if (name.column.nulls[r])
		return filter == NOTHING;
	switch (filter)
	{
		case NOTHING:
			return true;
		case SAME:
			return !other.column.nulls[r] && value == other.value[r];
		case CONTAINS:
			return value.find("ab") != std::string::npos;
		case STARTS:
			return value.compare(0, 7, "value a") != 0;
		default:
			return value != constant_of[filter];
	}
}

/* has_code: something else needs gj_eval, so that a thread has one tuple at a time. */
static void
test_join(const Device &device, Random &random, uint32_t n, bool fixed, Keys how, bool has_code,
		  GjJoinType type, uint32_t filter)
{
	const std::string where = at(n) + (fixed ? ", fixed" : "") + (has_code ? ", code" : "") +
							  ", keys " + std::to_string(how) + ", type " + std::to_string(type) +
							  ", filter " + std::to_string(filter);
	const uint32_t whole = fixed ? GJ_KEY_WHOLE : 0;
	std::vector<Column> columns(NCOLUMNS);
	Values name(0, fixed), other(0, fixed), inner(1, fixed);
	std::map<std::string, uint32_t> row_of;
	std::vector<int64_t> key[2] = {std::vector<int64_t>(NINNER), std::vector<int64_t>(NINNER)};
	Bytes null(NINNER);
	Program program;
	GjFusedPlan plan = {};
	GjKeys keys = {};
	GjHashTable table = {};
	GjAggState states[2] = {}, expected[2] = {};
	uint64_t passed = 0;

	for (uint32_t r = 0; r < NINNER; r++)
	{
		/* some keys are another row's: their bytes are not equal to those that find them */
		const bool others = r % 10 == 7 && how != EXACT;
		const std::string keyed = value_of(others ? r * 2 + 1 : r * 2, fixed, how);

		inner.add(value_of(r * 2, fixed, how), r % 9 == 4, random() % 2);
		null[r] = r % 9 == 4;
		key[0][r] = how == HASHED ? hash_of(keyed) : half_of(keyed, whole);
		key[1][r] = half_of(keyed, whole | GJ_KEY_SECOND);
		if (!null[r] && !others)
			row_of[inner.value[r]] = r;
	}
	for (uint32_t r = 0; r < n; r++)
	{
		const uint64_t number = random() % (NINNER * 2);

		name.add(value_of(number, fixed, how), random() % 20 == 0, random() % 2);
		other.add(value_of(random() % 3 ? number : number + 1, fixed, how), random() % 20 == 0,
				  random() % 2);
	}
	columns[NAME] = name.column;
	columns[OTHER] = other.column;
	columns[VALUE] = random_column(random, GJ_INT4, 4, 0, n, filter == NOTHING ? 0 : 0.1, 1000);
	columns[INNER_NAME] = inner.column;
	columns[INNER_VALUE] =
		random_column(random, GJ_INT8, 8, 1, NINNER, how == EXACT ? 0 : 0.1, 100000);
	for (const Column &c : columns)
		program.types.push_back(c.type);
	program.aggregates = {
		{GJ_AGG_COUNT_STAR, -1},
		{GJ_AGG_SUM_I,
		 (int32_t) program.expr(
			 GJ_INT8,
			 {constant(1, 0), load(0, (uint32_t) (type == GJ_JOIN_INNER ? INNER_VALUE : VALUE))})}};
	plan.ncolumns = NCOLUMNS;
	plan.nprobe_columns = INNER_NAME;
	plan.nsteps = 1;
	plan.naggregates = 2;
	plan.aggregate_op[0] = GJ_AGG_COUNT_STAR;
	plan.aggregate_op[1] = GJ_AGG_SUM_I;
	plan.exprs[0] = bytes_expr(how == HASHED ? GJ_OP_HASH_T : GJ_OP_KEY_T, fixed, NAME, 0, -1, 0);
	plan.exprs[0].high = whole;
	plan.exprs[3] = plan.exprs[0];
	plan.exprs[3].high = whole | GJ_KEY_SECOND;
	plan.exprs[1] = plan.exprs[3];
	plan.exprs[3] = {};
	plan.aggregate_expr[0] = 3;
	plan.aggregate_expr[1] = 2;
	plan.nexprs = 4;
	plan.exprs[2].form = has_code ? GJ_FUSED_CODE : GJ_FUSED_SIMPLE;
	plan.exprs[2].op = GJ_OP_LOAD;
	plan.exprs[2].a = type == GJ_JOIN_INNER ? INNER_VALUE : VALUE;
	plan.exprs[2].slot_a = type == GJ_JOIN_INNER;
	plan.exprs[2].b = -1;
	plan.nregisters = has_code ? 2 : 0;
	plan.terms[0] = filter_expr(filter, fixed, &program);
	plan.terms[1] = bytes_expr(GJ_OP_EQ_T, fixed, INNER_NAME, 1, NAME, 0);
	plan.nterms = 2;
	if (filter != NOTHING)
		plan.filter.form = GJ_FUSED_ALL_TERMS;
	plan.filter.n = 1;
	plan.steps[0].join_type = (uint8_t) type;
	plan.steps[0].source = 1;
	plan.steps[0].nkeys = how == HASHED ? 1 : 2;
	if (how != EXACT)
		plan.steps[0].residual.form = GJ_FUSED_ALL_TERMS;
	plan.steps[0].residual.first = 1;
	plan.steps[0].residual.n = 1;
	if (how == EXACT)
		plan.nterms = filter == NOTHING ? 0 : 1;

	Queue q(device, program);
	const std::vector<GjColumn> uploaded = q.upload_columns(columns);
	const GjFusedPart part = {uploaded.data(), n};
	uint64_t counts[GJ_FUSED_STEPS + 1] = {};

	keys.nkeys = plan.steps[0].nkeys;
	keys.nrows = NINNER;
	for (uint32_t k = 0; k < keys.nkeys; k++)
		keys.value[k] = q.upload(key[k]);
	keys.null = q.upload(null);
	/* with memory for a wide table, and without */
	check(q.ops->tables->hash_build(q.queue, &keys, NULL, random() % 3 ? 1u << 20 : 0, NULL, NULL,
									&table) == GJ_OK &&
			  table.max_count == 1,
		  "hash_build", where);
	if (q.ops->tables->reads_payloads && how == EXACT && table.kind == GJ_TABLE_WIDE &&
		random() % 2)
	{
		bool done = false;

		check(q.ops->tables->hash_payload(q.queue, &table, &uploaded[INNER_VALUE], NINNER, &done) ==
					  GJ_OK &&
				  done,
			  "hash_payload", where);
		table.has_payload = done;
		plan.steps[0].payload = INNER_VALUE;
	}
	plan.steps[0].table = gj_table_ref(&table);
	for (uint32_t r = 0; r < n; r++)
	{
		uint32_t row = GJ_NO_ROW;

		if (!passes(filter, name, other, r))
			continue;
		passed++;
		if (!name.column.nulls[r] && row_of.count(name.value[r]))
			row = row_of[name.value[r]];
		if ((row != GJ_NO_ROW) == (type == GJ_JOIN_ANTI))
			continue;

		const Column &value = columns[type == GJ_JOIN_INNER ? INNER_VALUE : VALUE];
		const uint32_t at = type == GJ_JOIN_INNER ? row : r;

		expected[0].count++;
		if (!value.null(at))
		{
			expected[1].count++;
			expected[1].lo += (uint64_t) value.value(at);
		}
	}
	check(q.ops->pass->fused(q.queue, &plan, uploaded.data(), &part, 1, 0, NULL, NULL) == GJ_OK &&
			  q.ops->groups->aggregate_read(q.queue, states) == GJ_OK &&
			  q.ops->pass->fused_counts(q.queue, counts) == GJ_OK,
		  "fused", q.ops->queues->queue_error(q.queue));
	check(counts[0] == passed, "filter by bytes", where);
	check(counts[1] == (uint64_t) expected[0].count && states[0].count == expected[0].count,
		  "join by bytes", where);
	check(states[1].count == expected[1].count && states[1].lo == expected[1].lo, "sum", where);
	q.ops->tables->hash_free(q.queue, &table);
}

void
test_fused_bytes(const Device &device)
{
	Random random(20261126);

	for (const uint32_t n : {1u, 33u, 1000u, quick ? 5000u : 60000u})
		for (uint32_t i = 0; i < 12 * NFILTERS * NKEYS; i++)
			test_join(device, random, n, i % 2, (Keys) (i / 12 / NFILTERS), i / 2 % 2,
					  i / 4 % 3 == 0   ? GJ_JOIN_INNER
					  : i / 4 % 3 == 1 ? GJ_JOIN_SEMI
									   : GJ_JOIN_ANTI,
					  i / 12 % NFILTERS);
	group(device.ops->name, "fused, of bytes");
}
