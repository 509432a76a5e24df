# gpujoind comes and goes with the server, whatever happens to either.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session();

# ---- preloaded
my $node = new_node('preloaded', preload => 1, conf => "restart_after_crash = on\n");
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'preloaded: right answer');
is(how($node, $sums), 'GpuJoin', 'preloaded: on the device');
is(scalar daemon_pids($node), 1, 'one gpujoind');
my ($pid) = daemon_pids($node);
is((getpgrp($pid)), $pid, 'gpujoind is in a process group of its own');
my @sockets = glob($node->data_dir . '/gpujoin.*.sock');
is(scalar @sockets, 1, 'its socket is in the data directory');
is(sprintf('%o', (stat($sockets[0]))[2] & 0777), '600', 'nobody else may use it');

# killed between queries
kill 'KILL', $pid;
ok(restarted($node, $pid), 'a killed gpujoind is started again');
ok(on_device($node, 10), 'the next query is on the device');
like(slurp_file($node->logfile), qr/gpujoind/, 'the server log says so');

# a session from before the kill goes on
my $stays = GpuJoin::Session->new($node);
is($stays->query($sums), $sums_answer, 'a session');
kill 'KILL', daemon_pids($node);
is($stays->query($sums), $sums_answer, 'that lost gpujoind goes on');
ok(wait_until(10, sub { $stays->query("EXPLAIN (ANALYZE) $sums") =~ /GpuJoin(?!.*Fallback)/s }), 'and is on the device again');
is($stays->errors, '', 'without an error');

# killed in the middle of a query that has returned nothing
foreach my $query ($sums, "SELECT count(*) FROM ($rows OFFSET 0) x")
{
	ok(on_device($node, 10), 'gpujoind is there');
	my $run = start_psql($node, "SET gpujoin.fail_at = 'stall'; $query;");
	ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices') eq '1' }), 'a query is on the device');
	kill 'KILL', daemon_pids($node);
	my ($out, $err) = finish($run);
	is($out, $query eq $sums ? $sums_answer : $rows_answer, 'gpujoind killed in the middle: the right answer');
	is($err, '', 'and no error');
}
# killed after rows were returned: the right rows, or an error
ok(on_device($node, 10), 'gpujoind is there');
$stays->query('BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.id FROM f a JOIN f b USING (k); MOVE 10 IN c');
is($stays->errors, '', 'a cursor has returned some rows');
kill 'KILL', daemon_pids($node);
my $moved = $stays->query("MOVE ALL IN c; SELECT 'moved'; COMMIT");
my $error = $stays->errors;
ok($moved =~ /moved/ || $error =~ /ERROR/, 'gpujoind is killed: all of them or an error');
note("$moved $error");
$stays->end;
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server is up');
unlike(slurp_file($node->logfile), qr/(server process|worker).* was terminated by signal|PANIC/, 'no server process crashed');
ok(on_device($node, 10), 'the next query is on the device again');

# ---- the server stops and restarts
foreach my $mode ('fast', 'smart', 'immediate')
{
	my @before = daemon_pids($node);
	$node->stop($mode);
	ok(wait_until(5, sub { !daemon_pids($node) }), "$mode stop: gpujoind has ended");
	$node->start;
	ok(on_device($node, 10), "started after $mode stop: on the device");
}
# stop while a query is on the device
my $run = start_psql($node, "SET gpujoin.fail_at = 'stall'; $sums;");
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices') eq '1' }), 'a query is on the device');
$node->stop('fast');
finish($run);
ok(wait_until(5, sub { !daemon_pids($node) }), 'fast stop with a query on the device: gpujoind has ended');
$node->start;
# the postmaster is killed
$node->safe_psql('postgres', "$session $sums");
is(scalar daemon_pids($node), 1, 'gpujoind runs');
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /(\d+)/;
$node->kill9;
ok(wait_until(10, sub { !daemon_pids($node) }), 'postmaster killed: gpujoind has ended');
# the last of its processes, and who reaps them, take a moment
ok(wait_until(30, sub { !kill(0, $postmaster) && !grep { (readlink("/proc/$_/cwd") || '') eq $node->data_dir } map { m{(\d+)} } glob '/proc/[0-9]*' }),
	'the last server process has ended');
