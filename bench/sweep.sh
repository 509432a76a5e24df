#!/bin/bash
# Does the planner choose right?  Joins of every size, few or all outer rows matching, an aggregate or rows as the result:
# PostgreSQL's best plan, GpuJoin forced, and what the planner chooses.  The choice is right if it is the faster of the two
# or within 10 % of it (and half a millisecond).
#
#   GJ_SIZES="100 1000 10000 100000 1000000 10000000"   of both sides
#   GJ_REPEAT=3                                          how often each is timed (once more to warm up)
#   GJ_SVG=sweep.svg                                     draws the cells there
cd "$(dirname "$0")" && . ./lib.sh
repeat=${GJ_REPEAT:-3}
sizes=${GJ_SIZES:-100 1000 10000 100000 1000000 10000000}
for n in $sizes; do
	have "sweep_outer_$n" || { sql -c "CREATE TABLE sweep_outer_$n (k int, v int)"; insert_parallel "sweep_outer_$n" "$n" "(i * 7919) % $n, (i % 1000)::int"; }
	have "sweep_inner_$n" || { sql -c "CREATE TABLE sweep_inner_$n (k int, v int)"; insert_parallel "sweep_inner_$n" "$n" "i - 1, (i % 1000)::int"; sql -c "CREATE UNIQUE INDEX ON sweep_inner_$n (k)" -c "VACUUM ANALYZE sweep_inner_$n"; }
done
cells=$(mktemp /tmp/gj_sweep.XXXXXX)
trap 'rm -f "$cells"' EXIT

echo "## Planner sweep"
echo
machine
echo
echo "| outer | inner | matching | result | PostgreSQL ms | GpuJoin ms | chosen | chosen ms | right |"
echo "| ---: | ---: | ---: | --- | ---: | ---: | --- | ---: | --- |"
for outer in $sizes; do
	for inner in $sizes; do
		for matching in 0.01 1; do
			for result in aggregate rows; do
				# rows: as many as an application would fetch, at most 10 M
				limit=$(awk -v o="$outer" -v m="$matching" 'BEGIN { printf "%d", o * m }')
				condition="o.v < $(awk -v m="$matching" 'BEGIN { printf "%d", 1000 * m }')"
				join="sweep_outer_$outer o JOIN sweep_inner_$inner i ON o.k = i.k WHERE $condition"
				if [ $result = aggregate ]; then
					query="SELECT count(*), sum(o.v + i.v) FROM $join"
				else
					[ "$limit" -le 10000000 ] || continue
					# counted in the server, so that no client is measured
					query="SELECT count(*) FROM (SELECT o.k, o.v AS ov, i.v AS iv FROM $join OFFSET 0) x"
				fi
				times "$native" "$query" "$repeat"; native_ms=$median native_answer=$answer
				times "SET gpujoin.force = on" "$query" "$repeat"; force_ms=$median force_answer=$answer
				times "$gpu" "$query" "$repeat"; chosen_ms=$median
				[ "$native_answer" = "$force_answer" ] && [ "$native_answer" = "$answer" ] || { echo "answers differ: $query" >&2; exit 1; }
				chosen=$({ echo "$gpu;"; echo "EXPLAIN $query;"; } | sql | grep -q 'GpuJoin' && echo GpuJoin || echo PostgreSQL)
				right=$(awk -v a="$native_ms" -v b="$force_ms" -v c="$chosen" 'BEGIN {
					t = c == "GpuJoin" ? b : a; best = a < b ? a : b
					print t <= best * 1.1 + 0.5 ? "yes" : t <= best * 2 + 0.5 ? "no" : "WORSE THAN 2x" }')
				echo "| $outer | $inner | $matching | $result | $native_ms | $force_ms | $chosen | $chosen_ms | $right |"
				echo "$outer $inner $matching $result $native_ms $force_ms $chosen $right" >>"$cells"
			done
		done
	done
done
awk '{ n++; if ($8 == "yes") y++; if ($8 == "WORSE") w++ } END { printf "\n%d cells: right in %d (%.1f %%), worse than 2x in %d\n", n, y, 100 * y / n, w }' "$cells"
[ -z "${GJ_SVG:-}" ] || awk '
	function place(x) { if (!(x in at)) at[x] = count++; return at[x] }
	{ place($1); o[NR] = $1; i[NR] = $2; place($2); p[NR] = ($3 == 1 ? 1 : 0) + ($4 == "rows" ? 2 : 0); r[NR] = $5 / $6; c[NR] = $7; ok[NR] = $8; m[NR] = $3; k[NR] = $4 }
	END {
		size = 46; panel = size * count + 70
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"10\">\n", 2 * panel + 20, 2 * panel + 40
		print "<text x=\"10\" y=\"14\">PostgreSQL / GpuJoin time (green: GpuJoin is faster). G: the planner chose GpuJoin. Thick border: not the right choice. Columns: outer rows; lines: inner rows.</text>"
		for (n = 1; n <= NR; n++) {
			px = 70 + (p[n] % 2) * panel; py = 50 + int(p[n] / 2) * panel
			X = px + at[o[n]] * size; Y = py + at[i[n]] * size
			l = log(r[n]) / log(10); if (l > 1.5) l = 1.5; if (l < -1.5) l = -1.5
			v = int(255 - 150 * (l < 0 ? -l : l) / 1.5)
			printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,%d)\" stroke=\"%s\" stroke-width=\"%d\"/>\n", X, Y, size - 3, size - 3, (l > 0 ? v : 255), (l > 0 ? 255 : v), v, (ok[n] == "yes" ? "#888" : "#c00"), (ok[n] == "yes" ? 1 : 3)
			printf "<text x=\"%d\" y=\"%d\">%.2g%s</text>\n", X + 3, Y + 18, r[n], (c[n] == "GpuJoin" ? " G" : "")
			if (!seen[p[n] "x" o[n]]++) printf "<text x=\"%d\" y=\"%d\">%s</text>\n", X, py - 4, o[n]
			if (!seen[p[n] "y" i[n]]++) printf "<text x=\"%d\" y=\"%d\">%s</text>\n", px - 56, Y + 18, i[n]
			if (!seen[p[n] "title"]++) printf "<text x=\"%d\" y=\"%d\">%s, %s matching</text>\n", px, py - 18, k[n], m[n]
		}
		print "</svg>"
	}' "$cells" >"$GJ_SVG"
