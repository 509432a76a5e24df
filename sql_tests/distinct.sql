-- SELECT DISTINCT on the device: grouping without aggregates.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (k int, v int, x float8, t text, b bool, n numeric);
INSERT INTO f SELECT i % 10, CASE WHEN i % 7 <> 0 THEN i % 40 END, CASE WHEN i % 9 <> 0 THEN i % 5 / 4.0 END, 'text ' || i % 20, CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END, i % 3 FROM generate_series(1, 3000) i;
CREATE TABLE g AS SELECT i AS k, i % 4 AS c, 'name ' || i % 3 AS name FROM generate_series(0, 8) i;
VACUUM ANALYZE f, g;

SELECT DISTINCT k, k % 2 = 0 FROM f ORDER BY 1 DESC;
SELECT DISTINCT g.name FROM f JOIN g USING (k) ORDER BY 1;

SELECT list, gj_same(format('SELECT DISTINCT %s FROM f', list)), gj_same(format('SELECT DISTINCT %s FROM f JOIN g USING (k)', replace(list, 'k', 'f.k')))
FROM unnest(ARRAY['k', 'v', 'x', 't', 'b', 'k, b', 'v + 1', 'v % 3, b', 'k, k', 'k, v, x, t, b', 'v > 3', 'k, 5', 'n', 'lower(t)', 'k, n', 'NULL::int, b', 'x * 0']) WITH ORDINALITY AS l(list, n) ORDER BY n;
SELECT gj_same('SELECT DISTINCT g.name, f.b, g.c + f.k FROM f JOIN g USING (k) WHERE f.v > 5');
SELECT gj_same('SELECT DISTINCT t FROM f ORDER BY t LIMIT 5');
SELECT gj_same('SELECT DISTINCT k FROM f WHERE v > 1000');
SELECT gj_same('SELECT count(*) FROM (SELECT DISTINCT k, t FROM f) s');
SELECT gj_same('SELECT DISTINCT k FROM (SELECT k, count(*) FROM f GROUP BY k) s');
SELECT gj_equal('SELECT DISTINCT k FROM f UNION ALL SELECT DISTINCT v FROM f');
SELECT gj_equal('SELECT * FROM g WHERE k IN (SELECT DISTINCT k FROM f WHERE v = 1)');
-- the native plan is one that returns what it reads (Unique)
SET enable_hashagg = off;
SELECT gj_same('SELECT DISTINCT v, t FROM f');
SET gpujoin.fail_at = 'probe';
SELECT gj_same('SELECT DISTINCT v, t FROM f');
SELECT gj_same('SELECT DISTINCT t, v + 1, v FROM f JOIN g USING (k) ORDER BY v');
SELECT gj_same('SELECT k, v FROM f GROUP BY v, k');
RESET gpujoin.fail_at;
RESET enable_hashagg;

-- an error is PostgreSQL's, if there is one
SELECT gj_same('SELECT DISTINCT v + 2147483620 FROM f');
SELECT gj_same('SELECT DISTINCT 10 / (v - 5) FROM f');

-- what stays PostgreSQL's
SELECT gj_same('SELECT DISTINCT ON (k) k FROM f ORDER BY k');
SELECT gj_same('SELECT DISTINCT k, row_number() OVER (PARTITION BY k) FROM f');
SELECT gj_same('SELECT DISTINCT k, generate_series(1, 2) FROM f');
SELECT gj_same('SELECT DISTINCT (random() * 0)::int FROM f');

SELECT gj_plan('SELECT DISTINCT k, v % 2 FROM f ORDER BY 1, 2');
DROP TABLE f, g;
