/*
 * order.cu
 *	  Tests of sort_limit, sort_rows, group_sort_keys, group_column, group_bytes and group_keep: one
 *	  and several keys, both ways, few and many ties, bounds, limits from 1 to more than there is;
 *	  keys that are the same in all rows; a sort that is stopped; checks of groups; texts.
 */
#include <algorithm>

#include <string.h>

#include "device/group.h"
#include "device/order.h"
#include "test.cuh"

/* Keys on the host, and the order of rows by them. */
struct Keys
{
	std::vector<std::vector<int64_t>> value;
	uint32_t descending;

	/* < 0 if row i comes before row j, or before `bound`. */
	int
	compare(uint32_t i, uint32_t j, const int64_t *bound = NULL) const
	{
		for (size_t k = 0; k < value.size(); k++)
		{
			const int64_t a = value[k][i];
			const int64_t b = bound ? bound[k] : value[k][j];

			if (a != b)
				return (a < b) != (descending >> k & 1) ? -1 : 1;
		}
		return 0;
	}
};

static std::vector<uint32_t>
reference(const Keys &keys, uint32_t n, const GjSortLimit &wanted)
{
	std::vector<uint32_t> rows;
	uint32_t m;

	for (uint32_t i = 0; i < n; i++)
	{
		const int order = wanted.bounded ? keys.compare(i, i, wanted.bound) : -1;

		if (order < 0 || (order == 0 && wanted.ties))
			rows.push_back(i);
	}
	std::stable_sort(rows.begin(), rows.end(),
					 [&](uint32_t i, uint32_t j) { return keys.compare(i, j) < 0; });
	m = std::min((uint32_t) rows.size(), wanted.limit);
	while (wanted.ties && m > 0 && m < rows.size() && keys.compare(rows[m - 1], rows[m]) == 0)
		m++;
	rows.resize(m);
	return rows;
}

/* Rows of which a GPU makes a sample to find the first ones. */
#define SAMPLE_ROWS 1024

/* apart: values of rows that are in the sample are all less than others. */
static void
test_sort_limit_once(const Device &device, Random &random, uint32_t n, uint32_t nkeys,
					 uint64_t range, bool apart = false)
{
	const Column some = random_column(random, GJ_INT8, 8, 0, 1, 0, 0);
	Program program;
	Keys host = {{}, (uint32_t) random() & ((1u << nkeys) - 1)};
	GjKeys keys = {};

	program.types.push_back(some.type);
	Queue q(device, program);
	uint32_t *positions = (uint32_t *) q.alloc((size_t) n * 4 + 4);

	keys.nkeys = nkeys;
	keys.nrows = n;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		std::vector<int64_t> v(n);

		for (int64_t &x : v)
			x = range == 0 ? (int64_t) random()
						   : (int64_t) (random() % range) - (int64_t) (range / 2);
		for (uint64_t i = 0; apart && i < SAMPLE_ROWS; i++)
			v[i * n / SAMPLE_ROWS] -= (int64_t) range;
		/* the ends of what there is */
		if (n > 2)
		{
			v[random() % n] = INT64_MIN;
			v[random() % n] = INT64_MAX;
		}
		keys.value[k] = q.upload(v);
		host.value.push_back(v);
	}
	for (uint32_t limit : {1u, 10u, 1000u, GJ_MAX_LIMIT})
		for (uint32_t mode = 0; mode < 4; mode++)
		{
			GjSortLimit wanted = {};
			uint32_t found = 0;
			const std::string where = "n = " + std::to_string(n) + ", keys " +
									  std::to_string(nkeys) + ", range " + std::to_string(range) +
									  ", limit " + std::to_string(limit) + ", mode " +
									  std::to_string(mode);

			wanted.limit = limit;
			wanted.descending = host.descending;
			wanted.ties = mode & 1;
			wanted.bounded = mode >> 1 && n > 0;
			if (wanted.bounded)
				for (uint32_t k = 0; k < nkeys; k++)
					wanted.bound[k] = host.value[k][n / 3];
			if (!check(q.ops->order->sort_limit(q.queue, &keys, &wanted, positions, &found) ==
						   GJ_OK,
					   "sort_limit", q.ops->queues->queue_error(q.queue)))
				return;
			check(q.download(positions, found) == reference(host, n, wanted), "sort_limit", where);
		}
}

