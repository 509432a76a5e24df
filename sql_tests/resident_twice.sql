-- What could be taken for something else that is resident: a table that a source has twice, tables in another order,
-- other values of parameters and settings, a transaction's own changes.  And the accounts of memory afterwards.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
SELECT gpujoin_cache_evict() >= 0 AS evicted;
CREATE TABLE twice_f WITH (fillfactor = 10, autovacuum_enabled = off) AS SELECT i AS id, i % 3000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE twice_d WITH (fillfactor = 10, autovacuum_enabled = off) AS
SELECT i AS k, i % 7 AS w, 'n' || i AS t, timestamptz '2020-01-01 00:00:00+00' + i * interval '1 hour' AS ts FROM generate_series(0, 4000) i;
CREATE TABLE twice_p (k int, w int) PARTITION BY range (k);
CREATE TABLE twice_p1 PARTITION OF twice_p FOR VALUES FROM (0) TO (1500) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE twice_p2 (w int, k int) WITH (fillfactor = 10, autovacuum_enabled = off);
ALTER TABLE twice_p ATTACH PARTITION twice_p2 FOR VALUES FROM (1500) TO (9000);
INSERT INTO twice_p SELECT i, i % 7 FROM generate_series(0, 4000) i;
VACUUM (ANALYZE, FREEZE) twice_f;
VACUUM (ANALYZE, FREEZE) twice_d;
VACUUM (ANALYZE, FREEZE) twice_p;

-- the same columns of a table in two ways, by one process and by several, cold and resident: outer and inner
CREATE FUNCTION twice(members text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	FOR workers IN 0 .. 1 LOOP
		PERFORM set_config('gpujoin.loader_workers', (workers * 3)::text, true), gpujoin_cache_evict();
		FOR i IN 1 .. 2 LOOP
			RETURN QUERY SELECT gj_same('SELECT count(*), sum(u.w), sum(u.k) FROM twice_f f JOIN (' || members || ') u USING (k)');
			RETURN QUERY SELECT gj_same('SELECT count(*), sum(u.w * 3 + u.k) FROM (' || members || ') u');
		END LOOP;
	END LOOP;
END $$;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SELECT twice, count(*) FROM twice('SELECT k, w FROM twice_d UNION ALL SELECT w, k FROM twice_d') GROUP BY 1;
SELECT twice, count(*) FROM twice('SELECT w, k FROM twice_d UNION ALL SELECT k, w FROM twice_d') GROUP BY 1;
SELECT twice, count(*) FROM twice('SELECT k, w FROM twice_d UNION ALL SELECT k, w FROM twice_d') GROUP BY 1;
SELECT twice, count(*) FROM twice('SELECT k, w FROM twice_p1 UNION ALL SELECT w, k FROM twice_p2') GROUP BY 1;
SELECT twice, count(*) FROM twice('SELECT k, w FROM twice_p') GROUP BY 1;
-- what was kept of it serves others
SELECT gj_same('SELECT count(*), sum(w), sum(k::bigint * w) FROM twice_d');

-- the same program with other values: another hash table
SET plan_cache_mode = force_generic_plan;
PREPARE by_number(int) AS SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE w < $1;
EXECUTE by_number(2);
EXECUTE by_number(4);
EXECUTE by_number(2);
PREPARE by_text(text) AS SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE t < $1;
EXECUTE by_text('n2');
EXECUTE by_text('n3');
EXECUTE by_text('n2');
RESET plan_cache_mode;
SET timezone = 'UTC';
SELECT gj_equal('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE ts::date < date ''2020-02-01''');
SET timezone = 'Pacific/Auckland';
SELECT gj_equal('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE ts::date < date ''2020-02-01''');
RESET timezone;

-- a transaction's own changes of one partition
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_p USING (k)') FROM generate_series(1, 2);
BEGIN;
DELETE FROM twice_p WHERE k < 100;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_p USING (k)');
ROLLBACK;
BEGIN;
TRUNCATE twice_p1;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_p USING (k)');
ROLLBACK;
BEGIN;
ALTER TABLE twice_d ALTER COLUMN w TYPE bigint USING w * 2;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k)');
ROLLBACK;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k)');
ALTER TABLE twice_p DETACH PARTITION twice_p1;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_p USING (k)') FROM generate_series(1, 2);

-- whatever failed: what a device counts as resident is what the cache has, and all of it can go
SET gpujoin.fail_at = 'probe';
SELECT gj_equal('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE w < 6');
SET gpujoin.fail_at = 'build';
SELECT gj_equal('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE w < 6');
SET gpujoin.fail_at = 'stall';
SET statement_timeout = '200ms';
SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE w < 5;
RESET statement_timeout;
RESET gpujoin.fail_at;
SELECT gj_same('SELECT count(*), sum(w) FROM twice_f JOIN twice_d USING (k) WHERE w < 5') FROM generate_series(1, 2);
SELECT sum(memory_resident) = (SELECT sum(bytes) FROM gpujoin_cache) AS all_told FROM gpujoin_devices;
SELECT gpujoin_cache_evict() > 0 AS evicted;
SELECT sum(memory_resident) AS resident FROM gpujoin_devices;

DROP TABLE twice_f, twice_d, twice_p, twice_p1;
DROP FUNCTION twice;
