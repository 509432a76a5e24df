/*
 * test_stage.c
 *	  Results of stages: values of all kinds, in many chunks; who has them; what they may take.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/stage.h"
#include "unit.h"

#define NKEYS		4			/* an integer, a float, bytes, a text */
#define NAGGREGATES 5			/* count, sum, minimum, maximum of floats, sum of floats */
#define NCOLUMNS	10
#define BATCH		500			/* groups of one */
#define TEXT		2000		/* bytes of a long text */
#define MEGABYTE	(UINT64_C(1) << 20)

typedef struct Stage
{
	GjProgram	head;
	GjGroupKey	keys[NKEYS];
	GjAggregate aggregates[NAGGREGATES + 1];
	GjStageColumn columns[NCOLUMNS];
} Stage;

static Stage
make_stage(uint32_t output)
{
	Stage		s = {
		.head = {.nbytes = sizeof(Stage),.output = output,.output_capacity = BATCH,
			.ngroup_keys = output == GJ_OUTPUT_GROUPS ? NKEYS : 0,.group_keys = offsetof(Stage, keys),
			.naggregates = NAGGREGATES,.aggregates = offsetof(Stage, aggregates),
		.stage_capacity = 300,.nstage_columns = NCOLUMNS,.stage_columns = offsetof(Stage, columns)},
		.keys = {{GJ_GROUP_INTEGER, 0}, {GJ_GROUP_FLOAT, 1}, {GJ_GROUP_FIXED, 2}, {GJ_GROUP_TEXT, 3}},
		.columns = {
			{{GJ_INT2, 2, 1, 0}, 0, GJ_STAGE_KEY, 0}, {{GJ_FLOAT8, 8, 1, 0}, 1, GJ_STAGE_KEY, 0},
			{{GJ_BYTES, 4, 1, 0}, 2, GJ_STAGE_KEY, 0}, {{GJ_REF, 8, 1, 0}, 3, GJ_STAGE_KEY, 0},
			{{GJ_INT8, 8, 1, 0}, 0, GJ_STAGE_COUNT, 0}, {{GJ_INT8, 8, 1, 0}, 1, GJ_STAGE_SUM, 0},
			{{GJ_INT8, 8, 1, 0}, 1, GJ_STAGE_SUM_OR_ZERO, 0}, {{GJ_INT4, 4, 1, 0}, 2, GJ_STAGE_EXTREME_I, 0},
		{{GJ_FLOAT4, 4, 1, 0}, 3, GJ_STAGE_EXTREME_F, 0}, {{GJ_FLOAT8, 8, 1, 0}, 4, GJ_STAGE_SUM_F, 0}}
	};

	if (output == GJ_OUTPUT_AGGREGATES)
	{
		s.head.nstage_columns = NCOLUMNS - NKEYS;
		memmove(s.columns, s.columns + NKEYS, sizeof(s.columns[0]) * (NCOLUMNS - NKEYS));
		s.columns[s.head.nstage_columns++] = (GjStageColumn) {{GJ_BOOL, 1, 1, 0}, 0, GJ_STAGE_TRUE, 0};
	}
	return s;
}

static bool
has_no_value(uint32_t id)
{
	return id % 5 == 2;
}

static GjAggState
state_of(uint32_t id, uint32_t aggregate)
{
	GjAggState	state = {.count = has_no_value(id) && aggregate > 0 ? 0 : 1 + id};

	if (state.count == 0)
		return state;
	state.lo = (uint64_t) -(int64_t) id;
	state.hi = aggregate == 1 ? (int64_t) state.lo >> 63 : -7 * (int64_t) id;
	state.f = aggregate == 3 && id % 3 == 1 ? INFINITY : id / 4.0;
	return state;
}

static uint32_t
text_length(uint32_t id)
{
	return id % 3 == 0 ? TEXT : 8 + id % 90;
}

