/*
 * fused_rows.h
 *	  The fused operator: filter, joins and aggregates of probe rows in one pass.
 *
 * It serves steps out of which a tuple comes at most once: nothing is numbered, and no row
 * ids are written between the steps.  What a plan may hold, and the meaning of its parts,
 * is here; both devices compile it.  The daemon makes plans (run/fused_plan.c).
 *
 * Expressions of a common form (a column; a column and a column or constant; products of those)
 * are computed straight from the columns, all others by gj_eval.  Row ids of a tuple are found by
 * slot: slot 0 is the probe source, slot s+1 the source of step s.
 */
#ifndef GJ_DEVICE_FUSED_ROWS_H
#define GJ_DEVICE_FUSED_ROWS_H

#include "device.h"
#include "group.h"
#include "rows/hash.h"
#include "rows/operators.h"

typedef enum GjFusedForm
{
	GJ_FUSED_NONE,				/* a condition: none, always true.  A value: none is taken */
	GJ_FUSED_SIMPLE,			/* a value: of column a, or of a <op> b */
	GJ_FUSED_BYTES,				/* a value: the hash of column a's bytes, or a half of their key; or a
								 * term: whether they are like those of column b, or a constant's */
	GJ_FUSED_RANGE,				/* a term: an integer column is between two constants */
	GJ_FUSED_ANSWER,			/* a term: column a's answer to question `arg` is true */
	GJ_FUSED_PRODUCTS,			/* a value: sums and differences of products, of 64 bits */
	GJ_FUSED_CASE,				/* a value: products where terms are true, else 0 or NULL */
	GJ_FUSED_OR,				/* a term: begins others, which may be true instead of those before */
	GJ_FUSED_ALL_TERMS,			/* a condition: all terms are true, up to the end or an OR */
	GJ_FUSED_CODE				/* gj_eval */
} GjFusedForm;

/* The value of an operand for a tuple whose row ids are rowids[slot * stride]; true: NULL. */
GJ_FN bool
gj_fused_operand(const GjColumn *columns, int column, uint32_t slot, int64_t constant,
				 const uint32_t *rowids, uint32_t stride, int64_t *value)
{
	const GjColumn *c = &columns[column];
	uint32_t	row;

	*value = constant;
	if (column < 0)
		return false;
	row = rowids[slot * stride];
	if (gj_row_is_null(c, row))
	{
		*value = 0;
		return true;
	}
	*value = gj_column_value(c, row);
	return false;
}

/* The value of a GJ_FUSED_SIMPLE expression; true: NULL. */
GJ_FN bool
gj_fused_simple(const GjFusedExpr *e, const GjColumn *columns, const uint32_t *rowids,
				uint32_t stride, int64_t *value, uint32_t *status)
{
	int64_t		a;
	int64_t		b;
	bool		null = gj_fused_operand(columns, e->a, e->slot_a, e->constant, rowids, stride, &a);
	uint32_t	s;

	*value = a;
	if (e->op == GJ_OP_LOAD)
		return null;
	if (gj_fused_operand(columns, e->b, e->slot_b, e->constant, rowids, stride, &b) || null)
		return true;
	s = gj_apply(e->op, e->arg, a, b, value);
	if (s != GJ_OK)
		*status = s;
	return false;
}

/* Text of a column; true: NULL. */
GJ_FN bool
gj_fused_text(const GjColumn *column, uint32_t form, uint32_t row, int64_t *text, uint32_t *status)
{
	const uint8_t *bytes;
	uint32_t	n;
	uint32_t	s;

	*text = 0;
	if (gj_row_is_null(column, row))
		return true;
	s = gj_column_bytes(column, row, &bytes, &n);
	if (s == GJ_OK)
		s = gj_text_of(bytes, n, form & ~GJ_BYTES_TRIMMED, text);
	if (s != GJ_OK)
		*status = s;
	else if (form & GJ_BYTES_TRIMMED)
		*text = gj_trim(*text, GJ_TRIM_RIGHT);
	return false;
}

/* The constant text of a GJ_FUSED_BYTES term. */
GJ_FN int64_t
gj_fused_constant(const GjFusedExpr *e, const int64_t *constants)
{
	return gj_text((const uint8_t *) (constants + (e->constant >> 16)),
				   (uint32_t) (e->constant & GJ_MAX_TEXT));
}

