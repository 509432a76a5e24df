-- count(DISTINCT x), sum(DISTINCT x) and avg(DISTINCT x) of one expression, and other aggregates beside them.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
CREATE TABLE f AS SELECT i % 10 AS k, CASE WHEN i % 7 <> 0 THEN i * 13 % 100 END AS v, (i % 9)::int8 * 3000000000 AS i8, (i % 4 / 2.0)::float8 AS x, 'text ' || i % 6 AS t, i % 2 = 0 AS b FROM generate_series(1, 3000) i;
CREATE TABLE g AS SELECT i AS k, i % 4 AS c FROM generate_series(0, 8) i;
ANALYZE f, g;
SELECT count(DISTINCT k), count(DISTINCT k) + 1, count(*) FROM f;
SELECT list, gj_same(format('SELECT %s FROM f JOIN g USING (k)', list)), gj_same(format('SELECT f.t, %s FROM f GROUP BY t', list)), gj_same(format('SELECT f.b, f.k + 1, %s FROM f JOIN g USING (k) GROUP BY 1, 2', list))
FROM unnest(ARRAY['count(DISTINCT f.v)', 'sum(DISTINCT f.v), avg(DISTINCT f.v), count(DISTINCT f.v)', 'sum(DISTINCT f.i8), count(*), sum(f.v), avg(f.x), min(f.x), max(f.v), bool_or(f.b)', 'count(DISTINCT f.x)', 'count(DISTINCT f.t)', 'count(DISTINCT f.v % 7), stddev(f.v)', 'count(*), count(DISTINCT f.v), count(f.v)',
	'count(DISTINCT f.v), count(DISTINCT f.k)', 'count(DISTINCT f.v) FILTER (WHERE f.b)', 'sum(DISTINCT f.x)', 'min(DISTINCT f.v)', 'count(DISTINCT f.v + 2147483600)']) WITH ORDINALITY AS l(list, n) ORDER BY n;
-- no rows, only NULLs, HAVING
SELECT gj_same('SELECT count(DISTINCT v), sum(DISTINCT v), count(*) FROM f WHERE v > 1000');
SELECT gj_same('SELECT k, count(DISTINCT v), sum(DISTINCT v), count(*) FROM f WHERE v > 1000 GROUP BY k');
SELECT gj_same('SELECT count(DISTINCT v), sum(DISTINCT v), count(*) FROM f WHERE v IS NULL');
SELECT gj_same('SELECT count(DISTINCT f.v) FROM f JOIN g USING (k) WHERE g.c > 1000');
SELECT gj_same('SELECT k, count(DISTINCT v) FROM f GROUP BY k HAVING count(DISTINCT v) > 5');
SELECT gj_same('SELECT count(DISTINCT v) FROM f HAVING count(DISTINCT v) > 500');
-- many groups of groups
CREATE TABLE many AS SELECT i % 30000 AS k, i % 50021 AS v FROM generate_series(1, 200000) i;
SELECT gj_same('SELECT k, count(DISTINCT v), sum(DISTINCT v), sum(v) FROM many GROUP BY k');
SELECT gj_same('SELECT count(DISTINCT v), sum(DISTINCT v), sum(v) FROM many');
-- without the fallback, which is not the same in all versions
SELECT line FROM gj_plan('SELECT k, count(DISTINCT v) FROM f GROUP BY k') line WHERE line ~ '^(Custom|  [SGD])';
SELECT line FROM gj_plan('SELECT count(DISTINCT v) FROM f') line WHERE line ~ '^(Custom|  [SGD])';
DROP TABLE f, g, many;
