//! The network of many targets: ICMP and ICMPv6 echo, a socket for each version of IP that is asked.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use plumb_net::datagram::IcmpAccess;
use plumb_net::echoes::{EchoSocket, Told};
use plumb_net::wait;
use plumb_wire::icmp::{Echo, EchoHeader, HEADER_BYTES, Kind, Mark, Version};

use super::strategy::{ManyEvent, ManyNetwork, Sending};
use super::{ManyPlan, STAMPED_PPS};
use crate::plan::{Plan, ProbeError};
use crate::probing::{local, random_u32};
use crate::sample::Moment;

/// One version of IP.
struct Family {
    socket: EchoSocket,
    version: Version,
    identifier: u16,
    /// Numbers of the probes whose departure may still be told, by the number of the packet: as
    /// many as were sent last.
    sent: Numbers,
}

/// Numbers of probes by the numbers of packets, which rise together.
#[derive(Default)]
struct Numbers {
    first: u64,
    probes: VecDeque<u64>,
}

impl Numbers {
    /// Stamps come at once unless an address is still to be resolved; older ones are given up.
    const KEPT: usize = 4096;

    fn push(&mut self, id: u64, probe: u64) {
        // Where packets in between were given up, their numbers stand for nothing.
        if self.first + self.probes.len() as u64 != id {
            self.probes.clear();
            self.first = id;
        }
        if self.probes.len() >= Self::KEPT {
            self.probes.pop_front();
            self.first += 1;
        }
        self.probes.push_back(probe);
    }

    fn get(&self, id: u64) -> Option<u64> {
        let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.probes.get(index).copied()
    }
}

/// The sockets.
pub(super) struct Echoes {
    families: Vec<Family>,
    targets: Vec<SocketAddr>,
    session: u32,
    size_bytes: usize,
    stamped: bool,
    packets: Vec<(SocketAddr, Vec<u8>)>,
}

impl Echoes {
    pub(super) fn open(plan: &ManyPlan, common: &Plan) -> Result<Self, ProbeError> {
        let session = random_u32(&common.name)?;
        let stamped = plan.pps <= STAMPED_PPS;
        let mut families = Vec::new();
        for v4 in [true, false] {
            if !plan.targets.iter().any(|to| to.is_ipv4() == v4) {
                continue;
            }
            let (socket, access) = EchoSocket::open(v4, &plan.outlet, stamped)
                .map_err(|source| ProbeError::icmp(common, source))?;
            if let Some(dscp) = plan.dscp {
                socket
                    .set_dscp(dscp)
                    .map_err(local(common, "marking its packets with a DSCP"))?;
            }
            if let Some(hops) = plan.hop_limit {
                socket
                    .set_hop_limit(hops)
                    .map_err(local(common, "limiting how far its packets go"))?;
            }
            families.push(Family {
                socket,
                version: if v4 { Version::V4 } else { Version::V6 },
                identifier: match access {
                    IcmpAccess::Raw => (session >> 16) as u16,
                    IcmpAccess::Ping { identifier } => identifier,
                },
                sent: Numbers::default(),
            });
        }
        Ok(Self {
            families,
            targets: plan.targets.clone(),
            session,
            size_bytes: plan.size_bytes,
            stamped,
            packets: Vec::new(),
        })
    }
}

fn version_of(target: &SocketAddr) -> Version {
    if target.is_ipv4() {
        Version::V4
    } else {
        Version::V6
    }
}

impl ManyNetwork for Echoes {
    fn now(&mut self) -> Moment {
        Moment::now()
    }

    fn stamps_departures(&self) -> bool {
        self.stamped
    }

    fn send(&mut self, probes: &[(u64, u32)]) -> Sending {
        let version = |target: u32| self.targets.get(target as usize).map(version_of);
        // One system call sends to one version of IP: as many as are of the first one's.
        let first = probes.first().and_then(|(_, target)| version(*target));
        let alike = probes
            .iter()
            .take_while(|(_, target)| version(*target) == first);
        self.packets.clear();
        let before_packets = Moment::now();
        let family = self
            .families
            .iter_mut()
            .find(|family| Some(family.version) == first);
        let Some(family) = family else {
            return Sending {
                sent: 0,
                before: before_packets,
                after: before_packets,
                error: Some(io::ErrorKind::InvalidInput.into()),
            };
        };
        for (number, target) in alike {
            let Some(to) = self.targets.get(*target as usize) else {
                break;
            };
            let mark = Mark {
                session: self.session,
                sequence: *number as u32,
            };
            let request = Echo {
                kind: Kind::Request,
                identifier: family.identifier,
                sequence: *number as u16,
                payload: &mark.payload(self.size_bytes),
            };
            self.packets.push((*to, request.write(family.version)));
        }
        let before = Moment::now();
        let outcome = family.socket.send(&self.packets);
        let after = Moment::now();
        let (sent, error) = match outcome {
            Ok(sent) => (sent, None),
            Err(error) => (0, Some(error)),
        };
        let first_id = family.socket.next_id() - sent as u64;
        if self.stamped {
            for ((number, _), id) in probes.iter().take(sent).zip(first_id..) {
                family.sent.push(id, *number);
            }
        }
        Sending {
            sent,
            before,
            after,
            error,
        }
    }

    fn receive(&mut self, events: &mut Vec<ManyEvent>) -> io::Result<()> {
        let session = self.session;
        for family in &mut self.families {
            let Family {
                socket,
                version,
                identifier,
                sent,
            } = family;
            // The stamp of a departure is queued before the answer can come, so look for them first.
            while socket.told(|told| match told {
                Told::Departed { id, ns } => {
                    events.extend(
                        sent.get(id)
                            .map(|number| ManyEvent::Departed { number, ns }),
                    );
                }
                Told::Failed { to, quoted, why } => {
                    let Some(header) = quoted.first_chunk::<HEADER_BYTES>() else {
                        return;
                    };
                    let header = EchoHeader::parse(header);
                    if header.identifier == *identifier {
                        let sequence = header.sequence;
                        events.push(ManyEvent::Failed { to, sequence, why });
                    }
                }
            })? > 0
            {}
            let mut at = None;
            socket.receive(|heard| {
                let at = *at.get_or_insert_with(Moment::now);
                let Some(reply) = Echo::parse(*version, heard.message) else {
                    return;
                };
                let Some(mark) = Mark::parse(reply.payload) else {
                    return;
                };
                let ours = reply.kind == Kind::Reply
                    && reply.identifier == *identifier
                    && mark.session == session
                    && reply.sequence == mark.sequence as u16;
                if ours {
                    events.push(ManyEvent::Answered {
                        number: mark.sequence,
                        from: heard.from,
                        size_bytes: reply.payload.len(),
                        at,
                        kernel_ns: heard.kernel_ns,
                        hop_limit: heard.hop_limit,
                        drops: heard.drops,
                    });
                }
            })?;
        }
        Ok(())
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let sockets: Vec<_> = self.families.iter().map(|f| f.socket.as_fd()).collect();
        wait::until(&sockets, until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_packets_lead_to_those_of_probes() {
        let mut numbers = Numbers::default();
        for id in 0..10 {
            numbers.push(id, id * 2);
        }
        assert_eq!((numbers.get(3), numbers.get(10)), (Some(6), None));
        numbers.push(20, 7);
        assert_eq!((numbers.get(3), numbers.get(20)), (None, Some(7)));
        for id in 21..21 + Numbers::KEPT as u64 {
            numbers.push(id, id);
        }
        assert_eq!(numbers.get(20), None);
        assert_eq!(numbers.probes.len(), Numbers::KEPT);
    }
}
