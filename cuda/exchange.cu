/*
 * exchange.cu
 *	  Splits rows by their keys, part by part, for an exchange; and the bytes of references.
 *
 * A split takes one kernel (split_tile.cuh) or two.  With two, a warp takes strips of rows and
 * needs nothing of other warps.  The first kernel reads keys alone, notes the part of each row,
 * and counts the rows of each part in its strip.  Sums of these counts, part by part and in the
 * order of strips, say where the rows of each strip go.  The second kernel writes them, column by
 * column, the rows of a strip and part next to each other.
 */
#include <cub/device/device_scan.cuh>

#include "load.cuh"
#include "split_tile.cuh"

/* ---- split */

#define STRIP_STEPS 16u /* rows of a thread */
#define STRIP_ROWS (STRIP_STEPS * WARP)
#define BATCH 8u /* of these, loaded together */

/* Parts of BATCH rows of a piece, of which the bits of `wanted` tell those that are there. */
static __device__ __forceinline__ void
find_parts(const Input &input, const GjColumn *keys, const uint32_t (&row)[BATCH], uint32_t wanted,
		   uint32_t (&part)[BATCH])
{
	uint64_t hash[BATCH] = {};
	int64_t value[BATCH];

	for (uint32_t k = 0; k < input.nkeys; k++)
	{
		const bool is_float = keys[k].kind == GJ_FLOAT8 || keys[k].kind == GJ_FLOAT4;

		wanted = load_column<BATCH>(keys[k], row, wanted, value);
#pragma unroll
		for (uint32_t i = 0; i < BATCH; i++)
			hash[i] = gj_hash_combine(hash[i], gj_key_bits(value[i], is_float));
	}
#pragma unroll
	for (uint32_t i = 0; i < BATCH; i++)
		part[i] = wanted >> i & 1 ? gj_hash_part(hash[i], input.nparts) : input.null_part;
}

/* Rows of each part that a thread has seen, a byte each: it has at most STRIP_STEPS. */
template <uint32_t words>
struct PartCounts
{
	uint32_t word[words];

	__device__ __forceinline__ void
	add(uint32_t part)
	{
		const uint32_t one = 1u << part % 4 * 8;

#pragma unroll
		for (uint32_t w = 0; w < words; w++)
			word[w] += words == 1 || part / 4 == w ? one : 0;
	}

	/* That of part `lane`, of all threads of the warp. */
	__device__ __forceinline__ uint32_t
	sum(uint32_t lane) const
	{
		uint32_t count = 0;

#pragma unroll
		for (uint32_t w = 0; w < words; w++)
		{
			/* two sums of at most STRIP_ROWS at a time */
			const uint32_t even = __reduce_add_sync(0xFFFFFFFF, word[w] & 0x00FF00FF);
			const uint32_t odd = __reduce_add_sync(0xFFFFFFFF, word[w] >> 8 & 0x00FF00FF);

			if (lane / 4 == w)
				count = (lane % 2 == 0 ? even : odd) >> lane % 4 / 2 * 16 & 0xFFFF;
		}
		return count;
	}
};

static_assert(STRIP_STEPS < 256, "a thread counts the rows of a part in a byte");

/* True if the keys of a strip can be found by count_plain. */
static __device__ __forceinline__ bool
is_plain(const Input &input, const Strip &strip, const Piece &piece, const GjColumn *keys)
{
	return strip.n == STRIP_ROWS && input.nkeys == 1 && is_plain_key(*keys) && piece.rows == NULL;
}

/* The parts of a strip that is full, of one key that is an integer and never NULL. */
template <typename T, uint32_t words>
static __device__ __forceinline__ void
count_plain(const Input &input, const T *key, uint32_t lane, uint8_t *to, PartCounts<words> &counts)
{
	T value[STRIP_STEPS];

#pragma unroll
	for (uint32_t s = 0; s < STRIP_STEPS; s++)
		value[s] = key[lane + s * WARP];
#pragma unroll
	for (uint32_t s = 0; s < STRIP_STEPS; s++)
	{
		const uint32_t part = plain_part(input, value[s]);

		counts.add(part);
		to[lane + s * WARP] = (uint8_t) part;
	}
}

