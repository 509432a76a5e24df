/*
 * pack_offsets.cu
 *	  Tests of offsets: columns of references whose values lie one behind the other.
 */
#include <algorithm>
#include <set>

#include "test.cuh"

/* A column of references, and what it refers to. */
struct Texts
{
	Column column;
	std::vector<std::string> text; /* NULL: empty */
	bool held = false;             /* a value that counts is held */
};

/* Lengths of a case: below `most`, but for one row of so many `beside`. */
struct Lengths
{
	const char *name;
	uint32_t most;
	uint32_t beside;
};

static Texts
make_texts(Random &random, uint32_t n, const Lengths &lengths, uint32_t nulls_of, bool held)
{
	Texts texts = {{{GJ_REF, 8, 1, 1}, Bytes((size_t) n * 8), {}, Bytes(8, 1)}, {}, false};

	for (uint32_t i = 0; i < n; i++)
	{
		const bool null = nulls_of > 0 && random() % nulls_of == 0;
		const bool is_held = held && i == n / 2;
		std::string text(lengths.most > 0 ? random() % lengths.most : 0, '\0');
		const size_t offset = texts.column.heap.size();
		uint64_t ref;

		if (lengths.beside > 0 && i == n / 3)
			text.resize(lengths.beside);
		for (char &c : text)
			c = (char) (random() % 3);
		texts.column.heap.resize(offset + (text.size() + 7) / 8 * 8, 0xEE);
		memcpy(&texts.column.heap[offset], text.data(), text.size());
		ref = is_held ? gj_ref_make(17, GJ_REF_HELD) : gj_ref_make(offset, text.size());
		if (nulls_of > 0)
			texts.column.nulls.push_back(null);
		/* a NULL has a reference that nobody looks at */
		if (null)
			ref = UINT64_C(0x7777777777777777);
		texts.held |= is_held && !null;
		texts.text.push_back(null || is_held ? "" : text);
		memcpy(&texts.column.data[(size_t) i * 8], &ref, 8);
	}
	return texts;
}

/* True if references lead to texts first, ... */
static bool
lead_to(const std::vector<uint64_t> &refs, const Bytes &heap, const Texts &texts, uint32_t first)
{
	bool same = true;

	for (size_t i = 0; i < refs.size() && same; i++)
	{
		const std::string &text = texts.text[first + i];

		same = gj_ref_length(refs[i]) == text.size() &&
			   gj_ref_offset(refs[i]) + text.size() <= heap.size() &&
			   memcmp(heap.data() + gj_ref_offset(refs[i]), text.data(), text.size()) == 0;
	}
	return same;
}

/* What find_offsets says. */
static GjOffsets
check_offsets(Queue &q, const GjColumn &plain, const Texts &texts, const std::string &where)
{
	const uint32_t n = (uint32_t) texts.text.size();
	uint64_t *device_at = (uint64_t *) q.alloc(((size_t) n + 1) * 8);
	std::vector<uint64_t> expected = {0};
	GjOffsets offsets = {};
	uint64_t widest = 0;

	for (const std::string &text : texts.text)
		expected.push_back(expected.back() + text.size());
	for (uint32_t i = 0; i <= n; i++)
		widest = std::max(widest, expected[i] - expected[i / GJ_OFFSET_ROWS * GJ_OFFSET_ROWS]);
	check(q.ops->columns->find_offsets(q.queue, &plain, n, device_at, &offsets) == GJ_OK,
		  "find_offsets", where);
	if (texts.held)
		return offsets;
	check(q.download(device_at, (size_t) n + 1) == expected, "offsets", where);
	check(offsets.nbytes == expected.back() && offsets.widest == widest, "offsets", where);
	return offsets;
}

/* Values that are moved, with references to them. */
static void
check_moved(Queue &q, const GjColumn &plain, const Texts &texts, uint64_t nbytes,
			const std::string &where)
{
	const uint32_t n = (uint32_t) texts.text.size();
	uint64_t *at = (uint64_t *) q.alloc(((size_t) n + 1) * 8);
	uint64_t *refs = (uint64_t *) q.alloc((size_t) n * 8);
	uint8_t *heap = (uint8_t *) q.alloc(nbytes + 24);
	GjOffsets offsets;

	check(q.ops->columns->find_offsets(q.queue, &plain, n, at, &offsets) == GJ_OK &&
			  q.ops->columns->move_values(q.queue, &plain, n, at, heap + 13, 13, refs) == GJ_OK,
		  "move_values", where);
	check(lead_to(q.download(refs, n), q.download(heap, 13 + nbytes), texts, 0), "moved values",
		  where);
}

