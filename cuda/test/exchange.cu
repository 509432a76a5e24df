/*
 * exchange.cu
 *	  Tests of split, pick_values, ref_bytes and move_refs.
 */
#include <string.h>

#include "../../src/rows/hash.h"
#include "test.cuh"

static std::string
at(uint32_t n)
{
	return "n = " + std::to_string(n);
}

/* ---- split */

/* Keys on the host. */
struct HostKeys
{
	std::vector<std::vector<int64_t>> value;
	std::vector<uint8_t> null;

	uint64_t
	hash(uint32_t i) const
	{
		uint64_t h = 0;

		for (const std::vector<int64_t> &v : value)
			h = gj_hash_combine(h, v[i]);
		return h;
	}
};

static uint32_t
part_of(const HostKeys &keys, const GjSplit &split, uint32_t i)
{
	const uint64_t hash = keys.hash(i);

	if (keys.null[i])
		return split.null_part;
	for (uint32_t h = 0; h < split.nheavy; h++)
	{
		if (split.heavy[h] == hash)
			return split.nparts;
	}
	return gj_hash_part(hash, split.nparts);
}

static void
check_split(Queue &q, const HostKeys &host, const GjSplit &split, const std::string &where)
{
	const uint32_t n = (uint32_t) host.null.size();
	uint32_t start[GJ_SPLIT_PARTS + 2];
	std::vector<uint32_t> expected;
	std::vector<uint32_t> starts;
	GjKeys keys = {};
	uint32_t *positions = (uint32_t *) q.alloc(n * sizeof(uint32_t) + 16);

	keys.nkeys = (uint32_t) host.value.size();
	keys.nrows = n;
	for (uint32_t k = 0; k < keys.nkeys; k++)
		keys.value[k] = q.upload(host.value[k]);
	keys.null = q.upload(host.null);
	for (uint32_t p = 0; p <= split.nparts; p++)
	{
		starts.push_back((uint32_t) expected.size());
		for (uint32_t i = 0; i < n; i++)
		{
			if (part_of(host, split, i) == p)
				expected.push_back(i);
		}
	}
	starts.push_back(n);
	/* with memory that was reserved, and without */
	if (split.nparts % 2 == 1)
		check(q.ops->split_reserve(q.queue, n) == GJ_OK, "split_reserve", where);
	check(q.ops->split(q.queue, &keys, &split, positions, start) == GJ_OK, "split", where);
	check(std::vector<uint32_t>(start, start + split.nparts + 2) == starts, "starts of parts",
		  where);
	check(q.download(positions, n) == expected, "rows by part", where);
}

static void
test_split(const Device &device)
{
	Program program;
	Random random(71);

	for (uint32_t n : sizes)
	{
		for (uint32_t nparts : {1u, 2u, 3u, 4u, 8u, 15u, 16u})
		{
			Queue q(device, program);
			HostKeys keys;
			GjSplit split = {};

			keys.value.resize(1 + nparts % 2);
			for (std::vector<int64_t> &v : keys.value)
			{
				for (uint32_t i = 0; i < n; i++)
					v.push_back((int64_t) (random() % (n < 100 ? 10 : n)));
			}
			for (uint32_t i = 0; i < n; i++)
				keys.null.push_back(random() % 8 == 0);
			split.nparts = nparts;
			split.null_part = nparts - 1;
			check_split(q, keys, split, at(n) + ", parts = " + std::to_string(nparts));
			/* as many heavy keys as there can be, most of them of rows */
			split.nheavy = GJ_SPLIT_HEAVY;
			for (uint32_t h = 0; h < GJ_SPLIT_HEAVY; h++)
				split.heavy[h] = h < n ? keys.hash(h) : random();
			check_split(q, keys, split, at(n) + ", heavy keys, parts = " + std::to_string(nparts));
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

/* ---- columns */

static void
test_pick_values(const Device &device)
{
	Program program;
	Random random(72);

	for (uint32_t n : sizes)
	{
		for (uint32_t width : {1u, 2u, 4u, 8u, 16u})
		{
			Queue q(device, program);
			const uint32_t nfrom = n / 2 + 1;
			Bytes from((size_t) nfrom * width);
			Bytes expected;
			std::vector<uint32_t> positions = random_rows(random, n, nfrom);
			uint8_t *to = (uint8_t *) q.alloc((size_t) n * width + 16);

			for (uint8_t &byte : from)
				byte = (uint8_t) random();
			for (uint32_t p : positions)
				expected.insert(expected.end(), from.begin() + (size_t) p * width,
								from.begin() + (size_t) (p + 1) * width);
			check(q.ops->pick_values(q.queue, to, q.upload(from), width, q.upload(positions), n) ==
					  GJ_OK,
				  "pick_values", at(n));
			check(q.download(to, expected.size()) == expected, "picked values",
				  at(n) + ", width = " + std::to_string(width));
		}
	}
}

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
		check(q.ops->ref_bytes(q.queue, device_refs, n, heap_at) == GJ_OK, "ref_bytes", at(n));
		check(q.download(heap_at, (size_t) n + 1) == at_refs, "places of bytes", at(n));
		to = (uint8_t *) q.alloc(total + 64);
		const uint32_t half = n / 3;

		check(q.ops->move_refs(q.queue, device_refs, half, heap, heap_at, to, 40) == GJ_OK &&
				  q.ops->move_refs(q.queue, device_refs + half, n - half, heap, heap_at + half,
								   to + at_refs[half], 80) == GJ_OK,
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
	test_parts(device);
	test_pick_values(device);
	test_refs(device);
	group(device.ops->name, "exchange");
}
