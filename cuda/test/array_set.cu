/*
 * array_set.cu
 *	  Tests of array_sizes and array_sets: arrays of all shapes as PostgreSQL stores them.
 */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <set>

#include "rows/array.h"
#include "test.cuh"

/* An array of a test: its elements, which of them are NULL, or none at all. */
struct Array
{
	bool none = false;
	std::vector<int64_t> elements;
	std::vector<bool> nulls; /* of all elements; empty: no bitmap */
};

static void
put_u32(std::string *to, uint32_t value)
{
	to->append((const char *) &value, 4);
}

/* Behind the length header: one dimension, or two where the number of elements is even. */
static std::string
array_bytes(const Array &array, uint32_t width, bool flat)
{
	const uint32_t n = (uint32_t) array.elements.size();
	const uint32_t ndim = n == 0 ? 0 : flat || n % 2 != 0 ? 1 : 2;
	const uint32_t bitmap = array.nulls.empty() ? 0 : (n + 7) / 8;
	const uint32_t start = (16 + 8 * ndim + bitmap + 7) & ~7u;
	std::string bytes;

	put_u32(&bytes, ndim);
	put_u32(&bytes, bitmap > 0 ? start : 0);
	put_u32(&bytes, width == 2 ? 21 : width == 4 ? 23 : 20);
	if (ndim == 2)
		put_u32(&bytes, 2);
	if (ndim > 0)
		put_u32(&bytes, n / ndim);
	for (uint32_t d = 0; d < ndim; d++)
		put_u32(&bytes, 1);
	for (uint32_t i = 0; i < bitmap; i++)
	{
		uint8_t bits = 0;

		for (uint32_t b = 0; b < 8 && i * 8 + b < n; b++)
			bits |= (uint8_t) (!array.nulls[i * 8 + b] << b);
		bytes.append(1, (char) bits);
	}
	bytes.resize(start - 4);
	for (uint32_t i = 0; i < n; i++)
		if (array.nulls.empty() || !array.nulls[i])
			bytes.append((const char *) &array.elements[i], width);
	return bytes;
}

/* Adds a row whose value is these bytes behind a header, a short one if it can be. */
static void
add_value(Column *c, const std::string &bytes, bool pack)
{
	const uint32_t n = (uint32_t) bytes.size();
	const uint32_t header = (n + 4) << 2;
	const uint64_t offset = c->heap.size();
	std::string value;
	uint64_t ref;

	if (pack && n + 1 <= 127)
		value = std::string(1, (char) ((n + 1) << 1 | 1)) + bytes;
	else
		value = std::string((const char *) &header, 4) + bytes;
	ref = gj_ref_make(offset, value.size());
	c->heap.resize(offset + ((value.size() + 7) & ~(size_t) 7));
	memcpy(c->heap.data() + offset, value.data(), value.size());
	c->data.insert(c->data.end(), (const uint8_t *) &ref, (const uint8_t *) &ref + 8);
}

static std::vector<Array>
random_arrays(Random &random, uint32_t n, uint32_t width, uint32_t size)
{
	const int64_t most = width == 2 ? INT16_MAX : width == 4 ? INT32_MAX : INT64_MAX;
	std::vector<Array> arrays(n);

	for (Array &array : arrays)
	{
		const uint32_t length = random() % 7 == 0 ? 0 : (uint32_t) (random() % (2 * size + 1));
		const bool bitmap = random() % 4 == 0;
		const bool sorted = random() % 3 == 0;

		array.none = random() % 9 == 0;
		for (uint32_t i = 0; i < length; i++)
		{
			const uint64_t what = random() % 40;

			array.elements.push_back(what == 0   ? most
									 : what == 1 ? -most - 1
												 : (int64_t) (random() % (3 * size)) - size);
			if (bitmap)
				array.nulls.push_back(random() % 5 == 0);
		}
		if (sorted)
			std::sort(array.elements.begin(), array.elements.end());
	}
	return arrays;
}

static bool
has_null(const Array &array)
{
	return std::find(array.nulls.begin(), array.nulls.end(), true) != array.nulls.end();
}

