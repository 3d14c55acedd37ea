//! What becomes of the marks of packets between this host and a STAMP reflector: the reflector reports the DSCP and the
//! ECN field of what it received (RFC 8972, section 4.4), and this host reads both fields of the replies.
//!
//! Routers quote marks only as far as they answer, and only of packets on the forward path. No part of STAMP asks for,
//! or reports, the ECN field of a reply: what becomes of ECN on the reverse path stays unknown.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::path::{ArrivedMarks, EcnField, MarksBetweenEnds};
use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Notice};
use plumb_wire::stamp::tlv::Flags;
use plumb_wire::stamp::{ErrorEstimate, PORT, Reply, Request, Tlv};

use super::target::Target;

/// AF41, which video calls use (RFC 8837, section 5). It differs from zero in the bits that routers keep that clear the
/// old IP precedence, and in those that they clear, so that both kinds of change show. The probes of hops bear EF, which
/// more networks admit, or police, by itself.
const DSCP: u8 = 34;

/// The ECN fields of a transport that uses ECN: a router may clear one of them and not the other.
const ECN_FIELDS: [EcnField; 2] = [EcnField::Ect0, EcnField::Ect1];

/// Packets of each ECN field: more than half of so many are not changed by chance.
const PACKETS: usize = 8;

/// Most packets of each ECN field that are sent again, for those lost.
const SENT_AGAIN: usize = 4;

/// Between two packets, so that all of them take 160 ms, and no burst fills a queue: 80 bytes each, with headers, are
/// 64 kbit/s.
const GAP: Duration = Duration::from_millis(10);

/// Beyond the longest round trip that was seen, a reply may be late by this and by half of that.
const MACHINES: Duration = Duration::from_millis(100);
const ROUND_TRIPS: f64 = 1.5;

/// How often the request to stop is looked at.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// More than a reply has; a longer packet comes from another sender.
const BUFFER_BYTES: usize = 512;

/// A packet's marks as the far end received them, and the marks of its reply as received here.
#[derive(Debug, Clone, Copy)]
struct Heard {
    up: (u8, EcnField),
    down: Option<(u8, EcnField)>,
}

/// What was sent and heard: without a socket and a clock.
#[derive(Debug)]
struct Tally {
    session: u16,
    /// By the packets' numbers.
    packets: Vec<(EcnField, Option<Heard>)>,
}

impl Tally {
    fn new(session: u16) -> Self {
        Self {
            session,
            packets: Vec::new(),
        }
    }

    /// The next packet, which is to bear this ECN field.
    fn packet(&mut self, ecn: EcnField, now_ns: u64) -> Vec<u8> {
        let request = Request {
            sequence: u32::try_from(self.packets.len()).unwrap_or(u32::MAX),
            sent_ns: i64::try_from(now_ns).unwrap_or(i64::MAX),
            // No clocks are compared by these packets.
            error: ErrorEstimate::new(false, Duration::ZERO),
            session: self.session,
        };
        self.packets.push((ecn, None));
        let asks = Tlv::ClassOfService {
            wanted_dscp: DSCP,
            received_dscp: 0,
            received_ecn: 0,
            refused: false,
        };
        request.write(None, &[asks], 0)
    }

    /// A datagram that came from the far end with these marks. One that is no reply, or of a reflector that does not know
    /// of classes of service, is passed over.
    fn hear(&mut self, bytes: &[u8], marks: Option<(u8, u8)>) {
        let Some(reply) = Reply::parse(bytes, None).filter(|reply| reply.session == self.session)
        else {
            return;
        };
        let number = usize::try_from(reply.request.sequence).ok();
        let packet = number.and_then(|number| self.packets.get_mut(number));
        let Some((_, heard @ None)) = packet else {
            return;
        };
        let parts = reply.tlvs(bytes, None).into_iter();
        let answered = parts.filter(|part| part.flags == Flags::default());
        *heard = answered
            .filter_map(|part| part.tlv)
            .find_map(|part| match part {
                Tlv::ClassOfService {
                    wanted_dscp: DSCP,
                    received_dscp,
                    received_ecn,
                    refused,
                } => Some(Heard {
                    up: (received_dscp, EcnField::of_bits(received_ecn)),
                    down: marks
                        .filter(|_| !refused)
                        .map(|(dscp, ecn)| (dscp, EcnField::of_bits(ecn))),
                }),
                _ => None,
            });
    }

