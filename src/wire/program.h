/*
 * program.h
 *	  The plan in device terms: what a backend asks gpujoind to run.
 *
 * A program is one flat buffer without pointers: a GjProgram header, then arrays
 * at the byte offsets that the header names, each 8-byte aligned.  The backend
 * writes it; gpujoind copies it, checks every offset and index of the copy
 * (gj_program_check) and runs the copy.
 *
 * Sources are numbered from 0.  Source 0 is the probe side, streamed in chunks;
 * the others are build sides, complete before the first step runs.  Columns are
 * numbered through the whole program, those of one source next to each other.
 * Step i joins what steps 0..i-1 made with the source that it names; each source
 * but 0 is joined by exactly one step.
 */
#ifndef GJ_WIRE_PROGRAM_H
#define GJ_WIRE_PROGRAM_H

#include <assert.h>

#include "columns.h"
#include "sets.h"

#define GJ_PROGRAM_MAGIC	0x4750474aU /* "JGPG" */

#define GJ_MAX_SOURCES		16
#define GJ_MAX_KEYS			8
#define GJ_MAX_RANGE_KEYS	(GJ_MAX_KEYS - 2)	/* of a step that has a range as well */
#define GJ_MAX_COLUMNS		1600	/* of a program */
#define GJ_MAX_REGISTERS	16
#define GJ_MAX_AGGREGATES	256
#define GJ_MAX_GROUP_KEYS	32
#define GJ_MAX_DISTINCT_KEYS 2
#define GJ_MAX_TUPLES		(1u << 20)	/* of a chunk, of a batch, of one call of an operator */
#define GJ_MAX_LIMIT		(1u << 17)
#define GJ_MAX_STAGES		15		/* that a program reads */
#define GJ_MAX_STAGE_COLUMNS 64
#define GJ_MAX_PROGRAM_SIZE	(128 * 1024)	/* fits one socket message */

typedef enum GjProgramKind
{
	GJ_PROGRAM_JOIN,			/* sources, steps, output */
	GJ_PROGRAM_INTERSECT,		/* sources 0 and 1 have one column each; the
								 * output is what GjSetSpec says of them, sorted and unique */
	GJ_PROGRAM_PREWARM,			/* source 0 becomes resident; no step, GJ_OUTPUT_COUNT;
								 * instructions tell the loader which texts to flatten */
	GJ_PROGRAM_SETS				/* all pairs of families of sets: sets.h */
} GjProgramKind;

typedef enum GjOutputKind
{
	GJ_OUTPUT_ROWS,				/* batches of the output columns */
	GJ_OUTPUT_AGGREGATES,		/* one batch: GjAggState[naggregates] */
	GJ_OUTPUT_COUNT,			/* all but joins: one GjAggState, count only; for
								 * GJ_PROGRAM_INTERSECT also the distinct elements of both
								 * sources in lo and hi */
	GJ_OUTPUT_GROUPS			/* batches of groups: see GjGroupKey */
} GjOutputKind;

/* Where gpujoin.fail_at makes the device fail. */
typedef enum GjFailPoint
{
	GJ_FAIL_NEVER,
	GJ_FAIL_CONNECT,			/* in the backend: as if no daemon were there */
	GJ_FAIL_SUBMIT,				/* program refused */
	GJ_FAIL_ANSWER,				/* unless all is resident and used without an answer about it */
	GJ_FAIL_STALL,				/* the first probe chunk takes for ever (until stopped) */
	GJ_FAIL_MEMORY,				/* out of memory when the first build side is built */
	GJ_FAIL_BUILD,				/* device error in the first build */
	GJ_FAIL_PROBE,				/* device error at the first probe chunk */
	GJ_FAIL_OVERFLOW,			/* row error at the first probe chunk */
	GJ_FAIL_OUTPUT,				/* device error after the first batch was sent */
	GJ_FAIL_CRASH				/* gpujoind aborts at the first probe chunk */
} GjFailPoint;

