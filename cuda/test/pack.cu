/*
 * pack.cu
 *	  Tests of packed columns: measured, packed, unpacked and read.
 */
#include <numeric>
#include <set>

#include "test.cuh"

#include "device/fused_rows.h"

/* How the values of a case are spread. */
struct Spread
{
	const char *name;
	int64_t base;
	uint64_t factor;
	uint64_t most; /* of the multiples of factor */
};

static int64_t
value_of(const Spread &spread, uint64_t u)
{
	return (int64_t) ((uint64_t) spread.base + spread.factor * u);
}

/* The values of a column of a kind, as the device gets it. */
static Column
make_column(GjKind kind, uint32_t width, const std::vector<int64_t> &values,
			const std::vector<uint8_t> &nulls)
{
	Column column = {
		{(uint8_t) kind, (uint8_t) width, 1, 1}, Bytes(values.size() * width), nulls, {}};

	for (size_t i = 0; i < values.size(); i++)
		memcpy(&column.data[i * width], &values[i], width);
	return column;
}

/* What measure should say. */
static GjPacking
expected_packing(const std::vector<int64_t> &values, const std::vector<uint8_t> &nulls)
{
	GjPacking p = {};
	uint64_t factor = 0;

	for (size_t i = 0; i < values.size(); i++)
	{
		if (!nulls.empty() && nulls[i])
			continue;
		if (!p.any)
			p.min = p.max = values[i];
		p.any = true;
		p.min = std::min(p.min, values[i]);
		p.max = std::max(p.max, values[i]);
	}
	for (size_t i = 0; i < values.size(); i++)
		if (nulls.empty() || !nulls[i])
			factor = std::gcd(factor, (uint64_t) values[i] - (uint64_t) p.min);
	p.factor = (int64_t) factor;
	return p;
}

/* One case: values of a spread, a share of them NULL. */
static void
check_spread(const Device &device, Random &random, GjKind kind, uint32_t width,
			 const Spread &spread, uint32_t n, uint32_t nulls_of)
{
	Program program;
	Queue q(device, program);
	const std::string where =
		std::string(spread.name) + ", kind " + std::to_string(kind) + ", " + at(n);
	std::vector<int64_t> values(n);
	std::vector<uint8_t> nulls(nulls_of > 0 ? n : 0);
	std::vector<int64_t> plain(n);

	for (uint32_t i = 0; i < n; i++)
	{
		if (nulls_of > 0)
			nulls[i] = random() % nulls_of == 0;
		/* a NULL has a value that nobody looks at */
		values[i] =
			nulls_of > 0 && nulls[i]
				? INT64_C(0x7777777777777777)
				: value_of(spread, i == 0 ? 0
								   : i == 1
									   ? spread.most
									   : random() % (spread.most + (spread.most != UINT64_MAX)));
	}

	const Column column = make_column(kind, width, values, nulls);
	const GjPacking expected = expected_packing(values, nulls);
	GjPackColumn work = {q.upload_columns({column})[0], NULL, n};
	GjPacking packing;
	void *to = q.alloc((size_t) n * width);
	Bytes back(n * width);

	check(device.ops->columns->measure(q.queue, &work, 1, &packing) == GJ_OK, "measure", where);
	check(packing.any == expected.any, "any", where);
	if (!expected.any)
		return;
	check(packing.min == expected.min && packing.max == expected.max, "least and greatest", where);
	check(packing.factor == expected.factor, "factor", where);

	const GjColumn packed = q.pack(work.from, n);

	if (!packed.packed)
	{
		const uint64_t most = ((uint64_t) expected.max - (uint64_t) expected.min) /
							  (uint64_t) (expected.factor != 0 ? expected.factor : 1);

		check(most > UINT32_MAX || (width <= 4 && most > UINT16_MAX) ||
				  (width <= 2 && most > UINT8_MAX),
			  "what fits is packed", where);
		return;
	}
	work = {packed, to, n};
	check(device.ops->columns->unpack(q.queue, &work, 1) == GJ_OK, "unpack", where);
	q.download_bytes(back.data(), to, back.size());
	for (uint32_t i = 0; i < n; i++)
	{
		if (nulls_of > 0 && nulls[i])
			memset(&plain[i], 0, sizeof(int64_t));
		else
			plain[i] = values[i];
	}
	check(back == make_column(kind, width, plain, {}).data, "unpacked values", where);
}

