/*
 * text.h
 *	  Values that are bytes: text and its kin, bytea, uuid, ...
 *
 * A register holds the address of the first byte (48 bits) and their number (16 bits).
 * The bytes stay where they are: in a column's heap, in a column, or among the
 * program's constants.  They may begin anywhere there.  All three have a multiple of 8
 * bytes, and so can be read in aligned words.  Functions that cut a text return a piece of it.
 *
 * PostgreSQL's text is in the encoding of the database: characters are single bytes, or
 * UTF-8 (`utf8`); a program is not made for other encodings.
 */
#ifndef GJ_ROWS_TEXT_H
#define GJ_ROWS_TEXT_H

#include "wire/program.h"
#include "wire/reasons.h"
#include "hash.h"
#include "primitives.h"

#define GJ_MAX_TEXT		0xFFFFu	/* bytes that a register can tell */

GJ_FN int64_t
gj_text(const uint8_t *bytes, uint32_t n)
{
	return (int64_t) ((uint64_t) (uintptr_t) bytes | (uint64_t) n << 48);
}

GJ_FN const uint8_t *
gj_text_bytes(int64_t text)
{
	return (const uint8_t *) (uintptr_t) ((uint64_t) text & UINT64_C(0xFFFFFFFFFFFF));
}

GJ_FN uint32_t
gj_text_length(int64_t text)
{
	return (uint32_t) ((uint64_t) text >> 48);
}

/* Stores a text; GJ_UNKNOWN_VALUE if a register cannot hold it. */
GJ_FN uint32_t
gj_text_checked(const uint8_t *bytes, uint32_t n, int64_t *text)
{
	*text = 0;
	if (n > GJ_MAX_TEXT || (uint64_t) (uintptr_t) bytes >> 48 != 0)
		return GJ_UNKNOWN_VALUE;
	*text = gj_text(bytes, n);
	return GJ_OK;
}

/* Bytes 0 .. n-1 at p, n <= 8, as a little-endian word; only words that they touch are read. */
GJ_FN uint64_t
gj_word_at(const uint8_t *p, uint32_t n)
{
	uint32_t	skip = (uint32_t) ((uintptr_t) p & 7);
	const uint64_t *words = (const uint64_t *) (p - skip);
	uint64_t	word;

	if (n == 0)
		return 0;
	word = words[0] >> (skip * 8);
	if (skip + n > 8)
		word |= words[1] << (64 - skip * 8);
	return n < 8 ? word & ((UINT64_C(1) << (n * 8)) - 1) : word;
}

/* Word w of the n bytes at p, with zeros behind their end. */
GJ_FN uint64_t
gj_padded_word(const uint8_t *p, uint32_t n, uint32_t w)
{
	const uint32_t left = n - 8 * w;

	return gj_word_at(p + 8 * (size_t) w, left < 8 ? left : 8);
}

/* A text of at most 8 bytes, none of which is zero, as one word; GJ_UNKNOWN_VALUE: it is longer. */
GJ_FN uint32_t
gj_word_t(int64_t text, int64_t *word)
{
	uint32_t	n = gj_text_length(text);

	*word = 0;
	if (n > sizeof(*word))
		return GJ_UNKNOWN_VALUE;
	*word = (int64_t) gj_word_at(gj_text_bytes(text), n);
	return GJ_OK;
}

/*
 * What is behind the header of a value that lies flat in `n` bytes.  GJ_UNKNOWN_VALUE if
 * it is compressed or elsewhere (the loader flattens what it can).
 */
GJ_FN uint32_t
gj_varlena(const uint8_t *value, uint32_t n, const uint8_t **bytes, uint32_t *nbytes)
{
	uint32_t	header;
	uint32_t	first;

	*bytes = value;
	*nbytes = 0;
	if (n == 0)
		return GJ_UNKNOWN_VALUE;
	first = value[0];
	header = first & 1 ? 1 : 4;
	if (first == 1 || (first & 3) == 2 || n < header)
		return GJ_UNKNOWN_VALUE;
	*nbytes = first & 1 ? first >> 1 : (uint32_t) (gj_word_at(value, 4) >> 2);
	if (*nbytes < header || *nbytes > n)
		return GJ_UNKNOWN_VALUE;
	*bytes += header;
	*nbytes -= header;
	return GJ_OK;
}

