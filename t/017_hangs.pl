# A gpujoind that does not answer: it is ended within two seconds, and until then nobody is stuck.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $session = GpuJoin::session();
my $node = new_node('hangs', preload => 1, conf => "gpujoin.devices_per_query = 1\n");

# Sets a setting of the server's.
sub configure
{
	my ($node, $setting) = @_;
	$node->append_conf('postgresql.conf', "$setting\n");
	$node->reload;
	# the launcher reads it soon
	usleep(500_000);
}

# Queries on devices: each is on one, small ones on any.
sub in_use { return $node->safe_psql('postgres', 'SELECT sum(sessions) FROM gpujoin_devices'); }

# Statements in sessions, each with what it should print.
my %waiting = (
	'EXPLAIN' => [ "EXPLAIN (COSTS OFF) $sums", qr/Join/ ],
	'a query' => [ $sums, qr/^\Q$sums_answer\E$/ ],
	'gpujoin_devices' => [ 'SELECT count(*) >= 0 FROM gpujoin_devices', qr/^t$/ ],
	'gpujoin_stat' => [ 'SELECT count(*) >= 0 FROM gpujoin_stat', qr/^t$/ ],
	'gpujoin_cache' => [ 'SELECT count(*) >= 0 FROM gpujoin_cache', qr/^t$/ ]);

ok(on_device($node), 'queries are on the device');
# some sessions know the device, others are new; some are in the middle of a query
my %known = map { $_ => GpuJoin::Session->new($node, $sums) } keys %waiting;
my $cursor = GpuJoin::Session->new($node);
$cursor->query('BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.id FROM f a JOIN f b USING (k); MOVE 10 IN c');
my %middle = map { $_ => GpuJoin::Session->new($node, "SET gpujoin.fail_at = 'stall'") } ('sums', 'rows', 'loaders');
$middle{loaders}->query("SET gpujoin.loader_workers = 2; SET min_parallel_table_scan_size = 0");
$middle{sums}->send($sums);
$middle{rows}->send("SELECT count(*) FROM ($rows OFFSET 0) x");
$middle{loaders}->send("SELECT count(*) FROM f a JOIN f b USING (id)");
ok(wait_until(10, sub { in_use() == 4 }), 'four queries are on the device');
my ($pid) = daemon_pids($node);

kill 'STOP', $pid;
my $began = time;
my %fresh = map { $_ => start_psql($node, "$waiting{$_}[0];") } keys %waiting;
$known{$_}->send($waiting{$_}[0]) foreach keys %waiting;
$cursor->send('MOVE ALL IN c');
ok(wait_until(2, sub { !grep { $_ == $pid } daemon_pids($node) }), 'it is ended');
my $noticed = time - $began;
cmp_ok($noticed, '<', 3, 'within two seconds, on a machine that may be busy');
is($middle{sums}->answer, $sums_answer, 'sums, in the middle: the right answer');
is($middle{rows}->answer, $rows_answer, 'rows, in the middle: the right answer');
is($middle{loaders}->answer, 100000, 'with loader workers, in the middle: the right answer');
$cursor->answer;
like($cursor->errors, qr/gpujoin lost its device after rows had been returned.*gpujoind did not answer and was ended/s, 'rows had been returned: an error that says why');
foreach my $name (sort keys %waiting)
{
	like($known{$name}->answer, $waiting{$name}[1], "$name of a session that knows the device");
	is($known{$name}->errors, '', 'without an error');
	my ($out, $err) = finish($fresh{$name});
	like($out, $waiting{$name}[1], "$name of a new session");
	is($err, '', 'without an error');
}
my $took = time - $began;
# a GPU takes a while to open
cmp_ok($took, '<', $noticed + (device() eq 'cpu' ? 3 : 10), 'nobody has waited for longer');
note("noticed after $noticed s, all was over after $took s");
$_->end foreach $cursor, values %middle, values %known;
like(slurp_file($node->logfile), qr/WARNING:  gpujoind has given no sign of life for 2000 ms and is killed/, 'the server log says so');
ok(on_device($node), 'it is started again');

# ---- not for long enough, or not it alone
configure($node, "gpujoin.daemon_timeout = '60s'");
($pid) = daemon_pids($node);
my $watch = GpuJoin::Session->new($node, q{
	-- cancels all others that run: how many, and milliseconds until they have ended, -1: not within 10 s
	CREATE FUNCTION pg_temp.cancel_ms() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		began timestamptz := clock_timestamp();
		n int;
	BEGIN
		PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid();
		GET DIAGNOSTICS n = ROW_COUNT;
		FOR i IN 1..4000 LOOP
			PERFORM pg_stat_clear_snapshot();
			PERFORM FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid();
			IF NOT FOUND THEN
				RETURN n || ' ' || (extract(epoch FROM clock_timestamp() - began) * 1000)::int;
			END IF;
			PERFORM pg_sleep(0.0025);
		END LOOP;
		RETURN n || ' -1';
	END $$});