/* The parts of any strip. */
template <uint32_t words>
static __device__ __forceinline__ void
count_any(const Input &input, const Strip &strip, const Piece &piece, const GjColumn *keys,
		  uint32_t lane, uint8_t *to, PartCounts<words> &counts)
{
	for (uint32_t base = lane; base < strip.n; base += BATCH * WARP)
	{
		uint32_t row[BATCH];
		uint32_t part[BATCH];
		uint32_t wanted = 0;

#pragma unroll
		for (uint32_t i = 0; i < BATCH; i++)
		{
			const uint32_t r = base + i * WARP;

			row[i] = strip.first + r;
			if (r >= strip.n)
				continue;
			wanted |= 1u << i;
			if (piece.rows != NULL && !input.computed)
				row[i] = piece.rows[strip.first + r];
		}
		find_parts(input, keys, row, wanted, part);
#pragma unroll
		for (uint32_t i = 0; i < BATCH; i++)
		{
			if (!(wanted >> i & 1))
				continue;
			counts.add(part[i]);
			to[base + i * WARP] = (uint8_t) part[i];
		}
	}
}

/* words: of PartCounts, for all parts. */
template <uint32_t words>
static __global__ void
__launch_bounds__(GJ_THREADS) split_count(const __grid_constant__ Input input)
{
	const uint32_t number = (blockIdx.x * GJ_THREADS + threadIdx.x) / WARP;
	const uint32_t lane = threadIdx.x % WARP;
	PartCounts<words> counts = {};

	if (number >= input.nstrips)
		return;

	const Strip strip = find_strip(input, number, STRIP_ROWS);
	const Piece piece = input.pieces[strip.piece];
	const GjColumn *keys = input.keys + (size_t) strip.piece * input.nkeys;
	uint8_t *to = input.part + piece.first_row + strip.first;

	if (!is_plain(input, strip, piece, keys))
		count_any(input, strip, piece, keys, lane, to, counts);
	else if (keys->kind == GJ_INT8)
		count_plain(input, (const int64_t *) keys->data + strip.first, lane, to, counts);
	else
		count_plain(input, (const int32_t *) keys->data + strip.first, lane, to, counts);
	__syncwarp();

	const uint32_t count = counts.sum(lane);

	if (lane < input.nparts)
		input.counts[(size_t) lane * input.nstrips + number] = count;
}

/*
 * Values of the lane's rows of a strip, which has n from its first one on, to places at[].  `from`
 * is where the values begin, or those that `rows` says; ROWS: there are any.
 */
template <typename T, bool ROWS>
static __device__ __forceinline__ void
write_values(const T *from, T *to, const uint32_t *rows, uint32_t n,
			 const uint32_t (&at)[STRIP_STEPS])
{
	constexpr uint32_t batch = sizeof(T) > 8 ? BATCH / 2 : BATCH;

#pragma unroll
	for (uint32_t s = 0; s < STRIP_STEPS; s += batch)
	{
		T value[batch];

#pragma unroll
		for (uint32_t i = 0; i < batch; i++)
		{
			const uint32_t r = (s + i) * WARP;

			value[i] = T();
			if (r < n)
				value[i] = from[ROWS ? rows[r] : r];
		}
#pragma unroll
		for (uint32_t i = 0; i < batch; i++)
		{
			if ((s + i) * WARP < n)
				to[at[s + i]] = value[i];
		}
	}
}

/* The same of a packed column of the piece. */
static __device__ __noinline__ void
unpack_column(const GjColumn &column, void *to, const Piece &piece, uint32_t first, uint32_t n,
			  const uint32_t (&at)[STRIP_STEPS])
{
	for (uint32_t s = 0; s < STRIP_STEPS && s * WARP < n; s++)
	{
		const uint32_t row = first + s * WARP;

		gj_put_value((uint8_t *) to + (size_t) at[s] * column.width, column.width,
					 gj_packed_value(&column, piece.rows != NULL ? piece.rows[row] : row));
	}
}