/* Groups first, first + 1, ... */
static void
fill_batch(const Stage *stage, uint8_t *batch, uint32_t first, uint32_t n)
{
	GjColumnType types[NKEYS + NAGGREGATES];
	GjColumnPlace places[NKEYS + NAGGREGATES];
	GjLayout	layout = {0};
	uint32_t	used = 0;

	REQUIRE(gj_program_layout_output(&stage->head, types, &layout, places));
	*(GjSlotHeader *) batch = (GjSlotHeader) {n, 0};
	memset(gj_slot_has_nulls(batch), 0, NKEYS + NAGGREGATES);
	gj_slot_has_nulls(batch)[0] = gj_slot_has_nulls(batch)[3] = 1;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	id = first + i;
		double		f = id / 8.0;
		bool		null = has_no_value(id);

		for (uint32_t k = 0; k < NKEYS; k++)
			batch[places[k].nulls + i] = (k == 0 || k == 3) && null;
		((int64_t *) (batch + places[0].data))[i] = -(int64_t) id;
		memcpy(batch + places[1].data + i * 8, &f, 8);
		((int64_t *) (batch + places[2].data))[i] = 0x1000000 + id;
		/* that of a NULL means nothing */
		((uint64_t *) (batch + places[3].data))[i] = null ? UINT64_MAX - GJ_REF_HELD - 1 :
			gj_ref_make(used, text_length(id));
		if (!null)
		{
			memset(batch + layout.heap + used, (int) (id % 250), text_length(id));
			used += (text_length(id) + 7u) & ~7u;
		}
		for (uint32_t a = 0; a < NAGGREGATES; a++)
			((GjAggState *) (batch + places[NKEYS + a].data))[i] = state_of(id, a);
	}
	CHECK(used <= layout.heap_size);
}

/* A column of a chunk. */
typedef struct Column
{
	const uint8_t *data;
	const uint8_t *nulls;
	bool		has_nulls;
} Column;

static void
find_columns(const Stage *stage, const uint8_t *chunk, Column *columns, const uint8_t **heap)
{
	GjColumnType types[NCOLUMNS];
	GjColumnPlace places[NCOLUMNS];
	GjLayout	layout = {0};
	uint32_t	n = stage->head.nstage_columns;

	for (uint32_t c = 0; c < n; c++)
		types[c] = stage->columns[c].type;
	REQUIRE(gj_layout(types, n, stage->head.stage_capacity, GJ_LOAD_CHUNK_SIZE, &layout, places));
	for (uint32_t c = 0; c < n; c++)
		columns[c] = (Column) {chunk + places[c].data, chunk + places[c].nulls, gj_slot_has_nulls(chunk)[c] != 0};
	*heap = chunk + layout.heap;
}

/* Row i of a chunk is group `id`. */
static void
check_row(const Column *c, const uint8_t *heap, uint32_t i, uint32_t id)
{
	bool		none = has_no_value(id);
	uint64_t	ref = ((const uint64_t *) c[3].data)[i];
	double		f = id / 8.0;

	for (uint32_t k = 0; k < NCOLUMNS; k++)
		EXPECT(c[k].nulls[i] == (none && k != 1 && k != 2 && k != 4 && k != 6) && (!c[k].nulls[i] || c[k].has_nulls));
	EXPECT(none || ((const int16_t *) c[0].data)[i] == (int16_t) -(int64_t) id);
	EXPECT(memcmp(c[1].data + i * 8, &f, 8) == 0);
	EXPECT(((const uint32_t *) c[2].data)[i] == 0x1000000 + id);
	EXPECT(none || (gj_ref_length(ref) == text_length(id) && heap[gj_ref_offset(ref)] == id % 250 &&
					heap[gj_ref_offset(ref) + text_length(id) - 1] == id % 250));
	EXPECT(((const int64_t *) c[4].data)[i] == 1 + id);
	EXPECT(none || ((const int64_t *) c[5].data)[i] == -(int64_t) id);
	EXPECT(((const int64_t *) c[6].data)[i] == (none ? 0 : -(int64_t) id));
	EXPECT(none || ((const int32_t *) c[7].data)[i] == -7 * (int32_t) id);
	EXPECT(none || ((const float *) c[8].data)[i] == (id % 3 == 1 ? INFINITY : (float) (id / 4.0)));
	EXPECT(none || ((const double *) c[9].data)[i] == id / 4.0);
}

