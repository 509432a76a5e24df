/*
 * counters.c
 *	  How programs ended, for gpujoin_stat.
 *
 * The counts are in a file of the data directory (GjCounterFile), so they are there while no
 * gpujoind is, and go on when the next one starts.  gpujoind counts what it sees.  A session that
 * falls back for a reason of its own counts it here, beside gpujoind's.
 *
 * Sessions read and write the file, and do not map it: a file that somebody shortens would be a
 * SIGBUS, and so a restart of the cluster.
 */
#include "postgres.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "client/client.h"
#include "client/counters.h"
#include "guc.h"
#include "wire/counters.h"

/* How long a session waits for another one that counts; then it goes without. */
#define GJ_LOCK_STEP_US		500
#define GJ_LOCK_STEPS		20

/*
 * Open the file, and lock it if it is to be changed.  -1: it is not there, or others have it.
 */
static int
open_file(bool change)
{
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};
	int			fd = BasicOpenFile(GJ_COUNTERS_NAME, (change ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | PG_BINARY);

	if (fd < 0 || !change)
		return fd;
	for (int i = 0; fcntl(fd, F_OFD_SETLK, &lock) != 0; i++)
	{
		if (i == GJ_LOCK_STEPS)
		{
			close(fd);
			return -1;
		}
		pg_usleep(GJ_LOCK_STEP_US);
	}
	return fd;
}

/* What was read last.  Too large for the stack, and wanted while the file is locked. */
static GjCounterFile counts;

/*
 * Read the counts.  False: they are of another start of the server, or there are none, so all are 0.
 */
static bool
read_counts(int fd)
{
	if (pread(fd, &counts, sizeof(counts), 0) == sizeof(counts) &&
		counts.server_start == PgStartTime)
		return true;
	memset(&counts, 0, sizeof(counts));
	counts.server_start = PgStartTime;
	return false;
}

/* Write a part of the counts; all of them if the file is not of this start of the server. */
static bool
write_counts(int fd, const void *part, size_t nbytes, bool all)
{
	if (all)
		return pwrite(fd, &counts, sizeof(counts), 0) == sizeof(counts);
	return pwrite(fd, part, nbytes, (const char *) part - (const char *) &counts) == nbytes;
}

/*
 * Make the file one of this start of the server, before gpujoind opens it.
 */
void
gj_counters_prepare(void)
{
	int			fd = open_file(true);

	if (fd < 0 || (!read_counts(fd) && !write_counts(fd, &counts, sizeof(counts), true)))
		ereport(WARNING,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", GJ_COUNTERS_NAME)));
	if (fd >= 0)
		close(fd);
}

/*
 * Count a failure, unless gpujoind has done so.
 */
void
gj_client_count(const GjFailure *failure)
{
	int			fd = failure->counted ? -1 : open_file(true);
	GjDatabaseCounts *database;
	bool		known;
	bool		written;

	if (fd < 0)
		return;
	known = read_counts(fd);
	database = gj_database_counts(counts.noted, MyDatabaseId);
	database->counter[failure->reason].count++;
	database->counter[failure->reason].last = time(NULL);
	written = write_counts(fd, database, sizeof(*database), !known);
	/* a message can wait for the client: not while the file is locked */
	close(fd);
	if (!written)
		ereport(DEBUG1, (errmsg_internal("could not write file \"%s\"", GJ_COUNTERS_NAME)));
}

/*
 * Raise an error if fallbacks are forbidden.
 */
void
gj_client_may_do_without(const GjFailure *failure)
{
	if (gj_forbid_fallback)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpujoin may not fall back: %s", gj_reason_text(failure->reason)),
				 failure->detail[0] != '\0' ? errdetail_internal("%s", failure->detail) : 0));
}

/*
 * Count a fallback.
 */
void
gj_client_fall_back(const GjFailure *failure)
{
	gj_client_count(failure);
	gj_client_may_do_without(failure);
}

