/*
 * group.h
 *	  The groups of a run: what group.c, group_parts.c and group_stage.c share.
 */
#ifndef GJ_DAEMON_SINK_GROUP_H
#define GJ_DAEMON_SINK_GROUP_H

#include "internal.h"

typedef struct GjGrouping
{
	GjGroups	groups;			/* what the buffers hold */
	GjGroupRows tuples;			/* of the piece in work */
	const GjGroups *numbered;	/* the key is the number of one of these groups yet; NULL: it is not */
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

/* The groups of a run; NULL: there are none yet. */
static inline GjGrouping *
gj_grouping(const GjRun *run)
{
	return run->output.state;
}

/* ---- sink/group.c */

/* No groups yet, of the first nkeys keys. */
extern GjStatus gj_groups_start(GjRun *run, uint32_t nkeys);
extern void gj_groups_free(GjWork *work, GjGrouping *grouping);
/* Frees those of a run, which has none then (GjSinkOps.free). */
extern void gj_groups_drop(GjRun *run);
/* Frees what only a piece in work needs. */
extern void gj_groups_free_tuples(GjWork *work, GjGrouping *grouping);
/*
 * Gives groups, whose key is the number of one of `numbered` yet, that one's key (GjSinkOps.take_keys).
 * Until then they are groups of an integer key.
 */
extern GjStatus gj_groups_take_keys(GjRun *run);
/* Has the run's grouping, which is empty, take such numbers. */
extern void gj_groups_number(GjRun *run, const GjGroups *numbered);
/* Room for n more groups whose references take nbytes. */
extern GjStatus gj_groups_grow(GjRun *run, uint32_t n, uint64_t nbytes);
/*
 * Makes those at n positions (device) of `from`, which are finished, groups 0 .. n-1 of the run, which
 * are not counted yet: keys, and states where `from` has any.
 */
extern GjStatus gj_groups_copy(GjRun *run, const GjGroups *from, const uint32_t *positions,
							   uint32_t n);
/* Fills a slot with groups from `first` on; *n = how many; adds what travels to *nbytes. */
extern GjStatus gj_groups_fill(GjRun *run, uint8_t *slot, uint32_t first, uint32_t *n,
							   uint64_t *nbytes);

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

/* ---- sink/group_order.c */

/*
 * Leaves the groups that the program's limit wants, or puts all of them into their order.
 * Where memory is short for a limit all of them stay: whoever asked sorts what comes, and
 * checks it.
 */
extern GjStatus gj_groups_sort(GjRun *run);
/* Hands all groups over, which are in their order. */
extern GjStatus gj_groups_hand_over_sorted(GjRun *run);

/* ---- sink/group_parts.c */

/* Hands all groups over to the target; there are none afterwards. */
extern GjStatus gj_groups_hand_over(GjRun *run);

/* ---- sink/group_stage.c */

/* Hands all groups over as rows on the device.  *kept = false: there is no room for that. */
extern GjStatus gj_groups_keep_rows(GjRun *run, bool *kept);

#endif							/* GJ_DAEMON_SINK_GROUP_H */
