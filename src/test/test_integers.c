/*
 * test_integers.c
 *	  Arrays as sets: what all instructions and all ways find, against plain loops.
 *
 * Arrays end where their memory does, so that the address sanitizer sees what is read behind
 * them; results have just the room that integers.h asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integers/integers.h"
#include "unit.h"

static uint32_t pauses;

static void
count_pause(void)
{
	pauses++;
}

static void *
no_memory(size_t nbytes)
{
	return nbytes > 0 ? NULL : malloc(1);
}

static const GjIntegersHost host = {malloc, free, count_pause};
static const GjIntegersHost poor_host = {no_memory, free, count_pause};

/* How values are spread, and their order. */
typedef enum Values
{
	DENSE, SPARSE, ENDS, FEW_DIFFERENT, ALL_EQUAL, NVALUES
} Values;

typedef enum Order
{
	ANY_ORDER, SORTED_SET, SORTED_DUPLICATES, NEARLY_SORTED, NORDERS
} Order;

static int64_t
get(uint32_t width, const void *at, uint64_t i)
{
	return width == 2 ? ((const int16_t *) at)[i] :
		width == 4 ? ((const int32_t *) at)[i] : ((const int64_t *) at)[i];
}

static void
put(uint32_t width, void *at, uint64_t i, int64_t value)
{
	if (width == 2)
		((int16_t *) at)[i] = (int16_t) value;
	else if (width == 4)
		((int32_t *) at)[i] = (int32_t) value;
	else
		((int64_t *) at)[i] = value;
}

