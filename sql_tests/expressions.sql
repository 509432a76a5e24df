-- Expressions: CASE and its kin, casts, bits and functions on the device; what is not evaluated does not fail.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, i2 int2, i4 int4, i8 int8, x float8, y float4, b bool, t text, o oid);
INSERT INTO f
SELECT i, i % 20, CASE WHEN i % 11 <> 0 THEN i % 300 - 150 END, CASE WHEN i % 7 <> 0 THEN i * 13 % 1000 - 500 END, CASE WHEN i % 5 <> 0 THEN i::int8 * 3000000000 END,
	CASE i % 10 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' WHEN 4 THEN '0' WHEN 5 THEN NULL ELSE i / 4.0 - 100 END::float8,
	CASE i % 8 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 3 THEN '-0' WHEN 5 THEN NULL ELSE i / 3.0 - 100 END::float4,
	CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, 'text ' || i % 30, (3000000000 + i % 10)::oid
FROM generate_series(1, 1000) i;
CREATE TABLE g (k int, c int, name text, x float8, y float4, b bool);
INSERT INTO g SELECT i, CASE WHEN i % 4 <> 0 THEN i END, 'name ' || i, i / 2.0, i / 3.0, i % 2 = 0 FROM generate_series(0, 19) i;
VACUUM ANALYZE f;

