#!/usr/bin/perl
# What scripts/replay is made of: choosing programs, running them, comparing their results.
#
#   scripts/replay.pl script FILE              the SQL of a file of scripts/differential.pl, for one session
#   scripts/replay.pl select SAVED DIR MB N BUILD
#                                              copies N saved programs of different shapes, so many MB at most
#   scripts/replay.pl samples CORPUS src/test/programs   small programs for the unit tests
#   scripts/replay.pl coverage DIR             what the programs of a corpus have among them
#   scripts/replay.pl run BUILD DIR RESULTS DEVICE
#   scripts/replay.pl compare OLD NEW          results of two builds
#   scripts/replay.pl consistent RESULTS       results of one build with several devices, or little memory
#
# The last two close with "N passed, N failed".
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Basename qw(basename);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);

# Ways to run each program: devices to pretend, and build/replay_run's options.  For "passes" some programs have
# inner sides that do not fit.
my @ways = (
	[ 'one',         1, '' ],
	[ 'two',         2, '--exchange on' ],
	[ 'four',        4, '--exchange on' ],
	[ 'four_copies', 4, '--exchange off' ],
	[ 'limit',       1, '--memory-limit 64' ],
	[ 'passes',      1, '--memory-limit 24 --spill --spill-memory 1' ],
	[ 'passes_four', 4, '--memory-limit 24 --spill --spill-memory 1 --exchange off' ]);

sub content
{
	my ($path) = @_;
	open my $file, '<:raw', $path or die "$path: $!\n";
	local $/;
	return scalar <$file>;
}

# ---- saved programs (src/wire/saved.h, src/wire/program.h)

my @header = qw(magic nbytes kind output fail_point spill output_capacity lease sort_space
  nsources sources ncolumns columns nsteps steps nexprs exprs ninstrs instrs nconstants constants
  noutputs outputs naggregates aggregates ngroup_keys group_keys ndistinct_keys limit nsets sets
  nset_steps set_steps nsort_keys sort_keys ties stage_capacity nstage_columns stage_columns);

# Elements of an array of a program, unpacked.
sub elements
{
	my ($p, $array, $size, $template) = @_;
	return map { [ unpack $template, substr($p->{bytes}, $p->{$array} + $_ * $size, $size) ] } 0 .. $p->{"n$array"} - 1;
}

# The program in a file, and rows and chunks of its sources; undef if it is none that can be run again.
sub read_saved
{
	my ($path) = @_;
	my $bytes = content($path);
	return undef unless length $bytes > 176 && substr($bytes, 0, 8) eq 'GJSAVED3';
	my ($at, %p) = (8);
	while (length($bytes) - $at >= 16)
	{
		my ($type, $source, $nrows, $nbytes) = unpack 'L4', substr($bytes, $at, 16);
		last if length($bytes) - $at - 16 < $nbytes;
		if ($type == 1)
		{
			my $program = substr $bytes, $at + 16, $nbytes;
			@p{@header} = unpack 'LLCCCCLQQL30', $program;
			$p{bytes} = $program;
		}
		if ($type == 2) { $p{rows}[$source] += $nrows; $p{chunks}[$source]++; }
		$at += 16 + $nbytes;
	}
	# half a record, no program, or one that is made to crash, hang or fail outside of the device
	return undef if $at != length $bytes || !$p{bytes} || ($p{fail_point} > 0 && ($p{fail_point} < 5 || $p{fail_point} > 9));
	$p{size} = $at;
	return \%p;
}

sub magnitude { my ($n) = @_; return !$n ? 0 : $n < 100 ? 1 : $n < 5000 ? 2 : $n < 100000 ? 3 : 4; }