/*
 * What a step makes of its tuples (left) and the rows of its source (right).  A row id
 * of GJ_NO_ROW stands for a row of NULLs.
 */
typedef enum GjJoinType
{
	GJ_JOIN_INNER,
	GJ_JOIN_LEFT,				/* and the tuples without a match */
	GJ_JOIN_RIGHT,				/* and the rows of the source without a match, at the end */
	GJ_JOIN_FULL,
	GJ_JOIN_SEMI,				/* tuples with a match, once; the source is read no further */
	GJ_JOIN_ANTI,				/* tuples without */
	GJ_JOIN_RIGHT_SEMI,			/* rows of the source with a match, once, at the end; the */
	GJ_JOIN_RIGHT_ANTI			/* tuples are read no further */
} GjJoinType;

#define GJ_NO_ROW			UINT32_MAX

typedef enum GjAlgorithm
{
	GJ_JOIN_HASH,				/* nkeys > 0 */
	GJ_JOIN_SORT_MERGE,			/* nkeys > 0, or a range */
	GJ_JOIN_NESTED_LOOP,		/* any condition: keys, range and residual */
	GJ_JOIN_SET					/* what GjSetStep says; nkeys = 0 but for membership; no range */
} GjAlgorithm;

/* What a NULL among the elements of an array means. */
typedef enum GjNullElements
{
	GJ_NULL_ELEMENTS_SKIPPED,	/* the set is made of the others */
	GJ_NULL_ELEMENTS_NEVER,		/* the array matches nothing */
	GJ_NULL_ELEMENTS_FAIL		/* a row error */
} GjNullElements;

/*
 * The condition of a step of GJ_JOIN_SET: two columns of integer arrays (GJ_REF, as
 * PostgreSQL stores them) are taken for sets, the probe source being the left one.  A NULL
 * array matches nothing.
 *
 * With `membership`, a row is an element of a set: the step has one key, the element, and
 * the columns are integers that say of which set.  NULL is a set as well; rows with a NULL
 * element are in none.  A pair of sets that have an element in common comes out once, with
 * row ids of rows of which nothing but these two columns may be read, and its first pair value
 * is the number of pairs of rows that it stands for.  That number may come in parts, as
 * several pairs, where not all probe rows are worked on together; so can the threshold, which
 * the device may ignore, only leave pairs out early that nobody wants.  The step is an inner
 * join and the only one, its residual condition reads the two columns, and groups by these come out.
 */
typedef struct GjSetStep
{
	uint32_t	probe_column;	/* of a source joined before */
	uint32_t	build_column;	/* of the step's source */
	int32_t		threshold;		/* an expression that is one GJ_OP_CONST, NULL: no pair matches;
								 * -1: 1 */
	uint8_t		predicate;		/* GjSetPredicate */
	uint8_t		strict;			/* 1: more than the threshold */
	uint8_t		width;			/* of the elements: 2, 4 or 8 bytes */
	uint8_t		algorithm;		/* GjSetAlgorithm */
	uint8_t		probe_nulls;	/* GjNullElements */
	uint8_t		build_nulls;
	/*
	 * If not 0: each pair has three values, the number of common elements, the size of the
	 * probe set and that of the build side.  They pass the later steps in the place of row ids
	 * of sources `values`, `values` + 1 and `values` + 2, which do not exist.
	 */
	uint8_t		values;
	uint8_t		membership;
	/*
	 * The two sources have the same rows and columns, and the residual condition says that 1:
	 * the probe column is less than the build side, 2: it is greater.  0: neither is known.
	 */
	uint8_t		same;
	uint8_t		unused[3];
	/* membership: expressions, whether the column is NULL; -1: it never is */
	int32_t		probe_is_null;
	int32_t		build_is_null;
} GjSetStep;

