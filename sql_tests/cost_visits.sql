-- A device is preferred to a plan of index lookups that visits cached pages again and again, which
-- PostgreSQL charges nothing for; and only where the index makes it jump between pages.
LOAD 'gpujoin';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpujoin.loader_workers = 0;
-- what PostgreSQL's plan reads costs next to nothing, and is worth a look
SET random_page_cost = 0.01; SET cpu_tuple_cost = 0.0001; SET cpu_index_tuple_cost = 0.0001; SET cpu_operator_cost = 0.0001;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_memoize = off;

CREATE TABLE few (k int, n int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO few SELECT i, 1 + i % 2, repeat('x', 300) FROM generate_series(1, 800) i;
-- rows of a key are all over the first table, and side by side in the second one
CREATE TABLE scattered (k int, v int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO scattered SELECT i % 800 + 1, i, repeat('y', 20) FROM generate_series(1, 120000) i;
CREATE TABLE side_by_side (k int, v int, pad text) WITH (autovacuum_enabled = off);
-- keys in no order: the correlation of the whole column is low in both
INSERT INTO side_by_side SELECT (i / 150 * 7919) % 800 + 1, i, repeat('y', 20) FROM generate_series(1, 120000) i;
CREATE INDEX ON scattered (k);
CREATE INDEX ON side_by_side (k);
VACUUM ANALYZE few, scattered, side_by_side;
SELECT tablename, abs(correlation) < 0.3 AS low FROM pg_stats WHERE tablename IN ('scattered', 'side_by_side') AND attname = 'k' ORDER BY 1;
SELECT gpujoin_cache_evict() >= 0 AS evicted;

-- who does a query when nothing is resident, and whether its cost is below PostgreSQL's
CREATE FUNCTION who(query text, OUT node text, OUT cheaper boolean) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	native json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	PERFORM set_config('gpujoin.enabled', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO native;
	PERFORM set_config('gpujoin.enabled', 'on', true);
	node := CASE WHEN plan::text LIKE '%GpuJoin%' THEN 'GpuJoin' ELSE 'PostgreSQL' END;
	cheaper := (plan->0->'Plan'->>'Total Cost')::float < (native->0->'Plan'->>'Total Cost')::float;
END $$;
SELECT who('SELECT count(*), sum(v) FROM few JOIN scattered USING (k)');
SELECT who('SELECT count(*), sum(v) FROM few JOIN side_by_side USING (k)');
SELECT who('SELECT v % 10, count(*) FROM few JOIN scattered USING (k) GROUP BY 1');
SELECT who('SELECT few.k, v FROM few JOIN scattered USING (k)');
-- the first rows are another matter
SELECT who('SELECT few.k, v FROM few JOIN scattered USING (k) LIMIT 10');
-- PostgreSQL would keep what it has found
SET enable_memoize = on;
SELECT who('SELECT count(*), sum(v) FROM few JOIN scattered ON few.n = scattered.k');
SET enable_memoize = off;
-- no more is read than keys: the table is not visited
SELECT who('SELECT count(*) FROM few JOIN scattered USING (k)');
-- a frequent key: pairs of a semi join that are checked cost something
CREATE TABLE hot AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 1 ELSE i END AS k FROM generate_series(1, 60000) i;
ANALYZE hot;
CREATE FUNCTION cost(query text, OUT cost float) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	cost := CASE WHEN plan::text LIKE '%GpuJoin%' THEN (plan->0->'Plan'->>'Total Cost')::float END;
END $$;
SET gpujoin.force = on;
SET gpujoin.algorithm = hash;
SELECT cost('SELECT count(*) FROM hot a WHERE EXISTS (SELECT FROM hot b WHERE a.k = b.k AND a.id <> b.id)') >
	1.5 * cost('SELECT count(*) FROM hot a WHERE EXISTS (SELECT FROM hot b WHERE a.k = b.k)') AS more;
RESET gpujoin.force;
RESET gpujoin.algorithm;
DROP TABLE hot;
DROP FUNCTION cost;
DROP TABLE few, scattered, side_by_side;
DROP FUNCTION who;
