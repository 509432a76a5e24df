/*
 * internal.cuh
 *	  What the files of the cuda device share: device, queue, memory and errors.
 *
 * device.cu and queue.cu own the structs; the operators, one file each, take a queue and put
 * their work on its stream.  Small results come back through GjResults: kernels
 * write the device copy, gj_wait brings it to the queue's pinned block.
 *
 * A queue that met a row error or a device error keeps it: every later call returns
 * the same status.  GJ_OUT_OF_MEMORY is not kept.
 */
#ifndef GJ_CUDA_INTERNAL_CUH
#define GJ_CUDA_INTERNAL_CUH

#include <pthread.h>

#include <cuda_runtime.h>

#ifndef GJ_WITH_CUDA
#define GJ_WITH_CUDA /* declares gj_cuda_device */
#endif
#include "device/device.h"

#define GJ_THREADS 256 /* of a block, in most kernels */
#define GJ_EVENTS 64   /* phase marks that wait to be resolved */

/* What a waiting call brings back; device memory and, as a copy, pinned. */
typedef struct GjResults
{
	uint32_t error; /* GjStatus of a row, the first one noted */
	uint32_t n;
	uint64_t total;
	uint32_t max_rank; /* hash_build: these two are reset together */
	uint32_t nrows;
	uint64_t unused;
} GjResults;

/*
 * Pinned host memory of one queue.  Device memory has the same up to the last state of the program:
 * one copy brings back all that a run ends with.
 */
typedef struct GjPinnedResults
{
	GjResults results;
	uint64_t fused_counts[GJ_FUSED_STEPS + 1];
	GjAggState states[GJ_MAX_AGGREGATES];
	uint32_t missed[GJ_FUSED_PARTS];
	GjSplitParts split_parts;
	int64_t value[GJ_MAX_KEYS];   /* sorts: of rows */
	struct GjPinnedResults *next; /* in the device's list, while no queue has it */
} GjPinnedResults;

#define GJ_MAX_PEERS 64 /* the bits of a mask */

/* What copies from another device go through, made on that device: see gj_load_peer. */
typedef struct GjPeer
{
	cudaStream_t stream; /* NULL: not needed yet */
	cudaEvent_t done;
} GjPeer;

#define GJ_SMALL_LEAST ((size_t) 256)
#define GJ_SMALL_CLASSES 13 /* up to 1 MB */
#define GJ_SMALL_BLOCKS 16  /* of a class: 32 MB in all */

/* What CUDA made for a queue, and another one can use: that takes longer than a small query. */
typedef struct GjKit
{
	cudaStream_t stream;       /* GJ_LANE_WORK */
	cudaStream_t load;         /* GJ_LANE_LOAD; NULL: not needed yet */
	GjPeer peer[GJ_MAX_PEERS]; /* of GJ_LANE_LOAD, by CUDA's ordinal of the other device */
	cudaEvent_t event[GJ_EVENTS + 1];
	uint32_t nevents;
	cudaEvent_t mark[2 * GJ_MAX_MARKS + 1]; /* all that a queue may have, and one between */
	uint32_t nmarks;
	/* free blocks of GJ_SMALL_LEAST << class bytes, for what `stream` does behind their use */
	void *small[GJ_SMALL_CLASSES][GJ_SMALL_BLOCKS];
	uint32_t nsmall[GJ_SMALL_CLASSES];
	struct GjKit *next; /* in the device's list, while no queue has it */
} GjKit;

/* Buffers that an operator fills and that live until the next call of an operator. */
typedef enum GjScratch
{
	GJ_SCRATCH_CUB,
	GJ_SCRATCH_A,
	GJ_SCRATCH_B,    /* set_tile: counts; its parts use A */
	GJ_SCRATCH_LIST, /* fused: these two */
	GJ_SCRATCH_LIST_2,
	GJ_NSCRATCHES
} GjScratch;

typedef struct GjDeviceBlock
{
	void *memory;
	size_t nbytes;
} GjDeviceBlock;

/* After which steps a plan's tuples are written to lists: see choose_cuts. */
typedef struct GjFusedCuts
{
	GjFusedPlan plan;
	uint32_t cuts;
	uint32_t nuses;
} GjFusedCuts;

#define GJ_KNOWN_CUTS 8

#define GJ_STAGING_BYTES ((size_t) 4 << 20)
#define GJ_SPARE_BLOCKS 32

