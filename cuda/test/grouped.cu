/*
 * grouped.cu
 *	  Tests of the fused operator with few groups of rows without joins, which a GPU has a kernel
 *	  of its own for: keys that are codes of dictionaries, packed integers and bytes, with NULLs,
 *	  with several codes of one group, with other codes in each part; products that share a
 *	  beginning, sums of products, sums of one word and of two; ranges and answers; groups that are
 *	  not known; rows that end anywhere and are not aligned; and values that may overflow, or are
 *	  not packed, where it is not taken.
 */
#include <algorithm>
#include <map>
#include <set>

#include "rows/aggregate.h"
#include "device/fused_rows.h"
#include "../internal.cuh"
#include "test.cuh"

enum
{
	TEXT,
	BYTE,
	SMALL,
	PLAIN,
	PRICE,
	WIDE,
	DAY,
	NCOLUMNS
};

#define FIRST_NUMBER SMALL
#define NQUESTION 3

struct GroupedTest
{
	Random &random;
	uint32_t n;
	std::vector<Column> columns;
	Program program;
	GjFusedPlan plan = {};
	std::vector<int32_t> keys;   /* their columns */
	bool asks;                   /* a filter is an answer */
	bool packs;                  /* prices are packed */
	std::vector<uint32_t> first; /* row of each part, and behind the last one */
	std::vector<std::vector<GjColumn>> part;
	Bytes passes;                           /* rows, by the answers of their parts */
	std::map<std::string, uint32_t> number; /* of known groups, by name */
	std::vector<uint32_t> known;            /* a row of each */
	std::string where;

	GroupedTest(Random &random, uint32_t n, uint32_t ntexts);
	Column texts(uint32_t ntexts, double null_rate);
	GjFusedExpr any_value();
	GjFusedExpr any_products();
	void make_plan();
	void make_parts(Queue &q);
	GjColumn part_column(Queue &q, uint32_t c, uint32_t from, uint32_t end);
	std::string name(uint32_t row) const;
	GjGroups make_groups(Queue &q);
	__int128 operand(int32_t column, int64_t constant, uint32_t row) const;
	bool evaluate(const GjFusedExpr &e, uint32_t row, int64_t *value) const;
	bool take(uint32_t row) const;
	bool expect(std::vector<std::vector<GjAggState>> *states,
				std::vector<std::multiset<std::string>> *missed, uint64_t *count) const;
	std::string missed_values(int64_t price, bool null, uint8_t byte) const;
	bool same_missed(Queue &q, const GjFusedMissed &missed,
					 const std::vector<std::multiset<std::string>> &expected) const;
	void run(const Device &device);
};

/* Some texts, each of which is stored in several ways: with short and long headers, and blanks. */
Column
GroupedTest::texts(uint32_t ntexts, double null_rate)
{
	Column c = random_column(random, GJ_INT8, 8, 0, n, null_rate, 0);
	std::vector<uint64_t> ref;

	c.type.kind = GJ_REF;
	for (uint32_t i = 0; i < ntexts; i++)
	{
		const std::string bytes = "text " + std::to_string(i) + std::string(random() % 2, ' ');

		for (uint32_t way = 0; way < 1 + (random() % 4 == 0); way++)
		{
			const size_t offset = c.heap.size();
			const uint32_t header = way == 0 ? 1 : 4;
			const uint32_t length = header + (uint32_t) bytes.size();
			const uint32_t word = way == 0 ? length << 1 | 1 : length << 2;

			c.heap.resize(offset + ((length + 7) & ~7u));
			memcpy(c.heap.data() + offset, &word, header);
			memcpy(c.heap.data() + offset + header, bytes.data(), bytes.size());
			ref.push_back(gj_ref_make(offset, length));
		}
	}
	for (uint32_t row = 0; row < n; row++)
	{
		const uint64_t r = c.null(row) ? 0 : ref[random() % ref.size()];

		memcpy(&c.data[row * sizeof(r)], &r, sizeof(r));
	}
	return c;
}

/* Moves the values of a column of int8. */
static void
scale(Column *column, int64_t factor, int64_t base)
{
	for (size_t at = 0; at < column->data.size(); at += sizeof(int64_t))
	{
		int64_t value;

		memcpy(&value, &column->data[at], sizeof(value));
		value = base + factor * value;
		memcpy(&column->data[at], &value, sizeof(value));
	}
}

