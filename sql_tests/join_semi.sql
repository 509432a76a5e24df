-- Semi and anti joins: IN, EXISTS, NOT EXISTS, LEFT JOIN ... IS NULL, NOT IN.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE a (id int, k int, k2 int8, v int, t text);
INSERT INTO a SELECT i, CASE WHEN i % 11 <> 0 THEN i % 40 END, i % 5, i * 7 % 100, 'a ' || i FROM generate_series(1, 2000) i;
CREATE TABLE b (id int, k int, k2 int8, v int, t text);
INSERT INTO b SELECT i, CASE WHEN i % 13 <> 0 THEN i % 60 END, i % 3, i * 11 % 100, 'b ' || i FROM generate_series(1, 300) i WHERE i % 60 > 20;
CREATE TABLE c (id int PRIMARY KEY, k int, v int);
INSERT INTO c SELECT i, i % 70, i FROM generate_series(1, 100) i;
CREATE TABLE empty (id int, k int);
VACUUM ANALYZE a, b, c;

-- answers that anybody can check
SELECT count(*), min(id), max(id) FROM c WHERE EXISTS (SELECT FROM b WHERE b.id = c.id);
SELECT count(*), min(id), max(id) FROM c WHERE NOT EXISTS (SELECT FROM b WHERE b.id = c.id);

-- each type, each side streamed; rows of the outer side come once, however many match
SELECT gj_same('SELECT a.id, a.t FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)');
SELECT gj_same('SELECT a.id, a.t FROM a WHERE a.k IN (SELECT k FROM b)');
SELECT gj_same('SELECT a.id, a.t FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)');
SELECT gj_same('SELECT b.id, b.t FROM b WHERE EXISTS (SELECT FROM a WHERE b.k = a.k)');
SELECT gj_same('SELECT b.id, b.t FROM b WHERE b.k IN (SELECT k FROM a)');
SELECT gj_same('SELECT b.id, b.t FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.k = a.k)');
SELECT gj_same('SELECT a.id FROM a WHERE (a.k, a.k2) IN (SELECT k, k2 FROM b WHERE v > 10)');
SELECT gj_same('SELECT b.id FROM b WHERE (b.k, b.k2) IN (SELECT k, k2 FROM a WHERE v > 10)');
SELECT gj_same('SELECT count(*), sum(a.v) FROM a WHERE a.k IN (SELECT k FROM b)');
SELECT gj_same('SELECT count(*), sum(b.v) FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.k = a.k)');
SELECT gj_same('SELECT x.id FROM a x WHERE EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.id <> x.id)');
SELECT gj_same('SELECT x.id FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE y.v = x.v AND y.id < x.id)');

-- sides without rows
SELECT gj_same('SELECT a.id FROM a WHERE EXISTS (SELECT FROM empty e WHERE e.k = a.k)');
SELECT gj_same('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM empty e WHERE e.k = a.k)');
SELECT gj_same('SELECT e.id FROM empty e WHERE NOT EXISTS (SELECT FROM a WHERE e.k = a.k)');
SELECT gj_same('SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM empty e WHERE e.k = a.k)');

-- conditions beside the keys
SELECT gj_same('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v > a.v)');
SELECT gj_same('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v > a.v)');
SELECT gj_same('SELECT b.id FROM b WHERE EXISTS (SELECT FROM a WHERE b.k = a.k AND b.v <> a.v AND a.id % 2 = b.id % 2)');
SELECT gj_same('SELECT b.id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.k = a.k AND b.v <> a.v AND a.id % 2 = b.id % 2)');
SELECT gj_same('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND a.v > 50)');
SELECT gj_same('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v > a.v OR b.k = a.k AND b.k2 = a.k2)');
SELECT gj_same('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND md5(b.t) > md5(a.t))');
SELECT gj_same('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND md5(b.t) > md5(a.t))');
SELECT gj_same('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND md5(b.t) > md5(a.t))');
SELECT gj_same('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE EXISTS (SELECT FROM b WHERE b.k = a.k) AND md5(a.t) < md5(c.id::text)');

-- an outer join of which only what has matched nothing is kept
SELECT gj_same('SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL');
SELECT gj_same('SELECT b.id FROM b LEFT JOIN a ON a.k = b.k WHERE a.k IS NULL');
SELECT gj_same('SELECT a.id, b.id, b.t FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL');
SELECT gj_same('SELECT b.id, a.id, a.t FROM b LEFT JOIN a ON a.k = b.k WHERE a.k IS NULL AND coalesce(a.v, 1) = 1');
SELECT gj_same('SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.id IS NULL');
SELECT gj_same('SELECT count(*), count(b.id), sum(b.v) FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v WHERE b.v IS NULL');
SELECT gj_same('SELECT a.id, c.id, b.v FROM a LEFT JOIN b ON a.k = b.k JOIN c ON c.k = a.v WHERE b.k IS NULL');
SELECT gj_same('SELECT a.id, c.id, b.v FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.v AND b.id IS NULL WHERE b.k IS NULL');

