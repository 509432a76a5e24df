/*
 * test.cuh
 *	  What the kernel tests share: a device under test, programs and random columns.
 *
 * Every test runs an operator through GjDeviceOps and compares the result with a plain
 * reference computed in the test.  The same tests run on the cuda device and the cpu device.
 */
#ifndef GJ_CUDA_TEST_CUH
#define GJ_CUDA_TEST_CUH

#include <stdlib.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#ifndef GJ_WITH_CUDA
#define GJ_WITH_CUDA
#endif
#include "device/device.h"

typedef std::mt19937_64 Random;
typedef std::vector<uint8_t> Bytes;

/* ---- counting */

/* Counts one check; prints what failed. */
bool check(bool ok, const char *what, const std::string &where);
/* Ends a group of checks: prints a line. */
void group(const char *device, const char *name);

/* Sizes that every operator is tried with. */
extern std::vector<uint32_t> sizes;
extern bool quick;
/* No case is to have many more rows, or elements of sets. */
extern uint32_t most;
/* With such a limit there are few of what is tried in many ways. */
inline bool
under_tool(void)
{
	return most < UINT32_MAX;
}

/* ---- programs */

struct Program
{
	std::vector<GjColumnType> types;
	std::vector<GjInstr> instrs;
	std::vector<GjExpr> exprs;
	std::vector<int64_t> constants;
	std::vector<uint32_t> outputs;
	std::vector<GjAggregate> aggregates;
	std::vector<GjStep> steps;
	std::vector<int32_t> filters;    /* of the sources; none: -1 each */
	uint32_t capacity = 1024;        /* rows of a chunk */
	uint64_t probe_rows = 0;         /* that are expected; 0: not known */
	uint32_t output_capacity = 1024; /* rows of a batch */
	std::vector<GjGroupKey> group_keys;
	uint32_t ndistinct_keys = 0;
	std::vector<GjSortKey> sort_keys;
	uint32_t limit = 0;

	/* Adds an expression; its result is what the last instruction writes. */
	uint32_t expr(GjKind kind, const std::vector<GjInstr> &code);
	/* The flat form. */
	std::vector<uint64_t> flat() const;
};

GjInstr load(uint16_t dst, uint32_t column);
GjInstr constant(uint16_t dst, int64_t value);
GjInstr op(GjOp op, uint16_t dst, uint16_t a, uint16_t b, uint32_t arg = 0);

/* ---- columns on the host */

struct Column
{
	GjColumnType type;
	Bytes data;
	Bytes nulls; /* empty: nothing is NULL */
	Bytes heap;

	bool
	null(uint32_t row) const
	{
		return !nulls.empty() && nulls[row];
	}
	int64_t value(uint32_t row) const; /* as a register holds it */
	uint64_t
	ref(uint32_t row) const
	{
		return ((const uint64_t *) data.data())[row];
	}
};

/* n random rows; `range` bounds integers, 0: all values of the type. */
Column random_column(Random &random, GjKind kind, uint32_t width, uint32_t source, uint32_t n,
					 double null_rate, uint64_t range);

std::vector<uint32_t> random_rows(Random &random, uint32_t n, uint32_t nrows);

/* What gj_eval makes of expression e of n rows on the host: values and nulls; its status. */
uint32_t eval_on_host(const Program &program, uint32_t e, const std::vector<Column> &columns,
					  const std::vector<uint32_t> &rowid, uint32_t n, std::vector<int64_t> *values,
					  std::vector<uint8_t> *nulls);

/* ---- the device under test */

struct Device
{
	const GjDeviceOps *ops;
	GjDevice *device;
};

/* Memory of the host that the device under test may copy from and to; full of what nobody wrote. */
struct Slot
{
	const Device &device;
	uint8_t *memory;

	Slot(const Device &device, size_t nbytes) : device(device)
	{
		GjErrorText why = {};

		if (posix_memalign((void **) &memory, 4096, nbytes) != 0)
			exit(1);
		memset(memory, 0xEE, nbytes);
		check(device.ops->host_register(device.device, memory, nbytes, &why) == GJ_OK,
			  "host_register", why.text);
	}
	~Slot()
	{
		device.ops->host_unregister(device.device, memory);
		free(memory);
	}
	Slot(const Slot &) = delete;
};

/* A queue and what the tests do with it. */
struct Queue
{
	const GjDeviceOps *ops;
	GjQueue *queue;
	uint32_t npacked = 0;               /* columns that could be packed */
	uint32_t nrefs = 0;                 /* columns of references */
	std::vector<const uint8_t *> heaps; /* of the columns that were uploaded last */

	Queue(const Device &device, const Program &program);
	~Queue();
	Queue(const Queue &) = delete;

	void *alloc(size_t nbytes);
	void *upload_bytes(const void *data, size_t nbytes);
	void download_bytes(void *data, const void *device, size_t nbytes);
	GjColumn pack(const GjColumn &column, uint32_t n);
	GjColumn pack_refs(const GjColumn &column, uint32_t n, size_t heap_size);
	GjColumn offset_refs(const GjColumn &column, uint32_t n);
	/* A column of references on the device, as it is. */
	GjColumn upload_refs(const Column &column);
	/* Columns on the device, as an array of the host describes them, or one of the device. */
	std::vector<GjColumn> upload_columns(const std::vector<Column> &columns);
	const GjColumn *columns(const std::vector<Column> &columns);

