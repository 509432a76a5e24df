#!/usr/bin/perl
# Writes random tables and random queries over them, for scripts/differential.pl.
#
#   scripts/random_queries.pl [--seed N] [--queries N] [--subqueries PERCENT] [--algorithm NAME] >FILE
#
# The same seed gives the same file.  Tables: every type of key, NULLs, duplicates, skew, empty and
# one-row tables, wide rows, text; partitions and inheritance children.  Queries: joins of 2 to 5 relations in stars, chains and bushy trees, of
# all types, by equality, inequality or any condition; EXISTS, IN and their opposites; filters, also above
# outer joins; rows or aggregates, the first rows in some order, parameters; each algorithm; random expressions of all types, also row by row
# (random_values.pl); late columns; subqueries with groups, correlated ones, CTEs (random_subqueries.pl), PERCENT of all (25).
# Sums of floats are exact (quarters).
# --algorithm: each query that may choose an algorithm chooses this one.
use strict;
use warnings;
use Getopt::Long;
use FindBin;
require "$FindBin::Bin/random_groups.pl";
require "$FindBin::Bin/random_expressions.pl";
require "$FindBin::Bin/random_values.pl";
require "$FindBin::Bin/random_subqueries.pl";

my ($seed, $nqueries, $subqueries, $algorithm) = (1, 300, 25, '');
GetOptions('seed=i' => \$seed, 'queries=i' => \$nqueries, 'subqueries=i' => \$subqueries, 'algorithm=s' => \$algorithm)
  or die "usage: $0 [--seed N] [--queries N] [--subqueries PERCENT] [--algorithm NAME]\n";
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
	[ 'text', '', "repeat(chr(97 + r % 26), r % 700)" ], [ 'uuid', '', 'md5(r::text)::uuid' ],
	[ 'money', '', '(r / 4.0)::numeric::money' ], [ '"char"', '', 'chr(65 + r % 26)::"char"' ], [ 'int4[]', '', 'ARRAY[r, NULL, -r]' ]);
my @tables;

# Partitions by id: some with the columns in another order, and one that was dropped between them.
sub make_partitions
{
	my ($n, $layout, $rows, @definitions) = @_;
	my $third = 2 + int($rows / 3);
	my @bounds = $layout eq 'hash' ? map { "FOR VALUES WITH (MODULUS 3, REMAINDER $_)" } 0 .. 2
	  : ("FOR VALUES FROM (1) TO ($third)", "FOR VALUES FROM ($third) TO (2 * $third)", 'DEFAULT');
	foreach my $i (0 .. 2)
	{
		if (chance(50)) { print "CREATE TABLE r${n}_$i PARTITION OF r$n $bounds[$i];\n"; next; }
		my @other = (reverse(@definitions), 'id int');
		splice @other, int rand @other, 0, 'gone text';
		print "CREATE TABLE r${n}_$i (", join(', ', @other), ");\nALTER TABLE r${n}_$i DROP COLUMN gone;\nALTER TABLE r$n ATTACH PARTITION r${n}_$i $bounds[$i];\n";
	}
}

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
	my $layout = chance(30) ? pick('range', 'hash', 'children') : '';
	my @definitions = map { "$_->{name} $_->{kind}[0]" } @columns;
	print "CREATE TABLE r$n (id int, ", join(', ', @definitions), ')', $layout =~ /range|hash/ ? " PARTITION BY $layout (id)" : '', ";\n";
	make_partitions($n, $layout, $rows, @definitions) if $layout =~ /range|hash/;
	print "INSERT INTO r$n SELECT i, ", join(', ', @expressions), " FROM generate_series(1, $rows) i;\n";
	print "CREATE TABLE r${n}_child (more text, again int) INHERITS (r$n);\nINSERT INTO r${n}_child SELECT *, 'more', 1 FROM r$n WHERE id % 3 = 1;\n" if $layout eq 'children';
	print "CREATE INDEX ON r$n (id);\nCREATE INDEX ON r$n (", pick(map { $_->{name} } @columns[ 0 .. 2 ]), ");\n" if chance(50);
	print "VACUUM ANALYZE r$n;\n" if chance(60);
	print "UPDATE r$n SET id = -id WHERE id % 7 = 3;\nDELETE FROM r$n WHERE id % 11 = 5;\n" if chance(30);
	push @tables, { name => "r$n", rows => $rows, columns => [ { name => 'id', kind => $kinds[0], domain => $rows + 1 }, @columns ] };
}

