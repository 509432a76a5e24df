-- GROUP BY on the device, over joins and over a table alone.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE f (k int, i2 int2, i4 int4, i8 int8, d date, ts timestamp, x float8, n numeric(10,2), t text, v varchar(20), c char(8),
	b bool, o oid, m mood, y bytea, q "char", p money, h time, u uuid, w interval);
INSERT INTO f
SELECT i % 10, CASE WHEN i % 11 <> 0 THEN i % 30 - 15 END, CASE WHEN i % 7 <> 0 THEN i * 13 % 100 - 50 END,
	CASE WHEN i % 5 <> 0 THEN (i % 40)::int8 * 3000000000 END, date '2026-01-01' + i % 6, timestamp '2026-01-01 12:00' + i % 6 * interval '1 hour',
	CASE WHEN i % 9 <> 0 THEN (i % 12) / 4.0 END, i % 50 / 100.0, 'text ' || i % 30, CASE WHEN i % 4 <> 0 THEN repeat('v', i % 9) END, 'c' || i % 5,
	CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END, (4000000000 + i % 3)::oid, (ARRAY['sad', 'ok', 'happy'])[i % 3 + 1]::mood, decode(lpad(to_hex(i % 20), 2, '0'), 'hex'),
	chr(200 + i % 3)::"char", (i % 4)::money, time '12:00' + i % 5 * interval '1 minute', md5((i % 6)::text)::uuid, i % 6 * interval '1 day'
FROM generate_series(1, 3000) i;
CREATE TABLE g (k int PRIMARY KEY, c int, name text);
INSERT INTO g SELECT i, i % 4, 'name ' || i % 3 FROM generate_series(0, 8) i;
VACUUM ANALYZE f, g;

-- an answer that anybody can check
SELECT k, count(*), sum(k), min(i4), max(i4) FROM f GROUP BY k ORDER BY k;
SELECT g.name, count(*) FROM f JOIN g USING (k) GROUP BY g.name ORDER BY 1;

-- one key of every type
SELECT key, gj_same(format('SELECT %s, count(*), sum(i4), count(i2) FROM f GROUP BY 1', key)), gj_same(format('SELECT f.%s, count(*), sum(g.c) FROM f JOIN g USING (k) GROUP BY 1', key))
FROM unnest(ARRAY['i2', 'i4', 'i8', 'd', 'ts', 'x', 'n', 't', 'v', 'c', 'b', 'o', 'm', 'y', 'q', 'p', 'h', 'u', 'w']) WITH ORDINALITY AS l(key, n) ORDER BY n;

-- expressions and several keys
SELECT key, gj_same(format('SELECT %s, count(*), sum(f.i4), avg(f.i8), min(f.x), max(f.d) FROM f JOIN g USING (k) GROUP BY %s', key, key))
FROM unnest(ARRAY['f.i4 % 3', 'f.i4 + g.c', 'f.i4 > 0', 'f.i4 IS NULL', 'f.x * 2', 'k, f.b, f.t', 'f.b, f.x, f.v', 'f.i2, f.i4, f.i8', 'f.t, g.name, g.c', 'f.d, f.ts, f.o, f.m, f.c, f.y',
	'f.k, f.i2, f.i4, f.i8, f.d, f.ts, f.x, f.t, f.v, f.b', 'lower(f.t)', 'f.t || ''x''', 'f.n, f.b', 'length(f.t)']) WITH ORDINALITY AS l(key, n) ORDER BY n;

