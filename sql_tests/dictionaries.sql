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
-- conditions that are evaluated once for each value of a dictionary, and how many there are
CREATE FUNCTION dict_asked(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS off, FORMAT JSON) ' || query INTO plan;
	RETURN CASE WHEN plan @? '$.**."Distinct Values"?(@ > 0)' THEN 'asked' ELSE 'not asked' END;
END $$;
CREATE FUNCTION dict_same(query text) RETURNS text LANGUAGE sql AS 'SELECT dict_asked(query) || '', '' || gj_same(query)';
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode = ''AIR''');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode <> ''AIR'' AND clerk LIKE ''%1%'' AND flag = ''A''');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode NOT LIKE ''%_L%'' AND mode NOT IN (''AIR'', ''TRÜCK'')');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE (mode = ''AIR'' OR mode = ''RAIL'' OR mode = '''') AND id % 3 = 1');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE NOT (mode = ''AIR'') AND id BETWEEN 100 AND 30000');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE substring(clerk, 7, 2) = ''12'' OR id < 20');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE clerk ^@ ''clerk#2'' AND length(mode) > 3');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE left(mode, 3) = ''TRÜ'' AND mode LIKE ''TR_CK''');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode IN (''AIR'', NULL)');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode NOT IN (''AIR'', NULL)');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE coalesce(mode, ''AIR'') = ''AIR'' AND flag = ''N''');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE mode = ''AIR'' IS NOT TRUE AND same = ''same''');
SELECT dict_same('SELECT count(*) FROM dict_f WHERE nothing = ''x'' OR nothing <> ''x''');
SELECT dict_same('SELECT sum(CASE WHEN mode = ''AIR'' OR mode = ''MAIL '' THEN 1 ELSE 0 END), sum(CASE WHEN id % 2 = 0 THEN 5 WHEN flag LIKE ''A%'' THEN id END) FROM dict_f');
SELECT dict_same('SELECT clerk LIKE ''%9'', count(*), count(*) FILTER (WHERE mode = ''RAIL''), min(id) FROM dict_f GROUP BY 1');
SELECT dict_same('SELECT f.mode, count(*), sum(d.k) FROM dict_f f JOIN dict_d d USING (id) WHERE f.clerk LIKE ''clerk#1%'' AND f.flag < ''M'' GROUP BY 1');
SELECT dict_same('SELECT f.id, f.mode, d.k FROM dict_f f JOIN dict_d d USING (id) WHERE f.mode = ''TRÜCK'' AND d.k = 3 AND f.clerk >= ''clerk#29''');
SELECT dict_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d ON f.id = d.id AND (f.mode = ''AIR'' AND d.k < 2 OR f.mode = ''RAIL'' AND d.k > 2)');
-- ranges of a column without a gap, and with one
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE (id BETWEEN 5 AND 100 OR id BETWEEN 50 AND 300 OR id >= 301 AND id <= 900) AND mode = ''RAIL''');
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE id < 100 OR id BETWEEN 102 AND 300 OR id = 400 OR id BETWEEN 9 AND 7');
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE id < 100 OR id >= 100');
-- a condition that fails, in rows that others hide, and in rows that it sees
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE ext = ''short'' AND id % 1000 <> 0');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE CASE WHEN id % 5 <> 3 THEN mode LIKE ''TR\'' END');
SELECT dict_same('SELECT count(*), sum(id) FROM dict_f WHERE CASE WHEN id % 5 <> 3 THEN mode NOT LIKE ''TR\'' AND flag = ''A'' END');
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE mode LIKE ''TR\''');
SELECT gj_same('SELECT count(*) FROM dict_f WHERE substring(mode, 1, length(mode) - 3) = ''''');
-- a collation that takes more than the same bytes for equal
CREATE COLLATION dict_ignore (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE mode COLLATE dict_ignore = ''air''');
-- values that are in the dictionary, but not in any row that is visible
DELETE FROM dict_f WHERE mode = 'RAIL' AND id % 2 = 0;
UPDATE dict_f SET mode = 'FERRY' WHERE id % 4001 = 0;
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE mode = ''RAIL'' OR mode = ''FERRY''');
SELECT gj_same('SELECT count(*), sum(id) FROM dict_f WHERE mode <> ''RAIL'' AND mode LIKE ''%A%''');
-- fragments with dictionaries of their own, and some without
INSERT INTO dict_f (id, mode, clerk) SELECT i, CASE WHEN i < 200000 THEN 'other ' || i % 4 ELSE 'text ' || i END, 'clerk#' || i % 300 FROM generate_series(100001, 400000) i;
VACUUM ANALYZE dict_f;
SELECT gpujoin_prewarm('dict_f') > 0;
SELECT gj_same('SELECT f.mode, count(*), min(f.id), max(f.id) FROM dict_f f WHERE f.mode NOT LIKE ''text%5'' GROUP BY 1');
SELECT gj_same('SELECT f.clerk, count(*), sum(f.id) FROM dict_f f GROUP BY 1');
SELECT dict_same('SELECT count(*), sum(f.id) FROM dict_f f WHERE f.mode LIKE ''%1%'' AND f.clerk LIKE ''%5''');
SELECT dict_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_d d USING (id) WHERE f.mode LIKE ''%1%'' OR f.clerk LIKE ''%5''');
SELECT dict_same('SELECT f.clerk, count(*) FROM dict_f f WHERE f.clerk LIKE ''%7%'' GROUP BY 1');
SELECT gj_same('SELECT count(*), sum(f.id) FROM dict_f f JOIN dict_f g ON f.mode = g.mode AND f.clerk = g.clerk AND f.id < 50 AND g.id < 2000');
DROP TABLE dict_f, dict_d;
DROP COLLATION dict_ignore;
DROP FUNCTION dict_same, dict_asked;
