-- Stages: groups and aggregates of subqueries whose results stay in gpujoind for the query around them.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE o (ok int, ck int, st text, d date, price numeric(12,2));
INSERT INTO o SELECT i, i % 97, CASE WHEN i % 11 > 0 THEN 's' || i % 11 END, date '2026-01-01' + i % 50, i % 1000 / 8.0 FROM generate_series(1, 2000) i;
CREATE TABLE li (ok int, pk int, q numeric(12,2), n int8, f float8, g float4, b bool, c char(5), v varchar(9));
INSERT INTO li SELECT nullif(i / 4, 7), i % 41, nullif(i % 50, 13) + 0.25, i % 1000, i / 8.0, i % 5, i % 3 = 0, 'c' || i % 9, 'v' || i % 13 FROM generate_series(1, 9000) i;
CREATE TABLE p (pk int, name text);
INSERT INTO p SELECT i, 'p' || i FROM generate_series(0, 50) i;
CREATE TABLE none (ok int, pk int, q numeric(12,2));
VACUUM ANALYZE o, li, p, none;

-- the same rows, by whom, and how many sources of the topmost GpuJoin are results of stages
CREATE FUNCTION staged(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(query), ', stages: ',
				  (SELECT count(*) FROM jsonb_array_elements(gj_node(query)->'Sources') s WHERE s->>'Kind' = 'stage'))
$$;

-- joins with groups: keys and aggregates of all types, on both sides, in all joins
SELECT staged('SELECT o.ok, s.q, s.n FROM o JOIN (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ck, count(*), sum(s.q), max(s.n) FROM o JOIN (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok) s USING (ok) GROUP BY o.ck');
SELECT staged('SELECT p.name, s.* FROM p JOIN (SELECT pk, min(q) a, max(q) b, min(n) c, max(f) d, min(g) e, bool_or(b) h, sum(f) i, count(q) j, sum(n) k, count(DISTINCT n) l FROM li GROUP BY pk) s USING (pk)');
SELECT staged('SELECT o.ok, s.q FROM o LEFT JOIN (SELECT ok, sum(q) q FROM li WHERE pk < 5 GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q, s.n FROM o RIGHT JOIN (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q, s.n FROM o FULL JOIN (SELECT ok, sum(q) q, count(*) n FROM li WHERE pk < 3 GROUP BY ok) s USING (ok)');
SELECT staged('SELECT count(*) FROM o JOIN (SELECT c, count(*) n FROM li GROUP BY c) s ON o.st = ''s'' || s.n');
SELECT staged('SELECT s.c, t.v, s.n FROM (SELECT c, pk, count(*) n FROM li GROUP BY c, pk) s JOIN (SELECT v, pk, max(n) n FROM li GROUP BY v, pk) t USING (pk)');
SELECT staged('SELECT s.st, count(*) FROM li JOIN (SELECT st, min(ok) ok FROM o GROUP BY st) s USING (ok) GROUP BY s.st');
SELECT staged('SELECT s.d, s.st, t.n FROM (SELECT d, st, max(ok) ok FROM o GROUP BY d, st) s JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) t USING (ok)');
-- without a row, with one
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM none GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o LEFT JOIN (SELECT ok, sum(q) q FROM none GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.m FROM o JOIN (SELECT max(ok) m FROM li) s ON o.ok = s.m');
SELECT staged('SELECT o.ok, s.* FROM o, (SELECT max(ok) m, sum(q) q, count(*) n FROM none) s WHERE o.ok < 5 AND (s.m IS NULL OR s.n > o.ok)');

-- HAVING and conditions on the groups
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING sum(q) > 100 AND count(*) = 4) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok HAVING max(n) IS NOT NULL) s USING (ok) WHERE s.q / s.n > 20');
SELECT staged('SELECT o.ok, s.x FROM o JOIN (SELECT ok, sum(q) * 2 - 1 x, sum(q) IS NULL y FROM li GROUP BY ok) s USING (ok) WHERE s.x BETWEEN 100 AND 150 AND NOT y');
SELECT staged('SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok HAVING count(*) < 4) s USING (ok) WHERE 10 / (4 - s.n) > 3');
SELECT staged('SELECT o.ok FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok) WHERE 10 / (4 - s.n) > 3');

