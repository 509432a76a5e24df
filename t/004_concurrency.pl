# Twenty sessions at once, each with the answers that it would have alone.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('concurrency', preload => 1);
$node->safe_psql('postgres', q{
	CREATE TABLE g AS SELECT i AS id, i % 1000 AS k, repeat('x', i % 300) AS t FROM generate_series(1, 40000) i;
	CREATE TABLE changing (k int, v int);
	INSERT INTO changing SELECT i % 60, 1 FROM generate_series(1, 6000) i;
	VACUUM ANALYZE g;
});
my @queries = (
	$sums,
	"SELECT count(*), sum(id), sum(length(name)) FROM ($rows OFFSET 0) x",
	'SELECT count(*), sum(a.id - b.k) FROM g a JOIN g b USING (k)',
	"SELECT count(*), sum(length(t)), max(name) FROM (SELECT g.t, d.name FROM g JOIN d USING (k) OFFSET 0) x",
	'SELECT count(*), sum(f.v), min(g.id) FROM f JOIN d ON f.k = d.k JOIN g ON g.id = f.id WHERE f.v > 20',
	"SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE f.t LIKE '%7%'",
	'SELECT count(*), sum(x.n) FROM f JOIN (SELECT k, count(*) AS n FROM g GROUP BY k) x USING (k)',
	"SELECT count(*) FROM (SELECT a.id FROM f a JOIN f b USING (k) LIMIT 1000) x",
	"SELECT cardinality(gpu_intersect((SELECT array_agg(i) FROM generate_series(1, 200000) i), (SELECT array_agg(i * 3) FROM generate_series(1, 200000) i)))");
my $off = 'SET gpujoin.enabled = off; ';
my @answers = map { $node->safe_psql('postgres', "$off $_") } @queries;

for my $round (1 .. 3)
{
	my @runs;
	for my $i (0 .. 19)
	{
		my @mine = map { ($i * 7 + $_ * $round) % @queries } 0 .. 4;
		push @runs, { mine => \@mine, run => start_psql($node, join('', map { "$queries[$_];\n" } @mine)) };
	}
	my $wrong = 0;
	foreach my $r (@runs)
	{
		my ($out, $err) = finish($r->{run});
		my $expected = join("\n", map { $answers[$_] } @{ $r->{mine} });
		next if $out eq $expected && $err eq '';
		$wrong++;
		diag("got $out $err instead of $expected");
	}
	is($wrong, 0, "round $round: 20 sessions with 5 queries each");
}
# beside writers
my @writers = map { start_psql($node, "DO \$\$ BEGIN FOR i IN 1..200 LOOP UPDATE changing SET v = v + 1 WHERE k = i % 60; UPDATE changing SET v = v - 1 WHERE k = i % 60; COMMIT; END LOOP; END \$\$;") } 1 .. 2;
my $different = 0;
for (1 .. 30)
{
	# every transaction leaves the sum as it was
	my $answer = $node->safe_psql('postgres', GpuJoin::session() . 'SELECT count(*), sum(c.v) FROM changing c JOIN d ON c.k = d.k');
	$different++, diag($answer) if $answer ne '6000|6000';
}
is($different, 0, 'joins beside writers see whole transactions');
finish($_) foreach @writers;
# some are cancelled while others run
my @runs = map { start_psql($node, $_ % 2 ? "SET gpujoin.fail_at = 'stall'; SET statement_timeout = '500ms'; $sums;" : "$queries[0];$queries[1];$queries[4];") } 1 .. 16;
my ($right, $cancelled) = (0, 0);
for my $i (0 .. 15)
{
	my ($out, $err) = finish($runs[$i]);
	$right++ if $out eq join("\n", @answers[ 0, 1, 4 ]) && $err eq '';
	$cancelled++ if $err =~ /statement timeout/ || $out eq $sums_answer;
}
is($right, 8, 'eight sessions have their answers');
is($cancelled, 8, 'beside eight that were cancelled');
is(idle_ms($node) >= 0, 1, 'nothing is left');
is(how($node, $sums), 'GpuJoin', 'on the device as before');
is(scalar daemon_pids($node), 1, 'one gpujoind');
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
