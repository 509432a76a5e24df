-- Outer joins: types, conditions beside the keys, WHERE above them, chains, aggregates.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE a (id int, k int, k2 int8, v int, t text NOT NULL);
INSERT INTO a SELECT i, CASE WHEN i % 11 <> 0 THEN i % 40 END, i % 5, i * 7 % 100, 'a ' || i FROM generate_series(1, 2000) i;
CREATE TABLE b (id int, k int, k2 int8, v int, t text NOT NULL);
INSERT INTO b SELECT i, CASE WHEN i % 13 <> 0 THEN i % 60 END, i % 3, i * 11 % 100, 'b ' || i FROM generate_series(1, 300) i;
CREATE TABLE c (id int NOT NULL, k int NOT NULL, v float8, d date);
INSERT INTO c SELECT i, i % 70, i / 4.0, date '2026-01-01' + i FROM generate_series(1, 100) i;
CREATE TABLE empty (id int, k int, t text);
CREATE TABLE one (id int, k int, t text);
INSERT INTO one VALUES (1, 7, 'one');
VACUUM ANALYZE a, b, c;

-- an answer that anybody can check
SELECT x.k, y.k, y.t FROM (VALUES (1), (2), (NULL)) x(k) LEFT JOIN (VALUES (2, 'two'), (2, 'zwei'), (NULL, 'null')) y(k, t) ON x.k = y.k ORDER BY 1, 3;
SELECT o.id, c.id, c.k FROM one o FULL JOIN c ON o.k = c.k AND c.id < 8 WHERE c.id IS NULL OR c.id BETWEEN 6 AND 8 ORDER BY 2;

-- each type, each side streamed
SELECT gj_same('SELECT a.id, b.id, b.t FROM a LEFT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.id, b.id, b.t FROM b LEFT JOIN a ON a.k = b.k');
SELECT gj_same('SELECT a.id, b.id, b.t FROM a RIGHT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.id, b.id, a.t, b.t FROM a FULL JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.*, b.* FROM b FULL JOIN a ON a.k = b.k AND a.k2 = b.k2');
SELECT gj_same('SELECT a.t, c.d, c.v FROM a LEFT JOIN c ON a.k = c.k');
SELECT gj_same('SELECT count(*) FROM a FULL JOIN b USING (k)');
SELECT gj_same('SELECT FROM a LEFT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.id, b FROM a LEFT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.id, b.ctid IS NULL, b.tableoid::regclass FROM a LEFT JOIN b ON a.k = b.k');

-- keys that match all, nothing, and sides without rows
SELECT gj_same('SELECT a.id, e.id, e.t FROM a LEFT JOIN empty e ON a.k = e.k');
SELECT gj_same('SELECT a.id, e.id, e.t FROM empty e LEFT JOIN a ON a.k = e.k');
SELECT gj_same('SELECT a.id, e.id, e.t FROM a FULL JOIN empty e ON a.k = e.k');
SELECT gj_same('SELECT x.t, e.t FROM empty x FULL JOIN empty e ON x.k = e.k');
SELECT gj_same('SELECT a.id, o.t FROM a FULL JOIN one o ON a.k = o.k');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.id + 10000 = b.id');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.id = - b.id');
SELECT gj_same('SELECT a.id, x.id FROM a LEFT JOIN a x ON a.id = x.id');

