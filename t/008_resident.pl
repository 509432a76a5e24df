# Resident data beside other sessions: each interleaving that could show a reader what it must not see.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Without hints in the WAL a page keeps its LSN when its bit is set; the test library would have them.
my $node = new_node('resident', preload => 1, init => { allows_streaming => 1 }, conf => "wal_log_hints = off\n");
my $session = GpuJoin::session();
$node->safe_psql('postgres', q{
	CREATE TABLE r (id int, k int, v int);
	INSERT INTO r SELECT i, i % 60, 1 FROM generate_series(1, 30000) i;
	VACUUM ANALYZE r;
});
my $query = 'SELECT count(*), sum(r.v) FROM r JOIN d ON r.k = d.k';

package Session;
use Test::More;
our @ISA = ('GpuJoin::Session');
# native and device in the same transaction
sub both { my ($self) = @_; return ($self->query("SET gpujoin.enabled = off; $query; SET gpujoin.enabled = on"), $self->query($query)); }
sub agrees { my ($self, $name) = @_; my ($native, $device) = $self->both; is($device, $native, $name); return $device; }
package main;

# Pages of r that a query did not have to read.
sub resident { my ($server) = @_; my $plan = $server->safe_psql('postgres', "$session EXPLAIN (ANALYZE, COSTS OFF) $query"); return $plan =~ /heap pages of r.*\n.*resident=(\d+)/ ? $1 : 0; }
sub refresh { $node->safe_psql('postgres', "VACUUM r; $session $query; $query;"); }

my $npages = $node->safe_psql('postgres', "SELECT pg_relation_size('r') / 8192");
is($node->safe_psql('postgres', "$session $query"), '30000|30000', 'loaded');
is(resident($node), $npages, 'another session finds it resident');

# ---- each kind of change, at each point of its transaction, for old and new snapshots
my %changes = (
	insert => 'INSERT INTO r SELECT i, i % 60, 1000 FROM generate_series(1, 300) i',
	update => 'UPDATE r SET v = v + 7 WHERE id % 1000 = 3',
	delete => 'DELETE FROM r WHERE id % 500 = 7',
	'update of a key' => 'UPDATE r SET k = (k + 1) % 60 WHERE id % 700 = 1',
	'row lock' => 'SELECT count(*) FROM (SELECT FROM r WHERE id < 400 FOR UPDATE) x',
	'two updates' => 'UPDATE r SET v = v + 1 WHERE id < 100; UPDATE r SET v = v + 1 WHERE id < 100',
	'subtransaction' => 'SAVEPOINT a; UPDATE r SET v = 0 WHERE id < 200; ROLLBACK TO a; DELETE FROM r WHERE id = 5');
my ($old, $reader, $writer) = map { Session->new($node) } 1 .. 3;
foreach my $name (sort keys %changes)
{
	foreach my $end ('ROLLBACK', 'COMMIT')
	{
		refresh();
		cmp_ok(resident($node), '>', 0, "$name: resident");
		$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $before = $old->agrees("$name: before");
		$writer->query("BEGIN; $changes{$name}");
		$writer->agrees("$name: the writer sees its own");
		is(($reader->both)[1], $before, "$name: others do not, yet");
		is(($old->both)[1], $before, "$name: nor does an older snapshot");
		$writer->query($end);
		my $after = $reader->agrees("$name: after $end");
		is(($old->both)[1], $before, "$name: the older snapshot is as it was");
		# the horizon is held: nothing of this becomes all-visible; then everything
		$node->safe_psql('postgres', 'VACUUM r');
		is(($reader->both)[1], $after, "$name: vacuumed under an older snapshot");
		is(($old->both)[1], $before, "$name: which sees the old");
		$old->query('COMMIT');
		$node->safe_psql('postgres', 'VACUUM (FREEZE) r');
		$reader->agrees("$name: vacuumed and frozen");
		is(($reader->both)[1], $after, "$name: and again");
	}
}

# ---- changed, and all-visible again, before anybody looks
foreach my $name (sort keys %changes)
{
	foreach my $vacuum ('VACUUM', 'VACUUM (FREEZE)')
	{
		refresh();
		$writer->query("BEGIN; $changes{$name}; COMMIT");
		$node->safe_psql('postgres', "$vacuum r");
		$reader->agrees("$name, then $vacuum") for 1 .. 2;
	}
}

