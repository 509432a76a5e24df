-- Columns of any type are carried through the device and come back byte for byte.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TYPE pair AS (a int, b text);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE c (k int, t text, vc varchar(20), ch char(10), onechar "char", nm name, n numeric, n2 numeric(12,3), u uuid, by bytea, j json, jb jsonb,
	ia int[], ta text[], p pair, iv interval, tm time, tmz timetz, ip inet, m macaddr, f4 float4, f8 float8, i2 int2, b bool, mo mood, bx box, ir int4range,
	bt bit varying, mny money, ts tsvector, x xml, d date);
INSERT INTO c
SELECT i, repeat('tëxt ', i), 'vc' || i, 'ch' || i, chr(65 + i % 26)::"char", 'name' || i, i / 7.0, i * 1.5, md5(i::text)::uuid, decode(md5(i::text), 'hex'),
	json_build_object('i', i), jsonb_build_object('i', i, 'list', ARRAY[i, i + 1]), ARRAY[i, NULL, -i], ARRAY['a' || i, NULL, ''], (i, 'p' || i)::pair, i * interval '1 day 2 hours',
	time '00:00' + i * interval '1 minute', timetz '00:00+03' + i * interval '1 minute', '10.0.0.0'::inet + i, '08:00:2b:01:02:03', i / 3.0, i / 3.0, i, i % 2 = 0,
	(ARRAY['sad', 'ok', 'happy']::mood[])[1 + i % 3], box(point(i, i), point(0, 0)), int4range(i, i + 5), i::bit(16), i::money, to_tsvector('simple', 'word' || i),
	xmlparse(content '<a>' || i || '</a>'), date '2026-01-01' + i
FROM generate_series(1, 60) i;
INSERT INTO c (k) SELECT i FROM generate_series(1, 60, 3) i;		-- everything else NULL
CREATE TABLE r (k int, w int);
INSERT INTO r SELECT i % 30, i FROM generate_series(1, 90) i;

SELECT gj_same('SELECT c.*, r.w FROM c JOIN r USING (k)');
SELECT gj_same('SELECT r.w, c.* FROM r JOIN c USING (k) JOIN r r2 USING (k)');
SELECT gj_same('SELECT c, r FROM c JOIN r USING (k)');
-- each by itself, as outer and as inner side
SELECT a.attname, gj_same(format('SELECT c.%I, r.w FROM c JOIN r USING (k)', a.attname)), gj_same(format('SELECT a.%I, b.%I FROM c a JOIN c b USING (k)', a.attname, a.attname))
FROM pg_attribute a WHERE attrelid = 'c'::regclass AND attnum > 1 ORDER BY attnum;
-- expressions over what was carried are PostgreSQL's
SELECT gj_same('SELECT upper(c.t), c.jb->''list''->0, (c.p).b, c.ia[1] + r.w, c.n * r.w, c.iv + c.d FROM c JOIN r USING (k)');
-- all-visible pages, and statistics
VACUUM ANALYZE c, r;
SELECT gj_same('SELECT c.*, r.w FROM c JOIN r USING (k)');
SELECT r.w, c.t, c.ch || '|', c.n, c.ia, c.p, c.jb, c.iv FROM c JOIN r USING (k) WHERE c.k = 2 AND c.t IS NOT NULL ORDER BY 1;

-- TOAST: in line compressed, out of line, out of line compressed, external; NULLs between
CREATE TABLE toasted (k int, plain text, main text, extended text, external text, arr int[], after int);
ALTER TABLE toasted ALTER plain SET STORAGE PLAIN, ALTER main SET STORAGE MAIN, ALTER external SET STORAGE EXTERNAL;
INSERT INTO toasted
SELECT i, repeat('p', i * 10), repeat('m', i * 500), (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, i * 20) j), repeat('e', i * 700),
	(SELECT array_agg(j * j) FROM generate_series(1, i * 100) j), i
