//! A capture from its first packet to its result.

use plumb_model::results::capture::{CaptureFile, CaptureFlaws, CaptureResult, Layer};

use crate::dns::{self, Dns};
use crate::flows::Flows;
use crate::icmp::Errors;
use crate::packet::{End, Transport, decode};
use crate::passing::Totals;
use crate::read::{Frame, Reader, Told};
use crate::sieve::Sieve;
use crate::source::{Next, Source};
use crate::sums::{Hierarchy, Sizes, hosts};
use crate::watch::Watch;
use crate::wireless::WirelessCounts;

const NS_PER_S: f64 = 1e9;
/// Why a file was not read to its end, where the user had enough.
pub(crate) const INTERRUPTED: &str = "it was not read to its end: it was interrupted";
/// No link but a loopback carries larger packets: jumbo frames have 9 to 9.2 kB, with what is around them.
const LARGEST_ON_A_LINK: u32 = 9500;

/// Sources that are read into one result.
#[derive(Default)]
pub struct Analysis<'a> {
    watch: Watch<'a>,
    packets: u64,
    bytes: u64,
    /// Times of the earliest packet, the latest, and the one before.
    span_ns: Option<[u64; 2]>,
    before_ns: u64,
    flaws: CaptureFlaws,
    hierarchy: Hierarchy,
    sizes: Sizes,
    flows: Flows,
    dns: Dns,
    errors: Errors,
    arp: u64,
    broadcast: u64,
    wireless: WirelessCounts,
}

/// A source with its name: a file, or an interface.
pub struct Named<S = Reader> {
    pub name: String,
    pub reader: S,
}

impl<'a> Analysis<'a> {
    /// Reads all sources, packets in the order of their times where there are several, and sums up those that pass the
    /// sieve. `stop` is asked now and then whether to end early.
    pub fn of<S: Source>(
        mut files: Vec<Named<S>>,
        mut sieve: Option<&mut Sieve>,
        watch: Watch<'a>,
        stop: &dyn Fn() -> bool,
    ) -> CaptureResult {
        /// How many packets come between two looks: a few milliseconds of work.
        const LOOK_EVERY: u64 = 1 << 16;
        let mut analysis = Self {
            watch,
            ..Self::default()
        };
        let mut looked_at = 0_u64;
        let mut heads: Vec<Next> = Vec::new();
        let mut told: Vec<CaptureFile> = Vec::new();
        for file in &mut files {
            told.push(CaptureFile {
                name: file.name.clone(),
                format: file.reader.format().to_owned(),
                ..CaptureFile::default()
            });
            heads.push(Next::End);
        }
        let next = |file: &mut Named<S>, told: &mut CaptureFile| match file.reader.advance() {
            Ok(next) => next,
            Err(error) => {
                told.incomplete = Some(error.to_string());
                Next::End
            }
        };
        for ((head, file), told) in heads.iter_mut().zip(&mut files).zip(&mut told) {
            *head = next(file, told);
        }
        // Ends when no source has a packet left: each turn takes one, or waits for one as long as a source does.
        while let Some(earliest) = earliest(&heads) {
            let place = (
                heads.get_mut(earliest),
                files.get_mut(earliest),
                told.get_mut(earliest),
            );
            let (Some(head), Some(file), Some(own)) = place else {
                break;
            };
            if *head == Next::Nothing {
                analysis.pause(file.reader.told().dropped);
                if analysis.watch.has_failed() || stop() {
                    break;
                }
                *head = next(file, own);
                continue;
            }
            let frame = file.reader.frame();
            match sieve
                .as_mut()
                .map_or(Ok(true), |sieve| sieve.passes(&frame))
            {
                Ok(true) => {
                    analysis.take(&frame);
                    own.packets += 1;
                }
                Ok(false) => {}
                Err(error) => {
                    own.incomplete.get_or_insert(error.to_string());
                    *head = Next::End;
                    continue;
                }
            }
            *head = next(file, own);
            if analysis.watch.has_failed() {
                break;
            }
            looked_at += 1;
            if looked_at.is_multiple_of(LOOK_EVERY) && stop() {
                let unread = heads.iter().zip(&mut told);
                for (_, told) in unread.filter(|(head, _)| **head != Next::End) {
                    told.incomplete = Some(INTERRUPTED.to_owned());
                }
                break;
            }
        }
        let beside = files.iter_mut().map(|file| file.reader.told());
        analysis.finish(beside.collect(), told)
    }

    /// Takes in a packet that counts, with other addresses where those are wanted.
    #[inline]
    fn take(&mut self, frame: &Frame<'_>) {
        let Some(mut anonymiser) = self.watch.anonymiser.take() else {
            self.watch.keep(frame);
            return self.frame(frame);
        };
        let anonymous = anonymiser.frame(frame);
        self.watch.keep(&anonymous);
        self.frame(&anonymous);
        self.watch.anonymiser = Some(anonymiser);
    }

