//! Filters accept what those accept that `tcpdump -ddd` prints, packet by packet.

use std::cell::Cell;
use std::process::Command;

use plumb_capture::{Filter, Instruction, Program};
use proptest::test_runner::{Config, TestCaseError, TestRng, TestRunner};

use crate::packets::packet;

/// Filters for every link.
const FILTERS: [&str; 75] = [
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "sctp",
    "igmp",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst host 10.0.0.1",
    "src 10.0.0.1 and dst 10.0.0.2",
    "src or dst host 10.0.0.2",
    "src and dst host 10.0.0.1",
    "host 2001:db8::1",
    "src host ::1",
    "ip6 dst host fe80::1",
    "ip host 10.0.0.2",
    "arp host 10.0.0.2",
    "rarp src host 10.0.0.1",
    "net 10.0.0.0/8",
    "src net 10.0.0.0/30",
    "dst net 192.168.0.0/16",
    "net 0.0.0.0/0",
    "net 2001:db8::/32",
    "src net 2001:db8:8000::/33",
    "dst net fe80::/10",
    "net ::/0",
    "ip net 10.0.0.0/31",
    "port 80",
    "src port 53",
    "dst port 443",
    "tcp port 80",
    "udp port 53",
    "udp src port 53",
    "sctp dst port 22",
    "src and dst port 80",
    "port 80 or 443",
    "tcp port 80 or 443 and host 10.0.0.1",
    "port (22 or 53 or 80)",
    "portrange 8000-8010",
    "tcp src portrange 1-1023",
    "udp dst portrange 8005-65535",
    "not port 80",
    "not (host 10.0.0.1 or host ::1)",
    "!tcp && !udp || icmp",
    "host 10.0.0.1 or 2001:db8::1 and not arp",
    "proto 17",
    "proto 58 or 1",
    "ip proto 132",
    "ip proto \\tcp",
    "ip6 proto 44",
    "ip6 proto 6",
    "ether proto 0x0800",
    "ether proto \\arp",
    "ether proto 0x88cc",
    "greater 100",
    "less 60",
    "len > 70 and len != 80",
    "tcp[tcpflags] & (tcp-syn|tcp-ack) != 0",
    "tcp[13] & 2 != 0",
    "tcp[13] & 0x12 = 2 and port 80",
    "udp[4:2] > 100",
    "icmp[icmptype] = icmp-echo or icmp6[0] = 128",
    "ip[0] & 0xf > 5",
    "ip[6:2] & 0x1fff = 0 and udp",
    "ip6[6] = 17",
    "ip[8] < 64",
    "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "ip[ip[0] & 0xf] > 100",
    "tcp[(tcp[12] >> 2) & 0x3c : 1] > 100",
    "arp[6:2] = 1",
    "link[0] & 1 = 0 and ip[1] * 2 + 3 <= 200 - ip[2] / 3",
];

/// Filters for Ethernet alone.
const OF_ETHERNET: [&str; 21] = [
    "ether host 02:00:00:00:00:01",
    "ether src 02:00:00:00:00:01",
    "ether dst host 02:00:00:00:00:01",
    "ether src and dst host 02:00:00:00:00:01",
    "not ether host 02:00:00:00:00:02 and ip",
    "ether[0] & 1 = 0",
    "ether[12:2] = 0x8100",
    "vlan",
    "vlan 5",
    "not vlan",
    "vlan and ip",
    "vlan 5 and tcp port 80",
    "vlan 5 and vlan 100",
    "vlan and vlan and host 10.0.0.1",
    "ip or (vlan and ip)",
    "port 80 or (vlan and port 80)",
    "vlan and (tcp[13] & 2 != 0 or udp[4:2] > 1000)",
    "vlan and arp host 10.0.0.1",
    "vlan and ether proto 0x86dd and ip6 proto 17",
    "vlan 5 or ip",
    "vlan and icmp6[0] = 128",
];

