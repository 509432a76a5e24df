/*
 * bench_groups.cu
 *	  Times of groups without joins, columns on the device: kernel_test --bench-groups.
 *
 * Few groups by texts with dictionaries, with sums as of TPC-H Q01; many by integers (places); the
 * first ten of many groups.  Median of RUNS after one that does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "device/fused_rows.h"
#include "device/order.h"
#include "bench_plan.cuh"

/* ---- few groups by texts with dictionaries */

enum
{
	FLAG,
	STATUS,
	QUANTITY,
	PRICE,
	DISCOUNT,
	TAX,
	DAY,
	NGROUPED
};

/* Texts "0", "1", .. of number r % ntexts of each row, as codes. */
static GjColumn
text_column(Queue &q, uint32_t n, uint32_t ntexts, uint32_t seed)
{
	GjColumn column = {};
	std::vector<uint64_t> ref(n);
	Bytes heap((size_t) ntexts * 8);

	for (uint32_t t = 0; t < ntexts; t++)
	{
		const std::string text = std::to_string(t);

		heap[t * 8] = (uint8_t) ((text.size() + 1) << 1 | 1);
		memcpy(&heap[t * 8 + 1], text.data(), text.size());
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t t = ((i * 4 + seed) * 2654435761u >> 8) % ntexts;

		ref[i] = gj_ref_make(t * 8, (uint32_t) std::to_string(t).size() + 1);
	}
	column.data = q.upload(ref);
	column.heap = q.upload(heap);
	column.kind = GJ_REF;
	column.width = 8;
	return q.pack_refs(column, n, heap.size());
}

/* Values low .. low + range - 1, packed. */
static GjColumn
number_column(Queue &q, uint32_t n, int64_t low, uint32_t range, uint32_t seed)
{
	GjColumn column = {};
	std::vector<int64_t> value(n);

	for (uint32_t i = 0; i < n; i++)
		value[i] = low + ((i * 4 + seed) * 2654435761u >> 4) % range;
	column.data = q.upload(value);
	column.kind = GJ_INT8;
	column.width = 8;
	return q.pack(column, n);
}

/* Groups by columns 0 .. nkeys-1, those of the first `some` rows: nothing is missed where all are.
 */
static GjGroups
text_groups(Queue &q, const std::vector<GjColumn> &columns, uint32_t nkeys, uint32_t some)
{
	GjGroups groups = {};
	GjGroupRows tuples;
	uint64_t nbytes;

	groups.rows.nkeys = nkeys;
	groups.heap = (uint8_t *) q.alloc((size_t) some * nkeys * 8);
	groups.heap_end = (uint64_t *) q.alloc((size_t) some * 8);
	for (uint32_t k = 0; k < nkeys; k++)
		groups.rows.how[k] = GJ_GROUP_TEXT;
	tuples = groups.rows;
	tuples.nrows = some;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		const GjColumn &c = columns[k];
		const std::vector<uint64_t> dictionary =
			q.download((const uint64_t *) (c.heap + c.base), (size_t) c.factor);
		const Bytes codes = q.download((const uint8_t *) c.data, (size_t) some * c.packed);
		std::vector<int64_t> value(some);

		for (uint32_t i = 0; i < some; i++)
			value[i] = (int64_t)
				dictionary[c.packed == 1 ? codes[i] : codes[2 * i] | codes[2 * i + 1] << 8];
		tuples.value[k] = q.upload(value);
		tuples.heap[k] = c.heap;
		groups.rows.heap[k] = groups.heap;
	}
	tuples.null = q.upload(std::vector<uint32_t>(some));
	must(q, add_groups(q, tuples, 4 * (uint64_t) some, GJ_FUSED_AGGREGATES, groups, &nbytes),
		 "groups");
	return groups;
}

/* Part p begins p million rows behind what its columns describe; these must stay. */
static std::vector<GjFusedPart>
parts_of(std::vector<std::vector<GjColumn>> &part)
{
	std::vector<GjFusedPart> parts;

	for (size_t p = 0; p < part.size(); p++)
	{
		for (GjColumn &c : part[p])
			c.data = (const uint8_t *) c.data + p * PART_ROWS * gj_column_stride(&c);
		parts.push_back({part[p].data(), PART_ROWS});
	}
	return parts;
}

