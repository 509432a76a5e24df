-- Set functions in the session's process: the same answers from all instructions and all ways, for all types.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.enabled = off;

-- sorted and not, dense and sparse, with duplicates, small against large, with the ends of the types
CREATE TABLE code_values AS
SELECT s, n, range, sorted, array(SELECT v FROM (SELECT CASE WHEN h % 997 = 0 THEN range - 1 WHEN h % 991 = 0 THEN 0 ELSE h % range END AS v, i
	FROM (SELECT i, hashint8extended(i, s) & 4611686018427387903 AS h FROM generate_series(1, n) i) x) y ORDER BY CASE WHEN sorted THEN v ELSE i END) AS v
FROM (VALUES (1, 0, 10, true), (2, 1, 10, true), (3, 20, 60, true), (4, 20, 60, false), (5, 63, 65536, false), (6, 90, 65536, true), (7, 300, 65536, false), (8, 1500, 65536, true),
	(9, 1500, 2000, false), (10, 5000, 65536, true), (11, 5000, 65536, false), (12, 20000, 65536, true), (13, 20000, 100, false)) t(s, n, range, sorted);
INSERT INTO code_values SELECT s + 20, cardinality(v), range, true, v FROM (SELECT s, range, array(SELECT DISTINCT e FROM unnest(v) e ORDER BY e) AS v FROM code_values) x;
CREATE TABLE code_sets AS SELECT s,
	array(SELECT e - 32768 FROM unnest(v) WITH ORDINALITY u(e, i) ORDER BY i)::int2[] AS a2,
	array(SELECT e * 65537 - 2147483648 FROM unnest(v) WITH ORDINALITY u(e, i) ORDER BY i)::int4[] AS a4,
	array(SELECT e - 32768 FROM unnest(v) WITH ORDINALITY u(e, i) ORDER BY i)::int4[] AS d4,
	array(SELECT e::numeric * 281479271743489 - 9223372036854775808 FROM unnest(v) WITH ORDINALITY u(e, i) ORDER BY i)::int8[] AS a8 FROM code_values;
ALTER TABLE code_sets ALTER a4 SET STORAGE EXTERNAL;

-- what plain SQL says, of int4; the other types have the same order of elements
CREATE TABLE code_expected AS
SELECT x.s AS s, y.s AS t, array(SELECT unnest(x.a4) INTERSECT SELECT unnest(y.a4) ORDER BY 1) AS i, array(SELECT unnest(x.a4) UNION SELECT unnest(y.a4) ORDER BY 1) AS u,
	array(SELECT unnest(x.a4) EXCEPT SELECT unnest(y.a4) ORDER BY 1) AS e, (SELECT count(DISTINCT e) FROM unnest(x.a4) e) AS n, (SELECT count(DISTINCT e) FROM unnest(y.a4) e) AS m
