#!/usr/bin/env bash
# What the laboratory can carry on this machine, how late it is, and what it costs. Needs root and a
# quiet machine.
#
#   bench/lab.sh PLUMB BARE_TUN    BARE_TUN: the example of that name in crates/lab
set -euo pipefail
plumb=$(realpath "$1")
bare_tun=$(realpath "$2")
pairs=5
command -v python3 >/dev/null || { apt-get update -qq && apt-get install -y -qq python3 >/dev/null; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

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

# Nobody listens at the far end of what follows: an answer to each packet would be as much again.
silent_scenario() { # FILE CELLS
    scenario "$1" "$2" 6291456 4194304
    sed -i 's/^name = "b"/&\nsilent = true/' "$1"
}

# 1 Gbit/s of packets one by one through an AQM. The last packet leaves when the flood is over and
# the queue is empty.
silent_scenario "$work/single.toml" '{ type = "shaper", rate = "1gbit", queue = "fq_codel" }, { type = "delay", delay = "5ms" }'
"$plumb" lab run "$work/single.toml" --stats "$work/stats.json" -- \
    plumb lab flood b --rate 1050mbit --size 1472 --duration 5s >/dev/null 2>&1
python3 - "$work/stats.json" <<'PY'
import json, sys
stats = json.load(open(sys.argv[1]))
way = stats["links"]["l"]["up"]
flow = max(way["chain"]["flows"], key=lambda f: f["delivered"]["bytes"])
late = way["driver"]["lateness_s"]
rate = flow["delivered"]["bytes"] * 8 / (5 + flow["transit_s"]["p99"])
cpu = way["driver"]["cpu_s"] / flow["delivered"]["packets"]
print(f"1 Gbit/s in packets of 1500 bytes, one by one      {rate/1e9:6.3f} Gbit/s delivered of {flow['offered']['bytes']*8/5e9:.3f} offered; late {late['p50']*1e6:.0f} µs (median) {late['p99']*1e6:.0f} µs (p99), overrun {way['driver']['overrun']}; {cpu*1e6:.1f} µs of a processor each, waiting included")
PY

# 50 Mbit/s of such packets: the processor time of the thread that carries them through a link, and
# of one between a bare pair of TUN devices, which reads and writes, or keeps each packet for the
# 240 µs that it takes on the line and does nothing else.
silent_scenario "$work/fifty.toml" '{ type = "shaper", rate = "50mbit" }'
flood='--rate 50mbit --size 1472 --duration 2s'
bare() { "$bare_tun" "$1" "$plumb" lab flood 10.0.0.2 $flood | awk 'END { print $2 / $1 * 1e6 }'; }
link() {
    "$plumb" lab run "$work/fifty.toml" --stats "$work/stats.json" -- plumb lab flood b $flood >/dev/null 2>&1
    python3 -c "
import json
way = json.load(open('$work/stats.json'))['links']['l']['up']
print(way['driver']['cpu_s'] / way['chain']['delivered']['packets'] * 1e6)"
}
forward="" keep="" ours=""
for _ in $(seq $pairs); do
    forward+=" $(bare 0)"; ours+=" $(link)"; keep+=" $(bare 240)"
done
median() { printf '%s\n' $1 | sort -g | awk '{v[NR]=$1} END {print (NR%2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
awk -v o="$(median "$ours")" -v f="$(median "$forward")" -v k="$(median "$keep")" 'BEGIN {
    printf "50 Mbit/s, processor time of a packet: link %.1f µs; bare TUN pair %.1f µs, ratio %.2f; with a timer for each packet %.1f µs, ratio %.2f\n", o, f, o/f, k, o/k }'

# Fifty nodes in a row, with veth between them: the time from the command to a program in the first
# one and back, everything taken down. At most 2 s.
awk 'BEGIN {
    print "name = \"row\"\nsummary = \"row\""
    for (i = 0; i < 50; i++) printf "[[node]]\nname = \"n%d\"\nforward = true\n", i
    for (i = 1; i < 50; i++) printf "[[link]]\nname = \"l%d\"\nbetween = [\"n%d\", \"n%d\"]\n", i, i - 1, i
}' > "$work/row.toml"
took=""
for _ in $(seq $pairs); do
    began=$(date +%s.%N)
    "$plumb" lab run "$work/row.toml" -- true
    took+=" $(awk -v b="$began" -v e="$(date +%s.%N)" 'BEGIN { print e - b }')"
done
echo "fifty nodes up and down: $(median "$took") s"
