/*
 * table.h
 *	  Tables of join keys: what kinds there are, and what a probe reads of them.
 */
#ifndef GJ_DEVICE_TABLE_H
#define GJ_DEVICE_TABLE_H

#include "rows/expression.h"
#include "rows/hash.h"

/* Normalised join keys of n rows, device memory; null[i] = 1 if any key of row i is NULL. */
typedef struct GjKeys
{
	uint32_t	nkeys;
	uint32_t	nrows;
	int64_t    *value[GJ_MAX_KEYS];
	uint8_t    *null;
} GjKeys;

/* Hash of the keys of row i; for a single key, the mixed key. */
GJ_FN uint64_t
gj_hash_keys(const GjKeys *keys, uint32_t i)
{
	uint64_t	hash = 0;

	if (keys->nkeys == 1)
		return gj_hash_mix((uint64_t) keys->value[0][i]);
	for (uint32_t k = 0; k < keys->nkeys; k++)
		hash = gj_hash_combine(hash, keys->value[k][i]);
	return hash;
}

/* True if row i of keys `a` and row j of keys `b` are the same. */
GJ_FN bool
gj_keys_equal(uint32_t nkeys, int64_t *const *a, uint32_t i, int64_t *const *b, uint32_t j)
{
	for (uint32_t k = 0; k < nkeys; k++)
		if (a[k][i] != b[k][j])
			return false;
	return true;
}

/* One distinct key of the build side and its rows: rows[start .. start+count). */
typedef struct GjHashSlot
{
	uint64_t	key;			/* the key if there is one, else the hash of the keys */
	uint32_t	start;
	uint32_t	count;			/* 0: empty slot; or a payload, which is never 0 */
} GjHashSlot;

/* The same of two keys, in a sector of memory. */
typedef struct GjWideSlot
{
	uint64_t	key[2];
	uint32_t	start;
	uint32_t	count;			/* as above */
	uint64_t	unused;
} GjWideSlot;

/* What a table is; whoever builds it says so. */
typedef enum GjTableKind
{
	GJ_TABLE_NONE,				/* there is none: nothing matches */
	GJ_TABLE_HASH,				/* slots */
	GJ_TABLE_WIDE,				/* slots of two keys */
	GJ_TABLE_DIRECT,			/* a place for each key between the least and the greatest */
	GJ_TABLE_DENSE,				/* the key says the row */
	GJ_TABLE_SORTED				/* rows in the order of keys */
} GjTableKind;

/*
 * A table over a build side, read-only once built.  Rows with a NULL key are left out.  All
 * arrays are device memory, given back by hash_free; those that its kind has not are NULL.
 *
 * HASH: open addressing with linear probing over distinct keys; the row ids of equal keys lie next
 * to each other, so any number of duplicates costs a probe nothing.  WIDE: the same of two keys,
 * which lie in the slots.
 *
 * DIRECT: there is one key, it is unique, and the row id of key low + i is place[i], GJ_NO_ROW if
 * no row has it, i < nslots.  What a probe finds are these row ids.  DENSE: the row id of key low +
 * i is i.
 *
 * SORTED (sort_build): `rows` in the order of keys, whose values are in that order too; a probe
 * searches them (rows/sorted.h).  It may have `bucket`: the rows whose first value is
 * low + (b << shift) or more start with row bucket[b], b <= nslots.
 *
 * A hash or direct table of one key, or a wide one, whose keys are unique, can have payloads, the
 * values of a column (rows/hash.h: gj_payload): in its slots, which need no counts then, or in an
 * array beside `place`.  A probe that wants nothing else of a row reads one place in memory, not two.
 *
 * A hash or direct table of one key can have a filter, which says of most keys that are not there
 * that they are not, in a fraction of its memory: with slots, that of rows/hash.h, nkey_filter
 * words, 8 bits a row or more; a direct one, a bit for each place.
 */