#define GJ_PAIR_VALUES		3
#define gj_pair_values(set)	((set)->values ? ((1u << GJ_PAIR_VALUES) - 1) << (set)->values : 0u)

/*
 * Instructions work on a tile of rows: registers hold one 64-bit value and one
 * null flag a row.  Integers of every width, dates, timestamps, oids and bools
 * are int64 in a register, floats are double.  A numeric is its value times 10^s, s
 * known when the program is made.  Bytes (text, uuid, ...) are the address of the first
 * one in the low 48 bits and their number in the high 16 (src/rows/text.h).
 *
 * Suffixes: _I integer, _F double, _T bytes, _D numeric.  Operators on integers are also
 * those on numerics of one scale.
 */
typedef enum GjOp
{
	GJ_OP_LOAD,					/* dst = column arg */
	GJ_OP_LOAD_IS_NULL,			/* dst = column arg is NULL (any kind of column) */
	GJ_OP_CONST,				/* dst = imm, NULL if n = 1 */

	GJ_OP_EQ_I, GJ_OP_NE_I, GJ_OP_LT_I, GJ_OP_LE_I, GJ_OP_GT_I, GJ_OP_GE_I,
	GJ_OP_EQ_F, GJ_OP_NE_F, GJ_OP_LT_F, GJ_OP_LE_F, GJ_OP_GT_F, GJ_OP_GE_F,

	/* integers: arg is the GjKind whose range the result must keep */
	GJ_OP_ADD_I, GJ_OP_SUB_I, GJ_OP_MUL_I, GJ_OP_DIV_I, GJ_OP_MOD_I,
	GJ_OP_NEG_I, GJ_OP_ABS_I,
	GJ_OP_RANGE_I,				/* dst = a, which must be in the range of arg */

	GJ_OP_ADD_F, GJ_OP_SUB_F, GJ_OP_MUL_F, GJ_OP_DIV_F,
	GJ_OP_NEG_F, GJ_OP_ABS_F,
	GJ_OP_I_TO_F,				/* dst = (double) a */

	GJ_OP_AND, GJ_OP_OR, GJ_OP_NOT, /* three-valued */
	GJ_OP_IS_NULL,				/* dst = a is NULL */
	GJ_OP_IS_TRUE,				/* dst = a is TRUE, never NULL */
	GJ_OP_IS_FALSE,

	/* dst = a is among constants[arg .. arg+n), ascending; NULL if not and imm = 1 */
	GJ_OP_IN_I, GJ_OP_IN_F,

	GJ_OP_ONLY_IF,				/* dst = a, NULL unless b is TRUE */

	/*
	 * Loads that can fail (imm = 1: rows where register a is not TRUE become NULL and
	 * do not).  n: GjBytesForm of a column of GJ_REF or GJ_BYTES; scale of a numeric.
	 */
	GJ_OP_LOAD_T, GJ_OP_LOAD_D,
	GJ_OP_CONST_T,				/* dst = the n bytes at constants[arg], NULL if imm = 1 */

	/* conditional */
	GJ_OP_MOVE,					/* dst = a */
	GJ_OP_IF,					/* dst = a is TRUE ? b : dst */
	GJ_OP_COALESCE,				/* dst = a is NULL ? b : a */
	GJ_OP_NULL_IF,				/* dst = b is TRUE ? NULL : a */
	GJ_OP_GREATEST_I, GJ_OP_LEAST_I, GJ_OP_GREATEST_F, GJ_OP_LEAST_F, /* of what is not NULL */

	GJ_OP_BIT_AND, GJ_OP_BIT_OR, GJ_OP_BIT_XOR, GJ_OP_BIT_NOT,
	GJ_OP_SHIFT_LEFT, GJ_OP_SHIFT_RIGHT, /* arg: GjKind of a and of the result */
	GJ_OP_SIGN_I,

	GJ_OP_F_TO_I,				/* arg: GjKind of the result */
	GJ_OP_F_TO_F4,				/* rounded to float4 */
	GJ_OP_SQRT_F, GJ_OP_FLOOR_F, GJ_OP_CEIL_F, GJ_OP_ROUND_F, GJ_OP_TRUNC_F, GJ_OP_SIGN_F,

	/* bytes */
	GJ_OP_EQ_T, GJ_OP_NE_T, GJ_OP_LT_T, GJ_OP_LE_T, GJ_OP_GT_T, GJ_OP_GE_T,
	GJ_OP_IN_T,					/* as IN_I; see gj_in_t() for the constants */
	GJ_OP_HASH_T,				/* dst = 64-bit hash */
	GJ_OP_LIKE,					/* a LIKE b; arg: 1 if characters are UTF-8 */
	GJ_OP_STARTS_WITH,
	GJ_OP_TRIM,					/* without blanks; arg: GjTrim */
	GJ_OP_LENGTH_T,				/* characters; arg as for LIKE */
	GJ_OP_OCTETS_T,
	GJ_OP_SUBSTR,				/* a from b on; n = 1: at most register b+1 characters */
	GJ_OP_LEFT_T, GJ_OP_RIGHT_T,

	/* numeric */
	GJ_OP_SCALE_UP,				/* dst = a * 10^n */
	GJ_OP_SCALE_DOWN,			/* dst = a / 10^n; arg: GjRounding */
	GJ_OP_DIGITS_D,				/* dst = a, which must have at most n digits */
	GJ_OP_D_TO_F,				/* dst = a / 10^n as PostgreSQL's cast rounds it */

	/* dates are days, timestamps microseconds since 2000-01-01 */
	GJ_OP_DATE_ADD,				/* date a + b days */
	GJ_OP_DATE_SUB,				/* date a - date b */
	GJ_OP_DATE_TO_TIMESTAMP,
	GJ_OP_TIMESTAMP_TO_DATE,
	GJ_OP_ADD_INTERVAL,			/* timestamp a + constants[arg ..]: months, days, us */
	GJ_OP_EXTRACT_DATE,			/* arg: GjDateField, of a date */
	GJ_OP_EXTRACT_TIMESTAMP,	/* of a timestamp */
	GJ_OP_TRUNC_TIMESTAMP,		/* arg: GjDateField */

	GJ_OP_LOAD_PAIR,			/* dst = pair value arg (GjSetStep), NULL where there is no pair */
	GJ_OP_SIMILARITY,			/* dst = similarity of two sets: a = their common elements, b and
								 * register b+1 = their sizes; arg: GjSetPredicate */
	GJ_OP_PACK_I,				/* dst = the low 32 bits of a, then those of b */
	GJ_OP_WORD_T,				/* dst = the bytes of a, at most 8, as a little-endian word; b = a */
	GJ_OP_KEY_T,				/* dst = half of the 128 bits of a key; arg: GJ_KEY_... (rows/text.h) */
	GJ_NOPS
} GjOp;

