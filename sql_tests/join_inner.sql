-- Inner equi-joins: shapes, keys, NULLs, duplicates.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE fact (id int PRIMARY KEY, k1 int, k2 int, k3 int8, k4 int2, v int);
INSERT INTO fact
SELECT i, i % 100, CASE WHEN i % 17 <> 0 THEN i % 50 END, (i % 200)::int8 * 10000000000, i % 30, i * 7 % 1000
FROM generate_series(1, 5000) i;
CREATE TABLE d1 (k int, name text, c int);
INSERT INTO d1 SELECT i, 'd1 ' || i, i % 10 FROM generate_series(0, 89) i;
CREATE TABLE d2 (k int, name text, parent int);
INSERT INTO d2 SELECT i, 'd2 ' || i, i % 7 FROM generate_series(0, 59) i;
INSERT INTO d2 VALUES (NULL, 'null', NULL), (NULL, 'null', 3);
CREATE TABLE d3 (k int8, name text);
INSERT INTO d3 SELECT i::int8 * 10000000000, 'd3 ' || i FROM generate_series(0, 150) i;
CREATE TABLE d4 (k int2, name text);
INSERT INTO d4 SELECT i, 'd4 ' || i FROM generate_series(0, 40) i;
CREATE TABLE d5 (k int, name text);
INSERT INTO d5 SELECT i, 'd5 ' || i FROM generate_series(0, 6) i;
VACUUM ANALYZE fact, d1, d2;		-- the others stay unvacuumed and without statistics

-- an answer that anybody can check
SELECT d5.k, d5.name, count(*), min(d2.k), max(d2.k) FROM d2 JOIN d5 ON d2.parent = d5.k GROUP BY 1, 2 ORDER BY 1;
SELECT count(*), sum(f.v + d.c) FROM fact f JOIN d1 d ON f.k1 = d.k;

-- two relations
SELECT gj_same('SELECT f.id, d.name FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT f.id, d.name FROM d1 d JOIN fact f ON d.k = f.k1');
SELECT gj_same('SELECT f.*, d.* FROM fact f, d1 d WHERE f.k1 = d.k');
SELECT gj_same('SELECT * FROM fact NATURAL JOIN (SELECT k AS k1, name FROM d1) d');
SELECT gj_same('SELECT FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT 1 FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT f FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT d, f.id FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT f.id + d.c, upper(d.name) FROM fact f JOIN d1 d ON f.k1 = d.k');

