/*
 * group_parts.c
 *	  Partial groups: hands them over to the team, and adds them up in the run that puts them
 *	  together.
 */
#include "group.h"

#include <string.h>

/* Groups of one chunk at most. */
#define GJ_PART_ROWS		16384

bool
gj_part_layout(const GjProgram *program, uint32_t nkeys, GjPartLayout *part)
{
	const GjGroupKey *keys = gj_program_array(program, GjGroupKey, group_keys);
	uint32_t	n = 0;
	bool		refs = false;

	part->types[n++] = (GjColumnType) {GJ_UINT4, sizeof(uint32_t), 0, 0};
	for (uint32_t k = 0; k < nkeys; k++)
	{
		bool		ref = gj_group_by_reference(keys[k].how);

		part->types[n++] = (GjColumnType) {ref ? GJ_REF : GJ_INT8, sizeof(int64_t), 0, 0};
		refs |= ref;
	}
	for (uint32_t a = 0; a < program->naggregates; a++)
		part->types[n++] = (GjColumnType) {GJ_BYTES, sizeof(GjAggState), 0, 0};
	/* half of a slot is enough for the bytes of one group */
	for (uint32_t rows = GJ_PART_ROWS; rows > 0; rows /= 2)
		if (gj_layout_fixed_size(part->types, n, rows) <= GJ_OUTPUT_SLOT_SIZE / (refs ? 2 : 1))
			return gj_layout(part->types, n, rows, GJ_OUTPUT_SLOT_SIZE, &part->layout,
							 part->places);
	return false;
}

/* Fills a slot with groups from `first` on; *n = how many. */
static GjStatus
fill_part(GjRun *run, const GjPartLayout *part, uint8_t *slot, uint32_t first, uint32_t *n)
{
	GjWork	   *work = &run->work;
	const GjGroups *groups = &gj_grouping(run)->groups;
	uint32_t	nkeys = groups->rows.nkeys;
	GjSlotHeader header = {0, 0};
	uint64_t	base = 0;

	if (gj_grouping(run)->refs)
		GJ_TRY(gj_groups_copy_heap(run, first, n, (uint64_t *) (slot + part->places[1].data),
								   slot + part->layout.heap, part->layout.heap_size, &base,
								   &header.heap_used));
	for (uint32_t i = 0; i < part->layout.ncolumns; i++)
	{
		const uint8_t *from = i == 0 ? (const uint8_t *) groups->rows.null :
			i <= nkeys ? (const uint8_t *) groups->rows.value[i - 1] :
			(const uint8_t *) groups->state[i - 1 - nkeys];
		uint32_t	width = part->types[i].width;

		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + part->places[i].data,
								   from + (size_t) first * width, (size_t) *n * width));
	}
	GJ_TRY(work->ops->queues->sync(work->queue));
	gj_groups_move_refs(run, slot, part->places + 1, *n, base);
	memset(gj_slot_has_nulls(slot), 0, part->layout.ncolumns);
	header.nrows = *n;
	memcpy(slot, &header, sizeof(header));
	return GJ_OK;
}

GjStatus
gj_groups_hand_over(GjRun *run)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	uint32_t	ngroups = grouping->groups.rows.nrows;
	GjPartLayout part;

	if (!gj_part_layout(run->program, grouping->groups.rows.nkeys, &part))
		return gj_run_fail(run, GJ_TOO_LARGE, "a group does not fit a slot");
	work->ops->queues->phase(work->queue, GJ_PHASE_AGGREGATE);
	gj_groups_free_tuples(work, grouping);
	GJ_TRY(work->ops->groups->group_finish(work->queue, &grouping->groups));
	for (uint32_t first = 0, n; first < ngroups; first += n)
	{
		uint8_t    *slot;

		GJ_STOP_CHECK(run);
		n = ngroups - first < part.layout.capacity ? ngroups - first : part.layout.capacity;
		GJ_TRY(run->output.target.partial->slot(run->output.target.arg, &slot));
		GJ_TRY(fill_part(run, &part, slot, first, &n));
		GJ_TRY(run->output.target.partial->keep(run->output.target.arg, slot));
	}
	gj_groups_free(work, grouping);
	run->output.state = NULL;
	return GJ_OK;
}

/* Copies a part to the device and describes it there. */
static GjStatus
copy_part(GjRun *run, const GjPartLayout *part, const uint8_t *slot, GjGroups *from)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	GjGroupRows *rows = &from->rows;
	uint8_t    *memory;
	GjSlotHeader header;

	memcpy(&header, slot, sizeof(header));
	memset(from, 0, sizeof(*from));
	GJ_TRY(gj_buffer_reserve(work, &grouping->incoming, GJ_OUTPUT_SLOT_SIZE));
	GJ_TRY(gj_buffer_reserve(work, &grouping->incoming_hash, header.nrows * sizeof(uint64_t)));
	memory = grouping->incoming.memory;
	for (uint32_t i = 0; i < part->layout.ncolumns; i++)
		GJ_TRY(work->ops->memory->copy_in(work->queue, memory + part->places[i].data,
								  slot + part->places[i].data,
								  (size_t) header.nrows * part->types[i].width));
	if (header.heap_used > 0)
		GJ_TRY(work->ops->memory->copy_in(work->queue, memory + part->layout.heap,
								  slot + part->layout.heap, header.heap_used));
	rows->nrows = header.nrows;
	rows->nkeys = grouping->groups.rows.nkeys;
	rows->ndependent = grouping->groups.rows.ndependent;
	rows->null = (uint32_t *) (memory + part->places[0].data);
	rows->hash = grouping->incoming_hash.memory;
	for (uint32_t k = 0; k < rows->nkeys; k++)
	{
		rows->value[k] = (int64_t *) (memory + part->places[1 + k].data);
		rows->heap[k] = memory + part->layout.heap;
		rows->how[k] = grouping->groups.rows.how[k];
	}
	for (uint32_t a = 0; a < run->program->naggregates; a++)
		from->state[a] = (GjAggState *) (memory + part->places[1 + rows->nkeys + a].data);
	return GJ_OK;
}

GjStatus
gj_run_add_part(GjRun *run, uint32_t nkeys, const uint8_t *slot)
{
	GjPartLayout part;
	GjGroups	from;

	if (!gj_part_layout(run->program, nkeys, &part))
		return gj_run_fail(run, GJ_TOO_LARGE, "a group does not fit a slot");
	GJ_STOP_CHECK(run);
	if (!gj_grouping(run))
		GJ_TRY(gj_groups_start(run, nkeys));
	gj_grouping(run)->is_joined = true;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(copy_part(run, &part, slot, &from));
	for (uint32_t first = 0, n; first < from.rows.nrows; first += n)
	{
		n = from.rows.nrows - first;
		GJ_TRY(gj_groups_regroup(run, &from, first, &n));
	}
	return run->work.ops->queues->sync(run->work.queue);
}
