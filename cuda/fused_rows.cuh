/*
 * fused_rows.cuh
 *	  The steps and stages of the fused operator, for several tuples of a thread at a time: see
 *	  fused_values.cuh.
 */
#ifndef GJ_CUDA_FUSED_ROWS_CUH
#define GJ_CUDA_FUSED_ROWS_CUH

#include "fused_values.cuh"
#include "table.cuh"

/* ---- steps */

template <uint32_t R>
struct Found
{
	uint32_t row[R];
};

/* The rows of known keys in a wide table, or payloads. */
template <uint32_t R>
static __device__ __forceinline__ Found<R>
look_up_wide(const GjTableRef &table, bool payload, const int64_t (&key)[2][R], uint32_t open)
{
	const WideRef ref(table);
	Found<R> found;
	uint64_t at[R];
	GjWideSlot slot[R];

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		found.row[i] = GJ_NO_ROW;
		at[i] = ref.home(gj_hash_combine(gj_hash_combine(0, key[0][i]), key[1][i]));
	}
	while (open != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			slot[i] = {};
			if (open >> i & 1)
				slot[i] = ref.load(at[i]);
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const bool same = slot[i].count != 0 && slot[i].key[0] == (uint64_t) key[0][i] &&
							  slot[i].key[1] == (uint64_t) key[1][i];

			if (same && (open >> i & 1))
				found.row[i] = payload ? slot[i].count : slot[i].start;
			if (same || slot[i].count == 0)
				open &= ~(1u << i);
			if (++at[i] == table.nslots)
				at[i] = 0;
		}
	}
	if (table.rows == NULL || payload)
		return found;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (found.row[i] != GJ_NO_ROW)
			found.row[i] = table.rows[found.row[i]];
	}
	return found;
}

/* Both keys of a step with two; returns the tuples of which none is NULL. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
pair_of_keys(const GjFusedExpr *e, Tuples<R> &t, uint32_t wanted, int64_t (&key)[2][R])
{
	if (are_halves(e))
	{
		uint32_t row[R];

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			row[i] = t.rowid[(e->slot_a * R + i) * GJ_THREADS];

		const Halves<R> halves =
			halves_of<R>(t.columns[e->a], e->arg, (uint32_t) e->high & GJ_KEY_WHOLE, row, wanted);

		if (halves.status != GJ_OK)
			t.status = halves.status;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			key[0][i] = halves.key[0][i];
			key[1][i] = halves.key[1][i];
		}
		return halves.known;
	}
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
	{
		const Values<R> values = values_of<R, forms>(e[k], t, wanted);

		wanted = values.known;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			key[k][i] = gj_key_bits(values.value[i], e[k].is_float);
	}
	return wanted;
}

/*
 * The rows of one-key tuples, or payloads if the table gives these, GJ_NO_ROW if they have none; of
 * several rows of a key it is any.  With the look-ups of table.cuh these kernels take more
 * registers.
 */
template <uint32_t R>
static __device__ __forceinline__ void
find_rows(const GjTableRef &table, const int64_t (&key)[R], uint32_t wanted, uint32_t (&found)[R])
{
	uint64_t at[R];
	GjHashSlot slot[R];
	uint32_t open = wanted;

	if (table.kind != GJ_TABLE_HASH)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			at[i] = (uint64_t) key[i] - (uint64_t) table.low;
			found[i] = GJ_NO_ROW;
			if ((wanted >> i & 1) && at[i] < table.nslots)
				found[i] =
					table.kind == GJ_TABLE_DENSE ? (uint32_t) at[i] : __ldg(&table.place[at[i]]);
		}
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		found[i] = GJ_NO_ROW;
		at[i] = gj_hash_slot(gj_hash_mix((uint64_t) key[i]), table.nslots);
	}
	while (open != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			slot[i].key = 0;
			slot[i].count = 0;
			if (open >> i & 1)
				slot[i] = gj_load_slot(table.slots, at[i]);
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const bool same = slot[i].count != 0 && slot[i].key == (uint64_t) key[i];

			if (same && (open >> i & 1))
				found[i] = table.finds_payload ? slot[i].count : slot[i].start;
			if (same || slot[i].count == 0)
				open &= ~(1u << i);
			if (++at[i] == table.nslots)
				at[i] = 0;
		}
	}
	if (table.rows == NULL || table.finds_payload)
		return;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (found[i] != GJ_NO_ROW)
			found[i] = table.rows[found[i]];
	}
}

/* The same of tuples with two keys in a wide table. */
template <uint32_t R, Forms forms>
static __device__ __noinline__ Found<R>
find_wide(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t wanted)
{
	int64_t key[2][R];
	const uint32_t known = pair_of_keys<R, forms>(&plan.exprs[step.first_key], t, wanted, key);

	return look_up_wide<R>(step.table, step.table.finds_payload, key, known);
}

