/*
 * fused_groups.cuh
 *	  The fused operator with groups: finds the groups of a thread's tuples, and adds values to
 *	  their states.
 *
 * R tuples are handled together, as in fused_rows.cuh.  States of few groups are in a table of
 * the block in shared memory; others are added to in global memory.
 */
#ifndef GJ_CUDA_FUSED_GROUPS_CUH
#define GJ_CUDA_FUSED_GROUPS_CUH

#include "fused_rows.cuh"
#include "group_state.cuh"

/* ---- groups of tuples */

/* Group keys of a thread's tuples. */
template <uint32_t R>
struct GroupKeys
{
	uint64_t hash[R];
	uint32_t null[R]; /* bit k: key k is */
	int64_t value[GJ_FUSED_GROUP_KEYS][R];
	const uint8_t *heap[GJ_FUSED_GROUP_KEYS];
};

/* Keys of the tuples, of which key k is none that the group operator computes, but a column. */
template <uint32_t R>
static __device__ __noinline__ Values<R>
carried_values(GjFusedExpr e, const GjColumn *columns, const uint32_t *rowid, uint32_t wanted)
{
	const GjColumn &column = columns[e.a];
	Values<R> values = {};
	uint32_t row[R];

	if (column.kind != GJ_REF || column.nulls != NULL)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if ((wanted >> i & 1) && !gj_fused_carried(&e, columns, rowid + i * GJ_THREADS,
													   R * GJ_THREADS, &values.value[i]))
				values.known |= 1u << i;
		}
		return values;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		row[i] = rowid[(e.slot_a * R + i) * GJ_THREADS];
		values.known |= (uint32_t) (row[i] != GJ_NO_ROW) << i;
	}
	values.known &= wanted;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		values.value[i] = values.known >> i & 1 ? (int64_t) gj_column_ref(&column, row[i]) : 0;
	return values;
}

/* Those of the wanted tuples i whose group g[i] is. */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
same_group(const GroupKeys<R> &keys, const GjGroupRows &groups, const uint32_t (&g)[R],
		   uint32_t wanted)
{
	uint32_t null[R];

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		null[i] = wanted >> i & 1 ? groups.null[g[i]] : 0;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (!gj_group_same_nulls(&groups, null[i], keys.null[i]))
			wanted &= ~(1u << i);
	}
#pragma unroll 1
	for (uint32_t k = 0; k < gj_group_rows_ncompared(&groups) && wanted != 0; k++)
	{
		int64_t value[R];

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? groups.value[k][g[i]] : 0;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if ((wanted >> i & 1) && !(null[i] >> k & 1) &&
				!gj_group_same_key(groups.how[k], keys.value[k][i], keys.heap[k], value[i],
								   groups.heap[k]))
				wanted &= ~(1u << i);
		}
	}
	return wanted;
}

/* The groups of the wanted tuples, or GJ_FUSED_NO_GROUP; see gj_fused_group. */
template <uint32_t R>
static __device__ __forceinline__ void
find_groups(const GroupKeys<R> &keys, const GjGroups &groups, uint32_t wanted, uint32_t (&group)[R])
{
	uint64_t at[R];
	uint32_t open = wanted;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		group[i] = GJ_FUSED_NO_GROUP;
		at[i] = gj_hash_slot(keys.hash[i], groups.nslots);
	}
	while (open != 0)
	{
		uint64_t slot[R];
		uint32_t g[R];
		uint32_t same = 0;

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			slot[i] = open >> i & 1 ? groups.slots[at[i]] : GJ_NO_SLOT;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			g[i] = (uint32_t) slot[i];
			if (slot[i] == GJ_NO_SLOT)
				open &= ~(1u << i);
			else if (slot[i] >> 32 == (keys.hash[i] & UINT64_C(0xFFFFFFFF)))
				same |= 1u << i;
			if (++at[i] == groups.nslots)
				at[i] = 0;
		}
		same = same_group<R>(keys, groups.rows, g, same);
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (same >> i & 1)
				group[i] = g[i];
		}
		open &= ~same;
	}
}

