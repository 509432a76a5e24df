/*
 * unpack.c
 *	  Compressed bytes, unpacked in parts of any size: pglz, and blocks of LZ4.
 *
 * Both formats are runs of bytes (literals) and matches: bytes that were unpacked before, so many
 * bytes back.  A part may end within a run or a match, which the next part then begins with.
 * Matches that begin before a part are copied from the window, which keeps the end of what was
 * unpacked before it.  Nothing that is compressed is trusted.
 */
#include "unpack.h"

#include <string.h>

/* Compressed bytes that an item needs at most, unless it ends what is compressed. */
#define GJ_UNPACK_ITEM		32
/* Bytes that are copied at once where there is room for them. */
#define GJ_UNPACK_COPY		16
/* A longer run or match cannot be part of a value. */
#define GJ_UNPACK_MAX_LENGTH	(1u << 30)

/* A part that is being unpacked. */
typedef struct GjPart
{
	uint8_t    *start;
	uint8_t    *out;
	uint8_t    *end;
} GjPart;

void
gj_unpack_begin(GjUnpacker *unpacker, GjPacking packing, GjReadPacked read, void *arg)
{
	unpacker->read = read;
	unpacker->arg = arg;
	unpacker->packing = packing;
	unpacker->input_ended = false;
	unpacker->at = unpacker->end = 0;
	unpacker->control = 1;
	unpacker->literals = unpacker->match = unpacker->offset = 0;
	unpacker->match_follows = false;
	unpacker->match_code = 0;
	unpacker->history = 0;
}

/* Have the input of an item, if there is so much.  Returns how many bytes there are. */
static inline uint32_t
fill(GjUnpacker *unpacker)
{
	uint32_t	rest = unpacker->end - unpacker->at;

	if (rest >= GJ_UNPACK_ITEM || unpacker->input_ended)
		return rest;
	memmove(unpacker->input, unpacker->input + unpacker->at, rest);
	unpacker->at = 0;
	while (rest < GJ_UNPACK_ITEM && !unpacker->input_ended)
	{
		uint32_t	n = unpacker->read(unpacker->arg, unpacker->input + rest,
									   GJ_UNPACK_INPUT - rest);

		unpacker->input_ended = n == 0;
		rest += n;
	}
	unpacker->end = rest;
	return rest;
}

/* Is the match in this part, is there room behind it, and can eight bytes be copied at once? */
static inline bool
is_near(const GjPart *part, const uint8_t *out, uint32_t offset, uint32_t length)
{
	return offset >= 8 && offset <= out - part->start && part->end - out >= (int64_t) length + 8;
}

/* Copy such a match.  Returns where it ends. */
static inline uint8_t *
copy_near(uint8_t *out, uint32_t offset, uint32_t length)
{
	for (uint8_t *to = out; to < out + length; to += 8)
		memcpy(to, to - offset, 8);
	return out + length;
}

/* Copy what there is room for of the match.  False: it begins before everything. */
static inline bool
copy_match(GjUnpacker *unpacker, GjPart *part)
{
	uint32_t	offset = unpacker->offset;
	uint8_t    *out = part->out;
	uint64_t	room = part->end - out;
	uint64_t	made = out - part->start;
	uint32_t	n = unpacker->match < room ? unpacker->match : (uint32_t) room;

	if (offset == 0 || offset > made + unpacker->history)
		return false;
	unpacker->match -= n;
	part->out += n;
	if (offset > made)
	{
		uint32_t	before = (uint32_t) (offset - made);
		uint32_t	first = n < before ? n : before;

		memcpy(out, unpacker->window + unpacker->history - before, first);
		out += first;
		n -= first;
	}
	if (is_near(part, out, offset, n))
	{
		(void) copy_near(out, offset, n);
		return true;
	}
	for (uint8_t *end = out + n; out < end; out++)
		*out = *(out - offset);
	return true;
}

/* ---- pglz: a byte of bits, then for each a byte as it is, or a match */

/* Unpack the items of a byte of bits, or those that there is room for. */
static bool
unpack_items(GjUnpacker *unpacker, GjPart *part)
{
	const uint8_t *in = unpacker->input + unpacker->at;
	const uint8_t *in_end = unpacker->input + unpacker->end;
	uint8_t    *out = part->out;
	uint32_t	control = unpacker->control;
	bool		good = true;

	while (good && control > 1 && out < part->end)
	{
		bool		is_match = control & 1;
		uint32_t	length;
		uint32_t	offset;

		control >>= 1;
		if (!is_match && in < in_end)
		{
			*out++ = *in++;
			continue;
		}
		/* what is compressed may end after any item */
		if (in_end - in < 2 || ((in[0] & 0x0f) == 15 && in_end - in < 3))
		{
			good = false;
			break;
		}
		length = (in[0] & 0x0f) + 3;
		offset = (in[0] & 0xf0) << 4 | in[1];
		in += 2;
		if (length == 18)
			length += *in++;
		if (is_near(part, out, offset, length))
			out = copy_near(out, offset, length);
		else
		{
			unpacker->match = length;
			unpacker->offset = offset;
			part->out = out;
			good = copy_match(unpacker, part);
			out = part->out;
		}
	}
	unpacker->control = control;
	unpacker->at = in - unpacker->input;
	part->out = out;
	return good;
}

