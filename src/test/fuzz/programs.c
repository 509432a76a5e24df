/*
 * programs.c
 *	  Programs to begin with, and what is changed in them.
 *
 * Most changes leave a program that could be one: another operator, join type, algorithm, bound, key or
 * capacity, or an element of another program.  So many of them pass the check and are run.
 */
#include "fuzz.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/saved.h"

#define PROGRAMS		"src/test/programs/*.program"
#define LEAST_PROGRAMS	20

/* ---- loading */

static uint8_t *
read_file(const char *path, uint32_t *nbytes)
{
	FILE	   *f = fopen(path, "rb");
	uint8_t    *bytes = NULL;
	long		size = -1;

	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0)
		bytes = malloc((size_t) size + 1);
	if (!bytes || fread(bytes, 1, (size_t) size, f) != (size_t) size)
	{
		fprintf(stderr, "could not read \"%s\"\n", path);
		exit(2);
	}
	fclose(f);
	*nbytes = (uint32_t) size;
	return bytes;
}

/* Leaves of a saved file the program. */
static bool
take_out_program(uint8_t *bytes, uint32_t *nbytes)
{
	GjSavedRecord record;
	const uint32_t start = GJ_SAVED_MAGIC_SIZE + sizeof(record);

	if (*nbytes < start || memcmp(bytes, GJ_SAVED_MAGIC, GJ_SAVED_MAGIC_SIZE) != 0)
		return false;
	memcpy(&record, bytes + GJ_SAVED_MAGIC_SIZE, sizeof(record));
	if (record.type != GJ_SAVED_PROGRAM || record.nbytes > *nbytes - start)
		return false;
	*nbytes = record.nbytes;
	memmove(bytes, bytes + start, *nbytes);
	return true;
}

static void
add_program(FuzzPrograms *programs, const char *path, bool saved)
{
	FuzzProgram p = {NULL, 0};

	p.bytes = read_file(path, &p.nbytes);
	if ((saved && !take_out_program(p.bytes, &p.nbytes)) || p.nbytes < sizeof(GjProgram))
	{
		free(p.bytes);
		return;
	}
	programs->program[programs->n++] = p;
}

FuzzPrograms
fuzz_load_programs(char **saved, int nsaved)
{
	FuzzPrograms programs = {NULL, 0};
	glob_t		paths = {0};

	if (glob(PROGRAMS, 0, NULL, &paths) == 0)
		programs.program = calloc(paths.gl_pathc + (size_t) nsaved, sizeof(FuzzProgram));
	for (size_t i = 0; programs.program && i < paths.gl_pathc; i++)
		add_program(&programs, paths.gl_pathv[i], false);
	for (int i = 0; programs.program && i < nsaved; i++)
		add_program(&programs, saved[i], true);
	globfree(&paths);
	if (programs.n < LEAST_PROGRAMS)
	{
		fprintf(stderr, "%u programs found: start it in the repository's folder\n", programs.n);
		exit(2);
	}
	return programs;
}

void
fuzz_free_programs(FuzzPrograms *programs)
{
	for (uint32_t i = 0; i < programs->n; i++)
		free(programs->program[i].bytes);
	free(programs->program);
}

/* ---- elements of programs */

/* An array of a program: where its number and its offset are in the header, and the size of an element. */
typedef struct Array
{
	uint32_t	number;
	uint32_t	offset;
	uint32_t	size;
} Array;

#define ARRAY(field, type)	{offsetof(GjProgram, n##field), offsetof(GjProgram, field), sizeof(type)}
enum
{
	SOURCES, COLUMNS, STEPS, EXPRS, INSTRS, CONSTANTS, OUTPUTS, AGGREGATES, GROUP_KEYS, SETS, SET_STEPS,
	SORT_KEYS, NARRAYS
};
static const Array arrays[NARRAYS] = {
	ARRAY(sources, GjSource), ARRAY(columns, GjColumnType), ARRAY(steps, GjStep), ARRAY(exprs, GjExpr),
	ARRAY(instrs, GjInstr), ARRAY(constants, int64_t), ARRAY(outputs, uint32_t),
	ARRAY(aggregates, GjAggregate), ARRAY(group_keys, GjGroupKey), ARRAY(sets, GjSetSpec),
	ARRAY(set_steps, GjSetStep), ARRAY(sort_keys, GjSortKey)
};

