//! What is typed: habits of other tools, slips, and what a terminal, or none, shows of it.

use std::process::{Command, Output};

use crate::common::live::Terminal;
use crate::common::{PLUMB, plumb, refused, stderr, stdout, words};

fn says(line: &str, status: i32, words_of: &[&str]) {
    let output = refused(&words(line));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{line}: {text}");
    for word in words_of {
        assert!(text.contains(word), "{line}: '{word}' is not in: {text}");
    }
    assert!(
        !text.contains("''") && !text.contains("-- -"),
        "{line}: {text}"
    );
}

#[test]
fn what_was_typed_is_named_with_what_is_near() {
    for (line, words) in [
        ("rate server --duraton 5", &["--duraton", "--duration"][..]),
        ("check server --udp", &["--udp", "plumb rate"]),
        ("mtu server -x", &["-x", "-4 -6", "plumb mtu --help"]),
        ("rat server", &["rat", "rate"]),
        ("example.com", &["plumb check example.com"]),
        (
            "calc bdp --rate 10000 --rtt 50ms",
            &["--rate", "unit is missing", "10000kbit"],
        ),
        (
            "calc bdp --rate 10x --rtt 50ms",
            &["10x", "20mbit, 20Mbit/s, 20M or 10G"],
        ),
        ("calc loss --rtt 50ms", &["--rate", "--loss"]),
        ("rate server -t 5x", &["5x", "5, 5s, 250ms or 2m"]),
        ("rate server --udp", &["-b 50mbit"]),
        ("check server:http", &["server:http", "1 to 65535"]),
        ("explain jiter", &["'jiter': did you mean jitter?"]),
        ("check http://server:99999/", &["1 to 65535"]),
        ("mtr server", &["plumb path --continuous"]),
        (
            "path server --continuous -c 5",
            &["-c N alone ends after N probes"],
        ),
        ("calc --rate 10mbit", &["plumb calc bdp"]),
        ("ping server -i", &["--interval <TIME>", "250ms"]),
        ("tune plan --os openbs", &["did you mean openbsd?"]),
        (
            "explain nothing-at-all",
            &["nothing-at-all", "lists all topics"],
        ),
        ("tracert server", &["plumb path"]),
        ("pathping server", &["plumb path --continuous"]),
        ("bandwidth server", &["plumb rate"]),
        ("speedtest", &["plumb check"]),
        ("path server --asn-dns=x", &["'x'", "192.0.2.1:53"]),
        ("-v", &["plumb --version"]),
        ("ping server --version", &["plumb --version"]),
        ("rate -c server", &["plumb rate HOST"]),
        ("tune apply --dry-run", &["plumb tune plan"]),
        ("check server --dry-run", &["plumb tune plan"]),
        (
            "ping https://example.com/x",
            &["'example.com'", "plumb page"],
        ),
        ("lab set home.up.x y", &["'y'", "KEY=VALUE"]),
        ("lab list no-such-word", &["no-such-word", "access lines"]),
        ("report run.json -o x.txt", &["x.txt", "FILE.html", "--svg"]),
        (
            "tune apply --rate 1gbit --rtt 50ms --except none",
            &["'none'"],
        ),
    ] {
        says(line, 2, words);
    }
    for verb in [
        "check", "ping", "path", "mtu", "owd", "rate", "load", "capacity", "rr",
    ] {
        let output = refused(&[verb, ""]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{verb}: {text}");
        assert!(
            text.contains("is empty") && !text.contains("''"),
            "{verb}: {text}"
        );
    }
}

#[test]
fn habits_of_other_tools_are_understood() {
    // Nobody listens there: what was typed is right, and the far end is refused.
    for line in [
        "rate 127.0.0.1 -p 9 -t 10 -R",
        "rate 127.0.0.1 -p 9 -u -b 20M -P 2 --reverse",
        "rate 127.0.0.1 -p 9 -u -b 0",
        "rate 127.0.0.1 -p 9 -u -b 5M --length 1200 --bytes 10M",
        "rate 127.0.0.1 -p 9 -b 10000 --bidir --time 5",
        "page 127.0.0.1:9",
        "rate 127.0.0.1 -p 9 -C reno --parallel 2 --set-mss 1000",
        "load 127.0.0.1 -p 9 -t 5 -P 2 -R",
        "transactions 127.0.0.1 -p 9 -t 5 -P 2 -u",
        "rate http://127.0.0.1/ -p 9",
    ] {
        says(line, 1, &["127.0.0.1", "refused"]);
    }
    // A bare number is bit/s, as with iperf3; one that is a slip of the unit is said.
    says("rate 127.0.0.1 -p 9 -u -b 10", 1, &["10 bit/s", "-b 10M"]);
    let ping = refused(&words("ping 127.0.0.1 -c 2 -i 0.01 -w 5 -W 1 -q --json"));
    assert!(ping.status.success(), "{}", stderr(&ping));
    assert!(stdout(&ping).contains(r#""sent":2"#));
}

#[test]
fn a_url_stands_for_its_host() {
    let output = refused(&words("mtu http://127.0.0.1:8080/page --json"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("is taken for its host, 127.0.0.1"));
    assert!(stdout(&output).contains(r#""name":"127.0.0.1""#));
}

#[test]
fn a_file_of_something_else_is_no_truncated_run() {
    let output = refused(&["report", "/etc/passwd"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("not JSON") && !text.contains("truncated"),
        "{text}"
    );
}

#[test]
fn plumb_alone_says_where_to_begin_and_help_has_the_verbs_in_groups() {
    let alone = refused(&[]);
    assert_eq!(alone.status.code(), Some(2));
    let text = stderr(&alone);
    for words in ["Begin with:", "plumb check", "plumb serve", "plumb --help"] {
        assert!(text.contains(words), "{text}");
    }
    let help = refused(&["--help"]);
    assert!(help.status.success());
    let text = stdout(&help);
    let places: Vec<_> = ["Measure", "Fix", "Emulate", "Results", "Learn", "Examples:"]
        .map(|word| {
            text.find(&format!("\n{word}"))
                .unwrap_or_else(|| panic!("{word}: {text}"))
        })
        .to_vec();
    assert!(places.is_sorted(), "{text}");
    assert!(text.matches("  plumb ").count() >= 3, "{text}");
}

/// Runs plumb where it would draw in colours and in UTF-8.
fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(PLUMB);
    command.args(arguments).envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn other_locales_and_terminals_get_what_they_can_show() {
    let asked = ["calc", "delay", "--rate", "1gbit", "--km", "1"];
    let utf8 = run_with(&asked, &[("LC_ALL", "C.UTF-8")]);
    assert!(stdout(&utf8).contains('µ'), "{}", stdout(&utf8));
    let ascii = run_with(&asked, &[("LC_ALL", "C")]);
    assert!(ascii.stdout.is_ascii(), "{}", stdout(&ascii));
    assert!(stdout(&ascii).contains("us"), "{}", stdout(&ascii));
    let json = run_with(
        &["calc", "delay", "--rate", "1gbit", "--km", "1", "--json"],
        &[("LC_ALL", "C")],
    );
    assert!(
        stdout(&json).contains('µ'),
        "JSON is UTF-8: {}",
        stdout(&json)
    );
    for arguments in [&["--help"][..], &["rate", "-h"], &["lab", "list"]] {
        let plain = run_with(arguments, &[("LC_ALL", "POSIX"), ("NO_COLOR", "1")]);
        assert!(plain.stdout.is_ascii(), "{arguments:?}");
        assert!(!stdout(&plain).contains('\u{1b}'), "{arguments:?}");
    }
}

/// No page has this word.
const OVER: &str = "ALL-SHOWN";

/// What a terminal of that many columns shows of a command, and what it leaves in its last row.
fn on_a_terminal(columns: u16, variables: &str, command: &str) -> String {
    let line = format!("stty cols {columns} rows 24; {variables} {PLUMB} {command}; echo {OVER}");
    Terminal::open(&line).shows(OVER)
}

#[test]
fn pages_are_set_for_the_terminal_and_paged_where_they_are_long() {
    let shown = on_a_terminal(80, "TERM=xterm PAGER='sed s/^/paged:/'", "explain verdict");
    assert!(shown.contains("paged:"), "{shown}");
    assert!(
        shown.contains("\u{1b}[1m") && !shown.contains("# "),
        "{shown}"
    );
    let shown = on_a_terminal(80, "TERM=xterm PAGER=false", "explain --no-pager verdict");
    assert!(shown.contains("\u{1b}[1m"), "{shown}");
    let shown = on_a_terminal(80, "TERM=dumb NO_COLOR=1 PAGER=false", "explain lag");
    assert!(
        !shown.contains('\u{1b}') && shown.contains("loat"),
        "{shown}"
    );
    for word in ["slow", "stutter", "buffering", "speed", "jitter", "lag"] {
        let page = refused(&["explain", word]);
        assert!(
            page.status.success() && stdout(&page).starts_with("# "),
            "{word}"
        );
    }
    let narrow = on_a_terminal(40, "TERM=xterm NO_COLOR=1", "lab list wifi");
    for line in narrow.lines() {
        assert!(line.trim_end().chars().count() <= 40, "{line}");
    }
}

#[test]
fn progress_leaves_nothing_above_a_result() {
    let shown = on_a_terminal(80, "TERM=xterm", "check --quick 127.0.0.1 -p 9");
    for line in shown.split('\n') {
        // What stays of a line: what was drawn behind the last time that it was erased.
        let stays = line.rsplit("\u{1b}[K").next().unwrap_or(line);
        let begins = stays.trim_start_matches('\r');
        assert!(
            !begins.starts_with("\u{e2}\u{a0}"),
            "a spinner is left: {stays:?}"
        );
    }
    let dumb = on_a_terminal(80, "TERM=dumb NO_COLOR=1", "check --quick 127.0.0.1 -p 9");
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
}

#[test]
fn nothing_applied_is_nothing_to_undo_for_every_user() {
    for verb in ["tune undo", "shape undo lo"] {
        let line = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {PLUMB} {verb}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stdout(&output).contains("nothing to undo"),
            "{}",
            stdout(&output)
        );
    }
}

#[test]
fn a_system_that_cannot_be_tuned_is_not_called_fine() {
    let plan = [
        "tune", "plan", "--rate", "10gbit", "--rtt", "50ms", "--os", "openbsd",
    ];
    let text = stdout(&refused(&plan));
    assert!(!text.contains("Nothing needs to change"), "{text}");
    assert!(
        text.contains("No setting that plumb may change helps") && text.contains("2 MB"),
        "{text}"
    );
}

#[test]
fn a_host_that_refuses_is_there() {
    let line = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all {PLUMB} check --quick 127.0.0.1 -p 9"
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert!(!text.contains("does not answer"), "{text}");
    assert!(text.contains("127.0.0.1 answers"), "{text}");
}

#[test]
fn a_shaper_is_planned_for_a_router_elsewhere() {
    let plan = |router: &str| {
        let line = [
            "shape", "plan", "wan", "--up", "18.9mbit", "--router", router,
        ];
        plumb(&line)
    };
    // A device of that name is on the router alone.
    for (router, words) in [
        ("generic", &["SQM", "18900"][..]),
        ("mikrotik", &["/queue", "cake"]),
        ("openwrt", &["uci set sqm", "18900"]),
    ] {
        let output = plan(router);
        assert!(output.status.success(), "{router}: {}", stderr(&output));
        for word in words {
            assert!(
                stdout(&output).contains(word),
                "{word}: {}",
                stdout(&output)
            );
        }
    }
    assert_eq!(plan("abacus").status.code(), Some(2));
    let nothing = plumb(&["shape", "plan", "wan", "--router", "generic"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", stderr(&nothing));
}
