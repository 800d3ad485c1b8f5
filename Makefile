# Two commands do everything: `make demo` runs Lace, `make test` passes its tests.
# Both need Go and a Linux kernel, nothing else; BPF objects are committed.

GO      ?= go
T       ?= 10s
TOOL    := $(GO) tool -modfile=tools.mod
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
SUDO    := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
DEMO    ?=

# The real control plane for tests; the version is that of k8s.io/kubernetes in
# bench/cluster/binaries/go.mod.
KUBERNETES := v1.37.2
CLUSTER    := .cache/cluster/$(KUBERNETES)
CLUSTER_LD := -s -w $(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,-X $(p).gitVersion=$(KUBERNETES) -X $(p).gitMajor=1 -X $(p).gitMinor=37 -X $(p).gitTreeState=clean)

BENCH   ?=
LATENCY ?=

# What make conformance runs, and what carries the packets meanwhile: lace or kube-proxy.
FOCUS   ?= \[sig-network\]
CARRIER ?= lace

.PHONY: help build demo test bench bench-full bench-smoke bench-record bench-table latency latency-record fuzz lint verify generate cluster-binaries e2e conformance conformance-binaries conformance-record conformance-page clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

build: ## Build every command into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

demo: ## Run Lace on this machine: real packets as root or with sudo, else simulated (DEMO="--once --plain" to run unattended, DEMO=--stay in the background, DEMO=--sim to simulate)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/lace ./cmd/lace
	@if [ -z "$(SUDO)" ] || [ "$(DEMO)" = --sim ]; then bin/lace demo $(DEMO); \
	elif sudo -n true 2>/dev/null || sudo -v -p 'password for real packets (without it the demo is simulated): '; then sudo bin/lace demo $(DEMO); \
	else echo "no root, so the demo is simulated"; bin/lace demo $(DEMO); fi

test: ## Run all tests, ten minutes and more; those that need privileges run when the process has them
	$(GO) build -o bin/testreport ./bench/testreport
	bin/testreport ./...

bench: bin/lace-bench ## Measure Lace beside kube-proxy's rules, a quarter of an hour (BENCH="--loads rtt" narrows it)
	$(SUDO) bin/lace-bench --kind bench --json bin/bench.json $(BENCH)

bench-full: bin/lace-bench ## Measure everything with everything: hours
	$(SUDO) bin/lace-bench --kind full --json bin/bench-full.json $(BENCH)

bench-smoke: bin/lace-bench ## Does the bench run? Its figures mean nothing
	$(SUDO) bin/lace-bench --kind smoke --json bin/bench-smoke.json $(BENCH)

bench-record: bin/lace-bench ## Measure, keep the run in bench/recorded, and put its figures into the README
	$(SUDO) bin/lace-bench --kind bench --json bench/recorded/bench.json $(BENCH)
	$(MAKE) bench-table

bench-table: bin/lace-bench ## Put the figures of the run in bench/recorded into the README
	bin/lace-bench --from bench/recorded/bench.json --insert README.md

.PHONY: bin/lace-bench
bin/lace-bench:
	$(GO) build -trimpath -ldflags '-X lace-cni.io/lace/bench/suite/record.Revision=$(VERSION)' -o $@ ./bench/suite

latency: build cluster-binaries bin/lace-latency ## Measure changes of endpoints, cold starts and memory beside kube-proxy on a real API server, as root, ten minutes (LATENCY="--services 1000" narrows it)
	$(SUDO) bin/lace-latency --json bin/latency.json $(LATENCY)

latency-record: build cluster-binaries bin/lace-latency ## The same, and keep the run in bench/recorded: on a quiet machine
	$(SUDO) bin/lace-latency --json bench/recorded/latency.json $(LATENCY)

.PHONY: bin/lace-latency
bin/lace-latency:
	$(GO) build -trimpath -ldflags '-X lace-cni.io/lace/bench/suite/record.Revision=$(VERSION)' -o $@ ./bench/cluster/latency

fuzz: ## Fuzz every parser for T each (T=30s), and compare a million new packets with the rules of Services
	$(GO) run ./bench/testreport --fuzz $(T) ./...
	$(GO) test -count=1 -timeout 60m ./bench/oracle -run TestAnyCluster -cases 1000000 -seed $$(date +%s)

lint: ## Formatting, go vet and staticcheck
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "not formatted, run gofmt -w on:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags cluster ./bench/cluster/...
	$(TOOL) staticcheck ./...

generate: ## Rebuild generated files; needs clang, llvm-strip and the libbpf headers
	$(GO) generate ./...

verify: ## Fail when generated files, modules or documents are out of date
	.ci/verify

cluster-binaries: $(CLUSTER)/controlplane $(CLUSTER)/node ## Build etcd, kube-apiserver, kube-controller-manager and kube-proxy for tests, once

$(CLUSTER)/%: bench/cluster/binaries/%/main.go bench/cluster/binaries/go.mod
	@mkdir -p $(@D)
	cd bench/cluster/binaries && CGO_ENABLED=0 $(GO) build -ldflags '$(CLUSTER_LD)' -o $(CURDIR)/$@ ./$*

e2e: cluster-binaries ## Run the tests that need a real Kubernetes control plane, and the behaviour tests through one, as root
	LACE_REQUIRE_CLUSTER=1 LACE_REQUIRE_PRIVILEGED=1 GOFLAGS="$$($(GO) env GOFLAGS) -tags=cluster" $(GO) run ./bench/testreport ./bench/cluster/...
	LACE_REQUIRE_CLUSTER=1 LACE_REQUIRE_PRIVILEGED=1 $(GO) run ./bench/testreport ./bench/e2e -source api

conformance-binaries: bin/conformance-report ## Build Kubernetes, containerd and the tests for make conformance, once
	bench/conformance/build.sh

conformance: build conformance-binaries ## Run Kubernetes' own tests of its network on real nodes that Lace serves, as root, half an hour (FOCUS="Services should" narrows it)
	$(SUDO) env CARRIER='$(CARRIER)' FOCUS='$(FOCUS)' bench/conformance/run.sh

conformance-record: build conformance-binaries ## The same, keep the run in bench/recorded, and put it into its page
	$(SUDO) env CARRIER='$(CARRIER)' FOCUS='$(FOCUS)' bench/conformance/run.sh --record $(CURDIR)/bench/recorded/conformance.json
	$(MAKE) conformance-page

conformance-page: bin/conformance-report ## Put the run in bench/recorded into docs/reference/conformance.md
	bin/conformance-report --from bench/recorded/conformance.json --insert docs/reference/conformance.md

.PHONY: bin/conformance-report
bin/conformance-report:
	$(GO) build -trimpath -o $@ ./bench/conformance/report

clean: ## Remove what was built
	rm -rf bin
