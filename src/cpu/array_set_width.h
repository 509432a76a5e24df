/*
 * array_set_width.h
 *	  The set of one array of elements of WIDTH bytes, type VALUE.  array_set.c includes it
 *	  for each width.
 */

/*
 * The elements, ascending and without duplicates, at `to`; their number in *size.  False: no
 * memory.
 */
static bool
GJ_NAME(make_set, WIDTH) (const GjArray *array, VALUE *to, int32_t *size)
{
	const size_t nbytes = (size_t) array->n * WIDTH;
	uint64_t	n = array->n;
	VALUE	   *set = to;

	/* others write behind `to` meanwhile: only few elements need no room there */
	if (n > GJ_INTEGERS_FEW)
		set = malloc(nbytes + GJ_INTEGERS_SLACK);
	if (!set)
		return false;
	memcpy(set, array->elements, nbytes);
	if (!gj_integers_make_set(WIDTH, set, &n, &host))
	{
		free(set);
		return false;
	}
	if (set != to)
	{
		memcpy(to, set, n * WIDTH);
		free(set);
	}
	*size = (int32_t) n;
	return true;
}
