# What is dropped, truncated, rewritten or moved does not stay resident; and what cannot become resident
# is told of.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('kept', preload => 1);
my $load = "LOAD 'gpujoin'; SET gpujoin.device = '" . device() . "'; SET client_min_messages = warning;";
my $tablespace = PostgreSQL::Test::Utils::tempdir();
ok(on_device($node), 'there is a device');

# Bytes that are resident of all files but those of f and d; of which database.
sub bytes
{
	return $node->safe_psql('postgres',
		"SELECT coalesce(sum(bytes), 0) FROM gpujoin_cache WHERE relation IS DISTINCT FROM 'f'::regclass AND relation IS DISTINCT FROM 'd'::regclass");
}

# Makes a table resident, with a hash table over it.
sub keep
{
	my ($database) = @_;
	$node->safe_psql($database, "$load CREATE TABLE t AS SELECT i AS k, i AS v FROM generate_series(1, 50000) i");
	$node->safe_psql($database, 'VACUUM ANALYZE t');
	$node->safe_psql($database, "$load SELECT gpujoin_prewarm('t')");
	$node->safe_psql($database, GpuJoin::session() . 'SELECT count(*) FROM f JOIN t ON f.id = t.k; SELECT count(*) FROM f JOIN t ON f.id = t.k') if $database eq 'postgres';
	# two columns, packed or not
	cmp_ok(bytes(), '>', 150000, "resident in $database");
}

$node->safe_psql('postgres', "CREATE DATABASE other");
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
$node->safe_psql('other', 'CREATE EXTENSION gpujoin');
my %goes = (
	'DROP TABLE' => 'DROP TABLE t',
	'TRUNCATE' => 'TRUNCATE t',
	'VACUUM FULL' => 'VACUUM FULL t',
	'SET TABLESPACE' => 'ALTER TABLE t SET TABLESPACE elsewhere',
	'a new type' => 'ALTER TABLE t ALTER k TYPE bigint');
foreach my $name (sort keys %goes)
{
	keep('postgres');
	$node->safe_psql('postgres', $goes{$name});
	ok(wait_until(10, sub { bytes() == 0 }), "$name: it goes");
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS t');
}

# in a tablespace
$node->safe_psql('postgres', "SET default_tablespace = elsewhere; CREATE TABLE t AS SELECT i AS k FROM generate_series(1, 50000) i");
$node->safe_psql('postgres', 'VACUUM ANALYZE t');
$node->safe_psql('postgres', "$load SELECT gpujoin_prewarm('t')");
my $before = bytes();
cmp_ok($before, '>', 75000, 'resident in a tablespace');
sleep 3;
is(bytes(), $before, 'and stays');
$node->safe_psql('postgres', 'DROP TABLE t');
ok(wait_until(10, sub { bytes() == 0 }), 'dropped in a tablespace: it goes');

# what is rolled back stays
keep('postgres');
$before = bytes();
$node->safe_psql('postgres', "BEGIN; TRUNCATE t; ROLLBACK; BEGIN; DROP TABLE t; SELECT pg_sleep(2.5); ROLLBACK");
is(bytes(), $before, 'rolled back: it stays');
is($node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_cache WHERE relation = 'f'::regclass AND pages > 0"), '1', 'and so does the other table');
$node->safe_psql('postgres', 'DROP TABLE t');

keep('other');
$node->safe_psql('postgres', 'DROP DATABASE other');
ok(wait_until(10, sub { bytes() == 0 }), 'DROP DATABASE: it goes');
like(slurp_file($node->logfile), qr/gave up \d+ kB that were resident of \d+ files? that are no more/, 'the log says so');
is(how($node, $sums), 'GpuJoin', 'other data is used');

# ---- what cannot become resident
my ($out, $err);
$node->safe_psql('postgres', 'CREATE TABLE fresh AS SELECT i AS k FROM generate_series(1, 50000) i');
my $prewarm = "LOAD 'gpujoin'; SET gpujoin.device = '" . device() . "'; SELECT gpujoin_prewarm('%s')";
$node->psql('postgres', sprintf($prewarm, 'fresh'), stdout => \$out, stderr => \$err);
is($out, '0', 'nothing of a table before VACUUM');
like($err, qr/NOTICE:  only 0 of 222 pages are all-visible, and no others can stay resident\nHINT:  Run VACUUM/, 'which is told');
$node->safe_psql('postgres', 'VACUUM fresh; UPDATE fresh SET k = 0 WHERE k < 100');
$node->psql('postgres', sprintf($prewarm, 'fresh'), stdout => \$out, stderr => \$err);
cmp_ok($out, '>=', 219, 'most of one with few changes');
is($err, '', 'without a notice');

# ---- whose rows are elsewhere
$node->safe_psql('postgres', q{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw;
	CREATE TABLE parts (k int, v int) PARTITION BY RANGE (k);
	CREATE FOREIGN TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (10) SERVER s;
	CREATE TABLE "Shell" (k int);
	SET allow_system_table_mods = on;
	CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
	INSERT INTO pg_catalog.pg_dist_partition VALUES ('"Shell"');
});
foreach my $function ('gpujoin_prewarm', 'gpujoin_cache_evict')
{
	my $call = "LOAD 'gpujoin'; SET gpujoin.device = '" . device() . "'; SELECT $function('%s')";
	$node->psql('postgres', sprintf($call, '"Shell"'), stdout => \$out, stderr => \$err);
	is($out, '0', "$function: nothing of a distributed table");
	like($err, qr/NOTICE:  "Shell" is a distributed table, whose rows are in shards\nHINT:  Run SELECT run_command_on_placements\('public\."Shell"', 'SELECT $function\(''%s''\)'\)\./, 'which is told');
	$node->psql('postgres', sprintf($call, 'parts'), stdout => \$out, stderr => \$err);
	is($out, '0', "$function: nothing of a foreign table");
	like($err, qr/NOTICE:  1 foreign table is left out\nHINT:  Call $function\(\) on the servers/, 'which is told');
	$node->psql('postgres', sprintf($call, 'f'), stdout => \$out, stderr => \$err);
	is($err, '', "$function: no notice of another table");
}
$node->psql('postgres', 'SELECT gpujoin_enable(); SELECT gpujoin_disable()', stderr => \$err);
unlike($err, qr/node/, 'gpujoin_enable: no notice without other nodes');
$node->safe_psql('postgres', 'SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_node (nodeid int)');
$node->psql('postgres', 'SELECT gpujoin_enable()', stderr => \$err);
like($err, qr/NOTICE:  only this node's database is set\nHINT:  For all nodes run SELECT run_command_on_all_nodes\('SELECT gpujoin_enable\(\)'\)\./, 'with other nodes: it says so');
$node->stop;
done_testing();
