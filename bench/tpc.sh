#!/bin/bash
# TPC-H (22 queries) or the Star Schema Benchmark (13): are all answers PostgreSQL's, what of each query runs on the
# device, and how long it takes.
#
#   bench/tpc.sh tpch|ssb [QUERY...]
#
#   GJ_SCALE=1       scale factor; the data are made by bench/tpcgen.c, into a database of that name, once
#   GJ_REPEAT=5      how often each is timed; 0: answers and plans only
#   GJ_FORCE=1       gpujoin.force: what could run on the device, whatever it costs
#
#   GJ_DUCKDB=FILE   libduckdb.so: DuckDB on its own tables as a peer
#
# "Cold" is a run with nothing of any table on the device, "resident" one of the runs after another.
# Joins and aggregates are counted in the plan: "device" are those of GpuJoin nodes, "host" all others outside of fallbacks.
# Closes with "N passed, N failed", a query being one, and fails if an answer differs.
here=$(cd "$(dirname "$0")" && pwd)
benchmark=${1:-}; shift || true
[ "$benchmark" = tpch ] || [ "$benchmark" = ssb ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
cd "$here" && . ./lib.sh
database=$(tpc_database "$benchmark")
sessions=${GJ_LOAD_SESSIONS:-$(nproc)}
case $benchmark in
	tpch) tables="region nation supplier part partsupp customer orders lineitem" ;;
	ssb) tables="customer supplier part date lineorder" ;;
esac

scratch=$(mktemp -d /tmp/gj_tpc.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
generator=$scratch/tpcgen
gcc -O2 -o "$generator" tpcgen.c

load() {
	local table i
	sql -d postgres -c "CREATE DATABASE $database"
	sql -d "$database" -f "$benchmark/schema.sql" -c "CREATE EXTENSION gpujoin"
	for table in $tables; do
		for i in $(seq 0 $((sessions - 1))); do
			"$generator" "$benchmark" "$table" "$scale" "$i" "$sessions" | sql -d "$database" -c "COPY $table FROM STDIN" &
		done
		wait
	done
	sql -d "$database" -f "$benchmark/keys.sql"
	# each may have held back what another one could have frozen
	sql -d "$database" -c VACUUM
}

# DuckDB's tables, and its time for each query: a line "name median" in $scratch/duckdb
time_duckdb() {
	local table i file
	gcc -O2 -o "$scratch/duckdb_peer" duckdb_peer.c -ldl
	for table in $tables; do
		for i in $(seq 0 $((sessions - 1))); do "$generator" "$benchmark" "$table" "$scale" "$i" "$sessions" >"$scratch/$table.$i" & done
		wait
	done
	# DuckDB looks at the first file of a table for its columns
	find "$scratch" -empty -delete
	{
		sed 's/;$/\n;/' "$benchmark/schema.sql"
		for table in $tables; do printf "COPY %s FROM '%s/%s.*' (DELIMITER '\t', HEADER false, QUOTE '')\n;\n" "$table" "$scratch" "$table"; done
		for file in "$benchmark"/q*.sql; do printf -- '--time %s\n' "$(basename "$file" .sql)"; cat "$file"; printf '\n;\n'; done
	} | "$scratch/duckdb_peer" "$repeat" | cut -f1,2 >"$scratch/duckdb"
	for table in $tables; do rm -f "$scratch/$table".*; done
}

parts_function="CREATE FUNCTION bench_parts(query text, OUT device_joins int, OUT host_joins int, OUT device_aggs int,
	OUT host_aggs int, OUT plan_sources text) LANGUAGE plpgsql AS \$\$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	WITH RECURSIVE node(n) AS (
		SELECT plan::jsonb->0->'Plan'
		UNION ALL
		SELECT c.value FROM node, jsonb_array_elements(n->'Plans') WITH ORDINALITY c(value, i),
			LATERAL (SELECT count(*) FROM jsonb_array_elements(n->'Plans') p WHERE p->>'Parent Relationship' = 'InitPlan') x(ninit)
		WHERE n->>'Custom Plan Provider' IS DISTINCT FROM 'GpuJoin' OR i <= ninit OR
			n->'Child Plans'->>(i - ninit - 1)::int IS DISTINCT FROM 'fallback')
	SELECT coalesce(sum(jsonb_array_length(n->'Joins')), 0),
		count(*) FILTER (WHERE n->>'Node Type' IN ('Hash Join', 'Merge Join', 'Nested Loop')),
		count(*) FILTER (WHERE n ? 'Device Aggregates' OR n ? 'Group Key' AND n->>'Custom Plan Provider' = 'GpuJoin'),
		count(*) FILTER (WHERE n->>'Node Type' = 'Aggregate'),
		string_agg((SELECT string_agg(s->>'Kind', ', ') FROM jsonb_array_elements(n->'Sources') s WHERE s->>'Kind' NOT LIKE 'heap%'), ', ')
	INTO device_joins, host_joins, device_aggs, host_aggs, plan_sources FROM node;
