# malbox-tui: `make help` lists the targets. Results go to stdout; everything that make itself has to say goes to stderr.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.ONESHELL:
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
SYSTEM_PACKAGES := bubblewrap busybox-static curl e2fsprogs fish gcc libarchive13 libc6-dev libvirt-daemon \
	libvirt-daemon-driver-qemu libvirt-dev openssh-client openssh-server pkg-config python3-dev python3-venv qemu-system-x86 qemu-utils systemd tini tmux unar util-linux zsh

# SAMPLES as it was given: neither make nor the shell reads anything into it.
export MAKE_RUN_SAMPLES := $(value SAMPLES)

# libvirt's binding is compiled; it is installed as soon as what that takes is there.
LIBVIRT_STAMP := $(shell pkg-config --exists libvirt 2>/dev/null && command -v cc >/dev/null 2>&1 && echo $(STAMPS)/libvirt)

# What the engine is measured beside is installed for that alone.
BENCH_STAMP := $(if $(filter engine,$(or $(BENCH),engine)),$(STAMPS)/bench)

.PHONY: help run test fast rig lint simulate mutants soak bench screenshots system-deps clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

run: $(STAMPS)/run $(LIBVIRT_STAMP) ## open the console: make run [SAMPLES=some/folder]
	@if [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && [ "$${TERM:-dumb}" != dumb ]; then
		exec $(BIN)/malbox-tui $${MAKE_RUN_SAMPLES:+-- "$$MAKE_RUN_SAMPLES"}
	fi
	if [ -n "$$MAKE_RUN_SAMPLES" ]; then
		exec $(BIN)/malbox-tui analyze -- "$$MAKE_RUN_SAMPLES"
	fi
	echo 'make run SAMPLES=some/folder analyses a folder; now finishing what earlier runs left over.' >&2
	exec $(BIN)/malbox-tui analyze

test: $(STAMPS)/test $(LIBVIRT_STAMP) ## run the tests, the fast ones first
	@$(BIN)/python -m pytest -W error::pytest.PytestUnhandledThreadExceptionWarning

fast: $(STAMPS)/test $(LIBVIRT_STAMP) ## run the fast tests alone, in two minutes or less
	@$(BIN)/python -m pytest -W error::pytest.PytestUnhandledThreadExceptionWarning -m 'not slow and not rig'

rig: $(STAMPS)/test $(LIBVIRT_STAMP) ## run the tests on real machines: libvirt and QEMU, as root
	@$(BIN)/python -m pytest -W error::pytest.PytestUnhandledThreadExceptionWarning -m rig

lint: $(STAMPS)/lint $(STAMPS)/test ## format, lint, strict types, import contracts, docs
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	export MYPYPATH=malbox_tui/sdk
	$(BIN)/mypy --config-file .ci/mypy-plugins.ini -p malbox_plugin_sdk
	for plugin in malbox_tui/plugins/builtin/*/; do
		MYPYPATH="malbox_tui/sdk:$${plugin%/}" $(BIN)/mypy --config-file .ci/mypy-plugins.ini --explicit-package-bases "$$plugin"
	done
	unset MYPYPATH
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/docs

simulate: $(STAMPS)/test ## simulated worlds: make simulate [SEEDS=N] [FIRST_SEED=M]
	@exec $(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),500) --first-seed $(or $(FIRST_SEED),0)

mutants: $(STAMPS)/test ## put faults into the engine, one at a time; all must be found
	@exec $(BIN)/python -m tests.mutants

soak: $(STAMPS)/test ## 2,000 tasks in a row through a real engine; nothing may grow
	@exec $(BIN)/python -m tests.simulation.soak

bench: $(STAMPS)/test $(LIBVIRT_STAMP) $(BENCH_STAMP) ## measure: make bench [BENCH=name] [JSON=1]
	@exec $(BIN)/python -m tests.benchmarks $(if $(BENCH),'$(BENCH)') $(if $(JSON),--json)

screenshots: $(STAMPS)/test ## write the pictures of screenshots/ from the golden scenes
	@exec $(BIN)/python -m tests.golden

system-deps: ## install the Debian packages for isolation and libvirt, as root
	@if [ "$$(id -u)" != 0 ]; then
		echo 'make system-deps installs Debian packages and has to run as root: sudo make system-deps' >&2
		exit 1
	fi
	if ! command -v apt-get >/dev/null; then
		echo 'make system-deps knows Debian only. Install what gives you: $(SYSTEM_PACKAGES)' >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >&2
	apt-get install -q -y --no-install-recommends $(SYSTEM_PACKAGES) >&2

clean: ## remove the environment and everything generated
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .rig snapshot_report.html
	find malbox_tui tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv: .ci/make-venv
	@PYTHON='$(PYTHON)' .ci/make-venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/run: $(STAMPS)/venv pyproject.toml
	@echo 'Installing malbox-tui and what it needs into $(VENV); once, a minute or two.' >&2
	$(BIN)/python -m pip install -q --disable-pip-version-check -e . >&2
	touch $@

$(STAMPS)/test: $(STAMPS)/venv pyproject.toml
	@echo 'Installing malbox-tui and what its tests need into $(VENV); once, a minute or two.' >&2
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]' >&2
	touch $@ $(STAMPS)/run

$(STAMPS)/lint: $(STAMPS)/venv pyproject.toml
	@echo 'Installing what the linters need into $(VENV); once.' >&2
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[lint]' >&2
	touch $@ $(STAMPS)/run

$(STAMPS)/bench: $(STAMPS)/venv pyproject.toml
	@echo 'Installing what the engine is measured beside into $(VENV); once.' >&2
	if $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]' >&2; then
		touch $@
	else
		echo 'Not all of it could be installed; what is missing is said in its place.' >&2
	fi

$(STAMPS)/libvirt: $(STAMPS)/venv pyproject.toml
	@echo "Building the binding of this host's libvirt; once." >&2
	if $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[libvirt]' >&2; then
		touch $@
	else
		echo 'libvirt-python could not be built; going on without it. `make system-deps` installs what it takes.' >&2
	fi
