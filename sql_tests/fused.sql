-- Joins with at most one match, with aggregates and groups: rows pass all steps in one call.  And inner sides of
-- resident rows, which stay as they were built.
LOAD 'gpujoin';
SET gpujoin.force = on;
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SELECT gpujoin_cache_evict() >= 0 AS evicted;

CREATE TABLE fact WITH (autovacuum_enabled = off) AS
SELECT i AS id, i % 4000 AS k, (i % 30)::int2 AS a, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 1000 END AS v,
	   i % 97 / 4.0::float8 AS f, 'text ' || i % 300 AS t, (i % 50)::numeric(8, 2) AS n
FROM generate_series(1, 100000) i;
CREATE TABLE dim WITH (autovacuum_enabled = off, fillfactor = 10) AS
SELECT i AS k, i % 7 AS w, CASE WHEN i % 5 = 0 THEN NULL ELSE i END AS x, 'name ' || i % 40 AS name, i / 3 AS many
FROM generate_series(0, 3000) i;
CREATE TABLE small WITH (autovacuum_enabled = off) AS SELECT i::int2 AS a, i * 1.5::float8 AS g FROM generate_series(0, 20) i;
VACUUM (ANALYZE, FREEZE) fact;
VACUUM (ANALYZE, FREEZE) dim;
VACUUM (ANALYZE, FREEZE) small;

