-- The algorithms: hash, sort-merge, nested loop give the same rows; joins without any equality.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE a (id int, k int, k2 int8, v int, x float8, d date, t text);
INSERT INTO a SELECT i, CASE WHEN i % 11 <> 0 THEN i % 40 END, i % 5, i * 7 % 100, CASE WHEN i % 9 <> 0 THEN i % 30 / 4.0 END,
	date '2026-01-01' + i % 50, 'a ' || i FROM generate_series(1, 600) i;
INSERT INTO a VALUES (601, 2147483647, 9223372036854775807, -1, 'NaN', 'infinity', 'largest'),
	(602, -2147483648, -9223372036854775808, -2, '-Infinity', '-infinity', 'smallest'), (603, 0, 0, 0, '-0', NULL, 'zero');
CREATE TABLE b (id int, lo int, hi int, k2 int8, v int, x float8, d date, t text);
INSERT INTO b SELECT i, CASE WHEN i % 13 <> 0 THEN i % 60 END, CASE WHEN i % 17 <> 0 THEN i % 60 + i % 9 - 2 END, i % 3,
	i * 11 % 100, CASE WHEN i % 7 <> 0 THEN i % 25 / 4.0 END, date '2026-01-10' + i % 70, 'b ' || i FROM generate_series(1, 150) i;
INSERT INTO b VALUES (151, 2147483647, 2147483647, 9223372036854775807, -1, 'NaN', 'infinity', 'largest'),
	(152, -2147483648, 2147483647, -9223372036854775808, -2, '-Infinity', '-infinity', 'smallest'), (153, 0, 0, 0, 0, 0, NULL, 'zero');
CREATE TABLE c (id int, k int);
INSERT INTO c SELECT i, i % 30 FROM generate_series(1, 40) i;
CREATE TABLE empty (id int, k int);
VACUUM ANALYZE a, b, c;

-- the rows by each algorithm, and what became of its steps
CREATE FUNCTION by_all(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[] := '{}';
	used text[] := '{}';
	algorithm text;
BEGIN
	FOREACH algorithm IN ARRAY ARRAY['hash', 'sort_merge', 'nested_loop'] LOOP
		PERFORM set_config('gpujoin.algorithm', algorithm, false);
		answers := answers || gj_same(query);
		used := used || gj_steps(query);
	END LOOP;
	PERFORM set_config('gpujoin.algorithm', 'auto', false);
	IF answers[1] = ALL (answers) THEN
		answers := answers[1:1];
	END IF;
	RETURN array_to_string(answers, ' / ') || ': ' || array_to_string(used, ' / ');
END $$;

-- equality
SELECT by_all('SELECT a.id, c.id FROM a JOIN c ON a.k = c.k');
SELECT by_all('SELECT a.id, c.id FROM a LEFT JOIN c ON a.k = c.k');
SELECT by_all('SELECT a.id, c.id FROM c LEFT JOIN a ON a.k = c.k AND a.v > c.id');
SELECT by_all('SELECT a.id, c.id FROM a FULL JOIN c ON a.k = c.k');
SELECT by_all('SELECT a.id FROM a WHERE EXISTS (SELECT FROM c WHERE a.k = c.k)');
SELECT by_all('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM c WHERE a.k = c.k AND a.v <> c.id)');
SELECT by_all('SELECT c.id FROM c WHERE EXISTS (SELECT FROM a WHERE a.k = c.k AND a.v > 90)');
SELECT by_all('SELECT c.id FROM c WHERE NOT EXISTS (SELECT FROM a WHERE a.k = c.k AND a.v > 90)');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.k = b.lo AND a.k2 = b.k2');
SELECT by_all('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.lo AND a.k2 = b.k2');
SELECT by_all('SELECT a.id, b.id FROM a FULL JOIN b ON a.x = b.x');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.x = b.x AND a.d = b.d');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k2 = b.lo');
SELECT by_all('SELECT count(*), sum(a.v), sum(b.v) FROM a JOIN b ON a.k = b.hi JOIN c ON c.k = b.lo');
SELECT by_all('SELECT a.id, e.id FROM a LEFT JOIN empty e ON a.k = e.k');
SELECT by_all('SELECT a.id, e.id FROM empty e LEFT JOIN a ON a.k = e.k');
SELECT by_all('SELECT a.id, e.id FROM a FULL JOIN empty e ON a.k = e.k');

