/*
 * internal.h
 *	  What the files of set programs and set joins share; others include sets.h.
 */
#ifndef GJ_DAEMON_SETS_INTERNAL_H
#define GJ_DAEMON_SETS_INTERNAL_H

#include "sets.h"
#include "daemon/run/state.h"

/* Sets of one side of a step of GJ_JOIN_SET. */
typedef struct GjRunSets
{
	uint64_t	n;
	uint64_t	nvalues;
	GjBuffer	tuple;			/* [n]: probe side: number of the tuple; build side: row id */
	GjBuffer	size;			/* [n] */
	GjBuffer	values;			/* elements of all sets */
	/* while sets are added */
	GjBuffer	new_size;
	GjBuffer	null;
	GjBuffer	positions;
	GjBuffer	rows;
} GjRunSets;

#define GJ_MEMBER_KEYS		3

/* One side of a step of GJ_JOIN_SET with `membership`. */
typedef struct GjMembershipSide
{
	/*
	 * keys of a row, as ordered_keys takes them: perhaps whether the set is NULL, the set, the
	 * element
	 */
	uint32_t	nkeys;
	int32_t		operand[GJ_MEMBER_KEYS];
	/* rows as they come */
	uint64_t	nrows;
	GjBuffer	value[GJ_MEMBER_KEYS];
	GjBuffer	null;			/* rows that are in no set */
	/* when all are there */
	bool		sorted;
	GjHashTable table;			/* of sort_build */
	uint64_t	table_bytes;	/* taken from the lease */
	uint32_t	nsets;
	GjBuffer	start;			/* [nsets]: place of the first row */
	GjBuffer	size;			/* [nsets] */
	GjBuffer	set_null;		/* of each row, in order: its set is NULL; none: no set is */
	uint64_t	multiplicity;	/* not less than how often any element is in one set */
} GjMembershipSide;

typedef struct GjRunSetJoin
{
	const GjSetStep *step;
	GjRunSets	build_side;
	GjRunSets	probe_side;		/* while a family is joined */
	GjBuffer	build_row;
	GjBuffer	out[3];			/* what set_tile writes */
	GjMembershipSide side[2];	/* membership: probe, build */
	bool		flushed;		/* the probe rows have been joined in parts */
} GjRunSetJoin;

/* The sets of a step. */
static inline GjRunSetJoin *
gj_set(const GjRunStep *rs)
{
	return rs->join_state;
}

/* Device memory that a family takes while it is built, for each element and each set. */
#define GJ_ELEMENT_SPACE	60
#define GJ_SET_SPACE		32

/* ---- sets.c */

/*
 * What is counted of the device memory that a tile of GJ_MAX_TUPLES pairs takes: all, or a quarter
 * of what the run may have if that is less.  Most is scratch memory of the queue, of which other
 * operators count nothing.
 */
extern uint64_t gj_run_tile_space(const GjRun *run);
/*
 * A family was built: chooses how many pairs its tiles have, and makes room for as many in out[0 ..
 * 3).  npairs: as many as other runs' tiles; 0: as many as there is memory for.  What larger tiles
 * take beside that is taken from the lease and added to *space.
 */
extern GjStatus gj_run_make_tiles(GjRun *run, GjSetFamily *family, uint32_t npairs, GjBuffer out[3],
								  uint64_t *space);
/* A source of sets has ended. */
extern GjStatus gj_sets_source_ended(GjRun *run, uint32_t source);

/* ---- intersections.c */

/*
 * Sends the distinct intersections of the family's pairs.  `elements` are those of all sets, as
 * they were loaded; `behind` is as in GjFoundPairs; `out` is for set_tile.
 */
extern GjStatus gj_run_intersections(GjRun *run, const GjSetSpec *spec, const GjSetFamily *family,
									 const void *elements, const uint32_t *behind,
									 uint32_t *const out[3]);

/* ---- set_join.c, also for membership.c */

/* What a step reads and makes. */
extern bool gj_set_join_plan(GjRun *run, GjRunStep *rs);
extern void gj_set_join_free(GjWork *work, GjRunStep *rs);
extern void gj_set_join_free_sets(GjWork *work, GjRunSets *sets);
/*
 * Makes a family of the sets, which lie in the step's probe_side, and room for the pairs of its
 * tiles.  What it takes from the lease, beside buffers, is *space.
 */
extern GjStatus gj_set_join_build(GjRun *run, GjRunStep *rs, const GjSetInput *sets,
								  GjSetSpec *spec, GjSetFamily *family, uint64_t *space);
extern void gj_set_join_free_family(GjRun *run, GjRunStep *rs, GjSetFamily *family,
									uint64_t *space);
/* Takes the pairs of a family's tiles, whose number is in npairs, to where they go. */
typedef GjStatus (*GjPassPairs) (GjRun *run, uint32_t i, const void *arg, uint32_t npairs);
extern GjStatus gj_set_join_tiles(GjRun *run, uint32_t i, const GjSetSpec *spec,
								  const GjSetFamily *family, GjPassPairs pass, const void *arg);
/* What is asked for.  False: no pair can match. */
extern bool gj_set_join_spec(const GjRun *run, const GjSetStep *step, GjSetSpec *spec);

#endif							/* GJ_DAEMON_SETS_INTERNAL_H */
