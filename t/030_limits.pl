# Limits: queries and memory of a role or a database, tables that are left out, the cpu device's share of the machine,
# and databases without the extension.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('limits', preload => 1);
my $session = GpuJoin::session();
my ($rc, $out, $err);
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN; GRANT SELECT ON f, d TO alice, bob;
	CREATE TABLE big AS SELECT i AS id, i % 100 AS k, repeat('x', 40) AS t FROM generate_series(1, 400000) i; GRANT SELECT ON big TO alice, bob; VACUUM ANALYZE big});
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin; CREATE TABLE f AS SELECT i AS id, i % 100 AS k, i % 100 + 5 AS v FROM generate_series(1, 100000) i; CREATE TABLE d AS SELECT i AS k, i % 10 AS c FROM generate_series(0, 59) i; VACUUM ANALYZE f, d; GRANT SELECT ON f, d TO PUBLIC');

# How a query runs, as a role in a database.
sub how_as
{
	my ($role, $query, $database, $settings) = @_;
	my $plan = $node->safe_psql($database || 'postgres', 'SET gpujoin.force = on; ' . ($settings || '') . "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $query", extra_params => [ '-U', $role ]);
	return 'GpuJoin' . ($plan =~ /^\s*(Fallback: .*)$/m ? ", $1" : '') if $plan =~ /Custom Scan \(GpuJoin\)/;
	return $plan =~ /^\s*(?:Join|Aggregates) of \S+(?:, \S+)*: (.*)$/m ? "native: $1" : 'native';
}

# A session of a role that keeps a query on the device: the cursor's rows are not all fetched.
sub busy_session
{
	my ($role) = @_;
	local $ENV{PGUSER} = $role;
	my $busy = GpuJoin::Session->new($node, 'BEGIN; DECLARE c CURSOR FOR SELECT big.id, big.t, d.name FROM big JOIN d USING (k); FETCH 5 FROM c');
	return $busy;
}

# ---- only superusers set them

foreach my $setting ('max_device_memory = 1', 'max_running_queries = 1', "excluded_tables = 'f'")
{
	($rc, $out, $err) = $node->psql('postgres', "SET gpujoin.$setting", extra_params => [ '-U', 'alice' ]);
	like($err, qr/permission denied to set parameter/, "alice may not set gpujoin.$setting");
}

# ---- queries

is(how_as('alice', $sums), 'GpuJoin', 'no limit');
$node->safe_psql('postgres', 'ALTER ROLE alice SET gpujoin.max_running_queries = 0');
is(how_as('alice', $sums), 'native: gpujoin.max_running_queries is 0', 'a role without the device');
is(how_as('bob', $sums), 'GpuJoin', 'another role has it');
is($node->safe_psql('postgres', 'SELECT DISTINCT reason FROM gpujoin_devices WHERE device = current_setting(\'gpujoin.device\')', extra_params => [ '-U', 'alice' ]), 'gpujoin.max_running_queries is 0', 'gpujoin_devices says so');
($rc, $out, $err) = $node->psql('postgres', "SELECT gpujoin_prewarm('f')", extra_params => [ '-U', 'alice' ]);
like($err, qr/there is no device to load "f" to\nDETAIL:  gpujoin.max_running_queries is 0/, 'nothing is loaded either');
$node->safe_psql('postgres', 'ALTER ROLE alice SET gpujoin.max_running_queries = 1; ALTER ROLE bob SET gpujoin.max_running_queries = 1');
my $full = 'GpuJoin, Fallback: limit of the role or database reached: gpujoin.max_running_queries';
my $busy = busy_session('alice');
is($node->safe_psql('postgres', 'SELECT max(sessions) FROM gpujoin_devices'), 1, 'a query of alice runs');
is(how_as('alice', $sums), $full, 'she may not have another');
is(how_as('bob', $sums), 'GpuJoin', 'bob may');
is($busy->query("SELECT count(*) FROM f JOIN d USING (k)"), 60000, 'the session that has it may run more');
is($busy->query("$sums"), $sums_answer, 'a right answer');
# a statement waits once, whatever it has of GpuJoins; the next one waits again
my $began = time;
my $many = $node->safe_psql('postgres', 'SET gpujoin.force = on; EXPLAIN (ANALYZE, COSTS OFF) ' . join(' UNION ALL ', map { "SELECT $_, s.* FROM ($sums) s" } 1 .. 6), extra_params => [ '-U', 'alice' ]);
my $waited = time - $began;
is(scalar(() = $many =~ /Fallback: limit of the role/g), 6, 'each part falls back');
ok($waited < 5, sprintf('they wait for a place once (%.1f s)', $waited));
$busy->end;
ok(wait_until(10, sub { how_as('alice', $sums) eq 'GpuJoin' }), 'its end makes room');
# who waits gets the next place
$busy = busy_session('alice');
my $waiting;
{
	local $ENV{PGUSER} = 'alice';
	$waiting = GpuJoin::Session->new($node);
}
$waiting->send("EXPLAIN (ANALYZE, COSTS OFF) $sums");
select undef, undef, undef, 0.3;
$busy->query('COMMIT');
unlike($waiting->answer, qr/Fallback/, 'who waits gets the place');
$waiting->end;
$busy->end;
is($node->safe_psql('postgres', "SELECT count FROM gpujoin_stat WHERE outcome = 'limit of the role or database reached' AND datname = 'postgres'"), 7, 'gpujoin_stat counts');

