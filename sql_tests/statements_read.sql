-- Where a join can stand, with who ran it: cursors, loops, prepared statements, COPY, parallel plans around it, DDL
-- between plan and execution; and tables whose pages are unusual.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE t (id int PRIMARY KEY, k int, v int, note text);
INSERT INTO t SELECT i, i % 50, i, 'note ' || i FROM generate_series(1, 3000) i;
CREATE TABLE a (k int, x int, name text);
INSERT INTO a SELECT i, i * 3, 'a' || i FROM generate_series(0, 39) i;
VACUUM ANALYZE t, a;

-- Programs that this server has completed and that fell back, since the last time: "ran 2", "ran 1, fell back 1".
CREATE TEMP TABLE counted AS SELECT 0::int8 AS ran, 0::int8 AS fell_back;
CREATE FUNCTION gj_ran() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ran_now int8 := (SELECT sum(count) FROM gpujoin_stat WHERE outcome = 'completed');
	fell_back_now int8 := (SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome <> 'completed');
	result text;
BEGIN
	SELECT concat('ran ', ran_now - ran, ', fell back ' || nullif(fell_back_now - fell_back, 0)) INTO result FROM counted;
	UPDATE counted SET ran = ran_now, fell_back = fell_back_now;
	RETURN result;
END $$;
SELECT gj_ran() IS NOT NULL;

-- cursors: backwards, held, in functions
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT t.id, a.name FROM t JOIN a USING (k) ORDER BY t.id;
FETCH LAST FROM c;
FETCH ABSOLUTE 3 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
SELECT gj_ran();
DECLARE h CURSOR WITH HOLD FOR SELECT t.id, a.name FROM t JOIN a USING (k) WHERE t.id > 2990 ORDER BY 1;
SELECT gj_ran();
DELETE FROM a WHERE k = 49;
FETCH 2 FROM h;
CLOSE h;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT t.id FROM t JOIN a USING (k);
FETCH BACKWARD 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT t.id FROM t JOIN a USING (k) WHERE t.id < 4 ORDER BY t.id FOR UPDATE;
FETCH 1 FROM c;
UPDATE t SET v = v WHERE CURRENT OF c;
ROLLBACK;
SELECT gj_ran();
CREATE FUNCTION opened(OUT c refcursor) LANGUAGE plpgsql AS $$ BEGIN c := 'given'; OPEN c FOR SELECT count(*), sum(t.v) FROM t JOIN a USING (k); END $$;
BEGIN;
SELECT opened();
FETCH ALL FROM given;
COMMIT;
SELECT gj_ran();

-- loops, exceptions, functions in functions
CREATE FUNCTION inner_sum(lo int) RETURNS int8 LANGUAGE sql STABLE AS 'SELECT sum(t.v) FROM t JOIN a USING (k) WHERE t.id > lo';
CREATE FUNCTION outer_sum() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	total numeric := 0;
	caught int := 0;
BEGIN
	FOR r IN SELECT t.id, a.x FROM t JOIN a USING (k) WHERE t.id % 1000 = 1 ORDER BY 1 LOOP
		BEGIN
			total := total + inner_sum(r.id) / (r.id - 1001);
		EXCEPTION WHEN division_by_zero THEN
			caught := caught + 1;
			SELECT total + count(*) INTO total FROM t JOIN a USING (k) WHERE a.x = r.x;
		END;
	END LOOP;
	RETURN total || ', caught ' || caught;
END $$;
SELECT gj_equal('SELECT outer_sum()');
SELECT gj_ran();
SELECT gj_equal('SELECT a.k, inner_sum(a.x * 20) FROM a JOIN t ON t.id = a.k + 1 WHERE a.k < 3');
SELECT gj_ran();
DO $$ DECLARE n int; BEGIN
	FOR i IN 1..3 LOOP
		BEGIN SELECT 1 / (count(*) - 2400)::int INTO n FROM t JOIN a USING (k); EXCEPTION WHEN division_by_zero THEN NULL; END;
	END LOOP;
END $$;
SELECT gj_ran();

