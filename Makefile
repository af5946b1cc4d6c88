# Thin: every target is a line or two of cmake, ctest or a tool. `make` alone lists them.
# JOBS compilers at once; TESTS, more of them, for many of them mostly wait.
JOBS   ?= $(shell nproc)
TESTS  ?= $(shell expr $(JOBS) \* 3 / 2)
PREFIX ?= /usr/local
FOLDERS = $(wildcard include src apps tests bench examples)

.PHONY: help setup build run test check test-sanitize bench install format tidy clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

setup: ## install what is missing (apt-get)
	@tools/setup

build: setup ## the release build: library and all programs, in build/release/bin
	@cmake --preset release --log-level=NOTICE
	@cmake --build --preset release -j $(JOBS)

run: build ## build, then run the demo: a fleet that contends, the dashboard, and what happens when some of it dies
	@build/release/bin/lockstep demo

test: build ## everything: release build, all tests, 30 s of fuzzing
	@ctest --preset release -j $(TESTS)

check: setup ## the inner loop: dev build, unit and quick integration tests
	@cmake --preset dev --log-level=NOTICE
	@cmake --build --preset dev -j $(JOBS)
	@ctest --preset dev -j $(TESTS) -L '^(unit|integration)$$'

test-sanitize: setup ## all tests under ASan and UBSan, then under TSan
	@for preset in asan tsan; do \
	    cmake --preset $$preset --log-level=NOTICE && cmake --build --preset $$preset -j $(JOBS) && \
	    ctest --preset $$preset -j $(TESTS) || exit 1; \
	done

bench: build ## run every bench (BENCH_ARGS=--quick for a short one)
	@set -e; for program in build/release/bin/bench_*; do $$program $(BENCH_ARGS); done

install: build ## install to PREFIX (default /usr/local), under DESTDIR if set
	@cmake --install build/release --prefix '$(PREFIX)'

format: ## clang-format all sources in place
	@tools/setup lint
	@find $(FOLDERS) -name '*.hpp' -o -name '*.cpp' | xargs clang-format -i

tidy: ## clang-tidy over the library
	@tools/setup lint
	@cmake --preset tidy --log-level=NOTICE
	@cmake --build build/tidy --target lockstep_scripts
	@run-clang-tidy -quiet -p build/tidy -j $(JOBS) '/(src|examples|apps)/.*\.cpp$$'

clean: ## remove build/
	@rm -rf build
