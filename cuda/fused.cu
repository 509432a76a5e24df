/*
 * fused.cu
 *	  Filter, joins and aggregates of probe rows in one kernel: which kernels take a call's rows.
 *
 * Plans of the commonest kinds have kernels of their own (fused_plain.cuh, fused_grouped.cuh),
 * others those of fused_kernels.cuh.  Where few tuples come through a step, as a sample of the rows
 * tells, those that do are written to lists, and another kernel takes them on: else warps would go
 * through the later steps for one or two of their lanes.
 */
#include <stdlib.h>
#include <string.h>

#include <type_traits>

#include "fused_kernels.cuh"
#include "fused_launch.cuh"
#include "fused_plain_plan.cuh"

#define SAMPLED_ROWS (256u * 1024)
/* Calls with a plan, of other runs, that do what a sample told, before there is another sample. */
#define MAX_CUT_USES 32
#define MAX_COPIES 16
#define LARGE_LISTS ((size_t) 128 << 20)
#define MAX_BLOCKS_PER_SM (2048 / GJ_THREADS)

/* Bytes of tile and row ids of a block. */
static size_t
tail_bytes(const GjFusedPlan *plan)
{
	const size_t rows = plan->nregisters > 0 ? 1 : FUSED_ROWS;

	return GJ_THREADS * (plan->nregisters * (sizeof(int64_t) + 1) +
						 rows * (plan->nsteps + 1) * sizeof(uint32_t));
}

template <uint32_t most, Forms forms>
static GjStatus
launch_aggregate(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage)
{
	const size_t nbytes = tail_bytes(plan);
	uint32_t blocks = 0;
	GjAggState *partial;
	void *memory;

	GJ_TRY(blocks_at_once(queue, fused_aggregate<most, forms>, nbytes, input.nchunks, &blocks));
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) plan->naggregates * blocks * sizeof(GjAggState),
					  &memory));
	partial = (GjAggState *) memory;
	fused_aggregate<most, forms>
		<<<blocks, GJ_THREADS, nbytes, queue->stream>>>(queue->code, *plan, input, stage, partial);
	GJ_LAUNCHED(queue, "fused_aggregate");
	return merge_partials(queue, plan, blocks, partial);
}

/* Few aggregates are the rule, and states in registers are dear. */
template <Forms forms>
static GjStatus
launch_for_size(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage)
{
	if (plan->naggregates <= 2)
		return launch_aggregate<2, forms>(queue, plan, input, stage);
	if (plan->naggregates <= 4)
		return launch_aggregate<4, forms>(queue, plan, input, stage);
	return launch_aggregate<GJ_FUSED_AGGREGATES, forms>(queue, plan, input, stage);
}

template <typename V, int nsteps, PlainSlots slots>
static GjStatus
launch_plain(GjQueue *queue, const GjFusedPlan *plan, const Plain &plain, const Input &input)
{
	uint32_t blocks = 0;
	GjAggState *partial;
	void *memory;

	GJ_TRY(blocks_at_once(queue, fused_plain<V, nsteps, slots>, 0, input.nchunks, &blocks));
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) plan->naggregates * blocks * sizeof(GjAggState),
					  &memory));
	partial = (GjAggState *) memory;
	fused_plain<V, nsteps, slots><<<blocks, GJ_THREADS, 0, queue->stream>>>(plain, input, partial);
	GJ_LAUNCHED(queue, "fused_plain");
	return merge_partials(queue, plan, blocks, partial);
}

template <typename V, int nsteps, PlainSlots slots>
static GjStatus
launch_plain_select(GjQueue *queue, const Plain &plain, const Input &input, const TupleList &to)
{
	uint32_t blocks = 0;

	GJ_TRY(blocks_at_once(queue, fused_plain_select<V, nsteps, slots>, 0, input.nchunks, &blocks));
	fused_plain_select<V, nsteps, slots>
		<<<blocks, GJ_THREADS, 0, queue->stream>>>(plain, input, to);
	GJ_LAUNCHED(queue, "fused_plain_select");
	return GJ_OK;
}

