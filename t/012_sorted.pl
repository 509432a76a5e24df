# Rows and groups in an order, of several devices, in parts and beyond a device's memory: sorted runs are merged.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session();
my $node = new_node('sorted', preload => 1, conf => "gpujoin.devices_per_query = 0\nwork_mem = '16MB'\ntemp_file_limit = '500MB'\n");
$node->safe_psql('postgres', q{
	-- keys that are NULL and that many rows have, values of all widths, texts that are long, short, and not there
	CREATE TABLE big AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 7 WHEN i % 11 = 0 THEN NULL ELSE i END AS k, (i::int8 * 2654435761 % 1000003)::int AS r,
		nullif(i % 10, 3)::int2 AS v, CASE WHEN i % 5 > 0 THEN repeat('t', i % 50) || i END AS t, i / 7.0::float8 AS x, i % 3 = 0 AS b, md5(i::text)::uuid AS u
		FROM generate_series(1, 80000) i;
	CREATE TABLE side AS SELECT i AS id, i % 77 AS w, CASE WHEN i % 3 > 0 THEN repeat('s', i % 30) || i END AS s FROM generate_series(1, 60000) i;
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w, 's' || i AS s FROM generate_series(1, 200) i;
	VACUUM ANALYZE big, side, few;
});
my %queries = (
	streamed => 'SELECT b.id, b.t, few.s, b.u FROM big b LEFT JOIN few USING (k) ORDER BY b.r, b.id',
	unforeseen => 'SELECT b.id, b.t, few.s, b.u FROM big b LEFT JOIN few USING (k) WHERE b.id + 0 = b.id ORDER BY b.r DESC, b.id',
	descending => 'SELECT b.id, b.v, b.x, few.w FROM big b LEFT JOIN few USING (k) ORDER BY few.w DESC NULLS LAST, b.v NULLS FIRST, b.id DESC',
	parts => 'SELECT b.id, b.t, side.s, side.w FROM big b JOIN side ON b.id = side.id ORDER BY side.w DESC, b.r, b.id',
	full => 'SELECT b.id AS a, b.t, side.s FROM big b FULL JOIN side ON b.id = side.id + 40000 AND b.v < 5 ORDER BY side.w, b.id, side.id',
	semi => 'SELECT b.* FROM big b WHERE EXISTS (SELECT FROM side WHERE side.id = b.id AND side.w > 5) ORDER BY b.x DESC',
	anti => 'SELECT b.* FROM big b WHERE NOT EXISTS (SELECT FROM side WHERE side.id = b.id AND side.w > 30) ORDER BY b.b, b.r, b.id',
	wide => 'SELECT b, side FROM big b JOIN side ON b.id = side.id ORDER BY b.r DESC, b.id',
	none => 'SELECT 1 AS a FROM big b JOIN side ON b.id = side.id ORDER BY b.r',
	empty => 'SELECT b.id FROM big b JOIN side ON b.id = side.id WHERE side.w > 100 ORDER BY b.id',
	groups => 'SELECT r, count(*), sum(id), min(x) FROM big GROUP BY r ORDER BY 4 DESC, 1',
	texts => "SELECT t, v, count(*) FROM big WHERE length(t) < 30 GROUP BY t, v ORDER BY v DESC NULLS LAST, count(*), min(id)",
	distinct => 'SELECT r % 40000 AS g, count(DISTINCT id), sum(v) FROM big GROUP BY 1 ORDER BY 2 DESC, 1',
	joined => 'SELECT b.r, count(*), max(side.w) FROM big b LEFT JOIN side ON b.id = side.id GROUP BY b.r ORDER BY 3 NULLS FIRST, 1');
# every row with its number, as it comes
sub numbered { return "SELECT count(*), md5(string_agg(x::text, ' ' ORDER BY n)) FROM (SELECT row_number() OVER () AS n, y.* FROM ($_[0]) y) x"; }
my %answers = map { $_ => native_answer($node, numbered($queries{$_})) } keys %queries;

sub right_rows
{
	my ($name, $settings, $what) = @_;
	is($node->safe_psql('postgres', "$session $settings " . numbered($queries{$name})), $answers{$name}, "$what, $name: right rows in their order");
}

