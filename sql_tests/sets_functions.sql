-- Functions and aggregates on two arrays: union, except, counts, similarities, in the process and on the device.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on

SELECT gpu_union('{5,1,3,3}'::int[], '{3,5,9}'), gpu_except('{5,1,3,3}'::int[], '{3,5,9}'), gpu_intersect('{5,1,3,3}'::int2[], '{3,5,9}'::int2[]);
SELECT gpu_union('{5,1,3,3}'::bigint[], '{3,5,9}'::bigint[]), gpu_except('{5,1,3,3}'::bigint[], '{3,5,9}'::bigint[]);
SELECT gpu_union('{5,1,3,3}'::int2[], '{3,5,9}'::int2[]), gpu_except('{5,1,3,3}'::int2[], '{3,5,9}'::int2[]), gpu_intersect_count('{5,1}'::int2[], '{1,1}'::int2[]);
SELECT pg_typeof(gpu_union('{1}'::int2[], '{1}'::int2[])), pg_typeof(gpu_except('{1}'::int[], '{1}'::int[])), pg_typeof(gpu_union('{1}'::bigint[], '{1}'::bigint[]));
-- ends of the ranges
SELECT gpu_union('{32767,-32768}'::int2[], '{0}'::int2[]), gpu_except('{9223372036854775807,-9223372036854775808,0}'::bigint[], '{0}'::bigint[]);

-- sets of all sizes up to 140 in any order, by functions and by aggregates, as PostgreSQL sorts them: few and many different elements, and both ends of the range
CREATE TABLE sizes AS SELECT n, few, array(SELECT CASE WHEN (h >> 8) % 40 = 0 THEN CASE WHEN h % 2 = 0 THEN 1 ELSE 0 END ELSE CASE WHEN few THEN h % 16 + 2 ELSE h % 60000 + 2 END END
	FROM (SELECT hashint8extended(i, n + CASE WHEN few THEN 1000 ELSE 0 END) & 2147483647 AS h FROM generate_series(1, n) i) x) AS a
FROM generate_series(0, 140) n, (VALUES (true), (false)) v(few);
CREATE TABLE typed_sizes AS SELECT n, few, array(SELECT CASE e WHEN 0 THEN -32768 WHEN 1 THEN 32767 ELSE e - 30000 END FROM unnest(a) WITH ORDINALITY u(e, i) ORDER BY i)::int2[] AS a2,
	array(SELECT CASE e WHEN 0 THEN -2147483648 WHEN 1 THEN 2147483647 ELSE e - 30000 END FROM unnest(a) WITH ORDINALITY u(e, i) ORDER BY i)::int4[] AS a4,
	array(SELECT CASE e WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 ELSE e * 100000000000 END FROM unnest(a) WITH ORDINALITY u(e, i) ORDER BY i)::int8[] AS a8 FROM sizes;
SELECT count(*), count(*) FILTER (WHERE cardinality(a4) > cardinality(array(SELECT DISTINCT unnest(a4)))) > 100 AS duplicates, count(*) FILTER (WHERE 2147483647 = ANY (a4)) > 50 AS greatest,
	count(*) FILTER (WHERE gpu_union(a2, '{}') IS DISTINCT FROM array(SELECT DISTINCT e FROM unnest(a2) e ORDER BY e)) AS int2,
	count(*) FILTER (WHERE gpu_union(a4, '{}') IS DISTINCT FROM array(SELECT DISTINCT e FROM unnest(a4) e ORDER BY e)) AS int4,
	count(*) FILTER (WHERE gpu_union(a8, '{}') IS DISTINCT FROM array(SELECT DISTINCT e FROM unnest(a8) e ORDER BY e)) AS int8,
	count(*) FILTER (WHERE (SELECT gpu_union_agg(x) FROM (VALUES (a4), ('{}')) v(x)) IS DISTINCT FROM array(SELECT DISTINCT e FROM unnest(a4) e ORDER BY e)) AS aggregate
FROM typed_sizes;
DROP TABLE sizes, typed_sizes;

-- empty sets
SELECT gpu_union('{}'::int[], '{}'), gpu_union('{}'::int[], '{2,1}'), gpu_union('{2,1,1}'::int[], '{}'), gpu_except('{}'::int[], '{1}'), gpu_except('{2,1,1}'::int[], '{}'), gpu_except('{1}'::int[], '{1}');
SELECT gpu_overlaps('{}'::int[], '{}'), gpu_overlaps('{1,2}'::int[], '{2,3}'), gpu_overlaps('{1,2}'::int[], '{3}'),
	gpu_contains('{1,2}'::int[], '{}'), gpu_contains('{}'::int[], '{1}'), gpu_contains('{}'::int[], '{}'), gpu_contains('{1,2,3}'::int[], '{3,1,3}'), gpu_contains('{1,2,3}'::int[], '{3,4}');
