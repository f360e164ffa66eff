# Each target does all of its own set-up: a virtual environment, the install, then the job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export NO_MKDOCS_2_WARNING := 1
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-long check docs bench-setup clean help

help:
	@echo "make demo        tune a real model in about a minute"
	@echo "make test        set up everything and run the tests"
	@echo "make test-long   the tests that take minutes: more kills, more examples"
	@echo "make check       what CI runs: tests, lint, types, layers, docs"
	@echo "make docs        build the documentation into site/"
	@echo "make bench-setup install the peers that benchmarks compare with"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Farthing needs Python 3.11 or newer; call: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: pyproject.toml constraints.txt $(VENV)/.dev
	$(PIP) --editable '.[bench]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/farthing demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not long"

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -m long

check: test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict

# NePS needs older packages than the other peers, so it has an environment of its own. Torch is pinned as for the rest.
.bench-venv/.neps: constraints.txt
	$(PYTHON) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check \
		$(shell grep '^torch==' constraints.txt) neural-pipeline-search==0.17.0
	@touch $@

bench-setup: $(VENV)/.bench .bench-venv/.neps

clean:
	rm -rf $(VENV) .bench-venv site build dist demo-output
