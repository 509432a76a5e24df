# gpujoin.auto_prewarm: tables of queries that would use a device were they resident are loaded in the
# background.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

# Tables so small that PostgreSQL's plan costs less than loading them, and more than using what is
# resident: to a GPU they are small if rows cost PostgreSQL less, to the cpu device if it has few threads.
my $costs = device() eq 'cuda' ? "cpu_tuple_cost = 0.0035\ncpu_operator_cost = 0.0009\n" : "gpujoin.cpu_threads = 2\n";
my $node = new_node('auto', preload => 1, conf => $costs);
ok(on_device($node), 'there is a device');
$node->safe_psql('postgres', q{
	SELECT gpujoin_cache_evict();
	CREATE ROLE reader LOGIN;
	CREATE ROLE nobody LOGIN;
	CREATE TABLE dim AS SELECT i AS id, i % 10 AS g, 'dim ' || i AS t FROM generate_series(1, 2000) i;
	CREATE TABLE fact AS SELECT i AS id, i * 7919::bigint % 2000 + 1 AS d, i % 100 AS v, repeat('x', i % 20) AS t FROM generate_series(1, 20000) i;
	CREATE TABLE fact2 AS TABLE fact;
	CREATE TABLE stale AS TABLE fact;
	CREATE VIEW v AS SELECT g, count(*), sum(v) FROM fact2 JOIN dim ON fact2.d = dim.id GROUP BY g;
	GRANT SELECT ON v TO nobody;
	GRANT SELECT ON fact, dim TO reader;
	ANALYZE;
});
$node->safe_psql('postgres', 'VACUUM fact, fact2, dim');
my $query = 'SELECT g, count(*), sum(v) FROM %s f JOIN dim ON f.d = dim.id GROUP BY g ORDER BY g';

# Runs a query in so many sessions: whether the last one used a device.
sub run
{
	my ($sessions, $sql, $setting, $user) = @_;
	my $plan;
	$plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) $sql",
		extra_params => [ '-U', $user || scalar getpwuid($<) ]) for 1 .. $sessions;
	return $plan =~ /GpuJoin/ && $plan !~ /Fallback: / ? 'GpuJoin' : 'native';
}

sub configure { my ($value) = @_; $node->append_conf('postgresql.conf', "gpujoin.auto_prewarm = '$value'\n"); $node->reload; }
sub resident { my ($table) = @_; return $node->safe_psql('postgres', "SELECT coalesce(sum(pages), 0) FROM gpujoin_cache WHERE relation = '$table'::regclass"); }
sub loads { my $n = () = slurp_file($node->logfile) =~ /has loaded ".*" in the background/g; return $n; }

is($node->safe_psql('postgres', 'SHOW gpujoin.auto_prewarm'), '0', 'it is off');
is(run(5, sprintf($query, 'fact')), 'native', 'a small table that is not resident: native');
sleep 1;
is(resident('fact'), 0, 'and it stays so');

configure('100MB');
is(run(2, sprintf($query, 'fact')), 'native', 'twice');
sleep 1;
is(resident('fact'), 0, 'is not enough');
run(1, sprintf($query, 'fact'));
ok(wait_until(10, sub { resident('fact') > 100 && resident('dim') > 5 }), 'after the third time it is loaded');
is(run(1, sprintf($query, 'fact')), 'GpuJoin', 'and a device is used');
is($node->safe_psql('postgres', "SELECT columns FROM gpujoin_cache WHERE relation = 'fact'::regclass"), '{d,v}', 'with the columns of the query');
like(slurp_file($node->logfile), qr/gpujoin has loaded "fact" in the background: \d+ pages are resident/, 'the log says so');
my $loads = loads();
run(5, sprintf($query, 'fact'));
sleep 1;
is(loads(), $loads, 'what is resident is not loaded again');

# what is not loaded
is(run(5, sprintf($query, 'stale')), 'native', 'a table without a VACUUM');
configure('1MB');
is(run(5, sprintf($query, 'fact2')), 'native', 'a table that is too large');
configure('100MB');
is(run(5, 'SELECT * FROM v', undef, 'nobody'), 'native', 'one that the user may not read');
run(5, 'SELECT count(*) FROM dim');
sleep 1;
is(loads(), $loads, 'are not loaded');

# one that was given up is left alone for a while
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
is(run(5, sprintf($query, 'fact')), 'native', 'evicted: native');
sleep 1;
is(loads(), $loads, 'and not loaded again at once');
# by another user it is
run(4, sprintf($query, 'fact'), undef, 'reader');
ok(wait_until(10, sub { resident('fact') > 100 }), 'another user may load it');

# many sessions at once
my @runs = map { start_psql($node, sprintf("SET gpujoin.force = off; $query;", 'fact2') x 5) } 1 .. 8;
my %answers;
$answers{(finish($_))[0]}++ foreach @runs;
is(scalar keys %answers, 1, 'many sessions: equal answers');
ok(wait_until(10, sub { resident('fact2') > 100 }), 'loaded');
my $times = () = slurp_file($node->logfile) =~ /has loaded "fact2" in the background/g;
is($times, 1, 'once');
unlike(slurp_file($node->logfile), qr/(FATAL|PANIC|TRAP|terminated by signal)/, 'nothing failed');
$node->stop;
done_testing();
