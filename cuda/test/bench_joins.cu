/*
 * bench_joins.cu
 *	  Times of joins by size, columns on the device: kernel_test --bench-join.
 *
 * n rows (k, v) joined with n rows on k, int4 or int8 both, with operators as the executor
 * calls them, a million tuples a call.  Keys of the probe side are all different; those of
 * the build side are too, in another order, or half of its rows have one key.  "rows"
 * materialises pairs of row ids, "sum" adds up a.v + b.v over them as well; both with the
 * build.  Rates are the tuples of both sides by the time of everything.
 *
 * A sort-merge join sorts the build side and searches it for each probe row; its keys differ in as
 * many bits as n has, or ("64 bits") in all.  A nested loop looks at all pairs of int4 columns for
 * a band, by terms, and for the same written as an expression; "pairs" are those looked at.
 *
 * On a GPU every table is built twice, in global memory and by partitions: where the second
 * is faster is what GjDevice.radix_bytes should say.  Median of RUNS after one that does not
 * count, times of CUDA events.
 */
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

#include "../internal.cuh"
#include "bench.cuh"

#define RUNS 5

/* Number i of a permutation of 0 .. 2^bits - 1, another one for each seed. */
static uint64_t
permuted(uint64_t i, uint32_t bits, uint64_t seed)
{
	const uint64_t mask = (UINT64_C(1) << bits) - 1;

	for (int round = 0; round < 3; round++)
	{
		i = (i * UINT64_C(0x9E3779B97F4A7C15) + seed) & mask;
		i ^= i >> (bits / 2);
	}
	return i;
}

/* Columns of both sides: a.k, a.v, b.k, b.v. */
struct Sides
{
	Program program;
	GjColumn column[4];
	uint32_t n;
};

static Program
make_program(uint32_t width)
{
	const GjKind kind = width == 4 ? GJ_INT4 : GJ_INT8;
	Program program;

	for (uint32_t c = 0; c < 4; c++)
		program.types.push_back({(uint8_t) kind, (uint8_t) width, 0, (uint8_t) (c / 2)});
	program.expr(kind, {load(0, 0)});
	program.expr(kind, {load(0, 2)});
	program.aggregates.push_back(
		{GJ_AGG_SUM_I,
		 (int32_t) program.expr(kind, {load(0, 1), load(1, 3), op(GJ_OP_ADD_I, 0, 0, 1, kind)})});
	return program;
}

template <typename T>
static GjColumn
upload_column(Queue &q, GjKind kind, uint32_t bits, uint64_t seed, bool key, bool skewed,
			  bool spread)
{
	std::vector<T> values((size_t) 1 << bits);
	GjColumn column = {};

	for (size_t i = 0; i < values.size(); i++)
	{
		const uint64_t v = permuted(i, bits, seed);

		values[i] = (T) (!key              ? v % 1000
						 : skewed && v % 2 ? 1
						 : spread          ? v * UINT64_C(0xD1342543DE82EF95)
										   : v);
	}
	column.data = q.upload(values);
	column.kind = (uint8_t) kind;
	column.width = sizeof(T);
	return column;
}

template <typename T>
static void
upload_sides(Queue &q, Sides &sides, GjKind kind, uint32_t bits, bool skewed, bool spread)
{
	sides.n = 1u << bits;
	sides.column[0] = upload_column<T>(q, kind, bits, 1, true, false, spread);
	sides.column[1] = upload_column<T>(q, kind, bits, 2, false, false, false);
	sides.column[2] = upload_column<T>(q, kind, bits, 3, true, skewed, spread);
	sides.column[3] = upload_column<T>(q, kind, bits, 4, false, false, false);
}

/* How a join finds its pairs. */
struct How
{
	bool sorted;
	uint64_t direct_bytes; /* of a table; 0: none is addressed by the key */
};

static const int32_t probe_key[] = {-1 - 0};
static const int32_t build_key[] = {-1 - 2};
static const GjSortedMatch same_key = {1, 0, 0, 0, 0};

/* Memory of the probe side's pieces. */
struct JoinBuffers : Buffers
{
	GjKeys keys;

	explicit JoinBuffers(Queue &q) : Buffers(q), keys()
	{
		keys.nkeys = 1;
		keys.value[0] = (int64_t *) q.alloc(GJ_MAX_TUPLES * sizeof(int64_t));
		keys.null = (uint8_t *) q.alloc(GJ_MAX_TUPLES);
	}
};

