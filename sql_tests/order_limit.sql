-- ORDER BY ... LIMIT: only the first rows come back from the device.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
-- each device returns as many as the limit: how many come back is that of one
SET gpujoin.devices_per_query = 1;

-- What gj_same says, the rows that GpuJoin returned, and whether it was asked for a limit; the rows are compared in their order.
CREATE FUNCTION gj_first(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	node jsonb := gj_node(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
	numbered text := format('SELECT row_number() OVER (), s.* FROM (%s) s', query);
BEGIN
	RETURN concat_ws(', ', gj_same(numbered),
		'limit ' || (node->>'Limit'),
		'with ties' || substr(node->>'Ties', 1, 0),
		'returned ' || (node->>'Actual Rows')::numeric::int);
END $$;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE f (id int PRIMARY KEY, k int, i2 int2, i4 int4, i8 int8, d date, ts timestamp, tz timestamptz, x float8, y float4, n numeric(10,2), m numeric,
	t text, b bool, o oid, q "char", h time, e mood, w interval);
INSERT INTO f SELECT i, i * 7919 % 700, CASE WHEN i % 11 <> 0 THEN i % 30 - 15 END, CASE WHEN i % 7 <> 0 THEN i * 13 % 1000 - 500 END,
	CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN CASE WHEN i % 2 = 0 THEN 9223372036854775807 ELSE -9223372036854775808 END ELSE (i % 40)::int8 * 3000000000 END,
	CASE i % 19 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' ELSE date '2026-01-01' + i * 31 % 300 END, CASE i % 23 WHEN 0 THEN NULL WHEN 1 THEN '-infinity' ELSE timestamp '2026-01-01' + i * 37 % 500 * interval '1 hour' END,
	timestamptz '2026-01-01 00:00+00' + i * 41 % 500 * interval '1 minute',
	CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' WHEN 4 THEN '0' WHEN 5 THEN -i ELSE i % 1000 / 8.0 END, CASE WHEN i % 8 <> 0 THEN (i * 17 % 1000 - 500) / 4.0 END,
	CASE WHEN i % 6 <> 0 THEN (i * 29 % 2000 - 1000) / 100.0 END, i / 7.0, 'text ' || i % 50, CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END, (4294967295 - i * 43 % 1000)::oid, chr(i * 3 % 120 + 130)::"char",
	time '00:00' + i * 47 % 1000 * interval '1 minute', (ARRAY['happy', 'sad', 'ok'])[i % 3 + 1]::mood, i % 10 * interval '1 hour'
FROM generate_series(1, 30000) i;
CREATE TABLE g (k int PRIMARY KEY, c int, name text, note text);
INSERT INTO g SELECT i, i % 4, 'name ' || i, CASE WHEN i % 3 = 0 THEN repeat('note ', i) END FROM generate_series(0, 599) i;
VACUUM ANALYZE f, g;

-- an answer that anybody can check, and what EXPLAIN says
SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3;
SELECT c, count(*) FROM f JOIN g USING (k) GROUP BY c ORDER BY count(*) DESC, c DESC LIMIT 2 OFFSET 1;
SELECT gj_plan('SELECT f.t, g.name FROM f JOIN g USING (k) ORDER BY f.d DESC, f.id, f.x + 1 DESC NULLS LAST LIMIT 10 OFFSET 5');
SELECT gj_plan('SELECT f.k, sum(f.i4) FROM f GROUP BY f.k ORDER BY 2 DESC NULLS LAST, f.k LIMIT 10');

-- every type, both ways, NULLs first and last; the id makes the order complete
SELECT key, gj_first(format('SELECT f.id, f.%s, g.name FROM f JOIN g USING (k) ORDER BY f.%s, f.id LIMIT 40', key, key)), gj_first(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC, f.id DESC LIMIT 40', key, key)),
	gj_first(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s NULLS FIRST, f.id LIMIT 600', key, key)), gj_first(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC NULLS LAST, f.id LIMIT 7 OFFSET 20000', key, key))
FROM unnest(ARRAY['i2', 'i4', 'i8', 'd', 'ts', 'tz', 'x', 'y', 'n', 'b', 'o', 'q', 'h']) WITH ORDINALITY AS l(key, n) ORDER BY n;

-- several keys, expressions, keys that are not returned; what the device does not know ends the keys
SELECT keys, gj_first(format('SELECT f.id, f.t, g.note FROM f LEFT JOIN g ON f.k = g.k ORDER BY %s LIMIT 25', keys))
FROM unnest(ARRAY['f.i2, f.i4 DESC, f.id', 'g.c DESC NULLS LAST, f.i2 NULLS FIRST, f.b, f.id', 'f.i4 + g.c, f.id', 'f.x * 2 DESC, f.id', 'g.c IS NULL, f.id DESC', 'coalesce(g.c, f.i2, -1), f.id', 'CASE WHEN f.i4 > 0 THEN f.i2 END, f.id',
	'f.id, f.t', 'f.i2, f.t, f.id', 'f.i2, f.e, f.id', 'f.i2, f.w, f.id', 'f.i2, f.m, f.id', 'f.t, f.id', 'f.m', 'f.t COLLATE "C", f.id', 'f.b, f.i2, g.c, f.i4, f.i8, f.id', 'length(f.t), f.id', 'f.ts::date, f.id', 'f.i4 USING >, f.id']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) ORDER BY random(), f.id LIMIT 10) s;

-- joins of all types, conditions, no columns
SELECT kind, gj_first(format('SELECT f.id, g.name FROM f %s JOIN g ON f.k = g.k AND f.i4 > 0 WHERE coalesce(f.i2, 0) < 10 ORDER BY f.id, g.k LIMIT 20', kind)), gj_first(format('SELECT f.id, f.t, g.name FROM f %s JOIN g ON f.k = g.k AND f.i4 > 0 ORDER BY g.k DESC, f.id DESC LIMIT 300', kind))
FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) WITH ORDINALITY AS l(kind, n) ORDER BY n;
SELECT gj_first('SELECT f.id FROM f WHERE EXISTS (SELECT FROM g WHERE g.k = f.k AND g.c = 2) ORDER BY f.i8 DESC, f.id LIMIT 15');
SELECT gj_first('SELECT g.name FROM g WHERE EXISTS (SELECT FROM f WHERE g.k = f.k AND f.i4 < -490) ORDER BY g.k DESC LIMIT 5');
SELECT gj_first('SELECT g.name FROM g WHERE NOT EXISTS (SELECT FROM f WHERE g.k = f.k AND f.i4 < -450) ORDER BY g.c, g.k LIMIT 5');
SELECT gj_first('SELECT a.id, b.id FROM f a JOIN f b ON a.k = b.k JOIN g ON g.k = b.k WHERE a.id < 2000 ORDER BY b.id DESC, a.id LIMIT 30');
SELECT gj_first('SELECT 1 FROM f JOIN g USING (k) ORDER BY f.id LIMIT 5');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) WHERE f.id < 0 ORDER BY f.id LIMIT 5');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) WHERE md5(f.t || g.name) < ''1'' ORDER BY f.id LIMIT 5');

