/*
 * join.cu
 *	  Tests of hash_build, hash_probe, hash_expand and join_unique.
 */
#include <algorithm>
#include <set>
#include <unordered_map>

#include "../internal.cuh"
#include "test.cuh"

/* How the keys of a side are distributed. */
enum Distribution
{
	UNIQUE,
	FEW,    /* about eight rows a key */
	SKEWED, /* half of the rows have one key */
	EQUAL,
	NDISTRIBUTIONS
};

/* One number a row, of `nvalues` different ones, spread over all 64 bits. */
static int64_t
spread(uint64_t v, uint32_t k)
{
	return (int64_t) ((v + k) * (k % 2 ? UINT64_C(0x9E3779B97F4A7C15) : 1));
}

static KeySide
random_side(Random &random, uint32_t n, uint32_t nkeys, Distribution distribution, double null_rate)
{
	KeySide side = {n, std::vector<std::vector<int64_t>>(nkeys, std::vector<int64_t>(n)), Bytes(n)};

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t v = distribution == UNIQUE   ? i
					 : distribution == FEW    ? random() % (n / 8 + 1)
					 : distribution == SKEWED ? (random() % 2 ? 3 : random() % n)
											  : 3;

		for (uint32_t k = 0; k < nkeys; k++)
			side.value[k][i] = spread(k == 0 ? v : v / (k + 1), k);
		side.null[i] = (double) (random() % 1000) < null_rate * 1000;
	}
	/* in random order */
	for (uint32_t i = n; i-- > 1 && distribution == UNIQUE;)
	{
		uint32_t j = (uint32_t) (random() % (i + 1));

		for (std::vector<int64_t> &v : side.value)
			std::swap(v[i], v[j]);
	}
	return side;
}

GjKeys
upload_keys(Queue &q, const KeySide &side)
{
	GjKeys keys = {};

	keys.nkeys = (uint32_t) side.value.size();
	keys.nrows = side.n;
	keys.null = q.upload(side.null);
	for (uint32_t k = 0; k < keys.nkeys; k++)
		keys.value[k] = q.upload(side.value[k]);
	return keys;
}

struct KeyHash
{
	size_t
	operator()(const std::vector<int64_t> &key) const
	{
		uint64_t h = 0;

		for (int64_t v : key)
			h = (h ^ (uint64_t) v) * UINT64_C(0x100000001B3) + (h >> 29);
		return h;
	}
};

typedef std::unordered_map<std::vector<int64_t>, std::vector<uint32_t>, KeyHash> Index;

static Index
index_of(const KeySide &build_side)
{
	Index index;

	for (uint32_t i = 0; i < build_side.n; i++)
	{
		if (!build_side.null[i])
			index[build_side.key(i)].push_back(i);
	}
	return index;
}

typedef std::pair<uint32_t, uint32_t> Pair;

/* What a probe gave, and what it should have. */
struct Probe
{
	Queue &q;
	GjHashTable table;
	GjView view;
	uint64_t *offset;
	uint32_t *first;
	uint64_t total;
	std::vector<uint32_t> rowid;      /* of the build rows */
	std::vector<uint32_t> probe_side; /* row of each tuple */
	std::string where;

	/* Pairs cursor .. cursor+n-1 as row ids of the probe and the build side. */
	std::vector<Pair>
	expand(uint64_t cursor, uint32_t n)
	{
		uint32_t *out[GJ_MAX_SOURCES] = {};
		std::vector<uint32_t> a;
		std::vector<uint32_t> b;
		std::vector<Pair> pairs;

		out[0] = (uint32_t *) q.alloc((size_t) n * 4);
		out[2] = (uint32_t *) q.alloc((size_t) n * 4);
		check(q.ops->tables->hash_expand(q.queue, &table, &view, offset, first, cursor, n, 2,
										 out) == GJ_OK,
			  "hash_expand", where);
		a = q.download(out[0], n);
		b = q.download(out[2], n);
		for (uint32_t i = 0; i < n; i++)
			pairs.push_back({a[i], b[i]});
		q.ops->memory->free(q.queue, out[0], (size_t) n * 4);
		q.ops->memory->free(q.queue, out[2], (size_t) n * 4);
		return pairs;
	}
};

