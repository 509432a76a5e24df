-- Functions over families of sets in FROM: the scan node, which returns rows as they come, against the function itself.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.set_device_min_elements = 0;

CREATE TABLE scan_s (id int, s int[]);
INSERT INTO scan_s SELECT i, ARRAY[i % 5, 100 + i % 7, 200 + i / 3, 1000 + i] FROM generate_series(1, 300) i;
CREATE TABLE scan_few (id int PRIMARY KEY, t float8, k int);
INSERT INTO scan_few VALUES (1, 1, 1), (2, 2, 3), (3, 3, 2), (4, 4, 5);
ANALYZE scan_s, scan_few;
\set q '''SELECT id, s FROM scan_s'''

-- plans
SELECT gj_plan('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2) j WHERE left_id < 10');
SELECT gj_plan('SELECT common FROM gpu_set_join_items(''SELECT id, s FROM scan_s'', ''SELECT 1, ARRAY[1]'', ''contains'')');
SELECT gj_plan('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s'', k => 3, metric => ''cosine'')');
SELECT gj_plan('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM scan_s'')');
SELECT gj_plan('SELECT x.left_id FROM scan_few f, gpu_set_join(''SELECT id, s FROM scan_s'', threshold => f.t) x');
SELECT gj_plan('SELECT common FROM gpu_set_join(''SELECT id, s FROM no_such_table'', predicate => ''similar'')');
-- left to the function: all that is more than its columns
CREATE FUNCTION scans(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(CASE WHEN line ~ 'GpuSetScan' THEN 'set scan' ELSE 'function scan' END, ', ') FROM gj_plan(query) line WHERE line ~ 'GpuSetScan|Function Scan on gpu|Function Scan on [jo]'
$$;
SELECT scans('SELECT j FROM gpu_set_join(''SELECT id, s FROM scan_s'') j'), scans('SELECT left_id FROM gpu_set_join(''SELECT id, s FROM scan_s'') j WHERE j IS NOT NULL'),
	scans('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'') WITH ORDINALITY'), scans('SELECT * FROM ROWS FROM (gpu_set_join(''SELECT id, s FROM scan_s''), generate_series(1, 2)) j'),
	scans('SELECT f.id FROM scan_few f, gpu_set_join(''SELECT id, s FROM scan_s'') j WHERE f.id = j.common FOR UPDATE OF f');
SELECT scans('SELECT left_id FROM gpu_set_join(''SELECT id, s FROM scan_s'') UNION ALL SELECT id FROM scan_few'), scans('SELECT count(*) FROM gpu_set_join(''SELECT id, s FROM scan_s'') j JOIN scan_few f ON f.id = j.common');
SET gpujoin.enabled = off;
SELECT scans('SELECT left_id FROM gpu_set_join(''SELECT id, s FROM scan_s'') j');
RESET gpujoin.enabled;
-- what has the same name, or the same code, and is not the extension's
CREATE SCHEMA scan_other;
CREATE FUNCTION scan_other.gpu_set_join(left_query text, OUT left_id bigint, OUT right_id bigint) RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN left_id := 1; RETURN NEXT; END $$;
CREATE FUNCTION scan_other.j(text, text, text, float8, OUT left_id bigint, OUT right_id bigint, OUT common bigint, OUT similarity float8) RETURNS SETOF record AS 'gpujoin', 'gpu_set_join' LANGUAGE C;
SELECT scans('SELECT * FROM scan_other.gpu_set_join(''x'')'), scans('SELECT left_id FROM scan_other.j(''SELECT id, s FROM scan_s'', NULL, ''overlap'', 2) j');
SELECT * FROM scan_other.gpu_set_join('x');
SELECT count(*) FROM scan_other.j('SELECT id, s FROM scan_s', NULL, 'overlap', 2) j;

-- the same rows as the function
SELECT gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'')');
SELECT gj_equal('SELECT similarity, left_id + right_id FROM gpu_set_join(''SELECT id, s FROM scan_s'', ''SELECT id, s FROM scan_s WHERE id < 20'', ''jaccard'', 0.3) WHERE left_id > right_id');
SELECT gj_equal('SELECT left_id, items[1], cardinality(items), items FROM gpu_set_join_items(''SELECT id, s FROM scan_s'') WHERE items && ''{3}''');
SELECT gj_equal('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s'', k => 3) j(a, b, c, d) WHERE c > 1');
SELECT gj_equal('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM scan_s'')');
SELECT gj_equal('SELECT 1 FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2)');
SELECT gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s WHERE false'', ''SELECT id, s FROM scan_s'')');
SELECT gj_equal('SELECT common, count(*), sum(left_id) FROM gpu_set_join(''SELECT id, s FROM scan_s'') GROUP BY 1');
SELECT gj_equal('SELECT j.*, f.k FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2) j JOIN scan_few f ON f.id = j.common');
SELECT gj_equal('SELECT f.id, j.left_id FROM scan_few f LEFT JOIN gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 3) j ON f.id = j.common');
-- arguments from outside: LATERAL, subqueries, initplans; the scan starts anew for each
SELECT gj_equal('SELECT f.id, x.* FROM scan_few f, gpu_set_join(''SELECT id, s FROM scan_s'', threshold => f.t) x');
SELECT gj_equal('SELECT f.id, x.* FROM scan_few f, gpu_set_topk(''SELECT id, s FROM scan_s WHERE id < 40'', k => f.k) x');
SELECT gj_equal('SELECT f.id, x.* FROM scan_few f, gpu_set_join(format(''SELECT id, s FROM scan_s WHERE id %% 4 = %s'', f.k), ''SELECT id, s FROM scan_s WHERE id < 30'') x WHERE x.common >= f.k');
SELECT gj_equal('SELECT f.id, (SELECT count(*) FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => f.t)) FROM scan_few f');
SELECT gj_equal('SELECT f.id, (SELECT sum(frequency) FROM gpu_intersect_family(''SELECT id, s FROM scan_s WHERE id < 50'') WHERE cardinality(set) > f.k) FROM scan_few f');
SELECT gj_equal('SELECT * FROM gpu_set_join((SELECT ''SELECT id, s FROM scan_s WHERE id < '' || max(k) * 10 FROM scan_few))');
SELECT gj_equal('SELECT f.id, EXISTS (SELECT FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2) j WHERE j.left_id = f.k) FROM scan_few f');
SELECT gj_equal('SELECT f.id FROM scan_few f WHERE f.id IN (SELECT rank FROM gpu_set_topk(''SELECT id, s FROM scan_s'', k => 3))');
SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT gj_equal('SELECT f.id, j.left_id, j.right_id FROM scan_few f, gpu_set_join(''SELECT id, s FROM scan_s WHERE id < 60'', threshold => 2) j WHERE j.common > f.id');
SELECT gj_equal('SELECT f.id, j.* FROM scan_few f, gpu_set_topk(''SELECT id, s FROM scan_s WHERE id < 60'', k => 2) j WHERE j.rank > f.id');
RESET enable_material; RESET enable_hashjoin; RESET enable_mergejoin;
-- prepared statements, with and without gpujoin when they are executed
PREPARE scan_p(text, float8) AS SELECT count(*), sum(left_id) FROM gpu_set_join($1, threshold => $2);
SET plan_cache_mode = force_generic_plan;
SELECT gj_plan('EXECUTE scan_p(''SELECT 1, ARRAY[1]'', 1)');
EXECUTE scan_p('SELECT id, s FROM scan_s', 2);
SET gpujoin.enabled = off;
EXECUTE scan_p('SELECT id, s FROM scan_s', 2);
RESET gpujoin.enabled;
EXECUTE scan_p(NULL, 2);
RESET plan_cache_mode;
DEALLOCATE scan_p;
-- cursors: some rows, backwards, own changes after opening are not seen, two at once
BEGIN;
DECLARE a SCROLL CURSOR FOR SELECT left_id, right_id FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
DECLARE b NO SCROLL CURSOR FOR SELECT left_id, right_id FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all') WHERE left_id = 1;
FETCH 2 FROM b;
FETCH 3 FROM a;
FETCH 2 FROM b;
FETCH BACKWARD 2 FROM a;
INSERT INTO scan_s VALUES (1000, '{1}');
MOVE FORWARD ALL FROM a;
MOVE FORWARD ALL FROM b;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
ROLLBACK;
-- in functions, in INSERT … SELECT, in a view, in a CTE, in a set operation
CREATE TABLE scan_out AS SELECT * FROM gpu_set_join(:q, threshold => 2);
INSERT INTO scan_out SELECT * FROM gpu_set_join(:q, threshold => 2) WHERE left_id > 280;
SELECT count(*), sum(common) FROM scan_out;
UPDATE scan_out o SET common = j.common + 1 FROM gpu_set_join(:q, threshold => 2) j WHERE j.left_id < 50 AND o.left_id = j.left_id AND o.right_id = j.right_id;
SELECT count(*), sum(common) FROM scan_out;
DELETE FROM scan_out o USING gpu_set_join(:q, threshold => 2) j WHERE j.left_id > 200 AND o.left_id = j.left_id AND o.right_id = j.right_id;
SELECT count(*), sum(common) FROM scan_out;
CREATE VIEW scan_v AS SELECT * FROM gpu_set_join(:q) WHERE common > 1;
SELECT gj_equal('SELECT * FROM scan_v WHERE left_id = 3'), gj_equal('WITH x AS MATERIALIZED (SELECT * FROM scan_v) SELECT a.left_id, b.right_id FROM x a JOIN x b ON a.right_id = b.left_id WHERE a.left_id < 20'),
	gj_equal('SELECT left_id FROM scan_v EXCEPT SELECT id FROM scan_few');
