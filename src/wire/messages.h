/*
 * messages.h
 *	  What a backend and gpujoind say to each other.
 *
 * One connection of the SOCK_SEQPACKET socket "gpujoin.<GJ_ABI>.sock" in the data
 * directory serves one question, or one run of one program after the other; closing it is
 * how a query is cancelled and how everything that it held is given back.
 *
 *	backend							gpujoind
 *	HELLO						->
 *								<-	WELCOME			device information
 *	  one of:
 *	STATUS						->
 *								<-	DEVICE ...		one a device, also of those that are of no use
 *								<-	END
 *	CACHE						->					resident data
 *								<-	CACHED ...		one a relation and device
 *								<-	END
 *	EVICT						->					give resident data up
 *								<-	EVICTED			how much
 *	  or a run:
 *	SUBMIT + program			->					right behind HELLO
 *								<-	READY			token; + 2 descriptors: load ring, output ring, unless
 *													the connection has them
 *	ASK + questions				->					which fragments of tables are resident; the first one
 *													right behind SUBMIT, each other one after all
 *													answers to the one before
 *								<-	RESIDENT ...	or, to the first one if it is GJ_ASK_WHOLE: that
 *													all of it is resident and is used now, as if the
 *													backend had sent USE for all sources
 *	USE, CHUNK, SOURCE_END		->					sources 1, 2, ... in order, then 0
 *								<-	SLOT_FREE		the chunk (USE) has left the load ring; not told
 *													of a USE that ends source 0
 *								<-	BATCH			rows in a slot of the output ring
 *	BATCH_FREE					->
 *								<-	DONE			statistics; nothing of the run follows
 *								<-	ERROR			instead of anything above; nothing follows
 *	RELEASE						->					after DONE: nobody will read the result of the stage
 *	HELLO						->					after a DONE that allows it: as above, with the rings
 *													of the run before, whose slots are all free again;
 *													WELCOME may come behind SLOT_FREE of that run
 *	  or a part in loading the sources of a run that another connection has submitted:
 *	ATTACH						->					with the token of that run
 *								<-	READY			+ 1 descriptor: a load ring of its own
 *	CHUNK, SOURCE_END			->					as above
 *								<-	SLOT_FREE
 *								<-	END				the run is over; nothing follows
 *								<-	ERROR			instead of anything above; nothing follows
 *
 * A source has ended when the connection that submitted the run and all that are attached
 * have sent SOURCE_END for it.  An attached connection that is closed before it has ended
 * all sources ends the run: rows could be missing.  Chunks of source 0 may come before all
 * other sources have ended; they wait in their slots.
 *
 * HELLO and WELCOME name the incarnation of gpujoind: a random number that the launcher chooses
 * for each gpujoind that it starts, and tells sessions.  So a gpujoind that outlived its launcher
 * serves nobody.
 *
 * A program that is a stage sends no batch.  Its result stays in gpujoind until its connection is
 * closed, or used again, or told RELEASE, and no run reads it any more.  Another SUBMIT names it by
 * the token of its run, and its backend ends the source that reads it without a chunk.
 *
 * DONE comes before the run has given its device memory back; HELLO of the same process is
 * answered when that is done.
 *
 * DONE can come before all sources have ended (an empty build side).  The backend
 * may then stop loading.  gpujoind keeps the rings until it sees the connection
 * closed.  A ring is one memfd, sealed against shrinking, of `nslots` slots.
 */
#ifndef GJ_WIRE_MESSAGES_H
#define GJ_WIRE_MESSAGES_H

#include "program.h"
#include "reasons.h"
#include "resident.h"

#define GJ_VERSION			"1.0"	/* of gpujoin */
#define GJ_ABI				18	/* raise with any change of src/wire */
#define GJ_STRINGIFY_(x)	#x
#define GJ_STRINGIFY(x)		GJ_STRINGIFY_(x)
#define GJ_SOCKET_NAME		"gpujoin." GJ_STRINGIFY(GJ_ABI) ".sock"
#define GJ_LOCK_NAME		"gpujoin." GJ_STRINGIFY(GJ_ABI) ".lock"
#define GJ_EXIT_DENIED		4	/* gpujoind's status: a limit has cost it its GPU, not a program */
#define GJ_DAEMON_NAME		"gpujoind-" GJ_STRINGIFY(GJ_ABI)

