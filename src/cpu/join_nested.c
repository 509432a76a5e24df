/*
 * join_nested.c
 *	  The nested loop: every tuple against every row of a build side, a tile at a time.
 *
 * An item of work is one tile.  Row after row is compared with all tuples of the tile, and
 * one bit a pair tells the result.  Then pairs are written from the bits of as many tiles as
 * there is room for.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"

#define GJ_TILE_WORDS		(GJ_NESTED_TILE / 64)
#define GJ_TILES_PER_THREAD	32	/* of a call: less than 5 ms for most conditions */

typedef struct GjNestedWork
{
	GjQueue    *queue;
	const GjNested *nested;
	GjTiling	tiling;
	uint64_t	first_tile;
	uint64_t   *bits;			/* GJ_TILE_WORDS of each tile: tiling.tuples of each row */
	uint64_t   *pairs;			/* of each tile; then where they start */
} GjNestedWork;

/* A tile's part of tuples and rows. */
typedef struct GjTilePlace
{
	uint32_t	tuple;
	uint32_t	ntuples;
	uint32_t	row;
	uint32_t	nrows;
} GjTilePlace;

static GjTilePlace
place_of(const GjNestedWork *w, uint32_t item)
{
	uint64_t	t = w->first_tile + item;
	GjTilePlace place;

	place.tuple = (uint32_t) (t / w->tiling.across) * w->tiling.tuples;
	place.row = (uint32_t) (t % w->tiling.across) * w->tiling.rows;
	place.ntuples = w->nested->view->nrows - place.tuple;
	if (place.ntuples > w->tiling.tuples)
		place.ntuples = w->tiling.tuples;
	place.nrows = w->nested->nrows - place.row;
	if (place.nrows > w->tiling.rows)
		place.nrows = w->tiling.rows;
	return place;
}

static uint32_t
row_id(const GjNested *nested, uint32_t row)
{
	return nested->rows ? nested->rows[row] : row;
}

#define GJ_COMPARE(op) \
	for (uint32_t i = 0; i < n; i++) \
		match[i] &= probe_side[i] op build_side; \
	break

/* match[i] = 0 where the term is not true. */
static void
apply_term(const GjTerm *term, uint32_t tuple, uint32_t n, uint32_t row, uint8_t *match)
{
	const int64_t *probe_side = term->probe_side + tuple;
	int64_t		build_side = term->build_side[row];

	switch (term->op)
	{
		case GJ_TERM_EQ:
			GJ_COMPARE(==);
		case GJ_TERM_NE:
			GJ_COMPARE(!=);
		case GJ_TERM_LT:
			GJ_COMPARE(<);
		case GJ_TERM_LE:
			GJ_COMPARE(<=);
		case GJ_TERM_GT:
			GJ_COMPARE(>);
		default:
			GJ_COMPARE(>=);
	}
}

/* No tuple of a tile can get a match that it needs.  Other threads may find some meanwhile. */
static bool
all_done(const GjNested *nested, const GjTilePlace *place)
{
	for (uint32_t t = place->tuple; t < place->tuple + place->ntuples; t++)
		if (!(nested->nterms > 0 && nested->probe_null[t]) &&
			!__atomic_load_n(&nested->tuple_done[t], __ATOMIC_RELAXED))
			return false;
	return true;
}

/* match[i] = 1 for the tuples of a tile that match a row. */
static void
match_row(const GjNestedWork *w, const GjTilePlace *place, uint32_t row, const GjTile *tile,
		  uint8_t *match, uint32_t *status)
{
	const GjNested *nested = w->nested;
	uint32_t	n = place->ntuples;

	if (nested->nterms > 0)
	{
		for (uint32_t i = 0; i < n; i++)
			match[i] = !nested->probe_null[place->tuple + i];
		for (uint32_t t = 0; t < nested->nterms; t++)
			apply_term(&nested->terms[t], place->tuple, n, row, match);
	}
	else if (nested->condition >= 0)
	{
		const GjCode *code = &w->queue->code;
		size_t		result = (size_t) code->exprs[nested->condition].result * tile->stride;
		uint32_t	id = row_id(nested, row);
		GjView		view = *nested->view;

		view.rowid[nested->build_source] = &id;
		view.same = (uint16_t) (1u << nested->build_source);
		gj_eval(code, (uint32_t) nested->condition, &view, place->tuple, n, tile, status);
		for (uint32_t i = 0; i < n; i++)
			match[i] = !tile->null[result + i] && tile->value[result + i] != 0;
	}
	else
		memset(match, 1, n);
}

/*
 * Writes 0s and 1s as bits, 64 a word.  Returns how many are 1.  A product has the lowest bits of
 * eight bytes in its highest byte.
 */
