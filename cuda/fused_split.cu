/*
 * fused_split.cu
 *	  Rows that two devices exchange, joined and written in one kernel: what the host does.
 */
#include "fused_split.cuh"

#include <algorithm>

#include "fused_launch.cuh"
#include "fused_plain_plan.cuh"

/* The number of an outer operand's column among those of a split, added to them; -1: no room. */
static int
split_column(const PlainOperand &of, SplitPlan *split)
{
	for (uint32_t c = 0; c < split->ncolumns; c++)
	{
		if (split->column[c].of.column == of.column)
			return (int) c;
	}
	if (split->ncolumns == SPLIT_COLUMNS)
		return -1;
	split->column[split->ncolumns] = {of, NULL};
	return (int) split->ncolumns++;
}

/* Has an operand read the lists' columns. */
static bool
use_lists(PlainOperand *of, SplitPlan *split)
{
	const int c = of->slot == 0 ? split_column(*of, split) : 0;

	if (of->slot == 0)
		of->column = (int16_t) c;
	return c >= 0;
}

/* The same for all that a plan reads. */
static bool
use_lists(Plain *plain, SplitPlan *split)
{
	bool fits = true;

	for (uint32_t k = 0; k < plain->nranges; k++)
		fits &= use_lists(&plain->range[k].of, split);
	for (uint32_t s = 0; s < plain->nsteps; s++)
		fits &= use_lists(&plain->step[s].key, split);
	for_operands(plain, [&](PlainOperand *of) { fits &= use_lists(of, split); });
	return fits;
}

/*
 * Has an outer column sent.  False: it is not a plain one, or not of the width that is wanted, or
 * what it goes to is not aligned.
 */
static bool
send_column(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			uint32_t nparts, uint32_t column, const GjColumn *to, SplitPlan *split)
{
	PlainOperand of;
	int c;

	if (!plain_operand(plan, columns, parts, nparts, (int16_t) (plan->first_column + column), 0, 0,
					   &of))
		return false;
	c = split_column(of, split);
	if (c < 0 || to->nulls != NULL)
		return false;
	if (to->data == NULL)
		return true;
	split->column[c].to = (void *) to->data;
	return (uintptr_t) to->data % 16 == 0 &&
		   to->width == (of.wide ? sizeof(int64_t) : sizeof(int32_t));
}

/* Describes the other part, and has the plan read lists.  False: its columns do not do for that. */
static bool
make_split(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		   uint32_t nparts, const GjSplit *split, uint32_t own, const GjColumn *to, uint32_t room,
		   Plain *plain, SplitPlan *result)
{
	const uint32_t key = split->key[0];
	bool fits;

	*result = {};
	result->part = 1 - own;
	result->nparts = split->npieces;
	result->room = room;
	fits = send_column(plan, columns, parts, nparts, key, &to[key], result);
	for (uint32_t c = 0; c < split->ncolumns && fits; c++)
	{
		if (c != key && (to[c].data != NULL || to[c].nulls != NULL))
			fits = send_column(plan, columns, parts, nparts, c, &to[c], result);
	}
	fits = fits && use_lists(plain, result);
	/* values of 64 bits need a kernel that computes with them */
	for (uint32_t c = 0; c < result->ncolumns; c++)
		fits = fits && (plain->wide || !result->column[c].of.wide);
	return fits;
}

template <typename V, int nsteps, bool hashed>
static GjStatus
launch_split(GjQueue *queue, const GjFusedPlan *plan, const Plain &plain, const Input &input,
			 SplitPlan split)
{
	const size_t list = list_bytes<V>(split.ncolumns);
	const auto kernel = fused_plain_split<V, nsteps, hashed>;
	uint32_t blocks = 0;
	uint8_t *memory;
	size_t nbytes;

	/* always the same, for other threads launch it as well */
	GJ_CUDA(queue, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
										(int) list_bytes<V>(SPLIT_COLUMNS)));
	GJ_TRY(blocks_at_once(queue, kernel, list, input.nchunks, &blocks));
	nbytes = (size_t) plan->naggregates * blocks * sizeof(GjAggState);
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes + sizeof(uint32_t), (void **) &memory));
	split.n = (uint32_t *) (memory + nbytes);
	GJ_CUDA(queue, cudaMemsetAsync(split.n, 0, sizeof(uint32_t), queue->stream));
	kernel<<<blocks, GJ_THREADS, list, queue->stream>>>(plain, input, split, (GjAggState *) memory);
	GJ_LAUNCHED(queue, "fused_plain_split");
	tell_sent<<<1, 1, 0, queue->stream>>>(split, &queue->pinned->split_parts);
	GJ_LAUNCHED(queue, "tell_sent");
	return merge_partials(queue, plan, blocks, (GjAggState *) memory);
}

/* True if the split is one of two parts, by one key that is a column, of all rows of its pieces. */
static bool
is_plain_split(const GjSplit *split)
{
	bool plain = split->nparts == 2 && split->nkeys == 1 && split->keys == NULL;

	for (uint32_t p = 0; p < split->npieces && plain; p++)
		plain = split->pieces[p].rows == NULL;
	return plain;
}

GjStatus
gj_fused_split(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
			   const GjSplit *split, uint32_t own, const GjFusedPart *also, uint32_t nalso,
			   const GjColumn *to, uint32_t room, bool (*stop)(void *), void *arg,
			   const GjSplitParts **parts, bool *done)
{
	const uint32_t nparts = split->npieces + nalso;
	GjFusedPart part[GJ_FUSED_PARTS];
	Input input = {};
	SplitPlan split_plan;
	Plain plain;

	*done = false;
	*parts = &queue->pinned->split_parts;
	if (!is_plain_split(split) || nparts > GJ_FUSED_PARTS)
		return GJ_OK;
	for (uint32_t p = 0; p < split->npieces; p++)
		part[p] = {split->pieces[p].columns, split->pieces[p].nrows};
	std::copy(also, also + nalso, part + split->npieces);
	if (!gj_make_plain(plan, columns, part, nparts, &plain) ||
		!make_split(plan, columns, part, nparts, split, own, to, room, &plain, &split_plan))
		return GJ_OK;
	*done = true;
	GJ_TRY(gj_enter(queue));
	memset(&queue->pinned->split_parts, 0, sizeof(GjSplitParts));
	GJ_TRY(upload_parts(queue, plan, columns, part, nparts, &input));
	for (uint32_t p = 0; p < split->npieces; p++)
		split_plan.nchunks += gj_blocks(part[p].nrows, input.chunk);
	input.counts = queue->fused_counts;
	input.results = queue->results;
	if (input.nchunks == 0)
		return GJ_OK;
	return FOR_PLAIN(plain, launch_split, queue, plan, plain, input, split_plan);
}
