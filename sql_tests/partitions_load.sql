-- Sources of several tables: loaded by several processes, and resident table by table.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET gpujoin.force = on;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers = 8;
CREATE TABLE lp (id int, k int, v int, t text) PARTITION BY RANGE (id);
CREATE TABLE lp_1 PARTITION OF lp FOR VALUES FROM (1) TO (20001) WITH (autovacuum_enabled = off);
CREATE TABLE lp_2 (t text, gone int8, v int, id int, k int) WITH (autovacuum_enabled = off);
ALTER TABLE lp_2 DROP gone;
ALTER TABLE lp ATTACH PARTITION lp_2 FOR VALUES FROM (20001) TO (40001);
CREATE TABLE lp_3 PARTITION OF lp FOR VALUES FROM (40001) TO (40011) WITH (autovacuum_enabled = off);
CREATE TABLE lp_4 PARTITION OF lp DEFAULT WITH (autovacuum_enabled = off);
INSERT INTO lp SELECT i, i % 50, nullif(i % 1000, 3), 'text ' || i FROM generate_series(1, 60000) i;
CREATE TABLE ld (k int, c int, name text);
INSERT INTO ld SELECT i, i * 2, 'd' || i FROM generate_series(0, 44) i;
CREATE TEMP TABLE lt (k int, v int, id int);
INSERT INTO lt SELECT i % 50, i, -i FROM generate_series(1, 10000) i;
VACUUM ANALYZE lp, lp_1, lp_2, lp_3, lp_4, ld, lt;
SELECT gpujoin_cache_evict() >= 0 AS evicted;

-- Compares with PostgreSQL; in tables, because cursors do not use workers.
CREATE FUNCTION lp_same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int;
	result text;
BEGIN
	SET LOCAL gpujoin.enabled = off;
	EXECUTE 'CREATE TEMP TABLE lp_native AS ' || query;
	SET LOCAL gpujoin.enabled = on;
	FOREACH n IN ARRAY ARRAY[0, 1, 4, 8] LOOP
		PERFORM set_config('gpujoin.loader_workers', n::text, false);
		EXECUTE 'CREATE TEMP TABLE lp_forced AS ' || query;
		IF EXISTS (SELECT * FROM lp_native EXCEPT ALL SELECT * FROM lp_forced) OR
		   EXISTS (SELECT * FROM lp_forced EXCEPT ALL SELECT * FROM lp_native) THEN
			result := concat(result, n, ' workers: DIFFERENT; ');
		END IF;
		DROP TABLE lp_forced;
		-- nothing is resident for those with 1 and 4 workers
		IF n < 4 THEN
			PERFORM gpujoin_cache_evict();
		END IF;
	END LOOP;
	result := coalesce(result, format('same, %s rows', (SELECT count(*) FROM lp_native)));
	DROP TABLE lp_native;
	SET gpujoin.loader_workers = 4;
	RETURN result;
END $$;
SELECT lp_same('SELECT count(*) AS a, sum(p.id + d.c) AS b, count(p.v) AS c, min(p.id) AS d FROM lp p JOIN ld d USING (k)');
SELECT lp_same('SELECT count(*) AS a, sum(v) AS b FROM lp');
SELECT lp_same('SELECT p.id, p.t, d.name FROM lp p JOIN ld d USING (k) WHERE p.v < 300');
SELECT lp_same('SELECT p.id, q.t FROM lp p JOIN lp q ON p.id = q.id + 19995');
SELECT lp_same('SELECT d.name, sum(p.v) FROM lp p JOIN ld d USING (k) GROUP BY 1');
SELECT lp_same('SELECT d.name, p.t FROM ld d LEFT JOIN lp p ON d.k + 8 = p.k AND p.id < 30000');
-- one table that workers cannot read, one that is read twice
SELECT lp_same('SELECT count(*) AS a, sum(u.v) AS b, sum(u.id) AS c FROM (SELECT k, v, id FROM lp_2 UNION ALL SELECT k, v, id FROM lt UNION ALL SELECT k, v, id FROM lp_2) u JOIN ld USING (k)');
CREATE FUNCTION lp_workers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT concat('planned ', n->>'Loader Workers Planned', ', fell back: ' || (n->>'Fallback'))
			FROM jsonb_path_query(plan::jsonb, '$.**') n WHERE n->>'Custom Plan Provider' = 'GpuJoin');
