/*
 * set_tile.cu
 *	  All pairs of a tile of left and right sets: common elements, then what is wanted.
 *
 * The common elements of all pairs of the tile, at most GJ_SET_MOST_PAIRS of them, are counted
 * in an array that stays in the L2 cache: a row a left set, `stride` entries a row.
 *
 *	merge_path, binary_search	a warp a pair; the left set in shared memory
 *	hash, bitmap				a block for a left set and some right ones: a table or a
 *								window of a bitmap in shared memory, used by all of them
 *	inverted_index				a warp an element of a left set, which walks the right sets
 *								that have it
 *	matrix						set_matrix.cu for the frequent elements, inverted_index for
 *								the rest
 *
 * set_keep.cu then takes what is wanted.  Few pairs of large sets are done one by one by
 * set_pair.cu, each on the whole GPU.  What the filters leave out, and why, is told in
 * src/device/set_join.h.
 */
#include "set_tile.cuh"

#define LEFT_CODES 4096     /* of a left set in shared memory at a time */
#define TABLE_SLOTS 8192    /* twice as many */
#define WINDOW_BITS 262144u /* of the bitmap */
#define BLOCK_RIGHTS 64     /* right sets of a block */
#define SLICE_RIGHTS 2048   /* right sets that are worth a slice of the postings of an element */
#define WARP_ITEMS 4        /* slices of a warp, on average, if that many are worth it */
#define BLOCKS_PER_PROCESSOR (2048 / GJ_THREADS)
#define LARGE_SET 4096u /* elements of a set that are worth a launch for a pair */
#define NO_CODE UINT32_MAX

/* ---- what each left set needs */

/* The sum of all lanes' values; all lanes of the warp call it. */
static __device__ __forceinline__ uint64_t
warp_sum(uint64_t value)
{
	for (uint32_t distance = 16; distance > 0; distance /= 2)
		value += __shfl_xor_sync(0xFFFFFFFF, value, distance);
	return value;
}

/*
 * The head of a left set, or 0 if counting along its lists is less work than looking it up in the
 * right sets that the rest finds, of which there are about as many as if it were spread evenly.
 * All lanes of the warp call it.
 */
static __device__ uint32_t
useful_head(const Tile &tile, Codes left, uint32_t head, uint32_t nright)
{
	uint64_t tail_steps = 0;
	uint64_t head_steps = 0;
	uint64_t least;
	double share;

	if (head == 0 || left.n > GJ_SET_GPU_HEAD_SIZE)
		return 0;
	for (uint32_t i = threadIdx.x % 32; i < left.n; i += 32)
	{
		const uint64_t *offset = tile.posting_offset + left.at[i];

		if (i < head)
			head_steps += offset[1] - offset[0];
		else
			tail_steps += offset[1] - offset[0];
	}
	tail_steps = warp_sum(tail_steps);
	head_steps = warp_sum(head_steps);
	least = gj_set_common_of_equals(tile.predicate, tile.threshold, left.n);
	share = gj_set_share_from((double) tail_steps / nright, least > head ? least - head : 1);
	return share * nright * head * 2 * GJ_SET_GPU_HEAD_STEP > (double) head_steps ? 0 : head;
}

/* A warp a left set.  nright: of the family, where the index counts; else 0: there are no heads. */
static __global__ void
__launch_bounds__(GJ_THREADS) plan_rows(Tile tile, uint32_t nright)
{
	const uint32_t row = (blockIdx.x * GJ_THREADS + threadIdx.x) / 32;
	uint32_t common = 1;
	uint32_t least = 0;
	uint32_t head = 0;
	Codes left;

	if (row >= tile.nleft)
		return;
	left = get_left(tile, row);
	/* where elements count more than once, few of them can be enough */
	if (tile.top_k == 0 && !tile.multiple)
		least = common = (uint32_t) gj_set_min_common(tile.predicate, tile.threshold, left.n);
	if (common > left.n)
	{
		if (tile.top_k == 0 && !tile.multiple)
			least = head = SKIP_ROW;
	}
	else if (nright > 0 && common > 0)
		head = useful_head(tile, left, common - 1, nright);
	if (threadIdx.x % 32 == 0)
	{
		tile.head[row] = head;
		tile.least[row] = least;
	}
}

/* ---- a warp a pair */

