-- A GpuJoin that begins again with the same parameters, below a nested loop: from the second time on its rows are kept.
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET gpujoin.force = on;
CREATE TABLE rescans_t AS SELECT x % 50 AS g, x AS v, CASE WHEN x % 7 > 0 THEN 'text ' || x % 300 END AS c FROM generate_series(1, 5000) x;
CREATE TABLE rescans_d AS SELECT x AS k, x % 5 AS p FROM generate_series(0, 49) x;
ANALYZE rescans_t, rescans_d;
-- how often GpuJoins began, and groups that all runs of the inner one found: 50 each
CREATE FUNCTION rescans(query text, OUT loops int, OUT groups int) LANGUAGE sql AS $$
	SELECT max((n->>'Actual Loops')::int), max((n->>'Groups')::int)
	FROM gj_nodes(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') n WHERE n->>'Custom Plan Provider' = 'GpuJoin'
$$;
-- random() leaves the outer join to PostgreSQL
CREATE VIEW rescans_groups AS SELECT g, sum(v) AS s, count(*) AS n FROM rescans_t GROUP BY g;
SELECT * FROM rescans('SELECT * FROM rescans_groups x JOIN rescans_groups y ON x.g < y.g AND x.s + random() >= 0');
SELECT gj_same('SELECT * FROM rescans_groups x JOIN rescans_groups y ON x.g < y.g AND x.s + random() >= 0');
-- the inner side is left before its end: by a semi join, and where groups are unique
SET gpujoin.unnest = off;
SELECT gj_same('SELECT * FROM rescans_groups x WHERE EXISTS (SELECT FROM rescans_groups y WHERE x.g <= y.g AND x.s + random() >= 0)');
SELECT gj_same('SELECT * FROM rescans_groups x WHERE NOT EXISTS (SELECT FROM rescans_groups y WHERE x.g > y.g AND x.s + random() >= 0)');
RESET gpujoin.unnest;
SELECT gj_same('SELECT * FROM rescans_groups x JOIN rescans_groups y ON x.g = y.g AND x.s + random() >= 0');
SELECT gj_same('SELECT * FROM rescans_groups x LEFT JOIN rescans_groups y ON x.g = y.g + 40 AND x.s + random() >= 0');
-- rows with texts and NULLs, with and without expressions; in an order; more than work_mem; none; one of aggregates
SET work_mem = '64kB';
SELECT gj_same('SELECT x.g, y.* FROM rescans_groups x JOIN (SELECT t.c, t.v, d.p FROM rescans_t t JOIN rescans_d d ON t.g = d.k OFFSET 0) y
	ON x.g = y.v % 60 AND x.s + random() >= 0');
SELECT gj_same('SELECT x.g, y.* FROM rescans_groups x JOIN (SELECT upper(t.c) || t.v AS u, t.v + d.p AS w FROM rescans_t t JOIN rescans_d d ON t.g = d.k
	WHERE t.v < 900 OFFSET 0) y ON x.g = y.w % 60 AND x.s + random() >= 0');
RESET work_mem;
SELECT gj_same('SELECT x.g, y.* FROM rescans_groups x JOIN (SELECT g, sum(v) AS s FROM rescans_t GROUP BY g ORDER BY 2 DESC, 1 LIMIT 7) y
	ON x.g > y.g AND x.s + random() >= 0');
SELECT gj_same('SELECT x.g, y.* FROM rescans_groups x LEFT JOIN (SELECT g, sum(v) AS s FROM rescans_t WHERE v < 0 GROUP BY g) y
	ON x.g > y.g AND x.s + random() >= 0');
SELECT gj_same('SELECT x.g, y.* FROM rescans_groups x JOIN (SELECT sum(v) AS s, count(c) FROM rescans_t) y ON x.s < y.s + random()');
-- a parameter that changes now and then: rows of another value are not taken for its own
SET enable_memoize = off;
SELECT * FROM rescans('SELECT d.k, z.* FROM (SELECT * FROM rescans_d ORDER BY k LIMIT 7) d, LATERAL (SELECT x.g, y.s FROM rescans_groups x
	JOIN (SELECT t.g, sum(v) AS s FROM rescans_t t WHERE v % 5 = d.p GROUP BY t.g) y ON y.g < x.g AND x.s + y.s + random() >= 0) z');
SELECT gj_same('SELECT d.k, z.* FROM (SELECT * FROM rescans_d ORDER BY k LIMIT 7) d, LATERAL (SELECT x.g, y.s FROM rescans_groups x
	JOIN (SELECT t.g, sum(v) AS s FROM rescans_t t WHERE v % 5 = d.p GROUP BY t.g) y ON y.g < x.g AND x.s + y.s + random() >= 0) z');
RESET enable_memoize;
-- in cursors, backwards as well
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT x.g, y.g FROM rescans_groups x JOIN rescans_groups y ON x.g < y.g AND y.g < 3 AND x.s + random() >= 0 ORDER BY 1, 2;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
-- with little memory
SET gpujoin.device_memory_limit = '64MB';
SELECT gj_same('SELECT * FROM rescans_groups x JOIN rescans_groups y ON x.g < y.g AND x.s + random() >= 0');
RESET gpujoin.device_memory_limit;
DROP VIEW rescans_groups; DROP FUNCTION rescans; DROP TABLE rescans_t, rescans_d;
