-- ORDER BY of texts and other values of any length, which the backend sorts by the ranks of different values.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

-- What gj_same says of the rows in their order; how many keys the backend sorts by, and how; what of sorts is left to PostgreSQL.
CREATE FUNCTION gj_ranked(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	rest text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	WITH RECURSIVE node(n) AS (
		SELECT plan->0->'Plan'
		UNION ALL
		SELECT jsonb_array_elements(n->'Plans') FROM node
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin')
	SELECT concat(', by ' || min(jsonb_array_length(n->'Host Sort Key')), ': ' || min(n->>'Host Sort Method'),
		', ' || string_agg(n->>'Node Type', ', ') FILTER (WHERE n->>'Node Type' IN ('Sort', 'Incremental Sort'))) INTO rest FROM node;
	RETURN gj_same(format('SELECT row_number() OVER (), s.* FROM (%s) s', query)) || rest;
END $$;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE COLLATION rank_ignore (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE f (id int PRIMARY KEY, k int, t text, v varchar(20), c char(8), n name, b bytea, u uuid, e mood, w interval, m numeric, a int[], i2 int2, i8 int8, d date, x float8, y float4, o oid, l bool, long text, far text, s int);
ALTER TABLE f ALTER far SET STORAGE EXTERNAL;
INSERT INTO f SELECT i, i * 7919 % 700, CASE WHEN i % 11 <> 0 THEN (ARRAY['Zoe', 'zoe', 'äpfel', 'Apfel', 'apfel', 'a b', 'ab', '', 'A-b', 'über', 'Uber', 'o''k'])[i % 12 + 1] || i % 5 END,
	CASE WHEN i % 13 <> 0 THEN 'v' || chr(65 + i % 26) || repeat('x', i % 4) END, CASE WHEN i % 7 <> 0 THEN (ARRAY['B', 'b ', 'a', 'A  ', 'é'])[i % 5 + 1] || repeat(' ', i % 3) END,
	'name ' || i % 30, decode(lpad(to_hex(i % 50), 2 + 2 * (i % 2), '0'), 'hex'), md5((i % 40)::text)::uuid, (ARRAY['happy', 'sad', NULL, 'ok'])[i % 4 + 1]::mood, (ARRAY['1 day', '24 hours', '1 mon', '-1 day', '30 days'])[i % 5 + 1]::interval,
	(ARRAY['1.0', '1.00', 'NaN', '-3', '1e20', '0.1'])[i % 6 + 1]::numeric, CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN '{}' ELSE ARRAY[i % 4, NULL, 2] END,
	CASE WHEN i % 11 <> 0 THEN i % 30 - 15 END, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN CASE WHEN i % 2 = 0 THEN 9223372036854775807 ELSE -9223372036854775808 END ELSE (i % 40)::int8 * 3000000000 END,
	CASE i % 19 WHEN 0 THEN NULL WHEN 1 THEN '-infinity' ELSE date '2026-01-01' + i * 31 % 300 END,
	CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' WHEN 4 THEN '0' WHEN 5 THEN -i ELSE i % 1000 / 8.0 END, CASE WHEN i % 8 <> 0 THEN (i * 17 % 1000 - 500) / 4.0 END,
	(4294967295 - i * 43 % 1000)::oid, CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END, repeat('long text ' || i % 3, 200 + i % 2 * 200), repeat('far text ' || i % 3, 250 + i % 2), i % 60 - 30
FROM generate_series(1, 4000) i;
CREATE TABLE g (k int PRIMARY KEY, c int, name text);
INSERT INTO g SELECT i, i % 4, 'name ' || i % 100 FROM generate_series(0, 599) i;
ALTER TABLE f ALTER long SET (n_distinct = 6), ALTER far SET (n_distinct = 6);
CREATE STATISTICS f_tk (ndistinct) ON t, k FROM f;
CREATE STATISTICS f_tvk (ndistinct) ON t, v, k FROM f;
VACUUM ANALYZE f, g;

-- an answer that anybody can check, and what EXPLAIN says
SELECT f.id, f.t FROM f JOIN g USING (k) WHERE f.t IS NOT NULL ORDER BY f.t COLLATE "C", f.id OFFSET 3115;
SELECT gj_plan('SELECT f.id, f.t, g.name FROM f JOIN g USING (k) ORDER BY f.t DESC, g.name COLLATE "C" NULLS FIRST, f.id');
SELECT gj_plan('SELECT f.t, f.k, count(*) FROM f GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2');

-- every type, both ways, NULLs first and last, once more with all resident; the id makes the order complete
SELECT key, gj_ranked(format('SELECT f.id, f.%s, g.name FROM f JOIN g USING (k) ORDER BY f.%s, f.id', key, key)), gj_ranked(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC, f.id DESC', key, key)),
	gj_ranked(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s NULLS FIRST, f.id', key, key)), gj_ranked(format('SELECT f.id, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC NULLS LAST, f.id', key, key))
FROM unnest(ARRAY['t', 'v', 'c', 'n', 'b', 'u', 'e', 'w', 'm', 'a', 'long', 'far']) WITH ORDINALITY AS l(key, n) ORDER BY n;
-- with each type whose bits tell the order
SELECT key, gj_ranked(format('SELECT f.id, f.t, f.%s FROM f JOIN g USING (k) ORDER BY f.t, f.%s, f.id', key, key)), gj_ranked(format('SELECT f.id, f.t, f.%s FROM f JOIN g USING (k) ORDER BY f.%s DESC, f.t DESC NULLS LAST, f.id DESC', key, key)),
	gj_ranked(format('SELECT f.id, f.t, f.%s FROM f JOIN g USING (k) ORDER BY f.%s NULLS FIRST, f.t, f.id', key, key))
FROM unnest(ARRAY['i2', 'k', 'i8', 'd', 'x', 'y', 'o', 'l']) WITH ORDINALITY AS l(key, n) ORDER BY n;
-- more keys than a word has room for
SELECT gj_ranked('SELECT f.id, f.t, f.x, f.i8, f.y, f.v FROM f JOIN g USING (k) ORDER BY f.t, f.x DESC, f.i8 NULLS FIRST, f.y, f.v DESC NULLS LAST, f.id');
SELECT gj_ranked('SELECT f.id, f.t, f.x, f.i8, f.y, f.v FROM f JOIN g USING (k) ORDER BY f.i8 DESC NULLS LAST, f.t, f.x, f.id');
-- all values equal, or NULL; results in another order, twice, or of fewer columns
CREATE TABLE e (id int PRIMARY KEY, same text, none text, k int);
INSERT INTO e SELECT i, 'same', NULL, i % 600 FROM generate_series(1, 3000) i;
VACUUM ANALYZE e;
SELECT keys, gj_ranked(format('SELECT e.same, e.none, g.k %% 1 AS zero FROM e JOIN g USING (k) ORDER BY %s', keys)), gj_ranked(format('SELECT e.id, e.none, e.same FROM e JOIN g USING (k) ORDER BY %s, e.id', keys))
FROM unnest(ARRAY['same', 'none', 'same DESC, none', 'none NULLS FIRST, same']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT gj_ranked('SELECT g.name, f.t AS t1, f.id, f.t AS t2, f.v FROM f JOIN g USING (k) ORDER BY f.v, f.t DESC, f.id');
SELECT gj_ranked('SELECT count(*), v, t, v AS again FROM f GROUP BY t, v, k ORDER BY v, t, k');
-- one after the other, by every collation
SELECT c, gj_ranked(format('SELECT f.id, f.t FROM f JOIN g USING (k) ORDER BY f.t COLLATE %I, f.id', c)), gj_ranked(format('SELECT f.id, f.v, f.c FROM f JOIN g USING (k) ORDER BY f.c COLLATE %I DESC, f.v COLLATE %I, f.id', c, c)),
	gj_ranked(format('SELECT f.t, f.k, count(*) FROM f GROUP BY 1, 2 ORDER BY f.t COLLATE %I DESC NULLS LAST, f.k, f.t COLLATE "C"', c))
FROM unnest(ARRAY['C', 'POSIX', 'en-x-icu', 'de-x-icu', 'sv-x-icu', 'rank_ignore']) WITH ORDINALITY AS l(c, n) ORDER BY n;
-- ties: any order of them is right, that of the keys is not
SELECT count(*), bool_and(ok) FROM (SELECT t IS NOT DISTINCT FROM lag(t) OVER w OR t < lag(t) OVER w OR lag(t) OVER w IS NULL OR r = 1 AS ok
	FROM (SELECT t, row_number() OVER () AS r FROM (SELECT f.t FROM f JOIN g USING (k) ORDER BY f.t DESC) s) s WINDOW w AS (ORDER BY r)) s;

-- an order of integers of somebody's own
CREATE FUNCTION gj_abs_cmp(int4, int4) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp(abs($1), abs($2))';
CREATE FUNCTION gj_abs_lt(int4, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) < abs($2)';
CREATE FUNCTION gj_abs_eq(int4, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) = abs($2)';
CREATE OPERATOR <# (LEFTARG = int4, RIGHTARG = int4, FUNCTION = gj_abs_lt);
CREATE OPERATOR =# (LEFTARG = int4, RIGHTARG = int4, FUNCTION = gj_abs_eq);
CREATE OPERATOR CLASS gj_abs_ops FOR TYPE int4 USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 gj_abs_cmp(int4, int4);
SELECT gj_ranked('SELECT f.id, f.t, f.s FROM f JOIN g USING (k) ORDER BY f.s USING <#, f.t, f.id');

-- joins of all types, conditions that PostgreSQL checks, no rows
SELECT kind, gj_ranked(format('SELECT f.id, f.t, g.name FROM f %s JOIN g ON f.k = g.k AND f.i2 > -10 ORDER BY f.t, g.name DESC, f.id, g.k', kind))
FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) WITH ORDINALITY AS l(kind, n) ORDER BY n;
SELECT gj_ranked('SELECT f.id, f.t FROM f JOIN g USING (k) WHERE md5(f.t || g.name) < ''a'' ORDER BY f.t, f.id');
SELECT gj_ranked('SELECT f.id, f.t FROM f JOIN g USING (k) WHERE f.i2 + 0 > 100 AND f.id > 0 ORDER BY f.t, f.id');
SELECT gj_ranked('SELECT f.id FROM f JOIN g USING (k) ORDER BY f.t || ''x'', f.id');
SELECT gj_ranked('SELECT f FROM f JOIN g USING (k) ORDER BY f.t, f.id');
SELECT gj_ranked('SELECT 1 FROM f JOIN g USING (k) ORDER BY f.t, f.id');

-- groups: keys, aggregates, HAVING, DISTINCT; averages and sums of numbers can all be different
SELECT keys, gj_ranked(format('SELECT t, v, k, count(*), sum(i2) AS s2, sum(y) AS sy, avg(i2) AS a2, min(d) AS d, max(x) AS mx FROM f GROUP BY 1, 2, 3 ORDER BY %s', keys))
FROM unnest(ARRAY['1, 2, 3', '2 DESC, 1 NULLS FIRST, 3', 'count(*) DESC, 1, 2, 3', 's2 NULLS FIRST, 2, 1, 3', 'sy DESC, 1, 2, 3', 'd, 1 DESC, 2, 3', 'mx, 1, 2, 3', 'a2, 1, 2, 3', 'v COLLATE "C", t COLLATE "de-x-icu", t, 3']) WITH ORDINALITY AS l(keys, n) ORDER BY n;
SELECT gj_ranked('SELECT t, id % 1500, count(*) FROM f GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2');
SELECT gj_ranked('SELECT t, id % 1500, sum(i8) FROM f GROUP BY 1, 2 HAVING sum(i2) > 0 ORDER BY 1 DESC, 2');
SELECT gj_ranked('SELECT DISTINCT t, k FROM f ORDER BY t, k DESC');
SELECT gj_ranked('SELECT f.t, g.name, f.d, count(*) FROM f JOIN g USING (k) GROUP BY 1, 2, 3 ORDER BY 2, 1, 3');

-- what else wants an order
SELECT gj_ranked('SELECT DISTINCT ON (f.t) f.t, f.id FROM f JOIN g USING (k) ORDER BY f.t, f.id');
SELECT gj_ranked('SELECT f.id, f.t, row_number() OVER (PARTITION BY f.t ORDER BY f.id DESC) AS r FROM f JOIN g USING (k) ORDER BY f.t, f.id DESC');
SELECT gj_equal('SELECT row_number() OVER (), s.* FROM (SELECT f.id, f.t FROM f JOIN g USING (k) ORDER BY f.t, f.id LIMIT 7 OFFSET 3) s');
SELECT gj_equal('SELECT a.c, (SELECT string_agg(s.t || s.id, '' '') FROM (SELECT f.t, f.id FROM f JOIN g ON f.k = g.k WHERE f.id > a.k ORDER BY f.t, f.id LIMIT 20) s) FROM g a WHERE a.k < 3');

-- few rows, keys with hardly any equal values, orders that nobody knows: PostgreSQL's to sort
SELECT gj_ranked('SELECT f.id, f.t FROM f JOIN g USING (k) WHERE f.id < 100 ORDER BY f.t, f.id');
SELECT gj_ranked('SELECT f.id, f.long || f.id FROM f JOIN g USING (k) ORDER BY f.long || f.id');
SELECT count(*) FROM (SELECT f.id FROM f JOIN g USING (k) ORDER BY f.t, random()) s;
-- the planner expects few different values where all are different, or more memory than there is
CREATE TABLE h (id int PRIMARY KEY, s text, r text);
INSERT INTO h SELECT i, md5(i::text), md5((i % 10)::text) FROM generate_series(1, 20000) i;
ALTER TABLE h ALTER s SET (n_distinct = 20);
VACUUM ANALYZE h;
SELECT gj_ranked('SELECT h.id, h.s, g.name FROM h JOIN g ON h.id % 600 = g.k ORDER BY h.s, h.id');
SELECT gj_ranked('SELECT h.id, h.r, g.name FROM h JOIN g ON h.id % 600 = g.k ORDER BY h.r DESC, g.name, h.id');
SET plan_cache_mode = force_generic_plan;
PREPARE p AS SELECT array_agg(s ORDER BY o) = array_agg(s ORDER BY (s).r DESC, (s).name, (s).id) AND count(*) = 20000 FROM (SELECT s, row_number() OVER () AS o FROM (SELECT h.id, h.r, g.name FROM h JOIN g ON h.id % 600 = g.k ORDER BY h.r DESC, g.name, h.id) s) s;
EXECUTE p;
SET work_mem = '64kB';
EXECUTE p;
SELECT gj_explain('EXECUTE p', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') @? '$.**."Host Sort Method"?(@ == "PostgreSQL''s")';
RESET work_mem;
DEALLOCATE p;
RESET plan_cache_mode;
-- new values between two runs
INSERT INTO f (id, k, t, c) SELECT i, i % 600, 'new ' || i % 7, 'n' || i % 3 FROM generate_series(5000, 5100) i;
SELECT gj_ranked('SELECT f.id, f.t, f.c FROM f JOIN g USING (k) ORDER BY f.t, f.c, f.id');
VACUUM f;
SELECT gj_ranked('SELECT f.id, f.t, f.c FROM f JOIN g USING (k) ORDER BY f.t, f.c, f.id');

-- the native plan delivers the same order
CREATE FUNCTION pg_temp.falls_back(point text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('gpujoin.fail_at', point, false);
	result := gj_ranked(query);
	RESET gpujoin.fail_at;
	RETURN result;
END $$;
SELECT point, pg_temp.falls_back(point, 'SELECT f.id, f.t, g.name FROM f JOIN g USING (k) ORDER BY f.t DESC, f.id'), pg_temp.falls_back(point, 'SELECT t, k, v, count(*), sum(i8) FROM f GROUP BY 1, 2, 3 ORDER BY 1, 2, 3')
FROM unnest(ARRAY['connect', 'probe', 'overflow', 'output', 'answer']) WITH ORDINALITY AS l(point, n) ORDER BY n;

-- backwards, and again and again
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT f.id, f.t COLLATE "C" FROM f JOIN g USING (k) ORDER BY f.t COLLATE "C" DESC NULLS LAST, f.id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
COMMIT;
DROP TABLE e, f, g, h;
DROP TYPE mood;
DROP COLLATION rank_ignore;
DROP OPERATOR FAMILY gj_abs_ops USING btree;
DROP OPERATOR <# (int4, int4);
DROP OPERATOR =# (int4, int4);
DROP FUNCTION gj_ranked, gj_abs_cmp, gj_abs_lt, gj_abs_eq;
