//! Protocols, hosts and lengths in sums.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumb_model::results::capture::{Conversation, Endpoint, LayerCount, SizeCount};

use crate::flows::Pair;
use crate::packet::{Address, Layers};
use crate::table::Table;

/// Conversations and endpoints that are listed.
const LISTED: usize = 1000;
/// Stacks of protocols that are distinguished; a capture has tens.
const MOST_STACKS: usize = 4096;
const NS_PER_S: f64 = 1e9;

/// Packets and their bytes by the protocols they have.
#[derive(Debug, Default)]
pub(crate) struct Hierarchy {
    stacks: Table<Layers, [u64; 2]>,
}

impl Hierarchy {
    #[inline]
    pub(crate) fn add(&mut self, layers: Layers, bytes: u32) {
        let layers = match self.stacks.len() < MOST_STACKS {
            true => layers,
            false => layers.first(1),
        };
        if let Some([packets, sum]) = self.stacks.entry(layers, || [0; 2]) {
            *packets += 1;
            *sum += u64::from(bytes);
        }
    }

    /// Each protocol in those that it lies in, the heaviest of them first.
    pub(crate) fn finish(self) -> Vec<LayerCount> {
        let mut nodes: BTreeMap<Layers, [u64; 2]> = BTreeMap::new();
        for (layers, [packets, bytes]) in self.stacks.into_entries() {
            for count in 1..=layers.to_vec().len() {
                let node = nodes.entry(layers.first(count)).or_default();
                let [of_packets, of_bytes] = node;
                *of_packets += packets;
                *of_bytes += bytes;
            }
        }
        let weight = |layers: Layers, count: usize| {
            let node = nodes.get(&layers.first(count)).copied().unwrap_or_default();
            std::cmp::Reverse(node.iter().rev().copied().collect::<Vec<_>>())
        };
        let mut ordered: Vec<Layers> = nodes.keys().copied().collect();
        ordered.sort_by_cached_key(|layers| {
            let depth = layers.to_vec().len();
            (1..=depth)
                .map(|count| (weight(*layers, count), layers.first(count)))
                .collect::<Vec<_>>()
        });
        let counts = ordered.into_iter().filter_map(|layers| {
            let [packets, bytes] = *nodes.get(&layers)?;
            Some(LayerCount {
                layers: layers.to_vec(),
                packets,
                bytes,
            })
        });
        counts.collect()
    }
}

/// The ranges of lengths that capinfos' family of tools has (Wireshark's "Packet Lengths").
const SIZES: [u64; 10] = [0, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120];

/// Packets by their length.
#[derive(Debug, Default)]
pub(crate) struct Sizes([u64; SIZES.len()]);

impl Sizes {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        // From 20 on each range is twice the one before.
        let place = match bytes {
            0..20 => 0,
            _ => ((bytes / 20).ilog2() as usize + 1).min(SIZES.len() - 1),
        };
        if let Some(count) = self.0.get_mut(place) {
            *count += 1;
        }
    }

    pub(crate) fn finish(self) -> Vec<SizeCount> {
        let ends = SIZES
            .iter()
            .skip(1)
            .map(|next| Some(next - 1))
            .chain([None]);
        let counts = SIZES
            .iter()
            .zip(ends)
            .zip(self.0)
            .map(|((from, to), packets)| SizeCount {
                from_bytes: *from,
                to_bytes: to,
                packets,
            });
        counts.filter(|size| size.packets > 0).collect()
    }
}

/// Pairs of hosts and hosts, as they are listed, and how many there are.
pub(crate) struct Hosts {
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) conversation_count: u64,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) endpoint_count: u64,
}

/// Lists the heaviest hosts and pairs of hosts.
pub(crate) fn hosts(
    mut pairs: Vec<((Address, Address), Pair)>,
    names: &[(IpAddr, String)],
) -> Hosts {
    /// Packets and bytes sent, and received.
    type Both = [[u64; 2]; 2];
    let mut hosts: BTreeMap<Address, Both> = BTreeMap::new();
    for ((a, b), pair) in &pairs {
        let [[p0, p1], [b0, b1]] = [pair.packets, pair.bytes];
        for (address, sent, received) in [(a, [p0, b0], [p1, b1]), (b, [p1, b1], [p0, b0])] {
            let host = hosts.entry(*address).or_default();
            for (sums, more) in host.iter_mut().zip([sent, received]) {
                for (sum, more) in sums.iter_mut().zip(more) {
                    *sum += more;
                }
            }
        }
    }
    let conversation_count = pairs.len() as u64;
    let endpoint_count = hosts.len() as u64;
    pairs.sort_by(|(a_key, a), (b_key, b)| {
        let weight = |pair: &Pair| pair.bytes.iter().sum::<u64>();
        weight(b).cmp(&weight(a)).then(a_key.cmp(b_key))
    });
    let conversations = pairs.into_iter().take(LISTED).map(|((a, b), pair)| {
        let ([a_packets, b_packets], [a_bytes, b_bytes]) = (pair.packets, pair.bytes);
        Conversation {
            a: a.to_string(),
            b: b.to_string(),
            a_packets,
            a_bytes,
            b_packets,
            b_bytes,
            duration_s: pair.last_ns.saturating_sub(pair.first_ns) as f64 / NS_PER_S,
        }
    });
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    let weight = |[[_, sent], [_, received]]: Both| sent + received;
    hosts.sort_by(|(a_key, a), (b_key, b)| weight(*b).cmp(&weight(*a)).then(a_key.cmp(b_key)));
    let endpoints = hosts
        .into_iter()
        .take(LISTED)
        .map(|(address, [sent, received])| {
            let ip = address.ip();
            let name = names
                .iter()
                .find(|(of, _)| *of == ip)
                .map(|(_, name)| name.clone());
            let ([sent_packets, sent_bytes], [received_packets, received_bytes]) = (sent, received);
            Endpoint {
                address: ip.to_string(),
                name,
                sent_packets,
                sent_bytes,
                received_packets,
                received_bytes,
            }
        });
    Hosts {
        conversations: conversations.collect(),
        conversation_count,
        endpoints: endpoints.collect(),
        endpoint_count,
    }
}
