/*
 * partition.h
 *	  What passes.c, feed.c, partition.c and splitter.c share: the parts that a run is split into.
 */
#ifndef GJ_DAEMON_TEAM_STRATEGY_PARTITION_H
#define GJ_DAEMON_TEAM_STRATEGY_PARTITION_H

#include "strategy.h"
#include "daemon/program/program.h"

/* Parts at most. */
#define GJ_MAX_PARTS		1024

/* Device memory that a row of a build side takes while it is built, beside its columns. */
#define GJ_ROW_BYTES		80
#define GJ_KEY_BYTES		9
/* By how much sets, and families of them, are larger than the arrays that they are made of. */
#define GJ_SET_HEAP_FACTOR	8
/* What a row takes beside, if it is an element of a set. */
#define GJ_ELEMENT_BYTES		120

/* Chunks, or slots full of records, that are split at a time. */
#define GJ_SPLIT_ITEMS		64

/*
 * What one thread splits: a chunk in a slot of a load ring, or records that are kept already and
 * fit a slot.  The session's thread fills it in and takes the records that are made; in between
 * it is the thread's that works on it.
 */
typedef struct GjSplitItem
{
	uint32_t	source;
	bool		by_key;			/* else all rows are of part 0 */
	GjSpillList *lists;			/* of the parts, which get the records */
	const uint8_t *memory;		/* of the chunk */
	uint32_t	nrows;
	uint32_t	slot;
	GjSpillRecord *records;		/* NULL: it is a chunk */
	uint32_t	nrecords;

	GjStatus	status;
	const char *error;			/* NULL: the spill's */
	GjSpillRecord *made;		/* [max_made] */
	uint16_t   *part;			/* [max_made] */
	uint32_t	nmade;
	uint32_t	max_made;
} GjSplitItem;

typedef struct GjSplitter GjSplitter;

typedef struct GjPartition
{
	GjTeam    *team;
	const GjProgram *program;
	const GjSource *sources;
	const GjStep *steps;
	const GjColumnType *types;
	GjSpill    *spill;			/* the team's */
	GjLayout	layout[GJ_MAX_SOURCES];
	GjColumnPlace *places;		/* of all columns */
	GjSpillList build_side[GJ_MAX_SOURCES];	/* not of the source that is split by key */

	uint64_t	budget;			/* bytes on each device */
	int			key_step;		/* -1: none */
	uint32_t	nparts;
	GjSpillList *build_parts;	/* [nparts], of the source of key_step */
	GjSpillList *probe_parts;

	GjPool	   *pool;			/* the cpu's threads, which copy rows */
	GjTile		tile;			/* the session's thread's, as it works with them */
	GjCode		code;			/* to compute keys with */
	uint32_t	capacity;		/* rows of a chunk */
	pthread_mutex_t splitter_lock;
	GjSplitter *splitters;		/* that nobody uses; guarded by splitter_lock */
	GjSplitItem items[GJ_SPLIT_ITEMS];
	uint32_t	nitems;			/* that wait */
} GjPartition;

/* ---- partition.c */

/* NULL: the program cannot be split. */
extern GjPartition *gj_partition_open(GjTeam *team, GjStatus *status, GjErrorText *why);
extern void gj_partition_close(GjPartition *partition);

/* Keeps a chunk, which is read until gj_partition_flush has given its slot back. */
extern GjStatus gj_partition_chunk(GjPartition *partition, uint32_t source, uint32_t nrows,
								   const uint8_t *memory, uint32_t slot);

/* Reads all chunks that have come, if they are at least so many, and gives their slots back. */
extern GjStatus gj_partition_flush(GjPartition *partition, uint32_t least);

/* What every device has room for. */
extern uint64_t gj_partition_budget(GjTeam *team);

/* All build sources have come: what they need together, */
extern uint64_t gj_partition_need(const GjPartition *partition);

/* and splitting one of them by key, if one can be, within the budget. */
extern GjStatus gj_partition_split(GjPartition *partition, uint64_t need);

