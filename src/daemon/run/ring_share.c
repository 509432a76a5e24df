/*
 * ring_share.c
 *	  The share that a run has of the build side of a ring: rows that pass the filter, put together,
 *	  as the runs of other devices copy them (ring.c).
 *
 * Bytes of references are moved so that those of each column lie in the order of rows: then a block
 * has them in one piece.
 */
#include "ring.h"

#include <stdlib.h>

/* Puts the rows that passed the filter together, as far as they are read later. */
static GjStatus
compact(GjRun *run, GjRunStep *rs)
{
	uint32_t	source = rs->step->source;
	GjRelation *relation = &run->relation[source];
	const GjNestedRows passed = gj_nested_all(rs);
	GjRunNested *nested = rs->join_state;
	GjColumn	columns[GJ_MAX_COLUMNS];

	if (!passed.rows)
		return GJ_OK;
	/* that many rows are more than one call takes */
	if (passed.nrows > INT32_MAX)
		return GJ_OUT_OF_MEMORY;
	gj_relation_columns(relation, 0, columns);
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		if (!run->late[run->sources[source].first_column + c])
			continue;
		GJ_STOP_CHECK(run);
		GJ_TRY(gj_relation_keep(&run->work, relation, c, &columns[c], passed.rows,
								passed.nrows, run->host->stop, run->host->arg));
	}
	relation->nrows = passed.nrows;
	gj_buffer_free(&run->work, &nested->rows);
	return GJ_OK;
}

/* Notes where the bytes of n references begin and end, every GJ_RING_STEP of them.  Waits. */
static GjStatus
note_heap(GjRun *run, GjRunRing *x, uint32_t c, const uint64_t *refs, uint32_t n)
{
	GjWork	   *work = &run->work;
	const uint64_t *at = x->heap_at.memory;
	uint32_t	nsteps = (n + GJ_RING_STEP - 1) / GJ_RING_STEP;

	GJ_TRY(work->ops->exchange->ref_bytes(work->queue, refs, n, x->heap_at.memory));
	x->own->heap_at[c] = calloc(nsteps + 1, sizeof(uint64_t));
	if (!x->own->heap_at[c])
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i <= nsteps; i++)
		GJ_TRY(work->ops->memory->copy_out(work->queue, &x->own->heap_at[c][i],
										   at + (i < nsteps ? i * GJ_RING_STEP : n),
										   sizeof(uint64_t)));
	return work->ops->queues->sync(work->queue);
}

/* Moves the bytes of a column's references to a heap of its own, in the order of rows. */
static GjStatus
move_heap(GjRun *run, GjRunRing *x, const GjRelation *relation, uint32_t c)
{
	GjWork	   *work = &run->work;
	uint64_t   *refs = relation->columns[c].data.memory;
	uint32_t	n = (uint32_t) relation->nrows;
	uint64_t	nbytes;

	GJ_TRY(gj_buffer_reserve(work, &x->heap_at, ((uint64_t) n + 1) * sizeof(uint64_t)));
	GJ_TRY(note_heap(run, x, c, refs, n));
	nbytes = x->own->heap_at[c][(n + GJ_RING_STEP - 1) / GJ_RING_STEP];
	if (nbytes > GJ_REF_MAX_OFFSET)
		return GJ_OUT_OF_MEMORY;
	GJ_TRY(gj_buffer_grow(work, &x->heap[c], 0, nbytes, 0));
	return work->ops->exchange->move_refs(work->queue, refs, n, relation->heap.memory,
										  x->heap_at.memory, x->heap[c].memory, 0);
}

GjStatus
gj_ring_build(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	uint32_t	source = rs->step->source;
	GjRelation *relation = &run->relation[source];
	GjRunRing  *x = rs->ring;
	GjRingShare *share = x->own;

	GJ_TRY(gj_nested_build(run, build, rs));
	GJ_TRY(compact(run, rs));
	for (uint32_t c = 0; c < relation->ncolumns; c++)
		if (run->late[run->sources[source].first_column + c] && relation->types[c].kind == GJ_REF)
			GJ_TRY(move_heap(run, x, relation, c));
	gj_buffer_free(&run->work, &x->heap_at);
	gj_relation_columns(relation, 0, share->columns);
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		share->columns[c].heap = x->heap[c].memory;
		if (!run->late[run->sources[source].first_column + c])
			share->columns[c].data = share->columns[c].nulls = NULL;
	}
	share->rows = gj_nested_all(rs);
	share->nrows = share->rows.nrows;
	return run->work.ops->queues->sync(run->work.queue);
}
