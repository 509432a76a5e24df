/*
 * peers.cu
 *	  Tests of copies between devices.
 */
#include <pthread.h>

#include <memory>
#include <thread>

#include "../internal.cuh"
#include "test.cuh"

/* Has two GPUs meet, and sees to it that copies between them are direct if they can be. */
static void
meet(const Device &device, GjDevice *other, const char *how)
{
	int can = 0;
	int back = 0;

	device.ops->meet(device.device, other);
	check(cudaDeviceCanAccessPeer(&can, device.device->ordinal, other->ordinal) == cudaSuccess &&
			  cudaDeviceCanAccessPeer(&back, other->ordinal, device.device->ordinal) ==
				  cudaSuccess &&
			  device.device->met[other->ordinal] == (can && back) &&
			  other->met[device.device->ordinal] == (can && back),
		  "have met", how);
}

/* Bytes of one device, copied to the other one and back. */
static void
copy_there(const Device &device, const Device &other, const char *how)
{
	Program program;
	Queue here(device, program);
	Queue there(other, program);

	/* below, at and above a piece of what goes through the host */
	for (size_t n : {(size_t) 1, (size_t) 1000003, (size_t) 4 << 20, ((size_t) 9 << 20) + 5})
	{
		const std::string where = std::string(how) + ", " + std::to_string(n) + " bytes";
		std::vector<uint8_t> bytes(n);
		uint8_t *from;
		uint8_t *to;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t) (i * 7 + (i >> 8) + n);
		from = there.upload(bytes);
		check(there.ops->queues->sync(there.queue) == GJ_OK, "sync of the other queue", where);
		to = (uint8_t *) here.alloc(n);
		for (int twice = 0; twice < 2; twice++)
			check(here.ops->memory->copy_peer(here.queue, to, other.device, from, n) == GJ_OK,
				  "copy_peer", where);
		check(here.download(to, n) == bytes, "the same bytes", where);
		/* on the other lane */
		check(here.ops->memory->fill(here.queue, to, 0, n) == GJ_OK &&
				  here.ops->queues->mark(here.queue, GJ_LANE_WORK, 0) == GJ_OK &&
				  here.ops->queues->after(here.queue, GJ_LANE_LOAD, 0) == GJ_OK &&
				  here.ops->memory->load_peer(here.queue, to, other.device, from, n) == GJ_OK &&
				  here.ops->queues->mark(here.queue, GJ_LANE_LOAD, 1) == GJ_OK &&
				  here.ops->queues->after(here.queue, GJ_LANE_WORK, 1) == GJ_OK,
			  "load_peer", where);
		check(here.download(to, n) == bytes, "the same bytes, loaded", where);
	}
	check(here.ops->memory->copy_peer(here.queue, NULL, other.device, NULL, 0) == GJ_OK, "no bytes",
		  how);
}

/* What two threads do with a device each, beside each other. */
struct Traffic
{
	static constexpr uint32_t ROUNDS = 48;

	struct Grown
	{
		uint8_t *memory;
		size_t nbytes;
	};

	pthread_barrier_t both;
	GjDevice *device[2];
	uint8_t *block[2];

	/* Blocks of the other one, one behind the other, in memory that grows meanwhile. */
	bool
	work(Queue &q, uint32_t mine)
	{
		const uint32_t other = 1 - mine;
		std::vector<uint8_t> expected;
		Grown received = {};
		size_t used = 0;
		bool good = true;

		for (uint32_t round = 0; round < ROUNDS; round++)
		{
			const size_t n = ((size_t) 1 << 20) * (round % 7 + 1) + 4 * round;

			good &=
				q.ops->memory->alloc(q.queue, n, (void **) &block[mine]) == GJ_OK &&
				q.ops->memory->fill(q.queue, block[mine], (int) (2 * round + mine), n) == GJ_OK &&
				q.ops->queues->sync(q.queue) == GJ_OK;
			pthread_barrier_wait(&both);
			good &= grow(q, received, used, used + n) &&
					q.ops->memory->copy_peer(q.queue, received.memory + used, device[other],
											 block[other], n) == GJ_OK &&
					q.ops->queues->sync(q.queue) == GJ_OK;
			used += n;
			expected.insert(expected.end(), n, (uint8_t) (2 * round + other));
			pthread_barrier_wait(&both);
			q.ops->memory->free(q.queue, block[mine], n);
		}
		return good && q.download(received.memory, used) == expected;
	}

	static bool
	grow(Queue &q, Grown &buffer, size_t used, size_t nbytes)
	{
		const Grown old = buffer;

		if (nbytes <= old.nbytes)
			return true;
		buffer.nbytes = 2 * nbytes;
		if (q.ops->memory->alloc(q.queue, buffer.nbytes, (void **) &buffer.memory) != GJ_OK)
			return false;
		if (old.memory == NULL)
			return true;
		if (q.ops->memory->copy(q.queue, buffer.memory, old.memory, used) != GJ_OK)
			return false;
		q.ops->memory->free(q.queue, old.memory, old.nbytes);
		return true;
	}
};

static void
exchange_there(const Device &device, const Device &other, const char *how)
{
	Traffic traffic = {};
	Program program;
	Queue here(device, program);
	Queue there(other, program);
	bool good[2] = {};

	traffic.device[0] = device.device;
	traffic.device[1] = other.device;
	pthread_barrier_init(&traffic.both, NULL, 2);

	std::thread second([&] { good[1] = traffic.work(there, 1); });

	good[0] = traffic.work(here, 0);
	second.join();
	pthread_barrier_destroy(&traffic.both);
	check(good[0] && good[1], "blocks beside each other", how);
}

