//! Handshakes of TLS in `plumb capture`, beside what tshark reads in them.

use std::process::Command;

use plumb_model::results::Outcome;
use plumb_model::run::Run;

use crate::common::{computed, pcap, plumb, stderr, stdout};

const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
    [
        &kind.to_be_bytes()[..],
        &(value.len() as u16).to_be_bytes(),
        value,
    ]
    .concat()
}

/// A message with version, random, a part of its own, and extensions.
fn hello(kind: u8, own: &[u8], extensions: &[u8]) -> Vec<u8> {
    let length = (extensions.len() as u16).to_be_bytes();
    let body = [&[3, 3][..], &[9; 32], own, &length, extensions].concat();
    let length = (body.len() as u32).to_be_bytes();
    record(HANDSHAKE, &[&[kind][..], &length[1..], &body].concat())
}

/// A connection whose ClientHello has two segments, and whose client sends data 45 ms after it.
fn handshake() -> Vec<(u64, Vec<u8>)> {
    let name = b"www.example.org";
    let list = [&[0, 18, 0, 0, 15][..], name].concat();
    let extensions = [
        extension(21, &[0; 1200]),
        extension(0, &list),
        extension(43, &[2, 3, 4]),
    ]
    .concat();
    let asks = hello(1, &[0, 0, 2, 0x13, 1, 1, 0], &extensions);
    let answers = [
        hello(2, &[0, 0x13, 1, 0], &extension(43, &[3, 4])),
        record(APPLICATION_DATA, &[7; 700]),
    ]
    .concat();
    let (finished, request) = (
        record(APPLICATION_DATA, &[6; 53]),
        record(APPLICATION_DATA, &[5; 200]),
    );
    let (first, second) = asks.split_at(1000);
    let at = |bytes: &[u8]| 1001 + bytes.len() as u32;
    let (up, down) = (at(&asks), 5001 + answers.len() as u32);
    let (ready, done) = (
        up + finished.len() as u32,
        up + (finished.len() + request.len()) as u32,
    );
    let segments: [pcap::Passing<'_>; 9] = [
        (0, true, [1000, 0], 2, b""),
        (20, false, [5000, 1001], 18, b""),
        (20, true, [1001, 5001], 16, b""),
        (20, true, [1001, 5001], 16, first),
        (21, true, [2001, 5001], 24, second),
        (41, false, [5001, up], 24, &answers),
        (42, true, [up, down], 24, &finished),
        (65, true, [ready, down], 24, &request),
        (85, false, [down, done], 16, b""),
    ];
    let framed = segments.map(|(ms, is_up, numbers, flags, payload)| {
        (
            ms,
            pcap::ethernet(&pcap::segment(is_up, 443, numbers, flags, payload)),
        )
    });
    framed.to_vec()
}

#[test]
fn a_handshake_has_a_name_a_version_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = pcap::file(folder.path(), "tls.pcap", 1, &handshake());
    let output = plumb(&["capture", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Capture(result) = &run.measurements[0].outcome else {
        panic!("{run:?}");
    };
    let tls = result.connections[0].tls.as_ref().unwrap();
    assert_eq!(tls.version.as_deref(), Some("1.3"));
    assert_eq!(
        (tls.server_hello_s, tls.application_data_s),
        (Some(0.021), Some(0.045))
    );
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "-Y",
        "tls.handshake.type == 1",
        "-T",
        "fields",
        "-e",
        "tls.handshake.extensions_server_name",
        "-r",
    ]);
    let theirs = stdout(&computed(command.arg(&file)));
    assert_eq!(tls.server_name.as_deref(), Some(theirs.trim()));
    let text = stdout(&plumb(&["capture", "--details", file.to_str().unwrap()]));
    let line = text.lines().find(|line| line.contains("www.example.org"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("1.3") && line.contains("21") && line.contains("45"),
        "{line}"
    );
    // Names are what anonymised captures are to be without.
    let json = stdout(&plumb(&[
        "capture",
        "--json",
        "--anonymise",
        file.to_str().unwrap(),
    ]));
    assert!(!json.contains("example.org"));
}
