-- Subqueries in expressions and in FROM as joins: EXISTS and IN in CASE, OR, FILTER and SELECT, scalar
-- aggregates and look-ups in SELECT, LATERAL, ANY and ALL.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE o (ok int, ck int, st text, price numeric(12,2), big int8);
INSERT INTO o SELECT i, nullif(i % 97, 13), 's' || i % 11, i % 1000 / 8.0, i FROM generate_series(1, 700) i;
CREATE TABLE li (ok int, pk int, q numeric(12,2), n int, st varchar(9), f float8);
INSERT INTO li SELECT nullif(i / 4, 7), i % 41, nullif(i % 50, 13) + 0.25, i % 1000, 's' || i % 13, i / 8.0 FROM generate_series(1, 2400) i;
INSERT INTO li VALUES (3, 5, 1, 1, 's', 'NaN'), (8, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE p (pk int NOT NULL, name text, k int);
INSERT INTO p SELECT i, 'p' || i, nullif(i, 3) FROM generate_series(0, 50) i;
CREATE TABLE nn (a int NOT NULL, b int NOT NULL);
INSERT INTO nn SELECT i % 30, i % 7 FROM generate_series(1, 200) i;
CREATE TABLE none (k int, v int);
VACUUM ANALYZE o, li, p, nn, none;

-- the same rows, by whom, and whether the plan has a subquery that runs for each row
CREATE FUNCTION unnested(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(query), CASE WHEN gj_explain(query)::text ~ '"Subplan Name": "\(?SubPlan' THEN ', subplan' END)
$$;

-- EXISTS: in CASE, OR, FILTER, SELECT, ORDER BY, a group's key; several ties, duplicates, NULLs, nothing
SELECT unnested('SELECT sum(CASE WHEN EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk < 20) THEN price END) FROM o');
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk < 20)');
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR NOT EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk < 20)');
SELECT unnested('SELECT ok FROM o WHERE (price < 20 OR NOT EXISTS (SELECT FROM li WHERE li.pk = o.ck)) AND EXISTS (SELECT FROM p WHERE p.pk = o.ck)');
SELECT unnested('SELECT ok, EXISTS (SELECT FROM li WHERE li.pk = o.ck), NOT EXISTS (SELECT 1 / 0 FROM none WHERE none.k = o.ck) FROM o');
SELECT unnested('SELECT st, count(*) FILTER (WHERE EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.st = o.st)), count(*) FROM o GROUP BY st');
SELECT unnested('SELECT EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9) e, count(*) FROM o GROUP BY e');
SELECT unnested('SELECT CASE WHEN EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9) THEN st ELSE ''none'' END || 1, count(*) FROM o GROUP BY CASE WHEN EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9) THEN st ELSE ''none'' END');
SELECT unnested('SELECT ok, st FROM o ORDER BY EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9), ok LIMIT 20');
SELECT unnested('SELECT ck, EXISTS (SELECT FROM li WHERE li.pk = o.ck) FROM o GROUP BY ck');
SELECT unnested('SELECT ok, (EXISTS (SELECT FROM li WHERE li.pk = o.ck)) IS NULL FROM o');
SELECT unnested('SELECT p.pk, EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk = p.pk) FROM p LEFT JOIN o ON o.ck = p.pk');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND EXISTS (SELECT FROM p WHERE p.pk = li.pk AND p.k > 30))');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.big LIMIT 1)');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT DISTINCT st FROM li WHERE li.ok = o.ok ORDER BY st)');
SELECT unnested('SELECT ok FROM o WHERE st = ''s3'' AND (price < 20 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9))');
-- one join for two equal ones
SELECT unnested('SELECT sum(CASE WHEN EXISTS (SELECT FROM li WHERE li.ok = o.ok) THEN price END), count(*) FILTER (WHERE NOT EXISTS (SELECT FROM li WHERE li.ok = o.ok)) FROM o');
-- not these: other conditions, aggregates, LIMIT 0, OFFSET, what can fail, another level, volatile functions
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.q > o.price)');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT count(*) FROM li WHERE li.ok = o.ok)');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok LIMIT 0)');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok OFFSET 1)');
SELECT unnested('SELECT count(*) FROM o WHERE ok < 20 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND 100 / (n - 500) > 0 AND n < 500)');
SELECT unnested('SELECT count(CASE WHEN ok <> 3 THEN EXISTS (SELECT FROM li WHERE li.ok = 100 / (o.ok - 3)) END) FROM o');
SELECT unnested('SELECT count(*) FROM o WHERE ok = 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND random() >= 0)');
SELECT unnested('SELECT count(*) FROM p WHERE pk = 3 OR EXISTS (SELECT FROM o WHERE o.ck = p.pk AND (o.st = ''s1'' OR EXISTS (SELECT FROM li WHERE li.ok = p.k)))');

