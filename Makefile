# Two commands matter: `make demo` and `make test`. Both install what they need. While working, `make check` is everything
# short that needs no other process, and `make test-module MODULE=CompliancePolicyTests` one module's tests.

SHELL := /bin/bash
SWIFT_FLAGS := --explicit-target-dependency-import-check error
# Debug builds, which tests and the demo run, have neither tables for a debugger nor an index for an editor: each takes a fifteenth
# of the processor's time. `DEBUG_FLAGS=` builds them.
DEBUG_FLAGS := -debug-info-format none --disable-index-store
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Read by Package.swift: debug builds are optimised and keep their assertions.
export SENDGATE_OPTIMIZED := 1

# libssl, libsodium, libsqlite3 and libidn2 are linked; the zone data resolves quiet hours.
RUN_PACKAGES := libssl-dev libsodium-dev libsqlite3-dev libidn2-dev pkg-config tzdata iso-codes
# The stand-in for Apple is a Python program.
DEMO_PACKAGES := $(RUN_PACKAGES) python3 python3-h2 python3-cryptography
# What `make deb` needs besides: Debian's own tools, and the text of ICU's licence, which the toolchain links and does not carry.
PACKAGE_PACKAGES := dpkg-dev lintian libicu72
# Peers that check our work with code we did not write: Python's HTTP and HPKE libraries, Go's transparency
# log, Cloudflare's HPKE for Go, strace for the order of sync and answer, iso-codes for the list of countries, Chromium for the pages. The handbook's
# programs are run with curl, jq, openssl, Python, Node and Go. Postfix, which is unpacked below, is linked with the last four.
TEST_PACKAGES := $(RUN_PACKAGES) python3 python3-venv curl jq openssl strace iso-codes nodejs golang-go golang-golang-x-mod-dev \
	golang-github-cloudflare-circl-dev chromium chromium-sandbox chromium-driver fonts-dejavu-core fonts-noto-core fonts-liberation \
	libdb5.3 libicu72 libnsl2 libsasl2-2 systemd $(PACKAGE_PACKAGES) debootstrap
PYTHON_PACKAGES := cryptography==50.0.2 httpx==0.28.1 schemathesis==4.32.5 jsonschema==4.26.0 \
	openapi-spec-validator==0.9.0 pyyaml==6.0.3 selenium==4.49.0 pillow==13.0.0 phonenumbers==9.0.43 idna==3.20 \
	'grafana-foundation-sdk==1769699379!11.6.0' aiosmtpd==1.4.6 \
	h2==4.4.1 aioapns==4.0 firebase-admin==7.7.0 exponent-server-sdk==2.2.0
# For its copy of axe alone; what drives the browser is Selenium.
AXE_PACKAGE := axe-playwright-python==0.1.8
# For its check of signatures alone, which needs nothing else.
TWILIO_PACKAGE := twilio==9.13.0
PEERS := .build/peers

BUNDLE := .build/debug/sendgatePackageTests.xctest
# What took how long: a line per step, then a table; see Tests/run_tests.py.
TIMES := .build/times
# The same of `make soak`, and which of its parts passed.
SOAK := .build/soak

.PHONY: demo test check soak test-module build deb bench-floor bench-courier lint mutants install-run install-demo install-test peers clean

demo: install-demo
	swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --product sendgate
	swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --product sendgate-courier
	.build/debug/sendgate demo --provider Tests/CourierProvidersTests/peers/push_service.py --python /usr/bin/python3

# Everything: the modules' suites, then the real binary from outside with foreign peers. What only the tests need is installed
# while the build computes.
test: install-demo
	@rm -rf $(TIMES)/steps.tsv; mkdir -p $(TIMES)
	$(call timed,lint,$(MAKE) --no-print-directory lint)
	$(call timed,build beside peers,$(call beside,$(MAKE) --no-print-directory install-test && $(MAKE) --no-print-directory peers,swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --build-tests))
	SENDGATE_PEERS="$(abspath $(PEERS))" python3 Tests/run_tests.py $(BUNDLE) $(TIMES) all

# The long forms, whole: all the parts that have not passed since the last build, or `PART=kills` alone; see `SOAK` in
# Tests/run_tests.py.
soak: install-test
	@rm -rf $(SOAK)/steps.tsv; mkdir -p $(SOAK)
	@$(MAKE) --no-print-directory peers
	swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --build-tests
	SENDGATE_PEERS="$(abspath $(PEERS))" python3 Tests/run_tests.py $(BUNDLE) $(SOAK) soak $(PART)

# Everything without other processes that takes less than ten seconds a suite: see `LONG` in Tests/run_tests.py.
check: install-test
	@rm -rf $(TIMES)/steps.tsv; mkdir -p $(TIMES)
	$(call timed,lint,$(MAKE) --no-print-directory lint)
	$(call timed,build,swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --build-tests)
	python3 Tests/run_tests.py $(BUNDLE) $(TIMES) check