-- similarities: of some sets, of two empty ones (1), of an empty one and another (0)
SELECT a, b, round(gpu_jaccard(a, b)::numeric, 6) AS jaccard, round(gpu_cosine(a, b)::numeric, 6) AS cosine, round(gpu_dice(a, b)::numeric, 6) AS dice,
	round(gpu_overlap_coefficient(a, b)::numeric, 6) AS overlap_coefficient, round(gpu_containment(a, b)::numeric, 6) AS containment
FROM (VALUES ('{1,2,3}'::int[], '{2,3,4,5}'::int[]), ('{1,2,2}', '{2,1}'), ('{1}', '{2}'), ('{}', '{}'), ('{}', '{1}'), ('{1}', '{}'), ('{7,7,7,8}', '{8}')) v(a, b);

-- NULL sets and NULL elements
SELECT gpu_union(NULL::int[], '{1}') IS NULL, gpu_except('{1}'::int[], NULL) IS NULL, gpu_overlaps(NULL::int[], '{1}') IS NULL, gpu_contains('{1}'::int[], NULL) IS NULL,
	gpu_jaccard(NULL::int[], '{1}') IS NULL, gpu_cosine(NULL::int[], '{1}') IS NULL, gpu_dice(NULL::int[], '{1}') IS NULL, gpu_overlap_coefficient(NULL::int[], '{1}') IS NULL, gpu_containment(NULL::int[], '{1}') IS NULL;
SELECT gpu_union('{1,NULL}'::int[], '{1}');
SELECT gpu_jaccard('{1}'::int[], '{1,2,NULL}');
\set VERBOSITY sqlstate
SELECT gpu_except('{1,NULL}'::int[], '{1}');
SELECT gpu_contains('{1,NULL}'::int2[], '{1}'::int2[]);
SELECT gpu_union_agg(a) FROM (VALUES ('{1,NULL}'::int[])) v(a);
SELECT gpu_intersect_agg(a) FROM (VALUES ('{1,NULL}'::int[])) v(a);
\set VERBOSITY default

-- aggregates
SELECT gpu_union_agg(a), gpu_intersect_agg(a) FROM (VALUES ('{3,2,1}'::int[]), ('{3,2,7,7}'), (NULL), ('{2,3}')) v(a);
SELECT gpu_union_agg(a), gpu_intersect_agg(a) FROM (VALUES ('{3,2,3,1}'::bigint[])) v(a);
SELECT gpu_union_agg(a) IS NULL, gpu_intersect_agg(a) IS NULL FROM (VALUES (NULL::int2[])) v(a);
SELECT gpu_union_agg(a), gpu_intersect_agg(a) FROM (VALUES ('{}'::int[]), ('{1}')) v(a);
SELECT g, gpu_union_agg(a), gpu_intersect_agg(a) FROM (SELECT i % 3 AS g, ARRAY[i % 3, i % 2, 9]::int2[] AS a FROM generate_series(1, 100) i) v GROUP BY g ORDER BY g;
SELECT array_agg(x::text ORDER BY i) FROM (SELECT i, gpu_union_agg(ARRAY[i % 4]) OVER (ORDER BY i) AS x FROM generate_series(1, 5) i) v;
-- in parallel
CREATE TABLE sets_agg AS SELECT i, ARRAY[i % 1000, i % 7, -1] AS a FROM generate_series(1, 20000) i;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET gpujoin.enabled = off;
SELECT gj_how('SELECT gpu_union_agg(a) FROM sets_agg', false), bool_or(plan LIKE '%Partial Aggregate%') FROM (SELECT 1) x, LATERAL (SELECT x::text AS plan FROM gj_rows('EXPLAIN SELECT gpu_union_agg(a), gpu_intersect_agg(a) FROM sets_agg') x) y;
SELECT cardinality(gpu_union_agg(a)), gpu_intersect_agg(a), gpu_union_agg(a) = (SELECT array_agg(DISTINCT x ORDER BY x) FROM sets_agg s, unnest(s.a) x) FROM sets_agg;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET gpujoin.enabled;
DROP TABLE sets_agg;