# ---- kept data that was loaded beside an open change; a vacuum after an insert leaves the page's LSN alone
foreach my $end ('COMMIT', 'ROLLBACK')
{
	refresh();
	$node->safe_psql('postgres', 'INSERT INTO r SELECT i, i % 60, 5 FROM generate_series(1, 10) i');
	$writer->query('BEGIN; INSERT INTO r SELECT i, i % 60, 50 FROM generate_series(1, 30) i');
	$node->safe_psql('postgres', "SELECT gpujoin_cache_evict('r')");
	$reader->agrees('loaded while rows are inserted');
	$writer->query($end);
	$node->safe_psql('postgres', 'VACUUM r');
	$reader->agrees("after their $end and a vacuum") for 1 .. 2;
}
refresh();
$writer->query('BEGIN; UPDATE r SET v = -1 WHERE id < 20');
$node->safe_psql('postgres', "SELECT gpujoin_cache_evict('r')");
$reader->agrees('loaded while a change is open');
cmp_ok(resident($node), '>', 0, 'what is all-visible was kept');
$writer->query('COMMIT');
$reader->agrees('and after it is committed');
$node->safe_psql('postgres', 'VACUUM r');
$reader->agrees('and after the vacuum') for 1 .. 2;

# ---- DDL that takes the table away waits for readers; afterwards the new file counts
foreach my $ddl ('TRUNCATE r', 'ALTER TABLE r ALTER v TYPE bigint', 'VACUUM FULL r', 'ALTER TABLE r ALTER v TYPE int', 'ALTER TABLE r SET UNLOGGED', 'ALTER TABLE r SET LOGGED',
	"TRUNCATE r; COPY r FROM PROGRAM 'seq 1 2000 | awk ''{ print \$1 \"\\t\" \$1 % 60 \"\\t\" 3 }''' WITH (FREEZE)")
{
	$node->safe_psql('postgres', "BEGIN; TRUNCATE r; INSERT INTO r SELECT i, i % 60, 1 FROM generate_series(1, 20000) i; COMMIT");
	refresh();
	foreach my $end ('ROLLBACK', 'COMMIT')
	{
		next if $ddl =~ /VACUUM/ && $end eq 'ROLLBACK';
		$writer->query($ddl =~ /VACUUM/ ? $ddl : "BEGIN; $ddl");
		$writer->agrees("$ddl: in its transaction") for 1 .. 2;
		$writer->query($end) unless $ddl =~ /VACUUM/;
		$reader->agrees("$ddl: $end");
		$node->safe_psql('postgres', 'VACUUM r');
		$reader->agrees("$ddl: $end, vacuumed") for 1 .. 2;
	}
}

# ---- attributes: the same number in the same file, another value
$node->safe_psql('postgres', "TRUNCATE r; INSERT INTO r SELECT i, i % 60, 1 FROM generate_series(1, 20000) i");
refresh();
my $added = 'SELECT count(*), sum(r.x) FROM r JOIN d ON r.k = d.k';
is($writer->query("BEGIN; ALTER TABLE r ADD COLUMN x int DEFAULT 1; $added; $added; ROLLBACK"), "20000|20000\n20000|20000", 'a default that is rolled back');
is($writer->query("ALTER TABLE r ADD COLUMN x int DEFAULT 2; $added; $added"), "20000|40000\n20000|40000", 'is not the default of later');
is($writer->query("ALTER TABLE r DROP COLUMN x; ALTER TABLE r ADD COLUMN x int; $added"), '20000|', 'nor is none');
$writer->query('ALTER TABLE r DROP COLUMN x');

# ---- a map that is thrown away, and vacuums that look at every page
$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS pg_visibility');
refresh();
$node->safe_psql('postgres', "SELECT pg_truncate_visibility_map('r')");
$reader->agrees('without a visibility map');
is(resident($node), 0, 'nothing counts as resident');
$node->safe_psql('postgres', 'UPDATE r SET v = 5 WHERE id % 100 = 0');
$node->safe_psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) r');
$reader->agrees('with a new one') for 1 .. 2;

