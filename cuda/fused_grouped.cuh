/*
 * fused_grouped.cuh
 *	  The fused operator for few groups of rows without joins: what it adds up for them, and where.
 *
 * It serves plans whose group keys are numbers of a small range: codes of dictionaries, packed
 * integers, single bytes.  The numbers of a row's keys make one number, its combination.  A map
 * says which group each combination is, for each part has codes of its own:
 *
 *	GROUP BY flag, status		dictionaries (A, N, R) and (F, O), NULL behind each
 *	combination of N, O			1 * (2 + 1) + 1 = 4
 *	map of the part				[4] = group 2
 *
 * Arguments of sums are products, or sums of products, of integers without NULLs.  A sum of
 * products is added product by product.  Products are in such an order that one can go on where
 * another one ends: price, price * (1 - discount), price * (1 - discount) * (1 + tax).
 *
 * The host proves from the packing of columns that no value overflows, and how many bits the sums
 * of a block need.  So the kernel checks nothing.  It computes modulo 2^64, where only what comes
 * out must fit.
 */
#ifndef GJ_CUDA_FUSED_GROUPED_CUH
#define GJ_CUDA_FUSED_GROUPED_CUH

#include "fused_kernels.cuh"
#include "fused_plain.cuh"

#define GROUPED_FILTERS 8
#define GROUPED_COPIES 32 /* at most: one a lane, so that no two lanes meet in a bank */

/* A condition on a column of the probe source without NULLs. */
typedef struct GroupedFilter
{
	int16_t column;
	bool answer; /* the answer to question `low` is true, else low <= value <= low + span */
	int64_t low;
	uint64_t span;
} GroupedFilter;

/* constant <op> column, or one of them; `minus`: the negative of that. */
typedef struct GroupedFactor
{
	int16_t column; /* of the probe source, without NULLs; -1: the constant */
	uint8_t op;     /* GJ_OP_LOAD: the column, or constant; ADD_I, SUB_I */
	bool minus;
	int64_t constant;
} GroupedFactor;

/* A product that is added to a sum. */
typedef struct GroupedProduct
{
	uint8_t first; /* factors first .. first + n - 1 */
	uint8_t n;
	uint8_t done; /* of these the product before has so many, and no others; 0: it is another */
	uint8_t sum;
} GroupedProduct;

/* A group's words in shared memory: its count, and of each sum the low one, or both. */
typedef struct GroupedSum
{
	uint8_t word;
	bool two; /* 64 bits, else 32 */
} GroupedSum;

typedef struct Grouped
{
	uint32_t ncolumns; /* of the program */
	uint32_t nfilters;
	uint32_t nkeys;
	uint32_t nproducts;
	uint32_t nfactors;
	uint32_t nsums;
	uint32_t nwords; /* of a group */
	uint32_t naggregates;
	uint32_t ngroups;
	uint32_t copies;                     /* of all words; a power of 2 */
	uint32_t ncombinations;              /* of a part, at most */
	uint8_t sum_of[GJ_FUSED_AGGREGATES]; /* GJ_FUSED_AGGREGATES: none, tuples are counted */
	int16_t key[GJ_FUSED_GROUP_KEYS];
	GroupedFilter filter[GROUPED_FILTERS];
	GroupedFactor factor[GJ_FUSED_FACTORS];
	GroupedProduct product[GJ_FUSED_FACTORS];
	GroupedSum sum[GJ_FUSED_AGGREGATES];
} Grouped;

/* Numbers that a key's column can have: 0 .. n-1.  NULL is number n. */
static __host__ __device__ __forceinline__ uint32_t
key_numbers(const GjColumn &column)
{
	/* also of bool: nobody has looked at its bytes */
	if (!column.packed)
		return 256;
	return column.kind == GJ_REF ? (uint32_t) column.factor : 1u << 8 * column.packed;
}

/* ---- the map of combinations */