-- IN: NULLs on either side, where they do not matter and where they do; NOT; several columns; correlated
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR ck IN (SELECT pk FROM li WHERE n < 300)');
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR ck NOT IN (SELECT pk FROM li WHERE n < 20)');
SELECT unnested('SELECT ok, ck IN (SELECT pk FROM li WHERE n < 20) FROM o');
SELECT unnested('SELECT a, b IN (SELECT nn.a FROM nn WHERE b = 3), a NOT IN (SELECT nn.b FROM nn WHERE nn.a > 3) FROM nn');
SELECT unnested('SELECT nn.a, nn.b, x.a IN (SELECT nn.a FROM nn WHERE b = 3) FROM nn LEFT JOIN nn x ON x.a = nn.b AND x.b = 2');
SELECT unnested('SELECT count(CASE WHEN ck IN (SELECT pk FROM li WHERE n < 20) THEN 1 ELSE 2 END) FROM o');
SELECT unnested('SELECT sum(CASE ck IN (SELECT pk FROM li WHERE n < 20) WHEN true THEN 1 WHEN false THEN 2 ELSE 3 END) FROM o');
SELECT unnested('SELECT sum(CASE WHEN NOT ck IN (SELECT pk FROM li WHERE n < 20) THEN 1 ELSE 2 END) FROM o');
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR (ck, st) IN (SELECT pk, st FROM li)');
SELECT unnested('SELECT ok FROM o WHERE ck IN (SELECT pk FROM li WHERE li.st = o.st)');
SELECT unnested('SELECT ok FROM o WHERE (ck, big) IN (SELECT pk, n FROM li WHERE li.ok = o.ok)');
-- left to PostgreSQL, which makes it a join since 17
SELECT left(unnested('SELECT ok FROM o WHERE ck IN (SELECT DISTINCT pk FROM li WHERE li.st = o.st)'), 14);
SELECT unnested('SELECT ok FROM o WHERE ck IN (SELECT pk FROM li WHERE li.q > o.price)');

-- scalar aggregates in SELECT: counts of nothing, fences, aggregates of them, HAVING, keys
SELECT unnested('SELECT max(n), sum(n) FROM (SELECT (SELECT count(*) FROM li WHERE li.ok = o.ok) n FROM o OFFSET 0) x');
SELECT unnested('SELECT ok, (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300), (SELECT max(q) FROM li WHERE li.ok = o.ok) FROM o');
SELECT unnested('SELECT sum((SELECT max(q) FROM li WHERE li.ok = o.ok)), avg(coalesce((SELECT sum(n) FROM li WHERE li.pk = o.ck AND n < 300), -1)) FROM o');
SELECT unnested('SELECT (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) n, count(*) FROM o GROUP BY 1');
SELECT unnested('SELECT (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) + 1, count(*) FROM o GROUP BY (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) HAVING (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) > 2');
SELECT unnested('SELECT ck, (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300), count(*) FROM o GROUP BY ck, (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) + 1');
SELECT unnested('SELECT ck, (SELECT count(*) FROM li WHERE li.pk = o.ck) FROM o GROUP BY ck');
SELECT unnested('SELECT st FROM o GROUP BY st HAVING sum((SELECT count(*) FROM li WHERE li.ok = o.ok)) > 200');
SELECT unnested('SELECT ck, st, (SELECT count(*) FROM li WHERE li.pk = o.ck) n, count(*) FROM o GROUP BY ROLLUP (ck, st, 3)');
SELECT unnested('SELECT DISTINCT (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) FROM o');
SELECT unnested('SELECT ok, rank() OVER (ORDER BY (SELECT max(q) FROM li WHERE li.ok = o.ok), ok) FROM o');
SELECT unnested('SELECT ok, (SELECT count(*) FROM li WHERE li.ok = o.ok) FROM o ORDER BY 2 DESC, 1 LIMIT 7');
SELECT unnested('SELECT ok, (SELECT max(q) FROM li WHERE li.ok = o.ok) FROM o WHERE (SELECT max(q) FROM li WHERE li.ok = o.ok) > 30 OR ck = 4');
SELECT unnested('SELECT o.ok, (SELECT count(*) FROM li WHERE li.ok = x.ok) FROM o LEFT JOIN o x ON x.ok = o.ck');
SELECT unnested('SELECT 1 UNION SELECT (SELECT count(*) FROM li WHERE li.ok = o.ok) FROM o');
SELECT unnested('SELECT ck FROM o WHERE ok = (SELECT (SELECT max(n) FROM li WHERE li.ok = p.pk) FROM p WHERE p.pk = o.ck)');