/* Common codes of two sets: each lane walks its part of the merged order. */
static __device__ __forceinline__ uint32_t
warp_merge(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint64_t total = (uint64_t) na + nb;
	const uint64_t part = (total + 31) / 32;
	const uint64_t start = min(lane * part, total);
	const uint64_t end = min(start + part, total);
	uint64_t low = start > nb ? start - nb : 0;
	uint64_t high = start < na ? start : na;
	uint32_t count = 0;
	uint32_t i;
	uint32_t j;

	while (low < high)
	{
		const uint64_t mid = low + (high - low) / 2;

		if (a[mid] <= b[start - 1 - mid])
			low = mid + 1;
		else
			high = mid;
	}
	i = (uint32_t) low;
	j = (uint32_t) (start - low);
	for (uint64_t step = start; step < end; step++)
	{
		if (i < na && (j >= nb || a[i] <= b[j]))
			i++;
		else
		{
			count += i > 0 && a[i - 1] == b[j];
			j++;
		}
	}
	return __reduce_add_sync(0xFFFFFFFF, count);
}

/* Each lane looks codes of the smaller set up in the larger one. */
static __device__ __forceinline__ uint32_t
warp_search(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb)
{
	const uint32_t *small = na <= nb ? a : b;
	const uint32_t *large = na <= nb ? b : a;
	const uint32_t nsmall = min(na, nb);
	const uint32_t nlarge = max(na, nb);
	uint32_t count = 0;

	for (uint32_t i = threadIdx.x % 32; i < nsmall; i += 32)
	{
		const uint32_t at = gj_lower_bound(large, nlarge, small[i]);

		count += at < nlarge && large[at] == small[i];
	}
	return __reduce_add_sync(0xFFFFFFFF, count);
}

template <bool SEARCH>
static __global__ void
__launch_bounds__(GJ_THREADS) count_pairs(Tile tile)
{
	__shared__ uint32_t staged[LEFT_CODES];
	const uint32_t row = blockIdx.y;
	const Codes left = get_left(tile, row);
	const bool fits = left.n <= LEFT_CODES;
	const uint32_t *a = fits ? staged : left.at;
	const uint32_t end = min((blockIdx.x + 1) * BLOCK_RIGHTS, tile.nright);

	for (uint32_t i = threadIdx.x; fits && i < left.n; i += GJ_THREADS)
		staged[i] = left.at[i];
	__syncthreads();
	/* all lanes of a warp have the same column */
	for (uint32_t column = blockIdx.x * BLOCK_RIGHTS + threadIdx.x / 32; column < end;
		 column += WARPS)
	{
		const Codes right = get_right(tile, column);
		uint32_t count = 0;

		if (possible(tile, row, column, left.n, right.n))
			count = SEARCH ? warp_search(a, left.n, right.at, right.n)
						   : warp_merge(a, left.n, right.at, right.n);
		if (threadIdx.x % 32 == 0)
			tile.counts[(uint64_t) row * tile.stride + column] = count;
	}
}

/* ---- a block for a left set and some right ones */

static __device__ __forceinline__ uint32_t
table_slot(uint32_t code)
{
	return (code * 0x9E3779B1u) >> 19; /* 13 bits: TABLE_SLOTS */
}

/* Counts of a part of the left set are added to those of the parts before. */
static __device__ __forceinline__ void
add_count(const Tile &tile, uint32_t row, uint32_t column, uint32_t count, bool first)
{
	uint32_t *to = &tile.counts[(uint64_t) row * tile.stride + column];

	count = __reduce_add_sync(0xFFFFFFFF, count);
	if (threadIdx.x % 32 == 0)
		*to = first ? count : *to + count;
}

