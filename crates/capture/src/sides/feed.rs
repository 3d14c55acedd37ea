//! One of two captures, packet by packet in the order of time. Segments that the network card splits or joined are
//! split into the segments of the wire, and rewritten sequence numbers are undone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use plumb_model::results::capture::CaptureFile;
use plumb_wire::ip::FIN;

use super::fingerprint::{Body, End, Summary};
use crate::analysis::Named;
use crate::packet::decode;
use crate::table::{FlowKey, Seeded};

/// Packets that are read ahead to be put into order, which captures of several queues are a little out of.
const READ_AHEAD: usize = 256;
/// Connections whose segment size, and whose rewritten numbers, are remembered.
const MOST_CONNECTIONS: usize = 1 << 16;
/// What a segment has at most where the handshake was not seen: Ethernet's 1500 bytes less the headers of IPv4 and IPv6 (RFC 9293,
/// section 3.7.1).
const USUAL_MSS: u16 = 1460;
const USUAL_MSS_V6: u16 = 1440;
/// A larger one is of no network card, and is not split: Linux joins no more (BIG TCP, GSO_MAX_SIZE in linux/netdevice.h).
const LARGEST_JOINED: u32 = 8 * 65_536;
/// Smaller ones are no sign of a path (RFC 9293, section 3.7.1).
const SMALLEST_MSS: u16 = 536;
/// The number of TCP as IP's protocol (IANA).
const TCP: u8 = plumb_wire::ip::TCP;

/// A capture that is being read.
pub(super) struct Feed {
    file: Named,
    pub(super) told: CaptureFile,
    /// What was read, with how many were read before.
    ahead: BinaryHeap<Reverse<Ahead>>,
    read: u64,
    /// What is left of a segment that is split.
    rest: Option<Summary>,
    sizes: HashMap<FlowKey, u16, Seeded>,
    /// What was added to the sequence numbers of a direction between the client's side and here.
    shifts: HashMap<[End; 2], u32, Seeded>,
    /// Times of the earliest packet and of the latest that was handed out.
    pub(super) span_ns: Option<[u64; 2]>,
    pub(super) not_ip: u64,
    pub(super) joined: u64,
    /// Packets whose checksum the network card was to write.
    pub(super) unwritten: u64,
}

#[derive(Debug)]
struct Ahead(u64, u64, Summary);

impl PartialEq for Ahead {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Ahead {}

impl PartialOrd for Ahead {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ahead {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// A packet of the wire with its hashes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed {
    pub(super) summary: Summary,
    pub(super) key: u64,
    pub(super) syn_key: Option<u64>,
}

impl Feed {
    pub(super) fn new(file: Named) -> Self {
        Self {
            told: CaptureFile {
                name: file.name.clone(),
                format: file.reader.format().to_owned(),
                ..CaptureFile::default()
            },
            file,
            ahead: BinaryHeap::new(),
            read: 0,
            rest: None,
            sizes: HashMap::default(),
            shifts: HashMap::default(),
            span_ns: None,
            not_ip: 0,
            joined: 0,
            unwritten: 0,
        }
    }

