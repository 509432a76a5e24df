/*
 * steps.cu
 *	  Tests of whole runs: join types, algorithms, residual conditions and filters.
 *
 * Random programs go through the executor (gj_run_*), as a session feeds it, and what comes
 * out is compared with nested loops over the host's columns.  Every source has a column of
 * row numbers; a result row is told apart by those of the sources that can be read at the end.
 */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>

#include "steps_case.cuh"

extern "C"
{
#include "daemon/sets/sets.h"
#include "daemon/sink/sink.h"
#include "daemon/source/source.h"
#include "daemon/program/program.h"
}

/* ---- runs */

/* What a run asks for, and what it sent. */
struct Host
{
	const Case *c;
	const GjProgram *program;
	uint8_t *slot;
	std::vector<GjColumnType> types;
	std::vector<GjColumnPlace> places;
	GjLayout layout;
	Tuples rows;
	std::vector<GjAggState> states;
	std::map<std::vector<int64_t>, std::vector<GjAggState>> groups; /* NULL is INT64_MIN + 1 */
	bool slot_was_freed;
	bool bad_batch;
};

static bool
host_stop(void *)
{
	return false;
}

static GjStatus
host_output_slot(void *arg, uint8_t **memory)
{
	*memory = ((Host *) arg)->slot;
	return GJ_OK;
}

static GjStatus
host_slot_free(void *arg, uint32_t)
{
	((Host *) arg)->slot_was_freed = true;
	return GJ_OK;
}

/* Takes groups out of a batch; two of the same keys make it a bad one. */
static void
take_groups(Host *h, uint32_t nrows)
{
	const uint8_t *has_nulls = gj_slot_has_nulls(h->slot);
	const uint32_t nkeys = gj_group_nkeys(h->program);

	for (uint32_t i = 0; i < nrows; i++)
	{
		std::vector<int64_t> key(nkeys);
		std::vector<GjAggState> states(h->program->naggregates);

		for (uint32_t k = 0; k < nkeys; k++)
		{
			memcpy(&key[k], h->slot + h->places[k].data + (size_t) i * 8, 8);
			if (has_nulls[k] && h->slot[h->places[k].nulls + i])
				key[k] = INT64_MIN + 1;
		}
		for (uint32_t a = 0; a < states.size(); a++)
			memcpy(&states[a], h->slot + h->places[nkeys + a].data + i * sizeof(GjAggState),
				   sizeof(GjAggState));
		if (!h->groups.emplace(key, states).second)
			h->bad_batch = true;
	}
}

/* Takes row ids out of a batch, and looks whether its texts are those of the rows. */
static bool
host_output_ready(void *)
{
	return true;
}

static GjStatus
host_send_batch(void *arg, uint32_t nrows)
{
	Host *h = (Host *) arg;
	const uint8_t *has_nulls = gj_slot_has_nulls(h->slot);

	if (h->program->output == GJ_OUTPUT_GROUPS)
	{
		take_groups(h, nrows);
		return GJ_OK;
	}
	if (h->program->output != GJ_OUTPUT_ROWS)
	{
		h->states.resize(h->program->naggregates);
		memcpy(h->states.data(), h->slot, h->states.size() * sizeof(GjAggState));
		return GJ_OK;
	}
	for (uint32_t i = 0; i < nrows; i++)
	{
		Tuple t;

		for (size_t o = 0; o < h->places.size(); o += 2)
		{
			const uint32_t source = h->types[o].source;
			const GjColumnPlace &id = h->places[o];
			const GjColumnPlace &text = h->places[o + 1];
			const Column &column = h->c->columns[column_of(source, C_TEXT)];
			const bool null = has_nulls[o] && h->slot[id.nulls + i];
			const bool text_null = has_nulls[o + 1] && h->slot[text.nulls + i];
			int32_t row;
			uint64_t ref;

			memcpy(&row, h->slot + id.data + (size_t) i * 4, 4);
			memcpy(&ref, h->slot + text.data + (size_t) i * 8, 8);
			t.push_back(null ? NO_ROW : row);
			if (!null && (row < 0 || (uint32_t) row >= h->c->nrows[source]))
				h->bad_batch = true;
			else if (text_null != (null || column.null((uint32_t) row)) ||
					 (!text_null && ref != column.ref((uint32_t) row)))
				h->bad_batch = true;
		}
		h->rows.push_back(t);
	}
	return GJ_OK;
}