/* Where the bytes of a value are that a column of GJ_REF or GJ_BYTES has. */
typedef enum GjBytesForm
{
	GJ_BYTES_VARLENA,			/* behind a length header */
	GJ_BYTES_FIXED,				/* all of them */
	GJ_BYTES_CSTRING,			/* up to the first zero */
	GJ_BYTES_ARRAY				/* an array of integers, behind a length header; one that has not the
								 * bytes of all that are equal to it is a row error */
} GjBytesForm;

typedef enum GjTrim
{
	GJ_TRIM_LEFT = 1,
	GJ_TRIM_RIGHT = 2
} GjTrim;

typedef enum GjRounding
{
	GJ_ROUND_HALF_AWAY,			/* to the nearest, .5 away from zero */
	GJ_ROUND_ZERO,
	GJ_ROUND_FLOOR,
	GJ_ROUND_CEIL
} GjRounding;

typedef enum GjDateField
{
	GJ_FIELD_SECOND,			/* in microseconds */
	GJ_FIELD_MINUTE,
	GJ_FIELD_HOUR,
	GJ_FIELD_DAY,
	GJ_FIELD_WEEK,				/* only TRUNC */
	GJ_FIELD_MONTH,
	GJ_FIELD_QUARTER,
	GJ_FIELD_YEAR,
	GJ_FIELD_DOW,				/* the rest: only EXTRACT */
	GJ_FIELD_ISODOW,
	GJ_FIELD_DOY,
	GJ_NFIELDS
} GjDateField;

