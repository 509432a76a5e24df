#!/bin/bash
# Several GPUs for one query, and inner sides larger than a GPU may use: count(*), sum(a.v + b.v) over 2^GJ_BITS ⋈ 2^GJ_BITS rows
# of two int8; a small inner side (2^17 rows) under the same outer one, of which few rows match; and one of 2^GJ_DIMENSION=20 rows in
# which each of 2^GJ_BITS others has a match, as facts have in a dimension.  In parts, GJ_PARTS (with one GPU: memory sets; with more:
# scale skew sets):
#   memory  one GPU, without a limit and with gpujoin.device_memory_limit at 1/8 of what the inner side needs, kept in host
#           memory, then in temporary files
#   scale   1, 2, 4, 8 GPUs, as far as there are any (gpujoin.devices_per_query): columns resident, and nothing on the GPUs before
#           (with the GB/s of pages that were loaded); all inner rows on each GPU, or exchanged by key: outer rows in each
#           run, or before, so that they are where they belong
#   small   of that the small inner sides alone
#   auto    the large tables where a query may use less memory on each GPU than the inner side needs: in parts on one, exchanged on more
#   skew    half of the rows of both sides with one key, as a semi join and with an aggregate; how long each GPU was idle
#   sets    all pairs of 2^GJ_SETS sets on 1, 2, 4, 8 GPUs
#   ring    nested loops of 2^GJ_RING=20 by as many rows by a band, int4, without a limit; and of twice as many on both sides, where
#           a GPU may use memory for half of the inner side (GJ_RING_LIMIT MB): with all inner rows on each GPU or in blocks from
#           the host, or in a ring
#   ranges  2^GJ_BITS ⋈ 2^GJ_BITS unsorted keys by sort-merge, and by a band: all inner rows on each GPU, exchanged by key, or by ranges
#   tables  only makes the tables of the parts that are named beside it
# GJ_BITS is 27 with one GPU, else 28.  GJ_REPEAT=3 is how often each is timed, GJ_LOAD_SESSIONS=16 how many sessions make the tables
# (GJ_BITS=28: 36 GB, and half as much WAL), GJ_HEAP=1 writes their files instead, which takes seconds (as the server's user or
# root, on its machine), GJ_LOADER_WORKERS=N workers that load (as many as gpujoin takes by itself).  Needs a superuser and gcc.  Whatever the split, the answer must be the same.
# GJ_KEY_GAP=1: keys are multiples of it.  With 1 every key between the least and the greatest has a row, so that the inner side needs no
# table, but is put into the order of its keys; with 1000 it needs a hash table.
# GJ_COLD=no leaves out what starts with nothing on the GPUs.  GJ_GPUS="1 2 4 8" and GJ_SET_ALGORITHMS="inverted_index matrix": which of these.  What each part took is told on stderr.
GJ_REPEAT=${GJ_REPEAT:-3}
cd "$(dirname "$0")" && . ./lib.sh
ngpus=$(sql -c "SELECT count(*) FROM gpujoin_devices WHERE device = current_setting('gpujoin.device')")
[ "$ngpus" -gt 0 ] || { echo "gpujoin.device = $(sql -c 'SHOW gpujoin.device') has no device" >&2; exit 1; }
if [ "$ngpus" = 1 ]; then bits=${GJ_BITS:-27} parts=${GJ_PARTS:-memory sets}; else bits=${GJ_BITS:-28} parts=${GJ_PARTS:-scale skew sets}; fi
set_bits=${GJ_SETS:-19}
n=$((1 << bits)) hot_n=$((1 << (bits - 2))) dimension_bits=${GJ_DIMENSION:-20}
dimension=$((1 << dimension_bits))
gap=${GJ_KEY_GAP:-1}
t=rows_${bits}_gap_$gap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted() { [[ " $parts " == *" $1 "* ]]; }
began=$SECONDS
took() { echo "$1: $((SECONDS - began)) s" >&2; began=$SECONDS; }

