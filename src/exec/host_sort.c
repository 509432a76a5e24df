/*
 * host_sort.c
 *	  Sorts the rows of a GpuJoin in the backend, by ranks.
 *
 * PostgreSQL compares texts once for each comparison of two rows.  Here each different value of a
 * key gets a number when it first comes.  When all rows are there, the different values are sorted
 * by PostgreSQL's own comparison, and their ranks take their place.  Values that compare as equal
 * have equal ranks.  Integers, dates, times and floats need no ranks: their bits tell the order.
 * The keys of a row are then packed into as few words of 64 bits as they need, and the words are
 * sorted.
 *
 * Rows that exceed work_mem, or have hardly any equal values, go to PostgreSQL's tuplesort instead,
 * from the first one on.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "compat.h"
#include "exec/host_sort.h"
#include "plan/join_path.h"

/* So often it is looked whether values repeat enough: at least twice, in the mean. */
#define LOOK_ROWS	4096

/* A different value of a key: its bytes, or those of its datum. */
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

#define SH_PREFIX			value
#define SH_ELEMENT_TYPE		Value
#define SH_KEY_TYPE			Bytes
#define SH_KEY				bytes
#define SH_HASH_KEY(tb, b)	hash_bytes((const unsigned char *) (b).at, (b).length)
#define SH_EQUAL(tb, a, b)	((a).length == (b).length && memcmp((a).at, (b).at, (a).length) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a)	((a)->hash)
#define SH_SCOPE			static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Key
{
	AttrNumber	attno;
	Oid			operator;
	Oid			collation;
	bool		nulls_first;
	Oid			type;			/* that is compared */
	int16		length;			/* of the attribute */
	bool		byval;
	bool		descending;
	bool		is_word;		/* bits tell the order */
	SortSupportData ssup;
	value_hash *numbers;		/* unless is_word */
	Datum	   *values;			/* by number */
	uint32		nvalues;
	uint32		room;			/* of values */
	bool		has_nulls;
	uint64		min;			/* of words or ranks */
	uint64		max;
	int			nbits;			/* that they take */
} Key;

/* A row while rows are sorted. */
typedef struct SortItem
{
	uint64		word;			/* the first one */
	uint32		row;
} SortItem;

struct GjHostSort
{
	MemoryContext cxt;			/* of the sort */
	MemoryContext ranks_cxt;	/* of what PostgreSQL's sort does without */
	TupleDesc	desc;
	int			ncolumns;		/* the first attributes; others are not filled */
	int			nkeys;
	Key		   *keys;
	Key		  **ranked;			/* by column: the key whose values it has; NULL: none */
	uint32		nrows;
	uint32		room;			/* rows that there is room for */
	Datum	   *values;			/* of each row, one a column */
	bool	   *isnull;
	uint64	   *words;			/* of each row, one a key */
	int			nwords;			/* once they are packed */
	SortItem   *items;
	uint32		next;
	Tuplesortstate *tuplesort;	/* NULL: not needed */
	TupleTableSlot *sorted;		/* its next tuple */
};

/* The type that an operator orders; *own: by the type's own < or >. */
static Oid
ordered_type(Oid operator, bool *own)
{
	Oid			opfamily,
				type;
	int16		strategy;

	if (!gj_ordering_properties(operator, &opfamily, &type, &strategy))
		elog(ERROR, "operator %u is not an ordering operator", operator);
	*own = opfamily == lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	return type;
}