typedef struct GjInstr
{
	uint16_t	op;				/* GjOp */
	uint16_t	dst;			/* registers */
	uint16_t	a;
	uint16_t	b;
	uint32_t	arg;
	uint32_t	n;
	int64_t		imm;			/* an integer or the bits of a double */
} GjInstr;

/* A straight run of instructions; its value ends in register `result`. */
typedef struct GjExpr
{
	uint32_t	first;			/* instruction */
	uint32_t	ninstrs;
	uint16_t	result;
	uint16_t	nregisters;
	uint8_t		kind;			/* GjKind of the value: GJ_FLOAT8, GJ_TEXT or an integer kind */
	uint8_t		can_fail;
	uint8_t		scale;			/* of a numeric, else 0 */
	uint8_t		unused;
} GjExpr;

typedef struct GjSource
{
	uint32_t	first_column;
	uint32_t	ncolumns;
	uint32_t	capacity;		/* rows of a chunk in the load ring */
	int32_t		filter;			/* expression, or -1 */
	uint64_t	nrows_hint;		/* estimate, 0 if there is none */
	uint32_t	stage;			/* 1 + the number among those of SUBMIT of the stage whose result
								 * the rows are: gpujoind has them; 0: they are loaded */
	uint32_t	unused;
} GjSource;

typedef struct GjStep
{
	uint8_t		join_type;		/* GjJoinType */
	uint8_t		algorithm;		/* GjAlgorithm */
	uint8_t		nkeys;			/* 0 .. GJ_MAX_KEYS */
	uint8_t		source;			/* the build side */
	int32_t		residual;		/* expression over all sources joined so far, or -1: what
								 * besides keys and range decides whether a pair matches */
	uint32_t	probe_keys;		/* expressions probe_keys .. +nkeys, on sources joined before */
	uint32_t	build_keys;		/* expressions build_keys .. +nkeys, on `source` alone */
	int32_t		filter;			/* expression, or -1: of what the step has made (unmatched
								 * tuples and rows too) this is kept */
	/* a range: range_low <(=) range_key <(=) range_high */
	int32_t		range_key;		/* expression on `source` alone, or -1: no range; with one, nkeys
								 * is at most GJ_MAX_RANGE_KEYS, and GJ_JOIN_HASH is refused */
	int32_t		range_low;		/* expressions on sources joined before, -1: no bound */
	int32_t		range_high;
	uint8_t		low_strict;		/* < instead of <= */
	uint8_t		high_strict;
	uint8_t		set;			/* GJ_JOIN_SET: its GjSetStep */
	uint8_t		unused[5];
} GjStep;

typedef enum GjAggOp
{
	GJ_AGG_COUNT_STAR,			/* no argument */
	GJ_AGG_COUNT,
	GJ_AGG_SUM_I,				/* 128 bits, and the count: sum and avg */
	GJ_AGG_SUM_F,
	GJ_AGG_MIN_I,
	GJ_AGG_MAX_I,
	GJ_AGG_MIN_F,
	GJ_AGG_MAX_F,
	/* of squares, which have no sign: their low and their high 64 bits; 128 bits, and the count */
	GJ_AGG_SUM_SQUARES_I,		/* all of it for integers up to 32 bits */
	GJ_AGG_SUM_SQUARES_HIGH_I,
	GJ_AGG_SPREAD_F,			/* sum, and sum of squared differences from the mean */
	/* the last two have no argument: it is the distinct key */
	GJ_AGG_COUNT_DISTINCT,
	GJ_AGG_SUM_DISTINCT_I
} GjAggOp;

