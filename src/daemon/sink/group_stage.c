/*
 * group_stage.c
 *	  Groups of a stage become rows that stay on the device, for the run that reads them.
 */
#include "group.h"

/* Makes the columns of a stage of all groups; any_null[c]: column c has a NULL.  Waits. */
static GjStatus
make_columns(GjRun *run, GjRelation *rows, GjBuffer *flags, uint32_t *any_null)
{
	const GjStageColumn *columns = gj_program_array(run->program, GjStageColumn, stage_columns);
	const GjGroups *groups = &gj_grouping(run)->groups;
	uint64_t	flags_bytes = rows->ncolumns * sizeof(uint32_t);
	GjWork	   *work = &run->work;

	GJ_TRY(gj_buffer_grow(work, flags, 0, flags_bytes, 0));
	GJ_TRY(work->ops->memory->fill(work->queue, flags->memory, 0, flags_bytes));
	for (uint32_t c = 0; c < rows->ncolumns; c++)
	{
		GjRelationColumn *to = &rows->columns[c];
		GjGroupColumn column = {.type = columns[c].type,.value = columns[c].value,
		.from = columns[c].from,.any_null = (uint32_t *) flags->memory + c};

		GJ_TRY(gj_buffer_grow(work, &to->data, 0, rows->nrows * column.type.width, 0));
		GJ_TRY(gj_buffer_grow(work, &to->nulls, 0, rows->nrows, 0));
		column.data = to->data.memory;
		column.nulls = to->nulls.memory;
		GJ_TRY(work->ops->groups->group_column(work->queue, groups, &column));
	}
	GJ_TRY(work->ops->memory->copy_out(work->queue, any_null, flags->memory, flags_bytes));
	return work->ops->queues->sync(work->queue);
}

/* The same; columns without a NULL have no map, and references come with their bytes. */
static GjStatus
make_rows(GjRun *run, GjRelation *rows, GjBuffer *flags)
{
	const GjStageColumn *columns = gj_program_array(run->program, GjStageColumn, stage_columns);
	GjGrouping *grouping = gj_grouping(run);
	uint32_t	any_null[GJ_MAX_STAGE_COLUMNS];
	bool		refs = false;

	GJ_TRY(make_columns(run, rows, flags, any_null));
	for (uint32_t c = 0; c < rows->ncolumns; c++)
	{
		if (any_null[c] && !columns[c].type.nullable)
			return gj_run_fail(run, GJ_DEVICE_ERROR, "a NULL in a column that has none");
		if (!any_null[c])
			gj_buffer_free(&run->work, &rows->columns[c].nulls);
		refs |= columns[c].type.kind == GJ_REF;
	}
	if (refs)
	{
		rows->heap = grouping->heap;
		rows->heap_used = grouping->heap_used;
		grouping->heap = (GjBuffer) {NULL, 0};
	}
	return GJ_OK;
}

/* What the rows take at most; null maps are mostly given back. */
static uint64_t
bytes_of_rows(const GjRun *run)
{
	const GjStageColumn *columns = gj_program_array(run->program, GjStageColumn, stage_columns);
	uint64_t	nbytes = gj_grouping(run)->heap_used;

	for (uint32_t c = 0; c < run->program->nstage_columns; c++)
		nbytes += gj_grouping(run)->groups.rows.nrows * (uint64_t) (columns[c].type.width + 1);
	return nbytes;
}

GjStatus
gj_groups_keep_rows(GjRun *run, bool *kept)
{
	const GjTarget *target = &run->output.target;
	GjRelation	rows;
	GjBuffer	flags = {NULL, 0};
	GjStatus	status;

	*kept = false;
	if (!target->final->keeps_rows || run->program->nstage_columns == 0 ||
		!gj_rows_fit(run->entry, &run->work, bytes_of_rows(run)))
		return GJ_OK;
	if (!gj_relation_init(&rows, NULL, run->program->nstage_columns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	rows.nrows = gj_grouping(run)->groups.rows.nrows;
	status = make_rows(run, &rows, &flags);
	gj_buffer_free(&run->work, &flags);
	if (status == GJ_OK)
	{
		*kept = target->final->keep(target->arg, run->entry, &run->work, &rows);
		/* batches need the bytes */
		if (!*kept && rows.heap.memory)
		{
			gj_grouping(run)->heap = rows.heap;
			rows.heap = (GjBuffer) {NULL, 0};
		}
	}
	gj_relation_free(&run->work, &rows);
	if (*kept)
		run->stats.rows_out += gj_grouping(run)->groups.rows.nrows;
	if (*kept && gj_run_fails_at(run, GJ_FAIL_OUTPUT))
		return gj_run_fail(run, GJ_DEVICE_ERROR, "injected after a batch");
	return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
}
