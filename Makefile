# Thin names for what is done often. Nothing here needs more than Debian 12 and a Rust toolchain.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Tests that start servers are bounded by memory and cores: each runs up to three servers.
TEST_THREADS ?= 3
# The profile of `make demo`: dev compiles in half the time, release is what you would run.
PROFILE ?= dev
DEMO_ARGS ?=
SIM_ARGS ?=
PEERS_ARGS ?=
WEATHER_ARGS ?=
PROTECT ?= slots slots-short slots-long slots-8 slots-web slots-looks slots-bursts slots-doubles

# Seconds of a siege, and more of its arguments: --seed 1 --workers 2 --traps quotes,prepare
SIEGE_SECONDS ?= 3600
SIEGE_ARGS ?= --workers 2

# Seconds for each fuzz target, and which.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=

FEATURES := --workspace --all-features
PROFILE_DIR = $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

.PHONY: help demo test prepared check fmt lint doc integration sim bench bench-pace bench-weather bench-protect bench-reports bench-share bench-peers servers clients clean-servers toolchain build release fuzz siege

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: toolchain servers ## three applications behind Sluice on real servers, for a minute; DEMO_ARGS='--seconds 15'
	$(if $(SLUICE_BIN),,cargo build --profile $(PROFILE) -p sluice --bin sluice)
	$(or $(SLUICE_BIN),$(TARGET)/$(PROFILE_DIR)/sluice) demo $(DEMO_ARGS)

test: prepared ## everything, with real MySQL and MariaDB servers
	TARGET=$(TARGET) scripts/run-tests $(FEATURES) -- --test-threads=$(TEST_THREADS)

integration: prepared ## only the tests on real servers
	SLUICE_BIN=$(TARGET)/debug/sluice cargo test $(FEATURES) --no-fail-fast --test '*' -- --test-threads=$(TEST_THREADS) </dev/null

# One set of packages and features for programs and tests, so that nothing is compiled twice.
build: toolchain servers
	cargo build $(FEATURES) --all-targets

# What the tests need besides is mostly waited for, so it comes while the processors build.
prepared: toolchain servers
	@mkdir -p $(TARGET)
	@$(MAKE) --no-print-directory clients tools browser >$(TARGET)/installed.log 2>&1 & installs=$$!; \
	status=0; $(MAKE) --no-print-directory build || status=$$?; \
	wait $$installs || status=$$?; cat $(TARGET)/installed.log; exit $$status

check: fmt lint doc ## formatting, clippy and documentation, warnings as errors

fmt:
	cargo fmt --all --check

lint: toolchain
	cargo clippy --workspace --all-targets --all-features -- -D warnings

doc: toolchain ## the crates' documentation, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

sim: toolchain ## every scenario of scenarios/, a line each; SIM_ARGS='101 202 steady' for these seeds and names
	cargo run --release -p simulate --example table $(SIM_ARGS)

fuzz: toolchain ## every fuzz target for FUZZ_SECONDS (60); needs a nightly toolchain, brings cargo-fuzz
	scripts/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

siege: toolchain servers ## attacks of chance and the servers' own test statements, by a client whose writes are denied, for SIEGE_SECONDS (3600)
	scripts/install-test-suites
	cargo build --release -p sluice -p integration --bins
	SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/siege --seconds $(SIEGE_SECONDS) \
	  --suites "$${SLUICE_CACHE:-$$HOME/.cache/sluice}/suites" --keep $(TARGET)/siege-found.txt $(SIEGE_ARGS) </dev/null

release: toolchain ## the program as it is released, optimised by a load of real clients: target/pgo/sluice (two release builds)
	scripts/build-release

bench: toolchain ## time per decision, with 10 and with 10,000 rules
	cargo run --release -p benches --bin decide
	cargo run --release -p benches --bin lock
	cargo run --release -p benches --bin many

bench-pace: toolchain servers ## adaptive and binary pace and none, in front of a slow replica: lag and rows; writes docs/plots/pace.svg
	cargo build --release -p sluice -p benches
	SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/pace 3 20 10 docs/plots

bench-weather: toolchain servers ## everyday weather over a slow replica, in three ways; WEATHER_ARGS='drop restart:adaptive' for these; writes docs/plots/weather.svg
	cargo build --release -p sluice -p benches
	SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/weather $(TARGET)/weather docs/plots $(WEATHER_ARGS)

bench-protect: toolchain servers ## a web app beside report jobs, limited, protected, binary and direct: p99 and reports a second; PROTECT='slots scans'; plots in target/
	cargo build --release -p sluice -p benches
	for kind in $(PROTECT); do SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/protect $$kind 8 $(TARGET) || exit; done

bench-reports: toolchain servers ## a report run 40 times at once beside a web app, direct and with a budget of 4: p99; writes docs/plots/reports.svg
	cargo build --release -p sluice -p benches
	SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/budgets reports 3 12 1000 docs/plots

bench-share: toolchain servers ## batch work held to shares of the server, by the server's timers; writes docs/plots/share.svg
	cargo build --release -p sluice -p benches
	SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/budgets share 3 60 docs/plots

bench-peers: toolchain servers ## direct, HAProxy, MySQL Router, Sluice: CPU per statement, TLS, 1 GiB, memory; PEERS_ARGS='6 5 clear 64 512'
# apt-get brings sysbench and HAProxy.
	benches/install-peers
	cargo build --release -p sluice -p benches
	ulimit -n "$$(ulimit -Hn)"; SLUICE_BIN=$(TARGET)/release/sluice $(TARGET)/release/peers $(PEERS_ARGS)

servers: ## MySQL 9 beside the host's packages, MariaDB from the host's suite
	scripts/install-servers

clients: servers ## the drivers that are tried through Sluice: docs/DRIVERS.md
	scripts/install-clients

.PHONY: tools
tools: servers ## the tools that are run through Sluice (docs/TOOLS.md), and Prometheus
	scripts/install-tools
	scripts/install-prometheus

.PHONY: browser
browser: ## the browser that looks at the console: docs/CONSOLE.md
	scripts/install-browser

clean-servers: ## what `make servers` downloaded (MariaDB stays: it is a package of the host)
	rm -rf "$${SLUICE_CACHE:-$$HOME/.cache/sluice}"

# Rust links with `cc`; our dependencies need no C compiler otherwise.
toolchain:
	@command -v cargo >/dev/null || { echo "no cargo: install Rust (1.95 or later) with rustup" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "no cc, which Rust links with: installing gcc" >&2; \
	  [ "$$(id -u)" = 0 ] && root= || root="sudo -n"; \
	  install="$$root env DEBIAN_FRONTEND=noninteractive apt-get -y -q install --no-install-recommends gcc libc6-dev"; \
	  $$install </dev/null >/dev/null 2>&1 || { $$root apt-get -q update </dev/null >&2; $$install </dev/null >&2; }; }
