-- Texts and other values that are bytes: conditions and join keys on the device.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE f (id int, k int, t text, v varchar(40), c char(12), q "char", b bytea, u uuid, m macaddr, i inet, n name);
INSERT INTO f
SELECT i, i % 20, CASE WHEN i % 13 <> 0 THEN repeat('ab', i % 7) || i % 30 END,
	(ARRAY['', ' ', 'x', 'Straße', 'naïve café', '日本語テキスト', 'a%b', 'a_b', 'a\b', '100%', E'tab\tnewline\n', 'zzz'])[i % 12 + 1],
	CASE WHEN i % 11 <> 0 THEN (ARRAY['x', 'x ', 'abc', 'abc def', '', 'Ünï'])[i % 6 + 1] END,
	chr(33 + i % 90)::"char", decode(md5((i % 40)::text), 'hex'), md5((i % 25)::text)::uuid,
	('08:00:2b:01:02:' || lpad(to_hex(i % 16), 2, '0'))::macaddr, ('10.0.' || i % 5 || '.' || i % 7 || CASE WHEN i % 3 = 0 THEN '/24' ELSE '' END)::inet,
	('name' || i % 9)::name
FROM generate_series(1, 1000) i;
CREATE TABLE g (k int, t text, v varchar, c char(5), b bytea, u uuid, m macaddr, i inet, q "char", name text, p text);
INSERT INTO g
SELECT i, repeat('ab', i % 7) || i % 30, (ARRAY['Straße', 'x', '日本語テキスト', 'a%b', ''])[i % 5 + 1], (ARRAY['x', 'abc', 'Ünï', ''])[i % 4 + 1],
	decode(md5(i::text), 'hex'), md5(i::text)::uuid, ('08:00:2b:01:02:' || lpad(to_hex(i % 16), 2, '0'))::macaddr,
	('10.0.' || i % 5 || '.' || i % 7)::inet, chr(33 + i)::"char", 'name ' || i,
	(ARRAY['%a%', 'St%', '_\%b', '%', 'x\'])[i % 5 + 1]
FROM generate_series(0, 19) i;
INSERT INTO g (k, t, v, c) VALUES (NULL, NULL, NULL, NULL), (7, 'ab', NULL, 'abc');
VACUUM ANALYZE f;

-- equality, order, lists
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.t = ''ab1''', 'f.t <> ''ab1''', 'f.t < ''abab2''', 'f.t <= ''abab2''', 'f.t > ''abab2''', 'f.t >= ''abab2''', 'f.t BETWEEN ''ab'' AND ''ababab''',
	'f.t = g.t', 'f.t < g.t', 'f.v = ''Straße''', 'f.v = ''''', 'f.v > ''x''', 'f.v < g.v', 'f.v COLLATE "C" > ''S''', 'f.v COLLATE "POSIX" > g.v',
	'f.t IN (''ab1'', ''abab2'', ''14'', ''none'')', 'f.t NOT IN (''ab1'', ''abab2'')', 'f.t IN (''ab1'', NULL)', 'f.t NOT IN (''ab1'', NULL)',
	'f.v = ANY (''{x,Straße,日本語テキスト}'')', 'f.v <> ALL (''{x,Straße}'')', 'f.v IN ('''', '' '')', 'f.t IS NULL', 'f.t IS NOT NULL AND f.t <> ''''',
	'f.t = ''ab1'' AND f.v = ''x''', 'f.t = ''ab1'' OR f.v = ''x''', 'NOT (f.t = ''ab1'')', 'f.t IS DISTINCT FROM g.t', 'f.t IS NOT DISTINCT FROM g.t',
	'f.n = ''name3''', 'f.n <> ''name3''', 'f.n = f.t', 'f.n = ''name3''::text', 'f.n LIKE ''%e3'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- char(n): trailing blanks do not count, but for LIKE and octet_length
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.c = ''x''', 'f.c = ''x    ''', 'f.c = g.c', 'f.c <> g.c', 'f.c < ''abd''', 'f.c >= ''abc''', 'f.c IN (''x'', ''abc   '')', 'f.c NOT IN (''x'', ''abc'')',
	'f.c = ''''', 'f.c LIKE ''x%''', 'f.c LIKE ''x''', 'f.c LIKE ''abc         ''', 'length(f.c) = 3', 'octet_length(f.c) = 14', 'f.c::text = ''abc''',
	'f.c::text = f.v', 'substring(f.c from 1 for 2) = ''ab''', 'f.c = ''Ünï'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- "char", bytea, uuid, macaddr, inet
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.q = ''A''', 'f.q < ''A''', 'f.q = g.q', 'f.q IN (''A'', ''b'')', 'f.q <> ''A''', 'f.b = g.b', 'f.b < g.b', 'f.b >= ''\x80''', 'f.b = decode(md5(''3''), ''hex'')', 'length(f.b) = 16',
	'f.b LIKE ''\xc425''::bytea', 'f.u = g.u', 'f.u < g.u', 'f.u = md5(''3'')::uuid', 'f.u IN (md5(''3'')::uuid, md5(''4'')::uuid)', 'f.u > md5(''3'')::uuid',
	'f.m = g.m', 'f.m > g.m', 'f.m = ''08:00:2b:01:02:03''', 'f.m IN (''08:00:2b:01:02:03'', ''08:00:2b:01:02:04'')', 'f.i = g.i', 'f.i <> g.i', 'f.i = ''10.0.1.1''',
	'f.i < g.i', 'f.i = ''10.0.3.3/24'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- LIKE: prefixes, infixes, general patterns, characters of several bytes, escapes
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.t LIKE ''ab%''', 'f.t LIKE ''%1''', 'f.t LIKE ''%ba%''', 'f.t LIKE ''%ab%ab%1_''', 'f.t LIKE ''_''', 'f.t LIKE ''__''', 'f.t LIKE ''%''', 'f.t LIKE ''''',
	'f.t NOT LIKE ''ab%''', 'f.t NOT LIKE ''%2%''', 'f.t LIKE g.t', 'f.t LIKE g.t || ''%''', 'f.v LIKE ''Stra_e''', 'f.v LIKE ''_______''', 'f.v LIKE ''%語%''', 'f.v LIKE ''%本_テ%''',
	'f.v LIKE ''na_ve%caf_''', 'f.v LIKE ''%é''', 'f.v LIKE ''a\%b''', 'f.v LIKE ''a\_b''', 'f.v LIKE ''a\\b''', 'f.v LIKE ''a_b''', 'f.v LIKE ''a%b''',
	'f.v LIKE ''1__!%'' ESCAPE ''!''', 'f.v LIKE g.p', 'f.v LIKE g.p AND g.k < 4', 'f.v LIKE ''%%%''', 'f.v LIKE ''_%_%_''', 'f.v LIKE E''%\t%''', 'f.v ILIKE ''STRA%''',
	'f.v ~ ''^a''', 'starts_with(f.t, ''ab'')', 'f.t ^@ ''abab''', 'f.v LIKE f.t'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- pieces and lengths
SELECT gj_where(c) FROM unnest(ARRAY[
	'substring(f.t, 1, 2) = ''ab''', 'substring(f.v from 2 for 3) = ''tra''', 'substr(f.v, 2) = ''本語テキスト''', 'substr(f.v, 3, 2) = ''語テ''', 'substr(f.v, 0, 2) = ''S''',
	'substr(f.v, -5) = f.v', 'substr(f.v, -2, 5) = left(f.v, 2)', 'substr(f.v, 2, 2147483647) <> ''''', 'substr(f.v, f.id % 5, g.k % 3) = ''a''', 'substr(f.v, 2, -1) = ''a''',
	'substr(f.v, 5, 0) = ''''', 'left(f.v, 3) = ''Str''', 'left(f.v, -2) = ''Stra''', 'left(f.v, -100) = ''''', 'right(f.v, 2) = ''スト''', 'right(f.v, -5) = ''スト''', 'right(f.v, 0) = ''''',
	'left(f.v, g.k) = right(f.v, g.k)', 'right(f.v, -2147483648) IS NOT NULL', 'length(f.v) = 7', 'char_length(f.v) > octet_length(f.v)', 'octet_length(f.v) = 21', 'length(f.t) > length(g.t)',
	'ltrim(f.v) = ''''', 'rtrim(f.v) = ''''', 'btrim(f.v) = ''x''', 'trim(f.c) = ''abc def''', 'substring(f.t, 3, 2) IN (''ab'', ''1'')', 'upper(f.t) = ''AB1''',
	'CASE WHEN f.k = 3 THEN f.t ELSE f.v END = ''x''', 'coalesce(f.t, f.v) = ''x''', 'coalesce(f.t, ''none'') = ''none''', 'nullif(f.v, ''x'') IS NULL', 'CASE f.v WHEN ''x'' THEN 1 WHEN ''Straße'' THEN 2 END = 2',
	'(CASE WHEN f.t LIKE ''ab%'' THEN f.t END) = g.t', 'greatest(f.t, f.v) = ''zzz'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

-- join keys: the device compares hashes, then bytes
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON ' || c) FROM unnest(ARRAY[
	'f.t = g.t', 'f.v = g.v', 'f.c = g.c', 'f.b = g.b', 'f.u = g.u', 'f.m = g.m', 'f.i = g.i', 'f.q = g.q', 'f.v = g.v AND f.k = g.k', 'f.t = g.t AND f.c = g.c',
	'substr(f.t, 1, 3) = g.t', 'f.c::text = g.v', 'left(f.t, 2) = left(g.t, 2) AND f.id < 20', 'f.t = g.t AND f.v LIKE ''%a%'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT count(*), sum(f.id), count(f.t), count(f.v) FROM f JOIN g ON f.t = g.t WHERE f.v LIKE ''%a%''');
SELECT gj_device('SELECT count(CASE WHEN f.t = g.t THEN 1 END), sum(CASE WHEN f.t LIKE ''ab%'' THEN f.id ELSE 0 END), max(length(f.v)), min(octet_length(f.t)) FROM f JOIN g ON f.k = g.k');

-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE by_text(text, text[], char, uuid) AS SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE (f.t = $1 OR f.v = ANY ($2) OR f.c = $3 OR f.u = $4);
SELECT gj_how('EXECUTE by_text(NULL, NULL, NULL, NULL)');
SELECT gj_device('EXECUTE by_text(''ab1'', ''{x,"a%b"}'', ''abc'', ''' || md5('3') || ''')');
SELECT gj_device('EXECUTE by_text('''', ''{}'', ''x     '', NULL)');
SELECT gj_device('EXECUTE by_text(NULL, NULL, NULL, NULL)');
SELECT gj_device('EXECUTE by_text(repeat(''x'', 70000), ''{NULL,zzz}'', ''none'', NULL)');
DEALLOCATE by_text;
RESET plan_cache_mode;

-- collations: the device orders by bytes, and compares only where equal means equal bytes
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION icu_order (provider = icu, locale = 'und');
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.t COLLATE ignore_case = ''AB1''', 'f.t COLLATE ignore_case IN (''AB1'', ''X'')', 'f.t COLLATE icu_order = ''ab1''', 'f.t COLLATE icu_order < ''b''', 'f.t COLLATE icu_order LIKE ''ab%'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT f.id FROM f JOIN g ON f.t = g.t COLLATE ignore_case');
SELECT gj_device('SELECT f.id FROM f JOIN g ON f.t = g.t COLLATE icu_order');

-- values that are compressed or out of line are flattened while they are loaded
CREATE TABLE w (k int, compressed text, external text, plain text);
ALTER TABLE w ALTER external SET STORAGE EXTERNAL, ALTER plain SET STORAGE PLAIN;
INSERT INTO w SELECT i % 20, repeat('compress ' || i % 10, 1000), repeat(md5(i::text), 100 + i), 'plain ' || i FROM generate_series(1, 60) i;
INSERT INTO w VALUES (1, repeat('long', 20000), repeat('long', 100000), 'long');
SELECT gj_device('SELECT w.plain, g.name FROM w JOIN g USING (k) WHERE w.k <> 1 AND w.compressed LIKE ''%ss 3%''');
SELECT gj_device('SELECT w.plain, g.name, w.external FROM w JOIN g USING (k) WHERE w.k <> 1 AND left(w.external, 3) > ''8''');
SELECT gj_device('SELECT w.plain, g.name FROM w JOIN g USING (k) WHERE w.compressed LIKE ''%ss 3%''');
SELECT gj_device('SELECT count(*), count(w.external) FROM w JOIN g USING (k)');
SELECT gj_device('SELECT w.plain, g.name FROM (SELECT k, plain, compressed FROM w OFFSET 0) w JOIN g USING (k) WHERE w.k <> 1 AND w.compressed || w.k LIKE ''%ss 3%''');
SELECT gj_device('SELECT a.k, b.k FROM w a JOIN w b ON a.compressed = b.compressed WHERE a.k > 1 AND b.k > 1');

-- enums are equal or not
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN short AS varchar(10) CHECK (value <> 'never');
CREATE TABLE e (k int, m mood, d short);
INSERT INTO e SELECT i % 20, (ARRAY['sad', 'ok', 'happy', NULL])[i % 4 + 1]::mood, 'd' || i % 5 FROM generate_series(1, 100) i;
SELECT gj_device('SELECT e.k, e.m, g.name FROM e JOIN g USING (k) WHERE ' || c) FROM unnest(ARRAY[
	'e.m = ''ok''', 'e.m <> ''ok''', 'e.m IN (''ok'', ''sad'')', 'e.m > ''sad''', 'e.d = ''d3''', 'e.d LIKE ''_4''', 'coalesce(e.m, ''ok'') = ''ok'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT a.k, b.k FROM e a JOIN e b ON a.m = b.m AND a.d = b.d');
-- LIKE: literals of one byte and more, escaped ones, of several bytes, at all places of words
CREATE TABLE patterned AS SELECT i AS id, (SELECT string_agg((ARRAY['a', 'b', 'ab', 'é', 'è', '%', '_', '\', 'ba'])[1 + ('x' || substr(md5(i || ' ' || g), 1, 7))::bit(28)::int % 9], '' ORDER BY g)
	FROM generate_series(1, i % 23) g) AS t FROM generate_series(1, 20000) i;
VACUUM ANALYZE patterned;
SELECT gj_same('SELECT ' || string_agg(format('count(*) FILTER (WHERE t LIKE %L), sum(id) FILTER (WHERE t NOT LIKE %L)', p, p), ', ') || ' FROM patterned')
FROM (SELECT n / 20 AS part, (SELECT string_agg((ARRAY['a', 'b', 'ab', 'é', '%', '%', '_', '\%', '\\', 'bab'])[1 + ('x' || substr(md5(n || ',' || g), 1, 7))::bit(28)::int % 10], '' ORDER BY g)
	FROM generate_series(1, 1 + n % 7) g) AS p FROM generate_series(1, 199) n) patterns GROUP BY part ORDER BY part;
DROP TABLE f, g, w, e, patterned;
DROP TYPE mood;
DROP DOMAIN short;
DROP COLLATION ignore_case, icu_order;
