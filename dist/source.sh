#!/usr/bin/env bash
# Packs the sources of the last commit with those of all crates, so that plumb builds without a network.
#
#   dist/source.sh FOLDER
#
# The same commit gives the same bytes: times are those of the commit.
set -euo pipefail
out=$(mkdir -p "$1" && realpath "$1")
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=plumb-$version
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

git archive --prefix="$name/" HEAD | tar -x -C "$work"
cd "$work/$name"
mkdir -p .cargo
$cargo vendor --locked --versioned-dirs vendor >> .cargo/config.toml 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -c "$name" |
    xz -T1 -6 > "$out/$name.tar.xz"
ls -l "$out/$name.tar.xz"
