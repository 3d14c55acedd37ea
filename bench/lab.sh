#!/usr/bin/env bash
# What the laboratory can carry on this machine, and how late it is. Needs root and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
command -v python3 >/dev/null || { apt-get update -qq && apt-get install -y -qq python3 >/dev/null; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# scenario FILE CELLS RMEM WMEM
scenario() {
    cat > "$1" <<TOML
name = "bench"
summary = "bench"
[[node]]
name = "a"
[node.sysctl]
"net.ipv4.tcp_rmem" = "4096 131072 $3"
"net.ipv4.tcp_wmem" = "4096 131072 $4"
[[node]]
name = "b"
[node.sysctl]
"net.ipv4.tcp_rmem" = "4096 131072 $3"
"net.ipv4.tcp_wmem" = "4096 131072 $4"
[[link]]
name = "l"
between = ["a", "b"]
up = [$2]
down = [$2]
[[service]]
node = "b"
run = ["plumb", "serve", "--quiet"]
port = 7586
TOML
}

# One flow over 10 Gbit/s and 50 ms: the payload that the link delivered in the last five
# seconds, of the 9.41 Gbit/s that frames of 1538 bytes leave for it.
ten='{ type = "shaper", rate = "10gbit", framing = "ethernet", queue = { type = "fifo", limit = "60MB" } }, { type = "delay", delay = "25ms" }'
one_flow() { # label rmem wmem
    scenario "$work/ten.toml" "$ten" "$2" "$3"
    "$plumb" lab run "$work/ten.toml" --stats "$work/stats.json" -- \
        plumb rate b --up --streams 1 --duration 14s --budget 20GB >/dev/null 2>&1
    python3 - "$work/stats.json" "$1" <<'PY'
import json, sys
way = json.load(open(sys.argv[1]))["links"]["l"]["up"]
series = way["chain"]["payload"]
points = next(values for key, values in series.items() if key.startswith("value"))
# The last interval is not over; the one before may hold the end of the flow.
busy = [p for p in points if p > 0][:-3][-50:]
rate = sum(busy) * 8 / (len(busy) * 0.1)
late = way["driver"]["lateness_s"]
most = 10e9 * 1448 / 1538
print(f"one flow, 10 Gbit/s and 50 ms, {sys.argv[2]:<16} {rate/1e9:6.2f} Gbit/s, {rate/most*100:5.1f} % of goodput; late {late['p50']*1e6:.0f} µs (median) {late['p99']*1e6:.0f} µs (p99), overrun {way['driver']['overrun']}")
PY
}
one_flow "large buffers:" 536870912 536870912
one_flow "stock buffers:" 6291456 4194304

# 1 Gbit/s of packets one by one through an AQM.
scenario "$work/single.toml" '{ type = "shaper", rate = "1gbit", queue = "fq_codel" }, { type = "delay", delay = "5ms" }' 6291456 4194304
# Nobody listens there: an answer to each packet would be as much again.
sed -i 's/^name = "b"/&\nsilent = true/' "$work/single.toml"
"$plumb" lab run "$work/single.toml" --stats "$work/stats.json" -- \
    plumb lab flood b --rate 1050mbit --size 1472 --duration 5s >/dev/null 2>&1
python3 - "$work/stats.json" <<'PY'
import json, sys
stats = json.load(open(sys.argv[1]))
way = stats["links"]["l"]["up"]
flow = max(way["chain"]["flows"], key=lambda f: f["delivered"]["bytes"])
late = way["driver"]["lateness_s"]
rate = flow["delivered"]["bytes"] * 8 / 5
print(f"1 Gbit/s in packets of 1500 bytes, one by one      {rate/1e9:6.3f} Gbit/s delivered of {flow['offered']['bytes']*8/5e9:.3f} offered; late {late['p50']*1e6:.0f} µs (median) {late['p99']*1e6:.0f} µs (p99), overrun {way['driver']['overrun']}")
PY
