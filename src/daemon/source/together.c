/*
 * together.c
 *	  Probe rows of several fragments, put together before joins that take several steps see them.
 *
 * Each step of such joins is a few calls of the device, and some wait.  A fragment has some 10^5
 * rows, so the calls would cost more than the work.  The fused pass takes many fragments in one
 * call, and needs none of this.  References, which are relative to the bytes of their fragment,
 * stay apart.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

struct GjTogether
{
	GjRun	   *run;
	uint32_t	source;
	uint32_t	ncolumns;
	bool		several;		/* rows of more than one may come together */
	uint32_t	nparts;
	uint64_t	nrows;
	uint32_t	nranges;
	GjRows		part[GJ_MOST_TOGETHER];
	GjColumn   *columns;		/* [GJ_MOST_TOGETHER * ncolumns] */
	GjRowRange *ranges;			/* [GJ_MOST_TOGETHER * GJ_FRAGMENT_BLOCKS] */
};

static bool
can_be_several(GjRun *run, uint32_t source)
{
	const GjColumnType *types = run->types + run->sources[source].first_column;

	if (source > 0 || !run->sink->joins || run->arrival.gathers || run->intake->exchange ||
		gj_fused_fits(run))
		return false;
	for (uint32_t c = 0; c < run->sources[source].ncolumns; c++)
		if (types[c].kind == GJ_REF)
			return false;
	return true;
}

GjTogether *
gj_together_open(GjRun *run, uint32_t source)
{
	GjTogether *together = calloc(1, sizeof(GjTogether));

	if (!together)
		return NULL;
	together->run = run;
	together->source = source;
	together->ncolumns = run->sources[source].ncolumns;
	together->several = can_be_several(run, source);
	together->columns = calloc((size_t) GJ_MOST_TOGETHER * together->ncolumns + 1,
							   sizeof(GjColumn));
	together->ranges = malloc((size_t) (together->several ? GJ_MOST_TOGETHER : 1) *
							  GJ_FRAGMENT_BLOCKS * sizeof(GjRowRange));
	if (together->columns && together->ranges)
		return together;
	gj_together_close(together);
	return NULL;
}

void
gj_together_close(GjTogether *together)
{
	free(together->columns);
	free(together->ranges);
	free(together);
}

GjRows *
gj_together_next(GjTogether *together, GjColumn **columns)
{
	GjRows	   *rows = &together->part[together->nparts];

	*columns = together->columns + (size_t) together->nparts * together->ncolumns;
	*rows = (GjRows) {.source = together->source,.columns = *columns,
	.ranges = together->ranges + together->nranges};
	return rows;
}

static uint64_t
count_rows(const GjRows *rows)
{
	return gj_count_ranges(rows->ranges, rows->nranges);
}

/* True if some part has NULLs in column c. */
static bool
has_nulls(const GjTogether *together, uint32_t c)
{
	for (uint32_t p = 0; p < together->nparts; p++)
		if (together->part[p].columns[c].nulls)
			return true;
	return false;
}

/* Bytes of all columns, each with room for null flags. */
static uint64_t
bytes_of(const GjTogether *together)
{
	uint64_t	nbytes = 0;

	for (uint32_t c = 0; c < together->ncolumns; c++)
		nbytes += gj_align(together->nrows * together->part[0].columns[c].width) +
			gj_align(together->nrows);
	return nbytes;
}

/* The null flags of column c, to `to`. */
static GjStatus
copy_nulls(GjTogether *together, uint32_t c, uint8_t *to, GjPiece *pieces, uint32_t *n)
{
	GjWork	   *work = &together->run->work;

	for (uint32_t p = 0; p < together->nparts; p++)
	{
		const GjRows *rows = &together->part[p];

		if (rows->columns[c].nulls)
			*n += gj_add_pieces(pieces + *n, to, rows->columns[c].nulls, 1, rows->ranges,
								rows->nranges);
		else
			GJ_TRY(work->ops->memory->fill(work->queue, to, 0, count_rows(rows)));
		to += count_rows(rows);
	}
	return GJ_OK;
}

