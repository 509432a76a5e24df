-- Whatever fails on the device: PostgreSQL's rows or PostgreSQL's error, and the reason in EXPLAIN ANALYZE and gpujoin_stat.
-- (crash and stall, which take more than a query: t/)
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, v int, t text);
INSERT INTO f SELECT i, i % 50, i % 100, 't' || i FROM generate_series(1, 3000) i;
CREATE TABLE g (k int, c int, name text);
INSERT INTO g SELECT i, i % 7, 'g' || i FROM generate_series(0, 29) i;
CREATE TABLE empty (k int);
VACUUM ANALYZE f, g;

-- same rows as without the failure, and whether EXPLAIN ANALYZE gives a reason
CREATE FUNCTION fails_at(point text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	how text;
	counted int8 := (SELECT sum(count) FROM gpujoin_stat);
BEGIN
	PERFORM set_config('gpujoin.fail_at', point, false);
	answer := gj_equal(query);
	how := CASE WHEN answer LIKE 'same error%' THEN '' ELSE gj_how(query) END;
	RESET gpujoin.fail_at;
	RETURN concat(answer, CASE WHEN how LIKE 'GpuJoin%fell back: %' THEN ', fell back' WHEN how <> '' THEN ', ' || how END,
				  CASE WHEN (SELECT sum(count) FROM gpujoin_stat) > counted THEN ', counted' END);
END $$;

\set sums 'SELECT count(*), sum(f.v + g.c), min(f.v) FROM f JOIN g ON f.k = g.k'
\set rows 'SELECT f.id, g.name, f.t FROM f JOIN g ON f.k = g.k'

SELECT gj_same(:'sums'), gj_same(:'rows');
SELECT p, fails_at(p, :'sums'), fails_at(p, :'rows')
FROM unnest(ARRAY['connect', 'submit', 'memory', 'build', 'probe', 'overflow']) WITH ORDINALITY AS t(p, n) ORDER BY n;
SELECT fails_at('never', :'sums'), fails_at('never', :'rows');
-- other shapes of plans above and below
SELECT p, fails_at(p, 'SELECT f.id, g.name FROM f JOIN (SELECT k, max(name) AS name FROM g GROUP BY k) g USING (k)'),
	fails_at(p, 'SELECT a.id, g.name, b.v FROM f a JOIN g ON a.k = g.k JOIN f b ON b.id = a.id WHERE a.t LIKE ''%1%'''),
	fails_at(p, 'SELECT f.id FROM f JOIN g ON f.k = g.k ORDER BY f.t LIMIT 10'),
	fails_at(p, 'SELECT g.name, count(*) FROM f JOIN g ON f.k = g.k GROUP BY 1'),
	fails_at(p, 'SELECT k, (SELECT count(*) FROM f JOIN g USING (k) WHERE f.v > o.k) FROM g o WHERE k < 5')
FROM unnest(ARRAY['connect', 'memory', 'probe']) WITH ORDINALITY AS t(p, n) ORDER BY n;
-- after the first batch: the right rows, or an error that says what happened, never other rows
CREATE FUNCTION fails_after_output(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gj_native(query);
	forced text[];
BEGIN
	SET gpujoin.fail_at = 'output';
	forced := gj_rows(query);
	RESET gpujoin.fail_at;
	RETURN CASE WHEN native = forced OR forced[1] ~ '^error (58|XX000|53|08)' THEN 'right rows or an error' ELSE 'WRONG: ' || forced[1] END;
END $$;
SELECT fails_after_output(:'sums'), fails_after_output(:'rows'), fails_after_output('SELECT a.id, b.id FROM f a JOIN f b USING (k) WHERE a.v < 20');
-- the session is as before
SELECT gj_same(:'sums'), gj_same(:'rows');

-- only a superuser may let it fail
CREATE ROLE regress_gpujoin_fail;
SET ROLE regress_gpujoin_fail;
SET gpujoin.fail_at = 'probe';
RESET ROLE;
DROP ROLE regress_gpujoin_fail;
SET gpujoin.fail_at = 'nowhere';

-- failures that nobody injected: overflow and division by zero are PostgreSQL's errors
SELECT gj_same('SELECT f.v * 2147483647 + g.c FROM f JOIN g ON f.k = g.k');
SELECT gj_same('SELECT sum(f.v * 2147483647) FROM f JOIN g ON f.k = g.k');
SELECT gj_same('SELECT count(*) FROM f JOIN g ON f.k = g.k WHERE f.v * 2147483647 > 0');
SELECT gj_same('SELECT sum(f.v / g.c) FROM f JOIN g ON f.k = g.k');
SELECT gj_same('SELECT count(*) FROM f JOIN g ON f.k = g.k AND f.v % g.c = 0');
-- PostgreSQL's own plan may never meet the row that the device would have met: no error then
SELECT count(*) FROM (SELECT f.id FROM f JOIN empty ON f.k = empty.k WHERE f.v * 2147483647 > 0) x;
SELECT gj_equal('SELECT f.id FROM f JOIN empty e ON f.k = e.k WHERE f.v / (e.k - e.k) > 0');
-- errors of PostgreSQL's expressions come through, and leave nothing behind
SELECT gj_equal('SELECT f.id, 1 / (f.id - 500) FROM f JOIN g ON f.k = g.k');
SELECT gj_equal('SELECT f.id, left(g.name, 1)::int FROM f JOIN g ON f.k = g.k');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE f.t::int > 0');
-- what is closed is given back soon
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN NOT EXISTS (SELECT FROM gpujoin_devices WHERE sessions > 0); PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT sum(sessions) AS sessions, sum(memory_used) AS memory_used FROM gpujoin_devices;

-- a device with hardly any memory: the right rows
SET gpujoin.device_memory_limit = '1MB';
SELECT gj_equal(:'sums'), gj_equal(:'rows');
RESET gpujoin.device_memory_limit;
SELECT gj_same(:'sums');

DROP TABLE f, g, empty;
DROP FUNCTION fails_at, fails_after_output;
