# Random queries over tables of every type, with random expressions as join keys, conditions, group keys
# and arguments, for scripts/random_queries.pl, whose functions it uses.
#
# Most constants and values are ordinary; some are what breaks code: limits, NaN, infinities, empty and padded
# texts, bytes beyond ASCII, NULL.  Results that PostgreSQL itself leaves open (0 or -0, sums of floats in some
# order) are kept out of the lists.
use strict;
use warnings;

my @value_tables = map { "v$_" } 0 .. 3;
my %columns = (
	int2 => ['i2'], int4 => [ 'i4', 'id', 'dm' ], int8 => ['i8'], numeric => [ 'n2', 'n6', 'n0', 'dn', 'n' ],
	float8 => ['f8'], float4 => ['f4'], text => [ 't', 'tc', 'v' ], bpchar => ['b'], date => ['d'], timestamp => ['ts'],
	timestamptz => ['tz'], bool => ['bo'], interval => ['iv'], enum => ['en'], uuid => ['u']);
# what most things are made of
my @common = qw(int4 int4 int8 int2 numeric numeric text text bpchar date timestamp timestamptz bool float8 float4);

sub value_tables
{
	print "DROP TABLE IF EXISTS ", join(', ', @value_tables), " CASCADE;\nDROP TYPE IF EXISTS vcolour;\nDROP DOMAIN IF EXISTS vdomain, vprice;\n";
	print "CREATE TYPE vcolour AS ENUM ('red', 'green', 'blue');\nCREATE DOMAIN vdomain AS int CHECK (VALUE > -1000);\nCREATE DOMAIN vprice AS numeric(9,3);\n";
	my @rows = (40, 150, 600, 2500);
	foreach my $n (0 .. 3)
	{
		my $r = sub { my ($domain) = @_; $domain = pick(4, 20, 100) unless $domain; "(random() * $domain)::int" };
		my $maybe = sub { my ($value, $special) = @_; my $nulls = pick(0, 5, 5, 30);
			"CASE WHEN random() < 0.$1 THEN NULL " . (chance(40) && $special ? "WHEN random() < 0.06 THEN $special " : '') . "ELSE $value END"
			if sprintf('%02d', $nulls) =~ /(..)/; };
		my $chars = "(ARRAY['a', 'ab', 'abc ', '', 'a%', 'é', '日本', 'A', 'b_c', ' x', 'a\\\\b', 'zz'])[1 + " . $r->(11) . ']';
		my @values = (
			[ 'i2', 'int2', $maybe->($r->(), '(-32768)::int2') ], [ 'i4', 'int4', $maybe->($r->() . ' - 3', '(-2147483648)::int4') ],
			[ 'i8', 'int8', $maybe->($r->(), '9223372036854775807') ], [ 'dm', 'vdomain', $maybe->($r->()) ],
			[ 'n2', 'numeric(10,2)', $maybe->($r->() . '::numeric / 4', '(-99999999.99)') ],
			[ 'n6', 'numeric(18,6)', $maybe->($r->() . '::numeric / 8 - 1', "'NaN'::numeric") ],
			[ 'n0', 'numeric(15)', $maybe->($r->(), '999999999999999') ], [ 'n', 'numeric', $maybe->("round($chars <> '' AND random() < 0.5, 1)") ],
			[ 'f8', 'float8', $maybe->($r->() . ' / 4.0 + 0.25', pick("'NaN'::float8", "'-Infinity'::float8", "'Infinity'::float8")) ],
			[ 'f4', 'float4', $maybe->($r->() . ' / 4.0 + 0.25', "'Infinity'::float4") ],
			[ 't', 'text', $maybe->($chars . " || CASE WHEN random() < 0.1 THEN " . $r->() . "::text ELSE '' END", "repeat('é', 3000)") ],
			[ 'tc', 'text COLLATE "C"', $maybe->($chars) ], [ 'v', 'varchar(12)', $maybe->($chars) ], [ 'dn', 'vprice', $maybe->($r->() . '::numeric / 5') ],
			[ 'b', 'char(5)', $maybe->("rtrim($chars)") ],
			[ 'd', 'date', $maybe->("date '2024-02-20' + " . $r->(), pick("'infinity'::date", "'-infinity'::date", "'0044-03-15 BC'::date")) ],
			[ 'ts', 'timestamp', $maybe->("timestamp '2024-02-20 22:00' + " . $r->() . " * interval '6 hours'", pick("'infinity'::timestamp", "'1883-11-18 12:00:00.5'::timestamp")) ],
			[ 'tz', 'timestamptz', $maybe->("timestamptz '2024-03-09 22:00+00' + " . $r->() . " * interval '6 hours'", "'-infinity'::timestamptz") ],
			[ 'bo', 'bool', $maybe->('random() < 0.5') ], [ 'iv', 'interval', $maybe->($r->() . " * interval '1 day'") ],
			[ 'en', 'vcolour', $maybe->("(ARRAY['red', 'green', 'blue'])[1 + " . $r->(2) . "]::vcolour") ],
			[ 'u', 'uuid', $maybe->("md5(" . $r->() . "::text)::uuid") ]);
		foreach (@values) { $_->[2] = $maybe->("round(" . $r->() . "::numeric / 3, " . $r->(2) . ")") if $_->[0] eq 'n'; }
		@values = sort { $a->[3] <=> $b->[3] } map { [ @$_, rand ] } @values;	# offsets are fixed or not
		my $parts = chance(20);
		print "CREATE TABLE v$n (gone int, id int, ", join(', ', map { "$_->[0] $_->[1]" } @values), ")", $parts ? ' PARTITION BY HASH (id)' : '', ";\n";
		if ($parts) { print "CREATE TABLE v${n}_$_ PARTITION OF v$n FOR VALUES WITH (MODULUS 2, REMAINDER $_);\n" foreach 0, 1; }
		print "INSERT INTO v$n SELECT i, i, ", join(', ', map { $_->[2] } @values), " FROM generate_series(1, $rows[$n]) i;\n";
		print "ALTER TABLE v$n DROP COLUMN gone;\n" if chance(60);
		print "ALTER TABLE v$n ADD COLUMN added int DEFAULT 7;\n";
		print "CREATE TABLE v${n}_child (more int) INHERITS (v$n);\nINSERT INTO v${n}_child SELECT v.*, 1 FROM v$n v WHERE i2 < 20;\n" if !$parts && chance(20);
		print "CREATE INDEX ON v$n (", pick(qw(id i4 n2 t d i8)), ");\n" foreach 1 .. pick(0, 1, 2);
		print "VACUUM ANALYZE v$n;\n" if chance(60);
		print "UPDATE v$n SET i4 = i4 + 1 WHERE id % 7 = 3;\nDELETE FROM v$n WHERE id % 11 = 5;\n" if chance(30);
	}
}