/* What array_sizes and array_sets should find for rows[first ..] of the arrays. */
static void
test_rows(Queue &q, const std::vector<Column> &columns, const std::vector<Array> &arrays,
		  const std::vector<uint32_t> &rows, uint32_t first, GjArrayColumn how)
{
	const std::string where = "width " + std::to_string(how.width) + ", NULLs " +
							  std::to_string(how.nulls) + ", " + std::to_string(rows.size()) +
							  " rows";
	const uint32_t n = (uint32_t) rows.size() - first;
	const GjView view = q.view(columns, (uint32_t) rows.size(), {rows});
	int32_t *size = (int32_t *) q.alloc(n * sizeof(int32_t) + 8);
	uint8_t *null = (uint8_t *) q.alloc(n + 8);
	std::vector<uint32_t> kept;
	std::vector<int32_t> sizes;
	std::vector<uint8_t> expected_null;
	std::vector<int64_t> expected;
	std::vector<int32_t> expected_size;
	uint64_t expected_total = 0;
	uint64_t total = 1;
	uint64_t nvalues = 1;
	bool fails = false;

	for (uint32_t i = first; i < rows.size(); i++)
	{
		const Array &array = arrays[rows[i]];
		const bool never = has_null(array) && how.nulls == GJ_NULL_ELEMENTS_NEVER;
		std::set<int64_t> set;
		int32_t count = 0;

		fails |= !array.none && has_null(array) && how.nulls == GJ_NULL_ELEMENTS_FAIL;
		expected_null.push_back(array.none || never);
		for (size_t e = 0; e < array.elements.size() && !array.none && !never; e++)
			if (array.nulls.empty() || !array.nulls[e])
			{
				set.insert(array.elements[e]);
				count++;
			}
		sizes.push_back(count);
		expected_total += (uint64_t) count;
		if (array.none || never)
			continue;
		kept.push_back(rows[i]);
		expected.insert(expected.end(), set.begin(), set.end());
		expected_size.push_back((int32_t) set.size());
	}
	if (fails)
	{
		check(q.ops->sets->array_sizes(q.queue, &view, first, n, &how, size, null, &total) ==
				  GJ_UNKNOWN_VALUE,
			  "array_sizes of NULL elements", where);
		return;
	}
	check(q.ops->sets->array_sizes(q.queue, &view, first, n, &how, size, null, &total) == GJ_OK,
		  "array_sizes", where);
	check(total == expected_total && q.download(size, n) == sizes &&
			  q.download(null, n) == expected_null,
		  "sizes of arrays", where);

	/* as the executor does: those that have a set */
	const GjView some = q.view(columns, (uint32_t) kept.size(), {kept});
	std::vector<int32_t> kept_size;
	uint8_t *values = (uint8_t *) q.alloc(total * how.width + 8);

	for (uint32_t i = 0; i < n; i++)
		if (!expected_null[i])
			kept_size.push_back(sizes[i]);
	size = q.upload(kept_size);
	check(q.ops->sets->array_sets(q.queue, &some, &how, size, values, NULL, NULL, &nvalues) ==
			  GJ_OK,
		  "array_sets", where);
	if (!check(nvalues == expected.size() && q.download(size, kept.size()) == expected_size,
			   "sizes of sets", where))
		return;

	const Bytes bytes = q.download(values, nvalues * how.width);
	bool same = true;

	for (uint64_t i = 0; i < nvalues; i++)
		same &= memcmp(bytes.data() + i * how.width, &expected[i], how.width) == 0;
	check(same, "elements of sets", where);
}

static void
test_shape(const Device &device, Random &random, uint32_t n, uint32_t width, uint32_t size)
{
	const std::vector<Array> arrays = random_arrays(random, n, width, size);
	Column c;
	Program program;
	std::vector<uint32_t> whole;
	std::vector<uint32_t> clean;

	c.type = {GJ_REF, 8, 1, 0};
	for (uint32_t row = 0; row < n; row++)
	{
		add_value(&c, array_bytes(arrays[row], width, random() % 2 == 0), random() % 3 != 0);
		c.nulls.push_back(arrays[row].none);
		whole.push_back(row);
		if (!has_null(arrays[row]))
			clean.push_back(row);
	}
	program.types = {c.type};
	for (uint8_t nulls = 0; nulls <= GJ_NULL_ELEMENTS_FAIL; nulls++)
	{
		const GjArrayColumn how = {0, (uint8_t) width, nulls};
		const std::vector<uint32_t> rows = random_rows(random, n * 2, n);

		/* a queue keeps the error that it has met */
		Queue q(device, program);
		Queue other(device, program);

		test_rows(q, {c}, arrays, nulls == GJ_NULL_ELEMENTS_FAIL ? clean : whole, 0, how);
		if (clean.size() > 1)
			test_rows(q, {c}, arrays, clean, (uint32_t) clean.size() / 2, how);
		test_rows(other, {c}, arrays, rows, n / 3, how);
	}
}