-- conditions beside the keys decide what matches...
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v');
SELECT gj_same('SELECT a.id, b.id FROM b LEFT JOIN a ON a.k = b.k AND a.v < b.v');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k AND a.v <> b.v + 1');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.v > 50');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND b.v > 50');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k AND a.v > 50 AND b.v < 20');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.v > 1000');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND (a.v < b.v OR a.k2 = b.k2 OR b.v IS NULL)');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k AND a.k2 > b.k2 AND false');
-- ...WHERE is another matter
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 50 OR b.v IS NULL');
SELECT gj_same('SELECT a.id, b.id FROM b LEFT JOIN a ON a.k = b.k WHERE a.v > 50 OR a.v IS NULL');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE a.id IS NULL OR b.id IS NULL');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE (a.v > b.v) IS NOT TRUE');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE a.v > 50');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 50');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE b.v > 50');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE a.k = 5 AND a.v < 60');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE a.k = 5');
SELECT gj_same('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k WHERE (a.id IS NULL) <> (b.id IS NULL) AND (a.v IS NULL OR a.v > 10)');
-- what only PostgreSQL knows: of WHERE it is checked on the rows, of ON the join is native
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.t LIKE ''%1'' OR b.t IS NULL OR a.id < ascii(md5(b.t)) * 20');
SELECT gj_same('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.id < ascii(md5(b.t)) * 20');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k AND a.id < ascii(md5(b.t)) * 20 JOIN c ON c.k = a.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM (a LEFT JOIN b ON a.k = b.k) FULL JOIN c ON c.k = b.v WHERE md5(b.t) IS NULL OR md5(a.t) < md5(b.t)');

-- chains
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.v = c.k AND b.v < c.id');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN (b JOIN c ON b.v = c.k) ON a.k = b.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN (b LEFT JOIN c ON b.v = c.k) ON a.k = b.k AND c.id IS NOT NULL');
SELECT gj_same('SELECT a.id, b.id, c.id FROM c LEFT JOIN (a LEFT JOIN b ON a.k = b.k) ON a.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a JOIN (b LEFT JOIN c ON b.v = c.k) ON a.k = b.k WHERE a.id % 3 = 0');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a JOIN (b LEFT JOIN c ON b.v = c.k) ON a.k = b.k AND a.v > coalesce(c.id, 50)');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a FULL JOIN b ON a.k = b.k JOIN c ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a FULL JOIN b ON a.k = b.k LEFT JOIN c ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id FROM c FULL JOIN (a JOIN b ON a.k = b.k AND a.k2 = b.k2) ON b.v = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id, d.id FROM a JOIN b ON a.k = b.k FULL JOIN c ON b.v = c.k JOIN c d ON d.id = c.k');
SELECT gj_same('SELECT a.id, b.id, c.id, d.id FROM a RIGHT JOIN b ON a.k = b.k RIGHT JOIN c ON b.v = c.k LEFT JOIN one d ON d.k = c.k');
SELECT gj_same('SELECT a.id, x.n, c.id FROM a LEFT JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) x ON a.k = x.k LEFT JOIN c ON c.k = x.n');
SELECT gj_same('SELECT a.id, x.id, y.id FROM a LEFT JOIN one x ON a.k = x.k LEFT JOIN empty y ON y.k = x.id');

-- expressions of the nullable side: NULL where nothing matched, also if they never are below
SELECT gj_same('SELECT a.id, b.t || ''!'', coalesce(b.v, -1) FROM a LEFT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT a.id, x.one, x.w FROM a LEFT JOIN (SELECT k, 1 AS one, coalesce(v, 0) AS w FROM b) x ON a.k = x.k');
SELECT gj_same('SELECT a.id, x.w FROM a LEFT JOIN (SELECT b.k, coalesce(c.id, b.id) AS w FROM b LEFT JOIN c ON b.v = c.k) x ON a.k = x.k');
SELECT gj_same('SELECT a.id, x.w FROM a LEFT JOIN (SELECT b.k, coalesce(c.id, b.id) AS w FROM b LEFT JOIN c ON b.v = c.k) x ON a.k = x.k AND x.w > 20 WHERE x.w IS NULL OR x.w < a.id');
SELECT gj_same('SELECT x.one, y.two FROM (SELECT k, 1 AS one FROM a) x FULL JOIN (SELECT k, 2 AS two FROM b) y ON x.k = y.k');
SELECT gj_same('SELECT a.id, l.w FROM a LEFT JOIN LATERAL (SELECT b.id + a.id AS w FROM b WHERE b.k = a.k ORDER BY b.id LIMIT 1) l ON true WHERE a.id < 200');