-- semi and anti joins with groups
SELECT staged('SELECT ok, price FROM o WHERE ok IN (SELECT ok FROM li GROUP BY ok HAVING sum(q) > 120)');
SELECT staged('SELECT count(*), sum(price) FROM o WHERE EXISTS (SELECT FROM (SELECT ok, sum(q) q FROM li GROUP BY ok) s WHERE s.ok = o.ok AND s.q > o.price)');
SELECT staged('SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING count(*) > 3) s WHERE s.ok = o.ok)');
SELECT staged('SELECT p.name, count(*) FROM p JOIN li USING (pk) WHERE li.ok IN (SELECT ok FROM li GROUP BY ok HAVING sum(q) > 120) GROUP BY p.name');

-- aggregates of aggregates, three deep
SELECT staged('SELECT n, count(*) FROM (SELECT ok, count(*) n FROM li GROUP BY ok) s GROUP BY n');
SELECT staged('SELECT n, count(*) FROM (SELECT ck, count(li.ok) n FROM o LEFT JOIN li USING (ok) GROUP BY ck) s GROUP BY n');
SELECT staged('SELECT count(*), sum(q), min(n), max(n), avg(q) FROM (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok) s');
SELECT staged('SELECT count(*) FROM (SELECT ok FROM li GROUP BY ok) s');
SELECT staged('SELECT c, count(*) FROM (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li GROUP BY ok) s GROUP BY n) t GROUP BY c');
SELECT staged('SELECT m, sum(n) FROM (SELECT ok % 10 m, count(*) n FROM li GROUP BY ok % 10) s GROUP BY m HAVING sum(n) > 900');
SELECT staged('SELECT avg(q), stddev(q), sum(DISTINCT n) FROM (SELECT ok, sum(q) q, count(*) n FROM li GROUP BY ok) s');

-- a stage that reads rows of PostgreSQL's plans, which are open to the query's end
SELECT staged('SELECT n, count(*) FROM (SELECT p.name, count(*) n FROM p JOIN (SELECT ok % 41 m FROM li ORDER BY pk, n, f LIMIT 500) t ON t.m = p.pk GROUP BY p.name) s GROUP BY n');
SELECT staged('SELECT o.ok, s.n FROM o LEFT JOIN (SELECT p.pk, count(*) n FROM p JOIN (SELECT ok % 41 m FROM li ORDER BY pk, n, f LIMIT 500) t ON t.m = p.pk GROUP BY p.pk HAVING count(*) > 3) s ON s.pk = o.ck');

-- distinct rows, views, a CTE that is read once
SELECT staged('SELECT o.ok FROM o JOIN (SELECT DISTINCT pk, c FROM li) s ON o.ok = s.pk');
SELECT staged('SELECT count(*) FROM (SELECT DISTINCT c, v FROM li) s');
CREATE VIEW revenue AS SELECT ok, sum(q) AS total FROM li GROUP BY ok;
SELECT staged('SELECT o.ok, total FROM o JOIN revenue USING (ok) WHERE total = (SELECT max(total) FROM revenue)');
SELECT staged('WITH r AS (SELECT ok, sum(q) q FROM li GROUP BY ok) SELECT o.st, sum(r.q) FROM o JOIN r USING (ok) GROUP BY o.st');

-- HAVING of groups that are returned, on the device where they are many
CREATE TABLE many AS SELECT g AS id, g / 3 AS k, (g % 100)::numeric(8,2) AS n, 't' || g % 7 AS t FROM generate_series(1, 150000) g;
ANALYZE many;
SELECT staged('SELECT k, count(*), sum(n), avg(n), min(id) FROM many GROUP BY k HAVING sum(n) > 290 AND count(*) = 3');
SELECT staged('SELECT k, sum(n) + 1, avg(n) * 2 FROM many GROUP BY k HAVING sum(n) > 280 ORDER BY 2 DESC, 1 LIMIT 5');
SELECT staged('SELECT k, t, max(n) FROM many GROUP BY k, t HAVING max(n) > (SELECT avg(n) * 1.95 FROM many)');
SELECT staged('SELECT k FROM many GROUP BY k HAVING stddev(n) > 40');
SELECT staged('SELECT k, row_number() OVER (ORDER BY k) FROM many GROUP BY k HAVING min(id) % 2 = 0 AND sum(n) < 5');
SELECT staged('SELECT k FROM many GROUP BY k HAVING 10 / (count(*) - 3) < 0');
DROP TABLE many;