-- ranges: bands, one-sided, both kinds of bounds, NULLs in each
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.k BETWEEN b.lo AND b.hi');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.k > b.lo AND a.k < b.hi');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.k >= b.lo AND a.k < b.hi AND a.v <> b.v');
SELECT by_all('SELECT b.id, a.id FROM b LEFT JOIN a ON a.k BETWEEN b.lo AND b.hi');
SELECT by_all('SELECT b.id, a.id FROM a LEFT JOIN b ON a.k BETWEEN b.lo AND b.hi');
SELECT by_all('SELECT b.id FROM b WHERE EXISTS (SELECT FROM a WHERE a.k BETWEEN b.lo AND b.hi)');
SELECT by_all('SELECT b.id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.k BETWEEN b.lo AND b.hi)');
SELECT by_all('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE a.k BETWEEN b.lo AND b.hi)');
SELECT by_all('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.k BETWEEN b.lo AND b.hi AND a.v > b.v)');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.v < b.v');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.x <= b.x');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.x > b.x');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.x >= b.x AND b.x > 3');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.d > b.d AND a.d < b.d + 10');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.v BETWEEN b.v - 2 AND b.v + 1');
SELECT by_all('SELECT count(*), sum(a.v), count(b.v) FROM a LEFT JOIN b ON a.k BETWEEN b.lo AND b.hi');
SELECT by_all('SELECT a.id, e.id FROM a LEFT JOIN empty e ON a.k < e.k');
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON a.v BETWEEN b.v + 5 AND b.v - 1');

-- a band that bounds one column of the inner side from both ends
SELECT by_all('SELECT a.id, b.id FROM a JOIN b ON b.v BETWEEN a.k AND a.v');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON b.v > a.k AND b.v < a.v AND b.lo <> a.k');
SELECT by_all('SELECT a.id, b.id FROM b LEFT JOIN a ON b.v >= a.k2 AND b.v < a.k');
SELECT by_all('SELECT a.id, b.id FROM a FULL JOIN b ON b.k2 = a.k2 AND b.v BETWEEN a.k AND a.v');
SELECT by_all('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.v > a.k2 AND b.v <= a.k)');
SELECT by_all('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.x BETWEEN a.x AND a.x + 1)');
SELECT by_all('SELECT b.id FROM b WHERE EXISTS (SELECT FROM a WHERE b.lo > a.k2 AND b.lo < a.v)');
SELECT by_all('SELECT b.id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.v BETWEEN a.v AND a.k)');

-- any condition, and none
SELECT by_all('SELECT a.id, c.id FROM a JOIN c ON a.k <> c.k');
SELECT by_all('SELECT a.id, c.id FROM a JOIN c ON a.k = c.k OR a.v = c.id');
SELECT by_all('SELECT a.id, c.id FROM a LEFT JOIN c ON a.v + c.k = 50');
SELECT by_all('SELECT a.id, c.id FROM c LEFT JOIN a ON a.v + c.k = 50 OR a.k IS NULL AND c.id = 3');
SELECT by_all('SELECT a.id FROM a WHERE EXISTS (SELECT FROM c WHERE a.v + c.k = 50)');
SELECT by_all('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM c WHERE a.v + c.k = 50)');
SELECT by_all('SELECT c.id FROM c WHERE EXISTS (SELECT FROM a WHERE a.v * c.k = 63)');
SELECT by_all('SELECT c.id FROM c WHERE NOT EXISTS (SELECT FROM a WHERE a.v * c.k = 63)');
SELECT by_all('SELECT a.id, c.id FROM a CROSS JOIN c');
SELECT by_all('SELECT a.id, e.id FROM a CROSS JOIN empty e');
SELECT by_all('SELECT count(*) FROM a CROSS JOIN c');
SELECT by_all('SELECT count(*), sum(c.id) FROM a CROSS JOIN c CROSS JOIN (SELECT 1 FROM c LIMIT 3) x');
SELECT by_all('SELECT a.id, c.id FROM a JOIN c ON a.k = c.k WHERE a.k = 5');
SELECT by_all('SELECT a.id, c.id FROM a LEFT JOIN c ON true');
SELECT by_all('SELECT a.id, c.id FROM empty a LEFT JOIN c ON true');
-- only PostgreSQL knows the condition: no pairs are made for it to choose from
SELECT by_all('SELECT a.id, c.id FROM a JOIN c ON md5(a.t) < md5(c.id::text)');

