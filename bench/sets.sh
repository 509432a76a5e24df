#!/bin/bash
# Set operations end to end from SQL, against PostgreSQL's plans and programs on the cpu for the same.
#   bench/sets.sh [STEP...]    real: pairs of real families; shapes: all pairs of families with published statistics;
#                              pairs: two large sets; family: intersection families.  Default: all, some 5 minutes on a GPU machine.
# Data of `real`: GJ_DATA (default ../shared/data beside the project): sets_*.tsv.gz, lines "id TAB {e,e,…}".  All else is generated
# by bench/set_peer.c, which also is the cpu's peer (SIMD, all cores; with CRoaring where its header roaring/roaring.h is found).
# GJ_SETS (5000), GJ_ALL_SETS (all): sets of real families that all plans, and that only the fastest have to join.  GJ_SHAPE_SETS ("10000 100000"), GJ_SHAPES, GJ_PAIR_SIZES
# ("1000000 10000000"), GJ_PAIR_UNIVERSES ("100000000 1000000000"), GJ_FAMILY_SETS ("5000 10000"): sizes of the generated.
# GJ_SQL_SECONDS (3; for the whole of retail GJ_BEST_SECONDS, 30), GJ_PEER_SECONDS (1): PostgreSQL's plans are broken off after it; the
# programs are, and extrapolated ("~").
# GJ_ALGORITHMS: techniques to try at the smallest size.  GJ_REPEAT (5; the generated: at most 3, and once at the larger sizes).
cd "$(dirname "$0")" && . ./lib.sh
data=${GJ_DATA:-../../shared/data} limit=$(rows "${GJ_SETS:-5000}")
algorithms=${GJ_ALGORITHMS:-auto merge_path binary_search hash bitmap inverted_index matrix}
device="SET gpujoin.enabled = on; SET gpujoin.set_device_min_elements = 0"
sql_seconds=${GJ_SQL_SECONDS:-3} best_seconds=${GJ_BEST_SECONDS:-30}
export GJ_PEER_SECONDS=${GJ_PEER_SECONDS:-1}
work=$(mktemp -d /tmp/gjsets.XXXXXX)
trap 'rm -rf "$work"' EXIT

few=$((repeat < 3 ? repeat : 3))

# compile_peer: $work/set_peer
compile_peer() {
	[ ! -x "$work/set_peer" ] || return 0
	gcc -O3 -pthread -DWITH_ROARING -o "$work/set_peer" set_peer.c -lm -lroaring 2>/dev/null || gcc -O3 -pthread -o "$work/set_peer" set_peer.c -lm
}
has_roaring() { gcc -DWITH_ROARING -include roaring/roaring.h -E -x c /dev/null >/dev/null 2>&1; }
# intarray in a schema of its own, so that its operators hide nobody's
has_intarray() { sql -c "CREATE SCHEMA IF NOT EXISTS gj_intarray" -c "CREATE EXTENSION IF NOT EXISTS intarray SCHEMA gj_intarray" >/dev/null 2>&1; }

# peer_rows ARGUMENTS: a line for each way of set_peer
peer_rows() {
	"$work/set_peer" "$@" | while IFS=$'\t' read -r name ms answer; do row "$name" "$ms" "" "$answer"; done
	has_roaring || row "CRoaring" "" "" "not installed"
}

# sql_row NAME SETTINGS QUERY [SECONDS]: a line; broken off after $sql_seconds
sql_row() {
	local seconds=${4:-$sql_seconds}
	times "$2; SET statement_timeout = '${seconds}s'" "$3" 1 2>"$work/error" || true
	if [ ! -s "$work/error" ]; then
		row "$1" "$median" "" "${answer//|/, }"
	elif grep -q 'statement timeout' "$work/error"; then
		row "$1" "> ${seconds}000" "" ""
	else
		cat "$work/error" >&2
		exit 1
	fi
}

# gpu_row NAME SETTINGS QUERY REPEAT: a line, and it ends the benchmark if the answer is not that of the lines before
gpu_row() {
	times "$2" "$3" "$4"
	[ -n "${first:-}" ] || first=$answer
	[ "$answer" = "$first" ] || { echo "$1: $answer, not $first" >&2; exit 1; }
	row "$1" "$median" "$spread" "${answer//|/, }"
}
table() { printf '\n## %s\n\n| by | ms | min–max | %s |\n| --- | ---: | ---: | --- |\n' "$1" "$2"; }

