//! `plumb path` and `plumb ping` beyond a router that answers as no Linux does: with every code that ICMP has for
//! a refusal, MPLS labels, from elsewhere, to other probes, and with rubbish. All through real sockets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::process::Command;
use std::time::Duration;

use crate::common::network::Network;
use plumb_model::results::Outcome;
use plumb_model::results::path::{AlteredField, MplsEntry, PathResult};
use plumb_model::run::Run;
use plumb_net::tcp::wait_readable;
use plumb_net::tun::{MAX_PACKET_BYTES, Tun, VNET_HEADER_BYTES};
use plumb_wire::checksum::{Sum, checksum, pseudo_header};
use plumb_wire::ip::{ICMP, ICMPV6, IpPacket};

/// Tells the ignored test that it is a program.
const INSIDE: &str = "PLUMB_TEST_INSIDE";
/// Where the router listens once it forwards.
const PORT: u16 = 9000;

/// What is at the third hop, by the last byte of the address that is asked for.
#[derive(Debug, Clone, Copy)]
enum Third {
    /// An error with this type, code and second word.
    Error(u8, u8, [u8; 4]),
    /// The target, as it should be.
    Target,
    /// The target, by another of its addresses.
    Elsewhere,
    /// A host that answers to other probes than ours.
    WrongId,
    /// A router that sends rubbish.
    Rubbish,
    Endless,
}

const NONE: [u8; 4] = [0; 4];

/// The targets: their last byte, what is at the third hop, and the mark that it must have.
fn targets(v6: bool) -> Vec<(u8, Third, Option<&'static str>)> {
    let errors: &[(u8, u8, [u8; 4], &str)] = if v6 {
        &[
            (1, 0, NONE, "!N"),
            (1, 1, NONE, "!X"),
            (1, 2, NONE, "!S"),
            (1, 3, NONE, "!H"),
            (1, 5, NONE, "!A"),
            (1, 6, NONE, "!A"),
            (1, 7, NONE, "!<7>"),
            (2, 0, [0, 0, 5, 20], "!F-1300"),
            (4, 1, NONE, "!<p1>"),
        ]
    } else {
        &[
            (3, 0, NONE, "!N"),
            (3, 1, NONE, "!H"),
            (3, 2, NONE, "!P"),
            (3, 5, NONE, "!S"),
            (3, 9, NONE, "!X"),
            (3, 13, NONE, "!X"),
            (3, 14, NONE, "!V"),
            (3, 15, NONE, "!C"),
            (3, 4, [0, 0, 5, 120], "!F-1400"),
            (3, 16, NONE, "!<16>"),
            (12, 0, NONE, "!<p0>"),
        ]
    };
    let errors = errors
        .iter()
        .zip(101..)
        .map(|((kind, code, word, mark), last)| {
            (last, Third::Error(*kind, *code, *word), Some(*mark))
        });
    let hosts = [
        Third::Target,
        Third::Elsewhere,
        Third::WrongId,
        Third::Rubbish,
        Third::Endless,
    ];
    errors
        .chain(
            hosts
                .into_iter()
                .zip(201..)
                .map(|(third, last)| (last, third, None)),
        )
        .collect()
}

fn network(v6: bool, third: u8, last: u8) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd99, 0, 0, third.into(), 0, 0, 0, last.into()).into()
    } else {
        Ipv4Addr::new(10, 99, third, last).into()
    }
}

fn target(v6: bool, last: u8) -> IpAddr {
    // As documents have them: RFC 5737, RFC 3849.
    if v6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into()
    } else {
        Ipv4Addr::new(198, 51, 100, last).into()
    }
}

fn put_checksum(bytes: &mut [u8], at: usize, before: Sum) {
    let sum = before.bytes(bytes).checksum().to_be_bytes();
    bytes[at..at + 2].copy_from_slice(&sum);
}

/// An IP packet with an ICMP message, whose checksum is still zero.
fn packet(from: IpAddr, to: IpAddr, hops: u8, mut message: Vec<u8>) -> Vec<u8> {
    let length = message.len() as u16;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            put_checksum(&mut message, 2, Sum::new());
            let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, hops, ICMP, 0, 0];
            out[2..4].copy_from_slice(&(20 + length).to_be_bytes());
            out.extend(from.octets());
            out.extend(to.octets());
            put_checksum(&mut out, 10, Sum::new());
            out.extend(message);
            out
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            put_checksum(
                &mut message,
                2,
                pseudo_header(from, to, ICMPV6, length.into()),
            );
            let [l0, l1] = length.to_be_bytes();
            let mut out = vec![0x60, 0, 0, 0, l0, l1, ICMPV6, hops];
            out.extend(a.octets());
            out.extend(b.octets());
            out.extend(message);
            out
        }
        _ => unreachable!(),
    }
}

/// An error that quotes a packet, without its checksum.
fn error(kind: u8, code: u8, word: [u8; 4], quote: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, code, 0, 0];
    bytes.extend(word);
    bytes.extend(quote);
    bytes
}

