/*
 * cpu_device.h
 *	  What the files of the cpu device share; only they include it.
 *
 *	cpu_device.c	device, queue, memory, copies; the table of operators
 *	select.c		select, pick, keys, ordered_keys; tile_keys.h
 *	join_hash.c		hash_build, hash_probe, hash_expand
 *	join_sort.c		sort_build, sort_probe, sort_rows
 *	join_nested.c	nested_loop
 *	join_match.c	which tuples and rows have a match
 *	aggregate.c		aggregate, aggregate_read
 *	group.c			group_keys, group_find and the others of groups
 *	order.c			sort_limit; group_sort_keys and group_keep
 *	fused.c			filter, joins and aggregates in one pass
 *	gather.c		gather
 *	sorted_set.c	sort_unique
 *	set_pair.c		set_pair
 *	array_set.c		array_sizes, array_sets
 *	membership.c	flag_changes, run_sizes
 *	set_family.c	set_build, set_tile, set_free; intersections_find and its kin
 *	answer.c		answer
 *	exchange.c		split, ref_bytes, move_refs
 *	pool.c			the threads
 *
 * Every call does its work before it returns.  A row error is kept in the queue until
 * a call that waits, by the contract, returns it.
 */
#ifndef GJ_CPU_DEVICE_H
#define GJ_CPU_DEVICE_H

#include <pthread.h>

#include "device/device.h"
#include "pool.h"

/* Tuples of one item of parallel work: a multiple of GJ_TILE_ROWS. */
#define GJ_ITEM_ROWS		8192u

#define gj_items(n)			((uint32_t) (((uint64_t) (n) + GJ_ITEM_ROWS - 1) / GJ_ITEM_ROWS))

/* Where the item that starts at row `begin` of n ends. */
static inline uint64_t
gj_item_end(uint64_t begin, uint64_t n)
{
	return n - begin < GJ_ITEM_ROWS ? n : begin + GJ_ITEM_ROWS;
}

struct GjDevice
{
	GjPool	   *pool;
	GjDeviceInfo info;
};

struct GjQueue
{
	GjDevice   *device;
	GjProgram  *program;		/* a copy */
	GjCode		code;
	GjColumn   *columns;
	GjTile		tile;			/* of the thread that uses the queue */
	GjPhase		phase;
	bool		marked[GJ_MAX_MARKS];	/* nobody has asked since */
	double		phase_start;
	double		phase_ms[GJ_NPHASES];
	uint32_t	row_error;		/* GjStatus; atomic */
	GjErrorText error;
	pthread_mutex_t lock;		/* guards states while threads add theirs */
	GjAggState	states[GJ_MAX_AGGREGATES];
	uint64_t	fused_counts[GJ_FUSED_STEPS + 1];	/* guarded by lock, too */
	GjSplitParts split_parts;
};

/* Notes an error of a row, from any thread. */
static inline void
gj_note_row_error(GjQueue *queue, uint32_t status)
{
	if (status != GJ_OK)
		__atomic_store_n(&queue->row_error, status, __ATOMIC_RELAXED);
}

/* What a call that waits returns. */
extern GjStatus gj_take_row_error(GjQueue *queue);

/* Runs an item at a time over n tuples. */
static inline void
gj_for_items(GjQueue *queue, uint64_t n, GjPoolTask task, void *arg)
{
	gj_pool_run(queue->device->pool, gj_items(n), task, arg, &queue->tile, NULL, NULL);
}

/* Copies the bytes of a reference, and zeros up to a multiple of 8. */
static inline void
gj_copy_padded(uint8_t *to, const uint8_t *heap, uint64_t ref)
{
	memcpy(to, heap + gj_ref_offset(ref), gj_ref_length(ref));
	memset(to + gj_ref_length(ref), 0, gj_ref_space(ref) - gj_ref_length(ref));
}

/* The tables of operators, each in a file of its concern. */
extern const GjMemoryOps gj_cpu_memory;
extern const GjQueueOps gj_cpu_queues;
extern const GjColumnOps gj_cpu_columns;
extern const GjTableOps gj_cpu_tables;
extern const GjGroupOps gj_cpu_groups;
extern const GjFusedOps gj_cpu_pass;
extern const GjPlaceOps gj_cpu_places;
extern const GjOrderOps gj_cpu_order;
extern const GjSetOps gj_cpu_sets;
extern const GjSplitOps gj_cpu_exchange;

extern GjStatus gj_cpu_answer(GjQueue *queue, const GjQuestion *questions, uint32_t nquestions,
							  const GjAsked *asked, uint32_t n, uint8_t *known);
extern GjStatus gj_cpu_rebase_refs(GjQueue *queue, uint64_t *refs, uint32_t n,
								   uint64_t base, uint64_t heap_size);
extern GjStatus gj_cpu_set_columns(GjQueue *queue, const GjColumn *columns, uint32_t n,
								   const GjColumn **device_columns);
extern void gj_cpu_free(GjQueue *queue, void *memory, size_t nbytes);

extern void gj_cpu_hash_free(GjQueue *queue, GjHashTable *table);
/* Turns the items' numbers of pairs, offsets that count from each item's start, into a probe's. */
extern void gj_cpu_number_pairs(GjQueue *queue, uint64_t *item_sum, uint32_t ntuples,
								uint64_t *offset, uint64_t *total);
