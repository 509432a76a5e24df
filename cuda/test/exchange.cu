/*
 * exchange.cu
 *	  Tests of split, ref_bytes and move_refs.
 */
#include <algorithm>
#include <string.h>

#include "rows/hash.h"
#include "test.cuh"

/* ---- split */

/* Rows up to where the next part can start. */
static uint32_t
aligned(size_t n)
{
	return (uint32_t) ((n + GJ_SPLIT_ALIGN - 1) / GJ_SPLIT_ALIGN * GJ_SPLIT_ALIGN);
}

/* Columns of the rows that are split: all widths, and what keys can be. */
static const struct
{
	GjKind kind;
	uint32_t width;
} split_columns[] = {{GJ_INT8, 8},  {GJ_INT4, 4},  {GJ_FLOAT8, 8}, {GJ_INT2, 2},   {GJ_BOOL, 1},
					 {GJ_UINT4, 4}, {GJ_UINT1, 1}, {GJ_FLOAT4, 4}, {GJ_BYTES, 16}, {GJ_REF, 8}};

static const uint32_t ncolumns = sizeof(split_columns) / sizeof(split_columns[0]);
static const uint32_t not_wanted = 3; /* a column that is not sent, */
static const uint32_t no_nulls = 4;   /* and one whose null flags are wanted though it has none */

/* What is split, on the host. */
struct HostRows
{
	std::vector<std::vector<Column>> piece;
	std::vector<std::vector<uint32_t>> rows; /* empty: all rows of the piece */
	std::vector<uint32_t> nrows;             /* of each piece */
	std::vector<uint32_t> keys;              /* columns */
};

static const uint8_t *
value_of(const Column &c, uint32_t row)
{
	return c.data.data() + (size_t) row * c.type.width;
}

static bool
is_float(const Column &c)
{
	return c.type.kind == GJ_FLOAT8 || c.type.kind == GJ_FLOAT4;
}

/* Adds a piece of m rows, all there are or a list of them. */
static void
add_piece(HostRows &host, Random &random, uint32_t m, uint32_t range, bool list)
{
	const uint32_t all = list ? m + m / 2 + 1 : m;
	std::vector<Column> columns;

	for (uint32_t c = 0; c < ncolumns; c++)
		columns.push_back(random_column(random, split_columns[c].kind, split_columns[c].width, 0,
										all, c != no_nulls && random() % 2 ? 0.1 : 0.0, range));
	host.piece.push_back(columns);
	host.rows.push_back(list ? random_rows(random, m, all) : std::vector<uint32_t>());
	host.nrows.push_back(m);
}

/* n rows in pieces of many sizes; with `lists` every other one is a list of rows. */
static HostRows
random_pieces(Random &random, uint32_t n, uint32_t range, const std::vector<uint32_t> &keys,
			  bool lists = true)
{
	HostRows host;

	host.keys = keys;
	for (uint32_t done = 0, p = 0; done < n || p < 2; p++)
	{
		const uint32_t left = n - done;
		/* also none, a tile's worth and less, and what is left */
		const uint32_t some[] = {left, 0, 1, 511, 512, 513, 1023, 1025, 8191, 8193, left / 2, left};
		const uint32_t m = p > 200 ? left : std::min(left, some[random() % 12]);

		add_piece(host, random, m, range, random() % 2 == 0 && lists);
		done += m;
	}
	return host;
}

/* Hash of a row's keys; false: one of them is NULL. */
static bool
hash_of(const HostRows &host, uint32_t p, uint32_t row, uint64_t *hash)
{
	*hash = 0;
	for (uint32_t k : host.keys)
	{
		const Column &c = host.piece[p][k];

		if (c.null(row))
			return false;
		*hash = gj_hash_combine(*hash, gj_key_bits(c.value(row), is_float(c)));
	}
	return true;
}

