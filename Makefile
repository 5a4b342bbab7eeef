# Each target sets up .venv by itself: Python 3.11 or newer, make and a package index are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --retries 10 --timeout 60 -c constraints.txt
TEST := $(BIN)/python -m pytest -p no:benchmark

.PHONY: help demo test test-quick test-exhaustive test-gpu lint format bench clean

help:  ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "hopsim needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/core.stamp  ## Run a bf16 GEMM on the simulated H100, compare its bits, save its timeline.
	@mkdir -p build
	$(BIN)/hopsim gemm --m 512 --n 512 --k 512 --dtype bf16 --schedule warp-specialized \
		--trace build/demo.perfetto.json

test: $(VENV)/dev.stamp  ## Run the tests that need no GPU, but for the long ones.
	$(TEST) -n auto

test-quick: $(VENV)/dev.stamp  ## Run the tests that take no more than a few seconds each.
	$(TEST) -n auto -m 'not gpu and not exhaustive and not slow'

test-exhaustive: $(VENV)/dev.stamp  ## Run the long tests that `make test` leaves out.
	$(TEST) -n auto -m exhaustive

test-gpu: $(VENV)/dev.stamp  ## Run the tests that need a real sm_90 device.
	$(PIP) -e '.[cuda]'
	$(TEST) -m gpu

lint: $(VENV)/dev.stamp  ## Check style, format, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp  ## Rewrite the sources in the house's format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.stamp  ## Measure speed.
	$(BIN)/python -m pytest benchmarks -p no:xdist --benchmark-columns=min,median,max,rounds

clean:  ## Remove the environment and everything built.
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