-- prepared: custom plans and the generic one
SET plan_cache_mode = force_custom_plan;
PREPARE custom(int) AS SELECT count(*), sum(t.v) FROM t JOIN a USING (k) WHERE t.id < $1;
EXECUTE custom(100);
EXECUTE custom(NULL);
SELECT gj_ran();
SET plan_cache_mode = auto;
PREPARE auto(int, text) AS SELECT count(*), sum(t.v), max($2) FROM t JOIN a USING (k) WHERE t.id < $1;
EXECUTE auto(100, 'a'); EXECUTE auto(200, 'b'); EXECUTE auto(300, 'c'); EXECUTE auto(400, 'd'); EXECUTE auto(500, 'e'); EXECUTE auto(600, NULL);
SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE name = 'auto';
SELECT gj_ran();

-- COPY
COPY (SELECT t.id, a.name FROM t JOIN a USING (k) WHERE t.id < 4 ORDER BY 1) TO STDOUT WITH (FORMAT csv, HEADER);
COPY (SELECT count(*) FROM t JOIN a USING (k)) TO STDOUT (FORMAT text);
SELECT gj_ran();

-- parallel plans around a GpuJoin
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
SET gpujoin.loader_workers = 0;
CREATE TABLE big AS SELECT i AS id, i % 100 AS k FROM generate_series(1, 20000) i;
VACUUM ANALYZE big;
SELECT gj_equal('SELECT count(*) FROM big WHERE k = (SELECT count(*) - 2390 FROM t JOIN a USING (k))');
SELECT gj_ran();
\set around 'SELECT count(*), sum(s.n) FROM (SELECT id, k FROM big WHERE id % 3 = 0 ORDER BY id OFFSET 0) b JOIN (SELECT k, count(*) AS n FROM t JOIN a USING (k) GROUP BY k) s USING (k)'
SELECT gj_explain(:'around')::text ~ 'Gather', gj_explain(:'around')::text ~ 'GpuJoin', gj_equal(:'around');
SELECT gj_ran();
SELECT gj_same('SELECT b.id FROM big b WHERE b.id < 5 UNION ALL SELECT t.id FROM t JOIN a USING (k) WHERE t.id < 5');
-- all in workers; the setting has had another name before 16
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT gj_same('SELECT count(*), sum(t.v) FROM t JOIN a USING (k)');
SELECT gj_same('SELECT t.id, a.name FROM t JOIN a USING (k)');
SELECT gj_equal('SELECT inner_sum(5)');
-- a function that is said to be parallel safe, in workers
ALTER FUNCTION inner_sum PARALLEL SAFE;
SELECT gj_equal('SELECT max(inner_sum(id)) FROM big WHERE id < 4');
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT gj_equal('SELECT max(inner_sum(id)) FROM big WHERE id < 4');
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather; RESET gpujoin.loader_workers;
DROP TABLE big;

-- levels of isolation
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gj_same('SELECT count(*), sum(t.v) FROM t JOIN a USING (k)');
COMMIT;
BEGIN ISOLATION LEVEL READ UNCOMMITTED;
SELECT gj_same('SELECT count(*), sum(t.v) FROM t JOIN a USING (k)');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY, DEFERRABLE;
SELECT gj_same('SELECT t.id, a.name FROM t JOIN a USING (k)');
COMMIT;

