# What the comparisons share; sourced. Two namespaces joined by a veth pair, in the second of which
# `plumb serve` listens; all of it goes when the script ends.

# need COMMAND PACKAGE: installs a peer from Debian where it is missing.
need() {
    command -v "$1" >/dev/null && return
    [ -n "${package_lists_are_new:-}" ] || { apt-get update -qq; package_lists_are_new=1; }
    apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# pair PLUMB: sets $client and $server (namespaces) and $address (of the server).
pair() {
    client=plumb-bench-a-$$ server=plumb-bench-b-$$ address=10.9.0.2
    pids=()
    trap end_pair EXIT
    ip netns add "$client"; ip netns add "$server"
    ip link add veth0 netns "$client" type veth peer name veth0 netns "$server"
    ip -n "$client" addr add 10.9.0.1/24 dev veth0; ip -n "$server" addr add "$address/24" dev veth0
    for end in "$client" "$server"; do ip -n "$end" link set veth0 up; ip -n "$end" link set lo up; done
    serve "$1" serve --quiet --without iperf3 # 5201 is for the peer.
}
end_pair() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    ip netns del "$client" 2>/dev/null || true
    ip netns del "$server" 2>/dev/null || true
}
# serve COMMAND…: runs one more service at the server until the end.
serve() {
    ip netns exec "$server" "$@" >/dev/null 2>&1 & pids+=($!)
    sleep 0.5
}

# line UP DOWN [LINES [LINES]]: the scenario of a client and a server, and a line of these cells between
# them; lines of both nodes, and more of the server.
line() {
    cat <<TOML
name = "bench"
summary = "a line"
[[node]]
name = "client"
${3:-}
[[node]]
name = "server"
${3:-}
${4:-}
[[link]]
name = "line"
between = ["client", "server"]
up = [$1]
down = [$2]
[[service]]
node = "server"
run = ["plumb", "serve", "--quiet"]
port = 7586
TOML
}

# The median of numbers, one a line.
median() { sort -g | awk '{v[NR]=$1} END {print (NR%2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
# ratio OURS PEERS: the median of the ratios of pairs.
ratio() { paste -d ' ' <(printf '%s\n' $1) <(printf '%s\n' $2) | awk '{ print $1 / $2 }' | median; }
# json EXPRESSION: a Python expression of the document `d` from standard input.
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }
# report NAME UNIT OUR-VALUES PEER-VALUES PEER: the medians, and that of the pairs' ratios.
report() {
    local ours peers
    ours=$(printf '%s\n' $3 | median); peers=$(printf '%s\n' $4 | median)
    awk -v n="$1" -v u="$2" -v o="$ours" -v p="$peers" -v b="$5" -v r="$(ratio "$3" "$4")" \
        'BEGIN { printf "%-44s plumb %10.4g %s   %s %10.4g %s   ratio %.2f\n", n, o, u, b, p, u, r }'
}

# verdict NAME VALUE UNIT OPERATOR BOUND [WHY MOST]: a number beside what it is to be, and whether it is (pass,
# FAIL). A bound that cannot be kept, and WHY, is said to be missed, up to MOST.
verdict() {
    awk -v n="$1" -v v="$2" -v u="$3" -v o="$4" -v b="$5" -v why="${6:-}" -v most="${7:-0}" 'BEGIN {
        kept = (o == ">=") ? v + 0 >= b + 0 : v + 0 <= b + 0
        printf "%-62s %10.4g %-7s %s %s: %s\n", n, v, u, o, b, kept ? "pass" : why && v + 0 <= most + 0 ? "missed: " why : "FAIL" }'
}
