# Large inner sides of a run on several devices, which exchange rows by their join keys: the same rows as ever.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session() . ' SET gpujoin.exchange = on;';
my $node = new_node('exchange', preload => 1, conf => "gpujoin.devices_per_query = 0\nwork_mem = '16MB'\ngpujoin.cache_size = 0\n");
$node->safe_psql('postgres', q{
	-- every tenth key twice, keys that are NULL, values that are, text of both sides
	CREATE TABLE l AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 90000 END AS k, nullif(i % 10, 3)::int2 AS v,
		CASE WHEN i % 7 > 0 THEN repeat('l', i % 20) || i % 90000 END AS t, i * 0.5::float8 AS f FROM generate_series(1, 150000) i;
	CREATE TABLE r AS SELECT i AS id, CASE WHEN i % 303 = 0 THEN NULL ELSE i + 10000 END AS k, i % 9 AS v, repeat('r', i % 17) || i AS u,
		CASE WHEN i % 5 > 0 THEN repeat('l', i % 20) || i END AS t FROM generate_series(1, 100000) i;
	CREATE TABLE more AS SELECT i AS k, i % 7 AS v FROM generate_series(1, 400000) i;
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w, 's' || i AS t FROM generate_series(1, 200) i;
	-- half of the rows of either side have one key; no row; a few rows, all with one key
	CREATE TABLE hot AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 7 ELSE i END AS k, i % 100 AS v FROM generate_series(1, 40000) i;
	CREATE TABLE none (k int, v int);
	CREATE TABLE one AS SELECT 7 AS k, i AS v FROM generate_series(1, 5) i;
	CREATE TABLE long AS SELECT i AS k, repeat(md5(i::text), 20) AS t FROM generate_series(1, 40000) i;
	VACUUM ANALYZE l, r, more, few, hot, none, one, long;
});
my %queries = (
	sums => 'SELECT count(*), sum(l.id + r.v), min(l.v), max(r.id), avg(l.v) FROM l JOIN r USING (k)',
	text => 'SELECT count(*), sum(hashtext(lt)::int8), sum(hashtext(u)::int8), sum(hashtext(rt)::int8), count(lt), count(rt) FROM (SELECT l.t AS lt, r.u, r.t AS rt FROM l JOIN r USING (k) OFFSET 0) x',
	textkey => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.t = r.t',
	twokeys => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.k = r.k AND l.v = r.v',
	floatkey => 'SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r ON l.f = r.id',
	filters => "SELECT count(*), sum(l.id), sum(r.id) FROM l JOIN r USING (k) WHERE l.t LIKE '%7%' AND r.u LIKE '%1%' AND l.v < r.v",
	left => 'SELECT count(*), sum(l.id), sum(r.id), count(r.v) FROM l LEFT JOIN r ON l.k = r.k AND l.v < r.v',
	right => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v) FROM l RIGHT JOIN r ON l.k = r.k AND l.v < r.v',
	full => 'SELECT count(*), sum(l.id), sum(r.id), count(l.v), count(r.v) FROM l FULL JOIN r ON l.k = r.k',
	semi => 'SELECT count(*), sum(l.id) FROM l WHERE EXISTS (SELECT FROM r WHERE l.k = r.k AND r.v > 3)',
	anti => 'SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE l.k = r.k AND l.v < r.v)',
	rightsemi => 'SELECT count(*), sum(r.id) FROM r WHERE r.id > 50000 AND EXISTS (SELECT FROM l WHERE l.k = r.k)',
	rightanti => 'SELECT count(*), sum(r.id) FROM r WHERE r.id > 50000 AND NOT EXISTS (SELECT FROM l WHERE l.k = r.k)',
	notin => 'SELECT count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = coalesce(l.k, -1))',
	chain => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l JOIN r USING (k) JOIN few ON few.k = r.v',
	chainleft => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.w) FROM l LEFT JOIN few ON few.k = l.v LEFT JOIN r ON r.k = l.k',
	# rows of the exchanged side, and of one that every device has, come out at the end
	fulls => 'SELECT count(*), sum(l.id), sum(r.id), sum(few.k), count(few.w) FROM l FULL JOIN r ON l.k = r.k FULL JOIN few ON few.k = r.id + 99900',
	# ... of a side before it: that step alone can be exchanged
	fullfirst => 'SELECT count(*), sum(l.id), sum(few.k), sum(r.id) FROM l FULL JOIN few ON few.k = l.id + 149900 LEFT JOIN r ON r.k = coalesce(l.k, 10001)',
	groups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT l.v, count(*), sum(l.id), min(r.k), count(DISTINCT r.v) FROM l JOIN r USING (k) GROUP BY l.v) x",
	keys => 'SELECT count(*), sum(n), sum(s), sum(m) FROM (SELECT l.k, count(*) AS n, sum(r.v) AS s, max(l.id) AS m FROM l LEFT JOIN r USING (k) GROUP BY l.k OFFSET 0) x',
	# a column that only the filter reads does not travel
	filtered => 'SELECT count(*), sum(n), sum(s) FROM (SELECT l.k, count(*) AS n, sum(r.v) AS s FROM l JOIN r USING (k) WHERE l.f > 1000 GROUP BY l.k OFFSET 0) x',
	texts => 'SELECT count(*), sum(n), sum(length(u)) FROM (SELECT r.u, count(*) AS n FROM l RIGHT JOIN r USING (k) GROUP BY r.u OFFSET 0) x',
	limit => "SELECT string_agg(x::text, ' ') FROM (SELECT l.id, r.id, r.u FROM l JOIN r USING (k) ORDER BY l.id DESC, r.id LIMIT 20) x",
	merge => 'SELECT count(*), sum(l.id) FROM l JOIN r ON l.k = r.k AND r.id BETWEEN l.id - 20000 AND l.id',
	hot => 'SELECT count(*), sum(a.v) FROM hot a WHERE EXISTS (SELECT FROM hot b WHERE a.k = b.k)',
	hotsums => 'SELECT count(*), sum(a.v + b.v) FROM hot a JOIN (SELECT * FROM hot WHERE id <= 2000) b USING (k)',
	empty => 'SELECT count(*), sum(l.id) FROM l JOIN none USING (k)',
	emptyleft => 'SELECT count(*), sum(l.id), count(none.v) FROM l LEFT JOIN none USING (k)',
	nothing => 'SELECT count(*), sum(one.v) FROM none JOIN one USING (k)',
	one => 'SELECT count(*), sum(l.id), sum(one.v) FROM l JOIN one USING (k)');