-- groups: by keys and aggregates
SELECT keys, gj_first(format('SELECT f.k, f.b, count(*), sum(f.i4) AS s4, sum(f.i8) AS s8, sum(f.n) AS sn, min(f.d) AS d, max(f.x) AS mx, max(f.y) AS my, sum(f.y) AS sy, avg(f.y) AS ay, avg(f.i4) AS a4, min(f.n) AS mn, count(DISTINCT f.i2) FROM f GROUP BY 1, 2 ORDER BY %s LIMIT 12 OFFSET 2', keys))
FROM unnest(ARRAY['1, 2', '2 DESC, 1 DESC', 'count(*), 1, 2', 'count(*) DESC, 1, 2', 'count(f.i4) DESC, 1, 2', 's4 DESC, 1, 2', 's4 NULLS FIRST, 1, 2', 's8, 1, 2', 's8 DESC, 1, 2', 'sn DESC NULLS LAST, 1, 2', 'd DESC, 1, 2', 'mx, 1, 2', 'mx DESC, 1, 2', 'my, 1, 2', 'sy DESC, 1, 2', 'ay, 1, 2', 'a4 DESC, 1, 2', 'a4, 1, 2', 'avg(f.i8) DESC, 1, 2', 'avg(f.i8), 2, 1', 'avg(f.n) NULLS FIRST, 1, 2',
	'count(*), a4, 1, 2', 'mn, 1, 2', 'count(DISTINCT f.i2) DESC, 1, 2', 'count(*) + f.k, 1, 2', 'f.b, variance(f.i4), 1']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT gj_first('SELECT g.name, f.b, sum(f.i4) FROM f JOIN g USING (k) GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20');
SELECT gj_first('SELECT g.name, g.note, f.t, sum(f.i4), count(*) FROM f JOIN g USING (k) GROUP BY 1, 2, 3 ORDER BY 5 DESC, 4, 1, 3 LIMIT 2000');
SELECT gj_first('SELECT g.name, sum(f.n * f.i2) AS revenue, g.k FROM f JOIN g USING (k) WHERE f.d < ''2026-06-01'' GROUP BY g.k ORDER BY revenue DESC, g.k LIMIT 10');
SELECT gj_first('SELECT k, sum(i4) FROM f GROUP BY k HAVING sum(i4) > 0 ORDER BY 2, 1 LIMIT 10');
SELECT gj_first('SELECT k, count(t) FILTER (WHERE k < 3) FROM f GROUP BY k ORDER BY 2, 1 LIMIT 5'), gj_first('SELECT k, count(t) FILTER (WHERE k < 3) FROM f GROUP BY k ORDER BY 2 DESC, 1 LIMIT 5');
SELECT gj_first('SELECT DISTINCT i2, b FROM f ORDER BY i2 DESC NULLS LAST, b LIMIT 10');
SELECT gj_first('SELECT DISTINCT count(*) FROM f GROUP BY k ORDER BY 1 LIMIT 3');
SELECT gj_first('SELECT DISTINCT f.i4 FROM f JOIN g USING (k) ORDER BY 1 LIMIT 3');
SELECT gj_first('SELECT DISTINCT ON (f.k) f.k, g.name FROM f JOIN g USING (k) ORDER BY f.k, f.id LIMIT 3');
SELECT gj_first('SELECT id, i4, count(*) FROM f GROUP BY id ORDER BY i4 DESC NULLS LAST, id LIMIT 10');
SELECT gj_first('SELECT count(*), sum(id), sum(i4) FROM (SELECT id, i4, count(*) FROM f GROUP BY id ORDER BY i4, id LIMIT 20000) s');

-- a group that is not returned can be one that PostgreSQL cannot compute
CREATE TABLE huge AS SELECT i % 100 AS k, CASE WHEN i % 100 = 99 THEN 1e308::float8 ELSE i END AS x, CASE WHEN i % 100 = 98 THEN 9223372036854775807 ELSE i END AS v FROM generate_series(1, 1000) i;
SELECT gj_same('SELECT k, sum(x) FROM huge GROUP BY k ORDER BY k LIMIT 3');
SELECT gj_same('SELECT k, avg(x) FROM huge WHERE k <> 98 GROUP BY k ORDER BY k LIMIT 3');
SELECT gj_first('SELECT k, sum(x) FROM huge WHERE k < 98 GROUP BY k ORDER BY 2 DESC LIMIT 3');
SELECT gj_first('SELECT k, sum(v) FROM huge GROUP BY k ORDER BY 2 DESC LIMIT 3');
SELECT gj_same('SELECT k, sum((x * 3e35)::float4) FROM huge WHERE k < 99 GROUP BY k ORDER BY k LIMIT 3'), gj_first('SELECT k, sum(x::float4) FROM huge WHERE k < 99 GROUP BY k ORDER BY k LIMIT 3');
SELECT gj_same('SELECT h.k, h.v + 1 FROM huge h JOIN g USING (k) ORDER BY h.v + 1 LIMIT 3');

-- limits that are not known, all rows, none; ties
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT NULL OFFSET 25700');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT (SELECT 3)');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 0');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 100000');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 1000000');
SELECT gj_first('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 9223372036854775807 OFFSET 25713');
SELECT gj_first('SELECT f.i2, count(*) FROM (SELECT f.i2 FROM f JOIN g USING (k) ORDER BY f.i2 DESC FETCH FIRST 1001 ROWS WITH TIES) f GROUP BY 1');
SELECT gj_same('SELECT f.b, f.i2 FROM f GROUP BY 1, 2 ORDER BY f.b FETCH FIRST 3 ROWS WITH TIES');
SELECT gj_first('SELECT f.id, generate_series(1, 2) FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3');
SELECT gj_first('SELECT f.id, row_number() OVER (ORDER BY f.id DESC) FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3');
SELECT gj_equal('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3 FOR UPDATE OF f');
SELECT gj_first('(SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3) UNION ALL (SELECT g.k FROM f JOIN g USING (k) ORDER BY f.id DESC LIMIT 3) ORDER BY 1');
SELECT gj_first('SELECT s.id, g.name FROM (SELECT f.id, g.k FROM f JOIN g USING (k) ORDER BY f.i4 DESC, f.id LIMIT 100) s JOIN g ON g.k = s.k ORDER BY s.id DESC LIMIT 10');
PREPARE q(int) AS SELECT f.id FROM f JOIN g USING (k) WHERE f.i4 > $1 ORDER BY f.id DESC LIMIT $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE q(3);
SET plan_cache_mode = force_custom_plan;
EXECUTE q(3);
RESET plan_cache_mode;

