#!/usr/bin/env bash
# plumb serve side by side with the servers of its clients: iperf3's client against both, a reflector against a bare loop, and the
# memory that it takes. Needs root and a quiet machine.
#
#     bench/serve.sh PLUMB REFLECTION
#
# PAIRS and TIME (seconds of each measurement) can be set. Each line ends in its bound and pass or FAIL.
set -euo pipefail
plumb=$(realpath "$1") reflection=$(realpath "$2")
pairs=${PAIRS:-10}
time=${TIME:-3}

. "$(dirname "$0")/common.sh"
need ip iproute2; need iperf3 iperf3; need python3 python3
pair "$plumb"
serve "$plumb" serve --quiet --port 7587 --port-of iperf3=5301 --without irtt --port-of web=4143 --port-of stamp=1862
ours=${pids[-1]}
serve iperf3 -s
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

resident() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$ours/status"; }
# The responder is a child of what enters the namespace, or that itself.
ours=$(pgrep -P "$ours" || echo "$ours")
idle=$(resident)
verdict "memory of an idle responder" "$idle" MB '<=' 20
# A hundred clients of the web that keep their connections; the responder closes them after 5 s.
ip netns exec "$client" python3 - "$address" <<'PY' &
import socket, sys, time
open_ = []
for n in range(60):
    s = socket.create_connection((sys.argv[1], 4143)); s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"); s.recv(4096); open_.append(s)
time.sleep(2)
PY
clients=$!
sleep 1.5
verdict "memory of each of 60 clients of the web" "$(awk -v a="$(resident)" -v b="$idle" 'BEGIN { print (a - b) / 60 }')" MB '<=' 1
wait "$clients"

rate() { # port, options
    local port=$1; shift
    ip netns exec "$client" iperf3 -c "$address" -p "$port" -t "$time" -J "$@" |
        json "d['end']['sum_received']['bits_per_second'] / 1e9"
}
for options in "" "-R" "-P 4"; do
    a=() b=()
    for ((i = 0; i < pairs; i++)); do
        # Which comes first alternates: a machine that slows down is then fair to both.
        if ((i % 2)); then a+=("$(rate 5301 $options)"); b+=("$(rate 5201 $options)")
        else b+=("$(rate 5201 $options)"); a+=("$(rate 5301 $options)"); fi
    done
    report "iperf3 -c $options" Gbit/s "${a[*]}" "${b[*]}" "iperf3 -s"
    # The median of the ratios, and the lower end of its 95 % interval (2,000 resamples).
    read -r middle low high < <(paste <(printf '%s\n' "${a[@]}") <(printf '%s\n' "${b[@]}") | python3 -c "
import random, statistics, sys
random.seed(1)
ratios = [float(x) / float(y) for x, y in map(str.split, sys.stdin)]
again = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
print(statistics.median(ratios), again[50], again[1949])")
    printf '  median of the ratios %.3f, 95 %% interval %.3f to %.3f\n' "$middle" "$low" "$high"
    # At least as fast, or no difference can be shown.
    why=
    [ "$options" != "-P 4" ] || why="on two processors iperf3's client shares its own with the threads of four streams"
    verdict "  the median, or the interval's end where it has 1.0" \
        "$(awk -v m="$middle" -v l="$low" -v h="$high" 'BEGIN { print (m >= 1 || l >= 0.95 && h >= 1) ? 1 : m }')" "" '>=' 1 "$why" 1
done

ip netns exec "$server" "$reflection" bare 5863 > /dev/null & pids+=($!)
a=() b=()
for ((i = 0; i < 3 * pairs; i++)); do
    a+=("$(ip netns exec "$client" "$reflection" ask "$address:862" 10000 | cut -d ' ' -f 2)")
    b+=("$(ip netns exec "$client" "$reflection" ask "$address:5863" 10000 | cut -d ' ' -f 2)")
done
echo "STAMP, 10,000 a second, 99th percentile, µs: $(printf '%s\n' "${a[@]}" | median) against $(printf '%s\n' "${b[@]}" | median) of a bare loop"
verdict "STAMP beyond a bare loop (median of the pairs' differences)" \
    "$(paste -d ' ' <(printf '%s\n' "${a[@]}") <(printf '%s\n' "${b[@]}") | awk '{ print $1 - $2 }' | median)" µs '<=' 5
