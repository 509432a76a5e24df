# Several devices for one run, and runs larger than a device's memory: the same rows as ever.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $session = GpuJoin::session();
# inner sides on all devices, or in parts; exchanges are in 011_exchange.pl
$session .= ' SET gpujoin.exchange = off;';
my $is_used = "device = '" . device() . "' AND status = 'ready'";
my $limited = "$session SET gpujoin.device_memory_limit = '16MB';";
# pages that were written without WAL have no LSN, and what has none is never found unchanged
my $node = new_node('devices', preload => 1, conf => "wal_level = replica\ngpujoin.devices_per_query = 0\ntemp_file_limit = '500MB'\nwork_mem = '16MB'\ngpujoin.cache_size = 0\n");
$node->safe_psql('postgres', q{
	-- a hot key, keys that are NULL, values that are, and text
	CREATE TABLE big AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 7 WHEN i % 11 = 0 THEN NULL ELSE i END AS k,
		nullif(i % 10, 3) AS v, repeat('t', i % 20) || i AS t FROM generate_series(1, 300000) i;
	CREATE TABLE few AS SELECT i AS k, i % 5 AS w, 's' || i AS t FROM generate_series(1, 200) i;
	CREATE TABLE lone AS SELECT id, CASE WHEN id % 4 = 0 THEN id END AS a, CASE WHEN id % 5 = 0 THEN id END AS b FROM big;
	-- sets of elements, some of them twice
	CREATE TABLE members AS SELECT i % 50 AS id, i / 7 % 10000 AS elem FROM generate_series(1, 300000) i;
	CREATE TABLE bands AS SELECT i AS k, i % 3 AS v FROM generate_series(1, 400000) i;
	CREATE INDEX ON bands (k);
	CREATE TABLE tags_a AS SELECT i AS id, ARRAY(SELECT hashint8extended(i, j) & 262143 FROM generate_series(1, 10 + i % 20) j)::int[] AS tags FROM generate_series(1, 8000) i;
	CREATE TABLE tags_b AS SELECT i AS id, ARRAY(SELECT hashint8extended(i, j + 50) & 262143 FROM generate_series(1, 10 + i % 15) j)::int[] AS tags FROM generate_series(1, 12000) i;
	VACUUM ANALYZE big, few, members, bands, tags_a, tags_b;
});
my %queries = (
	sums => 'SELECT count(*), sum(a.id + b.v), min(b.v), max(a.k), avg(a.id) FROM big a JOIN big b ON a.id = b.id',
	text => 'SELECT count(*), sum(length(at)), sum(length(bt)), sum(v), count(v) FROM (SELECT a.t AS at, b.t AS bt, a.v FROM big a JOIN big b ON a.id = b.id OFFSET 0) x',
	hot => 'SELECT count(*), sum(b.id::bigint) FROM few s JOIN big b USING (k)',
	both => 'SELECT count(*), sum(a.id::bigint - b.id) FROM (SELECT * FROM big WHERE id < 300) a JOIN big b USING (k)',
	chain => 'SELECT count(*), sum(a.id + c.v) FROM big a JOIN big b ON a.id = b.id JOIN big c ON b.id + 1 = c.id',
	left => 'SELECT count(*), sum(a.id), sum(b.id), count(b.v) FROM big a LEFT JOIN big b ON a.id = b.id + 100000 AND b.v > 5',
	full => 'SELECT count(*), sum(a.id), sum(b.id), count(b.v) FROM big a FULL JOIN big b ON a.id = b.id + 100000',
	# the larger side is streamed: no key splits the other one, whose rows come out by themselves
	band => 'SELECT count(*), sum(b.id), sum(s.v) FROM big b LEFT JOIN bands s ON s.v > 0 AND b.id >= s.k AND b.id <= s.k + 1',
	bandsemi => 'SELECT count(*), sum(b.id) FROM big b WHERE EXISTS (SELECT FROM bands s WHERE s.v > 1 AND b.id >= s.k AND b.id <= s.k + 1)',
	bandanti => 'SELECT count(*), sum(b.id) FROM big b WHERE NOT EXISTS (SELECT FROM bands s WHERE s.v > 1 AND b.id >= s.k AND b.id <= s.k + 1)',
	bandchain => 'SELECT count(*), sum(b.id), sum(s.v), sum(few.w) FROM big b LEFT JOIN bands s ON s.v > 0 AND b.id >= s.k AND b.id <= s.k + 1 LEFT JOIN few ON few.k = s.v',
	semi => 'SELECT count(*), sum(a.id) FROM big a WHERE EXISTS (SELECT FROM big b WHERE a.k = b.k)',
	anti => 'SELECT count(*), sum(a.id) FROM big a WHERE NOT EXISTS (SELECT FROM big b WHERE a.id = b.id * 2 AND a.v < b.v)',
	filter => "SELECT count(*), sum(a.v) FROM big a JOIN big b ON a.id = b.id AND a.v < b.k WHERE a.t LIKE '%7%' AND b.id > 1000",
	empty => 'SELECT count(*), sum(a.v) FROM big a JOIN big b ON a.id = b.id WHERE b.id < 0',
	# rows of inner sides that come out at the end, and pass a later step that has some as well
	fulls => 'SELECT count(*), sum(a.id), sum(b.id), sum(c.k), count(c.w) FROM big a FULL JOIN big b ON a.id = b.id + 100000 AND a.v < b.v FULL JOIN few c ON b.id = c.k + 299900',
	right => 'SELECT count(*), sum(s.w), sum(b.id) FROM few s RIGHT JOIN big b ON s.k = b.id AND s.w > 2',
	# groups: few, as many as rows, by text, of distinct values, none at all
	groups => "SELECT md5(string_agg(x::text, ' ' ORDER BY v)) FROM (SELECT v, count(*), sum(id), min(k), count(DISTINCT k) FROM big GROUP BY v) x",
	keys => 'SELECT count(*), sum(n), sum(s), sum(m) FROM (SELECT a.id, count(*) AS n, sum(b.v) AS s, max(a.k) AS m FROM big a JOIN big b ON a.id = b.id GROUP BY a.id OFFSET 0) x',
	texts => 'SELECT count(*), sum(n), sum(length(t)) FROM (SELECT b.t, count(*) AS n FROM few s RIGHT JOIN big b ON s.k = b.id GROUP BY b.t OFFSET 0) x',
	distinct => 'SELECT count(DISTINCT id), sum(DISTINCT id), count(*), sum(v) FROM big',
	many => 'SELECT count(*), sum(n) FROM (SELECT v, count(DISTINCT id) AS n FROM big GROUP BY v OFFSET 0) x',
	members => 'SELECT count(*), sum(c), max(c) FROM (SELECT count(*) AS c FROM members a JOIN members b USING (elem) WHERE a.id < b.id GROUP BY a.id, b.id HAVING count(*) >= 10000) x',
	nothing => 'SELECT count(DISTINCT b.id), count(*) FROM few s JOIN big b ON s.k = b.id WHERE s.k < 0');
