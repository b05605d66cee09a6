# From nothing to a result on a machine with Python 3.10 or newer; the second time at once.
#   make demo    the library in one run       make lint     ruff and mypy
#   make check   lint, then the tests of the packages that a change touches, for the loop of daily work
#   make test    lint, then every test        make clean    remove the environment and the caches
#   make docs    the site, in docs/_build/html; its live pages want npm, for Python in the browser
#   make bench-algebra    what the algebra costs, compared with its peers
#   make mutants    small faults in a copy, one at a time, and the test that notices each: about an hour

PYTHON ?= python3
# Options of pytest, e.g. make test PYTEST=--require-gpu. With --hypothesis-profile=ci, property tests
# try four times as many examples, and tests marked `deep` run, as in CI (tests/conftest.py). A worker
# waits for the browser and for processes: the third fills the gaps on two cores. With worksteal, none
# is left alone with the slow tests: about 4 min.
PYTEST ?= -n 3 --dist worksteal

# pytest and its workers each take 3 s to rewrite assertions, unless they may keep what they rewrote.
unexport PYTHONDONTWRITEBYTECODE

bin := .venv/bin
ready := .venv/.ready

.PHONY: demo check test lint docs bench-algebra mutants clean

demo: $(ready)
	@$(bin)/python -m cutedsl_gemm demo

check: lint
	@$(bin)/python tests/touched.py

test: lint
	@$(bin)/python -m pytest $(PYTEST)

lint: $(ready)
	@$(bin)/ruff check
	@$(bin)/mypy

docs: $(ready) docs/node_modules/.ready
	@$(bin)/python -m sphinx -q -W -b html docs docs/_build/html
	@echo "docs/_build/html/index.html; live: $(PYTHON) -m http.server -d docs/_build/html"

docs/node_modules/.ready: docs/package-lock.json
	@if command -v npm >/dev/null; then npm ci --silent --prefix docs && touch $@; \
	else echo "no npm: the site's live pages will say that Python did not start"; fi

bench-algebra: $(ready)
	@$(bin)/python bench/algebra.py

mutants: $(ready)
	@$(bin)/python -m tests.mutants

$(ready): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 10) or sys.exit("cutedsl-gemm needs Python 3.10 or newer, \
	and $(PYTHON) is %d.%d: make PYTHON=/path/to/a/newer/python" % v[:2])'
	@echo "making .venv, once: a minute or two, more where torch brings CUDA"
	@$(PYTHON) -m venv .venv
	@$(bin)/python -m pip install -qq -c constraints.txt -e '.[gpu,dev,docs,examples]'
	@touch $@

clean:
	rm -rf .venv .*_cache .hypothesis dist docs/_build docs/written docs/node_modules
	find . -name __pycache__ -prune -exec rm -rf {} +
