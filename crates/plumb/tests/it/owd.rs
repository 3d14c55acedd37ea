//! `plumb owd` on paths whose ways are known, and against reflectors of other makes.

use std::net::{SocketAddr, UdpSocket};

use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use crate::common::{Checked, measured_in, plumb, stderr, stdout};
use plumb_model::direction::OneDirection;
use plumb_model::finding::Cause;
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::owd::{ClockMethod, OwdResult};
use plumb_model::run::Run;

fn result(run: &Run) -> &OwdResult {
    match &run.measurements[0].outcome {
        Outcome::Owd(owd) => owd,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ways_that_differ_are_seen_by_one_clock_and_bounded_by_two() {
    // 5 ms there, 25 ms back.
    let options = [
        "owd",
        "server",
        "--protocol",
        "stamp",
        "-c",
        "60",
        "-i",
        "20ms",
    ];
    let same = measured_in(
        "asymmetric-route",
        &[&options[..], &["--same-clock"]].concat(),
    );
    let owd = result(&same.run);
    assert_eq!(
        (owd.protocol, owd.answered, owd.port),
        (Protocol::Stamp, 60, 862)
    );
    // The delays are constant: the least is theirs, what is more is the machine's.
    let least = |owd: &OwdResult| [&owd.up, &owd.down].map(|way| way.delay.unwrap().delay_s.min);
    let [up, down] = least(owd);
    assert!(
        (0.005..0.0051).contains(&up) && (0.025..0.0251).contains(&down),
        "{up} {down}"
    );
    assert!(
        same.run
            .findings
            .iter()
            .any(|f| f.cause == Cause::OneWayDelayAsymmetric)
    );
    let compared = measured_in("asymmetric-route", &options);
    let owd = result(&compared.run);
    let [up, down] = least(owd);
    let known_to = owd.clocks.uncertainty_s.unwrap();
    assert_eq!(owd.clocks.method, ClockMethod::Compared);
    assert!((up - 0.005).abs() <= known_to && (down - 0.025).abs() <= known_to);
    assert!(known_to < 0.017, "half of the round trip: {known_to}");
    assert!(
        !compared
            .run
            .findings
            .iter()
            .any(|f| f.cause == Cause::OneWayDelayAsymmetric)
    );
}

/// Loses one of so many packets of UDP each way, and reorders some.
const LOSSY_UP: &str = r#"
    { type = "periodic_loss", every = 9, first = 8, match = "udp" },
    { type = "delay", delay = "3ms" },
"#;
const LOSSY_DOWN: &str = r#"
    { type = "periodic_loss", every = 7, first = 5, match = "udp" },
    { type = "reorder", ratio = "10%" },
    { type = "delay", delay = "3ms" },
"#;

/// Packets that the link lost on a way.
fn lost(checked: &Checked, way: OneDirection) -> u64 {
    let dropped = &checked.stats.links["line"][&way].chain.cells["periodic_loss"].dropped;
    dropped.values().sum()
}

#[test]
fn each_ways_losses_are_those_of_the_link() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&key, "a key of both\n").unwrap();
    let key = key.path().to_str().unwrap();
    let mut line = Network::line(LOSSY_UP, LOSSY_DOWN);
    let serve = ["plumb", "serve", "--quiet", "--stamp-key-file", key];
    line.service("server", &serve, 7586);
    let options = ["-c", "300", "-i", "5ms", "-W", "500ms"];
    let checked = line.measured(&[&["owd", "server", "--key-file", key], &options[..]].concat());
    let owd = result(&checked.run);
    assert!(owd.authenticated && owd.far_counts);
    let lost = |way| lost(&checked, way);
    let (up, down) = (owd.up.lost.unwrap(), owd.down.lost.unwrap());
    // What was lost after the last answer has no place.
    let gone = lost(OneDirection::Up) + lost(OneDirection::Down);
    assert_eq!(up + down + owd.lost_unplaced, gone, "{owd:?}");
    assert!(
        lost(OneDirection::Up) - up <= owd.lost_unplaced
            && lost(OneDirection::Down) - down <= owd.lost_unplaced
    );
    assert!(owd.lost_unplaced <= 4, "{}", owd.lost_unplaced);
    assert!(owd.down.reordering.reordered > 0);
    assert_eq!((owd.up.duplicates, owd.down.duplicates), (Some(0), Some(0)));
    // Without the key there is no answer, and it is said what to do.
    let output = line.run(&["plumb", "owd", "--protocol", "stamp", "server"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("same key"), "{}", stderr(&output));
}

#[test]
fn duplicates_are_those_of_the_way_that_made_them() {
    let cells = |ratio: &str| {
        format!(
            r#"{{ type = "duplicate", ratio = "{ratio}" }}, {{ type = "delay", delay = "3ms" }}"#
        )
    };
    let line = Network::served_line(&cells("20%"), &cells("10%"));
    let checked = line.measured(&["owd", "server", "-c", "100", "-i", "5ms"]);
    let owd = result(&checked.run);
    // The far end reads the same kernel's clock, and says of it what this end does.
    assert_eq!(
        owd.clocks.far.map(|far| far.synchronised),
        owd.clocks.here.map(|here| here.synchronised)
    );
    assert!(owd.clocks.far.is_some());
    let link = |way| {
        let chain = &checked.stats.links["line"][&way].chain;
        chain.delivered.packets - chain.offered.packets
    };
    let (up, down) = (owd.up.duplicates.unwrap(), owd.down.duplicates.unwrap());
    // The request for a cookie, connections to see that the service is there, and neighbours being
    // looked for may have come twice too.
    assert!(
        (5..=link(OneDirection::Up)).contains(&up) && link(OneDirection::Up) - up < 10,
        "{up} of {}",
        link(OneDirection::Up)
    );
    assert!(
        (3..=link(OneDirection::Down)).contains(&down) && link(OneDirection::Down) - down < 10,
        "{down}"
    );
    assert_eq!(
        (owd.up.lost, owd.down.lost, owd.lost_unplaced),
        (Some(0), Some(0), 0)
    );
}

/// A reflector as small as one can be, by RFC 5357, section 4.2.1, and nothing of plumb's: 41 bytes
/// back, times in NTP's format. An empty datagram ends it.
fn twamp_light(socket: &UdpSocket, stateful: bool) {
    let now = || {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let seconds = (since.as_secs() + 2_208_988_800) as u32;
        let fraction = ((u64::from(since.subsec_nanos()) << 32) / 1_000_000_000) as u32;
        [seconds.to_be_bytes(), fraction.to_be_bytes()].concat()
    };
    let (mut buffer, mut number) = ([0; 2000], 0u32);
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let received = now();
        if len == 0 {
            return;
        }
        assert!(len >= 14);
        let mut reply = Vec::new();
        reply.extend_from_slice(
            if stateful {
                number.to_be_bytes()
            } else {
                buffer[..4].try_into().unwrap()
            }
            .as_slice(),
        );
        number += 1;
        reply.extend_from_slice(&now());
        // Synchronised, to 1/256 s: multiplier 1, scale 24.
        reply.extend_from_slice(&[0x80 | 24, 1, 0, 0]);
        reply.extend_from_slice(&received);
        reply.extend_from_slice(&buffer[..4]);
        reply.extend_from_slice(&buffer[4..12]);
        reply.extend_from_slice(&buffer[12..14]);
        reply.extend_from_slice(&[0, 0, 64]);
        assert_eq!(reply.len(), 41);
        socket.send_to(&reply, from).unwrap();
    }
}