GroupedTest::GroupedTest(Random &r, uint32_t nrows, uint32_t ntexts)
	: random(r), n(nrows), asks(random() % 4 == 0), packs(random() % 8 != 0)
{
	/* in bytes, a short header's text is at most 127 long; answers are not asked about NULL */
	columns.push_back(texts(ntexts, !asks && random() % 2 ? 0.1 : 0.0));
	columns.push_back(random_column(random, GJ_BYTES, 1, 0, n, random() % 2 ? 0.1 : 0.0, 0));
	for (uint8_t &byte : columns[BYTE].data)
		byte = (uint8_t) (byte % 3 - 1);
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, random() % 2 ? 5 : 200));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, random() % 4 ? 30000 : 0));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.0, 10000000));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.0, 1000));
	scale(&columns[WIDE], 3, random() % 2 ? INT64_C(1) << 40 : -7);
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, 2500));
	for (const Column &c : columns)
		program.types.push_back(c.type);
	for (uint32_t a = 0; a < GJ_FUSED_AGGREGATES; a++)
		program.aggregates.push_back(
			{GJ_AGG_SUM_I, (int32_t) program.expr(GJ_INT8, {load(0, PRICE)})});
	make_plan();
}

GjFusedExpr
GroupedTest::any_value()
{
	static const uint8_t ops[] = {GJ_OP_LOAD, GJ_OP_LOAD, GJ_OP_ADD_I, GJ_OP_SUB_I, GJ_OP_MUL_I};
	GjFusedExpr e = {};

	e.form = GJ_FUSED_SIMPLE;
	e.op = ops[random() % 5];
	e.a = (int16_t) (FIRST_NUMBER + random() % (NCOLUMNS - FIRST_NUMBER));
	e.b = -1;
	e.constant = random() % 20 ? (int64_t) (random() % 100) - 50 : INT64_MAX - 1000;
	e.arg = GJ_INT8;
	if (e.op != GJ_OP_LOAD && random() % 2)
		e.b = (int16_t) (FIRST_NUMBER + random() % (NCOLUMNS - FIRST_NUMBER));
	else if (e.op != GJ_OP_LOAD && random() % 2)
		std::swap(e.a, e.b);
	/* of many values one overflows */
	if (random() % 32 == 0)
	{
		e.op = GJ_OP_MUL_I;
		e.a = e.b = random() % 2 ? PLAIN : PRICE;
	}
	if (e.op != GJ_OP_LOAD && e.a >= 0 && e.b >= 0 && columns[e.a].type.kind == GJ_INT4 &&
		columns[e.b].type.kind == GJ_INT4 && random() % 2)
		e.arg = GJ_INT4;
	return e;
}

/* price * (100 - small) * (100 + day), or some of it, or such products added. */
GjFusedExpr
GroupedTest::any_products()
{
	static const int16_t column[] = {PRICE, SMALL, DAY, PLAIN, WIDE};
	GjFusedExpr e = {};
	bool start = true;
	uint32_t k = 0;

	e.form = GJ_FUSED_PRODUCTS;
	e.expr = plan.nfactors;
	/* the third power of a price overflows */
	if (random() % 32 == 0 && plan.nfactors + 3 <= GJ_FUSED_FACTORS)
	{
		for (int join : {GJ_OP_ADD_I, GJ_OP_MUL_I, GJ_OP_MUL_I})
			plan.factors[plan.nfactors++] = {(uint8_t) join, GJ_OP_LOAD, 0, PRICE, 0};
		e.arg = 3;
		return e;
	}
	while (plan.nfactors < GJ_FUSED_FACTORS && (start || k < 1 + random() % 4))
	{
		GjFusedFactor &f = plan.factors[plan.nfactors++];

		f.join = (uint8_t) (e.arg == 0     ? GJ_OP_ADD_I
							: !start       ? GJ_OP_MUL_I
							: random() % 2 ? GJ_OP_ADD_I
										   : GJ_OP_SUB_I);
		f.column = random() % 8 ? column[k % 5] : (int16_t) (random() % 2 ? PLAIN : -1);
		f.op = (uint8_t) (f.column < 0 || k == 0 ? GJ_OP_LOAD : k == 1 ? GJ_OP_SUB_I : GJ_OP_ADD_I);
		f.constant = random() % 30 ? 100 : INT64_MAX - 50;
		e.arg++;
		start = false;
		if (++k > random() % 4 && random() % 3 == 0)
		{
			start = random() % 2 && e.arg < 6;
			k = 0;
			if (!start)
				break;
		}
	}
	return e;
}

