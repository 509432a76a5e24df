/*
 * load.cuh
 *	  Values of a column for several rows of a thread, whose loads are under way together.
 */
#ifndef GJ_CUDA_LOAD_CUH
#define GJ_CUDA_LOAD_CUH

#include "internal.cuh"

template <typename Type, uint32_t R>
static __device__ __forceinline__ void
load_as(const GjColumn &column, const uint32_t (&row)[R], uint32_t wanted, int64_t (&value)[R])
{
	const Type *data = (const Type *) column.data;
	Type loaded[R];

	/* none is looked at before all are under way */
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		loaded[i] = wanted >> i & 1 ? data[row[i]] : Type();
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		value[i] = (int64_t) loaded[i];
}

/* Values of a packed column. */
template <typename Type, uint32_t R>
static __device__ __forceinline__ void
load_packed_as(const GjColumn &column, const uint32_t (&row)[R], uint32_t wanted,
			   int64_t (&value)[R])
{
	load_as<Type>(column, row, wanted, value);
	if (gj_column_has_codes(&column))
	{
		const uint64_t *dictionary = (const uint64_t *) (column.heap + column.base);

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? (int64_t) dictionary[value[i]] : 0;
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		value[i] = wanted >> i & 1 ? (int64_t) ((uint64_t) column.base +
												(uint64_t) column.factor * (uint64_t) value[i])
								   : 0;
}

template <uint32_t R>
static __device__ __forceinline__ void
load_packed(const GjColumn &column, const uint32_t (&row)[R], uint32_t wanted, int64_t (&value)[R])
{
	if (gj_column_has_offsets(&column))
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? (int64_t) gj_ref_at_offset(&column, row[i]) : 0;
	}
	else if (column.packed == 1)
		load_packed_as<uint8_t>(column, row, wanted, value);
	else if (column.packed == 2)
		load_packed_as<uint16_t>(column, row, wanted, value);
	else if (column.packed == 4)
		load_packed_as<uint32_t>(column, row, wanted, value);
	else
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? gj_packed_value(&column, row[i]) : 0;
	}
}

/* Values of a column for the wanted tuples (0 for others); returns those that are not NULL. */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
load_column(const GjColumn &column, const uint32_t (&row)[R], uint32_t wanted, int64_t (&value)[R])
{
	const uint8_t *nulls = column.nulls;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (row[i] == GJ_NO_ROW)
			wanted &= ~(1u << i);
	}
	if (nulls != NULL)
	{
		uint8_t null[R];

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			null[i] = wanted >> i & 1 ? nulls[row[i]] : 1;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (null[i] != 0)
				wanted &= ~(1u << i);
		}
	}
	if (column.packed)
	{
		load_packed(column, row, wanted, value);
		return wanted;
	}
	switch (column.kind)
	{
		case GJ_BOOL:
		case GJ_UINT1:
			load_as<uint8_t>(column, row, wanted, value);
			break;
		case GJ_INT2:
			load_as<int16_t>(column, row, wanted, value);
			break;
		case GJ_INT4:
			load_as<int32_t>(column, row, wanted, value);
			break;
		case GJ_UINT4:
			load_as<uint32_t>(column, row, wanted, value);
			break;
		case GJ_FLOAT4:
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				value[i] = wanted >> i & 1 ? gj_column_value(&column, row[i]) : 0;
			break;
		default: /* GJ_INT8, GJ_FLOAT8 */
			load_as<int64_t>(column, row, wanted, value);
			break;
	}
	return wanted;
}

#endif /* GJ_CUDA_LOAD_CUH */
