/*
 * files.c
 *	  Gives up resident data of files that are no more: of tables that were dropped, truncated,
 *	  rewritten or moved, and of databases that were dropped.
 *
 * A thread looks for the files, some each second.  That needs no word from sessions: it covers what
 * standbys replay, what a session does without gpujoin, and what was rolled back.  PostgreSQL cuts a
 * file to nothing when a table is dropped, and removes it with the next checkpoint.  So an empty
 * file is one that is no more; if it is not, nothing of it can be resident.
 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/base.h"
#include "daemon/store/store.h"

#define GJ_WATCH_MS			1000
#define GJ_WATCHED			1024	/* files of a device that are looked for at a time */
#define GJ_MAX_WATCHED		128		/* devices */

/* oids of the tablespace that lies in the data directory itself */
#define GJ_DEFAULT_TABLESPACE	1663

/* True unless there is no such file, or it is empty: a file that cannot be read may be there. */
static bool
has_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size > 0 : errno != ENOENT && errno != ENOTDIR;
}

/* The same for a file of a tablespace, which has a folder for each version of PostgreSQL. */
static bool
is_in_tablespace(const GjRelationKey *key)
{
	char		folder[64];
	char		path[400];
	const struct dirent *entry;
	bool		found = false;
	DIR		   *dir;

	snprintf(folder, sizeof(folder), "pg_tblspc/%u", key->tablespace);
	dir = opendir(folder);
	if (!dir)
		return errno != ENOENT && errno != ENOTDIR;
	while (!found && (entry = readdir(dir)) != NULL)
	{
		if (strncmp(entry->d_name, "PG_", 3) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/%u/%u", folder, entry->d_name, key->database,
				 key->filenode);
		found = has_bytes(path);
	}
	closedir(dir);
	return found;
}

static bool
is_there(const GjRelationKey *key)
{
	char		path[64];

	if (key->tablespace != GJ_DEFAULT_TABLESPACE)
		return is_in_tablespace(key);
	snprintf(path, sizeof(path), "base/%u/%u", key->database, key->filenode);
	return has_bytes(path);
}

/* Looks for some files of a device, from *next on, which moves behind them. */
static void
look_for_files(GjDeviceEntry *entry, uint32_t *next)
{
	GjRelationKey keys[GJ_WATCHED];
	uint32_t	n = gj_resident_files(entry, *next, GJ_WATCHED, keys);
	uint32_t	ngone = 0;
	uint64_t	nbytes = 0;

	*next = n < GJ_WATCHED ? 0 : *next + n;
	for (uint32_t i = 0; i < n; i++)
	{
		if (is_there(&keys[i]))
			continue;
		nbytes += gj_resident_evict_file(entry, &keys[i]);
		ngone++;
	}
	if (ngone > 0)
		gj_log(GJ_LOG, "gave up %" PRIu64 " kB that were resident of %u files that are no more",
			   nbytes / 1024, ngone);
}

static void *
watch_main(void *arg)
{
	uint32_t	next[GJ_MAX_WATCHED] = {0};

	gj_crash_guard_stack();
	for (;;)
	{
		GjDeviceEntry *entries[GJ_MAX_WATCHED];
		uint32_t	n = gj_devices_open(GJ_MAX_WATCHED, entries);

		for (uint32_t i = 0; i < n; i++)
		{
			look_for_files(entries[i], &next[i]);
			gj_devices_tidy(entries[i]);
		}
		poll(NULL, 0, GJ_WATCH_MS);
	}
	return NULL;
}

bool
gj_files_watch(void)
{
	pthread_t	thread;

	return pthread_create(&thread, NULL, watch_main, NULL) == 0 && pthread_detach(thread) == 0;
}
