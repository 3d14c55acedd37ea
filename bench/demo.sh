#!/usr/bin/env bash
# plumb's whole job, twice, for real: check an emulated cable line, find what holds it back, apply
# the fix that the finding proposes, check again, compare; and tune a stock host for a path across an
# ocean, with a proof and an undo.
set -euo pipefail
plumb=$(realpath "$1")
out=$2
mkdir -p "$out"
out=$(realpath "$out")
cd "$out"
rm -f before.json after.json report.html tuned.json

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "A cable line of 100/20 Mbit/s whose modem has oversized queues, emulated on this machine:"
"$plumb" lab show home-cable | sed -n 's/^summary = //p'

# Two checks in one running network: the modem's queues stay as they are.
${SUDO:-} "$plumb" lab run home-cable -- bash -euo pipefail -c '
    say() { printf "\n\033[1m%s\033[0m\n" "$*"; }
    say "1. Check it: plumb check server"
    plumb check server -o before.json
    say "2. Do what the findings ask of the router: plumb lab apply before.json"
    plumb lab apply before.json
    say "3. Check it again: plumb check server"
    plumb check server -o after.json
'

say "4. What changed: plumb compare before.json after.json"
"$plumb" compare before.json after.json
"$plumb" report before.json after.json -o report.html

say "Second story: an upload of 1 Gbit/s over 150 ms, from a machine with stock buffers:"
"$plumb" lab show ocean-stock | sed -n 's/^summary = //p'
"$plumb" calc bdp --rate 1gbit --rtt 150ms | head -n 2

${SUDO:-} "$plumb" lab run ocean-stock -- bash -euo pipefail -c '
    say() { printf "\n\033[1m%s\033[0m\n" "$*"; }
    rate() { plumb rate server --up --cc "$(sysctl -n net.ipv4.tcp_congestion_control)" | grep -A 3 "^Rate"; }
    say "1. What it does as it is: plumb rate server --up"
    rate
    say "2. Try what would help, keep what does: plumb tune verify server"
    plumb tune verify server --rate 1gbit --rtt 150ms --duration 6s --runs 24 --yes -o tuned.json
    say "3. What it does now: plumb rate server --up"
    rate
    say "4. What was changed, and putting it back: plumb tune status, plumb tune undo"
    plumb tune status
    plumb tune undo
'

say "Saved: $out/before.json, after.json, tuned.json and report.html (open it in a browser)"
cat <<'TEXT'

Try it on a line of your own, between two machines:
    far end:   plumb serve                  (opens TCP and UDP port 7586)
    this end:  plumb check THE-FAR-END      (and then: plumb tune verify THE-FAR-END)
With no second machine: `plumb check ANY-HOST` measures idle latency and whether ports answer, and
says what else a responder would show; `plumb lab list` has more lines to try.
TEXT
