/*
 * stage.c
 *	  Results of stages: made of batches, found by their token.
 *
 * A column is written at a time, so that a group costs some nanoseconds.
 */
#include "stage.h"
#include "daemon/base/base.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a result may take, however little memory there is. */
#define GJ_STAGE_LEAST_BYTES	(UINT64_C(8) * GJ_LOAD_SLOT_SIZE)

struct GjStageResult
{
	/* once it was published; guarded by the lock */
	GjStageResult *next;
	uint32_t	nowners;
	GjRunToken	token;

	uint32_t	ncolumns;
	GjColumnType types[GJ_MAX_STAGE_COLUMNS];
	GjColumnPlace places[GJ_MAX_STAGE_COLUMNS];
	GjLayout	layout;
	uint8_t   **chunks;
	uint32_t	nchunks;
	uint32_t	room;			/* in `chunks` */
	uint64_t	limit;			/* bytes of chunks */

	/* while it is made */
	const GjProgram *program;
	GjColumnType *batch_types;
	GjColumnPlace *batch_places;
	GjLayout	batch_layout;
};

static struct
{
	pthread_mutex_t lock;
	GjStageResult *first;
}			published = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
end_making(GjStageResult *result)
{
	free(result->batch_types);
	free(result->batch_places);
	result->batch_types = NULL;
	result->batch_places = NULL;
	result->program = NULL;
}

static void
free_result(GjStageResult *result)
{
	for (uint32_t i = 0; i < result->nchunks; i++)
		free(result->chunks[i]);
	free(result->chunks);
	end_making(result);
	free(result);
}

GjStageResult *
gj_stage_create(const GjProgram *program, uint64_t limit)
{
	const GjStageColumn *columns = gj_program_array(program, GjStageColumn, stage_columns);
	uint32_t	n = program->output == GJ_OUTPUT_GROUPS ? gj_program_noutputs(program) : 0;
	GjStageResult *result = calloc(1, sizeof(GjStageResult));

	if (!result)
		return NULL;
	result->nowners = 1;
	result->limit = limit > GJ_STAGE_LEAST_BYTES ? limit : GJ_STAGE_LEAST_BYTES;
	result->program = program;
	result->ncolumns = program->nstage_columns;
	for (uint32_t i = 0; i < result->ncolumns; i++)
		result->types[i] = columns[i].type;
	result->batch_types = calloc(n + 1, sizeof(GjColumnType));
	result->batch_places = calloc(n + 1, sizeof(GjColumnPlace));
	/* the program was checked: it fits */
	if (!result->batch_types || !result->batch_places ||
		!gj_layout(result->types, result->ncolumns, program->stage_capacity, GJ_LOAD_CHUNK_SIZE,
				   &result->layout, result->places) ||
		(n > 0 && !gj_program_layout_output(program, result->batch_types, &result->batch_layout,
											result->batch_places)))
	{
		free_result(result);
		return NULL;
	}
	return result;
}

/* ---- chunks */

static GjSlotHeader *
header_of(uint8_t *chunk)
{
	return (GjSlotHeader *) chunk;
}

static GjStatus
add_chunk(GjStageResult *result, GjErrorText *why)
{
	uint8_t   **chunks = result->chunks;

	if ((uint64_t) (result->nchunks + 1) * GJ_LOAD_SLOT_SIZE > result->limit)
	{
		snprintf(why->text, sizeof(why->text), "the result of a stage exceeds gpujoin.spill_memory");
		return GJ_TOO_LARGE;
	}
	if (result->nchunks == result->room)
	{
		uint32_t	room = result->room > 0 ? 2 * result->room : 16;

		chunks = realloc(chunks, room * sizeof(uint8_t *));
		if (!chunks)
			return GJ_OUT_OF_HOST_MEMORY;
		result->chunks = chunks;
		result->room = room;
	}
	chunks[result->nchunks] = malloc(GJ_LOAD_SLOT_SIZE);
	if (!chunks[result->nchunks])
		return GJ_OUT_OF_HOST_MEMORY;
	memset(chunks[result->nchunks], 0, gj_slot_header_size(result->ncolumns));
	memset(gj_chunk_pages(chunks[result->nchunks]), 0, sizeof(GjChunkPages));
	result->nchunks++;
	return GJ_OK;
}

