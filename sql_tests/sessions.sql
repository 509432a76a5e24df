-- Joins in cursors, loops, savepoints and other statements; permissions and row-level security.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int PRIMARY KEY, k int, v int, t text);
INSERT INTO f SELECT i, i % 50, i % 100, 't' || i FROM generate_series(1, 20000) i;
CREATE TABLE g (k int PRIMARY KEY, c int, name text);
INSERT INTO g SELECT i, i % 7, 'g' || i FROM generate_series(0, 29) i;
VACUUM ANALYZE f, g;
SELECT gj_how('SELECT f.id, f.t, g.name FROM f JOIN g USING (k)');

-- cursors: part of the rows, all of them, backwards, held, two at once, with changes between
BEGIN;
DECLARE c CURSOR FOR SELECT f.id, g.name FROM f JOIN g USING (k);
MOVE 5000 IN c;
UPDATE f SET v = v + 1 WHERE id = 7;
MOVE 4000 IN c;
DECLARE c2 CURSOR FOR SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.v = 8;
MOVE ALL IN c2;
MOVE ALL IN c;
FETCH 1 FROM c;
CLOSE c2;
ROLLBACK;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.id;
FETCH ABSOLUTE 100 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH FIRST FROM s;
FETCH LAST FROM s;
DECLARE u SCROLL CURSOR FOR SELECT g.name FROM f JOIN g USING (k) WHERE f.id = 5;
FETCH NEXT FROM u; FETCH PRIOR FROM u; FETCH ALL FROM u; FETCH BACKWARD ALL FROM u;
COMMIT;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id < 100 ORDER BY f.id DESC;
COMMIT;
FETCH 2 FROM h;
CLOSE h;
-- DECLARE, fetch a little and leave it to the end of the transaction
BEGIN;
DECLARE c CURSOR FOR SELECT a.id, b.id FROM f a JOIN f b USING (k);
MOVE 10 IN c;
COMMIT;
-- in a function: every row once
CREATE FUNCTION walk(step int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT f.id FROM f JOIN g USING (k);
	n int := 0;
	total int8 := 0;
	r record;
BEGIN
	OPEN c;
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		n := n + 1; total := total + r.id;
		IF n % step = 0 THEN PERFORM count(*) FROM f JOIN g USING (k) WHERE f.id = r.id; END IF;
	END LOOP;
	CLOSE c;
	RETURN n || ' ' || total;
END $$;
SELECT walk(5000), (SELECT count(*) || ' ' || sum(f.id) FROM f JOIN g USING (k));

-- LIMIT and OFFSET
SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) LIMIT 10) x;
SELECT count(*), count(DISTINCT id) FROM (SELECT f.id FROM f JOIN g USING (k) OFFSET 11000 LIMIT 5000) x;
SELECT count(*) FROM (SELECT a.id FROM f a JOIN f b USING (k) LIMIT 3) x;
SELECT EXISTS (SELECT FROM f JOIN g USING (k) WHERE f.v = 3);
-- what is closed is given back soon
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN NOT EXISTS (SELECT FROM gpujoin_devices WHERE sessions > 0); PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT sum(sessions) AS sessions, sum(memory_used) AS memory_used FROM gpujoin_devices;

-- savepoints, and loops that catch errors
BEGIN;
SAVEPOINT a;
SELECT count(*), sum(f.v) FROM f JOIN g USING (k);
SELECT sum(f.v * 2147483647) FROM f JOIN g USING (k);
ROLLBACK TO a;
SELECT count(*), sum(f.v) FROM f JOIN g USING (k);
DELETE FROM g WHERE k = 3;
SAVEPOINT b;
SELECT count(*), sum(f.v) FROM f JOIN g USING (k);
ROLLBACK TO a;
RELEASE a;
SELECT count(*), sum(f.v) FROM f JOIN g USING (k);
COMMIT;
CREATE FUNCTION catching() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	caught int := 0;
	good int := 0;
	r record;
BEGIN
	FOR i IN 1..30 LOOP
		BEGIN
			FOR r IN SELECT f.id, f.v FROM f JOIN g USING (k) LOOP
				IF i % 2 = 0 THEN RAISE EXCEPTION 'enough'; END IF;
				EXIT WHEN r.id > 0;
			END LOOP;
			PERFORM sum(f.v / (i % 3)) FROM f JOIN g USING (k);
			good := good + 1;
		EXCEPTION WHEN raise_exception OR division_by_zero THEN
			caught := caught + 1;
		END;
	END LOOP;
	RETURN good || ' good, ' || caught || ' caught';
END $$;
SELECT catching();
-- what is closed is given back soon
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN NOT EXISTS (SELECT FROM gpujoin_devices WHERE sessions > 0); PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT sum(sessions) AS sessions, sum(memory_used) AS memory_used FROM gpujoin_devices;
-- procedures that commit between rows
CREATE TABLE log (id int);
CREATE PROCEDURE committing() LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT f.id FROM f JOIN g USING (k) WHERE f.v = 3 LOOP
		INSERT INTO log VALUES (r.id);
		IF r.id % 10 = 3 THEN COMMIT; END IF;
	END LOOP;
