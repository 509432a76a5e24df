#!/bin/bash
# Several GPUs for one query, and inner sides larger than a GPU may use: J3, count(*), sum(a.v + b.v) over 2^27 ⋈ 2^27 rows of
# two int8, and a small inner side (2^17 rows) under the same outer one.
#   1, 2, 4, 8 GPUs, as far as there are any (gpujoin.devices_per_query)
#   one GPU with gpujoin.device_memory_limit at 1/8 of what the inner side needs, kept in host memory, then in temporary files
# GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed.  Needs a superuser.  Any split must give the
# same answer.
cd "$(dirname "$0")" && . ./lib.sh
n=$(rows 134217728)
if ! have j3_a; then
	sql -c "CREATE TABLE j3_a (k bigint, v bigint)" -c "CREATE TABLE j3_b (k bigint, v bigint)" -c "CREATE TABLE j3_small (k bigint, v bigint)"
	# each key once on either side, in no order: 7919 is prime and no factor of 2^27
	insert_parallel j3_a "$n" "(i * 7919) % $n, i % 1000"
	insert_parallel j3_b "$n" "(i * 104729) % $n, i % 1000"
	insert_parallel j3_small "$(rows 131072)" "i, i % 1000"
fi
large="SELECT count(*), sum(a.v + b.v) FROM j3_a a JOIN j3_b b USING (k)"
small="SELECT count(*), sum(a.v + b.v) FROM j3_a a JOIN j3_small b USING (k)"
ngpus=$(sql -c "SELECT count(*) FROM gpujoin_devices WHERE device = current_setting('gpujoin.device')")

echo "## Several GPUs, and little memory"
echo
machine
echo
row what "median ms" "min–max" "1 GPU / it"
row --- ---: ---: ---:
for query in "$small" "$large"; do
	[ "$query" = "$small" ] && name="2^27 ⋈ 2^17" || name="2^27 ⋈ 2^27"
	expected=
	for g in 1 2 4 8; do
		[ "$g" -le "$ngpus" ] || continue
		settings="$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = $g"
		uses_gpujoin "$settings" "$query"
		times "$settings" "$query" "$repeat"
		[ "$g" = 1 ] && one_ms=$median expected=$answer
		[ "$answer" = "$expected" ] || { echo "answers differ: $answer, $expected" >&2; exit 1; }
		row "$name, $g GPU" "$median" "$spread" "$(ratio "$one_ms" "$median")"
	done
done
# what a row of the inner side takes while its table is built, see src/daemon/run_partition.c
limit=$(((n * (2 * 9 + 80 + 9) / 8 >> 20) + 1))
[ "$limit" -ge 64 ] || limit=64
for where in "host memory" "temporary files"; do
	[ "$where" = "host memory" ] && spill="$(((n * 36 >> 20) + 64))MB" || spill=0
	settings="$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = 1; SET gpujoin.device_memory_limit = '${limit}MB'; SET gpujoin.spill_memory = '$spill'"
	uses_gpujoin "$settings" "$large"
	times "$settings" "$large" "$repeat"
	[ "$answer" = "$expected" ] || { echo "answers differ: $answer, $expected" >&2; exit 1; }
	row "2^27 ⋈ 2^27, 1 GPU with ${limit} MB, $where" "$median" "$spread" "$(ratio "$one_ms" "$median")"
	{ echo "$settings;"; echo "EXPLAIN (ANALYZE, COSTS OFF) $large;"; } | sql | grep -E 'Spilled:|Times:' >&2
done
# where it saturates: what the loader, the host's memory and PCIe do in the same time
echo
echo "Phases with all GPUs (they overlap with load, and add up over the GPUs):"
echo
phases "$gpu; SET gpujoin.force = on; SET gpujoin.devices_per_query = 0" "$large"