my $little = "SET gpujoin.device_memory_limit = '10MB';";
foreach my $n (1, 2, 4)
{
	restart_with_devices($node, $n);
	foreach my $name (sort keys %queries)
	{
		right_rows($name, '', "$n devices");
		right_rows($name, $little, "$n devices of little memory");
		right_rows($name, "$little SET gpujoin.spill_memory = 0;", "$n devices of little memory, temporary files") if $n == 2;
		right_rows($name, 'SET gpujoin.exchange = on;', "$n devices that exchange") if $n == 2;
		unlike(plan_of($node, $queries{$name}, $session), qr/Fallback/, "$n devices, $name: no fallback");
		my $plan = plan_of($node, $queries{$name}, "$session $little");
		unlike($plan, qr/Fallback/, "$n devices of little memory, $name: no fallback");
		like($plan, qr/Sorted Runs: ([2-9]|\d\d)/, "$n devices of little memory, $name: sorted runs") if $name ne 'empty' && $name ne 'none';
		like($plan, qr/Sort Key/, "$n devices of little memory, $name: sorted by the device");
		unlike($plan, qr/^\s*(->  )?(Incremental )?Sort \(actual/m, "$n devices of little memory, $name: and by nobody else");
	}
	# all of them have some of the rows; nothing goes to the host but what is returned
	my $plan = plan_of($node, $queries{streamed}, $session);
	like($plan, qr/Sorted Runs: [1-$n]\n/, "$n devices: each has sorted its rows") if $n > 1;
	unlike($plan, qr/Sorted Runs/, 'one device returns its rows as it has sorted them') if $n == 1;
	unlike($plan, qr/Spilled/, "$n devices: nothing is kept on the host");
	like(plan_of($node, $queries{streamed}, "$session $little SET gpujoin.spill_memory = 0;"), qr/Spilled: memory=0kB disk=[1-9]/, "$n devices of little memory: temporary files");
	# neither memory nor files: PostgreSQL sorts the joined rows, and if nobody has foreseen it, its own plan runs, before any row
	my $nowhere = "$little SET work_mem = '100MB'; SET gpujoin.spill_memory = 0; SET temp_file_limit = 0;";
	like(plan_of($node, $queries{streamed}, "$session $nowhere"), qr/^Sort .*GpuJoin/s, "$n devices: no room for sorted runs");
	like(plan_of($node, $queries{unforeseen}, "$session $nowhere"), qr/Fallback: out of host memory/, "$n devices: no room for what nobody expected");

	# however little there is, and however it comes out: what the sort needs is there when no more rows are
	foreach my $memory ($n == 1 ? 5 .. 30 : ())
	{
		unlike(plan_of($node, $queries{$_}, "$session SET gpujoin.device_memory_limit = '${memory}MB';"), qr/Fallback/, "$memory MB, $_: room for the sort") foreach qw(streamed descending);
	}
	right_rows('streamed', "SET gpujoin.device_memory_limit = '$_';", "$n devices with $_") foreach $n == 1 ? qw(5MB 6MB 7MB 9MB 11MB 14MB) : ();

	foreach my $settings ('', $little)
	{
		foreach my $name (qw(streamed parts groups))
		{
			right_rows($name, "$settings SET gpujoin.fail_at = '$_';", "$n devices, $_ fails") foreach qw(memory build probe overflow);
		}
		# after a batch: all rows or an error
		my ($rc, $out, $err) = $node->psql('postgres', "$session $settings SET gpujoin.fail_at = 'output'; " . numbered($queries{streamed}));
		ok($rc != 0 ? $err =~ /ERROR: .*lost its device/ : $out eq $answers{streamed}, "$n devices, output fails: all rows or an error");
		# a cursor that is left, and one that others need not wait for
		is($node->safe_psql('postgres', "$session $settings BEGIN; DECLARE c CURSOR FOR $queries{streamed}; FETCH 3 FROM c; ROLLBACK; SELECT 'left'"),
			join("\n", $node->safe_psql('postgres', "SET gpujoin.enabled = off; $queries{streamed} LIMIT 3"), 'left'), "$n devices: a cursor that is left");
		my $idle = GpuJoin::Session->new($node);
		$idle->query("$session $settings BEGIN; DECLARE c CURSOR FOR $queries{parts}; FETCH 1 FROM c");
		right_rows('streamed', $settings, "$n devices, beside an open cursor");
		$idle->query('ROLLBACK');
		$idle->end;
		($rc, $out, $err) = $node->psql('postgres', "$session $settings SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $queries{streamed}");
		like($err, qr/statement timeout/, "$n devices: cancelled");
		is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");
	}
	my @runs = map { start_psql($node, ($_ % 2 ? "$little " : '') . numbered($queries{streamed}) . '; ' . numbered($queries{groups}) . ';') } 1 .. 4;
	my $right = grep { my ($out, $err) = finish($_); $err eq '' && $out eq "$answers{streamed}\n$answers{groups}" } @runs;
	is($right, 4, "$n devices: four sessions have their answers");
}

# the longest row there is, among short ones, with eight keys
$node->safe_psql('postgres', q{CREATE TABLE long AS SELECT i AS id, repeat(md5(i::text), CASE WHEN i % 1000 = 0 THEN 900 ELSE 1 END) AS t FROM generate_series(1, 20000) i; VACUUM ANALYZE long});
my $long = numbered('SELECT l.*, few.* FROM long l JOIN few ON l.id % 200 + 1 = few.k ORDER BY l.id % 7, l.id % 11, few.w, l.id % 13, few.k, l.id % 17 DESC, l.id % 19, l.id');
my $long_answer = $node->safe_psql('postgres', "SET gpujoin.enabled = off; $long");
is($node->safe_psql('postgres', "$session $_ $long"), $long_answer, 'long rows') foreach '', $little;

unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'no process crashed');

# gpujoind is killed while a client takes rows: an error, no part of the answer
my $reader = GpuJoin::Session->new($node);
$reader->query("$session $little BEGIN; DECLARE c CURSOR FOR SELECT b.id, b.t, few.k FROM big b JOIN few ON few.w = b.v ORDER BY b.r, b.id, few.k; FETCH 1 FROM c");
my @before = daemon_pids($node);
kill 9, @before;
like($reader->query('FETCH ALL FROM c; SELECT 1') . $reader->errors, qr/lost its device/, 'gpujoind is killed between two rows: an error');
$reader->end;
ok(restarted($node, @before), 'it is started again');
ok(wait_until(15, sub { how($node, $queries{streamed}, $little) eq 'GpuJoin' }), 'sorted runs are on the device again');
is(join(' ', glob($node->data_dir . '/base/pgsql_tmp/*')), '', 'no temporary file is left');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