/* A view of probe rows first .. first+n-1 with all build rows. */
static GjView
probe_view(Queue &q, const Sides &sides, uint32_t first, uint32_t n)
{
	GjColumn columns[4] = {sides.column[0], sides.column[1], sides.column[2], sides.column[3]};
	GjView view = {};

	for (uint32_t c = 0; c < 2; c++)
		columns[c].data = (const uint8_t *) columns[c].data + (size_t) first * columns[c].width;
	must(q, q.ops->columns->set_columns(q.queue, columns, 4, &view.columns), "set_columns");
	view.nrows = n;
	return view;
}

static void
build(Queue &q, const Sides &sides, const How &how, GjHashTable *table)
{
	GjView view = probe_view(q, sides, 0, sides.n);
	GjKeys keys = {};

	keys.nkeys = 1;
	keys.nrows = sides.n;
	keys.value[0] = (int64_t *) q.alloc((size_t) sides.n * sizeof(int64_t));
	keys.null = (uint8_t *) q.alloc(sides.n);
	for (uint32_t first = 0; first < sides.n; first += GJ_MAX_TUPLES)
	{
		const uint32_t n = std::min(sides.n - first, GJ_MAX_TUPLES);

		if (how.sorted)
			must(q, q.ops->columns->ordered_keys(q.queue, &view, first, n, build_key, &keys),
				 "ordered_keys");
		else
			must(q, q.ops->columns->keys(q.queue, &view, first, n, 1, &keys), "keys");
	}
	if (how.sorted)
		must(q, q.ops->tables->sort_build(q.queue, &keys, NULL, never, NULL, table), "sort_build");
	else
		must(q,
			 q.ops->tables->hash_build(q.queue, &keys, NULL, how.direct_bytes, never, NULL, table),
			 "hash_build");
}

/* Computes the keys of a view's tuples. */
static void
compute_keys(Queue &q, const GjView &view, JoinBuffers &buffers, const How &how)
{
	buffers.keys.nrows = view.nrows;
	if (how.sorted)
		must(q,
			 q.ops->columns->ordered_keys(q.queue, &view, 0, view.nrows, probe_key, &buffers.keys),
			 "ordered_keys");
	else
		must(q, q.ops->columns->keys(q.queue, &view, 0, view.nrows, 0, &buffers.keys), "keys");
}

/* Looks the keys of a view's tuples up. */
static uint64_t
look_up(Queue &q, GjView &view, const GjHashTable &table, JoinBuffers &buffers, const How &how)
{
	uint64_t total = 0;

	compute_keys(q, view, buffers, how);
	if (how.sorted)
		must(q,
			 q.ops->tables->sort_probe(q.queue, &table, &buffers.keys, &same_key, buffers.offset,
									   buffers.first, &total),
			 "sort_probe");
	else
		must(q,
			 q.ops->tables->hash_probe(q.queue, &table, &buffers.keys, buffers.offset,
									   buffers.first, &total),
			 "hash_probe");
	return total;
}

/* Looks tuples of unique keys up and writes their pairs; returns how many. */
static uint32_t
join_unique(Queue &q, GjView &view, const GjHashTable &table, JoinBuffers &buffers, const How &how)
{
	uint32_t n = 0;

	compute_keys(q, view, buffers, how);
	must(q,
		 q.ops->tables->join_unique(q.queue, &table, &buffers.keys, &same_key, &view, 1,
									buffers.out, &n),
		 "join_unique");
	return n;
}

/* Probes with all probe rows; returns the number of pairs. */
static uint64_t
probe(Queue &q, const Sides &sides, const GjHashTable &table, JoinBuffers &buffers, const How &how,
	  bool sum)
{
	uint64_t npairs = 0;

	for (uint32_t first = 0; first < sides.n; first += GJ_MAX_TUPLES)
	{
		const uint32_t n = std::min(sides.n - first, GJ_MAX_TUPLES);
		GjView view = probe_view(q, sides, first, n);
		GjView pairs = view;
		uint64_t total;

		pairs.rowid[0] = buffers.out[0];
		pairs.rowid[1] = buffers.out[1];
		if (table.max_count == 1 && q.ops->tables->joins_unique)
		{
			pairs.nrows = join_unique(q, view, table, buffers, how);
			npairs += pairs.nrows;
			if (sum)
				must(q, q.ops->groups->aggregate(q.queue, &pairs), "aggregate");
			continue;
		}
		total = look_up(q, view, table, buffers, how);
		npairs += total;
		for (uint64_t cursor = 0; cursor < total; cursor += GJ_MAX_TUPLES)
		{
			pairs.nrows = (uint32_t) std::min<uint64_t>(GJ_MAX_TUPLES, total - cursor);
			must(q,
				 q.ops->tables->hash_expand(q.queue, &table, &view, buffers.offset, buffers.first,
											cursor, pairs.nrows, 1, buffers.out),
				 "hash_expand");
			if (sum)
				must(q, q.ops->groups->aggregate(q.queue, &pairs), "aggregate");
		}
	}
	return npairs;
}

