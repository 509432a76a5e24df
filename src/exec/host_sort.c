/*
 * host_sort.c
 *	  Sorts the rows of a GpuJoin in the backend, by ranks.
 *
 * PostgreSQL compares texts once for each comparison of two rows.  Here the ranks of a key's
 * values take their place (exec/value_ranks.c).  Integers, dates, times and floats need no ranks:
 * their bits tell the order.
 * The keys of a row are then packed into as few words of 64 bits as they need, and the words are
 * sorted: by their digits, where one word has room for the keys and the number of the row.
 *
 * Rows that exceed work_mem, or have hardly any equal values, go to PostgreSQL's tuplesort instead,
 * from the first one on.
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "compat.h"
#include "exec/digit_sort.h"
#include "exec/host_sort.h"
#include "exec/value_ranks.h"
#include "plan/join_path.h"

/* So often it is looked whether values repeat enough: at least twice, in the mean. */
#define LOOK_ROWS	4096
/* Rows are fetched into the processor's cache that far ahead. */
#define AHEAD_ROWS	8

typedef struct Key
{
	AttrNumber	attno;
	Oid			operator;
	Oid			collation;
	bool		nulls_first;
	Oid			type;			/* that is compared */
	bool		byval;
	bool		descending;
	bool		is_word;		/* bits tell the order */
	GjRanks		ranks;			/* unless is_word: of its values */
	uint32	   *numbers;		/* of each row: of its value */
	bool		has_nulls;
	uint64		min;			/* of words or ranks */
	uint64		max;
	int			nbits;			/* that they take, */
	int			word;			/* in which word of a row, */
	int			shift;			/* and above how many bits of it */
	int			null_word;		/* the same of the bit for NULL */
	int			null_shift;
} Key;

/* A row while rows are compared. */
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
	uint32		expected;		/* at least */
	uint32		room;			/* rows that there is room for */
	Datum	   *values;			/* of each row, one a column */
	bool	   *isnull;
	uint64	   *words;			/* of each row: its keys, packed */
	int			nwords;			/* of a row */
	uint32	   *order;			/* rows, once they are sorted */
	uint32		next;
	Tuplesortstate *tuplesort;	/* NULL: not needed */
	TupleTableSlot *passing;	/* rows on their way to it */
	TupleTableSlot *sorted;		/* its next tuple */
};

/* The type that an operator orders; *own: by the type's own < or >; *descending: by >. */
static Oid
ordered_type(Oid operator, bool *own, bool *descending)
{
	Oid			opfamily,
				type;
	int16		strategy;

	if (!gj_ordering_properties(operator, &opfamily, &type, &strategy))
		elog(ERROR, "operator %u is not an ordering operator", operator);
	*own = opfamily == lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	*descending = strategy == BTGreaterStrategyNumber;
	return type;
}

bool
gj_is_word_order(Oid operator)
{
	bool		own;
	bool		descending;
	Oid			type = ordered_type(operator, &own, &descending);

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
	key->byval = attr->attbyval;
	key->type = ordered_type(key->operator, &own, &key->descending);
	key->is_word = key->byval && gj_is_word_order(key->operator);
	if (!key->is_word)
	{
		gj_ranks_init(&key->ranks, key->operator, key->collation, attr, sort->ranks_cxt);
		sort->ranked[key->attno - 1] = key;
	}
	key->min = PG_UINT64_MAX;
}

GjHostSort *
gj_host_sort_begin(TupleDesc desc, int ncolumns, List *keys, uint32 expected)
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
	sort->expected = expected;
	sort->nkeys = list_length(keys);
	sort->keys = palloc0(sizeof(Key) * sort->nkeys);
	sort->ranked = palloc0(sizeof(Key *) * ncolumns);
	foreach(lc, keys)
		init_key(sort, &sort->keys[foreach_current_index(lc)], lfirst(lc));
	MemoryContextSwitchTo(old);
	return sort;
}

