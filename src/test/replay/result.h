/*
 * result.h
 *	  Writes all that a run has returned as text, for comparing builds (scripts/replay).
 *
 * One item a line, in the order in which the run returns them:
 *
 *	program KIND OUTPUT LIMIT TIES TOP_K DISTINCT	numbers as in wire/program.h
 *	column TYPE						one a column: int, float, bytes, ref, text (a group key),
 *									state OP
 *	key DESCENDING FLOAT			one a sort key: 1 or 0; FLOAT: made of sums of floats
 *	row KEY ... | VALUE ...			keys as they are sorted, as integers; no keys if they read
 *									columns that are not returned
 *	status NUMBER TEXT
 *	batches N
 *	source ROWS_IN ROWS_OUT			one a source
 *	step ROWS_IN ROWS_OUT ALGORITHM	one a step, with the GjSetAlgorithm
 *	run DEVICES PASSES EXCHANGE_STEP SORTED_RUNS ROWS_OUT
 *	end
 *
 * Values: integers and floats in decimal, bytes in hexadecimal, a value that the backend
 * holds as "h" and its number, a state as count:hi:lo:f, NULL as "-".
 */
#ifndef GJ_TEST_REPLAY_RESULT_H
#define GJ_TEST_REPLAY_RESULT_H

#include <stdio.h>

#include "device/device.h"

typedef struct Result Result;

/* NULL: out of memory.  The checked program must stay until result_close. */
extern Result *result_open(const GjProgram *program, FILE *out);

/* Writes a batch. */
extern GjStatus result_batch(Result *result, const uint8_t *slot, uint32_t nrows);

/* Writes how the run ended.  stats: only if it was successful. */
extern void result_end(Result *result, GjStatus status, const char *why,
						  const GjRunStats *stats);

/* Does not close the file. */
extern void result_close(Result *result);

#endif							/* GJ_TEST_REPLAY_RESULT_H */