/* The slot of one or more keys in a table with slots, or an empty one. */
static __device__ __forceinline__ GjHashSlot
find_slot(const GjTableRef &table, const int64_t *key, uint32_t nkeys)
{
	const HashRef<uint64_t> ref(table);
	uint64_t hash = 0;

	if (nkeys == 1)
		hash = gj_hash_mix((uint64_t) key[0]);
	for (uint32_t k = 0; nkeys > 1 && k < nkeys; k++)
		hash = gj_hash_combine(hash, key[k]);

	if (table.kind == GJ_TABLE_WIDE)
	{
		const uint64_t both[] = {(uint64_t) key[0], (uint64_t) key[1]};

		return WideRef(table).find(both, hash);
	}

	const uint64_t s = ref.home(hash);

	return ref.find_from(s, gj_load_slot(ref.slots, s),
						 [&](const GjHashSlot &other)
						 {
							 bool same = other.key == (nkeys == 1 ? (uint64_t) key[0] : hash);

							 if (same && nkeys > 1)
							 {
								 const uint32_t row = table.key_row[other.start];

								 for (uint32_t k = 0; k < nkeys; k++)
									 same = same && table.key_value[k][row] == key[k];
							 }
							 return same;
						 });
}

/* The slot of tuple i, with any number of keys. */
template <uint32_t R, Forms forms>
static __device__ __noinline__ GjHashSlot
slot_of_tuple(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t i)
{
	int64_t key[GJ_MAX_KEYS];
	GjHashSlot slot = {};
	bool null = false;

	for (uint32_t k = 0; k < step.nkeys; k++)
	{
		const GjFusedExpr &e = plan.exprs[step.first_key + k];

		if (forms == FORMS_INTEGERS)
			null |= gj_fused_simple(&e, t.columns, t.rowid + i * GJ_THREADS, R * GJ_THREADS,
									&key[k], &t.status);
		else if (forms != FORMS_CODE || e.form != GJ_FUSED_CODE)
			null |= gj_fused_value(&e, t.code->constants, t.columns, t.rowid + i * GJ_THREADS,
								   R * GJ_THREADS, &key[k], &t.status);
		else
			null |= eval_one(t.code, t.view, &t.tile, (uint32_t) e.expr, &key[k], &t.status);
		key[k] = gj_key_bits(key[k], e.is_float);
	}
	if (!null)
		slot = find_slot(step.table, key, step.nkeys);
	return slot;
}

/* The row of tuple i, with any number of keys, or GJ_NO_ROW. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
find_row(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t i)
{
	const GjHashSlot slot = slot_of_tuple<R, forms>(plan, step, t, i);

	return slot.count == 0 ? GJ_NO_ROW : gj_fused_row(&step.table, slot.start, 0);
}

/* Notes that the rows of some tuples have a match. */
template <uint32_t R>
static __device__ __forceinline__ void
mark_rows(const GjFusedStep &step, const uint32_t *rowid, uint32_t matched)
{
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		/* all write the same */
		if (matched >> i & 1)
			step.marks[rowid[i * GJ_THREADS]] = 1;
	}
}

/*
 * Looks at the rows of each wanted tuple's key in turn; returns the tuples that have a row for
 * which the residual condition is true.  Rows that are to be marked are all looked at, else a tuple
 * is done with the first such row.
 */
template <uint32_t R, Forms forms>
static __device__ __noinline__ uint32_t
walk_rows(const GjFusedPlan &plan, const GjFusedStep &step, uint32_t *rowid, Tuples<R> &t,
		  uint32_t wanted)
{
	uint32_t start[R];
	uint32_t count[R];
	uint32_t matched = 0;
	uint32_t open = wanted;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		GjHashSlot slot = {};

		if (step.table.kind != GJ_TABLE_NONE && (wanted >> i & 1))
			slot = slot_of_tuple<R, forms>(plan, step, t, i);
		start[i] = slot.start;
		count[i] = slot.count;
	}
	for (uint32_t r = 0;; r++)
	{
		uint32_t kept;

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (r >= count[i])
				open &= ~(1u << i);
			if (open >> i & 1)
				rowid[i * GJ_THREADS] = gj_fused_row(&step.table, start[i], r);
		}
		if (open == 0)
			return matched;
		kept = true_for<R, forms>(plan, step.residual, t, open);
		matched |= kept;
		if (step.marks == NULL)
			open &= ~kept;
		else
			mark_rows<R>(step, rowid, kept);
	}
}

