//! ICMP errors from anywhere, and what they quote.
#![no_main]

use plumb_wire::icmp::Version;
use plumb_wire::icmp_report::IcmpReport;
use plumb_wire::path_probe::{ProbeSet, Transport};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for (version, address) in [
        (Version::V4, std::net::Ipv4Addr::LOCALHOST.into()),
        (Version::V6, std::net::Ipv6Addr::LOCALHOST.into()),
    ] {
        let set = ProbeSet {
            source: address,
            destination: address,
            transport: Transport::Udp { source_port: 1024, destination_port: 33434 },
            session: 7,
        };
        if let Some(report) = IcmpReport::parse(version, bytes) {
            let _ = set.quoted(report.quote);
        }
        let _ = (set.quoted(bytes), set.answered(set.protocol(), bytes));
    }
});