-- aggregates above: NULLs of unmatched rows do not count
SELECT gj_same('SELECT count(*), count(b.id), count(b.t), sum(b.v), min(b.v), max(a.v), avg(b.v) FROM a LEFT JOIN b ON a.k = b.k');
SELECT gj_same('SELECT count(*), count(a.id), count(b.id), sum(a.v + b.v), sum(a.v) FROM a FULL JOIN b ON a.k = b.k AND a.k2 = b.k2');
SELECT gj_same('SELECT count(*), count(e.id), sum(e.k) FROM a LEFT JOIN empty e ON a.k = e.k');
SELECT gj_same('SELECT count(*), count(a.id), sum(a.v) FROM empty e LEFT JOIN a ON a.k = e.k');
SELECT gj_same('SELECT count(*), count(a.t), sum(c.v), min(c.d) FROM a FULL JOIN c ON a.k = c.k WHERE a.id IS NULL OR c.id % 2 = 0');
-- one answer of the device, in figures
SELECT count(*), count(b.id), sum(b.v) FROM a LEFT JOIN b ON a.k = b.k AND b.v < 30 WHERE a.id <= 100;
SELECT gj_equal('SELECT n, count(*) FROM (SELECT a.id, count(b.id) AS n FROM a LEFT JOIN b ON a.k = b.k AND b.v > 20 GROUP BY a.id) x GROUP BY n');

-- what an anti join does not find is read by a constant alone
SELECT gj_same('SELECT a.id, x.o FROM a LEFT JOIN (SELECT k, 1 AS o FROM b) x ON a.k = x.k WHERE x.k IS NULL');
SELECT gj_same('SELECT count(*), count(x.o), count(DISTINCT x.o) FROM a LEFT JOIN (SELECT k, 1 AS o FROM b) x ON a.k = x.k WHERE x.k IS NULL AND coalesce(x.o, 6) = 6');
SELECT gj_same('SELECT a.id, x.o FROM a LEFT JOIN (SELECT b.k, ''x''::text AS o FROM b JOIN c ON b.v = c.k) x ON a.k = x.k WHERE x.k IS NULL AND md5(x.o) IS NULL');
-- chains and nests in which a column is NULL by more than one join
SELECT gj_same('SELECT a.id, b.id, c.id, o.id FROM a LEFT JOIN (b LEFT JOIN (c LEFT JOIN one o ON c.k = o.k) ON b.v = c.k) ON a.k = b.k WHERE o.id IS NULL OR c.v > 3');
SELECT gj_same('SELECT a.id, b.id, c.id FROM a FULL JOIN (b FULL JOIN c ON b.k = c.k) ON a.k = b.k WHERE coalesce(b.v, c.id, a.v) < 50');
SELECT gj_same('SELECT c.k, count(a.id), sum(b.v) FROM c LEFT JOIN (a LEFT JOIN b ON a.k = b.k AND b.v > 40) ON c.k = a.k GROUP BY c.k HAVING count(b.id) <> 1 ORDER BY 3, 1 LIMIT 7');
SELECT gj_same('SELECT x.id, x.n, b.id FROM (SELECT a.id, coalesce(c.id, -a.id) AS n FROM a LEFT JOIN c ON a.v = c.k) x RIGHT JOIN b ON x.n = b.id ORDER BY b.id DESC, x.id LIMIT 30');

-- unmatched rows in many batches
CREATE TABLE big AS SELECT i AS id, i AS k, repeat('x', i % 30) AS pad FROM generate_series(1, 60000) i;
VACUUM ANALYZE big;
SELECT gj_same('SELECT x.id, y.id, y.pad FROM big x LEFT JOIN big y ON x.k = y.k * 3');
SELECT gj_same('SELECT x.id, y.id, y.pad FROM big x FULL JOIN big y ON x.k = y.k * 3');
SELECT gj_same('SELECT count(*), sum(x.id), sum(y.id), count(b.id) FROM big x FULL JOIN big y ON x.k = y.k * 3 LEFT JOIN b ON b.id = y.id');

DROP TABLE a, b, c, empty, one, big;
