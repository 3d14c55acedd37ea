#!/usr/bin/env bash
# Six real trials of plumb tune verify in the laboratory, of which the truth is known: three changes that
# help and three that do not. Prints what it decided of each, in how many runs.
#
#   bench/tune.sh PLUMB
set -euo pipefail
plumb=$(realpath "$1")
agree=0

. "$(dirname "$0")/common.sh"
need python3 python3

# Name of the scenario; what must become of each part of the plan; options.
trial() {
    scenario=$1 expected=$2
    shift 2
    run=$("$plumb" lab run "$scenario" -- plumb tune verify server "$@" --runtime --yes --json 2> /dev/null)
    tuned="[m['result'] for m in d['measurements'] if m['kind'] == 'tune']"
    echo "$(basename "$scenario"): $(json "'; '.join('%s: %+.1f %% in %d runs: %s' % (r['part'], r['effect_ratio'] * 100, r['runs'], r['decision']) for r in $tuned)" <<< "$run")"
    decided=$(json "' '.join('kept' if r['decision'] == 'kept' else 'undone' for r in $tuned)" <<< "$run")
    [ "$decided" = "$expected" ] || { echo "  expected: $expected"; return; }
    agree=$((agree + $(wc -w <<< "$expected")))
}

# 100 Mbit/s over 20 ms that lose one packet in a hundred.
lossy=$(mktemp --suffix=.toml)
trap 'rm -f "$lossy"' EXIT
shaper='{ type = "shaper", rate = "100mbit", framing = "ethernet", queue = { type = "fifo", limit = "500kB" } }'
delay='{ type = "delay", delay = "10ms" }'
line "$shaper, { type = \"loss\", ratio = \"1%\" }, $delay" "$shaper, $delay" > "$lossy"

trial long-fat-sndbuf kept --rate 1gbit --rtt 150ms --duration 5s
trial ocean-stock "kept undone" --rate 1gbit --rtt 150ms --duration 6s
# BBR, which a node may choose where the machine allows it, holds what Reno does not.
trial "$lossy" kept --rate 100mbit --rtt 20ms --loss 1% --duration 4s
# Buffers for a path that this one is not.
trial fibre "undone undone" --rate 1gbit --rtt 150ms --duration 4s --runs 12
echo "$agree of 6 trials agree with the truth"
[ "$agree" = 6 ]
