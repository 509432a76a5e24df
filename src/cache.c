/*
 * cache.c
 *	  gpujoin_cache, gpujoin_cache_evict and gpujoin_prewarm.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "client/cache_info.h"
#include "client/device_info.h"
#include "compat.h"
#include "exec/run.h"
#include "guc.h"
#include "load/tuple_id.h"
#include "plan/excluded.h"
#include "plan/join_path.h"
#include "plan/program_builder.h"
#include "plan/types.h"
#include "progress.h"

PG_FUNCTION_INFO_V1(gpujoin_cache);
PG_FUNCTION_INFO_V1(gpujoin_cache_evict);
PG_FUNCTION_INFO_V1(gpujoin_prewarm);

/* ---- gpujoin_cache */

/* What users see of the columns of a relation on a device: arrays of the same order. */
typedef struct ColumnArrays
{
	ArrayBuildState *names;
	ArrayBuildState *encodings;
	ArrayBuildState *bytes;
	ArrayBuildState *plain_bytes;
} ColumnArrays;

/* How one fragment lies, or all do. */
static char *
encoding_text(GjEncoding encoding, uint64 nvalues)
{
	static const int nbytes[GJ_NENCODINGS] = {0, 1, 2, 4, 1, 2, 2, 4};

	if (encoding == GJ_PLAIN)
		return "plain";
	if (encoding >= GJ_OFFSETS_2)
		return psprintf("offsets of %d bytes", nbytes[encoding]);
	if (encoding < GJ_CODES_1)
		return psprintf(nbytes[encoding] == 1 ? "packed %d byte" : "packed %d bytes",
						nbytes[encoding]);
	return psprintf(nbytes[encoding] == 1 ? "dictionary of " UINT64_FORMAT " values, %d byte" :
					"dictionary of " UINT64_FORMAT " values, %d bytes", nvalues, nbytes[encoding]);
}

/* How a column lies; where its fragments differ, in how many of them. */
static char *
column_encoding(const GjCachedColumn *column)
{
	uint64		nfragments = 0;
	uint64		ndictionaries = 0;
	StringInfoData text;

	initStringInfo(&text);
	for (int e = 0; e < GJ_NENCODINGS; e++)
	{
		nfragments += column->nfragments[e];
		if (e == GJ_CODES_1 || e == GJ_CODES_2)
			ndictionaries += column->nfragments[e];
	}
	for (int e = 0; e < GJ_NENCODINGS; e++)
	{
		if (column->nfragments[e] == 0)
			continue;
		if (text.len > 0)
			appendStringInfoString(&text, "; ");
		appendStringInfoString(&text, encoding_text(e, column->nvalues / Max(ndictionaries, 1)));
		if (column->nfragments[e] < nfragments)
			appendStringInfo(&text, " in %u of " UINT64_FORMAT " fragments", column->nfragments[e],
							 nfragments);
	}
	return text.data;
}

/* The columns of a table that are kept; numbers where the name is not known. */
static void
describe_columns(const GjCachedRelation *relation, Oid relid, ColumnArrays *arrays)
{
	MemoryContext context = CurrentMemoryContext;

	arrays->names = initArrayResult(TEXTOID, context, false);
	arrays->encodings = initArrayResult(TEXTOID, context, false);
	arrays->bytes = initArrayResult(INT8OID, context, false);
	arrays->plain_bytes = initArrayResult(INT8OID, context, false);
	for (uint32 c = 0; c < relation->counts.ncolumns; c++)
	{
		const GjCachedColumn *column = &relation->columns[c];
		char	   *name = NULL;

		/* see make_column_key() in load/resident.c */
		if (column->attnum == 0)
			name = pstrdup("ctid");
		else if (OidIsValid(relid))
			name = get_attname(relid, column->attnum, true);
		if (name == NULL)
			name = psprintf("%u", column->attnum);
		accumArrayResult(arrays->names, CStringGetTextDatum(name), false, TEXTOID, context);
		accumArrayResult(arrays->encodings, CStringGetTextDatum(column_encoding(column)), false,
						 TEXTOID, context);
		accumArrayResult(arrays->bytes, Int64GetDatum(column->nbytes), false, INT8OID, context);
		accumArrayResult(arrays->plain_bytes, Int64GetDatum(column->plain_bytes), false, INT8OID,
						 context);
	}
}

/* The table that has the file now; invalid in other databases, and after a rewrite. */
static Oid
relation_of_file(const GjRelationKey *key)
{
	Oid			tablespace = key->tablespace == MyDatabaseTableSpace ? InvalidOid : key->tablespace;

	if (key->database != MyDatabaseId)
		return InvalidOid;
	return gj_relation_by_file(tablespace, key->filenode);
}

