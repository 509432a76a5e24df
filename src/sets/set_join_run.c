/*
 * set_join_run.c
 *	  Runs a set join: a GJ_PROGRAM_SETS on the device, or in the process (set_join_process.c).
 *
 * Pairs come in batches, from the output ring or from a tile of the process, and are handed
 * out one by one.  Families that do not fit the device are joined block by block, each block a
 * run of its own (set_blocks.h); a block of which the device has returned nothing can be done
 * in the process instead.  So are distinct intersections handed out, for which the process looks
 * at all pairs first (src/device/set_intersections.h); they are never taken in blocks.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "guc.h"
#include "sets/set_join_state.h"

/* Device memory that a family needs while it is built, bytes an element. */
#define GJ_LEASE_ELEMENT	72
#define GJ_LEASE_BASE		(64 * 1024 * 1024)
/* Blocks of less are not tried. */
#define GJ_LEAST_ROOM		(1024 * 1024)

typedef struct GjSetsProgram
{
	GjProgram	program;
	GjSource	sources[2];
	GjColumnType columns[2];
	GjSetSpec	spec;
} GjSetsProgram;

/* ---- on the device */

/*
 * Raise an error: rows of a batch cannot be right.  Some may have been returned.
 */
static void
batch_is_damaged(const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("gpujoin received damaged rows from its device"),
			 errdetail_internal("%s", why),
			 errhint("Run the query again.")));
}

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

/* Rows of a source (wire/sets.h). */
static uint64
source_rows(const GjSetJoin *join, int source)
{
	return source == 1 ? gj_join_block_elements(join, 0) + gj_join_block_elements(join, 1) :
		(uint64) gj_join_block_sets(join) * (join->behind != NULL ? 2 : 1);
}

/* Write the program. */
static void
write_program(GjSetJoin *join, GjSetsProgram *buffer)
{
	const GjColumnType number = {.kind = GJ_UINT4,.width = sizeof(uint32)};
	const GjColumnType pair[3] = {number, number, number};
	const GjColumnType intersection[2] = {
		{.kind = join->sets->kind,.width = gj_element_width(join->sets->kind)},
		{.kind = GJ_INT8,.width = sizeof(int64)}
	};
	uint64		nelements = gj_join_block_elements(join, 0) + gj_join_block_elements(join, 1);
	uint32		nsets = gj_join_block_sets(join);
	GjProgram  *program = &buffer->program;

	memset(buffer, 0, sizeof(*buffer));
	buffer->spec = join->spec;
	buffer->columns[0] = (GjColumnType) {.kind = GJ_INT4,.width = sizeof(int32),.source = 0};
	buffer->columns[1] = (GjColumnType) {.kind = join->sets->kind,.width = gj_element_width(join->sets->kind),.source = 1};
	for (int i = 0; i < 2; i++)
	{
		lay_out(&buffer->columns[i], 1, GJ_LOAD_CHUNK_SIZE, &join->load[i], &join->load_place[i]);
		buffer->sources[i].first_column = i;
		buffer->sources[i].ncolumns = 1;
		buffer->sources[i].capacity = join->load[i].capacity;
		buffer->sources[i].filter = -1;
		buffer->sources[i].nrows_hint = source_rows(join, i);
	}
	lay_out(join->spec.distinct ? intersection : pair, join->spec.distinct ? 2 : 3, GJ_OUTPUT_SLOT_SIZE,
			&join->output, join->output_place);
	program->magic = GJ_PROGRAM_MAGIC;
	program->nbytes = sizeof(*buffer);
	program->kind = GJ_PROGRAM_SETS;
	program->output = GJ_OUTPUT_ROWS;
	program->fail_point = gj_fail_at;
	program->output_capacity = join->output.capacity;
	program->lease = nelements * GJ_LEASE_ELEMENT + nsets * UINT64CONST(64) + GJ_LEASE_BASE;
	if (join->spec.distinct)
		program->lease += nelements * gj_element_width(join->sets->kind);
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
	const GjSetBlock *block = &join->blocks.block;
	uint64		nleft = gj_join_block_elements(join, 0);
	bool		of_right = join->source == 1 && join->sent >= nleft;
	uint64		total = join->source == 0 ? source_rows(join, 0) : of_right ? nleft + gj_join_block_elements(join, 1) : nleft;
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
	{
		uint64		at = of_right ? sets->offset[block->right] + (join->sent - nleft) :
			sets->offset[block->left] + join->sent;

		memcpy(target, sets->elements + at * gj_element_width(sets->kind), n * gj_element_width(sets->kind));
	}
	else
		for (uint32 i = 0; i < n; i++)
		{
			uint64		set = join->sent + i;

			((int32 *) target)[i] = set < gj_join_block_sets(join) ? gj_join_set_size(join, set) :
				join->behind[set - gj_join_block_sets(join)];
		}
	join->sent += n;
	return gj_client_send_chunk(join->client, slot, join->source, n);
}

