#!/bin/bash
# The joins of the goals, cold (pages in shared_buffers, nothing on the device) and resident (the second run of a query):
#
#   S0  count(*), sum(v) over 50 M rows, no join
#   J1  count(*), sum(f.v + d.v), 50 M rows joined with 10 M on int4
#   J2  J1, GROUP BY f.k % 1000
#   J3  count(*), sum(a.v + b.v), 2^27 rows joined with 2^27 on int8
#
#   bench/joins.sh [S0|J1|J2|J3...]
#
# against PostgreSQL's best plan and, if GJ_DUCKDB names libduckdb.so, DuckDB on its own tables; J1 also against PostgreSQL with one
# process (once), and as the first query of a session, which has yet to map the shared buffers.
# GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed (PostgreSQL's J3: once), GJ_LOADER_WORKERS=N how many
# workers help gpujoin to load (as many as it takes by itself).
cd "$(dirname "$0")" && . ./lib.sh
[ "$*" = J3 ] || make_j1
set_workers "${GJ_LOADER_WORKERS:-}"
j3_rows=$(rows 134217728)
duck=
if [ -n "${GJ_DUCKDB:-}" ]; then duck=$(mktemp /tmp/duckdb_peer.XXXXXX); gcc -O2 -o "$duck" duckdb_peer.c -ldl; trap 'rm -f "$duck"' EXIT; fi

# one_process NAME QUERY ANSWER: PostgreSQL without workers, and gpujoin cold in new sessions
one_process() {
	local name=$1 query=$2 expected=$3 cold=$median fresh
	fresh=$(for _ in $(seq "$repeat"); do cold_times "$gpu" "$query" 1; echo "$median"; done | middle)
	row "$name: gpujoin, cold, first query of a session" "$fresh" "" "$(ratio "$native_ms" "$fresh")"
	times "$one" "$query" 1
	[ "$answer" = "$expected" ] || { echo "$name: answers differ: $answer, $expected" >&2; exit 1; }
	row "$name: PostgreSQL, 1 process (gpujoin, cold: $(ratio "$median" "$cold") times as fast)" "$median" "" "$(ratio "$native_ms" "$median")"
}

# measure NAME QUERY NATIVE_REPEAT DUCKDB_SETUP
measure() {
	local name=$1 query=$2 native_repeat=$3 setup=$4 expected
	uses_gpujoin "$gpu" "$query"
	times "$native" "$query" "$native_repeat"; native_ms=$median native_spread=$spread expected=$answer
	row "$name: PostgreSQL, best plan" "$native_ms" "$native_spread" ""
	if [ -n "$duck" ]; then
		IFS=$'\t' read -r _ duck_ms low high _ < <({ printf '%s' "$setup"; printf -- '--time %s\n%s\n;\n' "$name" "$query"; } | "$duck" "$repeat" 2>/dev/null)
		row "$name: DuckDB" "$duck_ms" "$low–$high" "$(ratio "$native_ms" "$duck_ms")"
	fi
	cold_times "$gpu" "$query" "$repeat"
	[ "$answer" = "$expected" ] || { echo "$name: answers differ: $answer, $expected" >&2; exit 1; }
	row "$name: gpujoin, cold" "$median" "$spread" "$(ratio "$native_ms" "$median")"
	[ "$name" != J1 ] || one_process "$name" "$query" "$expected"
	phases "SELECT NULL FROM gpujoin_cache_evict()" "$query" >>"$details"
	times "$gpu" "$query" "$((repeat + 4))"
	[ "$answer" = "$expected" ] || { echo "$name: answers differ: $answer, $expected" >&2; exit 1; }
	row "$name: gpujoin, resident" "$median" "$spread" "$(ratio "$native_ms" "$median")"
	{ echo "$name, resident:"; phases "$gpu" "$query"; } >>"$details"
}

details=$(mktemp /tmp/gj_details.XXXXXX)
echo "## Joins"
echo
machine
echo
row what "median ms" "min–max" "times PostgreSQL's speed"
row --- ---: ---: ---:
j1_setup=$(printf 'CREATE TABLE j1_dim AS SELECT i::INTEGER AS k, ((i + 1) %% 1000)::INTEGER AS v FROM range(%s) t(i)\n;\nCREATE TABLE j1_fact AS SELECT ((i * 7919) %% %s)::INTEGER AS k, (i %% 1000)::INTEGER AS v FROM range(1, %s) t(i)\n;\n' "$(rows 10000000)" "$(rows 10000000)" "$(($(rows 50000000) + 1))")$'\n'
for name in ${*:-S0 J1 J2 J3}; do
	case $name in
		S0) measure S0 "SELECT count(*), sum(v) FROM j1_fact" "$repeat" "$j1_setup" ;;
		J1) measure J1 "$j1_query" "$repeat" "$j1_setup" ;;
		J2) measure J2 "SELECT f.k % 1000, count(*), sum(f.v + d.v) FROM j1_fact f JOIN j1_dim d USING (k) GROUP BY f.k % 1000 ORDER BY 1" "$repeat" "$j1_setup" ;;
		J3)
			if ! have j3_a; then
				sql -c "CREATE TABLE j3_a (k bigint, v bigint)" -c "CREATE TABLE j3_b (k bigint, v bigint)"
				GJ_LOAD_SESSIONS=$(nproc) insert_parallel j3_a "$j3_rows" "(i * 7919) % $j3_rows, i % 1000" &
				GJ_LOAD_SESSIONS=$(nproc) insert_parallel j3_b "$j3_rows" "i - 1, i % 1000" &
				wait
				# each held back what the other might freeze
				sql -c "VACUUM j3_a, j3_b"
			fi
			measure J3 "SELECT count(*), sum(a.v + b.v) FROM j3_a a JOIN j3_b b USING (k)" 1 "$(printf 'CREATE TABLE j3_a AS SELECT (i * 7919) %% %s AS k, i %% 1000 AS v FROM range(1, %s) t(i)\n;\nCREATE TABLE j3_b AS SELECT i AS k, (i + 1) %% 1000 AS v FROM range(%s) t(i)\n;\n' "$j3_rows" "$((j3_rows + 1))" "$j3_rows")"$'\n' ;;
	esac
done
echo
echo "Phases (they overlap with load):"
echo
cat "$details"; rm -f "$details"
