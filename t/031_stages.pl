# Stages and what comes between them: cancelled and timed-out queries, failures, a gpujoind that is killed.
# A gate in the query, which another session holds shut, says where it is.
# t/010_statements.pl has those that meet the changes of other sessions.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('stages', preload => 1);
$node->safe_psql('postgres', q{
	CREATE FUNCTION gate(int) RETURNS int STABLE LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); RETURN $1; END';
});

my $groups = '(SELECT k, sum(v) AS v, count(*) AS n FROM f GROUP BY k)';
my $gated = '(SELECT gate(k) AS k FROM d OFFSET 0)';
# where the query waits: while a stage loads, between two stages, while the rows that are joined with a stage load
my %queries = (
	'in a stage' => "SELECT count(*), sum(n) FROM d JOIN (SELECT f.k, count(*) AS n FROM f JOIN $gated x USING (k) GROUP BY f.k) s USING (k)",
	'between stages' => "SELECT count(*), sum(a.v), sum(b.n) FROM $groups a JOIN (SELECT k, count(*) AS n FROM f WHERE v > (SELECT gate(50)) GROUP BY k) b USING (k)",
	'in the reader' => "SELECT count(*), sum(s.v) FROM $groups s JOIN $gated x USING (k)",
	'in the reader of rows' => "SELECT s.k, s.v FROM $groups s JOIN $gated x USING (k)");

my ($holder, $watch) = map { GpuJoin::Session->new($node) } 1 .. 2;
$holder->query('SELECT pg_advisory_lock(7)');

# Starts a query and waits until it is at the gate.
sub at_gate
{
	my ($sql) = @_;
	my $run = start_psql($node, $sql);
	ok(wait_until(30, sub { $watch->query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'") eq '1' }), 'it waits at the gate');
	return $run;
}

# What it returns when the gate opens.
sub passed
{
	my ($run) = @_;
	$holder->query('SELECT pg_advisory_unlock(7)');
	my ($out, $err) = finish($run);
	$holder->query('SELECT pg_advisory_lock(7)');
	return (join("\n", sort split /\n/, $out), $err);
}

foreach my $where (sort keys %queries)
{
	my $query = $queries{$where};
	my $plan = $watch->query("EXPLAIN (COSTS OFF) $query");
	like($plan, qr/result of child plan/, "$where: the query has stages") or diag($plan);
	my ($right) = passed(at_gate("SET gpujoin.enabled = off; $query"));
	my ($device) = passed(at_gate("SET gpujoin.forbid_fallback = on; $query"));
	is($device, $right, "$where: the device's answer");

	# ends that are asked for
	foreach my $function ('pg_cancel_backend', 'pg_terminate_backend')
	{
		my $run = at_gate($query);
		$watch->query("SELECT $function(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'");
		like((finish($run))[1], qr/user request|administrator command/, "$where: $function");
		cmp_ok(idle_ms($node), '>=', 0, "$where: nothing is left");
	}
	my ($out, $err) = finish(at_gate("SET statement_timeout = '2s'; $query; RESET statement_timeout; SELECT idle_ms() >= 0"));
	like($err, qr/statement timeout/, "$where: statement_timeout");
	is($out, 't', "$where: the session goes on, and nothing is left");

	# gpujoind ends, and another one is there when the query goes on
	my @before = daemon_pids($node);
	my $run = at_gate("SET client_min_messages = debug1; $query");
	kill 'KILL', @before;
	ok(restarted($node, @before) && on_device($node), "$where: gpujoind is killed and comes back");
	($out, $err) = passed($run);
	is($out, $right, "$where: the right answer after that");
	like($err, $where eq 'between stages' ? qr/own plan: connection to gpujoind lost: gpujoind ended between two stages of the query/ : qr/own plan: connection to gpujoind lost/, "$where: it says so");
	cmp_ok(idle_ms($node), '>=', 0, "$where: nothing is left");

	# failures in each stage and in what reads them
	foreach my $point (qw(submit memory build probe overflow output))
	{
		$holder->query('SELECT pg_advisory_unlock(7)');
		($out, $err) = finish(start_psql($node, "SET gpujoin.fail_at = '$point'; $query;"));
		$holder->query('SELECT pg_advisory_lock(7)');
		is(join("\n", sort split /\n/, $out), $right, "$where: fails at $point") or diag($err);
	}
}
is(how($node, $sums), 'GpuJoin', 'queries are on the device as before');
is($watch->query("SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome = 'invalid program'"), 0, 'no program was wrong');
$_->end foreach $holder, $watch;
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC|TRAP|WARNING:.*leak/, 'no crash and no leak in the log');
$node->stop;
done_testing();
