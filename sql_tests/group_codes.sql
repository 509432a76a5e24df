-- Groups by a text of many values: the second query of resident rows keeps a code for each row, and
-- later ones find groups by these.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;

-- 75 000 values: too many for a dictionary of a fragment
CREATE TABLE visit WITH (autovacuum_enabled = off) AS
SELECT CASE WHEN i % 1000 <> 7 THEN repeat('/', i % 3) || 'page ' || (i * 7919::bigint % 75000) END AS url, i % 100 AS day,
	   'page ' || i % 80000 AS page, ('page ' || i % 70000)::char(12) AS padded, i % 5 AS few,
	   (i % 1000 / 100.0)::numeric(8, 2) AS price, (1 + i % 9) * 1000000000000000000 AS huge, i % 8 / 4.0::float8 AS f
FROM generate_series(1, 320000) i;
VACUUM (ANALYZE, FREEZE) visit;

-- true if groups are found by codes, or not, as is expected where a small query has one device with room
CREATE FUNCTION by_codes(query text, expected boolean) RETURNS boolean LANGUAGE sql AS $$
	SELECT bool_or(node ->> 'Group Table' IS NOT NULL) =
		(expected AND current_setting('gpujoin.device_memory_limit') = '0' AND current_setting('gpujoin.cpu_devices') = '1' AND current_setting('gpujoin.gpu_devices') = '1')
	FROM gj_nodes(query, 'ANALYZE, VERBOSE, COSTS OFF, TIMING OFF') node
$$;
-- the sums of a query's groups, by its texts and numbers
CREATE FUNCTION sums(query text) RETURNS text LANGUAGE sql AS $$
	SELECT gj_same(format('SELECT count(*), sum(hashtext(x::text)::bigint) FROM (%s) x', query))
$$;

