/*
 * make_rows.c
 *	  Rows of two bigints for COPY ... FROM STDIN (FORMAT binary): what generate_series and INSERT
 *	  take minutes for, several of these feed to several sessions in seconds.
 *
 * make_rows N FIRST END MULTIPLIER GAP [HOT]
 * Row i, from FIRST to END-1: the key GAP times i * MULTIPLIER modulo N, which for a multiplier
 * that has no factor in common with N are 0 .. N-1 in another order; with HOT, GAP * HOT in every
 * second row instead.  The value is i modulo 1000.
 */
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct __attribute__((packed)) Row
{
	uint16_t	nfields;
	uint32_t	key_length;
	uint64_t	key;
	uint32_t	value_length;
	uint64_t	value;
} Row;

#define NROWS 8192

static void
put(const void *bytes, size_t nbytes)
{
	if (fwrite(bytes, 1, nbytes, stdout) != nbytes)
	{
		perror("make_rows");
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	static const char header[19] = "PGCOPY\n\377\r\n";
	static Row	rows[NROWS];
	uint64_t	number[6] = {0};
	uint32_t	n = 0;

	if (argc < 6 || argc > 7)
	{
		fprintf(stderr, "usage: make_rows N FIRST END MULTIPLIER GAP [HOT]\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		number[i - 1] = strtoull(argv[i], NULL, 10);
	if (number[0] == 0)
		return 2;
	put(header, sizeof(header));
	for (uint64_t i = number[1]; i < number[2]; i++)
	{
		uint64_t	key = argc > 6 && i % 2 == 0 ? number[5] : (uint64_t) ((unsigned __int128) i * number[3] % number[0]);

		rows[n++] = (Row) {htobe16(2), htobe32(8), htobe64(key * number[4]), htobe32(8), htobe64(i % 1000)};
		if (n == NROWS || i + 1 == number[2])
		{
			put(rows, n * sizeof(Row));
			n = 0;
		}
	}
	put("\377\377", 2);
	return fflush(stdout) == 0 ? 0 : 1;
}
