/*
 * set_peer.c
 *	  For bench/sets.sh: generates families and pairs of sets, and joins them on the cpu.
 *
 *	set_peer family SHAPE N             the family, one "id TAB {e,e,…}" a line, as COPY reads it
 *	set_peer two N UNIVERSE DISTRIBUTION  two sets of N elements, the same way
 *	set_peer best FILE                  of each set of a family the most elements that another has, too
 *	set_peer overlap FILE THRESHOLD     pairs of sets with so many common elements
 *	set_peer jaccard FILE THRESHOLD     pairs of sets with at least this Jaccard index
 *	set_peer pair FILE                  common elements of the first two sets
 *
 * The last four print a line for each way of doing it: name, milliseconds, answer.  All use
 * GJ_THREADS threads (default: one a core), and stop after GJ_PEER_SECONDS (default 3): then
 * "~" and the time that all would have taken, as the share of the left sets done tells.
 * -DWITH_ROARING adds CRoaring, the library under pg_roaringbitmap.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef WITH_ROARING
#if __has_include(<roaring/roaring.h>)
#include <roaring/roaring.h>
#else
#include "roaring.h"			/* the amalgamation */
#endif
#endif

typedef struct Family
{
	uint32_t	n;
	uint64_t   *offset;			/* n + 1 */
	uint32_t   *element;		/* ascending in a set */
} Family;

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void *
must(void *p)
{
	if (!p)
	{
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return p;
}

/* ---- generating */

static uint64_t random_state = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t
random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* 0 <= x < 1 */
static double
random_unit(void)
{
	return (double) (random64() >> 11) / 9007199254740992.0;
}

static int
compare_elements(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *) a;
	const uint32_t y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

static uint32_t
sort_unique(uint32_t *e, uint32_t n)
{
	uint32_t	m = 0;

	qsort(e, n, sizeof(*e), compare_elements);
	for (uint32_t i = 0; i < n; i++)
		if (m == 0 || e[i] != e[m - 1])
			e[m++] = e[i];
	return m;
}

static void
print_set(uint32_t id, const uint32_t *e, uint32_t n)
{
	printf("%u\t{", id);
	for (uint32_t i = 0; i < n; i++)
		printf(i ? ",%u" : "%u", e[i]);
	printf("}\n");
}

/* Size of an average set, distinct elements and skew, as published of the named data. */
static const struct
{
	const char *name;
	uint32_t	size;
	uint32_t	universe;
	double		skew;			/* elements are universe * x^skew, x even: 1 is uniform */
}			shapes[] = {
	{"BMS", 9, 1657, 2}, {"ENRON", 135, 1100000, 6}, {"ORKUT", 120, 8700000, 3},
	{"TWITTER", 66, 37000, 3}, {"WORDS", 300, 100000, 4}};

/* Sizes are even from 1 to twice the average less 1. */
static void
generate_shape(uint32_t n, uint32_t size, uint32_t universe, double skew)
{
	uint32_t   *e = must(malloc(sizeof(uint32_t) * size * 2));

	for (uint32_t id = 0; id < n; id++)
	{
		const uint32_t want = 1 + random64() % (2 * size - 1);
		uint32_t	have = 0;

		/* drawing again what was drawn twice, a few times */
		for (int round = 0; round < 20 && have < want; round++)
		{
			for (uint32_t i = have; i < want; i++)
				e[i] = (uint32_t) (pow(random_unit(), skew) * universe);
			have = sort_unique(e, want);
		}
		print_set(id, e, have);
	}
}

/* Sets of 100 to 150 elements of 100 000: independent, or variants of 50 prototypes. */
static void
generate_members(uint32_t n, bool similar)
{
	enum {PROTOTYPES = 50, MOST = 150, UNIVERSE = 100000};
	static uint32_t prototype[PROTOTYPES][MOST];
	uint32_t	e[MOST];

	for (int p = 0; p < PROTOTYPES; p++)
		for (int i = 0; i < MOST; i++)
			prototype[p][i] = random64() % UNIVERSE;
	for (uint32_t id = 0; id < n; id++)
	{
		const uint32_t p = random64() % PROTOTYPES;
		/* the variants of a prototype have one size, and three elements of their own */
		const uint32_t size = similar ? 100 + p : 100 + random64() % 51;

		for (uint32_t i = 0; i < size; i++)
			e[i] = similar && i >= 3 ? prototype[p][i] : random64() % UNIVERSE;
		print_set(id, e, sort_unique(e, size));
	}
}

/* One set of n distinct values below universe. */
static void
generate_one(uint32_t id, uint32_t n, uint32_t universe, const char *distribution)
{
	uint64_t   *bits = must(calloc(universe / 64 + 1, sizeof(uint64_t)));
	uint32_t   *e = must(malloc(sizeof(uint32_t) * n));
	uint32_t	have = 0;

	while (have < n)
	{
		double		x = random_unit();
		uint32_t	v;

		if (strcmp(distribution, "normal") == 0)
			x = 0.5 + sqrt(-2 * log(1 - x)) * cos(6.283185307179586 * random_unit()) / 8;
		else if (strcmp(distribution, "zipf") == 0)
			x = exp(x * log(universe)) / universe;
		if (x < 0 || x >= 1)
			continue;
		v = (uint32_t) (x * universe);
		have += !(bits[v / 64] >> (v % 64) & 1);
		bits[v / 64] |= UINT64_C(1) << (v % 64);
	}
	have = 0;
	for (uint32_t v = 0; v < universe; v++)
		if (bits[v / 64] >> (v % 64) & 1)
			e[have++] = v;
	print_set(id, e, n);
	free(bits);
	free(e);
}

/* ---- reading */

static Family
read_family(const char *path)
{
	FILE	   *file = fopen(path, "r");
	Family		f = {.offset = must(malloc(sizeof(uint64_t) * 2))};
	char	   *line = NULL;
	size_t		room = 0;
	uint64_t	element_room = 1 << 20;
	uint32_t	set_room = 1;

	if (!file)
	{
		perror(path);
		exit(1);
	}
	f.element = must(malloc(sizeof(uint32_t) * element_room));
	f.offset[0] = 0;
	while (getline(&line, &room, file) > 0)
	{
		uint64_t	at = f.offset[f.n];
		char	   *p = strchr(line, '{');

		for (p = p ? p + 1 : line + strlen(line); *p >= '0' && *p <= '9';)
		{
			if (at == element_room)
				f.element = must(realloc(f.element, sizeof(uint32_t) * (element_room *= 2)));
			f.element[at++] = (uint32_t) strtoul(p, &p, 10);
			p += *p == ',';
		}
		if (f.n + 1 == set_room)
			f.offset = must(realloc(f.offset, sizeof(uint64_t) * ((set_room *= 2) + 1)));
		f.offset[++f.n] = at;
	}
	free(line);
	fclose(file);
	return f;
}

/* ---- two sets */

static uint32_t
merge_plain(const uint32_t *a, uint64_t na, const uint32_t *b, uint64_t nb)
{
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint32_t	count = 0;

	while (i < na && j < nb)
	{
		const uint32_t x = a[i];
		const uint32_t y = b[j];

		count += x == y;
		i += x <= y;
		j += y <= x;
	}
	return count;
}

#ifdef __x86_64__
/* Eight elements of each against all of the other at a time. */
__attribute__((target("avx2,popcnt")))
static uint32_t
merge_avx2(const uint32_t *a, uint64_t na, const uint32_t *b, uint64_t nb)
{
	const __m256i turn = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint32_t	count = 0;

	while (i + 8 <= na && j + 8 <= nb)
	{
		const __m256i x = _mm256_loadu_si256((const __m256i *) (a + i));
		__m256i		y = _mm256_loadu_si256((const __m256i *) (b + j));
		const uint32_t last_a = a[i + 7];
		const uint32_t last_b = b[j + 7];
		__m256i		equal = _mm256_cmpeq_epi32(x, y);

		for (int k = 1; k < 8; k++)
		{
			y = _mm256_permutevar8x32_epi32(y, turn);
			equal = _mm256_or_si256(equal, _mm256_cmpeq_epi32(x, y));
		}
		count += (uint32_t) __builtin_popcount((unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(equal)));
		i += last_a <= last_b ? 8 : 0;
		j += last_b <= last_a ? 8 : 0;
	}
	return count + merge_plain(a + i, na - i, b + j, nb - j);
}
#endif

static uint32_t (*merge) (const uint32_t *, uint64_t, const uint32_t *, uint64_t) = merge_plain;
static const char *merge_name = "merging, plain C";

static void
choose_merge(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
	{
		merge = merge_avx2;
		merge_name = "merging, AVX2";
	}
#endif
}

/* ---- all pairs */

typedef enum Way
{
	WAY_MERGE,
	WAY_INDEX,					/* counting along the lists of sets that have an element */
	WAY_ROARING,
	NWAYS
} Way;

typedef struct Job
{
	const Family *f;
	Way			way;
	uint32_t	least;			/* common elements; 0: what counts is the next one */
	double		threshold;		/* Jaccard index; < 0: the best of each set */
	uint64_t   *list_offset;	/* WAY_INDEX */
	uint32_t   *list;
#ifdef WITH_ROARING
	roaring_bitmap_t **bitmap;
#endif
	double		end_ms;
	uint32_t	next;			/* atomic: items taken */
	uint32_t	done;
	uint32_t   *best;			/* atomic, of each set */
	uint64_t	npairs;			/* atomic: wanted, and their common elements */
	uint64_t	ncommon;
} Job;

static uint32_t
size_of(const Family *f, uint32_t s)
{
	return (uint32_t) (f->offset[s + 1] - f->offset[s]);
}

static bool
could_match(const Job *job, uint32_t na, uint32_t nb)
{
	if (job->least > 0)
		return na >= job->least && nb >= job->least;
	return job->threshold < 0 ||
		(na < nb ? na >= job->threshold * nb : nb >= job->threshold * na);
}

static void
raise_best(uint32_t *best, uint32_t common)
{
	uint32_t	old = __atomic_load_n(best, __ATOMIC_RELAXED);

	while (old < common &&
		   !__atomic_compare_exchange_n(best, &old, common, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void
take_pair(Job *job, uint32_t l, uint32_t r, uint32_t common, uint64_t found[2])
{
	if (job->least == 0 && job->threshold < 0)
	{
		raise_best(&job->best[l], common);
		raise_best(&job->best[r], common);
	}
	else if (job->least > 0 ? common >= job->least : (double) common / (size_of(job->f, l) + size_of(job->f, r) - common) >= job->threshold)
	{
		found[0]++;
		found[1] += common;
	}
}

/* Adds 1 to each set after l that has an element of it. */
static void
count_lists(const Job *job, uint32_t l, uint32_t *counts)
{
	const Family *f = job->f;

	memset(counts + l, 0, sizeof(uint32_t) * (f->n - l));
	for (uint64_t i = f->offset[l]; i < f->offset[l + 1]; i++)
	{
		uint64_t	low = job->list_offset[f->element[i]];
		const uint64_t end = job->list_offset[f->element[i] + 1];
		uint64_t	high = end;

		while (low < high)
		{
			const uint64_t mid = low + (high - low) / 2;

			if (job->list[mid] <= l)
				low = mid + 1;
			else
				high = mid;
		}
		for (; low < end; low++)
			counts[job->list[low]]++;
	}
}

static void
left_set(Job *job, uint32_t l, uint32_t *counts, uint64_t found[2])
{
	const Family *f = job->f;
	const uint32_t na = size_of(f, l);

	if (job->way == WAY_INDEX)
		count_lists(job, l, counts);
	for (uint32_t r = l + 1; r < f->n; r++)
	{
		uint32_t	common = 0;

		if (job->way == WAY_INDEX)
			common = counts[r];
		else if (!could_match(job, na, size_of(f, r)))
			continue;
		else if (job->way == WAY_MERGE)
			common = merge(f->element + f->offset[l], na, f->element + f->offset[r], size_of(f, r));
#ifdef WITH_ROARING
		else
			common = (uint32_t) roaring_bitmap_and_cardinality(job->bitmap[l], job->bitmap[r]);
#endif
		if (common > 0)
			take_pair(job, l, r, common, found);
	}
}

static void *
work(void *arg)
{
	Job		   *job = arg;
	const uint32_t n = job->f->n;
	uint32_t   *counts = must(malloc(sizeof(uint32_t) * n));
	uint64_t	found[2] = {0, 0};

	for (;;)
	{
		/* first and last sets in turn: two of them have n right ones, so shares are even */
		const uint32_t item = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

		if (item >= n || now_ms() > job->end_ms)
			break;
		left_set(job, item % 2 ? n - 1 - item / 2 : item / 2, counts, found);
		__atomic_fetch_add(&job->done, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&job->npairs, found[0], __ATOMIC_RELAXED);
	__atomic_fetch_add(&job->ncommon, found[1], __ATOMIC_RELAXED);
	free(counts);
	return NULL;
}

static void
make_lists(Job *job)
{
	const Family *f = job->f;
	const uint64_t total = f->offset[f->n];
	uint32_t	universe = 0;
	uint64_t   *at;

	for (uint64_t i = 0; i < total; i++)
		universe = f->element[i] >= universe ? f->element[i] + 1 : universe;
	/* at[e] counts, then points behind what is filled: one further on than the offsets */
	job->list_offset = must(calloc((uint64_t) universe + 2, sizeof(uint64_t)));
	job->list = must(malloc(sizeof(uint32_t) * (total + 1)));
	at = job->list_offset + 1;
	for (uint64_t i = 0; i < total; i++)
		at[f->element[i] + 1]++;
	for (uint32_t e = 0; e < universe; e++)
		at[e + 1] += at[e];
	for (uint32_t s = 0; s < f->n; s++)
		for (uint64_t i = f->offset[s]; i < f->offset[s + 1]; i++)
			job->list[at[f->element[i]]++] = s;
}

static int
number(const char *name, int standard)
{
	const char *value = getenv(name);

	return value && atoi(value) > 0 ? atoi(value) : standard;
}

static void
join_by(const Family *f, Way way, uint32_t least, double threshold, const char *name)
{
	Job			job = {.f = f,.way = way,.least = least,.threshold = threshold};
	const int	nthreads = number("GJ_THREADS", (int) sysconf(_SC_NPROCESSORS_ONLN));
	pthread_t  *thread = must(malloc(sizeof(pthread_t) * (size_t) nthreads));
	double		start = now_ms();
	double		ms;

	job.best = must(calloc(f->n + 1, sizeof(uint32_t)));
	job.end_ms = start + number("GJ_PEER_SECONDS", 3) * 1e3;
	if (way == WAY_INDEX)
		make_lists(&job);
#ifdef WITH_ROARING
	if (way == WAY_ROARING)
	{
		job.bitmap = must(malloc(sizeof(*job.bitmap) * (f->n + 1)));
		for (uint32_t s = 0; s < f->n; s++)
			job.bitmap[s] = roaring_bitmap_of_ptr(size_of(f, s), f->element + f->offset[s]);
		start = now_ms();
		job.end_ms = start + number("GJ_PEER_SECONDS", 3) * 1e3;
	}
#endif
	for (int t = 0; t < nthreads; t++)
		if (pthread_create(&thread[t], NULL, work, &job) != 0)
			exit(1);
	for (int t = 0; t < nthreads; t++)
		pthread_join(thread[t], NULL);
	ms = now_ms() - start;
	if (least == 0 && threshold < 0)
		for (uint32_t s = 0; s < f->n; s++)
		{
			job.npairs += job.best[s] > 0;
			job.ncommon += job.best[s];
		}
	if (job.done == f->n)
		printf("%s, %d threads\t%.1f\t%llu, %llu\n", name, nthreads, ms, (unsigned long long) job.npairs,
			   (unsigned long long) job.ncommon);
	else
		printf("%s, %d threads\t~%.0f\t\n", name, nthreads, ms * f->n / (job.done ? job.done : 1));
	fflush(stdout);
	free(thread);
	free(job.best);
	free(job.list_offset);
	free(job.list);
#ifdef WITH_ROARING
	for (uint32_t s = 0; way == WAY_ROARING && s < f->n; s++)
		roaring_bitmap_free(job.bitmap[s]);
	free(job.bitmap);
#endif
}

static void
join(const Family *f, uint32_t least, double threshold)
{
	join_by(f, WAY_MERGE, least, threshold, merge_name);
	join_by(f, WAY_INDEX, least, threshold, "inverted index");
#ifdef WITH_ROARING
	join_by(f, WAY_ROARING, least, threshold, "CRoaring, bitmaps made before");
#endif
}

/* ---- one pair */

typedef struct Part
{
	const uint32_t *a;
	const uint32_t *b;
	uint64_t	na;
	uint64_t	nb;
	uint32_t	common;
} Part;

static void *
merge_part(void *arg)
{
	Part	   *part = arg;

	part->common = merge(part->a, part->na, part->b, part->nb);
	return NULL;
}

/* The first position whose element is not less than e. */
static uint64_t
lower_bound(const uint32_t *at, uint64_t n, uint32_t e)
{
	uint64_t	low = 0;

	while (low < n)
	{
		const uint64_t mid = low + (n - low) / 2;

		if (at[mid] < e)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

static uint64_t
merge_parallel(const uint32_t *a, uint64_t na, const uint32_t *b, uint64_t nb, int nthreads)
{
	Part	   *part = must(calloc((size_t) nthreads, sizeof(Part)));
	pthread_t  *thread = must(malloc(sizeof(pthread_t) * (size_t) nthreads));
	uint64_t	from_a = 0;
	uint64_t	from_b = 0;
	uint64_t	common = 0;

	for (int t = 0; t < nthreads; t++)
	{
		const uint64_t to_a = na * (uint64_t) (t + 1) / (uint64_t) nthreads;
		const uint64_t to_b = to_a < na ? lower_bound(b, nb, a[to_a]) : nb;

		part[t] = (Part) {a + from_a, b + from_b, to_a - from_a, to_b - from_b, 0};
		from_a = to_a;
		from_b = to_b;
		if (pthread_create(&thread[t], NULL, merge_part, &part[t]) != 0)
			exit(1);
	}
	for (int t = 0; t < nthreads; t++)
	{
		pthread_join(thread[t], NULL);
		common += part[t].common;
	}
	free(part);
	free(thread);
	return common;
}

/* Elements of the small set, looked up in the large one in steps that double. */
static uint64_t
gallop(const uint32_t *small, uint64_t nsmall, const uint32_t *large, uint64_t nlarge)
{
	uint64_t	low = 0;
	uint64_t	common = 0;

	for (uint64_t i = 0; i < nsmall; i++)
	{
		uint64_t	step = 1;

		while (step < nlarge - low && large[low + step] < small[i])
		{
			low += step;
			step *= 2;
		}
		low += lower_bound(large + low, step < nlarge - low ? step : nlarge - low, small[i]);
		common += low < nlarge && large[low] == small[i];
	}
	return common;
}

static bool
ascends(const uint32_t *at, uint64_t n)
{
	bool		ascending = true;

	for (uint64_t i = 1; i < n; i++)
		ascending &= at[i - 1] < at[i];
	return ascending;
}

/* Of arrays that are known to be sorted, and of arrays that are looked at first. */
static void
gallop_pair(const Family *f)
{
	const int	small = size_of(f, 0) > size_of(f, 1);
	const uint32_t *a = f->element + f->offset[small];
	const uint32_t *b = f->element + f->offset[!small];

	for (int check = 0; check < 2; check++)
	{
		double		least = 1e99;
		uint64_t	common = 0;

		for (int run = 0; run < 5; run++)
		{
			const double start = now_ms();

			if (!check || (ascends(a, size_of(f, small)) && ascends(b, size_of(f, !small))))
				common = gallop(a, size_of(f, small), b, size_of(f, !small));
			least = fmin(least, now_ms() - start);
		}
		printf("%s, 1 thread, best of 5\t%.3f\t%llu\n", check ? "looking at order, then galloping" : "galloping",
			   least, (unsigned long long) common);
	}
}

static void
intersect(const Family *f)
{
	const int	nthreads = number("GJ_THREADS", (int) sysconf(_SC_NPROCESSORS_ONLN));
	const uint32_t *a = f->element + f->offset[0];
	const uint32_t *b = f->element + f->offset[1];

	if (f->n < 2)
	{
		fprintf(stderr, "there are no two sets\n");
		exit(1);
	}
	gallop_pair(f);
	for (int way = 0; way < 3; way++)
	{
		double		least = 1e99;
		uint64_t	common = 0;

		for (int run = 0; run < 5; run++)
		{
			const double start = now_ms();

			common = way == 0 ? merge_plain(a, size_of(f, 0), b, size_of(f, 1)) :
				merge_parallel(a, size_of(f, 0), b, size_of(f, 1), way == 1 ? 1 : nthreads);
			least = fmin(least, now_ms() - start);
		}
		printf("%s, %d thread%s, best of 5\t%.3f\t%llu\n", way == 0 ? "merging, plain C" : merge_name,
			   way == 2 ? nthreads : 1, way == 2 ? "s" : "", least, (unsigned long long) common);
	}
#ifdef WITH_ROARING
	{
		roaring_bitmap_t *x = roaring_bitmap_of_ptr(size_of(f, 0), a);
		roaring_bitmap_t *y = roaring_bitmap_of_ptr(size_of(f, 1), b);
		double		least = 1e99;
		uint64_t	common = 0;

		for (int run = 0; run < 5; run++)
		{
			const double start = now_ms();

			common = roaring_bitmap_and_cardinality(x, y);
			least = fmin(least, now_ms() - start);
		}
		printf("CRoaring, bitmaps made before, 1 thread, best of 5\t%.3f\t%llu\n", least, (unsigned long long) common);
		roaring_bitmap_free(x);
		roaring_bitmap_free(y);
	}
#endif
}

static void
usage(void)
{
	fprintf(stderr, "usage: set_peer family SHAPE N | two N UNIVERSE uniform|normal|zipf | best FILE | overlap FILE THRESHOLD | jaccard FILE THRESHOLD | pair FILE\n");
	exit(2);
}

static void
generate(const char *shape, uint32_t n)
{
	if (strcmp(shape, "SIMILAR") == 0 || strcmp(shape, "UNIFORM") == 0)
	{
		generate_members(n, shape[0] == 'S');
		return;
	}
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strcmp(shapes[i].name, shape) == 0)
		{
			generate_shape(n, shapes[i].size, shapes[i].universe, shapes[i].skew);
			return;
		}
	usage();
}

int
main(int argc, char **argv)
{
	Family		f;

	choose_merge();
	if (argc == 4 && strcmp(argv[1], "family") == 0)
	{
		generate(argv[2], (uint32_t) atol(argv[3]));
		return 0;
	}
	if (argc == 5 && strcmp(argv[1], "two") == 0)
	{
		if (atol(argv[2]) * 2 > atol(argv[3]) || atol(argv[3]) > UINT32_MAX)
			usage();
		for (uint32_t id = 1; id <= 2; id++)
			generate_one(id, (uint32_t) atol(argv[2]), (uint32_t) atol(argv[3]), argv[4]);
		return 0;
	}
	if (argc < 3)
		usage();
	f = read_family(argv[2]);
	if (strcmp(argv[1], "best") == 0)
		join(&f, 0, -1);
	else if (strcmp(argv[1], "jaccard") == 0 && argc == 4)
		join(&f, 0, atof(argv[3]));
	else if (strcmp(argv[1], "overlap") == 0 && argc == 4 && atoi(argv[3]) > 0)
		join(&f, (uint32_t) atoi(argv[3]), 0);
	else if (strcmp(argv[1], "pair") == 0)
		intersect(&f);
	else
		usage();
	free(f.offset);
	free(f.element);
	return 0;
}