-- chains with other joins
SELECT gj_same('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)');
SELECT gj_same('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v < c.v)');
SELECT gj_same('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v < c.v)');
SELECT gj_same('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b JOIN c ON b.v = c.k WHERE b.k = a.k)');
SELECT gj_same('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b JOIN c ON b.v = c.k WHERE b.k = a.k)');
SELECT gj_same('SELECT a.id, c.id FROM a LEFT JOIN c ON a.v = c.k WHERE a.k IN (SELECT k FROM b) AND c.id IS DISTINCT FROM 5');
SELECT gj_same('SELECT a.id, c.id FROM a LEFT JOIN c ON a.v = c.k AND EXISTS (SELECT FROM b WHERE b.k = c.k)');
SELECT gj_same('SELECT a.id FROM a WHERE a.k IN (SELECT k FROM b) AND NOT EXISTS (SELECT FROM c WHERE c.k = a.v)');
SELECT gj_same('SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b WHERE b.v IN (SELECT c.v FROM c))');
SELECT gj_same('SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b GROUP BY b.k HAVING count(*) > 4)');
SELECT gj_same('SELECT a.id, x.id FROM a JOIN a x ON a.id = x.id WHERE a.k IN (SELECT k FROM b) AND x.k IN (SELECT k FROM b WHERE v > 50)');
SELECT gj_same('SELECT c.id FROM c WHERE c.id IN (SELECT b.v FROM b, a WHERE a.k = b.k AND a.v < 50)');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE b.v IN (SELECT v FROM c) OR a.id IS NULL');
SELECT gj_same('SELECT a.id, b.id FROM (SELECT * FROM a WHERE a.v IN (SELECT id FROM c)) a FULL JOIN b ON a.k = b.k');

-- the shapes of TPC-H 4, 16, 20, 21, 22 in small
SELECT gj_same('SELECT count(*) FROM c WHERE c.v BETWEEN 10 AND 90 AND EXISTS (SELECT FROM a WHERE a.k = c.id AND a.v < a.id)');
SELECT gj_same('SELECT a.id FROM a JOIN c ON a.v = c.id WHERE a.k NOT IN (SELECT k FROM b WHERE k IS NOT NULL AND t LIKE ''%3%'')');
SELECT gj_same('SELECT c.id FROM c WHERE c.id IN (SELECT a.v FROM a WHERE a.k IN (SELECT k FROM b WHERE b.v < 50) AND a.id > (SELECT sum(b.v) / 20000 FROM b WHERE b.k = a.k))');
SELECT gj_same('SELECT x.id, c.id FROM a x JOIN c ON c.id = x.k JOIN b ON b.k = x.k AND b.k2 = x.k2
	WHERE x.v > 20 AND EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.v <> x.v) AND NOT EXISTS (SELECT FROM a z WHERE z.k = x.k AND z.v <> x.v AND z.v > 97)');
SELECT gj_same('SELECT count(*), sum(c.v) FROM c WHERE c.v > (SELECT avg(v) FROM c) AND NOT EXISTS (SELECT FROM a WHERE a.k = c.id)');
-- a join above a semi join whose columns are equal, compared with either: all joins are the device's
SET from_collapse_limit = 1;
SET join_collapse_limit = 1;
SELECT gj_device('SELECT x.id, c.v FROM (SELECT * FROM a x WHERE EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.v <> x.v)) x JOIN c ON c.id = x.k');
SELECT gj_device('SELECT x.id, c.v FROM (SELECT * FROM a x WHERE EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.v <> x.v)) x LEFT JOIN c ON c.id = x.k');
SELECT gj_same('SELECT x.id, c.v FROM (SELECT * FROM a x WHERE (k, k2) IN (SELECT k, k2 FROM b)) x JOIN c ON c.id = x.k JOIN b ON b.k2 = x.k2 AND b.id = c.id');
SELECT gj_device('SELECT c.k, count(*), sum(x.v) FROM (SELECT * FROM (SELECT * FROM a x WHERE NOT EXISTS (SELECT FROM a z WHERE z.k = x.k AND z.v <> x.v AND z.v > 97)) x
	WHERE EXISTS (SELECT FROM a y WHERE y.k = x.k AND y.v <> x.v)) x JOIN c ON c.id = x.k GROUP BY c.k');
RESET from_collapse_limit;
RESET join_collapse_limit;

-- NOT IN is PostgreSQL's: one NULL among the values and no row is left
SELECT gj_equal('SELECT a.id FROM a WHERE a.k NOT IN (SELECT k FROM b)');
SELECT gj_equal('SELECT a.id FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)');
SELECT gj_equal('SELECT a.id, c.id FROM a JOIN c ON a.v = c.k WHERE a.k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)');

DROP TABLE a, b, c, empty;
