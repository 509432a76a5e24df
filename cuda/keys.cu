/*
 * keys.cu
 *	  Normalised join keys of tuples, and values in their order.
 *
 * Keys are mostly plain columns: then one kernel reads them straight into the key
 * arrays.  Other expressions go through a tile, one after the other.
 */
#include "rows/sorted.h"
#include "tile.cuh"

/* One key that is a plain column. */
typedef struct KeyColumn
{
	uint32_t column;
	uint8_t source;
	bool is_float;
} KeyColumn;

typedef struct KeyColumns
{
	KeyColumn key[GJ_MAX_KEYS];
} KeyColumns;

/* What the keys are made of: expressions, or columns as -1 - column. */
typedef struct Operands
{
	int32_t operand[GJ_MAX_KEYS];
	bool ordered; /* gj_ordered_bits of them, not gj_key_bits */
} Operands;

/* Stores key k of key row i, and whether any key of the row is NULL. */
static __device__ __forceinline__ void
store_key(const GjKeys &keys, uint32_t k, uint32_t i, int64_t value, uint8_t null, bool is_float,
		  bool ordered)
{
	keys.value[k][i] = null      ? 0
					   : ordered ? gj_ordered_bits(value, is_float)
								 : gj_key_bits(value, is_float);
	/* only this thread has row i, so it sees what it wrote for the keys before */
	if (k == 0)
		keys.null[i] = null;
	else if (null)
		keys.null[i] = 1;
}

static __global__ void
__launch_bounds__(GJ_THREADS) keys_load(const __grid_constant__ GjView view, uint32_t first,
										uint32_t n, const __grid_constant__ KeyColumns columns,
										bool ordered, const __grid_constant__ GjKeys keys)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i >= n)
		return;
	for (uint32_t k = 0; k < keys.nkeys; k++)
	{
		const GjColumn *column = &view.columns[columns.key[k].column];
		const uint32_t row = gj_view_row(&view, columns.key[k].source, first + i);
		const uint8_t null = gj_row_is_null(column, row);

		store_key(keys, k, first + i, row == GJ_NO_ROW ? 0 : gj_column_value(column, row), null,
				  columns.key[k].is_float, ordered);
	}
}

/* One tile a block. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	keys_eval(GjCode code, const __grid_constant__ GjView view, uint32_t first, uint32_t n,
			  const __grid_constant__ Operands operands, uint32_t nregisters, uint32_t rows,
			  const __grid_constant__ GjKeys keys, GjResults *results)
{
	extern __shared__ int64_t memory[];
	const GjTile tile = gj_tile_at(memory, nregisters, rows);
	const uint32_t done = blockIdx.x * rows;
	const uint32_t base = first + done;
	const uint32_t m = min(rows, n - done);
	uint32_t status = GJ_OK;

	for (uint32_t k = 0; k < keys.nkeys; k++)
	{
		const int32_t e = operands.operand[k];
		uint32_t result = 0;
		uint32_t kind;

		if (e < 0)
		{
			kind = code.columns[-1 - e].kind;
			gj_eval_load(&view, code.columns[-1 - e].source, &view.columns[-1 - e], base, m,
						 tile.value, tile.null);
		}
		else
		{
			kind = code.exprs[e].kind;
			result = code.exprs[e].result * rows;
			gj_eval(&code, (uint32_t) e, &view, base, m, &tile, &status);
		}
		GJ_TILE_FOR(i, m)
		{
			store_key(keys, k, base + i, tile.value[result + i], tile.null[result + i],
					  kind == GJ_FLOAT8 || kind == GJ_FLOAT4, operands.ordered);
		}
	}
	gj_note_error(results, status);
}

/* True if all keys are plain columns, which it then describes. */
static bool
keys_are_columns(const GjQueue *queue, const Operands &operands, uint32_t nkeys,
				 KeyColumns *columns)
{
	const GjInstr *instrs = gj_program_array(queue->program, GjInstr, instrs);
	const GjColumnType *types = gj_program_array(queue->program, GjColumnType, columns);

	for (uint32_t k = 0; k < nkeys; k++)
	{
		const int32_t e = operands.operand[k];
		uint32_t column = (uint32_t) (-1 - e);

		if (e >= 0)
		{
			const GjExpr *expr = gj_queue_expr(queue, (uint32_t) e);
			const GjInstr *instr = &instrs[expr->first];

			if (expr->ninstrs != 1 || instr->op != GJ_OP_LOAD)
				return false;
			column = instr->arg;
		}
		columns->key[k].column = column;
		columns->key[k].source = types[column].source;
		columns->key[k].is_float =
			types[column].kind == GJ_FLOAT8 || types[column].kind == GJ_FLOAT4;
	}
	return true;
}

static GjStatus
compute_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
			 const Operands &operands, const GjKeys *keys)
{
	KeyColumns columns = {};
	uint32_t nregisters = 1;
	uint32_t rows;

	if (n == 0)
		return GJ_OK;
	if (keys_are_columns(queue, operands, keys->nkeys, &columns))
	{
		keys_load<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			*view, first, n, columns, operands.ordered, *keys);
		GJ_LAUNCHED(queue, "keys_load");
		return GJ_OK;
	}
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		if (operands.operand[k] >= 0)
			nregisters =
				max(nregisters,
					(uint32_t) gj_queue_expr(queue, (uint32_t) operands.operand[k])->nregisters);
	}
	rows = gj_tile_rows(nregisters);
	keys_eval<<<gj_blocks(n, rows), GJ_THREADS, gj_tile_bytes(nregisters), queue->stream>>>(
		queue->code, *view, first, n, operands, nregisters, rows, *keys, queue->results);
	GJ_LAUNCHED(queue, "keys_eval");
	return GJ_OK;
}

GjStatus
gj_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n, uint32_t first_expr,
		const GjKeys *keys)
{
	Operands operands = {};

	GJ_TRY(gj_enter(queue));
	for (uint32_t k = 0; k < keys->nkeys; k++)
		operands.operand[k] = (int32_t) (first_expr + k);
	return compute_keys(queue, view, first, n, operands, keys);
}

GjStatus
gj_ordered_keys(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
				const int32_t *operand, const GjKeys *keys)
{
	Operands operands = {};

	GJ_TRY(gj_enter(queue));
	operands.ordered = true;
	for (uint32_t k = 0; k < keys->nkeys; k++)
		operands.operand[k] = operand[k];
	return compute_keys(queue, view, first, n, operands, keys);
}
