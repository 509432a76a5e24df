# Signals, and limits of files: what ends gpujoind leaves a line, what need not end it does not, and a session has one limit.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Config;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $session = GpuJoin::session();
my $node = new_node('signals', preload => 1, conf => "gpujoin.cache_size = 0\nwork_mem = '16MB'\ngpujoin.devices_per_query = 0\n");
my @numbers = split ' ', $Config{sig_num};
my @names = split ' ', $Config{sig_name};
my %number = map { $names[$_] => $numbers[$_] } 0 .. $#names;

# What the server's log says from `from` on, once it says that gpujoind has ended.
sub told
{
	my ($from) = @_;
	my $log;
	ok(wait_until(15, sub { $log = substr(slurp_file($node->logfile), $from); $log =~ /gpujoind (was terminated|ended)/ }), 'the log says that gpujoind has ended');
	return $log;
}
# Waits until a query is on the device, and as far as gpujoin.fail_at = 'stall' lets it come.
sub stalled
{
	my ($from) = @_;
	ok(wait_until(10, sub { substr(slurp_file($node->logfile), $from) =~ /gpujoind: stalled by gpujoin.fail_at/ }), 'a query is on the device');
}
sub busy { return $node->safe_psql('postgres', 'SELECT coalesce(max(sessions), 0) FROM gpujoin_devices') > 0; }

# ---- a fault in the middle of a query
ok(on_device($node), 'gpujoind is there');
# the query that has shown it may still be closing
ok(wait_until(10, sub { !busy() }), 'it is idle');
usleep(200_000);
my $from = -s $node->logfile;
my ($pid) = daemon_pids($node);
kill 'SEGV', $pid;
my $log = told($from);
like($log, qr/gpujoind: ended by signal 11 from process $$; last device error: none/, 'idle: the signal, who sent it');
like($log, qr/gpujoind: no program was at work/, 'idle: no program');
ok(on_device($node), 'gpujoind is back');
$node->psql('postgres', "$session SET gpujoin.fail_at = 'probe'; $sums");
$from = -s $node->logfile;
($pid) = daemon_pids($node);
my $run = start_psql($node, "SET gpujoin.fail_at = 'stall'; $sums;");
stalled($from);
kill 'SEGV', $pid;
my ($out, $err) = finish($run);
is($out, $sums_answer, 'SIGSEGV: the right answer');
is($err, '', 'and no error');
$log = told($from);
like($log, qr/WARNING:  gpujoind: ended by signal 11 from process $$; last device error: injected while probing/, 'the signal, and the last error of a device');
like($log, qr/gpujoind: at work: program [0-9a-f]{16} of process \d+: 2 sources, \d+ columns, \d+ instructions, sink: aggregates, 2 aggregates, joins: hash inner of 1 keys; phase: probing/,
	'the program at work');
like($log, qr/gpujoind was terminated by signal 11/, 'and the launcher what became of it');
ok(on_device($node), 'gpujoind is back');
# its own fault
$from = -s $node->logfile;
my $groups = 'SELECT d.c, count(*), sum(f.v * 3) FROM f JOIN d ON f.k = d.k GROUP BY d.c ORDER BY 1';
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; $groups"), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $groups"),
	'SIGABRT: the right answer');
$log = told($from);
like($log, qr/gpujoind: ended by signal 6/, 'the signal');
my ($hash) = $log =~ /gpujoind: at work: program ([0-9a-f]{16}) .*group keys.*phase: probing/;
ok($hash, 'the program');
ok(on_device($node), 'gpujoind is back');
like(substr(slurp_file($node->logfile), $from), qr/program $hash ended gpujoind and is refused/, 'it is the one that is refused');

# killed: it cannot say anything, the next one does
$from = -s $node->logfile;
($pid) = daemon_pids($node);
$run = start_psql($node, "SET gpujoin.fail_at = 'stall'; SELECT count(*) FROM ($rows OFFSET 0) x;");
stalled($from);
kill 'KILL', $pid;
($out, $err) = finish($run);
is($out, $rows_answer, 'SIGKILL: the right answer');
like(told($from), qr/gpujoind was terminated by signal 9/, 'the launcher says so');
ok(on_device($node), 'gpujoind is back');
like(substr(slurp_file($node->logfile), $from), qr/gpujoind: program [0-9a-f]{16} was at work when the gpujoind before this one ended/, 'and what was at work');

# ---- signals that need not end it
($pid) = daemon_pids($node);
foreach my $name (qw(HUP PIPE ALRM USR1 USR2 VTALRM PROF IO XCPU XFSZ PWR STKFLT RTMIN RTMAX CHLD URG WINCH))
{
	next unless $number{$name};
	kill $number{$name}, $pid;
	select(undef, undef, undef, 0.02);
	is(how($node, $sums), 'GpuJoin', "SIG$name: on the device");
}
is("@{[ daemon_pids($node) ]}", $pid, 'the same gpujoind');
# those that end it
foreach my $name (qw(TERM INT QUIT))
{
	$from = -s $node->logfile;
	($pid) = daemon_pids($node);
	kill $name, $pid;
	$log = told($from);
	like($log, qr/gpujoind: ends because of signal $number{$name} from process $$/, "SIG$name: the log says so");
	like($log, qr/gpujoind ended with exit status 0/, "SIG$name: in order");
	ok(on_device($node), "SIG$name: gpujoind is back");
}