# One module's tests, with nothing built that they do not need.
test-module:
	SENDGATE_TEST_MODULE=$(MODULE) swift build $(SWIFT_FLAGS) $(DEBUG_FLAGS) --product sendgatePackageTests
	rm -f $(TIMES)/steps.tsv
	python3 Tests/run_tests.py $(BUNDLE) $(TIMES) all $(MODULE)

# Runs one command beside another; what it prints is shown where it fails.
define beside
{ { $(1); } > $(TIMES)/beside.log 2>&1 & $(2); status=$$?; wait $$! || { cat $(TIMES)/beside.log; exit 1; }; [ $$status = 0 ]; }
endef

define timed
	@SECONDS=0; $(2) && printf '%s\t%s\n' '$(1)' "$$SECONDS" >> $(TIMES)/steps.tsv
endef

build: install-run
	swift build $(SWIFT_FLAGS) -c release --product sendgate
	swift build $(SWIFT_FLAGS) -c release --product sendgate-courier

# Debian packages of both programs in .build/deb, with Swift's runtime inside them; see Sources/DebianPackages. `REVISION=2` for a
# second package of one version.
REVISION := 1
deb: install-run
	$(call install,$(PACKAGE_PACKAGES))
	swift build $(SWIFT_FLAGS) -c release --static-swift-stdlib --product sendgate
	swift build $(SWIFT_FLAGS) -c release --static-swift-stdlib --product sendgate-courier
	python3 Sources/DebianPackages/build_packages.py --programs .build/release --out .build/deb --revision $(REVISION)
	lintian --fail-on error,warning --tag-display-limit 0 .build/deb/*_*-$(REVISION)_*.deb

# The promise of the design: sends that are handed over are at least 35 % of what raw SQLite writes on this machine, in the same
# run. `BENCH=--quick` for a short one; what else `sendgate bench` takes goes there, too.
bench-floor: build
	cd Tests/Benchmarks && swift run -c release GateBenchmarks ../../Policies floor $(abspath .build/release/sendgate) $(BENCH)

# The courier's promises: pushes a second, memory with 100,000 waiting, an outage, critical pushes beside promotions. `BENCH=rate` for
# one part; see Tests/Benchmarks/Courier/measure.py.
bench-courier: build install-test
	python3 Tests/Benchmarks/Courier/measure.py .build/release $(BENCH)

lint:
	swift format lint --strict --recursive Package.swift Sources Tests
	python3 Tests/mutate.py check

# Which one-line breaks of the product no test notices, in the tests' whole forms: see the handbook's Contributing.
MUTATE := SENDGATE_SOAK=1 SENDGATE_PEERS="$(abspath $(PEERS))" python3 Tests/mutate.py
mutants: install-test peers
	$(MUTATE) run $(MUTANTS)
	$(MUTATE) run --alone $(MUTANTS)
	$(MUTATE) run --all-modules $(MUTANTS)
	python3 Tests/mutate.py table

define install
	@missing=$$(for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	[ -z "$$missing" ] || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends $$missing; }
endef

install-run:
	$(call install,$(RUN_PACKAGES))
install-demo:
	$(call install,$(DEMO_PACKAGES))
install-test:
	$(call install,$(TEST_PACKAGES))

# A Python environment of our own, made once, so that nothing outside the build folder changes.
peers: $(PEERS)/.installed $(PEERS)/bin/verify_tiles $(PEERS)/bin/open_vectors $(PEERS)/bin/prometheus $(PEERS)/postfix/usr/sbin/postconf
$(PEERS)/.installed: Makefile
	python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install -q --disable-pip-version-check $(PYTHON_PACKAGES)
	$(PEERS)/bin/pip install -q --disable-pip-version-check --no-deps $(AXE_PACKAGE) $(TWILIO_PACKAGE)
	touch $@

# Go's own transparency-log packages, and Cloudflare's HPKE, from Debian's sources.
$(PEERS)/bin/verify_tiles $(PEERS)/bin/open_vectors: $(PEERS)/bin/%: Tests/SendgateEndToEndTests/peers/%.go $(PEERS)/.installed
	GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(abspath .build/go-cache) go build -o $@ $<

# Prometheus and its own checker, out of Debian's package: installing it would start a service.
$(PEERS)/bin/prometheus: $(PEERS)/.installed
	rm -rf $(PEERS)/prometheus && mkdir -p $(PEERS)/prometheus
	cd $(PEERS)/prometheus && { apt-get download -q prometheus || { $(SUDO) apt-get update -q && apt-get download -q prometheus; }; } \
		&& dpkg-deb -x prometheus_*.deb . && cp usr/bin/promtool usr/bin/prometheus ../bin/

# Postfix, out of Debian's package: installing it would start a service and ask for a configuration.
$(PEERS)/postfix/usr/sbin/postconf: $(PEERS)/.installed
	rm -rf $(PEERS)/postfix && mkdir -p $(PEERS)/postfix
	cd $(PEERS)/postfix && { apt-get download -q postfix || { $(SUDO) apt-get update -q && apt-get download -q postfix; }; } \
		&& dpkg-deb -x postfix_*.deb . && touch usr/sbin/postconf

clean:
	rm -rf .build
