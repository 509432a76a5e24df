-- Texts that differ have offsets in packed fragments; all comes back as it was stored.
LOAD 'gpujoin';
-- long texts are resident as well
SET gpujoin.late_columns = off;
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
SET gpujoin.devices_per_query = 1;
-- short and long headers, blanks, nothing, NULLs, and what is no varlena; compressed and out of line
CREATE TABLE pl_f (id int, t text, c char(9), b bytea, big numeric, list int[], nm name, mac macaddr, wide text, zip text, ext text,
	none text, hole text) WITH (autovacuum_enabled = off);
ALTER TABLE pl_f ALTER wide SET STORAGE PLAIN, ALTER ext SET STORAGE EXTERNAL;
INSERT INTO pl_f SELECT i, CASE WHEN i % 7 > 0 THEN repeat('tü', i % 5) || i || repeat(' ', i % 3) END, CASE WHEN i % 11 > 0 THEN i::text ELSE '' END,
	decode(lpad(to_hex(i), 8, '0') || repeat('00', i % 9), 'hex'), (i::numeric * 1234567890123456789) / 1000, ARRAY[i, NULL, -i], 'name' || i,
	('08:00:2b:' || to_char(i / 10000, 'FM00') || ':' || to_char(i / 100 % 100, 'FM00') || ':' || to_char(i % 100, 'FM00'))::macaddr,
	repeat(chr(97 + i % 26), 120 + i % 9) || i, repeat('zip' || i, CASE WHEN i % 500 = 0 THEN 1000 ELSE 1 END),
	repeat(md5(i::text), CASE WHEN i % 700 = 0 THEN 200 ELSE 0 END), NULL, CASE WHEN i > 20000 THEN 'hole' || i END
