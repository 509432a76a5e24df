# From one version of the extension to the next: ALTER EXTENSION, a dump, pg_upgrade.  Version 1.1 is made here, of 1.0.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

# the same programs with the files of both versions
my $next = wrapped_programs('exec "$daemon" "$@"');
my $folder = own_extensions($next);
my $control = slurp_file("$folder/gpujoin.control");
my ($now) = $control =~ /^default_version = '(.*)'$/m;
$control =~ s/^default_version = .*$/default_version = '1.1'/m or die;
unlink "$folder/gpujoin.control" or die;
append_to_file("$folder/gpujoin.control", $control);
append_to_file("$folder/gpujoin--1.0--1.1.sql", <<'SQL');
\echo Use "ALTER EXTENSION gpujoin UPDATE TO '1.1'" to load this file. \quit
CREATE FUNCTION gpujoin_next() RETURNS text LANGUAGE sql AS $$ SELECT 'next' $$;
DROP VIEW gpujoin_processes;
CREATE VIEW gpujoin_processes AS SELECT 'launcher' AS process;
ALTER FUNCTION gpu_intersect(int[], int[]) COST 7;
SQL
is($now, '1.0', 'a script leads on from this version');

sub version { return $_[0]->safe_psql($_[1], "SELECT extversion FROM pg_extension WHERE extname = 'gpujoin'"); }

# is_new NODE DATABASE WHEN: all of 1.1 is there, and nothing of 1.0 is lost
sub is_new
{
	my ($node, $database, $when) = @_;
	is(version($node, $database), '1.1', "$when: version");
	is($node->safe_psql($database, 'SELECT gpujoin_next()'), 'next', "$when: a new function");
	is($node->safe_psql($database, 'SELECT * FROM gpujoin_processes'), 'launcher', "$when: another view");
	is($node->safe_psql($database, "SELECT procost FROM pg_proc WHERE proname = 'gpu_intersect' AND pronargs = 2 AND proargtypes[0] = 'int[]'::regtype"), 7, "$when: another function");
	works($node, $database, $when);
}

# works NODE DATABASE WHEN: what users have made of it
sub works
{
	my ($node, $database, $when) = @_;
	my $device = device();
	is($node->safe_psql($database, 'SELECT * FROM common'), '{3,5}', "$when: a view of a user");
	is($node->safe_psql($database, "SET enable_seqscan = off; SELECT count(*) FROM sets WHERE gpu_intersect_count(a, '{1,2}') = 2"), 9, "$when: an index on a function");
	my $query = 'SELECT count(*), sum(f.v + d.v) FROM f JOIN d USING (k)';
	my $settings = "SET gpujoin.device = $device; SET gpujoin.force = on";
	ok(wait_until(15, sub { $node->safe_psql($database, "$settings; EXPLAIN (ANALYZE) $query") =~ /Custom Scan \(GpuJoin\)(?!.*Fallback:)/s }), "$when: a GpuJoin");
	is($node->safe_psql($database, "$settings; $query"), $node->safe_psql($database, "SET gpujoin.enabled = off; $query"), "$when: its answer");
}

my $node = new_node('old', conf => "gpujoin.device = " . device() . "\n");
$node->safe_psql('postgres', q{CREATE DATABASE shop; CREATE ROLE alice LOGIN; LOAD 'gpujoin'; ALTER ROLE alice SET gpujoin.max_running_queries = 3});
$node->safe_psql('shop', q{
	SET client_min_messages = warning;
	CREATE EXTENSION gpujoin;
	SELECT gpujoin_enable();
	CREATE TABLE f AS SELECT i % 100 AS k, i AS v FROM generate_series(1, 50000) i;
	CREATE TABLE d AS SELECT i AS k, i AS v FROM generate_series(0, 49) i;
	CREATE TABLE sets AS SELECT i AS id, ARRAY[i % 10, i % 10 + 1] AS a FROM generate_series(1, 90) i;
	CREATE INDEX ON sets (gpu_intersect_count(a, '{1,2}'));
	CREATE VIEW common AS SELECT gpu_intersect('{5,1,3,3}'::int[], '{3,5,9}');
	ANALYZE;
});
works($node, 'shop', 'before');
is(version($node, 'shop'), '1.0', 'version');
is($node->safe_psql('shop', "SELECT advice FROM gpujoin_check() WHERE item IN ('library', 'extension')"), "\n", 'gpujoin_check has nothing to say');

# ---- a dump of 1.0, restored where 1.1 is

my $dump;
IPC::Run::run([ 'pg_dump', '--no-sync', '-h', $node->host, '-p', $node->port, 'shop' ], '>', \$dump) or die;
my $restored = PostgreSQL::Test::Cluster->new('restored', install_path => $next);
$restored->init;
$restored->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin'\njit = off\n");
$restored->start;
$restored->safe_psql('postgres', 'CREATE DATABASE shop');
my ($rc, $out, $err) = $restored->psql('shop', $dump, on_error_stop => 1);
is($rc, 0, 'a dump is restored') or diag($err);
is_new($restored, 'shop', 'restored');
$restored->stop;

# ---- pg_upgrade, to the same PostgreSQL: what it does with extensions does not depend on that

$node->stop;
my $upgraded = PostgreSQL::Test::Cluster->new('upgraded', install_path => $next);
$upgraded->init;
$upgraded->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin'\njit = off\n");
chdir PostgreSQL::Test::Utils::tempdir() or die;
chomp(my $bindir = `pg_config --bindir`);
my @command = ("$bindir/pg_upgrade", '--no-sync', '-b', $bindir, '-B', "$next/bin", '-d', $node->data_dir, '-D', $upgraded->data_dir,
	'-s', $node->host, '-p', $node->port, '-P', $upgraded->port);
IPC::Run::run(\@command, '>&', \$out);
is($?, 0, 'pg_upgrade') or diag($out);
$upgraded->start;
is(version($upgraded, 'shop'), '1.0', 'pg_upgrade leaves the version');
is($upgraded->safe_psql('shop', "SELECT item, advice FROM gpujoin_check() WHERE item IN ('library', 'extension')"),
	"library|Files of version 1.1 are installed: restart the server.\nextension|ALTER EXTENSION gpujoin UPDATE", 'gpujoin_check says what is left to do');
works($upgraded, 'shop', 'pg_upgrade');
is($upgraded->safe_psql('postgres', q{SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'alice'::regrole}), '{gpujoin.max_running_queries=3}', 'settings of roles');
is($upgraded->safe_psql('shop', 'SHOW session_preload_libraries'), 'gpujoin', 'settings of databases');
my $script = slurp_file('update_extensions.sql');
like($script, qr/ALTER EXTENSION "gpujoin" UPDATE;/, 'pg_upgrade writes how to update it');
IPC::Run::run([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-h', $upgraded->host, '-p', $upgraded->port, '-f', 'update_extensions.sql', 'postgres' ], '>&', \$out) or die $out;
is_new($upgraded, 'shop', 'updated');
$upgraded->safe_psql('shop', 'DROP EXTENSION gpujoin CASCADE');
is($upgraded->safe_psql('shop', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'gpu%'"), 0, 'DROP EXTENSION takes what 1.1 brought, too');
chdir '/';
done_testing();
