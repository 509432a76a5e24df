/*
 * result.c
 *	  Writes all that a run has returned as text.
 */
#include "result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rows/expression.h"
#include "device/group.h"
#include "device/order.h"
#include "daemon/program/program.h"
#include "daemon/sink/sink.h"

/* Rows whose sort keys are computed together. */
#define RESULT_ROWS		1024

struct Result
{
	const GjProgram *program;
	const GjSinkOps *sink;		/* its own */
	FILE	   *out;
	uint64_t	nbatches;
	uint32_t	ncolumns;
	uint32_t	nkeys;
	bool		has_keys;		/* the sort keys can be computed from what is returned */
	GjColumnType *types;		/* [ncolumns] */
	GjColumnPlace *places;
	GjLayout	layout;
	const uint8_t *slot;		/* of this batch */
	uint32_t   *null;			/* groups: of each row, a bit a key */
	GjColumn   *columns;		/* rows: the program's columns in the batch */
	int64_t    *registers;
	uint8_t    *nulls;
	int64_t    *keys[GJ_MAX_KEYS];	/* of RESULT_ROWS rows */
};

/* ---- the program */

/* The aggregate in a column; NULL: none is. */
static const GjAggregate *
aggregate_of(const Result *result, uint32_t c)
{
	const GjProgram *p = result->program;
	const GjAggregate *aggregates = gj_program_array(p, GjAggregate, aggregates);
	uint32_t	first = result->sink->has_groups ? gj_group_nkeys(p) : 0;

	if (!result->sink->has_groups && !result->sink->has_states)
		return NULL;
	return c >= first ? &aggregates[c - first] : NULL;
}

static bool
is_group_key(const Result *result, uint32_t c)
{
	return result->sink->has_groups && c < gj_group_nkeys(result->program);
}

/* How a group key is compared; GJ_GROUP_INTEGER of other columns. */
static uint32_t
group_how(const Result *result, uint32_t c)
{
	const GjGroupKey *keys = gj_program_array(result->program, GjGroupKey, group_keys);

	return is_group_key(result, c) ? keys[c].how : GJ_GROUP_INTEGER;
}

static bool
is_float(const Result *result, uint32_t c)
{
	return group_how(result, c) == GJ_GROUP_FLOAT || result->types[c].kind == GJ_FLOAT4 ||
		result->types[c].kind == GJ_FLOAT8;
}

static void
write_column(const Result *result, uint32_t c)
{
	const GjAggregate *aggregate = aggregate_of(result, c);

	if (aggregate)
		fprintf(result->out, "column state %u\n", aggregate->op);
	else if (!result->sink->in_batches)
		fprintf(result->out, "column state %u\n", GJ_AGG_COUNT_STAR);
	else
		fprintf(result->out, "column %s\n", is_float(result, c) ? "float" :
				gj_group_by_reference(group_how(result, c)) ? "text" :
				result->types[c].kind == GJ_REF ? "ref" :
				result->types[c].kind == GJ_BYTES ? "bytes" : "int");
}

/* True if the last digits of the key depend on the order in which floats were added. */
static bool
is_inexact_key(const GjProgram *p, const GjSortKey *key)
{
	const GjAggregate *aggregates = gj_program_array(p, GjAggregate, aggregates);

	return (key->of == GJ_SORT_FLOAT || key->of == GJ_SORT_FLOAT4 ||
			key->of == GJ_SORT_FLOAT_AVG) && aggregates[key->index].op == GJ_AGG_SUM_F;
}

static void
write_program(const Result *result)
{
	const GjProgram *p = result->program;
	const GjSortKey *keys = gj_program_array(p, GjSortKey, sort_keys);
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);

	fprintf(result->out, "program %u %u %u %u %u %u\n", p->kind, p->output, p->limit, p->ties,
			p->nsets > 0 ? sets->top_k : 0, p->nsets > 0 ? sets->distinct : 0);
	for (uint32_t c = 0; c < result->ncolumns; c++)
		write_column(result, c);
	for (uint32_t k = 0; k < result->nkeys; k++)
		fprintf(result->out, "key %u %u\n", keys[k].descending, is_inexact_key(p, &keys[k]));
}

