/*
 * places.cu
 *	  Tests of groups that are found by their place: one key and two, with NULLs, packed and not,
 *	  in the order of the key or not; sums beside the count, of 64 and 128 bits, of products;
 *	  filters; rows that end anywhere; groups that were there before, and some that do not suit;
 *	  keys whose bounds the plan knows.
 */
#include <algorithm>
#include <map>

#include <string.h>

#include "rows/aggregate.h"
#include "device/places.h"
#include "test.cuh"

enum
{
	KEY,
	OTHER,
	QUANTITY,
	PRICE,
	DISCOUNT,
	DAY,
	NCOLUMNS
};

/* The keys of a group: value and whether it is NULL. */
typedef std::vector<std::pair<bool, int64_t>> Keys;

struct PlacesTest
{
	Random &random;
	uint32_t n;
	uint32_t nkeys;
	bool wide; /* prices are so great that sums need 128 bits */
	bool huge; /* quantities are multiples of so much that few of them exceed 64 bits */
	std::vector<Column> columns;
	Program program;
	GjFusedPlan plan = {};
	std::vector<uint32_t> first; /* row of each part, and behind the last one */
	std::vector<std::vector<GjColumn>> part;
	std::map<Keys, std::vector<GjAggState>> before;
	std::string where;

	PlacesTest(Random &random, uint32_t n);
	void make_columns();
	void add_aggregate(uint32_t op, const GjFusedExpr &argument);
	void make_plan();
	void make_parts(Queue &q);
	void make_groups_before();
	uint32_t numbers() const;
	GjGroups upload_groups(Queue &q) const;
	int64_t argument(const GjFusedExpr &e, uint32_t row) const;
	Keys keys_of(uint32_t row) const;
	bool passes(uint32_t row) const;
	std::map<Keys, std::vector<GjAggState>> expect(uint64_t *count) const;
	bool compare(Queue &q, const GjGroups &groups,
				 const std::map<Keys, std::vector<GjAggState>> &expected) const;
	bool run(const Device &device);
};

PlacesTest::PlacesTest(Random &r, uint32_t nrows)
	: random(r), n(nrows), nkeys(1 + random() % 2), wide(random() % 6 == 0), huge(random() % 6 == 0)
{
	make_columns();
	make_plan();
}

static void
put(Column *column, uint32_t row, int64_t value)
{
	memcpy(&column->data[(size_t) row * column->type.width], &value, column->type.width);
}

/* Keys are shuffled, or in order with some rows each. */
void
PlacesTest::make_columns()
{
	const bool in_order = random() % 2;
	const uint32_t range = 1 + (uint32_t) (random() % (n / (nkeys * nkeys) + 1));
	const int64_t low = (int64_t) (random() % 3) * 3000000000 - 3000000000;
	const uint32_t same = 1 + (uint32_t) (random() % 6);
	const int64_t step = random() % 3 ? 1 : 4;
	const double nulls = random() % 2 ? 0.05 : 0.0;

	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, nulls, 100));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, random() % 2 ? nulls : 0.0, 3));
	for (uint32_t c = QUANTITY; c <= DISCOUNT; c++)
		columns.push_back(random_column(random, GJ_INT8, 8, 0, n, 0.0, 11));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, 0.0, 100));
	for (uint32_t row = 0; row < n; row++)
	{
		if (!columns[KEY].null(row))
			put(&columns[KEY], row,
				low + (in_order ? row / same % range : (int64_t) (random() % range)) * step);
		put(&columns[QUANTITY], row,
			100 * (int64_t) (1 + random() % 50) * (huge ? INT64_C(1000000000000000) : 1));
		put(&columns[PRICE], row,
			((int64_t) (random() % 1000000) - 400000) * (wide ? INT64_C(1) << 20 : 1));
		put(&columns[DISCOUNT], row, (int64_t) (random() % 11));
	}
}

static GjFusedExpr
load_column(int16_t column)
{
	GjFusedExpr e = {};

	e.form = GJ_FUSED_SIMPLE;
	e.op = GJ_OP_LOAD;
	e.a = column;
	e.b = -1;
	return e;
}

void
PlacesTest::add_aggregate(uint32_t op, const GjFusedExpr &argument)
{
	plan.aggregate_op[plan.naggregates] = (uint8_t) op;
	plan.aggregate_expr[plan.naggregates++] = plan.nexprs;
	plan.exprs[plan.nexprs++] = argument;
	program.aggregates.push_back({op, -1});
}