/* Batches of all sizes; chunks end with their rows or with their heap, and no group is lost. */
void
test_stage_values(void)
{
	const Stage stage = make_stage(GJ_OUTPUT_GROUPS);
	uint8_t    *batch = malloc(GJ_OUTPUT_SLOT_SIZE);
	GjStageResult *result = gj_stage_create(&stage.head, 256 * MEGABYTE);
	GjErrorText why = {""};
	const uint8_t *chunk;
	uint32_t	nrows,
				n = 0,
				seen = 0,
				full = 0,
				chunks = 0;

	REQUIRE(batch && result);
	for (uint32_t size = 0; n < 9000; size = (size * 7 + 1) % (BATCH + 1))
	{
		fill_batch(&stage, batch, n, size);
		REQUIRE(gj_stage_add(result, batch, size, &why) == GJ_OK);
		n += size;
	}
	for (uint32_t i = 0; (chunk = gj_stage_chunk(result, i, &nrows)) != NULL; i++, chunks++)
	{
		Column		columns[NCOLUMNS];
		const uint8_t *heap;

		CHECK(nrows > 0 && nrows <= stage.head.stage_capacity);
		full += nrows == stage.head.stage_capacity;
		find_columns(&stage, chunk, columns, &heap);
		for (uint32_t row = 0; row < nrows; row++)
			check_row(columns, heap, row, seen++);
	}
	CHECK_EQUAL(seen, n);
	CHECK(chunks > full && chunks > n / stage.head.stage_capacity);
	gj_stage_put(result);
	free(batch);
}

/* One row of aggregates; sums that fit no column are row errors. */
void
test_stage_aggregates(void)
{
	const Stage stage = make_stage(GJ_OUTPUT_AGGREGATES);
	GjStageResult *result = gj_stage_create(&stage.head, MEGABYTE);
	GjAggState	states[NAGGREGATES];
	GjErrorText why = {""};
	Column		columns[NCOLUMNS];
	const uint8_t *heap;
	const uint8_t *chunk;
	uint32_t	nrows;

	REQUIRE(result);
	for (uint32_t a = 0; a < NAGGREGATES; a++)
		states[a] = state_of(6, a);
	CHECK_EQUAL(gj_stage_add(result, (uint8_t *) states, 2, &why), GJ_DEVICE_ERROR);
	CHECK_EQUAL(gj_stage_add(result, (uint8_t *) states, 1, &why), GJ_OK);
	chunk = gj_stage_chunk(result, 0, &nrows);
	REQUIRE(chunk && nrows == 1);
	CHECK(!gj_stage_chunk(result, 1, &nrows));
	find_columns(&stage, chunk, columns, &heap);
	CHECK_EQUAL(*(const int64_t *) columns[0].data, 7);
	CHECK(*(const int64_t *) columns[1].data == -6 && !columns[1].has_nulls);
	CHECK_EQUAL(*columns[6].data, 1);
	states[1].hi = 0;
	CHECK_EQUAL(gj_stage_add(result, (uint8_t *) states, 1, &why), GJ_OVERFLOW);
	states[1].hi = -1;
	states[4].f = NAN;
	CHECK_EQUAL(gj_stage_add(result, (uint8_t *) states, 1, &why), GJ_OVERFLOW);
	gj_stage_put(result);
}

