/*
 * unit.c
 *	  Runs the unit tests, or those that are named.  Closes with "N passed, N failed".
 */
#define _GNU_SOURCE
#include "unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/devices.h"

#define UNIT_MAX_TOLD	20		/* failures of a test that are told */

typedef struct UnitTest
{
	const char *name;
	void		(*run) (void);
} UnitTest;

static const UnitTest tests[] = {
#define UNIT_ENTRY(name) {#name, test_##name},
	UNIT_TESTS(UNIT_ENTRY)
};

static unsigned long passed,
			failed,
			told;
static char directory[] = "/tmp/gjunit.XXXXXX";

bool
unit_check(bool ok, const char *file, int line, const char *format,...)
{
	va_list		args;

	if (ok)
	{
		passed++;
		return true;
	}
	failed++;
	if (++told > UNIT_MAX_TOLD)
		return false;
	printf("not ok - %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return false;
}

uint8_t *
unit_read_file(const char *path, uint32_t *nbytes)
{
	FILE	   *f = fopen(path, "rb");
	struct stat st;
	uint8_t    *bytes = NULL;

	if (f && fstat(fileno(f), &st) == 0)
	{
		*nbytes = (uint32_t) st.st_size;
		bytes = malloc(*nbytes);
		if (bytes && fread(bytes, 1, *nbytes, f) != *nbytes)
		{
			free(bytes);
			bytes = NULL;
		}
	}
	if (f)
		fclose(f);
	return bytes;
}

const char *
unit_directory(void)
{
	return directory;
}

uint32_t
unit_random(void)
{
	static uint64_t state = 1;

	/* Knuth's MMIX */
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) (state >> 33);
}

uint32_t
unit_choose(uint32_t usual, uint32_t if_long)
{
	const char *set = getenv("GJ_LONG");

	return set && set[0] != '\0' ? if_long : usual;
}

static bool
is_wanted(const char *name, int argc, char **argv)
{
	bool		wanted = argc == 1;

	for (int i = 1; i < argc; i++)
		wanted |= strcmp(name, argv[i]) == 0;
	return wanted;
}

int
main(int argc, char **argv)
{
	GjErrorText why;

	if (!mkdtemp(directory))
	{
		perror(directory);
		return 2;
	}
	(void) gj_devices_configure(&(GjDeviceChoice) {.ncpu = 2,.per_gpu = 1}, &why);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		unsigned long before = failed;

		if (!is_wanted(tests[i].name, argc, argv))
			continue;
		told = 0;
		tests[i].run();
		printf("%s - %s\n", failed == before ? "ok" : "not ok", tests[i].name);
		fflush(stdout);
	}
	gj_devices_stop();
	rmdir(directory);
	printf("%lu passed, %lu failed\n", passed, failed);
	return failed > 0 || passed == 0;
}
