-- Ungrouped aggregates over joins on the device; all others above the join.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (k int, i2 int2, i4 int4, i8 int8, d date, ts timestamp, tz timestamptz, x float8, n numeric(10,2), t text, b bool, o oid);
INSERT INTO f
SELECT i % 10, CASE WHEN i % 11 <> 0 THEN i % 300 - 150 END, CASE WHEN i % 7 <> 0 THEN i * 13 % 1000 - 500 END,
	CASE WHEN i % 5 <> 0 THEN i::int8 * 3000000000 END, date '2026-01-01' + i % 60,
	timestamp '2026-01-01 12:00' + i % 60 * interval '1 hour', timestamptz '2026-01-01 12:00+02' + i % 60 * interval '1 hour',
	CASE WHEN i % 9 <> 0 THEN i / 4.0 END, i / 100.0, 'text ' || i % 30, i % 2 = 0, (4000000000 + i)::oid
FROM generate_series(1, 2000) i;
CREATE TABLE g (k int, c int, gx float8);
INSERT INTO g SELECT i % 10, i, i / 2.0 FROM generate_series(0, 19) i;
VACUUM ANALYZE f, g;

CREATE FUNCTION agg(list text) RETURNS text LANGUAGE sql AS
	$$ SELECT gj_same('SELECT ' || list || ' FROM f JOIN g ON f.k = g.k') $$;

-- an answer that anybody can check: each row of f meets two rows of g
SELECT count(*), count(f.i2), sum(f.k), min(f.k), max(f.k), avg(f.k), sum(g.c) FROM f JOIN g ON f.k = g.k;

SELECT agg(list) FROM unnest(ARRAY[
	'count(*)', 'count(1)', 'count(f.i4)', 'count(f.t)', 'count(f.n)', 'count(f.x), count(f.b), count(f.d)',
	'sum(f.i2)', 'sum(f.i4)', 'sum(f.i8)', 'min(f.i2), max(f.i2)', 'min(f.i4), max(f.i4)', 'min(f.i8), max(f.i8)', 'avg(f.i2)', 'avg(f.i4)', 'avg(f.i8)',
	'min(f.d), max(f.d)', 'min(f.ts), max(f.ts)', 'min(f.tz), max(f.tz)', 'min(f.o), max(f.o)', 'sum(f.x)', 'avg(f.x)', 'min(f.x), max(f.x)',
	'count(*), sum(f.i4), min(f.i4), max(f.i4), avg(f.i4), sum(g.c), count(g.gx), max(g.gx)'
]) WITH ORDINALITY AS l(list, n) ORDER BY n;

