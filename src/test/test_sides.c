/*
 * test_sides.c
 *	  Cached build sides in the resident store, and a store beside other processes on its device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_store.h"

/* What a side is told to be. */
typedef struct Made
{
	uint64_t	key;
	uint64_t	program;
	uint64_t	nbytes;
	uint64_t	nread;
	GjSideFragment fragment;
} Made;

/* What a side notes of a fragment. */
static GjSideFragment
part(const GjFragment *f)
{
	return (GjSideFragment) {.relation = f->relation,.number = f->number,.id = f->id};
}

/* An unpublished side without memory. */
static GjSide *
describe(const Made *made)
{
	GjSide	   *side = calloc(1, sizeof(GjSide));

	side->fragments = calloc(1, sizeof(GjSideFragment));
	side->nfragments = 1;
	side->fragments[0] = made->fragment;
	side->key = malloc(sizeof(made->key));
	side->nkey = sizeof(made->key);
	memcpy(side->key, &made->key, sizeof(made->key));
	side->program = made->program;
	side->source = 1;
	side->nread = made->nread;
	return side;
}

/* Publishes a side, which stays pinned; NULL: it was not kept. */
static GjSide *
keep_side(Store *s, const Made *made)
{
	GjSide	   *side = describe(made);
	GjBuffer	buffer = {NULL, made->nbytes};

	side->columns = calloc(1, sizeof(GjRelationColumn));
	side->ncolumns = 1;
	CHECK(gj_lease_take(&s->lease, made->nbytes) &&
		  s->work.ops->memory->alloc(s->work.queue, made->nbytes, &buffer.memory) == GJ_OK);
	side->columns[0].data = buffer;
	if (gj_side_publish(s->store, &s->work, gj_resident_clock(s->store), side))
		return side;
	s->work.ops->memory->free(s->work.queue, buffer.memory, buffer.nbytes);
	gj_lease_give(&s->lease, made->nbytes);
	gj_side_discard(side);
	return NULL;
}

static bool
keep_unused(Store *s, const Made *made)
{
	GjSide	   *side = keep_side(s, made);

	if (side)
		gj_side_unpin(s->store, side);
	return side != NULL;
}

/* True if there is such a side; `use`: it is used then. */
static bool
has_side(Store *s, const Made *made, bool use)
{
	GjSide	   *like = describe(made);
	GjSide	   *side = gj_side_find(s->store, like);

	if (side && use)
	{
		gj_resident_clock(s->store);
		gj_side_use(s->store, side, like);
	}
	if (side)
		gj_side_unpin(s->store, side);
	gj_side_discard(like);
	return side != NULL;
}

/* What gj_resident_list says of a file. */
static GjCached
listed(Store *s, uint32_t filenode)
{
	GjCached	found = {.nfragments = 0};
	GjCached   *list;
	uint32_t	n = gj_resident_list(&s->entry, &list, NULL);

	for (uint32_t i = 0; i < n; i++)
		if (list[i].relation.filenode == filenode)
			found = list[i];
	free(list);
	return found;
}

