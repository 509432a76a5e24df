-- Aggregates over a table alone: a program without a join step.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (k int, v int, i8 int8, x float8, t text, b bool);
INSERT INTO f SELECT i % 10, CASE WHEN i % 7 <> 0 THEN i END, i * 3000000000, i / 4.0, 'text ' || i % 20, i % 2 = 0 FROM generate_series(1, 5000) i;
VACUUM ANALYZE f;

SELECT count(*), sum(v), min(v), max(v), avg(k) FROM f;
SELECT list, gj_same(format('SELECT %s FROM f', list)) FROM unnest(ARRAY['count(*)', 'count(v), count(t)', 'sum(v), avg(v), min(v), max(v)', 'sum(i8), avg(i8)', 'sum(x), avg(x), min(x), max(x)', 'sum(v + k)', 'count(*) FILTER (WHERE b)',
	'stddev(v), var_pop(k)', 'bool_and(b), bool_or(b)', 'sum(v) / count(*)', '1, count(*)', 'sum(length(t))']) WITH ORDINALITY AS l(list, n) ORDER BY n;
SELECT gj_same('SELECT count(*), sum(v) FROM f WHERE v > 100 AND b');
SELECT gj_same('SELECT count(*) FROM f WHERE t LIKE ''%1''');
SELECT gj_same('SELECT count(*), sum(v) FROM f WHERE v < 0');
SELECT gj_same('SELECT count(*) FROM f HAVING count(*) > 10000');
SELECT gj_same('SELECT sum(v + 2147483000) FROM f');

-- rows of every kind: deleted, updated, of this transaction, of an aborted one
CREATE TABLE changed (a int, b text);
INSERT INTO changed SELECT i, 'b' || i FROM generate_series(1, 1000) i;
DELETE FROM changed WHERE a % 3 = 0;
UPDATE changed SET a = a + 1 WHERE a % 5 = 0;
BEGIN;
INSERT INTO changed SELECT i, NULL FROM generate_series(1, 10) i;
SELECT gj_same('SELECT count(*), sum(a), count(b) FROM changed');
SAVEPOINT s;
DELETE FROM changed;
SELECT gj_same('SELECT count(*), sum(a), count(b) FROM changed');
ROLLBACK TO s;
SELECT gj_same('SELECT count(*), sum(a), count(b) FROM changed');
ROLLBACK;
SELECT gj_same('SELECT count(*), sum(a), count(b) FROM changed');
CREATE TABLE empty (a int);
SELECT gj_same('SELECT count(*), sum(a) FROM empty');
SELECT gj_same('SELECT a, count(*) FROM empty GROUP BY a');
CREATE TABLE no_columns ();
INSERT INTO no_columns DEFAULT VALUES;
SELECT gj_same('SELECT count(*) FROM no_columns');
CREATE TEMP TABLE mine AS SELECT i AS a FROM generate_series(1, 100) i;
SELECT gj_same('SELECT count(*), sum(a) FROM mine');

-- what stays PostgreSQL's
CREATE TABLE parts (a int) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
INSERT INTO parts SELECT i FROM generate_series(1, 50) i;
SELECT gj_same('SELECT count(*), sum(a) FROM parts');
SELECT gj_same('SELECT count(*) FROM generate_series(1, 10)');
SELECT gj_same('SELECT count(*) FROM f TABLESAMPLE SYSTEM (100)');
SELECT gj_same('SELECT count(xmin) FROM f');
SELECT gj_same('SELECT count(DISTINCT k), count(DISTINCT v) FROM f');
SELECT gj_same('SELECT count(*) FROM (SELECT * FROM f LIMIT 10) s');

-- row-level security: what is hidden is not counted
CREATE ROLE gj_reader;
CREATE TABLE secret (owner name, a int);
INSERT INTO secret SELECT CASE WHEN i % 4 = 0 THEN 'gj_reader' ELSE 'other' END, i FROM generate_series(1, 100) i;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON secret USING (a < 50);
GRANT SELECT ON secret TO gj_reader;
SET ROLE gj_reader;
SELECT count(*), sum(a), sum(100 / (a - 70)) FROM secret;
SELECT a % 2, count(*) FROM secret GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM f;
RESET ROLE;
DROP TABLE secret;
DROP ROLE gj_reader;

-- the cost decides: a small table, and one that an index finds, are PostgreSQL's
SET gpujoin.force = off;
CREATE INDEX ON f (v);
SELECT gj_how('SELECT count(*), sum(k) FROM f', false);
SELECT gj_how('SELECT max(v) FROM f', false);
SET gpujoin.force = on;

SELECT gj_plan('SELECT count(*) FROM f');
SELECT gj_plan('SELECT sum(v) + 1 FROM f a WHERE b HAVING count(*) > 1');
DROP TABLE f, changed, empty, no_columns, mine, parts;