/// The program of tcpdump, which has no instructions where tcpdump finds that it accepts nothing.
fn of_tcpdump(link: &str, options: &[&str], filter: &str) -> Program {
    let mut command = Command::new("tcpdump");
    command.arg("-ddd").args(options);
    command.args(["-y", link, "--", filter]);
    let output = command.output().expect("tcpdump is there: tests/tools.sh");
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("rejects all packets") {
        return Program::of(Vec::new());
    }
    assert!(output.status.success(), "{filter}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let instructions = text.lines().skip(1).map(|line| {
        let numbers: Vec<u32> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [code, jt, jf, k] = numbers[..] else {
            panic!("{line}");
        };
        let [jt, jf] = [jt, jf].map(|over| u8::try_from(over).unwrap());
        let code = u16::try_from(code).unwrap();
        Instruction { code, jt, jf, k }
    });
    Program::of(instructions.collect())
}

/// The programs of a filter, and how many packets were refused and accepted.
struct Programs {
    filter: String,
    ours: Program,
    theirs: Program,
    /// The program of `tcpdump -O`.
    unoptimised: Program,
    counts: [Cell<u32>; 2],
}

/// Gives thousands of packets to the programs of each filter. tcpdump's optimiser reorders loads and drops some, so that
/// its own two programs differ about packets that were cut within a header: there either verdict is right.
fn compare(link: (&str, u16), filters: &[&str], cases: u32) {
    let programs = filters.iter().map(|filter| Programs {
        filter: format!("{}: {filter}", link.0),
        ours: Filter::parse(filter).unwrap().compile(link.1).unwrap(),
        theirs: of_tcpdump(link.0, &[], filter),
        unoptimised: of_tcpdump(link.0, &["-O"], filter),
        counts: [const { Cell::new(0) }; 2],
    });
    let programs: Vec<_> = programs.collect();
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let undecided = Cell::new(0);
    // The same packets in each run, so that what is never accepted is known.
    let seed = TestRng::deterministic_rng(config.rng_algorithm);
    let ran = TestRunner::new_with_rng(config, seed).run(&packet(), |packet| {
        let (frame, length) = packet.on(link.0);
        for of in &programs {
            let accepted = of.theirs.accepts(&frame, length);
            if of.unoptimised.accepts(&frame, length) != accepted {
                undecided.set(undecided.get() + 1);
                continue;
            }
            if of.ours.accepts(&frame, length) != accepted {
                let what = format!("{}: tcpdump says {accepted}: {frame:02x?}", of.filter);
                return Err(TestCaseError::fail(what));
            }
            let count = &of.counts[usize::from(accepted)];
            count.set(count.get() + 1);
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    let verdicts = cases * programs.len() as u32;
    assert!(undecided.get() < verdicts / 100, "{undecided:?}");
    for of in &programs {
        let [refused, accepted] = &of.counts;
        let accepts = accepted.get() > 0 || of.theirs.instructions().is_empty();
        assert!(
            refused.get() > 0 && accepts,
            "{}: {:?}",
            of.filter,
            of.counts
        );
    }
}

#[test]
fn on_ethernet() {
    let filters = [&FILTERS[..], &OF_ETHERNET[..]].concat();
    compare(("EN10MB", 1), &filters, 8000);
}

#[test]
fn on_linux_cooked() {
    compare(("LINUX_SLL", 113), &FILTERS, 3000);
    compare(("LINUX_SLL2", 276), &FILTERS, 3000);
}

#[test]
fn on_raw_ip() {
    compare(("RAW", 101), &FILTERS, 3000);
}

#[test]
fn on_wireless() {
    compare(("IEEE802_11", 105), &FILTERS, 3000);
    compare(("IEEE802_11_RADIO", 127), &FILTERS, 3000);
}

#[test]
fn every_field_of_a_comparison_asks_for_its_protocol() {
    // libpcap asks for the protocol of the leftmost field alone, and reads what lies there in other packets.
    let filter = "1 + tcp[13] = 3";
    let ours = Filter::parse(filter).unwrap().compile(1).unwrap();
    let mut frame = [0; 60];
    frame[27] = 2;
    assert!(of_tcpdump("EN10MB", &[], filter).accepts(&frame, 60));
    assert!(!ours.accepts(&frame, 60));
}
