-- Groups and order by uuids, which are two keys of a program: GROUP BY, DISTINCT, ORDER BY and count(DISTINCT) of them; uuids that share a half, the
-- least and the greatest of each half, NULL; groups that most rows find, and many that they do not.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE DOMAIN account AS uuid;
CREATE TABLE ug_fact (i int, u uuid, a account, w uuid, k int, v numeric(10,2)) WITH (autovacuum_enabled = off);
CREATE TABLE ug_dim (u uuid PRIMARY KEY, k int UNIQUE, other uuid, name text) WITH (autovacuum_enabled = off);
-- w: each half is one of eight around the places where the order of bytes and that of numbers with a sign part
INSERT INTO ug_fact SELECT i, CASE WHEN i % 101 > 0 THEN md5((i * 7919 % 8000)::text)::uuid END, md5((i % 700)::text)::uuid,
	CASE WHEN i % 97 > 0 THEN (halves[i % 8 + 1] || halves[i / 8 % 8 + 1])::uuid END, i % 50, i % 1000 / 7.0
FROM generate_series(1, 20000) i, (SELECT ARRAY['0000000000000000', '0000000000000001', '00000000000000ff', '7fffffffffffffff', '8000000000000000', '80ffffffffffff00', 'fffffffffffffffe', 'ffffffffffffffff'] AS halves) h;
INSERT INTO ug_dim SELECT md5(i::text)::uuid, i, CASE WHEN i % 3 > 0 THEN md5((i % 40)::text)::uuid END, repeat('name ', i % 5) || i FROM generate_series(1, 700) i;
CREATE TABLE ug_many (u uuid, i int) WITH (autovacuum_enabled = off);
INSERT INTO ug_many SELECT md5((i * 7919 % 90000)::text)::uuid, i FROM generate_series(1, 150000) i;
VACUUM ANALYZE ug_fact, ug_dim, ug_many;

-- an answer that anybody can check: uuids in their order
SELECT w, count(*) FROM ug_fact WHERE i <= 200 AND k < 4 GROUP BY w ORDER BY w DESC LIMIT 4;
SELECT gj_explain('SELECT w, k, count(*) FROM ug_fact GROUP BY w, k ORDER BY w DESC, k')->0->'Plan'->'Group Key';

-- a column, a domain, few and many groups; alone, with other keys, joined; sorted by all, first rows, conditions on groups
SELECT key, gj_device(format('SELECT %s, count(*), sum(v), min(i) FROM ug_fact f GROUP BY %s', key, key)),
	gj_device(format('SELECT %s, count(*) FROM ug_fact f GROUP BY %s ORDER BY %s DESC NULLS LAST LIMIT 20', key, key, key)),
	gj_device(format('SELECT %s, count(*), sum(d.k) FROM ug_fact f JOIN ug_dim d ON f.a = d.u GROUP BY %s HAVING count(*) > 5', key, key))
FROM unnest(ARRAY['f.u', 'f.a', 'f.w', 'f.w, f.k', 'f.k % 3, f.w, f.a', 'f.w, f.u IS NULL', 'f.a, f.w, f.v']) key;
SELECT gj_device(q) FROM unnest(ARRAY['SELECT DISTINCT w FROM ug_fact ORDER BY 1', 'SELECT DISTINCT k % 2, u FROM ug_fact ORDER BY 2, 1 LIMIT 100',
	'SELECT d.u, f.w, count(*) FROM ug_fact f LEFT JOIN ug_dim d ON f.u = d.other GROUP BY 1, 2 ORDER BY 1, 2 NULLS FIRST LIMIT 1000',
	'SELECT coalesce(u, w), count(*) FROM ug_fact GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10',
	'SELECT w, max(i) FROM ug_fact GROUP BY w HAVING w > ''7fffffff-ffff-ffff-ffff-fffffffffffe'' ORDER BY max(i) + 1, w']) q;

