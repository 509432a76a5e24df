-- Pages that are in memory cost less to load; and a GpuJoin of a rewritten query has to be cheaper than
-- the query as it is written.
LOAD 'gpujoin';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpujoin.loader_workers = 0;

CREATE TABLE cached (k int, v int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO cached SELECT i % 300, i, repeat('x', 60) FROM generate_series(1, 15000) i;
CREATE TABLE short (k int, v int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO short SELECT i % 300, i, repeat('x', 60) FROM generate_series(1, 6000) i;
CREATE INDEX ON cached (k);
CREATE TABLE tags (k int PRIMARY KEY, tag int) WITH (autovacuum_enabled = off);
INSERT INTO tags SELECT i, i % 60 FROM generate_series(0, 299) i;
VACUUM ANALYZE cached, short, tags;
SELECT relname, relpages BETWEEN 1024 AND 4096 AS large FROM pg_class WHERE relname IN ('cached', 'short') ORDER BY 1;
SELECT gpujoin_cache_evict() >= 0 AS evicted;

-- who does a query when nothing is resident, and its cost
CREATE FUNCTION who(query text, OUT node text, OUT cost float) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	node := coalesce(plan->0->'Plan'->>'Custom Plan Provider', plan->0->'Plan'->>'Node Type');
	cost := plan->0->'Plan'->>'Total Cost';
END $$;
-- PostgreSQL's plan is dear, so that all are a GpuJoin
SET cpu_operator_cost = 1;
-- the start of a device, and a part of a page each, however many there are
SELECT node, cost - 300 < 0.5 * relpages AS cheap FROM who('SELECT k, sum(v) FROM cached GROUP BY k'), pg_class WHERE relname = 'cached';
SELECT node, cost - 300 < 0.5 * relpages AS cheap FROM who('SELECT k, sum(v) FROM short GROUP BY k'), pg_class WHERE relname = 'short';
RESET cpu_operator_cost;
-- index lookups are cheaper than the second load, in the rewritten query that PostgreSQL would not make
SELECT node FROM who('SELECT sum(c.v) FROM cached c JOIN tags t USING (k) WHERE t.tag = 7 AND c.v < (SELECT 0.2 * avg(v) FROM cached d WHERE d.k = t.k)');
SET gpujoin.unnest = off;
SELECT node FROM who('SELECT sum(c.v) FROM cached c JOIN tags t USING (k) WHERE t.tag = 7 AND c.v < (SELECT 0.2 * avg(v) FROM cached d WHERE d.k = t.k)');
RESET gpujoin.unnest;
DROP FUNCTION who;
DROP TABLE cached, short, tags;
