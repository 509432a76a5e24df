/*
 * set_join_run.c
 *	  Runs a set join: a GJ_PROGRAM_SETS on the device, or src/rows/set_join.h in the process.
 *
 * Pairs come in batches, from the output ring or from a tile of the process, and are handed
 * out one by one.  So are distinct intersections, for which the process looks at all pairs
 * first (src/rows/set_intersections.h).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "client/client.h"
#include "guc.h"
#include "rows/set_intersections.h"
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

	/* the batch that is being handed out */
	const uint32 *left;
	const uint32 *right;
	const uint32 *common;
	const char *elements;		/* of distinct intersections, with the next one instead */
	const int64 *frequency;
	uint32		n;
	uint32		at;

	/* distinct: NULL, or of each set the number of the first one that has another id */
	uint32	   *behind;
	/* an intersection of several batches, or of the process */
	char	   *set;
	uint64		set_n;
	uint64		set_room;

	/* on the device */
	GjClient   *client;			/* NULL: in the process */
	GjLayout	load[2];
	GjColumnPlace load_place[2];
	GjLayout	output;
	GjColumnPlace output_place[3];
	int			source;			/* being loaded: 1, 0, then -1 */
	uint64		sent;			/* rows of it */
	bool		batch;			/* there is one, ... */
	uint32		slot;			/* ... here */

	/* in the process */
	bool		built;
	bool		begun;			/* `tile` is one of the family's */
	GjSetHost	host;
	GjSetFamily family;
	GjSetTile	tile;
	uint32	   *out[3];
	/* distinct: the intersections of a part, how many there is room for, and what pairs of a tile need */
	GjIntersections found;
	uint64		found_room;
	uint64		span;			/* of a part */
	GjFoundPairs pairs;
	uint32		next;			/* to be handed out */
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
	bool		first = !join->begun;

	if (!join->built)
		build_in_process(join);
	join->built = join->begun = true;
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

/*
 * Make sure that there is room for n intersections.
 */
static void
grow_found(GjSetJoin *join, uint64 n)
{
	GjIntersections *found = &join->found;
	uint64		room = Max(join->found_room, 1024);

#define GROW(array) \
	((array) = (array) == NULL ? MemoryContextAllocHuge(join->cxt, sizeof(*(array)) * room) : \
	 repalloc_huge((array), sizeof(*(array)) * room))

	if (n <= join->found_room)
		return;
	if (n > PG_UINT32_MAX / 4)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many distinct intersections")));
	while (room < n)
		room *= 2;
	join->found_room = room;
	GROW(found->hash);
	GROW(found->left);
	GROW(found->right);
	GROW(found->common);
	GROW(found->frequency);
#undef GROW
}

/*
 * Make sure that the table has room for npairs more intersections.
 */
static void
grow_table(GjSetJoin *join, uint32 npairs)
{
	GjIntersections *found = &join->found;
	uint64		nslots = Max(found->nslots, 4096);

	while (nslots < 2 * ((uint64) found->n + npairs))
		nslots *= 2;
	if (nslots == found->nslots)
		return;
	if (found->slots != NULL)
		pfree(found->slots);
	found->slots = MemoryContextAllocHuge(join->cxt, sizeof(uint64) * nslots);
	found->nslots = nslots;
	gj_intersections_rehash(found);
}

/*
 * Count all pairs whose intersection belongs to the part.  False if there are more than `most`
 * of these; *done is the share of the pairs that were looked at.
 */
static bool
count_part(GjSetJoin *join, uint64 most, double *done)
{
	const GjSets *sets = join->sets;
	double		npairs = (double) sets->nleft * (sets->nsets - gj_sets_first_right(sets)) / (sets->self ? 2 : 1);
	uint64		compared = join->stats.ncompared;
	GjIntersections *found = &join->found;
	GjFoundPairs *pairs = &join->pairs;

	join->begun = false;
	found->n = 0;
	if (found->nslots > 0)
		gj_intersections_rehash(found);
	while (next_tile(join))
	{
		uint32		n;

		pairs->n = join->n;
		pairs->left = join->left;
		pairs->right = join->right;
		pairs->common = join->common;
		grow_table(join, pairs->n);
		/* interrupts are errors here: it is never stopped */
		if (gj_intersections_find(&join->host, &join->family, found, pairs, &n) != GJ_OK)
			elog(ERROR, "the intersections of a tile could not be looked up");
		if ((uint64) found->n + n > most)
		{
			*done = (join->stats.ncompared - compared) / npairs;
			return false;
		}
		grow_found(join, (uint64) found->n + n);
		gj_intersections_add(found, pairs, n);
		found->n += n;
	}
	return true;
}

/* Bytes of memory for an intersection, and the smallest part worth making. */
#define GJ_INTERSECTION_SPACE	64
#define GJ_MIN_SPAN				(PG_UINT64_MAX >> 20)

/*
 * Collect the first or the next part of the intersections, of a size for which there is memory.
 */
static void
collect_part(GjSetJoin *join)
{
	uint64		most = Max((uint64) gj_spill_memory * 1024 * 1024 / GJ_INTERSECTION_SPACE, 65536);
	GjIntersections *found = &join->found;
	GjFoundPairs *pairs = &join->pairs;
	double		done;

	if (pairs->hash == NULL)
	{
		pairs->hash = MemoryContextAlloc(join->cxt, sizeof(uint64) * GJ_MAX_TUPLES);
		pairs->slot_of = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
		pairs->positions = MemoryContextAlloc(join->cxt, sizeof(uint32) * GJ_MAX_TUPLES);
		pairs->behind = join->behind;
		join->span = PG_UINT64_MAX;
	}
	else
		found->first = found->last + 1;
	for (;;)
	{
		found->last = join->span < PG_UINT64_MAX - found->first ? found->first + join->span : PG_UINT64_MAX;
		if (count_part(join, join->span > GJ_MIN_SPAN ? most : PG_UINT32_MAX, &done))
			break;
		join->span = (found->last - found->first) * Min(Max(0.8 * done, 1.0 / 64), 0.5);
	}
	join->stats.run.step[0].nparts++;
	join->next = 0;
}

