#!/bin/bash
# gpu_intersect of two arrays of 10^3 … 10^7 elements: in the session's process against the device, sorted and shuffled.
# Shows where gpujoin.set_device_min_elements should be.
cd "$(dirname "$0")" && . ./lib.sh
sql -c "CREATE TABLE IF NOT EXISTS intersect_sets (n int, sorted boolean, a int[], b int[])" -c "TRUNCATE intersect_sets"
for n in 1000 10000 100000 300000 1000000 3000000 10000000; do
	sql -c "INSERT INTO intersect_sets SELECT $n, true, array_agg(i * 3), array_agg(i * 5) FROM generate_series(1, $n) i" \
		-c "INSERT INTO intersect_sets SELECT $n, false, (SELECT array_agg(x ORDER BY random()) FROM unnest(a) x), (SELECT array_agg(x ORDER BY random()) FROM unnest(b) x) FROM intersect_sets WHERE n = $n AND sorted"
done
# values in the statement's memory, not in TOAST: unpack once, then time the function alone
time_intersect() {
	sql <<-SQL | tail -1
		SET gpujoin.set_device_min_elements = $1;
		CREATE FUNCTION pg_temp.measure(OUT ms float8, OUT result bigint) LANGUAGE plpgsql AS \$\$
		DECLARE
			x int[]; y int[]; began timestamptz; times float8[];
		BEGIN
			SELECT a || '{}'::int[], b || '{}'::int[] INTO x, y FROM intersect_sets WHERE n = $2 AND sorted = $3;
			FOR i IN 1..$repeat + 1 LOOP
				began := clock_timestamp();
				result := cardinality(gpu_intersect(x, y));
				times[i] := extract(epoch FROM clock_timestamp() - began) * 1000;
			END LOOP;
			ms := (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) FROM unnest(times[2:]) t);
		END \$\$;
		SELECT round(ms::numeric, 3) || ' ' || result FROM pg_temp.measure();
	SQL
}
echo "## gpu_intersect of two arrays of n elements, median ms"
echo
machine
echo
echo "| n each | sorted: process | sorted: device | shuffled: process | shuffled: device |"
echo "| ---: | ---: | ---: | ---: | ---: |"
for n in $(sql -c "SELECT DISTINCT n FROM intersect_sets ORDER BY 1"); do
	line="| $n |"
	for sorted in true false; do
		read -r process process_n < <(time_intersect 2147483647 "$n" $sorted)
		read -r device device_n < <(time_intersect 0 "$n" $sorted)
		[ "$process_n" = "$device_n" ] || { echo "results differ for $n: $process_n, $device_n" >&2; exit 1; }
		line+=" $process | $device |"
	done
	echo "$line"
done