# All but constants, sizes and estimates: programs of one shape take the same paths.
sub shape
{
	my ($p) = @_;
	my @shape = (@$p{qw(kind output fail_point ties ndistinct_keys noutputs)}, $p->{limit} > 0);
	push @shape, map { my $p2 = $_; join ',', @$p2 } elements($p, 'columns', 4, 'C4');
	push @shape, map { $_->[1] >= 0 ? 'filter' : 'all' } elements($p, 'sources', 32, 'x8 Ll');
	push @shape, map { magnitude($p->{rows}[$_]) . '.' . (($p->{chunks}[$_] || 0) > 1) } 0 .. $p->{nsources} - 1;
	push @shape, map { join ',', @$_[ 0 .. 3 ], map({ $_ >= 0 } @$_[ 4 .. 8 ]), @$_[ 9 .. 10 ] } elements($p, 'steps', 40, 'C4 l x8 l4 C2');
	my %ops = map { ("$_->[0]" => 1) } elements($p, 'instrs', 24, 'S');
	push @shape, sort keys %ops;
	push @shape, map { "a$_->[0]" } elements($p, 'aggregates', 8, 'L');
	push @shape, map { "g$_->[0]" } elements($p, 'group_keys', 8, 'L');
	push @shape, map { "o$_->[0].$_->[1]" } elements($p, 'sort_keys', 8, 'SS');
	push @shape, map { "s$_->[0].$_->[1]" } elements($p, 'stage_columns', 8, 'Cx5C');
	push @shape, map { join ',', @$_[ 0 .. 3 ], $_->[4] > 0, @$_[ 5, 6 ] } elements($p, 'sets', 32, 'C4 L x16 CC');
	push @shape, map { join ',', @$_ } elements($p, 'set_steps', 32, 'x12 C9');
	return md5_hex(join ';', map { defined $_ ? $_ : '' } @shape);
}

# What must be among the programs: kind of thing, number, name.
my %names = (
	output => [qw(rows aggregates count groups)],
	kind => [qw(join intersect prewarm sets)],
	join => [qw(inner left right full semi anti right_semi right_anti)],
	algorithm => [qw(hash sort_merge nested_loop set)],
	aggregate => [qw(count_star count sum_i sum_f min_i max_i min_f max_f sum_squares_i sum_squares_high_i spread_f count_distinct sum_distinct_i)],
	group => [qw(integer float fixed text padded)],
	predicate => [qw(overlap contains contained equals jaccard cosine dice overlap_coefficient containment all)],
	returned => ['any', 'ordered', 'first in order', 'with ties', 'groups limited', 'groups ordered', 'distinct values', 'set pairs limited',
		'distinct intersections', 'membership', 'range join', 'residual condition', 'several joins', 'an error', 'large inner side', 'a stage']);

sub features
{
	my ($p) = @_;
	my %has = ("kind $p->{kind}" => 1);
	$has{"output $p->{output}"} = 1;
	$has{"join $_->[0]"} = $has{"algorithm $_->[1]"} = 1 foreach elements($p, 'steps', 40, 'CC');
	$has{"aggregate $_->[0]"} = 1 foreach elements($p, 'aggregates', 8, 'L');
	$has{"group $_->[0]"} = 1 foreach elements($p, 'group_keys', 8, 'L');
	$has{"predicate $_->[0]"} = 1 foreach $p->{kind} == 3 ? elements($p, 'sets', 32, 'x2 C') : (), elements($p, 'set_steps', 32, 'x12 C');
	my ($rows, $groups, $limit, $order) = ($p->{output} == 0, $p->{output} == 3, $p->{limit} > 0, $p->{nsort_keys} > 0);
	my @sets = elements($p, 'sets', 32, 'x4 L x16 C');
	my @steps = elements($p, 'steps', 40, 'x4 l x12 l');
	my @returned = (1, $rows && $order && !$limit, $rows && $order && $limit, $p->{ties}, $groups && $limit, $groups && $order && !$limit,
		$p->{ndistinct_keys}, grep({ $_->[0] > 0 } @sets) > 0, grep({ $_->[1] > 0 } @sets) > 0, grep({ $_->[0] > 0 } elements($p, 'set_steps', 32, 'x19 C')) > 0,
		grep({ $_->[1] >= 0 } @steps) > 0, grep({ $_->[0] >= 0 } @steps) > 0, $p->{nsteps} > 1, $p->{fail_point} > 0,
		grep({ ($p->{rows}[$_] || 0) >= 190000 } 1 .. $p->{nsources} - 1) > 0, $p->{stage_capacity} > 0);
	$returned[$_] and $has{"returned $_"} = 1 foreach 0 .. $#returned;
	return keys %has;
}

