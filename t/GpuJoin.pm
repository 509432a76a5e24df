# What the TAP tests of gpujoin share.
package GpuJoin;
use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(new_node device devices_conf wait_for_devices restart_with_devices have_gpu sees_gpu how on_device installed_daemon wrapped_programs own_extensions start_psql finish daemon_pids launcher_pid restarted wait_until idle_ms
  plan_of native_answer received refusal right_sessions right_when_failing cancelled $sums $sums_answer $rows $rows_answer);

# Two queries over tables that new_node() makes, and their answers.
our $sums = 'SELECT count(*), sum(f.v + d.c) FROM f JOIN d ON f.k = d.k';
our $sums_answer = '60000|2340000';
our $rows = 'SELECT f.id, d.name FROM f JOIN d ON f.k = d.k';
our $rows_answer = 60000;

sub device { return $ENV{GJ_DEVICE} || 'cpu'; }

# Lines of postgresql.conf by which a server has so many devices, that the cpu, or the first GPU, pretends to be.
sub devices_conf { return "gpujoin.devices = '0'\ngpujoin.cpu_devices = $_[0]\ngpujoin.gpu_devices = $_[0]\n"; }

# Waits until this number of devices is ready, as '> 0': a query that comes while GPUs are being opened can be
# planned without them.
sub wait_for_devices
{
	my ($node, $number) = @_;
	my $ready = "SELECT count(*) $number FROM gpujoin_devices WHERE device = '" . device() . "' AND status = 'ready'";
	return wait_until(15, sub { $node->safe_psql('postgres', $ready) eq 't' });
}

# Restarts a server with so many devices, and more lines of configuration; they are ready then.
sub restart_with_devices
{
	my ($node, $n, $conf) = @_;
	$node->append_conf('postgresql.conf', devices_conf($n) . ($conf || ''));
	$node->restart;
	wait_for_devices($node, "= $n") or die "$n devices are not ready";
	return;
}

sub have_gpu
{
	my $bindir = `pg_config --bindir`;
	chomp $bindir;
	return `"$bindir/gpujoind" --list-devices 2>/dev/null` =~ /^cuda/m;
}

# Whether sessions take this machine for one with a GPU, perhaps one that gpujoind was not built for: the files that
# src/client/device_info.c looks for.
sub sees_gpu { return grep { -e } qw(/dev/nvidiactl /dev/nvidia0 /dev/dxg); }

# The path of the gpujoind that was installed last.
sub installed_daemon
{
	chomp(my $folder = `pg_config --pkglibdir`);
	return (sort { -M $a <=> -M $b } glob "$folder/gpujoind-*")[0];
}

# A copy of the server's programs whose gpujoind is a shell script: what it does with $daemon "$@".  PostgreSQL finds
# its library folder relative to its program.
sub wrapped_programs
{
	my ($script) = @_;
	my $root = PostgreSQL::Test::Utils::tempdir();
	my %dir;
	foreach my $which (qw(bindir pkglibdir sharedir))
	{
		chomp($dir{$which} = `pg_config --$which`);
		(my $parent = $root . $dir{$which}) =~ s{/[^/]+$}{};
		system('mkdir', '-p', $which eq 'sharedir' ? $parent : $root . $dir{$which}) == 0 or die;
	}
	symlink $dir{sharedir}, $root . $dir{sharedir} or die;
	foreach my $which (qw(bindir pkglibdir))
	{
		symlink $_, $root . $_ or die foreach glob "$dir{$which}/*";
	}
	foreach my $program (map { "$dir{bindir}/$_" } qw(postgres pg_ctl))
	{
		unlink $root . $program or die;
		system('cp', $program, $root . $program) == 0 or die;
	}
	my $daemon = installed_daemon();
	unlink $root . $daemon or die;
	append_to_file($root . $daemon, "#!/bin/bash\ndaemon=$daemon\n$script\n");
	chmod 0755, $root . $daemon or die;
	return $root . $dir{bindir} =~ s{/bin$}{}r;
}

# Gives such a copy a folder of extensions of its own, and returns its path.
sub own_extensions
{
	my ($programs) = @_;
	chomp(my $share = `pg_config --sharedir`);
	chomp(my $bindir = `pg_config --bindir`);
	my $own = substr("$programs/bin", 0, -length $bindir) . $share;
	unlink $own or die;
	mkdir $_ or die foreach $own, "$own/extension";
	foreach my $path (glob("$share/*"), glob("$share/extension/*"))
	{
		symlink $path, $own . substr($path, length $share) or die unless $path eq "$share/extension";
	}
	return "$own/extension";
}

