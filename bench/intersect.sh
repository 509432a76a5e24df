#!/bin/bash
# Set functions of two arrays: in the session's process, on the device, by intarray, and by programs
# of their own (set_peer.c: SIMD, galloping; CRoaring if GJ_ROARING=1 and its library is installed, or if
# GJ_ROARING is a folder with its headers in roaring/ and libroaring.so).
#
#   bench/intersect.sh small    nanoseconds a call, 5 to 100 elements, from rows of a table
#   bench/intersect.sh pairs    milliseconds, 10^3 to 10^7 elements, in memory and in a table
#   bench/intersect.sh border   process and device by size: gpujoin.set_device_min_elements is where
#                               the device becomes faster; run it on a machine with a GPU
#
# GJ_SIZES: sizes of pairs.  GJ_RATIOS: of their sizes.  GJ_SHARES: per cent in common.
# GJ_STORAGE: how tables store arrays: external, pglz or lz4.
# GJ_REPEAT: runs, whose median counts.
cd "$(dirname "$0")" && . ./lib.sh
sizes=${GJ_SIZES:-1000 10000 100000 1000000 10000000} shares=${GJ_SHARES:-0 1 50 100} ratios=${GJ_RATIOS:-1 1000}
case ${GJ_STORAGE:-external} in
	external) storage="STORAGE EXTERNAL" ;;
	*) storage="COMPRESSION $GJ_STORAGE" ;;
esac
work=$(mktemp -d /tmp/gjintersect.XXXXXX)
trap 'rm -rf "$work"' EXIT
roaring=()
[ ! -d "${GJ_ROARING:-}" ] || roaring=("-I$GJ_ROARING" "-L$GJ_ROARING" "-Wl,-rpath,$(realpath "$GJ_ROARING")")
gcc -O2 -pthread ${GJ_ROARING:+-DWITH_ROARING} -o "$work/peer" set_peer.c ${roaring[@]+"${roaring[@]}"} ${GJ_ROARING:+-lroaring} -lm
sql -c "CREATE EXTENSION IF NOT EXISTS intarray" -c "CREATE SCHEMA IF NOT EXISTS intersect_pairs"
process="SET gpujoin.set_device_min_elements = 2147483647" device="SET gpujoin.set_device_min_elements = 0"

# make_pair N RATIO SHARE TYPE ORDER: a of N elements, one in 20 of the values, and b of N / RATIO, in
# the table that pair_of names
pair_of() { echo "intersect_pairs.$(tr ' ' _ <<<"n$*")"; }
make_pair() {
	local by=i pair=$(pair_of "$@")
	[ "$5" = sorted ] || by="hashint8extended(i, 7)"
	sql <<-SQL
		DROP TABLE IF EXISTS $pair;
		CREATE TABLE $pair (a $4[], b $4[]);
		ALTER TABLE $pair ALTER a SET $storage, ALTER b SET $storage;
		INSERT INTO $pair
		SELECT array_agg(v ORDER BY $by), array_agg(CASE WHEN h / 16 % 100 < $3 THEN v ELSE v + 10 END ORDER BY $by DESC) FILTER (WHERE i % $2 = 0)
		FROM (SELECT i, h, (i * 20 + h % 10)::$4 AS v FROM (SELECT i, hashint8extended(i, 1) & 1048575 AS h FROM generate_series(1, $1) i) x) y;
	SQL
	# both ascend, or neither
	[ "$5" != sorted ] || sql -c "UPDATE $pair SET b = array(SELECT e FROM unnest(b) e ORDER BY e)" -c "VACUUM $pair"
}

# in_memory SETTINGS EXPRESSION: median ms of an expression of x and y, and its value
in_memory() {
	sql <<-SQL | tail -1
		$1;
		CREATE FUNCTION pg_temp.measure(OUT ms float8, OUT result bigint) LANGUAGE plpgsql AS \$\$
		DECLARE
			x $type[]; y $type[]; began timestamptz; times float8[];
		BEGIN
			SELECT a || '{}'::$type[], b || '{}'::$type[] INTO x, y FROM $pair;
			FOR i IN 1..$repeat + 2 LOOP
				began := clock_timestamp();
				result := $2;
				times[i] := extract(epoch FROM clock_timestamp() - began) * 1000;
			END LOOP;
			ms := (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) FROM unnest(times[3:]) t);
		END \$\$;
		SELECT round(ms::numeric, 3) || ' ' || result FROM pg_temp.measure();
	SQL
}

# from_table SETTINGS EXPRESSION: the same of a and b, which lie in TOAST
from_table() {
	sql <<-SQL | tail -1
		$1;
		CREATE FUNCTION pg_temp.measure(OUT ms float8) LANGUAGE plpgsql AS \$\$
		DECLARE
			began timestamptz; times float8[];
		BEGIN
			FOR i IN 1..$repeat + 2 LOOP
				began := clock_timestamp();
				PERFORM $2 FROM $pair;
				times[i] := extract(epoch FROM clock_timestamp() - began) * 1000;
			END LOOP;
			ms := (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) FROM unnest(times[3:]) t);
		END \$\$;
		SELECT round(ms::numeric, 3) FROM pg_temp.measure();
	SQL
}

# peer WAY: ms of a program on the arrays of the table
peer() { awk -F'\t' -v way="$1" '$1 ~ way { printf "%.3f", $2; exit }' "$work/peers"; }

