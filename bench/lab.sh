#!/usr/bin/env bash
# What the laboratory can carry on this machine, how late it is, and what it costs. Needs root and a
# quiet machine.
#
#   bench/lab.sh PLUMB BARE_TUN    BARE_TUN: the example of that name in crates/lab
set -euo pipefail
plumb=$(realpath "$1")
bare_tun=$(realpath "$2")
pairs=${PAIRS:-5}

. "$(dirname "$0")/common.sh"
need python3 python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

# buffers RMEM WMEM: what TCP may use at most, as a line of a node.
buffers() {
    echo "sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 $1\", \"net.ipv4.tcp_wmem\" = \"4096 131072 $2\" }"
}

# One flow over 10 Gbit/s and 50 ms: the payload that the link delivered in the last five
# seconds, of the 9.41 Gbit/s that frames of 1538 bytes leave for it.
ten='{ type = "shaper", rate = "10gbit", framing = "ethernet", queue = { type = "fifo", limit = "60MB" } }, { type = "delay", delay = "25ms" }'
one_flow() { # rmem wmem
    line "$ten" "$ten" "$(buffers "$1" "$2")" > "$work/ten.toml"
    "$plumb" lab run "$work/ten.toml" --stats "$work/stats.json" -- \
        plumb rate server --up --streams 1 --duration 14s --budget 20GB >/dev/null 2>&1
    read -r rate p50 p99 overrun < <(python3 - "$work/stats.json" <<'PY'
import json, sys
way = json.load(open(sys.argv[1]))["links"]["line"]["up"]
series = way["chain"]["payload"]
points = next(values for key, values in series.items() if key.startswith("value"))
# The last interval is not over; the one before may hold the end of the flow.
busy = [p for p in points if p > 0][:-3][-50:]
late = way["driver"]["lateness_s"]
print(sum(busy) * 8 / (len(busy) * 0.1) / 1e9, late["p50"] * 1e6, late["p99"] * 1e6, way["driver"]["overrun"])
PY
    )
    printf 'late %.0f µs (median), %.0f µs (p99); marked as overrun: %s\n' "$p50" "$p99" "$overrun"
}
goodput=$(awk 'BEGIN { print 10 * 1448 / 1538 }')
one_flow 536870912 536870912
verdict "one flow, 10 Gbit/s and 50 ms, large buffers: of goodput" "$(awk -v r="$rate" -v g="$goodput" 'BEGIN { print r / g * 100 }')" % '>=' 95
one_flow 6291456 4194304
verdict "one flow, 10 Gbit/s and 50 ms, stock buffers" "$rate" Gbit/s '<=' 1

# Nobody listens at the far end of what follows: an answer to each packet would be as much again.
silent="silent = true"

# 1 Gbit/s of packets one by one through an AQM. The last packet leaves when the flood is over and
# the queue is empty.
single='{ type = "shaper", rate = "1gbit", queue = "fq_codel" }, { type = "delay", delay = "5ms" }'
line "$single" "$single" "" "$silent" > "$work/single.toml"
one_by_one() {
    "$plumb" lab run "$work/single.toml" --stats "$work/stats.json" -- \
        plumb lab flood server --rate 1050mbit --size 1472 --duration 5s >/dev/null 2>&1
    python3 - "$work/stats.json" <<'PY'
import json, sys
way = json.load(open(sys.argv[1]))["links"]["line"]["up"]
flow = max(way["chain"]["flows"], key=lambda f: f["delivered"]["bytes"])
late = way["driver"]["lateness_s"]
rate = flow["delivered"]["bytes"] * 8 / (5 + flow["transit_s"]["p99"])
cpu = way["driver"]["cpu_s"] / flow["delivered"]["packets"]
print(abs(rate / 1e9 - 1) * 100, late["p50"] * 1e6, late["p99"] * 1e6, cpu * 1e6, way["driver"]["overrun"])
PY
}
for _ in $(seq $pairs); do one_by_one; done > "$work/single"
column() { cut -d ' ' -f "$1" "$work/single" | median; }
what="1 Gbit/s in packets of 1500 bytes, one by one"
verdict "$what: off the rate by" "$(column 1)" % '<=' 1
verdict "$what: late (median)" "$(column 2)" µs '<=' 25
verdict "$what: late (p99)" "$(column 3)" µs '<=' 100
printf '  p99 of each run:%s; %.1f µs of a processor each, waiting included; marked as overrun: %s of %s\n' \
    "$(cut -d ' ' -f 3 "$work/single" | xargs printf ' %.0f')" "$(column 4)" "$(grep -c True "$work/single")" "$pairs"