/* Copies of a local table that a block can have and that are worth while; 0: none. */
static uint32_t
local_copies(const GjQueue *queue, const GjFusedPlan *plan, const Input &input,
			 const GjGroups *groups, uint32_t words)
{
	const uint64_t one = (uint64_t) words * groups->rows.nrows * sizeof(uint32_t);
	const uint64_t rest = tail_bytes(plan) + sizeof(int64_t);
	uint32_t copies = 1;

	if (one == 0 || (uint64_t) input.nchunks * input.chunk / queue->device->nprocessors <
						(uint64_t) groups->rows.nrows * LOCAL_ROWS)
		return 0;
	while (copies < MAX_COPIES && one * copies * 2 + rest <= LOCAL_BYTES)
		copies *= 2;
	if (one * copies + rest <= LOCAL_BYTES)
		return copies;
	return one + rest <= MOST_LOCAL_BYTES ? 1 : 0;
}

/* Lays the local table out: states first, which are aligned as int64_t. */
static LocalTable
lay_table_out(const GjQueue *queue, const GjFusedPlan *plan, const Input &input,
			  const GjGroups *groups)
{
	LocalTable local = {};
	uint32_t words = 0;

	for (uint32_t a = 0; a < plan->naggregates; a++)
		words += words_of(plan->aggregate_op[a]);
	local.copies = local_copies(queue, plan, input, groups, words);
	for (uint32_t states = 2; states-- > 0;)
	{
		for (uint32_t a = 0; a < plan->naggregates; a++)
		{
			const uint32_t n = words_of(plan->aggregate_op[a]);

			if ((n == STATE_WORDS) != (states == 1))
				continue;
			local.at[a] = local.nwords;
			local.nwords += n * local.copies * groups->rows.nrows;
		}
	}
	/* what follows is aligned as well */
	local.nwords += local.nwords % 2;
	return local;
}

template <Forms forms>
static GjStatus
launch_group(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			 const GjGroups *groups, const Missed &missed)
{
	const LocalTable local = lay_table_out(queue, plan, input, groups);
	const size_t nbytes = local.nwords * sizeof(uint32_t) + tail_bytes(plan);
	uint32_t blocks = 0;

	if (local.copies > 0)
	{
		/* always the same, for other threads launch it as well */
		if (nbytes > LOCAL_BYTES)
			GJ_CUDA(queue, cudaFuncSetAttribute(fused_group<forms, true>,
												cudaFuncAttributeMaxDynamicSharedMemorySize,
												MOST_LOCAL_BYTES));
		GJ_TRY(blocks_at_once(queue, fused_group<forms, true>, nbytes, input.nchunks, &blocks));
		fused_group<forms, true><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(
			queue->code, *plan, input, stage, *groups, missed, local);
	}
	else
	{
		GJ_TRY(blocks_at_once(queue, fused_group<forms, false>, nbytes, input.nchunks, &blocks));
		fused_group<forms, false><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(
			queue->code, *plan, input, stage, *groups, missed, local);
	}
	GJ_LAUNCHED(queue, "fused_group");
	return GJ_OK;
}

/* The kernel that adds tuples to groups, or, if there are none, to aggregates. */
template <Forms forms>
static GjStatus
launch_output(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			  const GjGroups *groups, const Missed &missed)
{
	return groups == NULL ? launch_for_size<forms>(queue, plan, input, stage)
						  : launch_group<forms>(queue, plan, input, stage, groups, missed);
}