FROM generate_series(1, 40000) i;
CREATE TABLE pl_d AS SELECT i AS id, repeat('tü', i % 5) || i || repeat(' ', i % 3) AS t, i % 5 AS k FROM generate_series(1, 30000) i;
VACUUM ANALYZE pl_f, pl_d;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('pl_f') > 0;
SELECT gpujoin_prewarm('pl_d') > 0;
SELECT name, encoding, b > 0 AND b < p AS less FROM gpujoin_cache, unnest(columns, encodings, column_bytes, plain_bytes) AS u(name, encoding, b, p)
WHERE relation = 'pl_f'::regclass ORDER BY name COLLATE "C";
SELECT sum(b) BETWEEN max(bytes) * 0.9 AND max(bytes) FROM gpujoin_cache, unnest(column_bytes) AS u(b) WHERE relation = 'pl_f'::regclass;
-- as stored: sizes and bytes
SELECT gj_same('SELECT f.* FROM pl_f f JOIN pl_d d USING (id) WHERE d.k = 2');
SELECT gj_same('SELECT f.id, pg_column_size(f.t), pg_column_size(f.c), pg_column_size(f.b), pg_column_size(f.big), pg_column_size(f.list), pg_column_size(f.nm), pg_column_size(f.wide), pg_column_size(f.zip), pg_column_size(f.ext), textsend(f.t), bpcharsend(f.c) FROM pl_f f JOIN pl_d d USING (id) WHERE d.k = 1');
-- conditions
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE t LIKE ''%tü1%2%'' AND c NOT LIKE ''%9''');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE wide LIKE ''a%'' AND substring(wide, 125, 2) > ''5''');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE c = ''77'' OR c = '''' OR hole = ''hole30000'' OR none = ''x''');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE nm = ''name17'' OR b < ''\x00000100'' OR length(t) > 14');
SELECT gj_same('SELECT count(*), sum(id), count(hole), count(none), max(id) FROM pl_f WHERE hole IS NULL OR hole >= ''hole29''');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE t LIKE ''%1'' AND zip LIKE ''zip%7''');
SELECT gj_same('SELECT count(*), sum(a.id) FROM pl_f a JOIN pl_f b ON a.list = b.list AND a.id < 500');
-- keys of joins and of groups, distinct ones, sorts
SELECT gj_same('SELECT d.k, count(*), sum(f.id) FROM pl_f f JOIN pl_d d ON f.t = d.t GROUP BY d.k');
SELECT gj_same('SELECT f.id, d.id, d.t FROM pl_f f JOIN pl_d d ON f.t = d.t WHERE f.id % 50 = 3');
SELECT gj_same('SELECT d.id, f.t, f.wide FROM pl_d d JOIN pl_f f ON f.t = d.t AND d.k = 3');
SELECT gj_same('SELECT f.t, f.c, count(*), sum(d.k) FROM pl_f f JOIN pl_d d USING (id) GROUP BY 1, 2');
SELECT gj_same('SELECT c, count(*) FROM pl_f GROUP BY 1');
SELECT gj_same('SELECT count(DISTINCT f.hole), count(DISTINCT f.zip) FROM pl_f f JOIN pl_d d USING (id)');
SELECT gj_same('SELECT DISTINCT f.hole, f.none FROM pl_f f JOIN pl_d d USING (id)');
SELECT gj_same('SELECT s.t, s.n, d.k FROM (SELECT t, count(*) AS n, min(id) AS id FROM pl_f GROUP BY t) s JOIN pl_d d ON d.id = s.id');
SELECT gj_same('SELECT f.t, d.k FROM pl_f f LEFT JOIN pl_d d ON f.id = d.id AND d.k = 3 WHERE f.id % 7 = 0');
SELECT f.id, f.t, f.wide FROM pl_f f JOIN pl_d d USING (id) WHERE d.k = 4 ORDER BY f.id DESC LIMIT 3;
-- pages that have changed: ranges of rows, on the probe side and on the build side
UPDATE pl_f SET t = 'new' || id, hole = NULL WHERE id % 2500 = 1;
DELETE FROM pl_f WHERE id % 3333 = 2;
SELECT gj_same('SELECT f.* FROM pl_f f JOIN pl_d d USING (id) WHERE d.k = 2');
SELECT gj_same('SELECT d.id, f.t, f.c, f.wide, f.nm FROM pl_d d JOIN pl_f f USING (id) WHERE d.k = 1');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_f WHERE t LIKE ''%ew%1'' OR wide LIKE ''b%''');
SELECT gj_same('SELECT d.k, count(*), sum(f.id) FROM pl_f f JOIN pl_d d ON f.t = d.t GROUP BY d.k');
SELECT gj_same('SELECT t, count(*) FROM pl_f GROUP BY 1');
-- on several devices: rows are sent, fragments are copied
RESET gpujoin.devices_per_query;
SELECT gj_same('SELECT f.* FROM pl_f f JOIN pl_d d USING (id) WHERE d.k = 2');
SELECT gj_same('SELECT d.id, f.t, f.c, f.wide, f.nm FROM pl_d d JOIN pl_f f USING (id) WHERE d.k = 1');
SELECT gj_same('SELECT d.k, count(*), sum(f.id) FROM pl_f f JOIN pl_d d ON f.t = d.t GROUP BY d.k');
-- long values between short ones take offsets of 4 bytes
CREATE TABLE pl_l (id int, t text) WITH (autovacuum_enabled = off);
ALTER TABLE pl_l ALTER t SET STORAGE PLAIN;
INSERT INTO pl_l SELECT i, repeat('long' || i, CASE WHEN i % 9 = 0 THEN 600 ELSE 1 END) FROM generate_series(1, 5000) i;
VACUUM ANALYZE pl_l;
SELECT gpujoin_prewarm('pl_l') > 0;
SELECT DISTINCT encodings[2] FROM gpujoin_cache WHERE relation = 'pl_l'::regclass;
SELECT gj_same('SELECT l.* FROM pl_l l JOIN pl_d d USING (id) WHERE d.k < 3');
SELECT gj_same('SELECT d.id, l.t FROM pl_d d JOIN pl_l l USING (id) WHERE d.k > 3');
SELECT gj_same('SELECT count(*), sum(id) FROM pl_l WHERE t LIKE ''%long4995'' OR t LIKE ''long1_''');
DELETE FROM pl_l WHERE id % 500 = 1;
SELECT gj_same('SELECT l.id, l.t FROM pl_l l JOIN pl_d d USING (id) WHERE d.k < 3');
SELECT gj_same('SELECT d.id, l.t FROM pl_d d JOIN pl_l l USING (id) WHERE d.k > 3');
SELECT gpujoin_cache_evict() > 0;
DROP TABLE pl_f, pl_d, pl_l;
