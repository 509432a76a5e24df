/*
 * keep.c
 *	  Makes the chunks that a run loads resident.
 *
 * A chunk that describes its pages is copied to a fragment.  A fragment is published when it is
 * complete.  When there was no room for one, the run keeps nothing more.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

/*
 * The fragment is filled with the columns of a table of the source: a table can be there
 * twice, as workers of a UNION ALL that read other columns of it, or in another order.
 */
static bool
is_filled_with(const GjFragment *fragment, const GjWanted *wanted)
{
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
		if (!gj_same_column_key(&fragment->columns[c].key, &wanted->keys[c]))
			return false;
	return memcmp(&fragment->relation, &wanted->relation, sizeof(wanted->relation)) == 0;
}

/* The link to the fragment of that number that is being filled, or to NULL. */
static GjFragment **
find_building(GjRunResident *resident, const GjWanted *wanted, uint32_t number)
{
	GjFragment **at = &resident->building;

	while (*at && ((*at)->filling.last_slot != 0 || (*at)->number != number ||
				   !is_filled_with(*at, wanted)))
		at = &(*at)->next;
	return at;
}

static void
stop_building(GjRunResident *resident, GjFragment **at)
{
	GjFragment *fragment = *at;

	*at = fragment->next;
	gj_fragment_discard(resident->store, fragment);
}

/* Reads the pages of a chunk, once.  False: they are not to be kept, or make no sense. */
static bool
read_pages(const GjChunk *chunk, GjChunkPages *pages)
{
	uint64_t	nrows = 0;

	memcpy(pages, gj_chunk_pages(chunk->slot), offsetof(GjChunkPages, lsn));
	if (pages->n == 0 || pages->n > GJ_CHUNK_MAX_PAGES || pages->npages > GJ_FRAGMENT_BLOCKS ||
		pages->first > pages->npages || pages->n > pages->npages - pages->first)
		return false;
	memcpy(pages->lsn, gj_chunk_pages(chunk->slot)->lsn, pages->n * sizeof(uint64_t));
	memcpy(pages->toasted, gj_chunk_pages(chunk->slot)->toasted, sizeof(pages->toasted));
	memcpy(pages->nrows, gj_chunk_pages(chunk->slot)->nrows, pages->n * sizeof(uint16_t));
	for (uint32_t i = 0; i < pages->n; i++)
		nrows += pages->nrows[i] & ~GJ_PAGE_VISIBLE;
	return nrows == chunk->nrows;
}

/* The pages belong to the fragment and are new to it. */
static bool
pages_fit(const GjFragment *fragment, const GjChunkPages *pages)
{
	if (pages->npages != fragment->npages)
		return false;
	for (uint32_t i = 0; i < pages->n; i++)
		if (gj_page_is_set(fragment->pages->filled, pages->first + i))
			return false;
	return true;
}

/*
 * The copies may be under way when something goes wrong: they end before their memory is
 * given back.  Without memory the fragment is simply not kept.
 */
static GjStatus
give_up_building(GjRun *run, GjRunResident *resident, GjFragment **at, GjStatus status)
{
	GjStatus	ended;

	run->work.ops->queues->load_wait(run->work.queue);
	ended = run->work.ops->queues->sync(run->work.queue);
	stop_building(resident, at);
	resident->full = true;
	return status == GJ_OUT_OF_MEMORY ? ended : status;
}

/* A fragment was published, of chunks of a build source: can the side be found by it? */
static GjStatus
note_made(GjRunResident *resident, const GjFragment *fragment, uint32_t table)
{
	GjSideFragment *made;

	if (gj_pages_count(fragment->pages->valid) < fragment->npages)
		return GJ_OK;
	made = realloc(resident->made, (resident->nmade + 1) * sizeof(GjSideFragment));
	if (!made)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->made = made;
	made[resident->nmade] = (GjSideFragment) {
		.relation = fragment->relation,.number = fragment->number,.table = table,.id = fragment->id
	};
	resident->nmade++;
	resident->nmade_rows += fragment->nrows;
	return GJ_OK;
}