/* True if all columns that an expression reads are returned. */
static bool
is_returned(const Result *result, uint32_t expr)
{
	const GjProgram *p = result->program;
	const GjExpr *e = gj_program_array(p, GjExpr, exprs) + expr;
	const GjInstr *instrs = gj_program_array(p, GjInstr, instrs);
	const uint32_t *outputs = gj_program_array(p, uint32_t, outputs);

	for (uint32_t pc = e->first; pc < e->first + e->ninstrs; pc++)
	{
		bool		found = instrs[pc].op != GJ_OP_LOAD_PAIR && !gj_op_loads(instrs[pc].op);

		for (uint32_t i = 0; i < p->noutputs && !found; i++)
			found = gj_op_loads(instrs[pc].op) && outputs[i] == instrs[pc].arg;
		if (!found)
			return false;
	}
	return true;
}

/* Decides whether sort keys can be computed. */
static bool
can_compute_keys(const Result *result)
{
	const GjSortKey *keys = gj_program_array(result->program, GjSortKey, sort_keys);

	for (uint32_t k = 0; k < result->nkeys; k++)
		if (keys[k].of == GJ_SORT_EXPR && !is_returned(result, keys[k].index))
			return false;
	return result->nkeys > 0;
}

static bool
allocate(Result *result)
{
	const GjProgram *p = result->program;
	bool		has_room = true;

	result->types = calloc(result->ncolumns + 1, sizeof(GjColumnType));
	result->places = calloc(result->ncolumns + 1, sizeof(GjColumnPlace));
	result->null = calloc(p->output_capacity + 1, sizeof(uint32_t));
	result->columns = calloc(p->ncolumns + 1, sizeof(GjColumn));
	result->registers = calloc(GJ_MAX_REGISTERS * RESULT_ROWS, sizeof(int64_t));
	result->nulls = calloc(GJ_MAX_REGISTERS, RESULT_ROWS);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
	{
		result->keys[k] = calloc(RESULT_ROWS, sizeof(int64_t));
		has_room &= result->keys[k] != NULL;
	}
	return has_room && result->types && result->places && result->null && result->columns &&
		result->registers && result->nulls;
}

Result *
result_open(const GjProgram *program, FILE *out)
{
	Result *result = calloc(1, sizeof(Result));

	if (!result)
		return NULL;
	result->program = program;
	result->out = out;
	result->sink = gj_sink_choose(program);
	result->ncolumns = result->sink->has_states ? program->naggregates :
		result->sink->in_batches ? gj_program_noutputs(program) : 1;
	result->nkeys = gj_sort_nkeys(program);
	if (!allocate(result) ||
		(result->sink->in_batches &&
		 !gj_program_layout_output(program, result->types, &result->layout, result->places)))
	{
		result_close(result);
		return NULL;
	}
	result->has_keys = can_compute_keys(result);
	write_program(result);
	return result;
}

void
result_close(Result *result)
{
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		free(result->keys[k]);
	free(result->types);
	free(result->places);
	free(result->null);
	free(result->columns);
	free(result->registers);
	free(result->nulls);
	free(result);
}

/* ---- sort keys */

/* Where the program's columns are in the batch. */
static void
find_columns(Result *result)
{
	const uint32_t *outputs = gj_program_array(result->program, uint32_t, outputs);

	for (uint32_t i = 0; i < result->ncolumns; i++)
		result->columns[outputs[i]] = (GjColumn) {
			.data = result->slot + result->places[i].data,
			.nulls = gj_slot_has_nulls(result->slot)[i] ? result->slot + result->places[i].nulls :
				NULL,
			.heap = result->slot + result->layout.heap,.kind = result->types[i].kind,
			.width = result->types[i].width
		};
}