/* Load until there is a batch (true) or the end; failures are told apart by *failed. */
static bool
next_batch(GjSetJoin *join, GjFailure *failure, bool *failed)
{
	*failed = false;
	if (join->batch)
		gj_client_free_batch(join->client, join->slot);
	join->batch = false;
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
				join->batch = true;
				join->n = event.nrows;
				join->stats.algorithm = ((const GjSlotHeader *) batch)->heap_used;
				if (join->spec.distinct)
				{
					join->elements = (const char *) batch + join->output_place[0].data;
					join->frequency = (const int64 *) (batch + join->output_place[1].data);
					return true;
				}
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

/* Say why the device does not do it. */
static void
note_failure(GjSetJoin *join, const GjFailure *failure, const char *what)
{
	join->stats.reason = failure->reason;
	ereport(DEBUG1,
			(errmsg_internal("%s: %s", what, gj_reason_text(failure->reason)),
			 failure->detail[0] != '\0' ? errdetail_internal("%s", failure->detail) : 0));
}

/* Decide whether the device should do it, and how large the blocks are then. */
static void
choose_device(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	uint64		npairs = (uint64) sets->nleft * (sets->nsets - gj_sets_first_right(sets));
	const GjDeviceInfo *device;
	uint64		memory;
	GjFailure	failure;
	const char *reason;

	join->room = 0;
	if (!gj_may_offload(&reason) || npairs == 0 ||
		Max(npairs, sets->offset[sets->nsets]) < gj_set_device_min_elements)
		return;
	device = gj_client_device(&failure);
	if (device == NULL)
	{
		note_failure(join, &failure, "a set join does not use a device");
		gj_client_may_do_without(&failure);
		return;
	}
	join->stats.device_kind = device->kind;
	/* nine tenths may be leased (src/daemon/base/devices.c) */
	memory = device->memory_total / 10 * 9;
	if (gj_query_memory() > 0)
		memory = Min(memory, gj_query_memory());
	/* however little it is: the device may know better */
	join->room = Max(gj_set_blocks_room(memory), memory / 8);
}

/* Cut the families, from the beginning: the process has as much memory as it wants. */
static void
start_blocks(GjSetJoin *join)
{
	gj_set_blocks_start(&join->blocks, join->sets, join->spec.top_k > 0,
						join->spec.distinct || join->room == 0 ? PG_UINT64_MAX : join->room);
}

/* Take the next block. */
static bool
take_block(GjSetJoin *join)
{
	if (!gj_set_blocks_next(&join->blocks))
		return false;
	join->stats.nblocks = join->blocks.n;
	join->spec.self = join->blocks.block.self;
	join->spec.nleft = join->blocks.block.nleft;
	join->spec.nright = join->spec.self ? 0 : join->blocks.block.nright;
	return true;
}

/* Submit the program of the block, if the device should do it. */
static void
submit(GjSetJoin *join)
{
	GjSetsProgram program;
	GjFailure	failure;

	if (join->room == 0)
		return;
	write_program(join, &program);
	join->source = 1;
	join->sent = 0;
	join->client = gj_client_submit(&program.program, NULL, NULL, NULL, &failure);
	join->stats.on_device |= join->client != NULL;
	if (join->client != NULL)
		return;
	note_failure(join, &failure, "a set join falls back to the process");
	gj_client_fall_back(&failure);
	join->room = 0;
	/* which does all at once, if nothing was done yet */
	if (join->blocks.n == 1)
	{
		start_blocks(join);
		take_block(join);
	}
}

/* Give back all that belongs to the current block, with the connection, if there is one. */
static void
forget_block(GjSetJoin *join)
{
	MemoryContextReset(join->cxt);
	join->client = NULL;
	join->batch = false;
	join->built = join->begun = false;
	join->n = join->at = 0;
	join->set = NULL;
	join->set_n = join->set_room = 0;
	memset(&join->found, 0, sizeof(join->found));
	memset(&join->pairs, 0, sizeof(join->pairs));
	join->found_room = 0;
	join->next = 0;
}

/* Start with the first block, or go on with the next one. */
static bool
next_block(GjSetJoin *join)
{
	MemoryContext caller;

	forget_block(join);
	join->nbefore = join->stats.nreturned;
	if (!take_block(join))
		return false;
	caller = MemoryContextSwitchTo(join->cxt);
	submit(join);
	MemoryContextSwitchTo(caller);
	return true;
}

/*
 * Go on after a failure of the device: with smaller blocks, or in the process, from the
 * beginning if nothing was returned yet, else with this block.
 */
static void
recover(GjSetJoin *join, const GjFailure *failure)
{
	bool		too_large = failure->reason == GJ_OUT_OF_MEMORY || failure->reason == GJ_TOO_LARGE;
	bool		again = join->stats.nreturned == 0;

	if (join->stats.nreturned > join->nbefore)
	{
		gj_client_count(failure);
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("gpujoin lost its device after rows had been returned"),
				 errdetail("%s", gj_reason_text(failure->reason)),
				 errhint("Run the query again.")));
	}
	if (again && too_large && !join->spec.distinct && gj_fail_at == GJ_FAIL_NEVER && join->room > GJ_LEAST_ROOM && gj_join_block_sets(join) > 2)
		join->room /= 2;
	else
	{
		note_failure(join, failure, "a set join falls back to the process");
		gj_client_fall_back(failure);
		/* for the next block there may be memory */
		if (again || !too_large)
			join->room = 0;
	}
	if (again)
	{
		join->stats.ncompared = 0;
		memset(&join->stats.run, 0, sizeof(join->stats.run));
		start_blocks(join);
		next_block(join);
		return;
	}
	forget_block(join);
}