/* Adds sum(of some factors) to a plan: constant <op> column each. */
static void
add_sum(GjFusedPlan &plan, const std::vector<GjFusedFactor> &factors)
{
	GjFusedExpr &e = plan.exprs[plan.nexprs];

	plan.aggregate_op[plan.naggregates] = GJ_AGG_SUM_I;
	plan.aggregate_expr[plan.naggregates++] = plan.nexprs++;
	e.form = GJ_FUSED_PRODUCTS;
	e.expr = plan.nfactors;
	e.arg = (uint8_t) factors.size();
	for (const GjFusedFactor &f : factors)
		plan.factors[plan.nfactors++] = f;
}

/* The first nparts million rows, which are grouped by the first keys. */
static void
time_grouped(Queue &q, const char *what, GjFusedPlan plan, const std::vector<GjColumn> &columns,
			 uint32_t nparts, uint32_t nkeys)
{
	const double *ms = q.ops->queues->phase_ms(q.queue);
	const GjGroups groups = text_groups(q, columns, nkeys, PART_ROWS / 8);
	const uint32_t n = nparts * PART_ROWS;
	std::vector<std::vector<GjColumn>> part(nparts, columns);
	const std::vector<GjFusedPart> parts = parts_of(part);
	std::vector<double> times;
	GjFusedMissed missed = {};

	missed.rowid[0] = (uint32_t *) q.alloc((size_t) n * sizeof(uint32_t));
	plan.ngroup_keys = (uint8_t) nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		plan.group_how[k] = GJ_GROUP_TEXT;
		plan.group_expr[k] = plan.nexprs;
		plan.exprs[plan.nexprs++] = binary(GJ_OP_LOAD, (int16_t) k, 0, -1, 0, 0);
	}
	for (int i = 0; i <= RUNS; i++)
	{
		double before;

		must(q, q.ops->queues->sync(q.queue), "sync");
		before = ms[GJ_PHASE_PROBE];
		q.ops->queues->phase(q.queue, GJ_PHASE_PROBE);
		must(q,
			 q.ops->pass->fused(q.queue, &plan, columns.data(), parts.data(), nparts, UINT64_MAX,
								&groups, &missed),
			 "fused");
		q.ops->queues->phase(q.queue, GJ_PHASE_WAIT);
		must(q, q.ops->queues->sync(q.queue), "sync");
		if (i > 0)
			times.push_back(ms[GJ_PHASE_PROBE] - before);
	}
	printf("%-44s %8.3f ms %8.2f G rows/s, %u groups\n", what, median(times),
		   n / median(times) / 1e6, groups.rows.nrows);
	fflush(stdout);
}

static void
bench_grouped(const Device &device)
{
	const uint32_t nparts = quick ? 4 : PARTS;
	const uint32_t n = nparts * PART_ROWS;
	const GjFusedFactor price = {GJ_OP_ADD_I, GJ_OP_LOAD, 0, PRICE, 0};
	const GjFusedFactor less = {GJ_OP_MUL_I, GJ_OP_SUB_I, 0, DISCOUNT, 100};
	const GjFusedFactor more = {GJ_OP_MUL_I, GJ_OP_ADD_I, 0, TAX, 100};
	Program program;

	for (uint32_t c = 0; c < NGROUPED; c++)
		program.types.push_back({GJ_INT8, 8, 0, 0});
	for (uint32_t a = 0; a < GJ_FUSED_AGGREGATES; a++)
		program.aggregates.push_back({GJ_AGG_SUM_I, (int32_t) program.expr(GJ_INT8, {load(0, 0)})});

	Queue q(device, program);
	GjFusedPlan plan = {};
	std::vector<GjColumn> columns = {text_column(q, n, 3, FLAG),
									 text_column(q, n, 2, STATUS),
									 number_column(q, n, 100, 50, QUANTITY),
									 number_column(q, n, 90000, 10000000, PRICE),
									 number_column(q, n, 0, 11, DISCOUNT),
									 number_column(q, n, 0, 9, TAX),
									 number_column(q, n, -2900, 2500, DAY)};

	plan.ncolumns = plan.nprobe_columns = NGROUPED;
	add_aggregates(plan, binary(GJ_OP_LOAD, QUANTITY, 0, -1, 0, 0));
	time_grouped(q, "count, sum(quantity), two texts", plan, columns, nparts, 2);
	add_sum(plan, {price});
	add_sum(plan, {price, less});
	add_sum(plan, {price, less, more});
	add_sum(plan, {{GJ_OP_ADD_I, GJ_OP_LOAD, 0, DISCOUNT, 0}});
	plan.filter.form = GJ_FUSED_ALL_TERMS;
	plan.filter.n = plan.nterms = 1;
	plan.terms[0] = range(DAY, INT64_MIN, -450);
	time_grouped(q, "the same, five sums as of TPC-H Q01", plan, columns, nparts, 2);
	plan = {};
	plan.ncolumns = plan.nprobe_columns = NGROUPED;
	add_aggregates(plan, binary(GJ_OP_LOAD, PRICE, 0, -1, 0, 0));
	for (uint32_t ntexts : {50u, 500u, 5000u})
	{
		columns[0] = text_column(q, n, ntexts, FLAG);
		time_grouped(q, "count, sum(price), one text", plan, columns, std::min(nparts, 10u), 1);
	}
}

