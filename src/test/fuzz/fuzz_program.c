/*
 * fuzz_program.c
 *	  Programs that are changed here and there are checked and run to their end on the cpu device.
 *
 * Each must end by a result or by an error with a text, in time.  Whatever comes out must lie where the
 * program says, and all device memory must be given back.  Sanitizers look for the rest.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/program/program.h"
#include "daemon/sink/sink.h"
#include "daemon/team/team.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#define DEVICES			4
#define STOP_MS			300		/* a program that wants more is stopped, */
#define HANG_SECONDS	20		/* and must have ended so long after it began */
#define LOOK_EVERY		50000	/* iterations, for leaks and descriptors */

typedef struct Counts
{
	uint64_t	refused;
	uint64_t	run;
	uint64_t	completed;
	uint64_t	stopped;
	uint64_t	failed;
} Counts;

/* A run, and what it gives out. */
typedef struct Run
{
	FuzzRandom	random;
	const GjProgram *program;
	GjTeam	   *team;
	uint64_t	stop_ms;		/* when to stop it */
	bool		stopped;
	uint32_t	busy;			/* load slots, a bit each */
	bool		in_batches;
	uint32_t	noutputs;
	GjColumnType *types;
	GjColumnPlace *places;
	GjLayout	layout;
} Run;

static uint8_t *load[GJ_LOAD_SLOTS];
static uint8_t *output;

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

/* ---- what the run asks for */

static bool
stop_late(void *arg)
{
	Run		   *run = arg;

	run->stopped |= now_ms() > run->stop_ms;
	return run->stopped;
}

static GjStatus
slot_free(void *arg, uint32_t slot)
{
	Run		   *run = arg;

	if (slot >= GJ_LOAD_SLOTS || !(run->busy >> slot & 1))
		fuzz_fail("load slot %u is given back, which is free", slot);
	run->busy &= ~(1u << slot);
	return GJ_OK;
}

static GjStatus
give_output(void *arg, uint8_t **memory)
{
	(void) arg;
	*memory = output;
	return GJ_OK;
}

static bool
is_ready(void *arg)
{
	(void) arg;
	return true;
}

/* References of a batch must lead into its heap. */
static void
check_references(const Run *run, uint32_t c, uint32_t nrows)
{
	const uint64_t *refs = (const uint64_t *) (output + run->places[c].data);
	const uint8_t *nulls = gj_slot_has_nulls(output)[c] ? output + run->places[c].nulls : NULL;
	const uint32_t used = ((const GjSlotHeader *) output)->heap_used;

	for (uint32_t i = 0; i < nrows; i++)
		if (!(nulls && nulls[i]) && gj_ref_length(refs[i]) != GJ_REF_HELD &&
			gj_ref_offset(refs[i]) + gj_ref_length(refs[i]) > used)
			fuzz_fail("row %u of column %u of a batch refers to byte %llu of %u", i, c,
					  (unsigned long long) (gj_ref_offset(refs[i]) + gj_ref_length(refs[i])), used);
}

static GjStatus
take_batch(void *arg, uint32_t nrows)
{
	const Run  *run = arg;
	const GjSlotHeader *header = (const GjSlotHeader *) output;

	if (!run->in_batches)
		return GJ_OK;
	if (header->nrows != nrows || nrows > run->layout.capacity)
		fuzz_fail("a batch of %u rows has %u in its header, %u fit", nrows, header->nrows, run->layout.capacity);
	if (run->layout.heap_size > 0 && header->heap_used > run->layout.heap_size)
		fuzz_fail("a batch has used %u bytes of %u", header->heap_used, run->layout.heap_size);
	for (uint32_t c = 0; c < run->noutputs; c++)
		if (run->types[c].kind == GJ_REF)
			check_references(run, c, nrows);
	return GJ_OK;
}

/* ---- a run */

static GjTempAccount temp_account;	/* what runs give back, all of them use again */

static GjTeamOptions
choose_options(FuzzRandom *r)
{
	static const uint64_t memory[] = {1 << 20, 4 << 20, 24 << 20, 64 << 20, 64 << 20, 64 << 20};

	return (GjTeamOptions) {
		.kind = GJ_DEVICE_CPU,
		.limits.run = memory[fuzz_below(r, sizeof(memory) / sizeof(memory[0]))],
		.max_devices = fuzz_percent(r, 75) ? 1 : 1 + (uint32_t) fuzz_below(r, DEVICES),
		.exchange = (uint32_t) fuzz_below(r, GJ_EXCHANGE_RANGES + 1),
		.keep_exchanged = fuzz_percent(r, 50),
		.spill_memory = fuzz_below(r, 3) << 19,
		.temp = {&temp_account, fuzz_below(r, 3) << 19, "/tmp"}
	};
}

