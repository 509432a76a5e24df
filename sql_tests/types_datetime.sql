-- Dates and times: conditions, arithmetic, fields, keys and aggregates on the device.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

SET datestyle = iso;
SET timezone = 'Asia/Tokyo';
CREATE TABLE f (id int, k int, d date, ts timestamp, tz timestamptz, tm time, iv interval, n int);
INSERT INTO f
SELECT i, i % 20, CASE WHEN i % 13 <> 0 THEN date '1999-11-20' + i * 3 END, timestamp '2000-02-27 22:10:03.25' + (i - 500) * interval '1 day 7 hours 13.000001 seconds',
	timestamptz '2000-02-27 22:10:03.25' + (i - 500) * interval '7 hours 13 seconds', time '00:00' + i * interval '83 seconds', i * interval '1 hour', i % 100 - 50
FROM generate_series(1, 1000) i;
-- leap days and century years, BC
INSERT INTO f (id, k, d, ts, n)
SELECT 1000 + n, n % 20, x::date, x, n
FROM unnest(ARRAY['2000-02-29', '1900-02-28', '1900-03-01', '2004-02-29 23:59:59.999999', '1600-02-29', '2100-02-28', '0001-01-01', '0001-12-31 BC', '0005-02-29 BC', '4712-01-01 BC',
	'1999-12-31', '2000-01-01', '1970-01-01', '2024-12-30', '2025-01-31', '2023-03-31 10:20:30', '2020-05-31', '2021-11-30', '9999-12-31']::timestamp[]) WITH ORDINALITY AS t(x, n);
CREATE TABLE inf (k int, d date, ts timestamp);
INSERT INTO inf SELECT i % 20, CASE i % 3 WHEN 0 THEN date 'infinity' WHEN 1 THEN date '-infinity' ELSE date '5874897-12-31' END, CASE i % 2 WHEN 0 THEN timestamp 'infinity' ELSE '-infinity' END FROM generate_series(1, 6) i;
CREATE TABLE g (k int, d date, ts timestamp, tm time, name text);
INSERT INTO g SELECT i, date '2000-01-01' + i * 31, timestamp '2000-01-01 00:00' + i * interval '31 days', time '00:00' + i * interval '1 hour', 'name ' || i FROM generate_series(0, 19) i;
VACUUM ANALYZE f;

