/*
 * relation.c
 *	  Growable columns in device memory; see relation.h.
 */
#include "relation.h"

#include <stdlib.h>
#include <string.h>

/* However many rows the planner expects, no more than this is allocated unseen. */
#define GJ_MAX_HINT			(UINT64_C(16) * 1024 * 1024)

bool
gj_relation_init(GjRelation *relation, const GjColumnType *types, uint32_t ncolumns,
				 uint64_t nrows_hint)
{
	memset(relation, 0, sizeof(*relation));
	relation->types = types;
	relation->ncolumns = ncolumns;
	relation->hint = nrows_hint < GJ_MAX_HINT ? nrows_hint : GJ_MAX_HINT;
	relation->columns = calloc(ncolumns + 1, sizeof(GjRelationColumn));
	return relation->columns != NULL;
}

static GjStatus
grow(GjWork *work, const GjRelation *relation, GjBuffer *buffer, uint64_t used, uint64_t nbytes,
	 uint64_t hint)
{
	return relation->in_steps ? gj_buffer_grow_much(work, buffer, used, nbytes, hint) :
		gj_buffer_grow(work, buffer, used, nbytes, hint);
}

/* Appends the null flags of a column, which gets its map with its first NULL. */
static GjStatus
append_nulls(GjWork *work, GjRelation *relation, uint32_t c, const GjChunk *chunk)
{
	GjBuffer   *nulls = &relation->columns[c].nulls;
	bool		has_nulls = chunk->has_nulls[c] && relation->types[c].nullable;
	bool		fresh = nulls->memory == NULL;
	uint64_t	nrows = relation->nrows;
	uint8_t    *at;

	if (fresh && !has_nulls)
		return GJ_OK;
	GJ_TRY(grow(work, relation, nulls, fresh ? 0 : nrows, nrows + chunk->nrows, relation->hint));
	if (fresh && nrows > 0)
		GJ_TRY(work->ops->memory->fill(work->queue, nulls->memory, 0, nrows));
	at = (uint8_t *) nulls->memory + nrows;
	if (!has_nulls)
		return work->ops->memory->fill(work->queue, at, 0, chunk->nrows);
	return work->ops->memory->copy_in(work->queue, at, chunk->slot + chunk->places[c].nulls,
									  chunk->nrows);
}

/* Room for nrows more values of column c; *at: for the first of them. */
static GjStatus
grow_column(GjWork *work, GjRelation *relation, uint32_t c, uint32_t nrows, uint8_t **at)
{
	uint32_t	width = relation->types[c].width;
	GjBuffer   *data = &relation->columns[c].data;
	uint64_t	used = relation->nrows * width;

	GJ_TRY(grow(work, relation, data, used, used + (uint64_t) nrows * width,
				relation->hint * width));
	*at = (uint8_t *) data->memory + used;
	return GJ_OK;
}

GjStatus
gj_relation_reserve(GjWork *work, GjRelation *relation, uint32_t nrows)
{
	uint8_t    *at;

	for (uint32_t c = 0; c < relation->ncolumns && nrows > 0; c++)
		GJ_TRY(grow_column(work, relation, c, nrows, &at));
	return GJ_OK;
}

static GjStatus
append_column(GjWork *work, GjRelation *relation, uint32_t c, const GjChunk *chunk)
{
	const GjColumnType *type = &relation->types[c];
	uint8_t    *at;

	GJ_TRY(grow_column(work, relation, c, chunk->nrows, &at));
	GJ_TRY(work->ops->memory->copy_in(work->queue, at, chunk->slot + chunk->places[c].data,
							  (uint64_t) chunk->nrows * type->width));
	if (type->kind == GJ_REF)
		GJ_TRY(work->ops->columns->rebase_refs(work->queue, (uint64_t *) at, chunk->nrows,
									  relation->heap_used, chunk->heap_used));
	return append_nulls(work, relation, c, chunk);
}