/* The bytes that a reference leads to; GJ_UNKNOWN_VALUE if the backend kept them. */
GJ_FN uint32_t
gj_referred(uint64_t ref, const uint8_t *heap, const uint8_t **bytes, uint32_t *n)
{
	*bytes = heap + gj_ref_offset(ref);
	*n = gj_ref_length(ref);
	return *n == GJ_REF_HELD ? GJ_UNKNOWN_VALUE : GJ_OK;
}

/* The value at `bytes`, `n` bytes in the form that the column has it in, as text. */
GJ_FN uint32_t
gj_text_of(const uint8_t *bytes, uint32_t n, uint32_t form, int64_t *text)
{
	uint32_t	status = GJ_OK;

	if (form == GJ_BYTES_VARLENA)
		status = gj_varlena(bytes, n, &bytes, &n);
	else if (form == GJ_BYTES_CSTRING)
	{
		uint32_t	length = 0;

		while (length < n && bytes[length] != 0)
			length++;
		n = length;
	}
	*text = 0;
	return status == GJ_OK ? gj_text_checked(bytes, n, text) : status;
}

GJ_FN bool
gj_eq_t(int64_t a, int64_t b)
{
	const uint8_t *p = gj_text_bytes(a);
	const uint8_t *q = gj_text_bytes(b);
	uint32_t	n = gj_text_length(a);

	if (n != gj_text_length(b))
		return false;
	for (uint32_t i = 0; i < n; i += 8)
	{
		uint32_t	m = n - i < 8 ? n - i : 8;

		if (gj_word_at(p + i, m) != gj_word_at(q + i, m))
			return false;
	}
	return true;
}

/* Less than 0, 0 or greater: the order of the bytes, and shorter ones first. */
GJ_FN int
gj_compare_t(int64_t a, int64_t b)
{
	const uint8_t *p = gj_text_bytes(a);
	const uint8_t *q = gj_text_bytes(b);
	uint32_t	na = gj_text_length(a);
	uint32_t	nb = gj_text_length(b);
	uint32_t	n = na < nb ? na : nb;

	for (uint32_t i = 0; i < n; i += 8)
	{
		uint32_t	m = n - i < 8 ? n - i : 8;
		uint64_t	v = gj_byte_swap(gj_word_at(p + i, m));
		uint64_t	w = gj_byte_swap(gj_word_at(q + i, m));

		if (v != w)
			return v < w ? -1 : 1;
	}
	return na < nb ? -1 : na > nb;
}

GJ_FN int64_t
gj_hash_t(int64_t text)
{
	const uint8_t *p = gj_text_bytes(text);
	uint32_t	n = gj_text_length(text);
	uint64_t	hash = n;

	for (uint32_t i = 0; i < n; i += 8)
		hash = gj_hash_combine(hash, (int64_t) gj_word_at(p + i, n - i < 8 ? n - i : 8));
	return (int64_t) hash;
}

/* A little-endian word as a number in the order of its bytes. */
GJ_FN int64_t
gj_ordered_word(uint64_t word)
{
	return (int64_t) (gj_byte_swap(word) ^ (UINT64_C(1) << 63));
}

/*
 * One half of a key of 128 bits, by which texts are looked up in a table of two keys: their bytes,
 * or the word of a text of 16 bytes (WHOLE), as uuids are.  Texts of at most GJ_EXACT_KEY_BYTES have their
 * length in the second half, and so they are equal if their keys are.  Longer ones have a hash, and
 * a second half below zero.
 */
#define GJ_EXACT_KEY_BYTES		15
#define GJ_KEY_SECOND		1
#define GJ_KEY_WHOLE		2
/* Numbers in the order of the bytes. */
#define GJ_KEY_ORDERED		4

GJ_FN bool
gj_key_is_exact_t(uint32_t n, uint32_t how)
{
	return n <= GJ_EXACT_KEY_BYTES || (how & GJ_KEY_WHOLE);
}

/* That half of a text of n bytes for which it is exact; word: its bytes of that half. */
GJ_FN int64_t
gj_exact_key_t(uint64_t word, uint32_t n, uint32_t how)
{
	return (int64_t) (how == GJ_KEY_SECOND ? word | (uint64_t) n << 56 : word);
}

GJ_FN int64_t
gj_key_t(int64_t text, uint32_t how)
{
	uint32_t	n = gj_text_length(text);
	uint32_t	w = how & GJ_KEY_SECOND;

	if (how & GJ_KEY_ORDERED)
		return 8 * w < n ? gj_ordered_word(gj_padded_word(gj_text_bytes(text), n, w)) : INT64_MIN;
	if (gj_key_is_exact_t(n, how))
		return gj_exact_key_t(8 * w < n ? gj_padded_word(gj_text_bytes(text), n, w) : 0, n, how);
	return w == 0 ? gj_hash_t(text) : INT64_MIN | (int64_t) n;
}

