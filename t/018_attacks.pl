# Sessions check their answers while gpujoind, the launcher and loader workers are killed, stopped and limited.
# GJ_LONG: for minutes, not seconds.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $long = $ENV{GJ_LONG};
my $nsessions = 8;
my $node = new_node('attacks', preload => 1, conf => "gpujoin.daemon_timeout = '10s'\nmin_parallel_table_scan_size = 0\n"
	. "max_worker_processes = 32\nmax_parallel_workers = 24\n");
my @queries = (
	$sums,
	"SELECT count(*), sum(x.id), max(x.name) FROM ($rows OFFSET 0) x",
	'SELECT d.c, count(*), sum(f.v) FROM f JOIN d USING (k) GROUP BY d.c ORDER BY 1',
	'SELECT f.id, f.t, d.name FROM f JOIN d USING (k) ORDER BY f.id DESC LIMIT 20',
	'SELECT count(*), count(d.k), sum(f.id) FROM f FULL JOIN d ON f.k = d.k + 30',
	'SELECT count(*), min(t) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k)',
	'SELECT count(*), sum(a.v * b.v) FROM f a JOIN f b ON a.id = b.id',
	'SELECT count(*) FROM d a JOIN d b ON a.k < b.k',
	'SELECT count(DISTINCT f.t) FROM f JOIN d USING (k)',
	"SELECT count(*), sum(common) FROM gpu_set_join('SELECT k, ARRAY[k, c, k * 2] FROM d', NULL, 'overlap', 1)");
$queries[-1] =~ s/, sum\(common\)//;
my @answers = map { $node->safe_psql('postgres', "SET gpujoin.enabled = off; $_") } @queries;
# what a session may complain of: rows had been returned, or somebody has ended one of its workers
my $allowed = qr/gpujoin lost its device after rows had been returned|due to administrator command/;

