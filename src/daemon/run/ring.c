/*
 * ring.c
 *	  A nested loop whose build side several runs share, one on each device.
 *
 * Each run builds its own share of the rows: what passes the filter, put together, with the values
 * that are compared.  Nothing changes a share afterwards, so the runs of other devices copy it
 * block by block without asking.  A run joins each view of probe tuples with its own share first,
 * where it lies, then with the blocks of the next share, and so on round the ring.  So at any time
 * all devices are about to copy from different ones.  Block 0 is copied while the run's own share
 * is joined, and block b + 1 while block b is: there are two buffers.  Where a buffer still has
 * the block that is wanted, as with two blocks in all, nothing is copied.
 *
 * A block comes from the device that owns it, not from the neighbour that had it before.  As many
 * bytes travel, and no device waits for another.  Every view goes round the whole ring, so what has
 * a match is known when it is through, for tuples as in any nested loop.  Flags of build rows are
 * of all shares; the team puts those of all runs together, and each run sends the rows of its own
 * share.
 */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

/* The part of the memory left that each of two buffers may take. */
#define GJ_RING_PART		16

#define GJ_MARK_LOADED(b)	(GJ_RING_MARKS + (b) % 2)	/* block b is there */
#define GJ_MARK_JOINED(b)	(GJ_RING_MARKS + 2 + (b) % 2)	/* nothing reads its buffer any more */
#define GJ_NO_BLOCK			UINT32_MAX

/* ---- open and close */

GjRing *
gj_ring_make(uint32_t step, uint32_t nshares)
{
	GjRing	   *ring = calloc(1, sizeof(GjRing));

	if (!ring)
		return NULL;
	ring->step = step;
	ring->nshares = nshares;
	return ring;
}

void
gj_ring_free(GjRing *ring)
{
	free(ring);
}

static uint32_t
ncolumns_of(const GjRun *run, const GjRunStep *rs)
{
	return run->sources[rs->step->source].ncolumns;
}

GjStatus
gj_run_join_ring(GjRun *run, GjRing *ring, uint32_t share)
{
	GjRunStep  *rs = &run->steps[ring->step];
	uint32_t	ncolumns = ncolumns_of(run, rs);
	GjRunRing  *x = calloc(1, sizeof(GjRunRing));

	if (!x)
		return GJ_OUT_OF_HOST_MEMORY;
	x->ring = ring;
	x->ncolumns = ncolumns;
	x->own = &ring->share[share];
	x->own->device = run->entry->device;
	x->own->columns = calloc(ncolumns + 1, sizeof(GjColumn));
	x->own->heap_at = calloc(ncolumns + 1, sizeof(uint64_t *));
	x->heap = calloc(ncolumns + 1, sizeof(GjBuffer));
	rs->ring = x;
	rs->join = &gj_join_ring;
	if (!x->own->columns || !x->own->heap_at || !x->heap)
		return GJ_OUT_OF_HOST_MEMORY;
	/* no rows yet, and none at all if no chunk comes */
	gj_relation_columns(&run->relation[rs->step->source], 0, x->own->columns);
	/* rows that are expected */
	run->relation[rs->step->source].hint /= ring->nshares;
	return GJ_OK;
}

/* The step whose build side is shared; NULL: there is none. */
static GjRunStep *
ring_step(GjRun *run)
{
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (run->steps[i].ring)
			return &run->steps[i];
	return NULL;
}

/* Host memory of the run's share: the other runs have ended. */
static void
free_share(GjRingShare *share, uint32_t ncolumns)
{
	for (uint32_t c = 0; c < ncolumns && share->heap_at; c++)
		free(share->heap_at[c]);
	free(share->heap_at);
	free(share->columns);
	memset(share, 0, sizeof(*share));
}

static void
free_ring(GjWork *work, GjRunStep *rs)
{
	GjRunRing  *x = rs->ring;

	gj_nested_free(work, rs);
	for (uint32_t c = 0; c < x->ncolumns && x->heap; c++)
		gj_buffer_free(work, &x->heap[c]);
	gj_buffer_free(work, &x->heap_at);
	for (uint32_t b = 0; b < 2; b++)
	{
		gj_buffer_free(work, &x->buffer[b].rows);
		gj_buffer_free(work, &x->buffer[b].heap);
	}
	free_share(x->own, x->ncolumns);
	free(x->heap);
	free(x->blocks);
	free(x);
	rs->ring = NULL;
}