# load FAMILY: the family as arrays, and as a membership table with what PostgreSQL can use
load() {
	local t=sets_$1
	have "$t" && return
	sql -c "CREATE TABLE $t (id int PRIMARY KEY, s int[])"
	zcat "$data/$t.tsv.gz" | sql -c "COPY $t FROM stdin"
	sql -c "CREATE TABLE ${t}_m AS SELECT id, e FROM $t, unnest(s) e" -c "CREATE INDEX ON ${t}_m (e, id)" -c "CREATE INDEX ON $t USING gin (s)" -c "VACUUM ANALYZE $t, ${t}_m"
}

# pairs FAMILY SETS THRESHOLD: pairs of the first SETS sets with at least THRESHOLD common elements
pairs() {
	local t=sets_$1 n=$2 k=$3 a q seconds=$best_seconds tried=auto times=1
	[ "$n" -gt "$limit" ] || seconds=$sql_seconds tried=$algorithms times=$repeat
	first=
	table "$1: pairs of $n sets with at least $k common elements" "pairs, common elements"
	q="SELECT count(*), sum(common) FROM gpu_set_join('SELECT id, s FROM $t WHERE id <= (SELECT id FROM $t ORDER BY id OFFSET $((n - 1)) LIMIT 1)', threshold => $k)"
	for a in $tried; do
		gpu_row "gpu_set_join, $a" "$device; SET gpujoin.set_algorithm = $a" "$q" "$([ "$a" = auto ] && echo "$times" || echo 1)"
	done
	sql_row "gpu_set_join in the process" "$native" "$q" "$seconds"
	compile_peer
	sql -c "COPY (SELECT id, s FROM $t ORDER BY id LIMIT $n) TO stdout" >"$work/family"
	peer_rows overlap "$work/family" "$k"
	# the same sets as rows, as people keep them
	have "${t}_m_$n" || sql -c "CREATE TABLE ${t}_m_$n AS SELECT id, e FROM ${t}_m WHERE id <= (SELECT id FROM $t ORDER BY id OFFSET $((n - 1)) LIMIT 1)" \
		-c "CREATE UNIQUE INDEX ON ${t}_m_$n (id, e)" -c "CREATE INDEX ON ${t}_m_$n (e, id)" -c "VACUUM ANALYZE ${t}_m_$n"
	q="SELECT count(*), sum(c) FROM (SELECT count(*) AS c FROM ${t}_m_$n a JOIN ${t}_m_$n b USING (e) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= $k) x"
	sql_row "PostgreSQL, self-join of the membership table, workers" "$workers" "$q" "$seconds"
	[ "$n" -gt "$limit" ] || sql_row "PostgreSQL, self-join of the membership table, one process" "$one" "$q"
	gpu_row "the same SQL on the device: set join of the membership table" "$device" "$q" "$times"
	# where sets are many it is left out: all pairs with a common element are its groups
	[ "$n" -gt "$limit" ] || gpu_row "the same SQL on the device: hash join and groups" "$device; SET gpujoin.algorithm = hash" "$q" 1
}

step_real() {
	local family
	for family in retail census1881; do
		[ -e "$data/sets_$family.tsv.gz" ] || { echo "$data/sets_$family.tsv.gz is not there: step real left out" >&2; return; }
	done
	load retail
	load census1881
	pairs retail "$limit" 3
	overlaps sets_retail "$limit"
	pairs retail "$limit" 10
	pairs retail "${GJ_ALL_SETS:-$(sql -c "SELECT count(*) FROM sets_retail")}" 3
	pairs census1881 "$(sql -c 'SELECT count(*) FROM sets_census1881')" 1
}

