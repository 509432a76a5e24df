/*
 * column_writer.c
 *	  Writes rows into a slot of a load ring, column by column.
 */
#include "postgres.h"

#include "load/column_writer.h"

GjWriter *
gj_writer_create(const GjProgram *program, int source)
{
	const GjSource *src = &gj_program_array(program, GjSource, sources)[source];
	GjWriter   *writer = palloc0(sizeof(GjWriter));

	writer->ncolumns = src->ncolumns;
	writer->types = gj_program_array(program, GjColumnType, columns) + src->first_column;
	writer->places = palloc(sizeof(GjColumnPlace) * Max(src->ncolumns, 1));
	writer->columns = palloc0(sizeof(GjWriterColumn) * Max(src->ncolumns, 1));
	if (!gj_layout(writer->types, src->ncolumns, src->capacity, GJ_LOAD_SLOT_SIZE,
				   &writer->layout, writer->places))
		elog(ERROR, "source %d does not fit a slot of the load ring", source);
	for (uint32 i = 0; i < writer->ncolumns; i++)
	{
		writer->columns[i].kind = writer->types[i].kind;
		writer->columns[i].width = writer->types[i].width;
	}
	return writer;
}

void
gj_writer_start(GjWriter *writer, uint8 *slot)
{
	writer->slot = slot;
	writer->nrows = 0;
	writer->heap_used = 0;
	for (uint32 i = 0; i < writer->ncolumns; i++)
	{
		writer->columns[i].data = slot + writer->places[i].data;
		writer->columns[i].nulls = slot + writer->places[i].nulls;
		writer->columns[i].has_nulls = false;
	}
}

void
gj_writer_finish(GjWriter *writer)
{
	GjSlotHeader *header = (GjSlotHeader *) writer->slot;

	header->nrows = writer->nrows;
	header->heap_used = writer->heap_used;
	for (uint32 i = 0; i < writer->ncolumns; i++)
		gj_slot_has_nulls(writer->slot)[i] = writer->columns[i].has_nulls;
}

void
gj_writer_need_nulls(GjWriter *writer, GjWriterColumn *column)
{
	memset(column->nulls, 0, writer->layout.capacity);
	column->has_nulls = true;
}
