/*
 * rows.c
 *	  Chunks: rows that a program could get, with keys that meet, and some that it never should.
 */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the bytes are that a column of references leads to. */
typedef enum Content
{
	TEXTS,
	NUMERICS,
	ARRAYS,
	NOISE
} Content;

#define MAX_BLOBS	12

typedef struct Column
{
	const GjColumnType *type;
	const GjColumnPlace *place;
	Content		content;
	int			scale;			/* of numerics */
	uint32_t	width;			/* of the elements of arrays */
	uint64_t	range;			/* of values */
} Column;

/* A slot that is being filled. */
typedef struct Fill
{
	FuzzRandom *r;
	const GjProgram *program;
	uint32_t	source;
	uint8_t    *slot;
	GjLayout	layout;
	uint32_t	nrows;
	uint32_t	heap_used;
} Fill;

/* ---- bytes */

/* Puts nbytes into the heap, and returns the reference. */
static uint64_t
add_to_heap(Fill *f, const uint8_t *bytes, uint32_t nbytes)
{
	uint64_t	ref = gj_ref_make(f->heap_used, nbytes);

	if (f->heap_used + gj_ref_space(ref) > f->layout.heap_size)
		return gj_ref_make(0, GJ_REF_HELD);
	memset(f->slot + f->layout.heap + f->heap_used, 0, gj_ref_space(ref));
	memcpy(f->slot + f->layout.heap + f->heap_used, bytes, nbytes);
	f->heap_used += gj_ref_space(ref);
	return ref;
}

/* A varlena of n bytes, with the short header where it fits. */
static uint64_t
add_varlena(Fill *f, const uint8_t *bytes, uint32_t n)
{
	uint8_t		value[256];
	uint32_t	header = n + 1 <= 127 && fuzz_percent(f->r, 80) ? 1 : 4;
	uint32_t	word = header == 1 ? (n + 1) << 1 | 1 : (n + 4) << 2;

	memcpy(value, &word, header);
	memcpy(value + header, bytes, n);
	return add_to_heap(f, value, header + n);
}

static uint64_t
add_text(Fill *f)
{
	static const char letters[] = "aab%_ \\z9\xc3\xa4\xe2";
	uint8_t		text[200];
	uint32_t	n = (uint32_t) fuzz_below(f->r, fuzz_percent(f->r, 10) ? sizeof(text) : 6);

	for (uint32_t i = 0; i < n; i++)
		text[i] = (uint8_t) letters[fuzz_below(f->r, sizeof(letters) - 1)];
	return add_varlena(f, text, n);
}

static uint64_t
add_numeric(Fill *f, int scale)
{
	uint16_t	parts[8];
	uint32_t	n = (uint32_t) fuzz_below(f->r, 4);
	int			weight = (int) fuzz_below(f->r, 4) - 1;

	parts[0] = (uint16_t) (0x8000 | fuzz_below(f->r, 2) << 13 | (uint32_t) scale << 7 | (weight & 0x7F));
	for (uint32_t i = 1; i <= n; i++)
		parts[i] = (uint16_t) (fuzz_below(f->r, 100) * 100);
	return add_varlena(f, (const uint8_t *) parts, 2 + 2 * n);
}

/* An array of few elements, ascending, as PostgreSQL stores it. */
static uint64_t
add_array(Fill *f, uint32_t width)
{
	uint8_t		bytes[160] = {0};
	uint32_t	n = (uint32_t) fuzz_below(f->r, 9);
	uint32_t	nulls = fuzz_percent(f->r, 10) ? 12 + 8 + 4 : 0;
	uint32_t	head[5] = {n > 0, nulls ? nulls + 8 : 0, width == 2 ? 21 : width == 4 ? 23 : 20, n, 1};
	/* elements start at a multiple of 8 behind a header of four bytes */
	uint32_t	at = nulls ? nulls + 4 : 20;
	int64_t		element = (int64_t) fuzz_below(f->r, 4) - 1;

	/* a step that is not used may say anything */
	if (width != 2 && width != 4)
		width = 8;
	memcpy(bytes, head, n > 0 ? 20 : 12);
	if (nulls)
		bytes[20] = (uint8_t) fuzz_next(f->r);
	for (uint32_t i = 0; i < n; i++, at += width)
	{
		memcpy(bytes + at, &element, width);
		element += 1 + (int64_t) fuzz_below(f->r, 3);
	}
	return add_varlena(f, bytes, n > 0 ? at : 12);
}

