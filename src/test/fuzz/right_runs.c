/*
 * right_runs.c
 *	  Programs that are right, and runs of them whose answers are known: what gpujoind must still do after
 *	  all that is wrong.
 */
#include "child.h"
#include "right_runs.h"

#include <string.h>
#include <unistd.h>

#define ANSWER_MS		10000	/* that a right answer may take */

/* count(*) of two sources that are joined by their only columns. */
typedef struct Join
{
	GjProgram	head;
	GjSource	sources[2];
	GjColumnType columns[2];
	GjExpr		exprs[2];
	GjInstr		instrs[2];
	GjStep		step;
	GjAggregate aggregate;
} Join;

static Join
make_join(void)
{
	Join		j = {
		.head = {.magic = GJ_PROGRAM_MAGIC,.nbytes = sizeof(Join),.kind = GJ_PROGRAM_JOIN,
			.output = GJ_OUTPUT_AGGREGATES,.output_capacity = 1,.lease = 1 << 20,
			.nsources = 2,.sources = offsetof(Join, sources),.ncolumns = 2,.columns = offsetof(Join, columns),
			.nsteps = 1,.steps = offsetof(Join, step),.nexprs = 2,.exprs = offsetof(Join, exprs),
			.ninstrs = 2,.instrs = offsetof(Join, instrs),.constants = sizeof(Join),.outputs = sizeof(Join),
			.naggregates = 1,.aggregates = offsetof(Join, aggregate),.group_keys = sizeof(Join),
		.sets = sizeof(Join),.set_steps = sizeof(Join),.sort_keys = sizeof(Join)},
		.step = {.join_type = GJ_JOIN_INNER,.algorithm = GJ_JOIN_HASH,.nkeys = 1,.source = 1,.residual = -1,
		.probe_keys = 0,.build_keys = 1,.filter = -1,.range_key = -1,.range_low = -1,.range_high = -1},
		.aggregate = {GJ_AGG_COUNT_STAR, -1}
	};

	for (uint32_t s = 0; s < 2; s++)
	{
		j.sources[s] = (GjSource) {.first_column = s,.ncolumns = 1,.capacity = 1000,.filter = -1};
		j.columns[s] = (GjColumnType) {GJ_INT4, 4, 0, (uint8_t) s};
		j.exprs[s] = (GjExpr) {.first = s,.ninstrs = 1,.nregisters = 1,.kind = GJ_INT4};
		j.instrs[s] = (GjInstr) {.op = GJ_OP_LOAD,.arg = s};
	}
	return j;
}

/* Sends nrows rows of 0, 1, ... below `range`, and the end of the source. */
static void
send_rows(Peer *peer, const Join *join, uint32_t s, uint32_t nrows, uint32_t range)
{
	uint8_t    *slot = peer->load + (size_t) s * GJ_LOAD_SLOT_SIZE;
	const GjMsgSlot chunk = {GJ_MSG_CHUNK, s, s, nrows};
	const GjMsgSlot end = {GJ_MSG_SOURCE_END, 0, s, 0};
	GjColumnPlace place = {0, 0};
	GjLayout	layout;

	(void) gj_layout(&join->columns[s], 1, join->sources[s].capacity, GJ_LOAD_CHUNK_SIZE, &layout, &place);
	*(GjSlotHeader *) slot = (GjSlotHeader) {nrows, 0};
	*gj_slot_has_nulls(slot) = 0;
	gj_chunk_pages(slot)->n = 0;
	for (uint32_t i = 0; i < nrows; i++)
		((uint32_t *) (slot + place.data))[i] = i % range;
	peer_send(peer, &chunk, sizeof(chunk));
	peer_send(peer, &end, sizeof(end));
}

Stage
make_stage(void)
{
	return (Stage) {
		.head = {.magic = GJ_PROGRAM_MAGIC,.nbytes = sizeof(Stage),.kind = GJ_PROGRAM_JOIN,
			.output = GJ_OUTPUT_GROUPS,.output_capacity = 1000,.lease = 1 << 20,
			.nsources = 1,.sources = offsetof(Stage, source),.ncolumns = 1,.columns = offsetof(Stage, columns),
			.steps = sizeof(Stage),.nexprs = 1,.exprs = offsetof(Stage, expr),
			.ninstrs = 1,.instrs = offsetof(Stage, instr),.constants = sizeof(Stage),.outputs = sizeof(Stage),
			.naggregates = 1,.aggregates = offsetof(Stage, aggregate),
			.ngroup_keys = 1,.group_keys = offsetof(Stage, key),
			.sets = sizeof(Stage),.set_steps = sizeof(Stage),.sort_keys = sizeof(Stage),
		.stage_capacity = 1000,.nstage_columns = STAGE_COLUMNS,.stage_columns = offsetof(Stage, results)},
		.source = {.ncolumns = 1,.capacity = 1000,.filter = -1},
		.columns = {{GJ_INT4, 4, 0, 0}},
		.expr = {.ninstrs = 1,.nregisters = 1,.kind = GJ_INT4},
		.instr = {.op = GJ_OP_LOAD},
		.aggregate = {GJ_AGG_COUNT_STAR, -1},
		.key = {.how = GJ_GROUP_INTEGER,.index = 0},
		.results = {{.type = {GJ_INT4, 4, 1, 0},.value = GJ_STAGE_KEY},
			{.type = {GJ_INT8, 8, 1, 0},.value = GJ_STAGE_COUNT},
		{.type = {GJ_BOOL, 1, 1, 0},.value = GJ_STAGE_TRUE}}
	};
}

