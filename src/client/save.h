/*
 * save.h
 *	  Copies of programs and their chunks in a file (gpujoin.save_program).
 */
#ifndef GJ_CLIENT_SAVE_H
#define GJ_CLIENT_SAVE_H

#include "client.h"

/* Where the chunks of a source end, so that no more than that is written. */
typedef struct GjSaver
{
	int			fd;				/* -1: nothing is saved */
	GjLayout	layout[GJ_MAX_SOURCES];
} GjSaver;

/* True if a program that is submitted now is to be saved. */
extern bool gj_save_wanted(void);

/* Opens the file that the setting names and writes the program; a warning if that fails. */
extern void gj_save_open(GjSaver *saver, const GjProgram *program);
extern void gj_save_chunk(GjSaver *saver, const uint8 *slot, uint32 source, uint32 nrows);
extern void gj_save_source_end(GjSaver *saver, uint32 source);

/* Raises no error.  Does nothing the second time. */
extern void gj_save_close(GjSaver *saver);

#endif							/* GJ_CLIENT_SAVE_H */
