-- Set joins over queries, against the same in plain SQL, by every algorithm, on the device and in the process.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on

CREATE TABLE sets_a (id int, s int[]);
INSERT INTO sets_a VALUES (1, '{1,2,3}'), (2, '{3,2,2}'), (3, '{}'), (4, '{4}'), (5, NULL), (7, '{3,2,1}'), (6, '{1,2,3,4,5,6}'), (9, '{}');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', NULL, 'equals');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', NULL, 'contains');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', NULL, 'contained');
SELECT * FROM gpu_set_join_items('SELECT id, s FROM sets_a', NULL, 'jaccard', 0.5);
SELECT * FROM gpu_set_join_items('SELECT id, s FROM sets_a WHERE id < 3', 'SELECT id, s FROM sets_a WHERE id > 3', 'overlap', 2);
SELECT * FROM gpu_set_join_items('SELECT id::int2, s::bigint[] FROM sets_a WHERE id < 3', 'SELECT id::bigint, s::int2[] FROM sets_a WHERE id > 3', 'dice', 0.7);
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a', NULL, 'all');
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a', 'SELECT id, s FROM sets_a', 'all');
SELECT * FROM gpu_set_topk('SELECT id, s FROM sets_a', k => 2, metric => 'overlap');
SELECT * FROM gpu_set_topk('SELECT id, s FROM sets_a WHERE id < 3', 'SELECT id, s FROM sets_a WHERE id > 3', 1);
SELECT * FROM gpu_intersect_family('SELECT id, s FROM sets_a') ORDER BY frequency DESC, set;
SELECT * FROM gpu_intersect_family('SELECT id, s FROM sets_a WHERE id < 3', 'SELECT id, s FROM sets_a WHERE id > 3') ORDER BY frequency DESC, set;
-- nothing on one side
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a WHERE false');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', 'SELECT id, s FROM sets_a WHERE false', 'all');
-- only some rows are asked for; in the select list
SELECT left_id FROM gpu_set_join('SELECT id, s FROM sets_a') LIMIT 1;
SELECT (gpu_set_join('SELECT id, s FROM sets_a WHERE id < 3')).common;
-- own changes are seen, as by any query
BEGIN;
INSERT INTO sets_a VALUES (10, '{77}'), (11, '{77,78}');
SELECT left_id, right_id FROM gpu_set_join('SELECT id, s FROM sets_a WHERE id >= 10');
ROLLBACK;

-- what is refused
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a; SELECT 1');
SELECT * FROM gpu_set_join('DELETE FROM sets_a RETURNING id, s');
SELECT * FROM gpu_set_join('CREATE TABLE sets_b (i int)');
SELECT * FROM gpu_set_join('SELECT id FROM sets_a');
SELECT * FROM gpu_set_join('SELECT id, s::text FROM sets_a');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', 'SELECT s, id FROM sets_a');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', predicate => 'similar');
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a', threshold => 'NaN');
SELECT * FROM gpu_set_join(NULL);
SELECT * FROM gpu_set_join('SELECT NULL::int, s FROM sets_a');
SELECT * FROM gpu_set_join('SELECT 1, ''{1,2,NULL}''::int[]');
SELECT * FROM gpu_set_topk('SELECT id, s FROM sets_a', k => 0);
SELECT * FROM gpu_set_topk('SELECT id, s FROM sets_a', metric => 'contains');
-- the queries run with the rights of the caller
CREATE ROLE sets_nobody;
SET ROLE sets_nobody;
SELECT * FROM gpu_set_join('SELECT id, s FROM sets_a');
RESET ROLE;
DROP ROLE sets_nobody;

-- families: few frequent elements and many rare ones; small and large sets; empty and equal sets; two kinds of elements
CREATE TABLE sets_l AS
SELECT i AS id, array(SELECT (power(random(), 4) * 3000)::int - 50 FROM generate_series(1, CASE WHEN i % 40 = 0 THEN 700 WHEN i % 17 = 0 THEN 0 ELSE i % 23 END) WHERE i > 0) AS s FROM generate_series(1, 110) i;
INSERT INTO sets_l SELECT 1000 + id, s FROM sets_l WHERE id % 11 = 0 OR id = 17;
CREATE TABLE sets_r AS
SELECT i AS id, array(SELECT (power(random(), 4) * 3000)::bigint - 50 FROM generate_series(1, CASE WHEN i % 50 = 0 THEN 3000 ELSE 1 + i % 13 END) WHERE i > 0) AS s FROM generate_series(-30, 50) i;
INSERT INTO sets_r SELECT 2000 + id, s FROM sets_l WHERE id % 13 = 0;
-- how many elements of each pair are in both
CREATE TABLE sets_common AS
WITH l AS (SELECT DISTINCT id, e FROM sets_l, unnest(s) e), r AS (SELECT DISTINCT id, e FROM sets_r, unnest(s) e),
	nl AS (SELECT id, (SELECT count(*) FROM l WHERE l.id = sets_l.id) AS n FROM sets_l), nr AS (SELECT id, (SELECT count(*) FROM r WHERE r.id = sets_r.id) AS n FROM sets_r),
	two AS (SELECT l.id AS lid, r.id AS rid, count(*) AS c FROM l JOIN r USING (e) GROUP BY 1, 2), one AS (SELECT a.id AS lid, b.id AS rid, count(*) AS c FROM l a JOIN l b USING (e) GROUP BY 1, 2)