Reader
make_reader(bool probes)
{
	const Join	join = make_join();
	const Stage stage = make_stage();
	Reader		r = {.head = join.head,.exprs = {join.exprs[0], join.exprs[1]},
	.instrs = {join.instrs[0], join.instrs[1]},.step = join.step,.aggregate = join.aggregate};
	uint32_t	s = probes ? 0 : 1;

	r.head.nbytes = r.head.constants = r.head.outputs = r.head.group_keys = r.head.sets =
		r.head.set_steps = r.head.sort_keys = sizeof(Reader);
	r.head.sources = offsetof(Reader, sources);
	r.head.columns = offsetof(Reader, columns);
	r.head.ncolumns = 1 + STAGE_COLUMNS;
	r.head.exprs = offsetof(Reader, exprs);
	r.head.instrs = offsetof(Reader, instrs);
	r.head.steps = offsetof(Reader, step);
	r.head.aggregates = offsetof(Reader, aggregate);
	r.sources[1 - s] = (GjSource) {.first_column = 0,.ncolumns = 1,.capacity = 1000,.filter = -1};
	r.columns[0] = (GjColumnType) {GJ_INT4, 4, 0, (uint8_t) (1 - s)};
	r.sources[s] = (GjSource) {.first_column = 1,.ncolumns = STAGE_COLUMNS,
	.capacity = stage.head.stage_capacity,.filter = -1,.stage = 1};
	for (uint32_t c = 0; c < STAGE_COLUMNS; c++)
	{
		r.columns[1 + c] = stage.results[c].type;
		r.columns[1 + c].source = (uint8_t) s;
	}
	r.instrs[s].arg = 1;
	r.instrs[1 - s].arg = 0;
	return r;
}

/* Starts a run of a program that is right, on a connection of its own. */
static void
start_right(Peer *peer, FuzzRandom *random, const GjProgram *program, const GjRunToken *stage)
{
	static struct
	{
		GjMsgSubmit head;
		union
		{
			Join		join;
			Stage		stage;
			Reader		reader;
		}			program;
	}			submit;
	const GjMsgHello hello = peer_hello();

	submit.head = (GjMsgSubmit) {.type = GJ_MSG_SUBMIT,.nbytes = program->nbytes,.spill_memory = 1 << 20,
	.temp_limit = UINT64_MAX,.temp_directory = "base/pgsql_tmp"};
	if (stage)
	{
		submit.head.nstages = 1;
		submit.head.stages[0] = *stage;
	}
	memcpy(&submit.program, program, program->nbytes);
	if (!peer_connect(peer, random))
	{
		/* if it is about to end, it may take a moment */
		sleep(1);
		fuzz_check_alive();
		fuzz_fail("gpujoind does not listen");
	}
	peer_send(peer, &hello, sizeof(hello));
	if (!peer_await(peer, GJ_MSG_WELCOME, ANSWER_MS))
		fuzz_fail("gpujoind does not welcome: message %u, reason %u", peer->last, peer->reason);
	peer_send(peer, &submit, sizeof(submit.head) + program->nbytes);
	if (!peer_await(peer, GJ_MSG_READY, ANSWER_MS) || !peer->load || !peer->output)
		fuzz_fail("gpujoind is not ready: message %u, reason %u", peer->last, peer->reason);
}

void
check_answer(void)
{
	const Join	join = make_join();
	FuzzRandom	random = fuzz_random(0, 0);
	Peer		peer;

	start_right(&peer, &random, &join.head, NULL);
	send_rows(&peer, &join, 1, 12, 4);
	send_rows(&peer, &join, 0, 900, 9);
	if (!peer_await(&peer, GJ_MSG_DONE, ANSWER_MS))
		fuzz_fail("a right run is not done: message %u, reason %u", peer.last, peer.reason);
	if (peer.result != 1200)
		fuzz_fail("the answer is %llu, not 1200", (unsigned long long) peer.result);
	peer_close(&peer);
}

void
check_stages(void)
{
	const Stage stage = make_stage();
	const Join	join = make_join();
	FuzzRandom	random = fuzz_random(0, 0);
	Peer		made;

	start_right(&made, &random, &stage.head, NULL);
	send_rows(&made, &join, 0, 900, 9);
	if (!peer_await(&made, GJ_MSG_DONE, ANSWER_MS))
		fuzz_fail("a stage is not done: message %u, reason %u", made.last, made.reason);
	for (uint32_t probes = 0; probes < 2; probes++)
	{
		const Reader reader = make_reader(probes == 1);
		const GjMsgSlot end = {GJ_MSG_SOURCE_END, 0, 1 - probes, 0};
		Peer		reads;

		start_right(&reads, &random, &reader.head, &made.token);
		if (probes == 1)
			peer_close(&made);
		else
			peer_send(&reads, &end, sizeof(end));
		send_rows(&reads, &join, probes, 12, 4);
		if (probes == 1)
			peer_send(&reads, &end, sizeof(end));
		if (!peer_await(&reads, GJ_MSG_DONE, ANSWER_MS))
			fuzz_fail("a run that reads a stage is not done: message %u, reason %u", reads.last, reads.reason);
		if (reads.result != 12)
			fuzz_fail("a run that reads a stage counts %llu, not 12", (unsigned long long) reads.result);
		peer_close(&reads);
	}
}
