/*
 * set_join_run.c
 *	  Runs a set join: a GJ_PROGRAM_SETS on the device, or src/rows/set_join.h in the process.
 *
 * Pairs come in batches, from the output ring or from a tile of the process, and are handed
 * out one by one.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "client/client.h"
#include "guc.h"
#include "rows/set_join.h"
#include "sets/set_join.h"

/* Device memory that a family needs while it is built, bytes an element. */
#define GJ_LEASE_ELEMENT	72
#define GJ_LEASE_BASE		(64 * 1024 * 1024)

typedef struct GjSetsProgram
{
	GjProgram	program;
	GjSource	sources[2];
	GjColumnType columns[2];
	GjSetSpec	spec;
} GjSetsProgram;

struct GjSetJoin
{
	const GjSets *sets;
	GjSetSpec	spec;
	MemoryContext cxt;
	GjSetJoinStats stats;

	/* the batch that is being handed out: `left` is NULL if there is none */
	const uint32 *left;
	const uint32 *right;
	const uint32 *common;
	uint32		n;
	uint32		at;

	/* on the device */
	GjClient   *client;			/* NULL: in the process */
	GjLayout	load[2];
	GjColumnPlace load_place[2];
	GjLayout	output;
	GjColumnPlace output_place[3];
	int			source;			/* being loaded: 1, 0, then -1 */
	uint64		sent;			/* rows of it */
	uint32		slot;			/* of the batch */

	/* in the process */
	bool		built;
	GjSetHost	host;
	GjSetFamily family;
	GjSetTile	tile;
	uint32	   *out[3];
};

/* ---- in the process */

static void *
process_alloc(void *arg, size_t nbytes)
{
	return MemoryContextAllocExtended(((GjSetJoin *) arg)->cxt, nbytes + 1, MCXT_ALLOC_HUGE);
}

static void
process_free(void *arg, void *memory)
{
	if (memory != NULL)
		pfree(memory);
}

static bool
process_run(void *arg, uint32_t n, void (*task) (void *, uint32_t), void *task_arg)
{
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		task(task_arg, i);
	}
	return true;
}

/*
 * Build the family.
 */
