-- gpujoin_prewarm makes texts resident for queries that return them and for queries that look into them.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
CREATE TABLE pt_f (id int, k int, t text, v varchar(20), c char(5), b bytea) WITH (autovacuum_enabled = off);
INSERT INTO pt_f SELECT i, i % 50, CASE WHEN i % 3 = 0 THEN repeat('long ' || i % 7, 700) ELSE 'text ' || i END, 'v' || i % 10, 'c' || i % 4, CASE WHEN i % 5 > 0 THEN '\x01'::bytea END FROM generate_series(1, 5000) i;
ALTER TABLE pt_f ADD COLUMN added varchar(30) DEFAULT 'was there';
CREATE TABLE pt_d AS SELECT i AS k, 'd' || i AS name FROM generate_series(0, 29) i;
VACUUM ANALYZE pt_f, pt_d;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('pt_f') = pg_relation_size('pt_f') / 8192 AS whole;
SELECT gj_resident('SELECT f.t, f.v, f.c, f.b, d.name FROM pt_f f JOIN pt_d d USING (k)', 'pt\_f%');
SELECT gj_resident('SELECT count(*) FROM pt_f f JOIN pt_d d USING (k) WHERE f.t LIKE ''long%''', 'pt\_f%');
SELECT gj_resident('SELECT count(*), sum(f.id) FROM pt_f f JOIN pt_d d USING (k) WHERE f.v = ''v3'' AND f.c <> ''c1'' AND f.b = ''\x01''', 'pt\_f%');
SELECT gj_resident('SELECT f.t, d.name FROM pt_f f JOIN pt_d d USING (k) WHERE f.added LIKE ''was%'' AND f.v < ''v7'' COLLATE "C" AND f.b IS NOT NULL', 'pt\_f%');
SELECT gj_same('SELECT f.id, f.v, f.t, d.name FROM pt_f f JOIN pt_d d USING (k) WHERE f.added LIKE ''was%'' AND f.v < ''v7'' COLLATE "C" AND f.b IS NOT NULL');
SELECT gj_same('SELECT f.id, f.t, f.v, f.c, f.b, d.name FROM pt_f f JOIN pt_d d USING (k)');
SELECT gj_same('SELECT count(*), sum(length(f.t)), sum(f.id) FROM pt_f f JOIN pt_d d USING (k) WHERE f.t LIKE ''long%''');
DROP TABLE pt_f, pt_d;
