#!/bin/bash
# Columns of other types than integers: joins by uuid, text, numeric and two integers, groups by text and by many integers,
# LIKE, and the rate at which each table is loaded.
#
#   bench/types.sh [keys|groups|load...]      keys and groups where nothing is named
#
# keys: 20 M rows joined with 4 M by one key of each type, sum of a column of both sides; groups of the 20 M joined with
# the 4 M.  groups: 10 M rows by a text with 50, 5 000 and 1 M values, the first 10 groups; finer groups of 5 000; LIKE
# over 10 M URLs, 2 M of them distinct; 4 M groups by an integer with a sum of numeric.  load: all columns of each table in the database, by
# gpujoin_prewarm into an empty device.
# GJ_SCALE=0.01 makes the tables smaller, GJ_REPEAT=5 is how often each is timed (PostgreSQL: once), GJ_DUCKDB names
# libduckdb.so for DuckDB on its own tables.  Fails if an answer is not PostgreSQL's.
cd "$(dirname "$0")" && . ./lib.sh
set_workers "${GJ_LOADER_WORKERS:-}"
fact=$(rows 20000000) dim=$(rows 4000000) texts=$(rows 10000000) urls=$(rows 2000000) groups=$(rows 1000000)
scratch=$(mktemp -d /tmp/gj_types.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
duck=
if [ -n "${GJ_DUCKDB:-}" ]; then duck=$scratch/duckdb_peer; gcc -O2 -o "$duck" duckdb_peer.c -ldl; fi

# the columns of row J of the keys, and of row i of the texts, in words of both PostgreSQL and DuckDB
keys() {
	echo "$1::int, ($1 * 2654435761 % 4294967291) * 1000003, md5($1::text)::uuid, 'item ' || $1, ($1 * 137 / 100.0)::decimal(14,2),
		($1 - $1 % 2000)::int, ($1 % 2000)::int, ($1 % 1000)::int"
}
text_columns="'group ' || i * 7919 % 50, 'group ' || i * 7919 % 5000, 'group ' || i * 7919 % $groups,
	'http://www.example' || i * 7919 % 1000 || '.com/page/' || i * 104729 % $urls, (i * 31 % 100)::int, (i % 1000)::int"
key_names="k int, r bigint, u uuid, t text, n decimal(14,2), a int, b int, v int"
text_names="g50 text, g5000 text, many text, url text, share int, v int"

make_tables() {
	have types_text && return
	sql -c "CREATE TABLE types_fact ($key_names)" -c "CREATE TABLE types_dim ($key_names)" -c "CREATE TABLE types_text ($text_names)"
	GJ_LOAD_SESSIONS=${GJ_LOAD_SESSIONS:-$(nproc)}
	insert_parallel types_dim "$dim" "$(keys '(i - 1)')"
	insert_parallel types_fact "$fact" "$(keys "(i * 7919 % $dim)")"
	insert_parallel types_text "$texts" "$text_columns"
}

queries() {
	case $1 in
		keys)
			for key in "int4:f.k = d.k" "random int8:f.r = d.r" "uuid:f.u = d.u" "text:f.t = d.t" "numeric(14,2):f.n = d.n" "two int4:f.a = d.a AND f.b = d.b"; do
				echo "join by ${key%%:*}|SELECT count(*), sum(f.v + d.v) FROM types_fact f JOIN types_dim d ON ${key#*:}"
			done
			for key in "int4:k" "uuid:u"; do
				echo "groups by ${key%%:*}, joined|SELECT count(*), sum(x.s) FROM types_dim d JOIN (SELECT ${key#*:}, sum(v) AS s FROM types_fact GROUP BY 1) x USING (${key#*:}) WHERE d.v < 500"
			done ;;
		groups)
			for column in g50 g5000 many; do
				echo "groups by $column|SELECT $column, count(*), sum(v) FROM types_text GROUP BY $column ORDER BY 3 DESC, 2, 1 LIMIT 10"
				echo "groups by $column, 1 % of the rows|SELECT $column, count(*), sum(v) FROM types_text WHERE share = 7 GROUP BY $column ORDER BY 3 DESC, 2, 1 LIMIT 10"
			done
			echo "groups by upper(g5000)|SELECT upper(g5000), count(*), sum(v), avg(v) FROM types_text GROUP BY 1 ORDER BY 3 DESC, 2, 1 LIMIT 10"
			echo "min and max of texts|SELECT g50, min(g5000), max(g5000), count(*) FROM types_text GROUP BY 1 ORDER BY 1"
			echo "DISTINCT of two|SELECT count(DISTINCT g50), count(DISTINCT g5000) FROM types_text"
			echo "LIKE '%ple77%'|SELECT count(*) FROM types_text WHERE url LIKE '%ple77%'"
			echo "groups by int4, sum of numeric|SELECT k, sum(n) FROM types_fact GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10" ;;
	esac
}

