#!/bin/bash
# Short sessions: 1 000 sessions, 16 at a time, that run one query each, on resident data beside many other resident
# tables; and connections that read one row (pgbench -C -S), for what a session costs that uses no device.
#
#   GJ_TABLES=500    other resident tables
#   GJ_ROUNDS=5      of each, in turn; medians are printed
cd "$(dirname "$0")" && . ./lib.sh
tables=${GJ_TABLES:-500} rounds=${GJ_ROUNDS:-5}
if ! have short_fact; then
	sql -c "CREATE TABLE short_fact AS SELECT i AS id, (i::bigint * 7919 % 2000 + 1)::int AS d, i % 100 AS v FROM generate_series(1, 20000) i" \
		-c "CREATE TABLE short_dim AS SELECT i AS id, i % 10 AS g FROM generate_series(1, 2000) i" \
		-c "CREATE TABLE short_row AS SELECT i AS id, i AS v FROM generate_series(1, 100000) i" -c "ALTER TABLE short_row ADD PRIMARY KEY (id)"
	sql -c "DO 'BEGIN FOR i IN 1..$tables LOOP EXECUTE format(''CREATE TABLE short_%s AS SELECT i AS id, i AS v FROM generate_series(1, 3000) i'', i); END LOOP; END'"
	sql -c "VACUUM ANALYZE"
fi
sql -c "SET max_parallel_workers = 0" -c "SELECT sum(gpujoin_prewarm(oid::regclass)) FROM pg_class WHERE relname LIKE 'short\_%' AND relkind = 'r'" >/dev/null
join=$(mktemp /tmp/gj_join.XXXXXX) row=$(mktemp /tmp/gj_row.XXXXXX)
trap 'rm -f "$join" "$row"' EXIT
echo "SELECT g, count(*), sum(v) FROM short_fact f JOIN short_dim d ON f.d = d.id GROUP BY g" >"$join"
printf '\\set k random(1, 100000)\nSELECT v FROM short_row WHERE id = :k\n' >"$row"
# tps SETTING SCRIPT SESSIONS TRANSACTIONS: transactions a second, connecting for each
tps() { PGOPTIONS="$PGOPTIONS -c gpujoin.enabled=$1" pgbench -n -C -f "$2" -c "$3" -t "$4" 2>&1 | sed -n 's/^tps = \([0-9.]*\).*/\1/p'; }
middle_and_range() { sort -n | awk '{ t[NR] = $1 } END { printf "%.0f (%.0f–%.0f)", t[int((NR + 1) / 2)], t[1], t[NR] }'; }
declare -A got
for _ in $(seq "$rounds"); do
	for setting in on off; do
		got[join$setting]+="$(tps $setting "$join" 16 63)"$'\n'
		got[row$setting]+="$(tps $setting "$row" 1 500)"$'\n'
	done
done
echo "## Short sessions"
echo
machine
echo
echo "| sessions a second, each new | gpujoin | gpujoin.enabled = off |"
echo "| --- | ---: | ---: |"
for kind in join row; do
	echo "| $kind | $(printf '%s' "${got[${kind}on]}" | middle_and_range) | $(printf '%s' "${got[${kind}off]}" | middle_and_range) |"
done
