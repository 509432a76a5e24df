/*
 * journal.c
 *	  The fingerprints of programs, in memory that outlives gpujoind, and counters, in a file.
 *
 * An entry is there while runs of its program work on a device, and as long as it has a
 * strike.  A program that alone was at work when gpujoind crashed is banned at once;
 * where several were, each gets a strike and the second one bans it, unless it has run
 * to its end in between.
 *
 * Programs are told apart by their shape: estimates and constants are left out, so that
 * the same query with other literals or after ANALYZE is the same program.
 */
#define _GNU_SOURCE
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/base.h"
#include "wire/counters.h"

#define GJ_JOURNAL_MAGIC	0x334c4e524a4a47ULL /* "GJJRNL3" */
#define GJ_JOURNAL_ENTRIES	1024
#define GJ_STRIKES			2	/* that ban a program */

typedef struct GjJournalEntry
{
	uint64_t	fingerprint;
	uint32_t	working;		/* runs; 0 and no strikes: free entry */
	uint32_t	strikes;		/* GJ_STRIKES: banned */
} GjJournalEntry;

typedef struct GjJournal
{
	uint64_t	magic;
	GjJournalEntry entry[GJ_JOURNAL_ENTRIES];
} GjJournal;

static_assert(sizeof(GjJournal) <= GJ_JOURNAL_SIZE, "journal is too small");

static GjJournal *journal;
static GjCounterFile counts;	/* `counted` of it; the file has that, too */
static int	counters_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Turns the marks that the last gpujoind left into strikes, or clears them. */
static void
settle(bool blame)
{
	uint32_t	suspects = 0;

	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
		suspects += journal->entry[i].working > 0;
	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
	{
		GjJournalEntry *entry = &journal->entry[i];

		if (entry->working == 0)
			continue;
		entry->working = 0;
		/* SIGKILL, as when memory is short, leaves no other word of it */
		gj_log(GJ_LOG, "program %016" PRIx64 " was at work when the gpujoind before this one ended",
			   entry->fingerprint);
		if (!blame)
			continue;
		entry->strikes = suspects == 1 ? GJ_STRIKES : entry->strikes + 1;
		if (entry->strikes >= GJ_STRIKES)
			gj_log(GJ_WARNING,
				   "program %016" PRIx64 " ended gpujoind and is refused until the server restarts",
				   entry->fingerprint);
	}
}

/* Takes over the counts of the gpujoind before, if the file is one that the launcher has made. */
static void
open_counters(void)
{
	counters_fd = open(GJ_COUNTERS_NAME, O_RDWR | O_CLOEXEC);
	if (counters_fd >= 0 && pread(counters_fd, &counts, sizeof(counts), 0) == sizeof(counts))
		return;
	gj_log(GJ_WARNING, "could not read \"%s\": counts are lost", GJ_COUNTERS_NAME);
	memset(&counts, 0, sizeof(counts));
	if (counters_fd >= 0)
		close(counters_fd);
	counters_fd = -1;
}