/* Fills a chunk with rows first .. first+n-1 of source s and hands it to the run. */
static GjStatus
feed_chunk(const Case &c, GjRun *run, uint32_t s, uint32_t first, uint32_t n, uint8_t *slot)
{
	GjLayout layout;
	GjColumnPlace places[NCOLUMNS];
	const GjSlotHeader header = {n, 0};
	const Column *columns = &c.columns[column_of(s, 0)];

	gj_layout(&c.program.types[column_of(s, 0)], NCOLUMNS, c.program.capacity, GJ_LOAD_SLOT_SIZE,
			  &layout, places);
	memcpy(slot, &header, sizeof(header));
	for (uint32_t i = 0; i < NCOLUMNS; i++)
	{
		const uint32_t width = columns[i].type.width;
		bool any = false;

		memcpy(slot + places[i].data, columns[i].data.data() + (size_t) first * width,
			   (size_t) n * width);
		for (uint32_t row = 0; row < n; row++)
		{
			slot[places[i].nulls + row] = columns[i].null(first + row);
			any |= columns[i].null(first + row);
		}
		gj_slot_has_nulls(slot)[i] = any;
	}
	return gj_run_chunk(run, s, n, slot, 0);
}

/* Has the run work on what it got before, or on all, until the slot is free. */
static GjStatus
free_slot(GjRun *run, const Host *host)
{
	GjStatus status = host->slot_was_freed ? GJ_OK : gj_run_work(run);

	if (status == GJ_OK && !host->slot_was_freed)
		status = gj_run_flush(run);
	check(status != GJ_OK || host->slot_was_freed, "slot_free", host->c->name);
	return status;
}

/* Feeds all sources, build sides first, in chunks of at most `chunk` rows. */
static GjStatus
feed(const Case &c, GjRun *run, uint32_t chunk, uint8_t *slot, Host *host)
{
	const uint32_t nsources = (uint32_t) c.nrows.size();

	for (uint32_t k = 1; k <= nsources; k++)
	{
		const uint32_t s = k % nsources;

		for (uint32_t first = 0, n; first < c.nrows[s]; first += n)
		{
			GjStatus status;

			n = std::min(chunk, c.nrows[s] - first);
			if (gj_run_complete(run))
				return GJ_OK;
			host->slot_was_freed = false;
			status = feed_chunk(c, run, s, first, n, slot);
			if (status == GJ_OK)
				status = free_slot(run, host);
			if (status != GJ_OK)
				return status;
		}
		if (gj_run_complete(run))
			return GJ_OK;
		GjStatus status = gj_run_source_end(run, s);

		if (status != GJ_OK)
			return status;
	}
	return GJ_OK;
}

/* Runs a case within `memory` bytes of device memory; false if it failed. */
static bool
run_case(const Device &device, const Case &c, uint32_t chunk, uint64_t memory, Slot &in, Slot &out,
		 Host *host, GjRunStats *stats)
{
	const std::vector<uint64_t> flat = c.program.flat();
	const GjProgram *program = (const GjProgram *) flat.data();
	GjErrorText why = {};
	GjDeviceEntry entry = {};
	GjLease lease = {};
	GjStatus status = gj_program_check(program, program->nbytes, &why);

	if (!check(status == GJ_OK, "program_check", c.name + ": " + why.text))
		return false;
	host->c = &c;
	host->program = program;
	host->slot = out.memory;
	if (program->output == GJ_OUTPUT_ROWS || program->output == GJ_OUTPUT_GROUPS)
	{
		host->types.resize(gj_program_noutputs(program));
		host->places.resize(gj_program_noutputs(program));
		gj_program_layout_output(program, host->types.data(), &host->layout, host->places.data());
	}
	entry.ops = device.ops;
	entry.device = device.device;
	gj_memory_init(&entry.memory, memory);
	const GjMemoryLimits unlimited = {};
	gj_lease_start(&lease, &entry.memory, 0, &unlimited, NULL, NULL);

	const GjRunHost run_host = {host, host_stop, host_slot_free};
	const GjFinalOps final_ops = {host_output_slot, host_output_ready, host_send_batch, false,
								  NULL};
	GjRunSetup setup = {};
	setup.host = &run_host;
	setup.intake = &gj_intake;
	setup.sink = gj_sink_choose(program);
	setup.join = gj_join_choose;
	setup.target.form = GJ_FORM_FINAL;
	setup.target.arg = host;
	setup.target.final = &final_ops;
	setup.tiles = gj_all_tiles;
	GjRun *run = gj_run_open(&entry, program, &lease, &setup, &status, &why);

	if (run)
	{
		std::string text;

		status = feed(c, run, chunk, in.memory, host);
		if (status == GJ_OK)
			status = gj_run_finish(run, stats);
		text = std::string(gj_reason_text(status)) + ", " + gj_run_error(run);
		check(gj_run_close(run, &why) == GJ_OK, "gj_run_close", c.name);
		check(status == GJ_OK, "run", c.name + ": " + text);
	}
	check(lease.used == 0, "all memory was given back", c.name);
	gj_lease_end(&lease);
	return status == GJ_OK;
}

