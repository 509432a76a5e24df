-- WHERE and join conditions: on the device where it knows them, else PostgreSQL's; the same rows always.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, i2 int2, i4 int4, i8 int8, d date, ts timestamp, tz timestamptz, x float8, b bool, s text, o oid);
INSERT INTO f
SELECT i, i % 20, CASE WHEN i % 11 <> 0 THEN i % 300 - 150 END, CASE WHEN i % 7 <> 0 THEN i * 13 % 1000 - 500 END,
	CASE WHEN i % 5 <> 0 THEN i::int8 * 3000000000 END, date '2026-01-01' + i % 60,
	timestamp '2026-01-01 12:00' + i % 60 * interval '1 hour', timestamptz '2026-01-01 12:00+02' + i % 60 * interval '1 hour',
	CASE i % 10 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' WHEN 4 THEN '0' WHEN 5 THEN NULL
		ELSE i / 4.0 - 100 END::float8,
	CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, 'text ' || i % 30, (3000000000 + i % 10)::oid
FROM generate_series(1, 1000) i;
CREATE TABLE g (k int, c int, name text, x float8, b bool, d date);
INSERT INTO g SELECT i, CASE WHEN i % 4 <> 0 THEN i END, 'name ' || i, i / 2.0, i % 2 = 0, date '2026-01-01' + i FROM generate_series(0, 19) i;
VACUUM ANALYZE f;

-- comparisons of every integer width, with each other and with constants
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i2 = 10', 'f.i2 <> 10', 'f.i2 < -100', 'f.i2 <= -100', 'f.i2 > 100', 'f.i2 >= 100',
	'f.i4 = 10', 'f.i4 <> 10', 'f.i4 < 0', 'f.i4 <= 0', 'f.i4 > 0', 'f.i4 >= 0',
	'f.i8 = 3000000000', 'f.i8 <> 3000000000', 'f.i8 < 90000000000', 'f.i8 >= 90000000000',
	'f.i2 = f.i4', 'f.i2 < f.i8', 'f.i4 > f.i8', 'f.i4 <> f.i2', 'f.i4 < 3000000000', 'f.i2 > 70000', '100 < f.i4',
	'f.i4 BETWEEN 0 AND 100', 'f.i4 NOT BETWEEN 0 AND 100', 'f.i8 BETWEEN f.i2 AND f.i4', 'f.o = 3000000003', 'f.o > 3000000003'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- AND, OR, NOT with NULL; IS NULL; booleans
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4 > 0 AND f.i2 > 0', 'f.i4 > 0 OR f.i2 > 0', 'NOT (f.i4 > 0)', 'NOT (f.i4 > 0 AND f.i2 > 0)', 'NOT (f.i4 > 0 OR f.i2 > 0)',
	'f.i4 > 0 OR f.i4 IS NULL', 'f.i4 IS NULL', 'f.i4 IS NOT NULL', 'f.i4 IS NULL AND f.i2 IS NULL', 'f.s IS NULL', 'f.s IS NOT NULL',
	'f.b', 'NOT f.b', 'f.b IS TRUE', 'f.b IS NOT TRUE', 'f.b IS FALSE', 'f.b IS NOT FALSE', 'f.b IS UNKNOWN', 'f.b IS NOT UNKNOWN',
	'f.b AND f.i4 > 0', 'f.b OR f.i4 > 0', 'f.b = true', 'f.b <> true', 'f.b = (f.i4 > 0)', '(f.i4 > 0) IS TRUE', '(f.i4 > 0 AND f.b) IS NOT TRUE',
	'(f.i4 > 0 OR NULL) AND f.b', '(f.i4 > 0 AND f.i2 < 0) OR (f.i8 > 0 AND NOT f.b) OR f.id = 7'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- lists
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4 IN (10, 23, 36, 49)', 'f.i4 NOT IN (10, 23, 36, 49)', 'f.i4 IN (10, 23, NULL)', 'f.i4 NOT IN (10, 23, NULL)',
	'f.i4 = ANY (''{10,23,36}'')', 'f.i4 <> ALL (''{10,23,36}'')', 'f.i4 = ANY (''{}''::int[])', 'f.i4 <> ALL (''{}''::int[])',
	'f.i2 IN (1, 2, 3)', 'f.i8 IN (3000000000, 6000000000)', 'f.i4 IN (1, 3000000000)', 'f.d IN (date ''2026-01-05'', date ''2026-01-06'')',
	'f.o IN (3000000003, 3000000004)', 'f.x IN (''NaN'', 0, 5)', 'f.x NOT IN (''NaN'', 0, 5)',
	'f.i4 = ANY (ARRAY[f.i2, 10])', 'f.i4 < ANY (''{10,20}'')', 'f.i4 IN (10)', 'f.i4 IN (10, 10, 10)', 'NOT (f.i4 IN (10, NULL))',
	'(f.i4 IN (10, NULL)) IS NULL'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- arithmetic
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4 + f.i2 > 100', 'f.i4 - f.i2 > 100', 'f.i4 * f.i2 > 1000', 'f.i4 + 1 = 11', 'f.i8 + f.i4 > 0', 'f.i8 - f.i2 < 0', 'f.i8 * 2 > 100',
	'-f.i4 > 100', 'abs(f.i4) > 400', 'f.i4 % 3 = 1', 'f.i4 / 7 = 2', 'f.i4 % -3 = -1', 'f.i4 / -7 = -2', '(f.i4 + 1) * (f.i2 - 1) > f.id',
	'f.id + g.k > 500', 'f.i4 = g.c * 13', 'f.i2 + f.i2 > 0', 'f.i4 * 2::int8 > 0'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- overflow and division by zero are PostgreSQL's errors
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4 + 2147483647 > 0', 'f.i4 * 2147483647 > 0', 'f.i4 - 2147483647 - f.id * 100 > 0', '-(f.i4 - 2147483148) > 0', 'f.i8 * 9000000000 > 0',
	'f.i8 + 9223372036854775807 > 0', 'f.i2 * f.i2 * 2::int2 > 0', 'f.i2 + 32767::int2 > 0', 'f.i4 / (f.id - 500) > 0', 'f.i4 % (f.id - 500) > 0',
	'f.i8 / (f.i8 - 3000000000) > 0', 'f.id / g.k > 0', 'f.x * 1e308 * 1e308 > 0', 'f.x / 0 > 0', 'abs(f.id - 2147483648) > 0'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- a row that would overflow, but that nobody asked for
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE CASE WHEN f.id < 10 THEN f.id * 200000000 > 0 END AND f.id < 10');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE f.id < 100 AND f.id * 20000000 > 0');

