# Watching: counts by database that can be reset, the progress of gpujoin_prewarm(), and what devices did for each statement.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('watching', preload => 1);
my $session = GpuJoin::session();
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin; CREATE TABLE f AS SELECT i AS id, i % 100 AS k, i % 100 + 5 AS v FROM generate_series(1, 100000) i; CREATE TABLE d AS SELECT i AS k, i % 10 AS c FROM generate_series(0, 59) i; VACUUM ANALYZE f, d');

# ---- gpujoin_stat

sub counts { my ($datname) = @_; return $node->safe_psql('postgres', "SELECT outcome, count FROM gpujoin_stat WHERE datname = '$datname' ORDER BY 1"); }
$node->safe_psql('postgres', "$session $sums; $sums; SET gpujoin.fail_at = 'connect'; $sums; SET gpujoin.fail_at = 'submit'; $sums");
$node->safe_psql('other', "$session $sums");
my $failed = 'failure injected by gpujoin.fail_at';
is(counts('postgres'), "completed|2\n$failed|2", 'counts of a database, of gpujoind and of sessions');
is(counts('other'), 'completed|1', 'and of another one');
is($node->safe_psql('other', 'SELECT gpujoin_stat_reset(); SELECT count, last, now() - stats_reset < interval \'1 min\' FROM gpujoin_stat WHERE datname = current_database()'), "\n0||t", 'they begin anew');
is(counts('postgres'), "completed|2\n$failed|2", 'but those of the others');
is($node->safe_psql('postgres', "SELECT DISTINCT stats_reset FROM gpujoin_stat WHERE datname = 'postgres'"), '', 'which were never reset');
my @before = daemon_pids($node);
kill 'KILL', @before;
ok(restarted($node, @before) && on_device($node), 'gpujoind is started again');
is(counts('other'), 'completed|0', 'the reset outlives gpujoind');
$node->safe_psql('other', "$session $sums");
is(counts('other'), 'completed|1', 'and counts go on from there');
$node->safe_psql('postgres', 'CREATE ROLE mortal LOGIN');
foreach my $function (qw(gpujoin_stat_reset gpujoin_stat_statements_reset))
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET ROLE mortal; SELECT $function()");
	like($err, qr/permission denied for function $function/, "$function() is not for everybody");
}

# ---- gpujoin_stat_statements

$node->safe_psql('postgres', "$session SELECT gpujoin_stat_statements_reset(); $sums; $sums; SET gpujoin.fail_at = 'probe'; $sums; SELECT 1");
my $statements = 'SELECT calls, fallbacks, device_time > 0, wait_time >= 0, load_time >= 0, bytes_in >= 0, bytes_out > 0, queryid <> 0, now() - stats_since < interval \'1 min\' FROM gpujoin_stat_statements';
is($node->safe_psql('postgres', "$statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'postgres')"), '3|1|t|t|t|t|t|t|t', 'a statement, with its fallback; others are none of ours');
# the query identifier is PostgreSQL's
my ($plan) = $node->safe_psql('postgres', "$session EXPLAIN (VERBOSE) $sums") =~ /^\s*Query Identifier: (\S+)/m;
is($node->safe_psql('postgres', 'SELECT queryid FROM gpujoin_stat_statements'), $plan, 'its identifier is that of EXPLAIN');
$node->safe_psql('postgres', "$session SELECT 1; EXPLAIN $sums; EXPLAIN (ANALYZE) $rows; SET compute_query_id = off; SELECT count(*) FROM f JOIN d USING (k)");
is($node->safe_psql('postgres', 'SELECT sum(calls) FROM gpujoin_stat_statements'), 4, 'EXPLAIN ANALYZE counts; EXPLAIN, and what has no identifier, do not');
$node->safe_psql('postgres', "$session CREATE FUNCTION in_a_function() RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN PERFORM count(*) FROM f JOIN d USING (k) WHERE f.v > 7; RETURN 1; END \$\$; SELECT gpujoin_stat_statements_reset(); SELECT in_a_function(), in_a_function()");
is($node->safe_psql('postgres', 'SELECT count(*), sum(calls) FROM gpujoin_stat_statements'), '1|2', 'a query in a function');
$node->safe_psql('postgres', "$session SET gpujoin.set_device_min_elements = 0; SELECT gpujoin_stat_statements_reset(); SELECT count(*) FROM gpu_set_join('SELECT id, ARRAY[k, v] FROM f WHERE id < 2000', NULL, 'overlap', 2)");
is($node->safe_psql('postgres', 'SELECT max(calls), max(device_time) > 0, sum(fallbacks) FROM gpujoin_stat_statements'), '1|t|0', 'a set join');
my ($rc, $out, $err) = $node->psql('postgres', "$session SELECT gpujoin_stat_statements_reset(); CREATE TABLE z AS SELECT 0 AS zero FROM generate_series(1, 10); SELECT sum(f.v / (d.c - d.c)) FROM f JOIN d USING (k)");
like($err, qr/division by zero/, 'a statement that ends with an error');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpujoin_stat_statements'), 0, 'is not counted');
# who sees what
$node->safe_psql('postgres', "$session GRANT SELECT ON f, d TO mortal; $sums; SET ROLE mortal; $sums");
is($node->safe_psql('postgres', 'SET ROLE mortal; SELECT userid::regrole, queryid IS NOT NULL, calls FROM gpujoin_stat_statements ORDER BY 2'), $node->safe_psql('postgres', 'SELECT current_user') . "|f|1\nmortal|t|1", 'identifiers of others are hidden');
is($node->safe_psql('postgres', 'GRANT pg_read_all_stats TO mortal; SET ROLE mortal; SELECT count(queryid) FROM gpujoin_stat_statements; RESET ROLE; REVOKE pg_read_all_stats FROM mortal'), 2, 'but from pg_read_all_stats');
# more statements than there is room for
$node->safe_psql('postgres', "$session SET gpujoin.device = off; SELECT gpujoin_stat_statements_reset()");
$node->safe_psql('postgres', $session . q{DO $$ BEGIN FOR i IN 1..1050 LOOP EXECUTE format('SELECT count(*) AS %I FROM (SELECT v FROM f LIMIT 10) f JOIN d ON f.v = d.c WHERE ' || repeat('f.v > 1 AND ', i % 40) || repeat('d.c > 1 AND ', i / 40) || ' true', 'c' || i); END LOOP; END $$});
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpujoin_stat_statements'), 1000, 'the last 1000 statements have places');
is($node->safe_psql('postgres', "$session $sums; SELECT count(*) FROM gpujoin_stat_statements; SELECT count(*) FROM gpujoin_stat_statements WHERE queryid = $plan"), "$sums_answer\n1000\n1", 'a new one takes that of another');
# many sessions at once
$node->safe_psql('postgres', 'SELECT gpujoin_stat_statements_reset()');
my @together = map { GpuJoin::Session->new($node) } 1 .. 4;
foreach (1 .. 5) { $_->send($sums) foreach @together; $_->answer foreach @together; }
$_->end foreach @together;
is($node->safe_psql('postgres', "SELECT calls FROM gpujoin_stat_statements WHERE queryid = $plan"), 20, 'sessions count together');

