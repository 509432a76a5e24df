/*
 * test_merge.c
 *	  Sorted runs become one: in order, with all rows, in batches that fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sink/sink.h"
#include "unit.h"

#define NOUTPUTS	3			/* id, text, a value that can be NULL */
#define MOST_INPUTS	9

/* A row: its id says all but the keys. */
typedef struct Row
{
	int64_t		keys[2];
	uint32_t	id;
} Row;

/* A sorted run, and where its blocks lie. */
typedef struct Input
{
	const struct Merge *merge;
	Row		   *rows;
	uint32_t	nrows;
	uint32_t	at;
	uint32_t	block;			/* rows of a block */
	uint32_t	fails_at;		/* the row before which it fails */
	int32_t    *ids;
	uint64_t   *texts;
	int64_t    *values;
	uint8_t    *nulls;
	int64_t    *keys[2];
	char	   *heap;
	int64_t		end_keys[2];
} Input;

typedef struct Merge
{
	GjSortedLayout layout;
	GjColumnType types[NOUTPUTS + 2];
	GjColumnPlace places[NOUTPUTS + 2];
	Input		inputs[MOST_INPUTS];
	uint32_t	ninputs;
	uint8_t    *slot;
	Row		   *merged;
	uint64_t	nmerged;
	uint32_t	nbatches;
	uint32_t	largest;		/* rows of a batch */
	uint32_t	stop_at;		/* the batch at which the host wants to stop */
	bool		wrong;			/* a value is not what its id says */
} Merge;

/* ---- the rows */

static bool
is_null(uint32_t id)
{
	return id % 7 == 1;
}

static uint32_t
text_of(uint32_t id, char *text)
{
	return (uint32_t) sprintf(text, "row %.*s%u", (int) (id % 13), "..............", id);
}

static uint32_t descending;		/* for compare_rows */

static int
compare_keys(const Row *a, const Row *b)
{
	for (int k = 0; k < 2; k++)
		if (a->keys[k] != b->keys[k])
			return (a->keys[k] < b->keys[k]) == !(descending >> k & 1) ? -1 : 1;
	return 0;
}

static int
compare_rows(const void *a, const void *b)
{
	return compare_keys(a, b);
}

/* ---- inputs */

static GjStatus
next_block(void *arg, GjSortedBlock *block)
{
	Input	   *in = arg;
	uint32_t	n = in->nrows - in->at < in->block ? in->nrows - in->at : in->block;
	uint32_t	at = in->at;
	bool		nulls = false;

	if (at >= in->fails_at)
		return GJ_DEVICE_ERROR;
	block->nrows = n;
	block->heap = (const uint8_t *) in->heap;
	block->data[0] = (const uint8_t *) (in->ids + at);
	block->data[1] = (const uint8_t *) (in->texts + at);
	block->data[2] = (const uint8_t *) (in->values + at);
	for (int k = 0; k < 2; k++)
		block->data[NOUTPUTS + k] = (const uint8_t *) (in->keys[k] + at);
	for (uint32_t i = 0; i < n; i++)
		nulls |= in->nulls[at + i];
	block->nulls[2] = nulls ? in->nulls + at : NULL;
	in->at += n;
	return GJ_OK;
}

/* Makes a run of nrows rows with ids from *id on; `most` is how many values the keys have. */
static bool
make_input(Merge *m, uint32_t nrows, uint32_t most, uint32_t *id)
{
	Input	   *in = &m->inputs[m->ninputs++];
	uint32_t	used = 0;

	*in = (Input) {.merge = m,.nrows = nrows,.block = 1 + unit_random() % 100,.fails_at = UINT32_MAX};
	in->rows = calloc(nrows + 1, sizeof(Row));
	in->ids = calloc(nrows + 1, sizeof(int32_t));
	in->texts = calloc(nrows + 1, sizeof(uint64_t));
	in->values = calloc(nrows + 1, sizeof(int64_t));
	in->nulls = calloc(nrows + 1, 1);
	in->heap = calloc(nrows + 1, 40);
	in->keys[0] = calloc(nrows + 1, sizeof(int64_t));
	in->keys[1] = calloc(nrows + 1, sizeof(int64_t));
	if (!CHECK(in->rows && in->ids && in->texts && in->values && in->nulls && in->heap &&
			   in->keys[0] && in->keys[1]))
		return false;
	for (uint32_t i = 0; i < nrows; i++)
	{
		in->rows[i].id = (*id)++;
		/* also the least and the greatest, and keys that are all the same */
		in->rows[i].keys[0] = most == 1 ? 3 : unit_random() % 50 == 0 ? INT64_MAX :
			unit_random() % 50 == 0 ? INT64_MIN : (int64_t) (unit_random() % most) - most / 2;
		in->rows[i].keys[1] = (int64_t) (unit_random() % 10);
	}
	qsort(in->rows, nrows, sizeof(Row), compare_rows);
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint32_t	n = text_of(in->rows[i].id, in->heap + used);

		in->ids[i] = (int32_t) in->rows[i].id;
		in->texts[i] = gj_ref_make(used, n);
		in->values[i] = (int64_t) in->rows[i].id * 1000;
		in->nulls[i] = is_null(in->rows[i].id);
		used += (n + 7) & ~7u;
		for (int k = 0; k < 2; k++)
			in->keys[k][i] = in->end_keys[k] = in->rows[i].keys[k];
	}
	return true;
}

