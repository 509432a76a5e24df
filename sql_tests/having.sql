-- HAVING that the device checks, of queries that return groups: compared with initplans and parameters, with ORDER BY and LIMIT.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
-- each device returns as many as the limit: how many come back is that of one
SET gpujoin.devices_per_query = 1;

-- What gj_same says of the rows in their order, who checks HAVING, by how many keys the device sorts, its limit, and what is sorted by PostgreSQL.
CREATE FUNCTION gj_having(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(format('SELECT row_number() OVER (), s.* FROM (%s) s', query)),
		CASE WHEN gj_explain(query) @? '$.**."Group Filter"' THEN ', device filter' END,
		CASE WHEN bool_or(n ? 'Filter') THEN ', host filter' END,
		', by ' || max(jsonb_array_length(n->'Sort Key')) FILTER (WHERE n->>'Custom Plan Provider' = 'GpuJoin'),
		', limit ' || max(n->>'Limit'),
		', ' || string_agg(n->>'Node Type', ', ') FILTER (WHERE n->>'Node Type' IN ('Sort', 'Incremental Sort')))
	FROM gj_nodes(query) n
$$;

CREATE TABLE h (k int, c int, v numeric(12,2), q int, n int8, x float8, t text);
INSERT INTO h SELECT i % 40000, i % 10, CASE WHEN i % 40000 <> 77 THEN (i * 7919::int8 % 10007) / 100.0 - 20 END, i % 13, i * 31::int8 % 1000, i % 100 / 8.0, 'text ' || i % 7 FROM generate_series(1, 100000) i;
CREATE TABLE d (k int PRIMARY KEY, name text);
INSERT INTO d SELECT i, 'name ' || i % 20 FROM generate_series(0, 39999) i;
VACUUM ANALYZE h, d;

-- an answer that anybody can check, and what EXPLAIN says
SELECT k, count(*) FROM h WHERE k < 39999 GROUP BY k HAVING count(*) > (SELECT 2) AND k > 19990 AND k < 20003 ORDER BY k DESC;
SELECT regexp_replace(regexp_replace(line, ' \(returns \$0\)', ''), '\$0|\(InitPlan 1\)\.col1', 'the value')
FROM gj_plan('SELECT k, sum(v * q) AS value FROM h GROUP BY k HAVING sum(v * q) > (SELECT sum(v * q) * 0.0001 FROM h) ORDER BY value DESC, k') line;