std::vector<Pair>
unique_pairs(Queue &q, const GjHashTable &table, const GjKeys &keys, const GjSortedMatch *match,
			 const GjView &view, uint32_t build_source)
{
	uint32_t *out[GJ_MAX_SOURCES] = {};
	std::vector<Pair> pairs;
	uint32_t n = 0;

	for (uint32_t s : {0u, build_source})
		out[s] = (uint32_t *) q.alloc((size_t) view.nrows * sizeof(uint32_t));
	check(q.ops->tables->join_unique(q.queue, &table, &keys, match, &view, build_source, out, &n) ==
			  GJ_OK,
		  "join_unique", q.ops->queues->queue_error(q.queue));
	if (!check(n <= view.nrows, "pairs", "join_unique"))
		return pairs;

	const std::vector<uint32_t> tuple = q.download(out[0], n);
	const std::vector<uint32_t> row = q.download(out[build_source], n);

	for (uint32_t i = 0; i < n; i++)
		pairs.push_back({tuple[i], row[i]});
	return pairs;
}

/* All pairs, in pieces, against the reference; *ordered: those in the order of tuples. */
static void
check_all_pairs(Probe &probe, const KeySide &probe_side, const Index &index, uint32_t piece,
				std::vector<Pair> *ordered)
{
	std::vector<Pair> pairs;
	std::vector<Pair> expected;

	for (uint64_t cursor = 0; cursor < probe.total; cursor += piece)
	{
		std::vector<Pair> some =
			probe.expand(cursor, (uint32_t) std::min<uint64_t>(piece, probe.total - cursor));

		pairs.insert(pairs.end(), some.begin(), some.end());
	}
	for (uint32_t i = 0; i < probe_side.n; i++)
	{
		Index::const_iterator rows =
			probe_side.null[i] ? index.end() : index.find(probe_side.key(i));

		if (rows == index.end())
			continue;
		for (uint32_t row : rows->second)
			expected.push_back({probe.probe_side[i], probe.rowid.empty() ? row : probe.rowid[row]});
	}
	*ordered = expected;
	std::sort(pairs.begin(), pairs.end());
	std::sort(expected.begin(), expected.end());
	check(pairs == expected, "pairs", probe.where);
}

/* Some windows of very many pairs: right, and none twice. */
static void
check_windows(Random &random, Probe &probe, const KeySide &build_side, const KeySide &probe_side,
			  const std::vector<uint64_t> &offset)
{
	std::vector<uint32_t> build_of(build_side.n);

	for (uint32_t i = 0; i < build_side.n; i++)
		build_of[probe.rowid.empty() ? i : probe.rowid[i]] = i;
	for (int round = 0; round < 4; round++)
	{
		const uint32_t n = 5000;
		const uint64_t cursor = round == 0   ? 0
								: round == 1 ? probe.total - n
											 : random() % (probe.total - n);
		std::vector<Pair> pairs = probe.expand(cursor, n);
		bool ok = true;

		for (uint32_t j = 0; j < n; j++)
		{
			const uint32_t i =
				(uint32_t) (std::upper_bound(offset.begin(), offset.end(), cursor + j) -
							offset.begin() - 1);
			const uint32_t row = build_of[pairs[j].second % build_side.n];

			ok &= pairs[j].first == probe.probe_side[i] && pairs[j].second < build_side.n &&
				  !build_side.null[row] && build_side.key(row) == probe_side.key(i);
		}
		check(ok, "window of pairs", probe.where);
		std::sort(pairs.begin(), pairs.end());
		check(std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end(), "no pair twice",
			  probe.where);
	}
}

/* Unique row ids, so that a pair names its rows. */
static std::vector<uint32_t>
permutation(Random &random, uint32_t n)
{
	std::vector<uint32_t> rows(n);

	for (uint32_t i = 0; i < n; i++)
		rows[i] = i;
	std::shuffle(rows.begin(), rows.end(), random);
	return rows;
}

/* Would a place for each key between the least and the greatest take at most so many bytes? */
static bool
is_dense(const KeySide &side, uint64_t nbytes)
{
	int64_t low = INT64_MAX;
	int64_t high = INT64_MIN;

	for (uint32_t i = 0; i < side.n; i++)
	{
		if (side.null[i])
			continue;
		low = std::min(low, side.value[0][i]);
		high = std::max(high, side.value[0][i]);
	}
	return side.value.size() == 1 && (uint64_t) high - (uint64_t) low < nbytes / 4;
}

