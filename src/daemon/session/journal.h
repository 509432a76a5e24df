/*
 * journal.h
 *	  What must outlive gpujoind: how runs ended (wire/counters.h), and which programs ended gpujoind.
 *
 * The journal is a memfd that the launcher creates and passes to each gpujoind that it
 * starts; so it lives as long as the launcher, and a restart of the server clears
 * it.  Only one gpujoind writes to it at a time; in it, a mutex of the process
 * guards it.  Fingerprints of programs at work on a device are in it (not of those that
 * wait for their backend), so that the next gpujoind knows whom to blame for a crash.
 */
#ifndef GJ_DAEMON_SESSION_JOURNAL_H
#define GJ_DAEMON_SESSION_JOURNAL_H

#include "wire/messages.h"

/* A run of a program. */
typedef struct GjJournalMark
{
	uint64_t	fingerprint;
	int			entry;			/* -1: it does not work now */
	int			report;			/* its number for the report of a crash, session/run.c's */
} GjJournalMark;

/*
 * Maps the journal in `fd` (-1: memory of this process).  With `blame`, programs that
 * are marked as working get a strike: one of them ended the gpujoind before this one.
 */
extern void gj_journal_open(int fd, bool blame);

/* Counts the outcome of a run of a session of this database. */
extern void gj_journal_count(uint32_t database, GjStatus reason);

/* Fills in the mark of a run that does not work yet.  False: its program is refused. */
extern bool gj_journal_begin(const GjProgram *program, GjJournalMark *mark);

/*
 * From here on the run works on the device, or no longer does: all it queued is done.
 * Either may be told twice.
 */
extern void gj_journal_work(GjJournalMark *mark);
extern void gj_journal_rest(GjJournalMark *mark);

/* The program has run to its end: what it was suspected of is forgotten. */
extern void gj_journal_clear(const GjJournalMark *mark);

#endif							/* GJ_DAEMON_SESSION_JOURNAL_H */
