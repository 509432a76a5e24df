# Random expressions whose value in each single row shows, for scripts/random_queries.pl, whose functions it uses.
#
# The tables w0 and w1 have the columns of the v tables.  w0 has values around which code goes wrong without an error: ties
# of roundings at every scale, negative numbers, -0, NaN, infinities, first and last days, microseconds before 2000, characters
# of one to four bytes, wildcards, escapes, spaces.  w1 has the limits of each type.  A query groups by the row's number, so that
# an aggregate of a computed value is that value; nothing is averaged away.  Expressions are of what the device knows, and over w0
# hardly any is an error; over w1 a query has one expression and few rows, and the errors must be the same.
use strict;
use warnings;

my @types = qw(int2 int4 int8 numeric float8 float4 text bpchar date timestamp timestamptz bool);
my %known = (int2 => ['i2'], int4 => [ 'i4', 'i4', 'dm' ], int8 => ['i8'], numeric => [ 'n2', 'n6', 'n0', 'dn' ], float8 => ['f8'], float4 => ['f4'],
	text => [ 't', 't', 'tc', 'v' ], bpchar => ['b'], date => ['d'], timestamp => ['ts'], timestamptz => ['tz'], bool => ['bo']);
my @texts = ("''", "' '", "'a'", "'ab'", "'a%'", "'a_b'", "'a\\b'", "'\\'", "'%'", "'_'", "'é'", "'éa'", "'aé'", "'日本'", "'日本語x'", "'a𝄞'", "'𝄞𝄞'", "' x '", "'abcabc'", "'Abc'", "'zz%_'", "'%%'", "'é é'", "'a  '");
my @tame = (
	[ i2 => -100, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 10, 99 ],
	[ i4 => -365, -32, -17, -10, -9, -1, 0, 1, 4, 9, 10, 11, 31, 100, 365 ],
	[ dm => -30, -9, -1, 0, 1, 2, 3, 64, 99 ],
	[ i8 => -100000, -4097, -999, -2, -1, 0, 1, 3, 255, 1000, 65536, 99999 ],
	[ n2 => -12345.67, -99.95, -10.50, -2.55, -2.50, -2.45, -1.50, -1.00, -0.99, -0.50, -0.45, -0.05, -0.01, 0, 0.01, 0.04, 0.05, 0.50, 0.99, 1.50, 2.50, 2.55, 9.99, 10.00, 49.99, 50.00, 99.95, 12345.65 ],
	[ n6 => -1234.567895, -1.000001, -1.0, -0.5, -0.05, -0.000005, -0.000001, 0, 0.000001, 0.000005, 0.00005, 0.49999, 0.5, 0.500001, 1.2345, 1.234565, 2.5, 99.999999, 1234.5 ],
	[ n0 => -1500, -155, -55, -50, -45, -5, -1, 0, 1, 4, 5, 6, 15, 45, 50, 149, 150, 151, 1000 ],
	[ dn => -12.345, -2.5, -1.005, -1, -0.005, -0.001, 0, 0.001, 0.005, 0.015, 0.5, 1.5, 2.345, 9.995, 100 ],
	[ n => 0, 1.50, -2.500, 1.0, 100, 0.001 ],
	[ f8 => -2.5, -1.5, -0.75, -0.5, "'-0'", 0, 0.25, 0.5, 1.5, 2.5, 3, 1e-3, 123456.789, "'NaN'", "'Infinity'", "'-Infinity'" ],
	[ f4 => -2.5, -1.5, -0.5, "'-0'", 0, 0.1, 0.5, 1.5, 2.5, 3, 16777217, 123.456 ],
	[ t => @texts ], [ tc => @texts ], [ v => @texts ],
	[ b => "''", "'a'", "'ab'", "'é'", "' x'", "'a%'", "'abcde'", "'日本'", "'日本語日本'", "'a b'" ],
	[ d => map { "'$_'" } '2000-01-01', '1999-12-31', '2000-02-29', '2000-03-01', '1900-02-28', '1900-03-01', '2024-12-30', '2024-12-31', '2025-01-01', '2023-01-01', '2021-01-03', '0001-01-01', '0001-12-31 BC', '0005-02-28 BC', '1970-01-01', '9999-12-31', '2024-02-29', '2100-02-28', '1600-02-29', '1900-01-31', '2100-03-30' ],
	[ ts => map { "'$_'" } '2000-01-01', '1999-12-31 23:59:59.999999', '2000-01-01 00:00:00.000001', '1969-12-31 23:59:59.5', '2024-02-29 12:34:56.789012', '1883-11-18 12:00:00.5', '0001-01-01 00:00:01 BC', '2024-12-31 23:59:59.5', '1600-02-29 01:02:03', '2023-01-31 10:30', '2021-01-03 23:59:30.000001', '1900-01-31 10:00', '2100-01-30 22:15', '2100-03-31 00:00' ],
	[ tz => map { "'$_+00'" } '2000-01-01 00:00', '1999-12-31 23:59:59.999999', '2024-03-10 09:59:59.9', '2024-03-10 10:00', '1969-12-31 23:59:59.5' ],
	[ bo => 'true', 'false' ], [ iv => "'1 day'", "'-1 month'", "'36 hours'" ], [ en => "'red'", "'green'", "'blue'" ], [ u => "md5('1')::uuid", "md5('2')::uuid" ]);
