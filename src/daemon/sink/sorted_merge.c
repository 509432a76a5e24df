/*
 * sorted_merge.c
 *	  Merges sorted runs to batches; see sink.h.
 *
 * A tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1) has the next row of each
 * input: a game a level finds the next one of all.  Rows are taken by number; their values are
 * copied a column at a time, when a batch is full or an input needs its next block.
 */
#include "sink.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* Of an input that has no more rows, behind all others. */
#define GJ_NO_INPUT		UINT32_MAX

/* The next row of an input. */
typedef struct GjMergeNode
{
	int64_t		key;			/* the first one that differs, as gj_order_value makes it */
	uint32_t	input;
} GjMergeNode;

/* A row that was taken. */
typedef struct GjMergeRow
{
	uint32_t	input;
	uint32_t	row;			/* of its block */
	uint32_t	heap;			/* where its bytes go */
} GjMergeRow;

typedef struct GjMerge
{
	const GjSortedLayout *layout;
	const GjRunHost *host;
	const GjTarget *target;
	const GjSortedInput *inputs;
	GjSortedBlock *blocks;		/* of the inputs */
	const uint8_t **pointers;	/* theirs */
	uint32_t   *at;				/* the next row of each */
	uint32_t	nleaves;		/* inputs, and such without a row, up to a power of two */
	GjMergeNode *loser;			/* [nleaves]: of the games of each inner node, 1 is the root */
	uint32_t	winner;			/* the input with the first row of all */
	int64_t		flip[GJ_MAX_KEYS];	/* -1: descending */
	uint32_t	first_key;		/* the keys before it are the same in all rows */
	bool		refs;
	uint32_t   *nnullable;		/* [noutputs]: blocks that have NULLs in the column */
	GjMergeRow *rows;			/* that were taken and are not in the slot yet */
	uint32_t	nrows;
	uint8_t    *slot;			/* NULL: none has been begun */
	GjSlotHeader header;		/* of the slot, with the rows that were taken */
} GjMerge;

/* ---- the layout */

bool
gj_sorted_layout(const GjProgram *program, GjSortedLayout *layout)
{
	const GjSortKey *sort_keys = gj_program_array(program, GjSortKey, sort_keys);
	uint32_t	n = gj_program_noutputs(program);

	memset(layout, 0, sizeof(*layout));
	layout->noutputs = n;
	layout->nkeys = gj_sort_nkeys(program);
	layout->types = malloc((n + layout->nkeys) * sizeof(GjColumnType));
	layout->places = malloc((n + layout->nkeys) * sizeof(GjColumnPlace));
	if (!layout->types || !layout->places)
		return false;
	/* it fits: the program was checked */
	gj_program_layout_output(program, layout->types, &layout->batch, layout->places);
	layout->capacity = GJ_SORTED_KEYS_SIZE / (layout->nkeys * sizeof(int64_t));
	if (layout->capacity > layout->batch.capacity)
		layout->capacity = layout->batch.capacity;
	/* by outer joins, whatever the program says of the column */
	for (uint32_t c = 0; c < n; c++)
		layout->types[c].nullable = 1;
	for (uint32_t k = 0; k < layout->nkeys; k++)
	{
		layout->types[n + k] = (GjColumnType) {GJ_INT8, sizeof(int64_t), 0, 0};
		layout->places[n + k].data = GJ_OUTPUT_SLOT_SIZE + k * layout->capacity * sizeof(int64_t);
		layout->places[n + k].nulls = 0;
		layout->descending |= (uint32_t) sort_keys[k].descending << k;
	}
	layout->all = layout->batch;
	layout->all.ncolumns = n + layout->nkeys;
	return true;
}

void
gj_sorted_layout_free(GjSortedLayout *layout)
{
	free(layout->types);
	free(layout->places);
	memset(layout, 0, sizeof(*layout));
}

/* ---- the tree */