/// The labels that the packets bear at the second hop.
const LABELS: [MplsEntry; 2] = [
    MplsEntry {
        label: 16_001,
        traffic_class: 5,
        ttl: 3,
    },
    MplsEntry {
        label: 24,
        traffic_class: 0,
        ttl: 1,
    },
];

/// Time exceeded with labels behind a quotation of 128 bytes (RFC 4884, RFC 4950).
fn labelled(v6: bool, quote: &[u8]) -> Vec<u8> {
    let mut padded = quote.to_vec();
    padded.resize(128, 0);
    let mut stack = vec![0x20, 0, 0, 0, 0, 12, 1, 1];
    for (label, bottom) in LABELS.iter().zip([0, 1]) {
        let entry = label.label << 12
            | u32::from(label.traffic_class) << 9
            | bottom << 8
            | u32::from(label.ttl);
        stack.extend(entry.to_be_bytes());
    }
    let sum = checksum(&stack).to_be_bytes();
    stack[2..4].copy_from_slice(&sum);
    padded.extend(stack);
    let (kind, word) = if v6 {
        (3, [16, 0, 0, 0])
    } else {
        (11, [0, 32, 0, 0])
    };
    error(kind, 0, word, &padded)
}

/// What comes back to a packet that was sent into the device.
fn answers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Some(ip) = IpPacket::parse(bytes) else {
        return Vec::new();
    };
    let (here, to) = (ip.source(), ip.destination());
    let v6 = here.is_ipv6();
    let last = match to {
        IpAddr::V4(to) => to.octets()[3],
        IpAddr::V6(to) => to.octets()[15],
    };
    let Some((_, third, _)) = targets(v6)
        .into_iter()
        .find(|(n, ..)| to == target(v6, *n) && *n == last)
    else {
        return Vec::new();
    };
    let hops = ip.hop_limit();
    let exceeded = if v6 { 3 } else { 11 };
    let from_router = |number: u8, message| {
        vec![packet(
            network(v6, number, 1),
            here,
            65 - hops.min(60),
            message,
        )]
    };
    match hops {
        1 => return from_router(1, error(exceeded, 0, NONE, bytes)),
        2 => return from_router(2, labelled(v6, bytes)),
        _ => {}
    }
    // An echo, answered: the type changes and nothing else.
    let reply = |from: IpAddr, id: u8| {
        let mut message = ip.payload().to_vec();
        message[0] = if v6 { 129 } else { 0 };
        message[2..4].fill(0);
        message[5] = message[5].wrapping_add(id);
        vec![packet(from, here, 62, message)]
    };
    match third {
        Third::Error(kind, code, word) => from_router(3, error(kind, code, word, bytes)),
        Third::Target => reply(to, 0),
        Third::Elsewhere => reply(network(v6, 9, 9), 0),
        Third::WrongId => reply(to, 1),
        Third::Endless => vec![packet(
            network(v6, 3, hops),
            here,
            64,
            error(exceeded, 0, NONE, bytes),
        )],
        Third::Rubbish => {
            let mut other = bytes.to_vec();
            // Another flow: its first bytes behind the IP header are a type, a code, ports or the like.
            other[ip.header_len()..].fill(0xa5);
            let mut damaged = from_router(3, error(exceeded, 0, NONE, bytes));
            let end = damaged[0].len() - 1;
            damaged[0][end] ^= 0xff;
            let whole = from_router(3, error(exceeded, 0, NONE, &other));
            let cut = |bytes: &[u8]| from_router(3, error(exceeded, 0, NONE, bytes));
            let lies = [[0, 255, 0, 0], [255; 4]]
                .map(|word| from_router(3, error(exceeded, 0, word, &bytes[..8])));
            let short = cut(&bytes[..bytes.len().min(ip.header_len() + 3)]);
            [damaged, whole, cut(&[]), short, lies.concat()].concat()
        }
    }
}

/// A program in the laboratory: a router that is a TUN device, beyond which nothing is as it should be.
/// It ends with the laboratory.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_crafting_router() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let tun = Tun::create("wild").unwrap();
    for command in [
        "addr add 10.99.0.1/16 dev wild",
        "-6 addr add fd99::1/32 dev wild nodad",
        "link set wild up",
        "route add 198.51.100.0/24 dev wild",
        "-6 route add 2001:db8::/32 dev wild",
    ] {
        assert!(
            Command::new("ip")
                .args(command.split(' '))
                .status()
                .unwrap()
                .success(),
            "{command}"
        );
    }
    let _ready = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    let (mut header, mut bytes) = ([0; VNET_HEADER_BYTES], vec![0; MAX_PACKET_BYTES]);
    loop {
        let Some(length) = tun.read(&mut header, &mut bytes).unwrap() else {
            wait_readable(&tun, Duration::from_secs(1)).unwrap();
            continue;
        };
        for answer in answers(&bytes[..length]) {
            // What the kernel finds malformed, it may refuse.
            let _ = tun.write(&[0; VNET_HEADER_BYTES], &answer);
        }
    }
}

