#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
//! What the language takes and refuses, and that nothing panics.

use proptest::prelude::*;

use super::bpf::{LONGEST, code};
use super::{Filter, FilterError, Instruction, Program};

const LINK_TYPES: [u16; 6] = [1, 113, 276, 101, 105, 127];

fn error(text: &str) -> String {
    Filter::parse(text).unwrap_err().to_string()
}

#[test]
fn members_of_a_list_inherit_the_qualifiers() {
    let alike = [
        ("port 80 or 443", "port 80 or port 443"),
        (
            "tcp dst port 80 or 443",
            "tcp dst port 80 or tcp dst port 443",
        ),
        ("port (80 or 443)", "(port 80 or port 443)"),
        ("not port 80 and 443", "(not port 80) and port 443"),
        (
            "src 10.0.0.1 or 10.0.0.2",
            "src host 10.0.0.1 or src host 10.0.0.2",
        ),
        ("10.0.0.1 or 10.0.0.2", "host 10.0.0.1 or host 10.0.0.2"),
        (
            "net 10.0.0.0/8 or 2001:db8::/32",
            "net 10.0.0.0/8 or net 2001:db8::/32",
        ),
        ("ip proto 6 or udp", "ip proto 6 or (udp)"),
        ("10.0.0.0/8", "net 10.0.0.0/8"),
        ("ip proto tcp", "ip proto \\tcp"),
        ("tcp[tcpflags] & (tcp-syn|tcp-ack) != 0", "tcp[13]&18!=0"),
        (
            "port 80 && !host ::1 || arp",
            "(port 80 and not host ::1) or arp",
        ),
        ("len >= 100", "greater 100"),
        ("length > 1 + 2 * 3", "len > 7"),
        ("portrange 90-80", "portrange 80-90"),
    ];
    for (short, long) in alike {
        assert_eq!(Filter::parse(short), Filter::parse(long), "{short}");
        assert!(Filter::parse(short).is_ok(), "{short}");
    }
}

