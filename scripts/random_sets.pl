#!/usr/bin/perl
# Writes random tables of integer arrays and random joins that compare them as sets, for
# scripts/differential.pl.
#
#   scripts/random_sets.pl [--seed N] [--queries N] >FILE
#
# Arrays of int2, int4 and int8: short and long, sorted or not, with duplicates, empty, NULL, of several
# dimensions, with NULL elements.  Core's operators and comparisons of gpujoin's functions, with other
# conditions, in inner, outer, semi and anti joins, alone or beside equality joins; rows, aggregates, groups.  Equality of arrays.
# Membership tables, with and without duplicates and NULLs, whose joins count common elements of pairs.
use strict;
use warnings;
use Getopt::Long;

my ($seed, $nqueries) = (1, 200);
GetOptions('seed=i' => \$seed, 'queries=i' => \$nqueries) or die "usage: $0 [--seed N] [--queries N]\n";
srand($seed);

sub pick { return $_[ int rand @_ ]; }
sub chance { return rand(100) < $_[0]; }

my @tables;

sub make_table
{
	my ($n) = @_;
	my $type = ('int4', 'int4', 'int8', 'int2')[ $n % 4 ];
	my $rows = $n == 0 ? 3 : pick(40, 200, 200, 700);
	my ($universe, $size, $skew) = (pick(8, 60, 600, 20000), pick(2, 5, 12, 40), pick(1, 1, 3));
	my ($nulls, $holes) = (pick(0, 0, 10), $n >= 4 ? 15 : 0);
	my $element = "(power(random(), $skew) * $universe)::$type" . ($type eq 'int8' ? ' * 5000000000 - 7' : ' - 3::int2');
	my $array = "ARRAY(SELECT ($element)::$type FROM generate_series(1, (random() * $size + i * 0)::int))";
	my $shape = pick($array, "gpu_set_normalize($array)", "(SELECT CASE WHEN cardinality(a) > 0 AND i % 3 = 0 THEN ARRAY[a, a] ELSE a END FROM (SELECT $array a) x)");
	$shape = "CASE WHEN random() * 100 < $holes THEN $array || NULL::$type ELSE $array END" if $holes;
	$shape = "CASE WHEN random() * 100 >= $nulls THEN $shape END" if $nulls;
	print "CREATE TABLE t$n (id int, g int, x int8, s ${type}[]);\n";
	print "INSERT INTO t$n SELECT i, CASE WHEN i % 9 <> 0 THEN i % ", pick(3, 30), " END, (random() * 100)::int8, $shape FROM generate_series(1, $rows) i;\n";
	print "CREATE INDEX ON t$n USING gin (s);\n" if $type ne 'int2' && chance(40);
	print "VACUUM ANALYZE t$n;\n" if chance(70);
	push @tables, { name => "t$n", type => $type, rows => $rows, holes => $holes };
}

# A comparison of the arrays of two aliases.
sub sets
{
	my ($a, $b, $holes) = @_;
	($a, $b) = ($b, $a) if chance(30);
	return "$a.s " . pick('=', '=', '=', '<>') . " $b.s" if chance(10);
	my $core = $holes || chance(50);
	return "$a.s " . pick('&&', '&&', '@>', '<@') . " $b.s" if $core;
	return pick("gpu_overlaps($a.s, $b.s)", "gpu_contains($a.s, $b.s)") if chance(20);
	if (chance(40))
	{
		my ($op, $n) = (pick('>=', '>'), pick(0, 1, 1, 2, 3, 5, -1));
		return chance(25) ? "$n " . ($op eq '>' ? '<' : '<=') . " gpu_intersect_count($a.s, $b.s)" : "gpu_intersect_count($a.s, $b.s) $op $n";
	}
	return pick('gpu_jaccard', 'gpu_cosine', 'gpu_dice', 'gpu_overlap_coefficient', 'gpu_containment') . "($a.s, $b.s) " . pick('>=', '>') . ' ' .
	  pick('0', '0.1', '0.25', '0.5', '0.5', '1.0 / 3', '0.8', '1', '-1', '1.1');
}

sub others
{
	my ($a, $b) = @_;
	return pick("$a.id < $b.id", "$a.id <> $b.id", "$a.g = $b.g", "$a.x + $b.x > 80", "$a.x <= $b.x", "$a.id = $b.id + 1", "coalesce($a.g, 0) = $b.x % 5");
}

