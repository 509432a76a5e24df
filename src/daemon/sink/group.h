/*
 * group.h
 *	  The groups of a run: what sink/group.c and sink/group_parts.c share, and parts of groups.
 *
 * A part of groups is what some run knows of some groups: finished states, to be added to
 * those of other parts.  It travels as a chunk whose columns are the null bits of the keys,
 * the keys and the states of the aggregates.  With the distinct key among the keys, the states
 * of distinct aggregates are not yet anything; without it they are of some of its values.
 */
#ifndef GJ_DAEMON_SINK_GROUP_H
#define GJ_DAEMON_SINK_GROUP_H

#include "daemon/run/state.h"

typedef struct GjGrouping
{
	GjGroups	groups;			/* what the buffers hold */
	GjGroupRows tuples;			/* of the piece in work */
	bool		refs;			/* some key is a reference */
	uint64_t	heap_used;

	/* of groups */
	GjBuffer	slots;
	GjBuffer	null;
	GjBuffer	hash;
	GjBuffer	value[GJ_MAX_GROUP_KEYS];
	GjBuffer	heap;
	GjBuffer	heap_end;
	GjBuffer	state[GJ_MAX_AGGREGATES];

	/* of tuples */
	GjBuffer	tuple_null;
	GjBuffer	tuple_hash;
	GjBuffer	tuple_value[GJ_MAX_GROUP_KEYS];
	GjBuffer	slot_of;
	GjBuffer	positions;
	GjBuffer	heap_at;

	bool		is_joined;		/* all there is was made elsewhere: */
	GjBuffer	incoming;		/* parts of groups */
	GjBuffer	incoming_hash;
} GjGrouping;

#define GJ_PART_COLUMNS		(1 + GJ_MAX_GROUP_KEYS + GJ_MAX_AGGREGATES)

/* How a part lies in a slot of GJ_OUTPUT_SLOT_SIZE bytes. */
typedef struct GjPartLayout
{
	GjLayout	layout;
	GjColumnType types[GJ_PART_COLUMNS];
	GjColumnPlace places[GJ_PART_COLUMNS];
} GjPartLayout;

/* ---- sink/group.c */

/* No groups yet, of the first nkeys keys. */
extern GjStatus gj_groups_start(GjRun *run, uint32_t nkeys);
extern void gj_groups_free(GjWork *work, GjGrouping *grouping);
/* Frees what only a piece in work needs. */
extern void gj_groups_free_tuples(GjWork *work, GjGrouping *grouping);

/*
 * Groups finished groups first .. of `from` by the keys that the run's grouping has: as many
 * as there is room for, at most *n.
 */
extern GjStatus gj_groups_regroup(GjRun *run, const GjGroups *from, uint32_t first, uint32_t *n);

/*
 * Copies the bytes of references of groups from `first` on to a heap of `limit` bytes: all of
 * the *n groups, or as many as it has room for.  end[*n] is room for where each one's end.
 * *base = where they began, *nbytes = how many.
 */
extern GjStatus gj_groups_copy_heap(GjRun *run, uint32_t first, uint32_t *n, uint64_t *end,
									uint8_t *heap, uint32_t limit, uint64_t *base,
									uint32_t *nbytes);
/* References of n groups in a slot, keys at places[], become references into its heap. */
extern void gj_groups_move_refs(const GjRun *run, uint8_t *slot, const GjColumnPlace *places,
								uint32_t n, uint64_t base);

/* ---- sink/group_parts.c */

/* Of the first nkeys keys.  False: rows are too wide for a slot. */
extern bool gj_part_layout(const GjProgram *program, uint32_t nkeys, GjPartLayout *part);

/* Hands all groups over to the host (keep_part); there are none afterwards. */
extern GjStatus gj_groups_hand_over(GjRun *run);

#endif							/* GJ_DAEMON_SINK_GROUP_H */
