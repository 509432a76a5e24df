-- Partitions, inheritance children and members of UNION ALL as one source of several tables.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
SET client_min_messages = warning;

-- every partition has its own layout: order of columns, dropped ones, values that older tuples lack, a toasted default
CREATE TABLE pd (k int, name text);
INSERT INTO pd SELECT i, 'd' || i FROM generate_series(0, 19) i;
CREATE TABLE p (id int, k int, v bigint, t text, n numeric(10,2)) PARTITION BY RANGE (id);
CREATE TABLE p_same PARTITION OF p FOR VALUES FROM (1) TO (3000);
CREATE TABLE p_order (n numeric(10,2), t text, gone text, v bigint, id int NOT NULL, gone_too int, k int);
INSERT INTO p_order (n, t, gone, v, id, gone_too, k) SELECT i / 4.0, NULL, repeat('x', i % 50), -i, i, 7, i % 25 FROM generate_series(3000, 3400) i;
ALTER TABLE p_order DROP COLUMN gone;
ALTER TABLE p_order DROP COLUMN gone_too;
ALTER TABLE p ATTACH PARTITION p_order FOR VALUES FROM (3000) TO (6000);
CREATE TABLE p_missing (id int, k int);
INSERT INTO p_missing SELECT i, i % 25 FROM generate_series(6000, 6200) i;
ALTER TABLE p_missing ADD v bigint DEFAULT 77, ADD t text DEFAULT 'missing in the tuple', ADD n numeric(10,2);
ALTER TABLE p ATTACH PARTITION p_missing FOR VALUES FROM (6000) TO (9000);
CREATE TABLE p_sub PARTITION OF p FOR VALUES FROM (9000) TO (20000) PARTITION BY HASH (k);
CREATE TABLE p_sub_0 PARTITION OF p_sub FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE p_sub_1 (t text, n numeric(10,2), id int, v bigint, k int);
ALTER TABLE p_sub ATTACH PARTITION p_sub_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE p_sub_2 PARTITION OF p_sub FOR VALUES WITH (MODULUS 3, REMAINDER 2) WITH (fillfactor = 30);
CREATE TABLE p_empty PARTITION OF p FOR VALUES FROM (20000) TO (21000);
CREATE TABLE p_default PARTITION OF p DEFAULT;
INSERT INTO p SELECT i, i % 25, i * 3, CASE WHEN i % 3 > 0 THEN 'text ' || i % 40 END, i / 8.0 FROM generate_series(1, 12000, 3) i;
INSERT INTO p VALUES (-1, 3, NULL, repeat('long ', 2000), NULL), (NULL, 4, 4, 'no id', 1), (30000, NULL, 5, NULL, 2);
-- generated, with a default, and wider: for all partitions
ALTER TABLE p ADD twice bigint GENERATED ALWAYS AS (v * 2) STORED, ADD later int NOT NULL DEFAULT 42;
INSERT INTO p (id, k, v, later) SELECT i, i % 25, i, i % 7 FROM generate_series(12001, 12200) i;
VACUUM ANALYZE p_same, p_order, p_sub_0;
ANALYZE p, pd;