/* Row ids of the sources that can be read. */
static Tuples
visible(const Case &c, const Tuples &tuples)
{
	Tuples out;

	for (const Tuple &t : tuples)
	{
		Tuple v;

		for (uint32_t s : c.alive)
			v.push_back(t[s]);
		out.push_back(v);
	}
	std::sort(out.begin(), out.end());
	return out;
}

static void
check_statistics(const Case &c, const GjRunStats &stats, const std::vector<uint64_t> &counts)
{
	/* a run without a result may have ended before */
	if (counts.back() == 0)
		return;
	for (uint32_t i = 0; i < c.steps.size(); i++)
		check(stats.step[i].rows_in == counts[i] && stats.step[i].rows_out == counts[i + 1],
			  "statistics", c.name);
}

#define GROUP_MEMORY (UINT64_C(8) << 20) /* of 13 000 groups, while they are moved */

/* The aggregates that the case has, count(*) and the sum of `last`.v, by one or two keys. */
static void
check_groups(const Device &device, Case &c, uint32_t chunk, uint64_t memory, Slot &in, Slot &out,
			 const Tuples &expected, const std::vector<uint64_t> &counts)
{
	std::map<std::vector<int64_t>, std::vector<GjAggState>> groups;
	const uint32_t last = c.alive.back();
	const uint32_t first = c.alive.front();
	Host host = {};
	GjRunStats stats = {};
	bool same;

	/* few groups; and, by the first source's row, so many that most are always new */
	c.program.group_keys.push_back(
		{GJ_GROUP_INTEGER,
		 c.program.expr(GJ_INT8, {load(0, column_of(last, C_V)), constant(1, (int64_t) 7),
								  op(GJ_OP_MOD_I, 0, 0, 1, GJ_INT8)})});
	if (c.program.steps.size() % 2 == 0)
		c.program.group_keys.push_back(
			{GJ_GROUP_INTEGER, c.program.expr(GJ_INT4, {load(0, column_of(first, C_ID))})});
	for (const Tuple &t : expected)
	{
		const Value v = c.value(t, last, C_V);
		std::vector<int64_t> key = {v.null ? INT64_MIN + 1 : v.v % 7};

		if (c.program.group_keys.size() > 1)
		{
			const Value id = c.value(t, first, C_ID);

			key.push_back(id.null ? INT64_MIN + 1 : id.v);
		}
		std::vector<GjAggState> &states = groups[key];

		states.resize(2);
		states[0].count++;
		states[1].count += !v.null;
		states[1].lo += (uint64_t) v.v;
	}
	/* a run whose host takes no groups over has to have room for all of them (sink/group.c) */
	if (!run_case(device, c, chunk, memory + GROUP_MEMORY, in, out, &host, &stats))
		return;
	same = groups.size() == host.groups.size();
	for (const auto &g : groups)
	{
		const auto found = host.groups.find(g.first);

		same = same && found != host.groups.end() && found->second[0].count == g.second[0].count &&
			   found->second[1].count == g.second[1].count && found->second[1].lo == g.second[1].lo;
	}
	check(same && !host.bad_batch, "groups", c.name);
	check_statistics(c, stats, counts);
}

