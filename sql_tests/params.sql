-- Parameters are constants at run time: prepared statements, functions, initplans, correlated queries.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, v int, x float8, d date, t text);
INSERT INTO f SELECT i, i % 20, i % 100, i / 4.0, date '2026-01-01' + i % 30, 't' || i % 5 FROM generate_series(1, 1000) i;
CREATE TABLE g (k int, c int, name text);
INSERT INTO g SELECT i, i % 7, 'g' || i FROM generate_series(0, 14) i;
VACUUM ANALYZE f, g;

-- EXECUTE by PostgreSQL and by gpujoin
CREATE FUNCTION execute_both(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text[];
	b text[];
BEGIN
	PERFORM set_config('gpujoin.enabled', 'off', false);
	DISCARD PLANS;					-- else it is the other's cached plan
	a := gj_rows(call);
	PERFORM set_config('gpujoin.enabled', 'on', false);
	DISCARD PLANS;
	b := gj_rows(call);
	RETURN CASE WHEN a <> b THEN format('DIFFERENT: %s, %s', a, b) ELSE
		concat_ws(', ', format('same, %s rows', cardinality(a)), 'first: ' || a[1],
				  CASE WHEN current_setting('plan_cache_mode') = 'force_generic_plan' AND a[1] !~ '^error' THEN gj_how(call) END) END;
END $$;

SET plan_cache_mode = force_custom_plan;
PREPARE one(int) AS SELECT count(*), sum(f.v) FROM f JOIN g USING (k) WHERE f.v < $1;
SELECT execute_both('EXECUTE one(50)'), execute_both('EXECUTE one(NULL)'), execute_both('EXECUTE one(-1)');
SET plan_cache_mode = force_generic_plan;
SELECT execute_both('EXECUTE one(50)'), execute_both('EXECUTE one(NULL)'), execute_both('EXECUTE one(-1)');
SELECT execute_both(format('EXECUTE one(%s)', i)) FROM generate_series(0, 100, 20) i;
SELECT gj_how('EXECUTE one(50)');

PREPARE types(int2, int8, date, float8, text, bool) AS
	SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.v > $1 AND f.v < $2 AND f.d >= $3 AND f.x < $4 AND f.t = $5 AND ($6 OR f.id > 0);
SELECT execute_both('EXECUTE types(10, 5000000000, ''2026-01-10'', 200, ''t3'', true)');
SELECT execute_both('EXECUTE types(10, 50, ''2026-01-10'', ''NaN'', ''t3'', NULL)');
SELECT execute_both('EXECUTE types(NULL, 50, ''2026-01-10'', 200, ''t3'', true)');
SELECT gj_how('EXECUTE types(10, 50, ''2026-01-10'', 200, ''t3'', true)');
PREPARE in_select(int, text) AS SELECT f.id, f.v + $1, $2 || g.name FROM f JOIN g USING (k) WHERE f.v = 3;
SELECT execute_both('EXECUTE in_select(5, ''x'')'), execute_both('EXECUTE in_select(NULL, NULL)');
PREPARE in_aggregate(int) AS SELECT sum(f.v + $1), max(f.v * $1), count($1) FROM f JOIN g USING (k);
SELECT execute_both('EXECUTE in_aggregate(5)'), execute_both('EXECUTE in_aggregate(NULL)'), execute_both('EXECUTE in_aggregate(2147483647)');
PREPARE in_list(int[]) AS SELECT f.id FROM f JOIN g USING (k) WHERE f.v = ANY ($1);
SELECT execute_both('EXECUTE in_list(''{1,2,3}'')'), execute_both('EXECUTE in_list(''{1,NULL}'')'), execute_both('EXECUTE in_list(''{}'')'), execute_both('EXECUTE in_list(NULL)');
PREPARE in_in(int, int) AS SELECT f.id FROM f JOIN g USING (k) WHERE f.v IN ($1, $2) AND f.v NOT IN ($2, 7);
SELECT execute_both('EXECUTE in_in(1, 2)'), execute_both('EXECUTE in_in(1, NULL)');
PREPARE in_key(int) AS SELECT f.id FROM f JOIN g ON f.k = g.k + $1;
SELECT execute_both('EXECUTE in_key(2)'), execute_both('EXECUTE in_key(NULL)');
PREPARE in_join(int) AS SELECT f.id FROM f JOIN g ON f.k = g.k AND f.v > g.c + $1;
SELECT execute_both('EXECUTE in_join(2)'), execute_both('EXECUTE in_join(-50)');
PREPARE key_is(int) AS SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.k = $1;
SELECT execute_both('EXECUTE key_is(2)'), execute_both('EXECUTE key_is(NULL)');
PREPARE limited(int) AS SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) LIMIT $1) x;
SELECT execute_both('EXECUTE limited(10)'), execute_both('EXECUTE limited(0)'), execute_both('EXECUTE limited(NULL)');
-- the plan follows the tables: new rows, new columns, a new type of key
INSERT INTO f SELECT 2000 + i, i, 3, 1, '2026-01-01', 't' FROM generate_series(1, 10) i;
SELECT execute_both('EXECUTE one(50)');
ALTER TABLE g ADD COLUMN extra int DEFAULT 5;
SELECT execute_both('EXECUTE one(50)');
ALTER TABLE g ALTER k TYPE int8;
SELECT execute_both('EXECUTE one(50)');
-- settings are looked at when execution begins
SET gpujoin.enabled = off;
EXECUTE one(50);
SET gpujoin.enabled = on;
EXECUTE one(50);
RESET plan_cache_mode;

