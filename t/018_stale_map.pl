# Bits of the visibility map that are stale, and pages that say that they are all-visible and are
# not: whatever a SeqScan makes of them, gpujoin does.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Checksums would tell of pages that are written over here.
my $node = new_node('stale_map', preload => 1, init => { allows_streaming => 1, no_data_checksums => 1 },
	conf => "wal_log_hints = off\n");
my $session = GpuJoin::session();
$node->safe_psql('postgres', q{
	CREATE TABLE s (id int, k int, v int) WITH (fillfactor = 30);
	INSERT INTO s SELECT i, i % 60, i FROM generate_series(1, 10000) i;
	VACUUM ANALYZE s;
	CHECKPOINT;
});
my $path = $node->safe_psql('postgres', "SELECT pg_relation_filepath('s')");

sub bytes_of
{
	my ($file) = @_;
	open my $in, '<:raw', $file or die "$file: $!";
	local $/;
	return scalar <$in>;
}

sub put
{
	my ($file, $bytes) = @_;
	open my $out, '>:raw', $file or die "$file: $!";
	print $out $bytes;
	close $out or die "$file: $!";
}

# Sets PD_ALL_VISIBLE in each page of a file.
sub mark_pages
{
	my ($file) = @_;
	my $bytes = bytes_of($file);
	for (my $at = 0; $at < length $bytes; $at += 8192)
	{
		substr($bytes, $at + 10, 2) = pack('S', unpack('S', substr($bytes, $at + 10, 2)) | 4);
	}
	put($file, $bytes);
}

my %queries = (
	'probe side' => 'SELECT count(*), sum(s.v) FROM s JOIN d ON s.k = d.k',
	'build side' => 'SELECT count(*), sum(f.v) FROM f JOIN s ON f.id = s.id',
	'self-join' => 'SELECT count(*), sum(a.v - b.k) FROM s a JOIN s b ON a.id = b.id',
	'rows' => 'SELECT count(*), sum(x.id) FROM (SELECT s.id, d.name FROM s JOIN d ON s.k = d.k OFFSET 0) x',
	'no join' => 'SELECT k, count(*), sum(v) FROM s GROUP BY k ORDER BY k LIMIT 5');

# Each query cold, and what is resident then: as PostgreSQL answers it.
sub agrees
{
	my ($server, $name, $count) = @_;
	is($server->safe_psql('postgres', "SET gpujoin.enabled = off; SELECT count(*) FROM s"), $count, "$name: $count rows");
	foreach my $query (sort keys %queries)
	{
		my $natively = $server->safe_psql('postgres', "SET gpujoin.enabled = off; $queries{$query}");
		$server->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
		is($server->safe_psql('postgres', "$session $queries{$query}"), $natively, "$name: $query, cold");
		is($server->safe_psql('postgres', "$session $queries{$query}"), $natively, "$name: $query, resident") for 1 .. 2;
		is(how($server, $queries{$query}), 'GpuJoin', "$name: $query is on the device");
	}
	$server->safe_psql('postgres', "SELECT gpujoin_cache_evict(); SELECT gpujoin_prewarm('s')");
	is($server->safe_psql('postgres', "$session $queries{'self-join'}"),
		$server->safe_psql('postgres', "SET gpujoin.enabled = off; $queries{'self-join'}"), "$name: prewarmed");
}

agrees($node, 'intact', 10000);
my $map = bytes_of($node->data_dir . "/${path}_vm");
# some pages lose rows, others do not
$node->safe_psql('postgres', 'DELETE FROM s WHERE id BETWEEN 4001 AND 5000; CHECKPOINT');
$node->backup('backup');

# A server whose map is from before the rows were deleted; marked: its pages, too, say that they are all-visible.
sub standby
{
	my ($name, $marked) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($node, 'backup', has_streaming => 1);
	put($standby->data_dir . "/${path}_vm", $map);
	mark_pages($standby->data_dir . "/$path") if $marked;
	$standby->start;
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	return $standby;
}

my $standby = standby('stale_standby', 0);
agrees($standby, 'stale map, standby', 9000);
$standby->promote;
agrees($standby, 'stale map, promoted', 9000);
$standby->safe_psql('postgres', 'VACUUM s');
agrees($standby, 'stale map, vacuumed', 9000);
$standby->stop;

# a standby asks of each tuple, a primary believes the page
$standby = standby('marked_standby', 1);
agrees($standby, 'marked pages, standby', 9000);
$standby->promote;
agrees($standby, 'marked pages, promoted', 10000);
$standby->stop;

$node->stop;
put($node->data_dir . "/${path}_vm", $map);
$node->start;
agrees($node, 'stale map', 9000);
$node->safe_psql('postgres', 'DELETE FROM s WHERE id BETWEEN 8001 AND 8500; UPDATE s SET v = v + 1 WHERE id % 10 = 0');
agrees($node, 'stale map, then changes', 8500);
$node->safe_psql('postgres', 'VACUUM s');
agrees($node, 'stale map, then a vacuum', 8500);
$node->stop;
done_testing();