-- look-ups by a unique key: NULLs, nothing, other conditions and types, several keys, expressions
CREATE UNIQUE INDEX ON p (pk);
CREATE TABLE two (a int, b varchar(9), v int, UNIQUE (a, b));
INSERT INTO two SELECT nullif(i % 50, 7), 's' || i % 11, i FROM generate_series(1, 500) i;
INSERT INTO two VALUES (NULL, 's1', 7);
ANALYZE two;
SELECT unnested('SELECT ok, (SELECT name FROM p WHERE p.pk = o.ck) FROM o');
-- PostgreSQL 16 makes the value a placeholder, which its scan of p computes
SELECT unnested('SELECT (SELECT k + 0.5 FROM p WHERE p.pk = o.ck AND k > 9) v, count(*), sum(price) FROM o GROUP BY 1') =
	'same, 41 rows, GpuJoin' || CASE current_setting('server_version_num')::int / 10000 WHEN 16 THEN ' + aggregate' ELSE '' END;
SELECT unnested('SELECT ok FROM o WHERE price < (SELECT k FROM p WHERE o.big = p.pk) OR (SELECT name FROM p WHERE p.pk = o.ck + 0) IS NULL');
SELECT unnested('SELECT ok, (SELECT v FROM two WHERE a = ck AND b = st) FROM o');
SELECT unnested('SELECT p.pk, (SELECT CASE WHEN v > 9 THEN v END FROM two WHERE a = p.pk AND b = ''s3'') FROM p');
SELECT unnested('SELECT ok, (SELECT 7 FROM p WHERE p.pk = o.ck) FROM o');
SELECT unnested('SELECT ok, (SELECT coalesce(name, ''no'') FROM p WHERE p.pk = o.ck) FROM o');
SELECT unnested('SELECT ok, (SELECT o.st FROM p WHERE p.pk = o.ck) FROM o');
SELECT unnested('SELECT ok, (SELECT name FROM p WHERE p.pk = o.ck LIMIT 1) FROM o');
SELECT unnested('SELECT ok, (SELECT name FROM p WHERE p.pk = o.ck AND 100 / (k - 4) > 0 AND k > 4) FROM o');
SELECT unnested('SELECT ok, (SELECT v FROM two WHERE a = o.ok) FROM o WHERE ok > 100');
-- it is an error to find two
CREATE UNIQUE INDEX later ON p (name) WHERE pk > 3;
SELECT unnested('SELECT ok, (SELECT p.k FROM p WHERE p.name = ''p'' || o.ck) FROM o');
PREPARE named AS SELECT count((SELECT name FROM p WHERE p.pk = o.ck)) FROM o;
SET plan_cache_mode = force_generic_plan;
EXECUTE named;
DROP INDEX p_pk_idx;
INSERT INTO p VALUES (5, 'another', 5);
EXECUTE named;
DELETE FROM p WHERE name = 'another';
RESET plan_cache_mode;
DROP TABLE two;

