#!/bin/bash
# ORDER BY of more rows, and of more groups, than a device has room for: sorted runs that are merged on the host, beside the
# same with all memory, PostgreSQL's sort above a GpuJoin (an expression that the device does not know) and PostgreSQL alone.
# Rows are counted in the server, so that no client waits for them.  40 M rows; GJ_SCALE, GJ_REPEAT (what PostgreSQL sorts runs
# once after EXPLAIN ANALYZE).
cd "$(dirname "$0")" && . ./lib.sh
set_workers
n=$(rows 40000000)
if ! have sorted_fact; then
	sql -c "CREATE TABLE sorted_fact (id bigint, k int, r int, v int)" -c "CREATE TABLE sorted_dim (k int, w bigint)"
	insert_parallel sorted_dim "$(rows 1000000)" "i - 1, i * 3"
	insert_parallel sorted_fact "$n" "i, (i * 7919) % $(rows 1000000), (i * 2654435761) % $(rows 20000000), i % 1000"
fi
row() { printf '| %s | %s | %s | %s | %s |\n' "$@"; }
native="SET gpujoin.enabled = off; SET max_parallel_workers_per_gather = 15; SET parallel_tuple_cost = 0"
gpu="$gpu; SET gpujoin.force = on; SET gpujoin.spill_memory = '16GB'"

# memory of the device that the query takes, in MB
memory_of() { { echo "$gpu;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $1;"; } | sql | sed -n 's/.*Device Memory: \([0-9]*\)kB/\1/p' | awk '{ printf "%d", $1 / 1024 }'; }

# measure WHAT SETTINGS QUERY PATTERN [REPEAT]: a row of the table; the plan has the pattern
measure() {
	local what=$1 settings=$2 query=$3 pattern=$4 repeat=${5:-$repeat} plan
	plan=$({ echo "$settings;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $query;"; } | sql)
	grep -qE "$pattern" <<<"$plan" && ! grep -q 'Fallback:' <<<"$plan" || { echo "not the plan that was wanted: $what" >&2; echo "$plan" >&2; exit 1; }
	times "$settings" "$query" "$repeat"
	[ -z "${right:-}" ] || [ "$answer" = "$right" ] || { echo "another answer: $what: $answer, not $right" >&2; exit 1; }
	right=$answer
	row "$what" "$median" "$spread" "$([ -z "${base:-}" ] || ratio "$median" "$base")" "$(sed -n 's/.*\(Sorted Runs: [0-9]*\).*/\1/p; s/.*\(Spilled: [^ ]* [^ ]*\).*/\1/p' <<<"$plan" | paste -sd' ')"
}

# table QUERY QUERY_THAT_POSTGRESQL_SORTS
table() {
	local query=$1 sorted_by_postgres=$2 memory
	base= right=
	measure "gpujoin, all memory" "$gpu" "$query" 'Sort Key'
	base=$median
	memory=$(($(memory_of "$query") / 8))
	measure "gpujoin, $memory MB (1/8)" "$gpu; SET gpujoin.device_memory_limit = '${memory}MB'" "$query" 'Sorted Runs: ([2-9]|[1-9][0-9])'
	measure "gpujoin, $memory MB, temporary files" "$gpu; SET gpujoin.device_memory_limit = '${memory}MB'; SET gpujoin.spill_memory = 0" "$query" 'disk=[1-9]'
	measure "gpujoin, PostgreSQL sorts" "$gpu" "$sorted_by_postgres" 'Sort Method' 1
	measure "PostgreSQL, all workers" "$native" "$query" 'Gather' 1
}

echo "## Sorted runs"
echo
machine
echo
row "$n rows of three columns, by two keys" "median ms" "min–max" "it / all memory" "EXPLAIN"
row --- ---: ---: ---: ---
rows="FROM sorted_fact f JOIN sorted_dim d USING (k) ORDER BY"
table "SELECT count(*), sum(w) FROM (SELECT f.id, f.r, d.w $rows f.r, f.id OFFSET 0) s" \
	"SELECT count(*), sum(w) FROM (SELECT f.id, f.r, d.w $rows int4larger(f.r, f.r), f.id OFFSET 0) s"
groups="FROM sorted_fact f GROUP BY r ORDER BY"
row "groups, half as many, by sum and key" "" "" "" ""
table "SELECT count(*), sum(c) FROM (SELECT r, count(*) AS c, sum(v) $groups sum(v) DESC, r OFFSET 0) s" \
	"SELECT count(*), sum(c) FROM (SELECT r, count(*) AS c, sum(v) $groups int8larger(sum(v), sum(v)) DESC, r OFFSET 0) s"
