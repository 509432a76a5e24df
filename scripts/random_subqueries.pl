# Random queries over subqueries, for scripts/random_queries.pl, whose functions it uses: groups and
# distinct rows joined with others, aggregates of them, IN and EXISTS over them, NOT IN, correlated
# aggregates, EXISTS, ANY and ALL in expressions, LATERAL, CTEs, first rows in a total order.
#
# Their tables s0 to s4 are small, for PostgreSQL runs correlated subqueries row by row.  What is
# selected does not depend on which of equal values a group shows: -0 and 0, 1.0 and 1.00.
use strict;
use warnings;

# class of what can be equal; expression over a random integer r; more values than the tables have rows are not wanted
my @columns = (
	{ name => 'i2', type => 'int2', class => 'int', value => 'r' }, { name => 'i4', type => 'int4', class => 'int', value => 'r' },
	{ name => 'i8', type => 'int8', class => 'int', value => 'r' }, { name => 'nn', type => 'int4 NOT NULL', class => 'int', value => 'r' },
	{ name => 'n', type => 'numeric(10,2)', class => 'num', value => 'r / 4.0' }, { name => 'm', type => 'numeric(8,2)', class => 'num', value => 'r / 2.0' },
	{ name => 't', type => 'text', class => 'text', value => "'t' || r" }, { name => 'v', type => 'varchar(9)', class => 'text', value => "'t' || r" },
	{ name => 'c', type => 'char(5)', class => 'char', value => "'c' || r" }, { name => 'w', type => 'char(3)', class => 'char', value => "'c' || r" },
	{ name => 'd', type => 'date', class => 'date', value => "date '2026-01-01' + r" }, { name => 'e', type => 'date', class => 'date', value => "date '2026-01-03' + r" },
	{ name => 'f', type => 'float8', class => 'float', value => "CASE r WHEN 0 THEN '-0' WHEN 1 THEN '0' WHEN 2 THEN 0 ELSE r / 4.0 END" },
	{ name => 'g', type => 'float4', class => 'float', value => 'r / 4.0' }, { name => 'b', type => 'bool', class => 'bool', value => 'r % 2 = 0' },
	{ name => 'u', type => 'uuid', class => 'uuid', value => 'md5(r::text)::uuid' }, { name => 'o', type => 'uuid', class => 'uuid', value => 'md5(r::text)::uuid' });
my @small = map { { name => "s$_->[0]", rows => $_->[1] } } [ 0, 0 ], [ 1, 1 ], [ 2, 30 ], [ 3, 300 ], [ 4, 1500 ];
my $aliases = 0;

sub subquery_tables
{
	my $definitions = join ', ', map { "$_->{name} $_->{type}" } @columns;
	foreach my $table (@small)
	{
		my @values = map {
			my $domain = pick(3, 20, 90);
			my $r = "(random() * $domain)::int";
			my $nulls = $_->{type} =~ /NOT NULL/ ? 0 : pick(0, 3, 20);
			(my $e = $_->{value}) =~ s/\br\b/r.r$_->{name}/g;
			{ r => "$r AS r$_->{name}", e => $nulls ? "CASE WHEN random() * 100 >= $nulls THEN $e END" : $e }
		} @columns;
		print "DROP TABLE IF EXISTS $table->{name};\nCREATE TABLE $table->{name} (id int, $definitions);\nINSERT INTO $table->{name} SELECT i, ",
		  join(', ', map { $_->{e} } @values), "\n  FROM (SELECT i, ", join(', ', map { $_->{r} } @values), " FROM generate_series(1, $table->{rows}) i) r;\n";
		print "CREATE INDEX ON $table->{name} (", pick(qw(i4 t d n)), ");\n" if chance(50);
		print "CREATE UNIQUE INDEX ON $table->{name} (id);\n" if chance(70);
		print "VACUUM ANALYZE $table->{name};\n" if chance(80);
	}
}