-- LATERAL: aggregates, also of nothing; JOIN with conditions, LEFT JOIN; one that reads another
SELECT unnested('SELECT o.st, sum(x.m) FROM o, LATERAL (SELECT max(q) m FROM li WHERE li.ok = o.ok) x GROUP BY o.st');
SELECT unnested('SELECT o.ok, x.* FROM o, LATERAL (SELECT max(q) m, count(*), 7, count(q) + 1 FROM li WHERE li.pk = o.ck AND n < 300) x');
SELECT unnested('SELECT o.ok, m, n FROM o JOIN LATERAL (SELECT max(q) m, count(*) n FROM li WHERE li.pk = o.ck AND n < 300) x ON n < 9');
SELECT unnested('SELECT o.ok, m, n FROM o LEFT JOIN LATERAL (SELECT max(q) m, count(*) n FROM li WHERE li.pk = o.ck AND n < 300) x ON true');
SELECT unnested('SELECT o.ok, m, n FROM o LEFT JOIN LATERAL (SELECT max(q) m, count(*) n FROM li WHERE li.pk = o.ck AND n < 300) x ON n < 9');
SELECT unnested('SELECT o.ok, n FROM o CROSS JOIN LATERAL (SELECT count(*) FROM li WHERE li.pk = o.ck AND n < 300) x(n) WHERE n = 0');
SELECT unnested('SELECT o.ok, p.pk, n FROM o, p, LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok AND li.pk = p.pk) x WHERE o.ck = p.pk');
SELECT unnested('SELECT o.ok, n, m FROM o, LATERAL (SELECT min(pk) n FROM li WHERE li.ok = o.ok) x, LATERAL (SELECT count(*) m FROM nn WHERE nn.a = x.n) y');
SELECT unnested('SELECT o.ok, n, (SELECT max(k) FROM p WHERE p.pk = x.n) FROM o, LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok AND n < 300) x WHERE EXISTS (SELECT FROM nn WHERE nn.b = x.n)');
SELECT unnested('SELECT p.pk, o.ok, n FROM p, o JOIN LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok) x ON n > 2 WHERE o.ck = p.pk');
SELECT unnested('SELECT p.pk, o.ok, m FROM p LEFT JOIN (o CROSS JOIN LATERAL (SELECT max(q) m FROM li WHERE li.ok = o.ok) x) ON o.ck = p.pk');
SELECT unnested('SELECT p.pk, o.ok, n FROM p LEFT JOIN (o CROSS JOIN LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok) x) ON o.ck = p.pk');
SELECT unnested('SELECT o.ok, x.n, p.pk FROM o CROSS JOIN LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok) x LEFT JOIN p ON p.pk = x.n');
SELECT unnested('SELECT n, p.pk FROM o CROSS JOIN LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok) x RIGHT JOIN p ON p.pk = x.n');
SELECT unnested('SELECT p.pk, o.ok, n FROM p JOIN LATERAL (SELECT count(*) n FROM li WHERE li.pk = p.pk AND n < 99) x ON true JOIN o ON o.ok = n');
SELECT unnested('SELECT p.pk, (SELECT max(n) FROM nn, LATERAL (SELECT count(*) n FROM li WHERE li.ok = nn.a) x WHERE nn.b = p.pk) FROM p');
-- groups, with conditions on them
SELECT unnested('SELECT o.ok, x.* FROM o, LATERAL (SELECT st, count(*) FROM li WHERE li.pk = o.ck GROUP BY st) x');
SELECT unnested('SELECT o.ok, x.c FROM o JOIN LATERAL (SELECT count(*) c FROM li WHERE li.pk = o.ck GROUP BY n HAVING max(q) > 30) x ON c > 1');
SELECT unnested('SELECT o.ok, x.* FROM o LEFT JOIN LATERAL (SELECT st, max(q) m FROM li WHERE li.ok = o.ok GROUP BY st ORDER BY 2) x ON m > 30');
SELECT unnested('SELECT p.pk, x.* FROM p, o JOIN LATERAL (SELECT st, max(q) m FROM li WHERE li.ok = p.pk GROUP BY st) x ON m > 30 WHERE o.ok = p.k');
-- not these: rows as a whole, LIMIT, another tie, what can fail, volatile functions, locked rows
SELECT unnested('SELECT o.ok, x FROM o, LATERAL (SELECT max(q) m FROM li WHERE li.ok = o.ok) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, x.q FROM o, LATERAL (SELECT q FROM li WHERE li.ok = o.ok ORDER BY q, pk LIMIT 1) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, m FROM o, LATERAL (SELECT max(q) m FROM li WHERE li.ok < o.ok) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, m FROM o, LATERAL (SELECT max(q + o.price) m FROM li WHERE li.ok = o.ok) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, m FROM o, LATERAL (SELECT max(1000 / (n - 500)) m FROM li WHERE li.ok = o.ok) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, m FROM o, LATERAL (SELECT max(q) m FROM li WHERE li.ok = o.ok AND random() >= 0) x WHERE o.ok < 20');
SELECT unnested('SELECT o.ok, m FROM o, LATERAL (SELECT max(q) m FROM li WHERE li.ok = o.ok HAVING count(*) > 1) x WHERE o.ok < 20');

