/*
 * expression.h
 *	  Evaluates an expression of a program over a tile of rows.
 *
 * One instruction at a time over the whole tile: the dispatch is uniform and its
 * price is shared by all rows of the tile (MonetDB/X100's vectors; Crystal's tiles on
 * the GPU).  On the GPU a thread block works on one tile; each row's registers are
 * touched by one thread only, so no barrier is needed inside (GJ_TILE_FOR).
 */
#ifndef GJ_ROWS_EXPRESSION_H
#define GJ_ROWS_EXPRESSION_H

#include "wire/program.h"
#include "array.h"
#include "datetime.h"
#include "numeric.h"
#include "operators.h"
#include "similarity.h"
#include "text.h"

/*
 * A column in the memory of the device.  One of integers can be packed: then data has numbers u
 * without sign, and the value is base + factor * u (frame of reference, as in Zukowski et al. 2006).
 *
 * A packed one of references has codes or offsets there.
 *
 * - Codes: the dictionary, uint64_t[] at heap + base, says which reference each stands for, and
 *   factor how many there are.
 * - Offsets: factor is not positive.  A row's bytes lie at heap + base + its offset, and end at the
 *   offset of the row behind it, which the last one has as well.  An offset is u, or with 2 bytes u
 *   beyond a number that GJ_OFFSET_ROWS rows share: uint32_t[] at heap + base.  data begins at row
 *   -factor of them.
 */
typedef struct GjColumn
{
	const void *data;
	const uint8_t *nulls;		/* one byte a row, or NULL: nothing is NULL */
	const uint8_t *heap;		/* GJ_REF: what the references are relative to */
	uint32_t	kind;			/* GjKind */
	uint16_t	width;			/* bytes of a value */
	uint8_t		packed;			/* bytes of u: 1, 2 or 4; 0: values lie here as they are; or GJ_PACKED_ROW,
								 * of integers only: u is the number of the row */
	uint8_t		narrow;			/* packed integers: all values fit 32 bits with a sign */
	int64_t		base;
	int64_t		factor;			/* not 0 but of offsets */
	const uint8_t *answers;		/* codes: one byte a code, whose bit q answers question q; NULL: the
								 * conditions are evaluated row by row */
} GjColumn;

#define GJ_PACKED_ROW		8

/* Bytes from a row to the next one. */
GJ_FN uint32_t
gj_column_stride(const GjColumn *column)
{
	return column->packed ? column->packed : column->width;
}

#define GJ_OFFSET_ROWS		256u

/* True if what a packed column has are offsets of its values. */
GJ_FN bool
gj_column_has_offsets(const GjColumn *column)
{
	return column->kind == GJ_REF && column->packed && column->factor <= 0;
}

/* True if what a packed column has are codes of a dictionary. */
GJ_FN bool
gj_column_has_codes(const GjColumn *column)
{
	return column->kind == GJ_REF && column->packed && column->factor > 0;
}

/* Leaves the first n rows of a column out. */
GJ_FN void
gj_column_skip(GjColumn *column, uint64_t n)
{
	if (column->data)
		column->data = (const uint8_t *) column->data + n * gj_column_stride(column);
	if (column->nulls)
		column->nulls += n;
	if (gj_column_has_offsets(column))
		column->factor -= (int64_t) n;
}

/*
 * A question is a condition on one column of texts: a run of instructions that begins with a
 * GJ_OP_LOAD_T and needs no other value but constants.  Where the column has answers, the answer is
 * looked up and the instructions are skipped.  gpujoind notes questions in their LOAD_Ts when it has
 * checked a program (program/questions.c): register b takes the answer, and imm says the rest.
 */
#define GJ_QUESTIONS		8	/* of a column: the bits of an answer's byte */
#define GJ_IS_GUARDED		1	/* bit of imm: as in the program */

GJ_FN int64_t
gj_question_imm(int64_t imm, uint32_t number, uint32_t skips)
{
	return (imm & GJ_IS_GUARDED) | (int64_t) (number + 1) << 8 | (int64_t) skips << 16;
}

GJ_FN bool
gj_is_question(const GjInstr *instr)
{
	return instr->op == GJ_OP_LOAD_T && (instr->imm >> 8) != 0;
}

/* The number of a question among those of its column. */
GJ_FN uint32_t
gj_question_number(const GjInstr *instr)
{
	return (uint32_t) (instr->imm >> 8 & 0xFF) - 1;
}

