/*
 * bench_fused.cu
 *	  Times of the fused operator, columns on the device: kernel_test --bench-fused.
 *
 * N probe rows, in parts as resident fragments are: sums of a column, of filtered rows, of joins
 * with dimensions of several sizes (where every row, or one in 25, has a match), with groups and
 * with three joins in a row; of int4, and some of int8.  Beside most is the time of a kernel
 * written for just this, which knows types, operators and the number of steps when it is compiled,
 * and reads the same tables: what a plan that is looked at while it runs costs.  Median of RUNS
 *after one that does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>

#include "device/fused_rows.h"
#include "../internal.cuh"
#include "bench_plan.cuh"

#define NOUTER 4 /* k, v, w, x */
#define GROUPS 1000

/* ---- kernels of one purpose */

/* Adds what all lanes of a warp have. */
static __device__ __forceinline__ void
add_warp(long long mine, unsigned long long *sum)
{
	for (uint32_t distance = 16; distance > 0; distance /= 2)
		mine += __shfl_down_sync(0xFFFFFFFF, mine, distance);
	if (threadIdx.x % 32 == 0)
		atomicAdd(sum, (unsigned long long) mine);
}

static __global__ void
plain_sum(const int32_t *v, uint32_t n, unsigned long long *sum)
{
	long long mine = 0;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		mine += v[i];
	add_warp(mine, sum);
}

static __global__ void
plain_filter(const int32_t *v, const int32_t *w, const int32_t *x, uint32_t n,
			 unsigned long long *sum)
{
	long long mine = 0;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
	{
		if (w[i] >= 100 && w[i] <= 300 && x[i] < 500)
			mine += (long long) v[i] * w[i];
	}
	add_warp(mine, sum);
}

static __global__ void
plain_join(const int32_t *k, const int32_t *v, uint32_t n, const GjHashSlot *slots, uint64_t nslots,
		   const int32_t *build_side, unsigned long long *sum)
{
	long long mine = 0;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
	{
		const int64_t key = k[i];
		uint64_t s = gj_hash_slot(gj_hash_mix((uint64_t) key), nslots);

		for (;;)
		{
			const GjHashSlot slot = gj_load_slot(slots, s);

			if (slot.count == 0)
				break;
			if (slot.key == (uint64_t) key)
			{
				mine += v[i] + build_side[slot.start];
				break;
			}
			if (++s == nslots)
				s = 0;
		}
	}
	add_warp(mine, sum);
}

/* ---- data */

struct Bench
{
	const Device &device;
	bool wide; /* columns are int8 */
	Program program;
	Queue q;
	GjColumn probe_side[NOUTER];
	std::vector<GjColumn> part_columns;
	std::vector<GjFusedPart> parts;
	uint32_t n;
	uint64_t *plain; /* sum of a kernel of one purpose */

	Bench(const Device &device, bool wide);
	GjColumn column(const std::vector<int32_t> &values);
	GjHashTable table(uint32_t nrows, uint64_t direct_bytes, uint32_t gap = 1);
	void time(const char *what, const GjFusedPlan &plan, const GjColumn *build_side,
			  const GjGroups *groups, int plain_kind, const GjHashTable *table);
	double time_plain(int kind, const GjHashTable *table, const GjColumn *build_side);
	void put_filter(GjHashTable &table, GjFusedStep &step);
	void put_payloads(GjHashTable &table, const GjColumn &column, uint32_t nrows,
					  GjFusedStep &step);
	void use_keys(const std::vector<int32_t> &keys);
	void time_gaps(uint32_t rows, const GjColumn *build_side);
};

/* Columns of the program: the probe rows, and v of up to three dimensions. */
static Program
make_program(bool wide)
{
	Program program;

	for (uint32_t c = 0; c < NOUTER + 3; c++)
		program.types.push_back({(uint8_t) (wide ? GJ_INT8 : GJ_INT4), (uint8_t) (wide ? 8 : 4), 0,
								 (uint8_t) (c < NOUTER ? 0 : c - NOUTER + 1)});
	program.aggregates.push_back({GJ_AGG_COUNT_STAR, -1});
	program.aggregates.push_back(
		{GJ_AGG_SUM_I, (int32_t) program.expr(wide ? GJ_INT8 : GJ_INT4, {load(0, 1)})});
	return program;
}

