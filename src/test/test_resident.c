/*
 * test_resident.c
 *	  The resident store: fragments come back as they were loaded, and the right ones go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/stage.h"
#include "test_store.h"

/* Rows, NULLs, texts and what was noted of pages. */
void
test_resident_contents(void)
{
	Store		s;
	GjFragment *f;
	int32_t		values[2 * NROWS];
	uint64_t	refs[2 * NROWS];
	uint8_t		nulls[2 * NROWS];
	char		heap[64];
	bool		right = true;
	GjColumn	a,
				b;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB) && (f = load_fragment(&s, 3)));
	CHECK_EQUAL(f->nrows, 2 * NROWS);
	CHECK_EQUAL(s.entry.memory.resident, f->nbytes);
	CHECK_EQUAL(s.entry.memory.pinned, f->nbytes);
	a = gj_fragment_column(f, 0, 0);
	b = gj_fragment_column(f, 1, 0);
	REQUIRE(a.data && b.data && b.nulls && b.heap && !a.nulls);
	REQUIRE(s.work.ops->memory->copy_out(s.work.queue, values, a.data, sizeof(values)) == GJ_OK);
	REQUIRE(s.work.ops->memory->copy_out(s.work.queue, refs, b.data, sizeof(refs)) == GJ_OK);
	REQUIRE(s.work.ops->memory->copy_out(s.work.queue, nulls, b.nulls, sizeof(nulls)) == GJ_OK);
	REQUIRE(s.work.ops->memory->copy_out(s.work.queue, heap, b.heap, sizeof(heap)) == GJ_OK);
	REQUIRE(s.work.ops->queues->sync(s.work.queue) == GJ_OK);
	for (uint32_t i = 0; i < 2 * NROWS; i++)
	{
		uint32_t	row = i % NROWS;
		const char *text = heap + gj_ref_offset(refs[i]);

		right &= values[i] == (int32_t) (6 * NROWS + i) && nulls[i] == (row % 10 == 0) &&
			gj_ref_length(refs[i]) == 8 && gj_ref_offset(refs[i]) == i / NROWS * 32 + row % 4 * 8 &&
			text[7] == (char) ('0' + row % 4) && (row % 4 > 0 || text[5] == (char) ('6' + i / NROWS));
	}
	CHECK(right);
	CHECK_EQUAL(f->pages->lsn[7], 1007);
	CHECK_EQUAL(f->pages->first_row[7], 1400);
	CHECK_EQUAL(f->pages->row_count[7], 200);
	CHECK_EQUAL(f->nvalid, NPAGES - 1);
	CHECK(!gj_page_is_set(f->pages->valid, 3) && gj_page_is_set(f->pages->valid, 4));
	CHECK(gj_pages_all(f->pages->filled, NPAGES));
	gj_resident_unpin_one(s.store, f);
	CHECK_EQUAL(s.entry.memory.pinned, 0);
	close_store(&s);
}

