# A hot standby runs joins, with a gpujoind of its own.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', preload => 1, init => { allows_streaming => 1 });
is(how($primary, $sums), 'GpuJoin', 'the primary is on the device');
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
my $session = GpuJoin::session();

sub caught_up { $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert')); }

caught_up();
is($standby->safe_psql('postgres', "$session $sums"), $sums_answer, 'the standby has the right answer');
ok(on_device($standby, 10), 'on the device');
is(scalar daemon_pids($standby), 1, 'with a gpujoind of its own');
isnt("@{[ daemon_pids($standby) ]}", "@{[ daemon_pids($primary) ]}", 'not that of the primary');
# changes arrive: pages that were all-visible and are not, and the other way round
foreach my $change ("UPDATE f SET v = v + 1 WHERE id % 10 = 0", "DELETE FROM f WHERE id % 7 = 0", "VACUUM f", "INSERT INTO d SELECT i, 1, 'new' FROM generate_series(60, 80) i", "VACUUM FREEZE f, d")
{
	$primary->safe_psql('postgres', $change);
	caught_up();
	my $answer = $primary->safe_psql('postgres', "SET gpujoin.enabled = off; $sums");
	is($standby->safe_psql('postgres', "$session $sums"), $answer, "after $change");
	is($standby->safe_psql('postgres', "$session SELECT count(*), sum(id) FROM ($rows OFFSET 0) x"),
		$primary->safe_psql('postgres', "SET gpujoin.enabled = off; SELECT count(*), sum(id) FROM ($rows OFFSET 0) x"), "rows after $change");
}
ok(how($standby, $sums) eq 'GpuJoin', 'still on the device');
# an open transaction of the primary is not seen
my $open = $primary->safe_psql('postgres', "BEGIN; DELETE FROM f; ROLLBACK; SELECT count(*) FROM f");
is($standby->safe_psql('postgres', "$session SELECT count(*) FROM f a JOIN f b ON a.id = b.id"), $open, 'a rolled-back change is not seen');
# promotion
$standby->promote;
$standby->safe_psql('postgres', 'UPDATE f SET v = 0 WHERE id = 1');
my $answer = $standby->safe_psql('postgres', "SET gpujoin.enabled = off; $sums");
is($standby->safe_psql('postgres', "$session $sums"), $answer, 'right after promotion');
is(how($standby, $sums), 'GpuJoin', 'on the device after promotion');
$standby->stop;
$primary->stop;
ok(wait_until(5, sub { !daemon_pids($standby) && !daemon_pids($primary) }), 'both gpujoinds have ended');
done_testing();
