/*
 * column_writer.c
 *	  Writes rows into a slot of a load ring, column by column.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/memutils.h"

#include "compat.h"
#include "load/column_writer.h"

/* The device looks at the bytes of a column of the program, if it is one of the writer's. */
static void
mark_computed(GjWriter *writer, uint32 first_column, uint32 column)
{
	if (column < first_column || column >= first_column + writer->ncolumns)
		return;
	writer->columns[column - first_column].computed = true;
	/* what a slot always has at least (program_builder.c) */
	writer->flat_bytes = GJ_LOAD_SLOT_SIZE / 8;
}

/*
 * Marks the columns whose texts or numbers some instruction looks at, or whose arrays some step
 * joins.
 */
static void
find_computed(GjWriter *writer, const GjProgram *program, uint32 first_column)
{
	const GjInstr *instrs = gj_program_array(program, GjInstr, instrs);
	const GjSetStep *sets = gj_program_array(program, GjSetStep, set_steps);

	for (uint32 i = 0; i < program->ninstrs; i++)
	{
		if (instrs[i].op == GJ_OP_LOAD_T &&
			(instrs[i].n == GJ_BYTES_VARLENA || instrs[i].n == GJ_BYTES_ARRAY))
			mark_computed(writer, first_column, instrs[i].arg);
		if (instrs[i].op == GJ_OP_LOAD && instrs[i].arg - first_column < writer->ncolumns)
			writer->columns[instrs[i].arg - first_column].loaded = true;
	}
	for (uint32 i = 0; i < program->nset_steps; i++)
	{
		if (sets[i].membership)
			continue;
		mark_computed(writer, first_column, sets[i].probe_column);
		mark_computed(writer, first_column, sets[i].build_column);
	}
}

GjWriter *
gj_writer_create(const GjProgram *program, int source)
{
	const GjSource *src = &gj_program_array(program, GjSource, sources)[source];
	GjWriter   *writer = palloc0(sizeof(GjWriter));

	writer->ncolumns = src->ncolumns;
	writer->types = gj_program_array(program, GjColumnType, columns) + src->first_column;
	writer->places = palloc(sizeof(GjColumnPlace) * Max(src->ncolumns, 1));
	writer->columns = palloc0(sizeof(GjWriterColumn) * Max(src->ncolumns, 1));
	if (!gj_layout(writer->types, src->ncolumns, src->capacity, GJ_LOAD_CHUNK_SIZE,
				   &writer->layout, writer->places))
		elog(ERROR, "source %d does not fit a slot of the load ring", source);
	for (uint32 i = 0; i < writer->ncolumns; i++)
	{
		writer->columns[i].kind = writer->types[i].kind;
		writer->columns[i].width = writer->types[i].width;
	}
	find_computed(writer, program, src->first_column);
	return writer;
}

void
gj_writer_start(GjWriter *writer, uint8 *slot)
{
	writer->slot = slot;
	writer->pages = gj_chunk_pages(slot);
	writer->pages->n = 0;
	memset(writer->pages->toasted, 0, sizeof(writer->pages->toasted));
	writer->nrows = 0;
	writer->heap_used = 0;
	writer->ntoasted = 0;
	writer->has_nan = false;
	writer->failed = -1;
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

void
gj_writer_note_toasted(GjWriter *writer, GjWriterColumn *column, uint32 row)
{
	uint32		number = column - writer->columns;

	if (number / 8 < sizeof(writer->pages->toasted))
		writer->pages->toasted[number / 8] |= 1 << number % 8;
	if (!column->computed)
		return;
	if (writer->ntoasted == writer->toasted_size)
	{
		writer->toasted_size = Max(64, writer->toasted_size * 2);
		writer->toasted = writer->toasted ?
			repalloc(writer->toasted, sizeof(GjToasted) * writer->toasted_size) :
			MemoryContextAlloc(GetMemoryChunkContext(writer),
							   sizeof(GjToasted) * writer->toasted_size);
	}
	writer->toasted[writer->ntoasted++] = (GjToasted) {number, row};
}

void
gj_writer_note_nan(GjWriter *writer, const GjWriterColumn *column)
{
	writer->has_nan = true;
	if (column->loaded)
		writer->failed = column - writer->columns;
}

bool
gj_writer_flatten(GjWriter *writer)
{
	bool		all = true;

	for (uint32 i = 0; i < writer->ntoasted; i++)
	{
		GjWriterColumn *column = &writer->columns[writer->toasted[i].column];
		uint32		row = writer->toasted[i].row;
		struct varlena *value = (struct varlena *)
			(writer->slot + writer->layout.heap + gj_ref_offset(((uint64 *) column->data)[row]));
		struct varlena *flat;

		if (toast_raw_datum_size(PointerGetDatum(value)) > GJ_MAX_CARRIED)
			continue;
		flat = detoast_attr(value);
		if (gj_writer_has_room(writer, 0, MAXALIGN(VARSIZE(flat))))
			gj_write_bytes(writer, column, row, flat, VARSIZE(flat));
		else
			all = false;
		pfree(flat);
	}
	writer->ntoasted = 0;
	return all;
}
