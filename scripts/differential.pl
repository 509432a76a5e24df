#!/usr/bin/perl
# Runs queries with gpujoin off and forced, and compares their rows as multisets.
#
#   scripts/differential.pl [--database NAME] [--gpujoin PERCENT] [--little-memory] [--timeout SECONDS] [--verbose] FILE...
#
# A file is SQL that prepares tables, a line "-- queries", and blocks with empty lines between them.
# The last statement of a block is the query; the lines before it, up to the last one that ends with
# a semicolon, prepare the session.  A block that opens with "-- by PostgreSQL" need not be run by a
# GpuJoin node: all others must, without falling back, or with --gpujoin PERCENT so many of them.
#
# The rows that are compared come from a device: gpujoin.forbid_fallback is on.  A query whose values
# it leaves to PostgreSQL runs again without, and so does one that lacks memory with --little-memory.
#
# "-- by PostgreSQL, errors may differ": whether a row that is an error of its values is met depends on
# the plan, so an error on one side alone (or another one) is no difference.  "errors are the same": no plan
# can spare a row, so both sides have the error or none.  "values" in that line: of these queries is told how many
# ran on the device, returned rows, and how many of their columns have more than one value.
#
# What fails is written to a file of its own, tables and query, that this program can run again.
#
# The database has what sql_tests/01_install.sql makes.  PGHOST and PGUSER say which server.
# Needs perl and psql, no more.  Closes with "N passed, N failed".
use strict;
use warnings;
use Getopt::Long;
use IPC::Open2;
use Time::HiRes qw(time);

$SIG{ALRM} = sub { die "$0: no answer\n" };
my $database = $ENV{PGDATABASE} || 'postgres';
my %values = map { $_ => 0 } qw(queries device rows columns distinct large);
my ($percent, $little_memory, $timeout, $verbose, $passed, $failed, $offloaded, $able) = (undef, 0, 120, 0, 0, 0, 0, 0);
GetOptions('database=s' => \$database, 'gpujoin=i' => \$percent, 'little-memory' => \$little_memory, 'timeout=i' => \$timeout,
	'verbose' => \$verbose) && @ARGV
  or die "usage: $0 [--database NAME] [--gpujoin PERCENT] [--little-memory] [--timeout SECONDS] [--verbose] FILE...\n";

# Why PostgreSQL may do what a device should have done.
my $by_values = 'value out of range|division by zero|a value that the device does not know';
my $may_fall_back = $little_memory ? qr/^($by_values|out of device memory|too large for the device|device memory is in use)/ : qr/^($by_values)/;

# Errors that a value of a row makes.
my $errors_of_values = qr/.*(out of range|division by zero|infinit|NaN|square root|underflow|overflow|negative|LIKE pattern|invalid)/;

# One psql runs everything: starting it takes longer than most queries.
my ($to_psql, $from_psql, $psql_pid);
my $nth = 0;

sub start_psql
{
	$psql_pid = open2($from_psql, $to_psql, "exec psql -XAtq -d '$database' 2>&1");
}

# Runs SQL in a session of its own: its lines of output and its errors.
sub psql
{
	my ($sql) = @_;
	my $end = "-- end of $$." . ++$nth;
	my @lines;

	start_psql() unless $psql_pid;
	# a statement ends after two minutes; of SQL that has no end psql would wait for the rest
	alarm 1200;
	{
		# that it is gone is seen when its answer is read
		local $SIG{PIPE} = 'IGNORE';
		print $to_psql "\\connect\n$sql\n\\echo '$end'\n";
	}
	while (<$from_psql>)
	{
		die "$0: $_" if /^psql: error|^\\connect:|^FATAL|server closed the connection|connection to server was lost/;
		if ($_ eq "$end\n")
		{
			alarm 0;
			return @lines;
		}
		push @lines, $_;
		if (@lines > 3e6)
		{
			kill 'TERM', $psql_pid;
			waitpid $psql_pid, 0;
			$psql_pid = undef;
			die "more than 3 million rows\n";
		}
	}
	die "$0: psql has ended\n";
}

sub content
{
	my ($path) = @_;
	open my $file, '<', $path or die "$path: $!\n";
	local $/;
	return <$file>;
}

# What differs between two lists of lines, as multisets; '' if nothing does.
sub difference
{
	my ($native, $forced) = @_;
	my %count;
	$count{$_}++ foreach @$native;
	$count{$_}-- foreach @$forced;
	my @missing = sort grep { $count{$_} > 0 } keys %count;
	my @extra = sort grep { $count{$_} < 0 } keys %count;
	return '' unless @missing || @extra;
	return sprintf("%d rows, gpujoin %d; missing: %s; too many: %s",
		scalar @$native, scalar @$forced, summary(@missing), summary(@extra));
}

sub summary
{
	my @lines = @_;
	my $n = @lines;
	splice(@lines, 3) if $n > 3;
	chomp @lines;
	return "$n (" . join(' / ', map { substr($_, 0, 200) } @lines) . ')';
}

# A file with this query alone.
sub keep_query
{
	my ($setup, $block) = @_;
	my $path = "/tmp/gj_failed.$$." . ($failed + 1) . '.sql';
	open my $file, '>', $path or die "$path: $!\n";
	print $file $setup, "-- queries\n", $block;
	close $file;
	return $path;
}

# What a query of values has shown.
sub count_values
{
	my ($how, @rows) = @_;
	my @distinct;
	foreach (@rows)
	{
		my @columns = split /\|/;
		$distinct[$_]{ $columns[$_] } = 1 foreach 0 .. $#columns;
	}
	$values{device}++ if $how =~ /^GpuJoin(?! \+ aggregate|, fell back)/;
	$values{rows}++ if @rows;
	$values{columns} += @distinct;
	$values{distinct} += grep { keys %$_ > 1 } @distinct;
}

