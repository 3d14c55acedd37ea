//! `plumb rate` against networks whose truth is known, and what it says to bad input.

use std::io::Write;

use crate::common::measured::even_disturbed;
use crate::common::network::Network;
use crate::common::slots::Weight;
use crate::common::{in_lab, measured_in, refused, slots, stderr, stdout};
use plumb_lab::disturbance::Disturbance;
use plumb_lab::scenario::Scenario;
use plumb_lab::truth::{is_about_the_machine, truth};
use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::run::{Ended, Run};

/// A line of the given rate, and what its upload must say.
fn line(rate_bps: u64) -> Network {
    // A queue of 20 ms, and at least 30 packets; buffers that hold the path and its queue several
    // times over.
    let queue = (rate_bps / 8 / 50).max(45_000);
    let way = format!(
        r#"{{ type = "shaper", rate = "{rate_bps}bit", framing = "ethernet", queue = {{ type = "fifo", limit = "{queue}B" }} }}, {{ type = "delay", delay = "2ms" }}"#
    );
    let mut line = Network::served_line(&way, &way);
    line.sysctl("client", "net.ipv4.tcp_wmem", "4096 131072 67108864");
    line.sysctl("server", "net.ipv4.tcp_rmem", "4096 131072 67108864");
    line.add(&format!(
        r#"
[[truth.value]]
what = "the rate is the payload that the line delivered"
measurement = {{ kind = "throughput", direction = "up" }}
field = "result.bps"
payload_rate = "line.up"
tolerance_ratio = 0.02
[[truth.value]]
what = "after slow start the line is full"
measurement = {{ kind = "throughput", direction = "up" }}
field = "result.slow_start.rate_after_bps"
min = {min}
max = {max}
"#,
        // 1448 bytes of payload in 1538 on the wire, to 2 %.
        min = 0.98 * rate_bps as f64 * 1448.0 / 1538.0,
        max = 1.02 * rate_bps as f64 * 1448.0 / 1538.0,
    ));
    line
}

