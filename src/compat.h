/*
 * compat.h
 *	  Every difference between PostgreSQL versions.
 */
#ifndef GJ_COMPAT_H
#define GJ_COMPAT_H

#include "nodes/pathnodes.h"
#include "parser/parse_relation.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "wire/resident.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"				/* was a part of postgres.h */
#include "utils/relfilenumbermap.h"
#define gj_relation_by_file(tablespace, file) RelidByRelfilenumber(tablespace, file)
#else
#include "utils/relfilenodemap.h"
#define gj_relation_by_file(tablespace, file) RelidByRelfilenode(tablespace, file)
#endif

/* A column that an outer join, by its number, may have made NULL. */
#if PG_VERSION_NUM >= 160000
#define gj_set_nulling_rel(var, join) ((var)->varnullingrels = bms_make_singleton(join))
#define gj_drop_nulling_rel(var, join) \
	((var)->varnullingrels = bms_difference((var)->varnullingrels, bms_make_singleton(join)))
#else
#define gj_set_nulling_rel(var, join) ((void) (join))
#define gj_drop_nulling_rel(var, join) ((void) (var), (void) (join))
#endif

/* A scan of a subquery whose columns are all read as they are, for all that is known here. */
#if PG_VERSION_NUM >= 160000
#define gj_create_subqueryscan_path(root, rel, subpath) \
	create_subqueryscan_path(root, rel, subpath, false, NIL, NULL)
#else
#define gj_create_subqueryscan_path(root, rel, subpath) \
	create_subqueryscan_path(root, rel, subpath, NIL, NULL)
#endif

/* Where EnableQueryId() is. */
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#else
#include "utils/queryjumble.h"
#endif

/* What the i-th backend (from 1 on) does, as this transaction sees it. */
#if PG_VERSION_NUM >= 160000
#define gj_local_backend(i)	pgstat_get_local_beentry_by_index(i)
#else
#define gj_local_backend(i)	pgstat_fetch_stat_local_beentry(i)
#endif

/* A block in memory that a file can be read into. */
#if PG_VERSION_NUM >= 160000
#define GjIoBlock	PGIOAlignedBlock
#else
#define GjIoBlock	PGAlignedBlock
#endif

/* A set of n events to wait for, which whoever made it frees. */
#if PG_VERSION_NUM >= 170000
#define gj_create_wait_set(context, n)	CreateWaitEventSet(NULL, n)
#else
#define gj_create_wait_set(context, n)	CreateWaitEventSet(context, n)
#endif

/* Memory of what a setting's check hook keeps, NULL if there is none. */
#if PG_VERSION_NUM >= 160000
#include "utils/guc.h"
#define gj_guc_malloc(size)	guc_malloc(LOG, size)
#else
#define gj_guc_malloc(size)	malloc(size)
#endif

/* What EXPLAIN writes; columns have the names of their tables where there is more than one. */
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#define gj_explain_prefixes(es)	((es)->rtable_size > 1)
#else
#define gj_explain_prefixes(es)	(list_length((es)->rtable) > 1)
#endif

/* What EXPLAIN does with a query unless a hook is there for it; exported from 17 on. */
#if PG_VERSION_NUM >= 170000
#define gj_standard_explain	standard_ExplainOneQuery
#else
#include "portability/instr_time.h"
#include "tcop/tcopprot.h"

static inline void
gj_standard_explain(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
					const char *query_string, ParamListInfo params, QueryEnvironment *env)
{
	PlannedStmt *plan;
	instr_time	start,
				planning;
	BufferUsage before = pgBufferUsage;
	BufferUsage used;

	INSTR_TIME_SET_CURRENT(start);
	plan = pg_plan_query(query, query_string, cursor_options, params);
	INSTR_TIME_SET_CURRENT(planning);
	INSTR_TIME_SUBTRACT(planning, start);
	memset(&used, 0, sizeof(used));
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, query_string, params, env, &planning,
				   es->buffers ? &used : NULL);
}
#endif

/*
 * True if the bytes of texts decide their order.  utils/pg_locale.h wants the headers of ICU, which
 * need not be installed: so what it has is declared here, or found out in the catalog.
 */
#if PG_VERSION_NUM >= 180000
#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/* The same of a provider and of the name that it has for a locale, an attribute of a row. */
static inline bool
gj_locale_is_c(char provider, int cache, HeapTuple row, AttrNumber name)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(cache, row, name, &isnull);
	char	   *locale;

	/* that one has locales of which the case of letters differs, no more */
	if (provider == COLLPROVIDER_BUILTIN)
		return true;
	if (provider != COLLPROVIDER_LIBC || isnull)
		return false;
	locale = TextDatumGetCString(value);
	return strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
}

static inline bool
gj_collate_is_c(Oid collation)
{
	bool		of_database = collation == DEFAULT_COLLATION_OID;
	int			cache = of_database ? DATABASEOID : COLLOID;
	HeapTuple	row = SearchSysCache1(cache, ObjectIdGetDatum(of_database ? MyDatabaseId : collation));
	bool		is_c;

	if (!HeapTupleIsValid(row))
		return false;
	is_c = of_database ?
		gj_locale_is_c(((Form_pg_database) GETSTRUCT(row))->datlocprovider, cache, row, Anum_pg_database_datcollate) :
		gj_locale_is_c(((Form_pg_collation) GETSTRUCT(row))->collprovider, cache, row, Anum_pg_collation_collcollate);
	ReleaseSysCache(row);
	return is_c;
}
#else
extern bool lc_collate_is_c(Oid collation);
#define gj_collate_is_c(collation)	lc_collate_is_c(collation)
#endif

