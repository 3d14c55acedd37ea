//! Synthetic traffic over a path, captured at both ends by clocks that differ.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::results::capture::sides::CaptureSidesResult;

use super::Sides;
use crate::analysis::Named;
use crate::read::Reader;
use crate::testing::{ipv4, pcap};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * S;
/// The clock of the server's side is ahead and runs faster.
const OFFSET_NS: u64 = 7 * S;
const DRIFT_NS_PER_S: u64 = 50_000;
const RAW_IP: u32 = 101;

/// Both captures, with true times.
#[derive(Default)]
pub(super) struct Path {
    pub(super) client: Vec<(u64, Vec<u8>)>,
    pub(super) server: Vec<(u64, Vec<u8>)>,
}

impl Path {
    pub(super) fn up(&mut self, at: u64, sent: &[u8], delay: u64, received: &[u8]) {
        self.client.push((at, sent.to_vec()));
        self.server.push((at + delay, received.to_vec()));
    }

    pub(super) fn down(&mut self, at: u64, sent: &[u8], delay: u64, received: &[u8]) {
        self.server.push((at, sent.to_vec()));
        self.client.push((at + delay, received.to_vec()));
    }

    pub(super) fn matched(mut self) -> CaptureSidesResult {
        self.client.sort_by_key(|(at, _)| *at);
        self.server.sort_by_key(|(at, _)| *at);
        let client = self
            .client
            .into_iter()
            .map(|(at, bytes)| (EPOCH + at, bytes));
        let server = self.server.into_iter().map(|(at, bytes)| {
            let drift = at / 1000 * DRIFT_NS_PER_S / 1_000_000;
            (EPOCH + OFFSET_NS + at + drift, bytes)
        });
        matched(client.collect(), server.collect())
    }
}

pub(super) fn matched(
    client: Vec<(u64, Vec<u8>)>,
    server: Vec<(u64, Vec<u8>)>,
) -> CaptureSidesResult {
    let named = |name: &str, packets: &[(u64, Vec<u8>)]| {
        let file = pcap(RAW_IP, false, true, packets);
        let reader = Reader::new(std::io::Cursor::new(file)).unwrap();
        let name = name.to_owned();
        Named { name, reader }
    };
    let files = [named("client", &client), named("server", &server)];
    Sides::of(files, &|| false)
}

pub(super) fn with_ident(mut packet: Vec<u8>, ident: u32) -> Vec<u8> {
    packet[4..6].copy_from_slice(&(ident as u16).to_be_bytes());
    packet
}

/// A datagram with a number in it.
pub(super) fn udp(up: bool, number: u32) -> Vec<u8> {
    let ports: [u16; 2] = if up { [40_000, 5000] } else { [5000, 40_000] };
    let mut datagram = Vec::new();
    for field in [ports[0], ports[1], 108, 0] {
        datagram.extend(field.to_be_bytes());
    }
    datagram.extend(number.to_be_bytes());
    datagram.resize(108, 0);
    let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let [from, to] = if up { hosts } else { [hosts[1], hosts[0]] };
    ipv4(17, from, to, &datagram)
}
