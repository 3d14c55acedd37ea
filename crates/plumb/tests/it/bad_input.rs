//! Whatever is wrong gets a clear message and a status, and nothing hangs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::responder::Responder;
use crate::common::slots::{self, Weight};
use crate::common::{plumb, refused, stderr, stdout};
use plumb_model::finding::Clearance;
use plumb_model::run::Run;

/// Longest for what says at once, or after a look-up or a silence of five seconds, what is wrong: ten times that.
const SOON: Duration = Duration::from_secs(60);

/// Runs plumb, which loads nothing where the test has no turn for that, and fails when it does not end [`SOON`].
fn soon(arguments: &[&str]) -> Output {
    let _slot = slots::take(Weight::Light);
    let started = Instant::now();
    let output = plumb(arguments);
    assert!(
        started.elapsed() < SOON,
        "{arguments:?} took {:?}",
        started.elapsed()
    );
    output
}

fn says(output: &Output, status: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(
        words.iter().all(|word| text.contains(word)),
        "{words:?} in: {text}"
    );
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn usage_errors_are_2() {
    says(
        &refused(&["check", "--local", "127.0.0.1"]),
        2,
        &["--local"],
    );
    says(
        &refused(&["check", "--quick", "--thorough", "127.0.0.1"]),
        2,
        &["--quick"],
    );
    says(
        &refused(&["check", "127.0.0.1", "--plan", "fast"]),
        2,
        &["1000/50"],
    );
    says(
        &refused(&["check", "127.0.0.1", "--goal", "soon"]),
        2,
        &["30ms"],
    );
    says(
        &refused(&["check", "127.0.0.1", "--for", "fun"]),
        2,
        &["transfer"],
    );
    says(
        &refused(&["rate", "127.0.0.1", "--duration", "5x"]),
        2,
        &["5, 5s, 250ms or 2m"],
    );
    says(
        &refused(&["check", "127.0.0.1", "--budget", "lots"]),
        2,
        &["2GB"],
    );
    says(
        &refused(&["load", "127.0.0.1", "--streams", "0"]),
        2,
        &["from 1 to 191"],
    );
    for (options, why) in [
        (["--udp", "--tls"].as_slice(), "--tls"),
        (&["--udp", "--connect"], "--udp"),
        (&["--streams", "0"], "from 1 to"),
        (&["--up"], "--up"),
    ] {
        let command = [&["transactions", "127.0.0.1"], options].concat();
        says(&refused(&command), 2, &[why]);
    }
}

#[test]
fn options_that_contradict_each_other_are_usage_errors() {
    for (command, why) in [
        (
            "ping 127.0.0.1 127.0.0.2 --flood",
            "leave out --sweep and --flood",
        ),
        ("ping 127.0.0.1 --insecure", "over HTTPS alone"),
        (
            "ping 127.0.0.1 --protocol tcp --size 99",
            "tcp, http and https",
        ),
        (
            "ping 127.0.0.0/30 --protocol dns --size 99",
            "dns: the sizes",
        ),
        ("path 127.0.0.1 --first-hop 5 --max-hops 3", "--max-hops"),
        ("tune plan", "which path?"),
        ("tune plan --rate 0bit --rtt 5ms", "above zero"),
        ("tune plan --rate 1gbit --rtt 5ms --loss 1", "write 1%"),
        ("host cipher --rate 0", "a rate above zero"),
        ("host disk --rate 0", "a rate above zero"),
        ("host --facts --json", "cannot be used with"),
        ("host --facts everything", "interfaces"),
        (
            "rate 127.0.0.1 --udp --rate 1mbit --pattern waltz",
            "no pattern",
        ),
        (
            "rate 127.0.0.1 --udp --rate 1mbit --pattern on-off=1s",
            "two times",
        ),
        (
            "load 127.0.0.1 --shape rrul --rpm-interval 5s",
            "cannot be used with '--rpm-interval",
        ),
        (
            "report run.json --svg x.svg --phase up",
            "--figure <KIND>|--flent <FILE>",
        ),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        says(&refused(&words), 2, &[why]);
    }
}

#[test]
fn transactions_that_cannot_be_are_refused_before_anything_is_sent() {
    for (options, why) in [
        (["--request", "0"].as_slice(), "1 to 4194304"),
        (&["--response", "5000000"], "5000000"),
        (&["--udp", "--request", "20"], "64 to 65507"),
        (&["--per-second", "0"], "a second"),
        (&["--per-second", "NaN"], "a second"),
    ] {
        // Nothing listens there, which would be said otherwise.
        let command = [&["transactions", "127.0.0.1", "--port", "1"], options].concat();
        says(&plumb(&command), 2, &["cannot ask", why]);
    }
}

#[test]
fn an_unknown_host_is_named() {
    for verb in ["check", "ping", "rate", "load"] {
        says(
            &soon(&[verb, "no-such-host.invalid"]),
            1,
            &["no-such-host.invalid", "spelling"],
        );
    }
}

#[test]
fn a_refused_port_says_what_to_start() {
    for verb in ["rate", "load"] {
        says(
            &soon(&[verb, "127.0.0.1", "--port", "9"]),
            1,
            &["refused", "plumb serve"],
        );
    }
}

#[test]
fn a_responder_that_allows_too_little_is_said_before_anything_is_sent() {
    let responder = Responder::start_for(Weight::Light, &["--max-streams", "4"]);
    let port = responder.port.to_string();
    says(
        &soon(&["check", "127.0.0.1", "--port", &port]),
        1,
        &["allows 4 streams", "takes 8", "--streams"],
    );
    let too_long = ["rate", "127.0.0.1", "--port", &port, "--duration", "1h"];
    says(&soon(&too_long), 1, &["600 s", "--duration"]);
}

#[test]
fn an_unknown_congestion_control_is_refused_before_anything_is_sent() {
    let responder = Responder::start_for(Weight::Light, &[]);
    let port = responder.port.to_string();
    let arguments = ["rate", "127.0.0.1", "--port", &port, "--cc", "nonsense"];
    says(&soon(&arguments), 1, &["nonsense", "it has", "reno"]);
}

#[test]
fn an_interrupted_measurement_keeps_what_it_has() {
    let responder = Responder::start_for(Weight::Slow, &[]);
    let client = responder.long_download();
    sleep(Duration::from_secs(2));
    let pid = client.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = client.wait_with_output().unwrap();
    says(&output, 130, &["cut short by Ctrl-C"]);
    let run = Run::from_json(&stdout(&output)).unwrap();
    assert!(!run.measurements.is_empty());
    assert!(
        run.notes.iter().any(|note| note.contains("stopped")),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_gate_that_could_not_judge_does_not_pass() {
    let arguments = ["check", "127.0.0.1", "--port", "9", "--fail-on", "critical"];
    says(&soon(&arguments), 1, &["--fail-on", "refused"]);
}

#[test]
fn a_silent_port_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    says(
        &soon(&["rate", "127.0.0.1", "--port", &port]),
        1,
        &["says nothing"],
    );
}

#[test]
fn without_a_responder_check_measures_what_it_can() {
    let output = soon(&["check", "127.0.0.1", "--port", "9", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    assert!(run.measurements.len() >= 2, "{:?}", run.measurements);
    assert!(
        run.notes.iter().any(|note| note.contains("plumb serve")),
        "{:?}",
        run.notes
    );
    let verdict = run.verdict.unwrap();
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(verdict.latency_grade, None);
}

#[test]
fn a_server_that_dies_is_noticed() {
    let responder = Responder::start_for(Weight::Slow, &[]);
    let client = responder.long_download();
    sleep(Duration::from_secs(2));
    let started = Instant::now();
    drop(responder);
    let output = client.wait_with_output().unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(40),
        "{:?}",
        started.elapsed()
    );
    says(&output, 1, &["127.0.0.1", "plumb serve"]);
}

#[test]
fn noise_does_not_disturb_a_responder() {
    let responder = Responder::start_for(Weight::Slow, &[]);
    let address = ("127.0.0.1", responder.port);
    // Random bytes to the control port and the echo port, and a connection that says nothing.
    let noise: Vec<u8> = (0..4096u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let quiet = TcpStream::connect(address).unwrap();
    for start in [0, 100, 1000] {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&noise[start..]);
        stream
            .set_read_timeout(Some(Duration::from_secs(6)))
            .unwrap();
        // It is closed, and not left hanging.
        assert!(
            !matches!(stream.read_to_end(&mut Vec::new()), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
        );
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    for length in [0, 1, 63, 64, 65, 1400] {
        socket.send_to(&noise[..length], address).unwrap();
    }
    assert!(
        socket.recv(&mut [0; 2048]).is_err(),
        "noise is not answered"
    );
    let port = responder.port.to_string();
    let output = soon(&[
        "rate",
        "127.0.0.1",
        "--port",
        &port,
        "--up",
        "--pacing",
        "20mbit",
        "--duration",
        "1s",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    drop(quiet);
}

#[test]
fn runs_that_cannot_be_read_are_told_apart() {
    // Nobody is there to be loaded.
    let _slot = slots::take(Weight::Light);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let path = file.to_str().unwrap();
    let good = stdout(&plumb(&["check", "127.0.0.1", "--port", "9", "--json"]));
    for (text, word) in [
        (&good[..good.len() / 2], "truncated"),
        (
            &good.replace("plumb.run/2", "plumb.run/7")[..],
            "plumb.run/7",
        ),
        (
            &good.replace("\"measurements\"", "\"measurments\"")[..],
            "shape",
        ),
        ("", "truncated"),
        ("\u{0}\u{1}", "JSON"),
    ] {
        std::fs::write(&file, text).unwrap();
        for arguments in [
            &["report", path][..],
            &["compare", path, path],
            &["report", path, "-o", "/dev/null"],
        ] {
            says(&plumb(arguments), 1, &["run.json", word]);
        }
    }
    says(
        &plumb(&["report", "/no/such/run.json"]),
        1,
        &["/no/such/run.json"],
    );
    std::fs::write(&file, &good).unwrap();
    assert!(plumb(&["report", path]).status.success());
    says(
        &plumb(&["report", path, "-o", "/no/such/dir/out.html"]),
        1,
        &["/no/such/dir/out.html"],
    );
}

#[test]
fn a_taken_port_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    says(
        &soon(&["serve", "--listen", "127.0.0.1", "--port", &port]),
        1,
        &["another program"],
    );
}
