# Another extension has a planner of its own, as Citus has: gpujoin calls its hooks only below that
# planner, and leaves what that planner has planned as it is.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $include = `pg_config --includedir-server`);
my $library = PostgreSQL::Test::Utils::tempdir() . '/other_planner.so';
system('gcc', '-shared', '-fPIC', "-I$include", '-o', $library, "$FindBin::RealBin/other_planner.c") == 0 or die;

# set_*_pathlist_hook of gpujoin call those before them
my $node = new_node('other', conf => "shared_preload_libraries = '$library,gpujoin'\n"
	  . "gpujoin.device = " . device() . "\ngpujoin.auto_prewarm = '100MB'\n");
ok(on_device($node), 'there is a device');
$node->safe_psql('postgres', q{
	CREATE TABLE own AS SELECT i AS id, i * 7919::bigint % 2000 + 1 AS k, i % 97 AS v, repeat('x', 100) AS filler FROM generate_series(1, 40000) i;
	CREATE TABLE dim AS SELECT i AS k, i % 10 AS g FROM generate_series(1, 2000) i;
	CREATE TABLE distributed AS TABLE own;
	CREATE INDEX ON own (k);
});
$node->safe_psql('postgres', 'VACUUM ANALYZE own, dim, distributed');

my $join = 'SELECT g, count(*), sum(v) FROM %s JOIN dim USING (k) GROUP BY g ORDER BY g';
my $correlated = 'SELECT count(*) FROM %s o JOIN dim USING (k) WHERE v > (SELECT avg(v) FROM %1$s i WHERE i.k = o.k)';

# Runs a query: its answer, its errors, and how often the other planner has planned.
sub run
{
	my ($query, $settings) = @_;
	my ($out, $err);
	$node->psql('postgres', "$settings $query", stdout => \$out, stderr => \$err);
	my $planned = () = $err =~ /the other planner plans/g;
	return ($out, join('', grep { !/^(psql:.*)?NOTICE/ } split /^/, $err), $planned);
}

foreach my $settings ('', 'SET gpujoin.force = on;')
{
	foreach my $form ($join, $correlated)
	{
		my $query = sprintf $form, 'own';
		my ($expected) = run($query, 'SET gpujoin.enabled = off;');
		my ($answer, $errors, $planned) = run($query, $settings);
		is($errors, '', "own tables: no error ($settings)");
		is($answer, $expected, 'the same answer');
		is($planned, 0, 'the other planner had nothing to do');
		(undef, $errors, $planned) = run(sprintf($form, 'distributed'), $settings);
		is($errors, '', "the other planner's table: no error ($settings)");
		is($planned, 1, 'it is planned once');
	}
}
# still loaded in the background, planned as if it were resident
$node->safe_psql('postgres', sprintf $join, 'own') for 1 .. 3;
ok(wait_until(10, sub { $node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_cache WHERE relation = 'own'::regclass") > 0 }),
	'own tables become resident in the background');
run(sprintf($join, 'distributed'), '') for 1 .. 4;
sleep 1;
is($node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_cache WHERE relation = 'distributed'::regclass"), '0', "the other planner's do not");
$node->stop;
done_testing();
