/*
 * unit.h
 *	  Unit tests of gpujoind, which need neither PostgreSQL nor a GPU.
 *
 * A test is a function test_NAME of a test_*.c, and a line of UNIT_TESTS below.  CHECK counts, tells what failed
 * and goes on; REQUIRE returns from the test, because what follows would make no sense.
 */
#ifndef GJ_TEST_UNIT_H
#define GJ_TEST_UNIT_H

#include <stdbool.h>
#include <stdint.h>

extern bool unit_check(bool ok, const char *file, int line, const char *format,...)
			__attribute__((format(printf, 4, 5)));

#define CHECK(condition)	unit_check(condition, __FILE__, __LINE__, "%s", #condition)
#define CHECK_EQUAL(a, b) \
	do { \
		unsigned long long unit_a = (unsigned long long) (a); \
		unsigned long long unit_b = (unsigned long long) (b); \
		unit_check(unit_a == unit_b, __FILE__, __LINE__, "%s is %llu, not %llu", #a, unit_a, unit_b); \
	} while (0)
/* For many of them: counts only if it fails. */
#define EXPECT(condition)	unit_expect(condition, __FILE__, __LINE__, #condition)
static inline bool
unit_expect(bool ok, const char *file, int line, const char *condition)
{
	return ok ? true : unit_check(false, file, line, "%s", condition);
}

/* The text of an error says this. */
#define CHECK_TEXT(text, part) \
	unit_check(strstr(text, part) != NULL, __FILE__, __LINE__, "\"%s\" does not say \"%s\"", text, part)
#define REQUIRE(condition) \
	do { \
		if (!CHECK(condition)) \
			return; \
	} while (0)

/* A file of the tests' own folder, src/test: *nbytes of malloc'ed memory, or NULL. */
extern uint8_t *unit_read_file(const char *path, uint32_t *nbytes);

/* An empty folder that goes with the process. */
extern const char *unit_directory(void);

/* Numbers that look random, the same in each run. */
extern uint32_t unit_random(void);

/* The first number, the second one if GJ_LONG is set: for what takes long. */
extern uint32_t unit_choose(uint32_t usual, uint32_t if_long);

#define UNIT_TESTS(X) \
	X(rows_extremes) \
	X(rows_uuid_order) \
	X(wire_sizes) \
	X(wire_layout) \
	X(saved_chunks) \
	X(programs_are_accepted) \
	X(program_questions) \
	X(bounds_comparisons) \
	X(bounds_random) \
	X(program_operands) \
	X(programs_changing_memory) \
	X(programs_cut_short) \
	X(programs_hostile) \
	X(crash_runs) \
	X(crash_report) \
	X(spill_in_memory) \
	X(spill_in_files) \
	X(spill_positions) \
	X(spill_limits) \
	X(spill_account) \
	X(spill_directory) \
	X(spill_errors) \
	X(spill_full_disk) \
	X(spill_join) \
	X(spill_threads) \
	X(lease_accounting) \
	X(lease_limits) \
	X(lease_spare) \
	X(lease_waits) \
	X(lease_order) \
	X(quota_queries) \
	X(quota_memory) \
	X(quota_kept) \
	X(quota_threads) \
	X(resident_contents) \
	X(resident_references) \
	X(resident_bounds) \
	X(resident_offsets) \
	X(resident_finding) \
	X(resident_supersedes) \
	X(resident_flat) \
	X(resident_rows) \
	X(resident_bring) \
	X(resident_eviction) \
	X(resident_gives_way) \
	X(resident_counts) \
	X(resident_worth) \
	X(resident_many_sides) \
	X(resident_neighbour) \
	X(resident_denied) \
	X(resident_scales) \
	X(groups_heap) \
	X(merge_order) \
	X(merge_contents) \
	X(merge_batches) \
	X(merge_ends) \
	X(integers_small) \
	X(integers_random) \
	X(integers_large) \
	X(integers_memory) \
	X(integers_pauses) \
	X(stage_values) \
	X(stage_aggregates) \
	X(stage_owners) \
	X(stage_limits) \
	X(unpack_parts) \
	X(unpack_damaged)

#define UNIT_DECLARE(name) extern void test_##name(void);
UNIT_TESTS(UNIT_DECLARE)
#undef UNIT_DECLARE

#endif							/* GJ_TEST_UNIT_H */
