/*
 * set_matrix.cu
 *	  All pairs of a tile: common elements among the frequent ones, by tensor cores.
 *
 * Sets are rows of bits, a column an element; the tensor cores count the bits that two rows have
 * in common (mma.and.popc, sm_80 and later; an H200 was measured to do 9.8 * 10^15 one-bit
 * operations a second that way, 8.0 times as many as with int8).  MMJoin's split (Deep, Hu,
 * Koutris, "Fast join project query evaluation using matrix multiplication", SIGMOD 2020,
 * section 3): elements that few sets have are left to the inverted index.
 */
#include "set_tile.cuh"

#define MATRIX_TILE 128u /* left and right sets of a block */
#define STEP_WORDS 16u   /* of a row in shared memory at a time */
#define STEP_COLUMNS (STEP_WORDS * 32)
#define MMA_WORDS 8u /* of a row that an instruction takes: 256 bits */
/* Rows in shared memory lie so far apart that a warp's reads of 8 x 4 words meet all 32 banks. */
#define PART_WORDS (STEP_WORDS + 4)
#define MATRIX_BYTES (16u << 20) /* of both matrices in memory at a time */

static_assert(STEP_COLUMNS % GJ_SET_DENSE_STEP == 0, "columns");

uint32_t
gj_matrix_padded(uint32_t n)
{
	return (n + MATRIX_TILE - 1) / MATRIX_TILE * MATRIX_TILE;
}

/* The columns first .. first + nwords*32 - 1 of both sides' rows. */
struct Matrix
{
	uint32_t *bits;  /* [nrows + tile.stride][nwords]: left sets, then right ones, both padded */
	uint32_t nrows;  /* of the left sets */
	uint32_t nwords; /* a multiple of STEP_WORDS */
	uint32_t first;
	uint32_t ncolumns; /* that are wanted: the rest has no bits */
};

/* Sets the bits of zeroed rows: a warp a set. */
static __global__ void
__launch_bounds__(GJ_THREADS) fill_rows(Tile tile, Matrix matrix)
{
	const uint32_t set = (blockIdx.x * GJ_THREADS + threadIdx.x) / 32;
	const bool is_left = set < tile.nleft;
	uint32_t *row;
	Codes codes;

	if (set >= tile.nleft + tile.nright)
		return;
	codes = is_left ? get_left(tile, set) : get_right(tile, set - tile.nleft);
	row =
		matrix.bits + (uint64_t) (is_left ? set : set - tile.nleft + matrix.nrows) * matrix.nwords;
	for (uint32_t i = gj_lower_bound(codes.at, codes.n, matrix.first) + threadIdx.x % 32;
		 i < codes.n; i += 32)
	{
		const uint32_t column = codes.at[i] - matrix.first;

		if (column >= matrix.ncolumns)
			break;
		atomicOr(&row[column / 32], 1u << (column % 32));
	}
}

/*
 * sum += the common bits of 16 rows of `a` and 8 of `b`.  PTX ISA, "Matrix fragments for
 * mma.m16n8k256": lane l has of rows l / 4 and l / 4 + 8 of `a` the words l % 4 and l % 4 + 4, of
 * row l / 4 of `b` the same words, and of rows l / 4 and l / 4 + 8 of the sum the columns
 * l % 4 * 2 and the one behind.
 */
