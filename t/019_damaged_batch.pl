# Bits that flip in an output ring, behind the row that a cursor has returned: the rows that there are,
# perhaps with other values, or ERROR 58000; never the end of a server process.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Fcntl;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{GJ_SEED} || 1;
my $flips = $ENV{GJ_FLIPS} || 60;
srand($seed);
my $slot_size = 4 * 1024 * 1024;

my $node = new_node('damaged_batch', preload => 1);
$node->safe_psql('postgres', q{
	CREATE TABLE w AS SELECT i AS id, i % 100 AS k, (i % 1000 / 100.0)::numeric(22,2) AS n, (i * 1e30)::numeric AS wide,
		CASE WHEN i % 3 > 0 THEN 'a text of some length ' || repeat(chr(65 + i % 26), 150 + i % 100) END AS t,
		md5(i::text)::uuid AS u, i % 2 = 0 AS b FROM generate_series(1, 100000) i;
	-- texts that are stored out of line
	CREATE TABLE l (id int, k int, t text);
	ALTER TABLE l ALTER t SET STORAGE external;
	INSERT INTO l SELECT i, i % 100, CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 100) ELSE repeat('x', 300) END FROM generate_series(1, 60000) i;
	CREATE TABLE members AS SELECT i AS id, ARRAY[i % 7, 7 + i % 11] AS a FROM generate_series(1, 3000) i;
	VACUUM ANALYZE w, l, members;
	-- what is left of a cursor: how many rows, with all their values made; or how that ended
	CREATE FUNCTION consume(c refcursor, moves bool) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		r record;
		n bigint := 0;
		length bigint := 0;
	BEGIN
		IF moves THEN
			MOVE FORWARD ALL IN c;
			GET DIAGNOSTICS n = ROW_COUNT;
			RETURN n;
		END IF;
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			n := n + 1;
			length := length + octet_length(r::text);
		END LOOP;
		RETURN n;
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE;
	END $$;
});

# The output rings of gpujoind, open.
sub rings
{
	my ($pid) = daemon_pids($node);
	my @rings;
	foreach my $path (glob "/proc/$pid/fd/*")
	{
		next unless (readlink($path) || '') =~ /memfd:gpujoin/ && -s $path == 4 * $slot_size;
		sysopen(my $ring, $path, O_RDWR) or next;
		push @rings, $ring;
	}
	return @rings;
}

sub bytes_at
{
	my ($ring, $at, $n) = @_;
	my $bytes = '';
	sysseek($ring, $at, 0);
	sysread($ring, $bytes, $n);
	return $bytes;
}

sub flip
{
	my ($ring, $at, $bit) = @_;
	my $byte = ord bytes_at($ring, $at, 1);
	sysseek($ring, $at, 0);
	syswrite($ring, chr($byte ^ 1 << $bit), 1);
}

# Waits until all threads of gpujoind sleep: the ring is full then.
sub settle
{
	my ($pid) = daemon_pids($node);
	my $asleep = 0;
	wait_until(5, sub {
		$asleep = (grep { slurp_file($_) !~ /\) S / } glob "/proc/$pid/task/*/stat") ? 0 : $asleep + 1;
		return $asleep == 8;
	});
}

my $session = GpuJoin::Session->new($node, "SET gpujoin.set_device_min_elements = 0");
my $backend = $session->query('SELECT pg_backend_pid()');

# Runs a query of which one row is returned before the flips that `where`, which gets the rings, makes.
sub damaged
{
	my ($query, $moves, $where) = @_;
	$session->query("BEGIN; DECLARE c CURSOR FOR $query; FETCH 1 FROM c");
	settle();
	my $what = $where->(rings());
	my $outcome = $session->query("SELECT consume('c', $moves)");
	$session->query('ROLLBACK');
	return ($outcome, $what);
}

# Damages all that a query returns, n times, and counts what follows.  expected: what may follow.
my %seen;
sub endure
{
	my ($name, $n, $query, $moves, $expected, $where) = @_;
	my ($intact) = damaged($query, $moves, sub { return 'nothing' });
	like($intact, qr/^\d{5,}$/, "$name: $intact rows are left of the intact query");
	my @wrong;
	for my $i (0 .. $n - 1)
	{
		my ($outcome, $what) = eval { damaged($query, $moves, sub { return $where->($i, @_) }) };
		if (!defined $outcome)
		{
			push @wrong, "flip $i: $@";
			last;
		}
		$seen{$name}{ $outcome eq $intact ? 'rows' : $outcome }++;
		push @wrong, "$what: $outcome, intact $intact" unless $outcome eq $intact || $outcome =~ $expected;
	}
	is("@wrong", '', "$name: " . join(', ', map { "$seen{$name}{$_} times $_" } sort keys %{ $seen{$name} }));
}

