/*
 * types.cu
 *	  Tests of expressions on texts, numerics, dates and times, and of conditional ones.
 *
 * The reference is gj_eval on the host: SQL tests compare that with PostgreSQL.  Some
 * values are checked by other means as well, so that both cannot be wrong alike.
 */
#include <stdlib.h>
#include <string.h>

#include "test.cuh"

#define NROWS 3000

enum
{
	TEXT,     /* any bytes that are UTF-8, blanks, % and _ */
	PATTERN,  /* texts that are good patterns */
	DECIMAL2, /* numeric(18, 2) */
	DECIMAL4, /* numeric(12, 4) */
	UUID,
	DATE,
	TIMESTAMP,
	INT4,
	INT8,
	FLOAT4,
	FLOAT8,
	BOOLEAN,
	CHAR,
	NCOLUMNS
};

/* ---- columns */

static void
put_ref(Column *c, uint32_t row, const std::string &bytes)
{
	const uint64_t offset = c->heap.size();
	const uint64_t ref = gj_ref_make(offset, bytes.size());

	c->heap.resize(offset + ((bytes.size() + 7) & ~(size_t) 7));
	memcpy(c->heap.data() + offset, bytes.data(), bytes.size());
	memcpy(c->data.data() + (size_t) row * 8, &ref, 8);
}

/* A length header, as short as possible if `pack`, and the bytes. */
static std::string
varlena(const std::string &bytes, bool pack)
{
	const uint32_t n = (uint32_t) bytes.size();
	const uint32_t header = (n + 4) << 2;

	if (pack && n + 1 <= 127)
		return std::string(1, (char) ((n + 1) << 1 | 1)) + bytes;
	return std::string((const char *) &header, 4) + bytes;
}

