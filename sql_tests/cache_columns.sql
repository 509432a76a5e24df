-- gpujoin_cache: how each column lies on the device, its bytes, and those that it would take unencoded.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;
-- all fragments on one device
SET gpujoin.devices_per_query = 1;
CREATE TABLE cc (id int, day date, price numeric(12,2), wide int8, mode text, code char(2), other text, v float8, n int) WITH (autovacuum_enabled = off);
INSERT INTO cc SELECT i, '2020-01-01'::date + i % 300, (i % 50) * 3, i::int8 * 40000000000, (ARRAY['AIR', 'RAIL', 'SHIP'])[1 + i % 3],
	chr(65 + i % 25) || 'X', md5(i::text), i / 7.0, CASE WHEN i % 2 = 0 THEN i % 100 END FROM generate_series(1, 50000) i;
VACUUM cc;
SELECT gpujoin_cache_evict() >= 0;
SELECT gpujoin_prewarm('cc') > 0;
CREATE VIEW cc_columns AS SELECT relation, bytes, u.* FROM gpujoin_cache, unnest(columns, encodings, column_bytes, plain_bytes) AS u(name, encoding, column_bytes, plain_bytes);
SELECT name, encoding, round(column_bytes / 50000.0), round(plain_bytes / 50000.0) FROM cc_columns WHERE relation = 'cc'::regclass ORDER BY name;
-- what columns take is what the table takes, but for room that was not needed
SELECT sum(column_bytes) BETWEEN max(bytes) * 0.9 AND max(bytes) FROM cc_columns WHERE relation = 'cc'::regclass;
-- several fragments that differ, and fewer columns in some of them
CREATE TABLE cs (k int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE cs ALTER pad SET STORAGE PLAIN;
INSERT INTO cs SELECT CASE WHEN i <= 17000 THEN i % 200 ELSE i * 100000 END, repeat('x', 2000) FROM generate_series(1, 20000) i;
VACUUM cs;
SELECT gpujoin_prewarm('cs', '{k}') > 0;
SELECT name, encoding, column_bytes < plain_bytes FROM cc_columns WHERE relation = 'cs'::regclass;
-- counts follow what goes
SELECT gpujoin_cache_evict('cs') > 0;
SELECT count(*) FROM cc_columns WHERE relation = 'cs'::regclass;
SELECT count(*) FROM cc_columns WHERE relation = 'cc'::regclass;
SELECT gpujoin_cache_evict() > 0;
SELECT count(*) FROM cc_columns;
DROP VIEW cc_columns;
DROP TABLE cc, cs;
