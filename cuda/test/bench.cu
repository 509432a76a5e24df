/*
 * bench.cu
 *	  Times of the operators, columns on the device: kernel_test --bench.
 *
 * Median of seven runs after one that does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "bench.cuh"

#define RUNS 7
#define MILLION 1000000u

/* Times run() and prints the median; before() is not timed. */
template <typename Before, typename Run>
static void
measure(Queue &q, const char *name, double nrows, Before before, Run run)
{
	const std::vector<double> times = times_of(q, RUNS, before, run);

	printf("%-44s %9.3f ms  (%.3f to %.3f)  %8.2f G rows/s\n", name, times[RUNS / 2], times[0],
		   times[RUNS - 1], nrows / times[RUNS / 2] / 1e6);
	fflush(stdout);
}

/* n keys 0 .. range-1 in random order: a multiplication modulo a power of two above range. */
static std::vector<int64_t>
shuffled(uint32_t n, uint32_t range)
{
	std::vector<int64_t> v(n);
	uint64_t mask = 1;
	uint64_t x = 1;

	while (mask < range)
		mask *= 2;
	mask--;
	for (int64_t &value : v)
	{
		do
			x = (x * 1664525 + 1013904223) & mask;
		while (x >= range);
		value = (int64_t) x;
	}
	return v;
}

static GjKeys
upload_keys(Queue &q, const std::vector<int64_t> &values)
{
	GjKeys keys = {};

	keys.nkeys = 1;
	keys.nrows = (uint32_t) values.size();
	keys.value[0] = q.upload(values);
	keys.null = q.upload(Bytes(values.size()));
	return keys;
}

/* A copy of keys, because a build takes them over. */
static GjKeys
copy_keys(Queue &q, const GjKeys &from)
{
	GjKeys keys = from;

	keys.value[0] = (int64_t *) q.alloc((size_t) from.nrows * 8);
	keys.null = (uint8_t *) q.alloc(from.nrows);
	must(q, q.ops->memory->copy(q.queue, keys.value[0], from.value[0], (size_t) from.nrows * 8),
		 "copy");
	must(q, q.ops->memory->copy(q.queue, keys.null, from.null, from.nrows), "copy");
	return keys;
}

static void
bench_join(const Device &device, uint32_t ninner, const char *build_name, const char *probe_name)
{
	Program program;
	Queue q(device, program);
	Buffers buffers(q);
	GjKeys build_side = upload_keys(q, shuffled(ninner, ninner));
	GjKeys probe_side = upload_keys(q, shuffled(50 * MILLION, ninner));
	GjKeys keys = {};
	GjHashTable table = {};

	measure(
		q, build_name, ninner,
		[&]
		{
			q.ops->tables->hash_free(q.queue, &table);
			keys = copy_keys(q, build_side);
		},
		[&] {
			must(q, q.ops->tables->hash_build(q.queue, &keys, NULL, 0, never, NULL, &table),
				 "build");
		});
	measure(q, probe_name, 50e6, nothing,
			[&]
			{
				for (uint32_t first = 0; first < probe_side.nrows; first += MILLION)
				{
					GjKeys chunk = probe_side;
					GjView view = {};
					uint64_t total = 0;

					chunk.nrows = view.nrows = MILLION;
					chunk.value[0] += first;
					chunk.null += first;
					must(q,
						 q.ops->tables->hash_probe(q.queue, &table, &chunk, buffers.offset,
												   buffers.first, &total),
						 "probe");
					for (uint64_t cursor = 0; cursor < total; cursor += GJ_MAX_TUPLES)
						must(q,
							 q.ops->tables->hash_expand(
								 q.queue, &table, &view, buffers.offset, buffers.first, cursor,
								 (uint32_t) std::min<uint64_t>(GJ_MAX_TUPLES, total - cursor), 1,
								 buffers.out),
							 "expand");
				}
			});
	q.ops->tables->hash_free(q.queue, &table);
}

/* Every build row has the same key, and so has every probe tuple. */
static void
bench_skew(const Device &device)
{
	Program program;
	Queue q(device, program);
	Buffers buffers(q);
	GjKeys build_side = upload_keys(q, std::vector<int64_t>(10 * MILLION, 7));
	GjKeys probe_side = upload_keys(q, std::vector<int64_t>(1000, 7));
	GjKeys keys = {};
	GjHashTable table = {};
	GjView view = {};
	uint64_t total = 0;

	measure(
		q, "build 10 M rows with one key", 10e6,
		[&]
		{
			q.ops->tables->hash_free(q.queue, &table);
			keys = copy_keys(q, build_side);
		},
		[&] {
			must(q, q.ops->tables->hash_build(q.queue, &keys, NULL, 0, never, NULL, &table),
				 "build");
		});
	view.nrows = probe_side.nrows;
	must(q,
		 q.ops->tables->hash_probe(q.queue, &table, &probe_side, buffers.offset, buffers.first,
								   &total),
		 "probe");
	measure(q, "expand 2^20 of 10^10 pairs of one key", GJ_MAX_TUPLES, nothing,
			[&]
			{
				must(q,
					 q.ops->tables->hash_expand(q.queue, &table, &view, buffers.offset,
												buffers.first, total / 2, GJ_MAX_TUPLES, 1,
												buffers.out),
					 "expand");
			});
	q.ops->tables->hash_free(q.queue, &table);
}

