//! `plumb watch`: a line that goes dead, what the page and the metrics say of it, and what is wrong with a file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::common::network::Network;
use crate::common::{PLUMB, refused, stderr, stdout};

/// How often the line is probed, in seconds.
const EVERY_S: f64 = 0.2;

/// By so much a busy machine may probe later than planned, and a line change later than asked, in seconds.
const LATE_S: f64 = 0.3;

/// A probe under way when the line goes dead is lost too: the round trip of the line, in seconds. Times are shown to a tenth.
const EARLY_S: f64 = 0.02 + 0.1;

/// Four targets on one line: by a name, one of them refused.
const TARGETS: &str = r#"
[[target]]
name = "echo"
host = "server"
probe = "icmp"
every = "200ms"
more_often_than_10s = true

[[target]]
name = "port"
host = "server"
port = 7586
probe = "tcp"
every = "200ms"
more_often_than_10s = true

[[target]]
name = "page"
host = "server"
port = 4043
probe = "http"
every = "1s"
more_often_than_10s = true

[[target]]
name = "<script>alert(1)</script>"
host = "server"
port = 9
probe = "tcp"
every = "1s"
more_often_than_10s = true
"#;

/// Two outages, the second with the route gone as well; a file that is wrong; a kill, and another start.
const SCRIPT: &str = r#"
cd "$FOLDER"
page=http://127.0.0.1:7590
begin() {
    plumb watch w.toml 2>> said &
    watch=$!
    for _ in $(seq 50); do
        ! curl -sf -o overview "$page/" || return 0
        sleep 0.1
    done
    cat said >&2
    exit 1
}
note() { echo "$1 $(date +%s.%N)"; }
begin
sleep 1.5
note dead-from; plumb lab set line.up.loss ratio=100% > /dev/null; note dead-at
sleep 5.2
curl -sf "$page/" > during
curl -sf "$page/metrics" > metrics-during
note alive-from; plumb lab set line.up.loss ratio=0% > /dev/null; note alive-at
sleep 1
note cut-from; ip link set line down; note cut-at
sleep 1
note back-from; ip link set line up; note back-at
sleep 3.5
cp w.toml good.toml
sed -i 's/"200ms"/"never"/' w.toml
kill -HUP $watch
sleep 0.5
cp good.toml w.toml
kill -KILL $watch
wait $watch || true
begin
for target in echo port '%3Cscript%3Ealert(1)%3C%2Fscript%3E'; do
    curl -sf -D "head-$target" "$page/target/$target" > "target-$target"
done
curl -sf "$page/" > overview
curl -sf "$page/metrics" > metrics
kill -TERM $watch
wait $watch
echo "ended $?"
"#;

/// The outages that a target's page lists, the first one first, s since 1970.
fn outages(page: &str) -> Vec<[f64; 2]> {
    let (_, table) = page.split_once("<th>begin (UTC)</th>").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows = table.split("<tr><td>").skip(1).map(|row| {
        let mut cells = row.split("</td><td>");
        let mut time = || {
            let time: Timestamp = cells.next().unwrap().parse().unwrap();
            time.as_microsecond() as f64 / 1e6
        };
        [time(), time()]
    });
    let mut found: Vec<_> = rows.collect();
    found.reverse();
    found
}

