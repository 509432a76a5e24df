/*
 * reasons.h
 *	  Why a program did not give a result on the device.
 *
 * The same codes travel in GJ_MSG_ERROR, name the fallback reason in EXPLAIN
 * ANALYZE and are counted in gpujoin_stat.  Append only: the counters in the
 * daemon's journal are indexed by code.
 */
#ifndef GJ_WIRE_REASONS_H
#define GJ_WIRE_REASONS_H

/* code, text shown to users */
#define GJ_REASONS(X) \
	X(GJ_OK, "completed") \
	X(GJ_NO_DAEMON, "gpujoind is not running") \
	X(GJ_ABI_MISMATCH, "gpujoind belongs to another version of gpujoin") \
	X(GJ_NO_DEVICE, "no such device") \
	X(GJ_DEVICE_ERROR, "device error") \
	X(GJ_DEVICE_LOST, "connection to gpujoind lost") \
	X(GJ_OUT_OF_MEMORY, "out of device memory") \
	X(GJ_OUT_OF_HOST_MEMORY, "out of host memory") \
	X(GJ_BUSY, "device memory is in use by other sessions") \
	X(GJ_OVERFLOW, "value out of range") \
	X(GJ_DIVISION_BY_ZERO, "division by zero") \
	X(GJ_UNKNOWN_VALUE, "a value that the device does not know") \
	X(GJ_TOO_LARGE, "too large for the device") \
	X(GJ_BAD_PROGRAM, "invalid program") \
	X(GJ_REFUSED, "program refused because it ended gpujoind before") \
	X(GJ_CANCELLED, "cancelled") \
	X(GJ_INJECTED, "failure injected by gpujoin.fail_at") \
	X(GJ_NOT_NOW, "not possible in this transaction or session") \
	X(GJ_DISABLED, "gpujoin is disabled") \
	X(GJ_LOADER_LOST, "a loader worker has ended early") \
	X(GJ_LIMITED, "limit of the role or database reached")

typedef enum GjStatus
{
#define GJ_REASON_CODE(code, text) code,
	GJ_REASONS(GJ_REASON_CODE)
#undef GJ_REASON_CODE
	GJ_NREASONS
} GjStatus;

/* Text of a code; never NULL. */
static inline const char *
gj_reason_text(unsigned code)
{
	static const char *const text[] = {
#define GJ_REASON_TEXT(code, text) text,
		GJ_REASONS(GJ_REASON_TEXT)
#undef GJ_REASON_TEXT
	};

	return code < GJ_NREASONS ? text[code] : "unknown reason";
}

#endif							/* GJ_WIRE_REASONS_H */