struct GjDevice
{
	int ordinal; /* CUDA's */
	int nprocessors;
	cudaMemPool_t pool;
	uint64_t l1_bytes; /* what a kernel's shared memory leaves of an SM's, about */
	uint64_t l2_bytes;
	uint64_t radix_bytes;  /* hash tables with more bytes of slots are built by partitions */
	uint32_t radix_fanout; /* partitions that one pass makes, at most 1024 */
	uint64_t
		fused_sample; /* fused: from so many rows on a sample tells what comes through each step, */
	double fused_cut; /* and where no more than this share does the rest is another kernel's */
	GjDeviceInfo info;
	bool keeps_small;        /* kits keep small blocks; off: tools see each allocation */
	pthread_mutex_t lock;    /* guards the lists below */
	GjKit *kits;             /* that no queue has */
	GjPinnedResults *pinned; /* blocks that no queue has */
	GjDeviceBlock *slabs;    /* what they were cut from */
	size_t nslabs;
	GjDeviceBlock spare[GJ_SPARE_BLOCKS]; /* large blocks that no queue has, the oldest first */
	uint32_t nspare;
	uint64_t spare_bytes;             /* of all of them */
	uint64_t used_bytes;              /* of blocks that queues have */
	GjFusedCuts *cuts[GJ_KNOWN_CUTS]; /* chosen last; NULL: none */
	uint32_t next_cuts;               /* the place of the next one */
	bool met[GJ_MAX_PEERS];           /* each reaches the other one's memory; by CUDA's ordinal */
};

struct GjQueue
{
	GjDevice *device;
	GjKit *kit;          /* its streams are the queue's */
	cudaStream_t stream; /* GJ_LANE_WORK */
	GjStatus status;     /* GJ_OK, or the error that the queue keeps */
	GjErrorText error;   /* text of that error */
	uint8_t *start;      /* what the memory of results and program starts with, */
	GjProgram *program;  /* in which the host's copy lies */
	GjCode code;         /* device addresses */
	GjResults *results;  /* device, laid out as GjPinnedResults: with counts, */
	GjAggState *states;  /* and naggregates of states */
	uint64_t *fused_counts;
	bool settled; /* nothing was queued since all of it came back */
	GjPinnedResults *pinned;

	GjDeviceBlock *memory; /* allocations that are not freed yet */
	size_t nmemory;
	size_t max_memory;
	GjDeviceBlock scratch[GJ_NSCRATCHES];
	GjDeviceBlock columns; /* set_columns */
	GjDeviceBlock parts;   /* fused: what it reads; what is left there is missed tuples' numbers */
	GjFusedPlan *fused_plan; /* for which ... */
	uint32_t fused_cuts;     /* ... was chosen: see choose_cuts */
	GjDeviceBlock places;    /* gather: device copy of ... */
	GjColumnPlace *places_host;
	void *staging; /* pinned, GJ_STAGING_BYTES; made when copy_peer first needs it */

	GjPhase phase; /* what is queued from here on counts as, if `timed` */
	bool timed;
	GjPhase event_phase[GJ_EVENTS + 1]; /* of the kit's events */
	uint32_t nmarks; /* recorded and not resolved; mark i starts event_phase[i] */
	double phase_ms[GJ_NPHASES];

	cudaEvent_t mark[GJ_MAX_MARKS]; /* NULL: not used yet */
	uint8_t loads[GJ_MAX_MARKS];    /* 1 + begin of the loads whose end the mark is; 0: none */
	cudaEvent_t begin[GJ_MAX_MARKS];
	uint32_t next_begin;
	bool loading;      /* begin[next_begin] was recorded, and its end was not */
	uint64_t peers;    /* bits: those of the kit that the queue uses, */
	uint64_t unjoined; /* and of these, on which copies were queued since the last mark */
};

/* ---- errors */

/* Notes a failed call in the queue; returns its GjStatus. */
GjStatus gj_cuda_failed(GjQueue *queue, cudaError_t error, const char *call, const char *file,
						int line);
/* The same without a queue. */
GjStatus gj_cuda_explain(cudaError_t error, const char *call, const char *file, int line,
						 GjErrorText *why);