/* ---- blocks: which there are */

/* Bytes of a block's references of column c. */
static uint64_t
heap_bytes(const GjRingShare *share, uint32_t c, uint32_t first, uint32_t nrows)
{
	const uint64_t *at = share->heap_at[c];

	return at ? at[(first + nrows + GJ_RING_STEP - 1) / GJ_RING_STEP] - at[first / GJ_RING_STEP] : 0;
}

/* Room for those of all columns. */
static uint64_t
heap_room(const GjRunRing *x, const GjRingShare *share, uint32_t first, uint32_t nrows)
{
	uint64_t	nbytes = 0;

	for (uint32_t c = 0; c < x->ncolumns; c++)
		nbytes += gj_align(heap_bytes(share, c, first, nrows));
	return nbytes;
}

/* Room for the values and columns of n rows in a buffer. */
static uint64_t
rows_room(const GjRun *run, const GjRunStep *rs, uint64_t n)
{
	const GjSource *source = &run->sources[rs->step->source];
	const GjColumnType *types = run->types + source->first_column;
	uint64_t	nbytes = rs->nbuild_operands > 0 ? gj_align(n) : 0;

	nbytes += rs->nbuild_operands * gj_align(n * sizeof(int64_t));
	for (uint32_t c = 0; c < source->ncolumns; c++)
		if (run->late[source->first_column + c])
			nbytes += gj_align(n * types[c].width) + gj_align(n);
	return nbytes;
}

/* Rows of a share from a multiple of GJ_RING_STEP on, as far as the next one. */
static uint32_t
step_rows(const GjRingShare *share, uint32_t first)
{
	return share->nrows - first < GJ_RING_STEP ? share->nrows - first : GJ_RING_STEP;
}

/* Makes the blocks of a share: of so many rows, fewer where their references have many bytes. */
static void
cut_share(GjRunRing *x, const GjRingShare *share, uint64_t flag, uint32_t most, uint64_t most_heap)
{
	for (uint32_t first = 0, n; first < share->nrows; first += n)
	{
		n = step_rows(share, first);
		while (first + n < share->nrows && n < most &&
			   heap_room(x, share, first, n + step_rows(share, first + n)) <= most_heap)
			n += step_rows(share, first + n);
		if (x->blocks)
			x->blocks[x->nblocks] = (GjRingBlock) {share, first, n, flag + first};
		x->nblocks++;
		if (n > x->most_rows)
			x->most_rows = n;
		if (heap_room(x, share, first, n) > x->most_heap)
			x->most_heap = heap_room(x, share, first, n);
	}
}

/* Cuts all shares but the run's own, which is first, into blocks. */
static void
cut_shares(GjRunRing *x, const uint64_t *flag, uint32_t most, uint64_t most_heap)
{
	uint32_t	n = x->ring->nshares;
	uint32_t	own = (uint32_t) (x->own - x->ring->share);

	x->nblocks = 0;
	for (uint32_t i = 1; i < n; i++)
		cut_share(x, &x->ring->share[(own + i) % n], flag[(own + i) % n], most, most_heap);
}

/* Decides what a block has, and makes all of them. */
static GjStatus
make_blocks(GjRun *run, const GjRunStep *rs, const uint64_t *flag)
{
	GjRunRing  *x = rs->ring;
	uint64_t	room = gj_lease_left(run->work.lease) / GJ_RING_PART;
	uint64_t	most = GJ_MAX_TUPLES;

	while (most > GJ_RING_STEP && rows_room(run, rs, most) > room)
		most /= 2;
	/* once to count them */
	cut_shares(x, flag, (uint32_t) most, room);
	x->blocks = calloc(x->nblocks + 1, sizeof(GjRingBlock));
	if (!x->blocks)
		return GJ_OUT_OF_HOST_MEMORY;
	cut_shares(x, flag, (uint32_t) most, room);
	return GJ_OK;
}

static GjStatus
reserve_buffers(GjRun *run, const GjRunStep *rs)
{
	GjRunRing  *x = rs->ring;
	GjWork	   *work = &run->work;

	for (uint32_t b = 0; b < 2 && b < x->nblocks; b++)
	{
		GJ_TRY(gj_buffer_grow(work, &x->buffer[b].rows, 0, rows_room(run, rs, x->most_rows), 0));
		GJ_TRY(gj_buffer_grow(work, &x->buffer[b].heap, 0, x->most_heap, 0));
		x->buffer[b].block = GJ_NO_BLOCK;
		GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_JOINED(b)));
	}
	return GJ_OK;
}

