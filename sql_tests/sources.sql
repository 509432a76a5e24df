-- What a join can read: heap tables and any other plan, with what the transaction itself sees.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int PRIMARY KEY, k int, v int);
INSERT INTO f SELECT i, i % 25, i * 3 % 100 FROM generate_series(1, 2000) i;
CREATE TABLE d (k int, name text);
INSERT INTO d SELECT i, 'd' || i FROM generate_series(0, 19) i;
VACUUM ANALYZE f, d;

-- plan sources
SELECT gj_same('SELECT f.id, x.n FROM f JOIN (SELECT k, count(*) AS n FROM d GROUP BY k) x USING (k)');
SELECT gj_same('SELECT f.id, x.name FROM f JOIN (SELECT * FROM d ORDER BY name LIMIT 7) x USING (k)');
SELECT gj_same('SELECT f.id, x.name FROM f JOIN (SELECT k, name FROM d OFFSET 0) x USING (k) WHERE f.v > 50');
SELECT gj_same('SELECT f.id, x.name FROM (SELECT DISTINCT id, k FROM f) f JOIN d x USING (k)');
SELECT gj_same('WITH x AS MATERIALIZED (SELECT * FROM d WHERE k > 3) SELECT f.id, x.name FROM f JOIN x USING (k)');
SELECT gj_same('WITH x AS NOT MATERIALIZED (SELECT * FROM d WHERE k > 3) SELECT f.id, x.name FROM f JOIN x USING (k)');
SELECT gj_same('WITH x AS (SELECT f.id, f.v, d.name FROM f JOIN d USING (k)) SELECT a.id, b.name FROM x a JOIN x b USING (id)');
SELECT gj_same('WITH RECURSIVE x(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM x WHERE k < 10) SELECT f.id, x.k FROM f JOIN x USING (k)');
SELECT gj_same('SELECT f.id, x.t FROM f JOIN (VALUES (1, ''one''), (2, ''two''), (NULL, ''null'')) AS x(k, t) USING (k)');
SELECT gj_same('SELECT f.id, x FROM f JOIN generate_series(5, 8) x ON f.k = x');
SELECT gj_same('SELECT f.id, x.* FROM f JOIN unnest(ARRAY[1, 2, 2], ARRAY[''a'', ''b'', ''c'']) AS x(k, t) USING (k)');
SELECT gj_same('SELECT f.id, x.* FROM f JOIN jsonb_to_recordset(''[{"k":1,"t":"one"},{"k":3}]'') AS x(k int, t text) USING (k)');
SELECT gj_same('SELECT f.id, x.name FROM f JOIN (SELECT * FROM d UNION ALL SELECT k, name || ''!'' FROM d) x USING (k)');
SELECT gj_same('SELECT count(*), sum(f.v) FROM f JOIN (SELECT k FROM d UNION SELECT k + 1 FROM d) x USING (k)');
CREATE VIEW fv AS SELECT id, k, v * 2 AS v2 FROM f WHERE v > 10;
CREATE VIEW joined AS SELECT f.id, f.v, d.name FROM f JOIN d USING (k);
CREATE MATERIALIZED VIEW mv AS SELECT k, count(*)::int AS n FROM f GROUP BY k;
SELECT gj_same('SELECT fv.id, fv.v2, d.name FROM fv JOIN d USING (k)');
SELECT gj_same('SELECT * FROM joined WHERE v < 50');
SELECT gj_same('SELECT j.name, f.id FROM joined j JOIN f USING (id) WHERE f.k = 3');
SELECT gj_same('SELECT d.name, mv.n FROM mv JOIN d USING (k)');
CREATE FUNCTION rows_of(n int) RETURNS SETOF d LANGUAGE sql STABLE AS 'SELECT * FROM d WHERE k < n';
CREATE FUNCTION rows_of_plpgsql(n int) RETURNS TABLE (k int, t text) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT d.k, d.name FROM d WHERE d.k < n; END';
SELECT gj_same('SELECT f.id, x.name FROM f JOIN rows_of(5) x USING (k)');
SELECT gj_equal('SELECT f.id, x.t FROM f JOIN rows_of_plpgsql(5) x USING (k)');
-- catalogs
SELECT regexp_replace(gj_same('SELECT c.relname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace'), '[0-9]+', 'all');
SELECT regexp_replace(gj_same('SELECT a.attname, t.typname, c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid WHERE a.attnum > 0'), '[0-9]+', 'all');

