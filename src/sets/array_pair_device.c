/*
 * array_pair_device.c
 *	  Two integer arrays as sets, on the device: a GJ_PROGRAM_INTERSECT.
 */
#include "postgres.h"

#include "client/client.h"
#include "guc.h"
#include "sets/array_pair.h"

/* Device memory that sorting takes, as a multiple of the input. */
#define GJ_SORT_SPACE		4

/* A program of two sources with one column each, and its array contents. */
typedef struct GjPairProgram
{
	GjProgram	program;
	GjSource	sources[2];
	GjColumnType columns[2];
	uint32		outputs[2];		/* the second is padding */
	GjSetSpec	spec;
} GjPairProgram;

/* A run: what to do, and how far it is. */
typedef struct GjPairRun
{
	GjArrayPair *pair;
	GjClient   *client;
	GjLayout	load;
	GjColumnPlace load_place;
	GjLayout	output;
	GjColumnPlace output_place;
	int			source;			/* being loaded: 1, 0, then -1 */
	uint32		sent;			/* elements of it */
} GjPairRun;

/* What came of an attempt to load. */
typedef enum GjSent
{
	GJ_SENT,
	GJ_NOT_SENT,				/* no slot is free, or the connection is broken, as the next event tells */
	GJ_DAMAGED					/* what is stored */
} GjSent;

/* Compute how many rows of one column fit a slot. */
static void
lay_out(const GjColumnType *type, uint32 slot_size, GjLayout *layout, GjColumnPlace *place)
{
	uint32		capacity = (slot_size - gj_slot_header_size(1)) / (type->width + 1);

	capacity = Min(capacity, GJ_MAX_TUPLES);
	capacity -= capacity % GJ_ALIGN;
	if (!gj_layout(type, 1, capacity, slot_size, layout, place))
		elog(ERROR, "%u rows of one column do not fit a slot", capacity);
}

/* Write the program. */
static void
write_program(GjPairRun *run, GjPairProgram *buffer)
{
	const GjArrayPair *pair = run->pair;
	GjProgram  *program = &buffer->program;
	uint64		nelements = (uint64) pair->input[0].n + pair->input[1].n;

	memset(buffer, 0, sizeof(*buffer));
	for (int i = 0; i < 2; i++)
	{
		buffer->columns[i].kind = pair->kind;
		buffer->columns[i].width = gj_element_width(pair->kind);
		buffer->columns[i].source = i;
	}
	lay_out(&buffer->columns[0], GJ_LOAD_CHUNK_SIZE, &run->load, &run->load_place);
	lay_out(&buffer->columns[0], GJ_OUTPUT_SLOT_SIZE, &run->output, &run->output_place);
	for (int i = 0; i < 2; i++)
	{
		buffer->sources[i].first_column = i;
		buffer->sources[i].ncolumns = 1;
		buffer->sources[i].capacity = run->load.capacity;
		buffer->sources[i].filter = -1;
		buffer->sources[i].nrows_hint = pair->input[i].n;
	}
	program->magic = GJ_PROGRAM_MAGIC;
	program->nbytes = sizeof(*buffer);
	program->kind = GJ_PROGRAM_INTERSECT;
	program->output = pair->result != NULL ? GJ_OUTPUT_ROWS : GJ_OUTPUT_COUNT;
	program->fail_point = gj_fail_at;
	program->output_capacity = run->output.capacity;
	program->lease = nelements * gj_element_width(pair->kind) * GJ_SORT_SPACE;
	program->nsources = 2;
	program->sources = offsetof(GjPairProgram, sources);
	program->ncolumns = 2;
	program->columns = offsetof(GjPairProgram, columns);
	program->noutputs = pair->result != NULL ? 1 : 0;
	program->outputs = offsetof(GjPairProgram, outputs);
	program->nsets = 1;
	program->sets = offsetof(GjPairProgram, spec);
	buffer->spec.algorithm = gj_set_algorithm;
	buffer->spec.operation = pair->operation;
	program->steps = program->exprs = program->instrs = program->constants =
		program->aggregates = sizeof(*buffer);
}

