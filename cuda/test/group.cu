/*
 * group.cu
 *	  Tests of group_keys, group_rehash, group_find, group_add, group_aggregate and
 *	  group_finish: few and many groups, NULLs, skew, several keys, growth, texts; of
 *	  group_hash and group_merge: groups of groups.
 */
#include <algorithm>
#include <map>
#include <set>

#include <math.h>
#include <string.h>

#include "rows/aggregate.h"
#include "device/group.h"
#include "test.cuh"

/* Columns of the tests. */
enum
{
	KEY_INT8,
	KEY_INT4,
	KEY_FLOAT8,
	KEY_BYTES,
	KEY_TEXT,
	VALUE_INT8,
	VALUE_INT4,
	VALUE_FLOAT8,
	NCOLUMNS
};

static std::string
at(uint32_t n, uint32_t range, const char *what)
{
	return std::string(what) + ", n = " + std::to_string(n) + ", range " + std::to_string(range);
}

/* Texts of one of `range` contents, some with a long header, some with blanks at the end. */
static Column
text_column(Random &random, uint32_t n, uint32_t range, double null_rate)
{
	Column c;

	c.type = {GJ_REF, 8, (uint8_t) (null_rate > 0), 0};
	c.data.resize((size_t) n * 8);
	if (null_rate > 0)
		c.nulls.resize(n);
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t which = (uint32_t) (random() % range);
		const bool longer = random() % 2 == 0;
		std::string bytes = std::string(which % 40, 'x') + std::to_string(which);
		uint64_t ref = 0;

		bytes.append(random() % 3, ' ');
		if (null_rate > 0 && random() % 1000 < null_rate * 1000)
			c.nulls[i] = 1;
		else
		{
			const uint32_t length = (uint32_t) bytes.size() + (longer ? 4 : 1);
			const uint32_t header = longer ? length << 2 : length << 1 | 1;
			const size_t offset = c.heap.size();

			ref = gj_ref_make(offset, length);
			c.heap.resize(offset + ((length + 7) & ~7u));
			memcpy(c.heap.data() + offset, &header, longer ? 4 : 1);
			memcpy(c.heap.data() + offset + (longer ? 4 : 1), bytes.data(), bytes.size());
		}
		memcpy(c.data.data() + (size_t) i * 8, &ref, 8);
	}
	return c;
}

struct Key
{
	uint32_t how;
	uint32_t column;
};

/* What equal values of a key have in common. */
static std::string
key_name(uint32_t how, bool null, int64_t value, const uint8_t *heap)
{
	if (null)
		return "N;";
	if (gj_group_by_reference(how))
	{
		const GjPayload payload = gj_group_payload(heap, (uint64_t) value, how);

		return "T" + std::string((const char *) payload.bytes, payload.nbytes) + ";";
	}
	return "V" + std::to_string(gj_key_bits(value, how == GJ_GROUP_FLOAT)) + ";";
}

static int64_t
key_value(const Key &key, const Column &c, uint32_t row)
{
	GjColumn column = {};

	if (key.how <= GJ_GROUP_FLOAT)
		return c.value(row);
	column.data = c.data.data();
	column.width = c.type.width;
	return gj_group_carried(&column, row);
}

struct Aggregate
{
	uint32_t op;
	uint32_t column;
};

static const Aggregate aggregates[] = {{GJ_AGG_COUNT_STAR, 0},
									   {GJ_AGG_COUNT, VALUE_INT8},
									   {GJ_AGG_SUM_I, VALUE_INT8},
									   {GJ_AGG_MIN_I, VALUE_INT8},
									   {GJ_AGG_MAX_I, VALUE_INT8},
									   {GJ_AGG_SUM_I, VALUE_INT8},
									   {GJ_AGG_SUM_I, VALUE_INT4},
									   {GJ_AGG_SUM_SQUARES_I, VALUE_INT4},
									   {GJ_AGG_SUM_F, VALUE_FLOAT8},
									   {GJ_AGG_MIN_F, KEY_FLOAT8},
									   {GJ_AGG_MAX_F, KEY_FLOAT8},
									   {GJ_AGG_COUNT_STAR, 0},
									   {GJ_AGG_SUM_SQUARES_I, VALUE_INT8},
									   {GJ_AGG_SUM_SQUARES_HIGH_I, VALUE_INT8},
									   {GJ_AGG_SPREAD_F, VALUE_FLOAT8},
									   {GJ_AGG_COUNT_DISTINCT, 0},
									   {GJ_AGG_SUM_DISTINCT_I, 0}};