/* Brings the numbers of missed tuples back. */
static GjStatus
read_missed(GjQueue *queue, const Input &input, const GjFusedPart *parts, GjFusedMissed *missed)
{
	uint32_t before = 0;

	GJ_CUDA(queue,
			cudaMemcpyAsync(queue->pinned->missed, input.nmissed, input.nparts * sizeof(uint32_t),
							cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	for (uint32_t p = 0; p < input.nparts; p++)
	{
		missed->first[p] = before;
		missed->n[p] = queue->pinned->missed[p];
		before += parts[p].nrows;
	}
	return GJ_OK;
}

/* ---- stages */

template <Forms forms>
static GjStatus
launch_select(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			  const TupleList &to, uint32_t stride)
{
	const size_t nbytes = tail_bytes(plan);
	uint32_t blocks = 0;

	GJ_TRY(blocks_at_once(queue, fused_select<forms>, nbytes, gj_blocks(input.nchunks, stride),
						  &blocks));
	fused_select<forms><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(queue->code, *plan, input,
																	   stage, to, stride);
	GJ_LAUNCHED(queue, "fused_select");
	return GJ_OK;
}

/* ---- which kernels a stage needs */

static Forms
forms_of(const GjFusedPlan *plan, const GjFusedExpr *e)
{
	Forms forms = e->form == GJ_FUSED_CODE    ? FORMS_CODE
				  : e->form == GJ_FUSED_BYTES ? FORMS_BYTES
											  : FORMS_INTEGERS;

	for (uint32_t k = 0; e->form == GJ_FUSED_CASE && k < e->slot_b; k++)
		forms = std::max(forms, forms_of(plan, &plan->terms[e->slot_a + k]));
	return forms;
}

static Forms
forms_of_condition(const GjFusedPlan *plan, const GjFusedCondition *condition)
{
	Forms forms = condition->form == GJ_FUSED_CODE ? FORMS_CODE : FORMS_INTEGERS;

	for (uint32_t k = 0; condition->form == GJ_FUSED_ALL_TERMS && k < condition->n; k++)
		forms = std::max(forms, forms_of(plan, &plan->terms[condition->first + k]));
	return forms;
}

static Forms
forms_of_steps(const GjFusedPlan *plan, uint32_t first, uint32_t end)
{
	Forms forms = FORMS_INTEGERS;

	for (uint32_t s = first; s < end; s++)
	{
		const GjFusedStep *step = &plan->steps[s];

		if (step->table.kind == GJ_TABLE_WIDE)
			forms = std::max(forms, FORMS_BYTES);
		forms = std::max(forms, forms_of_condition(plan, &step->residual));
		forms = std::max(forms, forms_of_condition(plan, &step->filter));
		for (uint32_t k = 0; k < step->nkeys; k++)
			forms = std::max(forms, forms_of(plan, &plan->exprs[step->first_key + k]));
	}
	return forms;
}

static Forms
forms_of_stage(const GjFusedPlan *plan, const Stage &stage)
{
	const Forms forms = forms_of_steps(plan, stage.first, stage.end);

	return stage.from.n == NULL ? std::max(forms, forms_of_condition(plan, &plan->filter)) : forms;
}

/* Of what comes out: aggregates and groups. */
static Forms
forms_of_output(const GjFusedPlan *plan)
{
	Forms forms = FORMS_INTEGERS;

	for (uint32_t a = 0; a < plan->naggregates; a++)
		forms = std::max(forms, forms_of(plan, &plan->exprs[plan->aggregate_expr[a]]));
	for (uint32_t k = 0; k < plan->ngroup_keys; k++)
		forms = std::max(forms, plan->group_how[k] > GJ_GROUP_FLOAT
									? FORMS_BYTES
									: forms_of(plan, &plan->exprs[plan->group_expr[k]]));
	return forms;
}

/*
 * Calls launch(forms, plan) for the kernels that know these forms, with the forms as a constant,
 * and with a plan for them: without gj_eval registers take no memory.
 */
template <typename Launch>
static GjStatus
launch_for(Forms forms, const GjFusedPlan *plan, const Launch &launch)
{
	GjFusedPlan made = *plan;

	if (forms == FORMS_CODE)
		return launch(std::integral_constant<Forms, FORMS_CODE>(), plan);
	made.nregisters = 0;
	return forms == FORMS_BYTES ? launch(std::integral_constant<Forms, FORMS_BYTES>(), &made)
								: launch(std::integral_constant<Forms, FORMS_INTEGERS>(), &made);
}

/*
 * True if nothing but the filter needs gj_eval, and steps follow: behind a list, their kernel has
 * several tuples of a thread under way.
 */
static bool
only_filter_needs_code(const GjFusedPlan *plan)
{
	return plan->filter.form == GJ_FUSED_CODE && plan->nsteps > 0 &&
		   forms_of_steps(plan, 0, plan->nsteps) != FORMS_CODE &&
		   forms_of_output(plan) != FORMS_CODE;
}

static GjStatus
select_tuples(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			  const TupleList &to, uint32_t stride)
{
	return launch_for(forms_of_stage(plan, stage), plan,
					  [&](auto forms, const GjFusedPlan *made) {
						  return launch_select<forms.value>(queue, made, input, stage, to, stride);
					  });
}

/*
 * True if there is anything to be done behind a list.  The order of tuples in lists is any, and so
 * would be that of a sum's terms, and which of the zeros a minimum is.
 */
static bool
may_cut(const GjFusedPlan *plan, const GjGroups *groups)
{
	if (plan->nsteps == 0 && groups == NULL)
		return false;
	for (uint32_t a = 0; a < plan->naggregates && groups == NULL; a++)
	{
		switch (plan->aggregate_op[a])
		{
			case GJ_AGG_SUM_F:
			case GJ_AGG_SPREAD_F:
			case GJ_AGG_MIN_F:
			case GJ_AGG_MAX_F:
				return false;
		}
	}
	return true;
}

/* Finds out how many of some rows come through each step: counts[0 .. nsteps], of *nrows. */
static GjStatus
take_sample(GjQueue *queue, const GjFusedPlan *plan, Input input, uint64_t *counts, uint64_t *nrows)
{
	const size_t nbytes = (GJ_FUSED_STEPS + 1) * sizeof(uint64_t);
	const uint32_t stride = max(input.nchunks / (SAMPLED_ROWS / input.chunk), 1u);
	Stage all = {};
	void *memory;

	all.end = plan->nsteps;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes, &memory));
	GJ_CUDA(queue, cudaMemsetAsync(memory, 0, nbytes, queue->stream));
	input.counts = (uint64_t *) memory;
	GJ_TRY(select_tuples(queue, plan, input, all, {}, stride));
	GJ_CUDA(queue, cudaMemcpyAsync(queue->pinned->fused_counts, memory, nbytes,
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	memcpy(counts, queue->pinned->fused_counts, nbytes);
	/* parts end with smaller chunks: about as many */
	*nrows = (uint64_t) gj_blocks(input.nchunks, stride) * input.chunk;
	return GJ_OK;
}

/* What was chosen for a plan the last time; false: nothing, or it is time to look again. */
static bool
recall_cuts(GjDevice *device, const GjFusedPlan *plan, uint32_t *cuts)
{
	bool known = false;

	pthread_mutex_lock(&device->lock);
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS && !known; i++)
	{
		GjFusedCuts *other = device->cuts[i];

		if (other == NULL || other->nuses == MAX_CUT_USES ||
			memcmp(&other->plan, plan, sizeof(*plan)) != 0)
			continue;
		other->nuses++;
		*cuts = other->cuts;
		known = true;
	}
	pthread_mutex_unlock(&device->lock);
	return known;
}

/*
 * Other runs of the plan, which has the addresses of its build sides, choose the same.  Rows can be
 * others by then: only what takes longer depends on it.
 */
static void
remember_cuts(GjDevice *device, const GjFusedPlan *plan, uint32_t cuts)
{
	GjFusedCuts *chosen = (GjFusedCuts *) malloc(sizeof(GjFusedCuts));
	uint32_t place;

	if (chosen == NULL)
		return;
	memcpy(&chosen->plan, plan, sizeof(*plan));
	chosen->cuts = cuts;
	chosen->nuses = 0;
	pthread_mutex_lock(&device->lock);
	place = device->next_cuts++ % GJ_KNOWN_CUTS;
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS; i++)
	{
		if (device->cuts[i] != NULL && memcmp(&device->cuts[i]->plan, plan, sizeof(*plan)) == 0)
			place = i;
	}
	free(device->cuts[place]);
	device->cuts[place] = chosen;
	pthread_mutex_unlock(&device->lock);
}

