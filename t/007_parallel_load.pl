# Tables loaded by parallel workers: they take part, and whatever ends one of them or all.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('parallel_load', preload => 1,
	conf => "max_worker_processes = 24\nmax_parallel_workers = 16\nmin_parallel_table_scan_size = 0\ngpujoin.cache_size = 0\n");
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT i AS id, i % 1000 AS k, nullif(i % 7, 0) AS n, repeat('text ', 50) || i AS t FROM generate_series(1, 300000) i;
	-- more than all rings hold
	CREATE TABLE small AS SELECT i AS k, i * 3 AS v, 'd' || i AS name FROM generate_series(1, 900) i;
	VACUUM ANALYZE big, small;
});
my $session = GpuJoin::session();
my $sum = 'SELECT count(*), sum(b.n), sum(s.v) FROM big b JOIN small s USING (k)';
my $row = 'SELECT count(*), sum(x.id), sum(length(x.t)), max(x.name) FROM (SELECT b.id, b.t, s.name FROM big b JOIN small s USING (k) OFFSET 0) x';
my @answers = map { $node->safe_psql('postgres', "SET gpujoin.enabled = off; $_") } ($sum, $row);
my $stalled = "SET gpujoin.loader_workers = 4; SET gpujoin.fail_at = 'stall';";
my $workers = "FROM pg_stat_activity WHERE backend_type = 'parallel worker'";

sub count_workers { return $node->safe_psql('postgres', "SELECT count(*) $workers"); }

foreach my $n (0, 1, 4, 8, 16)
{
	my $set = "SET gpujoin.loader_workers = $n;";
	is($node->safe_psql('postgres', "$session $set $sum; $row"), "$answers[0]\n$answers[1]", "$n workers: right answers");
	is(how($node, $sum, $set), 'GpuJoin', "$n workers: on the device");
	my $plan = $node->safe_psql('postgres', "$session $set EXPLAIN (ANALYZE, COSTS OFF) $sum");
	my ($launched) = ($plan =~ /Loader Workers Launched: (\d+)/, 0);
	is($launched, $n, "$n workers: launched");
	my ($read) = $plan =~ /heap pages of big.*\n\s*Rows: loaded=300000 .*Pages: read=(\d+)/ or diag($plan);
	is($read, $node->safe_psql('postgres', "SELECT pg_relation_size('big') / 8192"), "$n workers: each page once");
	like($plan, qr/Loading: .* GB\/s of pages/, "$n workers: the rate is told");
}

