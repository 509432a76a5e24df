/*
 * group.c
 *	  The sink of groups: tuples that have passed all steps become groups, and at the end these
 *	  become batches.
 *
 * A piece of tuples takes five calls of the device: keys, look-up, room for new groups, making
 * those, aggregates.  So the device never has to allocate, and the lease counts every byte.
 *
 * If other runs have groups too, or there are too many groups for the device's memory, the run
 * hands over partial groups to the target (group_parts.c).  If it was not opened for that, a run
 * that finds too many groups ends with GJ_OUT_OF_MEMORY.  The backend then starts the program
 * again, in passes.
 *
 * Groups are numbered in the order in which they were made, and so are the bytes of their
 * references.  So the columns of a batch are plain copies, and only null maps and references are
 * corrected in the slot.
 */
#include "group.h"

#include <stdlib.h>
#include <string.h>

#define GJ_MIN_SLOTS		1024
/* Room to start with: bytes of references, and groups. */
#define GJ_FIRST_HEAP		(64 * 1024)
#define GJ_FIRST_GROUPS		1024
#define GJ_MAX_SLOTS		(UINT64_C(1) << 31)

GjStatus
gj_groups_start(GjRun *run, uint32_t nkeys)
{
	const GjGroupKey *keys = gj_program_array(run->program, GjGroupKey, group_keys);
	GjGrouping *grouping = calloc(1, sizeof(GjGrouping));

	if (!grouping)
		return GJ_OUT_OF_HOST_MEMORY;
	run->output.state = grouping;
	grouping->tuples.nkeys = grouping->groups.rows.nkeys = nkeys;
	grouping->tuples.ndependent = grouping->groups.rows.ndependent = run->program->ndependent_keys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		grouping->tuples.how[k] = grouping->groups.rows.how[k] = (uint8_t) keys[k].how;
		grouping->refs |= gj_group_by_reference(keys[k].how);
	}
	return GJ_OK;
}

/* ---- a piece of tuples */

void
gj_groups_free_tuples(GjWork *work, GjGrouping *grouping)
{
	gj_buffer_free(work, &grouping->tuple_null);
	gj_buffer_free(work, &grouping->tuple_hash);
	for (uint32_t k = 0; k < GJ_MAX_GROUP_KEYS; k++)
		gj_buffer_free(work, &grouping->tuple_value[k]);
	gj_buffer_free(work, &grouping->slot_of);
	gj_buffer_free(work, &grouping->positions);
	gj_buffer_free(work, &grouping->heap_at);
}

void
gj_groups_free(GjWork *work, GjGrouping *grouping)
{
	gj_groups_free_tuples(work, grouping);
	gj_buffer_free(work, &grouping->slots);
	gj_buffer_free(work, &grouping->null);
	gj_buffer_free(work, &grouping->hash);
	for (uint32_t k = 0; k < GJ_MAX_GROUP_KEYS; k++)
		gj_buffer_free(work, &grouping->value[k]);
	gj_buffer_free(work, &grouping->heap);
	gj_buffer_free(work, &grouping->heap_end);
	for (uint32_t a = 0; a < GJ_MAX_AGGREGATES; a++)
		gj_buffer_free(work, &grouping->state[a]);
	gj_buffer_free(work, &grouping->incoming);
	gj_buffer_free(work, &grouping->incoming_hash);
	free(grouping);
}

/* Room for n tuples. */
static GjStatus
reserve_tuples(GjWork *work, GjGrouping *grouping, uint32_t n)
{
	GjGroupRows *tuples = &grouping->tuples;
	uint64_t	words = (uint64_t) n * sizeof(uint32_t);

	GJ_TRY(gj_buffer_reserve(work, &grouping->tuple_null, words));
	GJ_TRY(gj_buffer_reserve(work, &grouping->tuple_hash, words * 2));
	for (uint32_t k = 0; k < tuples->nkeys; k++)
		GJ_TRY(gj_buffer_reserve(work, &grouping->tuple_value[k], words * 2));
	GJ_TRY(gj_buffer_reserve(work, &grouping->slot_of, words));
	GJ_TRY(gj_buffer_reserve(work, &grouping->positions, words));
	if (grouping->refs)
		GJ_TRY(gj_buffer_reserve(work, &grouping->heap_at, words * 2 + sizeof(uint64_t)));
	tuples->nrows = n;
	tuples->null = grouping->tuple_null.memory;
	tuples->hash = grouping->tuple_hash.memory;
	for (uint32_t k = 0; k < tuples->nkeys; k++)
		tuples->value[k] = grouping->tuple_value[k].memory;
	return GJ_OK;
}

