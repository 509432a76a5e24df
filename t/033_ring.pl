# Nested loops on several devices, of which each has a share of the build side: the same rows as ever.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session() . ' SET gpujoin.exchange = ring; SET gpujoin.algorithm = nested_loop;';
my $node = new_node('ring', preload => 1, conf => "gpujoin.devices_per_query = 0\nwork_mem = '16MB'\ngpujoin.cache_size = 0\n");
$node->safe_psql('postgres', q{
	-- keys that are NULL, values that are, text of both sides, sometimes none or long
	CREATE TABLE l AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 900 END AS k, nullif(i % 10, 3)::int2 AS v,
		CASE WHEN i % 7 > 0 THEN repeat('l', i % 20) || i % 900 END AS t, i * 0.5::float8 AS f FROM generate_series(1, 1000) i;
	CREATE TABLE r AS SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL ELSE i + 100 END AS k, i % 9 AS v, repeat('r', i % 17) || i AS u,
		CASE WHEN i % 5 > 0 THEN repeat('l', i % 20) || i END AS t, i % 1000 AS x FROM generate_series(1, 20000) i;
	CREATE INDEX ON r (k); -- PostgreSQL's own plans are quick
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w, 's' || i AS t FROM generate_series(1, 200) i;
	CREATE TABLE none (k int, v int);
	CREATE TABLE one AS SELECT 7 AS k, 1 AS v;
	CREATE TABLE nulls AS SELECT NULL::int AS k, i AS v FROM generate_series(1, 100) i;
	VACUUM ANALYZE l, r, few, none, one, nulls;
});
# a GPU needs more memory to work in, so what it has little of is more
my ($wide_rows, $little) = GpuJoin::device() eq 'cuda' ? (40000, 80) : (4000, 8);
my @columns = map { "c$_" } 1 .. 100;
$node->safe_psql('postgres', 'CREATE TABLE wide AS SELECT i AS k, ' . join(', ', map { "md5('$_ ' || i)::uuid AS $_" } @columns) . " FROM generate_series(1, $wide_rows) i; VACUUM ANALYZE wide");
my %queries = (
	inner => 'SELECT count(*), sum(l.id + r.v), min(l.v), max(r.id), avg(l.v) FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k',
	equal => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.k = r.k AND l.v < r.v',
	other => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON (l.k + r.k) % 1000 = 7',
	texts => 'SELECT count(*), sum(l.id), sum(hashtext(u)::int8), sum(hashtext(rt)::int8), count(rt) FROM (SELECT l.id, l.k AS lk, r.u, r.t AS rt, r.k FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k OFFSET 0) l',
	textkey => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.t = r.t',
	textcondition => 'SELECT count(*), sum(l.id), sum(few.k) FROM l JOIN few ON l.t = few.t OR l.id = few.k',
	filters => "SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.k <= r.k AND l.k + 9 >= r.k WHERE l.t LIKE '%7%' AND r.u LIKE '%1%'",
	filtertexts => "SELECT count(*), sum(hashtext(u)::int8), sum(hashtext(rt)::int8) FROM (SELECT r.u, r.t AS rt FROM l JOIN r ON l.k <= r.k AND l.k + 9 >= r.k WHERE r.u LIKE '%1%' OFFSET 0) l",
	left => 'SELECT count(*), sum(l.id), sum(r.id), count(r.v) FROM l LEFT JOIN r ON l.k > r.k AND l.k - 3 < r.k AND l.v < r.v',
	leftresidual => 'SELECT count(*), sum(l.id), sum(r.id), count(r.v) FROM l LEFT JOIN r ON l.k > r.k AND l.k - 3 < r.k AND (l.v + r.v) % 3 = 1',
	right => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v) FROM l RIGHT JOIN r ON l.k = r.k AND l.v < r.v',
	rightresidual => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v), sum(length(r.u)) FROM l RIGHT JOIN r ON l.k = r.k AND (l.v + r.v) % 3 = 1',
	full => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v), count(r.v) FROM l FULL JOIN r ON l.k = r.k',
	semi => 'SELECT count(*), sum(l.id) FROM l WHERE EXISTS (SELECT FROM r WHERE l.k < r.k AND l.k + 3 > r.k AND r.v > 3)',
	anti => 'SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE l.k < r.k AND l.k + 3 > r.k AND l.v < r.v)',
	rightsemi => 'SELECT count(*), sum(r.id) FROM r WHERE EXISTS (SELECT FROM l WHERE l.k < r.k AND l.k + 3 > r.k)',
	rightanti => 'SELECT count(*), sum(r.id) FROM r WHERE NOT EXISTS (SELECT FROM l WHERE l.k < r.k AND l.k + 3 > r.k AND (l.v + r.v) % 3 = 1)',
	chain => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k JOIN few ON few.k = r.v',
	chainleft => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l LEFT JOIN few ON few.k = l.v LEFT JOIN r ON r.k >= l.k AND r.k <= l.k + 2',
	# unmatched rows of the shared side and of others come out at the end, before it and behind it
	fulls => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.k), count(few.w) FROM l FULL JOIN r ON l.k = r.k FULL JOIN few ON few.k = r.id + 19900',
	fullfirst => 'SELECT count(*), sum(l.id), sum(few.k), sum(r.id) FROM l FULL JOIN few ON few.k = l.id + 900 LEFT JOIN r ON r.k = coalesce(l.k, 10001)',
	groups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT l.v, count(*), sum(l.id), min(r.k), count(DISTINCT r.v) FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k GROUP BY l.v) x",
	grouptexts => 'SELECT count(*), sum(n), sum(length(u)) FROM (SELECT r.u, count(*) AS n FROM l RIGHT JOIN r ON l.k > r.k AND l.k - 3 < r.k GROUP BY r.u OFFSET 0) x',
	limit => "SELECT string_agg(x::text, ' ') FROM (SELECT l.id, r.id, r.u FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k ORDER BY l.id DESC, r.id LIMIT 20) x",
	sorted => "SELECT md5(string_agg(x::text, ' ')) FROM (SELECT l.id, r.id, r.u FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k ORDER BY r.u, l.id) x",
	cross => 'SELECT count(*), sum(l.id), sum(few.k) FROM l CROSS JOIN few',
	counts => 'SELECT count(*) FROM l JOIN r ON l.k <> r.k',
	empty => 'SELECT count(*), sum(l.id) FROM l JOIN none ON l.k <> none.k',
	emptyleft => 'SELECT count(*), sum(l.id), count(none.v) FROM l LEFT JOIN none ON l.k > none.k AND l.v < none.v',
	nothing => 'SELECT count(*), sum(one.v) FROM none JOIN one ON none.k <> one.k',
	one => 'SELECT count(*), sum(l.id), sum(one.v) FROM l JOIN one ON l.k > one.k',
	oneanti => 'SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM one WHERE l.k > one.k)',
	nullkeys => 'SELECT count(*), sum(l.id), sum(nulls.v), count(nulls.v) FROM l LEFT JOIN nulls ON l.k > nulls.k');
