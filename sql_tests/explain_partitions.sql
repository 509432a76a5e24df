-- EXPLAIN of minima and maxima of partitions, which are subqueries of PostgreSQL's own, planned for a source and for the fallback.
-- It wrote beyond an array of its own, which ended the session sooner or later.
LOAD 'gpujoin';
SET client_min_messages = warning;
SET gpujoin.force = on;
CREATE TABLE least (id int, s text) PARTITION BY RANGE (id);
\set ECHO none
SELECT format('CREATE TABLE least_%s PARTITION OF least FOR VALUES FROM (%s) TO (%s)', i, i * 100, i * 100 + 100) FROM generate_series(0, 30) i \gexec
\set ECHO all
CREATE INDEX ON least (s);
INSERT INTO least SELECT i, 's' || i FROM generate_series(1, 3000) i;
CREATE TABLE whole AS SELECT i AS id, 's' || i AS s FROM generate_series(1, 3000) i;
ANALYZE least, whole;
SELECT 'SELECT a.id FROM whole a JOIN whole b USING (id) JOIN (SELECT max(s) m FROM least) x ON x.m = b.s JOIN (SELECT min(s) m FROM least) y ON y.m <> b.s' AS query \gset
\set ECHO none
\o /dev/null
SELECT 'EXPLAIN (COSTS OFF) ' || :'query' FROM generate_series(1, 60) \gexec
\o
\set ECHO all
SELECT gj_same(:'query');
DROP TABLE least, whole;
