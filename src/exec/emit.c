/*
 * emit.c
 *	  Results of the device into tuple slots.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/uuid.h"

#include "exec/emit.h"
#include "load/tuple_id.h"
#include "rows/aggregate.h"

/* True if no column of a batch has the attribute (GJ_ATTRIBUTE_PLAIN). */
static inline bool
is_made_later(List *attributes, int attr)
{
	int			attribute = list_nth_int(attributes, attr);

	return attribute == GJ_ATTRIBUTE_COMPUTED || attribute == GJ_ATTRIBUTE_LATE;
}

/* What gj_emitter_check() has to know of a column. */
static void
describe_value(GjEmitColumn *column, Form_pg_attribute attr)
{
	column->attlen = attr->attlen;
	column->numeric = getBaseType(attr->atttypid) == NUMERICOID;
}

static GjEmitHow
how_to_emit(const GjColumnType *type, bool byval)
{
	if (type->kind == GJ_REF)
		return GJ_EMIT_REF;
	if (!byval)
		return GJ_EMIT_POINTER;
	switch (type->width)
	{
		case 1:
			return GJ_EMIT_BYTE;
		case 2:
			return GJ_EMIT_INT16;
		case 4:
			return GJ_EMIT_INT32;
		default:
			return GJ_EMIT_INT64;
	}
}

void
gj_emitter_init(GjEmitter *emitter, const GjProgram *program, TupleDesc desc,
				List *attributes, const int *outputs, int n)
{
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns);
	const uint32 *columns = gj_program_array(program, uint32, outputs);
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	uint32		noutputs = program->noutputs;
	GjColumnType *output_types = palloc(sizeof(GjColumnType) * Max(noutputs, 1));

	for (uint32 i = 0; i < noutputs; i++)
		output_types[i] = types[columns[i]];
	emitter->ncolumns = outputs ? n : noutputs;
	emitter->columns = palloc0(sizeof(GjEmitColumn) * Max(emitter->ncolumns, 1));
	emitter->places = palloc(sizeof(GjColumnPlace) * Max(noutputs, 1));
	for (uint32 i = 0, attr = 0; i < emitter->ncolumns; i++, attr++)
	{
		GjEmitColumn *column = &emitter->columns[i];

		while (!outputs && is_made_later(attributes, attr))
			attr++;
		column->output = outputs ? outputs[i] : i;
		column->attr = attr;
		column->width = output_types[column->output].width;
		column->how = how_to_emit(&output_types[column->output],
								  TupleDescAttr(desc, attr)->attbyval);
		if (!outputs && list_nth_int(attributes, attr) >= 0)
		{
			const GjColumnType *type = &types[columns[column->output]];

			column->how = sources[type->source].stage != 0 ? GJ_EMIT_DECIMAL :
				GJ_EMIT_STORED_DECIMAL;
			column->scale = list_nth_int(attributes, attr);
		}
		if (!outputs && list_nth_int(attributes, attr) == GJ_ATTRIBUTE_TUPLE_ID)
			column->how = GJ_EMIT_TUPLE_ID;
		describe_value(column, TupleDescAttr(desc, attr));
	}
	if (!gj_layout(output_types, noutputs, program->output_capacity, GJ_OUTPUT_SLOT_SIZE,
				   &emitter->layout, emitter->places))
		elog(ERROR, "output does not fit a slot of the output ring");
}

void
gj_emitter_start(GjEmitter *emitter, const uint8 *batch, uint32 nrows, const GjHeldValues *held)
{
	const uint8 *has_nulls = gj_slot_has_nulls(batch);

	emitter->batch = batch;
	emitter->heap = batch + emitter->layout.heap;
	emitter->held = held;
	emitter->nrows = nrows;
	emitter->next = 0;
	for (uint32 i = 0; i < emitter->ncolumns; i++)
	{
		GjEmitColumn *column = &emitter->columns[i];
		const GjColumnPlace *place = &emitter->places[column->output];

		column->data = batch + place->data;
		column->second = column->how == GJ_EMIT_UUID ? batch + place[1].data : NULL;
		column->nulls = has_nulls[column->output] ? batch + place->nulls : NULL;
	}
}