static const uint32_t naggregates = sizeof(aggregates) / sizeof(aggregates[0]);

static bool
states_equal(uint32_t op, const GjAggState &a, const GjAggState &b)
{
	if (a.count != b.count)
		return false;
	if (a.count == 0)
		return true;
	switch (op)
	{
		case GJ_AGG_SUM_I:
		case GJ_AGG_SUM_SQUARES_I:
		case GJ_AGG_SUM_SQUARES_HIGH_I:
		case GJ_AGG_SUM_DISTINCT_I:
			return a.lo == b.lo && a.hi == b.hi;
		case GJ_AGG_SPREAD_F:
			return fabs(gj_bits_to_double(a.hi) - gj_bits_to_double(b.hi)) <=
					   1e-9 * (1 + fabs(gj_bits_to_double(b.hi))) &&
				   fabs(a.f - b.f) <= 1e-9 * (1 + b.f);
		case GJ_AGG_SUM_F:
			return fabs(a.f - b.f) <= 1e-9 * (1 + fabs(b.f));
		case GJ_AGG_MIN_I:
		case GJ_AGG_MAX_I:
			return a.hi == b.hi;
		case GJ_AGG_MIN_F:
		case GJ_AGG_MAX_F:
			return gj_eq_f(a.f, b.f);
		default:
			return true;
	}
}

/* The groups of a test in device memory, with room for all rows. */
struct Groups
{
	Queue &q;
	GjGroups groups = {};
	GjGroupRows tuples = {};
	uint32_t *slot_of;
	uint32_t *positions;
	uint64_t *heap_at;
	uint64_t heap_used = 0;

	Groups(Queue &queue, const std::vector<Key> &keys, uint32_t max, uint64_t heap_size) : q(queue)
	{
		groups.rows.nkeys = tuples.nkeys = (uint32_t) keys.size();
		groups.rows.null = (uint32_t *) q.alloc((size_t) max * 4);
		groups.rows.hash = (uint64_t *) q.alloc((size_t) max * 8);
		tuples.null = (uint32_t *) q.alloc((size_t) max * 4);
		tuples.hash = (uint64_t *) q.alloc((size_t) max * 8);
		groups.heap = (uint8_t *) q.alloc(heap_size + 8);
		for (uint32_t k = 0; k < keys.size(); k++)
		{
			groups.rows.how[k] = tuples.how[k] = (uint8_t) keys[k].how;
			groups.rows.value[k] = (int64_t *) q.alloc((size_t) max * 8);
			groups.rows.heap[k] = groups.heap;
			tuples.value[k] = (int64_t *) q.alloc((size_t) max * 8);
			if (gj_group_by_reference(keys[k].how) && groups.heap_end == NULL)
				groups.heap_end = (uint64_t *) q.alloc((size_t) max * 8);
		}
		for (uint32_t a = 0; a < naggregates; a++)
			groups.state[a] = (GjAggState *) q.alloc((size_t) max * sizeof(GjAggState));
		slot_of = (uint32_t *) q.alloc((size_t) max * 4);
		positions = (uint32_t *) q.alloc((size_t) max * 4);
		heap_at = (uint64_t *) q.alloc(((size_t) max + 1) * 8);
	}

	/* Takes tuples first .. first+n-1 in. */
	GjStatus
	add(const GjView &view, uint32_t first, uint32_t n)
	{
		GjStatus status;

		tuples.nrows = n;
		check(q.ops->groups->group_keys(q.queue, &view, first, &tuples) == GJ_OK, "group_keys", "");
		status = find(tuples);
		if (status != GJ_OK)
			return status;
		return q.ops->groups->group_aggregate(q.queue, &view, first, n, slot_of, &groups);
	}