/* Returns from the calling function if a CUDA call failed. */
#define GJ_CUDA(queue, call)                                                                       \
	do                                                                                             \
	{                                                                                              \
		cudaError_t error_ = (call);                                                               \
		if (error_ != cudaSuccess)                                                                 \
			return gj_cuda_failed((queue), error_, #call, __FILE__, __LINE__);                     \
	} while (0)

/* Follows every launch. */
#define GJ_LAUNCHED(queue, kernel)                                                                 \
	do                                                                                             \
	{                                                                                              \
		cudaError_t error_ = cudaGetLastError();                                                   \
		if (error_ != cudaSuccess)                                                                 \
			return gj_cuda_failed((queue), error_, kernel, __FILE__, __LINE__);                    \
	} while (0)

/* Passes the status of another function of the device on. */
#define GJ_TRY(call)                                                                               \
	do                                                                                             \
	{                                                                                              \
		GjStatus status_ = (call);                                                                 \
		if (status_ != GJ_OK)                                                                      \
			return status_;                                                                        \
	} while (0)

/* Calls an algorithm of CUB: function(arguments ..., stream). */
#define GJ_CUB(queue, function, ...)                                                               \
	do                                                                                             \
	{                                                                                              \
		size_t nbytes_ = 0;                                                                        \
		void *temp_;                                                                               \
		GJ_CUDA(queue, function(nullptr, nbytes_, __VA_ARGS__, (queue)->stream));                  \
		GJ_TRY(gj_scratch(queue, GJ_SCRATCH_CUB, nbytes_, &temp_));                                \
		GJ_CUDA(queue, function(temp_, nbytes_, __VA_ARGS__, (queue)->stream));                    \
	} while (0)

/* ---- device.cu */

/* So often each rate is measured: the first call is slow, and others may use the GPU meanwhile. */
#define GJ_MEASUREMENTS 4

void gj_set_text(GjErrorText *why, const char *text);
/* Selects a GPU, by CUDA's ordinal, for the calling thread: nothing else may do that. */
cudaError_t gj_set_device(int ordinal);

/* ---- queue.cu: see GjQueueOps for those that are not told of here */

GjStatus gj_queue_alloc(GjQueue *queue, size_t nbytes, void **memory);
GjStatus gj_queue_adopt(GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n);
GjStatus gj_set_columns(GjQueue *queue, const GjColumn *columns, uint32_t n,
						const GjColumn **device_columns);

/* A kit that no queue and no list has. */
void gj_destroy_kit(GjDevice *device, GjKit *kit);

/* Every operator starts with it: selects the GPU, returns the error that the queue keeps. */
GjStatus gj_enter(GjQueue *queue);
/* Copies the results to queue->pinned, waits, and returns what the rows met. */
GjStatus gj_wait(GjQueue *queue);
/* The same with counts and states, unless they have come back and nothing was queued since. */
GjStatus gj_wait_all(GjQueue *queue);
/* NULL: see gj_no_memory. */
void *gj_alloc(GjQueue *queue, size_t nbytes);
void gj_free(GjQueue *queue, void *memory, size_t nbytes);
/* Why gj_alloc returned NULL. */
static inline GjStatus
gj_no_memory(const GjQueue *queue)
{
	return queue->status != GJ_OK ? queue->status : GJ_OUT_OF_MEMORY;
}
/* Makes one of the scratch buffers at least nbytes long. */
GjStatus gj_scratch(GjQueue *queue, GjScratch which, size_t nbytes, void **memory);
/* The same for a buffer that lives as long as the queue; what was in it is lost. */
GjStatus gj_buffer(GjQueue *queue, GjDeviceBlock *buffer, size_t nbytes);

/*
 * rates.cu: measures info.sort_rate and info.pair_rate of a device that is complete but for
 * them.  Without memory they stay as they are.  False with *why: the device is lost.
 */
bool gj_measure_joins(GjDevice *device, GjErrorText *why);

/* ---- copy.cu: see GjMemoryOps for the others */

/* Waits for the load lane. */
cudaError_t gj_await_loads(const GjQueue *queue);
/* True if nothing is queued on any lane any more. */
bool gj_is_idle(const GjQueue *queue);

void gj_meet(GjDevice *device, GjDevice *other);
uint64_t gj_room(GjDevice *device);
void gj_tidy(GjDevice *device, bool all);
GjStatus gj_mark(GjQueue *queue, GjLane lane, uint32_t m);
GjStatus gj_after(GjQueue *queue, GjLane lane, uint32_t m);
GjStatus gj_passed(GjQueue *queue, uint32_t m, bool wait, bool *done);
void gj_load_wait(GjQueue *queue);

/* ---- operators */

GjStatus gj_measure(GjQueue *queue, const GjPackColumn *columns, uint32_t n, GjPacking *packing);
GjStatus gj_pack(GjQueue *queue, const GjPackColumn *columns, uint32_t n);
GjStatus gj_unpack(GjQueue *queue, const GjPackColumn *columns, uint32_t n);
GjStatus gj_number_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint32_t most,
						  uint32_t *number, uint64_t *value, uint32_t *n);
GjStatus gj_find_offsets(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint64_t *at,
						 GjOffsets *offsets);
GjStatus gj_move_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, const uint64_t *at,
						uint8_t *to, uint64_t base, uint64_t *refs);