/* The references of rows first, ... of packed columns, unpacked together. */
static void
check_unpacked(Queue &q, const GjColumn &packed, const Texts &texts, const Bytes &heap,
			   const std::string &where)
{
	const uint32_t n = (uint32_t) texts.text.size();
	const std::pair<uint32_t, uint32_t> ranges[] = {
		{0, n},         {n / 3, n / 2}, {n - 1, n},
		{0, 1},         {n / 2, n},     {std::min(n, 255u), std::min(n, 258u)},
		{n / 2, n / 2},
	};
	std::vector<GjPackColumn> work;

	for (const auto &range : ranges)
	{
		GjPackColumn one = {packed, q.alloc((size_t) n * 8 + 8), range.second - range.first};

		gj_column_skip(&one.from, range.first);
		work.push_back(one);
	}
	check(q.ops->columns->unpack(q.queue, work.data(), (uint32_t) work.size()) == GJ_OK, "unpack",
		  where);
	for (uint32_t i = 0; i < work.size(); i++)
	{
		std::vector<uint64_t> refs = q.download((const uint64_t *) work[i].to, work[i].nrows);

		for (uint32_t r = 0; r < refs.size(); r++)
			if (texts.column.null(ranges[i].first + r))
				refs[r] = 0;
		check(lead_to(refs, heap, texts, ranges[i].first), "unpacked references",
			  where + ", range " + std::to_string(i));
	}
}

/* References to values that lie anywhere: checked, moved to multiples of 8, numbered. */
static void
check_anywhere(Queue &q, const GjColumn &packed, const Texts &texts, const Bytes &heap,
			   const std::string &where)
{
	const uint32_t n = (uint32_t) texts.text.size();
	GjColumn plain = packed;
	GjPackColumn work = {packed, q.alloc((size_t) n * 8), n};
	uint64_t *refs = (uint64_t *) work.to;
	uint64_t *heap_at = (uint64_t *) q.alloc(((size_t) n + 1) * 8);
	uint32_t *number = (uint32_t *) q.alloc((size_t) n * 4);
	uint64_t *value = (uint64_t *) q.alloc((size_t) n * 8);
	std::set<std::string> different;
	std::string moved;
	uint32_t nvalues = 0;
	uint64_t total;
	uint8_t *to;

	for (uint32_t i = 0; i < n; i++)
	{
		moved += texts.text[i];
		moved.resize((moved.size() + 7) / 8 * 8);
		if (!texts.column.null(i))
			different.insert(texts.text[i]);
	}
	plain.packed = 0;
	plain.data = refs;
	check(q.ops->columns->unpack(q.queue, &work, 1) == GJ_OK &&
			  q.ops->columns->rebase_refs(q.queue, refs, n, 0, heap.size()) == GJ_OK &&
			  q.ops->queues->sync(q.queue) == GJ_OK,
		  "references to anywhere", where);
	check(q.ops->columns->number_values(q.queue, &plain, n, n, number, value, &nvalues) == GJ_OK &&
			  nvalues == std::max(different.size(), (size_t) 1),
		  "number_values", where);
	check(q.ops->exchange->ref_bytes(q.queue, refs, n, heap_at) == GJ_OK, "ref_bytes", where);
	total = q.download(heap_at, (size_t) n + 1)[n];
	to = (uint8_t *) q.upload(Bytes(total + 8, 0xEE));
	check(q.ops->exchange->move_refs(q.queue, refs, n, packed.heap, heap_at, to, 0) == GJ_OK,
		  "move_refs", where);
	const Bytes got = q.download(to, total);

	check(std::string(got.begin(), got.end()) == moved, "moved to multiples of 8", where);
}