/* Keys as `keys` computes them. */
static GjKeys
computed_keys(Queue &q, const HostRows &host)
{
	std::vector<std::vector<int64_t>> value(host.keys.size());
	std::vector<uint8_t> null;
	GjKeys keys = {};

	for (uint32_t p = 0; p < host.piece.size(); p++)
	{
		for (uint32_t i = 0; i < host.nrows[p]; i++)
		{
			const uint32_t row = host.rows[p].empty() ? i : host.rows[p][i];
			bool none = false;

			for (uint32_t k = 0; k < host.keys.size(); k++)
			{
				const Column &c = host.piece[p][host.keys[k]];

				value[k].push_back(c.null(row) ? 0 : gj_key_bits(c.value(row), is_float(c)));
				none |= c.null(row);
			}
			null.push_back(none);
		}
	}
	keys.nkeys = (uint32_t) host.keys.size();
	keys.nrows = (uint32_t) null.size();
	for (uint32_t k = 0; k < keys.nkeys; k++)
		keys.value[k] = q.upload(value[k]);
	keys.null = q.upload(null);
	return keys;
}

/* A row of a piece. */
struct Place
{
	uint32_t piece;
	uint32_t row;
};

/* The rows of each part, in their order. */
static std::vector<std::vector<Place>>
rows_by_part(const HostRows &host, uint32_t nparts, uint32_t null_part)
{
	std::vector<std::vector<Place>> places(nparts);

	for (uint32_t p = 0; p < host.piece.size(); p++)
	{
		for (uint32_t i = 0; i < host.nrows[p]; i++)
		{
			const uint32_t row = host.rows[p].empty() ? i : host.rows[p][i];
			uint64_t hash;

			places[hash_of(host, p, row, &hash) ? gj_hash_part(hash, nparts) : null_part].push_back(
				{p, row});
		}
	}
	return places;
}

/* The rows on the device, and where they are to go. */
struct DeviceRows
{
	std::vector<std::vector<GjColumn>> columns;
	std::vector<GjSplitPiece> pieces;
	std::vector<GjColumn> to;
	GjSplit split;
};

/* Columns with room for so many rows; what nobody writes is 0xEE. */
static DeviceRows
upload(Queue &q, const HostRows &host, uint32_t nparts, size_t room)
{
	const uint32_t npieces = (uint32_t) host.piece.size();
	DeviceRows d = {};

	d.columns.resize(npieces);
	d.pieces.resize(npieces);
	d.to.resize(ncolumns);
	for (uint32_t p = 0; p < npieces; p++)
	{
		for (const Column &c : host.piece[p])
		{
			GjColumn column = {};

			column.kind = c.type.kind;
			column.width = c.type.width;
			column.data = q.upload(c.data);
			column.nulls = c.nulls.empty() ? NULL : q.upload(c.nulls);
			d.columns[p].push_back(column);
		}
		/* nobody reads it, and it may be missing */
		d.columns[p][not_wanted].data = NULL;
		d.pieces[p].columns = d.columns[p].data();
		d.pieces[p].rows = host.rows[p].empty() ? NULL : q.upload(host.rows[p]);
		d.pieces[p].nrows = host.nrows[p];
	}
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		d.to[c].kind = split_columns[c].kind;
		d.to[c].width = split_columns[c].width;
		if (c == not_wanted)
			continue;
		d.to[c].data = q.upload(Bytes(room * split_columns[c].width, 0xEE));
		d.to[c].nulls = q.upload(Bytes(room, 0xEE));
	}
	d.to[0].nulls = NULL;
	d.split.nparts = nparts;
	d.split.null_part = nparts / 2;
	d.split.npieces = npieces;
	d.split.pieces = d.pieces.data();
	d.split.ncolumns = ncolumns;
	d.split.nkeys = (uint32_t) host.keys.size();
	for (uint32_t k = 0; k < d.split.nkeys; k++)
		d.split.key[k] = host.keys[k];
	return d;
}

/* What a split makes of a column. */
struct Expected
{
	Bytes data;
	Bytes nulls;
};