void
GroupedTest::make_plan()
{
	static const uint32_t ops[] = {GJ_AGG_COUNT_STAR, GJ_AGG_COUNT, GJ_AGG_SUM_I, GJ_AGG_SUM_I,
								   GJ_AGG_SUM_I};
	const uint32_t nranges = (uint32_t) (random() % 3);

	plan.ncolumns = plan.nprobe_columns = NCOLUMNS;
	plan.naggregates = (uint8_t) (random() % (GJ_FUSED_AGGREGATES + 1));
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const bool same = a > 0 && random() % 4 == 0;

		plan.aggregate_op[a] = (uint8_t) ops[random() % 5];
		plan.aggregate_expr[a] = same ? plan.aggregate_expr[a - 1] : plan.nexprs;
		if (!same)
			plan.exprs[plan.nexprs++] =
				random() % 2 && plan.nfactors < GJ_FUSED_FACTORS ? any_products() : any_value();
		if (plan.aggregate_op[a] == GJ_AGG_COUNT_STAR && !same)
			plan.exprs[plan.nexprs - 1] = {};
		/* what has no argument is counted */
		if (plan.exprs[plan.aggregate_expr[a]].form == GJ_FUSED_NONE)
			plan.aggregate_op[a] = GJ_AGG_COUNT_STAR;
	}
	/* now and then so many combinations that another kernel takes them */
	switch (random() % 8)
	{
		case 0:
			keys = {TEXT, BYTE, SMALL};
			break;
		case 1:
			keys = {BYTE};
			break;
		case 2:
			keys = {SMALL};
			break;
		case 3:
			keys = {TEXT, BYTE};
			break;
		case 4:
			keys = {SMALL, TEXT};
			break;
		default:
			keys = {TEXT};
	}
	for (int32_t c : keys)
	{
		GjFusedExpr &e = plan.exprs[plan.nexprs];

		plan.group_how[plan.ngroup_keys] = (uint8_t) (c == SMALL     ? GJ_GROUP_INTEGER
													  : c == BYTE    ? GJ_GROUP_FIXED
													  : random() % 2 ? GJ_GROUP_TEXT
																	 : GJ_GROUP_PADDED);
		plan.group_expr[plan.ngroup_keys++] = plan.nexprs++;
		e.form = GJ_FUSED_SIMPLE;
		e.op = GJ_OP_LOAD;
		e.a = (int16_t) c;
		e.b = -1;
	}
	for (uint32_t k = 0; k < nranges; k++)
	{
		static const int16_t of[] = {DAY, PLAIN, WIDE, PRICE};
		GjFusedExpr &term = plan.terms[plan.nterms++];

		term.form = GJ_FUSED_RANGE;
		term.op = GJ_OP_LOAD;
		term.a = of[random() % 4];
		term.b = -1;
		term.constant = random() % 2 ? INT64_MIN : -(int64_t) (random() % 900);
		term.high = random() % 2 ? INT64_MAX : (INT64_C(1) << 40) + (int64_t) (random() % 1500);
	}
	if (asks)
	{
		GjFusedExpr &term = plan.terms[plan.nterms++];

		term.form = GJ_FUSED_ANSWER;
		term.op = GJ_OP_LOAD;
		term.arg = NQUESTION;
		term.a = TEXT;
		term.b = -1;
	}
	plan.filter.form = (uint8_t) (plan.nterms > 0 ? GJ_FUSED_ALL_TERMS : GJ_FUSED_NONE);
	plan.filter.n = plan.nterms;
}

/* Rows from .. end-1 of a column, packed where it can be, in memory that may not be aligned. */
GjColumn
GroupedTest::part_column(Queue &q, uint32_t c, uint32_t from, uint32_t end)
{
	const Column &host = columns[c];
	const uint32_t before = std::min((uint32_t) (random() % 4 ? 0 : random() % 3), from);
	const uint32_t nrows = end - from + before;
	const size_t width = host.type.width;
	GjColumn d = {};

	from -= before;
	d.data = q.upload(Bytes(host.data.begin() + from * width, host.data.begin() + end * width));
	if (!host.nulls.empty())
		d.nulls = q.upload(Bytes(host.nulls.begin() + from, host.nulls.begin() + end));
	d.heap = host.heap.empty() ? NULL : q.upload(host.heap);
	d.kind = host.type.kind;
	d.width = host.type.width;
	if (d.kind == GJ_REF && nrows > 0)
		d = q.pack_refs(d, nrows, host.heap.size());
	else if (c != PLAIN && gj_kind_packs(d.kind) && nrows > 0 && (c != PRICE || packs))
		d = q.pack(d, nrows);
	gj_column_skip(&d, before);
	return d;
}

