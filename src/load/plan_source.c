/*
 * plan_source.c
 *	  Turns the rows of any child plan into columns.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"

#include "load/source.h"

typedef struct PlanSource
{
	GjSourceReader base;
	PlanState  *child;
	int			ncolumns;
	const AttrNumber *resnos;
	int			last_resno;
	Form_pg_attribute *attrs;	/* of the child's result, per column */
	uint32		max_inline;		/* longest value that goes into a slot */
	GjHeldValues *held;
	MemoryContext row_cxt;		/* flattened values of one row */
	TupleTableSlot *pending;	/* a row that did not fit the last slot */
	Datum	   *values;			/* of the current row, per column */
	bool	   *nulls;
	uint32	   *sizes;
} PlanSource;

/* Bytes of a value that is carried by reference. */
static uint32
value_size(Form_pg_attribute attr, Datum value)
{
	if (attr->attlen > 0)
		return attr->attlen;
	if (attr->attlen == -2)
		return strlen(DatumGetCString(value)) + 1;
	return VARSIZE_ANY(DatumGetPointer(value));
}

/*
 * Takes the current row's values out of the slot; returns the heap bytes they need.
 * Expanded and indirect values become flat ones, as do toasted ones that the device
 * computes on.
 */
static uint64
take_row(PlanSource *source, GjWriter *writer, TupleTableSlot *slot)
{
	uint64		heap_bytes = 0;

	slot_getsomeattrs(slot, source->last_resno);
	for (int i = 0; i < source->ncolumns; i++)
	{
		Form_pg_attribute attr = source->attrs[i];
		Datum		value = slot->tts_values[source->resnos[i] - 1];

		source->nulls[i] = slot->tts_isnull[source->resnos[i] - 1];
		source->values[i] = value;
		if (source->nulls[i] || writer->columns[i].kind != GJ_REF)
			continue;
		if (attr->attlen == -1 &&
			(VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)) ||
			 VARATT_IS_EXTERNAL_INDIRECT(DatumGetPointer(value)) ||
			 (writer->columns[i].computed &&
			  (VARATT_IS_EXTERNAL(DatumGetPointer(value)) ||
			   VARATT_IS_COMPRESSED(DatumGetPointer(value))))))
		{
			MemoryContext old = MemoryContextSwitchTo(source->row_cxt);

			source->values[i] = PointerGetDatum(PG_DETOAST_DATUM(value));
			MemoryContextSwitchTo(old);
		}
		source->sizes[i] = value_size(attr, source->values[i]);
		if (source->sizes[i] <= source->max_inline)
			heap_bytes += MAXALIGN(source->sizes[i]);
	}
	return heap_bytes;
}

/* Keeps a long value in this process and writes a reference to it. */
static bool
hold_value(PlanSource *source, GjWriterColumn *column, uint32 row, Datum value,
		   Form_pg_attribute attr, uint32 nbytes, GjFailure *failure)
{
	GjHeldValues *held = source->held;
	MemoryContext old;

	if (held->nbytes + nbytes > (Size) work_mem * 1024L)
	{
		gj_fail(failure, GJ_TOO_LARGE, "values of more than %u bytes together exceed work_mem",
				source->max_inline);
		return false;
	}
	old = MemoryContextSwitchTo(held->cxt);
	if (held->n == held->size)
	{
		held->size = Max(64, held->size * 2);
		held->values = held->values ?
			repalloc_huge(held->values, sizeof(Datum) * (Size) held->size) :
			palloc(sizeof(Datum) * held->size);
	}
	held->values[held->n] = datumCopy(value, false, attr->attlen);
	MemoryContextSwitchTo(old);
	((uint64 *) column->data)[row] = gj_ref_make(held->n, GJ_REF_HELD);
	gj_write_not_null(column, row);
	held->n++;
	held->nbytes += nbytes;
	return true;
}

