/*
 * merge_path_width.h
 *	  Where two sorted arrays are cut by a part of their merged order.  Included once a width by
 *	  set_pair_width.h and sorted_set_width.h, with GJ_VALUE and GJ_NAME defined.
 */

/* How many of the first `diagonal` merged values come from a; of two equal ones a's is first. */
static uint64_t
GJ_NAME(merge_path) (const GJ_VALUE *a, uint64_t na, const GJ_VALUE *b, uint64_t nb,
					 uint64_t diagonal)
{
	uint64_t	low = diagonal > nb ? diagonal - nb : 0;
	uint64_t	high = diagonal < na ? diagonal : na;

	while (low < high)
	{
		uint64_t	mid = low + (high - low) / 2;

		if (a[mid] <= b[diagonal - 1 - mid])
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
