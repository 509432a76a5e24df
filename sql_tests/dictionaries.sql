-- Columns with few different values have a dictionary in each fragment; all comes back as it was stored.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
CREATE TABLE dict_f (id int, mode text, clerk varchar(20), flag char(4), wide bytea, comment text, nothing text, same text, list int[],
	few numeric, u uuid, j jsonb, ext text) WITH (autovacuum_enabled = off);
ALTER TABLE dict_f ALTER ext SET STORAGE EXTERNAL;
INSERT INTO dict_f SELECT i, CASE WHEN i % 50 > 0 THEN (ARRAY['AIR', 'RAIL', '', 'TRÜCK', 'MAIL '])[1 + i % 5] END, 'clerk#' || i % 300,
	CASE WHEN i % 3 = 0 THEN 'A' ELSE 'N ' END, decode(repeat(lpad(to_hex(i % 8), 2, '0'), i % 4), 'hex'), md5(i::text), NULL, 'same',
	ARRAY[i % 4, NULL, i % 3], (ARRAY['NaN', '1', '1.0', '-0.5', '12345678901234567890.123456789'])[1 + i % 5]::numeric,
	md5((i % 40)::text)::uuid, jsonb_build_object('k', i % 6), CASE WHEN i % 1000 = 0 THEN repeat('long', 1500) ELSE 'short' END
FROM generate_series(1, 40000) i;
CREATE TABLE dict_d AS SELECT i AS id, (ARRAY['AIR', 'RAIL', 'SHIP', 'TRÜCK'])[1 + i % 4] AS mode, i % 5 AS k FROM generate_series(1, 30000) i;
VACUUM ANALYZE dict_f, dict_d;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('dict_f') > 0;
-- as stored: sizes and bytes
SELECT gj_same('SELECT f.* FROM dict_f f JOIN dict_d d USING (id) WHERE d.k = 2');
SELECT gj_same('SELECT f.id, pg_column_size(f.mode), pg_column_size(f.clerk), pg_column_size(f.flag), pg_column_size(f.wide), pg_column_size(f.few), pg_column_size(f.list), pg_column_size(f.j), pg_column_size(f.ext), f.few::text, textsend(f.mode), bpcharsend(f.flag) FROM dict_f f JOIN dict_d d USING (id) WHERE d.k = 1');
-- conditions
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) WHERE f.mode IN (''AIR'', ''TRÜCK'') AND f.flag = ''A''');
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) WHERE f.clerk LIKE ''%1%'' AND f.comment LIKE ''%ab%''');
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) WHERE f.mode = '''' OR f.mode IS NULL OR f.nothing IS NOT NULL');
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) WHERE f.wide = ''\x0101'' OR f.few > 1');
-- keys of joins, of groups, and distinct ones
SELECT gj_same('SELECT d.k, count(*), sum(f.id) FROM dict_f f JOIN dict_d d ON f.mode = d.mode AND f.id < 100 GROUP BY d.k');
SELECT gj_same('SELECT f.mode, f.flag, f.same, count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) GROUP BY 1, 2, 3');
SELECT gj_same('SELECT f.clerk, f.u, count(*), min(f.id) FROM dict_f f JOIN dict_d d USING (id) GROUP BY 1, 2');
SELECT gj_same('SELECT f.nothing, count(*), count(f.nothing), count(DISTINCT f.clerk) FROM dict_f f JOIN dict_d d USING (id) GROUP BY 1');
SELECT gj_same('SELECT f.mode, d.k FROM dict_f f LEFT JOIN dict_d d ON f.id = d.id AND d.k = 3 WHERE f.id % 7 = 0');
SELECT gj_same('SELECT DISTINCT f.mode, f.clerk FROM dict_f f JOIN dict_d d USING (id)');
-- a stage over them
SELECT gj_same('SELECT s.clerk, s.n, d.k FROM (SELECT clerk, count(*) AS n, min(id) AS id FROM dict_f GROUP BY clerk) s JOIN dict_d d ON d.id = s.id');
-- fragments with dictionaries of their own, and some without
INSERT INTO dict_f (id, mode, clerk) SELECT i, CASE WHEN i < 200000 THEN 'other ' || i % 4 ELSE 'text ' || i END, 'clerk#' || i % 300 FROM generate_series(100001, 400000) i;
VACUUM ANALYZE dict_f;
SELECT gpujoin_prewarm('dict_f') > 0;
SELECT gj_same('SELECT f.mode, count(*), min(f.id), max(f.id) FROM dict_f f WHERE f.mode NOT LIKE ''text%5'' GROUP BY 1');
SELECT gj_same('SELECT f.clerk, count(*), sum(f.id) FROM dict_f f GROUP BY 1');
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_f g ON f.mode = g.mode AND f.clerk = g.clerk AND f.id < 50 AND g.id < 2000');
DROP TABLE dict_f, dict_d;