/* The same of a column of the piece that is not packed; `from` is NULL: all of them are 0. */
template <typename T>
static __device__ __forceinline__ void
write_column(const void *from, void *to, const Piece &piece, uint32_t first, uint32_t n,
			 const uint32_t (&at)[STRIP_STEPS])
{
	if (from == NULL)
	{
#pragma unroll
		for (uint32_t s = 0; s < STRIP_STEPS; s++)
		{
			if (s * WARP < n)
				((T *) to)[at[s]] = T();
		}
	}
	else if (piece.rows != NULL)
		write_values<T, true>((const T *) from, (T *) to, piece.rows + first, n, at);
	else
		write_values<T, false>((const T *) from + first, (T *) to, NULL, n, at);
}

/* Where the first row of part `lane` in a strip goes.  The first strip notes where parts are. */
static __device__ __forceinline__ uint32_t
first_place(const Input &input, uint32_t number, uint32_t lane)
{
	const uint32_t *sums = input.counts + (size_t) lane * input.nstrips;
	const bool is_part = lane < input.nparts;
	const uint32_t first = is_part ? sums[0] : 0;
	const uint32_t end =
		!is_part ? 0 : (lane + 1 < input.nparts ? sums[input.nstrips] : input.nrows);
	const uint32_t room = (end - first + GJ_SPLIT_ALIGN - 1) / GJ_SPLIT_ALIGN * GJ_SPLIT_ALIGN;
	const uint32_t start = sum_up_to_lane(room) - room;

	if (number == 0 && is_part)
	{
		input.parts->start[lane] = start;
		input.parts->end[lane] = start + (end - first);
	}
	return is_part ? start + (sums[number] - first) : 0;
}

/*
 * Writes the lane's rows of a strip.  at[]: their parts, then their places; next: in lane p, of the
 * strip's first row of part p.
 */
static __device__ __forceinline__ void
write_rows(const Input &input, const Strip &strip, const Piece &piece, uint32_t lane, uint32_t next,
		   uint32_t (&at)[STRIP_STEPS])
{
	const uint32_t first = strip.first + lane;
	const uint32_t n = strip.n > lane ? strip.n - lane : 0;

#pragma unroll
	for (uint32_t s = 0; s < STRIP_STEPS; s++)
		at[s] = next_place(at[s], __ballot_sync(0xFFFFFFFF, s * WARP < n), &next);
	for (uint32_t t = 0; t < input.ntargets; t++)
	{
		const From &source = input.from[(size_t) strip.piece * input.ntargets + t];
		const void *from = source.data;
		void *to = input.targets[t].to;

		if (source.column.packed)
		{
			unpack_column(source.column, to, piece, first, n, at);
			continue;
		}
		switch (input.targets[t].width)
		{
			case 1:
				write_column<uint8_t>(from, to, piece, first, n, at);
				break;
			case 2:
				write_column<uint16_t>(from, to, piece, first, n, at);
				break;
			case 4:
				write_column<uint32_t>(from, to, piece, first, n, at);
				break;
			case 8:
				write_column<uint64_t>(from, to, piece, first, n, at);
				break;
			default:
				write_column<uint4>(from, to, piece, first, n, at);
				break;
		}
	}
}

static __global__ void
__launch_bounds__(GJ_THREADS, 3) split_write(const __grid_constant__ Input input)
{
	const uint32_t number = (blockIdx.x * GJ_THREADS + threadIdx.x) / WARP;
	const uint32_t lane = threadIdx.x % WARP;
	uint32_t at[STRIP_STEPS];

	if (number >= input.nstrips)
		return;

	const uint32_t next = first_place(input, number, lane);
	const Strip strip = find_strip(input, number, STRIP_ROWS);
	const Piece piece = input.pieces[strip.piece];
	const uint8_t *part = input.part + piece.first_row + strip.first;

#pragma unroll
	for (uint32_t s = 0; s < STRIP_STEPS; s++)
		at[s] = lane + s * WARP < strip.n ? part[lane + s * WARP] : 0;
	write_rows(input, strip, piece, lane, next, at);
}

/* True if all keys are such as split_at_once reads. */
static bool
has_plain_key(const GjSplit *split)
{
	bool plain = split->keys == NULL && split->nkeys == 1;

	for (uint32_t p = 0; p < split->npieces && plain; p++)
	{
		const GjColumn &key = split->pieces[p].columns[split->key[0]];

		plain = split->pieces[p].nrows == 0 || is_plain_key(key);
	}
	return plain;
}