my $large = 'SELECT count(*), sum(a.v + b.v) FROM more a JOIN more b USING (k)';
my %answers = map { $_ => native_answer($node, $queries{$_}) } keys %queries;

foreach my $n (2, 4)
{
	restart_with_devices($node, $n);
	foreach my $name (sort keys %queries)
	{
		my $plan = plan_of($node, $queries{$name}, $session);

		is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "$n devices, $name: right rows");
		unlike($plan, qr/Fallback|Spilled/, "$n devices, $name: neither fallback nor parts");
		next if $name eq 'fullfirst' || $name eq 'nothing';
		is(scalar(@{ received($plan, 'keys') }), $n, "$n devices, $name: exchanged");
	}
	my @bytes = @{ received(plan_of($node, $queries{sums}, $session), 'keys') };
	cmp_ok(scalar(grep { $_ > 100000 } @bytes), '>=', $n - 1, "$n devices: they get rows of the others");
	cmp_ok(scalar(grep { $_ > 100000 } @{ received(plan_of($node, $queries{keys}, $session), 'keys') }), '>=', $n - 1, "$n devices: also where groups are put together");
	my ($used) = plan_of($node, $queries{sums}, $session) =~ /Devices Used: (.*)/;
	my @rows = $used =~ /rows=(\d+)/g;
	is(scalar(grep { $_ > 150000 / $n * 0.8 && $_ < 150000 / $n * 1.3 } @rows), $n, "$n devices: each has its part of the rows");
	is(scalar(@{ received(plan_of($node, $queries{sums}, "$session SET gpujoin.exchange = $_;"), 'keys') }), 0, "$n devices: $_: small tables are not exchanged") foreach qw(auto off);

	# an inner side that fits no device, but all of them together
	my $limit = $n == 2 ? '12MB' : '7MB';
	if ($n == 4)
	{
		my $memory = plan_of($node, $large, "$session SET gpujoin.exchange = auto; SET gpujoin.device_memory_limit = '24MB';");
		is(scalar(@{ received($memory, 'keys') }), $n, "$n devices of little memory: exchanged");
		unlike($memory, qr/Fallback|Spilled/, "$n devices of little memory: neither fallback nor parts");
		like(plan_of($node, $large, "$session SET gpujoin.exchange = off; SET gpujoin.device_memory_limit = '24MB';"), qr/Spilled/, "$n devices of little memory: else in parts");
	}
	foreach my $name (sort keys %queries)
	{
		is($node->safe_psql('postgres', "$session SET gpujoin.device_memory_limit = '$limit'; $queries{$name}"), $answers{$name},
			"$n devices of little memory, $name: right rows");
	}

	# long texts of the inner side travel in blocks that are bounded as well
	if ($n == 2)
	{
		my $texts = 'SELECT count(*), sum(id), sum(length(t)) FROM (SELECT l.id, long.t FROM l LEFT JOIN long ON l.k = long.k AND l.v <> length(long.t) OFFSET 0) x';
		my $memory = "SET gpujoin.device_memory_limit = '40MB';";
		unlike(plan_of($node, $texts, "$session $memory"), qr/Fallback|Spilled/, "$n devices of little memory, long texts: neither fallback nor parts");
		is($node->safe_psql('postgres', "$session $memory $texts"), native_answer($node, $texts), "$n devices of little memory, long texts: right rows");
	}

	# failures on one of them, and of all
	foreach my $name (qw(sums full text groups))
	{
		right_when_failing($node, $queries{$name}, $session, $answers{$name}, "$n devices, $name", qw(memory build probe overflow), $name eq 'text' ? () : 'output');
	}
	is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");

	# cancelled while they work, left before the end, and several at once
	cancelled($node, $queries{sums}, $session, "$n devices");
	is($node->safe_psql('postgres', "$session SELECT count(*) FROM (SELECT l.id FROM l JOIN r USING (k) LIMIT 5) x"), 5, "$n devices: a few rows");
	is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");
	is(right_sessions($node, 5, "SET gpujoin.exchange = on; $queries{sums}; $queries{texts};", "$answers{sums}\n$answers{texts}"), 5, "$n devices: five sessions have their answers");
}

