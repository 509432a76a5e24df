-- Families that do not fit the device's memory: joined in blocks of sets, with the pairs that the process finds.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.set_device_min_elements = 0;
CREATE TABLE sets_blocks_a AS
	SELECT i AS id, ARRAY(SELECT DISTINCT (i * 7919 + j * j * 31 + (i % 13) * j * 1009) % 1500 FROM generate_series(1, i % 40) j) AS s
	FROM generate_series(1, 2000) i;
CREATE TABLE sets_blocks_b AS
	SELECT i AS id, ARRAY(SELECT DISTINCT (i * 104729 + j * j * 37 + (i % 11) * j * 1013) % 1500 FROM generate_series(1, i % 35) j) AS s
	FROM generate_series(1, 1000) i;
-- equal ids, which are no pair of a family with itself
INSERT INTO sets_blocks_a SELECT id, s FROM sets_blocks_a WHERE id % 500 = 7;
-- one set that is larger than others together
INSERT INTO sets_blocks_b SELECT 2000, array_agg(i % 90000) FROM generate_series(1, 90000) i;
CREATE VIEW sets_blocks_pairs AS
	SELECT 'jaccard' AS what, j.* FROM gpu_set_join('SELECT id, s FROM sets_blocks_a', NULL, 'jaccard', 0.12) j
	UNION ALL SELECT 'equals', j.* FROM gpu_set_join('SELECT id, s FROM sets_blocks_a', NULL, 'equals', 0) j
	UNION ALL SELECT 'overlap', j.* FROM gpu_set_join('SELECT id, s FROM sets_blocks_a', 'SELECT id, s FROM sets_blocks_b', 'overlap', 3) j
	UNION ALL SELECT 'contained', j.* FROM gpu_set_join('SELECT id, s FROM sets_blocks_b', 'SELECT id, s FROM sets_blocks_a', 'contained', 0) j
	UNION ALL SELECT 'items ' || items::text, left_id, right_id, common, similarity
		FROM gpu_set_join_items('SELECT id, s FROM sets_blocks_b WHERE id < 300', 'SELECT id, s FROM sets_blocks_a', 'cosine', 0.2)
	UNION ALL SELECT 'best', left_id, right_id, rank, score FROM gpu_set_topk('SELECT id, s FROM sets_blocks_a', NULL, 3, 'jaccard')
	UNION ALL SELECT 'best of two', left_id, right_id, rank, score FROM gpu_set_topk('SELECT id, s FROM sets_blocks_a', 'SELECT id, s FROM sets_blocks_b', 2, 'overlap')
	UNION ALL SELECT 'set ' || set::text, 0, 0, frequency, 0 FROM gpu_intersect_family('SELECT id, s FROM sets_blocks_b WHERE id < 200', 'SELECT id, s FROM sets_blocks_a');

SELECT current_setting('gpujoin.device') AS device \gset
SET gpujoin.device = off;
CREATE TABLE sets_blocks_right AS SELECT regexp_replace(what, ' {.*', '') AS what, count(*) AS n, md5(string_agg(p::text, ' ' ORDER BY p)) AS pairs FROM sets_blocks_pairs p GROUP BY 1;
SET gpujoin.device = :'device';

CREATE FUNCTION sets_blocks(what text, megabytes text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('gpujoin.device_memory_limit', megabytes, true);
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) SELECT * FROM ' || what INTO plan;
	plan := plan->0->'Plan';
	RETURN CASE WHEN (plan->>'Blocks')::int > 1 THEN 'blocks' ELSE 'one block' END ||
		CASE WHEN plan->>'Device' ~ 'none' THEN ', in the process: ' || (plan->>'Fallback') ELSE ' on the device' END;
END $$;
-- all at once, in blocks, and where not even blocks fit
SELECT mb, sets_blocks($q$gpu_set_join('SELECT id, s FROM sets_blocks_a', 'SELECT id, s FROM sets_blocks_b WHERE id < 2000', 'jaccard', 0.12)$q$, mb),
	sets_blocks($q$gpu_set_topk('SELECT id, s FROM sets_blocks_a', NULL, 3, 'jaccard')$q$, mb)
	FROM unnest(ARRAY['64MB', '22MB', '4MB']) mb;
-- a set that fits no block
SELECT sets_blocks($q$gpu_set_join('SELECT id, s FROM sets_blocks_b', NULL, 'overlap', 5)$q$, '20MB');

\set check 'SELECT string_agg(what, \', \' ORDER BY what) FROM (SELECT regexp_replace(what, \' {.*\', \'\') AS what, count(*) AS n, md5(string_agg(p::text, \' \' ORDER BY p)) AS pairs FROM sets_blocks_pairs p GROUP BY 1 INTERSECT SELECT * FROM sets_blocks_right) x'
SELECT what, n > 0 FROM sets_blocks_right ORDER BY what;
SET gpujoin.device_memory_limit = '64MB';
:check;
SET gpujoin.device_memory_limit = '22MB';
:check;
SET gpujoin.device_memory_limit = '4MB';
:check;

-- failures: before a pair was returned the process does it
SET gpujoin.device_memory_limit = '22MB';
SET gpujoin.fail_at = 'memory';
:check;
SET gpujoin.fail_at = 'build';
:check;
RESET gpujoin.fail_at;
-- stopped early
SELECT count(*) FROM (SELECT FROM gpu_set_join('SELECT id, s FROM sets_blocks_a', NULL, 'overlap', 1) LIMIT 10) x;
DROP VIEW sets_blocks_pairs;
DROP TABLE sets_blocks_a, sets_blocks_b, sets_blocks_right;
DROP FUNCTION sets_blocks;
