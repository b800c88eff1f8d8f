# Every target sets up what it needs: a .venv in this folder, nothing outside of it. The one exception: test-browser, run
# as root where there is no Chromium, installs the distribution's.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
MINIMUM := .venv-minimum
PRERELEASE := .venv-prerelease
# Tests check compiled code for indices out of bounds, and cache it apart from the unchecked one.
CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/numba-checked
PARALLEL := -n auto --dist loadgroup

.PHONY: demo test lint pytest coverage docs bench evidence tangent reproduce reproduce-quick clean
.PHONY: test-steady test-browser test-kills test-cluster test-minimum test-prerelease

demo: $(VENV)/.installed
	$(BIN)/flipcert demo
	$(BIN)/flipcert verify demo/sweep demo/train.npz demo/test.npz --points 30

test: lint pytest

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

pytest: $(VENV)/.tools
	$(CHECKED) $(BIN)/python -m pytest $(PARALLEL)

# The same tests, and which branches they take: fewer than the share in pyproject.toml is a failure.
coverage: $(VENV)/.tools
	$(CHECKED) $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term

# The same tests again and again, in random order, every other time beside a load on all cores: none may fail.
test-steady: $(VENV)/.tools
	$(CHECKED) $(BIN)/python tests/helpers/steady.py $(or $(RUNS),10)

# The report in a real browser. Screenshots for people go to tests/slow/browser/screenshots.
test-browser: export PLAYWRIGHT_BROWSERS_PATH = $(CURDIR)/$(VENV)/browsers
test-browser: $(VENV)/.browser
	$(CHECKED) $(BIN)/python -m pytest tests/slow/browser

$(VENV)/.browser: $(VENV)/.tools tests/slow/browser/install
	$(BIN)/python -m pip install --quiet --group browser
	tests/slow/browser/install $(BIN)/python
	touch $@

# The site, in docs/_build/html: warnings are errors, tutorials run, and what was built is looked at. Nothing is fetched.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_build/html
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/slow/site

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# A run of some minutes, killed again and again; takes about ten minutes in all.
test-kills: $(VENV)/.tools
	$(BIN)/python -m pytest tests/slow/kills -s

# A run on a cluster whose workers are killed again and again, and so is its client; and TLS. Some minutes.
test-cluster: $(VENV)/.tools
	$(BIN)/python -m pytest tests/slow/cluster -s

# The suite on the oldest versions that pyproject.toml allows, in a .venv-minimum of its own.
test-minimum: VENV := $(MINIMUM)
test-minimum: $(MINIMUM)/.installed
	$(CHECKED) $(MINIMUM)/$(SCRIPTS)/python -m pytest $(PARALLEL)

$(MINIMUM)/.installed: pyproject.toml tests/helpers/lower_bounds.py
	rm -rf $(MINIMUM)
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(MINIMUM)/$(SCRIPTS)/python tests/helpers/lower_bounds.py > $(MINIMUM)/requirements.txt
	$(MINIMUM)/$(SCRIPTS)/python -m pip install --quiet --requirement $(MINIMUM)/requirements.txt --editable .
	touch $@

# The suite on what others are about to release, in a .venv-prerelease that is made anew each time.
test-prerelease: VENV := $(PRERELEASE)
test-prerelease:
	rm -rf $(PRERELEASE)
	$(PYTHON) -m venv $(PRERELEASE)
	$(PRERELEASE)/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PRERELEASE)/$(SCRIPTS)/python -m pip install --quiet --pre --editable ".[plot,frame,torch,dask]" --group test
	$(CHECKED) $(PRERELEASE)/$(SCRIPTS)/python -m pytest $(PARALLEL)

# Some rows or other sizes: make bench ARGS="--only svm,ensembles --quick"; all choices: make bench ARGS=--help.
bench: $(VENV)/.tools
	$(BIN)/python -m benchmarks $(ARGS)

# Trains finite networks, replays certificates on them and rewrites paper/evidence.md: half an hour on two cores.
evidence: $(VENV)/.tools
	$(BIN)/python -m paper evidence --out paper $(ARGS)

# Fine-tunes networks, replays certificates of their tangent kernels and rewrites paper/tangent.md: some minutes.
tangent: $(VENV)/.tools
	$(BIN)/python -m paper tangent --out paper $(ARGS)

# All figures of the paper and the comparison with other methods, from the data in FLIPCERT_DATA: some hours on
# two cores (paper/README.md). What is shown in paper/results is taken from there.
reproduce: $(VENV)/.tools
	$(BIN)/python -m paper all --out reproduction $(ARGS)
	$(BIN)/python -m paper peers --points 1000 --out reproduction
	cp reproduction/results/* paper/results/

# The same on bundled digits, to see that every figure can be made; needs no data and no network.
reproduce-quick: $(VENV)/.tools
	$(BIN)/python -m paper all --quick --digits --out reproduction-quick
	$(BIN)/python -m paper peers --quick --digits --out reproduction-quick

# The package with what the demo needs.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plot,frame]"
	touch $@

# The tools of tests and linting, and what else the tests and the benchmarks need.
$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable ".[plot,frame,torch,dask]"
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) $(MINIMUM) $(PRERELEASE) .coverage .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis demo evidence tangent reproduction reproduction-quick docs/_build docs/reference docs/tutorials
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