void
PlacesTest::make_plan()
{
	GjFusedExpr products = {};
	GjFusedExpr sum = load_column(QUANTITY);

	for (const Column &c : columns)
		program.types.push_back(c.type);
	plan.ncolumns = plan.nprobe_columns = NCOLUMNS;
	/* price * (100 - discount) + quantity */
	products.form = GJ_FUSED_PRODUCTS;
	products.arg = 3;
	plan.factors[plan.nfactors++] = {GJ_OP_ADD_I, GJ_OP_LOAD, 0, PRICE, 0};
	plan.factors[plan.nfactors++] = {GJ_OP_MUL_I, GJ_OP_SUB_I, 0, DISCOUNT, 100};
	plan.factors[plan.nfactors++] = {GJ_OP_ADD_I, GJ_OP_LOAD, 0, QUANTITY, 0};
	if (random() % 2)
		products.arg = 2;
	sum.op = GJ_OP_ADD_I;
	sum.arg = GJ_INT8;
	sum.b = DISCOUNT;
	for (uint32_t a = (uint32_t) (random() % 5); a-- > 0;)
	{
		switch (random() % 6)
		{
			case 0:
				add_aggregate(GJ_AGG_COUNT_STAR, {});
				break;
			case 1:
				add_aggregate(GJ_AGG_COUNT, load_column(QUANTITY));
				break;
			case 2:
				add_aggregate(GJ_AGG_SUM_I, load_column(QUANTITY));
				break;
			case 3:
				add_aggregate(GJ_AGG_SUM_I, load_column(PRICE));
				break;
			case 4:
				add_aggregate(GJ_AGG_SUM_I, sum);
				break;
			default:
				add_aggregate(GJ_AGG_SUM_I, products);
		}
	}
	plan.ngroup_keys = (uint8_t) nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		plan.group_how[k] = GJ_GROUP_INTEGER;
		plan.group_expr[k] = plan.nexprs;
		plan.exprs[plan.nexprs++] = load_column((int16_t) (KEY + k));
	}
	if (random() % 2)
	{
		plan.filter.form = GJ_FUSED_ALL_TERMS;
		plan.filter.n = plan.nterms = 1;
		plan.terms[0] = load_column(DAY);
		plan.terms[0].form = GJ_FUSED_RANGE;
		plan.terms[0].constant = -50;
		plan.terms[0].high = (int64_t) (random() % 50);
	}
}

/* Parts of any size, one without rows among them, whose columns are packed each for itself. */
void
PlacesTest::make_parts(Queue &q)
{
	first = {0, n / 3 + 1, n / 3 + 1, n / 2, n};
	for (uint32_t &row : first)
		row = std::min(row, n);
	std::sort(first.begin(), first.end());
	for (uint32_t p = 0; p + 1 < first.size(); p++)
	{
		/* a part may start anywhere in a fragment */
		const uint32_t ahead = std::min((uint32_t) (random() % 3), first[p]);
		const uint32_t from = first[p] - ahead;
		const uint32_t nrows = first[p + 1] - from;

		part.emplace_back();
		for (const Column &host : columns)
		{
			const size_t width = host.type.width;
			GjColumn d = {};

			d.data = q.upload(
				Bytes(host.data.begin() + from * width, host.data.begin() + first[p + 1] * width));
			if (!host.nulls.empty())
				d.nulls =
					q.upload(Bytes(host.nulls.begin() + from, host.nulls.begin() + first[p + 1]));
			d.kind = host.type.kind;
			d.width = host.type.width;
			if (nrows > 0 && (host.type.width == 8 || random() % 2))
				d = q.pack(d, nrows);
			gj_column_skip(&d, ahead);
			part[p].push_back(d);
		}
	}
}

Keys
PlacesTest::keys_of(uint32_t row) const
{
	Keys keys;

	for (uint32_t k = 0; k < nkeys; k++)
	{
		const bool null = columns[KEY + k].null(row);

		keys.push_back({null, null ? 0 : columns[KEY + k].value(row)});
	}
	return keys;
}

int64_t
PlacesTest::argument(const GjFusedExpr &e, uint32_t row) const
{
	const int64_t quantity = columns[QUANTITY].value(row);
	const int64_t discount = columns[DISCOUNT].value(row);

	if (e.form == GJ_FUSED_NONE)
		return 0;
	if (e.form == GJ_FUSED_PRODUCTS)
		return columns[PRICE].value(row) * (100 - discount) + (e.arg == 3 ? quantity : 0);
	return e.op == GJ_OP_LOAD ? columns[e.a].value(row) : quantity + discount;
}

bool
PlacesTest::passes(uint32_t row) const
{
	const int64_t day = columns[DAY].value(row);

	return plan.nterms == 0 || (day >= plan.terms[0].constant && day <= plan.terms[0].high);
}

