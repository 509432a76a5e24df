/*
 * cached.c
 *	  Cached build sides: columns and hash table that stay resident.  Also what cached
 *	  probe rows have in common with them.
 *
 * When a build source has ended, it is known which fragments and pages it consists of.  If all of
 * its rows are from fragments, the run looks for a cached side of exactly these, with the same
 * filter and keys.  If there is one, the run uses it: nothing is copied, nothing is built.
 * Fragments never change, and the backend has found their pages unchanged, so a build would give
 * the same.
 *
 * Otherwise the rows are appended to the relation, and the side that is built of them is cached.
 * A cold run can cache its side too, if its chunks have filled fragments whose pages were all
 * all-visible: the next run will find these fragments and pages.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

uint64_t
gj_program_identity(const GjProgram *program)
{
	return gj_hash_bytes(0, program, program->nbytes);
}

/* ---- what is asked of a side, as bytes */

typedef struct GjKeyWriter
{
	uint8_t    *bytes;			/* NULL: out of memory, or nothing written yet */
	uint32_t	n;
	uint32_t	size;
	bool		failed;
} GjKeyWriter;

static void
write_bytes(GjKeyWriter *key, const void *bytes, size_t n)
{
	if (key->n + n > key->size)
	{
		uint32_t	size = key->size * 2 > key->n + n ? key->size * 2 : (uint32_t) (key->n + n);
		uint8_t    *grown = realloc(key->bytes, size);

		if (!grown)
		{
			key->failed = true;
			return;
		}
		key->bytes = grown;
		key->size = size;
	}
	memcpy(key->bytes + key->n, bytes, n);
	key->n += (uint32_t) n;
}

/* An expression on one source, its columns counted from the source's first. */
static void
write_expr(const GjRun *run, uint32_t first_column, int32_t e, GjKeyWriter *key)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	GjExpr		expr;

	write_bytes(key, &e, e < 0 ? sizeof(e) : 0);
	if (e < 0)
		return;
	expr = run->exprs[e];
	expr.first = 0;
	write_bytes(key, &expr, sizeof(expr));
	for (uint32_t i = 0; i < expr.ninstrs; i++)
	{
		GjInstr		instr = instrs[run->exprs[e].first + i];

		if (gj_op_loads(instr.op))
			instr.arg -= first_column;
		write_bytes(key, &instr, sizeof(instr));
	}
}

/*
 * Columns, which of them are read later, filter, the part of an exchange, the keys of the step,
 * whether its rows must keep their ids (run/table_build.c), and all constants of the program.
 */
static void
write_key(const GjRun *run, uint32_t s, const GjStep *step, GjKeyWriter *key)
{
	const GjSource *source = &run->sources[s];
	const GjRunResident *resident = &run->intake->resident[s];
	/* of probe rows nothing is built */
	const uint8_t how[] = {s > 0, s > 0 ? step->algorithm : 0, step->nkeys,
	s > 0 && gj_step_makes_rows(step)};
	uint32_t	first_key = s > 0 ? step->build_keys : step->probe_keys;
	uint32_t	part[2];

	for (uint32_t c = 0; c < source->ncolumns; c++)
	{
		const GjColumnType *type = &run->types[source->first_column + c];
		const uint8_t what[] = {type->kind, type->width, type->nullable,
		run->late[source->first_column + c]};

		write_bytes(key, what, sizeof(what));
	}
	for (uint32_t t = 0; t < resident->ntables; t++)
	{
		const GjWanted *wanted = &resident->tables[t];

		write_bytes(key, &wanted->relation, sizeof(wanted->relation));
		for (uint32_t c = 0; c < wanted->ncolumns; c++)
			write_bytes(key, &wanted->keys[c], sizeof(wanted->keys[c]));
	}
	write_expr(run, source->first_column, gj_run_source_filter(run, s), key);
	gj_run_exchanged_part(run, s, part);
	write_bytes(key, part, sizeof(part));
	write_bytes(key, how, sizeof(how));
	for (uint32_t k = 0; k < step->nkeys; k++)
		write_expr(run, source->first_column, (int32_t) (first_key + k), key);
	write_bytes(key, gj_program_array(run->program, int64_t, constants),
				run->program->nconstants * sizeof(int64_t));
}

