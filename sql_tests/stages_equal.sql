-- Stages that compute the same run once: CTEs with several readers. First rows of subqueries.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE o (ok int, ck int, st text, price numeric(12,2));
INSERT INTO o SELECT i, i % 97, 's' || i % 11, i % 1000 / 8.0 FROM generate_series(1, 2000) i;
CREATE TABLE li (ok int, pk int, q numeric(12,2), n int, st varchar(9));
INSERT INTO li SELECT nullif(i / 4, 7), i % 41, nullif(i % 50, 13) + 0.25, i % 1000, 's' || i % 13 FROM generate_series(1, 9000) i;
CREATE TABLE parts (pk int, ok int) PARTITION BY RANGE (pk);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (20);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (20) TO (50);
INSERT INTO parts SELECT pk, ok FROM li;
VACUUM ANALYZE o, li, parts;

-- stages of a query that ran, and those that took the result of another one
CREATE FUNCTION equal_stages(query text) RETURNS text LANGUAGE sql AS $$
	WITH stage AS (
		SELECT jsonb_path_query(gj_explain(query, 'ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF'),
			'strict $.**?(@."Custom Plan Provider" == "GpuJoin" && !exists(@."Child Plans"[*]?(@ == "fallback")))') s)
	SELECT format('ran: %s, took: %s', count(*) FILTER (WHERE (s->>'Actual Loops')::float > 0),
				  count(*) FILTER (WHERE s->>'Result' = 'of an equal stage')) FROM stage
$$;
-- the same rows, by whom, and stages
CREATE FUNCTION shared(query text) RETURNS text LANGUAGE sql AS $$
	SELECT gj_same(query) || ', ' || equal_stages(query)
$$;

-- in one GpuJoin, in an initplan and in the query around it, in both
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT count(*) FROM r a JOIN r b USING (t)');
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, t FROM o JOIN r USING (ok) WHERE t = (SELECT max(t) FROM r)');
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT a.ok, b.ok FROM r a JOIN r b USING (t) WHERE t < (SELECT max(t) FROM r) AND b.ok < 50');
SELECT shared('WITH r AS MATERIALIZED (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, a.t, b.t FROM o JOIN r a USING (ok) JOIN r b ON b.ok = o.ck');
SELECT shared('WITH r AS (SELECT st, avg(q) a, count(*) n FROM li GROUP BY st) SELECT o.ok, x.a, y.n FROM o JOIN r x USING (st) JOIN r y ON y.n = x.n AND y.a = x.a');
SELECT shared('WITH r AS (SELECT DISTINCT ok, pk FROM li) SELECT count(*) FROM o JOIN r x USING (ok) JOIN r y ON y.pk = o.ck');
SELECT shared('WITH r AS (SELECT ok, count(*) n FROM parts GROUP BY ok) SELECT count(*) FROM r a JOIN r b ON a.ok = b.n');
-- a CTE of another one
SELECT shared('WITH r AS (SELECT ok, count(*) n FROM li GROUP BY ok), s AS (SELECT n, count(*) c FROM r GROUP BY n) SELECT x.n, y.c FROM s x JOIN s y USING (n, c)');
-- as the only reader
SELECT shared('WITH r AS MATERIALIZED (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, t FROM o JOIN r USING (ok)');

-- conditions on keys, and rows that an outer join makes, have a stage run for itself; other aggregates do not
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT count(*) FROM r a JOIN r b USING (t) WHERE a.ok < 99');
SELECT shared('WITH r AS (SELECT ok, sum(q) t, count(*) n FROM li GROUP BY ok) SELECT count(*), max(b.n) FROM o JOIN r a USING (ok) JOIN r b ON b.ok = o.ck WHERE a.t > 3');
SELECT shared('WITH r AS (SELECT ok, coalesce(sum(q), 0) t FROM li GROUP BY ok) SELECT count(*), sum(b.t) FROM o JOIN r a USING (ok) LEFT JOIN r b ON b.ok = o.ck WHERE a.t > 3');
-- subqueries that are alike, and that are not
SELECT shared('SELECT count(*) FROM (SELECT ok, sum(q) t FROM li GROUP BY ok) a JOIN (SELECT ok, sum(q) t FROM li GROUP BY ok) b USING (ok)');
SELECT shared('SELECT count(*) FROM (SELECT ok, sum(q) t FROM li GROUP BY ok) a JOIN (SELECT ok, sum(q) t FROM li WHERE pk < 9 GROUP BY ok) b USING (ok)');
SELECT shared('SELECT count(*) FROM (SELECT ok, count(*) t FROM li GROUP BY ok) a JOIN (SELECT ok, count(*) t FROM parts GROUP BY ok) b USING (ok)');

-- parameters: equal, and not
PREPARE two(int, int) AS WITH r AS (SELECT ok, sum(q) t FROM li WHERE pk < $1 GROUP BY ok), s AS (SELECT ok, sum(q) t FROM li WHERE pk < $2 GROUP BY ok)
	SELECT count(*), sum(a.t), sum(d.t) FROM r a JOIN r b USING (ok) JOIN s c USING (ok) JOIN s d USING (ok);