bool
gj_is_word_order(Oid operator)
{
	bool		own;
	Oid			type = ordered_type(operator, &own);

	if (!own)
		return false;
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/* The word of a float: -0 equals 0, and NaNs are equal and larger than all others. */
static uint64
float_word(double value)
{
	uint64		bits;

	if (isnan(value))
		return PG_UINT64_MAX;
	value += 0.0;
	memcpy(&bits, &value, sizeof(bits));
	return bits & UINT64CONST(1) << 63 ? ~bits : bits | UINT64CONST(1) << 63;
}

static uint64
order_word(Oid type, Datum value)
{
	int64		number;

	switch (type)
	{
		case BOOLOID:
			return DatumGetBool(value);
		case OIDOID:
			return DatumGetObjectId(value);
		case FLOAT4OID:
			return float_word(DatumGetFloat4(value));
		case FLOAT8OID:
			return float_word(DatumGetFloat8(value));
		case INT2OID:
			number = DatumGetInt16(value);
			break;
		case INT4OID:
		case DATEOID:
			number = DatumGetInt32(value);
			break;
		default:
			number = DatumGetInt64(value);
			break;
	}
	return (uint64) number ^ UINT64CONST(1) << 63;
}

static void
init_key(GjHostSort *sort, Key *key, List *description)
{
	Form_pg_attribute attr;
	bool		own;

	key->attno = list_nth_oid(description, GJ_HOST_SORT_ATTNO);
	key->operator = list_nth_oid(description, GJ_HOST_SORT_OPERATOR);
	key->collation = list_nth_oid(description, GJ_HOST_SORT_COLLATION);
	key->nulls_first = list_nth_oid(description, GJ_HOST_SORT_NULLS_FIRST) != 0;
	attr = TupleDescAttr(sort->desc, key->attno - 1);
	key->length = attr->attlen;
	key->byval = attr->attbyval;
	key->type = ordered_type(key->operator, &own);
	key->is_word = key->byval && gj_is_word_order(key->operator);
	key->ssup.ssup_cxt = sort->ranks_cxt;
	key->ssup.ssup_collation = key->collation;
	PrepareSortSupportFromOrderingOp(key->operator, &key->ssup);
	key->descending = key->ssup.ssup_reverse;
	if (!key->is_word)
	{
		key->numbers = value_create(sort->ranks_cxt, 256, NULL);
		sort->ranked[key->attno - 1] = key;
	}
	key->min = PG_UINT64_MAX;
}

GjHostSort *
gj_host_sort_begin(TupleDesc desc, int ncolumns, List *keys)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin sort",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	GjHostSort *sort = palloc0(sizeof(GjHostSort));
	ListCell   *lc;

	sort->cxt = cxt;
	/* its blocks do not grow to the half of work_mem */
	sort->ranks_cxt = AllocSetContextCreate(cxt, "gpujoin ranks", ALLOCSET_SMALL_MINSIZE,
											ALLOCSET_SMALL_INITSIZE, 64 * 1024);
	sort->desc = desc;
	sort->ncolumns = ncolumns;
	sort->nkeys = list_length(keys);
	sort->keys = palloc0(sizeof(Key) * sort->nkeys);
	sort->ranked = palloc0(sizeof(Key *) * ncolumns);
	foreach(lc, keys)
		init_key(sort, &sort->keys[foreach_current_index(lc)], lfirst(lc));
	MemoryContextSwitchTo(old);
	return sort;
}

/* The bytes that tell a value from others; *value: without compression, in memory. */
static Bytes
value_bytes(const Key *key, Datum *value)
{
	struct varlena *stored;

	if (key->byval)
		return (Bytes) {(const char *) value, sizeof(Datum)};
	if (key->length > 0)
		return (Bytes) {DatumGetPointer(*value), key->length};
	stored = PG_DETOAST_DATUM_PACKED(*value);
	*value = PointerGetDatum(stored);
	return (Bytes) {VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored)};
}

/* The number of a value, in the order in which different ones came. */
static uint32
value_number(GjHostSort *sort, Key *key, Datum value)
{
	Bytes		bytes = value_bytes(key, &value);
	bool		found;
	Value	   *entry = value_insert(key->numbers, bytes, &found);
	MemoryContext old;

	if (found)
		return entry->number;
	old = MemoryContextSwitchTo(sort->ranks_cxt);
	if (key->nvalues == key->room)
	{
		key->room = Max(256, key->room * 2);
		key->values = key->values == NULL ? palloc(sizeof(Datum) * key->room) :
			repalloc_huge(key->values, sizeof(Datum) * (Size) key->room);
	}
	value = datumCopy(value, key->byval, key->length);
	key->values[key->nvalues] = value;
	entry->number = key->nvalues++;
	if (key->byval)
	{
		Datum	   *copy = palloc(sizeof(Datum));

		*copy = value;
		entry->bytes = (Bytes) {(const char *) copy, sizeof(Datum)};
	}
	else
		entry->bytes = value_bytes(key, &value);
	MemoryContextSwitchTo(old);
	return entry->number;
}