static int64_t
key_of(const GjMerge *m, uint32_t input, uint32_t k)
{
	const GjSortedBlock *block = &m->blocks[input];

	return ((const int64_t *) block->data[m->layout->noutputs + k])[m->at[input]] ^ m->flip[k];
}

/* What stands for an input in the tree. */
static GjMergeNode
node_of(const GjMerge *m, uint32_t input)
{
	if (m->blocks[input].nrows == 0)
		return (GjMergeNode) {INT64_MAX, GJ_NO_INPUT};
	return (GjMergeNode) {key_of(m, input, m->first_key), input};
}

/* True if the row of a comes before that of b, whose first keys are equal. */
static bool
ties_before(const GjMerge *m, const GjMergeNode *a, const GjMergeNode *b)
{
	if (a->input == GJ_NO_INPUT || b->input == GJ_NO_INPUT)
		return b->input == GJ_NO_INPUT && a->input != GJ_NO_INPUT;
	for (uint32_t k = m->first_key + 1; k < m->layout->nkeys; k++)
	{
		int64_t		x = key_of(m, a->input, k);
		int64_t		y = key_of(m, b->input, k);

		if (x != y)
			return x < y;
	}
	return false;
}

/* An input has another row: plays its games, from its leaf up to the winner of all. */
static void
play(GjMerge *m, uint32_t input)
{
	GjMergeNode winner = node_of(m, input);

	for (uint32_t i = (input + m->nleaves) / 2; i > 0; i /= 2)
	{
		GjMergeNode *loser = &m->loser[i];
		bool		lost = loser->key < winner.key;
		int64_t		keys;
		uint32_t	inputs;

		if (loser->key == winner.key)
			lost = ties_before(m, loser, &winner);
		/* changes them over without a branch, which nobody could foresee */
		keys = (loser->key ^ winner.key) & -(int64_t) lost;
		inputs = (loser->input ^ winner.input) & -(uint32_t) lost;
		loser->key ^= keys;
		loser->input ^= inputs;
		winner.key ^= keys;
		winner.input ^= inputs;
	}
	m->winner = winner.input;
}

/* The games of all inputs below node i: the winner, whom the node above gets. */
static GjMergeNode
play_all(GjMerge *m, uint32_t i)
{
	GjMergeNode a;
	GjMergeNode b;
	bool		first;

	if (i >= m->nleaves)
		return node_of(m, i - m->nleaves);
	a = play_all(m, 2 * i);
	b = play_all(m, 2 * i + 1);
	first = a.key == b.key ? ties_before(m, &a, &b) : a.key < b.key;
	m->loser[i] = first ? b : a;
	return first ? a : b;
}

/* ---- batches */

/* Bytes that the references of a row take in a heap. */
static uint32_t
row_space(const GjMerge *m, const GjSortedBlock *block, uint32_t row)
{
	uint32_t	space = 0;

	for (uint32_t c = 0; c < m->layout->noutputs; c++)
		if (m->layout->types[c].kind == GJ_REF && !(block->nulls[c] && block->nulls[c][row]))
			space += gj_ref_space(((const uint64_t *) block->data[c])[row]);
	return space;
}

#define COPY_VALUES(type) \
	for (uint32_t i = 0; i < n; i++) \
		((type *) to)[i] = ((const type *) m->blocks[m->rows[i].input].data[c])[m->rows[i].row]; \
	break

/* Copies the values of column c, no references, to rows `to` ... of the slot. */
static void
copy_values(const GjMerge *m, uint32_t c, uint8_t *to, uint32_t n)
{
	uint32_t	width = m->layout->types[c].width;

	switch (width)
	{
		case 1:
			COPY_VALUES(uint8_t);
		case 2:
			COPY_VALUES(uint16_t);
		case 4:
			COPY_VALUES(uint32_t);
		case 8:
			COPY_VALUES(uint64_t);
		default:
			for (uint32_t i = 0; i < n; i++)
				memcpy(to + (size_t) i * width, m->blocks[m->rows[i].input].data[c] +
					   (size_t) m->rows[i].row * width, width);
	}
}

