#!/usr/bin/env bash
# UDP: plumb side by side with iperf3, how exactly packets leave, and what plumb's own load does to
# the round trips beside it. Needs root and a quiet machine.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${PAIRS:-5}

. "$(dirname "$0")/common.sh"
need ip iproute2; need iperf3 iperf3; need python3 python3
pair "$plumb"
serve iperf3 -s
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"

udp='next(m["result"] for m in d["measurements"] if m["kind"]=="udp")'
rate() { # seconds, options
    ip netns exec "$client" "$plumb" rate "$address" --up --udp --duration "${1}s" --json "${@:2}" 2>/dev/null
}

ours="" peers="" lost=""
for _ in $(seq $pairs); do
    run=$(rate 3 --rate max --size 1400 --budget 100GB)
    ours+=" $(json "$udp['bps']/1e9" <<<"$run")"
    lost+=" $(json "$udp['receiver']['loss_ratio']*100" <<<"$run")"
    peers+=" $(ip netns exec "$client" iperf3 -c "$address" -u -b 0 -l 1400 -t 3 -J |
        json "d['end']['sum_received']['bits_per_second']/1e9")"
done
o=$(printf '%s\n' $ours | median) p=$(printf '%s\n' $peers | median) l=$(printf '%s\n' $lost | median)
echo "UDP up, 1400 bytes, GSO and GRO, veth: plumb $o Gbit/s, iperf3 $p Gbit/s"
verdict "  ratio" "$(ratio "$ours" "$peers")" "" '>=' 15
verdict "  lost by plumb" "$l" % '<=' 0

late="" missed=""
for _ in $(seq $pairs); do
    run=$(rate 3 --rate 500mbit --size 1400)
    late+=" $(json "$udp['sender']['lateness_s']['p99']*1e6" <<<"$run")"
    missed+=" $(json "$udp['sender']['missed']*100/($udp['sender']['sent']+$udp['sender']['missed'])" <<<"$run")"
done
verdict "UDP up at 500 Mbit/s, packets one by one: late (p99)" "$(printf '%s\n' $late | median)" µs '<=' 20
printf '  slots missed: %.3g %%\n' "$(printf '%s\n' $missed | median)"

# Round trips idle, and beside 500 Mbit/s that the link carries without a queue.
above=""
for _ in $(seq $pairs); do
    idle=$(ip netns exec "$client" "$plumb" ping "$address" --protocol udp --count 150 --interval 20ms --json 2>/dev/null |
        json 'd["measurements"][0]["result"]["rtt_s"]["p99"]*1e6')
    rate 4 --rate 500mbit --size 1400 >/dev/null & load=$!
    sleep 1
    beside=$(ip netns exec "$client" "$plumb" ping "$address" --protocol udp --count 120 --interval 20ms --json 2>/dev/null |
        json 'd["measurements"][0]["result"]["rtt_s"]["p99"]*1e6')
    wait "$load"
    above+=" $(awk -v b="$beside" -v i="$idle" 'BEGIN { print b - i }')"
done
verdict "UDP round trip beside 500 Mbit/s of UDP, above idle (p99)" "$(printf '%s\n' $above | median)" µs '<=' 200
