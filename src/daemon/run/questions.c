/*
 * questions.c
 *	  Has the questions of a run's program (rows/expression.h) answered by the dictionaries of
 *	  resident fragments, before the fragments' rows are looked at.
 *
 * Answers belong to the run.  Rows of one fragment can come in several parts, which share them.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

/* Dictionaries of one call of the device, at most. */
#define GJ_MAX_ASKED		32768

struct GjRunQuestions
{
	uint32_t	n;
	GjQuestion *questions;		/* those about one column side by side */
	uint32_t	ncolumns;
	GjAsked    *columns;		/* [ncolumns]: the columns, and which questions are about them */
	uint32_t	nasked;
	GjAsked    *asked;			/* [GJ_FUSED_PARTS * ncolumns] */
	GjAsked   **asked_of;		/* the same, by part and column; NULL: it has no dictionary */
	uint8_t    *known;
	GjBuffer	answers;
};

/* Adds the questions about a column. */
static void
find_questions(const GjRun *run, uint32_t column, GjRunQuestions *q)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	GjAsked    *to = &q->columns[q->ncolumns];

	*to = (GjAsked) {.number = column,.first = q->n};
	for (uint32_t e = 0; e < run->program->nexprs; e++)
		for (uint32_t i = 0; i < run->exprs[e].ninstrs; i++)
		{
			uint32_t	pc = run->exprs[e].first + i;

			if (gj_is_question(&instrs[pc]) && instrs[pc].arg == column)
				q->questions[q->n++] = (GjQuestion) {pc, run->exprs[e].nregisters};
		}
	to->nquestions = q->n - to->first;
	q->ncolumns += to->nquestions > 0;
}

bool
gj_questions_open(GjRun *run)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	const GjSource *probe_side = &run->sources[0];
	GjRunQuestions *q;
	uint32_t	n = 0;
	size_t		most;

	for (uint32_t i = 0; i < run->program->ninstrs; i++)
		n += gj_is_question(&instrs[i]);
	if (n == 0)
		return true;
	q = run->questions = calloc(1, sizeof(GjRunQuestions));
	if (!q)
		return false;
	q->questions = calloc(n, sizeof(GjQuestion));
	q->columns = calloc(probe_side->ncolumns, sizeof(GjAsked));
	if (!q->questions || !q->columns)
		return false;
	for (uint32_t c = 0; c < probe_side->ncolumns; c++)
		find_questions(run, probe_side->first_column + c, q);
	most = (size_t) GJ_FUSED_PARTS * q->ncolumns;
	q->asked = calloc(most, sizeof(GjAsked));
	q->asked_of = calloc(most, sizeof(GjAsked *));
	q->known = calloc(most, 1);
	return q->asked && q->asked_of && q->known;
}

void
gj_questions_free(GjRun *run)
{
	GjRunQuestions *q = run->questions;

	if (!q)
		return;
	gj_buffer_free(&run->work, &q->answers);
	free(q->questions);
	free(q->columns);
	free(q->asked);
	free(q->asked_of);
	free(q->known);
	free(q);
	run->questions = NULL;
}

/* Notes the dictionary of a column of part p; *nbytes: of all answers. */
static void
note_dictionary(GjRunQuestions *q, uint32_t p, uint32_t k, const GjColumn *column, uint64_t *nbytes)
{
	GjAsked   **to = &q->asked_of[p * q->ncolumns + k];
	const GjAsked *before = p > 0 ? *(to - q->ncolumns) : NULL;

	*to = NULL;
	if (!gj_column_has_codes(column) || q->nasked == GJ_MAX_ASKED)
		return;
	if (before && before->column.heap == column->heap && before->column.base == column->base)
	{
		*to = *(to - q->ncolumns);
		return;
	}
	*to = &q->asked[q->nasked++];
	**to = q->columns[k];
	(*to)->column = *column;
	*nbytes += (uint64_t) column->factor;
}

/* Has all dictionaries that were noted asked. */
static GjStatus
ask(GjRun *run, GjRunQuestions *q, uint64_t nbytes)
{
	GjWork	   *work = &run->work;
	uint8_t    *to;
	GjStatus	status = gj_buffer_reserve(work, &q->answers, nbytes);

	if (status != GJ_OK)
		return status;
	to = q->answers.memory;
	for (uint32_t i = 0; i < q->nasked; i++)
	{
		q->asked[i].answers = to;
		to += q->asked[i].column.factor;
	}
	GJ_TRY(work->ops->columns->answer(work->queue, q->questions, q->n, q->asked, q->nasked,
									  q->known));
	for (uint32_t i = 0; i < q->nasked; i++)
	{
		if (q->known[i])
			run->stats.source[0].asked += (uint64_t) q->asked[i].column.factor;
		else
			q->asked[i].answers = NULL;
	}
	return GJ_OK;
}

GjStatus
gj_questions_ask(GjRun *run, GjColumn *columns, uint32_t nparts, bool *all)
{
	GjRunQuestions *q = run->questions;
	const GjSource *probe_side = &run->sources[0];
	uint64_t	nbytes = 0;

	*all = false;
	if (!q)
		return GJ_OK;
	q->nasked = 0;
	for (uint32_t p = 0; p < nparts; p++)
		for (uint32_t k = 0; k < q->ncolumns; k++)
			note_dictionary(q, p, k, &columns[p * probe_side->ncolumns + q->columns[k].number -
											  probe_side->first_column], &nbytes);
	if (q->nasked > 0)
	{
		GjStatus	status = ask(run, q, nbytes);

		/* without the memory, rows are evaluated one by one */
		if (status != GJ_OK)
			return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	}
	*all = nparts > 0;
	for (uint32_t p = 0; p < nparts; p++)
		for (uint32_t k = 0; k < q->ncolumns; k++)
		{
			const GjAsked *asked = q->asked_of[p * q->ncolumns + k];
			GjColumn   *column = &columns[p * probe_side->ncolumns + q->columns[k].number -
									   probe_side->first_column];

			column->answers = asked ? asked->answers : NULL;
			*all &= column->answers != NULL;
		}
	return GJ_OK;
}
