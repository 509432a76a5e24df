/*
 * crash.h
 *	  What the log says if a fault ends gpujoind: which programs were at work, their phases, and
 *	  the last error of a device.
 *
 * All of it is kept in memory that a signal handler can read.
 */
#ifndef GJ_DAEMON_BASE_CRASH_H
#define GJ_DAEMON_BASE_CRASH_H

/* Bytes of what is said of a program. */
#define GJ_SHAPE_BYTES		256

/* Reports faults from now on, and calls of exit() that nobody expects. */
extern void gj_crash_report(void);

/* This thread can report that its stack is full. */
extern void gj_crash_guard_stack(void);

/* A run begins: its number, for the others; -1: there are too many to be told of. */
extern int	gj_crash_begin(const char *shape);
/* What it does from now on; a constant. */
extern void gj_crash_phase(int run, const char *phase);
extern void gj_crash_end(int run);

/* Keeps the text of a device's error. */
extern void gj_crash_device_error(const char *text);

#endif							/* GJ_DAEMON_BASE_CRASH_H */