# ---- relations: text for FROM, columns, about how many rows

sub small_table
{
	my ($most) = @_;
	my $alias = 'x' . $aliases++;
	my $table = pick(grep { $_->{rows} <= $most } chance(12) ? @small[ 0, 1 ] : @small[ 2 .. 4 ]);
	return { text => "$table->{name} $alias", alias => $alias, rows => $table->{rows},
		columns => [ map { { %$_, name => "$alias.$_->{name}" } } @columns ] };
}

# A constant to compare a column of a class with.
sub class_constant
{
	my ($class) = @_;
	my $n = int rand pick(4, 25, 100);
	return $class eq 'int' ? constant('int4', $n) : $class =~ /num|calc|loose/ ? constant('numeric', $n / 4) : $class eq 'float' ? $n / 4
	  : $class eq 'text' ? constant('text', "'t$n'") : $class eq 'char' ? "'c$n'" : $class eq 'date' ? constant('date', "date '2026-01-02' + $n") : $class eq 'uuid' ? "md5('$n')::uuid" : 'true';
}

sub column_condition
{
	my (@from) = @_;
	my $c = pick(@from);
	return "$c->{name} IS " . pick('', 'NOT ') . 'NULL' if chance(15);
	return '(' . column_condition(@from) . pick(' AND ', ' OR ', ' OR ') . column_condition(@from) . ')' if chance(15);
	# an addition can fail, for all that the planner knows
	my $more = $c->{class} eq 'int' && chance(3) ? ' + 1' : '';
	return "$c->{name}$more " . pick('=', '<', '>', '<=', '>=', '<>', '<>') . ' ' . class_constant($c->{class});
}

# Equality of a column of each side; '' if they have no class in common.
sub equality
{
	my ($left, $right) = @_;
	my %group = (calc => 'num', loose => 'num');
	for (1 .. 8)
	{
		my $x = pick(@$left);
		my ($of) = $group{ $x->{class} } || $x->{class};
		my @same = grep { ($group{ $_->{class} } || $_->{class}) eq $of || ($of =~ /^(int|num)$/ && $_->{class} =~ /^(int|num)$/ && chance(10)) } @$right;
		next if !@same || ($of eq 'bool' && chance(80));
		my $y = pick(@same);
		return chance(50) ? "$x->{name} = $y->{name}" : "$y->{name} = $x->{name}";
	}
	return '';
}

# An aggregate of some columns: expression, class.
sub one_aggregate
{
	my (@from) = @_;
	my $c = pick(@from);
	my ($name, $class) = ($c->{name}, $c->{class});
	my $same = $class eq 'calc' ? 'loose' : $class;
	return ('count(*)', 'int') if chance(20);
	return ("count($name)", 'int') if chance(20) || $class eq 'bool';
	return ("count(DISTINCT $name)", 'int') if chance(8) || $class eq 'uuid';
	return (pick('min', 'max') . "($name)", $same) if chance(35) || $class !~ /^(int|num|calc|loose|float)$/;
	return ("sum($name)", $class eq 'float' ? 'float' : 'calc') if $class !~ /^(int|num|calc|loose)$/ || chance(60);
	return ("avg($name)", 'calc');
}

# It, or something computed from it or two.
sub computed_aggregate
{
	my (@from) = @_;
	my ($a, $class) = one_aggregate(@from);
	return ($a, $class) if chance(50);
	return (pick("($a IS NULL)", "(count(*) > 3)"), 'bool') if chance(12);
	return (pick('7', "(7 * 3)"), 'int') if chance(10);
	return (pick("'t1'::text", 'NULL::text'), 'text') if chance(4);
	return ($a, $class) unless $class =~ /^(int|num|calc|loose)$/;
	return (pick("coalesce($a, 0)", "coalesce($a, -1)", "CASE WHEN $a IS NULL THEN -1 ELSE $a END", "$a + 1", "$a * 2", "2 - $a", "-$a", "$a / 4.0",
		"CASE WHEN count(*) > 2 THEN $a END", "$a - count(*)", "coalesce(sum(" . (pick(grep { $_->{class} eq 'int' } @from) || { name => '1' })->{name} . "), 0) + $a"), 'calc');
}

