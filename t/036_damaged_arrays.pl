# Arrays whose TOAST table is damaged: set functions on the device raise what PostgreSQL raises, and
# the session goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('damaged_arrays', preload => 1);
my @tables = qw(plain pglz lz4);
my $has_lz4 = $node->safe_psql('postgres', "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'") eq 't';
pop @tables unless $has_lz4;

# tables of a row with two arrays of 2.4 MB, and where the TOAST table of each is
my %file;
for my $table (@tables)
{
	my $how = $table eq 'plain' ? 'STORAGE EXTERNAL' : "COMPRESSION $table";
	$node->safe_psql('postgres', "CREATE TABLE $table (a bigint[], b bigint[]);
		ALTER TABLE $table ALTER a SET $how, ALTER b SET $how;
		INSERT INTO $table SELECT array_agg(i * 20 + i % 7), array_agg(i * 20 + i % 5) FROM generate_series(1, 300000::bigint) i");
	$file{$table} = $node->safe_psql('postgres', "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = '$table'");
}

# Overwrites bytes of a page in the middle of the second array.
sub damage
{
	my ($at, $bytes) = @_;
	$node->stop;
	for my $table (@tables)
	{
		my $path = $node->data_dir . "/$file{$table}";
		my $page = int((-s $path) / 8192 * 3 / 4);
		open my $out, '+<', $path or die "$path: $!";
		binmode $out;
		seek $out, $page * 8192 + $at, 0;
		print $out $bytes;
		close $out or die "$path: $!";
	}
	$node->start;
}

# What a function of both arrays returns or raises, with these settings.
sub outcome
{
	my ($table, $settings) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "$settings; SELECT gpu_intersect_count(a, b) FROM $table; SELECT 'on'");
	return $rc == 0 ? $out : $err =~ s/^.*?ERROR: *(.*?)\n.*/$1/sr;
}

my ($device, $process) = map { "SET gpujoin.set_device_min_elements = $_" } 0, 2147483647;
is(outcome($_, $device), outcome($_, $process), "$_: whole") for @tables;

# the last bytes of a page belong to its first chunk; LZ4 may unpack them to something
damage(8192 - 500, "\xff" x 300);
for my $table (@tables)
{
	my $found = outcome($table, $process);
	is(outcome($table, $device), $found, "$table, damaged: $found");
	like($found, qr/compressed \w+ data is corrupt|invalid page/, "$table: an error") if $table eq 'pglz';
}
# a line pointer that is unused
damage(24, "\0" x 4);
for my $table (@tables)
{
	my $found = outcome($table, $process);
	is(outcome($table, $device), $found, "$table, a chunk is missing: $found");
	like($found, qr/unexpected chunk|missing chunk|compressed \w+ data is corrupt|invalid page/, "$table: an error");
}
is($node->safe_psql('postgres', "$device; SELECT gpu_intersect_count(array_agg(i), array_agg(i)) FROM generate_series(1, 1000) i"), '1000', 'the server goes on');

done_testing();
