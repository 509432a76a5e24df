/* sql/gpujoin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpujoin" to load this file. \quit

-- ---- devices and counters

CREATE FUNCTION gpujoin_devices(
	OUT device text,
	OUT ordinal int,
	OUT name text,
	OUT status text,
	OUT reason text,
	OUT processors int,
	OUT memory_total bigint,
	OUT memory_used bigint,
	OUT memory_pinned bigint,
	OUT sessions int,
	OUT copy_in_rate float8,
	OUT copy_out_rate float8,
	OUT memory_resident bigint,
	OUT runs bigint,
	OUT bytes_in bigint,
	OUT bytes_out bigint,
	OUT busy_ms float8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_devices'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 4;

COMMENT ON FUNCTION gpujoin_devices() IS 'the rows of view gpujoin_devices';

CREATE VIEW gpujoin_devices AS SELECT * FROM gpujoin_devices();

COMMENT ON VIEW gpujoin_devices IS
	'devices, and why they are not used; memory in bytes, rates in bytes/s; what completed programs did';

GRANT SELECT ON gpujoin_devices TO PUBLIC;

CREATE FUNCTION gpujoin_processes(
	OUT process text,
	OUT pid int,
	OUT state text,
	OUT memory bigint,
	OUT start_time timestamptz,
	OUT starts bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_processes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 2;

COMMENT ON FUNCTION gpujoin_processes() IS 'the rows of view gpujoin_processes';

CREATE VIEW gpujoin_processes AS SELECT * FROM gpujoin_processes();

COMMENT ON VIEW gpujoin_processes IS
	'the launcher and gpujoind: process, state, physical memory in bytes, start';

GRANT SELECT ON gpujoin_processes TO PUBLIC;

CREATE FUNCTION gpujoin_check(
	OUT section text,
	OUT item text,
	OUT value text,
	OUT advice text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_check'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 40;

COMMENT ON FUNCTION gpujoin_check() IS
	'versions, processes, devices, memory and limits, and what to change';

REVOKE ALL ON FUNCTION gpujoin_check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpujoin_check() TO pg_monitor;

CREATE FUNCTION gpujoin_stat(
	OUT datid oid,
	OUT outcome text,
	OUT count bigint,
	OUT last timestamptz,
	OUT stats_reset timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_stat'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION gpujoin_stat() IS 'the rows of view gpujoin_stat, but for names of databases';

CREATE VIEW gpujoin_stat AS
	SELECT s.datid, d.datname, s.outcome, s.count, s.last, s.stats_reset
	FROM gpujoin_stat() s LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid;

COMMENT ON VIEW gpujoin_stat IS
	'how often a device completed a query, or why it did not, by database';

GRANT SELECT ON gpujoin_stat TO PUBLIC;

CREATE FUNCTION gpujoin_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpujoin_stat_reset'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpujoin_stat_reset() IS 'let the counts of gpujoin_stat of this database begin anew';

REVOKE ALL ON FUNCTION gpujoin_stat_reset() FROM PUBLIC;

CREATE FUNCTION gpujoin_stat_statements(
	OUT userid oid,
	OUT dbid oid,
	OUT queryid bigint,
	OUT calls bigint,
	OUT fallbacks bigint,
	OUT device_time float8,
	OUT wait_time float8,
	OUT load_time float8,
	OUT bytes_in bigint,
	OUT bytes_out bigint,
	OUT stats_since timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_stat_statements'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION gpujoin_stat_statements() IS 'the rows of view gpujoin_stat_statements';

CREATE VIEW gpujoin_stat_statements AS SELECT * FROM gpujoin_stat_statements();

COMMENT ON VIEW gpujoin_stat_statements IS
	'what devices did for each statement; times in ms; to be joined with pg_stat_statements';

GRANT SELECT ON gpujoin_stat_statements TO PUBLIC;

CREATE FUNCTION gpujoin_stat_statements_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpujoin_stat_statements_reset'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpujoin_stat_statements_reset() IS 'forget all statements of gpujoin_stat_statements';

REVOKE ALL ON FUNCTION gpujoin_stat_statements_reset() FROM PUBLIC;

-- ---- data that is resident on devices

CREATE FUNCTION gpujoin_cache(
	OUT datid oid,
	OUT datname name,
	OUT relation regclass,
	OUT columns text[],
	OUT device text,
	OUT ordinal int,
	OUT fragments bigint,
	OUT pages bigint,
	OUT bytes bigint,
	OUT hits bigint,
	OUT hash_tables bigint,
	OUT hash_table_hits bigint,
	OUT encodings text[],
	OUT column_bytes bigint[],
	OUT plain_bytes bigint[]
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_cache'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION gpujoin_cache() IS 'the rows of view gpujoin_cache';

CREATE VIEW gpujoin_cache AS SELECT * FROM gpujoin_cache();

COMMENT ON VIEW gpujoin_cache IS 'columns of tables that are resident on devices, and hash tables over them';

GRANT SELECT ON gpujoin_cache TO PUBLIC;

CREATE FUNCTION gpujoin_cache_evict(relation regclass DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpujoin_cache_evict'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpujoin_cache_evict(regclass) IS
	'evict the resident data of a table and its partitions, or all of it; returns bytes';

REVOKE ALL ON FUNCTION gpujoin_cache_evict(regclass) FROM PUBLIC;

CREATE FUNCTION gpujoin_prewarm(relation regclass, columns name[] DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpujoin_prewarm'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION gpujoin_prewarm(regclass, name[]) IS
	'make columns of a table and its partitions resident; returns the number of resident pages';

CREATE FUNCTION gpujoin_stat_progress_prewarm(
	OUT pid int,
	OUT datid oid,
	OUT relid oid,
	OUT phase text,
	OUT tables_total bigint,
	OUT tables_done bigint,
	OUT current_relid oid,
	OUT blocks_total bigint,
	OUT blocks_done bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_stat_progress_prewarm'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION gpujoin_stat_progress_prewarm() IS
	'the rows of view gpujoin_stat_progress_prewarm, but for names of databases';

CREATE VIEW gpujoin_stat_progress_prewarm AS
	SELECT p.pid, p.datid, d.datname, p.relid, p.phase, p.tables_total, p.tables_done,
		p.current_relid, p.blocks_total, p.blocks_done
	FROM gpujoin_stat_progress_prewarm() p LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid;

COMMENT ON VIEW gpujoin_stat_progress_prewarm IS 'how far calls of gpujoin_prewarm() are';

GRANT SELECT ON gpujoin_stat_progress_prewarm TO PUBLIC;

-- ---- loading gpujoin in every session of a database

CREATE FUNCTION gpujoin_enable()
RETURNS text
AS 'MODULE_PATHNAME', 'gpujoin_enable'
LANGUAGE C VOLATILE STRICT;

COMMENT ON FUNCTION gpujoin_enable() IS 'make new sessions of this database load gpujoin';

REVOKE ALL ON FUNCTION gpujoin_enable() FROM PUBLIC;

CREATE FUNCTION gpujoin_disable()
RETURNS text
AS 'MODULE_PATHNAME', 'gpujoin_disable'
LANGUAGE C VOLATILE STRICT;

COMMENT ON FUNCTION gpujoin_disable() IS 'undo gpujoin_enable()';

REVOKE ALL ON FUNCTION gpujoin_disable() FROM PUBLIC;

-- ---- set operations: functions and aggregates on int2[], int4[] and int8[]

DO $gpujoin$
DECLARE
	element text;
	f text[];
BEGIN
	FOREACH element IN ARRAY ARRAY['int2', 'int4', 'int8'] LOOP
		-- name, result type (NULL: a set), description
		FOREACH f SLICE 1 IN ARRAY ARRAY[
			['gpu_intersect', NULL, 'elements of both arrays, sorted and unique'],
			['gpu_union', NULL, 'elements of either array, sorted and unique'],
			['gpu_except', NULL, 'elements of the first array that the second does not have, sorted and unique'],
			['gpu_intersect_count', 'bigint', 'number of distinct elements of both arrays'],
			['gpu_overlaps', 'boolean', 'do the arrays have an element in common?'],
			['gpu_contains', 'boolean', 'does the first array have all elements of the second?'],
			['gpu_jaccard', 'float8', 'common elements / elements of either'],
			['gpu_cosine', 'float8', 'common elements / sqrt(elements of one * elements of the other)'],
			['gpu_dice', 'float8', '2 * common elements / (elements of one + elements of the other)'],
			['gpu_overlap_coefficient', 'float8', 'common elements / elements of the smaller'],
			['gpu_containment', 'float8', 'common elements / elements of the smaller']]
		LOOP
			EXECUTE format('CREATE FUNCTION %I(%s[], %s[]) RETURNS %s AS $$MODULE_PATHNAME$$, %L LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100',
						   f[1], element, element, coalesce(f[2], element || '[]'), f[1]);
			EXECUTE format('COMMENT ON FUNCTION %I(%s[], %s[]) IS %L', f[1], element, element, f[3]);
		END LOOP;

		-- gpu_set_normalize, and support functions of the aggregates below, which users do not call
		EXECUTE format('CREATE FUNCTION gpu_set_normalize(%s[]) RETURNS %s[] AS $$MODULE_PATHNAME$$, %L LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE',
					   element, element, 'gpu_set_normalize');
		EXECUTE format('COMMENT ON FUNCTION gpu_set_normalize(%s[]) IS %L', element, 'the elements of an array, sorted and unique');
		EXECUTE format('CREATE FUNCTION gpu_union_agg_transfn(internal, %s[]) RETURNS internal AS $$MODULE_PATHNAME$$, %L LANGUAGE C IMMUTABLE PARALLEL SAFE',
					   element, 'gpu_union_agg_transfn');
		EXECUTE format('CREATE FUNCTION gpu_union_agg_finalfn_%s(internal) RETURNS %s[] AS $$MODULE_PATHNAME$$, %L LANGUAGE C IMMUTABLE PARALLEL SAFE',
					   element, element, 'gpu_union_agg_finalfn');
		EXECUTE format('COMMENT ON FUNCTION gpu_union_agg_transfn(internal, %s[]) IS %L', element, 'support of gpu_union_agg');
		EXECUTE format('COMMENT ON FUNCTION gpu_union_agg_finalfn_%s(internal) IS %L', element, 'support of gpu_union_agg');
	END LOOP;
END $gpujoin$;

CREATE FUNCTION gpu_union_agg_combinefn(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'gpu_union_agg_combinefn'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpu_union_agg_serialfn(internal)
RETURNS bytea
AS 'MODULE_PATHNAME', 'gpu_union_agg_serialfn'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION gpu_union_agg_deserialfn(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'gpu_union_agg_deserialfn'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION gpu_union_agg_combinefn(internal, internal) IS 'support of gpu_union_agg';
COMMENT ON FUNCTION gpu_union_agg_serialfn(internal) IS 'support of gpu_union_agg';
COMMENT ON FUNCTION gpu_union_agg_deserialfn(bytea, internal) IS 'support of gpu_union_agg';

DO $gpujoin$
DECLARE
	element text;
BEGIN
	FOREACH element IN ARRAY ARRAY['int2', 'int4', 'int8'] LOOP
		EXECUTE format('CREATE AGGREGATE gpu_union_agg(%s[]) (SFUNC = gpu_union_agg_transfn, STYPE = internal, '
					   'FINALFUNC = gpu_union_agg_finalfn_%s, COMBINEFUNC = gpu_union_agg_combinefn, '
					   'SERIALFUNC = gpu_union_agg_serialfn, DESERIALFUNC = gpu_union_agg_deserialfn, PARALLEL = SAFE)',
					   element, element);
		EXECUTE format('COMMENT ON AGGREGATE gpu_union_agg(%s[]) IS %L', element, 'elements of any array, sorted and unique');
		EXECUTE format('CREATE AGGREGATE gpu_intersect_agg(%s[]) (SFUNC = gpu_intersect, STYPE = %s[], '
					   'FINALFUNC = gpu_set_normalize, COMBINEFUNC = gpu_intersect, PARALLEL = SAFE)',
					   element, element);
		EXECUTE format('COMMENT ON AGGREGATE gpu_intersect_agg(%s[]) IS %L', element, 'elements of all arrays, sorted and unique');
	END LOOP;
END $gpujoin$;

-- ---- set joins over queries that return (id, set)
-- The queries may call any function, so these functions are parallel unsafe.

CREATE FUNCTION gpujoin_set_function_support(internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'gpujoin_set_function_support'
LANGUAGE C STRICT;

COMMENT ON FUNCTION gpujoin_set_function_support(internal) IS
	'planner support: rows and costs of the functions over queries';

CREATE FUNCTION gpu_set_join(
	left_query text,
	right_query text DEFAULT NULL,
	predicate text DEFAULT 'overlap',
	threshold float8 DEFAULT 1,
	OUT left_id bigint,
	OUT right_id bigint,
	OUT common bigint,
	OUT similarity float8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpu_set_join'
LANGUAGE C STABLE PARALLEL UNSAFE COST 10000 ROWS 10000 SUPPORT gpujoin_set_function_support;

COMMENT ON FUNCTION gpu_set_join(text, text, text, float8) IS
	'pairs of sets that satisfy the predicate';

CREATE FUNCTION gpu_set_join_items(
	left_query text,
	right_query text DEFAULT NULL,
	predicate text DEFAULT 'overlap',
	threshold float8 DEFAULT 1,
	OUT left_id bigint,
	OUT right_id bigint,
	OUT common bigint,
	OUT similarity float8,
	OUT items bigint[]
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpu_set_join_items'
LANGUAGE C STABLE PARALLEL UNSAFE COST 10000 ROWS 10000 SUPPORT gpujoin_set_function_support;

COMMENT ON FUNCTION gpu_set_join_items(text, text, text, float8) IS
	'pairs of sets that satisfy the predicate, with their common elements';

CREATE FUNCTION gpu_set_topk(
	left_query text,
	right_query text DEFAULT NULL,
	k int DEFAULT 10,
	metric text DEFAULT 'jaccard',
	OUT left_id bigint,
	OUT right_id bigint,
	OUT rank int,
	OUT score float8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpu_set_topk'
LANGUAGE C STABLE PARALLEL UNSAFE COST 10000 ROWS 10000 SUPPORT gpujoin_set_function_support;

COMMENT ON FUNCTION gpu_set_topk(text, text, int, text) IS
	'the k right sets that are most similar to each left set';

CREATE FUNCTION gpu_intersect_family(
	left_query text,
	right_query text DEFAULT NULL,
	OUT set bigint[],
	OUT frequency bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpu_intersect_family'
LANGUAGE C STABLE PARALLEL UNSAFE COST 10000 ROWS 10000 SUPPORT gpujoin_set_function_support;

COMMENT ON FUNCTION gpu_intersect_family(text, text) IS
	'the distinct intersections of all pairs of sets, and how often each appears';

-- ---- load the library in this session, and tell the user how to load it in others

LOAD 'MODULE_PATHNAME';

CREATE FUNCTION gpujoin_announce()
RETURNS void
AS 'MODULE_PATHNAME', 'gpujoin_announce'
LANGUAGE C VOLATILE STRICT;

SELECT gpujoin_announce();

DROP FUNCTION gpujoin_announce();
