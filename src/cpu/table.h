/*
 * table.h
 *	  The look-up in a hash table, for all probes of the cpu device.
 */
#ifndef GJ_CPU_TABLE_H
#define GJ_CPU_TABLE_H

#include "cpu_device.h"

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
			 gj_keys_equal(nkeys, value, row, table->key_value, table->key_row[slot->start])))
			return slot;
		if (++at == table->nslots)
			at = 0;
	}
}

#endif							/* GJ_CPU_TABLE_H */
