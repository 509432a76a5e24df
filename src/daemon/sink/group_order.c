/*
 * group_order.c
 *	  The groups of a run in an order: the first ones that a limit wants, or all of them, as sorted
 *	  runs where the run is not the only one.
 */
#include "group.h"
#include "device/order.h"

/* Room for what the order of n groups needs. */
static GjStatus
reserve_order(GjWork *work, GjBuffer *values, GjBuffer *positions, uint32_t nkeys, uint32_t n)
{
	GJ_TRY(gj_buffer_reserve(work, values, (uint64_t) nkeys * n * sizeof(int64_t)));
	return gj_buffer_reserve(work, positions, (uint64_t) n * sizeof(uint32_t));
}

/* Makes the groups at n positions of `from` all that there are. */
static GjStatus
keep_groups(GjRun *run, const GjGrouping *from, const uint32_t *positions, uint32_t n)
{
	GJ_TRY(gj_groups_start(run, gj_group_nkeys(run->program)));
	if (from->numbered)
		gj_groups_number(run, from->numbered);
	GJ_TRY(gj_groups_copy(run, &from->groups, positions, n));
	gj_grouping(run)->groups.rows.nrows = n;
	return GJ_OK;
}

/* The sort keys of all groups, one behind the other in `values`. */
static GjStatus
find_sort_keys(GjRun *run, const GjBuffer *values, GjKeys *keys)
{
	GjWork	   *work = &run->work;
	const GjGroups *groups = &gj_grouping(run)->groups;

	*keys = (GjKeys) {.nkeys = gj_sort_nkeys(run->program),.nrows = groups->rows.nrows};
	for (uint32_t k = 0; k < keys->nkeys; k++)
		keys->value[k] = (int64_t *) values->memory + (uint64_t) k * keys->nrows;
	return work->ops->groups->group_sort_keys(work->queue, groups, keys);
}

/* The positions of the *n groups that come first, in their order. */
static GjStatus
order_groups(GjRun *run, GjBuffer *values, GjBuffer *positions, uint32_t *n)
{
	GjWork	   *work = &run->work;
	const GjProgram *p = run->program;
	const GjSortKey *sort_keys = gj_program_array(p, GjSortKey, sort_keys);
	uint32_t	nkeys = gj_sort_nkeys(p);
	GjSortLimit wanted = {.limit = p->limit,.ties = p->ties != 0};
	GjKeys		keys;

	GJ_TRY(reserve_order(work, values, positions, nkeys, gj_grouping(run)->groups.rows.nrows));
	for (uint32_t k = 0; k < nkeys; k++)
	{
		wanted.descending |= (uint32_t) sort_keys[k].descending << k;
		wanted.slack = sort_keys[k].of == GJ_SORT_AVG ? GJ_AVG_SLACK : 0;
	}
	GJ_TRY(find_sort_keys(run, values, &keys));
	if (p->limit > 0)
		return work->ops->order->sort_limit(work->queue, &keys, &wanted, positions->memory, n);
	*n = keys.nrows;
	return gj_run_sort_keys(run, &keys, wanted.descending, positions);
}

GjStatus
gj_groups_sort(GjRun *run)
{
	GjWork	   *work = &run->work;
	GjGrouping *from = gj_grouping(run);
	uint32_t	limit = run->program->limit;
	uint32_t	ngroups = from->groups.rows.nrows;
	uint32_t	n = ngroups;
	GjBuffer	values = {NULL, 0};
	GjBuffer	positions = {NULL, 0};
	GjStatus	status;

	if (run->program->nsort_keys == 0 || ngroups <= (limit > 0 ? limit : 1))
		return GJ_OK;
	/* nothing is looked up any more */
	gj_groups_free_tuples(work, from);
	gj_buffer_free(work, &from->slots);
	status = order_groups(run, &values, &positions, &n);
	gj_buffer_free(work, &values);
	if (status == GJ_OK && (n < ngroups || limit == 0))
	{
		status = keep_groups(run, from, positions.memory, n);
		if (status == GJ_OK)
			gj_groups_free(work, from);
		else
		{
			if (gj_grouping(run) != from)
				gj_groups_drop(run);
			run->output.state = from;
		}
	}
	gj_buffer_free(work, &positions);
	return status == GJ_OUT_OF_MEMORY && limit > 0 ? GJ_OK : status;
}

/* A sorted run of groups that is handed over. */
typedef struct GjGroupRun
{
	GjSortedLayout layout;
	GjBuffer	values;
	GjKeys		keys;
} GjGroupRun;

/* Fills a slot with groups and their sort keys. */
static GjStatus
fill_sorted(GjRun *run, void *arg, uint32_t first, uint8_t *slot, uint32_t *n)
{
	const GjGroupRun *group_run = arg;
	const GjSortedLayout *layout = &group_run->layout;
	GjWork	   *work = &run->work;
	uint64_t	nbytes = 0;

	GJ_TRY(gj_groups_fill(run, slot, first, n, &nbytes));
	for (uint32_t k = 0; k < layout->nkeys; k++)
		GJ_TRY(work->ops->memory->copy_out(work->queue,
										   slot + layout->places[layout->noutputs + k].data,
								   group_run->keys.value[k] + first, *n * sizeof(int64_t)));
	return work->ops->queues->sync(work->queue);
}

GjStatus
gj_groups_hand_over_sorted(GjRun *run)
{
	GjWork	   *work = &run->work;
	uint32_t	ngroups = gj_grouping(run)->groups.rows.nrows;
	GjGroupRun	group_run = {.values = {NULL, 0}};
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	if (gj_sorted_layout(run->program, &group_run.layout))
		status = gj_buffer_reserve(work, &group_run.values, (uint64_t) ngroups *
								   group_run.layout.nkeys * sizeof(int64_t));
	if (status == GJ_OK)
		status = find_sort_keys(run, &group_run.values, &group_run.keys);
	/* a row error must show before anything is handed over */
	if (status == GJ_OK)
		status = work->ops->queues->sync(work->queue);
	if (status == GJ_OK)
		status = gj_run_hand_over(run, &group_run.layout, ngroups, true, fill_sorted, &group_run);
	gj_buffer_free(work, &group_run.values);
	gj_sorted_layout_free(&group_run.layout);
	return status;
}
