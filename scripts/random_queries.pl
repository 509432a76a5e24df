#!/usr/bin/perl
# Writes random tables and random queries over them, for scripts/differential.pl.
#
#   scripts/random_queries.pl [--seed N] [--queries N] >FILE
#
# The same seed gives the same file.  Tables: every type of key, NULLs, duplicates, skew, empty and
# one-row tables, wide rows, text.  Queries: joins of 2 to 5 relations in stars and chains, filters,
# conditions beyond the keys, rows or aggregates, parameters.  Sums of floats are exact (quarters).
use strict;
use warnings;
use Getopt::Long;
use FindBin;
require "$FindBin::Bin/random_groups.pl";

my ($seed, $nqueries) = (1, 300);
GetOptions('seed=i' => \$seed, 'queries=i' => \$nqueries) or die "usage: $0 [--seed N] [--queries N]\n";
srand($seed);

sub pick { return $_[ int rand @_ ]; }
sub chance { return rand(100) < $_[0]; }

# column: type, class of the keys that it joins with, expression over a random integer r >= 0
my @kinds = (
	[ 'int4', 'int', 'r' ], [ 'int8', 'int', 'r' ], [ 'int2', 'int', 'r' ],
	[ 'date', 'date', "date '2026-01-01' + r" ],
	[ 'timestamp', 'timestamp', "timestamp '2026-01-01' + r * interval '1 minute'" ],
	[ 'timestamptz', 'timestamptz', "timestamptz '2026-01-01 00:00+00' + r * interval '1 minute'" ],
	[ 'oid', 'oid', '(4294967295 - r)::oid' ], [ 'bool', 'bool', 'r % 2 = 0' ],
	[ 'float8', '', '(r - 20) / 4.0' ], [ 'text', '', "'text ' || r" ], [ 'numeric', '', 'r / 7.0' ],
	[ 'text', '', "repeat(chr(97 + r % 26), r % 700)" ], [ 'uuid', '', 'md5(r::text)::uuid' ], [ 'int4[]', '', 'ARRAY[r, NULL, -r]' ]);
my @tables;

sub make_table
{
	my ($n) = @_;
	my $rows = $n == 0 ? 0 : $n == 1 ? 1 : pick(5, 60, 400, 2000, 2000, 8000, 8000, 30000);
	my @columns = map { { name => "c$_", kind => $kinds[ $_ < 3 ? $_ : int rand @kinds ] } } 0 .. 3 + int rand 8;
	my @expressions;
	foreach my $c (@columns)
	{
		my $domain = pick(1, 3, 20, 200, 2000, 20000);
		my $power = pick(1, 1, 1, 4);				# 4: most values are small
		my $nulls = pick(0, 0, 0, 10, 60);
		$c->{domain} = ($power > 1 ? sqrt($domain) : $domain) + 1;	# as joins feel it
		$c->{domain} = 2 if $c->{kind}[0] eq 'bool';
		my $r = "(power(random(), $power) * $domain)::int";
		(my $e = $c->{kind}[2]) =~ s/\br\b/$r/g;
		push @expressions, $nulls ? "CASE WHEN random() * 100 >= $nulls THEN $e END" : $e;
	}
	print "CREATE TABLE r$n (id int, ", join(', ', map { "$_->{name} $_->{kind}[0]" } @columns), ");\n";
	print "INSERT INTO r$n SELECT i, ", join(', ', @expressions), " FROM generate_series(1, $rows) i;\n";
	print "VACUUM ANALYZE r$n;\n" if chance(60);
	print "UPDATE r$n SET id = -id WHERE id % 7 = 3;\nDELETE FROM r$n WHERE id % 11 = 5;\n" if chance(30);
	push @tables, { name => "r$n", rows => $rows, columns => [ { name => 'id', kind => $kinds[0], domain => $rows + 1 }, @columns ] };
}

# Values that parameters take in the query being written; undef: none.
my $parameters;

