/*
 * run_file.c
 *	  gpujoind --run: a saved program on saved chunks, without PostgreSQL.
 *
 * For tests, profiling and sanitizers.  It goes through the same executor and the
 * same rings as a session; the checksum of the rows does not depend on their order.
 */
#include "run_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "rows/hash.h"
#include "wire/saved.h"
#include "daemon/run/run.h"
#include "daemon/base/log.h"
#include "daemon/program/program.h"
#include "daemon/base/segment.h"
#include "daemon/base/work.h"

/* The file, and what one run of it makes. */
typedef struct GjFileRun
{
	uint8_t    *bytes;
	size_t		nbytes;
	GjProgram  *program;
	GjDeviceEntry *entry;
	GjSegment  *load;
	GjSegment  *output;
	GjColumnType *types;		/* of the output columns */
	GjColumnPlace *places;
	GjLayout	layout;
	uint32_t	noutputs;
	uint32_t	busy_slots;		/* of the load ring, a bit each */

	uint64_t	nrows;
	uint64_t	nbatches;
	uint64_t	checksum;
	GjAggState	states[GJ_MAX_AGGREGATES];
	bool		has_states;
} GjFileRun;

/* ---- the file */

static bool
read_file(GjFileRun *file, const char *path)
{
	FILE	   *f = fopen(path, "rb");
	struct stat st;
	bool		ok;

	if (!f || fstat(fileno(f), &st) != 0)
	{
		gj_log(GJ_ERROR, "could not open \"%s\": %s", path, strerror(errno));
		if (f)
			fclose(f);
		return false;
	}
	file->nbytes = (size_t) st.st_size;
	file->bytes = malloc(file->nbytes + 1);
	ok = file->bytes && fread(file->bytes, 1, file->nbytes, f) == file->nbytes;
	fclose(f);
	if (!ok)
		gj_log(GJ_ERROR, "could not read \"%s\"", path);
	else if (file->nbytes < GJ_SAVED_MAGIC_SIZE ||
			 memcmp(file->bytes, GJ_SAVED_MAGIC, GJ_SAVED_MAGIC_SIZE) != 0)
	{
		gj_log(GJ_ERROR, "\"%s\" is not a saved program", path);
		ok = false;
	}
	return ok;
}

/* The record at *at, which is moved behind it.  False: the file ends here, or is damaged. */
static bool
next_record(const GjFileRun *file, size_t *at, GjSavedRecord *record, const uint8_t **payload)
{
	if (file->nbytes - *at < sizeof(*record))
		return false;
	memcpy(record, file->bytes + *at, sizeof(*record));
	*at += sizeof(*record);
	if (record->nbytes > file->nbytes - *at)
		return false;
	*payload = file->bytes + *at;
	*at += record->nbytes;
	return true;
}

/* Where the output columns are in a batch, for the checksum. */
static bool
lay_out_batches(GjFileRun *file)
{
	file->noutputs = gj_program_noutputs(file->program);
	file->types = calloc(file->noutputs + 1, sizeof(GjColumnType));
	file->places = calloc(file->noutputs + 1, sizeof(GjColumnPlace));
	if (!file->types || !file->places)
		return false;
	return (file->program->output != GJ_OUTPUT_ROWS &&
			file->program->output != GJ_OUTPUT_GROUPS) ||
		gj_program_layout_output(file->program, file->types, &file->layout, file->places);
}

static bool
read_program(GjFileRun *file)
{
	size_t		at = GJ_SAVED_MAGIC_SIZE;
	GjSavedRecord record;
	const uint8_t *payload;
	GjErrorText why;

	if (!next_record(file, &at, &record, &payload) || record.type != GJ_MSG_SUBMIT)
	{
		gj_log(GJ_ERROR, "the file has no program");
		return false;
	}
	file->program = malloc(record.nbytes + sizeof(GjProgram));
	if (!file->program)
		return false;
	memcpy(file->program, payload, record.nbytes);
	if (gj_program_check(file->program, record.nbytes, &why) != GJ_OK)
	{
		gj_log(GJ_ERROR, "invalid program: %s", why.text);
		return false;
	}
	return lay_out_batches(file);
}

/* ---- what the executor asks for */

