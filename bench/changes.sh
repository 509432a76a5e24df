#!/bin/bash
# What few changed rows cost a query whose tables are resident: J1, then GJ_CHANGED=100 pages of each table get an updated row, and
# the tables are vacuumed, and J1 runs until what is built of the inner one can be kept again, and beyond (GJ_RUNS=60 times).
# GJ_LOADER_WORKERS=0 by one process, which compares pages and does not load them anew.
cd "$(dirname "$0")" && . ./lib.sh
make_j1
runs=${GJ_RUNS:-60}
pages=${GJ_CHANGED:-100}
set_workers "${GJ_LOADER_WORKERS:-}"
# as servers have it: no worker is launched for a hundred pages
gpu="$gpu; SET min_parallel_table_scan_size = '8MB'"
uses_gpujoin "$gpu" "$j1_query"

# lines "ms pages" of as many runs
run() {
	local i
	{ echo "$gpu;"; for i in $(seq "$1"); do echo "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $j1_query;"; done; } | sql |
		awk '/Fallback:/ { print "fell back" > "/dev/stderr"; exit 1 }
			/Pages: read=/ { sub(/.*Pages: read=/, ""); pages += $1 }
			/Execution Time:/ { print $(NF - 1), pages + 0; pages = 0 }'
}
# summary NAME: a line of such lines
summary() { sort -n | awk -v name="$1" '{ ms[NR] = $1; if ($2 > most) most = $2; if (NR == 1 || $2 < least) least = $2 }
	END { if (NR) printf "| %s | %d | %.1f | %.1f–%.1f | %s |\n", name, NR, ms[int((NR + 1) / 2)], ms[1], ms[NR], least == most ? most + 0 : least + 0 "–" most }'; }

echo "## Few changed rows: J1, a row in each of $pages pages of each table updated"
echo
machine
echo
echo "| | runs | median ms | min–max | pages read |"
echo "| --- | ---: | ---: | ---: | ---: |"
run 3 >/dev/null
run 20 | summary "nothing has changed"
for table in j1_fact j1_dim; do
	sql -c "UPDATE $table SET v = v WHERE ctid = ANY (ARRAY(SELECT format('(%s,%s)', p, 1 + floor(random() * 100))::tid FROM generate_series(0, pg_relation_size('$table') / 8192 - 1, greatest(1, pg_relation_size('$table') / 8192 / $pages)) p))"
	run 1 >/dev/null
	run 20 | summary "$([ $table = j1_fact ] && echo 'rows of the outer table have' || echo 'rows of both tables have'), not vacuumed"
done
sql -c 'VACUUM j1_fact' -c 'VACUUM j1_dim'
changed=$(run "$runs")
head -1 <<<"$changed" | summary "vacuumed: the first run"
usual=$(sed -n 2p <<<"$changed" | cut -d' ' -f2)
# numbers of the first and the last run that read more than that
read -r first last < <(awk -v usual="${usual:-0}" 'NR > 1 && $2 > usual { last = NR; if (!first) first = NR } END { if (!first) { first = usual > 0 ? NR + 1 : 2; last = first - 1 } print first, last }' <<<"$changed")
awk -v n="$first" 'NR > 1 && NR < n' <<<"$changed" | summary "those that read what had changed"
awk -v a="$first" -v b="$last" 'NR >= a && NR <= b' <<<"$changed" | summary "those that load fragments anew"
awk -v n="$last" 'NR > n' <<<"$changed" | summary "those after that"
