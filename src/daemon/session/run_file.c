/*
 * run_file.c
 *	  gpujoind --run: a saved program on saved chunks, without PostgreSQL.
 *
 * For tests, profiling and sanitizers.  It drives the same team of devices as a session;
 * the checksum of the rows does not depend on their order.
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
#include <time.h>
#include <unistd.h>

#include "rows/hash.h"
#include "wire/saved.h"
#include "daemon/sink/sink.h"
#include "daemon/base/base.h"
#include "daemon/program/program.h"
#include "run_result.h"

/* A run that writes its result may take so long, in seconds. */
#define GJ_RESULT_SECONDS	60

/* The file, and what one run of it makes. */
typedef struct GjFileRun
{
	uint8_t    *bytes;
	size_t		nbytes;
	GjProgram  *program;
	const GjSinkOps *sink;		/* its own */
	GjSavedChunk chunks[GJ_MAX_SOURCES];
	GjColumnPlace *chunk_places;
	const GjRunFileOptions *options;
	GjTeam	   *team;
	GjRunResult *result;		/* NULL: none is written */
	GjSegment  *load;
	GjSegment  *output;
	GjColumnType *types;		/* of the output columns */
	GjColumnPlace *places;
	GjLayout	layout;
	uint32_t	noutputs;
	uint32_t	busy_slots;		/* of the load ring, a bit each */
	uint32_t	ended;			/* sources, a bit each */
	size_t		at;				/* of the record that comes next */

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

/* Where the columns of the sources are in chunks. */
static bool
lay_out_chunks(GjFileRun *file)
{
	const GjProgram *p = file->program;
	const GjSource *sources = gj_program_array(p, GjSource, sources);

	file->chunk_places = calloc(p->ncolumns + 1, sizeof(GjColumnPlace));
	if (!file->chunk_places)
		return false;
	for (uint32_t s = 0; s < p->nsources; s++)
	{
		GjSavedChunk *chunk = &file->chunks[s];
		GjColumnPlace *places = file->chunk_places + sources[s].first_column;

		chunk->types = gj_program_array(p, GjColumnType, columns) + sources[s].first_column;
		chunk->places = places;
		if (!gj_layout(chunk->types, sources[s].ncolumns, sources[s].capacity,
					   GJ_LOAD_CHUNK_SIZE, &chunk->layout, places))
			return false;
	}
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
	return !file->sink->in_batches ||
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
	file->sink = gj_sink_choose(file->program);
	if (file->options->spill)
		file->program->spill = 1;
	return lay_out_chunks(file) && lay_out_batches(file);
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

static bool
output_ready(void *arg)
{
	return true;
}

static GjStatus
output_slot(void *arg, uint8_t **memory)
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
send_batch(void *arg, uint32_t nrows)
{
	GjFileRun  *file = arg;
	const uint8_t *slot = file->output->memory;

	file->nbatches++;
	if (file->result)
		return gj_result_batch(file->result, slot, nrows);
	if (!file->sink->in_batches)
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
feed_chunk(GjFileRun *file, const GjSavedRecord *record, const uint8_t *payload)
{
	uint32_t	slot = (uint32_t) __builtin_ctz(~file->busy_slots);
	uint8_t    *memory = file->load->memory + (size_t) slot * GJ_LOAD_SLOT_SIZE;

	if (record->source >= file->program->nsources ||
		!gj_saved_unpack(&file->chunks[record->source], (uint8_t *) payload, record->nbytes, memory))
		return GJ_BAD_PROGRAM;
	file->busy_slots |= 1u << slot;
	return gj_team_chunk(file->team, record->source, record->nrows, memory, slot);
}

/* The next record.  At the end of the file, sources that have not ended do: build sides first. */
static void
peek_record(const GjFileRun *file, GjSavedRecord *record, const uint8_t **payload, size_t *next)
{
	uint32_t	build_side = ~(file->ended | 1);

	*next = file->at;
	if (next_record(file, next, record, payload))
		return;
	*next = file->at;
	*record = (GjSavedRecord) {.type = GJ_MSG_SOURCE_END,
	.source = (uint32_t) __builtin_ctz(build_side) % file->program->nsources};
}

/* Hands the next record to the run, if that can be done now. */
static GjStatus
feed_record(GjFileRun *file, bool *fed)
{
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	GjSavedRecord record;
	const uint8_t *payload = NULL;
	size_t		next;

	peek_record(file, &record, &payload, &next);
	*fed = record.type != GJ_MSG_CHUNK ||
		(file->busy_slots != all && gj_team_accepts(file->team, record.source));
	if (!*fed)
		return GJ_OK;
	file->at = next;
	if (record.type == GJ_MSG_CHUNK)
		return feed_chunk(file, &record, payload);
	if (record.type != GJ_MSG_SOURCE_END || record.source >= file->program->nsources ||
		(file->ended >> record.source & 1))
		return GJ_BAD_PROGRAM;
	file->ended |= 1u << record.source;
	return gj_team_source_end(file->team, record.source);
}

/* Nothing can be handed over before the devices have done something. */
static GjStatus
await_devices(GjFileRun *file)
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
feed_file(GjFileRun *file)
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
get_rings(GjFileRun *file, GjErrorText *why)
{
	GjDeviceEntry *entry = gj_team_entry(file->team);

	if (!file->load)
		GJ_TRY(gj_segment_get(entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE, &file->load, why));
	return file->output ? GJ_OK : gj_segment_get(entry, GJ_OUTPUT_SLOT_SIZE, &file->output, why);
}

static GjStatus
run_once(GjFileRun *file, GjRunStats *stats, GjErrorText *why)
{
	static const GjFinalOps ops = {.slot = output_slot,.ready = output_ready,.send = send_batch};
	const GjRunHost host = {.arg = file,.stop = host_stop,.slot_free = host_slot_free};
	const GjTarget target = {.form = GJ_FORM_FINAL,.arg = file,.final = &ops};
	GjErrorText lost = {""};
	GjStatus	status;

	file->nrows = file->nbatches = file->checksum = 0;
	file->busy_slots = 0;
	file->has_states = false;
	file->team = gj_team_open(file->program, &file->options->team, &host, &target, &status, why);
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
	file->team = NULL;
	return status;
}

static void
print_states(const GjFileRun *file)
{
	const GjAggregate *aggregates = gj_program_array(file->program, GjAggregate, aggregates);
	uint32_t	n = file->sink->has_states ? file->program->naggregates : 1;

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

/* ---- results */

/* Opens DIRECTORY/NAME.result for a file NAME.gj. */
static FILE *
open_result(const char *directory, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char		result[4096];
	FILE	   *out;

	snprintf(result, sizeof(result), "%s/%.*s.result", directory,
			 (int) (dot ? (size_t) (dot - name) : strlen(name)), name);
	out = fopen(result, "w");
	if (!out)
		gj_log(GJ_ERROR, "could not create \"%s\": %s", result, strerror(errno));
	return out;
}

static void
end_of_time(int signo)
{
	static const char line[] =
	"ERROR: a run took longer than " GJ_STRINGIFY(GJ_RESULT_SECONDS) " s\n";

	(void) !write(STDERR_FILENO, line, sizeof(line) - 1);
	signal(signo, SIG_DFL);
	raise(signo);
}

/* A run that fails has a result, too. */
static bool
write_result(GjFileRun *file, const char *path)
{
	FILE	   *out = open_result(file->options->result, path);
	GjRunStats	stats = {0};
	GjErrorText why = {""};
	GjStatus	status;

	if (!out)
		return false;
	file->result = gj_result_open(file->program, out);
	if (file->result)
	{
		/* one that hangs ends the process */
		signal(SIGALRM, end_of_time);
		alarm(GJ_RESULT_SECONDS);
		status = run_once(file, &stats, &why);
		alarm(0);
		gj_result_end(file->result, status, why.text, &stats);
		gj_result_close(file->result);
	}
	return (fclose(out) == 0) & (file->result != NULL);
}

static bool
run_file(const char *path, const GjRunFileOptions *options)
{
	GjFileRun	file = {.options = options};
	bool		ok = read_file(&file, path) && read_program(&file);

	if (ok)
		ok = options->result ? write_result(&file, path) : run_repeated(&file, options->repeat);
	if (file.load)
		gj_segment_put(file.load);
	if (file.output)
		gj_segment_put(file.output);
	free(file.chunk_places);
	free(file.types);
	free(file.places);
	free(file.program);
	free(file.bytes);
	return ok;
}

int
gj_run_files(char **paths, int npaths, const GjRunFileOptions *options)
{
	bool		ok = true;

	/* write() says that a file may not be so large */
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < npaths; i++)
		ok &= run_file(paths[i], options);
	return ok ? 0 : 1;
}