static __global__ void
__launch_bounds__(GJ_THREADS) count_hash(Tile tile)
{
	__shared__ uint32_t table[TABLE_SLOTS];
	const uint32_t row = blockIdx.y;
	const Codes left = get_left(tile, row);
	const uint32_t begin = blockIdx.x * BLOCK_RIGHTS + threadIdx.x / 32;
	const uint32_t end = min((blockIdx.x + 1) * BLOCK_RIGHTS, tile.nright);
	uint32_t first = 0;

	do
	{
		const uint32_t n = min(left.n - first, (uint32_t) LEFT_CODES);

		for (uint32_t i = threadIdx.x; i < TABLE_SLOTS; i += GJ_THREADS)
			table[i] = NO_CODE;
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		{
			const uint32_t code = left.at[first + i];
			uint32_t s = table_slot(code);

			while (atomicCAS(&table[s], NO_CODE, code) != NO_CODE)
				s = (s + 1) % TABLE_SLOTS;
		}
		__syncthreads();
		for (uint32_t column = begin; column < end; column += WARPS)
		{
			const Codes right = get_right(tile, column);
			uint32_t count = 0;

			if (possible(tile, row, column, left.n, right.n))
				for (uint32_t i = threadIdx.x % 32; i < right.n; i += 32)
				{
					const uint32_t code = right.at[i];
					uint32_t s = table_slot(code);

					while (table[s] != NO_CODE && table[s] != code)
						s = (s + 1) % TABLE_SLOTS;
					count += table[s] == code;
				}
			__syncwarp();
			add_count(tile, row, column, count, first == 0);
		}
		__syncthreads();
		first += n;
	} while (first < left.n);
}

static __global__ void
__launch_bounds__(GJ_THREADS) count_bitmap(Tile tile)
{
	__shared__ uint32_t bits[WINDOW_BITS / 32];
	const uint32_t row = blockIdx.y;
	const Codes left = get_left(tile, row);
	const uint32_t begin = blockIdx.x * BLOCK_RIGHTS + threadIdx.x / 32;
	const uint32_t end = min((blockIdx.x + 1) * BLOCK_RIGHTS, tile.nright);
	uint32_t first = 0;
	bool fresh = true;

	do
	{
		/* the window that has the next code of the left set; all threads agree on it */
		const uint32_t base = left.n > 0 ? left.at[first] / WINDOW_BITS * WINDOW_BITS : 0;
		const uint32_t n =
			left.n == 0 ? 0
			: base > UINT32_MAX - WINDOW_BITS
				? left.n - first
				: gj_lower_bound(left.at + first, left.n - first, base + WINDOW_BITS);

		for (uint32_t i = threadIdx.x; i < WINDOW_BITS / 32; i += GJ_THREADS)
			bits[i] = 0;
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		{
			const uint32_t bit = left.at[first + i] - base;

			atomicOr(&bits[bit / 32], 1u << (bit % 32));
		}
		__syncthreads();
		for (uint32_t column = begin; column < end; column += WARPS)
		{
			const Codes right = get_right(tile, column);
			uint32_t count = 0;

			if (n > 0 && possible(tile, row, column, left.n, right.n))
				for (uint32_t i = gj_lower_bound(right.at, right.n, base) + threadIdx.x % 32;
					 i < right.n && right.at[i] - base < WINDOW_BITS; i += 32)
				{
					const uint32_t bit = right.at[i] - base;

					count += bits[bit / 32] >> (bit % 32) & 1;
				}
			__syncwarp();
			add_count(tile, row, column, count, fresh);
		}
		__syncthreads();
		fresh = false;
		first += n;
	} while (first < left.n);
}

/* ---- the inverted index */

/* The right sets of the tile that have element number `at` of its left sets: a slice of them. */
static __device__ __forceinline__ void
count_element(const Tile &tile, uint64_t at, uint32_t slice, uint32_t nslices)
{
	const uint64_t *offset = tile.offset + tile.left;
	const uint32_t code = tile.code[at];
	uint32_t row;
	uint32_t from = tile.right;
	uint64_t p;
	uint64_t end;
	uint32_t *counts;

	if (code < tile.min_code)
		return;
	row = gj_last_at_most(offset, 0, tile.nleft, at);
	if (at - offset[row] < tile.head[row]) /* SKIP_ROW too */
		return;
	if (tile.self && tile.top_k == 0)
		from = max(from, tile.left + row + 1);
	p = tile.posting_offset[code];
	end = tile.posting_offset[code + 1];
	if (from > 0)
		p += gj_lower_bound(tile.posting + p, (uint32_t) (end - p), from);
	counts = tile.counts + (uint64_t) row * tile.stride;
	for (p += slice * 32 + threadIdx.x % 32; p < end; p += nslices * 32)
	{
		const uint32_t column = tile.posting[p] - tile.right;

		if (column >= tile.nright)
			break;
		atomicAdd(&counts[column], 1u);
	}
}

