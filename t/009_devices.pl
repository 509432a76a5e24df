# Several devices for one run, and runs larger than a device's memory: the same rows as ever.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'the cpu pretends to be several devices, GPUs do not' if device() ne 'cpu';

my $session = GpuJoin::session();
my $limited = "$session SET gpujoin.device_memory_limit = '16MB';";
my $node = new_node('devices', preload => 1, conf => "temp_file_limit = '500MB'\nwork_mem = '16MB'\n");
$node->safe_psql('postgres', q{
	-- a hot key, keys that are NULL, values that are, and text
	CREATE TABLE big AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 7 WHEN i % 11 = 0 THEN NULL ELSE i END AS k,
		nullif(i % 10, 3) AS v, repeat('t', i % 20) || i AS t FROM generate_series(1, 300000) i;
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w, 's' || i AS t FROM generate_series(1, 200) i;
	VACUUM ANALYZE big, few;
});
my %queries = (
	sums => 'SELECT count(*), sum(a.id + b.v), min(b.v), max(a.k), avg(a.id) FROM big a JOIN big b ON a.id = b.id',
	text => 'SELECT count(*), sum(length(at)), sum(length(bt)), sum(v), count(v) FROM (SELECT a.t AS at, b.t AS bt, a.v FROM big a JOIN big b ON a.id = b.id OFFSET 0) x',
	hot => 'SELECT count(*), sum(b.id::bigint) FROM few s JOIN big b USING (k)',
	both => 'SELECT count(*), sum(a.id::bigint - b.id) FROM (SELECT * FROM big WHERE id < 300) a JOIN big b USING (k)',
	chain => 'SELECT count(*), sum(a.id + c.v) FROM big a JOIN big b ON a.id = b.id JOIN big c ON b.id + 1 = c.id',
	left => 'SELECT count(*), sum(a.id), sum(b.id), count(b.v) FROM big a LEFT JOIN big b ON a.id = b.id + 100000 AND b.v > 5',
	full => 'SELECT count(*), sum(a.id), sum(b.id), count(b.v) FROM big a FULL JOIN big b ON a.id = b.id + 100000',
	semi => 'SELECT count(*), sum(a.id) FROM big a WHERE EXISTS (SELECT FROM big b WHERE a.k = b.k)',
	anti => 'SELECT count(*), sum(a.id) FROM big a WHERE NOT EXISTS (SELECT FROM big b WHERE a.id = b.id * 2 AND a.v < b.v)',
	filter => "SELECT count(*), sum(a.v) FROM big a JOIN big b ON a.id = b.id AND a.v < b.k WHERE a.t LIKE '%7%' AND b.id > 1000",
	empty => 'SELECT count(*), sum(a.v) FROM big a JOIN big b ON a.id = b.id WHERE b.id < 0');
my %answers = map { $_ => $node->safe_psql('postgres', "SET gpujoin.enabled = off; $queries{$_}") } keys %queries;

sub plan_of
{
	my ($query, $settings) = @_;
	return $node->safe_psql('postgres', "$session $settings EXPLAIN (ANALYZE, COSTS OFF) $query");
}

