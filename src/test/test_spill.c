/*
 * test_spill.c
 *	  The spill store: rows come back as they were, from memory and from files, within limits.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/spill.h"
#include "unit.h"

#define NCOLUMNS	4
#define CAPACITY	1000
#define NO_LIMIT	UINT64_MAX

static GjTempAccount temp_account;

/* A chunk of a table with ids, wide values, texts and a column without NULLs. */
static const GjColumnType types[NCOLUMNS] = {
	{GJ_INT4, 4, 0, 0}, {GJ_BYTES, 16, 1, 0}, {GJ_REF, 8, 1, 0}, {GJ_INT2, 2, 0, 0}
};

typedef struct Table
{
	GjColumnPlace places[NCOLUMNS];
	GjLayout	layout;
	uint8_t    *slot;
	GjChunk		chunk;
	GjSpill		spill;
	GjSpillWriter writer;
	GjSpillList list;
} Table;

static bool
is_null(uint32_t id)
{
	return id % 5 == 2;
}

/* The text of a row: as long as its id says, also longer than a word, or none. */
static uint32_t
text_of(uint32_t id, char *text)
{
	return (uint32_t) sprintf(text, "%.*s%u", (int) (id % 20), "abcdefghijklmnopqrstuvwxyz", id);
}

/* Puts nrows rows into the slot, with ids from `first` on. */
static void
fill_slot(Table *t, uint32_t first, uint32_t nrows)
{
	uint8_t    *heap = t->slot + t->layout.heap;
	uint32_t	used = 0;
	char		text[64];

	for (uint32_t i = 0; i < nrows; i++)
	{
		uint32_t	id = first + i;
		uint32_t	length = text_of(id, text);

		((int32_t *) (t->slot + t->places[0].data))[i] = (int32_t) id;
		memset(t->slot + t->places[1].data + 16 * i, (int) (id % 251), 16);
		t->slot[t->places[1].nulls + i] = is_null(id);
		t->slot[t->places[2].nulls + i] = is_null(id + 1);
		((uint64_t *) (t->slot + t->places[2].data))[i] = gj_ref_make(used, length);
		memcpy(heap + used, text, length);
		used += (length + 7) & ~7u;
		((int16_t *) (t->slot + t->places[3].data))[i] = (int16_t) (id * 3);
	}
	memcpy(gj_slot_has_nulls(t->slot), "\0\1\1\0", NCOLUMNS);
	*(GjSlotHeader *) t->slot = (GjSlotHeader) {nrows, used};
	t->chunk = (GjChunk) {t->slot, nrows, used, &t->layout, t->places, gj_slot_has_nulls(t->slot)};
}

static bool
open_table(Table *t, uint64_t memory_limit, uint64_t temp_limit, const char *directory)
{
	memset(t, 0, sizeof(*t));
	t->slot = calloc(1, GJ_LOAD_SLOT_SIZE);
	gj_spill_open(&t->spill, memory_limit, &(GjTempFiles) {&temp_account, temp_limit, directory});
	gj_spill_writer_open(&t->writer, &t->spill);
	return CHECK(t->slot != NULL) &&
		CHECK(gj_layout(types, NCOLUMNS, CAPACITY, GJ_LOAD_CHUNK_SIZE, &t->layout, t->places));
}

static void
close_table(Table *t)
{
	gj_spill_free_list(&t->spill, &t->list);
	CHECK_EQUAL(t->spill.memory_used, 0);
	gj_spill_writer_close(&t->writer);
	gj_spill_close(&t->spill);
	free(t->slot);
}

static GjStatus
add_rows(Table *t, uint32_t first, uint32_t nrows)
{
	fill_slot(t, first, nrows);
	return gj_spill_add(&t->writer, &t->list, &t->chunk, types, NULL, 0, nrows);
}

/* Checks a row of a slot or a view against its id. */
static bool
is_right(const uint8_t *const *data, const uint8_t *const *nulls, const uint8_t *heap, uint32_t row)
{
	uint32_t	id = ((const uint32_t *) data[0])[row];
	uint64_t	ref = ((const uint64_t *) data[2])[row];
	uint8_t		wide[16];
	char		text[64];
	uint32_t	length = text_of(id, text);

	memset(wide, (int) (id % 251), 16);
	return !(nulls[0] && nulls[0][row]) && !(nulls[3] && nulls[3][row]) &&
		(nulls[1] && nulls[1][row]) == is_null(id) && memcmp(data[1] + 16 * row, wide, 16) == 0 &&
		(nulls[2] && nulls[2][row]) == is_null(id + 1) && gj_ref_length(ref) == length &&
		memcmp(heap + gj_ref_offset(ref), text, length) == 0 &&
		((const int16_t *) data[3])[row] == (int16_t) (id * 3);
}