# of a database, and of the server
$node->safe_psql('postgres', 'ALTER ROLE alice RESET gpujoin.max_running_queries; ALTER ROLE bob RESET gpujoin.max_running_queries; ALTER DATABASE postgres SET gpujoin.max_running_queries = 1');
$busy = busy_session('alice');
is(how_as('bob', $sums), $full, 'a database\'s limit is for all its roles');
is(how_as('bob', $sums, 'other'), 'GpuJoin', 'but for no other database');
$busy->end;
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET gpujoin.max_running_queries');
$node->append_conf('postgresql.conf', 'gpujoin.max_running_queries = 1');
$node->reload;
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SHOW gpujoin.max_running_queries') eq '1' }), 'reloaded');
$busy = busy_session('alice');
is(how_as('bob', $sums, 'other'), $full, 'the server\'s limit is for all');
$node->safe_psql('postgres', 'ALTER ROLE bob IN DATABASE other SET gpujoin.max_running_queries = 5');
is(how_as('bob', $sums, 'other'), 'GpuJoin', 'but for who has one of their own');
$busy->end;
$node->append_conf('postgresql.conf', 'gpujoin.max_running_queries = -1');
$node->reload;
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SHOW gpujoin.max_running_queries') eq '-1' }), 'reloaded');

# ---- memory

$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict(); ALTER ROLE alice SET gpujoin.max_device_memory = \'8MB\'');
my $keys = 'SELECT count(*), sum(a.id) FROM big a JOIN big b ON a.id = b.id';
my $answer = $node->safe_psql('postgres', "SET gpujoin.enabled = off; $keys");
my $explain = "SET gpujoin.force = on; EXPLAIN (ANALYZE, COSTS OFF) $keys";
my $plan = $node->safe_psql('postgres', $explain, extra_params => [ '-U', 'alice' ]);
like($plan, qr/Spilled:.*Passes: \d|Fallback: out of device memory/, 'little memory: parts of the query') or diag($plan);
is($node->safe_psql('postgres', "SET gpujoin.force = on; $keys", extra_params => [ '-U', 'alice' ]), $answer, 'a right answer');
unlike($node->safe_psql('postgres', $explain, extra_params => [ '-U', 'bob' ]), qr/Passes|Fallback/, 'another role has all of it');
# together: what one session has another one does not
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict(); ALTER ROLE alice SET gpujoin.max_device_memory = \'64MB\'');
unlike($node->safe_psql('postgres', $explain, extra_params => [ '-U', 'alice' ]), qr/Fallback/, 'memory for one query');
$busy = busy_session('alice');
my $used = $node->safe_psql('postgres', 'SELECT sum(memory_used) FROM gpujoin_devices');
ok($used > 0 && $used <= 64 * 1024 * 1024, "a query has $used bytes");
is($node->safe_psql('postgres', "SET gpujoin.force = on; $keys", extra_params => [ '-U', 'alice' ]), $answer, 'with what is left, or without: the answer is right');
$busy->end;
$node->safe_psql('postgres', 'ALTER ROLE alice RESET gpujoin.max_device_memory');

