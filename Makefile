# plumb: build, test, show. `make demo` is the place to begin.
#
# Needs a Rust toolchain and git; demo and test make network namespaces and TUN devices, so they
# need root (sudo is used where there is one).

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: all demo test test-vm check bench clean help

all: ## Build the release binary
	$(CARGO) build --release --locked

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: all ## The main job, for real, on an emulated cable line, and a host tuned for an ocean: four minutes after the build
	SUDO="$(SUDO)" bench/demo.sh target/release/plumb target/demo

check: ## Formatting, lints, documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

# Whole-program tests make namespaces and measure: as root, and one at a time. One that fails does not keep the
# others from running: one run says all that is wrong.
test: ## Every test; needs root
	@[ "$$(id -u)" = 0 ] || { echo "make test makes network namespaces: run it as root (sudo make test)" >&2; exit 1; }
	@command -v ip >/dev/null && command -v ping >/dev/null && command -v flent >/dev/null && command -v iperf3 >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends iproute2 iputils-ping flent python3-matplotlib iperf3 >/dev/null; }
	$(CARGO) test --workspace --locked --no-fail-fast -- --test-threads=1
	vm/run.sh

test-vm: ## What plumb asks of the kernel's netem, in a virtual machine; two minutes
	vm/run.sh

bench: all ## Side by side with peers, a bare pair of TUN devices and netem; an hour; 1 where a bound is not kept
	$(CARGO) build --release --locked -p plumb-lab --example bare_tun
	SUDO="$(SUDO)" CARGO="$(CARGO)" bench/all.sh target/release

clean: ## Remove what was built
	$(CARGO) clean