/* ---- what the host does */

/* Where the arrays of an input lie in its scratch memory. */
typedef struct Places
{
	size_t keys; /* pieces are at the beginning */
	size_t targets;
	size_t from;
	size_t taken;
	size_t described; /* up to here they come from the host */
	size_t part;
	size_t counts;
	size_t end;
} Places;

static size_t
align(size_t nbytes)
{
	return (nbytes + 255) & ~(size_t) 255;
}

static Places
lay_out(uint64_t nrows, uint64_t nstrips, uint32_t npieces, uint32_t ntargets, uint32_t nkeys,
		uint32_t nparts)
{
	Places places;

	places.keys = align(npieces * sizeof(Piece));
	places.targets = align(places.keys + (size_t) npieces * nkeys * sizeof(GjColumn));
	places.from = align(places.targets + ntargets * sizeof(Target));
	places.taken = align(places.from + (size_t) npieces * ntargets * sizeof(From));
	places.described = align(places.taken + GJ_SPLIT_PARTS * sizeof(uint32_t));
	places.part = places.described;
	places.counts = align(places.part + nrows);
	places.end = places.counts + nstrips * nparts * sizeof(uint32_t);
	return places;
}

static GjStatus
gj_split_reserve(GjQueue *queue, uint32_t n, uint32_t ncolumns, uint32_t nkeys)
{
	const uint64_t nstrips = gj_blocks(n, STRIP_ROWS) + GJ_SPLIT_PIECES;
	const Places places = lay_out(n, nstrips, GJ_SPLIT_PIECES, 3 * ncolumns, nkeys, GJ_SPLIT_PARTS);
	size_t count_bytes = 0;
	size_t ref_bytes = 0; /* of what gj_ref_bytes adds up */
	void *memory;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, places.end, &memory));
	GJ_CUDA(queue, cub::DeviceScan::ExclusiveSum(
					   nullptr, count_bytes, (uint32_t *) nullptr, (uint32_t *) nullptr,
					   (int64_t) nstrips * GJ_SPLIT_PARTS, queue->stream));
	GJ_CUDA(queue,
			cub::DeviceScan::ExclusiveSum(nullptr, ref_bytes, (uint64_t *) nullptr,
										  (uint64_t *) nullptr, (int64_t) n + 1, queue->stream));
	return gj_scratch(queue, GJ_SCRATCH_CUB, max(count_bytes, ref_bytes), &memory);
}

/* Describes a target; `offset`: bytes of a value before it. */
static void
add_target(const GjSplit *split, uint32_t column, bool nulls, Target target, size_t offset,
		   Input *input, Target *targets, From *from, uint32_t ntargets)
{
	const uint32_t t = input->ntargets++;

	target.to = (uint8_t *) target.to + offset;
	targets[t] = target;
	for (uint32_t p = 0, of = 0; p < split->npieces; p++)
	{
		const GjColumn *piece = &split->pieces[p].columns[column];
		const void *data = nulls ? (const void *) piece->nulls : piece->data;

		if (split->pieces[p].nrows == 0)
			continue;

		From &at = from[(size_t) of++ * ntargets + t];

		at.data = data == NULL ? NULL : (const uint8_t *) data + offset;
		if (data != NULL && !nulls && piece->packed)
			at.column = *piece;
	}
}

/* True if split_at_once writes the column's values in halves. */
static bool
has_halves(const Input *input, const GjColumn *column)
{
	return input->stride > 0 && column->width == 2 * sizeof(uint64_t);
}

/* Describes what is wanted of a column, data and null flags. */
static void
add_column(const GjSplit *split, uint32_t column, const GjColumn *to, Input *input, Target *targets,
		   From *from, uint32_t ntargets)
{
	const uint32_t nparts = has_halves(input, to) ? 2 : 1;
	const Target values = {(void *) to->data, to->width / nparts, nparts};
	const Target flags = {(void *) to->nulls, 1, 1};

	for (uint32_t i = 0; i < nparts && to->data != NULL; i++)
		add_target(split, column, false, values, i * values.width, input, targets, from, ntargets);
	if (to->nulls != NULL)
		add_target(split, column, true, flags, 0, input, targets, from, ntargets);
}

