-- Joins by one text or uuid: texts around the 15 bytes that fit a key as a whole, of several bytes a character, with the same first or last
-- bytes, with zeros in front of the length, blanks, NULL; in all types of joins, with keys that are unique and not, and beside other conditions.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

-- number i as a text of length i % 20, or as one that differs from others in its last byte only
CREATE FUNCTION tk_text(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN i % 97 = 0 THEN NULL WHEN i % 5 = 0 THEN 'é' || lpad(i::text, i % 14 + 1, 'ß') WHEN i % 7 = 0 THEN repeat('x', i % 20)
		WHEN i % 11 = 0 THEN 'the same fourteen' || i % 40 ELSE lpad(i::text, 12 + i % 6, 'a key of many bytes') END $$;
CREATE TABLE tk_fact (i int, t text, n name, c char(18), v varchar(40), u uuid, y bytea, k int) WITH (autovacuum_enabled = off);
CREATE TABLE tk_dim (i int, t text, n name, c char(20), v varchar(30), u uuid, y bytea, k int) WITH (autovacuum_enabled = off);
-- short texts alone, and one row that has a long one
CREATE TABLE tk_short (i int, t text) WITH (autovacuum_enabled = off);
INSERT INTO tk_fact SELECT i, t, left(t, 20), left(t, 16) || '  ', left(t, 25), md5((i % 3000)::text)::uuid, t::bytea, i % 50
FROM (SELECT i, tk_text(i % 3000) AS t FROM generate_series(1, 12000) i) s;
INSERT INTO tk_dim SELECT i, t, left(t, 20), left(t, 16), left(t, 25), CASE WHEN i % 31 > 0 THEN md5(i::text)::uuid END, t::bytea, i % 50
FROM (SELECT i, tk_text(i) AS t FROM generate_series(500, 3500) i) s;
INSERT INTO tk_short SELECT min(i), left(t, 15) FROM tk_dim WHERE octet_length(left(t, 15)) <= 15 GROUP BY 2;
VACUUM ANALYZE tk_fact, tk_dim, tk_short;

SELECT min(octet_length(t)), max(octet_length(t)), count(DISTINCT octet_length(t)), count(*) FILTER (WHERE octet_length(t) = 15), count(*) FILTER (WHERE octet_length(t) = 16)
FROM tk_fact;

-- each type of column, summed, grouped and returned
SELECT condition, gj_same(format('SELECT count(*), sum(f.i + d.i) FROM tk_fact f JOIN tk_dim d ON %s', condition)),
	gj_same(format('SELECT d.k, count(*), min(f.i) FROM tk_fact f JOIN tk_dim d ON %s GROUP BY d.k', condition)),
	gj_same(format('SELECT f.i, d.i, d.t FROM tk_fact f JOIN tk_dim d ON %s WHERE f.k = 7', condition))
FROM unnest(ARRAY['f.t = d.t', 'f.n = d.n', 'f.c = d.c', 'f.v = d.v', 'f.u = d.u', 'f.y = d.y', 'f.n = d.t', 'f.t = d.v', 'left(f.t, 13) = left(d.t, 13)',
	'f.t = d.t AND f.k = d.k', 'f.u = d.u AND f.k = d.k', 'f.t = d.t AND f.u = d.u', 'f.t = d.t AND f.i < d.i + 9000', 'f.u = d.u AND f.t <> d.t', 'f.t = d.t AND f.t LIKE ''%1%''']) condition;

-- types of joins: a table of short texts alone and unique, one with long ones, and uuids
SELECT pair, gj_same(format('SELECT count(*), sum(f.i), sum(d.i) FROM tk_fact f %s d ON f.%s = d.%s', join_type || ' JOIN ' || dim, key, key))
FROM (VALUES ('tk_short', 't'), ('tk_dim', 't'), ('tk_dim', 'u')) s(dim, key), unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) join_type, concat(dim, ' ', key, ' ', join_type) pair;
SELECT pair, gj_same(format('SELECT count(*), sum(f.i) FROM tk_fact f WHERE %s (SELECT FROM %s d WHERE f.%s = d.%s)', what, dim, key, key)),
	gj_same(format('SELECT count(*), sum(d.i) FROM %s d WHERE %s (SELECT FROM tk_fact f WHERE f.%s = d.%s AND f.k <> 3)', dim, what, key, key))
FROM (VALUES ('tk_short', 't'), ('tk_dim', 't'), ('tk_dim', 'u')) s(dim, key), unnest(ARRAY['EXISTS', 'NOT EXISTS']) what, concat(dim, ' ', key, ' ', what) pair;

-- one long text in a table of short ones, of the same first 15 bytes as another; then texts that are compressed or elsewhere
INSERT INTO tk_short VALUES (-1, 'a key of many b and more'), (-2, 'a key of many b'), (-3, NULL);
INSERT INTO tk_fact (i, t) VALUES (-1, 'a key of many b and more'), (-2, 'a key of many b'), (-3, NULL), (-4, repeat('long ', 3000)), (-5, '');
SELECT gj_same('SELECT f.i, d.i, d.t FROM tk_fact f JOIN tk_short d ON f.t = d.t WHERE f.i < 0');
SELECT gj_same('SELECT count(*), sum(f.i + d.i) FROM tk_fact f JOIN tk_short d ON f.t = d.t');
ALTER TABLE tk_short ALTER t SET STORAGE external;
INSERT INTO tk_short VALUES (-4, repeat('long ', 3000));
SELECT gj_same('SELECT count(*), sum(f.i + d.i) FROM tk_fact f JOIN tk_short d ON f.t = d.t');

-- several joins of a query, and more memory than there is
SELECT gj_same('SELECT count(*), sum(f.i + d.i + e.i) FROM tk_fact f JOIN tk_short d ON f.t = d.t JOIN tk_dim e ON f.u = e.u');
SELECT gj_same('SELECT e.k, count(*), sum(f.i) FROM tk_fact f JOIN tk_dim e ON f.u = e.u LEFT JOIN tk_short d ON f.t = d.t GROUP BY e.k');
SET gpujoin.device_memory_limit = '16MB';
SELECT gj_same('SELECT count(*), sum(f.i + d.i) FROM tk_fact f JOIN tk_dim d ON f.t = d.t');
SELECT gj_same('SELECT count(*), sum(f.i + d.i) FROM tk_fact f JOIN tk_dim d ON f.u = d.u');

DROP TABLE tk_fact, tk_dim, tk_short;
DROP FUNCTION tk_text;