FROM generate_series(1, 25) i;
INSERT INTO toasted SELECT k, NULL, main, NULL, external, NULL, -k FROM toasted;
SELECT count(*) > 0 AS compressed FROM toasted WHERE pg_column_size(main) < length(main) / 2;
SELECT gj_same('SELECT * FROM toasted JOIN r USING (k)');
SELECT gj_same('SELECT r.w, t.* FROM r JOIN toasted t USING (k) WHERE t.after > 0');
SELECT gj_same('SELECT md5(t.extended), length(t.external), md5(t.arr::text) FROM r JOIN toasted t USING (k)');
SELECT gj_same('SELECT length(t.main) FROM r JOIN toasted t USING (k) WHERE t.extended LIKE ''%ab%''');
SELECT gj_same('SELECT a.extended, b.external FROM toasted a JOIN toasted b USING (k)');
VACUUM toasted;
SELECT gj_same('SELECT * FROM toasted JOIN r USING (k)');
SELECT sum(length(t.plain)), sum(length(t.main)), sum(length(t.extended)), sum(length(t.external)) FROM r JOIN toasted t USING (k);
-- a result whose source has gone: the values are in the new table
CREATE TABLE kept AS SELECT t.extended, t.external, t.main, r.w FROM toasted t JOIN r USING (k);
DROP TABLE toasted;
SELECT count(*), sum(length(extended)), sum(length(external)), sum(length(main)), count(DISTINCT md5(extended)) FROM kept;
DROP TABLE kept;

-- longer than any slot
CREATE TABLE longtext (k int, t text, plain_of_8k text);
ALTER TABLE longtext ALTER t SET STORAGE EXTERNAL;
INSERT INTO longtext SELECT i, repeat(chr(96 + i), i * 3000000), repeat('x', 7000) FROM generate_series(1, 3) i;
SELECT gj_same('SELECT l.k, length(l.t), md5(l.t), l.plain_of_8k FROM longtext l JOIN r USING (k)');
SELECT gj_equal('SELECT l.k, md5(l.t) FROM (SELECT k, t || ''!'' AS t FROM longtext OFFSET 0) l JOIN r USING (k)');	-- more than work_mem
SET work_mem = '64MB';
SELECT gj_same('SELECT l.k, md5(l.t) FROM (SELECT k, t || ''!'' AS t FROM longtext OFFSET 0) l JOIN r USING (k)');
RESET work_mem;
-- many values of 5 kB, more than a slot holds
CREATE TABLE midtext (k int, t text);
ALTER TABLE midtext ALTER t SET STORAGE PLAIN;
INSERT INTO midtext SELECT i % 30, repeat(chr(97 + i % 26), 5000 + i) FROM generate_series(1, 1500) i;
SELECT gj_same('SELECT m.t, r.w FROM midtext m JOIN r USING (k) WHERE r.w < 31');
SELECT gj_same('SELECT r.w, m.t FROM r JOIN midtext m USING (k) WHERE r.w < 31');

-- empty strings, zero-length everything
CREATE TABLE nothing (k int, t text, b bytea, ia int[], ch char(3), v varchar(1));
INSERT INTO nothing VALUES (1, '', '', '{}', '', ''), (2, NULL, NULL, NULL, NULL, NULL), (3, ' ', '\x00', '{{1,2},{3,4}}', ' ', ' ');
SELECT gj_same('SELECT n.*, r.w, length(t), length(b), array_dims(ia) FROM nothing n JOIN r USING (k)');