/* A fragment is found by relation, number and columns, and described as it is. */
void
test_resident_finding(void)
{
	const uint32_t numbers[3] = {0, 1, 2};
	const uint64_t lsns[2] = {77, 78};
	const GjColumnKey other = {{9, 9}, 1, 0};
	uint16_t	places[GJ_MAX_COLUMNS] = {0};
	GjFound		found[3];
	uint64_t	valid[GJ_FRAGMENT_WORDS];
	uint64_t	page_lsns[GJ_FRAGMENT_BLOCKS];
	GjCached   *list;
	GjCachedColumn *columns;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB) && load_unused(&s, 0) && load_unused(&s, 2));
	gj_resident_find(s.store, &s.wanted, places, numbers, 3, lsns, 2, found);
	REQUIRE(found[0].fragment && !found[1].fragment && found[2].fragment);
	CHECK_EQUAL(found[0].known.flags, GJ_KNOWN_BITS);
	CHECK_EQUAL(found[0].nvalid, NPAGES - 1);
	/* the map's page has another LSN by now */
	CHECK_EQUAL(found[2].known.flags, GJ_KNOWN_BITS | GJ_KNOWN_LSNS);
	CHECK(found[0].known.id != found[2].known.id);
	gj_resident_describe(s.store, &found[2], 78, valid, page_lsns);
	CHECK_EQUAL(gj_pages_count(valid), NPAGES - 1);
	CHECK_EQUAL(page_lsns[9], 1009);
	/* wherever they were in the fragment before: where others are here, or none */
	for (uint16_t place = 0; place < 4; place++)
	{
		places[0] = places[1] = place;
		CHECK_EQUAL(gj_fragment_find(found[0].fragment, &store_keys[0], &store_types[0], &places[0]), 0);
		CHECK_EQUAL(gj_fragment_find(found[0].fragment, &store_keys[1], &store_types[1], &places[1]), 1);
		CHECK_EQUAL(places[0], 0);
		CHECK_EQUAL(places[1], 1);
		CHECK_EQUAL(gj_fragment_find(found[0].fragment, &other, &store_types[0], &places[0]), -1);
	}
	gj_resident_unpin(s.store, (GjPinned[]) {{.fragment = found[0].fragment}, {.fragment = found[2].fragment}}, 2);

	CHECK_EQUAL(gj_resident_list(&s.entry, &list, &columns), 1);
	REQUIRE(list[0].ncolumns == 2);
	CHECK_EQUAL(columns[0].attnum, 1);
	CHECK_EQUAL(columns[1].attnum, 2);
	CHECK_EQUAL(columns[0].nfragments[GJ_PLAIN], 2);
	CHECK(columns[0].nbytes >= 2 * 2 * NROWS * 4 && columns[0].nbytes == columns[0].plain_bytes);
	free(columns);
	CHECK_EQUAL(list[0].nfragments, 2);
	CHECK_EQUAL(list[0].npages, 2 * (NPAGES - 1));
	CHECK_EQUAL(list[0].nbytes, s.entry.memory.resident);
	CHECK_EQUAL(list[0].attributes[0], 6);
	free(list);

	s.wanted.keys = &other;
	s.wanted.ncolumns = 1;
	CHECK(!is_resident(&s, 0));
	s.wanted.keys = store_keys;
	CHECK(is_resident(&s, 0));
	s.wanted.relation.filenode++;
	CHECK(!is_resident(&s, 0));
	CHECK(gj_resident_evict(&s.entry, 99, 0) == 0);
	CHECK(gj_resident_evict(&s.entry, 1, 4) > 0);
	close_store(&s);
}

/* Texts serve as they are stored and flat, unless some of them are compressed or external. */
void
test_resident_flat(void)
{
	const GjColumnKey flat[2] = {{{1, 2}, 1, 0}, {{3, 4}, 2, 1}};
	GjFragment *f;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB));
	REQUIRE((f = load_fragment(&s, 0)));
	s.wanted.keys = flat;
	CHECK(is_resident(&s, 0));
	/* as if a chunk of it had said so */
	f->columns[1].toasted = true;
	CHECK(!is_resident(&s, 0));
	s.wanted.keys = store_keys;
	CHECK(is_resident(&s, 0));
	gj_resident_unpin_one(s.store, f);
	close_store(&s);
}

/* Rows of a stage are nobody's to give up; without room for them they stay the run's. */
void
test_resident_rows(void)
{
	const GjColumnType type = {GJ_INT8, 8, 0, 0};
	const GjGroup role = {.role = 10};
	GjRelation	relation;
	GjKeptRows *rows;
	uint64_t	nbytes;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB));
	REQUIRE((s.lease.quota = (GjMemoryQuota) {gj_quota_get(&role), 20 * MB}).group);
	for (uint32_t large = 0; large < 2; large++)
	{
		REQUIRE(gj_relation_init(&relation, &type, 1, 0));
		relation.nrows = large ? 3 * MB / 8 : MB / 8;
		REQUIRE(gj_buffer_grow(&s.work, &relation.columns[0].data, 0, relation.nrows * 8, 0) == GJ_OK);
		nbytes = relation.columns[0].data.nbytes;
		rows = gj_rows_keep(&s.entry, &s.work, &relation);
		CHECK_EQUAL(rows != NULL, !large);
		CHECK_EQUAL(s.lease.used, rows ? 0 : nbytes);
		CHECK_EQUAL(gj_rows_kept(&s.entry), rows ? nbytes : 0);
		CHECK_EQUAL(s.entry.memory.pinned, rows ? nbytes : 0);
		/* of the session's quota, too */
		CHECK_EQUAL(gj_quota_left(&s.lease.quota), 20 * MB - nbytes);
		if (!rows)
		{
			gj_relation_free(&s.work, &relation);
			continue;
		}
		CHECK_EQUAL(rows->relation.nrows, MB / 8);
		CHECK(!relation.columns);
		CHECK(gj_resident_evict(&s.entry, 0, 0) == 0);
		CHECK(!gj_lease_take(&s.lease, 16 * MB));
		gj_rows_drop(rows);
		CHECK_EQUAL(gj_rows_kept(&s.entry), 0);
		CHECK_EQUAL(gj_quota_left(&s.lease.quota), 20 * MB);
	}
	close_store(&s);
	gj_quota_put(s.lease.quota.group);
}

