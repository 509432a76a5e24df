/*
 * save.h
 *	  Copies of programs and their chunks in files (gpujoin.save_program).
 */
#ifndef GJ_CLIENT_SAVE_H
#define GJ_CLIENT_SAVE_H

#include "utils/palloc.h"

#include "client.h"
#include "wire/saved.h"

/* A file that is being written, and where columns are in its chunks. */
typedef struct GjSaver
{
	int			fd;				/* -1: that has failed, or has ended */
	MemoryContextCallback closer;
	char		path[MAXPGPATH];
	GjSavedChunk chunk[GJ_MAX_SOURCES];
} GjSaver;

/* True if a program that is submitted now is to be saved. */
extern bool gj_save_wanted(void);

/*
 * Opens a file, see gpujoin.save_program, and writes the program; a warning if that fails.  It closes
 * with the current memory context at the latest.  NULL, which the others take as well: nothing is to
 * be saved.
 */
extern GjSaver *gj_save_open(const GjProgram *program);
extern void gj_save_chunk(GjSaver *saver, uint8 *slot, uint32 source, uint32 nrows);
extern void gj_save_source_end(GjSaver *saver, uint32 source);

/* Raises no error.  Does nothing the second time. */
extern void gj_save_close(GjSaver *saver);

#endif							/* GJ_CLIENT_SAVE_H */