/* Several columns of different lengths at once. */
static void
check_together(const Device &device, Random &random)
{
	Program program;
	Queue q(device, program);
	std::vector<Column> columns;
	std::vector<GjPackColumn> work;
	std::vector<GjPacking> packing;
	const uint32_t n[] = {1, 70000, 0, 8192, 33};

	for (uint32_t i = 0; i < 5; i++)
		columns.push_back(random_column(random, GJ_INT8, 8, 1, n[i], i == 3 ? 0.5 : 0, 200));
	for (uint32_t i = 0; i < 5; i++)
		work.push_back({q.upload_columns({columns[i]})[0], NULL, n[i]});
	packing.resize(5);
	check(device.ops->columns->measure(q.queue, work.data(), 5, packing.data()) == GJ_OK, "measure",
		  "together");
	for (uint32_t i = 0; i < 5; i++)
	{
		std::vector<int64_t> values(n[i]);

		for (uint32_t r = 0; r < n[i]; r++)
			values[r] = columns[i].value(r);
		const GjPacking expected = expected_packing(values, columns[i].nulls);

		check(packing[i].any == expected.any &&
				  (!expected.any ||
				   (packing[i].min == expected.min && packing[i].max == expected.max &&
					packing[i].factor == expected.factor)),
			  "of several columns", at(n[i]));
	}
}

/* What number_values says of texts, of which there are `different` ones. */
static void
check_values(const Device &device, Random &random, uint32_t n, uint32_t different,
			 uint32_t nulls_of, bool held)
{
	Program program;
	Queue q(device, program);
	const uint32_t most = std::max(n / 4, 1u);
	const std::string where = at(n) + ", of " + std::to_string(different);
	Column column = {{GJ_REF, 8, 1, 1}, Bytes((size_t) n * 8), {}, {}};
	std::vector<std::string> texts(n);
	std::set<std::string> expected;
	uint32_t nvalues;

	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t which = (uint32_t) (random() % different);
		const size_t offset = column.heap.size();
		uint64_t ref;

		/* lengths that differ in zeros alone, and bytes behind the end that do not count */
		texts[i] = std::to_string(which / 3) + std::string(which % 3, '\0');
		column.heap.resize(offset + (texts[i].size() + 7) / 8 * 8, (uint8_t) random());
		memcpy(&column.heap[offset], texts[i].data(), texts[i].size());
		ref = gj_ref_make(offset, texts[i].size());
		if (held && i == n / 2)
			ref = gj_ref_make(17, GJ_REF_HELD);
		if (nulls_of > 0)
			column.nulls.push_back(random() % nulls_of == 0);
		if (nulls_of > 0 && column.nulls[i])
			ref = UINT64_C(0x7777777777777777);
		else
			expected.insert(texts[i]);
		memcpy(&column.data[(size_t) i * 8], &ref, 8);
	}

	const GjColumn d = q.upload_refs(column);
	uint32_t *number = (uint32_t *) q.alloc((size_t) n * 4);
	uint64_t *value = (uint64_t *) q.alloc((size_t) most * 8);

	check(device.ops->columns->number_values(q.queue, &d, n, most, number, value, &nvalues) ==
			  GJ_OK,
		  "number_values", where);
	if ((held && !(nulls_of > 0 && column.nulls[n / 2])) || expected.size() > most)
	{
		check(nvalues == most + 1, "too many values", where);
		return;
	}
	check(nvalues == std::max(expected.size(), (size_t) 1), "number of values", where);

	const std::vector<uint32_t> numbers = q.download(number, n);
	const std::vector<uint64_t> values = q.download(value, nvalues);
	bool same = expected.size() > 0 || values[0] == 0;

	for (uint32_t i = 0; i < n; i++)
	{
		if (nulls_of > 0 && column.nulls[i])
			same &= numbers[i] == 0;
		else
			same &= numbers[i] < nvalues &&
					texts[i] == std::string((const char *) column.heap.data() +
												gj_ref_offset(values[numbers[i]]),
											gj_ref_length(values[numbers[i]]));
	}
	check(same, "numbers and values", where);
}

