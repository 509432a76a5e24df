# gpujoin_stat counts while there is no gpujoind, and goes on when there is another one.  A fallback
# that is forbidden is an error.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('counters', preload => 1);
my $session = GpuJoin::session();
sub counted { my ($outcome) = @_; return $node->safe_psql('postgres', "SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome = '$outcome'"); }
sub parent { my ($pid) = @_; return slurp_file("/proc/$pid/stat") =~ /\) \S (\d+)/ ? $1 : undef; }

is($node->safe_psql('postgres', "$session $sums; $sums; $sums"), "$sums_answer\n$sums_answer\n$sums_answer", 'three queries');
my $completed = counted('completed');
cmp_ok($completed, '>=', 3, 'they are counted');

# a plan that was made while gpujoind was there, executed after
my $planned = GpuJoin::Session->new($node, "PREPARE q AS $sums; EXECUTE q");
$completed = counted('completed');
my @before = daemon_pids($node);
my $launcher = parent($before[0]);
kill 'STOP', $launcher;
kill 'KILL', @before;
ok(wait_until(10, sub { !daemon_pids($node) }), 'there is no gpujoind');
is(counted('completed'), $completed, 'its counts are there');
is($planned->query('EXECUTE q'), $sums_answer, 'a query without gpujoind');
is(counted('gpujoind is not running') + counted('connection to gpujoind lost'), 1, 'is counted at once');
$planned->end;
is(counted('gpujoind is not running') + counted('connection to gpujoind lost'), 1, 'and once the session has ended');
my @stat = split /\n/, $node->safe_psql('postgres', "SELECT outcome, count, last IS NOT NULL AND now() - last < interval '10 min' FROM gpujoin_stat");
ok(!(grep { !/\|t$/ } @stat), 'each with its time') or diag("@stat");

kill 'CONT', $launcher;
ok(restarted($node, @before), 'gpujoind is started again');
is(counted('completed'), $completed, 'and its counts are as they were');
ok(on_device($node), 'queries are on the device');
cmp_ok(counted('completed'), '>', $completed, 'they are counted on');

# sessions that count together
my @together = map { GpuJoin::Session->new($node, "BEGIN ISOLATION LEVEL SERIALIZABLE; PREPARE q AS $sums") } 1 .. 4;
my $not_now = counted('not possible in this transaction or session');
foreach (1 .. 5) { $_->send('EXECUTE q') foreach @together; $_->answer foreach @together; }
$_->end foreach @together;
my $more = counted('not possible in this transaction or session') - $not_now;
ok($more == 20 || $more == 0, "four sessions have counted $more fallbacks of 20, or had other plans");

# whatever the file holds, no session ends
my $file = $node->data_dir . '/' . (grep { /^gpujoin\.\d+\.counters$/ } slurp_dir($node->data_dir))[0];
my $damaged = GpuJoin::Session->new($node);
truncate $file, 100;
is($damaged->query('SELECT count(*) FROM gpujoin_stat'), 0, 'a file that is too short counts nothing');
is($damaged->query("SET gpujoin.fail_at = 'connect'; $sums"), $sums_answer, 'and a session goes on');
is($damaged->query("SELECT count(*) FROM gpujoin_stat WHERE outcome ~ 'injected'"), 1, 'and counts');
$damaged->end;

# forbidden fallbacks
my ($rc, $out, $err) = $node->psql('postgres', "$session SET gpujoin.forbid_fallback = on; $sums");
is($out, $sums_answer, 'nothing falls back');
foreach my $point (qw(connect submit memory build probe overflow))
{
	($rc, $out, $err) = $node->psql('postgres', "$session SET gpujoin.forbid_fallback = on; SET gpujoin.fail_at = '$point'; $sums");
	like($err, qr/ERROR:.*gpujoin may not fall back: \w/, "$point: an error");
	is($out, '', "$point: and no row");
}
($rc, $out, $err) = $node->psql('postgres', "$session SET gpujoin.forbid_fallback = on; BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL gpujoin.force = on; $sums");
unlike($err, qr/may not fall back: (?!not possible)/, 'a serializable transaction');
foreach my $call ("SELECT count(*) FROM gpu_set_join('SELECT k, ARRAY[k, c] FROM d', NULL, 'overlap', 1)", "SELECT gpu_intersect_count(a, a) FROM (SELECT array_agg(i) AS a FROM generate_series(1, 10000) i) x")
{
	my $settings = "$session SET gpujoin.set_device_min_elements = 0; SET gpujoin.forbid_fallback = on;";
	($rc, $out, $err) = $node->psql('postgres', "$settings $call");
	is($err, '', "on the device: $call");
	($rc, $out, $err) = $node->psql('postgres', "$settings SET gpujoin.fail_at = 'submit'; $call");
	like($err, qr/ERROR:.*gpujoin may not fall back/, 'not without');
}
$node->safe_psql('postgres', 'CREATE ROLE mortal LOGIN');
($rc, $out, $err) = $node->psql('postgres', "LOAD 'gpujoin'; SET ROLE mortal; SET gpujoin.forbid_fallback = on");
like($err, qr/permission denied/, 'for superusers only');

$node->restart;
is(counted('completed'), 0, 'a restart of the server begins anew');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
