/*
 * fused_places.cu
 *	  The fused operator for groups that are found by their place (device/places.h), of rows without
 *	  joins: no hash table, and no row comes back.
 *
 * A place has words of 64 bits: the count of its rows, and a sum each.  Sums are those of
 * fused_grouped.cuh, and the host proves that they fit 64 bits; one that may not gets a second
 * word.  If there is room in the first word, a sum is there as well, in units of its own:
 *
 *	sum(quantity), 100, 200 .. 25600	(value - 100) / 100, which are 0 .. 255
 *	a row of quantity 700				adds 6 << 27 | 1
 *
 * So most places need one atomic operation, and 8 bytes.  Tables are often in the order of a key:
 * rows that lie side by side and have one place are added up by their thread first.
 */
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <numeric>
#include <vector>

#include "blocks.cuh"
#include "device/places.h"
#include "fused_grouped_plan.cuh"

/* Groups that were there before may have so much of a sum of one word; so may the rows. */
#define MOST_BEFORE (INT64_C(1) << 61)

/* What is in front of the words. */
typedef struct PlacesHead
{
	uint64_t count; /* rows that passed the filter */
	uint64_t wrong; /* a group that was there before does not fit */
	uint64_t unused[30];
} PlacesHead;

typedef struct PlaceSum
{
	uint8_t word;
	bool wide; /* 128 bits, the next word is the upper half; else 64 */
} PlaceSum;

/* What is in the words of a place. */
typedef struct PlaceWords
{
	uint32_t nwords;
	uint32_t count_bits; /* of word 0; of the others .. */
	uint32_t beside;     /* .. is this sum of units; GJ_FUSED_AGGREGATES: none */
	uint32_t shift;      /* a unit is 2^shift times an odd number, .. */
	uint64_t inverse;    /* .. of which this is the inverse modulo 2^64 */
	uint64_t unit;
	int64_t least; /* value - least is so many units */
	uint64_t most_count;
	uint64_t most_units; /* of a group that was there before */
	PlaceSum sum[GJ_FUSED_AGGREGATES];
} PlaceWords;

/* ---- bounds of keys */

/* The least of values, and of their complements: bounds[2 * k], [2 * k + 1] of key k. */
static __device__ __forceinline__ void
note_bounds(int64_t least, int64_t least_complement, int64_t *bounds)
{
	for (uint32_t distance = 16; distance > 0; distance /= 2)
	{
		least = min(least, __shfl_down_sync(0xFFFFFFFF, least, distance));
		least_complement =
			min(least_complement, __shfl_down_sync(0xFFFFFFFF, least_complement, distance));
	}
	if (threadIdx.x % 32 != 0)
		return;
	atomicMin((long long *) &bounds[0], (long long) least);
	atomicMin((long long *) &bounds[1], (long long) least_complement);
}

/* The numbers of an integer column as unsigned ones of their order, and what value these stand for.
 */
typedef struct Numbers
{
	int64_t base;
	uint64_t factor;
	uint32_t flip;
} Numbers;

static __device__ __forceinline__ Numbers
numbers_of(const GjColumn &column)
{
	if (column.packed)
		return {column.base, (uint64_t) column.factor, 0};
	return {INT32_MIN, 1, UINT32_C(1) << 31};
}

/* Rows that have a key; those of `there` that are not NULL. */
static __device__ __forceinline__ uint32_t
rows_with_key(const GjColumn &column, const GroupedRows &rows)
{
	int32_t null[GROUPED_ROWS];
	uint32_t known = rows.there;

	if (column.nulls == NULL)
		return known;
	load_rows(column.nulls, rows, null);
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		known &= ~((uint32_t) (null[i] != 0) << i);
	return known;
}