/* Write the next elements to a slot.  False: they are damaged where they are stored. */
static bool
write_elements(GjPairRun *run, uint32 n, uint8 *slot)
{
	const GjArrayPair *pair = run->pair;
	const char *data = pair->input[run->source].data;
	size_t		width = gj_element_width(pair->kind);
	uint8	   *to = slot + run->load_place.data;

	*(GjSlotHeader *) slot = (GjSlotHeader) {.nrows = n};
	gj_slot_has_nulls(slot)[0] = 0;
	if (data == NULL)
		return gj_read_stored(pair->stored[run->source], width * n, to);
	memcpy(to, data + width * run->sent, width * n);
	return true;
}

/* Send the next elements, or the end of a source, if that is possible now. */
static GjSent
load_some(GjPairRun *run)
{
	uint32		n = Min(run->load.capacity, run->pair->input[run->source].n - run->sent);
	uint32		slot;
	uint8	   *target;

	if (n == 0)
	{
		bool		sent = gj_client_end_source(run->client, run->source);

		run->source--;
		run->sent = 0;
		return sent ? GJ_SENT : GJ_NOT_SENT;
	}
	target = gj_client_load_slot(run->client, &slot);
	if (target == NULL)
		return GJ_NOT_SENT;
	if (!write_elements(run, n, target))
		return GJ_DAMAGED;
	run->sent += n;
	return gj_client_send_chunk(run->client, slot, run->source, n) ? GJ_SENT : GJ_NOT_SENT;
}

/* Take a batch.  False if it cannot be right. */
static bool
take_batch(GjPairRun *run, const GjEvent *event)
{
	GjArrayPair *pair = run->pair;
	size_t		width = gj_element_width(pair->kind);
	const uint8 *slot = gj_client_batch(run->client, event->slot);

	if (pair->result == NULL)
	{
		const GjAggState *state = (const GjAggState *) slot;

		pair->count = state->count;
		pair->distinct[0] = state->lo;
		pair->distinct[1] = state->hi;
	}
	else
	{
		uint64		room = gj_array_pair_room(pair);

		if (event->nrows > room - pair->count)
			return false;
		memcpy((char *) pair->result + width * pair->count,
			   slot + run->output_place.data, width * event->nrows);
		pair->count += event->nrows;
	}
	gj_client_free_batch(run->client, event->slot);
	return true;
}

/* Load both sources and take what comes, until the run is over. */
static bool
load_and_take(GjPairRun *run, GjFailure *failure)
{
	for (;;)
	{
		GjSent		sent = run->source >= 0 ? load_some(run) : GJ_NOT_SENT;
		GjEvent		event;

		if (sent == GJ_DAMAGED)
		{
			gj_fail(failure, GJ_UNKNOWN_VALUE, "a compressed array is damaged");
			return false;
		}
		event = gj_client_next(run->client, sent == GJ_NOT_SENT, failure);
		switch (event.type)
		{
			case GJ_EVENT_RESIDENT:
			case GJ_EVENT_NONE:
			case GJ_EVENT_SLOT:
				break;
			case GJ_EVENT_BATCH:
				if (take_batch(run, &event))
					break;
				gj_fail(failure, GJ_DEVICE_ERROR, "more elements than there can be");
				return false;
			case GJ_EVENT_DONE:
				return true;
			case GJ_EVENT_FAILED:
				return false;
		}
	}
}

/* Run the program. */
static bool
run_pair(GjArrayPair *pair, GjFailure *failure)
{
	GjPairRun run = {.pair = pair,.source = 1};
	GjPairProgram program;
	bool		completed;

	write_program(&run, &program);
	pair->count = 0;
	run.client = gj_client_submit(&program.program, NULL, NULL, NULL, failure);
	if (run.client == NULL)
		return false;
	completed = load_and_take(&run, failure);
	gj_client_close(run.client);
	pfree(run.client);
	return completed;
}

bool
gj_array_pair_on_device(GjArrayPair *pair)
{
	GjFailure	failure;

	if (gj_device == GJ_SET_DEVICE_OFF)
		return false;
	if (gj_client_device(&failure) == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("a set function does not use a device: %s", gj_reason_text(failure.reason)),
				 failure.detail[0] != '\0' ? errdetail_internal("%s", failure.detail) : 0));
		gj_client_may_do_without(&failure);
		return false;
	}
	if (run_pair(pair, &failure))
		return true;
	ereport(DEBUG1,
			(errmsg_internal("a set function falls back to the process: %s", gj_reason_text(failure.reason)),
			 failure.detail[0] != '\0' ? errdetail_internal("%s", failure.detail) : 0));
	gj_client_fall_back(&failure);
	return false;
}
