/*
 * spin.c
 *	  Looking for something to happen before one sleeps; see spin.h.
 */
#define _GNU_SOURCE
#include "spin.h"

#include <sched.h>
#include <time.h>

#include "../wire/messages.h"

static int64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The processors that the process may use. */
static int
count_processors(void)
{
	static int	known;			/* atomic; 0: nobody has asked */
	int			n = __atomic_load_n(&known, __ATOMIC_RELAXED);
	cpu_set_t	mine;

	if (n == 0)
	{
		/* with more than such a set can hold there are many */
		n = sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) : CPU_SETSIZE;
		__atomic_store_n(&known, n, __ATOMIC_RELAXED);
	}
	return n;
}

GjSpin
gj_spin_start(uint32_t us)
{
	GjSpin		spin = {0};

	if (count_processors() >= GJ_SPIN_PROCESSORS)
		spin.end_us = now_us() + us;
	return spin;
}

bool
gj_spin_on(const GjSpin *spin)
{
	if (spin->end_us == 0 || now_us() >= spin->end_us)
		return false;
	/* somebody may have nowhere else to run */
	sched_yield();
	return true;
}

void
gj_spin_while(const uint32_t *word, uint32_t seen, uint32_t us)
{
	GjSpin		spin = gj_spin_start(us);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen && gj_spin_on(&spin))
		;
}
