/*
 * journal.c
 *	  Counters and the fingerprints of programs, in memory that outlives gpujoind.
 *
 * An entry is born with `running` = 1 and dies when its last run ends, unless it has a
 * strike.  A program that was the only one to run when gpujoind crashed is banned at
 * once; where several ran, each gets a strike and the second one bans it.
 */
#define _GNU_SOURCE
#include "journal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define GJ_JOURNAL_MAGIC	0x314c4e524a4a47ULL /* "GJJRNL1" */
#define GJ_JOURNAL_COUNTERS 64	/* room for reasons to come */
#define GJ_JOURNAL_ENTRIES	1024
#define GJ_STRIKES			2	/* that ban a program */

typedef struct GjJournalEntry
{
	uint64_t	fingerprint;
	uint32_t	running;		/* runs; 0 and no strikes: free entry */
	uint32_t	strikes;		/* GJ_STRIKES: banned */
} GjJournalEntry;

typedef struct GjJournal
{
	uint64_t	magic;
	GjCounter	counter[GJ_JOURNAL_COUNTERS];
	GjJournalEntry entry[GJ_JOURNAL_ENTRIES];
} GjJournal;

static_assert(GJ_NREASONS <= GJ_JOURNAL_COUNTERS, "too few counters");
static_assert(sizeof(GjJournal) <= GJ_JOURNAL_SIZE, "journal is too small");

static GjJournal *journal;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Turns the marks that the last gpujoind left into strikes, or clears them. */
static void
settle(bool blame)
{
	uint32_t	suspects = 0;

	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
		suspects += journal->entry[i].running > 0;
	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
	{
		GjJournalEntry *entry = &journal->entry[i];

		if (entry->running == 0)
			continue;
		entry->running = 0;
		if (!blame)
			continue;
		entry->strikes = suspects == 1 ? GJ_STRIKES : entry->strikes + 1;
		if (entry->strikes >= GJ_STRIKES)
			gj_log(GJ_WARNING, "program %016" PRIx64 " ended gpujoind and is refused until the server restarts",
				   entry->fingerprint);
	}
}

void
gj_journal_open(int fd, bool blame)
{
	struct stat st;
	void	   *memory = MAP_FAILED;

	if (fd >= 0)
	{
		if (fstat(fd, &st) == 0 &&
			(st.st_size >= GJ_JOURNAL_SIZE || ftruncate(fd, GJ_JOURNAL_SIZE) == 0))
			memory = mmap(NULL, sizeof(GjJournal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED)
			gj_log(GJ_WARNING, "could not map the journal: %s", strerror(errno));
		close(fd);
	}
	if (memory == MAP_FAILED)
		memory = mmap(NULL, sizeof(GjJournal), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
	{
		gj_log(GJ_ERROR, "out of memory");
		exit(2);
	}
	journal = memory;
	if (journal->magic != GJ_JOURNAL_MAGIC)
	{
		memset(journal, 0, sizeof(*journal));
		journal->magic = GJ_JOURNAL_MAGIC;
	}
	settle(blame);
}

void
gj_journal_count(GjStatus reason, uint64_t count)
{
	if (reason >= GJ_NREASONS || count == 0)
		return;
	pthread_mutex_lock(&lock);
	journal->counter[reason].count += count;
	journal->counter[reason].last = (int64_t) time(NULL);
	pthread_mutex_unlock(&lock);
}

void
gj_journal_counters(GjCounter counter[GJ_NREASONS])
{
	pthread_mutex_lock(&lock);
	memcpy(counter, journal->counter, GJ_NREASONS * sizeof(GjCounter));
	pthread_mutex_unlock(&lock);
}

/* FNV-1a over the program, its lease as zero: that is an estimate, not the program. */
static uint64_t
fingerprint_of(const GjProgram *program)
{
	const uint8_t *bytes = (const uint8_t *) program;
	const size_t lease = offsetof(GjProgram, lease);
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < program->nbytes; i++)
	{
		bool		inside = i >= lease && i < lease + sizeof(program->lease);

		hash = (hash ^ (inside ? 0 : bytes[i])) * UINT64_C(0x100000001b3);
	}
	return hash;
}

/* The program's entry, else a free one, else one with a strike that is not running. */
static GjJournalEntry *
find_entry(uint64_t fingerprint)
{
	GjJournalEntry *best = NULL;

	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
	{
		GjJournalEntry *entry = &journal->entry[i];

		if (entry->running > 0 || entry->strikes > 0)
		{
			if (entry->fingerprint == fingerprint)
				return entry;
			if (entry->running == 0 && !best)
				best = entry;
		}
		else if (!best || best->strikes > 0)
			best = entry;
	}
	if (best)
	{
		best->strikes = 0;
		best->fingerprint = fingerprint;
	}
	return best;
}

bool
gj_journal_begin(const GjProgram *program, GjJournalMark *mark)
{
	GjJournalEntry *entry;
	bool		refused;

	mark->fingerprint = fingerprint_of(program);
	mark->entry = -1;
	pthread_mutex_lock(&lock);
	entry = find_entry(mark->fingerprint);
	refused = entry && entry->strikes >= GJ_STRIKES;
	if (entry && !refused)
	{
		entry->running++;
		mark->entry = (int) (entry - journal->entry);
	}
	pthread_mutex_unlock(&lock);
	return !refused;
}

void
gj_journal_end(GjJournalMark *mark)
{
	if (mark->entry < 0)
		return;
	pthread_mutex_lock(&lock);
	journal->entry[mark->entry].running--;
	pthread_mutex_unlock(&lock);
	mark->entry = -1;
}