/* The chunk that is being filled. */
static uint8_t *
last_chunk(const GjStageResult *result)
{
	return result->chunks[result->nchunks - 1];
}

/* ---- values */

/* Values of one column, on their way from a batch to a chunk. */
typedef struct Values
{
	const GjColumnType *type;
	const uint8_t *from;		/* the first one, of 8 bytes or a state */
	const uint8_t *from_nulls;	/* NULL: no key is */
	const uint8_t *from_heap;
	uint32_t	from_heap_size;
	uint8_t    *to;
	uint8_t    *to_nulls;
	uint8_t    *heap;			/* of the chunk */
	uint32_t   *heap_used;
	uint32_t	heap_size;
	uint32_t	n;
} Values;

static inline void
put_integer(uint8_t *to, uint32_t width, int64_t value)
{
	switch (width)
	{
		case 1:
			*to = (uint8_t) value;
			break;
		case 2:
			*(uint16_t *) to = (uint16_t) value;
			break;
		case 4:
			*(uint32_t *) to = (uint32_t) value;
			break;
		default:
			*(int64_t *) to = value;
	}
}

static inline GjAggState
read_state(const Values *v, uint32_t i)
{
	return ((const GjAggState *) v->from)[i];
}

/* Copies the bytes of a reference.  False: they have no room, or the reference is damaged. */
static bool
copy_reference(Values *v, uint32_t i, uint64_t ref)
{
	uint32_t	nbytes = gj_ref_space(ref);

	if (gj_ref_length(ref) == GJ_REF_HELD || gj_ref_offset(ref) > v->from_heap_size ||
		nbytes > v->from_heap_size - gj_ref_offset(ref) || nbytes > v->heap_size - *v->heap_used)
		return false;
	memcpy(v->heap + *v->heap_used, v->from_heap + gj_ref_offset(ref), nbytes);
	((uint64_t *) v->to)[i] = gj_ref_make(*v->heap_used, gj_ref_length(ref));
	*v->heap_used += nbytes;
	return true;
}

static GjStatus
copy_keys(Values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
	{
		v->to_nulls[i] = v->from_nulls && v->from_nulls[i];
		if (v->type->kind != GJ_REF)
			put_integer(v->to + (size_t) i * v->type->width, v->type->width,
						((const int64_t *) v->from)[i]);
		else if (v->to_nulls[i])
			((uint64_t *) v->to)[i] = 0;
		else if (!copy_reference(v, i, __atomic_load_n((const uint64_t *) v->from + i,
													   __ATOMIC_RELAXED)))
			return GJ_TOO_LARGE;
	}
	return GJ_OK;
}

static GjStatus
copy_counts(Values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
	{
		((int64_t *) v->to)[i] = read_state(v, i).count;
		v->to_nulls[i] = 0;
	}
	return GJ_OK;
}

static GjStatus
copy_sums(Values *v, bool or_zero)
{
	bool		fit = true;

	for (uint32_t i = 0; i < v->n; i++)
	{
		const GjAggState state = read_state(v, i);

		((int64_t *) v->to)[i] = (int64_t) state.lo;
		v->to_nulls[i] = state.count == 0 && !or_zero;
		fit &= state.hi == (int64_t) state.lo >> 63;
	}
	return fit ? GJ_OK : GJ_OVERFLOW;
}

static GjStatus
copy_extremes(Values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
	{
		const GjAggState state = read_state(v, i);

		put_integer(v->to + (size_t) i * v->type->width, v->type->width, state.hi);
		v->to_nulls[i] = state.count == 0;
	}
	return GJ_OK;
}