# A running server with the extension and tables.  preload: gpujoin is in shared_preload_libraries;
# conf: more lines for postgresql.conf; init: arguments of init(); new: arguments of new().
sub new_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, %{ $options{new} || {} });
	$node->init(%{ $options{init} || {} });
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin'\ngpujoin.device = " . device() . "\n")
	  if $options{preload};
	$node->append_conf('postgresql.conf', "max_connections = 60\nautovacuum = off\nstatement_timeout = 60s\njit = off\n" . ($options{conf} || ''));
	$node->start;
	$node->safe_psql('postgres', q{
		SET client_min_messages = warning;
		CREATE EXTENSION gpujoin;
		CREATE TABLE f AS SELECT i AS id, i % 100 AS k, i % 100 + 5 AS v, 'text ' || i AS t FROM generate_series(1, 100000) i;
		CREATE TABLE d AS SELECT i AS k, i % 10 AS c, 'd' || i AS name FROM generate_series(0, 59) i;
		VACUUM ANALYZE f, d;
		-- milliseconds until no device has a session or memory in use; -1: not within 10 s
		CREATE FUNCTION idle_ms() RETURNS int LANGUAGE plpgsql AS $$
		DECLARE
			began timestamptz := clock_timestamp();
		BEGIN
			FOR i IN 1..4000 LOOP
				PERFORM FROM gpujoin_devices WHERE sessions > 0 OR memory_used > 0;
				IF NOT FOUND THEN
					RETURN extract(epoch FROM clock_timestamp() - began) * 1000;
				END IF;
				PERFORM pg_sleep(0.0025);
			END LOOP;
			RETURN -1;
		END $$;
	});
	wait_for_devices($node, '> 0') if $options{preload};
	return $node;
}

# Lines that make a session use gpujoin: loaded, forced, on the device of this run.
sub session
{
	return "LOAD 'gpujoin'; SET gpujoin.device = '" . device() . "'; SET gpujoin.force = on;";
}

# Whether GpuJoin runs a query, and why not: 'GpuJoin', 'native', 'fell back: ...'.
sub how
{
	my ($node, $query, $settings) = @_;
	my $plan = plan_of($node, $query, session() . ($settings || ''));
	return 'native' unless $plan =~ /Custom Scan \(GpuJoin\)/;
	return "fell back: $1" if $plan =~ /^\s*Fallback: (.*)$/m;
	return 'GpuJoin';
}

# A query's EXPLAIN ANALYZE, and its answer by PostgreSQL's own plan.
sub plan_of
{
	my ($node, $query, $settings) = @_;
	return $node->safe_psql('postgres', "$settings EXPLAIN (ANALYZE, COSTS OFF) $query");
}

sub native_answer
{
	my ($node, $query) = @_;
	return $node->safe_psql('postgres', "SET gpujoin.enabled = off; $query");
}