/* ---- many groups, by places */

enum
{
	ORDER,
	SUPPLIER,
	AMOUNT,
	NPLACED
};

/* Groups by the first nkeys columns: what bounds, rows and groups take. */
static void
time_places(Queue &q, const char *what, const std::vector<GjColumn> &columns, uint32_t nparts,
			uint32_t nkeys)
{
	const double *ms = q.ops->queues->phase_ms(q.queue);
	const uint32_t n = nparts * PART_ROWS;
	std::vector<std::vector<GjColumn>> part(nparts, columns);
	const std::vector<GjFusedPart> parts = parts_of(part);
	std::vector<double> times[3];
	GjFusedPlan plan = {};
	GjGroups none = {};
	GjPlaces places;
	GjGroups to = {};
	uint32_t ngroups = 0;
	void *memory = NULL;

	plan.ncolumns = plan.nprobe_columns = NPLACED;
	add_aggregates(plan, binary(GJ_OP_LOAD, AMOUNT, 0, -1, 0, 0));
	plan.ngroup_keys = (uint8_t) nkeys;
	none.rows.nkeys = to.rows.nkeys = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		plan.group_how[k] = GJ_GROUP_INTEGER;
		plan.group_expr[k] = plan.nexprs;
		plan.exprs[plan.nexprs++] = binary(GJ_OP_LOAD, (int16_t) k, 0, -1, 0, 0);
		to.rows.value[k] = (int64_t *) q.alloc((size_t) n * 8);
	}
	to.rows.null = (uint32_t *) q.alloc((size_t) n * 4);
	to.rows.hash = (uint64_t *) q.alloc((size_t) n * 8);
	for (uint32_t a = 0; a < 2; a++)
		to.state[a] = (GjAggState *) q.alloc((size_t) n * sizeof(GjAggState));
	for (int i = 0; i <= RUNS; i++)
	{
		double before[3];
		const GjPhase phase[] = {GJ_PHASE_TRANSFER, GJ_PHASE_PROBE, GJ_PHASE_AGGREGATE};

		must(q, q.ops->queues->sync(q.queue), "sync");
		for (uint32_t k = 0; k < 3; k++)
			before[k] = ms[phase[k]];
		q.ops->queues->phase(q.queue, phase[0]);
		must(q,
			 q.ops->places->plan(q.queue, &plan, parts.data(), nparts, &none, UINT64_MAX, &places),
			 "plan");
		if (places.nplaces == 0)
			exit(1);
		if (memory == NULL)
			memory = q.alloc(places.nbytes);
		q.ops->queues->phase(q.queue, phase[1]);
		must(q,
			 q.ops->places->add(q.queue, &plan, columns.data(), parts.data(), nparts, &none,
								&places, memory, &ngroups),
			 "add");
		q.ops->queues->phase(q.queue, phase[2]);
		must(q,
			 q.ops->places->groups(q.queue, &plan, parts.data(), nparts, &places, memory, ngroups,
								   &to),
			 "groups");
		q.ops->queues->phase(q.queue, GJ_PHASE_WAIT);
		must(q, q.ops->queues->sync(q.queue), "sync");
		for (uint32_t k = 0; k < 3 && i > 0; k++)
			times[k].push_back(ms[phase[k]] - before[k]);
	}
	printf("%-44s bounds %.3f, rows %.3f, groups %.3f ms; %u groups of %u places\n", what,
		   median(times[0]), median(times[1]), median(times[2]), ngroups, places.nplaces);
	fflush(stdout);
}