# Values that parameters take in the query being written; undef: none.
my $parameters;

# Whether its expressions may overflow.  Only in inner joins: a plan source could meet a row that
# PostgreSQL's own order of joins never does, and that is no mistake.
my $overflow;

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
	return pick("$c + $d", "$c - $d", "$c * " . constant('int4', int rand 100), "($c + 1) * 2", "-$c", $overflow && chance(50) ? "$c * 2000000000" : "$c - 7");
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

# Rows of the largest table of the query being written.
my $largest = 0;

# Seldom the empty one and the one of one row.
sub some_table
{
	my $table = chance(6) ? pick(@tables[ 0, 1 ]) : pick(@tables[ 2 .. $#tables ]);
	$largest = $table->{rows} if $table->{rows} > $largest;
	return { %$table, name => "(SELECT * FROM $table->{name} UNION ALL SELECT * FROM ONLY $table->{name})", rows => $table->{rows} * 2 } if chance(3);
	return $table;
}

# Conditions that join $new with one of @others, the keys (if any) first, and by how much they cut the
# number of pairs; nothing if no columns match.
sub join_conditions
{
	my ($new, $others, $keys_only) = @_;
	my (@on, $cut);
	my $nkeys = pick(1, 1, 1, 1, 1, 2, 3);
	my $old = pick(@$others);
	if (!$keys_only && chance(12))
	{
		my $c = pick(grep { $_->{kind}[1] =~ /^(int|date|timestamp)$/ } @{ $new->{table}{columns} });
		my @other = columns_of($old, $c->{kind}[1]) or return;
		my ($x, $d, $e) = (name_of($new, $c), name_of($old, pick(@other)), name_of($old, pick(@other)));
		return (3, pick("$x BETWEEN $d AND $e", "$x >= $d AND $x < $e", "$d < $x", "$d >= $x", "$x <> $d", "$d BETWEEN $x AND $e",
			$c->{kind}[1] eq 'int' && $c->{kind}[0] eq 'int4' && $c->{domain} < 3000 ? "$d BETWEEN $x - 2 AND $x + 1" : "$x > $d"));
	}
	for (1 .. $nkeys)
	{
		my $c = pick(grep { $_->{kind}[1] } @{ $new->{table}{columns} });
		my @other = columns_of($old, $c->{kind}[1]) or next;
		my $d = pick(@other);
		push @on, chance(50) ? name_of($new, $c) . ' = ' . name_of($old, $d) : name_of($old, $d) . ' = ' . name_of($new, $c);
		my $domain = $c->{domain} > $d->{domain} ? $c->{domain} : $d->{domain};
		$cut = $domain if @on == 1;
	}
	return unless @on;
	push @on, condition(0, $new, @$others) if chance(25);
	push @on, pick(map { integer_expression($new) . " $_ " . integer_expression(@$others) } '<>', '<', '>=') if chance(12);
	return ($cut, @on);
}

# The rows of a join of a given type, roughly.
sub rows_of
{
	my ($type, $left, $right, $cut) = @_;
	my $rows = $left * $right / $cut;
	$rows += $left if $type =~ /LEFT|FULL/;
	$rows += $right if $type =~ /RIGHT|FULL/;
	return $rows;
}

# A join of some tables: its text, aliases, and how many rows it may have; undef if no keys match, or if
# PostgreSQL would look at too many pairs.
sub join_of
{
	my ($size) = @_;
	my $only_inner = $overflow || chance(25);
	my @aliases = ({ name => 'a0', table => some_table() });
	my ($text, $rows, $star) = ("$aliases[0]{table}{name} a0", $aliases[0]{table}{rows}, chance(50));
	for (my $i = 1; $i < $size; $i++)
	{
		my $new = { name => "a$i", table => some_table() };
		my ($side, $side_rows, @new) = ("$new->{table}{name} $new->{name}", $new->{table}{rows}, $new);
		my $type = $only_inner ? 'JOIN' : pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		if ($i + 1 < $size && chance(15))			# the side is a join itself
		{
			my $second = { name => 'a' . ++$i, table => some_table() };
			my $inner_type = pick('JOIN', 'LEFT JOIN', 'RIGHT JOIN');
			my ($cut, @on) = join_conditions($second, [$new], 1) or return undef;
			$side = "($side $inner_type $second->{table}{name} $second->{name} ON " . join(' AND ', @on) . ')';
			$side_rows = rows_of($inner_type, $side_rows, $second->{table}{rows}, $cut);
			push @new, $second;
		}
		elsif (!$only_inner && $rows * $side_rows < 20000 && chance(15))
		{
			$text .= "\n  CROSS JOIN $side";
			$rows *= $side_rows;
			push @aliases, @new;
			next;
		}
		my ($cut, @on) = join_conditions(pick(@new), $star ? [ $aliases[0] ] : [ $aliases[-1] ], $only_inner || $type eq 'FULL JOIN')
		  or return undef;
		return undef if $on[0] !~ /^[^<>]*=[^<>]*$/ && $rows * $side_rows > 2e6;
		$rows = rows_of($type, $rows, $side_rows, $cut);
		push @aliases, @new;
		$text .= "\n  $type $side ON " . join(' AND ', @on);
	}
	return ($text, $rows, @aliases);
}

# EXISTS, IN and their opposites.
sub subquery_condition
{
	my (@aliases) = @_;
	my $s = { name => 's', table => some_table() };
	my $old = pick(@aliases);
	my ($cut, @on) = join_conditions($s, [$old], chance(85)) or return ();
	return () if $on[0] !~ /^[^<>]*=[^<>]*$/ && ($s->{table}{rows} > 2000 || $old->{table}{rows} > 2000);
	my $from = "$s->{table}{name} s";
	if (chance(20))
	{
		my $t = { name => 'z', table => some_table() };
		my ($pairs, @more) = join_conditions($t, [$s], 1);
		$from .= ' ' . pick('JOIN', 'LEFT JOIN') . " $t->{table}{name} z ON " . join(' AND ', @more)
		  if @more && $s->{table}{rows} * $t->{table}{rows} / $pairs < 1e5;
	}
	if (chance(30))
	{
		my $c = pick(grep { $_->{kind}[1] } @{ $s->{table}{columns} });
		my @other = columns_of($old, $c->{kind}[1]) or return ();
		my $in = $s->{table}{rows} < 100 && $old->{table}{rows} < 3000 && chance(20) ? 'NOT IN' : 'IN';
		return name_of($old, pick(@other)) . " $in (SELECT " . name_of($s, $c) . " FROM $from WHERE " . condition(1, $s) . ')';
	}
	return pick('EXISTS', 'EXISTS', 'NOT EXISTS') . " (SELECT FROM $from WHERE " . join(' AND ', @on) . ')';
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

# Rows without a partner, by the partner's key being NULL, with columns of the missing side: PostgreSQL makes an
# anti join of it.
sub missing_query
{
	my ($left, $right) = map { { name => "a$_", table => some_table() } } 0, 1;
	my ($cut, @on) = join_conditions($right, [$left], 1) or return undef;
	my ($key) = $on[0] =~ /(a1\.\w+)/ or return undef;
	my @list = ('a0.id', map { name_of($_, pick(@{ $_->{table}{columns} })) } $left, $right, $right);
	my ($tables, $join) = chance(50) ? ("$left->{table}{name} a0", "LEFT JOIN $right->{table}{name} a1") : ("$right->{table}{name} a1", "RIGHT JOIN $left->{table}{name} a0");
	my $more = chance(30) ? ' AND ' . condition(1, $left) : '';
	return 'SELECT ' . join(', ', @list) . "\nFROM $tables\n  $join ON " . join(' AND ', @on) . "\nWHERE $key IS NULL$more";
}

# A column to sort by, a text by any collation.
sub sort_key
{
	my ($a, $column) = @_;
	$column //= pick(@{ $a->{table}{columns} });
	return name_of($a, $column) . ($column->{kind}[0] eq 'text' ? pick('', '', ' COLLATE "C"', ' COLLATE "de-x-icu"') : '');
}

sub in_order { return "\nORDER BY " . join(', ', map { $_ . pick('', '', ' DESC') . pick('', '', '', ' NULLS FIRST', ' NULLS LAST') } @_); }

# ORDER BY of some keys and of what makes the order complete, mostly with LIMIT.
sub first_rows
{
	my ($keys, @complete) = @_;
	my @list = ((map { pick(@$keys) } 1 .. pick(0, 1, 1, 1, 2, 3)), @complete);
	return in_order(@list) . (chance(40) ? '' : "\nLIMIT " . pick(1, 3, 10, 10, 100, 1000, 5000) . (chance(20) ? ' OFFSET ' . pick(0, 1, 5, 300) : ''));
}

# All rows of a large table and its partners, or groups of them, in an order in which texts and others of any length
# are likely: what backends sort by ranks.
sub sorted_query
{
	my @large = grep { $_->{rows} >= 2000 } @tables;
	my @aliases = ({ name => 'a0', table => pick(@large) }, { name => 'a1', table => pick(@large) });
	my @long = map { my $a = $_; map { [ $a, $_ ] } grep { $_->{kind}[0] =~ /text|numeric|uuid|\[/ } @{ $a->{table}{columns} } } @aliases;
	my @keys = map { @long && chance(70) ? sort_key(@{ pick(@long) }) : sort_key(pick(@aliases)) } 1 .. pick(1, 2, 2, 3);
	my $from = "\nFROM $aliases[0]{table}{name} a0 " . pick('', 'LEFT ') . "JOIN $aliases[1]{table}{name} a1 ON a0.id = a1.id";
	return 'SELECT ' . join(', ', 'a0.id', map { my $a = pick(@aliases); name_of($a, pick(@{ $a->{table}{columns} })) } 1 .. 2) . $from . in_order(@keys, 'a0.id', 'a1.id') if chance(60);
	@keys = map { name_of(@$_) } grep { $_->[1]{kind}[0] eq 'text' } @long[ 0 .. ($#long > 1 ? 1 : $#long) ];
	return 'SELECT ' . join(', ', 'a0.id % 3000', @keys, 'count(*)') . "$from\nGROUP BY " . join(', ', 1 .. @keys + 1) . in_order(2 + @keys, reverse 1 .. @keys + 1);
}

# A query, or, if it has an ORDER BY, one that numbers its rows as they come: rows are compared as multisets.
sub numbered
{
	my ($query) = @_;
	return $query =~ /\nORDER BY/ ? "SELECT row_number() OVER (), numbered.*\nFROM ($query) numbered" : $query;
}

# The query, prepared and executed if it has parameters.
sub prepared
{
	my ($query) = @_;
	return $query unless $parameters && @$parameters;
	return "SET plan_cache_mode = force_generic_plan;\nPREPARE q(" . join(', ', map { $_->[0] } @$parameters) . ") AS $query;\n"
	  . 'EXECUTE q(' . join(', ', map { $_->[1] } @$parameters) . ')';
}

# For so many of 100 queries one of these algorithms, or the one of all queries where it is among them.
sub choose_algorithm
{
	my ($percent, @of) = @_;
	my $chosen = $algorithm ? (grep { $_ eq $algorithm } @of)[0] : chance($percent) ? pick(@of) : undef;
	print "SET gpujoin.algorithm = $chosen;\n" if $chosen;
}

# For two in five queries: columns that a device would only carry are fetched from their tables.
my $nlate = 0;
sub late { return $nlate++ % 5 < 2 ? "SET gpujoin.late_columns = on;\n" : ''; }

sub write_query
{
	my ($text, $rows, @aliases);
	my $total = chance(50);
	if (chance($subqueries))
	{
		$parameters = chance(20) ? [] : undef;
		my $query = prepared(numbered(query_of_subqueries()));
		print "-- by PostgreSQL\n";
		choose_algorithm(15, 'hash', 'sort_merge');
		print "SET enable_", pick('hashjoin', 'mergejoin', 'nestloop', 'hashagg'), " = off;\n" if chance(15);
		print late(), "$query;\n\n";
		return;
	}
	if (chance(4))
	{
		$parameters = undef;
		my $query;
		do { $query = missing_query() } until $query;
		print "-- by PostgreSQL\nSET enable_nestloop = off;\n", late(), "$query;\n\n";
		return;
	}
	if (chance(5)) { $parameters = undef; print late(), numbered(sorted_query()), ";\n\n"; return; }
	if (chance(25)) { $parameters = undef; print "-- by PostgreSQL\n", late(), numbered(group_query()), ";\n\n"; return; }
	if (chance(25)) { my ($errors, $query) = value_query(); print "-- by PostgreSQL, values$errors\n$query;\n\n"; return; }
	if (chance(25))
	{
		print "-- by PostgreSQL, errors may differ\n";
		choose_algorithm(40, 'hash', 'sort_merge', 'nested_loop');
		print "SET enable_", pick('hashjoin', 'mergejoin', 'nestloop'), " = off;\n" if chance(40);
		print expression_query(), ";\n\n";
		return;
	}
	do
	{
		$parameters = chance(25) ? [] : undef;
		$overflow = chance(15);
		$largest = 0;
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
	$after = first_rows([ (map { sort_key(pick(@aliases)) } 0 .. 3), integer_expression(@aliases) ], map { "$_->{name}.id" } @aliases)
	  if !$total && chance(30);
	my @where = map { condition(2, @aliases) } 1 .. pick(0, 0, 0, 1, 1, 2);
	if (chance(15)) { my $a = pick(@aliases); push @where, name_of($a, pick(@{ $a->{table}{columns} })) . ' IS NULL'; }
	push @where, map { subquery_condition(@aliases) } 1 .. ($overflow ? 0 : pick(0, 0, 0, 0, 0, 1, 1, 2));
	my $query = prepared(numbered('SELECT ' . join(', ', @list) . "\nFROM $text" . (@where ? "\nWHERE " . join(' AND ', @where) : '') . $after));
	print "-- by PostgreSQL\n" if $after =~ /GROUP/;		# GROUP BY over a join that is cheaper otherwise
	print "SET enable_partitionwise_join = on;\n" if chance(10);
	# other native trees: nested loops that pass values down
	print pick("SET enable_hashjoin = off;\nSET enable_mergejoin = off;\n", "SET enable_hashjoin = off;\n", "SET enable_memoize = off;\nSET enable_material = off;\n")
	  if $largest <= 2000 && chance(60);
	choose_algorithm(40, 'hash', 'sort_merge', 'nested_loop') if $rows * 10 < 1e6 && !($algorithm eq 'nested_loop' && $largest > 8000);
	print late(), "$query;\n\n";
}

print "-- seed $seed, $nqueries queries\nSELECT setseed(0.", sprintf('%04d', $seed % 10000), ");\nSET client_min_messages = warning;\n";
print "DROP TABLE IF EXISTS ", join(', ', map { "r$_" } 0 .. 13), " CASCADE;\n";
make_table($_) foreach 0 .. 13;
value_tables();
edge_tables();
subquery_tables();
print "-- queries\n";
write_query() foreach 1 .. $nqueries;