/* The same joins with rows, with aggregates, with count(*) alone, and with groups. */
static void
check_case(const Device &device, Case &c, uint32_t chunk, uint64_t memory, Slot &in, Slot &out)
{
	Tuples expected;
	std::vector<uint64_t> counts;
	int64_t sum = 0;
	int64_t values = 0;
	Host rows = {};
	Host sums = {};
	Host count = {};
	GjRunStats stats = {};
	const uint32_t last = c.alive.back();

	for (uint32_t row : rows_of(c, 0))
	{
		Tuple t(c.nrows.size(), NO_ROW);

		t[0] = row;
		expected.push_back(t);
	}
	counts.push_back(expected.size());
	for (uint32_t i = 0; i < c.steps.size(); i++)
	{
		expected = reference_step(c, i, expected);
		counts.push_back(expected.size());
	}
	for (const Tuple &t : expected)
	{
		const Value v = c.value(t, last, C_V);

		sum += v.v;
		values += !v.null;
	}
	for (uint32_t s : c.alive)
	{
		c.program.outputs.push_back(column_of(s, C_ID));
		c.program.outputs.push_back(column_of(s, C_TEXT));
	}
	if (!run_case(device, c, chunk, memory, in, out, &rows, &stats))
		return;
	std::sort(rows.rows.begin(), rows.rows.end());
	check(!rows.bad_batch, "columns of the batches", c.name);
	check(rows.rows == visible(c, expected), "rows", c.name);
	check_statistics(c, stats, counts);

	c.program.aggregates.push_back({GJ_AGG_COUNT_STAR, -1});
	if (run_case(device, c, chunk, memory, in, out, &count, &stats))
		check(count.states[0].count == (int64_t) expected.size(), "count(*)", c.name);
	const int32_t arg = (int32_t) c.program.expr(GJ_INT4, {load(0, column_of(last, C_V))});

	c.program.aggregates.push_back({GJ_AGG_SUM_I, arg});
	if (run_case(device, c, chunk, memory, in, out, &sums, &stats))
		check(sums.states[0].count == (int64_t) expected.size() && sums.states[1].count == values &&
				  (int64_t) sums.states[1].lo == sum,
			  "aggregates", c.name);
	stats = {};
	check_groups(device, c, chunk, memory, in, out, expected, counts);
}

/* ---- which */

static const uint64_t plenty = UINT64_C(1) << 30;
/* what the executor needs at least, and the staging of an probe chunk on a GPU */
static const uint64_t little = GJ_LOAD_SLOT_SIZE + (UINT64_C(5) << 20);

static Shape
random_shape(Random &random, GjJoinType type, GjAlgorithm algorithm)
{
	Shape shape = {type, algorithm, 1, -1, random() % 3 == 0, 0, false};

	switch (algorithm)
	{
		case GJ_JOIN_HASH:
			shape.nkeys = 1 + random() % 3;
			break;
		case GJ_JOIN_SORT_MERGE:
			shape.nkeys = random() % 4;
			shape.range = shape.nkeys == 0 ? 1 + random() % 3 : random() % 4;
			break;
		default:
			shape.nkeys = random() % 3;
			shape.range = random() % 2 ? random() % 4 : 0;
	}
	shape.range_is_float = random() % 3 == 0;
	if (random() % 2)
		shape.residual = (int) (random() % 7);
	return shape;
}

/* Many pairs in little memory: probes and pairs in pieces. */
static void
test_pieces(const Device &device, Random &random, GjAlgorithm algorithm, Slot &in, Slot &out)
{
	for (int type = GJ_JOIN_INNER; type <= GJ_JOIN_RIGHT_ANTI; type++)
	{
		Shape shape = random_shape(random, (GjJoinType) type, algorithm);
		Case c;

		c.alive = {0};
		c.program.capacity = 5000;
		add_source(random, c, 0, 1500 + random() % 500, 0.05, 20, 0.3);
		add_source(random, c, 1, 700, 0.05, 20, 0.3);
		add_source(random, c, 2, 50, 0.05, 20, 0);
		shape.nkeys = algorithm == GJ_JOIN_HASH ? 1 : type % 2;
		shape.range = algorithm == GJ_JOIN_SORT_MERGE && !shape.nkeys ? 1 : 0;
		if (type % 3 == 0)
			shape.residual = 3;
		add_step(random, c, shape, 1);
		shape = random_shape(random, type % 2 ? GJ_JOIN_RIGHT : GJ_JOIN_SEMI, GJ_JOIN_HASH);
		shape.residual = -1;
		add_step(random, c, shape, 2);
		check_case(device, c, 5000, little, in, out);
	}
}