Bench::Bench(const Device &d, bool is_wide)
	: device(d), wide(is_wide), program(make_program(wide)), q(d, program), probe_side(), n(0)
{
	const uint32_t nparts = quick ? 4 : PARTS;
	std::vector<int32_t> values((size_t) nparts * PART_ROWS);

	n = nparts * PART_ROWS;
	for (uint32_t c = 0; c < NOUTER; c++)
	{
		/* k: spread over all 32 bits, to be taken modulo a dimension's rows; others: 0 .. 999 */
		for (uint32_t i = 0; i < n; i++)
		{
			const uint32_t r = (i * 4 + c) * 2654435761u;

			values[i] = (int32_t) (c == 0 ? r >> 1 : (r >> 8) % 1000);
		}
		probe_side[c] = column(values);
	}
	plain = (uint64_t *) q.alloc(sizeof(uint64_t));
	part_columns.resize((size_t) nparts * NOUTER);
	for (uint32_t p = 0; p < nparts; p++)
	{
		for (uint32_t c = 0; c < NOUTER; c++)
		{
			GjColumn *to = &part_columns[p * NOUTER + c];

			*to = probe_side[c];
			to->data =
				(const uint8_t *) probe_side[c].data + (size_t) p * PART_ROWS * probe_side[c].width;
		}
		parts.push_back({&part_columns[p * NOUTER], PART_ROWS});
	}
}

GjColumn
Bench::column(const std::vector<int32_t> &values)
{
	GjColumn column = {};

	if (wide)
		column.data = q.upload(std::vector<int64_t>(values.begin(), values.end()));
	else
		column.data = q.upload(values);
	column.kind = wide ? GJ_INT8 : GJ_INT4;
	column.width = wide ? 8 : 4;
	return column;
}

/* A table of rows 0 .. nrows-1, row i of key i * gap, or, with gaps, row i of another one. */
GjHashTable
Bench::table(uint32_t nrows, uint64_t direct_bytes, uint32_t gap)
{
	std::vector<int64_t> key(nrows);
	GjHashTable table;
	GjKeys keys = {};

	for (uint32_t i = 0; i < nrows; i++)
		key[i] = gap == 1 ? i : (int64_t) ((uint64_t) i * 104729 % nrows) * gap;
	keys.nkeys = 1;
	keys.nrows = nrows;
	keys.value[0] = q.upload(key);
	keys.null = q.upload(Bytes(nrows));
	must(q, q.ops->tables->hash_build(q.queue, &keys, NULL, direct_bytes, never, NULL, &table),
		 "hash_build");
	return table;
}

/* Gives a table payloads, once, and tells how long that took. */
void
Bench::put_payloads(GjHashTable &table, const GjColumn &column, uint32_t nrows, GjFusedStep &step)
{
	const auto start = std::chrono::steady_clock::now();

	if (!table.has_payload)
	{
		must(q, q.ops->tables->hash_payload(q.queue, &table, &column, nrows, &table.has_payload),
			 "hash_payload");
		printf("payloads of %u rows: %.3f ms\n", nrows,
			   std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
				   .count());
	}
	step.payload = NOUTER;
	step.table = gj_table_ref(&table);
}

/* Gives a table a filter, once, and tells how long that took. */
void
Bench::put_filter(GjHashTable &table, GjFusedStep &step)
{
	const auto start = std::chrono::steady_clock::now();

	if (!table.has_filter)
	{
		must(q, q.ops->tables->hash_filter(q.queue, &table), "hash_filter");
		must(q, q.ops->queues->sync(q.queue), "sync");
		printf("filter of %u rows, %u KB: %.3f ms\n", table.nrows, table.nkey_filter / 256,
			   std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
				   .count());
	}
	step.table = gj_table_ref(&table);
}

/* Makes them the probe column k. */
void
Bench::use_keys(const std::vector<int32_t> &keys)
{
	const GjColumn k = column(keys);

	probe_side[0] = k;
	for (size_t p = 0; p < parts.size(); p++)
	{
		part_columns[p * NOUTER] = k;
		part_columns[p * NOUTER].data = (const uint8_t *) k.data + p * PART_ROWS * k.width;
	}
}