/* Groups of the wanted tuples: GJ_FUSED_NO_GROUP where it is not known.  There is a table. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ void
groups_of(const GjFusedPlan &plan, const GjGroups &groups, Tuples<R> &t, uint32_t wanted,
		  uint32_t (&group)[R])
{
	GroupKeys<R> keys;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		keys.hash[i] = keys.null[i] = 0;
#pragma unroll 1
	for (uint32_t k = 0; k < plan.ngroup_keys; k++)
	{
		const GjFusedExpr &e = plan.exprs[plan.group_expr[k]];
		const uint32_t how = plan.group_how[k];
		const bool carried = forms != FORMS_INTEGERS && how > GJ_GROUP_FLOAT;
		const Values<R> values = carried ? carried_values<R>(e, t.columns, t.rowid, wanted)
										 : values_of<R, forms>(e, t, wanted);

		keys.heap[k] = carried ? t.columns[e.a].heap : NULL;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const bool null = !(values.known >> i & 1);

			keys.value[k][i] = values.value[i];
			keys.null[i] |= (uint32_t) null << k;
			if (wanted >> i & 1)
				keys.hash[i] = gj_group_add_key(keys.hash[i], k, how, null, values.value[i],
												keys.heap[k], &t.status);
		}
	}
	find_groups<R>(keys, groups, wanted, group);
}

/* ---- states in shared memory */

/*
 * States of groups in shared memory, in words of 32 bits, which the GPU adds to there at once.  A
 * count takes one, which no block can overflow; a sum of integers the three lower words of its
 * 128 bits, and a count; each is an array over copies and groups, so that groups are spread over
 * the banks.  Other aggregates are GjAggStates.
 */
typedef struct LocalTable
{
	uint32_t copies; /* threads use them in turn; 0: there is no table */
	uint32_t nwords;
	uint32_t at[GJ_FUSED_AGGREGATES]; /* first word of each aggregate */
} LocalTable;

#define LOCAL_BYTES (46 * 1024)      /* that any GPU has, with what the kernels have besides */
#define MOST_LOCAL_BYTES (96 * 1024) /* that any GPU since Ampere has if it is asked for */
#define LOCAL_ROWS 8 /* rows a block and local state, at least, that make it worth while */

#define SUM_WORDS 4
#define STATE_WORDS (sizeof(GjAggState) / sizeof(uint32_t))

static __host__ __device__ __forceinline__ uint32_t
words_of(uint32_t op)
{
	if (op == GJ_AGG_COUNT || op == GJ_AGG_COUNT_STAR)
		return 1;
	if (op == GJ_AGG_SUM_I)
		return SUM_WORDS;
	return gj_agg_is_distinct(op) ? 0 : STATE_WORDS;
}

/* Starts the table; nstates is copies times groups. */
static __device__ __forceinline__ void
start_table(const GjFusedPlan &plan, const LocalTable &local, uint32_t nstates, uint32_t *table)
{
	for (uint32_t i = threadIdx.x; i < local.nwords; i += GJ_THREADS)
		table[i] = 0;
	__syncthreads();
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		GjAggState *state = (GjAggState *) (table + local.at[a]);

		if (words_of(plan.aggregate_op[a]) != STATE_WORDS)
			continue;
		for (uint32_t i = threadIdx.x; i < nstates; i += GJ_THREADS)
			start_state(plan.aggregate_op[a], &state[i]);
	}
	__syncthreads();
}

