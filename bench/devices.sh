#!/bin/bash
# Several GPUs for one query, and inner sides larger than a GPU may use: J3, count(*), sum(a.v + b.v) over 2^27 ⋈ 2^27 rows of
# two int8, and a small inner side (2^17 rows) under the same outer one.
#   1, 2, 4, 8 GPUs, as far as there are any (gpujoin.devices_per_query): all inner rows on each, or exchanged by key
#   half of the rows of both sides, or of the outer one, with one key
#   one GPU with gpujoin.device_memory_limit at 1/8 of what the inner side needs, kept in host memory, then in temporary files
# GJ_BITS=28 takes 2^28 rows on both sides; GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed.  Needs a superuser.  Any split must give the
# same answer.
cd "$(dirname "$0")" && . ./lib.sh
bits=${GJ_BITS:-27}
hot_bits=$((bits - 1))
n=$(rows $((1 << bits)))
[ "$bits" = 27 ] && t=j3 || t=j3_$bits
if ! have ${t}_b; then
	sql -c "CREATE TABLE ${t}_a (k bigint, v bigint)" -c "CREATE TABLE ${t}_b (k bigint, v bigint)"
	# each key once on either side, in no order: 7919 is prime and no factor of 2^27
	insert_parallel ${t}_a "$n" "(i * 7919) % $n, i % 1000"
	insert_parallel ${t}_b "$n" "(i * 104729) % $n, i % 1000"
fi
if ! have j3_small; then
	sql -c "CREATE TABLE j3_small (k bigint, v bigint)"
	insert_parallel j3_small "$(rows 131072)" "i, i % 1000"
fi
if ! have ${t}_hot_b; then
	sql -c "CREATE TABLE ${t}_hot_a (k bigint, v bigint)" -c "CREATE TABLE ${t}_hot_b (k bigint, v bigint)"
	insert_parallel ${t}_hot_a $((n / 2)) "CASE WHEN i % 2 = 0 THEN 7 ELSE (i * 7919) % $n END, i % 1000"
	insert_parallel ${t}_hot_b $((n / 2)) "CASE WHEN i % 2 = 0 THEN 7 ELSE (i * 104729) % $n END, i % 1000"
fi
large="SELECT count(*), sum(a.v + b.v) FROM ${t}_a a JOIN ${t}_b b USING (k)"
small="SELECT count(*), sum(a.v + b.v) FROM ${t}_a a JOIN j3_small b USING (k)"
hot_semi="SELECT count(*), sum(a.v) FROM ${t}_hot_a a WHERE EXISTS (SELECT FROM ${t}_hot_b b WHERE a.k = b.k)"
hot_sum="SELECT count(*), sum(a.v + b.v) FROM ${t}_hot_a a JOIN j3_small b USING (k)"
ngpus=$(sql -c "SELECT count(*) FROM gpujoin_devices WHERE device = current_setting('gpujoin.device')")

echo "## Several GPUs, and little memory"
echo
machine
echo
row what "median ms" "min–max" "1 GPU / it"
row --- ---: ---: ---:
# several NAME QUERY EXCHANGE ...: with 1, 2, 4 and 8 GPUs, whose memories have the columns from run to run
several() {
	local name=$1 query=$2 g exchange settings
	shift 2
	expected=
	for g in 1 2 4 8; do
		[ "$g" -le "$ngpus" ] || continue
		for exchange in "$@"; do
			[ "$g" -gt 1 ] || [ "$exchange" = "$1" ] || continue
			# where columns lie follows from the devices of the run that has loaded them
			sql -c 'SELECT gpujoin_cache_evict()' >/dev/null
			settings="$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = $g; SET gpujoin.exchange = $exchange"
			uses_gpujoin "$settings" "$query"
			times "$settings" "$query" "$repeat"
			[ "$g" = 1 ] && one_ms=$median expected=$answer
			[ "$answer" = "$expected" ] || { echo "answers differ: $answer, $expected" >&2; exit 1; }
			row "$name, $g GPU$([ "$g" = 1 ] || [ $# = 1 ] || echo ", exchange $exchange")" "$median" "$spread" "$(ratio "$one_ms" "$median")"
			[ "$g" = 1 ] || { echo "$settings;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $query;"; } | sql | grep -E 'Devices Used:|Exchanged:|Times:' >&2
		done
	done
}
several "2^$bits ⋈ 2^17" "$small" auto
# one key in half of both sides' rows: on one device with an exchange, which auto avoids where it knows of it
several "2^$hot_bits ⋈ 2^$hot_bits, half of the rows one key, semi join" "$hot_semi" auto on
several "2^$hot_bits ⋈ 2^17, half of the outer rows one key, sum" "$hot_sum" auto on
several "2^$bits ⋈ 2^$bits" "$large" on off
# what a row of the inner side takes while its table is built, see src/daemon/run_partition.c
limit=$(((n * (2 * 9 + 80 + 9) / 8 >> 20) + 1))
[ "$limit" -ge 64 ] || limit=64
for where in "host memory" "temporary files"; do
	[ "$where" = "host memory" ] && spill="$(((n * 36 >> 20) + 64))MB" || spill=0
	settings="$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = 1; SET gpujoin.device_memory_limit = '${limit}MB'; SET gpujoin.spill_memory = '$spill'"
	uses_gpujoin "$settings" "$large"
	times "$settings" "$large" "$repeat"
	[ "$answer" = "$expected" ] || { echo "answers differ: $answer, $expected" >&2; exit 1; }
	row "2^$bits ⋈ 2^$bits, 1 GPU with ${limit} MB, $where" "$median" "$spread" "$(ratio "$one_ms" "$median")"
	{ echo "$settings;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $large;"; } | sql | grep -E 'Spilled:|Times:' >&2
done
# where it saturates: what the loader, the host's memory and PCIe do in the same time
echo
echo "Phases with all GPUs (they overlap with load, and add up over the GPUs):"
echo
phases "$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = 0" "$large"