/* Some of the rows once more, and others that no row is of. */
void
PlacesTest::make_groups_before()
{
	for (uint32_t i = 0; i < n && i < 500; i += 1 + (uint32_t) (random() % 50))
	{
		Keys keys = keys_of(i);

		if (random() % 4 == 0 && !keys[0].first)
			keys[0].second += 3;

		std::vector<GjAggState> &states = before[keys];

		states.resize(plan.naggregates);
		for (uint32_t a = 0; a < plan.naggregates; a++)
			gj_agg_step(plan.aggregate_op[a], &states[a],
						argument(plan.exprs[plan.aggregate_expr[a]], i));
		if (!wide || n < 30000)
			continue;
		/* sums that have 128 bits exceed 64 */
		for (uint32_t a = 0; a < plan.naggregates; a++)
		{
			const GjFusedExpr &e = plan.exprs[plan.aggregate_expr[a]];

			if (plan.aggregate_op[a] == GJ_AGG_SUM_I &&
				(e.form == GJ_FUSED_PRODUCTS || (e.op == GJ_OP_LOAD && e.a == PRICE)))
				gj_add_128(&states[a].lo, &states[a].hi, UINT64_MAX - 1000, i % 3 - 1);
		}
	}
}

/* One more than the greatest key, where the only key is never negative and rather small; else 0. */
uint32_t
PlacesTest::numbers() const
{
	std::vector<Keys> all;
	int64_t most = -1;

	if (nkeys > 1)
		return 0;
	for (uint32_t row = 0; row < n; row++)
		all.push_back(keys_of(row));
	for (const auto &group : before)
		all.push_back(group.first);
	for (const Keys &keys : all)
	{
		if (keys[0].first)
			continue;
		if (keys[0].second < 0 || keys[0].second > INT32_MAX)
			return 0;
		most = std::max(most, keys[0].second);
	}
	return (uint32_t) (most + 1);
}

GjGroups
PlacesTest::upload_groups(Queue &q) const
{
	std::vector<uint32_t> null;
	std::vector<std::vector<int64_t>> value(nkeys);
	std::vector<std::vector<GjAggState>> state(plan.naggregates);
	GjGroups groups = {};

	for (const auto &group : before)
	{
		uint32_t bits = 0;

		for (uint32_t k = 0; k < nkeys; k++)
		{
			bits |= (uint32_t) group.first[k].first << k;
			value[k].push_back(group.first[k].second);
		}
		null.push_back(bits);
		for (uint32_t a = 0; a < plan.naggregates; a++)
			state[a].push_back(group.second[a]);
	}
	groups.rows.nkeys = nkeys;
	groups.rows.nrows = (uint32_t) before.size();
	groups.rows.null = q.upload(null);
	for (uint32_t k = 0; k < nkeys; k++)
	{
		groups.rows.how[k] = GJ_GROUP_INTEGER;
		groups.rows.value[k] = q.upload(value[k]);
	}
	for (uint32_t a = 0; a < plan.naggregates; a++)
		groups.state[a] = q.upload(state[a]);
	return groups;
}

std::map<Keys, std::vector<GjAggState>>
PlacesTest::expect(uint64_t *count) const
{
	std::map<Keys, std::vector<GjAggState>> expected = before;

	for (uint32_t row = 0; row < n; row++)
	{
		if (!passes(row))
			continue;

		std::vector<GjAggState> &states = expected[keys_of(row)];

		states.resize(plan.naggregates);
		for (uint32_t a = 0; a < plan.naggregates; a++)
			gj_agg_step(plan.aggregate_op[a], &states[a],
						argument(plan.exprs[plan.aggregate_expr[a]], row));
		++*count;
	}
	return expected;
}

/* Groups come in the order of their places: by key, NULL behind all others. */
bool
PlacesTest::compare(Queue &q, const GjGroups &groups,
					const std::map<Keys, std::vector<GjAggState>> &expected) const
{
	const uint32_t ngroups = groups.rows.nrows;
	const std::vector<uint32_t> nulls = q.download(groups.rows.null, ngroups);
	const std::vector<uint64_t> hash = q.download(groups.rows.hash, ngroups);
	std::vector<std::vector<int64_t>> values;
	std::vector<std::vector<GjAggState>> states;
	uint32_t g = 0;
	bool same = true;

	for (uint32_t k = 0; k < nkeys; k++)
		values.push_back(q.download(groups.rows.value[k], ngroups));
	for (uint32_t a = 0; a < plan.naggregates; a++)
		states.push_back(q.download(groups.state[a], ngroups));
	for (const auto &group : expected)
	{
		uint64_t h = 0;
		uint32_t status = GJ_OK;

		for (uint32_t k = 0; k < nkeys; k++)
		{
			const bool null = group.first[k].first;

			same &= (nulls[g] >> k & 1) == null && values[k][g] == group.first[k].second;
			h = gj_group_add_key(h, k, GJ_GROUP_INTEGER, null, group.first[k].second, NULL,
								 &status);
		}
		same &= hash[g] == h;
		for (uint32_t a = 0; a < plan.naggregates; a++)
		{
			const GjAggState &x = states[a][g];
			const GjAggState &y = group.second[a];

			same &= x.count == y.count &&
					(plan.aggregate_op[a] != GJ_AGG_SUM_I || (x.lo == y.lo && x.hi == y.hi));
		}
		g++;
	}
	return same;
}

