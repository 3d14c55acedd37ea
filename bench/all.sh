#!/usr/bin/env bash
# Every comparison, one after the other, and at the end the bounds that were not kept.
# Usage: all.sh FOLDER-OF-BINARIES SHIPPED
# What is compared is SHIPPED, the static binary that packages have.
set -uo pipefail
cd "$(dirname "$0")/.."
binaries=$(realpath "$1") shipped=$(realpath "$2")
said=$(mktemp)
trap 'rm -f "$said"' EXIT

compare() {
    printf '\n== %s\n' "$*"
    "$@" 2>&1 | tee -a "$said" || echo "FAIL: $* ended with an error" | tee -a "$said"
}
for what in run rate udp transactions tune follow ping host path capacity capture flows; do
    compare ${SUDO:-} "bench/$what.sh" "$shipped"
done
compare ${SUDO:-} bench/serve.sh "$shipped" "$binaries/examples/reflection"
compare bench/size.sh "$binaries" "$shipped"
compare ${SUDO:-} bench/lab.sh "$shipped" "$binaries/examples/bare_tun"
compare bench/netem.sh
compare "${CARGO:-cargo}" bench --locked -p plumb-link --bench chain

printf '\n== bounds\n'
echo "$(grep -c ': pass$' "$said") kept"
grep ': missed: ' "$said"
! grep 'FAIL' "$said"