# ---- file numbers that are used again, by a database with the same number and files
SKIP:
{
	skip 'database numbers cannot be chosen', 1 if $node->pg_version < 15;
	$node->safe_psql('postgres', 'CREATE DATABASE model');
	$node->safe_psql('model', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin; CREATE TABLE d AS SELECT i AS k, i AS c FROM generate_series(0, 59) i; CREATE TABLE r AS SELECT i AS id, i % 60 AS k, 2 AS v FROM generate_series(1, 20000) i');
	$node->safe_psql('model', 'VACUUM r');
	foreach my $strategy ('file_copy', 'wal_log')
	{
		foreach my $change ('UPDATE r SET v = 3 WHERE id % 50 = 0', 'DELETE FROM r WHERE id < 5000', 'INSERT INTO r SELECT i, 1, 1 FROM generate_series(1, 1000) i')
		{
			$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE model OID = 400000 STRATEGY = $strategy");
			my $native = $node->safe_psql('copy', "SET gpujoin.enabled = off; $query");
			is($node->safe_psql('copy', "$session $query; $query"), "$native\n$native", "$strategy: as the model");
			$node->safe_psql('copy', $change);
			$node->safe_psql('copy', 'VACUUM r') if $change !~ /INSERT/;
			$native = $node->safe_psql('copy', "SET gpujoin.enabled = off; $query");
			is($node->safe_psql('copy', "$session $query; $query"), "$native\n$native", "$strategy: after $change");
			$node->safe_psql('postgres', 'DROP DATABASE copy');
		}
	}
}

# ---- eviction while in use, and a gpujoind that starts again
refresh();
$reader->query("BEGIN; DECLARE c CURSOR FOR SELECT r.id, d.name FROM r JOIN d ON r.k = d.k; FETCH 1 FROM c");
cmp_ok($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()'), '>', 0, 'evicted under an open cursor');
is($reader->query('MOVE ALL FROM c; COMMIT'), '', 'which goes on');
like($reader->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH ALL FROM c; COMMIT"), qr/^20000\|/, 'and later ones too');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpujoin_cache WHERE pages > 0') > 0, 1, 'loaded again');
kill 'KILL', daemon_pids($node);
ok(wait_until(20, sub { how($node, $query) eq 'GpuJoin' }), 'gpujoind was killed and is back');
ok(wait_until(20, sub { $reader->agrees('after the restart'); resident($node) > 0 }), 'and keeps data again');
$node->stop('immediate');
$node->start;

# ---- pages that a file was extended by, and that nobody has used yet: a parallel load leaves some
$node->safe_psql('postgres', 'CREATE TABLE e AS SELECT i AS id, i % 60 AS k, i AS v FROM generate_series(1, 30000) i; VACUUM ANALYZE e');
my $extended = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('e')});
$node->stop;
append_to_file($extended, "\0" x (7 * 8192));
$node->start;
my $of_e = 'SELECT count(*), sum(e.v), sum(d.k) FROM e JOIN d ON e.k = d.k';
my $as_inner = 'SELECT count(*), sum(e.v), sum(r.id) FROM r JOIN e ON r.id = e.id WHERE r.k < 50';
sub pages_of_e { my $plan = $node->safe_psql('postgres', "$session EXPLAIN (ANALYZE, COSTS OFF) $_[0]"); return $plan =~ /heap pages of e.*\n.*Pages: read=(\d+) all-visible=\d+(?: resident=(\d+))?/ ? [$1, $2 // 0] : 'no plan'; }
sub right { my ($query, $name) = @_; is($node->safe_psql('postgres', "$session $query"), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $query"), $name); }
my $size = $node->safe_psql('postgres', q{SELECT pg_relation_size('e') / 8192});
foreach my $query ($of_e, $as_inner)
{
	right($query, 'a file with unused pages') for 1 .. 2;
	is_deeply(pages_of_e($query), [0, $size], 'which nobody reads');
	is(how($node, $query, "SET gpujoin.fail_at = 'answer';"), 'GpuJoin', 'and nobody waits for an answer about');
}
# ---- used without an answer by one session, while another one changes the table
$node->safe_psql('postgres', 'CREATE TABLE n AS SELECT i AS id, i % 60 AS k, i AS v FROM generate_series(1, 30000) i; VACUUM ANALYZE n');
foreach my $of_n ('SELECT count(*), sum(n.v), sum(d.k) FROM n JOIN d ON n.k = d.k', 'SELECT n.k, count(*), sum(n.v) FROM n JOIN d ON n.k = d.k GROUP BY n.k ORDER BY 1')
{
	my $native = sub { $node->safe_psql('postgres', "SET gpujoin.enabled = off; $of_n") };
	my $session = Session->new($node);
	$session->query($of_n) for 1 .. 2;
	foreach my $change ('UPDATE n SET v = v + 1 WHERE id = 7', 'DELETE FROM n WHERE id % 1000 = 11', 'TRUNCATE n; INSERT INTO n SELECT i, i % 60, i + 5 FROM generate_series(1, 29000) i', 'ALTER TABLE n ALTER v TYPE bigint USING v * 2', 'UPDATE n SET k = 7 WHERE id = 3; VACUUM n')
	{
		is($session->query($of_n), $native->(), 'unchanged: right rows') for 1 .. 3;
		$node->safe_psql('postgres', $change);
		is($session->query($of_n), $native->(), "then $change") for 1 .. 2;
		$node->safe_psql('postgres', 'VACUUM n');
	}
	$node->safe_psql('postgres', 'ALTER TABLE n ALTER v TYPE int; VACUUM ANALYZE n');
	$session->end;
}

# so that they are told of as free
$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) e');
my $older = Session->new($node);
$older->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before_use = $older->query($of_e);
$node->safe_psql('postgres', 'INSERT INTO e SELECT 1, 1, 1000000 FROM generate_series(1, 300)');
cmp_ok($node->safe_psql('postgres', q{SELECT max((ctid::text::point)[0]) FROM e}), '>', $size - 8, 'one of them is used');
right($_, 'then its rows are found') foreach $of_e, $as_inner;
like(how($node, $of_e, "SET gpujoin.fail_at = 'answer';"), qr/^fell back/, 'by who asks for them');
cmp_ok(pages_of_e($of_e)->[0], '>=', 8, 'and all of them are read');
is($older->query($of_e), $before_use, 'an older snapshot does not see them');
$older->end;
# all-visible now, but not when the others were read
$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) e');
foreach my $query ($of_e, $as_inner) { right($query, 'vacuumed, and not loaded anew') for 1 .. 3; }
$node->safe_psql('postgres', 'DELETE FROM e WHERE id < 10; VACUUM (TRUNCATE off) e');
foreach my $query ($as_inner, $of_e) { right($query, 'some are empty again') for 1 .. 3; }
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
right($_, 'vacuumed') foreach $of_e, $as_inner, $of_e;
is_deeply(pages_of_e($of_e), [0, $size], 'loaded anew: no page is read again');
$node->safe_psql('postgres', 'DROP TABLE e');
($old, $reader, $writer) = map { Session->new($node) } 1 .. 3;
$reader->agrees('after a crash of the server') for 1 .. 2;

# ---- the limit
$node->append_conf('postgresql.conf', "gpujoin.cache_size = 0\n");
$node->reload;
ok(wait_until(10, sub { resident($node) == 0 }), 'cache_size 0 keeps nothing');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpujoin_cache'), '0', 'and gives up what there was');
$node->append_conf('postgresql.conf', "gpujoin.cache_size = 1\n");
$node->reload;
$node->safe_psql('postgres', 'CREATE TABLE big AS SELECT i AS id, i % 60 AS k, i AS v FROM generate_series(1, 300000) i; VACUUM ANALYZE big');
my $big = 'SELECT count(*), sum(b.v) FROM big b JOIN d USING (k)';
my $answer = $node->safe_psql('postgres', "SET gpujoin.enabled = off; $big");
is($node->safe_psql('postgres', "$session $big; $big"), "$answer\n$answer", 'a table larger than the limit');
cmp_ok($node->safe_psql('postgres', 'SELECT coalesce(sum(bytes), 0) FROM gpujoin_cache'), '<=', 1024 * 1024, 'no more than the limit is kept');
$node->append_conf('postgresql.conf', "gpujoin.cache_size = -1\n");
$node->reload;
cmp_ok(idle_ms($node), '>=', 0, 'nothing is left in use');

# ---- a hot standby
refresh();
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('resident_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = off\n");
$standby->start;
sub caught_up { $node->wait_for_catchup($standby, 'replay', $node->lsn('insert')); }
caught_up();
my $there = Session->new($standby);
$there->agrees('on a standby') for 1 .. 2;
ok(wait_until(20, sub { $there->agrees('standby'); resident($standby) > 0 }), 'resident there');
foreach my $name (sort keys %changes)
{
	$there->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $before = $there->agrees("standby, $name: before");
	$node->safe_psql('postgres', "BEGIN; $changes{$name}; COMMIT");
	caught_up();
	is(($there->both)[1], $before, "standby, $name: the snapshot is kept");
	$there->query('COMMIT');
	$there->agrees("standby, $name: after");
	$node->safe_psql('postgres', 'VACUUM r');
	caught_up();
	$there->agrees("standby, $name: vacuumed") for 1 .. 2;
}
$there->end;
$standby->promote;
$standby->safe_psql('postgres', 'UPDATE r SET v = 11 WHERE id % 300 = 0');
$there = Session->new($standby);
$there->agrees('promoted');
$standby->safe_psql('postgres', 'VACUUM r');
$there->agrees('promoted and vacuumed') for 1 .. 2;
$_->end foreach $there, $old, $reader, $writer;
$standby->stop;
$node->stop;
done_testing();
