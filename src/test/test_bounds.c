/*
 * test_bounds.c
 *	  Conditions that cannot be TRUE within bounds: none of the rows there is, or raises an error.
 */
#include <string.h>

#include "daemon/program/program.h"
#include "rows/expression.h"
#include "unit.h"

#define NCOLUMNS	2
#define NREGISTERS	5
#define MOST_INSTRS	24
#define NCONSTANTS	3
#define MOST_ROWS	64			/* every value of a column, or NULL, beside those of the other */
#define NRANDOM		200000

/* A program that is nothing but a condition. */
typedef struct Condition
{
	GjProgram	program;
	GjExpr		expr;
	GjInstr		instrs[MOST_INSTRS];
	int64_t		constants[NCONSTANTS];
	GjBounds	bounds[NCOLUMNS];
} Condition;

static void
begin(Condition *c)
{
	memset(c, 0, sizeof(*c));
	c->program.exprs = offsetof(Condition, expr);
	c->program.instrs = offsetof(Condition, instrs);
	c->program.constants = offsetof(Condition, constants);
	c->expr.nregisters = NREGISTERS;
}

static GjInstr *
add(Condition *c, GjOp op, uint16_t dst, uint16_t a, uint16_t b)
{
	GjInstr    *instr = &c->instrs[c->expr.ninstrs++];

	*instr = (GjInstr) {.op = (uint16_t) op,.dst = dst,.a = a,.b = b};
	c->expr.result = dst;
	return instr;
}

static bool
can_be_true(const Condition *c)
{
	return gj_program_can_be_true(&c->program, 0, c->bounds, 0);
}

/* Column 0, between 10 and 20, compared with a constant. */
static bool
compared(GjOp op, int64_t constant)
{
	Condition	c;

	begin(&c);
	c.bounds[0] = (GjBounds) {10, 20, true};
	add(&c, GJ_OP_LOAD, 0, 0, 0);
	add(&c, GJ_OP_CONST, 1, 0, 0)->imm = constant;
	add(&c, op, 0, 0, 1);
	return can_be_true(&c);
}

/* The same with a list of three constants. */
static bool
listed(int64_t first, int64_t second, int64_t third)
{
	Condition	c;

	begin(&c);
	c.bounds[0] = (GjBounds) {10, 20, true};
	memcpy(c.constants, (int64_t[]) {first, second, third}, sizeof(c.constants));
	add(&c, GJ_OP_LOAD, 0, 0, 0);
	add(&c, GJ_OP_IN_I, 0, 0, 0)->n = 3;
	return can_be_true(&c);
}

/* 10 / column 1, which can be 0, is 5; before or behind column 0 >= constant. */
static bool
divided(bool before, int64_t constant)
{
	Condition	c;

	begin(&c);
	c.bounds[0] = (GjBounds) {10, 20, false};
	c.bounds[1] = (GjBounds) {-2, 2, true};
	add(&c, GJ_OP_CONST, 3, 0, 0)->imm = 10;
	if (before)
	{
		add(&c, GJ_OP_LOAD, 2, 0, 0)->arg = 1;
		add(&c, GJ_OP_DIV_I, 2, 3, 2)->arg = GJ_INT8;
	}
	add(&c, GJ_OP_LOAD, 0, 0, 0);
	add(&c, GJ_OP_CONST, 1, 0, 0)->imm = constant;
	add(&c, GJ_OP_GE_I, 0, 0, 1);
	if (!before)
	{
		add(&c, GJ_OP_LOAD, 2, 0, 0)->arg = 1;
		add(&c, GJ_OP_ONLY_IF, 2, 2, 0);
		add(&c, GJ_OP_DIV_I, 2, 3, 2)->arg = GJ_INT8;
	}
	add(&c, GJ_OP_CONST, 1, 0, 0)->imm = 5;
	add(&c, GJ_OP_EQ_I, 2, 2, 1);
	add(&c, GJ_OP_AND, 0, 0, 2);
	return can_be_true(&c);
}