/* Reads all records of the list where they lie; the sum of their ids, or 0 if one is wrong. */
static uint64_t
read_list(const GjSpillList *list)
{
	uint8_t    *buffer = NULL;
	uint64_t	nbytes = 0;
	uint64_t	sum = 0;
	bool		right = true;

	for (uint32_t i = 0; i < list->n && right; i++)
	{
		const uint8_t *data[NCOLUMNS],
				   *nulls[NCOLUMNS];
		GjSpillView view = {data, nulls, NULL};

		right = gj_spill_view(&list->records[i], types, NCOLUMNS, &buffer, &nbytes, &view) == GJ_OK;
		for (uint32_t row = 0; row < list->records[i].nrows && right; row++)
		{
			right = is_right(data, nulls, view.heap, row);
			sum += ((const uint32_t *) data[0])[row];
		}
	}
	free(buffer);
	return right ? sum : 0;
}

/* The same through slots that are filled with records. */
static uint64_t
read_slots(const Table *t)
{
	uint8_t    *memory = calloc(1, GJ_LOAD_SLOT_SIZE);
	uint64_t	sum = 0;

	for (uint32_t at = 0, n; at < t->list.n; at += n)
	{
		GjSpillSlot slot = {.memory = memory,.types = types,.places = t->places,.layout = &t->layout};
		const GjSlotHeader *header = (const GjSlotHeader *) memory;
		const uint8_t *data[NCOLUMNS],
				   *nulls[NCOLUMNS];

		if (!CHECK(gj_spill_fill(t->list.records + at, t->list.n - at, &slot, &n) == GJ_OK) ||
			!CHECK(n > 0 && header->nrows <= CAPACITY && header->nrows == slot.nrows))
			break;
		for (int c = 0; c < NCOLUMNS; c++)
		{
			data[c] = memory + t->places[c].data;
			nulls[c] = gj_slot_has_nulls(memory)[c] ? memory + t->places[c].nulls : NULL;
		}
		for (uint32_t row = 0; row < header->nrows; row++)
		{
			if (!is_right(data, nulls, memory + t->layout.heap, row))
				sum = 0;
			sum += ((const uint32_t *) data[0])[row];
		}
	}
	free(memory);
	return sum;
}

/* Adds rows in records of several sizes; they come back. */
static void
add_and_read(uint64_t memory_limit)
{
	Table		t;
	uint64_t	sum = 0;
	uint32_t	id = 1;

	REQUIRE(open_table(&t, memory_limit, NO_LIMIT, unit_directory()));
	for (uint32_t n = 1; n <= CAPACITY; n = n * 3 + 1)
	{
		REQUIRE(add_rows(&t, id, n) == GJ_OK);
		for (uint32_t i = 0; i < n; i++)
			sum += id++;
	}
	CHECK_EQUAL(t.list.nrows, id - 1);
	CHECK_EQUAL(read_list(&t.list), sum);
	CHECK_EQUAL(read_slots(&t), sum);
	CHECK(t.spill.memory_used <= memory_limit);
	CHECK((t.spill.file_used > 0) == (memory_limit < NO_LIMIT));
	close_table(&t);
}

void
test_spill_in_memory(void)
{
	add_and_read(NO_LIMIT);
}

/* Nothing, or a part of it, is kept in memory. */
void
test_spill_in_files(void)
{
	add_and_read(0);
	add_and_read(5000);
}

/* A record has the rows that were asked for, in their order; several are made at once. */
void
test_spill_positions(void)
{
	uint32_t	positions[CAPACITY];
	GjSpillRecord records[3] = {{.nrows = 10}, {.nrows = 200}, {.nrows = 124}};
	Table		t;

	REQUIRE(open_table(&t, 9000, NO_LIMIT, unit_directory()));
	fill_slot(&t, 0, CAPACITY);
	for (uint32_t i = 0; i < CAPACITY; i++)
		positions[i] = i * 3 % CAPACITY;
	REQUIRE(gj_spill_make(&t.writer, &t.chunk, types, positions, 0, records, 3) == GJ_OK);
	/* the last ones have no room in memory */
	CHECK(records[0].memory != NULL && records[2].memory == NULL);
	for (int i = 0; i < 3; i++)
		REQUIRE(gj_spill_append(&t.list, &records[i]) == GJ_OK);
	CHECK_EQUAL(t.list.nrows, 334);
	CHECK_EQUAL(read_list(&t.list), 3 * (333 * 334 / 2));
	/* of no rows there is no record */
	REQUIRE(gj_spill_add(&t.writer, &t.list, &t.chunk, types, NULL, 0, 0) == GJ_OK);
	CHECK_EQUAL(t.list.n, 3);
	close_table(&t);
}

