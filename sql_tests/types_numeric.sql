-- numeric with a scale: conditions, arithmetic, keys and exact aggregates on the device.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE DOMAIN price AS numeric(9, 2);
CREATE TABLE f (id int, k int, n numeric(12, 2), d numeric(4, 4), w numeric(18, 0), t numeric(10, 3), z numeric(15, 6), p price, u numeric, x float8);
INSERT INTO f
SELECT i, i % 20, CASE WHEN i % 11 <> 0 THEN (i * 7919 % 100003 - 50000) / 100.0 END, (i % 11) / 100.0, (i % 7 - 3) * 100000000000000000, (i % 2000 - 1000) / 8.0,
	(i - 500) * 0.000001 * power(10, i % 7)::int, i / 4.0, i / 3.0, i / 4.0
FROM generate_series(1, 1000) i;
INSERT INTO f VALUES (1001, 1, 0, 0, 0, 0, 0, 0, 0, 0), (1002, 2, 9999999999.99, 0.9999, 999999999999999999, 9999999.999, 999999999.999999, 9999999.99, 1, 1),
	(1003, 3, -9999999999.99, -0.9999, -999999999999999999, -9999999.999, -999999999.999999, -9999999.99, 1, 1), (1004, 4, 0.01, 0.0001, 1, 0.001, 0.000001, 0.01, 1, 1),
	(1005, 5, 10000, 0, 10000, 10000, 10000, 10000, 1, 1), (1006, 6, 100, 0, 99999999, 9999.001, 10000.0001, 0.1, 1, 1);
CREATE TABLE g (k int, n numeric(12, 2), m numeric(14, 4), name text);
INSERT INTO g SELECT i, (i * 7919 % 100003 - 50000) / 100.0, i / 100.0, 'name ' || i FROM generate_series(0, 19) i;
INSERT INTO g VALUES (NULL, NULL, NULL, NULL), (7, 0, 0.01, 'zero');
VACUUM ANALYZE f;