void
GroupedTest::make_parts(Queue &q)
{
	first = {0, n / 3 + 1, n / 3 + 1, n / 2, n};
	for (uint32_t &row : first)
		row = std::min(row, n);
	std::sort(first.begin(), first.end());
	passes.assign(n, 1);
	for (uint32_t p = 0; p + 1 < first.size(); p++)
	{
		const uint32_t nrows = first[p + 1] - first[p];

		part.emplace_back();
		for (uint32_t c = 0; c < NCOLUMNS; c++)
			part[p].push_back(part_column(q, c, first[p], first[p + 1]));
		if (!asks || nrows == 0)
			continue;

		/* others of each part, whose codes are others as well */
		GjColumn &text = part[p][TEXT];
		const Bytes answers = [&]
		{
			Bytes bytes((size_t) text.factor);

			for (uint8_t &byte : bytes)
				byte = (uint8_t) random();
			return bytes;
		}();
		const Bytes codes = q.download((const uint8_t *) text.data, (size_t) nrows * text.packed);

		text.answers = q.upload(answers);
		for (uint32_t i = 0; i < nrows; i++)
		{
			const uint32_t code =
				text.packed == 1 ? codes[i] : codes[i * 2] | (uint32_t) codes[i * 2 + 1] << 8;

			passes[first[p] + i] = answers[code] >> NQUESTION & 1;
		}
	}
}

/* What rows of one group have in common. */
std::string
GroupedTest::name(uint32_t row) const
{
	std::string name;

	for (uint32_t k = 0; k < keys.size(); k++)
	{
		const Column &c = columns[keys[k]];

		if (c.null(row))
			name += "NULL;";
		else if (keys[k] == TEXT)
		{
			const GjPayload payload =
				gj_group_payload(c.heap.data(), c.ref(row), plan.group_how[k]);

			name += std::string((const char *) payload.bytes, payload.nbytes) + ";";
		}
		else
			name += std::to_string(keys[k] == BYTE ? (int8_t) c.data[row] : c.value(row)) + ";";
	}
	return name;
}

/* Most groups, without a tuple as yet. */
GjGroups
GroupedTest::make_groups(Queue &q)
{
	const uint32_t m = (uint32_t) known.size();
	const size_t heap_size = m * 32; /* a text has no more than that */
	std::vector<uint32_t> null(m);
	GjGroups groups = {};
	GjGroupRows tuples;
	uint64_t nbytes = 0;

	groups.rows.nkeys = (uint32_t) keys.size();
	memcpy(groups.rows.how, plan.group_how, keys.size());
	tuples = groups.rows;
	tuples.nrows = m;
	groups.heap = (uint8_t *) q.alloc(heap_size + 8);
	for (uint32_t k = 0; k < keys.size(); k++)
	{
		const Column &c = columns[keys[k]];
		std::vector<int64_t> value(m);

		for (uint32_t i = 0; i < m; i++)
		{
			null[i] |= (uint32_t) c.null(known[i]) << k;
			if (!c.null(known[i]))
				value[i] = keys[k] == TEXT   ? (int64_t) c.ref(known[i])
						   : keys[k] == BYTE ? (int8_t) c.data[known[i]]
											 : c.value(known[i]);
		}
		tuples.value[k] = q.upload(value);
		tuples.heap[k] = keys[k] == TEXT ? q.upload(c.heap) : NULL;
		groups.rows.heap[k] = keys[k] == TEXT ? groups.heap : NULL;
		if (keys[k] == TEXT)
			groups.heap_end = (uint64_t *) q.alloc((size_t) m * 8 + 8);
	}
	tuples.null = q.upload(null);
	check(add_groups(q, tuples, 2 * (uint64_t) m + 64, GJ_FUSED_AGGREGATES, groups, &nbytes) ==
				  GJ_OK &&
			  groups.rows.nrows == m && nbytes <= heap_size,
		  "groups", where);
	return groups;
}

