-- Membership tables: joins that only count what two sets have in common, as set joins that make no joined rows.
LOAD 'gpujoin';
CREATE SCHEMA membership;
SET search_path = membership, public;
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
-- a technique that was asked for is used whatever it costs; the device of this run may be any
SET gpujoin.set_algorithm = inverted_index;

-- who ran the query, and the algorithms of its steps
CREATE FUNCTION member_steps(query text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(s->>'Algorithm', ', '), 'no step')
	FROM gj_staged_nodes(query) n, jsonb_array_elements(n->'Joins') s
$$;
CREATE FUNCTION member_same(query text) RETURNS text LANGUAGE sql AS $$ SELECT gj_same(query) || ': ' || member_steps(query) $$;

-- m: duplicates, NULLs on both sides; u: neither
SELECT setseed(0.5);
CREATE TABLE m (id int, elem int, w int);
INSERT INTO m SELECT random() * 60, power(random(), 2) * 150, i % 10 FROM generate_series(1, 1500) i;
INSERT INTO m SELECT NULL, i, 1 FROM generate_series(1, 40) i;
INSERT INTO m SELECT i, NULL, 2 FROM generate_series(1, 40) i;
INSERT INTO m VALUES (NULL, 5, 3), (NULL, NULL, 4), (7, 7, 5), (7, 7, 6), (-2147483648, 1, 0), (2147483647, -2147483648, 0), (2147483647, 2147483647, 0);
CREATE TABLE u (id int NOT NULL, elem int NOT NULL, w int, PRIMARY KEY (id, elem));
INSERT INTO u SELECT DISTINCT ON (id, elem) id, elem, w FROM m WHERE id IS NOT NULL AND elem IS NOT NULL;
-- of other types
CREATE TABLE m2 AS SELECT id::int2, elem::int2, w FROM m WHERE (id BETWEEN 0 AND 30000 OR id IS NULL) AND (elem BETWEEN 0 AND 30000 OR elem IS NULL);
CREATE TABLE m8 AS SELECT id::int8 * 1000000007 AS id, elem::int8, w FROM m;
CREATE TABLE md AS SELECT date '2026-01-01' + id % 1000 AS id, elem::oid, elem::text AS name, elem::float8 AS f, elem::numeric(9, 2) AS n FROM m WHERE elem IS NULL OR elem BETWEEN 0 AND 1000;
CREATE TABLE none (id int, elem int);
VACUUM ANALYZE m, u, m2, m8, md, none;

SELECT gj_plan('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3');

-- the form
SELECT t, member_same(format('SELECT a.id, b.id, count(*) FROM %1$s a JOIN %1$s b USING (elem) GROUP BY a.id, b.id', t)) FROM unnest(ARRAY['m', 'u', 'm2', 'm8', 'none']) t;
SELECT t, member_same(format('SELECT a.id, b.id, count(*) FROM %1$s a JOIN %1$s b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3', t))
	FROM unnest(ARRAY['m', 'u', 'm2', 'm8', 'none']) t;
SELECT op, member_same(format('SELECT a.id, b.id, count(*) FROM m a, m b WHERE a.elem = b.elem AND a.id %s b.id GROUP BY b.id, a.id', op)) FROM unnest(ARRAY['<', '>', '<=', '>=', '<>', '=']) op;
SELECT op, member_same(format('SELECT a.id, b.id, count(*) FROM m a, m b WHERE a.elem = b.elem AND b.id %s a.id GROUP BY a.id, b.id HAVING count(*) > 2', op)) FROM unnest(ARRAY['<', '>']) op;
SELECT h, member_same('SELECT a.id AS x, b.id AS y, count(*) FROM u a JOIN u b USING (elem) WHERE a.id <> b.id GROUP BY a.id, b.id HAVING ' || h)
	FROM unnest(ARRAY['count(*) > 4', 'count(*) = 4', '4 <= count(*)', '4 < count(*)', '4 = count(*)', 'count(*) < 4', 'count(*) BETWEEN 3 AND 5', 'count(*) <> 2', 'count(*) >= NULL', 'count(*) >= 0',
		'count(*) > -1', 'count(*) >= -9223372036854775808', 'count(*) >= 9223372036854775807', 'count(*) > 2147483647', 'count(*) >= 3::int2', 'count(*) >= 2.5', 'count(*) >= 2.5::float8',
		'count(*) >= a.id', 'count(*) >= 3 OR a.id = 5', 'count(*) / (a.id::int8 - 5) < 2 AND count(*) >= 1000', 'count(*) >= 1000 AND count(*) / (a.id::int8 - 5) < 2', 'count(*) >= 2 AND count(a.elem) > 3', 'count(*) >= 3 AND a.id + b.id < 50', 'NOT count(*) < 4', 'sum(1) > 3', '1 + count(*) >= 5']) h;
