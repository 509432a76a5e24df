/*
 * shape.c
 *	  Says in a line what a program does, for the log.
 */
#include "program.h"

#include <stdio.h>

/* Adds formatted text behind *n bytes of `text`, as far as there is room. */
#define ADD(...) \
	(*n += *n < size ? (uint32_t) snprintf(text + *n, size - *n, __VA_ARGS__) : 0)

static void
add_joins(const GjProgram *p, char *text, uint32_t size, uint32_t *n)
{
	static const char *const types[] = {
		"inner", "left", "right", "full", "semi", "anti", "right semi", "right anti"
	};
	static const char *const algorithms[] = {"hash", "sort-merge", "nested loop", "set"};

	for (uint32_t i = 0; i < p->nsteps; i++)
	{
		const GjStep *step = gj_program_array(p, GjStep, steps) + i;

		ADD("%s%s %s of %u keys", i == 0 ? ", joins: " : ", ", algorithms[step->algorithm],
			types[step->join_type], step->nkeys);
	}
}

void
gj_program_shape(const GjProgram *p, const char *sink, char *text, uint32_t size)
{
	uint32_t	used = 0;
	uint32_t   *n = &used;

	ADD("%u sources, %u columns, %u instructions, sink: %s", p->nsources, p->ncolumns,
		p->ninstrs, sink);
	if (p->naggregates > 0)
		ADD(", %u aggregates", p->naggregates);
	if (p->ngroup_keys > 0)
		ADD(", %u group keys", p->ngroup_keys);
	if (p->nsort_keys > 0)
		ADD(", %u sort keys", p->nsort_keys);
	/* last, for there may be many */
	add_joins(p, text, size, n);
}
