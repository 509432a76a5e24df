/*
 * make_rows.c
 *	  Rows of two bigints, for COPY ... FROM STDIN (FORMAT binary) or as the files of a table: what
 *	  generate_series and INSERT take minutes for, several of these feed to several sessions in
 *	  seconds, and what COPY takes minutes for, one writes in seconds.
 *
 * make_rows N FIRST END MULTIPLIER GAP [HOT]
 * Row i, from FIRST to END-1: the key GAP times i * MULTIPLIER modulo N, which for a multiplier
 * that has no factor in common with N are 0 .. N-1 in another order; with HOT, GAP * HOT in every
 * second row instead.  The value is i modulo 1000.
 *
 * make_rows --heap FILE LSN N FIRST END MULTIPLIER GAP [HOT]
 * The same rows as the heap of a table that has just been created, FILE its first segment, and its
 * visibility map: pages and map as COPY and VACUUM FREEZE leave them, with that LSN, which must be
 * one that the server has issued.  FIRST must be 0.  For benchmarks only: nothing is logged.
 */
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Rows
{
	uint64_t	n;
	uint64_t	multiplier;
	uint64_t	gap;
	uint64_t	hot;
	int			has_hot;
} Rows;

static int64_t
key_of(const Rows *rows, uint64_t i)
{
	if (rows->has_hot && i % 2 == 0)
		return rows->hot * rows->gap;
	return (uint64_t) ((unsigned __int128) i * rows->multiplier % rows->n) * rows->gap;
}

static int64_t
value_of(uint64_t i)
{
	return i % 1000;
}

static void
put(FILE *file, const void *bytes, size_t nbytes)
{
	if (fwrite(bytes, 1, nbytes, file) != nbytes)
	{
		perror("make_rows");
		exit(1);
	}
}

static void
end_file(FILE *file)
{
	if (fclose(file) != 0)
	{
		perror("make_rows");
		exit(1);
	}
}

/* ---- for COPY */

typedef struct __attribute__((packed)) CopyRow
{
	uint16_t	nfields;
	uint32_t	key_length;
	uint64_t	key;
	uint32_t	value_length;
	uint64_t	value;
} CopyRow;

#define COPY_ROWS 8192

static void
write_copy(const Rows *rows, uint64_t first, uint64_t end)
{
	static const char header[19] = "PGCOPY\n\377\r\n";
	static CopyRow copy[COPY_ROWS];
	uint32_t	n = 0;

	put(stdout, header, sizeof(header));
	for (uint64_t i = first; i < end; i++)
	{
		copy[n++] = (CopyRow) {htobe16(2), htobe32(8), htobe64(key_of(rows, i)), htobe32(8), htobe64(value_of(i))};
		if (n == COPY_ROWS || i + 1 == end)
		{
			put(stdout, copy, n * sizeof(CopyRow));
			n = 0;
		}
	}
	put(stdout, "\377\377", 2);
	end_file(stdout);
}

/* ---- as files: PostgreSQL's storage/bufpage.h, access/htup_details.h, visibilitymap.c */

#define PAGE_BYTES 8192
#define SEGMENT_PAGES 131072
#define PAGE_ALL_VISIBLE 4
#define LAYOUT_VERSION 4
#define ITEM_NORMAL 1
#define FROZEN_XID 2
#define XMIN_FROZEN_XMAX_INVALID 0x0B00
#define ALL_VISIBLE_ALL_FROZEN 0xFF	/* of four pages */

typedef struct PageHeader
{
	uint32_t	lsn[2];			/* its upper half first */
	uint16_t	checksum;
	uint16_t	flags;
	uint16_t	lower;
	uint16_t	upper;
	uint16_t	special;
	uint16_t	size_version;
	uint32_t	prune_xid;
} PageHeader;

typedef struct Tuple
{
	uint32_t	xmin;
	uint32_t	xmax;
	uint32_t	cid;
	uint16_t	block[2];		/* its upper half first */
	uint16_t	offset;
	uint16_t	natts;
	uint16_t	infomask;
	uint8_t		header_bytes;
	uint8_t		unused;
	int64_t		key;
	int64_t		value;
} Tuple;

_Static_assert(sizeof(PageHeader) == 24 && sizeof(Tuple) == 40, "layout of pages");

#define PAGE_ROWS ((PAGE_BYTES - sizeof(PageHeader)) / (sizeof(Tuple) + sizeof(uint32_t)))
#define MAP_PAGES ((PAGE_BYTES - sizeof(PageHeader)) * 4)	/* that a page of the map tells of */

static PageHeader
page_header(uint64_t lsn, uint16_t flags, uint32_t nrows)
{
	return (PageHeader) {
		.lsn = {lsn >> 32, (uint32_t) lsn},.flags = flags,
		.lower = sizeof(PageHeader) + nrows * sizeof(uint32_t),
		.upper = PAGE_BYTES - nrows * sizeof(Tuple),
		.special = PAGE_BYTES,.size_version = PAGE_BYTES | LAYOUT_VERSION
	};
}

