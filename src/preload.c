/*
 * preload.c
 *	  In which sessions of a database the library is loaded.
 *
 * gpujoin_enable() adds the library to session_preload_libraries of the current
 * database, gpujoin_disable() takes it out.  The database's setting hides the
 * server's, so the first starts from the server's list where the database has none,
 * and the second removes a setting that only repeats the server's.
 *
 * A database without the extension has nothing offloaded, whoever has loaded the library.
 *
 * DROP EXTENSION does what gpujoin_disable() does, by object_access_hook: every
 * session of a database that gpujoin_enable() changed has the library, and so the
 * hook, but for those that began before.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "client/launcher.h"
#include "preload.h"

#define GJ_LIBRARY		"gpujoin"
#define GJ_PRELOAD_GUC	"session_preload_libraries"

static object_access_hook_type previous_object_access_hook = NULL;

PG_FUNCTION_INFO_V1(gpujoin_enable);
PG_FUNCTION_INFO_V1(gpujoin_disable);
PG_FUNCTION_INFO_V1(gpujoin_announce);

/* Return the value that an array of "name=value" texts gives the setting, or NULL. */
static char *
value_in_settings(Datum settings)
{
	ArrayType  *array = DatumGetArrayTypeP(settings);
	Datum	   *elements;
	int			nelements;
	char	   *value = NULL;
	size_t		length = strlen(GJ_PRELOAD_GUC);

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &nelements);
	for (int i = 0; i < nelements; i++)
	{
		char	   *setting = TextDatumGetCString(elements[i]);

		if (pg_strncasecmp(setting, GJ_PRELOAD_GUC "=", length + 1) == 0)
			value = setting + length + 1;
	}
	return value;
}

/* Return what ALTER DATABASE (or ALTER ROLE ALL, for database 0) has set, or NULL. */
static char *
database_list(Oid database)
{
	Relation	relation = table_open(DbRoleSettingRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *value = NULL;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(database));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(InvalidOid));
	scan = systable_beginscan(relation, DbRoleSettingDatidRolidIndexId, true, NULL, 2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		settings = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
											RelationGetDescr(relation), &isnull);

		if (!isnull)
			value = value_in_settings(settings);
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return value;
}

/* Return the list that sessions have where the database sets none. */
static char *
server_list(void)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *value = database_list(InvalidOid);

	if (value != NULL)
		return value;
	SPI_connect();
	if (SPI_execute("SELECT setting FROM pg_catalog.pg_file_settings "
					"WHERE name OPERATOR(pg_catalog.=) '" GJ_PRELOAD_GUC "' AND error IS NULL "
					"ORDER BY seqno DESC LIMIT 1", true, 1) == SPI_OK_SELECT && SPI_processed == 1)
	{
		char	   *setting = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

		if (setting != NULL)
			value = MemoryContextStrdup(context, setting);
	}
	SPI_finish();
	return value != NULL ? value : pstrdup("");
}

/* Split a list of libraries into names. */
static List *
split_list(const char *value)
{
	List	   *names;

	if (!SplitDirectoriesString(pstrdup(value), ',', &names))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid list syntax in parameter \"%s\"", GJ_PRELOAD_GUC),
				 errdetail("The list is: %s", value)));
	return names;
}

/* Tell whether a name in a list means this library. */
static bool
is_this_library(const char *name)
{
	return strcmp(name, GJ_LIBRARY) == 0 || strcmp(name, "$libdir/" GJ_LIBRARY) == 0;
}

/* Return the list without this library. */
static List *
without_this_library(List *names)
{
	List	   *others = NIL;
	ListCell   *cell;

	foreach(cell, names)
	{
		if (!is_this_library(lfirst(cell)))
			others = lappend(others, lfirst(cell));
	}
	return others;
}

/* Tell whether two lists are the same. */
static bool
same_list(List *a, List *b)
{
	ListCell   *cell_a;
	ListCell   *cell_b;

	if (list_length(a) != list_length(b))
		return false;
	forboth(cell_a, a, cell_b, b)
	{
		if (strcmp(lfirst(cell_a), lfirst(cell_b)) != 0)
			return false;
	}
	return true;
}

/*
 * Do ALTER DATABASE ... SET session_preload_libraries, or RESET for an empty list.
 * (SET to an empty list would make each login look for a library without a name.)
 */
static void
set_database_list(List *names)
{
	AlterDatabaseSetStmt *statement = makeNode(AlterDatabaseSetStmt);
	VariableSetStmt *set = makeNode(VariableSetStmt);
	ListCell   *cell;

	set->kind = names == NIL ? VAR_RESET : VAR_SET_VALUE;
	set->name = GJ_PRELOAD_GUC;
	foreach(cell, names)
	{
		A_Const    *value = makeNode(A_Const);

		value->val.sval.type = T_String;
		value->val.sval.sval = lfirst(cell);
		value->location = -1;
		set->args = lappend(set->args, value);
	}
	statement->dbname = get_database_name(MyDatabaseId);
	statement->setstmt = set;
	(void) AlterDatabaseSet(statement);
	CommandCounterIncrement();
}

