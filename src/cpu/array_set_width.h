/*
 * array_set_width.h
 *	  The set of one array of elements of WIDTH bytes, type VALUE.  array_set.c includes it
 *	  for each width.
 */

static int
GJ_NAME(compare_values, WIDTH) (const void *a, const void *b)
{
	VALUE		x = *(const VALUE *) a;
	VALUE		y = *(const VALUE *) b;

	return (x > y) - (x < y);
}

static void
GJ_NAME(sort_values, WIDTH) (VALUE *values, uint32_t n)
{
	if (n > GJ_FEW_ELEMENTS)
	{
		qsort(values, n, sizeof(VALUE), GJ_NAME(compare_values, WIDTH));
		return;
	}
	for (uint32_t i = 1; i < n; i++)
	{
		VALUE		value = values[i];
		uint32_t	at = i;

		for (; at > 0 && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

/* The elements, ascending and without duplicates; returns their number. */
static int32_t
GJ_NAME(make_set, WIDTH) (const GjArray *array, VALUE *to)
{
	bool		ascending = true;
	uint32_t	n = 0;

	for (uint32_t i = 0; i < array->n; i++)
	{
		memcpy(&to[i], array->elements + (size_t) i * sizeof(VALUE), sizeof(VALUE));
		ascending &= i == 0 || to[i - 1] < to[i];
	}
	if (ascending)
		return (int32_t) array->n;
	GJ_NAME(sort_values, WIDTH) (to, array->n);
	for (uint32_t i = 0; i < array->n; i++)
		if (n == 0 || to[n - 1] != to[i])
			to[n++] = to[i];
	return (int32_t) n;
}