/* Key k of a piece whose rows are `first`, ... of all. */
static GjColumn
key_column(const GjSplit *split, const GjSplitPiece *piece, uint32_t k, uint32_t first)
{
	GjColumn column = {};

	if (split->keys == NULL)
		return piece->columns[split->key[k]];
	column.kind = GJ_INT8;
	column.width = sizeof(int64_t);
	column.data = split->keys->value[k] + first;
	column.nulls = split->keys->null + first;
	return column;
}

/* Rows of a strip: with a stride it is a tile. */
static uint32_t
strip_rows(const Input *input)
{
	return input->stride > 0 ? TILE_ROWS : STRIP_ROWS;
}

/* Lays out in host memory what the kernels read. */
static void
describe(const GjSplit *split, const GjColumn *to, const Places &places, uint32_t ntargets,
		 uint8_t *memory, Input *input)
{
	Piece *pieces = (Piece *) memory;
	GjColumn *keys = (GjColumn *) (memory + places.keys);
	Target *targets = (Target *) (memory + places.targets);
	From *from = (From *) (memory + places.from);
	uint32_t first_row = 0;
	uint32_t first_strip = 0;

	for (uint32_t p = 0, of = 0; p < split->npieces; p++)
	{
		const GjSplitPiece *piece = &split->pieces[p];

		if (piece->nrows == 0)
			continue;
		for (uint32_t k = 0; k < split->nkeys; k++)
			*keys++ = key_column(split, piece, k, first_row);
		pieces[of++] = {piece->rows, piece->nrows, first_row, first_strip};
		first_row += piece->nrows;
		first_strip += gj_blocks(piece->nrows, strip_rows(input));
	}
	for (uint32_t c = 0; c < split->ncolumns; c++)
		add_column(split, c, &to[c], input, targets, from, ntargets);
}

/* Brings what the kernels read to the device, with room for what they write besides. */
static GjStatus
upload(GjQueue *queue, const GjSplit *split, const GjColumn *to, Input *input)
{
	uint32_t ntargets = 0;
	uint8_t *host;
	uint8_t *device;
	cudaError_t error;

	for (uint32_t c = 0; c < split->ncolumns; c++)
		ntargets +=
			(to[c].data != NULL) * (has_halves(input, &to[c]) ? 2 : 1) + (to[c].nulls != NULL);

	const Places places = lay_out(input->nrows, input->nstrips, input->npieces, ntargets,
								  split->nkeys, split->nparts);

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, places.end, (void **) &device));
	/* of no part a place is taken yet */
	host = (uint8_t *) calloc(1, places.described);
	if (host == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	describe(split, to, places, ntargets, host, input);
	input->pieces = (const Piece *) device;
	input->keys = (const GjColumn *) (device + places.keys);
	input->targets = (const Target *) (device + places.targets);
	input->from = (const From *) (device + places.from);
	input->taken = (uint32_t *) (device + places.taken);
	input->part = device + places.part;
	input->counts = (uint32_t *) (device + places.counts);
	/* memory that is not pinned has been read when the call returns */
	error = cudaMemcpyAsync(device, host, places.described, cudaMemcpyHostToDevice, queue->stream);
	free(host);
	GJ_CUDA(queue, error);
	return GJ_OK;
}

static GjStatus
count_first(GjQueue *queue, const Input &input)
{
	const auto count = input.nparts <= 4 ? split_count<1> : split_count<GJ_SPLIT_PARTS / 4>;
	const uint32_t nblocks = gj_blocks((uint64_t) input.nstrips * WARP, GJ_THREADS);

	count<<<nblocks, GJ_THREADS, 0, queue->stream>>>(input);
	GJ_LAUNCHED(queue, "split_count");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, input.counts, input.counts,
		   (int64_t) input.nstrips * input.nparts);
	split_write<<<nblocks, GJ_THREADS, 0, queue->stream>>>(input);
	GJ_LAUNCHED(queue, "split_write");
	return GJ_OK;
}

