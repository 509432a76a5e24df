#!/bin/bash
# How fast tables are loaded: J1 with 0, 1, 3, 7, 11 and 15 loader workers (or those given as arguments), nothing on the
# device before.  GB/s of pages from the first page to the last, in all processes together.
cd "$(dirname "$0")" && . ./lib.sh
make_j1
workers=(${*:-0 1 3 7 11 15})
echo "## Parallel loading: J1, columns out of pages in shared_buffers"
echo
machine
echo
row "loader workers (launched)" "query, median ms" "min–max" "GB/s of pages, median"
row ---: ---: ---: ---:
for n in "${workers[@]}"; do
	set_workers "$n"
	uses_gpujoin "$gpu" "$j1_query"
	times "$gpu" "$j1_query" "$repeat"
	load_rates "$gpu" "$j1_query" "$repeat"
	row "$n ($launched)" "$median" "$spread" "$rate"
done
