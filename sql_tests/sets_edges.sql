-- Set operations at their edges: shapes of arrays, thresholds on the border, many pairs, what queries may do, memory.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on

-- dimensions and lower bounds do not matter
SELECT gpu_union('{{1,2},{2,3}}'::int[], '[5:6]={9,3}'), gpu_intersect('[0:2]={1,2,3}'::int2[], '{{3},{1}}'::int2[]), gpu_except('[-2:-1]={7,8}'::bigint[], '{{{8}}}'::bigint[]);
SELECT array_lower(gpu_except('[0:1]={7,8}'::int[], '{8}'), 1), array_ndims(gpu_set_normalize('{{1,2},{2,3}}'::int[]));
SELECT * FROM gpu_set_join_items('VALUES (1, ''{{1,2},{2,3}}''::int[]), (2, ''[5:6]={3,1}'')');
SELECT gpu_union('{{1,NULL}}'::int[], '{1}');
-- ids and elements at the ends of their types
SELECT * FROM gpu_set_join_items('VALUES (9223372036854775807, ''{9223372036854775807,-9223372036854775808}''::bigint[]), (-9223372036854775808, ''{-9223372036854775808,0}'')');
SELECT * FROM gpu_set_join_items('VALUES (1, ''{-32768,32767}''::int2[])', 'VALUES (1, ''{32767,-32768,0}''::bigint[])');

