# Every target does its own set-up; a machine needs Python >= 3.11, make and a package registry. What belongs to the
# VS Code client needs Node >= 20 as well, and its tests Node 20 with a C++ compiler.
PYTHON ?= python3
BIN := .venv/bin
CLIENT := vscode-client

.PHONY: help demo test check requirements bench soak clean vsix check-vscode test-vscode test-vscode-unit screenshots
help:
	@echo "make demo          run the whole loop on a small project, without key or network"
	@echo "make test          run all tests"
	@echo "make check         lint, format and types"
	@echo "make requirements  lines of the specification that are not done yet"
	@echo "make soak          2,000 random prompts on one workspace, nothing lost (N=prompts, SEED=n to repeat one)"
	@echo "make bench         measure start-up and turns (ID=P5 for one line, QUICK=1 for few repetitions)"
	@echo "make vsix          build the VS Code extension with the server in it (WHEELS=1 with all that the server needs)"
	@echo "make check-vscode  lint, format and types of the extension"
	@echo "make test-vscode   its unit tests, and its end-to-end tests in a real VS Code (ONLY=words for some, TIMES=5)"
	@echo "make screenshots   take the pictures of docs/images anew"

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

vsix: $(CLIENT)/node_modules/.ready $(CLIENT)/e2e/node_modules/.ready .venv/product
	@PYTHON=$(CURDIR)/$(BIN)/python $(CLIENT)/scripts/package.sh

check-vscode: $(CLIENT)/node_modules/.ready $(CLIENT)/e2e/node_modules/.ready
	@cd $(CLIENT) && npm run --silent check
	@cd $(CLIENT)/e2e && npm run --silent check

test-vscode-unit: .venv/dev vsix
	@cd $(CLIENT) && npm test --silent

test-vscode: test-vscode-unit
	@$(CLIENT)/scripts/install-chromium.sh >/dev/null
	@$(CLIENT)/scripts/install-code-server.sh >/dev/null
	@cd $(CLIENT)/e2e && npm test --silent

screenshots: .venv/dev vsix
	@$(CLIENT)/scripts/install-chromium.sh >/dev/null
	@$(CLIENT)/scripts/install-code-server.sh >/dev/null
	@cd $(CLIENT)/e2e && npm run --silent screenshots

clean:
	rm -rf .cache $(CLIENT)/node_modules $(CLIENT)/e2e/node_modules $(CLIENT)/dist $(CLIENT)/python
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

%/node_modules/.ready: %/package-lock.json
	@node -e 'process.exit(Number.parseInt(process.versions.node) < 20 ? 1 : 0)' \
		|| { echo "the VS Code client needs Node 20 or later, with npm"; exit 1; }
	@cd $* && npm ci --silent
	@touch $@