my $query = 'SELECT w.id, w.n, w.wide, w.t, w.u, w.b, d.name FROM w JOIN d ON w.k = d.k';
is(how($node, $query), 'GpuJoin', 'the query is on the device');
is(scalar(grep { defined } rings()) > 0, 1, 'its ring can be written to');

# counts and flags: each byte of the header, of the second batch
endure('header', 2 * (8 + 7), $query, 'false', qr/^58000$/, sub {
	my ($i, @rings) = @_;
	my ($at, $bit) = ($slot_size + int($i / 2), $i % 2 ? 7 - int(rand(4)) : int(rand(4)));
	flip($_, $at, $bit) foreach @rings;
	return "byte $at, bit $bit";
});
cmp_ok($seen{header}{58000} || 0, '>=', 16, 'header: mostly an error');

# anything, in one of the batches that are to come
endure('anywhere', $flips, $query, 'false', qr/^58000$/, sub {
	my ($i, @rings) = @_;
	my ($at, $bit) = ($slot_size + int(rand(3 * $slot_size)), int(rand(8)));
	flip($_, $at, $bit) foreach @rings;
	return "byte $at, bit $bit";
});

# values: the first bytes of each, and their references
endure('references', $flips, $query, 'false', qr/^58000$/, sub {
	my ($i, @rings) = @_;
	my ($part, $bit) = (rand(1), int(rand(8)));
	my @flipped;
	foreach my $ring (@rings)
	{
		# a ring of a connection that ended after a flip may still be there, with any number of rows
		my $nrows = unpack('L', bytes_at($ring, $slot_size, 4));
		next if $nrows <= 64 || $nrows > $slot_size / 12;
		# the data of the columns begins behind the header: id, then n's references
		my $refs = $slot_size + 64 + int((4 * $nrows + 63) / 64) * 64 + int(($nrows + 63) / 64) * 64;
		my $at = $refs + int($part * 8 * ($nrows - 64));
		flip($ring, $at, $bit);
		push @flipped, "byte $at, bit $bit of $nrows rows";
	}
	return join(', ', @flipped) || 'nothing';
});
cmp_ok($seen{references}{58000} || 0, '>=', $flips / 3, 'references: mostly an error');

# pointers to texts that are stored out of line: PostgreSQL may complain, too
my $relid = pack('L', $node->safe_psql('postgres', "SELECT reltoastrelid::oid FROM pg_class WHERE relname = 'l'"));
endure('pointers', 36, 'SELECT l.id, l.t, d.name FROM l JOIN d ON l.k = d.k', 'false', qr/^(58000|XX000|XX001)$/, sub {
	my ($i, @rings) = @_;
	my $bit = int(rand(8));
	my $at;
	foreach my $ring (@rings)
	{
		my $found = index(bytes_at($ring, $slot_size, $slot_size), "\x01\x12");
		$at = $slot_size + $found + $i % 18;
		flip($ring, $at, $bit) if $found >= 0;
	}
	return "byte $at, bit $bit";
});
cmp_ok($seen{pointers}{58000} || 0, '>=', 8, 'pointers: many are noticed here');

# sets: the high bytes of their numbers
endure('pairs of sets', 12, "SELECT * FROM gpu_set_join('SELECT id, a FROM members', NULL, 'overlap', 1)", 'true', qr/^(58000|\d{5,})$/, sub {
	my ($i, @rings) = @_;
	my ($at, $bit) = ($slot_size * (1 + $i % 3) + 64 + 4 * int(rand(10000)) + 2 + $i % 2, int(rand(8)));
	flip($_, $at, $bit) foreach @rings;
	return "byte $at, bit $bit";
});
cmp_ok($seen{'pairs of sets'}{58000} || 0, '>=', 4, 'pairs of sets: most are noticed');

is($session->query('SELECT pg_backend_pid()'), $backend, 'all in one session');
is($session->query($sums), $sums_answer, 'which goes on');
is(how($node, $query), 'GpuJoin', 'on the device');
unlike(slurp_file($node->logfile), qr/server process .* was terminated|PANIC|TRAP/, 'no server process crashed');
note("$_: $seen{anywhere}{$_}") foreach sort keys %{ $seen{anywhere} || {} };
$session->end;
$node->stop;
done_testing();
