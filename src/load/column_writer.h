/*
 * column_writer.h
 *	  Writes rows into a slot of a load ring, column by column.
 *
 * The sources (source.h) write through it.  The inline functions store one value; the
 * caller has made sure that the slot has room for the row.
 */
#ifndef GJ_COLUMN_WRITER_H
#define GJ_COLUMN_WRITER_H

#include "load/decimal.h"
#include "wire/messages.h"

/* Values too long for a slot, kept by the backend until the end of the run. */
typedef struct GjHeldValues
{
	MemoryContext cxt;
	Datum	   *values;
	uint32		n,
				size;
	Size		nbytes;
} GjHeldValues;

typedef struct GjWriterColumn
{
	uint8	   *data;			/* in the slot */
	uint8	   *nulls;
	uint8		kind;			/* GjKind */
	uint8		width;
	bool		has_nulls;		/* nulls[0 .. nrows) is filled in */
	bool		computed;		/* the device looks at its texts */
	bool		loaded;			/* the device looks at its numbers */
} GjWriterColumn;

/* A value of a computed column that is compressed or out of line. */
typedef struct GjToasted
{
	uint32		column;
	uint32		row;
} GjToasted;

typedef struct GjWriter
{
	uint32		ncolumns;
	const GjColumnType *types;
	GjLayout	layout;
	GjColumnPlace *places;
	GjWriterColumn *columns;

	uint8	   *slot;			/* being filled, or NULL */
	GjChunkPages *pages;		/* in the slot: where its rows come from, if they are to be kept */
	uint32		nrows;
	uint32		heap_used;

	GjToasted  *toasted;		/* written as they are, to be flattened */
	uint32		ntoasted,
				toasted_size;
	uint32		flat_bytes;		/* room that flattening the values of a page should have */
	bool		has_nan;		/* a numeric just written is NaN */
	int			failed;			/* column whose value just written cannot be used here; -1: none */
} GjWriter;

/* A writer for the columns of one source of a program. */
extern GjWriter *gj_writer_create(const GjProgram *program, int source);

/* Starts to fill a slot. */
extern void gj_writer_start(GjWriter *writer, uint8 *slot);

/* Completes the slot's header.  The slot can then be sent. */
extern void gj_writer_finish(GjWriter *writer);

/* First NULL of a column in this slot: the rows before were not NULL. */
extern void gj_writer_need_nulls(GjWriter *writer, GjWriterColumn *column);

/* Notes that a value just written is compressed or external, to be flattened if it is computed. */
extern void gj_writer_note_toasted(GjWriter *writer, GjWriterColumn *column, uint32 row);

/*
 * Notes that a numeric just written is NaN: the device can carry the integer that stands for it,
 * but not compute with it.
 */
extern void gj_writer_note_nan(GjWriter *writer, const GjWriterColumn *column);

/*
 * Puts the flat values in the place of those noted, as long as there is room: what is
 * left is an error on the device if it really looks at it.  False if there was no room for
 * all (values of over GJ_MAX_CARRIED are left in any case).  Reads TOAST tables: not to be
 * called with a page locked.
 */
extern bool gj_writer_flatten(GjWriter *writer);

static inline bool
gj_writer_has_room(const GjWriter *writer, uint32 nrows, uint32 heap_bytes)
{
	return writer->nrows + nrows <= writer->layout.capacity &&
		(writer->layout.heap_size == 0 || writer->heap_used + heap_bytes <= writer->layout.heap_size);
}

/* Row `row` of the column is NULL.  The value is set too: devices may copy it. */
static inline void
gj_write_null(GjWriter *writer, GjWriterColumn *column, uint32 row)
{
	if (!column->has_nulls)
		gj_writer_need_nulls(writer, column);
	memset(column->data + (Size) row * column->width, 0, column->width);
	column->nulls[row] = 1;
}

static inline void
gj_write_not_null(GjWriterColumn *column, uint32 row)
{
	if (column->has_nulls)
		column->nulls[row] = 0;
}

/* Copies bytes into the heap and refers to them. */
static inline void
gj_write_bytes(GjWriter *writer, GjWriterColumn *column, uint32 row,
			   const void *bytes, uint32 nbytes)
{
	uint8	   *to = writer->slot + writer->layout.heap + writer->heap_used;

	memcpy(to, bytes, nbytes);
	((uint64 *) column->data)[row] = gj_ref_make(writer->heap_used, nbytes);
	writer->heap_used += MAXALIGN(nbytes);
	gj_write_not_null(column, row);
}

/* Writes a numeric, as it lies in a tuple, of a scale. */
static inline void
gj_write_decimal(GjWriter *writer, GjWriterColumn *column, uint32 row, const char *value, int scale)
{
	int64	   *to = (int64 *) column->data + row;

	if (!gj_decimal_read_fast(value, scale, to))
	{
		*to = 0;
		writer->failed = column - writer->columns;
	}
	else if (*to == GJ_DECIMAL_NAN)
		gj_writer_note_nan(writer, column);
	gj_write_not_null(column, row);
}

#endif							/* GJ_COLUMN_WRITER_H */
