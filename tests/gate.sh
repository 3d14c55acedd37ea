#!/usr/bin/env bash
# Runs the gate (.ci/run) again and again, and appends a row for each run to tests/gate-runs.md.
#
#   tests/gate.sh N         as the machine is
#   tests/gate.sh N noise   beneath tests/noise, with a compiler beside it
#
# Only the first run builds everything. Ends with 1 where one of them did not pass; its output stays in target/gate-red-*.log.
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${1:?tests/gate.sh N [noise]} beneath=${2:-}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
log=$target/gate.log
noise=
end_noise() { [ -z "$noise" ] || { kill "$noise" 2> /dev/null; wait "$noise" 2> /dev/null; }; noise=; }
trap end_noise EXIT
trap 'exit 130' INT TERM

# Jiffies that the hypervisor took (proc_stat(5)), in seconds of all processors.
stolen_s() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f", $9 / hz }' /proc/stat; }

passed_all=yes
for ((run = 0; run < runs; run++)); do
    [ -z "$beneath" ] || { tests/noise --compile > /dev/null 2>&1 & noise=$!; }
    began=$(date +%s) stolen=$(stolen_s)
    CI=true .ci/run < /dev/null > "$log" 2>&1
    status=$?
    end_noise
    [ "$status" = 0 ] || { passed_all=; cp "$log" "$target/gate-red-$began.log"; }
    printf '| %s | %s | %s | %s | %d s | %d s | %s | %s |\n' "$(date -u -d "@$began" '+%F %H:%M')" \
        "$(git rev-parse --short HEAD)" "${beneath:--}" "$([ "$status" = 0 ] && echo green || echo "red ($status)")" \
        "$(($(date +%s) - began))" "$(($(stolen_s) - stolen))" "$(grep -cE '^void, and measured again' "$log")" \
        "$(grep -aE '^[0-9]+ passed' "$log" | tail -n 1)" | tee -a tests/gate-runs.md
done
[ -n "$passed_all" ]