static bool
stop_at_once(void *arg)
{
	++*(uint32_t *) arg;
	return true;
}

/* All rows in their order; those that are equal keep theirs.  Key `same` has one value only. */
static void
test_sort_rows_once(const Device &device, Random &random, uint32_t n, uint32_t nkeys,
					uint64_t range, uint32_t same)
{
	Program program;
	Keys host = {{}, (uint32_t) random() & ((1u << nkeys) - 1)};
	GjSortLimit all = {};
	GjKeys keys = {};
	uint32_t nasked = 0;
	const std::string where = "n = " + std::to_string(n) + ", keys " + std::to_string(nkeys) +
							  ", range " + std::to_string(range) + ", same " + std::to_string(same);

	program.types.push_back(random_column(random, GJ_INT8, 8, 0, 1, 0, 0).type);
	Queue q(device, program);
	uint32_t *positions = (uint32_t *) q.alloc((size_t) n * 4);

	keys.nkeys = nkeys;
	keys.nrows = n;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		std::vector<int64_t> v(n, INT64_MIN + 5);

		for (int64_t &x : v)
			if (k != same)
				x = range == 0 ? (int64_t) random()
							   : (int64_t) (random() % range) - (int64_t) (range / 2);
		if (k != same)
		{
			v[random() % n] = INT64_MIN;
			v[random() % n] = INT64_MAX;
		}
		keys.value[k] = q.upload(v);
		host.value.push_back(v);
	}
	all.limit = n;
	check(q.ops->order->sort_rows(q.queue, &keys, host.descending, NULL, NULL, positions) == GJ_OK,
		  "sort_rows", q.ops->queues->queue_error(q.queue));
	check(q.download(positions, n) == reference(host, n, all), "sort_rows", where);
	check(q.ops->order->sort_rows(q.queue, &keys, host.descending, stop_at_once, &nasked,
								  positions) == GJ_CANCELLED,
		  "sort_rows that is stopped", where);
	check(nasked > 0, "sort_rows asks whether to stop", where);
}

/*
 * Rows that come later than the last one wanted by no more than `slack` of the last key, also
 * at the ends of what there is.
 */
static void
test_slack(const Device &device, Random &random, uint32_t n, uint32_t range, uint32_t slack,
		   bool descending)
{
	const int64_t starts[] = {INT64_MIN, -50, INT64_MAX - 3 * (int64_t) n};
	Program program;

	program.types.push_back(random_column(random, GJ_INT8, 8, 0, 1, 0, 0).type);
	for (int64_t start : starts)
		for (uint32_t limit : {1u, 7u, n / 2})
		{
			Queue q(device, program);
			Keys host = {{std::vector<int64_t>(n), std::vector<int64_t>(n)}, descending ? 2u : 0u};
			uint32_t *positions = (uint32_t *) q.alloc((size_t) n * 4 + 4);
			GjSortLimit wanted = {};
			GjKeys keys = {};
			uint32_t found = 0;
			std::vector<uint32_t> rows;
			std::vector<uint32_t> expected;
			uint32_t m;

			for (uint32_t i = 0; i < n; i++)
			{
				host.value[0][i] = (int64_t) (random() % 3);
				host.value[1][i] = start + (int64_t) (random() % range);
			}
			keys.nkeys = 2;
			keys.nrows = n;
			for (uint32_t k = 0; k < 2; k++)
				keys.value[k] = q.upload(host.value[k]);
			wanted.limit = std::max(limit, 1u);
			wanted.ties = true;
			wanted.slack = slack;
			wanted.descending = host.descending;
			expected = reference(host, n, wanted);
			m = std::min(n, wanted.limit);
			const uint32_t last = expected[m - 1];

			for (uint32_t i = 0; i < n; i++)
			{
				const uint64_t a = (uint64_t) host.value[1][i];
				const uint64_t b = (uint64_t) host.value[1][last];

				if (host.compare(last, i) < 0 && host.value[0][i] == host.value[0][last] &&
					(descending ? b - a : a - b) <= slack)
					expected.push_back(i);
			}
			/* the first ones in their order, the last one and what comes with it in any */
			while (m > 0 && host.compare(expected[m - 1], last) == 0)
				m--;
			check(q.ops->order->sort_limit(q.queue, &keys, &wanted, positions, &found) == GJ_OK,
				  "sort_limit", q.ops->queues->queue_error(q.queue));
			rows = q.download(positions, found);
			if (rows.size() > m)
				std::sort(rows.begin() + m, rows.end());
			std::sort(expected.begin() + m, expected.end());
			check(rows == expected, "slack",
				  "n = " + std::to_string(n) + ", slack " + std::to_string(slack) + ", limit " +
					  std::to_string(wanted.limit));
		}
}