/*
 * Get the next batch from the device.  False: it was the last one of the block, or there is no client,
 * and the process has to do it.
 */
static bool
next_of_device(GjSetJoin *join)
{
	GjFailure	failure;
	bool		failed;

	if (next_batch(join, &failure, &failed))
		return true;
	if (failed)
	{
		recover(join, &failure);
		return join->client != NULL && next_of_device(join);
	}
	gj_add_run_stats(&join->stats.run, gj_client_stats(join->client), ~0u);
	join->stats.ncompared += gj_client_stats(join->client)->step[0].rows_in;
	join->stats.algorithm = gj_client_stats(join->client)->step[0].set_algorithm;
	return false;
}

/* Get the next pairs of the block, from the device or in the process; false at its end. */
static bool
next_pairs(GjSetJoin *join)
{
	if (join->client != NULL && next_of_device(join))
		return true;
	return join->client == NULL && gj_set_process_tile(join);
}

/* Return the next intersection that the device has found; false as next_of_device(). */
static bool
next_received(GjSetJoin *join, GjElements *set, int64 *frequency)
{
	size_t		width = gj_element_width(join->sets->kind);

	join->set_n = 0;
	for (;;)
	{
		uint32		end = join->at;

		while (end < join->n && join->frequency[end] == 0)
			end++;
		if (end < join->n && join->set_n == 0)
		{
			set->data = join->elements + join->at * width;
			set->n = end + 1 - join->at;
		}
		else
		{
			uint32		n = Min(end + 1, join->n) - join->at;

			gj_set_join_grow(join, join->set_n + n);
			memcpy(join->set + join->set_n * width, join->elements + join->at * width, n * width);
			join->set_n += n;
			set->data = join->set;
			set->n = join->set_n;
		}
		if (end < join->n)
		{
			*frequency = join->frequency[end];
			join->at = end + 1;
			return true;
		}
		join->at = join->n = 0;
		if (!next_of_device(join))
		{
			if (join->client != NULL && join->set_n > 0)
				batch_is_damaged("a part of an intersection");
			return false;
		}
	}
}