/* What is no array must not be read as one. */
static void
test_damaged(const Device &device, Random &random)
{
	const Array array = {false, {1, 2, 3, 4, 5}, {}};
	const std::string good = array_bytes(array, 4, true);
	Program program;

	program.types = {{GJ_REF, 8, 1, 0}};
	for (int what = 0; what < 5; what++)
	{
		const GjArrayColumn how = {0, 4, GJ_NULL_ELEMENTS_SKIPPED};
		std::string bytes = good;
		const uint32_t large = 0x7FFFFFFF;
		uint64_t total;
		Column c;

		c.type = program.types[0];
		if (what == 0)
			bytes.resize(8); /* no header */
		else if (what == 1)
			bytes[0] = 7; /* dimensions */
		else if (what == 2)
			memcpy(&bytes[12], &large, 4); /* elements */
		else if (what == 3)
			memcpy(&bytes[4], &large, 4); /* a bitmap beyond the end */
		else
			bytes.resize(bytes.size() - 1); /* an element cut off */
		add_value(&c, bytes, random() % 2 == 0);

		Queue q(device, program);
		const GjView view = q.view({c}, 1, {{0}});

		check(q.ops->sets->array_sizes(q.queue, &view, 0, 1, &how, (int32_t *) q.alloc(8),
									   (uint8_t *) q.alloc(8), &total) == GJ_UNKNOWN_VALUE,
			  "array_sizes of a damaged array", std::to_string(what));
	}
}

/* Arrays as a whole: equal where PostgreSQL says so, whatever their headers are like. */
static void
test_equal(const Device &device, Random &random, uint32_t width)
{
	const uint32_t n = 20000;
	Program program;
	std::vector<Column> columns(2);
	std::vector<uint32_t> expected;

	for (uint32_t c = 0; c < 2; c++)
	{
		GjInstr load = op(GJ_OP_LOAD_T, (uint16_t) c, 0, 0, c);

		load.n = GJ_BYTES_ARRAY;
		columns[c].type = {GJ_REF, 8, 1, 0};
		program.types.push_back(columns[c].type);
		program.instrs.push_back(load);
	}

	const std::vector<GjInstr> loads = program.instrs;

	program.instrs.clear();
	program.expr(GJ_BOOL, {loads[0], loads[1], op(GJ_OP_EQ_T, 0, 0, 1)});
	for (uint32_t row = 0; row < n; row++)
	{
		Array arrays[2];
		bool flat[2];

		for (int i = 0; i < 2; i++)
		{
			Array &array = arrays[i];
			/* often the same as on the other side */
			const uint64_t length =
				i == 1 && row % 4 != 0 ? arrays[0].elements.size() : random() % 5;

			array.none = random() % 9 == 0;
			flat[i] = random() % 4 != 0;
			for (uint64_t e = 0; e < length; e++)
			{
				array.elements.push_back((int64_t) (random() % 2) - 1);
				array.nulls.push_back(random() % 8 == 0);
			}
			if (!has_null(array))
				array.nulls.clear();
			add_value(&columns[i], array_bytes(array, width, flat[i]), random() % 3 != 0);
			columns[i].nulls.push_back(array.none);
		}

		bool same = !arrays[0].none && !arrays[1].none && arrays[0].nulls == arrays[1].nulls &&
					arrays[0].elements.size() == arrays[1].elements.size();

		/* an even number of elements is in two dimensions, unless it is to be flat */
		if (arrays[0].elements.size() % 2 == 0 && !arrays[0].elements.empty())
			same &= flat[0] == flat[1];
		for (size_t e = 0; same && e < arrays[0].elements.size(); e++)
			same = (!arrays[0].nulls.empty() && arrays[0].nulls[e]) ||
				   arrays[0].elements[e] == arrays[1].elements[e];
		if (same)
			expected.push_back(row);
	}

	Queue q(device, program);
	const GjView view = q.view(columns, n, {});
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t));
	uint32_t found = 0;

	check(q.ops->columns->select(q.queue, &view, 0, positions, &found) == GJ_OK,
		  "select of equal arrays", q.ops->queues->queue_error(q.queue));
	check(q.download(positions, found) == expected, "equal arrays", std::to_string(width));
}