-- functions
CREATE FUNCTION total(lo int, hi int) RETURNS int8 LANGUAGE sql STABLE AS 'SELECT sum(f.v) FROM f JOIN g USING (k) WHERE f.v BETWEEN lo AND hi';
CREATE FUNCTION total_plpgsql(lo int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	hi int := lo + 10;
	result int8 := 0;
	r record;
BEGIN
	FOR r IN SELECT f.v FROM f JOIN g USING (k) WHERE f.v BETWEEN lo AND hi LOOP
		result := result + r.v;
	END LOOP;
	RETURN result;
END $$;
SELECT gj_equal('SELECT i, total(i, i + 10), total_plpgsql(i) FROM generate_series(0, 90, 10) i');
SELECT bool_and(total(i, i + 10) IS NOT DISTINCT FROM nullif(total_plpgsql(i), 0)) FROM generate_series(0, 110, 10) i;

-- initplans and correlated subqueries
SELECT gj_same('SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.v > (SELECT avg(c) FROM g)::int');
SELECT gj_same('SELECT count(*) FROM f JOIN g USING (k) WHERE f.v > (SELECT max(c) FROM g)');
SELECT gj_same('SELECT f.id + (SELECT max(c) FROM g) FROM f JOIN g USING (k)');
SELECT gj_same('SELECT count(*) FROM f JOIN g USING (k) WHERE f.v > (SELECT c FROM g WHERE false)');
SELECT gj_equal('SELECT o.k, (SELECT count(*) FROM f JOIN g USING (k) WHERE f.v > o.c) FROM g o');
SELECT gj_equal('SELECT o.k, (SELECT string_agg(g.name, '','' ORDER BY f.id) FROM f JOIN g USING (k) WHERE f.v = o.c AND f.k = o.k) FROM g o');
SELECT gj_equal('SELECT o.name FROM g o WHERE EXISTS (SELECT FROM f JOIN g USING (k) WHERE f.v + g.c = o.k * 10)');
SELECT gj_equal('SELECT o.k, l.* FROM g o, LATERAL (SELECT count(*), sum(f.v) FROM f JOIN g USING (k) WHERE f.v < o.c) l');
SELECT gj_equal('SELECT o.k, l.* FROM g o, LATERAL (SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.v = o.c) l');
SELECT gj_equal('SELECT CASE WHEN k > 5 THEN (SELECT count(*) FROM f JOIN g USING (k)) END FROM g');

-- parameters that change while a node is not asked for rows
SELECT gj_equal('SELECT o.k, (SELECT sum(s.id) FROM (VALUES (1), (2)) v(i), LATERAL (SELECT * FROM
	(SELECT f.id FROM f JOIN (SELECT DISTINCT k FROM g WHERE c = o.c OFFSET 0) x USING (k) OFFSET 0) s WHERE v.i = 1 OFFSET 0) s) FROM g o');
