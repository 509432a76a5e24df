/*
 * value_ranks.c
 *	  Different values, their numbers and their ranks.
 *
 * A value gets a number when it first comes: a hash table of its bytes knows it later.  When all have
 * come, PostgreSQL's own comparison sorts the different ones.  Values that compare as equal have
 * equal ranks, also if their bytes differ.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "compat.h"
#include "exec/value_ranks.h"
#include "rows/hash.h"

/* What tells a value from others: its bytes, or those of its datum. */
typedef struct Bytes
{
	const char *at;
	uint32		length;
} Bytes;

typedef struct Value
{
	Bytes		bytes;
	uint32		hash;
	uint32		status;
	uint32		number;			/* by when it came */
} Value;

/* Adds a word to a hash, in less time than gj_hash_combine() takes: the end mixes all. */
static inline uint64
add_word(uint64 hash, uint64 word)
{
	return ((hash << 5 | hash >> 59) ^ word) * UINT64CONST(0x9E3779B97F4A7C15);
}

/* A hash of bytes, eight at a time: the last ones again, unless there are fewer. */
static inline uint32
hash_value(Bytes bytes)
{
	const char *at = bytes.at;
	uint32		left = bytes.length;
	uint64		hash = bytes.length;
	uint64		word = 0;

	for (; left > sizeof(word); left -= sizeof(word), at += sizeof(word))
	{
		memcpy(&word, at, sizeof(word));
		hash = add_word(hash, word);
	}
	if (bytes.length >= sizeof(word))
		memcpy(&word, bytes.at + bytes.length - sizeof(word), sizeof(word));
	else
		for (uint32 i = 0; i < left; i++)
			word = word << 8 | (uint8) at[i];
	return (uint32) gj_hash_mix(add_word(hash, word));
}

#define SH_PREFIX			value
#define SH_ELEMENT_TYPE		Value
#define SH_KEY_TYPE			Bytes
#define SH_KEY				bytes
#define SH_HASH_KEY(tb, b)	hash_value(b)
#define SH_EQUAL(tb, a, b)	((a).length == (b).length && memcmp((a).at, (b).at, (a).length) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a)	((a)->hash)
#define SH_SCOPE			static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

void
gj_ranks_init(GjRanks *ranks, Oid operator, Oid collation, Form_pg_attribute attr,
			  MemoryContext cxt)
{
	memset(ranks, 0, sizeof(*ranks));
	ranks->cxt = cxt;
	ranks->length = attr->attlen;
	ranks->byval = attr->attbyval;
	ranks->ssup.ssup_cxt = cxt;
	ranks->ssup.ssup_collation = collation;
	PrepareSortSupportFromOrderingOp(operator, &ranks->ssup);
	ranks->different = value_create(cxt, 256, NULL);
}

/* The bytes that tell a value from others; *value: without compression, in memory. */
static inline Bytes
value_bytes(const GjRanks *ranks, Datum *value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(*value);

	if (ranks->byval)
		return (Bytes) {(const char *) value, sizeof(Datum)};
	if (ranks->length > 0)
		return (Bytes) {DatumGetPointer(*value), ranks->length};
	if (VARATT_IS_COMPRESSED(stored) || VARATT_IS_EXTERNAL(stored))
	{
		stored = PG_DETOAST_DATUM_PACKED(*value);
		*value = PointerGetDatum(stored);
	}
	return (Bytes) {VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored)};
}

/* Keeps a value that is met for the first time, and gives it a number. */
static void
keep_value(GjRanks *ranks, Datum value, Value *entry)
{
	MemoryContext old = MemoryContextSwitchTo(ranks->cxt);

	if (ranks->nvalues == ranks->room)
	{
		ranks->room = Max(256, ranks->room * 2);
		ranks->values = ranks->values == NULL ? palloc(sizeof(Datum) * ranks->room) :
			repalloc_huge(ranks->values, sizeof(Datum) * (Size) ranks->room);
	}
	value = datumCopy(value, ranks->byval, ranks->length);
	ranks->values[ranks->nvalues] = value;
	entry->number = ranks->nvalues++;
	if (ranks->byval)
	{
		Datum	   *copy = palloc(sizeof(Datum));

		*copy = value;
		entry->bytes = (Bytes) {(const char *) copy, sizeof(Datum)};
	}
	else
		entry->bytes = value_bytes(ranks, &value);
	MemoryContextSwitchTo(old);
}

uint32
gj_ranks_number(GjRanks *ranks, Datum value)
{
	Datum		stored = value;
	Bytes		bytes = value_bytes(ranks, &value);
	bool		found;
	Value	   *entry = value_insert(ranks->different, bytes, &found);
	uint32		number;

	if (!found)
		keep_value(ranks, value, entry);
	number = entry->number;
	if (value != stored)
		pfree(DatumGetPointer(value));
	return number;
}

static int
compare_values(const void *a, const void *b, void *arg)
{
	GjRanks    *ranks = arg;

	CHECK_FOR_INTERRUPTS();
	return ranks->ssup.comparator(ranks->values[*(const uint32 *) a],
								  ranks->values[*(const uint32 *) b], &ranks->ssup);
}

uint32 *
gj_ranks_make(GjRanks *ranks, uint64 *highest)
{
	Size		nbytes = sizeof(uint32) * ((Size) ranks->nvalues + 1);
	uint32	   *order = palloc_extended(nbytes, MCXT_ALLOC_HUGE);
	uint32	   *rank_of = palloc_extended(nbytes, MCXT_ALLOC_HUGE);
	uint32		rank = 0;

	for (uint32 i = 0; i < ranks->nvalues; i++)
		order[i] = i;
	qsort_arg(order, ranks->nvalues, sizeof(uint32), compare_values, ranks);
	for (uint32 i = 0; i < ranks->nvalues; i++)
	{
		if (i > 0 && compare_values(&order[i - 1], &order[i], ranks) != 0)
			rank++;
		rank_of[order[i]] = rank;
	}
	*highest = rank;
	pfree(order);
	return rank_of;
}