/* A random element of an array, or NULL: there is none within the program. */
static uint8_t *
any_element(FuzzRandom *r, const uint8_t *bytes, uint32_t nbytes, uint32_t array)
{
	const Array *a = &arrays[array];
	uint32_t	n;
	uint32_t	offset;
	uint64_t	at;

	memcpy(&n, bytes + a->number, sizeof(n));
	memcpy(&offset, bytes + a->offset, sizeof(offset));
	at = offset + fuzz_below(r, n) * a->size;
	return n == 0 || offset % 8 != 0 || at + a->size > nbytes ? NULL : (uint8_t *) bytes + at;
}

/* ---- changes */

uint64_t
fuzz_value(FuzzRandom *r, uint32_t width, uint64_t now)
{
	const uint64_t sign = UINT64_C(1) << (width * 8 - 1);

	switch (fuzz_below(r, 14))
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
			return now ^ UINT64_C(1) << fuzz_below(r, width * 8);
		case 10:
			return fuzz_next(r);
		default:
			return fuzz_below(r, 40);
	}
}

void
fuzz_scribble(FuzzRandom *r, uint8_t *bytes, uint32_t nbytes)
{
	const uint32_t width = 1u << fuzz_below(r, 4);
	uint64_t	now = 0;
	uint32_t	at;

	if (nbytes < 8)
		return;
	at = (uint32_t) fuzz_below(r, nbytes / width) * width;
	memcpy(&now, bytes + at, width);
	now = fuzz_value(r, width, now);
	memcpy(bytes + at, &now, width);
}

/* Fields of the header that say how much and in which form. */
static void
change_header(FuzzRandom *r, GjProgram *p)
{
	switch (fuzz_below(r, 10))
	{
		case 0:
			p->output_capacity = 1 + (uint32_t) fuzz_below(r, 100);
			break;
		case 1:
			p->limit = (uint32_t) fuzz_below(r, 30);
			break;
		case 2:
			p->ties = !p->ties;
			break;
		case 3:
			p->spill = !p->spill;
			break;
		case 4:
			p->lease = fuzz_next(r) >> fuzz_below(r, 64);
			break;
		case 5:
			p->sort_space = fuzz_next(r) >> fuzz_below(r, 64);
			break;
		case 6:
			p->ndistinct_keys = (uint16_t) fuzz_below(r, GJ_MAX_DISTINCT_KEYS + 2);
			break;
		case 7:
			p->output = (uint8_t) fuzz_below(r, GJ_OUTPUT_GROUPS + 1);
			break;
		case 8:
			if (p->nsort_keys > 0)
				p->nsort_keys--;
			break;
		default:
			p->fail_point = (uint8_t) (GJ_FAIL_MEMORY + fuzz_below(r, GJ_FAIL_CRASH - GJ_FAIL_MEMORY));
	}
}

static void
change_source(FuzzRandom *r, GjSource *source)
{
	if (fuzz_percent(r, 40))
		source->nrows_hint = fuzz_next(r) >> fuzz_below(r, 64);
	else if (fuzz_percent(r, 50))
		source->capacity = 1 + (uint32_t) fuzz_below(r, 200);
	else
		source->filter = -1;
}

static void
change_step(FuzzRandom *r, GjStep *step)
{
	switch (fuzz_below(r, 7))
	{
		case 0:
		case 1:
			step->join_type = (uint8_t) fuzz_below(r, GJ_JOIN_RIGHT_ANTI + 1);
			break;
		case 2:
			step->algorithm = (uint8_t) fuzz_below(r, GJ_JOIN_SET + 1);
			break;
		case 3:
			step->residual = -1;
			break;
		case 4:
			step->filter = -1;
			break;
		case 5:
			if (fuzz_percent(r, 50))
				step->range_low = -1;
			else
				step->range_high = -1;
			break;
		default:
			step->low_strict = !step->low_strict;
			step->high_strict = (uint8_t) fuzz_below(r, 2);
	}
}

static void
change_instr(FuzzRandom *r, GjInstr *instr)
{
	switch (fuzz_below(r, 5))
	{
		case 0:
			instr->op = (uint16_t) fuzz_below(r, GJ_NOPS);
			break;
		case 1:
			/* a neighbour is of the same kind, more often than not */
			instr->op = (uint16_t) (instr->op + fuzz_below(r, 7) - 3);
			break;
		case 2:
			instr->imm = (int64_t) fuzz_value(r, 8, (uint64_t) instr->imm);
			break;
		case 3:
			instr->arg = (uint32_t) fuzz_below(r, 12);
			break;
		default:
			instr->n = (uint32_t) fuzz_below(r, 19);
	}
}

