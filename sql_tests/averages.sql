-- Comparisons with averages of stages: on the device they are those of sums with multiples of counts.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE v (k int, a numeric(12,2), i int, l int8, s int2, e numeric(20,4));
INSERT INTO v SELECT g, n.a, n.a * 2, n.a * 3, n.a, n.a / 8 FROM generate_series(0, 200) g,
	LATERAL (SELECT nullif((g * 37 + j * j * 11) % 9, 4)::numeric + CASE WHEN g % 3 = 0 THEN 0.25 ELSE 0 END AS a FROM generate_series(0, g % 7) j) n;
INSERT INTO v SELECT 201, NULL, NULL, NULL, NULL, NULL;
-- the averages themselves, rounded up and down, and what is beside them
CREATE TABLE x AS SELECT k, (r + d)::numeric(12,5) AS f, round(r, 4)::numeric(20,4) AS g, round(r, 2)::numeric(12,2) AS h, (r + d)::numeric(14,7) AS m, (r + d)::numeric(16,9) AS p, round(r)::int AS i
	FROM (SELECT k, coalesce(avg(a), 3) AS r FROM v GROUP BY k) q, unnest('{-0.00001, 0, 0.00001}'::numeric[]) d;
INSERT INTO x SELECT k, NULL, NULL, NULL, NULL, NULL, NULL FROM v WHERE k < 5 OR k > 200;
INSERT INTO x SELECT 300 + g, g, g, g, g, g, g FROM generate_series(1, 5) g;
VACUUM ANALYZE v, x;

-- the same answer, by whom, and whether PostgreSQL checks conditions above
CREATE FUNCTION compared(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(query), CASE WHEN gj_node(query) ? 'Filter' THEN ', filter' END)
$$;

-- all comparisons, factors of all kinds, on both sides
SELECT f, compared(format('SELECT count(*), sum(x.k) FROM x JOIN v ON v.k = x.k JOIN (SELECT k, avg(a) AS m, %s AS c FROM v GROUP BY k) s ON s.k = x.k WHERE %s', f, w))
	FROM unnest('{m, 0.2 * avg(a), avg(a) * 4, -0.25 * avg(a), 1.000 * avg(a), 1.25 * avg(a), 1.5 * avg(a), avg(a) * -0.3, 7 * avg(a)}'::text[]) WITH ORDINALITY fs (f, i),
		unnest('{x.h = c, x.h <> c, x.h < c, c <= x.h, x.g > c, x.g >= c, x.f < c, c < x.f, x.f = c}'::text[]) WITH ORDINALITY ws (w, j)
	WHERE f <> 'm' ORDER BY i, j;
SELECT w, compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(a) AS c FROM v GROUP BY k) s ON s.k = x.k WHERE ' || w)
	FROM unnest('{x.h = c, x.h <> c, x.h < c, c <= x.h, x.g > c, x.g >= c, x.f < c, c < x.f, x.f = c, x.m < c, c < x.m, x.m = c, x.p <= c, x.p = c, x.i = c, x.i < c, 2 > c, c > 2.5, x.h * 0.2 < c, NOT x.h < c, x.h < c OR c IS NULL}'::text[]) w;
SELECT w, compared('SELECT count(*), sum(x.k) FROM x LEFT JOIN (SELECT k, avg(a) AS c FROM v GROUP BY k) s ON s.k = x.k WHERE ' || w)
	FROM unnest('{x.h < c, (x.h < c) IS NULL, x.h >= c OR x.k % 2 = 0, NOT (x.h < c) IS NOT FALSE}'::text[]) w;
-- averages of integers and of others
SELECT c, w, compared(format('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(%s) AS c FROM v GROUP BY k) s ON s.k = x.k WHERE %s', c, w))
	FROM unnest('{i, l, s, e, a + 1, i * 2, DISTINCT i}'::text[]) WITH ORDINALITY cs (c, i), unnest('{x.h < c, x.i = c, x.g <= 0.5 * c}'::text[]) WITH ORDINALITY ws (w, j)
	ORDER BY i, j;