static void
build_in_process(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	int32	   *size = MemoryContextAllocExtended(join->cxt, sizeof(int32) * (sets->nsets + 1), MCXT_ALLOC_HUGE);
	GjSetInput	input = {.size = size,.nsets = sets->nsets,.values = sets->elements,
	.nvalues = sets->offset[sets->nsets],.width = gj_element_width(sets->kind)};
	GjStatus	status;

	join->stats.on_device = false;
	join->host = (GjSetHost) {join, process_alloc, process_free, process_run};
	for (uint32 i = 0; i < sets->nsets; i++)
		size[i] = sets->offset[i + 1] - sets->offset[i];
	status = gj_set_family_build(&join->host, &input, &join->spec, &join->family);
	if (status != GJ_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the sets could not be joined: %s", gj_reason_text(status))));
	join->stats.algorithm = join->family.algorithm;
	pfree(size);
	for (int i = 0; i < 3; i++)
		join->out[i] = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
}

/*
 * Get the next tile that has pairs.
 */
static bool
next_tile(GjSetJoin *join)
{
	bool		first = !join->built;

	if (first)
		build_in_process(join);
	join->built = true;
	for (; gj_set_next_tile(&join->family, &join->spec, &join->tile, first); first = false)
	{
		GjStatus	status = gj_set_run_tile(&join->host, &join->family, &join->spec, &join->tile,
											 join->out, &join->n);

		if (status != GJ_OK)
			elog(ERROR, "a tile of a set join failed: %s", gj_reason_text(status));
		join->stats.ncompared += (uint64) join->tile.nleft * join->tile.nright;
		if (join->n == 0)
			continue;
		join->left = join->out[0];
		join->right = join->out[1];
		join->common = join->out[2];
		return true;
	}
	return false;
}

/* ---- on the device */

/*
 * Compute how many rows of one column fit a slot.
 */
static void
lay_out(const GjColumnType *types, uint32 ncolumns, uint32 slot_size, GjLayout *layout, GjColumnPlace *places)
{
	uint32		width = 0;
	uint32		capacity;

	for (uint32 i = 0; i < ncolumns; i++)
		width += types[i].width + 1;
	capacity = (slot_size - gj_slot_header_size(ncolumns) - ncolumns * GJ_ALIGN * 2) / width;
	capacity = Min(capacity, GJ_MAX_TUPLES);
	capacity -= capacity % GJ_ALIGN;
	if (!gj_layout(types, ncolumns, capacity, slot_size, layout, places))
		elog(ERROR, "%u rows of %u columns do not fit a slot", capacity, ncolumns);
}

/*
 * Write the program.
 */
static void
write_program(GjSetJoin *join, GjSetsProgram *buffer)
{
	const GjColumnType number = {.kind = GJ_UINT4,.width = sizeof(uint32)};
	const GjColumnType outputs[3] = {number, number, number};
	const GjSets *sets = join->sets;
	GjProgram  *program = &buffer->program;

	memset(buffer, 0, sizeof(*buffer));
	buffer->spec = join->spec;
	buffer->columns[0] = (GjColumnType) {.kind = GJ_INT4,.width = sizeof(int32),.source = 0};
	buffer->columns[1] = (GjColumnType) {.kind = sets->kind,.width = gj_element_width(sets->kind),.source = 1};
	for (int i = 0; i < 2; i++)
	{
		lay_out(&buffer->columns[i], 1, GJ_LOAD_CHUNK_SIZE, &join->load[i], &join->load_place[i]);
		buffer->sources[i].first_column = i;
		buffer->sources[i].ncolumns = 1;
		buffer->sources[i].capacity = join->load[i].capacity;
		buffer->sources[i].filter = -1;
		buffer->sources[i].nrows_hint = i == 0 ? sets->nsets : sets->offset[sets->nsets];
	}
	lay_out(outputs, 3, GJ_OUTPUT_SLOT_SIZE, &join->output, join->output_place);
	program->magic = GJ_PROGRAM_MAGIC;
	program->nbytes = sizeof(*buffer);
	program->kind = GJ_PROGRAM_SETS;
	program->output = GJ_OUTPUT_ROWS;
	program->fail_point = gj_fail_at;
	program->output_capacity = join->output.capacity;
	program->lease = sets->offset[sets->nsets] * GJ_LEASE_ELEMENT + sets->nsets * UINT64CONST(64) + GJ_LEASE_BASE;
	program->nsources = 2;
	program->sources = offsetof(GjSetsProgram, sources);
	program->ncolumns = 2;
	program->columns = offsetof(GjSetsProgram, columns);
	program->nsets = 1;
	program->sets = offsetof(GjSetsProgram, spec);
	program->steps = program->exprs = program->instrs = program->constants = program->outputs =
		program->aggregates = sizeof(*buffer);
}

/*
 * Send the next rows, or the end of a source.  False if no slot is free or the connection
 * is broken; what to do then is known from the next event.
 */
static bool
load_some(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	uint64		total = join->source == 0 ? sets->nsets : sets->offset[sets->nsets];
	uint32		n = Min(join->load[join->source].capacity, total - join->sent);
	uint32		slot;
	uint8	   *target;

	if (n == 0)
	{
		bool		sent = gj_client_end_source(join->client, join->source);

		join->source--;
		join->sent = 0;
		return sent;
	}
	target = gj_client_load_slot(join->client, &slot);
	if (target == NULL)
		return false;
	*(GjSlotHeader *) target = (GjSlotHeader) {.nrows = n};
	gj_slot_has_nulls(target)[0] = 0;
	target += join->load_place[join->source].data;
	if (join->source == 1)
		memcpy(target, sets->elements + join->sent * gj_element_width(sets->kind),
			   n * gj_element_width(sets->kind));
	else
		for (uint32 i = 0; i < n; i++)
			((int32 *) target)[i] = sets->offset[join->sent + i + 1] - sets->offset[join->sent + i];
	join->sent += n;
	return gj_client_send_chunk(join->client, slot, join->source, n);
}

/*
 * Load until there is a batch (true) or the end; failures are told apart by *failed.
 */
static bool
next_batch(GjSetJoin *join, GjFailure *failure, bool *failed)
{
	*failed = false;
	if (join->left != NULL)
		gj_client_free_batch(join->client, join->slot);
	join->left = NULL;
	for (;;)
	{
		bool		loading = join->source >= 0 && load_some(join);
		GjEvent		event = gj_client_next(join->client, !loading, failure);
		const uint8 *batch;

		switch (event.type)
		{
			case GJ_EVENT_RESIDENT:
			case GJ_EVENT_NONE:
			case GJ_EVENT_SLOT:
				break;
			case GJ_EVENT_BATCH:
				batch = gj_client_batch(join->client, event.slot);
				join->slot = event.slot;
				join->n = event.nrows;
				join->stats.algorithm = ((const GjSlotHeader *) batch)->heap_used;
				join->left = (const uint32 *) (batch + join->output_place[0].data);
				join->right = (const uint32 *) (batch + join->output_place[1].data);
				join->common = (const uint32 *) (batch + join->output_place[2].data);
				return true;
			case GJ_EVENT_DONE:
				return false;
			case GJ_EVENT_FAILED:
				*failed = true;
				return false;
		}
	}
}

/*
 * Say why the device does not do it.
 */
static void
note_failure(GjSetJoin *join, const GjFailure *failure, const char *what)
{
	join->stats.reason = failure->reason;
	ereport(DEBUG1,
			(errmsg_internal("%s: %s", what, gj_reason_text(failure->reason)),
			 failure->detail[0] != '\0' ? errdetail_internal("%s", failure->detail) : 0));
}

/*
 * Submit the program, if the device should do it.
 */
static void
submit(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	uint64		npairs = (uint64) sets->nleft * (sets->nsets - gj_sets_first_right(sets));
	const GjDeviceInfo *device;
	GjSetsProgram program;
	GjFailure	failure;

	if (!gj_enabled || gj_device == GJ_SET_DEVICE_OFF || npairs == 0 ||
		Max(npairs, sets->offset[sets->nsets]) < gj_set_device_min_elements)
		return;
	device = gj_client_device(&failure);
	if (device == NULL)
	{
		note_failure(join, &failure, "a set join does not use a device");
		return;
	}
	write_program(join, &program);
	join->source = 1;
	join->stats.device_kind = device->kind;
	join->client = gj_client_submit(&program.program, NULL, &failure);
	join->stats.on_device = join->client != NULL;
	if (join->client != NULL)
		return;
	note_failure(join, &failure, "a set join falls back to the process");
	gj_client_count(&failure);
}

/*
 * Get the next batch from the device, or else from the process.
 */
static bool
next_of_device(GjSetJoin *join)
{
	GjFailure	failure;
	bool		failed;

	if (next_batch(join, &failure, &failed))
		return true;
	if (!failed)
	{
		join->stats.run = *gj_client_stats(join->client);
		join->stats.ncompared = join->stats.run.step[0].rows_in;
		join->stats.algorithm = join->stats.run.step[0].set_algorithm;
	}
	gj_client_close(join->client);
	if (!failed)
		return false;
	gj_client_count(&failure);
	if (join->stats.nreturned > 0)
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("gpujoin lost its device after rows had been returned"),
				 errdetail("%s", gj_reason_text(failure.reason)),
				 errhint("Run the query again.")));
	note_failure(join, &failure, "a set join falls back to the process");
	pfree(join->client);
	join->client = NULL;
	return next_tile(join);
}

