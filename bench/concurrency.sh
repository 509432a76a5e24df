#!/bin/bash
# Many sessions at once: J1-like joins of a 5 M row table with dimensions of several sizes, by 1, 2, 4, ... 32 sessions.
# Queries a second, the longest wait of any, and what became of the GpuJoins.
#
#   GJ_SESSIONS="1 4 8 16 32"    GJ_SECONDS=10 for each
cd "$(dirname "$0")" && . ./lib.sh
if ! have many_fact; then
	sql -c "CREATE TABLE many_fact (k int, v int)" -c "CREATE TABLE many_dim (k int, v int)"
	insert_parallel many_dim "$(rows 1000000)" "i - 1, (i % 1000)::int"
	insert_parallel many_fact "$(rows 5000000)" "(i * 7919) % $(rows 1000000), (i % 1000)::int"
fi
script=$(mktemp /tmp/gj_many.XXXXXX)
trap 'rm -f "$script"*' EXIT
cat >"$script" <<SQL
\set k random(1, 900)
SELECT count(*), sum(f.v + d.v) FROM many_fact f JOIN many_dim d USING (k) WHERE d.v < :k;
SQL
completed() { sql -c "SELECT coalesce(sum(count) FILTER (WHERE outcome = 'completed'), 0), coalesce(sum(count) FILTER (WHERE outcome <> 'completed'), 0) FROM gpujoin_stat"; }
echo "## Concurrent sessions"
echo
machine
echo
echo "| sessions | gpujoin queries/s | longest ms | on the device | fell back | PostgreSQL queries/s | gpujoin is faster by |"
echo "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
for n in ${GJ_SESSIONS:-1 4 8 16 32}; do
	IFS='|' read -r done_before back_before < <(completed)
	out=$(PGOPTIONS="$PGOPTIONS -c gpujoin.enabled=on" pgbench -n -f "$script" -c "$n" -j "$n" -T "${GJ_SECONDS:-10}" -l --log-prefix="$script.log" 2>&1)
	IFS='|' read -r done_after back_after < <(completed)
	tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")
	longest=$(cat "$script".log.* | awk '$3 > m { m = $3 } END { printf "%.0f", m / 1000 }'); rm -f "$script".log.*
	native_tps=$(PGOPTIONS="$PGOPTIONS -c gpujoin.enabled=off" pgbench -n -f "$script" -c "$n" -j "$n" -T "${GJ_SECONDS:-10}" 2>&1 | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
	echo "| $n | $tps | $longest | $((done_after - done_before)) | $((back_after - back_before)) | $native_tps | $(ratio "$tps" "$native_tps") |"
done
