-- Larger tables than make installcheck has: many chunks, many batches, every source.
DROP TABLE IF EXISTS fact, dim, sub, pairs, wide, notes, visits CASCADE;
CREATE TABLE fact (id int NOT NULL, k int, k8 int8, day date, v int, x float8, flag bool);
INSERT INTO fact
SELECT i, CASE WHEN i % 101 <> 0 THEN i::int8 * 7919 % 30000 END, i % 500, date '2026-01-01' + i % 365, i % 1000 - 500,
	CASE WHEN i % 13 <> 0 THEN (i % 4096) / 8.0 END, i % 3 = 0
FROM generate_series(1, 600000) i;
CREATE TABLE dim (k int NOT NULL, name text, c int2, parent int);
INSERT INTO dim SELECT i, CASE WHEN i % 7 <> 0 THEN 'dimension ' || i END, i % 100, i % 500 FROM generate_series(0, 39999) i;
CREATE TABLE sub (k int8, label text, since timestamp);
INSERT INTO sub SELECT i, 'sub ' || i, timestamp '2026-01-01' + i * interval '1 hour' FROM generate_series(0, 499) i;
-- 200 keys, 400 rows of each: 32 million pairs
CREATE TABLE pairs AS SELECT i AS id, i % 200 AS k, i % 17 AS v FROM generate_series(1, 80000) i;
CREATE TABLE wide AS SELECT i AS k, repeat(chr(97 + i % 26), i % 800) AS t, i * 0.25 AS n, md5(i::text)::uuid AS u, ARRAY[i, -i] AS a,
	CASE WHEN i % 5 = 0 THEN NULL ELSE i END AS m FROM generate_series(1, 30000) i;
CREATE TABLE notes (k int, body text) PARTITION BY HASH (k);
CREATE TABLE notes0 PARTITION OF notes FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE notes1 PARTITION OF notes FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO notes SELECT i, 'note ' || i FROM generate_series(1, 20000) i;
-- a text of many values, whose groups are kept
CREATE TABLE visits AS SELECT CASE WHEN i % 1000 <> 7 THEN 'page ' || i::int8 * 7919 % 75000 END AS url, i % 100 AS day, (i % 1000 / 100.0)::numeric(8, 2) AS price
FROM generate_series(1, 320000) i;
VACUUM ANALYZE fact, dim, sub, wide, visits;
ANALYZE pairs, notes;
DELETE FROM fact WHERE id % 1000 = 7;
UPDATE dim SET c = 5 WHERE k % 97 = 0;
-- queries
SELECT count(*), sum(f.v), min(f.day), max(f.day), avg(f.v), sum(f.x), min(f.x), max(f.x) FROM fact f JOIN dim d ON f.k = d.k;

SELECT count(*), sum(f.v + d.c), count(d.name) FROM fact f JOIN dim d ON f.k = d.k WHERE d.c < 10 AND f.day >= '2026-06-01';

SELECT f.id, d.name, f.x FROM fact f JOIN dim d ON f.k = d.k WHERE f.v > 300;

SELECT f.id, d.k, d.name, s.label, s.since FROM fact f JOIN dim d ON f.k = d.k JOIN sub s ON s.k = d.parent WHERE f.flag;

SELECT f.id, s.label FROM fact f JOIN sub s ON f.k8 = s.k WHERE s.since < '2026-01-10' OR f.v = 7;

SELECT count(*), sum(f.v), max(s.since) FROM fact f JOIN sub s ON f.k8 = s.k JOIN dim d ON d.k = f.k AND d.parent = s.k;

SELECT url, count(*), sum(price) FROM visits GROUP BY url;

SELECT url, count(*), sum(price) FROM visits GROUP BY url;

SELECT url, count(*), sum(price) FROM visits GROUP BY url;

SELECT url, count(*), sum(price) FROM visits GROUP BY url;

SELECT url, count(*), avg(price), sum(day * price) FROM visits WHERE day BETWEEN 20 AND 50 GROUP BY url;

SELECT url, sum(price), count(day) FROM visits GROUP BY url HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 50;

SELECT count(*), sum(a.v * b.v), min(a.id - b.id) FROM pairs a JOIN pairs b USING (k);

SELECT count(*) FROM pairs a JOIN pairs b USING (k) WHERE a.id < b.id AND a.v <> b.v;

SELECT a.id, b.id FROM pairs a JOIN pairs b USING (k) WHERE a.v = 3 AND b.v = 4 AND a.id < 20000;