static GjColumn
packed_column(Queue &q, const std::vector<int64_t> &values)
{
	GjColumn column = {};

	column.data = q.upload(values);
	column.kind = GJ_INT8;
	column.width = 8;
	return q.pack(column, (uint32_t) values.size());
}

static void
bench_places(const Device &device)
{
	const uint32_t nparts = quick ? 4 : PARTS;
	const uint32_t n = nparts * PART_ROWS;
	std::vector<int64_t> order(n);
	std::vector<int64_t> supplier(n);
	Program program;

	for (uint32_t c = 0; c < NPLACED; c++)
		program.types.push_back({GJ_INT8, 8, 0, 0});
	program.aggregates.push_back({GJ_AGG_COUNT_STAR, -1});
	program.aggregates.push_back(
		{GJ_AGG_SUM_I, (int32_t) program.expr(GJ_INT8, {load(0, AMOUNT)})});

	Queue q(device, program);
	std::vector<GjColumn> columns(NPLACED);

	/* keys as those of TPC-H's orders: 8 of 32 */
	for (uint32_t i = 0; i < n; i++)
	{
		order[i] = i / 4 / 8 * 32 + i / 4 % 8;
		supplier[i] = i % 7;
	}
	columns[ORDER] = packed_column(q, order);
	columns[SUPPLIER] = packed_column(q, supplier);
	columns[AMOUNT] = number_column(q, n, 100, 50, QUANTITY);
	time_places(q, "count, sum by key, in its order", columns, nparts, 1);
	/* each row goes to another place */
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t other = (uint32_t) ((uint64_t) i * 982451653 % n);

		order[i] = other / 4 / 8 * 32 + other / 4 % 8;
	}
	columns[ORDER] = packed_column(q, order);
	time_places(q, "the same, in no order", columns, nparts, 1);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i / 28;
	columns[ORDER] = packed_column(q, order);
	time_places(q, "the same by two keys, in their order", columns, nparts, 2);
}

/* ---- the first of many groups */

/* The first ten of n groups by two keys: so many sums, and counts of 1 to 20. */
static void
time_first(const Device &device, uint32_t n, uint32_t nsums)
{
	Program program;
	Queue q(device, program);
	GjKeys keys = {};
	GjSortLimit wanted = {};
	std::vector<int64_t> sums(n);
	std::vector<int64_t> counts(n);
	uint32_t *positions = (uint32_t *) q.alloc((size_t) n * sizeof(uint32_t));
	std::vector<double> times;
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		sums[i] = (int64_t) ((uint64_t) i * 982451653 % nsums);
		counts[i] = 1 + i * 2654435761u % 20;
	}
	keys.nkeys = 2;
	keys.nrows = n;
	keys.value[0] = q.upload(sums);
	keys.value[1] = q.upload(counts);
	wanted.limit = 10;
	wanted.ties = true;
	wanted.descending = 1;
	times =
		times_of(q, RUNS, nothing,
				 [&] {
					 must(q, q.ops->order->sort_limit(q.queue, &keys, &wanted, positions, &found),
						  "sort_limit");
				 });
	printf("first 10 of %8u groups, %8u sums %14.3f ms, %u with ties\n", n, nsums, median(times),
		   found);
	fflush(stdout);
}

void
bench_groups(const Device &device)
{
	bench_grouped(device);
	bench_places(device);
	for (uint32_t n : {100000u, 1000000u, 4000000u})
	{
		time_first(device, n, 1000000);
		time_first(device, n, 1000);
	}
}