static __device__ __forceinline__ void
multiply_bits(int (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Rows of a matrix in shared memory: STEP_WORDS words of each. */
typedef uint32_t Part[MATRIX_TILE][PART_WORDS];

/* from: the first word wanted of the first row. */
static __device__ __forceinline__ void
load_part(Part &part, const uint32_t *from, uint32_t nwords)
{
	for (uint32_t i = threadIdx.x; i < MATRIX_TILE * STEP_WORDS / 4; i += GJ_THREADS)
	{
		const uint32_t row = i / (STEP_WORDS / 4);
		const uint32_t word = i % (STEP_WORDS / 4) * 4;

		*(uint4 *) &part[row][word] = *(const uint4 *) &from[(uint64_t) row * nwords + word];
	}
}

/*
 * counts[][] = the common bits of left and right rows, or adds them.  A block makes 128 x 128
 * counts, a warp 32 x 64 of them.
 */
static __global__ void
__launch_bounds__(GJ_THREADS) multiply(Tile tile, Matrix matrix, bool add)
{
	__shared__ __align__(16) Part part_a;
	__shared__ __align__(16) Part part_b;
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t group = threadIdx.x % 32 / 4;
	const uint32_t word = threadIdx.x % 4;
	const uint32_t warp_row = warp % 4 * 32;
	const uint32_t warp_column = warp / 4 * 64;
	const uint32_t row = blockIdx.y * MATRIX_TILE;
	const uint32_t column = blockIdx.x * MATRIX_TILE;
	const uint32_t *a = matrix.bits + (uint64_t) row * matrix.nwords;
	const uint32_t *b = matrix.bits + ((uint64_t) matrix.nrows + column) * matrix.nwords;
	int sum[2][8][4] = {};

	/* pairs of a family with itself that come the other way round */
	if (tile.self && tile.top_k == 0 && tile.right + column + MATRIX_TILE - 1 <= tile.left + row)
		return;
	for (uint32_t k = 0; k < matrix.nwords; k += STEP_WORDS)
	{
		load_part(part_a, a + k, matrix.nwords);
		load_part(part_b, b + k, matrix.nwords);
		__syncthreads();
#pragma unroll
		for (uint32_t s = word; s < STEP_WORDS; s += MMA_WORDS)
		{
			uint32_t x[2][4];

#pragma unroll
			for (uint32_t i = 0; i < 2; i++)
			{
				const uint32_t r = warp_row + i * 16 + group;

				x[i][0] = part_a[r][s];
				x[i][1] = part_a[r + 8][s];
				x[i][2] = part_a[r][s + 4];
				x[i][3] = part_a[r + 8][s + 4];
			}
#pragma unroll
			for (uint32_t j = 0; j < 8; j++)
			{
				const uint32_t r = warp_column + j * 8 + group;
				const uint32_t y[2] = {part_b[r][s], part_b[r][s + 4]};

				multiply_bits(sum[0][j], x[0], y);
				multiply_bits(sum[1][j], x[1], y);
			}
		}
		__syncthreads();
	}
#pragma unroll
	for (uint32_t i = 0; i < 2; i++)
	{
#pragma unroll
		for (uint32_t j = 0; j < 8; j++)
		{
			uint32_t *to = tile.counts +
						   (uint64_t) (row + warp_row + i * 16 + group) * tile.stride + column +
						   warp_column + j * 8 + word * 2;

#pragma unroll
			for (uint32_t h = 0; h < 2; h++, to += (uint64_t) 8 * tile.stride)
			{
				uint2 counts =
					make_uint2((uint32_t) sum[i][j][h * 2], (uint32_t) sum[i][j][h * 2 + 1]);

				if (add)
				{
					const uint2 before = *(uint2 *) to;

					counts.x += before.x;
					counts.y += before.y;
				}
				*(uint2 *) to = counts;
			}
		}
	}
}

GjStatus
gj_count_matrix(GjQueue *queue, const GjSetFamily *family, const Tile &tile)
{
	const uint32_t nrows = gj_matrix_padded(tile.nleft);
	const uint32_t nsides = nrows + tile.stride;
	const uint32_t all = (family->ndense + STEP_COLUMNS - 1) / STEP_COLUMNS * STEP_WORDS;
	const uint32_t most =
		max(MATRIX_BYTES / 4 / nsides / STEP_WORDS * STEP_WORDS, (uint32_t) STEP_WORDS);
	const uint32_t nwords = min(all, most);
	const dim3 grid(tile.stride / MATRIX_TILE, nrows / MATRIX_TILE);
	const size_t nbytes = (size_t) nsides * nwords * sizeof(uint32_t);
	void *memory;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes, &memory));
	for (uint32_t first = 0; first < family->ndense; first += nwords * 32)
	{
		const Matrix matrix = {(uint32_t *) memory, nrows, nwords, first,
							   min(nwords * 32, family->ndense - first)};

		GJ_CUDA(queue, cudaMemsetAsync(memory, 0, nbytes, queue->stream));
		fill_rows<<<gj_blocks((uint64_t) tile.nleft + tile.nright, WARPS), GJ_THREADS, 0,
					queue->stream>>>(tile, matrix);
		GJ_LAUNCHED(queue, "fill_rows");
		multiply<<<grid, GJ_THREADS, 0, queue->stream>>>(tile, matrix, first > 0);
		GJ_LAUNCHED(queue, "multiply");
	}
	return GJ_OK;
}
