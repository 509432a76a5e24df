/*
 * main.cu
 *	  kernel_test: tests of the cuda device (and the cpu device) against references.
 *
 *	kernel_test [--quick] [--most ROWS] [--device cuda|cpu|all] [TEST...]
 *				[--bench | --bench-join | --bench-fused | --bench-sets |
 *				--bench-pairs | --list]
 *
 * --quick leaves out what takes long, --most cases of more rows, where tests have such, and most
 * random joins: both are for tools under which a kernel takes a hundred times as long.  The last
 * line is "N passed, N failed"; the exit status is 1 if a check failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "../internal.cuh"
#include "test.cuh"

std::vector<uint32_t> sizes = {0, 1, 31, 32, 33, 1023, 1024, 1025, 100000, 1000003};
bool quick = false;
uint32_t most = UINT32_MAX;

static unsigned passed, failed;
static unsigned group_passed, group_failed;

bool
check(bool ok, const char *what, const std::string &where)
{
	if (ok)
		group_passed++;
	else if (++group_failed <= 5)
		printf("  FAILED: %s (%s)\n", what, where.c_str());
	return ok;
}

void
group(const char *device, const char *name)
{
	printf("%-5s %-24s %6u passed, %u failed\n", device, name, group_passed, group_failed);
	fflush(stdout);
	passed += group_passed;
	failed += group_failed;
	group_passed = group_failed = 0;
}

/* ---- programs */

uint32_t
Program::expr(GjKind kind, const std::vector<GjInstr> &code)
{
	GjExpr e = {};

	e.first = (uint32_t) instrs.size();
	e.ninstrs = (uint32_t) code.size();
	e.result = code.back().dst;
	e.kind = (uint8_t) kind;
	e.can_fail = 1;
	for (const GjInstr &i : code)
	{
		if (i.dst + 1 > e.nregisters)
			e.nregisters = (uint16_t) (i.dst + 1);
		instrs.push_back(i);
	}
	exprs.push_back(e);
	return (uint32_t) exprs.size() - 1;
}

template <typename T>
static void
append(std::vector<uint64_t> &flat, const std::vector<T> &array, uint32_t *n, uint32_t *offset)
{
	*n = (uint32_t) array.size();
	*offset = (uint32_t) (flat.size() * 8);
	flat.resize(flat.size() + (array.size() * sizeof(T) + 7) / 8);
	if (!array.empty())
		memcpy((char *) flat.data() + *offset, array.data(), array.size() * sizeof(T));
}

std::vector<uint64_t>
Program::flat() const
{
	std::vector<uint64_t> flat(sizeof(GjProgram) / 8);
	GjProgram p = {};
	std::vector<GjSource> sources;

	p.magic = GJ_PROGRAM_MAGIC;
	p.output_capacity = output_capacity;
	p.output = aggregates.empty() ? GJ_OUTPUT_ROWS : GJ_OUTPUT_AGGREGATES;
	for (uint32_t c = 0; c < types.size(); c++)
	{
		if (types[c].source >= sources.size())
		{
			const size_t s = sources.size();

			sources.push_back({c, 0, capacity, s < filters.size() ? filters[s] : -1,
							   s == 0 ? probe_rows : 0, 0, 0});
		}
		sources.back().ncolumns++;
	}
	append(flat, sources, &p.nsources, &p.sources);
	append(flat, types, &p.ncolumns, &p.columns);
	append(flat, steps, &p.nsteps, &p.steps);
	append(flat, exprs, &p.nexprs, &p.exprs);
	append(flat, instrs, &p.ninstrs, &p.instrs);
	append(flat, constants, &p.nconstants, &p.constants);
	append(flat, outputs, &p.noutputs, &p.outputs);
	append(flat, aggregates, &p.naggregates, &p.aggregates);
	append(flat, group_keys, &p.ngroup_keys, &p.group_keys);
	append(flat, sort_keys, &p.nsort_keys, &p.sort_keys);
	p.ndistinct_keys = ndistinct_keys;
	p.limit = limit;
	if (!group_keys.empty())
		p.output = GJ_OUTPUT_GROUPS;
	p.nbytes = (uint32_t) (flat.size() * 8);
	memcpy(flat.data(), &p, sizeof(p));
	return flat;
}

