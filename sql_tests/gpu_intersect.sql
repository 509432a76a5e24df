-- gpu_intersect and gpu_intersect_count: sorted, unique; NULLs; sizes from nothing to the device's.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on

SELECT gpu_intersect('{5,1,3,3}'::int[], '{3,5,9}');
SELECT gpu_intersect('{5,1,3,3}'::bigint[], '{3,5,9}'::bigint[]);
SELECT gpu_intersect_count('{5,1,3,3}'::int[], '{3,5,9}'), gpu_intersect_count('{5,1,3,3}'::bigint[], '{3,5,9}'::bigint[]);
SELECT pg_typeof(gpu_intersect('{1}'::int[], '{1}'::int[])), pg_typeof(gpu_intersect('{1}'::bigint[], '{1}'::bigint[])),
	pg_typeof(gpu_intersect_count('{1}'::int[], '{1}'::int[]));

-- empty, disjoint, equal, one in the other, duplicates only
SELECT gpu_intersect('{}'::int[], '{1,2}'), gpu_intersect('{1,2}'::int[], '{}'), gpu_intersect('{}'::int[], '{}');
SELECT gpu_intersect('{1,2}'::int[], '{3,4}'), gpu_intersect('{2,1}'::int[], '{1,2}'), gpu_intersect('{4,3,2,1}'::int[], '{3}');
SELECT gpu_intersect('{7,7,7}'::int[], '{7,7}'), gpu_intersect_count('{7,7,7}'::int[], '{7,7}'), gpu_intersect_count('{}'::int[], '{}');
-- ends of the ranges
SELECT gpu_intersect('{2147483647,-2147483648,0,-1}'::int[], '{-1,2147483647,-2147483648}');
SELECT gpu_intersect('{9223372036854775807,-9223372036854775808,4294967296,0}'::bigint[], '{0,-9223372036854775808,9223372036854775807}'::bigint[]);
-- an array without elements has no dimensions
SELECT array_ndims(gpu_intersect('{1}'::int[], '{2}')) IS NULL, gpu_intersect('{1}'::int[], '{2}') = '{}', array_lower(gpu_intersect('{1}'::int[], '{1}'), 1);

-- NULL arguments and NULL elements
SELECT gpu_intersect(NULL::int[], '{1}') IS NULL, gpu_intersect('{1}'::int[], NULL) IS NULL, gpu_intersect(NULL::bigint[], NULL::bigint[]) IS NULL,
	gpu_intersect_count(NULL::int[], '{1}') IS NULL;
\set VERBOSITY sqlstate
SELECT gpu_intersect('{1,NULL}'::int[], '{1}');
SELECT gpu_intersect('{1}'::int[], '{NULL}');
SELECT gpu_intersect('{1}'::bigint[], '{NULL}'::bigint[]);
SELECT gpu_intersect_count('{1,NULL}'::int[], '{1}');
SELECT gpu_intersect('{}'::int[], '{NULL}');
\set VERBOSITY default

-- several dimensions, other lower bounds: the elements are the set
SELECT gpu_intersect('{{1,2},{3,4}}'::int[], '{4,1,9}'), gpu_intersect('[5:7]={1,2,3}'::int[], '[-1:0]={3,2}');
-- toasted, compressed, from tables and from prepared statements
CREATE TABLE sets (id int, a int[], b bigint[]);
INSERT INTO sets SELECT i, (SELECT array_agg(j * i % 1009) FROM generate_series(1, i * 200) j), (SELECT array_agg(j * i % 1009 + 4000000000) FROM generate_series(1, i * 200) j)
FROM generate_series(1, 20) i;
INSERT INTO sets VALUES (21, NULL, NULL), (22, '{}', '{}');

-- against PostgreSQL's own INTERSECT
CREATE FUNCTION slow_intersect(a anyarray, b anyarray) RETURNS anyarray LANGUAGE sql IMMUTABLE STRICT AS
	'SELECT coalesce((SELECT array_agg(x ORDER BY x) FROM (SELECT unnest(a) x INTERSECT SELECT unnest(b)) s), (a)[1:0])';
