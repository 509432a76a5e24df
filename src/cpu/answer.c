/*
 * answer.c
 *	  Answers the questions of a program for the values of dictionaries.
 */
#include "rows/questions.h"
#include "cpu_device.h"

typedef struct GjAnswerWork
{
	const GjCode *code;
	const GjQuestion *questions;
	const GjAsked *asked;
	uint8_t    *known;			/* atomic */
} GjAnswerWork;

/* Items of all dictionaries, numbered through. */
static void
answer_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjAnswerWork *w = arg;
	const GjAsked *asked = w->asked;
	uint32_t	status = GJ_OK;
	uint64_t	end;

	while (item >= gj_items(asked->column.factor))
		item -= gj_items((asked++)->column.factor);
	end = gj_item_end((uint64_t) item * GJ_ITEM_ROWS, (uint64_t) asked->column.factor);
	for (uint32_t base = item * GJ_ITEM_ROWS, n; base < end; base += n)
	{
		n = end - base < GJ_TILE_ROWS ? (uint32_t) (end - base) : GJ_TILE_ROWS;
		for (uint32_t q = 0; q < asked->nquestions; q++)
			gj_answer_question(w->code, &w->questions[asked->first + q], asked, base, n, tile,
							   &status);
	}
	if (status != GJ_OK)
		__atomic_store_n(&w->known[asked - w->asked], 0, __ATOMIC_RELAXED);
}

GjStatus
gj_cpu_answer(GjQueue *queue, const GjQuestion *questions, uint32_t nquestions,
			  const GjAsked *asked, uint32_t n, uint8_t *known)
{
	GjAnswerWork w = {&queue->code, questions, asked, known};
	uint32_t	nitems = 0;

	(void) nquestions;
	for (uint32_t i = 0; i < n; i++)
	{
		nitems += gj_items(asked[i].column.factor);
		known[i] = 1;
	}
	gj_for_items(queue, (uint64_t) nitems * GJ_ITEM_ROWS, answer_item, &w);
	return gj_take_row_error(queue);
}