/* Waits until the devices have given a slot back, or it is time to stop. */
static GjStatus
await_devices(Run *run)
{
	struct pollfd fd = {.fd = gj_team_fd(run->team),.events = POLLIN};

	GJ_TRY(gj_team_flush(run->team));
	GJ_TRY(gj_team_serve(run->team));
	if (gj_team_complete(run->team) || run->busy != (1u << GJ_LOAD_SLOTS) - 1)
		return GJ_OK;
	if (fd.fd < 0)
		fuzz_fail("all slots are busy, and no device works");
	(void) poll(&fd, 1, 50);
	return stop_late(run) ? GJ_CANCELLED : gj_team_serve(run->team);
}

/* Hands over a chunk, of a source that there may not be. */
static GjStatus
feed_chunk(Run *run, uint32_t s)
{
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	uint32_t	slot;
	uint32_t	nrows;

	while (run->busy == all || !gj_team_accepts(run->team, s))
	{
		GJ_TRY(run->busy == all ? await_devices(run) : gj_team_flush(run->team));
		if (gj_team_complete(run->team))
			return GJ_OK;
		if (stop_late(run))
			return GJ_CANCELLED;
	}
	slot = (uint32_t) __builtin_ctz(~run->busy);
	nrows = fuzz_chunk(&run->random, run->program, s, load[slot]);
	run->busy |= 1u << slot;
	if (fuzz_percent(&run->random, 1))
		s = (uint32_t) fuzz_below(&run->random, run->program->nsources + 2);
	GJ_TRY(gj_team_chunk(run->team, s, nrows, load[slot], slot));
	return fuzz_percent(&run->random, 70) ? gj_team_work(run->team) : GJ_OK;
}

static GjStatus
feed(Run *run)
{
	FuzzRandom *r = &run->random;
	const uint32_t n = run->program->nsources;

	for (uint32_t i = 1; i <= n && !gj_team_complete(run->team); i++)
	{
		uint32_t	s = i % n;
		uint32_t	nchunks = fuzz_percent(r, 85) ? 1 : (uint32_t) fuzz_below(r, 6);

		for (uint32_t k = 0; k < nchunks && !gj_team_complete(run->team); k++)
			GJ_TRY(feed_chunk(run, s));
		if (!gj_team_complete(run->team))
			GJ_TRY(gj_team_source_end(run->team, s));
		if (!gj_team_complete(run->team))
			GJ_TRY(gj_team_work(run->team));
	}
	while (!gj_team_complete(run->team))
	{
		struct pollfd fd = {.fd = gj_team_fd(run->team),.events = POLLIN};

		GJ_TRY(gj_team_flush(run->team));
		GJ_TRY(gj_team_serve(run->team));
		if (gj_team_complete(run->team))
			break;
		if (fd.fd < 0)
			fuzz_fail("all sources have ended, and the run is not complete");
		(void) poll(&fd, 1, 50);
		if (stop_late(run))
			return GJ_CANCELLED;
	}
	return GJ_OK;
}

static GjStatus
run_program(Run *run, GjErrorText *why)
{
	static const GjFinalOps ops = {.slot = give_output,.ready = is_ready,.send = take_batch};
	const GjTeamOptions options = choose_options(&run->random);
	const GjRunHost host = {.arg = run,.stop = stop_late,.slot_free = slot_free};
	const GjTarget target = {.form = GJ_FORM_FINAL,.arg = run,.final = &ops};
	GjErrorText lost = {""};
	GjRunStats	stats;
	GjStatus	status;

	run->team = gj_team_open(run->program, &options, &host, &target, &status, why);
	if (!run->team)
		return status;
	status = feed(run);
	if (status == GJ_OK)
		status = gj_team_finish(run->team, &stats);
	if (status != GJ_OK && why->text[0] == '\0')
		gj_team_error(run->team, why);
	if (gj_team_close(run->team, &lost) != GJ_OK)
		fuzz_fail("the device is lost: %s", lost.text);
	return status;
}

/* ---- what a run must leave behind */

static void
check_devices(void)
{
	for (uint32_t i = 0; i < gj_devices_count(); i++)
	{
		GjDeviceInfo info;

		gj_devices_info(gj_devices_get(i), &info);
		if (info.memory_used != 0 || info.sessions != 0 || info.memory_resident != 0)
			fuzz_fail("device %u keeps %llu bytes, %llu resident ones, and %u sessions", i,
					  (unsigned long long) info.memory_used, (unsigned long long) info.memory_resident,
					  info.sessions);
	}
}

