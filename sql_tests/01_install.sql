-- What CREATE EXTENSION brings, and the helpers that the other tests use.
SET client_min_messages = warning;
CREATE EXTENSION gpujoin;
RESET client_min_messages;

-- functions, views and settings that users rely on
SELECT p.oid::regprocedure AS function, p.prorettype::regtype AS returns
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpujoin')
  AND (p.proname LIKE 'gpu\_%' OR p.proname IN ('gpujoin_enable', 'gpujoin_disable'))
ORDER BY p.proname, p.oid::regprocedure::text;

SELECT c.relname AS view, string_agg(a.attname, ', ' ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relname IN ('gpujoin_devices', 'gpujoin_stat')
GROUP BY c.relname ORDER BY c.relname;

SELECT name, vartype, context FROM pg_settings
WHERE name IN ('gpujoin.enabled', 'gpujoin.device', 'gpujoin.force', 'gpujoin.algorithm',
			   'gpujoin.device_memory_limit', 'gpujoin.set_device_min_elements', 'gpujoin.fail_at')
ORDER BY name;

SELECT count(*) > 0 AS has_a_device FROM gpujoin_devices;
SELECT count(*) = count(DISTINCT outcome) AS one_row_an_outcome FROM gpujoin_stat;

-- The rows of a query as sorted text, or its error.
CREATE FUNCTION gj_rows(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text[] := '{}';
BEGIN
	FOR r IN EXECUTE query LOOP
		result := result || r::text;
	END LOOP;
	RETURN (SELECT coalesce(array_agg(x ORDER BY x COLLATE "C"), '{}') FROM unnest(result) x);
EXCEPTION
	WHEN others THEN
		RETURN ARRAY['error ' || SQLSTATE || ': ' || SQLERRM];
END $$;

-- Why the plan of an executed query fell back, of one GpuJoin node of EXPLAIN (ANALYZE,
-- FORMAT JSON); NULL if it did not.  All that the tests know of how EXPLAIN says it.
CREATE FUNCTION gj_fallback_reason(node jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN node ? 'Fallback' THEN node->>'Fallback' END
$$;

-- Who ran the query: "GpuJoin", what PostgreSQL itself added above or beside it, and whether it fell back.
CREATE FUNCTION gj_how(query text, run bool DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	how text;
BEGIN
	EXECUTE format('EXPLAIN (%s COSTS OFF, FORMAT JSON) %s',
				   CASE WHEN run THEN 'ANALYZE, TIMING OFF, SUMMARY OFF,' END, query) INTO plan;
	WITH RECURSIVE node(n) AS (
		SELECT plan::jsonb->0->'Plan'
		UNION ALL
		SELECT jsonb_array_elements(n->'Plans') FROM node
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin')
	SELECT concat(
		CASE WHEN bool_or(n->>'Custom Plan Provider' = 'GpuJoin') THEN 'GpuJoin' ELSE 'native' END,
		CASE WHEN bool_or(n->>'Custom Plan Provider' = 'GpuJoin') THEN
			concat(CASE WHEN bool_or(n->>'Node Type' = 'Aggregate') THEN ' + aggregate' END,
				   CASE WHEN bool_or(n->>'Node Type' IN ('Hash Join', 'Merge Join', 'Nested Loop'))
						THEN ' + join' END) END,
		min(', fell back: ' || gj_fallback_reason(n)))
	INTO how FROM node;
	RETURN how;
END $$;

-- Compares what PostgreSQL and gpujoin return.
CREATE FUNCTION gj_compare(query text, OUT answer text, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
	native text[];
	forced text[];
	enabled text := current_setting('gpujoin.enabled');
	force text := current_setting('gpujoin.force');
BEGIN
	PERFORM set_config('gpujoin.enabled', 'off', false);
	native := gj_rows(query);
	PERFORM set_config('gpujoin.enabled', 'on', false), set_config('gpujoin.force', 'on', false);
	forced := gj_rows(query);
	PERFORM set_config('gpujoin.enabled', enabled, false), set_config('gpujoin.force', force, false);

	same := native = forced;
	IF NOT same THEN
		answer := format('DIFFERENT: %s and %s rows; only PostgreSQL''s: %s; only gpujoin''s: %s',
			cardinality(native), cardinality(forced),
			(SELECT min(x) FROM (SELECT unnest(native) x EXCEPT ALL SELECT unnest(forced)) d),
			(SELECT min(x) FROM (SELECT unnest(forced) x EXCEPT ALL SELECT unnest(native)) d));
	ELSIF native[1] LIKE 'error %' THEN
		answer := 'same ' || native[1];
	ELSE
		answer := format('same, %s rows', cardinality(native));
	END IF;
END $$;

-- The same rows, and by whom: what most tests say.
CREATE FUNCTION gj_same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c record;
	force text := current_setting('gpujoin.force');
	how text;
BEGIN
	SELECT * INTO c FROM gj_compare(query);
	PERFORM set_config('gpujoin.force', 'on', false);
	how := gj_how(query, c.answer NOT LIKE 'same error%');
	PERFORM set_config('gpujoin.force', force, false);
	RETURN c.answer || ', ' || how;
END $$;

-- The same rows, whoever ran it.
CREATE FUNCTION gj_equal(query text) RETURNS text LANGUAGE sql AS $$
	SELECT answer FROM gj_compare(query)
$$;

-- The same rows, by whom, and what of the conditions was left to PostgreSQL.
CREATE FUNCTION gj_device(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	answer text := gj_same(query);
BEGIN
	IF answer LIKE 'same error%' THEN
		RETURN answer;
	END IF;
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN answer ||
		CASE WHEN plan::jsonb @? '$.**?(@."Custom Plan Provider" == "GpuJoin")."Filter"' THEN ', condition on the host' ELSE '' END ||
		CASE WHEN plan::jsonb @? '$.**."Sources"[*]?(@."Kind" == "plan")' THEN ', plan source' ELSE '' END;
END $$;

-- The text of a plan, whatever the device.
CREATE FUNCTION gj_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line !~ '^ *Device: ' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END $$;

-- The helpers see differences.
CREATE SEQUENCE gj_counter;
SELECT gj_equal('SELECT 1 + nextval(''gj_counter'')');
SELECT gj_equal('SELECT generate_series(1, nextval(''gj_counter''))');
SELECT gj_same('SELECT 1 / x FROM generate_series(0, 1) x');
SELECT gj_same('SELECT FROM generate_series(1, 3) x');
DROP SEQUENCE gj_counter;