static void
check_split(const Device &device, const HostRows &host, uint32_t nparts, bool computed,
			const std::string &where)
{
	Program program;
	Queue q(device, program);
	const size_t guard = 64;
	const std::vector<std::vector<Place>> places = rows_by_part(host, nparts, nparts / 2);
	std::vector<Expected> expected(ncolumns);
	GjSplitParts expected_parts = {};
	const GjSplitParts *parts = NULL;
	GjKeys keys;
	uint32_t n = 0;    /* rows, */
	uint32_t room = 0; /* and those with what lies between parts */

	for (uint32_t part = 0; part < nparts; part++)
	{
		/* nothing is written between parts */
		room = aligned(room);
		for (uint32_t c = 0; c < ncolumns; c++)
		{
			expected[c].data.resize((size_t) room * split_columns[c].width, 0xEE);
			expected[c].nulls.resize(room, 0xEE);
			for (const Place &place : places[part])
			{
				const Column &from = host.piece[place.piece][c];

				expected[c].data.insert(expected[c].data.end(), value_of(from, place.row),
										value_of(from, place.row) + from.type.width);
				expected[c].nulls.push_back(from.null(place.row));
			}
		}
		expected_parts.start[part] = room;
		room += (uint32_t) places[part].size();
		n += (uint32_t) places[part].size();
		expected_parts.end[part] = room;
	}
	check(room <= gj_split_room(n, nparts), "room", where);

	DeviceRows d = upload(q, host, nparts, room + guard);

	for (uint32_t c = 0; c < ncolumns; c++)
	{
		expected[c].data.resize(((size_t) room + guard) * split_columns[c].width, 0xEE);
		expected[c].nulls.resize(room + guard, 0xEE);
	}
	if (computed)
	{
		keys = computed_keys(q, host);
		d.split.keys = &keys;
	}
	/* with memory that was reserved, and without */
	if (nparts % 2 == 1)
		check(q.ops->exchange->split_reserve(q.queue, n, ncolumns, d.split.nkeys) == GJ_OK,
			  "split_reserve", where);
	check(q.ops->exchange->split(q.queue, &d.split, d.to.data(), never, NULL, &parts) == GJ_OK,
		  "split", where);
	check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", where);
	check(!parts->full &&
			  memcmp(parts->start, expected_parts.start, nparts * sizeof(uint32_t)) == 0 &&
			  memcmp(parts->end, expected_parts.end, nparts * sizeof(uint32_t)) == 0,
		  "places of parts", where);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		const std::string column = where + ", column " + std::to_string(c);

		if (d.to[c].data)
			check(q.download((const uint8_t *) d.to[c].data, expected[c].data.size()) ==
					  expected[c].data,
				  "values by part", column);
		if (d.to[c].nulls)
			check(q.download(d.to[c].nulls, expected[c].nulls.size()) == expected[c].nulls,
				  "null flags by part", column);
	}
}

/* Values and null flags of all columns that are wanted, of one row. */
static std::string
row_text(const std::vector<Expected> &columns, size_t row)
{
	std::string text;

	for (uint32_t c = 0; c < ncolumns; c++)
	{
		const uint32_t width = split_columns[c].width;

		if (c == not_wanted)
			continue;
		text.append((const char *) columns[c].data.data() + row * width, width);
		if (c > 0)
			text.push_back((char) columns[c].nulls[row]);
	}
	return text;
}

/* Parts a stride apart, whose rows may come in any order; `fits`: no part has more rows than that.
 */
static void
check_strides(const Device &device, const HostRows &host, uint32_t nparts, uint32_t stride,
			  bool fits, const std::string &where)
{
	Program program;
	Queue q(device, program);
	const std::vector<std::vector<Place>> places = rows_by_part(host, nparts, nparts / 2);
	uint32_t n = 0;

	for (const std::vector<Place> &part : places)
		n += (uint32_t) part.size();

	const size_t room = std::max(gj_split_room(n, nparts), (uint64_t) nparts * stride) + 64;
	DeviceRows d = upload(q, host, nparts, room);
	const GjSplitParts *parts = NULL;
	std::vector<Expected> got(ncolumns);
	std::vector<bool> written(room);

	d.split.stride = stride;
	check(q.ops->exchange->split(q.queue, &d.split, d.to.data(), never, NULL, &parts) == GJ_OK,
		  "split", where);
	check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", where);
	/* a device may ignore strides */
	check(fits ? !parts->full : parts->full || parts->start[1] == aligned(places[0].size()),
		  "room of parts", where);
	if (parts->full)
		return;
	for (uint32_t c = 0; c < ncolumns; c++)
		if (c != not_wanted)
		{
			got[c].data = q.download((const uint8_t *) d.to[c].data, room * d.to[c].width);
			if (c > 0)
				got[c].nulls = q.download(d.to[c].nulls, room);
		}
	for (uint32_t part = 0; part < nparts; part++)
	{
		const std::string which = where + ", part " + std::to_string(part);
		const uint32_t start = parts->start[part];
		std::vector<std::string> wanted, found;

		check(start % GJ_SPLIT_ALIGN == 0 && parts->end[part] - start == places[part].size() &&
				  parts->end[part] <= room - 64,
			  "place of a part", which);
		if (parts->end[part] - start != places[part].size() || parts->end[part] > room - 64)
			return;
		for (const Place &place : places[part])
		{
			std::vector<Expected> row(ncolumns);

			for (uint32_t c = 0; c < ncolumns; c++)
			{
				const Column &from = host.piece[place.piece][c];

				row[c].data.assign(value_of(from, place.row),
								   value_of(from, place.row) + from.type.width);
				row[c].nulls.assign(1, from.null(place.row));
			}
			wanted.push_back(row_text(row, 0));
		}
		for (uint32_t i = start; i < parts->end[part]; i++)
		{
			found.push_back(row_text(got, i));
			written[i] = true;
		}
		std::sort(wanted.begin(), wanted.end());
		std::sort(found.begin(), found.end());
		check(found == wanted, "rows of a part", which);
	}
	/* nothing else is written */
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		const uint32_t width = split_columns[c].width;
		bool untouched = true;

		for (size_t i = 0; i < room && c != not_wanted; i++)
			for (uint32_t b = 0; b < width && !written[i]; b++)
				untouched &= got[c].data[i * width + b] == 0xEE;
		check(untouched, "what lies between parts", where + ", column " + std::to_string(c));
	}
}