#define NKEPT		2000		/* rows of a stage, in chunks of 300 */

static bool
stop_after(void *arg)
{
	uint32_t   *looks = arg;

	return (*looks)-- == 0;
}

/* Columns of a stage: numbers, and references to four texts. */
static bool
keep_rows(Store *s, GjStageResult *result)
{
	const GjColumnType of[2] = {{GJ_INT8, 8, 0, 0}, {GJ_REF, 8, 0, 0}};
	GjRelation	rows;

	if (!CHECK(gj_relation_init(&rows, of, 2, 0)))
		return false;
	rows.nrows = NKEPT;
	rows.heap_used = 32;
	for (uint32_t c = 0; c < 2; c++)
		if (!CHECK(gj_buffer_grow(&s->work, &rows.columns[c].data, 0, NKEPT * 8, 0) == GJ_OK))
			return false;
	if (!CHECK(gj_buffer_grow(&s->work, &rows.heap, 0, 32, 0) == GJ_OK))
		return false;
	memcpy(rows.heap.memory, "text 000text 001text 002text 003", 32);
	for (uint32_t i = 0; i < NKEPT; i++)
	{
		((int64_t *) rows.columns[0].data.memory)[i] = i;
		((uint64_t *) rows.columns[1].data.memory)[i] = gj_ref_make(i % 4 * 8, 8);
	}
	return CHECK(gj_stage_keep(result, &s->entry, &s->work, &rows));
}

/* Copying rows of a stage to the host ends wherever it is cancelled, and begins anew then. */
void
test_resident_bring(void)
{
	const struct
	{
		GjProgram	head;
		GjStageColumn columns[2];
	}			stage = {.head = {.output = GJ_OUTPUT_AGGREGATES,.stage_capacity = 300,.nstage_columns = 2,
		.stage_columns = sizeof(GjProgram)},.columns = {{{GJ_INT8, 8, 0, 0}, 0, GJ_STAGE_COUNT, 0},
	{{GJ_REF, 8, 0, 0}, 0, GJ_STAGE_KEY, 0}}};
	GjStageResult *result = gj_stage_create(&stage.head, 16 * MB);
	GjErrorText why = {""};
	GjStatus	status = GJ_CANCELLED;
	GjColumnType of[2] = {stage.columns[0].type, stage.columns[1].type};
	GjColumnPlace places[2];
	GjLayout	layout = {0};
	uint32_t	nrows,
				cancelled = 0,
				seen = 0;
	Store		s;

	REQUIRE(result && open_store(&s, 16 * MB, 8 * MB) && keep_rows(&s, result));
	REQUIRE(gj_layout(of, 2, 300, GJ_LOAD_CHUNK_SIZE, &layout, places));
	while (status == GJ_CANCELLED && cancelled < 100)
	{
		uint32_t	looks = cancelled;

		CHECK(!gj_stage_chunk(result, 0, &nrows));
		status = gj_stage_bring(result, stop_after, &looks, &why);
		cancelled += status == GJ_CANCELLED;
	}
	CHECK_EQUAL(status, GJ_OK);
	/* ahead of references, their bytes, and each of seven chunks */
	CHECK_EQUAL(cancelled, 9);
	for (uint32_t i = 0; i < 7; i++)
	{
		const uint8_t *chunk = gj_stage_chunk(result, i, &nrows);

		REQUIRE(chunk && nrows == (i < 6 ? 300 : 200));
		for (uint32_t row = 0; row < nrows; row++, seen++)
		{
			uint64_t	ref = ((const uint64_t *) (chunk + places[1].data))[row];

			EXPECT(((const int64_t *) (chunk + places[0].data))[row] == seen);
			EXPECT(gj_ref_length(ref) == 8 && chunk[layout.heap + gj_ref_offset(ref) + 7] == '0' + seen % 4);
		}
	}
	CHECK(!gj_stage_chunk(result, 7, &nrows));
	gj_stage_put(result);
	close_store(&s);
}