END $$;
SELECT lp_workers('SELECT count(*), sum(p.v) FROM lp p');

-- what is resident of which table
CREATE FUNCTION lp_resident(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	pages text;
	answer text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	SELECT string_agg(concat(s->>'Relation', ' ', s->>'Tables', ' tables ',
			CASE WHEN (s->>'Resident Pages')::int = 0 THEN 'none'
				WHEN (s->>'Pages Read')::int <= 4 THEN 'all' ELSE 'part' END), ', ' ORDER BY s->>'Relation')
	INTO pages FROM jsonb_path_query(plan::jsonb, '$.**."Sources"[*]') s WHERE s->>'Kind' = 'heap pages' AND s ? 'Tables';
	answer := gj_equal(query);
	RETURN concat_ws(': ', pages, CASE WHEN answer NOT LIKE 'same, %' THEN answer END);
END $$;
\set sums '''SELECT count(*), sum(p.v + d.c), count(p.t) FROM lp p JOIN ld d USING (k)'''
\set rows '''SELECT d.name, p.t, p.v FROM ld d JOIN lp p USING (k) WHERE p.id % 5 = 0'''
\set some '''SELECT count(*), sum(p.v + d.c), count(p.t) FROM lp p JOIN ld d USING (k) WHERE p.id BETWEEN 100 AND 30000'''
SELECT gpujoin_cache_evict() >= 0 AS evicted;
SELECT lp_resident(:sums), lp_resident(:sums);
SELECT lp_resident(:rows), lp_resident(:rows);
SELECT lp_resident(:some);
-- the small table is not kept
SELECT relation, columns FROM gpujoin_cache WHERE database = current_database() AND relation::text LIKE 'lp%' ORDER BY relation::text;
-- the table alone, as it was loaded for its parent
SELECT gj_equal('SELECT count(*), sum(v), count(t) FROM lp_2 WHERE k < 45');
UPDATE lp SET v = -v WHERE id IN (7, 30000);
SELECT lp_resident(:sums), lp_resident(:rows);
VACUUM lp_1, lp_2;
SELECT lp_resident(:sums), lp_resident(:rows);
BEGIN;
DELETE FROM lp WHERE id BETWEEN 19900 AND 20100;
SELECT lp_resident(:sums), lp_resident(:some);
ROLLBACK;
TRUNCATE lp_2;
SELECT lp_resident(:sums);
INSERT INTO lp SELECT i, i % 50, i, 'new' FROM generate_series(20001, 40000) i;
SELECT lp_resident(:sums), lp_resident(:rows);
VACUUM lp_2;
SELECT lp_resident(:sums), lp_resident(:sums);
-- members of an UNION ALL that are the same table, some of it resident
SELECT lp_resident('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM lp_1 UNION ALL SELECT k, v FROM lp_2 UNION ALL SELECT id, v FROM lp_1) u JOIN ld USING (k)');
SELECT lp_resident('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM lp_1 UNION ALL SELECT k, v FROM lp_2 UNION ALL SELECT id, v FROM lp_1) u JOIN ld USING (k)');
-- little device memory: parts of all tables
SET gpujoin.device_memory_limit = '4MB';
SELECT gj_equal('SELECT p.id, q.t FROM lp p JOIN lp q ON p.id = q.id + 15');
RESET gpujoin.device_memory_limit;
SELECT gpujoin_cache_evict() > 0 AS evicted;
DROP TABLE lp, ld, lt;
DROP FUNCTION lp_same, lp_workers, lp_resident;