my %wild = (
	i2 => [ -32768, -32767, -1, 0, 1, 32767, 181 ], i4 => [ '-2147483648', -2147483647, -65536, -1, 0, 1, 46341, 2147483646, 2147483647 ], dm => [ -999, 2147483647, 0 ],
	i8 => [ '-9223372036854775808', '-9223372036854775807', -2147483649, -1, 0, 1, 2147483648, '3037000500', '9223372036854775806', '9223372036854775807' ],
	n2 => [ -99999999.99, -99999999.95, 99999999.50, 99999999.99, 0.01, -21474836.48, 32767.49, 32767.50 ],
	n6 => [ '-999999999999.999999', '999999999999.999999', '999999999999.5', "'NaN'", '2147483647.499999', '2147483647.5', '-2147483648.5', '-0.000001' ],
	n0 => [ '-999999999999999', '999999999999999', '2147483648', 0 ], dn => [ '-999999.999', '999999.995', '32767.5' ],
	f8 => [ "'NaN'", "'Infinity'", "'-Infinity'", '1.7976931348623157e308', '-1.7976931348623157e308', '2.2250738585072014e-308', '9223372036854775807', '9223372036854774784', '-9223372036854775808', '2147483647.5', '2147483647.499', '-2147483648.5', '32767.5', "'-0'", '-1e-200' ],
	f4 => [ "'NaN'", "'Infinity'", "'-Infinity'", '3.4028235e38', '-3.4028235e38', '1.1754944e-38', '2147483648', '32767.5', "'-0'" ],
	t => [ "repeat('é', 3000)", "repeat('ab%', 400)", "''", "repeat(' ', 200)", "'𝄞' || repeat('x', 130)" ],
	d => [ map { "'$_'" } 'infinity', '-infinity', '5874897-12-31', '4713-01-01 BC', '294276-12-31', '294277-01-01', '2000-01-01' ],
	ts => [ map { "'$_'" } 'infinity', '-infinity', '294276-12-31 23:59:59.999999', '4713-01-01 00:00:00 BC', '2000-01-01' ]);

# Tables of every such value; each column in an order of its own.
sub edge_tables
{
	foreach my $n (0, 1)
	{
		my $rows = (60, 24)[$n];
		my (@names, @rows);
		foreach my $column (@tame)
		{
			my ($name, @values) = @$column;
			@values = @{ $wild{$name} } if $n == 1 && $wild{$name};
			# primes that do not divide the number of values, or else few of them would be there
			my ($step, $start) = (pick(1, grep { @values % $_ } 7, 11, 13), int rand 60);
			push @names, $name;
			# every eleventh is NULL, in another row for each column
			push @{ $rows[$_] }, ($_ + $start) % 11 == 0 ? 'NULL' : "$values[ ($_ * $step + $start) % @values ]" foreach 0 .. $rows - 1;
		}
		print "DROP TABLE IF EXISTS w$n;\nCREATE TABLE w$n (id int, i2 int2, i4 int4, dm vdomain, i8 int8, n2 numeric(10,2), n6 numeric(18,6), n0 numeric(15), dn vprice, n numeric, f8 float8, f4 float4, ",
		  "t text, tc text COLLATE \"C\", v varchar(12), b char(5), d date, ts timestamp, tz timestamptz, bo bool, iv interval, en vcolour, u uuid);\n";
		print "INSERT INTO w$n (id, ", join(', ', @names), ") VALUES\n", join(",\n", map { "($_, " . join(', ', @{ $rows[ $_ - 1 ] }) . ')' } 1 .. $rows), ";\n";
		print "VACUUM ANALYZE w$n;\n" if chance(50);
	}
}