static int
compare(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

static uint64_t
plain_unique(int64_t *at, uint64_t n)
{
	uint64_t	left = 0;

	for (uint64_t i = 0; i < n; i++)
		if (left == 0 || at[left - 1] != at[i])
			at[left++] = at[i];
	return left;
}

static int64_t
random_value(uint32_t width, Values values, uint64_t n)
{
	int64_t		greatest = width == 2 ? INT16_MAX : width == 4 ? INT32_MAX : INT64_MAX;
	int64_t		random = (int64_t) ((uint64_t) unit_random() << 33 ^ (uint64_t) unit_random() << 2 ^
									(uint64_t) unit_random());

	switch (values)
	{
		case DENSE:
			return (int64_t) (unit_random() % (n * 3 + 1)) - (int64_t) n;
		case SPARSE:
			return random;
		case ENDS:
			return unit_random() % 2 ? greatest - (int64_t) (unit_random() % (n + 2)) :
				-greatest - 1 + (int64_t) (unit_random() % (n + 2));
		case FEW_DIFFERENT:
			return (int64_t) (unit_random() % 5) * (greatest / 7) - greatest / 3;
		default:
			return greatest;
	}
}

/* An array, and its set as 64 bits. */
typedef struct Array
{
	void	   *at;
	uint64_t	n;
	int64_t    *set;
	uint64_t	nset;
} Array;

static void
make_array(Array *array, uint32_t width, uint64_t n, Values values, Order order)
{
	int64_t    *all = malloc((n + 1) * sizeof(int64_t));

	array->set = malloc((n + 1) * sizeof(int64_t));
	for (uint64_t i = 0; i < n; i++)
	{
		/* cut to the width */
		put(width, &all[i], 0, random_value(width, values, n));
		all[i] = get(width, &all[i], 0);
	}
	memcpy(array->set, all, n * sizeof(int64_t));
	qsort(array->set, n, sizeof(int64_t), compare);
	if (order != ANY_ORDER)
		memcpy(all, array->set, n * sizeof(int64_t));
	array->nset = plain_unique(array->set, n);
	if (order == SORTED_SET || order == NEARLY_SORTED)
		n = plain_unique(all, n);
	if (order == NEARLY_SORTED && n > 1)
	{
		uint64_t	i = unit_random() % 2 ? n - 2 : unit_random() % (n - 1);
		int64_t		swap = all[i];

		all[i] = all[i + 1];
		all[i + 1] = swap;
	}
	array->n = n;
	array->at = malloc(n > 0 ? n * width : 1);
	for (uint64_t i = 0; i < n; i++)
		put(width, array->at, i, all[i]);
	free(all);
}

static void
free_array(Array *array)
{
	free(array->at);
	free(array->set);
}

static uint64_t
plain_combine(GjSetOperation operation, const Array *a, const Array *b, int64_t *to)
{
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint64_t	count = 0;

	while (i < a->nset || j < b->nset)
	{
		bool		in_a = j == b->nset || (i < a->nset && a->set[i] <= b->set[j]);
		bool		in_b = i == a->nset || (j < b->nset && b->set[j] <= a->set[i]);

		if (operation == GJ_SETS_UNION || (in_a && in_b == (operation == GJ_SETS_INTERSECT)))
			to[count++] = in_a ? a->set[i] : b->set[j];
		i += in_a;
		j += in_b;
	}
	return count;
}

static bool
same(uint32_t width, const void *at, uint64_t n, const int64_t *expected, uint64_t nexpected)
{
	bool		equal = n == nexpected;

	for (uint64_t i = 0; equal && i < n; i++)
		equal = get(width, at, i) == expected[i];
	return equal;
}

/* One operation on two arrays, whatever may be wanted of it. */
static void
check_operation(uint32_t width, GjSetOperation operation, const Array *a, const Array *b)
{
	int64_t    *expected = malloc((a->nset + b->nset + 1) * sizeof(int64_t));
	uint64_t	n = plain_combine(operation, a, b, expected);
	uint64_t	room = gj_integers_room(operation, a->n, b->n);
	void	   *result = malloc(room * width + GJ_INTEGERS_SLACK);

	for (int want = GJ_WANT_ELEMENTS; want <= GJ_WANT_ANY; want++)
		for (int sizes = 0; sizes < 4; sizes++)
		{
			GjIntegersPair pair = {
				.width = width,.operation = operation,.want = want,
				.sizes = {sizes & 1, sizes >> 1},.input = {a->at, b->at},.n = {a->n, b->n},
				.result = want == GJ_WANT_ELEMENTS ? result : NULL
			};

			if (want == GJ_WANT_ANY && (operation != GJ_SETS_INTERSECT || sizes != 0))
				continue;
			EXPECT(gj_integers_pair(&pair, &host));
			EXPECT(want == GJ_WANT_ANY ? (pair.count > 0) == (n > 0) : pair.count == n);
			EXPECT(want != GJ_WANT_ELEMENTS || same(width, result, pair.count, expected, n));
			EXPECT(!(sizes & 1) || pair.distinct[0] == a->nset);
			EXPECT(!(sizes >> 1) || pair.distinct[1] == b->nset);
			EXPECT(pair.input[0] == a->at && pair.n[1] == b->n);
		}
	free(result);
	free(expected);
}

/* True if `sorted` has n values in order, those of `values`. */
static bool
is_sorted(uint32_t width, const void *sorted, const void *values, uint64_t n)
{
	int64_t    *expected = malloc((n + 1) * sizeof(int64_t));
	bool		equal = expected != NULL;

	for (uint64_t i = 0; i < n && equal; i++)
		expected[i] = get(width, values, i);
	if (equal)
		qsort(expected, n, sizeof(int64_t), compare);
	for (uint64_t i = 0; i < n && equal; i++)
		equal = get(width, sorted, i) == expected[i];
	free(expected);
	return equal;
}

/* Sorting, and sets of sets that are known to be some. */
static void
check_sets(uint32_t width, const Array *a, const Array *b)
{
	size_t		nbytes = a->n * width;
	uint64_t	n = a->n;
	void	   *made = malloc(nbytes + GJ_INTEGERS_SLACK);
	void	   *spare = malloc(nbytes + 1);
	void	   *other = malloc(b->nset * width + 1);
	void	   *result = malloc((a->n + b->nset) * width + GJ_INTEGERS_SLACK);
	int64_t    *expected = malloc((a->nset + b->nset + 1) * sizeof(int64_t));

	memcpy(made, a->at, nbytes);
	gj_integers_sort(width, made, spare, n);
	EXPECT(is_sorted(width, made, a->at, n));
	memcpy(made, a->at, nbytes);
	EXPECT(gj_integers_make_set(width, made, &n, &host));
	EXPECT(same(width, made, n, a->set, a->nset));
	for (uint64_t i = 0; i < b->nset; i++)
		put(width, other, i, b->set[i]);
	for (int operation = GJ_SETS_INTERSECT; operation <= GJ_SETS_EXCEPT; operation++)
	{
		uint64_t	nexpected = plain_combine(operation, a, b, expected);

		EXPECT(gj_integers_combine(width, operation, made, n, other, b->nset, NULL) == nexpected);
		EXPECT(same(width, result,
					gj_integers_combine(width, operation, made, n, other, b->nset, result),
					expected, nexpected));
	}
	free(made);
	free(spare);
	free(other);
	free(result);
	free(expected);
}

static void
check_shape(uint32_t width, const uint64_t n[2], const Values values[2], const Order order[2])
{
	Array		a;
	Array		b;

	make_array(&a, width, n[0], values[0], order[0]);
	make_array(&b, width, n[1], values[1], order[1]);
	for (int code = GJ_CODE_AUTO; code < GJ_NCODES; code++)
	{
		gj_integers_use(code);
		for (int operation = GJ_SETS_INTERSECT; operation <= GJ_SETS_EXCEPT; operation++)
			check_operation(width, operation, &a, &b);
		check_sets(width, &a, &b);
	}
	gj_integers_use(GJ_CODE_AUTO);
	free_array(&a);
	free_array(&b);
}

static void
check_random_shapes(uint32_t nshapes, uint64_t largest)
{
	for (uint32_t shape = 0; shape < nshapes; shape++)
	{
		uint64_t	n[2];
		Values		values[2];
		Order		order[2];

		for (int side = 0; side < 2; side++)
		{
			/* as many small ones as large ones */
			n[side] = unit_random() % (1 + (largest >> unit_random() % 12));
			values[side] = unit_random() % NVALUES;
			order[side] = unit_random() % NORDERS;
		}
		if (unit_random() % 2)
			values[1] = values[0];
		check_shape(2u << unit_random() % 3, n, values, order);
	}
}

/* All sizes around those of vectors. */
void
test_integers_small(void)
{
	for (uint32_t width = 2; width <= 8; width *= 2)
		for (uint64_t na = 0; na <= 70; na += na < 34 ? 1 : 5)
			for (uint64_t nb = 0; nb <= 70; nb += nb < 18 ? 1 : 13)
			{
				const uint64_t n[2] = {na, nb};
				const Values any = (na + nb) % NVALUES;
				const Values values[2] = {any, na * nb % 2 ? DENSE : any};
				const Order other = nb % 3 ? SORTED_SET : na % NORDERS;
				const Order order[2] = {(na + nb / 2) % NORDERS, other};

				check_shape(width, n, values, order);
			}
	CHECK(true);
}

void
test_integers_random(void)
{
	check_random_shapes(600, 3000);
	check_random_shapes(40, 40000);
	CHECK(true);
}

/* Sorted pieces, galloping, filters with few and with many matches, bitmaps of all kinds. */
void
test_integers_large(void)
{
	static const uint64_t sizes[][2] = {{100000, 100000}, {90000, 90}, {100, 90000}, {3, 90000},
	{10000, 90000}, {8192, 8192}, {4096, 4097}};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t width = 2; width <= 8; width *= 2)
			for (int v = 0; v < NVALUES; v++)
			{
				const Values values[2] = {v, v};
				const Order order[2] = {s % 2 ? ANY_ORDER : v % NORDERS, (s + v) % NORDERS};

				check_shape(width, sizes[s], values, order);
			}
	CHECK(true);
}