/* The flags of the rows of all shares. */
static GjStatus
start_flags(GjRun *run, GjRunStep *rs, uint64_t total)
{
	GjWork	   *work = &run->work;

	if (!gj_step_makes_rows(rs->step) || total == 0)
		return GJ_OK;
	GJ_TRY(gj_buffer_grow(work, &rs->unmatched.row_matched, 0, total, 0));
	rs->unmatched.nflags = total;
	return work->ops->memory->fill(work->queue, rs->unmatched.row_matched.memory, GJ_ROW_UNMATCHED, total);
}

/* The run's own share is what the build source's columns are. */
static void
describe_own(GjRun *run, GjRunStep *rs)
{
	GjRunRing  *x = rs->ring;

	memcpy(run->columns + run->sources[rs->step->source].first_column, x->own->columns,
		   x->ncolumns * sizeof(GjColumn));
	rs->unmatched.first_row = x->first;
}

GjStatus
gj_run_start_ring(GjRun *run)
{
	GjRunStep  *rs = ring_step(run);
	GjRunRing  *x = rs->ring;
	uint64_t	flag[GJ_MAX_RUN_DEVICES] = {0};
	uint64_t	total = 0;

	for (uint32_t s = 0; s < x->ring->nshares; s++)
	{
		flag[s] = total;
		total += x->ring->share[s].nrows;
	}
	x->first = flag[x->own - x->ring->share];
	rs->nmatchable = total;
	if (total == 0 && gj_match_ends_run(run, rs, 0))
		run->complete = true;
	GJ_TRY(start_flags(run, rs, total));
	GJ_TRY(make_blocks(run, rs, flag));
	GJ_TRY(reserve_buffers(run, rs));
	describe_own(run, rs);
	return GJ_OK;
}

void
gj_ring_range(const GjRunStep *rs, uint64_t *first, uint64_t *end)
{
	*first = rs->ring->first;
	*end = rs->ring->first + rs->ring->own->nrows;
}

/* ---- blocks: copied and joined */

/* Where what a buffer has of a block begins. */
typedef struct GjRingPlaces
{
	GjNestedRows rows;
	GjColumn	columns[GJ_MAX_COLUMNS];
	const void *heap[GJ_MAX_COLUMNS];	/* bytes of the columns' references */
} GjRingPlaces;

/* The next room for n values of `width` bytes. */
static void *
next_place(uint8_t **at, uint64_t n, uint32_t width)
{
	void	   *place = *at;

	*at += gj_align(n * width);
	return place;
}

/* Lays a block out in its buffer. */
static void
lay_out(const GjRunStep *rs, uint32_t b, GjRingPlaces *places)
{
	GjRunRing  *x = rs->ring;
	const GjRingBlock *block = &x->blocks[b];
	const GjRingShare *share = block->share;
	uint8_t    *at = x->buffer[b % 2].rows.memory;
	uint8_t    *heap = x->buffer[b % 2].heap.memory;

	places->rows = (GjNestedRows) {.nrows = block->nrows};
	for (uint32_t k = 0; k < rs->nbuild_operands; k++)
		places->rows.value[k] = next_place(&at, block->nrows, sizeof(int64_t));
	if (rs->nbuild_operands > 0)
		places->rows.null = next_place(&at, block->nrows, 1);
	for (uint32_t c = 0; c < x->ncolumns; c++)
	{
		GjColumn   *column = &places->columns[c];

		*column = share->columns[c];
		if (column->data)
			column->data = next_place(&at, block->nrows, column->width);
		if (column->nulls)
			column->nulls = next_place(&at, block->nrows, 1);
		if (!share->heap_at[c])
			continue;
		places->heap[c] = next_place(&heap, heap_bytes(share, c, block->first, block->nrows), 1);
		/* references count from the share's first byte */
		column->heap = (const uint8_t *) places->heap[c] -
			share->heap_at[c][block->first / GJ_RING_STEP];
	}
}

/* Queues a copy of what lies on the device of a share. */
static GjStatus
copy(GjRun *run, const GjRingShare *share, const void *to, const void *from, uint64_t nbytes)
{
	if (nbytes == 0)
		return GJ_OK;
	run->arrival.received += nbytes;
	return run->work.ops->memory->load_peer(run->work.queue, (void *) to, share->device, from,
											nbytes);
}

