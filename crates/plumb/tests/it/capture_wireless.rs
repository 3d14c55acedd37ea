//! `plumb capture` of frames of wireless LANs, beside what tshark reads in them.

use std::process::Command;

use plumb_model::results::Outcome;
use plumb_model::run::Run;

use crate::common::{computed, pcap, plumb, stderr, stdout};

/// LINKTYPE_IEEE802_11_RADIOTAP of libpcap's list.
const RADIOTAP: u32 = 127;

/// A frame with QoS and the padding of some cards, that carries the packet of a frame of Ethernet.
fn frame(flags: u8, ethernet: &[u8]) -> Vec<u8> {
    const PADDED: u8 = 0x20;
    let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, PADDED];
    let ends = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]].concat();
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    [
        &radiotap[..],
        &[0x88, flags, 0, 0],
        &ends,
        &[0x10, 0],
        &[0, 0, 0, 0],
        &snap,
        &ethernet[14..],
    ]
    .concat()
}

#[test]
fn a_connection_and_its_retries_are_found() {
    const TO_DS: u8 = 1;
    const RETRY: u8 = 8;
    const PROTECTED: u8 = 0x40;
    let connection = pcap::connection(80, b"GET /", b"200");
    let mut packets: Vec<(u64, Vec<u8>)> = Vec::new();
    for (number, (ms, packet)) in connection.iter().enumerate() {
        let retry = if number % 3 == 2 { RETRY } else { 0 };
        packets.push((*ms, frame(TO_DS | retry, packet)));
    }
    packets.push((90, frame(TO_DS | PROTECTED, &connection[0].1)));
    // An acknowledgement, and a beacon.
    packets.push((
        91,
        [&[0, 0, 8, 0, 0, 0, 0, 0, 0xd4, 0, 0, 0][..], &[2; 6]].concat(),
    ));
    let beacon = [
        &[0, 0, 8, 0, 0, 0, 0, 0, 0x80, 0, 0, 0][..],
        &[0xff; 6],
        &[2; 12],
        &[0; 14],
    ]
    .concat();
    packets.push((92, beacon));
    let folder = tempfile::tempdir().unwrap();
    let file = pcap::file(folder.path(), "air.pcap", RADIOTAP, &packets);
    let output = plumb(&["capture", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Capture(result) = &run.measurements[0].outcome else {
        panic!("{run:?}");
    };
    let sums = result.wireless.as_ref().unwrap();
    let counts = [
        sums.frames,
        sums.data,
        sums.management,
        sums.control,
        sums.retries,
        sums.encrypted,
    ];
    assert_eq!(counts, [12, 10, 1, 1, 3, 1]);
    let connection = &result.connections[0];
    assert_eq!(
        (connection.up.payload_bytes, connection.down.payload_bytes),
        (5, 3)
    );
    assert_eq!(
        result.flaws.unread_packets + result.flaws.malformed_packets,
        0
    );
    let tshark = |filter: &str| {
        let mut command = Command::new("tshark");
        command.args(["-n", "-Y", filter, "-r"]).arg(&file);
        stdout(&computed(&mut command)).lines().count() as u64
    };
    assert_eq!(tshark("wlan.fc.retry == 1"), sums.retries);
    assert_eq!(tshark("wlan.fc.protected == 1"), sums.encrypted);
    assert_eq!(tshark("tcp"), 9);
    let accepted = |filter: &str| {
        let output = plumb(&[
            "capture",
            "--json",
            "--filter",
            filter,
            file.to_str().unwrap(),
        ]);
        let run = Run::from_json(&stdout(&output)).unwrap();
        let Outcome::Capture(result) = &run.measurements[0].outcome else {
            panic!("{run:?}");
        };
        (
            result.packets,
            result.files[0].incomplete.clone().unwrap_or_default(),
        )
    };
    // The encrypted one has the headers of the others here.
    let plain = "tcp port 80 and link[1] & 0x40 = 0";
    assert_eq!(accepted(plain), (9, String::new()));
    assert_eq!(accepted("link[0] = 0x80"), (1, String::new()));
    let (packets, why) = accepted("ether src 02:00:00:00:00:02");
    assert_eq!(packets, 0);
    assert!(
        why.contains("of the filter is for Ethernet alone, and packets of link type 127 have none"),
        "{why}"
    );
    let text = stdout(&plumb(&["capture", file.to_str().unwrap()])).replace('\n', " ");
    assert!(
        text.contains("3 of 11 with data or management were sent again"),
        "{text}"
    );
}
