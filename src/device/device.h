/*
 * device.h
 *	  The interface that both devices implement: memory, copies and the operators of
 *	  a join over columns.  run/run.c runs every program through it.
 *
 * A device is one GPU, or the cpu.  A queue belongs to one run of one program, is
 * used by one thread, and keeps its work in order (a CUDA stream).  Calls return
 * when the work is queued, unless they say "waits".  Every pointer named "device"
 * is memory from gj_alloc on that device; host pointers that copies, gather and
 * aggregate_read use lie in rings that were registered, or are small.
 *
 * Every call that can fail returns a GjStatus; the queue's error text then says
 * more, without values from the data.  A row error (overflow, division by zero)
 * that a kernel meets is noted in device memory and returned by the next call that
 * waits.  GJ_DEVICE_LOST means that the process must end: its context is gone.
 *
 * No operator works longer than some 5 ms a call when called with at most
 * GJ_MAX_TUPLES tuples; run/run.c looks between calls whether to stop.  Some take a
 * whole side at once and are given stop(arg), which they ask as often as they can: the
 * call returns GJ_CANCELLED once it is true.  hash_build asks every few ms.  A sort
 * asks between its passes, and these grow with the data: on a GPU it is one pass, some
 * 10 ms for 100 million values; on the cpu up to half a second for as many.
 */
#ifndef GJ_DEVICE_DEVICE_H
#define GJ_DEVICE_DEVICE_H

#include "rows/expression.h"
#include "rows/sorted.h"
#include "wire/messages.h"
#include "exchange.h"
#include "fused.h"
#include "join.h"
#include "sets.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct GjDevice GjDevice;
typedef struct GjQueue GjQueue;

typedef struct GjErrorText
{
	char		text[240];
} GjErrorText;

/* A slot of the output ring, as gather fills it. */
typedef struct GjBatchTarget
{
	uint8_t    *slot;			/* host address of the slot */
	GjLayout	layout;
	const GjColumnPlace *places;
} GjBatchTarget;

/*
 * A queue has two lanes.  Each keeps its work in order, and they run side by side: what is
 * queued goes to GJ_LANE_WORK, but for what the load_ functions put on GJ_LANE_LOAD.
 */
typedef enum GjLane
{
	GJ_LANE_WORK,
	GJ_LANE_LOAD
} GjLane;

#define GJ_MAX_MARKS		88

/* A copy within a device's memory. */
typedef struct GjPiece
{
	void	   *to;
	const void *from;
	size_t		nbytes;
} GjPiece;