/* A table that has room for all groups and n more. */
static GjStatus
make_table(GjRun *run, uint32_t n)
{
	GjGrouping *grouping = gj_grouping(run);
	GjGroups   *groups = &grouping->groups;
	uint64_t	wanted = ((uint64_t) groups->rows.nrows + n) * 2;
	uint64_t	nslots = groups->nslots > 0 ? groups->nslots : GJ_MIN_SLOTS;

	if (groups->nslots >= wanted)
		return GJ_OK;
	while (nslots < wanted)
		nslots *= 2;
	if (nslots > GJ_MAX_SLOTS)
		return GJ_TOO_LARGE;
	groups->nslots = 0;
	gj_buffer_free(&run->work, &grouping->slots);
	GJ_TRY(gj_buffer_grow(&run->work, &grouping->slots, 0, nslots * sizeof(uint64_t), 0));
	groups->slots = grouping->slots.memory;
	groups->nslots = nslots;
	return run->work.ops->groups->group_rehash(run->work.queue, groups);
}

/* Room for n tuples, and as many new groups. */
static GjStatus
reserve_piece(GjRun *run, uint32_t i, uint32_t n)
{
	GJ_TRY(reserve_tuples(&run->work, gj_grouping(run), n));
	return make_table(run, n);
}

static void
free_piece(GjRun *run, uint32_t i)
{
	gj_groups_free_tuples(&run->work, gj_grouping(run));
}

GjStatus
gj_groups_grow(GjRun *run, uint32_t n, uint64_t nbytes)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	GjGroups   *groups = &grouping->groups;
	uint64_t	used = groups->rows.nrows;
	uint64_t	all = used + n;
	uint64_t	hint = GJ_FIRST_GROUPS;

	GJ_TRY(gj_buffer_grow(work, &grouping->null, used * 4, all * 4, hint * 4));
	groups->rows.null = grouping->null.memory;
	GJ_TRY(gj_buffer_grow(work, &grouping->hash, used * 8, all * 8, hint * 8));
	groups->rows.hash = grouping->hash.memory;
	for (uint32_t k = 0; k < groups->rows.nkeys; k++)
	{
		GJ_TRY(gj_buffer_grow(work, &grouping->value[k], used * 8, all * 8, hint * 8));
		groups->rows.value[k] = grouping->value[k].memory;
	}
	for (uint32_t a = 0; a < run->program->naggregates; a++)
	{
		GJ_TRY(gj_buffer_grow(work, &grouping->state[a], used * sizeof(GjAggState),
							  all * sizeof(GjAggState), hint * sizeof(GjAggState)));
		groups->state[a] = grouping->state[a].memory;
	}
	if (!grouping->refs)
		return GJ_OK;
	if (grouping->heap_used + nbytes > GJ_REF_MAX_OFFSET)
		return GJ_TOO_LARGE;
	GJ_TRY(gj_buffer_grow(work, &grouping->heap_end, used * 8, all * 8, hint * 8));
	groups->heap_end = grouping->heap_end.memory;
	GJ_TRY(gj_buffer_grow(work, &grouping->heap, grouping->heap_used,
						  grouping->heap_used + nbytes, GJ_FIRST_HEAP));
	groups->heap = grouping->heap.memory;
	for (uint32_t k = 0; k < groups->rows.nkeys; k++)
		groups->rows.heap[k] = groups->heap;
	return GJ_OK;
}

GjStatus
gj_groups_copy(GjRun *run, const GjGroups *from, const uint32_t *positions, uint32_t n)
{
	GjWork	   *work = &run->work;
	GjGrouping *to = gj_grouping(run);
	uint64_t	nbytes = 0;

	if (to->refs)
	{
		GJ_TRY(gj_buffer_reserve(work, &to->heap_at, ((uint64_t) n + 1) * sizeof(uint64_t)));
		GJ_TRY(work->ops->groups->group_bytes(work->queue, from, positions, n, to->heap_at.memory,
											  &nbytes));
	}
	GJ_TRY(gj_groups_grow(run, n, nbytes));
	GJ_TRY(work->ops->groups->group_keep(work->queue, from, positions, n, to->heap_at.memory,
										 &to->groups));
	to->heap_used = nbytes;
	return GJ_OK;
}