/* Computes a key of rows first .. first+n-1. */
static void
compute_row_key(Result *result, uint32_t k, uint32_t first, uint32_t n)
{
	const GjProgram *p = result->program;
	const GjSortKey *key = gj_program_array(p, GjSortKey, sort_keys) + k;
	const GjExpr *expr = gj_program_array(p, GjExpr, exprs) + key->index;
	const GjCode code = {gj_program_array(p, GjExpr, exprs), gj_program_array(p, GjInstr, instrs),
	gj_program_array(p, int64_t, constants), gj_program_array(p, GjColumnType, columns)};
	const GjView view = {.columns = result->columns,.nrows = first + n};
	const GjTile tile = {result->registers, result->nulls, RESULT_ROWS};
	const size_t at = (size_t) expr->result * RESULT_ROWS;
	uint32_t	status = GJ_OK;

	gj_eval(&code, key->index, &view, first, n, &tile, &status);
	for (uint32_t i = 0; i < n; i++)
		result->keys[k][i] = result->nulls[at + i] ? 0 :
			gj_ordered_bits(result->registers[at + i], expr->kind == GJ_FLOAT8);
}

/* The batch as the groups that it was made of. */
static void
find_groups(Result *result, uint32_t nrows, GjGroups *groups)
{
	const GjProgram *p = result->program;
	uint32_t	nkeys = gj_group_nkeys(p);

	memset(groups, 0, sizeof(*groups));
	memset(result->null, 0, nrows * sizeof(uint32_t));
	groups->rows.nkeys = nkeys;
	groups->rows.nrows = nrows;
	groups->rows.null = result->null;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		const uint8_t *nulls = result->slot + result->places[k].nulls;

		groups->rows.value[k] = (int64_t *) (result->slot + result->places[k].data);
		groups->rows.how[k] = (uint8_t) group_how(result, k);
		if (gj_slot_has_nulls(result->slot)[k])
			for (uint32_t i = 0; i < nrows; i++)
				result->null[i] |= (uint32_t) (nulls[i] != 0) << k;
	}
	for (uint32_t a = 0; a < p->naggregates; a++)
		groups->state[a] = (GjAggState *) (result->slot + result->places[nkeys + a].data);
}

static void
compute_keys(Result *result, uint32_t nrows, uint32_t first, uint32_t n)
{
	const GjSortKey *keys = gj_program_array(result->program, GjSortKey, sort_keys);
	GjGroups	groups;

	if (result->sink->has_groups)
		find_groups(result, nrows, &groups);
	else
		find_columns(result);
	for (uint32_t k = 0; k < result->nkeys; k++)
	{
		if (!result->sink->has_groups)
			compute_row_key(result, k, first, n);
		else
			for (uint32_t i = 0; i < n; i++)
				result->keys[k][i] = gj_group_sort_value(&groups, &keys[k], first + i);
	}
}

/* ---- values */

static void
write_bytes(FILE *out, const uint8_t *bytes, uint32_t nbytes)
{
	fputc('x', out);
	for (uint32_t i = 0; i < nbytes; i++)
		fprintf(out, "%02x", bytes[i]);
}

static void
write_state(FILE *out, const GjAggState *state, uint32_t op)
{
	fprintf(out, "%" PRId64 ":", state->count);
	if (op == GJ_AGG_SPREAD_F)
		fprintf(out, "%.17g", gj_bits_to_double(state->hi));
	else
		fprintf(out, "%" PRId64, state->hi);
	fprintf(out, ":%" PRIu64 ":%.17g", state->lo, state->f);
}

static void
write_ref(const Result *result, uint32_t c, uint64_t ref)
{
	const uint8_t *heap = result->slot + result->layout.heap;
	uint32_t	how = group_how(result, c);
	GjPayload	payload;

	if (gj_ref_length(ref) == GJ_REF_HELD)
	{
		fprintf(result->out, "h%" PRIu64, gj_ref_offset(ref));
		return;
	}
	payload = (GjPayload) {heap + gj_ref_offset(ref), gj_ref_length(ref), true};
	/* of equal texts, which one a group shows is any */
	if (gj_group_by_reference(how))
		payload = gj_group_payload(heap, ref, how);
	write_bytes(result->out, payload.bytes, payload.nbytes);
}

