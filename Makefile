# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAM := $(VENV)/.program
STAMP := $(VENV)/.installed
EXTRAS := postgres,s3,gcs,azure,agents,claude-agent-sdk,langchain,openai-agents,opentelemetry,pydantic-ai
# Python compiles a module when it is first imported, and most modules of the packages never are.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile
INSTALL = $(BIN)/python -m pip install $(PIP_FLAGS) --constraint constraints.txt --build-constraint constraints.txt
TEST_FLAGS ?=
# Of benchmarks, such as `recording disk`; all by default.
SUBJECTS ?=
# Three on two processors, since they wait for servers and for commands.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal
.PHONY: demo test check lint mypy basedpyright collect coverage bench docs man build clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo      record real commands of this machine and prove the record"
	@echo "make test      formatting, lint, types, layers, tests"
	@echo "make coverage  the same tests with branch coverage, which must be 95 %"
	@echo "make check     formatting, lint, types, layers"
	@echo "make bench     ratios beside their baselines"
	@echo "make docs      the documentation site, into build/site"
	@echo "make man       a man page for each command, into build/man"
	@echo "make build     sdist and wheel, into dist"
	@echo "make clean     remove everything that was built"

$(PROGRAM): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Tooltrail needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --constraint constraints.txt pip
	@$(INSTALL) --editable .
	@touch $@

$(STAMP): $(PROGRAM)
	@echo "adding the tools of development to $(VENV) ..."
	@$(INSTALL) --group dev --editable ".[$(EXTRAS)]"
	@touch $@

demo: $(PROGRAM)
	@$(BIN)/python examples/demo.py

# Two type checkers at once: each uses one processor for most of its time.
check: $(STAMP)
	@$(MAKE) --no-print-directory --jobs=2 lint mypy basedpyright

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

mypy basedpyright: $(STAMP)
	$(BIN)/$@

# Each test process would compile all tests, if they began in a clean folder at the same time.
collect: $(STAMP)
	@listed=$$($(BIN)/python -m pytest --collect-only --quiet) || { echo "$$listed"; exit 1; }

test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs=2 lint mypy basedpyright collect
	$(PYTEST) $(TEST_FLAGS)

coverage: $(STAMP)
	$(BIN)/coverage erase
	$(PYTEST) --cov --cov-report=term $(TEST_FLAGS)

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(SUBJECTS)

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

man: $(STAMP)
	$(BIN)/python -m tests.support.man_pages build/man/man1

build: $(STAMP)
	$(BIN)/python -m build --quiet --outdir dist

clean:
	rm -rf $(VENV) build dist .coverage* htmlcov .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
