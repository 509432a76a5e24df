/*
 * table_build.c
 *	  Makes the table of a build side, hashed or sorted, and what makes probing it faster.
 *
 * Memory that devices take in builds is taken from the lease beforehand, as an estimate that is
 * corrected afterwards.
 */
#include "state.h"

/* Bytes a row that a build may need at its height, keys not included. */
#define GJ_BUILD_BYTES		64
/* How many more where a hash table has so few rows that it is a sparse one (cuda/join_hash.cu). */
#define GJ_SPARSE_BYTES		32
#define GJ_SPARSE_ROWS		(128u * 1024)
/* Bytes a row that a direct table may take, less than a hash table does; and how much more. */
#define GJ_DIRECT_BYTES		24
#define GJ_DIRECT_SPARE		(UINT64_C(4) << 20)
/* Part of the memory that is left which that may be. */
#define GJ_DIRECT_SHARE		64
/* Bytes a row that wide slots take, and those of a sparse table. */
#define GJ_WIDE_BYTES		64
#define GJ_SPARSE_WIDE_BYTES 128
/* A filter that leaves one row in more than so many has left few. */
#define GJ_FEW_LEFT			4
/*
 * A pass that puts something to a table takes as long as that saves for so many probe rows a row.
 */
#define GJ_EXTRA_PASS		2
/* Part of the memory that nobody uses which that may take. */
#define GJ_EXTRA_SHARE		8

/* Bytes that a table holds. */
static uint64_t
table_size(const GjHashTable *table)
{
	uint64_t	row_bytes = (uint64_t) table->keys.nrows * sizeof(uint32_t);
	uint64_t	n = (table->slots ? table->nslots * sizeof(GjHashSlot) : 0) +
		(table->wide ? table->nslots * sizeof(GjWideSlot) : 0) +
		(table->place ? table->nslots * sizeof(uint32_t) : 0) +
		(table->payloads ? table->nslots * sizeof(uint32_t) : 0) +
		(table->key_filter ? table->nkey_filter * sizeof(uint32_t) : 0) +
		(table->bucket ? (table->nslots + 1) * sizeof(uint32_t) : 0) +
		(table->rows ? row_bytes : 0) + (table->key_row ? row_bytes : 0);

	for (uint32_t k = 0; k < table->keys.nkeys; k++)
		if (table->keys.value[k])
			n += (uint64_t) table->keys.nrows * sizeof(int64_t);
	if (table->keys.null)
		n += table->keys.nrows;
	return n;
}

/* The build has taken over the key arrays: they are counted with the table now. */
static void
hand_over_keys(GjRun *run, GjSideBuild *build)
{
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
	{
		gj_lease_give(run->work.lease, build->value[k].nbytes);
		build->value[k] = (GjBuffer) {NULL, 0};
	}
	gj_lease_give(run->work.lease, build->null.nbytes);
	build->null = (GjBuffer) {NULL, 0};
}

/* What a build of n rows may need at its height, keys not included. */
static uint64_t
build_bytes(const GjRunStep *rs, uint32_t n)
{
	uint64_t	nbytes = (uint64_t) n * GJ_BUILD_BYTES + 4096;

	if (rs->join->hashes && n <= GJ_SPARSE_ROWS)
		nbytes += (uint64_t) n * GJ_SPARSE_BYTES;
	return nbytes;
}

/* What a wide table of n rows may take beside that. */
static uint64_t
wide_bytes(const GjRun *run, const GjRunStep *rs, uint32_t n)
{
	if (!rs->join->hashes || rs->step->nkeys != 2 || !run->work.ops->tables->widens)
		return 0;
	return (uint64_t) n * (n <= GJ_SPARSE_ROWS ? GJ_SPARSE_WIDE_BYTES : GJ_WIDE_BYTES) + 4096;
}

/* Takes what a build needs, and what a direct or wide table may take more if there is plenty. */
static bool
take_estimate(GjLease *lease, uint64_t needed, uint64_t wide, uint64_t *spare, uint64_t *taken)
{
	*spare = gj_lease_left(lease) / GJ_DIRECT_SHARE;
	if (*spare > GJ_DIRECT_SPARE)
		*spare = GJ_DIRECT_SPARE;
	if (wide > 0)
		*spare = wide;
	*taken = needed + *spare;
	if (gj_lease_take(lease, *taken))
		return true;
	*spare = 0;
	*taken = needed;
	return gj_lease_take(lease, *taken);
}

