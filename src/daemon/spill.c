/*
 * spill.c
 *	  Rows of sources kept on the host; see spill.h.
 *
 * A record is: a byte a column that says whether it has NULLs here; then a column after
 * the other, its values and, if it has NULLs, their map; then the bytes that its references
 * refer to.  Each part starts at a multiple of 8.
 */
#define _GNU_SOURCE
#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define gj_align8(n)	(((uint64_t) (n) + 7) & ~UINT64_C(7))

/* Bytes of a block: so many, or this share of the memory, for each thread has one that it fills, but
 * so many at least. */
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

/* ---- blocks */

/*
 * Blocks of GJ_BLOCK_BYTES, of all runs.  To map or unmap memory the kernel waits for all threads that get
 * some page of it just now, and these wait for that; so it is mapped in large pieces, whose pages come as
 * they are used, and unmapped when a run ends and no other one has any block.  Guarded by `lock`.
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
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
	void	   *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

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

/* A record of the block has gone, or the writer has done with it. */
static void
leave_block(GjSpillBlock *block)
{
	if (__atomic_sub_fetch(&block->nusers, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (block->nbytes == GJ_BLOCK_BYTES)
		put_pooled(block);
	else
		munmap(block, block->nbytes);
}

/* Takes memory of a block for a record. */
static bool
take_block(GjSpillWriter *writer, GjSpillRecord *record)
{
	GjSpillBlock *block = writer->block;

	if (!block || block->nbytes - block->used < record->nbytes)
	{
		if (block)
			leave_block(block);
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

/* ---- open and close */

void
gj_spill_open(GjSpill *spill, uint64_t memory_limit, uint64_t temp_limit, const char *directory)
{
	uint64_t	nbytes = memory_limit / GJ_BLOCK_SHARE / GJ_LEAST_BLOCK * GJ_LEAST_BLOCK;

	memset(spill, 0, sizeof(*spill));
	spill->memory_limit = memory_limit;
	spill->temp_limit = temp_limit;
	spill->directory = directory;
	spill->block_bytes = nbytes < GJ_LEAST_BLOCK ? GJ_LEAST_BLOCK :
		nbytes < GJ_BLOCK_BYTES ? nbytes : GJ_BLOCK_BYTES;
	pthread_mutex_init(&spill->lock, NULL);
	pthread_mutex_lock(&blocks.lock);
	blocks.nspills++;
	pthread_mutex_unlock(&blocks.lock);
}

void
gj_spill_close(GjSpill *spill)
{
	pthread_mutex_lock(&blocks.lock);
	/* others that are open may not need any */
	blocks.nspills--;
	if (blocks.nused == 0)
		unmap_arenas();
	pthread_mutex_unlock(&blocks.lock);
	pthread_mutex_destroy(&spill->lock);
}

void
gj_spill_writer_open(GjSpillWriter *writer, GjSpill *spill)
{
	memset(writer, 0, sizeof(*writer));
	writer->spill = spill;
	writer->fd = -1;
}

void
gj_spill_writer_close(GjSpillWriter *writer)
{
	if (writer->block)
		leave_block(writer->block);
	writer->block = NULL;
	free(writer->buffer);
	writer->buffer = NULL;
	if (writer->fd >= 0)
		close(writer->fd);
	writer->fd = -1;
}

static GjStatus
no_room(GjErrorText *why, const char *what, int error)
{
	char		text[128] = "";

	if (error != 0)
		snprintf(why->text, sizeof(why->text), "%s: %s", what, strerror_r(error, text, sizeof(text)));
	else
		snprintf(why->text, sizeof(why->text), "%s", what);
	return GJ_OUT_OF_HOST_MEMORY;
}

/* A file without a name, or one that loses it at once. */
static GjStatus
open_file(GjSpillWriter *writer, GjErrorText *why)
{
	const char *directory = writer->spill->directory;
	char		path[256];

	if (writer->fd >= 0)
		return GJ_OK;
	if (directory[0] == '\0')
		return no_room(why, "there is no directory for temporary files", 0);
	/* PostgreSQL makes it when it first needs it, too */
	mkdir(directory, 0700);
	writer->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (writer->fd < 0)
	{
		/* the prefix by which PostgreSQL knows what to remove after a crash */
		snprintf(path, sizeof(path), "%s/pgsql_tmp_gpujoind.XXXXXX", directory);
		writer->fd = mkostemp(path, O_CLOEXEC);
		if (writer->fd >= 0)
			unlink(path);
	}
	return writer->fd >= 0 ? GJ_OK : no_room(why, "could not create a temporary file", errno);
}

/* ---- writing */

/* The bytes of a record of these rows, and the heap among them, of which *heap_left can be. */
static GjStatus
measure(const GjChunk *chunk, const GjColumnType *types, const uint32_t *positions, uint32_t first,
		uint64_t *heap_left, GjSpillRecord *record, GjErrorText *why)
{
	uint64_t	nbytes = gj_align8(chunk->layout->ncolumns);
	uint64_t	heap = 0;
	uint32_t	n = record->nrows;

	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
	{
		const uint64_t *refs = (const uint64_t *) (chunk->slot + chunk->places[c].data);

		nbytes += gj_align8((uint64_t) n * types[c].width);
		if (chunk->has_nulls[c])
			nbytes += gj_align8(n);
		if (types[c].kind != GJ_REF)
			continue;
		for (uint32_t i = 0; i < n; i++)
			heap += gj_ref_space(refs[positions ? positions[first + i] : first + i]);
	}
	/* rows share no bytes in a chunk, so they cannot have more than it */
	if (heap > *heap_left)
	{
		snprintf(why->text, sizeof(why->text), "a chunk has a damaged heap");
		return GJ_BAD_PROGRAM;
	}
	*heap_left -= heap;
	record->nulls = 0;
	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
		record->nulls |= (uint64_t) (chunk->has_nulls[c] != 0) << c % 64;
	record->heap_used = (uint32_t) heap;
	record->nbytes = nbytes + heap;
	return GJ_OK;
}

#define GATHER(type) \
	for (uint32_t i = 0; i < n; i++) \
		((type *) to)[i] = ((const type *) from)[positions[first + i]]; \
	break

/* to[i] = from[positions[first + i]], values of `width` bytes. */
static void
gather(uint8_t *to, const uint8_t *from, uint32_t width, const uint32_t *positions,
	   uint32_t first, uint32_t n)
{
	if (!positions)
	{
		memcpy(to, from + (size_t) first * width, (size_t) n * width);
		return;
	}
	switch (width)
	{
		case 1:
			GATHER(uint8_t);
		case 2:
			GATHER(uint16_t);
		case 4:
			GATHER(uint32_t);
		case 8:
			GATHER(uint64_t);
		default:
			for (uint32_t i = 0; i < n; i++)
				memcpy(to + (size_t) i * width, from + (size_t) positions[first + i] * width,
					   width);
	}
}

/*
 * Moves what n references refer to behind *used bytes of `heap` and lets them refer to it.
 * The chunk is memory that others can write to: everything is checked as it is read.
 */
static bool
gather_heap(uint64_t *refs, uint32_t n, const GjChunk *chunk, uint8_t *heap, uint32_t size,
			uint32_t *used)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	ref = refs[i];
		uint64_t	offset = gj_ref_offset(ref);
		uint32_t	space = gj_ref_space(ref);

		if (gj_ref_length(ref) == GJ_REF_HELD)
			continue;
		if (offset % 8 != 0 || offset + space > chunk->heap_used || space > size - *used)
			return false;
		memcpy(heap + *used, chunk->slot + chunk->layout->heap + offset, space);
		refs[i] = gj_ref_make(*used, gj_ref_length(ref));
		*used += space;
	}
	return true;
}

/* Writes the record to `to`. */
static GjStatus
write_record(const GjChunk *chunk, const GjColumnType *types, const uint32_t *positions,
			 uint32_t first, const GjSpillRecord *record, uint8_t *to, GjErrorText *why)
{
	uint32_t	ncolumns = chunk->layout->ncolumns;
	uint32_t	n = record->nrows;
	uint8_t    *at = to + gj_align8(ncolumns);
	uint8_t    *heap = to + record->nbytes - record->heap_used;
	uint32_t	used = 0;

	memcpy(to, chunk->has_nulls, ncolumns);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		gather(at, chunk->slot + chunk->places[c].data, types[c].width, positions, first,
			   n);
		if (types[c].kind == GJ_REF &&
			!gather_heap((uint64_t *) at, n, chunk, heap, record->heap_used, &used))
		{
			snprintf(why->text, sizeof(why->text), "a chunk has a bad reference");
			return GJ_BAD_PROGRAM;
		}
		at += gj_align8((uint64_t) n * types[c].width);
		if (!chunk->has_nulls[c])
			continue;
		gather(at, chunk->slot + chunk->places[c].nulls, 1, positions, first, n);
		at += gj_align8(n);
	}
	return GJ_OK;
}

/* Writes bytes to the end of the writer's file. */
static GjStatus
write_file(GjSpillWriter *writer, uint64_t nbytes, GjErrorText *why)
{
	for (uint64_t done = 0; done < nbytes;)
	{
		ssize_t		n = pwrite(writer->fd, writer->buffer + done, nbytes - done,
							   (off_t) (writer->file_end + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return no_room(why, "could not write to a temporary file", n < 0 ? errno : ENOSPC);
		done += (uint64_t) n;
	}
	writer->file_end += nbytes;
	return GJ_OK;
}

static bool
grow_buffer(GjSpillWriter *writer, uint64_t nbytes)
{
	if (nbytes <= writer->buffer_bytes)
		return true;
	free(writer->buffer);
	writer->buffer = malloc(nbytes);
	writer->buffer_bytes = writer->buffer ? nbytes : 0;
	return writer->buffer != NULL;
}

/*
 * Counts the records' bytes: the first *nmemory are to be in memory, as many as there is room
 * for, the others, of *file_bytes, in the file.
 */
static GjStatus
reserve(GjSpill *spill, const GjSpillRecord *records, uint32_t n, uint32_t *nmemory,
		uint64_t *file_bytes, GjErrorText *why)
{
	GjStatus	status = GJ_OK;
	uint64_t	memory = 0;
	uint32_t	i;

	*file_bytes = 0;
	pthread_mutex_lock(&spill->lock);
	for (i = 0; i < n && records[i].nbytes <= spill->memory_limit - spill->memory_used - memory; i++)
		memory += records[i].nbytes;
	*nmemory = i;
	for (; i < n; i++)
		*file_bytes += records[i].nbytes;
	if (*file_bytes > 0 && (spill->file_used > spill->temp_limit ||
							*file_bytes > spill->temp_limit - spill->file_used))
		status = no_room(why, "gpujoin.spill_memory and temp_file_limit do not suffice", 0);
	else
	{
		spill->file_used += *file_bytes;
		spill->memory_used += memory;
		if (spill->memory_used > spill->memory_peak)
			spill->memory_peak = spill->memory_used;
	}
	pthread_mutex_unlock(&spill->lock);
	return status;
}

static void
give_memory(GjSpill *spill, uint64_t nbytes)
{
	pthread_mutex_lock(&spill->lock);
	spill->memory_used -= nbytes;
	pthread_mutex_unlock(&spill->lock);
}

/* Writes records, whose bytes are counted: the first nmemory to memory, the others to the file. */
static GjStatus
write_records(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			  const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n,
			  uint32_t nmemory, uint64_t file_bytes, GjErrorText *why)
{
	uint64_t	at = 0;

	if (file_bytes > 0)
		GJ_TRY(open_file(writer, why));
	if (!grow_buffer(writer, file_bytes))
		return no_room(why, "out of memory", 0);
	for (uint32_t i = 0; i < n; i++)
	{
		GjSpillRecord *record = &records[i];
		uint8_t    *to;

		if (i < nmemory)
		{
			if (!take_block(writer, record))
				return no_room(why, "out of memory", 0);
			to = record->memory;
		}
		else
		{
			to = writer->buffer + at;
			record->fd = writer->fd;
			record->offset = writer->file_end + at;
			at += record->nbytes;
		}
		GJ_TRY(write_record(chunk, types, positions, first, record, to, why));
		first += record->nrows;
	}
	return write_file(writer, file_bytes, why);
}

/* Makes the records where there is room: in memory, else in the file. */
static GjStatus
make_records(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n,
			 GjErrorText *why)
{
	uint64_t	heap_left = chunk->heap_used;
	uint64_t	file_bytes;
	uint32_t	nmemory;
	uint32_t	at = first;
	GjStatus	status;

	for (uint32_t i = 0; i < n; i++)
	{
		records[i].memory = NULL;
		GJ_TRY(measure(chunk, types, positions, at, &heap_left, &records[i], why));
		at += records[i].nrows;
	}
	GJ_TRY(reserve(writer->spill, records, n, &nmemory, &file_bytes, why));
	status = write_records(writer, chunk, types, positions, first, records, n, nmemory, file_bytes,
						   why);
	for (uint32_t i = 0; i < nmemory && status != GJ_OK; i++)
	{
		if (records[i].memory)
			leave_block(records[i].block);
		records[i].memory = NULL;
		give_memory(writer->spill, records[i].nbytes);
	}
	return status;
}

GjStatus
gj_spill_make(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			  const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n)
{
	GjSpill    *spill = writer->spill;
	GjErrorText why = {""};
	GjStatus	status = make_records(writer, chunk, types, positions, first, records, n, &why);

	if (status != GJ_OK)
	{
		pthread_mutex_lock(&spill->lock);
		if (spill->error.text[0] == '\0')
			spill->error = why;
		pthread_mutex_unlock(&spill->lock);
	}
	return status;
}

/* ---- lists */

static GjStatus
grow_list(GjSpillList *list)
{
	uint32_t	max = list->max ? list->max * 2 : 16;
	GjSpillRecord *grown;

	if (list->n < list->max)
		return GJ_OK;
	grown = realloc(list->records, max * sizeof(GjSpillRecord));
	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	list->records = grown;
	list->max = max;
	return GJ_OK;
}

GjStatus
gj_spill_append(GjSpillList *list, const GjSpillRecord *record)
{
	GJ_TRY(grow_list(list));
	list->records[list->n++] = *record;
	list->nrows += record->nrows;
	list->heap_used += record->heap_used;
	return GJ_OK;
}

GjStatus
gj_spill_add(GjSpillWriter *writer, GjSpillList *list, const GjChunk *chunk,
			 const GjColumnType *types, const uint32_t *positions, uint32_t first, uint32_t n)
{
	GjSpillRecord record = {.nrows = n};
	GjStatus	status;

	if (n == 0)
		return GJ_OK;
	GJ_TRY(gj_spill_make(writer, chunk, types, positions, first, &record, 1));
	status = gj_spill_append(list, &record);
	if (status != GJ_OK)
		gj_spill_drop(writer->spill, &record);
	return status;
}

/* Gives the memory of a record back, but does not count it; its bytes. */
static uint64_t
drop(GjSpillRecord *record)
{
	if (!record->memory)
		return 0;
	leave_block(record->block);
	record->memory = NULL;
	return record->nbytes;
}

void
gj_spill_drop(GjSpill *spill, GjSpillRecord *record)
{
	uint64_t	nbytes = drop(record);

	if (nbytes > 0)
		give_memory(spill, nbytes);
}

/* By where they lie. */
static int
compare_records(const void *a, const void *b)
{
	const GjSpillRecord *x = a;
	const GjSpillRecord *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	if (x->fd != y->fd)
		return x->fd < y->fd ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

GjStatus
gj_spill_join(GjSpillList *lists, uint32_t n, GjSpillList *all)
{
	uint64_t	nrecords = 0;

	memset(all, 0, sizeof(*all));
	for (uint32_t i = 0; i < n; i++)
		nrecords += lists[i].n;
	if (nrecords == 0)
		return GJ_OK;
	if (nrecords > UINT32_MAX)
		return GJ_OUT_OF_HOST_MEMORY;
	all->records = malloc(nrecords * sizeof(GjSpillRecord));
	if (!all->records)
		return GJ_OUT_OF_HOST_MEMORY;
	all->max = (uint32_t) nrecords;
	for (uint32_t i = 0; i < n; i++)
	{
		if (lists[i].n > 0)
			memcpy(all->records + all->n, lists[i].records, lists[i].n * sizeof(GjSpillRecord));
		all->n += lists[i].n;
		all->nrows += lists[i].nrows;
		all->heap_used += lists[i].heap_used;
		free(lists[i].records);
		memset(&lists[i], 0, sizeof(lists[i]));
	}
	qsort(all->records, all->n, sizeof(GjSpillRecord), compare_records);
	return GJ_OK;
}

void
gj_spill_free_list(GjSpill *spill, GjSpillList *list)
{
	uint64_t	nbytes = 0;

	for (uint32_t i = 0; i < list->n; i++)
		nbytes += drop(&list->records[i]);
	if (nbytes > 0)
		give_memory(spill, nbytes);
	free(list->records);
	memset(list, 0, sizeof(*list));
}

/* ---- reading */

/* Bytes of records that are worth several threads. */
#define GJ_MANY_BYTES		(UINT64_C(256) * 1024)

/* Where a record goes. */
typedef struct GjSpillPlace
{
	uint32_t	slot;
	uint32_t	row;
	uint32_t	heap;
} GjSpillPlace;

/* Reads a record out of its file.  False: it is not there. */
static bool
read_file(const GjSpillRecord *record, uint8_t *to)
{
	for (uint64_t done = 0; done < record->nbytes;)
	{
		ssize_t		n = pread(record->fd, to + done, record->nbytes - done,
							  (off_t) (record->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint64_t) n;
	}
	return true;
}

/* Copies the columns of a record to where they go. */
static void
copy_columns(const GjSpillFill *fill, uint32_t item, const uint8_t *bytes)
{
	const GjSpillSlot *slot = &fill->slots[fill->at[item].slot];
	const GjSpillRecord *record = &fill->records[item];
	uint32_t	row = fill->at[item].row;
	uint32_t	heap = fill->at[item].heap;
	uint32_t	n = record->nrows;
	const uint8_t *at = bytes + gj_align8(slot->layout->ncolumns);

	for (uint32_t c = 0; c < slot->layout->ncolumns; c++)
	{
		uint32_t	width = slot->types[c].width;
		uint8_t    *to = slot->memory + slot->places[c].data + (size_t) row * width;
		uint8_t    *nulls = slot->memory + slot->places[c].nulls + row;

		memcpy(to, at, (size_t) n * width);
		if (slot->types[c].kind == GJ_REF && heap > 0)
			for (uint32_t i = 0; i < n; i++)
				if (gj_ref_length(((uint64_t *) to)[i]) != GJ_REF_HELD)
					((uint64_t *) to)[i] += gj_ref_make(heap, 0);
		at += gj_align8((uint64_t) n * width);
		if (bytes[c])
		{
			memcpy(nulls, at, n);
			at += gj_align8(n);
		}
		else if (gj_slot_has_nulls(slot->memory)[c])
			memset(nulls, 0, n);
	}
	memcpy(slot->memory + slot->layout->heap + heap, bytes + record->nbytes - record->heap_used,
		   record->heap_used);
}

static void
copy_record(void *arg, uint32_t item, const GjTile *tile)
{
	GjSpillFill *fill = arg;
	const GjSpillRecord *record = &fill->records[item];
	uint8_t    *bytes;

	if (record->memory)
	{
		copy_columns(fill, item, record->memory);
		return;
	}
	bytes = malloc(record->nbytes);
	if (bytes && read_file(record, bytes))
		copy_columns(fill, item, bytes);
	else
		__atomic_store_n(&fill->status, GJ_OUT_OF_HOST_MEMORY, __ATOMIC_RELAXED);
	free(bytes);
}

uint32_t
gj_spill_count(const GjSpillRecord *records, uint32_t n, const GjLayout *layout)
{
	uint32_t	rows = layout->capacity;
	uint32_t	heap = layout->heap_size;
	uint32_t	i;

	for (i = 0; i < n && records[i].nrows <= rows && records[i].heap_used <= heap; i++)
	{
		rows -= records[i].nrows;
		heap -= records[i].heap_used;
	}
	return i;
}

/* Finds the places of a slot's records, up to end-1; writes its header. */
static void
place_records(GjSpillFill *fill, uint32_t i, uint32_t end)
{
	GjSpillSlot *slot = &fill->slots[i];
	uint32_t	ncolumns = slot->layout->ncolumns;
	GjSlotHeader header = {0, 0};
	uint64_t	nulls = 0;

	memset(slot->memory, 0, gj_slot_header_size(ncolumns));
	for (uint32_t r = slot->first; r < end; r++)
	{
		fill->at[r].slot = i;
		fill->at[r].row = header.nrows;
		fill->at[r].heap = header.heap_used;
		header.nrows += fill->records[r].nrows;
		header.heap_used += fill->records[r].heap_used;
		nulls |= fill->records[r].nulls;
	}
	/* records without any get a map then, too */
	for (uint32_t c = 0; c < ncolumns && nulls; c++)
		gj_slot_has_nulls(slot->memory)[c] = nulls >> c % 64 & 1;
	memcpy(slot->memory, &header, sizeof(header));
	slot->nrows = header.nrows;
}

GjStatus
gj_spill_fill_start(GjSpillFill *fill, const GjSpillRecord *records, uint32_t n, GjSpillSlot *slots,
					uint32_t nslots, GjPool *pool)
{
	uint64_t	nbytes = 0;

	*fill = (GjSpillFill) {.records = records,.slots = slots,.status = GJ_OK};
	for (uint32_t more; fill->nslots < nslots && fill->nrecords < n; fill->nrecords += more)
	{
		GjSpillSlot *slot = &slots[fill->nslots++];

		slot->first = fill->nrecords;
		more = gj_spill_count(records + fill->nrecords, n - fill->nrecords, slot->layout);
		if (more == 0)
			return GJ_BAD_PROGRAM;
	}
	fill->at = malloc(fill->nrecords * sizeof(GjSpillPlace));
	if (!fill->at)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < fill->nslots; i++)
		place_records(fill, i, i + 1 < fill->nslots ? slots[i + 1].first : fill->nrecords);
	for (uint32_t i = 0; i < fill->nrecords; i++)
		nbytes += records[i].nbytes;
	if (pool && nbytes >= GJ_MANY_BYTES)
	{
		fill->pool = pool;
		gj_pool_start(pool, &fill->job, fill->nrecords, copy_record, fill);
	}
	return GJ_OK;
}

GjStatus
gj_spill_fill_end(GjSpillFill *fill)
{
	if (fill->pool)
		gj_pool_finish(fill->pool, &fill->job, NULL, NULL, NULL);
	else
		for (uint32_t i = 0; i < fill->nrecords && fill->status == GJ_OK; i++)
			copy_record(fill, i, NULL);
	free(fill->at);
	return fill->status;
}

GjStatus
gj_spill_fill(const GjSpillRecord *records, uint32_t n, GjSpillSlot *slot, uint32_t *ndone)
{
	GjSpillFill fill;

	GJ_TRY(gj_spill_fill_start(&fill, records, n, slot, 1, NULL));
	*ndone = fill.nrecords;
	return gj_spill_fill_end(&fill);
}