/* True if text `a` is what a GJ_FUSED_BYTES term wants, by text `b`; LIKE's does not dangle. */
GJ_FN bool
gj_fused_matches(const GjFusedExpr *e, int64_t a, int64_t b)
{
	bool		same = e->op == GJ_OP_EQ_T ? gj_eq_t(a, b) :
		gj_like_match(gj_text_bytes(a), gj_text_length(a), gj_text_bytes(b), gj_text_length(b),
					  (e->high & GJ_BYTES_UTF8) != 0);

	return same != ((e->high & GJ_BYTES_NOT) != 0);
}

/* The same of a term that is a list of texts. */
GJ_FN bool
gj_fused_in(const GjFusedExpr *e, const int64_t *constants, int64_t text)
{
	bool		in = gj_in_t(text, constants + (e->constant >> 16),
						 (uint32_t) (e->constant & GJ_MAX_TEXT));

	return in != ((e->high & GJ_BYTES_NOT) != 0);
}

/* The value of a GJ_FUSED_BYTES expression; true: NULL. */
GJ_FN bool
gj_fused_bytes(const GjFusedExpr *e, const int64_t *constants, const GjColumn *columns,
			   const uint32_t *rowids, uint32_t stride, int64_t *value, uint32_t *status)
{
	int64_t		a;
	int64_t		b;

	*value = 0;
	if (gj_fused_text(&columns[e->a], e->arg, rowids[e->slot_a * stride], &a, status))
		return true;
	if (e->op == GJ_OP_HASH_T)
	{
		*value = gj_hash_t(a);
		return false;
	}
	if (e->op == GJ_OP_KEY_T)
	{
		*value = gj_key_t(a, (uint32_t) e->high);
		return false;
	}
	if (e->op == GJ_OP_IN_T)
	{
		*value = gj_fused_in(e, constants, a);
		return false;
	}
	if (e->b < 0)
		b = gj_fused_constant(e, constants);
	else if (gj_fused_text(&columns[e->b], (uint32_t) e->constant, rowids[e->slot_b * stride], &b,
						   status))
		return true;
	*value = gj_fused_matches(e, a, b);
	return false;
}

/* The value of a GJ_FUSED_SIMPLE or GJ_FUSED_BYTES expression; true: NULL. */
GJ_FN bool
gj_fused_value(const GjFusedExpr *e, const int64_t *constants, const GjColumn *columns,
			   const uint32_t *rowids, uint32_t stride, int64_t *value, uint32_t *status)
{
	if (e->form == GJ_FUSED_BYTES)
		return gj_fused_bytes(e, constants, columns, rowids, stride, value, status);
	return gj_fused_simple(e, columns, rowids, stride, value, status);
}

/*
 * The value of a GJ_FUSED_PRODUCTS expression, whose factors these are; true: NULL.  An operation
 * whose operands are not NULL overflows whatever the others are.
 */
GJ_FN bool
gj_fused_products(const GjFusedFactor *factors, uint32_t n, const GjColumn *columns,
				  const uint32_t *rowids, uint32_t stride, int64_t *value, uint32_t *status)
{
	int64_t		sum = 0;
	int64_t		product = 0;
	bool		minus = false;
	bool		null = false;	/* the sum is */
	bool		null_product = false;
	bool		over = false;

	for (uint32_t k = 0; k < n; k++)
	{
		const GjFusedFactor *f = &factors[k];
		bool		null_factor;
		int64_t		x;

		null_factor = gj_fused_operand(columns, f->column, f->slot, f->constant, rowids, stride, &x);
		if (f->op != GJ_OP_LOAD)
			over |= gj_sum_i(f->constant, x, f->op == GJ_OP_SUB_I, &x) && !null_factor;
		if (f->join == GJ_OP_MUL_I)
		{
			null_product |= null_factor;
			over |= gj_mul_i(product, x, GJ_INT8, &product) != GJ_OK && !null_product;
			continue;
		}
		null |= null_product;
		over |= gj_sum_i(sum, product, minus, &sum) && !null;
		product = x;
		null_product = null_factor;
		minus = f->join == GJ_OP_SUB_I;
	}
	null |= null_product;
	over |= gj_sum_i(sum, product, minus, &sum) && !null;
	*value = null ? 0 : sum;
	if (over)
		*status = GJ_OVERFLOW;
	return null;
}