#[test]
fn a_line_that_goes_dead_is_seen_to_the_probe() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("[store]\npath = \"w.db\"\n{TARGETS}");
    fs::write(folder.path().join("w.toml"), file).unwrap();
    let mut line = Network::served_line(
        "{ type = \"loss\", ratio = \"0%\" }, { type = \"delay\", delay = \"10ms\" }",
        "{ type = \"delay\", delay = \"10ms\" }",
    );
    line.without_ipv6();
    let script = format!("set -e; FOLDER='{}'\n{SCRIPT}", folder.path().display());
    let (said, _) = line.script(&script);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let at = |what: &str| -> f64 {
        let noted = said.lines().find_map(|line| line.strip_prefix(what));
        noted
            .unwrap_or_else(|| panic!("{what}: {said}"))
            .trim()
            .parse()
            .unwrap()
    };
    assert!(said.contains("ended 0"), "{said}");

    // While it was dead.
    let during = read("during");
    for target in ["echo", "port"] {
        let words = format!("{target}</a> has not answered since");
        assert!(during.contains(&words), "{during}");
    }
    let metrics = read("metrics-during");
    assert!(
        metrics.contains("plumb_watch_up{target=\"echo\",probe=\"icmp\"} 0\n"),
        "{metrics}"
    );

    // After a kill and another start.
    for target in ["echo", "port"] {
        let page = read(&format!("target-{target}"));
        let found = outages(&page);
        assert_eq!(found.len(), 2, "{target}: {page}");
        let edges = [("dead", "alive"), ("cut", "back")];
        for ([begin, end], (from, to)) in found.into_iter().zip(edges) {
            for (seen, edge) in [(begin, from), (end, to)] {
                let earliest = at(&format!("{edge}-from ")) - EARLY_S;
                let latest = at(&format!("{edge}-at ")) + EVERY_S + LATE_S;
                eprintln!(
                    "{target}: {edge} seen {:.3} s after it was asked for",
                    seen - at(&format!("{edge}-from "))
                );
                assert!(
                    (earliest..=latest).contains(&seen),
                    "{target} {edge}: {seen} {earliest} {latest}"
                );
            }
        }
        assert!(
            page.contains("<svg") && page.contains("var(--loss)\"><title>"),
            "{page}"
        );
    }
    let metrics = read("metrics");
    for line in [
        "plumb_watch_outages{target=\"echo\",probe=\"icmp\"} 2\n",
        "plumb_watch_up{target=\"<script>alert(1)</script>\",probe=\"tcp\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    let median = metrics.lines().find_map(|line| {
        line.strip_prefix(
            "plumb_watch_rtt_seconds{target=\"echo\",probe=\"icmp\",quantile=\"0.5\"} ",
        )
    });
    let median: f64 = median.unwrap().parse().unwrap();
    assert!((0.02..0.03).contains(&median), "{median}");

    // A refused connection is no answer, and a name is no markup.
    let script = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for page in [read("overview"), read(&format!("target-{script}"))] {
        assert!(
            page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"),
            "{page}"
        );
    }
    assert!(read("overview").contains("&lt;/script&gt;</a> has not answered since"));
    assert!(
        read(&format!("head-{script}")).contains("Content-Security-Policy: default-src 'none'")
    );
    let log = read("said");
    assert!(
        log.contains("the configuration stays as it was: w.toml: line"),
        "{log}"
    );
    assert!(log.contains("write an interval with its unit"), "{log}");
    assert!(
        log.contains("</script>, no answer: the connection is refused"),
        "{log}"
    );
    assert!(
        log.contains("echo, no answer: ") && log.contains("has no route"),
        "{log}"
    );
}