-- wide rows, and ties without end: too much to be kept
CREATE TABLE wide AS SELECT i AS id, i % 600 AS k, repeat(md5(i::text), 60) AS t, NULL::text AS nothing FROM generate_series(1, 40000) i;
SELECT gj_first('SELECT wide.id, md5(wide.t), wide.nothing, g.name FROM wide JOIN g USING (k) ORDER BY wide.id DESC LIMIT 100');
SELECT gj_same('SELECT count(*), sum(id), sum(hashtext(t)::int8) FROM (SELECT wide.id, wide.t FROM wide JOIN g USING (k) ORDER BY wide.id DESC LIMIT 39000) s');
SELECT gj_first('SELECT wide.id, md5(wide.t) FROM wide JOIN g USING (k) ORDER BY g.k % 1, wide.t, wide.id LIMIT 3');

-- a result in rescans, with an index that would do without sorting, after a fallback
SELECT gj_first('SELECT g.k, s.id FROM g, LATERAL (SELECT f.id FROM f JOIN g h ON f.k = h.k WHERE f.i2 = g.c ORDER BY f.i4 DESC, f.id LIMIT 2) s WHERE g.k < 6 ORDER BY 1, 2');
SET gpujoin.fail_at = 'probe';
SELECT gj_first('SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.i4, f.id LIMIT 7');
SELECT gj_first('SELECT k, sum(i4) FROM f GROUP BY k ORDER BY 2, 1 LIMIT 7');
RESET gpujoin.fail_at;