/* Stores values of a row in a virtual slot: n of its columns; NULL: the first ones. */
static inline void
store_values(const Datum *values, const bool *isnull, const int *columns, int n,
			 TupleTableSlot *slot)
{
	/* a virtual slot that holds a row and owns nothing is simply written over */
	if (TTS_EMPTY(slot) || TTS_SHOULDFREE(slot))
	{
		ExecClearTuple(slot);
		ExecStoreVirtualTuple(slot);
	}
	for (int i = 0; i < n; i++)
	{
		int			column = columns ? columns[i] : i;

		slot->tts_values[i] = values[column];
		slot->tts_isnull[i] = isnull[column];
	}
}

static inline void
store_row(const GjHostSort *sort, uint32 row, const int *columns, int n, TupleTableSlot *slot)
{
	store_values(&sort->values[(Size) row * sort->ncolumns],
				 &sort->isnull[(Size) row * sort->ncolumns], columns, n, slot);
}

/* Gives rows that have been stored to PostgreSQL's sort. */
static void
sort_natively(GjHostSort *sort, uint32 nrows)
{
	for (uint32 row = 0; row < nrows; row++)
	{
		gj_sort_interrupts(row);
		store_row(sort, row, NULL, sort->ncolumns, sort->passing);
		tuplesort_puttupleslot(sort->tuplesort, sort->passing);
	}
	ExecClearTuple(sort->passing);
}

/* PostgreSQL's sort takes over, from the first row on. */
static void
hand_over(GjHostSort *sort)
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
	sort->passing = MakeSingleTupleTableSlot(sort->desc, &TTSOpsVirtual);
	/* columns that are not filled */
	memset(sort->passing->tts_values, 0, sizeof(Datum) * sort->desc->natts);
	memset(sort->passing->tts_isnull, true, sizeof(bool) * sort->desc->natts);
	sort_natively(sort, sort->nrows);
	MemoryContextDelete(sort->ranks_cxt);
	sort->values = NULL;
	sort->isnull = NULL;
	sort->room = sort->nrows = 0;
	MemoryContextSwitchTo(old);
}

/* True if so many rows take too much memory; what sorting will take is counted, too. */
static inline bool
is_too_large(const GjHostSort *sort, uint32 nrows)
{
	return nrows >= PG_UINT32_MAX / 2 ||
		MemoryContextMemAllocated(sort->ranks_cxt, false) +
		(sizeof(SortItem) + sizeof(uint64)) * nrows > (Size) work_mem * 1024;
}

/* True if ranks are not worth it, after n more rows. */
static bool
has_too_many_values(const GjHostSort *sort, uint32 n)
{
	if (sort->nrows / LOOK_ROWS == (sort->nrows - n) / LOOK_ROWS)
		return false;
	for (int k = 0; k < sort->nkeys; k++)
		if (sort->keys[k].ranks.nvalues > sort->nrows / 2)
			return true;
	return false;
}

/* More room for elements of some size, in an array for `room` rows. */
static void *
resize(void *array, Size size, Size room)
{
	return array == NULL ? palloc_extended(size * room, MCXT_ALLOC_HUGE) :
		repalloc_huge(array, size * room);
}

/* Has room for n more rows; once PostgreSQL sorts, for n rows. */
static void
make_room(GjHostSort *sort, uint32 n)
{
	bool		ranked = sort->tuplesort == NULL;
	MemoryContext old = MemoryContextSwitchTo(ranked ? sort->ranks_cxt : sort->cxt);
	Size		room = Max((Size) sort->room * 2, 1024);
	Size		row_size = sort->ncolumns * (sizeof(Datum) + sizeof(bool)) +
		sort->nkeys * sizeof(uint32);

	/* rows that have not come take no more than the half of work_mem */
	if (ranked && sort->room == 0 && sort->expected * row_size < (Size) work_mem * 512)
		room = Max(room, sort->expected);
	while (room < (Size) sort->nrows + n)
		room *= 2;
	sort->values = resize(sort->values, sort->ncolumns * sizeof(Datum), room);
	sort->isnull = resize(sort->isnull, sort->ncolumns * sizeof(bool), room);
	for (int k = 0; k < sort->nkeys && ranked; k++)
		if (!sort->keys[k].is_word)
			sort->keys[k].numbers = resize(sort->keys[k].numbers, sizeof(uint32), room);
	sort->room = room;
	MemoryContextSwitchTo(old);
}