-- orders and limits above; numerics keep their digits
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) ORDER BY s.q DESC, o.ok LIMIT 7');
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) ORDER BY s.q DESC NULLS LAST, o.ok');
SELECT s.q, s.x FROM o JOIN (SELECT ok, sum(q) q, sum(q) * 1.000 x FROM li GROUP BY ok) s USING (ok) WHERE ok = 20;

-- columns that PostgreSQL makes of others
SELECT staged('SELECT o.ok, s.a, s.b, s.c FROM o JOIN (SELECT ok, avg(q) a, avg(n) + 1 b, avg(pk) * 2 c FROM li GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.a FROM o LEFT JOIN (SELECT ok, avg(q) a FROM li WHERE pk < 9 GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.x, s.y, s.z FROM o LEFT JOIN (SELECT ok, coalesce(sum(q), 0) x, 7 y, CASE WHEN sum(q) IS NULL THEN -1 ELSE sum(q) / 4 END z FROM li WHERE pk < 9 GROUP BY ok) s USING (ok)');
SELECT staged('SELECT count(*), count(s.x), sum(s.x), count(s.y), count(s.z) FROM o LEFT JOIN (SELECT ok, coalesce(sum(q), 0) x, 7 y, sum(q) IS NULL z FROM li WHERE pk < 9 GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.x FROM o JOIN (SELECT ok, sum(q) / count(*) x FROM li GROUP BY ok) s USING (ok)');

-- over partitioned and inherited tables and UNION ALL, also as plan sources, whose plans exist twice
CREATE TABLE pt (ok int, pk int, q numeric(12,2), n int8) PARTITION BY RANGE (pk);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10);
CREATE TABLE pt2 (n int8, gone text, q numeric(12,2), pk int, ok int);
ALTER TABLE pt2 DROP COLUMN gone;
ALTER TABLE pt ATTACH PARTITION pt2 FOR VALUES FROM (10) TO (30);
CREATE TABLE pt3 PARTITION OF pt FOR VALUES FROM (30) TO (100) PARTITION BY HASH (ok);
CREATE TABLE pt3a PARTITION OF pt3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE pt3b PARTITION OF pt3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO pt SELECT ok, pk, q, n FROM li;
CREATE TABLE heir () INHERITS (p);
INSERT INTO heir SELECT pk + 30, name || 'b' FROM p WHERE pk > 40;
VACUUM ANALYZE pt, p, heir;
SELECT staged('SELECT o.ok, s.q, s.n FROM o JOIN (SELECT ok, sum(q) q, count(*) n FROM pt GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o LEFT JOIN (SELECT ok, sum(q) q FROM pt WHERE pk < 20 GROUP BY ok HAVING count(*) > 1) s USING (ok) ORDER BY 1');
SELECT staged('SELECT n, count(*) FROM (SELECT m, count(*) n FROM (SELECT ok, max(pk) m FROM pt JOIN o USING (ok) GROUP BY ok) s JOIN pt ON pt.pk = s.m GROUP BY m) t GROUP BY n');
SELECT staged('SELECT p.name, s.n, t.n FROM p JOIN (SELECT pk, count(*) n FROM pt GROUP BY pk) s USING (pk) JOIN (SELECT pk, count(*) n FROM pt WHERE pk < 12 GROUP BY pk) t USING (pk)');
SELECT staged('SELECT o.ok, s.n FROM o JOIN (SELECT pk, count(*) n FROM p GROUP BY pk) s ON s.pk = o.ck');
SELECT staged('SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM (SELECT ok FROM pt WHERE pk < 15 UNION ALL SELECT ok FROM o o2 WHERE ck < 50) u GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.n FROM o JOIN (SELECT ok, pk, n FROM pt ORDER BY n, ok, pk LIMIT 100) s USING (ok)');
SELECT staged('SELECT p.name, s.c FROM p JOIN (SELECT t.pk, count(*) c FROM (SELECT pk, n FROM pt ORDER BY n, ok, pk LIMIT 500) t JOIN pt USING (pk) GROUP BY t.pk) s USING (pk)');
SELECT jsonb_typeof(gj_explain('SELECT o.ok, s.n, t.n FROM o JOIN (SELECT ok, pk, n FROM pt ORDER BY n, ok, pk LIMIT 100) s USING (ok) JOIN (SELECT ok, count(*) n FROM pt GROUP BY ok) t USING (ok)', 'VERBOSE, COSTS OFF'));
PREPARE par(int) AS SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM pt WHERE pk < $1 GROUP BY ok) s USING (ok);
SET plan_cache_mode = force_generic_plan;
SELECT gj_how('EXECUTE par(5)'), cardinality(gj_rows('EXECUTE par(5)')), cardinality(gj_rows('EXECUTE par(25)')), cardinality(gj_rows('EXECUTE par(NULL)'));
SET gpujoin.enabled = off;
SELECT cardinality(gj_rows('EXECUTE par(5)')), cardinality(gj_rows('EXECUTE par(25)')), cardinality(gj_rows('EXECUTE par(NULL)'));
RESET gpujoin.enabled;
RESET plan_cache_mode;
DEALLOCATE par;
DROP TABLE pt, heir;

