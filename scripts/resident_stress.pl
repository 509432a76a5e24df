#!/usr/bin/perl
# Readers compare gpujoin with PostgreSQL under one snapshot while writers change the tables in every
# way that could make resident data wrong.  Works in the schema resident_stress of the current database.
#
#   scripts/resident_stress.pl [--seconds N] [--seed N] [--writers N] [--readers N] [--rows N]
#
# The last fifth of the time belongs to a table that is all-visible most of the time.  Every 30 seconds it says how far it is, so
# that a run that is cut off has told what it found.
# Connects as psql does (PGHOST ...).  gpujoin.device and the like come from the server's settings or PGOPTIONS.
# Closes with "N passed, N failed"; exit status 1 if anything differed.
use strict;
use warnings;
use Getopt::Long;
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG);

$| = 1;

my %option = (seconds => 30, seed => 1, writers => 3, readers => 3, rows => 20000);
GetOptions(\%option, 'seconds=i', 'seed=i', 'writers=i', 'readers=i', 'rows=i') or die "see the head of $0\n";
my $dir = tempdir(CLEANUP => 1);
my @tables = qw(narrow wide texts);
# one that is all-visible most of the time, at last: what is asked about as a whole is used without an answer
my $calm = 'calm';
my %columns = (calm => '(id int, k int, v int, t text)', narrow => '(id int, k int, v int)', wide => '(id int, k int, v int) WITH (fillfactor = 10)', texts => '(id int, k int, v int, t text)');