sub literal
{
	my ($type) = @_;
	return 'NULL::' . ($type eq 'enum' ? 'vcolour' : $type) if chance(2);
	return int(rand 30) . '::int2' if $type eq 'int2';
	return pick(int rand 30, int rand 30, int rand 30, -1, 0, 2147483647, 7) if $type eq 'int4';
	return pick(int rand 30, 0, -5) . '::int8' if $type eq 'int8';
	return pick('0', '1', '2.5', '0.25', '-1.125', '3.00', '10', '0.000001', "'NaN'", '123456789012', '7') . '::numeric' if $type eq 'numeric';
	return pick('0', '1', '2.5', '0.25', "'NaN'", "'Infinity'", '1e300', '-7') . '::float8' if $type eq 'float8';
	return pick('0.5', '1', '2.5', "'-Infinity'") . '::float4' if $type eq 'float4';
	return pick("'a'", "'ab'", "''", "'é'", "'abc '", "'日本'", "'B'", "'a%'") . '::text' if $type eq 'text';
	return pick("'a'", "'ab   '", "''", "'é '", "'A'") . pick('::bpchar', '::char(5)') if $type eq 'bpchar';
	return pick("'2024-02-29'", "'2024-03-01'", "'infinity'", "'2024-12-31'", "'1999-01-01'") . '::date' if $type eq 'date';
	return pick("'2024-02-29 04:00'", "'2024-03-01'", "'infinity'", "'2023-02-28 23:59:59.999999'") . '::timestamp' if $type eq 'timestamp';
	return pick("'2024-03-10 10:00+00'", "'2024-03-10 02:30 America/New_York'", "'infinity'") . '::timestamptz' if $type eq 'timestamptz';
	return pick('true', 'false') if $type eq 'bool';
	return pick("'1 day'", "'1 month'", "'-1 month'", "'36 hours'", "'1 year 2 days -3 hours'") . '::interval' if $type eq 'interval';
	return pick("'red'", "'blue'") . '::vcolour' if $type eq 'enum';
	return "md5('" . int(rand 9) . "')::uuid";
}