-- left to PostgreSQL, or to a plan source
SELECT staged('SELECT o.ok, s.a FROM o JOIN (SELECT ok, stddev(q) a FROM li GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok LIMIT 20000) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q, row_number() OVER (ORDER BY ok) r FROM li GROUP BY ok) s USING (ok)');
SELECT staged('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING random() >= 0) s USING (ok)');

-- an error in a group that PostgreSQL looks at, and one that it does not
SELECT gj_same('SELECT o.ok, s.n FROM o JOIN (SELECT ok, sum((9223372036854775807 - n)::int8) n FROM li GROUP BY ok) s USING (ok) WHERE s.n > 0');
SELECT gj_same('SELECT o.ok, s.n FROM o JOIN (SELECT ok, sum(pk + 2147483600) n FROM li GROUP BY ok) s USING (ok)');

-- parameters, rescans, cursors, fallbacks
PREPARE par(numeric, int) AS SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li WHERE pk < $2 GROUP BY ok HAVING sum(q) > $1) s USING (ok);
SET plan_cache_mode = force_generic_plan;
SELECT gj_how('EXECUTE par(50.5, 30)');
SELECT cardinality(a), md5(a::text) FROM gj_rows('EXECUTE par(50.5, 30)') a;
SET gpujoin.enabled = off;
DISCARD PLANS;
SELECT cardinality(a), md5(a::text) FROM gj_rows('EXECUTE par(50.5, 30)') a;
SET gpujoin.enabled = on;
RESET plan_cache_mode;
SELECT staged('SELECT p.pk, (SELECT count(*) FROM o JOIN (SELECT ok, count(*) n FROM li WHERE li.pk = p.pk GROUP BY ok) s USING (ok)) FROM p WHERE p.pk < 9');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING sum(q) > 140) s USING (ok) ORDER BY 1, 2;
FETCH 3 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH 2 FROM c;
COMMIT;
\set query 'SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING sum(q) > 140) s USING (ok)'
SELECT f, CASE WHEN set_config('gpujoin.fail_at', f, false) = f THEN gj_same('SELECT count(*), sum(q) FROM (' || :'query' || ') x') END
	FROM unnest('{submit, memory, build, probe, overflow, output, never}'::text[]) f;
SET gpujoin.device_memory_limit = '64MB';
SET gpujoin.spill_memory = 0;
SELECT staged(:'query');
RESET gpujoin.spill_memory;
RESET gpujoin.device_memory_limit;
SELECT gj_equal_loaded(:'query');
DROP VIEW revenue;
DROP TABLE o, li, p, none;
DROP FUNCTION staged;
