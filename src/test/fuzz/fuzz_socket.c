/*
 * fuzz_socket.c
 *	  Conversations with gpujoind that no backend would hold, over its socket.
 *
 * Messages come in the wrong order, too short, too long, with descriptors, or not at all; connections break
 * off anywhere; ring memory changes while gpujoind reads it.  Several threads talk at once.  After every
 * round gpujoind must be the same process, give a right answer, and hold no more memory and descriptors.
 *
 * Run in the repository's folder.  gpujoind gets a folder of its own under /tmp, and ends with this process.
 */
#define _GNU_SOURCE
#include "child.h"
#include "conversation.h"
#include "right_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS			3
#define ROUND			300		/* conversations between two looks at gpujoind */
#define ROUND_SECONDS	120		/* that a round may take */
#define PATIENCE_MS		100		/* for an answer, */
#define NONSENSE_MS		3		/* and to nonsense */
/* What gpujoind may hold more than after the first rounds: its allocator keeps some of what was freed. */
#define MORE_MEMORY		(256u << 20)
#define MORE_FILES		8
#define FIRST_ROUNDS	5

static FuzzPrograms programs;
static FuzzOptions options;

/* ---- wrong ones */

/* One thread's round, or a part of it. */
typedef struct Talk
{
	pthread_t	thread;
	uint64_t	first;			/* conversation, and every THREADS-th after it */
	uint64_t	end;
	FuzzRandom	random;			/* of the conversation */
	uint64_t	ready;			/* programs that gpujoind took, */
	uint64_t	done;			/* and finished */
	uint64_t	again;			/* runs on a connection that has had one */
} Talk;

