# Tidemark. `make` alone prints what there is.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

GO      ?= go
PKG     ?= ./...
RUN     ?= .
TIMEOUT ?= 20m
SEEDS   ?= 100
FUZZTIME ?= 30s
SCALE   ?= full
TOOL    := $(GO) tool -modfile=tools/go.mod

# SQLite is C in Go's words, and one goroutine at a time runs a connection: watching its every load
# makes it several times slower and finds nothing of ours. Only that package, which has nothing
# generic: an instance of a type that two packages share is linked from one of them.
RACE    := -race -gcflags=modernc.org/sqlite/lib=-race=false

# The race detector needs cgo; a machine may have it switched off.
test race: export CGO_ENABLED = 1

##@ Everyday

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/tidemark
	$(GO) build -trimpath -o bin/ ./cmd/tidemark

.PHONY: deps
deps: ## Install what the tests need and this machine lacks
	@scripts/deps

.PHONY: test
test: deps ## Install what is missing, vet, run every test with the race detector, beside private servers
	$(GO) vet ./...
	$(GO) run ./scripts/services run -- env -u TIDEMARK_TRACE $(GO) test $(RACE) -timeout $(TIMEOUT) ./...
	$(GO) run ./scripts/services --only postgres,mysql run -- $(GO) test -run '^TestServerLane$$' ./facts # all
	$(GO) test -run 'Share|Increments' ./internal/bench/... # says nothing under the race detector
	$(GO) test -run '^TestSimulatedDevices$$' ./client # more runs than there is time for with it
	$(GO) test -run '^(TestArrivalRaceHistories|TestRandomHistories)$$' ./inbox # likewise
	$(GO) test ./relay/... # likewise, and a client that races with itself
	$(MAKE) web
	@if [ -n "$${TIDEMARK_TRACE:-}" ]; then $(MAKE) recorded; fi

.PHONY: web
web: build ## Build and test the web packages, without a server, against the program and in Chromium
	npm --prefix web ci --no-progress
	npm --prefix web run build
	npm --prefix web run bundle
	$(MAKE) -j2 web-app-hub web-sdk web-react web-app web-hub

.PHONY: web-sdk web-react web-app web-hub web-app-hub
web-sdk web-react web-app: web-%:
	npm --prefix web run test:built -w $*
web-hub:
	TIDEMARK_BINARY=$(CURDIR)/bin/tidemark npm --prefix web run test:hub:built -w sdk
web-app-hub: # leaves screenshots in out/screenshots
	TIDEMARK_BINARY=$(CURDIR)/bin/tidemark npm --prefix web run test:hub:built -w app

.PHONY: recorded
recorded: ## Replay the recorded trace that TIDEMARK_TRACE names, on each database, without the race detector
	$(GO) run ./scripts/services --only postgres,mysql run -- \
	  $(GO) test -count=1 -timeout $(TIMEOUT) -run 'Replay' ./internal/replay ./internal/chaos ./cmd/tidemark

ROUNDS ?= 200
ROUNDS_AT_ONCE ?= 10
CHAOS_RESULTS ?= $(CURDIR)/chaos-rounds.tsv

.PHONY: chaos
chaos: ## Rounds of trouble for a cluster until CHAOS_RESULTS= has ROUNDS= of them; goes on where it ended
	@touch $(CHAOS_RESULTS); \
	while n=$$(wc -l < $(CHAOS_RESULTS)); [ $$n -lt $(ROUNDS) ]; do \
	  echo "chaos: $$n of $(ROUNDS) rounds"; \
	  $(GO) run ./scripts/services --only postgres,mysql run -- env CI=true \
	    TIDEMARK_CHAOS_SEED=$$((n + 1)) TIDEMARK_CHAOS_ROUNDS=$(ROUNDS_AT_ONCE) TIDEMARK_CHAOS_RESULTS=$(CHAOS_RESULTS) \
	    $(GO) test -count=1 -timeout $(TIMEOUT) -run '^TestClusterRounds$$' ./internal/chaos || exit 1; \
	done

