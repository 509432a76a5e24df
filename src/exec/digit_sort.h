/*
 * digit_sort.h
 *	  Sorts words of 64 bits by their digits.
 */
#ifndef GJ_DIGIT_SORT_H
#define GJ_DIGIT_SORT_H

#include "miscadmin.h"

/* So many rows are gone through before it is looked for interrupts. */
#define GJ_INTERRUPT_ROWS	65536

/* Looks for interrupts before a row, once in a while. */
static inline void
gj_sort_interrupts(uint32 row)
{
	if (row % GJ_INTERRUPT_ROWS == 0)
		CHECK_FOR_INTERRUPTS();
}

/*
 * Sorts n words by their bits from `low` on; words that are equal there keep their order.  Returns
 * them in an array that takes the place of `words`, which must have been allocated.
 */
extern uint64 *gj_sort_by_digits(uint64 *words, uint32 n, int low);

#endif							/* GJ_DIGIT_SORT_H */
