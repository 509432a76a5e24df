-- Variances and deviations of int8, numeric, float4 and float8: over a table, over joins, grouped, with FILTER.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, i4 int4, i8 int8, n numeric(12,3), w numeric(18,0), x float8, y float4);
INSERT INTO f SELECT i, i % 50, i, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807 - i WHEN 2 THEN -9223372036854775808 + i ELSE (i - 2000) * 4000000007 END,
	CASE WHEN i % 11 <> 0 THEN (i * 7919 % 1000000 - 500000) / 1000.0 END, CASE WHEN i % 3 = 0 THEN 999999999999999999 - i ELSE -i END,
	CASE WHEN i % 9 <> 0 THEN 1000000 + (i * 104729 % 100003) / 7.0 END, CASE WHEN i % 8 <> 0 THEN (i * 17 % 1000 - 500) / 4.0 END
FROM generate_series(1, 5000) i;
INSERT INTO f VALUES (9001, 1001, 1, 5, 1.5, 5, 2.5, 2.5), (9002, 1002, 1, -3, 2.25, 7, -3, 4), (9003, 1002, 1, 4, 2.25, 7, 0.25, 4), (9004, 1003, 1, NULL, NULL, NULL, NULL, NULL), (9005, 1004, 1, 7, 7, 7, 7, 7), (9006, 1004, 1, 7, 7, 7, 7, 7);
CREATE TABLE g (k int PRIMARY KEY, c int);
INSERT INTO g SELECT i, i % 3 FROM generate_series(0, 1003) i;
VACUUM ANALYZE f, g;

-- an answer that anybody can check
SELECT k, var_pop(i8), var_samp(i8), stddev_pop(i8), stddev(i8), var_pop(x), variance(y) FROM f WHERE k > 1000 GROUP BY k ORDER BY k;

-- exact: every digit is PostgreSQL's
SELECT a, c, gj_same(format('SELECT %s(%s) FROM f', a, c)), gj_same(format('SELECT %s(f.%s) FROM f JOIN g USING (k) WHERE g.c > 0', a, c)), gj_same(format('SELECT k, %s(%s), count(*) FROM f GROUP BY k', a, c)),
	gj_same(format('SELECT g.c, %s(f.%s) FILTER (WHERE f.i4 %% 2 = 0), %s(f.%s) FROM f JOIN g USING (k) GROUP BY g.c', a, c, a, c))
FROM unnest(ARRAY['var_pop', 'var_samp', 'variance', 'stddev_pop', 'stddev_samp', 'stddev']) a, unnest(ARRAY['i8', 'n', 'w']) c ORDER BY 2, 1;
SELECT gj_same('SELECT variance(i8 / 1000 + k), stddev(n * 2), stddev(n - n), var_pop(n::numeric(12,1)) FROM f');
SELECT gj_same('SELECT variance(i8), sum(i8), avg(i8), variance(i4), stddev(i4), var_pop(n), avg(n) FROM f WHERE id < 0');
SELECT gj_same('SELECT variance(CASE WHEN i4 % 2 = 0 THEN n ELSE w END) FROM f'), gj_same('SELECT variance(DISTINCT i8) FROM f'), gj_same('SELECT k, variance(i8) FROM f GROUP BY k HAVING variance(i8) > 0');
-- the scale of what a filter compares is not that of the integers
SELECT gj_same('SELECT k, var_pop(i4) FILTER (WHERE CASE n WHEN 1.5 THEN i8 > 0 ELSE k > 3 END), variance(CASE WHEN n > 0 THEN i4 END) FROM f GROUP BY k');