-- ANY and ALL: nothing, NULLs inside and outside, NaN, other types, NOT, OR
SELECT unnested('SELECT ok FROM o WHERE price > ALL (SELECT q FROM li WHERE q IS NOT NULL AND pk < 7)');
SELECT unnested('SELECT ok FROM o WHERE price > ALL (SELECT q FROM li)');
SELECT unnested('SELECT ok FROM o WHERE price > ALL (SELECT v FROM none)');
SELECT unnested('SELECT ok FROM o WHERE price > ANY (SELECT v FROM none)');
SELECT unnested('SELECT ok FROM o WHERE price <= ALL (SELECT q FROM li WHERE pk = 7 AND q IS NOT NULL)');
SELECT unnested('SELECT ok FROM o WHERE ck >= ALL (SELECT b FROM nn)');
SELECT unnested('SELECT ok FROM o WHERE ck < ALL (SELECT a FROM nn WHERE b > 3) OR st = ''s3''');
SELECT unnested('SELECT ok FROM o WHERE NOT ck < ALL (SELECT a FROM nn WHERE b > 3)');
SELECT unnested('SELECT ok FROM o WHERE NOT ck < ANY (SELECT pk FROM li)');
SELECT unnested('SELECT ok FROM o WHERE NOT ck > ANY (SELECT pk FROM li WHERE pk > 5)');
SELECT unnested('SELECT ok FROM o WHERE ck < ANY (SELECT pk FROM li)');
SELECT unnested('SELECT ok FROM o WHERE ck >= ANY (SELECT n FROM li)');
SELECT unnested('SELECT ok FROM o WHERE big >= ANY (SELECT n FROM li)');
SELECT unnested('SELECT n FROM li WHERE f > ALL (SELECT f FROM li WHERE f < 100)');
SELECT unnested('SELECT n FROM li WHERE f >= ALL (SELECT f FROM li WHERE f IS NOT NULL)');
SELECT unnested('SELECT ok FROM o WHERE st > ALL (SELECT st FROM li WHERE st < ''s3'')');
SELECT unnested('SELECT st, count(*) FILTER (WHERE price > ALL (SELECT q FROM li WHERE q IS NOT NULL)) FROM o GROUP BY st');
SELECT unnested('SELECT ok, price > ALL (SELECT q FROM li WHERE pk < 9) FROM o');
SELECT unnested('SELECT ok FROM o WHERE ck <> ANY (SELECT a FROM nn)');
SELECT unnested('SELECT ok FROM o WHERE ok < 40 AND ck > ALL (SELECT a FROM nn WHERE nn.b = o.ok)');
SELECT unnested('SELECT ok FROM o WHERE big > ALL (SELECT 1000 / (n - 500) FROM li WHERE n < 500)');
SELECT unnested('SELECT ok FROM o WHERE ok < 40 AND 100 / (ok + 1) > ANY (SELECT a FROM nn)');