extern GjStatus gj_cpu_sort_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
								  bool (*stop) (void *), void *arg, GjHashTable *table);
extern GjStatus gj_cpu_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
								  const GjSortedMatch *match, uint64_t *offset, uint32_t *first,
								  uint64_t *total);
extern GjStatus gj_cpu_nested_loop(GjQueue *queue, const GjNested *nested, uint64_t first_tile,
								   uint32_t ntiles, uint32_t *ndone, uint64_t *npairs);
extern GjStatus gj_cpu_flag_counts(GjQueue *queue, const uint64_t *offset, uint32_t n,
								   uint8_t *flags);
extern GjStatus gj_cpu_mark_rows(GjQueue *queue, const uint32_t *rows, const uint32_t *positions,
								 uint32_t n, uint8_t value, uint8_t *flags);
extern GjStatus gj_cpu_mark_tuples(GjQueue *queue, const uint64_t *offset, uint32_t ntuples,
								   uint64_t cursor, const uint32_t *positions, uint32_t n,
								   uint8_t *flags);
extern GjStatus gj_cpu_mark_ranges(GjQueue *queue, const uint64_t *offset, const uint32_t *first,
								   uint32_t n, uint64_t *cover);
extern GjStatus gj_cpu_cover_rows(GjQueue *queue, const GjHashTable *table, uint64_t *cover,
								  uint32_t n, bool (*stop) (void *), void *arg, uint8_t *flags);
extern GjStatus gj_cpu_select_flags(GjQueue *queue, const uint8_t *flags, uint32_t n,
									uint8_t value, uint32_t *positions, uint32_t *npositions);
extern GjStatus gj_cpu_aggregate(GjQueue *queue, const GjView *view);
/* Adds n values to a state, but for NULLs. */
extern void gj_cpu_step_tile(uint32_t op, GjAggState *state, const int64_t *value,
							 const uint8_t *null, uint32_t n);
extern GjStatus gj_cpu_aggregate_read(GjQueue *queue, GjAggState *states);
extern GjStatus gj_cpu_sort_rows(GjQueue *queue, const GjKeys *keys, uint32_t descending,
								 bool (*stop) (void *), void *arg, uint32_t *positions);
extern GjStatus gj_cpu_group_sort_keys(GjQueue *queue, const GjGroups *groups,
									   const GjKeys *keys);
extern GjStatus gj_cpu_group_bytes(GjQueue *queue, const GjGroups *groups,
								   const uint32_t *positions, uint32_t n, uint64_t *heap_at,
								   uint64_t *nbytes);
extern GjStatus gj_cpu_group_keep(GjQueue *queue, const GjGroups *from,
								  const uint32_t *positions, uint32_t n,
								  const uint64_t *heap_at, const GjGroups *to);

extern GjStatus gj_cpu_measure(GjQueue *queue, const GjPackColumn *columns, uint32_t n,
							   GjPacking *packing);
extern GjStatus gj_cpu_pack(GjQueue *queue, const GjPackColumn *columns, uint32_t n);
extern GjStatus gj_cpu_unpack(GjQueue *queue, const GjPackColumn *columns, uint32_t n);
extern GjStatus gj_cpu_number_values(GjQueue *queue, const GjColumn *column, uint32_t nrows,
									 uint32_t most, uint32_t *number, uint64_t *value,
									 uint32_t *n);
extern GjStatus gj_cpu_find_offsets(GjQueue *queue, const GjColumn *column, uint32_t nrows,
									uint64_t *at, GjOffsets *offsets);
extern GjStatus gj_cpu_move_values(GjQueue *queue, const GjColumn *column, uint32_t nrows,
								   const uint64_t *at, uint8_t *to, uint64_t base,
								   uint64_t *refs);
extern GjStatus gj_cpu_pack_offsets(GjQueue *queue, const GjPackColumn *column,
								   const uint64_t *at);
extern GjStatus gj_cpu_gather(GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
							  const GjBatchTarget *target, uint32_t *n);
extern GjStatus gj_cpu_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n,
								   bool (*stop) (void *), void *arg, uint64_t *n_unique);
extern GjStatus gj_cpu_set_pair(GjQueue *queue, const GjSetPair *pair, bool (*stop) (void *),
								void *arg, void *result, uint64_t *n);
extern GjStatus gj_cpu_array_sizes(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
								   const GjArrayColumn *column, int32_t *size, uint8_t *null,
								   uint64_t *total);
extern GjStatus gj_cpu_array_sets(GjQueue *queue, const GjView *view, const GjArrayColumn *column,
								  int32_t *size, void *values, bool (*stop) (void *), void *arg,
								  uint64_t *nvalues);
extern GjStatus gj_cpu_flag_changes(GjQueue *queue, const GjKeys *keys, uint32_t nkeys,
									uint32_t distance, uint8_t *flags);
extern GjStatus gj_cpu_run_sizes(GjQueue *queue, const uint32_t *starts, uint32_t n,
								 uint32_t nrows, int32_t *size);

#endif							/* GJ_CPU_DEVICE_H */