/* Gives what is kept of build sources back: the devices have it. */
extern void gj_partition_free_build(GjPartition *partition);

/* ---- splitter.c */

/* One more item, of which there are less than GJ_SPLIT_ITEMS; the caller says what is in it. */
extern GjSplitItem *gj_split_add(GjPartition *partition, uint32_t source, bool by_key,
								 GjSpillList *lists);

/* Splits all items that wait. */
extern GjStatus gj_split_items(GjPartition *partition);

/* Forgets which keys were seen: parts are made anew. */
extern void gj_splitters_forget(GjPartition *partition);
extern void gj_splitters_close(GjPartition *partition);

/* ---- feed.c */

/* The staging memory of a worker. */
typedef struct GjStaging
{
	GjSegment  *segment;		/* slots that are filled from records */
	uint64_t	nslots;			/* that its run was given */
} GjStaging;

/* Before the worker's next run is fed. */
extern GjStatus gj_feed_start(GjStaging *staging, GjWorker *worker);

/* Gives the worker's run records first .. end-1 of each of n lists. */
extern GjStatus gj_feed_lists(GjPartition *partition, GjWorker *worker, GjStaging *staging,
							  uint32_t s, const GjSpillList *lists, uint32_t n, uint32_t first,
							  uint32_t end);

/* ---- what may be split */

/* True if a step but `other` has rows of its build side come out at the end. */
static inline bool
gj_partition_others_keep_build(const GjPartition *partition, int other)
{
	for (uint32_t i = 0; i < partition->program->nsteps; i++)
		if ((int) i != other && gj_step_makes_rows(&partition->steps[i]))
			return true;
	return false;
}

/*
 * True if passes mark the probe rows that have a match, and one more pass makes tuples by the marks:
 * all rows of the probe side are in one part, and the first step is the one that asks.
 */
static inline bool
gj_partition_marks_rows(const GjPartition *partition)
{
	const GjStep *step = partition->steps;

	return partition->program->nsteps > 0 && partition->key_step < 0 && step->nkeys == 0 &&
		gj_step_makes_tuples(step) && (step->algorithm == GJ_JOIN_NESTED_LOOP ||
									   step->algorithm == GJ_JOIN_SORT_MERGE) &&
		!gj_partition_others_keep_build(partition, 0);
}

/*
 * A pass sees all probe rows with a block of the source: so it makes its pairs, and knows which of
 * its rows have no match; which tuples have none is known by marks.
 */
static inline bool
gj_partition_can_split_by_blocks(const GjPartition *partition, uint32_t source)
{
	const GjStep *step = gj_program_step_of(partition->program, source);

	if (step == partition->steps && gj_partition_marks_rows(partition))
		return true;
	return (step->join_type == GJ_JOIN_INNER ||
			(gj_step_makes_rows(step) && step->join_type != GJ_JOIN_FULL)) &&
		!gj_partition_others_keep_build(partition, (int) (step - partition->steps));
}

static inline bool
gj_partition_is_key_source(const GjPartition *partition, uint32_t source)
{
	return partition->key_step >= 0 && partition->steps[partition->key_step].source == source;
}

/* ---- sizes */

/* Bytes on the device of rows of a build source. */
static inline uint64_t
gj_partition_need_of(const GjPartition *partition, uint32_t s, uint64_t nrows, uint64_t heap)
{
	const GjSource *source = &partition->sources[s];
	const GjStep *step = gj_program_step_of(partition->program, s);
	uint64_t	a_row = GJ_ROW_BYTES + GJ_KEY_BYTES * step->nkeys;

	for (uint32_t c = 0; c < source->ncolumns; c++)
		a_row += partition->types[source->first_column + c].width + 1;
	/* a family has several words an element, and arrays are what there is in the heap */
	if (step->algorithm == GJ_JOIN_SET)
	{
		heap *= GJ_SET_HEAP_FACTOR;
		a_row += step->nkeys * GJ_ELEMENT_BYTES;
	}
	return nrows * a_row + 2 * heap;
}

#endif							/* GJ_DAEMON_TEAM_STRATEGY_PARTITION_H */