SELECT false AS self, nl.id AS l, nr.id AS r, nl.n AS nl, nr.n AS nr, coalesce(c, 0) AS c FROM nl CROSS JOIN nr LEFT JOIN two ON lid = nl.id AND rid = nr.id
UNION ALL
SELECT true, a.id, b.id, a.n, b.n, coalesce(c, 0) FROM nl a JOIN nl b ON a.id <> b.id LEFT JOIN one ON lid = a.id AND rid = b.id;
CREATE FUNCTION sets_similarity(which text, c bigint, nl bigint, nr bigint) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN nl = 0 OR nr = 0 THEN (nl = nr)::int WHEN which = 'cosine' THEN c / sqrt(nl::float8 * nr) WHEN which = 'dice' THEN 2 * c / (nl + nr)::float8
		WHEN which IN ('overlap_coefficient', 'containment') THEN c / least(nl, nr)::float8 ELSE c / (nl + nr - c)::float8 END
$$;
-- what is tried, and what plain SQL says: how many rows, and a sum over all of them
CREATE TABLE sets_expected (self bool, what text, threshold float8, k int, n bigint, checksum numeric);
INSERT INTO sets_expected SELECT self, what, threshold, NULL FROM unnest(ARRAY[false, true]) self, (VALUES ('overlap', '{0,1,2.5,5,200}'::float8[]), ('contains', '{1}'), ('contained', '{1}'), ('equals', '{1}'), ('all', '{1}'), ('jaccard', '{0,0.2,0.5,1,2}'),
	('cosine', '{0.3,0.8}'), ('dice', '{0.3,0.8}'), ('overlap_coefficient', '{0.3,0.8}'), ('containment', '{0.5,1}')) v(what, thresholds), unnest(thresholds) threshold;
INSERT INTO sets_expected SELECT self, what, NULL, k FROM unnest(ARRAY[false, true]) self, unnest('{overlap,jaccard,cosine,dice,containment}'::text[]) what, unnest('{1,7,1000}'::int[]) k;
CREATE FUNCTION sets_row(a bigint, b bigint, c bigint, x float8) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT hash_record_extended(ROW(a, b, c, x), 0)';
UPDATE sets_expected e SET (n, checksum) = (SELECT count(*), sum(sets_row(l, r, c, CASE WHEN what IN ('overlap', 'contains', 'contained', 'equals', 'all') THEN sets_similarity('jaccard', c, nl, nr) ELSE sets_similarity(what, c, nl, nr) END))
	FROM sets_common m WHERE m.self = e.self AND (NOT e.self OR l < r) AND CASE what WHEN 'overlap' THEN c >= threshold WHEN 'contains' THEN c = nr WHEN 'contained' THEN c = nl
		WHEN 'equals' THEN c = nr AND c = nl WHEN 'all' THEN true ELSE sets_similarity(what, c, nl, nr) >= threshold END) WHERE k IS NULL;
UPDATE sets_expected e SET (n, checksum) = (SELECT count(*), sum(sets_row(l, r, rank, score)) FROM (SELECT l, r, score, row_number() OVER (PARTITION BY l ORDER BY score DESC, r) AS rank
	FROM sets_common m, LATERAL (SELECT CASE WHEN what = 'overlap' THEN c ELSE sets_similarity(what, c, nl, nr) END AS score) s WHERE m.self = e.self AND c > 0) x WHERE rank <= k) WHERE k IS NOT NULL;
