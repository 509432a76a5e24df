/*
 * stage.c
 *	  Results of stages: rows on a device, or made of batches; found by their token.
 */
#include "stage.h"
#include "device/group.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a result may take, however little memory there is. */
#define GJ_STAGE_LEAST_BYTES	(UINT64_C(8) * GJ_LOAD_SLOT_SIZE)

/* How much is copied from a device between two looks whether to stop, and how often a waiter looks. */
#define GJ_BRING_BYTES		(UINT64_C(64) << 20)
#define GJ_BRING_POLL_MS	5

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

	GjKeptRows *rows;			/* all of it, on a device; NULL: in chunks */
	pthread_mutex_t bringing;	/* guards chunks of `rows` */
	bool		brought;		/* all of it is in chunks, too */

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
drop_chunks(GjStageResult *result)
{
	for (uint32_t i = 0; i < result->nchunks; i++)
		free(result->chunks[i]);
	result->nchunks = 0;
}

static void
free_result(GjStageResult *result)
{
	drop_chunks(result);
	free(result->chunks);
	if (result->rows)
		gj_rows_drop(result->rows);
	pthread_mutex_destroy(&result->bringing);
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
	pthread_mutex_init(&result->bringing, NULL);
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

/* References of a column, from some row on. */
typedef struct References
{
	const uint64_t *refs;
	const uint8_t *nulls;		/* NULL: there are none */
} References;

/*
 * Of n rows, how many have references that fit a heap of `limit` bytes.  Those of a batch are read
 * once more when they are copied: copy_reference checks them.
 */
static uint32_t
rows_that_fit(const References *columns, uint32_t ncolumns, uint32_t n, uint64_t used,
			  uint64_t limit)
{
	for (uint32_t i = 0; i < n; i++)
	{
		for (uint32_t c = 0; c < ncolumns; c++)
			/* the reference of a NULL says nothing */
			if (!columns[c].nulls || !columns[c].nulls[i])
				used += gj_ref_space(__atomic_load_n(&columns[c].refs[i], __ATOMIC_RELAXED));
		if (used > limit)
			return i;
	}
	return n;
}

/* Values of one column, on their way to a chunk. */
typedef struct Values
{
	const GjColumnType *type;
	const uint8_t *from;		/* the first one, of 8 bytes or a state */
	const uint8_t *from_nulls;	/* NULL: no key is */
	const uint8_t *from_heap;
	uint64_t	from_heap_size;
	uint8_t    *to;
	uint8_t    *to_nulls;
	uint8_t    *heap;			/* of the chunk */
	uint32_t   *heap_used;
	uint32_t	heap_size;
	uint32_t	n;
} Values;

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
copy_references(Values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
	{
		v->to_nulls[i] = v->from_nulls && v->from_nulls[i];
		((uint64_t *) v->to)[i] = 0;
		if (!v->to_nulls[i] &&
			!copy_reference(v, i, __atomic_load_n((const uint64_t *) v->from + i,
												  __ATOMIC_RELAXED)))
			return GJ_TOO_LARGE;
	}
	return GJ_OK;
}

static GjStatus
copy_keys(Values *v)
{
	if (v->type->kind == GJ_REF)
		return copy_references(v);
	for (uint32_t i = 0; i < v->n; i++)
	{
		v->to_nulls[i] = v->from_nulls && v->from_nulls[i];
		gj_stage_store(v->to, v->type->width, i, ((const int64_t *) v->from)[i]);
	}
	return GJ_OK;
}

static GjStatus
copy_values(Values *v, GjStageValue value)
{
	uint32_t	status = GJ_OK;

	if (value == GJ_STAGE_KEY)
		return copy_keys(v);
	for (uint32_t i = 0; i < v->n; i++)
	{
		int64_t		bits = 1;
		bool		null = false;

		if (value != GJ_STAGE_TRUE)
		{
			/* the backend may write to it meanwhile */
			const GjAggState state = ((const GjAggState *) v->from)[i];

			null = gj_stage_of_state(value, v->type->kind == GJ_FLOAT4, &state, &bits, &status);
		}
		v->to_nulls[i] = null;
		gj_stage_store(v->to, v->type->width, i, bits);
	}
	return (GjStatus) status;
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

/* Columns of a batch that are references, from row `first` on; returns how many. */
static uint32_t
find_references(const GjStageResult *result, const uint8_t *batch, uint32_t first,
				References *found)
{
	const GjStageColumn *columns = gj_program_array(result->program, GjStageColumn, stage_columns);
	uint32_t	n = 0;

	for (uint32_t c = 0; c < result->ncolumns; c++)
	{
		const GjColumnPlace *place = &result->batch_places[columns[c].from];

		if (columns[c].type.kind == GJ_REF)
			found[n++] = (References) {
				(const uint64_t *) (batch + place->data) + first,
				gj_slot_has_nulls(batch)[columns[c].from] ? batch + place->nulls + first : NULL
			};
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

/*
 * Of n rows with these references, as many as the last chunk, or else a new one, has room for.
 */
static GjStatus
make_room(GjStageResult *result, const References *refs, uint32_t nrefs, uint32_t *n,
		  GjErrorText *why)
{
	uint32_t	heap_size = result->layout.heap_size;
	uint32_t	wanted = *n;

	for (;;)
	{
		GjSlotHeader header = {result->layout.capacity, 0};
		uint32_t	room;

		if (result->nchunks > 0)
			header = *header_of(last_chunk(result));
		room = result->layout.capacity - header.nrows;
		*n = rows_that_fit(refs, nrefs, wanted < room ? wanted : room, header.heap_used, heap_size);
		if (*n > 0)
			return GJ_OK;
		if (header.nrows == 0)
		{
			snprintf(why->text, sizeof(why->text), "a group does not fit a chunk");
			return GJ_TOO_LARGE;
		}
		GJ_TRY(add_chunk(result, why));
	}
}

GjStatus
gj_stage_add(GjStageResult *result, const uint8_t *batch, uint32_t nrows, GjErrorText *why)
{
	References	refs[GJ_MAX_STAGE_COLUMNS];

	if (nrows > (result->program->output == GJ_OUTPUT_GROUPS ? result->batch_layout.capacity : 1))
		return GJ_DEVICE_ERROR;
	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		n = nrows - first;
		GJ_TRY(make_room(result, refs, find_references(result, batch, first, refs), &n, why));
		GJ_TRY(add_rows(result, batch, first, n));
	}
	return GJ_OK;
}

/* ---- rows on a device */

bool
gj_stage_keep(GjStageResult *result, GjDeviceEntry *entry, GjWork *work, GjRelation *rows)
{
	result->rows = gj_rows_keep(entry, work, rows);
	if (result->rows)
		result->rows->relation.types = result->types;
	return result->rows != NULL;
}

const GjKeptRows *
gj_stage_rows(const GjStageResult *result)
{
	return result->rows;
}

/* Copies rows to the host; says whether it is to stop. */
typedef struct Bringing
{
	GjWork		work;
	bool		(*stop) (void *);
	void	   *arg;
} Bringing;

/* What is copied from the device at once: references, their nulls, and all of their bytes. */
typedef struct Copied
{
	uint8_t    *heap;
	uint8_t    *refs[GJ_MAX_STAGE_COLUMNS]; /* NULL: no references */
	uint8_t    *nulls[GJ_MAX_STAGE_COLUMNS];	/* NULL: none is NULL */
} Copied;

static void
free_copied(Copied *copied, uint32_t ncolumns)
{
	free(copied->heap);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		free(copied->refs[c]);
		free(copied->nulls[c]);
	}
}

/* *copy = a copy of nbytes of the device. */
static GjStatus
copy_all(const Bringing *b, const void *from, uint64_t nbytes, uint8_t **copy)
{
	*copy = malloc(nbytes + 1);
	if (!*copy)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint64_t at = 0, n; at < nbytes; at += n)
	{
		n = nbytes - at < GJ_BRING_BYTES ? nbytes - at : GJ_BRING_BYTES;
		if (b->stop(b->arg))
			return GJ_CANCELLED;
		GJ_TRY(b->work.ops->memory->copy_out(b->work.queue, *copy + at,
											 (const uint8_t *) from + at, n));
		GJ_TRY(b->work.ops->queues->sync(b->work.queue));
	}
	return GJ_OK;
}

static GjStatus
copy_references_out(const GjStageResult *result, const Bringing *b, Copied *copied)
{
	const GjRelation *rows = &result->rows->relation;
	bool		any = false;

	for (uint32_t c = 0; c < result->ncolumns; c++)
	{
		if (result->types[c].kind != GJ_REF)
			continue;
		any = true;
		GJ_TRY(copy_all(b, rows->columns[c].data.memory, rows->nrows * sizeof(uint64_t),
						&copied->refs[c]));
		if (rows->columns[c].nulls.memory)
			GJ_TRY(copy_all(b, rows->columns[c].nulls.memory, rows->nrows, &copied->nulls[c]));
	}
	return any ? copy_all(b, rows->heap.memory, rows->heap_used, &copied->heap) : GJ_OK;
}

/* Copies column c of rows first .. first+n-1 to the last chunk, behind its rows. */
static GjStatus
copy_column(const GjStageResult *result, const GjWork *work, const Copied *copied, uint32_t c,
			uint64_t first, uint32_t n)
{
	const GjRelation *rows = &result->rows->relation;
	const GjRelationColumn *from = &rows->columns[c];
	uint8_t    *chunk = last_chunk(result);
	GjSlotHeader *header = header_of(chunk);
	uint32_t	width = result->types[c].width;
	Values		v = {.type = &result->types[c],.n = n,.heap = chunk + result->layout.heap,
		.heap_used = &header->heap_used,.heap_size = result->layout.heap_size,
		.from_heap = copied->heap,.from_heap_size = rows->heap_used};

	v.to = chunk + result->places[c].data + (size_t) header->nrows * width;
	v.to_nulls = chunk + result->places[c].nulls + header->nrows;
	gj_slot_has_nulls(chunk)[c] = from->nulls.memory != NULL;
	if (v.type->kind == GJ_REF)
	{
		v.from = copied->refs[c] + first * sizeof(uint64_t);
		v.from_nulls = copied->nulls[c] ? copied->nulls[c] + first : NULL;
		return copy_references(&v);
	}
	if (from->nulls.memory)
		GJ_TRY(work->ops->memory->copy_out(work->queue, v.to_nulls,
										   (const uint8_t *) from->nulls.memory + first, n));
	return work->ops->memory->copy_out(work->queue, v.to,
									   (const uint8_t *) from->data.memory + first * width,
									   (size_t) n * width);
}

static GjStatus
copy_rows(GjStageResult *result, const Bringing *b, const Copied *copied, GjErrorText *why)
{
	uint64_t	nrows = result->rows->relation.nrows;
	References	refs[GJ_MAX_STAGE_COLUMNS];

	for (uint64_t first = 0, n; first < nrows; first += n)
	{
		uint32_t	fit = nrows - first < UINT32_MAX ? (uint32_t) (nrows - first) : UINT32_MAX;
		uint32_t	nrefs = 0;

		for (uint32_t c = 0; c < result->ncolumns; c++)
			if (copied->refs[c])
				refs[nrefs++] = (References) {(const uint64_t *) copied->refs[c] + first,
				copied->nulls[c] ? copied->nulls[c] + first : NULL};
		if (b->stop(b->arg))
			return GJ_CANCELLED;
		GJ_TRY(make_room(result, refs, nrefs, &fit, why));
		n = fit;
		for (uint32_t c = 0; c < result->ncolumns; c++)
			GJ_TRY(copy_column(result, &b->work, copied, c, first, fit));
		header_of(last_chunk(result))->nrows += fit;
	}
	return b->work.ops->queues->sync(b->work.queue);
}

/* Brings all of them, or nothing; the lock is held. */
static GjStatus
bring(GjStageResult *result, Bringing *b, GjErrorText *why)
{
	GjDeviceEntry *entry = result->rows->entry;
	Copied		copied = {NULL};
	GjErrorText lost = {""};
	GjStatus	status;

	b->work = (GjWork) {.ops = entry->ops,.queue = gj_resident_open_queue(entry)};
	if (!b->work.queue)
		return GJ_OUT_OF_MEMORY;
	status = copy_references_out(result, b, &copied);
	if (status == GJ_OK)
		status = copy_rows(result, b, &copied, why);
	/* what was queued writes to the copies and the chunks until then */
	if (entry->ops->queues->queue_close(b->work.queue, &lost) == GJ_DEVICE_LOST)
	{
		/* it may still write there: nothing is freed, and the process will end */
		*why = lost;
		return GJ_DEVICE_LOST;
	}
	free_copied(&copied, result->ncolumns);
	/* who tries again begins anew */
	if (status != GJ_OK)
		drop_chunks(result);
	return status;
}

GjStatus
gj_stage_bring(GjStageResult *result, bool (*stop) (void *), void *arg, GjErrorText *why)
{
	Bringing	b = {.stop = stop,.arg = arg};
	GjStatus	status = GJ_OK;

	while (pthread_mutex_trylock(&result->bringing) != 0)
	{
		if (stop(arg))
			return GJ_CANCELLED;
		poll(NULL, 0, GJ_BRING_POLL_MS);
	}
	if (!result->brought)
		status = bring(result, &b, why);
	result->brought |= status == GJ_OK;
	pthread_mutex_unlock(&result->bringing);
	return status;
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