my %answers = map { $_ => native_answer($node, $queries{$_}) } keys %queries;

foreach my $n (2, 4, 8)
{
	restart_with_devices($node, $n);
	foreach my $name (sort keys %queries)
	{
		my $plan = plan_of($node, $queries{$name}, $session);

		is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "$n devices, $name: right rows");
		unlike($plan, qr/Fallback|Spilled/, "$n devices, $name: neither fallback nor passes");
		next if $name eq 'nothing';
		is(scalar(@{ received($plan, 'ring') }), $n, "$n devices, $name: in a ring");
	}
	is(scalar(@{ received(plan_of($node, $queries{inner}, "$session SET gpujoin.exchange = $_;"), 'ring') }), 0, "$n devices: $_: small tables do not go round") foreach qw(auto off);
	is(scalar(@{ received(plan_of($node, $queries{inner}, "$session SET gpujoin.exchange = on;"), 'ring') }), $n, "$n devices: on: a ring where there are no keys");
	like(plan_of($node, $queries{equal}, "$session SET gpujoin.exchange = on;"), qr/Exchanged: by the keys/, "$n devices: on: by keys where there are some");
	like($node->safe_psql('postgres', "$session EXPLAIN (ANALYZE, COSTS OFF, FORMAT json) $queries{inner}"), qr/"Exchange Join": 1,\s+"Exchange Scheme": "ring"/, "$n devices: in JSON");

	# small blocks, many of them
	foreach my $name (sort keys %queries)
	{
		is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '6MB'; $queries{$name}"), $answers{$name}, "$n devices of little memory, $name: right rows");
	}

	# failures on one of them, and of all
	foreach my $name (qw(inner full texts groups))
	{
		right_when_failing($node, $queries{$name}, $session, $answers{$name}, "$n devices, $name", qw(memory build probe overflow), $name eq 'texts' ? () : 'output');
	}
	cmp_ok(idle_ms($node), '>=', 0, "$n devices: nothing is left");

	# cancelled while they work, also between blocks, left before the end, and several at once
	cancelled($node, $queries{inner}, $session, "$n devices");
	my $large = 'SELECT count(*) FROM r a JOIN r b ON (a.k * b.k) % 7 <> 8 JOIN r c ON (b.k * c.k) % 7 = 1';
	my ($rc, $out, $err) = $node->psql('postgres', "$session SET statement_timeout = '700ms'; $large");
	like($err, qr/statement timeout/, "$n devices: cancelled between blocks");
	is($node->safe_psql('postgres', "$session SELECT count(*) FROM (SELECT l.id FROM l JOIN r ON l.k < r.k AND l.k + 3 > r.k LIMIT 5) x"), 5, "$n devices: a few rows");
	cmp_ok(idle_ms($node), '>=', 0, "$n devices: nothing is left");
	is(right_sessions($node, 5, "$session $queries{inner}; $queries{right};", "$answers{inner}\n$answers{right}"), 5, "$n devices: five sessions have their answers");
}