/* The same with one key, a column that is never NULL. */
static HostRows
plain_pieces(HostRows host, uint32_t key)
{
	host.keys = {key};
	for (std::vector<Column> &columns : host.piece)
		columns[key].nulls.clear();
	return host;
}

/* Splits them with all numbers of places for a part. */
static void
check_all_strides(const Device &device, const HostRows &host, uint32_t nparts,
				  const std::string &where)
{
	size_t most = 0;

	for (const std::vector<Place> &part : rows_by_part(host, nparts, nparts / 2))
		most = std::max(most, part.size());

	const uint32_t least = aligned(most);

	check_strides(device, host, nparts, least + GJ_SPLIT_ALIGN, true,
				  where + ", more than is needed");
	if (least == 0)
		return;
	check_strides(device, host, nparts, least, true, where + ", what is needed");
	if (least > GJ_SPLIT_ALIGN)
		check_strides(device, host, nparts, least - GJ_SPLIT_ALIGN, false, where + ", too little");
}

static void
test_strides(const Device &device)
{
	Random random(79);

	for (uint32_t n : sizes)
	{
		for (uint32_t nparts : {2u, 3u, 4u, 8u, 16u})
		{
			if (n > 100000 && nparts != 3)
				continue;
			for (uint32_t key : {0u, 1u, 2u})
			{
				for (bool lists : {false, true})
					check_all_strides(
						device, plain_pieces(random_pieces(random, n, n, {key}, lists), key),
						nparts,
						at(n) + ", parts = " + std::to_string(nparts) + ", strides, key " +
							std::to_string(key) + (lists ? ", lists" : ""));
			}
			/* not of one plain key */
			if (n > 0)
				check_strides(device, random_pieces(random, n, 100, {1, 2, 7}), nparts, aligned(n),
							  true, at(n) + ", strides, three keys");
		}
	}
	for (uint32_t npieces : {33u, 100u, (uint32_t) GJ_SPLIT_PIECES})
	{
		HostRows host;

		for (uint32_t p = 0; p < npieces; p++)
			add_piece(host, random, random() % 1500, 1000, p % 3 == 0);
		check_all_strides(device, plain_pieces(host, npieces % 2), 5,
						  std::to_string(npieces) + " pieces");
	}
	for (uint32_t n : {GJ_SPLIT_STRIDE_ROWS, 35651584u, 64u * 1024 * 1024})
		for (uint32_t nparts = 2; nparts <= GJ_SPLIT_PARTS; nparts++)
		{
			const uint32_t stride = gj_split_stride(n, nparts);

			check(stride % GJ_SPLIT_ALIGN == 0 && stride > n / nparts + n / nparts / 70 &&
					  (uint64_t) stride * nparts <= gj_split_room(n, nparts),
				  "stride", at(n));
		}
}