-- aggregates: common forms and others, each of them cold and twice resident
SELECT gj_same('SELECT count(*), sum(f.v + d.w), min(f.v - d.w), max(f.v), count(d.x), avg(f.v * d.w) FROM fact f JOIN dim d USING (k)')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.x) FROM fact f LEFT JOIN dim d USING (k) WHERE f.v > 10 AND f.v <= 900 AND f.a <> 3')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.v + d.w), sum(s.g) FROM fact f JOIN dim d USING (k) JOIN small s ON f.a = s.a WHERE d.w < 5 AND d.x IS NOT NULL')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(v) FROM fact f WHERE EXISTS (SELECT FROM dim d WHERE d.many = f.k AND d.w < 6)')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(v) FROM fact f WHERE NOT EXISTS (SELECT FROM dim d WHERE d.many = f.k AND d.x > 100)')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.n * d.w), max(length(f.t)) FROM fact f JOIN dim d ON f.k = d.k AND f.t <> d.name WHERE f.t LIKE ''%1%''')
FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.v), min(f.f), max(f.f) FROM fact f') FROM generate_series(1, 3);

-- errors of values stay PostgreSQL's, and only of rows that get there
SELECT gj_same('SELECT sum(1000 / (f.v - 5)) FROM fact f JOIN dim d USING (k) WHERE f.v < 5');
SELECT gj_equal('SELECT sum(1000 / (f.v - 5)) FROM fact f JOIN dim d USING (k)');
SELECT gj_equal('SELECT sum(f.v * 2147483647) FROM fact f JOIN dim d USING (k)');

-- groups: few, more than one call learns, all different; of several kinds
SELECT gj_same('SELECT d.w, count(*), sum(f.v + d.w), min(f.v) FROM fact f JOIN dim d USING (k) GROUP BY d.w') FROM generate_series(1, 3);
SELECT gj_same('SELECT f.k % 1000, count(*), sum(f.v) FROM fact f LEFT JOIN dim d USING (k) GROUP BY 1') FROM generate_series(1, 2);
SELECT gj_same('SELECT count(*), sum(x.s * x.id) FROM (SELECT f.id, sum(f.v + d.w) AS s FROM fact f JOIN dim d USING (k) GROUP BY f.id) x') FROM generate_series(1, 2);
SELECT gj_same('SELECT count(*), sum(hashtext(x::text)::bigint) FROM (SELECT d.name, f.t, f.f, count(*), max(f.v) FROM fact f LEFT JOIN dim d USING (k) GROUP BY 1, 2, 3) x') FROM generate_series(1, 2);
SELECT gj_same('SELECT d.x, count(f.v), count(DISTINCT f.a) FROM fact f LEFT JOIN dim d USING (k) GROUP BY d.x') FROM generate_series(1, 2);
SELECT gj_same('SELECT f.a, f.n, count(*), sum(f.v) FROM fact f WHERE f.v % 3 = 1 GROUP BY 1, 2') FROM generate_series(1, 2);

-- hash tables are kept, used again, and go with what they were built of
SELECT gpujoin_cache_evict() > 0 AS evicted;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)');
SELECT relation, max(hash_tables) AS hash_tables, max(hash_table_hits) AS hash_table_hits FROM gpujoin_cache WHERE datname = current_database() GROUP BY relation ORDER BY relation::oid;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)');
SELECT gj_same('SELECT count(*), sum(f.v * d.w) FROM fact f JOIN dim d USING (k) WHERE f.v < 100');
SELECT relation, max(hash_tables) AS hash_tables, max(hash_table_hits) AS hash_table_hits FROM gpujoin_cache WHERE datname = current_database() GROUP BY relation ORDER BY relation::oid;
-- another filter, other columns: another table
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k) WHERE d.w < 3');
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k) WHERE d.w < 4');
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k) WHERE d.w < 3');
SELECT max(hash_tables) AS hash_tables, max(hash_table_hits) AS hash_table_hits FROM gpujoin_cache WHERE relation = 'dim'::regclass;
-- a changed page, also one that is changed back: not what was built
UPDATE dim SET w = 1000 WHERE k = 17;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)') FROM generate_series(1, 2);
BEGIN;
DELETE FROM dim WHERE k < 1000;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)');
ROLLBACK;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)');
VACUUM dim;
SELECT gj_same('SELECT count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k)') FROM generate_series(1, 3);
ALTER TABLE dim ADD COLUMN extra int DEFAULT 5;
SELECT gj_same('SELECT count(*), sum(f.v + d.extra) FROM fact f JOIN dim d USING (k)') FROM generate_series(1, 2);
SELECT gpujoin_cache_evict('dim') > 0 AS evicted;
SELECT count(*) FROM gpujoin_cache WHERE relation = 'dim'::regclass;

-- build sides of which rows come out by themselves: they stay, unless a filter hides rows that could come out without a match
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.w) FROM fact f RIGHT JOIN dim d USING (k)') FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.w) FROM fact f RIGHT JOIN (SELECT * FROM dim WHERE w < 3) d USING (k)') FROM generate_series(1, 3);
SELECT max(hash_tables) AS hash_tables, max(hash_table_hits) AS hash_table_hits FROM gpujoin_cache WHERE relation = 'dim'::regclass;
-- those rows are marked by probe rows that go no further: of one row a key and several, by every condition
SELECT gj_same(format('SELECT d.w, count(*), sum(d.k), max(d.name) FROM dim d JOIN small s ON d.w = s.a WHERE %s %s EXISTS (SELECT FROM fact f WHERE f.k = %s AND f.v > 10 %s) GROUP BY d.w', filter, negation, key, condition))
FROM unnest(ARRAY['d.w < 5 AND', '']) filter, unnest(ARRAY['', 'NOT']) negation, unnest(ARRAY['d.k', 'd.many']) key, unnest(ARRAY['', 'AND f.v <> d.x', 'AND f.t <> d.name']) condition, generate_series(1, 2) again ORDER BY filter COLLATE "C", negation COLLATE "C", key COLLATE "C", condition COLLATE "C", again;
SELECT max(hash_tables) > 1 AS several, max(hash_table_hits) > 1 AS used FROM gpujoin_cache WHERE relation = 'dim'::regclass;
SELECT gj_same('SELECT count(*), sum(d.k) FROM dim d WHERE EXISTS (SELECT FROM fact f WHERE f.k = d.many + 5000)');
SELECT gj_same('SELECT count(*), sum(d.k) FROM dim d WHERE NOT EXISTS (SELECT FROM fact f WHERE f.k = d.many + 5000)');

-- semi and anti joins with a condition, where a key has several rows, none, or very many; and steps behind them
SELECT gj_same(format('SELECT %s FROM fact f JOIN small s ON f.a = s.a WHERE f.v < 900 AND %s EXISTS (SELECT FROM dim d WHERE d.many = %s AND %s)', output, negation, key, condition) || tail)
FROM (VALUES ('count(*), sum(f.v), sum(s.g)', ''), ('f.a % 4, count(*), sum(f.v)', ' GROUP BY 1')) o (output, tail), unnest(ARRAY['', 'NOT']) negation, unnest(ARRAY['f.k', 'f.k + 9000']) key,
	unnest(ARRAY['d.k <> f.v', 'd.x > f.v AND d.w <> f.a', 'd.name < f.t']) condition, generate_series(1, 2) again ORDER BY output COLLATE "C", negation COLLATE "C", key COLLATE "C", condition COLLATE "C", again;
SELECT gj_same(format('SELECT count(*), sum(f.v) FROM fact f WHERE f.v < 100 AND %s EXISTS (SELECT FROM dim d WHERE d.w = f.a AND d.k %s f.v)', negation, op)) FROM unnest(ARRAY['', 'NOT']) negation, unnest(ARRAY['<>', '>']) op ORDER BY negation COLLATE "C", op COLLATE "C";
SELECT gj_same('SELECT s.g, count(*) FROM fact f JOIN small s ON f.a = s.a JOIN dim d1 ON f.k = d1.k WHERE f.v > f.a AND EXISTS (SELECT FROM dim d WHERE d.many = f.k AND d.w <> d1.w)
	AND NOT EXISTS (SELECT FROM dim d WHERE d.many = f.k AND d.w <> f.a AND d.x > 100) GROUP BY s.g') FROM generate_series(1, 2);

-- right and full joins by a key that is unique in the build side: rows without a match follow; conditions of each side and of both, NULLs as keys,
-- groups of the build side's rows, of the probe side's, of both and of none, and joins behind; by a key that is not unique: another way
CREATE TABLE ref WITH (autovacuum_enabled = off) AS
SELECT CASE WHEN i % 50 = 7 THEN NULL ELSE i END AS k, i AS id, i % 9 AS w, i / 2 AS twice, 'ref ' || i % 30 AS name FROM generate_series(0, 6000) i;
VACUUM (ANALYZE, FREEZE) ref;
SELECT gj_steps('SELECT r.k, count(f.id) FROM fact f RIGHT JOIN ref r ON f.k = r.k AND f.t NOT LIKE ''%7%'' GROUP BY r.k'), gj_steps('SELECT r.k, count(f.id) FROM fact f FULL JOIN ref r ON f.k = r.k GROUP BY r.k');
SELECT gj_same(format('SELECT %s FROM fact f %s JOIN ref r ON f.k = r.%s %s', output, type, key, condition) || tail)
FROM (VALUES ('r.k, count(f.id), count(*), sum(f.v)', ' GROUP BY r.k'), ('r.id, r.name, count(f.id), max(f.f)', ' GROUP BY r.id, r.name'), ('r.w, f.a, count(*), sum(r.id)', ' GROUP BY 1, 2'), ('count(*), sum(f.v), sum(r.id), count(r.k)', '')) o (output, tail),
	unnest(ARRAY['RIGHT', 'FULL']) type, unnest(ARRAY['k', 'twice']) key, unnest(ARRAY['', 'AND f.t NOT LIKE ''%7%''', 'AND f.v > r.w * 100', 'AND r.w < 5']) condition