-- every aggregate, and expressions over aggregates and keys
SELECT list, gj_same(format('SELECT f.b, f.k, %s FROM f JOIN g USING (k) GROUP BY f.b, f.k', list))
FROM unnest(ARRAY['count(*)', 'count(f.t), count(f.n), count(f.v)', 'sum(f.i2), sum(f.i4), sum(f.i8)', 'avg(f.i2), avg(f.i4), avg(f.i8)', 'min(f.i4), max(f.i4), min(f.i8), max(f.i8)',
	'min(f.d), max(f.d), min(f.ts), max(f.ts), min(f.o), max(f.o)', 'sum(f.x), avg(f.x), min(f.x), max(f.x)', 'bool_and(f.i4 > 0), bool_or(f.i4 > 40), every(f.b)', 'bool_and(f.i4 > 1000), bool_or(f.i4 < -1000)',
	'sum(f.i4) / count(*), f.k + 1, f.k + count(*)', 'count(*) FILTER (WHERE f.i4 > 0), count(f.i2) FILTER (WHERE f.x > 1)', 'sum(f.i4) FILTER (WHERE f.b), sum(f.i4) FILTER (WHERE NOT f.b), sum(f.i4)',
	'avg(f.x) FILTER (WHERE f.i4 > 1000), min(f.i4) FILTER (WHERE f.i4 % 2 = 0)', 'count(f.t) FILTER (WHERE f.i4 > 0)', 'coalesce(sum(f.i4), 0), sum(f.i4) IS NULL',
	'var_pop(f.i4), var_samp(f.i4), variance(f.i2)', 'stddev_pop(f.i4), stddev_samp(f.i2), stddev(f.i4)', 'variance(f.i4) FILTER (WHERE f.i4 = 7)',
	'count(DISTINCT f.i4)', 'sum(f.n)', 'string_agg(f.t, '','' ORDER BY f.t)', 'stddev(f.i8)', 'count(*) FILTER (WHERE f.t LIKE ''%1'')', 'sum(length(f.t))', 'array_agg(f.i4 ORDER BY f.i4)']) WITH ORDINALITY AS l(list, n) ORDER BY n;

-- ungrouped ones with FILTER, bool_and, variance
SELECT gj_same('SELECT count(*) FILTER (WHERE f.i4 > 0), sum(f.i4) FILTER (WHERE f.b), bool_and(f.i4 < 100), bool_or(f.b), stddev(f.i4), var_pop(f.i2) FROM f JOIN g USING (k)');
SELECT gj_same('SELECT stddev(f.i4), var_pop(f.i4), var_samp(f.i4), bool_and(f.b) FROM f JOIN g USING (k) WHERE f.i4 > 1000');

-- deviations of many values: the digits are PostgreSQL's
CREATE TABLE spread AS SELECT i % 500 AS k, (i * 7919::int8 % 1000003)::int4 AS v, (i % 11)::int2 AS s FROM generate_series(1, 5000) i;
INSERT INTO spread VALUES (1000, 2147483647, 1), (1000, -2147483648, 1), (1000, 2147483647, 1), (1001, 5, 5), (1002, 3, 3), (1002, 3, 3), (1003, NULL, NULL);
SELECT gj_same('SELECT k, stddev(v), stddev_pop(v), variance(v), var_pop(v), stddev(s), variance(s) FROM spread GROUP BY k');

-- sums beyond 64 bits
CREATE TABLE huge AS SELECT i % 3 AS k, CASE i % 3 WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 - i ELSE (i % 7 - 3) * 3000000000000000000 END AS v FROM generate_series(1, 300) i;
SELECT k, sum(v), avg(v) FROM huge WHERE k < 2 GROUP BY k ORDER BY k;
SELECT gj_same('SELECT k, sum(v), avg(v), min(v), max(v), count(v) FROM huge GROUP BY k');
SELECT gj_same('SELECT k, sum(v + 1000000) FROM huge GROUP BY k');
SELECT gj_same('SELECT v + 1000000, count(*) FROM huge GROUP BY 1');

-- NULL, NaN, -0, infinities; results that are not finite
CREATE TABLE fl (k float8, x float8);
INSERT INTO fl VALUES ('NaN', 1), ('-NaN', 2), ('0', 3), ('-0', 4), (NULL, 5), (NULL, NULL), ('Infinity', 6), ('-Infinity', 7), ('1e-320', 8), ('-0', NULL);
SELECT gj_same('SELECT k = 0, k = ''NaN'', count(*), sum(x), count(x) FROM fl GROUP BY k');
SELECT gj_same('SELECT x IS NULL, min(k), max(k) FROM fl WHERE k <> 0 GROUP BY 1');
SELECT gj_same('SELECT x > 4, sum(k) FROM fl WHERE k < 5 OR k IS NULL GROUP BY 1');
SELECT gj_equal('SELECT x > 4, sum(k), avg(k) FROM fl GROUP BY 1');