/* Memory and files have limits of their own; what is dropped can be used again. */
void
test_spill_limits(void)
{
	Table		t;
	uint64_t	of_record;
	uint64_t	limit;
	GjStatus	status = GJ_OK;

	REQUIRE(open_table(&t, NO_LIMIT, NO_LIMIT, unit_directory()));
	REQUIRE(add_rows(&t, 0, 500) == GJ_OK);
	of_record = t.spill.memory_used;
	close_table(&t);

	limit = of_record * 5 / 2;
	REQUIRE(open_table(&t, limit, limit, unit_directory()));
	for (int i = 0; i < 4 && status == GJ_OK; i++)
	{
		status = add_rows(&t, 0, 500);
		CHECK_EQUAL(status, GJ_OK);
	}
	CHECK_EQUAL(t.spill.memory_used, of_record * 2);
	CHECK_EQUAL(t.spill.file_used, of_record * 2);
	CHECK_EQUAL(add_rows(&t, 0, 500), GJ_OUT_OF_HOST_MEMORY);
	CHECK_TEXT(t.spill.error.text, "gpujoin.spill_memory and temp_file_limit do not suffice");
	CHECK_EQUAL(t.list.n, 4);
	CHECK_EQUAL(t.spill.memory_used, of_record * 2);
	gj_spill_drop(&t.spill, &t.list.records[0]);
	CHECK_EQUAL(t.spill.memory_used, of_record);
	CHECK_EQUAL(add_rows(&t, 0, 500), GJ_OK);
	CHECK_EQUAL(t.spill.memory_peak, of_record * 2);
	close_table(&t);
}

/* The files of all runs of a process have one limit; each gives back what it had. */
void
test_spill_account(void)
{
	const uint64_t of_others = temp_account.used;
	uint64_t	of_record;
	Table		a,
				b;
	GjTempAccount *mine = gj_temp_account_get(1);
	GjTempAccount *yours = gj_temp_account_get(2);

	CHECK_EQUAL(of_others, 0);
	REQUIRE(open_table(&a, 0, NO_LIMIT, unit_directory()));
	CHECK_EQUAL(add_rows(&a, 0, 500), GJ_OK);
	of_record = a.spill.file_used;
	REQUIRE(open_table(&b, 0, of_record * 5 / 2, unit_directory()));
	CHECK_EQUAL(add_rows(&b, 0, 500), GJ_OK);
	CHECK_EQUAL(add_rows(&b, 0, 500), GJ_OUT_OF_HOST_MEMORY);
	CHECK_TEXT(b.spill.error.text, "temp_file_limit do not suffice");
	CHECK_EQUAL(temp_account.used, of_record * 2);
	close_table(&a);
	CHECK_EQUAL(temp_account.used, of_record);
	CHECK_EQUAL(add_rows(&b, 0, 500), GJ_OK);
	close_table(&b);
	CHECK_EQUAL(temp_account.used, 0);

	/* each process has one, as long as it has runs */
	REQUIRE(mine && yours && mine != yours);
	CHECK(gj_temp_account_get(1) == mine);
	mine->used = 100;
	gj_temp_account_put(mine);
	CHECK(gj_temp_account_get(1) == mine && mine->used == 100);
	gj_temp_account_put(mine);
	gj_temp_account_put(mine);
	gj_temp_account_put(yours);
	mine = gj_temp_account_get(1);
	CHECK(mine && mine->used == 0);
	gj_temp_account_put(mine);
}

