# gpujoin: joins, aggregates over them and integer set operations on NVIDIA GPUs
#
#   make                 the extension and gpujoind
#   make install
#   make installcheck    pg_regress against a running server (sql_tests/, expected/), autovacuum off
#   make prove_installcheck   TAP tests, each with servers of its own (t/)
#   make unit_tests      build/unit_test: parts of gpujoind by themselves (src/test)
#   make replay_run      build/replay_run: saved programs and their results, for scripts/replay
#   make fuzzers         build/fuzz_program, build/fuzz_socket: attacks on gpujoind (src/test/fuzz)
#   make kernel_tests    build/kernel_test: the cuda device against the cpu device
#
#   WITH_CUDA=auto|yes|no     build the cuda device; auto: if nvcc is found
#   CUDA_ARCH=native          for the GPUs of this machine; the default, if it has any
#   CUDA_ARCH=all             Ampere to Blackwell; the default elsewhere.  Or some: "80 90"
#   CUDA_FAST_COMPILE=yes     kernels that are compiled in a tenth of the time and run slower: to see that they compile
#   SANITIZE=address,undefined   gpujoind with sanitizers
#   COVERAGE=1                gpujoind counts what runs, for gcov (scripts/coverage)
#   WERROR=no                 warnings are no errors: for packages, whose compiler may be newer
#   COPT=...                  more flags of the C compiler, also for gpujoind

EXTENSION = gpujoin
MODULE_big = gpujoin
PGFILEDESC = "gpujoin - joins and set operations on GPUs"
DATA = $(wildcard sql/gpujoin--*.sql)