/* Columns of all widths in the order of a table's keys, each of which has a row. */
static void
check_order(Queue &q, const GjHashTable &table, Random &random)
{
	const uint32_t n = (uint32_t) table.nslots;
	const std::vector<uint32_t> place = q.download(table.place, n);
	const uint32_t nrows = *std::max_element(place.begin(), place.end()) + 1;

	for (uint32_t width = 1; width <= 16; width *= 2)
	{
		Bytes from((size_t) nrows * width);
		Bytes expected;
		uint8_t *to = (uint8_t *) q.alloc((size_t) n * width);

		for (uint8_t &byte : from)
			byte = (uint8_t) random();
		for (uint32_t row : place)
			expected.insert(expected.end(), from.begin() + (size_t) row * width,
							from.begin() + (size_t) (row + 1) * width);
		check(q.ops->tables->order_by_place(q.queue, &table, to, q.upload(from), width) == GJ_OK &&
				  q.download(to, expected.size()) == expected,
			  "columns in the order of keys", std::to_string(width));
	}
}

/* Slots of a table, the first key in those of a wide one. */
static std::vector<GjHashSlot>
slots_of(Queue &q, const GjHashTable &table)
{
	std::vector<GjHashSlot> slots;

	if (table.kind != GJ_TABLE_WIDE)
		return q.download(table.slots, table.nslots);
	for (const GjWideSlot &slot : q.download(table.wide, table.nslots))
		slots.push_back({slot.key[0], slot.start, slot.count});
	return slots;
}

/* What a table has for each of its places: a row's number, or GJ_NO_ROW. */
static std::vector<uint32_t>
rows_of_places(Queue &q, const GjHashTable &table)
{
	if (table.kind == GJ_TABLE_DIRECT)
		return q.download(table.place, table.nslots);

	const std::vector<GjHashSlot> slots = slots_of(q, table);
	const std::vector<uint32_t> rows = q.download(table.rows, table.nrows);
	std::vector<uint32_t> row;

	for (const GjHashSlot &slot : slots)
		row.push_back(slot.count == 0 ? GJ_NO_ROW : rows[slot.start]);
	return row;
}

/*
 * Gives a table payloads, values of int8 or int4 of the side's rows, now and then one that does not
 * fit.  Probes find what they do without.
 */
static void
check_payload(Queue &q, GjHashTable *table, uint32_t nrows, Random &random,
			  const std::string &where)
{
	const bool wide = random() % 2;
	const int64_t ends[] = {INT32_MIN + 1, INT32_MAX - 1, 0, -1};
	const int64_t unfit[] = {INT32_MIN, INT32_MAX, (int64_t) INT32_MAX + 1, INT64_MIN};
	const std::vector<uint32_t> row = rows_of_places(q, *table);
	std::vector<GjHashSlot> slots;
	std::vector<int64_t> value(nrows);
	std::vector<uint32_t> payloads;
	GjColumn column = {};
	bool fits = true;
	bool done;
	bool right = true;

	for (int64_t &v : value)
		v = random() % 8 ? (int32_t) (random() % 1000000) - 500000 : ends[random() % 4];
	if (nrows > 0 && random() % 4 == 0)
		value[random() % nrows] = unfit[random() % (wide ? 4 : 2)];
	for (int64_t v : value)
		fits &= v > INT32_MIN && v < INT32_MAX;
	column.kind = wide ? GJ_INT8 : GJ_INT4;
	column.width = wide ? 8 : 4;
	column.data = wide ? (const void *) q.upload(value)
					   : q.upload(std::vector<int32_t>(value.begin(), value.end()));
	if (table->kind != GJ_TABLE_DIRECT)
		slots = slots_of(q, *table);
	if (!check(q.ops->tables->hash_payload(q.queue, table, &column, nrows, &done) == GJ_OK,
			   "hash_payload", q.ops->queues->queue_error(q.queue)) ||
		!check(done == fits, "values that fit", where))
		return;
	check((table->payloads != NULL) == (done && table->kind == GJ_TABLE_DIRECT),
		  "array of payloads", where);
	if (table->payloads)
		payloads = q.download(table->payloads, table->nslots);
	else if (table->kind != GJ_TABLE_DIRECT)
	{
		const std::vector<GjHashSlot> after = slots_of(q, *table);

		for (uint64_t s = 0; s < table->nslots; s++)
		{
			right &= after[s].key == slots[s].key && after[s].start == slots[s].start;
			right &= done || after[s].count == slots[s].count;
			payloads.push_back(after[s].count);
		}
	}
	for (uint64_t s = 0; s < table->nslots && done; s++)
		right &= row[s] == GJ_NO_ROW
					 ? payloads[s] == (table->kind == GJ_TABLE_DIRECT ? GJ_NO_ROW : 0)
					 : gj_payload_value(payloads[s]) == value[row[s]] && payloads[s] != 0 &&
						   payloads[s] != GJ_NO_ROW;
	check(right, "payloads", where);
}