GjStatus
gj_relation_append(GjWork *work, GjRelation *relation, const GjChunk *chunk)
{
	uint64_t	heap = relation->heap_used + chunk->heap_used;

	if (relation->nrows + chunk->nrows > GJ_MAX_ROWS || heap > GJ_REF_MAX_OFFSET)
		return GJ_TOO_LARGE;
	if (chunk->nrows == 0)
		return GJ_OK;
	for (uint32_t c = 0; c < relation->ncolumns; c++)
		GJ_TRY(append_column(work, relation, c, chunk));
	if (chunk->heap_used > 0)
	{
		GJ_TRY(grow(work, relation, &relation->heap, relation->heap_used, heap, 0));
		GJ_TRY(work->ops->memory->copy_in(work->queue,
								  (uint8_t *) relation->heap.memory + relation->heap_used,
								  chunk->slot + chunk->layout->heap, chunk->heap_used));
	}
	relation->heap_used = heap;
	relation->nrows += chunk->nrows;
	return GJ_OK;
}

/* A copy of what lies on this device, or on another one. */
static GjStatus
copy_rows(GjWork *work, void *to, const void *from, uint64_t nbytes)
{
	if (work->peer)
		return work->ops->memory->copy_peer(work->queue, to, work->peer, from, nbytes);
	return work->ops->memory->copy(work->queue, to, from, nbytes);
}

GjStatus
gj_relation_append_heap(GjWork *work, GjRelation *relation, const void *heap, uint64_t nbytes,
						uint64_t *base)
{
	*base = relation->heap_used;
	if (nbytes == 0)
		return GJ_OK;
	if (*base + nbytes > GJ_REF_MAX_OFFSET)
		return GJ_TOO_LARGE;
	GJ_TRY(gj_buffer_grow(work, &relation->heap, *base, *base + nbytes, 0));
	GJ_TRY(copy_rows(work, (uint8_t *) relation->heap.memory + *base, heap, nbytes));
	relation->heap_used += nbytes;
	return GJ_OK;
}

/* The null flags of rows on the device, `from`, or none. */
static GjStatus
append_device_nulls(GjWork *work, GjRelation *relation, uint32_t c, const uint8_t *from,
					uint32_t n)
{
	GjBuffer   *nulls = &relation->columns[c].nulls;
	bool		fresh = nulls->memory == NULL;
	uint64_t	nrows = relation->nrows;

	if (fresh && !from)
		return GJ_OK;
	GJ_TRY(gj_buffer_grow(work, nulls, fresh ? 0 : nrows, nrows + n, relation->hint));
	if (fresh && nrows > 0)
		GJ_TRY(work->ops->memory->fill(work->queue, nulls->memory, 0, nrows));
	if (!from)
		return work->ops->memory->fill(work->queue, (uint8_t *) nulls->memory + nrows, 0, n);
	return copy_rows(work, (uint8_t *) nulls->memory + nrows, from, n);
}

/* Appends values of a packed column, as they are; `heap`: here, a copy of what the column has. */
static GjStatus
unpack_rows(GjWork *work, const GjColumn *from, uint32_t nrows, const uint8_t *heap, void *to)
{
	GjBuffer	copy = {NULL, 0};
	GjPackColumn column = {*from, to, nrows};
	/* the last row ends where the one behind it begins */
	uint64_t	nbytes = ((uint64_t) nrows + gj_column_has_offsets(from)) * from->packed;
	GjStatus	status;

	column.from.heap = heap;
	if (!work->peer)
		return work->ops->columns->unpack(work->queue, &column, 1);
	GJ_TRY(gj_buffer_reserve(work, &copy, nbytes));
	status = copy_rows(work, copy.memory, from->data, nbytes);
	column.from.data = copy.memory;
	column.from.nulls = NULL;
	if (status == GJ_OK)
		status = work->ops->columns->unpack(work->queue, &column, 1);
	gj_buffer_free(work, &copy);
	return status;
}

