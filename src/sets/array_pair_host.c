/*
 * array_pair_host.c
 *	  Two integer arrays as sets, in the process: src/integers with PostgreSQL's memory.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "sets/array_pair.h"

static void *
allocate(size_t nbytes)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, nbytes);
}

static void
look_at_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

static const GjIntegersHost host = {allocate, pfree, look_at_interrupts};

void
gj_array_pair_in_process(GjArrayPair *pair)
{
	GjIntegersPair integers;

	integers.width = gj_element_width(pair->kind);
	integers.operation = pair->operation;
	integers.want = pair->want;
	integers.result = pair->result;
	for (int side = 0; side < 2; side++)
	{
		integers.input[side] = pair->input[side].data;
		integers.n[side] = pair->input[side].n;
		integers.sizes[side] = pair->sizes[side];
	}
	/* an error is raised where there is no memory */
	(void) gj_integers_pair(&integers, &host);
	pair->count = integers.count;
	pair->distinct[0] = integers.distinct[0];
	pair->distinct[1] = integers.distinct[1];
}

uint32
gj_sort_elements(GjKind kind, void *elements, uint32 n)
{
	uint64_t	size = n;

	(void) gj_integers_make_set(gj_element_width(kind), elements, &size, &host);
	return size;
}
