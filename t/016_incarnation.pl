# A gpujoind answers the sessions of the server that started it, and no others; sessions talk to no other gpujoind.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Socket;
use Test::More;

my $session = GpuJoin::session();
my $rounds = $ENV{GJ_LONG} ? 12 : 2;

# ---- a gpujoind that cannot end by itself when its launcher ends
my $node = new_node('outlived', preload => 1);
foreach my $round (1 .. $rounds)
{
	ok(on_device($node), "round $round: on the device");
	my ($old) = daemon_pids($node);
	kill 'STOP', $old;
	$node->stop('immediate');
	ok(wait_until(2, sub { !daemon_pids($node) }), 'a stopped gpujoind has ended with its server');
	$node->start;
	kill 'CONT', $old;
	is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'right answer');
	ok(on_device($node), 'the new gpujoind answers');
}
# the launcher alone ends
my ($old) = daemon_pids($node);
kill 'STOP', $old;
kill 'TERM', launcher_pid($node);
ok(wait_until(5, sub { !grep { $_ == $old } daemon_pids($node) }), 'a stopped gpujoind has ended with its launcher');
ok(on_device($node), 'a new launcher starts a new one');

# ---- one server's gpujoind is not another's
my $other = new_node('other', preload => 1);
ok(on_device($other), 'another server');
my @others = daemon_pids($other);
kill 'STOP', daemon_pids($node);
$node->stop('immediate');
ok(wait_until(2, sub { !daemon_pids($node) }), 'the first one and its gpujoind have ended');
is("@{[ daemon_pids($other) ]}", "@others", "that of the other one has not");
is(how($other, $sums), 'GpuJoin', 'and works');
$other->stop;

# ---- another gpujoind has the socket
my $daemon = `pg_config --bindir` =~ s/\n//r . '/gpujoind';
my $foreign = IPC::Run::start([ $daemon, '--directory', $node->data_dir ], '<', '/dev/null', '>', '/dev/null', '2>', "$PostgreSQL::Test::Utils::log_path/foreign");
ok(wait_until(10, sub { slurp_file("$PostgreSQL::Test::Utils::log_path/foreign") =~ /is ready/ }), 'a gpujoind that no launcher has started');
$node->start;
isnt(how($node, $sums), 'GpuJoin', 'sessions do not use it');
is($node->safe_psql('postgres', "$session $sums"), $sums_answer, 'right answer');
$foreign->signal('TERM');
$foreign->finish;
ok(on_device($node), "when it has ended the server's own is used");

# ---- the same, message by message
my %sizes = slurp_file("$FindBin::RealBin/../src/test/test_wire.c") =~ /CHECK_EQUAL\((?:sizeof\((\w+)\)), (\d+)\)/g;
my ($abi) = (glob $node->data_dir . '/gpujoin.*.sock')[0] =~ /(\d+)\.sock/;
# paths of sockets are short
chdir $node->data_dir or die;

# Says hello as a session that wants this incarnation: the type of the answer, and all of it.
sub hello
{
	my ($incarnation) = @_;
	my $answer;
	socket(my $socket, PF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!";
	connect($socket, pack_sockaddr_un("gpujoin.$abi.sock")) or die "connect: $!";
	send($socket, pack('L6Q2L6Q', 1, $abi, $sizes{GjProgram}, $sizes{GjRunStats}, 0, $$, 0, $incarnation, 0, 0xffffffff, (0) x 5), 0) or die "send: $!";
	recv($socket, $answer, 1024, 0);
	return (unpack('L', $answer), $answer);
}

my ($pid) = daemon_pids($node);
my ($incarnation) = slurp_file("/proc/$pid/cmdline") =~ /--incarnation\0(\d+)/;
my ($type, $welcome) = hello($incarnation);
is($type, 64, 'gpujoind welcomes a session that names it');
is(length $welcome, $sizes{GjMsgWelcome}, 'as it should');
is((hello(1))[0], 71, 'it refuses one that names another');
is((hello(0))[0], 71, 'or none');

# Somebody else listens on the socket in the place of gpujoind.  Which incarnation it says it is: 'wanted', or a number.
sub pretend
{
	my ($says, $check) = @_;
	# else a session need not ask which devices there are
	unlink "gpujoin.$abi.sock", "gpujoin.$abi.published";
	socket(my $listener, PF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!";
	bind($listener, pack_sockaddr_un("gpujoin.$abi.sock")) or die "bind: $!";
	listen($listener, 50) or die "listen: $!";
	my $child = fork;
	if ($child == 0)
	{
		my @open;
		while (accept(my $socket, $listener))
		{
			recv($socket, my $hello, 1024, 0);
			my $wanted = unpack('x32Q', $hello);
			send($socket, substr($welcome, 0, 8) . pack('Q', $says eq 'wanted' ? $wanted : $says) . substr($welcome, 16), 0);
			push @open, $socket;
		}
		exit;
	}
	close $listener;
	$check->();
	kill 'KILL', $child;
	waitpid $child, 0;
}
my $explain = "$session EXPLAIN $sums";
pretend('wanted', sub { like($node->safe_psql('postgres', $explain), qr/GpuJoin/, 'a session believes who says what the launcher says') });
pretend(1, sub { unlike($node->safe_psql('postgres', $explain), qr/GpuJoin/, 'it does not believe another one') });
kill 'KILL', $pid;
ok(on_device($node), 'in the end the device is used');
$node->stop;
done_testing();