CREATE FUNCTION scan_loop(query text, n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	i int := 0;
BEGIN
	FOR r IN SELECT * FROM gpu_set_join(query, predicate => 'all') LOOP
		i := i + 1;
		EXIT WHEN i = n;
	END LOOP;
	RETURN i;
END $$;
SELECT scan_loop(:q, 10), scan_loop(:q, 100000), scan_loop(:q, 77);
CREATE FUNCTION scan_later() RETURNS bigint LANGUAGE sql AS $$ CREATE TEMPORARY TABLE scan_tmp AS SELECT id, s FROM scan_s; SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_tmp', threshold => 2) $$;
SELECT scan_later();
DROP TABLE scan_tmp;

-- only what is asked for is joined
CREATE FUNCTION scan_ran(query text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(regexp_replace(line, '^ *', '') || '; ', ''), '') FROM gj_plan(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') line
	WHERE line ~ '^ *(Technique|Predicate|Metric|Best|Left Sets|Right Sets|Sets|Pairs|Fallback):'
$$;
SET gpujoin.set_algorithm = hash;
SELECT scan_ran('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''all'')');
SELECT scan_ran('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''all'') LIMIT 7');
SELECT scan_ran('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', ''SELECT 4711, ARRAY[5000]'', ''dice'', 0.5)');
SELECT scan_ran('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s WHERE id <= 100'', k => 2)');
SELECT scan_ran('SELECT left_id FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''all'') WHERE false');
RESET gpujoin.set_algorithm;
SELECT string_agg(k, ', ' ORDER BY k) FROM (SELECT jsonb_object_keys(gj_explain('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'')', 'ANALYZE')->0->'Plan') AS k) x WHERE k ~ 'Sets|Pairs|Device$|Technique|Predicate|Elements|Complete';

-- what rows are expected: those of the queries, if they are constants
CREATE FUNCTION scan_estimate(query text) RETURNS int8 LANGUAGE sql AS $$ SELECT (gj_explain(query, 'COSTS ON')->0->'Plan'->'Plan Rows')::int8 $$;
SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''all'')'), scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', ''SELECT id, ARRAY[1] FROM scan_few'', ''all'')'),
	scan_estimate('SELECT gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''all'')'), scan_estimate('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s'', k => 4)'),
	scan_estimate('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s'', ''SELECT id, ARRAY[1] FROM scan_few'', k => 40)'), scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''equals'')');
