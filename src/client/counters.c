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

/*
 * Read the counts.  False: they are of another start of the server, or there are none, so all are 0.
 */
static bool
read_counts(int fd, GjCounterFile *counts)
{
	if (pread(fd, counts, sizeof(*counts), 0) == sizeof(*counts) && counts->server_start == PgStartTime)
		return true;
	memset(counts, 0, sizeof(*counts));
	counts->server_start = PgStartTime;
	return false;
}

/*
 * Make the file one of this start of the server, before gpujoind opens it.
 */
void
gj_counters_prepare(void)
{
	GjCounterFile counts;
	int			fd = open_file(true);

	if (fd < 0 || (!read_counts(fd, &counts) && pwrite(fd, &counts, sizeof(counts), 0) != sizeof(counts)))
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
	GjCounterFile counts;
	GjCounter  *counter = &counts.noted[failure->reason];
	int			fd = failure->counted ? -1 : open_file(true);
	bool		written;

	if (fd < 0)
		return;
	if (read_counts(fd, &counts))
	{
		counter->count++;
		counter->last = time(NULL);
		written = pwrite(fd, counter, sizeof(*counter), (char *) counter - (char *) &counts) == sizeof(*counter);
	}
	else
	{
		*counter = (GjCounter) {1, time(NULL)};
		written = pwrite(fd, &counts, sizeof(counts), 0) == sizeof(counts);
	}
	close(fd);
	if (!written)
		ereport(DEBUG1, (errmsg_internal("could not write file \"%s\": %m", GJ_COUNTERS_NAME)));
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

/*
 * Read all counts.
 */
void
gj_counters_read(GjCounter counters[GJ_NREASONS])
{
	GjCounterFile counts;
	int			fd = open_file(false);

	memset(counters, 0, sizeof(GjCounter) * GJ_NREASONS);
	if (fd < 0)
		return;
	(void) read_counts(fd, &counts);
	close(fd);
	for (int i = 0; i < GJ_NREASONS; i++)
	{
		counters[i].count = counts.counted[i].count + counts.noted[i].count;
		counters[i].last = Max(counts.counted[i].last, counts.noted[i].last);
	}
}
