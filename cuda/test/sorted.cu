/*
 * sorted.cu
 *	  Tests of sort_build and sort_probe: values of any distribution, also such that crowd in few
 *	  of a side's buckets, one and several columns, bounds, NULLs; pairs by probing and expanding
 *	  and, where keys are unique, at once.
 */
#include <algorithm>
#include <limits>

#include "test.cuh"

typedef std::pair<uint32_t, uint32_t> Pair; /* tuple, row id */

/* How the values of a column are distributed. */
enum Values
{
	DENSE,   /* each number once */
	FEW,     /* ten numbers */
	EQUAL,   /* one number */
	SPREAD,  /* over all 64 bits, the least and the greatest ones too */
	CROWDED, /* half of them near the least, each power of two */
	HIGH_BITS /* a few bits differ, far apart */,
	NVALUES
};

static int64_t
random_value(Random &random, Values values, uint32_t i, uint32_t n)
{
	const int64_t extremes[] = {std::numeric_limits<int64_t>::min(),
								std::numeric_limits<int64_t>::max(), -1, 0, 1};

	switch (values)
	{
		case DENSE:
			return (int64_t) i - n / 2;
		case FEW:
			return (int64_t) (random() % 10) - 5;
		case EQUAL:
			return -77;
		case SPREAD:
			return random() % 20 == 0 ? extremes[random() % 5] : (int64_t) random.operator()();
		case CROWDED:
			return random() % 2 ? (int64_t) (random() % (n / 4 + 1))
								: (int64_t) (UINT64_C(1) << random() % 64);
		default:
			return (int64_t) ((random() % 7 << 61) | (random() % 9 << 3)) | 5;
	}
}

static KeySide
random_side(Random &random, uint32_t n, const std::vector<Values> &columns, double null_rate)
{
	KeySide side = {n, std::vector<std::vector<int64_t>>(columns.size()), std::vector<uint8_t>(n)};

	for (uint32_t i = 0; i < n; i++)
	{
		for (size_t k = 0; k < columns.size(); k++)
			side.value[k].push_back(random_value(random, columns[k], i, n));
		side.null[i] = (double) (random() % 1000) < null_rate * 1000;
	}
	for (uint32_t i = n; i-- > 1;)
	{
		const uint32_t j = (uint32_t) (random() % (i + 1));

		for (std::vector<int64_t> &v : side.value)
			std::swap(v[i], v[j]);
	}
	return side;
}

static bool
matches(const GjSortedMatch &match, const KeySide &side, uint32_t row, const KeySide &tuples,
		uint32_t tuple)
{
	uint32_t k = 0;

	if (side.null[row] || tuples.null[tuple])
		return false;
	for (; k < match.nkeys; k++)
	{
		if (side.value[k][row] != tuples.value[k][tuple])
			return false;
	}
	if (match.has_low)
	{
		const int64_t low = tuples.value[k++][tuple];
		const int64_t v = side.value[match.nkeys][row];

		if (v < low || (match.low_strict && v == low))
			return false;
	}
	if (match.has_high)
	{
		const int64_t high = tuples.value[k][tuple];
		const int64_t v = side.value[match.nkeys][row];

		if (v > high || (match.high_strict && v == high))
			return false;
	}
	return true;
}

/* Pairs in the order of tuples; those of one tuple in the order of row ids. */
static std::vector<Pair>
expected_pairs(const GjSortedMatch &match, const KeySide &side, const KeySide &tuples,
			   const std::vector<uint32_t> &rowid)
{
	std::vector<std::pair<int64_t, uint32_t>> order; /* of the first column */
	std::vector<Pair> pairs;

	for (uint32_t row = 0; row < side.n; row++)
		order.push_back({side.value[0][row], row});
	std::sort(order.begin(), order.end());
	for (uint32_t t = 0; t < tuples.n; t++)
	{
		const size_t first = pairs.size();
		auto from = order.begin();
		auto to = order.end();

		if (match.nkeys > 0)
		{
			from = std::lower_bound(from, to, std::make_pair(tuples.value[0][t], 0u));
			to = std::upper_bound(
				from, to, std::make_pair(tuples.value[0][t], std::numeric_limits<uint32_t>::max()));
		}
		for (; from != to; ++from)
		{
			const uint32_t row = from->second;

			if (matches(match, side, row, tuples, t))
				pairs.push_back({t, rowid.empty() ? row : rowid[row]});
		}
		std::sort(pairs.begin() + first, pairs.end());
	}
	return pairs;
}

