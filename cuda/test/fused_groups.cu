/*
 * fused_groups.cu
 *	  Tests of the fused operator with groups that are known before: tuples of all others come
 *	  back, in lists of their parts or in one.
 */
#include <algorithm>
#include <map>

#include "device/fused_rows.h"
#include "../internal.cuh"
#include "fused_case.cuh"

/* Groups of these keys, without a tuple as yet: group i has the keys of rows[i]. */
static GjGroups
make_groups(Queue &q, const std::vector<Column> &columns, const std::vector<uint32_t> &rows)
{
	const uint32_t n = (uint32_t) rows.size();
	std::vector<uint32_t> null(n);
	std::vector<int64_t> value[2] = {std::vector<int64_t>(n), std::vector<int64_t>(n)};
	GjGroups groups = {};
	GjGroupRows tuples;
	uint64_t nbytes;

	groups.rows.nkeys = 2;
	groups.rows.how[0] = GJ_GROUP_INTEGER;
	groups.rows.how[1] = GJ_GROUP_FIXED;
	for (uint32_t i = 0; i < n; i++)
	{
		null[i] = columns[GROUP].null(rows[i]);
		value[0][i] = null[i] ? 0 : columns[GROUP].value(rows[i]);
		value[1][i] = columns[BYTE].data[rows[i]];
	}
	tuples = groups.rows;
	tuples.nrows = n;
	tuples.null = q.upload(null);
	tuples.value[0] = q.upload(value[0]);
	tuples.value[1] = q.upload(value[1]);
	check(add_groups(q, tuples, 2 * (uint64_t) n + 64, 8, groups, &nbytes) == GJ_OK &&
			  groups.rows.nrows == n,
		  "groups", q.ops->queues->queue_error(q.queue));
	return groups;
}

static bool
same_missed(Queue &q, const GjFusedMissed &missed, const std::vector<uint32_t> &first,
			MissedRows &expected)
{
	for (uint32_t p = 0; p < expected.size(); p++)
	{
		const uint32_t m = missed.n[p];
		std::vector<std::vector<uint32_t>> found;

		if (missed.first[p] != first[p] || m != expected[p].size())
			return false;
		const std::vector<uint32_t> a = q.download(missed.rowid[0] + missed.first[p], m);
		const std::vector<uint32_t> b = q.download(missed.rowid[2] + missed.first[p], m);

		for (uint32_t i = 0; i < m; i++)
			found.push_back({a[i], b[i]});
		std::sort(found.begin(), found.end());
		std::sort(expected[p].begin(), expected[p].end());
		if (found != expected[p])
			return false;
	}
	return true;
}

/* The length of a text stands for it. */
static std::string
text_value(const Column &c, uint32_t row)
{
	return c.null(row) ? "null" : std::to_string(gj_ref_length(c.ref(row)));
}

/* The same of one list of all parts, whose tuples have the values of their probe rows with them. */
bool
Fused::same_together(Queue &q, const GjFusedMissed &missed, const std::vector<uint32_t> &first,
					 const MissedRows &rows) const
{
	const uint32_t m = missed.n[0];
	const std::vector<uint32_t> build_row = q.download(missed.rowid[2], m);
	std::vector<std::string> expected, found(m);
	auto value = [](const uint8_t *data, const uint8_t *nulls, uint32_t width, uint32_t row)
	{
		const bool null = nulls != NULL && nulls[row];

		return null ? std::string("null") : std::string((const char *) data + row * width, width);
	};

	for (uint32_t p = 0; p < rows.size(); p++)
		for (const std::vector<uint32_t> &tuple : rows[p])
		{
			expected.push_back(std::to_string(tuple[1]));
			for (uint32_t c = 0; c < NOUTER; c++)
			{
				const uint8_t *nulls = columns[c].nulls.empty() ? NULL : columns[c].nulls.data();

				if (missed.data[c] != NULL && c == TEXT)
					expected.back() += text_value(columns[c], first[p] + tuple[0]);
				else if (missed.data[c] != NULL)
					expected.back() += value(columns[c].data.data(), nulls, columns[c].type.width,
											 first[p] + tuple[0]);
			}
		}
	if (m != expected.size())
		return false;
	for (uint32_t i = 0; i < m; i++)
		found[i] = std::to_string(build_row[i]);
	for (uint32_t c = 0; c < NOUTER; c++)
	{
		const uint32_t width = columns[c].type.width;

		if (missed.data[c] == NULL)
			continue;
		const std::vector<uint8_t> data = q.download(missed.data[c], (size_t) m * width);
		const std::vector<uint8_t> nulls = q.download(missed.nulls[c], m);

		const Column read = {columns[c].type, data, nulls, {}};

		for (uint32_t i = 0; i < m; i++)
			found[i] +=
				c == TEXT ? text_value(read, i) : value(data.data(), nulls.data(), width, i);
	}
	std::sort(found.begin(), found.end());
	std::sort(expected.begin(), expected.end());
	return found == expected;
}