SELECT gj_where(c, 'f.id, f.n, g.name') FROM unnest(ARRAY[
	'f.n = 78.38', 'f.n <> 78.38', 'f.n < 0', 'f.n <= -100.5', 'f.n > 100.123456', 'f.n >= 9999999999.99', 'f.n BETWEEN -10 AND 10', 'f.d = 0.05', 'f.d BETWEEN 0.05 AND 0.07',
	'f.n = g.n', 'f.n > g.m', 'f.d = g.m', 'f.t < f.n', 'f.w > 0', 'f.w = f.n', 'f.n = f.id', 'f.n > f.k', 'f.z > 0.001', 'f.z < f.d', 'f.p = 10.5', 'f.n IS NULL', 'f.n IS NOT NULL',
	'f.n IN (78.38, 0, 100.00)', 'f.n NOT IN (78.38, 0)', 'f.n IN (78.38, NULL)', 'f.d IN (0.05, 0.07, 0.123456789)', 'f.n IN (0.001)', 'f.n NOT IN (0.001)', 'f.n = ANY (''{78.38,1e3}'')',
	'f.n = 1e30', 'f.n < ''NaN''', 'f.n < ''Infinity''', 'f.n = 0.0000000000000000000001', 'f.u = 1', 'f.u > f.n'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_where(c, 'f.id, f.n, g.name') FROM unnest(ARRAY[
	'f.n + f.d > 10', 'f.n - g.n = 0', 'f.n * f.d > 1.5', 'f.n * (1 - f.d) > 100', 'f.n * (1 - f.d) * (1 + f.d) > 100', '-f.n > 10', 'abs(f.n) < 10', 'f.n % 10 = 3.38', 'mod(f.n, f.t) > 1', 'f.n % f.d > 0',
	'f.n + f.id = 100', 'f.w + f.w > 0', 'f.w * 100 > 0', 'f.n / 3 > 1', 'round(f.n) = 78', 'round(f.n, 1) = 78.4', 'round(f.n, 4) = 78.38', 'trunc(f.n) = -78', 'trunc(f.n, 1) = 78.3', 'floor(f.n) = -79',
	'ceil(f.n) = 79', 'ceiling(f.t) = 10', 'floor(f.t) = -10', 'round(f.t, 2) = 1.13', 'round(f.t, -1) = 10', 'sign(f.n) = -1', 'f.n::int = 78', 'f.t::int = 2', 'f.t::int8 = -2', 'f.n::int2 > 0', 'f.n::float8 = 78.38', 'f.t::float8 < f.x',
	'f.w::float8 > 0', 'f.z::float8 > 0.5', 'f.n::numeric(6,1) > 0', 'f.d::numeric(6,2) = 0.05', 'f.t::numeric(10,1) = 1.1', 'f.x::numeric > 1', 'f.id::numeric(8,2) = 78', 'f.n::text = ''78.38''',
	'greatest(f.n, f.d, g.m) > 100', 'least(f.n, f.d) < 0', 'coalesce(f.n, f.d) > 0.05', 'coalesce(f.n, 0) = 0', 'nullif(f.n, 78.38) IS NULL', 'CASE WHEN f.k > 3 THEN f.n ELSE f.d END > 0.06',
	'CASE f.n WHEN 78.38 THEN 1 WHEN 0 THEN 2 END = 1', 'f.n IS DISTINCT FROM g.n', 'f.n * f.n * f.n * f.n > 0', 'f.z * f.z * f.z > 0'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- join keys
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON ' || c) FROM unnest(ARRAY[
	'f.n = g.n', 'f.d = g.m', 'f.n = g.m', 'f.k = g.m * 100', 'f.n + 1 = g.n + 1', 'f.n = g.n AND f.k = g.k', 'f.id = g.n', 'f.u = g.n', 'round(f.n) = g.k', 'f.z * 1000000 = g.k'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- aggregates: value and digits shown are PostgreSQL's
SELECT gj_device('SELECT ' || c || ' FROM f JOIN g ON f.k = g.k') FROM unnest(ARRAY[
	'sum(f.n), avg(f.n), min(f.n), max(f.n), count(f.n)', 'sum(f.d), avg(f.d), min(f.d), max(f.d)', 'sum(f.w), avg(f.w), min(f.w), max(f.w)', 'sum(f.z), avg(f.z), min(f.z), max(f.z)',
	'sum(f.n * (1 - f.d))', 'sum(f.n * (1 - f.d) * (1 + f.d)), avg(f.n * (1 - f.d))', 'sum(f.n * f.id)', 'sum(f.n + f.d), min(f.n * f.d), max(-f.n)', 'avg(f.n) * 2, sum(f.n) / sum(f.d)',
	'sum(round(f.n, 1)), sum(round(f.n)), sum(trunc(f.t, 2)), min(ceil(f.t))', 'sum(f.n::int), sum(f.n::float8), sum(f.id::numeric), avg(f.id::numeric(10,3))',
	'sum(CASE WHEN f.k < 5 THEN f.n * (1 - f.d) ELSE 0 END) / sum(f.n * (1 - f.d))', 'sum(CASE WHEN f.k < 0 THEN f.n * (1 - f.d) ELSE 0 END), avg(CASE WHEN f.k < 0 THEN f.n ELSE 0 END)',
	'sum(CASE WHEN f.k < 5 THEN f.n WHEN f.k < 10 THEN f.d ELSE 0 END), avg(CASE WHEN f.k < 5 THEN f.n WHEN f.k < 10 THEN f.d END)', 'min(CASE WHEN f.k < 5 THEN f.n ELSE 0 END)',
	'sum(CASE WHEN f.k < 5 THEN f.n END), min(CASE WHEN f.k < 5 THEN f.n END)', 'sum((CASE WHEN f.k < 5 THEN f.n ELSE 0 END) * f.d + 1)', 'sum(coalesce(f.n, 0))', 'sum(f.n) FILTER (WHERE f.k < 0), sum(f.n) FILTER (WHERE f.d > 0.05)',
	'sum(f.u)', 'sum(f.p), min(f.p)', 'count(DISTINCT f.n), sum(DISTINCT f.n), avg(DISTINCT f.n)', 'sum(DISTINCT f.d)', 'avg(DISTINCT f.n * f.d), count(DISTINCT f.n * f.d)', 'sum(DISTINCT CASE WHEN f.k > 3 THEN f.n ELSE 0 END)', 'stddev(f.n)', 'sum(f.n * f.n * f.n * f.n)'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT f.k, sum(f.n), avg(f.d), min(f.z), max(f.w), sum(CASE WHEN f.id % 50 = f.k THEN f.n ELSE 0 END) FROM f JOIN g ON f.k = g.k GROUP BY f.k');
SELECT gj_device('SELECT f.d, g.m, count(*) FROM f JOIN g ON f.k = g.k GROUP BY f.d, g.m');
SELECT gj_device('SELECT f.u, count(*) FROM f JOIN g ON f.k = g.k WHERE f.id <= 1000 GROUP BY f.u');
SELECT gj_device('SELECT DISTINCT d FROM f');
SELECT gj_device('SELECT f.n * 2, extract(year FROM date ''2000-01-01'' + f.k * 100), count(*) FROM f JOIN g ON f.k = g.k GROUP BY 1, 2');
SELECT gj_device('SELECT k, sum(DISTINCT d), avg(DISTINCT d) FROM f GROUP BY k');
SELECT gj_device('SELECT sum(n), sum(n * (1 - d)), avg(z) FROM f WHERE d BETWEEN 0.05 AND 0.07 AND n < 24');

-- NaN fits numeric(p, s), and the device has none; one that nobody looks at does no harm
INSERT INTO f VALUES (2000, 3, 'NaN', 0, 0, 0, 0, 0, 'NaN', 0);
SELECT gj_where('f.n > 100', 'f.id, f.n, g.name');
SELECT gj_where('f.d = 0.05', 'f.id, f.n, g.name');
SELECT gj_where('f.id < 2000 AND f.n > 100', 'f.id, f.n, g.name');
SELECT gj_where('CASE WHEN f.id < 2000 THEN f.n > 100 ELSE false END', 'f.id, f.n, g.name');
SELECT gj_device('SELECT sum(f.n), max(f.n), min(f.n), avg(f.n) FROM f JOIN g ON f.k = g.k');
SELECT gj_device('SELECT f.n, count(*) FROM f JOIN g ON f.k = g.k GROUP BY f.n');
-- values that 64 bits do not hold, scales that differ
CREATE TABLE h (k int, wide numeric(30, 2), neg numeric(5, -2), free numeric);
INSERT INTO h SELECT i, i, i * 1000, i FROM generate_series(1, 20) i;
SELECT gj_device('SELECT h.k, h.wide, g.name FROM h JOIN g USING (k) WHERE h.wide > 5');
INSERT INTO h VALUES (1, 1e25, 0, 1e25);
SELECT gj_device('SELECT h.k, h.wide, g.name FROM h JOIN g USING (k) WHERE h.wide > 5');
SELECT gj_device('SELECT h.k, h.neg, g.name FROM h JOIN g USING (k) WHERE h.neg > 500');
ALTER TABLE h ALTER free TYPE numeric(40, 1);
SELECT gj_device('SELECT h.k, h.free, g.name FROM h JOIN g USING (k) WHERE h.k > 1 AND h.free > 5');
-- parameters have no scale that is known beforehand
SET plan_cache_mode = force_generic_plan;
PREPARE above(numeric) AS SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE f.id < 2000 AND f.n > $1;
SELECT gj_how('EXECUTE above(1)');
SELECT gj_same('EXECUTE above(100.123)');
PREPARE any_of(numeric[]) AS SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE f.id < 2000 AND f.n = ANY ($1);
SELECT gj_how('EXECUTE any_of(''{}'')');
SELECT gj_same('EXECUTE any_of(''{100,78.38,0.001,NULL}'')');
SELECT gj_same('EXECUTE any_of(''{0.001}'')');
SELECT gj_same('EXECUTE any_of(''{}'')');
DEALLOCATE ALL;

DROP TABLE f, g, h;
DROP DOMAIN price;