-- many groups: several batches, growth of the table; skew
CREATE TABLE many AS SELECT CASE WHEN i % 2 = 0 THEN 7 ELSE i END AS k, i % 70000 AS r, 'key ' || i % 30000 AS t FROM generate_series(1, 200000) i;
VACUUM ANALYZE many;
SELECT count(*), sum(n), max(n) FROM (SELECT k, count(*) AS n FROM many GROUP BY k) s;
SELECT gj_same('SELECT r, count(*), sum(k), avg(k) FROM many GROUP BY r');
SELECT gj_same('SELECT t, count(*), sum(k::float8) FROM many GROUP BY t');
SELECT gj_same('SELECT t, r % 3, count(*) FROM many GROUP BY 1, 2 HAVING count(*) > 2');
SET work_mem = '64kB';
SELECT gj_same('SELECT t, sum(k::float8), sum(r) FROM many GROUP BY t');
RESET work_mem;

-- text: of any length, NULL, empty; blanks at the end; compressed and external values are PostgreSQL's
CREATE TABLE texts (id int, t text, c char(10), v varchar);
INSERT INTO texts SELECT i, CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN repeat('ab', i % 4 * 60) ELSE 'x' || i % 4 END, repeat(' ', i % 3) || i % 2, repeat('y', 120 + i % 10) FROM generate_series(1, 1000) i;
SELECT gj_same('SELECT t, count(*) FROM texts GROUP BY t');
SELECT gj_same('SELECT c, count(*) FROM texts GROUP BY c');
SELECT gj_same('SELECT v, t, c, count(*) FROM texts GROUP BY v, t, c');
SELECT gj_same('SELECT a.v, b.t, count(*) FROM texts a JOIN texts b ON a.id = b.id + 1 GROUP BY 1, 2');
SELECT gj_same('SELECT v::text, count(*) FROM texts GROUP BY 1');
SELECT gj_same('SELECT t COLLATE "C", count(*) FROM texts GROUP BY 1');
INSERT INTO texts VALUES (2000, repeat('long ', 2000), 'x', 'y');
SELECT gj_same('SELECT t, count(*) FROM texts GROUP BY t');
CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT gj_same('SELECT v COLLATE insensitive, count(*) FROM texts GROUP BY 1');

-- outer joins: keys and values of a side without a match are NULL
CREATE TABLE few AS SELECT i AS k, 'few ' || i % 2 AS t, i * 10 AS v, 'q'::"char" AS q FROM generate_series(3, 6) i;
SELECT gj_equal(format('SELECT few.t, %s, count(*), count(few.v), sum(few.v), max(few.k) FROM f %s JOIN few ON f.k = few.k GROUP BY 1, 2', key, side))
FROM unnest(ARRAY['LEFT', 'RIGHT', 'FULL']) WITH ORDINALITY AS s(side, m), unnest(ARRAY['few.q', 'f.b', 'f.v', 'few.v % 3']) WITH ORDINALITY AS l(key, n) ORDER BY m, n;
SELECT gj_equal('SELECT count(DISTINCT few.t), count(*) FROM f LEFT JOIN few USING (k)');
SELECT gj_equal('SELECT DISTINCT few.t, few.v FROM f LEFT JOIN few USING (k)');
SELECT gj_equal('SELECT f.b, count(*) FROM f WHERE EXISTS (SELECT FROM few WHERE few.k = f.k AND few.v < f.i4) GROUP BY f.b');
DROP TABLE few;

-- no rows; one group; HAVING; ORDER BY and LIMIT above
SELECT gj_same('SELECT k, count(*) FROM f WHERE i4 > 1000 GROUP BY k');
SELECT gj_same('SELECT f.k, count(*) FROM f JOIN g USING (k) WHERE g.c > 1000 GROUP BY f.k');
SELECT gj_same('SELECT 1, count(*) FROM f GROUP BY f.k * 0');
SELECT gj_same('SELECT k, sum(i4) FROM f GROUP BY k HAVING sum(i4) > 100 AND k <> 3');
SELECT gj_same('SELECT k FROM f GROUP BY k HAVING bool_or(i4 > 48)');
SELECT gj_same('SELECT t, count(*) FROM f GROUP BY t ORDER BY count(*) DESC, t LIMIT 7');
SELECT gj_same('SELECT g.k, g.name, g.c + 1, count(*) FROM f JOIN g ON f.k = g.k GROUP BY g.k');
SELECT gj_same('SELECT k, count(*), sum(count(*)) OVER (ORDER BY k) FROM f GROUP BY k');
SELECT gj_same('SELECT k, count(*), generate_series(1, 2) FROM f GROUP BY k');
SELECT gj_same('SELECT k, max(i4), (SELECT max(c) FROM g WHERE g.k = f.k) FROM f GROUP BY k');
SELECT gj_same('SELECT DISTINCT count(*) FROM f GROUP BY k');
SELECT gj_same('SELECT s.k, s.n FROM (SELECT k, count(*) AS n FROM f GROUP BY k) s JOIN g ON s.k = g.k WHERE s.n > 2');

