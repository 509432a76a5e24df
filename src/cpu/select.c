/*
 * select.c
 *	  Conditions and keys: expressions over the tuples of a view.
 */
#include <stdlib.h>
#include <string.h>

#include "rows/sorted.h"
#include "cpu_device.h"
#include "tile_keys.h"

/* ---- select */

typedef struct GjSelect
{
	GjQueue    *queue;
	const GjView *view;
	uint32_t	expr;
	uint32_t   *positions;		/* an item's at the item's place, until they are packed */
	uint32_t   *counts;			/* of items */
} GjSelect;

static void
select_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjSelect   *s = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, s->view->nrows);
	uint32_t	result = s->queue->code.exprs[s->expr].result;
	const int64_t *value = tile->value + (size_t) result * tile->stride;
	const uint8_t *null = tile->null + (size_t) result * tile->stride;
	uint32_t   *out = s->positions + begin;
	uint32_t	count = 0;
	uint32_t	status = GJ_OK;

	for (uint32_t base = begin, n; base < end; base += n)
	{
		n = end - base < GJ_TILE_ROWS ? end - base : GJ_TILE_ROWS;
		gj_eval(&s->queue->code, s->expr, s->view, base, n, tile, &status);
		for (uint32_t i = 0; i < n; i++)
		{
			out[count] = base + i;
			count += !null[i] && value[i] != 0;
		}
	}
	s->counts[item] = count;
	gj_note_row_error(s->queue, status);
}

static GjStatus
gj_cpu_select(GjQueue *queue, const GjView *view, uint32_t expr, uint32_t *positions, uint32_t *n)
{
	GjSelect	s = {queue, view, expr, positions};
	uint32_t	nitems = gj_items(view->nrows);
	uint32_t	total = 0;

	*n = 0;
	s.counts = calloc(nitems + 1, sizeof(uint32_t));
	if (!s.counts)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_for_items(queue, view->nrows, select_item, &s);
	for (uint32_t i = 0; i < nitems; i++)
	{
		const uint32_t *from = positions + (size_t) i * GJ_ITEM_ROWS;

		if (from != positions + total)
			memmove(positions + total, from, s.counts[i] * sizeof(uint32_t));
		total += s.counts[i];
	}
	free(s.counts);
	*n = total;
	return gj_take_row_error(queue);
}

/* ---- pick */

typedef struct GjPick
{
	uint32_t   *to;
	const uint32_t *from;
	uint32_t	base;
	const uint32_t *positions;
	uint32_t	n;
} GjPick;

static void
pick_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjPick *p = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, p->n);

	if (p->from)
		for (uint32_t i = begin; i < end; i++)
			p->to[i] = p->from[p->positions[i]];
	else
		for (uint32_t i = begin; i < end; i++)
			p->to[i] = p->base + p->positions[i];
}

static GjStatus
gj_cpu_pick(GjQueue *queue, uint32_t *to, const uint32_t *from, uint32_t base,
			const uint32_t *positions, uint32_t n)
{
	GjPick		p = {to, from, base, positions, n};

	gj_for_items(queue, n, pick_item, &p);
	return GJ_OK;
}

typedef struct GjPickValues
{
	int64_t    *to;
	const int64_t *from;
	const uint32_t *positions;
	uint32_t	n;
} GjPickValues;

static void
pick_values_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjPickValues *p = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, p->n);

	for (uint32_t i = begin; i < end; i++)
		p->to[i] = p->from[p->positions[i]];
}

static GjStatus
gj_cpu_pick_values(GjQueue *queue, int64_t *to, const int64_t *from, const uint32_t *positions,
				   uint32_t n)
{
	GjPickValues p = {to, from, positions, n};

	gj_for_items(queue, n, pick_values_item, &p);
	return GJ_OK;
}

/* ---- keys */

typedef struct GjKeysWork
{
	GjQueue    *queue;			/* NULL: tiles of gj_cpu_tile_keys */
	const GjCode *code;
	const GjView *view;
	uint32_t	first;
	uint32_t	n;
	const int32_t *operands;	/* expressions, or columns as -1 - column */
	bool		ordered;
	const GjKeys *keys;
} GjKeysWork;

/* Evaluates operand k over tuples base .. base+n-1; returns the register that has it. */
static uint32_t
eval_operand(const GjKeysWork *w, uint32_t k, uint32_t base, uint32_t n, const GjTile *tile,
			 uint32_t *kind, uint32_t *status)
{
	const GjCode *code = w->code;
	int32_t		e = w->operands[k];

	if (e < 0)
	{
		*kind = code->columns[-1 - e].kind;
		gj_eval_load(w->view, code->columns[-1 - e].source, &w->view->columns[-1 - e], base, n,
					 tile->value, tile->null);
		return 0;
	}
	*kind = code->exprs[e].kind;
	gj_eval(code, (uint32_t) e, w->view, base, n, tile, status);
	return code->exprs[e].result;
}

