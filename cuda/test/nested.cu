/*
 * nested.cu
 *	  Tests of nested_loop where the condition is terms: all comparisons, of values that fit 32
 *	  bits and of any, the least and greatest ones too, with tiles of both shapes.
 */
#include <algorithm>
#include <limits>

#include "test.cuh"

typedef std::pair<uint32_t, uint32_t> Pair; /* tuple, row id */

/* Terms and both sides' values, on the host. */
struct NestedLoop
{
	uint32_t ntuples;
	uint32_t nrows;
	std::vector<GjTerm> terms;                    /* without addresses */
	std::vector<std::vector<int64_t>> probe_side; /* of each term */
	std::vector<std::vector<int64_t>> build_side;
	std::vector<uint8_t> probe_null;
	std::vector<uint8_t> build_null;
	std::vector<uint32_t> rowid; /* empty: the row itself */
	std::string where;
};

static bool
holds(uint32_t op, int64_t a, int64_t b)
{
	const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};

	return results[op];
}

static std::vector<Pair>
expected_pairs(const NestedLoop &loop)
{
	std::vector<Pair> pairs;

	for (uint32_t i = 0; i < loop.ntuples; i++)
		for (uint32_t r = 0; r < loop.nrows; r++)
		{
			bool all = loop.terms.empty() || (!loop.probe_null[i] && !loop.build_null[r]);

			for (size_t t = 0; all && t < loop.terms.size(); t++)
				all = holds(loop.terms[t].op, loop.probe_side[t][i], loop.build_side[t][r]);
			if (all)
				pairs.push_back({i, loop.rowid.empty() ? r : loop.rowid[r]});
		}
	std::sort(pairs.begin(), pairs.end());
	return pairs;
}

/* A value: often an extreme one, else one of few. */
static int64_t
random_value(Random &random, bool narrow)
{
	const int64_t least =
		narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
	const int64_t most =
		narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();

	switch (random() % 12)
	{
		case 0:
			return least + (int64_t) (random() % 2);
		case 1:
			return most - (int64_t) (random() % 2);
		default:
			/* with a part that only 64 bits hold */
			return (int64_t) (random() % 40) - 20 + (narrow ? 0 : (int64_t) (random() % 2) << 40);
	}
}

static NestedLoop
random_loop(Random &random, uint32_t ntuples, uint32_t nrows, uint32_t nterms, bool narrow)
{
	NestedLoop loop = {ntuples, nrows, {}, {}, {}, {}, {}, {}, ""};

	loop.where = std::to_string(ntuples) + " x " + std::to_string(nrows) +
				 (narrow ? ", narrow" : ", wide") + ", operators";
	for (uint32_t t = 0; t < nterms; t++)
	{
		GjTerm term = {};
		std::vector<int64_t> values[2];

		/* all six at first, then mostly what is one comparison */
		term.op = (uint32_t) (random() % (nterms > 2 && random() % 4 ? 4 : 6));
		if (nterms > 2 && term.op < 2)
			term.op += 2;
		term.narrow = narrow;
		for (uint32_t i = 0; i < ntuples; i++)
			values[0].push_back(random_value(random, narrow));
		for (uint32_t r = 0; r < nrows; r++)
			values[1].push_back(random_value(random, narrow));
		loop.terms.push_back(term);
		loop.probe_side.push_back(values[0]);
		loop.build_side.push_back(values[1]);
		loop.where += " " + std::to_string(term.op);
	}
	for (uint32_t i = 0; i < ntuples; i++)
		loop.probe_null.push_back(random() % 20 == 0);
	for (uint32_t r = 0; r < nrows; r++)
		loop.build_null.push_back(random() % 20 == 0);
	if (random() % 2)
		for (uint32_t r = 0; r < nrows; r++)
			loop.rowid.push_back(2 * (nrows - r));
	return loop;
}

enum Mode
{
	WRITE, /* pairs are written */
	NOTE,  /* they are counted, and it is noted what has a match */
	FIRST  /* only the first match of a tuple is of interest, and all of some tiles have one */
};

