//! `plumb calc` against every worked example of the documents that plumb was made from, each with its correction
//! where it needs one. What each formula does at its borders is tested beside it (`plumb_model::formula`).

use crate::common::{plumb, stderr, stdout};
use plumb_model::calc::Calculation;

/// A command, the number that is looked at, what it is, and how far off it may be: half of the last digit that
/// the document prints, where it prints one.
type Example = (&'static str, &'static str, f64, f64);

/// "Saturating 10 Gigabit on Linux".
const ARTICLE: [Example; 6] = [
    // "At 10 Gbit/s over a 50 ms path that works out to about 60 MiB": 62.5 MB, which are 59.6 MiB ...
    ("bdp --rate 10gbit --rtt 50ms", "bdp_bytes", 62.5e6, 0.5),
    // ... and the 64 MiB that it takes for that are too few where 0.65 of a buffer is window.
    (
        "bdp --rate 10gbit --rtt 50ms",
        "buffer_bytes",
        134_217_728.0,
        0.5,
    ),
    ("window --window 32MiB --rtt 50ms", "rate_bps", 5.369e9, 5e5),
    // "At sub-millisecond latency the BDP is a few hundred kilobytes."
    ("bdp --rate 10gbit --rtt 0.3ms", "bdp_bytes", 375e3, 0.5),
    // "A standard 1500-byte MTU tops a 10G link out around 9.4", and 9.88 with jumbo frames is the ceiling.
    ("goodput --rate 10gbit", "goodput_bps", 9.415e9, 5e5),
    (
        "goodput --rate 10gbit --mtu 9000",
        "goodput_bps",
        9.900e9,
        5e5,
    ),
];

/// "Understanding Network Performance".
const TRAINING: [Example; 26] = [
    // 1424 of 1538 bytes, with options that data segments do not have: "2.314", cut off and not rounded ...
    (
        "goodput --rate 2.5gbit --generous",
        "payload_bytes",
        1424.0,
        0.0,
    ),
    (
        "goodput --rate 2.5gbit --generous",
        "goodput_bps",
        2.314e9,
        1e6,
    ),
    (
        "goodput --rate 2.5gbit --generous --ipv6",
        "goodput_bps",
        2.282e9,
        5e5,
    ),
    // ... and what a transfer shows: 1448 and 1428 bytes.
    ("goodput --rate 2.5gbit", "goodput_bps", 2.354e9, 5e5),
    ("goodput --rate 2.5gbit --ipv6", "goodput_bps", 2.321e9, 5e5),
    // "1416 to 1424": with three or four SACK blocks.
    (
        "goodput --rate 2.5gbit --sack-blocks 3",
        "wire_bytes",
        1538.0,
        0.0,
    ),
    // Gigabit Ethernet, of which 978.75 Mbit/s were called "basically full line rate": no TCP payload is more
    // than 941.5, so the ISP's test counted more than payload, or its line was faster.
    ("goodput --rate 1gbit", "goodput_bps", 941.5e6, 5e4),
    // 2.5 Gbit/s from Eugene to Paris and to Darwin.
    (
        "bdp --rate 2.5gbit --rtt 163.6ms",
        "bdp_bytes",
        51_125_000.0,
        0.5,
    ),
    (
        "bdp --rate 2.5gbit --rtt 228.1ms",
        "bdp_bytes",
        71_281_250.0,
        0.5,
    ),
    // The table of window scales, in which 64 KB stands for 65535 bytes.
    ("scale", "scale_0_window_bytes", 65_535.0, 0.0),
    ("scale", "scale_1_window_bytes", 131_070.0, 0.0),
    ("scale", "scale_2_window_bytes", 262_140.0, 0.0),
    ("scale", "scale_3_window_bytes", 524_280.0, 0.0),
    ("scale", "scale_4_window_bytes", 1_048_560.0, 0.0),
    ("scale", "scale_8_window_bytes", 16_776_960.0, 0.0),
    ("scale", "scale_9_window_bytes", 33_553_920.0, 0.0),
    ("scale", "scale_10_window_bytes", 67_107_840.0, 0.0),
    ("scale", "scale_11_window_bytes", 134_215_680.0, 0.0),
    ("scale", "scale_12_window_bytes", 268_431_360.0, 0.0),
    ("scale", "scale_13_window_bytes", 536_862_720.0, 0.0),
    ("scale", "scale_14_window_bytes", 1_073_725_440.0, 0.0),
    // "CUBIC, sustaining 10Gbps over 100ms RTT needs a packet loss rate below 0.000003%" ...
    (
        "loss --rate 10gbit --rtt 100ms",
        "cubic_loss_ratio",
        2.9e-8,
        1.5e-9,
    ),
    // ... and 1 % "can only sustain at most 3 Mbps": the formula gives 1.43, with segments of 1460 bytes.
    (
        "loss --rate 1gbit --rtt 100ms --loss 1% --no-timestamps",
        "cubic_bps",
        1.43e6,
        5e3,
    ),
    // Boardman to Paris, 8096 km: 79 ms there and back of the 158.98 that were measured.
    ("delay --km 8096", "rtt_s", 0.0793, 5e-5),
    (
        "delay --km 35786 --medium radio",
        "propagation_s",
        0.1194,
        5e-5,
    ),
    // The lines of the ISPs it compares: a second of 2.5 Gbit/s is 312.5 MB.
    ("bdp --rate 2.5gbit --rtt 1s", "bdp_bytes", 312.5e6, 0.5),
];