static inline Datum
referred_value(const GjEmitter *emitter, uint64 ref)
{
	if (gj_ref_length(ref) == GJ_REF_HELD)
		return emitter->held->values[gj_ref_offset(ref)];
	return PointerGetDatum(emitter->heap + gj_ref_offset(ref));
}

/* Makes the text whose bytes are those of a word (GJ_OP_WORD_T), up to the first zero. */
static void
write_word(int64 word, char *text)
{
	/* as tuples hold it: PostgreSQL's groups have passed one */
	memcpy(text + VARHDRSZ_SHORT, &word, sizeof(word));
	SET_VARSIZE_SHORT(text, VARHDRSZ_SHORT + strnlen(text + VARHDRSZ_SHORT, sizeof(word)));
}

/* Makes the uuid of its halves (GJ_KEY_ORDERED). */
static void
write_uuid(uint64 first, uint64 second, char *uuid)
{
	uint64		halves[] = {
		pg_hton64(first ^ (UINT64CONST(1) << 63)), pg_hton64(second ^ (UINT64CONST(1) << 63))
	};

	StaticAssertStmt(sizeof(halves) == UUID_LEN && UUID_LEN <= GJ_DECIMAL_BYTES, "uuid");
	memcpy(uuid, halves, sizeof(halves));
}

/* True if a value is written to memory that the caller gives. */
static inline bool
is_written(const GjEmitColumn *column)
{
	return column->how == GJ_EMIT_STORED_DECIMAL || column->how == GJ_EMIT_WORD ||
		column->how == GJ_EMIT_UUID || column->how == GJ_EMIT_TUPLE_ID;
}

static void
write_tuple_id(int64 value, char *written)
{
	ItemPointerData tid;

	gj_tuple_id_read(value, &tid);
	memcpy(written, &tid, sizeof(tid));
}

/* The value of a row, which is not NULL; `written` has room for one that is written. */
static pg_attribute_always_inline Datum
column_value(const GjEmitter *emitter, const GjEmitColumn *column, uint32 row, char *written)
{
	switch (column->how)
	{
		case GJ_EMIT_BYTE:
			/* as fetch_att() does it: sign-extended */
			return CharGetDatum(((const char *) column->data)[row]);
		case GJ_EMIT_INT16:
			return Int16GetDatum(((const int16 *) column->data)[row]);
		case GJ_EMIT_INT32:
			return Int32GetDatum(((const int32 *) column->data)[row]);
		case GJ_EMIT_INT64:
			return Int64GetDatum(((const int64 *) column->data)[row]);
		case GJ_EMIT_DECIMAL:
			return NumericGetDatum(int64_div_fast_to_numeric(((const int64 *) column->data)[row],
															 column->scale));
		case GJ_EMIT_STORED_DECIMAL:
			gj_decimal_write(((const int64 *) column->data)[row], column->scale, written);
			return PointerGetDatum(written);
		case GJ_EMIT_CODE:
			return list_nth_node(Const, column->codes,
								 ((const int64 *) column->data)[row])->constvalue;
		case GJ_EMIT_WORD:
			write_word(((const int64 *) column->data)[row], written);
			return PointerGetDatum(written);
		case GJ_EMIT_UUID:
			write_uuid(((const uint64 *) column->data)[row], ((const uint64 *) column->second)[row],
					   written);
			return PointerGetDatum(written);
		case GJ_EMIT_TUPLE_ID:
			write_tuple_id(((const int64 *) column->data)[row], written);
			return PointerGetDatum(written);
		case GJ_EMIT_POINTER:
			return PointerGetDatum(column->data + (Size) row * column->width);
		default:
			return referred_value(emitter, ((const uint64 *) column->data)[row]);
	}
}