# ---- tables

my $user = $node->safe_psql('postgres', 'SELECT current_user');
sub excluded { my ($tables, $query) = @_; return how_as($user, $query, 'postgres', "SET gpujoin.excluded_tables = $tables; "); }
is(excluded("'d'", $sums), 'native: gpujoin.excluded_tables has d', 'a table');
is(excluded("'public.d', ' big '", $sums), 'native: gpujoin.excluded_tables has d', 'with its schema, in a list');
is(excluded("'big'", $sums), 'GpuJoin', 'a table that the query does not read');
$node->safe_psql('postgres', q{CREATE SCHEMA "Odd, name"; CREATE TABLE "Odd, name"."t.1" AS SELECT * FROM d; CREATE VIEW v AS SELECT * FROM d;
	CREATE TABLE p (k int, c int) PARTITION BY RANGE (k); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (30); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (30) TO (100); INSERT INTO p SELECT k, c FROM d; VACUUM ANALYZE p});
is(excluded(q{'"Odd, name"."t.1"'}, 'SELECT count(*) FROM f JOIN "Odd, name"."t.1" t ON f.k = t.k'), 'native: gpujoin.excluded_tables has t.1', 'a name that needs quotes');
is(excluded("'d'", 'SELECT count(*) FROM f JOIN v ON f.k = v.k'), 'native: gpujoin.excluded_tables has d', 'below a view');
is(excluded("'p'", 'SELECT count(*) FROM f JOIN p ON f.k = p.k'), 'native: gpujoin.excluded_tables has p', 'a partitioned table');
is(excluded("'p2'", 'SELECT count(*) FROM f JOIN p ON f.k = p.k'), 'native: gpujoin.excluded_tables has p2', 'a partition');
is(excluded("'p2'", 'SELECT count(*) FROM f JOIN p ON f.k = p.k WHERE p.k < 10'), 'GpuJoin', 'that is not read');
like(excluded("'d'", 'SELECT count(*) FROM (SELECT k FROM f GROUP BY k OFFSET 0) s JOIN d ON s.k = d.k'), qr/^GpuJoin/, 'a subquery without it is offloaded');
is($node->safe_psql('postgres', "$session PREPARE q AS SELECT count(*) FROM f JOIN d USING (k); EXECUTE q; SET gpujoin.excluded_tables = 'd'; EXECUTE q"), "60000\n60000", 'a prepared statement');
like($node->safe_psql('postgres', "$session SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM f JOIN d USING (k); EXECUTE q; SET gpujoin.excluded_tables = 'd'; EXPLAIN (ANALYZE, COSTS OFF) EXECUTE q"), qr/Fallback: gpujoin is disabled: gpujoin.excluded_tables has d/, 'falls back');
($rc, $out, $err) = $node->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.excluded_tables = 'd'; SELECT gpujoin_prewarm('d')");
like($err, qr/ERROR:  gpujoin.excluded_tables has "d"/, 'it is not made resident');
is($node->safe_psql('postgres', "LOAD 'gpujoin'; SET gpujoin.excluded_tables = 'p2'; SELECT gpujoin_prewarm('p') > 0; SELECT count(*) FROM gpujoin_cache WHERE relation = 'p2'::regclass"), "t\n0", 'nor is a partition');
$node->safe_psql('postgres', q{ALTER DATABASE postgres SET gpujoin.excluded_tables = '"Odd, name"."t.1", no_schema.t'});
is(how_as('bob', $sums), 'GpuJoin', 'a schema that a user may not use, or that is not there, is no error');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET gpujoin.excluded_tables');
foreach my $bad ("'no_such_table'", "'a.b.c.d'", "'a,'", q{'"open'})
{
	($rc, $out, $err) = $node->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.excluded_tables = $bad");
	like($err, qr/ERROR:  invalid value for parameter "gpujoin.excluded_tables"/, "not valid: $bad");
}
$node->safe_psql('postgres', "ALTER DATABASE other SET gpujoin.excluded_tables = 'd, not_here'");
is(how_as('bob', $sums, 'other'), 'native: gpujoin.excluded_tables has d', 'of a database');
($rc, $out, $err) = $node->psql('other', 'SELECT 1');
is("$out$err", '1', 'a table that is not there closes nothing');
# a table that is dropped, and made anew
$node->safe_psql('other', 'DROP TABLE d; CREATE TABLE d AS SELECT i AS k, i % 10 AS c FROM generate_series(0, 59) i; VACUUM ANALYZE d; GRANT SELECT ON d TO PUBLIC');
is(how_as('bob', $sums, 'other'), 'native: gpujoin.excluded_tables has d', 'a table by name');
$node->safe_psql('postgres', 'ALTER DATABASE other RESET gpujoin.excluded_tables');