/* Return the counts of a database in a list, NULL if it has none. */
static const GjDatabaseCounts *
find_counts(const GjDatabaseCounts *list, Oid database)
{
	for (int i = 0; i < GJ_MAX_DATABASES && list[i].used; i++)
		if (list[i].database == database)
			return &list[i];
	return NULL;
}

/*
 * Return what was noted when counts of a database were reset, or its place, or NULL if all are taken.
 */
static GjDatabaseReset *
find_reset(Oid database)
{
	for (int i = 0; i < GJ_MAX_DATABASES; i++)
		if (!counts.reset[i].used || counts.reset[i].database == database)
			return &counts.reset[i];
	return NULL;
}

/* Add up what both have counted of a database. */
static GjCounter
total_count(Oid database, GjStatus reason)
{
	const GjDatabaseCounts *sums[] = {
		find_counts(counts.counted, database), find_counts(counts.noted, database)
	};
	GjCounter	total = {0};

	for (int i = 0; i < lengthof(sums); i++)
		if (sums[i] != NULL)
		{
			total.count += sums[i]->counter[reason].count;
			total.last = Max(total.last, sums[i]->counter[reason].last);
		}
	return total;
}

/* Add the outcomes of a database; returns how many there are now. */
static int
add_outcomes(GjOutcome *outcomes, int n, Oid database)
{
	const GjDatabaseReset *reset = find_reset(database);

	for (int i = 0; i < n; i++)
		if (outcomes[i].database == database)
			return n;
	for (int reason = 0; reason < GJ_NREASONS; reason++)
	{
		GjCounter	total = total_count(database, reason);
		GjOutcome  *outcome = &outcomes[n];

		*outcome = (GjOutcome) {
			.database = database,.reason = reason,.count = total.count,.last = total.last
		};
		if (reset != NULL && reset->used)
		{
			/* gpujoind may have lost its counts */
			outcome->count -= Min(reset->count[reason], total.count);
			outcome->reset = reset->time;
		}
		if (outcome->count == 0)
			outcome->last = 0;
		if (outcome->count > 0 || reason == GJ_OK)
			n++;
	}
	return n;
}

/*
 * Read all counts.
 */
int
gj_counters_read(GjOutcome **outcomes)
{
	int			n = 0;
	int			fd = open_file(false);

	*outcomes = palloc(sizeof(GjOutcome) * (2 * GJ_MAX_DATABASES * GJ_NREASONS));
	if (fd < 0)
		return 0;
	(void) read_counts(fd);
	close(fd);
	for (int i = 0; i < GJ_MAX_DATABASES; i++)
	{
		if (counts.counted[i].used)
			n = add_outcomes(*outcomes, n, counts.counted[i].database);
		if (counts.noted[i].used)
			n = add_outcomes(*outcomes, n, counts.noted[i].database);
	}
	return n;
}

/*
 * Let the counts of this database begin anew.
 */
void
gj_counters_reset(void)
{
	int			fd = open_file(true);
	GjDatabaseReset *reset;
	bool		known;
	bool		written = false;

	if (fd < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not open or lock file \"%s\"", GJ_COUNTERS_NAME),
				 errhint("Try again.")));
	known = read_counts(fd);
	reset = find_reset(MyDatabaseId);
	if (reset != NULL)
	{
		reset->used = 1;
		reset->database = MyDatabaseId;
		reset->time = GetCurrentTimestamp();
		for (int reason = 0; reason < GJ_NREASONS; reason++)
			reset->count[reason] = total_count(MyDatabaseId, reason).count;
		written = write_counts(fd, reset, sizeof(*reset), !known);
	}
	close(fd);
	if (reset == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("counts of %d databases have been reset, and those of no other can be",
						GJ_MAX_DATABASES)));
	if (!written)
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not write file \"%s\"", GJ_COUNTERS_NAME)));
}