TupleTableSlot *
gj_emit_row(GjEmitter *emitter, TupleTableSlot *slot)
{
	uint32		row = emitter->next++;
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	/* a virtual slot that holds a row and owns nothing is simply written over */
	if (TTS_EMPTY(slot) || TTS_SHOULDFREE(slot))
	{
		ExecClearTuple(slot);
		ExecStoreVirtualTuple(slot);
	}
	for (uint32 i = 0; i < emitter->ncolumns; i++)
	{
		GjEmitColumn *column = &emitter->columns[i];
		int			attr = column->attr;

		isnull[attr] = column->nulls && column->nulls[row];
		values[attr] = isnull[attr] ? (Datum) 0 :
			column_value(emitter, column, row, column->stored);
	}
	return slot;
}

/* A 128-bit integer as numeric: hi * 2^64 + lo, lo without sign. */
static Numeric
numeric_from_int128(uint64 lo, int64 hi)
{
	Numeric		two32 = int64_to_numeric(INT64CONST(1) << 32);
	Numeric		result = int64_to_numeric(hi);

	if (hi == (int64) lo >> 63)
		return int64_to_numeric((int64) lo);
	result = numeric_mul_opt_error(result, two32, NULL);
	result = numeric_add_opt_error(result, int64_to_numeric((int64) (lo >> 32)), NULL);
	result = numeric_mul_opt_error(result, two32, NULL);
	return numeric_add_opt_error(result, int64_to_numeric((int64) (lo & 0xFFFFFFFF)), NULL);
}

static Datum
integer_datum(int64 value, Form_pg_attribute attr)
{
	switch (attr->attlen)
	{
		case 1:
			return BoolGetDatum(value != 0);
		case 2:
			return Int16GetDatum((int16) value);
		case 4:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* True for variances and deviations of a sample. */
static bool
wants_sample(GjAggFinal final)
{
	return final == GJ_FINAL_VAR_SAMP || final == GJ_FINAL_STDDEV_SAMP ||
		final == GJ_FINAL_WIDE_VAR_SAMP || final == GJ_FINAL_WIDE_STDDEV_SAMP ||
		final == GJ_FINAL_FLOAT_VAR_SAMP || final == GJ_FINAL_FLOAT_STDDEV_SAMP;
}

/*
 * The square root of a variance with as many digits behind the point as this has, rounded
 * once: numeric_sqrt() may give more digits, and a second rounding of a tie needs care.
 */
static Datum
square_root(Datum variance)
{
	int32		scale = DatumGetInt32(DirectFunctionCall1(numeric_scale, variance));
	Datum		root = DirectFunctionCall1(numeric_sqrt, variance);
	Datum		down = DirectFunctionCall2(numeric_trunc, root, Int32GetDatum(scale));
	Datum		near = DirectFunctionCall2(numeric_round, root, Int32GetDatum(scale));
	Datum		above = DirectFunctionCall2(numeric_sub, root, down);
	Datum		below = DirectFunctionCall2(numeric_sub, near, root);
	Datum		square = DirectFunctionCall2(numeric_mul, root, root);

	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, down, near)) &&
		DatumGetBool(DirectFunctionCall2(numeric_eq, above, below)) &&
		DatumGetBool(DirectFunctionCall2(numeric_gt, square, variance)))
		return down;
	return near;
}

/* Sums of squares of 64-bit values: of their high 64 bits, and of their low ones. */
static Datum
wide_squares(const GjAggState *low, const GjAggState *high)
{
	Datum		two32 = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));
	Datum		result = NumericGetDatum(numeric_from_int128(high->lo, high->hi));

	result = DirectFunctionCall2(numeric_mul, result, two32);
	result = DirectFunctionCall2(numeric_mul, result, two32);
	return DirectFunctionCall2(numeric_add, result,
							   NumericGetDatum(numeric_from_int128(low->lo, low->hi)));
}

/* A number times 10^-scale, with that display scale. */
static Datum
scaled(Datum number, int scale)
{
	if (scale == 0)
		return number;
	return DirectFunctionCall2(numeric_mul, number,
							   NumericGetDatum(int64_div_fast_to_numeric(1, scale)));
}

