/*
 * datetime.h
 *	  Dates (days since 2000-01-01) and timestamps (microseconds since then), with
 *	  their infinities and ranges, in the proleptic Gregorian calendar.
 */
#ifndef GJ_ROWS_DATETIME_H
#define GJ_ROWS_DATETIME_H

#include "arith.h"
#include "wire/program.h"

#define GJ_US_PER_SECOND	INT64_C(1000000)
#define GJ_US_PER_MINUTE	(60 * GJ_US_PER_SECOND)
#define GJ_US_PER_HOUR		(60 * GJ_US_PER_MINUTE)
#define GJ_US_PER_DAY		(24 * GJ_US_PER_HOUR)

/* from the first day of the Julian period, to the last one that PostgreSQL knows */
#define GJ_MIN_DATE			INT64_C(-2451545)
#define GJ_END_DATE			INT64_C(2145031949)
#define GJ_END_TIMESTAMP_DATE INT64_C(106751983)
#define GJ_MIN_TIMESTAMP	(GJ_MIN_DATE * GJ_US_PER_DAY)
#define GJ_END_TIMESTAMP	(GJ_END_TIMESTAMP_DATE * GJ_US_PER_DAY)

/* from 0000-03-01 to 2000-01-01, and of 400 years */
#define GJ_DAYS_TO_EPOCH	INT64_C(730425)
#define GJ_DAYS_PER_ERA		INT64_C(146097)

typedef struct GjCivil
{
	int64_t		year;			/* 0 is 1 BC */
	int			month;			/* 1 .. 12 */
	int			day;			/* 1 .. 31 */
} GjCivil;

/* Rounds down, b > 0. */
GJ_FN int64_t
gj_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

GJ_FN bool
gj_date_is_finite(int64_t date)
{
	return date != INT32_MIN && date != INT32_MAX;
}

GJ_FN bool
gj_timestamp_is_finite(int64_t timestamp)
{
	return timestamp != INT64_MIN && timestamp != INT64_MAX;
}

GJ_FN uint32_t
gj_timestamp_status(int64_t timestamp)
{
	return timestamp >= GJ_MIN_TIMESTAMP && timestamp < GJ_END_TIMESTAMP ? GJ_OK : GJ_OVERFLOW;
}

/*
 * Years that start with March: a leap day is then the last day of a year, and month m
 * (0 is March) starts (153 m + 2) / 5 days after it (the method of H. Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms").
 */
GJ_FN GjCivil
gj_civil(int64_t date)
{
	int64_t		days = date + GJ_DAYS_TO_EPOCH;
	int64_t		era = gj_floor_div(days, GJ_DAYS_PER_ERA);
	int			d = (int) (days - era * GJ_DAYS_PER_ERA);
	/* leap days before d: one in 4 years of 1461 days, none in 100, one in 400 */
	int			y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	int			in_year = d - (365 * y + y / 4 - y / 100);
	int			m = (5 * in_year + 2) / 153;
	GjCivil		civil;

	civil.day = in_year - (153 * m + 2) / 5 + 1;
	civil.month = m < 10 ? m + 3 : m - 9;
	civil.year = era * 400 + y + (m >= 10);
	return civil;
}

GJ_FN int64_t
gj_date_of(GjCivil civil)
{
	int64_t		year = civil.year - (civil.month <= 2);
	int64_t		era = gj_floor_div(year, 400);
	int			y = (int) (year - era * 400);
	int			m = civil.month > 2 ? civil.month - 3 : civil.month + 9;

	return era * GJ_DAYS_PER_ERA + 365 * y + y / 4 - y / 100 + (153 * m + 2) / 5 +
		civil.day - 1 - GJ_DAYS_TO_EPOCH;
}