static bool
host_stop(void *arg)
{
	return false;
}

static GjStatus
host_slot_free(void *arg, uint32_t slot)
{
	((GjFileRun *) arg)->busy_slots &= ~(1u << slot);
	return GJ_OK;
}

static GjStatus
host_output_slot(void *arg, uint8_t **memory)
{
	*memory = ((GjFileRun *) arg)->output->memory;
	return GJ_OK;
}

static uint64_t
hash_value(const GjFileRun *file, const uint8_t *slot, uint32_t c, uint32_t row, uint64_t hash)
{
	const GjColumnPlace *place = &file->places[c];
	const uint8_t *value = slot + place->data + (size_t) row * file->types[c].width;
	uint64_t	ref;

	if (gj_slot_has_nulls(slot)[c] && slot[place->nulls + row])
		return gj_hash_combine(hash, -1);
	if (file->types[c].kind != GJ_REF)
		return gj_hash_bytes(hash, value, file->types[c].width);
	memcpy(&ref, value, sizeof(ref));
	if (gj_ref_length(ref) == GJ_REF_HELD)
		return gj_hash_combine(hash, (int64_t) ref);
	return gj_hash_bytes(hash, slot + file->layout.heap + gj_ref_offset(ref), gj_ref_length(ref));
}

static GjStatus
host_send_batch(void *arg, uint32_t nrows)
{
	GjFileRun  *file = arg;
	const uint8_t *slot = file->output->memory;

	file->nbatches++;
	if (file->program->output != GJ_OUTPUT_ROWS && file->program->output != GJ_OUTPUT_GROUPS)
	{
		memcpy(file->states, slot, sizeof(file->states));
		file->has_states = true;
		return GJ_OK;
	}
	file->nrows += nrows;
	for (uint32_t row = 0; row < nrows; row++)
	{
		uint64_t	hash = 0;

		for (uint32_t c = 0; c < file->noutputs; c++)
			hash = hash_value(file, slot, c, row, hash);
		file->checksum += hash;
	}
	return GJ_OK;
}

/* ---- the run */

/* Gives the run a chunk in a slot that is free. */
static GjStatus
feed_chunk(GjFileRun *file, GjRun *run, const GjSavedRecord *record, const uint8_t *payload)
{
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	uint32_t	slot;
	uint8_t    *memory;

	if (record->nbytes > GJ_LOAD_SLOT_SIZE)
		return GJ_BAD_PROGRAM;
	if (file->busy_slots == all)
		GJ_TRY(gj_run_work(run));
	if (file->busy_slots == all)
		GJ_TRY(gj_run_flush(run));
	slot = (uint32_t) __builtin_ctz(~file->busy_slots);
	memory = file->load->memory + (size_t) slot * GJ_LOAD_SLOT_SIZE;
	file->busy_slots |= 1u << slot;
	memcpy(memory, payload, record->nbytes);
	return gj_run_chunk(run, record->source, record->nrows, memory, slot);
}

static GjStatus
feed_record(GjFileRun *file, GjRun *run, const GjSavedRecord *record, const uint8_t *payload)
{
	switch (record->type)
	{
		case GJ_MSG_CHUNK:
			return feed_chunk(file, run, record, payload);
		case GJ_MSG_SOURCE_END:
			return gj_run_source_end(run, record->source);
		default:
			return GJ_BAD_PROGRAM;
	}
}

static GjStatus
feed_file(GjFileRun *file, GjRun *run)
{
	size_t		at = GJ_SAVED_MAGIC_SIZE;
	GjSavedRecord record;
	const uint8_t *payload;

	next_record(file, &at, &record, &payload);
	while (!gj_run_complete(run))
	{
		if (!next_record(file, &at, &record, &payload))
			return GJ_BAD_PROGRAM;
		GJ_TRY(feed_record(file, run, &record, payload));
	}
	return GJ_OK;
}

