-- Few lookups in indexes of tables that are in memory: PostgreSQL charges for reads from a disk, so a
-- GpuJoin has to be cheaper than what is left without them; also where a query would be rewritten.
LOAD 'gpujoin';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET gpujoin.loader_workers = 0;
-- orders of a customer and of a day, and items of an order, are all over their tables
CREATE TABLE orders (id int, cust int, day int, price int) WITH (autovacuum_enabled = off, fillfactor = 40);
INSERT INTO orders SELECT i, i * 7919 % 2500, i * 31 % 2000, i % 1000 FROM generate_series(1, 25000) i;
CREATE TABLE items (ord int, price int) WITH (autovacuum_enabled = off);
INSERT INTO items SELECT i * 7919 % 25000, i % 1000 FROM generate_series(1, 100000) i;
CREATE TABLE short (id int, cust int, price int) WITH (autovacuum_enabled = off);
INSERT INTO short SELECT i, i * 7919 % 100, i FROM generate_series(1, 1000) i;
CREATE INDEX ON orders (cust);
CREATE INDEX ON orders (day);
CREATE INDEX ON items (ord);
CREATE INDEX ON short (cust);
VACUUM ANALYZE orders, items, short;
SELECT gpujoin_prewarm('orders') > 0 AS orders, gpujoin_prewarm('items') > 0 AS items, gpujoin_prewarm('short') > 0 AS short;

CREATE FUNCTION who(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN CASE WHEN plan->0->'Plan'->>'Custom Plan Provider' IS NOT NULL THEN 'GpuJoin'
		WHEN plan::text LIKE '%GpuJoin%' THEN 'GpuJoin in a part' ELSE 'PostgreSQL' END;
END $$;
SELECT who('SELECT count(*), sum(i.price) FROM orders o JOIN items i ON i.ord = o.id WHERE o.day < 4');
SELECT who('SELECT count(*), sum(i.price) FROM orders o JOIN items i ON i.ord = o.id WHERE o.day < 400');
-- the query as it is written looks into the index for each order; it is rewritten for many of them
SELECT who('SELECT sum(o.price) FROM orders o WHERE o.day < 4 AND o.price > (SELECT 1.2 * avg(p.price) FROM orders p WHERE p.cust = o.cust)');
SELECT who('SELECT sum(o.price) FROM orders o WHERE o.price > (SELECT 1.2 * avg(p.price) FROM orders p WHERE p.cust = o.cust)');
-- rewritten it costs PostgreSQL less than a device's start, which it is not compared with
SELECT who('SELECT sum(o.price) FROM short o WHERE o.price > (SELECT 1.2 * avg(p.price) FROM short p WHERE p.cust = o.cust)');
-- groups of groups: a program that reads another one's result starts sooner than the first
SELECT who('SELECT n, count(*) FROM (SELECT cust, count(*) AS n FROM orders GROUP BY cust) x GROUP BY n');
DROP FUNCTION who;
DROP TABLE orders, items, short;
