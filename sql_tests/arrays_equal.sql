-- Equality of integer arrays, which is not that of sets: order, duplicates, dimensions, lower bounds and NULLs count.
LOAD 'gpujoin';
CREATE SCHEMA arrays_equal;
SET search_path = arrays_equal, public;
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
SET extra_float_digits = 0;

CREATE TABLE e4 (id int, s int[]);
INSERT INTO e4 SELECT i, ARRAY(SELECT (i * 7919 + j * 31) % (3 + i % 5) FROM generate_series(1, i * 13 % 6) j) FROM generate_series(1, 400) i;
INSERT INTO e4 SELECT i, CASE i % 4 WHEN 0 THEN s || NULL::int WHEN 1 THEN NULL::int || s WHEN 2 THEN ARRAY[NULL, i % 3, NULL]::int[] ELSE array_fill(NULL::int, ARRAY[i % 20]) END
	FROM e4 x, LATERAL (SELECT x.id + 1000 AS i) y WHERE id % 3 = 0;
INSERT INTO e4 VALUES (2001, NULL), (2002, '{}'), (2003, '{{1,2},{3,4}}'), (2004, '{1,2,3,4}'), (2005, '[0:3]={1,2,3,4}'), (2006, '[1:4]={1,2,3,4}'), (2007, '{{1,2,3,4}}'), (2008, '{{1},{2},{3},{4}}'),
	(2009, '[2:3][0:1]={{1,2},{3,4}}'), (2010, '{2147483647,-2147483648,0}'), (2011, '{4,3,2,1}'), (2012, '{{NULL,1},{1,NULL}}'), (2013, '{NULL,1,1,NULL}'), (2014, '{{{1}}}'), (2015, '{1}');
INSERT INTO e4 SELECT id + 3000, s FROM e4 WHERE id > 2000;
CREATE TABLE e2 AS SELECT id, ARRAY(SELECT (x % 1000)::int2 FROM unnest(s) x) s FROM e4;
CREATE TABLE e8 AS SELECT id, ARRAY(SELECT x::int8 * 2147483648 FROM unnest(s) x) s FROM e4;
-- stored in other ways: compressed, out of line, built
CREATE TABLE el (id int, s int[]);
ALTER TABLE el ALTER s SET STORAGE EXTERNAL;
INSERT INTO el SELECT i, ARRAY(SELECT j % (7 + i % 3) FROM generate_series(1, 1500) j) FROM generate_series(1, 30) i;
INSERT INTO el SELECT i, ARRAY(SELECT 5 FROM generate_series(1, 3000 + i % 2) j) FROM generate_series(31, 60) i;
VACUUM ANALYZE e4, e2, e8, el;

SELECT gj_plan('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.s = b.s');
SELECT t, gj_same(format('SELECT a.id, b.id FROM %1$s a JOIN %1$s b ON a.s = b.s', t)) FROM unnest(ARRAY['e4', 'e2', 'e8', 'el']) t;
SELECT t, gj_same(format('SELECT a.id, b.id, b.s FROM %1$s a JOIN %1$s b ON b.s = a.s AND a.id < b.id', t)) FROM unnest(ARRAY['e4', 'e2', 'e8', 'el']) t;
SELECT j, gj_same(format('SELECT a.id, b.id FROM e4 a %s JOIN (SELECT * FROM e4 WHERE id %% 7 < 3) b ON a.s = b.s AND a.id <> b.id', j)) FROM unnest(ARRAY['LEFT', 'RIGHT', 'FULL']) j;
SELECT gj_same('SELECT id FROM e4 a WHERE EXISTS (SELECT FROM e4 b WHERE a.s = b.s AND b.id > a.id)');
SELECT gj_same('SELECT id FROM e4 a WHERE NOT EXISTS (SELECT FROM e4 b WHERE b.s = a.s AND b.id > a.id)');
SELECT gj_same('SELECT count(*), sum(a.id) FROM e4 a JOIN e4 b ON a.s = b.s');
SELECT gj_same('SELECT a.id % 5, count(*), max(b.id) FROM e4 a JOIN e4 b ON a.s = b.s GROUP BY 1');
SELECT gj_same('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.id % 50 = b.id % 50 AND a.s <> b.s');
SELECT gj_same('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.id % 50 = b.id % 50 AND CASE WHEN a.id > 100 THEN a.s = b.s ELSE a.id < b.id END');
SELECT gj_same('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.s = b.s AND a.s && b.s');
SELECT gj_same('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.s && b.s AND a.s = b.s AND a.id < 300');
SELECT gj_same('SELECT a.id, b.id, c.id FROM e4 a JOIN e4 b USING (s) JOIN e4 c USING (s) WHERE a.id < 50 AND c.id > 900');
SELECT s, set_config('gpujoin.algorithm', s, false) = s, gj_same('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.s = b.s WHERE a.id % 3 = 0') FROM unnest(ARRAY['hash', 'sort_merge', 'nested_loop', 'auto']) s;
-- a bitmap of NULLs that says that there are none, as an assignment leaves it: equal, but not by its bytes
CREATE TABLE ebits AS SELECT id, s FROM e4 WHERE id BETWEEN 1 AND 20;
INSERT INTO ebits VALUES (5000, '{1,NULL,3}'), (5001, '{1,2,3}');
UPDATE ebits SET s[2] = 2 WHERE id = 5000;
VACUUM ANALYZE ebits;
SELECT gj_same('SELECT a.id, b.id FROM ebits a JOIN ebits b ON a.s = b.s');
SELECT gj_same('SELECT a.id, b.id FROM ebits a JOIN ebits b ON a.s = b.s WHERE a.id < 100 AND b.id < 100');
-- arrays of other types, and other operators, are PostgreSQL's
CREATE TABLE et AS SELECT id, s::text[] s FROM e4;
SELECT gj_equal('SELECT a.id, b.id FROM et a JOIN et b ON a.s = b.s');
SELECT gj_equal('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.s < b.s WHERE a.id < 50 AND b.id < 50');
SELECT gj_same('SELECT id FROM e4 WHERE s = ''{1,2,3,4}''');
SELECT c, gj_equal('SELECT a.id, b.id FROM e4 a JOIN e4 b ON a.id % 50 = b.id % 50 AND ' || c) FROM unnest(ARRAY['a.s IS DISTINCT FROM b.s', 'a.s IS NOT DISTINCT FROM b.s', 'NULLIF(a.s, b.s) IS NULL',
	'CASE a.s WHEN b.s THEN true ELSE a.id < 20 END', '(a.s = b.s) IS NOT TRUE', 'a.s = b.s OR a.s IS NULL', 'COALESCE(a.s, b.s) = b.s']) c;