/*
 * Variances and deviations of integers and numerics, computed as PostgreSQL does from the
 * same three numbers.
 */
static Datum
variance(GjAggFinal final, const GjAggState *states, int scale)
{
	bool		wide = gj_final_is_wide(final);
	bool		sample = wants_sample(final);
	int64		n = states[0].count;
	Datum		count = NumericGetDatum(int64_to_numeric(n));
	Datum		less = NumericGetDatum(int64_to_numeric(sample ? n - 1 : n));
	Datum		sum = scaled(NumericGetDatum(numeric_from_int128(states[0].lo, states[0].hi)), scale);
	Datum		squares = wide ? scaled(wide_squares(&states[1], &states[2]), 2 * scale) :
		NumericGetDatum(numeric_from_int128(states[1].lo, states[1].hi));
	Datum		zero = NumericGetDatum(int64_to_numeric(0));
	Datum		spread = DirectFunctionCall2(numeric_sub,
											 DirectFunctionCall2(numeric_mul, count, squares),
											 DirectFunctionCall2(numeric_mul, sum, sum));
	Datum		result;

	if (DatumGetBool(DirectFunctionCall2(numeric_le, spread, zero)))
		return zero;
	result = DirectFunctionCall2(numeric_div, spread,
								 DirectFunctionCall2(numeric_mul, count, less));
	if (final == GJ_FINAL_VAR_POP || final == GJ_FINAL_VAR_SAMP ||
		final == GJ_FINAL_WIDE_VAR_POP || final == GJ_FINAL_WIDE_VAR_SAMP)
		return result;
	return square_root(result);
}

/* True if the value of an aggregate is NULL. */
static bool
is_null(GjAggFinal final, const GjAggState *state)
{
	if (final == GJ_FINAL_COUNT || final == GJ_FINAL_COUNT_SUM)
		return false;
	if (wants_sample(final))
		return state->count <= 1;
	return state->count == 0;
}

/* The sum of numerics of a scale; it shows `dscale` digits, which are enough. */
static Datum
decimal_sum(const GjAggState *state, int scale, int dscale)
{
	Datum		sum = NumericGetDatum(numeric_from_int128(state->lo, state->hi));

	sum = DirectFunctionCall2(numeric_mul, sum,
							  NumericGetDatum(int64_div_fast_to_numeric(1, scale)));
	if (dscale == scale)
		return sum;
	return DirectFunctionCall2(numeric_round, sum, Int32GetDatum(dscale));
}

/*
 * The value of an aggregate (gj_final_make()) from its states, in the current memory
 * context.  GJ_OK, or why PostgreSQL must compute it itself.
 */