/* Files go to PostgreSQL's directories; only the last one is made; it is no symbolic link. */
void
test_spill_directory(void)
{
	static const char *const known[] = {
		"", "base/pgsql_tmp", "pg_tblspc/16384/PG_15_202209061/pgsql_tmp",
		"pg_tblspc/1/PG_18_1/pgsql_tmp"
	};
	static const char *const unknown[] = {
		"base", "base/pgsql_tmp/", "base/pgsql_tmp/x", "base/16384", "/base/pgsql_tmp",
		"./base/pgsql_tmp",
		"base/../base/pgsql_tmp", "/tmp", "pgsql_tmp", "global/pgsql_tmp", "pg_tblspc/pgsql_tmp",
		"pg_tblspc/16384/pgsql_tmp", "pg_tblspc/16384/../pgsql_tmp", "pg_tblspc//PG_15_1/pgsql_tmp",
		"pg_tblspc/../PG_15_1/pgsql_tmp", "pg_tblspc/1/PG_/pgsql_tmp", "pg_tblspc/1/PG_15_1/x",
		"pg_tblspc/1/PG_15_1/pgsql_tmp/..", "pg_tblspc/1/PG_15.1/pgsql_tmp", "pg_tblspc/1"
	};
	char		directory[256],
				link[256];
	struct stat st;
	int			fd;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		unit_check(gj_temp_directory_known(known[i]), __FILE__, __LINE__, "\"%s\" is known",
				   known[i]);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		unit_check(!gj_temp_directory_known(unknown[i]), __FILE__, __LINE__, "\"%s\" is not",
				   unknown[i]);

	snprintf(directory, sizeof(directory), "%s/pgsql_tmp", unit_directory());
	snprintf(link, sizeof(link), "%s/link", unit_directory());
	fd = gj_temp_file_open(directory);
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0 && (st.st_mode & 0777) == 0600);
	close(fd);
	CHECK(stat(directory, &st) == 0 && (st.st_mode & 0777) == 0700);
	REQUIRE(symlink(directory, link) == 0);
	CHECK(gj_temp_file_open(link) == -1);
	unlink(link);
	/* nothing is left in it */
	CHECK(rmdir(directory) == 0);
	CHECK(gj_temp_file_open(link) >= 0 && rmdir(link) == 0);
	snprintf(directory, sizeof(directory), "%s/no/pgsql_tmp", unit_directory());
	CHECK(gj_temp_file_open(directory) == -1);
}

/* Errors have texts, the first one stays, and nothing is kept of what failed. */
void
test_spill_errors(void)
{
	char		nowhere[256];
	Table		t;
	uint64_t   *refs;

	REQUIRE(open_table(&t, NO_LIMIT, NO_LIMIT, unit_directory()));
	fill_slot(&t, 0, 100);
	refs = (uint64_t *) (t.slot + t.places[2].data);
	refs[50] = gj_ref_make(1 << 20, 8);
	CHECK_EQUAL(gj_spill_add(&t.writer, &t.list, &t.chunk, types, NULL, 0, 100), GJ_BAD_PROGRAM);
	CHECK_TEXT(t.spill.error.text, "bad reference");
	refs[50] = gj_ref_make(0, 1 << 20);
	CHECK_EQUAL(gj_spill_add(&t.writer, &t.list, &t.chunk, types, NULL, 0, 100), GJ_BAD_PROGRAM);
	CHECK_TEXT(t.spill.error.text, "bad reference");
	CHECK_EQUAL(t.list.n, 0);
	CHECK_EQUAL(t.spill.memory_used, 0);
	close_table(&t);

	REQUIRE(open_table(&t, NO_LIMIT, NO_LIMIT, unit_directory()));
	fill_slot(&t, 0, 100);
	((uint64_t *) (t.slot + t.places[2].data))[50] = gj_ref_make(0, 1 << 20);
	CHECK_EQUAL(gj_spill_add(&t.writer, &t.list, &t.chunk, types, NULL, 0, 100), GJ_BAD_PROGRAM);
	CHECK_TEXT(t.spill.error.text, "damaged heap");
	close_table(&t);

	REQUIRE(open_table(&t, 0, NO_LIMIT, ""));
	CHECK_EQUAL(add_rows(&t, 0, 10), GJ_OUT_OF_HOST_MEMORY);
	CHECK_TEXT(t.spill.error.text, "no directory for temporary files");
	close_table(&t);

	snprintf(nowhere, sizeof(nowhere), "%s/no/where", unit_directory());
	REQUIRE(open_table(&t, 0, NO_LIMIT, nowhere));
	CHECK_EQUAL(add_rows(&t, 0, 10), GJ_OUT_OF_HOST_MEMORY);
	CHECK_TEXT(t.spill.error.text, "could not create a temporary file: ");
	close_table(&t);
}