# Bytes that each device got from others, a list; empty: rows were not shared out this way (keys, ring, ranges).
sub received
{
	my ($plan, $way) = @_;
	my %text = (keys => qr/by the keys of join \d+/, ring => qr/blocks of join \d+ in a ring/, ranges => qr/ranges of join \d+/);
	my ($line) = $plan =~ /Exchanged: $text{$way}, bytes received: (.*)/;
	return [map { /^\d+ (\d+)$/ ? $1 : () } split /, /, $line // ''];
}

# Tests that a query has its answer, whatever fails.
sub right_when_failing
{
	my ($node, $query, $settings, $answer, $name, @points) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', "$settings SET gpujoin.fail_at = '$_'; $query"), $answer, "$name, $_ fails: right rows") foreach @points;
}

# Tests that a query can be cancelled while a device works on it.
sub cancelled
{
	my ($node, $query, $settings, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rc, $out, $err) = $node->psql('postgres', "$settings SET gpujoin.fail_at = 'stall'; SET statement_timeout = '300ms'; $query");
	like($err, qr/statement timeout/, "$name: cancelled");
}

# What a server says that refuses a connection; empty: it accepts it.  For psql() a psql that ends before it has read
# its SQL is an error.
sub refusal
{
	my ($node, $database, @options) = @_;
	my ($out, $err);
	my @command = ('psql', '-XAtq', '-d', $node->connstr($database), @options, '-c', 'SELECT 1');
	return '' if IPC::Run::run(\@command, '<', '/dev/null', '>', \$out, '2>', \$err);
	return $err;
}

# How many of n sessions at once have this answer, and no error.
sub right_sessions
{
	my ($node, $n, $sql, $answer) = @_;
	my @runs = map { start_psql($node, $sql) } 1 .. $n;
	return scalar grep { my ($out, $err) = finish($_); $err eq '' && $out eq $answer } @runs;
}

# Whether queries are soon on the device, within so many seconds (15).
sub on_device
{
	my ($node, $seconds) = @_;
	return wait_until($seconds || 15, sub { how($node, $sums) eq 'GpuJoin' });
}

# Starts psql with some SQL, not waiting for its end.
sub start_psql
{
	my ($node, $sql) = @_;
	my $base = PostgreSQL::Test::Utils::tempdir() . '/psql';
	# files, not pipes: nobody has to pump them
	append_to_file("$base.sql", session() . "$sql\n");
	my $harness = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', "$base.sql"],
		'<', '/dev/null', '>', "$base.out", '2>', "$base.err", IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return { harness => $harness, base => $base };
}

# Waits for such a psql: its output and errors.
sub finish
{
	my ($run) = @_;
	eval { IPC::Run::finish($run->{harness}); 1 } or do { diag("psql: $@"); $run->{harness}->kill_kill };
	my ($out, $err) = (slurp_file("$run->{base}.out"), slurp_file("$run->{base}.err"));
	$out =~ s/\n\z//;
	return ($out, $err);
}

# Process ids of the gpujoind of a server.
sub daemon_pids
{
	my ($node) = @_;
	my $directory = $node->data_dir;
	my @pids;
	foreach my $path (glob '/proc/[0-9]*/cmdline')
	{
		open my $file, '<', $path or next;
		local $/;
		my $line = <$file>;
		next unless defined $line && $line =~ /^\S*gpujoind/ && index($line, $directory) >= 0;
		push @pids, $path =~ m{/(\d+)/};
	}
	return @pids;
}

# Process id of the launcher that has started the gpujoind of a server.
sub launcher_pid
{
	my ($node) = @_;
	my ($daemon) = daemon_pids($node);
	my ($parent) = defined $daemon ? slurp_file("/proc/$daemon/status") =~ /^PPid:\s+(\d+)$/m : ();
	die "gpujoind has no launcher" if !defined $parent || $parent <= 1;
	return $parent;
}

# Whether a condition comes true within some seconds; a machine that is busy has four times as long.
sub wait_until
{
	my ($seconds, $condition) = @_;
	my $end = time + 4 * $seconds;
	do
	{
		return 1 if $condition->();
		usleep(20_000);
	} while (time < $end);
	return 0;
}

# Whether another gpujoind than those soon runs, alone.
sub restarted
{
	my ($node, @before) = @_;
	return wait_until(15, sub { my @now = daemon_pids($node); @now == 1 && $now[0] != $before[0] });
}

# Milliseconds until nothing of any query is left in gpujoind.
sub idle_ms
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT idle_ms()');
}

# A session that stays: statements in, what they return out.  No statement may take longer than the
# tests' usual limit.
package GpuJoin::Session;

# setup: statements to begin with
sub new
{
	my ($class, $server, $setup) = @_;
	my $self = bless { in => '', out => '', err => '' }, $class;
	$self->{limit} = IPC::Run::timer($PostgreSQL::Test::Utils::timeout_default);
	$self->{run} = IPC::Run::start(['psql', '-XAtq', '-d', $server->connstr('postgres')], '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{limit});
	$self->query(GpuJoin::session() . ($setup || ''));
	return $self;
}

# Sends statements without waiting for their end, and waits for it.
sub send
{
	my ($self, $sql) = @_;
	$self->{out} = '';
	$self->{in} .= "$sql;\n\\warn done\n\\echo done\n";
	$self->{limit}->start;
	$self->{run}->pump_nb while length $self->{in};
}

sub answer
{
	my ($self) = @_;
	# both pipes: what is said in one of them may be read before what was said in the other one
	until ($self->{out} =~ /^done$/m && $self->{err} =~ /^done$/m)
	{
		die "no answer from a session: $self->{err}" if $self->{limit}->is_expired;
		$self->{run}->pump;
	}
	s/^done\n//m foreach $self->{out}, $self->{err};
	chomp(my $answer = $self->{out});
	return $answer;
}

sub query { my ($self, $sql) = @_; $self->send($sql); return $self->answer; }

# What it has complained of since this was last asked for.
sub errors { my ($self) = @_; my $errors = $self->{err}; $self->{err} = ''; return $errors; }

sub end { my ($self) = @_; $self->{in} .= "\\q\n"; eval { $self->{run}->finish; 1 } or $self->{run}->kill_kill; }

1;