# what has no index is nothing for PostgreSQL
sub native { my ($query) = @_; $query =~ s/b\.id >= s\.k AND b\.id <= s\.k \+ 1/s.k <= b.id AND s.k >= b.id - 1/; return $query; }
my %answers = map { $_ => native_answer($node, native($queries{$_})) } keys %queries;

foreach my $n (1, 2, 4)
{
	restart_with_devices($node, $n);
	is($node->safe_psql('postgres', "$session SELECT count(*) FROM gpujoin_devices WHERE $is_used"), $n, "$n devices");
	foreach my $name (sort keys %queries)
	{
		is($node->safe_psql('postgres', "$session $queries{$name}"), $answers{$name}, "$n devices, $name: right rows");
		is($node->safe_psql('postgres', "$limited $queries{$name}"), $answers{$name}, "$n devices of little memory, $name: right rows");
		is($node->safe_psql('postgres', "$limited SET gpujoin.spill_memory = 0; $queries{$name}"), $answers{$name},
			"$n devices of little memory, temporary files, $name: right rows") if $n < 4;
	}
	my $plan = plan_of($node, $queries{sums}, $session);
	unlike($plan, qr/Fallback|Spilled/, "$n devices: not split");
	if ($n > 1)
	{
		my ($used) = $plan =~ /Devices Used: (.*)/;
		is(scalar(() = $used =~ /rows=/g), $n, "$n devices: all take part");
		unlike(plan_of($node, $queries{sums}, "$session SET gpujoin.devices_per_query = 1;"), qr/Devices Used/, 'one is enough if one is asked for');
	}
	foreach my $name (qw(sums both chain full semi anti keys band bandsemi bandanti bandchain))
	{
		my $limited_plan = plan_of($node, $queries{$name}, "$session SET gpujoin.device_memory_limit = '16MB';");
		unlike($limited_plan, qr/Fallback/, "$n devices of little memory, $name: no fallback");
		like($limited_plan, qr/Spilled: memory=[1-9]\d*kB disk=0kB  Passes: ([2-9]|\d\d)/, "$n devices of little memory, $name: in parts");
	}
	my $counted = plan_of($node, $queries{members}, "$session SET gpujoin.device_memory_limit = '64MB';");
	unlike($counted, qr/Fallback/, "$n devices of some memory, members: no fallback");
	like($counted, qr/set join/, "$n devices of some memory, members: counted without joined rows");
	foreach my $name (qw(full right groups keys texts distinct many))
	{
		unlike(plan_of($node, $queries{$name}, $session), qr/Fallback/, "$n devices, $name: no fallback");
		unlike(plan_of($node, $queries{$name}, "$session SET gpujoin.device_memory_limit = '16MB';"), qr/Fallback/, "$n devices of little memory, $name: no fallback");
		like(plan_of($node, $queries{$name}, $session), qr/Devices Used: 0 rows=\d+ chunks=\d+ .*idle=\d+%, 1 rows=/, "$n devices, $name: runs on several") if $n > 1;
	}
	like(plan_of($node, $queries{sums}, "$session SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0;"),
		qr/Spilled: memory=0kB disk=[1-9]/, "$n devices of little memory: temporary files");
	# neither memory nor files: PostgreSQL's own plan, before any row
	like(plan_of($node, $queries{sums}, "$session SET work_mem = '100MB'; SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.spill_memory = 0; SET temp_file_limit = 0;"),
		qr/Fallback: out of host memory/, "$n devices: no room for what does not fit");

	# rows with a NULL in the key are of any part; PostgreSQL's hash join would compare each with each, so it is asked without them
	if ($n == 2)
	{
		my $lone = 'SELECT count(*), sum(x.id), sum(y.id) FROM lone x FULL JOIN lone y ON x.a = y.b';
		my $sums = $node->safe_psql('postgres', q{SET gpujoin.enabled = off; SELECT count(*), sum(x), sum(y) FROM (
			SELECT x.id AS x, y.id AS y FROM (SELECT * FROM lone WHERE a IS NOT NULL) x FULL JOIN (SELECT * FROM lone WHERE b IS NOT NULL) y ON x.a = y.b
			UNION ALL SELECT id, NULL FROM lone WHERE a IS NULL UNION ALL SELECT NULL, id FROM lone WHERE b IS NULL) rows});

		is($node->safe_psql('postgres', "$limited $lone"), $sums, 'keys that are NULL: right rows');
		unlike(plan_of($node, $lone, "$session SET gpujoin.device_memory_limit = '16MB';"), qr/Fallback/, 'keys that are NULL: no fallback');
		like(plan_of($node, $lone, "$session SET gpujoin.device_memory_limit = '16MB';"), qr/Passes: ([2-9]|\d\d)/, 'keys that are NULL: in parts');
	}

	# joins on arrays, of which a nested loop of PostgreSQL's would take minutes: the same pairs with little memory
	my $overlap = 'a.tags && b.tags AND a.id > b.id * 2';
	foreach my $joined ($n == 2 ? ("FROM tags_a a JOIN tags_b b ON $overlap", "FROM tags_a a LEFT JOIN tags_b b ON $overlap", "FROM tags_b b LEFT JOIN tags_a a ON $overlap") : ())
	{
		my $sets = "SELECT count(*), sum(a.id), sum(b.id) $joined";
		my $little = "SET gpujoin.device_memory_limit = '30MB';";
		is($node->safe_psql('postgres', "$session $little $sets"), $node->safe_psql('postgres', "$session $sets"), "arrays: $joined");
		my $in_parts = plan_of($node, $sets, "$session $little");
		unlike($in_parts, qr/Fallback/, "arrays: $joined: no fallback");
		like($in_parts, qr/Passes: ([2-9]|\d\d)/, "arrays: $joined: in parts");
	}
	foreach my $what ($n == 2 ? ('EXISTS', 'NOT EXISTS') : ())
	{
		my $sets = "SELECT count(*), sum(b.id) FROM tags_b b WHERE $what (SELECT FROM tags_a a WHERE $overlap)";
		my $little = "SET gpujoin.device_memory_limit = '30MB';";
		is($node->safe_psql('postgres', "$session $little $sets"), $node->safe_psql('postgres', "$session $sets"), "arrays, $what");
		my $in_parts = plan_of($node, $sets, "$session $little");
		unlike($in_parts, qr/Fallback/, "arrays, $what: no fallback");
		like($in_parts, qr/Passes: ([2-9]|\d\d)/, "arrays, $what: in parts");
	}

	# an inner side of which the planner expects a thousand rows
	my $unexpected = "SELECT count(*), sum(x.v) FROM big b JOIN (SELECT g::int AS k, g::int + 1 AS v FROM generate_series(1, (SELECT 1900000)) g OFFSET 0) x ON b.id = x.k";
	my $tight = "SET gpujoin.device_memory_limit = '130MB';";
	is($node->safe_psql('postgres', "$session $tight $unexpected"), '300000|45000450000', "$n devices: an inner side that is larger than expected");
	my $again = plan_of($node, $unexpected, "$session $tight");
	unlike($again, qr/Fallback/, "$n devices: is no reason to fall back");
	like($again, qr/Passes: ([2-9]|\d\d)/, "$n devices: the run starts again in parts");
	(my $sorted = $unexpected) =~ s/count.*v\) FROM/b.id, x.v FROM/;
	my ($sorted_rc, $sorted_out, $sorted_err) = $node->psql('postgres', "$session $tight SET client_min_messages = debug1; SELECT count(*), sum(id), sum(v) FROM ($sorted ORDER BY b.id, x.v OFFSET 0) y");
	is($sorted_out, '300000|45000150000|45000450000', "$n devices: the same, sorted");
	like($sorted_err, qr/again in parts/, "$n devices: in parts, too");
	unlike($sorted_err, qr/native plan/, "$n devices: does not fall back");

	# failures on one of them, and of all
	foreach my $point (qw(memory build probe overflow))
	{
		foreach my $start ($session, $limited)
		{
			is($node->safe_psql('postgres', "$start SET gpujoin.fail_at = '$point'; $queries{sums}"), $answers{sums}, "$n devices, $point fails: right sums");
			is($node->safe_psql('postgres', "$start SET gpujoin.fail_at = '$point'; $queries{text}"), $answers{text}, "$n devices, $point fails: right rows");
		}
	}
	is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");

	# cancelled while they work, and left before the end
	foreach my $start ($session, $limited)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "$start SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $queries{sums}");
		like($err, qr/statement timeout/, "$n devices: cancelled");
		is($node->safe_psql('postgres', "$start SELECT count(*) FROM (SELECT a.id FROM big a JOIN big b ON a.id = b.id LIMIT 5) x"), 5, "$n devices: a few rows");
		is(idle_ms($node) >= 0, 1, "$n devices: nothing is left");
	}
	# sessions at once, with and without room
	my @runs = map { start_psql($node, ($_ % 2 ? "SET gpujoin.device_memory_limit = '16MB'; " : '') . "$queries{sums}; $queries{text};") } 1 .. 6;
	my $right = grep { my ($out, $err) = finish($_); $err eq '' && $out eq "$answers{sums}\n$answers{text}" } @runs;
	is($right, 6, "$n devices: six sessions have their answers");
}

