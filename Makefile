# Everything stays inside this folder: .venv, .airflow, data, out. Needs Python 3.11 or later.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# The first of these that is there and new enough; `make PYTHON=...` takes another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
UV := $(shell command -v uv 2>/dev/null)
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
# Where what was installed is noted, by the files that said so.
INSTALLED := $(VENV)/.installed
DEVELOPING := $(VENV)/.installed-dev
FUZZING := $(VENV)/.installed-fuzz
BUILDING := $(VENV)/.installed-build
NATIVE := plugins/mondrian_ops/native
C_FILES := $(wildcard $(NATIVE)/*.[ch] plugins/mondrian_ops/*/native/*.[ch] \
	plugins/mondrian_ops/*/*/native/*.[ch])
# As native/build.py names it: for one kind of machine, of which others may share this folder.
KERNELS := $(NATIVE)/kernels-$(shell uname -sm | tr 'A-Z ' 'a-z-').so
# One process more than there are cores, for tests wait for processes of their own; each needs about
# 1 GB, and one that crashes is not replaced.
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
DEALT := -n $(shell expr $(CORES) + 1) --maxprocesses 4 --max-worker-restart 0 --no-loadscope-reorder
# Never a registry, an index or a mirror here: pip and uv are configured by whoever runs them.
ifdef UV
INSTALL := VIRTUAL_ENV=$(VENV) uv pip install --quiet
else
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --use-pep517 --no-compile
endif
# Once, on all cores: pip uses one, and uv leaves it to whoever imports a module first, as here what
# only tests need. Nobody imports the tests of packages; some bring files that are no Python of this
# version.
COMPILE := $(RUN) -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib >/dev/null || true

.PHONY: help
help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(INSTALLED) $(KERNELS) ## Make .venv with all it needs (uv if it is there, else venv and pip)

$(INSTALLED): requirements.txt requirements-hdfs.txt | $(RUN)
	@echo "installing the requirements into $(VENV)"
	@$(INSTALL) -r requirements.txt
	@$(INSTALL) --no-deps -r requirements-hdfs.txt
	@$(COMPILE)
	@touch $@

$(RUN):
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or later is needed, none was found" >&2; exit 1; }
ifdef UV
	@uv venv --quiet --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
else
	@$(PYTHON) -m venv --clear $(VENV)
endif
	@$(RUN) -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "mondrian_ops.pth") \
		.write_text(str(pathlib.Path("plugins").resolve()) + "\n")'

$(DEVELOPING): requirements-dev.txt $(INSTALLED)
	@$(INSTALL) -r requirements-dev.txt
	@touch $@

# By the system's C compiler; where none works, by the one that the ziglang wheel brings.
$(KERNELS): $(C_FILES) $(NATIVE)/build.py requirements-build.txt | $(INSTALLED)
	@$(RUN) -m mondrian_ops.native.build --find >/dev/null 2>&1 \
		|| { echo "installing a C compiler into $(VENV)"; $(INSTALL) -r requirements-build.txt; }
	@echo "compiling the kernels"
	@$(RUN) -m mondrian_ops.native.build

.PHONY: demo
demo: install ## Anonymize a million poker hands in Airflow, and show the report
	@$(RUN) scripts/demo.py

.PHONY: ui
ui: install ## Start Airflow with everything loaded
	@$(RUN) scripts/ui.py

# Servers are waited for: two processes more than there are cores.
SERVING := -n $(shell expr $(CORES) + 2)
# Hypothesis: fast, ci or soak; tests/support/hypothesis_profiles.py has their numbers.
PROFILE := fast
PYTEST = $(RUN) -m pytest $(DEALT) --hypothesis-profile=$(PROFILE)

.PHONY: test
test: install $(DEVELOPING) ## Test all that needs no server, and a run by `airflow dags test`: 5 minutes
	@$(PYTEST) -m "not servers" --ignore tests/servers --ignore tests/soak $(ARGS)

.PHONY: test-servers
test-servers: install $(DEVELOPING) ## Test on Spark, HDFS, S3, Celery and in a browser, and what takes long: 25 minutes
	@$(PYTEST) $(SERVING) -m servers $(ARGS)
test-servers: PROFILE := ci

.PHONY: test-all
test-all: install $(DEVELOPING) ## make test and make test-servers in one go: 30 minutes
	@$(PYTEST) $(SERVING) $(ARGS)
test-all: PROFILE := ci

.PHONY: soak
soak: install $(DEVELOPING) ## Test every fault at every point, many nights, many examples: hours
	@$(PYTEST) $(SERVING) -m "soak or hypothesis" $(ARGS)
soak: PROFILE := soak

$(FUZZING): requirements-fuzz.txt $(DEVELOPING)
	@$(INSTALL) -r requirements-fuzz.txt -c requirements.txt -c requirements-dev.txt
	@touch $@

.PHONY: fuzz
fuzz: install $(FUZZING) $(BUILDING) ## Fuzz each parser and the kernels, guided by coverage; `make fuzz SECONDS=600`
	@for target in job hierarchy_csv hierarchy_json csv plan override kernels; do \
		$(RUN) tests/fuzz/run.py $$target $(or $(SECONDS),60) || exit 1; done

.PHONY: mutants
mutants: install $(FUZZING) ## Mutate the code that decides what may be published
	@$(RUN) scripts/mutants.py $(ARGS)

.PHONY: bench
bench: install $(DEVELOPING) ## Measure speed and quality against the figures of the design
	@$(RUN) -m benchmarks $(ARGS)

$(BUILDING): requirements-build.txt $(INSTALLED)
	@$(INSTALL) -r requirements-build.txt
	@touch $@

.PHONY: wheels
wheels: $(DEVELOPING) $(BUILDING) ## Compile for Linux and macOS, x86-64 and ARM, and check the wheels in dist/
	@$(RUN) scripts/wheels.py

# actionlint is published for Go only: where there is neither, the schema of workflows has to do.
ACTIONLINT := $(or $(shell command -v actionlint), \
	$(if $(shell command -v go),go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12))
LINTS := lint-python lint-types lint-layers lint-c lint-workflows

.PHONY: lint
lint: $(LINTS) ## Check style, types, layers and workflows

.PHONY: $(LINTS)
$(LINTS): install $(DEVELOPING)

lint-python:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

lint-types:
	@$(BIN)/mypy

lint-layers:
	@PYTHONPATH=plugins $(BIN)/lint-imports

lint-c:
	@$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	@printf '%s\n' $(filter %.c,$(C_FILES)) | xargs -I FILE -P "$$(nproc)" \
		$(BIN)/clang-tidy --quiet FILE -- -std=c11 -I$(NATIVE) -Iplugins/mondrian_ops/cut/native -Iplugins/mondrian_ops/series/intersection/native -Iplugins/mondrian_ops/verify/native '-DMO_SOURCES=""' 2>/dev/null
	@$(RUN) -m mondrian_ops.native.build --strict

lint-workflows:
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yaml
	@$(if $(ACTIONLINT),$(ACTIONLINT) -shellcheck $(BIN)/shellcheck,echo "actionlint: needs Go; skipped")

.PHONY: docs
docs: install ## Write the tables of docs/job.md and docs/job.schema.json from the options in job/
	@$(RUN) scripts/job_docs.py

.PHONY: compose-up
compose-up: ## Start docker-compose.yaml: Airflow, Celery, Spark and HDFS
	@docker compose up --build --detach --wait
	@scripts/compose_where.sh airflow-api-server

.PHONY: compose-laptop
compose-laptop: ## Start of docker-compose.yaml only Airflow and the local engine
	@docker compose up --build --detach --wait laptop
	@scripts/compose_where.sh laptop

.PHONY: compose-demo
compose-demo: compose-up ## Run the demo on HDFS there, with both engines
	@docker compose run --rm demo

.PHONY: compose-test
compose-test: ## Start it anew under another name, run the demo, remove it all
	@scripts/compose_test.sh

.PHONY: compose-down
compose-down: ## Stop it; what it stores stays
	@docker compose --profile '*' down

.PHONY: requirements
requirements: ## Pin the requirements anew (needs uv)
	@UV_CUSTOM_COMPILE_COMMAND="make requirements" uv pip compile --quiet --universal \
		--python-version 3.11 --all-extras --upgrade pyproject.toml -o requirements.txt
	@UV_CUSTOM_COMPILE_COMMAND="make requirements" uv pip compile --quiet --universal \
		--python-version 3.11 --group dev --upgrade -c requirements.txt -o requirements-dev.txt

.PHONY: clean
clean: ## Remove .venv, .airflow, what the demo made, and caches; your own data stays
	rm -rf $(VENV) .airflow data/poker.parquet data/etl_example out/poker build dist
	rm -f $(NATIVE)/kernels-*.so
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