/* A new fragment takes the place of one whose columns it has, which stays while it is used. */
void
test_resident_supersedes(void)
{
	GjFragment *old;
	GjFragment *all;
	uint64_t	nbytes;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB));
	s.wanted.ncolumns = 1;
	REQUIRE((old = load_fragment(&s, 0)));
	nbytes = old->nbytes;
	s.wanted.ncolumns = 2;
	REQUIRE((all = load_fragment(&s, 0)));
	CHECK(!old->published);
	CHECK_EQUAL(s.entry.memory.resident, nbytes + all->nbytes);
	gj_resident_unpin_one(s.store, old);
	CHECK_EQUAL(s.entry.memory.resident, all->nbytes);
	s.wanted.ncolumns = 1;
	CHECK(find_fragment(&s, 0) == all);
	gj_resident_unpin(s.store, (GjPinned[]) {{.fragment = all}, {.fragment = all}}, 2);
	/* one that has less does not */
	REQUIRE(load_unused(&s, 0));
	CHECK(all->published);
	close_store(&s);
}

/* Room for the new is made by the one that was used longest ago, and that nobody uses now. */
void
test_resident_eviction(void)
{
	GjFragment *first;
	GjFragment *second;
	GjUse		use = {.map_lsn = 77};
	uint64_t	nbytes;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB) && (first = load_fragment(&s, 0)));
	nbytes = first->nbytes;
	gj_resident_unpin_one(s.store, first);
	close_store(&s);

	/* there is room for three */
	REQUIRE(open_store(&s, 16 * MB, nbytes * 7 / 2));
	REQUIRE(load_unused(&s, 0) && load_unused(&s, 1) && load_unused(&s, 2));
	CHECK_EQUAL(s.entry.memory.resident, 3 * nbytes);
	/* 0 is used again */
	gj_resident_clock(s.store);
	REQUIRE((first = find_fragment(&s, 0)));
	gj_resident_used(s.store, &(GjPinned) {.fragment = first}, &use, 1);
	gj_resident_unpin_one(s.store, first);
	CHECK_EQUAL(first->use.hits, 1);
	REQUIRE(load_unused(&s, 3));
	CHECK(is_resident(&s, 0) && !is_resident(&s, 1) && is_resident(&s, 2) && is_resident(&s, 3));
	/* 2 is pinned, so 0 goes */
	REQUIRE((second = find_fragment(&s, 2)));
	REQUIRE(load_unused(&s, 4));
	CHECK(!is_resident(&s, 0) && is_resident(&s, 2) && is_resident(&s, 3) && is_resident(&s, 4));
	/* all are pinned: nothing new is kept */
	REQUIRE((first = find_fragment(&s, 3)) && find_fragment(&s, 4));
	CHECK(!load_unused(&s, 5));
	CHECK(is_resident(&s, 2) && is_resident(&s, 3) && is_resident(&s, 4) && !is_resident(&s, 5));
	CHECK_EQUAL(s.entry.memory.resident, 3 * nbytes);
	gj_resident_unpin(s.store, (GjPinned[]) {{.fragment = second}, {.fragment = first}, {.fragment = NULL}}, 3);
	first = find_fragment(&s, 4);
	gj_resident_unpin(s.store, (GjPinned[]) {{.fragment = first}, {.fragment = first}}, 2);
	/* a smaller cache is made at once */
	CHECK(gj_resident_store(&s.entry, nbytes) == s.store);
	CHECK_EQUAL(s.entry.memory.resident, nbytes);
	/* without one nothing is kept, but the store stays */
	CHECK(gj_resident_store(&s.entry, 0) == NULL);
	CHECK_EQUAL(s.entry.memory.resident, 0);
	close_store(&s);
}