double
Bench::time_plain(int kind, const GjHashTable *table, const GjColumn *build_side)
{
	std::vector<double> times;
	const uint32_t blocks = (uint32_t) device.device->nprocessors * 8;
	unsigned long long *sum = (unsigned long long *) plain;
	cudaEvent_t start, end;
	const int32_t *c[NOUTER];

	for (uint32_t i = 0; i < NOUTER; i++)
		c[i] = (const int32_t *) probe_side[i].data;
	cudaEventCreate(&start);
	cudaEventCreate(&end);
	for (int i = 0; i <= RUNS; i++)
	{
		float ms = 0;

		cudaEventRecord(start, q.queue->stream);
		if (kind == 0)
			plain_sum<<<blocks, 256, 0, q.queue->stream>>>(c[1], n, sum);
		else if (kind == 1)
			plain_filter<<<blocks, 256, 0, q.queue->stream>>>(c[1], c[2], c[3], n, sum);
		else
			plain_join<<<blocks, 256, 0, q.queue->stream>>>(
				c[0], c[1], n, table->slots, table->nslots, (const int32_t *) build_side->data,
				sum);
		cudaEventRecord(end, q.queue->stream);
		cudaEventSynchronize(end);
		cudaEventElapsedTime(&ms, start, end);
		if (i > 0)
			times.push_back(ms);
	}
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	return median(times);
}

void
Bench::time(const char *what, const GjFusedPlan &plan, const GjColumn *build_side,
			const GjGroups *groups, int plain_kind, const GjHashTable *table)
{
	const double *ms = q.ops->queues->phase_ms(q.queue);
	std::vector<GjColumn> columns(NOUTER + 3);
	std::vector<double> times;
	static GjFusedMissed missed;

	memcpy(columns.data(), probe_side, sizeof(probe_side));
	for (uint32_t i = 0; i < 3; i++)
		columns[NOUTER + i] = build_side[i];
	if (groups)
		for (uint32_t s = 0; s <= plan.nsteps; s++)
			missed.rowid[s] = (uint32_t *) q.alloc((size_t) n * sizeof(uint32_t));
	for (int i = 0; i <= RUNS; i++)
	{
		double before;

		must(q, q.ops->queues->sync(q.queue), "sync");
		before = ms[GJ_PHASE_PROBE];
		q.ops->queues->phase(q.queue, GJ_PHASE_PROBE);
		must(q,
			 q.ops->pass->fused(q.queue, &plan, columns.data(), parts.data(),
								(uint32_t) parts.size(), UINT64_MAX, groups,
								groups ? &missed : NULL),
			 "fused");
		q.ops->queues->phase(q.queue, GJ_PHASE_WAIT);
		must(q, q.ops->queues->sync(q.queue), "sync");
		if (i > 0)
			times.push_back(ms[GJ_PHASE_PROBE] - before);
	}
	const double t = median(times);

	printf("%-44s %8.3f ms %8.2f G rows/s", what, t, n / t / 1e6);
	if (plain_kind >= 0 && device.ops->kind == GJ_DEVICE_CUDA)
	{
		const double p = time_plain(plain_kind, table, build_side);

		printf("   a kernel of its own %8.3f ms %8.2f G rows/s", p, n / p / 1e6);
	}
	printf("\n");
	fflush(stdout);
}

/* ---- plans */

static GjFusedPlan
empty_plan()
{
	GjFusedPlan plan = {};

	plan.ncolumns = NOUTER + 3;
	plan.nprobe_columns = NOUTER;
	return plan;
}

/* Joins on k % (rows * one_in). */
static void
add_step(GjFusedPlan &plan, const GjHashTable &table, uint32_t rows, uint32_t one_in)
{
	GjFusedStep &step = plan.steps[plan.nsteps++];

	step.table = gj_table_ref(&table);
	step.join_type = GJ_JOIN_INNER;
	step.source = plan.nsteps;
	step.nkeys = 1;
	step.first_key = plan.nexprs;
	plan.exprs[plan.nexprs++] = binary(GJ_OP_MOD_I, 0, 0, -1, 0, (int64_t) rows * one_in);
}