#[test]
fn errors_have_the_word_the_place_and_what_is_taken() {
    let cases = [
        ("", "the filter is empty"),
        ("   ", "the filter is empty"),
        (
            "port http",
            "`http` at byte 5 of the filter: names of services are not looked up, write the number",
        ),
        (
            "port 80 or https",
            "`https` at byte 11 of the filter: names of services",
        ),
        (
            "host example.org",
            "`example.org` at byte 5 of the filter: host names are not looked up",
        ),
        (
            "src localhost",
            "`localhost` at byte 4 of the filter: host names",
        ),
        (
            "prot 80",
            "`prot` at byte 0 of the filter: expected a condition: a protocol, host",
        ),
        (
            "port 65536",
            "`65536` at byte 5 of the filter is too large: at most 65535",
        ),
        (
            "port",
            "the filter ends at byte 4: expected the number of a port",
        ),
        ("tcp and", "the filter ends at byte 7: expected a condition"),
        (
            "tcp port 80 tcp",
            "`tcp` at byte 12 of the filter: expected `and`, `or`, or the end",
        ),
        (
            "(tcp",
            "the filter ends at byte 4: expected a closing parenthesis",
        ),
        ("80", "`80` at byte 0 of the filter: expected a condition"),
        (
            "vlan 5 or 6",
            "`6` at byte 10 of the filter: expected a condition",
        ),
        (
            "vlan 4096",
            "`4096` at byte 5 of the filter is too large: at most 4095",
        ),
        (
            "net 10.1",
            "`10.1` at byte 4 of the filter: expected a whole address",
        ),
        (
            "net 10.0.0.0",
            "the filter ends at byte 12: expected / and the length",
        ),
        ("net 10.0.0.1/8", "write 10.0.0.0/8"),
        (
            "net 10.0.0.0/33",
            "`33` at byte 13 of the filter is too large: at most 32",
        ),
        (
            "host 10.0.0.0/8",
            "`/` at byte 13 of the filter: expected no length behind a host",
        ),
        (
            "ip port 80",
            "`port` at byte 3 of the filter does not go with `ip`: `tcp`, `udp` and `sctp` have ports",
        ),
        (
            "tcp host 10.0.0.1",
            "`host` at byte 4 of the filter does not go with `tcp`",
        ),
        (
            "ip6 host 10.0.0.1",
            "`10.0.0.1` at byte 9 of the filter does not go with `ip6`",
        ),
        (
            "arp host ::1",
            "`::1` at byte 9 of the filter does not go with `arp`",
        ),
        ("ether host 10.0.0.1", "expected an Ethernet address"),
        (
            "host 02:00:00:00:00:01",
            "`ether host` stands before an Ethernet address",
        ),
        ("ether", "expected host, src, dst, proto or ["),
        (
            "ether proto 100",
            "`100` at byte 12 of the filter: expected an EtherType",
        ),
        ("proto 256", "too large: at most 255"),
        ("proto ospf", "expected the number of a protocol"),
        (
            "tcp[13",
            "the filter ends at byte 6: expected a closing bracket",
        ),
        (
            "tcp[0:3] = 1",
            "`3` at byte 6 of the filter: expected 1, 2 or 4 bytes",
        ),
        (
            "tcp[13]",
            "the filter ends at byte 7: expected a comparison",
        ),
        ("len = ", "the filter ends at byte 6: expected a condition"),
        (
            "len / 0 = 1",
            "`/` at byte 4 of the filter: this divides by zero",
        ),
        ("len << 32 = 1", "a shift of at most 31 bits"),
        ("ip[-1] = 0", "expected a place that a packet has"),
        ("len ^ 1 = 2", "`^` at byte 4 of the filter"),
        ("tcp = 1", "`=` at byte 4 of the filter"),
        ("gateway a", "`gateway` at byte 0 of the filter"),
        ("tcp; drop", "`;` at byte 3 of the filter"),
        ("port ä", "`ä` at byte 5 of the filter"),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let long = format!("tcp{}", " or tcp".repeat(20_000));
    assert!(error(&long).contains("at most 65536 are read"));
}

#[test]
fn what_a_link_has_not_is_refused() {
    let vlan = Filter::parse("tcp and vlan 5").unwrap();
    assert!(vlan.compile(1).is_ok());
    let error = vlan.compile(113).unwrap_err().to_string();
    assert!(
        error.starts_with("`vlan` at byte 8 of the filter is for Ethernet alone"),
        "{error}"
    );
    let station = Filter::parse("ether src 02:00:00:00:00:01").unwrap();
    assert!(station.compile(101).is_err());
    assert!(station.compile(105).is_err());
    let unknown = FilterError::LinkType { link_type: 147 };
    assert_eq!(station.compile(147), Err(unknown));
}

#[test]
fn deep_filters_are_refused() {
    let deep = [
        format!("{}tcp{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}tcp", "not ".repeat(5000)),
        format!("{}0{} = 1", "ip[".repeat(5000), "]".repeat(5000)),
        format!("tcp{}", " and ip or udp".repeat(2000)),
        format!("len{} = 1", " + len".repeat(5000)),
        format!("{}len = 1", "- ".repeat(5000)),
        format!("port {}80", "not ".repeat(5000)),
    ];
    for text in deep {
        let error = error(&text);
        assert!(error.contains("goes deeper than"), "{error}");
    }
    let most = format!("{}tcp{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(Filter::parse(&most), Filter::parse("tcp"));
    let results = (0..20).fold("len".to_owned(), |inner, _| format!("len - ({inner})"));
    let results = Filter::parse(&format!("{results} = 1")).unwrap();
    let error = results.compile(1).unwrap_err().to_string();
    assert!(
        error.contains("more than 16 intermediate results"),
        "{error}"
    );
}

/// A UDP datagram over IPv4 in an Ethernet frame, to a port.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = vec![0; 42];
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[23] = 17;
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame
}

fn list(ports: u16) -> Filter {
    let ports: Vec<String> = (1..=ports).map(|port| port.to_string()).collect();
    Filter::parse(&format!("port {}", ports.join(" or "))).unwrap()
}

#[test]
fn long_filters_jump_further_than_a_byte_says() {
    let program = list(100).compile(1).unwrap();
    assert!(program.instructions().len() > 2000);
    assert!(program.instructions().iter().any(|i| i.code == code::JUMP));
    assert_sound(&program);
    for port in 0..400 {
        let accepted = program.accepts(&datagram(port), 42);
        assert_eq!(accepted, (1..=100).contains(&port), "{port}");
    }
    assert!(
        !program.accepts(&datagram(80)[..37], 42),
        "the port was cut"
    );
    let most = FilterError::TooManyInstructions { most: LONGEST };
    assert_eq!(list(2000).compile(1), Err(most));
}

/// What Linux asks of a program: jumps that stay inside, and a return at the end.
fn assert_sound(program: &Program) {
    let instructions = program.instructions();
    assert!(!instructions.is_empty() && instructions.len() <= LONGEST);
    for (at, i) in instructions.iter().enumerate() {
        let furthest = match i.code {
            code::JUMP => i.k as usize,
            _ => usize::from(i.jt.max(i.jf)),
        };
        assert!(at + furthest < instructions.len(), "{at}: {i:?}");
    }
    assert_eq!(instructions.last().unwrap().code, code::RETURN);
}

#[test]
fn a_program_that_is_none_refuses_everything() {
    let endless = Instruction {
        code: code::JUMP,
        jt: 0,
        jf: 0,
        k: u32::MAX,
    };
    for code in 0..=u16::MAX {
        let of = Program::of(vec![Instruction { code, ..endless }]);
        let returns = [code::RETURN].contains(&code);
        assert_eq!(of.accepts(&[1; 100], 100), returns, "{code:#x}");
    }
    assert!(!Program::of(Vec::new()).accepts(&[], 0));
}

/// Words that filters are made of, and some that they are not.
const WORDS: [&str; 52] = [
    "host",
    "net",
    "port",
    "portrange",
    "proto",
    "src",
    "dst",
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "ether",
    "vlan",
    "greater",
    "less",
    "len",
    "and",
    "or",
    "not",
    "!",
    "&&",
    "||",
    "(",
    ")",
    "[",
    "]",
    ":",
    "/",
    "+",
    "-",
    "*",
    "&",
    "|",
    "<<",
    ">>",
    "=",
    "!=",
    "<",
    "80",
    "0",
    "4",
    "10-20",
    "10.0.0.1",
    "::1",
    "02:00:00:00:00:01",
    "tcpflags",
    "\\tcp",
];

fn check(text: &str, packet: &[u8]) {
    let Ok(filter) = Filter::parse(text) else {
        return;
    };
    for link_type in LINK_TYPES {
        if let Ok(program) = filter.compile(link_type) {
            assert_sound(&program);
            program.accepts(packet, packet.len() as u32);
        }
    }
}

fn packet() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in any::<String>(), packet in packet()) {
        check(&text, &packet);
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..20), packet in packet()) {
        check(&words.join(" "), &packet);
        check(&words.concat(), &packet);
    }

    #[test]
    fn no_program_panics(
        program in prop::collection::vec((0..0x100_u16, 0..9_u8, 0..9_u8, prop_oneof![0..100_u32, any::<u32>()]), 0..60),
        packet in packet(),
    ) {
        let instructions = program.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k });
        Program::of(instructions.collect()).accepts(&packet, packet.len() as u32);
    }
}
