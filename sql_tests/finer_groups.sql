-- Groups that PostgreSQL makes of finer groups of the device: keys that are expressions of texts, constants and the like, min and max of texts,
-- DISTINCT of several expressions.
SET gpujoin.force = on;
CREATE TYPE finer_enum AS ENUM ('one', 'two', 'three');
CREATE TABLE finer (k int, s text, u varchar(12), c char(5), n name, g int2, d date, tz timestamptz, v int, big int8, num numeric(9,2), f float8, b bool, free numeric, e finer_enum);
INSERT INTO finer SELECT i, nullif('S' || i % 13, 'S7'), CASE WHEN i % 11 > 0 THEN chr(97 + i % 26) || i % 5 END, 'c' || i % 3, 'n' || i % 4, nullif(i % 7, 3),
	date '2024-01-01' + i % 90, timestamptz '2024-03-30 20:00+00' + i % 50 * interval '1 hour', nullif(i % 100, 13) - 50, i * 1000003::int8, i % 1000 / 8.0, i % 9 / 4.0, i % 3 > 0,
	CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END, (enum_range(NULL::finer_enum))[i % 4] FROM generate_series(1, 20000) i;
CREATE TABLE finer_dim AS SELECT i AS k, 'Dim ' || i % 9 AS t FROM generate_series(0, 99) i;
ANALYZE finer, finer_dim;
-- the same rows, by whom; rows of a key that is not exact in its digits are PostgreSQL's
CREATE FUNCTION finer(selected text, rest text DEFAULT 'FROM finer GROUP BY 1') RETURNS text LANGUAGE sql AS $$ SELECT gj_same(format('SELECT %s %s', selected, rest)) $$;
SELECT a || ': ' || finer('lower(s), ' || a) FROM unnest('{count(*), count(v), sum(g), sum(v), sum(big), sum(num), avg(g), avg(v), avg(big), avg(num), min(v), max(big), min(d), max(tz), min(num),
	bool_and(b), bool_or(b), every(b), min(s), max(u), min(c), max(n), "count(DISTINCT s)", "count(DISTINCT u)", "count(DISTINCT s), count(DISTINCT u), sum(DISTINCT g)",
	"string_agg(DISTINCT s, '','')", sum(f), avg(f), stddev(v), "string_agg(u, '','' ORDER BY k)", "count(*) FILTER (WHERE b)", "sum(v) FILTER (WHERE v > 5), avg(num) FILTER (WHERE b AND v > 0)",
	"min(u) FILTER (WHERE b)", "avg(v) + 1, sum(num) / count(*)", "count(*) * 2 > 10, min(u) || max(s)", "sum(v + 1), avg(v * 2), count(nullif(v, 3))", "max(lower(u)), count(DISTINCT left(u, 1))"}'::text[]) a;
SELECT k || ': ' || finer(k || ', count(*), avg(v), min(u)') FROM unnest('{upper(s), "s || ''-'' || g", "coalesce(s, ''none'')", "CASE WHEN b THEN s ELSE u END", "to_char(d, ''YYYY-MM'')", "date_trunc(''day'', tz)",
	"split_part(u, ''a'', 2)", "substring(s from 2)", "c || ''|''", "n::text", "d::text", "g::text", "num::text", "free::text", "f::text", "s", "g % 2", "(s, g)::text", "md5(k::text)", "e::text", "length(u)", "tz AT TIME ZONE ''UTC''", "s IS NULL", "f::text || num"}'::text[]) k;
