CREATE TABLE f AS SELECT i % 260000 AS k, i % 7 AS g, i % 1000 AS a, (i % 11) / 4.0::float8 AS x FROM generate_series(1, 210000) i;
CREATE TABLE d AS SELECT i AS k, i % 100 AS v FROM generate_series(1, 200000) i;
CREATE TABLE e AS SELECT i % 90 AS v, i AS w FROM generate_series(1, 90) i;
ANALYZE;

-- queries
SELECT count(*), sum(d.v), min(d.v), max(f.a), avg(f.x) FROM f JOIN d USING (k);

SELECT count(*), sum(d.v), sum(f.a) FROM f LEFT JOIN d ON f.k = d.k AND d.v < f.a;

SELECT count(*), count(f.k), sum(d.v) FROM f RIGHT JOIN d ON f.k = d.k;

SELECT count(*), count(f.k), sum(d.v) FROM f FULL JOIN d ON f.k = d.k;

SELECT count(*), sum(f.a) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k);

SELECT count(*), sum(f.a) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k);

SELECT f.g, count(*), sum(d.v), max(f.x) FROM f JOIN d USING (k) GROUP BY f.g;

SELECT d.v, f.a, count(*) FROM f JOIN d USING (k) GROUP BY d.v, f.a;

SELECT f.k, f.a, d.v FROM f JOIN d USING (k) WHERE f.g = 3;

SELECT f.k, f.a, d.v FROM f JOIN d USING (k) WHERE f.g = 2 ORDER BY d.v DESC, f.a;

SELECT f.k, f.a, d.v FROM f JOIN d USING (k) ORDER BY d.v, f.k LIMIT 20;

SELECT e.w, count(*), sum(f.a) FROM f JOIN d USING (k) LEFT JOIN e ON d.v = e.v GROUP BY e.w ORDER BY e.w;