/* ---- what a side is made of */

static int
by_number(const void *a, const void *b)
{
	const GjSideFragment *x = a;
	const GjSideFragment *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Those of one device behind those of another. */
static int
by_device(const void *a, const void *b)
{
	uint64_t	x = ((const GjSideFragment *) a)->id >> GJ_FRAGMENT_DEVICE_SHIFT;
	uint64_t	y = ((const GjSideFragment *) b)->id >> GJ_FRAGMENT_DEVICE_SHIFT;

	return x != y ? (x < y ? -1 : 1) : by_number(a, b);
}

/* Fragments of a table are used one after the other: there may be nothing to do. */
static void
sort_fragments(GjSideFragment *list, uint32_t n, int (*compare) (const void *, const void *))
{
	uint32_t	i = 1;

	while (i < n && compare(&list[i - 1], &list[i]) < 0)
		i++;
	if (i < n)
		qsort(list, n, sizeof(GjSideFragment), compare);
}

GjSideFragment *
gj_side_list_uses(const GjPinned *uses, uint32_t n, GjSideFragment *at, uint64_t **bits)
{
	for (uint32_t i = 0; i < n; i++, at++)
	{
		const GjFragment *fragment = uses[i].fragment;

		*at = (GjSideFragment) {
			.relation = fragment->relation,.number = fragment->number,.table = uses[i].table,
			.id = fragment->id,.pages = gj_copy_pages(uses[i].pages, bits)
		};
	}
	return at;
}

/* Those of which not all pages are used. */
static uint32_t
count_partial(const GjPinned *uses, uint32_t n)
{
	uint32_t	npartial = 0;

	for (uint32_t i = 0; i < n; i++)
		npartial += uses[i].pages != NULL;
	return npartial;
}

/*
 * Fragments and pages of a source, all runs' together; NULL: not all rows are from fragments,
 * or no memory.
 */
static GjSideFragment *
list_fragments(GjRun *const *runs, uint32_t nruns, uint32_t source, uint32_t *n)
{
	GjSideFragment *list;
	GjSideFragment *at;
	uint64_t   *bits;
	uint32_t	npartial = 0;

	*n = 0;
	for (uint32_t r = 0; r < nruns; r++)
	{
		const GjRunResident *resident = &runs[r]->intake->resident[source];

		if (resident->nmade_rows != resident->nchunk_rows)
			return NULL;
		*n += resident->nuses + resident->nshared + resident->nmade;
		npartial += count_partial(resident->uses, resident->nuses) +
			count_partial(resident->shared, resident->nshared);
	}
	list = *n > 0 ? malloc(*n * sizeof(GjSideFragment) +
						   npartial * GJ_PAGES_BYTES) : NULL;
	if (!list)
		return NULL;
	at = list;
	bits = (uint64_t *) (list + *n);
	for (uint32_t r = 0; r < nruns; r++)
	{
		const GjRunResident *resident = &runs[r]->intake->resident[source];

		at = gj_side_list_uses(resident->uses, resident->nuses, at, &bits);
		at = gj_side_list_uses(resident->shared, resident->nshared, at, &bits);
		for (uint32_t i = 0; i < resident->nmade; i++)
			*at++ = resident->made[i];
	}
	/* several runs have fragments of their own devices each; one run may have those of all */
	sort_fragments(list, *n, nruns > 1 ? by_device : by_number);
	return list;
}

/*
 * The step by whose keys rows of a source are built, or (the probe source) exchanged; NULL: what is
 * made of them cannot be kept.
 */
static const GjStep *
kept_by(const GjRun *run, uint32_t source)
{
	const GjStep *step;

	if (source == 0)
		return gj_exchanged_by(run);
	step = gj_program_step_of(run->program, source);
	if (step->algorithm != GJ_JOIN_HASH)
		return NULL;
	/* a side does not know which rows were filtered: unmatched ones that come out have to */
	return !gj_step_makes_rows(step) || gj_step_wants_matched(step) ||
		run->sources[source].filter < 0 ? step : NULL;
}

/*
 * A side that says what it is to be made of, and nothing else; NULL: it cannot be kept.  runs:
 * all that have rows of it.
 */
static GjSide *
describe_side(const GjRun *run, uint32_t source, GjRun *const *runs, uint32_t nruns)
{
	const GjStep *step = kept_by(run, source);
	GjKeyWriter key = {NULL};
	GjSide	   *side;

	if (!run->intake->resident[source].store || !step)
		return NULL;
	side = calloc(1, sizeof(GjSide));
	if (!side)
		return NULL;
	side->fragments = list_fragments(runs, nruns, source, &side->nfragments);
	write_key(run, source, step, &key);
	side->program = gj_run_identity(run);
	side->source = source;
	side->key = key.bytes;
	side->nkey = key.n;
	if (side->fragments && !key.failed)
		return side;
	gj_side_discard(side);
	return NULL;
}

/* ---- finding */

uint64_t
gj_count_rows(const GjPinned *uses, uint32_t n)
{
	uint64_t	nrows = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		const GjFragment *fragment = uses[i].fragment;

		if (uses[i].excluded)
			continue;
		if (!uses[i].pages)
		{
			nrows += fragment->nrows;
			continue;
		}
		for (uint32_t page = 0; page < fragment->npages; page++)
			if (gj_page_is_set(uses[i].pages, page))
				nrows += fragment->pages->row_count[page];
	}
	return nrows;
}