GjStatus gj_pack_offsets(GjQueue *queue, const GjPackColumn *column, const uint64_t *at);
GjStatus gj_answer_questions(GjQueue *queue, const GjQuestion *questions, uint32_t nquestions,
							 const GjAsked *asked, uint32_t n, uint8_t *known);
GjStatus gj_rebase_refs(GjQueue *queue, uint64_t *refs, uint32_t n, uint64_t base,
						uint64_t heap_size);
GjStatus gj_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
				 uint32_t first_expr, const GjKeys *keys);
GjStatus gj_ordered_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
						 const int32_t *operands, const GjKeys *keys);
void gj_hash_free(GjQueue *queue, GjHashTable *table);
GjStatus gj_hash_payload(GjQueue *queue, GjHashTable *table, const GjColumn *column, uint32_t nrows,
						 bool *done);
GjStatus gj_hash_filter(GjQueue *queue, GjHashTable *table);
bool gj_filter_helps(const GjQueue *queue, const GjHashTable *table);
GjStatus gj_order_by_place(GjQueue *queue, const GjHashTable *table, void *to, const void *from,
						   uint32_t width);
/*
 * n counts become offsets, in place, and offset[n] and *total their sum.  offset[n] must have been
 * written, with anything.  Waits.
 */
GjStatus gj_sum_counts(GjQueue *queue, uint64_t *offset, uint32_t n, uint64_t *total);
GjStatus gj_sort_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
					   bool (*stop)(void *), void *arg, GjHashTable *table);
GjStatus gj_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
					   const GjSortedMatch *match, uint64_t *offset, uint32_t *first,
					   uint64_t *total);
GjStatus gj_nested_loop(GjQueue *queue, const GjNested *nested, uint64_t first_tile,
						uint32_t ntiles, uint32_t *ndone, uint64_t *npairs);
GjStatus gj_flag_counts(GjQueue *queue, const uint64_t *offset, uint32_t n, uint8_t *flags);
GjStatus gj_mark_rows(GjQueue *queue, const uint32_t *rows, const uint32_t *positions, uint32_t n,
					  uint8_t value, uint8_t *flags);
GjStatus gj_mark_tuples(GjQueue *queue, const uint64_t *offset, uint32_t ntuples, uint64_t cursor,
						const uint32_t *positions, uint32_t n, uint8_t *flags);
GjStatus gj_mark_ranges(GjQueue *queue, const uint64_t *offset, const uint32_t *first, uint32_t n,
						uint64_t *cover);
GjStatus gj_cover_rows(GjQueue *queue, const GjHashTable *table, uint64_t *cover, uint32_t n,
					   bool (*stop)(void *), void *arg, uint8_t *flags);
GjStatus gj_select_flags(GjQueue *queue, const uint8_t *flags, uint32_t n, uint8_t value,
						 uint32_t *positions, uint32_t *npositions);
GjStatus gj_aggregate(GjQueue *queue, const GjView *view);
GjStatus gj_aggregate_read(GjQueue *queue, GjAggState *states);
GjStatus gj_group_sort_keys(GjQueue *queue, const GjGroups *groups, const GjKeys *keys);
GjStatus gj_group_bytes(GjQueue *queue, const GjGroups *groups, const uint32_t *positions,
						uint32_t n, uint64_t *heap_at, uint64_t *nbytes);
GjStatus gj_group_keep(GjQueue *queue, const GjGroups *from, const uint32_t *positions, uint32_t n,
					   const uint64_t *heap_at, const GjGroups *to);
GjStatus gj_gather(GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
				   const GjBatchTarget *target, uint32_t *n);
GjStatus gj_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n,
						bool (*stop)(void *), void *arg, uint64_t *n_unique);
GjStatus gj_set_pair(GjQueue *queue, const GjSetPair *pair, bool (*stop)(void *), void *arg,
					 void *result, uint64_t *n);
/* The same for two sets with elements, without waiting: the number is in queue->results. */
GjStatus gj_set_pair_start(GjQueue *queue, const GjSetPair *pair, void *result);
GjStatus gj_array_sizes(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
						const GjArrayColumn *array, int32_t *size, uint8_t *null, uint64_t *total);
GjStatus gj_array_sets(GjQueue *queue, const GjView *view, const GjArrayColumn *array,
					   int32_t *size, void *values, bool (*stop)(void *), void *arg,
					   uint64_t *nvalues);
GjStatus gj_flag_changes(GjQueue *queue, const GjKeys *keys, uint32_t nkeys, uint32_t distance,
						 uint8_t *flags);
