-- More tables than one message asks about, together with others: all of them resident, some of them changed.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
SELECT gpujoin_cache_evict() >= 0 AS evicted;
-- 60 columns in 100 partitions: questions of some 150 kB
DO $$
BEGIN
	EXECUTE (SELECT format('CREATE TABLE many (k int, %s) PARTITION BY LIST (k)', string_agg('c' || i || ' int', ', ')) FROM generate_series(1, 60) i);
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE many_%s PARTITION OF many FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', i, i);
		EXECUTE format('INSERT INTO many SELECT %s, %s FROM generate_series(1, 5) i', i,
			(SELECT string_agg('i + ' || c, ', ') FROM generate_series(1, 60) c));
	END LOOP;
END $$;
CREATE TABLE many_d WITH (autovacuum_enabled = off) AS SELECT i AS k, i * 2 AS w FROM generate_series(1, 100) i;
CREATE TABLE many_e WITH (autovacuum_enabled = off) AS SELECT i AS w, 'name ' || i AS name FROM generate_series(1, 200) i;
VACUUM (FREEZE, ANALYZE) many;
VACUUM (FREEZE, ANALYZE) many_d;
VACUUM (FREEZE, ANALYZE) many_e;

\set rows '''SELECT m.*, name FROM many m JOIN many_d USING (k) JOIN many_e USING (w)'''
\set sums '''SELECT name, count(*), sum(c1), min(c60) FROM many m JOIN many_d USING (k) JOIN many_e USING (w) GROUP BY name'''
SELECT gj_resident(:rows), gj_resident(:rows);
SELECT gj_resident(:sums), gj_resident(:sums);
-- one of the first and one of the last, and one between
UPDATE many SET c1 = -c1 WHERE k IN (1, 50, 100) AND c2 = 4;
SELECT gj_resident(:rows), gj_resident(:sums);
UPDATE many_e SET name = 'another' WHERE w = 100;
SELECT gj_resident(:rows), gj_resident(:sums);
VACUUM (FREEZE) many;
VACUUM (FREEZE) many_e;
SELECT gj_resident(:rows), gj_resident(:rows), gj_resident(:sums);
-- a table between two that are resident has nothing
DELETE FROM many_d;
SELECT gj_resident(:rows), gj_resident(:sums);
DROP TABLE many, many_d, many_e;