/* Gives a table a filter, which lets all of its keys pass, and few others; of places none. */
static void
check_filter(Queue &q, GjHashTable *table, Random &random, const std::string &where)
{
	std::vector<uint32_t> filter;
	uint64_t passed = 0;
	uint64_t others = 0;
	bool right = true;

	if (!check(q.ops->tables->hash_filter(q.queue, table) == GJ_OK, "hash_filter",
			   q.ops->queues->queue_error(q.queue)) ||
		!check(table->nkey_filter == gj_filter_words(table), "words of a filter", where))
		return;
	filter = q.download(table->key_filter, table->nkey_filter);
	if (table->kind == GJ_TABLE_DIRECT)
	{
		const std::vector<uint32_t> place = q.download(table->place, table->nslots);

		for (uint64_t s = 0; s < table->nslots; s++)
			right &= (filter[s / 32] >> s % 32 & 1) == (place[s] != GJ_NO_ROW);
		check(right, "bits of places", where);
		return;
	}

	const auto passes = [&](uint64_t key)
	{
		const uint64_t hash = gj_hash_mix(key);
		const uint32_t bits = gj_filter_bits(hash);

		return (filter[gj_filter_word(hash, table->nkey_filter)] & bits) == bits;
	};
	std::set<uint64_t> keys;

	for (const GjHashSlot &slot : q.download(table->slots, table->nslots))
		if (slot.count != 0)
			keys.insert(slot.key);
	for (uint64_t key : keys)
		right &= passes(key);
	check(right, "keys pass their filter", where);
	for (uint32_t i = 0; i < 2000; i++)
	{
		const uint64_t key = (uint64_t) random() << 32 | random();

		others += !keys.count(key);
		passed += !keys.count(key) && passes(key);
	}
	check(passed <= others / 8, "few others pass a filter", where);
}

/* What a wide table says of its second keys. */
static void
check_least(const KeySide &side, const GjHashTable &table, const std::string &where)
{
	bool positive = true;

	for (uint32_t i = 0; i < side.n; i++)
		positive &= side.null[i] || side.value[1][i] >= 0;
	check(table.positive == positive, "second keys", where);
}