GJ_ABI := $(shell sed -n 's/^\#define GJ_ABI[[:space:]]*\([0-9]*\).*/\1/p' src/wire/messages.h)
DAEMON = gpujoind-$(GJ_ABI)

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/plan/*.c src/load/*.c src/exec/*.c src/sets/*.c src/integers/*.c src/client/*.c)))
WERROR ?= yes
GJ_WARNINGS = -Wall -Wextra $(if $(filter yes,$(WERROR)),-Werror) -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
PG_CPPFLAGS = -Isrc
# its own functions need no look-up by name when a session loads the library
# Ubuntu's PostgreSQL asks for link-time optimization, which compiles everything twice
PG_LDFLAGS = -Wl,-Bsymbolic-functions -fno-lto
PG_CFLAGS = $(GJ_WARNINGS) -fno-lto -ffp-contract=off -MMD -MP
EXTRA_CLEAN = build $(OBJS:.o=.d)

REGRESS = $(sort $(basename $(notdir $(wildcard sql_tests/*.sql))))
REGRESS_DIR = build/regress
REGRESS_OPTS = --inputdir=$(REGRESS_DIR) --outputdir=$(REGRESS_DIR)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# ---- gpujoind: no PostgreSQL code, so none of its flags

DAEMON_CFLAGS = -Isrc -std=gnu11 -O2 -g $(GJ_WARNINGS) $(COPT) -ffp-contract=off -pthread -MMD -MP
DAEMON_LIBS = -lpthread -lm $(COPT)
DAEMON_OBJS = $(patsubst src/%.c,build/%.o,$(sort $(wildcard src/daemon/*.c src/daemon/*/*.c src/daemon/*/*/*.c src/cpu/*.c src/integers/*.c)))
LINK = $(CC)

ifdef SANITIZE
# what a fence orders is read by other processes, which the thread sanitizer does not see
DAEMON_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -Wno-tsan
DAEMON_LIBS += -fsanitize=$(SANITIZE)
endif

ifdef COVERAGE
DAEMON_CFLAGS += --coverage -fprofile-update=atomic -DGJ_COVERAGE
DAEMON_LIBS += --coverage
endif

NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
WITH_CUDA ?= auto
ifeq ($(WITH_CUDA),auto)
CUDA := $(if $(NVCC),yes,no)
else
CUDA := $(WITH_CUDA)
endif

ifeq ($(CUDA),yes)
ifeq ($(NVCC),)
$(error WITH_CUDA=yes, but nvcc was not found: set NVCC or put it on PATH)
endif
# nvcc on PATH may be a wrapper in another folder: ask it where its toolkit is
CUDA_HOME := $(realpath $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^\#\$$ TOP=//p'))
ifeq ($(CUDA_HOME),)
$(error $(NVCC) does not say where its toolkit is: set NVCC)
endif
ARCHITECTURES := $(or $(CUDA_ARCH),$(if $(wildcard /dev/nvidia[0-9]*),native,all))
ifeq ($(ARCHITECTURES),native)
GENCODE = -arch=native
else
GENCODE = $(foreach a,$(subst all,80 86 89 90 100 120,$(ARCHITECTURES)),-gencode arch=compute_$(a),code=sm_$(a))
endif
ifeq ($(ARCHITECTURES),all)
# newer ones compile this one themselves
GENCODE += -gencode arch=compute_120,code=compute_120
endif
NVCCFLAGS = -Isrc -std=c++17 -O3 -lineinfo -fmad=false $(if $(filter yes,$(WERROR)),-Werror all-warnings) \
	-Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Wno-sign-compare $(GENCODE)
ifeq ($(CUDA_FAST_COMPILE),yes)
# since CUDA 12.9
NVCCFLAGS += $(if $(shell $(NVCC) --help | grep -o Ofast-compile),--Ofast-compile=max)
endif
# what takes longest begins
CUDA_OBJS = build/cuda/fused.o $(filter-out build/cuda/fused.o,$(patsubst cuda/%.cu,build/cuda/%.o,$(sort $(wildcard cuda/*.cu))))
KERNEL_TEST_OBJS = $(patsubst cuda/test/%.cu,build/cuda/test/%.o,$(sort $(wildcard cuda/test/*.cu)))
# those without a kernel of their own: C++, in a third of the time
HOST_TEST_OBJS = $(filter-out build/cuda/test/bench_fused.o,$(KERNEL_TEST_OBJS))
HOST_TEST_FLAGS = -Isrc -isystem $(CUDA_HOME)/include -isystem $(CUDA_HOME)/targets/x86_64-linux/include -std=c++17 -O2 -g -ffp-contract=off $(if $(filter yes,$(WERROR)),-Werror) \
	-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -MMD -MP
DAEMON_CFLAGS += -DGJ_WITH_CUDA
DAEMON_LIBS += -L$(CUDA_HOME)/lib64 -L$(CUDA_HOME)/targets/x86_64-linux/lib -lcudart_static -ldl -lrt
LINK = $(CXX)
endif

all: daemon
daemon: build/$(DAEMON)

# other flags (WITH_CUDA, CUDA_ARCH, SANITIZE) compile everything of gpujoind anew
FLAGS = $(CC) $(DAEMON_CFLAGS) $(DAEMON_LIBS) $(if $(CUDA_OBJS),$(NVCCFLAGS))
build/flags: FORCE
	@mkdir -p build
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@
$(DAEMON_OBJS) $(CUDA_OBJS) $(KERNEL_TEST_OBJS): build/flags
FORCE:

build/$(DAEMON): $(CUDA_OBJS) $(DAEMON_OBJS)
	$(LINK) -o $@ $^ $(DAEMON_LIBS)

build/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(DAEMON_CFLAGS) -c -o $@ $<

build/cuda/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MF $(@:.o=.d) -c -o $@ $<

$(HOST_TEST_OBJS): build/cuda/test/%.o: cuda/test/%.cu
	@mkdir -p $(@D)
	$(CXX) $(HOST_TEST_FLAGS) -x c++ -c -o $@ $<

kernel_tests: build/kernel_test
build/kernel_test: $(KERNEL_TEST_OBJS) $(CUDA_OBJS) $(filter-out build/daemon/main.o,$(DAEMON_OBJS))
	$(LINK) -o $@ $^ $(DAEMON_LIBS)

# gpujoind without its main and with that of the tests
unit_tests: build/unit_test
UNIT_OBJS = $(patsubst src/%.c,build/%.o,$(sort $(wildcard src/test/*.c)) src/sets/unpack.c)
$(UNIT_OBJS): build/flags
build/unit_test: $(UNIT_OBJS) $(CUDA_OBJS) $(filter-out build/daemon/main.o,$(DAEMON_OBJS))
	$(LINK) -o $@ $^ $(DAEMON_LIBS)

# the same with results as text
replay_run: build/replay_run
REPLAY_OBJS = $(patsubst src/%.c,build/%.o,$(sort $(wildcard src/test/replay/*.c)))
$(REPLAY_OBJS): build/flags
build/replay_run: $(REPLAY_OBJS) $(CUDA_OBJS) $(filter-out build/daemon/main.o,$(DAEMON_OBJS))
	$(LINK) -o $@ $^ $(DAEMON_LIBS)

# attacks on programs, with all of gpujoind but its main, and on its socket, from outside
fuzzers: build/fuzz_program build/fuzz_socket
FUZZ_OBJS = $(patsubst src/%.c,build/%.o,$(sort $(wildcard src/test/fuzz/*.c)))
FUZZ_COMMON = $(filter-out build/test/fuzz/fuzz_%.o,$(FUZZ_OBJS))
$(FUZZ_OBJS): build/flags
build/fuzz_program: build/test/fuzz/fuzz_program.o $(FUZZ_COMMON) $(CUDA_OBJS) $(filter-out build/daemon/main.o,$(DAEMON_OBJS))
	$(LINK) -o $@ $^ $(DAEMON_LIBS)
build/fuzz_socket: build/test/fuzz/fuzz_socket.o $(FUZZ_COMMON)
	$(LINK) -o $@ $^ $(DAEMON_LIBS)

install: install-daemon
install-daemon: build/$(DAEMON)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)' '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) build/$(DAEMON) '$(DESTDIR)$(pkglibdir)/$(DAEMON)'
	ln -sf '$(pkglibdir)/$(DAEMON)' '$(DESTDIR)$(bindir)/gpujoind'
	$(INSTALL_SCRIPT) scripts/still_loaded '$(DESTDIR)$(bindir)/gpujoin_still_loaded'

# who still loads the library is told before it goes, and nothing more; gpujoinds of older versions
# have stayed for servers that run
uninstall: uninstall-daemon
uninstall-daemon:
	-@scripts/still_loaded '$(bindir)/psql' || true
	rm -f '$(DESTDIR)$(pkglibdir)'/gpujoind-[0-9]* '$(DESTDIR)$(bindir)/gpujoind' \
		'$(DESTDIR)$(bindir)/gpujoin_still_loaded'

# ---- tests

# pg_regress wants its inputs in folders named sql and expected
installcheck: regress-input
regress-input:
	@mkdir -p $(REGRESS_DIR)
	@ln -sfn $(CURDIR)/sql_tests $(REGRESS_DIR)/sql
	@ln -sfn $(CURDIR)/expected $(REGRESS_DIR)/expected

prove_installcheck:
	$(prove_installcheck)

-include $(OBJS:.o=.d) $(DAEMON_OBJS:.o=.d) $(CUDA_OBJS:.o=.d) $(KERNEL_TEST_OBJS:.o=.d) \
	$(UNIT_OBJS:.o=.d) $(REPLAY_OBJS:.o=.d) $(FUZZ_OBJS:.o=.d)

.PHONY: FORCE daemon unit_tests replay_run fuzzers kernel_tests install-daemon uninstall-daemon regress-input prove_installcheck
