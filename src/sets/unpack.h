/*
 * unpack.h
 *	  Compressed bytes, unpacked in parts of any size: pglz, and blocks of LZ4.
 *
 * PostgreSQL's functions unpack a value as a whole, into memory that has room for all of it.
 * This is for a value that goes somewhere else part by part.  Plain C without PostgreSQL.
 */
#ifndef GJ_SETS_UNPACK_H
#define GJ_SETS_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum GjPacking
{
	GJ_PACKED_PGLZ,
	GJ_PACKED_LZ4
} GjPacking;

/* Matches begin so many bytes back, at most. */
#define GJ_UNPACK_WINDOW	65536
/* Compressed bytes that are there at a time. */
#define GJ_UNPACK_INPUT		65536

/* Reads the next compressed bytes, at most `room` of them.  Returns how many; 0: there are no more. */
typedef uint32_t (*GjReadPacked) (void *arg, uint8_t *to, uint32_t room);

typedef struct GjUnpacker
{
	GjReadPacked read;
	void	   *arg;
	GjPacking	packing;
	bool		input_ended;	/* `read` has no more */
	uint32_t	at;				/* in input */
	uint32_t	end;
	/* what the last part ended in */
	uint32_t	control;		/* pglz: what the next items are, a bit each; above them a 1 */
	uint32_t	literals;		/* LZ4: bytes to be copied from the input */
	uint32_t	match;			/* bytes to be copied from what was unpacked */
	uint32_t	offset;			/* so far back */
	bool		match_follows;	/* LZ4: after the literals */
	uint8_t		match_code;		/* its length, as the token has it */
	/* the end of what was unpacked before */
	uint32_t	history;
	uint8_t		window[GJ_UNPACK_WINDOW];
	uint8_t		input[GJ_UNPACK_INPUT];
} GjUnpacker;

extern void gj_unpack_begin(GjUnpacker *unpacker, GjPacking packing, GjReadPacked read, void *arg);

/*
 * Unpacks the next bytes.  False: what is compressed is damaged, or too short.  Bytes at `to` are
 * read again.
 */
extern bool gj_unpack(GjUnpacker *unpacker, void *to, uint32_t nbytes);

/* Tells whether all that is compressed has been unpacked. */
extern bool gj_unpack_ended(GjUnpacker *unpacker);

#endif							/* GJ_SETS_UNPACK_H */