SELECT w.*, d.name FROM wide w JOIN dim d ON w.k = d.k;

SELECT d.name, w.t FROM dim d JOIN wide w ON w.k = d.k WHERE d.c = 5;

SELECT f.id, w.u, w.n FROM fact f JOIN wide w ON w.k = f.k WHERE w.m IS NULL AND f.v < 0;

SELECT count(*), sum(f.v), sum(w.n) FROM fact f JOIN wide w ON w.k = f.k WHERE w.m < 20000;

SELECT n.body, d.name FROM notes n JOIN dim d USING (k);

SELECT count(*), sum(f.v) FROM fact f JOIN notes n USING (k);

SELECT count(*), sum(x.n), sum(f.v) FROM fact f JOIN (SELECT parent AS k, count(*) AS n FROM dim GROUP BY 1) x USING (k);

SELECT f.id, x.c FROM fact f JOIN (SELECT DISTINCT k, c FROM dim WHERE c > 90) x USING (k);

WITH recent AS MATERIALIZED (SELECT * FROM fact WHERE day > '2026-12-01') SELECT r.id, d.name FROM recent r JOIN dim d USING (k);

SELECT a.id, b.id FROM fact a JOIN fact b ON a.id = b.id + 1 WHERE a.flag AND NOT b.flag;

SELECT count(*), sum(a.v), sum(b.v) FROM fact a JOIN fact b ON a.id = b.id;

SET gpujoin.algorithm = sort_merge;
SELECT count(*), sum(f.v), sum(g.id) FROM fact f JOIN fact g ON f.k8 = g.k8 AND f.x = g.x;

SELECT f.day, count(*), sum(f.v), avg(d.c) FROM fact f JOIN dim d USING (k) GROUP BY f.day;

SELECT f.id FROM fact f JOIN dim d USING (k) WHERE d.name LIKE '%99%' AND f.v % 7 = 0;

SELECT f.id, d.name FROM fact f JOIN dim d USING (k) ORDER BY f.id LIMIT 100;

SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE f.v IN (1, 2, 3, 5, 8, 13) AND d.c NOT IN (1, 2);

SELECT count(*) FROM fact f JOIN dim d USING (k) JOIN sub s ON s.k = f.k8 WHERE f.x > 100 AND (d.name IS NULL OR s.label <> d.name);

SET work_mem = '64kB';
SELECT f.id, d.name FROM fact f JOIN dim d USING (k) WHERE f.v > 400;

PREPARE p(int, date) AS SELECT f.id, d.c FROM fact f JOIN dim d USING (k) WHERE f.v > $1 AND f.day < $2;
EXECUTE p(450, '2026-02-01');

SET plan_cache_mode = force_generic_plan;
PREPARE p(int, text) AS SELECT count(*), sum(f.v * $1), max(d.name) FROM fact f JOIN dim d USING (k) WHERE f.v > $1 AND d.name <> $2;
EXECUTE p(450, 'dimension 8');

BEGIN; SET TRANSACTION READ ONLY;
SELECT f.id, d.name FROM fact f JOIN dim d USING (k) WHERE f.v = 0;

CREATE TEMP TABLE t AS SELECT * FROM fact WHERE id < 100000; UPDATE t SET v = v + 1 WHERE id % 2 = 0;
SELECT t.id, t.v, d.name FROM t JOIN dim d USING (k) WHERE t.v BETWEEN 0 AND 50;

BEGIN; DELETE FROM dim WHERE k % 2 = 0; INSERT INTO fact SELECT -id, k, k8, day, v, x, flag FROM fact WHERE id < 1000;
SELECT f.id, d.name FROM fact f JOIN dim d USING (k) WHERE f.id < 20000;

SELECT count(*), sum(f.v * 2147483647) FROM fact f JOIN dim d USING (k);

SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE 100 / (f.id - 5000) > 0;

-- by PostgreSQL
SELECT d.k, f.id FROM dim d LEFT JOIN fact f ON f.k = d.k AND f.v > 495 WHERE d.c = 3;

-- by PostgreSQL
SELECT d.k FROM dim d WHERE EXISTS (SELECT FROM fact f WHERE f.k = d.k AND f.v = 99);

-- by PostgreSQL
SELECT f.id, (SELECT max(s.label) FROM sub s JOIN dim d ON d.parent = s.k WHERE d.k = f.k) FROM fact f WHERE f.id < 300;
