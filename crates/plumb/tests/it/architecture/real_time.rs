//! A test in real time judges what a program does, and no figure that it measured: on a machine that others use as well
//! such a figure is the machine's. Figures are judged in virtual time (`tests/README.md`).

use std::path::{Path, PathBuf};

use super::crates;

/// What a test of the whole program has that measures in real time: on this machine's own addresses, or in a lab of its
/// own kernel. Those of other crates have no other time.
const REAL: &[&str] = &[
    "127.0.0.1",
    "[::1]",
    "in_real_time()",
    "LabClock::Real",
    "Lab::up(",
    "\"lab\", \"up\"",
];

/// It has examples of what is not allowed.
const THIS: &str = "architecture/real_time.rs";

/// A lab that falls behind is the subject of the first. The second has a rate that no machine exceeds.
const ALLOWED: &[&str] = &[
    "what_waits_to_be_read_is_late",
    "a_paced_rate_is_never_exceeded",
];

/// Names of figures that are measured, by their ends.
const FIGURES: &[&str] = &[
    "rtt",
    "rtt_s",
    "rtt_ms",
    "_bps",
    "bps",
    "_tps",
    "duration_s",
    "delay_s",
    "handshake_s",
    "latency_s",
    "offset_s",
    "pdv_s",
    "p25",
    "p50",
    "p75",
    "p95",
    "p99",
    "mean",
    "median",
    "loss_ratio",
    "as_secs_f64",
    "as_millis",
    "took",
    "elapsed",
];

const COMPARISONS: &[&str] = &[" < ", " > ", " <= ", " >= ", ".contains(&", ".abs()"];

/// What a test reads from its own clock, which is real in any test.
const CLOCKS: &[&str] = &["elapsed", "took"];

/// Shortest time limit of a test, in seconds: a processor that others use as well is away for seconds at a time, also for a
/// program that has next to nothing to do.
const SHORTEST_LIMIT_S: f64 = 10.0;

/// The seconds of a literal: `Duration::from_secs(8)`, `0.3`. None for what has a name, which says where it comes from.
fn seconds(limit: &str) -> Option<f64> {
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
        let number = text[..end.unwrap_or(text.len())].replace('_', "");
        number.trim_end_matches('.').parse::<f64>().ok()
    };
    let units = [
        ("from_millis(", 1e-3),
        ("from_secs(", 1.0),
        ("from_secs_f64(", 1.0),
    ];
    let call = units.iter().find_map(|(call, unit_s)| {
        let (_, rest) = limit.split_once(call)?;
        Some(digits(rest)? * unit_s)
    });
    call.or_else(|| digits(limit))
}

/// A time limit of a test that is long enough, or that a program lasts as long as it was asked to.
fn is_time_limit(condition: &str) -> bool {
    let mut sides = condition.splitn(3, [' ']);
    let (Some(clock), Some(sign), Some(limit)) = (sides.next(), sides.next(), sides.next()) else {
        return false;
    };
    let clocks = ["elapsed()", "elapsed", "took", "duration_s"];
    let is_long = seconds(limit).is_none_or(|limit_s| limit_s >= SHORTEST_LIMIT_S);
    clocks.iter().any(|end| clock.ends_with(end)) && (sign.starts_with('>') || is_long)
}

/// That there is a figure is true on any machine, and so is what holds between the figures of one Run.
fn is_arithmetic(condition: &str) -> bool {
    let mut words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    let has_number = words.any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    !has_number
        || condition.contains(" > 0")
        || (condition.ends_with(".abs() < 1e-6") || condition.ends_with(".abs() < 1e-9"))
}

fn has_any(condition: &str, figures: &[&str]) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = condition.split(|c| !is_word(c));
    words.any(|word| {
        let mut figures = figures.iter();
        figures.any(|figure| word == *figure || figure.starts_with('_') && word.ends_with(figure))
    })
}

/// What an assertion begins with, up to its message: blanks are as one.
fn conditions(function: &str) -> Vec<String> {
    let assertions = function.split("assert!(").skip(1);
    let conditions = assertions.map(|rest| {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth +=
                i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
            depth < 0 || depth == 0 && c == ','
        });
        let condition = &rest[..end.unwrap_or(rest.len())];
        condition.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    conditions.collect()
}

/// Whether a line begins a function, and not one within another: its name is on it.
fn begins_function(line: &str) -> bool {
    let declared = line.strip_prefix("    ").unwrap_or(line);
    let declared = declared.strip_prefix("pub(crate) ").unwrap_or(declared);
    declared
        .strip_prefix("pub ")
        .unwrap_or(declared)
        .starts_with("fn ")
}

/// The functions of a file by their names: each ends where the next begins.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let lines = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end - line.len(), line))
    });
    let starts = lines.filter(|(_, line)| begins_function(line));
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let pieces = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &text[*start..end]);
    let named = pieces.map(|piece| {
        let (_, rest) = piece.split_once("fn ").unwrap_or(("", piece));
        (rest.split(['(', '<']).next().unwrap_or_default(), piece)
    });
    named.collect()
}

