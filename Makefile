# Two commands matter: `make demo` and `make test`. Both install what they need.

SHELL := /bin/bash
SWIFT_FLAGS := --explicit-target-dependency-import-check error
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# libssl and libsqlite3 are linked; the zone data resolves quiet hours.
RUN_PACKAGES := libssl-dev libsqlite3-dev pkg-config tzdata iso-codes
# Peers that check our work with code we did not write: Python's HTTP and HPKE libraries, Go's transparency
# log, strace for the order of sync and answer, iso-codes for the list of countries.
TEST_PACKAGES := $(RUN_PACKAGES) python3 python3-venv curl jq strace iso-codes golang-go golang-golang-x-mod-dev \
	prometheus
PYTHON_PACKAGES := cryptography==50.0.2 httpx==0.28.1 schemathesis==4.32.5 jsonschema==4.26.0 \
	openapi-spec-validator==0.9.0 pyyaml==6.0.3
PEERS := .build/peers

.PHONY: demo test build lint install-run install-test peers clean

demo: install-run
	swift build $(SWIFT_FLAGS) --product sendgate
	.build/debug/sendgate demo

# First what is inside, one test after another: many are about time-outs, and two cores do not carry eight
# hundred at once. Then the real binary from outside, with foreign peers, where most of the time is waiting.
test: install-test lint peers
	swift build $(SWIFT_FLAGS) --build-tests
	$(call tests,--no-parallel --skip SendgateEndToEndTests)
	$(call tests,--filter SendgateEndToEndTests)

# Everything is shown while it runs; what failed is said again at the end, where somebody looks.
define tests
	@set -o pipefail; SENDGATE_PEERS="$(abspath $(PEERS))" SWIFT_BACKTRACE=enable=no \
		swift test $(SWIFT_FLAGS) --skip-build $(1) 2>&1 | tee .build/test.log \
		|| { echo; echo "What failed:"; grep -A 12 'recorded an issue\|rror: ' .build/test.log; exit 1; }
endef

build: install-run
	swift build $(SWIFT_FLAGS) -c release --product sendgate

lint:
	swift format lint --strict --recursive Package.swift Sources Tests

install-run:
	@missing=$$(for p in $(RUN_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	[ -z "$$missing" ] || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends $$missing; }

install-test:
	@missing=$$(for p in $(TEST_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	[ -z "$$missing" ] || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends $$missing; }

# A Python environment of our own, made once, so that nothing outside the build folder changes.
peers: $(PEERS)/.installed $(PEERS)/bin/verify_tiles
$(PEERS)/.installed: Makefile
	python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install -q --disable-pip-version-check $(PYTHON_PACKAGES)
	touch $@

# Go's own transparency-log packages, from Debian's sources.
$(PEERS)/bin/verify_tiles: Tests/SendgateEndToEndTests/peers/verify_tiles.go $(PEERS)/.installed
	GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(abspath .build/go-cache) go build -o $@ $<

clean:
	rm -rf .build