/* Copies null flags of column c to rows first, ... of the slot, if it has a map or needs one. */
static void
copy_nulls(const GjMerge *m, uint32_t c, uint32_t first, uint32_t n)
{
	uint8_t    *to = m->slot + m->layout->places[c].nulls;
	uint8_t    *has_nulls = &gj_slot_has_nulls(m->slot)[c];

	if (m->nnullable[c] == 0 && !*has_nulls)
		return;
	if (!*has_nulls)
		memset(to, 0, first);
	*has_nulls = 1;
	for (uint32_t i = 0; i < n; i++)
	{
		const uint8_t *nulls = m->blocks[m->rows[i].input].nulls[c];

		to[first + i] = nulls ? nulls[m->rows[i].row] : 0;
	}
}

/* Copies the references of a row, and what they refer to. */
static void
copy_refs(const GjMerge *m, const GjMergeRow *from, uint32_t to)
{
	const GjSortedBlock *block = &m->blocks[from->input];
	uint8_t    *heap = m->slot + m->layout->batch.heap;
	uint32_t	at = from->heap;

	for (uint32_t c = 0; c < m->layout->noutputs; c++)
	{
		uint64_t	ref = 0;
		uint32_t	space;

		if (m->layout->types[c].kind != GJ_REF)
			continue;
		if (!(block->nulls[c] && block->nulls[c][from->row]))
			ref = ((const uint64_t *) block->data[c])[from->row];
		space = gj_ref_space(ref);
		if (space > 0)
		{
			memcpy(heap + at, block->heap + gj_ref_offset(ref), space);
			ref = gj_ref_make(at, gj_ref_length(ref));
			at += space;
		}
		((uint64_t *) (m->slot + m->layout->places[c].data))[to] = ref;
	}
}

/* Copies the rows that were taken behind those that the slot has. */
static void
copy_rows(GjMerge *m)
{
	uint32_t	n = m->nrows;
	uint32_t	first = m->header.nrows - n;

	for (uint32_t c = 0; c < m->layout->noutputs && n > 0; c++)
	{
		if (m->layout->types[c].kind != GJ_REF)
			copy_values(m, c, m->slot + m->layout->places[c].data +
						(size_t) first * m->layout->types[c].width, n);
		copy_nulls(m, c, first, n);
	}
	for (uint32_t i = 0; i < n && m->refs; i++)
		copy_refs(m, &m->rows[i], first + i);
	m->nrows = 0;
}

static GjStatus
send_batch(GjMerge *m)
{
	copy_rows(m);
	memcpy(m->slot, &m->header, sizeof(m->header));
	m->slot = NULL;
	return m->target->final->send(m->target->arg, m->header.nrows);
}

static GjStatus
begin_batch(GjMerge *m)
{
	if (m->host->stop(m->host->arg))
		return GJ_CANCELLED;
	GJ_TRY(m->target->final->slot(m->target->arg, &m->slot));
	memset(gj_slot_has_nulls(m->slot), 0, m->layout->noutputs);
	m->header = (GjSlotHeader) {0, 0};
	return GJ_OK;
}

/* Takes the next row of an input. */
static GjStatus
take_row(GjMerge *m, uint32_t input)
{
	uint32_t	row = m->at[input]++;
	uint32_t	space = m->refs ? row_space(m, &m->blocks[input], row) : 0;

	if (m->slot && (m->header.nrows == m->layout->batch.capacity ||
					space > m->layout->batch.heap_size - m->header.heap_used))
		GJ_TRY(send_batch(m));
	if (!m->slot)
		GJ_TRY(begin_batch(m));
	m->rows[m->nrows++] = (GjMergeRow) {input, row, m->header.heap_used};
	m->header.nrows++;
	m->header.heap_used += space;
	return GJ_OK;
}

/* ---- the merge */

