-- Columns that the device would only carry are fetched by ctid for the rows that come back.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
CREATE TABLE lt_c (id int PRIMARY KEY, k int, gone text, name text, bal numeric(12,2), comment text, arr int[], addr varchar(60)) WITH (autovacuum_enabled = off);
INSERT INTO lt_c SELECT i, i % 25, 'gone ' || i, 'Customer ' || i, i * 1.5, CASE WHEN i % 9 > 0 THEN repeat(md5(i::text), 2) END, ARRAY[i, NULL], 'address ' || md5((i * 7)::text) FROM generate_series(1, 6000) i;
ALTER TABLE lt_c DROP COLUMN gone;
ALTER TABLE lt_c ADD COLUMN added text DEFAULT 'was there';
INSERT INTO lt_c SELECT i, i % 25, 'new ' || i, i, NULL, NULL, 'new', CASE WHEN i % 2 = 0 THEN 'added' END FROM generate_series(6001, 6100) i;
ALTER TABLE lt_c ADD COLUMN upper text GENERATED ALWAYS AS (upper(name)) STORED;
CREATE TABLE lt_o (o int, c int, total int, memo text) WITH (autovacuum_enabled = off);
INSERT INTO lt_o SELECT i, 1 + i * 7919 % 6500, i * 31 % 1000, md5(i::text) FROM generate_series(1, 20000) i;
CREATE TABLE lt_n AS SELECT i AS k, 'nation ' || i AS nname FROM generate_series(0, 22) i;
ALTER TABLE lt_n ADD PRIMARY KEY (k);
VACUUM ANALYZE lt_c, lt_o, lt_n;
-- the late columns of a plan, and whether it gives PostgreSQL's rows
CREATE FUNCTION lt_late(query text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(c #>> '{}', ', '), 'none') FROM gj_nodes(query) n, jsonb_array_elements(n->'Late Columns') c
$$;
CREATE FUNCTION lt_same(query text) RETURNS text LANGUAGE sql AS $$ SELECT gj_same(query) || '; late: ' || lt_late(query) $$;

SET gpujoin.late_columns = on;
-- rows: joins of all types, a row of NULLs where there is none
SELECT lt_same('SELECT o.o, c.name, c.comment, c.arr, c.addr, c.added, c.upper FROM lt_o o JOIN lt_c c ON o.c = c.id');
SELECT lt_same('SELECT o.o, o.memo, c.comment, c.added, n.nname FROM lt_o o LEFT JOIN lt_c c ON o.c = c.id LEFT JOIN lt_n n ON c.k = n.k');
SELECT lt_same('SELECT o.memo, c.comment, n.nname FROM lt_o o FULL JOIN lt_c c ON o.c = c.id AND o.total > 500 RIGHT JOIN lt_n n ON c.k = n.k');
SELECT lt_same('SELECT c.comment, c.added FROM lt_c c WHERE c.k > 3 AND EXISTS (SELECT FROM lt_o o WHERE o.c = c.id AND o.total > 900)');
SELECT lt_same('SELECT a.comment, b.comment, b.memo FROM lt_c a JOIN (SELECT c.id, c.comment, o.memo FROM lt_c c JOIN lt_o o ON c.id = o.c OFFSET 0) b ON a.id = b.id');
SELECT lt_same('SELECT c.comment, n.nname FROM lt_c c, lt_n n WHERE c.id < n.k');
-- read on the device as well: not late
SELECT lt_same('SELECT c.name, c.comment, c.addr FROM lt_o o JOIN lt_c c ON o.c = c.id WHERE c.comment LIKE ''%a1%'' AND c.name < ''Customer 3''');
SELECT lt_same('SELECT a.id, a.name, b.comment FROM lt_c a JOIN lt_c b ON a.name = b.name');
-- conditions of PostgreSQL and expressions above
SELECT lt_same('SELECT upper(c.comment), c.arr[1] + o.total, length(o.memo || c.name) FROM lt_o o JOIN lt_c c ON o.c = c.id WHERE md5(c.comment || o.memo) < ''5''');
SELECT lt_same('SELECT c.name, (SELECT max(n.nname) FROM lt_n n WHERE n.k = c.k) FROM lt_o o JOIN lt_c c ON o.c = c.id WHERE o.total < 30');
-- groups: columns that the key determines
SELECT lt_same('SELECT c.id, c.name, c.bal, c.comment, n.nname, sum(o.total), count(*) FROM lt_c c JOIN lt_o o ON c.id = o.c JOIN lt_n n ON c.k = n.k GROUP BY c.id, c.name, c.bal, n.nname, c.comment');
SELECT lt_same('SELECT n.nname, c.bal, c.id, c.added, count(o.o), max(o.total) FROM lt_c c LEFT JOIN lt_o o ON c.id = o.c LEFT JOIN lt_n n ON c.k = n.k GROUP BY c.id, n.nname');
SELECT lt_same('SELECT n.nname, c.bal, c.id, c.added, count(o.o), max(o.total) FROM lt_c c LEFT JOIN lt_o o ON c.id = o.c LEFT JOIN lt_n n ON c.k = n.k GROUP BY c.id, n.nname HAVING count(*) > 2');
SELECT lt_same('SELECT DISTINCT c.id, c.comment, n.nname FROM lt_c c JOIN lt_o o ON c.id = o.c JOIN lt_n n ON c.k = n.k');
SELECT lt_same('SELECT c.id, c.comment, count(DISTINCT o.total) FROM lt_c c JOIN lt_o o ON c.id = o.c GROUP BY c.id');
SELECT lt_same('SELECT c.comment, count(*) FROM lt_c c JOIN lt_o o ON c.id = o.c GROUP BY c.comment');
SELECT lt_same('SELECT x.name, x.s, o.memo FROM (SELECT c.id, c.name, sum(o.total) AS s FROM lt_c c JOIN lt_o o ON c.id = o.c GROUP BY c.id) x JOIN lt_o o ON x.id = o.c');
-- orders: of the device, of PostgreSQL above it, of the backend
SELECT lt_same('SELECT o.o, c.comment, c.addr FROM lt_o o JOIN lt_c c ON o.c = c.id ORDER BY o.total DESC, o.o');
SELECT lt_same('SELECT o.o, c.comment, o.memo FROM lt_o o LEFT JOIN lt_c c ON o.c = c.id ORDER BY o.total DESC, c.comment, o.o LIMIT 40');
SELECT lt_same('SELECT c.id, n.nname, sum(o.total) AS s, c.comment FROM lt_c c JOIN lt_o o ON c.id = o.c JOIN lt_n n ON c.k = n.k GROUP BY c.id, n.nname ORDER BY s DESC, c.bal, c.id LIMIT 15');
SELECT lt_same('SELECT n.nname, o.o, o.memo FROM lt_o o JOIN lt_c c ON o.c = c.id JOIN lt_n n ON c.k = n.k ORDER BY n.nname');
SELECT string_agg(x::text, ' ') FROM (SELECT c.id, o.total, left(c.comment, 4), c.added FROM lt_o o LEFT JOIN lt_c c ON o.c = c.id ORDER BY o.total DESC, c.id, o.o LIMIT 6) x;
-- sources that are no plain table, or come from a plan
CREATE TABLE lt_p (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE lt_p1 PARTITION OF lt_p FOR VALUES FROM (0) TO (1000);
CREATE TABLE lt_p2 PARTITION OF lt_p FOR VALUES FROM (1000) TO (3000);
INSERT INTO lt_p SELECT i, i % 25, 'part ' || md5(i::text) FROM generate_series(1, 2500) i;
CREATE TEMP TABLE lt_t AS SELECT i AS id, 'temporary ' || i AS t FROM generate_series(1, 3000) i;
CREATE MATERIALIZED VIEW lt_m AS SELECT k, 'view of ' || nname AS t FROM lt_n;
SELECT lt_same('SELECT p.id, p.t, m.t FROM lt_p p JOIN lt_m m ON p.k = m.k');
SELECT lt_same('SELECT p.t, m.t FROM lt_p1 p JOIN lt_m m ON p.k = m.k');
SELECT lt_same('SELECT t.t, c.comment FROM lt_t t JOIN lt_c c ON t.id = c.id');
SELECT lt_same('SELECT u.t, c.comment FROM (SELECT id, t FROM lt_p1 UNION ALL SELECT id, t FROM lt_t) u JOIN lt_c c ON u.id = c.id');
SELECT lt_same('SELECT c.ctid, c.comment, o.memo FROM lt_c c JOIN lt_o o ON c.id = o.c');
SELECT lt_same('SELECT c, o.memo FROM lt_c c JOIN lt_o o ON c.id = o.c');
-- row security
CREATE TABLE lt_s AS SELECT i AS id, i % 3 AS owner, 'secret ' || i AS t FROM generate_series(1, 2000) i;
ALTER TABLE lt_s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON lt_s USING (owner = 1);
CREATE ROLE gj_late_reader;
ALTER TABLE lt_s OWNER TO gj_late_reader;
GRANT SELECT ON lt_o, lt_c TO gj_late_reader;
SET ROLE gj_late_reader;
SELECT lt_same('SELECT s.id, s.t, o.memo FROM lt_s s JOIN lt_o o ON s.id = o.c');
RESET ROLE;
-- rescans, parameters
SET enable_material = off;
SELECT lt_same('SELECT n.k, x.t, x.comment FROM lt_n n CROSS JOIN LATERAL (SELECT c.comment, o.memo AS t FROM lt_c c JOIN lt_o o ON c.id = o.c WHERE o.total = n.k OFFSET 0) x');
RESET enable_material;
PREPARE lt_q(int) AS SELECT count(*), sum(hashtext(x::text)::int8) FROM (SELECT o.memo, c.comment FROM lt_o o JOIN lt_c c ON o.c = c.id WHERE o.total < $1 OFFSET 0) x;
SET plan_cache_mode = force_generic_plan;
EXECUTE lt_q(10);
EXECUTE lt_q(100);
SET gpujoin.enabled = off;
EXECUTE lt_q(10);
EXECUTE lt_q(100);
SET gpujoin.enabled = on;
-- what reads the rows of its own table
CREATE TABLE lt_i AS SELECT * FROM lt_n;
INSERT INTO lt_i SELECT i.k + 100, i.nname || o.memo FROM lt_i i JOIN lt_o o ON i.k = o.c;
SELECT count(*), count(DISTINCT nname) FROM lt_i;
SELECT lt_late('UPDATE lt_i i SET nname = o.memo FROM lt_o o, lt_c c WHERE i.k = o.c AND o.c = c.id');
SELECT lt_late('SELECT i.nname, o.memo FROM lt_i i JOIN lt_o o ON i.k = o.c FOR UPDATE OF i');

-- a cursor, and changes that its snapshot does not see: in place, away, and by what is undone
BEGIN;
DECLARE lt_cursor CURSOR FOR SELECT o.o, left(c.comment, 6), left(o.memo, 6) FROM lt_c c JOIN lt_o o ON c.id = o.c ORDER BY o.total, o.o;
FETCH 2 FROM lt_cursor;
UPDATE lt_c SET comment = 'changed';
UPDATE lt_o SET memo = 'changed' WHERE o % 2 = 0;
SAVEPOINT s;
DELETE FROM lt_o WHERE o % 3 = 0;
FETCH 2 FROM lt_cursor;
ROLLBACK TO s;
DELETE FROM lt_c WHERE id % 2 = 0;
FETCH 3 FROM lt_cursor;
SELECT lt_same('SELECT o.o, c.comment, o.memo FROM lt_c c JOIN lt_o o ON c.id = o.c');
ROLLBACK;
DECLARE lt_held CURSOR WITH HOLD FOR SELECT o.o, left(c.comment, 6) FROM lt_c c JOIN lt_o o ON c.id = o.c ORDER BY o.total, o.o;
UPDATE lt_c SET comment = reverse(comment) WHERE id % 4 = 0;
VACUUM lt_c;
FETCH 3 FROM lt_held;
CLOSE lt_held;
SELECT lt_same('SELECT o.o, c.comment FROM lt_c c JOIN lt_o o ON c.id = o.c');
-- values out of line
CREATE TABLE lt_l (id int, t text, u text);
ALTER TABLE lt_l ALTER t SET STORAGE EXTERNAL;
INSERT INTO lt_l SELECT i, repeat(md5(i::text), 200), repeat(md5(i::text), 200) FROM generate_series(1, 100) i;
SELECT lt_same('SELECT l.id, l.t, l.u, c.comment FROM lt_l l JOIN lt_c c ON l.id = c.id');

-- by itself: long values of few rows, and it must be sure that they are few
SET gpujoin.late_columns = auto;
SELECT lt_late('SELECT o.o, c.name, c.comment, c.addr, n.nname FROM lt_o o JOIN lt_c c ON o.c = c.id JOIN lt_n n ON c.k = n.k ORDER BY o.total DESC, o.o LIMIT 10');
SELECT lt_late('SELECT c.id, c.comment, sum(o.total) AS s FROM lt_c c JOIN lt_o o ON c.id = o.c GROUP BY c.id ORDER BY s DESC, c.id LIMIT 10');
SELECT lt_late('SELECT o.memo, c.comment FROM lt_o o JOIN lt_c c ON o.c = c.id LIMIT 10');
SELECT lt_late('SELECT o.o, c.comment FROM lt_o o JOIN lt_c c ON o.c = c.id ORDER BY o.total DESC, o.o LIMIT 2000');
SELECT lt_late('SELECT o.o, c.comment, n.nname FROM lt_o o JOIN lt_c c ON o.c = c.id JOIN lt_n n ON c.k = n.k ORDER BY c.k, c.addr LIMIT 10');
SELECT lt_late('SELECT o.memo, c.comment FROM lt_o o JOIN lt_c c ON o.c = c.id');
SET gpujoin.late_columns = off;
SELECT lt_late('SELECT o.memo, c.comment FROM lt_o o JOIN lt_c c ON o.c = c.id LIMIT 10');

-- gpujoin_prewarm leaves them out where they are long
SET gpujoin.late_columns = auto;
SET gpujoin.devices_per_query = 1;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('lt_c') > 0;
SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM gpujoin_cache, unnest(columns) name WHERE relation = 'lt_c'::regclass;
SELECT gj_resident('SELECT c.id, c.comment, c.addr, n.nname FROM lt_c c JOIN lt_n n ON c.k = n.k ORDER BY c.bal LIMIT 7', 'lt\_c%');
SELECT gpujoin_prewarm('lt_c', '{id,comment}') > 0;
SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM gpujoin_cache, unnest(columns) name WHERE relation = 'lt_c'::regclass;
SELECT gpujoin_prewarm('lt_c', '{ctid}') > 0;
SET gpujoin.late_columns = off;
SELECT gpujoin_prewarm('lt_c') > 0;
SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM gpujoin_cache, unnest(columns) name WHERE relation = 'lt_c'::regclass;
SELECT gpujoin_prewarm('lt_c', '{xmin}') > 0;
DROP TABLE lt_s, lt_l, lt_i;
DROP MATERIALIZED VIEW lt_m;
DROP TABLE lt_c, lt_o, lt_n, lt_p, lt_t;
DROP FUNCTION lt_late, lt_same;
REVOKE ALL ON SCHEMA public FROM gj_late_reader;
DROP ROLE gj_late_reader;