# make_table TABLE N KEYS MULTIPLIER [HOT]: N rows, their keys those of make_rows; in the background
make_table() {
	local table=$1 rows=$2 keys=$3 multiplier=$4 hot=${5:-}
	! have "$table" || return 0
	[ -x "$work/make_rows" ] || gcc -O3 -o "$work/make_rows" make_rows.c
	sql -c "CREATE TABLE ${table} (k bigint, v bigint)"
	# without all rows it is not there
	(if [ -n "${GJ_HEAP:-}" ]; then write_table; else copy_table; fi || { sql -c "DROP TABLE $table"; exit 1; }) &
	making+=($!)
	made+=("$table")
}
# by several sessions at once
copy_table() {
	local sessions=${GJ_LOAD_SESSIONS:-16} pids=() ok=true i
	for i in $(seq 0 $((sessions - 1))); do
		"$work/make_rows" "$keys" $((rows * i / sessions)) $((rows * (i + 1) / sessions)) "$multiplier" "$gap" $hot |
			sql -c "\\copy $table FROM STDIN (FORMAT binary)" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || ok=false; done
	$ok
}
write_table() {
	local data file
	data=$(sql -c "SHOW data_directory")
	file=$data/$(sql -c "SELECT pg_relation_filepath('$table')")
	"$work/make_rows" --heap "$file" "$(sql -c "SELECT pg_current_wal_lsn() - '0/0'")" "$keys" 0 "$rows" "$multiplier" "$gap" $hot &&
		chown --reference="$data/PG_VERSION" "$file"*
}
making=() made=()
# keys in no order: the multipliers are primes
if wanted scale || wanted memory || wanted auto || wanted ranges; then
	make_table ${t}_a "$n" "$n" 7919
	make_table ${t}_b "$n" "$n" 104729
fi
if wanted scale || wanted small; then
	make_table ${t}_fact_$dimension_bits "$n" "$dimension" 7919
	make_table ${t}_dimension_$dimension_bits "$dimension" "$dimension" 1
fi
! wanted small || make_table ${t}_a "$n" "$n" 7919
make_table ${t}_small 131072 131072 1
if wanted skew; then
	make_table ${t}_hot_a "$hot_n" "$hot_n" 7919 7
	make_table ${t}_hot_b "$hot_n" "$hot_n" 104729 7
fi
if wanted sets && ! have "sets_$set_bits"; then
	# 24 of 4096 elements, the small ones in more sets than the others
	(
		sql -c "CREATE TABLE unordered_sets_$set_bits (id int, s int[])"
		insert_parallel "unordered_sets_$set_bits" $((1 << set_bits)) "i, ARRAY(SELECT DISTINCT ((hashint8extended(i, j) & 65535) * (hashint8extended(i, j + 100) & 65535) >> 20)::int FROM generate_series(1, 24) j)"
		# in the order of their ids, as they would have been added
		sql -c "CREATE TABLE sets_$set_bits AS SELECT * FROM unordered_sets_$set_bits ORDER BY id" -c "DROP TABLE unordered_sets_$set_bits"
	) &
	making+=($!)
	made+=("sets_$set_bits")
fi
ring_bits=${GJ_RING:-20}
ring=ring_$ring_bits
ring_rows=$((1 << ring_bits)) ring_many=$((1 << (ring_bits + 1)))
# make_ring TABLE ROWS MULTIPLIER
make_ring() {
	! have "$1" || return 0
	(
		sql -c "DROP TABLE IF EXISTS making_$1" -c "CREATE TABLE making_$1 (k int, v int)"
		insert_parallel "making_$1" "$2" "i * $3 & ($2 - 1), i % 1000"
		sql -c "ALTER TABLE making_$1 RENAME TO $1"
	) &
	making+=($!)
	made+=("$1")
}
if wanted ring; then
	make_ring ${ring}_a "$ring_rows" 7919
	make_ring ${ring}_b "$ring_rows" 104729
	make_ring ${ring}_c "$ring_many" 7919
	make_ring ${ring}_d "$ring_many" 104729
fi
for i in "${making[@]}"; do wait "$i"; done
# only now nobody has a snapshot that is older than the rows: their pages become all-visible
for i in "${made[@]}"; do sql -c "VACUUM ANALYZE $i" & done
wait
took tables
! wanted tables || exit 0

large="SELECT count(*), sum(a.v + b.v) FROM ${t}_a a JOIN ${t}_b b USING (k)"
small="SELECT count(*), sum(a.v + b.v) FROM ${t}_a a JOIN ${t}_small b USING (k)"
star="SELECT count(*), sum(a.v + b.v) FROM ${t}_fact_$dimension_bits a JOIN ${t}_dimension_$dimension_bits b USING (k)"
hot_semi="SELECT count(*), sum(a.v) FROM ${t}_hot_a a WHERE EXISTS (SELECT FROM ${t}_hot_b b WHERE a.k = b.k)"
hot_sum="SELECT count(*), sum(a.v + b.v) FROM ${t}_hot_a a JOIN ${t}_small b USING (k)"
set_workers "${GJ_LOADER_WORKERS:-}"
gpu="$gpu; SET gpujoin.force = on"
counts=()
for g in ${GJ_GPUS:-1 2 4 8}; do [ "$g" -gt "$ngpus" ] || counts+=("$g"); done

