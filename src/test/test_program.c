/*
 * test_program.c
 *	  Programs whose fields are anything: refused with a text, or run without a crash.
 *
 * programs/ has programs that the test suites have saved, with every operator, join, aggregate and
 * output among them.  scripts/replay.pl samples writes them anew when the format changes.
 */
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/program/program.h"
#include "daemon/team/team.h"
#include "daemon/base/work.h"
#include "unit.h"

#define PROGRAMS		"src/test/programs/*.program"
#define CHUNK_ROWS		7
#define CHANGED_ROWS	4000	/* of a chunk that is changed under way */
#define CHANGED_ROUNDS	unit_choose(4, 10)
/* Accepted programs that are run, of all that one program was changed to. */
#define MOST_RUNS		unit_choose(100, 400)
#define MOST_SECONDS	2		/* of a run */

static uint8_t *slots;			/* one a source */
static uint8_t *output;
static uint32_t chunk_rows = CHUNK_ROWS;

/* ---- a run */

static bool
stop_late(void *arg)
{
	return time(NULL) > *(time_t *) arg;
}

static GjStatus
give_output(void *arg, uint8_t **memory)
{
	*memory = output;
	return GJ_OK;
}

static bool
is_ready(void *arg)
{
	return true;
}

static GjStatus
take_batch(void *arg, uint32_t nrows)
{
	return GJ_OK;
}

static GjStatus
take_slot(void *arg, uint32_t slot)
{
	return GJ_OK;
}

/* Fills a chunk with small numbers and short texts.  Returns its rows. */
static uint32_t
fill_chunk(const GjProgram *p, uint32_t s, uint8_t *slot)
{
	const GjSource *source = gj_program_array(p, GjSource, sources) + s;
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns) + source->first_column;
	GjColumnPlace *places = calloc(source->ncolumns + 1, sizeof(GjColumnPlace));
	uint32_t	n = source->capacity < chunk_rows ? source->capacity : chunk_rows;
	GjLayout	layout = {0};

	if (!EXPECT(places && gj_layout(types, source->ncolumns, source->capacity, GJ_LOAD_CHUNK_SIZE,
									&layout, places)))
		n = 0;
	*(GjSlotHeader *) slot = (GjSlotHeader) {n, 0};
	for (uint32_t c = 0; c < source->ncolumns && n > 0; c++)
	{
		uint8_t    *data = slot + places[c].data;

		gj_slot_has_nulls(slot)[c] = c % 2;
		for (uint32_t i = 0; i < n; i++)
		{
			slot[places[c].nulls + i] = i == 5;
			memset(data + i * types[c].width, 0, types[c].width);
			data[i * types[c].width] = (uint8_t) (i / 2);
			if (types[c].kind == GJ_REF)
				((uint64_t *) data)[i] = layout.heap_size >= 8 ? gj_ref_make(0, 4) : gj_ref_make(0, GJ_REF_HELD);
		}
		if (types[c].kind != GJ_REF || layout.heap_size < 8)
			continue;
		/* a varlena of three bytes */
		memcpy(slot + layout.heap, "\x09" "abc\0\0\0", 8);
		((GjSlotHeader *) slot)->heap_used = 8;
	}
	free(places);
	return n;
}

static GjStatus
feed(GjTeam *team, const GjProgram *p)
{
	for (uint32_t i = 1; i <= p->nsources && !gj_team_complete(team); i++)
	{
		uint32_t	s = i % p->nsources;
		uint8_t    *slot = slots + (size_t) s * GJ_LOAD_SLOT_SIZE;
		uint32_t	n = fill_chunk(p, s, slot);

		GJ_TRY(gj_team_chunk(team, s, n, slot, s));
		GJ_TRY(gj_team_work(team));
		GJ_TRY(gj_team_flush(team));
		GJ_TRY(gj_team_source_end(team, s));
	}
	return gj_team_complete(team) ? GJ_OK : GJ_BAD_PROGRAM;
}

