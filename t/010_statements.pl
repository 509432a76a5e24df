# Statements that wait for another session and meet its changes (EvalPlanQual): with gpujoin forced they leave
# and return what they do without it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('statements', preload => 1);
$node->safe_psql('postgres', q{
	CREATE TABLE first_t AS SELECT i AS id, i % 10 AS k, i AS v FROM generate_series(1, 40) i;
	CREATE TABLE first_a AS SELECT i AS k, i * 100 AS x FROM generate_series(0, 7) i;
	CREATE TABLE t (id int PRIMARY KEY, k int, v int);
	CREATE TABLE a (k int, x int);
	CREATE TABLE b AS SELECT i AS k, i * 7 AS y FROM generate_series(0, 9, 2) i;
	CREATE PROCEDURE again() LANGUAGE sql AS
		'DELETE FROM t; DELETE FROM a; INSERT INTO t SELECT * FROM first_t; INSERT INTO a SELECT * FROM first_a';
	CALL again();
	VACUUM ANALYZE t, a, b;
});

# What the one session does to a row that the other one wants, and does not see yet.
my %changes = (
	value => 'UPDATE t SET v = v + 1000 WHERE id = 5',
	key => 'UPDATE t SET k = k + 1 WHERE id IN (5, 6)',
	'key without match' => 'UPDATE t SET k = -1 WHERE id = 4',
	delete => 'DELETE FROM t WHERE id = 4',
	'both sides' => 'UPDATE a SET x = -x; UPDATE t SET v = 7 WHERE id IN (4, 24)');

# Statements that wait for it: whether GpuJoin finds their rows.
my @statements = (
	[ 1, 'UPDATE t SET v = t.v + a.x FROM a WHERE t.k = a.k' ],
	[ 1, 'UPDATE t SET v = t.v + a.x + b.y FROM a JOIN b USING (k) WHERE t.k = a.k AND t.v < 500 RETURNING t.*, a.*, b' ],
	[ 1, 'UPDATE t SET v = coalesce(b.y, -1) FROM a LEFT JOIN b USING (k) WHERE t.k = a.k' ],
	[ 1, 'UPDATE t SET v = x.column2 FROM (VALUES (4, 44), (5, 55), (6, 66)) x WHERE x.column1 = t.k' ],
	[ 1, 'UPDATE t SET v = o.v FROM t o WHERE o.id = t.id + 1' ],
	[ 1, 'UPDATE t SET v = s.n FROM (SELECT k, sum(a.x + b.y) AS n FROM a JOIN b USING (k) GROUP BY k) s WHERE s.k = t.k' ],
	[ 1, 'UPDATE t SET v = (SELECT max(a.x) FROM a JOIN b USING (k)) WHERE k IN (4, 5)' ],
	[ 1, 'UPDATE t SET v = v + 1 WHERE k NOT IN (SELECT a.k FROM a JOIN b USING (k))' ],
	# stages, and subqueries that become joins, but those that read what is changed
	[ 1, 'UPDATE t SET v = s.n FROM (SELECT c, count(*) AS n FROM (SELECT k, count(*) AS c FROM a JOIN b USING (k) GROUP BY k) x GROUP BY c) s WHERE s.c + 3 = t.k' ],
	[ 1, 'UPDATE t SET v = s.x FROM (SELECT k, x FROM a WHERE x > (SELECT avg(y) FROM b WHERE b.k = a.k)) s WHERE s.k = t.k' ],
	[ 1, 'DELETE FROM t WHERE k IN (SELECT k FROM a WHERE k NOT IN (SELECT k FROM b) AND x >= 0 GROUP BY k)' ],
	[ 1, 'UPDATE t SET v = 0 WHERE EXISTS (SELECT FROM a WHERE x >= 0 AND t.k NOT IN (SELECT b.k FROM b)) AND v <> (SELECT -count(*) FROM a JOIN b USING (k))' ],
	[ 1, 'SELECT t.* FROM t WHERE EXISTS (SELECT FROM a WHERE x >= 0 AND t.k NOT IN (SELECT b.k FROM b)) AND v <> (SELECT -count(*) FROM a JOIN b USING (k)) FOR UPDATE' ],
	[ 0, 'UPDATE t SET v = 0 WHERE v < (SELECT avg(x) FROM a WHERE a.k = t.k)' ],
	[ 1, 'DELETE FROM t USING a JOIN b USING (k) WHERE t.k = a.k RETURNING t.*, a.x' ],
	[ 1, 'DELETE FROM t USING a WHERE t.k = a.k AND NOT EXISTS (SELECT FROM b WHERE b.k = a.k)' ],
	[ 1, 'DELETE FROM t WHERE k IN (SELECT a.k FROM a JOIN b USING (k) GROUP BY 1)' ],
	[ 0, 'DELETE FROM t WHERE k IN (SELECT a.k FROM a JOIN b USING (k))' ],
	[ 1, 'MERGE INTO t USING (SELECT a.k, a.x, b.y FROM a LEFT JOIN b USING (k)) s ON t.id = s.k AND t.k = s.k
		WHEN MATCHED AND s.y IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.k + 100, s.k, s.x)' ],
	[ 0, 'SELECT t.*, a.x FROM t JOIN a USING (k) JOIN b USING (k) FOR UPDATE OF t' ],
	[ 1, 'SELECT t.*, s.n FROM t JOIN (SELECT k, count(*) AS n FROM a JOIN b USING (k) GROUP BY k) s USING (k) FOR UPDATE OF t' ]);

