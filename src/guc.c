/*
 * guc.c
 *	  Every setting of gpujoin.
 *
 * Settings can be registered by a session that loads the library late, so none is
 * PGC_POSTMASTER.
 */
#include "postgres.h"

#include <limits.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "compat.h"
#include "guc.h"
#include "integers/integers.h"
#include "wire/messages.h"

bool		gj_enabled = true;
int			gj_device = GJ_SET_DEVICE_AUTO;
bool		gj_force = false;
int			gj_algorithm = GJ_SET_ALGORITHM_AUTO;
int			gj_loader_workers = -1;
int			gj_device_memory_limit = 0;
int			gj_max_device_memory = 0;
GjScope		gj_max_device_memory_scope = GJ_SCOPE_SERVER;
int			gj_max_running_queries = -1;
GjScope		gj_max_running_queries_scope = GJ_SCOPE_SERVER;
char	   *gj_excluded_tables = NULL;
char	   *gj_devices = NULL;
int			gj_cpu_devices = 1;
int			gj_cpu_threads = 0;
int			gj_cpu_memory = 0;
int			gj_gpu_devices = 1;
int			gj_daemon_timeout = 2000;
int			gj_devices_per_query = 0;
int			gj_exchange = GJ_EXCHANGE_AUTO;
bool		gj_keep_exchanged = true;
int			gj_spill_memory = 1024;
int			gj_cache_size = -1;
int			gj_auto_prewarm = 0;
int			gj_set_algorithm = GJ_SETS_AUTO;
int			gj_set_device_min_elements = 600000;
int			gj_set_code = GJ_CODE_AUTO;
int			gj_explain_reasons = GJ_REASONS_VERBOSE;
int			gj_late_columns = GJ_LATE_AUTO;
int			gj_log_fallbacks = GJ_LOG_FALLBACKS_OFF;
bool		gj_unnest = true;
bool		gj_forbid_fallback = false;
int			gj_fail_at = GJ_FAIL_NEVER;
char	   *gj_save_program = NULL;

static const struct config_enum_entry exchange_options[] = {
	{"auto", GJ_EXCHANGE_AUTO, false},
	{"on", GJ_EXCHANGE_ON, false},
	{"off", GJ_EXCHANGE_OFF, false},
	{"ring", GJ_EXCHANGE_RING, false},
	{"ranges", GJ_EXCHANGE_RANGES, false},
	{NULL, 0, false}
};