/* Runs a checked program on one device, or on several that exchange rows where they can. */
static GjStatus
run_program_by(const GjProgram *p, uint32_t ndevices, GjExchangeMode exchange, GjErrorText *why)
{
	static GjTempAccount temp_account;
	const GjTeamOptions options = {.kind = GJ_DEVICE_CPU,.limits.run = 64 << 20,
	.max_devices = ndevices,.exchange = exchange,.spill_memory = 1 << 20,
	.temp = {&temp_account, 1 << 20, unit_directory()}};
	time_t		end = time(NULL) + MOST_SECONDS;
	const GjRunHost host = {.arg = &end,.stop = stop_late,.slot_free = take_slot};
	const GjFinalOps ops = {.slot = give_output,.ready = is_ready,.send = take_batch};
	const GjTarget target = {.form = GJ_FORM_FINAL,.final = &ops};
	GjErrorText lost = {""};
	GjRunStats	stats;
	GjStatus	status;
	GjTeam	   *team = gj_team_open(p, &options, &host, &target, &status, why);

	if (!team)
		return status;
	status = feed(team, p);
	if (status == GJ_OK)
		status = gj_team_finish(team, &stats);
	EXPECT(gj_team_close(team, &lost) == GJ_OK);
	return status;
}

static GjStatus
run_program(const GjProgram *p, uint32_t ndevices, GjErrorText *why)
{
	return run_program_by(p, ndevices, GJ_EXCHANGE_ON, why);
}

/* True if it neither ends the process nor runs for ever on purpose. */
static bool
may_run(const GjProgram *p)
{
	return p->fail_point == GJ_FAIL_NEVER;
}

/* ---- memory that changes */

typedef struct Scribbler
{
	pthread_t	thread;
	uint32_t	nsources;
	bool		stop;			/* atomic */
} Scribbler;