/* Builds a table of one side, and probes it with the other. */
static void
test_table(const Device &device, Random &random, const KeySide &build_side,
		   const KeySide &probe_side, bool rowids, uint64_t most_bytes, const std::string &where)
{
	const uint32_t ninner = build_side.n;
	const uint32_t nouter = probe_side.n;
	Index index = index_of(build_side);
	Program program;
	Queue q(device, program);
	GjKeys build_keys = upload_keys(q, build_side);
	GjKeys probe_keys = upload_keys(q, probe_side);
	Probe probe = {q, {}, {}, NULL, NULL, 0, {}, {}, ""};
	std::vector<uint64_t> expected(nouter + 1);
	uint32_t max_count = 0;
	uint32_t nrows = 0;

	probe.where = where;
	if (rowids)
		probe.rowid = permutation(random, ninner);
	probe.probe_side = permutation(random, nouter);
	if (!check(q.ops->tables->hash_build(q.queue, &build_keys,
										 rowids ? q.upload(probe.rowid) : NULL, most_bytes, never,
										 NULL, &probe.table) == GJ_OK,
			   "hash_build", q.ops->queues->queue_error(q.queue)))
		return;
	for (const auto &entry : index)
	{
		max_count = std::max(max_count, (uint32_t) entry.second.size());
		nrows += (uint32_t) entry.second.size();
	}
	check(probe.table.max_count == max_count, "max_count", probe.where);
	check(probe.table.nrows == nrows, "rows of the table", probe.where);
	if (most_bytes > 0 && device.ops->kind == GJ_DEVICE_CUDA && nrows > 0 &&
		build_side.value.size() == 1)
		check(gj_table_is_direct(&probe.table) ==
				  (max_count == 1 && is_dense(build_side, most_bytes)),
			  "direct", probe.where);

	if (device.ops->kind == GJ_DEVICE_CUDA && nrows > 0 && build_side.value.size() == 2)
		check((probe.table.kind == GJ_TABLE_WIDE) ==
				  (probe.table.nslots * sizeof(GjWideSlot) <= most_bytes),
			  "wide", probe.where);
	if (probe.table.kind == GJ_TABLE_WIDE)
		check_least(build_side, probe.table, probe.where);

	if (probe.table.kind == GJ_TABLE_DIRECT && probe.table.nslots == nrows)
		check_order(q, probe.table, random);
	if (q.ops->tables->reads_payloads && gj_table_has_places(&probe.table) && max_count == 1 &&
		(build_side.value.size() == 1 || probe.table.kind == GJ_TABLE_WIDE) && random() % 2)
		check_payload(q, &probe.table, ninner, random, where);
	if (q.ops->tables->asks_filters && gj_table_has_places(&probe.table) &&
		build_side.value.size() == 1 && random() % 2)
		check_filter(q, &probe.table, random, where);
	probe.offset = (uint64_t *) q.alloc((nouter + 1) * 8);
	probe.first = (uint32_t *) q.alloc((size_t) nouter * 4);
	probe.view.nrows = nouter;
	probe.view.rowid[0] = q.upload(probe.probe_side);
	if (!check(q.ops->tables->hash_probe(q.queue, &probe.table, &probe_keys, probe.offset,
										 probe.first, &probe.total) == GJ_OK,
			   "hash_probe", q.ops->queues->queue_error(q.queue)))
		return;
	for (uint32_t i = 0; i < nouter; i++)
	{
		Index::const_iterator rows =
			probe_side.null[i] ? index.end() : index.find(probe_side.key(i));

		expected[i + 1] = expected[i] + (rows == index.end() ? 0 : rows->second.size());
	}
	check(probe.total == expected[nouter], "total", probe.where);
	if (!check(q.download(probe.offset, nouter + 1) == expected, "offsets", probe.where))
		return;
	if (probe.total <= 2000000)
	{
		std::vector<Pair> ordered;

		check_all_pairs(probe, probe_side, index, probe.total < 5000 ? 97 : GJ_MAX_TUPLES,
						&ordered);
		if (max_count == 1 && nouter > 0 && q.ops->tables->joins_unique)
			check(unique_pairs(q, probe.table, probe_keys, NULL, probe.view, 2) == ordered,
				  "pairs at once", probe.where);
	}
	else
		check_windows(random, probe, build_side, probe_side, expected);
	q.ops->tables->hash_free(q.queue, &probe.table);
	check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", q.ops->queues->queue_error(q.queue));
}

/* The same with a hash table, and with a direct or wide one where it can be. */
static void
test_sides(const Device &device, Random &random, const KeySide &build_side,
		   const KeySide &probe_side, bool rowids, const std::string &where)
{
	test_table(device, random, build_side, probe_side, rowids, 0, where);
	if (build_side.value.size() == 1)
		test_table(device, random, build_side, probe_side, rowids,
				   4096 + (uint64_t) build_side.n * 24, where + ", direct");
	if (build_side.value.size() == 2)
		test_table(device, random, build_side, probe_side, rowids,
				   4096 + (uint64_t) build_side.n * 128, where + ", wide");
}

