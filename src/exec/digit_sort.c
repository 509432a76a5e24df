/*
 * digit_sort.c
 *	  Sorts words of 64 bits by their digits, from the lowest one on.
 *
 * Each digit takes one pass over all words, however many there are: with few bits to sort by, that
 * is less than comparing takes.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec/digit_sort.h"

/* Bits of a digit, and digits of a word. */
#define DIGIT_BITS	8
#define DIGITS		(64 / DIGIT_BITS)

/* Sorts by one digit, which is `shift` bits above the lowest one; counts: of each of its values. */
static void
sort_by_digit(const uint64 *from, uint64 *to, uint32 n, int shift, uint32 *counts)
{
	uint32		place = 0;

	for (int d = 0; d < 1 << DIGIT_BITS; d++)
	{
		uint32		count = counts[d];

		counts[d] = place;
		place += count;
	}
	for (uint32 i = 0; i < n; i++)
	{
		gj_sort_interrupts(i);
		to[counts[from[i] >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
	}
}

uint64 *
gj_sort_by_digits(uint64 *words, uint32 n, int low)
{
	uint32		(*counts)[1 << DIGIT_BITS] = palloc0(sizeof(*counts) * DIGITS);
	uint64	   *from = words;
	uint64	   *to = palloc_extended(sizeof(uint64) * (Size) n, MCXT_ALLOC_HUGE);

	for (uint32 i = 0; i < n; i++)
	{
		gj_sort_interrupts(i);
		for (int d = 0, shift = low; shift < 64; d++, shift += DIGIT_BITS)
			counts[d][words[i] >> shift & ((1 << DIGIT_BITS) - 1)]++;
	}
	for (int d = 0, shift = low; shift < 64; d++, shift += DIGIT_BITS)
	{
		uint64	   *sorted = to;

		sort_by_digit(from, to, n, shift, counts[d]);
		to = from;
		from = sorted;
	}
	pfree(counts);
	pfree(to);
	return from;
}