    /// Takes in a packet.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>) {
        let (now, wire) = (frame.unix_ns, frame.original_bytes);
        self.packets += 1;
        self.bytes += u64::from(wire);
        self.sizes.add(wire);
        self.flaws.backward_packets += u64::from(now < self.before_ns);
        self.before_ns = now;
        self.watch.packet(now, wire);
        let [earliest, latest] = self.span_ns.unwrap_or([now, now]);
        self.span_ns = Some([earliest.min(now), latest.max(now)]);
        self.flaws.cut_packets += u64::from((frame.bytes.len() as u32) < wire);
        let mut packet = decode(frame);
        match packet.end {
            End::Whole | End::Cut => {}
            End::Unread => self.flaws.unread_packets += 1,
            End::Malformed => {
                self.flaws.malformed_packets += 1;
                packet.layers.push(Layer::Malformed);
            }
        }
        self.hierarchy.add(packet.layers, wire);
        self.arp += u64::from(packet.arp);
        self.broadcast += u64::from(packet.broadcast);
        if let Some(wireless) = packet.wireless {
            self.wireless.add(wireless);
        }
        self.flaws.later_fragments += u64::from(packet.later_fragment);
        let Some(network) = packet.network else {
            return;
        };
        match packet.transport {
            Transport::Tcp(segment) => {
                self.flaws.offloaded_packets +=
                    u64::from(segment.payload_bytes > LARGEST_ON_A_LINK);
                self.flows
                    .segment(&segment, &network, now, wire, &mut self.watch);
            }
            Transport::Udp { ports, payload } => {
                self.flows.packet(&network, ports, now, wire);
                if ports.contains(&dns::PORT) {
                    self.dns.message(&network, ports, payload, now);
                }
            }
            Transport::Icmp {
                v6,
                kind,
                code,
                body,
            } => {
                self.flows.packet(&network, [0, 0], now, wire);
                self.errors
                    .message(&network, (v6, kind, code), body, &mut self.flows);
            }
            Transport::Other | Transport::None => self.flows.packet(&network, [0, 0], now, wire),
        }
    }

    /// No packet is at hand.
    fn pause(&mut self, dropped: u64) {
        let Some(viewer) = &mut self.watch.viewer else {
            return;
        };
        if viewer.is_due() {
            let totals = Totals {
                packets: self.packets,
                bytes: self.bytes,
                dropped,
            };
            viewer.show(totals, &mut self.flows.passing());
        }
    }

    fn finish(mut self, beside: Vec<Told>, told: Vec<CaptureFile>) -> CaptureResult {
        let [began_ns, ended_ns] = self.span_ns.unwrap_or_default();
        let (mut flaws, mut names, mut comments) = (self.flaws, Vec::new(), Vec::new());
        for told in beside {
            flaws.dropped += told.dropped;
            flaws.unknown_blocks += told.unknown_blocks;
            flaws.secret_blocks += told.secrets;
            // They name whom addresses no longer do.
            if self.watch.anonymiser.is_none() {
                names.extend(told.names);
                comments.extend(told.comments);
            }
        }
        self.watch.end(flaws.dropped);
        let flows = self.flows.finish(began_ns);
        flaws.missed_bytes = flows.missed_bytes;
        flaws.untracked_packets = flows.untracked;
        let graphs = self.watch.graphs;
        let graphs = graphs.map(|graphs| Box::new(graphs.finish(&flows.numbers, began_ns)));
        let hosts = hosts(flows.pairs, &names);
        CaptureResult {
            files: told,
            packets: self.packets,
            bytes: self.bytes,
            began_unix_s: self.span_ns.map(|_| began_ns as f64 / NS_PER_S),
            duration_s: (ended_ns - began_ns) as f64 / NS_PER_S,
            flaws,
            hierarchy: self.hierarchy.finish(),
            sizes: self.sizes.finish(),
            conversations: hosts.conversations,
            conversation_count: hosts.conversation_count,
            endpoints: hosts.endpoints,
            endpoint_count: hosts.endpoint_count,
            connections: flows.connections,
            tcp: flows.tcp,
            icmp_errors: self.errors.finish(),
            dns: self.dns.finish(),
            arp_packets: self.arp,
            broadcast_packets: self.broadcast,
            wireless: self.wireless.finish(),
            graphs,
            comments,
        }
    }
}

/// The source whose next packet is the earliest, the first of them that are equal. One that has none at hand comes first.
#[inline]
fn earliest(heads: &[Next]) -> Option<usize> {
    let known = heads
        .iter()
        .enumerate()
        .filter_map(|(place, head)| match head {
            Next::Packet(ns) => Some((place, *ns)),
            Next::Nothing => Some((place, 0)),
            Next::End => None,
        });
    known.min_by_key(|(_, ns)| *ns).map(|(place, _)| place)
}
