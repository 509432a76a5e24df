-- Resident fragments whose rows a condition excludes are not read; and never one that has a row.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
SET timezone = 'UTC';
-- pages that a vacuum has gone over are compared, whatever the number of processors
SET gpujoin.loader_workers = 0;
-- each partition is a fragment; nothing of the conditions below is a partition key
CREATE TABLE zone_f (part int, id int, ts timestamptz, local timestamp, day date, amount numeric(12,2), small int2, ref oid, flag bool, gap int8, one float8, note text)
	PARTITION BY LIST (part);
SELECT format('CREATE TABLE zone_%s PARTITION OF zone_f FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', i, i) FROM generate_series(0, 9) i \gexec
INSERT INTO zone_f SELECT i / 2000, i, timestamptz '2024-01-01' + i * interval '1 minute', timestamp '2024-01-01' + i * interval '1 minute',
	date '2000-01-01' + i, i / 100.0, i / 2000, i, i >= 18000 AND i % 2 = 0, CASE WHEN i >= 10000 AND (i % 3 = 0 OR i >= 14000) THEN i * 10000000000 END, i, 'note ' || i % 7
FROM generate_series(0, 19999) i;
CREATE TABLE zone_d WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 10 AS k FROM generate_series(0, 24999, 5) i;
VACUUM (FREEZE, ANALYZE) zone_f;
VACUUM (FREEZE, ANALYZE) zone_d;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('zone_f') > 0, gpujoin_prewarm('zone_d') > 0;
-- how many fragments are not read, of sources with conditions; then whether the rows are the same
CREATE FUNCTION zone_excluded(query text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(concat_ws(' of ', s->>'Fragments Excluded', s->>'Fragments'), ', ' ORDER BY s->>'Source'), 'none')
	FROM jsonb_path_query(gj_explain(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF'), 'strict $.**."Sources"[*]?(@."Fragments Excluded" > 0)') s
$$;
CREATE FUNCTION zone_same(query text) RETURNS text LANGUAGE sql AS 'SELECT zone_excluded(query) || ''; '' || gj_same(query)';
CREATE FUNCTION zone_where(condition text) RETURNS text LANGUAGE sql AS $$
	SELECT zone_same('SELECT count(*), sum(id), sum(small) FROM zone_f WHERE ' || condition)
$$;

-- comparisons: with the ends of a fragment, and beyond them
SELECT zone_where('ts >= ''2024-01-13 12:00'''), zone_where('ts > ''2024-01-13 11:59'''), zone_where('ts >= ''2024-01-13 11:59''');
SELECT zone_where('id < 2000'), zone_where('id <= 2000'), zone_where('id = 1999'), zone_where('2000 = id');
SELECT zone_where('id BETWEEN 3999 AND 4000'), zone_where('id > 3999 AND id < 6000'), zone_where('id >= 20000'), zone_where('id < 0'), zone_where('id > -1');
SELECT zone_where('local < timestamp ''2024-01-02 12:00''');
SELECT zone_where('local::date = date ''2024-01-03''');
SELECT zone_where('day = date ''2000-01-01'' + 12345'), zone_where('day >= timestamp ''2049-06-01 12:00'''), zone_where('day > ''infinity''');
SELECT zone_where('amount < 20'), zone_where('amount >= 179.995'), zone_where('amount = 100.001'), zone_where('amount = 100.01');
SELECT zone_where('small = 3'), zone_where('small <> 3'), zone_where('small > 40000'), zone_where('ref > 19000::oid');
SELECT zone_where('flag'), zone_where('NOT flag'), zone_where('flag IS NOT TRUE'), zone_where('flag IS TRUE AND id > 19000');
SELECT zone_where('id IN (1, 2, 19999)'), zone_where('id IN (-5, 30000)'), zone_where('id = ANY (ARRAY[7, NULL, 9999])'), zone_where('small NOT IN (1, 5, 9)');
-- now, whenever that is
SELECT zone_where('ts >= now() - interval ''1 day'''), zone_where('ts < now()'), zone_where('local >= localtimestamp - interval ''1 day''');
-- NULLs
SELECT zone_where('gap > 0'), zone_where('gap IS NOT NULL'), zone_where('gap IS NULL'), zone_where('gap IS NULL AND id >= 14000');
SELECT zone_where('gap <> 5 OR gap IS NULL'), zone_where('gap > 150000000000000'), zone_where('id > NULL::int'), zone_where('(id > 18000) IS NULL');
-- conditions of conditions
SELECT zone_where('id < 1000 OR id >= 19000'), zone_where('id < 1000 OR note = ''note 1'''), zone_where('NOT (id < 18000 OR note = ''note 1'')');
SELECT zone_where('(id < 3000 OR amount > 180) AND note <> ''note 2'' AND day > date ''2010-01-01'''), zone_where('id < 100 AND note LIKE ''%5''');
SELECT zone_where('CASE WHEN id < 100 THEN true ELSE note = ''x'' END'), zone_where('coalesce(gap, 0) > 0 AND id < 500'), zone_where('one < 100 AND id > 15000');
SELECT zone_where('id IS DISTINCT FROM 5 AND small < 2'), zone_where('small < id - 19900'), zone_where('id < small'), zone_where('id = gap');
-- conditions that can raise an error keep rows that they come before
SELECT zone_where('id >= 18000 AND 10 / (id - 5000) < 1'), zone_where('10 / (id - 5000) < 1 AND id >= 18000');
SELECT zone_where('note LIKE ''%5'' AND id >= 18000'), zone_where('id >= 18000 AND note LIKE ''%5'' AND amount < 181');
SELECT gj_same('SELECT count(*) FROM zone_f WHERE note LIKE ''note\'' AND id >= 30000'), zone_where('id >= 30000 AND note LIKE ''note\''');
SELECT gj_same('SELECT count(*) FROM zone_f WHERE id < 6000 AND 10 / (id - 5000) < 1');
SELECT gj_same('SELECT count(*) FROM zone_f WHERE 10 / (id - 5000) < 1 AND abs(id) >= 18000');
-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE zone_p (int, timestamptz) AS SELECT count(*), sum(id) FROM zone_f WHERE id >= $1 AND ts < $2;
SELECT zone_excluded('EXECUTE zone_p (4000, ''2024-01-05'')'), zone_excluded('EXECUTE zone_p (4000, NULL)'), zone_excluded('EXECUTE zone_p (0, ''infinity'')');
EXECUTE zone_p (4000, '2024-01-05');
EXECUTE zone_p (4000, NULL);
PREPARE zone_l (int[]) AS SELECT count(*), sum(id) FROM zone_f WHERE id = ANY ($1);
SELECT zone_excluded('EXECUTE zone_l (''{5, 6, 15000}'')'), zone_excluded('EXECUTE zone_l (''{}'')'), zone_excluded('EXECUTE zone_l (NULL)');
EXECUTE zone_l ('{5, 6, 15000}');
RESET plan_cache_mode;
SELECT zone_same('SELECT count(*) FROM zone_f WHERE id > (SELECT max(id) - 18000 FROM zone_d)');
-- build sides, again as they stay resident, and both sides
SELECT zone_same('SELECT count(*), sum(f.id) FROM zone_d d JOIN zone_f f USING (id) WHERE f.id >= 18000');
SELECT zone_same('SELECT d.k, f.note, count(*) FROM zone_d d JOIN zone_f f USING (id) WHERE f.id < 1500 GROUP BY 1, 2');
SELECT zone_same('SELECT d.k, f.note, count(*) FROM zone_d d JOIN zone_f f USING (id) WHERE f.id < 1500 GROUP BY 1, 2');
SELECT zone_same('SELECT a.id, b.note FROM zone_f a JOIN zone_f b ON a.id = b.id + 12000 WHERE a.ts > timestamptz ''2024-01-14'' AND b.small < 3');
SELECT zone_same('SELECT d.id, f.note FROM zone_d d JOIN zone_f f ON f.id BETWEEN d.id AND d.id + 1 WHERE f.id < 100 AND d.id < 200');
-- outer joins: conditions of the join exclude no row of the side that is kept
SELECT zone_same('SELECT count(*), count(d.id) FROM zone_f f LEFT JOIN zone_d d ON f.id = d.id AND f.id < 2000');
SELECT zone_same('SELECT count(*), count(f.id) FROM zone_d d LEFT JOIN zone_f f ON f.id = d.id AND f.id < 2000');
SELECT zone_same('SELECT count(*), count(d.id) FROM zone_d d RIGHT JOIN zone_f f ON f.id = d.id AND f.id < 2000 AND d.k < 5');
SELECT zone_same('SELECT count(*), count(f.id), count(d.id) FROM zone_f f FULL JOIN zone_d d ON f.id = d.id WHERE f.id < 2000 OR f.id IS NULL');
SELECT zone_same('SELECT count(*), count(f.id) FROM zone_d d LEFT JOIN zone_f f ON f.id = d.id WHERE f.id < 2000 OR f.id IS NULL');
SELECT zone_same('SELECT count(*), count(f.id) FROM zone_d d LEFT JOIN (SELECT * FROM zone_f WHERE id < 2000) f ON f.id = d.id');
SELECT zone_same('SELECT count(*), sum(d.id) FROM zone_d d WHERE EXISTS (SELECT FROM zone_f f WHERE f.id = d.id AND f.id >= 16000)');
SELECT zone_same('SELECT count(*), sum(d.id) FROM zone_d d WHERE NOT EXISTS (SELECT FROM zone_f f WHERE f.id = d.id AND f.id >= 16000)');
SELECT zone_same('SELECT count(*), sum(f.id) FROM zone_f f WHERE NOT EXISTS (SELECT FROM zone_d d WHERE d.id = f.id) AND f.id >= 16000');
-- groups, rows in order, stages
SELECT zone_same('SELECT note, count(*) FROM zone_f WHERE id < 4000 GROUP BY note'), zone_same('SELECT note, count(*) FROM zone_f WHERE id < 0 GROUP BY note');
SELECT zone_same('SELECT f.id, f.ts, d.k FROM zone_f f JOIN zone_d d USING (id) WHERE f.id >= 12000 ORDER BY f.ts LIMIT 20');
SELECT zone_same('SELECT d.k, s.n FROM zone_d d JOIN (SELECT small, count(*) AS n FROM zone_f WHERE id < 14000 GROUP BY small) s ON s.small = d.k WHERE d.id < 100');
-- what EXPLAIN says of it
SELECT line FROM gj_plan('SELECT count(*) FROM zone_f WHERE id >= 18000', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') line WHERE line LIKE '%Fragments%';
-- rows that have changed are read, wherever they were
CREATE FUNCTION zone_changed() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT gj_same('SELECT count(*), sum(id), sum(small) FROM zone_f WHERE ' || condition)
	FROM unnest(ARRAY['id >= 100000', 'id < 2000', 'id >= 18000', 'small IS NULL', 'ts IS NULL AND id > 0', 'id BETWEEN 18500 AND 18600']) condition
$$;
UPDATE zone_f SET id = id + 100000 WHERE id IN (5, 2005, 7000);
SELECT zone_changed();
DELETE FROM zone_f WHERE id = 100005 OR id BETWEEN 18500 AND 18600;
INSERT INTO zone_f (part, id, small) SELECT 1, 200000 + i, NULL FROM generate_series(1, 500) i;
SELECT zone_changed();
VACUUM zone_f;
SELECT zone_changed();
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('zone_f') > 0;
SELECT zone_where('id >= 100000'), zone_where('id >= 18000'), zone_where('small IS NULL'), zone_where('id BETWEEN 18500 AND 18600');
-- many fragments of one table
CREATE TABLE zone_long (id int, ts timestamptz) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO zone_long SELECT i, timestamptz '2024-01-01' + i * interval '1 second' FROM generate_series(1, 200000) i;
VACUUM (FREEZE, ANALYZE) zone_long;
SELECT zone_excluded('SELECT count(*), sum(id) FROM zone_long WHERE ts < timestamptz ''2024-01-01 01:00''');
SELECT zone_same('SELECT count(*), sum(id) FROM zone_long WHERE ts < timestamptz ''2024-01-01 01:00''');
SELECT zone_same('SELECT count(*), sum(l.id) FROM zone_d d JOIN zone_long l USING (id) WHERE l.ts > timestamptz ''2024-01-02 12:00''');
DROP TABLE zone_f, zone_d, zone_long;
DROP FUNCTION zone_changed, zone_where, zone_same, zone_excluded;