/*
 * Decides, once for a plan, after which steps tuples are written to lists: bit s of *cuts stands
 * for the filter and s steps.  Few rows are not worth it, and tell nothing about those to come.
 */
static GjStatus
choose_cuts(GjQueue *queue, const GjFusedPlan *plan, const Input &input, uint64_t nrows,
			const GjGroups *groups, uint32_t *cuts)
{
	uint64_t counts[GJ_FUSED_STEPS + 1];
	uint64_t sampled = 0;
	GjFusedPlan key;
	double before;
	GjStatus status;

	*cuts = 0;
	if (nrows < queue->device->fused_sample || !may_cut(plan, groups))
		return GJ_OK;
	*cuts = only_filter_needs_code(plan);
	/* each run has marks of its own */
	memcpy(&key, plan, sizeof(key));
	for (uint32_t s = 0; s < plan->nsteps; s++)
		key.steps[s].marks = NULL;
	if (queue->fused_plan != NULL && memcmp(queue->fused_plan, &key, sizeof(key)) == 0)
	{
		*cuts = queue->fused_cuts;
		return GJ_OK;
	}
	if (recall_cuts(queue->device, &key, cuts))
		return GJ_OK;
	status = take_sample(queue, plan, input, counts, &sampled);
	if (status == GJ_OUT_OF_MEMORY)
		return GJ_OK;
	GJ_TRY(status);
	before = (double) sampled;
	for (uint32_t s = 0; s <= plan->nsteps; s++)
	{
		if (!(*cuts >> s & 1) && ((s == plan->nsteps && groups == NULL) ||
								  (double) counts[s] > before * queue->device->fused_cut))
			continue;
		*cuts |= 1u << s;
		before = (double) counts[s];
	}
	if (queue->fused_plan == NULL)
		queue->fused_plan = (GjFusedPlan *) malloc(sizeof(key));
	if (queue->fused_plan == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(queue->fused_plan, &key, sizeof(key));
	queue->fused_cuts = *cuts;
	remember_cuts(queue->device, &key, *cuts);
	return GJ_OK;
}

/*
 * Takes the rows through all stages but the last one, *stage.  A list is read by the next
 * stage alone, so two places do for all of them.  plain: of all steps, or NULL; they are one stage
 * then, for its kernel leaves out what is not alive at a small price.
 */
static GjStatus
run_stages(GjQueue *queue, const GjFusedPlan *plan, const Plain *plain, const Input &input,
		   uint64_t nrows, uint64_t list_bytes, uint32_t cuts, Stage *stage)
{
	GjScratch place = GJ_SCRATCH_LIST;
	uint64_t taken[2] = {};

	for (uint32_t s = 0; s <= plan->nsteps; s++)
	{
		const size_t numbers = gj_align((uint64_t) input.nparts * sizeof(uint32_t));
		const size_t list = gj_align(nrows * sizeof(uint32_t));
		TupleList to = {};
		GjStatus status;
		void *memory;

		if (!(cuts >> s & 1))
			continue;
		/* without lists it takes longer */
		taken[place - GJ_SCRATCH_LIST] = (numbers + (s + 1) * list) / 4 * 5;
		if (taken[0] + taken[1] > list_bytes)
			break;
		status = gj_scratch(queue, place, numbers + (s + 1) * list, &memory);
		if (status == GJ_OUT_OF_MEMORY)
			break;
		GJ_TRY(status);
		to.n = (uint32_t *) memory;
		for (uint32_t slot = 0; slot <= s; slot++)
			to.rowid[slot] = (uint32_t *) ((uint8_t *) memory + numbers + slot * list);
		GJ_CUDA(queue, cudaMemsetAsync(memory, 0, numbers, queue->stream));
		stage->end = s;
		if (plain != NULL)
			GJ_TRY(FOR_PLAIN(*plain, launch_plain_select, queue, *plain, input, to));
		else
			GJ_TRY(select_tuples(queue, plan, input, *stage, to, 1));
		stage->from = to;
		stage->first = s;
		place = place == GJ_SCRATCH_LIST ? GJ_SCRATCH_LIST_2 : GJ_SCRATCH_LIST;
	}
	stage->end = plan->nsteps;
	return GJ_OK;
}

/*
 * True if lists are so large that a pool takes longer to map others than their end is to be waited
 * for: what no kernel uses any more is kept.
 */
static bool
has_large_lists(const GjQueue *queue)
{
	return queue->scratch[GJ_SCRATCH_LIST].nbytes + queue->scratch[GJ_SCRATCH_LIST_2].nbytes >=
		   LARGE_LISTS;
}

/* Lists may be as large as the rows: others of the query need the memory more. */
static void
free_lists(GjQueue *queue)
{
	for (uint32_t s = GJ_SCRATCH_LIST; s <= GJ_SCRATCH_LIST_2; s++)
	{
		gj_free(queue, queue->scratch[s].memory, queue->scratch[s].nbytes);
		queue->scratch[s] = {};
	}
}

/* Launches what takes the rows of a call through all of the plan. */
static GjStatus
launch_all(GjQueue *queue, const GjFusedPlan *plan, const Plain *plain, const Input &input,
		   uint64_t nrows, uint64_t list_bytes, const GjGroups *groups, const Missed &missed)
{
	const bool only_marks = groups == NULL && plan->naggregates == 0;
	Stage stage = {};
	uint32_t cuts = 0;
	void *partial;

	/* before lists take the memory */
	if (groups == NULL && plan->naggregates > 0)
		GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A,
						  (size_t) plan->naggregates * queue->device->nprocessors *
							  MAX_BLOCKS_PER_SM * sizeof(GjAggState),
						  &partial));
	if (list_bytes > 0)
		GJ_TRY(choose_cuts(queue, plan, input, nrows, groups, &cuts));
	if (plain != NULL && cuts != 0)
		cuts = 1u << plan->nsteps;
	GJ_TRY(run_stages(queue, plan, plain, input, nrows, list_bytes, cuts, &stage));
	if (only_marks)
		return select_tuples(queue, plan, input, stage, {}, 1);
	return launch_for(
		std::max(forms_of_stage(plan, stage), forms_of_output(plan)), plan,
		[&](auto forms, const GjFusedPlan *made)
		{ return launch_output<forms.value>(queue, made, input, stage, groups, missed); });
}

