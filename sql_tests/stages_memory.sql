-- Stages whose groups, or whose results, exceed the memory of a device or what the host may use.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
CREATE TABLE wide AS SELECT g % 250000 AS k, g AS v, 'key ' || g % 250000 AS t FROM generate_series(1, 500000) g;
CREATE INDEX ON wide (k);
VACUUM ANALYZE wide;
SET gpujoin.device_memory_limit = '64MB';
\set texts 'SELECT count(*), sum(x.s - w.v) FROM wide w JOIN (SELECT t, count(*) n, sum(v) s, min(v) m, max(v) l FROM wide GROUP BY t) x USING (t) WHERE x.m < x.l'

-- groups that go to temporary files, and a result that fits
SET gpujoin.spill_memory = '1MB';
SELECT gj_same('SELECT n, count(*), sum(s) FROM (SELECT k, count(*) n, sum(v) s FROM wide GROUP BY k) x GROUP BY n');
SELECT gj_same('SELECT count(*), sum(x.s - w.v) FROM wide w JOIN (SELECT k, count(*) n, sum(v) s FROM wide GROUP BY k) x USING (k)');
SELECT gj_same('SELECT count(*), sum(v) FROM wide w WHERE v >= (SELECT max(v) FROM wide x WHERE x.k = w.k)');
SELECT gj_same('SELECT n, count(*) FROM (SELECT s, count(*) n FROM (SELECT k, sum(v) s FROM wide GROUP BY k) x GROUP BY s) y GROUP BY n');
-- one that does not; then it does
SELECT gj_same(:'texts');
SET gpujoin.spill_memory = '64MB';
SELECT gj_same(:'texts');
-- rows of a stage that stay on the device, and go to the host for a run in passes
SET gpujoin.device_memory_limit = '16MB';
SELECT gj_same('SELECT count(*), sum(x.s - w.v + u.v), min(w.t) FROM wide w JOIN wide u USING (t) JOIN (SELECT t, sum(v) s FROM wide WHERE v % 10 = 0 GROUP BY 1) x ON x.t = u.t');
SELECT gj_same('SELECT count(*), sum(x.s - w.v + u.v), count(x.n) FROM wide w JOIN wide u USING (t) JOIN (SELECT k, max(nullif(v % 3, 0)) n, sum(v) s FROM wide WHERE v % 10 = 0 GROUP BY 1) x ON x.k = u.k');
-- more of a result than a run in passes takes at a time
SET gpujoin.device_memory_limit = '32MB';
SELECT gj_same('SELECT count(*), sum(w.v + x.a + x.b + x.c + x.d + x.e) FROM wide w JOIN (SELECT DISTINCT t, v + 1::bigint a, v + 2::bigint b, v + 3::bigint c, v + 4::bigint d, v + 5::bigint e FROM wide WHERE v > 150000) x USING (t)');
DROP TABLE wide;
