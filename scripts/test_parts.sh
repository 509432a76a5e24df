# The parts of scripts/test, each a function part_NAME; to be sourced by it, after lib.sh.
#
# A part runs in a process of its own, whose folder is $work.  It counts in passed and failed.

choose() { if [ -n "$long" ]; then echo "$2"; else echo "$1"; fi; }
seed=${GJ_SEED:-1} data=${GJ_DATA:-../shared/data}
seeds=$(choose "$seed" "$seed $((seed + 1)) $((seed + 2))")
random_queries=${GJ_RANDOM_QUERIES:-$(choose 1000 4000)}
limited_queries=${GJ_LIMITED_QUERIES:-$(choose 60 600)}
sanitized_queries=${GJ_SANITIZED_QUERIES:-$(choose 150 1000)}
scheme_queries=${GJ_SCHEME_QUERIES:-$(choose 240 2000)}
fuzzed_programs=${GJ_FUZZ_PROGRAMS:-$(choose 15000 1000000)}
conversations=${GJ_FUZZ_CONVERSATIONS:-$(choose 1500 100000)}
stress_seconds=${GJ_STRESS_SECONDS:-$(choose 30 600)}
passed=0 failed=0
little_memory=
timeout=120 # seconds that differential.pl gives a statement

say() { printf '\n== %s\n' "$*"; }
fail() { echo "not ok - $*"; failed=$((failed + 1)); }
pass() { echo "ok - $*"; passed=$((passed + 1)); }
check() { local name=$1; shift; if "$@"; then pass "$name"; else fail "$name"; fi; }
give_up() { fail "$*"; echo "$passed passed, $failed failed"; exit 1; }