# Prints how many programs have each of them; true if none is missing.
sub coverage
{
	my (@programs) = @_;
	my (%count, $missing);
	$count{$_}++ foreach map { features($_) } @programs;
	foreach my $what (sort keys %names)
	{
		my @list = @{ $names{$what} };
		print "$what: ", join(', ', map { "$list[$_] " . ($count{"$what $_"} || 0) } 0 .. $#list), "\n";
		$missing .= " $what $list[$_];" foreach grep { !$count{"$what $_"} } 0 .. $#list;
	}
	printf "%d programs, %.1f MB\n", scalar @programs, (eval { my $n = 0; $n += $_->{size} foreach @programs; $n } || 0) / 1e6;
	print "missing:$missing\n" if $missing;
	return !$missing;
}

sub saved_files { my ($dir) = @_; return sort glob("$dir/*.gj"); }

# One program of each shape: first three with each feature, then by turns one of each set of features.
sub choose
{
	my ($saved) = @_;
	my (%best, %count, %alike);
	my $n = 0;
	foreach my $path (saved_files($saved))
	{
		my $p = read_saved($path) or next;
		my $shape = shape($p);
		$n++;
		# rather one with many rows, but not too many
		my $score = $p->{size} <= 5e5 ? $p->{size} : 1 / $p->{size};
		next if $best{$shape} && $best{$shape}{score} >= $score;
		$best{$shape} = { %$p, score => $score, path => $path, name => substr($shape, 0, 12), features => [ sort { $a cmp $b } features($p) ] };
	}
	printf "%d programs saved, of %d shapes\n", $n, scalar keys %best;
	foreach my $p (sort { $b->{score} <=> $a->{score} || $a->{name} cmp $b->{name} } values %best)
	{
		$p->{turn} = (grep { ++$count{$_} <= 3 } @{ $p->{features} }) ? 0 : ++$alike{ join ';', @{ $p->{features} } };
	}
	return sort { $a->{turn} <=> $b->{turn} || $a->{name} cmp $b->{name} } values %best;
}

# Leaves out what takes too long, or returns too much, to be run again and again.
sub drop_long
{
	my ($dir, $build) = @_;
	my $results = "$dir/results";
	my $dropped = 0;
	make_path($results);
	# no file beyond 16 MB; the rings have 8
	run_share("ulimit -f 32768; '$build' --device cpu", $results, saved_files($dir));
	foreach my $path (saved_files($dir))
	{
		my $result = "$results/" . basename($path, '.gj') . '.result';
		next if -s $result < 3e6 && read_result($result)->{status} !~ /^-1|invalid program/;
		unlink $path;
		$dropped++;
	}
	remove_tree($results);
	print "$dropped left out, which take too long or return too much\n";
}

sub select_programs
{
	my ($saved, $dir, $megabytes, $n, $build) = @_;
	my $left = $megabytes * 1e6;
	make_path($dir);
	unlink saved_files($dir);
	foreach my $p (choose($saved))
	{
		next if $n == 0 || $p->{size} > $left;
		$left -= $p->{size};
		$n--;
		copy($p->{path}, "$dir/$p->{name}.gj") or die "copy: $!\n";
	}
	drop_long($dir, $build);
	return coverage(grep { defined } map { read_saved($_) } saved_files($dir));
}

# Programs alone, without rows, for src/test/programs: small ones that together have all features,
# operators and types of columns that there are.
sub write_samples
{
	my ($saved, $dir) = @_;
	my (@all, %has);
	foreach my $path (saved_files($saved))
	{
		my $p = read_saved($path) or next;
		next if $p->{fail_point};
		push @all, { path => $path, size => $p->{nbytes}, name => substr(shape($p), 0, 8), bytes => $p->{bytes},
			has => [ features($p), map({ "operator $_->[0]" } elements($p, 'instrs', 24, 'S')), map({ "column $_->[0]" } elements($p, 'columns', 4, 'C')) ] };
	}
	make_path($dir);
	unlink glob("$dir/*.program");
	for (;;)
	{
		# the one with the most that is new for its size
		my ($best, $most) = (undef, 0);
		foreach my $p (sort { $a->{name} cmp $b->{name} } @all)
		{
			my %new = map { $_ => 1 } grep { !$has{$_} } @{ $p->{has} };
			my $score = (keys %new) / (300 + $p->{size});
			($best, $most) = ($p, $score) if $score > $most;
		}
		last unless $best;
		$has{$_} = 1 foreach @{ $best->{has} };
		open my $out, '>:raw', "$dir/$best->{name}.program" or die "$dir: $!\n";
		print $out $best->{bytes};
		close $out;
	}
	printf "%d features\n", scalar keys %has;
}

# ---- SQL of random queries

sub print_script
{
	my ($path) = @_;
	my ($setup, $queries) = split /^-- queries\n/m, content($path), 2;
	print "$setup\n";
	foreach my $block (grep { /\S/ } split /\n\s*\n/, $queries)
	{
		my $body = join "\n", grep { !/^--/ } split /\n/, $block;
		next unless $body =~ /\S/;
		$body =~ s/;?\s*\z/;/;
		print "DISCARD ALL;\nSET gpujoin.force = on; SET statement_timeout = '60s';\n$body\n";
	}
}

# ---- running

sub is_complete { my ($path) = @_; return -f $path && content($path) =~ /^end$/m; }

# Runs programs in one process, and in others from the one on that ended it.
sub run_share
{
	my ($command, $results, @files) = @_;
	while (@files)
	{
		my $status = system "$command --result '$results' @files >>'$results/log' 2>&1";
		my @left = grep { !is_complete("$results/" . basename($_, '.gj') . '.result') } @files;
		return unless @left;
		my $ended = "$results/" . basename($left[0], '.gj') . '.result';
		open my $out, '>', $ended or die "$ended: $!\n";
		printf $out "status -1 it ended with %s\nend\n",
		  $status & 127 ? "signal " . ($status & 127) : $status >> 8 > 128 ? "signal " . (($status >> 8) - 128) : "status " . ($status >> 8);
		close $out;
		@files = @left[ 1 .. $#left ];
	}
}

sub run_programs
{
	my ($build, $dir, $results, $device) = @_;
	my @files = saved_files($dir) or die "no programs in $dir\n";
	my $shares = $ENV{GJ_REPLAY_JOBS} || `nproc`;
	my $option = $device eq 'cpu' ? '--cpu-devices' : '--gpu-devices';
	chomp $shares;
	foreach my $way (@ways)
	{
		my ($name, $ndevices, $options) = @$way;
		next if $ENV{GJ_REPLAY_WAYS} && !grep { $_ eq $name } split ' ', $ENV{GJ_REPLAY_WAYS};
		# GJ_REPLAY_REAL: so many GPUs, and none that pretends to be several
		my $devices = $ENV{GJ_REPLAY_REAL} ? "--devices-per-query $ndevices" : "$option $ndevices";
		remove_tree("$results/$name");
		make_path("$results/$name");
		my @children;
		foreach my $share (0 .. $shares - 1)
		{
			my @mine = @files[ grep { $_ % $shares == $share } 0 .. $#files ];
			my $child = fork;
			die "fork: $!\n" unless defined $child;
			next if $child && push @children, $child;
			run_share("'$build' --device $device $devices $options --temp-directory '$results/$name'", "$results/$name", @mine);
			exit 0;
		}
		waitpid $_, 0 foreach @children;
	}
}

# ---- results (src/test/replay/result.h)

sub read_result
{
	my ($path) = @_;
	my %r = (columns => [], keys => [], rows => [], statistics => []);
	open my $file, '<', $path or return { status => 'no result', rows => [], statistics => [] };
	while (<$file>)
	{
		chomp;
		if (/^row (.*)/) { push @{ $r{rows} }, $1; }
		elsif (/^program (.*)/) { @r{qw(kind output limit ties top_k distinct)} = split ' ', $1; }
		elsif (/^column (.*)/) { push @{ $r{columns} }, $1; }
		elsif (/^key (\d) (\d)/) { push @{ $r{keys} }, [ $1, $2 ]; }
		elsif (/^status (.*)/) { $r{status} = $1; }
		elsif (/^(source|step|run) /) { push @{ $r{statistics} }, $_; }
		elsif (!/^(batches \d+|end)$/) { $r{status} = "malformed result: $_"; last; }
	}
	$r{status} = 'no end' unless defined $r{status};
	$r{failed} = $r{status} !~ /^0 /;
	return \%r;
}

# Keys of a row, so that smaller ones come first.
sub order_keys
{
	my ($r, $row) = @_;
	my ($keys) = $row =~ /^([^|]*)\|/;
	my @keys = split ' ', $keys;
	return map { $r->{keys}[$_][0] ? ~(0 + $keys[$_]) : $keys[$_] } 0 .. $#keys;
}

sub signed { return unpack 'q', pack 'Q', $_[0]; }

# Sums of floats: their last digits depend on the order in which rows came.
sub inexact { return $_[0] =~ /^state (3|10)$/; }

# The row without them, to sort by.
sub without_inexact
{
	my ($r, $row) = @_;
	return $row unless $r->{has_inexact};
	my ($keys, $values) = $row =~ /^([^|]*\|) (.*)/;
	my @values = split ' ', $values;
	foreach my $c (0 .. $#values)
	{
		next unless inexact($r->{columns}[$c]);
		my ($count, $hi, $lo, $f) = split /:/, $values[$c];
		$values[$c] = $count;
	}
	return join ' ', @values;
}

# Rows in an order that does not depend on chance; what must not differ is left in place.
sub canonical
{
	my ($r) = @_;
	return ("status $r->{status}") if $r->{failed};
	my @rows = @{ $r->{rows} };
	my $nkeys = @{ $r->{keys} };
	my $has_keys = $nkeys > 0 && (@rows == 0 || $rows[0] !~ /^\|/);
	$r->{has_inexact} = grep { inexact($_) } @{ $r->{columns} };
	# elements in their order
	return @rows if $r->{kind} == 1;
	return sort { $a cmp $b } intersections(@rows) if $r->{kind} == 3 && $r->{distinct};
	# the first rows in no order: any will do
	return ('rows ' . (@rows < $r->{limit} ? scalar @rows : $r->{limit})) if $r->{limit} > 0 && $nkeys == 0;
	if (!$has_keys)
	{
		$r->{sequence} = 1 if $nkeys > 0;
		my %by = map { ($_ => without_inexact($r, $_)) } @rows;
		return sort { $by{$a} cmp $by{$b} || $a cmp $b } @rows;
	}
	my @order = map { my $row = $_; [ $row, map({ signed($_) } order_keys($r, $row)) ] } @rows;
	my @wrong;
	if ($r->{limit} == 0)
	{
		foreach my $i (1 .. $#order)
		{
			next unless compare_keys($order[ $i - 1 ], $order[$i]) > 0;
			@wrong = ("row $i is not in order");
			last;
		}
	}
	foreach my $row (@order)
	{
		foreach my $k (0 .. $nkeys - 1) { $row->[ $k + 1 ] >>= 14 if $r->{keys}[$k][1]; }
		push @$row, without_inexact($r, $row->[0] =~ s/^[^|]*//r);
	}
	@order = sort { compare_keys($a, $b) || $a->[-1] cmp $b->[-1] || $a->[0] cmp $b->[0] } @order;
	@order = first_rows($r, $nkeys, @order) if $r->{limit} > 0;
	return (@wrong, map { ref $_ ? join(' ', @$_[ 1 .. $nkeys ]) . ' ' . ($_->[0] =~ s/^[^|]*//r) : $_ } @order);
}

# Compares the numbers behind the first element.
sub compare_keys
{
	my ($a, $b) = @_;
	use integer;
	foreach my $k (1 .. $#$a)
	{
		last unless $a->[$k] =~ /^-?\d+$/ && $b->[$k] =~ /^-?\d+$/;
		my $order = $a->[$k] <=> $b->[$k];
		return $order if $order;
	}
	return 0;
}

# What a limit leaves of sorted rows: of the last ones, which are equal by their keys, any will do.
sub first_rows
{
	my ($r, $nkeys, @order) = @_;
	return @order if @order < $r->{limit};
	my $last = [ @{ $order[ $r->{limit} - 1 ] }[ 0 .. $nkeys ] ];
	my @before = grep { compare_keys([ @$_[ 0 .. $nkeys ] ], $last) < 0 } @order;
	my @equal = grep { compare_keys([ @$_[ 0 .. $nkeys ] ], $last) == 0 } @order;
	return (@before, @equal) if $r->{ties};
	return (@before, 'and ' . ($r->{limit} - @before) . ' rows with the keys ' . join(' ', @$last[ 1 .. $nkeys ]));
}

sub intersections
{
	my (@all, $elements);
	foreach (@_)
	{
		my ($element, $count) = /\| (\S+) (\S+)/;
		$elements .= "$element ";
		next if $count == 0;
		push @all, "$elements: $count";
		$elements = '';
	}
	push @all, "no end: $elements" if $elements;
	return @all;
}

sub same_number
{
	my ($x, $y) = @_;
	return 1 if $x eq $y;
	return 0 if "$x$y" =~ /[a-z]{3}/;
	my $size = abs($x) > abs($y) ? abs($x) : abs($y);
	return abs($x - $y) <= 1e-11 * $size || $size < 1e-9;
}

# True if two rows are equal but for the last digits of sums of floats.
sub same_row
{
	my ($r, $x, $y) = @_;
	return 1 if $x eq $y;
	return 0 unless $r->{has_inexact};
	my ($keys_x, $values_x) = $x =~ /^([^|]*)\| (.*)/ or return 0;
	my ($keys_y, $values_y) = $y =~ /^([^|]*)\| (.*)/ or return 0;
	my @x = split ' ', $values_x;
	my @y = split ' ', $values_y;
	return 0 unless @x == @y && $keys_x eq $keys_y;
	foreach my $c (0 .. $#x)
	{
		next if $x[$c] eq $y[$c];
		return 0 unless inexact($r->{columns}[$c]);
		my @u = split /:/, $x[$c];
		my @v = split /:/, $y[$c];
		return 0 unless $u[0] == $v[0] && $u[2] eq $v[2] && same_number($u[3], $v[3]) && same_number($u[1], $v[1]);
	}
	return 1;
}

# What differs between two results; '' if nothing does.
sub difference
{
	my ($old, $new, $statistics) = @_;
	my @old = canonical($old);
	my @new = canonical($new);
	foreach my $i (0 .. (@old > @new ? $#old : $#new))
	{
		my ($x, $y) = map { defined $_ ? $_ : 'nothing' } $old[$i], $new[$i];
		next if same_row($old, $x, $y);
		return sprintf '%d rows, then %d; row %d: %.200s; then: %.200s', scalar @old, scalar @new, $i, $x, $y;
	}
	return '' unless $statistics && !$old->{failed};
	# devices that are known to have no result stop reading at different times
	return '' if grep({ /^run (?!1 )/ } @{ $old->{statistics} }) && grep({ /^source \d+ 0$/ } @{ $old->{statistics} }, @{ $new->{statistics} });
	# a device that exchanges rows orders its joins by those that it was given: how many a join sees differs
	my $no_rows = grep({ /^step / } @{ $old->{statistics} }) > 1 && grep { /^run \d+ \d+ [1-9]/ } @{ $old->{statistics} };
	# a device that no probe chunk has come to has no sorted run, and returns no groups to be put together: rows were compared above
	my $some = sub { $_[3] > 0 && $_[3] <= $_[1] * $_[2] ? "run $_[1] $_[2] $_[0] some" : "run $_[1] $_[2] $_[0] $_[3]" };
	my ($x, $y) = map { join ', ', map { $no_rows ? s/^step \d+ \d+/step/r : $_ } map { s/^run (?!1 )(\d+) (\d+) (\d+) (\d+) \d+/$some->($3, $1, $2, $4)/er } @{ $_->{statistics} } } $old, $new;
	return $x eq $y ? '' : "statistics: $x; then: $y";
}

my ($passed, $failed) = (0, 0);

sub result
{
	my ($name, $difference) = @_;
	if ($difference eq '') { $passed++; return; }
	$failed++;
	print "not ok - $name: $difference\n" if $failed <= 40;
}

sub names_in { my ($dir) = @_; return map { basename($_, '.result') } sort glob("$dir/*.result"); }

sub compare_builds
{
	my ($old, $new) = @_;
	foreach my $way (grep { -d "$old/$_" } map { $_->[0] } @ways)
	{
		my ($n, $errors) = (0, 0);
		foreach my $name (names_in("$old/$way"))
		{
			my ($x, $y) = (read_result("$old/$way/$name.result"), read_result("$new/$way/$name.result"));
			result("$way, $name", difference($x, $y, 1));
			$n++;
			$errors++ if $x->{failed};
		}
		print "$way: $n programs, $errors of them end with an error\n";
	}
}

# Several devices, or little memory: the same rows as one device with all its memory.
sub compare_ways
{
	my ($results) = @_;
	foreach my $way (grep { $_ ne 'one' && -d "$results/$_" } map { $_->[0] } @ways)
	{
		my ($n, $short) = (0, 0);
		foreach my $name (names_in("$results/one"))
		{
			my ($x, $y) = (read_result("$results/one/$name.result"), read_result("$results/$way/$name.result"));
			# the backend puts tiles together
			next if ($x->{top_k} || 0) > 0;
			if ($way =~ /limit|passes/ && $y->{status} =~ /out of (device|host) memory|too large/) { $short++; next; }
			$n++;
			result("$way, $name", difference($x, $y, 0));
		}
		print "$way: $n programs", $short ? ", $short others have no room" : '', "\n";
	}
}

# ---- the command

my ($command, @args) = @ARGV;
$command = '' unless defined $command;
if ($command eq 'script' && @args == 1) { print_script(@args); }
elsif ($command eq 'select' && @args == 5) { exit(select_programs(@args) ? 0 : 1); }
elsif ($command eq 'samples' && @args == 2) { write_samples(@args); }
elsif ($command eq 'coverage' && @args == 1) { exit(coverage(grep { defined } map { read_saved($_) } saved_files(@args)) ? 0 : 1); }
elsif ($command eq 'run' && @args == 4) { run_programs(@args); }
elsif ($command eq 'compare' && @args == 2 || $command eq 'consistent' && @args == 1)
{
	$command eq 'compare' ? compare_builds(@args) : compare_ways(@args);
	print "$passed passed, $failed failed\n";
	exit($failed || !$passed ? 1 : 0);
}
else
{
	open my $self, '<', $0 or die;
	while (<$self>) { last unless /^#/; print "$1\n" if $. > 1 && /^# ?(.*)/; }
	exit 2;
}
