# What the benchmarks share.  They run against the server that psql connects to (PGHOST, PGUSER, PGDATABASE), which
# must have gpujoin installed and gpujoin.device set; tables are logged and made once.  Tables are printed as markdown.
set -euo pipefail
export PGOPTIONS="${PGOPTIONS:-} -c client_min_messages=warning"
scale=${GJ_SCALE:-1} repeat=${GJ_REPEAT:-5}

sql() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
# rows N: N scaled
rows() { awk -v n="$1" -v s="$scale" 'BEGIN { printf "%d", n * s }'; }
have() { [ "$(sql -c "SELECT to_regclass('$1') IS NOT NULL")" = t ]; }

# insert_parallel TABLE N EXPRESSIONS: N rows of the expressions over i, by several sessions
insert_parallel() {
	local table=$1 n=$2 expressions=$3 sessions=${GJ_LOAD_SESSIONS:-8} i
	for i in $(seq 0 $((sessions - 1))); do
		sql -c "INSERT INTO $table SELECT $expressions FROM generate_series($n::bigint * $i / $sessions + 1, $n::bigint * ($i + 1) / $sessions) i" &
	done
	wait
	sql -c "VACUUM ANALYZE $table"
}

# psql's times, in milliseconds, a line each; of such lines the median, and "median min–max"
timings() { sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'; }
middle() { sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'; }
statistics() { sort -n | awk '{ t[NR] = $1 } END { printf "%.1f %.1f–%.1f\n", t[int((NR + 1) / 2)], t[1], t[NR] }'; }
# has_database NAME; tpc_database BENCHMARK: the name of that of bench/tpc.sh
has_database() { [ "$(sql -d postgres -c "SELECT count(*) FROM pg_database WHERE datname = '$1'")" = 1 ]; }
tpc_database() { echo "$1_$(tr . _ <<<"$scale")"; }

# times SETTINGS QUERY REPEAT: runs the query once, then REPEAT times; sets $median, $spread (min to max) and $answer
times() {
	local settings=$1 query=$2 n=$3 out
	out=$({ echo "$settings;"; [ "$n" = 1 ] || echo "$query;"; echo '\timing on'; for _ in $(seq "$n"); do echo "$query;"; done; } | sql)
	answer=$(sed '/^Time: /d' <<<"$out" | sort -u)
	read -r median spread < <(timings <<<"$out" | statistics)
}

# cold_times SETTINGS QUERY REPEAT: the same with nothing of any table on the device before each run
cold_times() {
	local out
	out=$({ echo "$1;"; for _ in $(seq "$3"); do printf 'SELECT NULL FROM gpujoin_cache_evict();\n\\timing on\n%s;\n\\timing off\n' "$2"; done; } | sql)
	answer=$(sed '/^Time: /d; /^$/d' <<<"$out" | sort -u)
	read -r median spread < <(timings <<<"$out" | statistics)
}

# compare_times SETTINGS_A SETTINGS_B QUERY REPEAT: the same for two settings in turn, in one session; also sets
# $median_b and $spread_b
compare_times() {
	local query=$3 n=$4 out
	out=$({ echo "$1;"; echo "$query;"; echo "$2;"; echo "$query;"
		for _ in $(seq "$n"); do printf '%s;\n\\timing on\n%s;\n\\timing off\n' "$1" "$query" "$2" "$query"; done; } |
		sql | timings)
	read -r median spread < <(sed -n 1~2p <<<"$out" | statistics)
	read -r median_b spread_b < <(sed -n 2~2p <<<"$out" | statistics)
}

# phases SETTINGS QUERY: the phases of a GpuJoin, in milliseconds
phases() {
	{ echo "$1;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $2;"; } | sql | grep -E 'Times:|Load:|Loading:|Loader|Fallback:' | sed 's/^ */    /'
}

# uses_gpujoin SETTINGS QUERY: fails unless GpuJoin ran the query
uses_gpujoin() {
	local plan
	plan=$({ echo "$1;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $2;"; } | sql)
	grep -q 'Custom Scan (GpuJoin)' <<<"$plan" && ! grep -q 'Fallback:' <<<"$plan" || { echo "GpuJoin did not run: $2" >&2; echo "$plan" >&2; exit 1; }
}

# set_workers [N]: up to N workers help gpujoin to load, or as many as it takes by itself where the server may have 16; says if the server cannot have them
set_workers() {
	local n=$(nproc)
	n=$((n - n / 5))
	set -- "${1:-$((n < 16 ? n - 1 : 15))}"
	gpu="SET gpujoin.enabled = on; SET gpujoin.loader_workers = $1; SET max_parallel_workers = $(($1 > 8 ? $1 : 8))"
	[ "$(sql -c 'SHOW max_worker_processes')" -gt "$1" ] || echo "max_worker_processes is too small for $1 loader workers" >&2
}

# load_rates SETTINGS QUERY REPEAT: sets $launched, the loader workers of a GpuJoin, and $rate, the median GB/s of pages
load_rates() {
	local plans
	plans=$({ echo "$1;"; for _ in $(seq "$3"); do echo "EXPLAIN (ANALYZE, COSTS OFF) $2;"; done; } | sql)
	launched=$(sed -n 's/.*Loader Workers Launched: //p' <<<"$plans" | sort -n | head -1)
	launched=${launched:-0}
	rate=$(sed -n 's/.*Loading: .* ms  \([0-9.]*\) GB.*/\1/p' <<<"$plans" | middle)
}

# make_j1: the tables of J1, and $j1_query
make_j1() {
	j1_query="SELECT count(*), sum(f.v + d.v) FROM j1_fact f JOIN j1_dim d USING (k)"
	if have j1_fact; then return; fi
	sql -c "CREATE TABLE j1_fact (k int, v int)" -c "CREATE TABLE j1_dim (k int, v int)"
	insert_parallel j1_dim "$(rows 10000000)" "i - 1, (i % 1000)::int"
	insert_parallel j1_fact "$(rows 50000000)" "(i * 7919) % $(rows 10000000), (i % 1000)::int"
}

machine() {
	echo "$(date +%F), $(sql -c 'SHOW server_version' | cut -d' ' -f1) on $(nproc) cores, shared_buffers $(sql -c 'SHOW shared_buffers'), huge_pages $(sql -c 'SHOW huge_pages'); $(sql -c "SELECT string_agg(device || ': ' || name, ', ') FROM gpujoin_devices WHERE device = current_setting('gpujoin.device')")"
}
row() { printf '| %s | %s | %s | %s |\n' "$@"; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }

native="SET gpujoin.enabled = off"
one="SET gpujoin.enabled = off; SET max_parallel_workers_per_gather = 0"
# every row through a worker, which PostgreSQL's cost model finds too dear
workers="SET gpujoin.enabled = off; SET parallel_tuple_cost = 0"
gpu="SET gpujoin.enabled = on"
