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
 * A thread has its own copy of all counts and sums in shared memory where there is room for that.
 * Else threads share copies, and add to them by atomic operations.  The host proves how many bits
 * these sums need.
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
template <typename T>
static __device__ __forceinline__ void
add_own(T *sums, const uint64_t (&value)[GROUPED_ROWS], const uint32_t (&place)[GROUPED_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < GROUPED_ROWS; i++)
	{
		if (place[i] != GJ_FUSED_NO_GROUP)
			sums[place[i]] += (T) value[i];
	}
}

/* The same where threads share copies. */
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
template <bool own>
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
		{
			if (own)
				table[place[i]]++;
			else
				atomicAdd(&table[place[i]], 1u);
		}
	}
#pragma unroll 1
	for (uint32_t k = 0; k < g.nproducts; k++)
	{
		const GroupedProduct &p = g.product[k];
		const GroupedSum &sum = g.sum[p.sum];
		uint32_t *low = table + sum.word * step;

		multiply_factors(g, p, columns, rows, product);
		if (own && sum.two)
			add_own((uint64_t *) low, product, place);
		else if (own)
			add_own(low, product, place);
		else if (sum.two)
			add_two_words(low, step, product, place);
		else
			add_one_word(low, product, place);
	}
}

/*
 * What a block has for aggregate a of a group: so many lanes as there are copies, at most a warp,
 * put them together in the first one.  All lanes of a warp call it.
 */
template <bool own>
static __device__ __forceinline__ GjAggState
block_state(const Grouped &g, const uint32_t *table, uint32_t a, uint32_t group, uint32_t lanes)
{
	const uint32_t step = g.ngroups * g.copies;
	const bool sums = g.sum_of[a] < GJ_FUSED_AGGREGATES;
	const GroupedSum sum = g.sum[sums ? g.sum_of[a] : 0];
	const uint32_t *low = table + sum.word * step;
	GjAggState state;

	gj_agg_start(&state);
	for (uint32_t c = threadIdx.x % lanes; c < g.copies; c += lanes)
	{
		const uint32_t at = group * g.copies + c;
		uint64_t value = 0;

		state.count += table[at];
		if (sums && !sum.two)
			value = (uint64_t) (int32_t) low[at];
		else if (sums && own)
			value = ((const uint64_t *) low)[at];
		else if (sums)
			value = low[at] | (uint64_t) low[step + at] << 32;
		gj_add_128(&state.lo, &state.hi, value, (int64_t) value >> 63);
	}
	for (uint32_t n = lanes / 2; n > 0; n /= 2)
	{
		const uint64_t lo = __shfl_down_sync(0xFFFFFFFF, state.lo, n, lanes);
		const int64_t hi = __shfl_down_sync(0xFFFFFFFF, state.hi, n, lanes);

		state.count += __shfl_down_sync(0xFFFFFFFF, state.count, n, lanes);
		gj_add_128(&state.lo, &state.hi, lo, hi);
	}
	return state;
}

/* ---- the kernel */

/* Blocks of an SM: what a thread has of its rows takes registers. */
#define GROUPED_BLOCKS 4

/* A copy for each thread is worth while where so many blocks of an SM have room for theirs. */
#define OWN_BLOCKS 2u
#define MOST_OWN_BYTES (72 * 1024) /* three blocks have it on a Hopper GPU */

template <bool own>
static __global__ void
__launch_bounds__(GJ_THREADS, GROUPED_BLOCKS)
	fused_grouped(const __grid_constant__ GjFusedPlan plan, const __grid_constant__ Grouped g,
				  const __grid_constant__ Input input, const __grid_constant__ GjGroups groups,
				  const __grid_constant__ Missed missed, const uint32_t *map)
{
	extern __shared__ __align__(16) uint32_t table[];
	const uint32_t copy = threadIdx.x % g.copies;
	const uint32_t lanes = min(g.copies, 32u);
	const uint32_t nstates = g.naggregates * g.ngroups;
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
			add_rows<own>(g, c.columns, rows, table, place);
		}
	}
	add_counts<0>(input, counts);
	__syncthreads();
	for (uint32_t first = 0; first < nstates; first += GJ_THREADS / lanes)
	{
		const uint32_t i = min(first + threadIdx.x / lanes, nstates - 1);
		const uint32_t a = i / g.ngroups;
		const uint32_t group = i % g.ngroups;
		const GjAggState state = block_state<own>(g, table, a, group, lanes);

		if (first + threadIdx.x / lanes < nstates && threadIdx.x % lanes == 0)
			add_state(plan.aggregate_op[a], &groups.state[a][group], state);
	}
}

/* ---- making the plan */

struct FewMaker : Maker
{
	using Maker::Maker;
	bool make_keys();
	bool lay_out(uint32_t ngroups, uint32_t nprocessors, bool own);
	bool bound_sums(bool own, uint32_t *blocks) const;
	bool make(const GjGroups &groups);