/* Return the setting of the database as text, NULL if it has none. */
static Datum
return_database_list(FunctionCallInfo fcinfo)
{
	char	   *value = database_list(MyDatabaseId);

	if (value == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(value));
}

/* Say that other nodes are not set, where Citus knows some. */
static void
note_other_nodes(void)
{
	if (OidIsValid(get_relname_relid("pg_dist_node", PG_CATALOG_NAMESPACE)))
		ereport(NOTICE,
				(errmsg("only this node's database is set"),
				 errhint("For all nodes run SELECT run_command_on_all_nodes('SELECT gpujoin_enable()').")));
}

/* Make every new session of this database load the library. */
Datum
gpujoin_enable(PG_FUNCTION_ARGS)
{
	char	   *value = database_list(MyDatabaseId);
	List	   *names = split_list(value != NULL ? value : server_list());
	List	   *others = without_this_library(names);

	if (value != NULL && list_length(others) < list_length(names))
		ereport(NOTICE,
				(errmsg("sessions of database \"%s\" already load gpujoin",
						get_database_name(MyDatabaseId))));
	else
		set_database_list(lappend(others, GJ_LIBRARY));
	note_other_nodes();
	return return_database_list(fcinfo);
}

/* Take the library out of the database's setting.  Returns false if it is not there. */
static bool
disable_in_database(void)
{
	char	   *value = database_list(MyDatabaseId);
	List	   *names = value != NULL ? split_list(value) : NIL;
	List	   *others = without_this_library(names);

	if (list_length(others) == list_length(names))
		return false;
	if (same_list(others, split_list(server_list())))
		others = NIL;
	set_database_list(others);
	return true;
}

/* No longer load the library in new sessions of this database. */
Datum
gpujoin_disable(PG_FUNCTION_ARGS)
{
	if (!disable_in_database())
		ereport(NOTICE,
				(errmsg("database \"%s\" has no setting that loads gpujoin",
						get_database_name(MyDatabaseId))));
	return return_database_list(fcinfo);
}

/*
 * Say, at the end of CREATE EXTENSION, that other sessions do not have the library.
 * CREATE EXTENSION hides a NOTICE, but not an INFO.
 */
Datum
gpujoin_announce(PG_FUNCTION_ARGS)
{
	char	   *value = database_list(MyDatabaseId);
	List	   *names = split_list(value != NULL ? value : server_list());

	if (!gj_launcher_preloaded() && list_length(without_this_library(names)) == list_length(names))
		ereport(INFO,
				(errmsg("gpujoin is loaded in this session only"),
				 errhint("To load it in all sessions of this database, use SELECT gpujoin_enable(); in all sessions of the server, add gpujoin to shared_preload_libraries.")));
	PG_RETURN_VOID();
}

/* ---- is the extension here? */

/* What is known of this database. */
static enum
{
	PRESENCE_UNKNOWN,
	PRESENT,
	ABSENT
}			presence = PRESENCE_UNKNOWN;

bool
gj_extension_present(void)
{
	if (presence == PRESENCE_UNKNOWN)
		presence = OidIsValid(get_extension_oid(GJ_LIBRARY, true)) ? PRESENT : ABSENT;
	return presence == PRESENT;
}

/*
 * CREATE EXTENSION and DROP EXTENSION make and drop functions, in whichever session; little else
 * does.  (pg_extension itself has no cache that would tell, before 18.)
 */
static void
forget_presence(Datum arg, int cache_id, uint32 hash)
{
	presence = PRESENCE_UNKNOWN;
}

/* When the extension is dropped, undo what gpujoin_enable() did. */
static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	char	   *name;
	Oid			user;
	int			security_context;

	if (previous_object_access_hook)
		previous_object_access_hook(access, class_id, object_id, sub_id, arg);
	if (access != OAT_DROP || class_id != ExtensionRelationId)
		return;
	name = get_extension_name(object_id);
	if (name == NULL || strcmp(name, GJ_LIBRARY) != 0)
		return;

	/* who may drop the extension may undo this, without being a superuser */
	GetUserIdAndSecContext(&user, &security_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, security_context | SECURITY_LOCAL_USERID_CHANGE);
	if (disable_in_database())
		ereport(NOTICE,
				(errmsg("new sessions of database \"%s\" no longer load gpujoin",
						get_database_name(MyDatabaseId))));
	SetUserIdAndSecContext(user, security_context);
}

void
gj_preload_init(void)
{
	CacheRegisterSyscacheCallback(PROCOID, forget_presence, (Datum) 0);
	previous_object_access_hook = object_access_hook;
	object_access_hook = object_access;
}
