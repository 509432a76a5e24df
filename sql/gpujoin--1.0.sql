/* sql/gpujoin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpujoin" to load this file. \quit

-- ---- what gpujoin does

CREATE FUNCTION gpujoin_devices(
	OUT device text,
	OUT ordinal int,
	OUT name text,
	OUT processors int,
	OUT memory_total bigint,
	OUT memory_used bigint,
	OUT memory_pinned bigint,
	OUT sessions int,
	OUT copy_in_rate float8,
	OUT copy_out_rate float8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_devices'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 4;

COMMENT ON FUNCTION gpujoin_devices() IS 'devices of gpujoind: memory in bytes, rates in bytes per second';

CREATE VIEW gpujoin_devices AS SELECT * FROM gpujoin_devices();

GRANT SELECT ON gpujoin_devices TO PUBLIC;

CREATE FUNCTION gpujoin_stat(
	OUT outcome text,
	OUT count bigint,
	OUT last timestamptz
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_stat'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION gpujoin_stat() IS 'how often a device completed a query, or why it did not';

CREATE VIEW gpujoin_stat AS SELECT * FROM gpujoin_stat();

GRANT SELECT ON gpujoin_stat TO PUBLIC;

-- ---- what stays on devices between queries

CREATE FUNCTION gpujoin_cache(
	OUT database text,
	OUT relation regclass,
	OUT columns text[],
	OUT device text,
	OUT ordinal int,
	OUT fragments bigint,
	OUT pages bigint,
	OUT bytes bigint,
	OUT hits bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpujoin_cache'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION gpujoin_cache() IS 'columns of tables that are resident on devices';

CREATE VIEW gpujoin_cache AS SELECT * FROM gpujoin_cache();

GRANT SELECT ON gpujoin_cache TO PUBLIC;

CREATE FUNCTION gpujoin_cache_evict(relation regclass DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpujoin_cache_evict'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpujoin_cache_evict(regclass) IS 'give up what is resident of a table, or everything; returns bytes';

REVOKE ALL ON FUNCTION gpujoin_cache_evict(regclass) FROM PUBLIC;

CREATE FUNCTION gpujoin_prewarm(relation regclass, columns name[] DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpujoin_prewarm'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION gpujoin_prewarm(regclass, name[]) IS 'make columns of a table resident; returns how many of its pages are';

-- ---- which sessions load it

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

-- ---- set operations

CREATE FUNCTION gpu_intersect(int[], int[])
RETURNS int[]
AS 'MODULE_PATHNAME', 'gpu_intersect_int4'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION gpu_intersect(int[], int[]) IS 'elements of both arrays, sorted and unique';

CREATE FUNCTION gpu_intersect(bigint[], bigint[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'gpu_intersect_int8'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION gpu_intersect(bigint[], bigint[]) IS 'elements of both arrays, sorted and unique';

CREATE FUNCTION gpu_intersect_count(int[], int[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpu_intersect_count_int4'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION gpu_intersect_count(int[], int[]) IS 'number of distinct elements of both arrays';

CREATE FUNCTION gpu_intersect_count(bigint[], bigint[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'gpu_intersect_count_int8'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION gpu_intersect_count(bigint[], bigint[]) IS 'number of distinct elements of both arrays';

-- ---- load the library now, and say which other sessions have it

LOAD 'MODULE_PATHNAME';

CREATE FUNCTION gpujoin_announce()
RETURNS void
AS 'MODULE_PATHNAME', 'gpujoin_announce'
LANGUAGE C VOLATILE STRICT;

SELECT gpujoin_announce();

DROP FUNCTION gpujoin_announce();