/* The instructions behind the LOAD_T that belong to a question. */
GJ_FN uint32_t
gj_question_skips(const GjInstr *instr)
{
	return (uint32_t) (instr->imm >> 16);
}

/* The code of a program, in the memory of the device. */
typedef struct GjCode
{
	const GjExpr *exprs;
	const GjInstr *instrs;
	const int64_t *constants;
	const GjColumnType *columns;
} GjCode;

/*
 * Rows of a join so far: tuple i consists of row rowid[s][i] of every source s that
 * takes part; rowid[s] = NULL means row i itself.  A row id of GJ_NO_ROW stands for a
 * row of NULLs; no_row says for which sources to look out for it.
 */
typedef struct GjView
{
	const GjColumn *columns;	/* all of the program's, in device memory */
	uint32_t	nrows;
	uint16_t	no_row;			/* sources that may have it, one bit each */
	uint16_t	same;			/* sources of which row rowid[s][0] is in all tuples: for
								 * gj_eval inside the nested loop */
	const uint32_t *rowid[GJ_MAX_SOURCES];
} GjView;

/* Registers of a tile: row i of register r is at [r * stride + i]. */
typedef struct GjTile
{
	int64_t    *value;
	uint8_t    *null;
	uint32_t	stride;
} GjTile;

GJ_FN uint32_t
gj_view_row(const GjView *view, uint32_t source, uint32_t tuple)
{
	const uint32_t *rowid = view->rowid[source];

	return rowid ? rowid[tuple] : tuple;
}

/* True if row ids of a source may be GJ_NO_ROW. */
GJ_FN bool
gj_view_no_row(const GjView *view, uint32_t source)
{
	return view->no_row >> source & 1;
}

/* True if a row of a column, which may be GJ_NO_ROW, is NULL. */
GJ_FN bool
gj_row_is_null(const GjColumn *column, uint32_t row)
{
	return row == GJ_NO_ROW || (column->nulls && column->nulls[row]);
}

/* The number that a row of a packed column has. */
GJ_FN uint32_t
gj_packed_code(const GjColumn *column, uint32_t row)
{
	return column->packed == 1 ? ((const uint8_t *) column->data)[row] :
		column->packed == 2 ? ((const uint16_t *) column->data)[row] :
		column->packed == 4 ? ((const uint32_t *) column->data)[row] : row;
}

/* The answer to a question about a row that is not NULL, of a column that has answers. */
GJ_FN bool
gj_answer(const GjColumn *column, uint32_t question, uint32_t row)
{
	return column->answers[gj_packed_code(column, row)] >> question & 1;
}

/* The offset of a row's bytes in a column that has offsets. */
GJ_FN uint64_t
gj_value_offset(const GjColumn *column, uint32_t row)
{
	const uint32_t *shared = (const uint32_t *) (column->heap + column->base);

	if (column->packed == 4)
		return ((const uint32_t *) column->data)[row];
	return (uint64_t) shared[(row - (uint64_t) column->factor) / GJ_OFFSET_ROWS] +
		((const uint16_t *) column->data)[row];
}

/* The reference of a row of a column that has offsets. */
GJ_FN uint64_t
gj_ref_at_offset(const GjColumn *column, uint32_t row)
{
	const uint64_t offset = gj_value_offset(column, row);

	return gj_ref_make((uint64_t) column->base + offset, gj_value_offset(column, row + 1) - offset);
}

/* Value of a packed column. */
GJ_FN int64_t
gj_packed_value(const GjColumn *column, uint32_t row)
{
	uint64_t	u;

	if (gj_column_has_offsets(column))
		return (int64_t) gj_ref_at_offset(column, row);
	u = gj_packed_code(column, row);
	if (column->kind == GJ_REF)
		return (int64_t) ((const uint64_t *) (column->heap + column->base))[u];
	/* factors and differences can need all 64 bits */
	return (int64_t) ((uint64_t) column->base + (uint64_t) column->factor * u);
}

/* Value of a GJ_REF column. */
GJ_FN uint64_t
gj_column_ref(const GjColumn *column, uint32_t row)
{
	return column->packed ? (uint64_t) gj_packed_value(column, row) :
		((const uint64_t *) column->data)[row];
}

/* Stores an integer of 2, 4 or 8 bytes. */
GJ_FN void
gj_put_value(void *to, uint32_t width, int64_t value)
{
	if (width == 8)
		*(int64_t *) to = value;
	else if (width == 4)
		*(int32_t *) to = (int32_t) value;
	else
		*(int16_t *) to = (int16_t) value;
}