GjInstr
op(GjOp op, uint16_t dst, uint16_t a, uint16_t b, uint32_t arg)
{
	GjInstr i = {};

	i.op = (uint16_t) op;
	i.dst = dst;
	i.a = a;
	i.b = b;
	i.arg = arg;
	return i;
}

GjInstr
load(uint16_t dst, uint32_t column)
{
	return op(GJ_OP_LOAD, dst, dst, dst, column);
}

GjInstr
constant(uint16_t dst, int64_t value)
{
	GjInstr i = op(GJ_OP_CONST, dst, dst, dst);

	i.imm = value;
	return i;
}

/* ---- columns */

int64_t
Column::value(uint32_t row) const
{
	GjColumn c = {};

	c.data = data.data();
	c.kind = type.kind;
	return gj_column_value(&c, row);
}

static double
random_double(Random &random)
{
	switch (random() % 12)
	{
		case 0:
			return 0.0;
		case 1:
			return -0.0;
		case 2:
			return gj_bits_to_double(INT64_C(0x7FF8000000000000));
		case 3: /* another NaN */
			return gj_bits_to_double((int64_t) UINT64_C(0xFFF8000000001234));
		case 4:
			return gj_bits_to_double(INT64_C(0x7FF0000000000000));
		default:
			return (double) (int64_t) (random() % 1000) - 500 + (double) (random() % 4) / 4;
	}
}

/* Appends a value of the heap; returns its reference. */
static uint64_t
random_ref(Random &random, Bytes &heap)
{
	static const uint32_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 40, 100};
	uint32_t kind = random() % 64;
	uint32_t length = kind == 0 ? 8192 : kind == 1 ? 3000 : lengths[random() % 9];
	uint64_t offset = heap.size();

	if (kind == 2)
		return gj_ref_make(random() % 1000, GJ_REF_HELD);
	if (kind < 8 && offset > 0)
		length = 0;
	heap.resize(heap.size() + ((length + 7) & ~7u));
	for (uint32_t i = 0; i < length; i++)
		heap[offset + i] = (uint8_t) random();
	return gj_ref_make(offset, length);
}

Column
random_column(Random &random, GjKind kind, uint32_t width, uint32_t source, uint32_t n,
			  double null_rate, uint64_t range)
{
	Column c;

	c.type = {(uint8_t) kind, (uint8_t) width, (uint8_t) (null_rate > 0), (uint8_t) source};
	c.data.resize((size_t) n * width);
	if (null_rate > 0)
		c.nulls.resize(n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint8_t *to = c.data.data() + (size_t) i * width;
		int64_t v = (int64_t) random();
		double d;

		if (null_rate > 0)
			c.nulls[i] = (double) (random() % 1000) < null_rate * 1000;
		if (range > 0)
			v = (int64_t) ((uint64_t) v % range) - (kind == GJ_UINT4 ? 0 : (int64_t) (range / 2));
		switch (kind)
		{
			case GJ_BOOL:
				*to = (uint8_t) (random() % 2);
				break;
			case GJ_FLOAT8:
				d = range > 0 ? (double) v / 8 : random_double(random);
				memcpy(to, &d, sizeof(d));
				break;
			case GJ_REF:
			{
				uint64_t ref = null_rate > 0 && c.nulls[i] ? 0 : random_ref(random, c.heap);

				memcpy(to, &ref, sizeof(ref));
				break;
			}
			case GJ_BYTES:
				for (uint32_t k = 0; k < width; k++)
					to[k] = (uint8_t) random();
				break;
			default:
				memcpy(to, &v, width);
		}
	}
	return c;
}