/* Key blockIdx.y. */
static __global__ void
__launch_bounds__(GJ_THREADS) place_bounds(const __grid_constant__ Grouped g,
										   const __grid_constant__ Input input, int64_t *bounds)
{
	int64_t least = INT64_MAX;
	int64_t least_complement = INT64_MAX;
	uint32_t p = 0;

	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(g.ncolumns, input, chunk, &p);
		const GjColumn &column = c.columns[g.key[blockIdx.y]];
		const Numbers numbers = numbers_of(column);
		uint32_t low = UINT32_MAX;
		uint32_t high = 0;

		for (uint32_t tile = c.first; tile < c.end; tile += GroupedShape::TILE)
		{
			const GroupedRows rows(tile, c.end);
			const uint32_t known = rows_with_key(column, rows);
			int32_t number[GROUPED_ROWS];

			load_numbers(column, rows, number);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			{
				const uint32_t x = (uint32_t) number[i] ^ numbers.flip;

				low = known >> i & 1 ? min(low, x) : low;
				high = known >> i & 1 ? max(high, x) : high;
			}
		}
		if (low <= high)
		{
			least = min(least, (int64_t) ((uint64_t) numbers.base + numbers.factor * low));
			least_complement =
				min(least_complement, ~(int64_t) ((uint64_t) numbers.base + numbers.factor * high));
		}
	}
	note_bounds(least, least_complement, bounds + 2 * blockIdx.y);
}

/* The same of groups. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	place_group_bounds(const __grid_constant__ GjGroups groups, int64_t *bounds)
{
	const uint32_t k = blockIdx.y;
	int64_t least = INT64_MAX;
	int64_t least_complement = INT64_MAX;

	for (uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x; i < groups.rows.nrows;
		 i += gridDim.x * GJ_THREADS)
	{
		if (groups.rows.null[i] >> k & 1)
			continue;
		least = min(least, groups.rows.value[k][i]);
		least_complement = min(least_complement, ~groups.rows.value[k][i]);
	}
	note_bounds(least, least_complement, bounds + 2 * k);
}

/* ---- what is added to places */

/* Units of sum `beside` in a value. */
static __device__ __forceinline__ uint64_t
units_of(const PlaceWords &w, uint64_t value)
{
	return ((value - (uint64_t) w.least) >> w.shift) * w.inverse;
}

static __device__ __forceinline__ void
add_word(uint64_t *word, uint64_t value)
{
	atomicAdd((unsigned long long *) word, (unsigned long long) value);
}

/* Adds to a sum of 128 bits. */
static __device__ __forceinline__ void
add_wide(uint64_t *word, uint64_t lo, int64_t hi)
{
	const uint64_t before = atomicAdd((unsigned long long *) word, (unsigned long long) lo);

	hi += before + lo < before;
	if (hi != 0)
		add_word(word + 1, (uint64_t) hi);
}

/* Adds group i, which was there before; *wrong: it does not suit. */
static __device__ __forceinline__ void
add_group(const Grouped &g, const PlaceWords &w, const GjGroups &groups, uint32_t i,
		  uint64_t *words, bool *wrong)
{
	uint64_t first = 1;
	bool counted = false;

	for (uint32_t a = 0; a < g.naggregates; a++)
	{
		const GjAggState &state = groups.state[a][i];
		const uint32_t s = g.sum_of[a];

		if (g.distinct >> a & 1)
			continue;
		/* there are no counts but that of rows */
		if (counted && (uint64_t) state.count != first)
			*wrong = true;
		first = (uint64_t) state.count;
		counted = true;
		if (s == GJ_FUSED_AGGREGATES || w.sum[s].wide)
			continue;
		if (state.hi != (int64_t) state.lo >> 63 || (int64_t) state.lo > MOST_BEFORE ||
			(int64_t) state.lo < -MOST_BEFORE)
			*wrong = true;
	}
	if (first == 0 || first > w.most_count)
		*wrong = true;
	for (uint32_t s = 0; s < g.nsums; s++)
	{
		uint32_t a = 0;

		while (g.sum_of[a] != s)
			a++;

		const GjAggState &state = groups.state[a][i];

		if (s == w.beside)
		{
			const uint64_t more = state.lo - (uint64_t) w.least * first;
			const uint64_t units = (more >> w.shift) * w.inverse;

			if (units > w.most_units || units * w.unit != more)
				*wrong = true;
			else
				first |= units << w.count_bits;
		}
		else if (w.sum[s].wide)
			add_wide(words + w.sum[s].word, state.lo, state.hi);
		else
			add_word(words + w.sum[s].word, state.lo);
	}
	add_word(words, first);
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	place_groups_before(const __grid_constant__ Grouped g, const __grid_constant__ PlaceWords w,
						const __grid_constant__ GjPlaces places,
						const __grid_constant__ GjGroups groups, PlacesHead *head)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t *words = (uint64_t *) (head + 1);
	bool wrong = false;

	if (i >= groups.rows.nrows)
		return;
	add_group(g, w, groups, i,
			  words + (uint64_t) gj_place_of_group(&places, &groups.rows, i) * w.nwords, &wrong);
	if (wrong)
		head->wrong = 1;
}