WHERE (type = 'RIGHT' OR condition !~ 'f.v > r.w') AND (key = 'k' OR condition = '') ORDER BY output COLLATE "C", type COLLATE "C", key COLLATE "C", condition COLLATE "C";
SELECT gj_same(format('SELECT %s FROM fact f %s JOIN ref r ON f.k = r.k %s', output, type, more) || tail)
FROM (VALUES ('r.w, count(f.id), sum(f.v)', ' GROUP BY r.w'), ('count(*), sum(f.v), sum(r.id)', '')) o (output, tail), unnest(ARRAY['RIGHT', 'FULL']) type,
	unnest(ARRAY['JOIN dim d ON d.k = r.twice', 'JOIN dim d ON d.k = r.k AND d.w < 2', 'LEFT JOIN dim d ON d.k = f.a', 'RIGHT JOIN dim d ON d.k = r.twice', 'FULL JOIN dim d ON d.k = f.v', 'JOIN small s ON s.a = f.a RIGHT JOIN dim d ON d.k = r.id',
	'WHERE r.w < 5 OR f.v IS NULL', 'WHERE NOT EXISTS (SELECT FROM dim d WHERE d.many = r.id)']) more ORDER BY output COLLATE "C", type COLLATE "C", more COLLATE "C";
SELECT gj_same('SELECT c, count(*) FROM (SELECT r.k, count(f.id) AS c FROM fact f RIGHT JOIN ref r ON f.k = r.k AND f.t NOT LIKE ''%7%'' GROUP BY r.k) x GROUP BY c') FROM generate_series(1, 2);
SELECT gj_same('SELECT r.id, count(f.id) AS c FROM fact f RIGHT JOIN ref r ON f.k = r.k GROUP BY r.id ORDER BY c DESC, r.id LIMIT 20') FROM generate_series(1, 2);
SELECT gj_same('SELECT r.k, count(DISTINCT f.a), count(DISTINCT f.v), sum(f.v) FROM fact f RIGHT JOIN ref r ON f.k = r.k GROUP BY r.k');
-- no build row, none that matches, and none that the filter leaves
SELECT gj_same(format('SELECT r.id, count(f.id) FROM fact f %s JOIN (SELECT * FROM ref WHERE %s) r ON f.k = r.k GROUP BY r.id', type, filter)) FROM unnest(ARRAY['RIGHT', 'FULL']) type, unnest(ARRAY['k < 0', 'k > 4500', 'w < 3']) filter ORDER BY type COLLATE "C", filter COLLATE "C";
-- what a build row's group is raises an error, whether it has a match or not
SELECT gj_same('SELECT 100 / (r.w - 9), count(f.id) FROM fact f RIGHT JOIN ref r ON f.k = r.k GROUP BY 1');
SELECT gj_equal('SELECT 100 / (r.id - 5500), count(f.id) FROM fact f RIGHT JOIN ref r ON f.k = r.k GROUP BY 1');
SELECT gj_equal('SELECT r.w, sum((f.v + 5) * 2147483647) FROM fact f RIGHT JOIN ref r ON f.k = r.k GROUP BY 1');
SET gpujoin.devices_per_query = 2;
SELECT gj_same(format('SELECT %s FROM fact f %s JOIN ref r ON f.k = r.k AND f.t NOT LIKE ''%%7%%''', output, type) || tail)
FROM (VALUES ('r.k, count(f.id), count(*), sum(f.v)', ' GROUP BY r.k'), ('count(*), sum(f.v), sum(r.id), count(r.k)', '')) o (output, tail), unnest(ARRAY['RIGHT', 'FULL']) type, generate_series(1, 2) again ORDER BY output COLLATE "C", type COLLATE "C", again;
RESET gpujoin.devices_per_query;

