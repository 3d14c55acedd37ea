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

# lossless COMMAND HIGHEST: the highest rate in Gbit/s, to a thirtieth of HIGHEST, at which COMMAND loses
# nothing. COMMAND RATE prints what was received in Gbit/s and how many packets were lost.
lossless() {
    local low=0 high=$2 best=0 middle got lost
    for _ in 1 2 3 4 5; do
        middle=$(awk -v l="$low" -v h="$high" 'BEGIN { print (l + h) / 2 }')
        read -r got lost < <("$1" "$middle")
        if [ "$lost" = 0 ]; then low=$middle best=$got; else high=$middle; fi
    done
    echo "$best"
}
ours_at() {
    rate 2 --rate "${1}gbit" --size 1400 --budget 100GB |
        json "'%f %d' % ($udp['bps'] / 1e9, $udp['receiver']['lost'])"
}
theirs_at() {
    ip netns exec "$client" iperf3 -c "$address" -u -b "${1}G" -l 1400 -t 2 -J |
        json "'%f %d' % (d['end']['sum_received']['bits_per_second'] / 1e9, d['end']['sum']['lost_packets'])"
}
ours="" peers=""
for _ in $(seq $pairs); do
    ours+=" $(lossless ours_at 64)"
    peers+=" $(lossless theirs_at 8)"
done
report "UDP up, 1400 bytes, without loss, veth" Gbit/s "$ours" "$peers" iperf3
verdict "  ratio" "$(ratio "$ours" "$peers")" "" '>=' 15

# As fast as each goes: what arrives, and what is lost.
ours="" peers="" lost="" theirs_lost=""
for _ in $(seq $pairs); do
    read -r got gone < <(rate 3 --rate max --size 1400 --budget 100GB |
        json "'%f %f' % ($udp['bps'] / 1e9, $udp['receiver']['loss_ratio'] * 100)")
    ours+=" $got" lost+=" $gone"
    read -r got gone < <(ip netns exec "$client" iperf3 -c "$address" -u -b 0 -l 1400 -t 3 -J |
        json "'%f %f' % (d['end']['sum_received']['bits_per_second'] / 1e9, d['end']['sum']['lost_percent'])")
    peers+=" $got" theirs_lost+=" $gone"
done
report "UDP up, 1400 bytes, at full speed, veth" Gbit/s "$ours" "$peers" iperf3
printf '  lost: %.2g %% and %.2g %%\n' "$(printf '%s\n' $lost | median)" "$(printf '%s\n' $theirs_lost | median)"

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
