/*
 * ranges.h
 *	  What the files of ranges share: sorted rows of all runs, and who gets which (ranges_cut.c).
 */
#ifndef GJ_DAEMON_RUN_RANGES_H
#define GJ_DAEMON_RUN_RANGES_H

#include "state.h"

/* Samples of a side that a run has, about so many. */
#define GJ_RANGE_SAMPLES	1024

/* Rows of a side that a run has gathered, sorted, on its device. */
typedef struct GjRangeRows
{
	GjDevice   *device;
	uint32_t	nrows;
	uint32_t	every;			/* the i-th sample is the value of row i * every */
	uint32_t	nsamples;
	int64_t    *samples;
	GjColumn   *columns;		/* of the source */
	uint32_t	cut[GJ_MAX_RUN_DEVICES + 1];	/* where the part of each run begins, and all end */
} GjRangeRows;

/* Which side; also the number of its source's operand. */
enum
{
	GJ_RANGE_PROBE,
	GJ_RANGE_BUILD
};

struct GjRanges
{
	uint32_t	step;
	uint32_t	nruns;
	GjRangeRows rows[2][GJ_MAX_RUN_DEVICES];
};

/*
 * ranges_cut.c: rows *first .. *end-1 have all values between low and high; none, if low > high.
 */
extern void gj_ranges_reach(const GjRangeRows *rows, int64_t low, int64_t high, uint32_t *first,
							uint32_t *end);

#endif							/* GJ_DAEMON_RUN_RANGES_H */
