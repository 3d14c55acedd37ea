#!/usr/bin/env bash
# Counts what `cargo test` printed into a file: tests/count.sh LOG
#
# A test fails for one of two reasons: something is wrong, or no lab was undisturbed in which it could be measured
# (crates/plumb/tests/it/common/measured.rs). The second are named, and counted apart. A test in which anything else panicked is of the first.
#
# Ends with 0 where all passed, with 75 (EX_TEMPFAIL of sysexits.h) where tests were not measured and nothing failed, and with 1 where
# something failed: a test, or a program that ended before it had said what became of its tests.
exec awk '
    # What a test printed goes from its heading to the next one.
    function settle() {
        if (inside && unmeasured && !wrong) { names = names " " test; apart++ }
        inside = unmeasured = wrong = said = 0
    }
    # The line after that of the place is what a panic said. A thread that a test waits for says it before the test does.
    said {
        said = 0
        if (/^NOT MEASURED: /) unmeasured = 1
        else if (!/^a scoped thread panicked$/) wrong = 1
    }
    /^---- .* stdout ----$/ { settle(); inside = 1; test = $2 }
    /^failures:$/ { settle() }
    inside && /^thread .* panicked at / { said = 1 }
    /^test result:/ {
        settle()
        passed += $4
        failed += $6
        if ($3 != "ok.") programs++
    }
    /^error: [0-9]+ targets? failed:$/ { targets += $2 }
    END {
        settle()
        failed -= apart
        if (apart) printf "%d not measured, in labs that this machine did not keep up with:%s\n", apart, names
        printf "%d passed, %d failed\n", passed, failed
        if (failed || programs != targets) exit 1
        if (apart) exit 75
    }' "$1"
