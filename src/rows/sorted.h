/*
 * sorted.h
 *	  Values as integers in their order, and the place of a tuple in a sorted side.
 *
 * A sorted side has its rows in the order of its columns: the keys, then the range key if
 * there is one.  The rows that match a tuple lie next to each other; two binary searches
 * find them.
 */
#ifndef GJ_ROWS_SORTED_H
#define GJ_ROWS_SORTED_H

#include "hash.h"

/*
 * A value (a register's 64 bits) as an integer: equal values are equal and greater ones are
 * greater, as PostgreSQL compares them (NaN is the greatest float, -0 equals 0).
 */
GJ_FN int64_t
gj_ordered_bits(int64_t value, bool is_float)
{
	int64_t		bits = gj_key_bits(value, is_float);

	/* negative floats ascend as their bits descend */
	return is_float && bits < 0 ? bits ^ INT64_MAX : bits;
}

#endif							/* GJ_ROWS_SORTED_H */