/* Adds the known values to sums of their groups; words of state g are low[g], low[g + step] .. */
template <uint32_t R>
static __device__ __forceinline__ void
add_sums_locally(uint32_t *low, uint32_t step, const Values<R> &values, const uint32_t (&group)[R])
{
	uint32_t before[R];

	/* what was there before is not waited for in turn */
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		before[i] = 0;
		if (values.known >> i & 1)
			before[i] = atomicAdd(&low[group[i]], (uint32_t) values.value[i]);
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t word = (uint32_t) values.value[i];
		uint64_t high = ((uint64_t) values.value[i] >> 32) + (before[i] > UINT32_MAX - word);
		int32_t carry = (int32_t) (high >> 32) + (int32_t) (values.value[i] >> 63);

		if (!(values.known >> i & 1))
			continue;
		atomicAdd(&low[group[i] + 3 * step], 1u);
		if ((uint32_t) high != 0)
			carry +=
				atomicAdd(&low[group[i] + step], (uint32_t) high) > UINT32_MAX - (uint32_t) high;
		if (carry != 0)
			atomicAdd(&low[group[i] + 2 * step], (uint32_t) carry);
	}
}

/* The state of group g of aggregate a, all copies together. */
static __device__ __forceinline__ GjAggState
read_table(uint32_t op, const uint32_t *table, uint32_t copies, uint32_t ngroups, uint32_t g)
{
	const uint32_t step = copies * ngroups;
	GjAggState sum;

	start_state(op, &sum);
	for (uint32_t i = g; i < step; i += ngroups)
	{
		switch (words_of(op))
		{
			case 1:
				sum.count += table[i];
				break;
			case SUM_WORDS:
				gj_add_128(&sum.lo, &sum.hi, table[i] | (uint64_t) table[i + step] << 32,
						   (int32_t) table[i + 2 * step]);
				sum.count += table[i + 3 * step];
				break;
			default:
				combine(op, &sum, ((const GjAggState *) table)[i]);
		}
	}
	return sum;
}

/* add_value, but for the commonest aggregates. */
static __device__ __noinline__ void
add_any_value(uint32_t op, GjAggState *state, int64_t value)
{
	add_value(op, state, value);
}

/* Adds the known values to the states of their groups in shared memory. */
template <uint32_t R>
static __device__ __forceinline__ void
add_locally(uint32_t op, uint32_t *table, uint32_t step, const Values<R> &values,
			const uint32_t (&group)[R])
{
	if (op == GJ_AGG_SUM_I)
	{
		add_sums_locally<R>(table, step, values, group);
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (!(values.known >> i & 1))
			continue;
		if (op == GJ_AGG_COUNT || op == GJ_AGG_COUNT_STAR)
			atomicAdd(&table[group[i]], 1u);
		else
			add_any_value(op, (GjAggState *) table + group[i], values.value[i]);
	}
}

/* The same in global memory. */
template <uint32_t R>
static __device__ __forceinline__ void
add_globally(uint32_t op, GjAggState *states, const Values<R> &values, const uint32_t (&group)[R])
{
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		GjAggState *to = &states[group[i]];

		if (!(values.known >> i & 1))
			continue;
		if (op != GJ_AGG_SUM_I && op != GJ_AGG_COUNT && op != GJ_AGG_COUNT_STAR)
		{
			add_any_value(op, to, values.value[i]);
			continue;
		}
		if (op == GJ_AGG_SUM_I)
			add_128(to, (uint64_t) values.value[i], values.value[i] >> 63);
		atomicAdd((unsigned long long *) &to->count, 1ULL);
	}
}

/* Adds the wanted tuples to aggregates of their groups: add(a, values). */
template <uint32_t R, Forms forms, typename Add>
static __device__ __forceinline__ void
add_tuples(const GjFusedPlan &plan, Tuples<R> &t, uint32_t wanted, Add add)
{
	Values<R> values = {};

#pragma unroll 1
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GjFusedExpr &e = plan.exprs[plan.aggregate_expr[a]];
		const uint32_t op = plan.aggregate_op[a];

		/* they take their values when the groups are finished */
		if (gj_agg_is_distinct(op))
			continue;
		if (e.form == GJ_FUSED_NONE)
			values.known = wanted;
		/* neighbours of one argument take the same value; a distinct one's is another's */
		else if (a == 0 || plan.aggregate_expr[a] != plan.aggregate_expr[a - 1])
			values = argument_of<R, forms>(plan, e, t, wanted);
		add(a, op, values);
	}
}

#endif /* GJ_CUDA_FUSED_GROUPS_CUH */