/* Makes the values of a key column of source s differ from each other. */
static void
make_unique(Random &random, Case &c, uint32_t s)
{
	int32_t *k1 = (int32_t *) c.columns[column_of(s, C_K1)].data.data();

	for (uint32_t i = 0; i < c.nrows[s]; i++)
		k1[i] = (int32_t) i;
	for (uint32_t i = c.nrows[s]; i-- > 1;)
		std::swap(k1[i], k1[random() % (i + 1)]);
}

/*
 * Tuples with at most one match a step, and rows of many chunks: what the fused operator
 * does (run/fused.c).
 */
static void
test_unique(const Device &device, Random &random, Slot &in, Slot &out)
{
	static const GjJoinType types[] = {GJ_JOIN_INNER, GJ_JOIN_LEFT,  GJ_JOIN_SEMI,
									   GJ_JOIN_ANTI,  GJ_JOIN_RIGHT, GJ_JOIN_FULL};
	const int rounds = under_tool() ? 8 : quick ? 40 : 150;

	for (int i = 0; i < rounds; i++)
	{
		const uint32_t nsources = 1 + random() % 4;
		const uint32_t nouter = 100 + random() % (i % 4 == 0 ? 12000 : 2000);
		const uint64_t memory = i % 8 == 0 ? little : plenty;
		Case c;

		c.alive = {0};
		c.program.capacity = 5000;
		/* where many are expected, build sides are put into order, and groups made beforehand */
		c.program.probe_rows = random() % 2 ? nouter : 0;
		add_source(random, c, 0, nouter, random() % 2 * 0.1, 150, 0);
		for (uint32_t s = 1; s < nsources; s++)
		{
			add_source(random, c, s, 1 + random() % 150, random() % 2 * 0.1, 150, 0);
			make_unique(random, c, s);
		}
		for (uint32_t s = 1; s < nsources; s++)
		{
			Shape shape = random_shape(random, types[random() % 6], GJ_JOIN_HASH);

			if (random() % 3)
				shape.nkeys = 1;
			if (random() % 2)
				shape.filter = false;
			/* all rows of the last build side come out */
			if (i % 4 == 1 && s == nsources - 1)
			{
				shape.type = random() % 2 ? GJ_JOIN_RIGHT : GJ_JOIN_FULL;
				shape.filter = false;
			}
			add_step(random, c, shape, s);
		}
		c.name += " unique";
		check_case(device, c, 1 + random() % 5000, memory, in, out);
	}
}

void
test_steps(const Device &device)
{
	static const uint32_t nrows[] = {0, 1, 3, 40, 150};
	const int rounds = under_tool() ? 1 : quick ? 6 : 20;
	Random random(11);
	Slot in(device, GJ_LOAD_SLOT_SIZE);
	Slot out(device, GJ_OUTPUT_SLOT_SIZE);

	for (int algorithm = GJ_JOIN_HASH; algorithm <= GJ_JOIN_NESTED_LOOP; algorithm++)
	{
		/* one step of every type */
		for (int type = GJ_JOIN_INNER; type <= GJ_JOIN_RIGHT_ANTI; type++)
		{
			for (int i = 0; i < 4 * rounds; i++)
			{
				Case c;

				c.alive = {0};
				for (uint32_t s = 0; s < 2; s++)
					add_source(random, c, s, nrows[random() % 5], random() % 2 * 0.2,
							   1 + random() % 60, random() % 3 == 0 ? 0.5 : 0);
				add_step(random, c,
						 random_shape(random, (GjJoinType) type, (GjAlgorithm) algorithm), 1);
				check_case(device, c, 1 + random() % 100, plenty, in, out);
			}
		}
		/* chains of random types, the algorithms mixed */
		for (int i = 0; i < 20 * rounds; i++)
		{
			const uint32_t nsources = 3 + random() % 3;
			Case c;

			c.alive = {0};
			for (uint32_t s = 0; s < nsources; s++)
				add_source(random, c, s, nrows[1 + random() % 3], 0.1, 1 + random() % 30, 0);
			for (uint32_t s = 1; s < nsources; s++)
				add_step(random, c,
						 random_shape(random, (GjJoinType) (random() % 8),
									  (GjAlgorithm) (random() % (algorithm + 1))),
						 s);
			check_case(device, c, 1 + random() % 100, plenty, in, out);
		}
		if (!under_tool())
			test_pieces(device, random, (GjAlgorithm) algorithm, in, out);
	}
	test_unique(device, random, in, out);
	group(device.ops->name, "join types");
}