/* Load ring: small, so that it stays in the cache of the core that fills it. */
#define GJ_LOAD_SLOTS		4
#define GJ_LOAD_SLOT_SIZE	(2u * 1024 * 1024)
/* Connections that load one run: the one that submitted it, and those attached to it. */
#define GJ_MAX_LOADERS		65
/* A chunk ends where the pages that it came from may be told (resident.h). */
#define GJ_LOAD_CHUNK_SIZE	(GJ_LOAD_SLOT_SIZE - (uint32_t) sizeof(GjChunkPages))
#define gj_chunk_pages(slot) ((GjChunkPages *) ((uint8_t *) (slot) + GJ_LOAD_CHUNK_SIZE))
#define GJ_OUTPUT_SLOTS		4
#define GJ_OUTPUT_SLOT_SIZE	(4u * 1024 * 1024)

/*
 * While a run starts, while it works on what is resident, and between two of a session, what is waited
 * for comes sooner than a process that sleeps is woken up, which can take 0.3 ms: who waits looks for
 * it so long before it sleeps, unless there are too few processors for the runs that there are.  A GPU's
 * run takes some tenths of a millisecond to open.
 */
#define GJ_SPIN_US			1000
#define GJ_RESULT_SPIN_US	2000
#define GJ_SPIN_PROCESSORS	4	/* a run */

/* What outlives a gpujoind: counters and refused programs, in a memfd of the launcher. */
#define GJ_JOURNAL_SIZE		(64u * 1024)

/* How often gpujoind sends the launcher a byte, as a sign of life. */
#define GJ_BEAT_MS			200

/* Open files that gpujoind wants to have: a run takes three, each loader of it two. */
#define GJ_ENOUGH_FILES		1024

/* Devices that one run can use. */
#define GJ_MAX_RUN_DEVICES	16

/* The longest value carried inside a slot; backends hold longer ones themselves. */
#define GJ_MAX_CARRIED		(32u * 1024)

typedef enum GjDeviceKind
{
	GJ_DEVICE_CPU,
	GJ_DEVICE_CUDA
} GjDeviceKind;

typedef enum GjMessageType
{
	GJ_MSG_HELLO = 1,
	GJ_MSG_STATUS,
	GJ_MSG_SUBMIT,
	GJ_MSG_CHUNK,
	GJ_MSG_SOURCE_END,
	GJ_MSG_BATCH_FREE,
	GJ_MSG_ATTACH,
	GJ_MSG_ASK,					/* GjMsgSlot */
	GJ_MSG_USE,
	GJ_MSG_CACHE,
	GJ_MSG_EVICT,
	GJ_MSG_RELEASE,				/* the type alone */

	GJ_MSG_WELCOME = 64,
	GJ_MSG_DEVICE,
	GJ_MSG_END,
	GJ_MSG_READY,
	GJ_MSG_SLOT_FREE,
	GJ_MSG_BATCH,
	GJ_MSG_DONE,
	GJ_MSG_ERROR,
	GJ_MSG_RESIDENT,
	GJ_MSG_CACHED,
	GJ_MSG_EVICTED,
	GJ_MSG_CACHED_COLUMN
} GjMessageType;

/* Sessions that a limit counts together: of a role, a database, a role in a database, or all. */
typedef struct GjGroup
{
	uint32_t	role;			/* oid; 0: of any */
	uint32_t	database;
} GjGroup;

/* gpujoin.max_running_queries without a limit. */
#define GJ_NO_LIMIT			UINT32_MAX

/* Every message starts with its type. */
typedef struct GjMsgHello
{
	uint32_t	type;
	uint32_t	abi;
	uint32_t	program_size;	/* sizeof(GjProgram), sizeof(GjRunStats): a second look */
	uint32_t	stats_size;
	uint32_t	device;			/* GjDeviceKind wanted for a run */
	uint32_t	pid;			/* of the backend, for the log */
	uint64_t	memory_limit;	/* gpujoin.device_memory_limit in bytes, 0 = none */
	uint64_t	incarnation;	/* that the launcher has told */
	uint32_t	database;		/* oid of the backend's database, for counters */
	uint32_t	max_running;	/* queries that run at once in `running`, or GJ_NO_LIMIT */
	GjGroup		running;
	GjGroup		memory;
	uint64_t	max_memory;		/* bytes of devices that `memory` may have, 0 = no limit */
} GjMsgHello;