/* ---- payloads */

/* True if an expression or a term reads a column of slot s that is not `column`. */
static bool
reads_other(const GjFusedExpr *e, uint32_t s, int16_t column)
{
	return (e->a >= 0 && e->slot_a == s && (e->a != column || e->form == GJ_FUSED_BYTES)) ||
		   (e->b >= 0 && e->slot_b == s && (e->b != column || e->form == GJ_FUSED_BYTES));
}

/* True if nothing of a step's rows is read but their payload. */
static bool
payload_suffices(const GjFusedPlan *plan, uint32_t s)
{
	const GjFusedStep *step = &plan->steps[s];
	bool other = !step->table.has_payload || step->marks != NULL || plan->nregisters > 0 ||
				 (step->nkeys != 1 && step->table.kind != GJ_TABLE_WIDE);

	for (uint32_t k = 0; k < plan->nexprs; k++)
		other |= plan->exprs[k].form != GJ_FUSED_NONE && plan->exprs[k].form != GJ_FUSED_PRODUCTS &&
				 plan->exprs[k].form != GJ_FUSED_CASE &&
				 reads_other(&plan->exprs[k], s + 1, step->payload);
	for (uint32_t k = 0; k < plan->nterms; k++)
		other |= reads_other(&plan->terms[k], s + 1, step->payload);
	for (uint32_t k = 0; k < plan->nfactors; k++)
		other |= plan->factors[k].column >= 0 && plan->factors[k].slot == s + 1 &&
				 plan->factors[k].column != step->payload;
	return !other;
}