# A build side that fits no device, but all of them together; then not even these.
restart_with_devices($node, 4);
my $wide = 'SELECT count(*), sum(ak), ' . join(', ', map { "count(c$_)" } 1 .. 100) . ' FROM (SELECT a.k AS ak, b.* FROM wide a LEFT JOIN wide b ON b.k < a.k AND b.k + 3 > a.k OFFSET 0) x';
# the same as joins on equal keys, which PostgreSQL answers sooner
my $wide_right = native_answer($node, $wide =~ s/wide a LEFT JOIN wide b ON .* OFFSET 0/wide a CROSS JOIN (VALUES (1), (2)) d (d) LEFT JOIN wide b ON b.k = a.k - d WHERE b.k IS NOT NULL OR (a.k = 1 AND d = 1) OFFSET 0/r);
foreach my $mode (qw(ring auto))
{
	my $settings = "SET gpujoin.exchange = $mode; SET gpujoin.device_memory_limit = '${little}MB';";
	my $plan = plan_of($node, $wide, "$session $settings");

	is($node->safe_psql('postgres', "$session $settings $wide"), $wide_right, "$mode, little memory: right rows");
	is(scalar(@{ received($plan, 'ring') }), 4, "$mode, little memory: in a ring");
	# which of them has the probe rows is chance
	cmp_ok(scalar(grep { $_ > 1000000 } @{ received($plan, 'ring') }), '>=', 1, "$mode, little memory: blocks of others come");
	unlike($plan, qr/Spilled|Fallback/, "$mode, little memory: neither fallback nor passes");
}
# One device has no room for the build side: passes over blocks of it, also where probe rows come out by
# whether they have a match.
my $off = "SET gpujoin.exchange = off; SET gpujoin.device_memory_limit = '${little}MB';";
my $heavy_rows = GpuJoin::device() eq 'cuda' ? 40000 : 4000;
$node->safe_psql('postgres', "CREATE TABLE heavy (k int, v int, u text); ALTER TABLE heavy ALTER u SET STORAGE PLAIN; CREATE INDEX ON heavy (k);
	INSERT INTO heavy SELECT i * 3, i % 9, 'h' || repeat(md5(i::text), 78) FROM generate_series(1, $heavy_rows) i;
	CREATE TABLE probe AS SELECT i AS id, CASE WHEN i % 11 > 0 THEN (i * 7919) % (4 * $heavy_rows) END AS k, i % 10 AS v, 'p' || i AS t FROM generate_series(1, 3 * $heavy_rows / 2) i;
	VACUUM ANALYZE heavy, probe");
my %blocks = (
	left => 'SELECT count(*), sum(p.id), sum(r.k), count(r.v), sum(length(r.u)) FROM probe p LEFT JOIN heavy r ON r.k BETWEEN p.k - 1 AND p.k + 4',
	leftfilter => "SELECT count(*), sum(p.id), sum(r.k), max(length(r.u)) FROM probe p LEFT JOIN heavy r ON r.k BETWEEN p.k - 1 AND p.k + 4 AND (p.v + r.v) % 3 = 1 WHERE p.t LIKE '%7%'",
	leftgroups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT p.v, count(*), sum(p.id), max(length(r.u)), count(DISTINCT r.v) FROM probe p LEFT JOIN heavy r ON r.k BETWEEN p.k - 1 AND p.k + 1 GROUP BY p.v) x",
	leftrows => "SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT p.t, r.k, left(r.u, 40) FROM probe p LEFT JOIN heavy r ON r.k BETWEEN p.k - 1 AND p.k + 1 OFFSET 0) x",
	semi => 'SELECT count(*), sum(p.id) FROM probe p WHERE EXISTS (SELECT FROM heavy r WHERE r.k BETWEEN p.k AND p.k + 1 AND r.u <> p.t)',
	semifilter => "SELECT count(*), sum(p.id) FROM probe p WHERE p.t LIKE '%7%' AND EXISTS (SELECT FROM heavy r WHERE r.k BETWEEN p.k - 4 AND p.k + 4 AND (p.v + r.v) % 3 = 1 AND r.u <> p.t)",
	anti => 'SELECT count(*), sum(p.id) FROM probe p WHERE NOT EXISTS (SELECT FROM heavy r WHERE r.k BETWEEN p.k AND p.k + 1 AND r.u <> p.t)',
	antifilter => 'SELECT count(*), max(p.t) FROM probe p WHERE p.v <> 3 AND NOT EXISTS (SELECT FROM heavy r WHERE r.k BETWEEN p.k - 4 AND p.k + 4 AND (p.v + r.v) % 3 = 1 AND r.u <> p.t)');
