/*
 * source.h
 *	  Where the rows of one side of a join come from.
 *
 * A heap source reads the pages of tables itself, a plan source runs a child plan;
 * both fill slots of a load ring with the same columns.  A source belongs to one
 * process; several processes can each have one over shares of the same tables.
 */
#ifndef GJ_SOURCE_H
#define GJ_SOURCE_H

#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "client/client.h"
#include "load/column_writer.h"
#include "load/share.h"
#include "load/resident.h"

typedef struct GjSourceReader GjSourceReader;

/*
 * A table of a heap source: its only one, or a partition, a child, a member of UNION ALL.
 * The columns of all tables of a source are of the same types.
 */
typedef struct GjTable
{
	Oid			relid;
	const AttrNumber *attnos;	/* attribute of each column of the source */
	GjBlockShare    *share;			/* what is still to be loaded */
	GjBlockShare		own_share;		/* that, unless other processes load too */
	bool		shareable;		/* false: other processes cannot read it (temporary table) */
	uint32		number;			/* of those that gpujoind was asked about */
	const GjResidentMap *resident;	/* what need not be loaded, and what is to be kept; or NULL */
} GjTable;

struct GjSourceReader
{
	/*
	 * Fills the writer's slot until it is full or the source is at its end.  False at
	 * the end (the slot may hold rows nevertheless), or if *failure was set.
	 */
	bool		(*fill) (GjSourceReader *reader, GjWriter *writer, GjFailure *failure);

	/* Gives back what the reader holds; memory belongs to the context it was made in. */
	void		(*close) (GjSourceReader *reader);

	/* A heap source's, the caller's memory, and what other processes need to load them too. */
	GjTable    *tables;
	int			ntables;		/* 0: a plan source, or there is nothing to read */
	GjResidentTable *asked;		/* while gpujoind is asked about them */

	uint64		npages;			/* heap pages read */
	uint64		nvisible;		/* of these: all-visible by page and visibility map */
	uint64		nresident;		/* heap pages that were not read, for they are resident */
};

/*
 * Reader of tables, one after the other.  relid and attnos of each are given; where share is
 * NULL, the table is measured and becomes a share of its own.  share and resident may be
 * replaced before the first fill.  NULL with the reason if tables must not be read this way
 * here (kind of snapshot, old_snapshot_threshold).
 */
extern GjSourceReader *gj_heap_source(GjTable *tables, int ntables, Snapshot snapshot,
									  const GjProgram *program, int source, GjFailure *failure);

/*
 * Has gpujoind be asked what of the tables is resident: *use is to be sent, and the reader leaves
 * it out.  nworkers could help to load all of it.  Called before the first fill.  gj_heap_source_found follows when that is known, or
 * when it will not be.
 */
extern void gj_heap_source_ask(GjSourceReader *reader, GjResidentAsks *asks,
							   const GjWriter *writer, int source, int nworkers,
							   GjResidentUse *use);
extern void gj_heap_source_found(GjSourceReader *reader);

/* Pages that are not known to be resident, and that other processes can read. */
extern uint64 gj_heap_source_left(const GjSourceReader *reader);

/* ---- heap_source.c for heap_tables.c */

/*
 * Makes all blocks of a table a share of its own.  False with the reason if values that its
 * tuples lack might not fit a slot (program_builder.c).
 */
extern bool gj_table_measure(GjTable *table, const GjProgram *program, int source,
							 GjFailure *failure);

/* Reader of one table that has been measured, here or by the leader. */
extern GjSourceReader *gj_table_source(GjTable *table, Snapshot snapshot,
									   const GjProgram *program, int source);

/*
 * Reader of a child plan.  resnos[i] is the target list entry of column i.  Values that
 * are too long for a slot go to `held`.
 */
extern GjSourceReader *gj_plan_source(PlanState *child, const GjProgram *program, int source,
									  const AttrNumber *resnos, GjHeldValues *held);

#endif							/* GJ_SOURCE_H */