typedef struct GjAggregate
{
	uint32_t	op;				/* GjAggOp */
	int32_t		arg;			/* expression over all sources, or -1 */
} GjAggregate;

/* The state of one aggregate, and what GJ_OUTPUT_AGGREGATES returns. */
typedef struct GjAggState
{
	int64_t		count;			/* values that were not NULL (rows for COUNT_STAR) */
	uint64_t	lo;				/* SUM_I: low and high half of a 128-bit integer; */
	int64_t		hi;				/* MIN_I, MAX_I: the value is in hi; SPREAD_F: bits of the sum */
	double		f;				/* SUM_F, MIN_F, MAX_F; SPREAD_F: of the squared differences */
} GjAggState;

/* When two values of a group key are equal; NULLs always are. */
typedef enum GjGroupHow
{
	GJ_GROUP_INTEGER,			/* an expression: the same 64 bits */
	GJ_GROUP_FLOAT,				/* an expression: -0 = 0, NaN = NaN */
	GJ_GROUP_FIXED,				/* a GJ_BYTES column of up to 8 bytes: the same bytes */
	GJ_GROUP_TEXT,				/* a GJ_REF column of varlenas: the same bytes behind the
								 * header; one that is compressed or not inline is a row error */
	GJ_GROUP_PADDED				/* the same, but for trailing blanks */
} GjGroupHow;

/*
 * What rows are grouped by.  A batch of GJ_OUTPUT_GROUPS has a column for each key (but a
 * distinct one), 8 bytes wide (a register's value, sign-extended bytes, or a reference), and then one of 32 bytes
 * for each aggregate (GjAggState).  See gj_group_output_type.  The last keys can be dependent: see
 * ndependent_keys.
 */
typedef struct GjGroupKey
{
	uint32_t	how;			/* GjGroupHow */
	uint32_t	index;			/* of the expression, or of the column */
} GjGroupKey;

/*
 * What a sort key orders by, or what it checks.  Its index is that of an expression, of a
 * group key or of an aggregate.  NULLs count as 0: a key before this one tells them apart.
 */
typedef enum GjSortOf
{
	GJ_SORT_EXPR,				/* rows: the value of an expression; never bytes */
	/* groups: a key by GJ_GROUP_INTEGER or _FLOAT */
	GJ_SORT_KEY,
	GJ_SORT_KEY_NULL,			/* 1 if it is NULL, else 0 */
	/* groups: an aggregate */
	GJ_SORT_COUNT,
	GJ_SORT_NONE,				/* 1 if it has seen no value, else 0 */
	GJ_SORT_SUM_HIGH,			/* the halves of a 128-bit sum are two keys */
	GJ_SORT_SUM_LOW,
	GJ_SORT_INTEGER,			/* minimum or maximum of integers */
	GJ_SORT_FLOAT,				/* sum, minimum or maximum of floats */
	GJ_SORT_FLOAT4,				/* the same, rounded to float4 */
	GJ_SORT_FLOAT_AVG,
	GJ_SORT_AVG,				/* average of integers, nearly: only the last key, and with ties, which
								 * are all that may be equal to the last one or come before it */
	/* no keys, and only with a limit: any group, also one that is not returned, with such a state is a row error */
	GJ_SORT_CHECK_INT8,			/* a sum beyond 64 bits */
	GJ_SORT_CHECK_FLOAT8,		/* a sum that is not finite */
	GJ_SORT_CHECK_FLOAT4,
	GJ_SORT_CHECK_AVG,			/* sum, minimum and maximum in a row: see gj_float_avg_fails */
	GJ_SORT_CHECK_SPREAD,		/* see gj_float_spread_fails */
	GJ_NSORTS
} GjSortOf;