SELECT count(*), count(*) FILTER (WHERE n > 0) > 60, sum(n) > 10000 FROM sets_expected;
-- the differences between that and the functions
CREATE FUNCTION sets_check_all(algorithm text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	right_query text;
	bad text := '';
	e sets_expected;
	found record;
BEGIN
	PERFORM set_config('gpujoin.set_algorithm', algorithm, false);
	FOR e IN SELECT * FROM sets_expected LOOP
		right_query := CASE WHEN NOT e.self THEN 'SELECT id, s FROM sets_r' END;
		IF e.k IS NULL THEN
			SELECT count(*) AS n, sum(sets_row(left_id, right_id, common, similarity)) AS checksum INTO found FROM gpu_set_join('SELECT id, s FROM sets_l', right_query, e.what, e.threshold);
		ELSE
			SELECT count(*) AS n, sum(sets_row(left_id, right_id, rank, score)) AS checksum INTO found FROM gpu_set_topk('SELECT id, s FROM sets_l', right_query, e.k, e.what);
		END IF;
		IF (found.n, found.checksum) IS DISTINCT FROM (e.n, e.checksum) THEN
			bad := bad || format(' %s: %s rows, expected %s;', e, found.n, e.n);
		END IF;
	END LOOP;
	RETURN coalesce('DIFFERENT:' || nullif(bad, ''), 'same');
END $$;
SET gpujoin.set_device_min_elements = 2147483647;
SELECT 'process ' || a, sets_check_all(a) FROM unnest('{auto,merge_path,binary_search,hash,bitmap,inverted_index,matrix}'::text[]) a;
SET gpujoin.set_device_min_elements = 0;
CREATE TEMPORARY TABLE stat_before AS SELECT * FROM gpujoin_stat;
SELECT a, sets_check_all(a) FROM unnest('{auto,merge_path,binary_search,hash,bitmap,inverted_index,matrix}'::text[]) a;
SELECT sum(s.count) - (SELECT coalesce(sum(count), 0) FROM stat_before WHERE outcome = 'completed') > 500 AS completed FROM gpujoin_stat s WHERE outcome = 'completed';
SELECT outcome, count FROM gpujoin_stat WHERE outcome <> 'completed' EXCEPT SELECT outcome, count FROM stat_before;
RESET gpujoin.set_algorithm;
-- common elements, and the distinct intersections
SELECT count(*) > 0, bool_and(common = cardinality(items) AND items = array(SELECT unnest(l.s) INTERSECT SELECT unnest(r.s) ORDER BY 1))
FROM gpu_set_join_items('SELECT id, s FROM sets_l', 'SELECT id, s FROM sets_r', 'overlap', 3) j JOIN sets_l l ON l.id = left_id JOIN sets_r r ON r.id = right_id;
SELECT count(*) FROM (
	(SELECT set, frequency FROM gpu_intersect_family('SELECT id, s FROM sets_l WHERE id < 100') EXCEPT ALL
	 SELECT x, count(*) FROM (SELECT array(SELECT unnest(a.s) INTERSECT SELECT unnest(b.s) ORDER BY 1)::bigint[] AS x FROM sets_l a JOIN sets_l b ON a.id < b.id AND b.id < 100) y WHERE x <> '{}' GROUP BY 1)
	UNION ALL
	(SELECT x, count(*) FROM (SELECT array(SELECT unnest(a.s) INTERSECT SELECT unnest(b.s) ORDER BY 1)::bigint[] AS x FROM sets_l a JOIN sets_l b ON a.id < b.id AND b.id < 100) y WHERE x <> '{}' GROUP BY 1 EXCEPT ALL
	 SELECT set, frequency FROM gpu_intersect_family('SELECT id, s FROM sets_l WHERE id < 100'))) d;
-- more pairs than a tile, and than a batch has room for
SELECT count(*), sum(common), min(right_id - left_id) FROM gpu_set_join('SELECT i, ARRAY[i % 5, 7] FROM generate_series(1, 2500) i', NULL, 'all');
SET gpujoin.set_algorithm = matrix;
SELECT count(*), sum(common), min(right_id - left_id) FROM gpu_set_join('SELECT i, ARRAY[i % 5, 7] FROM generate_series(1, 2500) i', NULL, 'all');
SELECT count(*), sum(rank) FROM gpu_set_topk('SELECT i, ARRAY[i % 5, 7] FROM generate_series(1, 2500) i', NULL, 3);
RESET gpujoin.set_algorithm;

-- failures before the first row are not seen; afterwards they are errors
SET gpujoin.fail_at = connect;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a');
SET gpujoin.fail_at = memory;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a');
SET gpujoin.fail_at = probe;
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a');
SELECT count(*) FROM gpu_set_topk('SELECT id, s FROM sets_a');
SET gpujoin.fail_at = output;
\set VERBOSITY sqlstate
SELECT count(*) FROM gpu_set_join('SELECT id, s FROM sets_a');
\set VERBOSITY default
RESET gpujoin.fail_at;
RESET gpujoin.set_device_min_elements;
DROP FUNCTION sets_check_all, sets_row, sets_similarity;
DROP TABLE sets_a, sets_l, sets_r, sets_common, sets_expected, stat_before;