static void
free_merge(Merge *m)
{
	for (uint32_t i = 0; i < m->ninputs; i++)
	{
		Input	   *in = &m->inputs[i];

		free(in->rows);
		free(in->ids);
		free(in->texts);
		free(in->values);
		free(in->nulls);
		free(in->heap);
		free(in->keys[0]);
		free(in->keys[1]);
	}
	free(m->slot);
	free(m->merged);
}

/* ---- the host */

static bool
host_stop(void *arg)
{
	const Merge *m = arg;

	return m->nbatches >= m->stop_at;
}

static GjStatus
host_output_slot(void *arg, uint8_t **memory)
{
	*memory = ((Merge *) arg)->slot;
	return GJ_OK;
}

/* Takes the rows of a batch; the keys are found by id. */
static GjStatus
host_send_batch(void *arg, uint32_t nrows)
{
	Merge	   *m = arg;
	const GjSlotHeader *header = (const GjSlotHeader *) m->slot;
	const uint8_t *has_nulls = gj_slot_has_nulls(m->slot);

	m->wrong |= header->nrows != nrows || nrows == 0 || nrows > m->layout.batch.capacity ||
		header->heap_used > m->layout.batch.heap_size || has_nulls[0] || has_nulls[1];
	for (uint32_t i = 0; i < nrows && !m->wrong; i++)
	{
		uint32_t	id = ((const uint32_t *) (m->slot + m->places[0].data))[i];
		uint64_t	ref = ((const uint64_t *) (m->slot + m->places[1].data))[i];
		char		text[64];
		uint32_t	n = text_of(id, text);

		m->wrong |= gj_ref_length(ref) != n ||
			gj_ref_offset(ref) + n > header->heap_used ||
			memcmp(m->slot + m->layout.batch.heap + gj_ref_offset(ref), text, n) != 0 ||
			((const int64_t *) (m->slot + m->places[2].data))[i] != (int64_t) id * 1000 ||
			(has_nulls[2] && m->slot[m->places[2].nulls + i]) != is_null(id);
		m->merged[m->nmerged++].id = id;
	}
	m->nbatches++;
	if (nrows > m->largest)
		m->largest = nrows;
	return GJ_OK;
}

/* ---- merging */

/* A merge of batches of `capacity` rows, with a heap of heap_size bytes if that is not 0. */
static bool
open_merge(Merge *m, uint32_t capacity, uint32_t heap_size, uint32_t order)
{
	memset(m, 0, sizeof(*m));
	descending = order;
	m->stop_at = UINT32_MAX;
	m->types[0] = (GjColumnType) {GJ_INT4, 4, 1, 0};
	m->types[1] = (GjColumnType) {GJ_REF, 8, 1, 0};
	m->types[2] = (GjColumnType) {GJ_INT8, 8, 1, 0};
	m->layout = (GjSortedLayout) {.noutputs = NOUTPUTS,.nkeys = 2,.capacity = capacity,
	.descending = order,.types = m->types,.places = m->places};
	m->slot = calloc(1, GJ_OUTPUT_SLOT_SIZE);
	if (!CHECK(m->slot && gj_layout(m->types, NOUTPUTS, capacity, GJ_OUTPUT_SLOT_SIZE,
									&m->layout.batch, m->places)))
		return false;
	if (heap_size > 0)
		m->layout.batch.heap_size = heap_size;
	return true;
}

static GjStatus
merge(Merge *m, uint32_t nrows, uint64_t *n)
{
	const GjRunHost host = {.arg = m,.stop = host_stop};
	const GjFinalOps ops = {.slot = host_output_slot,.send = host_send_batch};
	const GjTarget target = {.form = GJ_FORM_FINAL,.arg = m,.final = &ops};
	GjSortedInput inputs[MOST_INPUTS];

	m->merged = calloc(nrows + 1, sizeof(Row));
	for (uint32_t i = 0; i < m->ninputs; i++)
		inputs[i] = (GjSortedInput) {next_block, &m->inputs[i], m->inputs[i].end_keys};
	return gj_sorted_merge(&m->layout, inputs, m->ninputs, &host, &target, n);
}