foreach my $name (sort keys %blocks)
{
	my $right = native_answer($node, $blocks{$name});

	foreach my $algorithm (qw(nested_loop sort_merge))
	{
		foreach my $n (1, 4)
		{
			my $settings = "$session $off SET gpujoin.algorithm = $algorithm; SET gpujoin.devices_per_query = $n;";
			my $plan = plan_of($node, $blocks{$name}, $settings);

			is($node->safe_psql('postgres', "$settings $blocks{$name}"), $right, "passes of $algorithm on $n devices, $name: right rows");
			like($plan, qr/Passes: ([3-9]|\d\d)/, "passes of $algorithm on $n devices, $name: passes");
			unlike($plan, qr/Fallback/, "passes of $algorithm on $n devices, $name: no fallback");
		}
	}
}
right_when_failing($node, $blocks{left}, "$session $off", native_answer($node, $blocks{left}), 'passes with marks', qw(memory build probe overflow));
my $wide_plan = plan_of($node, $wide, "$session $off");
unlike($wide_plan, qr/Exchanged|Fallback/, 'off, little memory: neither ring nor fallback');
like($wide_plan, qr/Passes: [2-9]/, 'off, little memory: passes');
is($node->safe_psql('postgres', "$session $off $wide"), $wide_right, 'off, little memory: right rows');
is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '" . $little / 2 . "MB'; $wide"), $wide_right, 'shares do not fit: right rows');

# Resident build sides: fragments of all devices, or of one.
$node->append_conf('postgresql.conf', "gpujoin.cache_size = -1\n");
$node->restart;
foreach my $spread (4, 1)
{
	$node->safe_psql('postgres', "$session SELECT gpujoin_cache_evict(); SET gpujoin.devices_per_query = $spread; SELECT gpujoin_prewarm('r'), gpujoin_prewarm('l');");
	foreach my $name (qw(inner right texts groups sorted))
	{
		is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "resident on $spread devices, $name: right rows") for 1 .. 2;
	}
}
done_testing();