/* Most groups are known: tuples of the others come back. */
void
Fused::run_groups(Queue &q, const std::vector<GjFusedPart> &part,
				  const std::vector<uint32_t> &first)
{
	typedef std::pair<int64_t, uint8_t> Key; /* NULL is INT64_MIN */
	std::map<Key, uint32_t> number;
	std::vector<uint32_t> known;
	std::vector<std::vector<GjAggState>> expected;
	MissedRows expected_missed(part.size());
	std::vector<GjAggState> states;
	std::vector<uint64_t> counts(3);
	Bytes marks(columns[INNER].data.size() / columns[INNER].type.width);
	GjFusedMissed missed = {};
	GjGroups groups;
	bool same = true;

	for (uint32_t row = 0; row < n; row++)
	{
		const Key key = {columns[GROUP].null(row) ? INT64_MIN : columns[GROUP].value(row),
						 columns[BYTE].data[row]};

		if (number.count(key))
			continue;
		number[key] = random() % 8 == 0 ? UINT32_MAX : (uint32_t) known.size();
		if (number[key] != UINT32_MAX)
			known.push_back(row);
	}
	expected.resize(known.size(), std::vector<GjAggState>(8));
	for (uint32_t p = 0; p < part.size(); p++)
		for (uint32_t row = first[p]; row < first[p + 1]; row++)
		{
			const Key key = {columns[GROUP].null(row) ? INT64_MIN : columns[GROUP].value(row),
							 columns[BYTE].data[row]};
			uint32_t rows[3];

			if (!take(row, rows, &counts, &marks))
				continue;
			if (number[key] != UINT32_MAX)
				aggregate(rows, &expected[number[key]]);
			else
				/* of the probe side: rows of the part; of the first step's, not wanted */
				expected_missed[p].push_back({row - first[p], rows[2]});
		}
	groups = make_groups(q, columns, known);
	missed.rowid[0] = (uint32_t *) q.alloc((size_t) n * 4 + 4);
	missed.rowid[2] = (uint32_t *) q.alloc((size_t) n * 4 + 4);
	missed.together = random() % 2;
	for (uint32_t c = 0; c < NOUTER; c++)
	{
		if (random() % 4 == 0)
			continue;
		missed.data[c] = (uint8_t *) q.alloc((size_t) n * columns[c].type.width + 8);
		missed.nulls[c] = (uint8_t *) q.alloc((size_t) n + 1);
		/* nobody reads at the heap itself */
		missed.heap[c] = device[c].heap == NULL ? NULL : device[c].heap - random() % 100 * 8;
	}
	if (!check(q.ops->pass->fused(q.queue, &plan, device.data(), part.data(),
								  (uint32_t) part.size(), UINT64_MAX, &groups, &missed) == GJ_OK &&
				   q.ops->groups->group_finish(q.queue, &groups) == GJ_OK,
			   "fused, groups", q.ops->queues->queue_error(q.queue)))
		return;
	same = missed.together ? same_together(q, missed, first, expected_missed)
						   : same_missed(q, missed, first, expected_missed);
	check(same, "tuples without a group", where);
	for (uint32_t a = 0; a < 8; a++)
	{
		const std::vector<GjAggState> some = q.download(groups.state[a], known.size());

		states.insert(states.end(), some.begin(), some.end());
	}
	same = true;
	for (uint32_t g = 0; g < known.size(); g++)
		same &= same_states(&states[g], (uint32_t) known.size(), expected[g], plan.naggregates);
	check(same, "states of groups", where + ", groups " + std::to_string(known.size()));
}

