-- numeric(p, s) of at most 18 digits travels as integers: values come back as they were stored, to the byte
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE DOMAIN decimal_price AS numeric(9, 2) CHECK (value > -5);
CREATE TABLE decimals (id int, a numeric(1, 0), b numeric(4, 4), c numeric(5, 2), d numeric(9, 3), e numeric(12, 2), f numeric(15, 6), g numeric(18, 0), h numeric(18, 1), i numeric(18, 17), j numeric(18, 18), k numeric(18, 9), l decimal_price, m numeric(3, 5), o numeric(19, 2), p numeric);
-- every position of the point against groups of four digits, zeros at both ends and in the middle, both signs, the ends
CREATE FUNCTION decimal_value(i int, p int, s int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN i % 13 = 0 THEN NULL WHEN i % 17 = 0 THEN 0 WHEN i % 19 = 0 THEN power(10::numeric, p) - 1 WHEN i % 23 = 0 THEN 1
		WHEN i % 3 = 0 THEN (i % 9 + 1) * power(10::numeric, i % p) WHEN i % 3 = 1 THEN trunc(hashint8extended(i, 0)::numeric * 0.1) % power(10::numeric, p)
		ELSE power(10::numeric, i % p) + i % 7 END * CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END % power(10::numeric, p) * ('1e-' || s)::numeric
$$;
INSERT INTO decimals SELECT i, decimal_value(i, 1, 0), decimal_value(i, 4, 4), decimal_value(i, 5, 2), decimal_value(i, 9, 3), decimal_value(i, 12, 2), decimal_value(i, 15, 6), decimal_value(i, 18, 0), decimal_value(i, 18, 1),
	decimal_value(i, 18, 17), decimal_value(i, 18, 18), decimal_value(i, 18, 9), abs(decimal_value(i, 9, 2)), decimal_value(i, 3, 5), decimal_value(i, 19, 2), decimal_value(i, 18, i % 20) FROM generate_series(1, 2000) i;
CREATE TABLE decimal_keys AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 2000) i;
VACUUM ANALYZE decimals, decimal_keys;
CREATE FUNCTION decimals_returned() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	n text;
BEGIN
	FOREACH n IN ARRAY '{a,b,c,d,e,f,g,h,i,j,k,l,m,o,p}'::text[] LOOP
		RETURN NEXT n || ': ' || gj_device(format('SELECT x.id, x.%1$I, pg_column_size(x.%1$I), numeric_send(x.%1$I), scale(x.%1$I) FROM decimals x JOIN decimal_keys USING (id)', n));
	END LOOP;
END $$;
SELECT decimals_returned();
-- the same where they are resident, and under EXCEPT of what was stored
SELECT decimals_returned();
SELECT count(*) FROM (SELECT x.id, x.e, x.k FROM decimals x JOIN decimal_keys USING (id)) q JOIN decimals y ON y.id = q.id WHERE y.e IS DISTINCT FROM q.e OR y.k IS DISTINCT FROM q.k;

-- conditions, keys, groups, order and aggregates of them
SELECT gj_device('SELECT x.id, y.id FROM decimals x JOIN decimals y ON x.e = y.e AND x.c = y.c');
SELECT gj_device('SELECT x.id, y.id FROM decimals x JOIN decimals y ON x.c = y.e');
SELECT gj_device('SELECT x.e, count(*), sum(x.f), min(x.k), max(x.h), avg(x.c) FROM decimals x JOIN decimal_keys USING (id) GROUP BY x.e');
SELECT gj_device('SELECT y.k, sum(x.l * (1 - x.b)), sum(x.c) FILTER (WHERE x.f > 0), count(DISTINCT x.d) FROM decimals x JOIN decimal_keys y USING (id) GROUP BY y.k');
SELECT gj_device('SELECT x.id, x.j FROM decimals x JOIN decimal_keys USING (id) WHERE x.j > 0.5 AND x.h < 100 OR x.a IN (1, 3)');
SELECT gj_device('SELECT x.e, x.id FROM decimals x JOIN decimal_keys USING (id) ORDER BY x.e DESC NULLS LAST, x.id LIMIT 50');
SELECT gj_device('SELECT DISTINCT x.b, x.a FROM decimals x JOIN decimal_keys USING (id)');