static uint64_t
add_noise(Fill *f)
{
	uint8_t		bytes[64];
	uint32_t	n = (uint32_t) fuzz_below(f->r, sizeof(bytes));

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t) fuzz_next(f->r);
	return add_to_heap(f, bytes, n);
}

/* What the program takes the column's bytes for. */
static void
choose_content(Fill *f, uint32_t number, Column *column)
{
	const GjInstr *instrs = gj_program_array(f->program, GjInstr, instrs);
	const GjSetStep *sets = gj_program_array(f->program, GjSetStep, set_steps);

	column->content = TEXTS;
	column->width = 1u << (1 + fuzz_below(f->r, 3));
	for (uint32_t i = 0; i < f->program->ninstrs; i++)
	{
		if (!gj_op_loads(instrs[i].op) || instrs[i].arg != number)
			continue;
		if (instrs[i].op == GJ_OP_LOAD_D)
		{
			column->content = NUMERICS;
			column->scale = (int) instrs[i].n;
		}
		else if (instrs[i].op == GJ_OP_LOAD_T && instrs[i].n == GJ_BYTES_ARRAY)
			column->content = ARRAYS;
	}
	for (uint32_t i = 0; i < f->program->nset_steps; i++)
		if (sets[i].probe_column == number || sets[i].build_column == number)
		{
			column->content = ARRAYS;
			if (fuzz_percent(f->r, 95))
				column->width = sets[i].width;
		}
	if (fuzz_percent(f->r, 3))
		column->content = NOISE;
}

static uint64_t
add_bytes(Fill *f, const Column *column)
{
	switch (column->content)
	{
		case TEXTS:
			return add_text(f);
		case NUMERICS:
			return add_numeric(f, column->scale);
		case ARRAYS:
			return add_array(f, column->width);
		default:
			return add_noise(f);
	}
}

static void
fill_references(Fill *f, const Column *column)
{
	uint64_t   *refs = (uint64_t *) (f->slot + column->place->data);
	uint64_t	blobs[MAX_BLOBS];
	uint32_t	n = 1 + (uint32_t) fuzz_below(f->r, MAX_BLOBS);

	for (uint32_t i = 0; i < n; i++)
		blobs[i] = fuzz_percent(f->r, 1) ? gj_ref_make(i, GJ_REF_HELD) : add_bytes(f, column);
	for (uint32_t i = 0; i < f->nrows; i++)
		refs[i] = blobs[fuzz_below(f->r, n)];
}

/* ---- numbers */

static double
any_float(Fill *f, const Column *column)
{
	static const double odd[] = {-0.0, 1e308, -1e308, 1e-310, 0.5, 9.3e18};
	uint64_t	which = fuzz_below(f->r, 100);

	if (which < 6)
		return odd[which];
	if (which < 8)
		return which == 6 ? (double) NAN : -(double) INFINITY;
	return (double) fuzz_below(f->r, column->range) - 2;
}

static void
fill_numbers(Fill *f, const Column *column)
{
	uint8_t    *data = f->slot + column->place->data;
	const uint32_t width = column->type->width;
	/* elements of sets ascend */
	bool		ascends = f->program->nsets > 0 && fuzz_percent(f->r, 95);
	int64_t		value = -2;

	for (uint32_t i = 0; i < f->nrows; i++, data += width)
	{
		double		d;
		float		single;

		if (f->program->kind == GJ_PROGRAM_SETS && f->source == 0)
			value = (int64_t) fuzz_below(f->r, 5);
		else if (ascends)
			value += 1 + (int64_t) fuzz_below(f->r, 2);
		else if (column->type->kind != GJ_BYTES && fuzz_percent(f->r, 1))
			value = (int64_t) fuzz_value(f->r, 8, (uint64_t) value);
		else
			value = (int64_t) fuzz_below(f->r, column->range) - (column->range > 8);
		switch (column->type->kind)
		{
			case GJ_BOOL:
				*data = value & 1;
				break;
			case GJ_FLOAT4:
				single = (float) any_float(f, column);
				memcpy(data, &single, width);
				break;
			case GJ_FLOAT8:
				d = any_float(f, column);
				memcpy(data, &d, width);
				break;
			default:
				memset(data, 0, width);
				memcpy(data, &value, width < 8 ? width : 8);
		}
	}
}

/* ---- a chunk */

