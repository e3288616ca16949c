# A thin front: each target installs the Debian packages it misses (scripts/packages) and calls cmake, ctest or a
# script. Everything built lies below build/.

PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
CTEST_FLAGS ?=
BENCH_FLAGS ?=
EDEN_FLAGS ?=
FUZZ_FLAGS ?=
FUZZ_SECONDS ?= 60
SOAK_FLAGS ?=
DEMO_FLAGS ?=
FLAKY_FLAGS ?=

packages = @scripts/install-packages
sources  = $(shell find src include test bench examples -name '*.[ch]pp' -o -name '*.[ch]' 2>/dev/null)

# $(call build,FOLDER,PRESET,TARGETS): configures once (ninja configures again by itself when a CMakeLists.txt changes)
# and builds these targets: all (what is shipped), tests, benchmarks (cmake/parts.cmake), or programs by name.
define build
	@test -f $(1)/build.ninja || cmake --preset $(2)
	@cmake --build $(1) --parallel $(JOBS) --target $(3)
endef

.DEFAULT_GOAL := all
.PHONY: all compiler test flaky soak demo bench bench-quick bench-hints bench-apps bench-build install format format-check reference layering tidy asan tsan fuzz debug coverage clean help

all:  ## build what is shipped; the command is build/bin/hinterland
	$(packages) build
	$(call build,build,release,all)

compiler:  ## the plug-in for clang 19 that inserts hints (docs/compiler.md)
	$(packages) build compiler
	@cmake --preset release >/dev/null  # what has just been installed is found
	@cmake --build build --parallel $(JOBS) --target hinterland-pass hinterland hinterland-preload

test:  ## unit tests, the layering check and whole programs under far memory
	$(packages) build test
	@cmake --preset release >/dev/null  # what has just been installed is found
	$(call build,build,release,tests)
	@ctest --preset release $(CTEST_FLAGS)

flaky:  ## tests that changed, thirty times beside a load and on one CPU (FLAKY_FLAGS: options of test/flaky/run.py)
	$(packages) build test
	$(call build,build,release,tests)
	@test/flaky/run.py $(FLAKY_FLAGS)

soak:  ## the long tests, with progress (SOAK_FLAGS: --list, --only PATTERN, --minutes N)
	$(packages) build test soak
	$(call build,build,release,tests)
	@test/soak/run.py $(SOAK_FLAGS)

demo:  ## three programs with a quarter of their memory: time and memory, beside native runs and Linux swap
	$(packages) build demo
	$(call build,build,release,hinterland hinterland-preload demo_lookups demo_lookups_plain)
	@demo/run $(DEMO_FLAGS)

bench: bench-build  ## all benchmarks, with tables and plots (BENCH_FLAGS: options of bench/run, which is then all)
	@bench/run $(BENCH_FLAGS)$(if $(BENCH_FLAGS),,; status=$$?; bench/eden/run $(EDEN_FLAGS) && exit $$status)

bench-hints: bench-build  ## hints, fibers and their applications: Eden's figures (EDEN_FLAGS: options of bench/eden/run)
	@bench/eden/run $(EDEN_FLAGS)

bench-quick: bench-build  ## the same benchmarks, shorter and coarser
	@bench/run --quick $(BENCH_FLAGS)

bench-apps: bench-build  ## the applications of the far-memory papers (BENCH_FLAGS: options of bench/apps/run)
	@bench/apps/run $(BENCH_FLAGS)

bench-build:  ## build the benchmarks alone
	$(packages) build bench
	@cmake --preset release >/dev/null  # what has just been installed is found
	@cmake --build build --parallel $(JOBS) --target benchmarks

install: all  ## install below $(DESTDIR)$(PREFIX)
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null  # the systemd unit names the prefix
	@DESTDIR=$(DESTDIR) cmake --install build

asan:  ## unit tests under the address and undefined-behaviour sanitizers
	$(packages) build
	$(call build,build/asan,asan,tests)
	@ctest --preset asan $(CTEST_FLAGS)

tsan:  ## unit tests under the thread sanitizer
	$(packages) build
	$(call build,build/tsan,tsan,tests)
	@ctest --preset tsan $(CTEST_FLAGS)

fuzz:  ## run each fuzz target for FUZZ_SECONDS (60), with progress; FUZZ_FLAGS: options of test/fuzz/run
	$(packages) build fuzz
	@test -f build/fuzz/build.ninja || cmake --preset fuzz
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzzers
	@test/fuzz/run --build build/fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_FLAGS)

debug:  ## unoptimised build with HL_DCHECK in build/debug
	$(packages) build
	$(call build,build/debug,debug,all tests)

coverage:  ## lines of src/ that the tests execute, by file
	$(packages) build test coverage
	$(call build,build/coverage,coverage,tests)
	@find build/coverage -name '*.gcda' -delete
	@ctest --preset coverage $(CTEST_FLAGS)
	@scripts/coverage build/coverage

format:  ## format all C and C++ files in place
	$(packages) format
	@clang-format-19 -i $(sources)

format-check:  ## fail when a file is not formatted
	$(packages) format
	@clang-format-19 --dry-run -Werror $(sources)

reference: all  ## write docs/reference.md anew, from the tables of commands and options
	@build/bin/hinterland help --markdown > docs/reference.md

layering:  ## room order of the #include lines, and the checks of house style
	@test/layering/check_layering.py

tidy: all  ## clang-tidy over src/, tests left out
	$(packages) tidy
	@run-clang-tidy-19 -quiet -use-color=0 -extra-arg=-Wno-deprecated-declarations -extra-arg=-Wno-ignored-gch -j $(JOBS) -p build '^$(CURDIR)/src/.*(?<!_test)\.cpp$$'

clean:  ## remove build/
	@rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1\t\2/p' Makefile | expand -t 14