static bool
unpack_pglz(GjUnpacker *unpacker, GjPart *part)
{
	while (part->out < part->end)
	{
		/* eight items are not longer than GJ_UNPACK_ITEM */
		if (fill(unpacker) == 0)
			return false;
		if (unpacker->control == 1)
			unpacker->control = unpacker->input[unpacker->at++] | 0x100;
		if (!unpack_items(unpacker, part))
			return false;
	}
	return true;
}

/* ---- LZ4: a token, its literals, and a match, which the last token does not have */

/* Read the rest of a length.  False: there is none, or it is too large. */
static bool
read_length(GjUnpacker *unpacker, uint32_t *length)
{
	uint8_t		more;

	do
	{
		if (fill(unpacker) == 0)
			return false;
		more = unpacker->input[unpacker->at++];
		*length += more;
		if (*length > GJ_UNPACK_MAX_LENGTH)
			return false;
	} while (more == 255);
	return true;
}

static bool
read_token(GjUnpacker *unpacker)
{
	uint8_t		token;

	if (fill(unpacker) == 0)
		return false;
	token = unpacker->input[unpacker->at++];
	unpacker->literals = token >> 4;
	unpacker->match_code = token & 15;
	unpacker->match_follows = true;
	return unpacker->literals < 15 || read_length(unpacker, &unpacker->literals);
}

static bool
read_match(GjUnpacker *unpacker)
{
	const uint8_t *in;

	if (fill(unpacker) < 2)
		return false;
	in = unpacker->input + unpacker->at;
	unpacker->offset = in[0] | in[1] << 8;
	unpacker->at += 2;
	unpacker->match = unpacker->match_code;
	unpacker->match_follows = false;
	if (unpacker->match == 15 && !read_length(unpacker, &unpacker->match))
		return false;
	unpacker->match += 4;
	return true;
}

/* Copy what there is, and what there is room for, of the literals. */
static inline bool
copy_literals(GjUnpacker *unpacker, GjPart *part)
{
	uint64_t	room = part->end - part->out;
	uint32_t	rest = fill(unpacker);
	uint32_t	n = unpacker->literals;

	if (n <= GJ_UNPACK_COPY && rest >= GJ_UNPACK_COPY && room >= GJ_UNPACK_COPY)
		memcpy(part->out, unpacker->input + unpacker->at, GJ_UNPACK_COPY);
	else
	{
		if (rest == 0)
			return false;
		n = n < rest ? n : rest;
		n = n < room ? n : (uint32_t) room;
		memcpy(part->out, unpacker->input + unpacker->at, n);
	}
	part->out += n;
	unpacker->at += n;
	unpacker->literals -= n;
	return true;
}

/* Unpack whole tokens, with short lengths, while nothing is near an end. */
static void
unpack_tokens(GjUnpacker *unpacker, GjPart *part)
{
	const uint8_t *in = unpacker->input + unpacker->at;
	const uint8_t *in_end = unpacker->input + unpacker->end;
	uint8_t    *out = part->out;

	while (in_end - in >= GJ_UNPACK_ITEM && part->end - out >= GJ_UNPACK_COPY)
	{
		uint32_t	literals = in[0] >> 4;
		uint32_t	match = (in[0] & 15) + 4;
		uint32_t	offset = in[1 + literals] | in[2 + literals] << 8;

		if (literals == 15 || match == 15 + 4 || !is_near(part, out + literals, offset, match))
			break;
		memcpy(out, in + 1, GJ_UNPACK_COPY);
		out = copy_near(out + literals, offset, match);
		in += 3 + literals;
	}
	unpacker->at = in - unpacker->input;
	part->out = out;
}

static bool
unpack_lz4(GjUnpacker *unpacker, GjPart *part)
{
	while (part->out < part->end)
	{
		bool		good;

		if (unpacker->literals > 0)
			good = copy_literals(unpacker, part);
		else if (unpacker->match_follows)
			good = read_match(unpacker) && copy_match(unpacker, part);
		else
		{
			unpack_tokens(unpacker, part);
			good = part->out == part->end || read_token(unpacker);
		}
		if (!good)
			return false;
	}
	return true;
}

/* ---- both */

/* Keep the end of what has been unpacked. */
static void
keep_window(GjUnpacker *unpacker, const uint8_t *made, uint32_t nbytes)
{
	uint32_t	kept;

	if (nbytes > GJ_UNPACK_WINDOW)
	{
		made += nbytes - GJ_UNPACK_WINDOW;
		nbytes = GJ_UNPACK_WINDOW;
	}
	kept = GJ_UNPACK_WINDOW - nbytes;
	if (kept > unpacker->history)
		kept = unpacker->history;
	memmove(unpacker->window, unpacker->window + unpacker->history - kept, kept);
	memcpy(unpacker->window + kept, made, nbytes);
	unpacker->history = kept + nbytes;
}

bool
gj_unpack(GjUnpacker *unpacker, void *to, uint32_t nbytes)
{
	GjPart		part = {to, to, (uint8_t *) to + nbytes};

	if (nbytes == 0)
		return true;
	/* the rest of a match that the part before ended in */
	while (unpacker->match > 0 && part.out < part.end)
		if (!copy_match(unpacker, &part))
			return false;
	if (!(unpacker->packing == GJ_PACKED_PGLZ ? unpack_pglz(unpacker, &part) :
		  unpack_lz4(unpacker, &part)))
		return false;
	keep_window(unpacker, to, nbytes);
	return true;
}

bool
gj_unpack_ended(GjUnpacker *unpacker)
{
	return unpacker->literals == 0 && unpacker->match == 0 && fill(unpacker) == 0;
}