# A session that checks answers until a file is there, and some more where they are slow; what it found
# goes to another one.
sub check
{
	my ($number, $stop, $found) = @_;
	my ($checks, $errors, $bad) = (0, 0, '');
	my $session = GpuJoin::Session->new($node, "SET gpujoin.set_device_min_elements = 0; SET gpujoin.loader_workers = " . $number % 3);
	srand $number;
	until (-e $stop && ($checks - $errors > 5 || time - (stat $stop)[9] > 60))
	{
		my $i = int rand @queries;
		my $answer = eval { $session->query($queries[$i]) };
		my $complaint = defined $answer ? $session->errors : $@;
		$checks++;
		if ($complaint =~ $allowed) { $errors++; }
		elsif ($complaint ne '' || $answer ne $answers[$i]) { $bad .= "$queries[$i]: $complaint" . ($answer // '') . "\n"; }
		last unless defined $answer;
	}
	$session->end;
	append_to_file($found, "$checks $errors\n$bad");
}

# Changes a limit of gpujoind, for a moment.
my $pid;
sub limit
{
	my ($resource, $value) = @_;
	chomp(my $back = `prlimit --pid $pid --noheadings --raw -o SOFT --$resource`);
	system('prlimit', '--pid', $pid, "--$resource=$value:") == 0 or die "prlimit";
	usleep($long ? 2_000_000 : 800_000);
	system('prlimit', '--pid', $pid, "--$resource=$back:") == 0 or die "prlimit";
}
sub count_fds { my @fds = glob "/proc/$pid/fd/*"; return scalar @fds; }
sub address_space { return (split ' ', slurp_file("/proc/$pid/statm"))[0] * 4096; }

my @limits = (
	[ 'few descriptors', sub { limit('nofile', count_fds() + 3) } ],
	[ 'no more descriptors', sub { limit('nofile', 8) } ],
	[ 'no more threads', sub { limit('nproc', 1) } ],
	[ 'little memory', sub { limit('as', address_space() + 20_000_000) } ],
	[ 'no more memory', sub { limit('as', address_space()) } ],
	[ 'no more file', sub { limit('fsize', 0) } ]);
my @signals = (
	[ 'loader workers end', sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'") for 1 .. 5; } ],
	[ 'a launcher that is stopped', sub { my $launcher = launcher_pid($node); kill 'STOP', $launcher; usleep(1_500_000); kill 'CONT', $launcher; } ],
	(map { my $signal = $_; [ "SIG$signal", sub { kill $signal, $pid; wait_until(10, sub { !grep { $_ == $pid } daemon_pids($node) }) } ] } qw(KILL STOP SEGV ABRT)),
	# the next one starts with short delays again
	[ 'the launcher ends', sub { kill 'TERM', launcher_pid($node); } ]);

# Attacks, one after the other, while the sessions check.
sub attack
{
	my ($name, $rounds, @attacks) = @_;
	my $stop = $node->basedir . "/stop";
	my @children;
	my @found = map { $node->basedir . "/found.$name.$_" } 1 .. $nsessions;
	unlink $stop, @found;
	foreach my $number (1 .. $nsessions)
	{
		my $child = fork;
		if ($child == 0)
		{
			check($number, $stop, $found[$number - 1]);
			# nothing of the parent's ends here
			require POSIX;
			POSIX::_exit(0);
		}
		push @children, $child;
	}
	usleep(500_000);
	my $done = 0;
	foreach my $attack ((@attacks) x $rounds)
	{
		wait_until(20, sub { my @pids = daemon_pids($node); ($pid) = @pids; @pids == 1 });
		usleep($long ? 500_000 : 200_000);
		note("$name: $attack->[0]");
		$done += eval { $attack->[1]->(); 1 } || (diag("$attack->[0]: $@"), 0)[1];
		usleep($long ? 500_000 : 100_000);
	}
	append_to_file($stop, '');
	waitpid $_, 0 foreach @children;
	is($done, @attacks * $rounds, "$name: all attacks were made");
	my ($checks, $errors, $bad) = (0, 0, '');
	foreach my $file (@found)
	{
		my ($counts, $rest) = slurp_file($file) =~ /^(.*)\n(.*)/s;
		my @counts = split ' ', $counts;
		$checks += $counts[0];
		$errors += $counts[1];
		$bad .= $rest;
	}
	is($bad, '', "$name: all answers are right");
	cmp_ok($checks - $errors, '>', 5 * $nsessions, "$name: $checks answers, $errors errors that were to be expected");
}

ok(on_device($node), 'queries are on the device');
my ($before) = daemon_pids($node);
attack('limits', $long ? 10 : 1, @limits);
# a GPU may be lost for want of memory
is("@{[ daemon_pids($node) ]}", $before, 'no limit has ended gpujoind') if device() eq 'cpu';
ok(on_device($node), 'queries are on the device without the limits') or diag(plan_of($node, $sums, GpuJoin::session()));
$node->append_conf('postgresql.conf', "gpujoin.daemon_timeout = '1s'\n");
$node->reload;
attack('signals', $long ? 6 : 1, @signals);
ok(on_device($node), 'queries are on the device in the end');
my $log = slurp_file($node->logfile);
unlike($log, qr/(server process|worker).* was terminated by signal|PANIC/, 'no server process has crashed');
like($log, qr/gpujoind was terminated by signal $_/, "gpujoind was, by signal $_") foreach 6, 9, 11;
cmp_ok($node->safe_psql('postgres', 'SELECT idle_ms()'), '>=', 0, 'nothing is left');
$node->stop;

# ---- gpujoind has the limits from the beginning
my $limited = new_node('limited', preload => 1, conf => "gpujoin.daemon_timeout = '10s'\n",
	new => { install_path => wrapped_programs('ulimit $(cat "$2/limit" || echo -c 0); exec $daemon "$@"') });
# address space beyond its own size: the kernel kills a program that it cannot load
my $kb = int((-s installed_daemon()) / 1024);
foreach my $limit ($long ? ('-n 8', '-n 16', '-n 32', '-u 1', map({ '-v ' . ($kb + $_) } 20_000, 70_000), '-v 300000', '-v 600000', '-f 0') : ('-n 16', '-u 1', '-v 300000'))
{
	open my $file, '>', $limited->data_dir . '/limit' or die;
	print $file "$limit\n";
	close $file;
	kill 'TERM', launcher_pid($limited) if daemon_pids($limited);
	my $session = GpuJoin::Session->new($limited);
	is($session->query($queries[$_]), $answers[$_], "ulimit $limit: right answer") foreach 0, 2, 3;
	# that there is no GPU, where one was asked for, is said
	my $errors = $session->errors =~ s/^WARNING:  gpujoin\.device is "cuda", but gpujoin has no GPU\nDETAIL:.*\nHINT:.*\n//gmr;
	is($errors, '', 'without an error');
	note(how($limited, $sums));
	$session->end;
}
$limited->stop;
unlike(slurp_file($limited->logfile), qr/was terminated by signal|PANIC/, 'nothing has crashed');
done_testing();