static GjStatus
copy_columns(GjRun *run, GjRunRing *x, const GjRingBlock *block, const GjRingPlaces *places)
{
	const GjRingShare *share = block->share;

	for (uint32_t c = 0; c < x->ncolumns; c++)
	{
		GjColumn	from;

		gj_columns_from(&from, &share->columns[c], 1, block->first);
		if (from.data)
			GJ_TRY(copy(run, share, places->columns[c].data, from.data,
						(uint64_t) block->nrows * from.width));
		if (from.nulls)
			GJ_TRY(copy(run, share, places->columns[c].nulls, from.nulls, block->nrows));
		if (share->heap_at[c])
			GJ_TRY(copy(run, share, places->heap[c], (const uint8_t *) from.heap +
						share->heap_at[c][block->first / GJ_RING_STEP],
						heap_bytes(share, c, block->first, block->nrows)));
	}
	return GJ_OK;
}

/* Queues the copy of block b to its buffer, unless there is none, or it is there. */
static GjStatus
fetch(GjRun *run, const GjRunStep *rs, uint32_t b)
{
	GjRunRing  *x = rs->ring;
	GjWork	   *work = &run->work;
	GjRingPlaces places;
	const GjRingBlock *block;
	const GjNestedRows *from;

	if (b >= x->nblocks || x->buffer[b % 2].block == b)
		return GJ_OK;
	block = &x->blocks[b];
	from = &block->share->rows;
	lay_out(rs, b, &places);
	GJ_TRY(work->ops->queues->after(work->queue, GJ_LANE_LOAD, GJ_MARK_JOINED(b)));
	for (uint32_t k = 0; k < rs->nbuild_operands; k++)
		GJ_TRY(copy(run, block->share, places.rows.value[k], from->value[k] + block->first,
					(uint64_t) block->nrows * sizeof(int64_t)));
	if (rs->nbuild_operands > 0)
		GJ_TRY(copy(run, block->share, places.rows.null, from->null + block->first,
					block->nrows));
	GJ_TRY(copy_columns(run, x, block, &places));
	x->buffer[b % 2].block = b;
	return work->ops->queues->mark(work->queue, GJ_LANE_LOAD, GJ_MARK_LOADED(b));
}

/* Joins tuples with a block, and has the one behind the next one copied to its buffer. */
static GjStatus
join_block(GjRun *run, uint32_t i, GjNested *loop, uint32_t b)
{
	GjRunStep  *rs = &run->steps[i];
	GjRunRing  *x = rs->ring;
	GjWork	   *work = &run->work;
	GjRingPlaces places;
	const GjColumn *columns;

	GJ_STOP_CHECK(run);
	lay_out(rs, b, &places);
	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->queues->after(work->queue, GJ_LANE_WORK, GJ_MARK_LOADED(b)));
	memcpy(run->columns + run->sources[rs->step->source].first_column, places.columns,
		   x->ncolumns * sizeof(GjColumn));
	rs->unmatched.first_row = x->blocks[b].flag;
	/* to where the view's columns are */
	GJ_TRY(gj_run_set_columns(run, &columns));
	GJ_TRY(gj_nested_rows(run, i, loop, &places.rows));
	GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_JOINED(b)));
	return fetch(run, rs, b + 2);
}

static GjStatus
join_ring(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	GjRunRing  *x = rs->ring;
	const GjColumn *columns;
	GjNested	loop;

	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_PROBE);
	GJ_TRY(gj_nested_start(run, rs, view, &loop));
	GJ_TRY(fetch(run, rs, 0));
	GJ_TRY(fetch(run, rs, 1));
	if (x->own->nrows > 0)
		GJ_TRY(gj_nested_rows(run, i, &loop, &x->own->rows));
	for (uint32_t b = 0; b < x->nblocks; b++)
		GJ_TRY(join_block(run, i, &loop, b));
	if (x->nblocks == 0)
		return GJ_OK;
	describe_own(run, rs);
	return gj_run_set_columns(run, &columns);
}

const GjJoinOps gj_join_ring = {
	.name = "ring",
	.plan = gj_nested_plan,.planned = gj_join_is_planned,.build = gj_ring_build,
	.improve = gj_join_is_fast,.join = join_ring,.end = gj_join_has_ended,.free = free_ring
};