/*
 * True if the list contains the text.  The list has n entries, ascending, each the word
 * at which its bytes start, counted from the list's own start, and their number (low
 * 16 bits).
 */
GJ_NOINLINE_FN bool
gj_in_t(int64_t text, const int64_t *list, uint32_t n)
{
	uint32_t	low = 0,
				high = n;

	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;
		int64_t		entry = gj_text((const uint8_t *) (list + (list[mid] >> 16)),
									(uint32_t) (list[mid] & 0xFFFF));
		int			order = gj_compare_t(entry, text);

		if (order == 0)
			return true;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

GJ_FN bool
gj_starts_with(int64_t text, int64_t prefix)
{
	uint32_t	n = gj_text_length(prefix);

	return gj_text_length(text) >= n && gj_eq_t(gj_text(gj_text_bytes(text), n), prefix);
}

GJ_FN int64_t
gj_trim(int64_t text, uint32_t sides)
{
	const uint8_t *p = gj_text_bytes(text);
	uint32_t	n = gj_text_length(text);

	if (sides & GJ_TRIM_RIGHT)
		while (n > 0 && p[n - 1] == ' ')
			n--;
	if (sides & GJ_TRIM_LEFT)
		while (n > 0 && *p == ' ')
		{
			p++;
			n--;
		}
	return gj_text(p, n);
}

/* ---- characters */

/* Bytes of the character that starts with `first`. */
GJ_FN uint32_t
gj_character_bytes(uint8_t first, bool utf8)
{
	if (!utf8 || first < 0xC0)
		return 1;
	return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Bytes of the first `nchars` characters, all if there are fewer. */
GJ_FN uint32_t
gj_bytes_of(const uint8_t *p, uint32_t n, int64_t nchars, bool utf8)
{
	uint32_t	at = 0;

	if (!utf8)
		return nchars < n ? (uint32_t) (nchars < 0 ? 0 : nchars) : n;
	for (; nchars > 0 && at < n; nchars--)
		at += gj_character_bytes(p[at], true);
	return at < n ? at : n;
}

GJ_FN int64_t
gj_length_t(int64_t text, bool utf8)
{
	const uint8_t *p = gj_text_bytes(text);
	uint32_t	n = gj_text_length(text);
	int64_t		nchars = 0;

	if (!utf8)
		return n;
	for (uint32_t at = 0; at < n; at += gj_character_bytes(p[at], true))
		nchars++;
	return nchars;
}

/* substring(text from start for count), to the end if there is no count. */
GJ_NOINLINE_FN uint32_t
gj_substr(int64_t text, int64_t start, int64_t count, bool has_count, bool utf8, int64_t *result)
{
	const uint8_t *p = gj_text_bytes(text);
	uint32_t	n = gj_text_length(text);
	int64_t		from = start < 1 ? 1 : start;
	uint32_t	skip;

	*result = gj_text(p, 0);
	/* both are int4 */
	if (start != (int32_t) start || (has_count && (count < 0 || count != (int32_t) count)))
		return GJ_UNKNOWN_VALUE;
	if (has_count && start + count < 1)
		return GJ_OK;
	skip = gj_bytes_of(p, n, from - 1, utf8);
	n -= skip;
	/* an end beyond what an int4 can tell is none */
	if (has_count && start + count <= INT32_MAX)
		n = gj_bytes_of(p + skip, n, start + count - from, utf8);
	*result = gj_text(p + skip, n);
	return GJ_OK;
}

/* left() and right(): a negative number leaves out as many from the other end. */
GJ_NOINLINE_FN int64_t
gj_left_right(int64_t text, int64_t nchars, bool right, bool utf8)
{
	const uint8_t *p = gj_text_bytes(text);
	uint32_t	n = gj_text_length(text);
	uint32_t	split;

	if (right ? nchars >= 0 : nchars < 0)
		nchars = gj_length_t(text, utf8) + (right ? -nchars : nchars);
	else if (right)
		nchars = -nchars;
	split = gj_bytes_of(p, n, nchars, utf8);
	return right ? gj_text(p + split, n - split) : gj_text(p, split);
}

/* ---- LIKE */

/* True if the pattern ends with an escape character, which PostgreSQL may complain about. */
GJ_FN bool
gj_like_dangles(const uint8_t *pattern, uint32_t n)
{
	uint32_t	at = 0;

	while (at < n)
	{
		if (pattern[at] == '\\' && at + 1 == n)
			return true;
		at += pattern[at] == '\\' ? 2 : 1;
	}
	return false;
}

/* The bytes of a word that are zero have their highest bit set; so may bytes above such a one. */
GJ_FN uint64_t
gj_zero_bytes(uint64_t word)
{
	return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/*
 * The first place at or behind `t` where the literal bytes that begin the pattern may be, or
 * `t` if it begins with a wildcard; `n` if there is none.  Compares one or two bytes of the
 * pattern with eight of the text at a time.  A literal begins with no continuation byte of
 * UTF-8, so it is found at the first byte of a character.
 */
GJ_FN uint32_t
gj_like_seek(const uint8_t *text, uint32_t t, uint32_t n, const uint8_t *pattern,
			 uint32_t npattern)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint32_t	escaped = npattern > 0 && pattern[0] == '\\';
	uint32_t	second = 1 + escaped;
	uint32_t	skip = (uint32_t) ((uintptr_t) (text + t) & 7);
	const uint64_t *words = (const uint64_t *) (text + t - skip);
	int64_t		at = (int64_t) t - skip;
	uint64_t	before = (UINT64_C(1) << (skip * 8)) - 1;	/* bytes that are not looked at */
	uint64_t	carry = 0;
	uint64_t	first_byte,
				second_byte = 0;
	bool		two = false;

	if (t >= n || npattern == 0 || pattern[0] == '%' || pattern[0] == '_')
		return t;
	first_byte = ones * pattern[escaped];
	if (second < npattern && pattern[second] != '%' && pattern[second] != '_' &&
		pattern[second] != '\\')
	{
		two = true;
		second_byte = ones * pattern[second];
	}
	for (; at < (int64_t) n; at += 8, words++)
	{
		uint64_t	word = *words;
		uint64_t	found = gj_zero_bytes((word ^ first_byte) | before);

		if (two)
		{
			uint64_t	follows = gj_zero_bytes(word ^ second_byte) & (found << 8 | carry);

			carry = found >> 56;
			found = follows;
		}
		if (found != 0)
		{
			int64_t		place = at + gj_lowest_bit(found) / 8 - two;

			return place < (int64_t) n ? (uint32_t) place : n;
		}
		before = 0;
	}
	return n;
}

/*
 * text LIKE pattern: % is any characters, _ is one, \ escapes.  After a mismatch the
 * text that the last % stands for grows, to the next place where what follows may begin:
 * those before it need not change.  The pattern must not dangle.
 */
GJ_FN bool
gj_like_match(const uint8_t *text, uint32_t n, const uint8_t *pattern, uint32_t npattern,
			  bool utf8)
{
	uint32_t	t = 0,
				p = 0;
	uint32_t	retry_t = 0,
				retry_p = 0;	/* behind the last %, 0: there was none */

	while (t < n)
	{
		uint8_t		c = p < npattern ? pattern[p] : 0;
		bool		seek = false;

		if (p < npattern && c == '%')
		{
			retry_p = ++p;
			retry_t = t;
			if (p == npattern)
				return true;
			seek = true;
		}
		else if (p < npattern && c == '_')
		{
			t += gj_character_bytes(text[t], utf8);
			p++;
		}
		else
		{
			uint32_t	escaped = c == '\\';

			if (p < npattern && text[t] == pattern[p + escaped])
			{
				t++;
				p += 1 + escaped;
			}
			else if (retry_p == 0)
				return false;
			else
			{
				retry_t += gj_character_bytes(text[retry_t], utf8);
				seek = true;
			}
		}
		if (seek)
		{
			p = retry_p;
			t = retry_t = gj_like_seek(text, retry_t, n, pattern + p, npattern - p);
		}
	}
	while (p < npattern && pattern[p] == '%')
		p++;
	return p == npattern;
}

GJ_NOINLINE_FN uint32_t
gj_like(int64_t text, int64_t pattern, bool utf8, int64_t *result)
{
	const uint8_t *p = gj_text_bytes(pattern);
	uint32_t	n = gj_text_length(pattern);

	*result = 0;
	if (gj_like_dangles(p, n))
		return GJ_UNKNOWN_VALUE;
	*result = gj_like_match(gj_text_bytes(text), gj_text_length(text), p, n, utf8);
	return GJ_OK;
}

#endif							/* GJ_ROWS_TEXT_H */