SELECT c, member_same(format('SELECT a.id, b.id, %s FROM m a JOIN m b ON a.elem = b.elem GROUP BY a.id, b.id', c))
	FROM unnest(ARRAY['count(a.elem)', 'count(b.elem)', 'count(1)', 'count(*), count(a.elem), count(*) * 2', '1', 'count(NULL)', 'count(a.id)', 'count(a.w)', 'count(DISTINCT a.elem)', 'count(*) FILTER (WHERE a.w > 2)',
		'sum(a.w)', 'count(*), max(b.elem)', 'array_agg(a.elem ORDER BY a.elem)']) c;
SELECT member_same('SELECT DISTINCT a.id, b.id FROM m a JOIN m b USING (elem)');
SELECT member_same('SELECT a.id FROM m a JOIN m b USING (elem) WHERE a.id > b.id GROUP BY a.id, b.id');
SELECT member_same('SELECT count(*), sum(c), max(c) FROM (SELECT count(*) AS c FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3) x');

-- other tables, types and keys
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN u b USING (elem) GROUP BY a.id, b.id HAVING count(*) >= 3');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m2 a JOIN m8 b USING (elem) GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m8 a JOIN m b ON b.elem = a.elem WHERE a.id > b.id GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m2 b ON a.elem = b.elem + 1 GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b ON a.elem % 7 = b.elem % 7 WHERE a.id < b.id GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b ON 10 / a.elem = 10 / b.elem WHERE a.id < b.id GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM md a JOIN md b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 2');
SELECT member_same('SELECT a.id, b.elem, count(*) FROM m a JOIN m b USING (w) GROUP BY a.id, b.elem');
SELECT k, member_same(format('SELECT a.id, b.id, count(*) FROM md a JOIN md b USING (%s) WHERE a.id < b.id GROUP BY a.id, b.id', k)) FROM unnest(ARRAY['name', 'f', 'n']) k;
SELECT member_same('SELECT a.name, b.name, count(*) FROM md a JOIN md b USING (elem) GROUP BY a.name, b.name');

-- other conditions
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id AND a.w > 3 GROUP BY a.id, b.id HAVING count(*) >= 2');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id AND a.w > 3 AND b.w > 3 GROUP BY a.id, b.id HAVING count(*) >= 2');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id > b.id AND a.elem < 100 AND a.id IN (1, 2, 3, 50) GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id + 1 < b.id AND a.id % 3 = b.id % 3 GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id AND a.id <> b.id - 1 GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id IS NOT DISTINCT FROM b.id GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id IS NULL OR b.id IS NULL GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE 10 / (a.id::int8 - b.id) < 5 GROUP BY a.id, b.id HAVING count(*) >= 1000');
-- of which the step is not: other rows decide, or are asked for
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.w < b.w GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem, w) GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a LEFT JOIN m b USING (elem) GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) JOIN u c ON c.id = a.id AND c.elem = 3 GROUP BY a.id, b.id');
SELECT member_same('SELECT a.id, a.w, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id, a.w');
SELECT member_same('SELECT a.id, b.id, a.w, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id, b.id, a.w');
SELECT member_same('SELECT a.id, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) GROUP BY GROUPING SETS ((a.id), (b.id))');

-- the first ones
SELECT member_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id ORDER BY count(*) DESC, a.id, b.id LIMIT 7');
SELECT member_same('SELECT count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id ORDER BY count(*) DESC LIMIT 10 OFFSET 3');
SELECT member_same('SELECT count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id ORDER BY count(*) DESC FETCH FIRST 5 ROWS WITH TIES');
SELECT member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id, b.id HAVING count(*) >= 3 ORDER BY count(*), a.id NULLS FIRST, b.id LIMIT 20');

-- every technique, where duplicates leave a choice
SELECT s, set_config('gpujoin.set_algorithm', s, false) = s, gj_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3'),
	gj_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE a.w > 1 GROUP BY a.id, b.id'), gj_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id, b.id HAVING count(*) >= 5')
	FROM unnest(ARRAY['merge_path', 'binary_search', 'hash', 'bitmap', 'matrix', 'inverted_index']) s;
