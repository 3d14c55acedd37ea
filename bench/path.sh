#!/usr/bin/env bash
# A trace of 30 hops with 3 probes each, beside mtr and traceroute on the same emulated path: the
# median of five of each, and plumb's as a multiple of the slowest round trip. Usage: path.sh PLUMB
set -euo pipefail
plumb=$(realpath "$1")
. "$(dirname "$0")/common.sh"
need mtr mtr-tiny; need traceroute traceroute
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    printf 'name = "thirty"\nsummary = "thirty hops"\n[[node]]\nname = "n0"\n'
    for i in $(seq 29); do printf '[[node]]\nname = "n%d"\nforward = true\n' "$i"; done
    printf '[[node]]\nname = "n30"\n'
    for i in $(seq 30); do
        delay=''
        # Four long lines: 120 ms to and fro in all.
        case $i in 4 | 11 | 19 | 27) delay='up = [{ type = "delay", delay = "15ms" }]'$'\n''down = [{ type = "delay", delay = "15ms" }]' ;; esac
        printf '[[link]]\nname = "l%d"\nbetween = ["n%d", "n%d"]\n%s\n' "$i" "$((i - 1))" "$i" "$delay"
    done
} > "$folder/thirty.toml"
cat > "$folder/inside.sh" <<'S'
seconds() { local t0=$EPOCHREALTIME; "$@" >/dev/null; echo "$t0 $EPOCHREALTIME" | awk '{print $2 - $1}'; }
for i in 1 2 3 4 5; do
    echo "plumb $(seconds plumb path -n --icmp n30)"
    echo "traceroute $(seconds traceroute -n -I -q 3 n30)"
    echo "mtr $(seconds mtr -n -r -c 3 n30)"
done
S
"$plumb" lab run "$folder/thirty.toml" -- bash "$folder/inside.sh" > "$folder/took"
of() { awk -v who="$1" '$1 == who { print $2 }' "$folder/took"; }
for peer in traceroute mtr; do
    report "30 hops, 3 probes each" s "$(of plumb)" "$(of "$peer")" "$peer"
done
# One and a half of the slowest round trip, 120 ms, and 200 ms.
verdict "  plumb's" "$(of plumb | median)" s '<=' 0.38