my $others = q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()};
foreach my $middle (1, 0)
{
	my @ms;
	my $late = 0;
	while (@ms < 4 && $late < 4)
	{
		# nobody else's run is taken for this one's
		ok(wait_until(10, sub { $watch->query($others) == 0 && in_use() == 0 }), 'nothing runs');
		my $run = GpuJoin::Session->new($node, $middle ? "SET gpujoin.fail_at = 'stall'" : '');
		kill 'STOP', $pid unless $middle;
		my $sent = time;
		$run->send($sums);
		ok(wait_until(10, sub { in_use() == 1 }), 'a query is on the device') if $middle;
		ok(wait_until(10, sub { $watch->query($others) == 1 }), 'a statement runs') unless $middle;
		kill 'STOP', $pid;
		usleep(200_000);
		my ($n, $ms) = split / /, $watch->query('SELECT pg_temp.cancel_ms()');
		# a query that has no answer goes on without one after 5 s
		my $too_late = !$middle && time - $sent - $ms / 1000 > 4;
		my $out = $run->answer;
		if ($too_late)
		{
			$late++;
			note('this machine was too busy to cancel it in time');
		}
		else
		{
			push @ms, $ms;
			is($n, 1, 'one statement is told to end');
			like($run->errors, qr/canceling statement due to user request/, 'cancelled') or diag("it returned \"$out\"");
		}
		kill 'CONT', $pid;
		$run->end;
	}
	is(scalar @ms, 4, 'four times');
	my ($best) = sort { $a <=> $b } @ms;
	ok($best >= 0 && $best < 100, ($middle ? 'in the middle' : 'before gpujoind has answered') . ': cancelled within 100 ms') or diag("took @ms ms");
	ok(!(grep { $_ < 0 || $_ > 5000 } @ms), 'every time within 5 s') or diag("took @ms ms");
}
ok(on_device($node), 'it goes on');
is("@{[ daemon_pids($node) ]}", $pid, 'it was not ended');

# a machine that is suspended, with the launcher and all
configure($node, "gpujoin.daemon_timeout = '2s'");
my $launcher = launcher_pid($node);
kill 'STOP', $launcher, $pid;
usleep(5_000_000);
kill 'CONT', $launcher, $pid;
usleep(1_000_000);
is("@{[ daemon_pids($node) ]}", $pid, 'a machine that was suspended: it was not ended');
is(how($node, $sums), 'GpuJoin', 'and works');

# nobody ends it: a session waits once
configure($node, "gpujoin.daemon_timeout = 0");
kill 'STOP', $pid;
my $waits = GpuJoin::Session->new($node);
$began = time;
is($waits->query($sums), $sums_answer, 'never ended: the right answer');
cmp_ok(time - $began, '<', 10, 'after the time that an answer may take');
$began = time;
is($waits->query($sums), $sums_answer, 'the next one: the right answer');
unlike($waits->query("EXPLAIN $sums"), qr/GpuJoin/, 'by the native plan');
$waits->query("SELECT * FROM $_") foreach 'gpujoin_devices', 'gpujoin_stat', 'gpujoin_cache';
cmp_ok(time - $began, '<', 2, 'at once, and the views are');
like($waits->errors, qr/WARNING:  gpujoind does not answer/, 'which say so');
$waits->end;
is("@{[ daemon_pids($node) ]}", $pid, 'it was not ended');
configure($node, "gpujoin.daemon_timeout = '1s'");
ok(wait_until(5, sub { daemon_pids($node) && (daemon_pids($node))[0] != $pid }), 'until it may be');
ok(on_device($node), 'and is started again');
$node->stop;

# ---- one that cannot be ended: the launcher's child is a shell, which dies in its place
my $undead = new_node('undead', preload => 1, new => { install_path => wrapped_programs('$daemon "$@" & wait') });
ok(on_device($undead), 'another server: queries are on the device');
my $run = GpuJoin::Session->new($undead, "SET gpujoin.fail_at = 'stall'");
$run->send($sums);
ok(wait_until(10, sub { $undead->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices') eq '1' }), 'a query is on the device');
my ($stopped) = grep { readlink("/proc/$_/exe") =~ /gpujoind/ } daemon_pids($undead);
kill 'STOP', $stopped;
$began = time;
is($run->answer, $sums_answer, 'gpujoind hangs and does not die: the right answer');
cmp_ok(time - $began, '<', 5, 'soon');
is($run->errors, '', 'without an error');
is($undead->safe_psql('postgres', "$session $sums"), $sums_answer, 'other sessions go on');
kill 'KILL', $stopped;
ok(on_device($undead), 'when it is gone there is another one');
$run->end;
$undead->stop;

# ---- one that hangs before it answers for the first time has half a minute
if ($ENV{GJ_LONG})
{
	my $mute = new_node('mute', preload => 1, new => { install_path => wrapped_programs('[ ! -e "$2/hang" ] || exec -a gpujoind sleep 1000; exec $daemon "$@"') });
	ok(on_device($mute), 'a third server: queries are on the device');
	append_to_file($mute->data_dir . '/hang', '');
	kill 'KILL', daemon_pids($mute);
	is($mute->safe_psql('postgres', "$session $sums"), $sums_answer, 'gpujoind hangs while it starts: the right answer');
	unlink $mute->data_dir . '/hang';
	ok(wait_until(40, sub { slurp_file($mute->logfile) =~ /no sign of life for 30000 ms/ }), 'it is killed in the end');
	ok(on_device($mute), 'and started again');
	$mute->stop;
}
done_testing();