# same ANSWER: fails unless all that were given since the last `expected=` are the same
same() {
	[ -n "$expected" ] || expected=$1
	[ "$1" = "$expected" ] || { echo "answers differ: $1, $expected" >&2; exit 1; }
}
# used SETTINGS QUERY: which GPUs had how much to do
used() { { echo "$1;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $2;"; } | sql; }
# columns NAME GPUS MS SPREAD: adds how many times as fast as the first row of that name, and the goal
first_ms=
table_row() {
	local goal=$5
	[ "$2" != 1 ] || first_ms=$3
	printf '| %s | %s | %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" "$(ratio "$first_ms" "$3")" "$goal"
}
# goal GPUS OF_2 OF_4 OF_8
goal() { case $1 in 2) echo "$2" ;; 4) echo "$3" ;; 8) echo "$4" ;; esac; }
heading() { printf '\n### %s\n\n' "$1"; shift; printf '| %s ' "$@"; echo '|'; printf -- '| --- %.0s' "$@"; echo '|'; }

echo "## Several GPUs, and little memory"
echo
machine

# several NAME QUERY EXCHANGE GOAL_2 GOAL_4 GOAL_8: resident, then cold
several() {
	local name=$1 query=$2 exchange=$3 two=${4:-} four=${5:-} eight=${6:-} g settings
	expected=
	for g in "${counts[@]}"; do
		settings="$gpu; SET gpujoin.devices_per_query = $g; SET gpujoin.exchange = $exchange"
		# where columns lie follows from the devices of the run that has loaded them; what is built of them stays from the second run on
		sql -c 'SELECT gpujoin_cache_evict()' >/dev/null
		uses_gpujoin "$settings" "$query"
		times "$settings; $query; $query" "$query" "$repeat"
		same "$answer"
		table_row "$name, resident" "$g" "$median" "$spread" "$(goal "$g" "$two" "$four" "$eight")"
		used "$settings" "$query" >"$work/plan"
		sed -n 's/^ *\(Devices Used: .*\|Exchanged: .*\|Spilled: .*\|Times: .*\)/\1/p' "$work/plan" >&2
	done
	[ "${GJ_COLD:-}" != no ] || return 0
	for g in "${counts[@]}"; do
		settings="$gpu; SET gpujoin.devices_per_query = $g; SET gpujoin.exchange = $exchange"
		cold_times "$settings" "$query" "$repeat"
		same "$answer"
		load_rates "$settings; SELECT NULL FROM gpujoin_cache_evict()" "$query" 1
		table_row "$name, cold" "$g" "$median" "$spread" "loads ${rate:-?} GB/s of pages, $launched workers"
	done
}

if wanted scale || wanted small; then
	heading "2^$bits rows on 1, 2, 4, 8 GPUs, keys are multiples of $gap" "query" GPUs "median ms" "min–max" "1 GPU / it" "goal, or what limits it"
	several "2^$bits ⋈ 2^17, a small inner side on each" "$small" off 1.8 3.6 7
	took "a small inner side"
	several "2^$bits ⋈ 2^$dimension_bits, every row has a match" "$star" off 1.8 3.6 7
	took "a dimension"
fi
if wanted scale; then
	several "2^$bits ⋈ 2^$bits, exchanged in each run" "$large" "on; SET gpujoin.keep_exchanged = off" 1.5 2.5 4
	took "exchange"
	GJ_COLD=no several "2^$bits ⋈ 2^$bits, exchanged before" "$large" on 1.5 2.5 4
	took "after an exchange"
	if [ "$ngpus" -gt 1 ]; then
		all=("${counts[@]}")
		counts=(1 "${counts[-1]}")
		several "2^$bits ⋈ 2^$bits, all inner rows on each" "$large" off
		counts=("${all[@]}")
		took "without an exchange"
	fi
fi

if wanted auto && [ "$ngpus" -gt 1 ]; then
	# nine tenths of what the planner expects an inner side to take: src/daemon/team/strategy/exchange.c
	limit=$((n * 64 * 9 / 10 >> 20))
	heading "2^$bits ⋈ 2^$bits on GPUs of which a query may use ${limit} MB each, too little for all inner rows" "query" GPUs "median ms" "min–max" "1 GPU / it" "goal"
	gpu="$gpu; SET gpujoin.device_memory_limit = '${limit}MB'; SET gpujoin.spill_memory = '$(((n * 72 >> 20) + 64))MB'"
	GJ_COLD=no several "2^$bits ⋈ 2^$bits, as auto does it" "$large" auto
	took "too little memory on each"
	gpu=${gpu%; SET gpujoin.device_memory_limit*}
