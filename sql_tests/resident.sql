-- Resident data: what stays on the device, and that it is never out of date.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
-- pages that a vacuum has gone over are compared, whatever the number of processors
SET gpujoin.loader_workers = 0;

SELECT gpujoin_cache_evict() >= 0 AS evicted;

CREATE TABLE f (id int, k int, v int, t text) WITH (autovacuum_enabled = off);
INSERT INTO f SELECT i, i % 50, CASE WHEN i % 10 = 0 THEN NULL ELSE i END, repeat('x', i % 30) || i FROM generate_series(1, 30000) i;
CREATE TABLE d (k int, c int, name text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO d SELECT i, i * 2, 'd' || i FROM generate_series(0, 1199) i;
VACUUM ANALYZE f, d;
\set sums '''SELECT count(*), sum(f.v + d.c), count(f.v) FROM f JOIN d USING (k)'''
\set rows '''SELECT f.id, f.t, d.name FROM f JOIN d USING (k) WHERE f.id % 3 = 0'''

-- the first time everything is loaded, then nothing; then for fewer columns; more are loaded again
SELECT gj_resident(:sums), gj_resident(:sums);
SELECT gj_resident('SELECT count(*), sum(d.c) FROM f JOIN d USING (k)');
SELECT gj_resident(:rows), gj_resident(:rows);
SELECT gj_resident('SELECT f.id, f.t, d.name, f.v FROM d JOIN f USING (k)'), gj_resident('SELECT f.id, f.t, d.name, f.v FROM d JOIN f USING (k)');
SELECT gj_resident('SELECT count(*), sum(a.v - b.v) FROM f a JOIN f b ON a.id = b.id');
SELECT relation, max(columns) AS columns, sum(fragments) AS fragments, sum(pages) = pg_relation_size(relation) / 8192 AS whole,
	min(bytes) > 0 AS bytes, sum(hits) > 0 AS hits
FROM gpujoin_cache WHERE datname = current_database() GROUP BY relation ORDER BY relation::text;

-- changes: what is not all-visible is loaded afresh, the rest is not
UPDATE f SET v = -v WHERE id IN (7, 20000);
SELECT gj_resident(:sums), gj_resident(:rows);
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:rows);
BEGIN;
DELETE FROM f WHERE id BETWEEN 100 AND 200;
SELECT gj_resident(:sums);
ROLLBACK;
SELECT gj_resident(:sums), gj_resident(:rows);
DELETE FROM f WHERE id BETWEEN 300 AND 400;
INSERT INTO f SELECT 40000 + i, 3, i, 'new' FROM generate_series(1, 50) i;
SELECT gj_resident(:sums), gj_resident(:rows);
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:rows);
-- pruning and freezing
UPDATE f SET v = v + 1 WHERE id BETWEEN 1000 AND 1200;
UPDATE f SET v = v + 1 WHERE id BETWEEN 1000 AND 1200;
SELECT gj_resident(:sums);
VACUUM (FREEZE) f;
SELECT gj_resident(:sums), gj_resident(:sums), gj_resident(:rows);
-- row locks: they change no row, but take the all-frozen bits of pages, of which 17 tells in the map's LSN
BEGIN;
SELECT count(*) FROM (SELECT FROM f WHERE id < 500 FOR UPDATE) x;
SELECT gj_resident(:sums) IN ('d all, f all', 'd all, f part') AS kept;
COMMIT;
SELECT gj_resident(:sums) IN ('d all, f all', 'd all, f part') AS kept;
SELECT gpujoin_cache_evict() >= 0 AS evicted;
SELECT gj_resident(:sums), gj_resident(:rows), gj_resident(:sums);
-- subtransactions
BEGIN;
UPDATE d SET c = c + 1 WHERE k < 20;
SAVEPOINT s;
DELETE FROM d WHERE k = 5;
SELECT gj_resident(:sums);
ROLLBACK TO s;
SELECT gj_resident(:sums);
COMMIT;
SELECT gj_resident(:sums);
VACUUM d;
SELECT gj_resident(:sums), gj_resident(:rows);
-- a query that changes what it reads
CREATE FUNCTION change_d(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE d SET c = c + 1 WHERE k = $1; RETURN $1; END $$;
SELECT count(*), sum(x.c) AS sum, sum(change_d(x.k)) AS changed FROM (SELECT d.k, d.c FROM f JOIN d USING (k) WHERE f.id <= 50 OFFSET 0) x;
SELECT gj_resident(:sums);

-- one page changed: it is read by each query, and when that has been as much as its fragment, this is, once; not while it is not all-visible
CREATE TABLE e (k int, c int) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO e SELECT i, i * 3 FROM generate_series(0, 1999) i;
VACUUM e;
CREATE FUNCTION pages_read(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE (s->>'Pages Read')::int WHEN 0 THEN 'none' WHEN pg_relation_size('e') / 8192 THEN 'all' ELSE s->>'Pages Read' END
	FROM jsonb_path_query(gj_explain(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF'), '$.**."Sources"[*]') s WHERE s->>'Relation Name' = 'e'
$$;
-- of several runs, each time it is something else
CREATE FUNCTION pages_read(query text, times int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	pages text[];
	read text;
BEGIN
	FOR i IN 1..times LOOP
		read := pages_read(query);
		IF read IS DISTINCT FROM pages[cardinality(pages)] THEN
			pages := pages || read;
		END IF;
	END LOOP;
	RETURN pages;
END $$;
\set joined '$$SELECT count(*), sum(f.v + e.c) FROM f JOIN e USING (k)$$'
SELECT pages_read(:joined, 4);
UPDATE e SET c = c + 1 WHERE k = 7;
SELECT pages_read(:joined, 10);
VACUUM e;
SELECT pages_read(:joined, 60);
SELECT gj_resident(:joined);
-- nor does an early question take away what the runs have lost
UPDATE e SET c = c + 1 WHERE k = 7;
VACUUM e;
SELECT array_agg(DISTINCT read) FROM (SELECT gj_resident('SELECT count(*), sum(a.v - b.v) FROM f a JOIN f b USING (id)'), pages_read(:joined) AS read FROM generate_series(1, 40) OFFSET 0) x;
-- with workers all that a vacuum has gone over is loaded, which takes less time than to compare LSNs; by who asks first
SET gpujoin.loader_workers = 4; SET min_parallel_table_scan_size = 0;
UPDATE e SET c = c + 1 WHERE k = 7;
VACUUM e;
SELECT pages_read(:joined, 4);
SELECT gj_resident(:joined);
UPDATE e SET c = c + 1 WHERE k = 7;
VACUUM e;
SELECT gj_resident('SELECT count(*), sum(a.c - b.c) FROM e a JOIN e b USING (k)');
SELECT gj_resident(:joined);
-- and where that was asked for, with and without workers
SELECT gpujoin_prewarm('e', '{k,c}') = pg_relation_size('e') / 8192 AS whole, pages_read(:joined, 2);
SET gpujoin.loader_workers = 0;
UPDATE e SET c = c + 1 WHERE k = 7;
VACUUM e;
SELECT pages_read(:joined, 2), gpujoin_prewarm('e', '{k,c}') = pg_relation_size('e') / 8192 AS whole, pages_read(:joined, 2);
SELECT gj_resident(:joined);
RESET min_parallel_table_scan_size;
DROP TABLE e;

-- most of it changed: loaded as a whole, and kept again
UPDATE f SET v = v + 1 WHERE id < 20000;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
-- growing and shrinking
INSERT INTO f SELECT 50000 + i, i % 50, i, 'grown' FROM generate_series(1, 30000) i;
SELECT gj_resident(:sums);
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
DELETE FROM f WHERE id >= 50000;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
INSERT INTO f SELECT 60000 + i, i % 50, i, 'again' FROM generate_series(1, 20000) i;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);

-- new files: in the transaction that made them nothing is kept
BEGIN;
TRUNCATE f;
INSERT INTO f SELECT i, i % 50, i, 'truncated' FROM generate_series(1, 20000) i;
SELECT gj_resident(:sums), gj_resident(:sums);
ROLLBACK;
SELECT gj_resident(:sums);
BEGIN;
TRUNCATE f;
INSERT INTO f SELECT i, i % 50, i, 'truncated' FROM generate_series(1, 20000) i;
SELECT gj_resident(:sums);
COMMIT;
SELECT gj_resident(:sums);
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
VACUUM FULL f;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
-- frozen rows, twice into the same last page
\set program '$$awk ''BEGIN { for (i = 1; i <= 10100; i++) print i "\\t" i % 50 "\\t" i }''$$'
BEGIN;
TRUNCATE f;
COPY f (id, k, v) FROM PROGRAM :program WITH (FREEZE);
SELECT gj_resident(:sums), gj_resident(:sums);
COPY f (id, k, v) FROM PROGRAM :program WITH (FREEZE);
SELECT gj_resident(:sums), gj_resident(:sums);
COMMIT;
SELECT gj_resident(:sums), gj_resident(:sums);

-- attributes: added with a default, taken back, added with another one
\set added '''SELECT count(*), sum(f.x), sum(d.c) FROM f JOIN d USING (k)'''
BEGIN;
ALTER TABLE f ADD COLUMN x int DEFAULT 1;
SELECT gj_resident(:added), gj_resident(:added);
ROLLBACK;
ALTER TABLE f ADD COLUMN x int DEFAULT 2;
SELECT gj_resident(:added), gj_resident(:added);
ALTER TABLE f DROP COLUMN x;
ALTER TABLE f ADD COLUMN x bigint DEFAULT 3;
SELECT gj_resident(:added), gj_resident(:added);
ALTER TABLE f ALTER COLUMN x SET DEFAULT 4;
SELECT gj_resident(:added);
ALTER TABLE f DROP COLUMN v;
SELECT gj_resident('SELECT count(*), sum(f.id), sum(d.c) FROM f JOIN d USING (k)');
ALTER TABLE f RENAME COLUMN x TO v;
SELECT gj_resident(:sums);
ALTER TABLE f ALTER COLUMN v TYPE int;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);
-- another table of that name
DROP TABLE f;
CREATE TABLE f (id int, k int, v int, t text) WITH (autovacuum_enabled = off);
INSERT INTO f SELECT i, i % 50, -i, 'other' FROM generate_series(1, 20000) i;
SELECT gj_resident(:sums);
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);

-- never kept: unlogged and temporary tables, catalogs; a table of one page is
CREATE UNLOGGED TABLE u AS SELECT * FROM f;
CREATE TEMPORARY TABLE p AS SELECT * FROM f;
CREATE TABLE small AS SELECT i AS k, i AS c FROM generate_series(0, 49) i;
VACUUM u, p, small;
SELECT gj_resident('SELECT count(*), sum(u.v + p.v) FROM u JOIN p USING (id)'), gj_resident('SELECT count(*), sum(u.v + p.v) FROM u JOIN p USING (id)');
SELECT gj_resident('SELECT count(*), sum(f.v + small.c) FROM f JOIN small USING (k)'), gj_resident('SELECT count(*), sum(f.v + small.c) FROM f JOIN small USING (k)');
SELECT gj_resident('SELECT count(*), sum(c.relpages) FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid') LIKE '%all%' AS catalogs;
ALTER TABLE u SET LOGGED;
VACUUM u;
SELECT gj_resident('SELECT count(*), sum(u.v + p.v) FROM u JOIN p USING (id)'), gj_resident('SELECT count(*), sum(u.v + p.v) FROM u JOIN p USING (id)');

-- more than one fragment, changed here and there; scattered changes are put together
CREATE TABLE wide (id int, k int, v int) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO wide SELECT i, i % 50, i FROM generate_series(1, 120000) i;
VACUUM ANALYZE wide;
\set widesums '''SELECT count(*), sum(w.v + d.c), min(w.v), max(w.v) FROM wide w JOIN d USING (k)'''
\set wideself '''SELECT count(*), sum(w.v - x.v) FROM wide w JOIN wide x USING (id)'''
SELECT gj_resident(:widesums), gj_resident(:widesums);
SELECT gj_resident(:wideself), gj_resident(:wideself);
SELECT relation, max(columns) AS columns, sum(fragments) > 1 AS several FROM gpujoin_cache WHERE relation = 'wide'::regclass GROUP BY relation;
UPDATE wide SET v = v + 1 WHERE id > 119990;
SELECT gj_resident(:widesums), gj_resident(:wideself);
UPDATE wide SET v = v + 1 WHERE id % 1000 = 0;
SELECT gj_resident(:widesums), gj_resident(:wideself);
VACUUM wide;
SELECT gj_resident(:widesums), gj_resident(:wideself);
DELETE FROM wide WHERE id % 4 = 0;
SELECT gj_resident(:widesums), gj_resident(:wideself);
VACUUM wide;
SELECT gj_resident(:widesums), gj_resident(:widesums), gj_resident(:wideself);
DELETE FROM wide;
VACUUM (TRUNCATE off) wide;
SELECT gj_equal(:widesums), gj_equal(:widesums);

-- partitions and inner sides of several joins
CREATE TABLE part (id int, k int, v int) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (10000) WITH (autovacuum_enabled = off);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (10000) TO (20000) WITH (autovacuum_enabled = off);
INSERT INTO part SELECT i, i % 50, i FROM generate_series(0, 19999) i;
VACUUM ANALYZE part;
SELECT gj_resident('SELECT count(*), sum(p.v + f.v + d.c) FROM part1 p JOIN f USING (id) JOIN d ON d.k = p.k'), gj_resident('SELECT count(*), sum(p.v + f.v + d.c) FROM part1 p JOIN f USING (id) JOIN d ON d.k = p.k');

-- cursors keep what they have seen
BEGIN;
DECLARE c CURSOR FOR SELECT f.id + f.v AS zero FROM f JOIN d USING (k);
FETCH 1 FROM c \;
UPDATE f SET v = 0;
SELECT gpujoin_cache_evict('f') >= 0 AS evicted;
MOVE 18000 FROM c;
FETCH 1 FROM c \;
ROLLBACK;
VACUUM f;
SELECT gj_resident(:sums), gj_resident(:sums);

-- values that are compressed: carried as they are, flat where the device looks at them
CREATE TABLE texts (id int, k int, t text) WITH (autovacuum_enabled = off);
INSERT INTO texts SELECT i, i % 50, repeat('text ' || i % 7, 500) FROM generate_series(1, 5000) i;
VACUUM texts;
SELECT gj_equal('SELECT x.id, length(x.t), md5(x.t) FROM (SELECT texts.* FROM texts JOIN d USING (k) OFFSET 0) x') FROM generate_series(1, 2);
SELECT gj_equal('SELECT count(*), sum(texts.id) FROM texts JOIN d USING (k) WHERE t < ''text 3'' COLLATE "C"') FROM generate_series(1, 2);
SELECT gj_equal('SELECT x.id, length(x.t), md5(x.t) FROM (SELECT texts.* FROM texts JOIN d USING (k) OFFSET 0) x');
DROP TABLE texts;

-- pages here and there of an inner side with NULLs and references: what is around them is put together
CREATE TABLE spread (k int, v int, t text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO spread SELECT i, nullif(i % 5, 3), CASE WHEN i % 7 > 0 THEN repeat('spread', i % 9) || i END FROM generate_series(1, 3000) i;
VACUUM spread;
\set spreadrows '''SELECT f.id, s.t, s.v FROM f JOIN spread s ON s.k = f.id'''
SELECT gj_resident(:spreadrows, 'spread%'), gj_resident(:spreadrows, 'spread%');
UPDATE spread SET v = v + 1 WHERE k % 300 = 7;
SELECT gj_resident(:spreadrows, 'spread%'), gj_resident('SELECT count(*), sum(s.v), count(s.t) FROM f JOIN spread s ON s.k = f.id', 'spread%');
DELETE FROM spread WHERE k % 200 = 9;
SELECT gj_resident(:spreadrows, 'spread%'), gj_resident('SELECT s.t, count(*), sum(f.v) FROM spread s LEFT JOIN f ON s.k = f.id GROUP BY 1', 'spread%');
DROP TABLE spread;

-- asked for
SELECT gpujoin_cache_evict('f') > 0 AS evicted, gpujoin_cache_evict('f') AS again;
SELECT gpujoin_prewarm('f') = pg_relation_size('f') / 8192 AS whole;
SELECT gj_resident(:sums), gj_resident(:rows);
SELECT gpujoin_cache_evict('f') > 0 AS evicted;
SELECT gpujoin_prewarm('f', '{k,v,k}') = pg_relation_size('f') / 8192 AS whole;
SELECT columns FROM gpujoin_cache WHERE relation = 'f'::regclass;
-- partitions, one with its columns in another order, and children, one with more columns
CREATE TABLE part3 (v int, id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO part3 SELECT i, i, i % 50 FROM generate_series(20000, 29999) i;
ALTER TABLE part ATTACH PARTITION part3 FOR VALUES FROM (20000) TO (30000);
CREATE TABLE parent (id int, k int) WITH (autovacuum_enabled = off);
CREATE TABLE child (more int) INHERITS (parent) WITH (autovacuum_enabled = off);
INSERT INTO parent SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO child SELECT i, i, i FROM generate_series(1, 1000) i;
VACUUM part3, parent, child;
SELECT gpujoin_cache_evict('part') > 0 AS evicted, gpujoin_cache_evict('part') AS again;
SELECT gpujoin_prewarm('part', '{k,v}') = (SELECT sum(pg_relation_size(c)) / 8192 FROM unnest('{part1,part2,part3}'::regclass[]) c) AS whole;
SELECT relation, columns FROM gpujoin_cache WHERE relation::text LIKE 'part%' ORDER BY relation::text;
SELECT gj_resident('SELECT count(*), sum(p.v + d.c) FROM part p JOIN d USING (k)', '%part%');
SELECT gpujoin_prewarm('parent') = (pg_relation_size('parent') + pg_relation_size('child')) / 8192 AS whole;
SELECT relation, columns FROM gpujoin_cache WHERE relation IN ('parent'::regclass, 'child'::regclass) ORDER BY relation::text;
SELECT gpujoin_cache_evict('parent') > 0 AS evicted;
SELECT count(*) FROM gpujoin_cache WHERE relation IN ('parent'::regclass, 'child'::regclass);
SELECT gpujoin_prewarm('parent') > 0 AS warmed, 'child'::regclass::oid AS child \gset
-- its file is there until the end of the transaction: gpujoind gives up what is resident of files that are no more
BEGIN;
DROP TABLE parent CASCADE;
SELECT gpujoin_cache_evict(:child) > 0 AS dropped, gpujoin_cache_evict(:child) AS again;
COMMIT;
SELECT gpujoin_prewarm('part', '{nothing}');
SELECT gpujoin_prewarm('f', '{nothing}');
CREATE VIEW looked_at AS SELECT * FROM f;
SELECT gpujoin_prewarm('looked_at');
DROP VIEW looked_at;
SELECT gpujoin_prewarm('pg_class'), gpujoin_prewarm('u') > 0 AS logged_now, gpujoin_prewarm('p');
SELECT gpujoin_prewarm(NULL);
SET gpujoin.enabled = off;
SELECT gpujoin_prewarm('f');
RESET gpujoin.enabled;
CREATE ROLE gj_nobody;
SET ROLE gj_nobody;
SELECT gpujoin_prewarm('f');
SELECT gpujoin_cache_evict();
SELECT count(*) > 0 AS sees FROM gpujoin_cache;
RESET ROLE;
DROP ROLE gj_nobody;
SELECT gpujoin_cache_evict() > 0 AS evicted;
SELECT count(*) FROM gpujoin_cache;

-- failures leave nothing behind
SET gpujoin.fail_at = 'memory';
SELECT gj_resident(:sums) IS NOT NULL AS ran;
SET gpujoin.fail_at = 'output';
SELECT gj_resident(:sums) IS NOT NULL AS ran;
RESET gpujoin.fail_at;
SELECT gj_resident(:sums) LIKE '%f %' AS ran, gj_resident(:sums);

DROP TABLE f, d, wide, part, u, p, small;
DROP FUNCTION change_d, pages_read(text), pages_read(text, int);
