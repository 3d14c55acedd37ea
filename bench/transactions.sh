#!/usr/bin/env bash
# Transactions side by side with qperf, which is in Debian where netperf is not, and sends a byte and
# waits for one as netperf's TCP_RR and UDP_RR do: medians of five pairs, and their ratio, which has no bound.
# Needs root and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${2:-5}
seconds=2

. "$(dirname "$0")/common.sh"
need ip iproute2; need qperf qperf; need python3 python3
pair "$plumb"
serve qperf
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

ours() { # options: transactions a second
    ip netns exec "$client" "$plumb" transactions "$address" --duration ${seconds}s "$@" --json 2>/dev/null |
        python3 -c "import json,sys; print(json.load(sys.stdin)['measurements'][0]['result']['rate_tps'])"
}
theirs() { # bytes test: qperf tells half of a round trip
    ip netns exec "$client" qperf -t $seconds -m "$1" -uu -v "$address" "$2" |
        python3 -c "
import re, sys
value, unit = re.search(r'latency\s*=\s*([\d.,]+)\s*(\w+)', sys.stdin.read()).groups()
print(1 / (2 * float(value.replace(',', '')) * {'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 'sec': 1}[unit]))"
}
beside() { # label plumb-options -- qperf-bytes qperf-test
    local label=$1 options=() o="" t=""
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    for _ in $(seq "$pairs"); do
        o+=" $(ours "${options[@]}")"
        [ "$#" -lt 3 ] || t+=" $(theirs "$2" "$3")"
    done
    python3 - "$label" "$o" "$t" <<'PY'
import statistics, sys
ours, theirs = (statistics.median(map(float, v.split())) if v else None for v in sys.argv[2:])
line = f"{sys.argv[1]:<44} plumb {ours:10.0f} a second"
print(line + (f"   qperf {theirs:10.0f}   ratio {ours / theirs:.2f}" if theirs else "   (no peer)"))
PY
}
beside "TCP_RR, 1 byte each way, veth" -- 1 tcp_lat
beside "UDP_RR, 64 bytes each way, veth" --udp -- 64 udp_lat
beside "TCP_RR over TLS, 1 byte each way, veth" --tls --
beside "TCP_CRR, 1 byte each way, veth" --connect --
beside "TCP_CRR over TLS, 1 byte each way, veth" --connect --tls --