sub filter
{
	my ($a) = @_;
	return pick("$a.id % 3 = 1", "$a.x > 40", "$a.g IS NOT NULL", "$a.id < 60", "cardinality($a.s) > 1");
}

my @members;

# A membership table: sets and elements of several types, skewed, perhaps with duplicates and NULLs.
sub make_members
{
	my ($n) = @_;
	my ($id, $elem) = (pick('int4', 'int4', 'int8', 'int2', 'date'), pick('int4', 'int4', 'int8', 'int2', 'oid', 'numeric(8,1)'));
	my ($rows, $sets, $universe, $skew) = ($n == 0 ? 0 : pick(30, 300, 2000, 6000), pick(3, 40, 300), pick(5, 80, 2000), pick(1, 2, 4));
	my $set = $id eq 'date' ? "date '2000-01-01' + (random() * $sets)::int" : "((random() * $sets)::int - 2)::$id" . ($id eq 'int8' ? ' * 7000000000' : '');
	my $element = "(power(random(), $skew) * $universe)::int::$elem";
	my $nulls = pick(0, 0, 3);
	my $unique = chance(40);
	$set = "CASE WHEN random() * 100 >= $nulls THEN $set END" if $nulls && !$unique;
	$element = "CASE WHEN random() * 100 >= $nulls THEN $element END" if $nulls && !$unique;
	print "CREATE TABLE m$n (id $id, elem $elem, w int" . ($unique ? ', UNIQUE (id, elem)' : '') . ");\n";
	print "INSERT INTO m$n SELECT $set, $element, i % 7 FROM generate_series(1, $rows) i", ($unique ? ' ON CONFLICT DO NOTHING' : ''), ";\n";
	print "INSERT INTO m$n SELECT id, elem, 9 FROM m$n TABLESAMPLE BERNOULLI (", pick(5, 60), ") REPEATABLE (1);\n" if !$unique && chance(50);
	print "VACUUM ANALYZE m$n;\n" if chance(80);
	push @members, { name => "m$n", id => $id, elem => $elem };
}

# Pairs of sets by what they have in common.
sub write_members
{
	my $a = pick(@members);
	my $b = chance(70) ? $a : pick(grep { ($_->{elem} =~ /^int/) eq ($a->{elem} =~ /^int/) && ($_->{elem} =~ /^int/ || $_->{elem} eq $a->{elem}) } @members);
	my $date = ($a->{id} eq 'date') != ($b->{id} eq 'date');
	my @where = $date || chance(25) ? () : ('a.id ' . pick('<', '<', '<', '>', '<>', '<=') . ' b.id');
	push @where, map { pick('a.w > 2', 'b.w < 5', 'a.elem IS NOT NULL', 'a.id IS NOT NULL', 'a.w <> 3 AND b.w <> 3') } 1 .. pick(0, 0, 1);
	push @where, pick('a.w < b.w', 'a.id IS NULL OR b.id IS NOT NULL') if chance(8);
	my ($bound, $count) = (pick(1, 1, 2, 3, 5, 20, 200, 0, -1), pick('count(*)', 'count(*)', 'count(a.elem)', 'count(1)'));
	my $having = chance(30) ? '' : "\nHAVING " . (chance(20) ? "$bound " . pick('<=', '<') . " $count" : "$count " . pick('>=', '>=', '>=', '>', '=', '<', 'BETWEEN 2 AND') . " $bound");
	my $list = join(', ', 'a.id', 'b.id', chance(90) ? $count : (), chance(8) ? pick('sum(a.w)', 'count(a.id)', 'count(DISTINCT a.elem)', 'max(b.w)') : ());
	my $from = "$a->{name} a JOIN $b->{name} b " . (chance(50) ? 'USING (elem)' : 'ON ' . pick('a.elem = b.elem', 'b.elem = a.elem'));
	my $query = "SELECT $list\nFROM $from" . (@where ? "\nWHERE " . join(' AND ', map { "($_)" } @where) : '') . "\nGROUP BY " . pick('a.id, b.id', 'b.id, a.id') . $having;
	my $limit = pick(1, 5, 50);
	print "SET gpujoin.set_algorithm = ", pick('merge_path', 'binary_search', 'hash', 'bitmap', 'inverted_index', 'matrix'), ";\n" if chance(80);
	print chance(20) ? "SELECT c FROM (SELECT $count AS c\nFROM $from" . (@where ? "\nWHERE " . join(' AND ', map { "($_)" } @where) : '') . "\nGROUP BY a.id, b.id$having\nORDER BY 1 " . pick('DESC', 'ASC') . " LIMIT $limit) x;\n\n" : "$query;\n\n";
}