/* Finds the group of every row, new ones included; slot_of then tells it. */
static GjStatus
find_groups(GjRun *run, const GjGroupRows *rows)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	GjGroups   *groups = &grouping->groups;
	uint32_t	added;
	uint64_t	nbytes;

	GJ_TRY(work->ops->groups->group_find(work->queue, rows, groups, grouping->slot_of.memory,
								 grouping->positions.memory, grouping->heap_at.memory,
								 &added, &nbytes));
	if (added > 0)
		GJ_TRY(gj_groups_grow(run, added, nbytes));
	GJ_TRY(work->ops->groups->group_add(work->queue, rows, groups, grouping->slot_of.memory,
								grouping->positions.memory, grouping->heap_at.memory,
								added, grouping->heap_used));
	groups->rows.nrows += added;
	grouping->heap_used += nbytes;
	return GJ_OK;
}

/* Room for a piece of at most *n tuples, and what tells the device whether there are references. */
static GjStatus
start_piece(GjRun *run, uint32_t *n)
{
	GjGrouping *grouping = gj_grouping(run);

	GJ_TRY(gj_run_fit_tuples(run, 0, n, reserve_piece, free_piece));
	return gj_groups_grow(run, grouping->groups.heap_end || !grouping->refs ? 0 : 1, 0);
}

/*
 * Finds the groups of tuples first .. of the view, and `adds` the tuples to them: as many as there
 * is room for, at most *n.
 */
static GjStatus
try_piece(GjRun *run, const GjView *view, bool adds, uint32_t first, uint32_t *n)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	GjGroupRows *tuples = &grouping->tuples;
	const GjGroupKey *keys = gj_program_array(run->program, GjGroupKey, group_keys);

	GJ_TRY(start_piece(run, n));
	for (uint32_t k = 0; k < tuples->nkeys; k++)
		if (gj_group_by_reference(keys[k].how))
			tuples->heap[k] = run->columns[keys[k].index].heap;
	GJ_TRY(work->ops->groups->group_keys(work->queue, view, first, tuples));
	GJ_TRY(find_groups(run, tuples));
	if (!adds)
		return GJ_OK;
	return work->ops->groups->group_aggregate(work->queue, view, first, *n,
											  grouping->slot_of.memory, &grouping->groups);
}

/*
 * The same.  Where there is no room for new groups, those found so far are handed over if
 * the run may do that, and if that is not enough fewer tuples are looked at.
 */
static GjStatus
group_piece(GjRun *run, const GjView *view, bool adds, uint32_t first, uint32_t *n)
{
	for (;;)
	{
		GjStatus	status = try_piece(run, view, adds, first, n);

		if ((status != GJ_OUT_OF_MEMORY && status != GJ_TOO_LARGE) ||
			gj_run_form(run) != GJ_FORM_PARTIAL)
			return status;
		if (gj_grouping(run)->groups.rows.nrows > 0)
			GJ_TRY(gj_groups_hand_over(run));
		else
		{
			if (*n <= GJ_MIN_TUPLES)
				return status;
			*n = gj_fewer_tuples(*n);
			gj_groups_free(&run->work, gj_grouping(run));
			run->output.state = NULL;
		}
		GJ_TRY(gj_groups_start(run, run->program->ngroup_keys));
	}
}

GjStatus
gj_groups_regroup(GjRun *run, const GjGroups *from, uint32_t first, uint32_t *n)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	GjGroupRows rows;

	GJ_TRY(start_piece(run, n));
	rows = grouping->tuples;
	rows.null = from->rows.null + first;
	rows.hash = from->rows.hash + first;
	for (uint32_t k = 0; k < rows.nkeys; k++)
	{
		rows.value[k] = from->rows.value[k] + first;
		rows.heap[k] = from->rows.heap[k];
	}
	GJ_TRY(work->ops->groups->group_hash(work->queue, &rows));
	GJ_TRY(find_groups(run, &rows));
	return work->ops->groups->group_merge(work->queue, from, first, *n, grouping->slot_of.memory,
								  &grouping->groups);
}