void
gj_journal_open(int fd, bool blame)
{
	struct stat st;
	void	   *memory = MAP_FAILED;

	if (fd >= 0)
	{
		open_counters();
		if (fstat(fd, &st) == 0 &&
			(st.st_size >= GJ_JOURNAL_SIZE || posix_fallocate(fd, 0, GJ_JOURNAL_SIZE) == 0))
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
gj_journal_count(uint32_t database, GjStatus reason)
{
	GjDatabaseCounts *of;

	if (reason >= GJ_NREASONS)
		return;
	pthread_mutex_lock(&lock);
	of = gj_database_counts(counts.counted, database);
	of->counter[reason].count++;
	of->counter[reason].last = (int64_t) time(NULL);
	if (counters_fd >= 0 &&
		pwrite(counters_fd, of, sizeof(*of), (char *) of - (char *) &counts) != sizeof(*of))
	{
		gj_log(GJ_WARNING, "could not write \"%s\", counts will be lost: %s", GJ_COUNTERS_NAME, strerror(errno));
		close(counters_fd);
		counters_fd = -1;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- fingerprints */

/* FNV-1a */
static uint64_t
hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#define hash_array(hash, program, type, field) \
	hash_bytes(hash, gj_program_array(program, type, field), \
			   (program)->n##field * sizeof(type))

static uint64_t
hash_sources(uint64_t hash, const GjProgram *program)
{
	for (uint32_t i = 0; i < program->nsources; i++)
	{
		GjSource	source = gj_program_array(program, GjSource, sources)[i];

		source.nrows_hint = 0;
		source.capacity = 0;
		hash = hash_bytes(hash, &source, sizeof(source));
	}
	return hash;
}

static uint64_t
hash_instrs(uint64_t hash, const GjProgram *program)
{
	for (uint32_t i = 0; i < program->ninstrs; i++)
	{
		GjInstr		instr = gj_program_array(program, GjInstr, instrs)[i];

		if (instr.op == GJ_OP_CONST || instr.op == GJ_OP_CONST_T || instr.op == GJ_OP_IN_I ||
			instr.op == GJ_OP_IN_F || instr.op == GJ_OP_IN_T)
		{
			instr.arg = instr.n = 0;
			instr.imm = 0;
		}
		hash = hash_bytes(hash, &instr, sizeof(instr));
	}
	return hash;
}

/* What is done with sets; how many there are, thresholds and limits are constants. */
static uint64_t
hash_sets(uint64_t hash, const GjProgram *program)
{
	for (uint32_t i = 0; i < program->nsets; i++)
	{
		const GjSetSpec *spec = &gj_program_array(program, GjSetSpec, sets)[i];
		const uint8_t shape[] = {spec->algorithm, spec->operation, spec->predicate, spec->self,
		spec->top_k > 0, spec->distinct, spec->behind};

		hash = hash_bytes(hash, shape, sizeof(shape));
	}
	return hash;
}

/* Of a checked program. */
static uint64_t
fingerprint_of(const GjProgram *program)
{
	const uint8_t head[] = {program->kind, program->output, program->fail_point,
	(uint8_t) program->ndistinct_keys, (uint8_t) program->ndependent_keys};
	uint64_t	hash = hash_bytes(UINT64_C(0xcbf29ce484222325), head, sizeof(head));

	hash = hash_sources(hash, program);
	hash = hash_array(hash, program, GjColumnType, columns);
	hash = hash_array(hash, program, GjStep, steps);
	hash = hash_array(hash, program, GjExpr, exprs);
	hash = hash_instrs(hash, program);
	hash = hash_array(hash, program, uint32_t, outputs);
	hash = hash_array(hash, program, GjAggregate, aggregates);
	hash = hash_array(hash, program, GjGroupKey, group_keys);
	hash = hash_array(hash, program, GjSetStep, set_steps);
	hash = hash_array(hash, program, GjSortKey, sort_keys);
	return hash_sets(hash, program);
}

/* ---- runs */

/* The entry of a program, or NULL.  The lock is held, here and below. */
static GjJournalEntry *
find_entry(uint64_t fingerprint)
{
	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
	{
		GjJournalEntry *entry = &journal->entry[i];

		if (entry->fingerprint == fingerprint && (entry->working > 0 || entry->strikes > 0))
			return entry;
	}
	return NULL;
}

/* A free entry, else one with a strike that does not work; NULL: all work. */
static GjJournalEntry *
new_entry(uint64_t fingerprint)
{
	GjJournalEntry *best = NULL;

	for (int i = 0; i < GJ_JOURNAL_ENTRIES; i++)
	{
		GjJournalEntry *entry = &journal->entry[i];

		if (entry->working == 0 && (!best || entry->strikes < best->strikes))
			best = entry;
	}
	if (best)
		*best = (GjJournalEntry) {fingerprint, 0, 0};
	return best;
}

bool
gj_journal_begin(const GjProgram *program, GjJournalMark *mark)
{
	GjJournalEntry *entry;
	bool		banned;

	mark->fingerprint = fingerprint_of(program);
	mark->entry = -1;
	pthread_mutex_lock(&lock);
	entry = find_entry(mark->fingerprint);
	banned = entry && entry->strikes >= GJ_STRIKES;
	pthread_mutex_unlock(&lock);
	return !banned;
}

void
gj_journal_work(GjJournalMark *mark)
{
	GjJournalEntry *entry;

	/* it has not rested: devices of a team went on while their session waited */
	if (mark->entry >= 0)
		return;
	pthread_mutex_lock(&lock);
	entry = find_entry(mark->fingerprint);
	if (!entry)
		entry = new_entry(mark->fingerprint);
	if (entry)
	{
		entry->working++;
		mark->entry = (int) (entry - journal->entry);
	}
	pthread_mutex_unlock(&lock);
}

void
gj_journal_rest(GjJournalMark *mark)
{
	if (mark->entry < 0)
		return;
	pthread_mutex_lock(&lock);
	journal->entry[mark->entry].working--;
	pthread_mutex_unlock(&lock);
	mark->entry = -1;
}

void
gj_journal_clear(const GjJournalMark *mark)
{
	GjJournalEntry *entry;

	pthread_mutex_lock(&lock);
	entry = find_entry(mark->fingerprint);
	if (entry)
		entry->strikes = 0;
	pthread_mutex_unlock(&lock);
}