/* Leases come first: resident data goes, but for what is in use. */
void
test_resident_gives_way(void)
{
	GjFragment *used;
	uint64_t	nbytes;
	uint64_t	memory;
	GjLease		lease;
	Store		s;

	REQUIRE(open_store(&s, 16 * MB, 8 * MB) && (used = load_fragment(&s, 0)));
	nbytes = used->nbytes;
	gj_resident_unpin_one(s.store, used);
	close_store(&s);

	memory = 4 * nbytes;
	REQUIRE(open_store(&s, memory, memory));
	REQUIRE(load_unused(&s, 0) && load_unused(&s, 1) && (used = load_fragment(&s, 2)));
	REQUIRE(gj_lease_try(&lease, &s.entry.memory, nbytes, &unlimited));
	CHECK(is_resident(&s, 0) && is_resident(&s, 1));
	CHECK_EQUAL(gj_lease_free(&lease), nbytes);
	CHECK_EQUAL(gj_lease_left(&lease), 3 * nbytes);
	/* one more than there is goes to the lease */
	CHECK(gj_lease_take(&lease, 2 * nbytes));
	CHECK(!is_resident(&s, 0) && is_resident(&s, 1) && is_resident(&s, 2));
	CHECK(gj_lease_take(&lease, nbytes));
	CHECK(!is_resident(&s, 1) && is_resident(&s, 2));
	CHECK(!gj_lease_take(&lease, nbytes));
	CHECK(is_resident(&s, 2));
	CHECK_EQUAL(s.entry.memory.resident + s.entry.memory.leased, memory);
	/* there is no room to keep anything now */
	CHECK(!load_unused(&s, 7));
	gj_lease_give(&lease, 3 * nbytes);
	gj_lease_end(&lease);
	CHECK(load_unused(&s, 7));
	gj_resident_unpin_one(s.store, used);
	close_store(&s);
}

/* References are checked also where the columns of a chunk leave no room for a heap. */
void
test_resident_references(void)
{
	GjFragment *f;
	GjChunk		chunk;
	Store		s;

	REQUIRE(open_store(&s, 64 * MB, 64 * MB));
	f = gj_fragment_create(&s.wanted, 0, NPAGES);
	REQUIRE(f && gj_layout(store_types, 2, NROWS, (uint32_t) gj_layout_fixed_size(store_types, 2, NROWS),
						   &s.layout, s.places));
	CHECK_EQUAL(s.layout.heap_size, 0);
	memset(s.slot, 0, GJ_LOAD_SLOT_SIZE);
	chunk = fill_chunk(&s, 0, NPAGES, 0);
	chunk.heap_used = 0;
	CHECK(gj_fragment_append(s.store, &s.work, GJ_LANE_WORK, gj_resident_clock(s.store), f, &chunk,
							 s.pages) == GJ_OK);
	/* else it would be published as it is: gj_run_kept */
	CHECK(f->filling.nparts > 0);
	CHECK_EQUAL(gj_fragment_finish(&s.work, GJ_LANE_WORK, f), GJ_BAD_PROGRAM);
	gj_fragment_discard(s.store, f);
	close_store(&s);
}