/* Counts follow what comes and goes: sides, copies with other columns, uses, changed pages. */
void
test_resident_counts(void)
{
	uint64_t	valid[GJ_FRAGMENT_WORDS] = {0x7};
	const GjUse use = {.map_lsn = 78,.pages = valid};
	GjFragment *all;
	GjFragment *some;
	GjSide	   *side;
	GjCached	c;
	Made		made;
	Store		s;

	REQUIRE(open_store(&s, 64 * MB, 32 * MB) && (all = load_fragment(&s, 0)));
	s.wanted.ncolumns = 1;
	REQUIRE((some = load_fragment(&s, 0)) && load_unused(&s, 1));
	c = listed(&s, 3);
	CHECK_EQUAL(c.nfragments, 3);
	CHECK_EQUAL(c.npages, 2 * (NPAGES - 1));
	CHECK_EQUAL(c.attributes[0], 6);
	CHECK_EQUAL(c.nbytes, s.entry.memory.resident);
	/* the copy that was made last counts, and it has three pages left */
	gj_resident_used(s.store, (GjPinned[]) {{.fragment = some}}, &use, 1);
	CHECK_EQUAL(listed(&s, 3).npages, 3 + NPAGES - 1);
	gj_resident_used(s.store, (GjPinned[]) {{.fragment = all}}, &use, 1);
	CHECK_EQUAL(listed(&s, 3).npages, 3 + NPAGES - 1);
	CHECK_EQUAL(listed(&s, 3).hits, 2);

	made = (Made) {1, 7, MB, 100, part(all)};
	REQUIRE((side = keep_side(&s, &made)));
	CHECK(has_side(&s, &made, true) && has_side(&s, &made, true));
	CHECK_EQUAL(gj_sides_of(&s.entry.memory, 7), 0);
	gj_lease_end(&s.lease);
	CHECK_EQUAL(gj_sides_of(&s.entry.memory, 7), 2);
	CHECK(!has_side(&s, &(Made) {2, 7, MB, 100, part(all)}, false));
	CHECK(!has_side(&s, &(Made) {1, 7, MB, 100, part(some)}, false));
	c = listed(&s, 3);
	CHECK_EQUAL(c.ntables, 1);
	CHECK_EQUAL(c.table_hits, 2);
	CHECK_EQUAL(c.nbytes, s.entry.memory.resident);

	/* with its fragment goes the side; who has a pin does not see it */
	gj_resident_unpin(s.store, (GjPinned[]) {{.fragment = all}, {.fragment = some}}, 2);
	s.wanted.ncolumns = 2;
	REQUIRE(load_unused(&s, 0));
	CHECK(!side->published && !has_side(&s, &made, false));
	c = listed(&s, 3);
	CHECK_EQUAL(c.nfragments, 2);
	CHECK_EQUAL(c.npages, 2 * (NPAGES - 1));
	CHECK_EQUAL(c.hits, 0);
	CHECK_EQUAL(c.ntables, 0);
	CHECK_EQUAL(c.table_hits, 0);
	CHECK_EQUAL(c.nbytes, s.entry.memory.resident - side->nbytes);
	gj_side_unpin(s.store, side);
	CHECK(gj_resident_evict(&s.entry, 1, 4) == c.nbytes);
	CHECK_EQUAL(listed(&s, 3).nbytes, 0);
	close_store(&s);
}

/* The side goes that saves least: it is quick to make, large, unused, or was used long ago. */
void
test_resident_worth(void)
{
	GjFragment *f;
	Store		s;

	REQUIRE(open_store(&s, 64 * MB, 32 * MB) && (f = load_fragment(&s, 0)));
	gj_resident_unpin_one(s.store, f);
	{
		/* there is room for three of a MB */
		const Made	quick = {1, 1, MB, 1000, part(f)},
					slow = {2, 2, MB, 1000000, part(f)},
					used = {3, 3, MB, 1000, part(f)},
					next = {4, 4, MB, 1000, part(f)},
					large = {5, 5, 2 * MB, 1000, part(f)};

		REQUIRE(gj_resident_store(&s.entry, 3 * MB + f->nbytes));
		REQUIRE(keep_unused(&s, &slow) && keep_unused(&s, &used) && keep_unused(&s, &quick));
		CHECK(has_side(&s, &used, true) && has_side(&s, &used, true));
		REQUIRE(keep_unused(&s, &next));
		CHECK(has_side(&s, &slow, false) && has_side(&s, &used, false) && has_side(&s, &next, false));
		CHECK(!has_side(&s, &quick, false));
		/* two have to go: the slow one stays though it is the oldest */
		REQUIRE(keep_unused(&s, &large));
		CHECK(has_side(&s, &slow, false) && has_side(&s, &large, false));
		CHECK(!has_side(&s, &used, false) && !has_side(&s, &next, false));
		/* it does not stay for ever */
		for (uint32_t i = 0; i < 5000 && has_side(&s, &slow, false); i++)
			REQUIRE(keep_unused(&s, &(Made) {10 + i, 1, MB, 1000, part(f)}));
		CHECK(!has_side(&s, &slow, false));
		CHECK(is_resident(&s, 0));
	}
	close_store(&s);
}

/* Ever new sides of one file take the places of each other, and not of those that are used. */
void
test_resident_many_sides(void)
{
	GjFragment *f;
	Store		s;
	Made		made = {0, 0, 1024, 100};
	Made		used = made;
	uint32_t	nfound = 0;

	REQUIRE(open_store(&s, 64 * MB, 32 * MB) && (f = load_fragment(&s, 0)));
	gj_resident_unpin_one(s.store, f);
	made.fragment = used.fragment = part(f);
	used.key = 1000000;
	REQUIRE(keep_unused(&s, &used));
	for (made.key = 0; made.key < 1000; made.key++)
	{
		EXPECT(keep_unused(&s, &made));
		if (made.key % 10 == 0)
			EXPECT(has_side(&s, &used, true));
	}
	CHECK(has_side(&s, &used, false));
	CHECK_EQUAL(listed(&s, 3).ntables, 64);
	CHECK_EQUAL(listed(&s, 3).table_hits, 100);
	for (made.key = 0; made.key < 1000; made.key++)
		nfound += has_side(&s, &made, false);
	CHECK_EQUAL(nfound, 63);
	made.key = 999;
	CHECK(has_side(&s, &made, false));
	close_store(&s);
}

