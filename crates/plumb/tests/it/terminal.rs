//! Whatever came from outside is shown and does nothing: no escape sequence, no other control character and no
//! character that reorders or hides others reaches a terminal or a page.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{PLUMB, plumb, repository, stdout};
use plumb_model::run::Run;
use serde_json::{Value, json};

/// Sets the window's title, clears the screen, turns text around, hides and begins lines.
const EVIL: &str =
    "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}gpj\u{2066}\u{200b}\u{2028}\u{7f}\u{85}\rz";

/// Runs plumb as on a terminal: with colours, which anstream else takes out together with other escapes.
fn on_a_terminal(arguments: &[&str]) -> Output {
    let mut command = Command::new(PLUMB);
    command.args(arguments).env("CLICOLOR_FORCE", "1");
    command.output().unwrap()
}

/// Fails where a text holds what must not be shown. Colours are plumb's own.
fn assert_tame(text: &str, what: &str) {
    let mut rest = text;
    let mut bare = String::new();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        let end = after
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .unwrap();
        bare += before;
        assert!(after[end..].starts_with('m'), "{what}: {text:?}");
        rest = &after[end + 1..];
    }
    bare += rest;
    let forbidden = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found: Vec<char> = bare.chars().filter(forbidden).collect();
    assert!(found.is_empty(), "{what} holds {found:?}: {text:?}");
}

/// What a program printed, on both.
fn assert_tame_output(output: &Output, what: &str) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap()
        + &String::from_utf8(output.stderr.clone()).unwrap();
    assert_tame(&text, what);
    text
}

/// Answers the first message of a client with these bytes of JSON; ends with it.
fn far_end(answer: String) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut client, _): (TcpStream, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut hello = vec![0; u32::from_be_bytes(length) as usize];
        client.read_exact(&mut hello).unwrap();
        let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
        client
            .write_all(&[&length, answer.as_bytes()].concat())
            .unwrap();
        // Until the client has gone.
        let _ = client.read(&mut [0; 1]);
    });
    (port, thread)
}

#[test]
fn a_far_end_does_not_write_to_the_terminal() {
    let long = EVIL.repeat(3000);
    for (answer, word) in [
        // An unknown message, of whose name the reader's error has all.
        (json!({"type": long}), "a message that cannot be read"),
        (
            json!({"type": "error", "code": "busy", "message": long}),
            "owned",
        ),
        (
            json!({"type": "error", "code": long, "message": "x"}),
            "127.0.0.1",
        ),
    ] {
        let (port, thread) = far_end(answer.to_string());
        let output = on_a_terminal(&[
            "rate",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--duration",
            "1s",
        ]);
        let text = assert_tame_output(&output, "an answer");
        assert!(text.contains(word), "{text}");
        assert!(
            text.len() < 5000,
            "{} bytes of a far end's words",
            text.len()
        );
        thread.join().unwrap();
    }
}

/// A Run of this machine.
fn run() -> Value {
    let output = plumb(&["ping", "127.0.0.1", "-c", "1", "--json"]);
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn written(folder: &Path, name: &str, content: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, content).unwrap();
    file
}

#[test]
fn a_run_does_not_write_to_the_terminal_or_into_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut evil = run();
    for place in [
        "/target/name",
        "/started",
        "/plumb",
        "/measurements/0/result/address",
    ] {
        if let Some(value) = evil.pointer_mut(place) {
            *value = json!(EVIL);
        }
    }
    evil["command"] = json!([EVIL]);
    evil["notes"] = json!([EVIL, EVIL.repeat(10_000)]);
    let text = evil.to_string();
    Run::from_json(&text).unwrap();
    let file = written(folder.path(), "run.json", &text);
    let tame = written(folder.path(), "tame.json", &run().to_string());
    let (file, tame) = (file.to_str().unwrap(), tame.to_str().unwrap());
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();

    let shown = assert_tame_output(&on_a_terminal(&["report", file]), "a report");
    assert!(shown.contains("owned"), "{shown}");
    assert!(shown.len() < 20_000, "a note of {} bytes", shown.len());
    assert_tame_output(&on_a_terminal(&["compare", tame, file]), "a comparison");
    for second in [&[][..], &[file]] {
        let arguments = [&["report", file], second, &["-o", page]].concat();
        assert!(plumb(&arguments).status.success());
        assert_tame(
            &fs::read_to_string(page).unwrap().replace('\n', ""),
            "a page",
        );
    }
    // JSON says the same, and in characters that may be shown.
    let output = on_a_terminal(&["compare", tame, file, "--json"]);
    let shown = assert_tame_output(&output, "a comparison in JSON");
    let comparison: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(comparison["after"]["target"], EVIL);
}