/* Direct tables at the ends of what 64 bits hold, and of what they may take. */
static void
test_direct(const Device &device, Random &random)
{
	const uint32_t n = 1000;
	const uint64_t bytes = 4 * (2 * n - 1);
	KeySide probe_side = {n, {std::vector<int64_t>(n)}, Bytes(n)};

	for (int64_t low : {INT64_MIN, INT64_C(-1000), INT64_MAX - 2 * (int64_t) (n - 1)})
	{
		KeySide build_side = {n, {std::vector<int64_t>(n)}, Bytes(n)};

		for (uint32_t i = 0; i < n; i++)
		{
			const int64_t any[] = {INT64_MIN, INT64_MAX, 0, low, low + 1};

			build_side.value[0][i] = (int64_t) ((uint64_t) low + 2 * i);
			probe_side.value[0][i] =
				i < 5 ? any[i] : (int64_t) ((uint64_t) low + random() % (3 * n) - n / 2);
		}
		std::shuffle(build_side.value[0].begin(), build_side.value[0].end(), random);
		for (uint64_t most : {bytes - 4, bytes})
			test_table(device, random, build_side, probe_side, random() % 2, most,
					   "direct from " + std::to_string(low));
		/* one row that has no place, and one whose key is NULL */
		build_side.value[0][7] = (int64_t) ((uint64_t) low + 4 * n);
		test_table(device, random, build_side, probe_side, true, bytes, "not direct");
		build_side.null[7] = 1;
		test_table(device, random, build_side, probe_side, true, bytes, "direct but for a NULL");
	}
	/* the whole range of 64 bits */
	KeySide build_side = {2, {{INT64_MIN, INT64_MAX}}, Bytes(2)};

	test_table(device, random, build_side, probe_side, false, UINT64_C(1) << 32, "both ends");
}

static void
test_join(const Device &device, Random &random, uint32_t ninner, uint32_t nouter, uint32_t nkeys,
		  Distribution distribution, double null_rate, bool rowids)
{
	test_sides(device, random, random_side(random, ninner, nkeys, distribution, null_rate),
			   random_side(random, nouter, nkeys, distribution == EQUAL ? EQUAL : FEW, null_rate),
			   rowids,
			   "inner " + std::to_string(ninner) + ", outer " + std::to_string(nouter) + ", keys " +
				   std::to_string(nkeys) + ", distribution " + std::to_string(distribution) +
				   ", nulls " + std::to_string(null_rate));
}

/* Offsets of a probe that no table could give: one tuple with 2^40 pairs. */
static void
test_huge_offsets(const Device &device)
{
	const uint64_t many = UINT64_C(1) << 40;
	const uint32_t n = 3000;
	std::vector<uint64_t> offset = {0, 5, 5, 5 + many, 5 + many, 7 + many};
	std::vector<uint32_t> first = {0, 0, 0, 0, 1};
	std::vector<uint32_t> rows(n * 2);
	Program program;
	Queue q(device, program);
	GjHashTable table = {};
	GjView view = {};
	uint32_t *out[GJ_MAX_SOURCES] = {};
	std::vector<uint32_t> tuples;

	view.nrows = 5;
	table.rows = q.upload(rows);
	out[0] = (uint32_t *) q.alloc(n * 4);
	check(q.ops->tables->hash_expand(q.queue, &table, &view, q.upload(offset), q.upload(first),
									 many - 100, 107, 2, out) == GJ_OK,
		  "hash_expand", "2^40 pairs");
	tuples = q.download(out[0], 107);
	check(std::count(tuples.begin(), tuples.end(), 2) == 105 && tuples[105] == 4 &&
			  tuples[106] == 4,
		  "tuples", "2^40 pairs");
}

static bool
at_once(void *)
{
	return true;
}

/* A build that is stopped leaves its keys with the caller. */
static void
test_stop(const Device &device, Random &random)
{
	Program program;
	Queue q(device, program);
	KeySide side = random_side(random, 10000000, 1, FEW, 0.0);
	GjKeys keys = upload_keys(q, side);
	GjHashTable table;
	GjStatus status = q.ops->tables->hash_build(q.queue, &keys, NULL, 0, at_once, NULL, &table);

	if (!check(status == GJ_CANCELLED, "hash_build", "stopped"))
		return;
	check(q.download(keys.value[0], side.n) == side.value[0], "keys", "stopped");
	status = q.ops->tables->hash_build(q.queue, &keys, NULL, 0, never, NULL, &table);
	check(status == GJ_OK && table.nrows == side.n, "hash_build", "after it was stopped");
}