-- the device's condition with an initplan: it runs once, before
SELECT gj_same('SELECT f.id FROM f JOIN g USING (k) WHERE g.c = (SELECT max(c) FROM g)');

-- numerics that are known only at execution, on either side of a comparison
CREATE TABLE n AS SELECT i AS id, (i % 400 / 10.0 - 5)::numeric(10,2) AS v, i % 15 AS k FROM generate_series(1, 2000) i;
INSERT INTO n VALUES (0, NULL, 1);
VACUUM ANALYZE n;
SELECT bool_and(same LIKE 'same, %'), count(*) FROM unnest('{<,<=,=,<>,>=,>}'::text[]) op,
	unnest('{20,20.1,20.105,19.999999999999999999999,-1,-0.001,0.1000,0}'::text[]) x,
	LATERAL (VALUES (gj_same(format('SELECT count(*), sum(v) FROM n WHERE v %s (SELECT %L::numeric)', op, x))),
		(gj_same(format('SELECT count(*), sum(v) FROM n WHERE (SELECT %L::numeric) %s v', x, op)))) b(same)
	WHERE op NOT IN ('=', '<>') OR scale(x::numeric) < 3;
-- those that no integer stands for: PostgreSQL's plan has the answer
SELECT bool_and(gj_equal(format('SELECT count(*), sum(v) FROM n WHERE v %s (SELECT %s::numeric)', op, x)) LIKE 'same, %') FROM unnest('{<,<=,=,<>,>=,>}'::text[]) op,
	unnest('{1e30,-1e30,''NaN'',''Infinity'',''-Infinity'',20.105,"NULL",1e-900}'::text[]) x;
SELECT gj_same('SELECT k, count(*) FROM n WHERE v > (SELECT avg(v) FROM n) GROUP BY k');
SELECT gj_same('SELECT count(*) FROM n JOIN g USING (k) WHERE v BETWEEN 0.3 * (SELECT max(v) FROM n) AND (SELECT avg(v) + 10.004 FROM n)');
SELECT gj_equal('SELECT count(*) FROM n WHERE v > (SELECT v FROM n)');
-- a subquery that PostgreSQL may not run is not run for the device
SELECT gj_equal('SELECT count(*) FROM n WHERE CASE WHEN (SELECT count(*) FROM n) = 1 THEN v > (SELECT v FROM n) ELSE true END');
CREATE SEQUENCE late_calls;
SELECT count(*) FROM n WHERE k < 0 AND id > (SELECT nextval('late_calls'));
SELECT is_called FROM late_calls;
DROP SEQUENCE late_calls;
-- integers that become numerics are scaled where they are known
SELECT gj_same('SELECT count(*) FROM n WHERE v > (SELECT max(k) FROM n)'), gj_same('SELECT count(*) FROM n WHERE (SELECT max(k) FROM n) > v'), gj_same('SELECT sum(coalesce(v, (SELECT max(k) FROM n))), sum(v + (SELECT max(k) FROM n)) FROM n');
SELECT gj_equal('SELECT count(*) FROM n WHERE v < (SELECT 1e131071::numeric)');
SET plan_cache_mode = force_generic_plan;
PREPARE late(numeric) AS SELECT count(*), sum(v) FROM n JOIN g USING (k) WHERE v >= $1 AND $1 * 2.5 > v;
SELECT execute_both(format('EXECUTE late(%s)', x)) FROM unnest('{3,3.14159,-2,"NULL",1e40}'::text[]) x;
RESET plan_cache_mode;

DEALLOCATE ALL;
DROP TABLE f, g, n;
DROP FUNCTION execute_both, total, total_plpgsql;
