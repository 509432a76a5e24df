/*
 * duckdb_peer.c
 *	  Times statements in DuckDB, for the benchmarks: the peer in the same run.
 *
 *	duckdb_peer REPEAT <FILE
 *
 * FILE: statements, each ended by a line ";".  One that starts with "--time NAME" is
 * run once and then REPEAT times: "NAME<tab>median ms<tab>min<tab>max<tab>first row"
 * is printed; all others are only run.  An in-memory database with DuckDB's default
 * number of threads.  libduckdb.so (GJ_DUCKDB says where, else the loader's path) is
 * not needed to build this: its C interface is declared here as far as it is used.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* duckdb_result of DuckDB's C API */
typedef struct DuckResult
{
	uint64_t	deprecated[3];
	void	   *deprecated_columns;
	char	   *deprecated_message;
	void	   *internal;
} DuckResult;

static int	(*duck_open) (const char *path, void **db);
static int	(*duck_connect) (void *db, void **connection);
static int	(*duck_query) (void *connection, const char *query, DuckResult *result);
static void (*duck_destroy) (DuckResult *result);
static const char *(*duck_error) (DuckResult *result);
static uint64_t(*duck_columns) (DuckResult *result);
static uint64_t(*duck_rows) (DuckResult *result);
static char *(*duck_value) (DuckResult *result, uint64_t column, uint64_t row);
static void (*duck_free) (void *value);
static const char *(*duck_version) (void);

static void *
find(void *library, const char *name)
{
	void	   *function = dlsym(library, name);

	if (!function)
	{
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return function;
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Runs a statement; its first row goes to `row` if that is not NULL. */
static double
run(void *connection, const char *query, char *row, size_t size)
{
	DuckResult	result;
	double		start = now_ms(),
				ms;

	memset(&result, 0, sizeof(result));
	if (duck_query(connection, query, &result) != 0)
	{
		fprintf(stderr, "%s\n%s\n", duck_error(&result), query);
		exit(1);
	}
	ms = now_ms() - start;
	if (row)
	{
		row[0] = '\0';
		for (uint64_t c = 0; duck_rows(&result) > 0 && c < duck_columns(&result); c++)
		{
			char	   *value = duck_value(&result, c, 0);
			size_t		used = strlen(row);

			snprintf(row + used, size - used, "%s%s", c > 0 ? "|" : "", value ? value : "");
			if (value)
				duck_free(value);
		}
	}
	duck_destroy(&result);
	return ms;
}

int
main(int argc, char **argv)
{
	static char line[65536],
				query[1 << 20],
				row[4096];
	int			repeat = argc > 1 ? atoi(argv[1]) : 5;
	const char *path = getenv("GJ_DUCKDB");
	void	   *library = dlopen(path ? path : "libduckdb.so", RTLD_NOW | RTLD_LOCAL);
	void	   *db,
			   *connection;
	double		times[1000];
	char		name[128] = "";

	if (!library)
	{
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **) &duck_open = find(library, "duckdb_open");
	*(void **) &duck_connect = find(library, "duckdb_connect");
	*(void **) &duck_query = find(library, "duckdb_query");
	*(void **) &duck_destroy = find(library, "duckdb_destroy_result");
	*(void **) &duck_error = find(library, "duckdb_result_error");
	*(void **) &duck_columns = find(library, "duckdb_column_count");
	*(void **) &duck_rows = find(library, "duckdb_row_count");
	*(void **) &duck_value = find(library, "duckdb_value_varchar");
	*(void **) &duck_free = find(library, "duckdb_free");
	*(void **) &duck_version = find(library, "duckdb_library_version");
	if (repeat < 1 || repeat > 1000 || duck_open(NULL, &db) != 0 || duck_connect(db, &connection) != 0)
	{
		fprintf(stderr, "cannot open a database of DuckDB\n");
		return 1;
	}
	fprintf(stderr, "DuckDB %s\n", duck_version());
	query[0] = '\0';
	while (fgets(line, sizeof(line), stdin))
	{
		if (strncmp(line, "--time ", 7) == 0)
		{
			snprintf(name, sizeof(name), "%.*s", (int) strcspn(line + 7, "\n"), line + 7);
			continue;
		}
		if (strcmp(line, ";\n") != 0)
		{
			if (strlen(query) + strlen(line) >= sizeof(query))
			{
				fprintf(stderr, "a statement is too long\n");
				return 1;
			}
			strcat(query, line);
			continue;
		}
		run(connection, query, NULL, 0);
		if (name[0])
		{
			for (int i = 0; i < repeat; i++)
				times[i] = run(connection, query, row, sizeof(row));
			qsort(times, (size_t) repeat, sizeof(double), compare);
			printf("%s\t%.2f\t%.2f\t%.2f\t%s\n", name, times[repeat / 2], times[0], times[repeat - 1], row);
			fflush(stdout);
		}
		query[0] = name[0] = '\0';
	}
	return 0;
}
