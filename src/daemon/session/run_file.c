/*
 * run_file.c
 *	  Runs a saved program on saved chunks, without PostgreSQL: gpujoind --run, and scripts/replay.
 *
 * For tests, profiling and sanitizers.  It drives the same team of devices as a session.
 */
#include "run_file.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/saved.h"
#include "daemon/base/base.h"
#include "daemon/program/program.h"

/* The file, and what one run of it needs. */
struct GjSavedFile
{
	uint8_t    *bytes;
	size_t		nbytes;
	GjProgram  *program;
	GjSavedChunk chunks[GJ_MAX_SOURCES];
	GjColumnPlace *chunk_places;
	GjTakeBatch take;
	void	   *arg;
	GjTeam	   *team;
	GjSegment  *load;
	GjSegment  *output;
	uint32_t	busy_slots;		/* of the load ring, a bit each */
	uint32_t	ended;			/* sources, a bit each */
	size_t		at;				/* of the record that comes next */
};

/* ---- the file */

static bool
read_file(GjSavedFile *file, const char *path)
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
next_record(const GjSavedFile *file, size_t *at, GjSavedRecord *record, const uint8_t **payload)
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

/* Where the columns of the sources are in chunks. */
static bool
lay_out_chunks(GjSavedFile *file)
{
	const GjProgram *p = file->program;
	const GjSource *sources = gj_program_array(p, GjSource, sources);
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns);
	GjLayout	layouts[GJ_MAX_SOURCES];

	file->chunk_places = calloc(p->ncolumns + 1, sizeof(GjColumnPlace));
	if (!file->chunk_places || !gj_program_layout_chunks(p, layouts, file->chunk_places))
		return false;
	for (uint32_t s = 0; s < p->nsources; s++)
		file->chunks[s] = (GjSavedChunk) {types + sources[s].first_column,
			file->chunk_places + sources[s].first_column, layouts[s]};
	return true;
}

static bool
read_program(GjSavedFile *file)
{
	size_t		at = GJ_SAVED_MAGIC_SIZE;
	GjSavedRecord record;
	const uint8_t *payload;
	GjErrorText why;

	if (!next_record(file, &at, &record, &payload) || record.type != GJ_SAVED_PROGRAM)
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
	gj_program_find_questions(file->program);
	if (!gj_program_add_operands(&file->program))
		return false;
	for (uint32_t s = 0; s < file->program->nsources; s++)
		if (gj_program_array(file->program, GjSource, sources)[s].stage != 0)
		{
			gj_log(GJ_ERROR, "the program reads the result of another one");
			return false;
		}
	return lay_out_chunks(file);
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
	((GjSavedFile *) arg)->busy_slots &= ~(1u << slot);
	return GJ_OK;
}

static bool
output_ready(void *arg)
{
	return true;
}

static GjStatus
output_slot(void *arg, uint8_t **memory)
{
	*memory = ((GjSavedFile *) arg)->output->memory;
	return GJ_OK;
}

static GjStatus
send_batch(void *arg, uint32_t nrows)
{
	GjSavedFile *file = arg;

	return file->take(file->arg, file->output->memory, nrows);
}

/* ---- the run */

/* Gives the run a chunk in a slot that is free. */
static GjStatus
feed_chunk(GjSavedFile *file, const GjSavedRecord *record, const uint8_t *payload)
{
	uint32_t	slot = (uint32_t) __builtin_ctz(~file->busy_slots);
	uint8_t    *memory = file->load->memory + (size_t) slot * GJ_LOAD_SLOT_SIZE;

	if (record->source >= file->program->nsources ||
		!gj_saved_unpack(&file->chunks[record->source], (uint8_t *) payload, record->nbytes,
						 memory))
		return GJ_BAD_PROGRAM;
	file->busy_slots |= 1u << slot;
	return gj_team_chunk(file->team, record->source, record->nrows, memory, slot);
}

/* The next record.  At the end of the file, sources that have not ended do: build sides first. */
static void
peek_record(const GjSavedFile *file, GjSavedRecord *record, const uint8_t **payload, size_t *next)
{
	uint32_t	build_side = ~(file->ended | 1);

	*next = file->at;
	if (next_record(file, next, record, payload))
		return;
	*next = file->at;
	*record = (GjSavedRecord) {.type = GJ_SAVED_SOURCE_END,
	.source = (uint32_t) __builtin_ctz(build_side) % file->program->nsources};
}

/* Hands the next record to the run, if that can be done now. */
static GjStatus
feed_record(GjSavedFile *file, bool *fed)
{
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	GjSavedRecord record;
	const uint8_t *payload = NULL;
	size_t		next;

	peek_record(file, &record, &payload, &next);
	*fed = record.type != GJ_SAVED_CHUNK ||
		(file->busy_slots != all && gj_team_accepts(file->team, record.source));
	if (!*fed)
		return GJ_OK;
	file->at = next;
	if (record.type == GJ_SAVED_CHUNK)
		return feed_chunk(file, &record, payload);
	if (record.type != GJ_SAVED_SOURCE_END || record.source >= file->program->nsources ||
		(file->ended >> record.source & 1))
		return GJ_BAD_PROGRAM;
	file->ended |= 1u << record.source;
	return gj_team_source_end(file->team, record.source);
}

/* Nothing can be handed over before the devices have done something. */
static GjStatus
await_devices(GjSavedFile *file)
{
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	struct pollfd fd = {.fd = gj_team_fd(file->team),.events = POLLIN};

	GJ_TRY(gj_team_flush(file->team));
	GJ_TRY(gj_team_serve(file->team));
	if (gj_team_complete(file->team) || file->busy_slots != all)
		return GJ_OK;
	/* a run without threads has given all slots back by now */
	if (fd.fd < 0)
		return GJ_BAD_PROGRAM;
	(void) poll(&fd, 1, -1);
	return gj_team_serve(file->team);
}

