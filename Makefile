# make check   without privileges: formatting, vet, linters, unit tests
# make test    what CI runs: check, and what needs the kernel, as root and as an ordinary user
# make nightly the same with every matrix whole, and what takes long
# make corpus  what the policy says to the labelled command lines
# make fuzz    every fuzz target for FUZZTIME each
# make bench   measures, into bench/results
# make dist    a release, in dist/
# make changelog  the fragments of changelog/unreleased, into CHANGELOG.md
# make pictures  the cast and the screenshot of README.md, in docs/pictures
# make bench-check  compares file calls, connections, starts and decisions with the commit before
# make runsc   gVisor's runsc, as bin/runsc
# make site    the documents as HTML with a search, in bin/site
# make vuln    Go's vulnerability database (needs the network)

export CGO_ENABLED = 0
GO ?= go
FUZZTIME ?= 10s
TARGETS = linux/amd64 linux/arm64 darwin/arm64

# What the tests may not skip. As an ordinary user "root", "cgroup", "docker" and
# "runsc" go: the first is not to be had, the second only where somebody
# delegated a group, and the engines of the tests belong to root.
BAWN_TEST_REQUIRE ?= root,user,userns,landlock,seccomp,notify,cgroup,bash,dash,zsh,fish,git,go,cc,node,python3,make,tmux,vim,less,bwrap,npm,strace,dig,getent,npm-agents,curl,openssl,ssh,dnsmasq,iproute2,java,pnpm,yarn,pip,apt,postgres,dpkg,lintian,shellcheck,rpm,qemu-user,wget,sshd,keyring,chromium,scope,tun,docker,docker-clients,runsc,podman

# Where test-deps puts the agents that the tests run, and gVisor's program.
TEST_CACHE = $(if $(filter 0,$(shell id -u)),/var/cache,$(HOME)/.cache)
export BAWN_TEST_AGENTS ?= $(TEST_CACHE)/bawn-agents
export BAWN_TEST_RUNSC ?= $(TEST_CACHE)/bawn-runsc/runsc
comma = ,
empty =
space = $(empty) $(empty)
USER_REQUIRE = $(subst $(space),$(comma),$(filter-out root cgroup docker docker-clients runsc podman,$(subst $(comma),$(space),$(BAWN_TEST_REQUIRE))))

export BAWN_TEST_REQUIRE
export BAWN_TEST_USER_REQUIRE = $(USER_REQUIRE)
export TEST_TIMEOUT ?= 20m

.PHONY: all build check format vet lint generated unit coverage web web-check test nightly lint-darwin rawproc-cgo kernel test-root test-user cross dist pictures changelog corpus differential test-deps test-degraded generate runsc fuzz bench bench-check vuln site clean

all: check build

build:
	$(GO) build -trimpath -o bin/ ./cmd/...

check: format vet lint generated unit coverage

format:
	scripts/format

vet:
	GOOS=linux $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

lint: bin/golangci-lint
	scripts/lint-selftest
	bin/golangci-lint run ./...

# The tools are modules of their own (tools/go.mod): what they need is no
# dependency of ours. Building them takes about a minute and a half, once.
bin/golangci-lint bin/govulncheck bin/staticcheck: tools/go.mod tools/go.sum
	$(GO) build -C tools -o ../bin/ $$(cd tools && $(GO) list -f '{{.ImportPath}}' tool | grep '/$(@F)$$')
	@touch $@

# gVisor's program, for provider "gvisor" and its tests: about three minutes, once.
runsc: bin/runsc
bin/runsc: tools/gvisor/go.mod tools/gvisor/go.sum
	$(GO) build -C tools/gvisor -trimpath -ldflags "-s -w" -o ../../bin/runsc gvisor.dev/gvisor/runsc
	@touch $@

# Makes packages for Debian, RPM and Alpine.
bin/nfpm: tools/dist/go.mod tools/dist/go.sum
	$(GO) build -C tools/dist -trimpath -ldflags "-s -w" -o ../../bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	@touch $@

# What users install: docs/dev/release.md.
dist: bin/nfpm
	scripts/dist