-- little memory: inner sides in parts, each of which returns its first rows
SET gpujoin.device_memory_limit = 8;
SELECT gj_equal('SELECT a.id, b.id FROM f a JOIN f b ON a.id = b.id ORDER BY a.i4, a.id LIMIT 50');
SELECT gj_equal('SELECT a.k, count(*), sum(b.i4) FROM f a JOIN f b ON a.id = b.id GROUP BY a.k ORDER BY 3 DESC, 1 LIMIT 50');
RESET gpujoin.device_memory_limit;
-- few rows are expected, and there are many: the device has the limit all the same, chosen by its cost
CREATE TABLE alike AS SELECT i % 100 AS a, i % 100 AS b, i % 100 AS c, i % 100 AS d, i % 7919 AS v, 'text ' || i AS t FROM generate_series(1, 20000) i;
VACUUM ANALYZE alike;
SET gpujoin.force = off;
SET cpu_tuple_cost = 10;
SELECT gj_same('SELECT x.v, x.t FROM alike x JOIN alike y ON x.v = y.v WHERE x.a = 1 AND x.b = 1 AND x.c = 1 AND x.d = 1 AND y.a = y.b ORDER BY x.v DESC, x.t LIMIT 7');
SELECT n->'Limit', n->'Ties', (n->>'Plan Rows')::int < 7 AS few, (n->>'Actual Rows')::numeric < 60 AS returned FROM gj_explain('SELECT x.v, x.t FROM alike x JOIN alike y ON x.v = y.v WHERE x.a = 1 AND x.b = 1 AND x.c = 1 AND x.d = 1 AND y.a = y.b ORDER BY x.v DESC, x.t LIMIT 7', 'ANALYZE, VERBOSE') e, jsonb_path_query(e, 'strict $.**?(@."Custom Plan Provider" == "GpuJoin")') n;
RESET cpu_tuple_cost;
SET gpujoin.force = on;
DROP TABLE alike;
SET gpujoin.force = off;
-- without force the planner still finds that a few rows are cheap to return
SET seq_page_cost = 0.1; SET work_mem = '64kB'; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT gj_how('SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.i4, f.id LIMIT 7');
RESET ALL;
DEALLOCATE q;
-- a costly column is computed after the sort, of the rows that the limit leaves, also if the device fails
CREATE FUNCTION costly(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE COST 1000 AS $$
BEGIN
	IF i = 300 THEN RAISE EXCEPTION 'seen 300'; END IF;
	RETURN i;
END $$;
CREATE TABLE costs AS SELECT i AS id FROM generate_series(1, 300) i;
ANALYZE costs;
SET gpujoin.force = on;
SET gpujoin.fail_at = memory;
SELECT a.id, b.id, costly(a.id) FROM costs a JOIN costs b ON a.id = b.id ORDER BY 1, 2 LIMIT 2;
RESET gpujoin.fail_at;
SELECT gj_same('SELECT a.id, b.id, costly(a.id) FROM costs a JOIN costs b ON a.id = b.id ORDER BY 1, 2 LIMIT 2');
DROP TABLE costs;
DROP FUNCTION costly;
DROP TABLE f, g, huge, wide;
DROP TYPE mood;
DROP FUNCTION gj_first;