/* Value of a computable column as a register holds it. */
GJ_FN int64_t
gj_column_value(const GjColumn *column, uint32_t row)
{
	if (column->packed)
		return gj_packed_value(column, row);
	switch (column->kind)
	{
		case GJ_BOOL:
			return ((const uint8_t *) column->data)[row];
		case GJ_INT2:
			return ((const int16_t *) column->data)[row];
		case GJ_INT4:
			return ((const int32_t *) column->data)[row];
		case GJ_UINT4:
			return ((const uint32_t *) column->data)[row];
		case GJ_UINT1:
			return ((const uint8_t *) column->data)[row];
		case GJ_FLOAT4:
			return gj_double_to_bits((double) ((const float *) column->data)[row]);
		default:				/* GJ_INT8, GJ_FLOAT8 */
			return ((const int64_t *) column->data)[row];
	}
}

GJ_FN void
gj_eval_load(const GjView *view, uint32_t source, const GjColumn *column,
			 uint32_t base, uint32_t n, int64_t *value, uint8_t *null)
{
	if (view->same >> source & 1)
	{
		uint32_t	row = view->rowid[source][0];
		bool		none = gj_row_is_null(column, row);
		int64_t		v = none ? 0 : gj_column_value(column, row);

		GJ_TILE_FOR(i, n)
		{
			value[i] = v;
			null[i] = none;
		}
	}
	else if (gj_view_no_row(view, source))
	{
		GJ_TILE_FOR(i, n)
		{
			uint32_t	row = gj_view_row(view, source, base + i);
			bool		none = gj_row_is_null(column, row);

			value[i] = none ? 0 : gj_column_value(column, row);
			null[i] = none;
		}
	}
	else
	{
		GJ_TILE_FOR(i, n)
		{
			uint32_t	row = gj_view_row(view, source, base + i);

			value[i] = gj_column_value(column, row);
			null[i] = column->nulls ? column->nulls[row] : 0;
		}
	}
}

GJ_FN void
gj_eval_load_is_null(const GjView *view, uint32_t source, const GjColumn *column,
					 uint32_t base, uint32_t n, int64_t *value, uint8_t *null)
{
	bool		same = view->same >> source & 1;
	bool		look = column->nulls || gj_view_no_row(view, source);

	GJ_TILE_FOR(i, n)
	{
		uint32_t	row = same ? view->rowid[source][0] : gj_view_row(view, source, base + i);

		value[i] = look && gj_row_is_null(column, row);
		null[i] = 0;
	}
}

/* The operands of instruction pc: values, and null flags; and its result. */
#define GJ_OPERANDS \
	const GjInstr instr = code->instrs[pc]; \
	const uint32_t arg = instr.arg; \
	int64_t    *d = tile->value + (size_t) instr.dst * tile->stride; \
	const int64_t *a = tile->value + (size_t) instr.a * tile->stride; \
	const int64_t *b = tile->value + (size_t) instr.b * tile->stride; \
	uint8_t    *dn = tile->null + (size_t) instr.dst * tile->stride; \
	const uint8_t *an = tile->null + (size_t) instr.a * tile->stride; \
	const uint8_t *bn = tile->null + (size_t) instr.b * tile->stride

/* What the instructions below share: an operator of operands x and y over the rows of the tile. */
#define GJ_STRICT(op, flags, type, call, bits) \
	case op: \
		GJ_TILE_FOR(i, n) \
		{ \
			const int64_t x = a[i], y = b[i]; \
			const uint8_t null = (flags); \
			type r; \
			const uint32_t s = (call); \
			(void) x, (void) y; \
			if (s != GJ_OK && !null) *status = s; \
			d[i] = (bits); \
			dn[i] = null; \
		} \
		break;
/* unary ones that can fail have b = a */
#define GJ_CHECKED(op, call) GJ_STRICT(op, an[i] | bn[i], int64_t, call, r)
#define GJ_CHECKED_F(op, call) GJ_STRICT(op, an[i] | bn[i], double, call, gj_double_to_bits(r))
#define GJ_BINARY(op, value) GJ_CHECKED(op, GJ_SET(value))
#define GJ_UNARY(op, value) GJ_STRICT(op, an[i], int64_t, GJ_SET(value), r)
#define GJ_UNARY_F(op, value) GJ_STRICT(op, an[i], double, GJ_SET(value), gj_double_to_bits(r))