-- dates and times
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.d >= ''2026-02-01''', 'f.d = date ''2026-01-15''', 'f.d < ''infinity''', 'f.d > ''-infinity''', 'f.d BETWEEN ''2026-01-10'' AND ''2026-01-20''',
	'f.ts >= ''2026-01-02''', 'f.ts < timestamp ''2026-01-02 13:00:00.000001''', 'f.tz >= timestamptz ''2026-01-02 00:00+00''', 'f.d = g.d',
	'f.d > g.d', 'f.d + 1 = g.d', 'f.d - g.d > 10', 'f.ts + interval ''1 day'' > ''2026-01-04''', 'f.d::timestamp = f.ts', 'f.ts > f.d',
	'extract(month FROM f.d) = 2', 'date_trunc(''day'', f.ts) = ''2026-01-02'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- the zone of the session matters to some comparisons
SET timezone = 'Asia/Tokyo';
SELECT gj_where('f.tz >= f.ts');
SELECT gj_where('f.tz >= ''2026-01-02''');
SELECT gj_where('f.tz >= date ''2026-01-02''');
RESET timezone;

-- float8: NaN is greatest and equal to itself, -0 = 0
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.x = 0', 'f.x = ''-0''', 'f.x <> 0', 'f.x = ''NaN''', 'f.x <> ''NaN''', 'f.x > ''Infinity''', 'f.x >= ''Infinity''', 'f.x < ''-Infinity''', 'f.x <= ''-Infinity''',
	'f.x > 1e300', 'f.x < 1', 'f.x >= 0', 'f.x <= 0', 'f.x + 1 > 50', 'f.x - 1 > 50', 'f.x * 2 > 50', 'f.x / 2 > 50', '-f.x > 0', 'abs(f.x) < 50',
	'f.x + f.i4 > 0', 'f.i4 < f.x', 'f.x = g.x', 'f.x < g.x', 'f.x * f.x = f.x', 'f.x - f.x = 0', 'f.x IS NULL', 'f.i4 * 1.5::float8 > 3',
	'f.i8 * 0.5::float8 > 3', 'f.x::int8 > 3', 'sqrt(abs(f.x)) < 4', 'f.x = ANY (''{0,NaN}'')', 'f.x < 12.5::float4', 'f.x < 12.5::numeric'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- what the device does not know is PostgreSQL's: on one side, on both, and mixed with what it knows
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.s LIKE ''%1%''', 'lower(f.s) = ''text 3''', 'f.s < g.name', 'f.s = g.name', 'length(f.s) = 6 AND f.i4 > 0', 'f.i4 > 0 OR f.s LIKE ''%2''',
	'f.i4 > 0 AND (f.s || g.name) LIKE ''%1%''', 'f.s = ''text 3''', 'f.s IN (''text 3'', ''text 4'')', 'f.i4::text LIKE ''1%''', 'f.i4::numeric > 1.5',
	'f.i4 & 1 = 1', 'coalesce(f.i4, 0) = 0', 'CASE WHEN f.i4 > 0 THEN f.b ELSE g.b END', 'nullif(f.i4, 10) IS NULL', 'greatest(f.i4, f.i2) > 100',
	'f.i4 IS DISTINCT FROM f.i2', 'f.i4 IS NOT DISTINCT FROM f.i2', 'row(f.i4, f.i2) < row(f.i2, f.i4)', 'f.i4 = (SELECT 10)'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- subqueries and volatile functions: whoever runs them
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE ' || c) FROM unnest(ARRAY[
	'f.i4 NOT IN (SELECT 10 UNION ALL SELECT 23)', 'f.k IN (SELECT k FROM g WHERE c > 5)', 'EXISTS (SELECT FROM g h WHERE h.c = f.k AND h.b)',
	'NOT EXISTS (SELECT FROM g h WHERE h.c = f.k AND h.b)', 'random() >= 0', 'f.id > (random() * 0)::int', 'f.i4 > NULL'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- join conditions beyond the keys
