# What docs/security.md says.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session();
# only superusers may load what is loaded anyway
(my $settings = $session) =~ s/LOAD 'gpujoin';//;
my $node = new_node('security', preload => 1, conf => "log_statement = none\nlog_min_duration_statement = -1\n");
$node->safe_psql('postgres', q{
	CREATE ROLE reader LOGIN; CREATE ROLE nobody LOGIN; CREATE ROLE owner LOGIN;
	CREATE TABLE secret AS SELECT i AS k, CASE WHEN i % 2 = 0 THEN 'reader' ELSE 'owner' END AS of, i * 7 AS v, i % 60 AS g FROM generate_series(1, 20000) i;
	ALTER TABLE secret OWNER TO owner;
	CREATE POLICY own ON secret TO reader USING (k % 2 = 0);
	CREATE POLICY every ON secret TO owner USING (true);
	ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
	ALTER TABLE secret FORCE ROW LEVEL SECURITY;
	GRANT SELECT ON secret TO reader;
	GRANT SELECT ON d, f TO PUBLIC;
	CREATE TABLE goes AS SELECT i AS k FROM generate_series(1, 20000) i;
	VACUUM ANALYZE secret, goes;
});
# Output and errors of SQL of a user.
sub of
{
	my ($user, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "$settings $sql", extra_params => [ '-U', $user ]);
	$out =~ s/\s+\z//;
	return ($out, $err);
}

# ---- who may do what
foreach my $view (qw(gpujoin_devices gpujoin_stat gpujoin_cache))
{
	is((of('nobody', "SELECT count(*) >= 0 FROM $view"))[0], 't', "$view is for everybody");
}
foreach my $call ("gpujoin_prewarm('secret')", 'gpujoin_cache_evict()', "gpujoin_cache_evict('d')", 'gpujoin_enable()', 'gpujoin_disable()')
{
	like((of('nobody', "SELECT $call"))[1], qr/permission denied/, "$call is not");
}
like((of('reader', "SELECT gpujoin_prewarm('secret') > 0"))[0], qr/^t$/, 'gpujoin_prewarm is for those who may read the table');
foreach my $set ("gpujoin.device_memory_limit = '1GB'", "gpujoin.spill_memory = '1GB'", "gpujoin.fail_at = 'crash'", "gpujoin.save_program = '/tmp/x'")
{
	like((of('nobody', "SET $set"))[1], qr/permission denied/, "$set is for superusers");
}
foreach my $name (qw(devices cache_size cpu_devices gpu_devices))
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET gpujoin.$name = DEFAULT");
	like($err, qr/cannot be changed now/, "gpujoin.$name is for the server's configuration");
}

# ---- what is resident gives no rights
my $query = 'SELECT count(*), sum(s.v), min(s.of), max(s.of) FROM secret s JOIN d ON s.g = d.k';
my $all = $node->safe_psql('postgres', 'SET gpujoin.enabled = off; SELECT count(*), sum(v), min(of), max(of) FROM secret');
my $some = $node->safe_psql('postgres', "SET gpujoin.enabled = off; SELECT count(*), sum(v), min(of), max(of) FROM secret WHERE of = 'reader'");
for (1 .. 2)
{
	like((of('owner', "EXPLAIN (ANALYZE, COSTS OFF) $query"))[0], qr/GpuJoin(?!.*Fallback)/s, 'on the device');
	is((of('owner', $query))[0], $all, 'who may see all rows does');
	is((of('reader', $query))[0], $some, 'a policy hides the others, resident or not');
	like((of('nobody', $query))[1], qr/permission denied for table secret/, 'who may not read the table cannot');
}
cmp_ok($node->safe_psql('postgres', "SELECT sum(hits) FROM gpujoin_cache WHERE relation = 'secret'::regclass"), '>', 0, 'the table was resident');
is((of('nobody', "SELECT count(*) FROM gpujoin_cache c WHERE c::text ~ 'reader|140000'"))[0], 0, 'gpujoin_cache shows no values');

# ---- what is left of a table that is gone
$node->safe_psql('postgres', "$session SELECT gpujoin_prewarm('goes')");
is($node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_cache WHERE relation = 'goes'::regclass"), 1, 'a table is resident');
$node->safe_psql('postgres', 'DROP TABLE goes');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gpujoin_cache WHERE relation IS NULL'), 'dropped: its columns give their memory back');
cmp_ok($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()'), '>', 0, 'gpujoin_cache_evict() gives all of it back');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpujoin_cache'), 0, 'nothing is left');

# ---- processes, files, the log
my ($pid) = daemon_pids($node);
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
is((stat "/proc/$pid")[4], (stat "/proc/$postmaster")[4], 'gpujoind is of the operating-system user of the server');
foreach my $file (glob $node->data_dir . '/gpujoin.*.{sock,lock}')
{
	is(sprintf('%o', (stat $file)[2] & 0777), '600', 'nobody else may use ' . ($file =~ s,.*/,,r));
}
# a query with a constant ends gpujoind, and a constant is in what fails
my $from = -s $node->logfile;
$node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE f.t <> 'confidential' AND f.id <> 123454321");
$node->safe_psql('postgres', "$session SELECT sum(f.v * 1234543) FROM f JOIN d ON f.k = d.k WHERE f.id > 0");
ok(wait_until(15, sub { substr(slurp_file($node->logfile), $from) =~ /gpujoind was terminated/ }), 'gpujoind has ended');
my $log = join "\n", grep { /gpujoind/ } split /\n/, slurp_file($node->logfile);
like($log, qr/at work: program/, 'the log says what was at work');
unlike($log, qr/confidential|12345/, 'and no constant or value');
$node->stop;
done_testing();