SELECT finer('''all'' AS t, upper(s), count(*)', 'FROM finer GROUP BY 1, 2');
SELECT finer('''all'' AS t, count(*)', 'FROM finer GROUP BY 1');
SELECT finer('min(s), max(u), count(*), avg(v)', 'FROM finer');
SELECT finer('min(s), max(u), count(*), count(v), sum(v), avg(v), bool_or(b)', 'FROM finer WHERE k < 0');
SELECT finer('g, min(s)', 'FROM finer WHERE k < 0 GROUP BY g');
SELECT finer('num, min(s), num::text', 'FROM finer GROUP BY num');
SELECT finer('free, min(s), free::text', 'FROM finer GROUP BY free');
SELECT finer('free, free::text', 'FROM finer GROUP BY 1, 2');
SELECT finer('f, count(DISTINCT f::text), min(s), min(free::text) FILTER (WHERE f::text > ''1'')', 'FROM finer GROUP BY f');
SELECT finer('min(num), max(num), upper(s)', 'FROM finer GROUP BY 3');
SELECT finer('g, min(s)', 'FROM finer GROUP BY g HAVING max(u) > ''x'' AND count(*) > 10');
SELECT finer('g', 'FROM finer GROUP BY g, upper(u) HAVING min(s) < upper(u)');
SELECT finer('g, min(s), rank() OVER (ORDER BY min(s), sum(v)), sum(count(*)) OVER ()', 'FROM finer GROUP BY g');
SELECT finer('DISTINCT min(s) AS m', 'FROM finer GROUP BY g ORDER BY 1 DESC LIMIT 3');
SELECT finer('upper(s), count(*)', 'FROM finer GROUP BY upper(s) ORDER BY count(*) DESC, upper(s) LIMIT 5');
SELECT finer('DISTINCT ON (g) g, min(s)', 'FROM finer GROUP BY g, upper(u) ORDER BY g, 2, upper(u)');
SELECT finer('g, min(s), GROUPING(g)', 'FROM finer GROUP BY g');
SELECT finer('g, min(s)', 'FROM finer GROUP BY ROLLUP (g)');
SELECT finer('generate_series(1, 2), min(s)', 'FROM finer');
SELECT finer('g, min(s), random() < 2', 'FROM finer GROUP BY g');
SELECT finer('g, min(s), (SELECT max(k) FROM finer_dim)', 'FROM finer GROUP BY g');
SELECT finer('g, min(finer::text)', 'FROM finer GROUP BY g');
SELECT finer('g, min(s COLLATE "C"), max(s COLLATE "POSIX")', 'FROM finer GROUP BY g');
-- joins, outer ones, and what is around: subqueries, views, CTEs, what they are joined with
SELECT finer('lower(t), min(s), count(*), sum(v)', 'FROM finer JOIN finer_dim d ON finer.v = d.k GROUP BY 1');
SELECT finer('lower(t), min(s), count(d.k), sum(v)', 'FROM finer LEFT JOIN finer_dim d ON finer.v = d.k GROUP BY 1');
SELECT finer('lower(t), min(s), count(finer.k)', 'FROM finer FULL JOIN finer_dim d ON finer.v = d.k AND g > 2 GROUP BY 1');
SELECT finer('t, max(s)', 'FROM finer JOIN finer_dim USING (k) GROUP BY t');
SELECT finer('k, max(s)', 'FROM finer FULL JOIN finer_dim USING (k) GROUP BY k');
SELECT finer('x.m, count(*)', 'FROM (SELECT v, min(s) AS m FROM finer GROUP BY v) x JOIN finer_dim d ON x.v = d.k GROUP BY 1');
SELECT finer('*', 'FROM finer_dim d JOIN LATERAL (SELECT min(s) FROM finer WHERE v = d.k) x ON true WHERE d.k < 9');
SELECT finer('*', 'FROM finer_dim d WHERE t < (SELECT max(s) FROM finer WHERE v = d.k)');
SELECT same FROM gj_compare('WITH a AS (SELECT * FROM finer WHERE g > 1), b AS (SELECT upper(s) AS u, count(*) AS n FROM a GROUP BY 1) SELECT x.u, y.n, min(x.u) OVER () FROM b x JOIN b y USING (n)');
SELECT gj_same('WITH a AS MATERIALIZED (SELECT * FROM finer WHERE g > 1) SELECT lower(s), max(u) FROM a WHERE v > (SELECT avg(v) FROM a) GROUP BY 1');
SELECT gj_same('WITH a AS (SELECT * FROM finer WHERE g > 1) SELECT * FROM (SELECT lower(s), max(u) FROM a GROUP BY 1) x, (SELECT min(u) FROM a) y');
SELECT gj_same('SELECT lower(s), count(*) FROM finer GROUP BY 1 UNION ALL SELECT upper(s), max(k) FROM finer GROUP BY 1');
SELECT gj_same('SELECT 1 / min(v), lower(s) FROM finer GROUP BY 2');
CREATE VIEW finer_view WITH (security_barrier) AS SELECT lower(s) AS l, min(u) AS m, count(*) AS n FROM finer WHERE v > 0 GROUP BY 1;
SELECT finer('*', 'FROM finer_view WHERE l > ''s2''');
PREPARE finer_p AS SELECT lower(s) || $1 AS x, min(u), sum(v + $2) FROM finer WHERE v > $2 GROUP BY 1 ORDER BY 1 LIMIT 2;
EXECUTE finer_p('!', 3);
EXECUTE finer_p('?', 4);
INSERT INTO finer_dim SELECT 1000 + count(*), min(s) FROM finer GROUP BY upper(u);
SELECT count(*), min(t), max(t) FROM finer_dim;
-- privileges and policies
CREATE ROLE gj_finer;
GRANT SELECT (s, u, v) ON finer TO gj_finer;
ALTER TABLE finer ENABLE ROW LEVEL SECURITY;
CREATE POLICY finer_policy ON finer USING (v > 40);
SET ROLE gj_finer;
SELECT lower(s), min(u), count(*) FROM finer GROUP BY 1 ORDER BY 1 LIMIT 2;
SELECT min(n) FROM finer;
RESET ROLE;
SELECT finer('lower(s), min(u)');
-- the planner's choice goes by costs: few values, and as many as rows
RESET gpujoin.force;
SELECT gj_how('SELECT min(s), max(md5(k::text)) FROM finer', false);
DROP VIEW finer_view; DROP FUNCTION finer; DROP TABLE finer, finer_dim; DROP TYPE finer_enum; DROP ROLE gj_finer;
-- equal values that differ, where something looks at what they are
SET gpujoin.force = on;
CREATE TABLE finer_equal AS SELECT (ARRAY[0, -0.0::float8, 1])[1 + i % 3] AS f, (ARRAY['a', 'a  ', 'b'])[1 + i % 3]::bpchar AS b, 't' || i % 5 AS t FROM generate_series(1, 20000) i;
ANALYZE finer_equal;
SELECT gj_same(q) FROM unnest('{"SELECT f = 0, f::text, count(*) FROM finer_equal GROUP BY f, f::text", "SELECT octet_length(b), upper(t), count(*) FROM finer_equal GROUP BY b, 1, 2",
	"SELECT f = 0, max(f::text) > ''-'', min(t) FROM finer_equal GROUP BY f", "SELECT f = 0, count(DISTINCT f::text), count(DISTINCT t) FROM finer_equal GROUP BY f",
	"SELECT f = 0, min(t) FILTER (WHERE f::text = ''0''), count(*) FILTER (WHERE f::text = ''0'') FROM finer_equal GROUP BY f",
	"SELECT f = 0, count(*) FILTER (WHERE f::text = ''0''), min(t) FROM finer_equal GROUP BY f"}'::text[]) q;
DROP TABLE finer_equal;