/// What waits for what another program or thread does.
const WAITS: &[&str] = &[
    "Client::connect(",
    "connect_timeout(",
    "recv_timeout(",
    "within(",
];

/// Waits for less than [`SHORTEST_LIMIT_S`], in a test that a late machine would fail.
fn short_waits(function: &str) -> Vec<String> {
    let blank = function.split_whitespace().collect::<Vec<_>>().join(" ");
    let calls = WAITS.iter().flat_map(|call| blank.split(call).skip(1));
    let compared = blank.split("elapsed() < ").skip(1);
    let compared = compared.filter(|limit| limit.starts_with("Duration::"));
    let limits = calls.chain(compared).filter_map(|rest| {
        let statement = rest.split([';', '{']).next()?;
        let (_, limit) = statement.split_once("Duration::from_")?;
        let is_short = seconds(&format!("from_{limit}")).is_some_and(|s| s < SHORTEST_LIMIT_S);
        is_short.then(|| statement.to_owned())
    });
    limits.collect()
}

fn judged_in_real_time(file: &Path, text: &str) -> Vec<String> {
    let is_whole_program = file.starts_with(crates().join("plumb/tests"));
    let is_unit = file.components().any(|part| part.as_os_str() == "src");
    let mut found = Vec::new();
    for (name, function) in functions(text) {
        let is_virtual = !REAL.iter().any(|mark| function.contains(mark));
        // The figures of a function may be computed, and those of a lab are of virtual time.
        let only_clocks = is_unit || is_whole_program && is_virtual || ALLOWED.contains(&name);
        let figures = if only_clocks { CLOCKS } else { FIGURES };
        for condition in conditions(function) {
            let judges = condition.split(" && ").any(|part| {
                let compares = COMPARISONS.iter().any(|sign| part.contains(sign));
                compares && has_any(part, figures) && !is_time_limit(part) && !is_arithmetic(part)
            });
            if judges {
                found.push(format!("{name}: {condition}"));
            }
        }
        if !(is_whole_program && is_virtual) {
            let short = short_waits(function).into_iter();
            found.extend(short.map(|wait| format!("{name}: {wait}")));
        }
    }
    found
}

/// The tests of the gate: `slow` compares both clocks, and `vm` has a kernel of its own.
fn tests(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("slow") && !path.ends_with("vm") {
            tests(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with(THIS) {
            files.push(path);
        }
    }
}

#[test]
fn no_test_of_the_gate_judges_a_figure_that_it_measured_in_real_time() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let krate = entry.unwrap().path();
        for folder in ["tests/it", "src"] {
            tests(&krate.join(folder), &mut files);
        }
    }
    assert!(files.len() > 100, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // In a source file, the tests come last.
        let is_test =
            file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs");
        let tests = text.find("#[cfg(test)]").map_or("", |at| &text[at..]);
        let judged = judged_in_real_time(&file, if is_test { &text } else { tests });
        found.extend(
            judged
                .iter()
                .map(|judged| format!("{}: {judged}", file.display())),
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn figures_are_found_where_they_are_judged() {
    let whole = crates().join("plumb/tests/it/a.rs");
    let of = |body: &str| {
        let text = format!("\nfn a() {{\n    serves(\"127.0.0.1\");\n    {body}\n}}\n");
        judged_in_real_time(&whole, &text).len()
    };
    for figure in [
        "assert!(rtt < 0.1, \"{rtt}\");",
        "assert!((0.8..0.82).contains(&outcome.duration_s));",
        "assert!(\n        run.sent_bps > 1e6,\n        \"slow\"\n    );",
        "assert!(begun.elapsed() < Duration::from_millis(300));",
        "assert!((a.mean - b.mean).abs() < 0.1);",
        "let client = Client::connect(\"box\", address, Duration::from_secs(3));",
        "while begun.elapsed() < Duration::from_secs(5) {}",
    ] {
        assert!(of(figure) > 0, "{figure}");
    }
    for behaviour in [
        "assert!(begun.elapsed() < PATIENCE, \"late\");",
        "assert!(handshake_s.min > 0.0 && tls.is_some());",
        "assert!(sent > received);",
        "assert!(took >= LEAST);",
        "assert!((run.bps - bytes / duration_s).abs() < 1e-6);",
        "assert!(text.contains(\"rtt_s\"));",
        "let client = Client::connect(\"box\", address, PATIENCE);",
    ] {
        assert_eq!(of(behaviour), 0, "{behaviour}");
    }
    let virtual_time = "\nfn a() {\n    let x = in_lab();\n    assert!(rtt < 0.1);\n}\n";
    assert!(judged_in_real_time(&whole, virtual_time).is_empty());
    assert_eq!(
        judged_in_real_time(&crates().join("serve/a.rs"), virtual_time).len(),
        1
    );
}
