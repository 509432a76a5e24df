/*
 * spill_block.c
 *	  Memory of records that are kept on the host: blocks, each of which one writer fills.
 */
#define _GNU_SOURCE
#include "spill_store.h"

#include <stdlib.h>
#include <sys/mman.h>

/*
 * Bytes of a block: so many, or this share of the memory, for each thread has one that it fills,
 * but so many at least.
 */
#define GJ_BLOCK_BYTES		(UINT64_C(4) * 1024 * 1024)
#define GJ_BLOCK_SHARE		256
#define GJ_LEAST_BLOCK		(UINT64_C(64) * 1024)
/* Blocks of that size are parts of arenas of so many. */
#define GJ_ARENA_BLOCKS		64
/* Bytes of a huge page: arenas begin at one. */
#define GJ_HUGE_PAGE		(UINT64_C(2) * 1024 * 1024)
/* Where records begin in a block, and a multiple of it is where each does. */
#define GJ_RECORD_ALIGN		64

/* The beginning of the memory of a block. */
struct GjSpillBlock
{
	GjSpillBlock *next;			/* of those that are idle */
	uint64_t	nbytes;
	uint64_t	used;			/* the writer's that fills it */
	uint32_t	nusers;			/* atomic: its records, and the writer */
};

/*
 * Blocks of GJ_BLOCK_BYTES, of all runs.  To map or unmap memory the kernel waits for all threads
 * that get some page of it just now, and these wait for that; so it is mapped in large pieces,
 * whose pages come as they are used, and unmapped when a run ends and no other one has any block.
 * Guarded by `lock`.
 */
typedef struct GjArena
{
	uint8_t    *memory;
	uint64_t	nbytes;
} GjArena;

static struct
{
	pthread_mutex_t lock;
	GjSpillBlock *idle;
	GjArena    *arenas;
	uint32_t	narenas;
	uint8_t    *next;			/* of the last arena: what no block has had yet */
	uint32_t	nleft;
	uint32_t	nused;
	uint32_t	nspills;		/* that are open */
}			blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Adds an arena of n blocks.  The lock is held. */
static bool
map_arena(uint32_t n)
{
	GjArena    *grown = realloc(blocks.arenas, (blocks.narenas + 1) * sizeof(GjArena));
	uint64_t	nbytes = n * GJ_BLOCK_BYTES + GJ_HUGE_PAGE;
	uint8_t    *memory;
	uint64_t	before;

	if (!grown)
		return false;
	blocks.arenas = grown;
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0);
	if (memory == MAP_FAILED)
		return false;
	before = -(uintptr_t) memory & (GJ_HUGE_PAGE - 1);
	/* without huge pages it works, too */
	(void) madvise(memory + before, n * GJ_BLOCK_BYTES, MADV_HUGEPAGE);
	blocks.arenas[blocks.narenas++] = (GjArena) {memory, nbytes};
	blocks.next = memory + before;
	blocks.nleft = n;
	return true;
}

/* Unmaps all of it; no block is used.  The lock is held. */
static void
unmap_arenas(void)
{
	for (uint32_t i = 0; i < blocks.narenas; i++)
		munmap(blocks.arenas[i].memory, blocks.arenas[i].nbytes);
	free(blocks.arenas);
	blocks.arenas = NULL;
	blocks.narenas = blocks.nleft = 0;
	blocks.idle = NULL;
}

/* NULL: out of memory. */
static GjSpillBlock *
take_pooled(void)
{
	GjSpillBlock *block = NULL;

	pthread_mutex_lock(&blocks.lock);
	if (blocks.idle)
	{
		block = blocks.idle;
		blocks.idle = block->next;
	}
	/* where the process may not have as much there may be room for one */
	else if (blocks.nleft > 0 || map_arena(GJ_ARENA_BLOCKS) || map_arena(1))
	{
		block = (GjSpillBlock *) blocks.next;
		blocks.next += GJ_BLOCK_BYTES;
		blocks.nleft--;
	}
	blocks.nused += block != NULL;
	pthread_mutex_unlock(&blocks.lock);
	return block;
}

static void
put_pooled(GjSpillBlock *block)
{
	pthread_mutex_lock(&blocks.lock);
	block->next = blocks.idle;
	blocks.idle = block;
	if (--blocks.nused == 0 && blocks.nspills == 0)
		unmap_arenas();
	pthread_mutex_unlock(&blocks.lock);
}

/* Memory of a block that is larger, or smaller where little may be used.  NULL: out of memory. */
static GjSpillBlock *
map_block(uint64_t nbytes)
{
	void	   *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
							  0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* A block that has room for a record; NULL: out of memory. */
static GjSpillBlock *
get_block(GjSpill *spill, uint64_t record_bytes)
{
	uint64_t	nbytes = record_bytes + GJ_RECORD_ALIGN;
	GjSpillBlock *block;

	if (nbytes <= spill->block_bytes)
		nbytes = spill->block_bytes;
	else
		nbytes = (nbytes + GJ_LEAST_BLOCK - 1) / GJ_LEAST_BLOCK * GJ_LEAST_BLOCK;
	block = nbytes == GJ_BLOCK_BYTES ? take_pooled() : map_block(nbytes);
	if (!block)
		return NULL;
	block->nbytes = nbytes;
	block->used = GJ_RECORD_ALIGN;
	block->nusers = 1;
	return block;
}

void
gj_spill_leave_block(GjSpillBlock *block)
{
	if (__atomic_sub_fetch(&block->nusers, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (block->nbytes == GJ_BLOCK_BYTES)
		put_pooled(block);
	else
		munmap(block, block->nbytes);
}

bool
gj_spill_take_memory(GjSpillWriter *writer, GjSpillRecord *record)
{
	GjSpillBlock *block = writer->block;

	if (!block || block->nbytes - block->used < record->nbytes)
	{
		if (block)
			gj_spill_leave_block(block);
		block = writer->block = get_block(writer->spill, record->nbytes);
		if (!block)
			return false;
	}
	record->memory = (uint8_t *) block + block->used;
	record->block = block;
	block->used += (record->nbytes + GJ_RECORD_ALIGN - 1) / GJ_RECORD_ALIGN * GJ_RECORD_ALIGN;
	/* the rounding may go beyond the end */
	if (block->used > block->nbytes)
		block->used = block->nbytes;
	__atomic_add_fetch(&block->nusers, 1, __ATOMIC_RELAXED);
	return true;
}

void
gj_spill_blocks_open(GjSpill *spill)
{
	uint64_t	nbytes = spill->memory_limit / GJ_BLOCK_SHARE / GJ_LEAST_BLOCK * GJ_LEAST_BLOCK;

	spill->block_bytes = nbytes < GJ_LEAST_BLOCK ? GJ_LEAST_BLOCK :
		nbytes < GJ_BLOCK_BYTES ? nbytes : GJ_BLOCK_BYTES;
	pthread_mutex_lock(&blocks.lock);
	blocks.nspills++;
	pthread_mutex_unlock(&blocks.lock);
}

void
gj_spill_blocks_close(void)
{
	pthread_mutex_lock(&blocks.lock);
	/* others that are open may not need any */
	blocks.nspills--;
	if (blocks.nused == 0)
		unmap_arenas();
	pthread_mutex_unlock(&blocks.lock);
}