# ---- databases without the extension

my $absent = 'native: extension gpujoin is not in this database';
$node->safe_psql('postgres', 'CREATE DATABASE without');
$node->safe_psql('without', 'CREATE TABLE f AS SELECT i AS id, i % 100 AS k, i % 100 + 5 AS v FROM generate_series(1, 100000) i; CREATE TABLE d AS SELECT i AS k, i % 10 AS c FROM generate_series(0, 59) i; VACUUM ANALYZE f, d');
is(how_as($user, $sums, 'without'), $absent, 'nothing is offloaded');
my $plan_of = "EXPLAIN (VERBOSE, COSTS OFF) $sums";
my $watching = GpuJoin::Session->new($node, 'SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM f JOIN d USING (k)');
like($watching->query($plan_of), qr/Custom Scan \(GpuJoin\)/, 'a session that is open');
is($watching->query('EXECUTE q'), 60000, 'with a plan');
$watching->query('BEGIN; DROP EXTENSION gpujoin');
like($watching->query($plan_of), qr/extension gpujoin is not in this database/, 'DROP EXTENSION ends it at once');
$watching->query('ROLLBACK');
like($watching->query($plan_of), qr/Custom Scan \(GpuJoin\)/, 'unless it is rolled back');
$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP FUNCTION idle_ms; DROP EXTENSION gpujoin');
like($watching->query($plan_of), qr/extension gpujoin is not in this database/, 'it ends in sessions that are open');
like($watching->query('EXPLAIN (ANALYZE, COSTS OFF) EXECUTE q'), qr/Fallback: gpujoin is disabled: extension gpujoin is not in this database|Hash Join/, 'and for plans that are there');
is($watching->query('EXECUTE q'), 60000, 'which give right answers');
is(how_as('bob', $sums, 'other'), 'GpuJoin', 'not in other databases');
$node->safe_psql('postgres', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin');
like($watching->query($plan_of), qr/Custom Scan \(GpuJoin\)/, 'CREATE EXTENSION begins it');
$watching->end;

# ---- the cpu device

is($node->safe_psql('postgres', "SET gpujoin.device = cpu; SELECT processors > 0, memory_total > 1e8 FROM gpujoin_devices WHERE device = 'cpu'"), 't|t', 'the cpu device as the machine suggests');
my ($daemon) = daemon_pids($node);
$node->append_conf('postgresql.conf', "gpujoin.cpu_threads = 3\ngpujoin.cpu_memory = '100MB'");
$node->reload;
ok(wait_until(10, sub { slurp_file($node->logfile) =~ /LOG:  settings of gpujoind have changed.*\n.*DETAIL:  It runs with: .*gpujoin.cpu_threads = 0.*\n.*HINT:  .*end process $daemon/ }), 'a reload says that they wait');
is((daemon_pids($node))[0], $daemon, 'and ends nothing');
my $changes = () = slurp_file($node->logfile) =~ /settings of gpujoind have changed/g;
$node->reload;
kill 'KILL', $daemon;
ok(restarted($node, $daemon) && wait_until(10, sub { $node->safe_psql('postgres', "SELECT state FROM gpujoin_processes WHERE process = 'gpujoind'") eq 'running' }), 'another gpujoind');
ok(wait_until(10, sub { $node->safe_psql('postgres', "SET gpujoin.device = cpu; SELECT processors, memory_total FROM gpujoin_devices WHERE device = 'cpu'") eq '3|' . 100 * 1024 * 1024 }), 'has them');
is($node->safe_psql('postgres', "LOAD 'gpujoin'; SET gpujoin.device = cpu; SET gpujoin.force = on; $sums"), $sums_answer, 'and a right answer');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC|gpujoind was terminated by signal (?!9)/, 'nothing crashed');
$node->stop;
done_testing();