-- an initplan's value of another scale, with many digits, NULL, out of range, and none that is a number
SELECT value, gj_having(format('SELECT k, sum(v * q) AS s FROM h GROUP BY k HAVING sum(v * q) > (SELECT %s FROM h) ORDER BY s DESC, k', value))
FROM unnest(ARRAY['sum(v * q) * 0.0001', 'sum(v * q) * 0.00010000000000000000000001', 'sum(v) / 3700', 'avg(v * q) * 10', 'max(n)', 'min(q) + 600', 'max(x) * 60',
	'CASE WHEN count(*) < 0 THEN sum(v) END', '1e30 * count(*)', '-1e30 * count(*)', '''NaN''::numeric + min(v)', '''-Infinity''::numeric + min(v)']) WITH ORDINALITY AS l(value, n) ORDER BY n;
SELECT gj_having('SELECT k, sum(v * q) AS s FROM h GROUP BY k HAVING sum(v * q) = (SELECT max(s) FROM (SELECT sum(v * q) AS s FROM h GROUP BY k) m) ORDER BY s, k');

-- aggregates of each kind, compared and sorted by
SELECT condition, gj_having(format('SELECT k, sum(v) AS sv, sum(n) AS sn, count(*) AS c, min(n) AS mn, max(v) AS mv, max(x) AS mx, sum(x) AS sx, avg(v) AS av, avg(n) AS an FROM h GROUP BY k HAVING %s', condition))
FROM unnest(ARRAY['sum(v) > (SELECT 150) ORDER BY sv, k', 'sum(v) IS NULL ORDER BY k', 'sum(n) >= (SELECT max(n) * 2.7 FROM h) ORDER BY sn DESC, k', 'count(*) < (SELECT 3) ORDER BY c, k',
	'count(v) < (SELECT 2) ORDER BY k', 'min(n) = (SELECT 900) ORDER BY mn, k', 'max(v) > (SELECT 80) ORDER BY mv DESC NULLS LAST, k', 'max(v) > (SELECT 80) OR max(v) IS NULL ORDER BY mv NULLS FIRST, k',
	'sum(x) > (SELECT max(x) * 2 FROM h) ORDER BY mx, sx DESC, k', 'sum(v) > (SELECT 150) ORDER BY av, k', 'avg(v) > (SELECT 75) ORDER BY k', 'sum(v) > (SELECT 150) AND k % 2 = 0 ORDER BY k DESC',
	'sum(v) > (SELECT 1e9) ORDER BY k']) WITH ORDINALITY AS l(condition, n) ORDER BY n;

-- first rows; equal last ones; what is above groups; texts and expressions as keys; joins
SELECT gj_having('SELECT k, sum(v) FROM h GROUP BY k HAVING sum(v) < (SELECT avg(v) * 3 FROM h) ORDER BY 2 DESC, 1 LIMIT 20 OFFSET 5');
SELECT gj_having('SELECT k, sum(v), avg(v) FROM h GROUP BY k HAVING sum(v) < (SELECT avg(v) * 3 FROM h) ORDER BY 2 DESC, 1 LIMIT 20');
SELECT gj_having('SELECT k, sum(v), avg(v) FROM h GROUP BY k HAVING sum(v) < (SELECT avg(v) * 3 FROM h) ORDER BY 3 DESC, 1 LIMIT 20');
SELECT gj_same('SELECT count(*) FROM (SELECT k, count(*) FROM h GROUP BY k HAVING sum(v) > (SELECT 100) ORDER BY 2 DESC FETCH FIRST 5 ROWS WITH TIES) s');
SELECT gj_having('SELECT k + 1, t, sum(v) FROM h GROUP BY 1, 2 HAVING sum(v) > (SELECT 75) ORDER BY 3, 1');
SELECT gj_having('SELECT k, t, sum(v) FROM h GROUP BY 1, 2 HAVING sum(v) > (SELECT 75) ORDER BY 3, 1 LIMIT 7');
SELECT gj_having('SELECT d.k, d.name, sum(v * q) AS s FROM h JOIN d USING (k) GROUP BY d.k HAVING sum(v * q) > (SELECT sum(v * q) * 0.0001 FROM h) ORDER BY s DESC, d.k LIMIT 30');
SELECT gj_same('SELECT DISTINCT sum(v) FROM h GROUP BY k HAVING sum(v) > (SELECT 150) ORDER BY 1');
SELECT gj_same('SELECT k, sum(v), rank() OVER (ORDER BY sum(v)) FROM h GROUP BY k HAVING sum(v) > (SELECT 150) ORDER BY k');
SELECT gj_equal('SELECT y, (SELECT sum(s) FROM (SELECT sum(v) AS s FROM h GROUP BY k HAVING sum(v) > y ORDER BY 1 DESC LIMIT 5) s) FROM generate_series(150, 152) y');

-- sums that only PostgreSQL's numerics hold, also of groups that HAVING leaves out
INSERT INTO h SELECT 5, 1, NULL, 1, 9223372036854775807, 1, 'a' FROM generate_series(1, 3);
SELECT gj_having('SELECT k, sum(n) FROM h GROUP BY k HAVING sum(n) > (SELECT 2900) ORDER BY 2 DESC, 1');
SELECT gj_having('SELECT k, sum(n) FROM h GROUP BY k HAVING sum(n) < (SELECT 100) ORDER BY 2 DESC, 1 LIMIT 10');

-- parameters of generic plans; both stay as they were planned
SET plan_cache_mode = force_generic_plan;
PREPARE h(numeric) AS SELECT k, sum(v) FROM h GROUP BY k HAVING sum(v) > $1 ORDER BY 2 DESC, 1;
PREPARE native(numeric) AS SELECT k, sum(v) FROM h GROUP BY k HAVING sum(v) > $1 ORDER BY 2 DESC, 1;
SELECT gj_explain('EXECUTE h(150)') @? '$.**."Group Filter"';
SET gpujoin.enabled = off;
SELECT gj_explain('EXECUTE native(150)') @? '$.**."Group Filter"';
RESET gpujoin.enabled;
SELECT value, gj_rows(format('EXECUTE h(%s)', value)) = gj_rows(format('EXECUTE native(%s)', value)), gj_how(format('EXECUTE h(%s)', value)), cardinality(gj_rows(format('EXECUTE h(%s)', value)))
FROM unnest(ARRAY['150', '149.995', '149.9950000000000000000000001', 'NULL', '1e40', '''NaN''']) WITH ORDINALITY AS l(value, n) ORDER BY n;
DEALLOCATE h;
DEALLOCATE native;
RESET plan_cache_mode;

-- several devices
SET gpujoin.devices_per_query = 2;
SELECT gj_having('SELECT k, sum(v * q) AS s FROM h GROUP BY k HAVING sum(v * q) > (SELECT sum(v * q) * 0.0001 FROM h) ORDER BY s DESC, k');
SELECT gj_having('SELECT k, sum(v * q) AS s FROM h GROUP BY k HAVING sum(v * q) > (SELECT sum(v * q) * 0.0001 FROM h) ORDER BY s DESC, k LIMIT 10');

DROP TABLE h, d;
DROP FUNCTION gj_having;
