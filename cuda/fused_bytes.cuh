/*
 * fused_bytes.cuh
 *	  Values that the fused operator computes of bytes: hashes and comparisons of texts and uuids,
 *	  and the halves of their keys, several at a time.
 */
#ifndef GJ_CUDA_FUSED_BYTES_CUH
#define GJ_CUDA_FUSED_BYTES_CUH

#include "device/fused_rows.h"
#include "internal.cuh"
#include "load.cuh"

/* Values of R tuples of a thread; one is NULL, or was not wanted, where its bit of `known` is 0. */
template <uint32_t R>
struct Values
{
	int64_t value[R];
	uint32_t known;
	uint32_t status; /* an error, or GJ_OK */
};

static __device__ __noinline__ int64_t
without_blanks(int64_t text)
{
	return gj_trim(text, GJ_TRIM_RIGHT);
}

/*
 * Texts of a column for the wanted tuples, whose loads are under way together; returns those that
 * are not NULL.
 */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
load_texts(const GjColumn &column, uint32_t trimmed_form, uint32_t slot, const uint32_t *rowid,
		   uint32_t wanted, int64_t (&text)[R], uint32_t *status)
{
	const uint32_t form = trimmed_form & ~GJ_BYTES_TRIMMED;
	uint32_t row[R];
	int64_t ref[R] = {};
	const uint8_t *bytes[R];
	uint8_t first[R];

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		row[i] = rowid[(slot * R + i) * GJ_THREADS];
		if ((wanted >> i & 1) && gj_row_is_null(&column, row[i]))
			wanted &= ~(1u << i);
	}
	if (column.kind == GJ_REF)
		wanted = load_column<R>(column, row, wanted, ref);
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		bytes[i] = column.kind == GJ_REF
					   ? column.heap + gj_ref_offset((uint64_t) ref[i])
					   : (const uint8_t *) column.data + (size_t) row[i] * column.width;
		first[i] = form == GJ_BYTES_VARLENA && (wanted >> i & 1) &&
						   (column.kind != GJ_REF || gj_ref_length((uint64_t) ref[i]) > 0)
					   ? bytes[i][0]
					   : 0;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t n = column.kind == GJ_REF ? gj_ref_length((uint64_t) ref[i]) : column.width;
		uint32_t s = GJ_UNKNOWN_VALUE;

		text[i] = 0;
		if (!(wanted >> i & 1))
			continue;
		/* a short header says the length */
		if ((first[i] & 1) && first[i] != 1 && n != GJ_REF_HELD && first[i] >> 1 <= n)
			s = gj_text_checked(bytes[i] + 1, (first[i] >> 1) - 1, &text[i]);
		else if (column.kind != GJ_REF || n != GJ_REF_HELD)
			s = gj_text_of(bytes[i], n, form, &text[i]);
		if (s != GJ_OK)
			*status = s;
		else if (trimmed_form != form)
			text[i] = without_blanks(text[i]);
	}
	return wanted;
}

/* Word w of a text, with zeros behind its end. */
static __device__ __forceinline__ uint64_t
text_word(int64_t text, uint32_t w)
{
	const uint32_t n = gj_text_length(text);

	return 8 * w < n ? gj_padded_word(gj_text_bytes(text), n, w) : 0;
}

/* gj_fused_matches of a LIKE. */
static __device__ __noinline__ bool
is_like(int64_t text, int64_t pattern, bool utf8)
{
	return gj_like_match(gj_text_bytes(text), gj_text_length(text), gj_text_bytes(pattern),
						 gj_text_length(pattern), utf8);
}

/* gj_key_t, of keys that are not taken two by two. */
static __device__ __noinline__ int64_t
half_of(int64_t text, uint32_t how)
{
	return gj_key_t(text, how);
}