__int128
GroupedTest::operand(int32_t column, int64_t constant, uint32_t row) const
{
	return column < 0 ? constant : columns[column].value(row);
}

static bool
fits(__int128 x)
{
	return x == (int64_t) x;
}

/* False: it overflows. */
bool
GroupedTest::evaluate(const GjFusedExpr &e, uint32_t row, int64_t *value) const
{
	__int128 sum = 0;
	__int128 product = 0;
	bool minus = false;

	if (e.form == GJ_FUSED_SIMPLE)
	{
		const __int128 a = operand(e.a, e.constant, row);
		const __int128 b = operand(e.b, e.constant, row);

		sum = e.op == GJ_OP_LOAD    ? a
			  : e.op == GJ_OP_ADD_I ? a + b
			  : e.op == GJ_OP_SUB_I ? a - b
									: a * b;
		*value = (int64_t) sum;
		return e.op != GJ_OP_LOAD && e.arg == GJ_INT4 ? sum == (int32_t) sum : fits(sum);
	}
	for (uint32_t k = 0; k < e.arg; k++)
	{
		const GjFusedFactor &f = plan.factors[e.expr + k];
		__int128 x = operand(f.column, f.constant, row);

		x = f.op == GJ_OP_ADD_I ? f.constant + x : f.op == GJ_OP_SUB_I ? f.constant - x : x;
		if (f.join == GJ_OP_MUL_I)
			product *= fits(x) ? x : 0;
		else
		{
			sum += minus ? -product : product;
			product = x;
			minus = f.join == GJ_OP_SUB_I;
		}
		if (!fits(x) || !fits(product) || !fits(sum))
			return false;
	}
	sum += minus ? -product : product;
	*value = (int64_t) sum;
	return fits(sum);
}

bool
GroupedTest::take(uint32_t row) const
{
	for (uint32_t k = 0; k < plan.nterms; k++)
	{
		const GjFusedExpr &term = plan.terms[k];

		if (term.form == GJ_FUSED_ANSWER ? !passes[row]
										 : columns[term.a].value(row) < term.constant ||
											   columns[term.a].value(row) > term.high)
			return false;
	}
	return true;
}

std::string
GroupedTest::missed_values(int64_t price, bool null, uint8_t byte) const
{
	return std::to_string(price) + (null ? " NULL" : " " + std::to_string(byte));
}

/*
 * States of known groups; of others, for each part and behind it for all together, their rows, or
 * values of theirs.  False: some value overflows.
 */
bool
GroupedTest::expect(std::vector<std::vector<GjAggState>> *states,
					std::vector<std::multiset<std::string>> *missed, uint64_t *count) const
{
	bool over = false;

	for (uint32_t p = 0; p + 1 < first.size(); p++)
		for (uint32_t row = first[p]; row < first[p + 1]; row++)
		{
			uint32_t g;

			if (!take(row))
				continue;
			++*count;
			g = number.at(name(row));
			if (g == UINT32_MAX)
			{
				(*missed)[p].insert(std::to_string(row - first[p]));
				missed->back().insert(missed_values(
					columns[PRICE].value(row), columns[BYTE].null(row), columns[BYTE].data[row]));
				continue;
			}
			for (uint32_t a = 0; a < plan.naggregates; a++)
			{
				int64_t value = 0;

				if (plan.exprs[plan.aggregate_expr[a]].form != GJ_FUSED_NONE &&
					plan.aggregate_op[a] != GJ_AGG_COUNT_STAR)
					over |= !evaluate(plan.exprs[plan.aggregate_expr[a]], row, &value);
				gj_agg_step(plan.aggregate_op[a], &(*states)[a][g], value);
			}
		}
	return !over;
}