/*
 * Regions of a table that hash_build makes by partitions (join_radix.cu), at their edges: as
 * many rows of one key as a block takes and one more, others beside them, and keys whose
 * search leaves their region.
 */
static void
test_regions(const Device &device, Random &random)
{
	for (uint32_t nhot : {4094u, 4095u, 4096u, 9000u})
	{
		for (uint32_t nkeys = 1; nkeys <= 2; nkeys++)
		{
			KeySide build_side = random_side(random, 20000, nkeys, UNIQUE, 0.01);
			KeySide probe_side = random_side(random, 300, nkeys, UNIQUE, 0.01);

			for (uint32_t i = 0; i < nhot; i++)
			{
				for (uint32_t k = 0; k < nkeys; k++)
					build_side.value[k][i * 2] = build_side.value[k][0];
			}
			for (uint32_t k = 0; k < nkeys; k++)
				probe_side.value[k][7] = build_side.value[k][0];
			test_sides(device, random, build_side, probe_side, true, "hot " + std::to_string(nhot));
		}
	}
}

/*
 * Direct tables of keys that are far from their neighbours', which are filled by partitions: also
 * at the ends of what 64 bits hold, with NULLs, and where one key is there twice.
 */
static void
test_scattered(const Device &device, Random &random)
{
	const uint32_t n = 150000;

	for (int64_t low : {INT64_MIN, INT64_C(-1000), INT64_MAX - 3 * (int64_t) (n - 1)})
	{
		const std::string where = "scattered from " + std::to_string(low);
		KeySide build_side = random_side(random, n, 1, UNIQUE, 0.1);
		KeySide probe_side = random_side(random, 20000, 1, UNIQUE, 0.1);

		for (int64_t &v : build_side.value[0])
			v = (int64_t) ((uint64_t) low + 3 * (uint64_t) v);
		for (int64_t &v : probe_side.value[0])
			v = (int64_t) ((uint64_t) low + random() % (4 * n) - n / 2);
		for (bool rowids : {false, true})
			test_sides(device, random, build_side, probe_side, rowids, where);
		build_side.value[0][5] = build_side.value[0][n - 5];
		build_side.null[5] = build_side.null[n - 5] = 0;
		test_sides(device, random, build_side, probe_side, true, where + ", a key twice");
	}
}

/* Hash joins as the other tests try them, with tables of any size made by partitions. */
void
test_radix(const Device &device)
{
	GjDevice *gpu = device.device;
	const uint64_t bytes = gpu->radix_bytes;
	const uint32_t fanout = gpu->radix_fanout;
	const bool was_quick = quick;
	std::vector<uint32_t> few = {0, 1, 33, 1025, 30000};
	Random random(16);

	if (!quick)
		few.push_back(1000003);
	std::swap(few, sizes);
	quick = true;
	gpu->radix_bytes = 0;
	/* one pass, and two as soon as there are five partitions */
	for (uint32_t n : {fanout, 4u})
	{
		gpu->radix_fanout = n;
		test_regions(device, random);
		test_scattered(device, random);
		test_hash(device);
		test_steps(device);
	}
	gpu->radix_fanout = fanout;
	if (!was_quick)
		test_stop(device, random);
	gpu->radix_bytes = bytes;
	quick = was_quick;
	std::swap(few, sizes);
}

void
test_hash(const Device &device)
{
	Random random(6);

	test_direct(device, random);
	for (uint32_t n : sizes)
	{
		for (int d = 0; d < NDISTRIBUTIONS; d++)
		{
			const Distribution distribution = (Distribution) d;

			test_join(device, random, n, n, 1, distribution, 0.0, false);
			if (n > 100000)
				continue;
			test_join(device, random, n, n, 1, distribution, 0.1, true);
			test_join(device, random, n, n / 2 + 3, 3, distribution, d % 2 * 0.2, true);
			test_join(device, random, n / 3, n, 2, distribution, 0.0, d % 2);
		}
		test_join(device, random, n, 100, 1, UNIQUE, 1.0, false);
		test_join(device, random, 100, n, 1, UNIQUE, 0.0, false);
	}
	test_huge_offsets(device);
	if (!quick)
		test_stop(device, random);
	group(device.ops->name, "hash build, probe, expand");
}
