/*
 * join_hash.c
 *	  The hash join: build a table, look keys up, write pairs.
 *
 * Building takes three passes over the rows or slots, each parallel: insert each row's
 * key and count it; turn counts into places; put row ids in their places.  Runs of equal
 * keys are counted together, so that a hot key is not one atomic operation a row.
 *
 * While keys are inserted, `start` of a slot is its state: 0 empty, GJ_CLAIMED
 * while the key is being written, else 1 + the row that brought the key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows/hash.h"
#include "table.h"

#define GJ_CLAIMED			UINT32_MAX
#define GJ_AHEAD			64	/* keys hashed and prefetched at a time */
#define GJ_ITEM_SLOTS		65536u

typedef struct GjBuildWork
{
	const GjKeys *keys;
	const uint32_t *rowid;
	GjHashTable *table;
	uint64_t   *slot_of;		/* of each row; GJ_NO_SLOT: a key is NULL */
	uint64_t   *item_sum;		/* rows in the slots of each item */
	uint32_t   *item_max;
} GjBuildWork;

/* Hashes of rows begin .. begin+n-1, and their slots on the way into the cache. */
static void
hash_ahead(const GjKeys *keys, const GjHashTable *table, uint32_t begin, uint32_t n,
		   uint64_t *hash, uint64_t *slot)
{
	for (uint32_t i = 0; i < n; i++)
	{
		hash[i] = gj_hash_keys(keys, begin + i);
		slot[i] = gj_hash_slot(hash[i], table->nslots);
		__builtin_prefetch(&table->slots[slot[i]]);
	}
}

/* ---- build: insert */

static inline void
wait_a_moment(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb");
#endif
}

/* The slot of a row's key, which is claimed if nobody has it. */
static uint64_t
find_or_claim(const GjBuildWork *w, uint32_t row, uint64_t hash, uint64_t at)
{
	const GjKeys *keys = w->keys;
	uint64_t	key = keys->nkeys == 1 ? (uint64_t) keys->value[0][row] : hash;

	for (;;)
	{
		GjHashSlot *slot = &w->table->slots[at];
		uint32_t	state = __atomic_load_n(&slot->start, __ATOMIC_ACQUIRE);

		if (state == 0 &&
			__atomic_compare_exchange_n(&slot->start, &state, GJ_CLAIMED, false,
										__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		{
			slot->key = key;
			__atomic_store_n(&slot->start, row + 1, __ATOMIC_RELEASE);
			return at;
		}
		if (state == GJ_CLAIMED)
		{
			/* its owner writes eight bytes and is done */
			wait_a_moment();
			continue;
		}
		if (slot->key == key &&
			(keys->nkeys == 1 ||
			 gj_keys_equal(keys->nkeys, keys->value, row, keys->value, state - 1)))
			return at;
		if (++at == w->table->nslots)
			at = 0;
	}
}

static void
insert_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjBuildWork *w = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->keys->nrows);
	uint64_t	hash[GJ_AHEAD],
				slot[GJ_AHEAD];
	uint64_t	last = GJ_NO_SLOT;
	uint32_t	count = 0;

	for (uint32_t base = begin, n; base < end; base += n)
	{
		n = end - base < GJ_AHEAD ? end - base : GJ_AHEAD;
		hash_ahead(w->keys, w->table, base, n, hash, slot);
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	at = GJ_NO_SLOT;

			if (!w->keys->null[base + i])
				at = find_or_claim(w, base + i, hash[i], slot[i]);
			w->slot_of[base + i] = at;
			if (at != last && last != GJ_NO_SLOT)
				__atomic_fetch_add(&w->table->slots[last].count, count, __ATOMIC_RELAXED);
			count = at == last ? count + 1 : 1;
			last = at;
		}
	}
	if (last != GJ_NO_SLOT)
		__atomic_fetch_add(&w->table->slots[last].count, count, __ATOMIC_RELAXED);
}

/* ---- build: places */

static void
count_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjBuildWork *w = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_SLOTS;
	uint64_t	end = w->table->nslots - begin < GJ_ITEM_SLOTS ? w->table->nslots : begin + GJ_ITEM_SLOTS;
	uint64_t	sum = 0;
	uint32_t	max = 0;

	for (uint64_t s = begin; s < end; s++)
	{
		uint32_t	count = w->table->slots[s].count;

		sum += count;
		max = count > max ? count : max;
	}
	w->item_sum[item] = sum;
	w->item_max[item] = max;
}

/* `start` becomes the end of the key's rows; place_item counts it down to the start. */
static void
start_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjBuildWork *w = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_SLOTS;
	uint64_t	end = w->table->nslots - begin < GJ_ITEM_SLOTS ? w->table->nslots : begin + GJ_ITEM_SLOTS;
	uint64_t	at = w->item_sum[item];

	for (uint64_t s = begin; s < end; s++)
	{
		at += w->table->slots[s].count;
		w->table->slots[s].start = (uint32_t) at;
	}
}

/* ---- build: rows */

