/*
 * memory.cu
 *	  Tests of memory: copies, fills, phases, memory that changes its queue, large blocks.
 */
#include <algorithm>

#include "../internal.cuh"
#include "test.cuh"

/* Memory that outlives the queue that has made it. */
static void
test_adopt(const Device &device, const Program &program)
{
	const Bytes data(1000003, 7);
	const size_t nbytes = data.size() + 16; /* of upload */
	Queue keeper(device, program);
	void *memory[2];

	{
		Queue q(device, program);

		memory[0] = q.upload(data);
		memory[1] = q.alloc(1);
		check(q.ops->memory->adopt(keeper.queue, q.queue, memory, 2) == GJ_OK, "adopt",
			  "two of a queue");
	}
	/* who allocates now must not get it */
	Queue other(device, program);

	for (int i = 0; i < 3; i++)
		check(other.ops->memory->fill(other.queue, other.alloc(nbytes), 0, nbytes) == GJ_OK, "fill",
			  "another queue");
	check(other.ops->queues->sync(other.queue) == GJ_OK, "sync", "another queue");
	check(keeper.download((uint8_t *) memory[0], data.size()) == data, "adopted memory", "");
	keeper.ops->memory->free(keeper.queue, memory[0], nbytes);
	keeper.ops->memory->free(keeper.queue, memory[1], 1);
}

/* Large blocks come and go, of many sizes, and more of them than are kept; and one that nobody has.
 */
static void
test_blocks(const Device &device, const Program &program)
{
	const size_t large = (size_t) 20 << 20;
	uint8_t *first = NULL;

	for (int round = 0; round < 3; round++)
	{
		Queue q(device, program);
		uint8_t *a = (uint8_t *) q.alloc(large);

		check(q.ops->memory->fill(q.queue, a, 0x5A, large) == GJ_OK &&
				  q.ops->queues->sync(q.queue) == GJ_OK,
			  "fill", "blocks");
		check(device.ops->kind != GJ_DEVICE_CUDA || first == NULL || a == first, "the same block",
			  "blocks");
		first = a;
		/* once when it is idle, else with the queue */
		if (round == 1)
			q.ops->memory->free(q.queue, a, large);
	}
	for (int round = 0; round < 2; round++)
	{
		Queue q(device, program);

		for (uint32_t i = 0; i < 40; i++)
			q.alloc(large + (size_t) i * (large / 8));
	}
}

/* Small blocks stay with their stream, from queue to queue, and what lies in them does not. */
static void
test_small(const Device &device, const Program &program)
{
	const size_t sizes[] = {1, 256, 257, 5000, 512 * 1024, 512 * 1024 + 1};
	std::vector<void *> first;

	device.device->keeps_small = true;
	for (int round = 0; round < 3; round++)
	{
		Queue q(device, program);

		for (size_t i = 0; i < std::size(sizes); i++)
		{
			const Bytes data(sizes[i], (uint8_t) (round + i));
			void *memory = q.upload(data);

			check(q.download((uint8_t *) memory, data.size()) == data, "data", "small blocks");
			q.ops->memory->free(q.queue, memory, sizes[i]);
			if (round == 0)
				first.push_back(memory);
			else if (sizes[i] < 400 * 1024)
				check(memory == first[i], "the same block", std::to_string(sizes[i]));
		}
		/* more than are kept, some freed with the queue */
		for (uint32_t i = 0; i < 100; i++)
		{
			void *memory = q.alloc(100000 + i);

			if (i % 3 == 0)
				q.ops->memory->free(q.queue, memory, 100000 + i);
		}
	}
	device.ops->tidy(device.device, true);
	device.device->keeps_small = false;
}

/* Pieces of all lengths, at any address, some bytes apart. */
static void
test_copy_many(const Device &device, const Program &program, Random &random, uint32_t n)
{
	const size_t most[] = {0, 1, 17, 300, 5000, 100000};
	Queue q(device, program);
	std::vector<GjPiece> pieces(n);
	Bytes data(200000);
	Bytes expected;
	const uint8_t *from;
	uint8_t *to;

	for (uint8_t &byte : data)
		byte = (uint8_t) random();
	from = q.upload(data);
	for (GjPiece &piece : pieces)
	{
		const size_t first = random() % 100000;

		piece.nbytes = random() % (most[random() % 6] + 1);
		piece.from = from + first;
		expected.resize(expected.size() + random() % 9);
		piece.to = (void *) expected.size();
		expected.insert(expected.end(), data.begin() + first, data.begin() + first + piece.nbytes);
	}
	to = (uint8_t *) q.alloc(expected.size() + 1);
	check(q.ops->memory->fill(q.queue, to, 0, expected.size()) == GJ_OK, "fill", at(n));
	for (GjPiece &piece : pieces)
		piece.to = to + (size_t) piece.to;
	check(q.ops->memory->copy_many(q.queue, pieces.data(), n) == GJ_OK, "copy_many", at(n));
	/* they are read by then */
	std::fill(pieces.begin(), pieces.end(), GjPiece{});
	check(q.download(to, expected.size()) == expected, "copied pieces", at(n));
}

void
test_memory(const Device &device)
{
	Program program;
	Random random(1);

	for (uint32_t n : sizes)
	{
		Queue q(device, program);
		Bytes data(n);
		uint8_t *a;
		uint8_t *b;
		Bytes back;

		for (uint8_t &byte : data)
			byte = (uint8_t) random();
		q.ops->queues->phase(q.queue, GJ_PHASE_TRANSFER);
		a = q.upload(data);
		b = (uint8_t *) q.alloc(n);
		check((uintptr_t) b % 256 == 0, "alignment", at(n));
		q.ops->queues->phase(q.queue, GJ_PHASE_BUILD);
		check(q.ops->memory->copy(q.queue, b, a, n) == GJ_OK, "copy", at(n));
		check(q.download(b, n) == data, "copied bytes", at(n));
		check(q.ops->memory->fill(q.queue, b, 0x5A, n) == GJ_OK, "fill", at(n));
		back = q.download(b, n);
		check(std::count(back.begin(), back.end(), 0x5A) == (long) n, "filled bytes", at(n));
		q.ops->memory->free(q.queue, b, n);
	}
	for (int round = 0; round < 3; round++)
	{
		Queue q(device, program);
		double sum = 0;

		for (int i = 0; i < 1000; i++)
			q.ops->queues->phase(q.queue, (GjPhase) (i % GJ_NPHASES));
		check(q.ops->queues->sync(q.queue) == GJ_OK, "sync", "phases");
		for (int i = 0; i < GJ_NPHASES; i++)
			sum += q.ops->queues->phase_ms(q.queue)[i];
		check(sum >= 0 && sum < 10000, "phase_ms", "phases");
		for (int i = 0; i < 100; i++) /* left to queue_close */
			q.alloc(1 << 16);
	}
	for (uint32_t n : {0u, 1u, 2u, 100u, 3000u})
		test_copy_many(device, program, random, n);
	test_adopt(device, program);
	test_blocks(device, program);
	if (device.ops->kind == GJ_DEVICE_CUDA)
		test_small(device, program);
	group(device.ops->name, "memory");
}