/* What an operator is in families of ordering indexes, NIL if it is in none. */
#if PG_VERSION_NUM >= 180000
#define gj_op_interpretation(op)	get_op_index_interpretation(op)
#else
#define gj_op_interpretation(op)	get_op_btree_interpretation(op)
#endif

/* The btree strategy of a pathkey, which has the number of what it compares from 18 on. */
#if PG_VERSION_NUM >= 180000
#define gj_pathkey_strategy(pathkey)	((int16) (pathkey)->pk_cmptype)
#else
#define gj_pathkey_strategy(pathkey)	((int16) (pathkey)->pk_strategy)
#endif

/* What an ordering operator is in its family. */
static inline bool
gj_ordering_properties(Oid operator, Oid *opfamily, Oid *opcintype, int16 *strategy)
{
#if PG_VERSION_NUM >= 180000
	CompareType type;
	bool		found = get_ordering_op_properties(operator, opfamily, opcintype, &type);

	*strategy = (int16) type;
	return found;
#else
	return get_ordering_op_properties(operator, opfamily, opcintype, strategy);
#endif
}

/* Names and Vars of all columns of a range table entry that have not been dropped. */
static inline void
gj_expand_rte(RangeTblEntry *rte, Index relid, List **names, List **columns)
{
#if PG_VERSION_NUM >= 180000
	expandRTE(rte, relid, 0, VAR_RETURNING_DEFAULT, -1, false, names, columns);
#else
	expandRTE(rte, relid, 0, -1, false, names, columns);
#endif
}

/* Counts rows that a scan returned, in pg_stat_all_tables. */
static inline void
gj_count_tuples_returned(Relation rel, uint64 n)
{
	if (!pgstat_should_count_relation(rel))
		return;
#if PG_VERSION_NUM >= 160000
	rel->pgstat_info->counts.tuples_returned += n;
#else
	rel->pgstat_info->t_counts.t_tuples_returned += n;
#endif
}

/* Pins block `block` of the main fork if it is in `buffer`, which is not a local one. */
static inline bool
gj_read_recent_buffer(Relation rel, BlockNumber block, Buffer buffer)
{
#if PG_VERSION_NUM >= 160000
	return ReadRecentBuffer(rel->rd_locator, MAIN_FORKNUM, block, buffer);
#else
	return ReadRecentBuffer(rel->rd_node, MAIN_FORKNUM, block, buffer);
#endif
}

/* True if this transaction has made the table, or its file. */
static inline bool
gj_relation_is_new(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
#if PG_VERSION_NUM >= 160000
		rel->rd_newRelfilelocatorSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
		rel->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/* The file of a table. */
static inline void
gj_relation_file(Relation rel, GjRelationKey *key)
{
#if PG_VERSION_NUM >= 160000
	key->database = rel->rd_locator.dbOid;
	key->tablespace = rel->rd_locator.spcOid;
	key->filenode = rel->rd_locator.relNumber;
#else
	key->database = rel->rd_node.dbNode;
	key->tablespace = rel->rd_node.spcNode;
	key->filenode = rel->rd_node.relNode;
#endif
	key->relation = RelationGetRelid(rel);
}

/* True if scans may have to raise "snapshot too old" (gone in 17). */
static inline bool
gj_old_snapshot_threshold_active(void)
{
#if PG_VERSION_NUM >= 170000
	return false;
#else
	return old_snapshot_threshold >= 0;
#endif
}

/* Relids of the join of all that a query level reads (from 16 on with its outer joins). */
#if PG_VERSION_NUM >= 160000
#define gj_all_relids(root)		((root)->all_query_rels)
#else
#define gj_all_relids(root)		((root)->all_baserels)
#endif

/* Semi and anti joins that look for the rows of their inner side in the outer one, the other way round. */
static inline JoinType
gj_mirrored_join(JoinType type)
{
#if PG_VERSION_NUM >= 180000
	if (type == JOIN_RIGHT_SEMI)
		return JOIN_SEMI;
#endif
#if PG_VERSION_NUM >= 160000
	if (type == JOIN_RIGHT_ANTI)
		return JOIN_ANTI;
#endif
	return type;
}

/* What equivalence classes say of a relation and those that its path needs values of. */
#if PG_VERSION_NUM >= 160000
#define gj_implied_equalities(root, both, outer, rel) \
	generate_join_implied_equalities(root, both, outer, rel, NULL)
#else
#define gj_implied_equalities(root, both, outer, rel) \
	generate_join_implied_equalities(root, both, outer, rel)
#endif

/* May a role do something with a function? */
#if PG_VERSION_NUM >= 160000
#define gj_function_aclcheck(function, role, mode) \
	object_aclcheck(ProcedureRelationId, function, role, mode)
#else
#define gj_function_aclcheck(function, role, mode)	pg_proc_aclcheck(function, role, mode)
#endif

/* True for a column, counted from 0, that has no NULL; from 18 on constraints need not hold for old rows. */
static inline bool
gj_is_not_null(TupleDesc desc, int column)
{
#if PG_VERSION_NUM >= 180000
	return TupleDescCompactAttr(desc, column)->attnullability == ATTNULLABLE_VALID;
#else
	return TupleDescAttr(desc, column)->attnotnull;
#endif
}

/* May the user run a planned statement, as to its tables and views? */
#if PG_VERSION_NUM >= 160000
#define gj_may_execute(statement) \
	ExecCheckPermissions((statement)->rtable, (statement)->permInfos, false)
#else
#define gj_may_execute(statement)	ExecCheckRTPerms((statement)->rtable, false)
#endif

#endif							/* GJ_COMPAT_H */