sub constant
{
	my ($type, $value) = @_;
	return "$value" unless $parameters && chance(60);
	push @$parameters, [ $type, chance(10) ? 'NULL' : $value ];
	return '$' . scalar @$parameters;
}

sub columns_of { my ($alias, $class) = @_; return grep { $_->{kind}[1] eq $class } @{ $alias->{table}{columns} }; }
sub of_type { my ($alias, $type) = @_; return grep { $_->{kind}[0] eq $type } @{ $alias->{table}{columns} }; }
sub name_of { my ($alias, $column) = @_; return "$alias->{name}.$column->{name}"; }

sub integer_expression
{
	my (@aliases) = @_;
	my $a = pick(@aliases);
	my $c = name_of($a, pick(columns_of($a, 'int')));
	return $c if chance(50);
	my $b = pick(@aliases);
	my $d = name_of($b, pick(columns_of($b, 'int')));
	return pick("$c + $d", "$c - $d", "$c * " . constant('int4', int rand 100), "($c + 1) * 2", "-$c", chance(30) ? "$c * 2000000000" : "$c - 7");
}

sub condition
{
	my ($depth, @aliases) = @_;
	my $a = pick(@aliases);
	my $c = pick(@{ $a->{table}{columns} });
	my ($name, $type) = (name_of($a, $c), $c->{kind}[0]);
	my $op = pick('=', '<>', '<>', '<', '<', '<=', '>', '>', '>=');
	my $n = int rand(chance(70) ? $c->{domain} : pick(3, 3000));
	if ($depth > 0 && chance(30))
	{
		my ($x, $y) = (condition($depth - 1, @aliases), condition($depth - 1, @aliases));
		return pick("($x AND $y)", "($x OR $y)", "NOT ($x)", "($x OR $y)");
	}
	return "$name IS " . pick('NULL', 'NOT NULL', 'NOT NULL') if chance(12);
	return integer_expression(@aliases) . " $op " . (chance(50) ? constant('int4', $n) : integer_expression(@aliases)) if chance(25);
	return "$name $op " . constant($type, $n) if $type =~ /^int.$/ && $n < 32000 && chance(60);
	return "$name " . pick('IN', 'NOT IN') . ' (' . join(', ', map { chance(5) ? 'NULL' : int rand 50 } 0 .. rand 5) . ')' if $type =~ /^int.$/;
	return "$name $op " . constant('date', "date '2026-01-01' + $n") if $type eq 'date';
	return "$name $op timestamp '2026-01-01 00:$1'" if $type eq 'timestamp' && sprintf('%02d', $n % 60) =~ /(..)/;
	return "$name $op timestamptz '2026-01-01 0$1:00+00'" if $type eq 'timestamptz' && $n =~ /(.)$/;
	return "$name $op " . constant('float8', pick($n / 4, "'NaN'", "'-0'", 1.5)) if $type eq 'float8';
	return pick($name, "NOT $name", "$name IS NOT TRUE", "$name IS FALSE", "$name = (" . integer_expression(@aliases) . ' > 3)') if $type eq 'bool';
	return "$name LIKE '%$1%'" if $type eq 'text' && $n =~ /(.)$/;
	return "$name > 1.5" if $type eq 'numeric';
	return "$name IS NOT NULL";
}