sub value_column { my ($type, @aliases) = @_; return pick(@aliases) . '.' . pick(@{ $columns{$type} }); }

# An expression of a type over columns of the aliases.
sub value
{
	my ($type, $depth, @a) = @_;
	my $v = sub { value($_[0], $depth - 1, @a) };
	return chance(80) ? value_column($type, @a) : literal($type) if $depth <= 0 || chance(30);
	if (chance(22))
	{
		my $c = pick('case', 'case', 'case_of', 'coalesce', 'nullif', 'greatest');
		return 'CASE WHEN ' . $v->('bool') . ' THEN ' . $v->($type) . (chance(30) ? ' WHEN ' . $v->('bool') . ' THEN ' . $v->($type) : '')
		  . (chance(70) ? ' ELSE ' . $v->($type) : '') . ' END' if $c eq 'case';
		my $of = pick(@common);
		return 'CASE ' . $v->($of) . ' WHEN ' . literal($of) . ' THEN ' . $v->($type) . ' WHEN ' . $v->($of) . ' THEN ' . $v->($type)
		  . ' ELSE ' . $v->($type) . ' END' if $c eq 'case_of';
		return 'coalesce(' . $v->($type) . ', ' . $v->($type) . (chance(30) ? ', ' . literal($type) : '') . ')' if $c eq 'coalesce';
		return 'nullif(' . $v->($type) . ', ' . $v->($type) . ')' if $c eq 'nullif';
		return pick('greatest', 'least') . '(' . $v->($type) . ', ' . $v->($type) . ')';
	}
	if ($type =~ /^int\d/)
	{
		my $narrow = $type eq 'int2' ? 'int2' : $type eq 'int4' ? pick('int4', 'int4', 'int2') : pick('int8', 'int4', 'int2');
		my $t = sub { "($_[0])::$type" };
		return $t->(pick(
			$v->($type) . pick(' + ', ' - ') . $v->($narrow), $v->($type) . ' * ' . $v->($narrow), $v->($type) . pick(' / ', ' % ') . 'nullif(' . $v->($narrow) . ', 0)',
			$v->($type) . pick(' / ', ' % ') . $v->($narrow), pick('-', 'abs', '@', '~') . '(' . $v->($type) . ')', $v->($type) . pick(' & ', ' | ', ' # ') . $v->($type),
			'length(' . $v->('text') . ')', 'octet_length(' . $v->(pick('text', 'bpchar')) . ')', 'length(' . $v->('bpchar') . ')', $v->('date') . ' - ' . $v->('date'),
			'extract(' . pick(qw(year month day dow isodow doy quarter)) . ' from ' . $v->('date') . ')',
			'extract(' . pick(qw(year month day hour minute dow)) . ' from ' . $v->('timestamp') . ')',
			$v->('numeric'), $v->('float8'), $v->('bool') . '::int', 'position(' . literal('text') . ' in ' . $v->('text') . ')'));
	}
	if ($type eq 'numeric')
	{
		return '(' . pick(
			$v->('numeric') . pick(' + ', ' - ', ' * ') . $v->('numeric'), $v->('numeric') . pick(' + ', ' - ', ' * ') . $v->('numeric'),
			$v->('numeric') . ' % nullif(' . $v->('numeric') . ', 0)', $v->('numeric') . ' % ' . $v->('numeric'), $v->('numeric') . ' / ' . $v->('numeric'),
			pick('-', 'abs', 'floor', 'ceil', 'sign') . '(' . $v->('numeric') . ')', pick('round', 'trunc') . '(' . $v->('numeric') . ', ' . pick(0, 1, 1, 2, 3, 5, -1) . ')',
			$v->('numeric') . '::' . pick('numeric(10,2)', 'numeric(4,1)', 'numeric(18,6)', 'numeric(5)', 'numeric'), $v->(pick('int4', 'int8', 'int2')) . '::numeric',
			'extract(' . pick('second', 'day') . ' from ' . $v->('timestamp') . ')') . ')';
	}
	return '(' . pick($v->($type) . pick(' + ', ' - ', ' * ') . $v->($type), $v->($type) . " / nullif(" . $v->($type) . ', 0)', 'abs(' . $v->($type) . ')',
		($type eq 'float4' ? 'abs' : pick('sqrt', 'floor', 'ceil', 'round', 'trunc', 'sign')) . '(' . $v->($type) . ')', $v->('int4') . "::$type", $v->('numeric') . "::$type",
		$v->($type eq 'float4' ? 'float8' : 'float4') . "::$type") . ')' if $type =~ /^float/;
	return pick('substr(' . $v->('text') . ', ' . $v->('int4') . ')', 'substring(' . $v->('text') . ' from ' . pick(-1, 0, 1, 2) . ' for ' . pick(0, 1, 2, 5) . ')',
		pick('left', 'right') . '(' . $v->('text') . ', ' . pick(-1, 0, 1, 2, 2147483647, '(-2147483648)') . ')', pick('ltrim', 'rtrim', 'btrim', 'upper') . '(' . $v->('text') . ')',
		'(' . $v->('text') . ' || ' . $v->('text') . ')', $v->('bpchar') . '::text', '(' . $v->('text') . ')::varchar(3)') if $type eq 'text';
	return '(' . pick($v->('date') . pick(' + ', ' - ') . $v->('int4'), $v->('timestamp') . '::date', $v->('timestamptz') . '::date') . ')' if $type eq 'date';
	return '(' . pick($v->('timestamp') . pick(' + ', ' - ') . literal('interval'), $v->('date') . pick(' + ', ' - ') . literal('interval'), $v->('date') . '::timestamp',
		"date_trunc('" . pick(qw(second minute hour day week month quarter year)) . "', " . $v->('timestamp') . ')', $v->('timestamp') . ' + ' . $v->('interval'),
		$v->('timestamptz') . '::timestamp') . ')' if $type eq 'timestamp';
	return '(' . pick($v->('timestamptz') . ' + ' . literal('interval'), $v->('timestamp') . '::timestamptz', $v->('date') . '::timestamptz',
		"date_trunc('day', " . $v->('timestamptz') . ')') . ')' if $type eq 'timestamptz';
	if ($type eq 'bool')
	{
		my $of = pick(@common);
		my $text = pick('text', 'text', 'bpchar');
		my $like = pick("'a%'", "'%b%'", "'_'", "'%'", "''", "'%é_'", "'a\\%'", "'%\\\\%'", "'__%'", "'%%c%'", "'a!%' ESCAPE '!'");
		my $in = join(', ', map { literal($of) } 0 .. rand 4);
		my $op = pick('=', '=', '<>', '<', '<=', '>', '>=');
		# mostly plain comparisons of columns: they leave rows for everything else to show
		return '(' . value($of, chance(60) ? 0 : 1, @a) . " $op " . value($of, chance(60) ? 0 : 1, @a) . ')' if chance(40);
		return '(' . pick($v->($of) . " $op " . $v->($of), $v->($of) . " $op " . literal($of), $v->($of) . pick(' IS NULL', ' IS NOT NULL'), $v->($of) . pick(' IN (', ' NOT IN (') . "$in)",
			$v->('bool') . pick(' AND ', ' OR ') . $v->('bool'), 'NOT ' . $v->('bool'), $v->('bool') . ' IS ' . pick('TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', 'UNKNOWN', 'NOT UNKNOWN'),
			$v->($of) . pick(' IS DISTINCT FROM ', ' IS NOT DISTINCT FROM ') . $v->($of), $v->($text) . pick(' LIKE ', ' NOT LIKE ') . $like, 'starts_with(' . $v->('text') . ', ' . literal('text') . ')',
			$v->($of) . ' BETWEEN ' . $v->($of) . ' AND ' . $v->($of), $v->('int4') . " $op " . $v->('int8'), $v->('date') . " $op " . $v->('timestamp'), $v->('float4') . " $op " . $v->('float8'),
			$v->('text') . " COLLATE \"C\" $op " . literal('text'), $v->('enum') . pick(' = ', ' <> ') . $v->('enum'), $v->('date') . " $op " . $v->('timestamptz'),
			$v->(pick('int2', 'int4')) . "::oid $op " . pick($v->(pick('int2', 'int4')), 3, '4294967295') . '::oid') . ')';
	}
	return chance(80) ? value_column($type, @a) : literal($type);
}

