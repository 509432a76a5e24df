/*
 * joins.c
 *	  Chooses how a step finds its pairs.
 */
#include "internal.h"

const GjJoinOps *
gj_join_choose(const GjProgram *program, const GjStep *step)
{
	switch (step->algorithm)
	{
		case GJ_JOIN_HASH:
			return &gj_join_hash;
		case GJ_JOIN_SET:
			return gj_program_array(program, GjSetStep, set_steps)[step->set].membership ?
				&gj_join_membership : &gj_join_sets;
		case GJ_JOIN_NESTED_LOOP:
			return &gj_join_nested_loop;
		default:
			return &gj_join_sort_merge;
	}
}
