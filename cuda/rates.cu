/*
 * rates.cu
 *	  Measures how fast a GPU sorts and looks at pairs when it is opened: the planner's costs
 *	  of sort-merge and of nested loops follow from that.
 *
 * Both are the operators that joins use, on a queue of their own, by the clock: the fastest of
 * GJ_MEASUREMENTS calls, some milliseconds together.
 */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <algorithm>

#include "rows/hash.h"
#include "internal.cuh"

#define SORT_ROWS (1u << 20)
#define PAIR_TUPLES (1u << 12)
#define PAIR_ROWS (1u << 14)

/* A condition of two int4 columns, one of each source, as an expression. */
typedef struct PairProgram
{
	GjProgram program;
	GjSource sources[2];
	GjColumnType columns[2];
	GjExpr exprs[1];
	GjInstr instrs[3];
} PairProgram;

static void
make_program(PairProgram *p)
{
	memset(p, 0, sizeof(*p));
	p->program.magic = GJ_PROGRAM_MAGIC;
	p->program.nbytes = sizeof(*p);
	p->program.kind = GJ_PROGRAM_JOIN;
	p->program.nsources = 2;
	p->program.sources = offsetof(PairProgram, sources);
	p->program.ncolumns = 2;
	p->program.columns = offsetof(PairProgram, columns);
	p->program.nexprs = 1;
	p->program.exprs = offsetof(PairProgram, exprs);
	p->program.ninstrs = 3;
	p->program.instrs = offsetof(PairProgram, instrs);
	for (uint32_t s = 0; s < 2; s++)
	{
		p->sources[s].first_column = s;
		p->sources[s].ncolumns = 1;
		p->sources[s].filter = -1;
		p->columns[s].kind = GJ_INT4;
		p->columns[s].width = 4;
		p->columns[s].source = (uint8_t) s;
		p->instrs[s].op = GJ_OP_LOAD;
		p->instrs[s].dst = (uint16_t) s;
		p->instrs[s].arg = s;
	}
	p->instrs[2].op = GJ_OP_LT_I;
	p->instrs[2].b = 1;
	p->exprs[0].ninstrs = 3;
	p->exprs[0].nregisters = 2;
	p->exprs[0].kind = GJ_BOOL;
}

static __global__ void
__launch_bounds__(GJ_THREADS) fill_values(int64_t *values, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		values[i] = (int64_t) gj_hash_mix(i);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Sorts SORT_ROWS random keys; *rate: the best so far, in keys a second. */
static GjStatus
measure_sort(GjQueue *queue, double *rate)
{
	GjKeys keys = {};
	GjHashTable table;
	double start;

	keys.nkeys = 1;
	keys.nrows = SORT_ROWS;
	keys.value[0] = (int64_t *) gj_alloc(queue, SORT_ROWS * sizeof(int64_t));
	keys.null = (uint8_t *) gj_alloc(queue, SORT_ROWS);
	if (keys.value[0] == NULL || keys.null == NULL)
		return gj_no_memory(queue);
	fill_values<<<gj_blocks(SORT_ROWS, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(keys.value[0],
																					SORT_ROWS);
	GJ_LAUNCHED(queue, "fill_values");
	GJ_CUDA(queue, cudaMemsetAsync(keys.null, 0, SORT_ROWS, queue->stream));
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	start = now();
	GJ_TRY(gj_sort_build(queue, &keys, NULL, NULL, NULL, &table));
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	*rate = std::max(*rate, SORT_ROWS / (now() - start));
	gj_hash_free(queue, &table);
	return GJ_OK;
}

/* Looks at all pairs of two columns; *rate: the best so far, in pairs a second. */
static GjStatus
measure_pairs(GjQueue *queue, const GjView *view, double *rate)
{
	const uint64_t ntiles = gj_nested_tiling(PAIR_TUPLES, PAIR_ROWS).ntiles;
	GjNested nested = {};
	const double start = now();
	uint32_t ndone;
	uint64_t npairs;

	nested.view = view;
	nested.nrows = PAIR_ROWS;
	nested.build_source = 1;
	for (uint64_t tile = 0; tile < ntiles; tile += ndone)
		GJ_TRY(gj_nested_loop(queue, &nested, tile, (uint32_t) (ntiles - tile), &ndone, &npairs));
	*rate = std::max(*rate, (double) PAIR_TUPLES * PAIR_ROWS / (now() - start));
	return GJ_OK;
}

static GjStatus
measure(GjQueue *queue, GjDeviceInfo *info)
{
	GjColumn columns[2] = {};
	GjView view = {};
	int64_t *values;

	info->sort_rate = info->pair_rate = 0;
	for (int i = 0; i < GJ_MEASUREMENTS; i++)
		GJ_TRY(measure_sort(queue, &info->sort_rate));

	values = (int64_t *) gj_alloc(queue, PAIR_ROWS * sizeof(int64_t));
	if (values == NULL)
		return gj_no_memory(queue);
	fill_values<<<gj_blocks(PAIR_ROWS, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(values,
																					PAIR_ROWS);
	GJ_LAUNCHED(queue, "fill_values");
	for (int s = 0; s < 2; s++)
	{
		columns[s].data = (const uint8_t *) values;
		columns[s].kind = GJ_INT4;
		columns[s].width = 4;
	}
	GJ_TRY(gj_cuda_device.columns->set_columns(queue, columns, 2, &view.columns));
	view.nrows = PAIR_TUPLES;
	for (int i = 0; i < GJ_MEASUREMENTS; i++)
		GJ_TRY(measure_pairs(queue, &view, &info->pair_rate));
	return GJ_OK;
}

bool
gj_measure_joins(GjDevice *device, GjErrorText *why)
{
	GjDeviceInfo info = device->info;
	PairProgram program;
	GjQueue *queue = NULL;
	GjStatus status;
	GjErrorText text = {};

	make_program(&program);
	status = gj_cuda_device.queues->queue_open(device, &program.program, &queue, why);
	if (status == GJ_OK)
	{
		status = measure(queue, &info);
		/* a failed measurement leaves the rates as they were; a lost device is the end */
		if (gj_cuda_device.queues->queue_close(queue, &text) == GJ_DEVICE_LOST)
		{
			*why = text;
			return false;
		}
	}
	if (status == GJ_OK)
		device->info = info;
	return status != GJ_DEVICE_LOST;
}