SELECT gj_same('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k AND f.i4 > g.c');
SELECT gj_same('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k AND (f.i4 > g.c OR f.b)');
SELECT gj_same('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k AND f.s <> g.name');
SELECT gj_same('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k AND f.i4 + g.c > 10 AND f.x < g.x');
SELECT gj_same('SELECT f.id, g.name, h.name FROM f JOIN g ON f.k = g.k JOIN g h ON h.k = g.c AND h.k < f.i4 AND h.b <> g.b');
SELECT gj_same('SELECT f.id, g.name, h.name FROM f JOIN g ON f.k = g.k JOIN g h ON h.k = f.k WHERE f.i4 BETWEEN g.c AND h.k * 50');
-- keys that are expressions
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g ON f.k + 1 = g.k');
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g ON f.i4 % 20 = g.k');
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k * 2 AND f.i4 > 0');
SELECT gj_equal('SELECT f.id, g.name FROM f JOIN g ON f.k * 2147483647 = g.k');
-- always true, never true, constant
SELECT gj_same('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE true');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE false');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE f.k = 3 AND g.k = 4');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE f.k = 3');
SELECT gj_equal('SELECT f.id FROM f JOIN g ON f.k = g.k WHERE current_setting(''gpujoin.enabled'') IS NOT NULL');

-- a function of the user's is called with what PostgreSQL would call it with
CREATE FUNCTION picky(i int) RETURNS bool LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF i < 0 THEN RAISE EXCEPTION 'negative'; END IF;
	RETURN i % 2 = 0;
END $$;
SELECT gj_where('picky(f.id)');
SELECT gj_where('picky(f.i4)');

DROP TABLE f, g;
DROP FUNCTION picky;
