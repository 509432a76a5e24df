-- Groups, distinct rows and aggregates of domains.
CREATE DOMAIN gdm_price AS numeric(8,3);
CREATE DOMAIN gdm_net AS gdm_price CHECK (VALUE > -100);
CREATE DOMAIN gdm_code AS varchar(6) COLLATE "C";
CREATE DOMAIN gdm_pad AS char(4);
CREATE DOMAIN gdm_n AS smallint;
CREATE DOMAIN gdm_day AS date;
CREATE TABLE gdm (id int, p gdm_price, q gdm_net, c gdm_code, b gdm_pad, n gdm_n, d gdm_day);
INSERT INTO gdm SELECT i, NULLIF(i % 9, 4) * 1.125, i % 5 - 2.5, 'c' || i % 3, (ARRAY['x', 'x ', '', NULL])[1 + i % 4],
	i % 6, date '2024-01-01' + i % 4 FROM generate_series(1, 200) i;
ANALYZE gdm;
SELECT gj_same('SELECT p, count(*), sum(q), avg(p), min(q), max(p) FROM gdm GROUP BY p');
SELECT gj_same('SELECT a.q, b.p, count(*) FROM gdm a LEFT JOIN gdm b ON a.p = b.q AND a.id % 10 = b.id GROUP BY a.q, b.p');
SELECT gj_same('SELECT a.p FROM gdm a JOIN gdm b USING (id) GROUP BY a.p HAVING a.p > 2');
SELECT gj_same('SELECT DISTINCT c, b, n, d, q FROM gdm');
SELECT gj_same('SELECT a.c, a.b, a.n, a.d, count(*), min(b.n), max(b.d) FROM gdm a JOIN gdm b USING (id) GROUP BY a.c, a.b, a.n, a.d');
SELECT gj_same('SELECT count(DISTINCT p), sum(DISTINCT p) FROM gdm');
SELECT gj_same('SELECT a.p, b.q FROM gdm a FULL JOIN gdm b ON a.p = b.p + 1 AND a.id = b.id WHERE a.q <> 0.5 OR b.q IS NULL');
DROP TABLE gdm;
DROP DOMAIN gdm_day, gdm_n, gdm_pad, gdm_code, gdm_net, gdm_price;