static void
fill_column(Fill *f, uint32_t c, const GjColumnType *type, const GjColumnPlace *place)
{
	const GjSource *source = gj_program_array(f->program, GjSource, sources) + f->source;
	Column		column = {.type = type,.place = place,.range = 1u << fuzz_below(f->r, 9)};
	unsigned	nulls = type->nullable && fuzz_percent(f->r, 60) ? 1 + (unsigned) fuzz_below(f->r, 60) : 0;

	choose_content(f, source->first_column + c, &column);
	if (type->kind == GJ_REF)
		fill_references(f, &column);
	else
		fill_numbers(f, &column);
	gj_slot_has_nulls(f->slot)[c] = nulls > 0;
	for (uint32_t i = 0; i < f->nrows && nulls > 0; i++)
		f->slot[place->nulls + i] = fuzz_percent(f->r, nulls);
}

static uint32_t
choose_rows(FuzzRandom *r, const GjProgram *p, uint32_t s)
{
	const GjSource *source = gj_program_array(p, GjSource, sources) + s;
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);
	uint64_t	n = fuzz_below(r, 9);

	if (fuzz_percent(r, 30))
		n = fuzz_below(r, 150);
	if (fuzz_percent(r, 1))
		n = fuzz_below(r, 3000);
	if (p->kind == GJ_PROGRAM_SETS && fuzz_percent(r, 90))
		n = s > 0 ? n : ((uint64_t) sets->nleft + sets->nright) * (sets->behind ? 2 : 1);
	return n < source->capacity ? (uint32_t) n : source->capacity;
}

/* One thing that no backend does. */
static uint32_t
spoil(Fill *f, const GjColumnPlace *places, const GjColumnType *types)
{
	GjSlotHeader *header = (GjSlotHeader *) f->slot;
	const uint32_t c = (uint32_t) fuzz_below(f->r, f->layout.ncolumns);
	const uint32_t row = (uint32_t) fuzz_below(f->r, f->nrows);
	uint64_t   *ref = (uint64_t *) (f->slot + places[c].data) + row;

	switch (fuzz_below(f->r, 8))
	{
		case 0:
			header->nrows = (uint32_t) fuzz_value(f->r, 4, header->nrows);
			break;
		case 1:
			header->heap_used = (uint32_t) fuzz_value(f->r, 4, header->heap_used);
			break;
		case 2:
			return header->nrows = (uint32_t) fuzz_value(f->r, 4, f->nrows);
		case 3:
			if (f->layout.ncolumns > 0)
				gj_slot_has_nulls(f->slot)[c] = (uint8_t) fuzz_next(f->r);
			break;
		case 4:
			if (f->nrows > 0 && f->layout.ncolumns > 0)
				f->slot[places[c].nulls + row] = (uint8_t) fuzz_next(f->r);
			break;
		case 5:
			fuzz_scribble(f->r, f->slot, GJ_LOAD_SLOT_SIZE);
			break;
		default:
			if (f->nrows > 0 && f->layout.ncolumns > 0 && types[c].kind == GJ_REF)
				*ref = fuzz_percent(f->r, 50) ? fuzz_value(f->r, 8, *ref) :
					gj_ref_make(fuzz_below(f->r, f->heap_used + 16), fuzz_below(f->r, f->heap_used + 16));
	}
	return f->nrows;
}

uint32_t
fuzz_chunk(FuzzRandom *r, const GjProgram *program, uint32_t s, uint8_t *slot)
{
	const GjSource *source = gj_program_array(program, GjSource, sources) + s;
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns) + source->first_column;
	GjColumnPlace *places = calloc(source->ncolumns + 1, sizeof(GjColumnPlace));
	Fill		f = {.r = r,.program = program,.source = s,.slot = slot};
	uint32_t	nrows;

	if (!places || !gj_layout(types, source->ncolumns, source->capacity, GJ_LOAD_CHUNK_SIZE, &f.layout, places))
		fuzz_fail("a checked program has a chunk that does not fit");
	nrows = f.nrows = choose_rows(r, program, s);
	for (uint32_t c = 0; c < source->ncolumns; c++)
		fill_column(&f, c, &types[c], &places[c]);
	*(GjSlotHeader *) slot = (GjSlotHeader) {f.nrows, f.heap_used};
	gj_chunk_pages(slot)->n = 0;
	if (fuzz_percent(r, 8))
		nrows = spoil(&f, places, types);
	free(places);
	return nrows;
}