static void
test_split(const Device &device)
{
	Random random(71);

	for (uint32_t n : sizes)
	{
		for (uint32_t nparts : {1u, 2u, 3u, 4u, 8u, 15u, 16u})
		{
			const std::string where = at(n) + ", parts = " + std::to_string(nparts);

			if (n > 100000 && nparts != 3)
				continue;
			check_split(device, random_pieces(random, n, n < 100 ? 10 : n, {0}), nparts, false,
						where + ", one key");
			check_split(device, random_pieces(random, n, n, {1}), nparts, false,
						where + ", one key of 32 bits");
			check_split(device, random_pieces(random, n, 100, {1, 2, 7}), nparts, false,
						where + ", three keys");
			check_split(device, random_pieces(random, n, 100, {5, 6}), nparts, true,
						where + ", computed keys");
			/* most parts get nothing */
			check_split(device, random_pieces(random, n, 2, {4}), nparts, false,
						where + ", few keys");
		}
	}
}

/* Parts are about equally large, and hash slots within one are spread over a table. */
static void
test_parts(const Device &device)
{
	const uint32_t nparts = 4;
	const uint32_t n = 1 << 20;
	std::vector<uint32_t> rows(nparts);
	std::vector<uint32_t> low(nparts); /* in the first half of a table's slots */

	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t hash = gj_hash_combine(0, i);
		const uint32_t p = gj_hash_part(hash, nparts);

		rows[p]++;
		low[p] += gj_hash_slot(hash, 2) == 0;
	}
	for (uint32_t p = 0; p < nparts; p++)
	{
		check(rows[p] > n / nparts * 0.98 && rows[p] < n / nparts * 1.02, "size of a part",
			  std::to_string(rows[p]));
		check(low[p] > rows[p] * 0.48 && low[p] < rows[p] * 0.52, "slots of a part",
			  std::to_string(low[p]));
	}
}

/* ---- references */

/* References move in two pieces, to heaps that have something else before them. */
static void
test_refs(const Device &device)
{
	Program program;
	Random random(73);

	for (uint32_t n : sizes)
	{
		if (n > 100000)
			continue;
		Queue q(device, program);
		const Column c = random_column(random, GJ_REF, 8, 0, n, 0.1, 0);
		std::vector<uint64_t> refs((const uint64_t *) c.data.data(),
								   (const uint64_t *) c.data.data() + n);
		uint64_t *device_refs = q.upload(refs);
		uint64_t *heap_at = (uint64_t *) q.alloc(((size_t) n + 1) * sizeof(uint64_t));
		const uint8_t *heap = q.upload(c.heap);
		std::vector<uint64_t> at_refs;
		uint64_t total = 0;
		uint8_t *to;
		Bytes moved;
		bool same = true;

		for (uint64_t ref : refs)
		{
			at_refs.push_back(total);
			total += gj_ref_space(ref);
		}
		at_refs.push_back(total);
		check(q.ops->exchange->ref_bytes(q.queue, device_refs, n, heap_at) == GJ_OK, "ref_bytes",
			  at(n));
		check(q.download(heap_at, (size_t) n + 1) == at_refs, "places of bytes", at(n));
		to = (uint8_t *) q.alloc(total + 64);
		const uint32_t half = n / 3;

		check(q.ops->exchange->move_refs(q.queue, device_refs, half, heap, heap_at, to, 40) ==
					  GJ_OK &&
				  q.ops->exchange->move_refs(q.queue, device_refs + half, n - half, heap,
											 heap_at + half, to + at_refs[half], 80) == GJ_OK,
			  "move_refs", at(n));
		std::vector<uint64_t> after = q.download(device_refs, n);
		moved = q.download(to, total);
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t before = i < half ? 0 : at_refs[half];

			if (gj_ref_length(refs[i]) == GJ_REF_HELD)
				same &= after[i] == refs[i];
			else
				same &= gj_ref_length(after[i]) == gj_ref_length(refs[i]) &&
						gj_ref_offset(after[i]) == at_refs[i] - before + (i < half ? 40 : 80) &&
						(gj_ref_space(refs[i]) == 0 ||
						 memcmp(moved.data() + at_refs[i], c.heap.data() + gj_ref_offset(refs[i]),
								gj_ref_length(refs[i])) == 0);
		}
		check(same, "references and their bytes", at(n));
	}
}

void
test_exchange(const Device &device)
{
	test_split(device);
	test_strides(device);
	test_parts(device);
	test_refs(device);
	group(device.ops->name, "exchange");
}