/* Arrays that have not the bytes of all that are equal to them. */
static void
test_not_alone(const Device &device)
{
	Array array = {false, {1, 2, 3, 4, 5}, {false, true, false, false, false}};
	const std::string good = array_bytes(array, 4, true);

	for (int what = 0; what < 6; what++)
	{
		std::string bytes = good;
		Program program;
		GjInstr load = op(GJ_OP_LOAD_T, 0, 0, 0, 0);
		uint32_t found = 0;
		Column c;

		if (what == 1)
			bytes[20] = (char) (bytes[20] | 0x80); /* behind the bitmap's last bit */
		else if (what == 2)
			bytes[22] = 1; /* between the bitmap and the elements */
		else if (what == 3)
			bytes.append(4, '\0'); /* behind the elements */
		else if (what == 4)
			bytes[8] = 25; /* elements of another type */
		else if (what == 5)
		{
			array.nulls[1] = false; /* a bitmap that is of no use */
			bytes = array_bytes(array, 4, true);
		}
		load.n = GJ_BYTES_ARRAY;
		c.type = {GJ_REF, 8, 1, 0};
		add_value(&c, bytes, false);
		program.types = {c.type};
		program.expr(GJ_BOOL, {load, op(GJ_OP_MOVE, 1, 0, 0), op(GJ_OP_EQ_T, 0, 0, 1)});

		Queue q(device, program);
		const GjView view = q.view({c}, 1, {});

		check(q.ops->columns->select(q.queue, &view, 0, (uint32_t *) q.alloc(8), &found) ==
				  (what == 0 ? GJ_OK : GJ_UNKNOWN_VALUE),
			  "an array with other bytes", std::to_string(what));
	}
}

/* Values of pairs, in the place of row ids, and the similarity that they make. */
static void
test_pair_values(const Device &device, Random &random)
{
	static const uint32_t predicates[] = {GJ_SETS_JACCARD, GJ_SETS_COSINE, GJ_SETS_DICE,
										  GJ_SETS_OVERLAP_COEFFICIENT};
	const uint32_t n = 5000;
	Program program;
	std::vector<std::vector<uint32_t>> rows(4);
	std::vector<Column> columns = {random_column(random, GJ_INT4, 4, 0, n, 0, 0)};

	program.types = {columns[0].type};
	program.expr(GJ_INT8, {op(GJ_OP_LOAD_PAIR, 0, 0, 0, 2)});
	for (uint32_t predicate : predicates)
		program.expr(GJ_FLOAT8,
					 {op(GJ_OP_LOAD_PAIR, 0, 0, 0, 1), op(GJ_OP_LOAD_PAIR, 1, 0, 0, 2),
					  op(GJ_OP_LOAD_PAIR, 2, 0, 0, 3), op(GJ_OP_SIMILARITY, 0, 0, 1, predicate)});
	for (uint32_t i = 0; i < n; i++)
	{
		const bool none = random() % 6 == 0;
		const uint32_t na = random() % 9 == 0 ? 0 : (uint32_t) (random() % 1000);
		const uint32_t nb = random() % 9 == 0 ? 0 : (uint32_t) (random() % 1000);

		rows[0].push_back(i);
		rows[1].push_back(none ? GJ_NO_ROW : (uint32_t) (random() % (std::min(na, nb) + 1)));
		rows[2].push_back(none ? GJ_NO_ROW : na);
		rows[3].push_back(none ? GJ_NO_ROW : nb);
	}

	Queue q(device, program);
	const GjView view = q.view(columns, n, rows);

	for (uint32_t e = 0; e < 1 + sizeof(predicates) / sizeof(predicates[0]); e++)
	{
		GjKeys keys = {};
		bool same = true;

		keys.nkeys = 1;
		keys.nrows = n;
		keys.value[0] = (int64_t *) q.alloc(n * sizeof(int64_t));
		keys.null = (uint8_t *) q.alloc(n);
		check(q.ops->columns->keys(q.queue, &view, 0, n, e, &keys) == GJ_OK &&
				  q.ops->queues->sync(q.queue) == GJ_OK,
			  "keys of pair values", q.ops->queues->queue_error(q.queue));

		const std::vector<int64_t> values = q.download(keys.value[0], n);
		const std::vector<uint8_t> nulls = q.download(keys.null, n);

		for (uint32_t i = 0; i < n; i++)
		{
			const bool none = rows[1][i] == GJ_NO_ROW;
			const int64_t expected =
				e == 0 ? (int64_t) rows[2][i]
					   : gj_key_bits(gj_double_to_bits(gj_set_similarity(
										 predicates[e - 1], rows[1][i], rows[2][i], rows[3][i])),
									 true);

			same &= (nulls[i] != 0) == none && (none || values[i] == expected);
		}
		check(same, "pair values", std::to_string(e));
	}
}

void
test_array_sets(const Device &device)
{
	Random random(11);

	for (uint32_t width = 2; width <= 8; width *= 2)
	{
		test_shape(device, random, 1, width, 5);
		test_shape(device, random, 300, width, 3);
		test_shape(device, random, quick ? 2000 : 20000, width, 12);
		test_shape(device, random, 40, width, 3000);
	}
	test_damaged(device, random);
	for (const uint32_t width : {2u, 4u, 8u})
		test_equal(device, random, width);
	test_not_alone(device);
	test_pair_values(device, random);
	group(device.ops->name, "array_sizes, array_sets, pair values");
}