SELECT gj_device('SELECT * FROM p JOIN pd USING (k)');
SELECT gj_device('SELECT p.id, p.later, pd.name FROM p JOIN pd USING (k) WHERE p.v > 100 AND p.twice < 9000');
SELECT gj_device('SELECT p.t, p.n, pd.name FROM p LEFT JOIN pd ON p.k = pd.k AND p.t LIKE ''text 1%''');
SELECT gj_device('SELECT pd.*, p.id FROM pd LEFT JOIN p ON p.k = pd.k + 3 AND p.t IS NULL');
SELECT gj_device('SELECT p.id, pd.name FROM p FULL JOIN pd USING (k)');
SELECT gj_device('SELECT * FROM pd WHERE EXISTS (SELECT FROM p WHERE p.k = pd.k AND p.n > 1400)');
SELECT gj_device('SELECT id FROM p WHERE NOT EXISTS (SELECT FROM pd WHERE p.k = pd.k)');
SELECT gj_device('SELECT a.id, b.v, a.t FROM p a JOIN p b ON a.id = b.id + 3');
SELECT gj_device('SELECT count(*), sum(v), min(n), max(id), sum(later), count(t) FROM p');
SELECT gj_device('SELECT k, t, count(*), sum(n), avg(later) FROM p WHERE id BETWEEN 1 AND 10000 GROUP BY k, t');
SELECT gj_device('SELECT DISTINCT later, k FROM p');
SELECT gj_device('SELECT count(*) FROM p JOIN pd ON true');
SELECT gj_device('SELECT count(DISTINCT p.id), pd.name FROM p JOIN pd USING (k) GROUP BY 2');
-- each algorithm
SET gpujoin.algorithm = sort_merge;
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd ON p.k BETWEEN pd.k AND pd.k + 1');
SET gpujoin.algorithm = nested_loop;
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k)');
RESET gpujoin.algorithm;

