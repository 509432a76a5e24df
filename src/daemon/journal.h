/*
 * journal.h
 *	  What must outlive gpujoind: how runs ended, and which programs ended gpujoind.
 *
 * The journal is a memfd that the launcher creates and passes to each gpujoind that it
 * starts; so it lives as long as the launcher, and a restart of the server clears
 * it.  Only one gpujoind writes to it at a time; in it, a mutex of the process
 * guards it.  Fingerprints of running programs are in it, so that the next gpujoind
 * knows whom to blame for a crash.
 */
#ifndef GJ_DAEMON_JOURNAL_H
#define GJ_DAEMON_JOURNAL_H

#include "../wire/messages.h"

/* A program that is running; what gj_journal_end() takes. */
typedef struct GjJournalMark
{
	uint64_t	fingerprint;
	int			entry;			/* -1: none */
} GjJournalMark;

/*
 * Maps the journal in `fd` (-1: memory of this process).  With `blame`, programs that
 * are marked as running get a strike: they ended the gpujoind before this one.
 */
extern void gj_journal_open(int fd, bool blame);

/* Counts an outcome of `count` runs. */
extern void gj_journal_count(GjStatus reason, uint64_t count);
extern void gj_journal_counters(GjCounter counter[GJ_NREASONS]);

/* Marks a program as running.  False: it is refused. */
extern bool gj_journal_begin(const GjProgram *program, GjJournalMark *mark);
extern void gj_journal_end(GjJournalMark *mark);

#endif							/* GJ_DAEMON_JOURNAL_H */
