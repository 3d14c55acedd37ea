#!/usr/bin/env bash
# TCP throughput side by side with iperf3: rate and processor time a byte, in pairs in the same run,
# medians of five. Needs root and a quiet machine.
#
#     bench/rate.sh PLUMB
#
# PAIRS and TIME (seconds of each measurement) can be set. Each line ends in its bound and pass or FAIL; those
# without a bound are for looking at.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${PAIRS:-5}
time=${TIME:-3}

. "$(dirname "$0")/common.sh"
need ip iproute2; need iperf3 iperf3; need python3 python3; need sysctl procps
pair "$plumb"
serve iperf3 -s
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

# Each prints: Gbit/s, processor seconds a GB at both ends together, and at the receiver alone.
ours() { # direction, options
    local direction=$1; shift
    ip netns exec "$client" "$plumb" rate "$address" "--$direction" --duration "${time}s" --json "$@" 2>/dev/null |
        python3 -c "
import json, sys
r = next(m['result'] for m in json.load(sys.stdin)['measurements'] if m['kind'] == 'throughput')
here, far = r['cpu']['local_s_per_gb'], r['cpu']['remote_s_per_gb']
print(r['bps'] / 1e9, here + far, here if '$direction' == 'down' else far)"
}
theirs() { # direction, options
    local reverse=; [ "$1" = down ] && reverse=-R; shift
    ip netns exec "$client" iperf3 -c "$address" -t "$time" -C cubic $reverse -J "$@" |
        python3 -c "
import json, sys
e = json.load(sys.stdin)['end']
cpu, got = e['cpu_utilization_percent'], e['sum_received']
gb = got['bytes'] / 1e9
per_gb = lambda percent: percent / 100 * got['seconds'] / gb
print(got['bits_per_second'] / 1e9, per_gb(cpu['host_total'] + cpu['remote_total']), per_gb(cpu['host_total'] if '$reverse' else cpu['remote_total']))"
}

