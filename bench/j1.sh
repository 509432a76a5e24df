#!/bin/bash
# J1: count(*), sum(f.v + d.v) over fact (50 M rows) joined with dim (10 M rows), two int4 each, every fact row matches.
# gpujoin (nothing on the GPU before) against PostgreSQL with one process and with all workers.
# GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed, GJ_LOADER_WORKERS=15 (default 15) how many
# workers help gpujoin to load.
cd "$(dirname "$0")" && . ./lib.sh
make_j1
query=$j1_query
set_workers "${GJ_LOADER_WORKERS:-15}"

echo "## J1: \`$query\`"
echo
machine
echo
uses_gpujoin "$gpu" "$query"
times "$gpu" "$query" "$repeat"; gpu_ms=$median gpu_spread=$spread gpu_answer=$answer
times "$native" "$query" "$repeat"; best_ms=$median best_spread=$spread best_answer=$answer
times "$one" "$query" 1; one_ms=$median one_answer=$answer
# a new connection each time: the session has yet to map the shared buffers
fresh=$(for _ in $(seq "$repeat"); do times "$gpu" "$query" 1; echo "$median"; done | sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }')
[ "$gpu_answer" = "$best_answer" ] && [ "$gpu_answer" = "$one_answer" ] || { echo "answers differ: $gpu_answer, $best_answer, $one_answer" >&2; exit 1; }
row what "median ms" "min–max" "gpujoin is faster by"
row --- ---: ---: ---:
row "PostgreSQL, 1 process" "$one_ms" "" "$(ratio "$one_ms" "$gpu_ms")"
row "PostgreSQL, best plan" "$best_ms" "$best_spread" "$(ratio "$best_ms" "$gpu_ms")"
load_rates "$gpu" "$query" "$repeat"
row "gpujoin, cold, $launched loader workers, $rate GB/s of pages" "$gpu_ms" "$gpu_spread" ""
row "the same, first query of a session" "$fresh" "" ""
echo
echo "Answer: $gpu_answer (equal)"
echo
echo "Phases (they overlap with load):"
echo
phases "$gpu" "$query"
