#!/usr/bin/env bash
# Says what is missing to build plumb, each with the command that brings it.
#
#   dist/needs.sh [TARGET]    1 where something is missing; TARGET is one of Rust's, such as x86_64-unknown-linux-musl
set -euo pipefail
cargo=${CARGO:-cargo} target=${1:-}
missing=
need() {
    missing=1
    printf 'plumb needs %s, which is missing here:\n    %s\n' "$1" "$2" >&2
}

# Of a command with arguments, such as `cargo +stable`, the program.
if ! command -v "${cargo%% *}" > /dev/null; then
    need "a Rust toolchain (cargo)" "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
else
    # The toolchain's own list of targets: the folder of its standard library.
    if [ -n "$target" ] && ! [ -d "$(rustc --print sysroot 2> /dev/null)/lib/rustlib/$target/lib" ]; then
        need "Rust's target $target" "rustup target add $target"
    fi
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
    here=$(rustc --version 2> /dev/null | awk '{ print $2 }')
    if [ "$(printf '%s\n' "$wanted" "${here%%-*}" | sort -V | head -n 1)" != "$wanted" ]; then
        need "Rust $wanted or newer (this is ${here:-none})" "rustup update stable"
    fi
fi
# ring has assembler and C, and programs are linked by the C compiler.
compiles() { echo '#include <stdio.h>' | "$1" -x c -fsyntax-only - 2> /dev/null; }
compiles "${CC:-cc}" || need "a C compiler with the C library's headers" "sudo apt-get install gcc libc6-dev"
if [[ $target == *-musl ]]; then
    compiles musl-gcc || need "a C compiler for musl" "sudo apt-get install musl-tools"
fi
[ -z "$missing" ]
