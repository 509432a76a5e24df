/*
 * internal.h
 *	  What the files of set programs and set joins share; others include sets.h.
 */
#ifndef GJ_DAEMON_SETS_INTERNAL_H
#define GJ_DAEMON_SETS_INTERNAL_H

#include "sets.h"
#include "daemon/run/state.h"

/* ---- sets.c */

/*
 * What is counted of the device memory that a tile of GJ_MAX_TUPLES pairs takes: all, or a quarter of
 * what the run may have if that is less.  Most is scratch memory of the queue, of which other
 * operators count nothing.
 */
extern uint64_t gj_run_tile_space(const GjRun *run);
/*
 * A family was built: chooses how many pairs its tiles have, and makes room for as many in out[0 .. 3).
 * npairs: as many as other runs' tiles; 0: as many as there is memory for.  What larger tiles take beside
 * that is taken from the lease and added to *space.
 */
extern GjStatus gj_run_make_tiles(GjRun *run, GjSetFamily *family, uint32_t npairs, GjBuffer out[3],
								  uint64_t *space);
/* A source of sets has ended. */
extern GjStatus gj_sets_source_ended(GjRun *run, uint32_t source);
extern GjStatus gj_sets_finish(GjRun *run);

/* ---- intersections.c */

/*
 * Sends the distinct intersections of the family's pairs.  `elements` are those of all sets, as they were
 * loaded; `behind` is as in GjFoundPairs; `out` is for set_tile.
 */
extern GjStatus gj_run_intersections(GjRun *run, const GjSetSpec *spec, const GjSetFamily *family,
									 const void *elements, const uint32_t *behind,
									 uint32_t *const out[3]);

#endif							/* GJ_DAEMON_SETS_INTERNAL_H */
