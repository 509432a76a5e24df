/*
 * temp.c
 *	  Temporary files; see temp.h.
 */
#define _GNU_SOURCE
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GJ_TEMP_NAME		"pgsql_tmp"

/* ---- accounts */

static struct
{
	pthread_mutex_t lock;
	GjTempAccount *first;
}			accounts = {.lock = PTHREAD_MUTEX_INITIALIZER};

GjTempAccount *
gj_temp_account_get(uint32_t pid)
{
	GjTempAccount *account;

	pthread_mutex_lock(&accounts.lock);
	for (account = accounts.first; account && account->pid != pid; account = account->next)
		;
	if (!account)
	{
		account = calloc(1, sizeof(GjTempAccount));
		if (account)
		{
			account->pid = pid;
			account->next = accounts.first;
			accounts.first = account;
		}
	}
	if (account)
		account->nusers++;
	pthread_mutex_unlock(&accounts.lock);
	return account;
}

void
gj_temp_account_put(GjTempAccount *account)
{
	GjTempAccount **link = &accounts.first;

	pthread_mutex_lock(&accounts.lock);
	if (--account->nusers == 0)
	{
		while (*link != account)
			link = &(*link)->next;
		*link = account->next;
		free(account);
	}
	pthread_mutex_unlock(&accounts.lock);
}

bool
gj_temp_take(const GjTempFiles *files, uint64_t nbytes)
{
	uint64_t	used = __atomic_add_fetch(&files->account->used, nbytes, __ATOMIC_RELAXED);

	if (used <= files->limit)
		return true;
	gj_temp_give(files, nbytes);
	return false;
}

void
gj_temp_give(const GjTempFiles *files, uint64_t nbytes)
{
	__atomic_sub_fetch(&files->account->used, nbytes, __ATOMIC_RELAXED);
}

/* ---- directories */

/* Moves *at behind a prefix, some of these characters and a slash; false: they are not there. */
static bool
skip_name(const char **at, const char *prefix, const char *characters)
{
	size_t		before = strlen(prefix);
	size_t		n;

	if (strncmp(*at, prefix, before) != 0)
		return false;
	n = strspn(*at + before, characters);
	if (n == 0 || (*at)[before + n] != '/')
		return false;
	*at += before + n + 1;
	return true;
}

bool
gj_temp_directory_known(const char *directory)
{
	const char *at = directory;

	if (*at == '\0' || strcmp(at, "base/" GJ_TEMP_NAME) == 0)
		return true;
	return skip_name(&at, "pg_tblspc/", "0123456789") && skip_name(&at, "PG_", "0123456789_") &&
		strcmp(at, GJ_TEMP_NAME) == 0;
}

/* The directory, open; -1: errno says why. */
static int
open_directory(const char *directory)
{
	char		of_parent[256];
	char		of_name[256];
	const char *name;
	int			parent_fd;
	int			fd;
	int			error;

	if (strlen(directory) >= sizeof(of_parent))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	/* both functions write to what they are given */
	parent_fd = open(dirname(strcpy(of_parent, directory)), O_DIRECTORY | O_PATH | O_CLOEXEC);
	if (parent_fd < 0)
		return -1;
	name = basename(strcpy(of_name, directory));
	/* PostgreSQL makes it when it first needs it, too */
	(void) mkdirat(parent_fd, name, 0700);
	fd = openat(parent_fd, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	error = errno;
	close(parent_fd);
	errno = error;
	return fd;
}

/* A file that loses its name at once.  By its prefix PostgreSQL knows what a crash has left. */
static int
open_unlinked(int directory_fd)
{
	static uint32_t number;		/* atomic */
	char		name[64];
	int			fd;

	do
	{
		snprintf(name, sizeof(name), "pgsql_tmp_gpujoind.%d.%u", (int) getpid(),
				 __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
		fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	if (fd >= 0)
		unlinkat(directory_fd, name, 0);
	return fd;
}

int
gj_temp_file_open(const char *directory)
{
	int			directory_fd = open_directory(directory);
	int			fd;
	int			error;

	if (directory_fd < 0)
		return -1;
	fd = openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* not every file system can do that */
	if (fd < 0)
		fd = open_unlinked(directory_fd);
	error = errno;
	close(directory_fd);
	errno = error;
	return fd;
}