/* Return what is resident. */
Datum
gpujoin_cache(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GjCachedRelation *list;
	uint32		n = 0;
	GjFailure	failure;

	InitMaterializedSRF(fcinfo, 0);
	if (IsUnderPostmaster)
		(void) gj_cache_read(&list, &n, &failure);
	for (uint32 i = 0; i < n; i++)
	{
		const GjCached *counts = &list[i].counts;
		Oid			relid = relation_of_file(&counts->relation);
		char	   *database = get_database_name(counts->relation.database);
		ColumnArrays arrays;
		NameData	name;
		Datum		values[15];
		bool		nulls[15] = {false};
		int			c = 0;

		values[c++] = ObjectIdGetDatum(counts->relation.database);
		namestrcpy(&name, database != NULL ? database : "");
		nulls[c] = database == NULL;
		values[c++] = NameGetDatum(&name);
		nulls[c] = !OidIsValid(relid);
		values[c++] = ObjectIdGetDatum(relid);
		describe_columns(&list[i], relid, &arrays);
		values[c++] = makeArrayResult(arrays.names, CurrentMemoryContext);
		values[c++] = CStringGetTextDatum(counts->device == GJ_DEVICE_CPU ? "cpu" : "cuda");
		values[c++] = Int32GetDatum(counts->ordinal);
		values[c++] = Int64GetDatum(counts->nfragments);
		values[c++] = Int64GetDatum(counts->npages);
		values[c++] = Int64GetDatum(counts->nbytes);
		values[c++] = Int64GetDatum(counts->hits);
		values[c++] = Int64GetDatum(counts->ntables);
		values[c++] = Int64GetDatum(counts->table_hits);
		values[c++] = makeArrayResult(arrays.encodings, CurrentMemoryContext);
		values[c++] = makeArrayResult(arrays.bytes, CurrentMemoryContext);
		values[c++] = makeArrayResult(arrays.plain_bytes, CurrentMemoryContext);
		Assert(c == lengthof(values));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- tables whose rows are elsewhere */

/* True if Citus distributes the rows of a table over other tables, perhaps of other servers. */
static bool
is_distributed(Oid relid)
{
	Datum		args[1] = {ObjectIdGetDatum(relid)};
	Oid			types[1] = {REGCLASSOID};
	Oid			catalog = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	bool		found;

	if (!OidIsValid(catalog) || pg_class_aclcheck(catalog, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		return false;
	SPI_connect();
	found = SPI_execute_with_args("SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid = $1",
								  1, types, args, NULL, true, 1) == SPI_OK_SELECT && SPI_processed > 0;
	SPI_finish();
	return found;
}

/* Say which tables of these a function does nothing about, and what does. */
static void
note_elsewhere(Oid relid, List *family, const char *function)
{
	int			nforeign = 0;
	ListCell   *lc;

	if (OidIsValid(relid) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) &&
		is_distributed(relid))
		ereport(NOTICE,
				(errmsg("\"%s\" is a distributed table, whose rows are in shards", get_rel_name(relid)),
				 errhint("Run SELECT run_command_on_placements(%s, %s).",
						 quote_literal_cstr(quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
																	   get_rel_name(relid))),
						 quote_literal_cstr(psprintf("SELECT %s('%%s')", function)))));
	foreach(lc, family)
		nforeign += get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE;
	if (nforeign > 0)
		ereport(NOTICE,
				(errmsg_plural("%d foreign table is left out", "%d foreign tables are left out",
							   nforeign, nforeign),
				 errhint("Call %s() on the servers that have the rows.", function)));
}

/* ---- gpujoin_cache_evict */

/* A table with its partitions and children, which are locked; what is no table (any more) is alone. */
static List *
family_of(Oid relid)
{
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return list_make1_oid(relid);
	return find_all_inheritors(relid, AccessShareLock, NULL);
}

/* Give up what is resident of a table with its partitions and children, or everything. */
Datum
gpujoin_cache_evict(PG_FUNCTION_ARGS)
{
	uint64		evicted = 0;
	Oid			relid = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	List	   *family = family_of(relid);
	ListCell   *lc;

	note_elsewhere(relid, family, "gpujoin_cache_evict");
	foreach(lc, family)
	{
		uint64		nbytes;
		GjFailure	failure;

		CHECK_FOR_INTERRUPTS();
		/* without gpujoind nothing is resident */
		if (!gj_cache_evict(lfirst_oid(lc), &nbytes, &failure))
			break;
		evicted += nbytes;
	}
	PG_RETURN_INT64(evicted);
}

/* ---- gpujoin_prewarm */

/* True if the relation itself has pages that can be loaded. */
static bool
is_plain_table(Relation rel)
{
	return (rel->rd_rel->relkind == RELKIND_RELATION || rel->rd_rel->relkind == RELKIND_MATVIEW) &&
		rel->rd_tableam == GetHeapamTableAmRoutine() && !RELATION_IS_OTHER_TEMP(rel);
}

static void
check_table(Relation rel)
{
	AclResult	acl = pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT);

	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, get_relkind_objtype(rel->rd_rel->relkind), RelationGetRelationName(rel));
	if (!is_plain_table(rel) && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a plain table", RelationGetRelationName(rel))));
	if (list_member_oid(gj_excluded_relids(), RelationGetRelid(rel)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpujoin.excluded_tables has \"%s\"", RelationGetRelationName(rel))));
}