-- a join that drops most tuples comes first, by the key of another one that its own is equal to; chains of them
CREATE TABLE few AS SELECT i * 97 AS k, i AS u FROM generate_series(0, 12000) i;
VACUUM (ANALYZE, FREEZE) few;
SELECT gj_same(format('SELECT %s FROM fact f JOIN dim d ON f.k = d.k AND d.w %s f.v JOIN few e ON e.k = d.k AND e.u < 500 %s', output, op, more) || tail)
FROM (VALUES ('count(*), sum(f.v), sum(d.x - e.u)', ''), ('d.w, f.t, count(*), sum(e.u)', ' GROUP BY 1, 2')) o (output, tail), unnest(ARRAY['<', '<>']) op,
	unnest(ARRAY['', 'JOIN few g ON g.k = e.k AND g.u % 10 = 3', 'LEFT JOIN dim h ON h.k = e.u', 'JOIN small s ON s.a = d.w WHERE NOT EXISTS (SELECT FROM dim x WHERE x.many = e.k AND x.w <> f.a)']) more, generate_series(1, 2) again ORDER BY output COLLATE "C", op COLLATE "C", more COLLATE "C", again;
-- the planner joins it first if it knows that
SELECT jsonb_path_query_array(gj_explain('SELECT count(*), sum(f.v) FROM fact f JOIN dim d ON f.k = d.k AND d.w < f.v JOIN few e ON e.k = d.k AND e.u < 500', 'ANALYZE, VERBOSE, COSTS OFF'), 'strict $[0].Plan.Joins[*]."Rows In"') AS rows_in;
-- or else the device does
SELECT jsonb_path_query_array(gj_explain('SELECT count(*), sum(f.v) FROM fact f JOIN dim d ON f.k = d.k AND d.w < f.v JOIN few e ON e.k = d.k AND abs(e.u) < 500', 'ANALYZE, VERBOSE, COSTS OFF'), 'strict $[0].Plan.Joins[*]."Rows In"') AS rows_in;
SELECT gj_same('SELECT count(*), sum(h.u) FROM fact f LEFT JOIN dim d ON f.k = d.k JOIN (SELECT * FROM few WHERE u < 20) h ON h.k = d.x') FROM generate_series(1, 2);

