#!/usr/bin/env bash
# Runs a command and notes how long it took: tests/timed.sh GROUP COMMAND...
set -uo pipefail
group=$1
shift
times=${CARGO_TARGET_DIR:-target}/times
mkdir -p "$(dirname "$times")"
begun=$EPOCHREALTIME
"$@"
status=$?
awk -v a="$begun" -v b="$EPOCHREALTIME" -v group="$group" 'BEGIN { printf "%7.1f s  %s\n", b - a, group }' >> "$times"
exit "$status"
