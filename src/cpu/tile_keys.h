/*
 * tile_keys.h
 *	  Keys of a tile of rows, computed by the thread that asks (select.c): for who shares
 *	  rows out among threads itself.
 */
#ifndef GJ_CPU_TILE_KEYS_H
#define GJ_CPU_TILE_KEYS_H

#include "device/device.h"
#include "pool.h"

/*
 * The keys, expressions first_expr, first_expr + 1, ..., of all rows of a view of at most
 * GJ_TILE_ROWS rows.  keys->nkeys says how many.  Returns an error that a row met, any one: its
 * key is unspecified then, the others are right.
 */
extern GjStatus gj_cpu_tile_keys(const GjCode *code, const GjView *view, uint32_t first_expr,
								 const GjTile *tile, const GjKeys *keys);

#endif							/* GJ_CPU_TILE_KEYS_H */
