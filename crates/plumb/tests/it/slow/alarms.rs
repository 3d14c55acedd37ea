//! An alarm from a line that goes bad to its recipients, through the whole program.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;

use crate::common::network::Network;
use crate::https::{certificate, of_server};

/// Tells the ignored test that it is a program: the folder of its certificate, and of what it is sent.
const INSIDE: &str = "PLUMB_TEST_WEBHOOK";

/// A minute is judged 10 s after its end, and messages are looked for every 2 s (kb/watch.md); by so much a busy machine may
/// be later, in seconds.
const AFTER_S: f64 = 10.0 + 2.0;
const LATE_S: f64 = 3.0;

/// A target each second; two thirds of a minute without an answer are an alarm, and a minute that is better ends it.
const WATCHED: &str = r#"
[store]
path = "w.db"

[[target]]
name = "server"
host = "server"
probe = "icmp"
every = "1s"
more_often_than_10s = true

[[alarm]]
name = "loss"
kind = "threshold"
quantity = "loss"
above = "50%"
over = "1m"
raise_after = "0s"
clear_after = "0s"

[[deliver]]
name = "command"
kind = "exec"
command = ["sh", "-c", "{ date +%s.%N; cat; echo; } >> FOLDER/heard"]

[[deliver]]
name = "believed"
kind = "webhook"
url = "https://127.0.0.1:4443/hook"
ca = "FOLDER/server.pem"

[[deliver]]
name = "unbelieved"
kind = "webhook"
url = "https://127.0.0.1:4443/other"
"#;

/// The line is dead from the twentieth second of a minute until the alarm is heard of.
const SCRIPT: &str = r#"
cd "$FOLDER"
note() { echo "$1 $(date +%s.%N)"; }
hear() {
    for _ in $(seq "$2"); do
        ! grep -qs "\"state\":\"$1\"" heard || return 0
        sleep 0.2
    done
    cat said heard >&2
    exit 1
}
SSL_CERT_FILE="$FOLDER/other.pem" plumb watch w.toml 2>> said &
watch=$!
sleep 3
sleep $(( (80 - 10#$(date +%S)) % 60 ))
note bad-from; plumb lab set line.up.loss ratio=100% > /dev/null
hear raised 400
note good-from; plumb lab set line.up.loss ratio=0% > /dev/null
hear cleared 500
sleep 3
kill -TERM $watch
wait $watch
"#;

/// A program in the laboratory: takes messages by HTTP over TLS, and writes each into a file.
#[test]
#[ignore = "a program that the other test starts in a laboratory"]
fn program_webhook() {
    let Some(folder) = std::env::var_os(INSIDE) else {
        return;
    };
    let folder = Path::new(&folder);
    let config = of_server(folder);
    let listener = TcpListener::bind(("0.0.0.0", 4443)).unwrap();
    // It ends with the laboratory.
    for stream in listener.incoming() {
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = StreamOwned::new(session, stream.unwrap());
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        // Who does not believe the certificate sends nothing.
        while !seen.ends_with(b"}") {
            match tls.read(&mut buffer) {
                Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                _ => break,
            }
        }
        if !seen.is_empty() {
            let seen = String::from_utf8(seen).unwrap();
            let (head, body) = seen.split_once("\r\n\r\n").unwrap();
            let asked = head.split(' ').nth(1).unwrap();
            let file = folder.join("hooked");
            let mut options = fs::File::options();
            let mut file = options.append(true).create(true).open(file).unwrap();
            writeln!(file, "{asked} {body}").unwrap();
            let _ = tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        }
    }
}

#[test]
#[ignore = "slow: an alarm is judged by the minute"]
fn an_alarm_is_heard_of_in_time_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().to_str().unwrap();
    certificate(folder.path(), "server", "127.0.0.1");
    certificate(folder.path(), "other", "127.0.0.1");
    let file = WATCHED.replace("FOLDER", inside);
    fs::write(folder.path().join("w.toml"), file).unwrap();
    let this = std::env::current_exe().unwrap();
    let delay = "{ type = \"delay\", delay = \"10ms\" }";
    let mut line = Network::line(
        &format!("{{ type = \"loss\", ratio = \"0%\" }}, {delay}"),
        delay,
    );
    line.without_ipv6();
    let hook = format!("{INSIDE}={inside}");
    let hook = [
        "env",
        &hook,
        this.to_str().unwrap(),
        "--ignored",
        "--exact",
        "slow::alarms::program_webhook",
    ];
    line.service("client", &hook, 4443);
    let (said, _) = line.script(&format!("set -e; FOLDER='{inside}'\n{SCRIPT}"));
    let at = |what: &str| -> f64 {
        let noted = said.lines().find_map(|line| line.strip_prefix(what));
        noted.unwrap().trim().parse().unwrap()
    };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let heard = read("heard");
    let lines: Vec<&str> = heard.lines().collect();
    let messages: Vec<(f64, Value)> = lines
        .chunks(2)
        .map(|pair| {
            (
                pair[0].parse().unwrap(),
                serde_json::from_str(pair[1]).unwrap(),
            )
        })
        .collect();
    assert_eq!(messages.len(), 2, "{heard}");
    let time = |message: &Value, key: &str| -> f64 {
        let time: Timestamp = message["alarms"][0][key].as_str().unwrap().parse().unwrap();
        time.as_microsecond() as f64 / 1e6
    };
    let (bad, good) = (at("bad-from "), at("good-from "));
    let [(raised_at, raised), (cleared_at, cleared)] = &messages[..] else {
        unreachable!();
    };

    // Since the first lost probe, which a round trip of 20 ms may have been under way, judged at the end of the minute.
    assert_eq!(raised["alarms"][0]["target"], "server");
    let since = time(raised, "since");
    assert!(
        (bad - 1.1..=bad + 1.0 + LATE_S).contains(&since),
        "{since} {bad}"
    );
    let minute_end = (bad / 60.0).ceil() * 60.0;
    assert_eq!(time(raised, "raised"), minute_end);
    let late = raised_at - minute_end;
    eprintln!(
        "raised {:.1} s after the line went bad, {late:.1} s after the minute",
        raised_at - bad
    );
    assert!((10.0..=AFTER_S + LATE_S).contains(&late), "{late}");

    // The next minute has a fifth of its probes without an answer, and ends the alarm.
    assert_eq!(cleared["alarms"][0]["state"], "cleared");
    assert_eq!(time(cleared, "cleared"), minute_end + 60.0);
    let late = cleared_at - minute_end - 60.0;
    eprintln!(
        "cleared {:.1} s after the line was good again",
        cleared_at - good
    );
    assert!((10.0..=AFTER_S + LATE_S).contains(&late), "{late}");

    // By TLS to whom its certificate is given, and to nobody else.
    let hooked = read("hooked");
    let hooked: Vec<(&str, Value)> = hooked
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(asked, body)| (asked, serde_json::from_str(body).unwrap()))
        .collect();
    let sent: Vec<_> = messages
        .into_iter()
        .map(|(_, message)| ("/hook", message))
        .collect();
    assert_eq!(hooked, sent);
    let log = read("said");
    for words in [
        "alarm: server: loss of",
        "delivery 'unbelieved': an alarm is not sent yet: the TLS handshake failed: the certificate is not believed: ",
        "ca = \"/FILE\" names who may sign it",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(
        !log.contains("delivery 'believed'") && !log.contains("delivery 'command'"),
        "{log}"
    );
}