GjStatus
gj_relation_append_rows(GjWork *work, GjRelation *relation, const GjColumn *columns,
						uint32_t nrows, uint64_t base, uint64_t heap_size)
{
	if (relation->nrows + nrows > GJ_MAX_ROWS)
		return GJ_TOO_LARGE;
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		const GjColumnType *type = &relation->types[c];
		uint8_t    *at;

		if (!columns[c].data)
			continue;
		GJ_TRY(grow_column(work, relation, c, nrows, &at));
		GJ_TRY(columns[c].packed ? unpack_rows(work, &columns[c], nrows,
											   (const uint8_t *) relation->heap.memory + base, at) :
			   copy_rows(work, at, columns[c].data, (uint64_t) nrows * type->width));
		if (type->kind == GJ_REF)
			GJ_TRY(work->ops->columns->rebase_refs(work->queue, (uint64_t *) at, nrows, base,
												   heap_size));
		GJ_TRY(append_device_nulls(work, relation, c, type->nullable ? columns[c].nulls : NULL,
								   nrows));
	}
	relation->nrows += nrows;
	return GJ_OK;
}

void
gj_relation_columns(const GjRelation *relation, uint64_t first, GjColumn *columns)
{
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		const GjColumnType *type = &relation->types[c];
		const GjRelationColumn *from = &relation->columns[c];

		memset(&columns[c], 0, sizeof(GjColumn));
		columns[c].kind = type->kind;
		columns[c].width = type->width;
		if (from->data.memory)
			columns[c].data = (const uint8_t *) from->data.memory + first * type->width;
		if (from->nulls.memory)
			columns[c].nulls = (const uint8_t *) from->nulls.memory + first;
		if (type->kind == GJ_REF)
			columns[c].heap = relation->heap.memory;
	}
}

GjStatus
gj_relation_keep(GjWork *work, GjRelation *relation, uint32_t c, const GjColumn *from,
				 const uint32_t *rows, uint32_t nrows, bool (*stop) (void *), void *arg)
{
	GjRelationColumn *column = &relation->columns[c];
	GjRelationColumn kept = {{NULL, 0}, {NULL, 0}};
	const GjSplitPiece piece = {from, rows, nrows};
	const GjSplit split = {.nparts = 1,.npieces = 1,.pieces = &piece,.ncolumns = 1};
	uint64_t	room = gj_split_room(nrows, 1);
	const GjSplitParts *parts;
	GjColumn	to = *from;
	GjStatus	status = gj_buffer_grow(work, &kept.data, 0, room * from->width, 0);

	if (status == GJ_OK && from->nulls)
		status = gj_buffer_grow(work, &kept.nulls, 0, room, 0);
	to.data = kept.data.memory;
	to.nulls = kept.nulls.memory;
	if (status == GJ_OK)
		status = work->ops->exchange->split(work->queue, &split, &to, stop, arg, &parts);
	/* one of the two goes */
	if (status == GJ_OK)
	{
		GjRelationColumn all = *column;

		*column = kept;
		kept = all;
	}
	gj_buffer_free(work, &kept.data);
	gj_buffer_free(work, &kept.nulls);
	return status;
}

void
gj_relation_drop(GjWork *work, GjRelation *relation, uint32_t c)
{
	if (relation->borrowed)
		return;
	gj_buffer_free(work, &relation->columns[c].data);
	gj_buffer_free(work, &relation->columns[c].nulls);
	/* the bytes go with the last column of references */
	for (uint32_t i = 0; i < relation->ncolumns; i++)
		if (relation->types[i].kind == GJ_REF && relation->columns[i].data.memory)
			return;
	gj_buffer_free(work, &relation->heap);
}

void
gj_relation_free(GjWork *work, GjRelation *relation)
{
	if (!relation->columns)
		return;
	for (uint32_t c = 0; c < relation->ncolumns && !relation->borrowed; c++)
	{
		gj_buffer_free(work, &relation->columns[c].data);
		gj_buffer_free(work, &relation->columns[c].nulls);
	}
	if (!relation->borrowed)
		gj_buffer_free(work, &relation->heap);
	free(relation->columns);
	relation->columns = NULL;
}
