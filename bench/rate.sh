#!/usr/bin/env bash
# TCP throughput side by side with iperf3: rate and processor time a byte, in pairs in the same run,
# medians of five. Needs root and a quiet machine.
#
#     bench/rate.sh PLUMB
set -euo pipefail
plumb=$(realpath "$1")
pairs=${PAIRS:-5}
time=${TIME:-3}

. "$(dirname "$0")/common.sh"
need ip iproute2; need iperf3 iperf3; need python3 python3
pair "$plumb"
serve iperf3 -s

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

# One line: the medians of a column of both, and the median of the pairs' ratios.
compare() { # what, unit, column, wanted, file with "ours" lines, file with "theirs" lines
    paste -d' ' "$5" "$6" | python3 -c "
import statistics, sys
rows = [[float(x) for x in line.split()] for line in sys.stdin]
column, wide = $3, len(rows[0]) // 2
a, b = [r[column] for r in rows], [r[wide + column] for r in rows]
ratio = statistics.median(x / y for x, y in zip(a, b))
print(f'{\"$1\":<58} {statistics.median(a):8.3f} against {statistics.median(b):8.3f} $2   ratio {ratio:.2f} (wanted: $4)')"
}

work=$(mktemp -d); trap 'rm -rf "$work"; end_pair' EXIT
for direction in up down; do
    : >"$work/ours"; : >"$work/default"; : >"$work/best"; : >"$work/ours-discard"
    for _ in $(seq "$pairs"); do
        ours "$direction" >>"$work/ours"
        theirs "$direction" >>"$work/default"
        theirs "$direction" -l 1M >>"$work/best"
        ours "$direction" --discard >>"$work/ours-discard"
    done
    compare "TCP $direction, one stream, against iperf3" Gbit/s 0 '>= 1.5' "$work/ours" "$work/default"
    compare "TCP $direction, one stream, against iperf3 -l 1M" Gbit/s 0 '>= 0.95' "$work/ours" "$work/best"
    compare "TCP $direction, processor, both ends, against iperf3" s/GB 1 '<= 1' "$work/ours" "$work/default"
    compare "TCP $direction, processor, both ends, against iperf3 -l 1M" s/GB 1 '<= 1' "$work/ours" "$work/best"
    compare "TCP $direction, processor of the receiver, --discard against not" s/GB 2 '<= 0.8' "$work/ours-discard" "$work/ours"
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
done | python3 -c "
import statistics, sys
print(f'{\"100 streams, fair link: slowest below the fastest by\":<58} {statistics.median(map(float, sys.stdin)):8.2f} % (wanted: <= 5)')"
