# `make help` lists the targets. Variables: GO, VERSION, TEST_JOBS, TEST_TIMEOUT.

.DEFAULT_GOAL := build
SHELL := /bin/sh

# Looked up at each use: the set-up may have just installed it.
GO ?= $(firstword $(shell command -v go) $(wildcard /usr/local/go/bin/go /usr/lib/go-1.26/bin/go) go)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TEST_JOBS ?= 2
TEST_TIMEOUT ?= 20m

export CGO_ENABLED := 1
# The version comes from git describe; stamping would also ask who owns .git.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

tags   := -tags netgo,osusergo
static := -trimpath $(tags) -ldflags '-s -w -linkmode external -extldflags "-static" -X main.version=$(VERSION)'
child  := internal/childbin/bin/hayward-child

# A distribution for ARCH, of Go's names. For another one than this machine's:
# its cross-compiler, and where pkg-config finds its static libseccomp.
HOST_ARCH := $(shell $(GO) env GOHOSTARCH)
ARCH      ?= $(HOST_ARCH)
triple    := $(patsubst amd64,x86_64,$(patsubst arm64,aarch64,$(ARCH)))-linux-gnu
ifneq ($(ARCH),$(HOST_ARCH))
cross     := CC=$(triple)-gcc PKG_CONFIG_LIBDIR=/usr/lib/$(triple)/pkgconfig
endif
dist      := dist/hayward-$(VERSION)-linux-$(ARCH)
# Of the commit, so that the same commit makes the same bytes.
when      := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: help setup build child run test test-user check bench bench-go load-proof soak lint fmt dist generate clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## check the tools and header packages; as root on Debian, install what is missing
	@GO='$(GO)' sh scripts/setup.sh

build: setup child ## build bin/hayward, one static file with hayward-child inside
	$(GO) build $(static) -o bin/hayward ./cmd/hayward

child: setup
	$(GO) build $(static) -o $(child) ./cmd/hayward-child

run: build ## build, then audit this repository with a plan of parallel subagents
	bin/hayward run plans/audit.toml

test: setup check ## check the sources, then run every test with the race detector
	$(GO) run ./internal/skipcheck -race -timeout $(TEST_TIMEOUT) -p $(TEST_JOBS) ./...

# The end-to-end tests act as an ordinary user themselves when root runs them.
test-user: setup ## run, without the race detector, the tests in which it matters who runs them
	$(GO) run ./internal/skipcheck -timeout $(TEST_TIMEOUT) -p $(TEST_JOBS) ./cmd/... ./client ./plan ./spawner ./child ./sandbox/... ./internal/cgroup ./internal/rundir

check: setup ## check that sources are formatted, vetted and their generated files fresh
	@unformatted=$$($$($(GO) env GOROOT)/bin/gofmt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run \"make fmt\":"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run ./internal/contractgen -check

# ONLY names cases, separated by commas. parallel and bubblewrap (Debian's packages
# of these names) are compared with where they are installed.
bench: build ## measure ratios against floors (ONLY=case,case) and compare them with bench/baseline.json; writes bench.json and bench.md
	$(GO) run ./internal/bench -program bin/hayward -baseline bench/baseline.json -json bench.json -markdown bench.md -only '$(ONLY)'

load-proof: setup ## load 1000 subagents with kills and cancel storms, and hold the ledger against a count of /proc
	HAYWARD_LOAD_PROOF=1 $(GO) test ./internal/e2e -run '^TestLoadThousand$$' -count 1 -v -timeout 40m

SOAK ?= 20000
soak: setup ## run SOAK lifecycles (20000) in one coordinator and check that nothing grows
	HAYWARD_SOAK=$(SOAK) $(GO) test ./internal/e2e -run '^TestSoak$$' -count 1 -v -timeout 180m

bench-go: setup ## run the Go benchmarks of the hot packages
	$(GO) test -run '^$$' -bench . -benchmem ./events ./coordinator ./internal/bus

lint: setup ## vet and staticcheck
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fmt: setup ## format the sources
	$$($(GO) env GOROOT)/bin/gofmt -w .

generate: setup ## regenerate the JSON schemas and docs/contract.md from package events
	$(GO) generate ./...

dist: build ## pack the program for ARCH with completions, man pages, units and the license; the same bytes for the same commit
	rm -rf '$(dist)' && mkdir -p '$(dist)/completions' '$(dist)/man' '$(dist)/deploy'
	GOARCH=$(ARCH) $(cross) $(GO) build $(static) -o '$(dist).child' ./cmd/hayward-child
	printf '{"Replace":{"%s":"%s"}}\n' '$(CURDIR)/$(child)' '$(CURDIR)/$(dist).child' > '$(dist).overlay'
	GOARCH=$(ARCH) $(cross) $(GO) build $(static) -overlay '$(dist).overlay' -o '$(dist)/hayward' ./cmd/hayward
	cp LICENSE README.md CHANGELOG.md '$(dist)/'
	cp deploy/*.service deploy/Containerfile deploy/image.sh deploy/seccomp.json '$(dist)/deploy/'
	for shell in bash zsh fish; do bin/hayward completion $$shell > "$(dist)/completions/hayward.$$shell" || exit 1; done
	SOURCE_DATE_EPOCH=$(when) $(GO) run -tags netgo,osusergo,man ./cmd/hayward man '$(dist)/man'
	tar -C dist --owner=0 --group=0 --numeric-owner --mode=go-w,a+rX --sort=name --mtime=@$(when) -cf - '$(notdir $(dist))' | gzip -n9 > '$(dist).tar.gz'
	rm -rf '$(dist)' '$(dist).child' '$(dist).overlay'
	@echo '$(dist).tar.gz'

clean: ## remove what was built
	rm -rf bin dist $(child) bench.json bench.md