const GUIDES: [Example; 5] = [
    // "window size: 8192 bytes, round-trip time: 100ms, maximum throughput: < 0.62 Mbit/sec": 0.655.
    (
        "window --window 8192 --rtt 100ms",
        "rate_bps",
        655_360.0,
        0.5,
    ),
    // 64 KB over a trans-Atlantic RTT of 150 ms: "3.4Mbps" is 3.495.
    (
        "window --window 64KiB --rtt 150ms",
        "rate_bps",
        3.495e6,
        500.0,
    ),
    // "100 Mbit/s * 0.150s / 8 = 1875000 bytes".
    (
        "bdp --rate 100mbit --rtt 150ms",
        "bdp_bytes",
        1_875_000.0,
        0.5,
    ),
    // "increases the maximum window size from 64KB to 1Gbyte by shifting the window field left by up to 14".
    ("scale", "scale_14_window_bytes", 1_073_725_440.0, 0.0),
    // Serialisation: "the packet size (in bits) by the capacity of the link".
    (
        "delay --bytes 1500 --rate 2mbit",
        "serialisation_s",
        0.006,
        1e-9,
    ),
];

/// The filing on latency and the experiments at home.
const HOME: [Example; 2] = [
    // A full-size packet takes 0.6 ms at 20 Mbit/s, and 15.6 at the 768 kbit/s of the filing's DSL line.
    (
        "delay --bytes 1500 --rate 20mbit",
        "serialisation_s",
        0.0006,
        1e-9,
    ),
    (
        "delay --bytes 1500 --rate 768kbit",
        "serialisation_s",
        0.015_625,
        1e-9,
    ),
];

#[test]
fn every_worked_example_of_the_documents() {
    let examples = [&ARTICLE[..], &TRAINING, &GUIDES, &HOME];
    for (command, name, expected, tolerance) in examples.into_iter().flatten() {
        let arguments: Vec<_> = ["calc"]
            .into_iter()
            .chain(command.split(' '))
            .chain(["--json"])
            .collect();
        let output = plumb(&arguments);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        let answer: Calculation = serde_json::from_str(&stdout(&output)).unwrap();
        let value = answer.value(name).unwrap();
        assert!(
            (value - expected).abs() <= *tolerance,
            "{command}: {name} is {value}, not {expected}"
        );
    }
}

#[test]
fn a_loss_says_its_unit_and_needs_no_rate() {
    let ask = |command: &str| plumb(&command.split(' ').collect::<Vec<_>>());
    let held = stdout(&ask("calc loss --rtt 100ms --loss 1%"));
    assert!(held.contains("1 % is lost, one packet in 100:"), "{held}");
    assert!(held.contains("Reno   holds 1.42 Mbit/s"), "{held}");
    assert!(!held.contains("Warning"), "{held}");
    let heavy = stdout(&ask("calc loss --rtt 100ms --loss 0.1"));
    assert!(
        heavy.contains("10 % is lost") && heavy.contains("Warning"),
        "{heavy}"
    );
    for (command, words) in [
        (
            "calc loss --rate 1gbit --rtt 100ms --loss 1",
            "may be per cent or a share of one: write 1%",
        ),
        ("calc loss --rtt 100ms --loss 100%", "below 100 %"),
        ("calc loss --rtt 100ms", "--loss"),
    ] {
        let output = ask(command);
        assert!(!output.status.success(), "{command}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn answers_say_what_was_counted() {
    for (command, words) in [
        ("calc goodput --rate 2.5gbit", "2.354 Gbit/s of payload"),
        ("calc goodput --rate 10mbit", "9.415 Mbit/s of payload"),
        ("calc goodput --rate 2.5gbit --generous", "SACK"),
        (
            "calc window --window 64KiB --rtt 150ms",
            "3.495 Mbit/s is the most",
        ),
        ("calc loss --rate 10gbit --rtt 100ms", "RFC 9438"),
        (
            "calc transfer --bytes 1GB --rate 1gbit --rtt 100ms",
            "slow start",
        ),
    ] {
        let output = plumb(&command.split(' ').collect::<Vec<_>>());
        assert!(
            stdout(&output).contains(words),
            "{command}: {}",
            stdout(&output)
        );
    }
}
