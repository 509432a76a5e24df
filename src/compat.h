/*
 * compat.h
 *	  Every difference between PostgreSQL versions.
 */
#ifndef GJ_COMPAT_H
#define GJ_COMPAT_H

#include "catalog/pg_collation_d.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "wire/resident.h"

#if PG_VERSION_NUM >= 160000
#include "utils/relfilenumbermap.h"
#define gj_relation_by_file(tablespace, file) RelidByRelfilenumber(tablespace, file)
#else
#include "utils/relfilenodemap.h"
#define gj_relation_by_file(tablespace, file) RelidByRelfilenode(tablespace, file)
#endif

/* A set of n events to wait for, which whoever made it frees. */
#if PG_VERSION_NUM >= 170000
#define gj_create_wait_set(context, n)	CreateWaitEventSet(NULL, n)
#else
#define gj_create_wait_set(context, n)	CreateWaitEventSet(context, n)
#endif

/*
 * True if the bytes of texts decide their order.  Declared here because utils/pg_locale.h
 * wants the headers of ICU, which need not be installed.
 */
#if PG_VERSION_NUM < 180000
extern bool lc_collate_is_c(Oid collation);
#define gj_collate_is_c(collation)	lc_collate_is_c(collation)
#else
#define gj_collate_is_c(collation)	((collation) == C_COLLATION_OID)
#endif

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

/*
 * From 16 on a Var tells which outer joins may have made it NULL, so the same column is
 * not equal to itself above and below one: such joins are left to PostgreSQL there.
 */
#define GJ_HAS_NULLABLE_SIDES	(PG_VERSION_NUM < 160000)

/* Relids of the join of all that a query level reads (from 16 on with its outer joins). */
#if PG_VERSION_NUM >= 160000
#define gj_all_relids(root)		((root)->all_query_rels)
#else
#define gj_all_relids(root)		((root)->all_baserels)
#endif

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

/* May the user run a planned statement, as to its tables and views? */
#if PG_VERSION_NUM >= 160000
#define gj_may_execute(statement) \
	ExecCheckPermissions((statement)->rtable, (statement)->permInfos, false)
#else
#define gj_may_execute(statement)	ExecCheckRTPerms((statement)->rtable, false)
#endif

#endif							/* GJ_COMPAT_H */
