-- gpu_intersect_family: the distinct intersections on the device, against the session's process and plain SQL.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.set_device_min_elements = 0;
CREATE FUNCTION family_where(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN n->>'Device' IN ('cpu', 'cuda') THEN 'device' ELSE 'process' END || coalesce(', fallback: ' || (n->>'Fallback'), '') FROM gj_nodes(query, 'ANALYZE, COSTS OFF, TIMING OFF') n WHERE n ? 'Technique'
$$;

-- few frequent elements and many rare ones; empty and equal sets, large ones, two kinds of elements
SELECT setseed(0.25);
CREATE TABLE family_l AS SELECT i AS id, array(SELECT (power(random(), 3) * 400)::int - 50 FROM generate_series(1, CASE WHEN i % 40 = 0 THEN 300 WHEN i % 17 = 0 THEN 0 ELSE i % 23 END) WHERE i > 0) AS s FROM generate_series(1, 110) i;
INSERT INTO family_l SELECT 1000 + id, s FROM family_l WHERE id % 11 = 0 OR id = 17;
CREATE TABLE family_r AS SELECT i AS id, array(SELECT (power(random(), 3) * 400)::bigint - 50 FROM generate_series(1, 1 + i % 13) WHERE i > 0) || (1::bigint << 40) AS s FROM generate_series(1, 50) i;
INSERT INTO family_r SELECT 2000 + id, s FROM family_l WHERE id % 13 = 0;
CREATE TABLE family_one AS SELECT x AS set, count(*) AS frequency FROM (SELECT array(SELECT unnest(a.s) INTERSECT SELECT unnest(b.s) ORDER BY 1)::bigint[] AS x FROM family_l a JOIN family_l b ON a.id < b.id) y WHERE x <> '{}' GROUP BY 1;
CREATE TABLE family_two AS SELECT x AS set, count(*) AS frequency FROM (SELECT array(SELECT unnest(a.s)::bigint INTERSECT SELECT unnest(b.s) ORDER BY 1) AS x FROM family_l a CROSS JOIN family_r b) y WHERE x <> '{}' GROUP BY 1;
SELECT count(*) > 300, max(frequency) > 100, max(cardinality(set)) > 40 FROM family_one;
SELECT count(*) > 200, max(frequency) > 100 FROM family_two;
\set one 'SELECT set, frequency FROM gpu_intersect_family(''SELECT id, s FROM family_l'')'
\set two 'SELECT set, frequency FROM gpu_intersect_family(''SELECT id, s FROM family_l'', ''SELECT id, s FROM family_r'')'
CREATE FUNCTION family_check(algorithm text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	one text := 'SELECT set, frequency FROM gpu_intersect_family(''SELECT id, s FROM family_l'')';
	two text := 'SELECT set, frequency FROM gpu_intersect_family(''SELECT id, s FROM family_l'', ''SELECT id, s FROM family_r'')';
BEGIN
	PERFORM set_config('gpujoin.set_algorithm', algorithm, false);
	EXECUTE format('SELECT count(*) FROM ((%s EXCEPT ALL TABLE family_one) UNION ALL (TABLE family_one EXCEPT ALL %s) UNION ALL (%s EXCEPT ALL TABLE family_two) UNION ALL (TABLE family_two EXCEPT ALL %s)) x', one, one, two, two) INTO n;
	RETURN CASE n WHEN 0 THEN 'same' ELSE n || ' rows differ' END || ', ' || family_where(one) || ', ' || family_where(two);
END $$;
SELECT a, family_check(a) FROM unnest('{auto,merge_path,binary_search,hash,bitmap,inverted_index,matrix}'::text[]) a;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT 'process ' || a, family_check(a) FROM unnest('{auto,merge_path,inverted_index,matrix}'::text[]) a;
SET gpujoin.set_device_min_elements = 0;
RESET gpujoin.set_algorithm;

-- two sets whose hashes are equal (each element is in two sets, so elements keep their order as codes)
CREATE TABLE family_hash AS
WITH few(s) AS (VALUES ('{239,741,1306,2049,2659,3210,4063,4502}'::int[]), ('{375,1210,1832,2468,3056,3740,4339,5023}')),
	rest AS (SELECT e FROM generate_series(0, 5119) e WHERE NOT EXISTS (SELECT FROM few WHERE e = ANY (s))),
	all_sets AS (SELECT s FROM few UNION ALL SELECT array_agg(e) FROM rest GROUP BY e % 3)
SELECT row_number() OVER () AS id, s FROM all_sets, generate_series(1, 2);
SELECT family_where('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM family_hash'')');
SELECT cardinality(set), frequency, CASE WHEN cardinality(set) = 8 THEN set END FROM gpu_intersect_family('SELECT id, s FROM family_hash') ORDER BY set;
SET gpujoin.enabled = off;
SELECT cardinality(set), frequency, CASE WHEN cardinality(set) = 8 THEN set END FROM gpu_intersect_family('SELECT id, s FROM family_hash') ORDER BY set;
RESET gpujoin.enabled;

-- ids that are not unique: their sets are no pair
CREATE TABLE family_equal AS SELECT x AS set, count(*) AS frequency FROM (SELECT array(SELECT unnest(a.s) INTERSECT SELECT unnest(b.s) ORDER BY 1)::bigint[] AS x FROM family_l a JOIN family_l b ON a.id / 3 < b.id / 3) y WHERE x <> '{}' GROUP BY 1;
\set equal 'SELECT set, frequency FROM gpu_intersect_family(''SELECT id / 3, s FROM family_l'')'
SELECT family_where('SELECT * FROM gpu_intersect_family(''SELECT id / 3, s FROM family_l'')');
SELECT count(*) FROM ((:equal EXCEPT ALL TABLE family_equal) UNION ALL (TABLE family_equal EXCEPT ALL :equal)) d;
SET gpujoin.enabled = off;
SELECT count(*) FROM ((:equal EXCEPT ALL TABLE family_equal) UNION ALL (TABLE family_equal EXCEPT ALL :equal)) d;
RESET gpujoin.enabled;
SELECT count(*) FROM gpu_intersect_family('SELECT 7, s FROM family_l');

-- intersections larger than a batch, beside small ones
CREATE TABLE family_large AS SELECT i AS id, (SELECT array_agg(e * i) FROM generate_series(1, 1200000 / i) e) AS s FROM generate_series(1, 4) i;
INSERT INTO family_large VALUES (10, '{1200000}'), (11, '{}'), (12, '{4,8,12}');
-- a family takes up to 60 bytes an element on the device
SET gpujoin.device_memory_limit = '512MB';
SELECT family_where('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM family_large'')');
SELECT cardinality(set), frequency, set[1], set[cardinality(set)], (SELECT count(*) FILTER (WHERE e = set[1] * n) FROM unnest(set) WITH ORDINALITY u(e, n)) AS multiples
FROM gpu_intersect_family('SELECT id, s FROM family_large') f ORDER BY 1 DESC, f.set;
RESET gpujoin.device_memory_limit;

-- more intersections than there is memory for
SELECT setseed(0.5);
CREATE TABLE family_many AS SELECT i AS id, array(SELECT (random() * 300)::int FROM generate_series(1, 30) WHERE i > 0) AS s FROM generate_series(1, 1500) i;
\set many 'SELECT count(*), sum(frequency), sum(hashtextextended(set::text, 0) * frequency::numeric) FROM gpu_intersect_family(''SELECT id, s FROM family_many'')'
CREATE TABLE family_results (way text, n bigint, pairs numeric, checksum numeric);
INSERT INTO family_results SELECT 'device', r.* FROM (:many) r;
SET gpujoin.device_memory_limit = '56MB';
INSERT INTO family_results SELECT 'parts', r.* FROM (:many) r;
SELECT n->>'Device' IN ('cpu', 'cuda') AS device, (n->>'Parts')::int > 1 AS parts, n->>'Fallback' FROM gj_nodes('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM family_many'')', 'ANALYZE, COSTS OFF, TIMING OFF') n;
-- there is memory for none
SET gpujoin.device_memory_limit = '20MB';
INSERT INTO family_results SELECT 'no memory', r.* FROM (:many) r;
SELECT family_where('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM family_many'')');
RESET gpujoin.device_memory_limit;
SET gpujoin.enabled = off;
INSERT INTO family_results SELECT 'process', r.* FROM (:many) r;
SET gpujoin.spill_memory = '8MB';
INSERT INTO family_results SELECT 'process, parts', r.* FROM (:many) r;
RESET gpujoin.enabled;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT n->>'Device' NOT IN ('cpu', 'cuda') AS process, (n->>'Parts')::int > 1 AS parts FROM gj_nodes('SELECT * FROM gpu_intersect_family(''SELECT id, s FROM family_many'')', 'ANALYZE, COSTS OFF, TIMING OFF') n;
SET gpujoin.set_device_min_elements = 0;
RESET gpujoin.spill_memory;
SELECT count(*), count(DISTINCT (n, pairs, checksum)), min(n) > 300000 FROM family_results;

-- nothing, one set, stopping early, starting again
SELECT * FROM gpu_intersect_family('SELECT id, s FROM family_l WHERE false');
SELECT * FROM gpu_intersect_family('SELECT id, s FROM family_l WHERE id = 1');
SELECT * FROM gpu_intersect_family('SELECT 1, ARRAY[1]', 'SELECT 2, ARRAY[2]');
SELECT * FROM gpu_intersect_family('SELECT 1, ARRAY[1, 2]', 'SELECT 2, ARRAY[2, 3]');
SELECT count(*) FROM (SELECT set FROM gpu_intersect_family('SELECT id, s FROM family_l') LIMIT 10) x;
SELECT k, (SELECT count(*) FROM gpu_intersect_family('SELECT id, s FROM family_l WHERE id < ' || k)) AS all_sets, EXISTS (SELECT FROM gpu_intersect_family('SELECT id, s FROM family_l WHERE id < ' || k) WHERE frequency > 5) FROM unnest('{20,1,20}'::int[]) k;
SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT k, count(*) = (SELECT count(*) FROM family_one WHERE frequency % 3 = k), sum(frequency) = (SELECT sum(frequency) FROM family_one WHERE frequency % 3 = k) FROM generate_series(0, 2) k JOIN gpu_intersect_family('SELECT id, s FROM family_l') f ON f.frequency % 3 = k GROUP BY 1 ORDER BY 1;
RESET enable_material; RESET enable_hashjoin; RESET enable_mergejoin;
BEGIN;
DECLARE family_c CURSOR FOR SELECT frequency FROM gpu_intersect_family('SELECT id, s FROM family_l');
MOVE 100 IN family_c;
CLOSE family_c;
COMMIT;

-- failures before the first row are not seen; afterwards they are errors
SET gpujoin.fail_at = connect;
SELECT family_check('auto');
SET gpujoin.fail_at = memory;
SELECT family_check('auto');
SET gpujoin.fail_at = probe;
SELECT family_check('auto');
SET gpujoin.fail_at = output;
\set VERBOSITY sqlstate
SELECT count(*) FROM gpu_intersect_family('SELECT id, s FROM family_l');
\set VERBOSITY default
RESET gpujoin.fail_at;
RESET gpujoin.set_algorithm;
RESET gpujoin.set_device_min_elements;
DROP FUNCTION family_where, family_check;
DROP TABLE family_l, family_r, family_one, family_two, family_equal, family_hash, family_large, family_many, family_results;
