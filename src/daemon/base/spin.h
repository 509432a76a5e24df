/*
 * spin.h
 *	  Polls for a moment before a thread sleeps: waking a thread takes longer than most of what
 *	  threads wait for while a run starts or ends.
 */
#ifndef GJ_DAEMON_BASE_SPIN_H
#define GJ_DAEMON_BASE_SPIN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Microseconds of the monotonic clock. */
extern int64_t gj_now_us(void);

typedef struct GjSpin
{
	int64_t		end_us;			/* gj_now_us(); 0: do not look */
} GjSpin;

/* A run begins (1) or ends (-1): they share the processors. */
extern void gj_spin_count(int runs);

/* True if there are processors (GJ_SPIN_PROCESSORS) for so many runs more. */
extern bool gj_spin_allowed(uint32_t more);

/* Begins to look, for so many microseconds; not at all if that is not allowed. */
extern GjSpin gj_spin_start(uint32_t us);

/* False: the time is over. */
extern bool gj_spin_on(const GjSpin *spin);

/* Looks for something to come, as poll() does. */
extern int	gj_spin_poll(struct pollfd *fds, uint32_t n, uint32_t us);

/* Looks for an atomic word to be another one than `seen`. */
extern void gj_spin_while(const uint32_t *word, uint32_t seen, uint32_t us);

#endif							/* GJ_DAEMON_BASE_SPIN_H */
