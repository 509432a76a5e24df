/*
 * test_rows.c
 *	  Values of registers that are no date, no position, ...: a damaged program computes with them.
 *	  The order of uuids.
 */
#include <stdint.h>
#include <string.h>

#include "rows/datetime.h"
#include "rows/text.h"
#include "unit.h"

static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN, -1, 0, 1, INT32_MAX, INT64_MAX - 1, INT64_MAX};
#define EXTREMES	(sizeof(extremes) / sizeof(extremes[0]))

/* What one date or timestamp can be asked. */
static void
ask_date(int64_t value)
{
	const int64_t span[3] = {INT32_MAX, INT32_MIN, INT64_MAX};
	int64_t		r;

	for (uint32_t field = 0; field <= GJ_NFIELDS; field++)
	{
		EXPECT(gj_extract_date(value, field, &r) < GJ_NREASONS);
		EXPECT(gj_extract_timestamp(value, field, &r) < GJ_NREASONS);
		EXPECT(gj_trunc_timestamp(value, field, &r) < GJ_NREASONS);
	}
	EXPECT(gj_add_interval(value, span, &r) < GJ_NREASONS);
	EXPECT(gj_date_to_timestamp(value, &r) < GJ_NREASONS);
	(void) gj_timestamp_to_date(value);
}

/* No arithmetic overflows, which a sanitizer sees. */
void
test_rows_extremes(void)
{
	uint64_t	word = 0;
	int64_t		text;
	int64_t		r;

	memcpy(&word, "abcdefg", 8);
	text = gj_text((const uint8_t *) &word, 7);
	for (size_t a = 0; a < EXTREMES; a++)
	{
		ask_date(extremes[a]);
		for (size_t b = 0; b < EXTREMES; b++)
		{
			EXPECT(gj_date_add(extremes[a], extremes[b], &r) < GJ_NREASONS);
			EXPECT(gj_date_sub(extremes[a], extremes[b], &r) < GJ_NREASONS);
			EXPECT(gj_substr(text, extremes[a], extremes[b], true, true, &r) < GJ_NREASONS);
			EXPECT(gj_text_length(r) <= 7);
		}
	}
	CHECK_EQUAL(gj_date_sub(INT64_MAX, -1, &r), GJ_OVERFLOW);
	CHECK_EQUAL(gj_extract_date(INT64_MAX, GJ_FIELD_YEAR, &r), GJ_UNKNOWN_VALUE);
	CHECK_EQUAL(gj_substr(text, 3, INT64_MAX, true, false, &r), GJ_UNKNOWN_VALUE);
	CHECK_EQUAL(gj_substr(text, 3, INT32_MAX, true, false, &r), GJ_OK);
	CHECK_EQUAL(gj_text_length(r), 5);
	CHECK_EQUAL(gj_date_sub(10, 3, &r), GJ_OK);
	CHECK_EQUAL(r, 7);
}

/* The halves of uuids compare as their bytes do, wherever these lie. */
void
test_rows_uuid_order(void)
{
	static const uint8_t bytes[] = {0, 1, 0x7F, 0x80, 0xFF};
	uint8_t		memory[2][24];
	const uint32_t how = GJ_KEY_WHOLE | GJ_KEY_ORDERED;

	for (uint32_t i = 0; i < 16 * 16 * 25; i++)
	{
		int64_t		half[2][2];
		int			order;

		for (uint32_t side = 0; side < 2; side++)
		{
			uint8_t    *uuid = memory[side] + (side == 0 ? i % 8 : 0);
			int64_t		text;

			memset(memory[side], 0x55, sizeof(memory[side]));
			uuid[side == 0 ? i % 16 : i / 16 % 16] = bytes[side == 0 ? i / 256 % 5 : i / 1280];
			text = gj_text(uuid, 16);
			half[side][0] = gj_key_t(text, how);
			half[side][1] = gj_key_t(text, how | GJ_KEY_SECOND);
		}
		order = memcmp(memory[0] + i % 8, memory[1], 16);
		EXPECT((half[0][0] != half[1][0] ? half[0][0] < half[1][0] : half[0][1] < half[1][1]) == (order < 0));
		EXPECT((half[0][0] == half[1][0] && half[0][1] == half[1][1]) == (order == 0));
	}
}