# One line: the medians of a column of both, and the median of the pairs' ratios beside its bound.
compare() { # what, unit, column, operator, bound, file with "ours" lines, file with "theirs" lines
    local ratio
    ratio=$(paste -d' ' "$6" "$7" | python3 -c "
import statistics, sys
rows = [[float(x) for x in line.split()] for line in sys.stdin]
column, wide = $3, len(rows[0]) // 2
a, b = [r[column] for r in rows], [r[wide + column] for r in rows]
print(f'{\"$1\"}: {statistics.median(a):.3g} against {statistics.median(b):.3g} $2', file=sys.stderr)
print(statistics.median(x / y for x, y in zip(a, b)))")
    if [ -n "$4" ]; then verdict "  ratio" "$ratio" "" "$4" "$5"; else printf '  ratio %.2f\n' "$ratio"; fi
} 2>&1

work=$(mktemp -d); trap 'rm -rf "$work"; end_pair' EXIT
# default CC: what new sockets of both ends begin with. One that begins with BBR stays paced when it
# changes to CUBIC, as iperf3's do.
usual=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
default() { for end in "$client" "$server"; do ip netns exec "$end" sysctl -qw net.ipv4.tcp_congestion_control="$1"; done; }
for direction in up down; do
    : >"$work/ours"; : >"$work/default"; : >"$work/best"; : >"$work/ours-discard"; : >"$work/unpaced"
    for _ in $(seq "$pairs"); do
        ours "$direction" >>"$work/ours"
        theirs "$direction" >>"$work/default"
        theirs "$direction" -l 1M >>"$work/best"
        default reno
        theirs "$direction" >>"$work/unpaced"
        default "$usual"
        ours "$direction" --discard >>"$work/ours-discard"
    done
    compare "TCP $direction, one stream, against iperf3" Gbit/s 0 '>=' 1.5 "$work/ours" "$work/default"
    compare "TCP $direction, one stream, against iperf3 that did not begin with $usual" Gbit/s 0 "" "" "$work/ours" "$work/unpaced"
    compare "TCP $direction, one stream, against iperf3 -l 1M" Gbit/s 0 '>=' 0.95 "$work/ours" "$work/best"
    compare "TCP $direction, processor, both ends, against iperf3" s/GB 1 '<=' 1 "$work/ours" "$work/default"
    compare "TCP $direction, processor, both ends, against iperf3 -l 1M" s/GB 1 '<=' 1 "$work/ours" "$work/best"
    compare "TCP $direction, processor of the receiver, --discard against not" s/GB 2 '<=' 0.8 "$work/ours-discard" "$work/ours"
done

# A hundred streams through a link that serves each in turn, with pinned windows that always leave
# something waiting and never overflow it: what is left of a difference is the program's own.
queue='{ type = "fq_codel", flows = 65536, limit = "20000p", target = "1s", interval = "10s" }'
delay='{ type = "delay", delay = "5ms" }'
line '{ type = "shaper", rate = "500mbit", framing = "ethernet", queue = '"$queue }, $delay" "$delay" >"$work/fair.toml"
for _ in $(seq "$pairs"); do
    "$plumb" lab run "$work/fair.toml" -- "$plumb" rate server --up --streams 100 --window 64KiB --duration 10s --json 2>/dev/null |
        python3 -c "
import json, sys
r = next(m['result'] for m in json.load(sys.stdin)['measurements'] if m['kind'] == 'throughput')
rates = [s['bps'] for s in r['streams']]
print((max(rates) - min(rates)) / max(rates) * 100)"
done >"$work/spread"
verdict "100 streams, fair link: slowest below the fastest by" "$(median <"$work/spread")" % '<=' 5

# What encrypts in its program: QUIC beside TLS over TCP.
encrypted() { # kind of result, options
    local kind=$1; shift
    ip netns exec "$client" "$plumb" rate "$address" --up --duration "${time}s" --json "$@" 2>/dev/null |
        python3 -c "
import json, sys
r = next(m['result'] for m in json.load(sys.stdin)['measurements'] if m['kind'] == '$kind')
print(r['bps'] / 1e9, r['cpu']['local_s_per_gb'] + r['cpu']['remote_s_per_gb'])"
}
: >"$work/quic"; : >"$work/tls"
for _ in $(seq "$pairs"); do
    encrypted quic --quic >>"$work/quic"
    encrypted throughput --tls >>"$work/tls"
done
compare "QUIC up, one stream, against TLS over TCP" Gbit/s 0 "" "" "$work/quic" "$work/tls"
compare "QUIC up, processor, both ends, against TLS over TCP" s/GB 1 "" "" "$work/quic" "$work/tls"

# Round trips a minute where the queue is for all, beside those that small UDP packets had in the last four intervals, of
# which they are: before that connections were added, and the queue grew. Requests on loaded connections wait besides until
# a window opens, which is a twentieth of the number here. 20 Mbit/s and 100 ms.
cat >"$work/rpm.toml" <<'TOML'
name = "rpm"
summary = "windows that are the queue"
[[node]]
name = "client"
sysctl = { "net.ipv4.tcp_rmem" = "4096 262144 262144" }
[[node]]
name = "server"
[[link]]
name = "line"
between = ["client", "server"]
up = [{ type = "delay", delay = "50ms" }]
down = [
    { type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "400ms" } },
    { type = "delay", delay = "50ms" },
]
[[service]]
node = "server"
run = ["plumb", "serve", "--quiet"]
port = 7586
TOML
for _ in $(seq "$pairs"); do
    "$plumb" lab run "$work/rpm.toml" -- "$plumb" load server --rpm --down --streams 4 --json 2>/dev/null |
        python3 -c "
import json, statistics, sys
of = {m['kind']: m for m in json.load(sys.stdin)['measurements']}
found, beside = of['responsiveness']['result'], of['loaded_latency']
rtt, since = beside['series']['rtt'], beside['duration_s'] - 4 * found['interval_s']
counted = [s for t, s in zip(rtt['t_s'], rtt['value_s']) if s is not None and t >= since]
print(found['rpm'] / (60 / statistics.mean(counted)))"
done >"$work/rpm"
verdict "round trips a minute, of what UDP round trips meanwhile allowed" "$(median <"$work/rpm")" "" '>=' 0.9