/* Sends a message that may have become another one, with something that is no part of it. */
static void
send_changed(Peer *peer, const void *message, size_t nbytes)
{
	static _Thread_local uint8_t bytes[GJ_MAX_PROGRAM_SIZE + 4096] __attribute__((aligned(8)));
	FuzzRandom *r = peer->random;
	struct iovec part = {bytes, nbytes};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(3 * sizeof(int))];
	}			control = {.space = {0}};
	struct msghdr whole = {.msg_iov = &part,.msg_iovlen = 1};
	int			fds[3] = {-1, -1, -1};
	int			n = 1 + (int) fuzz_below(r, 3);

	memcpy(bytes, message, nbytes);
	switch (fuzz_below(r, 8))
	{
		case 0:
			part.iov_len = (size_t) fuzz_below(r, nbytes);
			break;
		case 1:
			part.iov_len += 1 + (size_t) fuzz_below(r, 40);
			break;
		case 2:
			part.iov_len = sizeof(bytes);
			break;
		case 3:
			*(uint32_t *) bytes = (uint32_t) fuzz_below(r, 80);
			break;
		case 4:
			/* descriptors that nobody asked for */
			fds[0] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			fds[1] = memfd_create("fuzz", MFD_CLOEXEC);
			fds[2] = dup(peer->socket);
			whole.msg_control = control.space;
			whole.msg_controllen = CMSG_SPACE((size_t) n * sizeof(int));
			control.header = (struct cmsghdr) {CMSG_LEN((size_t) n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
			memcpy(CMSG_DATA(&control.header), fds, (size_t) n * sizeof(int));
			break;
		default:
			fuzz_scribble(r, bytes, (uint32_t) (nbytes < 64 ? nbytes : 64));
	}
	(void) !sendmsg(peer->socket, &whole, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int
patience(const Peer *peer)
{
	return peer->nonsense ? NONSENSE_MS : PATIENCE_MS;
}

/* Sends what is right, mostly; sometimes twice, sometimes nothing; and sometimes breaks off. */
static void
say(Peer *peer, const void *message, size_t nbytes)
{
	FuzzRandom *r = peer->random;
	uint64_t	chance = fuzz_below(r, 500);

	if (peer->socket < 0)
		return;
	peer->nonsense |= chance < 11;
	if (chance < 3)
		peer_close(peer);
	else if (chance < 4)
		shutdown(peer->socket, (int) fuzz_below(r, 3));
	else if (chance < 9)
		send_changed(peer, message, nbytes);
	else if (chance >= 11)
		peer_send(peer, message, nbytes);
	if (chance >= 497 && peer->socket >= 0)
		peer_send(peer, message, nbytes);
}

static void
say_hello(Peer *peer)
{
	FuzzRandom *r = peer->random;
	GjMsgHello	hello = peer_hello();

	hello.pid += (uint32_t) fuzz_below(r, 3);
	hello.memory_limit = fuzz_percent(r, 80) ? 64 << 20 : fuzz_next(r) >> fuzz_below(r, 64);
	hello.max_running = fuzz_percent(r, 95) ? GJ_NO_LIMIT : fuzz_below(r, 4);
	hello.running.role = fuzz_below(r, 3);
	hello.max_memory = fuzz_percent(r, 80) ? 0 : fuzz_next(r) >> fuzz_below(r, 64);
	hello.memory.database = fuzz_below(r, 3);
	if (fuzz_percent(r, 2))
		hello.device = (uint32_t) fuzz_below(r, 3);
	say(peer, &hello, sizeof(hello));
}

/* Questions that need no run. */
static void
ask_around(Peer *peer)
{
	FuzzRandom *r = peer->random;

	for (uint64_t n = fuzz_below(r, 6); n > 0; n--)
	{
		const GjMsgEvict evict = {.type = GJ_MSG_EVICT,.database = (uint32_t) fuzz_below(r, 3)};
		const uint32_t simple[] = {GJ_MSG_STATUS, GJ_MSG_CACHE};

		if (fuzz_percent(r, 20))
			say(peer, &evict, sizeof(evict));
		else
			say(peer, &simple[fuzz_below(r, 2)], sizeof(uint32_t));
		if (fuzz_percent(r, 50))
			while (peer_receive(peer, 2))
				;
	}
	peer->over = false;
}

/* Sends a program; what makes gpujoind crash or hang on purpose is left out. */
static void
submit(Peer *peer, GjProgram *program, uint32_t nbytes, const GjRunToken *stage)
{
	static const char *const wrong[] = {"/", "../..", "none", ""};
	static _Thread_local struct
	{
		GjMsgSubmit head;
		uint8_t		program[GJ_MAX_PROGRAM_SIZE];
	}			message;
	FuzzRandom *r = peer->random;

	if (nbytes > sizeof(message.program))
		return;
	if (program->fail_point == GJ_FAIL_CRASH || program->fail_point == GJ_FAIL_STALL)
		program->fail_point = GJ_FAIL_NEVER;
	message.head = (GjMsgSubmit) {.type = GJ_MSG_SUBMIT,.nbytes = nbytes,.max_devices = (uint32_t) fuzz_below(r, 4),
		.exchange = (uint32_t) fuzz_below(r, 4),.keep_exchanged = (uint32_t) fuzz_below(r, 2),
	.spill_memory = fuzz_below(r, 3) << 20,.temp_limit = fuzz_below(r, 3) << 20};
	if (stage)
		message.head.nstages = 1;
	for (uint32_t i = 0; i < GJ_MAX_STAGES && stage; i++)
		message.head.stages[i] = *stage;
	if (fuzz_percent(r, 4))
		message.head.nstages = (uint32_t) fuzz_value(r, 4, GJ_MAX_STAGES);
	if (fuzz_percent(r, 4))
		fuzz_scribble(r, (uint8_t *) message.head.stages, sizeof(message.head.stages));
	snprintf(message.head.temp_directory, sizeof(message.head.temp_directory), "%s",
			 fuzz_percent(r, 95) ? "base/pgsql_tmp" : wrong[fuzz_below(r, sizeof(wrong) / sizeof(wrong[0]))]);
	if (fuzz_percent(r, 1))
		memset(message.head.temp_directory, 'x', sizeof(message.head.temp_directory));
	memcpy(message.program, program, nbytes);
	say(peer, &message, sizeof(message.head) + nbytes);
}

/* Keys and a table that many conversations name, so that what one has loaded another one finds. */
static void
ask_about(Peer *peer, const GjProgram *program)
{
	static _Thread_local struct
	{
		GjMsgSlot	head;
		uint8_t		questions[32 * 1024];
	}			message;
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	FuzzRandom *r = peer->random;
	uint8_t    *at = message.questions;

	message.head = (GjMsgSlot) {GJ_MSG_ASK, (uint32_t) fuzz_below(r, 2), 0, program->nsources};
	for (uint32_t i = 1; i <= program->nsources; i++)
	{
		const uint32_t s = i % program->nsources;
		GjAsk		ask = {.relation = {1, 1, (uint32_t) fuzz_below(r, 3), 1},.cache_size = 8 << 20,
			.nfragments = 1,.ncolumns = sources[s].ncolumns,.per_map = 7,.nmaps = 1,.source = s,
		.nblocks = 40,.map_blocks = 32672,.loads_moved = (uint32_t) fuzz_below(r, 2)};

		if (at + gj_ask_size(&ask) > message.questions + sizeof(message.questions))
			break;
		memset(at, 0, gj_ask_size(&ask));
		for (uint32_t c = 0; c < ask.ncolumns; c++)
			((GjColumnKey *) (at + sizeof(ask)))[c] = (GjColumnKey) {{fuzz_below(r, 2), c}, c + 1, 0};
		*(uint64_t *) (at + sizeof(ask) + ask.ncolumns * sizeof(GjColumnKey)) = 77 + fuzz_percent(r, 5);
		memcpy(at, &ask, sizeof(ask));
		if (fuzz_percent(r, 10))
			fuzz_scribble(r, at, sizeof(ask));
		if (fuzz_percent(r, 1))
		{
			/* more fragments than anybody can wait for */
			ask.per_map = ask.nfragments = UINT32_MAX;
			memcpy(at, &ask, sizeof(ask));
		}
		at += gj_ask_size(&ask);
	}
	say(peer, &message, (size_t) (at - (uint8_t *) &message));
	while (peer_receive(peer, patience(peer)) && peer->last != GJ_MSG_RESIDENT)
		;
}

/* A USE of fragments that gpujoind has told of, or of others. */
static void
use(Peer *peer, const GjProgram *program, uint32_t s, uint32_t slot)
{
	FuzzRandom *r = peer->random;
	uint8_t    *at = peer->load + (size_t) slot * GJ_LOAD_SLOT_SIZE;
	uint32_t	n = 1 + (uint32_t) fuzz_below(r, 2);
	const GjMsgSlot message = {GJ_MSG_USE, slot, s, fuzz_percent(r, 98) ? n : (uint32_t) fuzz_value(r, 4, n)};

	for (uint32_t i = 0; i < n; i++)
	{
		GjUseHead	head = {peer->nids > 0 ? peer->ids[fuzz_below(r, peer->nids)] : fuzz_next(r), 77,
			(s + i) % program->nsources, 40, (i + 1 == n ? GJ_USE_LAST : 0) | (uint32_t) fuzz_below(r, 2),
		(uint32_t) fuzz_below(r, 50)};

		memcpy(at, &head, sizeof(head));
		at += sizeof(head);
		if (!(head.flags & GJ_KNOWN_BITS))
			continue;
		for (uint32_t k = 0; k < GJ_FRAGMENT_WORDS; k++, at += sizeof(uint64_t))
			*(uint64_t *) at = fuzz_percent(r, 50) ? 0xFFFFFFFFFF : fuzz_next(r);
	}
	say(peer, &message, sizeof(message));
}

/* Says which pages the rows come from, so that they are kept. */
static void
add_pages(FuzzRandom *r, uint8_t *slot, uint32_t nrows)
{
	GjChunkPages *pages = gj_chunk_pages(slot);

	*pages = (GjChunkPages) {.n = 40,.npages = 40,.map_lsn = 77};
	for (uint32_t i = 0; i < pages->n; i++)
	{
		pages->lsn[i] = i;
		pages->nrows[i] = (uint16_t) (GJ_PAGE_VISIBLE | (i == 0 ? nrows & 0x7FFF : 0));
	}
	if (fuzz_percent(r, 20))
		fuzz_scribble(r, (uint8_t *) pages, sizeof(GjChunkPages));
}

/* ---- ring memory that changes under way */

#define MAX_PLACES		64

typedef struct Scribbler
{
	pthread_t	thread;
	FuzzRandom	random;
	uint8_t    *load;
	uint8_t    *output;
	uint32_t	nplaces;		/* offsets in a load slot where values, null flags and heaps begin */
	uint32_t	places[MAX_PLACES];
	bool		stop;			/* atomic */
} Scribbler;

/* Notes where gpujoind will read. */
static void
find_places(Scribbler *s, const GjProgram *program)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns);

	s->places[s->nplaces++] = 0;
	for (uint32_t i = 0; i < program->nsources; i++)
	{
		GjColumnPlace places[GJ_MAX_COLUMNS];
		GjLayout	layout;

		if (!gj_layout(types + sources[i].first_column, sources[i].ncolumns, sources[i].capacity,
					   GJ_LOAD_CHUNK_SIZE, &layout, places))
			continue;
		for (uint32_t c = 0; c < sources[i].ncolumns && s->nplaces + 3 <= MAX_PLACES; c++)
		{
			s->places[s->nplaces++] = places[c].data;
			s->places[s->nplaces++] = places[c].nulls;
		}
		if (layout.heap_size > 0 && s->nplaces < MAX_PLACES)
			s->places[s->nplaces++] = layout.heap;
	}
}

static void *
scribble(void *arg)
{
	Scribbler  *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
	{
		uint8_t    *slot = s->load + fuzz_below(&s->random, GJ_LOAD_SLOTS) * GJ_LOAD_SLOT_SIZE;
		uint64_t	where = fuzz_below(&s->random, 10);

		if (where < 5)
			for (uint32_t i = 0; i < s->nplaces; i++)
				fuzz_scribble(&s->random, slot + s->places[i], 64);
		else if (where < 6)
			fuzz_scribble(&s->random, slot, GJ_LOAD_SLOT_SIZE);
		else if (where < 7)
			fuzz_scribble(&s->random, (uint8_t *) gj_chunk_pages(slot), sizeof(GjChunkPages));
		else if (s->output)
			fuzz_scribble(&s->random, s->output + fuzz_below(&s->random, GJ_OUTPUT_SLOTS) * GJ_OUTPUT_SLOT_SIZE, 65536);
		if (where == 9)
			usleep((useconds_t) fuzz_below(&s->random, 50));
	}
	return NULL;
}

/* ---- a conversation */

/* Sends a chunk through one of the peers; nobody waits long for a slot. */
static void
send_chunk(Peer *peer, const GjProgram *program, uint32_t s, bool resident)
{
	FuzzRandom *r = peer->random;
	const uint32_t all = (1u << GJ_LOAD_SLOTS) - 1;
	GjMsgSlot	message = {GJ_MSG_CHUNK, 0, s, 0};
	uint8_t    *slot;

	while (peer->busy == all && !peer->over && peer_receive(peer, patience(peer)))
		;
	if (peer->over || !peer->load)
		return;
	message.slot = peer->busy == all || fuzz_percent(r, 2) ? (uint32_t) fuzz_below(r, GJ_LOAD_SLOTS + 1) :
		(uint32_t) __builtin_ctz(~peer->busy);
	if (message.slot >= GJ_LOAD_SLOTS)
		return say(peer, &message, sizeof(message));
	slot = peer->load + (size_t) message.slot * GJ_LOAD_SLOT_SIZE;
	peer->busy |= 1u << message.slot;
	if (resident && fuzz_percent(r, 20))
		return use(peer, program, s, message.slot);
	message.nrows = fuzz_chunk(r, program, s, slot);
	if (resident)
		add_pages(r, slot, message.nrows);
	if (fuzz_percent(r, 2))
		message.source = (uint32_t) fuzz_below(r, 18);
	say(peer, &message, sizeof(message));
}

/* Loads the sources through one or two connections, mostly in their order. */
static void
load(Peer *peer, Peer *helper, const GjProgram *program, bool resident)
{
	FuzzRandom *r = peer->random;

	for (uint32_t i = 1; i <= program->nsources && !peer->over; i++)
	{
		const GjMsgSlot end = {GJ_MSG_SOURCE_END, 0, fuzz_percent(r, 98) ? i % program->nsources :
		(uint32_t) fuzz_below(r, 18), 0};

		uint64_t	n = fuzz_percent(r, 80) ? 1 : fuzz_below(r, 7);

		/* gpujoind has the rows of stages */
		if (gj_program_array(program, GjSource, sources)[i % program->nsources].stage != 0 && fuzz_percent(r, 95))
			n = 0;
		for (; n > 0 && !peer->over; n--)
			send_chunk(helper->load && fuzz_percent(r, 50) ? helper : peer, program, i % program->nsources, resident);
		if (helper->socket >= 0)
			say(helper, &end, sizeof(end));
		if (peer->socket >= 0)
			say(peer, &end, sizeof(end));
	}
}

/* Another connection that helps to load. */
static void
attach(Peer *helper, const Peer *peer)
{
	GjMsgAttach attach = {GJ_MSG_ATTACH, peer->token};

	if (!peer_connect(helper, peer->random))
		return;
	say_hello(helper);
	(void) peer_await(helper, GJ_MSG_WELCOME, patience(helper));
	if (fuzz_percent(peer->random, 5))
		attach.token.bytes[fuzz_below(peer->random, 16)]++;
	say(helper, &attach, sizeof(attach));
	(void) peer_await(helper, GJ_MSG_READY, patience(helper));
}

/* After READY: a run, as far as it gets. */
static void
hold_run(Talk *talk, Peer *peer, const GjProgram *program)
{
	FuzzRandom *r = peer->random;
	bool		resident = fuzz_percent(r, 30);
	bool		scribbles = fuzz_percent(r, 30);
	Scribbler	scribbler = {.random = fuzz_random(options.seed ^ 1, fuzz_next(r)),.load = peer->load,
	.output = peer->output};
	Peer		helper = {.socket = -1};
	uint8_t    *load_ring = peer->load;
	uint8_t    *output_ring = peer->output;

	find_places(&scribbler, program);
	/* the memory must stay while it is scribbled on, even if the connection breaks off */
	if (scribbles)
	{
		peer->load = mremap(load_ring, 0, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE, MREMAP_MAYMOVE);
		peer->output = mremap(output_ring, 0, GJ_OUTPUT_SLOTS * (size_t) GJ_OUTPUT_SLOT_SIZE, MREMAP_MAYMOVE);
		if (peer->load == MAP_FAILED || peer->output == MAP_FAILED ||
			pthread_create(&scribbler.thread, NULL, scribble, &scribbler) != 0)
			fuzz_fail("could not start to scribble: %s", strerror(errno));
	}
	if (resident)
		ask_about(peer, program);
	if (fuzz_percent(r, 10) && peer->socket >= 0)
		attach(&helper, peer);
	load(peer, &helper, program, resident);
	/* who breaks off now does so while the devices work */
	if (peer->socket >= 0 && !fuzz_percent(r, 10) && peer_await(peer, GJ_MSG_DONE, patience(peer)))
		talk->done++;
	if (scribbles)
	{
		__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
		pthread_join(scribbler.thread, NULL);
		munmap(load_ring, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE);
		munmap(output_ring, GJ_OUTPUT_SLOTS * (size_t) GJ_OUTPUT_SLOT_SIZE);
	}
	peer_close(&helper);
}

/* Says hello, submits a program and loads it. */
static void
hold_once(Talk *talk, Peer *peer, GjProgram *program, uint32_t nbytes, const GjRunToken *stage)
{
	FuzzRandom *r = &talk->random;

	say_hello(peer);
	if (fuzz_percent(r, 90))
		(void) peer_await(peer, GJ_MSG_WELCOME, patience(peer));
	if (fuzz_percent(r, 15))
		ask_around(peer);
	submit(peer, program, nbytes, stage);
	if (peer_await(peer, GJ_MSG_READY, patience(peer) * 3) && peer->load && peer->output)
	{
		talk->ready++;
		hold_run(talk, peer, program);
	}
}

/*
 * Submits a program on a new connection, or several times, and loads it.  False: gpujoind does not
 * listen.
 */
static bool
hold_program(Talk *talk, Peer *peer, GjProgram *program, uint32_t nbytes, const GjRunToken *stage)
{
	const uint32_t release = GJ_MSG_RELEASE;
	FuzzRandom *r = &talk->random;

	if (!peer_connect(peer, r))
		return false;
	hold_once(talk, peer, program, nbytes, stage);
	while (fuzz_percent(r, 40) && peer_begin_anew(peer))
	{
		if (fuzz_percent(r, 20))
			say(peer, &release, sizeof(release));
		hold_once(talk, peer, program, nbytes, stage);
		talk->again++;
	}
	return true;
}

/* Two programs, mostly right ones, of which the second reads what the first one leaves. */
static void
converse_in_stages(Talk *talk)
{
	FuzzRandom *r = &talk->random;
	Stage		stage = make_stage();
	Reader		reader = make_reader(fuzz_percent(r, 50));
	GjRunToken	token;
	Peer		made;
	Peer		reads;

	if (fuzz_percent(r, 30))
		stage.head.stage_capacity = (uint32_t) fuzz_value(r, 4, 1 + (uint32_t) fuzz_below(r, 2000));
	if (fuzz_percent(r, 30))
		reader.sources[reader.sources[0].stage ? 0 : 1].capacity = stage.head.stage_capacity;
	if (fuzz_percent(r, 20))
		fuzz_scribble(r, (uint8_t *) stage.results, sizeof(stage.results));
	if (fuzz_percent(r, 10))
		fuzz_scribble(r, (uint8_t *) reader.columns, sizeof(reader.columns));
	if (fuzz_percent(r, 10))
		stage.key.how = (uint32_t) fuzz_below(r, 6);
	if (fuzz_percent(r, 10))
		stage.aggregate.op = (uint32_t) fuzz_below(r, 20);
	if (!hold_program(talk, &made, &stage.head, sizeof(stage), NULL))
		return;
	token = made.token;
	if (fuzz_percent(r, 10))
		token.bytes[fuzz_below(r, sizeof(token.bytes))]++;
	if (fuzz_percent(r, 10))
		peer_close(&made);
	if (hold_program(talk, &reads, &reader.head, sizeof(reader), &token))
		peer_close(&reads);
	peer_close(&made);
}

static void
converse(Talk *talk)
{
	uint32_t	nbytes;
	GjProgram  *program;
	Peer		peer;

	if (fuzz_percent(&talk->random, 25))
	{
		converse_in_stages(talk);
		return;
	}
	program = fuzz_program(&talk->random, &programs, &nbytes);
	if (hold_program(talk, &peer, program, nbytes, NULL))
		peer_close(&peer);
	free(program);
}

static void *
talk_main(void *arg)
{
	Talk	   *talk = arg;

	for (uint64_t i = talk->first; i < talk->end; i += THREADS)
	{
		talk->random = fuzz_random(options.seed, i);
		converse(talk);
	}
	return NULL;
}

/* ---- rounds */

/* Once nobody talks, gpujoind holds what it always holds; it gets a moment for that. */
static void
check_files(uint32_t first)
{
	uint32_t	n = 0;

	for (int i = 0; i < 100; i++)
	{
		n = fuzz_count_files();
		if (first == 0 || n <= first + MORE_FILES)
			return;
		usleep(50000);
	}
	fuzz_fail("gpujoind has %u files open, and had %u", n, first);
}

static void
check_memory(uint64_t round, uint64_t *most)
{
	uint64_t	bytes = fuzz_count_memory();

	if (round < FIRST_ROUNDS)
		*most = bytes > *most ? bytes : *most;
	else if (bytes > *most + MORE_MEMORY)
		fuzz_fail("gpujoind has %llu MB, and had %llu", (unsigned long long) bytes >> 20,
				  (unsigned long long) *most >> 20);
}

int
main(int argc, char **argv)
{
	char	   *path;
	uint64_t	memory = 0;
	uint64_t	ready = 0;
	uint64_t	done = 0;
	uint64_t	again = 0;
	uint32_t	files;
	time_t		start = time(NULL);

	options = fuzz_options(argc, argv, "--daemon GPUJOIND", 1000);
	path = realpath(options.daemon ? options.daemon : "build/" GJ_DAEMON_NAME, NULL);
	if (!path)
		fuzz_fail("no gpujoind");
	programs = fuzz_load_programs(options.files, options.nfiles);
	signal(SIGPIPE, SIG_IGN);
	fuzz_watch(ROUND_SECONDS);
	fuzz_begin(options.seed, options.first, options.count);
	fuzz_start_daemon(path);
	check_answer();
	check_stages();
	files = fuzz_count_files();
	for (uint64_t i = options.first, round = 0; i < options.first + options.count; i += ROUND, round++)
	{
		uint64_t	end = i + ROUND < options.first + options.count ? i + ROUND : options.first + options.count;
		Talk		talks[THREADS];

		fuzz_begin(options.seed, i, end - i);
		for (uint32_t t = 0; t < THREADS; t++)
		{
			talks[t] = (Talk) {.first = i + t,.end = end};
			if (pthread_create(&talks[t].thread, NULL, talk_main, &talks[t]) != 0)
				fuzz_fail("could not start a thread");
		}
		for (uint32_t t = 0; t < THREADS; t++)
		{
			pthread_join(talks[t].thread, NULL);
			ready += talks[t].ready;
			done += talks[t].done;
			again += talks[t].again;
		}
		fuzz_check_alive();
		check_answer();
		check_stages();
		check_files(files);
		check_memory(round, &memory);
	}
	fuzz_stop_daemon();
	printf("seed %llu, from %llu on: %llu conversations, %llu programs taken, %llu of them to their end, %llu "
		   "connections used again; %u files, %llu MB; %d s\n", (unsigned long long) options.seed,
		   (unsigned long long) options.first, (unsigned long long) options.count, (unsigned long long) ready,
		   (unsigned long long) done, (unsigned long long) again, files, (unsigned long long) memory >> 20,
		   (int) (time(NULL) - start));
	fuzz_free_programs(&programs);
	free(path);
	return 0;
}