/* map[part * ncombinations + combination] = group, or GJ_FUSED_NO_GROUP; a row of blocks a part. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	map_combinations(const __grid_constant__ GjFusedPlan plan, const __grid_constant__ Grouped g,
					 const __grid_constant__ Input input, const __grid_constant__ GjGroups groups,
					 uint32_t *map)
{
	const uint32_t combination = blockIdx.x * GJ_THREADS + threadIdx.x;
	const GjColumn *columns = input.columns + (size_t) blockIdx.y * g.ncolumns;
	uint32_t number[GJ_FUSED_GROUP_KEYS];
	uint32_t rest = combination;
	uint32_t status = GJ_OK;
	GjFusedKeys keys;

	/* columns of a part without rows may be missing */
	if (combination >= g.ncombinations || input.parts[blockIdx.y].nrows == 0)
		return;
	keys.null = 0;
	keys.hash = 0;
	for (uint32_t k = g.nkeys; k-- > 0;)
	{
		const uint32_t n = key_numbers(columns[g.key[k]]) + 1;

		number[k] = rest % n;
		rest /= n;
	}
	for (uint32_t k = 0; k < g.nkeys && rest == 0; k++)
	{
		GjColumn column = columns[g.key[k]];
		const bool null = number[k] == key_numbers(column);
		const bool carried = plan.group_how[k] > GJ_GROUP_FLOAT;
		int64_t value = 0;

		/* a column of this number alone: the machine is little-endian */
		column.data = &number[k];
		column.nulls = NULL;
		if (!null)
			value = carried ? gj_group_carried(&column, 0) : gj_column_value(&column, 0);
		gj_fused_add_key(&keys, k, plan.group_how[k], null, value, carried ? column.heap : NULL,
						 &status);
	}
	/* a combination that fails is an error only of a row that has it, which the caller then meets
	 */
	map[(size_t) blockIdx.y * g.ncombinations + combination] =
		rest == 0 && status == GJ_OK ? gj_fused_group(&keys, &groups) : GJ_FUSED_NO_GROUP;
}

/* ---- values of a thread's rows */

typedef Shape<int32_t> GroupedShape;
typedef TileRows<int32_t> GroupedRows;
#define GROUPED_ROWS GroupedShape::ROWS

/* What lies in a column: numbers of a packed one, int4, or bytes. */
static __device__ __forceinline__ void
load_numbers(const GjColumn &column, const GroupedRows &rows, int32_t (&number)[GROUPED_ROWS])
{
	const uint32_t stride = gj_column_stride(&column);

	if (stride == 1)
		load_rows((const uint8_t *) column.data, rows, number);
	else if (stride == 2)
		load_rows((const uint16_t *) column.data, rows, number);
	else
		load_rows((const uint32_t *) column.data, rows, number);
}

/* A factor's values for all rows of the thread; of rows that are not there they may be anything. */
static __device__ __forceinline__ void
load_factor(const GroupedFactor &f, const GjColumn *columns, const GroupedRows &rows,
			uint64_t (&value)[GROUPED_ROWS])
{
	/* int4 is a number without sign, less 2^31 */
	uint64_t base = -(UINT64_C(1) << 31);
	uint64_t factor = 1;
	uint32_t flip = UINT32_C(1) << 31;
	int32_t number[GROUPED_ROWS] = {};

	if (f.column < 0)
		base = factor = flip = 0;
	else
	{
		const GjColumn &column = columns[f.column];

		if (column.packed)
		{
			base = (uint64_t) column.base;
			factor = (uint64_t) column.factor;
			flip = 0;
		}
		load_numbers(column, rows, number);
	}
	if (f.op == GJ_OP_SUB_I)
	{
		base = -base;
		factor = -factor;
	}
	/* that of a column alone is 0 */
	base += (uint64_t) f.constant;
	if (f.minus)
	{
		base = -base;
		factor = -factor;
	}
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		value[i] = base + factor * ((uint32_t) number[i] ^ flip);
}

