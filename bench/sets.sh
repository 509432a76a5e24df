#!/bin/bash
# Set joins end to end from SQL, on real families: gpu_set_join by each algorithm against PostgreSQL's plans for the same.
# Data: GJ_DATA (default ../shared/data beside the project): sets_*.tsv.gz, lines "id TAB {e,e,…}".
# GJ_SETS: how many sets of a family PostgreSQL's plans, which are quadratic, have to join (default 5000).
cd "$(dirname "$0")" && . ./lib.sh
data=${GJ_DATA:-../../shared/data} limit=$(rows "${GJ_SETS:-5000}")
algorithms=${GJ_ALGORITHMS:-auto merge_path binary_search hash bitmap inverted_index matrix}
device="SET gpujoin.enabled = on; SET gpujoin.set_device_min_elements = 0"

# load FAMILY: the family as arrays, and as a membership table with what PostgreSQL can use
load() {
	local t=sets_$1
	have "$t" && return
	sql -c "CREATE TABLE $t (id int PRIMARY KEY, s int[])"
	zcat "$data/$t.tsv.gz" | sql -c "COPY $t FROM stdin"
	sql -c "CREATE TABLE ${t}_m AS SELECT id, e FROM $t, unnest(s) e" -c "CREATE INDEX ON ${t}_m (e, id)" -c "CREATE INDEX ON $t USING gin (s)" -c "VACUUM ANALYZE $t, ${t}_m"
}

# join_ms NAME SETTINGS QUERY REPEAT: a line; the answer must be that of the first
join_ms() {
	times "$2" "$3" "$4"
	[ -n "${first:-}" ] || first=$answer
	[ "$answer" = "$first" ] || { echo "$1: $answer, not $first" >&2; exit 1; }
	row "$1" "$median" "$spread" "${answer//|/, }"
}

# pairs FAMILY SETS THRESHOLD: pairs of the first SETS sets with at least THRESHOLD common elements
pairs() {
	local t=sets_$1 n=$2 k=$3 a q
	first=
	echo
	echo "## $1: pairs of $n sets with at least $k common elements"
	echo
	echo "| by | median ms | min–max | pairs, common elements |"
	echo "| --- | ---: | ---: | --- |"
	q="SELECT count(*), sum(common) FROM gpu_set_join('SELECT id, s FROM $t WHERE id <= (SELECT id FROM $t ORDER BY id OFFSET $((n - 1)) LIMIT 1)', threshold => $k)"
	for a in $algorithms; do
		join_ms "gpu_set_join, $a" "$device; SET gpujoin.set_algorithm = $a" "$q" "$repeat"
	done
	join_ms "gpu_set_join in the process" "SET gpujoin.enabled = off" "$q" 1
	[ "$n" -le "$limit" ] || return 0
	join_ms "PostgreSQL, self-join of the membership table, workers" "$workers" \
		"WITH last AS MATERIALIZED (SELECT id FROM $t ORDER BY id OFFSET $((n - 1)) LIMIT 1) SELECT count(*), sum(c) FROM (SELECT count(*) AS c FROM ${t}_m a JOIN ${t}_m b USING (e) WHERE a.id < b.id AND a.id <= (TABLE last) AND b.id <= (TABLE last) GROUP BY a.id, b.id HAVING count(*) >= $k) x" 1
	join_ms "PostgreSQL, self-join of the membership table, one process" "$one" \
		"WITH last AS MATERIALIZED (SELECT id FROM $t ORDER BY id OFFSET $((n - 1)) LIMIT 1) SELECT count(*), sum(c) FROM (SELECT count(*) AS c FROM ${t}_m a JOIN ${t}_m b USING (e) WHERE a.id < b.id AND a.id <= (TABLE last) AND b.id <= (TABLE last) GROUP BY a.id, b.id HAVING count(*) >= $k) x" 1
}

echo "# Set joins"
echo
machine
for family in retail census1881 wikileaks-noquotes; do
	[ -e "$data/sets_$family.tsv.gz" ] || { echo "$data/sets_$family.tsv.gz is not there" >&2; exit 1; }
done
load retail
load census1881
pairs retail "$limit" 3
pairs retail "$(sql -c 'SELECT count(*) FROM sets_retail')" 10
pairs census1881 "$(sql -c 'SELECT count(*) FROM sets_census1881')" 1