/* True if all rows came, once each, in their order. */
static bool
is_merged(Merge *m, uint32_t nrows)
{
	Row		   *by_id = calloc(nrows + 1, sizeof(Row));
	bool	   *seen = calloc(nrows + 1, 1);
	bool		right = by_id && seen && m->nmerged == nrows && !m->wrong;

	for (uint32_t i = 0; i < m->ninputs; i++)
		for (uint32_t j = 0; j < m->inputs[i].nrows; j++)
			by_id[m->inputs[i].rows[j].id] = m->inputs[i].rows[j];
	for (uint32_t i = 0; i < nrows && right; i++)
	{
		uint32_t	id = m->merged[i].id;

		right = id < nrows && !seen[id] &&
			(i == 0 || compare_keys(&by_id[m->merged[i - 1].id], &by_id[id]) <= 0);
		if (right)
			seen[id] = true;
	}
	free(by_id);
	free(seen);
	return right;
}

/* Merges so many runs of different lengths, some of them empty. */
static void
merge_runs(uint32_t ninputs, uint32_t most, uint32_t order)
{
	uint32_t	nrows = 0;
	uint64_t	n = 0;
	Merge		m;

	REQUIRE(open_merge(&m, 64, 0, order));
	for (uint32_t i = 0; i < ninputs; i++)
		REQUIRE(make_input(&m, i % 3 == 1 ? 0 : unit_random() % 500, most, &nrows));
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_OK);
	CHECK_EQUAL(n, nrows);
	CHECK(is_merged(&m, nrows));
	free_merge(&m);
}

/* Ascending and descending, with many and few ties. */
void
test_merge_order(void)
{
	for (uint32_t ninputs = 1; ninputs <= MOST_INPUTS; ninputs++)
		for (uint32_t order = 0; order < 4; order++)
		{
			merge_runs(ninputs, 100000, order);
			merge_runs(ninputs, 5, order);
			merge_runs(ninputs, 1, order);
		}
}

/* Texts, and NULLs that only some blocks have, stay with their rows in large batches, too. */
void
test_merge_contents(void)
{
	uint32_t	nrows = 0;
	uint64_t	n = 0;
	Merge		m;

	REQUIRE(open_merge(&m, 4096, 0, 0));
	for (uint32_t i = 0; i < 4; i++)
		REQUIRE(make_input(&m, 3000, 1000, &nrows));
	/* one row a block: most have no NULL */
	m.inputs[0].block = 1;
	m.inputs[1].block = 3000;
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_OK);
	CHECK(is_merged(&m, nrows));
	CHECK_EQUAL(m.nbatches, 3);
	CHECK_EQUAL(m.largest, 4096);
	free_merge(&m);
}

/* A batch ends when its rows or its heap are full. */
void
test_merge_batches(void)
{
	uint32_t	nrows = 0;
	uint64_t	n = 0;
	Merge		m;

	REQUIRE(open_merge(&m, 10, 0, 0));
	REQUIRE(make_input(&m, 95, 50, &nrows) && make_input(&m, 5, 50, &nrows));
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_OK);
	CHECK_EQUAL(m.nbatches, 10);
	CHECK_EQUAL(m.largest, 10);
	CHECK(is_merged(&m, nrows));
	free_merge(&m);

	nrows = 0;
	REQUIRE(open_merge(&m, 1000, 64, 0));
	REQUIRE(make_input(&m, 200, 50, &nrows) && make_input(&m, 200, 50, &nrows));
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_OK);
	CHECK(m.largest <= 8 && m.nbatches >= 50);
	CHECK(is_merged(&m, nrows));
	free_merge(&m);
}

/* Nothing to merge, an input that fails, a host that wants to stop. */
void
test_merge_ends(void)
{
	uint32_t	nrows = 0;
	uint64_t	n = 1;
	Merge		m;

	REQUIRE(open_merge(&m, 10, 0, 0));
	REQUIRE(make_input(&m, 0, 5, &nrows) && make_input(&m, 0, 5, &nrows));
	CHECK_EQUAL(merge(&m, 0, &n), GJ_OK);
	CHECK_EQUAL(n, 0);
	CHECK_EQUAL(m.nbatches, 0);
	free_merge(&m);

	REQUIRE(open_merge(&m, 10, 0, 0));
	REQUIRE(make_input(&m, 300, 50, &nrows) && make_input(&m, 300, 50, &nrows));
	m.inputs[1].block = 20;
	m.inputs[1].fails_at = 60;
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_DEVICE_ERROR);
	CHECK(m.nbatches > 0 && !m.wrong);
	free_merge(&m);

	nrows = 0;
	REQUIRE(open_merge(&m, 10, 0, 0));
	REQUIRE(make_input(&m, 300, 50, &nrows));
	m.stop_at = 3;
	CHECK_EQUAL(merge(&m, nrows, &n), GJ_CANCELLED);
	CHECK_EQUAL(m.nbatches, 3);
	free_merge(&m);
}