fi

# schemes NAME QUERY GOAL EXCHANGE...: one GPU, then more with each of gpujoin.exchange.  @ in the query is another number in each
# run, so that no run finds an inner side that the run before has sorted.  $before is run first, with $cold before each run.
schemes() {
	local name=$1 query=$2 goal=$3 g exchange settings i; shift 3
	first_ms=0
	expected=
	for g in "${counts[@]}"; do for exchange in "$@"; do
		[ "$g" -gt 1 ] || [ "$exchange" = "$1" ] || continue
		settings="$gpu; SET gpujoin.devices_per_query = $g; SET gpujoin.exchange = $exchange; SET gpujoin.algorithm = $algorithm; SET gpujoin.forbid_fallback = on"
		# PostgreSQL would take hours
		if ! used "$settings; $before" "${query//@/0}" >"$work/plan" 2>"$work/error"; then
			cat "$work/error" >&2
			echo "| $name | $exchange | $g | cannot | $(grep -o 'DETAIL:.*' "$work/error" | head -1) | | |"
			continue
		fi
		if ! grep -q 'Custom Scan (GpuJoin)' "$work/plan"; then cat "$work/plan" >&2; exit 1; fi
		case $g/$exchange in 1/*) ;; */ring | */ranges) grep -q "Exchanged: .*$exchange" "$work/plan" || { cat "$work/plan" >&2; exit 1; } ;; esac
		sed -n 's/^ *\(Devices Used: .*\|Exchanged: .*\|Spilled: .*\|Passes: .*\|Times: .*\)/\1/p' "$work/plan" >&2
		{
			echo "$settings; $before; ${query//@/1};"
			for i in $(seq 2 $((repeat + 1))); do
				[ -z "$cold" ] || echo "$before;"
				printf '\\timing on\n%s;\n\\timing off\n' "${query//@/$i}"
			done
		} | sql >"$work/runs"
		same "$(sed '/^Time: /d; /^$/d' "$work/runs" | sort -u)"
		read -r median spread < <(timings <"$work/runs" | statistics)
		[ "$g" -gt 1 ] || exchange=
		table_row "$name | $exchange" "$g" "$median" "$spread" "$(goal "$g" "$goal")"
	done; done
}

if wanted ring; then
	heading "Nested loops of 2^$ring_bits rows by a band of int4" "query" exchange GPUs "median ms" "min–max" "1 GPU / it" "goal"
	algorithm=nested_loop cold=
	band() { echo "SELECT count(*), sum(a.v + b.v) FROM $1 a LEFT JOIN $2 b ON a.k <= b.k AND a.k + 3 > b.k AND b.v >= -@"; }
	resident() { local t; echo "SELECT NULL FROM gpujoin_cache_evict()"; for t in "$@"; do echo "; SELECT NULL FROM gpujoin_prewarm('$t')"; done; }
	before=$(resident ${ring}_a ${ring}_b)
	schemes "2^$ring_bits by 2^$ring_bits" "$(band ${ring}_a ${ring}_b)" 1.8 off ring
	took "nested loops"
	# half of what the planner expects the inner side to take, and what a GPU needs to work in
	limit=${GJ_RING_LIMIT:-$(((ring_many * (48 + 8) / 2 + (80 << 20)) >> 20))}
	gpu="$gpu; SET gpujoin.device_memory_limit = '${limit}MB'; SET gpujoin.spill_memory = '4GB'"
	before=$(resident ${ring}_c ${ring}_d)
	schemes "2^$((ring_bits + 1)) by 2^$((ring_bits + 1)), $limit MB on each GPU" "$(band ${ring}_c ${ring}_d)" 1.8 off ring
	gpu=${gpu%; SET gpujoin.device_memory_limit*}
	took "nested loops with little memory"
fi

if wanted ranges; then
	heading "Sort-merge joins of 2^$bits rows in no order" "query" exchange GPUs "median ms" "min–max" "1 GPU / it" "goal"
	algorithm=sort_merge cold= before="SELECT NULL FROM gpujoin_cache_evict(); SELECT NULL FROM gpujoin_prewarm('${t}_a'); SELECT NULL FROM gpujoin_prewarm('${t}_b')"
	schemes "2^$bits ⋈ 2^$bits" "SELECT count(*), sum(a.v + b.v) FROM ${t}_a a JOIN ${t}_b b ON a.k = b.k AND a.v >= -@ AND b.v >= -@" 1.5 off on ranges
	took "sort-merge joins"
	schemes "2^$bits ⋈ 2^$bits, a band" "SELECT count(*), sum(a.v + b.v) FROM ${t}_a a LEFT JOIN ${t}_b b ON b.k BETWEEN a.k AND a.k + $gap AND b.v >= -@" 1.5 off ranges
	took "sort-merge joins by a band"
