#!/usr/bin/env bash
# How large the release binary is, the static one that is shipped, and one of measuring and the responder alone, and how many
# packages they are made of.
# Usage: size.sh FOLDER-OF-BINARIES SHIPPED. 1 where a bound is not kept.
set -euo pipefail
whole=$(realpath "$1/plumb") small=$(realpath "$1/plumb-small") shipped=$(realpath "$2")
cd "$(dirname "$0")/.."
. bench/common.sh

megabytes() { stat -c %s "$1" | awk '{printf "%.2f", $1 / 1e6}'; }
# What is compiled into the binary, or writes code for it.
packages() { "${CARGO:-cargo}" tree --locked -e normal -p plumb --prefix none | sed 's/ (\*)$//' | sort -u | wc -l; }
said=$(
    # With the clients and servers of others' protocols.
    verdict "release binary" "$(megabytes "$whole")" MB '<=' 25
    verdict "static release binary, as it is shipped" "$(megabytes "$shipped")" MB '<=' 25
    verdict "release binary without default features" "$(megabytes "$small")" MB '<=' 9
    verdict "packages in it" "$(packages)" "" '<=' 120
)
echo "$said"
if "$small" --help | grep -qE '^  (lab|tune) '; then
    echo "FAIL: --help lists a verb that is not there"
    exit 1
fi
! grep -q FAIL <<< "$said"