static void
place_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjBuildWork *w = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->keys->nrows);

	for (uint32_t row = begin, n; row < end; row += n)
	{
		uint64_t	slot = w->slot_of[row];
		uint32_t	at;

		if (row + GJ_AHEAD < end && w->slot_of[row + GJ_AHEAD] != GJ_NO_SLOT)
			__builtin_prefetch(&w->table->slots[w->slot_of[row + GJ_AHEAD]]);
		for (n = 1; row + n < end && w->slot_of[row + n] == slot; n++)
			;
		if (slot == GJ_NO_SLOT)
			continue;
		at = __atomic_sub_fetch(&w->table->slots[slot].start, n, __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < n; i++)
		{
			w->table->rows[at + i] = w->rowid ? w->rowid[row + i] : row + i;
			if (w->table->key_row)
				w->table->key_row[at + i] = row + i;
		}
	}
}

/* ---- build */

static bool
alloc_build(GjBuildWork *w, uint32_t nitems)
{
	GjHashTable *table = w->table;
	size_t		n = w->keys->nrows > 0 ? w->keys->nrows : 1;

	table->slots = calloc(table->nslots, sizeof(GjHashSlot));
	table->rows = malloc(n * sizeof(uint32_t));
	if (w->keys->nkeys > 1)
		table->key_row = malloc(n * sizeof(uint32_t));
	w->slot_of = malloc(n * sizeof(uint64_t));
	w->item_sum = malloc(nitems * sizeof(uint64_t));
	w->item_max = malloc(nitems * sizeof(uint32_t));
	return table->slots && table->rows && (table->key_row || w->keys->nkeys == 1) &&
		w->slot_of && w->item_sum && w->item_max;
}

/* Turns the items' sums into their starts. */
static void
sum_items(GjBuildWork *w, uint32_t nitems)
{
	uint64_t	total = 0;

	for (uint32_t i = 0; i < nitems; i++)
	{
		uint64_t	n = w->item_sum[i];

		w->item_sum[i] = total;
		total += n;
		if (w->item_max[i] > w->table->max_count)
			w->table->max_count = w->item_max[i];
	}
	w->table->nrows = (uint32_t) total;
}

static GjStatus
build(GjQueue *queue, GjBuildWork *w, bool (*stop) (void *), void *arg)
{
	GjPool	   *pool = queue->device->pool;
	uint32_t	slot_items = (uint32_t) ((w->table->nslots + GJ_ITEM_SLOTS - 1) / GJ_ITEM_SLOTS);
	uint32_t	row_items = gj_items(w->keys->nrows);

	if (!alloc_build(w, slot_items))
		return GJ_OUT_OF_MEMORY;
	if (!gj_pool_run(pool, row_items, insert_item, w, &queue->tile, stop, arg) ||
		!gj_pool_run(pool, slot_items, count_item, w, &queue->tile, stop, arg))
		return GJ_CANCELLED;
	sum_items(w, slot_items);
	if (!gj_pool_run(pool, slot_items, start_item, w, &queue->tile, stop, arg) ||
		!gj_pool_run(pool, row_items, place_item, w, &queue->tile, stop, arg))
		return GJ_CANCELLED;
	return gj_take_row_error(queue);
}

static GjStatus
gj_cpu_hash_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
				  uint64_t most_bytes, bool (*stop) (void *), void *arg, GjHashTable *table)
{
	GjBuildWork w = {keys, rowid, table};
	GjStatus	status;

	memset(table, 0, sizeof(*table));
	table->kind = GJ_TABLE_HASH;
	table->nslots = (uint64_t) keys->nrows + keys->nrows / 2 + 16;
	status = build(queue, &w, stop, arg);
	free(w.slot_of);
	free(w.item_sum);
	free(w.item_max);
	if (status != GJ_OK)
	{
		gj_cpu_hash_free(queue, table);
		return status;
	}

	/* several keys are compared when probing; one key is in its slot */
	table->keys = *keys;
	gj_cpu_free(queue, table->keys.null, keys->nrows);
	table->keys.null = NULL;
	if (keys->nkeys == 1)
	{
		gj_cpu_free(queue, table->keys.value[0], keys->nrows * sizeof(int64_t));
		table->keys.value[0] = NULL;
	}
	return GJ_OK;
}

void
gj_cpu_hash_free(GjQueue *queue, GjHashTable *table)
{
	free(table->slots);
	free(table->rows);
	free(table->key_row);
	for (uint32_t k = 0; k < table->keys.nkeys; k++)
		gj_cpu_free(queue, table->keys.value[k], table->keys.nrows * sizeof(int64_t));
	memset(table, 0, sizeof(*table));
}

/* ---- probe */

typedef struct GjProbe
{
	const GjHashTable *table;
	GjTableRef	ref;			/* to the table */
	const GjKeys *keys;
	uint64_t   *offset;
	uint32_t   *first;
	uint64_t   *item_sum;
} GjProbe;

