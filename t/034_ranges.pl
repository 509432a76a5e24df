# Sort-merge joins on several devices, each of which has a range of the keys: the same rows as ever.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session() . ' SET gpujoin.exchange = ranges; SET gpujoin.algorithm = sort_merge;';
my $node = new_node('ranges', preload => 1, conf => "gpujoin.devices_per_query = 0\nwork_mem = '16MB'\ngpujoin.cache_size = 0\n");
$node->safe_psql('postgres', q{
	-- keys that are NULL, values that are, negative ones, floats, dates; tables that are in order and not
	CREATE TABLE l AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i * 7919 % 3001 - 300 END AS k, nullif(i % 10, 3)::int2 AS v,
		i * 0.5::float8 - 100 AS f, date '2026-01-01' + i % 700 AS d FROM generate_series(1, 6000) i;
	CREATE TABLE r AS SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL ELSE i - 200 END AS k, i % 9 AS v, i * 0.25::float8 AS f, date '2026-06-01' + i % 900 AS d, 'r' || i AS t FROM generate_series(1, 4000) i;
	CREATE INDEX ON r (k); -- PostgreSQL's own plans are quick
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w FROM generate_series(1, 200) i;
	-- half of the rows of either side have one key
	CREATE TABLE hot AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 7 ELSE i END AS k, i % 100 AS v FROM generate_series(1, 4000) i;
	CREATE TABLE bands AS SELECT i AS id, i * 31 % 5000 AS low, i * 31 % 5000 + i % 17 AS high FROM generate_series(1, 5000) i;
	CREATE TABLE none (k int, v int);
	CREATE TABLE one AS SELECT 7 AS k, 1 AS v;
	CREATE TABLE nulls AS SELECT NULL::int AS k, i AS v FROM generate_series(1, 100) i;
	VACUUM ANALYZE l, r, few, hot, bands, none, one, nulls;
});
my $band = 'r.k BETWEEN l.k - 2 AND l.k + 3';
my %queries = (
	inner => "SELECT count(*), sum(l.id + r.v), min(l.v), max(r.id), avg(l.v) FROM l JOIN r ON $band",
	equal => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.k = r.k AND l.v < r.v',
	twokeys => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.k = r.k AND l.v = r.v',
	keyband => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.v = r.v AND r.k BETWEEN l.k AND l.k + 3',
	floats => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON r.f > l.f - 0.5 AND r.f <= l.f',
	dates => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.d = r.d AND l.v < r.v AND l.id < 2000',
	columns => 'SELECT count(*), sum(b.id), sum(r.id) FROM bands b JOIN r ON r.k >= b.low AND r.k < b.high',
	filters => "SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON $band WHERE l.v % 2 = 0 AND r.v % 3 = 1",
	left => "SELECT count(*), sum(l.id), sum(r.id), count(r.v) FROM l LEFT JOIN r ON $band AND l.v < r.v",
	leftresidual => "SELECT count(*), sum(l.id), sum(r.id), count(r.v) FROM l LEFT JOIN r ON $band AND (l.v + r.v) % 3 = 1",
	right => "SELECT count(*), sum(l.id), sum(r.id), count(l.v) FROM l RIGHT JOIN r ON $band AND l.v < r.v",
	rightfilter => "SELECT count(*), sum(l.id), sum(r.id), count(l.v) FROM (SELECT * FROM l WHERE v > 2) l RIGHT JOIN (SELECT * FROM r WHERE v < 7) r ON $band",
	full => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v), count(r.v) FROM l FULL JOIN r ON l.k = r.k',
	semi => "SELECT count(*), sum(l.id) FROM l WHERE EXISTS (SELECT FROM r WHERE $band AND r.v > 3)",
	anti => "SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE $band AND l.v < r.v)",
	rightsemi => "SELECT count(*), sum(r.id) FROM r WHERE id > 3000 AND EXISTS (SELECT FROM l WHERE $band)",
	rightanti => "SELECT count(*), sum(r.id) FROM r WHERE id > 3000 AND NOT EXISTS (SELECT FROM l WHERE $band AND (l.v + r.v) % 3 = 1)",
	chain => "SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l JOIN r ON $band JOIN few ON few.k = r.v",
	chainleft => "SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l LEFT JOIN few ON few.k = l.v LEFT JOIN r ON $band",
	fulls => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.k), count(few.w) FROM l FULL JOIN r ON l.k = r.k FULL JOIN few ON few.k = r.id + 3900',
	fullfirst => 'SELECT count(*), sum(l.id), sum(few.k), sum(r.id) FROM l FULL JOIN few ON few.k = l.id + 5900 LEFT JOIN r ON r.k = l.k',
	groups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT l.v, count(*), sum(l.id), min(r.k), count(DISTINCT r.v) FROM l JOIN r ON $band GROUP BY l.v) x",
	limit => "SELECT string_agg(x::text, ' ') FROM (SELECT l.id, r.id FROM l JOIN r ON $band ORDER BY l.id DESC, r.id LIMIT 20) x",
	sorted => "SELECT md5(string_agg(x::text, ' ')) FROM (SELECT l.id, r.id FROM l JOIN r ON $band ORDER BY r.v, l.id, r.id) x",
	hot => 'SELECT count(*), sum(a.v + b.v) FROM hot a JOIN hot b USING (k)',
	hotsemi => 'SELECT count(*), sum(a.v) FROM hot a WHERE EXISTS (SELECT FROM hot b WHERE a.k = b.k)',
	hotfull => 'SELECT count(*), sum(a.v), sum(b.v) FROM hot a FULL JOIN (SELECT * FROM hot WHERE id % 3 > 0) b ON a.k = b.k',
	empty => 'SELECT count(*), sum(l.id) FROM l JOIN none ON l.k = none.k',
	emptyleft => 'SELECT count(*), sum(l.id), count(none.v) FROM l LEFT JOIN none ON l.k = none.k AND l.v < none.v',
	emptyfull => 'SELECT count(*), sum(l.id), count(none.v) FROM l FULL JOIN none ON l.k = none.k',
	nothing => 'SELECT count(*), sum(one.v) FROM none JOIN one ON none.k = one.k',
	one => 'SELECT count(*), sum(l.id), sum(one.v) FROM l JOIN one ON l.k = one.k',
	oneanti => 'SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM one WHERE l.k = one.k)',
	nullkeys => 'SELECT count(*), sum(l.id), sum(nulls.v), count(nulls.v) FROM l LEFT JOIN nulls ON l.k = nulls.k');
