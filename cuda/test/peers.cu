/*
 * peers.cu
 *	  Tests of copies between devices.
 */
#include "test.cuh"

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
		check(there.ops->sync(there.queue) == GJ_OK, "sync of the other queue", where);
		to = (uint8_t *) here.alloc(n);
		for (int twice = 0; twice < 2; twice++)
			check(here.ops->copy_peer(here.queue, to, other.device, from, n) == GJ_OK, "copy_peer",
				  where);
		check(here.download(to, n) == bytes, "the same bytes", where);
	}
	check(here.ops->copy_peer(here.queue, NULL, other.device, NULL, 0) == GJ_OK, "no bytes", how);
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
		device.ops->close(other.device);
	}
	if (device.ops->count(&why) > 1)
	{
		other.device = device.ops->open(1, &why);
		if (check(other.device != NULL, "another device", why.text))
		{
			copy_there(device, other, "another device");
			device.ops->close(other.device);
		}
	}
	group(device.ops->name, "peers");
}