typedef struct GjDeviceInfo
{
	char		name[64];
	uint32_t	kind;			/* GjDeviceKind */
	uint32_t	ordinal;
	uint32_t	sessions;		/* programs running now */
	uint32_t	nprocessors;	/* SMs, or threads of the cpu device */
	uint64_t	memory_total;	/* bytes */
	uint64_t	memory_free;	/* bytes that nobody had when the device was opened */
	uint64_t	memory_used;	/* bytes that running programs hold */
	uint64_t	memory_pinned;	/* bytes of host memory in rings, pooled ones included */
	uint64_t	memory_resident;	/* bytes of columns that stay between programs */
	/* of the programs that were completed: */
	uint64_t	runs;
	uint64_t	bytes_in;
	uint64_t	bytes_out;
	double		busy_ms;		/* all phases but waiting */
	/* measured when the device was opened */
	double		copy_in_rate;	/* bytes/s, ring to device */
	double		copy_out_rate;	/* bytes/s, device to ring */
	double		build_rate;		/* rows/s into a hash table */
	double		probe_rate;		/* rows/s against one */
	double		sort_rate;		/* rows/s into a sorted side */
	double		pair_rate;		/* pairs/s that a nested loop evaluates a condition for */
} GjDeviceInfo;

typedef struct GjMsgWelcome
{
	uint32_t	type;
	uint32_t	ncuda;			/* usable GPUs */
	uint64_t	incarnation;	/* of this gpujoind */
	uint32_t	looks;			/* 1: there are processors to look before sleeping */
	uint32_t	cuda_driver;	/* the CUDA that the driver supports, as 13020 for 13.2; 0: none */
	uint32_t	cuda_runtime;	/* the CUDA that gpujoind was built with; 0: without */
	uint32_t	unused;
	char		cuda_reason[128];	/* why ncuda is 0 */
	GjDeviceInfo device;		/* the first device of the kind asked for, if there is one
								 * (memory_total is 0 if not) */
} GjMsgWelcome;

typedef enum GjDeviceStatus
{
	GJ_DEVICE_READY,
	GJ_DEVICE_LEFT_OUT,			/* by gpujoin.devices */
	GJ_DEVICE_UNUSABLE
} GjDeviceStatus;

/* The ordinal of a GPU that no setting can name. */
#define GJ_NO_ORDINAL		UINT32_MAX

typedef struct GjMsgDevice
{
	uint32_t	type;
	uint32_t	status;			/* GjDeviceStatus */
	GjDeviceInfo device;		/* kind, ordinal and name only, unless it is ready */
	char		reason[128];	/* why it is not */
} GjMsgDevice;

typedef struct GjCounter
{
	uint64_t	count;
	int64_t		last;			/* seconds since 1970, 0 = never */
} GjCounter;

/* Whether devices exchange rows, so that each has its part of a build side, not all of it. */
typedef enum GjExchangeMode
{
	GJ_EXCHANGE_AUTO,			/* by size */
	GJ_EXCHANGE_ON,				/* wherever it can be done */
	GJ_EXCHANGE_OFF,
	/* as ON, where keys would split a join, too: */
	GJ_EXCHANGE_RING,			/* nested loops take a ring */
	GJ_EXCHANGE_RANGES			/* sort-merge joins go by ranges */
} GjExchangeMode;

/* How they do. */
typedef enum GjScheme
{
	GJ_SCHEME_NONE,
	GJ_SCHEME_KEYS,				/* each has its part of the keys of a join */
	GJ_SCHEME_RING,				/* blocks of a build side go from device to device */
	GJ_SCHEME_RANGES			/* each has a range of the first key of both sides */
} GjScheme;

