# make book     the rendered book, from nothing but Python 3.11, 3.12 or 3.13
# make check    a minute: style, layers, prose, claims, and every test that is marked neither slow nor long
# make test     the book, every test that is not marked long, and all notebooks: eight minutes beyond the book
# make full     all that is checked, as CI does: kills, clusters, hundreds of corpora, every page in a browser
# make serve    the book on this machine's port 8000
# make pdf      the book as build/book.pdf, printed by Chromium
# make paper    the published numbers, results/paper/: hours
# make readme   the figure of README.md from results/paper/
# make same     do the tiny runs give the numbers that they gave before? Three minutes; BASE=COMMIT for another base
# make sentinels  does the cheapest archived network of each kind come out again? Half an hour
# make faults   kills, full disks, flipped bits, bad input: at most 20 minutes;  make mutants   would tests notice?
# make audit    has a locked dependency a known fault? (needs a network)
# make types    pyright over attnlib: half a minute
# make format   the code as ruff lays it out; make lint says what is left
# make lint | lock | clean
#
# Choices:  make book PYTHON=python3.12        the interpreter that makes .venv
#           make book JOBS=8                   jobs at once (default: as many as there are cores)
#           make book TORCH_INDEX=<url>        the package index to take torch from: on Linux the default one
#                                              gives the wheel with CUDA, which is some gigabytes

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := book
# A build starts hundreds of processes; where the shell forbids byte code, each would compile its libraries anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: book check test full same sentinels serve pdf paper readme faults mutants audit lint format types lock clean install

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TORCH := torch==2.13.0
TORCH_INDEX ?=
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
JOBS ?= $(CORES)

# The first interpreter that is new enough, not too new, and able to make environments.
SUITABLE := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
  if "$$name" -c '$(SUITABLE)' >/dev/null 2>&1; then echo "$$name"; break; fi; done)

book: $(INSTALLED)
	@$(BIN)/attnlib book --jobs $(JOBS)

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "error: no Python 3.11, 3.12 or 3.13 with venv here; install one (on Debian: apt install python3 python3-venv)," \
	       "or name it: make book PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@echo "Making $(VENV) with $$($(PYTHON) --version), in two to five minutes; the first time this downloads about 1 GB" \
	  "(several more where the index gives torch with CUDA; see TORCH_INDEX)."
	@rm -f $@
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --no-compile $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$(TORCH)"
	@$(BIN)/python -m pip install -qq --no-compile --no-deps --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install -qq --no-compile --no-deps --no-build-isolation --editable .
	@touch $@

check: lint
	@# The verdicts are known before pytest has read all tests.
	@$(BIN)/attnlib verify & OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow and not long" \
	  --hypothesis-profile quick --numprocesses $(JOBS) --dist worksteal && wait $$!

test: CHOSEN := -m "not long"
full: types
test full: book
	@# One process has all tests of a file, which share networks and pages; tests/conftest.py puts long files first.
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(CHOSEN) --numprocesses $(JOBS) \
	  --dist loadfile --no-loadscope-reorder
	@# The notebooks again, each from its results: the tagged cells must print what the book shows.
	@$(BIN)/attnlib verify & \
	  ATTNLIB_ROOT="$(CURDIR)" ATTNLIB_FIGURE_FILES="$(CURDIR)/build/nbval" OMP_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -q -p companion.book.execute --nbval-lax --numprocesses $(JOBS) --dist loadfile \
	  build/notebooks && wait $$!

# Numbers guard numbers: every experiment's tiny run, by today's code and by the last that passed, on this machine.
same: $(INSTALLED)
	@$(BIN)/python -m tools.same_numbers $(BASE)

# Of each kind of training the cheapest archived network, trained and measured anew, compared with the archive.
sentinels: $(INSTALLED)
	@$(BIN)/python -m tools.sentinels --jobs $(JOBS)

serve: book
	@$(BIN)/attnlib serve

pdf: book
	@$(BIN)/python -m workflows.pdf build/book.pdf

paper: $(INSTALLED)
	@$(BIN)/snakemake --cores $(JOBS) --rerun-incomplete paper
	@$(BIN)/python -m companion.results.committed

# The figure of README.md, from the committed result; a test holds the two together.
readme: $(INSTALLED)
	@$(BIN)/python -m notebooks.attend.temporal_share.drawing

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tools.lint_cells

format: $(INSTALLED)
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

# What the library says of its types, by [tool.pyright] of pyproject.toml.
types: $(INSTALLED)
	@$(BIN)/basedpyright

# `make faults SIZE=1` is a small round, as `make full` has it; `make mutants COUNT=20` tries fewer.
faults: $(INSTALLED)
	@OMP_NUM_THREADS=1 ATTNLIB_FAULTS=$(or $(SIZE),20) $(BIN)/python -m pytest -q -s --numprocesses 0 \
	  tests/e2e/faults tests/notebooks/test_hostile_words.py

mutants: $(INSTALLED)
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --count $(or $(COUNT),300)

# Outside of .venv, which the lock describes; torch is locked apart. What cannot be looked up is an error, not a pass.
audit:
	@$(or $(PYTHON),python3) -m venv build/audit && build/audit/bin/pip install -qq --disable-pip-version-check pip-audit==2.10.1
	@echo "$(TORCH)" >build/audit/torch
	@for what in "requirements.lock --require-hashes" "build/audit/torch --no-deps"; do \
	  build/audit/bin/pip-audit --strict --disable-pip --requirement $$what 2>build/audit/said || \
	    { tail -n 1 build/audit/said >&2; echo "error: a known fault, or pypi.org could not say: $$what" >&2; exit 1; }; done

# Torch is left out: it is installed first, as above. One lock serves Python 3.11 to 3.13 on every platform.
lock:
	@$(if $(wildcard $(BIN)/python),$(BIN)/python -m pip install --quiet uv && $(BIN)/)uv pip compile pyproject.toml \
	  --extra book --extra test --extra text --extra hf --extra lab --extra slurm --extra fast \
	  --universal --python-version 3.11 --generate-hashes --no-emit-package torch --no-annotate \
	  --constraints <(echo "$(TORCH)") \
	  --quiet --custom-compile-command "make lock" --output-file requirements.lock

# What was built; `make clean all=1` removes .venv too.
clean:
	rm -rf build .snakemake $(if $(all),$(VENV))