/* The thread's rows that pass all filters. */
static __device__ __forceinline__ uint32_t
filter_rows(const Grouped &g, const GjColumn *columns, const GroupedRows &rows)
{
	uint32_t alive = rows.there;

#pragma unroll 1
	for (uint32_t k = 0; k < g.nfilters && alive != 0; k++)
	{
		const GroupedFilter &filter = g.filter[k];

		if (filter.answer)
		{
			const GjColumn &column = columns[filter.column];
			int32_t number[GROUPED_ROWS];

			load_numbers(column, rows, number);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			{
				if (!(__ldg(&column.answers[number[i]]) >> filter.low & 1))
					alive &= ~(1u << i);
			}
		}
		else
		{
			const GroupedFactor f = {filter.column, GJ_OP_LOAD, false, 0};
			uint64_t value[GROUPED_ROWS];

			load_factor(f, columns, rows, value);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			{
				if (value[i] - (uint64_t) filter.low > filter.span)
					alive &= ~(1u << i);
			}
		}
	}
	return alive;
}

/* The groups of rows: GJ_FUSED_NO_GROUP of those that are not alive, or whose group is not known.
 */
static __device__ __forceinline__ void
groups_of_rows(const Grouped &g, const GjColumn *columns, const GroupedRows &rows, uint32_t alive,
			   const uint32_t *map, uint32_t (&group)[GROUPED_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		group[i] = 0;
#pragma unroll 1
	for (uint32_t k = 0; k < g.nkeys; k++)
	{
		const GjColumn &column = columns[g.key[k]];
		const uint32_t n = key_numbers(column);
		int32_t number[GROUPED_ROWS];

		load_numbers(column, rows, number);
		if (column.nulls != NULL)
		{
			int32_t null[GROUPED_ROWS];

			load_rows(column.nulls, rows, null);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
				number[i] = null[i] ? (int32_t) n : number[i];
		}
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			group[i] = group[i] * (n + 1) + (uint32_t) number[i];
	}
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
		group[i] = alive >> i & 1 ? __ldg(&map[group[i]]) : GJ_FUSED_NO_GROUP;
}

/* ---- sums */

/* Adds values to sums; place[i]: where that of row i is, or GJ_FUSED_NO_GROUP. */
static __device__ __forceinline__ void
add_one_word(uint32_t *low, const uint64_t (&value)[GROUPED_ROWS],
			 const uint32_t (&place)[GROUPED_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
	{
		if (place[i] != GJ_FUSED_NO_GROUP)
			atomicAdd(&low[place[i]], (uint32_t) value[i]);
	}
}

/* The same of 64 bits, the upper half of which is `step` words behind the lower one. */
static __device__ __forceinline__ void
add_two_words(uint32_t *low, uint32_t step, const uint64_t (&value)[GROUPED_ROWS],
			  const uint32_t (&place)[GROUPED_ROWS])
{
	uint32_t before[GROUPED_ROWS];

	/* what was there before is not waited for in turn */
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
	{
		before[i] = 0;
		if (place[i] != GJ_FUSED_NO_GROUP)
			before[i] = atomicAdd(&low[place[i]], (uint32_t) value[i]);
	}
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
	{
		/* each time that the lower half went over is seen by the one that made it do so */
		const uint32_t high =
			(uint32_t) (value[i] >> 32) + (before[i] > UINT32_MAX - (uint32_t) value[i]);

		if (place[i] != GJ_FUSED_NO_GROUP && high != 0)
			atomicAdd(&low[step + place[i]], high);
	}
}

/* Adds rows to counts and sums of their groups in shared memory. */
static __device__ __forceinline__ void
add_rows(const Grouped &g, const GjColumn *columns, const GroupedRows &rows, uint32_t *table,
		 const uint32_t (&place)[GROUPED_ROWS])
{
	const uint32_t step = g.ngroups * g.copies;
	uint64_t product[GROUPED_ROWS] = {};

#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
	{
		if (place[i] != GJ_FUSED_NO_GROUP)
			atomicAdd(&table[place[i]], 1u);
	}
#pragma unroll 1
	for (uint32_t k = 0; k < g.nproducts; k++)
	{
		const GroupedProduct &p = g.product[k];
		const GroupedSum &sum = g.sum[p.sum];
		uint32_t *low = table + sum.word * step;

#pragma unroll 1
		for (uint32_t f = p.done; f < p.n; f++)
		{
			uint64_t value[GROUPED_ROWS];

			load_factor(g.factor[p.first + f], columns, rows, value);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
				product[i] = f == 0 ? value[i] : product[i] * value[i];
		}
		if (sum.two)
			add_two_words(low, step, product, place);
		else
			add_one_word(low, product, place);
	}
}

/* What a block has for aggregate a of a group. */
static __device__ __forceinline__ GjAggState
block_state(const Grouped &g, const uint32_t *table, uint32_t a, uint32_t group)
{
	const uint32_t step = g.ngroups * g.copies;
	const uint32_t *count = table + group * g.copies;
	const bool sums = g.sum_of[a] < GJ_FUSED_AGGREGATES;
	const GroupedSum sum = g.sum[sums ? g.sum_of[a] : 0];
	GjAggState state;

	gj_agg_start(&state);
	for (uint32_t c = 0; c < g.copies; c++)
	{
		const uint32_t *low = count + sum.word * step + c;

		state.count += count[c];
		if (sums)
			state.lo += sum.two ? *low | (uint64_t) low[step] << 32 : (uint64_t) (int32_t) *low;
	}
	state.hi = (int64_t) state.lo >> 63;
	return state;
}

/* ---- the kernel */

/* Blocks of an SM: what a thread has of its rows takes registers. */
#define GROUPED_BLOCKS 3

static __global__ void
__launch_bounds__(GJ_THREADS, GROUPED_BLOCKS)
	fused_grouped(const __grid_constant__ GjFusedPlan plan, const __grid_constant__ Grouped g,
				  const __grid_constant__ Input input, const __grid_constant__ GjGroups groups,
				  const __grid_constant__ Missed missed, const uint32_t *map)
{
	extern __shared__ uint32_t table[];
	const uint32_t copy = threadIdx.x % g.copies;
	uint32_t counts[1] = {};
	uint32_t p = 0;

	for (uint32_t i = threadIdx.x; i < g.nwords * g.ngroups * g.copies; i += GJ_THREADS)
		table[i] = 0;
	__syncthreads();
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(g.ncolumns, input, chunk, &p);

		for (uint32_t tile = c.first; tile < c.end; tile += GroupedShape::TILE)
		{
			const GroupedRows rows(tile, c.end);
			const uint32_t alive = filter_rows(g, c.columns, rows);
			uint32_t place[GROUPED_ROWS];
			uint32_t known = 0;

			counts[0] += __popc(alive);
			groups_of_rows(g, c.columns, rows, alive, map + (size_t) p * g.ncombinations, place);
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
				known |= (uint32_t) (place[i] != GJ_FUSED_NO_GROUP) << i;
			if (__any_sync(0xFFFFFFFF, known != alive))
			{
#pragma unroll 1
				for (uint32_t i = 0; i < GROUPED_ROWS; i++)
				{
					const uint32_t row = GroupedShape::row(rows.first, i);

					write_missed(plan, input, missed, p, c.columns, &row, 0,
								 (alive & ~known) >> i & 1);
				}
			}
			if (known == 0)
				continue;
#pragma unroll
			for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			{
				if (known >> i & 1)
					place[i] = place[i] * g.copies + copy;
			}
			add_rows(g, c.columns, rows, table, place);
		}
	}
	add_counts<0>(input, counts);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < g.naggregates * g.ngroups; i += GJ_THREADS)
	{
		const uint32_t a = i / g.ngroups;
		const uint32_t group = i % g.ngroups;

		add_state(plan.aggregate_op[a], &groups.state[a][group], block_state(g, table, a, group));
	}
}

#endif /* GJ_CUDA_FUSED_GROUPED_CUH */