typedef struct GjSortKey
{
	uint16_t	of;				/* GjSortOf */
	uint16_t	descending;
	uint32_t	index;
} GjSortKey;

/*
 * The result of a program can stay in gpujoind, for a source of a later one: then the program is a
 * stage.  How a column of that source is made of the result's.
 */
typedef enum GjStageValue
{
	GJ_STAGE_KEY,				/* of the group key `from`: an integer, a float or a reference */
	GJ_STAGE_COUNT,				/* of the aggregate `from`: its count */
	GJ_STAGE_SUM,				/* 128 bits as 64; a row error if they do not fit; NULL: no values */
	GJ_STAGE_SUM_OR_ZERO,		/* the same, 0 for no values: a count that is a sum */
	GJ_STAGE_EXTREME_I,			/* minimum or maximum of integers, NULL: no values */
	GJ_STAGE_EXTREME_F,			/* the same of floats */
	GJ_STAGE_SUM_F,				/* of floats; a row error if it is not finite; NULL: no values */
	GJ_STAGE_TRUE				/* that there is a row: NULL where an outer join has found none */
} GjStageValue;

typedef struct GjStageColumn
{
	GjColumnType type;			/* of the source's column; narrower than the value, perhaps */
	uint16_t	from;
	uint8_t		value;			/* GjStageValue */
	uint8_t		unused;
} GjStageColumn;

typedef struct GjProgram
{
	uint32_t	magic;
	uint32_t	nbytes;			/* of the whole program */
	uint8_t		kind;			/* GjProgramKind */
	uint8_t		output;			/* GjOutputKind */
	uint8_t		fail_point;		/* GjFailPoint */
	uint8_t		spill;			/* 1: something did not fit the device before */
	uint32_t	output_capacity;	/* rows of a batch */
	uint64_t	lease;			/* estimate of the device memory needed, bytes, */
	uint64_t	sort_space;		/* and of what rows to be sorted take beside it, at once or in parts */

	uint32_t	nsources;
	uint32_t	sources;		/* offset of GjSource[nsources] */
	uint32_t	ncolumns;
	uint32_t	columns;		/* GjColumnType[ncolumns] */
	uint32_t	nsteps;
	uint32_t	steps;			/* GjStep[nsteps] */
	uint32_t	nexprs;
	uint32_t	exprs;			/* GjExpr[nexprs] */
	uint32_t	ninstrs;
	uint32_t	instrs;			/* GjInstr[ninstrs] */
	uint32_t	nconstants;
	uint32_t	constants;		/* int64_t[nconstants] */
	uint32_t	noutputs;
	uint32_t	outputs;		/* uint32_t[noutputs]: column numbers */
	uint32_t	naggregates;
	uint32_t	aggregates;		/* GjAggregate[naggregates] */
	uint32_t	ngroup_keys;	/* GJ_OUTPUT_GROUPS: at least one */
	uint32_t	group_keys;		/* GjGroupKey[ngroup_keys] */
	uint16_t	ndistinct_keys;	/* so many of the last group keys, the value of distinct aggregates
								 * or its halves, are no outputs; groups that differ in
								 * them alone become one, and the aggregates take each value once */
	uint16_t	ndependent_keys;	/* so many of the last group keys are determined by those before them:
								 * a group has their values of any of its rows; 0 with a distinct key */
	uint32_t	limit;			/* 0: everything is returned, in the order of the sort keys if there
								 * are any; else this many rows or groups, the first
								 * ones in the order of the sort keys.  Each part of a run that
								 * returns rows by itself returns as many, in any order. */
	uint32_t	nsets;			/* 1 if kind is GJ_PROGRAM_INTERSECT or _SETS, else 0 */
	uint32_t	sets;			/* GjSetSpec[nsets] */
	uint32_t	nset_steps;
	uint32_t	set_steps;		/* GjSetStep[nset_steps] */
	uint32_t	nsort_keys;		/* keys first, at most GJ_MAX_KEYS, then checks */
	uint32_t	sort_keys;		/* GjSortKey[nsort_keys] */
	uint32_t	ties;			/* 1: what equals the last one in all keys is returned too */
	uint32_t	stage_capacity; /* a stage: rows of a chunk of the source that reads it; else 0 */
	uint32_t	nstage_columns;
	uint32_t	stage_columns;	/* GjStageColumn[nstage_columns], as the source has them */
} GjProgram;

