#!/usr/bin/env bash
# Reading this machine (at most 150 ms), beside the tools that tell the same, one after the other;
# and ciphers beside OpenSSL: medians of five pairs, and their ratio. Needs root.
set -euo pipefail
plumb=$(realpath "$1")
pairs=${2:-5}

. "$(dirname "$0")/common.sh"
need ss iproute2; need openssl openssl; need python3 python3

took() { # COMMAND…: milliseconds
    python3 -c "import subprocess,sys,time; t=time.perf_counter(); subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL); print((time.perf_counter()-t)*1e3)" "$@"
}
ours="" peers=""
for _ in $(seq "$pairs"); do
    ours+=" $(took "$plumb" host --json)"
    peers+=" $(took bash -c 'nstat -asz; ss -tianp; ss -uanp; ip -s -d link; ip addr; ip neigh; tc -s qdisc; ip tcp_metrics; sysctl net; cat /proc/interrupts /proc/net/softnet_stat')"
done
report "reading the machine" ms "$ours" "$peers" "nstat+ss+ip+tc+sysctl"
verdict "  plumb's" "$(printf '%s\n' $ours | median)" ms '<=' 150

gbps() { # NAME: what plumb says of a suite of TLS
    "$plumb" host cipher --json | json "next(c['seal_bps'] for c in d['measurements'][0]['result']['ciphers'] if c['name']=='$1')/1e9"
}
openssl_gbps() { # NAME: the last line ends in thousands of bytes a second
    openssl speed -evp "$1" -bytes 16384 -seconds 1 2>/dev/null | tail -1 | awk '{sub("k","",$NF); print $NF*8/1e6}'
}
for pair in TLS13_AES_256_GCM_SHA384:aes-256-gcm TLS13_CHACHA20_POLY1305_SHA256:chacha20-poly1305; do
    ours="" peers=""
    for _ in $(seq "$pairs"); do
        ours+=" $(gbps "${pair%%:*}")"
        peers+=" $(openssl_gbps "${pair##*:}")"
    done
    report "${pair##*:}, one core" Gbit/s "$ours" "$peers" openssl
done
