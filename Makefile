# Everything that the README and the CI run. Each target works alone on a fresh clone with Python (3.11 or newer), make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PyTorch's index of CPU builds, where pip would otherwise take a CUDA build of several gigabytes. Empty: pip's own sources.
TORCH_INDEX ?=
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
TORCH_OPTION := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX),)

.DEFAULT_GOAL := help
.PHONY: help conformance real test lint format bench image-check clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One stamp for each set of extras; `pyproject.toml` and the constraints make them stale.
$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.suite: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP_INSTALL) --editable '.[conformance]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP_INSTALL) $(TORCH_OPTION) --editable '.[dev]'
	@touch $@ $(VENV)/.suite

conformance: $(VENV)/.suite ## run the suite against a mock of each release (ARGS="..." for more options)
	$(BIN)/python -m pytest conformance --target=mock --vllm-version=0.21.0 $(ARGS)
	$(BIN)/python -m pytest conformance --target=mock --vllm-version=0.32.0 $(ARGS)

# The release to install and to run for real.
VLLM ?= 0.32.0

real: $(VENV)/.dev ## run the suite against a real vLLM on this CPU (VLLM=0.32.0), installing it if need be
	$(BIN)/python -m conformance.real install $(VLLM)
	$(BIN)/python -m pytest conformance --target=real --vllm-version=$(VLLM) $(ARGS)
	REAL_RELEASES=$(VLLM) $(BIN)/python -m pytest tests -m real $(ARGS)

test: $(VENV)/.dev ## run the project's own tests
	$(BIN)/python -m pytest tests -m "not real" $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## the figures: ratios measured side by side in one run
	$(BIN)/python -m tests.bench

image-check: ## build the container for real and check the compose file (needs root; outside CI)
	scripts/image_check.sh

clean: ## remove the environment and every cache
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