/* Stores the values of a row in a virtual slot. */
static inline void
store_values(const GjHostSort *sort, const Datum *values, const bool *isnull, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, sizeof(Datum) * sort->ncolumns);
	memcpy(slot->tts_isnull, isnull, sizeof(bool) * sort->ncolumns);
	ExecStoreVirtualTuple(slot);
}

static inline void
store_row(const GjHostSort *sort, uint32 row, TupleTableSlot *slot)
{
	store_values(sort, &sort->values[(Size) row * sort->ncolumns],
				 &sort->isnull[(Size) row * sort->ncolumns], slot);
}

/* Gives all rows to PostgreSQL's sort; they pass the slot. */
static void
hand_over(GjHostSort *sort, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(sort->cxt);
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * sort->nkeys);
	Oid		   *operators = palloc(sizeof(Oid) * sort->nkeys);
	Oid		   *collations = palloc(sizeof(Oid) * sort->nkeys);
	bool	   *nulls_first = palloc(sizeof(bool) * sort->nkeys);

	for (int k = 0; k < sort->nkeys; k++)
	{
		attnos[k] = sort->keys[k].attno;
		operators[k] = sort->keys[k].operator;
		collations[k] = sort->keys[k].collation;
		nulls_first[k] = sort->keys[k].nulls_first;
	}
	sort->tuplesort = tuplesort_begin_heap(sort->desc, sort->nkeys, attnos, operators, collations,
										   nulls_first, work_mem, NULL, TUPLESORT_NONE);
	sort->sorted = MakeSingleTupleTableSlot(sort->desc, &TTSOpsMinimalTuple);
	for (uint32 row = 0; row < sort->nrows; row++)
	{
		store_row(sort, row, slot);
		tuplesort_puttupleslot(sort->tuplesort, slot);
	}
	ExecClearTuple(slot);
	MemoryContextDelete(sort->ranks_cxt);
	MemoryContextSwitchTo(old);
}

/* True if ranks are not worth it, or take too much memory. */
static bool
is_too_much(const GjHostSort *sort)
{
	/* what sorting will take is counted, too */
	if (sort->nrows >= PG_UINT32_MAX / 2 ||
		MemoryContextMemAllocated(sort->ranks_cxt, false) +
		(sizeof(SortItem) + sizeof(uint64)) * sort->nrows > (Size) work_mem * 1024)
		return true;
	for (int k = 0; k < sort->nkeys && sort->nrows % LOOK_ROWS == 0; k++)
		if (sort->keys[k].nvalues > sort->nrows / 2)
			return true;
	return false;
}

static void
grow(GjHostSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->ranks_cxt);
	Size		room = sort->room == 0 ? 1024 : (Size) sort->room * 2;

	if (sort->room == 0)
	{
		sort->values = palloc(room * sort->ncolumns * sizeof(Datum));
		sort->isnull = palloc(room * sort->ncolumns * sizeof(bool));
		sort->words = palloc(room * sort->nkeys * sizeof(uint64));
	}
	else
	{
		sort->values = repalloc_huge(sort->values, room * sort->ncolumns * sizeof(Datum));
		sort->isnull = repalloc_huge(sort->isnull, room * sort->ncolumns * sizeof(bool));
		sort->words = repalloc_huge(sort->words, room * sort->nkeys * sizeof(uint64));
	}
	sort->room = room;
	MemoryContextSwitchTo(old);
}

/* A copy of a value of the row that is put: that of an equal one, where these are known. */
static Datum
copy_value(GjHostSort *sort, int column, Datum value)
{
	Form_pg_attribute attr = TupleDescAttr(sort->desc, column);
	const Key  *key = sort->ranked[column];
	Datum		known;

	if (attr->attbyval)
		return value;
	if (key != NULL)
	{
		known = key->values[sort->words[(Size) sort->nrows * sort->nkeys + (key - sort->keys)]];
		/* compressed, or of another header, it has another size */
		if (datumGetSize(known, false, attr->attlen) == datumGetSize(value, false, attr->attlen))
			return known;
	}
	return datumCopy(value, false, attr->attlen);
}

