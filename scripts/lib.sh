# What scripts/test, scripts/demo and .ci/run share; to be sourced by bash, in the repository root.
#
# Variables: user (who runs servers if this is root), work (a folder that this user may enter),
# device; find_postgres sets pg_config, bindir and libdir.

unset PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS MAKEFLAGS
have_nvidia() { ls /dev/nvidia[0-9]* >/dev/null 2>&1 || [ -e /dev/dxg ]; }
export CUDA_ARCH=${CUDA_ARCH:-$(have_nvidia && echo native || echo 90)} WITH_CUDA=${WITH_CUDA:-auto}
user=${GJ_TEST_USER:-gpujointest}
jobs=$(nproc)
servers=()

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo env PATH="$PATH" "$@"; fi; }

# Runs a command as the unprivileged user, with this environment.
as_user() {
	if [ "$(id -u)" != 0 ]; then "$@"; return; fi
	# it may not be allowed to enter this folder
	(cd "$work" && setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env HOME="$work/home" USER="$user" "$@")
}

# ---- what is needed

have_headers() { [ -n "${pg_config:-}" ] && [ -f "$("$pg_config" --includedir-server 2>/dev/null)/postgres.h" ] && [ -f "$("$pg_config" --pgxs)" ]; }

# Finds PostgreSQL's pg_config: the one on PATH, else the newest that Debian has put somewhere.
find_postgres() {
	local p
	pg_config=
	for p in ${PG_CONFIG:-} $(command -v pg_config) $(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -rV); do
		pg_config=$p
		if have_headers && [ -x "$("$p" --bindir)/postgres" ]; then
			bindir=$("$p" --bindir) libdir=$("$p" --pkglibdir)
			export PATH=$bindir:$PATH
			return 0
		fi
	done
	return 1
}

install_packages() {
	local log
	log=$(mktemp /tmp/gpujoin_apt.XXXXXX)
	echo "installing $*"
	{
		[ -n "${apt_updated:-}" ] || as_root apt-get update -q
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
	} >"$log" 2>&1 || { tail -20 "$log"; return 1; }
	apt_updated=yes
	rm -f "$log"
}

install_missing() {
	local missing=() version
	command -v gcc >/dev/null || missing+=(gcc libc6-dev)
	command -v make >/dev/null || missing+=(make)
	command -v prove >/dev/null || missing+=(perl)
	perl -MIPC::Run -e 1 2>/dev/null || missing+=(libipc-run-perl)
	[ -f /usr/share/zoneinfo/America/Los_Angeles ] || missing+=(tzdata)
	# without the last three only some tests fail
	[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}" || { command -v gcc && command -v make; } >/dev/null || return 1
	find_postgres && return
	install_packages postgresql || return 1
	version=$(ls /usr/lib/postgresql | sort -V | tail -1)
	install_packages "postgresql-server-dev-$version" && find_postgres
}

# Makes $work, a folder that the unprivileged user may enter, with a home for them.
make_work() {
	mkdir -p "$work/home"
	chmod 755 "$work"
	[ "$(id -u)" != 0 ] || chown "$user" "$work" "$work/home"
}

# ---- servers

# start_server NAME LINE...: a cluster in $work/NAME, started; psql then reaches it.
start_server() {
	local name=$1 dir=$work/$1; shift
	as_user initdb -D "$dir/data" -U postgres -A trust --no-sync -E UTF8 --locale=C >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log"; return 1; }
	{
		printf "unix_socket_directories = '%s'\nlisten_addresses = ''\nfsync = off\nshared_buffers = 256MB\n" "$dir"
		printf "max_connections = 50\nmax_worker_processes = 32\ngpujoin.device = %s\n" "$device"
		# a server whose LLVM is missing fails where it would compile
		if ldd "$libdir/llvmjit.so" 2>/dev/null | grep -q 'not found'; then echo "jit = off"; fi
		printf '%s\n' "$@" "${GJ_CONF:-}"
	} >>"$dir/data/postgresql.conf"
	as_user pg_ctl -D "$dir/data" -l "$dir/log" -w -t 120 start >/dev/null || { tail -20 "$dir/log"; return 1; }
	servers+=("$dir")
	export PGHOST=$dir PGUSER=postgres PGDATABASE=postgres
}

stop_servers() {
	local dir
	for dir in ${servers[@]+"${servers[@]}"}; do as_user pg_ctl -D "$dir/data" -w -m fast stop >/dev/null 2>&1; done
	servers=()
}

# ---- building

# Builds and installs; extra arguments are make's.
build_and_install() {
	local log
	log=$(mktemp /tmp/gpujoin_build.XXXXXX)
	make -j"$jobs" PG_CONFIG="$pg_config" with_llvm=no "$@" >"$log" 2>&1 || { tail -30 "$log"; return 1; }
	rm -f "$log"
	as_root make -s PG_CONFIG="$pg_config" with_llvm=no CUDA_ARCH="$CUDA_ARCH" WITH_CUDA="$WITH_CUDA" CUDA_FAST_COMPILE="${CUDA_FAST_COMPILE:-}" install >/dev/null || return 1
	find_daemon && find_device
}

# Makes the unprivileged user, if this is root.
make_user() { [ "$(id -u)" != 0 ] || id "$user" >/dev/null 2>&1 || useradd --create-home "$user"; }

# Sets daemon, the name of the gpujoind that was installed last.
find_daemon() {
	daemon=$(cd "$libdir" && ls -t gpujoind-* 2>/dev/null | head -1)
	[ -n "$daemon" ] || { echo "gpujoin is not installed: make && make install"; return 1; }
}

# Whether gpujoind finds a GPU.
have_gpu() { grep -q '^cuda' <<<"$("$libdir/$daemon" --list-devices 2>/dev/null)"; }

# Sets device, if GJ_DEVICE does not: what gpujoind finds.
find_device() { device=${GJ_DEVICE:-$(have_gpu && echo cuda || echo cpu)}; }

# server_copy NAME FLAG...: server_with of a gpujoind that is built with make's FLAGs, from $work/NAME/source.
server_copy() {
	local name=$1 source=$work/$1/source; shift
	find_daemon || return 1
	rm -rf "$work/$name"; mkdir -p "$source/cuda"
	cp -r Makefile src "$source"
	make -C "$source" -j"$jobs" PG_CONFIG="$pg_config" WITH_CUDA=no "$@" "build/$daemon" >"$work/copy.log" 2>&1 || { tail "$work/copy.log"; return 1; }
	server_with "$name" "$source/build/$daemon"
}

# server_with NAME GPUJOIND: the server's programs in $work/NAME with a gpujoind of their own.  PostgreSQL finds its
# library folder relative to its program, so the copy finds its own gpujoind.
server_with() {
	local root=$work/$1 share file
	share=$("$pg_config" --sharedir)
	mkdir -p "$root$bindir" "$root$libdir" "$root$(dirname "$share")"
	cp "$bindir"/{postgres,initdb,pg_ctl,psql} "$root$bindir/"
	for file in "$libdir"/*; do ln -sf "$file" "$root$libdir/"; done
	ln -sf "$share" "$root$share"
	rm -f "$root$libdir/$daemon"; cp "$2" "$root$libdir/$daemon"
	[ "$(id -u)" != 0 ] || chown -R "$user" "$root"
}