ok($node->start(fail_ok => 1), 'the server starts again');
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'right answer after a crash');
ok(on_device($node, 10), 'on the device after a crash');
# a backend is killed: the server restarts all its processes
$run = start_psql($node, "SELECT pg_backend_pid(); SET gpujoin.fail_at = 'stall'; $sums;");
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices') eq '1' }), 'a query is on the device');
my $backend = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
kill 'KILL', $backend;
finish($run);
ok(wait_until(20, sub { refusal($node, 'postgres') eq '' }), 'back after a killed backend');
ok(on_device($node, 20), 'on the device after a killed backend');
is(scalar daemon_pids($node), 1, 'still one gpujoind');
$node->stop;

# ---- not preloaded
$node = new_node('late');
is(scalar daemon_pids($node), 0, 'not preloaded: no gpujoind yet');
is($node->safe_psql('postgres', $sums), $sums_answer, 'a session without the library');
is(scalar daemon_pids($node), 0, 'still none');
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'the first session that needs it: right answer');
ok(on_device($node), 'soon on the device');
is(scalar daemon_pids($node), 1, 'one gpujoind');
($pid) = daemon_pids($node);
kill 'KILL', $pid;
ok(on_device($node), 'killed: the next session that needs it has it again');
is(scalar daemon_pids($node), 1, 'one gpujoind');
# many sessions at once start one
kill 'KILL', daemon_pids($node);
my @runs = map { start_psql($node, "$sums;") } 1 .. 8;
is(join(' ', map { (finish($_))[0] } @runs), join(' ', ($sums_answer) x 8), 'eight sessions at once: right answers');
ok(wait_until(5, sub { daemon_pids($node) == 1 }), 'one gpujoind');
ok(on_device($node), 'soon on the device');

# every session of a database, without a restart
unlike($node->safe_psql('postgres', "SHOW session_preload_libraries"), qr/gpujoin/, 'not in session_preload_libraries');
$node->safe_psql('postgres', 'SELECT gpujoin_enable()');
like($node->safe_psql('postgres', 'SHOW session_preload_libraries'), qr/gpujoin/, 'gpujoin_enable(): new sessions load it');
is($node->safe_psql('postgres', 'SELECT gpujoin_enable(); SHOW session_preload_libraries') =~ s/.*\n//sr, 'gpujoin', 'twice is once');
like($node->safe_psql('postgres', "SET gpujoin.device = '" . device() . "'; SET gpujoin.force = on; EXPLAIN $sums"), qr/GpuJoin/, 'it plans without LOAD');
unlike($node->safe_psql('template1', 'SHOW session_preload_libraries'), qr/gpujoin/, 'other databases do not');
$node->safe_psql('postgres', 'SELECT gpujoin_disable()');
unlike($node->safe_psql('postgres', 'SHOW session_preload_libraries'), qr/gpujoin/, 'gpujoin_disable() undoes it');
$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'auto_explain'");
$node->safe_psql('postgres', 'SELECT gpujoin_enable()');
like($node->safe_psql('postgres', 'SHOW session_preload_libraries'), qr/auto_explain.*gpujoin|gpujoin.*auto_explain/, 'what was there stays');
$node->safe_psql('postgres', 'SELECT gpujoin_disable()');
is($node->safe_psql('postgres', 'SHOW session_preload_libraries'), 'auto_explain', 'and stays after gpujoin_disable()');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');
$node->safe_psql('postgres', 'SELECT gpujoin_enable()');
$node->safe_psql('postgres', 'DROP EXTENSION gpujoin CASCADE');
unlike($node->safe_psql('postgres', 'SHOW session_preload_libraries'), qr/gpujoin/, 'DROP EXTENSION takes it out');
$node->safe_psql('postgres', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin');
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'dropped and created again');
# not everybody's to say
$node->safe_psql('postgres', 'CREATE ROLE nobody_much LOGIN');
my ($rc, undef, $stderr) = $node->psql('postgres', 'SET ROLE nobody_much; SELECT gpujoin_enable()');
like($stderr, qr/permission denied|must be/, 'gpujoin_enable() is not for everybody');
is($node->safe_psql('postgres', 'SET ROLE nobody_much; SELECT count(*) >= 0 FROM gpujoin_stat'), 't', 'the views are');
$node->stop('immediate');
ok(wait_until(5, sub { !daemon_pids($node) }), 'not preloaded, immediate stop: gpujoind has ended');

done_testing();