/* Places of the rows that are alive. */
static __device__ __forceinline__ void
places_of_rows(const Grouped &g, const GjPlaces &places, const GjColumn *columns,
			   const GroupedRows &rows, uint32_t (&place)[GROUPED_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		place[i] = 0;
#pragma unroll 1
	for (uint32_t k = 0; k < g.nkeys; k++)
	{
		const GjColumn &column = columns[g.key[k]];
		const Numbers numbers = numbers_of(column);
		const uint32_t known = rows_with_key(column, rows);
		/* the difference fits 32 bits, so all of it is computed modulo 2^32 */
		const uint32_t base = (uint32_t) numbers.base - (uint32_t) places.low[k];
		const uint32_t factor = (uint32_t) numbers.factor;
		const uint32_t null = places.numbers[k];
		int32_t number[GROUPED_ROWS];

		load_numbers(column, rows, number);
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		{
			const uint32_t x = base + factor * ((uint32_t) number[i] ^ numbers.flip);

			place[i] = place[i] * (null + 1) + (known >> i & 1 ? x : null);
		}
	}
}

/* Rows that have the place of the row before, in memory and in the thread; both are alive. */
static __device__ __forceinline__ uint32_t
rows_that_follow(uint32_t alive, const uint32_t (&place)[GROUPED_ROWS])
{
	uint32_t follow = 0;

#pragma unroll
	for (uint32_t i = 1; i < GROUPED_ROWS; i++)
	{
		if (i % GroupedShape::PIECE != 0 && place[i] == place[i - 1])
			follow |= 1u << i;
	}
	return follow & alive & alive << 1;
}

/* Adds values of rows that follow to those of the rows before. */
static __device__ __forceinline__ void
add_up(uint32_t follow, uint64_t (&value)[GROUPED_ROWS])
{
#pragma unroll
	for (uint32_t i = GROUPED_ROWS - 1; i > 0; i--)
	{
		if (i % GroupedShape::PIECE != 0 && (follow >> i & 1))
			value[i - 1] += value[i];
	}
}

/* Adds rows to the words of their places: `first` those that do not follow another one. */
static __device__ __forceinline__ void
add_rows(const Grouped &g, const PlaceWords &w, const GjColumn *columns, const GroupedRows &rows,
		 const uint32_t (&place)[GROUPED_ROWS], uint32_t first, uint32_t follow, uint64_t *words)
{
	uint64_t product[GROUPED_ROWS] = {};

	if (w.beside == GJ_FUSED_AGGREGATES)
	{
		uint64_t one[GROUPED_ROWS];

#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			one[i] = 1;
		add_up(follow, one);
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		{
			if (first >> i & 1)
				add_word(words + (uint64_t) place[i] * w.nwords, one[i]);
		}
	}
#pragma unroll 1
	for (uint32_t k = 0; k < g.nproducts; k++)
	{
		const GroupedProduct &p = g.product[k];
		const bool beside = p.sum == w.beside;
		uint64_t *to = words + (beside ? 0 : w.sum[p.sum].word);
		uint64_t value[GROUPED_ROWS];

		multiply_factors(g, p, columns, rows, product);
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			value[i] = beside ? units_of(w, product[i]) << w.count_bits | 1 : product[i];
		add_up(follow, value);
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		{
			if (!(first >> i & 1))
				continue;
			if (!beside && w.sum[p.sum].wide)
				add_wide(to + (uint64_t) place[i] * w.nwords, value[i], (int64_t) value[i] >> 63);
			else
				add_word(to + (uint64_t) place[i] * w.nwords, value[i]);
		}
	}
}

#define PLACES_BLOCKS 3 /* of an SM, as fused_grouped */

static __global__ void
__launch_bounds__(GJ_THREADS, PLACES_BLOCKS)
	place_rows(const __grid_constant__ Grouped g, const __grid_constant__ PlaceWords w,
			   const __grid_constant__ GjPlaces places, const __grid_constant__ Input input,
			   PlacesHead *head)
{
	uint64_t *words = (uint64_t *) (head + 1);
	uint32_t counts[1] = {};
	uint32_t p = 0;

	if (head->wrong != 0)
		return;
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(g.ncolumns, input, chunk, &p);

		for (uint32_t tile = c.first; tile < c.end; tile += GroupedShape::TILE)
		{
			const GroupedRows rows(tile, c.end);
			const uint32_t alive = filter_rows(g, c.columns, rows);
			uint32_t place[GROUPED_ROWS];
			uint32_t follow;

			if (alive == 0)
				continue;
			counts[0] += __popc(alive);
			places_of_rows(g, places, c.columns, rows, place);
			follow = rows_that_follow(alive, place);
			add_rows(g, w, c.columns, rows, place, alive & ~follow, follow, words);
		}
	}
	add_counts<0>(input, counts);
}