static void
write_byval(GjWriterColumn *column, uint32 row, Datum value)
{
	switch (column->width)
	{
		case 1:
			column->data[row] = DatumGetUInt8(value);
			break;
		case 2:
			((uint16 *) column->data)[row] = DatumGetUInt16(value);
			break;
		case 4:
			((uint32 *) column->data)[row] = DatumGetUInt32(value);
			break;
		default:
			((uint64 *) column->data)[row] = DatumGetUInt64(value);
			break;
	}
	gj_write_not_null(column, row);
}

static bool
write_row(PlanSource *source, GjWriter *writer, GjFailure *failure)
{
	uint32		row = writer->nrows;

	for (int i = 0; i < source->ncolumns; i++)
	{
		GjWriterColumn *column = &writer->columns[i];
		Form_pg_attribute attr = source->attrs[i];
		Datum		value = source->values[i];

		if (source->nulls[i])
			gj_write_null(writer, column, row);
		else if (column->kind == GJ_REF)
		{
			if (source->sizes[i] <= source->max_inline)
				gj_write_bytes(writer, column, row, DatumGetPointer(value), source->sizes[i]);
			else if (!hold_value(source, column, row, value, attr, source->sizes[i], failure))
				return false;
		}
		else if (attr->attbyval)
			write_byval(column, row, value);
		else
		{
			memcpy(column->data + (Size) row * column->width, DatumGetPointer(value),
				   column->width);
			gj_write_not_null(column, row);
		}
	}
	writer->nrows++;
	return true;
}

static bool
plan_source_fill(GjSourceReader *reader, GjWriter *writer, GjFailure *failure)
{
	PlanSource *source = (PlanSource *) reader;

	for (;;)
	{
		TupleTableSlot *slot = source->pending;
		uint64		heap_bytes;

		if (slot == NULL)
		{
			CHECK_FOR_INTERRUPTS();
			MemoryContextReset(source->row_cxt);
			slot = ExecProcNode(source->child);
			if (TupIsNull(slot))
				return false;
		}
		heap_bytes = take_row(source, writer, slot);
		if (!gj_writer_has_room(writer, 1, heap_bytes))
		{
			/* the child keeps its slot until it is called again */
			source->pending = slot;
			return true;
		}
		source->pending = NULL;
		if (!write_row(source, writer, failure))
			return false;
	}
}

static void
plan_source_close(GjSourceReader *reader)
{
	/* the child belongs to the scan node */
}

GjSourceReader *
gj_plan_source(PlanState *child, const GjProgram *program, int source_number,
			   const AttrNumber *resnos, GjHeldValues *held)
{
	const GjSource *src = &gj_program_array(program, GjSource, sources)[source_number];
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns) + src->first_column;
	TupleDesc	desc = ExecGetResultType(child);
	PlanSource *source = palloc0(sizeof(PlanSource));
	int			nrefs = 0;

	source->base.fill = plan_source_fill;
	source->base.close = plan_source_close;
	source->child = child;
	source->ncolumns = src->ncolumns;
	source->resnos = resnos;
	source->held = held;
	source->attrs = palloc(sizeof(Form_pg_attribute) * Max(src->ncolumns, 1));
	source->values = palloc(sizeof(Datum) * Max(src->ncolumns, 1));
	source->nulls = palloc(sizeof(bool) * Max(src->ncolumns, 1));
	source->sizes = palloc0(sizeof(uint32) * Max(src->ncolumns, 1));
	for (int i = 0; i < source->ncolumns; i++)
	{
		source->attrs[i] = TupleDescAttr(desc, resnos[i] - 1);
		source->last_resno = Max(source->last_resno, resnos[i]);
		nrefs += types[i].kind == GJ_REF;
	}
	/* a row of values of this length must fit an empty slot (program_builder.c) */
	source->max_inline = Min(GJ_MAX_CARRIED,
							 (GJ_LOAD_SLOT_SIZE / 8 / Max(nrefs, 1) - MAXIMUM_ALIGNOF) & ~7u);
	source->row_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin plan source row",
											ALLOCSET_DEFAULT_SIZES);
	return &source->base;
}