-- an index scan as a source, and plans that PostgreSQL was forced to
CREATE INDEX ON f (v);
SET enable_seqscan = off;
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k) WHERE f.v = 51');
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k) WHERE f.id BETWEEN 100 AND 120');
SELECT gj_same('SELECT count(*), sum(f.v) FROM f JOIN d USING (k) WHERE f.v IN (3, 6, 9)');
RESET enable_seqscan;
SET enable_hashjoin = off;
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k)');
SET enable_mergejoin = off;
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k)');
SET enable_nestloop = off;
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k)');
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_nestloop;
-- parallel plans beside it
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k)');
SELECT gj_same('SELECT count(*), sum(f.v) FROM f JOIN d USING (k)');
SELECT gj_equal('SELECT d.name, count(*) FROM f JOIN d USING (k) GROUP BY 1');
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;

-- partitioned and inherited tables
CREATE TABLE p (id int, k int, v int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (500);
CREATE TABLE p2 (v int, extra text, k int, id int);			-- other column order
ALTER TABLE p2 DROP COLUMN extra;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (500) TO (1000);
CREATE TABLE p3 PARTITION OF p DEFAULT;
INSERT INTO p SELECT i, i % 25, i FROM generate_series(1, 1500) i;
SELECT gj_same('SELECT p.id, d.name FROM p JOIN d USING (k)');
SELECT gj_same('SELECT p.id, p.tableoid::regclass, d.name FROM p JOIN d USING (k) WHERE p.id > 700');
SELECT gj_same('SELECT p.id, d.name FROM p JOIN d USING (k) WHERE p.id < 100');
SELECT gj_same('SELECT a.id, b.v FROM p a JOIN p b USING (id)');
SELECT gj_same('SELECT count(*), sum(p.v) FROM p JOIN d USING (k)');
SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;
SELECT gj_equal('SELECT a.id, b.v FROM p a JOIN p b USING (id)');
SELECT gj_equal('SELECT count(*), sum(a.v) FROM p a JOIN p b USING (id)');
RESET enable_partitionwise_join; RESET enable_partitionwise_aggregate;
CREATE TABLE parent (k int, v int);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT i % 25, i FROM generate_series(1, 50) i;
INSERT INTO child SELECT i % 25, -i, 'x' FROM generate_series(1, 50) i;
SELECT gj_same('SELECT parent.v, d.name FROM parent JOIN d USING (k)');
SELECT gj_same('SELECT parent.v, d.name FROM ONLY parent JOIN d USING (k)');

-- temporary and unlogged tables
CREATE TEMP TABLE tmp AS SELECT i AS id, i % 25 AS k FROM generate_series(1, 300) i;
CREATE UNLOGGED TABLE unl AS SELECT i AS id, i % 25 AS k FROM generate_series(1, 300) i;
SELECT gj_same('SELECT t.id, d.name FROM tmp t JOIN d USING (k)');
SELECT gj_same('SELECT t.id, u.id FROM tmp t JOIN unl u USING (k)');
SELECT gj_same('SELECT count(*), sum(u.id) FROM unl u JOIN d USING (k)');
UPDATE tmp SET id = -id; UPDATE unl SET id = -id;
SELECT gj_same('SELECT t.id, u.id FROM tmp t JOIN unl u USING (k)');

-- updated and deleted rows, before and after VACUUM
DELETE FROM f WHERE id % 3 = 0;
UPDATE f SET v = v + 1 WHERE id % 5 = 0;
SELECT count(*), sum(f.v) FROM f JOIN d USING (k);
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
VACUUM f;
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
INSERT INTO f SELECT i, i % 25, 5 FROM generate_series(3000, 3100) i;
UPDATE f SET k = k + 1 WHERE id < 10;
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
VACUUM FREEZE f;
SELECT gj_same('SELECT count(*), sum(f.v), sum(f.id) FROM f JOIN d USING (k)');
DELETE FROM f WHERE id >= 3000;

-- changes of the transaction itself, and of its savepoints
BEGIN;
INSERT INTO f VALUES (10001, 1, 0);
UPDATE f SET v = 1000 WHERE id = 1;
DELETE FROM d WHERE k = 19;
SELECT count(*), sum(f.v), max(f.id) FROM f JOIN d USING (k);
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
SAVEPOINT s;
DELETE FROM d;
SELECT count(*), sum(f.v), max(f.id) FROM f JOIN d USING (k);
ROLLBACK TO s;
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
TRUNCATE d;
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
INSERT INTO d VALUES (1, 'new');
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
ROLLBACK;
SELECT gj_same('SELECT f.*, d.name FROM f JOIN d USING (k)');
BEGIN;
CREATE TABLE created AS SELECT k, name || '!' AS name FROM d;
SELECT gj_same('SELECT f.id, c.name FROM f JOIN created c USING (k)');
ALTER TABLE created ALTER k TYPE int8;
SELECT gj_same('SELECT f.id, c.name FROM f JOIN created c USING (k)');
ROLLBACK;
-- isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT gj_same('SELECT count(*), sum(f.v) FROM f JOIN d USING (k)');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gj_equal('SELECT count(*), sum(f.v) FROM f JOIN d USING (k)');
SELECT gj_equal('SELECT f.id, d.name FROM f JOIN d USING (k)');
COMMIT;
BEGIN READ ONLY;
SELECT gj_same('SELECT count(*), sum(f.v) FROM f JOIN d USING (k)');
COMMIT;

-- system columns and whole rows
SELECT gj_same('SELECT f.ctid, d.ctid, f.tableoid::regclass FROM f JOIN d USING (k)');
SELECT gj_same('SELECT f.xmin, d.cmin, f.xmax FROM f JOIN d USING (k)');
-- where rows of f lie follows from when its old versions could go
CREATE TABLE placed AS SELECT * FROM f ORDER BY id;
SELECT gj_same('SELECT f.id FROM placed f JOIN d USING (k) WHERE f.ctid < ''(2,1)''');
SELECT gj_same('SELECT f, d FROM f JOIN d USING (k)');
SELECT gj_same('SELECT to_jsonb(f), row(d.*, f.id) FROM f JOIN d USING (k)');
-- generated and identity columns
CREATE TABLE gen (k int GENERATED ALWAYS AS IDENTITY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO gen (a) SELECT i FROM generate_series(1, 30) i;
SELECT gj_same('SELECT gen.*, d.name FROM gen JOIN d USING (k)');

-- not twice: a source with a volatile function
CREATE SEQUENCE seq;
SELECT count(*) FROM f JOIN (SELECT k, nextval('seq') AS n FROM d OFFSET 0) x USING (k);
SELECT last_value = (SELECT count(*) FROM d) AS once_a_row FROM seq;
-- TABLESAMPLE, foreign-like scans
SELECT gj_equal('SELECT f.id, d.name FROM f TABLESAMPLE SYSTEM (100) JOIN d USING (k)');
SELECT gj_equal('SELECT f.id, d.name FROM placed f TABLESAMPLE BERNOULLI (50) REPEATABLE (1) JOIN d USING (k)');

-- conditions on system columns alone
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k) WHERE d.tableoid = ''d''::regclass::oid');
SELECT gj_same('SELECT f.id, d.name FROM f JOIN d USING (k) WHERE d.ctid IS NOT NULL AND f.xmin IS NOT NULL');
-- subqueries with inheritance children under UNION ALL, whose plans exist twice: EXPLAIN can print them
SELECT gj_how('SELECT count(*) FROM f JOIN (SELECT * FROM (SELECT k FROM p ORDER BY k LIMIT 5) x UNION ALL SELECT * FROM (SELECT k FROM p ORDER BY k LIMIT 2) y) u USING (k)');
-- a materialized view without data is an error, not an empty table
CREATE MATERIALIZED VIEW unpopulated AS SELECT * FROM d WITH NO DATA;
SELECT gj_equal('SELECT count(*) FROM f JOIN unpopulated USING (k)');
DROP MATERIALIZED VIEW unpopulated;

DROP VIEW fv, joined;
DROP MATERIALIZED VIEW mv;
DROP FUNCTION rows_of, rows_of_plpgsql;
DROP TABLE f, placed, d, p, parent, child, tmp, unl, gen;
DROP SEQUENCE seq;

-- where attributes lie: every alignment behind every kind of length, in pages with and without NULLs
CREATE TABLE places (id int, a "char", t1 text, b int8, c bool, d int4, t2 varchar(200), e int2, h "char", g float8, u uuid, t3 char(7),
	i int2, j "char", k int8, n name, t4 bytea, o oid, m numeric(10, 2), p timestamp, q inet, r bool, last text);
ALTER TABLE places ALTER t4 SET STORAGE EXTERNAL;
INSERT INTO places SELECT i, chr(65 + i % 26), repeat('t', i % 9), i * 10000000000, i % 3 = 0, -i, repeat('v', i % 200), i % 1000, chr(97 + i % 26), i / 7.0,
	md5(i::text)::uuid, 'c' || i % 1000, -(i % 1000), chr(48 + i % 10), -i * 10000000000, 'name' || i, decode(repeat('ab', CASE WHEN i % 97 = 0 THEN 3000 ELSE i % 5 END), 'hex'),
	i, i / 100.0, timestamp '2026-01-01' + i * interval '1 hour', '10.0.0.1'::inet + i, i % 2 = 0, CASE WHEN i % 89 = 0 THEN repeat('long', 1000) ELSE 'l' || i END
	FROM generate_series(1, 1500) i;
INSERT INTO places SELECT id + 2000, CASE WHEN id % 2 = 0 THEN a END, CASE WHEN id % 3 = 0 THEN t1 END, b, c, CASE WHEN id % 5 = 0 THEN d END, t2, e, h, g, u, t3, i, j,
	CASE WHEN id % 7 = 0 THEN k END, n, t4, o, m, p, q, r, last FROM places WHERE id <= 300;
CREATE TABLE wanted AS SELECT i AS k FROM generate_series(0, 19) i;
VACUUM ANALYZE places, wanted;
SELECT gj_same('SELECT p.id, p.a, p.t1, p.b, p.c, p.d, p.t2, p.e, p.h, p.g, p.u, p.t3, p.i, p.j, p.k, p.n, p.t4, p.o, p.m, p.p, p.q, p.r, p.last FROM places p JOIN wanted d ON p.id % 25 = d.k');
SELECT gj_same('SELECT count(*), sum(p.b), sum(p.d), sum(p.e), sum(p.i), sum(p.k), sum(p.m), max(p.p), count(p.c), sum(p.o::int8) FROM places p JOIN wanted d ON p.id % 25 = d.k');
SELECT gj_same(format('SELECT p.id, p.%I FROM places p JOIN wanted d ON p.id %% 25 = d.k', attname)) FROM pg_attribute WHERE attrelid = 'places'::regclass AND attnum > 1 ORDER BY attnum;
SELECT gj_same('SELECT p.k, p.d FROM places p JOIN wanted d ON p.e % 25 = d.k WHERE p.i < -500 AND p.g > 10');
