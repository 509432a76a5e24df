# Debian and Ubuntu systems in folders, for scripts/test_debian and scripts/test_packages; to be sourced, after lib.sh.
#
# They lie in GJ_DEBIAN_ROOTS=/var/tmp/gpujoin_debian and are made by debootstrap (installed if it is missing) from
# GJ_DEBIAN_MIRROR=http://deb.debian.org/debian or GJ_UBUNTU_MIRROR=http://archive.ubuntu.com/ubuntu, once: RELEASE.tar
# stays.  Root only.

roots=${GJ_DEBIAN_ROOTS:-/var/tmp/gpujoin_debian}
debian_mirror=${GJ_DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu_mirror=${GJ_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

# Ubuntu's keys, in $roots: Debian has no package of them.
ubuntu_keys() {
	local package=pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb
	local sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
	command -v wget >/dev/null || install_packages wget || return 1
	wget -q "$ubuntu_mirror/$package" -O "$roots/ubuntu_keys.deb" || return 1
	sha256sum -c --quiet - <<<"$sum  $roots/ubuntu_keys.deb" && dpkg-deb -x "$roots/ubuntu_keys.deb" "$roots/ubuntu_keys"
}

# bootstrap RELEASE FOLDER.  Releases are made as the newest of their kind that this debootstrap, which may be older, knows.
bootstrap() {
	local scripts=/usr/share/debootstrap/scripts
	case $1 in
		jammy | noble | plucky | questing | resolute)
			ubuntu_keys && debootstrap --variant=minbase --components=main,universe \
				--keyring="$roots/ubuntu_keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$1" "$2" "$ubuntu_mirror" "$scripts/gutsy" ;;
		*) debootstrap --variant=minbase "$1" "$2" "$debian_mirror" "$(ls "$scripts/$1" 2>/dev/null || echo "$scripts/sid")" ;;
	esac
}

# make_root RELEASE NAME: a bare system in $roots/NAME, in the place of one that is there.  Status 3: it could not be made.
make_root() {
	local release=$1 root=$roots/$2
	if [ ! -e "$roots/$release.tar" ]; then
		command -v debootstrap >/dev/null || install_packages debootstrap || return 3
		rm -rf --one-file-system "$root"
		mkdir -p "$root"
		bootstrap "$release" "$root" >"$root.log" 2>&1 || { tail -5 "$root.log"; return 3; }
		# a mirror of a release that is not out yet may lag behind
		echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90expired"
		tar c -C "$root" -f "$roots/$release.tar.$$" . && mv "$roots/$release.tar.$$" "$roots/$release.tar" || return 3
	fi
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	tar x -C "$root" -f "$roots/$release.tar" || return 3
}

# copy_source FOLDER: what would be committed.
copy_source() {
	rm -rf "$1"
	mkdir -p "$1"
	git ls-files -co --exclude-standard | while read -r file; do [ ! -e "$file" ] || echo "$file"; done | tar c -T - | tar x -C "$1"
}

# in_root NAME [VARIABLE=VALUE...] [FOLDER:PLACE[:rw]...] -- COMMAND...: runs a command in $roots/NAME, with variables and
# with folders that it sees at places, read-only by default.  Mounts and processes are its own: nothing is left behind.
in_root() {
	local root=$roots/$1 variables=() folders=(); shift
	while [ "$1" != -- ]; do
		case $1 in [A-Z]*=*) variables+=("$1") ;; *) folders+=("$1") ;; esac
		shift
	done
	shift
	unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" bash -c '
		set -e
		root=$1; shift
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/dev/shm"
		while [ "$1" != -- ]; do
			IFS=: read -r folder place mode <<<"$1"
			mkdir -p "$root$place"
			mount --bind -o "${mode:-ro}" "$folder" "$root$place"
			shift
		done
		shift
		exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' in_root "$root" ${folders[@]+"${folders[@]}"} -- ${variables[@]+"${variables[@]}"} "$@"
}
