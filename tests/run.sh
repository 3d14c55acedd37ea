#!/usr/bin/env bash
# Runs the tests, says how long each group took, and how many passed.
#
#   tests/run.sh        what runs before every change: in minutes
#   tests/run.sh slow   what else runs before a release: in real time, long, or with chroots and packages
#
# One that fails does not keep the others from running: one run says all that is wrong. Ends with 1 where something is, and with 75
# where nothing is and a test could not be measured (tests/count.sh).
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo=${CARGO:-cargo}
mkdir -p "$target"
log=$target/tests.log
# What each place on the machine was taken for, and how long (crates/plumb/tests/it/common/slots.rs).
export PLUMB_TEST_TIMES=$PWD/$target/test-times
[[ $target != /* ]] || PLUMB_TEST_TIMES=$target/test-times
# Each measurement that was void and made again (common/measured.rs).
export PLUMB_TEST_VOID=$PLUMB_TEST_TIMES.void
rm -f "$log" "$PLUMB_TEST_TIMES" "$PLUMB_TEST_VOID"
failed= unmeasured=

group() {
    local name=$1
    shift
    # A test that waits for its turn is not slow: libtest cannot know.
    tests/timed.sh "$name" "$@" 2>&1 | grep --line-buffered -v 'has been running for over 60 seconds$' | tee "$log.group"
    local status=${PIPESTATUS[0]}
    cat "$log.group" >> "$log"
    [ "$status" != 0 ] || return 0
    tests/count.sh "$log.group" > /dev/null
    [ $? = 75 ] && unmeasured=yes || failed+=" $name"
}

# All tests of a binary begin at once, and wait for their turn where they need one.
AT_ONCE=--test-threads=1000

group tools tests/tools.sh "${1:-fast}"
[ -z "$failed" ] || exit 1
group 'building tests' "$cargo" test --workspace --locked --lib --bins --test it --no-run
[ -z "$failed" ] || exit 1
case ${1:-fast} in
fast)
    group 'unit tests' "$cargo" test --workspace --locked --no-fail-fast --lib --bins
    group 'integration tests' "$cargo" test --workspace --locked --no-fail-fast --test it -- $AT_ONCE
    ;;
slow)
    group 'slow unit tests' "$cargo" test --workspace --locked --no-fail-fast --lib -- --ignored slow::
    group 'slow integration tests' "$cargo" test --workspace --locked --no-fail-fast --test it -- $AT_ONCE --ignored slow::
    group package tests/package.sh
    group 'fresh machine' tests/fresh-machine.sh
    ;;
*)
    echo "tests/run.sh [slow]" >&2
    exit 2
    ;;
esac

if [ -s "$PLUMB_TEST_TIMES" ]; then
    echo
    echo 'Time on the machine by group of integration tests, and by what it was taken for:'
    awk '{ split($1, name, "::"); by["  " name[1]] += $3; by["  as " $2] += $3 }
         END { for (group in by) printf "%7.1f s%s\n", by[group], group }' "$PLUMB_TEST_TIMES" | sort -rn
fi
echo
echo 'Time by the clock:'
cat "$target/times"
rm -f "$target/times"
[ -z "$failed" ] || echo "failed:$failed"
[ ! -s "$PLUMB_TEST_VOID" ] || echo "$(wc -l < "$PLUMB_TEST_VOID") measurements were void and made again: $PLUMB_TEST_VOID"
tests/count.sh "$log"
[ -z "$failed" ] || exit 1
[ -z "$unmeasured" ] || exit 75