/* Groups 0 .. n-1 by one integer. */
static GjGroups
make_groups(Queue &q, uint32_t n)
{
	std::vector<int64_t> value(n);
	GjGroups groups = {};
	GjGroupRows tuples;
	uint64_t nbytes;

	groups.rows.nkeys = 1;
	groups.rows.how[0] = GJ_GROUP_INTEGER;
	for (uint32_t i = 0; i < n; i++)
		value[i] = i;
	tuples = groups.rows;
	tuples.nrows = n;
	tuples.value[0] = q.upload(value);
	tuples.null = q.upload(std::vector<uint32_t>(n));
	must(q, add_groups(q, tuples, 4 * (uint64_t) n, 2, groups, &nbytes), "groups");
	return groups;
}

/* A join with a direct table, every fourth place of which has a row, with and without payloads. */
void
Bench::time_gaps(uint32_t rows, const GjColumn *build_side)
{
	const uint32_t gap = 4;
	GjHashTable direct = table(rows, (uint64_t) rows * 24, gap);
	GjFusedPlan plan = empty_plan();
	std::vector<int32_t> keys(n);
	char what[80];

	add_step(plan, direct, rows, 1);
	for (uint32_t i = 0; i < n; i++)
		keys[i] = (int32_t) (((uint64_t) (i * 2654435761u) * rows) >> 32) * (int32_t) gap;
	use_keys(keys);
	plan.exprs[0] = binary(GJ_OP_LOAD, 0, 0, -1, 0, 0);
	add_aggregates(plan, binary(GJ_OP_ADD_I, 1, 0, NOUTER, 1, 0));
	snprintf(what, sizeof(what), "the same, direct, key %% %u = 0", gap);
	time(what, plan, build_side, NULL, -1, NULL);
	put_payloads(direct, build_side[0], rows, plan.steps[0]);
	time("the same, values beside its places", plan, build_side, NULL, -1, NULL);
	put_filter(direct, plan.steps[0]);
	time("the same, with a filter", plan, build_side, NULL, -1, NULL);
	/* of all keys between the least and the greatest */
	for (uint32_t i = 0; i < n; i++)
		keys[i] = (int32_t) (((uint64_t) (i * 2654435761u) * ((uint64_t) rows * gap)) >> 32);
	use_keys(keys);
	time("the same, 1 row in 4 passes", plan, build_side, NULL, -1, NULL);
	plan.steps[0].table.has_filter = false;
	time("the same, without a filter", plan, build_side, NULL, -1, NULL);
}

