/*
 * state.h
 *	  What run_team*.c, team/member.c, team/thread.c, team/exchange.c, team/partition.c and team/pass.c share.
 *
 * `lock` guards what says so; the rest belongs to the session's thread, or to the thread of
 * a member while it works.
 */
#ifndef GJ_DAEMON_TEAM_STATE_H
#define GJ_DAEMON_TEAM_STATE_H

#include <pthread.h>

#include "team.h"
#include "daemon/base/base.h"

/* Numbers of slots that are a member's own start here. */
#define GJ_OWN_SLOTS		(UINT32_C(1) << 30)

/*
 * How long the session's thread and those of members look for what the other has done before they
 * sleep: to wake one can take 0.3 ms.
 */
#define GJ_TEAM_SPIN_US		2000

typedef struct GjTeamGroups GjTeamGroups;

typedef enum GjTaskKind
{
	GJ_TASK_OPEN,				/* start the member's run */
	GJ_TASK_CHUNK,
	GJ_TASK_USE,				/* those of the outer side, or of one that is exchanged */
	GJ_TASK_USE_INNER,			/* those of an inner side, wherever they lie */
	GJ_TASK_SEND,				/* exchange: all rows of a source that have come */
	GJ_TASK_RECEIVE,			/* exchange: a parcel */
	GJ_TASK_RESERVE,			/* exchange: memory for outer rows on their way */
	GJ_TASK_SOURCE_END,
	GJ_TASK_LOAD,				/* take the inner sides that are kept on the host */
	GJ_TASK_PASSES,				/* take passes until there are no more */
	GJ_TASK_FLAGS,				/* which inner rows of a step have a match: adds what it knows */
	GJ_TASK_ROWS,				/* sends some of the rows that come out by themselves */
	GJ_TASK_FINISH,
	GJ_TASK_GROUPS				/* put groups together until there are no more */
} GjTaskKind;

/* A slot of the load ring that members read; guarded by lock. */
typedef struct GjSlotUse
{
	struct GjSlotUse *next;		/* in the list of those in use, or to be given back */
	uint32_t	slot;
	uint32_t	nusers;
} GjSlotUse;

/* Fragments of an inner side that all members use: one block, with their pages. */
typedef struct GjSharedUses
{
	uint32_t	n;
	GjUse	   *uses;
	GjPinned   *used;
	/* guarded by lock */
	uint32_t	nusers;			/* for whom the source has yet to end; the last one gives them back */
	bool		failed;
} GjSharedUses;

typedef struct GjTask
{
	struct GjTask *next;
	GjTaskKind	kind;
	uint32_t	source;
	uint32_t	nrows;			/* USE: fragments */
	/* USE: the task's own, GjUse[nrows] and what they point to */
	uint8_t    *memory;
	uint32_t	slot;
	bool		keep;			/* CHUNK: it may become resident here */
	GjSharedUses *shared;		/* USE_INNER */
	GjParcel   *parcel;			/* RECEIVE, */
	uint32_t	from;			/* of this member, by its number */
} GjTask;

typedef struct GjTaskList
{
	GjTask	   *first;
	GjTask	  **end;
} GjTaskList;

static inline void
gj_put_task(GjTaskList *list, GjTask *task)
{
	task->next = NULL;
	*list->end = task;
	list->end = &task->next;
}

/* Takes the task that a link of the list leads to. */
static inline GjTask *
gj_unlink_task(GjTaskList *list, GjTask **link)
{
	GjTask	   *task = *link;

	*link = task->next;
	if (!*link)
		list->end = link;
	return task;
}

static inline GjTask *
gj_take_task(GjTaskList *list)
{
	return list->first ? gj_unlink_task(list, &list->first) : NULL;
}

static inline void
gj_start_list(GjTaskList *list)
{
	list->first = NULL;
	list->end = &list->first;
}

