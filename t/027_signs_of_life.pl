# Signs of life: what the log, the views and gpujoin_check() say of devices and processes, and of what is missing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $device = device();
my $cuda = "LOAD 'gpujoin'; SET gpujoin.device = cuda; SET gpujoin.force = on;";

# ---- a server whose gpujoind is there

my $node = new_node('here', preload => 1);
ok(on_device($node), 'queries are on the device');
my $log = slurp_file($node->logfile);
like($log, have_gpu() ? qr/gpujoind: GPU 0 is ready: .* GiB free/ : qr/gpujoind: no GPU is used: \w/, 'the log says which GPUs there are');
is($node->safe_psql('postgres', "SELECT count(*) > 0, bool_and(name IS NOT NULL AND reason IS NULL AND memory_total > 0 AND sessions IS NOT NULL) FROM gpujoin_devices WHERE status = 'ready' AND device = '$device'"), 't|t', 'devices that are ready have no reason');
is($node->safe_psql('postgres', "SET gpujoin.device = cuda; SELECT status, reason FROM gpujoin_devices WHERE device = 'cpu'"), 'unused|used only where gpujoin.device is cpu', 'the cpu device is unused');
is($node->safe_psql('postgres', "SET gpujoin.enabled = off; SELECT DISTINCT status, reason FROM gpujoin_devices WHERE device = '$device'"), 'unused|gpujoin.enabled is off', 'so is any without gpujoin');
is($node->safe_psql('postgres', "SET gpujoin.device = off; SELECT DISTINCT status, reason FROM gpujoin_devices WHERE device = 'cpu'"), 'unused|gpujoin.device is off', 'and any where gpujoin.device is off');

my ($pid) = daemon_pids($node);
is($node->safe_psql('postgres', 'SELECT process, pid, state, memory > 100000, now() - start_time < interval \'1 hour\', starts FROM gpujoin_processes'),
	'launcher|' . launcher_pid($node) . "|running|t|t|\ngpujoind|$pid|running|t|t|1", 'gpujoin_processes');
kill 'KILL', $pid;
ok(restarted($node, $pid) && on_device($node), 'gpujoind is started again');
is($node->safe_psql('postgres', "SELECT pid, starts FROM gpujoin_processes WHERE process = 'gpujoind'"), (daemon_pids($node))[0] . '|2', 'gpujoin_processes says so');

my $check = $node->safe_psql('postgres', 'SELECT * FROM gpujoin_check()');
like($check, qr/^$_/m, "gpujoin_check: $_") foreach 'versions\|PostgreSQL', 'versions\|extension\|1\.0', 'versions\|gpujoind\|/', 'processes\|gpujoind\|process \d+, started 2 times',
  'devices\|(?:cpu|GPU) 0\|\S', 'rates\|(?:cpu|GPU) 0\|copies', 'memory\|memfd\|works', 'memory\|huge pages', 'memory\|/dev/shm', 'limits\|open files \(RLIMIT_NOFILE\)\|\d', 'limits\|locked memory', 'settings\|gpujoin\.device\|' . $device;
my ($rc, $out, $err) = $node->psql('postgres', q{CREATE ROLE nobody_much; SET ROLE nobody_much; SELECT * FROM gpujoin_check()});
like($err, qr/permission denied/, 'not for everybody');
is($node->safe_psql('postgres', q{GRANT pg_monitor TO nobody_much; SET ROLE nobody_much; SELECT count(*) > 10 FROM gpujoin_check()}), 't', 'but for pg_monitor');
$node->append_conf('postgresql.conf', "gpujoin.devices = '7'");
$node->restart;
SKIP:
{
	skip 'no GPU', 2 unless have_gpu();
	is($node->safe_psql('postgres', "SELECT DISTINCT status, reason LIKE 'gpujoin.devices leaves GPU _ out' FROM gpujoin_devices WHERE device = 'cuda'"), 'unused|t', 'GPUs that are left out');
	like(slurp_file($node->logfile), qr/no GPU is used: gpujoin\.devices leaves/, 'are in the log');
}
$node->stop;

# ---- no GPU

SKIP:
{
	skip 'this machine has a GPU', 6 if sees_gpu();
	my $late = new_node('late');
	is($late->safe_psql('postgres', "LOAD 'gpujoin'; SELECT * FROM gpujoin_processes"), "launcher||not running|||\ngpujoind||not running|||", 'nothing runs where nothing is wanted');
	is($late->safe_psql('postgres', "LOAD 'gpujoin'; SELECT device, ordinal, name, status, reason, sessions FROM gpujoin_devices"), 'cuda|||unusable|this machine has no NVIDIA GPU|', 'gpujoin_devices says why');
	($rc, $out, $err) = $late->psql('postgres', "$cuda $sums; $sums; EXPLAIN $sums");
	is(() = $err =~ /WARNING:  gpujoin.device is "cuda", but gpujoin has no GPU\nDETAIL:  no such device: \w.*\nHINT:  /g, 1, 'who asks for a GPU is warned, once a session') or diag($err);
	like($out, qr/^\Q$sums_answer\E\n\Q$sums_answer\E\n/, 'and has an answer');
	($rc, $out, $err) = $late->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.force = on; $sums");
	is($err, '', 'who does not ask is not');
	like($late->safe_psql('postgres', "$cuda SELECT advice FROM gpujoin_check() WHERE item = 'GPU'"), qr/\w/, 'gpujoin_check() says why');
	$late->stop;
}

# ---- what is missing is in the log

my $full = new_node('full', conf => "max_worker_processes = 0\n");
($rc, $out, $err) = $full->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.device = cpu; SET gpujoin.force = on; $sums; $sums");
is("$out$err", "$sums_answer\n$sums_answer", 'no background worker is free: answers');
is(() = slurp_file($full->logfile) =~ /LOG:  gpujoin has no device: gpujoind is not running: no background worker is free.*max_worker_processes \(0\)/g, 1, 'and one line in the log');
like($full->safe_psql('postgres', "LOAD 'gpujoin'; SET gpujoin.device = cpu; SELECT advice FROM gpujoin_check() WHERE item = 'gpujoind' AND section = 'processes'"), qr/raise max_worker_processes/, 'gpujoin_check() says so, too');
$full->stop;

my $programs = wrapped_programs('exec "$daemon" "$@"');
unlink glob "$programs/lib/gpujoind-*" or die;
my $bare = new_node('bare', new => { install_path => $programs });
($rc, $out, $err) = $bare->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.device = cpu; SET gpujoin.force = on; $sums; $sums");
is("$out$err", "$sums_answer\n$sums_answer", 'gpujoind is missing: answers');
is(() = slurp_file($bare->logfile) =~ m{LOG:  gpujoin has no device: gpujoind is not running: "/.*/gpujoind-\d+" cannot be run}g, 1, 'and one line in the log');
$bare->stop;

my $limited = wrapped_programs('ulimit -n 100; ulimit -v 100000000; exec "$daemon" "$@"');
my $few = new_node('few', new => { install_path => $limited }, conf => "shared_preload_libraries = 'gpujoin'\ngpujoin.device = cpu\n");
ok(wait_until(15, sub { slurp_file($few->logfile) =~ /is ready, process/ }), 'gpujoind under limits');
like(slurp_file($few->logfile), $_, "the log says so: $_") foreach qr/WARNING:  gpujoind: 100 files can be open \(RLIMIT_NOFILE\)/, qr/WARNING:  gpujoind: the address space is limited to \d+ MB \(RLIMIT_AS\)/;
$few->stop;
done_testing();