# many devices for few processors: rows come to some whose runs are not open yet
restart_with_devices($node, 12);
$node->safe_psql('postgres', 'CREATE TABLE crowd AS SELECT i AS k, i % 7 AS v FROM generate_series(1, 1500000) i; VACUUM ANALYZE crowd');
my $crowd = 'SELECT count(*), sum(a.v + b.v) FROM crowd a JOIN crowd b USING (k);';
my $crowd_right = join("\n", (native_answer($node, $crowd)) x 3);
is(right_sessions($node, 6, "SET gpujoin.exchange = on; SET gpujoin.device_memory_limit = '24MB'; $crowd $crowd $crowd", $crowd_right), 6, '12 devices: six sessions have their answers');
unlike(slurp_file($node->logfile), qr/was terminated by signal 11/, '12 devices: gpujoind is still there');
is(idle_ms($node) >= 0, 1, '12 devices: nothing is left');

# resident columns: each device sends what it has
restart_with_devices($node, 3, "gpujoin.cache_size = '1GB'\n");
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id, k, t) WITH (fillfactor = 10) AS SELECT i, i % 1000, 'w' || i FROM generate_series(1, 220000) i;
	CREATE TABLE other (id, k, t) WITH (fillfactor = 10) AS SELECT i, i % 900, 'o' || i FROM generate_series(1, 220000) i;
	-- from 16 on tables end with pages that nobody has used yet, unless they are written anew
	VACUUM FULL wide; VACUUM FULL other;
	VACUUM (ANALYZE) wide, other;
});
my %resident = (
	inner => 'SELECT count(*), sum(a.k), sum(b.k) FROM wide a JOIN other b ON a.id = b.id',
	full => 'SELECT count(*), sum(a.k), sum(b.k) FROM wide a FULL JOIN other b ON a.id = b.id + 10000',
	text => 'SELECT count(*), sum(hashtext(at)::int8), sum(hashtext(bt)::int8) FROM (SELECT a.t AS at, b.t AS bt FROM wide a LEFT JOIN other b ON a.id = b.id * 2 OFFSET 0) x',
	groups => 'SELECT count(*), sum(n) FROM (SELECT b.k, count(*) AS n FROM wide a JOIN other b ON a.id = b.id GROUP BY b.k OFFSET 0) x',
	# most devices have no inner row, and outer rows for the one that has some
	one => 'SELECT count(*), sum(a.k), sum(one.v) FROM wide a JOIN one ON a.id = one.k');
