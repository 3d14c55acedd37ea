#!/usr/bin/env bash
# Captures: reading them beside capinfos, which only counts (-c -d -u: without its checksums), and beside tcptrace and tshark, which analyse; memory; and capturing
# an interface beside tcpdump. Medians of five pairs. Needs root, 6 GB in TMPDIR and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${2:-5}
here=$(dirname "$(realpath "$0")")
. "$here/common.sh"
need gcc gcc; need python3 python3; need capinfos wireshark-common; need tshark tshark; need tcptrace tcptrace; need tcpdump tcpdump
work=$(mktemp -d)
pair "$plumb"
end() { end_pair; rm -rf "$work"; }
trap end EXIT
gcc -O2 -o "$work/make_capture" "$here/make_capture.c"
capinfos --version | head -1; tcptrace -v 2>&1 | head -1; tcpdump --version 2>&1 | head -1
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

# spent COMMAND…: seconds by the clock, and the largest resident set in MiB.
spent() { python3 -c "
import resource, subprocess, sys, time
begun = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
print(time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)" "$@"; }

# analysed NAME CPUS BOUND FILE: plumb's analysis on those processors beside capinfos on one.
analysed() {
    local name=$1 cpus=$2 bound=$3 file=$4 ours="" peers=""
    cat "$file" > /dev/null
    for _ in $(seq "$pairs"); do
        ours+=" $(spent taskset -c "$cpus" "$plumb" capture --quiet "$file" | cut -d ' ' -f 1)"
        peers+=" $(spent taskset -c 1 capinfos -c -d -u "$file" | cut -d ' ' -f 1)"
    done
    report "$name" s "$ours" "$peers" capinfos
    verdict "  ratio" "$(ratio "$ours" "$peers")" "" '<=' "$bound"
}

"$work/make_capture" full 1300000 8 > "$work/full"
analysed "2 GB of full segments, one processor" 1 1.0 "$work/full"
analysed "the same, two processors" 0,1 0.65 "$work/full"
# What analyses as plumb does, on a tenth: it is slow.
head -c 200000000 "$work/full" > "$work/tenth"
ours=$(spent taskset -c 1 "$plumb" capture --quiet "$work/tenth" | cut -d ' ' -f 1)
for peer in "tcptrace -l -r" "tshark -q -z expert"; do
    case $peer in tshark*) file=(-r "$work/tenth") ;; *) file=("$work/tenth") ;; esac
    theirs=$(spent taskset -c 1 $peer "${file[@]}" 2>/dev/null | cut -d ' ' -f 1 || echo 0)
    report "200 MB, one processor" s "$ours" "${theirs:-0}" "$peer"
done
rm -f "$work/full" "$work/tenth"
"$work/make_capture" small 20000000 1000 > "$work/small"
analysed "20 million datagrams of 64 bytes, one processor" 1 1.0 "$work/small"
rm -f "$work/small"

"$work/make_capture" idle 1000000 1 > "$work/idle"
verdict "a million idle connections, resident" "$(spent "$plumb" capture --quiet "$work/idle" | cut -d ' ' -f 2)" MiB '<=' 1500
rm -f "$work/idle"
piped="'$work/make_capture' full 6500000 64 | '$plumb' capture --quiet -"
verdict "10 GB through a pipe, resident" "$(spent sh -c "$piped" | cut -d ' ' -f 2)" MiB '<=' 1000

# An interface while datagrams of 64 bytes pass as fast as plumb sends them: the sender on one processor, the capture on the other.
# Prints thousands of packets a second that were captured, and the share in per cent that was not.
seconds=4
passes() {
    ip netns exec "$client" taskset -c 0 "$plumb" rate "$address" --up --udp --rate max --size 18 --duration ${seconds}s \
        --budget 100GB --quiet > /dev/null
}
figures() { awk -v c="$1" -v d="$2" -v s=$seconds 'BEGIN { printf "%.1f %.3f\n", c / s / 1000, 100 * d / (c + d) }'; }
ours_live() {
    ip netns exec "$server" taskset -c 1 "$plumb" capture -i veth0 --for $((seconds + 3))s --json "$@" > "$work/run.json" 2> /dev/null &
    local capture=$!
    sleep 1; passes; wait "$capture"
    figures $(json "'%d %d' % (d['measurements'][0]['result']['packets'], d['measurements'][0]['result']['flaws']['dropped'])" < "$work/run.json")
}
theirs_live() {
    ip netns exec "$server" taskset -c 1 tcpdump -i veth0 -s 96 -w /dev/shm/plumb-bench.pcap 2> "$work/said" & local capture=$!
    sleep 1; passes; sleep 1; kill -INT "$capture"; wait "$capture" || true
    figures $(awk '/packets captured/ { c = $1 } /dropped by kernel/ { d = $1 } END { print c, d }' "$work/said")
}
table="" ours="" peers="" lost="" theirs_lost=""
for _ in $(seq "$pairs"); do
    table+=" $(ours_live | cut -d ' ' -f 2)"
    read -r rate gone < <(ours_live --snaplen 96 -w /dev/shm/plumb-bench.pcapng)
    ours+=" $rate" lost+=" $gone"
    read -r rate gone < <(theirs_live)
    peers+=" $rate" theirs_lost+=" $gone"
    rm -f /dev/shm/plumb-bench.pcap /dev/shm/plumb-bench.pcapng
done
verdict "64-byte packets into the table of flows, lost" "$(printf '%s\n' $table | median)" % '<=' 0.1
report "the same to a file, 96 bytes of each" "k/s" "$ours" "$peers" tcpdump
verdict "  ratio" "$(ratio "$ours" "$peers")" "" '>=' 1.0
verdict "  lost" "$(printf '%s\n' $lost | median)" % '<=' "$(printf '%s\n' $theirs_lost | median)"
