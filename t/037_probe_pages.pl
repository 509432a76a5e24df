# Nested loops whose probe rows lie on one device: the others take pages of them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session() . ' SET gpujoin.algorithm = nested_loop;';
my $node = new_node('pages', preload => 1, conf => "gpujoin.devices_per_query = 0\nwork_mem = '16MB'\n");
# one fragment; a second one of few pages; texts
$node->safe_psql('postgres', q{
	CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 11 > 0 THEN (i * 7919) % 100000 END AS k, (i % 10)::int2 AS v FROM generate_series(1, 100000) i;
	CREATE TABLE t AS SELECT id, k, 't' || id AS t FROM p;
	CREATE TABLE b AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN i * 600 END AS k, i % 9 AS w FROM generate_series(1, 150) i;
	CREATE INDEX ON b (k); -- PostgreSQL's own plans are quick
	VACUUM ANALYZE p, t, b;
});
my %queries = (
	inner => 'SELECT count(*), sum(p.id + b.w), max(b.k) FROM p JOIN b ON b.k BETWEEN p.k - 9 AND p.k + 90',
	filter => 'SELECT count(*), sum(p.id) FROM p JOIN b ON b.k BETWEEN p.k - 9 AND p.k + 90 WHERE p.v = 3',
	nothing => 'SELECT count(*), sum(p.id) FROM p JOIN b ON b.k BETWEEN p.k - 9 AND p.k + 90 WHERE p.id < 0',
	left => 'SELECT count(*), sum(p.id), sum(b.id), count(b.w) FROM p LEFT JOIN b ON b.k BETWEEN p.k AND p.k + 90 AND p.v < b.w',
	right => 'SELECT count(*), sum(p.id), sum(b.id), count(p.v) FROM p RIGHT JOIN b ON b.k BETWEEN p.k AND p.k + 1 AND p.v < b.w',
	full => 'SELECT count(*), sum(p.id), sum(b.id), count(p.v), count(b.w) FROM p FULL JOIN b ON p.k = b.k',
	anti => 'SELECT count(*), sum(p.id) FROM p WHERE NOT EXISTS (SELECT FROM b WHERE b.k BETWEEN p.k - 200 AND p.k + 90)',
	groups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT p.v, count(*), sum(p.id), min(b.k) FROM p JOIN b ON b.k BETWEEN p.k - 9 AND p.k + 90 GROUP BY p.v) x",
	sorted => "SELECT md5(string_agg(x::text, ' ')) FROM (SELECT p.id, b.id, b.w FROM p JOIN b ON b.k BETWEEN p.k - 9 AND p.k + 90 ORDER BY p.id, b.id) x",
	chain => 'SELECT count(*), sum(p.id), sum(c.w) FROM p JOIN b ON b.k BETWEEN p.k AND p.k + 90 JOIN b c ON c.id = p.v',
	texts => "SELECT count(*), sum(t.id), max(t.t) FROM t JOIN b ON b.k BETWEEN t.k - 9 AND t.k + 90 WHERE t.t LIKE '%7%'");

# rows of the probe side by device
sub rows_of
{
	my ($plan) = @_;
	my ($used) = $plan =~ /Devices Used: (.*)/;
	return [ ($used // '') =~ /rows=(\d+)/g ];
}

sub all_right
{
	my ($what, $devices) = @_;
	my %answers = map { $_ => native_answer($node, $queries{$_}) } keys %queries;
	foreach my $exchange (qw(off ring))
	{
		my $settings = "$session SET gpujoin.exchange = $exchange;";
		# what is loaded by the first run is resident for the others
		$node->safe_psql('postgres', "$settings SELECT gpujoin_cache_evict(), gpujoin_prewarm('p'), gpujoin_prewarm('t')");
		foreach my $name (sort keys %queries)
		{
			my $plan = plan_of($node, $queries{$name}, $settings);
			my $rows = rows_of($plan);

			is($node->safe_psql('postgres', "$settings $queries{$name}"), $answers{$name}, "$what, $exchange, $name: right rows") for 1 .. 2;
			unlike($plan, qr/Fallback/, "$what, $exchange, $name: no fallback");
			next if $name eq 'texts' || $name eq 'nothing';
			cmp_ok(scalar(grep { $_ > 60000 / $devices } @$rows), '==', $devices, "$what, $exchange, $name: all devices have many rows")
				or diag($plan);
		}
	}
	return \%answers;
}

foreach my $n (2, 4)
{
	restart_with_devices($node, $n);
	my $answers = all_right("$n devices", $n);
	right_when_failing($node, $queries{$_}, "$session SET gpujoin.exchange = off;", $answers->{$_}, "$n devices, $_", qw(memory build probe)) foreach qw(inner right);
	cancelled($node, 'SELECT count(*) FROM p JOIN p b ON (p.k * 3::int8 + b.k) % 7 <> 8', $session, "$n devices");
	cmp_ok(idle_ms($node), '>=', 0, "$n devices: nothing is left");
}
# pages that are not what they were come from the table, others from a device
$node->safe_psql('postgres', 'UPDATE p SET v = v + 1 WHERE id % 9000 < 10; DELETE FROM p WHERE id BETWEEN 40000 AND 41000; UPDATE t SET k = k + 1 WHERE id % 9000 < 10');
all_right('after changes', 4);
$node->safe_psql('postgres', 'UPDATE p SET v = v - 1 WHERE id BETWEEN 20000 AND 21000');
my %answers = map { $_ => native_answer($node, $queries{$_}) } keys %queries;
foreach my $name (sort keys %queries)
{
	is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "pages that have changed since, $name: right rows") for 1 .. 2;
}
done_testing();