# Takes over the counts of a program whose output ends with "N passed, N failed".
count_from() {
	local name=$1 log=$2 line
	line=$(tail -1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
	else
		fail "$name did not end as it should"
	fi
}

# ---- servers and databases

# A database with the extension and the helpers of the tests.
make_database() {
	psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $1" -c "CREATE DATABASE $1" 2>/dev/null
	psql -Xq -d "$1" -f sql_tests/01_install.sql >/dev/null 2>&1
	[ "$(psql -XAt -d "$1" -c "SELECT count(DISTINCT proname) FROM pg_proc
		WHERE proname IN ('gj_same', 'gpu_intersect')")" = 2 ]
}

# test_server LINE...: the server of a part, with more lines in its configuration, and a database
# for comparisons.
test_server() {
	start_server server "shared_preload_libraries = 'gpujoin'" "$@" && make_database differential ||
		{ fail "a server with the tests' helpers"; return 1; }
}

# Lines for servers of regress.  While autovacuum analyzes a table, its snapshot keeps a test's VACUUM from
# marking pages as all-visible, and these do not stay resident.  Compiling expressions takes longer than most
# queries; other parts do it.
for_regress=("autovacuum = off" "jit = off")

# Saves the program of a join; its rows are in $work/saved.out.
save_program() {
	psql -XAtq -d differential -c "CREATE TABLE f AS SELECT i, i % 100 AS k FROM generate_series(1, 100000) i" \
		-c "CREATE TABLE d AS SELECT i AS k, i AS v FROM generate_series(0, 49) i" -c "SET gpujoin.force = on" \
		-c "SET gpujoin.save_program = '$work/saved.program'" \
		-c "SELECT count(*), sum(v) FROM f JOIN d USING (k)" >"$work/saved.out" 2>&1
}

# ---- parts

# gpujoind, its unit tests and fuzzers with sanitizers, in $top/checked: a copy, for other parts build here meanwhile.
# The first of unit, fuzz and sanitizer that wants it builds it.
build_checked() {
	(
		flock 9
		[ ! -e "$top/checked/built" ] || exit 0
		mkdir -p "$top/checked/cuda"; cp -r Makefile src "$top/checked"
		# -O1: a third less to compile; its warnings are fewer and other ones than those of -O2
		make -C "$top/checked" -j"$jobs" PG_CONFIG="$pg_config" WITH_CUDA=no SANITIZE=address,undefined COPT=-O1 WERROR=no \
			unit_tests fuzzers "build/$daemon" >"$top/checked.log" 2>&1 || { tail -30 "$top/checked.log"; exit 1; }
		touch "$top/checked/built"
	) 9>"$top/checked.lock"
}

part_unit() {
	build_checked || { fail "make unit_tests"; return; }
	(cd "$top/checked" && GJ_LONG="$long" UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/unit_test) >"$work/unit.log" 2>&1
	tail -30 "$work/unit.log"
	count_from unit "$work/unit.log"
}

# fuzz NAME COUNT ARGUMENT...: so many attacks of one kind; the last line tells what was tried.
fuzz() {
	local name=$1 count=$2 status; shift 2
	(cd "$top/checked" && "build/$name" --seed "$seed" --count "$count" "$@") >"$work/$name.log" 2>&1
	status=$?
	tail -$((status ? 60 : 1)) "$work/$name.log"
	check "$name: $count of seed $seed" test $status = 0
}

part_fuzz() {
	build_checked || { fail "make fuzzers"; return; }
	fuzz fuzz_program "$fuzzed_programs"
	fuzz fuzz_socket "$conversations" --daemon "build/$daemon"
}

part_replay() {
	local tests="aggregates count_distinct group_by join_algorithms join_outer join_semi order_by
		order_limit prewarm_texts sets_families sets_functions sets_join fallback variances"
	make -j"$jobs" PG_CONFIG="$pg_config" replay_run >"$work/replay_build.log" 2>&1 ||
		{ tail -30 "$work/replay_build.log"; fail "make replay_run"; return; }
	GJ_DEVICE=cpu GJ_REPLAY_QUERIES=150 GJ_REPLAY_PROGRAMS=250 GJ_REPLAY_MB=60 GJ_REPLAY_SCALE=0.002 \
		GJ_REPLAY_TESTS="${GJ_REPLAY_TESTS:-$(echo $tests)}" scripts/replay record "$work/corpus"
	check "programs of all kinds are recorded" test $? = 0
	GJ_DEVICE=$device scripts/replay consistent build/replay_run "$work/corpus" | tee "$work/replay.log"
	count_from replay "$work/replay.log"
}

part_daemon() {
	local out status
	test_server || return
	out=$("$libdir/$daemon" --version 2>&1); status=$?
	check "gpujoind --version: $out" test $status = 0 -a -n "$out"
	out=$("$libdir/$daemon" --list-devices 2>&1)
	check "gpujoind --list-devices lists a cpu device" grep -qi '^cpu' <<<"$out"
	out=$(grep -c '^cuda' <<<"$out")
	check "gpujoind pretends to be several devices" test $((3 + 2 * out)) = \
		"$("$libdir/$daemon" --list-devices --cpu-devices 3 --gpu-devices 2 2>&1 | grep -cE '^(cpu|cuda) [0-9]+:')"
	"$libdir/$daemon" --no-such-option >/dev/null 2>&1; check "gpujoind refuses unknown options" test $? != 0
	"$libdir/$daemon" --run /nonexistent >/dev/null 2>&1; check "gpujoind --run says if there is no file" test $? = 1
	check "gpujoind is on the programs' path" test -x "$bindir/gpujoind"
	# installed elsewhere, with the gpujoind of an older version beside it
	make -s PG_CONFIG="$pg_config" with_llvm=no DESTDIR="$work/root" install >"$work/install.log" 2>&1
	check "make install takes a DESTDIR" test -x "$work/root$libdir/$daemon" -a -x "$work/root$bindir/gpujoin_still_loaded"
	touch "$work/root$libdir/gpujoind-1"
	make -s PG_CONFIG="$pg_config" with_llvm=no DESTDIR="$work/root" uninstall >"$work/uninstall.log" 2>&1
	check "make uninstall leaves nothing" test -z "$(find "$work/root" ! -type d)"
	# a saved program gives the same result without PostgreSQL
	save_program
	check "a join is saved and right" test "$(tail -1 "$work/saved.out")" = "50000|1225000"
	out=$(as_user "$libdir/$daemon" --run "$work/saved.program" 2>&1); status=$?
	check "gpujoind --run runs it" test $status = 0 -a -n "$out"
}

regress() {
	local log=$work/regress.log dir=$work/regress status ok bad
	make installcheck PG_CONFIG="$pg_config" with_llvm=no REGRESS_DIR="$dir" >"$log" 2>&1
	status=$?
	grep -E '^(test|ok|not ok) ' "$log"
	ok=$(grep -cE '^(test .*\.\.\. ok |ok )' "$log")
	bad=$(grep -cE '^(test .*FAILED|not ok )' "$log")
	passed=$((passed + ok)) failed=$((failed + bad))
	[ $status = 0 ] || head -"${GJ_DIFF_LINES:-300}" "$dir/regression.diffs" 2>/dev/null
	[ $status = 0 ] || [ "$bad" != 0 ] || { tail -20 "$log"; fail "make installcheck"; }
	[ $((ok + bad)) -gt 0 ] || fail "make installcheck ran no test"
}

part_regress() { test_server "${for_regress[@]}" && regress; }

# differential NAME ARGUMENT...: of scripts/differential.pl
differential() {
	local name=$1; shift
	scripts/differential.pl --database differential --timeout "$timeout" "$@" | tee "$work/$name.log"
	count_from "$name" "$work/$name.log"
}

part_differential() { test_server && differential differential sql_tests/differential/large.sql; }

# random QUERIES SEED...: so many queries of each seed, and an eighth of that of sets and of arrays
random() {
	local queries=$1 seed; shift
	for seed; do
		echo "seed $seed, $queries queries"
		# the next one makes other tables of the same types
		make_database differential || { fail "database for seed $seed"; return; }
		scripts/random_queries.pl --seed "$seed" --queries "$queries" >"$work/random.sql"
		differential random --gpujoin 85 $little_memory "$work/random.sql"
		scripts/random_sets.pl --seed "$seed" --queries $((queries / 8)) >"$work/random_sets.sql"
		differential random_sets --gpujoin 95 $little_memory "$work/random_sets.sql"
		scripts/random_arrays.pl --seed "$seed" --queries $((queries / 8)) >"$work/random_arrays.sql"
		differential random_arrays --gpujoin 0 "$work/random_arrays.sql"
	done
}

part_random() { test_server && random "$random_queries" $seeds; }

# The cpu, or each GPU, pretends to be four devices of little memory.
limited=("gpujoin.cpu_devices = 4" "gpujoin.gpu_devices = 4" "gpujoin.device_memory_limit = '64MB'")
# On the cpu device sanitizer runs the regression tests so.
part_limits() {
	local little_memory=--little-memory
	test_server "${for_regress[@]}" "${limited[@]}" || return
	[ "$device" = cpu ] && [ -z "$long" ] || regress
	random "$limited_queries" $seeds
}

# random_scheme NAME QUERIES: NAME begins with ring or ranges; joins by the algorithm that it is for
random_scheme() {
	local name=$1 algorithm=sort_merge
	[ "${name%%_*}" != ring ] || algorithm=nested_loop
	seed=$((seed + 1))
	scripts/random_queries.pl --seed "$seed" --queries "$2" --subqueries 10 --algorithm $algorithm >"$work/$name.sql"
	differential "$name" --gpujoin 70 $little_memory "$work/$name.sql"
}

# Rings and ranges, with so many queries each, on several devices that the cpu, or a GPU, pretends to
# be, of little memory and of all of it.
part_schemes() {
	local little_memory=--little-memory scheme n limit name
	for scheme in ring ranges; do for n in 2 4 8; do for limit in 64MB 0; do
		name=${scheme}_${n}_$limit
		start_server "$name" "shared_preload_libraries = 'gpujoin'" "gpujoin.cpu_devices = $n" \
			"gpujoin.gpu_devices = $n" "gpujoin.devices = '0'" "gpujoin.devices_per_query = 0" \
			"gpujoin.device_memory_limit = $limit" "gpujoin.exchange = $scheme" && make_database differential ||
			{ fail "a server for $name"; return; }
		random_scheme "$name" $((scheme_queries / 6))
		stop_servers
	done; done; done
}

# resident SECONDS
resident() {
	PGDATABASE=differential scripts/resident_stress.pl --seconds "$1" --seed "$seed" | tee "$work/resident.log"
	count_from resident "$work/resident.log"
}

part_resident() { test_server && resident "$stress_seconds"; }

part_data() {
	if [ ! -f "$data/stats_users.csv.gz" ]; then echo "no real data in $data: left out"; return; fi
	test_server || return
	PGDATABASE=differential scripts/load-stats "$data" || { fail "loading $data"; return; }
	differential data --verbose sql_tests/differential/stats.sql
}

part_tpc() {
	local benchmark
	test_server || return
	for benchmark in tpch ssb; do
		GJ_SCALE=0.05 GJ_REPEAT=0 GJ_FORCE=1 bench/tpc.sh "$benchmark" 2>&1 | tee "$work/$benchmark.log"
		count_from "$benchmark" "$work/$benchmark.log"
	done
}

part_pg_regression() {
	if [ "${GJ_PG_SOURCE:-}" = none ]; then echo "no source of PostgreSQL: left out"; return; fi
	GJ_DEVICE=$device scripts/pg_regression >"$work/pg_regression.log" 2>&1
	head -"${GJ_DIFF_LINES:-300}" "$work/pg_regression.log"
	count_from pg_regression "$work/pg_regression.log"
}

# The files side by side, the longest ones first.  prove prints a file's results in one piece when
# it ends.
part_tap() {
	local copy=$work/tap log=$work/tap.log files status ok bad
	command -v prove >/dev/null && perl -MIPC::Run -e 1 ||
		{ fail "prove and the perl module IPC::Run are needed"; return; }
	mkdir "$copy"; cp -r Makefile gpujoin.control sql src t scripts "$copy"; mkdir "$copy/cuda"
	echo "${GJ_CONF:-}" >"$copy/postgresql.conf"
	[ "$(id -u)" != 0 ] || chown -R "$user" "$copy"
	files=${GJ_TAP_FILES:-$(cd "$copy" && ls -S t/*.pl | tr '\n' ' ')}
	as_user env -u PGHOST -u PGUSER -u PGDATABASE GJ_DEVICE="$device" GJ_LONG="$long" TEMP_CONFIG="$copy/postgresql.conf" \
		PG_TEST_TIMEOUT_DEFAULT=120 PG_TEST_PORT_DIR="$copy/ports" \
		make -C "$copy" prove_installcheck PG_CONFIG="$pg_config" with_llvm=no WITH_CUDA=no \
		PROVE_TESTS="$files" PROVE_FLAGS="--jobs $tap_jobs --verbose --merge --timer" >"$log" 2>&1
	status=$?
	sed -nE 's,^\[[0-9:]+\] (t/.*\.pl) \.+ ?,\1 ,p; /^(ok +[0-9]+ ms|not ok|# Looks like|#   |Dubious|skipped|Files=|Result:|error running SQL|psql:|.* at t\/.* line )/p' "$log"
	ok=$(grep -c '^ok [0-9]' "$log") bad=$(grep -c '^not ok [0-9]' "$log")
	passed=$((passed + ok)) failed=$((failed + bad))
	[ $status = 0 ] || [ "$bad" != 0 ] || { tail -30 "$log"; fail "make prove_installcheck"; }
	[ $((ok + bad)) -gt 0 ] || fail "make prove_installcheck ran no test"
}

# start_sanitized SANITIZERS LINE...: the part's server, with the lines in its configuration and a
# gpujoind that is built with sanitizers
start_sanitized() {
	local root=$work/sanitized logs=$work/home/sanitizer sanitizers=$1; shift
	case $sanitizers in
		address,undefined) build_checked && server_with sanitized "$top/checked/build/$daemon" ;;
		*) server_copy sanitized SANITIZE="$sanitizers" ;;
	esac || { fail "building gpujoind with sanitizers"; return 1; }
	export ASAN_OPTIONS=log_path=$logs:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1:log_path=$logs
	# a thread that has opened the devices may be there at the end
	export TSAN_OPTIONS=log_path=$logs:report_thread_leaks=0
	device=cpu PATH=$root$bindir:$PATH
	test_server "$@" || return 1
	save_program
	check "the server uses it" grep -qs "$root$libdir/$daemon" /proc/*/maps
	as_user "$root$libdir/$daemon" --run "$work/saved.program" >/dev/null
	check "sanitized gpujoind runs a saved program" test $? = 0
}

# The queries that PostgreSQL answers as well; then the server ends and its sanitizers have to have
# been silent.
end_sanitized() {
	differential differential sql_tests/differential/large.sql
	random "$sanitized_queries" $seeds
	[ -z "$long" ] || resident 120
	stop_servers
	# gpujoind ends after the server, and its sanitizers speak then
	for ((i = 0; i < 600; i++)); do grep -qs "$work/sanitized" /proc/[0-9]*/maps || break; sleep 0.1; done
	cat "$work"/home/sanitizer.* 2>/dev/null | head -100
	grep -hE -A5 'runtime error:' "$work/server/log" | head -30
	check "no sanitizer has complained" test -z "$(ls "$work"/home/sanitizer.* 2>/dev/null)"
	check "no sanitizer line in the server's log" test \
		"$(grep -cE 'runtime error:|(Address|Leak|Thread)Sanitizer' "$work/server/log")" = 0
}

# The regression tests on devices of little memory, what is larger and random on one without a limit.
part_sanitizer() {
	start_sanitized address,undefined "${for_regress[@]}" "${limited[@]}" || return
	regress
	psql -Xq -d postgres -c "ALTER SYSTEM SET gpujoin.cpu_devices = 1" \
		-c "ALTER SYSTEM SET gpujoin.device_memory_limit = 0"
	as_user pg_ctl -D "$work/server/data" -l "$work/server/log" -w -t 120 -m fast restart >/dev/null ||
		{ fail "a server without limits"; return; }
	end_sanitized
}

part_mutants() {
	scripts/mutate suites | tee "$work/mutants.log"
	count_from mutants "$work/mutants.log"
}

# Two devices that exchange rows, by keys, rings and ranges: two threads of a query, which write each other's memory.
part_thread_sanitizer() {
	# a SubPlan that is a nested loop takes 0.4 s without the sanitizer, 110 with it
	local scheme timeout=600
	start_sanitized thread "gpujoin.cpu_devices = 2" "gpujoin.devices_per_query = 2" "gpujoin.exchange = on" \
		"gpujoin.keep_exchanged = off" || return
	for scheme in ring ranges; do
		psql -Xq -d postgres -c "ALTER ROLE postgres SET gpujoin.exchange = $scheme"
		make_database differential
		random_scheme ${scheme}_threads "$sanitized_queries"
	done
	psql -Xq -d postgres -c "ALTER ROLE postgres RESET gpujoin.exchange"
	make_database differential
	end_sanitized
}

# With another version of PostgreSQL, in a system of its own.
part_debian() {
	local status=0
	if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
		echo "another system needs root and namespaces: left out"; return
	fi
	GJ_PG_SOURCE=none scripts/test_debian "${GJ_DEBIAN:-trixie}" daemon regress 2>&1 | tee "$work/debian.log"
	status=${PIPESTATUS[0]}
	if [ "$status" = 3 ]; then echo "no system to test another version of PostgreSQL in: left out"; return; fi
	count_from debian "$work/debian.log"
}

# In systems of their own, too.
part_packages() {
	local status
	if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
		echo "other systems need root and namespaces: left out"; return
	fi
	scripts/test_packages 2>&1 | tee "$work/packages.log"
	status=${PIPESTATUS[0]}
	if [ "$status" = 3 ]; then echo "no systems to test packages in: left out"; return; fi
	count_from packages "$work/packages.log"
}

have_nvcc() { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }

# Without a GPU the references are compared with the cpu device.
part_kernels() {
	if [ "$WITH_CUDA" = no ] || ! have_nvcc; then echo "no nvcc: left out"; return; fi
	local less=
	have_gpu || less="--quick --device cpu $(choose "--most 2000" "")"
	build/kernel_test $less >"$work/kernels.log" 2>&1
	tail -30 "$work/kernels.log"
	count_from kernel_test "$work/kernels.log"
}

part_compute_sanitizer() {
	local tools=${GJ_SANITIZERS:-memcheck racecheck initcheck} tool test complaints checks
	if ! command -v compute-sanitizer >/dev/null || ! have_gpu; then
		fail "compute-sanitizer and a GPU are needed"; return
	fi
	# a test a process: the tools keep one core busy each; rates mean nothing under a tool.  racecheck looks at our
	# kernels, not at CUB's
	for tool in $tools; do for test in $(build/kernel_test --list | grep -vx rates); do echo "$tool $test"; done; done |
		xargs -P "$jobs" -L 1 bash -c 'compute-sanitizer --tool $1 --error-exitcode 9 \
			$([ $1 != racecheck ] || echo --kernel-name-exclude kernel_substring=cub) \
			build/kernel_test --quick --most 2000 --device cuda $2 >"$0/$1.$2.log" 2>&1 || echo "$2" >>"$0/$1.failed"' "$work"
	for tool in $tools; do
		for test in $(cat "$work/$tool.failed" 2>/dev/null); do
			echo "$tool $test"
			grep -E '^=+ (Invalid|Error|Warning|Uninit|.*SUMMARY)|FAILED|^=+ +(at|by) ' "$work/$tool.$test.log" |
				sort | uniq -c | sort -rn | head -12
		done
		complaints=$(wc -l 2>/dev/null <"$work/$tool.failed" || echo 0)
		checks=$(cat "$work/$tool".*.log | awk '/^[0-9]+ passed/ { n += $1 } END { print n + 0 }')
		check "compute-sanitizer $tool: $checks checks, complaints in ${complaints:-0} tests" test "${complaints:-0}" = 0
	done
}