-- what stays PostgreSQL's
SELECT gj_same('SELECT k, b, count(*) FROM f GROUP BY GROUPING SETS ((k), (b), ())');
SELECT gj_same('SELECT k, b, count(*), grouping(k) FROM f GROUP BY ROLLUP (k, b)');
SELECT gj_same('SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY i4) FROM f GROUP BY k');

-- columns that a primary key determines are kept with a group, neither hashed nor compared
CREATE FUNCTION gj_dependent(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(query), '; ' || (SELECT string_agg(d #>> '{}', ', ' ORDER BY d #>> '{}') FROM jsonb_path_query(gj_explain(query), 'strict $.**."Dependent Columns"[*]', '{}', true) d))
$$;
CREATE TABLE pk (a int, b int, n numeric(9,2), t text, c char(9), x float8, q "char", PRIMARY KEY (a, b));
INSERT INTO pk SELECT i / 10, i % 10, nullif(i % 90, 7) / 4.0, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE repeat('t' || i % 50, i % 7) END, 'c' || i % 3, nullif(i % 11, 4), chr(65 + i % 20)::"char" FROM generate_series(0, 4999) i;
CREATE TABLE ref (a int, b int, v int);
INSERT INTO ref SELECT i % 600, i % 11, nullif(i % 100, 3) FROM generate_series(1, 60000) i;
CREATE TABLE late (k int PRIMARY KEY DEFERRABLE, t text);
INSERT INTO late SELECT i, 'late ' || i % 3 FROM generate_series(1, 100) i;
VACUUM ANALYZE pk, ref, late;
SELECT gj_dependent('SELECT pk.*, count(*), sum(v) FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b');
SELECT gj_dependent('SELECT pk.*, count(*), sum(v) FROM ref JOIN pk USING (a, b) GROUP BY pk.t, pk.c, pk.n, pk.a, pk.x, pk.q, pk.b');
SELECT gj_dependent('SELECT pk.t, pk.c, v % 3, count(*) FROM ref JOIN pk USING (a, b) GROUP BY v % 3, pk.t, pk.c, pk.a, pk.b');
SELECT gj_dependent('SELECT pk.t, pk.c, count(*) FROM ref JOIN pk USING (a, b) GROUP BY pk.t, pk.c, pk.a');
SELECT gj_dependent(format('SELECT pk.*, count(*), sum(v) FROM ref %s JOIN pk USING (a, b) GROUP BY pk.a, pk.b', side)) FROM unnest(ARRAY['LEFT', 'RIGHT', 'FULL']) side;
SELECT gj_dependent('SELECT a, b, t, upper(c), max(x) FROM pk GROUP BY a, b');
SELECT gj_dependent('SELECT pk.a, pk.b, pk.t, count(DISTINCT v) FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b');
SELECT gj_dependent('SELECT pk.a, pk.b, pk.t, pk.n FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b ORDER BY pk.n DESC, pk.a, pk.b LIMIT 50');
SELECT gj_dependent('SELECT pk.a, pk.b, pk.t, pk.n FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b HAVING sum(v) > 400 AND max(pk.n) > pk.n - 1');
SELECT gj_dependent('SELECT s.t, s.n, max(s.v) FROM (SELECT pk.a, pk.b, pk.t, pk.n, sum(v) AS v FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b) s GROUP BY s.t, s.n');
SELECT gj_dependent('SELECT x.a, x.b, x.t, y.t, x.n, y.n, count(*) FROM ref JOIN pk x USING (a, b) JOIN pk y ON y.a = ref.v AND y.b = ref.b % 7 GROUP BY x.a, x.b, y.a, y.b');
SELECT gj_dependent('SELECT late.k, late.t, count(*) FROM ref JOIN late ON ref.v = late.k GROUP BY late.k, late.t');
SELECT gj_dependent('SELECT m.r, g.name, count(*) FROM many m JOIN g ON m.r % 40 = g.k GROUP BY m.r, g.k, g.name');
SET gpujoin.devices_per_query = 2;
SELECT gj_dependent('SELECT pk.*, count(*), sum(v) FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b ORDER BY pk.a, pk.b');
RESET gpujoin.devices_per_query;
SET gpujoin.device_memory_limit = '6MB';
SELECT gj_equal('SELECT x.*, count(*) FROM pk x JOIN ref ON x.b = ref.b AND x.a = ref.a GROUP BY x.a, x.b');
RESET gpujoin.device_memory_limit;
-- a value that is not in the row is still PostgreSQL's
UPDATE pk SET t = repeat('long ', 2000) WHERE a = 7;
SELECT gj_dependent('SELECT pk.*, count(*), sum(v) FROM ref JOIN pk USING (a, b) GROUP BY pk.a, pk.b');
-- and those of rows that a unique key of the same row has found by inner joins
CREATE TABLE cust (k int PRIMARY KEY, nk int, t text);
CREATE TABLE nat (k int UNIQUE, rk int, t char(12), u int);
CREATE TABLE reg (k int PRIMARY KEY, t text);
CREATE UNIQUE INDEX ON nat (u) WHERE t IS NOT NULL;
INSERT INTO cust SELECT i, nullif(i % 30, 4), 'cust ' || i FROM generate_series(0, 999) i;
INSERT INTO nat SELECT nullif(i, 9), i % 6, CASE WHEN i % 4 > 0 THEN 'nat ' || i % 4 END, CASE WHEN i % 4 > 0 THEN i ELSE i - i % 8 END FROM generate_series(0, 29) i;
INSERT INTO reg SELECT i, 'reg ' || i FROM generate_series(0, 4) i;
VACUUM ANALYZE cust, nat, reg;
SELECT gj_dependent('SELECT cust.k, cust.t, nat.t, reg.t, count(*), sum(v) FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.k = cust.nk JOIN reg ON reg.k = nat.rk GROUP BY cust.k, cust.t, nat.t, reg.t');
SELECT gj_dependent('SELECT DISTINCT cust.k, cust.t, nat.t FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.k = cust.nk');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref LEFT JOIN (cust JOIN nat ON nat.k = cust.nk) ON ref.a = cust.k GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref FULL JOIN (cust JOIN nat ON nat.k = cust.nk) ON ref.a = cust.k GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref JOIN cust ON ref.a = cust.k LEFT JOIN nat ON nat.k = cust.nk AND ref.v > 50 GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.u = cust.nk GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.rk = cust.nk GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.k, nat.t, count(*) FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.k = ref.b GROUP BY cust.k, nat.t');
SELECT gj_dependent('SELECT cust.nk, cust.t, nat.t, count(*) FROM ref JOIN cust ON ref.a = cust.k JOIN nat ON nat.k = cust.nk GROUP BY cust.nk, cust.t, nat.t');
DROP TABLE pk, ref, late, cust, nat, reg;
DROP FUNCTION gj_dependent;

-- run again, with parameters, in a cursor
PREPARE by_k(int) AS SELECT k % $1, count(*) FROM f WHERE i4 > $1 GROUP BY 1 ORDER BY 1;
EXECUTE by_k(2);
EXECUTE by_k(3);
DEALLOCATE by_k;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM f GROUP BY k;
MOVE 3 FROM c;
MOVE ALL FROM c;
COMMIT;
SELECT gj_equal('SELECT g.k, (SELECT string_agg(s.n::text, '','' ORDER BY s.n) FROM (SELECT i2, count(*) AS n FROM f WHERE f.k = g.k GROUP BY i2) s) FROM g');

-- a CASE that chooses between texts: integers on the device, which stand for them
SELECT key, gj_same(format('SELECT %s, count(*), sum(i4) FROM f GROUP BY 1', key)), gj_same(format('SELECT DISTINCT %s, f.k FROM f JOIN g USING (k)', key)), gj_same(format('SELECT count(DISTINCT %s) FROM f', key))
FROM unnest(ARRAY['CASE WHEN i4 < 0 THEN ''low'' WHEN i4 < 30 THEN ''mid'' WHEN i4 IS NULL THEN NULL ELSE ''high'' END',
	'CASE f.k % 3 WHEN 0 THEN ''x'' WHEN 1 THEN ''y'' ELSE CASE WHEN i4 > 10 THEN ''x'' ELSE ''z'' END END',
	'CASE WHEN i4 < 0 THEN ''a''::varchar(4) ELSE ''b'' END', 'CASE WHEN i4 < 0 THEN t ELSE ''b'' END',
	'CASE WHEN i4 < 0 THEN ''b''::char(3) ELSE ''b  ''::char(3) END']) WITH ORDINALITY AS l(key, n) ORDER BY n;
SELECT CASE WHEN i4 < 0 THEN 'low' WHEN i4 IS NULL THEN NULL ELSE 'high' END AS size, count(*), max(i4) FROM f GROUP BY 1 ORDER BY 1;
SELECT gj_same('SELECT CASE WHEN i4 < 0 THEN ''low'' ELSE ''high'' END, count(*) FROM f GROUP BY 1 ORDER BY 1 LIMIT 1');
SELECT gj_same('SELECT s, g.name, n FROM (SELECT CASE WHEN i4 < 0 THEN ''low'' ELSE ''high'' END s, k, count(*) n FROM f GROUP BY 1, 2) x RIGHT JOIN g USING (k)');
SELECT gj_same('SELECT s, max(n) FROM (SELECT CASE WHEN i4 < 0 THEN ''low'' ELSE ''high'' END s, k, count(*) n FROM f GROUP BY 1, 2) x GROUP BY s');
SELECT gj_same('SELECT CASE WHEN i4 < 0 THEN ''low'' WHEN 1 / (i4 - 7) > 5 THEN ''mid'' ELSE ''high'' END, count(*) FROM f GROUP BY 1');

-- failures of the device
SET gpujoin.fail_at = 'probe';
SELECT gj_same('SELECT k, count(*) FROM f GROUP BY k');
SET gpujoin.fail_at = 'overflow';
SELECT gj_same('SELECT k, count(*) FROM f GROUP BY k');
RESET gpujoin.fail_at;

-- EXPLAIN
SELECT gj_plan('SELECT g.name, f.k % 2, count(*), sum(f.i4) + 1 FROM f JOIN g USING (k) GROUP BY 1, 2 HAVING max(f.i4) > 0 ORDER BY 1, 2');

DROP TABLE f, g, spread, huge, fl, many, texts;
DROP TYPE mood;
DROP COLLATION insensitive;
-- texts that functions make of a few characters: empty ones, of several bytes a character, NULL; of one and of two tables, sorted, in stages
CREATE TABLE word AS SELECT i AS id, i % 30 AS k, CASE WHEN i % 11 > 0 THEN (ARRAY['', 'a', 'ab', 'ab ', 'été', 'über', 'ÿ', '漢字', '𝄞𝄞𝄞', 'ab漢'])[i % 10 + 1] END AS t, ('c' || i % 3)::char(9) AS c FROM generate_series(1, 3000) i;
CREATE TABLE words AS SELECT i AS k, left('äöü', i % 4) AS u FROM generate_series(0, 24) i;
VACUUM ANALYZE word, words;
SELECT gj_device(format(q, x)) FROM unnest(ARRAY['substring(w.t FROM 1 FOR 2)', 'substr(w.t, 2, 1)', 'left(w.t, 2)', 'left(w.c, 2)', 'substring(s.u FROM 2 FOR 2)', 'left(w.t, 0)']) WITH ORDINALITY xs (x, i),
	unnest(ARRAY['SELECT %s, count(*), sum(w.id) FROM word w JOIN words s USING (k) GROUP BY 1', 'SELECT count(DISTINCT %s) FROM word w JOIN words s USING (k)',
	'SELECT %1$s || ''!'' AS x, pg_column_size(%1$s), s.u, max(w.id) FROM word w JOIN words s USING (k) GROUP BY %1$s, s.u ORDER BY %1$s, s.u LIMIT 7',
	'SELECT n, count(*), sum(s) FROM (SELECT %s AS x, count(*) AS n, sum(w.id) AS s FROM word w JOIN words s USING (k) GROUP BY 1) y GROUP BY n',
	'SELECT DISTINCT %s FROM word w JOIN words s USING (k)', 'SELECT %s AS x, count(*) FROM word w JOIN words s USING (k) GROUP BY 1 HAVING min(w.id) > 3']) WITH ORDINALITY qs (q, j) ORDER BY i, j;
SELECT gj_device('SELECT left(t, 3), count(*) FROM word JOIN words USING (k) GROUP BY 1');
DROP TABLE word, words;
-- keys that seem to determine others: a primary key that not all partitions have, and a comparison that is true of absent rows
CREATE TABLE part_pk (id int NOT NULL, x int) PARTITION BY RANGE (id);
CREATE TABLE part_pk_1 PARTITION OF part_pk FOR VALUES FROM (0) TO (1000);
ALTER TABLE ONLY part_pk ADD PRIMARY KEY (id);
INSERT INTO part_pk SELECT i % 500, i % 3 FROM generate_series(1, 1000) i;
CREATE TABLE ful_d (id int PRIMARY KEY, y int);
INSERT INTO ful_d SELECT i, CASE WHEN i % 3 > 0 THEN i % 7 END FROM generate_series(1, 100) i;
CREATE TABLE ful_e (id int PRIMARY KEY, x int);
INSERT INTO ful_e SELECT i, i * 10 FROM generate_series(0, 5) i;
CREATE TABLE ful_f AS SELECT i % 150 AS k, i AS a FROM generate_series(1, 1000) i;
CREATE TABLE ful_g AS SELECT i AS a FROM generate_series(900, 1100) i;
VACUUM ANALYZE part_pk, ful_d, ful_e, ful_f, ful_g;
SELECT gj_device('SELECT DISTINCT id, x FROM part_pk');
-- PostgreSQL before 18 takes the key's word for it, and x is that of any row
SELECT gj_device('SELECT id, count(*) FROM part_pk JOIN ful_g ON id + 700 = a GROUP BY id, x') =
	format('same, %s rows, GpuJoin', CASE WHEN current_setting('server_version_num')::int < 180000 THEN 201 ELSE 402 END);
SELECT gj_device('SELECT d.id, e.x, count(*) FROM ful_f f LEFT JOIN ful_d d ON d.id = f.k JOIN ful_e e ON e.id = coalesce(d.y, 5) FULL JOIN ful_g g ON g.a = f.a GROUP BY d.id, e.x');
SELECT gj_device('SELECT d.id, e.x, count(*) FROM ful_f f LEFT JOIN ful_d d ON d.id = f.k JOIN ful_e e ON e.id = d.y GROUP BY d.id, e.x');
DROP TABLE part_pk, ful_d, ful_e, ful_f, ful_g;
-- below window functions PostgreSQL asks for the columns that grouped expressions are made of, too, and reads none of them
CREATE TABLE win AS SELECT i % 50 AS k, i AS v, 'text ' || i % 7 AS t, timestamp '2026-01-01' + i % 90 * interval '1 day' AS d FROM generate_series(1, 3000) i;
VACUUM ANALYZE win;
SELECT gj_device('SELECT k + 1, max(k + 1) OVER () FROM win GROUP BY k + 1');
SELECT gj_device('SELECT sum(2 * (k + 1)) OVER () FROM win GROUP BY k + 1');
SELECT gj_device('SELECT date_trunc(''month'', d), sum(v), to_char(date_trunc(''month'', d), ''YYYY-MM''), rank() OVER (ORDER BY sum(v)) FROM win GROUP BY 1');
SELECT gj_device('SELECT left(t, 2), k % 3, lag(left(t, 2)) OVER (PARTITION BY k % 3 ORDER BY left(t, 2)), sum(sum(v)) OVER (ORDER BY left(t, 2), k % 3) FROM win GROUP BY 1, 2 ORDER BY 1, 2');
SELECT gj_device('SELECT DISTINCT max(a.k + b.k) OVER (PARTITION BY a.t) FROM win a JOIN win b ON a.v = b.v + 7 GROUP BY a.k + b.k, a.t');
SELECT gj_device('SELECT k + 1, count(k + 1) FILTER (WHERE k + 1 > 5) OVER (ORDER BY k + 1 DESC), k IS NULL FROM win GROUP BY k + 1, k HAVING sum(v) > 10 ORDER BY 1 LIMIT 5');
DROP TABLE win;