/* Groups of an integer, a float and a text, as they are when they are finished. */
struct Finished
{
	GjGroups groups = {}; /* device */
	GjGroups host = {};
	std::vector<uint32_t> null;
	std::vector<uint64_t> hash;
	std::vector<int64_t> value[3];
	std::vector<uint64_t> heap_end;
	Bytes heap;
	std::vector<GjAggState> state[4];
	uint64_t heap_used = 0;

	Finished(Random &random, uint32_t n)
	{
		for (uint32_t g = 0; g < n; g++)
		{
			const uint32_t length = 1 + (uint32_t) (random() % 20);
			const bool is_null = random() % 8 == 0;

			null.push_back((uint32_t) (random() % 4) | (is_null ? 4 : 0));
			hash.push_back(random());
			value[0].push_back(null[g] & 1 ? 0 : (int64_t) (random() % 100));
			value[1].push_back(null[g] & 2 ? 0
										   : gj_double_to_bits((double) (random() % 100) - 50.0));
			value[2].push_back(is_null ? 0 : (int64_t) gj_ref_make(heap.size(), length));
			if (!is_null)
			{
				const size_t at = heap.size();

				heap.resize(at + ((length + 7) & ~7u));
				heap[at] = (uint8_t) (length << 1 | 1);
				for (uint32_t i = 1; i < length; i++)
					heap[at + i] = (uint8_t) random();
			}
			heap_end.push_back(heap.size());
			for (uint32_t a = 0; a < 4; a++)
			{
				GjAggState s = {};

				s.count = (int64_t) (random() % 3);
				if (s.count > 0)
				{
					s.lo = a == 0 ? random() : 0;
					s.hi = (int64_t) (random() % 5) - 2;
					s.f = (double) (random() % 1000) / 8 - 60;
				}
				state[a].push_back(s);
			}
		}
		heap_used = heap.size();
	}

	/* Describes the host's arrays, and copies them to the device. */
	void
	upload(Queue &q)
	{
		static const uint8_t how[] = {GJ_GROUP_INTEGER, GJ_GROUP_FLOAT, GJ_GROUP_TEXT};

		host.rows.nkeys = 3;
		host.rows.nrows = (uint32_t) null.size();
		groups = host;
		host.rows.null = null.data();
		host.rows.hash = hash.data();
		host.heap = heap.data();
		host.heap_end = heap_end.data();
		groups.rows.null = q.upload(null);
		groups.rows.hash = q.upload(hash);
		groups.heap = q.upload(heap);
		groups.heap_end = q.upload(heap_end);
		for (uint32_t k = 0; k < 3; k++)
		{
			host.rows.how[k] = groups.rows.how[k] = how[k];
			host.rows.value[k] = value[k].data();
			host.rows.heap[k] = host.heap;
			groups.rows.value[k] = q.upload(value[k]);
			groups.rows.heap[k] = groups.heap;
		}
		for (uint32_t a = 0; a < 4; a++)
		{
			host.state[a] = state[a].data();
			groups.state[a] = q.upload(state[a]);
		}
	}
};

static Program
group_program(const std::vector<GjSortKey> &sort_keys)
{
	Program program;

	program.types.push_back({GJ_INT8, 8, 0, 0});
	program.types.push_back({GJ_FLOAT8, 8, 0, 0});
	program.types.push_back({GJ_REF, 8, 0, 0});
	const int32_t integer = (int32_t) program.expr(GJ_INT8, {load(0, 0)});
	const int32_t real = (int32_t) program.expr(GJ_FLOAT8, {load(0, 1)});

	program.group_keys = {{GJ_GROUP_INTEGER, (uint32_t) integer},
						  {GJ_GROUP_FLOAT, (uint32_t) real},
						  {GJ_GROUP_TEXT, 2}};
	program.aggregates = {
		{GJ_AGG_SUM_I, integer}, {GJ_AGG_SUM_F, real}, {GJ_AGG_MIN_F, real}, {GJ_AGG_MAX_F, real}};
	program.sort_keys = sort_keys;
	program.limit = 1;
	return program;
}

