/*
 * status.h
 *	  What gpujoind says of itself and of its devices, for views.
 */
#ifndef GJ_CLIENT_STATUS_H
#define GJ_CLIENT_STATUS_H

#include "client.h"

/* palloc'd as a whole */
typedef struct GjStatusReport
{
	bool		answered;		/* by gpujoind; else `failure` is why not */
	GjFailure	failure;
	uint32		cuda_driver;	/* as in WELCOME, if it has answered */
	uint32		cuda_runtime;
	int			ndevices;
	/*
	 * Ready ones first.  Where there is no GPU, or no answer, the last one is GPUs as such: without
	 * ordinal and name, and with the reason.
	 */
	GjMsgDevice *devices;
} GjStatusReport;

/*
 * Asks gpujoind, and starts it only if gpujoin.device wants a device.  A WARNING if it is there and
 * does not answer.
 */
extern GjStatusReport *gj_status_read(void);

#endif							/* GJ_CLIENT_STATUS_H */