static GjStatus
next_block(GjMerge *m, uint32_t input)
{
	GjSortedBlock *block = &m->blocks[input];

	for (uint32_t c = 0; c < m->layout->noutputs; c++)
	{
		m->nnullable[c] -= block->nulls[c] != NULL;
		block->nulls[c] = NULL;
	}
	m->at[input] = 0;
	block->nrows = 0;
	GJ_TRY(m->inputs[input].next(m->inputs[input].arg, block));
	for (uint32_t c = 0; c < m->layout->noutputs; c++)
		m->nnullable[c] += block->nulls[c] != NULL;
	return GJ_OK;
}

/*
 * True if key k has one value in all rows, as have all keys before it, so that its first and last
 * one tell: whether a value is NULL is a key, and mostly none is.
 */
static bool
is_constant(const GjMerge *m, uint32_t ninputs, uint32_t k)
{
	const int64_t *value = NULL;

	for (uint32_t i = 0; i < ninputs; i++)
	{
		const int64_t *first = (const int64_t *) m->blocks[i].data[m->layout->noutputs + k];

		if (m->blocks[i].nrows == 0)
			continue;
		if (!value)
			value = first;
		if (*first != *value || m->inputs[i].end_keys[k] != *value)
			return false;
	}
	return value != NULL;
}

/* The first block of each input. */
static GjStatus
start_merge(GjMerge *m, uint32_t ninputs)
{
	uint32_t	ncolumns = m->layout->noutputs + m->layout->nkeys;

	for (uint32_t c = 0; c < m->layout->noutputs; c++)
		m->refs |= m->layout->types[c].kind == GJ_REF;
	for (uint32_t k = 0; k < m->layout->nkeys; k++)
		m->flip[k] = m->layout->descending >> k & 1 ? -1 : 0;
	for (uint32_t i = 0; i < m->nleaves; i++)
	{
		m->blocks[i].data = m->pointers + (size_t) i * 2 * ncolumns;
		m->blocks[i].nulls = m->blocks[i].data + ncolumns;
		if (i < ninputs)
			GJ_TRY(next_block(m, i));
	}
	while (m->first_key + 1 < m->layout->nkeys && is_constant(m, ninputs, m->first_key))
		m->first_key++;
	m->winner = play_all(m, 1).input;
	return GJ_OK;
}

static GjStatus
merge(GjMerge *m, uint64_t *nrows)
{
	while (m->winner != GJ_NO_INPUT)
	{
		uint32_t	input = m->winner;

		GJ_TRY(take_row(m, input));
		(*nrows)++;
		if (m->at[input] == m->blocks[input].nrows)
		{
			/* rows of the block that were taken go with it */
			copy_rows(m);
			GJ_TRY(next_block(m, input));
		}
		play(m, input);
	}
	return m->slot ? send_batch(m) : GJ_OK;
}

GjStatus
gj_sorted_merge(const GjSortedLayout *layout, const GjSortedInput *inputs, uint32_t ninputs,
				const GjRunHost *host, const GjTarget *target, uint64_t *nrows)
{
	GjMerge		m = {.layout = layout,.host = host,.target = target,.inputs = inputs};
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	*nrows = 0;
	for (m.nleaves = 1; m.nleaves < ninputs; m.nleaves *= 2)
		;
	m.blocks = calloc(m.nleaves, sizeof(GjSortedBlock));
	m.pointers = calloc((size_t) m.nleaves * 2 * (layout->noutputs + layout->nkeys),
						sizeof(uint8_t *));
	m.at = calloc(m.nleaves, sizeof(uint32_t));
	m.loser = malloc(m.nleaves * sizeof(GjMergeNode));
	m.nnullable = calloc(layout->noutputs + 1, sizeof(uint32_t));
	m.rows = malloc(layout->batch.capacity * sizeof(GjMergeRow));
	if (m.blocks && m.pointers && m.at && m.loser && m.nnullable && m.rows)
		status = start_merge(&m, ninputs);
	if (status == GJ_OK)
		status = merge(&m, nrows);
	free(m.blocks);
	free(m.pointers);
	free(m.at);
	free(m.loser);
	free(m.nnullable);
	free(m.rows);
	return status;
}