my ($changer, $waiter, $watch) = map { GpuJoin::Session->new($node) } 1 .. 3;
my $waiter_pid = $waiter->query('SELECT pg_backend_pid()');

# What the statement returns and leaves, if it had to wait for the change; undef if it had not.
my $nth = 0;
sub outcome
{
	my ($setting, $change, $statement, $end) = @_;
	my $mark = '/* ' . ++$nth . ' */';
	$changer->query("CALL again(); BEGIN; $change");
	$waiter->send("SET gpujoin.enabled = $setting; $mark $statement");
	my $state = "SELECT CASE WHEN wait_event_type = 'Lock' THEN 'waits' ELSE state END FROM pg_stat_activity WHERE pid = $waiter_pid AND starts_with(query, '$mark')";
	my $is;
	ok(wait_until(60, sub { ($is = $watch->query($state)) =~ /waits|idle/ }), 'it waits or has ended') or diag($is);
	$changer->query($end);
	my $returned = join "\n", sort split /\n/, $waiter->answer;
	return undef unless $is eq 'waits';
	return join "\n", $returned, $waiter->errors, $watch->query('SELECT id, k, v FROM t ORDER BY 1, 2, 3');
}

my ($rechecked, $met) = (0, 0);
sub fallbacks { return $watch->query("SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome LIKE 'not possible%'"); }
foreach (@statements)
{
	my ($forced, $statement) = @$_;
	my $plan = $waiter->query("SET gpujoin.enabled = on; EXPLAIN (COSTS OFF) $statement");
	is($plan =~ /GpuJoin/ ? 1 : 0, $forced, "$statement: who finds the rows") or diag($plan);
	foreach my $name (sort keys %changes)
	{
		foreach my $end ('COMMIT', 'ROLLBACK')
		{
			next if $end eq 'ROLLBACK' && $name ne 'key';
			my $native = outcome('off', $changes{$name}, $statement, $end);
			my $before = fallbacks();
			my $device = outcome('on', $changes{$name}, $statement, $end);
			$rechecked += fallbacks() - $before;
			$met++ if defined $device;
			is($device, $native, "$name, $end");
		}
	}
}
cmp_ok($met, '>=', 75, 'statements waited for others');
cmp_ok($rechecked, '>=', 30, 'rows were rechecked by native plans below GpuJoin');

