# Three servers: two have the partitions of two tables, the third one joins them over postgres_fdw.  Answers
# are those of plain tables, the servers use their devices, and a gpujoind can die on one of them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $main = new_node('main', preload => 1);
my @workers = map { new_node("worker$_", preload => 1) } (1, 2);
ok(on_device($_), $_->name . ': there is a device') foreach $main, @workers;

# Something like TPC-H, in plain tables first.
my %columns = (
	orders => 'o_orderkey int, o_custkey int, o_orderdate date, o_priority text, o_total numeric(12,2)',
	lineitem => 'l_orderkey int, l_suppkey int, l_quantity int, l_price numeric(12,2), l_discount numeric(4,2), l_shipdate date, l_receiptdate date, l_shipmode text, l_flag text');
my $sql = q{
	CREATE TABLE customer AS SELECT i AS c_custkey, i % 25 AS c_nationkey, (ARRAY['BUILDING', 'MACHINERY', 'FURNITURE'])[i % 3 + 1] AS c_segment FROM generate_series(1, 1500) i;
	CREATE TABLE nation AS SELECT i AS n_nationkey, 'nation ' || i AS n_name FROM generate_series(0, 24) i;
	CREATE TABLE orders_all AS SELECT i AS o_orderkey, i * 7919 % 1000 + 1 AS o_custkey, date '1995-01-01' + i % 1000 AS o_orderdate,
		i % 5 || '-PRIORITY' AS o_priority, (i % 9973)::numeric(12,2) AS o_total FROM generate_series(1, 15000) i;
	CREATE TABLE lineitem_all AS SELECT i * 31 % 15000 + 1 AS l_orderkey, i % 100 AS l_suppkey, i % 50 + 1 AS l_quantity, (i % 99991 / 100.0)::numeric(12,2) AS l_price,
		(i % 11 / 100.0)::numeric(4,2) AS l_discount, date '1995-01-01' + i * 31 % 1000 + i % 60 AS l_shipdate, date '1995-01-01' + i * 31 % 1000 + i % 90 AS l_receiptdate,
		(ARRAY['MAIL', 'SHIP', 'RAIL', 'AIR'])[i % 4 + 1] AS l_shipmode, (ARRAY['A', 'N', 'R'])[i % 3 + 1] AS l_flag FROM generate_series(1, 60000) i;
	CREATE EXTENSION postgres_fdw;
};
foreach my $i (0, 1)
{
	my ($host, $port) = ($workers[$i]->host, $workers[$i]->port);
	$sql .= "CREATE SERVER worker$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', fetch_size '5000', use_remote_estimate 'true', "
	  . "batch_size '1000', options '-c gpujoin.force=on -c cursor_tuple_fraction=1');\nCREATE USER MAPPING FOR CURRENT_USER SERVER worker$i;\n";
}
foreach my $table (sort keys %columns)
{
	my ($key) = split ' ', $columns{$table};
	$sql .= "CREATE TABLE $table ($columns{$table}) PARTITION BY HASH ($key);\n";
	foreach my $i (0, 1)
	{
		$workers[$i]->safe_psql('postgres', "CREATE TABLE $table ($columns{$table})");
		$sql .= "CREATE FOREIGN TABLE ${table}_$i PARTITION OF $table FOR VALUES WITH (MODULUS 2, REMAINDER $i) SERVER worker$i OPTIONS (table_name '$table');\n";
	}
	$sql .= "INSERT INTO $table SELECT * FROM ${table}_all;\n";
}
$main->safe_psql('postgres', "$sql ANALYZE");
$_->safe_psql('postgres', 'VACUUM ANALYZE') foreach @workers;