/* Finds the row of each wanted tuple that has one at most; returns the tuples that have a match. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
match_rows(const GjFusedPlan &plan, const GjFusedStep &step, uint32_t *rowid, Tuples<R> &t,
		   uint32_t wanted)
{
	uint32_t found[R];
	uint32_t matched = 0;

	if (step.table.kind != GJ_TABLE_NONE && step.nkeys == 1)
	{
		const GjFusedExpr &e = plan.exprs[step.first_key];
		Values<R> key = values_of<R, forms>(e, t, wanted);

		if (e.is_float)
		{
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				key.value[i] = gj_key_bits(key.value[i], true);
		}
		find_rows<R>(step.table, key.value, key.known, found);
	}
	else if (forms != FORMS_INTEGERS && step.table.kind == GJ_TABLE_WIDE)
	{
		const Found<R> wide = find_wide<R, forms>(plan, step, t, wanted);

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			found[i] = wide.row[i];
	}
	else
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			found[i] = step.table.kind != GJ_TABLE_NONE && (wanted >> i & 1)
						   ? find_row<R, forms>(plan, step, t, i)
						   : GJ_NO_ROW;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		rowid[i * GJ_THREADS] = found[i];
		matched |= (uint32_t) (found[i] != GJ_NO_ROW) << i;
	}
	if (step.residual.form != GJ_FUSED_NONE)
	{
		const uint32_t kept = true_for<R, forms>(plan, step.residual, t, matched);

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if ((matched & ~kept) >> i & 1)
				rowid[i * GJ_THREADS] = GJ_NO_ROW;
		}
		matched = kept;
	}
	if (step.marks != NULL)
		mark_rows<R>(step, rowid, matched);
	return matched;
}

/* Takes the wanted tuples through step s; returns those that go on. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
join_step(const GjFusedPlan &plan, uint32_t s, Tuples<R> &t, uint32_t wanted)
{
	const GjFusedStep &step = plan.steps[s];
	uint32_t *rowid = &t.rowid[(s + 1) * R * GJ_THREADS];
	const uint32_t matched = step.walks ? walk_rows<R, forms>(plan, step, rowid, t, wanted)
										: match_rows<R, forms>(plan, step, rowid, t, wanted);

	if (gj_fused_ends(step.join_type))
		return 0;
	if (!gj_fused_keeps_all(step.join_type))
		wanted &= step.join_type == GJ_JOIN_ANTI ? ~matched : matched;
	return true_for<R, forms>(plan, step.filter, t, wanted);
}

/* All lanes of the warp call it: counts their tuples. */
static __device__ __forceinline__ void
count_tuples(uint32_t *count, uint32_t alive)
{
	const uint32_t n = __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(alive));

	if (threadIdx.x % 32 == 0 && n != 0)
		atomicAdd(count, n);
}

/*
 * Tuples that have come through some steps: those of part p are rowid[slot][first_row .. + n[p]),
 * first_row being that of the part.  n = NULL: the rows of the parts themselves.
 */
typedef struct TupleList
{
	uint32_t *rowid[GJ_FUSED_STEPS + 1];
	uint32_t *n;
} TupleList;

/*
 * All lanes of the warp call it: places in a list of a part for their tuples `alive`, behind the *n
 * that it has; at[i]: tuple i's, if it is alive.  False: the warp has none.
 */
template <uint32_t R>
static __device__ __forceinline__ bool
take_places(uint32_t alive, uint32_t first_row, uint32_t *n, uint32_t (&at)[R])
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t total = 0;
	uint32_t first = 0;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t lanes = __ballot_sync(0xFFFFFFFF, alive >> i & 1);

		at[i] = total + __popc(lanes & ((1u << lane) - 1));
		total += __popc(lanes);
	}
	if (total == 0)
		return false;
	if (lane == 0)
		first = atomicAdd(n, total);
	first = first_row + __shfl_sync(0xFFFFFFFF, first, 0);
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		at[i] += first;
	return true;
}

/* What a kernel takes tuples through: steps first .. end-1, and rows through the filter before. */
typedef struct Stage
{
	TupleList from;
	uint32_t first;
	uint32_t end;
} Stage;

/*
 * All lanes of the warp call it: takes tuples `alive` of a part, number i being at
 * first + i * GJ_THREADS, through a stage; returns those that come out.
 */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
take_tuples(const GjFusedPlan &plan, const Stage &stage, uint32_t first_row, uint32_t first,
			uint32_t alive, Tuples<R> &t, uint32_t *counts)
{
	if (stage.from.n == NULL)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			t.rowid[i * GJ_THREADS] = first + i * GJ_THREADS;
		alive = true_for<R, forms>(plan, plan.filter, t, alive);
		count_tuples(&counts[0], alive);
	}
	else
	{
#pragma unroll 1
		for (uint32_t s = 0; s <= stage.first; s++)
		{
			const uint32_t *from = stage.from.rowid[s] + first_row + first;

#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				if (alive >> i & 1)
					t.rowid[(s * R + i) * GJ_THREADS] = from[i * GJ_THREADS];
			}
		}
	}
	for (uint32_t s = stage.first; s < stage.end; s++)
	{
		if (alive != 0)
			alive = join_step<R, forms>(plan, s, t, alive);
		count_tuples(&counts[s + 1], alive);
	}
	return alive;
}

#endif /* GJ_CUDA_FUSED_ROWS_CUH */
