/*
 * temp.h
 *	  Temporary files: where they may go, and what all runs of a backend may have together.
 */
#ifndef GJ_DAEMON_BASE_TEMP_H
#define GJ_DAEMON_BASE_TEMP_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the temporary files of a backend: temp_file_limit is for a process, not for a query. */
typedef struct GjTempAccount
{
	struct GjTempAccount *next;
	uint32_t	pid;
	uint32_t	nusers;
	uint64_t	used;			/* atomic */
} GjTempAccount;

/* Where a run's files go. */
typedef struct GjTempFiles
{
	GjTempAccount *account;
	uint64_t	limit;			/* for all of the account; UINT64_MAX: none */
	const char *directory;		/* "": there is none */
} GjTempFiles;

/* The account of a process, which lasts as long as it has users.  NULL: out of memory. */
extern GjTempAccount *gj_temp_account_get(uint32_t pid);
extern void gj_temp_account_put(GjTempAccount *account);

/* Counts bytes; false: they would exceed the limit. */
extern bool gj_temp_take(const GjTempFiles *files, uint64_t nbytes);
extern void gj_temp_give(const GjTempFiles *files, uint64_t nbytes);

/*
 * True if PostgreSQL has its temporary files there: base/pgsql_tmp of the data directory, or
 * pg_tblspc/OID/PG_VERSION/pgsql_tmp; or if it is "".
 */
extern bool gj_temp_directory_known(const char *directory);

/*
 * A file without a name.  The directory is made if there is none, but not its parent.  It must not
 * be a symbolic link.  -1: errno says why.
 */
extern int	gj_temp_file_open(const char *directory);

#endif							/* GJ_DAEMON_BASE_TEMP_H */