END $$;
CALL committing();
SELECT count(*), sum(id) FROM log;
SELECT count(*), sum(f.id) FROM f JOIN g USING (k) WHERE f.v = 3;

-- statements that write what a join gives
CREATE TABLE target (id int, name text);
INSERT INTO target SELECT f.id, g.name FROM f JOIN g USING (k);
SELECT count(*), sum(id), count(DISTINCT name) FROM target;
INSERT INTO target SELECT -t.id, g.name FROM target t JOIN g ON t.name = g.name JOIN f ON f.id = t.id AND f.k = g.k;
SELECT count(*), sum(id) FROM target;
CREATE TABLE made AS SELECT f.id, g.name, f.v FROM f JOIN g USING (k) WHERE g.c = 3;
SELECT count(*), sum(id), sum(v) FROM made;
CREATE MATERIALIZED VIEW mv AS SELECT f.k, count(*) AS n FROM f JOIN g USING (k) GROUP BY 1;
REFRESH MATERIALIZED VIEW mv;
SELECT sum(n) FROM mv;
UPDATE made SET name = g.name || '!' FROM g JOIN f USING (k) WHERE made.id = f.id AND g.k < 10;
SELECT count(*) FROM made WHERE name LIKE '%!';
DELETE FROM made USING f JOIN g USING (k) WHERE made.id = f.id AND g.k >= 10;
SELECT count(*), sum(id) FROM made;
UPDATE made SET v = (SELECT sum(f.v) FROM f JOIN g USING (k) WHERE f.id <= made.id) WHERE id < 1000;
SELECT sum(v) FROM made;
WITH moved AS (DELETE FROM target WHERE id < 0 RETURNING id) SELECT count(*), sum(f.v) FROM moved JOIN f ON f.id = -moved.id JOIN g USING (k);
MERGE INTO made USING (SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id < 200) s ON made.id = s.id
	WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, 0);
SELECT count(*), sum(id) FROM made;
INSERT INTO target SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id < 3 RETURNING (SELECT count(*) FROM f JOIN g USING (k));
COPY (SELECT count(*), sum(f.id) FROM f JOIN g USING (k)) TO STDOUT;
-- FOR UPDATE and its kin
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id < 100 FOR UPDATE');
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id < 100 FOR SHARE OF g');
BEGIN;
SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) WHERE f.id < 100 FOR UPDATE OF f SKIP LOCKED) x;
UPDATE f SET v = 0 WHERE id = 1;
SELECT gj_equal('SELECT f.id, f.v, g.name FROM f JOIN g USING (k) WHERE f.id < 100 FOR UPDATE');
ROLLBACK;
-- triggers
CREATE FUNCTION check_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.name := (SELECT count(*) FROM f JOIN g USING (k) WHERE f.v = NEW.id);
	RETURN NEW;
END $$;
CREATE TRIGGER before_row BEFORE INSERT ON made FOR EACH ROW EXECUTE FUNCTION check_sum();
INSERT INTO made VALUES (5), (50), (1000);
SELECT id, name FROM made WHERE v IS NULL ORDER BY id;
DROP TABLE made, target, log;

-- permissions
CREATE ROLE regress_gpujoin_a;
CREATE ROLE regress_gpujoin_b;
CREATE TABLE secret (k int, owner text, amount int, note text);
INSERT INTO secret SELECT i % 30, CASE WHEN i % 2 = 0 THEN 'regress_gpujoin_a' ELSE 'regress_gpujoin_b' END, i, 'note ' || i FROM generate_series(1, 600) i;
GRANT SELECT ON g TO regress_gpujoin_a;
GRANT SELECT (k, amount, owner) ON secret TO regress_gpujoin_a, regress_gpujoin_b;
SET ROLE regress_gpujoin_a;
SELECT count(*), sum(s.amount) FROM secret s JOIN g USING (k);
SELECT count(s.note) FROM secret s JOIN g USING (k);
SELECT s.note FROM secret s JOIN g USING (k);
SELECT count(*) FROM secret s JOIN g USING (k) WHERE s.note IS NOT NULL;
SELECT count(*) FROM f JOIN g USING (k);
SET ROLE regress_gpujoin_b;
SELECT count(*) FROM secret s JOIN g USING (k);
RESET ROLE;
-- EXECUTE rights on functions that the device would replace
CREATE SCHEMA regress_gpujoin;
REVOKE EXECUTE ON FUNCTION int4pl(int, int), sum(int) FROM PUBLIC;
SET ROLE regress_gpujoin_a;
SELECT sum(s.amount) FROM secret s JOIN g USING (k);
SELECT count(*) FROM secret s JOIN g USING (k) WHERE s.amount + s.k > 100;
RESET ROLE;
GRANT EXECUTE ON FUNCTION int4pl(int, int), sum(int) TO PUBLIC;
DROP SCHEMA regress_gpujoin;