/* ---- places become groups */

/* True for a place that something was added to. */
struct HasRows
{
	const uint64_t *words;
	uint32_t nwords;

	__host__ __device__ bool
	operator()(uint32_t place) const
	{
		return words[(uint64_t) place * nwords] != 0;
	}
};

/* The state of a place for aggregate a. */
static __device__ __forceinline__ GjAggState
place_state(const Grouped &g, const PlaceWords &w, const uint64_t *words, uint32_t a)
{
	const uint32_t s = g.sum_of[a];
	const uint64_t first = words[0];
	GjAggState state;

	gj_agg_start(&state);
	if (g.distinct >> a & 1)
		return state;
	state.count = (int64_t) (first & (UINT64_MAX >> (64 - w.count_bits)));
	if (s == GJ_FUSED_AGGREGATES)
		return state;
	if (s == w.beside)
		state.lo = (uint64_t) w.least * (uint64_t) state.count + (first >> w.count_bits) * w.unit;
	else
		state.lo = words[w.sum[s].word];
	state.hi = s != w.beside && w.sum[s].wide ? (int64_t) words[w.sum[s].word + 1]
											  : (int64_t) state.lo >> 63;
	return state;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	place_store(const __grid_constant__ Grouped g, const __grid_constant__ PlaceWords w,
				const __grid_constant__ GjPlaces places, const PlacesHead *head,
				const uint32_t *positions, uint32_t n, const __grid_constant__ GjGroups to,
				uint64_t *counts)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint64_t *words = (const uint64_t *) (head + 1);
	uint32_t place;

	if (i == 0)
		counts[0] += head->count;
	if (i >= n)
		return;
	place = positions[i];
	gj_place_store_keys(&places, place, &to.rows, i);
	for (uint32_t a = 0; a < g.naggregates; a++)
		to.state[a][i] = place_state(g, w, words + (uint64_t) place * w.nwords, a);
}

/* ---- the plan */

struct PlacesMaker : Maker
{
	PlaceWords *words;

	PlacesMaker(const GjFusedPlan *p, const GjFusedPart *some, const Input &i, Grouped *g,
				PlaceWords *w)
		: Maker(p, some, i, g), words(w)
	{
	}

	bool make_keys();
	uint64_t unit_of(uint32_t sum) const;
	bool put_beside(uint32_t sum);
	bool lay_out();
	bool make();
};

bool
PlacesMaker::make_keys()
{
	to->nkeys = plan->ngroup_keys;
	for (uint32_t k = 0; k < to->nkeys; k++)
	{
		const GjFusedExpr &e = plan->exprs[plan->group_expr[k]];

		to->key[k] = e.a;
		if (!all_parts(e.a, e.slot_a,
					   [](const GjColumn &c)
					   { return c.kind != GJ_REF && (c.packed || c.kind == GJ_INT4); }))
			return false;
	}
	return true;
}

/* What divides all differences of the values of a sum: of a packed column alone, else 1. */
uint64_t
PlacesMaker::unit_of(uint32_t sum) const
{
	uint64_t unit = 0;

	for (uint32_t k = 0; k < to->nproducts; k++)
	{
		const GroupedFactor &f = to->factor[to->product[k].first];

		if (to->product[k].sum != sum)
			continue;
		if (to->product[k].n > 1 || f.column < 0 || f.op != GJ_OP_LOAD || f.minus)
			return 1;
		for (uint32_t p = 0; p < input.nparts; p++)
		{
			if (parts[p].nrows == 0)
				continue;

			const GjColumn &c = parts[p].columns[f.column - (int) plan->first_column];

			if (!c.packed)
				return 1;
			unit = std::gcd(unit, std::gcd((uint64_t) c.factor,
										   (uint64_t) c.base - (uint64_t) values[sum].low));
		}
	}
	return std::max<uint64_t>(unit, 1);
}

