# Random queries with GROUP BY, DISTINCT and aggregates over a table alone, for
# scripts/random_queries.pl, whose functions it uses.
use strict;
use warnings;

sub grouped_aggregates
{
	my (@aliases) = @_;
	my @list = aggregates(@aliases);
	push @list, pick('bool_and', 'bool_or', 'every') . '(' . condition(1, @aliases) . ')' if chance(30);
	if (chance(25))
	{
		my @narrow = map { my $a = $_; map { name_of($a, $_) } of_type($a, 'int4'), of_type($a, 'int2'), of_type($a, 'int8') } @aliases;
		push @list, pick('stddev', 'variance', 'var_pop', 'stddev_pop') . '(' . pick(@narrow) . ')' if @narrow;
	}
	if (chance(15))
	{
		my @floats = map { my $a = $_; map { name_of($a, $_) } of_type($a, 'float8') } @aliases;
		# the last digits may differ, and what is rounded must not lie halfway
		push @list, 'round((' . pick('stddev', 'variance', 'var_pop', 'stddev_pop') . '(' . pick(@floats) . ') * 1.0000001)::numeric, 2)' if @floats;
	}
	push @list, 'count(DISTINCT ' . integer_expression(@aliases) . ')' if chance(20);
	return map { /^(count\(DISTINCT|round)/ || !chance(25) ? $_ : "$_ FILTER (WHERE " . condition(1, @aliases) . ')' } @list;
}

# A key: mostly a column, of any type.
sub group_key
{
	my (@aliases) = @_;
	return integer_expression(@aliases) if chance(15);
	return '(' . condition(1, @aliases) . ')' if chance(15);
	my $a = pick(@aliases);
	my @texts = map { name_of($a, $_) } of_type($a, 'text');
	# few letters take few bytes, or not
	my $n = pick(1, 2, 2, 3);
	return pick(map { ("left($_, $n)", "substr($_, " . pick(0, 1, 2) . ", $n)") } @texts) if @texts && chance(8);
	my @known = grep { $_->{kind}[0] !~ /numeric|\[\]/ } @{ $a->{table}{columns} };
	return name_of($a, pick(chance(95) ? @known : @{ $a->{table}{columns} }));
}

# A window function over groups by some keys, which asks for what these are made of.
sub window_over
{
	my @keys = @_;
	my ($k, $order) = (pick(@keys), pick(@keys));
	return pick("count($k) OVER (PARTITION BY $order)", "rank() OVER (ORDER BY $k, count(*))", "count($k) FILTER (WHERE $k IS NOT NULL) OVER (ORDER BY $order DESC)",
		"sum(count(*)) OVER (ORDER BY $k)", "($k IS NULL)::int + count(*) OVER ()", "dense_rank() OVER (PARTITION BY $order ORDER BY $k)");
}

# What write_query() writes, without parameters.
sub group_query
{
	my ($text, $rows, @aliases);
	do
	{
		if (chance(35))
		{
			@aliases = ({ name => 'a0', table => some_table() });
			($text, $rows) = ("$aliases[0]{table}{name} a0", 1000);
		}
		else { ($text, $rows, @aliases) = join_of(pick(2, 2, 2, 3, 3, 4)); }
	} until $text && $rows < 1e6 && ($rows > 50 || chance(5));
	my @where = map { condition(1, @aliases) } 1 .. pick(0, 0, 1, 1, 2);
	my $from = "\nFROM $text" . (@where ? "\nWHERE " . join(' AND ', @where) : '');
	my @keys = map { group_key(@aliases) } 1 .. pick(1, 1, 1, 2, 2, 3, 5);
	return 'SELECT DISTINCT ' . join(', ', @keys) . $from . (chance(40) ? first_rows([ 1 .. @keys ], 1 .. @keys) : '') if chance(15);
	my @list = grouped_aggregates(@aliases);
	my $after = chance(15) ? '' : "\nGROUP BY " . join(', ', @keys);
	@keys = () unless $after;
	$after .= "\nHAVING " . pick('count(*) > 2', 'max(' . integer_expression(@aliases) . ') > 3', "$list[-1] IS NOT NULL") if chance(25);
	push @keys, "count(*) + ($keys[0] IS NULL)::int" if @keys && chance(10);
	$after .= first_rows([ 1 .. @keys + @list ], 1 .. @keys) if @keys && chance(40);
	push @list, window_over(@keys) if @keys && chance(10);
	return 'SELECT ' . join(', ', @keys, @list) . $from . $after;
}

1;