/*
 * Rounds of loads from several devices, and of bytes that are filled in, to two inboxes in turn,
 * while what is in the other one is copied to its place in the result: what an exchange does.
 */
static void
load_from(const Device &device, const std::vector<GjDevice *> &others, const char *how)
{
	const uint32_t rounds = 40;
	const size_t n = ((size_t) 1 << 20) + 40;
	const size_t size = (others.size() + 1) * n;
	Program program;
	Queue here(device, program);
	std::vector<std::unique_ptr<Queue>> there;
	std::vector<uint8_t *> from;
	uint8_t *inbox[2] = {(uint8_t *) here.alloc(size), (uint8_t *) here.alloc(size)};
	uint8_t *result = (uint8_t *) here.alloc(rounds * size);
	bool good = true;
	uint64_t wrong = 0;

	for (size_t d = 0; d < others.size(); d++)
	{
		std::vector<uint8_t> bytes(n * 2);

		for (size_t i = 0; i < bytes.size(); i++)
			bytes[i] = (uint8_t) (i * 3 + d * 50 + (i >> 9));
		there.push_back(std::make_unique<Queue>(Device{device.ops, others[d]}, program));
		from.push_back(there[d]->upload(bytes));
		good &= there[d]->ops->queues->sync(there[d]->queue) == GJ_OK;
	}
	/* the first loads, too, have something to wait for */
	for (int i = 0; i < 20; i++)
		good &= here.ops->memory->fill(here.queue, result, i, rounds * size) == GJ_OK;
	for (uint32_t i = 0; i < 2; i++)
		good &= here.ops->memory->fill(here.queue, inbox[i], 0xee, size) == GJ_OK &&
				here.ops->queues->mark(here.queue, GJ_LANE_WORK, i) == GJ_OK;
	for (uint32_t round = 0; round < rounds; round++)
	{
		const uint32_t i = round % 2;

		good &= here.ops->queues->after(here.queue, GJ_LANE_LOAD, i) == GJ_OK;
		for (size_t d = 0; d < others.size(); d++)
		{
			good &= here.ops->memory->load_peer(here.queue, inbox[i] + d * n, others[d],
												from[d] + round * 1000, n) == GJ_OK;
			/* also in between */
			if ((round + d) % 3 == 0)
				good &= here.ops->queues->mark(here.queue, GJ_LANE_LOAD, 4) == GJ_OK;
		}
		good &=
			here.ops->memory->load_fill(here.queue, inbox[i] + others.size() * n, (int) round, n) ==
				GJ_OK &&
			here.ops->queues->mark(here.queue, GJ_LANE_LOAD, 2 + i) == GJ_OK &&
			here.ops->queues->after(here.queue, GJ_LANE_WORK, 2 + i) == GJ_OK &&
			here.ops->memory->copy(here.queue, result + round * size, inbox[i], size) == GJ_OK &&
			here.ops->memory->fill(here.queue, inbox[i], 0xee, size) == GJ_OK &&
			here.ops->queues->mark(here.queue, GJ_LANE_WORK, i) == GJ_OK;
	}
	check(good, "loads from several devices", how);

	const Bytes back = here.download(result, rounds * size);

	for (uint32_t round = 0; round < rounds; round++)
		for (size_t at = 0; at < size; at++)
		{
			const size_t d = at / n;
			const size_t i = round * 1000 + at % n;
			const uint8_t expected =
				d == others.size() ? (uint8_t) round : (uint8_t) (i * 3 + d * 50 + (i >> 9));

			wrong += back[round * size + at] != expected;
		}
	check(wrong == 0, "the same bytes of several devices", how);
}

void
test_peers(const Device &device)
{
	GjErrorText why = {};
	/* a device has no peer access to itself: through the host */
	Device other = {device.ops, device.ops->open(0, &why)};

	copy_there(device, device, "the same device");
	if (check(other.device != NULL, "opened twice", why.text))
	{
		copy_there(device, other, "a device opened twice");
		exchange_there(device, other, "a device opened twice");
		load_from(device, {other.device, device.device, other.device}, "a device opened twice");
		device.ops->close(other.device);
	}
	if (device.ops->count(&why) > 1)
	{
		other.device = device.ops->open(1, &why);
		if (check(other.device != NULL, "another device", why.text))
		{
			copy_there(device, other, "another device, through the host");
			meet(device, other.device, "another device");
			copy_there(device, other, "another device");
			exchange_there(device, other, "another device");
			/* the second queue gets what the first one has made */
			load_from(device, {other.device, device.device}, "another device");
			load_from(device, {device.device, other.device}, "another device, again");
			load_from(other, {device.device}, "by the other device");
			device.ops->close(other.device);
		}
	}
	if (device.ops->count(&why) > 2)
	{
		std::vector<GjDevice *> others;

		for (int i = 1; i < device.ops->count(&why) && i < 8; i++)
		{
			GjDevice *opened = device.ops->open(i, &why);

			if (!check(opened != NULL, "all devices", why.text))
				continue;
			meet(device, opened, "all devices");
			for (GjDevice *before : others)
				meet({device.ops, before}, opened, "all devices");
			others.push_back(opened);
		}
		load_from(device, others, "all devices");
		if (others.size() > 1)
			load_from({device.ops, others.back()}, {others[0], device.device}, "the last device");
		for (GjDevice *opened : others)
			device.ops->close(opened);
	}
	group(device.ops->name, "peers");
}
