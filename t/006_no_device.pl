# gpujoin.device = auto on a machine without a GPU: PostgreSQL's own plans, and nothing else changes.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'this machine has a GPU' if sees_gpu();

my $node = new_node('late');
is($node->safe_psql('postgres', "LOAD 'gpujoin'; SHOW gpujoin.device"), 'auto', 'auto by default');
foreach my $settings ("LOAD 'gpujoin';", "LOAD 'gpujoin'; SET gpujoin.force = on;", "LOAD 'gpujoin'; SET gpujoin.device = off; SET gpujoin.force = on;",
	"LOAD 'gpujoin'; SET gpujoin.device = cuda; SET gpujoin.force = on;")
{
	# who names a device starts gpujoind to ask for it
	is(scalar daemon_pids($node), 0, 'no gpujoind was started by sessions') if $settings =~ /cuda/;
	unlike($node->safe_psql('postgres', "$settings EXPLAIN (ANALYZE, COSTS OFF) $sums"), qr/GpuJoin/, "$settings PostgreSQL's own plan");
	is($node->safe_psql('postgres', "$settings $sums"), $sums_answer, 'right answer');
	is($node->safe_psql('postgres', "$settings EXPLAIN $rows"), $node->safe_psql('postgres', "EXPLAIN $rows"), 'the same plan and costs as without gpujoin');
}
is($node->safe_psql('postgres', "LOAD 'gpujoin'; SELECT gpu_intersect('{5,1,3,3}'::int[], '{3,5,9}')"), '{3,5}', 'sets work');
is($node->safe_psql('postgres', "SET gpujoin.set_device_min_elements = 0; SELECT gpu_intersect('{5,1,3,3}'::int[], '{3,5,9}')"), '{3,5}', 'sets that would go to the device work');
my ($out, $err) = finish(start_psql($node, "SET gpujoin.device = auto; $sums;"));
is("$out$err", $sums_answer, 'quietly');
$node->stop;

my $preloaded = new_node('preloaded', conf => "shared_preload_libraries = 'gpujoin'\n");
unlike($preloaded->safe_psql('postgres', "SET gpujoin.force = on; EXPLAIN $sums"), qr/GpuJoin/, 'preloaded: PostgreSQL\'s own plan');
is($preloaded->safe_psql('postgres', "SET gpujoin.force = on; $sums"), $sums_answer, 'preloaded: right answer');
my $log = slurp_file($preloaded->logfile);
unlike($log, qr/PANIC|ERROR|WARNING/, 'nothing to complain about in the log') or diag($log);
like($preloaded->safe_psql('postgres', "SET gpujoin.device = cpu; SET gpujoin.force = on; EXPLAIN (ANALYZE) $sums"), qr/GpuJoin/, 'the cpu device is there for who asks');
$preloaded->stop;
ok(wait_until(5, sub { !daemon_pids($preloaded) }), 'gpujoind has ended');
done_testing();
