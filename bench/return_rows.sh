#!/bin/bash
# 10 M rows of 4 columns from a join to the client's door: COPY (…) TO '/dev/null', which the server writes (superuser).
# gpujoin against the best plan that PostgreSQL has (all workers, parallel_tuple_cost = 0), in turn, and the one that it
# chooses.  One query wants its rows sorted by two keys: the device sorts them.
cd "$(dirname "$0")" && . ./lib.sh
if ! have rows_fact; then
	sql -c "CREATE TABLE rows_fact (id int, k int, v int)" -c "CREATE TABLE rows_dim (k int, w bigint, name text)"
	insert_parallel rows_dim "$(rows 1000000)" "i - 1, i * 3, 'name ' || i"
	insert_parallel rows_fact "$(rows 10000000)" "i, (i * 7919) % $(rows 1000000), i % 1000"
fi

measure() {
	local name=$1 query=$2
	uses_gpujoin "$gpu" "$query"
	compare_times "$gpu; RESET parallel_tuple_cost" "$workers" "COPY ($query) TO '/dev/null'" "$repeat"
	gpu_ms=$median gpu_spread=$spread
	row "$name, PostgreSQL, all workers" "$median_b" "$spread_b" "$(ratio "$median_b" "$gpu_ms")"
	times "$native" "COPY ($query) TO '/dev/null'" 1
	row "$name, PostgreSQL, the plan it chooses (one run)" "$median" "" "$(ratio "$median" "$gpu_ms")"
	row "$name, gpujoin" "$gpu_ms" "$gpu_spread" ""
}

echo "## Rows returned through COPY TO '/dev/null'"
echo
machine
echo
row what "median ms" "min–max" "gpujoin is faster by"
row --- ---: ---: ---:
fixed="SELECT f.id, f.k, f.v, d.w FROM rows_fact f JOIN rows_dim d USING (k)"
text="SELECT f.id, f.k, d.w, d.name FROM rows_fact f JOIN rows_dim d USING (k)"
n=$(sql -c "SELECT count(*) FROM rows_fact")
measure "$n rows, 4 integers" "$fixed"
measure "$n rows, 3 integers and text" "$text"
measure "$n rows, 4 integers, sorted by two keys" "$fixed ORDER BY f.v DESC, f.id"
echo
echo "Phases of the first:"
echo
phases "$gpu" "$fixed"