uint32_t
eval_on_host(const Program &program, uint32_t e, const std::vector<Column> &columns,
			 const std::vector<uint32_t> &rowid, uint32_t n, std::vector<int64_t> *values,
			 std::vector<uint8_t> *nulls)
{
	const GjCode code = {program.exprs.data(), program.instrs.data(), program.constants.data(),
						 program.types.data()};
	const GjExpr *expr = &program.exprs[e];
	std::vector<GjColumn> host;
	std::vector<int64_t> value((size_t) expr->nregisters * n + 1);
	std::vector<uint8_t> null((size_t) expr->nregisters * n + 1);
	const GjTile tile = {value.data(), null.data(), n};
	GjView view = {};
	uint32_t status = GJ_OK;

	for (const Column &c : columns)
		host.push_back({c.data.data(), c.nulls.empty() ? NULL : c.nulls.data(), c.heap.data(),
						c.type.kind, c.type.width, 0, 0, 0, 0, NULL});
	view.columns = host.data();
	view.nrows = n;
	view.rowid[0] = rowid.empty() ? NULL : rowid.data();
	gj_eval(&code, e, &view, 0, n, &tile, &status);
	values->assign(value.begin() + (size_t) expr->result * n,
				   value.begin() + (size_t) (expr->result + 1) * n);
	nulls->assign(null.begin() + (size_t) expr->result * n,
				  null.begin() + (size_t) (expr->result + 1) * n);
	return status;
}

std::vector<uint32_t>
random_rows(Random &random, uint32_t n, uint32_t nrows)
{
	std::vector<uint32_t> rows(nrows > 0 ? n : 0);

	for (uint32_t &row : rows)
		row = (uint32_t) (random() % nrows);
	return rows;
}

/* ---- queues */

Queue::Queue(const Device &device, const Program &program) : ops(device.ops)
{
	GjErrorText why = {};
	std::vector<uint64_t> flat = program.flat();

	if (ops->queues->queue_open(device.device, (const GjProgram *) flat.data(), &queue, &why) !=
		GJ_OK)
	{
		printf("queue_open: %s\n", why.text);
		exit(1);
	}
}

Queue::~Queue()
{
	GjErrorText why = {};

	check(ops->queues->queue_close(queue, &why) == GJ_OK, "queue_close", why.text);
}

void *
Queue::alloc(size_t nbytes)
{
	void *memory;

	if (ops->memory->alloc(queue, nbytes, &memory) != GJ_OK)
	{
		printf("alloc: %s\n", ops->queues->queue_error(queue));
		exit(1);
	}
	return memory;
}

void *
Queue::upload_bytes(const void *data, size_t nbytes)
{
	void *memory = alloc(nbytes + 16);

	check(ops->memory->copy_in(queue, memory, data, nbytes) == GJ_OK, "copy_in", "upload");
	/* the source may go away */
	check(ops->queues->sync(queue) == GJ_OK, "sync", ops->queues->queue_error(queue));
	return memory;
}

void
Queue::download_bytes(void *data, const void *device, size_t nbytes)
{
	check(ops->memory->copy_out(queue, data, device, nbytes) == GJ_OK, "copy_out", "download");
	check(ops->queues->sync(queue) == GJ_OK, "sync", ops->queues->queue_error(queue));
}

GjStatus
add_groups(Queue &q, GjGroupRows tuples, uint64_t nslots, uint32_t naggregates, GjGroups &groups,
		   uint64_t *nbytes)
{
	const GjGroupOps *ops = q.ops->groups;
	const size_t n = tuples.nrows + 1; /* there may be none */
	uint32_t *slot_of = (uint32_t *) q.alloc(n * 4);
	uint32_t *positions = (uint32_t *) q.alloc(n * 4);
	uint64_t *heap_at = (uint64_t *) q.alloc(n * 8);
	uint32_t added = 0;
	GjStatus status;

	tuples.hash = q.upload(std::vector<uint64_t>(n));
	groups.rows.null = (uint32_t *) q.alloc(n * 4);
	groups.rows.hash = (uint64_t *) q.alloc(n * 8);
	for (uint32_t k = 0; k < tuples.nkeys; k++)
		groups.rows.value[k] = (int64_t *) q.alloc(n * 8);
	for (uint32_t a = 0; a < naggregates; a++)
		groups.state[a] = (GjAggState *) q.alloc(n * sizeof(GjAggState));
	groups.nslots = nslots;
	groups.slots = (uint64_t *) q.alloc(nslots * 8);
	status = ops->group_hash(q.queue, &tuples);
	if (status == GJ_OK)
		status = ops->group_rehash(q.queue, &groups);
	if (status == GJ_OK)
		status =
			ops->group_find(q.queue, &tuples, &groups, slot_of, positions, heap_at, &added, nbytes);
	if (status == GJ_OK)
		status = ops->group_add(q.queue, &tuples, &groups, slot_of, positions, heap_at, added, 0);
	groups.rows.nrows = added;
	return status;
}