static uint32_t
count_descriptors(void)
{
	DIR		   *dir = opendir("/proc/self/fd");
	uint32_t	n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* The first call says how many descriptors there may be. */
static void
look_for_leaks(void)
{
	static uint32_t first;
	uint32_t	n;

	/* memory that waits for the next runs */
	gj_segment_stop();
	n = count_descriptors();
	if (first == 0)
		first = n;
	if (n > first)
		fuzz_fail("%u descriptors are open, not %u", n, first);
#if defined(__SANITIZE_ADDRESS__)
	if (__lsan_do_recoverable_leak_check())
		fuzz_fail("memory leaked, in this iteration or one of the %u before it", LOOK_EVERY);
#endif
}

/* ---- iterations */

/* Its crash is what it is for; and it would take until it is stopped. */
static bool
may_run(const GjProgram *p)
{
	return p->fail_point != GJ_FAIL_CRASH && p->fail_point != GJ_FAIL_STALL;
}

static void
iterate(const FuzzPrograms *programs, const FuzzOptions *options, uint64_t i, Counts *counts)
{
	Run			run = {.random = fuzz_random(options->seed, i),.stop_ms = now_ms() + STOP_MS};
	GjErrorText why = {""};
	uint32_t	nbytes;
	GjProgram  *p = fuzz_program(&run.random, programs, &nbytes);
	GjStatus	status = gj_program_check(p, nbytes, &why);

	run.program = p;
	if (status != GJ_OK)
	{
		counts->refused++;
		if (status != GJ_BAD_PROGRAM || why.text[0] == '\0')
			fuzz_fail("a program is refused with %d and the text \"%s\"", status, why.text);
	}
	else if (may_run(p))
	{
		gj_program_find_questions(p);
		if (!gj_program_add_operands(&p))
			fuzz_fail("out of memory");
		run.program = p;
		run.in_batches = gj_sink_choose(p)->in_batches;
		run.noutputs = gj_program_noutputs(p);
		run.types = calloc(run.noutputs + 1, sizeof(GjColumnType));
		run.places = calloc(run.noutputs + 1, sizeof(GjColumnPlace));
		if (run.in_batches && !gj_program_layout_output(p, run.types, &run.layout, run.places))
			fuzz_fail("a checked program has batches that do not fit");
		status = run_program(&run, &why);
		counts->run++;
		counts->completed += status == GJ_OK;
		counts->stopped += run.stopped;
		counts->failed += status != GJ_OK && !run.stopped;
		if (status >= GJ_NREASONS || status == GJ_DEVICE_LOST ||
			(status == GJ_DEVICE_ERROR && p->fail_point == GJ_FAIL_NEVER))
			fuzz_fail("a run ends with %d: %s", status, why.text);
		free(run.types);
		free(run.places);
		check_devices();
	}
	free(p);
}

int
main(int argc, char **argv)
{
	const FuzzOptions options = fuzz_options(argc, argv, "[SAVED PROGRAM...]", 10000);
	FuzzPrograms programs = fuzz_load_programs(options.files, options.nfiles);
	Counts		counts = {0};
	uint64_t	start = now_ms();
	GjErrorText why;

	(void) gj_devices_configure(&(GjDeviceChoice) {.ncpu = DEVICES,.per_gpu = 1}, &why);
	gj_devices_start(false);
	output = malloc(GJ_OUTPUT_SLOT_SIZE);
	for (uint32_t i = 0; i < GJ_LOAD_SLOTS; i++)
		load[i] = malloc(GJ_LOAD_SLOT_SIZE);
	fuzz_watch(HANG_SECONDS);
	for (uint64_t i = options.first; i < options.first + options.count; i++)
	{
		fuzz_begin(options.seed, i, 1);
		iterate(&programs, &options, i, &counts);
		if (i % LOOK_EVERY == 0)
			look_for_leaks();
	}
	look_for_leaks();
	printf("seed %llu, iterations from %llu on: %llu programs were refused, %llu run; of these %llu were completed, "
		   "%llu failed, %llu were stopped; %.1f s\n",
		   (unsigned long long) options.seed, (unsigned long long) options.first,
		   (unsigned long long) counts.refused, (unsigned long long) counts.run,
		   (unsigned long long) counts.completed, (unsigned long long) counts.failed,
		   (unsigned long long) counts.stopped, (double) (now_ms() - start) / 1e3);
	for (uint32_t i = 0; i < GJ_LOAD_SLOTS; i++)
		free(load[i]);
	free(output);
	fuzz_free_programs(&programs);
	gj_segment_stop();
	gj_devices_stop();
	return 0;
}