SELECT gj_where(c) FROM unnest(ARRAY[
	'f.d = g.d', 'f.d < g.ts', 'f.ts >= g.d', 'f.d::timestamp = g.ts', 'f.ts::date = g.d', 'f.ts::date <> f.d', 'f.d <= timestamp ''2000-06-01 12:00''', 'f.ts > date ''2000-06-01''', 'f.tm < g.tm', 'f.tm = ''01:23:00''',
	'f.tm BETWEEN ''01:00'' AND ''02:00''', 'f.tz >= ''2000-02-20 00:00+00''', 'f.tz < ''2000-02-20''', 'f.tz > f.ts', 'f.tz::date = f.d', 'f.iv > interval ''1 day''', 'f.d IN (''2000-01-01'', ''2000-03-01'')',
	'f.ts IN (''2000-02-29'', ''9999-12-31'')', 'f.tm IN (''00:01:23'', ''00:02:46'')', 'f.d IS NULL OR f.d > ''2005-01-01'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_where(c) FROM unnest(ARRAY[
	'f.d + 10 = g.d', 'f.d - 10 > g.d', 'f.d + f.n > g.d', 'f.d - f.n < g.d', 'f.d - g.d > 100', 'f.d + interval ''1 month'' > g.ts', 'f.d - interval ''1 month'' = ''2000-01-31''', 'f.d + interval ''1 year 2 months -3 days 04:05:06'' > g.ts',
	'f.ts + interval ''1 month'' > g.ts', 'f.ts - interval ''13 months'' < g.ts', 'f.ts + interval ''-1 day 1 microsecond'' > g.ts', 'f.ts + interval ''100 years'' > g.ts',
	'f.ts - g.ts > interval ''1 day''', 'f.tz + interval ''1 hour'' > f.ts',
	'f.ts + f.iv > g.ts', 'f.tm + interval ''1 hour'' > g.tm', 'f.d + 2147483647 > g.d', 'f.d >= date ''2000-12-01'' - interval ''90'' day', 'f.d < date ''2000-01-01'' + interval ''1'' year'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- every month that a day may have to be cut in, forwards and backwards
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE f.id <> 1010 AND (f.ts + interval ''' || m || ' months'')::date - f.ts::date <> ' || m || ' * 30') FROM unnest(ARRAY[-25, -12, -11, -1, 1, 2, 11, 12, 37]) m;
-- fields
SELECT gj_where(c) FROM unnest(ARRAY[
	'extract(year FROM f.d) = 2000', 'extract(month FROM f.d) = 2', 'extract(day FROM f.d) = 29', 'extract(quarter FROM f.d) = 3', 'extract(dow FROM f.d) = 0', 'extract(isodow FROM f.d) = 7', 'extract(doy FROM f.d) = 366', 'extract(week FROM f.d) = 1',
	'extract(year FROM f.ts) < 0', 'extract(month FROM f.ts) = 12', 'extract(day FROM f.ts) = 31', 'extract(hour FROM f.ts) = 10', 'extract(minute FROM f.ts) = 20', 'extract(second FROM f.ts) > 59.5', 'extract(epoch FROM f.ts) > 0',
	'extract(dow FROM f.ts) = extract(isodow FROM f.ts)', 'extract(doy FROM f.ts) = 60', 'extract(quarter FROM f.ts) = g.k', 'date_part(''year'', f.ts) = 2000', 'date_part(''month'', f.d) = 5', 'date_part(''second'', f.ts) > 59.5',
	'extract(hour FROM f.tm) = 3', 'extract(month FROM f.tz) = 2', 'extract(year FROM f.d) = extract(year FROM g.d) AND extract(month FROM f.d) = extract(month FROM g.d)'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device(format('SELECT sum(extract(%s FROM f.ts)), min(extract(%s FROM f.ts)), max(extract(%s FROM f.ts)), avg(extract(%s FROM f.ts)) FROM f JOIN g ON f.k = g.k', x, x, x, x)) FROM unnest('{year,month,day,quarter,dow,isodow,doy,hour,minute,second}'::text[]) x;
SELECT gj_device(format('SELECT sum(extract(%s FROM f.d)), min(extract(%s FROM f.d)), max(extract(%s FROM f.d)) FROM f JOIN g ON f.k = g.k', x, x, x)) FROM unnest('{year,month,day,quarter,dow,isodow,doy}'::text[]) x;
SELECT gj_device(format('SELECT f.id, g.name FROM f JOIN g ON f.k = g.k WHERE date_trunc(''%s'', f.ts) >= f.ts - interval ''1 hour''', x)) FROM unnest('{second,minute,hour,day,week,month,quarter,year,decade}'::text[]) x;
SELECT gj_device(format('SELECT date_trunc(''%s'', f.ts), count(*), min(f.ts), max(f.ts) FROM f JOIN g ON f.k = g.k GROUP BY 1', x)) FROM unnest('{day,week,month,quarter,year}'::text[]) x;
-- keys and aggregates
SELECT gj_device('SELECT f.id, g.name FROM f JOIN g ON ' || c) FROM unnest(ARRAY[
	'f.d = g.d', 'f.d = g.ts', 'f.ts::date = g.ts', 'f.tm = g.tm', 'f.d + 1 = g.d', 'extract(month FROM f.d) = extract(month FROM g.ts)', 'f.tz = g.ts'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
SELECT gj_device('SELECT min(f.d), max(f.d), min(f.ts), max(f.ts), min(f.tz), max(f.tz), min(f.tm), max(f.tm), max(f.d - g.d) FROM f JOIN g ON f.k = g.k');
SELECT gj_device('SELECT f.tm, extract(year FROM f.d), count(*) FROM f JOIN g ON f.k = g.k GROUP BY 1, 2');
SELECT gj_device('SELECT sum(CASE WHEN extract(year FROM f.d) = 2000 THEN 1 ELSE 0 END), count(CASE f.d WHEN ''2000-01-01'' THEN 1 END) FROM f JOIN g ON f.k = g.k');
-- infinities and dates beyond every timestamp
SELECT gj_device('SELECT inf.d, inf.ts, g.name FROM inf JOIN g USING (k) WHERE ' || c) FROM unnest(ARRAY[
	'inf.d > ''2000-01-01''', 'inf.d + 1 > ''2000-01-01''', 'inf.d - g.d > 0', 'inf.d < g.ts', 'inf.ts > g.d', 'inf.ts::date > g.d', 'inf.ts + interval ''1 month 1 day 1 hour'' > g.ts', 'date_trunc(''month'', inf.ts) = inf.ts',
	'extract(year FROM inf.ts) > 0', 'extract(month FROM inf.ts) > 0', 'extract(year FROM inf.d) > 0', 'inf.d::timestamp > g.ts', 'inf.d - interval ''1 month'' < g.ts'
]) WITH ORDINALITY AS t(c, n) ORDER BY n;
-- dates beside timestamps that are known beforehand, also beyond every timestamp
SELECT gj_device(format('SELECT inf.d, g.name FROM inf JOIN g USING (k) WHERE inf.d %s timestamp %L', op, ts))
FROM unnest('{<,<=,=,<>,>=,>}'::text[]) WITH ORDINALITY os (op, i), unnest('{-infinity,2000-01-01,2000-01-01 00:00:01,infinity}'::text[]) WITH ORDINALITY s (ts, j) ORDER BY i, j;
SELECT gj_device(format('SELECT f.id, g.name FROM f JOIN g USING (k) WHERE %s', format(CASE WHEN flip THEN 'timestamp %L %s f.d' ELSE 'f.d %2$s timestamp %1$L' END, ts, op)))
FROM unnest('{<,<=,=,<>,>=,>}'::text[]) WITH ORDINALITY os (op, i), unnest('{1999-12-31 23:59:59.999999,2000-02-29,2000-02-29 00:00:00.000001}'::text[]) WITH ORDINALITY s (ts, j), unnest('{f,t}'::bool[]) flip
ORDER BY i, j, flip;
SET plan_cache_mode = force_generic_plan;
PREPARE known (timestamp) AS SELECT count(*), min(f.d), max(f.d) FROM f JOIN g USING (k) WHERE f.d >= $1 AND f.d < $1 + interval '1 month';
EXECUTE known ('2000-02-01');
EXECUTE known ('2000-02-01 12:00');
EXECUTE known ('infinity');
EXECUTE known (NULL);
SET gpujoin.enabled = off;
EXECUTE known ('2000-02-01');
EXECUTE known ('2000-02-01 12:00');
EXECUTE known ('infinity');
EXECUTE known (NULL);
RESET gpujoin.enabled;
RESET plan_cache_mode;
DEALLOCATE known;
-- the ends of the ranges: PostgreSQL's errors
CREATE TABLE ends (k int, d date, ts timestamp);
INSERT INTO ends VALUES (1, '4714-11-24 BC', '4714-11-24 BC'), (2, '5874897-12-31', '294276-12-31 23:59:59.999999'), (3, '0001-12-31 BC', '0001-12-31 BC');
SELECT gj_device('SELECT ends.*, g.name FROM ends JOIN g USING (k) WHERE ' || c) FROM unnest(ARRAY[
	'ends.ts > g.ts', 'extract(year FROM ends.ts) < 0', 'extract(year FROM ends.d) > 0', 'extract(doy FROM ends.ts) = 328', 'ends.ts + interval ''1 month'' < ''infinity''', 'ends.ts - interval ''1 day'' > ''-infinity''',
	'date_trunc(''year'', ends.ts) > ''-infinity''', 'ends.d - 100000000 < g.d', 'ends.d + 1 > g.d', 'ends.ts + interval ''200000 years'' > g.ts', 'ends.ts + interval ''1 microsecond'' > g.ts', 'ends.k = 3 AND ends.ts + interval ''1 day'' > ''0001-01-01'''
]) WITH ORDINALITY AS t(c, n) ORDER BY n;

DROP TABLE f, g, inf, ends;