/* The pairs of a probe, whose number is right. */
static std::vector<Pair>
probed_pairs(Queue &q, const GjHashTable &table, const GjKeys &keys, const GjSortedMatch &match,
			 const GjView &view, size_t expected, const std::string &where)
{
	uint64_t *offset = (uint64_t *) q.alloc(((size_t) keys.nrows + 1) * sizeof(uint64_t));
	uint32_t *first = (uint32_t *) q.alloc(((size_t) keys.nrows + 1) * sizeof(uint32_t));
	uint32_t *out[GJ_MAX_SOURCES] = {};
	std::vector<Pair> pairs;
	uint64_t total = 0;

	check(q.ops->tables->sort_probe(q.queue, &table, &keys, &match, offset, first, &total) == GJ_OK,
		  "sort_probe", where);
	if (!check(total == expected, "number of pairs", where))
		return pairs;
	out[0] = (uint32_t *) q.alloc((total + 1) * sizeof(uint32_t));
	out[1] = (uint32_t *) q.alloc((total + 1) * sizeof(uint32_t));
	for (uint64_t cursor = 0; cursor < total; cursor += GJ_MAX_TUPLES)
	{
		const uint32_t n = (uint32_t) std::min<uint64_t>(total - cursor, GJ_MAX_TUPLES);
		uint32_t *some[GJ_MAX_SOURCES] = {out[0] + cursor, out[1] + cursor};

		check(q.ops->tables->hash_expand(q.queue, &table, &view, offset, first, cursor, n, 1,
										 some) == GJ_OK,
			  "hash_expand", where);
	}
	const std::vector<uint32_t> tuple = q.download(out[0], total);
	const std::vector<uint32_t> row = q.download(out[1], total);

	for (size_t i = 0; i < tuple.size(); i++)
		pairs.push_back({tuple[i], row[i]});
	return pairs;
}

static void
test_sorted_pairs(const Device &device, Random &random, const KeySide &side, const KeySide &tuples,
				  const GjSortedMatch &match, bool rowids, const std::string &where)
{
	Program program;
	Queue q(device, program);
	const GjKeys side_keys = upload_keys(q, side);
	const GjKeys keys = upload_keys(q, tuples);
	std::vector<uint32_t> rowid;
	std::vector<Pair> expected;
	std::vector<Pair> pairs;
	GjHashTable table = {};
	GjView view = {};
	uint32_t nrows = 0;

	for (uint32_t i = 0; i < side.n; i++)
	{
		nrows += !side.null[i];
		if (rowids)
			rowid.push_back(side.n * 2 - i);
	}
	view.nrows = tuples.n;
	expected = expected_pairs(match, side, tuples, rowid);
	if (!check(q.ops->tables->sort_build(q.queue, &side_keys, rowids ? q.upload(rowid) : NULL,
										 never, NULL, &table) == GJ_OK,
			   "sort_build", q.ops->queues->queue_error(q.queue)))
		return;
	check(table.nrows == nrows, "rows of the side", where);
	if (nrows > 0)
	{
		pairs = probed_pairs(q, table, keys, match, view, expected.size(), where);
		std::sort(pairs.begin(), pairs.end());
		check(pairs == expected, "pairs", where);
	}
	if (table.max_count == 1 && q.ops->tables->joins_unique && !match.has_low && !match.has_high &&
		tuples.n > 0)
		check(unique_pairs(q, table, keys, &match, view, 1) == expected, "pairs at once", where);
	q.ops->tables->hash_free(q.queue, &table);
	check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", q.ops->queues->queue_error(q.queue));
}

/* All kinds of matches of sides with these columns, the last of which may be a range's. */
static void
test_matches(const Device &device, Random &random, uint32_t n, uint32_t ntuples,
			 const std::vector<Values> &columns, double null_rate, const std::string &where)
{
	const uint32_t ncolumns = (uint32_t) columns.size();
	const KeySide side = random_side(random, n, columns, null_rate);

	test_sorted_pairs(device, random, side, random_side(random, ntuples, columns, null_rate),
					  {ncolumns, 0, 0, 0, 0}, n % 2, where + ", equal");
	/* all pairs are looked at */
	if ((uint64_t) n * ntuples > 1000000)
		return;
	for (uint32_t bounds = 1; bounds < 4; bounds++)
	{
		const GjSortedMatch match = {ncolumns - 1, (uint8_t) (bounds & 1), (uint8_t) (bounds >> 1),
									 (uint8_t) (random() % 2), (uint8_t) (random() % 2)};
		std::vector<Values> values = columns;

		if (bounds == 3)
			values.push_back(columns.back());
		test_sorted_pairs(device, random, side, random_side(random, ntuples, values, null_rate),
						  match, n % 2, where + ", bounds " + std::to_string(bounds));
	}
}

void
test_sorted(const Device &device)
{
	Random random(23);

	for (int v = 0; v < NVALUES; v++)
	{
		const Values values = (Values) v;
		const std::string where = "values " + std::to_string(v);

		for (uint32_t n : {0u, 1u, 2u, 31u, 1000u})
		{
			test_matches(device, random, n, n, {values}, 0, where);
			test_matches(device, random, n, 700, {values}, 0.1, where + ", nulls");
			test_matches(device, random, n, 300, {FEW, values}, 0.05, where + " second");
			test_matches(device, random, n, 300, {values, FEW, DENSE}, 0, where + " first");
		}
		/* neither equal values nor bounds, which all pairs would have */
		if (values == FEW || values == EQUAL)
			continue;
		for (uint32_t n : {70001u, 300000u})
		{
			if (n > sizes.back())
				break;
			test_matches(device, random, n, 50000, {values}, n % 2 * 0.01, where + ", large");
			test_matches(device, random, n, 3 * GJ_MAX_TUPLES / 8 + 1, {DENSE}, 0, "dense, large");
		}
	}
	test_matches(device, random, 100, 100, {DENSE}, 1, "all NULL");
	group(device.ops->name, "sort-merge");
}