    /// Packets that were heard of, with their ECN fields.
    fn heard(&self) -> impl Iterator<Item = (EcnField, Heard)> {
        self.packets
            .iter()
            .filter_map(|(ecn, heard)| Some((*ecn, (*heard)?)))
    }

    /// How many packets of an ECN field are still to be heard of.
    fn missing(&self, ecn: EcnField) -> usize {
        let heard = self.heard().filter(|(sent, _)| *sent == ecn).count();
        PACKETS.saturating_sub(heard)
    }

    fn is_complete(&self) -> bool {
        ECN_FIELDS.iter().all(|ecn| self.missing(*ecn) == 0)
    }

    /// What came of them; `None` where nothing was heard.
    fn result(&self) -> Option<MarksBetweenEnds> {
        let up = self
            .heard()
            .map(|(ecn, heard)| (Some(ecn), heard.up.0, heard.up.1));
        let down = self.heard().filter_map(|(_, heard)| heard.down);
        let up = counted(up);
        (!up.is_empty()).then(|| MarksBetweenEnds {
            dscp: DSCP,
            sent: self.packets.len() as u64,
            up,
            down: counted(down.map(|(dscp, ecn)| (None, dscp, ecn))),
        })
    }
}

fn counted(packets: impl Iterator<Item = (Option<EcnField>, u8, EcnField)>) -> Vec<ArrivedMarks> {
    let mut counts = BTreeMap::new();
    for marks in packets {
        *counts.entry(marks).or_default() += 1;
    }
    let arrived = |((sent_ecn, dscp, ecn), packets)| ArrivedMarks {
        sent_ecn,
        dscp,
        ecn,
        packets,
    };
    counts.into_iter().map(arrived).collect()
}

/// Sends marked packets to the STAMP reflector at a target whose round trip takes `round_trip` at most, until each was
/// heard of, or is late; packets that were lost are sent again once. `None` where no reflector reports marks.
///
/// # Errors
/// Errors of the kernel.
pub fn between_ends(
    target: &Target,
    round_trip: Duration,
    stop: &AtomicBool,
) -> io::Result<Option<MarksBetweenEnds>> {
    let address = SocketAddr::new(target.address.ip(), PORT);
    let mut socket = DatagramSocket::udp_through(address, &target.outlet)?;
    socket.report_marks()?;
    let session = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    // Zero means no session (RFC 8972, section 3).
    let mut tally = Tally::new(((session >> 16) as u16).max(1));
    let patience = round_trip.mul_f64(ROUND_TRIPS) + MACHINES;
    for most in [PACKETS, SENT_AGAIN] {
        let wanted = ECN_FIELDS.map(|ecn| (ecn, tally.missing(ecn).min(most)));
        for number in 0..most {
            for (ecn, _) in wanted.into_iter().filter(|(_, count)| number < *count) {
                socket.set_marks(DSCP, ecn.bits())?;
                let packet = tally.packet(ecn, realtime_ns());
                socket.send(&packet)?;
                if !listen(&mut socket, &mut tally, GAP, stop)? {
                    return Ok(tally.result());
                }
            }
        }
        let goes_on = listen(&mut socket, &mut tally, patience, stop)?;
        if !goes_on || tally.is_complete() || tally.heard().next().is_none() {
            break;
        }
    }
    Ok(tally.result())
}

/// Listens for so long, or until every packet was heard of; `false` where there is nothing more to wait for.
fn listen(
    socket: &mut DatagramSocket,
    tally: &mut Tally,
    time: Duration,
    stop: &AtomicBool,
) -> io::Result<bool> {
    let until_ns = monotonic_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    let mut buffer = [0; BUFFER_BYTES];
    // The time is looked at after each datagram: a far end that floods does not hold it up.
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // The port is closed, or a filter is before it.
        if let Some(Notice::Failed(_)) = socket.take_notice()? {
            return Ok(false);
        }
        let received = socket.recv(&mut buffer)?;
        if let Some(received) = &received {
            let bytes = buffer.get(..received.len).unwrap_or_default();
            tally.hear(bytes, received.dscp.zip(received.ecn));
        }
        let now_ns = monotonic_ns();
        if now_ns >= until_ns || tally.is_complete() {
            return Ok(true);
        }
        if received.is_none() {
            socket.wait_until(until_ns.min(now_ns + LOOK_EVERY_NS))?;
        }
    }
}

#[cfg(test)]
mod tests;