# what has no index takes PostgreSQL very long
$node->safe_psql('postgres', 'CREATE INDEX ON r (k); CREATE INDEX ON l (k); CREATE INDEX ON r (f); ANALYZE');
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
		is(scalar(@{ received($plan, 'ranges') }), $n, "$n devices, $name: by ranges");
	}
	my @bytes = @{ received(plan_of($node, $queries{inner}, $session), 'ranges') };
	cmp_ok(scalar(grep { $_ > 1000 } @bytes), '>=', $n - 1, "$n devices: they get rows of the others");
	is(scalar(@{ received(plan_of($node, $queries{equal}, "$session SET gpujoin.exchange = $_;"), 'ranges') }), 0, "$n devices: $_: not by ranges") foreach qw(auto on off);
	is(scalar(@{ received(plan_of($node, $queries{inner}, "$session SET gpujoin.exchange = on;"), 'ranges') }), $n, "$n devices: on: ranges where there are no keys");
	foreach my $name (sort keys %queries)
	{
		is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '8MB'; $queries{$name}"), $answers{$name}, "$n devices of little memory, $name: right rows");
	}
	foreach my $name (qw(inner full sorted groups))
	{
		right_when_failing($node, $queries{$name}, $session, $answers{$name}, "$n devices, $name", qw(memory build probe overflow output));
	}
	cancelled($node, $queries{inner}, $session, "$n devices");
	is($node->safe_psql('postgres', "$session SELECT count(*) FROM (SELECT l.id FROM l JOIN r ON $band LIMIT 5) x"), 5, "$n devices: a few rows");
	cmp_ok(idle_ms($node), '>=', 0, "$n devices: nothing is left");
	is(right_sessions($node, 5, "$session $queries{inner}; $queries{right};", "$answers{inner}\n$answers{right}"), 5, "$n devices: five sessions have their answers");
}

# Both sides fit all devices together, the build side fits none.
$node->safe_psql('postgres', 'CREATE TABLE more AS SELECT i::bigint * 7919 % 1600009 AS k, i % 7 AS v FROM generate_series(1, 1200000) i;
	CREATE TABLE less AS SELECT * FROM more WHERE k % 2 = 0; ANALYZE more, less');
my $large = 'SELECT count(*), sum(a.v), count(b.v) FROM more a JOIN less b ON b.k BETWEEN a.k AND a.k + 1 AND a.v < b.v';
# the same by keys
my $large_right = native_answer($node, 'SELECT count(*), sum(a.v), count(b.v) FROM (SELECT k, v, k AS j FROM more UNION ALL SELECT k, v, k + 1 FROM more) a JOIN less b ON b.k = a.j AND a.v < b.v');
foreach my $mode (qw(auto off))
{
	my $settings = "SET gpujoin.exchange = $mode; SET gpujoin.device_memory_limit = '42MB';";

	is($node->safe_psql('postgres', "$session $settings $large"), $large_right, "$mode, little memory: right rows");
	is(scalar(@{ received(plan_of($node, $large, "$session $settings"), 'ranges') }), $mode eq 'off' ? 0 : 8, "$mode, little memory: by ranges or not");
}
done_testing();