-- pruning when it is planned
SELECT gj_plan('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id BETWEEN 2000 AND 4000') LIMIT 5;
SELECT gj_plan('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id = 9001 AND k = 1') LIMIT 5;
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id BETWEEN 2000 AND 4000');
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id = 9001 AND k = 1');
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id IS NULL OR p.id < 0');
SELECT gj_same('SELECT p.id, pd.name FROM pd LEFT JOIN p ON p.k = pd.k AND p.id > 20000 AND p.id < 20500');
SELECT gj_same('SELECT p.id FROM p JOIN pd USING (k) WHERE p.id > 5 AND p.id < 3');
SET enable_partition_pruning = off;
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id BETWEEN 2000 AND 4000');
RESET enable_partition_pruning;
-- when it is executed: what PostgreSQL's own plan, initialised, leaves out
SET plan_cache_mode = force_generic_plan;
PREPARE by_id(int, int) AS SELECT count(*), sum(p.v), min(pd.name) FROM p JOIN pd USING (k) WHERE p.id BETWEEN $1 AND $2;
EXECUTE by_id(2000, 4000);
EXECUTE by_id(20000, 20100);
EXECUTE by_id(NULL, 4);
EXECUTE by_id(8000, 7000);
CREATE FUNCTION tables_of(statement text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT regexp_replace(line, ' *Pages: .*', '') FROM gj_plan(statement, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') line
	WHERE line ~ 'heap pages|Tables|Rows: loaded|Fallback:'
$$;
SELECT tables_of('EXECUTE by_id(2000, 4000)');
SELECT tables_of('EXECUTE by_id(20000, 20100)');
SELECT tables_of('EXECUTE by_id(8000, 7000)');
-- a subquery's parameter prunes when the plan runs: all tables are loaded and filtered
SELECT gj_same('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id = (SELECT max(k) * 100 FROM pd)');
-- one source is pruned, the other occurrence of the same table is not
PREPARE self(int) AS SELECT count(*), sum(b.v) FROM p a JOIN p b ON a.k = b.k AND b.id < 3000 WHERE a.id = $1;
EXECUTE self(4);
EXECUTE self(20005);
SELECT tables_of('EXECUTE self(4)');
SET gpujoin.enabled = off;
EXECUTE by_id(2000, 4000);
EXECUTE by_id(20000, 20100);
EXECUTE by_id(NULL, 4);
EXECUTE self(4);
EXECUTE self(20005);
RESET gpujoin.enabled;
RESET plan_cache_mode;
-- DDL between plan and execution
ALTER TABLE p DETACH PARTITION p_order;
EXECUTE by_id(2000, 4000);
ALTER TABLE p ATTACH PARTITION p_order FOR VALUES FROM (3000) TO (6000);
EXECUTE by_id(2000, 4000);
ALTER TABLE p DROP COLUMN n;
EXECUTE by_id(2000, 4000);
DROP TABLE p_empty;
EXECUTE by_id(20000, 20100);
SELECT gj_same('SELECT p.*, pd.name FROM p JOIN pd USING (k)');
DEALLOCATE by_id;
DEALLOCATE self;

-- system columns and whole rows: rows of PostgreSQL's plan
SELECT gj_device('SELECT p.id, p.tableoid::regclass, pd.name FROM p JOIN pd USING (k) WHERE p.id > 5900');
SELECT gj_device('SELECT p.ctid, pd.name FROM p JOIN pd USING (k)');
SELECT gj_device('SELECT p, pd.name FROM p JOIN pd USING (k)');
SELECT gj_device('SELECT p.id FROM p JOIN pd USING (k) WHERE p.tableoid = ''p_order''::regclass');
SELECT gj_same('SELECT count(*) FROM p TABLESAMPLE SYSTEM (100) JOIN pd USING (k)');
SELECT gj_same('SELECT count(*) FROM ONLY p JOIN pd USING (k)');

-- changes of the transaction itself
BEGIN;
UPDATE p SET id = id + 3000 WHERE id BETWEEN 2900 AND 2950;
DELETE FROM p WHERE k = 7;
INSERT INTO p (id, k, v) VALUES (20100, 1, 1), (5, 1, 1);
SELECT gj_same('SELECT p.*, pd.name FROM p JOIN pd USING (k)');
SAVEPOINT s;
TRUNCATE p_same;
CREATE TABLE p_new PARTITION OF p FOR VALUES FROM (40000) TO (41000);
INSERT INTO p (id, k, v) SELECT i, i % 25, i FROM generate_series(40000, 40500) i;
SELECT gj_same('SELECT p.*, pd.name FROM p JOIN pd USING (k)');
ROLLBACK TO s;
SELECT gj_same('SELECT count(*), sum(v) FROM p');
ROLLBACK;
SELECT gj_same('SELECT count(*), sum(v) FROM p');
-- cursors, and a partition that is dropped under one
BEGIN;
DECLARE c CURSOR FOR SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id BETWEEN 2990 AND 3005 AND pd.k < 20;
MOVE 3 FROM c;
DROP TABLE p_order;
ROLLBACK;

-- permissions and policies are the parent's
CREATE ROLE gj_parts_reader;
GRANT SELECT (id, k, v) ON p TO gj_parts_reader;
GRANT SELECT ON pd TO gj_parts_reader;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO gj_parts_reader;
SET ROLE gj_parts_reader;
SELECT gj_device('SELECT p.id, p.v, pd.name FROM p JOIN pd USING (k)');
SELECT gj_equal('SELECT p.id, p.t, pd.name FROM p JOIN pd USING (k)');
SELECT gj_equal('SELECT count(*) FROM p_same JOIN pd USING (k)');
RESET ROLE;
ALTER TABLE p ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON p USING (v % 2 = 0);
ALTER TABLE p_same ENABLE ROW LEVEL SECURITY;			-- says nothing of a query of p
GRANT SELECT ON p_order, p_same TO gj_parts_reader;
CREATE POLICY third ON p_same USING (id % 3 = 1 AND id < 2000);
SET ROLE gj_parts_reader;
SELECT gj_device('SELECT p.id, p.v, pd.name FROM p JOIN pd USING (k)');
SELECT gj_device('SELECT p.id, pd.name FROM p JOIN pd USING (k) WHERE p.id / p.v > -10');
SELECT gj_device('SELECT u.id FROM (SELECT id, k FROM p_same UNION ALL SELECT id, k FROM p_order) u JOIN pd USING (k)');
RESET ROLE;
ALTER TABLE p DISABLE ROW LEVEL SECURITY;
ALTER TABLE p_same DISABLE ROW LEVEL SECURITY;
DROP POLICY even ON p;
DROP OWNED BY gj_parts_reader;
DROP ROLE gj_parts_reader;

-- inheritance: the parent has rows of its own; more columns, two parents, temporary children
CREATE TABLE i_top (k int, v int);
CREATE TABLE i_other (w text DEFAULT 'w');
CREATE TABLE i_child (extra text, more text) INHERITS (i_top);
CREATE TABLE i_both (x int) INHERITS (i_other, i_top);
CREATE TABLE i_grandchild (y int) INHERITS (i_child);
CREATE TEMP TABLE i_temp (z int) INHERITS (i_top);
INSERT INTO i_top SELECT i % 25, i FROM generate_series(1, 500) i;
INSERT INTO i_child SELECT i % 25, -i, 'x', NULL FROM generate_series(1, 400) i;
INSERT INTO i_both (k, v, x) SELECT i % 25, i * 2, i FROM generate_series(1, 300) i;
INSERT INTO i_grandchild SELECT i % 25, i * 5, 'y', 'z', i FROM generate_series(1, 200) i;
INSERT INTO i_temp SELECT i % 25, i * 7, i FROM generate_series(1, 100) i;
ALTER TABLE i_child ADD CONSTRAINT negative CHECK (v <= 1000) NO INHERIT;
ALTER TABLE i_both ADD CONSTRAINT positive CHECK (v > 0);
ANALYZE i_top, i_child, i_both, i_grandchild, i_temp, i_other;
SELECT gj_device('SELECT i.v, pd.name FROM i_top i JOIN pd USING (k)');
SELECT gj_device('SELECT count(*), sum(v) FROM i_top');
SELECT gj_device('SELECT i.v, pd.name FROM ONLY i_top i JOIN pd USING (k)');
SELECT gj_device('SELECT i.extra, count(*) FROM i_child i JOIN pd USING (k) GROUP BY 1');
SELECT gj_device('SELECT i.w, pd.name FROM i_other i JOIN pd ON length(w) = pd.k');
SELECT gj_plan('SELECT i.v, pd.name FROM i_top i JOIN pd USING (k) WHERE i.v = -4') LIMIT 5;
SELECT gj_same('SELECT i.v, pd.name FROM i_top i JOIN pd USING (k) WHERE i.v = -4');
ALTER TABLE i_child NO INHERIT i_top;
SELECT gj_device('SELECT i.v, pd.name FROM i_top i JOIN pd USING (k)');
ALTER TABLE i_child INHERIT i_top;
ALTER TABLE i_top ADD added numeric DEFAULT 1.5;
SELECT gj_device('SELECT i.v, i.added, pd.name FROM i_top i JOIN pd USING (k)');

-- UNION ALL: tables of the same types are one source, others rows of a plan
SELECT gj_device('SELECT u.v, pd.name FROM (SELECT k, v FROM i_child UNION ALL SELECT x, v FROM i_both) u JOIN pd USING (k)');
SELECT gj_device('SELECT count(*), sum(u.v) FROM (SELECT * FROM ONLY i_top UNION ALL SELECT k, v, added FROM i_top) u');
SELECT gj_device('SELECT u.v, pd.name FROM (SELECT k, v FROM p UNION ALL SELECT k, v FROM p_order) u JOIN pd USING (k) WHERE u.v > 0');
SELECT gj_device('SELECT u.v, pd.name FROM (SELECT k, v FROM i_child UNION ALL SELECT k, v FROM p) u JOIN pd USING (k)');
SELECT gj_device('SELECT u.v, pd.name FROM (SELECT k, v FROM i_child UNION ALL SELECT k, v + 1 FROM i_both) u JOIN pd USING (k)');
SELECT gj_device('SELECT u.v, pd.name FROM (SELECT k, v FROM i_child WHERE v < -3 UNION ALL SELECT k, v FROM i_both) u JOIN pd USING (k)');
SELECT gj_device('SELECT u.w, pd.name FROM (SELECT k, 1 AS w FROM i_child UNION ALL SELECT k, 2 FROM i_both) u JOIN pd USING (k)');
SELECT gj_device('SELECT pd.name, u.v FROM pd LEFT JOIN (SELECT k, v FROM i_child UNION ALL SELECT k, v FROM i_both) u ON pd.k * 2 = u.k AND u.v > 20');
SELECT gj_device('SELECT u.t, pd.name FROM (SELECT k, t FROM p_same UNION ALL SELECT k, name FROM pd) u JOIN pd USING (k)');
SELECT gj_device('SELECT u.t, u.k FROM (SELECT k, t COLLATE "C" AS t FROM p_same UNION ALL SELECT k, name FROM pd) u JOIN pd USING (k)');
CREATE TABLE u_narrow (k int, n numeric(6,1), c varchar(3));
CREATE TABLE u_wide (k int, n numeric(12,4), c varchar(30));
INSERT INTO u_narrow SELECT i % 25, i / 2.0, 'n' || i % 10 FROM generate_series(1, 100) i;
INSERT INTO u_wide SELECT i % 25, i / 16.0, 'n' || i % 100 FROM generate_series(1, 100) i;
SELECT gj_equal('SELECT sum(u.n), min(u.c), count(*) FROM (SELECT * FROM u_narrow UNION ALL SELECT * FROM u_wide) u JOIN pd USING (k) WHERE u.n < 6');
SELECT gj_device('SELECT u.n, u.c, pd.name FROM (SELECT * FROM u_narrow UNION ALL SELECT * FROM u_wide) u JOIN pd USING (k) WHERE u.c = ''n7''');
-- from both sides of the same table
SELECT gj_device('SELECT count(*), sum(u.v) FROM (SELECT k, v FROM i_both UNION ALL SELECT k, v FROM i_both) u JOIN i_both b ON u.v = b.v');

-- partition by partition: one program for all of them, a native plan that is partitionwise
CREATE TABLE w (id int, x int, t text) PARTITION BY RANGE (id);
CREATE TABLE w_1 PARTITION OF w FOR VALUES FROM (1) TO (500);
CREATE TABLE w_2 PARTITION OF w FOR VALUES FROM (500) TO (1000);
CREATE TABLE w_3 PARTITION OF w DEFAULT;
CREATE TABLE y (z int, id int) PARTITION BY RANGE (id);
CREATE TABLE y_1 (id int, z int);
ALTER TABLE y ATTACH PARTITION y_1 FOR VALUES FROM (1) TO (500);
CREATE TABLE y_2 PARTITION OF y FOR VALUES FROM (500) TO (1000);
CREATE TABLE y_3 PARTITION OF y DEFAULT;
INSERT INTO w SELECT i, i % 10, 'w' || i FROM generate_series(1, 3000) i;
INSERT INTO y SELECT i % 10, i FROM generate_series(1, 3000, 2) i;
ANALYZE w, y;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SET max_parallel_workers_per_gather = 0;
SELECT gj_plan('SELECT w.t, y.z FROM w JOIN y USING (id) WHERE w.x > 3');
SELECT gj_device('SELECT w.t, y.z FROM w JOIN y USING (id) WHERE w.x > 3');
SELECT gj_device('SELECT w.t, y.z FROM w LEFT JOIN y ON w.id = y.id AND y.z > 5');
SELECT gj_device('SELECT w.t, y.z FROM w FULL JOIN y ON w.id = y.id ORDER BY 1 LIMIT 10');
SELECT gj_device('SELECT * FROM w WHERE EXISTS (SELECT FROM y WHERE y.id = w.id AND y.z <> 3)');
SELECT gj_device('SELECT count(*), sum(w.x), min(y.z) FROM w JOIN y USING (id)');
SELECT gj_device('SELECT w.id, count(*) FROM w JOIN y USING (id) GROUP BY 1');
SELECT gj_device('SELECT w.id, count(*) + 1 FROM w JOIN y USING (id) GROUP BY 1');
SELECT gj_device('SELECT w.x, count(*) + 1, sum(y.z) FROM w JOIN y USING (id) GROUP BY 1 HAVING sum(y.z) > 5');
SELECT gj_device('SELECT id, sum(x) FROM w GROUP BY 1');
SELECT gj_device('SELECT DISTINCT id FROM w');
SELECT gj_device('SELECT w.t, pd.name FROM w JOIN y USING (id) JOIN pd ON pd.k = y.z WHERE w.id < 700');
SELECT gj_device('SELECT w.t, v.t FROM w JOIN y USING (id) JOIN w v USING (id)');
-- a full join is a join problem of its own, within another one
SELECT gj_device('SELECT w.id, y.z, v.t FROM w FULL JOIN y USING (id) LEFT JOIN w v ON v.id = y.id AND v.x > 4');
SELECT gj_device('SELECT w.id, y.z, v.x FROM w FULL JOIN y USING (id) FULL JOIN (SELECT * FROM w WHERE x < 5) v ON v.id = y.id WHERE coalesce(y.z, v.x) <> 7');
SELECT gj_device('SELECT count(*), sum(v.x) FROM w FULL JOIN y USING (id) JOIN w v ON v.id = y.id JOIN pd ON pd.k = y.z');
SELECT gj_device('SELECT w.t, y FROM w JOIN y USING (id)');
SELECT gj_device('SELECT w.t FROM (SELECT w.t, y.z FROM w JOIN y USING (id) WHERE w.id > 100) w WHERE w.z < 4');
SET gpujoin.force = off;
EXPLAIN (COSTS OFF) SELECT w.t, y.z FROM w JOIN y USING (id) WHERE w.id = 3;
SET gpujoin.force = on;
SET gpujoin.enabled = off;
EXPLAIN (COSTS OFF) SELECT w.t, y.z FROM w JOIN y USING (id) WHERE w.id < 700;
RESET gpujoin.enabled;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
RESET max_parallel_workers_per_gather;
DROP TABLE w, y;

-- members that are no plain tables
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE SERVER gj_files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE i_foreign (k int, v int, added numeric) SERVER gj_files OPTIONS (program 'seq 1 30 | sed "s/\(.*\)/\1,\1,1/"', format 'csv');
ALTER FOREIGN TABLE i_foreign INHERIT i_top;
SELECT gj_device('SELECT i.v, pd.name FROM i_top i JOIN pd USING (k)');
DROP FOREIGN TABLE i_foreign;
DROP SERVER gj_files;
DROP EXTENSION file_fdw;
DROP FUNCTION tables_of;
DROP TABLE p, pd, i_top, i_other, i_child, i_both, i_grandchild, i_temp, u_narrow, u_wide;

-- rows of several fragments, put together for joins without a fused pass: columns that do not pack, NULLs in some, pages that are not all-visible
CREATE TABLE far (id int, k bigint, v bigint, f float8) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE far_%s PARTITION OF far FOR VALUES FROM (%s) TO (%s)', p, p * 2000, p * 2000 + 2000) FROM generate_series(0, 6) p \gexec
INSERT INTO far SELECT i, (i % 500) * 10000000019 + i % 500 % 3, CASE WHEN i / 2000 IN (1, 4) AND i % 3 = 0 THEN NULL ELSE i * 9000000001 + i % 5 END, i / 4.0 FROM generate_series(0, 13999) i;
CREATE TABLE near AS SELECT i * 10000000019 + i % 3 AS k, i AS name FROM generate_series(100, 699) i;
VACUUM ANALYZE far, near;
\set semi 'SELECT count(*), sum(name) FROM near d WHERE EXISTS (SELECT FROM far f WHERE f.k = d.k AND f.v > 5)'
\set anti 'SELECT count(*), sum(name) FROM near d WHERE NOT EXISTS (SELECT FROM far f WHERE f.k = d.k AND f.f > 100)'
\set band 'SELECT count(*), sum(f.v), sum(f.f) FROM far f JOIN near d ON f.v > d.k AND f.v < d.k + 100000000'
SELECT gj_same(:'semi') FROM generate_series(1, 2);
SELECT gj_same(:'anti') FROM generate_series(1, 2);
SELECT gj_same(:'band') FROM generate_series(1, 2);
UPDATE far SET f = -f WHERE id IN (70, 5000, 9001);
SELECT gj_same(:'semi');
SELECT gj_same(:'anti');
SELECT gj_same(:'band');
DROP TABLE far, near;
