#!/bin/bash
# A table in 16 partitions against the same table in one: count(*), sum(v) over 50 M rows of three int4, all pages loaded
# (nothing on the device before each run) and resident.  The two take turns, so that what else the machine does meets both.
# GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed, GJ_LOADER_WORKERS=N as for joins.sh.
cd "$(dirname "$0")" && . ./lib.sh
n=$(rows 50000000)
if ! have part_16; then
	sql -c "CREATE TABLE part_16 (id int, k int, v int) PARTITION BY RANGE (id)"
	for i in $(seq 0 15); do
		sql -c "CREATE TABLE part_16_$i PARTITION OF part_16 FOR VALUES FROM ($n::bigint * $i / 16 + 1) TO ($n::bigint * ($i + 1) / 16 + 1)"
	done
	insert_parallel part_16 "$n" "i, ((i * 7919) % 1000)::int, (i % 1000)::int"
	sql -c "CREATE TABLE part_1 AS SELECT * FROM part_16" -c "VACUUM ANALYZE part_1"
fi
set_workers "${GJ_LOADER_WORKERS:-}"

# plans TABLE PREPARE: runs the query with EXPLAIN after PREPARE; its plan
plans() { { echo "$gpu;"; echo "$2;"; echo "EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), sum(v) FROM $1;"; } | sql; }
evict="SELECT NULL FROM gpujoin_cache_evict()"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for t in part_1 part_16; do uses_gpujoin "$gpu" "SELECT count(*), sum(v) FROM $t"; done
for _ in $(seq "$repeat"); do
	for t in part_1 part_16; do
		plans $t "$evict" >"$work/plan"
		sed -n 's/.*Loading: .* ms  \([0-9.]*\) GB.*/\1/p' "$work/plan" >>"$work/rate.$t"
		sed -n 's/.*Pages: read=\([0-9]*\) .*/\1/p' "$work/plan" >>"$work/pages.$t"
		sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' "$work/plan" >>"$work/cold.$t"
		plans $t "SELECT" | sed -n 's/^Execution Time: \([0-9.]*\) ms/\1/p' >>"$work/warm.$t"
	done
done
for t in part_1 part_16; do
	times "$native" "SELECT count(*), sum(v) FROM $t" 1; echo "$answer" >>"$work/answers"
	times "$gpu" "SELECT count(*), sum(v) FROM $t" 1; echo "$answer" >>"$work/answers"
done
[ "$(sort -u "$work/answers" | wc -l)" = 1 ] || { echo "answers differ" >&2; cat "$work/answers" >&2; exit 1; }

echo "## Partitions: \`SELECT count(*), sum(v)\` over $n rows of three int4, $(middle <"$work/pages.part_1") pages"
echo
machine
echo
row "table" "GB/s of pages, median" "cold, median ms" "again, median ms"
row --- ---: ---: ---:
row "one" "$(middle <"$work/rate.part_1")" "$(middle <"$work/cold.part_1")" "$(middle <"$work/warm.part_1")"
row "16 partitions" "$(middle <"$work/rate.part_16")" "$(middle <"$work/cold.part_16")" "$(middle <"$work/warm.part_16")"