-- the same from the process and from the device, by every algorithm, against plain SQL
CREATE TABLE sets_pairs AS
SELECT p, array_agg(x ORDER BY random()) FILTER (WHERE s = 0) AS a, array_agg(x ORDER BY random()) FILTER (WHERE s = 1) AS b
FROM (VALUES (1, 1, 3000, 100000), (2, 3000, 3000, 4000), (3, 100, 20000, 30000), (4, 5000, 5000, 2000000000), (5, 20000, 1, 20)) v(p, na, nb, range),
	LATERAL (SELECT s, (random() * range)::int - range / 2 AS x FROM generate_series(0, 1) s, generate_series(1, CASE s WHEN 0 THEN na ELSE nb END)) y
GROUP BY p;
INSERT INTO sets_pairs SELECT 10 + p, a, a FROM sets_pairs;
INSERT INTO sets_pairs SELECT 30, array_agg(i), array_agg(i + 5000) FROM generate_series(1, 5000) i;
CREATE FUNCTION sets_check(algorithm text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	bad text;
BEGIN
	PERFORM set_config('gpujoin.set_algorithm', algorithm, false);
	FOR r IN SELECT p, a, b, array(SELECT unnest(a) INTERSECT SELECT unnest(b) ORDER BY 1) AS i, array(SELECT unnest(a) UNION SELECT unnest(b) ORDER BY 1) AS u,
				array(SELECT unnest(a) EXCEPT SELECT unnest(b) ORDER BY 1) AS e, (SELECT count(DISTINCT x) FROM unnest(a) x) AS na, (SELECT count(DISTINCT x) FROM unnest(b) x) AS nb
			FROM sets_pairs LOOP
		IF gpu_intersect(r.a, r.b) <> r.i OR gpu_intersect(r.b::bigint[], r.a::bigint[]) <> r.i::bigint[] OR gpu_intersect_count(r.a, r.b) <> cardinality(r.i) THEN
			bad := concat(bad, ' intersect ', r.p);
		END IF;
		IF gpu_union(r.a, r.b) <> r.u OR gpu_union(r.a::bigint[], r.b::bigint[]) <> r.u::bigint[] THEN
			bad := concat(bad, ' union ', r.p);
		END IF;
		IF gpu_except(r.a, r.b) <> r.e OR gpu_except(r.a::bigint[], r.b::bigint[]) <> r.e::bigint[] THEN
			bad := concat(bad, ' except ', r.p);
		END IF;
		IF gpu_jaccard(r.a, r.b) <> cardinality(r.i) / cardinality(r.u)::float8 OR gpu_dice(r.a, r.b) <> 2 * cardinality(r.i) / (r.na + r.nb)::float8
				OR abs(gpu_cosine(r.a, r.b) - cardinality(r.i) / sqrt(r.na::float8 * r.nb)) > 1e-12 OR gpu_containment(r.a, r.b) <> cardinality(r.i) / least(r.na, r.nb)::float8
				OR gpu_overlaps(r.a, r.b) <> (r.a && r.b) OR gpu_contains(r.a, r.b) <> (r.a @> r.b) THEN
			bad := concat(bad, ' similarity ', r.p);
		END IF;
		IF r.p = 2 AND (gpu_union(r.a::int2[], r.b::int2[]) <> r.u::int2[] OR gpu_except(r.b::int2[], r.a::int2[]) <> (SELECT array(SELECT unnest(r.b) EXCEPT SELECT unnest(r.a) ORDER BY 1)::int2[])) THEN
			bad := concat(bad, ' int2');
		END IF;
	END LOOP;
	RETURN coalesce('DIFFERENT:' || bad, 'same');
END $$;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT sets_check('auto');
SET gpujoin.set_device_min_elements = 0;
CREATE TEMPORARY TABLE stat_before AS SELECT * FROM gpujoin_stat;
SELECT a, sets_check(a) FROM unnest('{auto,merge_path,binary_search,hash,bitmap,inverted_index,matrix}'::text[]) a;
-- all of that was really done on the device
SELECT sum(s.count) - (SELECT coalesce(sum(count), 0) FROM stat_before WHERE outcome = 'completed') > 500 AS completed FROM gpujoin_stat s WHERE outcome = 'completed';
SELECT outcome, count FROM gpujoin_stat WHERE outcome <> 'completed' EXCEPT SELECT outcome, count FROM stat_before;
RESET gpujoin.set_algorithm;
-- what fails on the device is done in the process
SET gpujoin.fail_at = probe;
SELECT gpu_union('{1,2}'::int[], '{3}'), gpu_except('{1,2}'::int[], '{2}'), gpu_jaccard('{1,2}'::int[], '{2}');
RESET gpujoin.fail_at; RESET gpujoin.set_device_min_elements;
DROP FUNCTION sets_check; DROP TABLE sets_pairs, stat_before;