-- stars and chains, one GpuJoin for the whole tree
SELECT gj_same('SELECT f.id, a.name, b.name FROM fact f JOIN d1 a ON f.k1 = a.k JOIN d2 b ON f.k2 = b.k');
SELECT gj_same('SELECT f.id, a.name, b.name, c.name, d.name FROM fact f JOIN d1 a ON f.k1 = a.k
	JOIN d2 b ON f.k2 = b.k JOIN d3 c ON f.k3 = c.k JOIN d4 d ON f.k4 = d.k');
SELECT gj_same('SELECT f.id, b.name, e.name FROM fact f JOIN d2 b ON f.k2 = b.k JOIN d5 e ON b.parent = e.k');
SELECT gj_same('SELECT f.id, a.name, b.name, e.name FROM fact f JOIN d1 a ON f.k1 = a.k
	JOIN d2 b ON f.k2 = b.k JOIN d5 e ON b.parent = e.k');
SELECT gj_same('SELECT count(*), sum(f.v) FROM fact f JOIN d1 a ON f.k1 = a.k JOIN d2 b ON f.k2 = b.k
	JOIN d3 c ON f.k3 = c.k JOIN d4 d ON f.k4 = d.k JOIN d5 e ON b.parent = e.k');

-- the same relation twice and more
SELECT gj_same('SELECT a.id, b.id FROM fact a JOIN fact b ON a.id = b.id + 0');
SELECT gj_same('SELECT a.k, b.k FROM d2 a JOIN d2 b ON a.parent = b.parent');
SELECT gj_same('SELECT a.k, c.name FROM d2 a JOIN d2 b ON a.parent = b.k JOIN d2 c ON b.parent = c.k');
-- keys that PostgreSQL derives: a = b and b = c
SELECT gj_same('SELECT a.k, c.k FROM d1 a JOIN d2 b ON a.k = b.k JOIN d5 c ON b.k = c.k');

-- several keys
CREATE TABLE m1 (a int, b int8, c date, v int);
CREATE TABLE m2 (a int, b int8, c date, w int);
INSERT INTO m1 SELECT i % 10, i % 7, date '2026-01-01' + i % 5, i FROM generate_series(1, 1000) i;
INSERT INTO m2 SELECT i % 11, i % 6, date '2026-01-01' + i % 4, i FROM generate_series(1, 500) i;
INSERT INTO m1 VALUES (NULL, 1, '2026-01-01', 0), (1, NULL, '2026-01-01', 0), (1, 1, NULL, 0), (NULL, NULL, NULL, 0);
INSERT INTO m2 SELECT * FROM m1 WHERE v = 0;
SELECT gj_same('SELECT v, w FROM m1 JOIN m2 USING (a, b)');
SELECT gj_same('SELECT v, w FROM m1 JOIN m2 USING (a, b, c)');
SELECT gj_same('SELECT count(*), sum(v), sum(w) FROM m1 JOIN m2 USING (a, b, c)');
SELECT gj_same('SELECT x.v, y.v FROM m1 x JOIN m1 y ON (x.a, x.b, x.c, x.v) = (y.a, y.b, y.c, y.v)');
-- the same column in two keys
SELECT gj_same('SELECT v, w FROM m1 JOIN m2 ON m1.a = m2.a AND m1.b = m2.a');

-- NULL keys join nothing
CREATE TABLE n1 (k int, t text);
CREATE TABLE n2 (k int, t text);
INSERT INTO n1 VALUES (NULL, 'a'), (NULL, 'b'), (1, 'c'), (0, 'zero'), (-1, 'minus');
INSERT INTO n2 VALUES (NULL, 'x'), (1, 'y'), (1, 'z'), (0, 'null is not zero');
SELECT n1.k, n1.t, n2.t FROM n1 JOIN n2 USING (k) ORDER BY 1, 2, 3;
SELECT gj_same('SELECT * FROM n1 JOIN n2 USING (k)');
SELECT gj_same('SELECT * FROM n1 a JOIN n1 b ON a.k = b.k');
UPDATE n2 SET k = NULL;
SELECT gj_same('SELECT * FROM n1 JOIN n2 USING (k)');

-- empty and one-row relations
CREATE TABLE empty (k int, v int);
CREATE TABLE one (k int, v int);
INSERT INTO one VALUES (5, 50);
SELECT gj_same('SELECT * FROM fact f JOIN empty e ON f.k1 = e.k');
SELECT gj_same('SELECT * FROM empty e JOIN fact f ON f.k1 = e.k JOIN d1 ON d1.k = f.k1');
SELECT gj_same('SELECT * FROM empty a JOIN empty b USING (k)');
SELECT gj_same('SELECT count(*), sum(e.v), min(f.v), avg(f.v) FROM fact f JOIN empty e ON f.k1 = e.k');
SELECT gj_same('SELECT f.id, o.v FROM fact f JOIN one o ON f.k1 = o.k');
SELECT gj_same('SELECT * FROM one a JOIN one b USING (k)');
SELECT gj_same('SELECT * FROM one a JOIN one b ON a.k = b.v');

-- duplicates on both sides: 1 000 000 pairs, and one hot key
CREATE TABLE dup1 AS SELECT i AS id, i % 10 AS k FROM generate_series(1, 3000) i;
CREATE TABLE dup2 AS SELECT i AS id, i % 10 AS k FROM generate_series(1, 3000) i;
SELECT gj_same('SELECT count(*), sum(a.id - b.id), min(a.id), max(b.id) FROM dup1 a JOIN dup2 b USING (k)');
SELECT gj_same('SELECT a.id, b.id FROM dup1 a JOIN dup2 b USING (k) WHERE a.k BETWEEN 3 AND 3 AND b.id < 2000');
CREATE TABLE hot AS SELECT i AS id, CASE WHEN i % 50 = 0 THEN i ELSE 7 END AS k FROM generate_series(1, 2000) i;
SELECT gj_same('SELECT count(*), sum(a.id), sum(b.id) FROM hot a JOIN hot b USING (k)');

-- integer keys of mixed widths, at the ends of their ranges
CREATE TABLE i2 (k int2, t text);
CREATE TABLE i4 (k int4, t text);
CREATE TABLE i8 (k int8, t text);
INSERT INTO i2 VALUES (-32768, 'min2'), (32767, 'max2'), (0, 'zero'), (-1, 'minus'), (1, 'one'), (NULL, 'null');
INSERT INTO i4 SELECT * FROM i2;
INSERT INTO i4 VALUES (-2147483648, 'min4'), (2147483647, 'max4'), (65535, 'u'), (32768, 'beyond');
INSERT INTO i8 SELECT * FROM i4;
INSERT INTO i8 VALUES (-9223372036854775808, 'min8'), (9223372036854775807, 'max8'),
	(4294967295, 'u'), (4294967296, '2^32'), (4294967297, '2^32 + 1'), (281474976710655, 'u');
SELECT a.k, b.t, c.t FROM i2 a JOIN i4 b ON a.k = b.k JOIN i8 c ON b.k = c.k ORDER BY 1;
SELECT gj_same('SELECT a.*, b.* FROM i2 a JOIN i4 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM i2 a JOIN i8 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM i4 a JOIN i8 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM i8 a JOIN i2 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM i2 a JOIN i2 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM i8 a JOIN i8 b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.*, c.* FROM i2 a JOIN i4 b ON a.k = b.k JOIN i8 c ON c.k = a.k');

-- every other type of key
CREATE TABLE t1 (d date, ts timestamp, tz timestamptz, o oid, b bool, id int);
INSERT INTO t1 SELECT date '2026-01-01' + i % 20, timestamp '2026-01-01' + i % 20 * interval '1 second',
	timestamptz '2026-01-01 00:00+00' + i % 20 * interval '1 microsecond', (4294967295 - i % 20)::oid, i % 3 = 0, i
FROM generate_series(1, 100) i;
INSERT INTO t1 VALUES ('infinity', 'infinity', 'infinity', 0, NULL, 1001), ('-infinity', '-infinity', '-infinity', NULL, true, 1002),
	('4713-01-01 BC', '4713-01-01 BC', '4713-01-02 BC', 4294967295, false, 1003), (NULL, NULL, NULL, NULL, NULL, 1004);
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.d = y.d');
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.ts = y.ts');
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.tz = y.tz');
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.o = y.o');
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.b = y.b');
SELECT gj_same('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.d = y.d AND x.b = y.b AND x.o = y.o');
SELECT gj_same('SELECT x.d, y.tz FROM t1 x JOIN t1 y ON x.id = y.id');
-- types that only look alike: PostgreSQL's answer, whoever gives it
SELECT gj_equal('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.d = y.ts');
SELECT gj_equal('SELECT x.id, y.id FROM t1 x JOIN t1 y ON x.ts = y.tz');
-- domains are their base types
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TABLE dom (k posint, t text);
INSERT INTO dom VALUES (1, 'one'), (2, 'two'), (NULL, 'null');
SELECT gj_equal('SELECT f.id, dom.t FROM fact f JOIN dom ON f.k1 = dom.k');

-- keys of other types, outer and other joins: the rows are right
SELECT gj_equal('SELECT a.k, b.k FROM d1 a JOIN d2 b ON a.name = replace(b.name, ''d2'', ''d1'')');
SELECT gj_equal('SELECT a.k, b.k FROM d1 a LEFT JOIN d2 b ON a.k = b.parent');
SELECT gj_equal('SELECT a.k, b.k, e.name FROM d1 a LEFT JOIN d2 b ON a.k = b.parent JOIN d5 e ON e.k = b.parent');
SELECT gj_equal('SELECT a.k, b.k FROM d1 a FULL JOIN d2 b ON a.k = b.parent');
SELECT gj_equal('SELECT a.k FROM d1 a WHERE EXISTS (SELECT FROM d2 b WHERE b.parent = a.k)');
SELECT gj_equal('SELECT a.k FROM d1 a WHERE a.k NOT IN (SELECT parent FROM d2 WHERE parent IS NOT NULL)');
SELECT gj_equal('SELECT a.k, b.k FROM d1 a JOIN d2 b ON a.k < b.k');
SELECT gj_equal('SELECT a.k, b.k FROM d1 a CROSS JOIN d5 b');
SELECT gj_equal('SELECT a.k, l.id FROM d1 a CROSS JOIN LATERAL (SELECT f.id FROM fact f WHERE f.k1 = a.k ORDER BY f.id LIMIT 2) l');
-- an inner join below outer ones, and beside them
SELECT gj_equal('SELECT a.k, f.id, e.k FROM d1 a JOIN fact f ON f.k1 = a.k LEFT JOIN d5 e ON e.k = f.k2');
SELECT gj_equal('SELECT a.k, x.n FROM d1 a LEFT JOIN (SELECT f.k1, count(*) n FROM fact f JOIN d2 b ON f.k2 = b.k GROUP BY 1) x ON x.k1 = a.k');
-- above the join: ORDER BY, LIMIT, DISTINCT, windows, set operations
SELECT f.id, d.name FROM fact f JOIN d1 d ON f.k1 = d.k ORDER BY f.id DESC, d.name LIMIT 3;
SELECT DISTINCT d.c FROM fact f JOIN d1 d ON f.k1 = d.k WHERE d.c < 4 ORDER BY 1;
SELECT gj_equal('SELECT f.id, row_number() OVER (PARTITION BY d.c ORDER BY f.id) FROM fact f JOIN d1 d ON f.k1 = d.k');
SELECT gj_same('SELECT f.id FROM fact f JOIN d1 d ON f.k1 = d.k UNION ALL SELECT f.id FROM fact f JOIN d2 d ON f.k2 = d.k');
SELECT gj_equal('SELECT f.id FROM fact f JOIN d1 d ON f.k1 = d.k EXCEPT SELECT f.id FROM fact f JOIN d2 d ON f.k2 = d.k');

-- a result of many batches: each row once
CREATE TABLE big AS SELECT i AS id, i % 1000 AS k, repeat('x', i % 50) AS pad FROM generate_series(1, 60000) i;
VACUUM ANALYZE big;
SELECT gj_same('SELECT count(*), sum(b.id) FROM big b JOIN d1 d ON b.k = d.k');
SELECT count(*), count(DISTINCT id), sum(id), sum(length(pad)) FROM
	(SELECT b.id, b.pad, d.name FROM big b JOIN (SELECT k * 10 AS k, name FROM d1) d ON b.k = d.k OFFSET 0) x;
SELECT gj_same('SELECT a.id, b.id, a.pad FROM big a JOIN big b ON a.id = b.id');

DROP TABLE fact, d1, d2, d3, d4, d5, m1, m2, n1, n2, empty, one, dup1, dup2, hot, i2, i4, i8, t1, dom, big;
DROP DOMAIN posint;
