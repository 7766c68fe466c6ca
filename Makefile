PYTHON ?= python3
export PYTHONDONTWRITEBYTECODE :=  # the tests start hundreds of processes, which would compile everything anew
BIN := .venv/bin
UV := .venv/uv/bin/uv
LOCK := .ci/requirements.txt
CODE := generator runtime examples tests bench
QUICK_TESTS := tests/architecture tests/compile tests/targets tests/runtime/schema
CHECKS := lint-ruff lint-mypy lint-pyright lint-generated lint-docs

# The files with tests of this mark: each process of a run imports all files that the run is given, before it deselects.
# tests/conftest.py refuses a mark that is not found like this.
LONG_TESTS = $(sort $(shell grep -rlE '\b(mark\.long|amounts\.sample|amounts\.mark_long)\b' tests --include='test_*.py'))

# Seconds for a test to hang, where tests may take minutes.
PATIENT := -o faulthandler_timeout=600

PYTHONS := 3.11 3.12 3.13 3.14

.PHONY: demo test check ratchets bench pythons newest lowest lock version lint $(CHECKS) collect long verify torture corpus subsumption payloads conformance openapi moved \
	docs site generate clean

# What users install, without the developers' tools.
demo: .venv/uv/ready
	$(PYTHON) -m venv .venv/demo
	$(UV) pip install --quiet --python .venv/demo --constraints $(LOCK) --build-constraint $(LOCK) --reinstall-package stubwright \
		--reinstall-package stubwright-runtime ./runtime .
	.venv/demo/bin/stubwright generate
	@echo
	PYTHONPATH=generated:examples .venv/demo/bin/python examples/weather_demo.py

# With MANY=1 it runs the long tests too, and takes many cases where it takes a sample otherwise; with SEED, seeds are fixed.
test: .venv/ready
	@$(MAKE) --no-print-directory --jobs 2 collect $(CHECKS) $(if $(MANY),,TYPED_TESTS=)
	$(if $(MANY),STUBWRIGHT_WHOLE_CORPUS=many STUBWRIGHT_WHOLE_DIFF=many STUBWRIGHT_WHOLE_PAYLOADS=many) \
		$(BIN)/pytest -n 6 --dist worksteal $(if $(MANY),-m "" $(PATIENT)) $(if $(SEED),--hypothesis-seed=$(SEED))

# What to run while you work: ruff, mypy with its cache, the ratchets, and rooms whose tests start hardly any processes.
check: .venv/ready
	@$(MAKE) --no-print-directory --jobs 2 lint-ruff lint-mypy
	$(BIN)/pytest -n 2 --dist worksteal -m "not (long or corpus or payloads)" $(QUICK_TESTS)

# Attacks on real servers, long random walks, installations and browsers, of which `make test` runs none; some minutes.
long: .venv/ready
	$(BIN)/pytest -n 3 --dist worksteal -m long $(PATIENT) $(LONG_TESTS)

# What CI runs beside `.ci/run`: the long tests as well, and many cases where `make test` takes a sample; `make corpus` and
# `make payloads` take all.
verify:
	@$(MAKE) --no-print-directory test MANY=1 SEED=0

# The table in docs/overview.md: generated servers beside the SDK's bare one. Minutes, on a machine that does nothing else.
bench: .venv/ready
	$(BIN)/python bench/direct.py

# The attacks that docs/security.md has figures of, and a soak, against real servers; minutes. `make long` takes a sample.
torture: .venv/ready
	$(BIN)/python bench/torture/run.py

# All tests with each Python that is here, in an environment of its own; says which are missing.
pythons:
	@for version in $(PYTHONS); do \
		if ! python$$version -c '' 2>/dev/null; then echo "python$$version: missing"; continue; fi; \
		echo "python$$version:"; \
		python$$version -m venv .venv/pythons/$$version && \
		$(call sync,.venv/pythons/$$version) && \
		.venv/pythons/$$version/bin/pytest -n 3 --dist worksteal $(TESTS) || exit 1; \
	done

# All tests with the newest versions of what others release, and with the lowest that we say we work with. The rest is locked.
newest: .venv/uv/ready
	$(PYTHON) -m venv --clear .venv/newest
	$(UV) pip install --quiet --python .venv/newest --refresh --group dev -e ./runtime -e .
	.venv/newest/bin/pytest -n 3 --dist worksteal $(TESTS)

# docs/ci.md says how many distributions the locked versions are.
COUNTED := tests/project/test_wheels.py::test_docs_ci_counts_what_is_installed

lowest: .venv/uv/ready
	$(PYTHON) -m venv --clear .venv/lowest
	$(UV) pip compile --quiet --resolution lowest-direct --no-emit-package stubwright-runtime pyproject.toml runtime/pyproject.toml \
		--all-extras --output-file .venv/lowest/requirements.txt
	$(UV) pip install --quiet --python .venv/lowest --constraints .venv/lowest/requirements.txt --group dev -e ./runtime -e .
	.venv/lowest/bin/pytest -n 3 --dist worksteal --deselect $(COUNTED) $(TESTS)