# resident columns lie on all devices: outer rows are used where they are, inner ones come from there
restart_with_devices($node, 3, "gpujoin.cache_size = '1GB'\n");
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id, k) WITH (fillfactor = 10) AS SELECT i, i % 1000 FROM generate_series(1, 220000) i;
	CREATE TABLE other (id, k) WITH (fillfactor = 10) AS SELECT i, i % 900 FROM generate_series(1, 220000) i;
	-- from 16 on tables end with pages that nobody has used yet, unless they are written anew
	VACUUM FULL wide; VACUUM FULL other;
	VACUUM (ANALYZE) wide, other;
});
my %resident = (
	inner => 'SELECT count(*), sum(a.k), sum(b.k) FROM wide a JOIN other b ON a.id = b.id',
	full => 'SELECT count(*), sum(a.k), sum(b.k) FROM wide a FULL JOIN other b ON a.id = b.id + 10000',
	groups => 'SELECT count(*), sum(n) FROM (SELECT b.k, count(*) AS n FROM wide a JOIN other b ON a.id = b.id GROUP BY b.k OFFSET 0) x');
foreach my $round (qw(cold warm changed vacuumed))
{
	$node->safe_psql('postgres', 'UPDATE wide SET k = k + 1 WHERE id % 5000 = 0; DELETE FROM other WHERE id % 7000 = 0') if $round eq 'changed';
	$node->safe_psql('postgres', 'VACUUM wide, other') if $round eq 'vacuumed';
	foreach my $name (sort keys %resident)
	{
		is($node->safe_psql('postgres', "$session $resident{$name}"), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{$name}"),
			"resident, $round, $name: right rows");
	}
	like(plan_of($node, $resident{inner}, $session), qr/resident=\d{4,}/, "resident, $round: rows are used where they are") if $round ne 'cold';
}
is($node->safe_psql('postgres', "SELECT count(DISTINCT ordinal) FROM gpujoin_cache WHERE relation = 'wide'::regclass"), 3, 'each device has some of it');
is($node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_devices WHERE $is_used AND runs > 0 AND memory_resident > 0 AND busy_ms > 0 AND bytes_in > 0"), 3,
	'each device tells what it did');
