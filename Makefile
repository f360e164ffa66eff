# Each target does all of its own set-up: a virtual environment, the install, then the job.
PYTHON ?= python3
# Another interpreter has an environment of its own: make test PYTHON=python3.13
VENV := .venv$(patsubst %,-%,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
export NO_MKDOCS_2_WARNING := 1
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not long and not ray"
PIP := -m pip install --quiet --disable-pip-version-check --constraint
# $(call install,environment,group of dependencies,constraints): groups need pip 25.1, and Python 3.11 brings an older one.
install = $(1)/bin/python $(PIP) $(3) 'pip>=25.1' && $(1)/bin/python $(PIP) $(3) --editable . --group $(2)

RAY_PYTEST := .venv-ray/bin/python -m pytest

.PHONY: demo faketime chromium slurm test test-newest test-lowest test-long test-browser test-ray test-integrations screenshots coverage wholes mutants wheel lint check docs bench bench-setup clean help

help:
	@echo "make demo        tune a real model in about a minute"
	@echo "make test        set up everything and run the tests of single parts, in ten minutes"
	@echo "make test-newest  the tests of the core on the newest Python that is supported, where it is found"
	@echo "make test-lowest  the tests of the core with the lowest versions that the package asks for"
	@echo "make test-ray    the tests on a Ray cluster of three nodes, which they start on this machine"
	@echo "make test-long   the tests that take minutes: more kills, more examples"
	@echo "make test-browser  the dashboard in Debian's Chromium"
	@echo "make screenshots  draw the pictures of the dashboard in docs/images again"
	@echo "make test-integrations   the tests of other libraries: trackers, tuners, training loops"
	@echo "make coverage    the tests of single parts, and the share of lines they reach"
	@echo "make mutants     change the source by seed and see whether a test notices, in half an hour of CPU"
	@echo "make lint        style, types, import layers and a strict build of the documentation, in a few minutes"
	@echo "make check       what CI runs first: lint, these tests and those of whole programs, coverage, the wheel"
	@echo "make wheel       build sdist and wheel, install it into empty environments, run the README's Python there"
	@echo "make docs        build the documentation into site/"
	@echo "make bench       a quick look at every system beside random search and halving, in about a quarter of an hour"
	@echo "make bench-setup install the peers that benchmarks compare with"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Farthing needs Python 3.11 or newer; call: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) constraints.txt --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,$(VENV),dev,constraints.txt)
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: pyproject.toml constraints.txt $(VENV)/.dev
	$(call install,$(VENV),bench,constraints.txt)
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/farthing demo

# Tests of clocks need Debian's faketime; without root they install nothing and say so.
faketime:
	@command -v faketime >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get install -y -qq faketime || { apt-get update -qq && apt-get install -y -qq faketime; }; } >/dev/null 2>&1; } || true

# The test of the guide's SLURM script needs Debian's; without root it is skipped, and says so.
slurm:
	@command -v sbatch >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get install -y -qq slurm-wlm || { apt-get update -qq && apt-get install -y -qq slurm-wlm; }; } >/dev/null 2>&1; } || true

# Measured over the tests of single parts: whole programs reach nearly every line and pin down few of them.
PARTS := tests/unit tests/contracts tests/papers

# Within ten minutes on two cores: single parts, and a newcomer's first hour. `make check` has the other whole programs:
# kills, power cuts, hostile work, every page of the documentation, properties over many examples.
test: $(VENV)/.dev faketime
	$(PYTEST) $(PARTS) tests/end_to_end/test_first_hour.py

# The core on other interpreters and versions, without torch, which is large: what needs it is tested above.
CORE := -m pytest --numprocesses 2 --dist worksteal -m "not long and not ray" \
	$(addprefix --ignore=tests/unit/,acquisition benchmarks integrations models) tests/unit
NEWEST = $(shell for python in python3.13 $(HOME)/.pyenv/versions/3.13*/bin/python3.13; do \
	$$python -c '' 2>/dev/null && command -v $$python && break; done)

.venv-newest/.installed: pyproject.toml constraints.txt
	$(NEWEST) -m venv .venv-newest
	$(call install,.venv-newest,test-core,constraints.txt)
	@touch $@

test-newest: faketime
	@if [ -z "$(NEWEST)" ]; then echo "Python 3.13 is absent, and nothing was tested on it."; else \
	$(MAKE) --no-print-directory .venv-newest/.installed && .venv-newest/bin/python $(CORE); fi

.venv-lowest/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	$(call install,.venv-lowest,test-core,constraints-lowest.txt) httpx
	@touch $@

# Libraries of that age call what has been deprecated since: their warnings are theirs. httpx is for Starlette's test client.
test-lowest: .venv-lowest/.installed faketime
	.venv-lowest/bin/python $(CORE) -W default

# Ray is large, so it has an environment of its own, which has no more than these tests need.
.venv-ray/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	$(call install,.venv-ray,test-ray,constraints.txt)
	@touch $@

test-ray: .venv-ray/.installed
	$(RAY_PYTEST) tests/ray_cluster -m "ray and not long"

