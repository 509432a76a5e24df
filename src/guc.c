/*
 * guc.c
 *	  Every setting of gpujoin.
 *
 * Settings can be registered by a session that loads the library late, so none is
 * PGC_POSTMASTER.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"
#include "wire/messages.h"

bool		gj_enabled = true;
int			gj_device = GJ_SET_DEVICE_AUTO;
bool		gj_force = false;
int			gj_algorithm = GJ_SET_ALGORITHM_AUTO;
int			gj_loader_workers = -1;
int			gj_device_memory_limit = 0;
char	   *gj_devices = NULL;
int			gj_cpu_devices = 1;
int			gj_gpu_devices = 1;
int			gj_daemon_timeout = 2000;
int			gj_devices_per_query = 0;
int			gj_exchange = GJ_EXCHANGE_AUTO;
bool		gj_keep_exchanged = true;
int			gj_spill_memory = 1024;
int			gj_cache_size = -1;
int			gj_set_algorithm = GJ_SETS_AUTO;
int			gj_set_device_min_elements = 600000;
int			gj_explain_reasons = GJ_REASONS_VERBOSE;
int			gj_log_fallbacks = GJ_LOG_FALLBACKS_OFF;
bool		gj_unnest = true;
bool		gj_forbid_fallback = false;
int			gj_fail_at = GJ_FAIL_NEVER;
char	   *gj_save_program = NULL;

static const struct config_enum_entry exchange_options[] = {
	{"auto", GJ_EXCHANGE_AUTO, false},
	{"on", GJ_EXCHANGE_ON, false},
	{"off", GJ_EXCHANGE_OFF, false},
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
							 "Selects whether the devices of a query exchange rows by their join keys.",
							 "Then each of them builds and probes only its part of a large build side. auto decides by size.",
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
							"The elements of both arrays, or of all sets, count. Smaller ones stay in the session's own process.",
							&gj_set_device_min_elements,
							600000, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
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

	DefineCustomIntVariable("gpujoin.spill_memory",
							"Sets the host memory that a query may use for what does not fit the device.",
							"What exceeds it goes to temporary files, within temp_file_limit; intersections of families come in parts.",
							&gj_spill_memory,
							1024, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpujoin.cache_size",
							"Sets the memory of each device that table columns may stay in between queries.",
							"Zero keeps nothing; -1 means 80 % of a GPU's memory, or 256 MB of the cpu device.",
							&gj_cache_size,
							-1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB,
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

	DefineCustomStringVariable("gpujoin.save_program",
							   "Sets the file or directory that keeps programs and their input, for gpujoind --run.",
							   "A relative path starts at the data directory. Each program overwrites the file, or gets one of its own in the directory. Empty means none.",
							   &gj_save_program,
							   "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}

const char *
gj_set_algorithm_name(int algorithm)
{
	for (const struct config_enum_entry *option = set_algorithm_options; option->name; option++)
		if (option->val == algorithm)
			return option->name;
	return "?";
}

void
gj_guc_init(void)
{
	define_user_settings();
	define_server_settings();
	define_superuser_settings();
	MarkGUCPrefixReserved("gpujoin");
}
