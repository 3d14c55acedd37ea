#!/usr/bin/env bash
# What plumb capacity and pchar say of the same three lines, with about as many probes, three times by
# turns: the true rates are 100, 50 and 10 Mbit/s. Usage: capacity.sh PLUMB
set -euo pipefail
plumb=$(realpath "$1")
. "$(dirname "$0")/common.sh"
need pchar pchar; need python3 python3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    printf 'name = "three"\nsummary = "three lines"\n'
    printf '[[node]]\nname = "n%d"\nforward = true\n' 0 1 2 3
    number=0
    for rate in 100 50 10; do
        number=$((number + 1))
        cells="[{ type = \"shaper\", rate = \"${rate}mbit\" }, { type = \"delay\", delay = \"${number}ms\" }]"
        printf '[[link]]\nname = "l%d"\nbetween = ["n%d", "n%d"]\nup = %s\ndown = %s\n' \
            $number $((number - 1)) $number "$cells" "$cells"
    done
} > "$folder/three.toml"
# 46 sizes, 22 times at three hops: 3036 probes in half a minute.
cat > "$folder/inside.sh" <<'S'
for i in 1 2 3; do
    plumb capacity -4 --only hops --time 30s --json n3 2>/dev/null > "$1/plumb.$i"
    pchar -n -R 22 -I 32 -g 0.01 n3 > "$1/pchar.$i"
done
S
"$plumb" lab run "$folder/three.toml" -- bash "$folder/inside.sh" "$folder" > /dev/null 2>&1
python3 - "$folder" > "$folder/said" <<'P'
import json, re, statistics, sys

TRUE_BPS = [100e6, 50e6, 10e6]
folder, plumb, pchar, held, told = sys.argv[1], [], [], 0, 0
for turn in "123":
    hops = json.load(open(f"{folder}/plumb.{turn}"))["measurements"][0]["result"]["hops"]
    rates = []
    for true, hop in zip(TRUE_BPS, hops, strict=True):
        rate = hop["rate"]
        least, most = rate["at_least_bps"], rate["at_most_bps"]
        told += rate["bps"] is not None
        held += (least or 0) <= true <= (most or float("inf"))
        # The middle of the bounds, where that is all that it tells; nothing where it tells but one.
        rates.append(rate["bps"] or ((least or 0) * (most or 0)) ** 0.5)
    plumb.append(rates)
    found = re.findall(r"Hop char:.*bw = ([0-9.]+) Kbps", open(f"{folder}/pchar.{turn}").read())
    pchar.append([float(rate) * 1e3 for rate in found])
for number, true in enumerate(TRUE_BPS):
    errors = (abs(statistics.median(turn[number] for turn in turns) / true - 1) * 100 for turns in (plumb, pchar))
    print(f"{true / 1e6:.0f}", *(f"{error:.2f}" for error in errors))
print(told, held)
P
while read -r mbit ours peers; do
    if [ -z "${peers:-}" ]; then
        echo "plumb told $mbit of 9 rates, and bounds for the rest"
        verdict "bounds that held the truth, of 9" "$ours" "" '>=' 9
        break
    fi
    verdict "line of $mbit Mbit/s: plumb off by (pchar by $peers %)" "$ours" % '<=' 10
done < "$folder/said"