/* Values of a GJ_FUSED_BYTES expression for the wanted tuples. */
template <uint32_t R>
static __device__ __noinline__ Values<R>
bytes_values(GjFusedExpr e, const int64_t *constants, const GjColumn *columns,
			 const uint32_t *rowid, uint32_t wanted)
{
	const bool compares = e.op == GJ_OP_EQ_T;
	const bool by_words = compares || e.op == GJ_OP_HASH_T;
	Values<R> values;
	int64_t a[R];
	int64_t b[R];
	uint32_t most = 0;

	values.status = GJ_OK;
	values.known = load_texts<R>(columns[e.a], e.arg, e.slot_a, rowid, wanted, a, &values.status);
	if (e.op == GJ_OP_LIKE)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			values.value[i] =
				(values.known >> i & 1) &&
				is_like(a[i], gj_fused_constant(&e, constants), (e.high & GJ_BYTES_UTF8) != 0);
	}
	else if (e.op == GJ_OP_IN_T)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			values.value[i] = (values.known >> i & 1) && gj_fused_in(&e, constants, a[i]);
	}
	else if (e.op == GJ_OP_KEY_T)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			values.value[i] = values.known >> i & 1 ? half_of(a[i], (uint32_t) e.high) : 0;
	}
	else if (compares && e.b >= 0)
		values.known = load_texts<R>(columns[e.b], (uint32_t) e.constant, e.slot_b, rowid,
									 values.known, b, &values.status);
	else if (compares)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			b[i] = gj_fused_constant(&e, constants);
	}
#pragma unroll
	for (uint32_t i = 0; i < R && by_words; i++)
	{
		const uint32_t n = values.known >> i & 1 ? gj_text_length(a[i]) : 0;

		values.value[i] = n;
		if (!(values.known >> i & 1))
			a[i] = 0;
		else if (compares)
		{
			values.value[i] = n == gj_text_length(b[i]);
			if (!values.value[i])
				a[i] = 0;
		}
		most = max(most, gj_text_length(a[i]));
	}
	for (uint32_t w = 0; 8 * w < most; w++)
	{
		uint64_t word[R];
		uint64_t other[R];

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			word[i] = text_word(a[i], w);
		if (compares)
		{
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				other[i] = 8 * w < gj_text_length(a[i]) ? text_word(b[i], w) : 0;
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (8 * w >= gj_text_length(a[i]))
				continue;
			if (!compares)
				values.value[i] =
					(int64_t) gj_hash_combine((uint64_t) values.value[i], (int64_t) word[i]);
			else if (word[i] != other[i])
			{
				values.value[i] = 0;
				a[i] = 0;
			}
		}
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if ((compares || e.op == GJ_OP_LIKE) && (e.high & GJ_BYTES_NOT))
			values.value[i] = !values.value[i];
	}
	return values;
}

/* ---- halves of keys */

/* Both halves of the keys of a column's texts (GJ_OP_KEY_T). */
template <uint32_t R>
struct Halves
{
	int64_t key[2][R];
	uint32_t known;
	uint32_t status;
};

/* Both of a text that is too long for its key, or has not a short header. */
static __device__ __noinline__ uint32_t
long_halves(const uint8_t *bytes, uint32_t n, uint32_t form, uint32_t whole, int64_t *first,
			int64_t *second)
{
	int64_t text;
	const uint32_t status = n == 0 ? GJ_UNKNOWN_VALUE : gj_text_of(bytes, n, form, &text);

	if (status != GJ_OK)
		return status;
	*first = gj_key_t(text, whole);
	*second = gj_key_t(text, whole | GJ_KEY_SECOND);
	return GJ_OK;
}

/* The first n bytes of a word. */
static __device__ __forceinline__ uint64_t
first_bytes(uint64_t word, uint32_t n)
{
	return n >= 8 ? word : word & ((UINT64_C(1) << 8 * n) - 1);
}

/*
 * A text that is short enough lies in three words, with its header.  They are read at once, and
 * those of all tuples together.
 */