/* Names a run, and is known to nobody but who submitted it and whom that told. */
typedef struct GjRunToken
{
	uint8_t		bytes[16];
} GjRunToken;

/* The program follows, in the same message. */
typedef struct GjMsgSubmit
{
	uint32_t	type;
	uint32_t	nbytes;			/* of the program */
	uint32_t	max_devices;	/* gpujoin.devices_per_query, 0 = as many as it is worth */
	uint32_t	exchange;		/* GjExchangeMode */
	uint32_t	keep_exchanged; /* 1: probe rows may stay where they were brought */
	uint32_t	nstages;
	uint64_t	spill_memory;	/* bytes of host memory for what does not fit */
	uint64_t	temp_limit;		/* bytes of temporary files of all of the backend's runs;
								 * UINT64_MAX: no limit */
	char		temp_directory[128];	/* where they go, relative to the data directory: see
										 * gj_temp_directory_known */
	GjRunToken	stages[GJ_MAX_STAGES];	/* whose results the program reads */
} GjMsgSubmit;

typedef struct GjMsgReady
{
	uint32_t	type;
	uint32_t	load_slots;
	uint32_t	load_slot_size;
	uint32_t	output_slots;	/* 0: attached, there is no output ring */
	uint32_t	output_slot_size;
	GjRunToken	token;			/* for those that are to attach */
} GjMsgReady;

typedef struct GjMsgAttach
{
	uint32_t	type;
	GjRunToken	token;
} GjMsgAttach;

/* CHUNK, SOURCE_END, BATCH_FREE, SLOT_FREE, BATCH, USE, RESIDENT; and ASK, which has no slot */
typedef struct GjMsgSlot
{
	uint32_t	type;
	uint32_t	slot;			/* ASK: GJ_ASK_WHOLE, or 0 */
	uint32_t	source;			/* CHUNK, SOURCE_END; USE: the first one */
	uint32_t	nrows;			/* CHUNK, BATCH: the slot's header says the same; USE:
								 * fragments; ASK: questions; RESIDENT: answers, 0: all is
								 * used as it was asked for, and there is no slot */
} GjMsgSlot;

/*
 * The questions are about all tables of all sources, and when the map's LSNs were those that are told
 * all their pages were all-visible, or had no tuple where GjAskPages leave them out.
 */
#define GJ_ASK_WHOLE		1u

/* Bytes of questions in an ASK. */
#define GJ_MAX_ASK			GJ_MAX_PROGRAM_SIZE

typedef struct GjMsgCached
{
	uint32_t	type;
	uint32_t	unused;
	GjCached	cached;
} GjMsgCached;

/* After a CACHED, for each of its columns. */
typedef struct GjMsgCachedColumn
{
	uint32_t	type;
	uint32_t	unused;
	GjCachedColumn column;
} GjMsgCachedColumn;

typedef struct GjMsgEvict
{
	uint32_t	type;
	uint32_t	database;		/* 0: everything */
	uint32_t	relation;		/* oid; 0: all of the database */
	uint32_t	unused;
} GjMsgEvict;

typedef struct GjMsgEvicted
{
	uint32_t	type;
	uint32_t	unused;
	uint64_t	nbytes;
} GjMsgEvicted;

/* What the milliseconds of a run went to; see GjRunStats. */
typedef enum GjPhase
{
	GJ_PHASE_TRANSFER,			/* ring to device */
	GJ_PHASE_BUILD,				/* hash tables */
	GJ_PHASE_PROBE,				/* filters and join steps */
	GJ_PHASE_AGGREGATE,
	GJ_PHASE_RETURN,			/* gathering and copying result rows */
	GJ_PHASE_WAIT,				/* waiting for the backend */
	GJ_NPHASES
} GjPhase;

typedef struct GjStepStats
{
	uint64_t	rows_in;		/* probe rows that reached the step */
	uint64_t	rows_out;		/* rows that left it, after the residual condition */
	uint32_t	set_algorithm;	/* GJ_JOIN_SET: what the device has used, 0 if nothing */
	uint32_t	partitioned;	/* hash tables that were built by partitions */
	uint32_t	direct;			/* direct tables, that were built or kept */
	uint32_t	nparts;			/* distinct intersections: parts that they came in */
} GjStepStats;