# they are there, and load: they and the session have filled their rings
my $run = start_psql($node, "$stalled $row;");
ok(wait_until(10, sub { count_workers() == 4 }), 'four workers load');
is($node->safe_psql('postgres', "SELECT count(*) $workers AND query LIKE '%FROM big b%' AND leader_pid IS NOT NULL"), 4, 'pg_stat_activity shows what for');
is($node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices'), 1, 'they are one session on the device');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%FROM big b%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
my ($out, $err) = finish($run);
like($err, qr/canceling statement due to user request/, 'cancelled');
ok(wait_until(5, sub { count_workers() == 0 }), 'and the workers are gone');
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left on the device');

# one worker is terminated
$run = start_psql($node, "$stalled $row; SET gpujoin.fail_at = 'never'; $sum;");
ok(wait_until(10, sub { count_workers() == 4 }), 'four workers load');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $workers LIMIT 1");
($out, $err) = finish($run);
like($err, qr/terminating (parallel worker|connection|background worker.*) due to administrator command/, 'the end of a worker is an error of the query');
is($out, $answers[0], 'the next query is right');
ok(wait_until(5, sub { count_workers() == 0 }), 'the workers are gone');
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left on the device');

# gpujoind is killed while they load
foreach my $query (0, 1)
{
	# once in the middle, and once perhaps when all is loaded
	$run = start_psql($node, "$stalled " . ($row, $sum)[$query] . ';');
	ok(wait_until(10, sub { $query == 1 ? $node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices') eq '1' : count_workers() == 4 }), 'they load');
	my @pids = daemon_pids($node);
	is(kill('KILL', @pids), 1, 'gpujoind is killed');
	($out, $err) = finish($run);
	is($out, $answers[1 - $query], 'the native plan gives the right answer');
	is($err, '', 'and no error');
	ok(restarted($node, @pids), 'gpujoind is started again');
	ok(wait_until(15, sub { how($node, $sum) eq 'GpuJoin' }), 'and used');
}

# an error that a worker, or the session, meets in a page
$node->safe_psql('postgres', 'CREATE TABLE damaged AS SELECT * FROM big; CHECKPOINT');
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('damaged')");
$node->stop;
open my $handle, '+<', $file or die "$file: $!";
binmode $handle;
seek $handle, 8192 * 1000 + 12, 0;
print $handle "\xff" x 100;
close $handle;
$node->start;
foreach my $n (0, 4)
{
	my ($rc, undef, $error) = $node->psql('postgres', "$session SET gpujoin.loader_workers = $n; SELECT count(*), sum(b.n) FROM damaged b JOIN small s USING (k)");
	isnt($rc, 0, "$n workers: a damaged page is an error");
	like($error, qr/invalid page in block 1000/, "$n workers: PostgreSQL's own");
}
ok(wait_until(5, sub { count_workers() == 0 }), 'the workers are gone');
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left on the device');

# ends before the end
foreach my $query ('SELECT b.id, s.name FROM big b JOIN small s USING (k) LIMIT 3', "SELECT 1 / (b.id - 5) FROM big b JOIN small s USING (k)")
{
	$run = start_psql($node, "SET gpujoin.loader_workers = 4; $query; SELECT 'next'; $sum;");
	($out, $err) = finish($run);
	like($out, qr/next\n\Q$answers[0]\E\z/, "a query after: $query");
	is(count_workers(), 0, 'no worker is left');
	cmp_ok(idle_ms($node), '>=', 0, 'and nothing on the device');
}

# gpujoin_prewarm
my $prewarm = "SELECT gpujoin_prewarm('big') = pg_relation_size('big') / 8192";
$node->append_conf('postgresql.conf', "gpujoin.cache_size = -1\ngpujoin.late_columns = off\n");
$node->reload;
$run = start_psql($node, "$session $stalled $prewarm;");
ok(wait_until(10, sub { count_workers() == 4 }), 'prewarm: four workers load');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%prewarm%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
($out, $err) = finish($run);
like($err, qr/canceling statement due to user request/, 'prewarm: cancelled');
ok(wait_until(5, sub { count_workers() == 0 }), 'prewarm: the workers are gone');
is($node->safe_psql('postgres', "$session $stalled SET statement_timeout = '1s'; DO \$\$ BEGIN PERFORM gpujoin_prewarm('big'); EXCEPTION WHEN query_canceled THEN CREATE TEMP TABLE caught AS SELECT 1 AS x; END \$\$; SELECT * FROM caught"), 1,
	'prewarm: an error that is caught, and the transaction goes on');
ok(wait_until(5, sub { count_workers() == 0 }), 'prewarm: the workers are gone');
is($node->safe_psql('postgres', "$session SET gpujoin.loader_workers = 4; BEGIN; UPDATE small SET v = v; $prewarm; UPDATE small SET v = v; COMMIT"), 't', 'prewarm: all is resident, and the transaction goes on');
is(count_workers(), 0, 'prewarm: no worker is left');
$node->append_conf('postgresql.conf', "gpujoin.cache_size = 0\n");
$node->reload;

# more sessions than there are workers: fewer help, and nobody waits
my @runs = map { start_psql($node, "SET gpujoin.loader_workers = 8; $sum; $row; $sum; $row;") } 1 .. 8;
foreach my $r (@runs)
{
	($out, $err) = finish($r);
	is($out, join("\n", @answers, @answers), 'right beside others');
	is($err, '', 'without an error');
}

# while another session changes the tables, each query sees one state of them
$node->safe_psql('postgres', 'CREATE TABLE moving AS SELECT i % 900 + 1 AS k, 1 AS n FROM generate_series(1, 100000) i');
my $writer = start_psql($node, join '', map { "UPDATE moving SET n = CASE n WHEN 1 THEN 2 ELSE 1 END WHERE k % 10 = $_ % 10; BEGIN; DELETE FROM moving; ROLLBACK;" } 1 .. 12);
my $moved = "SELECT count(*), count(DISTINCT x.n) <= 2 FROM (SELECT m.k, m.n FROM moving m JOIN small s USING (k) OFFSET 0) x";
for (1 .. 15)
{
	is($node->safe_psql('postgres', "$session SET gpujoin.loader_workers = 4; $moved"), '100000|t', 'every row once');
	is($node->safe_psql('postgres', "$session SET gpujoin.loader_workers = 4; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(m.n) FROM moving m JOIN small s USING (k) \\gset a
		SET gpujoin.enabled = off; SELECT sum(m.n) = :asum FROM moving m JOIN small s USING (k); COMMIT"), 't', 'the same snapshot as PostgreSQL');
}
($out, $err) = finish($writer);
is($err, '', 'the writer has ended');
unlike(slurp_file($node->logfile), qr/process .* was terminated by signal|PANIC|TRAP|WARNING:.*leak/, 'no crash and no leak in the log');
$node->stop;
done_testing();