/* Values of groups for every kind of sort key. */
static void
test_group_sort_keys(const Device &device, Random &random, uint32_t n)
{
	const std::vector<GjSortKey> spec = {
		{GJ_SORT_KEY, 0, 0},    {GJ_SORT_KEY_NULL, 0, 1},  {GJ_SORT_KEY, 0, 1},
		{GJ_SORT_COUNT, 0, 1},  {GJ_SORT_AVG, 0, 0},       {GJ_SORT_SUM_LOW, 0, 0},
		{GJ_SORT_FLOAT4, 0, 2}, {GJ_SORT_FLOAT_AVG, 0, 1}, {GJ_SORT_CHECK_AVG, 0, 1}};
	Finished f(random, n);
	Queue q(device, group_program(spec));
	GjKeys keys = {};
	bool same = true;

	f.upload(q);
	keys.nkeys = GJ_MAX_KEYS;
	keys.nrows = n;
	for (uint32_t k = 0; k < keys.nkeys; k++)
		keys.value[k] = (int64_t *) q.alloc((size_t) n * 8);
	check(q.ops->groups->group_sort_keys(q.queue, &f.groups, &keys) == GJ_OK &&
			  q.ops->queues->sync(q.queue) == GJ_OK,
		  "group_sort_keys", q.ops->queues->queue_error(q.queue));
	for (uint32_t k = 0; k < keys.nkeys; k++)
	{
		const std::vector<int64_t> value = q.download(keys.value[k], n);

		for (uint32_t g = 0; g < n; g++)
			same &= value[g] == gj_group_sort_value(&f.host, &spec[k], g);
	}
	check(same, "group_sort_keys", "n = " + std::to_string(n));
}

/* What a column of a stage is to hold for group g: its bits, of the column's width, or nothing. */
static bool
stage_value(const Finished &f, const GjGroupColumn &column, uint32_t g, int64_t *bits)
{
	const GjAggState &state = f.state[column.from][g];
	float narrow;

	*bits = 0;
	switch (column.value)
	{
		case GJ_STAGE_KEY:
			*bits = f.value[column.from][g];
			return !(f.null[g] >> column.from & 1);
		case GJ_STAGE_TRUE:
			*bits = 1;
			return true;
		case GJ_STAGE_COUNT:
			*bits = state.count;
			return true;
		case GJ_STAGE_SUM_OR_ZERO:
		case GJ_STAGE_SUM:
			*bits = (int64_t) state.lo;
			return state.count > 0 || column.value == GJ_STAGE_SUM_OR_ZERO;
		case GJ_STAGE_EXTREME_I:
			*bits = state.hi;
			return state.count > 0;
		default:
			narrow = (float) state.f;
			if (column.type.kind == GJ_FLOAT4)
				memcpy(bits, &narrow, sizeof(narrow));
			else
				memcpy(bits, &state.f, sizeof(state.f));
			return state.count > 0;
	}
}