CREATE FUNCTION check_sets(a int[], b int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int := cardinality(slow_intersect(a, b));
BEGIN
	IF gpu_intersect(a, b) IS DISTINCT FROM slow_intersect(a, b) OR gpu_intersect_count(a, b) <> n OR gpu_intersect(b, a) <> gpu_intersect(a, b) THEN
		RETURN format('int: wrong for %s and %s elements', cardinality(a), cardinality(b));
	END IF;
	IF gpu_intersect(a::bigint[], b::bigint[]) IS DISTINCT FROM slow_intersect(a, b)::bigint[] OR gpu_intersect_count(a::bigint[], b::bigint[]) <> n THEN
		RETURN format('bigint: wrong for %s and %s elements', cardinality(a), cardinality(b));
	END IF;
	RETURN n || ' elements';
END $$;
SELECT count(*), sum(cardinality(gpu_intersect(x.a, y.a))), bool_and(gpu_intersect(x.a, y.a) IS NOT DISTINCT FROM slow_intersect(x.a, y.a)),
	bool_and(gpu_intersect(x.b, y.b) IS NOT DISTINCT FROM slow_intersect(x.b, y.b)), bool_and(gpu_intersect_count(x.a, y.a) = cardinality(gpu_intersect(x.a, y.a)))
FROM sets x CROSS JOIN sets y;
PREPARE p(int[]) AS SELECT gpu_intersect($1, a) FROM sets WHERE id = 3;
EXECUTE p('{1,2,3,6,9}');
EXECUTE p('{}');

-- the same on the device: small ones sent there, then ones that go by themselves
CREATE FUNCTION numbers(n int, step int, offs int) RETURNS int[] LANGUAGE sql IMMUTABLE AS
	'SELECT coalesce(array_agg(i::int8 * step % 1000003 + offs), ''{}'')::int[] FROM generate_series(1, n) i';
SET gpujoin.set_device_min_elements = 0;
SELECT gpu_intersect('{5,1,3,3}'::int[], '{3,5,9}'), gpu_intersect('{}'::int[], '{1}'), gpu_intersect('{1}'::int[], '{2}');
SELECT gpu_intersect('{9223372036854775807,-9223372036854775808,4294967296,0}'::bigint[], '{0,-9223372036854775808,9223372036854775807}'::bigint[]);
SELECT gpu_intersect_count('{5,1,3,3}'::int[], '{3,5,9}'), gpu_intersect_count('{}'::int[], '{}'), gpu_intersect(NULL::int[], '{1}') IS NULL;
\set VERBOSITY sqlstate
SELECT gpu_intersect('{1,NULL}'::int[], '{1}');
\set VERBOSITY default
SELECT count(*), bool_and(gpu_intersect(x.a, y.a) IS NOT DISTINCT FROM slow_intersect(x.a, y.a)),
	bool_and(gpu_intersect(x.b, y.b) IS NOT DISTINCT FROM slow_intersect(x.b, y.b)), bool_and(gpu_intersect_count(x.a, y.a) = cardinality(gpu_intersect(x.a, y.a)))
FROM sets x CROSS JOIN sets y WHERE x.id % 4 = 0 OR y.id > 20;
SELECT n, m, check_sets(numbers(n, 7, 0), numbers(m, 11, 3)) FROM (VALUES (1, 1), (1, 5000), (31, 33), (255, 257), (1000, 100000), (100000, 10), (300000, 400000)) AS t(n, m);
SELECT check_sets(numbers(50000, 2, 0), numbers(50000, 2, 1)), check_sets(numbers(70000, 1, 0), numbers(70000, 1, 0)), check_sets(numbers(70000, 1, -500000), numbers(70000, 3, -600000));
-- the device fails: the same answer
SET gpujoin.fail_at = 'connect';
SELECT check_sets(numbers(5000, 7, 0), numbers(6000, 11, 3));
SET gpujoin.fail_at = 'probe';
SELECT check_sets(numbers(5000, 7, 0), numbers(6000, 11, 3));
SET gpujoin.fail_at = 'memory';
SELECT check_sets(numbers(5000, 7, 0), numbers(6000, 11, 3));
RESET gpujoin.fail_at;
SET gpujoin.enabled = off;
SELECT check_sets(numbers(5000, 7, 0), numbers(6000, 11, 3));
RESET gpujoin.enabled;
RESET gpujoin.set_device_min_elements;
SELECT n, check_sets(numbers(n, 7, 0), numbers(n, 11, 3)) FROM unnest(ARRAY[10, 10000, 300000]) n;
-- in parallel plans and in joins
SELECT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname IN ('gpu_intersect', 'gpu_intersect_count') GROUP BY 1, 2, 3;
SELECT count(*), sum(gpu_intersect_count(x.a, y.a)) FROM sets x JOIN sets y ON gpu_intersect_count(x.a, y.a) > 300 AND x.id < y.id;

DROP TABLE sets;
DROP FUNCTION check_sets, numbers;
DROP FUNCTION slow_intersect;
