/*
 * device_info.h
 *	  Which device the settings ask for, and a connection to its gpujoind.
 */
#ifndef GJ_CLIENT_DEVICE_INFO_H
#define GJ_CLIENT_DEVICE_INFO_H

#include "connection.h"

/* GjDeviceKind that gpujoin.device asks for. */
extern uint32 gj_device_kind(void);

/* gj_client_device() has found a device and it has not been forgotten. */
extern bool gj_device_known(void);

/*
 * Connects; waits up to `timeout` ms for a gpujoind that is being restarted.  `send` is called for
 * each that answers.
 */
extern GjConnection *gj_connection_open_within(int timeout, GjSendFirst send, void *arg,
											   GjMsgWelcome *welcome, GjFailure *failure);

#endif							/* GJ_CLIENT_DEVICE_INFO_H */