# A grouped or distinct subquery, over another one if it may be deeper.
sub grouped
{
	my ($depth, $most) = @_;
	my $alias = 'g' . $aliases++;
	my $from = $depth > 0 && chance(35) ? grouped($depth - 1, $most) : small_table($most);
	my ($text, @all) = ($from->{text}, @{ $from->{columns} });
	if (chance(25))
	{
		my $other = $depth > 0 && chance(40) ? grouped($depth - 1, 300) : small_table(300);
		my $on = equality(\@all, $other->{columns});
		if ($on)
		{
			$text .= pick(' JOIN ', ' JOIN ', ' LEFT JOIN ', ' RIGHT JOIN ') . "$other->{text} ON $on";
			push @all, @{ $other->{columns} };
		}
	}
	$text .= ' WHERE ' . column_condition(@all) if chance(35);
	my @keys = map { my $k = pick(@all); { name => $k->{name}, class => $k->{class} eq 'calc' ? 'loose' : $k->{class} } } 1 .. pick(1, 1, 1, 2);
	my @out;
	if (chance(15))
	{
		@out = map { [ $_->{name}, $_->{class} ] } @keys;
		$text = 'SELECT DISTINCT ' . join(', ', map { "$out[$_][0] o$_" } 0 .. $#out) . " FROM $text";
	}
	else
	{
		@keys = () if chance(12);
		@out = ((map { [ $_->{name}, $_->{class} ] } @keys), map { [ computed_aggregate(@all) ] } 1 .. pick(1, 2, 2, 3));
		$text = 'SELECT ' . join(', ', map { "$out[$_][0] o$_" } 0 .. $#out) . " FROM $text" . (@keys ? ' GROUP BY ' . join(', ', map { $_->{name} } @keys) : '');
		$text .= ' HAVING ' . pick('count(*) > 2', 'count(*) < 9 AND count(*) <> 3', (one_aggregate(@all))[0] . ' IS NOT NULL',
			(grep { $_->{class} eq 'int' } @all) ? 'sum(' . pick(grep { $_->{class} eq 'int' } @all)->{name} . ') > ' . constant('int4', int rand 90) : 'count(*) = 1') if chance(30);
	}
	if (@keys && chance(15))
	{
		# keys make the order total; sums of floats can differ in the last digits
		my @order = map { $_ . pick('', ' DESC', ' DESC NULLS LAST') } (grep { $out[ $_ - 1 ][1] ne 'float' && chance(50) } @keys + 1 .. @out), 1 .. @keys;
		$text .= ' ORDER BY ' . join(', ', @order) . ' LIMIT ' . (1 + int rand pick(3, 30, 300)) . (chance(20) ? ' OFFSET ' . int rand 5 : '');
	}
	return { text => "($text) $alias", alias => $alias, rows => $most / 4, select => $text,
		columns => [ map { { name => "$alias.o$_", class => $out[$_][1] } } 0 .. $#out ] };
}

# ---- conditions with subqueries

sub ties_of
{
	my ($outer, $inner) = @_;
	my @ties = grep { $_ } map { equality($inner->{columns}, $outer) } 1 .. pick(1, 1, 1, 2);
	return @ties;
}

# A correlated scalar aggregate: expression, class; '' if there is nothing to tie.
sub scalar_aggregate
{
	my ($outer, $depth) = @_;
	my $inner = chance(15) ? grouped(0, 300) : small_table($depth > 0 ? 1500 : 30);
	my @ties = ties_of($outer, $inner) or return '';
	my ($text, @all) = ($inner->{text}, @{ $inner->{columns} });
	if (chance(20))
	{
		my $other = small_table(30);
		my $on = equality(\@all, $other->{columns});
		if ($on) { $text .= pick(' JOIN ', ' JOIN ', ' LEFT JOIN ') . "$other->{text} ON $on"; push @all, @{ $other->{columns} }; }
	}
	push @ties, column_condition(@all) if chance(30);
	push @ties, correlated_aggregate($inner->{columns}, 0) if $depth > 0 && $inner->{rows} <= 30 && chance(25);
	my ($value, $class) = only_aggregate(@all);
	return ("(SELECT $value FROM $text WHERE " . join(' AND ', @ties) . ')', $class);
}

# A value of the row with some id: expression, class; '' if there is nothing to look for.
sub looked_up
{
	my ($outer) = @_;
	my $inner = small_table(1500);
	my @ids = grep { $_->{class} eq 'int' } @$outer or return '';
	my $value = pick(@{ $inner->{columns} });
	my @where = pick("$inner->{alias}.id = ", "$inner->{alias}.id = ", "$inner->{alias}.id = 1 + ") . pick(@ids)->{name};
	push @where, column_condition(@{ $inner->{columns} }) if chance(30);
	push @where, ties_of($outer, $inner) if chance(10);
	return ("(SELECT $value->{name} FROM $inner->{text} WHERE " . join(' AND ', @where) . ')', $value->{class});
}

# Of many rows, a constant alone is an error.
sub only_aggregate
{
	my ($value, $class);
	do { ($value, $class) = computed_aggregate(@_); } until $value =~ /\b(count|sum|avg|min|max)\(/;
	return ($value, $class);
}

sub correlated_aggregate
{
	my ($outer, $depth) = @_;
	my ($scalar, $class) = chance(15) ? looked_up($outer) : scalar_aggregate($outer, $depth);
	return 'true' unless $scalar;
	my @same = grep { $_->{class} eq $class || ($_->{class} =~ /int|num|calc|loose/ && $class =~ /int|num|calc|loose/) } @$outer;
	return "$scalar IS " . pick('', 'NOT ') . 'NULL' if chance(15) || !@same;
	my $x = chance(30) ? class_constant($class) : pick(@same)->{name};
	$scalar = "coalesce($scalar, " . pick(0, -1, 5) . ')' if $class =~ /int|num|calc|loose/ && chance(20);
	my $condition = "$x " . pick('=', '<', '>', '<=', '>=', '<>') . " $scalar";
	return chance(25) ? '(' . column_condition(@$outer) . " OR $condition)" : $condition;
}

# EXISTS, correlated.
sub exists_value
{
	my ($outer, $most) = @_;
	my $inner = chance(10) ? grouped(0, 30) : small_table($most);
	my @ties = ties_of($outer, $inner) or return 'false';
	push @ties, column_condition(@{ $inner->{columns} }) if chance(40);
	push @ties, exists_value($inner->{columns}, 30) if $most <= 300 && chance(10);
	return pick('EXISTS', 'EXISTS', 'NOT EXISTS') . " (SELECT FROM $inner->{text} WHERE " . join(' AND ', @ties) . (chance(5) ? ' LIMIT 1' : '') . ')';
}

# The sides of an equality, the outer one first, and conditions of a subquery that selects the other one.
sub compared
{
	my ($equality, $outer, $inner) = @_;
	my ($x, $y) = $equality =~ /(\S+) = (\S+)/;
	($x, $y) = ($y, $x) unless $outer->{$x};
	my @where = map { column_condition(@{ $inner->{columns} }) } 1 .. pick(0, 0, 1, 1, 2);
	push @where, "$y IS NOT NULL" if chance(40);
	return ($x, $y, @where);
}

# A comparison with any, or all, rows of a subquery.  IN is one; some are correlated.
sub quantified
{
	my ($outer, $most) = @_;
	my $inner = chance(10) ? grouped(1, 300) : small_table($most);
	my $equality = equality($outer, $inner->{columns}) or return 'true';
	my %outer = map { $_->{name} => $_ } @$outer;
	my ($x, $y, @where) = compared($equality, \%outer, $inner);
	push @where, 'false' if chance(8);
	push @where, ties_of($outer, $inner) if $inner->{rows} <= 300 && chance(15);
	my $of = chance(40) ? pick('IN', 'NOT IN') : pick('<', '>', '<=', '>=', '>', '=', '<>') . ' ' . pick('ALL', 'ANY');
	my $value = "$x $of (SELECT $y FROM $inner->{text}" . (@where ? ' WHERE ' . join(' AND ', @where) : '') . ')';
	return chance(15) ? "NOT ($value)" : $value;
}

# A boolean expression over subqueries: false, true or NULL.
sub boolean_value
{
	my ($outer, $most) = @_;
	my $value = chance(60) ? exists_value($outer, $most) : quantified($outer, $most);
	my $n = rand 100;
	return $n < 30 ? $value : $n < 50 ? '(' . column_condition(@$outer) . " OR $value)" : $n < 60 ? "(NOT $value AND " . column_condition(@$outer) . ')'
	  : $n < 80 ? "CASE WHEN $value THEN " . column_condition(@$outer) . (chance(50) ? ' ELSE ' . column_condition(@$outer) : '') . ' END'
	  : $n < 90 ? "(($value) IS " . pick('NULL', 'TRUE', 'NOT FALSE') . ')' : "(($value) = (" . column_condition(@$outer) . '))';
}

# Expressions over subqueries, as columns of a query.
sub subquery_columns
{
	my ($outer, $most) = @_;
	my @columns;
	foreach (1 .. pick(1, 1, 2))
	{
		my ($name, $class) = chance(50) ? (boolean_value($outer, $most), 'bool') : chance(30) ? looked_up($outer) : scalar_aggregate($outer, $most > 30);
		push @columns, { name => $class eq 'bool' ? "($name)" : $name, class => $class eq 'calc' ? 'loose' : $class } if $name;
	}
	return @columns;
}

# A LATERAL subquery of aggregates or groups, to be joined.
sub lateral
{
	my ($outer, $most) = @_;
	my $alias = 'l' . $aliases++;
	my $inner = chance(15) ? grouped(0, 30) : small_table($most);
	my @ties = ties_of($outer, $inner) or return;
	my @all = @{ $inner->{columns} };
	push @ties, column_condition(@all) if chance(40);
	my @out = map { [ only_aggregate(@all) ] } 1 .. pick(1, 2, 3);
	my $groups = '';
	if (chance(30))
	{
		my $k = pick(@all);
		push @out, [ $k->{name}, $k->{class} eq 'calc' ? 'loose' : $k->{class} ];
		$groups = " GROUP BY $k->{name}" . (chance(25) ? ' HAVING count(*) > 1' : '');
	}
	my @columns = map { { name => "$alias.o$_", class => $out[$_][1] } } 0 .. $#out;
	my $text = 'LATERAL (SELECT ' . join(', ', map { "$out[$_][0] o$_" } 0 .. $#out) . " FROM $inner->{text} WHERE " . join(' AND ', @ties) . "$groups) $alias";
	my $on = chance(30) ? column_condition(@$outer, @columns) : 'true';
	return { text => "\n  CROSS JOIN $text", columns => \@columns } if chance(40);
	return { text => "\n  " . pick('JOIN', 'LEFT JOIN') . " $text ON $on", columns => \@columns };
}

sub not_in
{
	my ($outer) = @_;
	my $inner = chance(15) ? grouped(1, 300) : small_table(1500);
	my $equality = equality($outer, $inner->{columns}) or return 'true';
	my %outer = map { $_->{name} => $_ } @$outer;
	my ($x, $y, @where) = compared($equality, \%outer, $inner);
	push @where, 'false' if chance(5);
	$x .= ' + 1' if $outer{$x}{class} eq 'int' && chance(10);
	return pick("$x NOT IN", "$x NOT IN", "$x NOT IN", "$x IN") . " (SELECT $y FROM $inner->{text}" . (@where ? ' WHERE ' . join(' AND ', @where) : '') . ')';
}

sub grouped_condition
{
	my ($outer) = @_;
	my $inner = grouped(1, 1500);
	my $equality = equality($outer, $inner->{columns}) or return 'true';
	my $more = chance(25) ? ' AND ' . column_condition(@{ $inner->{columns} }) : '';
	return pick('EXISTS', 'NOT EXISTS') . " (SELECT FROM $inner->{text} WHERE $equality$more)";
}

# ---- queries

# What is shown of a column.
sub displayed
{
	my ($c) = @_;
	return $c->{class} eq 'loose' ? "trim_scale($c->{name})" : $c->{class} eq 'float' ? "$c->{name} + 0" : $c->{name};
}

# Rows or aggregates of some FROM and WHERE.
sub select_of
{
	my ($from, $where, $rows, @all) = @_;
	push @all, map { ($_, $_, $_) } subquery_columns(\@all, $rows > 2000 ? 30 : 300) if $rows <= 2e4 && chance(25);
	my $text = "\nFROM $from" . (@$where ? "\nWHERE " . join(' AND ', @$where) : '');
	if ($rows > 5e4 || chance(40))
	{
		my @list = map { my ($a, $class) = one_aggregate(@all); displayed({ name => $a, class => $class }) } 1 .. pick(1, 2, 3);
		return 'SELECT count(*), ' . join(', ', @list) . $text if chance(50);
		my $k = pick(@all);
		return 'SELECT ' . displayed({ %$k, class => $k->{class} eq 'calc' ? 'loose' : $k->{class} }) . ', ' . join(', ', @list) . $text . "\nGROUP BY $k->{name}"
		  . (chance(20) ? ' HAVING count(*) > 1' : '');
	}
	my @list = map { displayed(pick(@all)) } 1 .. pick(2, 3, 5);
	return 'SELECT ' . join(', ', @list) . $text . (chance(25) ? first_rows([ 1 .. @list ], 1 .. @list) : '');
}

sub joined_subqueries
{
	my @items = (grouped(2, 1500), map { chance(40) ? grouped(1, 300) : small_table(300) } 1 .. pick(0, 1, 1, 1, 2));
	@items = sort { $a->{alias} cmp $b->{alias} } @items if chance(50);
	my $first = shift @items;
	my ($text, $rows, @all) = ($first->{text}, $first->{rows}, @{ $first->{columns} });
	foreach my $item (@items)
	{
		my $on = equality(\@all, $item->{columns});
		if (!$on) { next if $rows * $item->{rows} > 5e5; $text .= "\n  CROSS JOIN $item->{text}"; }
		else
		{
			my $type = pick('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'RIGHT JOIN', 'FULL JOIN');
			$on .= ' AND ' . column_condition(@all, @{ $item->{columns} }) if $type ne 'FULL JOIN' && chance(20);
			$text .= "\n  $type $item->{text} ON $on";
		}
		push @all, @{ $item->{columns} };
		$rows *= $item->{rows} / ($on ? 10 : 1);
	}
	my @where = map { column_condition(@all) } 1 .. pick(0, 0, 1, 1, 2);
	push @where, correlated_aggregate(\@all, 1) if chance(10);
	return select_of($text, \@where, $rows, @all);
}

sub filtered_by_subqueries
{
	my $first = chance(15) ? grouped(1, 300) : small_table(300);
	my ($text, $rows, @all) = ($first->{text}, $first->{rows}, @{ $first->{columns} });
	foreach (1 .. pick(0, 0, 0, 1))
	{
		my $other = small_table(30);
		my $on = equality(\@all, $other->{columns});
		if ($on) { $text .= "\n  " . pick('JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN') . " $other->{text} ON $on"; push @all, @{ $other->{columns} }; }
	}
	my $joined = 0;
	foreach (1 .. pick(0, 0, 0, 1, 1, 2))
	{
		my $lateral = lateral(\@all, 300) or next;
		$text .= $lateral->{text};
		# they are read more often than others
		push @all, map { @{ $lateral->{columns} } } 1 .. 4;
		next if chance(50);
		my $other = small_table(30);
		my $on = equality(\@all, $other->{columns}) or next;
		$text = chance(30) ? "$other->{text}\n  LEFT JOIN ($text) ON $on" : "$text\n  " . pick('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN') . " $other->{text} ON $on";
		$joined = 1;
		push @all, @{ $other->{columns} };
	}
	$text =~ s/\n  CROSS JOIN (LATERAL .*)/, $1/ if !$joined && chance(50) && $text !~ /JOIN LATERAL.*\n/s;
	my @where = map {
		my $n = rand 100;
		$n < 30 ? correlated_aggregate(\@all, 1) : $n < 45 ? not_in(\@all) : $n < 60 ? grouped_condition(\@all) : $n < 75 ? quantified(\@all, 300) : boolean_value(\@all, 300)
	} 1 .. ($joined ? pick(0, 0, 1) : pick(0, 1, 1, 1, 2));
	push @where, column_condition(@all) if chance(30);
	return select_of($text, \@where, $rows, @all);
}

# A CTE that is read once or twice.
sub cte_query
{
	my $with = chance(80) ? grouped(1, 1500) : undef;
	my $table = small_table(300);
	my $body = $with ? $with->{select} : 'SELECT ' . join(', ', map { "$table->{columns}[$_]{name} o$_" } 0 .. 5) . " FROM $table->{text} WHERE " . column_condition(@{ $table->{columns} });
	my @of = $with ? @{ $with->{columns} } : map { { %{ $table->{columns}[$_] }, name => "x.o$_" } } 0 .. 5;
	my @readers = map { my $alias = "w$_"; { text => "w $alias", rows => 300, columns => [ map { my ($o) = $_->{name} =~ /\.(.*)/; { name => "$alias.$o", class => $_->{class} } } @of ] } } 0, 1;
	my $other = chance(60) ? $readers[1] : small_table(300);
	my ($text, @all, @where) = ($readers[0]{text}, @{ $readers[0]{columns} });
	my $on = equality(\@all, $other->{columns});
	if ($on && chance(60))
	{
		$text .= "\n  " . pick('JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN') . " $other->{text} ON $on";
		push @all, @{ $other->{columns} };
	}
	else
	{
		my $c = pick(@{ $readers[1]{columns} });
		my ($x) = grep { $_->{name} eq 'w0.' . substr $c->{name}, 3 } @all;
		push @where, chance(50) && $c->{class} !~ /^(bool|uuid)$/ ? "$x->{name} = (SELECT " . pick('min', 'max') . "($c->{name}) FROM $readers[1]{text})"
		  : "$x->{name} " . pick('IN', 'NOT IN') . " (SELECT $c->{name} FROM $readers[1]{text} WHERE " . column_condition(@{ $readers[1]{columns} }) . ')';
	}
	push @where, column_condition(@all) if chance(30);
	return 'WITH w AS' . pick('', '', '', ' MATERIALIZED', ' NOT MATERIALIZED') . " ($body)\n" . select_of($text, \@where, 3000, @all);
}

# What write_query() writes, but for parameters.
sub query_of_subqueries
{
	$aliases = 0;
	my $n = rand 100;
	return $n < 35 ? joined_subqueries() : $n < 85 ? filtered_by_subqueries() : cte_query();
}

1;