/* Where there is no memory, the answer says so; small arrays need none. */
void
test_integers_memory(void)
{
	Array		a;
	GjIntegersPair pair = {.width = 8,.operation = GJ_SETS_INTERSECT,.want = GJ_WANT_COUNT};
	uint64_t	n = 5000;

	make_array(&a, 8, n, SPARSE, ANY_ORDER);
	pair.input[0] = pair.input[1] = a.at;
	pair.n[0] = pair.n[1] = a.n;
	CHECK(!gj_integers_pair(&pair, &poor_host));
	CHECK(!gj_integers_make_set(8, a.at, &n, &poor_host));
	n = pair.n[0] = pair.n[1] = GJ_INTEGERS_FEW;
	CHECK(gj_integers_pair(&pair, &poor_host));
	CHECK_EQUAL(pair.count, GJ_INTEGERS_FEW);
	CHECK(gj_integers_make_set(8, a.at, &n, &poor_host));
	CHECK_EQUAL(n, GJ_INTEGERS_FEW);
	free_array(&a);
}

/* A caller that wants to end need not wait for long. */
void
test_integers_pauses(void)
{
	const uint64_t n = 2000000;
	GjIntegersPair pair = {.width = 4,.operation = GJ_SETS_INTERSECT,.want = GJ_WANT_COUNT};

	for (int order = ANY_ORDER; order <= SORTED_SET; order++)
		for (int values = DENSE; values <= SPARSE; values++)
		{
			Array		a;

			make_array(&a, 4, n, values, order);
			pair.input[0] = pair.input[1] = a.at;
			pair.n[0] = pair.n[1] = a.n;
			pauses = 0;
			CHECK(gj_integers_pair(&pair, &host));
			CHECK_EQUAL(pair.count, a.nset);
			CHECK(pauses >= a.n >> 18);
			free_array(&a);
		}
}