-- a column that was added later, and rows that were there before
ALTER TABLE decimals ADD COLUMN q numeric(7, 3) DEFAULT -12.5, ADD COLUMN r numeric(7, 3);
INSERT INTO decimals (id, q, r) VALUES (1, 1, 2), (2, NULL, 3);
SELECT gj_device('SELECT x.id, x.q, x.r, numeric_send(x.q), pg_column_size(x.q) FROM decimals x JOIN decimal_keys USING (id)');
-- partitions whose columns lie differently
CREATE TABLE decimal_parts (k int, n numeric(10, 2)) PARTITION BY LIST (k);
CREATE TABLE decimal_part1 (n numeric(10, 2), gone text, k int);
ALTER TABLE decimal_part1 DROP COLUMN gone;
ALTER TABLE decimal_parts ATTACH PARTITION decimal_part1 FOR VALUES IN (1);
CREATE TABLE decimal_part2 PARTITION OF decimal_parts FOR VALUES IN (2);
INSERT INTO decimal_parts SELECT i % 2 + 1, i / 8.0 FROM generate_series(1, 500) i;
SELECT gj_device('SELECT x.n, y.id FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id');
SELECT gj_device('SELECT x.n, y.id FROM (SELECT k, n FROM decimal_part1 UNION ALL SELECT id, e FROM decimals UNION ALL SELECT k, n FROM decimal_part2) x JOIN decimal_keys y ON x.k = y.id');
SELECT gj_device('SELECT x.n, y.id FROM (SELECT k, n FROM decimal_part1 UNION ALL SELECT k, n FROM decimal_part2) x JOIN decimal_keys y ON x.k = y.id');

-- NaN is carried; a query that computes with it falls back, and the next one of this session knows
INSERT INTO decimal_parts VALUES (2, 'NaN');
SELECT gj_device('SELECT x.n, y.id, numeric_send(x.n), pg_column_size(x.n) FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id');
CREATE FUNCTION decimal_fallback(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Fallback:' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
END $$;
SELECT decimal_fallback('SELECT sum(x.n) FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id');
SELECT gj_device('SELECT sum(x.n) FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id WHERE x.n < 1000');
SELECT gj_device('SELECT x.n, y.id, numeric_send(x.n) FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id');
DELETE FROM decimal_parts WHERE n = 'NaN';
VACUUM decimal_parts;
SELECT gj_device('SELECT sum(x.n) FROM decimal_parts x JOIN decimal_keys y ON x.k = y.id');

-- the scale of a sum is that of the values of coalesce, which differ
CREATE TABLE decimal_sums AS SELECT i % 9 AS g, (i / 100.0)::numeric(7,2) AS a, (CASE WHEN i % 3 = 0 THEN i / 50.0 END)::numeric(9,4) AS b FROM generate_series(1, 20000) i;
ANALYZE decimal_sums;
SELECT gj_device(format('SELECT g, %s FROM decimal_sums GROUP BY g', c)) FROM unnest('{"sum(a - coalesce(b, 0))", "sum(coalesce(b, 0))", "avg(coalesce(b, a, 0))",
	"sum(coalesce(b, 0)) FILTER (WHERE b IS NULL)", "sum(coalesce(b, 0.5) * 1.25)", "sum(a) + sum(coalesce(NULL, b, 7))", "sum(CASE WHEN a > 9 THEN coalesce(b, 0) ELSE a END)"}'::text[]) c;
DROP TABLE decimal_sums;
DROP TABLE decimals, decimal_keys, decimal_parts;
DROP FUNCTION decimals_returned, decimal_value, decimal_fallback;
DROP DOMAIN decimal_price;
