# SPDX-License-Identifier: MIT
# The front door. Each target only calls a script or meson; `make help` lists them.
# Variables: PREFIX (/usr/local) and DESTDIR for install, DURATION and TARGET for fuzz, JOBS, WERROR.
.DEFAULT_GOAL := help
.NOTPARALLEL:
export PREFIX DESTDIR JOBS WERROR
DURATION ?= 60

.PHONY: help setup build demo test check lint bench fuzz compat escape-kernels outdated soak install format tidy clean

help: ## show this list
	@awk -F ': ## ' '/^[a-z-]+: ## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install the Debian packages that are missing
	@scripts/setup

build: ## build into build/ (does the set-up first)
	@scripts/setup build
	@scripts/build

demo: ## build, then show a run
	@scripts/setup build
	@scripts/build --programs
	@scripts/demo

test: ## all gates: lint, unit, integration, compatibility kit, sanitizers, fuzz smoke
	@scripts/test

check: ## the quick gates: build, lint, unit tests
	@scripts/test --quick

lint: ## style, layers, headers, sizes, spelling
	@scripts/setup build lint
	@scripts/build
	@scripts/lint

bench: ## figures against the bare program, same machine, same run
	@scripts/setup build bench
	@scripts/build
	@CINCH_BUILD=$(CURDIR)/build bench/run

fuzz: ## fuzz each target for DURATION (60) seconds, or only TARGET
	@scripts/setup build test
	@scripts/fuzz $(DURATION) $(TARGET)

compat: ## the compatibility kit on several versions of each harness; continues where it ended; not part of test
	@scripts/setup build test
	@scripts/build
	@scripts/compat

escape-kernels: ## the escape suite on Debian's kernels 5.10 and 6.1, in QEMU; not part of test
	@scripts/setup build kernels
	@scripts/build
	@scripts/escape-kernels

install: ## install under PREFIX (/usr/local), below DESTDIR if given
	@scripts/setup build
	@scripts/build
	@meson install -C build --no-rebuild

soak: ## 20,000 mixed requests through the gateway: no growth, no descriptor left, exact totals
	@scripts/setup build test
	@scripts/build
	@CINCH_SOAK=20000 scripts/run_integration.py tests/integration/test_gateway_soak.py

outdated: ## report data that should be renewed: the price table
	@scripts/prices --check

format: ## let clang-format 14 write the C files
	@scripts/setup lint
	@scripts/format

tidy: ## advice of clang-tidy; not a gate
	@scripts/tidy

clean: ## remove everything that was built
	rm -rf build build-clang
