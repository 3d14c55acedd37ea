#!/usr/bin/env bash
# What `plumb shape auto --follow` costs: its share of a core while the line is idle and while both directions are loaded, beside
# what users of cake-autorate, which does the same as a shell script, report of it. Needs root and a quiet machine; four minutes.
#
#   bench/follow.sh PLUMB
#
# SECONDS_EACH (30) can be set. cake-autorate is not run: it needs OpenWrt and a CAKE of its own. What stands beside ours was read off a
# router's htop by its users, on slower processors than this one:
#   github.com/lynxthecat/cake-autorate/issues/228 (2023-07-08): version 3.0.0, Archer C7, idle line, with logs or without: 100 %;
#     with a probe a second to each reflector instead of three: 30 to 40 %, and 100 % during a speed test (forwarding and CAKE included)
#   github.com/lynxthecat/cake-autorate/issues/238 (2023-07-10): version 3.0.1, DIR-878, idle line, without logs: 12 to 22 %; with
#     traffic 60 to 75 % (forwarding and CAKE included)
# Ours, measured in November 2026 on a virtual machine with other work (load average 4): 0.9 % idle, 1.6 % loaded.
set -euo pipefail
plumb=$(realpath "$1")
seconds=${SECONDS_EACH:-30}

. "$(dirname "$0")/common.sh"
need python3 python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A line of 20 Mbit/s each way with long queues, whose router the laboratory shapes, and three reflectors beyond it.
way='[{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "500ms" } }, { type = "delay", delay = "9ms" }]'
cat > "$work/line.toml" <<TOML
name = "followed"
summary = "a line that is followed"
node = [
    { name = "client" },
    { name = "router", forward = true },
    { name = "modem", forward = true },
    { name = "provider", forward = true },
    { name = "server" },
    { name = "near" },
    { name = "far" },
]
link = [
    { name = "lan", between = ["client", "router"] },
    { name = "wan", between = ["router", "modem"], emulated = true },
    { name = "line", between = ["modem", "provider"], up = $way, down = $way },
]
[[lan]]
name = "beyond"
nodes = ["provider", "server", "near", "far"]
[[service]]
node = "server"
run = ["plumb", "serve", "--quiet"]
port = 7586
[router_shaper]
up = "wan.up"
down = "wan.down"
TOML

cat > "$work/measure" <<'SH'
plumb=$1 seconds=$2 work=$3
device=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
"$plumb" shape auto "$device" server --follow --reflector near --reflector far --json > "$work/auto.json" 2> "$work/followed" &
follower=$!
until grep -q '^following\|following the line' "$work/followed"; do
    kill -0 $follower 2> /dev/null || { cat "$work/followed" >&2; exit 1; }
    sleep 0.5
done
share() { # of a core that the follower took while a command ran
    local before after began ended
    began=$(date +%s.%N) before=$(awk '{ print $14 + $15 }' /proc/$follower/stat)
    "$@" > /dev/null 2>&1
    ended=$(date +%s.%N) after=$(awk '{ print $14 + $15 }' /proc/$follower/stat)
    awk -v t="$((after - before))" -v hz="$(getconf CLK_TCK)" -v b="$began" -v e="$ended" 'BEGIN { print t / hz / (e - b) * 100 }'
}
sleep 3
share sleep "$seconds" > "$work/idle"
wc -l < "$work/followed" > "$work/loaded-from"
share "$plumb" rate server --both --streams 2 --duration "${seconds}s" > "$work/loaded"
wc -l < "$work/followed" > "$work/loaded-to"
kill -INT $follower
wait $follower || true
SH
"$plumb" lab run "$work/line.toml" -- bash -eu "$work/measure" "$plumb" "$seconds" "$work"

echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"
verdict "following an idle line: of a core (cake-autorate: 12 to 100 %)" "$(cat "$work/idle")" % '<=' 2
verdict "following a loaded line: of a core (cake-autorate: 60 to 100 %)" "$(cat "$work/loaded")" % '<=' 2
sed -n "$(($(cat "$work/loaded-from") + 10)),$(cat "$work/loaded-to")p" "$work/followed" | tail -n 3
