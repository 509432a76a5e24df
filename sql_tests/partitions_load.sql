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

SELECT gj_equal_loaded('SELECT count(*) AS a, sum(p.id + d.c) AS b, count(p.v) AS c, min(p.id) AS d FROM lp p JOIN ld d USING (k)', evict => true);
SELECT gj_equal_loaded('SELECT count(*) AS a, sum(v) AS b FROM lp', evict => true);
SELECT gj_equal_loaded('SELECT p.id, p.t, d.name FROM lp p JOIN ld d USING (k) WHERE p.v < 300', evict => true);
SELECT gj_equal_loaded('SELECT p.id, q.t FROM lp p JOIN lp q ON p.id = q.id + 19995', evict => true);
SELECT gj_equal_loaded('SELECT d.name, sum(p.v) FROM lp p JOIN ld d USING (k) GROUP BY 1', evict => true);
SELECT gj_equal_loaded('SELECT d.name, p.t FROM ld d LEFT JOIN lp p ON d.k + 8 = p.k AND p.id < 30000', evict => true);
-- one table that workers cannot read, one that is read twice
SELECT gj_equal_loaded('SELECT count(*) AS a, sum(u.v) AS b, sum(u.id) AS c FROM (SELECT k, v, id FROM lp_2 UNION ALL SELECT k, v, id FROM lt UNION ALL SELECT k, v, id FROM lp_2) u JOIN ld USING (k)', evict => true);
SELECT gj_workers('SELECT count(*), sum(p.v) FROM lp p');

-- what is resident of which table
\set sums '''SELECT count(*), sum(p.v + d.c), count(p.t) FROM lp p JOIN ld d USING (k)'''
\set rows '''SELECT d.name, p.t, p.v FROM ld d JOIN lp p USING (k) WHERE p.id % 5 = 0'''
\set some '''SELECT count(*), sum(p.v + d.c), count(p.t) FROM lp p JOIN ld d USING (k) WHERE p.id BETWEEN 100 AND 30000'''
SELECT gpujoin_cache_evict() >= 0 AS evicted;
SELECT gj_resident(:sums, 'lp%'), gj_resident(:sums, 'lp%');
SELECT gj_resident(:rows, 'lp%'), gj_resident(:rows, 'lp%');
SELECT gj_resident(:some, 'lp%');
-- the small table is not kept
SELECT relation, columns FROM gpujoin_cache WHERE datname = current_database() AND relation::text LIKE 'lp%' ORDER BY relation::text;
-- the table alone, as it was loaded for its parent
SELECT gj_equal('SELECT count(*), sum(v), count(t) FROM lp_2 WHERE k < 45');
UPDATE lp SET v = -v WHERE id IN (7, 30000);
SELECT gj_resident(:sums, 'lp%'), gj_resident(:rows, 'lp%');
VACUUM lp_1, lp_2;
SELECT gj_resident(:sums, 'lp%'), gj_resident(:rows, 'lp%');
BEGIN;
DELETE FROM lp WHERE id BETWEEN 19900 AND 20100;
SELECT gj_resident(:sums, 'lp%'), gj_resident(:some, 'lp%');
ROLLBACK;
TRUNCATE lp_2;
SELECT gj_resident(:sums, 'lp%', 3);
INSERT INTO lp SELECT i, i % 50, i, 'new' FROM generate_series(20001, 40000) i;
SELECT gj_resident(:sums, 'lp%', 3), gj_resident(:rows, 'lp%', 3);
VACUUM lp_2;
SELECT gj_resident(:sums, 'lp%', 3), gj_resident(:sums, 'lp%', 3);
-- members of an UNION ALL that are the same table, some of it resident
SELECT gj_resident('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM lp_1 UNION ALL SELECT k, v FROM lp_2 UNION ALL SELECT id, v FROM lp_1) u JOIN ld USING (k)', 'u', 4);
SELECT gj_resident('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM lp_1 UNION ALL SELECT k, v FROM lp_2 UNION ALL SELECT id, v FROM lp_1) u JOIN ld USING (k)', 'u', 4);
-- little device memory: parts of all tables
SET gpujoin.device_memory_limit = '4MB';
SELECT gj_equal('SELECT p.id, q.t FROM lp p JOIN lp q ON p.id = q.id + 15');
RESET gpujoin.device_memory_limit;
SELECT gpujoin_cache_evict() > 0 AS evicted;
DROP TABLE lp, ld, lt;
