/*
 * heap_tuple.c
 *	  Takes the collected tuples of a page apart.
 *
 * There are loops over one column at a time, as long as no tuple of the page has NULLs or too few
 * attributes.  An attribute is at a fixed offset in a section of its tuple: the first one begins with
 * the tuple, others where an attribute of variable length ends.  So a section costs a loop that finds
 * where it begins in each tuple, and a column in it one typed loop.  Tuples of other pages are walked
 * attribute by attribute.  On a uniform page, where tuples of one size lie one after the other, the
 * loops need no pointers to tuples.
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "load/column_writer.h"
#include "load/heap_source.h"
#include "load/tuple_id.h"

/* ---- what there is to take */

/* Begins another section. */
static Section *
add_section(HeapSource *source, int att, int alignment)
{
	Section    *section = &source->sections[source->nsections++];

	section->att = att;
	section->alignment = alignment;
	section->nbytes = 0;
	return section;
}

/* Finds sections and offsets of the attributes up to the last wanted one. */
static void
describe_sections(HeapSource *source)
{
	Section    *section;

	source->sections = palloc(sizeof(Section) * (source->natts + 1));
	source->nsections = 0;
	section = add_section(source, -1, MAXIMUM_ALIGNOF);
	for (int att = 0; att < source->natts; att++)
	{
		const WalkAttribute *walk = &source->walk[att];
		int			alignment = att_align_nominal(1, walk->attalign);

		if (walk->attlen <= 0)
		{
			section = add_section(source, att, 1);
			continue;
		}
		/* the first attribute says where a section begins */
		if (section->nbytes == 0)
			section->alignment = Max(section->alignment, alignment);
		else if (alignment > section->alignment)
			section = add_section(source, -1, alignment);
		section->nbytes = att_align_nominal(section->nbytes, walk->attalign);
		for (int c = walk->column; c >= 0; c = source->twins[c])
		{
			source->columns[c].section = source->nsections - 1;
			source->columns[c].offset = section->nbytes;
		}
		section->nbytes += walk->attlen;
	}
}

void
gj_heap_describe(HeapSource *source, const AttrNumber *attnos)
{
	TupleDesc	desc = RelationGetDescr(source->rel);

	source->id_column = -1;
	for (int c = 0; c < source->ncolumns; c++)
	{
		HeapColumn *column = &source->columns[c];
		Form_pg_attribute attr;

		column->attno = attnos[c] - 1;
		column->offset = -1;
		if (attnos[c] == GJ_TUPLE_ID_ATTNO)
		{
			source->id_column = c;
			continue;
		}
		attr = TupleDescAttr(desc, attnos[c] - 1);
		column->attlen = attr->attlen;
		column->attbyval = attr->attbyval;
		column->scale = attr->attlen == -1 ? gj_decimal_scale(attr->atttypid, attr->atttypmod) : -1;
		column->section = 0;
		column->missing = getmissingattr(desc, attnos[c], &column->missing_null);
		source->natts = Max(source->natts, attnos[c]);
	}
	source->twins = palloc(sizeof(int16) * Max(source->ncolumns, 1));
	source->walk = palloc(sizeof(WalkAttribute) * Max(source->natts, 1));
	for (int att = 0; att < source->natts; att++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, att);

		source->walk[att].attlen = attr->attlen;
		source->walk[att].attalign = attr->attalign;
		source->walk[att].column = -1;
		for (int c = 0; c < source->ncolumns; c++)
			if (source->columns[c].attno == att)
			{
				source->twins[c] = source->walk[att].column;
				source->walk[att].column = c;
			}
	}
	describe_sections(source);
}

uint32
gj_heap_page_bytes(const HeapSource *source, const GjColumnType *types)
{
	Size		missing = 0;
	Size		nrefs = 0;
	Size		most_twins = 1;
	Size		on_page;
	Size		nvalues;
	Size		nbytes;

	for (int c = 0; c < source->ncolumns; c++)
	{
		const HeapColumn *column = &source->columns[c];
		Size		ntwins = 0;

		if (types[c].kind != GJ_REF)
			continue;
		nrefs++;
		for (int twin = c; twin >= 0; twin = source->twins[twin])
			ntwins++;
		most_twins = Max(most_twins, ntwins);
		if (!column->missing_null)
			missing += MAXALIGN(column->attlen > 0 ? column->attlen :
								VARSIZE_ANY(DatumGetPointer(column->missing)));
	}
	on_page = most_twins * BLCKSZ;
	nvalues = Min(nrefs * MaxHeapTuplesPerPage, on_page);
	nbytes = on_page + nvalues * (MAXIMUM_ALIGNOF - 1) + missing * MaxHeapTuplesPerPage;
	return Min(nbytes, PG_UINT32_MAX);
}