# every FUNCTION: calls it with what make_pair takes, for all sizes, ratios, shares, types and orders
every() {
	local n ratio share type order
	for n in $sizes; do for ratio in $ratios; do for share in $shares; do for type in int4 int8; do for order in sorted shuffled; do
		[ $((n / ratio)) -eq 0 ] || "$1" "$n" "$ratio" "$share" $type $order
	done; done; done; done; done
}

# makes a pair in the background, as many at a time as there are cores
start_pair() {
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	make_pair "$@" &
}

# what programs of their own take for a pair, to $work/peers
run_peers() {
	sql -c "COPY (SELECT 1, array(SELECT unnest(a) ORDER BY 1) FROM $1 UNION ALL SELECT 2, array(SELECT unnest(b) ORDER BY 1) FROM $1) TO STDOUT" >"$work/family"
	GJ_THREADS=1 "$work/peer" pair "$work/family" >"$work/peers"
}

measure_pair() {
	local n=$1 ratio=$2 share=$3 type=$4 order=$5 pair device_ms device_table process_ms process_n device_n intarray=
	pair=$(pair_of "$@")
	read -r process_ms process_n < <(in_memory "$process" "cardinality(gpu_intersect(x, y))")
	read -r device_ms device_n < <(in_memory "$device" "cardinality(gpu_intersect(x, y))")
	[ -n "$process_n" ] && [ "$process_n" = "$device_n" ] || { echo "results differ for $n: $process_n, $device_n" >&2; exit 1; }
	device_table=$(from_table "$device" "gpu_intersect(a, b)")
	: >"$work/peers"
	if [ "$type" = int4 ]; then
		[ "$n" -gt 1000000 ] && [ "$order" = shuffled ] || read -r intarray _ < <(in_memory "$process" "icount(x & y)")
		run_peers "$pair"
	fi
	echo "| $type, $order | $n, $((n / ratio)) | $share | $process_ms | $device_ms | $(peer AVX) | $(peer '^galloping') | $(peer '^looking') | $(peer CRoaring) | $intarray |" \
		"$(from_table "$process" "gpu_intersect(a, b)") | $device_table | $(from_table "$process" "array_ndims(a) + array_ndims(b)") |"
	sql -c "DROP TABLE $pair"
}

pairs() {
	every start_pair
	wait
	echo "| type, order | a, b | % in common | process | device | SIMD | galloping | with a look at order | CRoaring | intarray & | table: process | table: device | table: reading alone |"
	echo "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
	every measure_pair
}

# per_call EXPRESSION: ns of an aggregate, a row
per_call() {
	{
		echo "SET jit = off; SET max_parallel_workers_per_gather = 0;"
		for _ in $(seq $((repeat + 2))); do echo "EXPLAIN (ANALYZE, TIMING OFF) SELECT $1 FROM intersect_small, generate_series(1, 10);"; done
	} | sql | sed -n 's/Execution Time: \(.*\) ms/\1/p' | sort -n | head -1 | awk '{ printf "%.0f", $1 * 1e6 / 200000 }'
}

small() {
	local n order type by columns
	echo "| elements | type, order | reading alone | gpu_intersect | intarray & | gpu_union | intarray \\| | gpu_overlaps | intarray && | gpu_jaccard |"
	echo "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
	for n in 5 20 50 100; do for type in int4 int8; do for order in sorted shuffled; do
		by="ORDER BY x"
		[ $order = sorted ] || by="ORDER BY hashint4(x)"
		sql -c "DROP TABLE IF EXISTS intersect_small" -c "CREATE TABLE intersect_small AS SELECT array_agg((x * 3)::$type $by) AS a, array_agg((x * 3 + x % 2)::$type $by) AS b
			FROM generate_series(1, 20000) i, generate_series(i, i + $n - 1) x GROUP BY i" -c "VACUUM ANALYZE intersect_small"
		columns=("$(per_call "count(a)")" "$(per_call "count(gpu_intersect(a, b))")")
		[ $type = int4 ] && columns+=("$(per_call "count(a & b)")") || columns+=("")
		columns+=("$(per_call "count(gpu_union(a, b))")")
		[ $type = int4 ] && columns+=("$(per_call "count(a | b)")") || columns+=("")
		columns+=("$(per_call "count(gpu_overlaps(a, b))")")
		[ $type = int4 ] && columns+=("$(per_call "count(a && b)")") || columns+=("")
		columns+=("$(per_call "count(gpu_jaccard(a, b))")")
		printf "| $n | $type, $order |"; printf ' %s |' "${columns[@]}"; echo
	done; done; done
}

border() {
	local n order type pair
	echo "| elements of both | type, order | process | device | table: process | table: device | table: reading alone |"
	echo "| ---: | --- | ---: | ---: | ---: | ---: | ---: |"
	for n in ${GJ_SIZES:-20000 50000 100000 200000 500000 1000000 2000000 5000000}; do for type in int4 int8; do for order in sorted shuffled; do
		make_pair $n 1 50 $type $order
		pair=$(pair_of $n 1 50 $type $order)
		echo "| $((n * 2)) | $type, $order | $(in_memory "$process" "cardinality(gpu_intersect(x, y))" | cut -d' ' -f1) | $(in_memory "$device" "cardinality(gpu_intersect(x, y))" | cut -d' ' -f1) |" \
			"$(from_table "$process" "gpu_intersect(a, b)") | $(from_table "$device" "gpu_intersect(a, b)") | $(from_table "$process" "array_ndims(a) + array_ndims(b)") |"
	done; done; done
}

echo "## Set functions of two arrays"
echo
machine
for part in ${@:-small pairs}; do echo; "$part"; done
sql -c "DROP TABLE IF EXISTS intersect_small" -c "DROP SCHEMA intersect_pairs CASCADE"