static GjStatus
final_value(int element, const GjAggState *state, Form_pg_attribute attr, Datum *value,
			bool *isnull)
{
	GjAggFinal	final = gj_final_kind(element);
	int			scale = gj_final_scale(element);
	double		spread;

	*value = (Datum) 0;
	*isnull = is_null(final, state);
	if (*isnull)
		return GJ_OK;
	switch (final)
	{
		case GJ_FINAL_COUNT:
			*value = Int64GetDatum(state->count);
			break;
		case GJ_FINAL_COUNT_SUM:
			*value = Int64GetDatum((int64) state->lo);
			break;
		case GJ_FINAL_SUM_INT8:
			if (state->hi != (int64) state->lo >> 63)
				return GJ_OVERFLOW;
			*value = Int64GetDatum((int64) state->lo);
			break;
		case GJ_FINAL_SUM_NUMERIC:
			*value = NumericGetDatum(numeric_from_int128(state->lo, state->hi));
			break;
		case GJ_FINAL_AVG_NUMERIC:
			*value = DirectFunctionCall2(numeric_div,
										 NumericGetDatum(numeric_from_int128(state->lo,
																			 state->hi)),
										 NumericGetDatum(int64_to_numeric(state->count)));
			break;
		case GJ_FINAL_SUM_FLOAT8:
		case GJ_FINAL_AVG_FLOAT8:
			/* infinities and NaNs have rules of their own: PostgreSQL's */
			if (!gj_float_is_finite(state->f))
				return GJ_OVERFLOW;
			if (final == GJ_FINAL_AVG_FLOAT8 && gj_float_avg_fails(state, state[1].f, state[2].f))
				return GJ_OVERFLOW;
			/* its sum starts at 0, and so ends at 0 where ours is -0 */
			*value = Float8GetDatum(final == GJ_FINAL_SUM_FLOAT8 ? state->f :
									(state->f + 0.0) / (double) state->count);
			break;
		case GJ_FINAL_MINMAX_INT:
			*value = integer_datum(state->hi, attr);
			break;
		case GJ_FINAL_MINMAX_FLOAT8:
			*value = Float8GetDatum(state->f);
			break;
		case GJ_FINAL_VAR_POP:
		case GJ_FINAL_VAR_SAMP:
		case GJ_FINAL_STDDEV_POP:
		case GJ_FINAL_STDDEV_SAMP:
		case GJ_FINAL_WIDE_VAR_POP:
		case GJ_FINAL_WIDE_VAR_SAMP:
		case GJ_FINAL_WIDE_STDDEV_POP:
		case GJ_FINAL_WIDE_STDDEV_SAMP:
			*value = variance(final, state, scale);
			break;
		case GJ_FINAL_FLOAT_VAR_POP:
		case GJ_FINAL_FLOAT_VAR_SAMP:
		case GJ_FINAL_FLOAT_STDDEV_POP:
		case GJ_FINAL_FLOAT_STDDEV_SAMP:
			/* as for averages */
			if (gj_float_spread_fails(state))
				return GJ_OVERFLOW;
			spread = state->f / (double) (wants_sample(final) ? state->count - 1 : state->count);
			*value = Float8GetDatum(final == GJ_FINAL_FLOAT_VAR_POP ||
									final == GJ_FINAL_FLOAT_VAR_SAMP ? spread : sqrt(spread));
			break;
		case GJ_FINAL_SUM_DECIMAL:
			*value = decimal_sum(state, scale, scale);
			break;
		case GJ_FINAL_SUM_MIXED:
			*value = decimal_sum(state, scale, (int) state[1].hi);
			break;
		case GJ_FINAL_AVG_DECIMAL:
		case GJ_FINAL_AVG_MIXED:
			*value = DirectFunctionCall2(numeric_div,
										 decimal_sum(state, scale, final == GJ_FINAL_AVG_MIXED ?
													 (int) state[1].hi : scale),
										 NumericGetDatum(int64_to_numeric(state->count)));
			break;
		case GJ_FINAL_MINMAX_DECIMAL:
			*value = NumericGetDatum(int64_div_fast_to_numeric(state->hi, scale));
			break;
		case GJ_FINAL_SUM_FLOAT4:
			/* as for float8 */
			if (!gj_float_is_finite((float4) state->f))
				return GJ_OVERFLOW;
			*value = Float4GetDatum((float4) state->f);
			break;
		case GJ_FINAL_MINMAX_FLOAT4:
			*value = Float4GetDatum((float4) state->f);
			break;
	}
	return GJ_OK;
}

GjStatus
gj_emit_aggregates(const GjAggState *states, List *finals, TupleTableSlot *slot)
{
	ListCell   *lc;

	foreach(lc, finals)
	{
		int			i = foreach_current_index(lc);
		GjStatus	status = final_value(lfirst_int(lc), states,
										 TupleDescAttr(slot->tts_tupleDescriptor, i),
										 &slot->tts_values[i], &slot->tts_isnull[i]);

		if (status != GJ_OK)
			return status;
		states += gj_final_states(gj_final_kind(lfirst_int(lc)));
	}
	ExecStoreVirtualTuple(slot);
	return GJ_OK;
}

