-- ORDER BY: rows and groups that come back in the order of the query, with no Sort above the node.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

-- What gj_same says of the rows in their order; the keys that the device sorts by; and what of sorts is left to PostgreSQL.
CREATE FUNCTION gj_ordered(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	rest text;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	WITH RECURSIVE node(n) AS (
		SELECT plan->0->'Plan'
		UNION ALL
		SELECT jsonb_array_elements(n->'Plans') FROM node
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin')
	SELECT concat(', by ' || min(jsonb_array_length(n->'Sort Key')) FILTER (WHERE n->>'Custom Plan Provider' = 'GpuJoin'),
		', ' || string_agg(n->>'Node Type', ', ') FILTER (WHERE n->>'Node Type' IN ('Sort', 'Incremental Sort'))) INTO rest FROM node;
	RETURN gj_same(format('SELECT row_number() OVER (), s.* FROM (%s) s', query)) || rest;
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
FROM generate_series(1, 4000) i;
CREATE TABLE g (k int PRIMARY KEY, c int, name text, note text);
INSERT INTO g SELECT i, i % 4, 'name ' || i, CASE WHEN i % 3 = 0 THEN repeat('note ', i) END FROM generate_series(0, 599) i;
VACUUM ANALYZE f, g;

-- an answer that anybody can check, and what EXPLAIN says
SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id <= 6 ORDER BY f.id DESC;
SELECT gj_plan('SELECT f.t, g.name FROM f JOIN g USING (k) ORDER BY f.d DESC, f.id, f.x + 1 DESC NULLS LAST');
SELECT gj_plan('SELECT f.k, sum(f.i4) FROM f GROUP BY f.k ORDER BY 2 DESC NULLS LAST, f.k');

-- every type, both ways, NULLs first and last; the id makes the order complete
SELECT key, gj_ordered(format('SELECT f.id, f.%s, g.name FROM f JOIN g USING (k) ORDER BY f.%s, f.id', key, key)), gj_ordered(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC, f.id DESC', key, key)),
	gj_ordered(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s NULLS FIRST, f.id', key, key)), gj_ordered(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC NULLS LAST, f.id', key, key))
FROM unnest(ARRAY['i2', 'i4', 'i8', 'd', 'ts', 'tz', 'x', 'y', 'n', 'b', 'o', 'q', 'h']) WITH ORDINALITY AS l(key, n) ORDER BY n;

-- several keys, expressions, keys that are not returned
SELECT keys, gj_ordered(format('SELECT f.id, f.t, g.note FROM f LEFT JOIN g ON f.k = g.k ORDER BY %s', keys))
FROM unnest(ARRAY['f.i2, f.i4 DESC, f.id', 'g.c DESC NULLS LAST, f.i2 NULLS FIRST, f.b, f.id', 'f.i4 + g.c, f.id', 'f.x * 2 DESC, f.id', 'g.c IS NULL, f.id DESC', 'coalesce(g.c, f.i2, -1), f.id', 'CASE WHEN f.i4 > 0 THEN f.i2 END, f.id',
	'length(f.t), f.id', 'f.ts::date, f.id', 'f.i4 USING >, f.id', 'g.k, f.id', 'f.k, f.id']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
-- what the device does not know, or has no room for, is left to the backend (order_ranks) or to PostgreSQL
SELECT keys, regexp_replace(gj_ordered(format('SELECT f.id FROM f JOIN g USING (k) ORDER BY %s', keys)), '(, by.*)?, (Incremental )?Sort$', ', some Sort')
FROM unnest(ARRAY['f.t, f.id', 'f.id, f.id DESC, f.t', 'f.i2, f.t, f.id', 'f.e, f.id', 'f.w, f.id', 'f.m, f.id', 'f.t COLLATE "C", f.id', 'f.b, f.i2, g.c, f.i4, f.i8, f.id']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) ORDER BY random(), f.id) s;
SELECT gj_ordered('SELECT f.id, random() < 2 FROM f JOIN g USING (k) ORDER BY f.id DESC');
SELECT gj_ordered('SELECT f.id, generate_series(1, 2) FROM f JOIN g USING (k) ORDER BY f.id DESC');

-- ties: any order of them is right, that of the keys is not
SELECT count(*), bool_and(ok) FROM (SELECT i2 IS NOT DISTINCT FROM lag(i2) OVER w OR i2 < lag(i2) OVER w OR lag(i2) OVER w IS NULL OR r = 1 AS ok
	FROM (SELECT i2, row_number() OVER () AS r FROM (SELECT f.i2 FROM f JOIN g USING (k) ORDER BY f.i2 DESC) s) s WINDOW w AS (ORDER BY r)) s;

-- joins of all types, conditions, no columns, no rows
SELECT kind, gj_ordered(format('SELECT f.id, g.name FROM f %s JOIN g ON f.k = g.k AND f.i4 > 0 WHERE coalesce(f.i2, 0) < 10 ORDER BY f.id, g.k', kind)), gj_ordered(format('SELECT f.id, f.t, g.name, g.note FROM f %s JOIN g ON f.k = g.k AND f.i4 > 0 ORDER BY g.k DESC, f.id DESC', kind))
FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) WITH ORDINALITY AS l(kind, n) ORDER BY n;
SELECT gj_ordered('SELECT k, f.id, g.name FROM f FULL JOIN g USING (k) ORDER BY k, f.id');
SELECT gj_ordered('SELECT f.id FROM f WHERE EXISTS (SELECT FROM g WHERE g.k = f.k AND g.c = 2) ORDER BY f.i8 DESC, f.id');
SELECT gj_ordered('SELECT g.name FROM g WHERE EXISTS (SELECT FROM f WHERE g.k = f.k AND f.i4 < -490) ORDER BY g.k DESC');
SELECT gj_ordered('SELECT g.name FROM g WHERE NOT EXISTS (SELECT FROM f WHERE g.k = f.k AND f.i4 < -450) ORDER BY g.c, g.k');
SELECT gj_ordered('SELECT a.id, b.id FROM f a JOIN f b ON a.k = b.k JOIN g ON g.k = b.k WHERE a.id < 2000 ORDER BY b.id DESC, a.id');
SELECT gj_ordered('SELECT a.id, b.id FROM f a JOIN f b ON a.i4 BETWEEN b.i4 AND b.i4 + 1 WHERE a.id < 200 ORDER BY b.id DESC, a.id');
SELECT gj_ordered('SELECT 1 FROM f JOIN g USING (k) ORDER BY f.id');
SELECT gj_ordered('SELECT f.id FROM f JOIN g USING (k) WHERE f.id < 0 ORDER BY f.id');
SELECT gj_ordered('SELECT f.id FROM f JOIN g USING (k) WHERE f.id = 17 ORDER BY f.id');
SELECT gj_ordered('SELECT f.id FROM f JOIN g USING (k) WHERE md5(f.t || g.name) < ''1'' ORDER BY f.id');
SELECT gj_ordered('SELECT f FROM f JOIN g USING (k) ORDER BY f.id DESC');
-- a key by another member of its class, also of another type
SELECT gj_ordered('SELECT b.i8, a.id, b.id FROM f a JOIN f b ON a.i4 = b.i8 / 3000000000 JOIN g ON g.k = b.i8 / 3000000000 ORDER BY b.i8, a.id, b.id');
SELECT gj_ordered('SELECT a.i2, a.id, b.id FROM f a JOIN f b ON a.i2 = b.i4 WHERE b.id < 100 ORDER BY b.i4 DESC, a.id, b.id');
SELECT gj_ordered('SELECT f.id FROM f JOIN g ON f.k = g.k AND f.k = 7 ORDER BY g.k, f.k, f.id');

SELECT gj_ordered('SELECT f.k, f.id FROM f WHERE f.k IN (SELECT g.k FROM g WHERE g.c = 1) ORDER BY f.k, f.id');
SELECT gj_ordered('SELECT g.k, g.name FROM g WHERE g.k IN (SELECT f.k FROM f WHERE f.i4 > 0) ORDER BY g.k');
SELECT gj_ordered('SELECT f.k, f.id FROM f WHERE EXISTS (SELECT FROM g WHERE g.k = f.k AND g.c > 0) ORDER BY f.k DESC, f.id');

-- groups: by keys and aggregates; avg of integers is PostgreSQL's to sort
SELECT keys, gj_ordered(format('SELECT f.k, f.b, count(*), sum(f.i4) AS s4, sum(f.i8) AS s8, sum(f.n) AS sn, min(f.d) AS d, max(f.x) AS mx, max(f.y) AS my, sum(f.y) AS sy, avg(f.y) AS ay, avg(f.i4) AS a4, min(f.n) AS mn, count(DISTINCT f.i2) FROM f GROUP BY 1, 2 ORDER BY %s', keys))
FROM unnest(ARRAY['1, 2', '2 DESC, 1 DESC', 'count(*), 1, 2', 'count(f.i4) DESC, 1, 2', 's4 DESC, 1, 2', 's4 NULLS FIRST, 1, 2', 's8, 1, 2', 's8 DESC, 1, 2', 'sn DESC NULLS LAST, 1, 2', 'd DESC, 1, 2', 'mx, 1, 2', 'mx DESC, 1, 2', 'my, 1, 2', 'sy DESC, 1, 2', 'ay, 1, 2', 'a4 DESC, 1, 2', 'avg(f.n) NULLS FIRST, 1, 2',
	'mn, 1, 2', 'count(DISTINCT f.i2) DESC, 1, 2']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT regexp_replace(gj_ordered('SELECT f.k, f.b FROM f GROUP BY 1, 2 ORDER BY 1, avg(f.i4), 2'), '(, by.*)?, (Incremental )?Sort$', ', some Sort');
SELECT gj_ordered('SELECT g.name, f.t, sum(f.i4), count(*), g.k FROM f JOIN g USING (k) GROUP BY 1, 2, 5 ORDER BY 4 DESC, 5, min(f.id)');
SELECT gj_ordered('SELECT g.name, sum(f.n * f.i2) AS revenue, g.k FROM f JOIN g USING (k) WHERE f.d < ''2026-06-01'' GROUP BY g.k ORDER BY revenue DESC, g.k');
SELECT gj_ordered('SELECT k, sum(i4) FROM f GROUP BY k HAVING sum(i4) > 0 ORDER BY 2, 1');
SELECT gj_ordered('SELECT i4 + 1, count(*) FROM f GROUP BY i4 + 1 ORDER BY 1 DESC');
SELECT gj_ordered('SELECT k FROM f WHERE id < 0 GROUP BY k ORDER BY k');
SELECT gj_ordered('SELECT DISTINCT i2, b FROM f ORDER BY i2 DESC NULLS LAST, b');
SELECT gj_ordered('SELECT DISTINCT f.i4 FROM f JOIN g USING (k) ORDER BY 1');

-- what else wants an order
SELECT gj_ordered('SELECT DISTINCT ON (f.k) f.k, g.name FROM f JOIN g USING (k) ORDER BY f.k, f.id');
SELECT gj_ordered('SELECT f.id, row_number() OVER (PARTITION BY f.k ORDER BY f.id DESC) AS r FROM f JOIN g USING (k) ORDER BY f.k, f.id DESC');
SELECT gj_ordered('SELECT k, sum(i4), rank() OVER (ORDER BY sum(i4) DESC, k) FROM f GROUP BY k ORDER BY 2 DESC, 1');
SELECT gj_equal('SELECT f.k, string_agg(f.t, '','' ORDER BY f.id) FROM f JOIN g USING (k) GROUP BY f.k ORDER BY f.k');
SELECT gj_equal('SELECT s.id, g.c FROM (SELECT f.id, f.k FROM f JOIN g USING (k) ORDER BY f.k OFFSET 0) s JOIN g USING (k) ORDER BY s.id');
SELECT gj_equal('(SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id DESC) UNION ALL SELECT 1 ORDER BY 1');
SELECT gj_ordered('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT (SELECT 3) OFFSET 2');
-- a small limit is no reason to return all
SELECT gj_ordered('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id LIMIT 3');

-- the native plan delivers the same order, also where an expression fails on the device
CREATE FUNCTION pg_temp.falls_back(point text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('gpujoin.fail_at', point, false);
	result := gj_ordered(query);
	RESET gpujoin.fail_at;
	RETURN result;
END $$;
SELECT point, pg_temp.falls_back(point, 'SELECT f.id, g.name, f.x FROM f JOIN g USING (k) ORDER BY f.x DESC, f.i4 + g.c, f.id'), pg_temp.falls_back(point, 'SELECT f.k, count(*), sum(f.i4) FROM f GROUP BY f.k ORDER BY 2 DESC, 3, 1'), pg_temp.falls_back(point, 'SELECT DISTINCT f.i4, f.b FROM f ORDER BY 1 DESC, 2')
FROM unnest(ARRAY['connect', 'probe', 'overflow']) WITH ORDINALITY AS l(point, n) ORDER BY n;
SELECT gj_ordered('SELECT f.id, f.i8 FROM f JOIN g USING (k) ORDER BY f.i8 + f.id, f.id');
SELECT gj_ordered('SELECT f.id, f.i8 FROM f JOIN g USING (k) WHERE f.i8 < 9223372036854775807 ORDER BY f.i8 + f.id, f.id');
SELECT gj_ordered('SELECT f.k, sum(f.i8) FROM f GROUP BY f.k ORDER BY 2, 1');

-- rows in the order of an index, or by workers, below the node
SET enable_sort = off;
SELECT gj_ordered('SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.id');
RESET enable_sort;

-- again and again, in other places, backwards
PREPARE p(int) AS SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id <= $1 ORDER BY f.id + $1 DESC;
EXECUTE p(3);
EXECUTE p(5);
DEALLOCATE p;
SELECT a.k, (SELECT string_agg(s.id::text, ' ') FROM (SELECT f.id FROM f JOIN g ON f.k = g.k WHERE g.k = a.k AND f.id < 2000 ORDER BY f.id DESC) s) FROM g a WHERE a.k < 3 ORDER BY a.k;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT f.id, g.name FROM f JOIN g USING (k) WHERE f.id <= 20 ORDER BY f.id DESC;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 2 FROM c;
COMMIT;
CREATE TABLE copied AS SELECT f.id, g.name FROM f JOIN g USING (k) ORDER BY f.n DESC NULLS LAST, f.id;
SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY copied.ctid) - row_number() OVER (ORDER BY f.n DESC NULLS LAST, id) AS moved FROM copied JOIN f USING (id)) s WHERE moved <> 0;

-- more rows than a call takes, and than a batch has; wide ones
CREATE TABLE many AS SELECT i AS id, (i::int8 * 2654435761 % 1000003)::int AS r, i % 600 AS k, (i / 4.0)::numeric(12,2) AS n, 'row ' || i AS t FROM generate_series(1, 100000) i;
VACUUM ANALYZE many;
SELECT gj_ordered('SELECT many.id, g.c, many.t, many.n FROM many JOIN g USING (k) ORDER BY many.r, many.id');
SELECT gj_ordered('SELECT a.id, b.c FROM many a JOIN g b ON a.k % 60 = b.k % 60 WHERE a.id <= 20000 ORDER BY b.c DESC, a.r, a.id, b.k');
SELECT gj_ordered('SELECT many.id, g.note FROM many JOIN g USING (k) WHERE many.id <= 5000 ORDER BY many.r');
SELECT gj_ordered('SELECT r, count(*), min(n) FROM many GROUP BY r ORDER BY min(n) DESC, r');
SELECT gj_ordered('SELECT t, r, count(*) FROM many GROUP BY t, r ORDER BY r DESC');

-- where rows or groups have no room, sorted runs of them are merged, kept in memory or in files; also where nobody expected that
CREATE FUNCTION gj_merged(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN gj_ordered(query) || CASE WHEN (jsonb_path_query_first(plan, '$.**."Sorted Runs"'))::int > 1 THEN ', merged' END ||
		CASE WHEN (jsonb_path_query_first(plan, '$.**."Spilled To Disk"'))::int > 0 THEN ', files' ELSE '' END;
END $$;
SET gpujoin.device_memory_limit = '4MB';
SELECT gj_merged('SELECT many.id, g.c, many.t FROM many JOIN g USING (k) ORDER BY many.r, many.id');
SELECT gj_merged('SELECT many.id, g.c, many.t, many.n FROM many LEFT JOIN g USING (k) ORDER BY g.c DESC NULLS LAST, many.id DESC');
SELECT gj_merged('SELECT 1 FROM many JOIN g USING (k) ORDER BY many.id');
SELECT gj_merged('SELECT many FROM many JOIN g USING (k) ORDER BY many.id DESC');
SET enable_nestloop = off;
SELECT gj_merged('SELECT many.id, g.c, many.t FROM many JOIN g USING (k) WHERE many.id + 0 = many.id AND many.r + 0 = many.r ORDER BY many.r, many.id');
RESET enable_nestloop;
SET gpujoin.spill_memory = 0;
SELECT gj_merged('SELECT many.id, g.note, many.t FROM many JOIN g USING (k) WHERE many.id < 20000 ORDER BY many.r, many.id');
SET gpujoin.device_memory_limit = '10MB';
SELECT gj_merged('SELECT many.id, g.note, f.i8, f.x FROM many JOIN g USING (k) FULL JOIN f ON f.id = many.id WHERE many.id < 20000 OR many.id IS NULL ORDER BY f.x DESC, many.id, f.id');
SELECT gj_merged('SELECT r, count(*), min(n) FROM many GROUP BY r ORDER BY 3 DESC, 1');
RESET gpujoin.spill_memory;
SELECT gj_merged('SELECT r, count(*), min(n) FROM many GROUP BY r ORDER BY 3 DESC, 1');
SELECT gj_merged('SELECT t, r, count(*), sum(n) FROM many GROUP BY t, r ORDER BY r DESC');
SELECT gj_merged('SELECT r % 50000, count(DISTINCT id) FROM many GROUP BY 1 ORDER BY 2, 1 DESC');
RESET gpujoin.device_memory_limit;

-- several devices put groups together, and merge what each has sorted
SET gpujoin.devices_per_query = 2;
SELECT gj_ordered('SELECT many.id, g.c, many.t, many.n FROM many JOIN g USING (k) ORDER BY many.r, many.id');
SELECT gj_ordered('SELECT r, count(*), min(n) FROM many GROUP BY r ORDER BY min(n) DESC, r');
SELECT gj_ordered('SELECT k, count(DISTINCT r) FROM many GROUP BY k ORDER BY 2, 1');
RESET gpujoin.devices_per_query;

-- whatever it costs is one thing; PostgreSQL sorts a few rows itself
SET gpujoin.force = off;
SET gpujoin.enabled = off;
SELECT gj_plan('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.id');
DROP TABLE f, g, many, copied;
DROP TYPE mood;
DROP FUNCTION gj_ordered, gj_merged;
