/*
 * membership.cu
 *	  Sets out of the sorted rows of a membership table: where each begins, and its size.
 */
#include "internal.cuh"

static __global__ void
__launch_bounds__(GJ_THREADS) flag_changes(const __grid_constant__ GjKeys keys, uint32_t nkeys,
										   uint32_t distance, uint8_t *flags)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	bool differs = i < distance;

	if (i >= keys.nrows)
		return;
	for (uint32_t k = 0; k < nkeys && !differs; k++)
		differs = keys.value[k][i] != keys.value[k][i - distance];
	flags[i] = differs;
}

GjStatus
gj_flag_changes(GjQueue *queue, const GjKeys *keys, uint32_t nkeys, uint32_t distance,
				uint8_t *flags)
{
	GJ_TRY(gj_enter(queue));
	if (keys->nrows == 0)
		return GJ_OK;
	flag_changes<<<gj_blocks(keys->nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*keys, nkeys, distance, flags);
	GJ_LAUNCHED(queue, "flag_changes");
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	subtract_starts(const uint32_t *starts, uint32_t n, uint32_t nrows, int32_t *size)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		size[i] = (int32_t) ((i + 1 < n ? starts[i + 1] : nrows) - starts[i]);
}

GjStatus
gj_run_sizes(GjQueue *queue, const uint32_t *starts, uint32_t n, uint32_t nrows, int32_t *size)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	subtract_starts<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(starts, n, nrows,
																				size);
	GJ_LAUNCHED(queue, "subtract_starts");
	return GJ_OK;
}