-- every join algorithm
SELECT s, set_config('gpujoin.algorithm', s, false) = s, member_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3')
	FROM unnest(ARRAY['hash', 'sort_merge', 'nested_loop', 'auto']) s;

-- parameters
PREPARE pairs(int) AS SELECT count(*), sum(c) FROM (SELECT count(*) AS c FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= $1) x;
SET plan_cache_mode = force_generic_plan;
SELECT member_steps('EXECUTE pairs(3)');
EXECUTE pairs(1);
EXECUTE pairs(4);
EXECUTE pairs(0);
EXECUTE pairs(NULL);
SET gpujoin.enabled = off;
EXECUTE pairs(1);
EXECUTE pairs(4);
EXECUTE pairs(0);
EXECUTE pairs(NULL);
RESET gpujoin.enabled;
RESET plan_cache_mode;
SELECT member_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= (SELECT min(w) + 4 FROM u)');
SELECT member_same('SELECT x, (SELECT count(*) FROM (SELECT FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= x) p) FROM generate_series(2, 4) x');

-- changes that only this transaction sees
BEGIN;
DELETE FROM u WHERE id % 2 = 0;
INSERT INTO u SELECT 1000 + i % 3, i FROM generate_series(1, 60) i;
SELECT member_same('SELECT a.id, b.id, count(*) FROM u a JOIN u b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 2');
ROLLBACK;
-- partitions, views, plans as sources
CREATE TABLE p (id int, elem int) PARTITION BY HASH (id);
CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO p SELECT id, elem FROM m;
VACUUM ANALYZE p;
CREATE VIEW v AS SELECT id, elem FROM m WHERE w > 1;
SELECT t, member_same(format('SELECT a.id, b.id, count(*) FROM %1$s a JOIN %1$s b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 2', t))
	FROM unnest(ARRAY['p', 'v', '(SELECT id, elem FROM m ORDER BY id, elem LIMIT 800)', '(SELECT DISTINCT id, elem FROM m)']) t;
-- where nothing else is known the cost decides; the rows are the same
RESET gpujoin.set_algorithm;
SELECT gj_equal('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3');
RESET gpujoin.force;
-- so many joined rows that the set join costs least, however slowly a busy GPU was measured to sort
CREATE TABLE dense AS SELECT i % 1000 AS id, i / 1000 AS elem FROM generate_series(0, 99999) i WHERE i % 7 < 5;
VACUUM ANALYZE dense;
SELECT member_steps('SELECT a.id, b.id, count(*) FROM dense a JOIN dense b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 55');
SET gpujoin.force = on;
SELECT count(*), sum(c), max(c) FROM (SELECT count(*) AS c FROM dense a JOIN dense b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 55) x;

-- little memory: sides in parts
SET gpujoin.set_algorithm = inverted_index;
CREATE TABLE wide AS SELECT i % 300 AS id, (i::int8 * 7919 % 100003)::int AS elem FROM generate_series(1, 400000) i;
VACUUM ANALYZE wide;
SET gpujoin.device_memory_limit = '64MB';
SELECT member_same('SELECT a.id, b.id, count(*) FROM wide a JOIN wide b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 20');
SELECT member_same('SELECT a.id, b.id, count(*) FROM wide a JOIN wide b USING (elem) WHERE a.id <> b.id GROUP BY a.id, b.id HAVING count(*) >= 20');
SET gpujoin.device_memory_limit = '24MB';
SELECT gj_equal('SELECT a.id, b.id, count(*) FROM wide a JOIN wide b USING (elem) WHERE a.id > b.id GROUP BY a.id, b.id HAVING count(*) >= 20');
RESET gpujoin.device_memory_limit;
-- failures
SELECT s, set_config('gpujoin.fail_at', s, false) = s, gj_same('SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 3')
	FROM unnest(ARRAY['memory', 'build', 'probe', 'overflow', 'never']) s;

-- a subquery in HAVING is run for the first group, also where no group reaches the bound
CREATE TABLE sm_zero (z int);
INSERT INTO sm_zero VALUES (0);
SET gpujoin.enabled = off;
SELECT a.id, b.id FROM m a JOIN m b USING (elem) GROUP BY 1, 2 HAVING count(*) < (SELECT 1 / z FROM sm_zero) AND count(*) >= 1000000;
SET gpujoin.enabled = on;
SELECT a.id, b.id FROM m a JOIN m b USING (elem) GROUP BY 1, 2 HAVING count(*) < (SELECT 1 / z FROM sm_zero) AND count(*) >= 1000000;
DROP TABLE sm_zero;