static GjStatus
copy_floats(Values *v, bool finite)
{
	bool		fit = true;

	for (uint32_t i = 0; i < v->n; i++)
	{
		const GjAggState state = read_state(v, i);

		if (v->type->kind == GJ_FLOAT4)
			((float *) v->to)[i] = (float) state.f;
		else
			((double *) v->to)[i] = state.f;
		v->to_nulls[i] = state.count == 0;
		fit &= !finite || isfinite(state.f);
	}
	return fit ? GJ_OK : GJ_OVERFLOW;
}

static GjStatus
set_true(Values *v)
{
	memset(v->to, 1, v->n);
	memset(v->to_nulls, 0, v->n);
	return GJ_OK;
}

static GjStatus
copy_values(Values *v, GjStageValue value)
{
	switch (value)
	{
		case GJ_STAGE_KEY:
			return copy_keys(v);
		case GJ_STAGE_COUNT:
			return copy_counts(v);
		case GJ_STAGE_EXTREME_I:
			return copy_extremes(v);
		case GJ_STAGE_EXTREME_F:
			return copy_floats(v, false);
		case GJ_STAGE_SUM_F:
			return copy_floats(v, true);
		case GJ_STAGE_TRUE:
			return set_true(v);
		default:
			return copy_sums(v, value == GJ_STAGE_SUM_OR_ZERO);
	}
}

/* ---- batches */

/* Where the values of a column are in a batch, from row `first` on. */
static void
find_values(const GjStageResult *result, const GjStageColumn *column, const uint8_t *batch,
			uint32_t first, Values *v)
{
	const GjProgram *p = result->program;
	uint32_t	at = column->from;
	uint32_t	width = sizeof(GjAggState);

	v->from_nulls = NULL;
	if (column->value == GJ_STAGE_TRUE)
		return;
	if (p->output == GJ_OUTPUT_AGGREGATES)
	{
		v->from = batch + at * sizeof(GjAggState);
		return;
	}
	if (column->value == GJ_STAGE_KEY)
		width = 8;
	else
		at += gj_group_nkeys(p);
	v->from = batch + result->batch_places[at].data + (size_t) first * width;
	if (column->value == GJ_STAGE_KEY && gj_slot_has_nulls(batch)[at])
		v->from_nulls = batch + result->batch_places[at].nulls + first;
	v->from_heap = batch + result->batch_layout.heap;
	v->from_heap_size = result->batch_layout.heap_size;
}

/* Rows `first` and following of a batch whose references fit the heap of a chunk, at most n. */
static uint32_t
rows_that_fit(const GjStageResult *result, const uint8_t *batch, uint32_t first, uint32_t n,
			  uint32_t heap_used)
{
	const GjStageColumn *columns = gj_program_array(result->program, GjStageColumn, stage_columns);
	uint64_t	used = heap_used;

	if (result->layout.heap_size == 0)
		return n;
	for (uint32_t i = 0; i < n; i++)
	{
		for (uint32_t c = 0; c < result->ncolumns; c++)
		{
			const uint32_t key = columns[c].from;
			const uint64_t *refs;

			/* the reference of a NULL says nothing */
			if (columns[c].type.kind != GJ_REF ||
				(gj_slot_has_nulls(batch)[key] &&
				 batch[result->batch_places[key].nulls + first + i]))
				continue;
			refs = (const uint64_t *) (batch + result->batch_places[key].data);
			used += gj_ref_space(__atomic_load_n(&refs[first + i], __ATOMIC_RELAXED));
		}
		if (used > result->layout.heap_size)
			return i;
	}
	return n;
}