/* Puts a sum of one product beside the count; false: there is no room. */
bool
PlacesMaker::put_beside(uint32_t sum)
{
	const uint64_t unit = unit_of(sum);
	/* of rows, and of groups that were there before */
	const unsigned __int128 most_rows = 2 * (unsigned __int128) std::max<uint64_t>(nrows(), 1);
	const unsigned __int128 units = (unsigned __int128) (values[sum].high - values[sum].low) / unit;
	const uint32_t count_bits = 64 - (uint32_t) __builtin_clzll((uint64_t) most_rows);
	const uint32_t shift = (uint32_t) __builtin_ctzll(unit);
	const uint64_t odd = unit >> shift;
	uint64_t inverse = odd;

	/* the sum itself has 64 bits, too, whatever its units are */
	if (units > UINT32_MAX || units * most_rows > UINT64_MAX >> count_bits ||
		most[sum] * nrows() > (unsigned __int128) MOST_BEFORE)
		return false;
	/* each step doubles the bits that are right; of `odd` three are */
	for (int i = 0; i < 5; i++)
		inverse *= 2 - odd * inverse;
	words->beside = sum;
	words->count_bits = count_bits;
	words->shift = shift;
	words->inverse = inverse;
	words->unit = unit;
	words->least = (int64_t) values[sum].low;
	words->most_count = nrows();
	words->most_units = (uint64_t) units * nrows();
	return true;
}

bool
PlacesMaker::lay_out()
{
	uint32_t nproducts[GJ_FUSED_AGGREGATES] = {};

	*words = {};
	words->nwords = 1;
	words->count_bits = 64;
	words->beside = GJ_FUSED_AGGREGATES;
	words->most_count = INT64_MAX / 2;
	for (uint32_t k = 0; k < to->nproducts; k++)
		nproducts[to->product[k].sum]++;
	for (uint32_t s = 0; s < to->nsums; s++)
	{
		PlaceSum &sum = words->sum[s];

		if (words->beside == GJ_FUSED_AGGREGATES && nproducts[s] == 1 && put_beside(s))
			continue;
		sum.word = (uint8_t) words->nwords;
		sum.wide = most[s] * nrows() > (unsigned __int128) MOST_BEFORE;
		words->nwords += sum.wide ? 2 : 1;
		/* what a thread adds up is a value of 64 bits */
		if (sum.wide && (nproducts[s] > 1 || most[s] > INT64_MAX / GroupedShape::PIECE))
			return false;
	}
	return true;
}

bool
PlacesMaker::make()
{
	if (!make_filters() || !make_keys() || !make_sums())
		return false;
	order_products();
	return lay_out();
}

/* ---- the launch */

/* Bytes in front of the positions of places that have rows. */
static uint64_t
words_bytes(const PlaceWords &w, const GjPlaces &places)
{
	return sizeof(PlacesHead) + (uint64_t) places.nplaces * w.nwords * sizeof(uint64_t);
}