/* Copies the groups of n tuples that were found last. */
static GjStatus
copy_group_of(GjRun *run, uint32_t *to, uint32_t n)
{
	const GjPiece piece = {to, gj_grouping(run)->slot_of.memory, (size_t) n * sizeof(uint32_t)};

	return run->work.ops->memory->copy_many(run->work.queue, &piece, 1);
}

/* ---- keys that are numbers yet */

void
gj_groups_number(GjRun *run, const GjGroups *numbered)
{
	GjGrouping *grouping = gj_grouping(run);

	grouping->numbered = numbered;
	grouping->refs = false;
	grouping->tuples.how[0] = grouping->groups.rows.how[0] = GJ_GROUP_INTEGER;
}

GjStatus
gj_groups_take_keys(GjRun *run)
{
	GjWork	   *work = &run->work;
	GjGrouping *grouping = gj_grouping(run);
	const GjGroups *from = grouping ? grouping->numbered : NULL;
	uint32_t	n = from ? grouping->groups.rows.nrows : 0;
	GjPackColumn numbers = {.nrows = n};
	GjStatus	status;

	if (!from)
		return GJ_OK;
	grouping->numbered = NULL;
	grouping->refs = true;
	grouping->tuples.how[0] = grouping->groups.rows.how[0] = from->rows.how[0];
	if (n == 0)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &grouping->positions, (uint64_t) n * sizeof(uint32_t)));
	numbers.from = (GjColumn) {.data = grouping->value[0].memory,.kind = GJ_INT8,
		.width = sizeof(int64_t),.packed = sizeof(uint32_t),.factor = 1};
	numbers.to = grouping->positions.memory;
	GJ_TRY(work->ops->columns->pack(work->queue, &numbers, 1));
	grouping->groups.rows.nrows = 0;
	status = gj_groups_copy(run, from, grouping->positions.memory, n);
	grouping->groups.rows.nrows = n;
	return status;
}

/* group_of: as for make_groups, only where nothing is added. */
static GjStatus
group_view(GjRun *run, const GjView *view, bool adds, uint32_t *group_of)
{
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	if (!gj_grouping(run))
		GJ_TRY(gj_groups_start(run, run->program->ngroup_keys));
	GJ_TRY(gj_groups_take_keys(run));
	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GJ_STOP_CHECK(run);
		n = view->nrows - first;
		GJ_TRY(group_piece(run, view, adds, first, &n));
		if (group_of)
			GJ_TRY(copy_group_of(run, group_of + first, n));
	}
	return GJ_OK;
}

static GjStatus
push(GjRun *run, const GjView *view)
{
	return group_view(run, view, true, NULL);
}

static GjStatus
make_groups(GjRun *run, const GjView *view, uint32_t *group_of)
{
	return group_view(run, view, false, group_of);
}

/* ---- batches */

/* Makes null maps of n groups of their null bits. */
static void
make_null_maps(GjRun *run, uint8_t *slot, const uint32_t *bits, uint32_t n)
{
	const GjGroupRows *rows = &gj_grouping(run)->groups.rows;
	uint32_t	any = 0;

	memset(gj_slot_has_nulls(slot), 0, run->output.ncolumns);
	for (uint32_t i = 0; i < n; i++)
		any |= bits[i];
	for (uint32_t k = 0; k < rows->nkeys; k++)
	{
		uint8_t    *map = slot + run->output.places[k].nulls;

		if (!(any >> k & 1))
			continue;
		gj_slot_has_nulls(slot)[k] = 1;
		for (uint32_t i = 0; i < n; i++)
			map[i] = bits[i] >> k & 1;
	}
}

/* Copies null bits of n groups to where key 0's values will be, and makes maps of them. */
static GjStatus
send_nulls(GjRun *run, uint8_t *slot, uint32_t first, uint32_t n)
{
	GjWork	   *work = &run->work;
	uint8_t    *bits = slot + run->output.places[0].data;

	GJ_TRY(work->ops->memory->copy_out(work->queue, bits,
									   gj_grouping(run)->groups.rows.null + first,
							   (size_t) n * sizeof(uint32_t)));
	GJ_TRY(work->ops->queues->sync(work->queue));
	make_null_maps(run, slot, (const uint32_t *) bits, n);
	return GJ_OK;
}