# Moves the fragments of changelog/unreleased into CHANGELOG.md, below the version of
# internal/egress/hello.go.
changelog:
	$(GO) run ./internal/release collect "$$(sed -n 's/^var Release = "\([^"-]*\)[^"]*"$$/\1/p' internal/egress/hello.go)" "$$(date -u +%Y-%m-%d)" .

# What README.md shows, made anew: as root, with what "make test-deps" installs.
pictures: bin/nfpm
	mkdir -p docs/pictures
	BAWN_TEST_SHORT=1 BAWN_TEST_PICTURES=$(CURDIR)/docs/pictures $(BUILT) $(GO) test -count=1 -run 'TestRelease/^cast$$' ./test/dist
	shots=$$(mktemp -d) && trap 'rm -r "$$shots"' EXIT && BAWN_TEST_SCENES=answeredElsewhere BAWN_TEST_SHOTS=$$shots $(BUILT) $(GO) test -count=1 -run TestPage ./test/web && \
		cp "$$shots/answeredElsewhere-waiting.png" docs/pictures/approvals.png

# The documents as a site: sidebar, search, links checked, nothing from elsewhere.
site:
	$(GO) test -C tools/site .
	$(GO) run -C tools/site . ../.. ../../bin/site

# The page that bawnd serves is built by hand and committed, so that "go
# install" needs no node; web-check shows that what is committed is what its
# source gives.
web:
	scripts/web build

web-check:
	scripts/web check

PROTO_TOOLS = bin/buf bin/protoc-gen-go bin/protoc-gen-connect-go
$(PROTO_TOOLS): tools/proto/go.mod tools/proto/go.sum
	$(GO) build -C tools/proto -o ../../bin/ $$(cd tools/proto && $(GO) list -f '{{.ImportPath}}' tool | grep '/$(@F)$$')
	@touch $@

generate: $(PROTO_TOOLS)
	$(GO) generate ./...

generated: $(PROTO_TOOLS)
	scripts/generated

unit:
	scripts/tests unit

coverage:
	scripts/coverage

# What CI runs. As root it needs Debian and installs what is missing.
test:
	@scripts/steps 'test-deps&' format vet lint generated wait unit coverage web-check kernel

# Everything. What it takes long for is not for every change: test/whole.txt.
nightly: export BAWN_TEST_NIGHTLY = 1
nightly: export TEST_TIMEOUT = 30m
nightly:
	@scripts/steps test-deps format vet lint lint-darwin generated unit coverage web-check cross kernel rawproc-cgo differential site vuln

# Without "unused": what only Linux's files call is not called there.
lint-darwin: bin/golangci-lint
	GOOS=darwin GOARCH=arm64 bin/golangci-lint run --disable unused ./...

# What forks between threads, with the C library's threads too.
rawproc-cgo:
	CGO_ENABLED=1 $(GO) test -count=1 ./internal/linux/rawproc

kernel:
	@if [ "$$(id -u)" = 0 ]; then \
		$(BUILT) scripts/tests kernel; \
	else \
		BAWN_TEST_REQUIRE=$(USER_REQUIRE) $(BUILT) scripts/tests root && \
		echo "test: this was the ordinary user's half; run \"make test\" as root for both"; \
	fi

# The programs that tests start are built for one run, never taken from another.
BUILT = scripts/built

test-root:
	scripts/tests root

test-user:
	scripts/tests user

# How many lines of each category of the corpus the policy allows; the page
# docs/policy-corpus.md holds the same table.
corpus:
	@$(GO) test -count=1 -v -run '^TestEverydayWork$$' ./internal/policy

test-deps:
	scripts/test-deps

cross:
	@for target in $(TARGETS); do \
		echo "build $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./... || exit 1; \
	done

# The same attacks on Debian's 6.1 kernel under qemu: Landlock ABI 2, cgroup
# v2. It takes some minutes and is not part of CI.
test-degraded:
	test/qemu/run

# What the reader and the policy say of a line, against what real shells run
# of it. A part of it runs with every test; this is longer.
DIFFERENTIAL_TIME ?= 30s
differential:
	BAWN_FUZZ_TIME=$(DIFFERENTIAL_TIME) $(GO) test -count=1 -run 'TestAllowedLinesRunNothingElse|TestShellsRunWhatWasRead' -v ./internal/policy ./internal/shell

fuzz:
	DIFFERENTIAL_TIME=5m $(MAKE) differential
	FUZZTIME=$(FUZZTIME) scripts/fuzz

bench:
	scripts/bench

bench-check:
	scripts/bench-check

vuln: bin/govulncheck
	scripts/vuln

clean:
	rm -rf bin dist