/*
 * Hardly any of many tuples has a group that is known.  A GPU stops looking then: each tuple must
 * be added to its group or come back, and not both.
 */
void
test_few_found(const Device &device, Random &random, uint32_t nknown)
{
	const uint32_t n = 3000000;
	std::vector<Column> columns(BYTE + 1);
	std::vector<uint32_t> known;
	std::vector<uint32_t> left(nknown * 100); /* tuples of each key that are not accounted for */
	Program program;
	GjFusedPlan plan = {};
	GjFusedMissed missed = {};
	GjGroups groups;
	uint32_t came_back = 0;

	columns[GROUP] = random_column(random, GJ_INT4, 4, 0, n, 0.0, 1);
	columns[BYTE] = random_column(random, GJ_BYTES, 1, 0, n, 0.0, 1);
	for (uint32_t row = 0; row < n; row++)
	{
		const uint32_t key = (uint32_t) (random() % left.size());

		((int32_t *) columns[GROUP].data.data())[row] = (int32_t) key;
		columns[BYTE].data[row] = 7;
		if (left[key]++ == 0 && key < nknown)
			known.push_back(row);
	}
	program.types = {columns[GROUP].type, columns[BYTE].type};
	program.aggregates = {{GJ_AGG_COUNT_STAR, -1}};
	plan.ncolumns = plan.nprobe_columns = 2;
	plan.naggregates = 1;
	plan.aggregate_op[0] = GJ_AGG_COUNT_STAR;
	plan.ngroup_keys = 2;
	plan.group_how[0] = GJ_GROUP_INTEGER;
	plan.group_how[1] = GJ_GROUP_FIXED;
	plan.nexprs = 3;
	for (uint32_t k = 0; k < 2; k++)
	{
		plan.group_expr[k] = (uint8_t) (1 + k);
		plan.exprs[1 + k].form = GJ_FUSED_SIMPLE;
		plan.exprs[1 + k].op = GJ_OP_LOAD;
		plan.exprs[1 + k].a = (int16_t) k;
		plan.exprs[1 + k].b = -1;
	}

	Queue q(device, program);
	const std::vector<GjColumn> probe_side = q.upload_columns({columns[GROUP], columns[BYTE]});
	const GjFusedPart part = {probe_side.data(), n};

	groups = make_groups(q, columns, known);
	missed.rowid[0] = (uint32_t *) q.alloc((size_t) n * 4);
	if (!check(q.ops->pass->fused(q.queue, &plan, probe_side.data(), &part, 1, UINT64_MAX, &groups,
								  &missed) == GJ_OK &&
				   q.ops->groups->group_finish(q.queue, &groups) == GJ_OK,
			   "fused, few found", q.ops->queues->queue_error(q.queue)))
		return;
	for (uint32_t row : q.download(missed.rowid[0], missed.n[0]))
	{
		const uint32_t key = (uint32_t) columns[GROUP].value(row);

		came_back += key < nknown;
		left[key]--;
	}
	const std::vector<GjAggState> states = q.download(groups.state[0], known.size());

	for (uint32_t g = 0; g < known.size(); g++)
		left[columns[GROUP].value(known[g])] -= (uint32_t) states[g].count;
	check(std::count(left.begin(), left.end(), 0u) == (ptrdiff_t) left.size(), "few found",
		  std::to_string(known.size()) + " groups");
	check((came_back > 0) == (device.ops->kind == GJ_DEVICE_CUDA), "stops looking",
		  std::to_string(came_back) + " came back");
}
