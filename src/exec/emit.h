/*
 * emit.h
 *	  Results of the device into tuple slots.
 */
#ifndef GJ_EMIT_H
#define GJ_EMIT_H

#include "executor/tuptable.h"

#include "exec/host_sort.h"
#include "exec/run.h"
#include "load/column_writer.h"
#include "plan/join_path.h"

/* How a value becomes a datum. */
typedef enum GjEmitHow
{
	GJ_EMIT_BYTE,
	GJ_EMIT_INT16,
	GJ_EMIT_INT32,
	GJ_EMIT_INT64,
	GJ_EMIT_DECIMAL,			/* an integer becomes a numeric */
	GJ_EMIT_STORED_DECIMAL,		/* one that the loader made of a numeric becomes it again */
	GJ_EMIT_CODE,				/* an integer stands for a value */
	GJ_EMIT_WORD,				/* the bytes of an integer become a text */
	GJ_EMIT_UUID,				/* two integers, of this and the next output, become a uuid */
	GJ_EMIT_TUPLE_ID,			/* an integer becomes a ctid (load/tuple_id.h) */
	GJ_EMIT_POINTER,			/* to the value in the batch */
	GJ_EMIT_REF
} GjEmitHow;

typedef struct GjEmitColumn
{
	const uint8 *data;
	const uint8 *second;		/* GJ_EMIT_UUID: data of the next output */
	const uint8 *nulls;			/* NULL: this batch has none in the column */
	GjEmitHow	how;
	uint8		width;
	uint8		scale;			/* GJ_EMIT_DECIMAL, GJ_EMIT_STORED_DECIMAL */
	char		stored[GJ_DECIMAL_BYTES];	/* what is written of the last row, see is_written */
	const List *codes;			/* GJ_EMIT_CODE: of Const */
	int			output;			/* number of the program's output column */
	int			attr;			/* of the slot, from 0 */
	int16		attlen;
	bool		numeric;
} GjEmitColumn;

/* Rows of one batch, one after the other. */
typedef struct GjEmitter
{
	uint32		ncolumns;
	GjEmitColumn *columns;		/* in the order of the slot's attributes */
	GjLayout	layout;
	GjColumnPlace *places;
	const GjColumnType *types;	/* groups: of all columns of a batch */
	int			first_final;	/* groups: the attribute of the first aggregate, from 0 */
	const uint8 *batch;
	const uint8 *heap;
	const GjHeldValues *held;
	uint32		nrows;
	uint32		next;
} GjEmitter;

/*
 * Prepares for batches of a program.  Attribute i+1 of slots with descriptor `desc` is
 * output column outputs[i], i < n.  If outputs is NULL, the attributes are what the list says
 * (GJ_ATTRIBUTE_PLAIN): computed and late ones are left out, all others are the output columns, in
 * order.
 */
extern void gj_emitter_init(GjEmitter *emitter, const GjProgram *program, TupleDesc desc,
							List *attributes,
							const int *outputs, int n);

/*
 * check_batch.c: Checks the counts of a batch, and that what its references refer to are values that
 * lie in it.  False with the reason.  Nothing else of a batch is followed.
 */
extern bool gj_emitter_check(const GjEmitter *emitter, const GjBatch *batch, const GjHeldValues *held,
							 GjFailure *failure);

/* Starts with a batch that was checked.  The slots' datums point into it. */
extern void gj_emitter_start(GjEmitter *emitter, const uint8 *batch, uint32 nrows,
							 const GjHeldValues *held);

/* Stores the next row in the first attributes of a virtual slot, which it returns. */
extern TupleTableSlot *gj_emit_row(GjEmitter *emitter, TupleTableSlot *slot);

/*
 * Stores the values of aggregates in the slot.  GJ_OK, or why PostgreSQL must compute
 * them itself (out of range, not finite).
 */
extern GjStatus gj_emit_aggregates(const GjAggState *states, List *finals, TupleTableSlot *slot);

/*
 * The same as gj_emitter_init for batches of groups: the first attributes are the keys, then come
 * the aggregates, and then the keys that are tuple ids.
 */
extern void gj_group_emitter_init(GjEmitter *emitter, const GjProgram *program, List *key_codes,
								  List *attributes, TupleDesc desc);

/*
 * Looks whether gj_emit_group will be able to make all values of a batch.  GJ_OK, or why
 * not.
 */
extern GjStatus gj_check_groups(const GjEmitter *emitter, const GjBatch *batch, List *finals);

/*
 * Stores the next group in the slot: keys, which point into the batch, and the values of
 * its aggregates, in the current memory context.
 */
extern GjStatus gj_emit_group(GjEmitter *emitter, List *finals, TupleTableSlot *slot);

/*
 * Stores the next n rows in a block.  They may be groups: of `finals`, else NIL.  Values point into
 * the batch, or are made in the current memory context.  Attributes that are computed are left as
 * they are.
 */
extern GjStatus gj_emit_block(GjEmitter *emitter, List *finals, TupleDesc desc, uint32 n,
							  const GjRowBlock *block);

#endif							/* GJ_EMIT_H */