/// A port that refuses, probed for two seconds: what is reported, exported and copied of it meanwhile.
#[test]
fn a_history_is_reported_exported_and_copied_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let target = "[[target]]\nname = \"gone, \\\"far\\\"\"\nhost = \"127.0.0.1\"\nport = 1\nprobe = \"tcp\"\nevery = \"100ms\"\n";
    let page = "[page]\nlisten = \"127.0.0.1:0\"\n";
    let file = written(
        folder.path(),
        &format!("[store]\npath = \"w.db\"\n{page}{target}"),
    );
    // Nothing was watched yet.
    let said = refused(&["watch", "report", &file]);
    assert_eq!(said.status.code(), Some(1), "{}", stderr(&said));
    assert!(
        stderr(&said).contains("there is no history at"),
        "{}",
        stderr(&said)
    );
    let mut watch = Command::new(PLUMB)
        .args(["watch", &file])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let rows = |source: &str, what: &str| -> Vec<String> {
        let said = refused(&["watch", "export", source, "--what", what]);
        let text = stdout(&said);
        text.split_terminator("\r\n").map(str::to_owned).collect()
    };
    // Three probes without an answer are an outage.
    let deadline = Instant::now() + Duration::from_secs(20);
    while rows(&file, "outages").len() < 2 {
        assert!(
            Instant::now() < deadline,
            "no outage in {:?}",
            rows(&file, "samples")
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let samples = rows(&file, "series");
    assert_eq!(samples[0], "target,sent,value");
    assert!(
        samples.len() > 3 && samples[1].starts_with("\"gone, \"\"far\"\"\",20"),
        "{samples:?}"
    );
    assert!(samples[1].ends_with("Z,"), "{samples:?}");
    let report = refused(&["watch", "report", &file]);
    assert!(
        stdout(&report).contains("s watched  1 "),
        "{}",
        stdout(&report)
    );
    assert!(
        stderr(&report).contains("neither up nor down"),
        "{}",
        stderr(&report)
    );
    let copy = folder.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    let copied = refused(&["watch", "backup", &file, copy]);
    assert!(copied.status.success(), "{}", stderr(&copied));
    let again = refused(&["watch", "backup", &file, copy]);
    assert!(
        stderr(&again).contains("is there already"),
        "{}",
        stderr(&again)
    );
    watch.kill().unwrap();
    watch.wait().unwrap();
    // The copy has what was known then, and stands for the file.
    let copied = rows(copy, "samples");
    assert!(copied.len() >= samples.len(), "{copied:?}");
    assert_eq!(copied[..samples.len()], samples);
    assert_eq!(
        rows(copy, "alarms"),
        ["target,alarm,since,raised,cleared,words,behind"]
    );
    let csv = folder.path().join("out.csv");
    let csv = csv.to_str().unwrap();
    let said = refused(&[
        "watch",
        "export",
        copy,
        "--from",
        "1d",
        "--target",
        "gone, \"far\"",
        "-o",
        csv,
    ]);
    assert!(
        said.status.success() && stdout(&said).is_empty(),
        "{}",
        stderr(&said)
    );
    assert_eq!(
        fs::read_to_string(csv).unwrap().lines().count(),
        copied.len()
    );
    let table = folder.path().join("out.parquet");
    let form = ["--format", "parquet", "-o", table.to_str().unwrap()];
    let said = refused(&[&["watch", "export", copy], &form[..]].concat());
    assert!(said.status.success(), "{}", stderr(&said));
    // Its first and last bytes (Apache Parquet, "File Format").
    let table = fs::read(table).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    for (arguments, status, words) in [
        (&["--target", "x"][..], 2, "the history has no target 'x'"),
        (&["--format", "parquet"], 2, "name a file with -o"),
        (&["--from", "never"], 2, "write a date of UTC"),
        (
            &["--from", "1h", "--until", "2h"],
            2,
            "ends before it begins",
        ),
    ] {
        let said = refused(&[&["watch", "export", copy], arguments].concat());
        assert_eq!(said.status.code(), Some(status), "{}", stderr(&said));
        assert!(stderr(&said).contains(words), "{}", stderr(&said));
    }
    // A newer one: the version stands in byte 60 of the file (SQLite's "Database File Format", section 1.3.13).
    let mut bytes = fs::read(copy).unwrap();
    bytes[63] += 1;
    fs::write(copy, &bytes).unwrap();
    bytes[63] -= 1;
    bytes[200..].fill(0x5a);
    let torn = folder.path().join("torn.db");
    fs::write(&torn, &bytes).unwrap();
    for (source, words) in [
        (copy, "newer plumb"),
        (torn.to_str().unwrap(), "is damaged"),
    ] {
        for verb in ["report", "export"] {
            let said = refused(&["watch", verb, source]);
            assert_eq!(said.status.code(), Some(1), "{}", stderr(&said));
            assert!(stderr(&said).contains(words), "{}", stderr(&said));
        }
        let said = refused(&["watch", "backup", source, csv]);
        assert_eq!(said.status.code(), Some(1), "{}", stderr(&said));
    }
}

fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("w.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_checked_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let good = format!("[store]\npath = \"w.db\"\n{TARGETS}");
    let file = written(folder.path(), &good);
    let checked = refused(&["watch", "--check-config", &file]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(
        stderr(&checked).contains("4 targets, 12.00 probes a second"),
        "{}",
        stderr(&checked)
    );
    assert!(!folder.path().join("w.db").exists());
    for (wrong, words) in [
        (
            good.replace("\"icmp\"", "\"imcp\""),
            "line 7, `probe = \"imcp\"`: no probe is called 'imcp'",
        ),
        (
            good.replace("port = 9\n", "prot = 9\n"),
            "line 30, `prot = 9`: unknown field `prot`",
        ),
    ] {
        let file = written(folder.path(), &wrong);
        for command in [&["watch", "--check-config", &file][..], &["watch", &file]] {
            let said = refused(command);
            assert_eq!(said.status.code(), Some(2), "{}", stderr(&said));
            assert!(stderr(&said).contains(words), "{}", stderr(&said));
        }
    }
    let said = refused(&["watch"]);
    assert_eq!(said.status.code(), Some(2), "{}", stderr(&said));
}

#[test]
fn another_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(
        folder.path(),
        &format!("[store]\npath = \"w.db\"\n{TARGETS}"),
    );
    let text = "no database\n".repeat(1000);
    fs::write(folder.path().join("w.db"), &text).unwrap();
    let said = refused(&["watch", &file]);
    assert_eq!(said.status.code(), Some(1), "{}", stderr(&said));
    assert!(
        stderr(&said).contains("w.db is damaged"),
        "{}",
        stderr(&said)
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("w.db")).unwrap(),
        text
    );
}

/// `plumb` in a network without anything: it asks no gateway of the machine whether it answers.
fn alone(arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--net", PLUMB]).args(arguments);
    command.output().unwrap()
}

#[test]
fn init_writes_a_file_that_is_in_order_and_overwrites_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.toml");
    let file = file.to_str().unwrap();
    let hosts = ["www.example.net", "192.0.2.7"];
    let made = alone(&[&["watch", "init", "-o", file], &hosts[..]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    let checked = refused(&["watch", "--check-config", file]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let text = fs::read_to_string(file).unwrap();
    assert!(
        hosts
            .iter()
            .all(|host| text.contains(&format!("host = \"{host}\""))),
        "{text}"
    );
    let again = alone(&["watch", "init", "-o", file, "other.example.net"]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert_eq!(fs::read_to_string(file).unwrap(), text);
    assert_eq!(stdout(&alone(&["watch", "init", hosts[0], hosts[1]])), text);
    let said = alone(&["watch", "init", "http://example.net/"]);
    assert_eq!(said.status.code(), Some(2), "{}", stderr(&said));
}