#[test]
fn reflectors_of_other_makes_are_understood() {
    let _slot = slots::take(Weight::Light);
    for stateful in [true, false] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = socket.local_addr().unwrap();
        let reflector = std::thread::spawn(move || twamp_light(&socket, stateful));
        let target = address.to_string();
        let output = plumb(&[
            "owd",
            "--protocol",
            "stamp",
            &target,
            "-c",
            "50",
            "-i",
            "5ms",
            "--json",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let run = Run::from_json(&stdout(&output)).unwrap();
        let owd = result(&run);
        assert_eq!((owd.sent, owd.answered, owd.far_counts), (50, 50, stateful));
        assert_eq!(owd.up.lost, stateful.then_some(0));
        let far = owd.clocks.far.unwrap();
        assert_eq!(
            (far.synchronised, far.max_error_s),
            (true, Some(1.0 / 256.0))
        );
        // Both ends read one clock, however late the machine answers.
        let (offset_s, uncertainty_s) = (owd.clocks.offset_s, owd.clocks.uncertainty_s);
        let off_s = offset_s.unwrap().abs();
        assert!(off_s <= uncertainty_s.unwrap(), "{:?}", owd.clocks);
        UdpSocket::bind("127.0.0.1:0")
            .and_then(|ends| ends.send_to(&[], address))
            .unwrap();
        reflector.join().unwrap();
    }
}

#[test]
fn without_a_reflector_it_is_said_what_to_do() {
    let output = plumb(&["owd", "--stamp", "127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(1));
    let says = stderr(&output);
    assert!(
        says.contains("127.0.0.1:9") && says.contains("plumb serve"),
        "{says}"
    );
    let output = plumb(&["owd", "127.0.0.1:9", "--key-file", "/nowhere/key"]);
    assert!(stderr(&output).contains("/nowhere/key"));
    assert_eq!(
        plumb(&["owd", "127.0.0.1", "--dscp", "64"]).status.code(),
        Some(2)
    );
}
