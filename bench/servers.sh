#!/bin/bash
# Two servers share one GPU, on which a third process leaves them too little memory for both their tables.  Both run
# queries at once.  Shows that answers are equal, that what both hold fits what is left, that neither falls back for
# ever, and that what the third process gives back is used again.  Status 1: one of these is not so.
#
#   [PG_CONFIG=…] bench/servers.sh     gpujoin with CUDA is installed there; root runs the servers as GJ_TEST_USER
#   GJ_LEFT=1200     MB that the third process leaves
#   GJ_ROWS=12000000 of each server's table, with six columns of 8 bytes
#   GJ_SECONDS=24    under load
#   GJ_DEVICE=cuda   cpu: without a third process, to try the script
cd "$(dirname "$0")/.." && . scripts/lib.sh
set -euo pipefail
left=${GJ_LEFT:-1200} rows=${GJ_ROWS:-12000000} seconds=${GJ_SECONDS:-24} device=${GJ_DEVICE:-cuda} wrong=0
find_postgres || { echo "no PostgreSQL"; exit 1; }
make_user
work=$(mktemp -d /tmp/gj_servers.XXXXXX)
make_work
q() { local n=$1; shift; as_user "$bindir/psql" -h "$work" -p $((57400 + n)) -d postgres -XAtq -v ON_ERROR_STOP=1 "$@"; }
taker=
release() { if [ -n "$taker" ]; then exec 9>&-; wait "$taker" || true; taker=; fi; }
clean() { release; for i in 0 1; do as_user "$bindir/pg_ctl" -D "$work/$i" -m fast stop >/dev/null 2>&1 || true; done; rm -rf "$work"; }
trap clean EXIT
must() { if [ "$2" = yes ]; then echo "  ok: $1"; else echo "  NOT OK: $1"; wrong=1; fi; }
is() { if [ "$@" ]; then echo yes; else echo no; fi; }

make_server() {
	local i=$1 part
	as_user "$bindir/initdb" -D "$work/$i" -A trust --no-sync >/dev/null
	printf '%s\n' "shared_preload_libraries = 'gpujoin'" "gpujoin.device = $device" "port = $((57400 + i))" "listen_addresses = ''" \
		"unix_socket_directories = '$work'" "shared_buffers = ${GJ_BUFFERS:-4GB}" "jit = off" "fsync = off" "wal_level = minimal" \
		"max_wal_senders = 0" "max_wal_size = 20GB" | as_user tee -a "$work/$i/postgresql.conf" >/dev/null
	as_user "$bindir/pg_ctl" -D "$work/$i" -l "$work/$i.log" -w start >/dev/null
	q "$i" -c "CREATE EXTENSION gpujoin" -c "CREATE TABLE f (k int8, c1 int8, c2 int8, c3 int8, c4 int8, c5 int8)" \
		-c "CREATE TABLE d AS SELECT i::int8 AS k, i AS v FROM generate_series(0, 99999) i"
	for part in 0 1 2 3; do
		q "$i" -c "INSERT INTO f SELECT i % 100000, hashint8extended(i, 1), hashint8extended(i, 2), hashint8extended(i, 3),
			hashint8extended(i, 4), hashint8extended(i, 5) FROM generate_series($part + 1::int8, $rows, 4) i" &
	done
	wait
	q "$i" -c "VACUUM (FREEZE, ANALYZE) f" -c "VACUUM (FREEZE, ANALYZE) d"
}
for i in 0 1; do make_server $i & done
wait
query() { echo "SELECT count(*), sum(f.c$1 % 1000 + d.v), min(f.c$1) FROM f JOIN d USING (k)"; }
declare -A expected
for c in 1 2 3 4 5; do expected[$c]=$(q 0 -c "SET gpujoin.enabled = off" -c "$(query $c)"); done
for i in 0 1; do
	must "server $i plans GpuJoin" "$(is "$(q $i -c "SET gpujoin.force = on" -c "EXPLAIN (COSTS OFF) $(query 1)" | grep -c GpuJoin)" -gt 0)"
done

if [ "$device" = cuda ]; then
	cc -O1 -w -o "$work/take_memory" bench/take_memory.c -ldl
	mkfifo "$work/in"
	"$work/take_memory" "$left" <"$work/in" >"$work/taken" &
	taker=$!
	exec 9>"$work/in"
	for _ in $(seq 100); do [ -s "$work/taken" ] || sleep 0.1; done
	cat "$work/taken"
	sleep 2
fi

completed() { q "$1" -c "SELECT coalesce(sum(count) FILTER (WHERE outcome = 'completed'), 0) FROM gpujoin_stat"; }
fallen() { q "$1" -c "SELECT coalesce(sum(count) FILTER (WHERE outcome <> 'completed'), 0) FROM gpujoin_stat"; }
held() { q "$1" -c "SELECT coalesce(sum(memory_resident + memory_used), 0)::int8 >> 20 FROM gpujoin_devices WHERE device = '$device'"; }
# load SERVER CLIENT END: queries until then
load() {
	local n=0 c got
	while [ "$(date +%s)" -lt "$3" ]; do
		n=$((n + 1)) c=$(((n + $2) % 5 + 1))
		got=$(q "$1" -c "SET gpujoin.force = on" -c "$(query $c)" 2>&1) || true
		if [ "$got" = "${expected[$c]}" ]; then echo equal; else echo "WRONG server $1 column $c: $got"; fi >>"$work/answers.$1"
	done
}
end=$(($(date +%s) + seconds)) most=0
for i in 0 1; do for client in 0 2; do load $i $client $end & done; done
while [ "$(date +%s)" -lt $((end - seconds / 3)) ]; do
	sum=$(($(held 0) + $(held 1)))
	[ "$sum" -le "$most" ] || most=$sum
	sleep 0.5
done
before=("$(completed 0)" "$(completed 1)") back=("$(fallen 0)" "$(fallen 1)")
while [ -n "$(jobs -r | grep 'load ')" ]; do
	sum=$(($(held 0) + $(held 1)))
	[ "$sum" -le "$most" ] || most=$sum
	sleep 0.5
done
[ "$device" != cuda ] || nvidia-smi --query-gpu=memory.used,memory.total --format=csv,noheader
echo "both servers held $most MB at most, of $left MB"
[ "$device" != cuda ] || must "that is less than was left" "$(is "$most" -le "$left")"
for i in 0 1; do
	now=$(completed $i) fell=$(fallen $i)
	echo "server $i: $(wc -l <"$work/answers.$i") answers; completed ${before[$i]}, then $((now - before[i])) in the last third; fell back ${back[$i]}, then $((fell - back[i]))"
	must "all are equal" "$(is "$(grep -vc '^equal$' "$work/answers.$i" || true)" = 0)"
	grep -m 3 -v '^equal$' "$work/answers.$i" || true
	must "the device completes queries to the end" "$(is $((now - before[i])) -gt 0)"
	q $i -c "SELECT '  ' || outcome || ': ' || sum(count) FROM gpujoin_stat WHERE count > 0 GROUP BY outcome"
done
if [ "$device" = cuda ]; then
	release
	sleep 3
	for i in 0 1; do for c in 1 2 3 4 5; do q $i -c "SET gpujoin.force = on" -c "$(query $c)" >/dev/null; done; done
	sum=$(($(held 0) + $(held 1)))
	echo "with the third process gone both hold $sum MB"
	must "that is more than was left to both" "$(is "$sum" -gt "$most")"
	nvidia-smi --query-gpu=memory.used,memory.total --format=csv,noheader
fi
grep -h 'is ready\|other processes\|cannot be used' "$work"/?.log || true
exit $wrong