/* True if the device has added them by places. */
bool
PlacesTest::run(const Device &device)
{
	Queue q(device, program);
	std::vector<GjFusedPart> parts;
	std::vector<GjColumn> none(NCOLUMNS);
	std::map<Keys, std::vector<GjAggState>> expected;
	const bool spoils = random() % 8 == 0;
	uint64_t found[GJ_FUSED_STEPS + 1];
	uint64_t count = 0;
	GjPlaces places;
	GjGroups groups;
	GjGroups to;
	GjStatus status;
	uint32_t ngroups = 0;
	void *memory;

	make_parts(q);
	if (random() % 3)
		make_groups_before();
	plan.nnumbers = random() % 2 ? numbers() : 0;
	for (uint32_t p = 0; p < part.size(); p++)
		parts.push_back({part[p].data(), first[p + 1] - first[p]});
	where = "n = " + std::to_string(n) + ", keys " + std::to_string(nkeys) + ", groups before " +
			std::to_string(before.size()) + ", aggregates " + std::to_string(plan.naggregates) +
			", terms " + std::to_string(plan.nterms) + ", numbers " +
			std::to_string(plan.nnumbers) + (wide ? ", wide" : "") + (huge ? ", huge" : "");
	expected = expect(&count);
	/* what a GPU cannot add: counts that differ */
	if (spoils && !before.empty() && plan.naggregates > 1)
		before.begin()->second[0].count++;
	groups = upload_groups(q);
	status = q.ops->places->plan(q.queue, &plan, parts.data(), (uint32_t) parts.size(), &groups, 2,
								 &places);
	check(status == GJ_OK && places.nplaces <= 2, "no more places than asked for", where);
	status = q.ops->places->plan(q.queue, &plan, parts.data(), (uint32_t) parts.size(), &groups,
								 UINT32_MAX, &places);
	check(status == GJ_OK, "plan", where);
	check(places.nplaces > 0 || device.ops->kind != GJ_DEVICE_CPU, "places", where);
	if (places.nplaces == 0)
		return false;
	memory = q.alloc(places.nbytes);
	status = q.ops->places->add(q.queue, &plan, none.data(), parts.data(), (uint32_t) parts.size(),
								&groups, &places, memory, &ngroups);
	if (!check(status == GJ_OK, "add", where))
		return false;
	if (spoils && !before.empty() && plan.naggregates > 1)
	{
		check(ngroups == UINT32_MAX || device.ops->kind == GJ_DEVICE_CPU, "groups that do not suit",
			  where);
		return true;
	}
	if (!check(ngroups == expected.size(), "number of groups", where))
		return false;
	to = groups;
	to.rows.nrows = 0;
	to.rows.null = (uint32_t *) q.alloc((size_t) ngroups * 4 + 4);
	to.rows.hash = (uint64_t *) q.alloc((size_t) ngroups * 8 + 8);
	for (uint32_t k = 0; k < nkeys; k++)
		to.rows.value[k] = (int64_t *) q.alloc((size_t) ngroups * 8 + 8);
	for (uint32_t a = 0; a < plan.naggregates; a++)
		to.state[a] = (GjAggState *) q.alloc(((size_t) ngroups + 1) * sizeof(GjAggState));
	status = q.ops->places->groups(q.queue, &plan, parts.data(), (uint32_t) parts.size(), &places,
								   memory, ngroups, &to);
	to.rows.nrows = ngroups;
	if (status == GJ_OK)
		status = q.ops->groups->group_finish(q.queue, &to);
	if (!check(status == GJ_OK, "groups", where))
		return false;
	check(compare(q, to, expected), "groups and states", where);
	check(q.ops->pass->fused_counts(q.queue, found) == GJ_OK && found[0] == count, "rows that pass",
		  where);
	return true;
}

void
test_places(const Device &device)
{
	Random random(53);
	uint32_t served = 0;
	uint32_t all = 0;

	for (uint32_t n : {0u, 1u, 33u, 2049u, 30000u, 100000u})
		for (uint32_t round = 0; round < (n < 5000 ? 30u : quick ? 15u : 40u); round++, all++)
			served += PlacesTest(random, n).run(device);
	check(served > all / 2, "most plans are served", std::to_string(served));
	group(device.ops->name, "groups by places");
}