/* A complete fragment knows the bounds of its columns, packed or not. */
void
test_resident_bounds(void)
{
	static const GjColumnType some[4] = {{GJ_INT8, 8, 1, 0}, {GJ_INT8, 8, 1, 0}, {GJ_BOOL, 1, 0, 0}, {GJ_FLOAT8, 8, 0, 0}};
	static const GjColumnKey some_keys[4] = {{{1, 2}, 1, 0}, {{3, 4}, 2, 0}, {{5, 6}, 3, 0}, {{7, 8}, 4, 0}};
	GjColumnPlace places[4];
	GjFragment *f;
	GjChunk		chunk;
	Store		s;

	REQUIRE(open_store(&s, 64 * MB, 64 * MB));
	s.wanted = (GjWanted) {{1, 2, 3, 4}, 4, some_keys, some};
	f = gj_fragment_create(&s.wanted, 0, NPAGES);
	REQUIRE(f && gj_layout(some, 4, NROWS, GJ_LOAD_CHUNK_SIZE, &s.layout, places));
	for (uint32_t c = 0; c < 4; c++)
		CHECK(f->columns[c].low == INT64_MIN && f->columns[c].high == INT64_MAX);
	memset(s.slot, 0, GJ_LOAD_SLOT_SIZE);
	for (uint32_t i = 0; i < NROWS; i++)
	{
		/* its ends are too far apart to be packed; the one beyond them is NULL */
		((int64_t *) (s.slot + places[0].data))[i] = i == 0 ? INT64_MIN : i == 1 ? -5 - INT64_MAX / 2 : (int64_t) i;
		s.slot[places[0].nulls + i] = i == 0;
		s.slot[places[1].nulls + i] = 1;
		s.slot[places[2].data + i] = 1;
	}
	*(GjSlotHeader *) s.slot = (GjSlotHeader) {NROWS, 0};
	memcpy(gj_slot_has_nulls(s.slot), "\1\1\0\0", 4);
	memset(s.pages, 0, sizeof(*s.pages));
	s.pages->n = s.pages->npages = NPAGES;
	for (uint32_t i = 0; i < NPAGES; i++)
		s.pages->nrows[i] = NROWS / NPAGES | GJ_PAGE_VISIBLE;
	chunk = (GjChunk) {s.slot, NROWS, 0, &s.layout, places, gj_slot_has_nulls(s.slot)};
	CHECK(gj_fragment_append(s.store, &s.work, GJ_LANE_WORK, gj_resident_clock(s.store), f, &chunk, s.pages) == GJ_OK);
	CHECK(gj_fragment_finish(&s.work, GJ_LANE_WORK, f) == GJ_OK);
	CHECK(gj_fragment_pack(s.store, &s.work, gj_resident_clock(s.store), f) == GJ_OK);
	CHECK(f->columns[0].packed == 0 && f->columns[0].low == -5 - INT64_MAX / 2 && f->columns[0].high == NROWS - 1);
	CHECK(f->columns[1].packed > 0 && f->columns[1].low > f->columns[1].high);
	CHECK(f->columns[2].packed == 0 && f->columns[2].low == 1 && f->columns[2].high == 1);
	CHECK(f->columns[3].low == INT64_MIN && f->columns[3].high == INT64_MAX);
	gj_fragment_discard(s.store, f);
	close_store(&s);
}

#define NCHUNKS		3
#define HELD_ROW	60			/* whose text is held, if one is to be */

/* The text of a row: all differ, some are empty, others NULL. */
static bool
differing_text(uint32_t row, char *text)
{
	text[0] = '\0';
	if (row % 11 > 0)
		sprintf(text, "%.*s%u", (int) (row % 40), "a text of forty letters, or fewer of them", row);
	return row % 13 > 0;
}

/* A fragment of three chunks, of a text for each row and one that two of them have. */
static GjFragment *
load_texts(Store *s, GjColumnPlace *places, bool held)
{
	GjFragment *f = gj_fragment_create(&s->wanted, 0, NPAGES * NCHUNKS);
	GjStatus	status = GJ_OK;

	for (uint32_t n = 0; n < NCHUNKS && status == GJ_OK; n++)
	{
		char	   *heap = (char *) s->slot + s->layout.heap;
		uint32_t	used = 0;
		GjChunk		chunk;

		for (uint32_t i = 0; i < NROWS; i++)
		{
			uint64_t   *refs = (uint64_t *) (s->slot + places[0].data);
			bool		there = differing_text(n * NROWS + i, heap + used);

			refs[i] = gj_ref_make(used, there ? strlen(heap + used) : 0);
			if (held && n * NROWS + i == HELD_ROW)
				refs[i] = gj_ref_make(17, GJ_REF_HELD);
			s->slot[places[0].nulls + i] = !there;
			used += gj_ref_space(refs[i]);
			memcpy(heap + used, i % 2 ? "odd  " : "even ", 5);
			((uint64_t *) (s->slot + places[1].data))[i] = gj_ref_make(used, i % 2 ? 3 : 5);
			used += 8;
		}
		memset(s->pages, 0, sizeof(*s->pages));
		s->pages->first = n * NPAGES;
		s->pages->n = NPAGES;
		s->pages->npages = NPAGES * NCHUNKS;
		for (uint32_t i = 0; i < NPAGES; i++)
			s->pages->nrows[i] = NROWS / NPAGES | GJ_PAGE_VISIBLE;
		*(GjSlotHeader *) s->slot = (GjSlotHeader) {NROWS, used};
		memcpy(gj_slot_has_nulls(s->slot), "\1\0", 2);
		chunk = (GjChunk) {s->slot, NROWS, used, &s->layout, places, gj_slot_has_nulls(s->slot)};
		status = gj_fragment_append(s->store, &s->work, GJ_LANE_WORK, gj_resident_clock(s->store), f,
									&chunk, s->pages);
		if (status == GJ_OK)
			status = s->work.ops->queues->sync(s->work.queue);
	}
	CHECK_EQUAL(status, GJ_OK);
	CHECK_EQUAL(gj_fragment_finish(&s->work, GJ_LANE_WORK, f), GJ_OK);
	return f;
}

