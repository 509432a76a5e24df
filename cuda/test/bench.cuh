/*
 * bench.cuh
 *	  What the benchmarks share.
 *
 * On a GPU, times are those of CUDA events through the phases of a queue, so waiting for results
 * is in them; the cpu device measures its phases itself.
 */
#ifndef GJ_CUDA_TEST_BENCH_CUH
#define GJ_CUDA_TEST_BENCH_CUH

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "test.cuh"

/* Ends if a call fails: a benchmark has nothing to say then. */
static inline void
must(Queue &q, GjStatus status, const char *what)
{
	if (status == GJ_OK)
		return;
	printf("%s: %s (%s)\n", what, gj_reason_text(status), q.ops->queues->queue_error(q.queue));
	exit(1);
}

/* All that the queue has done so far. */
static inline double
total_ms(Queue &q)
{
	double ms = 0;

	must(q, q.ops->queues->sync(q.queue), "sync");
	for (int i = 0; i < GJ_NPHASES; i++)
		ms += q.ops->queues->phase_ms(q.queue)[i];
	return ms;
}

static inline double
median(std::vector<double> times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

/* Buffers of a probe with GJ_MAX_TUPLES tuples. */
struct Buffers
{
	uint64_t *offset;
	uint32_t *first;
	uint32_t *out[GJ_MAX_SOURCES];

	explicit Buffers(Queue &q) : out()
	{
		offset = (uint64_t *) q.alloc((GJ_MAX_TUPLES + 1) * sizeof(uint64_t));
		first = (uint32_t *) q.alloc(GJ_MAX_TUPLES * sizeof(uint32_t));
		out[0] = (uint32_t *) q.alloc(GJ_MAX_TUPLES * sizeof(uint32_t));
		out[1] = (uint32_t *) q.alloc(GJ_MAX_TUPLES * sizeof(uint32_t));
	}
};

static inline void
nothing(void)
{
}

/* Times of `runs` calls of run(), ascending, after one that does not count, without before(). */
template <typename Before, typename Run>
static std::vector<double>
times_of(Queue &q, int runs, Before before, Run run)
{
	std::vector<double> times;

	for (int i = 0; i <= runs; i++)
	{
		double start;

		before();
		q.ops->queues->phase(q.queue, i % 2 ? GJ_PHASE_PROBE : GJ_PHASE_BUILD);
		start = total_ms(q);
		run();
		if (i > 0)
			times.push_back(total_ms(q) - start);
	}
	std::sort(times.begin(), times.end());
	return times;
}

#endif
