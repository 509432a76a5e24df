# Connections that a session keeps from run to run: used again, given up when it is idle, when gpujoind has gone, and after failures.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_node('kept', preload => 1);
ok(on_device($node), 'queries are on the device');
# a result of groups is joined, and groups are compared with a value of all: several stages
my $stages = 'SELECT count(*), sum(g.s) FROM d JOIN (SELECT k, sum(v) AS s FROM f GROUP BY k) g USING (k) WHERE g.s > (SELECT avg(v) FROM f)';
my $stages_answer = native_answer($node, $stages);

# Rings that a process has mapped, by the file: a load ring and an output ring of each connection.
sub rings
{
	my ($pid) = @_;
	return sort map { m{^\S+ \S+ \S+ \S+ (\d+)\s+/memfd:gpujoin} ? $1 : () } split /\n/, slurp_file("/proc/$pid/maps");
}
sub sockets { my ($pid) = @_; return scalar grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$pid/fd/*"; }
# runs a query until the rings that it leaves are the same twice: the machine may be so busy that a second is over
sub leaves_rings
{
	my ($session, $pid, $query, $answer) = @_;
	foreach (1 .. 20)
	{
		return () unless $session->query($query) eq $answer;
		my @first = rings($pid);
		return () unless $session->query($query) eq $answer;
		my @again = rings($pid);
		return @first if @first && "@first" eq "@again";
	}
	return ();
}

my $session = GpuJoin::Session->new($node);
my $pid = $session->query('SELECT pg_backend_pid()');
my $sockets = sockets($pid);
is(scalar(leaves_rings($session, $pid, $sums, $sums_answer)), 2, 'the next run has the rings of the one before');
ok(wait_until(5, sub { !rings($pid) && sockets($pid) == $sockets }), 'an idle session gives them back, and its connection');
is($session->query($sums), $sums_answer, 'and has others for its next query');
my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF) $stages");
my $runs = () = $plan =~ /Custom Scan \(GpuJoin\)/g;
cmp_ok($runs, '>=', 2, 'a query of several stages');
my @rings = leaves_rings($session, $pid, $stages, $stages_answer);
ok(@rings >= 4 && @rings <= 8, 'keeps a connection for each, up to four') or diag(scalar(@rings) . " rings");
ok(wait_until(5, sub { !rings($pid) && sockets($pid) == $sockets }), 'and gives all back');
cmp_ok(idle_ms($node), '>=', 0, 'nothing of them is left in gpujoind');

# results of stages go with the query, not with the connection
$session->query($stages);
is($node->safe_psql('postgres', 'SELECT sum(sessions) FROM gpujoin_devices'), 0, 'a kept connection counts as no session');
cmp_ok(idle_ms($node), '>=', 0, 'and holds no memory of a device');

# timeouts of PostgreSQL beside ours
$session->query('SET statement_timeout = 700');
is($session->query($sums), $sums_answer, 'a query with a timeout');
$session->query('SELECT pg_sleep(3)');
like($session->errors, qr/statement timeout/, 'which comes in time');
ok(wait_until(5, sub { !rings($pid) }), 'and ours, too');
$session->query('SET statement_timeout = 0');
is($session->query("$sums; SELECT pg_sleep(1.5); $sums"), "$sums_answer\n\n$sums_answer", 'ours comes while a statement runs');
$session->query("$sums; SELECT 1 / 0");
like($session->errors, qr/division by zero/, 'an error, which ends all timeouts');
ok(wait_until(5, sub { !rings($pid) && sockets($pid) == $sockets }), 'but ours');

# failures: the connection is closed, and the next query has another one
foreach my $point ('submit', 'load', 'probe', 'return')
{
	is($session->query("SET gpujoin.fail_at = '$point'; $sums; RESET gpujoin.fail_at; $sums"), "$sums_answer\n$sums_answer", "after a failure of $point");
}
$session->query("SET statement_timeout = '300ms'; SET gpujoin.fail_at = 'stall'; $sums");
like($session->errors, qr/statement timeout/, 'cancelled in a run');
is($session->query("RESET gpujoin.fail_at; SET statement_timeout = 0; $sums"), $sums_answer, 'and the next query is right');
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left of these');

# gpujoind goes while a connection to it is kept
my @before = daemon_pids($node);
is($session->query($sums), $sums_answer, 'a query');
kill 'KILL', @before;
is($session->query($sums), $sums_answer, 'at once after gpujoind was killed: the right rows');
is($session->errors, '', 'and no error');
ok(restarted($node, @before), 'there is another one');
ok(wait_until(15, sub { $session->query("EXPLAIN (ANALYZE, COSTS OFF) $sums") !~ /Fallback/ }), 'which the session uses');

# settings that a greeting names hold for the next run of a connection
is($session->query("$sums; SET gpujoin.max_running_queries = 0; $sums"), "$sums_answer\n$sums_answer", 'no more queries may run');
unlike($session->query("SET gpujoin.max_running_queries = 0; EXPLAIN (ANALYZE, COSTS OFF) $sums"), qr/GpuJoin/, 'and none does');
is($session->query("RESET gpujoin.max_running_queries; $sums"), $sums_answer, 'until they may');
$session->end;

# sessions that come and go, and some that stay
my @staying = map { GpuJoin::Session->new($node, $sums) } 1 .. 8;
is(right_sessions($node, 12, "$sums; $sums", "$sums_answer\n$sums_answer"), 12, 'twelve sessions beside eight');
$_->send("$sums; $stages; $sums") foreach @staying;
is(scalar(grep { $_->answer eq "$sums_answer\n$stages_answer\n$sums_answer" } @staying), 8, 'and the eight');
$_->end foreach @staying;
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left in gpujoind');

# more sessions than connections are kept, of all: rings of 16 at most, and of others that are just closing
my @many = map { GpuJoin::Session->new($node) } 1 .. 24;
my @pids = map { $_->query('SELECT pg_backend_pid()') } @many;
my $most = 0;
foreach (1 .. 3)
{
	$_->query($sums) foreach @many;
	my %rings = map { $_ => 1 } map { rings($_) } @pids;
	$most = keys %rings if keys %rings > $most;
}
ok($most > 0 && $most <= 32, "connections that are kept are bounded") or diag("$most rings");
is(scalar(grep { $_->query($sums) eq $sums_answer } @many), 24, 'and all sessions go on');
$_->end foreach @many;

$node->stop;
done_testing();