template <uint32_t R>
static __device__ __forceinline__ Halves<R>
halves_of(const GjColumn &column, uint32_t form, uint32_t whole, const uint32_t (&row)[R],
		  uint32_t wanted)
{
	const uint32_t header = form == GJ_BYTES_VARLENA;
	Halves<R> halves;
	int64_t ref[R] = {};
	const uint8_t *bytes[R];
	uint32_t n[R];
	uint64_t word[R][3];

	halves.status = GJ_OK;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if ((wanted >> i & 1) && gj_row_is_null(&column, row[i]))
			wanted &= ~(1u << i);
	}
	if (column.kind == GJ_REF)
		wanted = load_column<R>(column, row, wanted, ref);
	halves.known = wanted;
	/* uuids, which lie at multiples of 16 bytes */
	if (column.kind != GJ_REF && column.width == sizeof(ulonglong2) && form == GJ_BYTES_FIXED &&
		whole)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			ulonglong2 words = {};

			if (wanted >> i & 1)
				words = __ldg((const ulonglong2 *) column.data + row[i]);
			halves.key[0][i] = gj_exact_key_t(words.x, sizeof(words), whole);
			halves.key[1][i] = gj_exact_key_t(words.y, sizeof(words), whole | GJ_KEY_SECOND);
		}
		return halves;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint64_t *words;
		uint32_t skip;

		bytes[i] = column.kind == GJ_REF
					   ? column.heap + gj_ref_offset((uint64_t) ref[i])
					   : (const uint8_t *) column.data + (size_t) row[i] * column.width;
		n[i] = column.kind == GJ_REF ? gj_ref_length((uint64_t) ref[i]) : column.width;
		/* what the backend kept lies nowhere here */
		if (!(wanted >> i & 1) || (column.kind == GJ_REF && n[i] == GJ_REF_HELD))
			n[i] = 0;
		skip = (uint32_t) ((uintptr_t) bytes[i] & 7);
		words = (const uint64_t *) (bytes[i] - skip);
#pragma unroll
		for (uint32_t w = 0; w < 3; w++)
			word[i][w] = n[i] > 0 && skip + n[i] > 8 * w ? words[w] : 0;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t skip = (uint32_t) ((uintptr_t) bytes[i] & 7);
		const uint32_t first = (uint32_t) (word[i][0] >> 8 * skip) & 0xFF;
		const uint32_t length = header ? (first >> 1) - 1 : n[i];
		/* where the text begins in the words */
		const uint32_t at = skip + header;

		halves.key[0][i] = 0;
		halves.key[1][i] = 0;
		if (!(wanted >> i & 1))
			continue;
		if ((column.kind == GJ_REF && gj_ref_length((uint64_t) ref[i]) == GJ_REF_HELD) ||
			(header ? !(first & 1) || first == 1 || first >> 1 > n[i] : form != GJ_BYTES_FIXED) ||
			length > (whole ? 16 - header : GJ_EXACT_KEY_BYTES))
		{
			const uint32_t s =
				long_halves(bytes[i], n[i], form, whole, &halves.key[0][i], &halves.key[1][i]);

			if (s != GJ_OK)
				halves.status = s;
			continue;
		}
#pragma unroll
		for (uint32_t w = 0; w < 2; w++)
		{
			const uint64_t low = at == 8 ? word[i][w + 1] : word[i][w] >> 8 * at;
			const uint64_t high = at == 0 || at == 8 ? 0 : word[i][w + 1] << (64 - 8 * at);

			halves.key[w][i] = gj_exact_key_t(
				first_bytes(low | high, length > 8 * w ? length - 8 * w : 0), length, whole | w);
		}
	}
	return halves;
}

/* True if two values are both halves of the keys of a column. */
GJ_FN bool
are_halves(const GjFusedExpr *e)
{
	return e[0].form == GJ_FUSED_BYTES && e[0].op == GJ_OP_KEY_T && e[1].form == GJ_FUSED_BYTES &&
		   e[1].op == GJ_OP_KEY_T && e[0].a == e[1].a && e[0].slot_a == e[1].slot_a &&
		   !(e[0].high & GJ_KEY_SECOND) && e[1].high == (e[0].high | GJ_KEY_SECOND);
}

#endif /* GJ_CUDA_FUSED_BYTES_CUH */