	template <typename T>
	T *
	upload(const std::vector<T> &v)
	{
		return (T *) upload_bytes(v.data(), v.size() * sizeof(T));
	}
	template <typename T>
	std::vector<T>
	download(const T *device, size_t n)
	{
		std::vector<T> v(n);

		download_bytes(v.data(), device, n * sizeof(T));
		return v;
	}
	/* View of nrows tuples, each source through its row ids (empty: the row itself). */
	GjView view(const std::vector<Column> &columns, uint32_t nrows,
				const std::vector<std::vector<uint32_t>> &rowids);
};

/*
 * Makes groups of the keys of tuples; both have their kinds.  The tuples' keys, NULLs and heaps are
 * on the device.  Of texts, groups.heap has room for all, and *nbytes is what they take.
 */
GjStatus add_groups(Queue &q, GjGroupRows tuples, uint64_t nslots, uint32_t naggregates,
					GjGroups &groups, uint64_t *nbytes);

/* While it lives, a GPU's fused operator writes tuples to lists after every step, or never. */
struct Lists
{
	GjDevice *device; /* NULL: not a GPU */
	uint64_t sample = 0;
	double cut = 0;

	Lists(const Device &d, bool always);
	~Lists();
	Lists(const Lists &) = delete;
};

/* To be asked whether to stop. */
static inline bool
never(void *)
{
	return false;
}

/* Where a check has failed. */
static inline std::string
at(uint32_t n)
{
	return "n = " + std::to_string(n);
}

/* ---- tests */

void test_memory(const Device &device);
void test_pack(const Device &device);
void test_pack_offsets(const Device &device);
void test_lanes(const Device &device);
void test_peers(const Device &device);
void test_exchange(const Device &device);
void test_select(const Device &device);
void test_keys(const Device &device);
void test_aggregate(const Device &device);
void test_groups(const Device &device);
void test_order(const Device &device);
void test_fused(const Device &device);
void test_fused_bytes(const Device &device);
void test_plain(const Device &device);
void test_grouped(const Device &device);
void test_places(const Device &device);
void test_gather(const Device &device);
void test_hash(const Device &device);
void test_radix(const Device &device); /* of the cuda device */
void test_sorted(const Device &device);
void test_nested(const Device &device);
void test_sets(const Device &device);
void test_steps(const Device &device);
void test_types(const Device &device);
void test_array_sets(const Device &device);
void test_set_join(const Device &device);
void test_membership(const Device &device);
void test_intersections(const Device &device);
void bench(const Device &device);
void bench_sets(const Device &device);
void bench_pairs(const Device &device); /* the first part of bench_sets */
void bench_joins(const Device &device);
void bench_fused(const Device &device);
void bench_groups(const Device &device);

/* ---- joins: join.cu */

/* Normalised keys on the host. */
struct KeySide
{
	uint32_t n;
	std::vector<std::vector<int64_t>> value;
	Bytes null;

	std::vector<int64_t>
	key(uint32_t i) const
	{
		std::vector<int64_t> k;

		for (const std::vector<int64_t> &v : value)
			k.push_back(v[i]);
		return k;
	}
};

GjKeys upload_keys(Queue &q, const KeySide &side);

/* The pairs of join_unique, in its order: the view's tuple, or its row of source 0, and the row id.
 */
std::vector<std::pair<uint32_t, uint32_t>> unique_pairs(Queue &q, const GjHashTable &table,
														const GjKeys &keys,
														const GjSortedMatch *match,
														const GjView &view, uint32_t build_source);

/* ---- families of sets: set_join.cu */

typedef std::vector<std::vector<int64_t>> Sets; /* each ascending, without duplicates */

/* The elements of all sets in `width` bytes each, as set_build takes them; with one more behind. */
extern void *upload_elements(Queue &q, const Sets &left, const Sets *right, uint32_t width);

/* A family on the device, and its memory. */
struct Family
{
	Queue &q;
	GjSetSpec spec;
	GjSetFamily family;
	uint32_t *out[3];
	GjStatus status; /* of set_build */

	/*
	 * `right` is NULL: one family with itself.  Elements are `width` bytes; `multiple`: they
	 * can be in a set several times.
	 */
	Family(Queue &q, const Sets &left, const Sets *right, uint32_t width, GjSetSpec spec,
		   bool multiple = false);
	~Family();
	Family(const Family &) = delete;
};

/* nsets sets of about `size` elements below `universe`, chosen with a power law of this skew. */
Sets random_sets(Random &random, uint32_t nsets, uint32_t size, uint64_t universe, double skew);
/* True if a case of these sets has many more elements than it is to have. */
bool too_many(const Sets &left, const Sets *right);

#endif /* GJ_CUDA_TEST_CUH */