GjRowBlock
gj_host_sort_reserve(GjHostSort *sort, uint32 n)
{
	GjRowBlock	block = {.ncolumns = sort->ncolumns};

	if (n > sort->room - sort->nrows)
		make_room(sort, n);
	block.values = sort->values + (Size) sort->nrows * sort->ncolumns;
	block.isnull = sort->isnull + (Size) sort->nrows * sort->ncolumns;
	memset(block.values, 0, sizeof(Datum) * n * sort->ncolumns);
	memset(block.isnull, true, sizeof(bool) * n * sort->ncolumns);
	return block;
}

/* Notes the words of a key of n more rows. */
static void
note_words(GjHostSort *sort, Key *key, uint32 n)
{
	Size		at = (Size) sort->nrows * sort->ncolumns + key->attno - 1;

	for (uint32 i = 0; i < n; i++, at += sort->ncolumns)
	{
		uint64		word;

		if (sort->isnull[at])
		{
			key->has_nulls = true;
			continue;
		}
		word = order_word(key->type, sort->values[at]);
		key->min = Min(key->min, word);
		key->max = Max(key->max, word);
	}
}

/* True if two values have as many bytes; one of them compressed, or of another header, has not. */
static inline bool
is_as_large(Form_pg_attribute attr, Datum a, Datum b)
{
	const char *x = DatumGetPointer(a);
	const char *y = DatumGetPointer(b);

	if (attr->attlen > 0)
		return true;
	if (attr->attlen == -1 && VARATT_IS_1B(x) && VARATT_IS_1B(y) &&
		!VARATT_IS_1B_E(x) && !VARATT_IS_1B_E(y))
		return VARSIZE_1B(x) == VARSIZE_1B(y);
	return datumGetSize(a, false, attr->attlen) == datumGetSize(b, false, attr->attlen);
}

/*
 * Gives numbers to a key of n more rows.  A value that is known takes the place of its equals.
 * False if that takes too much memory.
 */
static bool
note_numbers(GjHostSort *sort, Key *key, uint32 n)
{
	Form_pg_attribute attr = TupleDescAttr(sort->desc, key->attno - 1);
	bool		stands_for = !key->byval && sort->ranked[key->attno - 1] == key;
	Size		at = (Size) sort->nrows * sort->ncolumns + key->attno - 1;

	for (uint32 i = 0; i < n; i++, at += sort->ncolumns)
	{
		uint32		number;

		if (sort->isnull[at])
		{
			key->has_nulls = true;
			key->numbers[sort->nrows + i] = 0;
			continue;
		}
		number = gj_ranks_number(&key->ranks, sort->values[at]);
		key->numbers[sort->nrows + i] = number;
		if (stands_for && is_as_large(attr, key->ranks.values[number], sort->values[at]))
			sort->values[at] = key->ranks.values[number];
		if (number == key->ranks.nvalues - 1 && is_too_large(sort, sort->nrows + n))
			return false;
	}
	return true;
}