foreach my $n (1, 2, 4)
{
	$node->append_conf('postgresql.conf', "gpujoin.cpu_devices = $n\n");
	$node->restart;
	is($node->safe_psql('postgres', "$session SELECT count(*) FROM gpujoin_devices WHERE device = 'cpu'"), $n, "$n devices");
	foreach my $name (sort keys %queries)
	{
		is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "$n devices, $name: right rows");
		is($node->safe_psql('postgres', "$limited $queries{$name}"), $answers{$name}, "$n devices of little memory, $name: right rows");
		is($node->safe_psql('postgres', "$limited SET gpujoin.spill_memory = 0; $queries{$name}"), $answers{$name},
			"$n devices of little memory, temporary files, $name: right rows");
	}
	my $plan = plan_of($queries{sums}, '');
	unlike($plan, qr/Fallback|Spilled/, "$n devices: not split");
	if ($n > 1)
	{
		my ($used) = $plan =~ /Devices Used: (.*)/;
		is(scalar(() = $used =~ /rows=/g), $n, "$n devices: all take part");
		unlike(plan_of($queries{sums}, 'SET gpujoin.devices_per_query = 1;'), qr/Devices Used/, 'one is enough if one is asked for');
	}
	foreach my $name (qw(sums both chain full semi anti))
	{
		my $limited_plan = plan_of($queries{$name}, "SET gpujoin.device_memory_limit = '16MB';");
		unlike($limited_plan, qr/Fallback/, "$n devices of little memory, $name: no fallback");
		like($limited_plan, qr/Spilled: memory=[1-9]\d*kB disk=0kB  Passes: ([2-9]|\d\d)/, "$n devices of little memory, $name: in parts");
	}
	like(plan_of($queries{sums}, "SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0;"),
		qr/Spilled: memory=0kB disk=[1-9]/, "$n devices of little memory: temporary files");
	# neither memory nor files: PostgreSQL's own plan, before any row
	like(plan_of($queries{sums}, "SET work_mem = '100MB'; SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0; SET temp_file_limit = 0;"),
		qr/Fallback: out of host memory/, "$n devices: no room for what does not fit");

	# an inner side of which the planner expects a thousand rows
	my $unexpected = "SELECT count(*), sum(x.v) FROM big b JOIN (SELECT g::int AS k, g::int + 1 AS v FROM generate_series(1, (SELECT 1900000)) g OFFSET 0) x ON b.id = x.k";
	my $tight = "SET gpujoin.device_memory_limit = '130MB';";
	is($node->safe_psql('postgres', "$session $tight $unexpected"), '300000|45000450000', "$n devices: an inner side that is larger than expected");
	my $again = plan_of($unexpected, $tight);
	unlike($again, qr/Fallback/, "$n devices: is no reason to fall back");
	like($again, qr/Passes: ([2-9]|\d\d)/, "$n devices: the run starts again in parts");

	# failures on one of them, and of all
	foreach my $point (qw(memory build probe overflow))
	{
		foreach my $start ($session, $limited)
		{
			is($node->safe_psql('postgres', "$start SET gpujoin.fail_at = '$point'; $queries{sums}"), $answers{sums}, "$n devices, $point fails: right sums");
			is($node->safe_psql('postgres', "$start SET gpujoin.fail_at = '$point'; $queries{text}"), $answers{text}, "$n devices, $point fails: right rows");
		}
	}
	is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");

	# cancelled while they work, and left before the end
	foreach my $start ($session, $limited)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "$start SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $queries{sums}");
		like($err, qr/statement timeout/, "$n devices: cancelled");
		is($node->safe_psql('postgres', "$start SELECT count(*) FROM (SELECT a.id FROM big a JOIN big b ON a.id = b.id LIMIT 5) x"), 5, "$n devices: a few rows");
		is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");
	}
	# sessions at once, with and without room
	my @runs = map { start_psql($node, ($_ % 2 ? "SET gpujoin.device_memory_limit = '16MB'; " : '') . "$queries{sums}; $queries{text};") } 1 .. 6;
	my $right = grep { my ($out, $err) = finish($_); $err eq '' && $out eq "$answers{sums}\n$answers{text}" } @runs;
	is($right, 6, "$n devices: six sessions have their answers");
}

unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'no process crashed');

# a run that was left while its devices worked is not suspected of a later crash
my $crash = 'SELECT count(*), sum(s.w) FROM few s JOIN big b USING (k) WHERE b.id > 3';
my $crashed = $node->safe_psql('postgres', $crash);
$node->psql('postgres', "$session SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $queries{sums}");
is(idle_ms($node) >= 0, 1, 'a run is left');
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; $crash"), $crashed, 'another one ends gpujoind: the right answer');
ok(wait_until(15, sub { how($node, $queries{sums}) eq 'GpuJoin' }), 'it is started again');
like(how($node, $crash, "SET gpujoin.fail_at = 'crash';"), qr/^fell back: .*refused/, 'that one alone is to blame');

# gpujoind is killed while a run is in parts
my $run = start_psql($node, "SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.fail_at = 'stall'; $queries{sums};");
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT sum(memory_used) FROM gpujoin_devices') > 0 }), 'a run is at work');
my @before = daemon_pids($node);
kill 9, @before;
my ($out, $err) = finish($run);
is($out, $answers{sums}, 'gpujoind is killed: the right answer');
ok(wait_until(15, sub { my @p = daemon_pids($node); @p == 1 && $p[0] != $before[0] }), 'it is started again');
ok(wait_until(15, sub { how($node, $queries{sums}, "SET gpujoin.device_memory_limit = '16MB';") eq 'GpuJoin' }), 'runs in parts are on the device again');
is(join(' ', glob($node->data_dir . '/base/pgsql_tmp/*')), '', 'no temporary file is left');

# settings of the server
my ($rc, $stdout, $stderr) = $node->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.devices = '1'");
like($stderr, qr/cannot be changed now/, 'sessions cannot choose GPUs');
($rc, $stdout, $stderr) = $node->psql('postgres', "LOAD 'gpujoin'; ALTER SYSTEM SET gpujoin.devices = '0;1'");
like($stderr, qr/invalid value/, 'a list of GPUs is checked');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