/* A load that begins a question of so many more instructions, whose result is in register b. */
static GjInstr
question(uint32_t number, uint32_t skips, uint16_t b)
{
	GjInstr instr = load(0, 0);

	instr.op = GJ_OP_LOAD_T;
	instr.n = GJ_BYTES_FIXED;
	instr.b = b;
	instr.imm = gj_question_imm(0, number, skips);
	return instr;
}

/* "1" at constants[0]. */
static GjInstr
text_constant(bool null)
{
	GjInstr instr = op(GJ_OP_CONST_T, 1, 1, 1, 0);

	instr.n = 1;
	instr.imm = null;
	return instr;
}

/* Positions of what select lets through. */
static std::vector<uint32_t>
selected(Queue &q, const GjColumn &column, uint32_t n, uint32_t e)
{
	GjView view = {};
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t) + 4);
	uint32_t m = 0;

	view.nrows = n;
	check(q.ops->columns->set_columns(q.queue, &column, 1, &view.columns) == GJ_OK, "set_columns",
		  at(n));
	check(q.ops->columns->select(q.queue, &view, e, positions, &m) == GJ_OK, "select", at(n));
	return q.download(positions, m);
}

/* Rows that the fused operator lets through by the answers to a question. */
static uint64_t
counted(Queue &q, const GjColumn &column, uint32_t n, uint8_t number)
{
	GjFusedPlan plan = {};
	GjFusedPart part = {&column, n};
	GjAggState state = {};

	plan.ncolumns = plan.nprobe_columns = 1;
	plan.naggregates = plan.nexprs = plan.nterms = 1;
	plan.aggregate_op[0] = GJ_AGG_COUNT_STAR;
	plan.filter.form = GJ_FUSED_ALL_TERMS;
	plan.filter.n = 1;
	plan.terms[0].form = GJ_FUSED_ANSWER;
	plan.terms[0].op = GJ_OP_LOAD;
	plan.terms[0].arg = number;
	plan.terms[0].b = -1;
	check(q.ops->pass->fused(q.queue, &plan, &column, &part, 1, 0, NULL, NULL) == GJ_OK, "fused",
		  at(n));
	check(q.ops->groups->aggregate_read(q.queue, &state) == GJ_OK, "aggregate_read", at(n));
	return (uint64_t) state.count;
}

/* Questions about texts of which there are `different` ones: answered, and row by row. */
static void
check_answers(const Device &device, Random &random, uint32_t n, uint32_t different,
			  uint32_t nulls_of)
{
	Program program;
	Column column = {{GJ_REF, 8, 1, 0}, Bytes((size_t) n * 8), {}, {}};
	std::vector<uint32_t> expected[2];
	std::vector<GjQuestion> questions;

	program.types = {column.type};
	program.aggregates = {{GJ_AGG_COUNT_STAR, -1}};
	program.constants = {'1'};
	program.expr(GJ_BOOL, {question(0, 2, 0), text_constant(false), op(GJ_OP_EQ_T, 0, 0, 1)});
	program.expr(GJ_BOOL, {question(1, 3, 2), text_constant(false), op(GJ_OP_STARTS_WITH, 2, 0, 1),
						   op(GJ_OP_NOT, 2, 2, 2)});
	program.expr(GJ_BOOL, {question(0, 2, 0), text_constant(true), op(GJ_OP_EQ_T, 0, 0, 1)});
	for (uint32_t e = 0; e < 3; e++)
		questions.push_back({program.exprs[e].first, program.exprs[e].nregisters});
	for (uint32_t i = 0; i < n; i++)
	{
		const std::string text = std::to_string(random() % different);
		const bool null = nulls_of > 0 && random() % nulls_of == 0;
		const uint64_t ref = gj_ref_make(column.heap.size(), text.size());

		column.heap.resize(column.heap.size() + 8);
		memcpy(&column.heap[gj_ref_offset(ref)], text.data(), text.size());
		memcpy(&column.data[(size_t) i * 8], &ref, 8);
		if (nulls_of > 0)
			column.nulls.push_back(null);
		if (!null && text == "1")
			expected[0].push_back(i);
		if (!null && text[0] != '1')
			expected[1].push_back(i);
	}

	Queue q(device, program);
	GjColumn d = q.pack_refs(q.upload_refs(column), n, column.heap.size());

	if (!check(d.packed != 0, "codes", at(n)))
		return;
	for (uint32_t e = 0; e < 2; e++)
		check(selected(q, d, n, e) == expected[e], "row by row", at(n));

	uint8_t *answers = (uint8_t *) q.alloc((size_t) d.factor);
	const GjAsked asked[2] = {{d, 0, 0, 2, answers},
							  {d, 0, 2, 1, (uint8_t *) q.alloc((size_t) d.factor)}};
	uint8_t known[2] = {7, 7};

	check(q.ops->columns->answer(q.queue, questions.data(), 3, asked, 2, known) == GJ_OK, "answer",
		  at(n));
	check(known[0] == 1, "answers are known", at(n));
	check(known[1] == 0, "a NULL is no answer", at(n));
	d.answers = answers;
	for (uint32_t e = 0; e < 2; e++)
	{
		check(selected(q, d, n, e) == expected[e], "by answers", at(n));
		Queue other(device, program);
		check(counted(other, d, n, (uint8_t) e) == expected[e].size(), "fused, by answers", at(n));
	}
}