/* True if the texts of the fragment are what was loaded, from a row on. */
static bool
texts_are_there(const GjFragment *f, uint32_t first, bool held)
{
	const GjColumn own = gj_fragment_column(f, 0, first);
	const GjColumn shared = gj_fragment_column(f, 1, first);
	bool		same = true;

	for (uint32_t i = 0; first + i < f->nrows && same; i++)
	{
		char		text[64];
		bool		there = differing_text(first + i, text);
		uint64_t	ref = gj_column_ref(&own, i);
		uint64_t	other = gj_column_ref(&shared, i);

		same = there != own.nulls[i] &&
			(held && first + i == HELD_ROW ? ref == gj_ref_make(17, GJ_REF_HELD) :
			 gj_ref_length(ref) == (there ? strlen(text) : 0) &&
			 memcmp(own.heap + gj_ref_offset(ref), text, gj_ref_length(ref)) == 0) &&
			gj_ref_length(other) == ((first + i) % 2 ? 3 : 5) &&
			memcmp(shared.heap + gj_ref_offset(other), (first + i) % 2 ? "odd" : "even ",
				   gj_ref_length(other)) == 0;
	}
	return same;
}

/* Packed texts: they are there, and what they take is counted.  Without room, or held, they stay. */
void
test_resident_offsets(void)
{
	static const GjColumnType texts[2] = {{GJ_REF, 8, 1, 0}, {GJ_REF, 8, 0, 0}};
	GjColumnPlace places[2];
	GjFragment *f;
	uint64_t	before = 0;

	for (uint64_t room = 0; room < 4; room++)
	{
		const bool	held = room == 3;
		const bool	packs = room == 0 || held;
		Store		s;

		/* all that it needs, twice; none; for what is small alone */
		REQUIRE(open_store(&s, 64 * MB, packs ? 64 * MB : before + (room - 1) * 16384));
		s.wanted = (GjWanted) {{1, 2, 3, 4}, 2, store_keys, texts};
		REQUIRE(gj_layout(texts, 2, NROWS, GJ_LOAD_CHUNK_SIZE, &s.layout, places));
		f = load_texts(&s, places, held);
		before = f->nbytes;
		CHECK(texts_are_there(f, 0, held));
		CHECK_EQUAL(gj_fragment_pack(s.store, &s.work, gj_resident_clock(s.store), f), GJ_OK);
		CHECK_EQUAL(f->columns[0].packed, packs && !held ? 2 : 0);
		CHECK_EQUAL(f->columns[1].packed, packs ? 1 : 0);
		CHECK(texts_are_there(f, 0, held) && texts_are_there(f, 1, held) && texts_are_there(f, 777, held));
		CHECK(!packs ? f->nbytes == before : f->nbytes < (held ? before : before / 2));
		CHECK_EQUAL(s.entry.memory.resident, f->nbytes);
		CHECK_EQUAL(s.entry.memory.pinned, f->nbytes);
		if (packs)
			CHECK_EQUAL(f->columns[0].heap_bytes + f->columns[1].heap_bytes, f->heap_used);
		gj_fragment_discard(s.store, f);
		close_store(&s);
	}
}
