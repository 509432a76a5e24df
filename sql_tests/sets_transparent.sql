-- Joins on integer arrays: core's operators, intarray's, and comparisons of gpujoin's functions as set joins.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE FUNCTION set_same(query text) RETURNS text LANGUAGE sql AS $$ SELECT gj_same(query) || ': ' || gj_steps(query) $$;

-- every shape of array; no NULL elements but in `n`
CREATE TABLE s4 (id int, g int, s int[], n int[]);
INSERT INTO s4 SELECT i, i % 7, ARRAY(SELECT (i * 7919 + j * j * 31) % (10 + i % 90) FROM generate_series(1, i * 13 % 11) j), NULL
	FROM generate_series(1, 300) i;
INSERT INTO s4 VALUES (301, 1, NULL), (302, 2, '{}'), (303, 3, '{{1,2},{3,4}}'), (304, 4, '{5,5,5,1,1}'), (305, 5, '[7:9]={1,2,3}'),
	(306, 6, '{2147483647,-2147483648,0}'), (307, 0, '{-2147483648}'), (308, NULL, '{{{9}},{{1}}}'), (309, 1, '{}');
UPDATE s4 SET n = CASE id % 5 WHEN 0 THEN s || NULL::int WHEN 1 THEN NULL::int || s WHEN 2 THEN ARRAY[NULL, NULL]::int[] ELSE s END;
CREATE TABLE s2 AS SELECT id, g, ARRAY(SELECT x::int2 FROM unnest(s) x WHERE abs(x::int8) < 30000) s FROM s4;
CREATE TABLE s8 AS SELECT id, g, ARRAY(SELECT x::int8 * 2147483648 + x % 3 FROM unnest(s) x) s FROM s4;
UPDATE s2 SET s = NULL WHERE id % 31 = 0;
UPDATE s8 SET s = NULL WHERE id % 37 = 0;
VACUUM ANALYZE s4, s2, s8;

-- core's operators
SELECT op, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s %s b.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT op, set_same(format('SELECT a.id, b.id FROM s2 a JOIN s2 b ON a.s %s b.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT op, set_same(format('SELECT a.id, b.id FROM s8 a JOIN s8 b ON a.s %s b.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT op, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.n %s b.n', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT op, set_same(format('SELECT a.id, b.id, b.s FROM s4 a JOIN s4 b ON b.n %s a.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT set_same('SELECT a.id, b.id FROM s4 a, s4 b WHERE arraycontains(a.n, b.n) AND a.id < 20');
SELECT gj_plan('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.id < b.id');
-- equality is a hash join; other array types are PostgreSQL's
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s = b.s');
SELECT set_same('SELECT count(*) FROM (SELECT id, s::text[] s FROM s4 WHERE id < 50) a JOIN (SELECT id, s::text[] s FROM s4 WHERE id < 50) b ON a.s && b.s');

-- gpujoin's functions
SELECT f, set_same(format('SELECT a.id, b.id, %1$s(a.s, b.s) FROM s4 a JOIN s4 b ON %1$s(a.s, b.s) >= 0.5', f))
	FROM unnest(ARRAY['gpu_jaccard', 'gpu_cosine', 'gpu_dice', 'gpu_overlap_coefficient', 'gpu_containment']) f;
SELECT t, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_jaccard(a.s, b.s) %s WHERE a.id %% 4 = 2 OR a.id > 300', t))
	FROM unnest(ARRAY['> 0.5', '>= 1', '> 1', '>= 0', '> 0', '>= -1', '> -1', '>= 0.3333333333333333', '> 0.3333333333333333', '>= 1.0 / 3',
					  '>= ''NaN''', '> ''NaN''', '>= ''Infinity''', '> ''-Infinity''', '> ''Infinity''', '>= NULL']) t;
SELECT t, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_intersect_count(a.s, b.s) %s WHERE a.id %% 4 = 2 OR a.id > 300', t))
	FROM unnest(ARRAY['>= 3', '> 3', '>= 0', '> 0', '>= -5', '> -1', '>= 3::int8', '> 2::int2', '>= 9223372036854775807', '> 2147483647']) t;
SELECT t, set_same(format('SELECT a.id, b.id FROM s8 a JOIN s8 b ON %s', t))
	FROM unnest(ARRAY['3 <= gpu_intersect_count(a.s, b.s)', '3 < gpu_intersect_count(b.s, a.s)', '0.5 <= gpu_jaccard(a.s, b.s)', '0.5 < gpu_dice(b.s, a.s)',
					  'gpu_overlaps(a.s, b.s)', 'gpu_contains(a.s, b.s)', 'gpu_contains(b.s, a.s)']) t;
-- comparisons that are no lower bound
SELECT t, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.g = b.g AND gpu_jaccard(a.s, b.s) %s', t))
	FROM unnest(ARRAY['< 0.5', '<= 0.5', '= 0.5', '<> 1', '>= a.id']) t;
-- NULL elements are errors there, where PostgreSQL looks at them
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_overlaps(a.n, b.n)');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_jaccard(a.n, b.n) > 0.5 AND a.id % 5 > 2 AND b.id % 5 > 2');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_jaccard(a.n, b.n) > 0.5 AND a.id < 0');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_jaccard(a.n, b.n) > ''Infinity''');

