/*
 * reading.c
 *	  A session's part in stages: results that its run reads, and the one that its run leaves.
 */
#include "state.h"

#include <stdio.h>

#include "daemon/base/base.h"

/* ---- results that are read */

GjStatus
gj_session_find_stages(GjSession *session, const GjProgram *program, GjErrorText *why)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);

	for (uint32_t s = 0; s < program->nsources; s++)
	{
		GjStageResult *result;

		if (sources[s].stage == 0)
			continue;
		if (program->kind != GJ_PROGRAM_JOIN || sources[s].stage > session->submit.nstages ||
			session->submit.nstages > GJ_MAX_STAGES)
		{
			snprintf(why->text, sizeof(why->text), "malformed message");
			return GJ_BAD_PROGRAM;
		}
		result = gj_stage_get(&session->submit.stages[sources[s].stage - 1]);
		session->stages.read[s] = result;
		if (!result || !gj_stage_fits(result, program, s))
		{
			snprintf(why->text, sizeof(why->text), result ?
					 "source %u reads a stage of other columns" :
					 "source %u reads the result of a stage that this gpujoind does not have", s);
			return GJ_BAD_PROGRAM;
		}
	}
	return GJ_OK;
}

/* Chunks of stages that the run has at a time. */
#define GJ_STAGE_MOST_HELD	4

/* The next source to end: build sides first; the number of sources if none waits. */
static uint32_t
next_to_end(const GjSession *session)
{
	uint32_t	build = session->stages.waiting & ~1u;

	if (build != 0)
		return (uint32_t) __builtin_ctz(build);
	return session->stages.waiting != 0 ? 0 : session->nsources;
}

/* Rows on a device are taken there, or brought to chunks. */
static GjStatus
take_rows(GjSession *session, uint32_t source, GjStageResult *result, bool *taken)
{
	const GjKeptRows *rows = gj_stage_rows(result);

	*taken = gj_team_reads_rows(session->run, rows);
	return *taken ? gj_team_take_rows(session->run, source, rows) :
		gj_stage_bring(result, gj_session_stop, session, &session->stages.why);
}

GjStatus
gj_session_feed_stages(GjSession *session, bool *any)
{
	GjSessionStages *stages = &session->stages;
	uint32_t	source;

	while ((source = next_to_end(session)) < session->nsources &&
		   !gj_team_complete(session->run))
	{
		GjStageResult *result = stages->read[source];
		uint32_t	nrows;
		uint8_t    *chunk = NULL;

		if (result && gj_stage_rows(result) && stages->nhanded[source] == 0)
		{
			bool		taken;

			if (!gj_team_accepts(session->run, source))
				return GJ_OK;
			GJ_TRY(take_rows(session, source, result, &taken));
			if (taken)
				result = NULL;
		}
		if (result)
			chunk = gj_stage_chunk(result, stages->nhanded[source], &nrows);
		if (!chunk)
		{
			stages->waiting &= ~(1u << source);
			GJ_TRY(gj_team_source_end(session->run, source));
			*any = true;
			continue;
		}
		if (stages->nheld >= GJ_STAGE_MOST_HELD || !gj_team_accepts(session->run, source))
			return GJ_OK;
		stages->nheld++;
		stages->nhanded[source]++;
		*any = true;
		/* numbers do not come again while the run has few of them */
		GJ_TRY(gj_team_chunk(session->run, source, nrows, chunk,
							 GJ_STAGE_SLOTS + stages->nslots++ % GJ_STAGE_SLOTS));
	}
	return GJ_OK;
}

bool
gj_session_can_feed_stages(const GjSession *session)
{
	uint32_t	source = next_to_end(session);

	return source < session->nsources && session->stages.nheld < GJ_STAGE_MOST_HELD &&
		gj_team_accepts(session->run, source);
}

/* ---- the result that is left */

/* Batches of a stage are made in the first slot of the ring, which nobody else uses. */
static GjStatus
stage_slot(void *arg, uint8_t **memory)
{
	*memory = ((GjSession *) arg)->output->memory;
	return GJ_OK;
}

static bool
stage_ready(void *arg)
{
	return true;
}

static GjStatus
stage_send(void *arg, uint32_t nrows)
{
	GjSession  *session = arg;

	return gj_stage_add(session->stages.result, session->output->memory, nrows,
						&session->stages.why);
}

static bool
stage_keep(void *arg, GjDeviceEntry *entry, GjWork *work, GjRelation *rows)
{
	return gj_stage_keep(((GjSession *) arg)->stages.result, entry, work, rows);
}

/* The result of a stage. */
static const GjFinalOps stage_ops = {
	.slot = stage_slot,.ready = stage_ready,.send = stage_send,
	.keeps_rows = true,.keep = stage_keep
};

const GjFinalOps *
gj_session_open_stage(GjSession *session, const GjProgram *program)
{
	session->stages.result = gj_stage_create(program, session->submit.spill_memory);
	return session->stages.result ? &stage_ops : NULL;
}

void
gj_session_end_reading(GjSession *session)
{
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		gj_stage_put(session->stages.read[s]);
		session->stages.read[s] = NULL;
	}
}

void
gj_session_drop_stages(GjSession *session)
{
	gj_session_end_reading(session);
	gj_stage_put(session->stages.result);
	session->stages.result = NULL;
}