-- values that follow from one side are compared as columns are; what else is said is asked of the pairs that are left
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON b.v BETWEEN a.v - 5 AND a.v + 5');
SELECT by_all('SELECT a.id, b.id FROM a RIGHT JOIN b ON b.v BETWEEN a.v - 5 AND a.v + 5');
SELECT by_all('SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.lo AND b.v - a.k2 BETWEEN 3 AND 90 AND abs(b.v) > a.v * 2');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON b.v >= a.v - 5 AND b.v <= a.v + 5 AND (a.v + b.v) % 3 = 1');
SELECT by_all('SELECT a.id, b.id FROM b LEFT JOIN a ON b.v >= a.v - 5 AND b.v <= a.v + 5 AND (a.v < 40 OR b.v > 60)');
SELECT by_all('SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.v BETWEEN a.v + 1 AND a.v + 2 AND a.v <> b.hi)');
SELECT by_all('SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE b.v BETWEEN a.v + 1 AND a.v + 2 AND (a.v * b.v) % 5 = 3)');
SELECT by_all('SELECT b.id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE b.v BETWEEN a.v + 1 AND a.v + 2)');
SELECT by_all('SELECT b.id FROM b WHERE EXISTS (SELECT FROM a WHERE b.v BETWEEN a.v + 1 AND a.v + 2 AND (a.v * b.v) % 5 = 3)');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.v > 50 AND b.v - 1 < a.v AND b.lo < 20');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.x + 1 > b.x AND a.x - 1 < b.x AND a.v <> b.v');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.k * 1.5::float8 BETWEEN b.x - 0.25 AND b.x + 0.25');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON (CASE WHEN b.v > 50 THEN b.v - 50 ELSE b.v END) = a.v + 1 AND b.v < a.v + 40');
-- what divides by zero is asked of such pairs alone
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON b.v > a.v - 3 AND b.v < a.v + 3 AND b.v <> 0 AND a.v / b.v = 1');
-- what is out of range makes PostgreSQL answer, also where it does not ask
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON a.v >= 0 AND b.lo < a.k + 1');
SELECT by_all('SELECT a.id, b.id FROM a LEFT JOIN b ON b.lo <> a.k + 1 AND b.lo < a.v');

-- chains of all of them
SELECT by_all('SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON a.k BETWEEN b.lo AND b.hi AND a.v < 20 LEFT JOIN c ON c.k = b.lo');
SELECT by_all('SELECT a.id, b.id, c.id FROM a JOIN c ON a.k = c.k LEFT JOIN b ON a.k < b.lo AND b.lo < c.id');
SELECT by_all('SELECT a.id, b.id, c.id FROM a FULL JOIN c ON a.k = c.k JOIN b ON b.id = c.id OR b.id = a.id WHERE a.id IS NULL OR a.v < 10');
SELECT by_all('SELECT b.id, c.id FROM b LEFT JOIN c ON b.hi > c.k AND b.lo < c.k WHERE EXISTS (SELECT FROM a WHERE a.k <> b.lo AND a.x = b.x)');

-- by default: hash with an equality, sort-merge with a range, else the nested loop
SELECT gj_steps('SELECT a.id, b.id FROM a JOIN b ON a.k = b.lo AND a.v < b.v');
SELECT gj_steps('SELECT a.id, b.id FROM a JOIN b ON a.k BETWEEN b.lo AND b.hi');
SELECT gj_steps('SELECT a.id, b.id FROM a JOIN b ON a.k <> b.lo');
SELECT gj_steps('SELECT a.id, b.id FROM a CROSS JOIN b');

-- EXPLAIN tells type, algorithm and every kind of condition
SELECT jsonb_array_elements(gj_node('SELECT a.id, c.id FROM a LEFT JOIN c ON a.k = c.k AND a.v <> c.id WHERE c.id > 5 OR c.id IS NULL')->'Joins');
SELECT jsonb_array_elements(gj_node('SELECT a.id FROM a JOIN b ON a.k > b.lo AND a.k <= b.hi AND a.v <> b.v WHERE NOT EXISTS (SELECT FROM c WHERE a.k + c.k = 3)')->'Joins');
SELECT jsonb_array_elements(gj_node('SELECT c.id FROM c WHERE EXISTS (SELECT FROM a WHERE a.k = c.k AND a.v > c.id)')->'Joins');
SELECT jsonb_array_elements(gj_node('SELECT a.id, c.id FROM a CROSS JOIN c')->'Joins');

-- of columns that are all equal the streamed table's is looked up, also where the query names another one
CREATE TABLE fact AS SELECT i % 100 AS k, i % 7 AS k2, i AS v FROM generate_series(1, 20000) i;
CREATE TABLE dim AS SELECT k, k2, k * k2 AS v FROM generate_series(0, 99) k, generate_series(0, 6) k2;
CREATE TABLE small AS SELECT i AS k, i % 20 AS c FROM generate_series(0, 199) i;
VACUUM ANALYZE fact, dim, small;
SELECT j->>'Join Condition' FROM jsonb_array_elements(gj_node('SELECT count(*), sum(fact.v + dim.v) FROM fact JOIN dim ON dim.k = fact.k AND dim.k2 = fact.k2 JOIN small ON small.k = dim.k WHERE dim.v = 6')->'Joins') j;
SELECT gj_same('SELECT count(*), sum(fact.v + dim.v) FROM fact JOIN dim ON dim.k = fact.k AND dim.k2 = fact.k2 JOIN small ON small.k = dim.k WHERE dim.v = 6');
SELECT gj_same('SELECT fact.v, dim.v, small.c FROM fact JOIN dim ON dim.k = fact.k AND dim.k2 > fact.k2 JOIN small ON small.k = dim.k WHERE small.c < 3 AND fact.v % 50 = 1');

DROP TABLE a, b, c, empty, fact, dim, small;
DROP FUNCTION by_all;