    /// When the next packet was captured; `None` at the end.
    pub(super) fn peek_ns(&mut self, seed: &Seeded) -> Option<u64> {
        if let Some(rest) = self.rest {
            return Some(rest.ns);
        }
        // Ends with the file or with enough of it: each turn reads a packet.
        while self.ahead.len() < READ_AHEAD {
            match self.file.reader.advance() {
                Ok(Some(ns)) => {
                    self.told.packets += 1;
                    self.read += 1;
                    let packet = decode(&self.file.reader.frame());
                    match Summary::of(&packet, ns, seed) {
                        Some(summary) => {
                            self.unwritten += u64::from(summary.unwritten);
                            self.ahead.push(Reverse(Ahead(ns, self.read, summary)));
                        }
                        None => self.not_ip += 1,
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.told.incomplete = Some(error.to_string());
                    break;
                }
            }
        }
        self.ahead.peek().map(|Reverse(first)| first.0)
    }

    /// The next packet of the file, where it can be matched.
    pub(super) fn next(&mut self, seed: &Seeded) -> Option<Keyed> {
        self.peek_ns(seed)?;
        let whole = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let Reverse(Ahead(_, _, summary)) = self.ahead.pop()?;
                self.offer(&summary);
                summary
            }
        };
        let summary = self.first_of(whole);
        let [earliest, latest] = self.span_ns.unwrap_or([summary.ns; 2]);
        self.span_ns = Some([earliest.min(summary.ns), latest.max(summary.ns)]);
        let [source, destination] = summary.ends;
        let shift = |ends| self.shifts.get(&ends).copied().unwrap_or(0);
        let shifts = match self.shifts.is_empty() {
            true => [0, 0],
            false => [shift([source, destination]), shift([destination, source])],
        };
        Some(Keyed {
            summary,
            key: summary.key(shifts, seed),
            syn_key: summary.syn_key(shifts, seed),
        })
    }

    /// Remembers the segment size of a connection, the smallest that is offered.
    fn offer(&mut self, summary: &Summary) {
        if let Some((_, syn)) = summary.syn() {
            self.limit(summary.ends, syn.mss.unwrap_or(usual_mss(summary)));
        }
    }

    /// Takes segments of a connection to be no larger.
    pub(super) fn limit(&mut self, [source, destination]: [End; 2], mss: u16) {
        if self.sizes.len() >= MOST_CONNECTIONS {
            self.sizes.clear();
        }
        let (key, _) = FlowKey::new(source, destination, TCP);
        let size = self.sizes.entry(key).or_insert(mss);
        *size = (*size).min(mss).max(SMALLEST_MSS);
    }

    /// From here on, so much is taken off the sequence numbers of a direction.
    pub(super) fn shift(&mut self, ends: [End; 2], by: u32) {
        if self.shifts.len() >= MOST_CONNECTIONS {
            self.shifts.clear();
        }
        self.shifts.insert(ends, by);
    }

    /// The first segment of the wire, where it is more than one; the others are left for later.
    fn first_of(&mut self, mut whole: Summary) -> Summary {
        let Body::Tcp(mut numbers) = whole.body else {
            return whole;
        };
        let may_be_joined = u32::from(SMALLEST_MSS) + 1..=LARGEST_JOINED;
        if !may_be_joined.contains(&numbers.payload_bytes) {
            return whole;
        }
        let [source, destination] = whole.ends;
        let (key, _) = FlowKey::new(source, destination, TCP);
        let known = self.sizes.get(&key).copied();
        let mss = known.unwrap_or_else(|| usual_mss(&whole));
        // Options take their room from the payload (RFC 6691).
        let size = u32::from(mss).saturating_sub(numbers.option_bytes).max(1);
        if numbers.payload_bytes <= size {
            return whole;
        }
        // The card counts the joined ones by what is left: the last piece is not split again.
        self.joined += u64::from(whole.checksum.is_some());
        whole.checksum = None;
        let (mut first, mut rest) = (whole, whole);
        let after = Body::Tcp(super::fingerprint::Numbers {
            seq: numbers.seq.wrapping_add(size),
            payload_bytes: numbers.payload_bytes - size,
            ..numbers
        });
        numbers.payload_bytes = size;
        numbers.flags &= !FIN;
        first.body = Body::Tcp(numbers);
        rest.body = after;
        if rest.ident != 0 {
            rest.ident = rest.ident.wrapping_add(1);
        }
        self.rest = Some(rest);
        first
    }
}

fn usual_mss(summary: &Summary) -> u16 {
    let [(source, _), _] = summary.ends;
    match source.ip().is_ipv4() {
        true => USUAL_MSS,
        false => USUAL_MSS_V6,
    }
}