-- floats: the same but for a relative difference of 1e-12, also where the mean is far larger than the deviation; queries return a key and a value
CREATE FUNCTION gj_close(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	arrays text := format('SELECT array_agg(v ORDER BY k), array_agg(k::text ORDER BY k) FROM (%s) s(k, v)', query);
	native float8[]; forced float8[];
	native_keys text[]; forced_keys text[];
BEGIN
	SET gpujoin.enabled = off;
	EXECUTE arrays INTO native, native_keys;
	SET gpujoin.enabled = on;
	EXECUTE arrays INTO forced, forced_keys;
	IF native_keys IS DISTINCT FROM forced_keys OR EXISTS (SELECT FROM unnest(native, forced) v(a, b)
			WHERE a IS DISTINCT FROM b AND (a IS NULL OR b IS NULL OR NOT abs(a - b) <= 1e-12 * greatest(abs(a), abs(b)))) THEN
		RETURN format('DIFFERENT: %s, %s', native, forced);
	END IF;
	RETURN format('close, %s rows, %s', cardinality(native), gj_how(query));
END $$;
SELECT a, c, gj_close(format('SELECT 0, %s(%s) FROM f', a, c)), gj_close(format('SELECT 0, %s(f.%s) FROM f JOIN g USING (k) WHERE g.c > 0', a, c)), gj_close(format('SELECT k, %s(%s) FROM f GROUP BY k', a, c)),
	gj_close(format('SELECT g.c, %s(f.%s) FILTER (WHERE f.i4 %% 2 = 0) FROM f JOIN g USING (k) GROUP BY g.c', a, c)), gj_close(format('SELECT id, %s(%s) FROM f GROUP BY id', a, c))
FROM unnest(ARRAY['var_pop', 'var_samp', 'variance', 'stddev_pop', 'stddev_samp', 'stddev']) a, unnest(ARRAY['x', 'y']) c ORDER BY 2, 1;
SELECT gj_close('SELECT 0, variance(x * 1000 + i4) FROM f'), gj_close('SELECT 0, stddev(-y) FROM f'), gj_close('SELECT k, stddev(1.5::float8 + k * 0) FROM f GROUP BY k'), gj_close('SELECT k, variance(1e9 + i4 / 4.0::float8) FROM f GROUP BY k');
SELECT gj_same('SELECT variance(x), stddev_pop(y) FROM f WHERE id < 0'), gj_same('SELECT variance(x), var_pop(x) FROM f WHERE id = 9001');
SELECT gj_same('SELECT id % 3, variance(x) FROM f WHERE id > 9000 GROUP BY 1');

-- what is not finite, and what overflows, is PostgreSQL's
CREATE TABLE fl AS SELECT i AS id, i % 4 AS k, CASE i % 4 WHEN 0 THEN i WHEN 1 THEN 'Infinity'::float8 WHEN 2 THEN 'NaN' ELSE 1e200 * i END AS x FROM generate_series(1, 40) i;
SELECT k, CASE k WHEN 0 THEN gj_close('SELECT 0, variance(x) FROM fl WHERE k = 0') ELSE gj_same(format('SELECT variance(x), stddev_pop(x) FROM fl WHERE k = %s', k)) END,
	CASE k WHEN 0 THEN gj_close('SELECT id % 3, variance(x) FROM fl WHERE k = 0 GROUP BY 1') ELSE gj_same(format('SELECT id %% 3, stddev(x) FROM fl WHERE k = %s GROUP BY 1', k)) END FROM generate_series(0, 3) k;
SELECT gj_same('SELECT k, variance(x) FROM fl WHERE k < 3 GROUP BY k');
SELECT gj_same('SELECT k, variance(x) FROM fl GROUP BY k ORDER BY k LIMIT 1'), gj_close('SELECT k, variance(x) FROM fl WHERE k IN (0, 2) GROUP BY k ORDER BY k LIMIT 1');
INSERT INTO f (k, n) VALUES (3, 'NaN');
SELECT gj_same('SELECT variance(n) FROM f'), gj_same('SELECT k, stddev(n) FROM f GROUP BY k');
DROP TABLE f, g, fl;
DROP FUNCTION gj_close;