SELECT a.r > b.r, b.r > c.r, c.r >= d.r FROM (SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 0)') AS r) a, (SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'')') AS r) b,
	(SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''jaccard'', threshold => 0.9)') AS r) c, (SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 10)') AS r) d;
-- bad queries are estimated all the same, and leave the transaction as it was
BEGIN;
SELECT scan_estimate('SELECT * FROM gpu_set_join(''SELECT id, s FROM no_such_table'')') > 0, scan_estimate('SELECT * FROM gpu_set_join(''nonsense'')') > 0, scan_estimate('SELECT * FROM gpu_set_join(''SELECT 1; SELECT 2'')') > 0,
	scan_estimate('SELECT * FROM gpu_set_join(''SELECT 1/0, ARRAY[1]'')') > 0, scan_estimate('SELECT * FROM gpu_set_join(NULL)') > 0, scan_estimate('SELECT * FROM gpu_set_join(''SELECT 1, ARRAY[1]'', threshold => ''NaN'')') > 0;
SELECT count(*) FROM scan_s;
COMMIT;

-- queries that call each other without an end are planned all the same
CREATE FUNCTION scan_first() RETURNS TABLE (id int, s int[]) LANGUAGE sql STABLE AS 'SELECT 1, ARRAY[1]';
CREATE FUNCTION scan_second() RETURNS TABLE (id int, s int[]) LANGUAGE sql STABLE AS $$
	SELECT a.common::int, ARRAY[1] FROM gpu_set_join('SELECT * FROM scan_first() WHERE id > 1', 'SELECT * FROM scan_first() WHERE id > 2') a, gpu_set_join('SELECT * FROM scan_first() WHERE id > 3', 'SELECT * FROM scan_first() WHERE id > 4') b
$$;
CREATE OR REPLACE FUNCTION scan_first() RETURNS TABLE (id int, s int[]) LANGUAGE sql STABLE AS $$
	SELECT a.common::int, ARRAY[1] FROM gpu_set_join('SELECT * FROM scan_second() WHERE id > 1', 'SELECT * FROM scan_second() WHERE id > 2') a, gpu_set_join('SELECT * FROM scan_second() WHERE id > 3', 'SELECT * FROM scan_second() WHERE id > 4') b