static const struct config_enum_entry late_columns_options[] = {
	{"auto", GJ_LATE_AUTO, false},
	{"on", GJ_LATE_ON, false},
	{"off", GJ_LATE_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry device_options[] = {
	{"auto", GJ_SET_DEVICE_AUTO, false},
	{"cuda", GJ_SET_DEVICE_CUDA, false},
	{"cpu", GJ_SET_DEVICE_CPU, false},
	{"off", GJ_SET_DEVICE_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry algorithm_options[] = {
	{"auto", GJ_SET_ALGORITHM_AUTO, false},
	{"hash", GJ_SET_ALGORITHM_HASH, false},
	{"sort_merge", GJ_SET_ALGORITHM_SORT_MERGE, false},
	{"nested_loop", GJ_SET_ALGORITHM_NESTED_LOOP, false},
	{NULL, 0, false}
};

static const struct config_enum_entry set_algorithm_options[] = {
	{"auto", GJ_SETS_AUTO, false},
	{"merge_path", GJ_SETS_MERGE_PATH, false},
	{"binary_search", GJ_SETS_BINARY_SEARCH, false},
	{"hash", GJ_SETS_HASH, false},
	{"bitmap", GJ_SETS_BITMAP, false},
	{"inverted_index", GJ_SETS_INVERTED_INDEX, false},
	{"matrix", GJ_SETS_MATRIX, false},
	{NULL, 0, false}
};

static const struct config_enum_entry set_code_options[] = {
	{"auto", GJ_CODE_AUTO, false},
	{"plain", GJ_CODE_PLAIN, false},
	{"neon", GJ_CODE_NEON, false},
	{"avx2", GJ_CODE_AVX2, false},
	{"avx512", GJ_CODE_AVX512, false},
	{NULL, 0, false}
};

static const struct config_enum_entry explain_reasons_options[] = {
	{"off", GJ_REASONS_OFF, false},
	{"verbose", GJ_REASONS_VERBOSE, false},
	{"on", GJ_REASONS_ON, false},
	{NULL, 0, false}
};

static const struct config_enum_entry log_fallbacks_options[] = {
	{"off", GJ_LOG_FALLBACKS_OFF, false},
	{"log", GJ_LOG_FALLBACKS_LOG, false},
	{"warning", GJ_LOG_FALLBACKS_WARNING, false},
	{NULL, 0, false}
};

static const struct config_enum_entry fail_at_options[] = {
	{"never", GJ_FAIL_NEVER, false},
	{"connect", GJ_FAIL_CONNECT, false},
	{"submit", GJ_FAIL_SUBMIT, false},
	{"answer", GJ_FAIL_ANSWER, false},
	{"memory", GJ_FAIL_MEMORY, false},
	{"build", GJ_FAIL_BUILD, false},
	{"probe", GJ_FAIL_PROBE, false},
	{"overflow", GJ_FAIL_OVERFLOW, false},
	{"output", GJ_FAIL_OUTPUT, false},
	{"crash", GJ_FAIL_CRASH, false},
	{"stall", GJ_FAIL_STALL, false},
	{NULL, 0, false}
};

/* Register the settings that users choose with. */
static void
define_user_settings(void)
{
	DefineCustomBoolVariable("gpujoin.enabled",
							 "Enables joins, aggregates and set operations on a device.",
							 NULL,
							 &gj_enabled,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.device",
							 "Selects the kind of device to use.",
							 "\"auto\" is \"cuda\" on a machine with an NVIDIA GPU, else \"off\".",
							 &gj_device,
							 GJ_SET_DEVICE_AUTO,
							 device_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("gpujoin.force",
							 "Uses the device wherever it can run a query at all, whatever it costs.",
							 "This is useful for testing.",
							 &gj_force,
							 false,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.algorithm",
							 "Selects the join algorithm of the device.",
							 "A join that it cannot do (a hash join needs an equality, a sort-merge join an equality or a range) is done as under \"auto\".",
							 &gj_algorithm,
							 GJ_SET_ALGORITHM_AUTO,
							 algorithm_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.devices_per_query",
							"Sets the number of devices that a query may use.",
							"Zero means as many as its size is worth.",
							&gj_devices_per_query,
							0, 0, 16,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.exchange",
							 "Selects whether the devices of a query exchange rows.",
							 "Then each of them has only its part of a large build side, by its join keys; blocks of a nested loop's go round. auto decides by size.",
							 &gj_exchange,
							 GJ_EXCHANGE_AUTO, exchange_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("gpujoin.keep_exchanged",
							 "Keeps rows that devices have exchanged before, where there is room.",
							 "The next query that exchanges the same rows finds them where it needs them.",
							 &gj_keep_exchanged,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.loader_workers",
							"Sets the number of parallel workers that help a query to load tables.",
							"They come out of max_parallel_workers. -1 makes a process for four in five cores, up to 16 with the session's own. Zero means none.",
							&gj_loader_workers,
							-1, -1, GJ_MAX_LOADERS - 1,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.explain_reasons",
							 "Selects which EXPLAIN says why parts of a query are not offloaded.",
							 "\"verbose\" is EXPLAIN (VERBOSE), \"on\" any.",
							 &gj_explain_reasons,
							 GJ_REASONS_VERBOSE, explain_reasons_options,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("gpujoin.unnest",
							 "Lets the planner consider joins in the place of correlated subqueries and NOT IN.",
							 "The query is planned in both ways, and the cheaper plan is taken.",
							 &gj_unnest,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.late_columns",
							 "Selects whether columns that a device would only carry are left out.",
							 "They are fetched for the rows that come back. \"auto\": long ones of few rows.",
							 &gj_late_columns,
							 GJ_LATE_AUTO, late_columns_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.log_fallbacks",
							 "Selects whether a message says that a device could not run a query.",
							 "PostgreSQL's own plan has run in its place. \"log\" writes to the server's log, \"warning\" tells the client, too.",
							 &gj_log_fallbacks,
							 GJ_LOG_FALLBACKS_OFF, log_fallbacks_options,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.set_algorithm",
							 "Selects the algorithm of set operations on the device.",
							 NULL,
							 &gj_set_algorithm,
							 GJ_SETS_AUTO,
							 set_algorithm_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.set_device_min_elements",
							"Sets the number of elements from which set operations use the device.",
							"The elements of both arrays, or of all sets, count. Smaller ones stay in the session's own process, and so do two sorted arrays in memory, unless this is 0.",
							&gj_set_device_min_elements,
							600000, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
}

static void
assign_set_code(int code, void *extra)
{
	gj_integers_use((GjIntegersCode) code);
}

/* ---- limits that count for those for whom they are set */

/* Keep where a limit comes from. */
static bool
check_limit(int *value, void **extra, GucSource source)
{
	GjScope    *scope = gj_guc_malloc(sizeof(GjScope));

	if (scope == NULL)
		return false;
	switch (source)
	{
		case PGC_S_DATABASE:
			*scope = GJ_SCOPE_DATABASE;
			break;
		case PGC_S_DATABASE_USER:
			*scope = GJ_SCOPE_ROLE_IN_DATABASE;
			break;
		case PGC_S_USER:
		case PGC_S_CLIENT:
		case PGC_S_OVERRIDE:
		case PGC_S_INTERACTIVE:
		case PGC_S_SESSION:
			*scope = GJ_SCOPE_ROLE;
			break;
		default:
			*scope = GJ_SCOPE_SERVER;
	}
	*extra = scope;
	return true;
}

static void
assign_max_device_memory(int value, void *extra)
{
	gj_max_device_memory_scope = *(GjScope *) extra;
}

static void
assign_max_running_queries(int value, void *extra)
{
	gj_max_running_queries_scope = *(GjScope *) extra;
}

/* ---- tables that are left to PostgreSQL */

/* Return where the next name of a list ends: at a comma that is not in quotes, or at the end. */
static char *
end_of_name(char *name)
{
	bool		quoted = false;

	for (; *name != '\0' && (quoted || *name != ','); name++)
		quoted ^= *name == '"';
	return name;
}

bool
gj_split_table_names(const char *value, List **names)
{
	char	   *name = pstrdup(value);

	*names = NIL;
	if (name[strspn(name, " \t\n")] == '\0')
		return true;
	for (;;)
	{
		char	   *end = end_of_name(name);
		bool		last = *end == '\0';
		List	   *parts;
		ListCell   *lc;

		*end = '\0';
		if (!SplitIdentifierString(name, '.', &parts) || parts == NIL || list_length(parts) > 2)
			return false;
		foreach(lc, parts)
			lfirst(lc) = makeString(lfirst(lc));
		*names = lappend(*names, parts);
		if (last)
			return true;
		name = end + 1;
	}
}

Oid
gj_find_table(const List *name)
{
	Oid			schema;

	if (list_length(name) == 1)
		return RelnameGetRelid(strVal(linitial(name)));
	schema = get_namespace_oid(strVal(linitial(name)), true);
	return OidIsValid(schema) ? get_relname_relid(strVal(lsecond(name)), schema) : InvalidOid;
}

/* Accept a list of tables.  Those of SET must exist; others may be of another database. */
static bool
check_excluded_tables(char **value, void **extra, GucSource source)
{
	List	   *names;
	ListCell   *lc;

	if (!gj_split_table_names(*value, &names))
	{
		GUC_check_errdetail("A list of tables, each with its schema or without, is expected.");
		return false;
	}
	if (source < PGC_S_INTERACTIVE || source == PGC_S_TEST || !IsTransactionState() ||
		InitializingParallelWorker)
		return true;
	foreach(lc, names)
	{
		if (!OidIsValid(gj_find_table(lfirst(lc))))
		{
			GUC_check_errdetail("There is no table \"%s\".", NameListToString(lfirst(lc)));
			return false;
		}
	}
	return true;
}

/* Accept a list of ordinals: "0, 2,3". */
static bool
check_devices(char **value, void **extra, GucSource source)
{
	const char *at = *value + strspn(*value, " ");

	while (*at != '\0')
	{
		char	   *end;
		long		ordinal = strtol(at, &end, 10);

		if (end == at || ordinal < 0 || ordinal > 63)
			break;
		end += strspn(end, " ");
		if (*end == '\0')
			return true;
		if (*end != ',')
			break;
		at = end + 1;
	}
	if (*value + strspn(*value, " ") == at && *at == '\0')
		return true;
	GUC_check_errdetail("A list of numbers below 64, separated by commas, is expected.");
	return false;
}

/*
 * Register the settings of the server: the launcher reads them, and hands most to gpujoind when
 * that starts.
 */
static void
define_server_settings(void)
{
	DefineCustomStringVariable("gpujoin.devices",
							   "Sets the GPUs to use, by number.",
							   "A list such as \"0,1\". Empty means all. A change takes effect when gpujoind starts.",
							   &gj_devices,
							   "",
							   PGC_SIGHUP, 0,
							   check_devices, NULL, NULL);

	DefineCustomIntVariable("gpujoin.cpu_devices",
							"Sets the number of devices that the cpu device pretends to be, for tests.",
							"A change takes effect when gpujoind starts.",
							&gj_cpu_devices,
							1, 1, 16,
							PGC_SIGHUP, GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.cpu_threads",
							"Sets the number of threads of the cpu device.",
							"Zero means as many as the server may use processors. A change takes effect when gpujoind starts.",
							&gj_cpu_threads,
							0, 0, 1024,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.cpu_memory",
							"Sets the memory of the cpu device.",
							"Zero means half of the machine's. A change takes effect when gpujoind starts.",
							&gj_cpu_memory,
							0, 0, 1000000,
							PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.gpu_devices",
							"Sets the number of devices that each GPU pretends to be, for tests.",
							"A change takes effect when gpujoind starts.",
							&gj_gpu_devices,
							1, 1, 16,
							PGC_SIGHUP, GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.daemon_timeout",
							"Sets the time without a sign of life after which gpujoind is restarted.",
							"Less than a second counts as a second. Zero turns this off.",
							&gj_daemon_timeout,
							2000, 0, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

/* Register the settings that only a superuser may change. */
static void
define_superuser_settings(void)
{
	DefineCustomIntVariable("gpujoin.device_memory_limit",
							"Sets the device memory that a query may use.",
							"Zero means no limit but that of the device.",
							&gj_device_memory_limit,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.max_device_memory",
							"Sets the device memory that the queries of a role or database may use together.",
							"It counts for those for whom it is set. Zero means no limit.",
							&gj_max_device_memory,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB | GUC_EXPLAIN,
							check_limit, assign_max_device_memory, NULL);

	DefineCustomIntVariable("gpujoin.max_running_queries",
							"Sets the number of queries of a role or database that may use devices at once.",
							"It counts for those for whom it is set. -1 means no limit; with zero nothing is offloaded.",
							&gj_max_running_queries,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_EXPLAIN,
							check_limit, assign_max_running_queries, NULL);

	DefineCustomStringVariable("gpujoin.excluded_tables",
							   "Sets the tables whose queries PostgreSQL runs itself.",
							   "A list of names, with schemas or without. Nothing that reads one of them, or a partition, is offloaded.",
							   &gj_excluded_tables,
							   "",
							   PGC_SUSET, GUC_LIST_INPUT | GUC_EXPLAIN,
							   check_excluded_tables, NULL, NULL);

	DefineCustomIntVariable("gpujoin.spill_memory",
							"Sets the host memory that a query may use for what does not fit the device.",
							"What exceeds it goes to temporary files, within temp_file_limit; intersections of families come in parts.",
							&gj_spill_memory,
							1024, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.cache_size",
							"Sets the memory of each device that table columns may stay in between queries.",
							"Zero keeps nothing; -1 means 72 % of a GPU's free memory, or 256 MB of the cpu device.",
							&gj_cache_size,
							-1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.auto_prewarm",
							"Sets the size of tables that are loaded in the background if queries would use a device then.",
							"Such queries are planned twice. Zero turns this off.",
							&gj_auto_prewarm,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("gpujoin.forbid_fallback",
							 "Makes it an error if PostgreSQL does what a device should have done, for tests.",
							 NULL,
							 &gj_forbid_fallback,
							 false,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.fail_at",
							 "Makes the device fail at a chosen point, for tests.",
							 NULL,
							 &gj_fail_at,
							 GJ_FAIL_NEVER,
							 fail_at_options,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpujoin.set_code",
							 "Selects the processor's instructions for set functions in the session's process, for tests.",
							 "\"auto\" is the best that the processor has; so are those that it does not have.",
							 &gj_set_code,
							 GJ_CODE_AUTO,
							 set_code_options,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE,
							 NULL, assign_set_code, NULL);

	DefineCustomStringVariable("gpujoin.save_program",
							   "Sets the file or directory that keeps programs and their input, for gpujoind --run.",
							   "A relative path starts at the data directory. Each program overwrites the file, or gets one of its own in the directory. Empty means none.",
							   &gj_save_program,
							   "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}

bool
gj_may_offload(const char **reason)
{
	*reason = !gj_enabled ? "gpujoin.enabled is off" :
		gj_device == GJ_SET_DEVICE_OFF ? "gpujoin.device is off" :
		gj_max_running_queries == 0 ? "gpujoin.max_running_queries is 0" : NULL;
	return *reason == NULL;
}

uint64
gj_query_memory(void)
{
	int			megabytes = gj_device_memory_limit;

	if (gj_max_device_memory > 0 && (megabytes == 0 || gj_max_device_memory < megabytes))
		megabytes = gj_max_device_memory;
	return (uint64) megabytes * 1024 * 1024;
}

/* The name of an option's value. */
static const char *
option_name(const struct config_enum_entry *options, int value)
{
	for (const struct config_enum_entry *option = options; option->name; option++)
		if (option->val == value)
			return option->name;
	return "?";
}

const char *
gj_set_algorithm_name(int algorithm)
{
	return option_name(set_algorithm_options, algorithm);
}

const char *
gj_device_setting_name(int device)
{
	return option_name(device_options, device);
}

void
gj_guc_init(void)
{
	define_user_settings();
	define_server_settings();
	define_superuser_settings();
	MarkGUCPrefixReserved("gpujoin");
}
