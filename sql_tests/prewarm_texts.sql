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
-- texts none of which is compressed or external are there once: 16 bytes a value with its reference
CREATE TABLE pt_u (v varchar(20)) WITH (autovacuum_enabled = off);
INSERT INTO pt_u SELECT i::text FROM generate_series(1, 100000) i;
VACUUM ANALYZE pt_u;
SELECT gpujoin_prewarm('pt_u') = pg_relation_size('pt_u') / 8192 AS whole;
SELECT sum(bytes) BETWEEN 100000 * 7 AND 100000 * 9 AS once FROM gpujoin_cache WHERE relation = 'pt_u'::regclass;
-- those of which there are few different ones are codes
CREATE TABLE pt_p (k int, v varchar(20), c char(5)) WITH (autovacuum_enabled = off);
INSERT INTO pt_p SELECT i % 50, 'v' || i % 10, 'c' || i % 4 FROM generate_series(1, 100000) i;
VACUUM ANALYZE pt_p;
SELECT gpujoin_prewarm('pt_p') = pg_relation_size('pt_p') / 8192 AS whole;
SELECT sum(bytes) < 100000 * 4 AS codes FROM gpujoin_cache WHERE relation = 'pt_p'::regclass;
SELECT gj_resident('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k)', 'pt\_p%');
SELECT gj_resident('SELECT count(*) FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''v%'' AND f.c <> ''c1''', 'pt\_p%');
SELECT gj_resident('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''v%'' AND f.c <> ''c1''', 'pt\_p%');
SELECT gj_same('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''v%'' AND f.c <> ''c1''');
SELECT gpujoin_cache_evict('pt_p') > 0;
-- the other way round: loaded for a condition, and then returned
SELECT gj_same('SELECT count(*) FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''v%'' AND f.c <> ''c1''');
SELECT gj_resident('SELECT f.k, f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.k < 7', 'pt\_p%');
-- a single value that is compressed, and so two forms
ALTER TABLE pt_p ALTER v TYPE text;
INSERT INTO pt_p SELECT 0, repeat('x', 9000), 'c';
VACUUM ANALYZE pt_p;
SELECT gj_same('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k)');
SELECT gj_same('SELECT count(*), sum(length(f.v)) FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''x%''');
SELECT gj_same('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''%x%''');
SELECT gpujoin_prewarm('pt_p') = pg_relation_size('pt_p') / 8192 AS whole;
SELECT gj_resident('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''%x%''', 'pt\_p%');
SELECT gj_same('SELECT f.v, f.c, d.name FROM pt_p f JOIN pt_d d USING (k) WHERE f.v LIKE ''%x%''');
DROP TABLE pt_f, pt_d, pt_p, pt_u;
