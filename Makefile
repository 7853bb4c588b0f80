# The verbs of this repository. Everything runs inside .venv, which `setup` makes and keeps in step with the lock.
.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo rehearse up test test-containers soak audit check lint types layers definitions docs derived screenshots coverage format lock sbom release clean

PYTHON ?= python3
BIN := .venv/bin
TEST_DIR := sda_platform_tests

help:  ## what can be done
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup:  ## environment, Java and Spark's jars; quick when there is nothing to do
	@$(PYTHON) setup/bootstrap.py

setup-test: setup  ## also a browser and a Postgres server, which tests use
	@$(PYTHON) setup/bootstrap.py --tests

demo: setup  ## a day of real orbits, from frames to alerts; ONCE=1 exits when they are delivered
	@$(BIN)/sda demo $(if $(ONCE),--once)

rehearse: setup  ## what this release computes differently from the one that made the newest backup in BACKUPS; SINCE=2026-05-01 or all instead of yesterday
	@test -d "$(BACKUPS)" || { echo "make rehearse needs BACKUPS=DIRECTORY, where backups are" >&2; exit 2; }
	@rm -rf build/rehearsal
	@unset SDA_HOME SDA_LAKE SDA_LANDING SDA_SUBSCRIBER; set -e; \
	    $(BIN)/sda --home build/rehearsal restore "$(BACKUPS)"; \
	    $(BIN)/sda --home build/rehearsal lake replay all --since $(or $(SINCE),yesterday) || \
	        { echo "what was restored stays in build/rehearsal" >&2; exit 1; }; \
	    rm -rf build/rehearsal

up: setup  ## the platform without demo data
	@$(BIN)/sda up

test: setup-test  ## every test, first those without a JVM, then Spark beside processes; TESTS=path or ARGS='-m unit' narrow it
ifeq ($(TESTS)$(ARGS),)
	@$(BIN)/python -m pytest $(TEST_DIR)/unit --numprocesses auto --maxprocesses 8 --dist worksteal
	@$(BIN)/python -m pytest $(TEST_DIR)/pipeline $(TEST_DIR)/system --numprocesses 2 --dist loadfile
else
	@$(BIN)/python -m pytest $(TESTS) $(ARGS)
endif

test-containers: setup-test  ## compose.yaml, the pod of Kubernetes and two sites as containers, with images made of Debian's packages; skipped where dockerd cannot run
	@$(BIN)/python -m pytest $(TEST_DIR)/containers $(ARGS)

soak: setup  ## the fault campaign, for hours; SAMPLE=1 a sample, ARGS='--seed 7 --point NAME' one case; YEAR=1 a year of operation; RACE=5000 commits of racing writers; MODELS=1 the models of protocols; S3=1 in an object store; SERVICES=1 separate services and a cluster; T3=1 a real etcd cluster; STATION=1 histories of replicated station state; STORY=1 an hour of the demo; ATTACK=1 a hostile partner; UPGRADE=REVISION from that one and back, over a live lake; FUZZ=1 inputs for every decoder; UNITS=1 the unit tests with all cases and many more examples; CASES=1 the other tests with all cases; MUTANTS=1 changes of the code that tests must find
ifdef RACE
	@SOAK=1 RACE_COMMITS=$(RACE) $(BIN)/python -m pytest $(TEST_DIR)/system/test_racing_writers.py $(TEST_DIR)/system/test_object_store.py -k "race or writers"
else ifdef ATTACK
	@ATTACK=1 $(BIN)/python -m pytest $(TEST_DIR)/system/test_hostile_partner.py
else ifdef UPGRADE
	@$(BIN)/python -m sda_platform_tests.campaign.upgrade $(UPGRADE) $(ARGS)
else ifdef UNITS
	@SOAK=1 $(BIN)/python -m pytest $(TEST_DIR)/unit --numprocesses auto --hypothesis-profile soak --timeout 7200
else ifdef CASES
	@SOAK=1 $(BIN)/python -m pytest $(TEST_DIR)/pipeline $(TEST_DIR)/system --numprocesses 2 --dist loadfile --timeout 7200
else ifdef SERVICES
	@SERVICES=1 $(BIN)/python -m pytest $(TEST_DIR)/system/test_separate_services.py $(TEST_DIR)/system/test_spark_cluster.py
else
	@$(BIN)/python -m sda_platform_tests.campaign$(if $(FUZZ),.fuzz,$(if $(MUTANTS),.mutants,$(if $(YEAR),.year,$(if $(STORY),.story,$(if $(T3),.tier3,$(if $(STATION),.station_state,$(if $(S3),.in_object_store)$(if $(MODELS), --tier models)$(if $(SAMPLE), --sample))))))) $(ARGS)
endif

audit: setup  ## time, profile and count the allocations of the collector; writes build/performance-audit.md
	@$(BIN)/python benchmarks/audit.py $(ARGS)

check: lint types layers definitions  ## lint, format, types, layers, definitions

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

definitions: setup
	VIRTUAL_ENV=$(CURDIR)/.venv DAGSTER_DISABLE_TELEMETRY=yes $(BIN)/dg check defs

docs: setup  ## the reference pages, and the documentation as a site in build/site; warnings are errors
	@PYTHONPATH=. $(BIN)/python docs/site/reference.py
	@PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

derived: setup-test  ## after a change of tables or assets: what the repository derives of them (the asset graph of the tests, the reference pages)
	@$(BIN)/python -m $(TEST_DIR).unit.test_definitions
	@PYTHONPATH=. $(BIN)/python docs/site/reference.py

screenshots: setup-test  ## the pictures in docs/images, from a demo of its own
	@$(BIN)/python -m sda_platform_tests.support.screenshots

coverage: setup-test  ## the unit tests, with the share of lines that they run
	@$(BIN)/python -m pytest $(TEST_DIR)/unit --numprocesses auto --maxprocesses 8 --cov sda_platform --cov-report term:skip-covered

format: setup  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup  ## resolve pyproject.toml anew into requirements.lock
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --upgrade --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --output-file requirements.lock

sbom: setup  ## the software bill of materials of the lock (CycloneDX) in build/sbom.cdx.json
	@mkdir -p build
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock \
	    --pyproject pyproject.toml --output-reproducible --output-file build/sbom.cdx.json
	@echo "build/sbom.cdx.json"

release: sbom  ## what a release has, in dist: packages built from the lock, the bill of materials, checksums
	@rm -rf dist
	@$(BIN)/uv build --quiet --no-create-gitignore --build-constraint requirements.lock --require-hashes --out-dir dist
	@cp build/sbom.cdx.json dist/
	@cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

clean:  ## caches and build products; the environment and var/ stay
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
