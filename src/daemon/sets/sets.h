/*
 * sets.h
 *	  Programs of sets, as the rest of gpujoind sees them: sinks that work on whole sources.
 */
#ifndef GJ_DAEMON_SETS_SETS_H
#define GJ_DAEMON_SETS_SETS_H

#include "daemon/run/sink.h"

/* intersect.c: what two sets have in common, or what else GjSetSpec says of them; or only how many values. */
extern const GjSinkOps gj_sink_pair;
extern const GjSinkOps gj_sink_pair_count;

/* sets.c: pairs of two families; the best of them; and distinct intersections of pairs. */
extern const GjSinkOps gj_sink_pairs;
extern const GjSinkOps gj_sink_best_pairs;
extern const GjSinkOps gj_sink_intersections;

/* What large tiles take more than small ones, pairs included. */
#define GJ_LARGE_TILE_SPACE	(UINT64_C(176) << 20)

#endif							/* GJ_DAEMON_SETS_SETS_H */