sub psql { my ($sql) = @_; my $pid = open(my $out, '-|', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', $sql) or die "psql: $!"; my @lines = <$out>; close($out) or die "psql failed: $sql\n"; chomp @lines; return @lines; }

sub has_texts { my ($table) = @_; return $table eq 'texts' || $table eq $calm; }
sub rows_of { my ($table, $first, $n) = @_; return "SELECT i, i % 100, CASE WHEN i % 7 = 0 THEN NULL ELSE i END" . (has_texts($table) ? ", repeat('x', i % 50) || i" : '') . " FROM generate_series($first, " . ($first + $n - 1) . ') i'; }

# The reader: native once, then the device several times, all in the caller's snapshot.
my $setup = <<'SQL';
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS resident_stress CASCADE;
CREATE SCHEMA resident_stress;
SET search_path = resident_stress, public;
CREATE TABLE dim AS SELECT i AS k, i * 3 AS w, 'name ' || i AS name FROM generate_series(0, 99) i;
CREATE FUNCTION query_of(tab text, kind int) RETURNS text LANGUAGE sql AS $$
	SELECT CASE kind
		WHEN 0 THEN format('SELECT count(*)::text || %s FROM resident_stress.%I a JOIN resident_stress.dim d ON a.k = d.k', sums, tab)
		WHEN 1 THEN format('SELECT count(*)::text || coalesce(sum(hashtext(x::text)::bigint)::text, ''-'') FROM (SELECT a.*, d.name FROM resident_stress.%I a JOIN resident_stress.dim d ON a.k = d.k OFFSET 0) x', tab)
		ELSE format('SELECT count(*)::text || %s FROM resident_stress.%I a JOIN resident_stress.%I d ON a.id = d.id', sums, tab, tab)
	END
	FROM (SELECT string_agg(format($f$'|' || coalesce(sum(a.%I)::text, '-') || '|' || count(a.%I)::text$f$, attname, attname), ' || ' ORDER BY attnum) AS sums
		  FROM pg_attribute WHERE attrelid = ('resident_stress.' || tab)::regclass AND attnum > 0 AND NOT attisdropped
			AND atttypid IN ('int4'::regtype, 'int8'::regtype)) s
$$;
CREATE FUNCTION compare(tab text, kind int, times int, pause float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := resident_stress.query_of(tab, kind);
	native text;
	device text;
	found text;
	total bigint;
BEGIN
	PERFORM set_config('gpujoin.enabled', 'off', true);
	EXECUTE query INTO native;
	PERFORM set_config('gpujoin.enabled', 'on', true), set_config('gpujoin.force', 'on', true);
	FOR i IN 1 .. times LOOP
		-- texts are fetched by ctid, or brought to the device
		PERFORM set_config('gpujoin.late_columns', CASE WHEN random() < 0.6 THEN 'on' ELSE 'off' END, true);
		IF kind = 1 AND random() < 0.5 THEN
			-- row by row, while others change and vacuum the table
			total := NULL;
			device := 0;
			FOR found IN EXECUTE format('SELECT x::text FROM (SELECT a.*, d.name FROM resident_stress.%I a JOIN resident_stress.dim d ON a.k = d.k OFFSET 0) x', tab) LOOP
				total := coalesce(total, 0) + hashtext(found);
				device := device::bigint + 1;
				IF device::bigint % 2000 = 0 THEN
					PERFORM pg_sleep(pause + 0.01);
				END IF;
			END LOOP;
			device := device || coalesce(total::text, '-');
		ELSE
			EXECUTE query INTO device;
		END IF;
		IF device IS DISTINCT FROM native THEN
			RETURN format('DIFFERENT: %s: %s instead of %s', query, device, native);
		END IF;
		PERFORM pg_sleep(pause);
	END LOOP;
	RETURN 'same';
END $$;
SQL
psql($setup);
psql("SET search_path = resident_stress; CREATE TABLE $_ $columns{$_}; INSERT INTO $_ " . rows_of($_, 1, $_ eq $calm ? 1000 : $option{rows}) . "; ALTER TABLE $_ SET (autovacuum_enabled = off)") foreach @tables, $calm;
psql("VACUUM ANALYZE resident_stress.$_") foreach @tables, $calm, 'dim';

# ---- what writers do

sub some { my ($list) = @_; return $list->[ int(rand(@$list)) ]; }
sub ids { my ($n, $rows) = @_; my $first = 1 + int(rand($rows)); return "id BETWEEN $first AND " . ($first + int(rand($n))); }

sub change
{
	my $t = shift;
	my $rows = $t eq $calm ? 1000 : $option{rows};
	return some([
		"INSERT INTO $t (id, k, v) SELECT i, i % 100, i FROM generate_series(1, " . (1 + int(rand(300))) . ') i',
		"UPDATE $t SET v = v + 1 WHERE " . ids(200, $rows),
		"UPDATE $t SET " . (has_texts($t) ? "t = md5(random()::text)" : "v = v + 2") . ' WHERE ' . ids(50, $rows),
		"UPDATE $t SET k = (k + 1) % 100 WHERE " . ids(200, $rows),
		"UPDATE $t SET id = id + 1 WHERE " . ids(20, $rows),
		"DELETE FROM $t WHERE " . ids(200, $rows),
		"SELECT count(*) FROM (SELECT FROM $t WHERE " . ids(50, $rows) . " FOR " . some([ 'UPDATE', 'KEY SHARE', 'SHARE' ]) . ') x' ]);
}

sub copy_freeze { my $t = shift; return "COPY $t (id, k, v) FROM stdin WITH (FREEZE);\n" . join('', map { "$_\t" . ($_ % 100) . "\t$_\n" } 1 .. 500 + int(rand(3000))) . "\\.\n"; }
sub fill { my $t = shift; return "INSERT INTO $t (id, k, v" . (has_texts($t) ? ', t' : '') . ') ' . rows_of($t, 1, $option{rows}) . ';'; }

sub statements
{
	my $t = some(\@tables);
	my $end = some([ 'COMMIT', 'COMMIT', 'ROLLBACK' ]);
	my $what = rand(100);
	return change($t) . ";\n" if $what < 25;
	return "BEGIN;\n" . join('', map { change($t) . ";\n" } 0 .. rand(4)) . "$end;\n" if $what < 38;
	return "BEGIN;\n" . change($t) . ";\nSAVEPOINT s;\n" . change($t) . ";\nROLLBACK TO s;\n" . change($t) . ";\n$end;\n" if $what < 43;
	# Own changes, not committed.  The lock comes before the snapshot, else the name might become that of a
	# table made anew, whose columns this snapshot does not see, and query_of would have nothing to add up.
	return "BEGIN ISOLATION LEVEL REPEATABLE READ;\nLOCK TABLE $t IN ROW EXCLUSIVE MODE;\n" . change($t) . ";\nSELECT 'own ' || resident_stress.compare('$t', " . int(rand(3)) . ", 2, 0);\n" . change($t) . ";\nSELECT 'own ' || resident_stress.compare('$t', 0, 1, 0);\n$end;\n" if $what < 55;
	return "VACUUM $t;\n" if $what < 69;
	return 'VACUUM (' . some([ 'FREEZE', 'DISABLE_PAGE_SKIPPING', 'FULL', 'FREEZE, ANALYZE' ]) . ") $t;\n" if $what < 75;
	return "BEGIN;\nTRUNCATE $t;\n" . fill($t) . "\n$end;\nVACUUM $t;\n" if $what < 79;
	# frozen rows in a file of this transaction, twice into the same last page
	return "BEGIN;\nTRUNCATE $t;\n" . copy_freeze($t) . "SELECT 'own ' || resident_stress.compare('$t', 0, 2, 0);\n" . copy_freeze($t) . "SELECT 'own ' || resident_stress.compare('$t', 0, 2, 0);\n$end;\n" if $what < 83;
	return "BEGIN;\nALTER TABLE $t ADD COLUMN x int DEFAULT " . int(rand(1000)) . ";\nSELECT 'own ' || resident_stress.compare('$t', 0, 2, 0);\n$end;\n" if $what < 88;
	return "ALTER TABLE $t DROP COLUMN IF EXISTS x;\n" if $what < 91;
	return "ALTER TABLE $t ALTER v TYPE " . some([ 'int', 'bigint' ]) . ";\nVACUUM $t;\n" if $what < 93;
	return "BEGIN;\nDROP TABLE $t;\nCREATE TABLE $t $columns{$t};\nALTER TABLE $t SET (autovacuum_enabled = off);\n" . fill($t) . "\n$end;\nVACUUM $t;\n" if $what < 95;
	return "DELETE FROM $t WHERE id > " . int(rand($option{rows})) . ";\nVACUUM $t;\n" if $what < 97;
	return "SELECT public.gpujoin_cache_evict();\n" if $what < 98;
	return "SELECT public.gpujoin_prewarm('$t');\n";
}

# Small changes, each vacuumed at once, as far as snapshots let it.
sub calm_change { return join('', map { "$_;\nSELECT pg_sleep(" . some([ 0, 0.005, 0.02, 0.05 ]) . ");\n" } change($calm), "VACUUM $calm", "VACUUM $calm"); }

sub calm_comparison { return "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT resident_stress.compare('$calm', " . int(rand(3)) . ', ' . (1 + int(rand(4))) . ', ' . some([ 0, 0, 0.002 ]) . ");\nCOMMIT;\nSELECT pg_sleep(" . some([ 0, 0.01 ]) . ");\n"; }

sub comparison { my $sleep = some([ 0, 0, 0.01, 0.1, 0.4 ]); return 'BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE ' . join(', ', @tables) . " IN ACCESS SHARE MODE;\nSELECT resident_stress.compare('" . some(\@tables) . "', " . int(rand(3)) . ', ' . (1 + int(rand(4))) . ", $sleep);\nSELECT resident_stress.compare('" . some(\@tables) . "', " . int(rand(3)) . ", 2, $sleep);\nCOMMIT;\n"; }

# ---- sessions: a psql each, which is given statements until the time is up

my $began = time();
my $until = $began + int($option{seconds} * 4 / 5);
my @sessions;

sub start
{
	my ($name, $make, $seed) = @_;
	my $pid = fork();
	die "fork: $!" unless defined $pid;
	push(@sessions, { name => $name, pid => $pid }), return if $pid;
	srand($seed);
	open(STDOUT, '>', "$dir/$name.out") or die $!;
	open(STDERR, '>', "$dir/$name.err") or die $!;
	$SIG{PIPE} = 'IGNORE';
	open(my $in, '|-', 'psql', '-XAtq') or die "psql: $!";
	$in->autoflush(1);
	print $in "SET search_path = resident_stress, public;\nSET lock_timeout = '1s';\nSET client_min_messages = warning;\n";
	# these load what a vacuum has gone over, others compare it
	print $in "SET gpujoin.loader_workers = 4;\nSET min_parallel_table_scan_size = 0;\n" if $seed % 2;
	# the pipe holds some statements more than psql has done: a marker keeps them few
	my $n = 0;
	while (time() < $until)
	{
		print $in $make->() or last;
		next if ++$n % 10;
		print $in "\\! touch $dir/$name.$n\n" or last;
		select(undef, undef, undef, 0.02) until -e "$dir/$name.$n" || time() >= $until;
		unlink("$dir/$name.$n");
	}
	close($in);
	POSIX::_exit($? ? 1 : 0);
}
use IO::Handle;
my ($same, $failed, $errors) = (0, 0, 0);

# Reads what the sessions have answered since the last call.
sub read_answers
{
	foreach my $session (@sessions)
	{
		foreach my $kind (qw(out err))
		{
			# not there before the session has begun
			open(my $file, '<', "$dir/$session->{name}.$kind") or next;
			seek($file, $session->{$kind} // 0, 0);
			while (<$file>)
			{
				# it is still being written
				last unless /\n$/;
				$session->{$kind} = tell($file);
				$same++ if /^(own )?same$/;
				print("not ok - $session->{name}: $_"), $failed++ if /DIFFERENT|PANIC|server closed|lost its device/;
				# what concurrent changes may bring
				next unless /ERROR:/;
				$errors++;
				print("not ok - $session->{name}: $_"), $failed++
					unless /lock timeout|deadlock|could not serialize|does not exist|already exists|current transaction is aborted|could not load|column "x"|could not open relation|tuple concurrently|cannot perform COPY FREEZE/;
			}
		}
	}
}

sub wait_for_sessions
{
	my $next = time() + 30;

	while (my @running = grep { !exists $_->{status} } @sessions)
	{
		foreach my $session (@running)
		{
			next unless waitpid($session->{pid}, WNOHANG) == $session->{pid};
			$session->{status} = $?;
			print("not ok - $session->{name} has lost its connection\n"), $failed++ if $?;
		}
		select(undef, undef, undef, 0.1);
		next if time() < $next;
		$next += 30;
		read_answers();
		print 'after ' . (time() - $began) . " s: $same comparisons, $failed failed\n";
	}
}

start("writer$_", \&statements, $option{seed} * 1000 + $_) foreach 1 .. $option{writers};
start("reader$_", \&comparison, $option{seed} * 1000 + 500 + $_) foreach 1 .. $option{readers};
wait_for_sessions();

# the snapshots of the others would keep pages from becoming all-visible
$until = time() + 1 + int($option{seconds} / 5);
start("calm_writer$_", \&calm_change, $option{seed} * 1000 + 600 + $_) foreach 1 .. $option{writers};
start("calm_reader$_", \&calm_comparison, $option{seed} * 1000 + 700 + $_) foreach 1 .. $option{readers};
wait_for_sessions();

read_answers();
my ($hits) = psql('SELECT coalesce(sum(hits), 0) FROM gpujoin_cache');
print "$same comparisons, $errors errors of concurrent changes, $hits uses of what is resident now\n";
print("not ok - nothing was compared\n"), $failed++ if $same == 0;
psql('SET client_min_messages = warning; DROP SCHEMA resident_stress CASCADE');
print "$same passed, $failed failed\n";
exit($failed ? 1 : 0);
