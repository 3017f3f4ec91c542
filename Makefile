# Everything starts here, on a machine with only Python >= 3.11 and make. `make demo` first.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.PHONY: help demo test lint bench chaos lock clean bootstrap bootstrap-dev

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: bootstrap ## the whole product with two example tenants; Ctrl-C stops all of it
	@exec $(BIN)/python manage.py demo

test: lint ## lint, types, layers, and every test
	@if .ci/chromium; then $(PYTEST) -n 2; else $(PYTEST) -n 2 -m "not browser"; fi

lint: bootstrap-dev ## style, types, layers, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: bootstrap-dev ## the benchmarks, never part of the tests
	@$(BIN)/python -m tests.bench $(BENCH)

chaos: bootstrap-dev ## the long fault campaign, 10 minutes (CHAOS="--seconds 60 --seed 7"); a short one is in the tests
	@$(BIN)/python -m tests.chaos.campaign $(CHAOS)

lock: bootstrap-dev ## pin the newest versions that the .in files allow
	@for name in requirements-uv requirements requirements-dev; do \
		$(COMPILE) --upgrade $$name.in -o $$name.txt || exit 1; done

clean: ## remove the environment and the caches; .data, the demo's state, stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles

bootstrap:
	@.ci/bootstrap requirements.txt

bootstrap-dev:
	@.ci/bootstrap requirements-dev.txt
