/*
 * table.h
 *	  The look-up in a hash table, for all probes of the cpu device.
 */
#ifndef GJ_CPU_TABLE_H
#define GJ_CPU_TABLE_H

#include "cpu_device.h"

static inline bool
gj_cpu_same_keys(int64_t *const *a, uint32_t row_a, int64_t *const *b, uint32_t row_b,
				 uint32_t nkeys)
{
	for (uint32_t k = 0; k < nkeys; k++)
		if (a[k][row_a] != b[k][row_b])
			return false;
	return true;
}

/* The slot of keys value[k][row], none of which is NULL, from slot `at` on, or NULL. */
static inline const GjHashSlot *
gj_cpu_find_slot(const GjTableRef *table, int64_t *const *value, uint32_t nkeys, uint32_t row,
				 uint64_t hash, uint64_t at)
{
	uint64_t	key = nkeys == 1 ? (uint64_t) value[0][row] : hash;

	for (;;)
	{
		const GjHashSlot *slot = &table->slots[at];

		if (slot->count == 0)
			return NULL;
		if (slot->key == key &&
			(nkeys == 1 ||
			 gj_cpu_same_keys(value, row, table->key_value, table->key_row[slot->start], nkeys)))
			return slot;
		if (++at == table->nslots)
			at = 0;
	}
}

#endif							/* GJ_CPU_TABLE_H */