-- what was kept gives way to a run
SET gpujoin.device_memory_limit = '64MB';
SELECT gj_same('SELECT f.t, d.name, count(*), sum(f.v + d.w) FROM fact f JOIN dim d USING (k) GROUP BY 1, 2') FROM generate_series(1, 2);
SELECT gj_same('SELECT r.id, r.name, count(f.id), sum(f.v) FROM fact f RIGHT JOIN ref r ON f.k = r.k AND f.t <> ''text 7'' GROUP BY 1, 2') FROM generate_series(1, 2);
RESET gpujoin.device_memory_limit;


-- an inner side whose keys have gaps, of which one column is read, none or two: cold and twice resident, and after a change; so
-- large on a GPU that its table keeps that column, which tables of the cpu device do not do
SELECT CASE current_setting('gpujoin.device') WHEN 'cpu' THEN 10 ELSE 1 END AS less \gset
CREATE TABLE gaps_f WITH (autovacuum_enabled = off) AS
SELECT (i * 7919::bigint % (1300000 / :less)) * 1000 AS k, i % 100 AS v FROM generate_series(1, 1200000 / :less) i;
CREATE TABLE gaps_d WITH (autovacuum_enabled = off) AS
SELECT (i * 104729::bigint % (1100000 / :less)) * 1000 AS k, i % 1000 - 500 AS w, i * 10000000000 AS x FROM generate_series(1, 1100000 / :less) i;
VACUUM (ANALYZE, FREEZE) gaps_f;
VACUUM (ANALYZE, FREEZE) gaps_d;
SELECT gj_same('SELECT count(*), sum(f.v + d.w), sum(d.w) FROM gaps_f f JOIN gaps_d d USING (k)') FROM generate_series(1, 3);
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.x - f.v) FROM gaps_f f JOIN gaps_d d USING (k) WHERE f.v < 70') FROM generate_series(1, 3);
SELECT gj_same('SELECT sum(d.w), sum(d.x), sum(f.v) FROM gaps_f f JOIN gaps_d d USING (k)') FROM generate_series(1, 2);
SELECT gj_same('SELECT sum(d.w), sum(f.v) FROM gaps_f f JOIN gaps_d d USING (k) JOIN small s ON f.v = s.a') FROM generate_series(1, 2);
UPDATE gaps_d SET w = NULL WHERE k = 5000;
UPDATE gaps_d SET x = 7, k = -9223372036854775808 WHERE k = 6000;
SELECT gj_same('SELECT count(*), sum(f.v + d.w), sum(d.w) FROM gaps_f f JOIN gaps_d d USING (k)');
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.x - f.v) FROM gaps_f f JOIN gaps_d d USING (k) WHERE f.v < 70');
VACUUM gaps_d;
SELECT gj_same('SELECT count(*), sum(f.v + d.w), sum(d.w) FROM gaps_f f JOIN gaps_d d USING (k)') FROM generate_series(1, 2);
SELECT gj_same('SELECT count(*), sum(f.v), sum(d.x - f.v) FROM gaps_f f JOIN gaps_d d USING (k) WHERE f.v < 70') FROM generate_series(1, 2);
-- sums and differences of products, with NULLs, of several scales; of eight joins; what no 64 bits hold is PostgreSQL's
CREATE TABLE sale AS
SELECT i AS id, i % 7 AS g, i % 40 AS k, CASE WHEN i % 13 <> 0 THEN (i % 90000)::numeric(12, 2) / 7 END::numeric(12, 2) AS price, (i % 11)::numeric(12, 2) / 100 AS off,
	(i % 9)::numeric(6, 3) / 100 AS tax, (i % 50)::numeric(12, 2) - 25 AS n, i::int8 * 1000003 AS big