	/* Takes groups first .. first+n-1 of finer groups in. */
	GjStatus
	merge(const GjGroups &from, uint32_t first, uint32_t n)
	{
		GjGroupRows rows = groups.rows;
		GjStatus status;

		rows.nrows = n;
		rows.null = from.rows.null + first;
		rows.hash = from.rows.hash + first;
		for (uint32_t k = 0; k < rows.nkeys; k++)
		{
			rows.value[k] = from.rows.value[k] + first;
			rows.heap[k] = from.rows.heap[k];
		}
		check(q.ops->groups->group_hash(q.queue, &rows) == GJ_OK, "group_hash", "");
		status = find(rows);
		if (status != GJ_OK)
			return status;
		return q.ops->groups->group_merge(q.queue, &from, first, n, slot_of, &groups);
	}

	/* Looks rows up and makes groups of new ones. */
	GjStatus
	find(const GjGroupRows &rows)
	{
		const uint64_t wanted = ((uint64_t) groups.rows.nrows + rows.nrows) * 2;
		uint32_t added;
		uint64_t nbytes;
		GjStatus status;

		if (groups.nslots < wanted)
		{
			groups.nslots = std::max(wanted, groups.nslots * 2);
			groups.slots = (uint64_t *) q.alloc(groups.nslots * 8);
			check(q.ops->groups->group_rehash(q.queue, &groups) == GJ_OK, "group_rehash", "");
		}
		status = q.ops->groups->group_find(q.queue, &rows, &groups, slot_of, positions, heap_at,
										   &added, &nbytes);
		if (status != GJ_OK)
			return status;
		status = q.ops->groups->group_add(q.queue, &rows, &groups, slot_of, positions, heap_at,
										  added, heap_used);
		groups.rows.nrows += added;
		heap_used += nbytes;
		return status;
	}
};

static Program
program_for(const std::vector<Column> &columns, const std::vector<Key> &keys)
{
	Program program;
	uint32_t load_of[NCOLUMNS];

	for (uint32_t c = 0; c < columns.size(); c++)
	{
		program.types.push_back(columns[c].type);
		if (c != KEY_TEXT && c != KEY_BYTES)
			load_of[c] = program.expr((GjKind) columns[c].type.kind, {load(0, c)});
	}
	for (const Key &key : keys)
		program.group_keys.push_back(
			{key.how, key.how <= GJ_GROUP_FLOAT ? load_of[key.column] : key.column});
	for (const Aggregate &a : aggregates)
		program.aggregates.push_back({a.op, a.op == GJ_AGG_COUNT_STAR || gj_agg_is_distinct(a.op)
												? -1
												: (int32_t) load_of[a.column]});
	return program;
}