foreach my $round (qw(cold warm again changed vacuumed))
{
	$node->safe_psql('postgres', 'UPDATE wide SET k = k + 1 WHERE id % 5000 = 0; DELETE FROM other WHERE id % 7000 = 0') if $round eq 'changed';
	$node->safe_psql('postgres', 'VACUUM wide, other') if $round eq 'vacuumed';
	foreach my $name (sort keys %resident)
	{
		is($node->safe_psql('postgres', "$session $resident{$name}"), native_answer($node, $resident{$name}),
			"resident, $round, $name: right rows");
	}
	my $plan = plan_of($node, $resident{inner}, $session);
	like($plan, qr/resident=\d{4,}/, "resident, $round: rows are used where they are") if $round ne 'cold';
	is(scalar(@{ received($plan, 'keys') }), 3, "resident, $round: exchanged");
}
foreach my $name (sort keys %resident)
{
	my $right = native_answer($node, $resident{$name});
	right_when_failing($node, $resident{$name}, $session, $right, "resident, $name", qw(memory build probe overflow));
	is($node->safe_psql('postgres', "$session SET gpujoin.exchange = off; $resident{$name}"), $right, "resident, $name, without an exchange: right rows");
	is(idle_ms($node) >= 0, 1, "resident, $name: nothing is left");
	is($node->safe_psql('postgres', 'SELECT sum(memory_resident) >= (SELECT sum(bytes) FROM gpujoin_cache) FROM gpujoin_devices'), 't', "resident, $name: all that is in the cache is counted");
}
is($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict() > 0; SELECT sum(memory_resident) FROM gpujoin_devices'), "t\n0", 'resident: all of it gives way');

# parts of an inner side stay as they were built: the next run exchanges the outer rows alone; and so do these
sub total
{
	my $sum = 0;
	$sum += $_ foreach @{ $_[0] };
	return $sum;
}
my $filtered = "SELECT count(*), sum(a.k), sum(b.k), count(b.t) FROM wide a JOIN other b ON a.id = b.id AND b.k % 3 = 1";
my $filtered_right = native_answer($node, $filtered);
# the first time nothing is resident
my @sent = map { total(received(plan_of($node, $filtered, $session), 'keys')) } 1 .. 4;
cmp_ok($sent[1], '<', $sent[0] * 0.9, 'built parts are kept');
cmp_ok($sent[1], '>', 0, 'outer rows are exchanged');
is($sent[2], $sent[1], 'and kept when they are for the second time');
is($sent[3], 0, 'then they are there');
is(total(received(plan_of($node, $filtered, "$session SET gpujoin.keep_exchanged = off;"), 'keys')), $sent[1], 'not if that is not wanted');
is($node->safe_psql('postgres', "$session $filtered"), $filtered_right, 'parts that were kept: right rows');
is($node->safe_psql('postgres', "$session SET gpujoin.exchange = off; $filtered"), $filtered_right, 'all of the same side: right rows');
is($node->safe_psql('postgres', "$session SET gpujoin.devices_per_query = 2; $filtered"), $filtered_right, 'parts for fewer devices: right rows');
(my $other_filter = $filtered) =~ s/= 1/= 2/;
is($node->safe_psql('postgres', "$session $other_filter"), native_answer($node, $other_filter), 'another filter: right rows');
$node->safe_psql('postgres', 'UPDATE other SET k = k + 1 WHERE id = 100000');
is($node->safe_psql('postgres', "$session $filtered"), native_answer($node, $filtered), 'a row has changed: right rows');
$node->safe_psql('postgres', "UPDATE other SET k = k + 1 WHERE id % 1000 = 0; VACUUM other");
is($node->safe_psql('postgres', "$session $filtered"), native_answer($node, $filtered), "many rows have changed, run $_: right rows") foreach 1 .. 2;
is($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict() > 0; SELECT sum(memory_resident) FROM gpujoin_devices'), "t\n0", 'kept parts give way');

# outer rows that stay where they were brought, whatever is asked of them
foreach my $name (sort keys %queries)
{
	is($node->safe_psql('postgres', "$session $queries{$name};" x 4), join("\n", ($answers{$name}) x 4), "$name, four times: right rows");
}
foreach my $name (qw(sums twokeys left semi anti groups keys filtered))
{
	is(total(received(plan_of($node, $queries{$name}, $session), 'keys')), 0, "$name: its outer rows are where they belong");
}
cmp_ok(total(received(plan_of($node, $queries{textkey}, $session), 'keys')), '>', 0, 'textkey: texts are exchanged each time');
cmp_ok(total(received(plan_of($node, $queries{hot}, $session), 'keys')), '>', 0, 'hot: one device would have to keep most rows');
# by key, filter and columns, not by query
my $outer = 'SELECT count(*), sum(a.k), sum(b.k) FROM wide a JOIN other b ON a.id = b.id WHERE a.k < 900';
(my $other_inner = $outer) =~ s/other b/(SELECT id + 5 AS id, k FROM wide) b/;
(my $other_outer = $outer) =~ s/900/800/;
(my $other_key = $outer) =~ s/a.id =/a.id + 1 =/;
sub is_right
{
	my ($query, $what) = @_;
	my $right = native_answer($node, $query);

	is($node->safe_psql('postgres', "$session $query"), $right, "$what: right rows");
	return total(received(plan_of($node, $query, $session), 'keys'));
}
is_right($outer, 'outer rows');
is(is_right($outer, 'outer rows again'), 0, 'outer rows: they stay');
is_right($other_inner, 'another inner side');
is(total(received(plan_of($node, $other_inner, $session), 'keys')), 0, 'another inner side: outer rows are there');
cmp_ok(is_right($other_outer, 'another filter'), '>', 0, 'another filter: exchanged');
cmp_ok(is_right($other_key, 'another key'), '>', 0, 'another key: exchanged');
is(is_right($outer, 'the first one again'), 0, 'the first one is still there');
$node->safe_psql('postgres', 'UPDATE wide SET k = k + 100 WHERE id = 77777');
cmp_ok(is_right($outer, 'an outer row has changed'), '>', 0, 'an outer row has changed: exchanged');
# so many pages that all of it is loaded anew
$node->safe_psql('postgres', 'UPDATE wide SET k = k WHERE id % 40 = 0; VACUUM wide');
# when fragments are loaded anew depends on how long pages took to compare
my @moved = map { is_right($outer, "vacuumed, run $_") } 1 .. 5;
is($moved[-1], 0, 'vacuumed: they stay again');
$node->safe_psql('postgres', 'DELETE FROM wide WHERE id % 3000 = 1');
is_right($outer, "rows were deleted, run $_") foreach 1 .. 3;
is($node->safe_psql('postgres', "$session SET gpujoin.devices_per_query = 2; " . "$outer;" x 3), join("\n", (native_answer($node, $outer)) x 3), 'fewer devices: right rows');
is($node->safe_psql('postgres', 'SELECT sum(memory_resident) >= (SELECT sum(bytes) FROM gpujoin_cache) FROM gpujoin_devices'), 't', 'all that stays is counted');
# where there is no room for them
is($node->safe_psql('postgres', "SET gpujoin.device_memory_limit = '8MB'; $session " . "$queries{sums};" x 4), join("\n", ($answers{sums}) x 4), 'little memory: right rows');
# ... or where a run needs for its groups, more than are expected, what they would take
$node->safe_psql('postgres', q{
	CREATE TABLE expected AS SELECT i AS id, (i::bigint * 7919) % 400000 AS k, i % 100 AS v, (i::bigint * 7919) % 400000 AS g FROM generate_series(1, 1500000) i;
	CREATE TABLE inner_side AS SELECT i::bigint AS k, i % 7 AS v FROM generate_series(0, 399999) i;
	ALTER TABLE expected ALTER g SET (n_distinct = 10);
	VACUUM ANALYZE expected, inner_side;
});
my $expected = 'SELECT count(*), sum(n), sum(s), sum(m) FROM (SELECT o.g, count(*) AS n, sum(o.v) AS s, max(o.id) AS m FROM expected o JOIN inner_side i USING (k) GROUP BY o.g OFFSET 0) x';
my $expected_right = native_answer($node, $expected);
# (24 MB are what the groups alone take: whether they fit depends on the order in which rows come then)
foreach my $limit (qw(40 32))
{
	my $spilled = grep { plan_of($node, $expected, "$session SET gpujoin.device_memory_limit = '${limit}MB';") =~ /Spilled/ } 1 .. 8;

	cmp_ok($spilled, '<', 4, "more groups than expected in $limit MB: runs are not in parts because rows stay");
	is($node->safe_psql('postgres', "SET gpujoin.device_memory_limit = '${limit}MB'; $session $expected"), $expected_right, "more groups than expected in $limit MB: right rows");
}
is(right_sessions($node, 6, 'SET gpujoin.exchange = on; ' . "$queries{sums}; $queries{groups};" x 4, join("\n", ("$answers{sums}\n$answers{groups}") x 4)), 6, 'six sessions at once: right rows');
is(idle_ms($node) >= 0, 1, 'outer rows that stay: nothing else is left');
is($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict() > 0; SELECT sum(memory_resident) FROM gpujoin_devices'), "t\n0", 'they give way');

# many rows for several devices: blocks that wait for their turn when the last of them has been sent
restart_with_devices($node, 4);
$node->safe_psql('postgres', 'CREATE TABLE many AS SELECT i::bigint * 1000 AS k, i::bigint AS v FROM generate_series(1, 3000000) i; VACUUM ANALYZE many');
my $many = 'SELECT count(*), sum(a.v + b.v) FROM many a JOIN many b USING (k);';
is($node->safe_psql('postgres', "$session SET gpujoin.keep_exchanged = off; " . $many x 12), join("\n", ('3000000|9000003000000') x 12), 'many rows: right rows, twelve times');
is($node->safe_psql('postgres', "$session " . $many x 4), join("\n", ('3000000|9000003000000') x 4), 'many rows that stay: right rows');
is(total(received(plan_of($node, $many, $session), 'keys')), 0, 'many rows: they stay');

# gpujoind is killed while rows are exchanged
my $run = start_psql($node, "SET gpujoin.exchange = on; SET gpujoin.fail_at = 'stall'; $queries{sums};");
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT sum(memory_used) FROM gpujoin_devices') > 0 }), 'a run is at work');
kill 9, daemon_pids($node);
my ($out, $err) = finish($run);
is($out, $answers{sums}, 'gpujoind is killed: the right answer');
unlike(slurp_file($node->logfile), qr/was terminated by signal 11|was terminated by signal 6|PANIC/, 'no process crashed');
$node->stop;
done_testing();