#[test]
fn a_file_that_is_wrong_is_echoed_without_what_it_commands() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!(
        "name = \"x\" # {EVIL}{}\nlonk = 3 # {EVIL}{}\n",
        "y".repeat(100_000),
        "z".repeat(100_000)
    );
    let scenario = scenario.replace(['\r', '\u{7}', '\u{7f}', '\u{1b}'], "");
    let named = format!("name = {}\n[[node]]\nname = {}\n", json!(EVIL), json!(EVIL));
    for (name, text) in [("echoed.toml", &scenario), ("named.toml", &named)] {
        let file = written(folder.path(), name, text);
        let file = file.to_str().unwrap();
        for arguments in [
            ["lab", "show", file].as_slice(),
            &["lab", "run", file, "--", "true"],
        ] {
            let output = on_a_terminal(arguments);
            assert!(!output.status.success());
            let text = assert_tame_output(&output, name);
            assert!(text.len() < 20_000, "{} bytes", text.len());
        }
    }
    let run = written(
        folder.path(),
        "run.json",
        &format!("{{\"schema\": {}}}", json!(EVIL)),
    );
    assert_tame_output(
        &on_a_terminal(&["report", run.to_str().unwrap()]),
        "a schema",
    );
    let run = written(
        folder.path(),
        "run.json",
        &json!({"schema": plumb_model::run::SCHEMA, "id": {EVIL: 1}}).to_string(),
    );
    assert_tame_output(
        &on_a_terminal(&["report", run.to_str().unwrap()]),
        "a field",
    );
    // What is fine is shown, but for what it commands.
    let fine = "name = \"x\"\nsummary = \"a\u{202e}b\"\n[[node]]\nname = \"one\"\n[[node]]\nname = \"two\"\n[[link]]\nname = \"l\"\nends = [\"one\", \"two\"]\n";
    let file = written(folder.path(), "fine.toml", fine);
    assert_tame_output(
        &on_a_terminal(&["lab", "show", file.to_str().unwrap()]),
        "a scenario",
    );
}

/// Where plumb may write to its standard output and standard error: everywhere else what is printed passes
/// `stdout.rs` or `stderr.rs`, which clean it.
const WRITERS: &[(&str, &str)] = &[
    ("crates/plumb/src/stdout.rs", "cleans it"),
    ("crates/plumb/src/stderr.rs", "cleans it"),
    (
        "crates/certify/src/main.rs",
        "not shipped: what labs on this machine came to",
    ),
    (
        "crates/certify/src/run.rs",
        "not shipped: what labs on this machine came to",
    ),
    (
        "crates/plumb/src/status.rs",
        "a line, which is cleaned there",
    ),
    (
        "crates/plumb/src/save.rs",
        "a file that the user named /dev/stdout",
    ),
    (
        "crates/lab/src/virtual_time/host.rs",
        "passes on what a program in the lab prints, byte by byte",
    ),
    (
        "crates/plumb/src/ping/targets.rs",
        "lines in batches, cleaned there",
    ),
    (
        "crates/plumb/src/screen.rs",
        "a screen, whose lines are cleaned there",
    ),
    (
        "crates/plumb/src/lab/look.rs",
        "a log in JSON, cleaned by plumb_lab; a capture",
    ),
    (
        "crates/lab/src/supervise.rs",
        "a name of a program, cleaned there",
    ),
    (
        "crates/lab/src/impair.rs",
        "commands for the process that started this one",
    ),
    (
        "crates/net/src/terminal.rs",
        "asks the terminal how large it is",
    ),
];

#[test]
fn nothing_is_printed_past_what_cleans_it() {
    let mut files = Vec::new();
    for entry in fs::read_dir(repository().join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 300, "{}", files.len());
    for file in files {
        let name = file
            .strip_prefix(repository())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if WRITERS.iter().any(|(writer, _)| *writer == name) || name.contains("tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let code = code.replace("close_stdout()", "");
        for words in [
            "println!(",
            "print!(",
            "eprint!(",
            "stdout()",
            "stderr()",
            "dbg!(",
        ] {
            assert!(
                !code.contains(words),
                "{name} prints by {words}: use crate::stdout or crate::stderr"
            );
        }
    }
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}