/* Compares the groups with a reference that was made row by row. */
static void
compare(Groups &g, const std::vector<Column> &columns, const std::vector<Key> &keys,
		const std::vector<uint32_t> &rows, const std::string &where, const Column *distinct = NULL)
{
	std::set<std::pair<std::string, int64_t>> seen;
	const uint32_t ngroups = g.groups.rows.nrows;
	std::map<std::string, std::vector<GjAggState>> expected;
	std::vector<uint32_t> nulls = g.q.download(g.groups.rows.null, ngroups);
	std::vector<uint8_t> heap = g.q.download(g.groups.heap, g.heap_used);
	std::vector<std::vector<int64_t>> values;
	std::vector<std::vector<GjAggState>> states;
	bool found = true;
	bool equal[naggregates];

	for (uint32_t k = 0; k < keys.size(); k++)
		values.push_back(g.q.download(g.groups.rows.value[k], ngroups));
	for (uint32_t a = 0; a < naggregates; a++)
		states.push_back(g.q.download(g.groups.state[a], ngroups));
	for (uint32_t row : rows)
	{
		std::string name;

		for (const Key &key : keys)
			name +=
				key_name(key.how, columns[key.column].null(row),
						 key_value(key, columns[key.column], row), columns[key.column].heap.data());
		std::vector<GjAggState> &state = expected[name];

		state.resize(naggregates);
		for (uint32_t a = 0; a < naggregates; a++)
		{
			const Column &c = columns[aggregates[a].column];

			if (gj_agg_is_distinct(aggregates[a].op))
			{
				GjAggState one;

				if (distinct == NULL || distinct->null(row) ||
					(a == naggregates - 2 && !seen.insert({name, distinct->value(row)}).second))
				{
					/* the last two go together: the second one follows the first */
					a = naggregates;
					continue;
				}
				gj_agg_distinct(aggregates[a].op, &one, false, distinct->value(row));
				gj_agg_merge(aggregates[a].op, &state[a], &one);
			}
			else if (aggregates[a].op == GJ_AGG_COUNT_STAR)
				state[a].count++;
			else if (!c.null(row))
				gj_agg_step(aggregates[a].op, &state[a], c.value(row));
		}
	}
	check(expected.size() == ngroups, "number of groups", where);
	std::fill(equal, equal + naggregates, true);
	for (uint32_t i = 0; i < ngroups; i++)
	{
		std::string name;

		for (uint32_t k = 0; k < keys.size(); k++)
			name += key_name(keys[k].how, nulls[i] >> k & 1, values[k][i], heap.data());
		auto group = expected.find(name);

		found &= group != expected.end();
		if (group == expected.end())
			continue;
		for (uint32_t a = 0; a < naggregates; a++)
			equal[a] &= states_equal(aggregates[a].op, states[a][i], group->second[a]);
		expected.erase(group);
	}
	check(found, "keys of groups", where);
	for (uint32_t a = 0; a < naggregates; a++)
		check(equal[a], "states of groups", where + ", aggregate " + std::to_string(a));
}

/* The columns that are grouped by, KEY_INT8 with its own range, and those that are aggregated. */
static std::vector<Column>
group_columns(Random &random, uint32_t n, uint32_t int8_range, uint32_t range, double null_rate)
{
	std::vector<Column> columns;

	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, null_rate, int8_range));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, null_rate, range));
	columns.push_back(random_column(random, GJ_FLOAT8, 8, 0, n, null_rate, 0));
	columns.push_back(random_column(random, GJ_BYTES, 1, 0, n, null_rate, 0));
	columns.push_back(text_column(random, n, range, null_rate));
	columns.push_back(random_column(random, GJ_INT8, 8, 0, n, null_rate, 0));
	columns.push_back(random_column(random, GJ_INT4, 4, 0, n, null_rate, 0));
	columns.push_back(random_column(random, GJ_FLOAT8, 8, 0, n, null_rate, 1000));
	return columns;
}

static void
test_groups_once(const Device &device, Random &random, uint32_t n, uint32_t range, double null_rate,
				 const std::vector<Key> &keys, bool rowids)
{
	std::vector<Column> columns = group_columns(random, n, range, range, null_rate);
	std::vector<uint32_t> rowid;
	std::vector<uint32_t> rows;
	const std::string where = at(n, range, "groups");

	/* most rows have one key */
	for (uint32_t i = 0; i < n; i++)
		if (i % 3 != 0)
			memset(columns[KEY_INT8].data.data() + (size_t) i * 8, 0, 8);
	if (rowids)
		rowid = random_rows(random, n, n);
	for (uint32_t i = 0; i < n; i++)
		rows.push_back(rowids ? rowid[i] : i);

	Queue q(device, program_for(columns, keys));
	GjView view = q.view(columns, n, {rowid});
	/* with row ids a text may become a group's only once, but rows repeat */
	Groups groups(q, keys, n + 1, columns[KEY_TEXT].heap.size() * keys.size());

	for (uint32_t k = 0; k < keys.size(); k++)
		groups.tuples.heap[k] = q.heaps[keys[k].column];
	/* in pieces, the first ones small, so that the table grows */
	for (uint32_t first = 0, m = 100; first < n; first += m, m *= 3)
	{
		m = std::min(m, n - first);
		if (!check(groups.add(view, first, m) == GJ_OK, "groups",
				   q.ops->queues->queue_error(q.queue)))
			return;
	}
	check(q.ops->groups->group_finish(q.queue, &groups.groups) == GJ_OK, "group_finish", where);
	compare(groups, columns, keys, rows, where);
}