GjStatus
gj_groups_copy_heap(GjRun *run, uint32_t first, uint32_t *n, uint64_t *end, uint8_t *heap,
					uint32_t limit, uint64_t *base, uint32_t *nbytes)
{
	GjWork	   *work = &run->work;
	const GjGroups *groups = &gj_grouping(run)->groups;
	uint64_t	heap_used = gj_grouping(run)->heap_used;
	uint32_t	fit = 0;

	*base = 0;
	*nbytes = 0;
	if (first > 0)
		GJ_TRY(work->ops->memory->copy_out(work->queue, base, groups->heap_end + first - 1,
								   sizeof(uint64_t)));
	GJ_TRY(work->ops->memory->copy_out(work->queue, end, groups->heap_end + first,
							   (size_t) *n * sizeof(uint64_t)));
	GJ_TRY(work->ops->queues->sync(work->queue));
	/* the backend can write there: each is read once, and no bytes beyond the heap are copied */
	for (; fit < *n; fit++)
	{
		uint64_t	next = __atomic_load_n(&end[fit], __ATOMIC_RELAXED);

		if (next > heap_used || next - *base > limit)
			break;
		*nbytes = (uint32_t) (next - *base);
	}
	if (fit == 0)
		return gj_run_fail(run, GJ_TOO_LARGE, "a group does not fit a batch");
	*n = fit;
	if (*nbytes == 0)
		return GJ_OK;
	return work->ops->memory->copy_out(work->queue, heap, groups->heap + *base, *nbytes);
}

void
gj_groups_move_refs(const GjRun *run, uint8_t *slot, const GjColumnPlace *places, uint32_t n,
					uint64_t base)
{
	const GjGroupRows *rows = &gj_grouping(run)->groups.rows;

	for (uint32_t k = 0; k < rows->nkeys; k++)
	{
		uint64_t   *ref = (uint64_t *) (slot + places[k].data);

		if (!gj_group_by_reference(rows->how[k]))
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (gj_ref_length(ref[i]) > 0)
				ref[i] -= gj_ref_make(base, 0);
	}
}

/* Copies the values of groups first .. first+n-1, and the bytes behind them to *nbytes. */
static GjStatus
copy_values(GjRun *run, uint8_t *slot, uint32_t first, uint32_t n, uint64_t *nbytes)
{
	GjWork	   *work = &run->work;
	const GjGroups *groups = &gj_grouping(run)->groups;

	for (uint32_t i = 0; i < run->output.ncolumns; i++)
	{
		const uint8_t *from = i < groups->rows.nkeys ? (const uint8_t *) groups->rows.value[i] :
			(const uint8_t *) groups->state[i - groups->rows.nkeys];
		uint32_t	width = run->output.types[i].width;

		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.places[i].data,
								   from + (size_t) first * width, (size_t) n * width));
		*nbytes += (uint64_t) n * width;
	}
	return GJ_OK;
}

/*
 * Fills a slot with all n groups, if they are few, and waits once.  How many bytes they have is
 * known, and null bits have room behind the values of key 0.  False: they may not fit.
 */
static GjStatus
fill_with_all(GjRun *run, uint8_t *slot, uint32_t n, uint64_t *nbytes, GjSlotHeader *header,
			  bool *filled)
{
	GjWork	   *work = &run->work;
	const GjGrouping *grouping = gj_grouping(run);
	uint64_t	heap_used = grouping->refs ? grouping->heap_used : 0;
	uint64_t	values = gj_align((uint64_t) n * run->output.types[0].width);
	uint8_t    *bits = slot + run->output.places[0].data + values;

	*filled = n == grouping->groups.rows.nrows && heap_used <= run->output.layout.heap_size &&
		values + (uint64_t) n * sizeof(uint32_t) <=
		(uint64_t) run->output.layout.capacity * run->output.types[0].width;
	if (!*filled)
		return GJ_OK;
	if (heap_used > 0)
		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.layout.heap,
								   grouping->groups.heap, heap_used));
	GJ_TRY(work->ops->memory->copy_out(work->queue, bits, grouping->groups.rows.null,
							   (size_t) n * sizeof(uint32_t)));
	GJ_TRY(copy_values(run, slot, 0, n, nbytes));
	GJ_TRY(work->ops->queues->sync(work->queue));
	make_null_maps(run, slot, (const uint32_t *) bits, n);
	header->heap_used = (uint32_t) heap_used;
	return GJ_OK;
}