void
test_pack(const Device &device)
{
	static const Spread wide[] = {
		{"all alike", -17, 1, 0},
		{"one byte", -100, 1, 255},
		{"one byte and one", -100, 1, 256},
		{"two bytes", INT64_MIN, 1, 65535},
		{"two bytes and one", 0, 1, 65536},
		{"four bytes", INT64_MAX - UINT32_MAX, 1, UINT32_MAX},
		{"four bytes and one", -1, 1, UINT64_C(1) << 32},
		{"hundreds", 100, 100, 49},
		{"microseconds", -INT64_C(86400000000) * 7, 86400000000, 40000},
		{"the ends", INT64_MIN, UINT64_MAX, 1},
		{"everything", INT64_MIN, 1, UINT64_MAX},
	};
	static const Spread narrow[] = {
		{"all alike", -17, 1, 0},
		{"one byte", -100, 1, 255},
		{"one byte and one", -100, 1, 256},
		{"two bytes", INT32_MIN, 1, 65535},
		{"all of them", INT32_MIN, 1, UINT32_MAX},
		{"days of months", 0, 28, 400},
	};
	static const Spread small[] = {
		{"one byte", INT16_MIN, 1, 255},
		{"all of them", INT16_MIN, 1, UINT16_MAX},
		{"multiples", -300, 20, 30},
	};
	Random random(11);

	for (uint32_t n : sizes)
	{
		if (n == 0)
			continue;
		for (uint32_t nulls_of : {0, 1, 3})
		{
			for (const Spread &spread : wide)
				check_spread(device, random, GJ_INT8, 8, spread, n, nulls_of);
			for (const Spread &spread : narrow)
				check_spread(device, random, GJ_INT4, 4, spread, n, nulls_of);
			check_spread(device, random, GJ_UINT4, 4, {"oids", 3000000000, 1, 200}, n, nulls_of);
			for (const Spread &spread : small)
				check_spread(device, random, GJ_INT2, 2, spread, n, nulls_of);
		}
	}
	check_together(device, random);
	for (uint32_t n : sizes)
	{
		if (n == 0)
			continue;
		for (uint32_t different : {1u, 3u, 200u, n / 5 + 1, 2 * n})
			for (uint32_t nulls_of : {0, 1, 3})
				check_values(device, random, n, different, nulls_of, false);
		check_values(device, random, n, 3, 0, true);
	}
	for (uint32_t n : sizes)
	{
		if (n == 0)
			continue;
		/* codes of one byte, and of two */
		for (uint32_t different : {2u, 25u, 3000u})
			for (uint32_t nulls_of : {0, 3})
				check_answers(device, random, n, different, nulls_of);
	}
	group(device.ops->name, "pack");
}