/* Words that a backend could write at any moment: a good reference, and bad ones. */
static void *
scribble(void *arg)
{
	static const uint64_t words[] = {
		gj_ref_make(0, 4), gj_ref_make(UINT64_C(1) << 39, 4096), gj_ref_make(8, 0xFFFFF0),
		UINT64_MAX
	};
	const Scribbler *scribbler = arg;

	for (uint32_t round = 0; !__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED); round++)
	{
		const uint64_t word = words[round % (sizeof(words) / sizeof(words[0]))];
		const size_t first = gj_slot_header_size(1);

		for (uint32_t s = 0; s < scribbler->nsources; s++)
		{
			uint8_t    *slot = slots + (size_t) s * GJ_LOAD_SLOT_SIZE;

			for (size_t at = first; at < first + CHANGED_ROWS * 64; at += 8)
				__atomic_store_n((uint64_t *) (slot + at), word, __ATOMIC_RELAXED);
		}
		for (size_t at = 0; at < CHANGED_ROWS * 64; at += 8)
			__atomic_store_n((uint64_t *) (output + at), word, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- the programs */

typedef struct Programs
{
	glob_t		paths;
	uint8_t    *bytes;			/* of this one */
	uint32_t	nbytes;
	uint8_t    *copy;			/* exactly as many bytes as it has */
} Programs;

static bool
open_programs(Programs *programs)
{
	memset(programs, 0, sizeof(*programs));
	if (!slots)
		slots = calloc(GJ_MAX_SOURCES, GJ_LOAD_SLOT_SIZE);
	if (!output)
		output = calloc(1, GJ_OUTPUT_SLOT_SIZE);
	return CHECK(glob(PROGRAMS, 0, NULL, &programs->paths) == 0) &&
		CHECK(programs->paths.gl_pathc >= 20) && CHECK(slots && output);
}

static bool
load_program(Programs *programs, size_t i)
{
	free(programs->bytes);
	free(programs->copy);
	programs->bytes = unit_read_file(programs->paths.gl_pathv[i], &programs->nbytes);
	programs->copy = programs->bytes ? malloc(programs->nbytes) : NULL;
	if (!EXPECT(programs->copy && programs->nbytes >= sizeof(GjProgram)))
		return false;
	memcpy(programs->copy, programs->bytes, programs->nbytes);
	return true;
}

static void
close_programs(Programs *programs)
{
	globfree(&programs->paths);
	free(programs->bytes);
	free(programs->copy);
}

/* The tests' own programs are good, and can be run. */
void
test_programs_are_accepted(void)
{
	Programs	programs;

	REQUIRE(open_programs(&programs));
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		const GjProgram *p = (const GjProgram *) programs.copy;
		GjErrorText why = {""};

		if (!CHECK(gj_program_check(p, programs.nbytes, &why) == GJ_OK))
			printf("%s: %s\n", programs.paths.gl_pathv[i], why.text);
		else
		{
			run_program(p, 1, &why);
			run_program(p, 2, &why);
			run_program_by(p, 2, GJ_EXCHANGE_RING, &why);
			run_program_by(p, 2, GJ_EXCHANGE_RANGES, &why);
		}
	}
	close_programs(&programs);
}

/* Comparisons that a step's condition says nothing beside. */
static uint32_t
exact_comparisons(const GjProgram *p, const GjStep *step)
{
	GjComparison comparisons[GJ_MAX_KEYS];
	bool		exact;
	uint32_t	n = gj_program_comparisons(p, step, comparisons, &exact);

	CHECK(n <= GJ_MAX_KEYS);
	for (uint32_t i = 0; i < n; i++)
		CHECK(comparisons[i].probe_side < (int32_t) p->nexprs &&
			  comparisons[i].build_side < (int32_t) p->nexprs);
	return exact ? n : 0;
}

/* Programs with the operands of nested loops are programs, can be run, and compare more. */
void
test_program_operands(void)
{
	Programs	programs;
	uint32_t	before = 0;
	uint32_t	after = 0;

	REQUIRE(open_programs(&programs));
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		GjProgram  *p = (GjProgram *) programs.copy;
		GjErrorText why = {""};
		uint32_t	nexprs = p->nexprs;

		REQUIRE(gj_program_check(p, programs.nbytes, &why) == GJ_OK);
		for (uint32_t s = 0; s < p->nsteps; s++)
			before += exact_comparisons(p, gj_program_array(p, GjStep, steps) + s);
		REQUIRE(gj_program_add_operands(&p));
		programs.copy = (uint8_t *) p;
		for (uint32_t s = 0; s < p->nsteps; s++)
			after += exact_comparisons(p, gj_program_array(p, GjStep, steps) + s);
		CHECK_EQUAL(gj_program_check(p, p->nbytes, &why), GJ_OK);
		if (p->nexprs == nexprs)
			continue;
		run_program(p, 1, &why);
		run_program_by(p, 2, GJ_EXCHANGE_RING, &why);
	}
	CHECK(before > 0 && after > before);
	close_programs(&programs);
}

