/*
 * test_groups.c
 *	  Bytes of groups on their way to a slot that somebody writes to: no others are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/sink/group.h"
#include "unit.h"

#define NGROUPS		8
#define GROUP_BYTES	16

/* What the slot has after each wait; NULL: what was copied there. */
static const uint64_t *written;
static uint64_t end[NGROUPS];
static uint8_t heap[NGROUPS * GROUP_BYTES];
static bool copied_others;

static GjStatus
copy_out(GjQueue *queue, void *host, const void *device, size_t nbytes)
{
	(void) queue;
	if (nbytes == 0)
		return GJ_OK;
	/* the heap's part of what is copied lies in it */
	if (host == heap + sizeof(heap) / 2)
		copied_others |= (const uint8_t *) device < heap || nbytes > sizeof(heap) ||
			(const uint8_t *) device + nbytes > heap + sizeof(heap);
	else
		memcpy(host, device, nbytes);
	return GJ_OK;
}

static GjStatus
sync_queue(GjQueue *queue)
{
	(void) queue;
	if (written)
		memcpy(end, written, sizeof(end));
	return GJ_OK;
}

/* Copies groups from `first` on; the status, and *n and *nbytes. */
static GjStatus
copy_groups(uint32_t first, uint32_t limit, uint32_t *n, uint32_t *nbytes)
{
	static const GjMemoryOps memory = {.copy_out = copy_out};
	static const GjQueueOps queues = {.sync = sync_queue};
	const GjDeviceOps ops = {.memory = &memory,.queues = &queues};
	uint64_t	heap_end[NGROUPS];
	GjGrouping	grouping = {.heap_used = sizeof(heap),.refs = true};
	GjRun	   *run = calloc(1, sizeof(GjRun));
	uint64_t	base;
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	for (uint32_t i = 0; i < NGROUPS; i++)
		heap_end[i] = (uint64_t) (i + 1) * GROUP_BYTES;
	grouping.groups.heap_end = heap_end;
	grouping.groups.heap = heap;
	*n = NGROUPS - first;
	if (run)
	{
		run->work.ops = &ops;
		run->output.state = &grouping;
		/* any address will do for where they go: nothing is written there */
		status = gj_groups_copy_heap(run, first, n, end, heap + sizeof(heap) / 2, limit, &base,
									 nbytes);
		free(run);
	}
	return status;
}

void
test_groups_heap(void)
{
	static const uint64_t far[NGROUPS] = {UINT64_C(1) << 40, 1, 2, 3, 4, 5, 6, 7};
	static const uint64_t large[NGROUPS] = {16, 32, 48, 1000, 2000};
	uint32_t	n;
	uint32_t	nbytes;

	/* nobody writes */
	CHECK(copy_groups(0, 1000, &n, &nbytes) == GJ_OK && n == NGROUPS && nbytes == sizeof(heap));
	CHECK(copy_groups(3, 1000, &n, &nbytes) == GJ_OK && n == NGROUPS - 3 &&
		  nbytes == (NGROUPS - 3) * GROUP_BYTES);
	CHECK(copy_groups(3, 40, &n, &nbytes) == GJ_OK && n == 2 && nbytes == 2 * GROUP_BYTES);
	CHECK_EQUAL(copy_groups(0, 10, &n, &nbytes), GJ_TOO_LARGE);
	CHECK(!copied_others);
	/* somebody does */
	written = large;
	CHECK(copy_groups(0, 10000, &n, &nbytes) == GJ_OK && n == 3 && nbytes == 48);
	CHECK(!copied_others);
	written = far;
	copied_others = false;
	CHECK(copy_groups(3, 10000, &n, &nbytes) != GJ_OK);
	CHECK(!copied_others);
	written = NULL;
}
