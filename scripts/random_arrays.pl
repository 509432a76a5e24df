#!/usr/bin/perl
# Writes random pairs of integer arrays and queries of gpujoin's functions of two of them, for
# scripts/differential.pl: with gpujoin off, the same queries compute the answers in plain SQL.
#
#   scripts/random_arrays.pl [--seed N] [--queries N] >FILE
#
# Arrays of int2, int4 and int8: empty, short, and longer than any piece that they are cut into; sorted and unique or
# not; dense and sparse; nothing, some or all of one in the other.  In the session's process and on a device.
use strict;
use warnings;
use Getopt::Long;

my ($seed, $nqueries) = (1, 60);
GetOptions('seed=i' => \$seed, 'queries=i' => \$nqueries) or die "usage: $0 [--seed N] [--queries N]\n";
srand($seed);

sub pick { return $_[ int rand @_ ]; }
sub chance { return rand(100) < $_[0]; }

my %most = (int2 => 32767, int4 => 2147483647, int8 => 9e15);

# Random elements of a type: the least one, and a multiple of the step more, of so many different ones.
sub array
{
	my ($type, $size, $least, $step, $different) = @_;
	my $array = "ARRAY(SELECT ($least + floor(random() * $different + i * 0)::int8 * $step)::$type FROM generate_series(1, $size))";
	return chance(40) ? "gpu_set_normalize($array)" : $array;
}

sub make_table
{
	my ($n) = @_;
	my $type = ('int4', 'int8', 'int2')[ $n % 3 ];
	my ($few, $many) = map { pick(0, 1, 7, 63, 64, 65, 300, 4095, 5000, 20000) } 1 .. 2;
	my $different = 1 + int(($few + $many) * pick(0.1, 0.5, 1, 3, 20));
	my $least = pick(-100, 0, -30000, $type eq 'int2' ? 1000 : -2000000000);
	$different = 30000 if $type eq 'int2' && $different > 30000;
	my $step = chance(50) ? 1 : int(rand(($most{$type} - $least) / $different)) || 1;
	print "CREATE TABLE pairs$n (id int, a ${type}[], b ${type}[]);\n";
	print "INSERT INTO pairs$n SELECT i, ", array($type, $few, $least, $step, $different), ', ', array($type, $many, $least, $step, $different), " FROM generate_series(1, 3) i;\n";
	print "INSERT INTO pairs$n SELECT 4, a, a FROM pairs$n WHERE id = 1;\n";
}

my %array = (
	'gpu_intersect(a, b)' => 'ARRAY(SELECT unnest(a) INTERSECT SELECT unnest(b) ORDER BY 1)',
	'gpu_union(a, b)' => 'ARRAY(SELECT unnest(a) UNION SELECT unnest(b) ORDER BY 1)',
	'gpu_except(a, b)' => 'ARRAY(SELECT unnest(a) EXCEPT SELECT unnest(b) ORDER BY 1)',
	'gpu_except(b, a)' => 'ARRAY(SELECT unnest(b) EXCEPT SELECT unnest(a) ORDER BY 1)',
	'gpu_set_normalize(a)' => 'ARRAY(SELECT DISTINCT unnest(a) ORDER BY 1)',
	'gpu_set_normalize(b)' => 'ARRAY(SELECT DISTINCT unnest(b) ORDER BY 1)');
my %value = (
	'gpu_intersect_count(a, b)' => '(SELECT count(*) FROM (SELECT unnest(a) INTERSECT SELECT unnest(b)) x)',
	'gpu_overlaps(a, b)' => 'EXISTS (SELECT unnest(a) INTERSECT SELECT unnest(b))',
	'gpu_contains(a, b)' => 'NOT EXISTS (SELECT unnest(b) EXCEPT SELECT unnest(a))');

sub write_query
{
	my ($n) = @_;
	my $arrays = chance(70);
	my $functions = $arrays ? \%array : \%value;
	my $call = pick(sort keys %$functions);
	my $one = "CASE WHEN current_setting('gpujoin.enabled')::bool THEN $call ELSE $functions->{$call} END";
	print 'SET gpujoin.set_device_min_elements = ', pick(0, 0, 2147483647), ";\n";
	print "SET gpujoin.set_algorithm = ", pick('merge_path', 'binary_search', 'hash', 'bitmap'), ";\n" if chance(60);
	print 'SELECT id, ', ($arrays ? 'cardinality(x), md5(x::text)' : 'x'), " FROM (SELECT id, $one AS x FROM pairs$n OFFSET 0) y;\n\n";
}

my $ntables = 12;
print "-- seed $seed, $nqueries queries\nSELECT setseed(0.", sprintf('%04d', $seed % 10000), ");\nSET client_min_messages = warning;\n";
print "DROP TABLE IF EXISTS ", join(', ', map { "pairs$_" } 0 .. $ntables - 1), ";\n";
make_table($_) foreach 0 .. $ntables - 1;
print "-- queries\n";
write_query($_ % $ntables) foreach 1 .. $nqueries;
