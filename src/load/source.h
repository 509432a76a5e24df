/*
 * source.h
 *	  Where the rows of one side of a join come from.
 *
 * A heap source reads the pages of a table itself, a plan source runs a child plan;
 * both fill slots of a load ring with the same columns.  A source belongs to one
 * process; several processes can each have one over shares of the same table.
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

struct GjSourceReader
{
	/*
	 * Fills the writer's slot until it is full or the source is at its end.  False at
	 * the end (the slot may hold rows nevertheless), or if *failure was set.
	 */
	bool		(*fill) (GjSourceReader *reader, GjWriter *writer, GjFailure *failure);

	/* Gives back what the reader holds; memory belongs to the context it was made in. */
	void		(*close) (GjSourceReader *reader);

	/*
	 * A table: what is still to be loaded of it, and what other processes need to load it
	 * too.  share = NULL: a plan source.
	 */
	GjShare    *share;
	bool		shareable;		/* false: other processes cannot read it (temporary table) */
	Oid			relid;
	const AttrNumber *attnos;	/* the caller's */

	/* Of a table, or NULL: what need not be loaded, and what is to be kept. */
	const GjResidentMap *resident;

	uint64		npages;			/* heap pages read */
	uint64		nvisible;		/* of these: all-visible by the visibility map */
	uint64		nresident;		/* heap pages that were not read, for they are resident */
};

/*
 * Reader of a table.  attnos[i] is the attribute of column i.  It loads what it gets out of
 * `share`, or all of the table if that is NULL; base.share may be replaced before the first
 * fill.  NULL with the reason if the table must not be read this way here (kind of snapshot,
 * old_snapshot_threshold).
 */
extern GjSourceReader *gj_heap_source(Oid relid, Snapshot snapshot, const GjProgram *program,
									  int source, const AttrNumber *attnos, GjShare *share,
									  GjFailure *failure);

/*
 * Finds out what of the table is resident: *use is to be sent, and the reader leaves it out.
 * Called before the first fill.  False with the reason if the run has failed.
 */
extern bool gj_heap_source_ask(GjSourceReader *reader, GjClient *client, const GjWriter *writer,
							   int source, const AttrNumber *attnos, GjResidentUse *use,
							   GjFailure *failure);

/*
 * Reader of a child plan.  resnos[i] is the target list entry of column i.  Values that
 * are too long for a slot go to `held`.
 */
extern GjSourceReader *gj_plan_source(PlanState *child, const GjProgram *program, int source,
									  const AttrNumber *resnos, GjHeldValues *held);

#endif							/* GJ_SOURCE_H */