sub write_query
{
	my $a = pick(@tables);
	my $b = pick(grep { $_->{type} eq $a->{type} } @tables);
	my $holes = $a->{holes} || $b->{holes};
	my @on = (sets('a', 'b', $holes), map { others('a', 'b') } 1 .. pick(0, 0, 1, 1, 2));
	my @where = map { filter(pick('a', 'a')) } 1 .. pick(0, 0, 1);
	my $c = chance(25) ? pick(@tables) : undef;
	my $kind = pick(('JOIN') x 6, 'LEFT JOIN', 'RIGHT JOIN', 'EXISTS', 'NOT EXISTS');
	my ($from, @aliases);
	if ($kind =~ /EXISTS/)
	{
		$from = "$a->{name} a";
		push @where, "$kind (SELECT FROM $b->{name} b WHERE " . join(' AND ', @on) . ')';
		@aliases = ('a');
	}
	else
	{
		$from = "$a->{name} a $kind $b->{name} b ON " . join(' AND ', @on);
		@aliases = ('a', 'b');
	}
	if ($c)
	{
		$from .= ' ' . pick('JOIN', 'LEFT JOIN') . " $c->{name} c ON c.id = " . pick(@aliases) . '.' . pick('id', 'x', 'g');
		push @aliases, 'c';
	}
	my $values = @aliases > 1 && !$holes && $kind !~ /EXISTS/;
	my ($list, $group) = ('', '');
	my $how = pick('rows', 'rows', 'total', 'total', 'groups');
	if ($how eq 'rows')
	{
		my @list = map { pick(@aliases) . '.' . pick('id', 'g', 'x', 's') } 0 .. rand 4;
		push @list, pick('gpu_jaccard', 'gpu_intersect_count', 'gpu_overlaps') . '(a.s, b.s)' if $values && chance(40);
		$list = join(', ', @list);
	}
	else
	{
		my @list = ('count(*)', map { my $x = pick(@aliases); pick("sum($x.x)", "max($x.id)", "count($x.g)", "min($x.x)") } 1 .. pick(0, 1, 2));
		push @list, pick('sum(gpu_intersect_count(a.s, b.s))', 'max(gpu_jaccard(b.s, a.s))', 'min(gpu_dice(a.s, b.s))', 'count(*) FILTER (WHERE gpu_contains(a.s, b.s))', 'count(*) FILTER (WHERE gpu_contains(b.s, a.s))', 'count(gpu_cosine(a.s, b.s))',
			'sum(gpu_intersect_count(b.s, a.s) * a.x)') if $values && chance(60);
		if ($how eq 'groups')
		{
			my $g = $values && chance(20) ? 'gpu_intersect_count(a.s, b.s)' : pick(@aliases) . '.' . pick('g', 'id');
			$group = "\nGROUP BY $g";
			unshift @list, $g;
		}
		$list = join(', ', @list);
	}
	print "SET gpujoin.set_algorithm = ", pick('merge_path', 'binary_search', 'hash', 'bitmap', 'inverted_index', 'matrix'), ";\n" if chance(50);
	print "SET enable_hashjoin = off;\n" if chance(20);
	print "SELECT $list\nFROM $from" . (@where ? "\nWHERE " . join(' AND ', @where) : '') . "$group;\n\n";
}

print "-- seed $seed, $nqueries queries\nSELECT setseed(0.", sprintf('%04d', $seed % 10000), ");\nSET client_min_messages = warning;\n";
print "DROP TABLE IF EXISTS ", join(', ', map { "t$_" } 0 .. 7), ";\n";
make_table($_) foreach 0 .. 7;
print "DROP TABLE IF EXISTS ", join(', ', map { "m$_" } 0 .. 5), ";\n";
make_members($_) foreach 0 .. 5;
print "-- queries\n";
chance(30) ? write_members() : write_query() foreach 1 .. $nqueries;