GjStatus
gj_groups_fill(GjRun *run, uint8_t *slot, uint32_t first, uint32_t *n, uint64_t *nbytes)
{
	GjWork	   *work = &run->work;
	GjSlotHeader header = {0, 0};
	uint64_t	base = 0;
	bool		filled;

	GJ_TRY(fill_with_all(run, slot, *n, nbytes, &header, &filled));
	if (!filled)
	{
		if (gj_grouping(run)->refs)
			GJ_TRY(gj_groups_copy_heap(run, first, n,
									   (uint64_t *) (slot + run->output.places[0].data),
									   slot + run->output.layout.heap,
									   run->output.layout.heap_size, &base, &header.heap_used));
		GJ_TRY(send_nulls(run, slot, first, *n));
		GJ_TRY(copy_values(run, slot, first, *n, nbytes));
		GJ_TRY(work->ops->queues->sync(work->queue));
		gj_groups_move_refs(run, slot, run->output.places, *n, base);
	}
	header.nrows = *n;
	memcpy(slot, &header, sizeof(header));
	*nbytes += header.heap_used;
	return GJ_OK;
}

/* Makes groups of the groups, without the distinct key. */
static GjStatus
regroup(GjRun *run)
{
	GjGrouping *from = gj_grouping(run);
	uint32_t	nrows = from->groups.rows.nrows;
	GjStatus	status;

	run->output.state = NULL;
	gj_groups_free_tuples(&run->work, from);
	gj_buffer_free(&run->work, &from->slots);
	status = gj_groups_start(run, gj_group_nkeys(run->program));
	for (uint32_t first = 0, n; status == GJ_OK && first < nrows; first += n)
	{
		n = nrows - first < GJ_MAX_TUPLES ? nrows - first : GJ_MAX_TUPLES;
		if (run->host->stop(run->host->arg))
			status = GJ_CANCELLED;
		else
			status = gj_groups_regroup(run, &from->groups, first, &n);
	}
	/* what is queued may still read them, in its order before anything that follows */
	gj_groups_free(&run->work, from);
	return status;
}

void
gj_groups_drop(GjRun *run)
{
	if (gj_grouping(run))
		gj_groups_free(&run->work, gj_grouping(run));
	run->output.state = NULL;
}

/* The one row of aggregates over no rows at all. */
static GjStatus
send_nothing(GjRun *run)
{
	const GjSlotHeader header = {1, 0};
	uint8_t    *slot;

	GJ_TRY(gj_run_next_slot(run, &slot));
	memset(gj_slot_has_nulls(slot), 0, run->output.ncolumns);
	for (uint32_t i = 0; i < run->output.ncolumns; i++)
		memset(slot + run->output.places[i].data, 0, sizeof(GjAggState));
	memcpy(slot, &header, sizeof(header));
	return gj_run_send(run, 1, run->output.ncolumns * sizeof(GjAggState));
}

static GjStatus
send_groups(GjRun *run)
{
	GjWork	   *work = &run->work;
	uint32_t	ngroups;
	bool		kept;

	/* a row error must show before anything is sent; groups are waited for anyhow */
	if (!gj_grouping(run) || gj_run_form(run) == GJ_FORM_PARTIAL)
		GJ_TRY(work->ops->queues->sync(work->queue));
	if (gj_run_form(run) == GJ_FORM_PARTIAL && !(gj_grouping(run) && gj_grouping(run)->is_joined))
		return gj_grouping(run) ? gj_groups_hand_over(run) : GJ_OK;
	if (!gj_grouping(run))
		return gj_group_nkeys(run->program) == 0 ? send_nothing(run) : GJ_OK;
	work->ops->queues->phase(work->queue, GJ_PHASE_AGGREGATE);
	gj_buffer_free(work, &gj_grouping(run)->incoming);
	gj_buffer_free(work, &gj_grouping(run)->incoming_hash);
	GJ_TRY(work->ops->groups->group_finish(work->queue, &gj_grouping(run)->groups));
	if (gj_grouping(run)->groups.rows.nkeys > gj_group_nkeys(run->program))
	{
		GJ_TRY(regroup(run));
		if (gj_run_form(run) == GJ_FORM_PARTIAL)
			return gj_groups_hand_over(run);
		GJ_TRY(work->ops->groups->group_finish(work->queue, &gj_grouping(run)->groups));
	}
	GJ_TRY(gj_groups_sort(run));
	GJ_TRY(gj_groups_take_keys(run));
	ngroups = gj_grouping(run)->groups.rows.nrows;
	if (ngroups == 0)
		return work->ops->queues->sync(work->queue);
	if (gj_run_form(run) == GJ_FORM_SORTED)
		return gj_groups_hand_over_sorted(run);
	GJ_TRY(gj_groups_keep_rows(run, &kept));
	for (uint32_t first = kept ? ngroups : 0, n; first < ngroups; first += n)
	{
		uint8_t    *slot;
		uint64_t	nbytes = 0;

		GJ_TRY(gj_run_next_slot(run, &slot));
		n = ngroups - first < run->output.layout.capacity ? ngroups - first :
			run->output.layout.capacity;
		GJ_TRY(gj_groups_fill(run, slot, first, &n, &nbytes));
		GJ_TRY(gj_run_send(run, n, nbytes));
	}
	return GJ_OK;
}