SELECT gpujoin_prewarm('visit') > 0;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url ORDER BY url, 2 LIMIT 100000');
SELECT by_codes('SELECT url, count(*), sum(price) FROM visit GROUP BY url ORDER BY 2 LIMIT 10', false);
SELECT by_codes('SELECT url, count(*), sum(price) FROM visit GROUP BY url ORDER BY 2 LIMIT 10', true) FROM generate_series(1, 2);
-- other aggregates, filters, orders
SELECT sums('SELECT url, count(*), sum(price), avg(few) FROM visit GROUP BY url') FROM generate_series(1, 2);
SELECT gj_same('SELECT url, sum(price), count(*) FROM visit GROUP BY url ORDER BY 2 DESC, 1 LIMIT 20');
SELECT gj_same('SELECT url, sum(price), count(*) FROM visit GROUP BY url HAVING count(*) > 4 AND sum(price) > 35 ORDER BY 2 DESC, 1');
SELECT sums('SELECT url, count(*), sum(price) FROM visit WHERE day = 17 GROUP BY url');
SELECT by_codes('SELECT url, count(*), sum(price) FROM visit WHERE day = 17 GROUP BY url ORDER BY 2, 3 LIMIT 10', true);
SELECT sums('SELECT url, sum(price * few), min(price), max(day) FROM visit WHERE day BETWEEN 10 AND 60 AND few <> 3 GROUP BY url');
SELECT gj_same('SELECT url, count(*) FROM visit WHERE day = 200 GROUP BY url');
SELECT gj_same('SELECT url, count(*), sum(price) FROM visit WHERE day = 7 GROUP BY url ORDER BY 2 DESC, 1 NULLS FIRST LIMIT 3');
-- of the first groups alone the texts are looked up
SELECT gj_same('SELECT url, count(*), sum(price) FROM visit GROUP BY url ORDER BY 2, 3 DESC, 1 NULLS FIRST LIMIT 12');
SELECT gj_same('SELECT url, count(*) FROM visit GROUP BY url ORDER BY 2 DESC FETCH FIRST 2 ROWS WITH TIES');
SELECT gj_same('SELECT url, sum(price) FROM visit GROUP BY url ORDER BY url IS NULL DESC, 2 DESC, 1 LIMIT 5');
SELECT gj_same('SELECT url, avg(price) FROM visit WHERE day < 50 GROUP BY url ORDER BY 2 DESC, count(*), 1 LIMIT 7 OFFSET 3');
SELECT gj_same('SELECT url, count(*) FROM visit GROUP BY url HAVING sum(few) > 9 ORDER BY 2 DESC, 1 LIMIT 4');
SELECT sums('SELECT url, sum(price) FROM visit GROUP BY url ORDER BY 2 DESC, 1 LIMIT 74000');
SELECT gj_same('SELECT x.url, x.n, v.page FROM (SELECT url, count(*) n FROM visit GROUP BY url ORDER BY 2 DESC, 1 LIMIT 3) x LEFT JOIN visit v ON v.url = x.url AND v.few = 7 ORDER BY 1');
SELECT sums('SELECT DISTINCT url FROM visit');
SELECT sums('SELECT url, sum(huge) FROM visit GROUP BY url');
SELECT gj_same('SELECT n, count(*) FROM (SELECT url, count(*) n FROM visit GROUP BY url) x GROUP BY n ORDER BY n');
SELECT gj_same('SELECT count(*) FROM visit WHERE url IN (SELECT url FROM visit GROUP BY url HAVING count(*) > 5)');
-- where the text is read, or there are no sums of integers, groups are looked up
SELECT by_codes('SELECT url, count(*) FROM visit WHERE url LIKE ''%77%'' GROUP BY url ORDER BY 2 LIMIT 10', false);
SELECT sums('SELECT url, count(*), sum(price) FROM visit WHERE url LIKE ''%77%'' GROUP BY url');
SELECT sums('SELECT url, sum(f), count(DISTINCT few) FROM visit GROUP BY url');
SELECT sums('SELECT url, few, count(*) FROM visit GROUP BY url, few');
-- other columns have codes of their own; equal texts that are not the same have none
SELECT by_codes('SELECT page, count(*) FROM visit GROUP BY page ORDER BY 2 LIMIT 10', n = 3) FROM generate_series(1, 3) n;
SELECT sums('SELECT page, count(*), sum(price) FROM visit GROUP BY page');
SELECT by_codes('SELECT padded, count(*) FROM visit GROUP BY padded ORDER BY 2 LIMIT 10', false) FROM generate_series(1, 3);
SELECT sums('SELECT padded, count(*), sum(price) FROM visit GROUP BY padded');

-- an eviction takes the codes along
SELECT gpujoin_cache_evict('visit') > 0, gpujoin_prewarm('visit') > 0;
SELECT by_codes('SELECT url, count(*) FROM visit GROUP BY url ORDER BY 2 LIMIT 10', n = 3) FROM generate_series(1, 3) n;

-- less memory; two devices
SET gpujoin.device_memory_limit = '16MB';
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url') FROM generate_series(1, 2);
RESET gpujoin.device_memory_limit;
SET gpujoin.devices_per_query = 2;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url') FROM generate_series(1, 2);
RESET gpujoin.devices_per_query;

-- changed rows are loaded, and those of their pages; the codes of others are used
UPDATE visit SET url = 'new ' || day, price = price + 1 WHERE few = 1 AND day < 5;
INSERT INTO visit (url, day, few, price) SELECT 'page ' || i, i % 100, i % 5, 1 FROM generate_series(74900, 75100) i;
DELETE FROM visit WHERE page = 'page 77';
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url') FROM generate_series(1, 2);
SELECT sums('SELECT url, count(*), sum(price) FROM visit WHERE day < 10 GROUP BY url');
SELECT gj_same('SELECT url, count(*), sum(price) FROM visit GROUP BY url ORDER BY 2 DESC, 3 DESC, 1 LIMIT 9');
BEGIN;
DELETE FROM visit WHERE day = 3;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url');
ROLLBACK;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url');
VACUUM (FREEZE) visit;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url') FROM generate_series(1, 4);
TRUNCATE visit;
SELECT sums('SELECT url, count(*), sum(price) FROM visit GROUP BY url');
DROP TABLE visit;
DROP FUNCTION by_codes, sums;
