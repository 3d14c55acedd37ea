#!/usr/bin/env bash
# Builds what is shipped twice from the committed sources, in folders of different names, and compares the binaries.
# Ends with 1 where they differ. Takes two release builds, and 3 GB in TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-musl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for folder in one another/longer; do
    mkdir -p "$work/$folder"
    git archive HEAD | tar -x -C "$work/$folder"
    # Elsewhere than the sources in the second build.
    CARGO_TARGET_DIR="$work/target-${folder%%/*}" make -C "$work/$folder" static > /dev/null
done
binaries=("$work"/target-{one,another}/"$target"/release/plumb)
sha256sum "${binaries[@]}" | sed "s|$work/||"
cmp "${binaries[@]}" && echo "the same, byte by byte"
