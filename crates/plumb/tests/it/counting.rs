//! What `tests/run.sh` says of all tests, and the status it ends with.

use std::process::Command;

use crate::common::{repository, stdout};

/// What `tests/count.sh` prints of a log, and its status.
fn counted(log: &str) -> (String, Option<i32>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), log).unwrap();
    let script = repository().join("tests/count.sh");
    let output = Command::new(script).arg(file.path()).output().unwrap();
    (stdout(&output), output.status.code())
}

/// What cargo prints of a program whose tests failed, each with what it said.
fn program(passed: usize, failed: &[(&str, &str)]) -> String {
    let said = failed.iter().map(|(test, panics)| {
        let each = panics.lines().map(|panic| {
            format!("thread '{test}' (7) panicked at crates/x.rs:1:2:\n{panic}\nnote: run with `RUST_BACKTRACE=1`\n")
        });
        format!("---- {test} stdout ----\n\n{}\n", each.collect::<String>())
    });
    let names = failed.iter().map(|(test, _)| format!("    {test}\n"));
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    format!(
        "failures:\n\n{}\nfailures:\n{}\ntest result: {result}. {passed} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        said.collect::<String>(),
        names.collect::<String>(),
        failed.len()
    )
}

const LATE: &str = "NOT MEASURED: 3 labs in a row were disturbed: late";

#[test]
fn what_could_not_be_measured_is_neither_passed_nor_failed() {
    let ended = "error: 1 target failed:\n    `-p plumb --test it`\n";
    assert_eq!(
        counted(&(program(3, &[]) + &program(4, &[]))),
        ("7 passed, 0 failed\n".to_owned(), Some(0))
    );
    let scoped = format!("{LATE}\na scoped thread panicked");
    let unmeasured = program(5, &[("a::b", LATE), ("a::c", &scoped)]);
    let names = "2 not measured, in labs that this machine did not keep up with: a::b a::c\n";
    assert_eq!(
        counted(&(unmeasured.clone() + ended)),
        (format!("{names}5 passed, 0 failed\n"), Some(75))
    );
    // One that failed beside them is one that failed.
    let both = program(5, &[("a::b", LATE), ("a::c", &scoped), ("a::d", "left: 1")]);
    assert_eq!(
        counted(&(both + ended)),
        (format!("{names}5 passed, 1 failed\n"), Some(1))
    );
    // And so is a test of several cases of which one was wrong.
    let case = format!("{LATE}\nassertion failed: late\na scoped thread panicked");
    assert_eq!(
        counted(&(program(5, &[("a::d", &case)]) + ended)),
        ("5 passed, 1 failed\n".to_owned(), Some(1))
    );
    // A program that was killed has no result: cargo alone says that it ended.
    let killed = "error: 2 targets failed:\n    `-p plumb --test it`\n    `-p plumb-lab --lib`\n";
    assert_eq!(
        counted(&(unmeasured + killed)),
        (format!("{names}5 passed, 0 failed\n"), Some(1))
    );
}