/* Times the join by one kind of table and prints a line. */
static void
bench_one(Queue &q, const Sides &sides, JoinBuffers &buffers, const How &how, const char *what)
{
	const double *ms = q.ops->queues->phase_ms(q.queue);
	std::vector<double> times[3]; /* build, rows, sum */

	for (int i = 0; i < 2 * (RUNS + 1); i++)
	{
		const bool sum = i % 2;
		const GjPhase phase = sum ? GJ_PHASE_AGGREGATE : GJ_PHASE_PROBE;
		GjHashTable table = {};
		double before[2];
		uint64_t npairs;

		must(q, q.ops->queues->sync(q.queue), "sync");
		before[0] = ms[GJ_PHASE_BUILD];
		before[1] = ms[phase];
		q.ops->queues->phase(q.queue, GJ_PHASE_BUILD);
		build(q, sides, how, &table);
		q.ops->queues->phase(q.queue, phase);
		npairs = probe(q, sides, table, buffers, how, sum);
		q.ops->queues->phase(q.queue, GJ_PHASE_WAIT);
		must(q, q.ops->queues->sync(q.queue), "sync");
		q.ops->tables->hash_free(q.queue, &table);
		check(npairs == sides.n, "pairs", what);
		if (i < 2)
			continue;
		times[0].push_back(ms[GJ_PHASE_BUILD] - before[0]);
		times[1 + sum].push_back(ms[phase] - before[1]);
	}
	const double b = median(times[0]);
	const double rows = b + median(times[1]);
	const double added = b + median(times[2]);

	printf("%-34s build %9.3f ms %7.2f G rows/s   rows %9.3f ms %7.2f G/s   sum %9.3f ms %7.2f "
		   "G/s\n",
		   what, b, sides.n / b / 1e6, rows, 2.0 * sides.n / rows / 1e6, added,
		   2.0 * sides.n / added / 1e6);
	fflush(stdout);
}

static void
bench_size(const Device &device, uint32_t bits, uint32_t width, bool skewed)
{
	Sides sides = {make_program(width), {}, 0};
	Queue q(device, sides.program);
	JoinBuffers buffers(q);
	char what[64];

	if (width == 4)
		upload_sides<int32_t>(q, sides, GJ_INT4, bits, skewed, false);
	else
		upload_sides<int64_t>(q, sides, GJ_INT8, bits, skewed, false);
	snprintf(what, sizeof(what), "2^%u int%u %s sort-merge", bits, width,
			 skewed ? "skew" : "uniform");
	bench_one(q, sides, buffers, {true, 0}, what);
	if (device.ops->kind != GJ_DEVICE_CUDA)
	{
		snprintf(what, sizeof(what), "2^%u int%u %s", bits, width, skewed ? "skew" : "uniform");
		bench_one(q, sides, buffers, {false, 0}, what);
		return;
	}
	const uint64_t bytes = device.device->radix_bytes;

	for (int radix = 0; radix < 2; radix++)
	{
		device.device->radix_bytes = radix ? 0 : UINT64_MAX;
		snprintf(what, sizeof(what), "2^%u int%u %s %s", bits, width, skewed ? "skew" : "uniform",
				 radix ? "partitions" : "global");
		bench_one(q, sides, buffers, {false, 0}, what);
	}
	if (!skewed)
	{
		snprintf(what, sizeof(what), "2^%u int%u uniform direct", bits, width);
		bench_one(q, sides, buffers, {false, (uint64_t) sides.n * 24}, what);
	}
	device.device->radix_bytes = bytes;
}

/* Sort-merge of keys that differ in all of their bits. */
static void
bench_wide(const Device &device, uint32_t bits)
{
	Sides sides = {make_program(8), {}, 0};
	Queue q(device, sides.program);
	JoinBuffers buffers(q);
	char what[64];

	upload_sides<int64_t>(q, sides, GJ_INT8, bits, false, true);
	snprintf(what, sizeof(what), "2^%u int8 64 bits sort-merge", bits);
	bench_one(q, sides, buffers, {true, 0}, what);
}

/* ---- nested loops */