/*
 * Appends all uses to the relation.  Where memory is short, fragments that were appended
 * are given back, so that they can make room for those that follow.
 */
static GjStatus
append_uses(GjRun *run, uint32_t source)
{
	GjRunResident *resident = &run->intake->resident[source];
	GjRelation *relation = &run->relation[source];
	uint32_t	done = 0;

	if (relation->nrows == 0 && resident->nuses + resident->nshared > 0)
		relation->hint = gj_count_rows(resident->uses, resident->nuses) +
			gj_count_rows(resident->shared, resident->nshared);
	while (done < resident->nuses)
	{
		uint64_t	nrows = relation->nrows;
		uint64_t	heap_used = relation->heap_used;
		uint64_t	rows_in = run->stats.source[source].rows_in;
		GjStatus	status;

		GJ_STOP_CHECK(run);
		status = gj_run_append_use(run, source, &resident->uses[done]);
		if (status == GJ_OK)
		{
			done++;
			continue;
		}
		if (status != GJ_OUT_OF_MEMORY || done == 0)
			return status;
		GJ_TRY(run->work.ops->queues->sync(run->work.queue));
		gj_run_drop_uses(resident, done);
		done = 0;
		/* what was appended of this one is appended again */
		relation->nrows = nrows;
		relation->heap_used = heap_used;
		run->stats.source[source].rows_in = rows_in;
	}
	return GJ_OK;
}

GjStatus
gj_side_resolve(GjRun *run, uint32_t source)
{
	GjRunResident *resident = &run->intake->resident[source];
	GjRunSide  *side = &run->intake->side[source];

	/* what goes for all devices is known already: gj_sides_resolve */
	if (gj_run_exchanges(run, source))
		return GJ_OK;
	side->store = resident->store;
	side->made = describe_side(run, source, &run, 1);
	if (side->made && resident->nmade == 0)
		side->kept = gj_side_find(side->store, side->made);
	if (side->kept)
	{
		gj_side_use(side->store, side->kept, side->made);
		return GJ_OK;
	}
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	GJ_TRY(append_uses(run, source));
	return resident->nshared > 0 ? gj_run_append_shared(run, source) : GJ_OK;
}

bool
gj_sides_resolve(GjRun **runs, uint32_t nruns, uint32_t source)
{
	bool		found = true;

	/* chunks may have been handed over already */
	for (uint32_t r = 0; r < nruns; r++)
		found &= runs[r]->intake->resident[source].nchunk_rows == 0;
	for (uint32_t r = 0; r < nruns; r++)
	{
		GjRun	   *run = runs[r];
		GjRunSide  *side = &run->intake->side[source];

		side->store = run->intake->resident[source].store;
		side->made = describe_side(run, source, runs, nruns);
		if (side->made && found)
			side->kept = gj_side_find(side->store, side->made);
		found &= side->kept != NULL;
	}
	/* the rows of a part that has to be built come from all runs: one side alone is of no use */
	for (uint32_t r = 0; r < nruns; r++)
	{
		GjRunSide  *side = &runs[r]->intake->side[source];

		if (found)
		{
			gj_side_use(side->store, side->kept, side->made);
			continue;
		}
		if (side->kept)
			gj_side_unpin(side->store, side->kept);
		side->kept = NULL;
	}
	return found;
}

