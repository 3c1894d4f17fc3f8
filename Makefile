# Every target does its own set-up; a machine needs Python >= 3.11, make and a package registry.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test check requirements bench soak clean
help:
	@echo "make demo          run the whole loop on a small project, without key or network"
	@echo "make test          run all tests"
	@echo "make check         lint, format and types"
	@echo "make requirements  lines of the specification that are not done yet"
	@echo "make soak          2,000 random prompts on one workspace, nothing lost (N=prompts, SEED=n to repeat one)"
	@echo "make bench         measure start-up and turns (ID=P5 for one line, QUICK=1 for few repetitions)"

demo: .venv/product
	@$(BIN)/agent-lsp demo

test: .venv/dev
	$(BIN)/python -m pytest -n auto

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

requirements: .venv/dev
	@$(BIN)/python -m tests.requirements

bench: .venv/dev
	@$(BIN)/python -m bench $(if $(QUICK),--quick) $(if $(ID),--only $(ID))

soak: .venv/dev
	@$(BIN)/python -m bench.soak $(if $(N),--prompts $(N)) $(if $(SEED),--seed $(SEED))

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "agent-lsp needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/product: pyproject.toml .venv/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

.venv/dev: pyproject.toml .venv/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/product