static GjStatus
run_once(GjFileRun *file, GjRunStats *stats, GjErrorText *why)
{
	const GjRunHost host = {.arg = file,.stop = host_stop,.output_slot = host_output_slot,
	.send_batch = host_send_batch,.slot_free = host_slot_free};
	GjLease		lease;
	GjErrorText lost;
	GjRun	   *run;
	GjStatus	status;

	file->nrows = file->nbatches = file->checksum = 0;
	file->busy_slots = 0;
	file->has_states = false;
	status = gj_lease_start(&lease, &file->entry->memory, file->program->lease, 0, NULL, NULL);
	if (status != GJ_OK)
		return status;
	run = gj_run_open(file->entry, file->program, &lease, &host, &status, why);
	if (run)
	{
		status = feed_file(file, run);
		if (status == GJ_OK)
			status = gj_run_finish(run, stats);
		snprintf(why->text, sizeof(why->text), "%s", gj_run_error(run));
		gj_run_close(run, &lost);
	}
	gj_lease_end(&lease);
	return status;
}

static void
print_states(const GjFileRun *file)
{
	const GjAggregate *aggregates = gj_program_array(file->program, GjAggregate, aggregates);
	uint32_t	n = file->program->output == GJ_OUTPUT_COUNT ? 1 : file->program->naggregates;

	for (uint32_t i = 0; i < n && file->has_states; i++)
		printf("state %u: op %u count %" PRId64 " hi %" PRId64 " lo %" PRIu64 " f %.17g\n", i,
			   file->program->naggregates > 0 ? aggregates[i].op : 0, file->states[i].count,
			   file->states[i].hi, file->states[i].lo, file->states[i].f);
}

static void
print_result(const GjFileRun *file, const GjRunStats *stats)
{
	static const char *const phases[GJ_NPHASES] = {
		"transfer", "build", "probe", "aggregate", "return", "wait"
	};

	for (uint32_t s = 0; s < file->program->nsources; s++)
		printf("source %u: %" PRIu64 " rows in, %" PRIu64 " out\n", s,
			   stats->source[s].rows_in, stats->source[s].rows_out);
	for (uint32_t i = 0; i < file->program->nsteps; i++)
		printf("step %u: %" PRIu64 " rows in, %" PRIu64 " out\n", i,
			   stats->step[i].rows_in, stats->step[i].rows_out);
	print_states(file);
	printf("rows: %" PRIu64 " in %" PRIu64 " batches, checksum %016" PRIx64 "\n",
		   file->nrows, file->nbatches, file->checksum);
	printf("bytes: %" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " at most in use\n",
		   stats->bytes_in, stats->bytes_out, stats->memory_peak);
	for (int i = 0; i < GJ_NPHASES; i++)
		printf("%s: %.3f ms\n", phases[i], stats->ms[i]);
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static bool
run_repeated(GjFileRun *file, int repeat)
{
	double	   *ms = calloc(repeat, sizeof(double));
	GjRunStats	stats = {0};
	GjStatus	status = ms ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
	GjErrorText why = {""};

	for (int i = 0; i < repeat && status == GJ_OK; i++)
	{
		double		start = now_ms();

		status = run_once(file, &stats, &why);
		ms[i] = now_ms() - start;
	}
	if (status == GJ_OK)
	{
		print_result(file, &stats);
		qsort(ms, repeat, sizeof(double), compare_doubles);
		printf("total: %.3f ms, median of %d\n", ms[repeat / 2], repeat);
	}
	else
		gj_log(GJ_ERROR, "%s: %s", gj_reason_text(status), why.text);
	free(ms);
	return status == GJ_OK;
}

int
gj_run_file(const char *path, GjDeviceKind kind, int repeat)
{
	GjFileRun	file = {NULL};
	GjErrorText why = {""};
	bool		ok = false;

	if (read_file(&file, path) && read_program(&file))
	{
		file.entry = gj_devices_choose(kind, &why);
		if (file.entry &&
			gj_segment_get(file.entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE, &file.load,
						   &why) == GJ_OK &&
			gj_segment_get(file.entry, GJ_OUTPUT_SLOT_SIZE, &file.output, &why) == GJ_OK)
			ok = run_repeated(&file, repeat);
		else
			gj_log(GJ_ERROR, "no device: %s", why.text);
	}
	if (file.load)
		gj_segment_put(file.load);
	if (file.output)
		gj_segment_put(file.output);
	free(file.types);
	free(file.places);
	free(file.program);
	free(file.bytes);
	return ok ? 0 : 1;
}
