/*
 * select.cu
 *	  Filters: positions of the tuples that an expression accepts (select), and row
 *	  ids (pick) or values (pick_values) at positions.
 */
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "tile.cuh"

/* flags[i] = 1 if expression `e` is TRUE for tuple i; one tile a block. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	select_flags(GjCode code, const __grid_constant__ GjView view, uint32_t e, uint32_t nregisters,
				 uint32_t rows, uint8_t *flags, GjResults *results)
{
	extern __shared__ int64_t memory[];
	const GjTile tile = gj_tile_at(memory, nregisters, rows);
	const uint32_t base = blockIdx.x * rows;
	const uint32_t n = min(rows, view.nrows - base);
	const uint32_t result = code.exprs[e].result * rows;
	uint32_t status = GJ_OK;

	gj_eval(&code, e, &view, base, n, &tile, &status);
	GJ_TILE_FOR(i, n)
	{
		flags[base + i] = !tile.null[result + i] && tile.value[result + i] != 0;
	}
	gj_note_error(results, status);
}

static GjStatus
gj_select(GjQueue *queue, const GjView *view, uint32_t expr, uint32_t *positions, uint32_t *n)
{
	const GjExpr *e;
	uint32_t rows;
	void *flags;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	if (view->nrows == 0)
		return gj_wait(queue);
	e = gj_queue_expr(queue, expr);
	rows = gj_tile_rows(e->nregisters);
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, view->nrows, &flags));
	select_flags<<<gj_blocks(view->nrows, rows), GJ_THREADS, gj_tile_bytes(e->nregisters),
				   queue->stream>>>(queue->code, *view, expr, e->nregisters, rows,
									(uint8_t *) flags, queue->results);
	GJ_LAUNCHED(queue, "select_flags");
	GJ_CUB(queue, cub::DeviceSelect::Flagged, thrust::counting_iterator<uint32_t>(0),
		   (const uint8_t *) flags, positions, &queue->results->n, (int64_t) view->nrows);
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS) pick_rows(uint32_t *to, const uint32_t *from, uint32_t base,
										const uint32_t *positions, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = from ? from[positions[i]] : base + positions[i];
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	pick_longs(int64_t *to, const int64_t *from, const uint32_t *positions, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = from[positions[i]];
}

static GjStatus
gj_pick_values(GjQueue *queue, int64_t *to, const int64_t *from, const uint32_t *positions,
			   uint32_t n)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	pick_longs<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(to, from, positions, n);
	GJ_LAUNCHED(queue, "pick_longs");
	return GJ_OK;
}

static GjStatus
gj_pick(GjQueue *queue, uint32_t *to, const uint32_t *from, uint32_t base,
		const uint32_t *positions, uint32_t n)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	pick_rows<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(to, from, base, positions,
																		  n);
	GJ_LAUNCHED(queue, "pick_rows");
	return GJ_OK;
}

const GjColumnOps gj_cuda_columns = {
	.measure = gj_measure,
	.pack = gj_pack,
	.unpack = gj_unpack,
	.number_values = gj_number_values,
	.find_offsets = gj_find_offsets,
	.move_values = gj_move_values,
	.pack_offsets = gj_pack_offsets,
	.answer = gj_answer_questions,
	.rebase_refs = gj_rebase_refs,
	.set_columns = gj_set_columns,
	.select = gj_select,
	.pick = gj_pick,
	.pick_values = gj_pick_values,
	.keys = gj_keys,
	.ordered_keys = gj_ordered_keys,
	.select_flags = gj_select_flags,
	.gather = gj_gather,
};
