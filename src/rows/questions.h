/*
 * questions.h
 *	  Answers the questions of a program (rows/expression.h) for the values of a dictionary.
 */
#ifndef GJ_ROWS_QUESTIONS_H
#define GJ_ROWS_QUESTIONS_H

#include "expression.h"

/* A question about a column. */
typedef struct GjQuestion
{
	uint32_t	load;			/* the instruction that it begins with */
	uint32_t	nregisters;		/* of its expression */
} GjQuestion;

/* A column of codes whose dictionary is asked. */
typedef struct GjAsked
{
	GjColumn	column;
	uint32_t	number;			/* of the program's columns */
	uint32_t	first;			/* questions first .. first+nquestions-1 are about it */
	uint32_t	nquestions;
	uint8_t    *answers;		/* one byte a value, device memory */
} GjAsked;

/*
 * Answers one question for values base .. base+n-1.  *status: an error, or that an answer is NULL.
 * The registers are those of a tile; the byte of a value is written by the thread that has it.
 */
GJ_FN void
gj_answer_question(const GjCode *code, const GjQuestion *question, const GjAsked *asked,
				   uint32_t base, uint32_t n, const GjTile *tile, uint32_t *status)
{
	const GjInstr *load = &code->instrs[question->load];
	const uint32_t number = gj_question_number(load);
	const size_t result = (size_t) load->b * tile->stride;
	const size_t guard = (size_t) load->a * tile->stride;
	GjColumn	values = asked->column;
	GjCode		alone = *code;
	GjExpr		expr;
	GjView		view;

	/* what gj_eval reads of these */
	expr.first = question->load;
	expr.ninstrs = 1 + gj_question_skips(load);
	alone.exprs = &expr;
	values.data = values.heap + values.base;
	values.nulls = 0;
	values.packed = 0;
	values.answers = 0;
	/* the only one that is looked at, as if it were among all of the program's */
	view.columns = (const GjColumn *) ((uintptr_t) &values - asked->number * sizeof(GjColumn));
	view.nrows = base + n;
	view.no_row = 0;
	view.same = 0;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		view.rowid[s] = 0;
	if (load->imm & GJ_IS_GUARDED)
	{
		GJ_TILE_FOR(i, n)
		{
			tile->value[guard + i] = 1;
			tile->null[guard + i] = 0;
		}
	}
	gj_eval(&alone, 0, &view, base, n, tile, status);
	GJ_TILE_FOR(i, n)
	{
		const uint8_t before = number == 0 ? 0 : asked->answers[base + i];

		if (tile->null[result + i])
			*status = GJ_UNKNOWN_VALUE;
		asked->answers[base + i] = (uint8_t) (before | (tile->value[result + i] != 0) << number);
	}
}

#endif							/* GJ_ROWS_QUESTIONS_H */