/* The bytes of a row that is not NULL; GJ_UNKNOWN_VALUE if the backend kept them. */
GJ_FN uint32_t
gj_column_bytes(const GjColumn *column, uint32_t row, const uint8_t **bytes, uint32_t *n)
{
	*bytes = (const uint8_t *) column->data + (size_t) row * column->width;
	*n = column->width;
	if (column->kind != GJ_REF)
		return GJ_OK;
	return gj_referred(gj_column_ref(column, row), column->heap, bytes, n);
}

/* Loads a value that has to be decoded: bytes, or a numeric. */
GJ_FN uint32_t
gj_load_decoded(const GjInstr *instr, const GjColumn *column, uint32_t row, int64_t *value)
{
	const uint8_t *bytes;
	uint32_t	n;
	uint32_t	status = gj_column_bytes(column, row, &bytes, &n);

	*value = 0;
	if (status == GJ_OK && instr->op == GJ_OP_LOAD_T && instr->n != GJ_BYTES_ARRAY)
		return gj_text_of(bytes, n, instr->n, value);
	if (status == GJ_OK)
		status = gj_varlena(bytes, n, &bytes, &n);
	if (status == GJ_OK && instr->op == GJ_OP_LOAD_T)
		return gj_array_text(bytes, n, value);
	return status == GJ_OK ? gj_decode_numeric(bytes, n, (int) instr->n, value) : status;
}

/*
 * The operators that the everyday conditions on numbers do without: in a function of
 * their own, so that they cost kernels no registers.  Returns an error that a row met.
 */
