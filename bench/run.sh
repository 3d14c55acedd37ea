#!/usr/bin/env bash
# plumb side by side with peers, in pairs in the same run: medians of five and their ratio.
# Everything happens in network namespaces that this script makes. Needs root; installs peers
# from Debian when they are missing.
set -euo pipefail
plumb=$(realpath "$1")
pairs=5

need() { command -v "$1" >/dev/null || apt-get install -y -qq "$2" >/dev/null; }
command -v iperf3 >/dev/null && command -v fping >/dev/null || apt-get update -qq
need ip iproute2; need iperf3 iperf3; need fping fping; need python3 python3

a=plumb-bench-a-$$ b=plumb-bench-b-$$
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
}
trap cleanup EXIT
ip netns add "$a"; ip netns add "$b"
ip link add veth0 netns "$a" type veth peer name veth0 netns "$b"
ip -n "$a" addr add 10.9.0.1/24 dev veth0; ip -n "$b" addr add 10.9.0.2/24 dev veth0
ip -n "$a" link set veth0 up; ip -n "$b" link set veth0 up
ip -n "$a" link set lo up; ip -n "$b" link set lo up

ip netns exec "$b" "$plumb" serve --quiet & pids+=($!)
ip netns exec "$b" iperf3 -s >/dev/null 2>&1 & pids+=($!)
sleep 1

median() { sort -g | awk '{v[NR]=$1} END {print (NR%2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
report() { # name unit plumb-values peer-values
    local ours peers
    ours=$(printf '%s\n' $3 | median); peers=$(printf '%s\n' $4 | median)
    awk -v n="$1" -v u="$2" -v o="$ours" -v p="$peers" -v b="$5" \
        'BEGIN { printf "%-44s plumb %10.4g %s   %s %10.4g %s   ratio %.2f\n", n, o, u, b, p, u, o/p }'
}
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

"$(dirname "$0")/rate.sh" "$plumb" "$a" 10.9.0.2

ours="" peers=""
for _ in $(seq $pairs); do
    ours+=" $(ip netns exec "$a" "$plumb" ping 10.9.0.2 --count 100 --interval 10ms --json 2>/dev/null |
        json "next(m['result']['rtt_s']['p50'] for m in d['measurements'] if m['kind']=='ping')*1e6")"
    peers+=" $(ip netns exec "$a" fping -q -C 100 -p 10 10.9.0.2 2>&1 | python3 -c "import sys,statistics as s; print(s.median(float(x) for x in sys.stdin.read().split(':')[1].split())*1e3)")"
done
report "idle ICMP round trip, veth, median" µs "$ours" "$peers" fping

ours="" peers=""
for _ in $(seq $pairs); do
    ours+=" $(python3 -c "import subprocess,time; t=time.perf_counter(); subprocess.run(['$plumb','--version'],stdout=subprocess.DEVNULL); print((time.perf_counter()-t)*1e3)")"
    peers+=" $(python3 -c "import subprocess,time; t=time.perf_counter(); subprocess.run(['iperf3','--version'],stdout=subprocess.DEVNULL); print((time.perf_counter()-t)*1e3)")"
done
report "start-up, --version" ms "$ours" "$peers" iperf3
printf '%-44s %s\n' "release binary (at most 20 MB)" "$(stat -c %s "$plumb" | awk '{printf "%.1f MB", $1/1e6}')"