# a line "name<tab>median" for each query in $scratch/duckdb
time_duckdb() {
	{
		printf 'CREATE TABLE types_dim (%s)\n;\nCREATE TABLE types_fact (%s)\n;\nCREATE TABLE types_text (%s)\n;\n' "$key_names" "$key_names" "$text_names"
		printf 'INSERT INTO types_dim SELECT %s FROM range(1, %s) t(i)\n;\n' "$(keys '(i - 1)')" "$((dim + 1))"
		printf 'INSERT INTO types_fact SELECT %s FROM range(1, %s) t(i)\n;\n' "$(keys "(i * 7919 % $dim)")" "$((fact + 1))"
		printf 'INSERT INTO types_text SELECT %s FROM range(1, %s) t(i)\n;\n' "$text_columns" "$((texts + 1))"
		for part in "$@"; do queries "$part"; done | while IFS='|' read -r name query; do printf -- '--time %s\n%s\n;\n' "$name" "$query"; done
	} | "$duck" "$repeat" | cut -f1,2 >"$scratch/duckdb"
}

measure() {
	local name=$1 query=$2 expected native_ms cold_ms duck_ms=
	uses_gpujoin "$gpu" "$query"
	times "$native" "$query" 1; native_ms=$median expected=$answer
	cold_times "$gpu" "$query" 2; cold_ms=$median
	[ "$answer" = "$expected" ] || { echo "$name: answers differ" >&2; exit 1; }
	times "$gpu" "$query" "$((repeat + 4))"
	[ "$answer" = "$expected" ] || { echo "$name: answers differ" >&2; exit 1; }
	[ -z "$duck" ] || duck_ms=$(awk -F'\t' -v n="$name" '$1 == n { print $2 }' "$scratch/duckdb")
	echo "| $name | $native_ms | $cold_ms | $median | $spread | $(ratio "$native_ms" "$median") | $duck_ms | ${duck_ms:+$(ratio "$duck_ms" "$median")} |"
	{ echo "$name:"; phases "$gpu" "$query"; } >>"$scratch/details"
}

load_table() {
	local table=$1 columns bytes t0 t1
	columns=$(sql -c "SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0 AND NOT attisdropped")
	bytes=$(sql -c "SELECT pg_relation_size('$table')")
	sql -c "SELECT NULL FROM gpujoin_cache_evict()" >/dev/null
	t0=$(date +%s%N)
	sql -c "SELECT NULL FROM gpujoin_prewarm('$table', '$columns')" >/dev/null
	t1=$(date +%s%N)
	awk -v t="$table" -v b="$bytes" -v ns="$((t1 - t0))" -v d="$(sql -c 'SELECT coalesce(sum(bytes), 0) FROM gpujoin_cache')" \
		'BEGIN { printf "| %s | %.2f | %.2f | %.0f | %.1f |\n", t, b / 1e9, d / 1e9, ns / 1e6, b / ns }'
}

echo "## Types"
echo
machine
echo
set -- ${*:-keys groups}
timed=
for part in "$@"; do [ "$part" = load ] || timed="$timed $part"; done
if [ -n "$timed" ]; then
	make_tables
	[ -z "$duck" ] || time_duckdb $timed
	echo "| query | PostgreSQL ms | cold ms | resident ms | min–max | × PostgreSQL | DuckDB ms | × DuckDB |"
	echo "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |"
	for part in $timed; do
		queries "$part" >"$scratch/queries"
		while IFS='|' read -r name query; do measure "$name" "$query" </dev/null; done <"$scratch/queries"
	done
	echo
	cat "$scratch/details"
fi
[[ " $* " != *" load "* ]] || {
	echo "| table | GB of pages | GB on the device | ms | GB/s of pages |"
	echo "| --- | ---: | ---: | ---: | ---: |"
	for table in $(sql -c "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relpages > 10000 ORDER BY relname"); do load_table "$table"; done
}