GJ_NOINLINE_FN uint32_t
gj_eval_more(const GjCode *code, uint32_t pc, const GjView *view, uint32_t base, uint32_t n,
			 const GjTile *tile)
{
	GJ_OPERANDS;
	uint32_t	error = GJ_OK;
	uint32_t   *status = &error;

	switch (instr.op)
	{
		case GJ_OP_LOAD_T:
		case GJ_OP_LOAD_D:
			GJ_TILE_FOR(i, n)
			{
				const GjColumn *column = &view->columns[instr.arg];
				uint32_t	source = code->columns[instr.arg].source;
				uint32_t	row = view->same >> source & 1 ? view->rowid[source][0] :
					gj_view_row(view, source, base + i);
				bool		null = gj_row_is_null(column, row) || ((instr.imm & GJ_IS_GUARDED) && (an[i] || !a[i]));
				int64_t		value = 0;

				if (!null)
				{
					uint32_t	s = gj_load_decoded(&instr, column, row, &value);

					if (s != GJ_OK)
						*status = s;
				}
				d[i] = value;
				dn[i] = null;
			}
			break;
		case GJ_OP_CONST_T:
			GJ_TILE_FOR(i, n)
			{
				uint32_t	s = gj_text_checked((const uint8_t *) (code->constants + instr.arg), instr.n, &d[i]);

				if (s != GJ_OK)
					*status = s;
				dn[i] = (uint8_t) instr.imm;
			}
			break;

		GJ_UNARY(GJ_OP_MOVE, x)
		case GJ_OP_IF:
			GJ_TILE_FOR(i, n)
			{
				if (!an[i] && a[i])
				{
					dn[i] = bn[i];
					d[i] = b[i];
				}
			}
			break;
		case GJ_OP_COALESCE:
			GJ_TILE_FOR(i, n)
			{
				int64_t		value = an[i] ? b[i] : a[i];

				dn[i] = an[i] & bn[i];
				d[i] = value;
			}
			break;
		case GJ_OP_NULL_IF:
			GJ_TILE_FOR(i, n)
			{
				uint8_t		null = an[i] | (!bn[i] && b[i]);

				d[i] = a[i];
				dn[i] = null;
			}
			break;
		case GJ_OP_GREATEST_I:
		case GJ_OP_LEAST_I:
		case GJ_OP_GREATEST_F:
		case GJ_OP_LEAST_F:
			GJ_TILE_FOR(i, n)
			{
				bool		is_float = instr.op == GJ_OP_GREATEST_F || instr.op == GJ_OP_LEAST_F;
				bool		least = instr.op == GJ_OP_LEAST_I || instr.op == GJ_OP_LEAST_F;
				/* of equal ones (0 and -0) the first */
				int64_t		x = least ? b[i] : a[i];
				int64_t		y = least ? a[i] : b[i];
				bool		less = is_float ? gj_lt_f(GJ_F(x), GJ_F(y)) : x < y;
				bool		take_b = an[i] || (!bn[i] && less);
				int64_t		value = take_b ? b[i] : a[i];

				dn[i] = an[i] & bn[i];
				d[i] = value;
			}
			break;

		GJ_BINARY(GJ_OP_BIT_AND, x & y)
		GJ_BINARY(GJ_OP_BIT_OR, x | y)
		GJ_BINARY(GJ_OP_BIT_XOR, x ^ y)
		GJ_UNARY(GJ_OP_BIT_NOT, ~x)
		GJ_CHECKED(GJ_OP_SHIFT_LEFT, gj_shift_left(x, y, arg, &r))
		GJ_CHECKED(GJ_OP_SHIFT_RIGHT, gj_shift_right(x, y, arg, &r))
		GJ_UNARY(GJ_OP_SIGN_I, (x > 0) - (x < 0))

		GJ_CHECKED(GJ_OP_F_TO_I, gj_f_to_i(GJ_F(x), arg, &r))
		GJ_CHECKED_F(GJ_OP_F_TO_F4, gj_f_to_f4(GJ_F(x), &r))
		GJ_CHECKED_F(GJ_OP_SQRT_F, gj_sqrt_f(GJ_F(x), &r))
		GJ_UNARY_F(GJ_OP_FLOOR_F, gj_floor(GJ_F(x)))
		GJ_UNARY_F(GJ_OP_CEIL_F, gj_ceil(GJ_F(x)))
		GJ_UNARY_F(GJ_OP_ROUND_F, gj_rint(GJ_F(x)))
		GJ_UNARY_F(GJ_OP_TRUNC_F, gj_trunc_f(GJ_F(x)))
		GJ_UNARY_F(GJ_OP_SIGN_F, gj_sign_f(GJ_F(x)))

		/* a NULL register has no address to follow */
		GJ_BINARY(GJ_OP_EQ_T, !null && gj_eq_t(x, y))
		GJ_BINARY(GJ_OP_NE_T, !null && !gj_eq_t(x, y))
		GJ_BINARY(GJ_OP_LT_T, !null && gj_compare_t(x, y) < 0)
		GJ_BINARY(GJ_OP_LE_T, !null && gj_compare_t(x, y) <= 0)
		GJ_BINARY(GJ_OP_GT_T, !null && gj_compare_t(x, y) > 0)
		GJ_BINARY(GJ_OP_GE_T, !null && gj_compare_t(x, y) >= 0)
		case GJ_OP_IN_T:
			GJ_TILE_FOR(i, n)
			{
				bool		found = !an[i] && gj_in_t(a[i], code->constants + instr.arg, instr.n);
				uint8_t		null = an[i] | (!found && instr.imm != 0);

				d[i] = found;
				dn[i] = null;
			}
			break;
		GJ_UNARY(GJ_OP_HASH_T, null ? 0 : gj_hash_t(x))
		GJ_UNARY(GJ_OP_KEY_T, null ? 0 : gj_key_t(x, arg))
		GJ_CHECKED(GJ_OP_LIKE, null ? GJ_SET(0) : gj_like(x, y, arg != 0, &r))
		GJ_BINARY(GJ_OP_STARTS_WITH, !null && gj_starts_with(x, y))
		GJ_UNARY(GJ_OP_TRIM, null ? 0 : gj_trim(x, arg))
		GJ_UNARY(GJ_OP_LENGTH_T, null ? 0 : gj_length_t(x, arg != 0))
		GJ_UNARY(GJ_OP_OCTETS_T, gj_text_length(x))
		GJ_CHECKED(GJ_OP_WORD_T, null ? GJ_SET(0) : gj_word_t(x, &r))
		case GJ_OP_SUBSTR:
			GJ_TILE_FOR(i, n)
			{
				bool		has_count = instr.n != 0;
				uint8_t		null = an[i] | bn[i] | (has_count ? bn[tile->stride + i] : 0);
				int64_t		r = 0;
				uint32_t	s = null ? (uint32_t) GJ_OK :
					gj_substr(a[i], b[i], has_count ? b[tile->stride + i] : 0, has_count, instr.arg != 0, &r);

				if (s != GJ_OK)
					*status = s;
				d[i] = r;
				dn[i] = null;
			}
			break;
		case GJ_OP_LOAD_PAIR:
			GJ_TILE_FOR(i, n)
			{
				uint32_t	v = view->same >> instr.arg & 1 ? view->rowid[instr.arg][0] :
					gj_view_row(view, instr.arg, base + i);

				d[i] = v == GJ_NO_ROW ? 0 : v;
				dn[i] = v == GJ_NO_ROW;
			}
			break;
		case GJ_OP_SIMILARITY:
			GJ_TILE_FOR(i, n)
			{
				uint8_t		null = an[i] | bn[i] | bn[tile->stride + i];

				d[i] = null ? 0 : gj_double_to_bits(gj_set_similarity(instr.arg, (uint64_t) a[i], (uint64_t) b[i],
																	  (uint64_t) b[tile->stride + i]));
				dn[i] = null;
			}
			break;

		GJ_BINARY(GJ_OP_LEFT_T, null ? 0 : gj_left_right(x, y, false, arg != 0))
		GJ_CHECKED(GJ_OP_RIGHT_T, (r = null || y <= INT32_MIN ? 0 : gj_left_right(x, y, true, arg != 0),
								   y > INT32_MIN ? (uint32_t) GJ_OK : (uint32_t) GJ_UNKNOWN_VALUE))

		GJ_CHECKED(GJ_OP_SCALE_UP, gj_mul_i(x, instr.imm, GJ_INT8, &r))
		GJ_UNARY(GJ_OP_SCALE_DOWN, gj_scale_down(x, instr.imm, arg))
		GJ_CHECKED(GJ_OP_DIGITS_D, (r = x, x < instr.imm && x > -instr.imm ?
									(uint32_t) GJ_OK : (uint32_t) GJ_OVERFLOW))
		GJ_CHECKED_F(GJ_OP_D_TO_F, gj_decimal_to_f(x, instr.imm, &r))

		GJ_CHECKED(GJ_OP_DATE_ADD, gj_date_add(x, y, &r))
		GJ_CHECKED(GJ_OP_DATE_SUB, gj_date_sub(x, y, &r))
		GJ_CHECKED(GJ_OP_DATE_TO_TIMESTAMP, gj_date_to_timestamp(x, &r))
		GJ_UNARY(GJ_OP_TIMESTAMP_TO_DATE, gj_timestamp_to_date(x))
		GJ_CHECKED(GJ_OP_ADD_INTERVAL, null ? GJ_SET(0) :
				   gj_add_interval(x, code->constants + arg, &r))
		GJ_CHECKED(GJ_OP_EXTRACT_TIMESTAMP, gj_extract_timestamp(x, arg, &r))
		GJ_CHECKED(GJ_OP_TRUNC_TIMESTAMP, gj_trunc_timestamp(x, arg, &r))
		default:
			break;
	}
	return error;
}