/* True if the table's rows can have late columns: neither a parent nor a partition. */
static bool
can_have_late(Relation rel)
{
	return gj_late_columns != GJ_LATE_OFF && is_plain_table(rel) && !rel->rd_rel->relispartition &&
		!has_subclass(RelationGetRelid(rel)) && !has_superclass(RelationGetRelid(rel));
}

/*
 * The names of all columns, but for those of long values: these are fetched for few rows, by ctid,
 * which takes their place.
 */
static List *
all_columns(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		late = can_have_late(rel);
	List	   *names = NIL;
	StringInfoData left;
	int			nleft = 0;

	initStringInfo(&left);
	for (int i = 0; i < desc->natts; i++)
	{
		char	   *name = NameStr(TupleDescAttr(desc, i)->attname);

		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		if (!late || !gj_is_long(RelationGetRelid(rel), i + 1))
			names = lappend(names, name);
		else
			appendStringInfo(&left, "%s%s", nleft++ > 0 ? ", " : "", name);
	}
	if (nleft == 0)
		return names;
	ereport(NOTICE,
			(errmsg_plural("column with long values of \"%s\" is left out: %s",
						   "columns with long values of \"%s\" are left out: %s",
						   nleft, RelationGetRelationName(rel), left.data),
			 errhint("Where few rows come back, they are fetched. Name all columns, and ctid, to load them.")));
	return lappend(names, "ctid");
}

/* The names of columns that are named, NULL for a NULL. */
static List *
named_columns(ArrayType *array)
{
	Datum	   *elements;
	bool	   *nulls;
	int			nelements;
	List	   *names = NIL;

	deconstruct_array(array, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &elements, &nulls, &nelements);
	for (int i = 0; i < nelements; i++)
		names = lappend(names, nulls[i] ? NULL : NameStr(*DatumGetName(elements[i])));
	return names;
}

/* The attributes of these columns, each once. */
static int
find_attributes(Relation rel, List *names, AttrNumber *attnos)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, names)
	{
		char	   *name = lfirst(lc);
		AttrNumber	attno = name ? get_attnum(RelationGetRelid(rel), name) : InvalidAttrNumber;
		bool		known = false;

		if (attno <= 0 && attno != GJ_TUPLE_ID_ATTNO)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist", name ? name : "",
							RelationGetRelationName(rel))));
		for (int k = 0; k < n; k++)
			known |= attnos[k] == attno;
		if (!known)
			attnos[n++] = attno;
	}
	return n;
}

/*
 * A program that takes the columns in and does nothing else.  The last ntexts of them are
 * texts as programs want them that look into them.
 */