/* select, aggregate and gather of 2^20 tuples of a view with row ids. */
static void
bench_tuples(const Device &device)
{
	const uint32_t n = GJ_MAX_TUPLES;
	Random random(8);
	std::vector<Column> columns;
	Program program;
	const uint32_t slot_size = 64u << 20;
	uint8_t *slot = (uint8_t *) aligned_alloc(4096, slot_size);
	GjErrorText why = {};
	GjBatchTarget target = {};
	GjColumnPlace places[4];
	uint32_t filter;
	uint32_t got;

	for (uint32_t c = 0; c < 4; c++)
	{
		columns.push_back(random_column(random, GJ_INT4, 4, c / 2, n, c == 3 ? 0.1 : 0, 1000000));
		program.types.push_back(columns[c].type);
		program.outputs.push_back(c);
	}
	filter = program.expr(GJ_BOOL, {load(0, 0), constant(1, 0), op(GJ_OP_LT_I, 0, 0, 1)});
	program.aggregates.push_back(
		{GJ_AGG_SUM_I, (int32_t) program.expr(
						   GJ_INT4, {load(0, 0), load(1, 2), op(GJ_OP_ADD_I, 0, 0, 1, GJ_INT4)})});
	Queue q(device, program);
	GjView view = q.view(columns, n, {{}, random_rows(random, n, n)});
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t));

	measure(q, "aggregate sum(a+b), 2^20 tuples", n, nothing,
			[&] { must(q, q.ops->groups->aggregate(q.queue, &view), "aggregate"); });
	measure(q, "select a < 0, 2^20 tuples, half pass", n, nothing,
			[&] {
				must(q, q.ops->columns->select(q.queue, &view, filter, positions, &got), "select");
			});
	memset(slot, 0, slot_size);
	if (device.ops->host_register(device.device, slot, slot_size, &why) == GJ_OK)
	{
		gj_layout(program.types.data(), 4, n, slot_size, &target.layout, places);
		target.slot = slot;
		target.places = places;
		measure(q, "gather 4 int4 columns, 2^20 tuples", n, nothing,
				[&] {
					must(q, q.ops->columns->gather(q.queue, &view, 0, n, &target, &got), "gather");
				});
		device.ops->host_unregister(device.device, slot);
	}
	free(slot);
}

static void
bench_sort(const Device &device)
{
	const uint32_t n = 10 * MILLION;
	Random random(9);
	Program program;
	Queue q(device, program);
	std::vector<int32_t> values(n);
	int32_t *copy = (int32_t *) q.alloc((size_t) n * 4);
	int32_t *set;
	uint64_t m;

	for (int32_t &v : values)
		v = (int32_t) random();
	set = q.upload(values);
	measure(
		q, "sort_unique 10 M int4", n,
		[&] { must(q, q.ops->memory->copy(q.queue, copy, set, (size_t) n * 4), "copy"); },
		[&]
		{ must(q, q.ops->sets->sort_unique(q.queue, copy, 4, n, NULL, NULL, &m), "sort_unique"); });
}

/* Rows of two int8 columns that an exchange splits by one of them, in pieces as fragments are. */
static void
bench_split(const Device &device)
{
	const uint32_t npieces = 22;
	const uint32_t n = npieces * 757000;
	Program program;
	Queue q(device, program);
	const std::vector<int64_t> some = shuffled(n, n);
	const int64_t *const data[] = {q.upload(some), q.upload(some)};
	std::vector<GjColumn> columns(2 * npieces);
	std::vector<GjSplitPiece> pieces(npieces);
	std::vector<GjColumn> to(2);
	const GjSplitParts *parts;
	GjSplit split = {};

	for (GjColumn &c : columns)
	{
		const size_t i = &c - columns.data();
		const size_t piece = i / 2;

		c.kind = GJ_INT8;
		c.width = 8;
		c.data = data[i % 2] + piece * 757000;
		pieces[piece] = {&columns[2 * piece], NULL, 757000};
	}
	for (GjColumn &c : to)
	{
		c = columns[0];
		c.data = q.alloc(gj_split_room(n, GJ_SPLIT_PARTS) * 8);
	}
	split.npieces = npieces;
	split.pieces = pieces.data();
	split.ncolumns = 2;
	split.nkeys = 1;
	for (uint32_t nparts : {2u, 4u, 8u, 16u})
	{
		for (bool strides : {false, true})
		{
			const std::string name = "split 17 M of two int8, " + std::to_string(nparts) +
									 " parts" + (strides ? ", strides" : "");

			split.nparts = nparts;
			split.stride = strides ? gj_split_stride(n, nparts) : 0;
			measure(
				q, name.c_str(), n, [] {},
				[&] {
					must(q, q.ops->exchange->split(q.queue, &split, to.data(), never, NULL, &parts),
						 "split");
				});
		}
	}
}

void
bench(const Device &device)
{
	bench_join(device, MILLION, "build 1 M rows", "probe + expand 50 M x 1 M, by 1 M");
	bench_join(device, 10 * MILLION, "build 10 M rows", "probe + expand 50 M x 10 M, by 1 M");
	bench_skew(device);
	bench_tuples(device);
	bench_sort(device);
	bench_split(device);
}