# Both directions at once through two such links in a row: what the machine cannot carry must be
# marked.
both_ways() { # rate
    local way="[{ type = \"shaper\", rate = \"$1\", queue = \"fq_codel\" }]"
    cat > "$work/two.toml" <<TOML
name = "two"
summary = "two links in a row"
[[node]]
name = "client"
[[node]]
name = "router"
forward = true
[[node]]
name = "server"
[[link]]
name = "near"
between = ["client", "router"]
up = $way
down = $way
[[link]]
name = "far"
between = ["router", "server"]
up = $way
down = $way
[[service]]
node = "server"
run = ["plumb", "serve", "--quiet"]
port = 7586
TOML
    "$plumb" lab run "$work/two.toml" -- \
        "$plumb" rate server --both --streams 4 --duration 5s --budget 20GB --json 2>/dev/null | python3 -c "
import json, sys
run = json.load(sys.stdin)
rates = [m['result']['bps'] for m in run['measurements'] if m['kind'] == 'throughput']
lab = run['local']['lab']
share = min(rates) / (int('$1'.removesuffix('mbit')) * 1e6 * 1448 / 1500)
print(share * 100, lab['overrun'], int(share < 0.95 and not lab['overrun']), lab['starved_ratio'] * 100)"
}
for rate in 500mbit 1000mbit 2000mbit; do
    for _ in $(seq $pairs); do both_ways $rate; done > "$work/two"
    verdict "$rate both ways over two links: runs short of it and not marked" "$(awk '{ n += $3 } END { print n }' "$work/two")" "" '<=' 0
    printf '  of goodput:%s %%; ends starved:%s %% of the time; marked as overrun: %s of %s\n' \
        "$(cut -d ' ' -f 1 "$work/two" | xargs printf ' %.0f')" "$(cut -d ' ' -f 4 "$work/two" | xargs printf ' %.0f')" \
        "$(grep -c True "$work/two")" "$pairs"
done

# 50 Mbit/s of such packets: the processor time of the thread that carries them through a link, and
# of one between a bare pair of TUN devices, which reads and writes, or keeps each packet for the
# 240 µs that it takes on the line and does nothing else.
fifty='{ type = "shaper", rate = "50mbit" }'
line "$fifty" "$fifty" "" "$silent" > "$work/fifty.toml"
flood='--rate 50mbit --size 1472 --duration 2s'
bare() { "$bare_tun" "$1" "$plumb" lab flood 10.0.0.2 $flood | awk 'END { print $2 / $1 * 1e6 }'; }
link() {
    "$plumb" lab run "$work/fifty.toml" --stats "$work/stats.json" -- plumb lab flood server $flood >/dev/null 2>&1
    python3 -c "
import json
way = json.load(open('$work/stats.json'))['links']['line']['up']
print(way['driver']['cpu_s'] / way['chain']['delivered']['packets'] * 1e6)"
}
forward="" keep="" ours=""
for _ in $(seq $pairs); do
    forward+=" $(bare 0)"; ours+=" $(link)"; keep+=" $(bare 240)"
done
verdict "50 Mbit/s, processor time of a packet: of a bare pair's" "$(ratio "$ours" "$forward")" "" '<=' 1.3 \
    "a packet that leaves at its time needs a timer, and a bare pair has none" 10
verdict "  of that of a pair with a timer for each packet" "$(ratio "$ours" "$keep")" "" '<=' 1.3
printf '  %.1f µs each\n' "$(printf '%s\n' $ours | median)"

# Fifty nodes in a row, with veth between them: the time from the command to a program in the first
# one and back, everything taken down.
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
verdict "fifty nodes up and down" "$(printf '%s\n' $took | median)" s '<=' 2