/* A device of the team, and its thread. */
typedef struct GjMember
{
	struct GjTeam *team;
	GjDeviceEntry *entry;
	GjLease		lease;
	GjRunHost	host;			/* of its runs: the functions of team/team.c */
	GjRun	   *run;
	bool		started;		/* a thread was found for it */
	bool		working;		/* atomic: and has not left it yet */
	struct GjMember *next;		/* of those for whom one is to be found */
	bool		lost;			/* closing its run showed that the device is */
	GjTaskList	own;			/* guarded by lock */
	GjTaskList	inbox;			/* guarded by lock: parcels, ahead of all else once it takes them */
	uint32_t	turn;			/* the member whose parcels it takes first */
	GjTaskList	held;			/* USE_INNER, done, whose fragments its run reads when their source ends */
	bool		opened;			/* OPEN was done */
	bool		reserved;		/* RESERVE was done */
	bool		waits;			/* for `granted`, and for nothing else; guarded by lock */
	bool		sent;			/* the run has made something */
	bool		complete;		/* its run is; guarded by lock */
	bool		restless;		/* the run may have chunks that it has not worked on, and does
								 * not know that it waits now */
	GjAggState	states[GJ_MAX_AGGREGATES];	/* where its run puts them */
	uint64_t	outer_rows;
	uint64_t	nchunks;		/* of outer rows, or fragments */
	uint64_t	exchanged;		/* bytes that other devices sent */
	GjDeviceTotals totals;		/* of its runs */
	uint64_t	tile;			/* of sets: the one that it takes next */
	bool		has_tile;
	GjTeamGroups *keeps_groups; /* what its runs hand groups over to; NULL: they send them */
	bool		hands_over;		/* its runs hand rows or groups over as sorted runs */
	GjSegment  *part;			/* where parts of groups are filled and read */

	GjProgram  *program;		/* passes: a copy with exact sizes; exchange: without filters */

	/* passes */
	GjSegment  *staging;		/* slots that are filled from records */
	uint64_t	nstaged;		/* slots of it that its run was given, */
	uint64_t	nread;			/* and has read */
} GjMember;

/* What a member wants of the output ring. */
typedef enum GjWish
{
	GJ_WISH_NOTHING,
	GJ_WISH_SLOT,
	GJ_WISH_SEND
} GjWish;

typedef struct GjPartition GjPartition;
typedef struct GjTeamSorted GjTeamSorted;

struct GjTeam
{
	const GjProgram *program;
	GjTeamOptions options;
	const GjRunHost *host;
	GjErrorText error;			/* guarded by lock */
	uint32_t	nmembers;
	GjMember	members[GJ_MAX_RUN_DEVICES];
	bool		direct;			/* one run without a thread */
	double		started_ms;		/* when the first chunk came; 0: none has */
	bool		spill;			/* what the run keeps is not expected to fit */
	GjSpill		store;			/* parts of sources and groups, and sorted runs, on the host, */
	bool		has_store;		/* if there can be any */
	GjPartition *partition;		/* NULL: no source is kept on the host */
	int			exchange_step;	/* rows are exchanged by its keys; -1: they are not */
	uint64_t	exchange_space; /* memory that outer rows on their way may take on each device; 0: not known
								 * yet */
	/*
	 * Parts of groups: [0] with the distinct key, if the program has one, [1] without.
	 * NULL: there are no groups, or one run makes them all.
	 */
	GjTeamGroups *groups[2];
	GjTeamSorted *sorted;		/* sorted runs; NULL: there is no order, or one run has all rows */
	uint32_t	ended;			/* sources, one bit each */
	bool		complete;
	bool		finished;		/* the runs of all members are, so that none reads what is another's */
	int			wake_fd;		/* eventfd; -1 if direct */
	uint64_t	next_tile;		/* atomic: of sets, that no member has taken */
	uint32_t	tile_pairs;		/* GjRunHost */
	uint32_t	asked;			/* sources, one bit each, whose fragments may be resident */
	bool		serving;		/* a wish for the output ring is being granted */
	uint32_t	stop;			/* atomic: members are to end */

	bool		loads;			/* atomic: chunks come, whose loaders need the processors */
	bool		staying;		/* atomic: members keep outer rows that are exchanged */
	uint32_t	told;			/* atomic: how often members were told of something, */
	uint32_t	woken;			/* atomic: and the session's thread */