#[test]
fn rates_are_those_of_the_line_from_1_mbit_to_5_gbit() {
    let mut wrong = Vec::new();
    for (rate_bps, duration) in [
        (1_000_000, "8s"),
        (20_000_000, "4s"),
        (300_000_000, "4s"),
        (1_000_000_000, "4s"),
        (5_000_000_000, "4s"),
    ] {
        let measure = ["rate", "server", "--up", "--duration", duration];
        let line = line(rate_bps);
        // Whether the machine fills the line is its own affair (`bench/lab.sh`); one that it could not fill must be marked
        // as such, and what crossed be said all the same.
        let may_be_late = rate_bps > 1_000_000_000;
        let checked = match may_be_late {
            true => even_disturbed(|| line.measured(&measure)),
            false => line.measured(&measure),
        };
        let (run, mut scenario) = (checked.run, checked.scenario);
        let mark = run.local.lab.as_ref().expect("measured in a laboratory");
        // Large segments cross whole where they keep the line for 250 µs at most: the Run says how much
        // later that made a packet. At 1 Mbit/s one packet alone takes 12 ms.
        let ways = checked.stats.links.values().flat_map(|ways| ways.values());
        let pieces = ways.map(|way| way.chain.piece_error_s).fold(0.0, f64::max);
        assert_eq!(mark.piece_error_s, pieces, "{rate_bps}");
        let (least, most) = if rate_bps < 100_000_000 {
            (0.0, 0.0)
        } else {
            (1e-6, 250e-6)
        };
        assert!((least..=most).contains(&pieces), "{rate_bps}: {pieces}");
        if may_be_late && !Disturbance::of_run(mark).is_empty() {
            scenario.truth.values.truncate(1);
        }
        let deviations = truth(&scenario, &run, &checked.stats);
        wrong.extend(deviations.iter().map(|d| format!("{rate_bps} bit/s: {d}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The name of the largest share of time in the upload of a scenario, and the causes of what was found.
/// Ends a second or two after slow start, and not after the minute that it might last.
#[test]
fn a_rate_that_is_steady_ends_it() {
    let rate = [
        "rate",
        "server",
        "--up",
        "--duration",
        "60s",
        "--until",
        "steady",
    ];
    let measured = measured_in("home-cable", &rate);
    let [measurement, ..] = measured.run.measurements.as_slice() else {
        panic!("{:?}", measured.run)
    };
    assert_eq!(measurement.ended, Ended::Steady);
    let lasted_s = measurement.duration_s;
    assert!((2.0..10.0).contains(&lasted_s), "{lasted_s}");
}

fn limited_by(scenario: &str) -> (String, Vec<Cause>) {
    let truth = Scenario::load(scenario).unwrap().truth;
    let measure = truth.measure.iter().map(String::as_str);
    let output = in_lab(
        scenario,
        &[],
        &measure.chain(["--json"]).collect::<Vec<_>>(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let run: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let measurements = run["measurements"].as_array().unwrap();
    let upload = measurements.iter().find(|m| m["kind"] == "throughput");
    let limited = &upload.unwrap()["result"]["tcp"]["limited"];
    let shares = limited.as_object().unwrap().iter();
    let largest = shares.max_by(|a, b| a.1.as_f64().unwrap().total_cmp(&b.1.as_f64().unwrap()));
    let run = Run::from_json(&run.to_string()).unwrap();
    let of_the_line = run.findings.iter().filter(|f| !is_about_the_machine(f));
    let causes = of_the_line.map(|finding| finding.cause);
    (largest.unwrap().0.clone(), causes.collect())
}

#[test]
fn the_largest_share_names_what_limits() {
    for (scenario, share, found) in [
        (
            "limited-receiver",
            "rwnd_ratio",
            &[Cause::ReceiveBufferSmall][..],
        ),
        ("limited-sender", "sndbuf_ratio", &[Cause::SendBufferSmall]),
        (
            "limited-application",
            "app_ratio",
            &[Cause::ApplicationLimited],
        ),
        // Its line carries what a port of 100 Mbit/s does.
        ("limited-network", "network_ratio", &[Cause::PortSpeed]),
    ] {
        let (largest, causes) = limited_by(scenario);
        assert_eq!(largest, share, "{scenario}");
        assert_eq!(causes, found, "{scenario}");
    }
}

/// What a small window and a class of traffic do shows in what crosses: AF41 has three packets of queue.
#[test]
fn a_window_and_a_class_take_effect() {
    let up = r#"{ type = "shaper", rate = "50mbit", queue = { type = "priority", bands = [
        { dscp = [0], queue = { type = "fifo", limit = "1MB" } },
        { dscp = [34], queue = { type = "fifo", limit = "3p" } },
    ] } }, { type = "delay", delay = "20ms" }"#;
    let line = Network::served_line(up, r#"{ type = "delay", delay = "20ms" }"#);
    let upload = |options: &[&str]| {
        let measure = [&["rate", "server", "--up", "--duration", "2s"], options].concat();
        let run = line.measured(&measure).run;
        let rate = run.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::Throughput(rate) => Some(rate.clone()),
            _ => None,
        });
        (rate.unwrap(), run.findings)
    };
    let (plain, _) = upload(&[]);
    let (windowed, found) = upload(&["--window", "64KiB"]);
    let (classed, _) = upload(&["--dscp", "AF41"]);
    // A machine that stalls costs the one some segments, and three packets of queue cost the other many.
    let again = [&plain, &classed].map(|rate| rate.tcp.retransmits);
    assert!(again[1] > 10 * again[0], "{again:?}");
    // 64 KiB of payload over 40 ms are 13 Mbit/s, and the kernel doubles what it is asked for.
    let in_flight = windowed.tcp.max_in_flight_bytes;
    assert!(in_flight <= 2 << 16, "{in_flight}");
    assert!(windowed.bps < 26.3e6, "{}", windowed.bps);
    assert!(plain.bps > 35e6, "{}", plain.bps);
    // What was asked for is not held against the hosts.
    assert!(found.iter().all(is_about_the_machine), "{found:?}");
}

/// A program that writes ten bytes at a time, more often than there is a round trip: they wait until what is under
/// way has been acknowledged (Nagle's algorithm), unless small segments are to leave at once.
#[test]
fn small_writes_leave_at_once_where_that_is_asked_for() {
    const WRITES: u64 = 200;
    let _slot = slots::take(Weight::Slow);
    let way = r#"{ type = "delay", delay = "50ms" }"#;
    let line = Network::served_line(way, way);
    let packets_up = |option: &str| {
        let (run, stats) = line.script(&format!(
            "for i in $(seq {WRITES}); do printf 0123456789; sleep 0.01; done | plumb rate server --up --from - {option} --json"
        ));
        let run = Run::from_json(&run).unwrap();
        let carried = run.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::Throughput(rate) => Some(rate.bytes),
            _ => None,
        });
        assert_eq!(carried, Some(10 * WRITES));
        stats.links["line"][&OneDirection::Up]
            .chain
            .delivered
            .packets
    };
    let (held, at_once) = (packets_up(""), packets_up("--no-delay"));
    // One for each write, but for those that waited for the connection to stand; against one for each of some
    // twenty round trips.
    assert!(held + WRITES / 3 < at_once, "{held} and {at_once}");
}

/// The Run of `plumb rate server` between two machines with these settings for ECN and Fast Open.
fn rate_between(ecn: &str, fast_open: &str, options: &[&str]) -> serde_json::Value {
    let way = r#"{ type = "shaper", rate = "100mbit" }, { type = "delay", delay = "5ms" }"#;
    let mut line = Network::served_line(way, way);
    line.sysctl("client", "net.ipv4.tcp_ecn", ecn);
    line.sysctl("server", "net.ipv4.tcp_fastopen", fast_open);
    let measure = [&["rate", "server", "--duration", "1s"], options].concat();
    line.measured(&measure).json
}

#[test]
fn what_the_ends_agreed_on_is_in_the_result() {
    let asked = [
        "--ecn",
        "--fast-open",
        "--mptcp",
        "--mss",
        "1000",
        "--dscp",
        "AF41",
    ];
    let run = rate_between("1", "3", &asked);
    let rates = |run: &serde_json::Value| -> Vec<serde_json::Value> {
        let all = run["measurements"].as_array().unwrap().iter();
        all.filter(|m| m["kind"] == "throughput").cloned().collect()
    };
    assert_eq!(rates(&run).len(), 2);
    for rate in rates(&run) {
        let tcp = &rate["result"]["tcp"];
        for what in ["ecn", "fast_open", "mptcp"] {
            assert_eq!(tcp[what], true, "{what}: {tcp}");
        }
        assert!(tcp["mss_bytes"].as_u64().unwrap() < 1000, "{tcp}");
        assert_eq!(
            (
                &rate["context"]["load"]["flows"][0]["mss_bytes"],
                &rate["context"]["load"]["flows"][0]["dscp"]
            ),
            (&1000.into(), &34.into())
        );
    }
    let notes = run["notes"].to_string();
    assert!(
        !notes.contains("ECN") && !notes.contains("Fast Open"),
        "{notes}"
    );

    // Where the kernels do not: it is said, and what to set where.
    let run = rate_between("0", "0", &["--up", "--ecn", "--fast-open"]);
    let tcp = &rates(&run)[0]["result"]["tcp"];
    assert_eq!(
        (&tcp["ecn"], &tcp["fast_open"]),
        (&false.into(), &false.into())
    );
    let notes = run["notes"].to_string();
    for what in ["net.ipv4.tcp_ecn=1", "net.ipv4.tcp_fastopen=3"] {
        assert!(notes.contains(what), "{what}: {notes}");
    }
}

#[test]
fn options_that_cannot_be_are_usage_errors() {
    for (options, words) in [
        (&["--mss", "80"][..], &["--mss", "88"][..]),
        (&["--pacing", "2000gbit"], &["no interface is that fast"]),
        (&["--window", "2GB"], &["1073741824"]),
        (&["--dscp", "64"], &["0 to 63"]),
        (&["--write-size", "0B"], &["1 to"]),
        (&["--from", "x", "--down"], &["--from", "--down"]),
        (&["--to", "x", "--discard"], &["--to", "--discard"]),
        (&["--to", "x", "--streams", "2"], &["--to", "--streams"]),
        (
            &["--bytes", "1GB", "--until", "steady"],
            &["--bytes", "--until"],
        ),
        (
            &["--bytes", "1GB", "--budget", "1GB"],
            &["--bytes", "--budget"],
        ),
        (&["--mptcp", "--pacing", "1mbit"], &["--mptcp", "--pacing"]),
        (
            &["--far-disk", "--zero-copy"],
            &["--far-disk", "--zero-copy"],
        ),
        (&["--tls", "--discard"], &["--tls", "--discard"]),
        (&["--until", "tired"], &["steady"]),
        (
            &["--udp", "--rate", "2000gbit"],
            &["no interface has", "1.6e12"],
        ),
        (&["--udp", "--rate", "1mbit", "--size", "10"], &["10 bytes"]),
        (
            &["--udp", "--rate", "1mbit", "--mss", "1000"],
            &["--udp", "--dscp"],
        ),
        (
            &["--udp", "--rate", "max", "--pattern", "poisson"],
            &["--rate max", "--pattern"],
        ),
        (&["--quic", "--zero-copy"], &["--quic", "--dscp"]),
        // What is seen only when all options are known, is seen before anybody is asked.
        (
            &["--udp", "--rate", "1mbit", "--background"],
            &["--udp", "--background"],
        ),
        (
            &["--udp", "--rate", "1mbit", "--cc", "bbr"],
            &["--cc", "--udp"],
        ),
        (&["--mptcp", "--background"], &["--mptcp", "yields"]),
        (
            &["--udp", "--size", "500", "--pattern", "trace=x"],
            &["trace", "--size"],
        ),
        (
            &["--from", "x", "--flows", "cubic=2"],
            &["--from", "--flows"],
        ),
        (
            &["--profile", "voice", "--window", "1MiB"],
            &["--profile", "--with"],
        ),
        // What belongs to another option is not dropped where that one is excluded.
        (&["--quic", "--rate", "50mbit"], &["--quic", "--rate"]),
        (&["--available", "--gso", "4"], &["--available", "--gso"]),
        (
            &["--profile", "voice", "--ect", "0"],
            &["--profile", "--ect"],
        ),
        (
            &["--application-rate", "5mbit", "--duration", "3s"],
            &["--application-rate", "--duration"],
        ),
    ] {
        let output = refused(&[&["rate", "127.0.0.1"], options].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{options:?}: {text}"
        );
    }
}

#[test]
fn files_that_cannot_be_are_said_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let kept = format!("{folder}/kept");
    std::fs::File::create(&kept)
        .unwrap()
        .write_all(b"kept")
        .unwrap();
    for (options, words) in [
        (
            ["--from", "/no/such"],
            ["cannot read /no/such", "No such file"],
        ),
        (["--from", folder], ["cannot read", "is a directory"]),
        (
            ["--to", "/no/such"],
            ["cannot write /no/such", "No such file"],
        ),
        (["--to", folder], ["cannot write", "directory"]),
        // Nothing listens there: what the file holds is not lost.
        (["--to", &kept], ["nothing listens", "plumb serve"]),
    ] {
        let mut arguments = vec!["rate", "127.0.0.1", "--port", "1"];
        arguments.extend(options);
        let output = refused(&arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{options:?}: {text}"
        );
    }
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept");
}

#[test]
fn what_goes_on_is_told_to_programs_while_it_does() {
    let way = r#"{ type = "shaper", rate = "20mbit" }, { type = "delay", delay = "5ms" }"#;
    let line = Network::served_line(way, way);
    let (text, _) = line.script("plumb rate server --up --duration 2s --json-lines");
    let (events, run) = text.trim_end().rsplit_once('\n').unwrap();
    let events: Vec<serde_json::Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["event"], "step");
    let carried: Vec<_> = events.iter().filter(|e| e["event"] == "carried").collect();
    assert!(carried.len() >= 5, "{}", carried.len());
    let times: Vec<_> = carried
        .iter()
        .map(|e| e["at_s"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    // 1448 of 1500 bytes of 20 Mbit/s, once slow start is over: what a busy machine holds up comes in the next.
    let rates = carried.iter().map(|e| e["up_bps"].as_f64().unwrap());
    let median = Distribution::of(rates).unwrap().p50;
    assert!((15e6..22e6).contains(&median), "{median}");
    assert!(Run::from_json(run).is_ok());
}