$$;
SET statement_timeout = '10s';
SELECT count(*) > 0 FROM gj_plan('SELECT * FROM scan_first()');
RESET statement_timeout;
DROP FUNCTION scan_first, scan_second;

-- errors are those of the function
SELECT gj_equal('SELECT * FROM gpu_set_join(''DELETE FROM scan_s RETURNING id, s'')'), gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s; SELECT 1'')'), gj_equal('SELECT * FROM gpu_set_join(NULL)'),
	gj_equal('SELECT * FROM gpu_set_join(''SELECT 1, ''''{1,2,NULL}''''::int[]'')'), gj_equal('SELECT * FROM gpu_set_topk(''SELECT id, s FROM scan_s'', k => 0)'), gj_equal('SELECT * FROM gpu_set_join(''SELECT id FROM scan_s'')'),
	gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', predicate => ''similar'')'), gj_equal('SELECT 1 / (common - common) FROM gpu_set_join(''SELECT id, s FROM scan_s'')'), gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM no_such_table'')');
-- rights: EXECUTE on the function, SELECT on the tables, policies
CREATE ROLE scan_nobody;
CREATE POLICY scan_policy ON scan_s USING (id <= 20);
ALTER TABLE scan_s ENABLE ROW LEVEL SECURITY;
SET ROLE scan_nobody;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
-- nor do estimates tell what is in a table that the user may not read
SELECT count(DISTINCT scan_estimate(format('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s WHERE id < %s'', predicate => ''all'')', i))) FROM generate_series(1, 300, 100) i;
RESET ROLE;
SELECT count(DISTINCT scan_estimate(format('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s WHERE id < %s'', predicate => ''all'')', i))) FROM generate_series(1, 300, 100) i;
-- another user or settings of a function are the executor's to see to
ALTER FUNCTION gpu_set_join(text, text, text, float8) SECURITY DEFINER;
SET ROLE scan_nobody;
SELECT scans('SELECT left_id FROM gpu_set_join(''SELECT id, s FROM scan_s'') j');
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
RESET ROLE;
ALTER FUNCTION gpu_set_join(text, text, text, float8) SECURITY INVOKER SET search_path = pg_catalog;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
ALTER FUNCTION gpu_set_join(text, text, text, float8) RESET search_path;
GRANT SELECT ON scan_s TO scan_nobody;
SET ROLE scan_nobody;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
SET SESSION AUTHORIZATION DEFAULT;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
REVOKE EXECUTE ON FUNCTION gpu_set_join(text, text, text, float8) FROM PUBLIC;
SET ROLE scan_nobody;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM scan_s', predicate => 'all');
SET SESSION AUTHORIZATION DEFAULT;
GRANT EXECUTE ON FUNCTION gpu_set_join(text, text, text, float8) TO PUBLIC;
ALTER TABLE scan_s DISABLE ROW LEVEL SECURITY;
DROP POLICY scan_policy ON scan_s;
REVOKE ALL ON scan_s FROM scan_nobody;
DROP ROLE scan_nobody;

-- what fails on the device before the first row is done by the process
CREATE FUNCTION scan_fails(point text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('gpujoin.fail_at', point, false);
	answer := gj_equal('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2)') || CASE WHEN scan_ran('SELECT * FROM gpu_set_join(''SELECT id, s FROM scan_s'', threshold => 2)') ~ 'Fallback' THEN ', fell back' ELSE '' END;
	RESET gpujoin.fail_at;
	RETURN answer;
END $$;
SELECT p, scan_fails(p) FROM unnest('{connect,submit,memory,build}'::text[]) p;
-- cancelled, broken off and failed: gpujoind keeps nothing
SET statement_timeout = 1000;
SELECT count(*) FROM gpu_set_join('SELECT i, ARRAY[1, i] FROM generate_series(1, 20000) i', predicate => 'all');
RESET statement_timeout;
SELECT max(1 / (left_id - 2)) FROM gpu_set_join('SELECT i, ARRAY[1, i] FROM generate_series(1, 20000) i', predicate => 'all');
SELECT count(*), bool_and(left_id < right_id) FROM (SELECT left_id, right_id FROM gpu_set_join('SELECT i, ARRAY[1, i] FROM generate_series(1, 20000) i', predicate => 'all') LIMIT 2) x;
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN NOT EXISTS (SELECT FROM gpujoin_devices WHERE sessions > 0); PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT sum(sessions) AS sessions, sum(memory_used) AS memory_used FROM gpujoin_devices;
DROP VIEW scan_v;
DROP TABLE scan_s, scan_few, scan_out;
DROP FUNCTION scans, scan_loop, scan_later, scan_ran, scan_estimate, scan_fails;
DROP SCHEMA scan_other CASCADE;