/* Copies what lies outside of n more rows in a column; false if that takes too much memory. */
static bool
copy_values(GjHostSort *sort, int column, uint32 n)
{
	Form_pg_attribute attr = TupleDescAttr(sort->desc, column);
	const Key  *key = sort->ranked[column];
	Size		at = (Size) sort->nrows * sort->ncolumns + column;
	bool		fits = true;
	MemoryContext old;

	if (attr->attbyval)
		return true;
	old = MemoryContextSwitchTo(sort->ranks_cxt);
	for (uint32 i = 0; i < n && fits; i++, at += sort->ncolumns)
	{
		if (sort->isnull[at] ||
			(key != NULL &&
			 sort->values[at] == key->ranks.values[key->numbers[sort->nrows + i]]))
			continue;
		sort->values[at] = datumCopy(sort->values[at], false, attr->attlen);
		fits = !is_too_large(sort, sort->nrows + n);
	}
	MemoryContextSwitchTo(old);
	return fits;
}

void
gj_host_sort_put(GjHostSort *sort, uint32 n)
{
	bool		fits = true;

	if (sort->tuplesort != NULL)
	{
		sort_natively(sort, n);
		return;
	}
	for (int k = 0; k < sort->nkeys && fits; k++)
	{
		Key		   *key = &sort->keys[k];

		if (key->is_word)
			note_words(sort, key, n);
		else
			fits = note_numbers(sort, key, n);
	}
	for (int i = 0; i < sort->ncolumns && fits; i++)
		fits = copy_values(sort, i, n);
	sort->nrows += n;
	if (!fits || is_too_large(sort, sort->nrows) || has_too_many_values(sort, n))
		hand_over(sort);
}

static inline bool
is_null(const GjHostSort *sort, uint32 row, const Key *key)
{
	return key->has_nulls && sort->isnull[(Size) row * sort->ncolumns + key->attno - 1];
}

/* Takes bits for a value, from the highest ones of a word on. */
static void
take_bits(GjHostSort *sort, int *nfree, int nbits, int *word, int *shift)
{
	if (nbits > *nfree)
	{
		sort->nwords++;
		*nfree = 64;
	}
	*nfree -= nbits;
	*word = sort->nwords - 1;
	*shift = *nfree;
}

/* Decides where the bits of each key lie; returns the number of free ones in the last word. */
static int
place_keys(GjHostSort *sort)
{
	int			nfree = 0;

	sort->nwords = 0;
	for (int k = 0; k < sort->nkeys; k++)
	{
		Key		   *key = &sort->keys[k];

		if (key->min > key->max)
			key->min = key->max;	/* NULLs only */
		key->nbits = key->min == key->max ? 0 : pg_leftmost_one_pos64(key->max - key->min) + 1;
		if (key->has_nulls)
			take_bits(sort, &nfree, 1, &key->null_word, &key->null_shift);
		if (key->nbits > 0)
			take_bits(sort, &nfree, key->nbits, &key->word, &key->shift);
	}
	return nfree;
}