static uint32_t
pack_bits(const uint8_t *match, uint32_t nwords, uint64_t *bits)
{
	uint32_t	count = 0;

	for (uint32_t w = 0; w < nwords; w++)
	{
		bits[w] = 0;
		for (uint32_t i = 0; i < 8; i++)
		{
			uint64_t	eight;

			memcpy(&eight, match + w * 64 + i * 8, 8);
			bits[w] |= (eight * UINT64_C(0x0102040810204080) >> 56) << i * 8;
		}
		count += (uint32_t) __builtin_popcountll(bits[w]);
	}
	return count;
}

/* Sets the flags of the tuples of a tile whose bits are set. */
static void
flag_tuples(const GjNested *nested, const GjTilePlace *place, const uint64_t *matched)
{
	for (uint32_t i = 0; i < place->ntuples; i++)
		if (matched[i / 64] >> i % 64 & 1)
			__atomic_store_n(&nested->tuple_matched[place->tuple + i], 1, __ATOMIC_RELAXED);
}

static void
match_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjNestedWork *w = arg;
	const GjNested *nested = w->nested;
	GjTilePlace place = place_of(w, item);
	uint32_t	nwords = w->tiling.tuples / 64;
	uint64_t   *bits = w->bits + (size_t) item * GJ_TILE_WORDS;
	uint8_t		match[GJ_NESTED_TUPLES] = {0};
	uint64_t	matched[GJ_NESTED_TUPLES / 64] = {0};
	uint64_t	count = 0;
	uint32_t	status = GJ_OK;

	memset(bits, 0, GJ_TILE_WORDS * sizeof(uint64_t));
	w->pairs[item] = 0;
	if (nested->tuple_done && all_done(nested, &place))
		return;
	for (uint32_t r = 0; r < place.nrows; r++, bits += nwords)
	{
		uint32_t	row = place.row + r;
		uint32_t	n;

		if (nested->nterms > 0 && nested->build_null[row])
			continue;
		match_row(w, &place, row, tile, match, &status);
		n = pack_bits(match, nwords, bits);
		if (n == 0)
			continue;
		count += n;
		for (uint32_t i = 0; i < nwords; i++)
			matched[i] |= bits[i];
		if (nested->row_matched)
			__atomic_store_n(&nested->row_matched[row_id(nested, row)], 1, __ATOMIC_RELAXED);
	}
	if (nested->tuple_matched)
		flag_tuples(nested, &place, matched);
	w->pairs[item] = count;
	gj_note_row_error(w->queue, status);
}

static void
write_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjNestedWork *w = arg;
	const GjNested *nested = w->nested;
	GjTilePlace place = place_of(w, item);
	const uint64_t *bits = w->bits + (size_t) item * GJ_TILE_WORDS;
	uint64_t	at = w->pairs[item];

	for (uint32_t r = 0; r < place.nrows; r++)
	{
		uint32_t	id = row_id(nested, place.row + r);

		for (uint32_t i = 0; i < w->tiling.tuples; i += 64)
			for (uint64_t word = *bits++; word != 0; word &= word - 1)
			{
				uint32_t	tuple = place.tuple + i + (uint32_t) __builtin_ctzll(word);

				if (nested->tuple)
					nested->tuple[at] = tuple;
				for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
					if (nested->out[s])
						nested->out[s][at] = s == nested->build_source ? id :
							gj_view_row(nested->view, s, tuple);
				at++;
			}
	}
}

/* Turns the numbers of pairs into starts; returns how many tiles fit. */
static uint32_t
place_pairs(GjNestedWork *w, uint32_t ntiles, uint64_t *npairs)
{
	uint32_t	i;

	*npairs = 0;
	for (i = 0; i < ntiles; i++)
	{
		uint64_t	n = w->pairs[i];

		if (w->nested->write && *npairs + n > w->nested->capacity)
			break;
		w->pairs[i] = *npairs;
		*npairs += n;
	}
	return i;
}

GjStatus
gj_cpu_nested_loop(GjQueue *queue, const GjNested *nested, uint64_t first_tile, uint32_t ntiles,
				   uint32_t *ndone, uint64_t *npairs)
{
	GjNestedWork w = {queue, nested, gj_nested_tiling(nested->view->nrows, nested->nrows), first_tile};
	uint32_t	most = GJ_TILES_PER_THREAD * queue->device->info.nprocessors;
	GjPool	   *pool = queue->device->pool;

	if (ntiles > most)
		ntiles = most;
	if (ntiles > w.tiling.ntiles - first_tile)
		ntiles = (uint32_t) (w.tiling.ntiles - first_tile);
	w.bits = malloc((size_t) ntiles * GJ_TILE_WORDS * sizeof(uint64_t));
	w.pairs = malloc(ntiles * sizeof(uint64_t));
	if (!w.bits || !w.pairs)
	{
		free(w.bits);
		free(w.pairs);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	gj_pool_run(pool, ntiles, match_item, &w, &queue->tile, NULL, NULL);
	*ndone = place_pairs(&w, ntiles, npairs);
	if (nested->write && *npairs > 0)
		gj_pool_run(pool, *ndone, write_item, &w, &queue->tile, NULL, NULL);
	free(w.bits);
	free(w.pairs);
	return gj_take_row_error(queue);
}
