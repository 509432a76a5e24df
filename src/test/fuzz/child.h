/*
 * child.h
 *	  A gpujoind that is a child of the fuzzer, in a folder of its own under /tmp.
 */
#ifndef GJ_TEST_FUZZ_CHILD_H
#define GJ_TEST_FUZZ_CHILD_H

#include <stdint.h>

/* Starts the program and waits until it listens; its folder becomes this process' own. */
extern void fuzz_start_daemon(const char *path);

/* Ends the process if gpujoind has ended. */
extern void fuzz_check_alive(void);

/* Ends gpujoind as the launcher does; with a leak sanitizer it then tells what leaked. */
extern void fuzz_stop_daemon(void);

/* Descriptors of gpujoind but rings, which wait for the next run, and its own memory in bytes. */
extern uint32_t fuzz_count_files(void);
extern uint64_t fuzz_count_memory(void);

#endif							/* GJ_TEST_FUZZ_CHILD_H */
