//! The flags that `plumb ping` has from ping(8), on a line whose delay and losses are known.

use crate::common::network::Network;
use crate::common::{plumb, stderr, words};
use plumb_model::results::{Outcome, PingResult};
use plumb_model::run::Run;

/// 20 ms to and fro, and every fifth echo is lost on the forward path.
fn line() -> Network {
    let up = r#"{ type = "periodic_loss", every = 5, match = "icmp" }, { type = "delay", delay = "10ms" }"#;
    let mut net = Network::line(up, r#"{ type = "delay", delay = "10ms" }"#);
    net.without_ipv6();
    net
}

fn measured(line: &str) -> (f64, PingResult, Vec<f64>) {
    let run = Run::from_json(line).expect(line);
    let measurement = run.measurements.into_iter().next().unwrap();
    let Outcome::Ping(result) = measurement.outcome else {
        panic!("{line}")
    };
    let sent_s = measurement.series["rtt"].t_s.clone();
    (measurement.duration_s, result, sent_s)
}

#[test]
fn adaptive_preload_pattern_and_outstanding_do_what_they_do_in_ping() {
    let (seen, _) = line().script(
        "plumb ping -A -c 20 -i 100ms -W 300ms server --json
         plumb ping -l 4 -c 6 -i 100ms -W 300ms server --json
         plumb ping --pattern a5 -s 600 -c 4 -i 20ms server --json
         plumb ping -O -c 6 -i 30ms -W 300ms -n server | grep yet
         plumb ping -O -c 6 -i 30ms -W 300ms -n server --json-lines | grep outstanding
         echo; plumb ping -c 6 -i 30ms -W 300ms -n server | grep -c yet || true",
    );
    let lines: Vec<&str> = seen.lines().collect();
    // Sixteen answers after 20 ms each, and after the lost ones the interval; the last is waited for.
    let (took_s, adaptive, sent_s) = measured(lines[0]);
    assert_eq!((adaptive.sent, adaptive.received), (20, 16));
    let gaps: Vec<f64> = sent_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps[4] > 0.095 && gaps[0] > 0.019 && gaps[0] < 0.09,
        "{gaps:?}"
    );
    assert!(took_s < 2.0, "{took_s}");
    // Four at once, then by the interval.
    let (_, preload, sent_s) = measured(lines[1]);
    assert_eq!(preload.sent, 6);
    assert!(
        sent_s[3] < 0.05 && sent_s[4] > 0.095 && sent_s[5] > 0.195,
        "{sent_s:?}"
    );
    // What fills the packets is no matter to their answers, and the Run has it.
    let (_, filled, _) = measured(lines[2]);
    assert!(filled.received >= 3, "{filled:?}");
    assert!(lines[2].contains(r#""pattern":"a5""#), "{}", lines[2]);
    // 10 of the 26 before were lost up to here; of six that follow, one or two wait when the next one leaves.
    let yet: Vec<&str> = lines
        .iter()
        .filter(|l| l.contains("no answer yet"))
        .copied()
        .collect();
    assert!((1..=2).contains(&yet.len()), "{seen}");
    assert!(
        yet[0].starts_with("no answer yet from 10.0.0.2: seq="),
        "{seen}"
    );
    assert!(seen.contains(r#""event":"outstanding""#), "{seen}");
    assert_eq!(*lines.last().unwrap(), "0", "{seen}");
}

#[test]
fn what_contradicts_them_is_refused() {
    for (command, says) in [
        ("ping -A -f 127.0.0.1", "cannot be used with"),
        ("ping --pattern xyz 127.0.0.1", "no pattern"),
        ("ping -l 0 127.0.0.1", "write a number"),
        (
            "ping --pattern ff --protocol tcp 127.0.0.1",
            "leave --pattern out",
        ),
        ("ping -l 2 --protocol tcp 127.0.0.1", "several at once"),
        ("ping -A 127.0.0.1 127.0.0.2", "--adaptive"),
        ("ping -O 127.0.0.1 127.0.0.2", "--outstanding"),
    ] {
        let output = plumb(&words(command));
        assert!(!output.status.success(), "{command}");
        assert!(
            stderr(&output).contains(says),
            "{command}: {}",
            stderr(&output)
        );
    }
}
