/*
 * sets.h
 *	  Programs of sets, as the rest of gpujoind sees them: sinks that work on whole sources.
 */
#ifndef GJ_DAEMON_SETS_SETS_H
#define GJ_DAEMON_SETS_SETS_H

#include "daemon/run/join.h"
#include "daemon/run/sink.h"

/*
 * intersect.c: what two sets have in common, or what else GjSetSpec says of them; or only how many
 * values.
 */
extern const GjSinkOps gj_sink_pair;
extern const GjSinkOps gj_sink_pair_count;

/* sets.c: pairs of two families; the best of them; and distinct intersections of pairs. */
extern const GjSinkOps gj_sink_pairs;
extern const GjSinkOps gj_sink_best_pairs;
extern const GjSinkOps gj_sink_intersections;

/* sets.c: of a run that has the sets alone. */
extern const GjTiles gj_all_tiles;

/* joins.c: how a step finds its pairs, by tables, loops or sets. */
extern const GjJoinOps *gj_join_choose(const GjProgram *program, const GjStep *step);

/* set_join.c: arrays as sets; membership.c: rows of a table that says what is in which set. */
extern const GjJoinOps gj_join_sets;
extern const GjJoinOps gj_join_membership;

/* What large tiles take more than small ones, pairs included. */
#define GJ_LARGE_TILE_SPACE	(UINT64_C(176) << 20)

#endif							/* GJ_DAEMON_SETS_SETS_H */
