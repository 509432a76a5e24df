#!/bin/bash
# How long PostgreSQL plans the 22 queries of TPC-H, and one of eight relations with three subqueries, without gpujoin and
# with it.  The tables are those of bench/tpc.sh, which makes them first if they are missing.
#
#   GJ_SCALE=1     scale factor
#   GJ_REPEAT=15   plans of each query, by turns without and with gpujoin, in one session; medians are printed
cd "$(dirname "$0")" && . ./lib.sh
repeat=${GJ_REPEAT:-15}
database=$(tpc_database tpch)
has_database "$database" || GJ_SCALE=$scale GJ_REPEAT=0 ./tpc.sh tpch >/dev/null
export PGDATABASE=$database

eight="SELECT n_name, count(*), sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem l ON l_orderkey = o_orderkey
	JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
	JOIN part ON p_partkey = l_partkey JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
WHERE EXISTS (SELECT FROM lineitem x WHERE x.l_orderkey = o_orderkey AND x.l_suppkey <> l.l_suppkey)
	AND o_totalprice > (SELECT avg(o_totalprice) FROM orders)
	AND p_partkey IN (SELECT ps_partkey FROM partsupp GROUP BY ps_partkey HAVING sum(ps_availqty) > 1000)
GROUP BY n_name ORDER BY revenue DESC"

# planning QUERY: medians without and with gpujoin, in ms; both have planned it once before
planning() {
	local out
	out=$(for _ in $(seq 0 "$repeat"); do printf '%s;\nEXPLAIN (SUMMARY) %s;\n' "$native" "$1" "$gpu" "$1"; done |
		sql | sed -n 's/^Planning Time: \([0-9.]*\) ms/\1/p' | tail -n +3)
	for first in 1 2; do sed -n "$first~2p" <<<"$out" | middle; done | paste -s -d ' '
}

echo "## Planning, TPC-H at scale $scale"
echo
machine
echo
row query "PostgreSQL ms" "with gpujoin" more
row --- ---: ---: ---:
{
	for file in tpch/q*.sql; do echo "$(basename "$file" .sql) $(planning "$(cat "$file")")"; done
	echo "eight $(planning "$eight")"
} | awk '{ off += $2; on += $3; printf "| %s | %.2f | %.2f | %.2f |\n", $1, $2, $3, $3 - $2 }
	END { printf "| sum | %.2f | %.2f | %.2f |\n", off, on, on - off }'
