-- What CREATE EXTENSION brings, and the helpers that the other tests use.
SET client_min_messages = warning;
CREATE EXTENSION gpujoin;
RESET client_min_messages;

-- functions, views and settings that users rely on
SELECT p.oid::regprocedure AS function, p.prorettype::regtype AS returns
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpujoin')
  AND (p.proname LIKE 'gpu\_%' OR p.proname LIKE 'gpujoin\_%')
ORDER BY p.proname, p.oid::regprocedure::text;

SELECT c.relname AS view, string_agg(a.attname, ', ' ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'v' AND c.relname LIKE 'gpujoin\_%'
GROUP BY c.relname ORDER BY c.relname;

SELECT c.relname AS without_comment
FROM pg_class c WHERE c.relkind = 'v' AND c.relname LIKE 'gpujoin\_%' AND obj_description(c.oid, 'pg_class') IS NULL
UNION ALL
SELECT p.oid::regprocedure::text
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpujoin')
  AND obj_description(p.oid, 'pg_proc') IS NULL;

SELECT name, vartype, context FROM pg_settings
WHERE name IN ('gpujoin.enabled', 'gpujoin.device', 'gpujoin.force', 'gpujoin.algorithm',
			   'gpujoin.device_memory_limit', 'gpujoin.set_device_min_elements', 'gpujoin.fail_at')
ORDER BY name;

SELECT count(*) > 0 AS has_a_device FROM gpujoin_devices;
SELECT count(*) = count(DISTINCT (datid, outcome)) AS one_row_an_outcome FROM gpujoin_stat;

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

-- What EXPLAIN with these options says of a query.
CREATE FUNCTION gj_explain(query text, options text DEFAULT 'COSTS OFF') RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO plan;
	RETURN plan;
END $$;

-- The nodes of its plan, but for those below a GpuJoin, which are its sources and its fallback.
CREATE FUNCTION gj_nodes(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF jsonb LANGUAGE sql AS $$
	WITH RECURSIVE node(n) AS (
		SELECT gj_explain(query, options)->0->'Plan'
		UNION ALL
		SELECT jsonb_array_elements(n->'Plans') FROM node
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin')
	SELECT n FROM node
$$;

-- The first GpuJoin of its plan, from above; NULL if there is none.
CREATE FUNCTION gj_node(query text, options text DEFAULT 'COSTS OFF') RETURNS jsonb LANGUAGE sql AS $$
	SELECT n FROM gj_nodes(query, options) n WHERE n->>'Custom Plan Provider' = 'GpuJoin' LIMIT 1
$$;

-- The same, and the stages whose results a GpuJoin reads.
CREATE FUNCTION gj_staged_nodes(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF jsonb LANGUAGE sql AS $$
	WITH RECURSIVE node(n) AS (
		SELECT gj_explain(query, options)->0->'Plan'
		UNION ALL
		SELECT child FROM node, jsonb_array_elements(n->'Plans') WITH ORDINALITY c(child, i)
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin' OR
			jsonb_path_exists(n, '$."Sources"[*] ? (@."Kind" == "stage" && @."Child Plan" == $i)', jsonb_build_object('i', i)))
	SELECT n FROM node
$$;

-- Join type and algorithm of the steps of its GpuJoins.
CREATE FUNCTION gj_steps(query text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(lower(s->>'Join Type') || ' ' || (s->>'Algorithm') ||
							   CASE WHEN s ? 'Range Condition' THEN ' range' ELSE '' END, ', '), 'no step')
	FROM gj_staged_nodes(query) n, jsonb_array_elements(n->'Joins') s
$$;

-- Why the plan of an executed query fell back, of one GpuJoin node; NULL if it did not.
-- All that the tests know of how EXPLAIN says it.
CREATE FUNCTION gj_fallback_reason(node jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN node ? 'Fallback' THEN node->>'Fallback' END
$$;

-- How often a query of this database fell back.
CREATE FUNCTION gj_fallbacks() RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(sum(count), 0)::bigint FROM gpujoin_stat
	WHERE datname = current_database() AND outcome <> 'completed'
$$;

-- Who ran the query: "GpuJoin", what PostgreSQL itself added above or beside it, and whether it fell back.
CREATE FUNCTION gj_how(query text, run bool DEFAULT true) RETURNS text LANGUAGE sql AS $$
	SELECT concat(
		CASE WHEN bool_or(n->>'Custom Plan Provider' = 'GpuJoin') THEN 'GpuJoin' ELSE 'native' END,
		CASE WHEN bool_or(n->>'Custom Plan Provider' = 'GpuJoin') THEN
			concat(CASE WHEN bool_or(n->>'Node Type' = 'Aggregate') THEN ' + aggregate' END,
				   CASE WHEN bool_or(n->>'Node Type' IN ('Hash Join', 'Merge Join', 'Nested Loop'))
						THEN ' + join' END) END,
		min(', fell back: ' || gj_fallback_reason(n)))
	FROM gj_nodes(query, CASE WHEN run THEN 'ANALYZE, TIMING OFF, SUMMARY OFF, ' ELSE '' END || 'COSTS OFF') n
$$;

-- What PostgreSQL itself returns.  A statement that asks for the same few rows again gets those of its first question.
CREATE FUNCTION gj_native(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	question text := statement_timestamp() || query;
	result text[];
	enabled text := current_setting('gpujoin.enabled');
BEGIN
	IF current_setting('gj.question', true) = question THEN
		RETURN current_setting('gj.answer')::text[];
	END IF;
	PERFORM set_config('gpujoin.enabled', 'off', false);
	result := gj_rows(query);
	PERFORM set_config('gpujoin.enabled', enabled, false);
	IF cardinality(result) <= 5000 THEN
		PERFORM set_config('gj.question', question, false), set_config('gj.answer', result::text, false);
	END IF;
	RETURN result;
END $$;

-- Compares what PostgreSQL and gpujoin return.
CREATE FUNCTION gj_compare(query text, OUT answer text, OUT same bool) LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gj_native(query);
	forced text[];
	enabled text := current_setting('gpujoin.enabled');
	force text := current_setting('gpujoin.force');
BEGIN
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
	fallbacks bigint := gj_fallbacks();
	how text;
BEGIN
	SELECT * INTO c FROM gj_compare(query);
	PERFORM set_config('gpujoin.force', 'on', false);
	-- why it fell back, if it did, is what it says when it runs again
	how := gj_how(query, c.answer NOT LIKE 'same error%' AND gj_fallbacks() > fallbacks);
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
	plan jsonb;
	answer text := gj_same(query);
BEGIN
	IF answer LIKE 'same error%' THEN
		RETURN answer;
	END IF;
	plan := gj_explain(query);
	RETURN answer ||
		CASE WHEN plan @? '$.**?(@."Custom Plan Provider" == "GpuJoin")."Filter"' THEN ', condition on the host' ELSE '' END ||
		CASE WHEN plan @? '$.**."Sources"[*]?(@."Kind" == "plan")' THEN ', plan source' ELSE '' END;
END $$;

-- That, of a condition on the join of the test's tables f and g.
CREATE FUNCTION gj_where(condition text, columns text DEFAULT 'f.id, g.name') RETURNS text LANGUAGE sql AS $$
	SELECT gj_device(format('SELECT %s FROM f JOIN g ON f.k = g.k WHERE %s', columns, condition))
$$;

-- The same rows with any number of loader workers; in tables, because cursors do not use workers.
-- If `evict`, nothing is resident for those with 1 and 4 workers.
CREATE FUNCTION gj_equal_loaded(query text, evict bool DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int;
	result text;
BEGIN
	SET LOCAL gpujoin.enabled = off;
	EXECUTE 'CREATE TEMP TABLE gj_native AS ' || query;
	SET LOCAL gpujoin.enabled = on;
	FOREACH n IN ARRAY ARRAY[0, 1, 4, 8] LOOP
		PERFORM set_config('gpujoin.loader_workers', n::text, false);
		EXECUTE 'CREATE TEMP TABLE gj_forced AS ' || query;
		IF EXISTS (SELECT * FROM gj_native EXCEPT ALL SELECT * FROM gj_forced) OR
		   EXISTS (SELECT * FROM gj_forced EXCEPT ALL SELECT * FROM gj_native) THEN
			result := concat(result, n, ' workers: DIFFERENT; ');
		END IF;
		DROP TABLE gj_forced;
		IF evict AND n < 4 THEN
			PERFORM gpujoin_cache_evict();
		END IF;
	END LOOP;
	result := coalesce(result, format('same, %s rows', (SELECT count(*) FROM gj_native)));
	DROP TABLE gj_native;
	SET gpujoin.loader_workers = 4;
	RETURN result;
END $$;

-- Loader workers planned and launched where nothing is resident, and why the plan fell back if it did.
CREATE FUNCTION gj_workers(query text) RETURNS text LANGUAGE sql AS $$
	SELECT gpujoin_cache_evict();
	SELECT concat('planned ', coalesce(node->>'Loader Workers Planned', 'none'),
				  ', launched ', coalesce(node->>'Loader Workers Launched', 'none'),
				  ', fell back: ' || gj_fallback_reason(node))
	FROM gj_node(query, 'ANALYZE') node
$$;

-- The same rows, and how much of each table, or of those that a source has, was resident; of the
-- relations whose names are like `names`.  Small tables are not kept: up to `unkept` pages that
-- are read may be theirs.
CREATE FUNCTION gj_resident(query text, names text DEFAULT '%', unkept int DEFAULT 0) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb := gj_explain(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
	answer text := gj_equal(query);
	pages text;
BEGIN
	SELECT string_agg(concat_ws(' ', name, (s->>'Tables') || ' tables',
			CASE WHEN (s->>'Resident Pages')::int = 0 THEN 'none'
				WHEN (s->>'Pages Read')::int <= unkept THEN 'all' ELSE 'part' END), ', ' ORDER BY name)
	INTO pages FROM jsonb_path_query(plan, '$.**."Sources"[*]') s,
		concat_ws(' ', s->>'Relation Name', nullif(s->>'Alias', s->>'Relation Name')) name
	WHERE s->>'Kind' = 'heap pages' AND name LIKE names;
	RETURN concat_ws(': ', pages, CASE WHEN answer NOT LIKE 'same, %' THEN answer END,
		'fell back: ' || (jsonb_path_query_first(plan, '$.**."Fallback"') #>> '{}'));
END $$;

-- The text of a plan, whatever the device.
CREATE FUNCTION gj_plan(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
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