/* Groups by some keys.  Others are kept: the same once more, and one that they do not determine. */
static void
test_dependent_once(const Device &device, Random &random, uint32_t n, const std::vector<Key> &keys)
{
	std::vector<Column> columns = group_columns(random, n, 1000000, 20, 0.1);
	std::vector<Key> twice = keys;
	std::vector<uint32_t> rows;
	const std::string where = at(n, 20, "dependent keys");

	twice.insert(twice.end(), keys.begin(), keys.end());
	std::vector<Key> all = twice;
	all.push_back({GJ_GROUP_INTEGER, KEY_INT8});
	for (uint32_t i = 0; i < n; i++)
		rows.push_back(i);

	Queue q(device, program_for(columns, all));
	GjView view = q.view(columns, n, {});
	Groups groups(q, all, n + 1, columns[KEY_TEXT].heap.size() * all.size());

	groups.groups.rows.ndependent = groups.tuples.ndependent =
		(uint32_t) (all.size() - keys.size());
	for (uint32_t k = 0; k < all.size(); k++)
		groups.tuples.heap[k] = q.heaps[all[k].column];
	for (uint32_t first = 0, m; first < n; first += m)
	{
		m = std::min(n - first, 3000u);
		if (!check(groups.add(view, first, m) == GJ_OK, "groups",
				   q.ops->queues->queue_error(q.queue)))
			return;
	}
	check(q.ops->groups->group_finish(q.queue, &groups.groups) == GJ_OK, "group_finish", where);
	compare(groups, columns, twice, rows, where);
}

/* Groups by a key and distinct values of another, and then groups of these. */
static void
test_distinct_once(const Device &device, Random &random, uint32_t n, uint32_t range,
				   double null_rate, const Key &key)
{
	const std::vector<Key> keys = {key, {GJ_GROUP_INTEGER, KEY_INT8}};
	const std::vector<Key> probe_keys = {key};
	std::vector<Column> columns = group_columns(random, n, 50, range, null_rate);
	std::vector<uint32_t> rows;
	const std::string where = at(n, range, "groups of groups");

	for (uint32_t i = 0; i < n; i++)
		rows.push_back(i);

	Program program = program_for(columns, keys);

	program.ndistinct_keys = 1;
	Queue q(device, program);
	GjView view = q.view(columns, n, {});
	Groups build_side(q, keys, n + 1, columns[KEY_TEXT].heap.size());
	Groups probe_side(q, probe_keys, n + 1, columns[KEY_TEXT].heap.size());

	build_side.tuples.heap[0] = q.heaps[key.column];
	if (n > 0)
		check(build_side.add(view, 0, n) == GJ_OK, "groups", q.ops->queues->queue_error(q.queue));
	check(q.ops->groups->group_finish(q.queue, &build_side.groups) == GJ_OK, "group_finish", where);
	for (uint32_t first = 0, m; first < build_side.groups.rows.nrows; first += m)
	{
		m = std::min(build_side.groups.rows.nrows - first, 5000u);
		check(probe_side.merge(build_side.groups, first, m) == GJ_OK, "merge",
			  q.ops->queues->queue_error(q.queue));
	}
	check(q.ops->groups->group_finish(q.queue, &probe_side.groups) == GJ_OK, "group_finish", where);
	compare(probe_side, columns, probe_keys, rows, where, &columns[KEY_INT8]);
}