/*
 * Microseconds that what a new session asks takes, with sides of so many files, 10 each, and those
 * of a list.  The clock has whole microseconds, so each is timed many times in one.
 */
static double
time_of_look_up(uint32_t nfiles, double *list_us)
{
	const uint32_t number = 0;
	const uint64_t lsn = 77;
	double		best = 1e9,
				best_list = 1e9;
	GjFragment *f = NULL;
	Store		s;

	*list_us = best_list;
	if (!CHECK(open_store(&s, 1024 * MB, 1024 * MB)))
		return best;
	for (uint32_t i = 0; i < nfiles; i++)
	{
		s.wanted.relation.filenode = 1000 + i;
		f = load_fragment(&s, 0);
		if (!CHECK(f != NULL))
			return best;
		gj_resident_unpin_one(s.store, f);
		for (uint32_t k = 0; k < 10; k++)
			EXPECT(keep_unused(&s, &(Made) {i * 10 + k, i * 10 + k, 64, 100, part(f)}));
	}
	gj_lease_end(&s.lease);
	for (uint32_t round = 0; round < 20; round++)
	{
		double		start = gj_now_us();
		GjCached   *list;

		for (uint32_t k = 0; k < 1000; k++)
		{
			const Made	made = {k % (nfiles * 10), 0, 64, 100, part(f)};
			uint16_t	places[GJ_MAX_COLUMNS] = {0};
			GjFound		found;

			EXPECT(gj_sides_of(&s.entry.memory, made.key) == 2);
			EXPECT(has_side(&s, &made, false) == (made.key / 10 == nfiles - 1));
			gj_resident_find(s.store, &s.wanted, places, &number, 1, &lsn, 1, &found);
			EXPECT(found.fragment == f);
			gj_resident_unpin_one(s.store, found.fragment);
		}
		if (gj_now_us() - start < best)
			best = gj_now_us() - start;
		start = gj_now_us();
		for (uint32_t k = 0; k < 100; k++)
		{
			EXPECT(gj_resident_list(&s.entry, &list, NULL) == nfiles);
			free(list);
		}
		if (gj_now_us() - start < best_list)
			best_list = gj_now_us() - start;
	}
	close_store(&s);
	*list_us = best_list / 100;
	return best / 1000;
}

/* With 100 times as many sides and files a look-up takes as long; a list takes as long as it is. */
void
test_resident_scales(void)
{
	double		few_list;
	double		many_list;
	double		few = time_of_look_up(5, &few_list);
	double		many = time_of_look_up(500, &many_list);

	printf("a look-up: %.2f us with 50 sides of 5 files, %.2f us with 5000 of 500\n"
		   "the list: %.1f us of 5 files, %.1f us of 500\n", few, many, few_list, many_list);
	CHECK(many < 8 * few + 2);
	CHECK(many_list < 300 * few_list + 50);
}

/* ---- another process on the device */

/* Memory of a device that a store and another process share, the latter with `taken` bytes. */
static struct
{
	uint64_t	total;
	uint64_t	taken;
	uint64_t	own;
	uint32_t	ndenied;
} shared;

static GjMemoryOps shared_memory;
static GjDeviceOps shared_ops;

static GjStatus
shared_alloc(GjQueue *queue, size_t nbytes, void **memory)
{
	GjStatus	status;

	if (shared.taken + shared.own + nbytes > shared.total)
	{
		shared.ndenied++;
		return GJ_OUT_OF_MEMORY;
	}
	status = gj_cpu_device.memory->alloc(queue, nbytes, memory);
	if (status == GJ_OK)
		shared.own += nbytes;
	return status;
}

static void
shared_free(GjQueue *queue, void *memory, size_t nbytes)
{
	if (memory)
		shared.own -= nbytes;
	gj_cpu_device.memory->free(queue, memory, nbytes);
}

static uint64_t
shared_room(void *arg)
{
	return shared.total - shared.taken;
}

static bool
open_shared(Store *s, uint64_t total)
{
	memset(&shared, 0, sizeof(shared));
	shared.total = total;
	if (!open_store(s, gj_memory_leasable(total), UINT64_MAX))
		return false;
	shared_memory = *s->entry.ops->memory;
	shared_memory.alloc = shared_alloc;
	shared_memory.free = shared_free;
	shared_ops = *s->entry.ops;
	shared_ops.memory = &shared_memory;
	s->entry.ops = s->work.ops = &shared_ops;
	s->entry.memory.room = (GjRoom) {shared_room, NULL};
	return true;
}