static GjStatus
at_once(GjQueue *queue, const Input &input)
{
	const auto split = input.lists ? split_at_once<true> : split_at_once<false>;

	split<<<input.nstrips, GJ_THREADS, 0, queue->stream>>>(input);
	GJ_LAUNCHED(queue, "split_at_once");
	tell_parts<<<1, input.nparts, 0, queue->stream>>>(input);
	GJ_LAUNCHED(queue, "tell_parts");
	return GJ_OK;
}

static GjStatus
gj_split(GjQueue *queue, const GjSplit *split, const GjColumn *to, bool (*stop)(void *), void *arg,
		 const GjSplitParts **parts)
{
	GjSplitParts *pinned = &queue->pinned->split_parts;
	Input input = {};

	*parts = pinned;
	GJ_TRY(gj_enter(queue));
	input.nparts = split->nparts;
	input.null_part = split->null_part;
	input.nkeys = split->nkeys;
	input.parts = pinned;
	input.stride = has_plain_key(split) ? split->stride : 0;
	pinned->full = false;
	input.computed = split->keys != NULL;
	for (uint32_t p = 0; p < split->npieces; p++)
	{
		input.nrows += split->pieces[p].nrows;
		input.npieces += split->pieces[p].nrows > 0;
		input.lists |= split->pieces[p].rows != NULL;
		input.nstrips += gj_blocks(split->pieces[p].nrows, strip_rows(&input));
	}
	if (input.nrows == 0)
	{
		memset(pinned, 0, sizeof(*pinned));
		return GJ_OK;
	}
	GJ_TRY(upload(queue, split, to, &input));
	return input.stride > 0 ? at_once(queue, input) : count_first(queue, input);
}

/* ---- references */

static __global__ void
__launch_bounds__(GJ_THREADS) ref_sizes(const uint64_t *refs, uint32_t n, uint64_t *sizes)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i <= n)
		sizes[i] = i < n ? gj_ref_space(refs[i]) : 0;
}

static GjStatus
gj_ref_bytes(GjQueue *queue, const uint64_t *refs, uint32_t n, uint64_t *heap_at)
{
	const uint64_t nsizes = (uint64_t) n + 1;

	GJ_TRY(gj_enter(queue));
	ref_sizes<<<gj_blocks(nsizes, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(refs, n, heap_at);
	GJ_LAUNCHED(queue, "ref_sizes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, heap_at, heap_at, (int64_t) nsizes);
	return GJ_OK;
}

/* So many threads share the words of a reference; they are of one warp. */
#define THREADS_PER_REF 8u

static __global__ void
__launch_bounds__(GJ_THREADS) move_refs(uint64_t *refs, uint32_t n, const uint8_t *heap,
										const uint64_t *heap_at, uint8_t *to, uint64_t base)
{
	const uint64_t t = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint64_t i = t / THREADS_PER_REF;
	const uint32_t lane = (uint32_t) (t % THREADS_PER_REF);
	const uint64_t ref = i < n ? refs[i] : 0;
	const uint64_t at = i < n ? heap_at[i] - heap_at[0] : 0;
	const uint8_t *bytes = heap + gj_ref_offset(ref);

	/* a held one is a number of the backend's, not a place, and has no space */
	for (uint32_t w = lane; w < gj_ref_space(ref) / 8; w += THREADS_PER_REF)
		((uint64_t *) (to + at))[w] = gj_padded_word(bytes, gj_ref_length(ref), w);
	/* all have read the reference before it changes */
	__syncwarp();
	if (i < n && lane == 0 && gj_ref_length(ref) != GJ_REF_HELD)
		refs[i] = gj_ref_make(base + at, gj_ref_length(ref));
}

static GjStatus
gj_move_refs(GjQueue *queue, uint64_t *refs, uint32_t n, const uint8_t *heap,
			 const uint64_t *heap_at, uint8_t *to, uint64_t base)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	move_refs<<<gj_blocks((uint64_t) n * THREADS_PER_REF, GJ_THREADS), GJ_THREADS, 0,
				queue->stream>>>(refs, n, heap, heap_at, to, base);
	GJ_LAUNCHED(queue, "move_refs");
	return GJ_OK;
}

const GjSplitOps gj_cuda_exchange = {
	.split = gj_split,
	.split_reserve = gj_split_reserve,
	.ref_bytes = gj_ref_bytes,
	.move_refs = gj_move_refs,
};