/* The value of a group key that is a carried column, as gj_group_carried; true: NULL. */
GJ_FN bool
gj_fused_carried(const GjFusedExpr *e, const GjColumn *columns, const uint32_t *rowids,
				 uint32_t stride, int64_t *value)
{
	uint32_t	row = rowids[e->slot_a * stride];

	*value = 0;
	if (gj_row_is_null(&columns[e->a], row))
		return true;
	*value = gj_group_carried(&columns[e->a], row);
	return false;
}

/* True if the answer of a GJ_FUSED_ANSWER term is. */
GJ_FN bool
gj_fused_answer(const GjFusedExpr *term, const GjColumn *columns, const uint32_t *rowids,
				uint32_t stride)
{
	const GjColumn *column = &columns[term->a];
	const uint32_t row = rowids[term->slot_a * stride];

	return !gj_row_is_null(column, row) && gj_answer(column, term->arg, row);
}

/* True if a term other than an OR is. */
GJ_FN bool
gj_fused_term(const GjFusedExpr *term, const int64_t *constants, const GjColumn *columns,
			  const uint32_t *rowids, uint32_t stride, uint32_t *status)
{
	int64_t		value;

	if (term->form == GJ_FUSED_ANSWER)
		return gj_fused_answer(term, columns, rowids, stride);
	if (gj_fused_value(term, constants, columns, rowids, stride, &value, status))
		return false;
	return term->form == GJ_FUSED_RANGE ? value >= term->constant && value <= term->high : value != 0;
}

/* True if the n terms of a GJ_FUSED_ALL_TERMS condition are, or those of one of its alternatives. */
GJ_FN bool
gj_fused_terms(const GjFusedPlan *plan, uint32_t first, uint32_t n, const int64_t *constants,
			   const GjColumn *columns, const uint32_t *rowids, uint32_t stride, uint32_t *status)
{
	bool		all = true;

	for (uint32_t t = first; t < first + n; t++)
	{
		const GjFusedExpr *term = &plan->terms[t];

		if (term->form != GJ_FUSED_OR)
			all = all && gj_fused_term(term, constants, columns, rowids, stride, status);
		else if (all)
			return true;
		else
			all = true;
	}
	return all;
}

/* The value of a GJ_FUSED_PRODUCTS or GJ_FUSED_CASE expression; true: NULL. */
GJ_FN bool
gj_fused_argument(const GjFusedPlan *plan, const GjFusedExpr *e, const int64_t *constants,
				  const GjColumn *columns, const uint32_t *rowids, uint32_t stride,
				  int64_t *value, uint32_t *status)
{
	if (e->form == GJ_FUSED_CASE &&
		!gj_fused_terms(plan, e->slot_a, e->slot_b, constants, columns, rowids, stride, status))
	{
		*value = 0;
		return e->op == GJ_OP_ONLY_IF;
	}
	return gj_fused_products(&plan->factors[e->expr], e->arg, columns, rowids, stride, value,
							 status);
}

/* ---- joins */

/* True if no tuple comes out of such a step: it only marks build rows. */
GJ_FN bool
gj_fused_ends(uint32_t join_type)
{
	return join_type == GJ_JOIN_RIGHT_SEMI || join_type == GJ_JOIN_RIGHT_ANTI;
}

/* True if such a step marks the build rows that have a match. */
GJ_FN bool
gj_fused_marks(uint32_t join_type)
{
	return gj_fused_ends(join_type) || join_type == GJ_JOIN_RIGHT || join_type == GJ_JOIN_FULL;
}

/* True if tuples go on that have found no row. */
GJ_FN bool
gj_fused_keeps_all(uint32_t join_type)
{
	return join_type == GJ_JOIN_LEFT || join_type == GJ_JOIN_FULL;
}