void
test_bounds_comparisons(void)
{
	Condition	c;

	CHECK(compared(GJ_OP_EQ_I, 10) && compared(GJ_OP_EQ_I, 20));
	CHECK(!compared(GJ_OP_EQ_I, 9) && !compared(GJ_OP_EQ_I, 21));
	CHECK(compared(GJ_OP_LT_I, 11) && !compared(GJ_OP_LT_I, 10));
	CHECK(compared(GJ_OP_LE_I, 10) && !compared(GJ_OP_LE_I, 9));
	CHECK(compared(GJ_OP_GT_I, 19) && !compared(GJ_OP_GT_I, 20));
	CHECK(compared(GJ_OP_GE_I, 20) && !compared(GJ_OP_GE_I, 21));
	CHECK(compared(GJ_OP_NE_I, 10) && compared(GJ_OP_NE_I, 15));
	CHECK(!compared(GJ_OP_LT_I, INT64_MIN) && !compared(GJ_OP_GT_I, INT64_MAX));
	CHECK(listed(1, 10, 30) && listed(1, 2, 20) && listed(15, 16, 17));
	CHECK(!listed(1, 9, 21) && !listed(1, 2, 3) && !listed(21, 22, 23));
	/* what could raise an error comes first, or is not reached */
	CHECK(divided(true, 15) && divided(true, 21));
	CHECK(divided(false, 15) && !divided(false, 21));
	/* a column of NULLs, and one without */
	begin(&c);
	c.bounds[0] = (GjBounds) {1, 0, true};
	add(&c, GJ_OP_LOAD, 0, 0, 0);
	add(&c, GJ_OP_EQ_I, 0, 0, 0);
	CHECK(!can_be_true(&c));
	add(&c, GJ_OP_LOAD_IS_NULL, 0, 0, 0);
	CHECK(can_be_true(&c));
	c.bounds[0] = (GjBounds) {1, 2, false};
	CHECK(!can_be_true(&c));
	add(&c, GJ_OP_NOT, 0, 0, 0);
	CHECK(can_be_true(&c));
	/* of a scale up that can overflow nothing is known; else it shifts the bounds */
	begin(&c);
	c.bounds[0] = (GjBounds) {10, INT64_MAX / 50, false};
	add(&c, GJ_OP_LOAD, 0, 0, 0);
	add(&c, GJ_OP_SCALE_UP, 0, 0, 0)->imm = 100;
	add(&c, GJ_OP_CONST, 1, 0, 0)->imm = 999;
	add(&c, GJ_OP_LE_I, 0, 0, 1);
	CHECK(can_be_true(&c));
	c.bounds[0].high = INT64_MAX / 200;
	CHECK(!can_be_true(&c));
}

/* ---- anything */

static const GjOp random_ops[] = {
	GJ_OP_LOAD, GJ_OP_LOAD_IS_NULL, GJ_OP_CONST, GJ_OP_EQ_I, GJ_OP_NE_I, GJ_OP_LT_I, GJ_OP_LE_I,
	GJ_OP_GT_I, GJ_OP_GE_I, GJ_OP_AND, GJ_OP_OR, GJ_OP_NOT, GJ_OP_IS_NULL, GJ_OP_IS_TRUE,
	GJ_OP_IS_FALSE, GJ_OP_IN_I, GJ_OP_ONLY_IF, GJ_OP_MOVE, GJ_OP_IF, GJ_OP_COALESCE,
	GJ_OP_NULL_IF, GJ_OP_GREATEST_I, GJ_OP_LEAST_I, GJ_OP_BIT_XOR, GJ_OP_SCALE_UP,
	GJ_OP_TIMESTAMP_TO_DATE, GJ_OP_ADD_I, GJ_OP_DIV_I, GJ_OP_NEG_I, GJ_OP_RANGE_I, GJ_OP_SIGN_I,
	GJ_OP_NEG_F, GJ_OP_LT_F
};

/* Adds an instruction whose operands may be any register, also one that it does not read. */
static void
add_random(Condition *c)
{
	GjOp		op = random_ops[unit_random() % (sizeof(random_ops) / sizeof(random_ops[0]))];
	GjInstr    *instr = add(c, op, unit_random() % NREGISTERS, unit_random() % NREGISTERS,
							unit_random() % NREGISTERS);

	instr->imm = (int64_t) (unit_random() % 8) - 3;
	switch (op)
	{
		case GJ_OP_LOAD:
		case GJ_OP_LOAD_IS_NULL:
			instr->arg = unit_random() % NCOLUMNS;
			break;
		case GJ_OP_CONST:
			instr->n = unit_random() % 8 == 0;
			break;
		case GJ_OP_IN_I:
			instr->imm = unit_random() % 2;
			instr->n = unit_random() % (NCONSTANTS + 1);
			break;
		case GJ_OP_SCALE_UP:
			instr->imm = 10;
			break;
		case GJ_OP_ADD_I:
		case GJ_OP_DIV_I:
		case GJ_OP_NEG_I:
		case GJ_OP_RANGE_I:
			instr->arg = GJ_INT8;
			break;
		default:
			break;
	}
}

