/*
 * array.h
 *	  One-dimensional or not, the elements of an integer array as PostgreSQL stores it.
 *
 * Behind the length header (one byte or four, so nothing is aligned) are ndim, dataoffset,
 * the element type, dimensions and lower bounds, four bytes each; then, if dataoffset is not
 * 0, a bitmap of the elements that are not NULL; then the elements that are not NULL, one
 * after the other.  dataoffset counts from a header of four bytes.
 */
#ifndef GJ_ROWS_ARRAY_H
#define GJ_ROWS_ARRAY_H

#include "text.h"

#define GJ_ARRAY_HEADER		12u	/* without the length header */
#define GJ_ARRAY_MAX_DIM	6u

typedef struct GjArray
{
	const uint8_t *elements;	/* those that are not NULL */
	uint32_t	n;
	bool		has_null;
	uint32_t	nitems;			/* NULL or not */
	uint32_t	bitmap;			/* where it starts behind the length header; 0: there is none */
} GjArray;

/* Elements that the bitmap of `n` says are not NULL. */
GJ_FN uint32_t
gj_array_count(const uint8_t *bitmap, uint32_t n)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += bitmap[i / 8] >> (i % 8) & 1;
	return count;
}

/*
 * The array in n bytes behind the length header, of elements of `width` bytes.
 * GJ_UNKNOWN_VALUE if it is damaged.
 */
GJ_FN uint32_t
gj_array_at(const uint8_t *bytes, uint32_t n, uint32_t width, GjArray *array)
{
	uint32_t	ndim;
	uint32_t	dataoffset;
	uint64_t	start;
	uint64_t	nitems;

	if (n < GJ_ARRAY_HEADER)
		return GJ_UNKNOWN_VALUE;
	ndim = (uint32_t) gj_word_at(bytes, 4);
	dataoffset = (uint32_t) gj_word_at(bytes + 4, 4);
	if (ndim > GJ_ARRAY_MAX_DIM || n < GJ_ARRAY_HEADER + 8 * ndim)
		return GJ_UNKNOWN_VALUE;
	nitems = ndim > 0;
	/* NULLs take a bit each; below 2^27, the next factor below 2^32 */
	for (uint32_t d = 0; d < ndim && nitems <= (uint64_t) n * 8; d++)
		nitems *= gj_word_at(bytes + GJ_ARRAY_HEADER + 4 * d, 4);
	if (nitems > (uint64_t) n * 8)
		return GJ_UNKNOWN_VALUE;
	array->n = array->nitems = (uint32_t) nitems;
	array->bitmap = 0;
	array->has_null = false;
	start = ((4 + GJ_ARRAY_HEADER + 8 * ndim + 7) & ~7u) - 4;
	if (dataoffset != 0)
	{
		const uint32_t bitmap = GJ_ARRAY_HEADER + 8 * ndim;

		if (dataoffset < 4 || dataoffset - 4 < bitmap + (nitems + 7) / 8 || dataoffset - 4 > n)
			return GJ_UNKNOWN_VALUE;
		start = dataoffset - 4;
		array->bitmap = bitmap;
		array->n = gj_array_count(bytes + bitmap, (uint32_t) nitems);
		array->has_null = array->n < nitems;
	}
	if (array->n > 0 && start + (uint64_t) array->n * width > n)
		return GJ_UNKNOWN_VALUE;
	array->elements = bytes + start;
	return GJ_OK;
}

/* The array that a reference leads to.  GJ_UNKNOWN_VALUE also if it does not lie there flat. */
GJ_FN uint32_t
gj_array_of(uint64_t ref, const uint8_t *heap, uint32_t width, GjArray *array)
{
	const uint8_t *bytes;
	uint32_t	n;
	uint32_t	status = gj_referred(ref, heap, &bytes, &n);

	array->elements = heap;
	array->n = array->nitems = array->bitmap = 0;
	array->has_null = false;
	if (status == GJ_OK)
		status = gj_varlena(bytes, n, &bytes, &n);
	return status == GJ_OK ? gj_array_at(bytes, n, width, array) : status;
}

/* Bytes of an element, by the OID of its type: those of int2, int4 and int8 never change. */
GJ_FN uint32_t
gj_array_width(uint32_t type)
{
	return type == 21 ? 2 : type == 23 ? 4 : type == 20 ? 8 : 0;
}

/*
 * The array of integers in n bytes behind the length header as a text that is equal to those
 * of all arrays that PostgreSQL takes for equal: of the same dimensions, lower bounds, elements
 * and NULLs.  GJ_UNKNOWN_VALUE if there could be others: a bitmap that says that nothing is
 * NULL, bytes that mean nothing and are not 0.
 */
GJ_FN uint32_t
gj_array_text(const uint8_t *bytes, uint32_t n, int64_t *text)
{
	GjArray		array;
	uint32_t	width;
	uint32_t	status;
	const uint8_t *p;

	*text = 0;
	if (n < GJ_ARRAY_HEADER)
		return GJ_UNKNOWN_VALUE;
	width = gj_array_width((uint32_t) gj_word_at(bytes + 8, 4));
	status = gj_array_at(bytes, n, width, &array);
	if (status != GJ_OK)
		return status;
	if (width == 0 || (array.bitmap != 0 && !array.has_null) ||
		(array.nitems > 0 ? array.elements + (uint64_t) array.n * width != bytes + n :
		 gj_word_at(bytes, 4) != 0 || n != GJ_ARRAY_HEADER))
		return GJ_UNKNOWN_VALUE;
	if (array.bitmap != 0)
	{
		/* what is left of the bitmap's last byte, and the bytes up to the next multiple of 8 */
		p = bytes + array.bitmap + array.nitems / 8;
		if (p + 8 + (array.nitems % 8 != 0) <= array.elements || (array.elements - bytes + 4) % 8 != 0 ||
			(array.nitems % 8 != 0 && *p++ >> (array.nitems % 8) != 0))
			return GJ_UNKNOWN_VALUE;
		for (; p < array.elements; p++)
			if (*p != 0)
				return GJ_UNKNOWN_VALUE;
	}
	return gj_text_checked(bytes, n, text);
}

/* Element i of those that are not NULL. */
GJ_FN int64_t
gj_array_element(const GjArray *array, uint32_t i, uint32_t width)
{
	const uint64_t word = gj_word_at(array->elements + (uint64_t) i * width, width);

	return width == 2 ? (int16_t) word : width == 4 ? (int32_t) word : (int64_t) word;
}

/* The set of a tuple in a column of arrays: its size, and whether there is none. */
GJ_FN uint32_t
gj_array_set(uint64_t ref, const uint8_t *heap, uint32_t width, uint32_t nulls, int32_t *size,
			 uint8_t *null)
{
	GjArray		array;
	const uint32_t status = gj_array_of(ref, heap, width, &array);

	*null = array.has_null && nulls == GJ_NULL_ELEMENTS_NEVER;
	*size = *null || status != GJ_OK ? 0 : (int32_t) array.n;
	if (array.has_null && nulls == GJ_NULL_ELEMENTS_FAIL)
		return GJ_UNKNOWN_VALUE;
	return status;
}

#endif							/* GJ_ROWS_ARRAY_H */