static GjProgram *
make_program(Relation rel, const AttrNumber *attnos, int n, int ntexts)
{
	Size		instrs = sizeof(GjProgram) + sizeof(GjSource) + MAXALIGN(sizeof(GjColumnType) * n);
	Size		nbytes = instrs + sizeof(GjInstr) * ntexts;
	GjProgram  *program = palloc0(nbytes);
	GjSource   *source;
	GjColumnType *types;
	uint64		row_heap = 0;

	program->magic = GJ_PROGRAM_MAGIC;
	program->nbytes = nbytes;
	program->kind = GJ_PROGRAM_PREWARM;
	program->output = GJ_OUTPUT_COUNT;
	program->fail_point = gj_fail_at;
	program->lease = 1024 * 1024;
	program->nsources = 1;
	program->sources = sizeof(GjProgram);
	program->ncolumns = n;
	program->columns = sizeof(GjProgram) + sizeof(GjSource);
	program->ninstrs = ntexts;
	program->instrs = instrs;
	source = (GjSource *) ((char *) program + program->sources);
	types = (GjColumnType *) ((char *) program + program->columns);
	for (int i = 0; i < n; i++)
	{
		Form_pg_attribute attr;
		int			scale;

		if (attnos[i] == GJ_TUPLE_ID_ATTNO)
		{
			types[i] = gj_column_type(INT8OID);
			continue;
		}
		attr = TupleDescAttr(RelationGetDescr(rel), attnos[i] - 1);
		types[i] = gj_decimal_noted(RelationGetRelid(rel), attnos[i]) ?
			gj_column_type(attr->atttypid) :
			gj_loaded_type(attr->atttypid, attr->atttypmod, &scale);
		if (types[i].kind == GJ_REF)
			row_heap += MAXALIGN(get_typavgwidth(attr->atttypid, attr->atttypmod));
	}
	for (int i = 0; i < ntexts; i++)
		((GjInstr *) ((char *) program + instrs))[i] =
			(GjInstr) {.op = GJ_OP_LOAD_T,.n = GJ_BYTES_VARLENA,.arg = n - ntexts + i};
	source->ncolumns = n;
	source->nrows_hint = (uint64) Max(rel->rd_rel->reltuples, 0);
	source->filter = -1;
	source->capacity = gj_chunk_capacity(types, n, row_heap);
	if (source->capacity == 0)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("%d columns are too many at once", n),
				 errhint("Name the columns that queries use.")));
	return program;
}

/* A table that is loaded. */
typedef struct Loading
{
	const GjRemoteRun *run;
	const GjSourceReader *reader;
} Loading;

/* Tells how much of a table has been loaded; of what workers load, how much they have taken. */
static void
tell_progress(void *arg)
{
	const Loading *loading = (const Loading *) arg;
	const GjSourceReader *reader = loading->reader;
	GjBlockShare    *share = reader->tables[0].share;
	uint64		ndone = reader->npages + reader->nresident;

	if (gj_remote_has_workers(loading->run))
		ndone = pg_atomic_read_u64(&share->next);
	gj_progress_blocks(Min(ndone, share->nblocks), share->nblocks);
}

/* Loads what is not resident yet. */
static void
load_table(Relation rel, const AttrNumber *attnos, int n, int ntexts)
{
	GjProgram  *program = make_program(rel, attnos, n, ntexts);
	GjLoadStats stats = {0};
	GjFailure	failure = {0};
	GjRemoteRun *run = gj_remote_create(program, &stats);
	GjTable		table = {.relid = RelationGetRelid(rel),.attnos = attnos};
	GjSourceReader *reader = gj_heap_source(&table, 1, GetActiveSnapshot(), program, 0, &failure);
	Loading		loading = {run, reader};
	GjRemoteResult result = GJ_REMOTE_FAILED;
	bool		is_parallel = IsInParallelMode();
	int			most = is_parallel ? 0 : max_parallel_workers;
	GjBatch		batch;

	/* as to build an index: all that is done until the end is to read */
	if (!is_parallel)
		EnterParallelMode();
	if (reader != NULL)
	{
		gj_remote_set_reader(run, 0, reader);
		if (reader->ntables > 0)
			gj_remote_watch(run, tell_progress, &loading);
		if (gj_remote_submit(run, most, &failure))
		{
			gj_remote_launch(run, most, GetActiveSnapshot());
			while ((result = gj_remote_next(run, &batch, &failure)) == GJ_REMOTE_BATCH)
				gj_remote_free_batch(run, batch.slot);
		}
	}
	gj_remote_end(run);
	if (!is_parallel)
		ExitParallelMode();
	if (result == GJ_REMOTE_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not load \"%s\": %s", RelationGetRelationName(rel),
						gj_reason_text(failure.reason)),
				 failure.detail[0] ? errdetail("%s", failure.detail) : 0));
}

/*
 * Adds the columns that programs can look into once more: they want them flat.  Returns how many.
 */
static int
add_texts(Relation rel, AttrNumber *attnos, int n)
{
	int			ntexts = 0;

	for (int i = 0; i < n; i++)
		if (attnos[i] != GJ_TUPLE_ID_ATTNO &&
			gj_type(TupleDescAttr(RelationGetDescr(rel), attnos[i] - 1)->atttypid)->reading ==
			GJ_READ_VARLENA)
			attnos[n + ntexts++] = attnos[i];
	return ntexts;
}

/* What has been made resident. */
typedef struct Warmed
{
	GjRelationKey relation;
	BlockNumber nblocks;
	BlockNumber nvisible;		/* pages whose bits in the visibility map were set */
} Warmed;

/* Pages of so many that are not all-visible are not worth a notice. */
#define GJ_FEW_PAGES	20