static std::string
random_text(Random &random, bool pattern)
{
	static const char *const pieces[] = {
		"a", "b", "ab", " ", "%", "_", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80"};
	std::string text;
	uint32_t n = random() % 16 == 0 ? 100 + random() % 300 : random() % 9;

	if (pattern)
		n = random() % 6;
	while (n-- > 0)
	{
		text += pieces[random() % 9];
		if (pattern && random() % 8 == 0)
			text += "\\_";
	}
	return text;
}

/* A numeric as PostgreSQL stores it: header, then digits of base 10000. */
static std::string
stored_numeric(int64_t value, int scale, bool long_header)
{
	std::vector<uint16_t> digits;
	__int128 v = value < 0 ? -(__int128) value : value;
	int weight;
	std::string result;
	uint16_t header;

	for (int i = scale; i % 4 != 0; i++)
		v *= 10;
	weight = -(scale + 3) / 4 - 1;
	for (; v > 0; v /= 10000)
	{
		digits.insert(digits.begin(), (uint16_t) (v % 10000));
		weight++;
	}
	while (!digits.empty() && digits.back() == 0)
		digits.pop_back();
	if (digits.empty())
		weight = 0;
	if (long_header)
	{
		header = (uint16_t) ((value < 0 ? 0x4000 : 0) | scale);
		result.append((const char *) &header, 2);
		header = (uint16_t) weight;
		result.append((const char *) &header, 2);
	}
	else
	{
		header = (uint16_t) (0x8000 | (value < 0 ? 0x2000 : 0) | scale << 7 | (weight & 0x7F));
		result.append((const char *) &header, 2);
	}
	result.append((const char *) digits.data(), digits.size() * 2);
	return result;
}

static Column
ref_column(Random &random, std::vector<std::string> *texts, uint32_t which)
{
	Column c;

	c.type = {GJ_REF, 8, 1, 0};
	c.data.resize(NROWS * 8);
	c.nulls.resize(NROWS);
	for (uint32_t row = 0; row < NROWS; row++)
	{
		const int64_t value = (int64_t) (random() % 2000000) - 1000000;
		std::string bytes;

		c.nulls[row] = random() % 10 == 0;
		if (which == DECIMAL2)
			bytes = stored_numeric(row % 3 == 0 ? value * 100000000 : value, 2, row % 7 == 0);
		else if (which == DECIMAL4)
			bytes = stored_numeric(value, 4, row % 5 == 0);
		else
			bytes = random_text(random, which == PATTERN);
		texts->push_back(bytes);
		if (!c.nulls[row])
			put_ref(&c, row, varlena(bytes, random() % 4 != 0));
	}
	return c;
}

/* ---- expressions */

struct TypeCase
{
	const char *name;
	GjKind kind;
	std::vector<GjInstr> code;
};

static GjInstr
load_bytes(uint16_t dst, uint32_t column, GjBytesForm form)
{
	GjInstr i = op(GJ_OP_LOAD_T, dst, dst, dst, column);

	i.n = form;
	return i;
}

static GjInstr
load_decimal(uint16_t dst, uint32_t column, uint32_t scale)
{
	GjInstr i = op(GJ_OP_LOAD_D, dst, dst, dst, column);

	i.n = scale;
	return i;
}

static GjInstr
with(GjInstr i, uint32_t n, int64_t imm)
{
	i.n = n;
	i.imm = imm;
	return i;
}

static GjInstr
text(uint16_t dst)
{
	return load_bytes(dst, TEXT, GJ_BYTES_VARLENA);
}

static GjInstr
pattern(uint16_t dst)
{
	return load_bytes(dst, PATTERN, GJ_BYTES_VARLENA);
}

/* Texts end as hashes: keys have 64 bits. */
static TypeCase
text_case(const char *name, std::vector<GjInstr> code)
{
	code.push_back(op(GJ_OP_HASH_T, 0, 0, 0));
	return {name, GJ_INT8, code};
}

static std::vector<TypeCase>
text_cases(Program *program)
{
	std::vector<TypeCase> cases;
	const GjInstr uuid = load_bytes(0, UUID, GJ_BYTES_FIXED);

	for (uint16_t o = GJ_OP_EQ_T; o <= GJ_OP_GE_T; o++)
	{
		cases.push_back({"compare texts", GJ_BOOL, {text(0), pattern(1), op((GjOp) o, 0, 0, 1)}});
		cases.push_back(
			{"compare a text with a constant",
			 GJ_BOOL,
			 {text(0), with(op(GJ_OP_CONST_T, 1, 1, 1, 0), 3, 0), op((GjOp) o, 0, 0, 1)}});
	}
	cases.push_back(text_case("load", {text(0)}));
	cases.push_back(text_case("uuid", {uuid}));
	cases.push_back(text_case("up to a zero", {load_bytes(0, UUID, GJ_BYTES_CSTRING)}));
	cases.push_back(
		{"uuid = uuid", GJ_BOOL, {uuid, op(GJ_OP_MOVE, 1, 0, 0), op(GJ_OP_EQ_T, 0, 0, 1)}});
	cases.push_back({"IN", GJ_BOOL, {text(0), with(op(GJ_OP_IN_T, 0, 0, 0, 1), 3, 0)}});
	cases.push_back({"IN with NULL", GJ_BOOL, {text(0), with(op(GJ_OP_IN_T, 0, 0, 0, 1), 3, 1)}});
	for (uint32_t utf8 = 0; utf8 < 2; utf8++)
	{
		cases.push_back({"LIKE", GJ_BOOL, {text(0), pattern(1), op(GJ_OP_LIKE, 0, 0, 1, utf8)}});
		cases.push_back({"length", GJ_INT4, {text(0), op(GJ_OP_LENGTH_T, 0, 0, 0, utf8)}});
		for (int64_t at = -3; at <= 6; at += 3)
		{
			cases.push_back(text_case("substring to the end",
									  {text(0), constant(1, at), op(GJ_OP_SUBSTR, 0, 0, 1, utf8)}));
			cases.push_back(text_case("substring", {text(0), constant(1, at), constant(2, 4),
													with(op(GJ_OP_SUBSTR, 0, 0, 1, utf8), 1, 0)}));
			cases.push_back(
				text_case("left", {text(0), constant(1, at), op(GJ_OP_LEFT_T, 0, 0, 1, utf8)}));
			cases.push_back(
				text_case("right", {text(0), constant(1, at), op(GJ_OP_RIGHT_T, 0, 0, 1, utf8)}));
		}
	}
	for (uint32_t sides = 0; sides < 4; sides++)
		cases.push_back(text_case("trim", {text(0), op(GJ_OP_TRIM, 0, 0, 0, sides)}));
	for (uint32_t how = 0; how <= (GJ_KEY_SECOND | GJ_KEY_WHOLE | GJ_KEY_ORDERED); how++)
	{
		cases.push_back({"half of a uuid", GJ_INT8, {uuid, op(GJ_OP_KEY_T, 0, 0, 0, how)}});
		cases.push_back({"half of a text", GJ_INT8, {text(0), op(GJ_OP_KEY_T, 0, 0, 0, how)}});
	}
	cases.push_back({"octets", GJ_INT4, {text(0), op(GJ_OP_OCTETS_T, 0, 0, 0)}});
	cases.push_back(
		{"starts with", GJ_BOOL, {text(0), pattern(1), op(GJ_OP_STARTS_WITH, 0, 0, 1)}});
	cases.push_back(text_case("coalesce", {text(0), pattern(1), op(GJ_OP_COALESCE, 0, 0, 1)}));
	program->constants = {
		0x626161 /* aab */, 3 << 16 | 1, 4 << 16 | 2, 5 << 16 | 0, 0x61, 0x6261, 0};
	return cases;
}

static std::vector<TypeCase>
number_cases(Program *program)
{
	const uint32_t span = (uint32_t) program->constants.size();
	const GjInstr d2 = load_decimal(0, DECIMAL2, 2);
	const GjInstr d4 = load_decimal(1, DECIMAL4, 4);
	std::vector<TypeCase> cases = {
		{"numeric", GJ_INT8, {d2}},
		{"numeric + numeric",
		 GJ_INT8,
		 {d2, d4, with(op(GJ_OP_SCALE_UP, 0, 0, 0), 0, 100), op(GJ_OP_ADD_I, 0, 0, 1, GJ_INT8)}},
		{"numeric * numeric overflows", GJ_INT8, {d2, op(GJ_OP_MUL_I, 0, 0, 0, GJ_INT8)}},
		{"of another scale", GJ_INT8, {load_decimal(0, DECIMAL2, 3)}},
		{"digits", GJ_INT8, {d4, with(op(GJ_OP_DIGITS_D, 1, 1, 1), 0, 10000000)}},
		{"too many digits", GJ_INT8, {d4, with(op(GJ_OP_DIGITS_D, 1, 1, 1), 0, 1000)}},
		{"numeric to float", GJ_FLOAT8, {d4, with(op(GJ_OP_D_TO_F, 1, 1, 1), 0, 10000)}},
		{"float to float4", GJ_FLOAT8, {load(0, FLOAT4), op(GJ_OP_F_TO_F4, 0, 0, 0)}},
		{"guarded load",
		 GJ_INT8,
		 {load(2, BOOLEAN), with(op(GJ_OP_LOAD_D, 0, 2, 2, DECIMAL2), 2, 1)}},
		{"shift left",
		 GJ_INT4,
		 {load(0, INT4), constant(1, 5), op(GJ_OP_SHIFT_LEFT, 0, 0, 1, GJ_INT4)}},
		{"shift right",
		 GJ_INT8,
		 {load(0, INT8), constant(1, 33), op(GJ_OP_SHIFT_RIGHT, 0, 0, 1, GJ_INT8)}},
		{"shift too far",
		 GJ_INT8,
		 {load(0, INT8), constant(1, 64), op(GJ_OP_SHIFT_LEFT, 0, 0, 1, GJ_INT8)}},
		{"not", GJ_INT8, {load(0, INT8), op(GJ_OP_BIT_NOT, 0, 0, 0)}},
		{"pack", GJ_INT8, {load(0, INT4), load(1, DATE), op(GJ_OP_PACK_I, 0, 0, 1)}},
		{"sign", GJ_INT8, {load(0, INT8), op(GJ_OP_SIGN_I, 0, 0, 0)}},
		{"char", GJ_UINT1, {load(0, CHAR)}},
		{"float to integer", GJ_INT4, {load(0, FLOAT8), op(GJ_OP_F_TO_I, 0, 0, 0, GJ_INT4)}},
		{"square root",
		 GJ_FLOAT8,
		 {load(0, FLOAT4), op(GJ_OP_ABS_F, 0, 0, 0), op(GJ_OP_SQRT_F, 0, 0, 0)}},
		{"IF", GJ_INT4, {load(0, INT4), load(1, BOOLEAN), constant(2, 7), op(GJ_OP_IF, 0, 1, 2)}},
		{"coalesce", GJ_INT4, {load(0, INT4), constant(1, 7), op(GJ_OP_COALESCE, 0, 0, 1)}},
		{"null if", GJ_INT4, {load(0, INT4), load(1, BOOLEAN), op(GJ_OP_NULL_IF, 0, 0, 1)}},
		{"add days", GJ_INT4, {load(0, DATE), load(1, INT4), op(GJ_OP_DATE_ADD, 0, 0, 1)}},
		{"days between", GJ_INT4, {load(0, DATE), load(1, INT4), op(GJ_OP_DATE_SUB, 0, 0, 1)}},
		{"date to timestamp", GJ_INT8, {load(0, DATE), op(GJ_OP_DATE_TO_TIMESTAMP, 0, 0, 0)}},
		{"timestamp to date", GJ_INT4, {load(0, TIMESTAMP), op(GJ_OP_TIMESTAMP_TO_DATE, 0, 0, 0)}},
		{"add interval", GJ_INT8, {load(0, TIMESTAMP), op(GJ_OP_ADD_INTERVAL, 0, 0, 0, span)}},
		{"subtract interval",
		 GJ_INT8,
		 {load(0, TIMESTAMP), op(GJ_OP_ADD_INTERVAL, 0, 0, 0, span + 3)}}};

	for (uint32_t rounding = GJ_ROUND_HALF_AWAY; rounding <= GJ_ROUND_CEIL; rounding++)
		cases.push_back({"round numeric",
						 GJ_INT8,
						 {d2, with(op(GJ_OP_SCALE_DOWN, 0, 0, 0, rounding), 0, 100)}});
	for (uint16_t o : {GJ_OP_GREATEST_I, GJ_OP_LEAST_I, GJ_OP_BIT_AND, GJ_OP_BIT_OR, GJ_OP_BIT_XOR})
		cases.push_back(
			{"two integers", GJ_INT8, {load(0, INT4), load(1, INT8), op((GjOp) o, 0, 0, 1)}});
	for (uint16_t o : {GJ_OP_GREATEST_F, GJ_OP_LEAST_F})
		cases.push_back(
			{"two floats", GJ_FLOAT8, {load(0, FLOAT4), load(1, FLOAT8), op((GjOp) o, 0, 0, 1)}});
	for (uint16_t o : {GJ_OP_FLOOR_F, GJ_OP_CEIL_F, GJ_OP_ROUND_F, GJ_OP_TRUNC_F, GJ_OP_SIGN_F})
		cases.push_back({"round float", GJ_FLOAT8, {load(0, FLOAT4), op((GjOp) o, 0, 0, 0)}});
	for (uint32_t field = 0; field < GJ_NFIELDS; field++)
	{
		cases.push_back({"extract from a date",
						 GJ_INT8,
						 {load(0, DATE), op(GJ_OP_EXTRACT_DATE, 0, 0, 0, field)}});
		cases.push_back({"extract from a timestamp",
						 GJ_INT8,
						 {load(0, TIMESTAMP), op(GJ_OP_EXTRACT_TIMESTAMP, 0, 0, 0, field)}});
		cases.push_back(
			{"truncate", GJ_INT8, {load(0, TIMESTAMP), op(GJ_OP_TRUNC_TIMESTAMP, 0, 0, 0, field)}});
	}
	for (int64_t v :
		 {INT64_C(13), INT64_C(-40), INT64_C(3600000001), INT64_C(-25), INT64_C(31), INT64_C(-1)})
		program->constants.push_back(v);
	return cases;
}

static void
test_case(const Device &device, const Program &program, uint32_t e, const char *name,
		  const std::vector<Column> &columns, const std::vector<uint32_t> &rowid)
{
	Queue q(device, program);
	GjView view = q.view(columns, NROWS, {rowid});
	GjKeys keys = {};
	std::vector<int64_t> expected;
	Bytes expected_nulls;
	uint32_t status = eval_on_host(program, e, columns, rowid, NROWS, &expected, &expected_nulls);
	GjStatus result;
	std::vector<int64_t> values;
	Bytes nulls;
	bool ok = true;

	keys.nkeys = 1;
	keys.nrows = NROWS;
	keys.value[0] = (int64_t *) q.alloc(NROWS * sizeof(int64_t));
	keys.null = (uint8_t *) q.alloc(NROWS);
	result = q.ops->columns->keys(q.queue, &view, 0, NROWS, e, &keys);
	if (result == GJ_OK)
		result = q.ops->queues->sync(q.queue);
	if (status != GJ_OK)
	{
		check(result != GJ_OK && result != GJ_DEVICE_LOST && result != GJ_DEVICE_ERROR, "row error",
			  name);
		return;
	}
	if (!check(result == GJ_OK, name, q.ops->queues->queue_error(q.queue)))
		return;
	values = q.download(keys.value[0], NROWS);
	nulls = q.download(keys.null, NROWS);
	for (uint32_t i = 0; i < NROWS; i++)
	{
		ok &= (nulls[i] != 0) == (expected_nulls[i] != 0);
		if (!nulls[i])
			ok &= values[i] == gj_key_bits(expected[i], program.exprs[e].kind == GJ_FLOAT8);
	}
	check(ok, "values", name);
}

/* Some results by other means than gj_eval's. */
static void
test_reference(const Program &program, const std::vector<Column> &columns,
			   const std::vector<std::string> &texts, const std::vector<std::string> &decimals)
{
	std::vector<int64_t> values;
	Bytes nulls;
	Program p = program;
	uint32_t length = p.expr(GJ_INT4, {text(0), op(GJ_OP_OCTETS_T, 0, 0, 0)});
	uint32_t order = p.expr(
		GJ_BOOL, {text(0), with(op(GJ_OP_CONST_T, 1, 1, 1, 0), 3, 0), op(GJ_OP_LT_T, 0, 0, 1)});
	uint32_t decimal = p.expr(GJ_INT8, {load_decimal(0, DECIMAL2, 2)});
	bool ok = true;

	check(eval_on_host(p, length, columns, {}, NROWS, &values, &nulls) == GJ_OK, "reference",
		  "octets");
	for (uint32_t i = 0; i < NROWS; i++)
		ok &= nulls[i] || values[i] == (int64_t) texts[i].size();
	check(eval_on_host(p, order, columns, {}, NROWS, &values, &nulls) == GJ_OK, "reference",
		  "order");
	for (uint32_t i = 0; i < NROWS; i++)
		ok &= nulls[i] || values[i] == (texts[i] < std::string("aab"));
	check(eval_on_host(p, decimal, columns, {}, NROWS, &values, &nulls) == GJ_OK, "reference",
		  "numeric");
	for (uint32_t i = 0; i < NROWS; i++)
		ok &= nulls[i] || stored_numeric(values[i], 2, i % 7 == 0) == decimals[i];
	check(ok, "values", "reference");
	/* 400 years day by day */
	ok = true;
	for (int64_t date = -146097; date < 146097; date++)
	{
		const GjCivil civil = gj_civil(date);
		const GjCivil next = gj_civil(date + 1);

		ok &= gj_date_of(civil) == date;
		ok &= next.day == civil.day + 1
				  ? next.month == civil.month
				  : next.day == 1 && civil.day == gj_days_of_month(civil.year, civil.month);
	}
	check(ok && gj_civil(0).year == 2000 && gj_civil(0).month == 1 && gj_civil(0).day == 1,
		  "civil dates", "reference");
}

void
test_types(const Device &device)
{
	Random random(7);
	std::vector<std::string> texts;
	std::vector<std::string> patterns;
	std::vector<std::string> decimals;
	std::vector<std::string> others;
	std::vector<Column> columns(NCOLUMNS);
	Program program;
	std::vector<TypeCase> cases;
	std::vector<uint32_t> rowid = random_rows(random, NROWS, NROWS);

	columns[TEXT] = ref_column(random, &texts, TEXT);
	columns[PATTERN] = ref_column(random, &patterns, PATTERN);
	columns[DECIMAL2] = ref_column(random, &decimals, DECIMAL2);
	columns[DECIMAL4] = ref_column(random, &others, DECIMAL4);
	columns[UUID] = random_column(random, GJ_BYTES, 16, 0, NROWS, 0.1, 0);
	columns[DATE] = random_column(random, GJ_INT4, 4, 0, NROWS, 0.1, 300000);
	columns[TIMESTAMP] =
		random_column(random, GJ_INT8, 8, 0, NROWS, 0.1, UINT64_C(40000000000000000));
	columns[INT4] = random_column(random, GJ_INT4, 4, 0, NROWS, 0.1, 1000);
	columns[INT8] = random_column(random, GJ_INT8, 8, 0, NROWS, 0.1, 0);
	columns[FLOAT4] = random_column(random, GJ_FLOAT4, 4, 0, NROWS, 0.1, 1000);
	columns[FLOAT8] = random_column(random, GJ_FLOAT8, 8, 0, NROWS, 0.1, 100000);
	columns[BOOLEAN] = random_column(random, GJ_BOOL, 1, 0, NROWS, 0.1, 0);
	columns[CHAR] = random_column(random, GJ_UINT1, 1, 0, NROWS, 0.1, 0);
	/* the bits of integers are tiny floats: make them some of all sizes */
	for (uint32_t i = 0; i < NROWS; i++)
	{
		const float f = (float) ((double) ((int64_t) (random() % 20001) - 10000) / 8);

		memcpy(columns[FLOAT4].data.data() + i * sizeof(f), &f, sizeof(f));
	}
	for (const Column &c : columns)
		program.types.push_back(c.type);
	cases = text_cases(&program);
	for (const TypeCase &c : number_cases(&program))
		cases.push_back(c);
	for (const TypeCase &c : cases)
		program.expr(c.kind, c.code);
	test_reference(program, columns, texts, decimals);
	for (uint32_t e = 0; e < cases.size(); e++)
	{
		test_case(device, program, e, cases[e].name, columns, {});
		test_case(device, program, e, cases[e].name, columns, rowid);
	}
	group(device.ops->name, "types");
}