/* The values of column c, to `to`. */
static GjStatus
copy_values(GjTogether *together, uint32_t c, uint8_t *to, GjPiece *pieces, uint32_t *n)
{
	GjWork	   *work = &together->run->work;
	GjPackColumn *packed = malloc(together->nranges * sizeof(GjPackColumn) + 1);
	uint32_t	npacked = 0;
	GjStatus	status = GJ_OK;

	if (!packed)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t p = 0; p < together->nparts; p++)
	{
		const GjRows *rows = &together->part[p];
		const GjColumn *from = &rows->columns[c];

		if (from->packed)
			npacked += gj_add_packed(packed + npacked, to, from, rows->ranges, rows->nranges);
		else
			*n += gj_add_pieces(pieces + *n, to, from->data, from->width, rows->ranges,
								rows->nranges);
		to += count_rows(rows) * from->width;
	}
	if (npacked > 0)
		status = work->ops->columns->unpack(work->queue, packed, npacked);
	free(packed);
	return status;
}

/* Copies all columns behind each other to `to`, and describes them. */
static GjStatus
copy_columns(GjTogether *together, uint8_t *to, GjPiece *pieces, GjColumn *columns)
{
	GjWork	   *work = &together->run->work;
	uint32_t	n = 0;

	for (uint32_t c = 0; c < together->ncolumns; c++)
	{
		columns[c] = together->part[0].columns[c];
		columns[c].packed = columns[c].narrow = 0;
		columns[c].data = to;
		GJ_TRY(copy_values(together, c, to, pieces, &n));
		to += gj_align(together->nrows * columns[c].width);
		columns[c].nulls = has_nulls(together, c) ? to : NULL;
		if (columns[c].nulls)
			GJ_TRY(copy_nulls(together, c, to, pieces, &n));
		to += gj_align(together->nrows);
	}
	return work->ops->memory->copy_many(work->queue, pieces, n);
}

/* The rows of all parts as those of one.  *done = false: there is no memory for that. */
static GjStatus
join_together(GjTogether *together, bool *done)
{
	GjRun	   *run = together->run;
	GjBuffer   *buffer = &run->intake->compact;
	uint64_t	nbytes = bytes_of(together);
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRows		rows = GJ_ALL_ROWS(together->source, columns, together->nrows, false);
	GjPiece    *pieces;
	GjStatus	status;

	*done = false;
	/* nothing resident is to go for it, and the joins need some as well */
	if (buffer->nbytes < nbytes && gj_lease_free(run->work.lease) / 4 < nbytes + nbytes / 4)
		return GJ_OK;
	status = gj_buffer_reserve(&run->work, buffer, nbytes);
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	pieces = malloc((size_t) 2 * together->ncolumns * together->nranges * sizeof(GjPiece) + 1);
	if (!pieces)
		return GJ_OUT_OF_HOST_MEMORY;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	status = copy_columns(together, buffer->memory, pieces, columns);
	free(pieces);
	GJ_TRY(status);
	*done = true;
	return gj_source_rows(run, &rows);
}

GjStatus
gj_together_flush(GjTogether *together)
{
	GjStatus	status = GJ_OK;
	bool		done = false;

	if (together->nparts > 1)
		status = join_together(together, &done);
	for (uint32_t p = 0; p < together->nparts && status == GJ_OK && !done; p++)
		status = gj_source_rows(together->run, &together->part[p]);
	together->nparts = 0;
	together->nrows = 0;
	together->nranges = 0;
	return status;
}

GjStatus
gj_together_add(GjTogether *together)
{
	GjRows	   *rows = &together->part[together->nparts];
	uint64_t	nrows = count_rows(rows);

	together->nparts++;
	together->nrows += nrows;
	together->nranges += rows->nranges;
	/* the next one has about as many rows; many ranges are many copies */
	if (together->several && together->nranges < GJ_FRAGMENT_BLOCKS &&
		together->nparts < GJ_MOST_TOGETHER && together->nrows + nrows <= GJ_MAX_TUPLES)
		return GJ_OK;
	return gj_together_flush(together);
}