/* It stays as long as somebody has it, and is found by its token alone. */
void
test_stage_owners(void)
{
	const Stage stage = make_stage(GJ_OUTPUT_AGGREGATES);
	const GjRunToken token = {{1}};
	const GjRunToken other = {{1, 1}};
	GjStageResult *result = gj_stage_create(&stage.head, MEGABYTE);
	struct
	{
		GjProgram	head;
		GjSource	source;
		GjColumnType columns[8];
	}			reader = {.head = {.sources = sizeof(GjProgram),.columns = sizeof(GjProgram) + sizeof(GjSource),
		.nsources = 1},.source = {.ncolumns = stage.head.nstage_columns,.capacity = stage.head.stage_capacity}};

	REQUIRE(result);
	for (uint32_t c = 0; c < stage.head.nstage_columns; c++)
		reader.columns[c] = stage.columns[c].type;
	CHECK(!gj_stage_get(&token));
	gj_stage_publish(result, &token);
	CHECK(!gj_stage_get(&other));
	REQUIRE(gj_stage_get(&token) == result && gj_stage_get(&token) == result);
	gj_stage_put(result);
	/* its session is gone, and a run still reads */
	gj_stage_put(result);
	CHECK(gj_stage_fits(result, &reader.head, 0));
	reader.columns[1].nullable = 0;
	CHECK(!gj_stage_fits(result, &reader.head, 0));
	reader.columns[1].nullable = 1;
	reader.columns[1].kind = GJ_FLOAT8;
	CHECK(!gj_stage_fits(result, &reader.head, 0));
	reader.columns[1].kind = GJ_INT8;
	reader.source.capacity++;
	CHECK(!gj_stage_fits(result, &reader.head, 0));
	reader.source.capacity--;
	reader.source.ncolumns--;
	CHECK(!gj_stage_fits(result, &reader.head, 0));
	gj_stage_put(result);
	CHECK(!gj_stage_get(&token));
	gj_stage_put(NULL);
}

/* No more memory than it may take; references that lie outside their heap are refused. */
void
test_stage_limits(void)
{
	const Stage stage = make_stage(GJ_OUTPUT_GROUPS);
	uint8_t    *batch = malloc(GJ_OUTPUT_SLOT_SIZE);
	GjStageResult *result = gj_stage_create(&stage.head, 0);
	GjColumnType types[NKEYS + NAGGREGATES];
	GjColumnPlace places[NKEYS + NAGGREGATES];
	GjLayout	layout = {0};
	GjErrorText why = {""};
	GjStatus	status = GJ_OK;
	uint32_t	nrows,
				n = 0;

	REQUIRE(batch && result && gj_program_layout_output(&stage.head, types, &layout, places));
	fill_batch(&stage, batch, 0, BATCH);
	CHECK_EQUAL(gj_stage_add(result, batch, BATCH + 1, &why), GJ_DEVICE_ERROR);
	while (status == GJ_OK && n++ < 1000)
		status = gj_stage_add(result, batch, BATCH, &why);
	CHECK_EQUAL(status, GJ_TOO_LARGE);
	CHECK_TEXT(why.text, "spill_memory");
	CHECK(gj_stage_chunk(result, 7, &nrows) && !gj_stage_chunk(result, 8, &nrows));
	gj_stage_put(result);

	for (uint32_t i = 0; i < 3; i++)
	{
		const uint64_t wrong[] = {gj_ref_make(layout.heap_size + 8, 8), gj_ref_make(layout.heap_size - 8, 16),
		gj_ref_make(0, GJ_REF_HELD)};

		REQUIRE((result = gj_stage_create(&stage.head, 0)) != NULL);
		((uint64_t *) (batch + places[3].data))[0] = wrong[i];
		CHECK_EQUAL(gj_stage_add(result, batch, 1, &why), GJ_TOO_LARGE);
		gj_stage_put(result);
	}
	/* larger than a chunk */
	REQUIRE((result = gj_stage_create(&stage.head, 0)) != NULL);
	((uint64_t *) (batch + places[3].data))[0] = gj_ref_make(0, GJ_LOAD_CHUNK_SIZE);
	CHECK_EQUAL(gj_stage_add(result, batch, 1, &why), GJ_TOO_LARGE);
	CHECK_TEXT(why.text, "does not fit a chunk");
	gj_stage_put(result);
	free(batch);
}
