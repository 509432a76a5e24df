-- why parts of a query are not offloaded: EXPLAIN says so, for each part, and its reason is right
CREATE FUNCTION why_not(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		IF found THEN
			-- costs and numbers of processors are not the test's
			RETURN NEXT ltrim(regexp_replace(line, '\d+\.\d\d', 'N', 'g'));
		END IF;
		found := found OR line = 'Not Offloaded:';
	END LOOP;
END $$;
CREATE TABLE wa AS SELECT g AS id, g % 100 AS k, (g * 7 % 1000)::numeric AS n, g % 1000 / 10.0::numeric(10,2) AS v, 'x' || g % 50 AS t, array[g, g + 1] AS arr FROM generate_series(1, 20000) g;
CREATE TABLE wb AS SELECT g AS id, g % 10 AS c, 'n' || g AS t, interval '1 day' * (g % 9) AS iv, point(g, g) AS p FROM generate_series(1, 1000) g;
CREATE TABLE wp (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE wp1 PARTITION OF wp FOR VALUES FROM (0) TO (10000);
CREATE TABLE wp2 PARTITION OF wp FOR VALUES FROM (10000) TO (20001);
INSERT INTO wp SELECT id, k FROM wa;
ANALYZE wa, wb, wp;
SET gpujoin.force = on;
SET max_parallel_workers_per_gather = 0;
SET gpujoin.explain_reasons = on;
-- nothing to say of what is offloaded
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id');
SELECT why_not('SELECT wa.id, wb.c FROM wa JOIN wb ON wa.k = wb.id ORDER BY wa.id');
-- the transaction, the session, the statement
SET gpujoin.enabled = off;
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id');
RESET gpujoin.enabled;
SET gpujoin.device = off;
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id');
RESET gpujoin.device;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id');
COMMIT;
SELECT why_not('SELECT wa.id FROM wa JOIN wb ON wa.k = wb.id FOR UPDATE');
SELECT why_not('UPDATE wp SET k = 0 FROM wb WHERE wp.k = wb.id');
SELECT why_not('WITH d AS (DELETE FROM wb WHERE c = 1 RETURNING id) SELECT count(*) FROM wa JOIN d ON wa.k = d.id');
-- shapes of queries
SELECT why_not('SELECT * FROM wa WHERE id = 5');
SELECT why_not('SELECT k, row_number() OVER (ORDER BY wa.id) FROM wa JOIN wb ON wa.k = wb.id');
SELECT why_not('SELECT k FROM wa UNION SELECT id FROM wb');
SELECT why_not('SELECT k FROM wa EXCEPT SELECT id FROM wb');
SELECT why_not('SELECT DISTINCT ON (k) k, id FROM wa');
SELECT why_not('SELECT k, count(*) FROM wa GROUP BY ROLLUP (k)');
SELECT why_not('SELECT wa.k, count(*) FROM wa JOIN wb ON wa.k = wb.id GROUP BY ROLLUP (wa.k)');
SELECT why_not('WITH w AS MATERIALIZED (SELECT k, id FROM wa OFFSET 1) SELECT k, sum(id) FROM w GROUP BY k');
SELECT why_not('SELECT k, sum(id) FROM (SELECT k, id FROM wa OFFSET 1) w GROUP BY k');
SELECT why_not('SELECT k, sum(id) FROM wa WHERE EXISTS (SELECT FROM wb) GROUP BY k');
SELECT why_not('SELECT count(*) FROM wa WHERE (k, id) NOT IN (SELECT id, id FROM wb)');
SELECT why_not('SELECT count(*) FROM wa WHERE id > (SELECT avg(id) FROM wb)');
SELECT why_not('SELECT wb.id, x.s FROM wb, LATERAL (SELECT sum(id) AS s FROM wa WHERE wa.k < wb.c) x');
SELECT why_not('SELECT count(*) FROM wa TABLESAMPLE SYSTEM (50)');
SELECT why_not('SELECT id, (SELECT count(*) FROM wa WHERE wa.k < wb.id) FROM wb');
-- functions, types, collations
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id WHERE wa.v > random()');
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id AND random() < 0.5');
SELECT why_not('SELECT wa.id FROM wa LEFT JOIN wb ON wa.k = wb.id AND length(wa.t || wb.t) > 3');
SELECT why_not('SELECT wa.id FROM wa JOIN wb ON wa.t || ''1'' = wb.t');
SELECT why_not('SELECT count(*) FROM wa WHERE reverse(t) = ''1x''');
SELECT why_not('SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id WHERE wb.iv > interval ''2 days''');
SELECT why_not('SELECT sum(n) FROM wa');
SELECT why_not('SELECT string_agg(wb.t, '','') FROM wa JOIN wb ON wa.k = wb.id');
SELECT why_not('SELECT array_agg(wa.id ORDER BY wa.id) FROM wa');
SELECT why_not('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM wa');
SELECT why_not('SELECT max(t) FROM wa');
SELECT why_not('SELECT iv, count(*) FROM wa JOIN wb ON wa.k = wb.id GROUP BY iv');
SELECT why_not('SELECT count(DISTINCT id), count(DISTINCT k) FROM wa');
-- costs
SET gpujoin.force = off;
SELECT why_not('SELECT count(*) FROM wb');
SET gpujoin.force = on;
-- in VERBOSE alone, or not at all
SET gpujoin.explain_reasons = verbose;
SELECT count(*) FROM why_not('SELECT sum(n) FROM wa');
SELECT count(*) FROM why_not('SELECT sum(n) FROM wa', 'VERBOSE');
SET gpujoin.explain_reasons = off;
SELECT count(*) FROM why_not('SELECT sum(n) FROM wa', 'VERBOSE');
SET gpujoin.explain_reasons = on;
-- structured formats
DO $$
DECLARE
	x text;
	q text := 'SELECT sum(n) FROM wa';
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || q INTO x;
	RAISE NOTICE '%', jsonb_path_query_array(x::jsonb, '$[*]."Not Offloaded"[*]');
	EXECUTE 'EXPLAIN (FORMAT YAML) ' || q INTO x;
	RAISE NOTICE '%', x LIKE '%Not Offloaded%Reason%';
	EXECUTE 'EXPLAIN (FORMAT XML) ' || q INTO x;
	RAISE NOTICE '%', xml_is_well_formed_document(x);
EXCEPTION WHEN feature_not_supported THEN
	NULL;							-- a server without libxml
END $$;
-- what runs in place of the device can be told to the client
SET gpujoin.fail_at = build;
SET compute_query_id = off;
SET gpujoin.log_fallbacks = warning;
SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id;
SET gpujoin.log_fallbacks = off;
RESET compute_query_id;
SELECT count(*) FROM wa JOIN wb ON wa.k = wb.id;
RESET gpujoin.fail_at;
DROP TABLE wa, wb, wp;
DROP FUNCTION why_not;