typedef struct GjHashTable
{
	uint32_t	kind;			/* GjTableKind */
	bool		has_payload;
	bool		has_filter;
	bool		in_order;		/* rows[i] = i for all rows, or the table is direct */
	bool		partitioned;	/* how it was built, for EXPLAIN */
	bool		positive;		/* WIDE: no second key is less than 0 */
	GjHashSlot *slots;
	GjWideSlot *wide;
	uint64_t	nslots;
	uint32_t   *place;
	uint32_t   *bucket;			/* [nslots + 1] or NULL */
	int64_t		low;
	uint32_t	shift;
	uint32_t   *rows;			/* row ids of the relation, grouped by key */
	uint32_t	nrows;			/* rows in the table */
	uint32_t	max_count;		/* of any key: 1 means that keys are unique; 0: not known */
	uint32_t	payload;		/* column of the build source, counted from its first */
	uint32_t   *payloads;		/* direct: [nslots], GJ_NO_ROW where no row has the key */
	uint32_t   *key_filter;		/* [nkey_filter] */
	uint32_t	nkey_filter;
	GjKeys		keys;			/* of the input rows; compared where a hash table has several */
	uint32_t   *key_row;		/* of such a table: input row whose keys rows[i] has */
} GjHashTable;

/* True if keys are numbers of places. */
GJ_FN bool
gj_kind_is_direct(uint32_t kind)
{
	return kind == GJ_TABLE_DIRECT || kind == GJ_TABLE_DENSE;
}

static inline bool
gj_table_is_direct(const GjHashTable *table)
{
	return gj_kind_is_direct(table->kind);
}

/* True if there are slots or places, beside which a payload and a filter can be. */
static inline bool
gj_table_has_places(const GjHashTable *table)
{
	return table->kind == GJ_TABLE_HASH || table->kind == GJ_TABLE_WIDE ||
		table->kind == GJ_TABLE_DIRECT;
}

/* Words of a filter of a table with slots or places. */
static inline uint64_t
gj_filter_words(const GjHashTable *table)
{
	uint64_t	nwords = 32;

	if (table->kind == GJ_TABLE_DIRECT)
		return (table->nslots + 31) / 32;
	while (nwords < (uint64_t) table->nrows / 4)
		nwords *= 2;
	return nwords;
}

/* The arrays of a table that are there; returns their number. */
#define GJ_TABLE_ARRAYS		(9 + GJ_MAX_KEYS)
static inline uint32_t
gj_table_arrays(const GjHashTable *table, void *arrays[GJ_TABLE_ARRAYS])
{
	void	   *all[] = {table->slots, table->wide, table->place, table->payloads, table->key_filter,
	table->bucket, table->rows, table->key_row, table->keys.null};
	uint32_t	n = 0;

	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			arrays[n++] = all[i];
	for (uint32_t k = 0; k < table->keys.nkeys; k++)
		if (table->keys.value[k])
			arrays[n++] = table->keys.value[k];
	return n;
}

/*
 * What a probe reads of a table; the arrays are the table's.  A sorted one is searched by other
 * means (rows/sorted.h).
 */
typedef struct GjTableRef
{
	uint32_t	kind;			/* GjTableKind, but SORTED */
	uint32_t	nkey_filter;
	const GjHashSlot *slots;
	const GjWideSlot *wide;
	uint64_t	nslots;
	const uint32_t *place;
	int64_t		low;
	const uint32_t *rows;		/* NULL: the number of a row is its id */
	const uint32_t *payloads;
	const uint32_t *key_filter;
	const uint32_t *key_row;
	int64_t    *key_value[GJ_MAX_KEYS];
	bool		has_payload;
	bool		has_filter;
	bool		finds_payload;	/* a probe gets payloads, not rows: whoever probes says so */
} GjTableRef;

static inline GjTableRef
gj_table_ref(const GjHashTable *table)
{
	GjTableRef	ref;

	ref.kind = table->kind;
	ref.nkey_filter = table->nkey_filter;
	ref.slots = table->slots;
	ref.wide = table->wide;
	ref.nslots = table->nslots;
	ref.place = table->place;
	ref.low = table->low;
	ref.rows = table->in_order ? NULL : table->rows;
	ref.payloads = table->payloads;
	ref.key_filter = table->key_filter;
	ref.key_row = table->key_row;
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		ref.key_value[k] = table->keys.value[k];
	ref.has_payload = table->has_payload;
	ref.has_filter = table->has_filter;
	ref.finds_payload = false;
	return ref;
}

/* A slot, in one load. */
GJ_FN GjHashSlot
gj_load_slot(const GjHashSlot *slots, uint64_t s)
{
#ifdef GJ_ON_GPU
	const uint4 words = __ldg((const uint4 *) &slots[s]);
	GjHashSlot	slot;

	slot.key = ((uint64_t) words.y << 32) | words.x;
	slot.start = words.z;
	slot.count = words.w;
	return slot;
#else
	return slots[s];
#endif
}

#endif							/* GJ_DEVICE_TABLE_H */
