/*
 * fused_grouped.cuh
 *	  What the fused operator adds up for groups of rows without joins, where all of it is integers
 *	  without NULLs: for few groups (fused_grouped.cu), and for groups by place (fused_places.cu).
 *
 * Arguments of sums are products, or sums of products, of integers without NULLs.  A sum of
 * products is added product by product.  Products are in such an order that one can go on where
 * another one ends: price, price * (1 - discount), price * (1 - discount) * (1 + tax).
 *
 * The host proves from the packing of columns that no value overflows (fused_grouped_plan.cuh).  So
 * kernels check nothing.  They compute modulo 2^64, where only what comes out must fit.
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

/* A group's words in shared memory: its count, and of each sum one or two. */
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
	uint32_t copies;                     /* of all words; a power of 2; GJ_THREADS: one a thread */
	uint32_t ncombinations;              /* of a part, at most */
	uint32_t distinct;                   /* bits of aggregates whose values the groups have */
	uint8_t sum_of[GJ_FUSED_AGGREGATES]; /* GJ_FUSED_AGGREGATES: none, tuples are counted */
	int16_t key[GJ_FUSED_GROUP_KEYS];
	GroupedFilter filter[GROUPED_FILTERS];
	GroupedFactor factor[GJ_FUSED_FACTORS];
	GroupedProduct product[GJ_FUSED_FACTORS];
	GroupedSum sum[GJ_FUSED_AGGREGATES];
} Grouped;

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

/* Makes the product of the one before: multiplies it by the factors that it has beyond it. */
static __device__ __forceinline__ void
multiply_factors(const Grouped &g, const GroupedProduct &p, const GjColumn *columns,
				 const GroupedRows &rows, uint64_t (&product)[GROUPED_ROWS])
{
#pragma unroll 1
	for (uint32_t f = p.done; f < p.n; f++)
	{
		uint64_t value[GROUPED_ROWS];

		load_factor(g.factor[p.first + f], columns, rows, value);
#pragma unroll
		for (uint32_t i = 0; i < GROUPED_ROWS; i++)
			product[i] = f == 0 ? value[i] : product[i] * value[i];
	}
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

#endif /* GJ_CUDA_FUSED_GROUPED_CUH */