	pthread_mutex_t lock;
	pthread_cond_t work;		/* a task, or the end: gj_team_tell */
	pthread_cond_t granted;		/* a wish was granted, the output ring is free, or a slot of sorted rows */
	/* guarded by lock */
	GjTaskList	outer;			/* tasks for whichever member is free */
	uint32_t	nidle;
	bool		closing;
	GjStatus	status;			/* the first failure */
	uint32_t	nsending;		/* exchange: members that are to send the last outer rows */
	uint64_t	outer_sent[GJ_MAX_RUN_DEVICES]; /* exchange: outer rows for each member, its own too */
	GjSlotUse  *used;
	GjSlotUse  *freed;
	GjMember   *writer;			/* who has the output ring */
	GjWish		wish;
	uint32_t	wish_rows;
	uint8_t    *output_slot;	/* granted */
	bool		sent;			/* a batch has gone out */
	GjAggState	states[GJ_MAX_AGGREGATES];	/* merged */
	uint8_t    *flags;			/* of the inner rows of a step, merged; also read without it */
	uint64_t	nflags;
	GjRunStats	stats;			/* merged */
};

/* ---- team/thread.c */

/* Finds the member a thread, one that has left another one or a new one. */
extern bool gj_member_start(GjMember *member);

/* Waits until the thread has left the member, after the team was told to close. */
extern void gj_member_await_end(GjMember *member);

/* ---- team/member.c */

/* What the thread does until the team is told to close. */
extern void gj_member_work(GjMember *member);

/* Waits for what `granted` tells of.  The lock is held. */
extern void gj_member_await_grant(GjMember *member);

/* Tells all who wait for it.  The lock is held. */
extern void gj_team_grant(GjTeam *team);

/* Prepares a run of the member's, in any thread: gj_run_prepare. */
extern GjStatus gj_member_prepare_run(GjMember *member, const GjProgram *program);

/* Opens a run of the member's. */
extern void gj_member_open_run(GjMember *member, const GjProgram *program, GjStatus *status);

/* Closes the member's run; GJ_DEVICE_LOST if the device is gone. */
extern GjStatus gj_member_close_run(GjMember *member);

/* Notes an error of a member's run for the team; returns the status. */
extern GjStatus gj_member_error(GjMember *member, GjStatus status);

/* Adds what a run of the member's did to its totals. */
extern void gj_member_count(GjMember *member, const GjRunStats *stats);

/* Ends a run: merges states, and statistics of the sources in `counted` (bits). */
extern GjStatus gj_member_finish_run(GjMember *member, uint32_t counted);

/* The member's slot for parts of groups; a GjRunHost's function, arg is the member. */
extern GjStatus gj_member_part_slot(void *arg, uint8_t **memory);

/* A member has used fragments, or will not any more.  The lock is not held. */
extern void gj_team_drop_shared(GjTeam *team, GjSharedUses *shared, bool failed);

/* Frees a task and what is its own. */
extern void gj_team_free_task(GjTeam *team, GjTask *task);

/* ---- team/team.c */

/* Wakes the session's thread. */
extern void gj_team_wake(GjTeam *team);

/* Wakes all members.  The lock is held. */
extern void gj_team_tell(GjTeam *team);

/* team/member.c: waits until they are told of something, at first without sleeping.  The lock is held. */
extern void gj_team_await(GjTeam *team);

/* Puts a task into a list; the lock is not held. */
extern void gj_team_post(GjTeam *team, GjTaskList *list, GjTask *task);

/* The same for copies of a task, one for every member: all of them, or none if memory is short. */
extern GjStatus gj_team_post_copies(GjTeam *team, const GjTask *task);

/*
 * Waits until a member has woken the session's thread, which has seen team->woken so, with `look` at
 * first without sleeping.  False: none has for a while.
 */
extern bool gj_team_await_members(GjTeam *team, uint32_t seen, bool look);

/* True if the runs of members are those of parts, one after the other, of what is kept on the host. */
extern bool gj_team_has_passes(const GjTeam *team);

/* Notes an error of the session's thread; returns the status. */
extern GjStatus gj_team_fail(GjTeam *team, GjStatus status, const char *text);

