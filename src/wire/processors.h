/*
 * processors.h
 *	  How many processors this process may use, which containers and taskset may have made fewer.
 *
 * For files that define _GNU_SOURCE, as PostgreSQL's flags do.
 */
#ifndef GJ_PROCESSORS_H
#define GJ_PROCESSORS_H

#include <sched.h>

/* At least 1.  Asked once: a process keeps the answer. */
static inline int
gj_count_processors(void)
{
	static int	known;			/* atomic; 0: nobody has asked */
	int			n = __atomic_load_n(&known, __ATOMIC_RELAXED);
	cpu_set_t	mine;

	if (n > 0)
		return n;
	/* more than such a set can hold are many */
	n = sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) : CPU_SETSIZE;
	if (n < 1)
		n = 1;
	__atomic_store_n(&known, n, __ATOMIC_RELAXED);
	return n;
}

#endif							/* GJ_PROCESSORS_H */
