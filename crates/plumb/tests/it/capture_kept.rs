//! `plumb capture FILE -w` and `--anonymise`: what is copied, what is replaced, and what is nowhere any more, as plumb and
//! tshark see it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_model::results::Outcome;
use plumb_model::results::capture::CaptureResult;
use plumb_model::run::Run;

use crate::common::{computed, pcap, plumb, refused, stderr, stdout};

/// LINKTYPE_ETHERNET of libpcap's list.
const ETHERNET: u32 = 1;
const SECRET: &[u8] = b"the password is swordfish";

/// A connection, and a question to a resolver.
fn made(folder: &Path, name: &str) -> PathBuf {
    let mut packets = pcap::connection(80, SECRET, SECRET);
    let question = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x09swordfish\x07example\0\0\x01\0\x01";
    packets.push((90, pcap::ethernet(&pcap::datagram(53, question))));
    pcap::file(folder, name, ETHERNET, &packets)
}

fn result(arguments: &[&str]) -> (CaptureResult, String) {
    let output = plumb(&[&["capture", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    match run.measurements.into_iter().next().unwrap().outcome {
        Outcome::Capture(result) => (*result, stderr(&output)),
        other => panic!("{other:?}"),
    }
}

fn tshark(file: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-nr").arg(file).args(arguments);
    stdout(&computed(&mut command))
}

#[test]
fn a_copy_has_what_the_filter_lets_pass() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path(), "all.pcap");
    let copy = folder.path().join("some.pcapng");
    let [file_name, copy_name] = [&file, &copy].map(|path| path.to_str().unwrap());
    result(&[file_name, "--filter", "tcp port 80", "-w", copy_name]);
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "tcp.payload",
    ];
    assert_eq!(
        tshark(&copy, &fields),
        tshark(&file, &[&fields[..], &["-Y", "tcp"]].concat())
    );
    assert_eq!(result(&[copy_name]).0.packets, 9);
    // A capture is not overwritten while it is read.
    let before = fs::read(&file).unwrap();
    let output = refused(&["capture", file_name, "-w", file_name]);
    assert!(
        stderr(&output).contains("would overwrite"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn what_is_anonymised_reads_alike_and_has_no_payload() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (made(folder.path(), "all.pcap"), folder.path().join("key"));
    fs::write(&key, [7; 32]).unwrap();
    let [out, again] = ["one.pcapng", "two.pcapng"].map(|name| folder.path().join(name));
    let anonymised = |to: &Path| {
        let names = [&file, &key, to].map(|path: &Path| path.to_str().unwrap());
        result(&[names[0], "--anonymise", "--key", names[1], "-w", names[2]])
    };
    let (shown, said) = anonymised(&out);
    assert!(!said.contains("random key"), "{said}");
    anonymised(&again);
    let bytes = fs::read(&out).unwrap();
    assert_eq!(
        bytes,
        fs::read(&again).unwrap(),
        "the same key gives the same file"
    );
    for secret in [
        &b"swordfish"[..],
        &pcap::CLIENT,
        &pcap::SERVER,
        &[0, 0x1b, 0x21],
    ] {
        assert!(
            !bytes.windows(secret.len()).any(|part| part == secret),
            "{secret:02x?}"
        );
    }
    // The Run has the addresses of the file, and is else that of the original.
    let (original, read) = (
        result(&[file.to_str().unwrap()]).0,
        result(&[out.to_str().unwrap()]).0,
    );
    assert_eq!(shown.connections, read.connections);
    let of = |result: &CaptureResult| {
        let c = &result.connections[0];
        (
            result.packets,
            result.bytes,
            result.duration_s,
            c.limited,
            c.up.clone(),
            c.down.clone(),
            c.turns,
        )
    };
    assert_eq!(of(&read), of(&original));
    assert!(!read.connections[0].client.starts_with("198.51.100."));
    assert!(read.dns.slowest.is_empty() && original.dns.queries == 1);
    // tshark finds nothing wrong, and the same lengths.
    let checks = [
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ];
    let bad = "_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\"";
    assert_eq!(tshark(&out, &[&checks[..], &["-Y", bad]].concat()), "");
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.len",
        "-e",
        "frame.time_epoch",
        "-e",
        "tcp.seq",
        "-e",
        "tcp.len",
    ];
    assert_eq!(tshark(&out, &fields), tshark(&file, &fields));
}

#[test]
fn without_a_key_it_says_that_addresses_are_of_this_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path(), "all.pcap");
    let name = file.to_str().unwrap();
    let (one, said) = result(&[name, "--anonymise"]);
    assert!(said.contains("random key"), "{said}");
    let (two, _) = result(&[name, "--anonymise"]);
    assert_ne!(one.connections[0].client, two.connections[0].client);
    let short = folder.path().join("key");
    fs::write(&short, "hello").unwrap();
    let output = refused(&[
        "capture",
        name,
        "--anonymise",
        "--key",
        short.to_str().unwrap(),
    ]);
    assert!(
        stderr(&output).contains("can be guessed"),
        "{}",
        stderr(&output)
    );
}
