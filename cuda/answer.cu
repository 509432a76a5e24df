/*
 * answer.cu
 *	  Answers the questions of a program for the values of dictionaries.
 *
 * A row of blocks works on one dictionary (blockIdx.y).
 */
#include <algorithm>

#include "rows/questions.h"
#include "tile.cuh"

#define ANSWER_BLOCKS 64u /* of a dictionary, at most */

/* One value a thread and tile: an error is that value's. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	answer_values(GjCode code, const GjQuestion *questions, const GjAsked *asked,
				  uint32_t nregisters, uint8_t *known)
{
	extern __shared__ int64_t memory[];
	const GjTile tile = gj_tile_at(memory, nregisters, GJ_THREADS);
	const GjAsked &mine = asked[blockIdx.y];
	const uint32_t nvalues = (uint32_t) mine.column.factor;
	uint32_t status = GJ_OK;

	for (uint32_t base = blockIdx.x * GJ_THREADS; base < nvalues; base += gridDim.x * GJ_THREADS)
	{
		const uint32_t n = min(GJ_THREADS, nvalues - base);

		for (uint32_t q = 0; q < mine.nquestions; q++)
			gj_answer_question(&code, &questions[mine.first + q], &mine, base, n, &tile, &status);
	}
	if (status != GJ_OK)
		known[blockIdx.y] = 0;
}

GjStatus
gj_answer_questions(GjQueue *queue, const GjQuestion *questions, uint32_t nquestions,
					const GjAsked *asked, uint32_t n, uint8_t *known)
{
	const size_t asked_at = gj_align(nquestions * sizeof(GjQuestion));
	const size_t known_at = asked_at + gj_align(n * sizeof(GjAsked));
	uint32_t nregisters = 1;
	uint32_t most = 1;
	uint8_t *device;
	void *memory;

	GJ_TRY(gj_enter(queue));
	for (uint32_t q = 0; q < nquestions; q++)
		nregisters = std::max(nregisters, questions[q].nregisters);
	for (uint32_t i = 0; i < n; i++)
		most = std::max(most, (uint32_t) asked[i].column.factor);
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, known_at + n, &memory));
	device = (uint8_t *) memory;
	GJ_CUDA(queue, cudaMemcpyAsync(device, questions, nquestions * sizeof(GjQuestion),
								   cudaMemcpyHostToDevice, queue->stream));
	GJ_CUDA(queue, cudaMemcpyAsync(device + asked_at, asked, n * sizeof(GjAsked),
								   cudaMemcpyHostToDevice, queue->stream));
	GJ_CUDA(queue, cudaMemsetAsync(device + known_at, 1, n, queue->stream));
	answer_values<<<dim3(std::min(gj_blocks(most, GJ_THREADS), ANSWER_BLOCKS), n), GJ_THREADS,
					(size_t) nregisters * GJ_THREADS *(sizeof(int64_t) + 1), queue->stream>>>(
		queue->code, (const GjQuestion *) device, (const GjAsked *) (device + asked_at), nregisters,
		device + known_at);
	GJ_LAUNCHED(queue, "answer_values");
	GJ_CUDA(queue,
			cudaMemcpyAsync(known, device + known_at, n, cudaMemcpyDeviceToHost, queue->stream));
	return gj_wait(queue);
}
