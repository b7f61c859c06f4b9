# Two commands matter: `make demo` and `make test`. Everything they need is set up by themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Hundreds of short processes read the same modules: what one has compiled the next need not.
export PYTHONDONTWRITEBYTECODE :=
STAMP := $(VENV)/.installed-$(shell cat requirements-dev.txt pyproject.toml 2>/dev/null | cksum | cut -d' ' -f1)

.PHONY: help
help: ## Say what can be done here
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements-dev.txt pyproject.toml
	@.ci/venv $(PYTHON) $(VENV) $@

.PHONY: setup
setup: $(STAMP) ## Install the Python packages and build the twin's tools, once
	@exec $(BIN)/python -m local setup

.PHONY: demo
demo: $(STAMP) ## A broker's node dies under a live producer; writes out/demo/
	@exec $(BIN)/python -m local demo

.PHONY: recording
recording: $(STAMP) ## Run the demo's story and keep what it printed as the README's picture
	@$(BIN)/python -m local demo
	@cp out/demo/narration.svg docs/images/demo.svg

# The product's own unit tests, those of the twin alone, and what puts decisions and programs to every
# case within bounds, which takes a processor's minutes.
# A file stays with one worker, and so do its fixtures; who is done first takes half of what is left.
UNIT := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
TWIN := tests/unit/local
CASES := tests/unit/explorer tests/unit/stacks
PRODUCT := tests/unit $(addprefix --ignore=,$(TWIN) $(CASES))

.PHONY: test-tools
test-tools: export STILLWATER_BUILD = now
test-tools: $(STAMP) ## Build or fetch whatever `make test` needs, once
	@exec $(BIN)/python -m tests.tools

# Two workers: two twins on two cores.
INTEGRATION := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder tests/integration

.PHONY: test
test: export STILLWATER_BUILD = never
test: test-tools ## Unit tests, then integration tests on two twins, and every case beside them
	@$(UNIT) $(PRODUCT)
	@$(UNIT) $(TWIN)
	@# Twins wait for Kafka and for hooks, and leave a third of two processors to others.
	@mkdir -p out; nice -n 19 $(BIN)/python -m pytest $(CASES) >out/cases.log 2>&1 & cases=$$!; \
	ended=0; $(INTEGRATION) -m "not long and not lint" || $(BIN)/python -m tests.alone || ended=$$?; \
	wait $$cases || ended=$$?; tail -n 60 out/cases.log; exit $$ended

.PHONY: test-long
test-long: $(STAMP) ## The integration tests that take minutes; builds what they alone need
	@STILLWATER_BUILD=now $(BIN)/python -m tests.tools --long
	@export STILLWATER_BUILD=never; $(INTEGRATION) -m long || $(BIN)/python -m tests.alone
	@STILLWATER_EFFORT=20 $(UNIT) --hypothesis-profile many tests/unit/test_event_fuzz.py tests/unit/explorer tests/unit/handlers tests/unit/core/availability tests/unit/core/rotation tests/unit/stacks/test_aws_gate.py

.PHONY: test-long-slice
test-long-slice: $(STAMP) ## Today's share of them, some 12 minutes (DAY=2: slice 2; KEEP=1 keeps the seconds)
	@STILLWATER_BUILD=now $(BIN)/python -m tests.tools --long
	@export STILLWATER_BUILD=never; $(INTEGRATION) -p tests.slices -m long || $(BIN)/python -m tests.alone

.PHONY: test-components
test-components: $(STAMP) ## The components from programs in YAML, Go and TypeScript (npm's packages are fetched)
	@STILLWATER_BUILD=now $(BIN)/python -m tests.tools pulumi-language-yaml
	@$(BIN)/python -m pytest tests/components

.PHONY: unit
unit: $(STAMP) ## Unit tests of the product: no sockets
	@$(UNIT) $(PRODUCT)

.PHONY: cases
cases: $(STAMP) ## The explorer's histories, and every variant of the programs before AWS's refusals
	@$(UNIT) $(CASES)

.PHONY: twin-unit
twin-unit: $(STAMP) ## Unit tests of the twin: no sockets
	@$(UNIT) $(TWIN)

.PHONY: check
check: $(STAMP) ## Format, lint, types, import contracts, dead code, prose, the site, what linters say of infra/
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/vulture
	@$(BIN)/zizmor --offline --quiet . cli/project/templates/*workflow.yaml
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/python -m tests.house
	@$(BIN)/python -m tests.prose
	@$(BIN)/python -m tests.tools helm kube-score
	@$(INTEGRATION) -m "lint and not long"

.PHONY: format
format: $(STAMP) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: pictures
pictures: $(STAMP) ## Draw the diagrams of docs/images/ and, with Chromium, photograph a survey
	@$(BIN)/python -m tests.pictures

.PHONY: docs
docs: $(STAMP) ## Regenerate docs/reference/ from the code
	@$(BIN)/python -m reference

.PHONY: site
site: $(STAMP) ## Build docs/ as a site with search into out/site/VERSION/; a broken link fails it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python .ci/site.py out/site

.PHONY: spec
spec: $(STAMP) ## Check the specification of incidents, lease and hooks with Alloy (Java, Maven)
	@$(BIN)/python -m tests.spec.check

BENCHES := $(patsubst bench/%.py,%,$(filter-out bench/__init__.py bench/record.py,$(wildcard bench/*.py)))
.PHONY: bench
bench: $(addprefix bench-,$(BENCHES)) ## Measure beside the kept figures (one alone: make bench-NAME; KEEP=1 keeps)

bench-%: setup
	@$(BIN)/python -m bench.$*

.PHONY: lock
lock: $(STAMP) ## Resolve requirements*.txt again, with hashes and without addresses
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.txt
	@$(BIN)/uv pip compile pyproject.toml --extra gate --constraint requirements.txt --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-gate.txt
	@$(BIN)/uv pip compile pyproject.toml local/pyproject.toml --extra dev --extra report --extra gate --constraint requirements.txt --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-dev.txt
	@printf 'numpy\npandas\npyarrow\n' | $(BIN)/uv pip compile - --constraint requirements-dev.txt --python-version 3.11 --python-platform aarch64-manylinux_2_28 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file infra/analytics/emr-requirements.txt
	@$(BIN)/uv pip compile --group pyproject.toml:checkov --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-checkov.txt

.PHONY: release
release: $(STAMP) ## Build what is published, and check it in an empty environment
	@.ci/release $(BIN)/python

.PHONY: clean
clean: ## Remove what was made here (the per-user cache of built tools stays)
	@rm -rf out build *.egg-info .mypy_cache .ruff_cache .hypothesis