/* Looks up the answers to the question that begins at pc. */
GJ_NOINLINE_FN void
gj_eval_answers(const GjCode *code, uint32_t pc, const GjView *view, uint32_t base, uint32_t n,
				const GjTile *tile)
{
	const GjInstr instr = code->instrs[pc];
	const GjColumn *column = &view->columns[instr.arg];
	const uint32_t source = code->columns[instr.arg].source;
	const uint32_t question = gj_question_number(&instr);
	const int64_t *a = tile->value + (size_t) instr.a * tile->stride;
	const uint8_t *an = tile->null + (size_t) instr.a * tile->stride;
	int64_t    *d = tile->value + (size_t) instr.b * tile->stride;
	uint8_t    *dn = tile->null + (size_t) instr.b * tile->stride;

	GJ_TILE_FOR(i, n)
	{
		uint32_t	row = view->same >> source & 1 ? view->rowid[source][0] :
			gj_view_row(view, source, base + i);
		bool		null = gj_row_is_null(column, row) ||
			((instr.imm & GJ_IS_GUARDED) && (an[i] || !a[i]));

		d[i] = !null && gj_answer(column, question, row);
		dn[i] = null;
	}
}

/*
 * Evaluates expression `e` for tuples base .. base+n-1 of the view.  The result is in
 * register code->exprs[e].result of the tile; *status becomes an error that a row
 * met (any one), else it is left alone.  Rows that are NULL have an unspecified value.
 */