# What a list may show: of floats, only what has one representation.
sub shown
{
	my ($type, $depth, @a) = @_;
	my $value = value($type, $depth, @a);
	return $value =~ /^\w+\.(n[026]|dn)$/ ? $value : "($value)::numeric(18,4)" if $type eq 'numeric';
	return $type =~ /^float/ ? "($value + 0)" : $value;
}

sub any_type { return chance(88) ? pick(@common) : pick('interval', 'enum', 'uuid', 'int4'); }

# A condition that can hash, mostly over columns.
sub value_equality
{
	my ($x, $y) = @_;
	return "$x.i4 = $y.i8" if chance(8);
	return "$x.n2 = $y.n6" if chance(8);
	return "$x.f4 = $y.f8" if chance(5);
	return "$x.d = $y.ts" if chance(5);
	return "$x.t = $y.v" if chance(5);
	my $type = any_type();
	my $depth = chance(60) ? 0 : pick(1, 1, 2);
	return value($type, $depth, $x) . ' = ' . value($type, $depth, $y);
}

sub value_from
{
	my ($n) = @_;
	my @a = ('a0');
	my $text = pick(@value_tables) . ' a0';
	foreach my $i (1 .. $n - 1)
	{
		my $type = pick('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
		my @on = ("a$i." . pick('id = ', 'i4 = ') . pick(@a) . '.' . pick('id', 'i4'));
		@on = ("a$i.id = " . pick(@a) . '.id') if chance(50);
		@on = (value_equality("a$i", pick(@a)), chance(60) ? "a$i.id % 4 = $a[0].id % 4" : "a$i.id = $a[0].id") if chance(35);
		push @on, value('bool', pick(1, 1, 2), "a$i", @a) if chance(30) && $type ne 'FULL JOIN';
		@on = reverse @on if chance(20);
		$text .= "\n  $type " . pick(@value_tables[ 0 .. ($n > 2 ? 1 : 2) ]) . " a$i ON " . join(' AND ', @on);
		push @a, "a$i";
	}
	return ($text, @a);
}

sub value_aggregate
{
	my (@a) = @_;
	my $depth = pick(0, 1, 1, 2);
	my $type = pick('int4', 'int8', 'int2', 'numeric', 'numeric', 'numeric');
	my $any = pick(qw(int4 int8 int2 numeric int2 numeric date timestamp timestamptz text));
	my $text = pick(pick('sum', 'avg', 'sum') . '(' . value($type, $depth, @a) . ')', pick('min', 'max') . '(' . shown($any, $depth, @a) . ')',
		'count(' . value(any_type(), $depth, @a) . ')', pick('bool_and', 'bool_or') . '(' . value('bool', $depth, @a) . ')', 'count(*)',
		pick('stddev', 'var_pop') . '(' . value(pick('int4', 'int2'), 0, @a) . ')', 'count(DISTINCT ' . value(any_type(), $depth, @a) . ')',
		'sum(' . (chance(50) ? 'DISTINCT ' : '') . shown('numeric', 0, @a) . ')');
	return chance(25) ? "$text FILTER (WHERE " . value('bool', pick(1, 2), @a) . ')' : $text;
}

sub value_subquery
{
	my (@a) = @_;
	my $s = pick(@value_tables[ 0 .. 2 ]) . ' s';
	my $where = chance(60) ? ' AND ' . value('bool', 1, 's') : '';
	return pick('EXISTS', 'NOT EXISTS') . " (SELECT FROM $s WHERE " . value_equality('s', pick(@a)) . $where
	  . (chance(25) ? ' AND ' . value('bool', 1, 's', pick(@a)) : '') . ')' if chance(70);
	my $type = pick(@common);
	return value($type, 0, @a) . " IN (SELECT " . value($type, pick(0, 1), 's') . " FROM $s WHERE true$where)";
}

# A query of expressions; the caller's transaction undoes what it changes.
sub expression_query
{
	my ($from, @a) = value_from(pick(1, 2, 2, 2, 2, 3, 3));
	my @where = map { value('bool', pick(1, 1, 2, 3), @a) } 1 .. pick(0, 1, 1);
	push @where, value_subquery(@a) if chance(25);
	my $where = @where ? "\nWHERE " . join(' AND ', @where) : '';
	my $kind = rand 100;
	if ($kind < 55)			# groups
	{
		my @keys = grep { /\ba\d\./ } map { shown(any_type(), pick(0, 0, 0, 1, 2), @a) } 1 .. pick(1, 1, 2, 3);
		@keys = ('a0.dn') unless @keys;
		return 'SELECT DISTINCT ' . join(', ', @keys) . "\nFROM $from$where" if chance(15);
		my @list = map { value_aggregate(@a) } 1 .. pick(1, 2, 3);
		my $group = chance(15) ? '' : "\nGROUP BY " . join(', ', @keys);
		@keys = () unless $group;
		$group .= "\nHAVING " . pick('count(*) > 1', 'sum(a0.n2) > 2.5', 'count(*) > (SELECT min(id) FROM v0)', 'bool_or(' . value('bool', 1, @a) . ')') if chance(20);
		$group .= "\nORDER BY " . join(', ', map { "$_ " . pick('', 'DESC', 'NULLS FIRST') } 1 .. @keys + @list) . (chance(60) ? ' LIMIT ' . pick(1, 5, 40) : '') if chance(25);
		push @list, window_over(@keys) if @keys && chance(10);
		my $query = 'SELECT ' . join(', ', @keys, @list) . "\nFROM $from$where$group";
		return "SELECT count(*) OVER (), q.* FROM ($query) q" if chance(5);
		return "WITH q AS " . pick('', 'MATERIALIZED ') . "($query) SELECT * FROM q" . pick(' UNION ALL', ' EXCEPT', ' INTERSECT') . " SELECT * FROM q" if chance(5);
		return $query;
	}
	my @list = map { shown(any_type(), pick(0, 0, 0, 1, 2, 3), @a) } 1 .. pick(1, 3, 6);
	push @list, pick(@a) if chance(5);
	push @list, pick(@a) . pick('.ctid', '.added', '.tableoid::regclass') if chance(20);
	push @list, "(SELECT count(*) FROM v0 z WHERE z.i2 = $a[0].i2)" if chance(4);
	return 'SELECT ' . join(', ', @list) . "\nFROM $from$where";
}

1;