/* Notes why something could not be kept on the host, in any thread; returns the status. */
extern GjStatus gj_team_store_fails(GjTeam *team, GjStatus status);

/* A task for every member. */
extern GjStatus gj_team_for_all(GjTeam *team, GjTaskKind kind, uint32_t source);

/* The same, but nobody waits for it. */
extern GjStatus gj_team_post_for_all(GjTeam *team, GjTaskKind kind, uint32_t source);

/* ---- team/resident.c */

/* As gj_team_ask and gj_team_use, of a team with threads; nothing is kept on the host. */
extern GjStatus gj_team_ask_all(GjTeam *team, const uint8_t *memory);
/* Asks n runs, and has their one answer sent. */
extern GjStatus gj_team_ask_runs(GjTeam *team, GjRun **runs, uint32_t n, const uint8_t *question);
extern GjStatus gj_team_use_all(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses);

/* The number of the member that is to keep a chunk; -1: none is. */
extern int	gj_team_place(GjTeam *team, uint32_t source, const uint8_t *chunk);

/* ---- team/exchange.c */

/*
 * The step that n devices had better exchange rows by, or -1.  too_large: each of them has no
 * room for all inner rows.
 */
extern int	gj_exchange_choose(const GjTeam *team, uint32_t n, bool too_large);

/* Device memory of a step's inner side, as the program's lease counts it. */
extern uint64_t gj_step_side_bytes(const GjProgram *p, const GjStep *step);

/* What a device of n then has to keep less than all of the inner sides. */
extern uint64_t gj_exchange_saves(const GjProgram *program, int step, uint32_t n);

/* True if rows of the source are exchanged. */
extern bool gj_exchange_has(const GjTeam *team, uint32_t source);

/*
 * The inner source has ended, and no member works on anything: waits until its rows are where they belong.
 * *kept: all members have a side that was kept, and their runs will find it.
 */
extern GjStatus gj_exchange_end(GjTeam *team, uint32_t source, bool *kept);

/*
 * Rows of a source come, in a chunk or else resident ones.  If these are the first outer ones, and not
 * only noted, all inner sides are built or were kept, and no member takes memory: reserves what outer
 * rows need.  Waits where rows may be returned before the end of the run.
 */
extern GjStatus gj_exchange_rows(GjTeam *team, uint32_t source, bool chunk);

/*
 * The outer source has ended, and no member works on anything: waits until members have sent what they
 * have, and taken what others have, or what was kept of it.
 */
extern GjStatus gj_exchange_send_outer(GjTeam *team);

/*
 * The same where all tasks of the source are members' own, and no inner rows come out by themselves:
 * they end it, too.  Waits until they have noted what they use, and as gj_exchange_rows.
 */
extern GjStatus gj_exchange_end_outer(GjTeam *team);

/* Prepares the run of a member, in any thread. */
extern GjStatus gj_exchange_prepare(GjMember *member);

/* GjExchangeOps's functions, arg is the member. */
extern GjStatus gj_member_get_parcel(void *arg, GjParcel *parcels, uint32_t n, bool awaits,
									 GjParcel **parcel);
extern GjStatus gj_member_await_split(void *arg);
extern GjStatus gj_member_send_parcel(void *arg, GjParcel *parcel);
extern void gj_member_parcel_read(void *arg, GjParcel *parcel);

/*
 * A parcel that the member can take, or NULL: any rows need its run, which others do not wait for, and
 * outer ones its inner sides, and room.  The lock is held.
 */
extern GjTask *gj_member_take_parcel(GjMember *member);
/* True: the next of the member's own tasks has to wait for parcels.  The lock is held. */
extern bool gj_member_awaits_parcels(const GjMember *member);
/* GJ_TASK_SEND and GJ_TASK_RECEIVE. */
extern GjStatus gj_member_send_last(GjMember *member, uint32_t source);
extern GjStatus gj_member_receive(GjMember *member, GjTask *task);
/* The member's run is finished: the outer rows that it has got may stay on its device. */
extern GjStatus gj_member_keep_exchanged(GjMember *member);
/* Waits until the member has read all parcels that it was given. */
extern GjStatus gj_member_end_reading(GjMember *member);
/* Waits until nobody reads the member's parcels, to which none come any more. */
extern GjStatus gj_member_await_read(GjMember *member);
/*
 * There is nothing to do while parcels are being read: waits until the first of them has been, or
 * members were told of something since that was seen.  The lock is not held.
 */
