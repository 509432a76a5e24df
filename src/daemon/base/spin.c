/*
 * spin.c
 *	  Polls for a moment before a thread sleeps; see spin.h.
 */
#define _GNU_SOURCE
#include "spin.h"

#include <sched.h>
#include <time.h>

#include "wire/messages.h"
#include "wire/processors.h"

int64_t
gj_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static uint32_t nruns;			/* atomic */

void
gj_spin_count(int runs)
{
	__atomic_add_fetch(&nruns, (uint32_t) runs, __ATOMIC_RELAXED);
}

bool
gj_spin_allowed(uint32_t more)
{
	uint32_t	n = __atomic_load_n(&nruns, __ATOMIC_RELAXED) + more;

	return (uint32_t) gj_count_processors() / GJ_SPIN_PROCESSORS >= (n > 0 ? n : 1);
}

GjSpin
gj_spin_start(uint32_t us)
{
	GjSpin		spin = {0};

	if (gj_spin_allowed(0))
		spin.end_us = gj_now_us() + us;
	return spin;
}

bool
gj_spin_on(const GjSpin *spin)
{
	if (spin->end_us == 0 || gj_now_us() >= spin->end_us)
		return false;
	/* somebody may have nowhere else to run */
	sched_yield();
	return true;
}

int
gj_spin_poll(struct pollfd *fds, uint32_t n, uint32_t us)
{
	GjSpin		spin = gj_spin_start(us);
	int			ready;

	do
		ready = poll(fds, n, 0);
	while (ready == 0 && gj_spin_on(&spin));
	return ready;
}

void
gj_spin_while(const uint32_t *word, uint32_t seen, uint32_t us)
{
	GjSpin		spin = gj_spin_start(us);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen && gj_spin_on(&spin))
		;
}