-- more rows than one call of a device takes at first
SELECT gj_device(q) FROM unnest(ARRAY['SELECT u, count(*), sum(i) FROM ug_many GROUP BY u', 'SELECT u, min(i), count(*) FROM ug_many GROUP BY u ORDER BY 3 DESC, 1 LIMIT 9', 'SELECT count(DISTINCT u), count(*) FROM ug_many']) q;

-- columns that follow from a uuid, and uuids that follow from a number
SELECT gj_device(q) FROM unnest(ARRAY['SELECT d.u, d.k, d.other, d.name, count(*) FROM ug_fact f JOIN ug_dim d ON f.a = d.u GROUP BY d.u ORDER BY 5 DESC, 1 LIMIT 30',
	'SELECT d.k, d.u, d.other, sum(f.v) FROM ug_fact f JOIN ug_dim d ON f.k = d.k GROUP BY d.k, d.u, d.other ORDER BY 4 DESC LIMIT 30']) q;

-- count(DISTINCT)
SELECT gj_device(q) FROM unnest(ARRAY['SELECT count(DISTINCT u), count(u), count(*) FROM ug_fact', 'SELECT k, count(DISTINCT w), sum(i) FROM ug_fact GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10',
	'SELECT w, count(DISTINCT a), max(v) FROM ug_fact GROUP BY w', 'SELECT w, count(DISTINCT w), count(*) FROM ug_fact GROUP BY w', 'SELECT d.other, count(DISTINCT f.u) FROM ug_fact f JOIN ug_dim d ON f.a = d.u GROUP BY d.other HAVING count(DISTINCT f.u) > 10',
	'SELECT count(DISTINCT u) FROM ug_fact WHERE u IS NULL', 'SELECT k, count(DISTINCT u), count(DISTINCT w) FROM ug_fact GROUP BY k']) q;

-- rows in the order of uuids
SELECT gj_device(q) FROM unnest(ARRAY['SELECT f.u, f.w, f.i, d.k FROM ug_fact f JOIN ug_dim d ON f.a = d.u ORDER BY f.u DESC NULLS LAST, f.i LIMIT 100',
	'SELECT f.w, f.i, d.name FROM ug_fact f JOIN ug_dim d ON f.a = d.u WHERE f.k = 7 ORDER BY f.w, f.i', 'SELECT f.i, d.other FROM ug_fact f LEFT JOIN ug_dim d ON f.u = d.u WHERE f.k < 3 ORDER BY d.other NULLS FIRST, f.i LIMIT 5000',
	'SELECT DISTINCT ON (f.w) f.w, f.i FROM ug_fact f JOIN ug_dim d ON f.a = d.u ORDER BY f.w, f.i DESC']) q;

-- groups of groups, subqueries, prepared statements
SELECT gj_same(q) FROM unnest(ARRAY['SELECT n, count(*) FROM (SELECT u, count(*) AS n FROM ug_fact GROUP BY u) s GROUP BY n',
	'SELECT s.n, f.k, count(*) FROM (SELECT w, count(*) AS n FROM ug_fact GROUP BY w) s JOIN ug_fact f USING (w) GROUP BY 1, 2',
	'SELECT d.k, d.name FROM ug_dim d WHERE d.k < 20 AND 28 < (SELECT count(*) FROM ug_fact f WHERE f.a = d.u)', 'SELECT d.k, (SELECT sum(f.v) FROM ug_fact f WHERE f.u = d.u) FROM ug_dim d WHERE d.k < 20']) q;
