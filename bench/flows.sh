#!/usr/bin/env bash
# Flows: NetFlow 9 into `plumb watch flows`, which sums them up in nine dimensions, beside nfcapd, which writes them to a file (in
# memory), and beside nfcapd with the nfdump that makes the same sums of that file. Each has one processor, and the sender another
# one. Medians of five pairs. Needs root, two processors and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${2:-5}
here=$(dirname "$(realpath "$0")")
. "$here/common.sh"
need gcc gcc; need python3 python3; need nfcapd nfdump
work=$(mktemp -d /dev/shm/plumb-bench.XXXXXX)
trap 'rm -rf "$work"' EXIT
gcc -O2 -o "$work/make_flows" "$here/make_flows.c"
nfcapd -V 2>&1 | head -1
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"
# A buffer that holds what comes while a file is written. What the machine had is put back.
rmem=$(cat /proc/sys/net/core/rmem_max)
echo $((64 << 20)) > /proc/sys/net/core/rmem_max
trap 'rm -rf "$work"; echo "$rmem" > /proc/sys/net/core/rmem_max' EXIT
seconds=6 port=$((20000 + RANDOM % 10000))

send() { taskset -c 0 "$work/make_flows" "$port" "$seconds" "$1"; }

# spent PID: seconds of processor that a process has had so far.
spent() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"; }

# ours RATE: flows that were sent, that were taken, and seconds of processor for them. theirs RATE: the same, and seconds of nfdump.
ours() {
    taskset -c 1 "$plumb" watch flows "127.0.0.1:$port" --json > "$work/seen.json" 2> /dev/null & local collector=$!
    sleep 1
    local before sent used
    before=$(spent "$collector"); sent=$(send "$1"); sleep 1; used=$(spent "$collector")
    kill -INT "$collector"; wait "$collector" || true
    echo "$sent $(json "d['exporters'][0]['flows']" < "$work/seen.json") $(awk -v a="$before" -v b="$used" 'BEGIN { print b - a }')"
}
theirs() {
    rm -rf "$work/files"; mkdir "$work/files"
    taskset -c 1 nfcapd -b 127.0.0.1 -p "$port" -B $((32 << 20)) -w "$work/files" > /dev/null 2>&1 & local collector=$!
    sleep 1
    local before sent used
    before=$(spent "$collector"); sent=$(send "$1"); sleep 1; used=$(spent "$collector")
    kill -TERM "$collector"; wait "$collector" || true
    local flows sums=() of
    flows=$(nfdump -I -r "$work"/files/nfcapd.* | awk '/^Flows:/ { print $2 }')
    for of in srcip dstip srcas dstas srcport srctos inif outif; do sums+=(-s "$of/bytes"); done
    echo "$sent $flows $(awk -v a="$before" -v b="$used" 'BEGIN { print b - a }') $(processor taskset -c 1 nfdump -q -n 50 "${sums[@]}" -r "$work"/files/nfcapd.*)"
}

# processor COMMAND…: seconds of processor that it takes.
processor() { python3 -c "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)" "$@"; }

# beside NAME RATE: thousands of flows a second that each takes, and a second of processor is enough for, in k/s.
beside() {
    local our_rate="" their_rate="" our_cost="" their_cost="" sums_cost="" lost=""
    for _ in $(seq "$pairs"); do
        read -r sent taken used < <(ours "$2")
        our_rate+=" $(awk -v n="$taken" -v s=$seconds 'BEGIN { print n / s / 1000 }')"
        our_cost+=" $(awk -v n="$taken" -v u="$used" 'BEGIN { print n / u / 1000 }')"
        lost+=" $(awk -v n="$taken" -v s="$sent" 'BEGIN { print 100 * (s - n) / s }')"
        read -r sent taken used summed < <(theirs "$2")
        their_rate+=" $(awk -v n="$taken" -v s=$seconds 'BEGIN { print n / s / 1000 }')"
        their_cost+=" $(awk -v n="$taken" -v u="$used" 'BEGIN { print n / u / 1000 }')"
        sums_cost+=" $(awk -v n="$taken" -v u="$used" -v s="$summed" 'BEGIN { print n / (u + s) / 1000 }')"
    done
    report "$1, taken" "k/s" "$our_rate" "$their_rate" nfcapd
    report "  a second of processor takes" "k" "$our_cost" "$their_cost" nfcapd
    report "  a second, to the same sums" "k" "$our_cost" "$sums_cost" nfcapd+nfdump
    verdict "  ratio" "$(ratio "$our_cost" "$sums_cost")" "" '>=' 1.0
    our_lost=$(printf '%s\n' $lost | median) our_median=$(printf '%s\n' $our_rate | median)
}

beside "300,000 flows a second" 300000
verdict "  of them lost" "$our_lost" % '<=' 0.1
beside "as many flows as can be sent" 0
verdict "  of plumb" "$our_median" k/s '>=' 300