/* Packs a key of all rows into their words. */
static void
pack_key(GjHostSort *sort, const Key *key, const uint32 *ranks)
{
	for (uint32 row = 0; row < sort->nrows; row++)
	{
		uint64	   *words = &sort->words[(Size) row * sort->nwords];
		uint64		word;

		gj_sort_interrupts(row);
		if (key->has_nulls && is_null(sort, row, key))
		{
			words[key->null_word] |= (uint64) !key->nulls_first << key->null_shift;
			continue;
		}
		if (key->has_nulls)
			words[key->null_word] |= (uint64) key->nulls_first << key->null_shift;
		if (key->nbits == 0)
			continue;
		word = ranks != NULL ? ranks[key->numbers[row]] :
			order_word(key->type, sort->values[(Size) row * sort->ncolumns + key->attno - 1]);
		words[key->word] |= (key->descending ? key->max - word : word - key->min) << key->shift;
	}
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

/*
 * Sorts rows of one word each, whose lowest bits have room for the number of the row.  Returns their
 * order, which takes the place of the words.
 */
static uint32 *
sort_words(GjHostSort *sort, int low, int row_bits)
{
	uint64		mask = (UINT64CONST(1) << row_bits) - 1;
	uint64	   *words = sort->words;
	uint32	   *order;

	for (uint32 row = 0; row < sort->nrows; row++)
		words[row] |= row;
	words = gj_sort_by_digits(words, sort->nrows, low);
	order = (uint32 *) words;
	for (uint32 i = 0; i < sort->nrows; i++)
		order[i] = words[i] & mask;
	return order;
}

/* Sorts rows by comparing their words; returns their order. */
static uint32 *
sort_rows(GjHostSort *sort)
{
	SortItem   *items = palloc_extended(sizeof(SortItem) * (Size) sort->nrows, MCXT_ALLOC_HUGE);
	uint32	   *order = (uint32 *) items;

	for (uint32 row = 0; row < sort->nrows; row++)
		items[row] = (SortItem) {.word = sort->words[(Size) row * sort->nwords],.row = row};
	sort_items(items, sort->nrows, sort);
	for (uint32 i = 0; i < sort->nrows; i++)
		order[i] = items[i].row;
	pfree(sort->words);
	return order;
}

/* Packs the keys of all rows; their ranks and numbers are not needed any more. */
static void
pack_keys(GjHostSort *sort, uint32 **ranks)
{
	sort->words = palloc_extended(sizeof(uint64) * (Size) sort->nrows * Max(sort->nwords, 1),
								  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int k = 0; k < sort->nkeys; k++)
	{
		pack_key(sort, &sort->keys[k], ranks[k]);
		if (ranks[k] == NULL)
			continue;
		pfree(ranks[k]);
		pfree(sort->keys[k].numbers);
	}
}

static void
sort_by_ranks(GjHostSort *sort)
{
	uint32	  **ranks = palloc0(sizeof(uint32 *) * sort->nkeys);
	int			row_bits = pg_leftmost_one_pos32(sort->nrows | 1) + 1;
	int			nfree;

	for (int k = 0; k < sort->nkeys; k++)
	{
		Key		   *key = &sort->keys[k];

		if (key->is_word)
			continue;
		ranks[k] = gj_ranks_make(&key->ranks, &key->max);
		key->min = 0;
	}
	nfree = place_keys(sort);
	pack_keys(sort, ranks);
	pfree(ranks);
	if (sort->nwords == 0)
		sort->order = sort_words(sort, 64, row_bits);
	else if (sort->nwords == 1 && row_bits <= nfree)
		sort->order = sort_words(sort, nfree, row_bits);
	else
		sort->order = sort_rows(sort);
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
		stats->nvalues += sort->keys[k].ranks.nvalues;
	stats->kbytes = MemoryContextMemAllocated(sort->cxt, true) / 1024;
	MemoryContextSwitchTo(old);
}

bool
gj_host_sort_next(GjHostSort *sort, const int *columns, int n, TupleTableSlot *slot)
{
	if (sort->tuplesort == NULL)
	{
		if (sort->next == sort->nrows)
			return false;
		if (sort->nrows - sort->next > AHEAD_ROWS)
		{
			Size		ahead = (Size) sort->order[sort->next + AHEAD_ROWS] * sort->ncolumns;

			__builtin_prefetch(&sort->values[ahead]);
			__builtin_prefetch(&sort->isnull[ahead]);
		}
		store_row(sort, sort->order[sort->next++], columns, n, slot);
		return true;
	}
	if (!tuplesort_gettupleslot(sort->tuplesort, true, false, sort->sorted, NULL))
		return false;
	slot_getallattrs(sort->sorted);
	store_values(sort->sorted->tts_values, sort->sorted->tts_isnull, columns, n, slot);
	return true;
}

void
gj_host_sort_end(GjHostSort *sort)
{
	if (sort->tuplesort != NULL)
	{
		ExecDropSingleTupleTableSlot(sort->passing);
		ExecDropSingleTupleTableSlot(sort->sorted);
		tuplesort_end(sort->tuplesort);
	}
	MemoryContextDelete(sort->cxt);
}