/* Offsets count from the start of the item. */
static void
probe_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjProbe *p = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, p->keys->nrows);
	uint64_t	hash[GJ_AHEAD],
				slot[GJ_AHEAD];
	uint64_t	sum = 0;

	for (uint32_t base = begin, n; base < end; base += n)
	{
		n = end - base < GJ_AHEAD ? end - base : GJ_AHEAD;
		hash_ahead(p->keys, p->table, base, n, hash, slot);
		for (uint32_t i = 0; i < n; i++)
		{
			const GjHashSlot *found = NULL;

			if (!p->keys->null[base + i])
				found = gj_cpu_find_slot(&p->ref, p->keys->value, p->keys->nkeys, base + i,
										 hash[i], slot[i]);
			p->offset[base + i] = sum;
			p->first[base + i] = found ? found->start : 0;
			sum += found ? found->count : 0;
		}
	}
	p->item_sum[item] = sum;
}

typedef struct GjNumber
{
	uint64_t   *offset;
	const uint64_t *item_start;
	uint32_t	ntuples;
} GjNumber;

static void
offset_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjNumber *w = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->ntuples);
	uint64_t	start = w->item_start[item];

	for (uint32_t i = begin; i < end; i++)
		w->offset[i] += start;
}

void
gj_cpu_number_pairs(GjQueue *queue, uint64_t *item_sum, uint32_t ntuples, uint64_t *offset,
					uint64_t *total)
{
	uint32_t	nitems = gj_items(ntuples);
	GjNumber	w = {offset, item_sum, ntuples};
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < nitems; i++)
	{
		uint64_t	n = item_sum[i];

		item_sum[i] = sum;
		sum += n;
	}
	if (nitems > 1)
		gj_for_items(queue, ntuples, offset_item, &w);
	offset[ntuples] = sum;
	*total = sum;
}

static GjStatus
gj_cpu_hash_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
				  uint64_t *offset, uint32_t *first, uint64_t *total)
{
	uint32_t	nitems = gj_items(keys->nrows);
	GjProbe		p = {table, gj_table_ref(table), keys, offset, first, malloc((nitems + 1) * sizeof(uint64_t))};

	if (!p.item_sum)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_for_items(queue, keys->nrows, probe_item, &p);
	gj_cpu_number_pairs(queue, p.item_sum, keys->nrows, offset, total);
	free(p.item_sum);
	return gj_take_row_error(queue);
}

/* ---- expand */

typedef struct GjExpand
{
	const GjHashTable *table;
	const GjView *view;
	const uint64_t *offset;
	const uint32_t *first;
	uint64_t	cursor;
	uint32_t	n;
	uint32_t	build_source;
	uint32_t   *const *out;
} GjExpand;

#define GJ_EXPAND_ROWS		1024u	/* pairs that are found before they are written */

/* The tuple that pair number `pair` belongs to. */
static uint32_t
tuple_of(const GjExpand *e, uint64_t pair)
{
	uint32_t	low = 0;
	uint32_t	high = e->view->nrows;

	/* the first tuple whose pairs end behind it */
	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (e->offset[mid + 1] <= pair)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void
write_pairs(const GjExpand *e, uint32_t at, uint32_t n, const uint32_t *tuple,
			const uint32_t *build_side)
{
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		uint32_t   *out = e->out[s];

		if (!out)
			continue;
		if (s == e->build_source)
			for (uint32_t i = 0; i < n; i++)
				out[at + i] = e->table->rows[build_side[i]];
		else
			for (uint32_t i = 0; i < n; i++)
				out[at + i] = gj_view_row(e->view, s, tuple[i]);
	}
}

static void
expand_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjExpand *e = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, e->n);
	uint32_t	t = tuple_of(e, e->cursor + begin);
	uint32_t	tuple[GJ_EXPAND_ROWS],
				build_side[GJ_EXPAND_ROWS];

	for (uint32_t at = begin, n; at < end; at += n)
	{
		n = end - at < GJ_EXPAND_ROWS ? end - at : GJ_EXPAND_ROWS;
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	pair = e->cursor + at + i;

			while (e->offset[t + 1] <= pair)
				t++;
			tuple[i] = t;
			build_side[i] = e->first[t] + (uint32_t) (pair - e->offset[t]);
		}
		write_pairs(e, at, n, tuple, build_side);
	}
}

static GjStatus
gj_cpu_hash_expand(GjQueue *queue, const GjHashTable *table, const GjView *view,
				   const uint64_t *offset, const uint32_t *first, uint64_t cursor, uint32_t n,
				   uint32_t build_source, uint32_t *const out[GJ_MAX_SOURCES])
{
	GjExpand	e = {table, view, offset, first, cursor, n, build_source, out};

	gj_for_items(queue, n, expand_item, &e);
	return GJ_OK;
}

const GjTableOps gj_cpu_tables = {
	.hash_build = gj_cpu_hash_build,
	.hash_free = gj_cpu_hash_free,
	.sort_build = gj_cpu_sort_build,
	.sort_probe = gj_cpu_sort_probe,
	.hash_probe = gj_cpu_hash_probe,
	.hash_expand = gj_cpu_hash_expand,
	.nested_loop = gj_cpu_nested_loop,
	.flag_counts = gj_cpu_flag_counts,
	.mark_rows = gj_cpu_mark_rows,
	.mark_tuples = gj_cpu_mark_tuples,
	.mark_ranges = gj_cpu_mark_ranges,
	.cover_rows = gj_cpu_cover_rows
};