/* The same column packed, if that takes less room. */
GjColumn
Queue::pack(const GjColumn &column, uint32_t n)
{
	GjPackColumn work = {column, NULL, n};
	GjPacking packing;

	check(ops->columns->measure(queue, &work, 1, &packing) == GJ_OK, "measure",
		  ops->queues->queue_error(queue));
	if (!gj_choose_packing(&work.from, &packing))
		return column;
	work.to = alloc((size_t) n * work.from.packed);
	check(ops->columns->pack(queue, &work, 1) == GJ_OK, "pack", ops->queues->queue_error(queue));
	work.from.data = work.to;
	return work.from;
}

/* The same column of references as codes of a dictionary, if its values can have one. */
GjColumn
Queue::pack_refs(const GjColumn &column, uint32_t n, size_t heap_size)
{
	const uint32_t most = std::min(n, UINT32_C(65536));
	const size_t at = (heap_size + 7) & ~(size_t) 7;
	uint32_t *number = (uint32_t *) alloc(n * sizeof(uint32_t) + 4);
	uint64_t *value = (uint64_t *) alloc(most * sizeof(uint64_t) + 8);
	GjPackColumn work = {};
	uint8_t *heap;
	uint32_t nvalues;

	check(ops->columns->number_values(queue, &column, n, most, number, value, &nvalues) == GJ_OK,
		  "number_values", ops->queues->queue_error(queue));
	if (nvalues > most)
		return column;
	heap = (uint8_t *) alloc(at + nvalues * sizeof(uint64_t));
	check(ops->memory->copy(queue, heap, column.heap, heap_size) == GJ_OK &&
			  ops->memory->copy(queue, heap + at, value, nvalues * sizeof(uint64_t)) == GJ_OK,
		  "copy", "a dictionary");
	work.from.data = number;
	work.from.kind = GJ_UINT4;
	work.from.width = 4;
	work.from.packed = gj_packed_bytes(nvalues - 1);
	work.from.factor = 1;
	work.to = alloc((size_t) n * work.from.packed);
	work.nrows = n;
	check(ops->columns->pack(queue, &work, 1) == GJ_OK, "pack", ops->queues->queue_error(queue));

	GjColumn packed = column;

	packed.data = work.to;
	packed.heap = heap;
	packed.packed = work.from.packed;
	packed.base = (int64_t) at;
	packed.factor = nvalues;
	return packed;
}

/* The same column of references as offsets, if no value is a held one. */
GjColumn
Queue::offset_refs(const GjColumn &column, uint32_t n)
{
	uint64_t *at = (uint64_t *) alloc(((size_t) n + 1) * sizeof(uint64_t));
	GjColumn packed = column;
	GjOffsets offsets;

	check(ops->columns->find_offsets(queue, &column, n, at, &offsets) == GJ_OK, "find_offsets",
		  ops->queues->queue_error(queue));
	if (!gj_choose_offsets(&packed, &offsets, n))
		return column;

	const uint64_t before = gj_before_values(&packed, n);
	/* a heap has something else at both ends */
	uint8_t *heap = upload(std::vector<uint8_t>(8 + before + offsets.nbytes + 8, 0xA5));
	GjPackColumn work = {packed, alloc(((size_t) n + 1) * packed.packed), n};

	packed.base = work.from.base = 8;
	packed.heap = work.from.heap = heap;
	packed.data = work.to;
	check(ops->columns->move_values(queue, &column, n, at, heap + 8 + before, 8 + before, NULL) ==
				  GJ_OK &&
			  ops->columns->pack_offsets(queue, &work, at) == GJ_OK,
		  "pack_offsets", ops->queues->queue_error(queue));
	return packed;
}