/* Rows whose text is what row n / 2 has. */
static void
check_selected(const Device &device, const Texts &texts, const std::string &where)
{
	const uint32_t n = (uint32_t) texts.text.size();
	const std::string &wanted = texts.text[n / 2];
	GjInstr text = op(GJ_OP_CONST_T, 1, 1, 1, 0);
	GjInstr column = load(0, 0);
	std::vector<uint32_t> expected;
	std::vector<uint32_t> rows[3];
	Program program;

	program.types = {{GJ_REF, 8, 1, 0}};
	program.constants.resize((wanted.size() + 7) / 8 + 1);
	memcpy(program.constants.data(), wanted.data(), wanted.size());
	text.n = (uint32_t) wanted.size();
	column.op = GJ_OP_LOAD_T;
	column.n = GJ_BYTES_FIXED;
	program.expr(GJ_BOOL, {column, text, op(GJ_OP_EQ_T, 0, 0, 1)});
	for (uint32_t i = 0; i < n; i++)
		if (!texts.column.null(i) && texts.text[i] == wanted)
			expected.push_back(i);

	Queue q(device, program);
	GjColumn packed = q.offset_refs(q.upload_refs(texts.column), n);

	/* all rows, and those from one on */
	for (uint32_t first : {0u, n / 2})
	{
		uint32_t *positions = (uint32_t *) q.alloc((size_t) n * 4);
		GjColumn from = packed;
		GjView view = {};
		uint32_t m = 0;

		gj_column_skip(&from, first);
		view.nrows = n - first;
		check(q.ops->columns->set_columns(q.queue, &from, 1, &view.columns) == GJ_OK &&
				  q.ops->columns->select(q.queue, &view, 0, positions, &m) == GJ_OK,
			  "select", where);
		std::vector<uint32_t> got = q.download(positions, m);

		for (uint32_t &row : got)
			row += first;
		check(got == std::vector<uint32_t>(
						 std::lower_bound(expected.begin(), expected.end(), first), expected.end()),
			  "selected", where);
	}
}

static void
check_texts(const Device &device, Random &random, uint32_t n, const Lengths &lengths,
			uint32_t nulls_of, bool held)
{
	Program program;
	Queue q(device, program);
	const std::string where = std::string(lengths.name) + ", " + at(n);
	const Texts texts = make_texts(random, n, lengths, nulls_of, held);
	const GjColumn plain = q.upload_refs(texts.column);
	const GjOffsets offsets = check_offsets(q, plain, texts, where);
	const GjColumn packed = q.offset_refs(plain, n);

	if (texts.held)
	{
		check(!packed.packed, "a held value has no offset", where);
		return;
	}
	check(gj_column_has_offsets(&packed) && packed.packed == (offsets.widest <= UINT16_MAX ? 2 : 4),
		  "bytes of offsets", where);

	const uint64_t heap_size = 8 + gj_before_values(&packed, n) + offsets.nbytes;
	const Bytes heap = q.download(packed.heap, heap_size);

	check_moved(q, plain, texts, offsets.nbytes, where);
	check_unpacked(q, packed, texts, heap, where);
	check_anywhere(q, packed, texts, heap, where);
	if (texts.text[n / 2].size() <= GJ_MAX_TEXT && lengths.beside <= GJ_MAX_TEXT)
		check_selected(device, texts, where);
}

void
test_pack_offsets(const Device &device)
{
	static const Lengths cases[] = {
		{"short", 8, 0},
		{"comments", 60, 0},
		{"empty", 0, 0},
		{"one alone", 0, 1000},
		{"all it can", 1, 65535},
		{"one more", 1, 65536},
		{"a large one", 20, 70000},
		{"long", 600, 0},
	};
	Random random(29);

	for (uint32_t n : {1u, 2u, 31u, 255u, 256u, 257u, 511u, 512u, 513u, 5000u, 100000u})
	{
		if (quick && n > 10000)
			continue;
		for (const Lengths &lengths : cases)
			for (uint32_t nulls_of : {0, 1, 3})
				if (n <= 10000 || lengths.most <= 60)
					check_texts(device, random, n, lengths, nulls_of, false);
		check_texts(device, random, n, cases[1], 0, true);
		check_texts(device, random, n, cases[1], 2, true);
	}
	group(device.ops->name, "pack_offsets");
}
