# make run        everything for a first look: environment, database, demo, web server and worker
# make check      checks and the tests that need neither a database nor a browser: the fast loop
# make test       every check and every test
# make wheel      dist/webverdict-...whl, the package that runs anywhere: webverdict; and webverdict_verify-...whl, which
#                 checks bundles with nothing but Python: webverdict-verify
# make sbom       dist/webverdict-sbom.json, the packages of requirements.txt (CycloneDX)
# make audit      look the pinned packages up in a database of known vulnerabilities; needs the internet
# make image      the image for two architectures with labels and SBOM: built, and pushed to IMAGE
# make test-long  as `make test`, with all examples of the property tests, parity, and every test also on PostgreSQL
# README.md says the rest.

PORT ?= 8000
PY := .venv/bin/python
export PYTHON

.PHONY: run check test test-long bench demo-data requirements wheel verify-wheel sbom audit image clean
.DEFAULT_GOAL := run

run:
	@config/install.sh run
	@exec $(PY) -m config.embedded --port $(PORT) --with-parent

check:
	@config/install.sh test
	@exec $(PY) -m tools.checks --quick

test:
	@config/install.sh test
	@exec $(PY) -m tools.checks

test-long:
	@config/install.sh test
	@exec $(PY) -m tools.checks --long

# Measures queries, times and memory, the desk in a browser and what it shows of known faults, coefficients over a
# million labels, how often intervals hold the rate, the pages of results, network traces, rows of Multimodal-Mind2Web,
# evidence bundles, judge runs against a fake endpoint, uploads over a connection that breaks; prints tables.
bench:
	@config/install.sh test
	@$(PY) manage.py bench
	@$(PY) -m bench.desk
	@$(PY) -m bench.challenge
	@$(PY) -m bench.statistics
	@$(PY) -m bench.coverage --small
	@$(PY) -m bench.acceptance --draws 200
	@$(PY) -m bench.results
	@$(PY) -m bench.pages
	@$(PY) -m bench.registry
	@$(PY) -m bench.har
	@$(PY) -m bench.rows
	@$(PY) -m bench.upload --size 300MB --cut 2
	@$(PY) -m bench.evidence
	@exec $(PY) -m bench.judge

# Drives the demo shop in Chromium again and rewrites the recordings.
demo-data:
	@config/install.sh test
	@exec $(PY) -m tools.demo.record

wheel: verify-wheel
	@config/install.sh test
	@exec $(PY) -m hatchling build -t wheel

verify-wheel:
	@config/install.sh test
	@cd verify && exec ../$(PY) -m hatchling build -t wheel -d ../dist

sbom:
	@config/install.sh test
	@mkdir -p dist
	@exec env PYTHONWARNINGS=ignore $(PY) -m cyclonedx_py requirements requirements.txt --pyproject pyproject.toml \
		--output-reproducible --output-file dist/webverdict-sbom.json

audit:
	@config/install.sh test
	@exec $(PY) -m tools.dependency_audit

PLATFORMS ?= linux/amd64,linux/arm64
image:
	@test -n "$(IMAGE)" || { echo 'Set IMAGE, such as: make image IMAGE=registry.example.org/webverdict:0.1.0' >&2; exit 2; }
	docker buildx build --platform $(PLATFORMS) --sbom=true --provenance=mode=max --pull --push --tag "$(IMAGE)" \
		--build-arg VERSION="$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)" \
		--build-arg REVISION="$$(git rev-parse HEAD 2> /dev/null)" .

COMPILE_ALONE := uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-annotate \
	--custom-compile-command "make requirements"
COMPILE := $(COMPILE_ALONE) pyproject.toml --extra server --extra s3 --extra parquet --extra pdf --extra figures --extra sentry

requirements:
	$(COMPILE) -o requirements.txt
	$(COMPILE) --extra dev -c requirements.txt -o requirements-dev.txt
	$(PY) -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["webarena"], sep="\n")' \
		| $(COMPILE_ALONE) - -o requirements-webarena.txt

# The environment and what the checks leave behind; var/ holds your data and stays.
clean:
	rm -rf .venv .venv-webarena .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .cache