GjColumn
Queue::upload_refs(const Column &column)
{
	GjColumn d = {};

	d.kind = GJ_REF;
	d.width = 8;
	d.data = upload(column.data);
	d.nulls = column.nulls.empty() ? NULL : upload(column.nulls);
	d.heap = upload(column.heap);
	return d;
}

std::vector<GjColumn>
Queue::upload_columns(const std::vector<Column> &columns)
{
	std::vector<GjColumn> device;

	heaps.clear();
	for (const Column &c : columns)
	{
		GjColumn d = {};

		d.data = upload(c.data);
		d.nulls = c.nulls.empty() ? NULL : upload(c.nulls);
		d.heap = c.heap.empty() ? NULL : upload(c.heap);
		d.kind = c.type.kind;
		d.width = c.type.width;
		/* probe columns come packed or as they are, in turn */
		if (c.type.source == 0 && gj_kind_packs(d.kind) && !c.data.empty() && ++npacked % 2 == 0)
			d = pack(d, (uint32_t) (c.data.size() / d.width));
		if (c.type.source == 0 && d.kind == GJ_REF && d.heap != NULL && !c.data.empty())
		{
			const uint32_t n = (uint32_t) (c.data.size() / d.width);
			const uint32_t turn = nrefs++ % 3;

			d = turn == 0 ? offset_refs(d, n) : turn == 1 ? pack_refs(d, n, c.heap.size()) : d;
		}
		device.push_back(d);
		heaps.push_back(d.heap);
	}
	return device;
}

const GjColumn *
Queue::columns(const std::vector<Column> &columns)
{
	const std::vector<GjColumn> device = upload_columns(columns);
	const GjColumn *result = NULL;

	check(ops->columns->set_columns(queue, device.data(), (uint32_t) device.size(), &result) ==
			  GJ_OK,
		  "set_columns", ops->queues->queue_error(queue));
	return result;
}

GjView
Queue::view(const std::vector<Column> &cols, uint32_t nrows,
			const std::vector<std::vector<uint32_t>> &rowids)
{
	GjView v = {};

	v.columns = columns(cols);
	v.nrows = nrows;
	for (size_t s = 0; s < rowids.size(); s++)
		v.rowid[s] = rowids[s].empty() ? NULL : upload(rowids[s]);
	return v;
}

/* ---- main */

/* What a device has measured of itself is plausible, unless a tool slows it down. */
static void
test_rates(const Device &device)
{
	GjDeviceInfo info = {};

	device.ops->info(device.device, &info);
	for (double rate : {info.copy_in_rate, info.copy_out_rate, info.build_rate, info.probe_rate,
						info.sort_rate, info.pair_rate})
		check(rate > 1e5 && rate < 1e14, "rate", std::to_string(rate));
	group(device.ops->name, "rates");
}

struct Test
{
	const char *name;
	void (*run)(const Device &);
	bool wanted = false; /* by name */
};

static Test tests[] = {
	{"rates", test_rates},
	{"memory", test_memory},
	{"pack", test_pack},
	{"pack_offsets", test_pack_offsets},
	{"lanes", test_lanes},
	{"peers", test_peers},
	{"exchange", test_exchange},
	{"select", test_select},
	{"keys", test_keys},
	{"hash", test_hash},
	{"aggregate", test_aggregate},
	{"groups", test_groups},
	{"order", test_order},
	{"fused", test_fused},
	{"fused_bytes", test_fused_bytes},
	{"plain", test_plain},
	{"grouped", test_grouped},
	{"places", test_places},
	{"gather", test_gather},
	{"sets", test_sets},
	{"sorted", test_sorted},
	{"nested", test_nested},
	{"steps", test_steps},
	{"types", test_types},
	{"array_sets", test_array_sets},
	{"set_join", test_set_join},
	{"membership", test_membership},
	{"intersections", test_intersections},
	{"radix", test_radix},
};

