-- Tables loaded by several processes: the same rows as with one.  t/007_parallel_load.pl has the rest.
SET client_min_messages = warning;
SET gpujoin.force = on;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET max_parallel_workers = 8;
CREATE TABLE pl_f AS
	SELECT i AS id, i % 1000 AS k, nullif(i % 7, 0) AS n, 'text ' || i AS t FROM generate_series(1, 100000) i;
CREATE TABLE pl_d AS SELECT i AS k, i * 3 AS v, 'd' || i AS name FROM generate_series(1, 900) i;
CREATE TABLE pl_e AS SELECT i AS v, i % 10 AS g FROM generate_series(1, 3000) i;
CREATE TEMP TABLE pl_temp AS SELECT k, v FROM pl_d;
VACUUM ANALYZE pl_f, pl_d, pl_e;

SELECT gj_equal_loaded('SELECT count(*) AS a, sum(f.id + d.v) AS b, count(f.n) AS c, min(f.n) AS d, max(d.v) AS e FROM pl_f f JOIN pl_d d USING (k)');
SELECT gj_equal_loaded('SELECT f.id, f.n, f.t, d.name FROM pl_f f JOIN pl_d d USING (k)');
SELECT gj_equal_loaded('SELECT f.id, f.t, d.name, e.g FROM pl_f f JOIN pl_d d USING (k) JOIN pl_e e ON e.v = d.v WHERE e.g < 5 AND f.n > 2');
SELECT gj_equal_loaded('SELECT d.name, sum(f.n) FROM pl_f f JOIN pl_d d USING (k) GROUP BY 1');
-- sides that workers cannot read
SELECT gj_equal_loaded('SELECT f.id, x.v FROM pl_f f JOIN pl_temp x USING (k)');
SELECT gj_equal_loaded('SELECT f.id, x.c FROM pl_f f JOIN (SELECT k, count(*) AS c FROM pl_d GROUP BY k OFFSET 0) x USING (k)');
-- nothing to load, and nothing to join with
SELECT gj_equal_loaded('SELECT count(*) FROM pl_f f JOIN (SELECT k FROM pl_d WHERE v < 0 OFFSET 0) x USING (k)');
SELECT gj_equal_loaded('SELECT f.id FROM pl_f f JOIN pl_d d USING (k) WHERE d.v < 0');

-- how many
SET gpujoin.loader_workers = 4;
SELECT gj_workers('SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k)');
SELECT gj_workers('SELECT f.id, d.name FROM pl_f f JOIN pl_d d USING (k)');
SELECT gj_workers('SELECT f.id, d.name FROM pl_f f JOIN pl_d d USING (k) LIMIT 10');
SET gpujoin.loader_workers = 0;
SELECT gj_workers('SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k)');
SET gpujoin.loader_workers = 4;
SET max_parallel_workers = 0;
SELECT gj_workers('SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k)');
SET max_parallel_workers = 8;
SET max_parallel_workers_per_gather = 0;
SELECT gj_workers('SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k)');
SET max_parallel_workers_per_gather = 2;
-- a table of its own size a worker
SET min_parallel_table_scan_size = '8MB';
SELECT gj_workers('SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k)');
SET min_parallel_table_scan_size = 0;
-- only a temporary table to load
SELECT gj_workers('SELECT count(*) FROM pl_temp a JOIN pl_temp b USING (k)');

-- a plan made for workers, and executed when there are none
PREPARE pl_sums AS SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k);
EXECUTE pl_sums;
SET max_parallel_workers = 0;
EXECUTE pl_sums;
RESET max_parallel_workers;
SET gpujoin.loader_workers = 0;
EXECUTE pl_sums;
SET gpujoin.loader_workers = 4;
DEALLOCATE pl_sums;

-- what the transaction itself has changed, also in subtransactions
BEGIN;
UPDATE pl_f SET n = 1000 WHERE id % 10 = 0;
SAVEPOINT a;
DELETE FROM pl_d WHERE k > 800;
SAVEPOINT b;
INSERT INTO pl_d SELECT i, -i, 'gone' FROM generate_series(801, 900) i;
ROLLBACK TO b;
INSERT INTO pl_d SELECT i, -i, 'new' FROM generate_series(801, 850) i;
SELECT gj_equal_loaded('SELECT f.id, f.n, d.v, d.name FROM pl_f f JOIN pl_d d USING (k)');
SELECT gj_workers('SELECT count(*), sum(f.n), sum(d.v) FROM pl_f f JOIN pl_d d USING (k)');
SELECT count(*), sum(f.n), sum(d.v) FROM pl_f f JOIN pl_d d USING (k);
ROLLBACK TO a;
SELECT count(*), sum(f.n), sum(d.v) FROM pl_f f JOIN pl_d d USING (k);
ROLLBACK;
-- a table of this transaction
BEGIN;
CREATE TABLE pl_new AS SELECT * FROM pl_d;
DELETE FROM pl_new WHERE k > 10;
SELECT gj_workers('SELECT count(*), sum(f.n), sum(d.v) FROM pl_f f JOIN pl_new d USING (k)');
SELECT count(*), sum(f.n), sum(d.v) FROM pl_f f JOIN pl_new d USING (k);
ROLLBACK;

-- what is not run to its end in one go, or writes, is loaded without workers
BEGIN;
DECLARE c CURSOR FOR SELECT f.id, d.name FROM pl_f f JOIN pl_d d USING (k) WHERE f.id < 4;
MOVE 1 FROM c;
UPDATE pl_e SET g = g WHERE v = 1;
MOVE ALL IN c;
COMMIT;
CREATE TABLE pl_into (n bigint, s bigint);
INSERT INTO pl_into SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k);
INSERT INTO pl_into SELECT f.id, d.v FROM pl_f f JOIN pl_d d USING (k) WHERE f.id < 3;
SELECT * FROM pl_into ORDER BY n;
CREATE FUNCTION pl_write(int) RETURNS int LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO pl_into VALUES ($1, $1); RETURN $1; END $$;
SELECT sum(pl_write(f.id)) FROM pl_f f JOIN pl_d d USING (k) WHERE f.id < 4;
SELECT gj_workers('SELECT pl_write(f.id) FROM pl_f f JOIN pl_d d USING (k) WHERE f.id < 4');

-- joins in joins, rescans, errors
SELECT gj_equal_loaded('SELECT e.v, (SELECT count(*) FROM pl_f f JOIN pl_d d USING (k) WHERE d.v = e.v) FROM pl_e e WHERE e.v < 5');
SELECT gj_equal_loaded('SELECT x.v, count(*) FROM (SELECT f.k, d.v FROM pl_f f JOIN pl_d d USING (k) OFFSET 0) x JOIN pl_e USING (v) GROUP BY 1');
-- PostgreSQL's plan raises them, in this process or in a parallel worker, as the CONTEXT would tell
\set SHOW_CONTEXT never
SELECT sum(1 / (f.id - 5)) FROM pl_f f JOIN pl_d d USING (k);
SELECT count(x.q) FROM (SELECT 1 / (f.id - 5) AS q FROM pl_f f JOIN pl_d d USING (k) OFFSET 0) x;
SELECT count(*), sum(f.id + d.v) FROM pl_f f JOIN pl_d d USING (k);
DROP TABLE pl_f, pl_d, pl_e, pl_into, pl_temp;
DROP FUNCTION pl_write;