/*
 * Lets steps find payloads where these suffice: the number of a "row" is the payload then, of which
 * the column makes the value again.  columns: the program's, which are the caller's own.  True if
 * there are any.
 */
static bool
find_payloads(GjFusedPlan *plan, GjColumn *columns)
{
	bool some = false;

	for (uint32_t s = 0; s < plan->nsteps; s++)
	{
		GjTableRef *table = &plan->steps[s].table;
		GjColumn *column = &columns[plan->steps[s].payload];

		if (table->kind == GJ_TABLE_NONE || !payload_suffices(plan, s))
			continue;
		some = table->finds_payload = true;
		if (table->kind == GJ_TABLE_DIRECT)
			table->place = table->payloads;
		column->packed = GJ_PACKED_ROW;
		column->narrow = true;
		column->base = INT32_MIN;
		column->factor = 1;
	}
	return some;
}

/* launch_all for aggregates, by kernels of no special kind. */
static GjStatus
launch_with_payloads(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
					 const GjFusedPart *parts, Input input, uint64_t nrows, uint64_t list_bytes)
{
	const size_t nbytes = plan->ncolumns * sizeof(GjColumn);
	GjFusedPlan with = *plan;
	GjColumn *own = (GjColumn *) malloc(nbytes + 1);
	GjStatus status = GJ_OK;

	if (own == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(own, columns, nbytes);
	if (find_payloads(&with, own))
		status = upload_parts(queue, &with, own, parts, input.nparts, &input);
	free(own);
	GJ_TRY(status);
	return launch_all(queue, &with, NULL, input, nrows, list_bytes, NULL, {});
}

static GjStatus
gj_fused(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		 uint32_t nparts, uint64_t list_bytes, const GjGroups *groups, GjFusedMissed *missed)
{
	Input input = {};
	Missed lists = {};
	uint64_t nrows = 0;
	bool done = false;
	GjStatus status = GJ_OK;
	Plain plain;

	static_assert(sizeof(GjCode) + sizeof(GjFusedPlan) + sizeof(Input) + sizeof(GjGroups) +
						  sizeof(Missed) + sizeof(Stage) + sizeof(LocalTable) <=
					  32764,
				  "parameters of a kernel");
	GJ_TRY(gj_enter(queue));
	GJ_TRY(upload_parts(queue, plan, columns, parts, nparts, &input));
	input.counts = queue->fused_counts;
	input.results = queue->results;
	for (uint32_t p = 0; p < nparts; p++)
		nrows += parts[p].nrows;
	if (groups != NULL)
	{
		memcpy(lists.rowid, missed->rowid, sizeof(lists.rowid));
		memcpy(lists.data, missed->data, sizeof(lists.data));
		memcpy(lists.nulls, missed->nulls, sizeof(lists.nulls));
		memcpy(lists.heap, missed->heap, sizeof(lists.heap));
		lists.together = missed->together;
	}
	if (input.nchunks > 0 && groups == NULL && gj_make_plain(plan, columns, parts, nparts, &plain))
		return FOR_PLAIN(plain, launch_plain, queue, plan, plain, input);
	if (input.nchunks > 0 && groups != NULL)
		GJ_TRY(gj_fused_grouped(queue, plan, parts, input, *groups, lists, &done));
	if (input.nchunks > 0 && !done)
	{
		const bool is_plain = gj_make_plain_rows(plan, columns, parts, nparts, &plain);

		status = groups == NULL && !is_plain
					 ? launch_with_payloads(queue, plan, columns, parts, input, nrows, list_bytes)
					 : launch_all(queue, plan, is_plain ? &plain : NULL, input, nrows, list_bytes,
								  groups, lists);
	}
	if (status == GJ_OK && groups != NULL)
		status = read_missed(queue, input, parts, missed);
	else if (status == GJ_OK && has_large_lists(queue))
		status = gj_wait_all(queue);
	free_lists(queue);
	return status;
}

static GjStatus
gj_fused_counts(GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1])
{
	GJ_TRY(gj_wait_all(queue));
	memcpy(counts, queue->pinned->fused_counts, (GJ_FUSED_STEPS + 1) * sizeof(uint64_t));
	return GJ_OK;
}

GjStatus
gj_fused_upload(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
				const GjFusedPart *parts, uint32_t nparts, Input *input)
{
	return upload_parts(queue, plan, columns, parts, nparts, input);
}

const GjFusedOps gj_cuda_pass = {
	.fused = gj_fused,
	.fused_counts = gj_fused_counts,
};
