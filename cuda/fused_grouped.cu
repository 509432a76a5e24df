/*
 * fused_grouped.cu
 *	  The fused operator for few groups of rows without joins: its kernel, which plans it serves,
 *	  and its launch.
 *
 * It serves plans whose group keys are numbers of a small range: codes of dictionaries, packed
 * integers, single bytes.  The numbers of a row's keys make one number, its combination.  A map
 * says which group each combination is, for each part has codes of its own:
 *
 *	GROUP BY flag, status		dictionaries (A, N, R) and (F, O), NULL behind each
 *	combination of N, O			1 * (2 + 1) + 1 = 4
 *	map of the part				[4] = group 2
 *
 * The host proves how many bits the sums of a block need.
 */
#include "blocks.cuh"
#include "fused_grouped_plan.cuh"

/* Combinations of all parts: one to so many rows, and so many, at most. */
#define COMBINATION_ROWS 8
#define MOST_COMBINATIONS (4u * 1024 * 1024)

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

		multiply_factors(g, p, columns, rows, product);
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

/* ---- making the plan */

struct FewMaker : Maker
{
	using Maker::Maker;
	bool make_keys();
	bool lay_out(uint32_t ngroups, uint32_t nprocessors);
	bool make(const GjGroups &groups, uint32_t nprocessors);
};

bool
FewMaker::make_keys()
{
	uint64_t most = 0;

	to->nkeys = plan->ngroup_keys;
	for (uint32_t k = 0; k < to->nkeys; k++)
	{
		const GjFusedExpr &e = plan->exprs[plan->group_expr[k]];
		const bool carried = plan->group_how[k] > GJ_GROUP_FLOAT;

		to->key[k] = e.a;
		if (e.form != GJ_FUSED_SIMPLE || e.op != GJ_OP_LOAD ||
			!all_parts(e.a, e.slot_a,
					   [&](const GjColumn &c)
					   {
						   return (carried || gj_kind_computable(c.kind)) &&
								  (c.packed ? c.packed <= 2 && !gj_column_has_offsets(&c)
											: c.width == 1);
					   }))
			return false;
	}
	for (uint32_t p = 0; p < input.nparts; p++)
	{
		uint64_t n = 1;

		if (parts[p].nrows == 0)
			continue;
		for (uint32_t k = 0; k < to->nkeys && n <= MOST_COMBINATIONS; k++)
			n *= key_numbers(parts[p].columns[to->key[k] - (int) plan->first_column]) + 1;
		most = std::max(most, n);
	}
	to->ncombinations = (uint32_t) std::min(most, (uint64_t) UINT32_MAX);
	return most <= MOST_COMBINATIONS && most * input.nparts <= MOST_COMBINATIONS &&
		   most * input.nparts * COMBINATION_ROWS <= nrows();
}

/* Places of counts and sums in shared memory; false: there is no room, or it is not worth while. */
bool
FewMaker::lay_out(uint32_t ngroups, uint32_t nprocessors)
{
	/* of a block, at most: there are as many blocks as processors, or as chunks */
	const uint64_t rows = (uint64_t) gj_blocks(input.nchunks, nprocessors) * input.chunk;
	uint64_t nbytes;

	to->ngroups = ngroups;
	to->nwords = 1;
	for (uint32_t s = 0; s < to->nsums; s++)
	{
		to->sum[s].word = (uint8_t) to->nwords;
		to->sum[s].two = most[s] * rows > INT32_MAX;
		to->nwords += to->sum[s].two ? 2 : 1;
	}
	nbytes = (uint64_t) to->nwords * ngroups * sizeof(uint32_t);
	if (nbytes > MOST_LOCAL_BYTES || nrows() / nprocessors < (uint64_t) ngroups * LOCAL_ROWS)
		return false;
	to->copies = 1;
	while (to->copies < GROUPED_COPIES && nbytes * to->copies * 2 <= LOCAL_BYTES)
		to->copies *= 2;
	return true;
}

bool
FewMaker::make(const GjGroups &groups, uint32_t nprocessors)
{
	if (plan->nsteps > 0 || groups.rows.nrows == 0 || !make_filters() || !make_keys() ||
		!make_sums() || to->distinct != 0)
		return false;
	order_products();
	return lay_out(groups.rows.nrows, nprocessors);
}

/* ---- the launch */

/* More blocks, if need be, so that no sum of one needs more than 64 bits; false: none has so few.
 */
static bool
bound_sums(const FewMaker &maker, uint32_t *blocks)
{
	const Input &input = maker.input;

	for (uint32_t s = 0; s < maker.to->nsums; s++)
	{
		const uint64_t chunks =
			maker.most[s] == 0 ? UINT64_MAX : (uint64_t) (INT64_MAX / maker.most[s]) / input.chunk;

		if (chunks == 0)
			return false;
		if (chunks < input.nchunks)
			*blocks = std::max(*blocks, gj_blocks(input.nchunks, (uint32_t) chunks));
	}
	return true;
}

GjStatus
gj_fused_grouped(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
				 const Input &input, const GjGroups &groups, const Missed &missed, bool *done)
{
	Grouped g;
	FewMaker maker(plan, parts, input, &g);
	uint32_t blocks = 0;
	size_t nbytes;
	void *map;

	static_assert(sizeof(GjFusedPlan) + sizeof(Grouped) + sizeof(Input) + sizeof(GjGroups) +
						  sizeof(Missed) + sizeof(uint32_t *) <=
					  32764,
				  "parameters of a kernel");
	*done = false;
	if (!maker.make(groups, (uint32_t) queue->device->nprocessors))
		return GJ_OK;
	nbytes = (size_t) g.nwords * g.ngroups * g.copies * sizeof(uint32_t);
	/* always the same, for other threads launch it as well */
	if (nbytes > LOCAL_BYTES)
		GJ_CUDA(queue,
				cudaFuncSetAttribute(fused_grouped, cudaFuncAttributeMaxDynamicSharedMemorySize,
									 MOST_LOCAL_BYTES));
	GJ_TRY(blocks_at_once(queue, fused_grouped, nbytes, input.nchunks, &blocks));
	if (!bound_sums(maker, &blocks))
		return GJ_OK;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A,
					  (size_t) input.nparts * g.ncombinations * sizeof(uint32_t), &map));
	map_combinations<<<dim3(gj_blocks(g.ncombinations, GJ_THREADS), input.nparts), GJ_THREADS, 0,
					   queue->stream>>>(*plan, g, input, groups, (uint32_t *) map);
	GJ_LAUNCHED(queue, "map_combinations");
	fused_grouped<<<blocks, GJ_THREADS, nbytes, queue->stream>>>(*plan, g, input, groups, missed,
																 (const uint32_t *) map);
	GJ_LAUNCHED(queue, "fused_grouped");
	*done = true;
	return GJ_OK;
}