/* A value that is compressed is a row error, and so is an overflow of a key. */
static void
test_group_errors(const Device &device, Random &random)
{
	std::vector<Column> columns;
	uint32_t header = (100u << 2) | 2;

	for (uint32_t c = 0; c < NCOLUMNS; c++)
		columns.push_back(c == KEY_TEXT    ? text_column(random, 1000, 10, 0)
						  : c == KEY_BYTES ? random_column(random, GJ_BYTES, 1, 0, 1000, 0, 0)
						  : c == KEY_FLOAT8 || c == VALUE_FLOAT8
							  ? random_column(random, GJ_FLOAT8, 8, 0, 1000, 0, 0)
						  : c == KEY_INT8 || c == VALUE_INT8
							  ? random_column(random, GJ_INT8, 8, 0, 1000, 0, 0)
							  : random_column(random, GJ_INT4, 4, 0, 1000, 0, 0));
	memcpy(columns[KEY_TEXT].heap.data() + gj_ref_offset(columns[KEY_TEXT].ref(500)), &header, 4);
	{
		const std::vector<Key> keys = {{GJ_GROUP_TEXT, KEY_TEXT}};
		Queue q(device, program_for(columns, keys));
		GjView view = q.view(columns, 1000, {});
		Groups groups(q, keys, 1000, columns[KEY_TEXT].heap.size());

		groups.tuples.heap[0] = q.heaps[KEY_TEXT];
		check(groups.add(view, 0, 1000) == GJ_UNKNOWN_VALUE, "group_find", "compressed");
	}
	{
		const std::vector<Key> keys = {{GJ_GROUP_INTEGER, KEY_INT4}};
		Program program = program_for(columns, keys);

		program.group_keys[0].index =
			program.expr(GJ_INT4, {load(0, KEY_INT4), constant(1, 2000000000),
								   op(GJ_OP_ADD_I, 0, 0, 1, GJ_INT4)});
		Queue q(device, program);
		GjView view = q.view(columns, 1000, {});
		Groups groups(q, keys, 1000, 0);

		check(groups.add(view, 0, 1000) == GJ_OVERFLOW, "group_find", "overflow");
	}
}

void
test_groups(const Device &device)
{
	Random random(7);

	for (uint32_t n : sizes)
	{
		for (uint32_t range : {1u, 30u, 1000u, 100000u, 100000000u})
			test_groups_once(device, random, n, range, n % 2 ? 0.1 : 0.0,
							 {{GJ_GROUP_INTEGER, KEY_INT8}}, false);
		if (n > 200000)
			continue;
		test_groups_once(device, random, n, 50, 0.2, {{GJ_GROUP_FLOAT, KEY_FLOAT8}}, true);
		test_groups_once(device, random, n, 50, 0.2, {{GJ_GROUP_FIXED, KEY_BYTES}}, true);
		test_groups_once(device, random, n, 5000, 0.2, {{GJ_GROUP_TEXT, KEY_TEXT}}, false);
		test_groups_once(device, random, n, 100, 0.1, {{GJ_GROUP_PADDED, KEY_TEXT}}, false);
		test_groups_once(device, random, n, 5, 1.0, {{GJ_GROUP_INTEGER, KEY_INT4}}, false);
		test_distinct_once(device, random, n, 10, 0.2, {GJ_GROUP_INTEGER, KEY_INT4});
		test_distinct_once(device, random, n, 10000, 0.0, {GJ_GROUP_INTEGER, KEY_INT4});
		test_distinct_once(device, random, n, 300, 0.2, {GJ_GROUP_TEXT, KEY_TEXT});
		test_groups_once(device, random, n, 20, 0.1,
						 {{GJ_GROUP_INTEGER, KEY_INT4},
						  {GJ_GROUP_FLOAT, KEY_FLOAT8},
						  {GJ_GROUP_TEXT, KEY_TEXT},
						  {GJ_GROUP_FIXED, KEY_BYTES},
						  {GJ_GROUP_INTEGER, KEY_INT8}},
						 false);
		test_dependent_once(device, random, n, {{GJ_GROUP_INTEGER, KEY_INT4}});
		test_dependent_once(device, random, n,
							{{GJ_GROUP_TEXT, KEY_TEXT}, {GJ_GROUP_FIXED, KEY_BYTES}});
	}
	test_group_errors(device, random);
	group(device.ops->name, "groups");
}