GjStatus
gj_run_keep(GjRun *run, uint32_t source, const GjChunk *chunk, GjLane lane, GjKept *kept)
{
	GjRunResident *resident = &run->intake->resident[source];
	const GjWanted *wanted;
	GjFragment *fragment;
	GjFragment **at;
	GjChunkPages pages;
	GjKept		place;
	GjStatus	status;

	*kept = (GjKept) {NULL, 0, 0};
	/* once there was no room there will be none */
	if (run->intake->keeps_nothing || !resident->store || resident->full ||
		!read_pages(chunk, &pages) || pages.table >= resident->ntables)
		return GJ_OK;
	wanted = &resident->tables[pages.table];
	at = find_building(resident, wanted, pages.fragment);
	if (!*at)
		*at = gj_fragment_create(wanted, pages.fragment, pages.npages);
	fragment = *at;
	if (!fragment)
		return GJ_OUT_OF_HOST_MEMORY;
	if (!pages_fit(fragment, &pages))
		return give_up_building(run, resident, at, GJ_OUT_OF_MEMORY);
	fragment->filling.table = pages.table;
	place = (GjKept) {fragment, fragment->nrows, fragment->heap_used};
	status = gj_fragment_append(resident->store, &run->work, lane, run->intake->clock, fragment,
								chunk, &pages);
	if (status != GJ_OK)
		return give_up_building(run, resident, at, status);
	*kept = place;
	return GJ_OK;
}

GjStatus
gj_run_append_chunk(GjRun *run, GjRelation *relation, const GjChunk *chunk, const GjKept *kept)
{
	const GjFragment *fragment = kept->fragment;
	const uint8_t *heap = fragment ? fragment->heap.memory : NULL;
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	base;

	if (!fragment || chunk->nrows == 0)
		return gj_relation_append(&run->work, relation, chunk);
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		columns[c] = gj_fragment_column(fragment, c, kept->first);
	GJ_TRY(gj_relation_append_heap(&run->work, relation, heap ? heap + kept->heap : NULL,
								   chunk->heap_used, &base));
	return gj_relation_append_rows(&run->work, relation, columns, chunk->nrows, base,
								   chunk->heap_used);
}

/* A fragment is there: others find it from now on. */
static GjStatus
publish(GjRun *run, uint32_t source, GjFragment **at)
{
	GjRunResident *resident = &run->intake->resident[source];
	GjFragment *fragment = *at;
	GjStatus	status;

	GJ_TRY(gj_fragment_pack(resident->store, &run->work, run->intake->clock, fragment));
	*at = fragment->next;
	gj_resident_publish(resident->store, fragment);
	status = source > 0 ? note_made(resident, fragment, fragment->filling.table) : GJ_OK;
	gj_resident_unpin_one(resident->store, fragment);
	return status;
}

GjStatus
gj_run_kept(GjRun *run, uint32_t source, const GjKept *kept, GjLane lane)
{
	GjRunResident *resident = &run->intake->resident[source];
	GjFragment **at = &resident->building;
	GjStatus	status;

	if (!kept->fragment || kept->fragment->nfilled < kept->fragment->npages)
		return GJ_OK;
	if (kept->fragment->filling.nparts == 0)
	{
		kept->fragment->filling.last_slot = run->intake->slots.nread + run->intake->slots.n + 1;
		run->intake->slots.narriving++;
		return GJ_OK;
	}
	while (*at != kept->fragment)
		at = &(*at)->next;
	status = gj_fragment_finish(&run->work, lane, kept->fragment);
	return status == GJ_OK ? publish(run, source, at) :
		give_up_building(run, resident, at, status);
}

GjStatus
gj_run_arrived(GjRun *run)
{
	for (uint32_t s = 0; s < run->program->nsources; s++)
	{
		GjFragment **at = &run->intake->resident[s].building;

		while (*at)
		{
			if ((*at)->filling.last_slot == 0 ||
				(*at)->filling.last_slot > run->intake->slots.nread)
			{
				at = &(*at)->next;
				continue;
			}
			run->intake->slots.narriving--;
			GJ_TRY(publish(run, s, at));
		}
	}
	return GJ_OK;
}

void
gj_run_stop_keeping(GjRunResident *resident)
{
	while (resident->building)
		stop_building(resident, &resident->building);
}