# overlaps TABLE SETS: what core's and intarray's operators find out: which of the first SETS sets overlap, and where asked, in how much
overlaps() {
	local t=$1 first="id <= (SELECT id FROM $1 ORDER BY id OFFSET $(($2 - 1)) LIMIT 1)" from
	from="(SELECT * FROM $t WHERE $first) a, $t b WHERE b.$first AND a.id < b.id"
	sql_row "PostgreSQL, core \`&&\` (at least one), GIN, workers" "$workers" "SELECT count(*) FROM $from AND a.s OPERATOR(pg_catalog.&&) b.s"
	sql_row "PostgreSQL, core \`&&\` (at least one), no index, workers" "$workers; SET enable_indexscan = off; SET enable_bitmapscan = off" "SELECT count(*) FROM $from AND a.s OPERATOR(pg_catalog.&&) b.s"
	if has_intarray; then
		sql_row "PostgreSQL, intarray \`&\`, workers" "$workers" "SELECT count(*), sum(c) FROM (SELECT gj_intarray.icount(a.s OPERATOR(gj_intarray.&) b.s) AS c FROM $from AND a.s OPERATOR(gj_intarray.&&) b.s) x"
	else
		row "PostgreSQL, intarray" "" "" "not installed"
	fi
}

# published SHAPE: milliseconds for all pairs of 100 000 sets on a Titan XP (Bellas and Gounaris, "Exploiting GPUs for fast intersection of
# large sets", Information Systems 108, 2022)
published() {
	case $1 in BMS) echo 7000 ;; ENRON) echo 20400 ;; ORKUT) echo 24100 ;; TWITTER) echo 22300 ;; WORDS) echo 43400 ;; esac
}

# Generated with the average set size, number of distinct elements and a power law like those of the named data, as used by Mann, Augsten and
# Bouros (PVLDB 9(9), 2016) and Bellas and Gounaris; the data is not theirs.
step_shapes() {
	local shape n t a best q counts=${GJ_SHAPE_SETS:-10000 100000} smallest
	smallest=${counts%% *}
	compile_peer
	for shape in ${GJ_SHAPES:-BMS ENRON ORKUT TWITTER WORDS}; do
		for n in $counts; do
			t=shape_${shape,,}_$n
			"$work/set_peer" family "$shape" "$n" >"$work/$t"
			if ! have "$t"; then
				sql -c "CREATE TABLE $t (id int PRIMARY KEY, s int[])" -c "COPY $t FROM stdin" <"$work/$t"
				[ "$n" != "$smallest" ] || sql -c "CREATE TABLE ${t}_m AS SELECT id, e FROM $t, unnest(s) e" -c "CREATE INDEX ON ${t}_m (e, id)" -c "CREATE INDEX ON $t USING gin (s)" -c "VACUUM ANALYZE ${t}_m"
				sql -c "VACUUM ANALYZE $t"
			fi
			table "like $shape (generated), $n sets: of each the most that it shares with another (all pairs counted)" "sets that share, sum of the most"
			first=
			best="SELECT count(*), sum(score)::bigint FROM gpu_set_topk('SELECT id, s FROM $t', k => 1, metric => 'overlap')"
			gpu_row "gpu_set_topk, auto" "$device" "$best" "$([ "$n" = "$smallest" ] && echo "$few" || echo 1)"
			if [ "$n" = "$smallest" ]; then
				for a in $algorithms; do [ "$a" = auto ] || gpu_row "gpu_set_topk, $a" "$device; SET gpujoin.set_algorithm = $a" "$best" 1; done
			fi
			peer_rows best "$work/$t"
			[ "$n" != 100000 ] || row "published: all pairs on a Titan XP, the real data" "$(published "$shape")" "" ""
			if [ "$n" = "$smallest" ]; then
				sql_row "PostgreSQL, self-join of the membership table, workers" "$workers" "SELECT count(*), sum(m) FROM (SELECT max(c) AS m FROM (SELECT a.id, count(*) AS c FROM ${t}_m a JOIN ${t}_m b USING (e) WHERE a.id <> b.id GROUP BY a.id, b.id) x GROUP BY id) y"
			fi
			table "like $shape (generated), $n sets: pairs with a Jaccard index of at least 0.5" "pairs, common elements"
			first=
			q="SELECT count(*), coalesce(sum(common), 0) FROM gpu_set_join('SELECT id, s FROM $t', predicate => 'jaccard', threshold => 0.5)"
			gpu_row "gpu_set_join, auto" "$device" "$q" "$([ "$n" = "$smallest" ] && echo "$few" || echo 1)"
			if [ "$n" = "$smallest" ]; then
				for a in $algorithms; do [ "$a" = auto ] || gpu_row "gpu_set_join, $a" "$device; SET gpujoin.set_algorithm = $a" "$q" 1; done
			fi
			peer_rows jaccard "$work/$t" 0.5
			[ "$n" != "$smallest" ] || overlaps "$t" "$n"
			rm "$work/$t"
		done
	done
}

