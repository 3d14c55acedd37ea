#!/usr/bin/env bash
# Many targets: how many a second on one core beside a bare loop, what ten thousand a second adds to
# each round trip beside fping, and memory. Medians of five pairs. Over the loopback, whose addresses all
# answer; needs root and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${2:-5}
here=$(dirname "$(realpath "$0")")
. "$here/common.sh"
need fping fping; need gcc gcc; need python3 python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -o "$work/bare_echo" "$here/bare_echo.c"
# The same addresses as the bare loop: 127.0.0.1 and those after it.
python3 -c "
for n in range(1, 100001): print(f'127.{n >> 16}.{n >> 8 & 255}.{n & 255}')
" > "$work/targets"
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

# As fast as one core goes: targets a second and false losses.
ours="" bare="" lost=0
for _ in $(seq "$pairs"); do
    bare+=" $(taskset -c 1 "$work/bare_echo" 100000 | cut -d ' ' -f 1)"
    taskset -c 1 "$plumb" ping --file "$work/targets" --pps 1000000 -c 1 --json > "$work/run.json"
    # Answers over the time until the last of them, as the bare loop counts.
    ours+=" $(json "d['measurements'][0]['result']['received']/d['measurements'][0]['duration_s']" < "$work/run.json")"
    lost=$((lost + $(json "d['measurements'][0]['result']['sent']-d['measurements'][0]['result']['received']" < "$work/run.json")))
done
report "100,000 targets as fast as one core goes" /s "$ours" "$bare" "bare loop"
verdict "  ratio" "$(ratio "$ours" "$bare")" "" '>=' 0.7
verdict "  false losses" "$lost" "" '<=' 0

# The same by processor time, which what else runs on the machine does not stretch: three rounds less one,
# so that reading the targets and writing the Run do not count.
spent() { python3 -c "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)" "$@"; }
a_second() { awk -v one="$1" -v three="$2" 'BEGIN { print 200000 / (three - one) }'; }
ours="" bare=""
probe() { spent taskset -c 1 "$plumb" ping --file "$work/targets" --pps 1000000 -c "$1" -i 0.05 --json; }
loop() { spent taskset -c 1 "$work/bare_echo" "$1"; }
for _ in $(seq "$pairs"); do
    bare+=" $(a_second "$(loop 100000)" "$(loop 300000)")"
    ours+=" $(a_second "$(probe 1)" "$(probe 3)")"
done
report "targets a second of processor time" /s "$ours" "$bare" "bare loop"

# Ten thousand a second: the 99th percentile of the round trips, which the loopback adds nothing to.
head -10000 "$work/targets" > "$work/tenth"
ours="" theirs=""
for _ in $(seq "$pairs"); do
    ours+=" $("$plumb" ping --file "$work/tenth" --pps 10000 -c 1 --json | json "d['measurements'][0]['result']['rtt_s']['p99']*1e6")"
    theirs+=" $(fping -f "$work/tenth" -C 1 -q -i 0.1 2>&1 | awk '{ if ($3 != "-") print $3 * 1000 }' | sort -g | awk '{v[NR]=$1} END {print v[int(NR*0.99)]}')"
done
report "p99 of added round trip at 10,000/s" µs "$ours" "$theirs" fping
verdict "  plumb's" "$(printf '%s\n' $ours | median)" µs '<=' 100

# Memory: the largest resident set over the number of targets, and that it does not grow with time.
resident() { /usr/bin/env python3 -c "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)" "$@"; }
one=$(resident "$plumb" ping 127.0.0.0/29 -c 1 -q)
many=$(resident "$plumb" ping --file "$work/targets" --pps 50000 -c 1 -q)
longer=$(resident "$plumb" ping --file "$work/targets" --pps 50000 -c 3 -q)
# As kb/ping.md states it: 200 bytes a target, 300 of its text in the Run, and a tenth for chance.
verdict "memory of 100,000 targets, each" $(((many - one) * 1024 / 100000)) bytes '<=' 550
verdict "  of three rounds of them, of one round's" "$(awk -v l="$longer" -v m="$many" 'BEGIN { print l / m }')" "" '<=' 1.1