/* Questions stay in their expressions, eight a column, and all their conditions are of texts. */
void
test_program_questions(void)
{
	Programs	programs;
	uint32_t	nquestions = 0;

	REQUIRE(open_programs(&programs));
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		GjProgram  *p = (GjProgram *) programs.copy;
		const GjExpr *exprs = gj_program_array(p, GjExpr, exprs);
		const GjInstr *instrs = gj_program_array(p, GjInstr, instrs);
		const GjColumnType *types = gj_program_array(p, GjColumnType, columns);
		uint32_t	number[GJ_MAX_COLUMNS] = {0};
		GjErrorText why = {""};

		REQUIRE(gj_program_check(p, programs.nbytes, &why) == GJ_OK);
		gj_program_find_questions(p);
		for (uint32_t e = 0; e < p->nexprs; e++)
			for (uint32_t pc = exprs[e].first; pc < exprs[e].first + exprs[e].ninstrs; pc++)
			{
				const GjInstr *load = &instrs[pc];
				uint32_t	end = pc + gj_question_skips(load);

				if (!gj_is_question(load))
					continue;
				nquestions++;
				CHECK_EQUAL(types[load->arg].source, 0);
				CHECK_EQUAL(types[load->arg].kind, GJ_REF);
				CHECK_EQUAL(gj_question_number(load), number[load->arg]);
				CHECK(++number[load->arg] <= GJ_QUESTIONS);
				CHECK(end > pc && end < exprs[e].first + exprs[e].ninstrs);
				CHECK_EQUAL(instrs[end].dst, load->b);
				for (uint32_t k = pc + 1; k <= end; k++)
					CHECK(!gj_op_loads(instrs[k].op) || instrs[k].arg == load->arg);
			}
		/* such a program is none that a backend may send */
		for (uint32_t k = 0; k < p->ninstrs; k++)
			if (gj_is_question(&instrs[k]))
			{
				CHECK_EQUAL(gj_program_check(p, programs.nbytes, &why), GJ_BAD_PROGRAM);
				break;
			}
	}
	CHECK(nquestions > 0);
	close_programs(&programs);
}

/* What a backend writes to its rings while they are read and filled spoils only its own result. */
void
test_programs_changing_memory(void)
{
	Programs	programs;

	REQUIRE(open_programs(&programs));
	chunk_rows = CHANGED_ROWS;
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		const GjProgram *p = (const GjProgram *) programs.copy;
		Scribbler	scribbler = {.nsources = p->nsources};
		GjErrorText why = {""};

		REQUIRE(gj_program_check(p, programs.nbytes, &why) == GJ_OK);
		if (getenv("GJ_UNIT_VERBOSE"))
			fprintf(stderr, "%s\n", programs.paths.gl_pathv[i]);
		REQUIRE(pthread_create(&scribbler.thread, NULL, scribble, &scribbler) == 0);
		for (uint32_t round = 0; round < CHANGED_ROUNDS; round++)
		{
			GjStatus	status = run_program(p, 1 + round % 2, &why);

			EXPECT(status < GJ_NREASONS && status != GJ_DEVICE_LOST);
		}
		__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
		pthread_join(scribbler.thread, NULL);
	}
	chunk_rows = CHUNK_ROWS;
	close_programs(&programs);
}

/* A program that is shorter than it says is refused, wherever it ends. */
void
test_programs_cut_short(void)
{
	Programs	programs;

	REQUIRE(open_programs(&programs));
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		CHECK(programs.nbytes % 8 == 0);
		for (uint32_t n = 0; n < programs.nbytes; n++)
		{
			/* the caller sees to it that there is a header */
			size_t		room = n < sizeof(GjProgram) ? sizeof(GjProgram) : n;
			GjProgram  *p = malloc(room);
			GjErrorText why = {""};

			if (!EXPECT(p != NULL))
				return;
			memset(p, 0, room);
			memcpy(p, programs.bytes, n);
			EXPECT(gj_program_check(p, n, &why) == GJ_BAD_PROGRAM && why.text[0] != '\0');
			/* one that says so, too */
			p->nbytes = n;
			if (gj_program_check(p, n, &why) == GJ_BAD_PROGRAM)
				EXPECT(why.text[0] != '\0');
			free(p);
		}
	}
	close_programs(&programs);
}

/* Value v of a field that has `now`; there are HOSTILE of them. */
#define HOSTILE		11

static uint64_t
hostile_value(int v, uint32_t width, uint64_t now)
{
	const uint64_t sign = UINT64_C(1) << (width * 8 - 1);

	switch (v)
	{
		case 0:
			return 0;
		case 1:
			return 1;
		case 2:
			return UINT64_MAX;
		case 3:
			return sign;
		case 4:
			return sign - 1;
		case 5:
			return now + 1;
		case 6:
			return now - 1;
		case 7:
			return now + 8;
		case 8:
			return now * 2;
		case 9:
			return GJ_MAX_PROGRAM_SIZE - 8;
		default:
			return unit_random();
	}
}