# what repeatable read refuses is refused
foreach my $setting ('off', 'on')
{
	$changer->query('CALL again()');
	$waiter->query("SET gpujoin.enabled = $setting; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
	$changer->query($changes{value});
	$waiter->query("$statements[0][1]; ROLLBACK");
	like($waiter->errors, qr/could not serialize access due to concurrent update/, "repeatable read, gpujoin $setting");
}
# a transaction becomes serializable after the plan was made
$waiter->query('CALL again(); SET gpujoin.enabled = on; SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT count(*), sum(t.v) FROM t JOIN a USING (k); EXECUTE p');
like($waiter->query('BEGIN ISOLATION LEVEL SERIALIZABLE; EXPLAIN (ANALYZE, COSTS OFF) EXECUTE p; ROLLBACK'), qr/Fallback: not possible in this transaction/, 'a cached plan in a serializable transaction');
is($waiter->query('BEGIN ISOLATION LEVEL SERIALIZABLE; EXECUTE p; ROLLBACK'), $waiter->query('SET gpujoin.enabled = off; SELECT count(*), sum(t.v) FROM t JOIN a USING (k)'), 'and its answer');
# write skew is found although both read by joins
$waiter->query('SET gpujoin.enabled = on');
$_->query('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(t.v) FROM t JOIN a USING (k)') foreach $changer, $waiter;
$changer->query('UPDATE t SET v = 0 WHERE id = 1; COMMIT');
$waiter->query('UPDATE t SET v = 0 WHERE id = 2; COMMIT');
like($waiter->errors, qr/could not serialize access due to read\/write dependencies/, 'serializable transactions see each other');

# DDL of another session between plan and execution, and under an open cursor
$changer->query('CALL again()');
$waiter->query('PREPARE q AS SELECT count(*), count(t.v), sum(a.x) FROM t JOIN a USING (k)');
my $count = 'SELECT count(*), count(t.v), sum(a.x) FROM t JOIN a USING (k)';
foreach my $ddl ('ALTER TABLE t ADD COLUMN more int DEFAULT 5', 'ALTER TABLE t ALTER k TYPE bigint', 'ALTER TABLE t DROP COLUMN more', 'CREATE INDEX t_k ON t (k)', 'DROP INDEX t_k',
	'ALTER TABLE a RENAME TO a2; CREATE TABLE a AS SELECT * FROM a2 WHERE k < 5', 'TRUNCATE a', 'DROP TABLE a; ALTER TABLE a2 RENAME TO a', 'CLUSTER t USING t_pkey', 'VACUUM FULL t',
	'ALTER TABLE t RENAME COLUMN v TO w; ALTER TABLE t ADD COLUMN v int', 'ALTER TABLE t DROP COLUMN v; ALTER TABLE t RENAME COLUMN w TO v',
	'ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY', 'ALTER TABLE t DISABLE ROW LEVEL SECURITY', 'ALTER TABLE a SET UNLOGGED')
{
	is($waiter->query('EXECUTE q'), $watch->query("SET gpujoin.enabled = off; $count"), "before $ddl");
	$changer->query($ddl);
	is($changer->errors, '', $ddl);
	is($waiter->query('EXECUTE q'), $watch->query("SET gpujoin.enabled = off; $count"), "after $ddl");
	like($waiter->query('EXPLAIN (ANALYZE, COSTS OFF) EXECUTE q'), qr/GpuJoin(?!.*Fallback)/s, 'by GpuJoin');
}
$waiter->query('BEGIN; DECLARE c CURSOR FOR SELECT t.id FROM t JOIN a USING (k)');
like($waiter->query('FETCH 1 FROM c'), qr/^\d+$/, 'a cursor is open');
$changer->query("SET lock_timeout = '100ms'; TRUNCATE a");
like($changer->errors, qr/lock timeout/, 'its tables stay');
is($waiter->query('MOVE ALL FROM c; COMMIT'), '', 'to its end');
is($waiter->errors, '', 'no error of the waiting session');

$_->end foreach $changer, $waiter, $watch;
unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC|TRAP|WARNING:.*leak/, 'no crash and no leak in the log');
$node->stop;
done_testing();
