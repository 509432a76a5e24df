/*
 * spill_store.h
 *	  What the files of rows that are kept on the host share: spill.c writes records, spill_block.c
 *	  has the memory for them, spill_read.c reads them.
 *
 * A record is: a byte a column that says whether it has NULLs here; then a column after
 * the other, its values and, if it has NULLs, their map; then the bytes that its references
 * refer to.  Each part starts at a multiple of 8.
 */
#ifndef GJ_DAEMON_BASE_SPILL_STORE_H
#define GJ_DAEMON_BASE_SPILL_STORE_H

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "spill.h"

#define gj_align8(n)	(((uint64_t) (n) + 7) & ~UINT64_C(7))

/*
 * Words that this processor does not read again are written past its caches: else each line would
 * be read from memory before it is written.  gj_stream_end() comes before another thread, or a
 * device, reads them.
 */
static inline void
gj_stream32(uint32_t *to, uint32_t word)
{
#ifdef __x86_64__
	_mm_stream_si32((int *) to, (int) word);
#else
	*to = word;
#endif
}

static inline void
gj_stream64(uint64_t *to, uint64_t word)
{
#ifdef __x86_64__
	_mm_stream_si64((long long *) to, (long long) word);
#else
	*to = word;
#endif
}

static inline void
gj_stream_end(void)
{
#ifdef __x86_64__
	_mm_sfence();
#endif
}

/* A run that keeps rows begins, or ends.  Memory stays mapped while there is one. */
extern void gj_spill_blocks_open(GjSpill *spill);
extern void gj_spill_blocks_close(void);

/* record->memory: in the writer's block or in a new one.  False: out of memory. */
extern bool gj_spill_take_memory(GjSpillWriter *writer, GjSpillRecord *record);
/* A record of the block has gone, or its writer has done with it. */
extern void gj_spill_leave_block(GjSpillBlock *block);

#endif							/* GJ_DAEMON_BASE_SPILL_STORE_H */