/* What has become of the programs. */
typedef struct Outcome
{
	unsigned	refused;
	unsigned	accepted;
	unsigned	run;
} Outcome;

/* Follows the filters of an accepted program with bounds of their columns, and nothing behind them. */
static void
follow_filters(const GjProgram *p)
{
	for (uint32_t s = 0; s < p->nsources; s++)
	{
		const GjSource *source = gj_program_array(p, GjSource, sources) + s;
		GjBounds   *bounds = malloc(source->ncolumns * sizeof(GjBounds));

		for (uint32_t c = 0; bounds && c < source->ncolumns; c++)
		{
			int64_t		low = (int64_t) unit_random() % 100 - 50;

			bounds[c] = (GjBounds) {low, low + (int64_t) (unit_random() % 4) - 1, unit_random() % 2};
		}
		if (bounds && source->filter >= 0)
			(void) gj_program_can_be_true(p, (uint32_t) source->filter, bounds, source->first_column);
		free(bounds);
	}
}

/* Changes one field, and checks and perhaps runs the program. */
static void
try_value(const Programs *programs, uint32_t at, uint32_t width, int v, uint32_t every,
		  Outcome *outcome)
{
	GjProgram  *p = (GjProgram *) programs->copy;
	GjErrorText why = {""};
	uint64_t	now = 0;
	uint64_t	value;
	GjStatus	status;

	memcpy(&now, programs->bytes + at, width);
	value = hostile_value(v, width, now) & UINT64_MAX >> (64 - 8 * width);
	if (value == now)
		return;
	memcpy(programs->copy + at, &value, width);
	status = gj_program_check(p, programs->nbytes, &why);
	if (status != GJ_OK)
	{
		outcome->refused++;
		EXPECT(status == GJ_BAD_PROGRAM && why.text[0] != '\0');
	}
	else
	{
		outcome->accepted++;
		follow_filters(p);
	}
	if (status == GJ_OK && outcome->accepted % every == 0 && may_run(p))
	{
		outcome->run++;
		/* says which one did, if it ends the process */
		if (getenv("GJ_UNIT_VERBOSE"))
			fprintf(stderr, "bytes %u to %u: %llu instead of %llu\n", at, at + width - 1, (unsigned long long) value, (unsigned long long) now);
		status = run_program(p, 1 + outcome->run % 2, &why);
		EXPECT(status < GJ_NREASONS && status != GJ_DEVICE_LOST);
	}
	memcpy(programs->copy + at, programs->bytes + at, width);
}

/* Tries all values of all fields; of accepted programs every so-manieth is run. */
static void
try_fields(const Programs *programs, uint32_t every, Outcome *outcome)
{
	for (uint32_t width = 1; width <= 8; width *= 2)
		for (uint32_t at = 0; at + width <= programs->nbytes; at += width)
			for (int v = 0; v < HOSTILE; v++)
				try_value(programs, at, width, v, every, outcome);
}

void
test_programs_hostile(void)
{
	Programs	programs;
	Outcome		all = {0, 0, 0};

	REQUIRE(open_programs(&programs));
	for (size_t i = 0; i < programs.paths.gl_pathc && load_program(&programs, i); i++)
	{
		Outcome		outcome = {0, 0, 0};

		/* so many are accepted, about: a third of all */
		try_fields(&programs, 1 + programs.nbytes * 15 / 8 * HOSTILE / 3 / MOST_RUNS, &outcome);
		CHECK(outcome.refused > 0);
		CHECK(outcome.accepted > 0);
		all.refused += outcome.refused;
		all.accepted += outcome.accepted;
		all.run += outcome.run;
	}
	close_programs(&programs);
	printf("%u changed programs were refused, %u accepted, %u of these run\n", all.refused,
		   all.accepted, all.run);
	CHECK(all.run > 1000);
	free(slots);
	free(output);
	slots = output = NULL;
}