-- what queries may do: no parameters, one statement, errors of their own, other set joins, functions that write
SELECT * FROM gpu_set_join('SELECT $1, ARRAY[1]');
SELECT * FROM gpu_set_join('');
SELECT * FROM gpu_set_join('SELECT 1 / (2 - i), ARRAY[1] FROM generate_series(1, 3) i');
SELECT * FROM gpu_set_join('SELECT left_id, array_agg(right_id) FROM gpu_set_join(''SELECT i, ARRAY[i, i + 1, i + 2] FROM generate_series(1, 5) i'') GROUP BY 1');
CREATE TABLE sets_log (i int);
SELECT * FROM gpu_set_join('WITH x AS (DELETE FROM sets_log RETURNING 1) SELECT 1, ARRAY[1] FROM x');
CREATE FUNCTION sets_note(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO sets_log VALUES (i); RETURN i; END';
CREATE TABLE sets_big AS SELECT i FROM generate_series(1, 20000) i;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET gpujoin.enabled = off;
SELECT count(*) FROM sets_big JOIN gpu_set_join('SELECT sets_note(i), ARRAY[7] FROM generate_series(1, 5) i') j ON j.left_id = sets_big.i;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET gpujoin.enabled;
SELECT count(*) FROM sets_log;
-- a failure leaves nothing behind
BEGIN;
SAVEPOINT s;
SELECT count(*) FROM gpu_set_join('SELECT i, CASE WHEN i = 2500 THEN ''{1,NULL}'' ELSE ARRAY[i] END FROM generate_series(1, 3000) i');
ROLLBACK TO s;
SELECT count(*) FROM pg_cursors;
SELECT count(*) FROM gpu_set_join('SELECT i, ARRAY[i / 2] FROM generate_series(1, 3000) i');
COMMIT;
-- through a portal, some rows at a time, and left early
BEGIN;
DECLARE c CURSOR FOR SELECT (gpu_set_join('SELECT i, ARRAY[1, i % 2 + 2] FROM generate_series(1, 2000) i', threshold => 2)).common;
FETCH 2 FROM c;
MOVE 100000 IN c;
FETCH 1 FROM c;
CLOSE c;
COMMIT;

-- thresholds that are exactly the similarity of some pairs: what the functions on two arrays say
CREATE TABLE sets_t AS SELECT i AS id, array(SELECT DISTINCT (x * x * i) % 37 FROM generate_series(1, 2 + i % 11) x) AS s FROM generate_series(1, 45) i;
CREATE TABLE sets_values (p text, t float8, n bigint, i int);
DO $$
DECLARE
	p text;
BEGIN
	FOREACH p IN ARRAY '{jaccard,cosine,dice,overlap_coefficient,containment}'::text[] LOOP
		EXECUTE format('WITH v AS (SELECT gpu_%1$s(a.s, b.s) AS v FROM sets_t a JOIN sets_t b ON a.id < b.id), t AS (SELECT DISTINCT v AS t FROM v UNION SELECT 1.0000000000000002)
			INSERT INTO sets_values SELECT %1$L, t, (SELECT count(*) FROM v WHERE v >= t), row_number() OVER (ORDER BY t) FROM t', p);
	END LOOP;
END $$;
SELECT count(*) > 100 FROM sets_values;
-- `part`: one of so many of them
CREATE FUNCTION sets_borders(part int) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce('DIFFERENT: ' || string_agg(p || ' ' || t, ', ' ORDER BY p, t), 'same') FROM sets_values v
	WHERE i % part = 0 AND n <> (SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_t', NULL, v.p, v.t))
$$;
-- pairs in more than one row of tiles, and the best k, however many, of more right sets than a tile has
CREATE TABLE sets_m AS SELECT i AS id, ARRAY[i % 5, 10 + i % 7, 100 + i / 2] AS s FROM generate_series(1, 2500) i;
CREATE FUNCTION sets_many() RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', count(*), sum(common), min(right_id - left_id), sum(left_id * 31 % 1009 * (right_id * 17 % 1013))) FROM gpu_set_join('TABLE sets_m', NULL, 'overlap', 2)
$$;
CREATE TABLE sets_ranked AS SELECT a.id::bigint, i::bigint, (row_number() OVER (PARTITION BY a.id ORDER BY c DESC, i))::int AS rank, c::float8
	FROM sets_m a, generate_series(1, 9000) i, LATERAL (SELECT (a.id % 5 = i % 5)::int + (a.id % 7 = i % 7)::int + (a.id / 2 = i / 2)::int AS c) c WHERE a.id <= 3 AND c > 0;
CREATE FUNCTION sets_best(k int) RETURNS text LANGUAGE sql AS $$
	WITH gpu AS (SELECT * FROM gpu_set_topk('SELECT id, s FROM sets_m WHERE id <= 3', 'SELECT i, ARRAY[i % 5, 10 + i % 7, 100 + i / 2] FROM generate_series(1, 9000) i', k, 'overlap')),
		plain AS (SELECT * FROM sets_ranked WHERE rank <= k)
	SELECT (SELECT count(*) FROM gpu) || CASE WHEN EXISTS (TABLE gpu EXCEPT ALL TABLE plain) OR EXISTS (TABLE plain EXCEPT ALL TABLE gpu) THEN ' DIFFERENT' ELSE ' same' END
$$;
SELECT concat_ws(' ', count(*), sum(c), min(r - l), sum(l * 31 % 1009 * (r * 17 % 1013)))
FROM (SELECT a.id AS l, b.id AS r, (a.id % 5 = b.id % 5)::int + (a.id % 7 = b.id % 7)::int + (a.id / 2 = b.id / 2)::int AS c FROM sets_m a JOIN sets_m b ON a.id < b.id) x WHERE c >= 2;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT sets_borders(1), sets_many(), sets_best(2), sets_best(1500), sets_best(2147483647);
SET gpujoin.set_device_min_elements = 0;
SELECT a, set_config('gpujoin.set_algorithm', a, false), sets_borders(CASE a WHEN 'auto' THEN 1 ELSE 5 END), sets_many(), sets_best(2), sets_best(1500), sets_best(2147483647)
FROM unnest('{auto,merge_path,hash,inverted_index,matrix}'::text[]) a;
-- where a table or a bitmap of 32 MB has no room, the device merges the arrays
CREATE FUNCTION sets_agree(a text) RETURNS bool LANGUAGE sql AS $$
	SELECT set_config('gpujoin.set_algorithm', a, false) IS NOT NULL AND gpu_intersect_count(array_agg(i * 3), array_agg(i * 2)) = 333333 FROM generate_series(1, 1000000) i
$$;
SET gpujoin.device_memory_limit = '20MB';
CREATE TEMPORARY TABLE stat_before AS SELECT * FROM gpujoin_stat;
SELECT a, sets_agree(a) FROM unnest('{hash,bitmap}'::text[]) a;
SELECT outcome, s.count - coalesce(b.count, 0) FROM gpujoin_stat s LEFT JOIN stat_before b USING (datid, outcome) WHERE s.count <> coalesce(b.count, 0);
DROP TABLE stat_before;
RESET gpujoin.device_memory_limit;
RESET gpujoin.set_algorithm; RESET gpujoin.set_device_min_elements;

-- what one query calls changes what the other one reads
CREATE SCHEMA sets_other;
CREATE TABLE sets_changed AS SELECT 1 AS id, ARRAY[1, 2, 3] AS s;
CREATE TABLE sets_other.sets_changed AS SELECT 1 AS id, ARRAY[1, 2, 3]::bigint[] AS s;
CREATE TABLE sets_other.sets_texts AS SELECT 'a' AS id, 'b' AS s;
CREATE FUNCTION sets_switch() RETURNS bool LANGUAGE sql AS $$ SELECT set_config('search_path', 'sets_other, public', false) IS NOT NULL $$;
SELECT * FROM gpu_set_join('SELECT 1, ARRAY[1, 2, 3]', 'SELECT * FROM sets_changed');
SELECT * FROM gpu_set_join('SELECT 1, ARRAY[1, 2, 3] WHERE sets_switch()', 'SELECT * FROM sets_changed');
CREATE TABLE sets_texts AS TABLE sets_changed;
SELECT * FROM gpu_set_join('SELECT 1, ARRAY[1, 2, 3] WHERE sets_switch()', 'SELECT * FROM sets_texts');
DROP FUNCTION sets_switch;
DROP TABLE sets_changed, sets_texts, sets_other.sets_changed, sets_other.sets_texts;
DROP SCHEMA sets_other;

-- gpu_union_agg keeps distinct elements, not all that came
SELECT x, (SELECT max(total_bytes) < 100000 FROM pg_backend_memory_contexts WHERE name LIKE 'WindowAgg%' AND i > 0)
FROM (SELECT i, gpu_union_agg(ARRAY[1, i % 3, 7, 7, i % 2, 1, 9, 9]) OVER (ORDER BY i) AS x FROM generate_series(1, 100000) i) v WHERE i = 100000;
DROP FUNCTION sets_note, sets_borders, sets_many, sets_best, sets_agree;
DROP TABLE sets_log, sets_big, sets_t, sets_m, sets_values, sets_ranked;