/* ---- both */

/* Sets of one id are no pair: if there are any, note which sets are behind them. */
static void
note_equal_ids(GjSetJoin *join)
{
	const GjSets *sets = join->sets;
	uint32		i = 1;

	while (i < sets->nsets && sets->id[i] != sets->id[i - 1])
		i++;
	if (i >= sets->nsets)
		return;
	join->spec.behind = 1;
	join->behind = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32) * sets->nsets);
	for (i = sets->nsets; i-- > 0;)
		join->behind[i] = i + 1 < sets->nsets && sets->id[i] == sets->id[i + 1] ? join->behind[i + 1] : i + 1;
}

GjSetJoin *
gj_set_join_start(const GjSets *sets, GjSetPredicate predicate, double threshold, uint32 top_k,
				  bool distinct)
{
	GjSetJoin  *join = palloc0(sizeof(GjSetJoin));

	join->sets = sets;
	join->cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin block of sets", ALLOCSET_DEFAULT_SIZES);
	join->spec.algorithm = gj_set_algorithm;
	join->spec.predicate = predicate;
	join->spec.top_k = top_k;
	join->spec.distinct = distinct;
	join->spec.threshold = threshold;
	if (distinct && sets->self)
		note_equal_ids(join);
	choose_device(join);
	start_blocks(join);
	join->stats.complete = !next_block(join);
	return join;
}

bool
gj_set_join_next(GjSetJoin *join, GjPair *pair)
{
	const GjSets *sets = join->sets;
	const GjSetBlock *block = &join->blocks.block;

	for (;;)
	{
		while (join->at == join->n)
		{
			join->at = join->n = 0;
			if (join->stats.complete)
				return false;
			if (!next_pairs(join))
				join->stats.complete = !next_block(join);
		}
		pair->left = join->left[join->at];
		pair->right = join->right[join->at];
		pair->common = join->common[join->at];
		join->at++;
		if (pair->left >= block->nleft || pair->right >= block->nright)
			batch_is_damaged("a set that does not exist");
		pair->left += block->left;
		pair->right += block->right;
		/* left_id < right_id: equal ids are no pair */
		if (sets->self && join->spec.top_k == 0 && sets->id[pair->left] == sets->id[pair->right])
			continue;
		join->stats.nreturned++;
		return true;
	}
}

bool
gj_set_join_next_distinct(GjSetJoin *join, GjElements *set, int64 *frequency)
{
	if (join->stats.complete)
		return false;
	if ((join->client != NULL && next_received(join, set, frequency)) ||
		(join->client == NULL && gj_set_process_found(join, set, frequency)))
	{
		join->stats.nreturned += *frequency;
		return true;
	}
	join->stats.complete = !next_block(join);
	return false;
}

const GjSetJoinStats *
gj_set_join_stats(const GjSetJoin *join)
{
	return &join->stats;
}