/*
 * Bytes for chunks, row ids and pairs, for each step and the output: this part of the lease
 * can be less, where memory is short.
 */
#define GJ_STEP_SPACE		UINT64_C(64000000)
#define gj_program_working_space(program) \
	((program)->kind == GJ_PROGRAM_JOIN ? GJ_STEP_SPACE * ((program)->nsteps + 1) : 0)

/* True if the operator reads column `arg`. */
static inline bool
gj_op_loads(unsigned op)
{
	return op == GJ_OP_LOAD || op == GJ_OP_LOAD_IS_NULL || op == GJ_OP_LOAD_T ||
		op == GJ_OP_LOAD_D;
}

/* Pointer to one of the arrays. */
#define gj_program_array(program, type, field) \
	((const type *) ((const char *) (program) + (program)->field))

/* Keys among the sort keys. */
static inline uint32_t
gj_sort_nkeys(const GjProgram *program)
{
	const GjSortKey *keys = gj_program_array(program, GjSortKey, sort_keys);
	uint32_t	n = 0;

	while (n < program->nsort_keys && keys[n].of < GJ_SORT_CHECK_INT8)
		n++;
	return n;
}

/* True if all rows or groups are returned, in the order of the sort keys. */
#define gj_program_is_sorted(program) ((program)->nsort_keys > 0 && (program)->limit == 0)

/* True if values of a group key are references. */
#define gj_group_by_reference(how)	((how) == GJ_GROUP_TEXT || (how) == GJ_GROUP_PADDED)

/* Keys by which rows are told apart: the first ones. */
#define gj_group_ncompared(program)	((program)->ngroup_keys - (program)->ndependent_keys)

/* Keys that a group is returned with; there are none if only values are distinct. */
#define gj_group_nkeys(program)		((program)->ngroup_keys - (program)->ndistinct_keys)

/* Type of column i < gj_group_nkeys + naggregates of a batch of groups. */
static inline GjColumnType
gj_group_output_type(const GjProgram *program, uint32_t i)
{
	const GjGroupKey *keys = gj_program_array(program, GjGroupKey, group_keys);
	GjColumnType type = {GJ_BYTES, sizeof(GjAggState), 0, 0};

	if (i < gj_group_nkeys(program))
	{
		type.kind = gj_group_by_reference(keys[i].how) ? GJ_REF : GJ_INT8;
		type.width = 8;
		type.nullable = 1;
	}
	return type;
}

static_assert(sizeof(GjInstr) == 24, "GjInstr");
static_assert(sizeof(GjExpr) == 16, "GjExpr");
static_assert(sizeof(GjSource) == 32, "GjSource");
static_assert(sizeof(GjStageColumn) == 8, "GjStageColumn");
static_assert(sizeof(GjStep) == 40, "GjStep");
static_assert(sizeof(GjAggregate) == 8, "GjAggregate");
static_assert(sizeof(GjAggState) == 32, "GjAggState");
static_assert(sizeof(GjGroupKey) == 8, "GjGroupKey");
static_assert(sizeof(GjSetStep) == 32, "GjSetStep");
static_assert(sizeof(GjSortKey) == 8, "GjSortKey");
static_assert(sizeof(GjProgram) == 152, "GjProgram");
static_assert(sizeof(GjColumnType) == 4, "GjColumnType");

#endif							/* GJ_WIRE_PROGRAM_H */