/* ---- loops over a column */

/*
 * Copies fixed-width values to the column, that of tuple i from the address FROM: a loop for each width, so
 * that constant sizes become single moves.
 */
#define COPY_AS(type, FROM) \
	do { \
		type	   *to = (type *) column->data + row; \
		for (int i = 0; i < n; i++) \
			memcpy(&to[i], FROM, sizeof(type)); \
	} while (0)
#define COPY_VALUES(FROM) \
	do { \
		if (column->width == 8) \
			COPY_AS(uint64, FROM); \
		else if (column->width == 4) \
			COPY_AS(uint32, FROM); \
		else if (column->width == 2) \
			COPY_AS(uint16, FROM); \
		else if (column->width == 1) \
			COPY_AS(uint8, FROM); \
		else \
			for (int i = 0; i < n; i++) \
				memcpy(column->data + (Size) (row + i) * column->width, FROM, column->width); \
	} while (0)

/* An attribute at the same offset of every tuple. */
static void
gather_fixed(HeapSource *source, GjWriter *writer, GjWriterColumn *column,
			 const HeapColumn *heap)
{
	uint32		row = writer->nrows;
	int			n = source->ntuples;
	int			offset = heap->offset;
	char	  **data = source->data;

	if (column->has_nulls)
		memset(column->nulls + row, 0, n);
	if (column->kind == GJ_REF)
	{
		for (int i = 0; i < n; i++)
			gj_write_bytes(writer, column, row + i, data[i] + offset, heap->attlen);
		return;
	}
	COPY_VALUES(data[i] + offset);
}

/* The same on a uniform page. */
static void
gather_uniform(HeapSource *source, GjWriter *writer, GjWriterColumn *column,
			   const HeapColumn *heap)
{
	const char *first = source->first_tuple +
		((HeapTupleHeader) source->first_tuple)->t_hoff + heap->offset;
	Size		stride = source->stride;
	uint32		row = writer->nrows;
	int			n = source->ntuples;

	if (column->has_nulls)
		memset(column->nulls + row, 0, n);
	COPY_VALUES(first - i * stride);
}

#undef COPY_VALUES
#undef COPY_AS

/* ---- attribute by attribute */

/* Stores the value at p, as it lies in a tuple. */
static inline void
write_attribute(GjWriter *writer, GjWriterColumn *column, uint32 row, const HeapColumn *heap,
				const char *p)
{
	if (column->kind == GJ_REF)
	{
		uint32		nbytes = heap->attlen > 0 ? heap->attlen :
			heap->attlen == -1 ? VARSIZE_ANY(p) : strlen(p) + 1;

		gj_write_bytes(writer, column, row, p, nbytes);
		if (heap->attlen == -1 && (VARATT_IS_EXTERNAL(p) || VARATT_IS_COMPRESSED(p)))
			gj_writer_note_toasted(writer, column, row);
		return;
	}
	if (heap->attlen == -1)
	{
		gj_write_decimal(writer, column, row, p, heap->scale);
		return;
	}
	/* constant sizes become single moves */
	switch (column->width)
	{
		case 1:
			column->data[row] = *(const uint8 *) p;
			break;
		case 2:
			memcpy(column->data + (Size) row * 2, p, 2);
			break;
		case 4:
			memcpy(column->data + (Size) row * 4, p, 4);
			break;
		case 8:
			memcpy(column->data + (Size) row * 8, p, 8);
			break;
		default:
			memcpy(column->data + (Size) row * 16, p, 16);
			break;
	}
	gj_write_not_null(column, row);
}

