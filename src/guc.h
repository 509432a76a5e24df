/*
 * guc.h
 *	  Every setting of gpujoin.
 */
#ifndef GJ_GUC_H
#define GJ_GUC_H

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

extern bool gj_enabled;			/* gpujoin.enabled */
extern int	gj_device;			/* gpujoin.device, GjDeviceSetting */
extern bool gj_force;			/* gpujoin.force */
extern int	gj_algorithm;		/* gpujoin.algorithm, GjAlgorithmSetting */
extern int	gj_loader_workers;	/* gpujoin.loader_workers, -1 = automatic */
extern int	gj_device_memory_limit; /* gpujoin.device_memory_limit, MB, 0 = none */
extern char *gj_devices;		/* gpujoin.devices, "" = all; the server's */
extern int	gj_cpu_devices;		/* gpujoin.cpu_devices; the server's */
extern int	gj_gpu_devices;		/* gpujoin.gpu_devices; the server's */
extern int	gj_daemon_timeout;	/* gpujoin.daemon_timeout, ms, 0 = none; the launcher's */
extern int	gj_devices_per_query;	/* gpujoin.devices_per_query, 0 = by size */
extern int	gj_exchange;		/* gpujoin.exchange, GjExchangeMode */
extern bool gj_keep_exchanged;	/* gpujoin.keep_exchanged */
extern int	gj_spill_memory;	/* gpujoin.spill_memory, MB */
extern int	gj_cache_size;		/* gpujoin.cache_size, MB, -1 = the default */
extern int	gj_set_algorithm;	/* gpujoin.set_algorithm, GjSetAlgorithm */
extern int	gj_set_device_min_elements; /* gpujoin.set_device_min_elements */
extern int	gj_explain_reasons; /* gpujoin.explain_reasons, GjExplainReasons */
extern int	gj_log_fallbacks;	/* gpujoin.log_fallbacks, GjLogFallbacks */
extern bool gj_unnest;			/* gpujoin.unnest */
extern bool gj_forbid_fallback; /* gpujoin.forbid_fallback */
extern int	gj_fail_at;			/* gpujoin.fail_at, GjFailPoint */
extern char *gj_save_program;	/* gpujoin.save_program, "" = off */

/* How gpujoin.set_algorithm calls a GjSetAlgorithm. */
extern const char *gj_set_algorithm_name(int algorithm);

extern void gj_guc_init(void);

#endif							/* GJ_GUC_H */
