# A way out: gpujoin's files are gone, and databases or the server still name the library.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $script = "$FindBin::RealBin/../scripts/still_loaded";
my $gone = qr/FATAL:  could not access file "gpujoin": No such file or directory/;
# the same programs without gpujoin
my $bare = wrapped_programs('');
unlink glob("$bare/lib/gpujoin*") or die;
unlink glob(own_extensions($bare) . '/gpujoin*') or die;

my $node = new_node('node', init => { allows_streaming => 1 }, new => { install_path => wrapped_programs('exec "$daemon" "$@"') });
$node->safe_psql('postgres', 'CREATE DATABASE shop; CREATE DATABASE "it\'s"; CREATE ROLE mortal LOGIN');
$node->safe_psql('shop', 'SET client_min_messages = warning; CREATE EXTENSION gpujoin; CREATE TABLE t AS SELECT 1 AS a');

sub still_loaded
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port);
	my ($out, $err);
	IPC::Run::run([ $script, 'psql' ], '>', \$out, '2>', \$err);
	return $out . $err;
}
sub lines { my ($out) = @_; return join "\n", sort grep { /^  / } split /\n/, $out; }

# ---- who still loads it

my ($rc, $out, $err);
$out = still_loaded();
is(lines($out), "  extension in database postgres: DROP EXTENSION gpujoin;\n  extension in database shop: DROP EXTENSION gpujoin;", 'where the extension is');
$node->safe_psql('shop', 'SELECT gpujoin_enable()');
$node->safe_psql('postgres', q{ALTER DATABASE "it's" SET session_preload_libraries = auto_explain, '$libdir/gpujoin'; ALTER ROLE mortal IN DATABASE shop SET session_preload_libraries = gpujoin;
	ALTER DATABASE template1 SET session_preload_libraries = auto_explain});
$out = still_loaded();
is(lines($out), join("\n",
	"  database it's: ALTER DATABASE \"it's\" SET session_preload_libraries = 'auto_explain';",
	'  database shop: ALTER DATABASE shop RESET session_preload_libraries;',
	'  extension in database postgres: DROP EXTENSION gpujoin;', '  extension in database shop: DROP EXTENSION gpujoin;',
	'  role mortal in database shop: ALTER ROLE mortal IN DATABASE shop RESET session_preload_libraries;'), 'who names the library, with the commands');
# the commands do it
my ($command) = $out =~ /: (ALTER DATABASE "it's".*)$/m;
$node->safe_psql('postgres', $command);
is($node->safe_psql("it's", 'SHOW session_preload_libraries'), 'auto_explain', 'a command leaves other libraries');
{
	local %ENV = (%ENV, PGHOST => '/nonexistent');
	IPC::Run::run([ $script, 'psql' ], '>', \$out, '2>', \$err);
	is($? >> 8, 2, 'no server');
	like($out, qr/SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting/, 'then it says what to ask');
}

# ---- the files go

my $dump;
IPC::Run::run([ 'pg_dumpall', '--no-sync', '-h', $node->host, '-p', $node->port ], '>', \$dump) or die;
my $backup = 'before';
$node->safe_psql('postgres', 'ALTER ROLE mortal IN DATABASE shop RESET session_preload_libraries');
$node->restart;
$node->backup($backup);
$node->stop;
$node->{_install_path} = $bare;
$node->start;
like(refusal($node, 'shop'), $gone, 'a database that names the library is closed');
is($node->safe_psql('postgres', 'SELECT 1'), 1, 'others are not');
($rc, $out, $err) = $node->psql('postgres', 'SELECT * FROM gpujoin_devices');
like($err, qr/ERROR:  could not access file/, 'functions say that they are gone');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	is($node->safe_psql('shop', 'SELECT a FROM t'), 1, 'a superuser enters without the library');
	like(refusal($node, 'shop', '-U', 'mortal'), qr/permission denied to set parameter "session_preload_libraries"/, 'nobody else does');
	like(still_loaded(), qr/ALTER DATABASE shop RESET/, 'scripts/still_loaded works then, too');
}
$node->safe_psql('postgres', 'ALTER DATABASE shop RESET session_preload_libraries');
is($node->safe_psql('shop', 'SELECT a FROM t'), 1, 'after ALTER DATABASE, from another database, all do');
is($node->safe_psql('shop', 'DROP EXTENSION gpujoin; SELECT count(*) FROM pg_extension WHERE extname = \'gpujoin\''), 0, 'DROP EXTENSION needs no files');

# all databases
$node->safe_psql('postgres', "ALTER DATABASE $_ SET session_preload_libraries = gpujoin") foreach qw(shop template1 postgres);
like(refusal($node, 'postgres'), $gone, 'all databases are closed');
$node->stop;
my $in = "ALTER DATABASE postgres RESET session_preload_libraries;\nALTER DATABASE shop RESET session_preload_libraries;\nALTER DATABASE template1 RESET session_preload_libraries;\n";
IPC::Run::run([ "$bare/bin/postgres", '--single', '-D', $node->data_dir, 'postgres' ], '<', \$in, '>', \$out, '2>', \$err);
is($? >> 8, 0, 'single-user mode opens them');
$node->start;
is($node->safe_psql('shop', 'SELECT a FROM t'), 1, 'all are open');

# the whole server
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin'");
$node->stop;
is($node->start(fail_ok => 1), 0, 'a server that names the library does not start');
like(slurp_file($node->logfile), $gone, 'and says why');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
is($node->safe_psql('shop', 'SELECT a FROM t'), 1, 'without its line it does');
$node->stop;

# ---- a standby without the files

my $standby = PostgreSQL::Test::Cluster->new('standby', install_path => $bare);
$standby->init_from_backup($node, $backup);
$standby->append_conf('postgresql.conf', "hot_standby = on");
$standby->set_standby_mode;
$standby->start;
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', 'a standby without the files runs');
like(refusal($standby, 'shop'), $gone, 'a database that gpujoin_enable() has changed is closed there');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	is($standby->safe_psql('shop', 'SELECT a FROM t'), 1, 'but for superusers');
}
$standby->stop;

# ---- a dump is restored where the files are not

my $restored = PostgreSQL::Test::Cluster->new('restored', install_path => $bare);
$restored->init;
$restored->start;
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	IPC::Run::run([ 'psql', '-Xq', '-d', 'postgres', '-h', $restored->host, '-p', $restored->port ], '<', \$dump, '>', \$out, '2>', \$err);
}
ok(!(grep { !/extension "gpujoin"|extension gpujoin|already exists|^DETAIL|^HINT/ } split /\n/, $err), 'a dump is restored without the files, but for the extension') or diag($err);
like($err, qr/ERROR:  extension "gpujoin" is not available/, 'which is missed');
like(refusal($restored, 'shop'), $gone, 'a database that names the library is closed');
$restored->safe_psql('postgres', 'ALTER DATABASE shop RESET session_preload_libraries; ALTER ROLE mortal IN DATABASE shop RESET session_preload_libraries');
is($restored->safe_psql('shop', 'SELECT a FROM t'), 1, 'and opened');
$restored->stop;
done_testing();