test-long: $(VENV)/.browser faketime chromium slurm test-lowest test-ray test-integrations
	$(BIN)/python -m pytest -m "long and not ray"
	$(BIN)/python -m pytest -m long tests/browser
	$(RAY_PYTEST) tests/ray_cluster -m long
	$(INTEGRATIONS_PYTEST) -m long

# Without root, Debian's Chromium must be there already: these tests fail without it.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null; }

$(VENV)/.browser: pyproject.toml constraints.txt $(VENV)/.dev
	$(call install,$(VENV),test-browser,constraints.txt)
	@touch $@

test-browser: $(VENV)/.browser chromium
	$(BIN)/python -m pytest -m "not long" tests/browser

screenshots: $(VENV)/.browser chromium
	$(BIN)/python -m tests.browser.screenshots docs/images

# Other libraries pin packages of their own, so they have an environment of their own. Pages of the documentation that
# need them run here too.
INTEGRATIONS := .venv-integrations
$(INTEGRATIONS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(call install,$(INTEGRATIONS),test-integrations,constraints.txt)
	@touch $@

INTEGRATIONS_PYTEST := FARTHING_INTEGRATIONS=all $(INTEGRATIONS)/bin/python -m pytest --numprocesses 2 --dist worksteal \
	tests/integrations tests/end_to_end/test_docs.py tests/end_to_end/test_coming_from.py \
	-k '(integrations and not botorch) or early_stopping or coming_from'

test-integrations: $(INTEGRATIONS)/.installed
	$(INTEGRATIONS_PYTEST) -m "not long"

coverage: $(VENV)/.dev faketime
	$(PYTEST) --cov --cov-report=term $(PARTS)

wholes: $(VENV)/.dev faketime
	$(PYTEST) $(addprefix --ignore=,$(PARTS))

mutants: $(VENV)/.dev
	$(BIN)/python tests/mutation/mutants.py

# An empty environment, also of the newest Python: what the package needs comes with it, or this fails; the README needs
# the extra that it names. The wheel is built from the sdist.
wheel: $(VENV)/.dev
	rm -rf build/wheel
	$(BIN)/python -m build --outdir build/wheel . >/dev/null
	$(BIN)/twine check --strict build/wheel/*
	for python in $(PYTHON) $(NEWEST); do \
	rm -rf build/wheel/venv && $$python -m venv build/wheel/venv && \
	build/wheel/venv/bin/python $(PIP) constraints.txt build/wheel/*.whl && \
	(cd build/wheel && venv/bin/python ../../tests/wheel/installed.py package ../../README.md) && \
	build/wheel/venv/bin/python $(PIP) constraints.txt "$$(echo build/wheel/*.whl)[demo]" && \
	(cd build/wheel && venv/bin/python ../../tests/wheel/installed.py readme ../../README.md) || exit 1; done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/mkdocs build --strict --quiet

check: lint coverage wholes wheel

docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict

# NePS and DEHB need older packages than the other peers, so each has an environment of its own. Torch is pinned as for
# the rest.
.bench-venv/.neps: constraints.txt
	$(PYTHON) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check \
		$(shell grep '^torch==' constraints.txt) neural-pipeline-search==0.17.0
	@touch $@

.dehb-venv/.dehb: Makefile
	$(PYTHON) -m venv .dehb-venv
	.dehb-venv/bin/python -m pip install --quiet --disable-pip-version-check dehb==0.1.2
	@touch $@

.flaml-venv/.flaml: constraints.txt
	$(PYTHON) -m venv .flaml-venv
	.flaml-venv/bin/python -m pip install --quiet --disable-pip-version-check 'flaml[automl,blendsearch]==2.7.0' $(shell grep '^lightgbm==' constraints.txt)
	@touch $@

# Two seeds and short budgets, for a look: the records that are reported stay as they are. Needs no peer and no data;
# what is absent is left out, and said.
RUN := $(BIN)/python -m benchmarks.run
bench: $(VENV)/.dev
	$(RUN) sequential --quick --problems branin hartmann-6 rosenbrock-4 --methods log-ei optuna-tpe random
	$(RUN) mf-synthetic --quick --methods TraceKG boca hyperband
	$(RUN) mf-curves --quick --problems 'lcbench/167*' 'taskset/*' --methods TraceKG asha hyperband random
	$(RUN) pipeline-synthetic --quick --problems '*hartmann*' '*ackley*' --methods prefix-ei lambo staged-ei staged-random
	$(RUN) online-synthetic --quick --methods default 'CE κ=0.9' 'Bernoulli 0.2' TV-GP-UCB
	$(RUN) population-synthetic --quick --problems 'drift,*' --methods PB2 PBT Clone 'random search'
	$(BIN)/python -m benchmarks.speed loop --quick
	$(BIN)/python -m benchmarks.speed startup --quick

bench-setup: $(VENV)/.bench .bench-venv/.neps .dehb-venv/.dehb .flaml-venv/.flaml

clean:
	rm -rf .venv .venv-* .bench-venv .dehb-venv .flaml-venv site build dist demo-output