GjStatus
gj_run_send_uses(GjRun *run, uint32_t source)
{
	const GjRunResident *resident = &run->intake->resident[source];

	if (run->intake->side[source].kept)
		return GJ_OK;
	for (uint32_t i = 0; i < resident->nuses; i++)
	{
		GJ_STOP_CHECK(run);
		run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
		GJ_TRY(gj_run_append_use(run, source, &resident->uses[i]));
	}
	return GJ_OK;
}

/* ---- using */

/* The run reads the side's memory from here on. */
static void
borrow(GjRun *run, GjRunStep *rs, const GjSide *side)
{
	uint32_t	source = rs->step->source;
	GjRelation *relation = &run->relation[source];

	relation->borrowed = true;
	relation->nrows = side->nloaded;
	memcpy(relation->columns, side->columns, side->ncolumns * sizeof(GjRelationColumn));
	relation->heap = side->heap;
	relation->heap_used = side->heap_used;
	gj_relation_columns(relation, 0, run->columns + run->sources[source].first_column);
	rs->table = side->table;
	rs->built = false;
	rs->table_bytes = 0;
}

bool
gj_side_take(GjRun *run, GjRunStep *rs)
{
	uint32_t	source = rs->step->source;
	const GjSide *side = run->intake->side[source].kept;

	if (!side)
		return false;
	borrow(run, rs, side);
	run->stats.source[source].rows_in += side->nread;
	run->stats.source[source].rows_out = side->nrows;
	run->stats.step[rs - run->steps].direct += gj_table_is_direct(&rs->table);
	return true;
}

bool
gj_side_describe(GjRun *run, uint32_t source, const GjRelation *relation, uint64_t nrows)
{
	GjSide	   *side = run->intake->side[source].made;

	side->columns = malloc((relation->ncolumns + 1) * sizeof(GjRelationColumn));
	if (!side->columns)
		return false;
	memcpy(side->columns, relation->columns, relation->ncolumns * sizeof(GjRelationColumn));
	side->ncolumns = relation->ncolumns;
	side->heap = relation->heap;
	side->heap_used = relation->heap_used;
	side->nloaded = relation->nrows;
	side->nread = run->stats.source[source].rows_in;
	side->nrows = (uint32_t) nrows;
	return true;
}

GjStatus
gj_side_publish_made(GjRun *run, uint32_t source)
{
	GjRunSide  *side = &run->intake->side[source];

	/* others may use it at once: what it is made by must be done */
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	if (!gj_side_publish(side->store, &run->work, run->intake->clock, side->made))
		return GJ_OK;
	side->kept = side->made;
	side->made = NULL;
	return GJ_OK;
}

GjStatus
gj_side_keep(GjRun *run, GjRunStep *rs)
{
	uint32_t	source = rs->step->source;
	GjRunSide  *rside = &run->intake->side[source];
	GjSide	   *side = rside->made;

	/* where nothing can match, there is nothing worth keeping */
	if (!side || !rs->built || !gj_side_describe(run, source, &run->relation[source],
												 run->stats.source[source].rows_out))
		return GJ_OK;
	side->table = rs->table;
	side->table_bytes = rs->table_bytes;
	GJ_TRY(gj_side_publish_made(run, source));
	if (rside->kept)
		borrow(run, rs, side);
	return GJ_OK;
}

bool
gj_run_has_side(const GjRun *run, uint32_t source)
{
	return run->intake->side[source].kept != NULL;
}

static void
release_side(GjRunSide *side)
{
	if (side->kept)
		gj_side_unpin(side->store, side->kept);
	if (side->made)
		gj_side_discard(side->made);
	memset(side, 0, sizeof(*side));
}

void
gj_side_release(GjRun *run)
{
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		release_side(&run->intake->side[s]);
	release_side(&run->intake->codes.side);
}
