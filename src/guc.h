/*
 * guc.h
 *	  Every setting of gpujoin.
 */
#ifndef GJ_GUC_H
#define GJ_GUC_H

#include "nodes/pg_list.h"

/* gpujoin.device */
typedef enum GjDeviceSetting
{
	GJ_SET_DEVICE_AUTO,			/* cuda where there is a GPU, else off */
	GJ_SET_DEVICE_CUDA,
	GJ_SET_DEVICE_CPU,
	GJ_SET_DEVICE_OFF
} GjDeviceSetting;

/* gpujoin.algorithm */
typedef enum GjAlgorithmSetting
{
	GJ_SET_ALGORITHM_AUTO,
	GJ_SET_ALGORITHM_HASH,
	GJ_SET_ALGORITHM_SORT_MERGE,
	GJ_SET_ALGORITHM_NESTED_LOOP
} GjAlgorithmSetting;

/* gpujoin.late_columns */
typedef enum GjLateColumns
{
	GJ_LATE_AUTO,				/* where few rows come back */
	GJ_LATE_ON,					/* wherever it can be done */
	GJ_LATE_OFF
} GjLateColumns;

/* gpujoin.explain_reasons */
typedef enum GjExplainReasons
{
	GJ_REASONS_OFF,
	GJ_REASONS_VERBOSE,			/* with EXPLAIN (VERBOSE) */
	GJ_REASONS_ON				/* with each EXPLAIN */
} GjExplainReasons;

/* gpujoin.log_fallbacks */
typedef enum GjLogFallbacks
{
	GJ_LOG_FALLBACKS_OFF,
	GJ_LOG_FALLBACKS_LOG,
	GJ_LOG_FALLBACKS_WARNING
} GjLogFallbacks;

/* Whose sessions a limit counts together: those that it is set for. */
typedef enum GjScope
{
	GJ_SCOPE_SERVER,			/* postgresql.conf, ALTER ROLE ALL */
	GJ_SCOPE_DATABASE,
	GJ_SCOPE_ROLE,				/* ALTER ROLE, and SET */
	GJ_SCOPE_ROLE_IN_DATABASE
} GjScope;

extern bool gj_enabled;			/* gpujoin.enabled */
extern int	gj_device;			/* gpujoin.device, GjDeviceSetting */
extern bool gj_force;			/* gpujoin.force */
extern int	gj_algorithm;		/* gpujoin.algorithm, GjAlgorithmSetting */
extern int	gj_loader_workers;	/* gpujoin.loader_workers, -1 = automatic */
extern int	gj_device_memory_limit; /* gpujoin.device_memory_limit, MB, 0 = none */
extern int	gj_max_device_memory;	/* gpujoin.max_device_memory, MB, 0 = no limit */
extern GjScope gj_max_device_memory_scope;
extern int	gj_max_running_queries; /* gpujoin.max_running_queries, -1 = no limit, 0 = none */
extern GjScope gj_max_running_queries_scope;
extern char *gj_excluded_tables;	/* gpujoin.excluded_tables, "" = none */
extern char *gj_devices;		/* gpujoin.devices, "" = all; the server's */
extern int	gj_cpu_devices;		/* gpujoin.cpu_devices; the server's */
extern int	gj_cpu_threads;		/* gpujoin.cpu_threads, 0 = as many as processors; the server's */
extern int	gj_cpu_memory;		/* gpujoin.cpu_memory, MB, 0 = half of the host's; the server's */
extern int	gj_gpu_devices;		/* gpujoin.gpu_devices; the server's */
extern int	gj_daemon_timeout;	/* gpujoin.daemon_timeout, ms, 0 = none; the launcher's */
extern int	gj_devices_per_query;	/* gpujoin.devices_per_query, 0 = by size */
extern int	gj_exchange;		/* gpujoin.exchange, GjExchangeMode */
extern bool gj_keep_exchanged;	/* gpujoin.keep_exchanged */
extern int	gj_spill_memory;	/* gpujoin.spill_memory, MB */
extern int	gj_cache_size;		/* gpujoin.cache_size, MB, -1 = the default */
extern int	gj_auto_prewarm;	/* gpujoin.auto_prewarm, MB, 0 = off */
extern int	gj_set_algorithm;	/* gpujoin.set_algorithm, GjSetAlgorithm */
extern int	gj_set_device_min_elements; /* gpujoin.set_device_min_elements */
extern int	gj_set_code;		/* gpujoin.set_code, GjIntegersCode */
extern int	gj_explain_reasons; /* gpujoin.explain_reasons, GjExplainReasons */
extern int	gj_late_columns;	/* gpujoin.late_columns, GjLateColumns */
extern int	gj_log_fallbacks;	/* gpujoin.log_fallbacks, GjLogFallbacks */
extern bool gj_unnest;			/* gpujoin.unnest */
extern bool gj_forbid_fallback; /* gpujoin.forbid_fallback */
extern int	gj_fail_at;			/* gpujoin.fail_at, GjFailPoint */
extern char *gj_save_program;	/* gpujoin.save_program, "" = off */

/* How gpujoin.set_algorithm calls a GjSetAlgorithm. */
extern const char *gj_set_algorithm_name(int algorithm);

/* False if settings, for which *reason is the name of one, forbid to use a device at all. */
extern bool gj_may_offload(const char **reason);

/* Bytes that a query may have on a device; 0: no limit but that of the device. */
extern uint64 gj_query_memory(void);

/*
 * Splits gpujoin.excluded_tables into lists of String nodes: a name, or schema and name.  False:
 * not valid.
 */
extern bool gj_split_table_names(const char *value, List **names);

/*
 * The table of such a name, invalid if there is none.  Whether the user may use its schema does
 * not matter.
 */
extern Oid	gj_find_table(const List *name);

/* How gpujoin.device calls a GjDeviceSetting. */
extern const char *gj_device_setting_name(int device);

extern void gj_guc_init(void);

#endif							/* GJ_GUC_H */