FROM generate_series(1, 50000) i;
ALTER TABLE sale ALTER off TYPE numeric(12, 2), ALTER tax TYPE numeric(6, 3), ALTER n TYPE numeric(12, 2);
CREATE TABLE eight AS SELECT i AS k, i * 3 % 40 AS next FROM generate_series(0, 39) i;
ALTER TABLE eight ADD UNIQUE (k);
VACUUM ANALYZE sale, eight;
SELECT gj_device(format('SELECT %s FROM sale WHERE off BETWEEN 0.02 AND 0.07 AND n > -20', x) || y) FROM unnest(ARRAY[
	'sum(price * (1 - off)), sum(price * (1 - off) * (1 + tax)), count(*)', 'sum(price * (1 - off) - n * tax), avg((n - 3) * price)', 'sum((1 + tax) * n - price), sum(big * (7 - g)), min(big * g * k)',
	'sum(price * (off + n)), max(-price * n)', 'sum(big * big * big)', 'sum((9223372036854775807 - big) * 1)', 'sum(big + (-9223372036854775807 - big))']) WITH ORDINALITY xs (x, i), unnest(ARRAY['', ' GROUP BY g']) y ORDER BY i, y;
SELECT gj_device('SELECT s.g, count(*), sum(s.price * (1 - h.next) + h.k * s.n) FROM sale s JOIN eight a ON s.k = a.k JOIN eight b ON a.next = b.k JOIN eight c ON b.next = c.k JOIN eight d ON c.next = d.k
	JOIN eight e ON d.next = e.k JOIN eight f ON e.next = f.k JOIN eight h ON f.next = h.k JOIN eight i ON h.next = i.k GROUP BY s.g');
-- what overflows does so beside a NULL, and in the order in which it is written
CREATE TABLE wide AS SELECT 1::int8 << 40 AS a, 1::int8 << 40 AS b, NULL::int8 AS c, 0::int8 AS z, i % 3 AS g FROM generate_series(1, 1000) i;
VACUUM ANALYZE wide;
SELECT gj_device('SELECT ' || x || ' FROM wide' || y) FROM unnest(ARRAY['sum(a * b + c)', 'sum(c + a * b)', 'sum(c * a * b)', 'sum(a * b * c)', 'sum(z * (a * b))', 'sum(z * a * b)', 'sum((9223372036854775807 + a) * c)', 'sum((9223372036854775807 + c) * a)', 'sum(a - b + c * a)'])
	WITH ORDINALITY xs (x, i), unnest(ARRAY['', ' GROUP BY g']) y ORDER BY i, y;
-- a CASE with one condition, alternatives, and parts of dates; a branch that is not taken does not fail
ALTER TABLE sale ADD d date, ADD c char(12), ADD t text;
ALTER TABLE eight ADD c char(8);
UPDATE sale SET d = date '1999-12-30' + id % 1000, c = 'kind ' || id % 9, t = 'text ' || id % 2000 WHERE id % 17 <> 0;
UPDATE eight SET c = 'place ' || k % 3 WHERE k % 7 <> 0;
VACUUM FULL ANALYZE sale;
VACUUM sale, eight;
SELECT gj_device(format('SELECT %s FROM sale s %s', x, y)) FROM unnest(ARRAY[
	'sum(CASE WHEN n > 3 THEN price * (1 - off) ELSE 0 END), sum(CASE WHEN n > 3 THEN price * (1 - off) END), count(CASE WHEN price > 100 THEN n END)',
	'sum(CASE WHEN n > 3 AND s.k < 5 OR g = 6 THEN big * g ELSE 0 END), max(CASE WHEN price < 9 OR price > 100 THEN -n END), min(CASE WHEN d IS NULL THEN 5 ELSE 0 END)',
	'sum(CASE WHEN big < 2000000 THEN big * big * big ELSE 0 END), sum(CASE WHEN (price > 100) IS TRUE THEN 1 ELSE 0 END), sum(CASE WHEN n > 3 THEN price ELSE 7 END)',
	'sum(CASE WHEN big > 2000000 THEN big * big * big ELSE 0 END)', 'sum(2 * CASE WHEN n > 3 THEN n ELSE 0 END), sum(CASE WHEN n > 3 THEN 1 ELSE 0 END * 1.5 - price), sum(CASE WHEN n > 3 THEN price END + 1), min(CASE WHEN n > 3 THEN n END)',
	'sum(CASE g WHEN 3 THEN s.k ELSE 0 END), sum(CASE WHEN g = 3 THEN n WHEN g = 4 THEN price END)',
	'sum(CASE WHEN g = 3 THEN CASE WHEN n > 3 THEN price ELSE 0 END ELSE 0 END), sum(extract(year FROM d) * g), max(extract(doy FROM d))',
	'sum(CASE WHEN s.c = ''kind 3'' OR s.c = ''kind 4'' THEN n ELSE 0 END), count(CASE WHEN s.c NOT IN (''kind 1'', ''kind 2'') THEN price END), sum(n) FILTER (WHERE s.t NOT LIKE ''%1_'' AND s.c <> ''kind 5'')'])
	WITH ORDINALITY xs (x, i), unnest(ARRAY['', 'JOIN eight e ON s.k = e.k AND (e.c = ''place 1'' AND s.c IN (''kind 1'', ''kind 3'') AND s.n BETWEEN 1 AND 20 OR e.c = ''place 2'' AND s.t LIKE ''%7%'')',
	'JOIN eight e ON s.k = e.k AND (s.n > 3 AND e.next < 20 OR s.g = 2 AND e.next >= 30 OR s.price = 100.00)', 'GROUP BY g',
	'JOIN eight e ON s.k = e.k WHERE s.n > 3 AND (s.g < 2 OR e.next >= 30) GROUP BY extract(year FROM d)', 'GROUP BY extract(dow FROM d), extract(quarter FROM d)']) y ORDER BY i, y;
SELECT gj_device('SELECT count(*), sum(s.price), sum(p.n) FROM sale s JOIN (SELECT DISTINCT ''kind '' || k % 7 || repeat('' '', k % 2) AS kind, k % 7 AS n FROM eight) p ON s.c = p.kind::char(12)');
UPDATE sale SET d = 'infinity' WHERE id = 4711;
SELECT gj_equal('SELECT extract(year FROM d), count(*) FROM sale GROUP BY 1');
DROP TABLE fact, dim, small, ref, few, gaps_f, gaps_d, sale, eight, wide;