static void
change_set(FuzzRandom *r, GjSetSpec *set)
{
	switch (fuzz_below(r, 7))
	{
		case 0:
			set->algorithm = (uint8_t) fuzz_below(r, GJ_SETS_NALGORITHMS);
			break;
		case 1:
			set->operation = (uint8_t) fuzz_below(r, GJ_SETS_EXCEPT + 1);
			break;
		case 2:
			set->predicate = (uint8_t) fuzz_below(r, GJ_SETS_NPREDICATES);
			break;
		case 3:
			set->top_k = (uint32_t) fuzz_below(r, 5);
			break;
		case 4:
			set->nleft = (uint32_t) fuzz_below(r, 40);
			break;
		case 5:
			set->nright = (uint32_t) fuzz_below(r, 40);
			break;
		default:
			set->threshold = (double) fuzz_below(r, 8) / (double) (1 + fuzz_below(r, 8));
	}
}

/* The kinds of fields that have names of their own; other arrays get bytes changed. */
static void
change_element(FuzzRandom *r, uint32_t array, uint8_t *element)
{
	switch (array)
	{
		case SOURCES:
			change_source(r, (GjSource *) element);
			break;
		case STEPS:
			change_step(r, (GjStep *) element);
			break;
		case INSTRS:
			change_instr(r, (GjInstr *) element);
			break;
		case SETS:
			change_set(r, (GjSetSpec *) element);
			break;
		case AGGREGATES:
			((GjAggregate *) element)->op = (uint32_t) fuzz_below(r, GJ_AGG_SUM_DISTINCT_I + 1);
			break;
		case GROUP_KEYS:
			((GjGroupKey *) element)->how = (uint32_t) fuzz_below(r, GJ_GROUP_PADDED + 1);
			break;
		case SORT_KEYS:
			((GjSortKey *) element)->of = (uint16_t) fuzz_below(r, GJ_NSORTS);
			((GjSortKey *) element)->descending = (uint16_t) fuzz_below(r, 2);
			break;
		case COLUMNS:
			((GjColumnType *) element)->nullable = (uint8_t) fuzz_below(r, 2);
			break;
		default:
			fuzz_scribble(r, element, arrays[array].size);
	}
}

/* Puts an element of some program into the place of another one of that kind. */
static void
splice(FuzzRandom *r, const FuzzPrograms *programs, uint8_t *bytes, uint32_t nbytes)
{
	const uint32_t array = (uint32_t) fuzz_below(r, NARRAYS);
	const FuzzProgram *other = &programs->program[fuzz_below(r, programs->n)];
	uint8_t    *from = fuzz_percent(r, 50) ? any_element(r, other->bytes, other->nbytes, array) :
		any_element(r, bytes, nbytes, array);
	uint8_t    *to = any_element(r, bytes, nbytes, array);

	if (from && to)
		memmove(to, from, arrays[array].size);
}

static void
change(FuzzRandom *r, const FuzzPrograms *programs, uint8_t *bytes, uint32_t nbytes)
{
	const uint32_t array = (uint32_t) fuzz_below(r, NARRAYS);
	uint8_t    *element = any_element(r, bytes, nbytes, array);

	switch (fuzz_below(r, 10))
	{
		case 0:
			fuzz_scribble(r, bytes, nbytes);
			break;
		case 1:
			splice(r, programs, bytes, nbytes);
			break;
		case 2:
			if (element)
				fuzz_scribble(r, element, arrays[array].size);
			break;
		case 3:
		case 4:
			change_header(r, (GjProgram *) bytes);
			break;
		default:
			if (element)
				change_element(r, array, element);
	}
}

GjProgram *
fuzz_program(FuzzRandom *r, const FuzzPrograms *programs, uint32_t *nbytes)
{
	const FuzzProgram *from = &programs->program[fuzz_below(r, programs->n)];
	uint8_t    *bytes = malloc(from->nbytes);
	uint32_t	nchanges = fuzz_percent(r, 15) ? 0 : 1 + (uint32_t) fuzz_below(r, fuzz_percent(r, 40) ? 5 : 1);

	if (!bytes)
		fuzz_fail("out of memory");
	memcpy(bytes, from->bytes, from->nbytes);
	*nbytes = from->nbytes;
	for (uint32_t i = 0; i < nchanges; i++)
		change(r, programs, bytes, *nbytes);
	if (fuzz_percent(r, 1))
	{
		/* cut short, and says so */
		*nbytes = (uint32_t) (sizeof(GjProgram) + fuzz_below(r, (*nbytes - sizeof(GjProgram)) / 8 + 1) * 8);
		((GjProgram *) bytes)->nbytes = *nbytes;
		bytes = realloc(bytes, *nbytes);
	}
	return (GjProgram *) bytes;
}