static void
bench_columns(const Device &device, bool wide)
{
	static const uint32_t sizes[] = {2048, 32768, 1u << 20, 10000000, 1u << 26, 1u << 28};
	Bench bench(device, wide);
	Queue &q = bench.q;
	GjColumn build_side[3] = {};
	GjFusedPlan plan = empty_plan();
	GjFusedPlan three = empty_plan();
	GjHashTable small = bench.table(2048, 2048 * 24);
	GjGroups groups = make_groups(q, GROUPS);
	char what[80];

	add_aggregates(plan, binary(GJ_OP_LOAD, 1, 0, -1, 0, 0));
	bench.time("sum(v)", plan, build_side, NULL, wide ? -1 : 0, NULL);

	plan = empty_plan();
	plan.filter.form = GJ_FUSED_ALL_TERMS;
	plan.filter.n = plan.nterms = 2;
	plan.terms[0] = range(2, 100, 300);
	plan.terms[1] = range(3, INT64_MIN, 499);
	add_aggregates(plan, binary(wide ? GJ_OP_ADD_I : GJ_OP_MUL_I, 1, 0, 2, 0, 0));
	bench.time(wide ? "sum(v + w), three comparisons" : "sum(v * w), three comparisons", plan,
			   build_side, NULL, wide ? -1 : 1, NULL);

	build_side[0] = build_side[1] = build_side[2] = bench.column(std::vector<int32_t>(2048, 7));
	for (uint32_t i = 0; i < 3; i++)
		add_step(three, small, 2048, i == 0 ? 25 : 1);
	add_aggregates(three, binary(GJ_OP_ADD_I, 1, 0, NOUTER, 1, 0));
	bench.time("three joins, 1 row in 25 passes", three, build_side, NULL, -1, NULL);
	three.ngroup_keys = 1;
	three.group_how[0] = GJ_GROUP_INTEGER;
	three.group_expr[0] = three.nexprs;
	three.exprs[three.nexprs++] = binary(GJ_OP_LOAD, 2, 0, -1, 0, 0);
	bench.time("the same, 1000 groups", three, build_side, &groups, -1, NULL);

	/* the same of columns, as most keys are: the first one has a match for 40 values of 1 000 */
	for (uint32_t i = 0; i < 3; i++)
	{
		const GjHashTable build_table = bench.table(i == 0 ? 40 : 2048, 2048 * 24);

		three.exprs[i] = binary(GJ_OP_LOAD, (int16_t) (i + 1), 0, -1, 0, 0);
		three.steps[i].table = gj_table_ref(&build_table);
	}
	bench.time("three joins of columns, 1000 groups", three, build_side, &groups, -1, NULL);
	three.ngroup_keys = 0;
	bench.time("the same without groups", three, build_side, NULL, -1, NULL);

	for (uint32_t rows : sizes)
	{
		if (quick && rows > 1u << 20)
			break;

		/* of the largest ones only what does not fit L2 in any way: look-ups in slots */
		const bool large = rows > 10000000;
		GjHashTable table = bench.table(rows, 0);
		GjHashTable direct = large ? table : bench.table(rows, (uint64_t) rows * 24);

		build_side[0] = bench.column(std::vector<int32_t>(rows, 7));
		for (uint32_t one_in = 1; one_in <= 25; one_in += 24)
		{
			std::vector<int32_t> keys(bench.n);

			plan = empty_plan();
			add_step(plan, table, rows, one_in);
			/* no modulo: what is measured is the join */
			for (uint32_t i = 0; i < bench.n; i++)
				keys[i] = (int32_t) (((uint64_t) (i * 2654435761u) * rows * one_in) >> 32);
			bench.use_keys(keys);
			plan.exprs[0] = binary(GJ_OP_LOAD, 0, 0, -1, 0, 0);
			add_aggregates(plan, binary(GJ_OP_ADD_I, 1, 0, NOUTER, 1, 0));
			snprintf(what, sizeof(what), "join with %u rows%s", rows,
					 one_in > 1 ? ", 1 row in 25 passes" : "");
			bench.time(what, plan, build_side, NULL, wide || large ? -1 : 2, &table);
			if (q.ops->tables->reads_payloads)
			{
				bench.put_payloads(table, build_side[0], rows, plan.steps[0]);
				bench.time("the same, values in its slots", plan, build_side, NULL, -1, NULL);
				if (rows <= 1u << 26)
				{
					bench.put_filter(table, plan.steps[0]);
					bench.time("the same, with a filter", plan, build_side, NULL, -1, NULL);
				}
				if (one_in == 1 && rows < 1u << 28)
					bench.time_gaps(rows, build_side);
				bench.use_keys(keys);
			}
			if (large)
				continue;
			plan.nsteps = plan.nexprs = 0;
			add_step(plan, direct, rows, one_in);
			plan.exprs[0] = binary(GJ_OP_LOAD, 0, 0, -1, 0, 0);
			add_aggregates(plan, binary(GJ_OP_ADD_I, 1, 0, NOUTER, 1, 0));
			bench.time("the same, direct", plan, build_side, NULL, -1, NULL);
			if (one_in > 1 || wide)
				continue;
			plan.ngroup_keys = 1;
			plan.group_how[0] = GJ_GROUP_INTEGER;
			plan.group_expr[0] = plan.nexprs;
			plan.exprs[plan.nexprs++] = binary(GJ_OP_MOD_I, 0, 0, -1, 0, GROUPS);
			snprintf(what, sizeof(what), "join with %u rows, groups k %% 1000", rows);
			bench.time(what, plan, build_side, &groups, -1, NULL);
		}
	}
}

void
bench_fused(const Device &device)
{
	bench_columns(device, false);
	printf("the same of int8\n");
	bench_columns(device, true);
}