GjStatus gj_run_sizes(GjQueue *queue, const uint32_t *starts, uint32_t n, uint32_t nrows,
					  int32_t *size);
GjStatus gj_set_tile(GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
					 const GjSetTile *tile, bool (*stop)(void *), void *arg, uint32_t *const out[3],
					 uint32_t *n);
GjStatus gj_intersections_rehash(GjQueue *queue, const GjIntersections *found);
GjStatus gj_intersections_find(GjQueue *queue, const GjSetFamily *family,
							   const GjIntersections *found, const GjFoundPairs *pairs,
							   bool (*stop)(void *), void *arg, uint32_t *n);
GjStatus gj_intersections_add(GjQueue *queue, const GjIntersections *found,
							  const GjFoundPairs *pairs, uint32_t n);
GjStatus gj_intersections_place(GjQueue *queue, const GjIntersections *found, uint32_t first,
								uint32_t max, uint64_t room, uint64_t *at, uint32_t *n,
								uint64_t *total);
GjStatus gj_intersections_write(GjQueue *queue, const GjSetFamily *family,
								const GjIntersections *found, const void *elements, uint32_t width,
								uint32_t first, uint32_t n, const uint64_t *at,
								bool (*stop)(void *), void *arg, void *values, int64_t *frequency);

/* The tables of operators, each in a file of its concern. */
extern const GjMemoryOps gj_cuda_memory;
extern const GjQueueOps gj_cuda_queues;
extern const GjColumnOps gj_cuda_columns;
extern const GjTableOps gj_cuda_tables;
extern const GjGroupOps gj_cuda_groups;
extern const GjFusedOps gj_cuda_pass;
extern const GjPlaceOps gj_cuda_places;
extern const GjOrderOps gj_cuda_order;
extern const GjSetOps gj_cuda_sets;
extern const GjSplitOps gj_cuda_exchange;

/* ---- in kernels */

#ifdef __CUDACC__

/* Blocks of `per_block` rows that cover n rows. */
static inline uint32_t
gj_blocks(uint64_t n, uint32_t per_block)
{
	return (uint32_t) ((n + per_block - 1) / per_block);
}

/* The last of low .. high-1 that a condition holds for, which holds for low and up to that one. */
template <typename Condition>
static __device__ __forceinline__ uint32_t
gj_last(uint32_t low, uint32_t high, Condition holds)
{
	while (high - low > 1)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (holds(mid))
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* The last of entries low .. high-1 of an ascending array that is at most v; low's is. */
static __device__ __forceinline__ uint32_t
gj_last_at_most(const uint64_t *array, uint32_t low, uint32_t high, uint64_t v)
{
	return gj_last(low, high, [=](uint32_t i) { return array[i] <= v; });
}

/* The first of n ascending values that is not less than v; n if there is none. */
template <typename T, typename N>
static __device__ __forceinline__ N
gj_lower_bound(const T *array, N n, T v)
{
	N low = 0;
	N high = n;

	while (low < high)
	{
		const N mid = low + (high - low) / 2;

		if (array[mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Reads slots first, first + GJ_THREADS and so on of a hash table at once, as words: the key's
 * two, its start, and its count, which is 0 where there is no key, or no slot.
 */
template <int N>
static __device__ __forceinline__ void
gj_load_slots(const GjHashSlot *slots, uint64_t nslots, uint64_t first, uint4 (&slot)[N])
{
#pragma unroll
	for (int k = 0; k < N; k++)
	{
		const uint64_t s = first + k * GJ_THREADS;

		slot[k] = s < nslots ? *(const uint4 *) &slots[s] : make_uint4(0, 0, 0, 0);
	}
}

/* A slot of a hash table of words, as atomics take it. */
static __device__ __forceinline__ unsigned long long *
gj_slot_address(uint64_t *slots, uint64_t s)
{
	return (unsigned long long *) &slots[s];
}

/* Writes a word that differs from all others to the first slot from s on that is GJ_NO_SLOT. */
static __device__ __forceinline__ void
gj_enter_slot(uint64_t *slots, uint64_t nslots, uint64_t s, uint64_t word)
{
	while (atomicCAS(gj_slot_address(slots, s), (unsigned long long) GJ_NO_SLOT,
					 (unsigned long long) word) != (unsigned long long) GJ_NO_SLOT)
	{
		if (++s == nslots)
			s = 0;
	}
}

/* Notes a row error; the first one stays. */
static __device__ __forceinline__ void
gj_note_error(GjResults *results, uint32_t status)
{
	if (status != GJ_OK)
		atomicCAS(&results->error, (uint32_t) GJ_OK, status);
}

#endif

#endif /* GJ_CUDA_INTERNAL_CUH */