/* Columns of stages of every kind, and sums that do not fit. */
static void
test_group_column(const Device &device, Random &random, uint32_t n)
{
	static const struct
	{
		GjColumnType type;
		uint32_t value;
		uint32_t from;
	} spec[] = {
		{{GJ_INT8, 8, 1, 0}, GJ_STAGE_KEY, 0},         {{GJ_INT2, 2, 1, 0}, GJ_STAGE_KEY, 0},
		{{GJ_FLOAT8, 8, 1, 0}, GJ_STAGE_KEY, 1},       {{GJ_REF, 8, 1, 0}, GJ_STAGE_KEY, 2},
		{{GJ_INT8, 8, 1, 0}, GJ_STAGE_COUNT, 1},       {{GJ_INT8, 8, 1, 0}, GJ_STAGE_SUM, 0},
		{{GJ_INT8, 8, 1, 0}, GJ_STAGE_SUM_OR_ZERO, 0}, {{GJ_INT4, 4, 1, 0}, GJ_STAGE_EXTREME_I, 1},
		{{GJ_FLOAT4, 4, 1, 0}, GJ_STAGE_EXTREME_F, 2}, {{GJ_FLOAT8, 8, 1, 0}, GJ_STAGE_SUM_F, 3},
		{{GJ_BOOL, 1, 1, 0}, GJ_STAGE_TRUE, 0}};

	for (const auto &kind : spec)
		for (bool fails : {false, true})
		{
			GjGroupColumn column = {};
			const uint32_t width = kind.type.width;

			column.type = kind.type;
			column.value = kind.value;
			column.from = kind.from;
			const bool can_fail = column.value == GJ_STAGE_SUM || column.value == GJ_STAGE_SUM_F;
			Finished f(random, n);
			Queue q(device, group_program({{GJ_SORT_COUNT, 0, 0}}));
			uint32_t nnull = 0;
			bool same = true;
			GjStatus status;

			for (uint32_t g = 0; g < n; g++)
				f.state[0][g].hi = (int64_t) f.state[0][g].lo >> 63;
			if (fails)
			{
				f.state[0][n / 2].hi = 1;
				f.state[3][n / 2].f = -1.0 / 0.0;
			}
			f.upload(q);
			column.data = q.alloc((size_t) n * width);
			column.nulls = (uint8_t *) q.alloc(n);
			column.any_null = q.upload(std::vector<uint32_t>{0});
			status = q.ops->groups->group_column(q.queue, &f.groups, &column);
			if (status == GJ_OK)
				status = q.ops->queues->sync(q.queue);
			check(status == (fails && (can_fail || column.value == GJ_STAGE_SUM_OR_ZERO)
								 ? GJ_OVERFLOW
								 : GJ_OK),
				  "group_column", "value " + std::to_string(column.value));
			if (fails)
				continue;
			const std::vector<uint8_t> data = q.download((uint8_t *) column.data, n * width);
			const std::vector<uint8_t> nulls = q.download(column.nulls, n);

			for (uint32_t g = 0; g < n; g++)
			{
				int64_t bits;
				const bool is_value = stage_value(f, column, g, &bits);

				nnull += !is_value;
				same &= nulls[g] == !is_value;
				same &= !is_value || memcmp(&data[(size_t) g * width], &bits, width) == 0;
			}
			same &= q.download(column.any_null, 1)[0] == (nnull > 0);
			check(same, "group_column", "value " + std::to_string(column.value));
		}
}

/* One bad group among many is an error, and a group without values is none. */
static void
test_group_checks(const Device &device, Random &random, uint32_t n)
{
	for (uint16_t of : {GJ_SORT_CHECK_INT8, GJ_SORT_CHECK_FLOAT8, GJ_SORT_CHECK_FLOAT4,
						GJ_SORT_CHECK_AVG, GJ_SORT_CHECK_SPREAD})
		for (int64_t count = 0; count < 2; count++)
		{
			const uint32_t a = of == GJ_SORT_CHECK_INT8 ? 0 : 1;
			Finished f(random, n);
			Queue q(device, group_program({{GJ_SORT_COUNT, 0, 0}, {of, 0, a}}));
			GjKeys keys = {};
			GjStatus status;

			for (uint32_t g = 0; g < n; g++)
			{
				f.state[0][g].hi = (int64_t) f.state[0][g].lo >> 63;
				f.state[1][g].hi = 0; /* the bits of a sum */
			}
			f.state[a][n / 2].count = count;
			f.state[a][n / 2].hi = 1;
			f.state[a][n / 2].f = of == GJ_SORT_CHECK_FLOAT4 ? 1e39 : 1.0 / 0.0;
			f.upload(q);
			keys.nkeys = 1;
			keys.nrows = n;
			keys.value[0] = (int64_t *) q.alloc((size_t) n * 8);
			status = q.ops->groups->group_sort_keys(q.queue, &f.groups, &keys);
			if (status == GJ_OK)
				status = q.ops->queues->sync(q.queue);
			check(status == (count > 0 ? GJ_OVERFLOW : GJ_OK), "check of groups",
				  std::to_string(of));
		}
}