SET plan_cache_mode = force_generic_plan;
SELECT equal_stages('EXECUTE two(20, 20)');
SELECT equal_stages('EXECUTE two(20, 30)');
SET gpujoin.enabled = off;
DISCARD PLANS;
SELECT gj_rows('EXECUTE two(20, 20)'), gj_rows('EXECUTE two(20, 30)');
SET gpujoin.enabled = on;
DISCARD PLANS;
SELECT gj_rows('EXECUTE two(20, 20)'), gj_rows('EXECUTE two(20, 30)');
RESET plan_cache_mode;

-- readers that never run, that run many times, that end early; cursors
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, t FROM o JOIN r USING (ok) WHERE o.ok < 0 OR o.ok < (SELECT 9 FROM r WHERE t < 0)');
SELECT shared('SELECT x, (WITH r AS (SELECT ok, sum(q) t FROM li WHERE pk <> x GROUP BY ok) SELECT count(*) FROM r a JOIN r b USING (t)) FROM generate_series(1, 3) x');
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT a.ok, b.ok FROM r a JOIN r b USING (t) ORDER BY 1, 2 LIMIT 3');
BEGIN;
DECLARE c SCROLL CURSOR FOR WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT a.ok, b.ok FROM r a JOIN r b USING (t) WHERE t = (SELECT max(t) FROM r) ORDER BY 1, 2;
FETCH 2 FROM c;
DECLARE d CURSOR FOR WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT a.ok, b.ok FROM r a JOIN r b USING (t) WHERE t = (SELECT max(t) FROM r) ORDER BY 1, 2;
FETCH 1 FROM d;
FETCH 1 FROM c;
CLOSE c;
FETCH 1 FROM d;
COMMIT;

-- a result that an ended reader has left stays until the next one has it, whatever runs before
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, t FROM o JOIN r USING (ok) UNION ALL
	SELECT r.ok, t FROM o JOIN r USING (ok) JOIN (SELECT pk, count(*) n FROM li GROUP BY pk) s ON s.pk = o.ck');
SELECT shared('WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT o.ok, t FROM o JOIN r USING (ok) UNION ALL
	SELECT r.ok, t FROM o JOIN (SELECT pk, count(*) n FROM li GROUP BY pk) s ON s.pk = o.ck JOIN r USING (ok)');
-- stages of stages that differ by a parameter and a constant
SET plan_cache_mode = force_generic_plan;
PREPARE differ(int) AS SELECT x.n, x.c, y.c FROM (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li WHERE pk > $1 GROUP BY ok) r GROUP BY n) y
	FULL JOIN (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li WHERE pk > 0 GROUP BY ok) r GROUP BY n) x USING (n) ORDER BY 1, 2, 3;
PREPARE differ_too(int) AS SELECT x.n, x.c, y.c FROM (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li WHERE pk > 0 GROUP BY ok) r GROUP BY n) y
	FULL JOIN (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li WHERE pk > $1 GROUP BY ok) r GROUP BY n) x USING (n) ORDER BY 1, 2, 3;
EXECUTE differ(38);
EXECUTE differ_too(38);
SET gpujoin.enabled = off;
EXECUTE differ(38);
EXECUTE differ_too(38);
RESET gpujoin.enabled;
RESET plan_cache_mode;
DEALLOCATE ALL;

-- failures, before and after the result of one is there; groups that do not stay on the device
\set query 'WITH r AS (SELECT ok, sum(q) t FROM li GROUP BY ok) SELECT a.ok, b.ok FROM r a JOIN r b USING (t) WHERE t = (SELECT max(t) FROM r)'
SELECT f, CASE WHEN set_config('gpujoin.fail_at', f, false) = f THEN gj_same('SELECT count(*), sum(x.a) FROM (' || :'query' || ') x(a, b)') END
	FROM unnest('{submit, memory, build, probe, overflow, output, never}'::text[]) f;
SET gpujoin.device_memory_limit = '64MB';
SET gpujoin.spill_memory = 0;
SELECT shared(:'query');
RESET gpujoin.spill_memory;
RESET gpujoin.device_memory_limit;

-- first rows of a subquery or CTE: the device finds them, and they come back as rows of a source
SELECT gj_device('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok ORDER BY q DESC, ok LIMIT 20) s USING (ok)');
SELECT gj_device('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok ORDER BY q, ok LIMIT 5 OFFSET 5) s USING (ok)');
SELECT gj_device('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok ORDER BY q FETCH FIRST 5 ROWS WITH TIES) s USING (ok)');
SELECT gj_device('SELECT count(*) FROM li WHERE ok IN (SELECT ok FROM li GROUP BY ok ORDER BY sum(q) DESC NULLS LAST, ok LIMIT 100)');
SELECT gj_device('WITH r AS (SELECT ok, sum(q) q FROM li GROUP BY ok ORDER BY q DESC, ok LIMIT 20) SELECT a.ok, b.q FROM r a JOIN r b USING (ok) JOIN o USING (ok)');
SELECT gj_device('SELECT s.st, count(*) FROM o s JOIN (SELECT o.ok, li.q FROM li JOIN o USING (ok) ORDER BY q DESC, ok, n LIMIT 20) t USING (ok) GROUP BY 1');
SELECT jsonb_path_query_array(gj_explain('SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok ORDER BY q DESC, ok LIMIT 20) s USING (ok)'), 'strict $.**{1 to last}?(@."Custom Plan Provider" == "GpuJoin")."Limit"');
DROP TABLE o, li, parts;
DROP FUNCTION equal_stages, shared;
