# People and CI run the same few commands. `make help` lists them.
PYTHON ?= python3
PORT   ?= 8000
DATA   ?= $(CURDIR)/data
NAME   ?=
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help up test test-slow check bench install install-dev lock clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

up: install      ## set up, start everything, open the dashboard (PORT=8000 DATA=./data)
	@exec $(BIN)/impakt up --port $(PORT) --data "$(DATA)"

test: install-dev      ## set up and run the tests
	@$(BIN)/pytest -m "not slow and not engine" -n 2 --dist loadfile -q $(ARGS)

test-slow: install-dev ## long simulations, fuzzing and fault drills
	@$(BIN)/pytest -m "slow and not engine" --timeout 600 $(ARGS)

check: install-dev     ## lint, types, layers, missing migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check

bench: install-dev     ## measurements of speed (NAME=load for one)
	@$(BIN)/python -m benchmarks $(NAME)

install: $(VENV)/.installed         ## .venv from the lock
install-dev: $(VENV)/.installed-dev ## the same with what the tests need

# The stamps make a second `make up` start without asking pip anything.
$(VENV)/.installed: requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "IMPAKT needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make $(MAKECMDGOALS) PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what IMPAKT needs into $(VENV) (about a minute, once) …"
	@$(PIP) install --require-hashes -r requirements/runtime.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements/dev.txt
	@echo "Installing what the tests need …"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

lock: install-dev      ## resolve pyproject.toml anew into requirements/
	@$(PIP) install uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" -q -o requirements/runtime.txt
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" -q -c requirements/runtime.txt -o requirements/dev.txt

clean:           ## remove .venv and caches; your data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info