-- CASE, COALESCE, NULLIF, GREATEST, LEAST, IS DISTINCT FROM
SELECT gj_where(c) FROM unnest(ARRAY[
	'CASE WHEN f.i4 > 0 THEN f.b ELSE g.b END', 'CASE WHEN f.b THEN f.i4 WHEN f.i2 > 0 THEN f.i2 END > 10', 'CASE WHEN f.b THEN 1 END IS NULL', 'CASE f.k WHEN 1 THEN ''a'' WHEN 2 THEN ''b'' ELSE ''c'' END = ''b''',
	'CASE f.i4 WHEN g.c THEN 1 WHEN NULL THEN 2 ELSE 3 END = 3', 'CASE f.k WHEN 1 THEN CASE f.i2 WHEN 51 THEN true END ELSE f.b END', 'CASE WHEN CASE WHEN f.b THEN f.i4 ELSE f.i2 END > 0 THEN f.x ELSE g.x END > 5',
	'CASE WHEN f.i4 > 100 THEN 1 WHEN f.i4 > 0 THEN 2 WHEN f.i4 > -100 THEN 3 ELSE 4 END = 3', 'coalesce(f.i4, f.i2, 7) = 7', 'coalesce(f.i8, f.i4) > 100', 'coalesce(f.x, f.y) > 0', 'coalesce(f.b, g.b)', 'coalesce(f.t, ''x'') = ''text 3''',
	'nullif(f.i4, 10) IS NULL', 'nullif(f.k, g.k) IS NULL', 'nullif(f.x, ''NaN'') > 100', 'greatest(f.i4, f.i2) > 100', 'least(f.i4, f.i2, g.c) < 0', 'greatest(f.x, f.y, 0) = 0', 'least(f.x, g.x) < 1', 'greatest(f.b, g.b)',
	'f.i4 IS DISTINCT FROM f.i2', 'f.i4 IS NOT DISTINCT FROM f.i2', 'f.x IS DISTINCT FROM f.y', 'f.b IS DISTINCT FROM g.b', 'f.i4 IS DISTINCT FROM NULL', '(f.i4 > 0) IS DISTINCT FROM f.b', 'f.o IS NOT DISTINCT FROM 3000000003'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- what PostgreSQL does not evaluate does not fail here either
SELECT gj_where(c) FROM unnest(ARRAY[
	'CASE WHEN f.k <> 0 THEN f.id / f.k > 10 END', 'CASE WHEN f.k = 0 THEN false WHEN f.id / f.k > 10 THEN true END', 'CASE WHEN f.k = 0 THEN 0 ELSE f.id / f.k END > 10', 'f.k <> 0 AND f.id / f.k > 10', 'f.k = 0 OR f.id / f.k > 10',
	'NOT (f.k = 0 OR f.id / f.k > 10)', 'coalesce(f.i4, f.id / (f.i4 - f.i4)) > 0', 'f.k <> 0 AND (f.id / f.k > 10 OR f.id / (f.k - 1) > 100)', 'f.k > 1 AND (f.id / f.k > 10 OR f.id / (f.k - 1) > 100)',
	'CASE WHEN f.k > 1 THEN CASE WHEN f.id / (f.k - 1) > 3 THEN f.id % (f.k - 1) = 0 ELSE f.id / f.k = 7 END END', 'CASE f.k WHEN 0 THEN 1 WHEN 1 THEN 2 ELSE f.id / (f.k * (f.k - 1)) END = 2', 'f.i4 > 0 AND f.i4 * 4000000 > 0',
	'f.b IS NULL AND f.id / f.k > 10', 'f.id < 100 AND f.id * 20000000 > 0'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT sum(CASE WHEN f.k <> 0 THEN f.id / f.k ELSE 0 END), sum(f.id / f.k) FILTER (WHERE f.k <> 0), avg(CASE WHEN f.b THEN f.i4 END) FROM f JOIN g ON f.k = g.k');
-- casts
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4::int2 = 10', 'f.i2::int4 + f.i4 > 0', 'f.i4::int8 * 3000000000 > 0', 'f.i8::float8 > 1e12', 'f.i4::float4 = f.y', 'f.y::float8 > f.x', 'f.x::float4 > f.y', 'CASE WHEN f.id % 10 > 5 THEN f.x::int4 END = 2', 'CASE WHEN f.id % 10 > 5 THEN f.x::int8 END % 2 = 0',
	'CASE WHEN f.id % 10 > 5 THEN f.x::int2 END = -2', 'CASE WHEN f.id % 8 > 5 THEN f.y::int4 END > 0', 'f.x::int4 > 0', 'f.y::int8 > 0', 'f.i8::int4 > 0', 'f.id::int2 > 0', '(f.id + 40000)::int2 > 0', 'f.b::int = 1', 'f.i4::bool', 'f.b::int + f.k = 7',
	'f.i2::oid > 5::oid', 'f.i4::oid > 5::oid', 'f.i2::oid = f.i4::oid', 'f.i2::regclass > 5::oid', 'f.i2 IN (4294967295::oid, 3)',
	'(f.id * 1e36::float8)::float4 > 0', '(f.id * 1e-46::float8)::float4 > 0', 'f.i8::float4 > 1e12', '(f.k + 0.5::float8)::int4 = 2', '(f.k - 0.5::float8)::int8 = 2'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- float4: NaN is greatest, arithmetic is rounded to single precision
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.y = 0', 'f.y = ''NaN''', 'f.y > 1e30', 'f.y < 10.1', 'f.y >= 33.3333::float4', 'f.y = f.x', 'f.x < f.y', 'f.y <> f.y', 'f.y + 0.1::float4 > 1', 'f.y * 3::float4 = f.id - 300', 'f.y - f.y = 0', 'f.y / 3::float4 > 5', 'f.y * 0.1::float8 > 5', '-f.y > 0', 'abs(f.y) < 5',
	'f.y IN (0, ''NaN'', 100)', 'f.y = g.y', 'f.y / 0::float4 > 1', 'f.y * 1e38::float4 * 1e10::float4 > 0', 'greatest(f.y, g.y) = g.y', 'f.y BETWEEN -1 AND 1'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT min(f.y), max(f.y), count(f.y), min(g.y), max(g.y), avg(g.k::float4), sum(g.k::float4) FROM f JOIN g ON f.k = g.k');
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON f.y = g.y');
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON f.y = g.x');
-- bits
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.i4 & 1 = 1', 'f.i4 | 3 = 7', 'f.i4 # f.k = 12', '~f.i4 > 0', 'f.i2 & 6::int2 = 2', 'f.i2 | f.i2 = f.i2', 'f.i2 # 1::int2 > 0', '~f.i2 = 5', 'f.i8 & 4095 = 0', 'f.i8 | 1 > 0', 'f.i8 # f.i8 = 0', '~f.i8 < 0',
	'f.i4 << 3 > 1000', 'f.i4 << 31 < 0', 'f.i4 >> 2 = -3', 'f.i2 << 10 > 0', 'f.i2 >> 1 = -5', 'f.i8 << 20 > 0', 'f.i8 >> 33 = 1', '1 << f.k = 1024', '1::int8 << f.k * 3 > 1000000000000', 'f.i4 << 40 > 0', 'f.i4 >> -1 > 0'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- functions
SELECT gj_where(c) FROM unnest(ARRAY[
	'sqrt(abs(f.x)) < 4', 'sqrt(f.x) < 4', '|/ abs(f.x) > 3', 'floor(f.x) = 50', 'ceil(f.x) = 51', 'ceiling(f.x) = -3', 'round(f.x) = 50', 'round(f.x) = -2', 'trunc(f.x) = -2', 'sign(f.x) = -1', 'sign(f.x) = 0', 'abs(f.i8) > 100', 'mod(f.i4, 7) = 3', 'mod(f.i8, 7) = 3',
	'mod(f.i2, 7::int2) = -3', 'f.i4 = ANY (''{10,23}'')', 'f.i4 <> ALL (''{10,23}'')', 'f.x <> ALL (''{0,NaN}'')', 'f.y = ANY (''{0,NaN}''::float4[])', 'f.o = ANY (''{3000000001,3000000002}'')', 'f.b = ANY (''{t}'')', 'exp(f.k) > 1', 'power(f.i4, 2) > 100'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- many registers, and more than there are
SELECT gj_where('((((((((f.i4 + 1) + (f.i2 + 2)) + ((f.k + 3) + (f.id + 4))) > 0)))))');
SELECT gj_where((SELECT string_agg('(f.k + (', '') || 'f.k' || string_agg('))', '') FROM generate_series(1, 20)) || ' > 100');
SELECT gj_where((SELECT string_agg('CASE WHEN f.k > ' || i || ' THEN ', '' ORDER BY i) || 'f.b' || string_agg(' ELSE g.b END', '') FROM generate_series(1, 3) i));
SELECT gj_where((SELECT string_agg('CASE WHEN f.k > ' || i || ' THEN ', '' ORDER BY i) || 'f.b' || string_agg(' ELSE g.b END', '') FROM generate_series(1, 12) i));

DROP TABLE f, g;