# ---- files may not be as large as what does not fit: the query falls back, gpujoind stays
SKIP:
{
	skip 'prlimit is needed', 6 if system('command -v prlimit >/dev/null') != 0;
	$node->safe_psql('postgres', 'CREATE TABLE big AS SELECT i AS id, i % 10 AS v FROM generate_series(1, 300000) i; VACUUM ANALYZE big');
	my $query = 'SELECT count(*), sum(a.id + b.v) FROM big a JOIN big b ON a.id = b.id';
	my $spills = "SET gpujoin.devices_per_query = 1; SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0;";
	is(how($node, $query, $spills), 'GpuJoin', 'a query with temporary files');
	($pid) = daemon_pids($node);
	system("prlimit --pid $pid --fsize=100000:");
	like(how($node, $query, $spills), qr/^fell back: .*File too large/, 'files may not be so large: falls back')
	  or diag(plan_of($node, $query, "$session $spills"));
	is($node->safe_psql('postgres', "$session $spills $query"), '300000|45001500000', 'the right answer');
	is("@{[ daemon_pids($node) ]}", $pid, 'the same gpujoind');
	unlike(how($node, $query, ''), qr/refused/, 'the program is not refused');
	kill 'TERM', $pid;
	ok(restarted($node, $pid), 'the next gpujoind has no such limit');
}

# ---- temp_file_limit is for all queries of a session
# Bytes of gpujoind's temporary files, and their directories.
sub files
{
	my ($bytes, %directories) = (0);
	foreach my $path (glob '/proc/' . (daemon_pids($node))[0] . '/fd/*')
	{
		my $name = readlink($path) // next;
		next unless $name =~ m,^(.*/pgsql_tmp)/,;
		$directories{$1} = 1;
		$bytes += (stat $path)[7];
	}
	return ($bytes, sort keys %directories);
}
$node->safe_psql('postgres', q{CREATE TABLE wide AS SELECT i AS id, repeat('x', 100) || i AS t FROM generate_series(1, 200000) i; VACUUM ANALYZE wide});
my $wide = 'SELECT a.id, b.t FROM wide a JOIN wide b ON a.id = b.id';
my $limited = "SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0;";
my $limit = 60_000_000;
ok(on_device($node), 'gpujoind is there');
my $psql = GpuJoin::Session->new($node, "$limited SET temp_file_limit = '${\int($limit / 1000)}kB';");
$psql->query('BEGIN');
$psql->query("DECLARE c$_ CURSOR FOR $wide; FETCH 1 FROM c$_") for 1 .. 10;
my ($bytes, @directories) = files();
cmp_ok($bytes, '>', $limit / 10, 'cursors have temporary files');
cmp_ok($bytes, '<=', $limit / 1000 * 1024, 'ten cursors have no more than one may have');
is("@directories", $node->data_dir . '/base/pgsql_tmp', 'they are where those of PostgreSQL are');
is($psql->query('MOVE ALL IN c1; MOVE ALL IN c10; SELECT 1'), 1, 'the first one and the last one');
is($psql->query('COMMIT; SELECT count(*), sum(length(t)) FROM (' . $wide . ') x'), $node->safe_psql('postgres', 'SELECT count(*), sum(length(t)) FROM wide'), 'right rows');
ok(wait_until(10, sub { (files())[0] == 0 }), 'nothing is left');
is($psql->errors, '', 'no error');
# what one session has is nothing to another one
$psql->query("BEGIN; DECLARE c CURSOR FOR $wide; FETCH 1 FROM c");
my $other = GpuJoin::Session->new($node, "$limited SET temp_file_limit = '${\int($limit / 1000)}kB';");
my $plan = $other->query("EXPLAIN (ANALYZE, COSTS OFF) $wide");
like($plan, qr/Spilled: memory=0kB disk=[1-9]/, 'another session has temporary files, too');
unlike($plan, qr/Fallback/, 'and does not fall back');
$psql->query('COMMIT');
# a tablespace for temporary files
my $place = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE place LOCATION '$place'");
$psql->query("SET temp_tablespaces = 'place'; BEGIN; DECLARE c CURSOR FOR $wide; FETCH 1 FROM c");
($bytes, @directories) = files();
cmp_ok($bytes, '>', 0, 'temporary files');
like("@directories", qr,^\Q$place\E/PG_\w+/pgsql_tmp$,, 'in the tablespace');
$psql->query('COMMIT');
# and no other place
ok(wait_until(10, sub { (files())[0] == 0 }), 'nothing is left');
$psql->end;
$other->end;
rename $node->data_dir . '/base/pgsql_tmp', $node->data_dir . '/base/moved';
symlink 'moved', $node->data_dir . '/base/pgsql_tmp';
like(how($node, $wide, $limited), qr/^fell back: .*could not create a temporary file/, 'a symbolic link is not followed');

is($node->safe_psql('postgres', 'SELECT 1'), 1, 'the server is up');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