/* Stores what ALTER TABLE ... ADD COLUMN left for older tuples. */
static void
write_missing(GjWriter *writer, GjWriterColumn *column, uint32 row, const HeapColumn *heap)
{
	if (heap->missing_null)
		gj_write_null(writer, column, row);
	else if (heap->attbyval)
	{
		char		value[16];		/* the widest that write_attribute() could read */

		store_att_byval(value, heap->missing, heap->attlen);
		write_attribute(writer, column, row, heap, value);
	}
	else
		write_attribute(writer, column, row, heap, DatumGetPointer(heap->missing));
}

/* Stores an attribute of variable length for all columns that want it; returns where it ends. */
static inline char *
pass_attribute(HeapSource *source, GjWriter *writer, int i, int att, char *p)
{
	const WalkAttribute *walk = &source->walk[att];

	p = (char *) att_align_pointer((uintptr_t) p, walk->attalign, walk->attlen, p);
	for (int c = walk->column; c >= 0; c = source->twins[c])
		write_attribute(writer, &writer->columns[c], writer->nrows + i, &source->columns[c], p);
	return (char *) att_addlength_pointer((uintptr_t) p, walk->attlen, p);
}

/* Moves on from the section before, of all collected tuples, none of which has NULLs. */
static void
enter_section(HeapSource *source, GjWriter *writer, int s)
{
	const Section *section = &source->sections[s];
	int			before = source->sections[s - 1].nbytes;
	char	  **data = source->data;
	int			n = source->ntuples;
	uintptr_t	mask = ~((uintptr_t) section->alignment - 1);

	for (int i = 0; i < n; i++)
	{
		char	   *p = data[i] + before;

		if (section->att >= 0)
			p = pass_attribute(source, writer, i, section->att, p);
		data[i] = (char *) (((uintptr_t) p + section->alignment - 1) & mask);
	}
}

/* Walks one tuple. */
static void
walk_tuple(HeapSource *source, GjWriter *writer, int i)
{
	HeapTupleHeader tuple = source->tuples[i];
	const char *data = source->data[i];
	const int16 *twins = source->twins;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), source->natts);
	uint32		row = writer->nrows + i;
	int			offset = 0;

	for (int att = 0; att < natts; att++)
	{
		const WalkAttribute *walk = &source->walk[att];

		if (has_nulls && att_isnull(att, tuple->t_bits))
		{
			for (int c = walk->column; c >= 0; c = twins[c])
				gj_write_null(writer, &writer->columns[c], row);
			continue;
		}
		offset = att_align_pointer(offset, walk->attalign, walk->attlen, data + offset);
		for (int c = walk->column; c >= 0; c = twins[c])
			write_attribute(writer, &writer->columns[c], row, &source->columns[c], data + offset);
		offset = att_addlength_pointer(offset, walk->attlen, data + offset);
	}
	for (int att = natts; att < source->natts; att++)
		for (int c = source->walk[att].column; c >= 0; c = twins[c])
			write_missing(writer, &writer->columns[c], row, &source->columns[c]);
}

/* ---- all columns */

/* The ids of the collected tuples. */
static void
write_ids(HeapSource *source, GjWriterColumn *column, uint32 row)
{
	int64	   *ids = (int64 *) column->data + row;
	int			n = source->ntuples;

	if (source->uniform)
		for (int i = 0; i < n; i++)
			ids[i] = gj_tuple_id_make(source->next, i + 1);
	else
		for (int i = 0; i < n; i++)
			ids[i] = gj_tuple_id_make(source->next, source->lines[i]);
	if (column->has_nulls)
		memset(column->nulls + row, 0, n);
}

void
gj_heap_write_tuples(HeapSource *source, GjWriter *writer)
{
	if (source->uniform)
	{
		for (int c = 0; c < source->ncolumns; c++)
			if (c != source->id_column)
				gather_uniform(source, writer, &writer->columns[c], &source->columns[c]);
	}
	else if (source->regular)
	{
		for (int s = 0; s < source->nsections; s++)
		{
			if (s > 0)
				enter_section(source, writer, s);
			for (int c = 0; c < source->ncolumns; c++)
				if (source->columns[c].section == s && source->columns[c].offset >= 0)
					gather_fixed(source, writer, &writer->columns[c], &source->columns[c]);
		}
	}
	else
		for (int i = 0; i < source->ntuples; i++)
			walk_tuple(source, writer, i);
	if (source->id_column >= 0)
		write_ids(source, &writer->columns[source->id_column], writer->nrows);
	writer->nrows += source->ntuples;
}