GJ_FN void
gj_eval(const GjCode *code, uint32_t e, const GjView *view,
		uint32_t base, uint32_t n, const GjTile *tile, uint32_t *status)
{
	const GjExpr *expr = &code->exprs[e];

	for (uint32_t pc = expr->first; pc < expr->first + expr->ninstrs; pc++)
	{
		GJ_OPERANDS;

		switch (instr.op)
		{
			case GJ_OP_LOAD:
				gj_eval_load(view, code->columns[instr.arg].source,
							 &view->columns[instr.arg], base, n, d, dn);
				break;
			case GJ_OP_LOAD_IS_NULL:
				gj_eval_load_is_null(view, code->columns[instr.arg].source,
									 &view->columns[instr.arg], base, n, d, dn);
				break;
			case GJ_OP_CONST:
				GJ_TILE_FOR(i, n)
				{
					d[i] = instr.imm;
					dn[i] = (uint8_t) instr.n;
				}
				break;

			GJ_SHORT_OPERATORS(GJ_CHECKED)
			GJ_LONG_OPERATORS(GJ_CHECKED, GJ_CHECKED_F)
			GJ_CHECKED(GJ_OP_NEG_I, gj_sub_i(0, x, arg, &r))
			GJ_CHECKED(GJ_OP_ABS_I, gj_abs_i(x, arg, &r))
			GJ_CHECKED(GJ_OP_RANGE_I, (r = x, gj_range_status(r, arg)))

			GJ_CHECKED_F(GJ_OP_DIV_F, gj_div_f(GJ_F(x), GJ_F(y), &r))
			GJ_UNARY(GJ_OP_NEG_F, x ^ INT64_MIN)
			GJ_UNARY(GJ_OP_ABS_F, x & INT64_MAX)
			GJ_UNARY_F(GJ_OP_I_TO_F, (double) x)

			case GJ_OP_AND:
				GJ_TILE_FOR(i, n)
				{
					bool		isfalse = (!an[i] && !a[i]) || (!bn[i] && !b[i]);
					uint8_t		null = !isfalse && (an[i] | bn[i]);

					d[i] = !isfalse;
					dn[i] = null;
				}
				break;
			case GJ_OP_OR:
				GJ_TILE_FOR(i, n)
				{
					bool		istrue = (!an[i] && a[i]) || (!bn[i] && b[i]);
					uint8_t		null = !istrue && (an[i] | bn[i]);

					d[i] = istrue;
					dn[i] = null;
				}
				break;
			GJ_UNARY(GJ_OP_NOT, !x)
			case GJ_OP_ONLY_IF:
				GJ_TILE_FOR(i, n)
				{
					uint8_t		null = an[i] | bn[i] | !b[i];

					d[i] = a[i];
					dn[i] = null;
				}
				break;
			case GJ_OP_IS_NULL:
				GJ_TILE_FOR(i, n)
				{
					d[i] = an[i];
					dn[i] = 0;
				}
				break;
			case GJ_OP_IS_TRUE:
				GJ_TILE_FOR(i, n)
				{
					d[i] = !an[i] && a[i];
					dn[i] = 0;
				}
				break;
			case GJ_OP_IS_FALSE:
				GJ_TILE_FOR(i, n)
				{
					d[i] = !an[i] && !a[i];
					dn[i] = 0;
				}
				break;
			case GJ_OP_IN_I:
			case GJ_OP_IN_F:
				GJ_TILE_FOR(i, n)
				{
					bool		found = instr.op == GJ_OP_IN_I ?
						gj_in_i(a[i], code->constants + instr.arg, instr.n) :
						gj_in_f(GJ_F(a[i]), code->constants + instr.arg, instr.n);
					uint8_t		null = an[i] | (!found && instr.imm != 0);

					d[i] = found;
					dn[i] = null;
				}
				break;
			default:
				{
					uint32_t	s;

					if (gj_is_question(&instr) && view->columns[instr.arg].answers)
					{
						gj_eval_answers(code, pc, view, base, n, tile);
						pc += gj_question_skips(&instr);
						break;
					}
					s = gj_eval_more(code, pc, view, base, n, tile);
					if (s != GJ_OK)
						*status = s;
				}
				break;
		}
	}
}

#undef GJ_OPERANDS
#undef GJ_STRICT
#undef GJ_BINARY
#undef GJ_UNARY
#undef GJ_UNARY_F
#undef GJ_CHECKED
#undef GJ_CHECKED_F

#endif							/* GJ_ROWS_EXPRESSION_H */