/* Does a tuple go on that has found a row, or none (found = false)? */
GJ_FN bool
gj_fused_goes_on(uint32_t join_type, bool found)
{
	return !gj_fused_ends(join_type) &&
		(gj_fused_keeps_all(join_type) || found == (join_type != GJ_JOIN_ANTI));
}

/* The r'th row of a key whose rows are start, start+1, ... of a table. */
GJ_FN uint32_t
gj_fused_row(const GjTableRef *table, uint32_t start, uint32_t r)
{
	return table->rows ? table->rows[start + r] : start + r;
}

/* ---- groups */

/* Group keys of one tuple that are compared, as GjGroupRows has them. */
typedef struct GjFusedKeys
{
	uint32_t	null;
	uint64_t	hash;
	int64_t		value[GJ_FUSED_GROUP_KEYS];
	const uint8_t *heap[GJ_FUSED_GROUP_KEYS];
} GjFusedKeys;

/* Adds key k, of kind `how`, to the keys; the heap is that of its column. */
GJ_FN void
gj_fused_add_key(GjFusedKeys *keys, uint32_t k, uint32_t how, bool null, int64_t value,
				 const uint8_t *heap, uint32_t *status)
{
	keys->value[k] = null ? 0 : value;
	keys->heap[k] = heap;
	keys->null |= (uint32_t) null << k;
	keys->hash = gj_group_add_key(keys->hash, k, how, null, value, heap, status);
}

GJ_FN bool
gj_fused_same_group(const GjFusedKeys *keys, const GjGroupRows *groups, uint32_t g)
{
	bool		same = gj_group_same_nulls(groups, keys->null, groups->null[g]);

	for (uint32_t k = 0; same && k < gj_group_rows_ncompared(groups); k++)
		same = (keys->null >> k & 1) ||
			gj_group_same_key(groups->how[k], keys->value[k], keys->heap[k], groups->value[k][g],
							  groups->heap[k]);
	return same;
}

#define GJ_FUSED_NO_GROUP	UINT32_MAX

/*
 * Copies row `row` of a probe column to row `at` of a missed tuple's.  A reference becomes one to
 * `heap`, which does not lie behind the column's.
 */
GJ_FN void
gj_fused_copy_value(const GjColumn *column, uint32_t row, const uint8_t *heap, uint8_t *data,
					uint8_t *nulls, uint32_t at)
{
	const uint8_t *from = (const uint8_t *) column->data + (size_t) row * column->width;
	uint8_t    *to = data + (size_t) at * column->width;

	nulls[at] = column->nulls ? column->nulls[row] : 0;
	if (column->kind == GJ_REF)
	{
		uint64_t	ref = nulls[at] ? 0 : gj_column_ref(column, row);

		/* what the backend kept lies nowhere here */
		if (!nulls[at] && gj_ref_length(ref) != GJ_REF_HELD)
			ref += gj_ref_make((uint64_t) (column->heap - heap), 0);
		*(uint64_t *) to = ref;
		return;
	}
	if (column->packed)
	{
		gj_put_value(to, column->width, gj_packed_value(column, row));
		return;
	}
	if (column->width % 4 == 0)
	{
		for (uint32_t i = 0; i < column->width / 4; i++)
			((uint32_t *) to)[i] = ((const uint32_t *) from)[i];
		return;
	}
	for (uint32_t i = 0; i < column->width; i++)
		to[i] = from[i];
}

/* The group of these keys, or GJ_FUSED_NO_GROUP.  The table is not being changed. */
GJ_FN uint32_t
gj_fused_group(const GjFusedKeys *keys, const GjGroups *groups)
{
	uint64_t	s;

	if (groups->nslots == 0)
		return GJ_FUSED_NO_GROUP;
	s = gj_hash_slot(keys->hash, groups->nslots);
	for (;;)
	{
		uint64_t	slot = groups->slots[s];

		if (slot == GJ_NO_SLOT)
			return GJ_FUSED_NO_GROUP;
		if (slot >> 32 == (keys->hash & UINT64_C(0xFFFFFFFF)) &&
			gj_fused_same_group(keys, &groups->rows, (uint32_t) slot))
			return (uint32_t) slot;
		if (++s == groups->nslots)
			s = 0;
	}
}

#endif							/* GJ_DEVICE_FUSED_ROWS_H */
