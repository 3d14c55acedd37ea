//! A path that corrupts packets: what it corrupts is lost on it and named, and nobody's buffer is blamed.

use crate::common::Checked;
use crate::common::network::Network;
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;
use plumb_model::run::Run;

/// A bit of this share of the packets is wrong.
const CORRUPTING: &str =
    r#"{ type = "delay", delay = "5ms" }, { type = "corrupt", ratio = "10%" }"#;
const CLEAN: &str = r#"{ type = "delay", delay = "5ms" }"#;

/// Packets that a direction corrupted.
fn changed(checked: &Checked, way: OneDirection) -> u64 {
    checked.stats.links["line"][&way].chain.cells["corrupt"].changed
}

fn says(run: &Run, words: &str) -> bool {
    run.notes.iter().any(|note| note.contains(words))
}

/// Of the packets that the path corrupted, the kernel gives those with a wrong port or length to no socket: 6 of
/// 8 bytes of the header of UDP, of each packet of at least 60.
fn most_of(changed: u64) -> std::ops::RangeInclusive<u64> {
    changed * 3 / 4..=changed
}

#[test]
fn probes_that_are_corrupted_are_lost_on_the_path() {
    let ping = Network::served_line(CLEAN, CORRUPTING).measured(&[
        "ping",
        "server",
        "--protocol",
        "udp",
        "-c",
        "400",
        "-i",
        "5ms",
    ]);
    let result = ping
        .run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::Ping(ping) => Some(ping),
            _ => None,
        })
        .unwrap();
    let truth = changed(&ping, OneDirection::Down);
    assert!(truth >= 20, "{truth}");
    assert_eq!(result.dropped_here, 0, "no buffer was full");
    assert!(
        most_of(truth).contains(&result.corrupted),
        "{} of {truth}",
        result.corrupted
    );
    assert!(result.sent - result.received >= result.corrupted);
    assert!(
        says(&ping.run, "the path corrupts packets"),
        "{:?}",
        ping.run.notes
    );

    // Of ICMP whole packets come to a raw socket: all but one whose identifier is wrong.
    let ping = Network::line(CLEAN, CORRUPTING).measured(&[
        "ping",
        "server",
        "--protocol",
        "icmp",
        "-c",
        "400",
        "-i",
        "5ms",
    ]);
    let result = ping
        .run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::Ping(ping) => Some(ping),
            _ => None,
        })
        .unwrap();
    let truth = changed(&ping, OneDirection::Down);
    assert!(
        most_of(truth).contains(&result.corrupted),
        "{} of {truth}",
        result.corrupted
    );
    assert_eq!(
        (result.sent - result.received, result.dropped_here),
        (truth, 0)
    );

    let owd = Network::served_line(CLEAN, CORRUPTING)
        .measured(&["owd", "server", "-c", "400", "-i", "5ms"]);
    let result = owd
        .run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::Owd(owd) => Some(owd),
            _ => None,
        })
        .unwrap();
    let truth = changed(&owd, OneDirection::Down);
    assert_eq!(result.dropped_here, 0);
    assert!(
        most_of(truth).contains(&result.corrupted),
        "{} of {truth}",
        result.corrupted
    );
    assert!(result.down.lost.unwrap() >= result.corrupted);
    assert!(
        says(&owd.run, "the path corrupts packets"),
        "{:?}",
        owd.run.notes
    );
}

#[test]
fn datagrams_that_are_corrupted_are_lost_on_the_path() {
    for gro in [&[][..], &["--gro"]] {
        let command = [
            &[
                "rate",
                "server",
                "--udp",
                "--rate",
                "10mbit",
                "--size",
                "1000",
                "--up",
                "--duration",
                "2s",
            ][..],
            gro,
        ]
        .concat();
        let checked = Network::served_line(CORRUPTING, CLEAN).measured(&command);
        let udp = checked
            .run
            .measurements
            .iter()
            .find_map(|m| match &m.outcome {
                Outcome::Udp(udp) => Some(udp),
                _ => None,
            })
            .unwrap();
        let receiver = udp.receiver.as_ref().unwrap();
        let truth = changed(&checked, OneDirection::Up);
        assert!(truth >= 100, "{truth}");
        assert_eq!((receiver.dropped_here, receiver.lost_here()), (0, 0));
        assert_eq!(receiver.lost_on_path, Some(receiver.lost));
        assert!(
            most_of(truth).contains(&receiver.corrupted),
            "{} of {truth}",
            receiver.corrupted
        );
        assert!(
            (receiver.path_loss_ratio() - 0.1).abs() < 0.04,
            "{receiver:?}"
        );
        assert!(
            says(&checked.run, "the path corrupts packets"),
            "{:?}",
            checked.run.notes
        );
        assert!(
            !says(&checked.run, "receive buffer"),
            "{:?}",
            checked.run.notes
        );
    }
}

#[test]
fn packets_of_quic_that_are_corrupted_are_lost_on_the_path() {
    let rare = CORRUPTING.replace("10%", "1%");
    let checked = Network::served_line(&rare, CLEAN).measured(&[
        "rate",
        "server",
        "--quic",
        "--up",
        "--duration",
        "2s",
    ]);
    let quic = checked
        .run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::Quic(quic) => Some(quic),
            _ => None,
        })
        .unwrap();
    let stream = quic.streams.first().unwrap();
    let truth = changed(&checked, OneDirection::Up);
    assert_eq!(stream.dropped_here, Some(0));
    assert!(
        most_of(truth).contains(&stream.corrupted.unwrap()),
        "{stream:?} of {truth}"
    );
    assert!(
        says(&checked.run, "the path corrupts packets"),
        "{:?}",
        checked.run.notes
    );
}
