# Every target sets up what it needs: a .venv in this folder, nothing outside of it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint pytest bench evidence clean

demo: $(VENV)/.installed
	$(BIN)/python -m flipcert.demo

test: lint pytest

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Compiled code is checked for indices out of bounds here, and cached apart from the unchecked one.
pytest: $(VENV)/.tools
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/numba-checked $(BIN)/python -m pytest -n auto

# Some rows or other sizes: make bench ARGS="--only svm,ensembles --quick"; all choices: make bench ARGS=--help.
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks $(ARGS)

# Trains finite networks, replays certificates on them and rewrites docs/evidence.md: half an hour on two cores.
evidence: $(VENV)/.tools
	$(BIN)/python -m flipcert.evidence --out docs $(ARGS)

# The package with what the demo and the benchmarks need.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plot,frame]"
	touch $@

# The tools of tests and linting.
$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable ".[plot,frame,torch]"
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo evidence
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