/* ---- groups */

/*
 * The attributes of the keys: those that are not late, and at the end the tuple ids.  Returns the
 * attribute of the first aggregate.
 */
static int
find_key_attributes(List *attributes, int nkeys, int *attrs)
{
	int			nids = 0;
	int			nlate = 0;
	int			attr = 0;
	ListCell   *lc;

	foreach(lc, attributes)
	{
		nids += lfirst_int(lc) == GJ_ATTRIBUTE_TUPLE_ID;
		nlate += lfirst_int(lc) == GJ_ATTRIBUTE_LATE;
	}
	for (int i = 0; i < nkeys - nids; i++)
	{
		while (nlate > 0 && list_nth_int(attributes, attr) == GJ_ATTRIBUTE_LATE)
			attr++;
		attrs[i] = attr++;
	}
	for (int i = 0; i < nids; i++)
		attrs[nkeys - nids + i] = list_length(attributes) - nids + i;
	return nkeys - nids + nlate;
}

/* How a key whose integers stand for something becomes a datum. */
static void
describe_codes(GjEmitColumn *column, const List *codes)
{
	column->codes = codes;
	if (gj_codes_are(codes, GJ_CODES_WORD))
		column->how = GJ_EMIT_WORD;
	else if (gj_codes_are(codes, GJ_CODES_FIRST_HALF))
		column->how = GJ_EMIT_UUID;
	else if (gj_codes_are(codes, GJ_CODES_SECOND_HALF))
	{
		/* the same value once more, as the expression is an output twice */
		column->how = GJ_EMIT_UUID;
		column->output--;
	}
	else if (codes != NIL)
		column->how = GJ_EMIT_CODE;
}

void
gj_group_emitter_init(GjEmitter *emitter, const GjProgram *program, List *key_codes,
					  List *attributes, TupleDesc desc)
{
	uint32		nkeys = gj_group_nkeys(program);
	int		   *attrs = palloc(sizeof(int) * Max(nkeys, 1));
	uint32		noutputs = nkeys + program->naggregates;
	GjColumnType *types = palloc(sizeof(GjColumnType) * noutputs);
	const GjGroupKey *keys = gj_program_array(program, GjGroupKey, group_keys);
	const GjExpr *exprs = gj_program_array(program, GjExpr, exprs);

	emitter->ncolumns = nkeys;
	emitter->first_final = find_key_attributes(attributes, nkeys, attrs);
	emitter->columns = palloc0(sizeof(GjEmitColumn) * Max(nkeys, 1));
	emitter->places = palloc(sizeof(GjColumnPlace) * noutputs);
	for (uint32 i = 0; i < noutputs; i++)
		types[i] = gj_group_output_type(program, i);
	for (uint32 i = 0; i < emitter->ncolumns; i++)
	{
		int			attr = attrs[i];

		emitter->columns[i].output = i;
		emitter->columns[i].attr = attr;
		emitter->columns[i].width = types[i].width;
		emitter->columns[i].how = how_to_emit(&types[i], TupleDescAttr(desc, attr)->attbyval);
		describe_value(&emitter->columns[i], TupleDescAttr(desc, attr));
		if (types[i].kind != GJ_REF && emitter->columns[i].numeric)
		{
			emitter->columns[i].how = GJ_EMIT_DECIMAL;
			emitter->columns[i].scale = exprs[keys[i].index].scale;
		}
		describe_codes(&emitter->columns[i], list_nth(key_codes, i));
		if (attributes != NIL && list_nth_int(attributes, attr) == GJ_ATTRIBUTE_TUPLE_ID)
			emitter->columns[i].how = GJ_EMIT_TUPLE_ID;
	}
	emitter->types = types;
	if (!gj_layout(types, noutputs, program->output_capacity, GJ_OUTPUT_SLOT_SIZE,
				   &emitter->layout, emitter->places))
		elog(ERROR, "groups do not fit a slot of the output ring");
}