/* Runs the loop over the device's tiles. */
static void
run_loop(Queue &q, const NestedLoop &loop, const std::vector<Pair> &expected, Mode mode)
{
	const bool write = mode == WRITE;
	const uint32_t capacity = 2 * GJ_NESTED_TILE;
	const GjTiling tiling = gj_nested_tiling(loop.ntuples, loop.nrows);
	const uint64_t ntiles = tiling.ntiles;
	std::vector<uint8_t> tuple_matched(loop.ntuples + 1);
	std::vector<uint8_t> row_matched(2 * loop.nrows + 1);
	std::vector<Pair> pairs;
	GjNested nested = {};
	GjView view = {};
	uint64_t total = 0;
	uint64_t most = expected.size();
	uint32_t ndone;

	view.nrows = loop.ntuples;
	nested.view = &view;
	nested.rows = loop.rowid.empty() ? NULL : q.upload(loop.rowid);
	nested.nrows = loop.nrows;
	nested.build_source = 1;
	nested.condition = -1;
	nested.nterms = (uint32_t) loop.terms.size();
	for (size_t t = 0; t < loop.terms.size(); t++)
		nested.terms[t] = {loop.terms[t].op, loop.terms[t].narrow, q.upload(loop.probe_side[t]),
						   q.upload(loop.build_side[t])};
	nested.probe_null = q.upload(loop.probe_null);
	nested.build_null = q.upload(loop.build_null);
	nested.write = write;
	if (write)
	{
		nested.capacity = capacity;
		nested.tuple = (uint32_t *) q.alloc(capacity * sizeof(uint32_t));
		nested.out[1] = (uint32_t *) q.alloc(capacity * sizeof(uint32_t));
	}
	else
	{
		for (uint32_t i = 0; mode == FIRST && i < loop.ntuples; i++)
			tuple_matched[i] = i / tiling.tuples % 2;
		nested.tuple_matched = q.upload(tuple_matched);
		if (mode == FIRST)
			nested.tuple_done = nested.tuple_matched;
		else
			nested.row_matched = q.upload(row_matched);
	}
	for (uint64_t tile = 0; tile < ntiles; tile += ndone)
	{
		uint64_t n = 0;

		ndone = 0;
		if (!check(q.ops->tables->nested_loop(q.queue, &nested, tile,
											  (uint32_t) std::min<uint64_t>(ntiles - tile, 1000),
											  &ndone, &n) == GJ_OK &&
					   ndone > 0 && (!write || n <= capacity),
				   "nested_loop", loop.where + ": " + q.ops->queues->queue_error(q.queue)))
			return;
		total += n;
		if (write)
		{
			const std::vector<uint32_t> tuple = q.download(nested.tuple, n);
			const std::vector<uint32_t> row = q.download(nested.out[1], n);

			for (uint64_t i = 0; i < n; i++)
				pairs.push_back({tuple[i], row[i]});
		}
	}
	if (mode == FIRST)
		most -= std::count_if(expected.begin(), expected.end(),
							  [&](const Pair &pair) { return tuple_matched[pair.first] != 0; });
	check(mode == FIRST ? total <= most : total == most, "number of pairs",
		  loop.where + ": " + std::to_string(total) + ", not " + std::to_string(expected.size()));
	if (write)
	{
		std::sort(pairs.begin(), pairs.end());
		check(pairs == expected, "pairs", loop.where);
		return;
	}
	for (const Pair &pair : expected)
		tuple_matched[pair.first] = row_matched[pair.second] = 1;
	check(q.download(nested.tuple_matched, tuple_matched.size()) == tuple_matched, "tuple_matched",
		  loop.where);
	check(mode == FIRST || q.download(nested.row_matched, row_matched.size()) == row_matched,
		  "row_matched", loop.where);
}

void
test_nested(const Device &device)
{
	static const uint32_t tuples[] = {1, 100, 128, 129, 512, 513, 1500, 3000};
	static const uint32_t rows[] = {1, 15, 16, 17, 255, 257, 700};
	const int rounds = quick ? 1 : 6;
	Random random(21);
	Program program;

	for (uint32_t ntuples : tuples)
		for (uint32_t nrows : rows)
			for (int i = 0; i < rounds; i++)
				for (uint32_t nterms = 0; nterms <= 5; nterms++)
				{
					/* all pairs of nothing: where there are few of them */
					if (nterms == 0 && (uint64_t) ntuples * nrows > 100000)
						continue;

					const NestedLoop loop =
						random_loop(random, ntuples, nrows, nterms, (i + nterms) % 2 == 0);
					const std::vector<Pair> expected = expected_pairs(loop);
					Queue q(device, program);

					run_loop(q, loop, expected, WRITE);
					run_loop(q, loop, expected, NOTE);
					run_loop(q, loop, expected, FIRST);
				}
	group(device.ops->name, "nested_loop");
}
