/*
 * save.c
 *	  Copies of programs and their chunks in files (gpujoin.save_program).
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"

#include "client/save.h"
#include "guc.h"

/* Say that the file is not complete, and write no more of it. */
static void
save_failed(GjSaver *saver, const char *action)
{
	ereport(WARNING,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", action, saver->path)));
	gj_save_close(saver);
}

/* Write all of a buffer. */
static bool
save_bytes(GjSaver *saver, const void *bytes, size_t nbytes)
{
	const char *at = bytes;

	while (nbytes > 0)
	{
		ssize_t		written = write(saver->fd, at, nbytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
		{
			if (written == 0)
				errno = ENOSPC;
			save_failed(saver, "write");
			return false;
		}
		at += written;
		nbytes -= written;
	}
	return true;
}

/* Write one record. */
static void
save_record(GjSaver *saver, uint32 type, uint32 source, uint32 nrows, const void *payload, uint32 nbytes)
{
	GjSavedRecord record = {.type = type,.source = source,.nrows = nrows,.nbytes = nbytes};

	if (saver->fd >= 0 && save_bytes(saver, &record, sizeof(record)))
		(void) save_bytes(saver, payload, nbytes);
}

/* Compute where the columns of chunks are. */
static void
lay_sources_out(GjSaver *saver, const GjProgram *program)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	GjColumnType *types = palloc(sizeof(GjColumnType) * Max(program->ncolumns, 1));
	GjColumnPlace *places = palloc(sizeof(GjColumnPlace) * Max(program->ncolumns, 1));

	memcpy(types, gj_program_array(program, GjColumnType, columns),
		   sizeof(GjColumnType) * program->ncolumns);
	for (uint32 i = 0; i < program->nsources; i++)
	{
		GjSavedChunk *chunk = &saver->chunk[i];

		chunk->types = types + sources[i].first_column;
		chunk->places = places + sources[i].first_column;
		/* it fits: writers have laid it out before */
		(void) gj_layout(chunk->types, sources[i].ncolumns, sources[i].capacity,
						 GJ_LOAD_CHUNK_SIZE, &chunk->layout,
						 places + sources[i].first_column);
	}
}

/* Name the file: what the setting names, or, if that is a directory, a new file in it. */
static void
choose_path(GjSaver *saver)
{
	static uint32 nsaved = 0;
	struct stat st;

	if (stat(gj_save_program, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(saver->path, sizeof(saver->path), "%s/%d.%u.gj", gj_save_program, MyProcPid,
				 ++nsaved);
	else
		strlcpy(saver->path, gj_save_program, sizeof(saver->path));
}

bool
gj_save_wanted(void)
{
	return gj_save_program != NULL && gj_save_program[0] != '\0';
}

static void
saver_closer(void *arg)
{
	gj_save_close((GjSaver *) arg);
}

GjSaver *
gj_save_open(const GjProgram *program)
{
	GjSaver    *saver;

	if (!gj_save_wanted())
		return NULL;
	saver = palloc0(sizeof(GjSaver));
	saver->fd = -1;
	saver->closer.func = saver_closer;
	saver->closer.arg = saver;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &saver->closer);
	lay_sources_out(saver, program);
	choose_path(saver);
	ReserveExternalFD();
	saver->fd = open(saver->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (saver->fd < 0)
	{
		ReleaseExternalFD();
		save_failed(saver, "create");
		return saver;
	}
	if (save_bytes(saver, GJ_SAVED_MAGIC, GJ_SAVED_MAGIC_SIZE))
		save_record(saver, GJ_SAVED_PROGRAM, 0, 0, program, program->nbytes);
	return saver;
}

/* Write the rows of a chunk. */
void
gj_save_chunk(GjSaver *saver, uint8 *slot, uint32 source, uint32 nrows)
{
	uint8	   *packed;

	if (saver == NULL || saver->fd < 0)
		return;
	packed = palloc(GJ_LOAD_SLOT_SIZE);
	save_record(saver, GJ_SAVED_CHUNK, source, nrows, packed,
				gj_saved_pack(&saver->chunk[source], slot, packed));
	pfree(packed);
}

/* Write the end of a source. */
void
gj_save_source_end(GjSaver *saver, uint32 source)
{
	if (saver != NULL && saver->fd >= 0)
		save_record(saver, GJ_SAVED_SOURCE_END, source, 0, NULL, 0);
}

void
gj_save_close(GjSaver *saver)
{
	if (saver == NULL)
		return;
	if (saver->fd >= 0)
	{
		close(saver->fd);
		ReleaseExternalFD();
	}
	saver->fd = -1;
}