FROM code_sets x, code_sets y WHERE (x.s * 7 + y.s * 3) % 4 = 0;
CREATE FUNCTION code_wide(a int2[]) RETURNS int4[] LANGUAGE sql IMMUTABLE AS 'SELECT array(SELECT (e + 32768::int8) * 65537 - 2147483648 FROM unnest(a) WITH ORDINALITY u(e, i) ORDER BY i)::int4[]';
CREATE FUNCTION code_narrow(a int8[]) RETURNS int4[] LANGUAGE sql IMMUTABLE AS 'SELECT array(SELECT (e + 9223372036854775808::numeric) / 281479271743489 * 65537 - 2147483648 FROM unnest(a) WITH ORDINALITY u(e, i) ORDER BY i)::int4[]';
CREATE FUNCTION code_check(code text) RETURNS text LANGUAGE sql AS $$
	SELECT set_config('gpujoin.set_code', code, false) || ': ' || concat_ws(', ', count(*),
		'different ' || count(*) FILTER (WHERE gpu_intersect(x.a4, y.a4) <> r.i OR gpu_union(x.a4, y.a4) <> r.u OR gpu_except(x.a4, y.a4) <> r.e OR gpu_intersect_count(x.a4, y.a4) <> cardinality(r.i)),
		'int2 ' || count(*) FILTER (WHERE code_wide(gpu_intersect(x.a2, y.a2)) <> r.i OR code_wide(gpu_union(x.a2, y.a2)) <> r.u OR code_wide(gpu_except(x.a2, y.a2)) <> r.e OR gpu_intersect_count(x.a2, y.a2) <> cardinality(r.i)),
		'dense ' || count(*) FILTER (WHERE code_wide(gpu_intersect(x.d4, y.d4)::int2[]) <> r.i OR code_wide(gpu_union(x.d4, y.d4)::int2[]) <> r.u OR code_wide(gpu_except(x.d4, y.d4)::int2[]) <> r.e OR gpu_intersect_count(x.d4, y.d4) <> cardinality(r.i)),
		'int8 ' || count(*) FILTER (WHERE code_narrow(gpu_intersect(x.a8, y.a8)) <> r.i OR gpu_intersect_count(x.a8, y.a8) <> cardinality(r.i) OR cardinality(gpu_union(x.a8, y.a8)) <> cardinality(r.u) OR code_narrow(gpu_except(x.a8, y.a8)) <> r.e),
		'tests ' || count(*) FILTER (WHERE gpu_overlaps(x.a4, y.a4) <> (r.i <> '{}') OR gpu_contains(x.a8, y.a8) <> (cardinality(r.i) = r.m) OR gpu_overlaps(x.a8, y.a8) <> (r.i <> '{}') OR gpu_contains(x.a2, y.a2) <> (cardinality(r.i) = r.m)),
		'similarities ' || count(*) FILTER (WHERE cardinality(r.u) > 0 AND (gpu_jaccard(x.a4, y.a4) <> cardinality(r.i) / cardinality(r.u)::float8 OR gpu_dice(x.d4, y.d4) <> 2 * cardinality(r.i) / (r.n + r.m)::float8 OR gpu_jaccard(x.a8, y.a8) <> cardinality(r.i) / cardinality(r.u)::float8)),
		'sets ' || count(*) FILTER (WHERE cardinality(gpu_set_normalize(x.a4)) <> r.n OR gpu_set_normalize(x.a8) <> gpu_union(x.a8, '{}') OR cardinality(gpu_set_normalize(x.a2)) <> r.n))
	FROM code_expected r JOIN code_sets x ON x.s = r.s JOIN code_sets y ON y.s = r.t
$$;
-- a processor without one of these uses what it has
SELECT code_check(c) FROM unnest('{auto,plain,neon,avx2,avx512}'::text[]) c;
SELECT set_config('gpujoin.set_code', c, false), (SELECT md5(string_agg(x::text, ';')) = md5(string_agg(y::text, ';')) FROM (SELECT gpu_union_agg(a4) AS x, gpu_union_agg(gpu_set_normalize(a4)) AS y FROM code_sets GROUP BY s % 3) z),
	(SELECT gpu_intersect_agg(d4) FROM code_sets WHERE s IN (9, 12, 13)) = (SELECT gpu_intersect(gpu_intersect(a.d4, b.d4), c.d4) FROM code_sets a, code_sets b, code_sets c WHERE a.s = 9 AND b.s = 32 AND c.s = 33)
FROM unnest('{plain,avx2,avx512}'::text[]) c;
RESET gpujoin.set_code;

-- variables of PL/pgSQL, as they were assigned and changed; dimensions and short headers
DO $$
DECLARE
	a int[]; b int[]; s int8[];