/* A warp a slice of the postings of an element, then one of another. */
static __global__ void
__launch_bounds__(GJ_THREADS) count_postings(Tile tile, uint32_t nslices)
{
	const uint64_t first = tile.offset[tile.left];
	const uint64_t nitems = (tile.offset[tile.left + tile.nleft] - first) * nslices;

	for (uint64_t i = ((uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x) / 32; i < nitems;
		 i += (uint64_t) gridDim.x * WARPS)
		count_element(tile, first + i / nslices, (uint32_t) (i % nslices), nslices);
}

/* Adds the heads, where the rest has common elements and that could make the pair wanted. */
static __global__ void
__launch_bounds__(GJ_THREADS) add_heads(Tile tile)
{
	const uint32_t column = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t row = blockIdx.y;
	const uint32_t head = tile.head[row];
	uint32_t count;
	uint32_t i = 0;
	uint32_t j = 0;
	Codes left;
	Codes right;

	if (column >= tile.nright || head == 0 || head == SKIP_ROW)
		return;
	count = tile.counts[(uint64_t) row * tile.stride + column];
	if (count == 0)
		return;
	left = get_left(tile, row);
	right = get_right(tile, column);
	if (!gj_set_worth_head(tile.predicate, tile.threshold, count, head, left.n, right.n))
		return;
	while (i < head && j < right.n)
	{
		const uint32_t a = left.at[i];
		const uint32_t b = right.at[j];

		count += a == b;
		i += a <= b;
		j += b <= a;
	}
	tile.counts[(uint64_t) row * tile.stride + column] = count;
}

/* ---- counting a tile */

/* The tile's part of the offsets, on the host. */
static GjStatus
get_offsets(GjQueue *queue, const GjSetFamily *family, uint32_t set, uint32_t n, uint64_t *offset)
{
	GJ_CUDA(queue, cudaMemcpyAsync(offset, family->offset + set, (n + 1) * sizeof(uint64_t),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	return GJ_OK;
}

/* Few pairs of large sets: each on the whole GPU. */
static GjStatus
count_large(GjQueue *queue, const GjSetFamily *family, const Tile &tile, bool (*stop)(void *),
			void *arg)
{
	uint64_t left[GJ_SET_FEW_PAIRS + 1];
	uint64_t right[GJ_SET_FEW_PAIRS + 1];

	GJ_TRY(get_offsets(queue, family, tile.left, tile.nleft, left));
	GJ_TRY(get_offsets(queue, family, tile.first_right + tile.right, tile.nright, right));
	for (uint32_t row = 0; row < tile.nleft; row++)
		for (uint32_t column = 0; column < tile.nright; column++)
		{
			GjSetPair pair = {};
			uint32_t *to = tile.counts + (uint64_t) row * tile.stride + column;

			pair.a = family->code + left[row];
			pair.na = left[row + 1] - left[row];
			pair.b = family->code + right[column];
			pair.nb = right[column + 1] - right[column];
			pair.width = sizeof(uint32_t);
			pair.operation = GJ_SETS_INTERSECT;
			pair.algorithm = family->algorithm;
			if (stop && stop(arg))
				return GJ_CANCELLED;
			if (pair.na == 0 || pair.nb == 0)
			{
				GJ_CUDA(queue, cudaMemsetAsync(to, 0, sizeof(uint32_t), queue->stream));
				continue;
			}
			GJ_TRY(gj_set_pair_start(queue, &pair, NULL));
			/* the low half: sets have less than 2^32 elements */
			GJ_CUDA(queue, cudaMemcpyAsync(to, &queue->results->total, sizeof(uint32_t),
										   cudaMemcpyDeviceToDevice, queue->stream));
		}
	return GJ_OK;
}

/* How many elements the left sets have is known on the device: as many warps as it runs at once. */
static GjStatus
count_index(GjQueue *queue, const GjSetFamily *family, const Tile &tile)
{
	const uint32_t nblocks = (uint32_t) queue->device->nprocessors * BLOCKS_PER_PROCESSOR;
	const uint64_t elements = (uint64_t) tile.nleft * (gj_set_average(family) + 1);
	const uint64_t wanted = (uint64_t) nblocks * WARPS * WARP_ITEMS / elements + 1;

	count_postings<<<nblocks, GJ_THREADS, 0, queue->stream>>>(
		tile, (uint32_t) min(wanted, (uint64_t) gj_blocks(tile.nright, SLICE_RIGHTS)));
	GJ_LAUNCHED(queue, "count_postings");
	return GJ_OK;
}

static GjStatus
count_tile(GjQueue *queue, const GjSetFamily *family, const Tile &tile, bool (*stop)(void *),
		   void *arg)
{
	const dim3 grid(gj_blocks(tile.nright, BLOCK_RIGHTS), tile.nleft);
	const dim3 cells(gj_blocks(tile.nright, GJ_THREADS), tile.nleft);
	const uint64_t npairs = (uint64_t) tile.nleft * tile.nright;

	if (family->algorithm < GJ_SETS_INVERTED_INDEX && npairs <= GJ_SET_FEW_PAIRS &&
		family->max_size >= npairs * LARGE_SET && family->universe <= INT32_MAX)
		return count_large(queue, family, tile, stop, arg);
	switch (family->algorithm)
	{
		case GJ_SETS_BINARY_SEARCH:
			count_pairs<true><<<grid, GJ_THREADS, 0, queue->stream>>>(tile);
			break;
		case GJ_SETS_HASH:
			count_hash<<<grid, GJ_THREADS, 0, queue->stream>>>(tile);
			break;
		case GJ_SETS_BITMAP:
			count_bitmap<<<grid, GJ_THREADS, 0, queue->stream>>>(tile);
			break;
		case GJ_SETS_MATRIX:
			GJ_TRY(gj_count_matrix(queue, family, tile));
			return family->ndense < family->universe ? count_index(queue, family, tile) : GJ_OK;
		case GJ_SETS_INVERTED_INDEX:
			GJ_TRY(count_index(queue, family, tile));
			add_heads<<<cells, GJ_THREADS, 0, queue->stream>>>(tile);
			break;
		default:
			count_pairs<false><<<grid, GJ_THREADS, 0, queue->stream>>>(tile);
			break;
	}
	GJ_LAUNCHED(queue, "counting a tile");
	return GJ_OK;
}

/* ---- set_tile */

GjStatus
gj_set_tile(GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
			const GjSetTile *where, bool (*stop)(void *), void *arg, uint32_t *const out[3],
			uint32_t *n)
{
	const bool matrix = family->algorithm == GJ_SETS_MATRIX;
	const uint32_t stride = matrix ? gj_matrix_padded(where->nright) : where->nright;
	const size_t ncounts =
		(size_t) stride * (matrix ? gj_matrix_padded(where->nleft) : where->nleft);
	Tile tile = {};
	void *memory;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	if ((uint64_t) where->nleft * where->nright > min(family->tile_pairs, GJ_SET_MOST_PAIRS))
		return GJ_BAD_PROGRAM;
	if (where->nleft == 0 || where->nright == 0)
		return GJ_OK;
	/* grid.y is at most that */
	if (where->nleft > GJ_SET_MAX_HEIGHT)
		return GJ_BAD_PROGRAM;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_B, (ncounts + 2 * (size_t) where->nleft) * sizeof(uint32_t),
					  &memory));
	tile.offset = family->offset;
	tile.code = family->code;
	tile.posting_offset = family->posting_offset;
	tile.posting = family->posting;
	tile.first_right = family->first_right;
	tile.left = where->left;
	tile.nleft = where->nleft;
	tile.right = where->right;
	tile.nright = where->nright;
	tile.counts = (uint32_t *) memory;
	tile.stride = stride;
	tile.head = tile.counts + ncounts;
	tile.least = tile.head + where->nleft;
	tile.min_code = matrix ? family->ndense : 0;
	tile.top_k = spec->top_k;
	tile.predicate = spec->predicate;
	tile.self = spec->self;
	tile.multiple = family->multiple;
	tile.threshold = spec->threshold;

	plan_rows<<<gj_blocks(tile.nleft, WARPS), GJ_THREADS, 0, queue->stream>>>(
		tile, family->algorithm == GJ_SETS_INVERTED_INDEX ? family->nright : 0);
	GJ_LAUNCHED(queue, "plan_rows");
	if (family->algorithm == GJ_SETS_INVERTED_INDEX)
		GJ_CUDA(queue, cudaMemsetAsync(tile.counts, 0, ncounts * sizeof(uint32_t), queue->stream));
	GJ_TRY(count_tile(queue, family, tile, stop, arg));
	return spec->top_k > 0 ? gj_keep_best(queue, tile, out, n)
						   : gj_keep_matches(queue, tile, out, n);
}
