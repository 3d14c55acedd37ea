#!/usr/bin/env bash
# netem's own delay and loss beside plumb's cells: the same settings on the same stock kernel, as the
# tests in the virtual machine measured them (crates/plumb/tests/it/vm). Runs those that do
# when there are no results yet; `make test-vm` makes new ones.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "netem.sh: python3 is missing" >&2; exit 1; }
results=${CARGO_TARGET_DIR:-target}/vm/bench.jsonl
[ -s "$results" ] || vm/run.sh netem_and_plumbs_own_cells_side_by_side >&2

python3 - "$results" <<'PY'
import json, os, sys, time

path = sys.argv[1]
by_what = {}
for line in open(path):
    result = json.loads(line)
    by_what.setdefault(result["what"], {})[result["by"]] = result
when = time.strftime("%Y-%m-%d %H:%M", time.localtime(os.path.getmtime(path)))
print(f"one way through netem and through plumb's own cell, in the virtual machine, {when}")
for what, by in by_what.items():
    for name, key in [("netem", "kernel"), ("plumb", "emulated")]:
        r = by[key]
        ms = {k: r[f"rtt_{k}_s"] * 1e3 for k in ("mean", "stddev", "p50", "p99")}
        print(f"  {what:<15} {name}  round trip {ms['mean']:7.3f} ms (mean) {ms['stddev']:6.3f} ms (deviation) "
              f"{ms['p50']:7.3f} ms (median) {ms['p99']:7.3f} ms (p99)  lost {r['lost']:3} of {r['sent']}")
PY
