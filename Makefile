# plumb: build, test, show. `make demo` is the place to begin.
#
# Needs a Rust toolchain and git; demo and test make network namespaces and TUN devices, so they
# need root (sudo is used where there is one).

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# The static binary, which is what is shipped.
MUSL := x86_64-unknown-linux-musl
STATIC = $${CARGO_TARGET_DIR:-target}/$(MUSL)/release/plumb

# Paths of this machine are no part of it, so that a build elsewhere gives the same bytes.
REMAP = --remap-path-prefix=$(CURDIR)=plumb --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo

.PHONY: all small static router reproducible dist install source third-party size docs demo test test-slow record-corpus certify test-vm check bench home-six clean help needs

needs:
	@CARGO="$(CARGO)" dist/needs.sh

all: needs ## Build the release binary
	$(CARGO) build --release --locked -p plumb

static: ## Build it without libraries, as it is shipped
	@CARGO="$(CARGO)" dist/needs.sh $(MUSL)
	RUSTFLAGS="$(REMAP) $$RUSTFLAGS" $(CARGO) build --release --locked -p plumb --target $(MUSL)

router: ## Build measuring, the responder and queue management for a router's flash, and say how large it is packed
	@CARGO="$(CARGO)" dist/needs.sh $(MUSL)
	RUSTFLAGS="$(REMAP) $$RUSTFLAGS" $(CARGO) build --profile router --locked -p plumb --target $(MUSL) --no-default-features --features shape
	dist/openwrt/size.sh $${CARGO_TARGET_DIR:-target}/$(MUSL)/router/plumb

reproducible: ## Build that twice, in other folders, and compare: 1 where the bytes differ
	dist/reproducible.sh

dist: static ## Pack it: a Debian package, a tarball, the kernel of labs in virtual time, and checksums in target/dist
	lab-kernel/build.sh > /dev/null
	dist/package.sh $(STATIC) $${CARGO_TARGET_DIR:-target}/dist

# Not rebuilt: that is not for root, under whom installing runs.
PREFIX ?= /usr/local
install: ## Install what `make` built: binary, manual, completions, units, documentation (PREFIX, DESTDIR)
	@[ -x "$${CARGO_TARGET_DIR:-target}/release/plumb" ] || { echo "make install: run make first" >&2; exit 1; }
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" dist/install.sh "$${CARGO_TARGET_DIR:-target}/release/plumb"

source: needs ## Pack the sources with those of all crates, to build without a network: target/dist/plumb-VERSION.tar.xz
	CARGO="$(CARGO)" dist/source.sh $${CARGO_TARGET_DIR:-target}/dist

third-party: needs ## Print the licences of all that is linked in
	@CARGO="$(CARGO)" dist/third-party.py

docs: needs ## Write docs/verbs anew, from what each verb's --help prints
	PLUMB_UPDATE_DOCS=1 $(CARGO) test --locked -p plumb --test it -- --exact documentation::the_pages_of_the_verbs_are_what_their_help_prints

small: needs ## Build it for measuring and the responder alone: target/release/plumb-small
	$(CARGO) build --release --locked -p plumb --no-default-features
	cp target/release/plumb target/release/plumb-small

size: small static ## How large each is; 1 where one has outgrown its bound
	$(CARGO) build --release --locked -p plumb
	CARGO="$(CARGO)" bench/size.sh target/release $(STATIC)

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: all ## The main job, for real, on an emulated cable line, and a host tuned for an ocean: four minutes after the build
	SUDO="$(SUDO)" bench/demo.sh target/release/plumb target/demo

check: ## Formatting, lints, documentation
	@tests/timed.sh formatting $(CARGO) fmt --all --check
	@rustfmt --edition 2024 --check crates/diagnose/src/causes/*.rs # build.rs declares them
	@tests/timed.sh lints $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@RUSTDOCFLAGS="-D warnings" tests/timed.sh documentation $(CARGO) doc --workspace --no-deps --locked

# Labs in virtual time need no root. What makes namespaces of the machine's own kernel does.
test: ## Every test but the slow ones; as root, or those that need it fail and say so
	@[ "$$(id -u)" = 0 ] || echo "make test: without root, tests of the machine's own namespaces and raw sockets will fail and say so; those in virtual time run" >&2
	@CARGO="$(CARGO)" dist/needs.sh
	@CARGO="$(CARGO)" tests/run.sh

test-slow: ## Long tests, and all of them on a machine that has nothing installed; needs root; an hour
	@[ "$$(id -u)" = 0 ] || { echo "make test-slow makes network namespaces: run it as root (sudo make test-slow)" >&2; exit 1; }
	@CARGO="$(CARGO)" dist/needs.sh $(MUSL)
	@CARGO="$(CARGO)" tests/run.sh slow

record-corpus: ## Measure the Runs of corpus/ anew (PLUMB_RECORD=NAME,…: those alone), in labs in virtual time whose truth is known; half an hour
	tests/tools.sh
	$(CARGO) test --workspace --locked --test it -- --test-threads=1000 --ignored --exact corpus::record_all

SET ?= fit
LANES ?= $(shell nproc)
MINUTES ?= 60
certify: ## How often the verdict is right on lines drawn anew (SET=fit|choose|certify), for an hour; goes on where it was
	$(CARGO) build --release --locked -p plumb -p plumb-certify
	lab-kernel/build.sh > /dev/null
	target/release/plumb-certify run --set $(SET) --lanes $(LANES) --minutes $(MINUTES) --keep
	target/release/plumb-certify report --set $(SET) > certify/results/$(SET).md

FILTER ?= vm::
test-vm: ## What plumb asks of the kernel's queues, in a virtual machine; ten minutes; FILTER=vm::shape: those of shapers alone
	tests/tools.sh
	CARGO="$(CARGO)" vm/run.sh "$(FILTER)"

bench: size ## The static binary side by side with peers, a bare pair of TUN devices and netem; an hour; 1 where a bound is not kept
	$(CARGO) build --release --locked -p plumb-lab --example bare_tun
	$(CARGO) build --release --locked -p plumb-serve --example reflection
	SUDO="$(SUDO)" CARGO="$(CARGO)" bench/all.sh target/release $(STATIC)

home-six: all ## Six cases in a home on DSL, without and with a managed queue, as a page in target/home-six; ten minutes, on a quiet machine
	$(CARGO) build --release --locked -p plumb-report --example cases
	$(SUDO) bench/home-six.sh target/release/plumb target/release/examples/cases target/home-six

clean: ## Remove what was built
	$(CARGO) clean