/*
 * Bytes that a direct or wide table may take.  Where rows come out by themselves, what notes matches
 * has an entry for each row of the side: a direct one is not worth it if the filter has left few.
 */
static uint64_t
most_bytes(const GjRun *run, const GjSideBuild *build, const GjRunStep *rs, uint64_t spare)
{
	if (rs->step->nkeys != 1)
		return spare;
	return gj_step_makes_rows(rs->step) &&
		build->nrows < run->relation[rs->step->source].nrows / GJ_FEW_LEFT ? 0 :
		(uint64_t) build->nrows * GJ_DIRECT_BYTES + spare;
}

GjStatus
gj_table_build(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	GjWork	   *work = &run->work;
	bool	  (*stop) (void *) = run->host->stop;
	void	   *arg = run->host->arg;
	uint64_t	taken;
	uint64_t	spare;
	GjKeys		keys;
	GjStatus	status;

	GJ_TRY(gj_build_keys(run, build, rs, &keys));
	if (!take_estimate(work->lease, build_bytes(rs, build->nrows),
					   wide_bytes(run, rs, build->nrows), &spare, &taken))
		return GJ_OUT_OF_MEMORY;
	if (rs->join->hashes)
		status = work->ops->tables->hash_build(work->queue, &keys, build->rowid.memory,
									   most_bytes(run, build, rs, spare), stop, arg, &rs->table);
	else
		status = work->ops->tables->sort_build(work->queue, &keys, build->rowid.memory, stop, arg,
									   &rs->table);
	gj_lease_give(work->lease, taken);
	if (status != GJ_OK)
		return status;
	rs->built = true;
	rs->nmatchable = rs->table.nrows;
	run->stats.step[rs - run->steps].partitioned += rs->table.partitioned;
	run->stats.step[rs - run->steps].direct += gj_table_is_direct(&rs->table);
	hand_over_keys(run, build);
	if (!gj_lease_take(work->lease, table_size(&rs->table)))
		return GJ_OUT_OF_MEMORY;
	rs->table_bytes = table_size(&rs->table);
	return GJ_OK;
}

/* Room for a column of nbytes, or its null flags, if there is one; nothing resident makes room. */
static GjStatus
reserve_column(GjWork *work, const GjBuffer *column, uint64_t nbytes, GjBuffer *ordered)
{
	if (!column->memory)
		return GJ_OK;
	if (nbytes > gj_lease_free(work->lease))
		return GJ_OUT_OF_MEMORY;
	return gj_buffer_grow(work, ordered, 0, nbytes, 0);
}

/* Room for columns of nrows rows, data and null flags in turn, like those of a relation. */
static GjStatus
reserve_columns(GjWork *work, const GjRelation *relation, GjBuffer *columns)
{
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		GJ_TRY(reserve_column(work, &relation->columns[c].data,
							  relation->nrows * relation->types[c].width, &columns[2 * c]));
		GJ_TRY(reserve_column(work, &relation->columns[c].nulls, relation->nrows,
							  &columns[2 * c + 1]));
	}
	return GJ_OK;
}

/* Puts one column, or its null flags, into the order of keys; what it was is left in *ordered. */
static GjStatus
order_column(GjWork *work, const GjHashTable *table, GjBuffer *column, GjBuffer *ordered,
			 uint32_t width)
{
	GjBuffer	was = *column;

	if (!was.memory)
		return GJ_OK;
	GJ_TRY(work->ops->tables->order_by_place(work->queue, table, ordered->memory, was.memory,
											 width));
	*column = *ordered;
	*ordered = was;
	return GJ_OK;
}

/*
 * Rows of a side in the order of its keys need no table, if every key between the least and the
 * greatest has a row: a probe then reads a value where it would have read where it is.  That is
 * worth a pass over the side if there are as many probe rows.  Without memory for it all stays as
 * it is.  Where the rows have flags, those of several devices are put together by row ids.
 */