# ---- gpujoin_stat_progress_prewarm

$node->safe_psql('postgres', 'CREATE TABLE big AS SELECT i AS id, i % 1000 AS k, repeat(\'x\', 50) AS t FROM generate_series(1, 1500000) i; VACUUM ANALYZE big');
my $blocks = $node->safe_psql('postgres', "SELECT pg_relation_size('big') / 8192");
my $prewarm = GpuJoin::Session->new($node, 'SET max_parallel_workers = 0');
my $watch = GpuJoin::Session->new($node);
my (%phases, $most, $last);
my $relid = $node->safe_psql('postgres', "SELECT 'big'::regclass::oid");
foreach my $try (1 .. 20)
{
	$prewarm->send("SELECT gpujoin_prewarm('big')");
	foreach (1 .. 30)
	{
		my $row = $watch->query('SELECT datname, relid, phase, tables_total, tables_done, current_relid, blocks_total, blocks_done, pid FROM gpujoin_stat_progress_prewarm');
		next if $row eq '';
		my @row = split /\|/, $row;
		$phases{ $row[2] }++;
		$most = $row[7] if !defined $most || $row[7] > $most;
		$last = join '|', @row[ 0, 1, 3 .. 6 ];
	}
	$prewarm->answer;
	$prewarm->query("SELECT gpujoin_cache_evict('big')");
	last if $phases{loading};
}
ok($phases{loading}, 'gpujoin_prewarm() was seen to load') or diag(join ' ', %phases);
is($last, "postgres|$relid|1|0|$relid|$blocks", 'what it loads');
cmp_ok($most, '<=', $blocks, 'not more than there is');
ok($most > 0, "up to $most of $blocks blocks");
is($watch->query('SELECT count(*) FROM gpujoin_stat_progress_prewarm'), 0, 'nothing is left of it');
is($watch->query('SELECT (SELECT count(*) FROM pg_stat_progress_copy) + (SELECT count(*) FROM pg_stat_progress_vacuum)'), 0, 'no view of PostgreSQL shows it');
# what others do is not for everybody, and an error leaves nothing; gpujoind is stopped meanwhile
my ($daemon) = daemon_pids($node);
$node->append_conf('postgresql.conf', 'gpujoin.daemon_timeout = 0');
$node->reload;
$watch->query('SELECT pg_sleep(0.3)');
$prewarm->query('SELECT gpujoin_cache_evict(); SELECT count(*) FROM f JOIN d USING (k)');
kill 'STOP', $daemon;
$prewarm->send("SELECT gpujoin_prewarm('big')");
ok(wait_until(10, sub { $watch->query('SELECT phase FROM gpujoin_stat_progress_prewarm') =~ /^(?:preparing|loading)$/ }), 'it waits');
is($watch->query('SET ROLE mortal; SELECT datname, relid, phase, blocks_total FROM gpujoin_stat_progress_prewarm; RESET ROLE'), 'postgres|||', 'others see that somebody does something');
$watch->query('SELECT pg_cancel_backend(pid) FROM gpujoin_stat_progress_prewarm');
$prewarm->answer;
is($watch->query('SELECT count(*) FROM gpujoin_stat_progress_prewarm'), 0, 'an error ends it');
kill 'CONT', $daemon;
$prewarm->end;
$watch->end;
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;

# ---- without shared_preload_libraries

my $late = new_node('late');
($rc, $out, $err) = $late->psql('postgres', "LOAD 'gpujoin'; SELECT * FROM gpujoin_stat_statements");
like($err, qr/ERROR:  statements are counted only if gpujoin is in shared_preload_libraries/, 'statements need shared memory');
is($late->safe_psql('postgres', "$session $sums; SELECT gpujoin_stat_reset(); SELECT count(*) FROM gpujoin_stat_progress_prewarm"), "$sums_answer\n\n0", 'all else does not');
$late->stop;
done_testing();
