-- EXPLAIN: the node, its properties, its numbers, in every format.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, k2 int, v int, t text);
INSERT INTO f SELECT i, i % 50, i % 10, i % 100, 't' || i FROM generate_series(1, 3000) i;
CREATE TABLE g (k int, c int, name text);
INSERT INTO g SELECT i, i % 7, 'g' || i FROM generate_series(0, 29) i;
CREATE TABLE h (k int, name text);
INSERT INTO h SELECT i, 'h' || i FROM generate_series(0, 9) i;
VACUUM ANALYZE f, g, h;

-- what its text says somewhere in it, properties of groups included
-- what the text of EXPLAIN says somewhere in it, properties of groups included
CREATE FUNCTION explains(query text, options text, VARIADIC words text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	said text := '';
	missing text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		said := said || line || E'\n';
	END LOOP;
	SELECT string_agg(w, ', ') INTO missing FROM unnest(words) w WHERE said !~* w;
	RETURN coalesce('missing: ' || missing || E'\n' || said, 'says all');
END $$;

\set join 'SELECT f.id, g.name, h.name FROM f JOIN g ON f.k = g.k JOIN h ON f.k2 = h.k WHERE f.v > 10 AND g.c < 5'
\set sums 'SELECT count(*), sum(f.v + g.c) FROM f JOIN g ON f.k = g.k WHERE f.v > 10'

-- one node for the tree; the aggregate is in it
SELECT gj_node(:'join')->>'Node Type', gj_node(:'sums')->>'Node Type';
SELECT gj_how(:'join'), gj_how(:'sums');
SELECT gj_how(:'join', false), gj_how(:'sums', false);

-- the text: node, device, algorithm, join conditions, sources, filters, the fallback plan
SELECT explains(:'join', 'COSTS OFF', 'Custom Scan \(GpuJoin\)', 'device', 'hash', 'f\.k = g\.k|g\.k = f\.k', 'f\.k2 = h\.k|h\.k = f\.k2', 'heap', 'v > 10', 'c < 5', 'fallback');
SELECT explains(:'sums', 'COSTS OFF', 'Custom Scan \(GpuJoin\)', 'device', 'hash', 'f\.k = g\.k|g\.k = f\.k', 'heap', 'v > 10', 'count\(\*\)|aggregate');
SELECT explains('SELECT f.id FROM f JOIN (SELECT k, count(*) FROM g GROUP BY k) x USING (k)', 'COSTS OFF', 'GpuJoin', 'plan', 'HashAggregate|GroupAggregate');
SELECT explains('SELECT f.id FROM f JOIN g USING (k) WHERE f.t LIKE ''%1'' AND f.v > 3', 'COSTS OFF', 'GpuJoin', '~~ ''%1''', 'v > 3');
-- the algorithm of each step, the conditions and the sources are properties of the node itself
SELECT (gj_node(:'join') - 'Plans')::text ~* 'hash', (gj_node(:'join') - 'Plans')::text ~ 'k2', (gj_node(:'join') - 'Plans')::text ~* 'heap';
-- ANALYZE: rows of every step, pages and bytes, milliseconds of every phase
SELECT explains(:'join', 'ANALYZE, COSTS OFF', 'rows', 'pages', 'bytes', 'load', 'transfer', 'build', 'probe', 'return');
SELECT explains(:'sums', 'ANALYZE, COSTS OFF', 'rows', 'pages', 'bytes', 'load', 'transfer', 'build', 'probe', 'aggregate');
SELECT explains(:'sums', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF', 'GpuJoin', 'rows');
SELECT (gj_node(:'join', 'ANALYZE')->>'Actual Rows')::numeric = (SELECT count(*) FROM f JOIN g ON f.k = g.k JOIN h ON f.k2 = h.k WHERE f.v > 10 AND g.c < 5);
SELECT (gj_node(:'sums', 'ANALYZE')->>'Actual Rows')::numeric::int;
SELECT gj_node(:'sums') IS NOT NULL, gj_node(:'sums', 'VERBOSE') IS NOT NULL, gj_node(:'sums', 'VERBOSE, ANALYZE, BUFFERS, WAL, SETTINGS') IS NOT NULL;

-- numbers are numbers in JSON: none of a property's values is a string of digits, with or without a unit
SELECT key, value FROM jsonb_each(gj_node(:'join', 'ANALYZE')) WHERE jsonb_typeof(value) = 'string' AND value #>> '{}' ~* '^[0-9.]+ *(ms|s|kB|MB|GB|rows|pages|bytes)?$';

-- the other formats parse
DO $$
DECLARE
	x text;
	q text := 'SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE f.v > 10';
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT XML) ' || q INTO x;
	PERFORM xmlparse(document x);
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT YAML) ' || q INTO x;
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) ' || q INTO x;
	PERFORM x::jsonb;
	FOR x IN EXECUTE 'EXPLAIN (VERBOSE) ' || q LOOP NULL; END LOOP;
EXCEPTION WHEN feature_not_supported THEN
	NULL;							-- a server without libxml
END $$;
-- of other statements, and inside other plans
SELECT explains('INSERT INTO h SELECT g.k, g.name FROM f JOIN g ON f.k = g.k', 'VERBOSE, COSTS OFF', 'GpuJoin');
SELECT explains('CREATE TABLE x AS SELECT g.k, g.name FROM f JOIN g ON f.k = g.k', 'VERBOSE, COSTS OFF', 'GpuJoin');
SELECT explains('SELECT (SELECT count(*) FROM f JOIN g USING (k)), k FROM h', 'VERBOSE, COSTS OFF', 'GpuJoin');
SELECT explains('WITH x AS MATERIALIZED (SELECT f.id FROM f JOIN g USING (k)) SELECT * FROM x', 'VERBOSE, COSTS OFF', 'GpuJoin');
SELECT explains('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k ORDER BY f.v LIMIT 1', 'VERBOSE, COSTS OFF', 'GpuJoin', 'Sort Key');

-- settings: no plan without them
SET gpujoin.enabled = off;
SELECT gj_how(:'join', false);
SET gpujoin.enabled = on;
SET gpujoin.device = off;
SELECT gj_how(:'join', false);
RESET gpujoin.device;
SELECT gj_how(:'join', false);
-- cost: a join of a thousand rows never goes to the device by itself
RESET gpujoin.force;
SELECT gj_how(:'join', false);
SELECT gj_how('SELECT count(*) FROM g JOIN h USING (k)', false);
SET gpujoin.force = on;
-- the device's estimate of rows is PostgreSQL's own
SELECT (gj_node('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k', 'COSTS ON')->>'Plan Rows')::float8 BETWEEN 1000 AND 3600;
SELECT gj_node(:'sums', 'COSTS ON')->>'Plan Rows';

DROP TABLE f, g, h;
DROP FUNCTION explains;