typedef struct GjDeviceOps
{
	const char *name;
	GjDeviceKind kind;

	/* Number of usable devices; 0 with the reason in *why.  Waits. */
	int			(*count) (GjErrorText *why);
	/* Opens a device (CUDA context, measured rates).  NULL with *why.  Waits. */
	GjDevice   *(*open) (int ordinal, GjErrorText *why);
	void		(*close) (GjDevice *device);
	/*
	 * Has two devices of the same kind reach each other's memory directly from now on, in copy_peer and
	 * load_peer, if the hardware can.  While neither is used, so that no allocation is in between.
	 */
	void		(*meet) (GjDevice *device, GjDevice *other);
	/* Fills in name, sizes and rates; not sessions and memory_used. */
	void		(*info) (GjDevice *device, GjDeviceInfo *info);
	/* Makes host memory usable by copies and kernels of every device.  Waits. */
	GjStatus	(*host_register) (GjDevice *device, void *memory, size_t nbytes, GjErrorText *why);
	void		(*host_unregister) (GjDevice *device, void *memory);

	/* A queue with the code of a program (copied). */
	GjStatus	(*queue_open) (GjDevice *device, const GjProgram *program, GjQueue **queue,
							   GjErrorText *why);
	/*
	 * Waits for what is queued and gives back everything that the queue still holds.
	 * GJ_DEVICE_LOST, with *why, if the device turns out to be gone; else GJ_OK.
	 */
	GjStatus	(*queue_close) (GjQueue *queue, GjErrorText *why);
	const char *(*queue_error) (GjQueue *queue);
	/* Waits for all queued work; row errors and device errors are returned here. */
	GjStatus	(*sync) (GjQueue *queue);
	/* From here on time counts as `phase`; (*phase_ms)[] is complete after a sync. */
	void		(*phase) (GjQueue *queue, GjPhase phase);
	const double *(*phase_ms) (GjQueue *queue);

	/* Device memory, 256-byte aligned, uninitialised. */
	GjStatus	(*alloc) (GjQueue *queue, size_t nbytes, void **memory);
	void		(*free) (GjQueue *queue, void *memory, size_t nbytes);
	/*
	 * n allocations of another queue become this one's: all of them, or none.  Nothing that
	 * the other queue has queued uses them, and no other thread uses either queue.
	 */
	GjStatus	(*adopt) (GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n);

	GjStatus	(*copy_in) (GjQueue *queue, void *device, const void *host, size_t nbytes);
	GjStatus	(*copy_out) (GjQueue *queue, void *host, const void *device, size_t nbytes);
	GjStatus	(*copy) (GjQueue *queue, void *to, const void *from, size_t nbytes);
	/* n copies within the device at once, of memory that does not overlap; pieces have been read when it returns. */
	GjStatus	(*copy_many) (GjQueue *queue, const GjPiece *pieces, uint32_t n);
	/*
	 * The same from the memory of another device of the same kind, where nothing is queued
	 * that writes it.  Through host memory, and then waiting, if they have not met.  What it has to
	 * wait for here may hold up copies from that device to third ones, too.
	 */
	GjStatus	(*copy_peer) (GjQueue *queue, void *to, GjDevice *device, const void *from,
							  size_t nbytes);
	GjStatus	(*fill) (GjQueue *queue, void *device, int byte, size_t nbytes);

	/*
	 * copy_in, copy, copy_peer and fill on GJ_LANE_LOAD.  Marks alone give load_peer its place there: it is
	 * behind what a mark given to after() stands for, and before the next mark of the lane.
	 */
	GjStatus	(*load_in) (GjQueue *queue, void *device, const void *host, size_t nbytes);
	GjStatus	(*load_copy) (GjQueue *queue, void *to, const void *from, size_t nbytes);
	GjStatus	(*load_peer) (GjQueue *queue, void *to, GjDevice *device, const void *from,
							  size_t nbytes);
	GjStatus	(*load_fill) (GjQueue *queue, void *device, int byte, size_t nbytes);
	/* From here on mark m < GJ_MAX_MARKS stands for all that is queued on the lane by now. */
	GjStatus	(*mark) (GjQueue *queue, GjLane lane, uint32_t m);
	/* What is queued on the lane from here on starts when what m stands for is done. */
	GjStatus	(*after) (GjQueue *queue, GjLane lane, uint32_t m);
	/* *done = what m stands for is done.  With `wait`, waits until it is. */
	GjStatus	(*passed) (GjQueue *queue, uint32_t m, bool wait, bool *done);
	/* Waits until nothing is left on GJ_LANE_LOAD, also after an error. */
	void		(*load_wait) (GjQueue *queue);

	/*
	 * Adds `base` to the offset of n references, all but held ones.  A reference that
	 * does not lie within heap_size bytes is a row error (GJ_BAD_PROGRAM).
	 */
	GjStatus	(*rebase_refs) (GjQueue *queue, uint64_t *refs, uint32_t n,
								uint64_t base, uint64_t heap_size);

	/* Sets the program's columns (host array, copied); returns their device address. */
	GjStatus	(*set_columns) (GjQueue *queue, const GjColumn *columns, uint32_t n,
								const GjColumn **device_columns);

	/*
	 * Positions (0 .. view->nrows-1, ascending) of the tuples for which expression
	 * `expr` is TRUE.  positions[view->nrows] is device memory, *n host.  Waits.
	 */
	GjStatus	(*select) (GjQueue *queue, const GjView *view, uint32_t expr,
						   uint32_t *positions, uint32_t *n);
	/* to[i] = from[positions[i]] for i < n; from = NULL: base + positions[i]. */
	GjStatus	(*pick) (GjQueue *queue, uint32_t *to, const uint32_t *from, uint32_t base,
						 const uint32_t *positions, uint32_t n);
	/* to[i] = from[positions[i]] for i < n. */
	GjStatus	(*pick_values) (GjQueue *queue, int64_t *to, const int64_t *from,
								const uint32_t *positions, uint32_t n);

	/*
	 * Writes the rows of all pieces to columns to[split->ncolumns] (host array) part by part: the
	 * values where `data` is not NULL, the null flags where `nulls` is not NULL; they have
	 * gj_split_room().  Rows of a part are in their order, or, with a stride, in any: a device that
	 * need not count the rows of each part before reads the keys once.  References keep what they
	 * are.  May work for long: asks stop(arg).  *parts is host memory, the queue's: filled when what
	 * is queued by now is done, and until the next split.
	 */
	GjStatus	(*split) (GjQueue *queue, const GjSplit *split, const GjColumn *to,
						  bool (*stop) (void *), void *arg, const GjSplitParts **parts);
	/*
	 * Room for split() of n rows of GJ_SPLIT_PIECES pieces, with ncolumns columns and nkeys keys, and
	 * for ref_bytes() of them: no such call runs out of device memory then.
	 */
	GjStatus	(*split_reserve) (GjQueue *queue, uint32_t n, uint32_t ncolumns, uint32_t nkeys);
	/*
	 * heap_at[0 .. n] = where the bytes of n references would start, one behind the other and
	 * counted from 0.
	 */
	GjStatus	(*ref_bytes) (GjQueue *queue, const uint64_t *refs, uint32_t n, uint64_t *heap_at);
	/*
	 * Copies the bytes that n references into `heap` refer to, those of refs[i] to `to` +
	 * heap_at[i] - heap_at[0], and makes them references to a heap that has `to` at `base`.
	 */
	GjStatus	(*move_refs) (GjQueue *queue, uint64_t *refs, uint32_t n, const uint8_t *heap,
							  const uint64_t *heap_at, uint8_t *to, uint64_t base);

	/* Keys of tuples first .. first+n-1 of the view into keys rows first .. ; normalised. */
	GjStatus	(*keys) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
						 uint32_t first_expr, const GjKeys *keys);

	/*
	 * The same of keys->nkeys operands, each an expression or, if it is negative, column
	 * -1 - operand; values as gj_ordered_bits makes them, 0 for NULL.
	 */
	GjStatus	(*ordered_keys) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
								 const int32_t *operands, const GjKeys *keys);

	/*
	 * Builds a table over keys->nrows rows, whose row ids, which differ, are rowid[i], or i if
	 * rowid is NULL.  Takes over the key arrays on success.  The table may be a direct one of
	 * up to direct_bytes (0: none).  May work for long: asks stop(arg).  Waits.
	 */
	GjStatus	(*hash_build) (GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
							   uint64_t direct_bytes, bool (*stop) (void *), void *arg,
							   GjHashTable *table);
	void		(*hash_free) (GjQueue *queue, GjHashTable *table);

	/*
	 * to[i] = from[table->place[i]], values of `width` bytes (1, 2, 4, 8 or 16), i < table->nslots:
	 * a column of the side of a direct table in the order of keys, each of which has a row.  NULL:
	 * a device that makes no direct tables.
	 */
	GjStatus	(*order_by_place) (GjQueue *queue, const GjHashTable *table, void *to,
								   const void *from, uint32_t width);

	/*
	 * Gives a table with one key, unique, and slots or places, payloads: the values of a column of the
	 * inner side, GJ_INT4 or GJ_INT8 without NULLs, [nrows].  Those of a direct table take as much
	 * memory as its places.  *done = false: some value does not fit (gj_payload_fits), and nothing was
	 * changed.  Waits.  NULL: a device that reads no payloads.
	 */
	GjStatus	(*hash_payload) (GjQueue *queue, GjHashTable *table, const GjColumn *column,
								 uint32_t nrows, bool *done);

	/*
	 * Gives a table with one key, and slots or places, a filter of gj_filter_words() words, fewer than
	 * 2^31.  NULL: a device that asks none.
	 */
	GjStatus	(*hash_filter) (GjQueue *queue, GjHashTable *table);

	/* True if such a filter is read in less time than the table.  NULL if hash_filter is. */
	bool		(*filter_helps) (const GjQueue *queue, const GjHashTable *table);

	/*
	 * Sorts keys->nrows rows by ordered keys, the first value first, and drops those with a
	 * NULL: a table without slots, and max_count 1 or 0.  The rest is as for hash_build.
	 */
	GjStatus	(*sort_build) (GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
							   bool (*stop) (void *), void *arg, GjHashTable *table);
	/* hash_probe over a sorted side: keys has the values that `match` names. */
	GjStatus	(*sort_probe) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
							   const GjSortedMatch *match, uint64_t *offset, uint32_t *first,
							   uint64_t *total);

	/*
	 * Looks up keys->nrows keys: tuple i matches table->rows[first[i] ..], and its
	 * pairs have the numbers offset[i] .. offset[i+1]-1.  offset has nrows+1 entries;
	 * *total (host) = offset[nrows].  Waits.
	 */
	GjStatus	(*hash_probe) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
							   uint64_t *offset, uint32_t *first, uint64_t *total);
	/*
	 * Writes pairs cursor .. cursor+n-1 of a probe of view->nrows tuples: for each
	 * source s with out[s] set, the outer tuple's row id of s, or for s =
	 * inner_source the inner row's.  n <= GJ_MAX_TUPLES: the work is split evenly
	 * over pairs, however skewed the keys are.
	 */
	GjStatus	(*hash_expand) (GjQueue *queue, const GjHashTable *table, const GjView *view,
								const uint64_t *offset, const uint32_t *first,
								uint64_t cursor, uint32_t n, uint32_t inner_source,
								uint32_t *const out[GJ_MAX_SOURCES]);

	/*
	 * What probing keys->nrows > 0 tuples of the view and writing their pairs gives, at once: for
	 * a table whose max_count is 1, by all of whose keys (match, of a sorted side; it has no
	 * bounds) tuples are looked up.  out has room for as many pairs as tuples; *npairs (host).
	 * Waits.  NULL: a device that does no better than by the two of them.
	 */
	GjStatus	(*join_unique) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
								const GjSortedMatch *match, const GjView *view,
								uint32_t inner_source, uint32_t *const out[GJ_MAX_SOURCES],
								uint32_t *npairs);

	/*
	 * Looks at tiles first_tile .. of a nested loop: at least one, at most ntiles, fewer if
	 * the pairs of more do not fit or would take too long.  *ndone (host) = tiles, *npairs
	 * = pairs that match in them.  Waits.
	 */
	GjStatus	(*nested_loop) (GjQueue *queue, const GjNested *nested, uint64_t first_tile,
								uint32_t ntiles, uint32_t *ndone, uint64_t *npairs);

	/*
	 * Which tuples and rows have a match.  Flags are one byte each, 0 or 1, device memory.
	 *
	 * flag_counts: flags[i] = 1 if tuple i of a probe has a pair, else 0 (n tuples).
	 */
	GjStatus	(*flag_counts) (GjQueue *queue, const uint64_t *offset, uint32_t n,
								uint8_t *flags);
	/*
	 * flags[rows[positions[i]]] = value for i < n; rows = NULL: positions themselves,
	 * positions = NULL: rows[i].  Not both are NULL.
	 */
	GjStatus	(*mark_rows) (GjQueue *queue, const uint32_t *rows, const uint32_t *positions,
							  uint32_t n, uint8_t value, uint8_t *flags);
	/*
	 * flags[t] = 1 for the tuples t that pairs cursor + positions[i], i < n, of a probe of
	 * ntuples tuples belong to.  Positions ascend.
	 */
	GjStatus	(*mark_tuples) (GjQueue *queue, const uint64_t *offset, uint32_t ntuples,
								uint64_t cursor, const uint32_t *positions, uint32_t n,
								uint8_t *flags);
	/*
	 * Notes which rows of a table have a match, without their pairs: cover, of nrows + 1
	 * entries that were filled with zeros, says by how much more tuples match table row i
	 * than match row i - 1.  Tuples of equal matches may be noted as one.
	 */
	GjStatus	(*mark_ranges) (GjQueue *queue, const uint64_t *offset, const uint32_t *first,
								uint32_t n, uint64_t *cover);
	/*
	 * flags[table->rows[i]] = 1 for each table row i that cover says has a match; the table is no
	 * direct one.  May work for long: asks stop(arg).  Changes cover.
	 */
	GjStatus	(*cover_rows) (GjQueue *queue, const GjHashTable *table, uint64_t *cover,
							   bool (*stop) (void *), void *arg, uint8_t *flags);
	/* Positions, ascending, of the flags that have a value.  Room for n; *npositions host.  Waits. */
	GjStatus	(*select_flags) (GjQueue *queue, const uint8_t *flags, uint32_t n, uint8_t value,
								 uint32_t *positions, uint32_t *npositions);

	/*
	 * Finds the rows wanted of keys->nrows rows, whose values are as ordered_keys makes them
	 * (keys->null is not read): their positions, in the wanted order.  positions has room
	 * for keys->nrows.  *n host.  One call, however many rows: some 10 ms for 100 million
	 * on a GPU.  Waits.
	 */
	GjStatus	(*sort_limit) (GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted,
							   uint32_t *positions, uint32_t *n);

	/*
	 * Puts all of keys->nrows > 0 rows, whose values are as ordered_keys makes them (keys->null
	 * is not read), into their order: positions[nrows].  Bit k of descending: by key k greater
	 * values come first.  Needs GJ_SORT_SPACE bytes a row besides.  May work for long: asks
	 * stop(arg).  Waits.
	 */
	GjStatus	(*sort_rows) (GjQueue *queue, const GjKeys *keys, uint32_t descending,
							  bool (*stop) (void *), void *arg, uint32_t *positions);

	/* Adds the view's tuples to all aggregates of the program. */
	GjStatus	(*aggregate) (GjQueue *queue, const GjView *view);
	/* The states so far (host array).  Waits. */
	GjStatus	(*aggregate_read) (GjQueue *queue, GjAggState *states);

	/* Group keys of tuples first .. first+rows->nrows-1 of the view: values, nulls, hash. */
	GjStatus	(*group_keys) (GjQueue *queue, const GjView *view, uint32_t first,
							   const GjGroupRows *rows);
	/* Clears the table, which has room for them, and enters all groups. */
	GjStatus	(*group_rehash) (GjQueue *queue, const GjGroups *groups);
	/*
	 * Looks the rows up.  slot_of[i] = slot of row i.  positions[0 .. *n) = rows that are
	 * to become groups, ascending; heap_at[0 .. *n] (if groups->heap_end) = where the bytes
	 * of each would start, counted from 0.  *n and *nbytes = heap_at[*n] are host.  Waits.
	 */
	GjStatus	(*group_find) (GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups,
							   uint32_t *slot_of, uint32_t *positions, uint64_t *heap_at,
							   uint32_t *n, uint64_t *nbytes);
	/*
	 * Makes these rows groups number groups->rows.nrows, ...: keys, bytes from
	 * heap_used on, and new states, for all of which there is room.  slot_of[i] becomes
	 * the group of row i.
	 */
	GjStatus	(*group_add) (GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups,
							  uint32_t *slot_of, const uint32_t *positions,
							  const uint64_t *heap_at, uint32_t n, uint64_t heap_used);
	/* Adds tuple first+i of the view to the aggregates of group group_of[i], i < n. */
	GjStatus	(*group_aggregate) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
									const uint32_t *group_of, const GjGroups *groups);
	/* Hashes rows by their first nkeys keys, and forgets the null bits of others. */
	GjStatus	(*group_hash) (GjQueue *queue, const GjGroupRows *rows);
	/*
	 * Adds the states of groups first .. first+n-1 of `from`, which are finished, to those of
	 * groups group_of[0 .. n).  `from` may have been made anywhere and copied here.
	 */
	GjStatus	(*group_merge) (GjQueue *queue, const GjGroups *from, uint32_t first, uint32_t n,
								const uint32_t *group_of, const GjGroups *groups);
	/*
	 * States of groups become what GjAggState says; until now they are the device's own
	 * affair.  Where the groups still have the distinct key, distinct aggregates take its
	 * value.  Nothing can be added afterwards.
	 */
	GjStatus	(*group_finish) (GjQueue *queue, const GjGroups *groups);

	/*
	 * Values of all groups, which are finished, for the program's sort keys, in their order,
	 * as sort_limit takes them.  A group that a check of theirs finds is a row error
	 * (GJ_OVERFLOW).
	 */
	GjStatus	(*group_sort_keys) (GjQueue *queue, const GjGroups *groups, const GjKeys *keys);
	/*
	 * heap_at[0 .. n] = where the bytes of groups positions[0 .. n) would start, counted from
	 * 0.  *nbytes (host) = heap_at[n].  Waits.
	 */
	GjStatus	(*group_bytes) (GjQueue *queue, const GjGroups *groups, const uint32_t *positions,
								uint32_t n, uint64_t *heap_at, uint64_t *nbytes);
	/*
	 * Copies groups positions[0 .. n) of `from`, which are finished, to groups 0 .. n-1 of `to`,
	 * which has room for them and their bytes.  heap_at is not read if to->heap_end is NULL.
	 */
	GjStatus	(*group_keep) (GjQueue *queue, const GjGroups *from, const uint32_t *positions,
							   uint32_t n, const uint64_t *heap_at, const GjGroups *to);

	/*
	 * Takes the rows of the parts, at most GJ_FUSED_PARTS and together fewer than 2^31,
	 * through filter and steps.  groups = NULL: adds what comes out to the program's
	 * aggregates.  Else adds it to the aggregates of its groups; tuples that have none yet
	 * are left to the caller in *missed, and the call waits.  columns are all of the
	 * program's (host); those of the outer source are the parts' own.  list_bytes is the
	 * memory that the device may take for lists of tuples between steps, until it returns.
	 */
	GjStatus	(*fused) (GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
						  const GjFusedPart *parts, uint32_t nparts, uint64_t list_bytes,
						  const GjGroups *groups, GjFusedMissed *missed);
	/*
	 * Tuples that all calls of `fused` have let through: counts[0] the filter, counts[s+1]
	 * step s.  Waits.
	 */
	GjStatus	(*fused_counts) (GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1]);

	/*
	 * Fills a batch with the output columns of tuples first, first+1, ... of the
	 * view: as many as rows and heap allow, at least 1, at most max.  Writes the whole
	 * slot, header too.  *n (host) = rows written.  Waits.
	 */
	GjStatus	(*gather) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
						   const GjBatchTarget *target, uint32_t *n);

	/*
	 * Sorts n integers of `width` bytes (2, 4 or 8) ascending and removes duplicates,
	 * in place.  *n_unique host.  May work for long: asks stop(arg).  Waits.
	 */
	GjStatus	(*sort_unique) (GjQueue *queue, void *values, uint32_t width, uint64_t n,
								bool (*stop) (void *), void *arg, uint64_t *n_unique);
	/*
	 * One pair of sets: what pair->operation makes of two sorted, unique arrays,
	 * ascending, into result (room for the smaller of na and nb for INTERSECT, na + nb for
	 * UNION, na for EXCEPT), or only counted if result is NULL.  pair->algorithm is for
	 * INTERSECT; the others merge.  *n host.  May work for long: asks stop(arg).  Waits.
	 * (Merge path: Green, McColl, Bader, "GPU Merge Path", ICS 2012.)
	 */
	GjStatus	(*set_pair) (GjQueue *queue, const GjSetPair *pair, bool (*stop) (void *),
							 void *arg, void *result, uint64_t *n);

	/*
	 * Sets of the integer arrays in `column` (GjArrayColumn), for tuples first .. first+n-1
	 * of the view.  null[i] = 1 if tuple i has none, else 0; size[i] = its elements that are
	 * not NULL, duplicates too, or 0; *total (host) = all of them.  Waits.
	 */
	GjStatus	(*array_sizes) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
								const GjArrayColumn *column, int32_t *size, uint8_t *null,
								uint64_t *total);
	/*
	 * The elements of all tuples of the view, whose sizes array_sizes has found, one set after
	 * the other, ascending and without duplicates, into values (room for all, column->width
	 * each).  size[i] becomes the size of set i, *nvalues (host) their sum.  May work for
	 * long: asks stop(arg).  Waits.
	 */
	GjStatus	(*array_sets) (GjQueue *queue, const GjView *view, const GjArrayColumn *column,
							   int32_t *size, void *values, bool (*stop) (void *), void *arg,
							   uint64_t *nvalues);

	/*
	 * flags[i] = 1 if row i of keys->nrows differs from row i - distance in one of the values
	 * 0 .. nkeys-1 of keys, or there is no such row; else 0.  keys->null is not read.
	 */
	GjStatus	(*flag_changes) (GjQueue *queue, const GjKeys *keys, uint32_t nkeys,
								 uint32_t distance, uint8_t *flags);
	/* size[i] = starts[i+1] - starts[i] for i < n, starts[n] being nrows. */
	GjStatus	(*run_sizes) (GjQueue *queue, const uint32_t *starts, uint32_t n, uint32_t nrows,
							  int32_t *size);

	/*
	 * Makes a family of what sets->size and sets->values hold (device memory; values are
	 * lost), and what spec->algorithm needs besides.  GJ_BAD_PROGRAM if the sizes do not
	 * add up.  The family is given back by set_free, also after a failure.  May work for
	 * long: asks stop(arg).  Waits.
	 */
	GjStatus	(*set_build) (GjQueue *queue, const GjSetInput *sets, const GjSetSpec *spec,
							  bool (*stop) (void *), void *arg, GjSetFamily *family);
	void		(*set_free) (GjQueue *queue, GjSetFamily *family);

	/*
	 * The pairs of a tile that spec wants, in the order of left, then right (top_k: then
	 * rank), into device arrays with room for family->tile_pairs entries.  A tile is left sets
	 * left .. left+nleft-1 times right sets right .. right+nright-1, numbered within their
	 * families, and has no more pairs than that (src/device/set_plan.h makes the tiles).  *n host.
	 * May work for long, where sets are large: asks stop(arg).  Waits.
	 */
	GjStatus	(*set_tile) (GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
							 const GjSetTile *tile, bool (*stop) (void *), void *arg,
							 uint32_t *const out[3], uint32_t *n);

	/* Clears the table, which has room for them, and enters all intersections. */
	GjStatus	(*intersections_rehash) (GjQueue *queue, const GjIntersections *found);
	/*
	 * Looks up the pairs that have common elements, and whose intersection belongs to the part:
	 * their hash and slot_of.  positions[0 .. *n) = pairs that are to become intersections,
	 * ascending.  *n host.  May work for long, where sets are large: asks stop(arg).  Waits.
	 */
	GjStatus	(*intersections_find) (GjQueue *queue, const GjSetFamily *family,
									   const GjIntersections *found, const GjFoundPairs *pairs,
									   bool (*stop) (void *), void *arg, uint32_t *n);
	/*
	 * Makes pairs positions[0 .. n) intersections number found->n, ..., for which there is room,
	 * and counts all pairs that were looked up.
	 */
	GjStatus	(*intersections_add) (GjQueue *queue, const GjIntersections *found,
									  const GjFoundPairs *pairs, uint32_t n);
	/*
	 * Elements of intersections first, first + 1, ...: as many, up to max, as have no more than
	 * `room` elements together, but at least one.  at[0 .. *n] (device, room for max + 1) = where
	 * the elements of each start, counted from 0; *n and *total = at[*n] are host.  Waits.
	 */
	GjStatus	(*intersections_place) (GjQueue *queue, const GjIntersections *found,
										uint32_t first, uint32_t max, uint64_t room,
										uint64_t *at, uint32_t *n, uint64_t *total);
	/*
	 * Writes the elements of intersections first .. first+n-1 where `at` says, each ascending.
	 * `elements` are those of all sets of the family as they were before set_build took them,
	 * `width` bytes each.  frequency[i] = 0, but the intersection's for its last element.  May
	 * work for long, where sets are large: asks stop(arg).
	 */
	GjStatus	(*intersections_write) (GjQueue *queue, const GjSetFamily *family,
										const GjIntersections *found, const void *elements,
										uint32_t width, uint32_t first, uint32_t n,
										const uint64_t *at, bool (*stop) (void *), void *arg,
										void *values, int64_t *frequency);
} GjDeviceOps;

extern const GjDeviceOps gj_cpu_device;

#ifdef GJ_WITH_CUDA
extern const GjDeviceOps gj_cuda_device;
#endif

#ifdef __cplusplus
}
#endif

#endif							/* GJ_DEVICE_DEVICE_H */