sub column { my ($type, @a) = @_; return pick(@a) . '.' . pick(@{ $known{$type} }); }
sub any_known { return pick(@types, qw(int4 int8 numeric numeric numeric text text date timestamp float8)); }

# A constant of the values above.
sub edge
{
	my ($type) = @_;
	my $name = pick(@{ $known{$type} });
	my ($values) = grep { $_->[0] eq $name } @tame;
	my $value = pick(@$values[ 1 .. $#$values ]);
	return "($value)::" . ($type eq 'numeric' ? pick('numeric', 'numeric(12,2)', 'numeric(15,6)') : $type);
}

# An expression of what the device knows.
sub known
{
	my ($type, $depth, @a) = @_;
	my $v = sub { known($_[0], $depth - 1, @a) };
	my $c = sub { column($_[0], @a) };
	return chance(85) ? $c->($type) : edge($type) if $depth <= 0 || chance(8);
	if (chance(15))
	{
		# branches of numerics have to be of one scale
		my $branch = $type eq 'numeric' ? sub { $v->($type) . '::numeric(18,6)' } : sub { $v->($type) };
		my $case = 'CASE WHEN ' . $v->('bool') . ' THEN ' . $branch->() . (chance(30) ? ' WHEN ' . $v->('bool') . ' THEN ' . $branch->() : '') . (chance(70) ? ' ELSE ' . $branch->() : '') . ' END';
		return $case if $type =~ /^(text|bpchar|timestamptz)$/;
		return pick($case, 'coalesce(' . $branch->() . ', ' . $branch->() . ')', 'nullif(' . $branch->() . ', ' . $branch->() . ')',
			map { $_ . '(' . join(', ', map { $branch->() } 1 .. pick(2, 3, 3)) . ')' } 'greatest', 'least');
	}
	my $places = pick(0, 0, 1, 1, 2, 3, 5);
	return '(' . pick(
		$v->($type) . pick(' + ', ' - ') . $c->($type), $c->($type) . ' * ' . $c->('int2'), $v->($type) . pick(' / ', ' % ') . 'nullif(' . $c->($type) . ', 0)',
		pick('-', 'abs', '~') . '(' . $v->($type) . ')', $v->($type) . pick(' & ', ' | ', ' # ') . $v->($type), $v->($type) . pick(' << ', ' >> ') . pick(0, 1, 2, 5), $v->('numeric'), $v->('numeric'),
		pick($c->('float4'), 'round(' . $c->('float4') . '::float8)'), 'length(' . $v->(pick('text', 'bpchar')) . ')', 'octet_length(' . $v->('text') . ')',
		$v->('bool') . '::int', $c->('date') . ' - ' . $c->('date'), 'extract(' . pick(qw(year month day dow isodow doy quarter)) . ' from ' . $v->('date') . ')',
		'extract(' . pick(qw(year month day hour minute dow isodow doy quarter)) . ' from ' . $v->('timestamp') . ')') . ")::$type" if $type =~ /^int/;
	return pick(
		'(' . $v->('numeric') . pick(' + ', ' - ') . $v->('numeric') . ')', '(' . $c->('numeric') . ' * ' . $c->('numeric') . ')', '(' . $v->('numeric') . ' % nullif(' . $c->('numeric') . ', 0))',
		pick('-', 'abs', 'floor', 'ceil', 'ceiling', 'floor', 'ceil') . '(' . $v->('numeric') . ')', pick('round', 'trunc') . '(' . $v->('numeric') . ", $places)", 'round(' . $c->('numeric') . ", $places)",
		$v->('numeric') . '::' . pick('numeric(12,2)', 'numeric(10,1)', 'numeric(18,6)', 'numeric(9)'), $c->(pick('int4', 'int8', 'int2')) . '::' . pick('numeric', 'numeric(12,1)'),
		'extract(' . pick('second', 'second', 'day') . ' from ' . $v->('timestamp') . ')') if $type eq 'numeric';
	return '(' . pick(
		$v->($type) . pick(' + ', ' - ', ' * ') . $c->($type), $v->($type) . " / nullif(" . $c->($type) . ', 0)', pick('-', 'abs') . '(' . $v->($type) . ')',
		$type eq 'float4' ? ($c->('int4') . '::float4', $c->('float8') . '::float4')
		: (pick('floor', 'ceil', 'round', 'trunc', 'sign') . '(' . $v->($type) . ')', 'sqrt(abs(' . $v->($type) . '))', $c->('int8') . '::float8', $c->('numeric') . '::float8', $v->('float4') . '::float8')) . ')'
	  if $type =~ /^float/;
	return pick('substr(' . $v->('text') . ', ' . $c->('int2') . ')', 'substring(' . $v->('text') . ' from ' . pick(-3, -1, 0, 1, 2, 3) . ' for ' . pick(0, 1, 2, 5, 2147483647) . ')',
		pick('left', 'right') . '(' . $v->('text') . ', ' . pick(-3, -2, -1, 0, 1, 2, 3, $c->('int4')) . ')', pick('ltrim', 'rtrim', 'btrim') . '(' . $v->('text') . ')',
		$c->('bpchar') . '::text') if $type eq 'text';
	return '(' . pick($v->('date') . pick(' + ', ' - ') . $v->('int2'), $v->('timestamp') . '::date') . ')' if $type eq 'date';
	return '(' . pick($v->('timestamp') . pick(' + ', ' - ') . edge_interval(), $v->('date') . pick(' + ', ' - ') . edge_interval(), $v->('date') . '::timestamp',
		"date_trunc('" . pick(qw(second minute hour day week month quarter year)) . "', " . $v->('timestamp') . ')') . ')' if $type eq 'timestamp';
	if ($type eq 'bool')
	{
		my $of = any_known();
		my $op = pick('=', '=', '<>', '<', '<=', '>', '>=');
		my $text = pick('text', 'text', 'text', 'bpchar');
		my $like = pick("'a%'", "'%b%'", "'_'", "'%'", "''", "'%é_'", "'a\\%'", "'%\\\\%'", "'__%'", "'%%c%'", "'a!%' ESCAPE '!'", "'%\\_%'", "'_\\%%'", "'%本%'", "'_𝄞'", "'a_b'", "'%a'", "'%_'", "'% %'", "'!%%' ESCAPE '!'", "'é%'");
		return '(' . pick($v->($of) . " $op " . $v->($of), $v->($of) . " $op " . edge($of), $v->($of) . pick(' IS NULL', ' IS NOT NULL'), $v->($of) . pick(' IN (', ' NOT IN (') . join(', ', map { chance(8) ? 'NULL' : edge($of) } 0 .. rand 4) . ')',
			$v->('bool') . pick(' AND ', ' OR ') . $v->('bool'), $v->('bool') . pick(' AND ', ' OR ') . $v->('bool'), 'NOT ' . $v->('bool'), $v->('bool') . ' IS ' . pick('TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', 'UNKNOWN', 'NOT UNKNOWN'),
			$v->($of) . pick(' IS DISTINCT FROM ', ' IS NOT DISTINCT FROM ') . $v->($of), $v->($text) . pick(' LIKE ', ' NOT LIKE ') . $like, $v->($text) . pick(' LIKE ', ' NOT LIKE ') . $like, $c->('text') . ' LIKE ' . $c->('text'),
			'starts_with(' . $v->('text') . ', ' . edge('text') . ')', $v->($of) . ' BETWEEN ' . $v->($of) . ' AND ' . $v->($of), $v->('int4') . " $op " . $v->('int8'), $v->('date') . " $op " . $v->('timestamp'),
			$v->('float4') . " $op " . $v->('float8'), $v->('text') . " COLLATE \"C\" $op " . edge('text')) . ')';
	}
	return $c->($type);
}

sub edge_interval { return pick("'1 day'", "'1 month'", "'-1 month'", "'36 hours'", "'1 year 2 days -3 hours'", "'-13 months'", "'0.000001 seconds'", "'-1 microsecond'", "'400 years'", "'1 month -1 day'") . '::interval'; }

# One step from a limit: w1 has the limits of each type, and which results are too large must be the same.
sub edge_arithmetic
{
	my ($type) = @_;
	my %more = (int2 => [ 181, 182, -182, 16384 ], int4 => [ 46341, -46341, 65536, 32768 ], int8 => [ '3037000500', '-3037000500', '4294967296', -32768 ]);
	my $column = column($type, 'a0');
	my $by = '(' . pick(-2, -1, -1, 1, 1, 2, 3, 7, (@{ $more{$type} }) x 3) . ")::$type";
	my @others = grep { $_ ne $type } qw(int2 int4 int8);
	return pick("($column + $by)", "($column + $by)", "($by + $column)", "($column - $by)", "($column - $by)", "($by - $column)", "($column * $by)", "($column * $by)", "($column * $by)", "($by * $column)", "($by * $column)",
		"($column / $by)", "(- $column)", "abs($column)", "($column " . pick('+', '-', '*') . ' ' . column(pick(@others), 'a0') . ')', '(' . column(pick(@others), 'a0') . "::$type)", '(' . column(pick('float8', 'float4', 'numeric'), 'a0') . "::$type)");
}

# An aggregate that gives the value of the group's one row back.
sub given_back
{
	my ($type, @rest) = @_;
	my $value = known($type, @rest);
	return "bool_and($value)" if $type eq 'bool';
	return pick('min', 'max') . "($value) + 0" if $type =~ /^float/;		# -0 is 0
	return pick('sum', 'sum', 'min', 'max') . "($value)" if $type =~ /^int|numeric/;
	return pick('min', 'max') . "($value)";
}

sub value_query
{
	my $wild = chance(30);
	my $depth = pick(1, 1, 2, 2, 2, 3);
	my @a = ('a0');
	my $from = 'w' . ($wild ? 1 : 0) . ' a0';
	my $where = '';
	if ($wild) { my $first = 1 + int rand 24; $where = "\nWHERE a0.id BETWEEN $first AND " . ($first + pick(0, 0, 0, 1, 3)); }
	elsif (chance(50))
	{
		# a row of the second one at most; a condition of it decides whether
		my $more = chance(35) ? ' AND ' . known('bool', $depth, 'a0', 'a1') : '';
		$from .= "\n  " . pick('JOIN', 'LEFT JOIN') . ' w0 a1 ON a1.id = ' . pick('a0.id', 'a0.id + 7', 'a0.id % 13', '61 - a0.id') . $more;
		push @a, 'a1';
	}
	my $errors = $wild ? ', errors are the same' : ', errors may differ';
	if (!$wild && chance(25))
	{
		# which pairs, by keys of any type and its neighbours
		my $type = any_known();
		my $on = known($type, pick(0, 1, $depth), 'a0') . ' = ' . known($type, pick(0, 1, $depth), 'a1');
		$on .= ' AND ' . known('bool', $depth, 'a0', 'a1') if chance(30);
		return ($errors, "SELECT a0.id, a1.id\nFROM w0 a0\n  " . pick('JOIN', 'JOIN', 'LEFT JOIN', 'FULL JOIN') . " w0 a1 ON $on") if chance(70);
		return ($errors, "SELECT a0.id\nFROM w0 a0\nWHERE " . pick('EXISTS', 'NOT EXISTS') . " (SELECT FROM w0 a1 WHERE $on)");
	}
	# as conditions: which rows
	$where .= ($where ? ' AND ' : "\nWHERE ") . join(pick(' AND ', ' OR '), map { known('bool', $depth, @a) } 0 .. rand 2) if !$wild && chance(20);
	my @types = grep { !/^(text|bpchar)$/ } map { any_known() } 1 .. ($wild ? 1 : pick(1, 2, 3, 5));
	@types = ('numeric') unless @types;
	my @list = map { given_back($_, $depth, @a) } @types;
	@list = (pick('sum', 'min', 'max') . '(' . edge_arithmetic(pick(qw(int2 int4 int8 int8))) . ')') if $wild && chance(60);
	push @list, 'count(*)' if chance(10);
	return ($errors, 'SELECT a0.id, ' . join(', ', @list) . "\nFROM $from$where\nGROUP BY 1");
}

1;