/* Fills the cache with fragments that nobody uses; returns how many are there then. */
static uint32_t
fill_cache(Store *s)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < 400; i++)
		if (!load_unused(s, i))
			break;
	for (uint32_t i = 0; i < 400; i++)
		n += is_resident(s, i);
	return n;
}

/* The limit follows what the other process takes and gives back, and resident data goes. */
void
test_resident_neighbour(void)
{
	Store		s;
	GjBuffer	buffer = {NULL, 0};
	uint32_t	alone;

	REQUIRE(open_shared(&s, 4 * MB));
	alone = fill_cache(&s);
	CHECK(alone > 20 && s.entry.memory.resident > 2 * MB);
	CHECK_EQUAL(gj_memory_look(&s.entry.memory, true), gj_memory_leasable(4 * MB));
	CHECK(!gj_memory_shrink(&s.entry.memory));

	/* it takes all that is free: what was found a moment ago counts for a while */
	shared.taken = 4 * MB - shared.own;
	CHECK_EQUAL(gj_memory_look(&s.entry.memory, false), gj_memory_leasable(4 * MB));
	CHECK_EQUAL(gj_memory_look(&s.entry.memory, true), gj_memory_leasable(shared.own));
	CHECK(gj_memory_shrink(&s.entry.memory));
	CHECK(s.entry.memory.resident > 0);
	CHECK(s.entry.memory.resident <= gj_memory_leasable(4 * MB - shared.taken));
	CHECK(!gj_memory_shrink(&s.entry.memory));

	/* nothing is left: leases end, and no number of bytes wraps around */
	REQUIRE(gj_buffer_reserve(&s.work, &buffer, MB / 2) == GJ_OK);
	shared.taken = 4 * MB - s.lease.used;
	CHECK_EQUAL(gj_memory_look(&s.entry.memory, true), gj_memory_leasable(s.lease.used));
	(void) gj_memory_shrink(&s.entry.memory);
	CHECK_EQUAL(s.entry.memory.resident, 0);
	CHECK(s.entry.memory.leased > s.entry.memory.limit);
	CHECK(!gj_lease_take(&s.lease, 1));
	CHECK_EQUAL(gj_lease_left(&s.lease), 0);
	CHECK(!load_unused(&s, 0));
	CHECK_EQUAL(gj_lease_start(&(GjLease) {NULL}, &s.entry.memory, MB, &unlimited, NULL, NULL),
				GJ_OUT_OF_MEMORY);
	gj_buffer_free(&s.work, &buffer);

	/* it ends: all is as before */
	shared.taken = 0;
	CHECK_EQUAL(gj_memory_look(&s.entry.memory, true), gj_memory_leasable(4 * MB));
	gj_lease_end(&s.lease);
	REQUIRE(gj_lease_start(&s.lease, &s.entry.memory, 0, &unlimited, NULL, NULL) == GJ_OK);
	CHECK_EQUAL(fill_cache(&s), alone);
	close_store(&s);
}

/* The account allows it, the device has no memory: resident data makes room, then it fails. */
void
test_resident_denied(void)
{
	Store		s;
	GjBuffer	buffer = {NULL, 0};
	uint64_t	resident;

	REQUIRE(open_shared(&s, 4 * MB));
	REQUIRE(fill_cache(&s) > 20);
	resident = s.entry.memory.resident;
	(void) gj_memory_look(&s.entry.memory, true);
	shared.taken = 4 * MB - shared.own;
	REQUIRE(gj_buffer_reserve(&s.work, &buffer, MB / 4) == GJ_OK);
	CHECK(shared.ndenied > 0);
	CHECK(s.entry.memory.resident < resident && s.entry.memory.resident > 0);
	CHECK(shared.own + shared.taken <= shared.total);
	gj_buffer_free(&s.work, &buffer);

	/* a fragment takes the place of older ones */
	shared.taken = 0;
	(void) gj_memory_look(&s.entry.memory, true);
	shared.taken = 4 * MB - shared.own;
	shared.ndenied = 0;
	CHECK(load_unused(&s, 999));
	CHECK(shared.ndenied > 0);
	CHECK(is_resident(&s, 999));
	CHECK(shared.own + shared.taken <= shared.total);

	/* with all resident data gone there is no room still */
	CHECK_EQUAL(gj_buffer_reserve(&s.work, &buffer, 3 * MB), GJ_OUT_OF_MEMORY);
	CHECK(!buffer.memory);
	CHECK_EQUAL(s.lease.used, 0);
	close_store(&s);
}
