-- Nested loops that pass values down to the members of an append: partitions, children, UNION ALL.
CREATE TABLE jap_outer AS SELECT i AS k, i * 10 AS v FROM generate_series(1, 20) i;
CREATE TABLE jap_parts (k int, w int) PARTITION BY RANGE (k);
CREATE TABLE jap_parts_1 PARTITION OF jap_parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE jap_parts_2 PARTITION OF jap_parts FOR VALUES FROM (1000) TO (2000);
INSERT INTO jap_parts SELECT i, i % 7 FROM generate_series(0, 1999) i;
CREATE INDEX ON jap_parts (k);
CREATE TABLE jap_parent (k int, w int);
CREATE TABLE jap_child (more text) INHERITS (jap_parent);
INSERT INTO jap_parent SELECT i, i % 5 FROM generate_series(1, 1000) i;
INSERT INTO jap_child SELECT i, i % 3, 'more' FROM generate_series(5, 1500) i;
CREATE INDEX ON jap_parent (k);
CREATE INDEX ON jap_child (k);
ANALYZE jap_outer, jap_parts, jap_parts_1, jap_parts_2, jap_parent, jap_child;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;

SELECT gj_same('SELECT o.*, p.* FROM jap_outer o JOIN jap_parts p ON o.k = p.k');
SELECT gj_same('SELECT o.*, p.* FROM jap_outer o JOIN jap_parent p ON o.k = p.k');
SELECT gj_same('SELECT o.*, p.* FROM jap_outer o LEFT JOIN jap_parts p ON o.k * 3 = p.k AND p.w <> o.v % 7');
SELECT gj_same('SELECT o.*, p.* FROM jap_outer o LEFT JOIN jap_parent p ON o.k = p.k WHERE p.w IS NULL OR p.w > 1');
SELECT gj_same('SELECT * FROM jap_outer o WHERE EXISTS (SELECT FROM jap_parts p WHERE o.v = p.k AND p.w = 3)');
SELECT gj_same('SELECT * FROM jap_outer o WHERE NOT EXISTS (SELECT FROM jap_parent p WHERE o.v * 9 = p.k)');
SELECT gj_same('SELECT count(*), sum(u.w) FROM jap_outer o JOIN (SELECT * FROM jap_parts_1 UNION ALL SELECT * FROM jap_parent) u ON o.k = u.k');
SELECT gj_same('SELECT count(*), sum(p.w) FROM (SELECT k FROM jap_outer LIMIT 3) o JOIN jap_parts p ON o.k = p.k AND p.k < o.k + 1');
SELECT gj_same('SELECT p.k, q.w, o.v FROM jap_outer o JOIN jap_parts p ON o.k = p.k JOIN jap_parent q ON p.k + 1 = q.k AND q.w <> o.v % 3');
SELECT gj_same('SELECT o.v, count(*) FROM jap_outer o JOIN jap_parts p ON p.k BETWEEN o.k AND o.k + 4 GROUP BY o.v');

RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;

-- one attribute of a table can be several columns of a UNION ALL
CREATE TABLE jap_twice (a int, b text, c bigint, gone int);
INSERT INTO jap_twice SELECT i, CASE WHEN i % 7 > 0 THEN 'b' || i END, NULLIF(i % 5, 0) * 10, i FROM generate_series(1, 1000) i;
ALTER TABLE jap_twice DROP gone, ADD late int DEFAULT 8, ADD words text DEFAULT 'was not there';
INSERT INTO jap_twice SELECT i, repeat('long ', i), i, i, 'is there' FROM generate_series(500, 600, 5) i;
CREATE TABLE jap_fixed (e bigint, d int NOT NULL, c int NOT NULL);
INSERT INTO jap_fixed SELECT 7, -i, i FROM generate_series(1, 1000) i;
CREATE TABLE jap_names AS SELECT i AS k, 'n' || i AS name FROM generate_series(1, 1000, 3) i;
VACUUM ANALYZE jap_twice, jap_fixed, jap_names;
SELECT gj_same('SELECT u.*, n.name FROM (SELECT a AS x, a AS y FROM jap_twice UNION ALL SELECT c, d FROM jap_fixed) u JOIN jap_names n ON u.x = n.k');
SELECT gj_same('SELECT u.*, n.name FROM (SELECT c AS x, c AS y, c AS z, d AS w FROM jap_fixed UNION ALL SELECT a, a, a, late FROM jap_twice) u JOIN jap_names n ON u.z = n.k AND u.y > u.w');
SELECT gj_same('SELECT u.*, n.name FROM (SELECT b AS x, b AS y, words AS z, words AS w, a FROM jap_twice UNION ALL SELECT name, name, name, name, k FROM jap_names) u JOIN jap_names n ON u.a = n.k WHERE u.y < u.z OR u.w IS NULL');
SELECT gj_same('SELECT count(*), sum(x), sum(y), max(y) FROM (SELECT c AS x, c AS y FROM jap_twice UNION ALL SELECT e, e FROM jap_fixed) u');
SELECT gj_same((SELECT format('SELECT u.* FROM (SELECT k, %s FROM jap_names UNION ALL SELECT k, %1$s FROM jap_names) u JOIN jap_names n ON n.k = u.k',
	string_agg('name AS n' || i, ', ')) FROM generate_series(1, 30) i));

-- a member's policies hold for its partitions and children too
CREATE ROLE gj_append_reader;
GRANT SELECT ON jap_parts, jap_parent, jap_outer TO gj_append_reader;
ALTER TABLE jap_parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON jap_parts USING (w < 3);
ALTER TABLE jap_parent ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON jap_parent USING (w = 1);
SET ROLE gj_append_reader;
SELECT gj_same('SELECT u.* FROM (SELECT k, w FROM jap_parts UNION ALL SELECT k, v FROM jap_outer) u JOIN jap_outer o ON o.k = u.k');
SELECT gj_same('SELECT u.* FROM (SELECT k, v FROM jap_outer UNION ALL SELECT k, w FROM jap_parent) u JOIN jap_outer o ON o.k = u.k');
SELECT gj_equal('SELECT w, count(*) FROM (SELECT k, w FROM jap_parts UNION ALL SELECT k, w FROM jap_parent) u GROUP BY w');
SELECT gj_same('SELECT * FROM jap_parts p JOIN jap_outer o USING (k)');
RESET ROLE;
DROP TABLE jap_outer, jap_parts, jap_child, jap_parent, jap_twice, jap_fixed, jap_names;
DROP ROLE gj_append_reader;