fi

if wanted skew; then
	heading "Half of the rows with one key, 2^$((bits - 2)) rows" "query" GPUs exchange "median ms" "min–max" "idle"
	for exchange in auto on; do
		for what in semi sum; do
			[ $what = semi ] && query=$hot_semi name="semi join, both sides" || query=$hot_sum name="sum, small inner side"
			expected=$(sql -c "$gpu" -c "SET gpujoin.devices_per_query = 1" -c "$query")
			for g in "${counts[@]}"; do
				settings="$gpu; SET gpujoin.devices_per_query = $g; SET gpujoin.exchange = $exchange"
				[ "$g" -gt 1 ] || [ "$exchange" = auto ] || continue
				sql -c 'SELECT gpujoin_cache_evict()' >/dev/null
				uses_gpujoin "$settings" "$query"
				times "$settings; $query; $query" "$query" "$repeat"
				same "$answer"
				idle=$(used "$settings; $query" "$query" | grep -o 'idle=[0-9]*%' | tr '\n' ' ' || true)
				printf '| %s | %s | %s | %s | %s | %s |\n' "$name" "$g" "$exchange" "$median" "$spread" "${idle:-}"
			done
		done
	done
	took skew
fi

if wanted memory; then
	# what a row of the inner side takes while its table is built, see src/daemon/team/strategy/partition.h
	limit=$(((n * (2 * 9 + 80 + 9) / 8 >> 20) + 1))
	[ "$limit" -ge 16 ] || limit=16
	heading "2^$bits ⋈ 2^$bits on one GPU with little memory" "memory" "median ms" "min–max" "it / without a limit" "goal" "passes"
	one="$gpu; SET gpujoin.devices_per_query = 1"
	expected=
	uses_gpujoin "$one" "$large"
	cold_times "$one" "$large" "$repeat"
	same "$answer"
	free=$median
	printf '| %s | %s | %s | %s | %s | %s |\n' "all, nothing on the GPU before" "$median" "$spread" 1.0 "" 1
	took "without a limit"
	for where in "host memory" "temporary files"; do
		[ "$where" = "host memory" ] && spill="$(((n * 36 >> 20) + 64))MB" || spill=0
		settings="$one; SET gpujoin.device_memory_limit = '${limit}MB'; SET gpujoin.spill_memory = '$spill'"
		used "$settings" "$large" >"$work/plan"
		if grep Fallback: "$work/plan" >&2; then exit 1; fi
		grep -E 'Spilled:|Times:|Loading:' "$work/plan" >&2 || true
		cold_times "$settings" "$large" "$repeat"
		same "$answer"
		printf '| %s | %s | %s | %s | %s | %s |\n' "${limit} MB, $where" "$median" "$spread" "$(ratio "$median" "$free")" "≤ 3" "$(sed -n 's/.*Passes: //p' "$work/plan")"
		took "$where"
	done
fi

if wanted sets; then
	heading "All pairs of 2^$set_bits sets of 24 elements" "query" GPUs "median ms" "min–max" "1 GPU / it" "goal"
	expected=
	query="SELECT count(*), sum(common) FROM gpu_set_join('SELECT id, s FROM sets_$set_bits', NULL, 'overlap', 7)"
	for algorithm in ${GJ_SET_ALGORITHMS:-inverted_index matrix}; do
		for g in "${counts[@]}"; do
			settings="$gpu; SET gpujoin.set_device_min_elements = 0; SET gpujoin.set_algorithm = $algorithm; SET gpujoin.devices_per_query = $g"
			times "$settings" "$query" "$repeat"
			same "$answer"
			table_row "$algorithm" "$g" "$median" "$spread" "$(goal "$g" "" 3.5 7)"
			used "$settings" "$query" | grep -E 'Times:|Pairs:|Fallback' >&2 || true
		done
	done
	took sets
fi

# where it saturates: what the loader, the host's memory and PCIe do in the same time
if wanted scale && [ "${GJ_COLD:-}" != no ]; then
	printf '\nPhases with all GPUs, nothing on them before (they overlap with load, and add up over the GPUs):\n\n'
	phases "$gpu; SET gpujoin.devices_per_query = 0; SELECT NULL FROM gpujoin_cache_evict()" "$large"
fi
