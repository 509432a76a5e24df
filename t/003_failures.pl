# Every failure of the device: the right rows, the reason told, and all well afterwards.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('failures', preload => 1);
my $session = GpuJoin::session();
my $count = "SELECT count(*) FROM ($rows OFFSET 0) x";
is(how($node, $sums), 'GpuJoin', 'queries are on the device');

sub counted { return $node->safe_psql('postgres', 'SELECT sum(count) FROM gpujoin_stat'); }

foreach my $point (qw(connect submit memory build probe overflow))
{
	my $before = counted();
	# an ordinary query first: the session knows the device
	my $settings = "$session $sums; SET gpujoin.fail_at = '$point';";
	is($node->safe_psql('postgres', "$settings $sums"), "$sums_answer\n$sums_answer", "$point: right sums");
	is($node->safe_psql('postgres', "$settings $count"), "$sums_answer\n$rows_answer", "$point: right rows");
	like(how($node, $sums, "SET gpujoin.fail_at = '$point';"), qr/^fell back: .|^native/, "$point: EXPLAIN ANALYZE says why");
	cmp_ok(counted(), '>', $before, "$point: gpujoin_stat counts");
	my ($rc, $out, $err) = $node->psql('postgres', "$settings SET client_min_messages = debug1; $sums");
	like($err, qr/DEBUG:.*(gpujoin|GpuJoin|device|fell|fallback)/i, "$point: DEBUG1 says so");
	is(how($node, $sums), 'GpuJoin', "$point: afterwards as before");
	is(idle_ms($node) >= 0, 1, "$point: nothing is left");
}
# after the first batch
my ($rc, $out, $err) = $node->psql('postgres', "$session SET gpujoin.fail_at = 'output'; SELECT a.id, b.t FROM f a JOIN f b ON a.id = b.id");
ok($rc != 0 ? $err =~ /ERROR/ : scalar(split /\n/, $out) == 100000, 'output: all rows or an error');
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'output'; $sums"), $sums_answer, 'output: right sums');
is(how($node, $sums), 'GpuJoin', 'output: afterwards as before');

# a program that ends gpujoind: once
my $query = "SELECT count(*), sum(f.v * 3) FROM f JOIN d ON f.k = d.k WHERE f.id > 5";
my $answer = $node->safe_psql('postgres', $query);
my @before = daemon_pids($node);
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; $query"), $answer, 'crash: the right answer');
ok(restarted($node, @before), 'crash: gpujoind is started again');
ok(on_device($node), 'crash: other queries are on the device');
my @after = daemon_pids($node);
like(how($node, $query, "SET gpujoin.fail_at = 'crash';"), qr/^fell back: .*refused/, 'crash: the same program is refused');
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; $query"), $answer, 'crash: and its answer is right');
is("@{[ daemon_pids($node) ]}", "@after", 'crash: gpujoind lives on');
is($node->safe_psql('postgres', 'SELECT 1'), 1, 'the server is up');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
like(slurp_file($node->logfile), qr/gpujoind.*(crash|signal|terminated|abort|ended)/i, 'the server log tells of it');
# what is counted survives
cmp_ok($node->safe_psql('postgres', "SELECT sum(count) FROM gpujoin_stat WHERE outcome ~ 'refused'"), '>=', 1, 'refusals are counted');
# forgotten when the server restarts
$node->restart;
wait_for_devices($node, '> 0');
is($node->safe_psql('postgres', "$session $query"), $answer, 'after a restart the query runs');
is(how($node, $query), 'GpuJoin', 'on the device');

# gpujoind crashes over and over, each time by a program of another shape: queries go on
my $last = 0;
for my $i (1 .. 5)
{
	my $conditions = join ' ', map { "AND f.id > $_" } 1 .. $i;
	$last++ if $node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; SELECT count(*) FROM f JOIN d ON f.k = d.k $conditions") > 0;
}
is($last, 5, 'five crashes: five answers');
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'and right answers afterwards');

# set joins are told apart by what they look for, not by how much of it
ok(on_device($node, 30), 'gpujoind is back');
# Its answer, and whether it ended gpujoind: then the one that runs the next query is another.
sub set_join
{
	my ($predicate, $threshold) = @_;
	my @pids = daemon_pids($node);
	my $found = $node->safe_psql('postgres', "$session SET gpujoin.set_device_min_elements = 0; SET gpujoin.fail_at = 'crash';
		SELECT count(*) FROM gpu_set_join('SELECT k, ARRAY[k, c] FROM d', NULL, '$predicate', $threshold)");
	ok(on_device($node, 30), 'gpujoind is there');
	my @now = daemon_pids($node);
	return ($found, "@now" ne "@pids" ? 1 : 0);
}
my $natively = $node->safe_psql('postgres', "SET gpujoin.device = off; SELECT count(*) FROM gpu_set_join('SELECT k, ARRAY[k, c] FROM d', NULL, 'jaccard', 0.5)");
is(join(' ', set_join('jaccard', 0.5)), "$natively 1", 'a set join that ends gpujoind: the right answer');
is(join(' ', set_join('jaccard', 0.5)), "$natively 0", 'it is refused, and has the right answer');
is((set_join('jaccard', 0.25))[1], 0, 'with another threshold, too');
is((set_join('overlap', 1))[1], 1, 'another predicate is not');

# gpujoind refuses programs that do not make sense: group keys (and aggregates) that no output has
ok(on_device($node), 'gpujoind is back');
my $saved = $node->basedir . '/saved.program';
$node->safe_psql('postgres', "$session SET gpujoin.save_program = '$saved'; $sums");
my $bindir = `pg_config --bindir`;
chomp $bindir;
my $program = slurp_file($saved);
my $at = index($program, 'JGPG');
cmp_ok($at, '>=', 0, 'a program is saved');
is(unpack('L', substr($program, $at + 96, 4)), 0, 'it has no group keys');
foreach my $ngroup_keys (0, 1)
{
	# ngroup_keys; where they are, something else is
	substr($program, $at + 96, 8) = pack('LL', $ngroup_keys, unpack('L', substr($program, $at + 68, 4)));
	open my $file, '>', $saved or die "$saved: $!";
	binmode $file;
	print $file $program;
	close $file;
	my $said = `"$bindir/gpujoind" --run "$saved" --device cpu 2>&1`;
	is($? == 0, $ngroup_keys == 0, "$ngroup_keys group keys") or diag($said);
	like($said, qr/group keys with output/, 'the reason is told') if $ngroup_keys > 0;
}

# no memory: run or fall back, right in either case
foreach my $limit ('1MB', '2MB', '8MB')
{
	is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '$limit'; $sums"), $sums_answer, "limit $limit: right sums");
	is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '$limit'; SELECT count(*) FROM f a JOIN f b ON a.id = b.id"), 100000, "limit $limit: right rows");
}
# no background worker is free, the program cannot be run: PostgreSQL's own plans
$node->stop;
my $none = new_node('no_workers', conf => "max_worker_processes = 0\n");
is($none->safe_psql('postgres', "$session $sums"), $sums_answer, 'no background worker: right answer');
$none->stop;
done_testing();