void
gj_host_sort_put(GjHostSort *sort, TupleTableSlot *slot)
{
	uint32		row = sort->nrows;
	Datum	   *values;
	bool	   *isnull;
	MemoryContext old;

	if (sort->tuplesort != NULL)
	{
		tuplesort_puttupleslot(sort->tuplesort, slot);
		return;
	}
	if (row == sort->room)
		grow(sort);
	for (int k = 0; k < sort->nkeys; k++)
	{
		Key		   *key = &sort->keys[k];
		Datum		value = slot->tts_values[key->attno - 1];
		uint64	   *word = &sort->words[(Size) row * sort->nkeys + k];

		if (slot->tts_isnull[key->attno - 1])
			key->has_nulls = true;
		else
			*word = key->is_word ? order_word(key->type, value) : value_number(sort, key, value);
	}
	values = &sort->values[(Size) row * sort->ncolumns];
	isnull = &sort->isnull[(Size) row * sort->ncolumns];
	old = MemoryContextSwitchTo(sort->ranks_cxt);
	for (int i = 0; i < sort->ncolumns; i++)
	{
		isnull[i] = slot->tts_isnull[i];
		values[i] = isnull[i] ? (Datum) 0 : copy_value(sort, i, slot->tts_values[i]);
	}
	MemoryContextSwitchTo(old);
	sort->nrows++;
	if (is_too_much(sort))
		hand_over(sort, slot);
}

static inline bool
is_null(const GjHostSort *sort, uint32 row, const Key *key)
{
	return key->has_nulls && sort->isnull[(Size) row * sort->ncolumns + key->attno - 1];
}

static int
compare_values(const void *a, const void *b, void *arg)
{
	Key		   *key = arg;

	CHECK_FOR_INTERRUPTS();
	return key->ssup.comparator(key->values[*(const uint32 *) a], key->values[*(const uint32 *) b],
								&key->ssup);
}

/* The rank of each number of a key's values. */
static uint32 *
make_ranks(Key *key)
{
	Size		nbytes = sizeof(uint32) * ((Size) key->nvalues + 1);
	uint32	   *order = palloc_extended(nbytes, MCXT_ALLOC_HUGE);
	uint32	   *ranks = palloc_extended(nbytes, MCXT_ALLOC_HUGE);
	uint32		rank = 0;

	for (uint32 i = 0; i < key->nvalues; i++)
		order[i] = i;
	qsort_arg(order, key->nvalues, sizeof(uint32), compare_values, key);
	for (uint32 i = 0; i < key->nvalues; i++)
	{
		if (i > 0 && compare_values(&order[i - 1], &order[i], key) != 0)
			rank++;
		ranks[order[i]] = rank;
	}
	pfree(order);
	return ranks;
}

/* Puts ranks in the place of numbers, and finds out how many bits a key takes. */
static void
measure_key(GjHostSort *sort, int k)
{
	Key		   *key = &sort->keys[k];
	uint32	   *ranks = key->is_word ? NULL : make_ranks(key);

	for (uint32 row = 0; row < sort->nrows; row++)
	{
		uint64	   *word = &sort->words[(Size) row * sort->nkeys + k];

		if (is_null(sort, row, key))
			continue;
		if (ranks)
			*word = ranks[*word];
		key->min = Min(key->min, *word);
		key->max = Max(key->max, *word);
	}
	if (key->min > key->max)
		key->min = key->max;	/* NULLs only */
	key->nbits = key->min == key->max ? 0 : pg_leftmost_one_pos64(key->max - key->min) + 1;
	if (ranks)
		pfree(ranks);
}

/* Words of a row while they are filled, from the highest bit on. */
typedef struct Packer
{
	uint64	   *words;
	int			nwords;			/* begun */
	int			nfree;			/* bits of the last one */
} Packer;

static inline void
pack(Packer *packer, uint64 value, int nbits)
{
	if (nbits == 0)
		return;
	if (nbits > packer->nfree)
	{
		packer->words[packer->nwords++] = 0;
		packer->nfree = 64;
	}
	packer->nfree -= nbits;
	packer->words[packer->nwords - 1] |= value << packer->nfree;
}