static GjStatus
find_bounds(GjQueue *queue, const Grouped &g, const Input &input, const GjGroups &groups,
			int64_t *low, int64_t *high)
{
	const size_t nbytes = (size_t) g.nkeys * 2 * sizeof(int64_t);
	const uint32_t most = (uint32_t) queue->device->nprocessors * 8;
	uint64_t *found = queue->pinned->fused_counts;
	void *bounds;

	static_assert(GJ_PLACE_KEYS * 2 <= GJ_FUSED_STEPS + 1, "fused_counts");
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes, &bounds));
	/* nearly the greatest value: so bounds are too wide at worst */
	GJ_CUDA(queue, cudaMemsetAsync(bounds, 0x7F, nbytes, queue->stream));
	if (input.nchunks > 0)
	{
		place_bounds<<<dim3(min(input.nchunks, most), g.nkeys), GJ_THREADS, 0, queue->stream>>>(
			g, input, (int64_t *) bounds);
		GJ_LAUNCHED(queue, "place_bounds");
	}
	if (groups.rows.nrows > 0)
	{
		place_group_bounds<<<dim3(min(gj_blocks(groups.rows.nrows, GJ_THREADS), most), g.nkeys),
							 GJ_THREADS, 0, queue->stream>>>(groups, (int64_t *) bounds);
		GJ_LAUNCHED(queue, "place_group_bounds");
	}
	GJ_CUDA(queue, cudaMemcpyAsync(found, bounds, nbytes, cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	for (uint32_t k = 0; k < g.nkeys; k++)
	{
		low[k] = (int64_t) found[2 * k];
		high[k] = ~(int64_t) found[2 * k + 1];
	}
	return GJ_OK;
}

static GjStatus
gj_places_plan(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts, uint32_t nparts,
			   const GjGroups *groups, uint64_t most, GjPlaces *places)
{
	int64_t low[GJ_PLACE_KEYS];
	int64_t high[GJ_PLACE_KEYS];
	std::vector<GjColumn> none(plan->ncolumns);
	Input input = {};
	PlaceWords w;
	Grouped g;

	*places = {};
	GJ_TRY(gj_enter(queue));
	input.nparts = nparts;
	PlacesMaker maker(plan, parts, input, &g, &w);
	if (!gj_places_suit(plan, groups) || !maker.make())
		return GJ_OK;
	if (plan->nnumbers > 0)
	{
		low[0] = 0;
		high[0] = plan->nnumbers - 1;
	}
	else
	{
		GJ_TRY(gj_fused_upload(queue, plan, none.data(), parts, nparts, &input));
		GJ_TRY(find_bounds(queue, g, input, *groups, low, high));
	}
	places->nkeys = g.nkeys;
	if (!gj_places_set(places, low, high, most))
		return GJ_OK;
	places->nbytes =
		words_bytes(w, *places) +
		std::min<uint64_t>(places->nplaces, maker.nrows() + groups->rows.nrows) * sizeof(uint32_t);
	return GJ_OK;
}

static GjStatus
gj_places_add(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
			  const GjFusedPart *parts, uint32_t nparts, const GjGroups *groups,
			  const GjPlaces *places, void *memory, uint32_t *n)
{
	PlacesHead *head = (PlacesHead *) memory;
	uint32_t *positions;
	uint32_t blocks = 0;
	Input input = {};
	HasRows has_rows;
	PlaceWords w;
	Grouped g;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	GJ_TRY(gj_fused_upload(queue, plan, columns, parts, nparts, &input));
	input.counts = &head->count;
	input.results = queue->results;
	PlacesMaker(plan, parts, input, &g, &w).make();
	positions = (uint32_t *) ((uint8_t *) memory + words_bytes(w, *places));
	GJ_CUDA(queue, cudaMemsetAsync(memory, 0, words_bytes(w, *places), queue->stream));
	if (groups->rows.nrows > 0)
	{
		place_groups_before<<<gj_blocks(groups->rows.nrows, GJ_THREADS), GJ_THREADS, 0,
							  queue->stream>>>(g, w, *places, *groups, head);
		GJ_LAUNCHED(queue, "place_groups_before");
	}
	if (input.nchunks > 0)
	{
		GJ_TRY(blocks_at_once(queue, place_rows, 0, input.nchunks, &blocks));
		place_rows<<<blocks, GJ_THREADS, 0, queue->stream>>>(g, w, *places, input, head);
		GJ_LAUNCHED(queue, "place_rows");
	}
	has_rows.words = (const uint64_t *) (head + 1);
	has_rows.nwords = w.nwords;
	GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), positions,
		   &queue->results->n, (int64_t) places->nplaces, has_rows);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, &head->wrong, sizeof(uint64_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.total != 0 ? UINT32_MAX : queue->pinned->results.n;
	return GJ_OK;
}

static GjStatus
gj_places_groups(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts, uint32_t nparts,
				 const GjPlaces *places, void *memory, uint32_t n, const GjGroups *to)
{
	Input input = {};
	PlaceWords w;
	Grouped g;

	GJ_TRY(gj_enter(queue));
	input.nparts = nparts;
	PlacesMaker(plan, parts, input, &g, &w).make();
	place_store<<<gj_blocks(std::max(n, 1u), GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		g, w, *places, (const PlacesHead *) memory,
		(const uint32_t *) ((const uint8_t *) memory + words_bytes(w, *places)), n, *to,
		queue->fused_counts);
	GJ_LAUNCHED(queue, "place_store");
	return GJ_OK;
}

const GjPlaceOps gj_cuda_places = {
	.plan = gj_places_plan,
	.add = gj_places_add,
	.groups = gj_places_groups,
};