step_pairs() {
	local n universe distribution t
	compile_peer
	for n in ${GJ_PAIR_SIZES:-1000000 10000000}; do
		for universe in ${GJ_PAIR_UNIVERSES:-100000000 1000000000}; do
			for distribution in uniform normal zipf; do
				t=pair_${n}_${universe}_$distribution
				"$work/set_peer" two "$n" "$universe" "$distribution" >"$work/$t"
				if ! have "$t"; then
					sql -c "CREATE TABLE $t (id int PRIMARY KEY, s int[])" -c "ALTER TABLE $t ALTER s SET STORAGE EXTERNAL" -c "COPY $t FROM stdin" <"$work/$t"
				fi
				table "$n elements each of $universe, $distribution" "common elements"
				first=
				gpu_row "gpu_intersect_count, device, from the table" "$device" "SELECT gpu_intersect_count(a.s, b.s) FROM $t a, $t b WHERE a.id = 1 AND b.id = 2" "$few"
				gpu_row "gpu_intersect_count, session's process, from the table" "$native" "SELECT gpu_intersect_count(a.s, b.s) FROM $t a, $t b WHERE a.id = 1 AND b.id = 2" "$few"
				if has_intarray; then
					sql_row "PostgreSQL, intarray \`&\`, from the table" "$one" "SELECT gj_intarray.icount(a.s OPERATOR(gj_intarray.&) b.s) FROM $t a, $t b WHERE a.id = 1 AND b.id = 2"
				else
					row "PostgreSQL, intarray" "" "" "not installed"
				fi
				peer_rows pair "$work/$t"
				rm "$work/$t"
			done
		done
	done
	echo
	echo "In memory of the device, without the way there: build/kernel_test --bench-sets"
}

# Sets of 100 to 150 elements over 10^5, independent ones and variants of 50 prototypes: the shapes of Fort, Sellarès and Valladares (JPDC 104,
# 2017), who needed 0.5 to 1.2 s and 8 to 99 s for 5 000 to 50 000 sets on a K40.
step_family() {
	local kind n t q
	compile_peer
	for kind in UNIFORM SIMILAR; do
		for n in ${GJ_FAMILY_SETS:-5000 10000}; do
			t=family_${kind,,}_$n
			have "$t" || "$work/set_peer" family "$kind" "$n" | sql -c "CREATE TABLE $t (id int PRIMARY KEY, s int[])" -c "COPY $t FROM stdin" -c "VACUUM ANALYZE $t"
			table "intersection family of $n ${kind,,} sets" "distinct intersections, pairs"
			q="SELECT count(*), sum(frequency) FROM gpu_intersect_family('SELECT id, s FROM $t')"
			sql_row "gpu_intersect_family, device" "$device" "$q"
			sql_row "gpu_intersect_family, session's process" "$native" "$q"
			if has_intarray; then
				sql_row "PostgreSQL, intarray \`&\`, workers" "$workers" "SELECT count(*), sum(f) FROM (SELECT count(*) AS f FROM (SELECT a.s OPERATOR(gj_intarray.&) b.s AS x FROM $t a JOIN $t b ON a.id < b.id) y WHERE gj_intarray.icount(x) > 0 GROUP BY x) z"
			else
				row "PostgreSQL, intarray" "" "" "not installed"
			fi
		done
	done
}

echo "# Set operations"
echo
machine
[ $# -gt 0 ] || set -- real shapes pairs family
for step in "$@"; do
	case $step in real | shapes | pairs | family) ;; *) echo "there is no step $step" >&2; exit 1 ;; esac
	"step_$step"
done