-- conditions over what is joined see no rows that nobody asks for, not even where a strict one is beside them
INSERT INTO li VALUES (9999, 99, 0, 0, 's', 0);
INSERT INTO p SELECT i, 'none ' || i, 0 FROM generate_series(60, 70) i;
CREATE UNIQUE INDEX ON p (pk);
-- a subquery of one aggregate under OR: asked for by the device where it cannot fail
SELECT unnested('SELECT count(*) FROM o WHERE ok < 20 OR price > (SELECT max(q) FROM li WHERE pk < 7)');
SELECT unnested('SELECT count(*) FROM o WHERE ok >= 0 OR price > (SELECT max(100 / (n - n)) FROM li WHERE pk < 7)');
SELECT unnested('SELECT ok FROM o WHERE 100 / (SELECT max(n) + 0.0 FROM li WHERE li.pk = o.ck) < 0.2');
SELECT unnested('SELECT ok FROM o WHERE 100 / (SELECT max(n) FROM li WHERE li.pk = o.ck) = 0 AND (SELECT max(n) FROM li WHERE li.pk = o.ck) > 9');
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT max(n) m FROM li WHERE li.pk = o.ck) x WHERE 100 / m = 0 AND m > 9');
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT st, max(n) m FROM li WHERE li.pk = o.ck AND n > 500 GROUP BY st) x WHERE ok < 90 AND 100 / m = 0');
SELECT unnested('SELECT ok FROM (SELECT ok, (SELECT max(n) FROM li WHERE li.pk = o.ck) m FROM o) x WHERE 100 / m = 0');
SELECT unnested('SELECT ok FROM o WHERE ck NOT IN (0, 4, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70) AND 100 / (SELECT k FROM p WHERE p.pk = o.ck) > 2 AND (SELECT k FROM p WHERE p.pk = o.ck) > 0');
SELECT unnested('SELECT p.pk, q FROM p LEFT JOIN (SELECT ok, 100000 / (SELECT max(n) FROM li WHERE li.pk = o.ck) q FROM o WHERE (SELECT max(n) FROM li WHERE li.pk = o.ck) > 9) y ON y.ok = p.pk');
SELECT unnested('SELECT ok FROM o WHERE ok / 2 < 99 AND ((EXISTS (SELECT FROM li WHERE li.ok = o.ok AND q < 9)) IS TRUE OR ck IN (SELECT pk FROM li WHERE n < 9))');
-- not even where these are made of what another subquery selects, or functions and VALUES are over it
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT max(n) m FROM li WHERE li.pk = o.ck) x, LATERAL (SELECT 100 / x.m z) y WHERE z = 0');
SELECT unnested('WITH x AS (SELECT ok, (SELECT max(n) FROM li WHERE li.pk = o.ck) m FROM o), y AS (SELECT ok, 100 / m z FROM x) SELECT ok FROM y WHERE z = 0');
SELECT unnested('SELECT ok, g FROM o, LATERAL (SELECT max(n) m FROM li WHERE li.pk = o.ck) x, LATERAL generate_series(1, 1000 / x.m) g WHERE m > -1');
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT max(n) m FROM li WHERE li.pk = o.ck) x, LATERAL (VALUES (1000 / x.m)) y(z) WHERE m > -1 AND z < 5');
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT max(n) m FROM li WHERE li.pk = o.ck) x WHERE m > -1 AND 0 < ANY (SELECT 100 / x.m FROM nn)');
SELECT unnested('SELECT ok FROM o, LATERAL (SELECT st, max(n) m FROM li WHERE li.pk = o.ck AND n > 500 GROUP BY st) x, LATERAL (SELECT 100 / x.m z) y WHERE ok < 90 AND z = 0');
DELETE FROM p WHERE name LIKE 'none%';
DROP INDEX p_pk_idx;

-- a subquery on the left of IN; errors where nobody looks
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR EXISTS (SELECT FROM none) IN (SELECT n > 500 FROM li WHERE li.ok = o.ok)');
SELECT unnested('SELECT ok FROM o WHERE EXISTS (SELECT FROM none) IN (SELECT n > 500 FROM li WHERE li.ok = o.ok)');
SELECT unnested('SELECT CASE WHEN false THEN EXISTS (SELECT FROM li WHERE li.ok = o.ok LIMIT 1 / 0) END, EXISTS (SELECT FROM li WHERE li.ok = o.ok) FROM o');

-- two timestamps can be the same one with a time zone, and a later one the earlier one
SET timezone = 'America/New_York';
CREATE TABLE ts (t timestamp UNIQUE, v int);
INSERT INTO ts SELECT '2024-03-10 01:00'::timestamp + i * interval '10 min', i FROM generate_series(0, 30) i;
CREATE TABLE tz (z timestamptz, k int);
INSERT INTO tz SELECT '2024-03-10 01:00'::timestamptz + i * interval '10 min', i FROM generate_series(0, 30) i;
ANALYZE ts, tz;
SELECT unnested('SELECT k, EXISTS (SELECT FROM ts WHERE t = z), (SELECT count(*) FROM ts WHERE t = z) FROM tz');
SELECT unnested('SELECT k, m FROM tz, LATERAL (SELECT max(v) m FROM ts WHERE t = z) x');
SELECT unnested('SELECT k, (SELECT v FROM ts WHERE t = z) FROM tz');
SELECT unnested('SELECT k, (SELECT v FROM ts WHERE t = ''2024-03-10 03:10''::timestamptz AND v = tz.k) FROM tz');
SELECT unnested('SELECT k FROM tz WHERE z > ALL (SELECT t FROM ts WHERE v < 13)');
DROP TABLE ts, tz;
RESET timezone;