static GjStatus
feed_file(GjSavedFile *file)
{
	GjSavedRecord record;
	const uint8_t *payload;

	file->at = GJ_SAVED_MAGIC_SIZE;
	file->ended = 0;
	next_record(file, &file->at, &record, &payload);
	while (!gj_team_complete(file->team))
	{
		bool		fed;

		GJ_TRY(feed_record(file, &fed));
		GJ_TRY(fed ? gj_team_work(file->team) : await_devices(file));
	}
	return GJ_OK;
}

static GjStatus
get_rings(GjSavedFile *file, GjErrorText *why)
{
	GjDeviceEntry *entry = gj_team_entry(file->team);

	if (!file->load)
		GJ_TRY(gj_segment_get(entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE, &file->load, why));
	return file->output ? GJ_OK : gj_segment_get(entry, GJ_OUTPUT_SLOT_SIZE, &file->output, why);
}

GjStatus
gj_saved_run(GjSavedFile *file, const GjTeamOptions *options, GjTakeBatch take, void *arg,
			 GjRunStats *stats, GjErrorText *why)
{
	static const GjFinalOps ops = {.slot = output_slot,.ready = output_ready,.send = send_batch};
	const GjRunHost host = {.arg = file,.stop = host_stop,.slot_free = host_slot_free};
	const GjTarget target = {.form = GJ_FORM_FINAL,.arg = file,.final = &ops};
	GjErrorText lost = {""};
	GjStatus	status;

	file->take = take;
	file->arg = arg;
	file->busy_slots = 0;
	file->team = gj_team_open(file->program, options, &host, &target, &status, why);
	if (!file->team)
		return status;
	status = get_rings(file, why);
	if (status == GJ_OK)
		status = feed_file(file);
	if (status == GJ_OK)
		status = gj_team_finish(file->team, stats);
	if (status != GJ_OK && why->text[0] == '\0')
		gj_team_error(file->team, why);
	if (gj_team_close(file->team, &lost) == GJ_DEVICE_LOST)
	{
		status = GJ_DEVICE_LOST;
		*why = lost;
	}
	return status;
}

/* ---- files */

GjSavedFile *
gj_saved_open(const char *path)
{
	GjSavedFile *file = calloc(1, sizeof(GjSavedFile));

	if (file && read_file(file, path) && read_program(file))
		return file;
	gj_saved_close(file);
	return NULL;
}

void
gj_saved_close(GjSavedFile *file)
{
	if (!file)
		return;
	if (file->load)
		gj_segment_put(file->load);
	if (file->output)
		gj_segment_put(file->output);
	free(file->chunk_places);
	free(file->program);
	free(file->bytes);
	free(file);
}

GjProgram *
gj_saved_program(GjSavedFile *file)
{
	return file->program;
}

/* ---- gpujoind --run */

static GjStatus
count_batch(void *arg, const uint8_t *slot, uint32_t nrows)
{
	++*(uint64_t *) arg;
	return GJ_OK;
}

static void
print_result(const GjProgram *program, const GjRunStats *stats, uint64_t nbatches)
{
	static const char *const phases[GJ_NPHASES] = {
		"transfer", "build", "probe", "aggregate", "return", "wait"
	};

	for (uint32_t s = 0; s < program->nsources; s++)
		printf("source %u: %" PRIu64 " rows in, %" PRIu64 " out\n", s,
			   stats->source[s].rows_in, stats->source[s].rows_out);
	for (uint32_t i = 0; i < program->nsteps; i++)
		printf("step %u: %" PRIu64 " rows in, %" PRIu64 " out\n", i,
			   stats->step[i].rows_in, stats->step[i].rows_out);
	printf("rows: %" PRIu64 " in %" PRIu64 " batches\n", stats->rows_out, nbatches);
	printf("bytes: %" PRIu64 " in, %" PRIu64 " out, %" PRIu64 " at most in use\n",
		   stats->bytes_in, stats->bytes_out, stats->memory_peak);
	for (int i = 0; i < GJ_NPHASES; i++)
		printf("%s: %.3f ms\n", phases[i], stats->ms[i]);
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Prints what came of the last run, and the median time of all. */
static bool
run_repeated(GjSavedFile *file, const GjTeamOptions *options, int repeat)
{
	double	   *ms = calloc(repeat, sizeof(double));
	uint64_t	nbatches = 0;
	GjRunStats	stats = {0};
	GjStatus	status = ms ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
	GjErrorText why = {""};

	for (int i = 0; i < repeat && status == GJ_OK; i++)
	{
		int64_t		start = gj_now_us();

		nbatches = 0;
		status = gj_saved_run(file, options, count_batch, &nbatches, &stats, &why);
		ms[i] = (double) (gj_now_us() - start) * 1e-3;
	}
	if (status == GJ_OK)
	{
		print_result(file->program, &stats, nbatches);
		qsort(ms, repeat, sizeof(double), compare_doubles);
		printf("total: %.3f ms, median of %d\n", ms[repeat / 2], repeat);
	}
	else
		gj_log(GJ_ERROR, "%s: %s", gj_reason_text(status), why.text);
	free(ms);
	return status == GJ_OK;
}

int
gj_run_files(char **paths, int npaths, const GjTeamOptions *options, int repeat)
{
	bool		ok = true;

	/* write() says that a file may not be so large */
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < npaths; i++)
	{
		GjSavedFile *file = gj_saved_open(paths[i]);

		ok &= file && run_repeated(file, options, repeat);
		gj_saved_close(file);
	}
	return ok ? 0 : 1;
}
