/*
 * lanes.cu
 *	  Tests of loads beside work: what the executor does with two stages and a ring.
 */
#include <cstdlib>
#include <cstring>

#include "test.cuh"

#define SLOTS 4
#define ROUNDS 300
#define LOADED(i) (SLOTS + (i))
#define FREE(i) (SLOTS + 2 + (i))

/* Byte i of the chunk of a round. */
static uint8_t
byte_of(uint32_t round, uint32_t i)
{
	return (uint8_t) (round * 31 + i * 7 + (i >> 8));
}

/*
 * Chunks go through a ring of SLOTS slots to two stages in turn; the other stage is copied
 * to its place in the result meanwhile.  Bytes of a chunk's second half are filled in.
 */
static void
run_rounds(const Device &device, uint8_t *ring, uint32_t n)
{
	Program program;
	Queue q(device, program);
	const std::string where = std::to_string(n) + " bytes";
	uint8_t *stage[2] = {(uint8_t *) q.alloc(2 * n), (uint8_t *) q.alloc(2 * n)};
	uint8_t *kept = (uint8_t *) q.alloc((size_t) ROUNDS * n);
	uint8_t *result = (uint8_t *) q.alloc((size_t) ROUNDS * 2 * n);
	GjStatus status = GJ_OK;
	bool done = true;
	Bytes back;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < 2; i++)
		status = (GjStatus) (status | q.ops->queues->mark(q.queue, GJ_LANE_WORK, FREE(i)));
	for (uint32_t round = 0; round <= ROUNDS; round++)
	{
		const uint32_t s = round % 2;

		if (round < ROUNDS)
		{
			uint8_t *slot = ring + (size_t) (round % SLOTS) * n;

			/* asked before it has been used as well */
			status = (GjStatus) (status | q.ops->queues->passed(q.queue, round % SLOTS,
																round % 3 == 0, &done));
			while (!done && status == GJ_OK)
				status = q.ops->queues->passed(q.queue, round % SLOTS, false, &done);
			for (uint32_t i = 0; i < n; i++)
				slot[i] = byte_of(round, i);
			uint8_t *from = round % 3 == 1 ? kept + (size_t) round * n : NULL;

			if (from)
				status = (GjStatus) (status | q.ops->memory->load_in(q.queue, from, slot, n));
			status = (GjStatus) (status | q.ops->queues->after(q.queue, GJ_LANE_LOAD, FREE(s)));
			if (from)
				status = (GjStatus) (status | q.ops->memory->load_copy(q.queue, stage[s], from, n));
			else
				status = (GjStatus) (status | q.ops->memory->load_in(q.queue, stage[s], slot, n));
			status = (GjStatus) (status | q.ops->memory->load_fill(q.queue, stage[s] + n,
																   (uint8_t) round, n));
			status =
				(GjStatus) (status | q.ops->queues->mark(q.queue, GJ_LANE_LOAD, round % SLOTS));
			status = (GjStatus) (status | q.ops->queues->mark(q.queue, GJ_LANE_LOAD, LOADED(s)));
		}
		if (round > 0)
		{
			const uint32_t before = round - 1;

			status = (GjStatus) (status |
								 q.ops->queues->after(q.queue, GJ_LANE_WORK, LOADED(before % 2)));
			status =
				(GjStatus) (status | q.ops->memory->copy(q.queue, result + (size_t) before * 2 * n,
														 stage[before % 2], 2 * n));
			status =
				(GjStatus) (status | q.ops->queues->mark(q.queue, GJ_LANE_WORK, FREE(before % 2)));
		}
	}
	check(status == GJ_OK, "rounds", where);
	q.ops->queues->load_wait(q.queue);
	check(q.ops->queues->passed(q.queue, LOADED(0), true, &done) == GJ_OK && done, "passed", where);
	check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", where);
	check(q.ops->queues->phase_ms(q.queue)[GJ_PHASE_TRANSFER] >= 0, "time of transfers", where);
	back = q.download(result, (size_t) ROUNDS * 2 * n);
	for (uint32_t round = 0; round < ROUNDS; round++)
	{
		const uint8_t *at = back.data() + (size_t) round * 2 * n;

		for (uint32_t i = 0; i < n; i++)
			wrong += (at[i] != byte_of(round, i)) + (at[n + i] != (uint8_t) round);
	}
	check(wrong == 0, "bytes that took both lanes", where);
}

/* What the first query of a device loads has arrived when it was waited for. */
static void
wait_for_first_load(const Device &device)
{
	const size_t nbytes = (size_t) 64 << 20;
	GjErrorText why = {};
	const Device fresh = {device.ops, device.ops->open(0, &why)};

	if (fresh.device == NULL)
	{
		check(false, "open", why.text);
		return;
	}
	{
		Program program;
		Queue q(fresh, program);
		Slot slot(fresh, nbytes);
		void *memory = q.alloc(nbytes);
		bool done = false;

		check(q.ops->memory->load_in(q.queue, memory, slot.memory, nbytes) == GJ_OK, "load",
			  "first");
		check(q.ops->queues->mark(q.queue, GJ_LANE_LOAD, 0) == GJ_OK, "mark", "first");
		q.ops->queues->load_wait(q.queue);
		check(q.ops->queues->passed(q.queue, 0, false, &done) == GJ_OK && done, "load_wait",
			  "first");
	}
	fresh.ops->close(fresh.device);
}

void
test_lanes(const Device &device)
{
	const uint32_t largest = 256 * 1024;
	GjErrorText why = {};
	void *ring = NULL;

	if (posix_memalign(&ring, 4096, (size_t) SLOTS * largest) != 0 ||
		device.ops->host_register(device.device, ring, (size_t) SLOTS * largest, &why) != GJ_OK)
	{
		check(false, "ring", why.text);
		free(ring);
		return;
	}
	for (uint32_t n : {64u, 4096u, largest})
		run_rounds(device, (uint8_t *) ring, n);
	device.ops->host_unregister(device.device, ring);
	free(ring);
	wait_for_first_load(device);
	group(device.ops->name, "lanes");
}