static void
make_random(Condition *c)
{
	uint32_t	n = NREGISTERS + 1 + unit_random() % (MOST_INSTRS - NREGISTERS);

	begin(c);
	for (uint32_t i = 0; i < NCONSTANTS; i++)
		c->constants[i] = (int64_t) (unit_random() % 4) - 4 + 3 * (int64_t) i;
	for (uint32_t i = 0; i < NCOLUMNS; i++)
	{
		int64_t		low = (int64_t) (unit_random() % 8) - 4;
		bool		none = unit_random() % 10 == 0;

		c->bounds[i] = none ? (GjBounds) {1, 0, true} :
			(GjBounds) {low, low + (int64_t) (unit_random() % 6), unit_random() % 2};
	}
	for (uint16_t r = 0; r < NREGISTERS; r++)
		add(c, GJ_OP_LOAD, r, 0, 0)->arg = r % NCOLUMNS;
	while (c->expr.ninstrs < n && c->expr.ninstrs < MOST_INSTRS)
		add_random(c);
}

/* All values of the columns within their bounds, as rows; returns how many. */
static uint32_t
make_rows(const Condition *c, int64_t values[NCOLUMNS][MOST_ROWS], uint8_t nulls[NCOLUMNS][MOST_ROWS])
{
	uint32_t	nvalues[NCOLUMNS];
	uint32_t	count[NCOLUMNS];

	for (uint32_t i = 0; i < NCOLUMNS; i++)
	{
		nvalues[i] = (uint32_t) (c->bounds[i].high - c->bounds[i].low + 1);
		count[i] = nvalues[i] + c->bounds[i].has_null;
	}
	for (uint32_t row = 0; row < count[0] * count[1]; row++)
	{
		const uint32_t number[NCOLUMNS] = {row % count[0], row / count[0]};

		for (uint32_t i = 0; i < NCOLUMNS; i++)
		{
			values[i][row] = c->bounds[i].low + number[i];
			nulls[i][row] = number[i] == nvalues[i];
		}
	}
	return count[0] * count[1];
}

/* True if the condition is TRUE for one of all rows, or one raises an error. */
static bool
some_row_matters(const Condition *c)
{
	static const GjColumnType types[NCOLUMNS] = {{GJ_INT8, 8, 1, 0}, {GJ_INT8, 8, 1, 0}};
	static int64_t values[NCOLUMNS][MOST_ROWS];
	static uint8_t nulls[NCOLUMNS][MOST_ROWS];
	static int64_t registers[NREGISTERS * MOST_ROWS];
	static uint8_t null[NREGISTERS * MOST_ROWS];
	const GjTile tile = {registers, null, MOST_ROWS};
	const GjCode code = {&c->expr, c->instrs, c->constants, types};
	const GjColumn columns[NCOLUMNS] = {
		{.data = values[0],.nulls = nulls[0],.kind = GJ_INT8,.width = 8},
		{.data = values[1],.nulls = nulls[1],.kind = GJ_INT8,.width = 8}
	};
	const uint32_t nrows = make_rows(c, values, nulls);
	const GjView view = {.columns = columns,.nrows = nrows};
	const uint32_t result = c->expr.result * MOST_ROWS;
	uint32_t	status = GJ_OK;

	gj_eval(&code, 0, &view, 0, nrows, &tile, &status);
	for (uint32_t i = 0; i < nrows; i++)
		if (!null[result + i] && registers[result + i] != 0)
			return true;
	return status != GJ_OK;
}

/* Nothing is left out that matters; and of what does not matter, much is. */
void
test_bounds_random(void)
{
	uint32_t	nexcluded = 0;
	uint32_t	nnot = 0;

	for (uint32_t i = 0; i < NRANDOM; i++)
	{
		Condition	c;
		bool		matters;

		make_random(&c);
		matters = some_row_matters(&c);
		nnot += !matters;
		if (can_be_true(&c))
			continue;
		nexcluded++;
		EXPECT(!matters);
	}
	CHECK(nexcluded > NRANDOM / 20);
	CHECK(nexcluded > nnot / 6);
}