/* The n states from column `first` on, of one row. */
static void
row_states(const GjEmitter *emitter, const uint8 *batch, uint32 first, int n, uint32 row,
		   GjAggState *states)
{
	for (int i = 0; i < n; i++)
		states[i] = ((const GjAggState *) (batch + emitter->places[first + i].data))[row];
}

GjStatus
gj_check_groups(const GjEmitter *emitter, const GjBatch *batch, List *finals)
{
	uint32		column = emitter->ncolumns;
	ListCell   *lc;

	foreach(lc, finals)
	{
		int			final = lfirst_int(lc);
		int			n = gj_final_states(gj_final_kind(final));
		GjAggState	states[GJ_MAX_FINAL_STATES];
		Datum		value;
		bool		isnull;

		for (uint32 row = 0; gj_final_can_fail(gj_final_kind(final)) && row < batch->nrows; row++)
		{
			GjStatus	status;

			row_states(emitter, batch->bytes, column, n, row, states);
			status = final_value(final, states, NULL, &value, &isnull);
			if (status != GJ_OK)
				return status;
		}
		column += n;
	}
	return GJ_OK;
}

/* The value of an aggregate, a final of a row whose states begin at column `first`. */
static inline GjStatus
group_value(const GjEmitter *emitter, int final, uint32 first, uint32 row, Form_pg_attribute attr,
			Datum *value, bool *isnull)
{
	GjAggState	states[GJ_MAX_FINAL_STATES];

	row_states(emitter, emitter->batch, first, gj_final_states(gj_final_kind(final)), row, states);
	return final_value(final, states, attr, value, isnull);
}

GjStatus
gj_emit_group(GjEmitter *emitter, List *finals, TupleTableSlot *slot)
{
	uint32		row = emitter->next;
	uint32		column = emitter->ncolumns;
	int			attr = emitter->first_final;
	ListCell   *lc;

	gj_emit_row(emitter, slot);
	foreach(lc, finals)
	{
		int			final = lfirst_int(lc);
		GjStatus	status = group_value(emitter, final, column, row,
										 TupleDescAttr(slot->tts_tupleDescriptor, attr),
										 &slot->tts_values[attr], &slot->tts_isnull[attr]);

		if (status != GJ_OK)
			return status;
		column += gj_final_states(gj_final_kind(final));
		attr++;
	}
	return GJ_OK;
}

GjStatus
gj_emit_block(GjEmitter *emitter, List *finals, TupleDesc desc, uint32 n, const GjRowBlock *block)
{
	uint32		first = emitter->next;
	uint32		states = emitter->ncolumns;
	int			attr = emitter->first_final;
	ListCell   *lc;

	Assert(n <= emitter->nrows - first && attr + list_length(finals) <= block->ncolumns);
	emitter->next += n;
	for (uint32 i = 0; i < emitter->ncolumns; i++)
	{
		const GjEmitColumn *column = &emitter->columns[i];
		char	   *written = is_written(column) ? palloc((Size) n * GJ_DECIMAL_BYTES) : NULL;
		Datum	   *value = block->values + column->attr;
		bool	   *isnull = block->isnull + column->attr;

		for (uint32 row = first; row < first + n; row++)
		{
			*isnull = column->nulls && column->nulls[row];
			*value = *isnull ? (Datum) 0 : column_value(emitter, column, row, written);
			if (written)
				written += GJ_DECIMAL_BYTES;
			value += block->ncolumns;
			isnull += block->ncolumns;
		}
	}
	foreach(lc, finals)
	{
		int			final = lfirst_int(lc);

		for (uint32 i = 0; i < n; i++)
		{
			Size		at = (Size) i * block->ncolumns + attr;
			GjStatus	status = group_value(emitter, final, states, first + i,
											 TupleDescAttr(desc, attr),
											 &block->values[at], &block->isnull[at]);

			if (status != GJ_OK)
				return status;
		}
		states += gj_final_states(gj_final_kind(final));
		attr++;
	}
	return GJ_OK;
}
