/*
 * set_join_process.c
 *	  Set joins in the process: src/device/set_join.h, tile by tile.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "guc.h"
#include "sets/set_join_state.h"

static void *
process_alloc(void *arg, size_t nbytes)
{
	return MemoryContextAllocExtended(((GjSetJoin *) arg)->cxt, nbytes + 1, MCXT_ALLOC_HUGE);
}

static void
process_free(void *arg, void *memory)
{
	if (memory != NULL)
		pfree(memory);
}

static bool
process_run(void *arg, uint32_t n, void (*task) (void *, uint32_t), void *task_arg)
{
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		task(task_arg, i);
	}
	return true;
}

/* Build the family. */
static void
build_in_process(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	const GjSetBlock *block = &join->blocks.block;
	size_t		width = gj_element_width(sets->kind);
	uint64		nleft = gj_join_block_elements(join, 0);
	uint32		n = gj_join_block_sets(join);
	int32	   *size = MemoryContextAllocExtended(join->cxt, sizeof(int32) * ((Size) n + 1), MCXT_ALLOC_HUGE);
	GjSetInput	input = {.size = size,.nsets = n,.values = sets->elements + sets->offset[block->left] * width,
	.nvalues = nleft + gj_join_block_elements(join, 1),.width = width};
	GjStatus	status;

	join->stats.on_device = false;
	join->host = (GjSetHost) {join, process_alloc, process_free, process_run};
	for (uint32 i = 0; i < n; i++)
		size[i] = gj_join_set_size(join, i);
	/* ranges that do not follow each other are put together */
	if (!block->self && block->right != block->left + block->nleft)
	{
		char	   *values = process_alloc(join, input.nvalues * width);

		memcpy(values, input.values, nleft * width);
		memcpy(values + nleft * width, sets->elements + sets->offset[block->right] * width,
			   gj_join_block_elements(join, 1) * width);
		input.values = values;
	}
	status = gj_set_family_build(&join->host, &input, &join->spec, &join->family);
	if (status != GJ_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the sets could not be joined: %s", gj_reason_text(status))));
	join->stats.algorithm = join->family.algorithm;
	pfree(size);
	for (int i = 0; i < 3; i++)
		join->out[i] = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
}

bool
gj_set_process_tile(GjSetJoin *join)
{
	bool		first = !join->begun;

	if (!join->built)
		build_in_process(join);
	join->built = join->begun = true;
	for (; gj_set_next_tile(&join->family, &join->spec, &join->tile, first); first = false)
	{
		GjStatus	status = gj_set_run_tile(&join->host, &join->family, &join->spec, &join->tile,
											 join->out, &join->n);

		if (status != GJ_OK)
			elog(ERROR, "a tile of a set join failed: %s", gj_reason_text(status));
		join->stats.ncompared += (uint64) join->tile.nleft * join->tile.nright;
		if (join->n == 0)
			continue;
		join->left = join->out[0];
		join->right = join->out[1];
		join->common = join->out[2];
		return true;
	}
	return false;
}

/* Make sure that there is room for n intersections. */
static void
grow_found(GjSetJoin *join, uint64 n)
{
	GjIntersections *found = &join->found;
	uint64		room = Max(join->found_room, 1024);

#define GROW(array) \
	((array) = (array) == NULL ? MemoryContextAllocHuge(join->cxt, sizeof(*(array)) * room) : \
	 repalloc_huge((array), sizeof(*(array)) * room))

	if (n <= join->found_room)
		return;
	if (n > PG_UINT32_MAX / 4)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many distinct intersections")));
	while (room < n)
		room *= 2;
	join->found_room = room;
	GROW(found->hash);
	GROW(found->left);
	GROW(found->right);
	GROW(found->common);
	GROW(found->frequency);
#undef GROW
}

/* Make sure that the table has room for npairs more intersections. */
static void
grow_table(GjSetJoin *join, uint32 npairs)
{
	GjIntersections *found = &join->found;
	uint64		nslots = Max(found->nslots, 4096);

	while (nslots < 2 * ((uint64) found->n + npairs))
		nslots *= 2;
	if (nslots == found->nslots)
		return;
	if (found->slots != NULL)
		pfree(found->slots);
	found->slots = MemoryContextAllocHuge(join->cxt, sizeof(uint64) * nslots);
	found->nslots = nslots;
	gj_intersections_rehash(found);
}

/*
 * Count all pairs whose intersection belongs to the part.  False if there are more than `most`
 * of these; *done is the share of the pairs that were looked at.
 */
static bool
count_part(GjSetJoin *join, uint64 most, double *done)
{
	const GjSets *sets = join->sets;
	double		npairs = (double) sets->nleft * (sets->nsets - gj_sets_first_right(sets)) / (sets->self ? 2 : 1);
	uint64		compared = join->stats.ncompared;
	GjIntersections *found = &join->found;
	GjFoundPairs *pairs = &join->pairs;

	join->begun = false;
	found->n = 0;
	if (found->nslots > 0)
		gj_intersections_rehash(found);
	while (gj_set_process_tile(join))
	{
		uint32		n;

		pairs->n = join->n;
		pairs->left = join->left;
		pairs->right = join->right;
		pairs->common = join->common;
		grow_table(join, pairs->n);
		/* interrupts are errors here: it is never stopped */
		if (gj_intersections_find(&join->host, &join->family, found, pairs, &n) != GJ_OK)
			elog(ERROR, "the intersections of a tile could not be looked up");
		if ((uint64) found->n + n > most)
		{
			*done = (join->stats.ncompared - compared) / npairs;
			return false;
		}
		grow_found(join, (uint64) found->n + n);
		gj_intersections_add(found, pairs, n);
		found->n += n;
	}
	return true;
}

/* Bytes of memory for an intersection, and the smallest part worth making. */
#define GJ_INTERSECTION_SPACE	64
#define GJ_MIN_SPAN				(PG_UINT64_MAX >> 20)

/* Collect the first or the next part of the intersections, of a size for which there is memory. */
static void
collect_part(GjSetJoin *join)
{
	uint64		most = Max((uint64) gj_spill_memory * 1024 * 1024 / GJ_INTERSECTION_SPACE, 65536);
	GjIntersections *found = &join->found;
	GjFoundPairs *pairs = &join->pairs;
	double		done;

	if (pairs->hash == NULL)
	{
		pairs->hash = MemoryContextAlloc(join->cxt, sizeof(uint64) * GJ_MAX_TUPLES);
		pairs->slot_of = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
		pairs->positions = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
		pairs->behind = join->behind;
		join->span = PG_UINT64_MAX;
	}
	else
		found->first = found->last + 1;
	for (;;)
	{
		found->last = join->span < PG_UINT64_MAX - found->first ? found->first + join->span : PG_UINT64_MAX;
		if (count_part(join, join->span > GJ_MIN_SPAN ? most : PG_UINT32_MAX, &done))
			break;
		join->span = (found->last - found->first) * Min(Max(0.8 * done, 1.0 / 64), 0.5);
	}
	join->stats.run.step[0].nparts++;
	join->next = 0;
}

void
gj_set_join_grow(GjSetJoin *join, uint64 n)
{
	size_t		width = gj_element_width(join->sets->kind);

	if (n <= join->set_room)
		return;
	join->set_room = Max(n, Max(join->set_room * 2, 1024));
	join->set = join->set == NULL ? MemoryContextAllocHuge(join->cxt, join->set_room * width) :
		repalloc_huge(join->set, join->set_room * width);
}

bool
gj_set_process_found(GjSetJoin *join, GjElements *set, int64 *frequency)
{
	const GjSets *sets = join->sets;
	const GjIntersections *found = &join->found;
	size_t		width = gj_element_width(sets->kind);
	GjElements	left;
	GjElements	right;

	while (join->pairs.hash == NULL || (join->next == found->n && found->last < PG_UINT64_MAX))
		collect_part(join);
	if (join->next == found->n)
		return false;
	left = gj_sets_get(sets, found->left[join->next]);
	right = gj_sets_get(sets, found->right[join->next] + gj_sets_first_right(sets));
	gj_set_join_grow(join, Min(left.n, right.n) + GJ_INTEGERS_SLACK);
	set->data = join->set;
	set->n = gj_integers_combine(width, GJ_SETS_INTERSECT, left.data, left.n, right.data, right.n,
								 join->set);
	*frequency = found->frequency[join->next++];
	return true;
}
