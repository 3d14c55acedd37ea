//! A packet that came in on a link: IP, its transport, ICMP and what is done to it.
#![no_main]

use plumb_wire::too_big::too_big;
use plumb_wire::ip::{IpPacket, set_ce};
use plumb_wire::probe_key::ProbeKey;
use plumb_wire::{fragment, rewrite};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(packet) = IpPacket::parse(bytes) {
        let _ = (packet.flow(), packet.ports(), packet.tcp_flags(), packet.icmp_echo());
        let _ = (ProbeKey::of(&packet), too_big(bytes, 1280, packet.destination()));
    }
    let _ = fragment::fragment(bytes, 576);
    let mut changed = bytes.to_vec();
    let _ = (set_ce(&mut changed), rewrite::set_dscp(&mut changed, 46));
    rewrite::refresh_icmp_checksum(&mut changed);
});
