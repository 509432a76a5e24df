#!/usr/bin/perl
# Compares the results of two runs of PostgreSQL's regression tests by rows.
#
#   scripts/compare_regress.pl SQL_DIR RESULTS_A RESULTS_B EXPLAINED
#
# SQL_DIR holds TEST.sql, the result folders TEST.out (psql -a echoes what it reads).  The output after each
# statement must have the same lines in both, in any order; the text of EXPLAIN may differ.  EXPLAINED lists what
# else may: one line for each statement, "TEST<tab>regular expression of the statement<tab>reason"; a line that
# explains nothing is an error as well.  Closes with "N passed, N failed", a test file being one.
use strict;
use warnings;

my ($sql_dir, $dir_a, $dir_b, $explained_file) = @ARGV;
die "usage: $0 SQL_DIR RESULTS_A RESULTS_B EXPLAINED\n" unless defined $explained_file;

sub lines
{
	my ($file) = @_;
	open my $in, '<', $file or return;
	my @lines = <$in>;
	chomp @lines;
	return \@lines;
}

# The statements of a file and what psql printed behind each: [ text, [ lines ] ]...
sub statements
{
	my ($sql, $out) = @_;
	my @parts = ([ '', [] ]);
	my ($at, $in_data) = (0, 0);
	foreach my $line (@$sql)
	{
		# psql echoes neither empty lines nor the data of COPY
		if ($in_data) { $in_data = $line ne '\\.'; next; }
		next if $line eq '';
		$in_data = 1 if $line =~ /^\s*copy\b.*\bfrom\s+stdin\b/i;
		my $next = $at;
		$next++ while $next < @$out && $out->[$next] ne $line;
		next if $next == @$out;		# not echoed either
		my @printed = @$out[ $at .. $next - 1 ];
		$at = $next + 1;
		if (@printed)
		{
			$parts[-1][1] = \@printed;
			push @parts, [ '', [] ];
		}
		$parts[-1][0] .= "$line\n";
	}
	$parts[-1][1] = [ @$out[ $at .. $#$out ] ];
	return @parts;
}

# Of several statements without output in between: the last one made it.
sub last_statement
{
	my ($text) = @_;
	$text =~ s/^\s*--.*$//mg;
	my @all = grep { /\S/ } split /;[ \t]*\n|\\gexec[ \t]*\n/, $text;
	my $last = @all ? $all[-1] : '';
	$last =~ s/^\s+|\s+$//g;
	return $last;
}

sub same_rows
{
	my ($a, $b) = @_;
	# widths of columns do not count
	my ($x, $y) = map { my $l = $_; join "\n", sort map { my $s = $_; $s =~ s/\s+/ /g; $s =~ s/-{2,}/--/g; $s =~ s/^ | $//g; $s } @$l } $a, $b;
	return $x eq $y;
}

my @explained = map { my ($test, $re, $reason) = split /\t+/, $_, 3; { test => $test, re => qr/$re/si, reason => $reason, used => 0 } }
	grep { /\S/ && !/^#/ } @{ lines($explained_file) || die "no $explained_file\n" };
my ($passed, $failed, $order, $explains) = (0, 0, 0, 0);
my %seen;

foreach my $file (sort glob "$dir_a/*.out")
{
	(my $test = $file) =~ s,.*/(.*)\.out$,$1,;
	my $sql = lines("$sql_dir/$test.sql") or next;
	my ($out_a, $out_b) = (lines($file), lines("$dir_b/$test.out"));
	my @bad;
	$seen{$test} = 1;
	if (!$out_b)
	{
		push @bad, [ 'no result', '', [], [] ];
	}
	elsif (join("\n", @$out_a) ne join("\n", @$out_b))
	{
		my @a = statements($sql, $out_a);
		my @b = statements($sql, $out_b);
		# a statement that prints in one run only shifts what follows: compare by text
		my ($i, $j) = (0, 0);
		while ($i < @a || $j < @b)
		{
			my ($ta, $tb) = ($i < @a ? $a[$i][0] : undef, $j < @b ? $b[$j][0] : undef);
			if (defined $ta && defined $tb && length($ta) > length($tb) && substr($ta, 0, length $tb) eq $tb)
			{
				push @bad, [ 'printed in one run only', $tb, [], $b[$j][1] ];
				$a[$i][0] = substr($ta, length $tb); $j++; next;
			}
			if (defined $ta && defined $tb && length($tb) > length($ta) && substr($tb, 0, length $ta) eq $ta)
			{
				push @bad, [ 'printed in one run only', $ta, $a[$i][1], [] ];
				$b[$j][0] = substr($tb, length $ta); $i++; next;
			}
			if (!defined $ta || !defined $tb || $ta ne $tb)
			{
				push @bad, [ 'statements do not match', $ta // $tb, [], [] ];
				last;
			}
			my ($pa, $pb) = ($a[$i++][1], $b[$j++][1]);
			next if join("\n", @$pa) eq join("\n", @$pb);
			my $statement = last_statement($ta);
			if (same_rows($pa, $pb)) { $order++; next; }
			if ($statement =~ /^(explain|prepare\s.*explain)|\bexplain_|\\d\+? |EXPLAIN/is) { $explains++; next; }
			push @bad, [ 'different rows', $statement, $pa, $pb, $ta ];
		}
	}
	my @left;
	foreach my $bad (@bad)
	{
		my ($by) = grep { $_->{test} eq $test && ($bad->[4] // $bad->[1]) =~ $_->{re} } @explained;
		if ($by) { $by->{used}++; } else { push @left, $bad; }
	}
	if (@left)
	{
		$failed++;
		print "not ok - $test: ", scalar(@left), " statements\n";
		foreach my $bad (@left[ 0 .. ($#left > 9 ? 9 : $#left) ])
		{
			print "# $bad->[0]: ", join("\n#   ", split /\n/, $bad->[1]), "\n";
			print map { "#   < $_\n" } grep { defined } @{ $bad->[2] }[ 0 .. 14 ];
			print map { "#   > $_\n" } grep { defined } @{ $bad->[3] }[ 0 .. 14 ];
		}
	}
	else { $passed++; }
}
foreach my $e (grep { !$_->{used} } @explained)
{
	print "# explains nothing: $e->{test} $e->{re}\n";
}
die "no results in $dir_a\n" unless $passed + $failed;
print "$order statements with rows in another order, $explains with another EXPLAIN, ",
	scalar(grep { $_->{used} } @explained), " explained one by one\n";
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