my $partitionwise = 'SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;';
my %queries = (
	'Q3' => "SELECT l_orderkey, sum(l_price * (1 - l_discount)) AS revenue, o_orderdate FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
		WHERE c_segment = 'BUILDING' AND o_orderdate < '1996-06-01' AND l_shipdate > '1996-01-01' GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, l_orderkey LIMIT 10",
	'Q4' => "SELECT o_priority, count(*) FROM orders WHERE o_orderdate < '1997-01-01' AND EXISTS (SELECT FROM lineitem WHERE l_orderkey = o_orderkey AND l_shipdate < l_receiptdate) GROUP BY 1 ORDER BY 1",
	'Q5' => "SELECT n_name, sum(l_price * (1 - l_discount)) FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN nation ON c_nationkey = n_nationkey
		WHERE o_orderdate >= '1995-06-01' GROUP BY 1 ORDER BY 2 DESC, 1",
	'Q12' => "SELECT l_shipmode, count(*) FILTER (WHERE o_priority < '2'), count(*) FILTER (WHERE o_priority >= '2') FROM orders JOIN lineitem ON o_orderkey = l_orderkey
		WHERE l_shipmode IN ('MAIL', 'SHIP') GROUP BY 1 ORDER BY 1",
	'Q13' => "SELECT n, count(*) FROM (SELECT c_custkey, count(o_orderkey) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY 1) x GROUP BY 1 ORDER BY 1",
	'by the partition key' => "SELECT count(*), sum(n), sum(v) FROM (SELECT o_orderkey, count(*) AS n, sum(l_quantity) AS v FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY 1 OFFSET 0) x");

sub answer
{
	my ($query, $settings) = @_;
	my ($out, $err);
	$main->psql('postgres', "$partitionwise $settings; $query", stdout => \$out, stderr => \$err);
	return ($out, $err);
}

# Programs that have completed on the devices of a server.
sub runs { return $_[0]->safe_psql('postgres', "SELECT coalesce(sum(count), 0) FROM gpujoin_stat WHERE outcome = 'completed'"); }

my %expected;
foreach my $name (sort keys %queries)
{
	my $plain = $queries{$name} =~ s/\b(orders|lineitem)\b(?! ON)/$1_all/gr;
	$plain =~ s/\b(orders|lineitem) ON/$1_all ON/g;
	($expected{$name}) = answer($plain, 'SET gpujoin.enabled = off');
	isnt($expected{$name}, '', "$name: there are rows");
	foreach my $local ('off', 'on')
	{
		my @before = map { runs($_) } @workers;
		my ($out) = answer($queries{$name}, "SET gpujoin.enabled = $local; SET gpujoin.force = on");
		is($out, $expected{$name}, "$name: equal, with gpujoin $local where they come together");
		my @after = map { runs($_) } @workers;
		# with one table there is nothing to join there, and semi joins are sent from 17 on
		ok($after[0] > $before[0] && $after[1] > $before[1], "$name: both servers used their devices") unless $name =~ /^Q(4|13)$/;
	}
}

# the join goes to the servers as SQL, and the aggregates if they are grouped by the partition key
like((answer("EXPLAIN (VERBOSE, COSTS OFF) $queries{Q12}", 'SET gpujoin.enabled = off'))[0], qr/Remote SQL: SELECT .* INNER JOIN /, 'joins are sent');
like((answer("EXPLAIN (VERBOSE, COSTS OFF) $queries{'by the partition key'}", 'SET gpujoin.enabled = off'))[0], qr/Remote SQL: SELECT .*count\(\*\).* GROUP BY /, 'aggregates are sent');
unlike((answer("EXPLAIN (VERBOSE, COSTS OFF) $queries{Q12}", 'SET gpujoin.enabled = off'))[0], qr/Remote SQL: SELECT .*count\(\*\)/, 'but not those of other groups');

# gpujoind of one server dies again and again, while queries run
my ($equal, $lost) = (0, 0);
my %running;
for my $round (1 .. 6)
{
	my %runs = map { $_ => start_psql($main, "$partitionwise SET gpujoin.force = on; $queries{$_};") } keys %queries;
	usleep(30_000 * $round);
	kill 'KILL', daemon_pids($workers[0]);
	foreach my $name (sort keys %runs)
	{
		my ($out, $err) = finish($runs{$name});
		if ($out eq $expected{$name}) { $equal++ }
		elsif ($out eq '' && $err =~ /gpujoin lost its device after rows had been returned/) { $lost++ }
		else { fail("$name, round $round: $out $err") }
	}
}
note("$equal queries were answered, $lost ended with an error");
cmp_ok($equal, '>=', 12, 'most queries were answered');
ok(on_device($workers[0]), 'the server has a device again');
foreach my $name (sort keys %queries)
{
	is((answer($queries{$name}, 'SET gpujoin.force = on'))[0], $expected{$name}, "$name: equal after that");
}
is($_->safe_psql('postgres', "SELECT count(*) FROM gpujoin_stat WHERE outcome IN ('program damaged', 'device error') AND count > 0"), '0', $_->name . ': no other failure')
  foreach $main, @workers;
$_->stop foreach $main, @workers;
done_testing();
