/*
 * stage.h
 *	  Results of stages: what a program has left in gpujoind for a source of another one.
 *
 * A result is rows on a device, or chunks on the host, laid out as the source that reads it wants
 * them.  It belongs to the session of the stage until its connection is closed, and to the runs that
 * read it.
 */
#ifndef GJ_DAEMON_SESSION_STAGE_H
#define GJ_DAEMON_SESSION_STAGE_H

#include "daemon/program/program.h"
#include "daemon/store/store.h"
#include "wire/messages.h"

typedef struct GjStageResult GjStageResult;

/*
 * Starts the result of a checked program that is a stage, which has to stay until
 * gj_stage_publish.  limit: bytes of memory that it may take.  NULL: out of memory.
 */
extern GjStageResult *gj_stage_create(const GjProgram *program, uint64_t limit);

/*
 * Adds the nrows groups of a batch, or its one row of aggregates.  The backend may write to `batch`
 * meanwhile.  Other than GJ_OK: *why says more.
 */
extern GjStatus gj_stage_add(GjStageResult *result, const uint8_t *batch, uint32_t nrows,
							 GjErrorText *why);

/* Keeps rows where they are (GjFinalOps.keep), instead of batches. */
extern bool gj_stage_keep(GjStageResult *result, GjDeviceEntry *entry, GjWork *work,
						  GjRelation *rows);

/* The result is complete: it can be found by the token. */
extern void gj_stage_publish(GjStageResult *result, const GjRunToken *token);

/* Finds it, for a run that reads it; NULL: there is none. */
extern GjStageResult *gj_stage_get(const GjRunToken *token);

/* Gives it up: the stage's session, or a run that has found it.  NULL is nothing. */
extern void gj_stage_put(GjStageResult *result);

/* True if a source of a checked program can read it. */
extern bool gj_stage_fits(const GjStageResult *result, const GjProgram *program, uint32_t source);

/* The rows, if they lie on a device, else NULL. */
extern const GjKeptRows *gj_stage_rows(const GjStageResult *result);

/* Copies them to chunks, for a run that needs these.  GJ_CANCELLED if stop(arg) says so. */
extern GjStatus gj_stage_bring(GjStageResult *result, bool (*stop) (void *), void *arg,
							   GjErrorText *why);

/* Chunk i, and its rows; NULL: there are fewer. */
extern uint8_t *gj_stage_chunk(const GjStageResult *result, uint32_t i, uint32_t *nrows);

#endif							/* GJ_DAEMON_SESSION_STAGE_H */