-- uuids of a subquery's groups: keys of joins, alone and with others, of conditions and of groups; rows that are returned, rows without a match
SELECT gj_device(replace(q, 'sums', '(SELECT w, a, u, max(i) AS m, sum(v) AS s FROM ug_fact GROUP BY w, a, u)')) FROM unnest(ARRAY['SELECT d.k % 7, count(*), sum(x.s) FROM ug_dim d JOIN sums x ON x.a = d.u GROUP BY 1',
	'SELECT x.w, x.u, x.s, d.name FROM ug_dim d JOIN sums x ON x.u = d.u', 'SELECT x.a, x.u, d.k FROM ug_dim d JOIN sums x ON x.u = d.u AND x.u = d.other AND x.m > d.k', 'SELECT x.a, x.u, d.k FROM ug_dim d JOIN sums x ON x.a = d.u AND x.u <> d.other',
	'SELECT x.m, x.u, d.u FROM ug_dim d FULL JOIN (SELECT u, max(i) m FROM ug_fact GROUP BY u) x ON x.u = d.other', 'SELECT count(*), count(x.u), count(x.w) FROM ug_dim d LEFT JOIN sums x ON x.u = d.u WHERE x.w IS NULL OR x.m > 50',
	'SELECT count(*), sum(x.m - y.m) FROM sums x JOIN sums y ON x.u = y.u AND x.w = y.w AND x.m >= y.m', 'SELECT DISTINCT x.w FROM ug_dim d JOIN sums x ON x.u = d.u', 'SELECT x.w, count(*), count(DISTINCT x.u) FROM sums x GROUP BY x.w ORDER BY 2 DESC, 1 LIMIT 9',
	'SELECT count(*) FROM ug_dim d LEFT JOIN sums x ON x.a = d.u WHERE x.u = ''80ffffff-ffff-ff00-0000-000000000000'' OR x.w <> ''00000000-0000-0000-ffff-ffffffffffff'' OR d.k = 5', 'SELECT x.u, d.name FROM ug_dim d JOIN sums x ON x.a = d.u ORDER BY x.u DESC NULLS LAST, x.m LIMIT 20', 'SELECT x.u::text || d.name, x.m FROM ug_dim d JOIN sums x ON x.u = d.u', 'SELECT count(*) FROM ug_dim d JOIN sums x ON x.u < d.other WHERE d.k = 1',
	'SELECT d.name FROM ug_dim d WHERE d.u IN (SELECT x.u FROM sums x WHERE x.s > 100) OR d.k < 9', 'SELECT d.name FROM ug_dim d WHERE d.other NOT IN (SELECT u FROM ug_fact WHERE i > 19900 AND u IS NOT NULL)', 'SELECT d.name FROM ug_dim d WHERE d.other NOT IN (SELECT u FROM ug_fact WHERE i > 19000)',
	'WITH c AS (SELECT w, sum(v) AS s FROM ug_fact GROUP BY w) SELECT a.w, a.s, b.s FROM c a JOIN c b ON a.w = b.w WHERE a.s > (SELECT avg(s) FROM c)', 'SELECT w, sum(v) FROM ug_fact GROUP BY w HAVING sum(v) > (SELECT avg(v) * 10 FROM ug_fact)',
	'SELECT count(*), sum(x.n * y.n) FROM (SELECT encode(byteacat(int8send(int8xor(i::int8, 5)), int8send(int8xor(k::int8, 7))), ''hex'')::uuid AS u, i::int8 AS n FROM ug_fact GROUP BY i::int8, k::int8) x
		JOIN (SELECT encode(byteacat(int8send(int8xor(i::int8, 6)), int8send(int8xor(k::int8, 7))), ''hex'')::uuid AS u, i::int8 AS n FROM ug_fact GROUP BY i::int8, k::int8) y ON x.u = y.u']) q;
PREPARE after(uuid) AS SELECT w, count(*) FROM ug_fact WHERE w > $1 GROUP BY w ORDER BY 1 LIMIT 3;
EXECUTE after('80ffffff-ffff-ff00-0000-000000000000');
EXECUTE after(NULL);

-- little memory, where all is written and read in parts
SET gpujoin.device_memory_limit = '16MB';
SELECT gj_device(q) FROM unnest(ARRAY['SELECT u, a, count(*), sum(v) FROM ug_fact GROUP BY u, a ORDER BY 3 DESC, 1, 2 LIMIT 50', 'SELECT k, count(DISTINCT u) FROM ug_fact GROUP BY k']) q;
DROP TABLE ug_fact, ug_dim, ug_many; DROP DOMAIN account;
