/*
 * take_memory.c
 *	  A process that takes a GPU's memory until its standard input ends, for bench/servers.sh.
 *
 *	  cc -O1 -o take_memory take_memory.c -ldl && take_memory MB
 *
 * It leaves MB free on GPU 0.  It prints how much was free before, and what it took.  CUDA's driver
 * is loaded as it runs: no toolkit is needed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*Call) ();

static void *driver;

static Call
find(const char *name)
{
	Call		call = (Call) dlsym(driver, name);

	if (!call)
	{
		fprintf(stderr, "take_memory: no function %s\n", name);
		exit(1);
	}
	return call;
}

static void
must(int error, const char *what)
{
	if (error == 0)
		return;
	fprintf(stderr, "take_memory: %s: error %d of CUDA\n", what, error);
	exit(1);
}

int
main(int argc, char **argv)
{
	size_t		left = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	size_t		nfree;
	size_t		total;
	int			device;
	void	   *context;
	unsigned long long memory;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
	{
		fprintf(stderr, "take_memory: %s\n", dlerror());
		return 1;
	}
	must(find("cuInit") (0), "cuInit");
	must(find("cuDeviceGet") (&device, 0), "cuDeviceGet");
	must(find("cuDevicePrimaryCtxRetain") (&context, device), "cuDevicePrimaryCtxRetain");
	must(find("cuCtxSetCurrent") (context), "cuCtxSetCurrent");
	must(find("cuMemGetInfo_v2") (&nfree, &total), "cuMemGetInfo");
	if (nfree > left)
		must(find("cuMemAlloc_v2") (&memory, nfree - left), "cuMemAlloc");
	printf("%zu MB were free, %zu MB are taken\n", nfree >> 20,
		   nfree > left ? (nfree - left) >> 20 : 0);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