/* Adds n rows of a batch to the chunk that is being filled, where they have room. */
static GjStatus
add_rows(GjStageResult *result, const uint8_t *batch, uint32_t first, uint32_t n)
{
	const GjStageColumn *columns = gj_program_array(result->program, GjStageColumn, stage_columns);
	uint8_t    *chunk = last_chunk(result);
	GjSlotHeader *header = header_of(chunk);
	Values		v = {.n = n,.heap = chunk + result->layout.heap,.heap_used = &header->heap_used,
	.heap_size = result->layout.heap_size};

	for (uint32_t c = 0; c < result->ncolumns; c++)
	{
		v.type = &result->types[c];
		v.to = chunk + result->places[c].data + (size_t) header->nrows * v.type->width;
		v.to_nulls = chunk + result->places[c].nulls + header->nrows;
		find_values(result, &columns[c], batch, first, &v);
		GJ_TRY(copy_values(&v, columns[c].value));
		gj_slot_has_nulls(chunk)[c] |= memchr(v.to_nulls, 1, n) != NULL;
		if (gj_slot_has_nulls(chunk)[c] && !v.type->nullable)
			return GJ_DEVICE_ERROR;
	}
	header->nrows += n;
	return GJ_OK;
}

GjStatus
gj_stage_add(GjStageResult *result, const uint8_t *batch, uint32_t nrows, GjErrorText *why)
{
	if (nrows > (result->program->output == GJ_OUTPUT_GROUPS ? result->batch_layout.capacity : 1))
		return GJ_DEVICE_ERROR;
	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		GjSlotHeader header = {result->layout.capacity, 0};
		bool		empty = false;

		if (result->nchunks > 0)
			header = *header_of(last_chunk(result));
		n = result->layout.capacity - header.nrows;
		n = rows_that_fit(result, batch, first, n < nrows - first ? n : nrows - first,
						  header.heap_used);
		if (n == 0)
		{
			GJ_TRY(add_chunk(result, why));
			empty = true;
			n = result->layout.capacity < nrows - first ? result->layout.capacity : nrows - first;
			n = rows_that_fit(result, batch, first, n, 0);
		}
		if (n == 0 && empty)
		{
			snprintf(why->text, sizeof(why->text), "a group does not fit a chunk");
			return GJ_TOO_LARGE;
		}
		GJ_TRY(add_rows(result, batch, first, n));
	}
	return GJ_OK;
}

/* ---- who has it */

void
gj_stage_publish(GjStageResult *result, const GjRunToken *token)
{
	end_making(result);
	result->token = *token;
	pthread_mutex_lock(&published.lock);
	result->next = published.first;
	published.first = result;
	pthread_mutex_unlock(&published.lock);
}

GjStageResult *
gj_stage_get(const GjRunToken *token)
{
	GjStageResult *result;

	pthread_mutex_lock(&published.lock);
	for (result = published.first; result; result = result->next)
		if (memcmp(&result->token, token, sizeof(*token)) == 0)
			break;
	if (result)
		result->nowners++;
	pthread_mutex_unlock(&published.lock);
	return result;
}

void
gj_stage_put(GjStageResult *result)
{
	bool		last;

	if (!result)
		return;
	pthread_mutex_lock(&published.lock);
	last = --result->nowners == 0;
	if (last)
	{
		GjStageResult **link = &published.first;

		while (*link && *link != result)
			link = &(*link)->next;
		if (*link)
			*link = result->next;
	}
	pthread_mutex_unlock(&published.lock);
	if (last)
		free_result(result);
}

bool
gj_stage_fits(const GjStageResult *result, const GjProgram *program, uint32_t source)
{
	const GjSource *s = gj_program_array(program, GjSource, sources) + source;
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns) + s->first_column;

	if (s->ncolumns != result->ncolumns || s->capacity != result->layout.capacity)
		return false;
	for (uint32_t i = 0; i < s->ncolumns; i++)
		if (types[i].kind != result->types[i].kind || types[i].width != result->types[i].width ||
			types[i].nullable < result->types[i].nullable)
			return false;
	return true;
}

uint8_t *
gj_stage_chunk(const GjStageResult *result, uint32_t i, uint32_t *nrows)
{
	if (i >= result->nchunks)
		return NULL;
	*nrows = header_of(result->chunks[i])->nrows;
	return result->chunks[i];
}
