/*
 * fuzz.h
 *	  What both fuzzers share: random numbers, programs to begin with, and what becomes of them.
 *
 * Everything follows from the seed and the number of an iteration, so any iteration can be repeated alone.
 */
#ifndef GJ_TEST_FUZZ_H
#define GJ_TEST_FUZZ_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/messages.h"

/* ---- random numbers */

typedef struct FuzzRandom
{
	uint64_t	state;
} FuzzRandom;

extern FuzzRandom fuzz_random(uint64_t seed, uint64_t iteration);
extern uint64_t fuzz_next(FuzzRandom *r);

/* A number below n; 0 if n is 0. */
static inline uint64_t
fuzz_below(FuzzRandom *r, uint64_t n)
{
	return n > 0 ? fuzz_next(r) % n : 0;
}

/* True so many times of a hundred. */
static inline bool
fuzz_percent(FuzzRandom *r, unsigned percent)
{
	return fuzz_below(r, 100) < percent;
}

/* ---- programs */

typedef struct FuzzProgram
{
	uint8_t    *bytes;
	uint32_t	nbytes;
} FuzzProgram;

typedef struct FuzzPrograms
{
	FuzzProgram *program;
	uint32_t	n;
} FuzzPrograms;

/* Those of src/test/programs, and those of saved files (wire/saved.h).  Ends the process if there are too few. */
extern FuzzPrograms fuzz_load_programs(char **saved, int nsaved);
extern void fuzz_free_programs(FuzzPrograms *programs);

/* A program, mostly changed here and there; the caller's to free, and as long as it says. */
extern GjProgram *fuzz_program(FuzzRandom *r, const FuzzPrograms *programs, uint32_t *nbytes);

/* Fills a slot with rows for a source of a checked program, mostly right ones.  Returns the rows to be told. */
extern uint32_t fuzz_chunk(FuzzRandom *r, const GjProgram *program, uint32_t source, uint8_t *slot);

/* A value for a field of `width` bytes that has `now`. */
extern uint64_t fuzz_value(FuzzRandom *r, uint32_t width, uint64_t now);

/* Overwrites some of nbytes bytes. */
extern void fuzz_scribble(FuzzRandom *r, uint8_t *bytes, uint32_t nbytes);

/* ---- the command line, and the end */

typedef struct FuzzOptions
{
	uint64_t	seed;
	uint64_t	first;			/* iteration */
	uint64_t	count;
	const char *daemon;			/* gpujoind, of the fuzzer of its socket */
	char	  **files;			/* saved programs */
	int			nfiles;
} FuzzOptions;

/* --seed N --first N --count N [--daemon PATH] [FILE...]; `what` is for the usage. */
extern FuzzOptions fuzz_options(int argc, char **argv, const char *what, uint64_t count);

/* From here on a crash or a sanitizer's complaint tells the seed and these iterations. */
extern void fuzz_begin(uint64_t seed, uint64_t first, uint64_t count);

/*
 * Ends the process, and tells the iterations, if this thread's next fuzz_begin does not come within so
 * many seconds.
 */
extern void fuzz_watch(unsigned seconds);

/* Tells that something is wrong, and the iterations, and ends the process. */
extern void fuzz_fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

#endif							/* GJ_TEST_FUZZ_H */
