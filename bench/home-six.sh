#!/usr/bin/env bash
# The six cases of a home on DSL: what a call, pings, pages and a copy of one host get while the other one is idle, copies
# three times or floods the line, without and with a managed queue on the router. Needs root and a quiet machine; ten minutes.
#
#   bench/home-six.sh PLUMB CASES OUT   CASES: the example `cases` of crates/report
#
# The Runs are kept in OUT/runs, their page is OUT/home-six.html, and the table in Markdown is printed and kept beside it.
# CASES_ONLY=three-copies runs that pair alone.
set -euo pipefail
plumb=$(realpath "$1") cases=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What host B does, one after the other. A measurement that comes to no end leaves nothing.
cat > "$work/measure" <<'SH'
plumb=$1 to=$2 base=http://server:4043/__down
measure() { # NAME MOST COMMAND…: its Run
    local name=$1 most=$2
    shift 2
    timeout "$most" "$plumb" "$@" --quiet -o "$to/$name.json" > /dev/null 2>> "$to/errors" || echo "$name ended with status $?" >> "$to/errors"
}
sleep 5 # Queues have filled.
measure ping 60 ping server --count 200 --interval 50ms --timeout 2s
measure call 40 rate server --up --udp --rate 200kbit --size 500 --duration 10s
measure small 120 page "$base?bytes=20000" --only --count 5 --timeout 20s
measure large 120 page "$base?bytes=2000000" --only --count 3 --timeout 20s
for n in $(seq 50); do echo "$base?bytes=20000&n=$n"; done > "$to/objects"
measure many 120 page "$base?bytes=20000" --objects "$to/objects" --count 3 --timeout 20s
measure copy 60 rate server --up --duration 20s
SH

rm -rf "$out/runs"
number=0
for load in ${CASES_ONLY:-unloaded three-copies udp-flood}; do
    number=$((number + 1))
    for side in before after; do
        case=home-$load managed=
        [ "$side" = before ] || managed=-managed
        # Without the copy that host B has in these scenarios: here it is measured by itself.
        sed '/^\[\[traffic\]\]$/{N;/"host-b"/{N;d}}' "scenarios/$case$managed.toml" > "$work/$case$managed.toml"
        to=$out/runs/$number-$load-$side
        mkdir -p "$to"
        "$plumb" lab run "$work/$case$managed.toml" -- bash "$work/measure" "$plumb" "$to" > /dev/null 2>> "$to/errors" || true
        sed "s/^/$load $side: /" "$to/errors" >&2
    done
done
"$cases" "$out/runs" "$out/home-six.html" | tee "$out/home-six.md"
echo "the page: $out/home-six.html" >&2