# Locks the developers' environment anew. With PACKAGE=name only that package moves.
lock: .venv/uv/ready
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --group dev \
		--no-emit-package stubwright-runtime $(if $(PACKAGE),--upgrade-package $(PACKAGE),--upgrade) \
		--custom-compile-command "make lock" --output-file $(LOCK) pyproject.toml
	echo uv | $(call compile_alone,.ci/uv.txt)
	echo zensical | $(call compile_alone,.ci/site.txt)

# Locks what stands in an environment of its own.
compile_alone = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --upgrade \
	--custom-compile-command "make lock" --output-file $(1) -

# Sets the version of both distributions, as in VERSION=0.3.0, and what repeats it: the requirement of the runtime and the lock.
version: .venv/ready
	@test -n "$(VERSION)" || { echo "which version? make version VERSION=0.3.0" >&2; exit 1; }
	$(BIN)/python -m hatchling version "$(VERSION)"
	sed -i.bak 's/"stubwright-runtime==[^"]*"/"stubwright-runtime==$(VERSION)"/' pyproject.toml && rm pyproject.toml.bak
	$(MAKE) --no-print-directory generate

# All tools of public servers, all documents of APIs, all official cases and more random ones, of which `make test` takes
# a sample; minutes.
corpus: .venv/ready
	STUBWRIGHT_WHOLE_CORPUS=1 $(BIN)/pytest -n 2 $(PATIENT) -m corpus

# Ten thousands of random schemas and edits, of which `make test` takes some hundreds.
subsumption: .venv/ready
	STUBWRIGHT_WHOLE_DIFF=1 $(BIN)/pytest -n 2 $(PATIENT) tests/diff/test_subsumption.py tests/diff/test_witnesses.py tests/diff/test_diff_orders.py

# Every hostile text at every place of a manifest, of which `make test` takes a quarter of the texts, and each place.
payloads: .venv/ready
	STUBWRIGHT_WHOLE_PAYLOADS=1 $(BIN)/pytest -n 2 $(PATIENT) -m payloads

# The official conformance suite, against the server of specs/everything/ and against clients; needs npx.
conformance: .venv/ready
	$(BIN)/pytest -n 2 $(PATIENT) tests/peers/test_conformance.py tests/peers/test_conformance_client.py

# Prism, a mock that others wrote, judges the requests of imported APIs; a row of each document. Needs npx and the corpus.
openapi: .venv/ready
	STUBWRIGHT_WHOLE_OPENAPI=1 $(BIN)/pytest -n 2 $(PATIENT) -rP -m "" tests/peers/test_prism.py

# The table in docs/importing.md: public servers, before and after `new --from python`. Needs a package index.
moved: .venv/ready
	$(BIN)/pytest -n 2 $(PATIENT) -rP -m long tests/peers/test_moved_servers.py

# Writes the bytecode of all tests and of what they import; without it, each process of a run compiles everything at the same time.
collect: .venv/ready
	@$(BIN)/pytest --collect-only -qq -m "" >.venv/collected || { cat .venv/collected; exit 1; }

# Writes the tables of numbers that may only fall, where their sums have not risen.
ratchets: .venv/ready
	$(BIN)/python tests/support/ratchets.py

lint: .venv/ready
	@$(MAKE) --no-print-directory --jobs 2 $(CHECKS)

lint-ruff:
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff check --isolated generated
	$(BIN)/ruff format --check --quiet $(CODE)

# `make test` leaves out the types of the tests, which `make check` and `make verify` include.
TYPED_TESTS := tests

lint-mypy:
	$(BIN)/mypy generator/stubwright runtime/stubwright_runtime examples $(TYPED_TESTS) generated/weather_mcp generated/helpdesk_mcp \
		generated/database_mcp generated/shop_mcp generated/everything_mcp

# All of our code in `make verify`; mypy checks the same, so that `make test` shows two generated packages to pyright.
lint-pyright:
	$(BIN)/pyright $(if $(MANY),runtime generated examples,generated/weather_mcp generated/helpdesk_mcp)

lint-generated:
	$(BIN)/stubwright generate --check

lint-docs:
	$(BIN)/python docs/reference.py --check
	$(BIN)/python tests/support/evidence.py

docs: .venv/ready
	$(BIN)/python docs/reference.py

# The website of README.md, docs/ and the pages of the examples, in build/site/; a broken link fails.
site: .venv/ready .venv/site/ready
	$(BIN)/python docs/website.py .venv/site/bin/zensical

generate: .venv/ready
	$(BIN)/stubwright generate

clean:
	rm -rf .venv build

# Installs what is locked, and nothing else, in an environment; the two distributions of this checkout as they are here.
sync = $(UV) pip sync --quiet --python $(1) --require-hashes $(LOCK) && \
	$(UV) pip install --quiet --python $(1) --no-deps --build-constraint $(LOCK) -e ./runtime -e .

.venv/ready: .venv/uv/ready $(LOCK) pyproject.toml runtime/pyproject.toml generator/stubwright/__init__.py
	$(PYTHON) -m venv .venv
	$(call sync,.venv)
	@touch $@

.venv/site/ready: .venv/uv/ready .ci/site.txt
	$(PYTHON) -m venv .venv/site
	$(UV) pip sync --quiet --python .venv/site --require-hashes .ci/site.txt
	@touch $@

.venv/uv/ready: .ci/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stubwright needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.txt
	@touch $@