/* False: there is no test of that name. */
static bool
want_test(const char *name)
{
	for (Test &test : tests)
	{
		if (strcmp(test.name, name) == 0)
			return test.wanted = true;
	}
	return false;
}

/* Those that are wanted, or all. */
static void
run_tests(const Device &device)
{
	const bool all = std::none_of(std::begin(tests), std::end(tests),
								  [](const Test &test) { return test.wanted; });

	for (const Test &test : tests)
	{
		if ((all || test.wanted) && (test.run != test_radix || device.ops->kind == GJ_DEVICE_CUDA))
			test.run(device);
	}
}

/* Opens the device and runs what was asked for; false if there is none. */
static bool
run_device(const GjDeviceOps *ops, void (*timing)(const Device &))
{
	GjErrorText why = {};
	Device device = {ops, NULL};
	GjDeviceInfo info = {};

	if (ops->count(&why) > 0)
		device.device = ops->open(0, &why);
	if (device.device == NULL)
	{
		printf("%s: no device: %s\n", ops->name, why.text);
		return false;
	}
	ops->info(device.device, &info);
	printf(
		"%s: %s, %u processors, %.1f GB, copies %.1f and %.1f GB/s, sorts %.3f G rows/s, looks at "
		"%.2f G pairs/s\n",
		ops->name, info.name, info.nprocessors, (double) info.memory_total / 1e9,
		info.copy_in_rate / 1e9, info.copy_out_rate / 1e9, info.sort_rate / 1e9,
		info.pair_rate / 1e9);
	/* tools are to see each allocation */
	if (!timing && ops->kind == GJ_DEVICE_CUDA)
		device.device->keeps_small = false;
	if (timing)
		timing(device);
	else
		run_tests(device);
	ops->close(device.device);
	return true;
}

int
main(int argc, char **argv)
{
	const char *name = "all";
	void (*timing)(const Device &) = NULL;
	bool ran = true;

	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--quick") == 0)
			quick = true;
		else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
			most = (uint32_t) atoi(argv[++i]);
		else if (strcmp(argv[i], "--bench") == 0)
			timing = bench;
		else if (strcmp(argv[i], "--bench-sets") == 0)
			timing = bench_sets;
		else if (strcmp(argv[i], "--bench-pairs") == 0)
			timing = bench_pairs;
		else if (strcmp(argv[i], "--bench-join") == 0)
			timing = bench_joins;
		else if (strcmp(argv[i], "--bench-fused") == 0)
			timing = bench_fused;
		else if (strcmp(argv[i], "--bench-groups") == 0)
			timing = bench_groups;
		else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
			name = argv[++i];
		else if (strcmp(argv[i], "--list") == 0)
		{
			for (const Test &test : tests)
				printf("%s\n", test.name);
			return 0;
		}
		else if (!want_test(argv[i]))
		{
			fprintf(stderr, "usage: kernel_test [--quick] [--most ROWS] [--device cuda|cpu|all] "
							"[TEST...] [--bench | --bench-join | --bench-fused | "
							"--bench-groups | --bench-sets | --bench-pairs | --list]\n");
			return 2;
		}
	}
	if (quick)
		sizes.pop_back();
	while (sizes.size() > 1 && sizes.back() > most)
		sizes.pop_back();
	if (timing && strcmp(name, "all") == 0)
		name = "cuda";
	if (strcmp(name, "cpu") != 0)
		ran = run_device(&gj_cuda_device, timing);
	if (strcmp(name, "cuda") != 0)
		ran &= run_device(&gj_cpu_device, timing);
	if (!ran)
		check(false, "device", name);
	passed += group_passed;
	failed += group_failed;
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0;
}