-- functions of the same names are not those
CREATE SCHEMA other;
CREATE FUNCTION other.gpu_jaccard(a int[], b int[]) RETURNS float8 LANGUAGE sql IMMUTABLE RETURN 0.7;
CREATE FUNCTION other.gpu_overlaps(a int[], b int[]) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a[1] = b[1]; END';
CREATE FUNCTION other.odd(a int[], b int[]) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a[1] > b[1]; END';
CREATE OPERATOR other.&& (LEFTARG = int[], RIGHTARG = int[], FUNCTION = other.odd);
CREATE FUNCTION other.mine(a int[], b int[]) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'array_eq';
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.g = b.g AND other.gpu_jaccard(a.s, b.s) >= 0.8');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.g = b.g AND other.gpu_overlaps(a.s, b.s)');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.g = b.g AND a.s OPERATOR(other.&&) b.s');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.g = b.g AND other.mine(a.s, b.s)');
-- a function under another name that is gpujoin's
ALTER FUNCTION gpu_overlaps(int[], int[]) RENAME TO renamed;
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON renamed(a.s, b.s)');
ALTER FUNCTION renamed(int[], int[]) RENAME TO gpu_overlaps;

-- with other conditions
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.id < b.id');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.g = b.g');
-- who compares the arrays of few pairs depends on the device; of the long ones below it is PostgreSQL
SELECT gj_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.id = b.id + 1');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.g + b.g = 5 WHERE a.id % 3 = 0 AND b.g IS NOT NULL');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND a.n && b.n');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s AND cardinality(a.n) < b.g');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s OR a.id = b.id');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON NOT a.s && b.s AND a.g = b.g');
-- slices and other expressions are a child plan's
SELECT set_same('SELECT a.id, b.id FROM (SELECT id, s[1:2] s FROM s4 OFFSET 0) a JOIN (SELECT id, s[2:3] s FROM s4 OFFSET 0) b ON a.s && b.s');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s[1:2] && b.s AND a.g = b.g');
SELECT set_same('SELECT a.g, b.id FROM (SELECT g, array_agg(id) s FROM s4 GROUP BY g) a JOIN s4 b ON a.s && b.s');
SELECT set_same('SELECT v.i, b.id FROM (VALUES (1, ARRAY[1, 2]), (2, ARRAY[3, NULL]), (3, ''{}''), (4, NULL)) v (i, s) JOIN s4 b ON v.s <@ b.s');
-- constants are filters of one table
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s WHERE a.s && ''{1,2}'' AND b.s @> ''{3}''');
-- domains
CREATE DOMAIN tags AS int[] CHECK (cardinality(VALUE) < 100);
CREATE TABLE sd AS SELECT id, s::tags s FROM s4;
SELECT set_same('SELECT a.id, b.id FROM sd a JOIN sd b ON a.s && b.s');
SELECT set_same('SELECT a.id, b.id FROM sd a JOIN s4 b ON gpu_jaccard(a.s, b.s) > 0.4');

-- several joins, before and after
SELECT set_same('SELECT a.id, b.id, c.id FROM s4 a JOIN s4 b ON a.s @> b.s JOIN s4 c ON c.id = b.id + a.g');
SELECT set_same('SELECT a.id, b.id, c.id FROM s4 a JOIN s4 b ON a.id = b.id + 1 JOIN s4 c ON c.s <@ b.s AND c.g = a.g');
SELECT set_same('SELECT count(*), sum(a.g + b.g), min(c.id) FROM s4 a JOIN s4 b ON a.s && b.s JOIN s4 c ON c.s @> b.s WHERE a.id < 40 AND b.id < 40');
SELECT set_same('SELECT a.id, b.id, c.id FROM s4 a JOIN s2 b ON a.g = b.g JOIN s2 c ON b.s && c.s WHERE a.id < 30 AND b.id < 50');

-- aggregates and groups above
SELECT set_same('SELECT count(*) FROM s4 a JOIN s4 b ON a.s && b.s');
SELECT set_same('SELECT a.g, count(*), sum(b.id), max(b.id - a.id) FROM s4 a JOIN s4 b ON a.s && b.s AND a.id <> b.id GROUP BY a.g');
SELECT set_same('SELECT a.id, count(*) FROM s4 a JOIN s4 b ON gpu_jaccard(a.s, b.s) >= 0.4 GROUP BY a.id HAVING count(*) > 2');
SELECT set_same('SELECT a.id, sum(gpu_intersect_count(a.s, b.s)), max(gpu_jaccard(a.s, b.s)) FROM s4 a JOIN s4 b ON a.s && b.s GROUP BY a.id');
SELECT set_same('SELECT gpu_intersect_count(a.s, b.s), count(*), count(*) FILTER (WHERE gpu_dice(b.s, a.s) > 0.5), max(gpu_dice(b.s, a.s)), count(gpu_contains(a.s, b.s)) FROM s4 a JOIN s4 b ON gpu_jaccard(a.s, b.s) > 0 GROUP BY 1');
SELECT set_same('SELECT count(*) FILTER (WHERE gpu_contains(a.s, b.s)), count(*) FILTER (WHERE gpu_contains(b.s, a.s)), count(*) FILTER (WHERE gpu_overlaps(b.s, a.s)), sum(gpu_intersect_count(a.s, b.s)) FROM s4 a JOIN s4 b ON gpu_intersect_count(a.s, b.s) >= 0 AND a.id % 4 = 1');
SELECT set_same('SELECT c.g, max(gpu_cosine(a.s, b.s)), min(gpu_overlap_coefficient(a.s, b.s)), count(c.id) FROM s4 a JOIN s4 b ON a.s && b.s LEFT JOIN s2 c ON c.id = a.id + b.id GROUP BY c.g');
SELECT set_same('SELECT count(*), sum(gpu_intersect_count(a.s, b.s)), count(gpu_jaccard(a.s, b.s)), count(b.id) FROM s8 a LEFT JOIN s8 b ON gpu_jaccard(a.s, b.s) >= 0.5 AND a.id < b.id');
SELECT set_same('SELECT count(*), sum(gpu_intersect_count(a.s, b.s)), count(b.id) FROM s8 a RIGHT JOIN s8 b ON gpu_jaccard(a.s, b.s) >= 0.5 AND a.id < b.id');
SELECT set_same('SELECT count(*), sum(gpu_intersect_count(a.s, b.s)), sum(gpu_intersect_count(b.s, c.s)) FROM s4 a JOIN s4 b ON gpu_contains(a.s, b.s) JOIN s4 c ON gpu_jaccard(b.s, c.s) > 0.7');
SELECT set_same('SELECT sum(gpu_intersect_count(a.n, b.n)) FROM s4 a JOIN s4 b ON a.n && b.n');
SELECT set_same('SELECT sum(gpu_intersect_count(a.n, b.n)) FROM s4 a JOIN s4 b ON a.n && b.n WHERE a.id % 5 > 2 AND b.id % 5 > 2');
SELECT set_same('SELECT DISTINCT a.g, b.g FROM s4 a JOIN s4 b ON a.s && b.s');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON gpu_jaccard(a.s, b.s) >= 0.2 AND a.id < b.id ORDER BY gpu_jaccard(a.s, b.s) DESC, a.id, b.id LIMIT 10');
SELECT set_same('SELECT a.id, b.id, a.s, b.n FROM s4 a JOIN s4 b ON a.s <@ b.s');

-- outer, semi and anti joins
SELECT kind, set_same(format('SELECT a.id, b.id FROM s4 a %s JOIN s2 c ON a.id = c.id + 250 JOIN s4 b ON a.s && b.s', kind)) FROM unnest(ARRAY['LEFT', 'INNER']) kind;
SELECT kind, set_same(format('SELECT a.id, b.id FROM s4 a %s JOIN (SELECT * FROM s4 WHERE id %% 10 = 0) b ON a.s @> b.s AND a.id <> b.id', kind)) FROM unnest(ARRAY['LEFT', 'RIGHT']) kind;
SELECT kind, set_same(format('SELECT a.id, b.id FROM s4 a %s JOIN (SELECT * FROM s4 WHERE id %% 10 = 0) b ON gpu_jaccard(a.s, b.s) > 0.6', kind)) FROM unnest(ARRAY['LEFT', 'RIGHT']) kind;
SELECT kind, set_same(format('SELECT count(*) FROM s4 a %s JOIN (SELECT * FROM s4 WHERE id %% 10 = 0) b ON a.s && b.s', kind)) FROM unnest(ARRAY['LEFT', 'RIGHT']) kind;
SELECT set_same('SELECT id FROM s4 a WHERE EXISTS (SELECT 1 FROM s4 b WHERE a.s && b.s AND a.id <> b.id AND b.id % 10 = 0)');
SELECT set_same('SELECT id FROM s4 a WHERE NOT EXISTS (SELECT 1 FROM s4 b WHERE a.s && b.s AND b.id % 10 = 0)');
SELECT set_same('SELECT id FROM s4 a WHERE NOT EXISTS (SELECT 1 FROM s4 b WHERE a.s @> b.s AND a.id <> b.id)');
SELECT set_same('SELECT count(*), sum(id) FROM s2 a WHERE EXISTS (SELECT 1 FROM s2 b WHERE gpu_intersect_count(a.s, b.s) >= 4 AND a.id < b.id)');
SELECT set_same('SELECT a.id, b.id FROM s4 a LEFT JOIN s4 b ON a.s @> b.s AND a.n @> b.n AND a.g = b.g');

-- every technique
SELECT a, (SELECT string_agg(set_same(q), E'\n') FROM (VALUES
	('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s && b.s'), ('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.n @> b.n'),
	('SELECT a.id, b.id FROM s8 a JOIN s8 b ON gpu_jaccard(a.s, b.s) >= 0.3'), ('SELECT a.id, b.id FROM s2 a JOIN s2 b ON gpu_intersect_count(a.s, b.s) > -1')) q (q))
FROM unnest(ARRAY['merge_path', 'binary_search', 'hash', 'bitmap', 'inverted_index', 'matrix']) a, set_config('gpujoin.set_algorithm', a, false) c;
SET gpujoin.set_algorithm = bitmap;
SELECT * FROM gj_plan('SELECT count(*) FROM s4 a JOIN s4 b ON 0.8 < gpu_dice(b.s, a.s)') WHERE gj_plan LIKE '%Set%';
RESET gpujoin.set_algorithm;

-- parameters of prepared statements
SET plan_cache_mode = force_generic_plan;
PREPARE alike(float8) AS SELECT count(*), sum(a.id) FROM s4 a JOIN s4 b ON gpu_jaccard(a.s, b.s) >= $1;
EXECUTE alike(0.5); EXECUTE alike(1); EXECUTE alike(-1); EXECUTE alike(NULL);
PREPARE common(bigint, int) AS SELECT count(*), sum(a.id) FROM s4 a JOIN s4 b ON gpu_intersect_count(a.s, b.s) > $1 WHERE a.id < $2;
EXECUTE common(1, 1000); EXECUTE common(4, 100); EXECUTE common(NULL, 100);
SELECT gj_plan('EXECUTE alike(0.5)');
SET gpujoin.enabled = off;
EXECUTE alike(0.5); EXECUTE alike(1); EXECUTE alike(-1); EXECUTE alike(NULL);
EXECUTE common(1, 1000); EXECUTE common(4, 100); EXECUTE common(NULL, 100);
RESET gpujoin.enabled;
RESET plan_cache_mode;

-- rescans, subqueries, cursors
SELECT set_same('SELECT x, (SELECT count(*) FROM s4 a JOIN s4 b ON a.s && b.s WHERE a.id < x) FROM (VALUES (10), (20), (400)) v (x)');
SELECT set_same('WITH pairs AS MATERIALIZED (SELECT a.id x, b.id y FROM s4 a JOIN s4 b ON a.s @> b.s) SELECT x, count(*) FROM pairs WHERE y IN (SELECT x FROM pairs) GROUP BY x');
SELECT set_same('SELECT * FROM (VALUES (1), (2)) v (x), LATERAL (SELECT a.id FROM s4 a JOIN s4 b ON a.s @> b.s AND b.id % 10 = v.x) p');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s @> b.s AND a.id = 303;
FETCH 1 FROM c;
MOVE BACKWARD ALL IN c;
FETCH 1 FROM c;
COMMIT;

-- long arrays: compressed, out of line, longer than what the device takes
CREATE TABLE long (id int, s int[]);
INSERT INTO long SELECT i, ARRAY(SELECT (j * 7919 + i * 13) % 100000 FROM generate_series(1, i * 300) j) FROM generate_series(1, 20) i;
ANALYZE long;
SELECT set_same('SELECT count(*), sum(gpu_intersect_count(a.s, b.s)) FROM long a JOIN long b ON gpu_intersect_count(a.s, b.s) > 20');
SELECT set_same('SELECT a.id, b.id FROM long a JOIN long b ON a.s && b.s AND a.id = b.id');
SELECT set_same('SELECT a.id, b.id FROM long a JOIN s4 b ON a.s @> b.s AND b.id % 5 = 2');
INSERT INTO long SELECT 1000, array_agg(i) FROM generate_series(1, 20000) i;
SELECT set_same('SELECT a.id, b.id FROM long a JOIN s4 b ON a.s @> b.s AND b.id % 5 = 2');

-- many pairs, little memory
CREATE TABLE many AS SELECT i id, ARRAY[i % 3, i % 50 + 10, i % 1000 + 100] s FROM generate_series(1, 1000) i;
SELECT set_same('SELECT count(*), sum(a.id::int8 * b.id) FROM many a JOIN many b ON a.s && b.s');
SET gpujoin.device_memory_limit = '96MB';
SELECT set_same('SELECT count(*), sum(a.id::int8 * b.id) FROM many a JOIN many b ON a.s && b.s');
SELECT set_same('SELECT a.id, count(*) FROM many a LEFT JOIN many b ON a.s && b.s AND a.id < b.id GROUP BY a.id');
RESET gpujoin.device_memory_limit;

-- failures
SELECT f, set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s @> b.s WHERE a.id < 100') FROM unnest(ARRAY['submit', 'memory', 'build', 'probe', 'overflow', 'output']) f, set_config('gpujoin.fail_at', f, false) c;
RESET gpujoin.fail_at;
SET statement_timeout = 100;
SELECT count(*) FROM many a JOIN many b ON a.s && b.s JOIN many c ON a.s && c.s JOIN many d ON c.s && d.s;
RESET statement_timeout;

-- partitions
CREATE TABLE parted (id int, s int[]) PARTITION BY RANGE (id);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (150);
CREATE TABLE parted2 (x text, s int[], id int);
ALTER TABLE parted2 DROP COLUMN x;
ALTER TABLE parted ATTACH PARTITION parted2 FOR VALUES FROM (150) TO (1000);
INSERT INTO parted SELECT id, s FROM s4;
SELECT set_same('SELECT a.id, b.id FROM parted a JOIN parted b ON a.s && b.s');
DROP TABLE parted;

-- resident arrays; changed ones
VACUUM many;
SELECT gpujoin_prewarm('many');
SELECT set_same('SELECT count(*) FROM many a JOIN many b ON a.s @> b.s');
UPDATE many SET s = s || 7 WHERE id % 100 = 0;
SELECT set_same('SELECT count(*) FROM many a JOIN many b ON a.s @> b.s');

-- security: a barrier's conditions come first
CREATE VIEW safe WITH (security_barrier) AS SELECT * FROM s4 WHERE g < 3;
SELECT gj_equal('SELECT a.id, b.id FROM safe a JOIN safe b ON gpu_overlaps(a.n, b.n)');
SELECT gj_equal('SELECT a.id, b.id FROM safe a JOIN s4 b ON a.s && b.s');

-- intarray
SET client_min_messages = warning;
CREATE EXTENSION intarray;
RESET client_min_messages;
SELECT op, set_same(format('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.s %s b.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT op, set_same(format('SELECT a.id, b.id FROM s8 a JOIN s8 b ON a.s %s b.s', op)) FROM unnest(ARRAY['&&', '@>', '<@']) op;
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.n && b.n');
SELECT set_same('SELECT a.id, b.id FROM s4 a JOIN s4 b ON a.n && b.n AND a.id % 5 > 2 AND b.id % 5 > 2');
DROP EXTENSION intarray;

DROP VIEW safe;
SET client_min_messages = warning;
DROP SCHEMA other CASCADE;
DROP TABLE s4, s2, s8, sd, long, many;
DROP DOMAIN tags;
RESET client_min_messages;
DROP FUNCTION set_same;