/* Stores operand k of tuples base .. base+n-1, which is in a register of the tile. */
static void
store_keys(const GjKeysWork *w, uint32_t k, uint32_t base, uint32_t n, uint32_t reg,
		   bool is_float, const GjTile *tile)
{
	const int64_t *value = tile->value + (size_t) reg * tile->stride;
	const uint8_t *null = tile->null + (size_t) reg * tile->stride;
	int64_t    *to = w->keys->value[k] + base;
	uint8_t    *to_null = w->keys->null + base;

	if (w->ordered)
		for (uint32_t i = 0; i < n; i++)
			to[i] = null[i] ? 0 : gj_ordered_bits(value[i], is_float);
	else
		for (uint32_t i = 0; i < n; i++)
			to[i] = gj_key_bits(value[i], is_float);
	if (k == 0)
		for (uint32_t i = 0; i < n; i++)
			to_null[i] = null[i] != 0;
	else
		for (uint32_t i = 0; i < n; i++)
			to_null[i] |= null[i] != 0;
}

/* Stores key k if it is a column of integers as it is, which most are.  False: it is not. */
static bool
store_column(const GjKeysWork *w, uint32_t k, uint32_t base, uint32_t n)
{
	int32_t		e = w->operands[k];
	const GjExpr *expr = &w->code->exprs[e < 0 ? 0 : e];
	const GjInstr *instr = &w->code->instrs[expr->first];
	const GjColumn *column = &w->view->columns[instr->arg];
	int64_t    *to = w->keys->value[k] + base;
	uint8_t    *to_null = w->keys->null + base;
	uint32_t	source;

	if (e < 0 || w->ordered || expr->ninstrs != 1 || instr->op != GJ_OP_LOAD)
		return false;
	source = w->code->columns[instr->arg].source;
	if (w->view->rowid[source] || gj_view_no_row(w->view, source) ||
		(column->kind != GJ_INT8 && column->kind != GJ_INT4) || column->packed)
		return false;
	if (column->kind == GJ_INT8)
		memcpy(to, (const int64_t *) column->data + base, n * sizeof(int64_t));
	else
		for (uint32_t i = 0; i < n; i++)
			to[i] = ((const int32_t *) column->data)[base + i];
	if (k == 0)
		memset(to_null, 0, n);
	for (uint32_t i = 0; i < n && column->nulls; i++)
		to_null[i] |= column->nulls[base + i] != 0;
	return true;
}

/* All operands of tuples base .. base+n-1. */
static void
keys_tile(const GjKeysWork *w, uint32_t base, uint32_t n, const GjTile *tile, uint32_t *status)
{
	for (uint32_t k = 0; k < w->keys->nkeys; k++)
	{
		uint32_t	kind;
		uint32_t	reg;

		if (store_column(w, k, base, n))
			continue;
		reg = eval_operand(w, k, base, n, tile, &kind, status);
		store_keys(w, k, base, n, reg, kind == GJ_FLOAT8 || kind == GJ_FLOAT4, tile);
	}
}

static void
keys_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjKeysWork *w = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->n);
	uint32_t	status = GJ_OK;

	for (uint32_t at = begin, n; at < end; at += n)
	{
		n = end - at < GJ_TILE_ROWS ? end - at : GJ_TILE_ROWS;
		keys_tile(w, w->first + at, n, tile, &status);
	}
	gj_note_row_error(w->queue, status);
}

/* The operands of keys that are expressions: first_expr, first_expr + 1, ... */
static void
number_operands(uint32_t first_expr, uint32_t nkeys, int32_t *operands)
{
	for (uint32_t k = 0; k < nkeys; k++)
		operands[k] = (int32_t) (first_expr + k);
}

GjStatus
gj_cpu_tile_keys(const GjCode *code, const GjView *view, uint32_t first_expr, const GjTile *tile,
				 const GjKeys *keys)
{
	int32_t		operands[GJ_MAX_KEYS];
	GjKeysWork	w = {NULL, code, view, 0, view->nrows, operands, false, keys};
	uint32_t	status = GJ_OK;

	number_operands(first_expr, keys->nkeys, operands);
	keys_tile(&w, 0, view->nrows, tile, &status);
	return (GjStatus) status;
}

static GjStatus
gj_cpu_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n, uint32_t first_expr,
			const GjKeys *keys)
{
	int32_t		operands[GJ_MAX_KEYS];
	GjKeysWork	w = {queue, &queue->code, view, first, n, operands, false, keys};

	number_operands(first_expr, keys->nkeys, operands);
	gj_for_items(queue, n, keys_item, &w);
	return GJ_OK;
}

static GjStatus
gj_cpu_ordered_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
					const int32_t *operands, const GjKeys *keys)
{
	GjKeysWork	w = {queue, &queue->code, view, first, n, operands, true, keys};

	gj_for_items(queue, n, keys_item, &w);
	return GJ_OK;
}

const GjColumnOps gj_cpu_columns = {
	.measure = gj_cpu_measure,
	.pack = gj_cpu_pack,
	.unpack = gj_cpu_unpack,
	.number_values = gj_cpu_number_values,
	.find_offsets = gj_cpu_find_offsets,
	.move_values = gj_cpu_move_values,
	.pack_offsets = gj_cpu_pack_offsets,
	.answer = gj_cpu_answer,
	.rebase_refs = gj_cpu_rebase_refs,
	.set_columns = gj_cpu_set_columns,
	.select = gj_cpu_select,
	.pick = gj_cpu_pick,
	.pick_values = gj_cpu_pick_values,
	.keys = gj_cpu_keys,
	.ordered_keys = gj_cpu_ordered_keys,
	.select_flags = gj_cpu_select_flags,
	.gather = gj_cpu_gather
};