-- columns dropped and added: without a default, with one, with one that changed
CREATE TABLE alt (k int, gone text, a int, gone2 int8, z text);
INSERT INTO alt SELECT i, 'gone', i * 2, i, 'z' || i FROM generate_series(1, 20) i;
ALTER TABLE alt DROP COLUMN gone;
ALTER TABLE alt ADD COLUMN added int;
INSERT INTO alt SELECT i, i * 2, i, 'z' || i, i FROM generate_series(21, 29) i;
ALTER TABLE alt DROP COLUMN gone2;
ALTER TABLE alt ADD COLUMN with_default int DEFAULT 77, ADD COLUMN text_default text DEFAULT 'seventy-seven', ADD COLUMN fixed int8 NOT NULL DEFAULT 7;
INSERT INTO alt (k, a) SELECT i, i FROM generate_series(1, 5) i;
ALTER TABLE alt ALTER with_default SET DEFAULT 88;
INSERT INTO alt (k, text_default) VALUES (6, NULL);
SELECT gj_same('SELECT alt.*, r.w FROM alt JOIN r USING (k)');
SELECT gj_same('SELECT r.w, alt.with_default, alt.text_default, alt.z FROM r JOIN alt USING (k)');
SELECT gj_same('SELECT count(*), sum(alt.with_default), sum(alt.fixed), sum(alt.added) FROM alt JOIN r USING (k) WHERE alt.with_default > 5');
SELECT gj_same('SELECT alt.a FROM alt JOIN r ON alt.with_default = r.w');
VACUUM ANALYZE alt;
SELECT gj_same('SELECT alt.*, r.w FROM alt JOIN r USING (k)');
ALTER TABLE alt ALTER a TYPE int8, ALTER k TYPE int2;
SELECT gj_same('SELECT alt.*, r.w FROM alt JOIN r USING (k)');
-- the same default twice, rolled back and changed
BEGIN;
ALTER TABLE alt ADD COLUMN again int DEFAULT 1;
SELECT sum(alt.again) / count(*) FROM alt JOIN r USING (k);
ROLLBACK;
ALTER TABLE alt ADD COLUMN again int DEFAULT 2;
SELECT sum(alt.again) / count(*) FROM alt JOIN r USING (k);
SELECT gj_same('SELECT sum(alt.again) FROM alt JOIN r USING (k)');

-- every layout of fixed and varying widths, with and without NULLs
CREATE TABLE lay (b1 bool NOT NULL, k int NOT NULL, s2 int2 NOT NULL, l8 int8 NOT NULL, c1 "char" NOT NULL, f4 float4 NOT NULL, v1 text, d1 date, ts1 timestamp, v2 text, u uuid);
INSERT INTO lay SELECT i % 2 = 0, i % 30, i, i * 1e10, 'c', i / 2.0, CASE WHEN i % 3 > 0 THEN repeat('v', i % 200) END, CASE WHEN i % 4 > 0 THEN date '2026-01-01' + i END,
	CASE WHEN i % 5 > 0 THEN timestamp '2026-01-01' + i * interval '1 s' END, repeat('w', i % 9), CASE WHEN i % 2 > 0 THEN md5(i::text)::uuid END FROM generate_series(1, 500) i;
SELECT gj_same('SELECT lay.*, r.w FROM lay JOIN r USING (k)');
SELECT gj_same('SELECT lay.s2, lay.u FROM lay JOIN r USING (k)');
SELECT gj_same('SELECT count(*), sum(s2), sum(l8), max(ts1), min(d1) FROM lay JOIN r USING (k) WHERE d1 IS NOT NULL');
VACUUM ANALYZE lay;
SELECT gj_same('SELECT lay.*, r.w FROM lay JOIN r USING (k)');
SELECT gj_same('SELECT lay.s2, lay.ts1 FROM lay JOIN r USING (k)');
CREATE TABLE wide AS SELECT i AS k, i AS a1, i AS a2, i AS a3, i::text AS t1, i AS a4, i AS a5, i::text AS t2, i AS a6, i AS a7, i::numeric AS n1, i AS a8, i AS a9, i AS a10 FROM generate_series(1, 100) i;
SELECT gj_same('SELECT wide.*, r.w FROM wide JOIN r USING (k)');
SELECT gj_same('SELECT wide.a10, wide.t2, r.w FROM wide JOIN r ON wide.a7 = r.k');

DROP TABLE c, r, longtext, midtext, nothing, alt, lay, wide;
DROP TYPE pair;
DROP TYPE mood;