static GjStatus
order_side(GjRun *run, uint32_t source, GjRunStep *rs)
{
	GjRelation *relation = &run->relation[source];
	GjHashTable *table = &rs->table;
	GjWork	   *work = &run->work;
	GjBuffer	columns[2 * GJ_MAX_COLUMNS] = {{NULL, 0}};
	bool		reserved;
	GjStatus	status;

	if (table->kind != GJ_TABLE_DIRECT || table->nslots != table->nrows ||
		table->nrows != relation->nrows || relation->borrowed || gj_step_makes_rows(rs->step) ||
			run->sources[0].nrows_hint < relation->nrows)
		return GJ_OK;
	status = reserve_columns(work, relation, columns);
	reserved = status == GJ_OK;
	for (uint32_t c = 0; c < relation->ncolumns && status == GJ_OK; c++)
	{
		GjRelationColumn *column = &relation->columns[c];

		status = order_column(work, table, &column->data, &columns[2 * c],
							  relation->types[c].width);
		if (status == GJ_OK)
			status = order_column(work, table, &column->nulls, &columns[2 * c + 1], 1);
	}
	for (uint32_t i = 0; i < 2 * relation->ncolumns; i++)
		gj_buffer_free(work, &columns[i]);
	/* later than that, some columns may have the new order */
	if (status == GJ_OUT_OF_MEMORY && !reserved)
		return GJ_OK;
	GJ_TRY(status);
	work->ops->memory->free(work->queue, table->place, table->nslots * sizeof(uint32_t));
	table->place = NULL;
	table->kind = GJ_TABLE_DENSE;
	gj_lease_give(work->lease, rs->table_bytes - table_size(table));
	rs->table_bytes = table_size(table);
	gj_relation_columns(relation, 0, run->columns + run->sources[source].first_column);
	return GJ_OK;
}

/* True if an expression is a half of the key of a column's texts; *load: the column's instruction. */
static bool
is_half_key(const GjRun *run, uint32_t e, const GjInstr **load)
{
	*load = gj_program_array(run->program, GjInstr, instrs) + run->exprs[e].first;
	return run->exprs[e].ninstrs == 2 && (*load)[0].op == GJ_OP_LOAD_T &&
		(*load)[1].op == GJ_OP_KEY_T;
}

/* True if two instructions load the same text. */
static bool
is_same_text(const GjInstr *a, const GjInstr *b)
{
	return a->op == GJ_OP_LOAD_T && b->op == GJ_OP_LOAD_T && a->arg == b->arg && a->n == b->n;
}

/*
 * What loads the build side's text, if a built step's residual condition says no more than its
 * keys: that texts are equal, none of which is too long for its key.  Else NULL.
 */
static const GjInstr *
text_of_residual(const GjRun *run, const GjRunStep *rs)
{
	const GjInstr *instr;
	const GjInstr *probe;
	const GjInstr *build;

	if (rs->residual < 0 || run->exprs[rs->residual].ninstrs != 3 ||
		rs->table.kind != GJ_TABLE_WIDE || !rs->table.positive)
		return NULL;
	instr = gj_program_array(run->program, GjInstr, instrs) + run->exprs[rs->residual].first;
	if (instr[2].op != GJ_OP_EQ_T || !is_half_key(run, rs->step->probe_keys, &probe) ||
		!is_half_key(run, rs->step->build_keys, &build))
		return NULL;
	return (is_same_text(&instr[0], probe) && is_same_text(&instr[1], build)) ||
		(is_same_text(&instr[0], build) && is_same_text(&instr[1], probe)) ? build : NULL;
}

bool
gj_residual_holds(const GjRun *run, const GjRunStep *rs)
{
	return text_of_residual(run, rs) != NULL;
}

/*
 * The only column of a source that is read later, but by a residual condition that holds; ncolumns:
 * there are several, or none.
 */
static uint32_t
only_late_column(const GjRun *run, uint32_t source, const GjRunStep *rs)
{
	const GjInstr *text = text_of_residual(run, rs);
	const uint8_t *late = run->late + run->sources[source].first_column;
	uint32_t	ncolumns = run->sources[source].ncolumns;
	uint32_t	only = ncolumns;

	for (uint32_t c = 0; c < ncolumns; c++)
	{
		if (!late[c] || (text && text->arg == run->sources[source].first_column + c))
			continue;
		if (only < ncolumns)
			return ncolumns;
		only = c;
	}
	return only;
}