/* Packs the keys of a row; returns the number of words. */
static int
pack_row(const GjHostSort *sort, uint32 row, uint64 *words)
{
	Packer		packer = {.words = words};

	for (int k = 0; k < sort->nkeys; k++)
	{
		const Key  *key = &sort->keys[k];
		bool		null = is_null(sort, row, key);
		uint64		word = sort->words[(Size) row * sort->nkeys + k];

		if (key->has_nulls)
			pack(&packer, null != key->nulls_first, 1);
		pack(&packer, null ? 0 : key->descending ? key->max - word : word - key->min, key->nbits);
	}
	return packer.nwords;
}

static inline int
compare_items(const SortItem *a, const SortItem *b, const GjHostSort *sort)
{
	const uint64 *x,
			   *y;

	if (a->word != b->word)
		return a->word < b->word ? -1 : 1;
	x = &sort->words[(Size) a->row * sort->nwords];
	y = &sort->words[(Size) b->row * sort->nwords];
	for (int w = 1; w < sort->nwords; w++)
		if (x[w] != y[w])
			return x[w] < y[w] ? -1 : 1;
	return 0;
}

#define ST_SORT					sort_items
#define ST_ELEMENT_TYPE			SortItem
#define ST_COMPARE_ARG_TYPE		const GjHostSort
#define ST_COMPARE(a, b, sort)	compare_items(a, b, sort)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE				static
#define ST_DEFINE
#include "lib/sort_template.h"

static void
sort_by_ranks(GjHostSort *sort)
{
	/* a key and its bit for NULL can begin a word each */
	uint64	   *packed = palloc(sizeof(uint64) * 2 * sort->nkeys);
	uint64	   *words;

	for (int k = 0; k < sort->nkeys; k++)
		measure_key(sort, k);
	sort->nwords = sort->nrows > 0 ? pack_row(sort, 0, packed) : 0;
	words = palloc_extended(sizeof(uint64) * ((Size) sort->nrows * sort->nwords + 1),
							MCXT_ALLOC_HUGE);
	sort->items = palloc_extended(sizeof(SortItem) * ((Size) sort->nrows + 1), MCXT_ALLOC_HUGE);
	for (uint32 row = 0; row < sort->nrows; row++)
	{
		memset(packed, 0, sizeof(uint64));
		pack_row(sort, row, packed);
		memcpy(&words[(Size) row * sort->nwords], packed, sizeof(uint64) * sort->nwords);
		sort->items[row] = (SortItem) {.word = packed[0],.row = row};
	}
	if (sort->words)
		pfree(sort->words);
	sort->words = words;
	sort_items(sort->items, sort->nrows, sort);
}

void
gj_host_sort_perform(GjHostSort *sort, GjHostSortStats *stats)
{
	MemoryContext old = MemoryContextSwitchTo(sort->cxt);

	stats->done = true;
	stats->ranked = sort->tuplesort == NULL;
	stats->nvalues = 0;
	if (sort->tuplesort != NULL)
		tuplesort_performsort(sort->tuplesort);
	else
		sort_by_ranks(sort);
	for (int k = 0; k < sort->nkeys && stats->ranked; k++)
		stats->nvalues += sort->keys[k].nvalues;
	stats->kbytes = MemoryContextMemAllocated(sort->cxt, true) / 1024;
	MemoryContextSwitchTo(old);
}

bool
gj_host_sort_next(GjHostSort *sort, TupleTableSlot *slot)
{
	if (sort->tuplesort == NULL)
	{
		if (sort->next == sort->nrows)
			return false;
		store_row(sort, sort->items[sort->next++].row, slot);
		return true;
	}
	if (!tuplesort_gettupleslot(sort->tuplesort, true, false, sort->sorted, NULL))
		return false;
	slot_getallattrs(sort->sorted);
	store_values(sort, sort->sorted->tts_values, sort->sorted->tts_isnull, slot);
	return true;
}

void
gj_host_sort_end(GjHostSort *sort)
{
	if (sort->tuplesort != NULL)
	{
		ExecDropSingleTupleTableSlot(sort->sorted);
		tuplesort_end(sort->tuplesort);
	}
	MemoryContextDelete(sort->cxt);
}
