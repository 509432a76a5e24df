/*
 * blocks.cuh
 *	  How many blocks a kernel is started with.
 */
#ifndef GJ_CUDA_BLOCKS_CUH
#define GJ_CUDA_BLOCKS_CUH

#include "internal.cuh"

/* As many blocks of a kernel as the device runs at once, if there are as many chunks. */
template <typename Kernel>
static GjStatus
blocks_at_once(GjQueue *queue, Kernel kernel, size_t nbytes, uint32_t nchunks, uint32_t *blocks)
{
	int per_sm = 0;

	GJ_CUDA(queue,
			cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, GJ_THREADS, nbytes));
	*blocks = min(nchunks, (uint32_t) queue->device->nprocessors * (uint32_t) max(per_sm, 1));
	return GJ_OK;
}

#endif /* GJ_CUDA_BLOCKS_CUH */