is($node->safe_psql('postgres', "$session SET gpujoin.devices_per_query = 2; $resident{inner}"), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{inner}"),
	'resident, on fewer devices than before: right rows');
# what other devices have loaded, in one session, unchanged and changed
my $one = GpuJoin::Session->new($node);
$one->query($session);
foreach my $loaded_by (3, 2)
{
	$node->safe_psql('postgres', "SELECT gpujoin_cache_evict(); $session SET gpujoin.devices_per_query = $loaded_by; $resident{inner}; $resident{full}");
	foreach my $name (sort keys %resident)
	{
		my $right = $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{$name}");
		is($one->query($resident{$name}), $right, "loaded by $loaded_by, $name in one session: right rows") for 1 .. 3;
	}
	my $plan = $one->query("EXPLAIN (ANALYZE, COSTS OFF) $resident{inner}");
	unlike($plan, qr/Fallback:/, "loaded by $loaded_by: no fallback");
	is(scalar(() = $plan =~ /Pages: read=0 .*resident=\d{4,}/g), 2, "loaded by $loaded_by: no page is read");
	$node->safe_psql('postgres', 'UPDATE wide SET k = k + 1 WHERE id = 7');
	is($one->query($resident{inner}), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{inner}"), "loaded by $loaded_by, changed: right rows") for 1 .. 2;
	$node->safe_psql('postgres', 'VACUUM wide');
}
$one->end;
# the side that devices have built is found where it is of the same pages, however they are told of: hits of each run
my $inner = "$session SET gpujoin.loader_workers = 0; $resident{inner}";
sub hits { my $sum = q{SELECT coalesce(sum(hash_table_hits), 0) FROM gpujoin_cache WHERE relation = 'other'::regclass}; my $before = $node->safe_psql('postgres', $sum); $node->safe_psql('postgres', $inner); return $node->safe_psql('postgres', $sum) - $before; }
sub right_inner { is($node->safe_psql('postgres', $inner), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{inner}"), "$_[0]: right rows"); }
$node->safe_psql('postgres', 'TRUNCATE other; INSERT INTO other SELECT i, i % 900 FROM generate_series(1, 220000) i; VACUUM FULL other; VACUUM (ANALYZE) other');
$node->safe_psql('postgres', "SELECT gpujoin_cache_evict(); $inner");
is_deeply([hits(), hits()], [0, 3], 'a side of fragments: each device has its own');
# the last fragment is loaded again, by one device, which keeps its side at once; pages of the others are compared one by one
$node->safe_psql('postgres', 'UPDATE other SET k = k + 1 WHERE id > 200000; VACUUM other');
$node->safe_psql('postgres', $inner);
is_deeply([hits(), hits()], [1, 3], 'a side of fragments whose pages were compared: it is that of all pages');
right_inner('of pages that were compared');
# pages of two fragments have changed: they are read until that was as much as these, of which a run takes one; sides are kept again
$node->safe_psql('postgres', 'UPDATE other SET k = k + 1 WHERE id IN (5, 100000); VACUUM other');
my @read = $node->safe_psql('postgres', "$session SET gpujoin.loader_workers = 0;" . "EXPLAIN (ANALYZE, COSTS OFF) $resident{inner};" x 40) =~ /other b\n.*Pages: read=(\d+)/g;
my ($renewed) = grep { $read[$_] > 4096 } 0 .. $#read;
ok($renewed > 8 && $renewed < 24, 'fragments of which a page is missing: one is loaded anew');
is_deeply([@read[0, $renewed - 1 .. $renewed + 2, 39]], [2, 2, 4097, 4096, 0, 0], 'these pages were read before, then the other fragment, nothing afterwards');
is_deeply([hits(), hits()], [3, 3], 'and sides are kept');
right_inner('of a fragment that was loaded anew');
# pages that nobody has used yet are left out
my %more = map { $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_->[0]')") => $_->[1] } (['other', 7], ['wide', 14]);
$node->stop;
append_to_file($_, "\0" x ($more{$_} * 8192)) foreach keys %more;
$node->start;
$node->safe_psql('postgres', $inner);
is_deeply([hits(), hits()], [0, 3], 'a side of some pages of a fragment');
right_inner('of some pages');
$node->safe_psql('postgres', "$session $resident{$_}") foreach sort keys %resident;
# whatever fails: what devices count as resident is what the cache has, and all of it can go
foreach my $name (sort keys %resident)
{
	my $right = $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{$name}");
	is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = '$_'; $resident{$name}"), $right, "resident, $name, $_ fails: right rows") foreach qw(memory build probe overflow);
	my ($rc, $out, $err) = $node->psql('postgres', "$session SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $resident{$name}");
	like($err, qr/statement timeout/, "resident, $name: cancelled");
	is(idle_ms($node) >= 0, 1, "resident, $name: nothing is left");
	is($node->safe_psql('postgres', 'SELECT sum(memory_resident) = (SELECT sum(bytes) FROM gpujoin_cache) FROM gpujoin_devices'), 't', "resident, $name: all that is counted is in the cache");
}
is($node->safe_psql('postgres', 'SELECT gpujoin_cache_evict() > 0; SELECT sum(memory_resident) FROM gpujoin_devices'), "t\n0", 'resident: all of it gives way');
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
ok($node->safe_psql('postgres', "$session SELECT gpujoin_prewarm('wide')") > 8192, 'a table is made resident');
is($node->safe_psql('postgres', "SELECT count(*) FROM gpujoin_cache WHERE relation = 'wide'::regclass"), 3, 'on all devices');
$node->safe_psql('postgres', 'SELECT gpujoin_cache_evict()');
foreach my $point (qw(memory build probe output))
{
	is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = '$point'; $resident{inner}"), $node->safe_psql('postgres', "SET gpujoin.enabled = off; $resident{inner}"),
		"resident, $point fails: right rows") foreach 1 .. 2;
}
is(idle_ms($node) >= 0, 1, 'nothing is left');

# sets: tiles for all devices
my $sets = "SELECT count(*), sum(left_id * right_id % 1009) FROM gpu_set_join('SELECT i, ARRAY[i, i % 50, i % 31] FROM generate_series(1, 4000) i', "
	. "'SELECT i, ARRAY[i % 40, i * 2] FROM generate_series(1, 3000) i')";
my $before_sets = $node->safe_psql('postgres', "SELECT string_agg(runs::text, ' ' ORDER BY ordinal) FROM gpujoin_devices WHERE $is_used");
is($node->safe_psql('postgres', "$session SET gpujoin.set_device_min_elements = 0; $sets"), $node->safe_psql('postgres', "$session SET gpujoin.device = off; $sets"),
	'sets: the same pairs');
my @more = split ' ', $node->safe_psql('postgres', "SELECT string_agg(runs::text, ' ' ORDER BY ordinal) FROM gpujoin_devices WHERE $is_used");
is(join(' ', map { $more[$_] - (split ' ', $before_sets)[$_] } 0 .. 2), '1 1 1', 'sets: of all devices');
# distinct intersections are those of all tiles: one device has them all
my $family = "SELECT count(*), sum(frequency), sum(cardinality(set)) FROM gpu_intersect_family('SELECT i, ARRAY[i % 7, 10 + i % 50, 100 + i % 31] FROM generate_series(1, 3000) i')";
is($node->safe_psql('postgres', "$session SET gpujoin.set_device_min_elements = 0; $family"), $node->safe_psql('postgres', "$session SET gpujoin.device = off; $family"),
	'sets: the same distinct intersections');

unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC/, 'no process crashed');

# a run that was left while its devices worked is not suspected of a later crash
my $crash = 'SELECT count(*), sum(s.w) FROM few s JOIN big b USING (k) WHERE b.id > 3';
my $crashed = $node->safe_psql('postgres', $crash);
$node->psql('postgres', "$session SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $queries{sums}");
is(idle_ms($node) >= 0, 1, 'a run is left');
is($node->safe_psql('postgres', "$session SET gpujoin.fail_at = 'crash'; $crash"), $crashed, 'another one ends gpujoind: the right answer');
ok(wait_until(15, sub { how($node, $queries{sums}) eq 'GpuJoin' }), 'it is started again');
like(how($node, $crash, "SET gpujoin.fail_at = 'crash';"), qr/^fell back: .*refused/, 'that one alone is to blame');

# gpujoind is killed while a run is in parts
my $run = start_psql($node, "SET gpujoin.device_memory_limit = '16MB'; SET gpujoin.fail_at = 'stall'; $queries{sums};");
ok(wait_until(10, sub { $node->safe_psql('postgres', 'SELECT sum(memory_used) FROM gpujoin_devices') > 0 }), 'a run is at work');
my @before = daemon_pids($node);
kill 9, @before;
my ($out, $err) = finish($run);
is($out, $answers{sums}, 'gpujoind is killed: the right answer');
ok(restarted($node, @before), 'it is started again');
ok(wait_until(15, sub { how($node, $queries{sums}, "SET gpujoin.device_memory_limit = '16MB';") eq 'GpuJoin' }), 'runs in parts are on the device again');
is(join(' ', glob($node->data_dir . '/base/pgsql_tmp/*')), '', 'no temporary file is left');

# settings of the server
my ($rc, $stdout, $stderr) = $node->psql('postgres', "LOAD 'gpujoin'; SET gpujoin.devices = '1'");
like($stderr, qr/cannot be changed now/, 'sessions cannot choose GPUs');
($rc, $stdout, $stderr) = $node->psql('postgres', "LOAD 'gpujoin'; ALTER SYSTEM SET gpujoin.devices = '0;1'");
like($stderr, qr/invalid value/, 'a list of GPUs is checked');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC/, 'no server process crashed');
$node->stop;
done_testing();