static void
make_page(const Rows *rows, uint64_t lsn, uint32_t block, uint64_t end, uint8_t *page)
{
	uint64_t	first = block * PAGE_ROWS;
	uint32_t	nrows = end - first < PAGE_ROWS ? end - first : PAGE_ROWS;
	uint32_t   *items = (uint32_t *) (page + sizeof(PageHeader));

	memset(page, 0, PAGE_BYTES);
	*(PageHeader *) page = page_header(lsn, PAGE_ALL_VISIBLE, nrows);
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint32_t	at = PAGE_BYTES - (i + 1) * sizeof(Tuple);

		items[i] = at | ITEM_NORMAL << 15 | sizeof(Tuple) << 17;
		*(Tuple *) (page + at) = (Tuple) {
			.xmin = FROZEN_XID,.block = {block >> 16, (uint16_t) block},.offset = i + 1,.natts = 2,
			.infomask = XMIN_FROZEN_XMAX_INVALID,.header_bytes = offsetof(Tuple, key),
			.key = key_of(rows, first + i),.value = value_of(first + i)
		};
	}
}

static FILE *
open_file(const char *name)
{
	FILE	   *file = fopen(name, "w");

	if (!file)
	{
		perror(name);
		exit(1);
	}
	return file;
}

static void
write_segment(const Rows *rows, const char *name, uint64_t lsn, uint32_t first, uint32_t npages, uint64_t end)
{
	static _Alignas(8) uint8_t page[PAGE_BYTES];
	FILE	   *file = open_file(name);

	for (uint32_t i = 0; i < npages; i++)
	{
		make_page(rows, lsn, first + i, end, page);
		put(file, page, PAGE_BYTES);
	}
	end_file(file);
}

static void
write_map(const char *name, uint64_t lsn, uint32_t npages)
{
	static _Alignas(8) uint8_t page[PAGE_BYTES];
	FILE	   *file = open_file(name);

	for (uint32_t first = 0; first < npages; first += MAP_PAGES)
	{
		uint32_t	n = npages - first < MAP_PAGES ? npages - first : MAP_PAGES;

		memset(page, 0, PAGE_BYTES);
		*(PageHeader *) page = page_header(lsn, 0, 0);
		memset(page + sizeof(PageHeader), ALL_VISIBLE_ALL_FROZEN, n / 4);
		if (n % 4 > 0)
			page[sizeof(PageHeader) + n / 4] = (1 << n % 4 * 2) - 1;
		put(file, page, PAGE_BYTES);
	}
	end_file(file);
}

/* A process for each segment, as many at a time as there are processors. */
static int
write_heap(const Rows *rows, const char *name, uint64_t lsn, uint64_t end)
{
	uint32_t	npages = (end + PAGE_ROWS - 1) / PAGE_ROWS;
	uint32_t	nsegments = (npages + SEGMENT_PAGES - 1) / SEGMENT_PAGES;
	long		most = sysconf(_SC_NPROCESSORS_ONLN);
	char		path[4096];
	int			failed = 0;
	int			status;

	for (uint32_t s = 0; s < nsegments; s++)
	{
		uint32_t	first = s * SEGMENT_PAGES;
		uint32_t	n = npages - first < SEGMENT_PAGES ? npages - first : SEGMENT_PAGES;

		if (s >= most)
			failed |= wait(&status) < 0 || status != 0;
		switch (fork())
		{
			case -1:
				perror("make_rows");
				return 1;
			case 0:
				snprintf(path, sizeof(path), s == 0 ? "%s" : "%s.%u", name, s);
				write_segment(rows, path, lsn, first, n, end);
				exit(0);
		}
	}
	while (wait(&status) >= 0)
		failed |= status != 0;
	snprintf(path, sizeof(path), "%s_vm", name);
	write_map(path, lsn, npages);
	return failed;
}

int
main(int argc, char **argv)
{
	int			heap = argc > 1 && strcmp(argv[1], "--heap") == 0 ? 3 : 0;
	uint64_t	number[6] = {0};
	int			n = argc - 1 - heap;
	Rows		rows;

	if (n < 5 || n > 6)
	{
		fprintf(stderr, "usage: make_rows [--heap FILE LSN] N FIRST END MULTIPLIER GAP [HOT]\n");
		return 2;
	}
	for (int i = 0; i < n; i++)
		number[i] = strtoull(argv[1 + heap + i], NULL, 10);
	rows = (Rows) {number[0], number[3], number[4], number[5], n > 5};
	if (rows.n == 0 || (heap && number[1] != 0))
		return 2;
	if (heap)
		return write_heap(&rows, argv[2], strtoull(argv[3], NULL, 10), number[2]);
	write_copy(&rows, number[1], number[2]);
	return 0;
}