-- subqueries that would become several do not multiply
CREATE FUNCTION nested(depth int, op text) RETURNS text LANGUAGE sql AS $$
	SELECT 'SELECT k FROM p' || repeat(' WHERE k ' || op || ' (SELECT k FROM p', depth) || repeat(')', depth)
$$;
SELECT unnested(nested(3, 'NOT IN'));
SET statement_timeout = '60s';
SELECT unnested(nested(25, 'NOT IN'));
SELECT unnested(nested(40, '< ALL'));
SELECT unnested('WITH c0 AS (SELECT pk FROM p WHERE pk < 2)' || string_agg(format(', c%s AS (SELECT pk FROM c%s x JOIN c%s y USING (pk))', i, i - 1, i - 1), '') || ' SELECT * FROM c25 x, c25 y')
FROM generate_series(1, 25) i;
RESET statement_timeout;

-- off, prepared, changed
SET gpujoin.unnest = off;
SELECT unnested('SELECT ok FROM o WHERE price < 20 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk < 20)');
RESET gpujoin.unnest;
PREPARE those(int) AS SELECT count(*), sum(price), sum(n) FROM o, LATERAL (SELECT count(*) n FROM li WHERE li.pk = o.ck AND li.n < $1) x
	WHERE price > ALL (SELECT a FROM nn WHERE b > $1) OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND li.pk < $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE those(3);
EXECUTE those(NULL);
INSERT INTO li VALUES (700, 4, 1, 1, 's', 1);
INSERT INTO o VALUES (700, 4, 's', 1000000, 1);
EXECUTE those(3);
-- b may be NULL from now on: its NULLs matter
PREPARE above AS SELECT count(*) FROM o WHERE ck > ALL (SELECT b FROM nn);
EXECUTE above;
ALTER TABLE nn ALTER b DROP NOT NULL;
INSERT INTO nn VALUES (1, NULL);
EXECUTE above;
RESET plan_cache_mode;
SET gpujoin.enabled = off;
EXECUTE those(3);
EXECUTE above;
RESET gpujoin.enabled;
UPDATE o SET price = price + 1 WHERE EXISTS (SELECT FROM li WHERE li.ok = o.ok) OR ck = 3;
UPDATE o SET big = x.n FROM p, LATERAL (SELECT count(*) n FROM li WHERE li.pk = p.pk) x WHERE p.pk = o.ck;
INSERT INTO none SELECT ok, (SELECT count(*) FROM li WHERE li.ok = o.ok) FROM o;
SELECT count(*), sum(price), sum(big), (SELECT sum(v) FROM none) FROM o;

-- rows that are locked below
SELECT unnested('SELECT x.ok, (SELECT count(*) FROM li WHERE li.ok = x.ok) FROM (SELECT * FROM o FOR UPDATE) x');
SELECT unnested('SELECT x.ok, li.n FROM (SELECT * FROM (SELECT * FROM o FOR UPDATE) y OFFSET 0) x JOIN li ON li.ok = x.ok');

-- row security holds
CREATE ROLE gj_unnest;
GRANT SELECT ON o, li TO gj_unnest;
ALTER TABLE li ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON li TO gj_unnest USING (pk < 10);
SET ROLE gj_unnest;
SELECT count(*), sum(price), sum(n) FROM o, LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok) x WHERE price < 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok);
RESET ROLE;
SELECT count(*), sum(price), sum(n) FROM o, LATERAL (SELECT count(*) n FROM li WHERE li.ok = o.ok AND pk < 10) x WHERE price < 3 OR EXISTS (SELECT FROM li WHERE li.ok = o.ok AND pk < 10);

DROP TABLE o, li, p, nn, none;
DROP ROLE gj_unnest;
DROP FUNCTION unnested, nested;