sub result
{
	my ($ok, $name, $why, $block) = @_;
	$ok ? $passed++ : $failed++;
	print $ok ? "ok" : "not ok", " - $name", $why ne '' ? ": $why" : '', "\n" if !$ok || $verbose;
	print map { "#   $_\n" } split /\n/, $block unless $ok;
}

sub run_block
{
	my ($name, $block, $setup) = @_;
	my $whole = $block;
	my ($marks) = $block =~ /^-- (by PostgreSQL.*)\n/;
	$marks = '' unless defined $marks;
	my ($errors_differ, $errors_same) = (scalar $marks =~ /errors may differ/, scalar $marks =~ /errors are the same/);
	my $by_postgres = $block =~ s/^-- by PostgreSQL.*\n//;
	my $body = join "\n", grep { !/^--/ } split /\n/, $block;
	my ($before, $query) = $body =~ /\A(.*;\n)?(.*?);?\s*\z/s
	  or die "$name: no statement\n";
	$before = '' unless defined $before;
	my $settings = "\\set VERBOSITY terse\nSET client_min_messages = warning; SET statement_timeout = '${timeout}s'; SET extra_float_digits = 1;";
	my @native = eval { psql("$settings SET gpujoin.enabled = off;\n$before$query;\n") };
	# told at the end, and not counted
	return if $@ eq "more than 3 million rows\n" && ++$values{large};
	die $@ if $@;
	my $t = time;
	my @forced = psql("$settings LOAD 'gpujoin'; SET gpujoin.force = on; SET gpujoin.forbid_fallback = on;\n$before$query;\n");
	$t = time - $t;
	my ($fallback) = map { /^ERROR:  gpujoin may not fall back: (.*)/ } @forced;
	return result(0, $name, "fell back: $fallback; see " . keep_query($setup, $whole), $block)
	  if defined $fallback && !$by_postgres && $fallback !~ $may_fall_back;
	@forced = psql("$settings LOAD 'gpujoin'; SET gpujoin.force = on;\n$before$query;\n") if defined $fallback;
	# another order of joins may spare a row that PostgreSQL's plan stumbles over
	return result(1, $name, 'an error of PostgreSQL\'s plan alone', $block)
	  if !$errors_same && (grep { /^ERROR:  .*(out of range|division by zero)/ } @native) && !grep { /^ERROR:/ } @forced;
	# a fallback is PostgreSQL's plan for all rows; for the first ones it may have another order of joins, too
	return result(1, $name, 'an error of PostgreSQL\'s plan for all rows', $block)
	  if !$errors_same && defined $fallback && $fallback =~ /^($by_values)/ && $query =~ /\bLIMIT \d/ &&
	  (grep { /^ERROR:  .*(out of range|division by zero)/ } @forced) && !grep { /^ERROR:/ } @native;
	$values{queries}++ if $marks =~ /values/;
	return result(1, $name, 'an error of one plan', $block)
	  if $errors_differ && grep { /^ERROR:  $errors_of_values/ } @native, @forced;
	my $difference = difference(\@native, \@forced);
	return result(0, $name, "$difference; see " . keep_query($setup, $whole), $block) if $difference ne '';

	my $error = grep { /^ERROR:/ } @native;
	my ($how) = grep { !/^(NOTICE|LOG|WARNING)/ }
	  psql("$settings LOAD 'gpujoin'; SET gpujoin.force = on;\n${before}SELECT gj_how(\$q\$$query\$q\$, " . ($error ? 'false' : 'true') . ");\n");
	chomp($how = defined $how ? $how : 'no plan');
	my $good = $how =~ /^GpuJoin/ && $how !~ /fell back/ && ($error || !defined $fallback);
	if (!$by_postgres) { $able++; $offloaded++ if $good; }
	count_values($how, @native) if $marks =~ /values/ && !$error;
	my $ok = $good || $by_postgres || defined $percent;
	result($ok, $name, sprintf('%s, %s, %.2f s', $error ? 'the same error' : @native . ' rows', $how, $t), $block);
}

foreach my $path (@ARGV)
{
	my ($setup, $queries) = split /^-- queries\n/m, content($path), 2;
	die "$path has no line \"-- queries\"\n" unless defined $queries;
	my @trouble = grep { /ERROR/ } psql($setup);
	result(!@trouble, "$path: tables", join('', @trouble), '');
	my $n = 0;
	foreach my $block (grep { /\S/ } split /\n\s*\n/, $queries)
	{
		$block =~ s/^\s*\n//;
		next unless grep { !/^--/ } split /\n/, $block;
		run_block("$path, query " . ++$n, $block, $setup);
	}
}

if (defined $percent)
{
	my $share = $able ? 100 * $offloaded / $able : 100;
	my $said = sprintf('%d of %d queries (%.0f %%) were run by GpuJoin', $offloaded, $able, $share);
	print "$said\n";
	result($share >= $percent, $said, $share >= $percent ? '' : "expected $percent % at least", '');
}
printf "of %d queries of values %.0f %% ran on the device, %.0f %% returned rows, %.0f %% of their columns have more than one value\n", $values{queries},
  100 * $values{device} / $values{queries}, 100 * $values{rows} / $values{queries}, 100 * $values{distinct} / ($values{columns} || 1) if $values{queries};
print "$values{large} queries of more than 3 million rows were not compared\n" if $values{large};
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