/*
 * Takes memory for payloads of a side, or a filter, if these are worth the pass that puts them
 * there, and there is plenty.  Only the fused operator reads them, for sums of this run or of later
 * ones that find the side.
 */
static bool
take_extra(GjRun *run, uint32_t source, uint64_t nbytes)
{
	GjLease    *lease = run->work.lease;
	uint64_t	nrows = run->relation[source].nrows;
	uint64_t	nprobe_rows = run->sources[0].nrows_hint;
	bool		wanted = run->intake_ops->keeps_side(run, source) ? nprobe_rows >= nrows :
		run->sink->has_states && nprobe_rows / GJ_EXTRA_PASS >= nrows;

	return wanted && nbytes <= gj_lease_free(lease) / GJ_EXTRA_SHARE &&
		gj_lease_take(lease, nbytes);
}

/* The table has what memory was taken for, or all stays as it is without it. */
static GjStatus
put_extra(GjRun *run, GjRunStep *rs, uint64_t nbytes, bool there, GjStatus status)
{
	if (there)
		rs->table_bytes += nbytes;
	else
		gj_lease_give(run->work.lease, nbytes);
	return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
}

/* Puts the side's values to its keys in the table, if these are unique and the values such. */
static GjStatus
put_payload(GjRun *run, uint32_t source, GjRunStep *rs)
{
	GjWork	   *work = &run->work;
	GjHashTable *table = &rs->table;
	uint32_t	c = only_late_column(run, source, rs);
	const GjColumn *column = &run->columns[run->sources[source].first_column + c];
	uint64_t	nbytes = table->kind == GJ_TABLE_DIRECT ? table->nslots * sizeof(uint32_t) : 0;
	GjStatus	status;

	if (!work->ops->tables->reads_payloads || !gj_table_has_places(table) ||
		gj_step_makes_rows(rs->step) ||
		table->max_count != 1 ||
		(table->keys.nkeys != 1 && table->kind != GJ_TABLE_WIDE) ||
		c == run->sources[source].ncolumns || column->nulls ||
		(column->kind != GJ_INT4 && column->kind != GJ_INT8) || !take_extra(run, source, nbytes))
		return GJ_OK;
	table->payload = c;
	status = work->ops->tables->hash_payload(work->queue, table, column,
									 (uint32_t) run->relation[source].nrows, &table->has_payload);
	return put_extra(run, rs, nbytes, table->payloads != NULL, status);
}

/*
 * True if the fused operator could ask a filter of the step: an integer key, and tuples that have
 * no match may go.
 */
static bool
asks_filter(const GjRun *run, const GjRunStep *rs)
{
	uint8_t		kind = run->exprs[rs->step->build_keys].kind;

	return rs->table.keys.nkeys == 1 && (kind == GJ_INT2 || kind == GJ_INT4 || kind == GJ_INT8) &&
		(rs->step->join_type == GJ_JOIN_INNER || rs->step->join_type == GJ_JOIN_SEMI ||
		 rs->step->join_type == GJ_JOIN_ANTI);
}

/* Gives the table a filter, if it is of use. */
static GjStatus
put_filter(GjRun *run, uint32_t source, GjRunStep *rs)
{
	GjWork	   *work = &run->work;
	GjHashTable *table = &rs->table;
	uint64_t	nbytes = gj_filter_words(table) * sizeof(uint32_t);
	GjStatus	status;

	if (!work->ops->tables->asks_filters || !gj_table_has_places(table) || !asks_filter(run, rs) ||
		!work->ops->tables->filter_helps(work->queue, table) || !take_extra(run, source, nbytes))
		return GJ_OK;
	status = work->ops->tables->hash_filter(work->queue, table);
	return put_extra(run, rs, nbytes, table->has_filter, status);
}

GjStatus
gj_table_improve(GjRun *run, uint32_t source, GjRunStep *rs)
{
	GJ_TRY(order_side(run, source, rs));
	GJ_TRY(put_payload(run, source, rs));
	return put_filter(run, source, rs);
}