/* All pairs of 2^bits <= GJ_MAX_TUPLES tuples and 2^16 rows, whose bands have eleven values. */
static void
bench_nested(const Device &device, uint32_t bits, bool terms)
{
	const uint32_t row_bits = 16;
	const uint32_t ntuples = 1u << bits;
	const uint32_t nrows = 1u << row_bits;
	Program program;

	for (uint32_t c = 0; c < 3; c++)
		program.types.push_back({GJ_INT4, 4, 0, (uint8_t) (c > 0)});
	const int32_t condition = (int32_t) program.expr(
		GJ_BOOL, {load(0, 0), load(1, 1), op(GJ_OP_GE_I, 2, 0, 1, GJ_BOOL), load(1, 2),
				  op(GJ_OP_LE_I, 3, 0, 1, GJ_BOOL), op(GJ_OP_AND, 0, 2, 3, GJ_BOOL)});

	Queue q(device, program);
	std::vector<int32_t> low(nrows);
	std::vector<int32_t> high(nrows);
	std::vector<int32_t> probe_side(ntuples);
	std::vector<int64_t> wide[3];
	GjColumn columns[3] = {};
	GjView view = {};
	GjNested nested = {};
	uint64_t npairs = 0;
	uint64_t expected = 0;

	for (uint32_t i = 0; i < ntuples; i++)
		probe_side[i] = (int32_t) permuted(i, bits, 5);
	for (uint32_t r = 0; r < nrows; r++)
	{
		low[r] = (int32_t) permuted(r, row_bits, 6);
		high[r] = low[r] + 10;
		/* probe values are 0 .. ntuples-1, once each */
		if (low[r] < (int32_t) ntuples)
			expected += std::min<uint32_t>(11, ntuples - (uint32_t) low[r]);
	}
	columns[0].data = q.upload(probe_side);
	columns[1].data = q.upload(low);
	columns[2].data = q.upload(high);
	for (GjColumn &column : columns)
	{
		column.kind = GJ_INT4;
		column.width = 4;
	}
	must(q, q.ops->columns->set_columns(q.queue, columns, 3, &view.columns), "set_columns");
	view.nrows = ntuples;
	nested.view = &view;
	nested.nrows = nrows;
	nested.build_source = 1;
	nested.condition = terms ? -1 : condition;
	if (terms)
	{
		wide[0].assign(probe_side.begin(), probe_side.end());
		wide[1].assign(low.begin(), low.end());
		wide[2].assign(high.begin(), high.end());
		nested.nterms = 2;
		nested.terms[0] = {GJ_TERM_GE, 1, (int64_t *) q.upload(wide[0]),
						   (int64_t *) q.upload(wide[1])};
		nested.terms[1] = {GJ_TERM_LE, 1, nested.terms[0].probe_side,
						   (int64_t *) q.upload(wide[2])};
		nested.probe_null = (uint8_t *) q.upload(std::vector<uint8_t>(ntuples));
		nested.build_null = (uint8_t *) q.upload(std::vector<uint8_t>(nrows));
	}
	const std::vector<double> times = times_of(
		q, RUNS, nothing,
		[&]
		{
			const uint64_t ntiles = gj_nested_tiling(ntuples, nrows).ntiles;
			uint32_t ndone;

			npairs = 0;
			for (uint64_t tile = 0; tile < ntiles; tile += ndone)
			{
				uint64_t n;

				must(q,
					 q.ops->tables->nested_loop(
						 q.queue, &nested, tile,
						 (uint32_t) std::min<uint64_t>(ntiles - tile, UINT32_MAX), &ndone, &n),
					 "nested_loop");
				npairs += n;
			}
		});
	const double ms = times[times.size() / 2];

	check(npairs == expected, "pairs", "nested loop");
	printf("nested loop, 2^%u x 2^%u int4, %-12s %9.3f ms %9.1f G pairs/s\n", bits, row_bits,
		   terms ? "terms" : "an expression", ms, (double) ntuples * nrows / ms / 1e6);
	fflush(stdout);
}

void
bench_joins(const Device &device)
{
	static const uint32_t sizes[] = {20, 21, 22, 23, 24, 26, 27};

	bench_nested(device, quick ? 10 : 20, true);
	bench_nested(device, quick ? 10 : 20, false);
	for (uint32_t bits : sizes)
	{
		if (quick && bits > 22)
			break;
		for (uint32_t width = 4; width <= 8; width += 4)
		{
			bench_size(device, bits, width, false);
			bench_size(device, bits, width, true);
		}
		bench_wide(device, bits);
	}
}
