# Thin: every target is a line or two of cmake, ctest or a tool. `make` alone lists them.
# JOBS compilers at once; TESTS, many more of them, because most of a test is waiting.
JOBS   ?= $(shell nproc)
TESTS  ?= $(shell expr $(JOBS) \* 3)
TESTS_SANITIZED ?= $(shell expr $(JOBS) \* 2)
PREFIX ?= /usr/local
FOLDERS = $(wildcard include src apps tests bench examples)
export NINJA_STATUS = [%f/%t %es] # steps done and in all, seconds

.PHONY: help build run test check check-all test-sanitize fuzz examples bench install dist sbom format tidy lint-tools clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

build: ## the library and the command, in build/release; installs what that needs (apt-get)
	@tools/setup run
	@cmake --preset release --log-level=NOTICE
	@cmake --build --preset release -j $(JOBS)
	@cmake -DBUILD=build/release -P cmake/page_notice.cmake

run: build ## build, then run the demo: a fleet that contends, the dashboard, and what happens when some of it dies
	@build/release/bin/lockstep demo

test: ## everything: builds in build/test and runs all tests, with 2 s of each fuzz target
	@tools/setup test
	@cmake --preset test --log-level=NOTICE
	@cmake --build --preset test -j $(JOBS)
	@ctest --preset test -j $(TESTS)

check: ## the inner loop: dev build, unit and quick integration tests
	@tools/setup test
	@cmake --preset dev --log-level=NOTICE
	@cmake --build --preset dev -j $(JOBS)
	@ctest --preset dev -j $(TESTS) -L '^(unit|integration)$$'

test-sanitize: ## all tests under ASan and UBSan, then under TSan
	@tools/setup test
	@for preset in asan tsan; do \
	    cmake --preset $$preset --log-level=NOTICE && cmake --build --preset $$preset -j $(JOBS) && \
	    ctest --preset $$preset -j $(TESTS_SANITIZED) || exit 1; \
	done

fuzz: ## every fuzz target for SECONDS (600) each, or those that TARGETS matches (TARGETS='url|cron')
	@tools/setup test
	@cmake --preset test --log-level=NOTICE
	@cmake --build --preset test -j $(JOBS) --target fuzz_targets
	@LOCKSTEP_FUZZ_SECONDS=$(or $(SECONDS),600) ctest --preset test -j $(JOBS) -R '^fuzz_($(or $(TARGETS),.*))$$'

examples: ## the programs in examples/, in build/release/bin
	@tools/setup run
	@cmake --preset release -DLOCKSTEP_EXAMPLES=ON --log-level=NOTICE
	@cmake --build --preset release -j $(JOBS)

bench: ## build and run every bench (BENCH_ARGS=--quick for a short one)
	@tools/setup bench
	@cmake --preset release -DLOCKSTEP_BENCH=ON --log-level=NOTICE
	@cmake --build --preset release -j $(JOBS)
	@set -e; for program in build/release/bin/bench_*; do $$program $(BENCH_ARGS); done

install: build ## install to PREFIX (default /usr/local), under DESTDIR if set
	@cmake --install build/release --prefix '$(PREFIX)'

dist: ## the release tarball, with the dashboard's page: build/lockstep-VERSION.tar.gz
	@tools/setup run
	@cmake --preset release --log-level=NOTICE
	@cmake --build --preset release --target dashboard_page
	@cmake -DBUILD=build/release -P cmake/dist.cmake

sbom: ## what a build consists of, as CycloneDX: build/lockstep.cdx.json
	@tools/setup test
	@mkdir -p build
	@tools/sbom > build/lockstep.cdx.json
	@echo build/lockstep.cdx.json

check-all: ## the whole matrix: compilers, sanitizers, servers, systems; hours (CELLS="asan tsan" for some)
	@tools/setup check-all
	@JOBS=$(JOBS) TESTS=$(TESTS) tools/check-all $(CELLS)

# Clang's tools of version 19, as installed; else those without a number.
CLANG = $(if $(shell command -v clang-tidy-19),-19)
lint-tools:
	@tools/setup lint

format: lint-tools ## clang-format all sources in place
	@find $(FOLDERS) -name '*.hpp' -o -name '*.cpp' | xargs clang-format$(CLANG) -i

tidy: lint-tools ## clang-tidy over the library, the command and the examples; any finding fails
	@cmake --preset tidy --log-level=NOTICE -DCMAKE_CXX_COMPILER=clang++$(CLANG)
	@cmake --build build/tidy --target lockstep_scripts
	@run-clang-tidy$(CLANG) -quiet -p build/tidy -j $(JOBS) '/(src|examples|apps)/.*\.cpp$$'

clean: ## remove build/
	@rm -rf build