bool
GroupedTest::same_missed(Queue &q, const GjFusedMissed &missed,
						 const std::vector<std::multiset<std::string>> &expected) const
{
	std::multiset<std::string> found;

	if (missed.together)
	{
		const uint32_t m = missed.n[0];
		const std::vector<uint8_t> price = q.download(missed.data[PRICE], (size_t) m * 8);
		const std::vector<uint8_t> byte = q.download(missed.data[BYTE], m);
		const std::vector<uint8_t> null = q.download(missed.nulls[BYTE], m);

		for (uint32_t i = 0; i < m; i++)
		{
			int64_t value;

			memcpy(&value, &price[i * 8], sizeof(value));
			found.insert(missed_values(value, null[i] != 0, byte[i]));
		}
		return found == expected.back();
	}
	for (uint32_t p = 0; p + 1 < first.size(); p++)
	{
		found.clear();
		if (missed.first[p] != first[p])
			return false;
		for (uint32_t row : q.download(missed.rowid[0] + first[p], missed.n[p]))
			found.insert(std::to_string(row));
		if (found != expected[p])
			return false;
	}
	return true;
}

void
GroupedTest::run(const Device &under_test)
{
	Queue q(under_test, program);
	std::vector<GjFusedPart> parts;
	std::vector<GjColumn> none(NCOLUMNS);
	std::vector<std::vector<GjAggState>> expected;
	std::vector<std::multiset<std::string>> expected_missed;
	const uint32_t known_rate = random() % 2 ? 8 : UINT32_MAX;
	GjFusedMissed missed = {};
	uint64_t found[GJ_FUSED_STEPS + 1];
	uint64_t count = 0;
	GjGroups groups;
	GjStatus status;
	bool same = true;
	bool ok;

	make_parts(q);
	for (uint32_t p = 0; p < part.size(); p++)
		parts.push_back({part[p].data(), first[p + 1] - first[p]});
	for (uint32_t row = 0; row < n; row++)
	{
		const std::string group = name(row);

		if (number.count(group))
			continue;
		number[group] = random() % known_rate == 0 ? UINT32_MAX : (uint32_t) known.size();
		if (number[group] != UINT32_MAX)
			known.push_back(row);
	}
	where = "n = " + std::to_string(n) + ", keys " + std::to_string(keys.size()) + ", groups " +
			std::to_string(known.size()) + ", aggregates " + std::to_string(plan.naggregates) +
			", terms " + std::to_string(plan.nterms);
	expected.assign(GJ_FUSED_AGGREGATES, std::vector<GjAggState>(known.size()));
	expected_missed.resize(part.size() + 1);
	ok = expect(&expected, &expected_missed, &count);
	groups = make_groups(q);
	missed.together = random() % 2;
	if (missed.together)
		for (uint32_t c : {(uint32_t) PRICE, (uint32_t) BYTE})
		{
			missed.data[c] = (uint8_t *) q.alloc((size_t) n * columns[c].type.width + 8);
			missed.nulls[c] = (uint8_t *) q.alloc((size_t) n + 8);
		}
	else
		missed.rowid[0] = (uint32_t *) q.alloc((size_t) n * 4 + 4);
	status = q.ops->pass->fused(q.queue, &plan, none.data(), parts.data(), (uint32_t) parts.size(),
								UINT64_MAX, &groups, &missed);
	if (status == GJ_OK)
		status = q.ops->groups->group_finish(q.queue, &groups);
	if (status == GJ_OK)
		status = q.ops->queues->sync(q.queue);
	if (!check(status == (ok ? GJ_OK : GJ_OVERFLOW), "status", where) || !ok)
		return;
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const std::vector<GjAggState> states = q.download(groups.state[a], known.size());

		for (uint32_t g = 0; g < known.size(); g++)
		{
			const GjAggState &x = states[g];
			const GjAggState &y = expected[a][g];

			same &= x.count == y.count && (plan.aggregate_op[a] != GJ_AGG_SUM_I || x.count == 0 ||
										   (x.lo == y.lo && x.hi == y.hi));
		}
	}
	check(same, "states of groups", where);
	check(same_missed(q, missed, expected_missed), "tuples without a group", where);
	check(q.ops->pass->fused_counts(q.queue, found) == GJ_OK && found[0] == count,
		  "tuples that pass", where);
}

void
test_grouped(const Device &device)
{
	Random random(47);

	for (uint32_t n : {0u, 1u, 33u, 5001u, 30000u, 100000u})
		for (uint32_t round = 0; round < (n < 5000 ? 10u : quick ? 20u : 60u); round++)
			GroupedTest(random, n, random() % 3 ? 4 : 100).run(device);
	for (uint32_t round = 0; round < (quick ? 3u : 12u); round++)
		GroupedTest(random, 400000, round % 3 == 0 ? 1000 : 5).run(device);
	group(device.ops->name, "fused sums of few groups");
}