static void
write_value(const Result *result, uint32_t c, uint32_t row)
{
	const GjColumnPlace *place = &result->places[c];
	const GjColumn column = {.data = result->slot + place->data,.kind = result->types[c].kind,
	.width = result->types[c].width};
	int64_t		value;

	if (gj_slot_has_nulls(result->slot)[c] && result->slot[place->nulls + row])
		fputc('-', result->out);
	else if (aggregate_of(result, c))
		write_state(result->out, (const GjAggState *) column.data + row, aggregate_of(result, c)->op);
	else if (column.kind == GJ_REF)
		write_ref(result, c, ((const uint64_t *) column.data)[row]);
	else if (column.kind == GJ_BYTES)
		write_bytes(result->out, (const uint8_t *) column.data + (size_t) row * column.width,
					column.width);
	else
	{
		value = gj_column_value(&column, row);
		if (is_float(result, c))
			/* of equal keys, which one a group shows is any: not -0 */
			fprintf(result->out, "%.17g", gj_bits_to_double(value) +
					(is_group_key(result, c) ? 0.0 : -0.0));
		else
			fprintf(result->out, "%" PRId64, value);
	}
}

/* ---- batches */

static void
write_states(const Result *result, const GjAggState *states)
{
	fprintf(result->out, "row |");
	for (uint32_t c = 0; c < result->ncolumns; c++)
	{
		fputc(' ', result->out);
		write_state(result->out, &states[c], aggregate_of(result, c) ?
					aggregate_of(result, c)->op : GJ_AGG_COUNT_STAR);
	}
	fputc('\n', result->out);
}

static void
write_row(const Result *result, uint32_t row)
{
	fprintf(result->out, "row ");
	for (uint32_t k = 0; k < result->nkeys && result->has_keys; k++)
		fprintf(result->out, "%" PRId64 " ", result->keys[k][row % RESULT_ROWS]);
	fputc('|', result->out);
	for (uint32_t c = 0; c < result->ncolumns; c++)
	{
		fputc(' ', result->out);
		write_value(result, c, row);
	}
	fputc('\n', result->out);
}

GjStatus
result_batch(Result *result, const uint8_t *slot, uint32_t nrows)
{
	result->nbatches++;
	result->slot = slot;
	if (!result->sink->in_batches)
	{
		write_states(result, (const GjAggState *) slot);
		return GJ_OK;
	}
	if (nrows > result->program->output_capacity)
	{
		fprintf(result->out, "a batch of %u rows is too large\n", nrows);
		return GJ_BAD_PROGRAM;
	}
	for (uint32_t row = 0; row < nrows; row++)
	{
		if (result->has_keys && row % RESULT_ROWS == 0)
			compute_keys(result, nrows, row,
						 nrows - row < RESULT_ROWS ? nrows - row : RESULT_ROWS);
		write_row(result, row);
	}
	return GJ_OK;
}

void
result_end(Result *result, GjStatus status, const char *why, const GjRunStats *stats)
{
	const GjProgram *p = result->program;
	FILE	   *out = result->out;

	fprintf(out, "status %d %s: %s\n", status, gj_reason_text(status), why);
	if (status == GJ_OK)
	{
		fprintf(out, "batches %" PRIu64 "\n", result->nbatches);
		for (uint32_t s = 0; s < p->nsources; s++)
			fprintf(out, "source %" PRIu64 " %" PRIu64 "\n", stats->source[s].rows_in,
					stats->source[s].rows_out);
		for (uint32_t i = 0; i < p->nsteps; i++)
			fprintf(out, "step %" PRIu64 " %" PRIu64 " %u\n", stats->step[i].rows_in,
					stats->step[i].rows_out, stats->step[i].set_algorithm);
		fprintf(out, "run %u %u %u %u %" PRIu64 "\n", stats->ndevices, stats->npasses,
				stats->exchange_step, stats->sorted_runs, stats->rows_out);
	}
	fprintf(out, "end\n");
}