extern GjStatus gj_member_settle(GjMember *member, uint32_t seen);

/* A parcel has been read, or will not be.  The lock is not held. */
extern void gj_team_drop_parcel(GjTeam *team, GjParcel *parcel);

/* ---- team/partition.c and team/pass.c, which take team/splitter.c's help */

/* NULL: the program cannot be split. */
extern GjPartition *gj_partition_open(GjTeam *team, GjStatus *status, GjErrorText *why);
extern void gj_partition_close(GjPartition *partition);

/* True: outer chunks go to the devices, nothing is split. */
extern bool gj_partition_is_whole(const GjPartition *partition);

/* Keeps a chunk, which is read until gj_partition_flush has given its slot back. */
extern GjStatus gj_partition_chunk(GjPartition *partition, uint32_t source, uint32_t nrows,
								   const uint8_t *memory, uint32_t slot);

/* Reads all chunks that have come, if they are at least so many, and gives their slots back. */
extern GjStatus gj_partition_flush(GjPartition *partition, uint32_t least);

/* All inner sources have come: decides how to go on, loads them if they fit. */
extern GjStatus gj_partition_inner_end(GjPartition *partition);

/* The outer source has come: makes the passes and runs them. */
extern GjStatus gj_partition_run(GjPartition *partition);

/* In the thread of a member. */
extern GjStatus gj_partition_load(GjPartition *partition, GjMember *member);
extern GjStatus gj_partition_passes(GjPartition *partition, GjMember *member);

/* Passes that have run, or 1 if there were none. */
extern uint32_t gj_partition_npasses(const GjPartition *partition);

/* ---- team/groups.c */

/*
 * For parts of groups of the first nkeys keys; what they are put together to goes to `next`,
 * or, if that is NULL, out.  NULL: out of memory, or *why says what is wrong with the program.
 */
extern GjTeamGroups *gj_team_groups_open(GjTeam *team, uint32_t nkeys, GjTeamGroups *next,
										 GjErrorText *why);
extern void gj_team_groups_close(GjTeamGroups *groups);

/* Keeps a part that a run has handed over; any member's thread. */
extern GjStatus gj_team_groups_keep(GjTeamGroups *groups, const uint8_t *slot);

/* All parts have come, and all runs are closed: makes shares of them. */
extern GjStatus gj_team_groups_share(GjTeamGroups *groups);

/* In the thread of a member: puts shares together until there are no more. */
extern GjStatus gj_team_groups_join(GjTeamGroups *groups, GjMember *member);

/* True if shares are to hand their groups over as sorted runs. */
extern bool gj_team_groups_are_merged(GjTeamGroups *groups);

/* ---- team/sorted.c */

/* NULL: out of memory, or *why says what is missing. */
extern GjTeamSorted *gj_team_sorted_open(GjTeam *team, GjErrorText *why);
extern void gj_team_sorted_close(GjTeamSorted *sorted);

/* GjExchangeOps's functions, arg is the member. */
extern GjStatus gj_member_sorted_begin(void *arg, bool last);
extern GjStatus gj_member_sorted_slot(void *arg, uint8_t **memory);
extern void gj_member_sorted_end_keys(void *arg, const int64_t *keys);
extern GjStatus gj_member_sorted_filled(void *arg);
/* The member's run is finished. */
extern void gj_member_sorted_ended(GjMember *member);

/*
 * In the session's thread: merges what all members hand over, and sends it.  They finish their runs
 * meanwhile, unless these were of passes or of groups, which have ended.
 */
extern GjStatus gj_team_sorted_send(GjTeamSorted *sorted);

/* Adds what was sent. */
extern void gj_team_sorted_stats(const GjTeamSorted *sorted, GjRunStats *stats);

#endif							/* GJ_DAEMON_TEAM_STATE_H */
