# New sessions do not ask gpujoind which devices there are and what is resident: they read it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('published', preload => 1, conf => "gpujoin.daemon_timeout = 0\n");
my $load = "LOAD 'gpujoin'; SET gpujoin.device = '" . device() . "';";
my ($file) = (glob($node->data_dir . '/gpujoin.*.published'));

# The costs of a GpuJoin of two tables in a new session, and the seconds that it took to plan.
sub cost
{
	my ($tables) = @_;
	my $began = time;
	my $plan = $node->safe_psql('postgres', GpuJoin::session() . "EXPLAIN SELECT count(*), sum(f.v) FROM $tables");
	return ($plan =~ /Custom Scan \(GpuJoin\).*cost=\S+\.\.([0-9.]+)/ ? $1 : 0, time - $began);
}

ok(on_device($node), 'queries are on the device');
($file) = glob($node->data_dir . '/gpujoin.*.published');
ok($file && -s $file, 'there is a file');
is((stat $file)[2] & 0777, 0600, 'that others cannot read');
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
my ($cold) = cost('f JOIN d USING (k)');
$node->safe_psql('postgres', "$load SELECT gpujoin_prewarm('f'), gpujoin_prewarm('d')");
my ($resident) = cost('f JOIN d USING (k)');
cmp_ok($resident, '<', $cold / 1.1, 'what is resident costs less');

# a session looks for the extension once it plans something that the device could do
sub looks
{
	my ($query) = @_;
	my $count = 'SELECT seq_scan + idx_scan FROM pg_stat_xact_sys_tables WHERE relid = \'pg_extension\'::regclass';
	my $out = $node->safe_psql('postgres', "BEGIN; SELECT FROM ($query) x; SET LOCAL gpujoin.enabled = off; $count");
	return $out =~ /(\d+)$/ ? $1 : -1;
}
is(looks('SELECT v FROM f WHERE k = 1'), 0, 'rows of a table: the extension is not looked for');
is(looks('SELECT count(*) FROM f JOIN d USING (k)'), 1, 'a join: once');

# it cannot answer
my ($pid) = daemon_pids($node);
kill 'STOP', $pid;
my ($stopped, $seconds) = cost('f JOIN d USING (k)');
is($stopped, $resident, 'a new session plans alike while gpujoind is stopped');
cmp_ok($seconds, '<', 3, 'at once');
kill 'CONT', $pid;

# costs follow what happens to the data
$node->safe_psql('postgres', 'CREATE TABLE f2 AS TABLE f; VACUUM ANALYZE f2');
my ($before) = cost('f2 f JOIN d USING (k)');
$node->safe_psql('postgres', "$load SELECT gpujoin_prewarm('f2')");
my ($after) = cost('f2 f JOIN d USING (k)');
cmp_ok($after, '<', $before / 1.1, 'another table has become resident');
$node->safe_psql('postgres', 'VACUUM FULL f2');
my ($rewritten) = cost('f2 f JOIN d USING (k)');
cmp_ok($rewritten, '>', $after * 1.1, 'a rewritten one no longer is');
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
my ($evicted) = cost('f JOIN d USING (k)');
is($evicted, $cold, 'nothing is, after all was evicted');

# whatever the file is, no session minds
$node->safe_psql('postgres', "$load SELECT gpujoin_prewarm('f'), gpujoin_prewarm('d')");
rename $file, "$file.away" or die;
is(how($node, $sums), 'GpuJoin', 'without the file gpujoind is asked');
append_to_file($file, 'nonsense');
is(how($node, $sums), 'GpuJoin', 'a file that is too short');
unlink $file or die;
append_to_file($file, "\1" x 2000000);
is(how($node, $sums), 'GpuJoin', 'another file');
unlink $file or die;
rename "$file.away", $file or die;

# another gpujoind has a file of its own
kill 'KILL', $pid;
ok(wait_until(15, sub { my ($now) = daemon_pids($node); $now && $now != $pid }), 'gpujoind was restarted');
ok(on_device($node), 'and has queries');
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
my ($again) = cost('f JOIN d USING (k)');
# this gpujoind has measured its GPU itself
my $differs = abs($again - $cold) / $cold;
cmp_ok($differs, '<=', device() eq 'cuda' ? 0.02 : 0, 'with nothing resident');
$node->stop;
ok(!-e $file, 'the file goes with gpujoind');
done_testing();
