-- Many groups by integers that lie near to each other: a group is found by its place, not in a table.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;

-- keys as of TPC-H's orders: 8 of 32, and about four rows each
CREATE TABLE item WITH (autovacuum_enabled = off) AS
SELECT ((i / 4) / 8 * 32 + (i / 4) % 8 + 1)::bigint AS k, (i * 7919::bigint % 100003)::int AS other, i % 3000 AS a,
	   CASE WHEN i % 7 = 3 THEN NULL ELSE i % 7 END AS b, CASE WHEN i % 13 = 5 THEN NULL ELSE i / 5 END AS n,
	   (1 + i % 50)::numeric(12, 2) AS quantity, (i % 1000 * 37)::bigint AS price, ((i % 11) / 100.0)::numeric(12, 2) AS discount,
	   4611686018427387904 + i % 3 AS great, (1 + i % 9) * 1000000000000000000 AS huge, CASE WHEN i % 9 > 0 THEN i % 9 END AS maybe, i % 100 AS day, i % 8 / 4.0::float8 AS f
FROM generate_series(1, 360000) i;
VACUUM (ANALYZE, FREEZE) item;

CREATE FUNCTION tables(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(node ->> 'Group Table', ', ') FROM gj_nodes(query, 'ANALYZE, VERBOSE, COSTS OFF, TIMING OFF') node
$$;
-- the sums of a query's groups, by its numbers
CREATE FUNCTION sums(query text) RETURNS text LANGUAGE sql AS $$
	SELECT gj_same(format('SELECT count(*), sum(hashtext(x::text)::bigint) FROM (%s) x', query))
$$;

SELECT sums('SELECT k, sum(quantity) FROM item GROUP BY k');
SELECT tables('SELECT k, sum(quantity) FROM item GROUP BY k');
SELECT sums('SELECT k, sum(quantity) FROM item GROUP BY k') FROM generate_series(1, 2);
SELECT gj_same('SELECT k, sum(quantity) FROM item GROUP BY k HAVING sum(quantity) > 190') FROM generate_series(1, 2);
-- no order
SELECT sums('SELECT other, count(*), sum(price) FROM item GROUP BY other');
SELECT tables('SELECT other, count(*), sum(price) FROM item GROUP BY other');
-- NULL, a filter, sums of products, averages
SELECT sums('SELECT n, sum(quantity * (1 - discount)), avg(quantity), count(*), count(price) FROM item WHERE day < 40 GROUP BY n');
SELECT tables('SELECT n, sum(quantity * (1 - discount)), avg(quantity), count(*), count(price) FROM item WHERE day < 40 GROUP BY n');
-- several keys
SELECT sums('SELECT a, b, sum(quantity), sum(price) FROM item GROUP BY a, b');
SELECT tables('SELECT a, b, sum(quantity), sum(price) FROM item GROUP BY a, b');
SELECT sums('SELECT b, a, sum(quantity + price) FROM item WHERE day BETWEEN 3 AND 70 GROUP BY b, a');
-- sums of more than 64 bits
SELECT sums('SELECT k, sum(great), count(*) FROM item GROUP BY k');
SELECT gj_same('SELECT k, sum(great) FROM item WHERE k < 20 GROUP BY k');
SELECT sums('SELECT k, sum(huge), count(*) FROM item GROUP BY k');
-- what has no place, or no sum of integers; no aggregates; distinct values
SELECT sums('SELECT k, sum(maybe), count(maybe) FROM item GROUP BY k');
SELECT sums('SELECT k, min(price), max(quantity) FROM item GROUP BY k');
SELECT sums('SELECT k, sum(f) FROM item GROUP BY k');
SELECT sums('SELECT k + 1, sum(price) FROM item GROUP BY k + 1');
SELECT sums('SELECT k, a, b, n, sum(price) FROM item GROUP BY k, a, b, n');
SELECT sums('SELECT DISTINCT k FROM item');
SELECT sums('SELECT a, count(DISTINCT b), sum(DISTINCT b), sum(price) FROM item GROUP BY a');
-- an error of a value stays PostgreSQL's
SELECT gj_equal('SELECT k, sum(great * price) FROM item GROUP BY k');

-- order and limit, stages, devices, memory
SELECT gj_same('SELECT k, sum(quantity), sum(price) FROM item GROUP BY k ORDER BY 2 DESC, 3, 1 LIMIT 20');
SELECT gj_same('SELECT i.k, i.price, i.quantity FROM item i WHERE i.k IN (SELECT k FROM item GROUP BY k HAVING sum(quantity) > 193) ORDER BY 1, 2, 3 LIMIT 30');
SET gpujoin.devices_per_query = 2;
SELECT sums('SELECT k, sum(quantity), count(*) FROM item GROUP BY k');
RESET gpujoin.devices_per_query;
SET gpujoin.device_memory_limit = '16MB';
SELECT sums('SELECT k, sum(quantity), count(*) FROM item GROUP BY k');
RESET gpujoin.device_memory_limit;

-- rows that changed, with keys beyond the others', are loaded
UPDATE item SET k = k + 10000000, quantity = quantity + 1 WHERE k % 1000 = 1;
INSERT INTO item (k, n, quantity, price, great, day, a) SELECT -i, NULL, i, i, i, i, i FROM generate_series(1, 100) i;
SELECT sums('SELECT k, sum(quantity), count(*) FROM item GROUP BY k') FROM generate_series(1, 2);
SELECT sums('SELECT n, sum(quantity * (1 - discount)), count(*) FROM item WHERE day < 40 GROUP BY n');
VACUUM (FREEZE) item;
SELECT sums('SELECT k, sum(quantity), count(*) FROM item GROUP BY k') FROM generate_series(1, 2);
INSERT INTO item (k) VALUES (NULL), (9223372036854775807), (-9223372036854775808);
SELECT sums('SELECT k, sum(quantity), count(*) FROM item GROUP BY k') FROM generate_series(1, 2);
DROP TABLE item;
DROP FUNCTION tables, sums;