GJ_FN int
gj_days_of_month(int64_t year, int month)
{
	if (month == 2)
		return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
	return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

GJ_FN uint32_t
gj_date_add(int64_t date, int64_t days, int64_t *result)
{
	*result = date;
	if (!gj_date_is_finite(date))
		return GJ_OK;
	if (gj_add_i(date, days, GJ_INT8, result) != GJ_OK)
		return GJ_OVERFLOW;
	return *result >= GJ_MIN_DATE && *result < GJ_END_DATE ? GJ_OK : GJ_OVERFLOW;
}

GJ_FN uint32_t
gj_date_sub(int64_t a, int64_t b, int64_t *result)
{
	uint32_t	status = gj_sub_i(a, b, GJ_INT4, result);

	return gj_date_is_finite(a) && gj_date_is_finite(b) ? status : (uint32_t) GJ_OVERFLOW;
}

GJ_FN uint32_t
gj_date_to_timestamp(int64_t date, int64_t *result)
{
	if (!gj_date_is_finite(date))
	{
		*result = date < 0 ? INT64_MIN : INT64_MAX;
		return GJ_OK;
	}
	*result = 0;
	if (date < GJ_MIN_DATE || date >= GJ_END_TIMESTAMP_DATE)
		return GJ_OVERFLOW;
	*result = date * GJ_US_PER_DAY;
	return GJ_OK;
}

GJ_FN int64_t
gj_timestamp_to_date(int64_t timestamp)
{
	if (!gj_timestamp_is_finite(timestamp))
		return timestamp < 0 ? INT32_MIN : INT32_MAX;
	return gj_floor_div(timestamp, GJ_US_PER_DAY);
}

/*
 * Adds span[0] months, then span[1] days, then span[2] microseconds.  A day that the
 * month does not have becomes its last one.
 */
GJ_NOINLINE_FN uint32_t
gj_add_interval(int64_t timestamp, const int64_t *span, int64_t *result)
{
	int64_t		date,
				time;

	*result = timestamp;
	if (!gj_timestamp_is_finite(timestamp))
		return GJ_OK;
	if (gj_timestamp_status(timestamp) != GJ_OK)
		return GJ_OVERFLOW;
	date = gj_floor_div(timestamp, GJ_US_PER_DAY);
	time = timestamp - date * GJ_US_PER_DAY;
	if (span[0] != 0)
	{
		GjCivil		civil = gj_civil(date);
		int64_t		months = civil.month - 1 + span[0];
		int			days;

		civil.year += gj_floor_div(months, 12);
		civil.month = (int) (months - gj_floor_div(months, 12) * 12) + 1;
		days = gj_days_of_month(civil.year, civil.month);
		if (civil.day > days)
			civil.day = days;
		date = gj_date_of(civil);
	}
	/* out of range between the steps is an error, too */
	if (date < GJ_MIN_DATE || date >= GJ_END_TIMESTAMP_DATE)
		return GJ_OVERFLOW;
	date += span[1];
	if (date < GJ_MIN_DATE || date >= GJ_END_TIMESTAMP_DATE)
		return GJ_OVERFLOW;
	if (gj_add_i(date * GJ_US_PER_DAY + time, span[2], GJ_INT8, result) != GJ_OK)
		return GJ_OVERFLOW;
	return gj_timestamp_status(*result);
}

/* A field of a date; infinite ones are left to PostgreSQL, and so is what is no date. */
GJ_NOINLINE_FN uint32_t
gj_extract_date(int64_t date, uint32_t field, int64_t *result)
{
	GjCivil		civil;
	GjCivil		start = {0, 1, 1};

	*result = 0;
	if (date < GJ_MIN_DATE || date >= GJ_END_DATE)
		return GJ_UNKNOWN_VALUE;
	civil = gj_civil(date);
	switch (field)
	{
		case GJ_FIELD_DAY:
			*result = civil.day;
			break;
		case GJ_FIELD_MONTH:
			*result = civil.month;
			break;
		case GJ_FIELD_QUARTER:
			*result = (civil.month - 1) / 3 + 1;
			break;
		case GJ_FIELD_YEAR:
			/* there is no year 0 */
			*result = civil.year > 0 ? civil.year : civil.year - 1;
			break;
		case GJ_FIELD_DOW:
		case GJ_FIELD_ISODOW:
			/* 2000-01-01 was a Saturday */
			*result = date + 6 - gj_floor_div(date + 6, 7) * 7;
			if (field == GJ_FIELD_ISODOW && *result == 0)
				*result = 7;
			break;
		case GJ_FIELD_DOY:
			start.year = civil.year;
			*result = date - gj_date_of(start) + 1;
			break;
		default:
			return GJ_UNKNOWN_VALUE;
	}
	return GJ_OK;
}

GJ_FN uint32_t
gj_extract_timestamp(int64_t timestamp, uint32_t field, int64_t *result)
{
	int64_t		time;

	*result = 0;
	if (gj_timestamp_status(timestamp) != GJ_OK)
		return GJ_UNKNOWN_VALUE;
	time = timestamp - gj_floor_div(timestamp, GJ_US_PER_DAY) * GJ_US_PER_DAY;
	switch (field)
	{
		case GJ_FIELD_SECOND:
			*result = time % GJ_US_PER_MINUTE;
			return GJ_OK;
		case GJ_FIELD_MINUTE:
			*result = time / GJ_US_PER_MINUTE % 60;
			return GJ_OK;
		case GJ_FIELD_HOUR:
			*result = time / GJ_US_PER_HOUR;
			return GJ_OK;
		default:
			return gj_extract_date(gj_floor_div(timestamp, GJ_US_PER_DAY), field, result);
	}
}

/* The start of the second, ..., year that a timestamp lies in. */
GJ_NOINLINE_FN uint32_t
gj_trunc_timestamp(int64_t timestamp, uint32_t field, int64_t *result)
{
	int64_t		unit = 0;
	int64_t		date;
	GjCivil		civil;

	*result = timestamp;
	if (!gj_timestamp_is_finite(timestamp))
		return GJ_OK;
	if (gj_timestamp_status(timestamp) != GJ_OK)
		return GJ_OVERFLOW;
	switch (field)
	{
		case GJ_FIELD_SECOND:
			unit = GJ_US_PER_SECOND;
			break;
		case GJ_FIELD_MINUTE:
			unit = GJ_US_PER_MINUTE;
			break;
		case GJ_FIELD_HOUR:
			unit = GJ_US_PER_HOUR;
			break;
		case GJ_FIELD_DAY:
			unit = GJ_US_PER_DAY;
			break;
	}
	if (unit != 0)
	{
		*result = gj_floor_div(timestamp, unit) * unit;
		return gj_timestamp_status(*result);
	}
	date = gj_floor_div(timestamp, GJ_US_PER_DAY);
	civil = gj_civil(date);
	civil.day = 1;
	switch (field)
	{
		case GJ_FIELD_WEEK:
			/* weeks start on Monday */
			date = gj_floor_div(date + 5, 7) * 7 - 5;
			break;
		case GJ_FIELD_QUARTER:
			civil.month -= (civil.month - 1) % 3;
			date = gj_date_of(civil);
			break;
		case GJ_FIELD_MONTH:
			date = gj_date_of(civil);
			break;
		case GJ_FIELD_YEAR:
			civil.month = 1;
			date = gj_date_of(civil);
			break;
		default:
			return GJ_UNKNOWN_VALUE;
	}
	*result = date * GJ_US_PER_DAY;
	return gj_timestamp_status(*result);
}

#endif							/* GJ_ROWS_DATETIME_H */