-- DDL between plan and execution
SET plan_cache_mode = force_generic_plan;
CREATE VIEW seen AS SELECT t.id, t.v, a.name FROM t JOIN a USING (k);
CREATE FUNCTION limit_of() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 100';
PREPARE planned AS SELECT count(*), sum(s.v), min(s.name) FROM seen s WHERE s.v < limit_of();
CREATE FUNCTION gj_planned(ddl text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'EXECUTE planned';
	EXECUTE ddl;
	RETURN concat_ws(', ', (gj_rows('EXECUTE planned'))[1], gj_how('EXECUTE planned'),
		CASE WHEN gj_rows('EXECUTE planned') IS DISTINCT FROM gj_rows('SELECT count(*), sum(s.v), min(s.name) FROM seen s WHERE s.v < limit_of()') THEN 'DIFFERENT' END);
END $$;
SELECT ddl, gj_planned(ddl) FROM unnest(ARRAY['SELECT 1', 'ALTER TABLE a ADD COLUMN more int DEFAULT 5', 'ALTER TABLE a DROP COLUMN more', 'CREATE INDEX a_k ON a (k)', 'DROP INDEX a_k',
	'ANALYZE t', 'CREATE OR REPLACE FUNCTION limit_of() RETURNS int LANGUAGE sql IMMUTABLE AS ''SELECT 200''', 'CREATE OR REPLACE VIEW seen AS SELECT t.id, t.v + 1 AS v, a.name FROM t JOIN a USING (k) WHERE a.k > 5',
	'DROP VIEW seen; ALTER TABLE a ALTER k TYPE int8; CREATE VIEW seen AS SELECT t.id, t.v, a.name FROM t JOIN a USING (k)', 'ALTER TABLE t ENABLE ROW LEVEL SECURITY', 'ALTER TABLE a SET (fillfactor = 50)', 'SET work_mem = ''100kB''', 'SET gpujoin.algorithm = sort_merge', 'TRUNCATE a']) WITH ORDINALITY AS x(ddl, n) ORDER BY n;
DROP FUNCTION gj_planned;
RESET work_mem; RESET gpujoin.algorithm; RESET plan_cache_mode;
DEALLOCATE ALL;
DROP VIEW seen;

-- who asks: policies, column privileges, barriers
INSERT INTO a SELECT i, i * 3, 'a' || i FROM generate_series(0, 39) i;
CREATE POLICY even ON t USING (id % 2 = 0);
CREATE VIEW barrier WITH (security_barrier) AS SELECT k, x FROM a WHERE x > 30;
CREATE ROLE gj_asks;
GRANT SELECT (id, k) ON t TO gj_asks;
GRANT SELECT ON a, barrier TO gj_asks;
SET ROLE gj_asks;
SELECT gj_same('SELECT t.id, a.name FROM t JOIN a USING (k)');
SELECT gj_same('SELECT t.id, a.name FROM t JOIN a USING (k) WHERE t.id % 3 = 0 AND 7 / t.id < 5');
SELECT gj_same('SELECT t.id, b.x FROM t JOIN barrier b USING (k)');
SELECT gj_equal('SELECT t.id, t.v FROM t JOIN a USING (k)');
SELECT gj_equal('SELECT count(t.*) FROM t JOIN a USING (k)');
RESET ROLE;
DROP VIEW barrier;
DROP OWNED BY gj_asks;
DROP ROLE gj_asks;
-- what is volatile runs once for each row, or is left alone
SELECT gj_how('SELECT count(*) FROM t JOIN (SELECT k, random() AS r FROM a OFFSET 0) x USING (k)');
SELECT gj_how('SELECT count(*) FROM t JOIN a USING (k) WHERE random() < 2');
SELECT gj_how('SELECT count(*) FROM t JOIN a ON t.k = a.k + (random() * 0)::int');
SELECT gj_how('SELECT t.id, random() FROM t JOIN a USING (k)');
DROP TABLE t, a;

-- pages: holes of a fillfactor, HOT chains, redirected, dead and unused line pointers, aborted and locked rows,
-- rows that only some see
CREATE TABLE p (id int PRIMARY KEY, k int, v int, t text) WITH (fillfactor = 30, autovacuum_enabled = off);
CREATE INDEX ON p (k);
CREATE TABLE q AS SELECT i AS k, 'q' || i AS name FROM generate_series(0, 19) i;
INSERT INTO p SELECT i, i % 25, 0, repeat('x', i % 50) FROM generate_series(1, 2000) i;
\set pages 'SELECT p.id, p.v, p.t, q.name FROM p JOIN q USING (k)'
SELECT gj_same(:'pages');
UPDATE p SET v = v + 1 WHERE id % 3 = 0;	-- HOT
UPDATE p SET v = v + 1 WHERE id % 6 = 0;
UPDATE p SET v = v + 1 WHERE id % 12 = 0;
SELECT gj_same(:'pages');
SELECT count(*) FROM p;						-- prunes: redirects
SELECT gj_same(:'pages');
UPDATE p SET k = k + 1 WHERE id % 7 = 0;	-- not HOT
DELETE FROM p WHERE id % 11 = 0;
SELECT gj_same(:'pages');
VACUUM (INDEX_CLEANUP off) p;				-- dead line pointers stay
SELECT gj_same(:'pages');
VACUUM p;
SELECT gj_same(:'pages');
INSERT INTO p SELECT -i, i % 25, 5, 'new' FROM generate_series(1, 100) i;	-- into the holes
BEGIN; INSERT INTO p SELECT 10000 + i, i % 25, 5, 'aborted' FROM generate_series(1, 100) i; DELETE FROM p WHERE id % 5 = 0; ROLLBACK;
SELECT gj_same(:'pages');
BEGIN;
SAVEPOINT s; UPDATE p SET v = 99 WHERE id % 13 = 0; ROLLBACK TO s;
SELECT count(*) FROM (SELECT FROM p WHERE id % 17 = 0 FOR UPDATE) x;
DELETE FROM p WHERE id % 19 = 0;
SAVEPOINT s2; INSERT INTO p VALUES (20000, 1, 1, 'sub');
SELECT gj_same(:'pages');
RELEASE s2;
COMMIT;
SELECT gj_same(:'pages');
VACUUM (FREEZE) p;
SELECT gj_same(:'pages');
DELETE FROM p WHERE id BETWEEN 300 AND 1500;	-- whole pages without a row
VACUUM p;
SELECT gj_same(:'pages');
DELETE FROM p WHERE id > 0;
VACUUM p;									-- shorter
SELECT gj_same(:'pages');
DELETE FROM p;
SELECT gj_same(:'pages'), gj_same('SELECT p.id, q.name FROM p FULL JOIN q USING (k)');

-- tables of no row and of one, on each side of each join
CREATE TABLE none (k int, v int);
CREATE TABLE one AS SELECT 1 AS k, 2 AS v;
SELECT j, x, y, gj_same(format('SELECT x.*, y.* FROM %s x %s %s y ON x.k = y.k', x, j, y)) AS pairs, gj_same(format('SELECT count(*), sum(x.v), max(y.k) FROM %s x %s %s y ON x.k = y.k', x, j, y)) AS sums
FROM unnest(ARRAY['JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN']) WITH ORDINALITY AS j(j, n), (VALUES ('none', 'none'), ('none', 'one'), ('one', 'none'), ('one', 'one'), ('one', 'p')) s(x, y) ORDER BY n, x, y;
SELECT x, y, gj_same(format('SELECT x.* FROM %s x WHERE EXISTS (SELECT FROM %s y WHERE x.k = y.k)', x, y)), gj_same(format('SELECT x.* FROM %s x WHERE NOT EXISTS (SELECT FROM %s y WHERE x.k = y.k)', x, y))
FROM (VALUES ('none', 'none'), ('none', 'one'), ('one', 'none'), ('one', 'one')) s(x, y) ORDER BY x, y;
SELECT gj_same('SELECT x.k, count(*), sum(y.v) FROM none x JOIN one y USING (k) GROUP BY 1'), gj_same('SELECT x.k, count(*), sum(y.v) FROM one x JOIN one y USING (k) GROUP BY 1');

-- 1600 columns, the most that a table can have
DO $$ BEGIN EXECUTE (SELECT format('CREATE TABLE widest (%s)', string_agg('c' || i || CASE WHEN i % 100 = 7 THEN ' text' ELSE ' int' END, ', ')) FROM generate_series(1, 1600) i); END $$;
INSERT INTO widest (c1, c2, c7, c1507, c1599, c1600) SELECT i, i % 20, 't' || i, repeat('u', i), -i, i * 2 FROM generate_series(1, 60) i;
SELECT gj_same('SELECT w.c1, w.c7, w.c1507, w.c1599, w.c1600, w.c800, q.name FROM widest w JOIN q ON w.c2 = q.k');
SELECT gj_same('SELECT count(*), sum(w.c1600), count(w.c1000), min(w.c1599) FROM widest w JOIN q ON w.c2 = q.k WHERE w.c1600 > 20');
SELECT gj_same('SELECT w.c1600, count(*) FROM widest w JOIN widest x ON w.c1 = x.c1600 GROUP BY 1');
SELECT gj_same('SELECT w.* FROM widest w JOIN q ON w.c2 = q.k');
SELECT gj_same('SELECT w FROM widest w JOIN q ON w.c2 = q.k');
DROP TABLE p, q, none, one, widest;
DROP TABLE counted;
DROP FUNCTION gj_ran, opened, inner_sum, outer_sum, limit_of;
