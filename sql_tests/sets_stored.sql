-- Arrays of 1 MB and more that lie in TOAST, as they are or compressed: they go to the device in parts.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on

CREATE TABLE stored (way text, kind text, a2 int2[], b2 int2[], a4 int4[], b4 int4[], a8 int8[], b8 int8[]);
CREATE TABLE stored_external (LIKE stored); CREATE TABLE stored_main (LIKE stored); CREATE TABLE stored_pglz (LIKE stored); CREATE TABLE stored_lz4 (LIKE stored);
-- where the server has no LZ4, pglz stands in
DO $$
DECLARE
	c text;
	lz4 bool := 'lz4' = ANY ((SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression')::text[]);
BEGIN
	FOREACH c IN ARRAY '{a2,b2,a4,b4,a8,b8}'::text[] LOOP
		EXECUTE format('ALTER TABLE stored ALTER %1$s SET STORAGE EXTERNAL', c);
		EXECUTE format('ALTER TABLE stored_external ALTER %1$s SET STORAGE EXTERNAL', c);
		EXECUTE format('ALTER TABLE stored_main ALTER %1$s SET STORAGE MAIN, ALTER %1$s SET COMPRESSION pglz', c);
		EXECUTE format('ALTER TABLE stored_pglz ALTER %1$s SET STORAGE EXTENDED, ALTER %1$s SET COMPRESSION pglz', c);
		EXECUTE format('ALTER TABLE stored_lz4 ALTER %1$s SET STORAGE EXTENDED, ALTER %1$s SET COMPRESSION %2$s', c, CASE WHEN lz4 THEN 'lz4' ELSE 'pglz' END);
	END LOOP;
END $$;

-- a and b of n elements: sorted; in any order; with long repetitions; of two dimensions
CREATE FUNCTION stored_values(kind text, n int, seed int) RETURNS int8[] LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE kind WHEN 'sorted' THEN array_agg(i * 20 + h % 5 ORDER BY i) WHEN 'shuffled' THEN array_agg(h % 3000017 ORDER BY i)
		WHEN 'repeated' THEN array_agg(CASE WHEN i % 20000 < 17000 THEN i / 20000 * 7 + seed % 2 ELSE i * 20 + h % 5 END ORDER BY i) END
	FROM (SELECT i::int8 AS i, hashint8extended(i, seed) & 1048575 AS h FROM generate_series(1, n) i) x
$$;
INSERT INTO stored (kind, a8, b8) SELECT k, stored_values(k, n, 1), stored_values(k, m, 2) FROM (VALUES ('sorted', 300000, 270011), ('shuffled', 280001, 300000), ('repeated', 300000, 300003)) v(k, n, m);
UPDATE stored SET a4 = a8::int4[], b4 = b8::int4[], a2 = (SELECT array_agg(e % 32749 ORDER BY i) FROM (SELECT unnest(a8 || a8) % 32749 AS e, generate_series(1, 2 * cardinality(a8)) AS i) x)::int2[],
	b2 = (SELECT array_agg(e ORDER BY i) FROM (SELECT unnest(b8 || b8) % 32603 AS e, generate_series(1, 2 * cardinality(b8)) AS i) x)::int2[];
INSERT INTO stored (kind, a4, b4) SELECT 'two dimensions', array_agg(ARRAY[i % 9999, i * 3, 7, 7]), (array_agg(ARRAY[i * 2, 7, 7, 7]))[1:79999][:] FROM generate_series(1, 80000) i;
INSERT INTO stored_external SELECT 'external', kind, a2, b2, a4, b4, a8, b8 FROM stored;
-- an array that is compressed already would stay as it is
CREATE FUNCTION stored_copy(a anyarray) RETURNS anyarray LANGUAGE sql AS 'SELECT a || a[1:0]';
INSERT INTO stored_main SELECT 'main', kind, stored_copy(a2), stored_copy(b2), stored_copy(a4), stored_copy(b4), stored_copy(a8), stored_copy(b8) FROM stored;
INSERT INTO stored_pglz SELECT 'pglz', kind, stored_copy(a2), stored_copy(b2), stored_copy(a4), stored_copy(b4), stored_copy(a8), stored_copy(b8) FROM stored;
INSERT INTO stored_lz4 SELECT 'lz4', kind, stored_copy(a2), stored_copy(b2), stored_copy(a4), stored_copy(b4), stored_copy(a8), stored_copy(b8) FROM stored;
CREATE VIEW stored_all AS SELECT * FROM stored_external UNION ALL TABLE stored_main UNION ALL TABLE stored_pglz UNION ALL TABLE stored_lz4;
-- int8 are compressed, int4 hardly ever
SELECT way, kind, pg_column_compression(a2) IS NOT NULL AS a2, pg_column_compression(a4) IS NOT NULL AS a4, pg_column_compression(a8) IS NOT NULL AS a8, octet_length(a2::text) > 0 FROM stored_all ORDER BY way, kind;

-- the same from the process and from the device, where nothing falls back
CREATE TABLE stored_results AS SELECT NULL::text AS place, way, kind, ''::text AS what, ''::text AS result FROM stored_all LIMIT 0;
CREATE FUNCTION stored_run(place text) RETURNS bigint LANGUAGE sql AS $$
	INSERT INTO stored_results SELECT place, way, kind, what, result FROM stored_all, LATERAL (VALUES
		('int2', concat_ws(' ', hash_array_extended(gpu_intersect(a2, b2), 0), gpu_intersect_count(a2, b2), hash_array_extended(gpu_union(b2, a2), 0), gpu_jaccard(a2, b2))),
		('int4', concat_ws(' ', hash_array_extended(gpu_intersect(a4, b4), 0), gpu_intersect_count(a4, b4), hash_array_extended(gpu_except(b4, a4), 0), gpu_contains(a4, a4))),
		('int8', concat_ws(' ', hash_array_extended(gpu_intersect(a8, b8), 0), gpu_intersect_count(a8, b8), hash_array_extended(gpu_union(b8, a8), 0), gpu_overlaps(a8, b8))),
		('short', concat_ws(' ', gpu_intersect_count(a8, ARRAY[1, 7, 27]), gpu_intersect_count(ARRAY[1, 7, 27, 9], a4)))) v(what, result);
	SELECT count(*) FROM stored_results r WHERE r.place = stored_run.place
$$;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT stored_run('process');
SET gpujoin.set_device_min_elements = 0; SET gpujoin.forbid_fallback = on;
CREATE TEMPORARY TABLE stat_before AS SELECT * FROM gpujoin_stat;
SELECT stored_run('device');
SELECT sum(s.count) - (SELECT coalesce(sum(count), 0) FROM stat_before WHERE outcome = 'completed') > 100 AS completed FROM gpujoin_stat s WHERE outcome = 'completed';
SELECT kind, what, count(DISTINCT result) AS results, count(DISTINCT place || way) AS ways FROM stored_results WHERE result <> '' GROUP BY kind, what ORDER BY kind, what;
-- both arguments are one value
SELECT way, gpu_intersect_count(a8, a8) = cardinality(a8) FROM stored_all WHERE kind = 'sorted' ORDER BY way;

-- arrays with a NULL are read as a whole
CREATE TABLE stored_null (LIKE stored_pglz INCLUDING ALL);
INSERT INTO stored_null (a8, b8) SELECT a8 || NULL::int8 || a8, stored_copy(b8) FROM stored WHERE kind = 'sorted';
\set VERBOSITY sqlstate
SELECT gpu_intersect_count(a8, b8) FROM stored_null;
-- a cancel in the middle leaves a session that goes on
SET statement_timeout = '30ms';
SELECT sum(gpu_intersect_count(a8, b8)) FROM stored_pglz, generate_series(1, 1000);
SELECT sum(gpu_intersect_count(a8, b8)) FROM stored_external, generate_series(1, 1000);
RESET statement_timeout;
\set VERBOSITY default
SELECT way, gpu_contains(a8, a8), gpu_contains(a4, a4) FROM stored_all WHERE kind = 'shuffled' ORDER BY way;
RESET gpujoin.forbid_fallback;
-- the device fails in the middle: they are read again
SET gpujoin.fail_at = 'probe';
SELECT way, gpu_intersect_count(a8, a8) = cardinality(a8) FROM stored_all WHERE kind = 'sorted' ORDER BY way;
RESET gpujoin.fail_at; RESET gpujoin.set_device_min_elements;

-- from gpujoin.set_device_min_elements on the device is used, but not for sorted arrays in memory; 0: for all
CREATE FUNCTION stored_calls(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome = 'completed');
BEGIN
	EXECUTE query;
	RETURN (SELECT sum(count) - before FROM gpujoin_stat WHERE outcome = 'completed');
END $$;
CREATE FUNCTION stored_where(kind text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', 'in memory', stored_calls(format('SELECT gpu_intersect_count(stored_copy(a8), stored_copy(b8)) FROM stored WHERE kind = %1$L', kind)),
		stored_calls(format('SELECT gpu_union(stored_copy(a2), stored_copy(b2)) FROM stored WHERE kind = %1$L', kind)),
		'stored', stored_calls(format('SELECT gpu_intersect_count(a8, b8) FROM stored WHERE kind = %1$L', kind)), stored_calls(format('SELECT gpu_intersect_count(stored_copy(a8), b8) FROM stored_pglz WHERE kind = %1$L', kind)))
$$;
UPDATE stored SET a2 = array(SELECT e FROM unnest(a2) e ORDER BY e), b2 = array(SELECT e FROM unnest(b2) e ORDER BY e) WHERE kind = 'sorted';
SELECT least, kind, set_config('gpujoin.set_device_min_elements', least::text, false) IS NOT NULL, stored_where(kind)
FROM (VALUES (0, 'sorted'), (500000, 'sorted'), (2147483647, 'sorted'), (0, 'shuffled'), (500000, 'shuffled'), (2147483647, 'shuffled')) v(least, kind);
-- one of the two is not sorted, or only its end is not
SET gpujoin.set_device_min_elements = 500000;
SELECT stored_calls('SELECT gpu_intersect_count(a, b) FROM (SELECT array_agg(i) AS a, array_agg(i * 7919 % 400009) AS b FROM generate_series(1, 400000::bigint) i) x'),
	stored_calls('SELECT gpu_intersect_count(a, a || a[1:200000]) FROM (SELECT array_agg(i) AS a FROM generate_series(1, 400000::bigint) i) x'),
	stored_calls('SELECT gpu_intersect_count(a, a) FROM (SELECT array_agg(i / 2) AS a FROM generate_series(1, 400000::bigint) i) x');
RESET gpujoin.set_device_min_elements;

DROP VIEW stored_all;
DROP TABLE stored, stored_external, stored_main, stored_pglz, stored_lz4, stored_null, stored_results, stat_before;
DROP FUNCTION stored_values, stored_run, stored_copy, stored_calls, stored_where;