/* Pages of n tables that are resident now, on whichever device. */
static uint64
count_pages(const Warmed *tables, int n)
{
	GjCachedRelation *list;
	uint32		nlist;
	uint64		npages = 0;
	GjFailure	failure;

	(void) gj_cache_read(&list, &nlist, &failure);
	for (int t = 0; t < n; t++)
	{
		uint64		resident = 0;

		for (uint32 i = 0; i < nlist; i++)
			if (memcmp(&list[i].counts.relation, &tables[t].relation, sizeof(GjRelationKey)) == 0 &&
				list[i].counts.device == gj_device_kind())
				resident += list[i].counts.npages;
		/* some may be on several */
		npages += Min(resident, tables[t].nblocks);
	}
	return npages;
}

/* Makes columns of a table resident. */
static Warmed
prewarm_table(Relation rel, List *names)
{
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * MaxTupleAttributeNumber * 2);
	int			n = find_attributes(rel, names, attnos);
	int			ntexts = add_texts(rel, attnos, n);
	Warmed		warmed;

	if (n > 0)
		load_table(rel, attnos, n, 0);
	/* where no value is compressed or external, they are flat as they are, and nothing is loaded */
	if (ntexts > 0)
		load_table(rel, attnos, n + ntexts, ntexts);
	gj_relation_file(rel, &warmed.relation);
	warmed.nblocks = RelationGetNumberOfBlocks(rel);
	visibilitymap_count(rel, &warmed.nvisible, NULL);
	return warmed;
}

/*
 * Say if pages could not become resident that VACUUM would make all-visible, as after a restore or a
 * move of a shard.
 */
static void
note_invisible(const Warmed *tables, int n)
{
	uint64		nblocks = 0;
	uint64		nvisible = 0;

	for (int t = 0; t < n; t++)
	{
		nblocks += tables[t].nblocks;
		nvisible += Min(tables[t].nvisible, tables[t].nblocks);
	}
	if (nblocks - nvisible <= nblocks / GJ_FEW_PAGES)
		return;
	ereport(NOTICE,
			(errmsg("only " UINT64_FORMAT " of " UINT64_FORMAT " pages are all-visible, and no others can stay resident",
					nvisible, nblocks),
			 errhint("Run VACUUM, and then gpujoin_prewarm() again.")));
}

/* The same of tables, those of these that have pages; returns how many pages are resident. */
static uint64
prewarm_tables(List *relids, List *names)
{
	Warmed	   *tables = palloc(sizeof(Warmed) * list_length(relids));
	MemoryContext table_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin prewarm",
													ALLOCSET_DEFAULT_SIZES);
	List	   *excluded = gj_excluded_relids();
	int			n = 0;
	ListCell   *lc;

	gj_progress_start(linitial_oid(relids), list_length(relids));
	foreach(lc, relids)
	{
		Relation	rel = table_open(lfirst_oid(lc), NoLock);
		MemoryContext old = MemoryContextSwitchTo(table_cxt);

		if (is_plain_table(rel) && !list_member_oid(excluded, RelationGetRelid(rel)))
		{
			gj_progress_table(lfirst_oid(lc), foreach_current_index(lc),
							  RelationGetNumberOfBlocks(rel));
			tables[n++] = prewarm_table(rel, names);
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(table_cxt);
		table_close(rel, NoLock);
	}
	gj_progress_end();
	note_invisible(tables, n);
	return count_pages(tables, n);
}

/*
 * Make columns of a table with its partitions and children resident.  Whether queries return texts or
 * look into them is not known: they come both ways.
 */
Datum
gpujoin_prewarm(PG_FUNCTION_ARGS)
{
	Relation	rel;
	List	   *names;
	List	   *family;
	GjFailure	failure;
	uint64		npages;
	const char *reason;
	bool		may_offload;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	check_table(rel);
	names = PG_ARGISNULL(1) ? all_columns(rel) : named_columns(PG_GETARG_ARRAYTYPE_P(1));
	/* a partitioned table may have no partitions, but its columns it has */
	(void) find_attributes(rel, names, palloc(sizeof(AttrNumber) * MaxTupleAttributeNumber));
	may_offload = gj_may_offload(&reason);
	if (!may_offload || gj_client_device(&failure) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no device to load \"%s\" to", RelationGetRelationName(rel)),
				 errdetail("%s", may_offload ? gj_reason_text(failure.reason) : reason)));
	family = family_of(RelationGetRelid(rel));
	note_elsewhere(RelationGetRelid(rel), family, "gpujoin_prewarm");
	npages = prewarm_tables(family, names);
	table_close(rel, NoLock);
	PG_RETURN_INT64(npages);
}