END \$\$"

has_database "$database" || load
export PGDATABASE=$database
[ "$(sql -c "SELECT count(*) FROM pg_proc WHERE proname = 'bench_parts'")" = 1 ] || sql -c "$parts_function"
# "cached" means in shared_buffers, which a large table does not enter by being read
if [ "$repeat" != 0 ] && sql -c "CREATE EXTENSION IF NOT EXISTS pg_prewarm" 2>/dev/null; then
	for table in $tables; do sql -c "SELECT NULL FROM pg_prewarm('$table')"; done >/dev/null
fi
on="SET gpujoin.enabled = on"
[ -z "${GJ_FORCE:-}" ] || on="SET gpujoin.force = on"

# what differs between two answers: nothing but the last digits of floats would be allowed, and there are none
answer() { { echo "$1;"; cat "$2"; echo ";"; } | sql; }

echo "## $benchmark, scale $scale"
echo
machine
echo
[ -z "${GJ_DUCKDB:-}" ] || [ "$repeat" = 0 ] || time_duckdb
echo "| query | rows | equal | joins: device | host | aggregates: device | host | other sources | PostgreSQL ms | cold ms | ratio | resident ms | ratio | DuckDB ms | resident to DuckDB |"
echo "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
passed=0 failed=0
for file in "$benchmark"/q*.sql; do
	name=$(basename "$file" .sql); name=${name#q}
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	expected=$(answer "$native" "$file") && got=$(answer "$on" "$file") || got=error
	if [ "$expected" = "$got" ]; then equal=yes passed=$((passed + 1)); else equal=NO failed=$((failed + 1)); fi
	IFS='|' read -r dj hj da ha sources < <({ echo "$on;"; printf 'SELECT * FROM bench_parts($query$%s$query$);\n' "$(cat "$file")"; } | sql)
	native_ms= cold_ms= resident_ms= duck_ms= cold_ratio= resident_ratio= duck_ratio=
	if [ "$repeat" != 0 ]; then
		query=$(cat "$file")
		times "$native" "$query" "$repeat"; native_ms=$median
		cold_times "$on" "$query" "$repeat"; cold_ms=$median
		times "$on" "$query" "$repeat"; resident_ms=$median
		cold_ratio=$(ratio "$native_ms" "$cold_ms") resident_ratio=$(ratio "$native_ms" "$resident_ms")
		duck_ms=$([ ! -f "$scratch/duckdb" ] || awk -v q="q$name" '$1 == q { print $2 }' "$scratch/duckdb")
		[ -z "$duck_ms" ] || duck_ratio=$(ratio "$duck_ms" "$resident_ms")
		echo "$native_ms $cold_ms $resident_ms $duck_ms" >>"$scratch/times"
	fi
	echo "| $name | $(grep -c . <<<"$expected") | $equal | $dj | $hj | $da | $ha | ${sources:-} | $native_ms | $cold_ms | $cold_ratio | $resident_ms | $resident_ratio | $duck_ms | $duck_ratio |"
	if [ $equal = NO ] && [ -n "${GJ_KEEP:-}" ]; then mkdir -p "$GJ_KEEP"; echo "$expected" >"$GJ_KEEP/$name.expected"; echo "$got" >"$GJ_KEEP/$name.got"; fi
done
[ ! -f "$scratch/times" ] || awk '{ n++; cold += log($1 / $2); resident += log($1 / $3); if (NF > 3) { m++; duck += log($4 / $3) } }
	END { printf "\nGeometric means: cold %.2f times as fast as PostgreSQL, resident %.2f times", exp(cold / n), exp(resident / n)
		if (m == n) printf ", and %.2f times as fast as DuckDB", exp(duck / n)
		print "" }' "$scratch/times"
echo
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