	/* Rows of a chunk that are added to the same copy, at most. */
	uint64_t
	chunk_rows(bool own) const
	{
		return own ? (uint64_t) gj_blocks(input.chunk, GroupedShape::TILE) * GROUPED_ROWS
				   : input.chunk;
	}
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

/*
 * Places of counts and sums in shared memory: a copy for each thread, or fewer.  False: there is no
 * room, or it is not worth while.
 */
bool
FewMaker::lay_out(uint32_t ngroups, uint32_t nprocessors, bool own)
{
	/* there are as many blocks as processors, or as chunks */
	const uint64_t rows = (uint64_t) gj_blocks(input.nchunks, nprocessors) * chunk_rows(own);
	uint64_t nbytes;

	to->ngroups = ngroups;
	to->nwords = 1;
	for (uint32_t s = 0; s < to->nsums; s++)
	{
		to->sum[s].word = (uint8_t) to->nwords;
		to->sum[s].two = most[s] * rows > INT32_MAX;
		to->nwords += to->sum[s].two ? 2 : 1;
	}
	if (nrows() / nprocessors < (uint64_t) ngroups * LOCAL_ROWS)
		return false;
	nbytes = (uint64_t) to->nwords * ngroups * sizeof(uint32_t);
	to->copies = own ? GJ_THREADS : 1;
	if (own)
		return nbytes * GJ_THREADS <= MOST_OWN_BYTES;
	while (to->copies < GROUPED_COPIES && nbytes * to->copies * 2 <= LOCAL_BYTES)
		to->copies *= 2;
	return nbytes <= MOST_LOCAL_BYTES;
}

/* More blocks, if need be, so that no sum needs more than 64 bits; false: none has so few. */
bool
FewMaker::bound_sums(bool own, uint32_t *blocks) const
{
	for (uint32_t s = 0; s < to->nsums; s++)
	{
		const uint64_t chunks =
			most[s] == 0 ? UINT64_MAX : (uint64_t) (INT64_MAX / most[s]) / chunk_rows(own);

		if (chunks == 0)
			return false;
		if (chunks < input.nchunks)
			*blocks = std::max(*blocks, gj_blocks(input.nchunks, (uint32_t) chunks));
	}
	return true;
}

bool
FewMaker::make(const GjGroups &groups)
{
	if (plan->nsteps > 0 || groups.rows.nrows == 0 || !make_filters() || !make_keys() ||
		!make_sums() || to->distinct != 0)
		return false;
	order_products();
	return true;
}

/* ---- the launch */

static size_t
table_bytes(const Grouped &g)
{
	return (size_t) g.nwords * g.ngroups * g.copies * sizeof(uint32_t);
}

/* Lays the table out, and says how many blocks there are; 0: it cannot be done this way. */
template <bool own>
static GjStatus
choose_blocks(GjQueue *queue, FewMaker *maker, uint32_t ngroups, uint32_t *blocks)
{
	const uint32_t nprocessors = (uint32_t) queue->device->nprocessors;

	*blocks = 0;
	if (!maker->lay_out(ngroups, nprocessors, own))
		return GJ_OK;
	/* always the same, for other threads launch it as well */
	if (table_bytes(*maker->to) > LOCAL_BYTES)
		GJ_CUDA(queue, cudaFuncSetAttribute(fused_grouped<own>,
											cudaFuncAttributeMaxDynamicSharedMemorySize,
											MOST_LOCAL_BYTES));
	GJ_TRY(blocks_at_once(queue, fused_grouped<own>, table_bytes(*maker->to), maker->input.nchunks,
						  blocks));
	/* few threads are slower than shared copies */
	if (own && *blocks < std::min(maker->input.nchunks, OWN_BLOCKS * nprocessors))
		*blocks = 0;
	if (*blocks > 0 && !maker->bound_sums(own, blocks))
		*blocks = 0;
	return GJ_OK;
}

GjStatus
gj_fused_grouped(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
				 const Input &input, const GjGroups &groups, const Missed &missed, bool *done)
{
	Grouped g;
	FewMaker maker(plan, parts, input, &g);
	uint32_t blocks;
	bool own;
	void *map;

	static_assert(sizeof(GjFusedPlan) + sizeof(Grouped) + sizeof(Input) + sizeof(GjGroups) +
						  sizeof(Missed) + sizeof(uint32_t *) <=
					  32764,
				  "parameters of a kernel");
	*done = false;
	if (!maker.make(groups))
		return GJ_OK;
	GJ_TRY(choose_blocks<true>(queue, &maker, groups.rows.nrows, &blocks));
	own = blocks > 0;
	if (!own)
		GJ_TRY(choose_blocks<false>(queue, &maker, groups.rows.nrows, &blocks));
	if (blocks == 0)
		return GJ_OK;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A,
					  (size_t) input.nparts * g.ncombinations * sizeof(uint32_t), &map));
	map_combinations<<<dim3(gj_blocks(g.ncombinations, GJ_THREADS), input.nparts), GJ_THREADS, 0,
					   queue->stream>>>(*plan, g, input, groups, (uint32_t *) map);
	GJ_LAUNCHED(queue, "map_combinations");
	if (own)
		fused_grouped<true><<<blocks, GJ_THREADS, table_bytes(g), queue->stream>>>(
			*plan, g, input, groups, missed, (const uint32_t *) map);
	else
		fused_grouped<false><<<blocks, GJ_THREADS, table_bytes(g), queue->stream>>>(
			*plan, g, input, groups, missed, (const uint32_t *) map);
	GJ_LAUNCHED(queue, "fused_grouped");
	*done = true;
	return GJ_OK;
}