/*
 * Make sure that there is room for n elements of an intersection.
 */
static void
grow_set(GjSetJoin *join, uint64 n)
{
	size_t		width = gj_element_width(join->sets->kind);

	if (n <= join->set_room)
		return;
	join->set_room = Max(n, Max(join->set_room * 2, 1024));
	join->set = join->set == NULL ? MemoryContextAllocHuge(join->cxt, join->set_room * width) :
		repalloc_huge(join->set, join->set_room * width);
}

/*
 * Return the next intersection that the process has found.
 */
static bool
next_found(GjSetJoin *join, GjElements *set, int64 *frequency)
{
	const GjSets *sets = join->sets;
	const GjIntersections *found = &join->found;
	GjArrayPair both = {.kind = sets->kind,.operation = GJ_SETS_INTERSECT};

	while (join->pairs.hash == NULL || (join->next == found->n && found->last < PG_UINT64_MAX))
		collect_part(join);
	if (join->next == found->n)
		return false;
	both.input[0] = gj_sets_get(sets, found->left[join->next]);
	both.input[1] = gj_sets_get(sets, found->right[join->next] + gj_sets_first_right(sets));
	grow_set(join, gj_array_pair_room(&both) + 1);
	both.result = join->set;
	gj_array_pair_in_process(&both);
	set->data = join->set;
	set->n = both.count;
	*frequency = found->frequency[join->next++];
	return true;
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
 * Rows of a source (wire/sets.h).
 */
static uint64
source_rows(const GjSetJoin *join, int source)
{
	const GjSets *sets = join->sets;

	return source == 1 ? sets->offset[sets->nsets] : (uint64) sets->nsets * (join->behind != NULL ? 2 : 1);
}

/*
 * Write the program.
 */
static void
write_program(GjSetJoin *join, GjSetsProgram *buffer)
{
	const GjColumnType number = {.kind = GJ_UINT4,.width = sizeof(uint32)};
	const GjColumnType pair[3] = {number, number, number};
	const GjSets *sets = join->sets;
	const GjColumnType intersection[2] = {
		{.kind = sets->kind,.width = gj_element_width(sets->kind)},
		{.kind = GJ_INT8,.width = sizeof(int64)}
	};
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
	program->lease = sets->offset[sets->nsets] * GJ_LEASE_ELEMENT + sets->nsets * UINT64CONST(64) + GJ_LEASE_BASE;
	if (join->spec.distinct)
		program->lease += sets->offset[sets->nsets] * gj_element_width(sets->kind);
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
	uint32		n = Min(join->load[join->source].capacity, source_rows(join, join->source) - join->sent);
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
		{
			uint64		set = join->sent + i;

			((int32 *) target)[i] = set < sets->nsets ? sets->offset[set + 1] - sets->offset[set] :
				join->behind[set - sets->nsets];
		}
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
 * Get the next batch from the device.  False: there is none, and no client either if the process
 * has to do it.
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
	return false;
}

/*
 * Get the next batch from the device, or else from the process.
 */
static bool
next_pairs(GjSetJoin *join)
{
	if (join->client != NULL && next_of_device(join))
		return true;
	return join->client == NULL && next_tile(join);
}

/*
 * Return the next intersection that the device has found; false as next_of_device().
 */
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

			grow_set(join, join->set_n + n);
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
			if (join->set_n > 0)
				elog(ERROR, "the device returned a part of an intersection");
			return false;
		}
	}
}

/* ---- both */

/*
 * Sets of one id are no pair: if there are any, note which sets are behind them.
 */
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
	join->behind = MemoryContextAllocHuge(join->cxt, sizeof(uint32) * sets->nsets);
	for (i = sets->nsets; i-- > 0;)
		join->behind[i] = i + 1 < sets->nsets && sets->id[i] == sets->id[i + 1] ? join->behind[i + 1] : i + 1;
}

/*
 * Start a join.
 */
GjSetJoin *
gj_set_join_start(const GjSets *sets, GjSetPredicate predicate, double threshold, uint32 top_k,
				  bool distinct)
{
	GjSetJoin  *join = palloc0(sizeof(GjSetJoin));

	join->sets = sets;
	join->cxt = CurrentMemoryContext;
	join->spec.algorithm = gj_set_algorithm;
	join->spec.predicate = predicate;
	join->spec.self = sets->self;
	join->spec.top_k = top_k;
	join->spec.distinct = distinct;
	join->spec.threshold = threshold;
	join->spec.nleft = sets->nleft;
	join->spec.nright = sets->self ? 0 : sets->nsets - sets->nleft;
	if (distinct && sets->self)
		note_equal_ids(join);
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
			if (join->stats.complete || !next_pairs(join))
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

/*
 * Return the next distinct intersection.
 */
bool
gj_set_join_next_distinct(GjSetJoin *join, GjElements *set, int64 *frequency)
{
	if (join->stats.complete)
		return false;
	if ((join->client != NULL && next_received(join, set, frequency)) ||
		(join->client == NULL && next_found(join, set, frequency)))
	{
		join->stats.nreturned += *frequency;
		return true;
	}
	join->stats.complete = true;
	return false;
}

const GjSetJoinStats *
gj_set_join_stats(const GjSetJoin *join)
{
	return &join->stats;
}