# Seldom the empty one and the one of one row.
sub some_table { return chance(6) ? pick(@tables[ 0, 1 ]) : pick(@tables[ 2 .. $#tables ]); }

# A join of some tables: its text, aliases, and how many rows it may have; undef if no keys match.
sub join_of
{
	my ($size) = @_;
	my @aliases = ({ name => 'a0', table => some_table() });
	my ($text, $rows, $star) = ("$aliases[0]{table}{name} a0", $aliases[0]{table}{rows}, chance(50));
	for my $i (1 .. $size - 1)
	{
		my $new = { name => "a$i", table => some_table() };
		my $old = $star ? $aliases[0] : $aliases[-1];
		my @on;
		for (1 .. pick(1, 1, 1, 1, 1, 2, 3))
		{
			my $c = pick(grep { $_->{kind}[1] } @{ $new->{table}{columns} });
			my @other = columns_of($old, $c->{kind}[1]) or next;
			my $d = pick(@other);
			push @on, chance(50) ? name_of($new, $c) . ' = ' . name_of($old, $d) : name_of($old, $d) . ' = ' . name_of($new, $c);
			my $domain = $c->{domain} > $d->{domain} ? $c->{domain} : $d->{domain};
			$rows /= $domain if @on == 1;
		}
		return undef unless @on;
		push @aliases, $new;
		push @on, condition(0, @aliases) if chance(20);
		$rows *= $new->{table}{rows};
		$text .= "\n  JOIN $new->{table}{name} $new->{name} ON " . join(' AND ', @on);
	}
	return ($text, $rows, @aliases);
}

sub aggregates
{
	my (@aliases) = @_;
	my @list = ('count(*)');
	for (0 .. rand 4)
	{
		my $a = pick(@aliases);
		my $c = pick(@{ $a->{table}{columns} });
		my ($name, $type) = (name_of($a, $c), $c->{kind}[0]);
		push @list, $type =~ /^int.$|^float8$/ ? pick("sum($name)", "min($name)", "max($name)", "avg($name)", "count($name)")
		  : $type =~ /^date$|^timestamp/ ? pick("min($name)", "max($name)", "count($name)") : "count($name)";
		push @list, pick('sum', 'max', 'min', 'avg') . '(' . integer_expression(@aliases) . ')' if chance(25);
	}
	return @list;
}

sub write_query
{
	my ($text, $rows, @aliases);
	my $total = chance(50);
	if (chance(25)) { $parameters = undef; print "-- by PostgreSQL\n", group_query(), ";\n\n"; return; }
	do
	{
		$parameters = chance(25) ? [] : undef;
		($text, $rows, @aliases) = join_of(pick(2, 2, 2, 3, 3, 4, 5));
	} until $text && $rows < ($total ? 3e6 : 1e5) && ($rows > 50 || chance(5));
	my (@list, $after);
	$after = '';
	if ($total)
	{
		@list = aggregates(@aliases);
		if (chance(20)) { my $a = pick(@aliases); my $g = name_of($a, pick(@{ $a->{table}{columns} })); unshift @list, $g; $after = "\nGROUP BY $g"; }
	}
	else
	{
		@list = map { my $a = pick(@aliases); name_of($a, pick(@{ $a->{table}{columns} })) } 0 .. rand 6;
		push @list, integer_expression(@aliases) if chance(30);
		@list = (pick(@aliases)->{name} . '.*') if chance(10);
	}
	my @where = map { condition(2, @aliases) } 1 .. pick(0, 0, 0, 1, 1, 2);
	my $query = 'SELECT ' . join(', ', @list) . "\nFROM $text" . (@where ? "\nWHERE " . join(' AND ', @where) : '') . $after;
	if ($parameters && @$parameters)
	{
		$query = "SET plan_cache_mode = force_generic_plan;\nPREPARE q(" . join(', ', map { $_->[0] } @$parameters) . ") AS $query;\n"
		  . 'EXECUTE q(' . join(', ', map { $_->[1] } @$parameters) . ')';
	}
	print "-- by PostgreSQL\n" if $after;		# GROUP BY over a join that is cheaper otherwise
	print "$query;\n\n";
}

print "-- seed $seed, $nqueries queries\nSELECT setseed(0.", sprintf('%04d', $seed % 10000), ");\nSET client_min_messages = warning;\n";
print "DROP TABLE IF EXISTS ", join(', ', map { "r$_" } 0 .. 13), ";\n";
make_table($_) foreach 0 .. 13;
print "-- queries\n";
write_query() foreach 1 .. $nqueries;