.PHONY: race
race: ## Run the tests of PKG= that match RUN= with the race detector, uncached
	$(GO) test $(RACE) -count=1 -timeout $(TIMEOUT) -run '$(RUN)' $(PKG)

.PHONY: lint
lint: ## Run golangci-lint (built from tools/go.mod at first use, which takes minutes)
	$(TOOL) golangci-lint run

.PHONY: generate
generate: ## Write generated files anew
	$(GO) generate ./...

.PHONY: rules
rules: ## Print which requirement and scenario ids no test cites
	@$(GO) run ./internal/tidy/rules

.PHONY: verify
verify: ## Check format, lint, repository rules and generated files
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod verify
	$(GO) mod tidy -diff
	$(GO) test -count=1 ./internal/tidy/...
	@scripts/fresh
	$(MAKE) lint
	$(MAKE) rules

##@ Proof

.PHONY: conformance
conformance: ## Run the language-neutral cases and the scenarios
	$(GO) test -count=1 -timeout $(TIMEOUT) ./readstate/... ./internal/scenario/... ./conformance/... ./internal/conform

.PHONY: sim
sim: ## Run seeded histories against the oracle, SEEDS= of them (default 100)
	TIDEMARK_SEEDS=$(SEEDS) $(GO) test -count=1 -timeout 0 -run 'Property|Sim|Seeded' ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME= (default 30s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: mutate
mutate: ## Break the algebra line by line and check that its tests notice, ONLY= those that match
	$(GO) run ./scripts/mutate -only '$(ONLY)'

.PHONY: bench
bench: deps build ## Measure everything, beside private servers, and write docs/benchmarks.md, SCALE= quick, default or full
	@mkdir -p out
	$(GO) run ./scripts/services --only postgres,redis run -- bash -c 'bin/tidemark bench \
	  --scale $(SCALE) $${TIDEMARK_TEST_POSTGRES:+--against postgres=$$TIDEMARK_TEST_POSTGRES} \
	  $${TIDEMARK_TEST_REDIS:+--against redis=$$TIDEMARK_TEST_REDIS} \
	  --markdown docs/benchmarks.md --json out/benchmarks.json'

.PHONY: microbench
microbench: ## Run the Go benchmarks of PKG=
	$(GO) test -run '^$$' -bench . -benchmem -timeout 0 $(PKG)

.PHONY: soak-wakes
soak-wakes: ## Send 105,000 wakes to a receiver that fails, is late, silent and answers twice; minutes
	TIDEMARK_SOAK=1 $(GO) test -count=1 -timeout 0 -v -run '^(TestDeliveries|TestKilledWorkers)$$' ./outbox

.PHONY: soak-client
soak-client: ## Play 10,000 seeded histories of two clients, a server and an unkind network, SEED= from there; minutes
	TIDEMARK_SEED=$(or $(SEED),0) TIDEMARK_SEEDS=1000 $(GO) test -count=1 -timeout 0 -v -run '^TestSimulatedDevices$$' ./client

.PHONY: soak-relay
soak-relay: ## Play 5,000 seeded histories of three devices on a Nostr relay that fails; half an hour
	TIDEMARK_SOAK=1 $(GO) test -count=1 -timeout 0 -v -run '^TestSimulation$$' ./relay/agent

.PHONY: soak-inbox
soak-inbox: ## Check 10,000 arrival races, and 100,000 operations on both projections against a recount; minutes
	TIDEMARK_SOAK=1 $(GO) test -count=1 -timeout 0 -v \
	  -run '^(TestArrivalRaceHistories|TestRandomHistories|TestSummaryHistories)$$' ./inbox/...

.PHONY: soak
soak: soak-client soak-inbox ## Run the long versions of the crash, race and replay tests; this takes hours
	TIDEMARK_SOAK=1 $(GO) test -count=1 -timeout 0 -v -run '$(RUN)' $(PKG)
