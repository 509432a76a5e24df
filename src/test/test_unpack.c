/*
 * test_unpack.c
 *	  Compressed bytes, unpacked in parts of any size, against what was packed; damaged ones.
 *
 * Values are made as they are packed: random literals and matches.  Each part ends where its memory
 * does, so that the address sanitizer sees what is written behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "sets/unpack.h"
#include "unit.h"

#define MAX_VALUE	400000
#define MAX_PACKED	(MAX_VALUE * 2)

/* A value, what is packed of it, and how much of that has been read. */
typedef struct Value
{
	uint8_t		bytes[MAX_VALUE];
	uint32_t	n;
	uint8_t		packed[MAX_PACKED];
	uint32_t	npacked;
	uint32_t	at;
	uint32_t	most;			/* bytes that are read at once */
} Value;

static Value value;
static GjUnpacker unpacker;

static uint32_t
read_some(void *arg, uint8_t *to, uint32_t room)
{
	uint32_t	n = value.npacked - value.at;

	n = n < room ? n : room;
	n = n < value.most ? n : value.most;
	memcpy(to, value.packed + value.at, n);
	value.at += n;
	return n;
}

static uint32_t
below(uint32_t n)
{
	return unit_random() % n;
}

static void
put(uint8_t byte)
{
	value.packed[value.npacked++] = byte;
}

static void
add_literals(uint32_t n)
{
	while (n-- > 0)
		put(value.bytes[value.n++] = unit_random());
}

static void
add_match(uint32_t offset, uint32_t length)
{
	for (; length > 0; length--, value.n++)
		value.bytes[value.n] = value.bytes[value.n - offset];
}

/* How far back a match begins: near, or anywhere. */
static uint32_t
random_offset(uint32_t most)
{
	uint32_t	offset = 1 + below(below(2) ? 20 : most);

	offset = offset < most ? offset : most;
	return offset < value.n ? offset : value.n;
}

static void
pack_pglz(uint32_t n)
{
	while (value.n < n)
	{
		uint32_t	control = value.npacked;

		put(0);
		for (int bit = 0; bit < 8 && value.n < n; bit++)
		{
			uint32_t	length = 3 + below(below(8) ? 9 : 271);
			uint32_t	offset = random_offset(4095);

			if (value.n == 0 || below(2))
			{
				add_literals(1);
				continue;
			}
			value.packed[control] |= 1 << bit;
			put((offset >> 4 & 0xf0) | (length < 18 ? length - 3 : 15));
			put(offset);
			if (length >= 18)
				put(length - 18);
			add_match(offset, length);
		}
	}
}

static void
put_length(uint32_t length)
{
	if (length < 15)
		return;
	for (length -= 15; length >= 255; length -= 255)
		put(255);
	put(length);
}

static void
pack_lz4(uint32_t n)
{
	while (value.n < n)
	{
		uint32_t	literals = below(below(8) ? 18 : 900) + (value.n == 0);
		uint32_t	length = 4 + below(below(8) ? 20 : 900);
		uint32_t	code = length - 4;
		uint32_t	offset;

		put((literals < 15 ? literals : 15) << 4 | (code < 15 ? code : 15));
		put_length(literals);
		add_literals(literals);
		offset = random_offset(65535);
		put(offset);
		put(offset >> 8);
		put_length(code);
		add_match(offset, length);
	}
	put(5 << 4);
	add_literals(5);
}

static void
make_value(GjPacking packing, uint32_t n)
{
	value.n = value.npacked = 0;
	if (packing == GJ_PACKED_PGLZ)
		pack_pglz(n);
	else
		pack_lz4(n);
}

/* Unpack n bytes in random parts.  False: damaged, or more is there. */
static bool
unpack(GjPacking packing, uint32_t n, bool compare)
{
	/* a part has its price, the window */
	uint32_t	largest = 1 + below(n < 3000 ? 30 : 150000);
	bool		good = true;

	value.at = 0;
	value.most = 1 + below(below(2) ? 5 : 100000);
	gj_unpack_begin(&unpacker, packing, read_some, NULL);
	for (uint32_t done = 0; done < n && good;)
	{
		uint32_t	size = 1 + below(largest);
		uint8_t    *part;

		size = size < n - done ? size : n - done;
		part = malloc(size);
		good = gj_unpack(&unpacker, part, size);
		if (compare)
			EXPECT(good && memcmp(part, value.bytes + done, size) == 0);
		free(part);
		done += size;
	}
	return good && gj_unpack_ended(&unpacker);
}

static uint32_t
random_size(void)
{
	return 1 + below(below(8) ? 2000 : MAX_VALUE - 3000);
}

void
test_unpack_parts(void)
{
	for (int i = 0; i < 300; i++)
	{
		GjPacking	packing = i % 2;

		make_value(packing, random_size());
		EXPECT(unpack(packing, value.n, true));
	}
	CHECK(value.n > 0);
}

void
test_unpack_damaged(void)
{
	for (int i = 0; i < 300; i++)
	{
		GjPacking	packing = i % 2;
		uint32_t	n;

		make_value(packing, random_size());
		n = value.npacked;
		/* an end is missing */
		value.npacked = below(n);
		EXPECT(!unpack(packing, value.n, false));
		/* more follows */
		value.npacked = n + 1;
		value.packed[n] = unit_random();
		EXPECT(!unpack(packing, value.n, false));
		/* other bytes: it stays within its memory, whatever it finds */
		value.npacked = n;
		for (uint32_t bad = 1 + below(4); bad > 0; bad--)
			value.packed[below(n)] = unit_random();
		(void) unpack(packing, value.n, false);
	}
	/* matches that begin before everything, or nowhere */
	memcpy(value.packed, "\x01\x00\x01", value.npacked = 3);
	CHECK(!unpack(GJ_PACKED_PGLZ, 3, false));
	memcpy(value.packed, "\x02" "a\x00\x00", value.npacked = 4);
	CHECK(!unpack(GJ_PACKED_PGLZ, 4, false));
	memcpy(value.packed, "\x10" "a\x02\x00", value.npacked = 4);
	CHECK(!unpack(GJ_PACKED_LZ4, 5, false));
	/* a length that does not end */
	memset(value.packed, 255, value.npacked = MAX_PACKED);
	CHECK(!unpack(GJ_PACKED_LZ4, 5, false));
}