-- row-level security: policies before anything that could leak
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
CREATE FUNCTION leak(i int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS 'BEGIN RAISE NOTICE ''leaked %'', i; RETURN true; END';
GRANT EXECUTE ON FUNCTION leak TO PUBLIC;
CREATE FUNCTION note_leak(i int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
	PERFORM set_config('regress.leaked', (current_setting('regress.leaked')::int + 1)::text, false);
	RETURN true;
END $$;
SET ROLE regress_gpujoin_a;
SELECT count(*), sum(s.amount), bool_and(s.owner = 'regress_gpujoin_a') FROM secret s JOIN g USING (k);
SELECT count(*) FROM secret s JOIN g USING (k) WHERE s.amount = 3 AND leak(s.amount);
SELECT count(*) FROM secret s JOIN g USING (k) WHERE s.amount = 4 AND leak(s.amount);
SET regress.leaked = 0;
SELECT count(*) FROM secret s JOIN g USING (k) WHERE note_leak(s.amount);
SELECT current_setting('regress.leaked');
-- a value of a row that is not theirs must not show in an error either
SELECT count(*) FROM secret s JOIN g USING (k) WHERE 10 / (s.amount - 3) < 1000;
RESET ROLE;
SELECT count(*), sum(s.amount) FROM secret s JOIN g USING (k);
-- a cached plan is the user's of the moment
PREPARE mine AS SELECT count(*), sum(s.amount) FROM secret s JOIN g USING (k);
EXECUTE mine;
SET ROLE regress_gpujoin_a;
EXECUTE mine;
RESET ROLE;
EXECUTE mine;
DEALLOCATE mine;
-- security-barrier views
CREATE VIEW barrier WITH (security_barrier) AS SELECT k, amount FROM secret WHERE owner = 'regress_gpujoin_b';
CREATE VIEW open AS SELECT k, amount FROM secret WHERE owner = 'regress_gpujoin_b';
GRANT SELECT ON barrier, open TO regress_gpujoin_a;
SET ROLE regress_gpujoin_a;
SELECT count(*), sum(amount) FROM barrier JOIN g USING (k);
SELECT count(*) FROM barrier b JOIN g USING (k) WHERE b.amount = 4 AND leak(b.amount);
SELECT count(*) FROM barrier b JOIN g USING (k) WHERE b.amount = 5 AND leak(b.amount);
SELECT count(*) FROM barrier b JOIN g USING (k) WHERE 10 / (b.amount - 4) < 1000;
SELECT count(*) FROM open JOIN g USING (k);
RESET ROLE;
DROP VIEW barrier, open;
DROP TABLE secret;
REVOKE ALL ON g FROM regress_gpujoin_a;
DROP FUNCTION leak, note_leak, walk, catching, check_sum CASCADE;
DROP PROCEDURE committing;
DROP ROLE regress_gpujoin_a, regress_gpujoin_b;

-- other settings of the session
SET search_path = pg_catalog;
SELECT count(*) FROM public.f JOIN public.g USING (k);
RESET search_path;
SET work_mem = '64kB';
SELECT gj_same('SELECT f.id, f.t, g.name FROM f JOIN g USING (k)');
RESET work_mem;
SET jit = off;
SET row_security = off;
SELECT count(*) FROM f JOIN g USING (k);
RESET ALL;
-- RESET ALL and DISCARD ALL leave a session that works
DISCARD ALL;
SET gpujoin.force = on;
SELECT gj_same('SELECT count(*) FROM f JOIN g USING (k)');
-- tables and indexes of an open cursor cannot be changed or dropped
CREATE INDEX g_k ON g (k);
CREATE FUNCTION under_cursor(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT f.id, g.name FROM f JOIN g USING (k);
BEGIN
	OPEN c;
	EXECUTE command;
	RETURN 'not refused';
EXCEPTION WHEN object_in_use THEN
	RETURN 'refused';
END $$;
SELECT c, under_cursor(c) FROM unnest(ARRAY['TRUNCATE f', 'DROP TABLE g CASCADE', 'ALTER TABLE f ALTER id TYPE int8', 'ALTER TABLE f DROP COLUMN v']) c;
DROP FUNCTION under_cursor;
-- a condition that can fail does not see the rows that a policy hides: no fallback tells of them
CREATE TABLE hidden (k int, secret int);
INSERT INTO hidden SELECT i, i FROM generate_series(1, 100) i;
CREATE ROLE gj_reader;
GRANT SELECT ON hidden, g TO gj_reader;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON hidden USING (k % 2 = 0);
SET SESSION AUTHORIZATION gj_reader;
SELECT gj_how('SELECT count(*) FROM hidden JOIN g USING (k) WHERE 1 / (secret - 43) > -5');
SELECT gj_equal('SELECT count(*) FROM hidden JOIN g USING (k) WHERE 1 / (secret - 43) > -5');
RESET SESSION AUTHORIZATION;
SET gpujoin.force = on;
DROP TABLE hidden;
DROP OWNED BY gj_reader;
DROP ROLE gj_reader;
DROP MATERIALIZED VIEW mv;
DROP TABLE f, g;