static GjStatus
finish(GjRun *run)
{
	GJ_TRY(gj_fused_finish(run));
	return send_groups(run);
}

static const GjGroups *
groups(const GjRun *run)
{
	return gj_grouping(run) ? &gj_grouping(run)->groups : NULL;
}

/* True if of n groups only the first ones are wanted, and keys do not tell which these are. */
static bool
keys_can_wait(const GjRun *run, uint32_t n)
{
	const GjProgram *p = run->program;
	const GjSortKey *sort_keys = gj_program_array(p, GjSortKey, sort_keys);

	if (p->limit == 0 || n <= p->limit || p->nsort_keys == 0 || p->ndistinct_keys > 0 ||
		gj_run_form(run) == GJ_FORM_PARTIAL)
		return false;
	for (uint32_t k = 0; k < gj_sort_nkeys(p); k++)
		if (sort_keys[k].of <= GJ_SORT_KEY_NULL)
			return false;
	return true;
}

static GjStatus
replace_groups(GjRun *run, uint32_t n,
			   GjStatus (*make) (GjRun *run, const GjGroups *to, void *arg), void *arg,
			   const GjGroups *keys)
{
	GjGrouping *from = gj_grouping(run);
	GjStatus	status;

	GJ_TRY(gj_groups_start(run, run->program->ngroup_keys));
	if (keys)
		gj_groups_number(run, keys);
	status = gj_groups_grow(run, n, 0);
	if (status == GJ_OK)
		status = make(run, &gj_grouping(run)->groups, arg);
	gj_grouping(run)->groups.rows.nrows = n;
	if (status == GJ_OK && !keys_can_wait(run, n))
		status = gj_groups_take_keys(run);
	if (status != GJ_OK)
	{
		gj_groups_drop(run);
		run->output.state = from;
		return status;
	}
	if (from)
		gj_groups_free(&run->work, from);
	return GJ_OK;
}

static uint32_t
plan(GjRun *run)
{
	const GjGroupKey *keys = gj_program_array(run->program, GjGroupKey, group_keys);
	uint32_t	needed = gj_aggregates_plan(run);

	for (uint32_t i = 0; i < run->program->ngroup_keys; i++)
		needed |= keys[i].how <= GJ_GROUP_FLOAT ? gj_run_reads_expr(run, keys[i].index) :
			gj_run_reads_column(run, keys[i].index);
	return needed;
}

const GjSinkOps gj_sink_groups = {
	.name = "groups",
	.joins = true,.spreads = true,.fusible = true,
	.has_groups = true,.in_batches = true,
	.plan = plan,.tuple_bytes = gj_sink_no_bytes,.push = push,.groups = groups,
	.replace_groups = replace_groups,.take_keys = gj_groups_take_keys,.make_groups = make_groups,
	.finish = finish,.free = gj_groups_drop
};

const GjSinkOps gj_sink_sorted_groups = {
	.name = "sorted groups",
	.joins = true,.spreads = true,.fusible = true,
	.has_groups = true,.sorted = true,.in_batches = true,
	.plan = plan,.tuple_bytes = gj_sink_no_bytes,.push = push,.groups = groups,
	.replace_groups = replace_groups,.take_keys = gj_groups_take_keys,.make_groups = make_groups,
	.finish = finish,.free = gj_groups_drop
};