-- correlated subqueries, HAVING of subqueries and of the query itself
SELECT compared('SELECT sum(h) / 7.0 FROM x WHERE h < (SELECT 0.5 * avg(a) FROM v WHERE v.k = x.k)');
SELECT compared('SELECT k, f FROM x WHERE f >= (SELECT avg(a) FROM v WHERE v.k = x.k)');
SELECT compared('SELECT count(*) FROM x JOIN (SELECT k FROM v GROUP BY k HAVING avg(a) > 3.5 AND avg(i) <> 7) s USING (k)');
SELECT compared('SELECT n, count(*) FROM (SELECT k, count(*) n, avg(a) c FROM v GROUP BY k) s WHERE c BETWEEN 2 AND 3.75 GROUP BY n');
-- by PostgreSQL: factors that are zero, or long, averages of averages, two averages, sums of them
SELECT f, compared(format('SELECT count(*) FROM x JOIN (SELECT k, %s AS c FROM v GROUP BY k) s ON s.k = x.k WHERE x.h < c', f))
	FROM unnest('{0 * avg(a), avg(a) + 1, avg(a) / 2, avg(a) * avg(i), avg(a) - avg(i), 0.0000000001 * avg(a), 1000000000000000 * avg(a)}'::text[]) f;
SELECT compared('SELECT count(*) FROM x JOIN (SELECT k, avg(a) c, avg(e) d FROM v GROUP BY k) s ON s.k = x.k WHERE c < d');
SELECT compared('SELECT count(*) FROM x JOIN (SELECT k, avg(a) c FROM v GROUP BY k) s ON s.k = x.k WHERE x.p * x.h < c');

-- more rows than are expected for so many digits, too large averages: the answer is PostgreSQL's
CREATE TABLE many AS SELECT g AS k, 1.00::numeric(12,2) AS a, 123456789::numeric(12,2) AS b FROM generate_series(1, 1000) g;
ANALYZE many;
UPDATE many SET k = 77 WHERE k > 100;
INSERT INTO many SELECT 77, g % 7, 0 FROM generate_series(1, 30000) g;
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(a) AS c FROM many GROUP BY k) s ON s.k = x.k WHERE x.m < c');
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(a) AS c FROM many GROUP BY k) s ON s.k = x.k WHERE x.p < c');
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(b) AS c FROM many GROUP BY k) s ON s.k = x.k WHERE x.h < c');
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(-b) AS c FROM many GROUP BY k) s ON s.k = x.k WHERE x.h < c');
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(b) AS c FROM many WHERE k < 50 OR b = 0 GROUP BY k) s ON s.k = x.k WHERE x.k > 50 AND x.h < c');
-- a third, times three, is not one
CREATE TABLE thirds AS SELECT * FROM (VALUES (1, 0), (1, 0), (1, 1), (2, 1), (2, 1), (3, 2), (3, 2), (3, 0), (3, 0)) t (k, i);
CREATE TABLE wholes AS SELECT * FROM (VALUES (1, 1), (1, 3), (2, 3), (3, 3), (3, 1)) t (k, i);
ANALYZE thirds, wholes;
SELECT w, compared('SELECT count(*) FROM wholes w JOIN (SELECT k, 3 * avg(i) AS c FROM thirds GROUP BY k) s ON s.k = w.k WHERE ' || w)
	FROM unnest('{w.i = c, w.i >= c, w.k > 1 AND w.i = c, w.k > 1 AND w.i >= c, w.i = 3 AND w.i > c}'::text[]) w;
DROP TABLE thirds, wholes;
-- EXPLAIN names what it refuses, which has no columns to name
CREATE FUNCTION explained(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE) ' || query LOOP
		found := found OR line LIKE '%Not Offloaded%';
	END LOOP;
	RETURN found;
END $$;
SELECT c, explained('SELECT count(*) FROM x JOIN (SELECT k, avg(a) AS a FROM v GROUP BY k) s ON s.k = x.k WHERE ' || c)
	FROM unnest('{s.a IS NOT NULL, s.a = s.a, "s.a IN (1.5, 2.5)", "coalesce(s.a, 0) = 3", round(s.a) = 3, s.a / 2 > 3}'::text[]) c;
DROP FUNCTION explained;
-- few groups of many rows
CREATE TABLE few AS SELECT g % 2 AS k, (g % 7)::numeric(12,2) AS a FROM generate_series(1, 6000) g;
ANALYZE few;
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(a) AS c FROM few GROUP BY k) s ON s.k = x.k WHERE x.p < c');
SELECT compared('SELECT count(*), sum(x.k) FROM x JOIN (SELECT k, avg(a) AS c FROM few GROUP BY k) s ON s.k = x.k WHERE x.h < c');
DROP TABLE few;
DROP TABLE v, x, many;
DROP FUNCTION compared;