BEGIN
	SELECT a4 INTO a FROM code_sets WHERE code_sets.s = 31;
	SELECT a4 INTO b FROM code_sets WHERE code_sets.s = 32;
	RAISE NOTICE '%', (SELECT gpu_intersect(a, b) = i FROM code_expected e WHERE e.s = 31 AND t = 32) IS NOT FALSE;
	a[1] := -7; b[2] := -7; a[3] := a[4];
	RAISE NOTICE '% %', gpu_intersect(a, b) @> ARRAY[-7], gpu_intersect(a, b) = array(SELECT unnest(a) INTERSECT SELECT unnest(b) ORDER BY 1);
	s := '{3,1}'; s[5] := 9; s[3] := 2; s[4] := 2;
	RAISE NOTICE '%', gpu_intersect(s, '{{9,1},{2,4}}');
	s[7] := 1;
	RAISE NOTICE '%', gpu_union(s, '{}');
EXCEPTION WHEN null_value_not_allowed THEN
	RAISE NOTICE '%', sqlerrm;
END $$;
CREATE TABLE code_short (a int8[], b int8[], c int2[]);
INSERT INTO code_short VALUES ('{{1,9223372036854775807},{-9223372036854775808,5}}', '[7:9]={5,-9223372036854775808,6}', '{32767,-32768,0}');
SELECT pg_column_size(a) < 126, gpu_intersect(a, b), gpu_union(a, b), gpu_except(a, b), gpu_union(c, c), gpu_intersect_count(c, '{-32768,-32768,7}'), gpu_contains(a, '{5}') FROM code_short;
DROP TABLE code_values, code_sets, code_expected, code_short;
DROP FUNCTION code_check, code_wide, code_narrow;
CREATE ROLE code_nobody;
SET ROLE code_nobody;
SET gpujoin.set_code = plain;
RESET ROLE;
DROP ROLE code_nobody;

-- large arrays go from TOAST to the device in parts, if they are not compressed; what fails there is read whole
RESET gpujoin.enabled;
CREATE TABLE code_large (a int[], b int[], c int8[], packed int[], nulls int[], two int[]);
ALTER TABLE code_large ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL, ALTER nulls SET STORAGE EXTERNAL, ALTER two SET STORAGE EXTERNAL;
INSERT INTO code_large SELECT array_agg(i * 3 ORDER BY i), array_agg(i * 5 ORDER BY i % 1000, i), array_agg(i * 10000000000 ORDER BY i), array_agg(i * 15 % 3000 ORDER BY i), array_agg(NULLIF(i, 299999) ORDER BY i), NULL FROM generate_series(1, 700000) i;
UPDATE code_large SET two = (SELECT array_agg(ARRAY[i, -i]) FROM generate_series(1, 300000) i);
CREATE FUNCTION code_large() RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', cardinality(gpu_intersect(a, b)), cardinality(gpu_union(a, b)), cardinality(gpu_except(b, a)), gpu_intersect_count(a, packed), gpu_intersect_count(packed, b),
		gpu_intersect_count(c, c), gpu_intersect_count(two, a), gpu_overlaps(c, '{15,20000000000}'), gpu_contains(b, '{5,10}'), gpu_contains('{5,10}', b), gpu_intersect_count(a, '{}'),
		md5(gpu_intersect(a, b)::text), md5(gpu_union(two, b)::text)) FROM code_large
$$;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT code_large();
SET gpujoin.set_device_min_elements = 0;
CREATE TEMPORARY TABLE code_stat AS SELECT * FROM gpujoin_stat;
SELECT code_large();
SELECT outcome, s.count - coalesce(b.count, 0) FROM gpujoin_stat s LEFT JOIN code_stat b USING (datid, outcome) WHERE s.count <> coalesce(b.count, 0);
SELECT gpu_intersect_count(a, nulls) FROM code_large;
SET gpujoin.fail_at = 'probe';
SELECT code_large();
RESET gpujoin.fail_at;
RESET gpujoin.set_device_min_elements;
DROP TABLE code_large, code_stat;
DROP FUNCTION code_large;
