/*
 * groups.h
 *	  Groups, and aggregates with and without them.
 */
#ifndef GJ_DEVICE_GROUPS_H
#define GJ_DEVICE_GROUPS_H

#include "memory.h"
#include "table.h"

/*
 * Group keys of nrows rows (tuples, or the groups found so far), device memory.  A value is
 * a register's, or what GjGroupKey says of its kind; references point into heap[k].
 */
typedef struct GjGroupRows
{
	uint32_t	nkeys;
	uint32_t	nrows;
	uint32_t	ndependent;		/* of the last keys: neither hashed nor compared */
	uint32_t   *null;			/* bit k: key k is NULL */
	uint64_t   *hash;			/* of all other keys */
	int64_t    *value[GJ_MAX_GROUP_KEYS];
	const uint8_t *heap[GJ_MAX_GROUP_KEYS];
	uint8_t		how[GJ_MAX_GROUP_KEYS];	/* GjGroupHow */
} GjGroupRows;

/*
 * The groups found so far and a hash table over them: open addressing, a slot holds 32 bits
 * of the hash and a number.  While tuples are looked up, numbers from rows.nrows on stand
 * for tuples that no group has yet: the first of each new group to arrive.
 */
typedef struct GjGroups
{
	GjGroupRows rows;			/* one a group, its keys those of a tuple in it */
	uint64_t	nslots;			/* at least twice what the table holds, at most 2^31 */
	uint64_t   *slots;
	uint8_t    *heap;			/* bytes of references, in the order of groups, then keys */
	uint64_t   *heap_end;		/* end of each group's bytes; NULL: no key is a reference */
	GjAggState *state[GJ_MAX_AGGREGATES];	/* of each aggregate, one a group */
} GjGroups;

/* A column that a source of another program reads, made of groups: what it is, and where it goes. */
typedef struct GjGroupColumn
{
	GjColumnType type;
	uint32_t	value;			/* GjStageValue */
	uint32_t	from;			/* the key, or the aggregate */
	void	   *data;			/* [groups] of type.width bytes, device */
	uint8_t    *nulls;			/* the same, 0 or 1 */
	uint32_t   *any_null;		/* becomes 1 where there is one, device */
} GjGroupColumn;

/* Aggregates and groups. */
typedef struct GjGroupOps
{
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
	 * which has room for them and their bytes.  heap_at is not read if to->heap_end is NULL.  Where
	 * `from` has no states, those of `to` stay as they are.
	 */
	GjStatus	(*group_keep) (GjQueue *queue, const GjGroups *from, const uint32_t *positions,
							   uint32_t n, const uint64_t *heap_at, const GjGroups *to);

	/*
	 * Makes a column of all groups, which are finished.  References stay relative to the heap of
	 * the groups.  A sum that does not fit is a row error (GJ_OVERFLOW).
	 */
	GjStatus	(*group_column) (GjQueue *queue, const GjGroups *groups,
								 const GjGroupColumn *column);
} GjGroupOps;

#endif							/* GJ_DEVICE_GROUPS_H */