/* ---- both */

/*
 * Start a join.
 */
GjSetJoin *
gj_set_join_start(const GjSets *sets, GjSetPredicate predicate, double threshold, uint32 top_k)
{
	GjSetJoin  *join = palloc0(sizeof(GjSetJoin));

	join->sets = sets;
	join->cxt = CurrentMemoryContext;
	join->spec.algorithm = gj_set_algorithm;
	join->spec.predicate = predicate;
	join->spec.self = sets->self;
	join->spec.top_k = top_k;
	join->spec.threshold = threshold;
	join->spec.nleft = sets->nleft;
	join->spec.nright = sets->self ? 0 : sets->nsets - sets->nleft;
	submit(join);
	return join;
}

/*
 * Return the next pair.
 */
bool
gj_set_join_next(GjSetJoin *join, GjPair *pair)
{
	const GjSets *sets = join->sets;
	uint32		first_right = gj_sets_first_right(sets);

	for (;;)
	{
		while (join->at == join->n)
		{
			join->at = join->n = 0;
			if (join->stats.complete || !(join->client != NULL ? next_of_device(join) : next_tile(join)))
			{
				join->stats.complete = true;
				return false;
			}
		}
		pair->left = join->left[join->at];
		pair->right = join->right[join->at];
		pair->common = join->common[join->at];
		join->at++;
		if (pair->left >= sets->nleft || pair->right >= sets->nsets - first_right)
			elog(ERROR, "the device returned a set that does not exist");
		pair->right += first_right;
		/* left_id < right_id: equal ids are no pair */
		if (sets->self && join->spec.top_k == 0 && sets->id[pair->left] == sets->id[pair->right])
			continue;
		join->stats.nreturned++;
		return true;
	}
}

const GjSetJoinStats *
gj_set_join_stats(const GjSetJoin *join)
{
	return &join->stats;
}