/* What a process whose files can have 64 kB finds; 0: as it should be. */
static int
write_until_full(void)
{
	const struct rlimit small = {65536, 65536};
	uint64_t	sum = 0;
	GjStatus	status = GJ_OK;
	uint32_t	id = 0;
	Table		t;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) != 0 || !open_table(&t, 0, NO_LIMIT, unit_directory()))
		return 1;
	for (int i = 0; i < 100 && (status = add_rows(&t, id, 100)) == GJ_OK; i++)
		for (uint32_t n = 0; n < 100; n++)
			sum += id++;
	if (status != GJ_OUT_OF_HOST_MEMORY ||
		!strstr(t.spill.error.text, "could not write to a temporary file: "))
		return 2;
	/* what was written before can be read */
	if (t.list.n == 0 || read_list(&t.list) != sum)
		return 3;
	return 0;
}

/* A disk without room, as a limit of the process. */
void
test_spill_full_disk(void)
{
	pid_t		child;
	int			status = -1;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(write_until_full());
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

/* Lists become one, in the order in which records lie. */
void
test_spill_join(void)
{
	GjSpillList lists[3];
	GjSpillList all;
	Table		t;
	uint64_t	last = 0;

	memset(lists, 0, sizeof(lists));
	REQUIRE(open_table(&t, 0, NO_LIMIT, unit_directory()));
	for (uint32_t i = 0; i < 30; i++)
	{
		fill_slot(&t, i * 10, 10);
		REQUIRE(gj_spill_add(&t.writer, &lists[i * 7 % 3], &t.chunk, types, NULL, 0, 10) == GJ_OK);
	}
	REQUIRE(gj_spill_join(lists, 3, &t.list) == GJ_OK);
	CHECK_EQUAL(t.list.n, 30);
	CHECK_EQUAL(t.list.nrows, 300);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(lists[i].n, 0);
	for (uint32_t i = 0; i < t.list.n; i++)
	{
		CHECK(i == 0 || t.list.records[i].offset > last);
		last = t.list.records[i].offset;
	}
	CHECK_EQUAL(read_list(&t.list), 299 * 300 / 2);
	CHECK(gj_spill_count(t.list.records, t.list.n, &t.layout) == 30);
	/* of nothing there is nothing */
	REQUIRE(gj_spill_join(lists, 3, &all) == GJ_OK);
	CHECK_EQUAL(all.n, 0);
	close_table(&t);
}

typedef struct Thread
{
	pthread_t	thread;
	GjSpill    *spill;
	GjSpillWriter writer;
	GjSpillList list;
	uint64_t	sum;
	bool		ok;
} Thread;

/* Makes records, and drops every third of them. */
static void *
write_rows(void *arg)
{
	Thread	   *me = arg;
	Table		t;

	memset(&t, 0, sizeof(t));
	t.slot = calloc(1, GJ_LOAD_SLOT_SIZE);
	me->ok = t.slot && gj_layout(types, NCOLUMNS, CAPACITY, GJ_LOAD_CHUNK_SIZE, &t.layout, t.places);
	for (uint32_t i = 0; i < 200 && me->ok; i++)
	{
		GjSpillRecord record = {.nrows = 20};

		fill_slot(&t, i * 20, 20);
		me->ok = gj_spill_make(&me->writer, &t.chunk, types, NULL, 0, &record, 1) == GJ_OK;
		if (me->ok && i % 3 == 0)
			gj_spill_drop(me->spill, &record);
		else if (me->ok)
		{
			me->ok = gj_spill_append(&me->list, &record) == GJ_OK;
			me->sum += (uint64_t) i * 20 * 20 + 190;
		}
	}
	free(t.slot);
	return NULL;
}

/* Threads with a writer each share memory and its limit. */
void
test_spill_threads(void)
{
	Thread		threads[4];
	GjSpill		spill;

	memset(threads, 0, sizeof(threads));
	gj_spill_open(&spill, 300000, &(GjTempFiles) {&temp_account, NO_LIMIT, unit_directory()});
	for (int i = 0; i < 4; i++)
	{
		threads[i].spill = &spill;
		gj_spill_writer_open(&threads[i].writer, &spill);
		REQUIRE(pthread_create(&threads[i].thread, NULL, write_rows, &threads[i]) == 0);
	}
	for (int i = 0; i < 4; i++)
	{
		pthread_join(threads[i].thread, NULL);
		CHECK(threads[i].ok);
	}
	CHECK(spill.memory_peak <= 300000 && spill.file_used > 0);
	for (int i = 0; i < 4; i++)
	{
		CHECK_EQUAL(read_list(&threads[i].list), threads[i].sum);
		gj_spill_free_list(&spill, &threads[i].list);
		gj_spill_writer_close(&threads[i].writer);
	}
	CHECK_EQUAL(spill.memory_used, 0);
	gj_spill_close(&spill);
}
