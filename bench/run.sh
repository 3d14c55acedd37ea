#!/usr/bin/env bash
# Idle round trips and the start-up, beside peers, in pairs in the same run: medians of five and
# their ratio. Needs root; installs peers from Debian when they are missing.
set -euo pipefail
plumb=$(realpath "$1")
pairs=5

. "$(dirname "$0")/common.sh"
need ip iproute2; need iperf3 iperf3; need fping fping; need python3 python3
pair "$plumb"

ours="" peers=""
for _ in $(seq $pairs); do
    ours+=" $(ip netns exec "$client" "$plumb" ping "$address" --count 100 --interval 10ms --json 2>/dev/null |
        json "next(m['result']['rtt_s']['p50'] for m in d['measurements'] if m['kind']=='ping')*1e6")"
    peers+=" $(ip netns exec "$client" fping -q -C 100 -p 10 "$address" 2>&1 | python3 -c "import sys,statistics as s; print(s.median(float(x) for x in sys.stdin.read().split(':')[1].split())*1e3)")"
done
report "idle ICMP round trip, veth, median" µs "$ours" "$peers" fping

ours="" peers=""
for _ in $(seq $pairs); do
    ours+=" $(python3 -c "import subprocess,time; t=time.perf_counter(); subprocess.run(['$plumb','--version'],stdout=subprocess.DEVNULL); print((time.perf_counter()-t)*1e3)")"
    peers+=" $(python3 -c "import subprocess,time; t=time.perf_counter(); subprocess.run(['iperf3','--version'],stdout=subprocess.DEVNULL); print((time.perf_counter()-t)*1e3)")"
done
report "start-up, --version" ms "$ours" "$peers" iperf3