typedef struct GjSourceStats
{
	uint64_t	rows_in;		/* rows loaded */
	uint64_t	rows_out;		/* rows that passed the device filter */
	uint64_t	asked;			/* values of dictionaries for which conditions were evaluated */
	uint64_t	nfragments;		/* resident fragments that have its rows, */
	uint64_t	nexcluded;		/* those of them that were not read: no row passes the filter, */
	uint64_t	rows_excluded;	/* and their rows */
} GjSourceStats;

typedef struct GjDeviceStats
{
	uint32_t	ordinal;
	uint32_t	unused;
	uint64_t	rows;			/* probe rows that it took */
	uint64_t	chunks;			/* in so many chunks or resident fragments */
	double		busy_ms;		/* all phases but waiting */
	uint64_t	exchanged;		/* bytes of rows that came from other devices */
} GjDeviceStats;

typedef struct GjRunStats
{
	double		ms[GJ_NPHASES];
	uint64_t	bytes_in;		/* copied to the device */
	uint64_t	bytes_out;		/* copied from it */
	uint64_t	memory_peak;	/* device memory */
	uint64_t	rows_out;		/* rows of the result */
	GjSourceStats source[GJ_MAX_SOURCES];
	GjStepStats step[GJ_MAX_SOURCES];
	uint32_t	ndevices;
	uint32_t	npasses;		/* how often the program ran, each time on a share of the keys or
								 * a block of build rows; 1: on all of them */
	uint32_t	exchange_step;	/* 1 + the step whose rows were exchanged; 0: none */
	uint32_t	scheme;			/* GjScheme */
	uint32_t	group_places;	/* fused passes that found groups by their places */
	uint32_t	sorted_runs;	/* that were merged on the host; 0: one device had all rows */
	uint64_t	spilled_memory; /* bytes kept in host memory, and in temporary files */
	uint64_t	spilled_disk;
	double		elapsed_ms;		/* from the first to the last that the devices had to do */
	GjDeviceStats device[GJ_MAX_RUN_DEVICES];
} GjRunStats;

/*
 * Adds what another run of the program has done, before it or on another device: times, bytes and
 * rows; of sources only those whose bits `counted` has.
 */
static inline void
gj_add_run_stats(GjRunStats *sum, const GjRunStats *stats, uint32_t counted)
{
	for (int i = 0; i < GJ_NPHASES; i++)
		sum->ms[i] += stats->ms[i];
	sum->bytes_in += stats->bytes_in;
	sum->bytes_out += stats->bytes_out;
	sum->rows_out += stats->rows_out;
	sum->group_places += stats->group_places;
	for (int i = 0; i < GJ_MAX_SOURCES; i++)
	{
		if (counted >> i & 1)
		{
			sum->source[i].rows_in += stats->source[i].rows_in;
			sum->source[i].rows_out += stats->source[i].rows_out;
			sum->source[i].asked += stats->source[i].asked;
			sum->source[i].nfragments += stats->source[i].nfragments;
			sum->source[i].nexcluded += stats->source[i].nexcluded;
			sum->source[i].rows_excluded += stats->source[i].rows_excluded;
		}
		sum->step[i].rows_in += stats->step[i].rows_in;
		sum->step[i].rows_out += stats->step[i].rows_out;
		if (stats->step[i].set_algorithm != GJ_SETS_AUTO)
			sum->step[i].set_algorithm = stats->step[i].set_algorithm;
		sum->step[i].partitioned += stats->step[i].partitioned;
		sum->step[i].nparts += stats->step[i].nparts;
		sum->step[i].direct += stats->step[i].direct;
	}
}

typedef struct GjMsgDone
{
	uint32_t	type;
	uint32_t	may_keep;		/* 1: the connection may wait for a next run: not too many do */
	GjRunStats	stats;
} GjMsgDone;

typedef struct GjMsgError
{
	uint32_t	type;
	uint32_t	reason;			/* GjStatus */
	char		detail[240];	/* without any value from the data */
} GjMsgError;

#endif							/* GJ_WIRE_MESSAGES_H */
