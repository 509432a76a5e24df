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
DROP TABLE jap_outer, jap_parts, jap_child, jap_parent;