-- over expressions, and expressions over aggregates
SELECT agg(list) FROM unnest(ARRAY[
	'sum(f.i4 + g.c)', 'sum(f.i4 - g.c)', 'sum(f.i4 * g.c)', 'sum(f.i8 + f.i4)', 'avg(f.i2 * f.i4)', 'max(f.i4 * 2 + 1)', 'min(-f.i4)', 'count(f.i4 + f.i2)',
	'sum(f.x * g.gx)', 'min(f.x - g.gx), max(f.x + 1)', 'sum(f.i4) + count(*)', 'sum(f.i4)::float8 / count(*)', 'max(f.i4) - min(f.i4)', 'round(avg(f.i4), 3)',
	'sum(f.i4) > 0', 'sum(f.i4), sum(f.i4)', 'coalesce(sum(f.i4), 0)', '''total: '' || sum(f.i4)', 'sum(abs(f.i4))', 'sum(f.i4 % 7)', 'sum(f.i4 / 3)', 'count(f.i4 > 0)',
	'sum(f.i4::int8 * f.i8)', 'max(f.d) - min(f.d)', 'sum(1)', 'sum(NULL::int)', 'now() IS NOT NULL, count(*)'
]) WITH ORDINALITY AS l(list, n) ORDER BY n;

-- sums beyond 64 bits; averages of huge values; the exact digits
CREATE TABLE huge (k int, v int8);
INSERT INTO huge SELECT i % 10, CASE WHEN i % 3 = 0 THEN -9223372036854775808 ELSE 9223372036854775807 - i END FROM generate_series(1, 300) i;
SELECT sum(h.v), avg(h.v), min(h.v), max(h.v) FROM huge h JOIN g ON h.k = g.k;
SELECT gj_same('SELECT sum(h.v), avg(h.v), min(h.v), max(h.v), count(h.v) FROM huge h JOIN g ON h.k = g.k');
SELECT gj_same('SELECT sum(h.v) FROM huge h JOIN g ON h.k = g.k WHERE h.v > 0');
SELECT gj_same('SELECT sum(h.v) FROM huge h JOIN g ON h.k = g.k WHERE h.v < 0');
SELECT gj_same('SELECT sum(h.v + 1000000) FROM huge h JOIN g ON h.k = g.k');
SELECT gj_same('SELECT sum(h.v::int4) FROM huge h JOIN g ON h.k = g.k');

-- float8: NaN, infinities, -0
CREATE TABLE fl (k int, x float8);
INSERT INTO fl VALUES (1, 'NaN'), (1, 1), (2, 'Infinity'), (2, 5), (3, '-Infinity'), (3, 7), (4, '-0'), (4, '0'), (5, NULL), (6, 1e308), (6, 1e308), (7, 2), (7, 4);
SELECT gj_same(format('SELECT count(x), sum(x), avg(x), min(x), max(x) FROM fl JOIN g USING (k) WHERE k + 0 = ANY (''%s'')', s)) FROM
	unnest(ARRAY['{7}', '{5}', '{7,5}']) WITH ORDINALITY AS t(s, n) ORDER BY n;
SELECT gj_same(format('SELECT count(x), min(x), max(x) FROM fl JOIN g USING (k) WHERE k + 0 = ANY (''%s'')', s)) FROM
	unnest(ARRAY['{1}', '{2}', '{3}', '{2,3}', '{1,2,7}', '{1,2,3,7}', '{6}']) WITH ORDINALITY AS t(s, n) ORDER BY n;
SELECT gj_equal(format('SELECT sum(x), avg(x) FROM fl JOIN g USING (k) WHERE k + 0 = ANY (''%s'')', s)) FROM
	unnest(ARRAY['{1}', '{2}', '{3}', '{2,3}', '{1,2,7}', '{1,2,3,7}']) WITH ORDINALITY AS t(s, n) ORDER BY n;
SELECT gj_equal('SELECT sum(x) FROM fl JOIN g USING (k) WHERE k + 0 = 6');
SELECT gj_equal('SELECT sum(x * 2) FROM fl JOIN g USING (k) WHERE k + 0 = 6');
SELECT gj_equal('SELECT min(x) = 0, max(x) = 0 FROM fl JOIN g USING (k) WHERE k + 0 = 4');

-- no rows; all NULL
SELECT count(*), count(f.i4), sum(f.i4), min(f.i4), max(f.d), avg(f.i4), sum(f.x) FROM f JOIN g ON f.k = g.k WHERE f.i4 > 100000;
SELECT gj_same('SELECT count(*), count(f.i4), sum(f.i4), min(f.i4), max(f.d), avg(f.i8), sum(f.x), avg(f.x) FROM f JOIN g ON f.k = g.k WHERE f.i4 > 100000');
SELECT gj_same('SELECT count(*), count(f.i4), sum(f.i4), min(f.i4), max(f.i4), avg(f.i4) FROM f JOIN g ON f.k = g.k WHERE f.i4 IS NULL');
SELECT gj_same('SELECT count(*), count(f.x), sum(f.x), min(f.x), max(f.x), avg(f.x) FROM f JOIN g ON f.k = g.k WHERE f.x IS NULL');

SELECT gj_equal('SELECT max(f.d + 1), min(f.ts + interval ''1 day'') FROM f JOIN g ON f.k = g.k');

-- HAVING
SELECT gj_same('SELECT sum(f.i4) FROM f JOIN g ON f.k = g.k HAVING count(*) > 10');
SELECT gj_same('SELECT sum(f.i4) FROM f JOIN g ON f.k = g.k HAVING count(*) < 10');
SELECT gj_same('SELECT 1 FROM f JOIN g ON f.k = g.k HAVING max(f.i4) > min(f.i4)');
SELECT gj_same('SELECT count(*) FROM f JOIN g ON f.k = g.k HAVING sum(f.i4) IS NULL');

-- several relations, filters
SELECT gj_same('SELECT count(*), sum(f.i4 + g.c - h.c) FROM f JOIN g ON f.k = g.k JOIN g h ON h.k = f.k WHERE f.i4 > 0 AND h.c < 15');
SELECT gj_same('SELECT count(*), sum(f.i4) FROM f JOIN g ON f.k = g.k WHERE f.t LIKE ''%1%''');
SELECT gj_same('SELECT count(*), max(f.i4) FROM f JOIN g ON f.k = g.k AND f.i4 > g.c');

-- aggregates that are PostgreSQL's, above the join
SELECT agg(list) FROM unnest(ARRAY[
	'count(DISTINCT f.i4)', 'sum(f.n)', 'min(f.t), max(f.t)', 'string_agg(f.t, '','' ORDER BY f.t)', 'array_agg(f.i4 ORDER BY f.i4)', 'bool_and(f.b)', 'stddev(f.i4)',
	'count(*) FILTER (WHERE f.b)', 'sum(f.i4) FILTER (WHERE f.i4 > 0)', 'percentile_disc(0.5) WITHIN GROUP (ORDER BY f.i4)', 'sum(length(f.t))', 'sum(f.i4), count(DISTINCT f.t)',
	'bit_and(f.i4)', 'avg(f.n)', 'sum(f.i4::numeric)', 'sum(DISTINCT f.i4)'
]) WITH ORDINALITY AS l(list, n) ORDER BY n;
-- GROUP BY: above the join, or on the device one day
SELECT gj_equal('SELECT g.c, count(*), sum(f.i4), avg(f.i8), min(f.d), max(f.x) FROM f JOIN g ON f.k = g.k GROUP BY g.c');
SELECT gj_equal('SELECT f.k % 3, g.c > 5, count(*) FROM f JOIN g ON f.k = g.k GROUP BY 1, 2 HAVING count(*) > 100');
SELECT gj_equal('SELECT g.c, f.k, count(*) FROM f JOIN g ON f.k = g.k GROUP BY GROUPING SETS ((1), (2), ())');
SELECT gj_equal('SELECT f.t, count(*) FROM f JOIN g ON f.k = g.k GROUP BY f.t');
SELECT g.c, count(*), sum(f.k) FROM f JOIN g ON f.k = g.k WHERE g.c < 3 GROUP BY g.c ORDER BY g.c;

-- an aggregate as part of another query
SELECT gj_equal('SELECT k, (SELECT sum(f.i4) FROM f JOIN g ON f.k = g.k WHERE g.c = o.c) FROM g o');
SELECT gj_equal('SELECT * FROM g WHERE c > (SELECT avg(g2.c) FROM f JOIN g g2 ON f.k = g2.k)');
SELECT gj_same('SELECT s + 1 FROM (SELECT sum(f.i4) AS s FROM f JOIN g ON f.k = g.k) x');
SELECT gj_equal('SELECT a.s, b.s FROM (SELECT sum(f.i4) s FROM f JOIN g ON f.k = g.k) a, (SELECT sum(g.c) s FROM f JOIN g ON f.k = g.k) b');

-- a user's aggregate of the same name is the user's
CREATE SCHEMA mine;
CREATE FUNCTION mine.always_42(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 42';
CREATE AGGREGATE mine.sum(int) (SFUNC = mine.always_42, STYPE = int, INITCOND = 0);
SELECT mine.sum(f.i4) FROM f JOIN g ON f.k = g.k;
SET search_path = mine, pg_catalog, public;
SELECT sum(f.i4) FROM f JOIN g ON f.k = g.k;
RESET search_path;
DROP AGGREGATE mine.sum(int);
DROP FUNCTION mine.always_42;
DROP SCHEMA mine;

-- the average also sums squares, and fails if they overflow; the sum of -0 is -0
TRUNCATE fl;
INSERT INTO fl VALUES (1, 1e200), (1, -1e200), (2, '-0');
SELECT gj_equal('SELECT avg(x) FROM fl JOIN g USING (k) WHERE k + 0 = 1');
SELECT gj_same('SELECT sum(x), avg(x) FROM fl JOIN (SELECT DISTINCT k FROM g) h USING (k) WHERE k + 0 = 2');

-- up to 256 of them, with groups and without
CREATE FUNCTION sums(n int, how text) RETURNS text LANGUAGE sql AS $$
	SELECT gj_same(format('SELECT %s FROM f JOIN g ON f.k = g.k %s', string_agg(format('sum(f.i4 + %s), max(g.c - %s)', i, i), ', '), how))
	FROM generate_series(1, n / 2) i
$$;
SELECT sums(90, ''), sums(256, ''), sums(258, '');
SELECT sums(90, 'GROUP BY g.c'), sums(256, 'GROUP BY g.c'), sums(258, 'GROUP BY g.c');
SELECT sums(256, 'GROUP BY f.k ORDER BY sum(f.i4 + 1), f.k LIMIT 3');

DROP TABLE f, g, huge, fl;
DROP FUNCTION agg, sums;