/* Groups that stay, in the order of positions. */
static void
test_group_keep(const Device &device, Random &random, uint32_t n, uint32_t m)
{
	Finished f(random, n);
	Finished to(random, m);
	Queue q(device, group_program({{GJ_SORT_COUNT, 0, 0}}));
	std::vector<uint32_t> positions(m);
	uint32_t *device_positions;
	uint64_t *heap_at = (uint64_t *) q.alloc(((size_t) m + 1) * 8);
	uint64_t nbytes = 0;
	uint64_t expected = 0;
	bool same = true;

	for (uint32_t &p : positions)
		p = (uint32_t) (random() % n);
	device_positions = q.upload(positions);
	f.upload(q);
	for (uint32_t p : positions)
		expected += gj_group_space(&f.host.rows, p);
	check(q.ops->groups->group_bytes(q.queue, &f.groups, device_positions, m, heap_at, &nbytes) ==
			  GJ_OK,
		  "group_bytes", q.ops->queues->queue_error(q.queue));
	check(nbytes == expected, "group_bytes", "n = " + std::to_string(n));
	to.heap.assign(expected, 0);
	to.upload(q);
	check(q.ops->groups->group_keep(q.queue, &f.groups, device_positions, m, heap_at, &to.groups) ==
			  GJ_OK,
		  "group_keep", q.ops->queues->queue_error(q.queue));
	to.null = q.download(to.groups.rows.null, m);
	to.hash = q.download(to.groups.rows.hash, m);
	to.heap = q.download(to.groups.heap, expected);
	to.heap_end = q.download(to.groups.heap_end, m);
	for (uint32_t k = 0; k < 3; k++)
		to.value[k] = q.download(to.groups.rows.value[k], m);
	for (uint32_t i = 0; i < m; i++)
	{
		const uint32_t g = positions[i];

		same &= to.null[i] == f.null[g] && to.hash[i] == f.hash[g];
		same &= (to.null[i] & 1) || to.value[0][i] == f.value[0][g];
		same &= (to.null[i] & 2) || to.value[1][i] == f.value[1][g];
		same &=
			to.heap_end[i] - (i > 0 ? to.heap_end[i - 1] : 0) == gj_group_space(&f.host.rows, g);
		if (!(to.null[i] & 4))
		{
			const uint64_t a = (uint64_t) to.value[2][i];
			const uint64_t b = (uint64_t) f.value[2][g];

			same &= gj_ref_length(a) == gj_ref_length(b) &&
					memcmp(to.heap.data() + gj_ref_offset(a), f.heap.data() + gj_ref_offset(b),
						   gj_ref_length(a)) == 0;
		}
	}
	for (uint32_t a = 0; a < 4; a++)
	{
		const std::vector<GjAggState> states = q.download(to.groups.state[a], m);

		for (uint32_t i = 0; i < m; i++)
			same &= memcmp(&states[i], &f.state[a][positions[i]], sizeof(GjAggState)) == 0;
	}
	check(same, "group_keep", "n = " + std::to_string(n) + ", kept " + std::to_string(m));
}

void
test_order(const Device &device)
{
	Random random(29);

	for (uint32_t n : sizes)
	{
		for (uint64_t range : {UINT64_C(0), UINT64_C(3), UINT64_C(1000)})
			for (uint32_t nkeys : {1u, 3u})
				if (n <= 100000 || (nkeys == 3 && range == 1000))
					test_sort_limit_once(device, random, n, nkeys, range);
		if (n > SAMPLE_ROWS && n <= 100000)
			test_sort_limit_once(device, random, n, 2, 1000, true);
		if (n == 0)
			continue;
		for (uint64_t range : {UINT64_C(0), UINT64_C(3), UINT64_C(1000)})
			for (uint32_t same : {UINT32_MAX, 0u, 1u})
				test_sort_rows_once(device, random, n, same == UINT32_MAX ? 1 : 4, range, same);
		test_sort_rows_once(device, random, n, GJ_MAX_KEYS, 2, GJ_MAX_KEYS - 1);
		if (n > 300000)
			continue;
		for (uint32_t slack : {0u, 1u, 64u})
			test_slack(device, random, n, 3 * n, slack, slack % 2 == 0 && n % 2 == 0);
		for (uint32_t range : {std::min(n, 1000u), 3 * n})
			test_slack(device, random, n, range, 64, true);
		test_group_sort_keys(device, random, n);
		test_group_column(device, random, n);
		test_group_checks(device, random, n);
		test_group_keep(device, random, n, 1);
		test_group_keep(device, random, n, n / 2 + 1);
	}
	group(device.ops->name, "order");
}