/// Runs commands beside the router, each with a label; what each printed, and its status.
fn run(commands: &[(String, String)]) -> BTreeMap<String, (i32, String)> {
    let this = std::env::current_exe().unwrap();
    let inside = format!("{INSIDE}=1");
    let test = ["--ignored", "--exact", "crafted::program_crafting_router"];
    let router = [&["env", &inside, this.to_str().unwrap()][..], &test].concat();
    let mut network = Network::line("", "");
    network.service("client", &router, PORT);
    // Most of them mostly wait.
    let mut script = "d=$(mktemp -d)\n".to_owned();
    for batch in commands.chunks(8) {
        for (label, command) in batch {
            let _ = writeln!(
                script,
                "(plumb {command} >$d/{label} 2>/dev/null; echo $? >$d/{label}.status) &"
            );
        }
        script += "wait\n";
    }
    script += "cd $d; for f in *.status; do l=${f%.status}; printf '%s\\t%s\\t' $l $(cat $f); cat $l; echo; done; rm -r $d\n";
    let (text, _) = network.script(&script);
    text.lines()
        .filter_map(|line| {
            let (label, rest) = line.split_once('\t')?;
            let (status, text) = rest.split_once('\t')?;
            Some((label.to_owned(), (status.parse().unwrap(), text.to_owned())))
        })
        .collect()
}

fn path(text: &str) -> PathResult {
    match Run::from_json(text)
        .expect(text)
        .measurements
        .remove(0)
        .outcome
    {
        Outcome::Path(path) => *path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_refusal_and_label_is_shown_and_no_rubbish_believed() {
    let mut commands = Vec::new();
    for v6 in [false, true] {
        for (last, third, _) in targets(v6) {
            let most = match third {
                Third::Endless => 255,
                // Routers ask for smaller packets at every hop beyond; a silent target is looked for.
                _ => 5,
            };
            let to = target(v6, last);
            commands.push((
                format!("{}-{last}", if v6 { 6 } else { 4 }),
                format!("path {to} -n --icmp --one-way --max-hops {most} --json"),
            ));
        }
    }
    let seen = run(&commands);
    for v6 in [false, true] {
        for (last, third, mark) in targets(v6) {
            let (status, text) = &seen[&format!("{}-{last}", if v6 { 6 } else { 4 })];
            let found = path(text);
            let what = format!("{third:?} {mark:?}: {found:?}");
            assert_eq!(*status, 0, "{what}");
            let address = |hop: usize| found.hops.get(hop - 1).and_then(|hop| hop.address.clone());
            assert_eq!(address(1), Some(network(v6, 1, 1).to_string()), "{what}");
            assert_eq!(address(2), Some(network(v6, 2, 1).to_string()), "{what}");
            assert!(
                found.hops[0].mpls.is_empty() && found.hops[1].mpls == LABELS,
                "{what}"
            );
            assert!(
                found.hops[..2].iter().all(|hop| hop.annotation.is_none()),
                "{what}"
            );
            let reached = matches!(third, Third::Target | Third::Elsewhere);
            assert_eq!(found.reached, reached, "{what}");
            let from_elsewhere = found
                .alterations
                .iter()
                .any(|a| a.field == AlteredField::AnswerFrom);
            assert_eq!(from_elsewhere, matches!(third, Third::Elsewhere), "{what}");
            match third {
                Third::Error(..) => {
                    assert_eq!(address(3), Some(network(v6, 3, 1).to_string()), "{what}");
                    assert_eq!(found.hops[2].annotation.as_deref(), mark, "{what}");
                    // A refusal is the end of the path; a packet too large is none.
                    let goes_on = mark.is_some_and(|mark| mark.starts_with("!F"));
                    assert_eq!(found.hops.len() > 3, goes_on, "{what}");
                }
                Third::Target => {
                    assert_eq!(address(3), Some(target(v6, last).to_string()), "{what}")
                }
                Third::Elsewhere => {
                    assert_eq!(address(3), Some(network(v6, 9, 9).to_string()), "{what}")
                }
                Third::WrongId | Third::Rubbish => {
                    assert!(
                        found.hops[2..].iter().all(|hop| hop.received == 0),
                        "{what}"
                    );
                }
                Third::Endless => {
                    assert_eq!(found.hops.len(), 255, "{what}");
                    for ttl in 3..=255 {
                        assert_eq!(
                            address(ttl),
                            Some(network(v6, 3, ttl as u8).to_string()),
                            "{what}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_ping_takes_only_answers_to_itself_from_whom_it_asked() {
    let mut commands = Vec::new();
    for v6 in [false, true] {
        for last in 201..=204 {
            let to = target(v6, last);
            let label = format!("{}-{last}", if v6 { 6 } else { 4 });
            commands.push((label, format!("ping {to} -c 4 -i 40ms -W 0.4 --json")));
        }
    }
    for (label, (status, text)) in run(&commands) {
        let run = Run::from_json(&text).expect(&text);
        let Outcome::Ping(ping) = &run.measurements[0].outcome else {
            panic!("{text}")
        };
        let wanted = if label.ends_with("201") {
            (0, 4, 4)
        } else {
            (1, 4, 0)
        };
        assert_eq!(
            (status, ping.sent, ping.received),
            wanted,
            "{label}: {ping:?}"
        );
        assert_eq!(ping.duplicates, 0, "{label}");
    }
}
