//! The network of many targets that are sent packets: a socket for each version of IP that is asked.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use plumb_net::datagram::{IcmpAccess, Reporter, Unreachable};
use plumb_net::egress::Outlet;
use plumb_net::unconnected::{Told, UnconnectedSocket};
use plumb_net::wait;
use plumb_wire::icmp::Version;

use super::codec::{Reading, Speech};
use super::network::{ManyEvent, ManyNetwork, Sending};
use super::plan::{ManyPlan, STAMPED_PPS};
use crate::ping::plan::{Plan, ProbeError};
use crate::ping::sample::{Answer, Moment};
use crate::ping::socket::{local, not_sent, random_u32};

/// One version of IP.
struct Family {
    socket: UnconnectedSocket,
    version: Version,
    identifier: u16,
    /// Numbers of the probes whose departure may still be stamped, by the number of the packet: as many as were sent
    /// last.
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
        // Where packets in between were given up, their numbers belong to no probe.
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

pub(super) struct Packets {
    families: Vec<Family>,
    targets: Vec<SocketAddr>,
    speech: Speech,
    stamped: bool,
    outlet: Outlet,
    outgoing: Vec<(SocketAddr, Vec<u8>)>,
}

impl Packets {
    pub(super) fn open(plan: &ManyPlan, common: &Plan) -> Result<Self, ProbeError> {
        let session = random_u32(&common.name)?;
        let speech = Speech::of(plan, session)?;
        let stamped = plan.pps <= STAMPED_PPS;
        let mut families = Vec::new();
        for v4 in [true, false] {
            if plan.targets.iter().any(|to| to.is_ipv4() == v4) {
                families.push(Family::open(v4, plan, common, &speech, session)?);
            }
        }
        Ok(Self {
            families,
            targets: plan.targets.clone(),
            speech,
            stamped,
            outlet: plan.outlet.clone(),
            outgoing: Vec::new(),
        })
    }
}

impl Family {
    fn open(
        v4: bool,
        plan: &ManyPlan,
        common: &Plan,
        speech: &Speech,
        session: u32,
    ) -> Result<Self, ProbeError> {
        let stamped = plan.pps <= STAMPED_PPS;
        let (socket, identifier) = if speech.is_icmp() {
            let (socket, access) = UnconnectedSocket::open(v4, &plan.outlet, stamped)
                .map_err(|source| ProbeError::icmp(common, source))?;
            let identifier = match access {
                IcmpAccess::Raw => (session >> 16) as u16,
                IcmpAccess::Ping { identifier } => identifier,
            };
            (socket, identifier)
        } else {
            let socket = UnconnectedSocket::udp(v4, &plan.outlet, stamped)
                .map_err(local(common, "opening a UDP socket"))?;
            (socket, 0)
        };
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
        if let Some(mode) = plan.path_mtu {
            socket.set_path_mtu_discovery(mode).map_err(local(
                common,
                "saying whether its packets may be fragmented",
            ))?;
        }
        Ok(Self {
            socket,
            version: if v4 { Version::V4 } else { Version::V6 },
            identifier,
            sent: Numbers::default(),
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

impl ManyNetwork for Packets {
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
        self.outgoing.clear();
        let family = self
            .families
            .iter_mut()
            .find(|family| Some(family.version) == first);
        let Some(family) = family else {
            let now = Moment::now();
            return Sending {
                sent: 0,
                before: now,
                after: now,
                error: Some(io::ErrorKind::InvalidInput.into()),
            };
        };
        for (number, target) in alike {
            let Some(to) = self.targets.get(*target as usize) else {
                break;
            };
            let packet = self
                .speech
                .write(family.version, family.identifier, *number);
            self.outgoing.push((*to, packet));
        }
        let before = Moment::now();
        let outcome = family.socket.send(&self.outgoing);
        let after = Moment::now();
        let (sent, error) = match outcome {
            Ok(sent) => (sent, None),
            Err(error) => {
                let first = self.outgoing.first().map(|(to, _)| to.ip());
                let error = match first {
                    Some(to) => not_sent(error, to, &self.outlet),
                    None => error,
                };
                (0, Some(error))
            }
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
        let speech = &self.speech;
        for family in &mut self.families {
            let Family {
                socket,
                version,
                identifier,
                sent,
            } = family;
            // The stamp of a departure is queued before the answer can come, so look for them first.
            while socket.told(|told| events.extend(take(told, speech, *identifier, sent)))? > 0 {}
            let mut at = None;
            socket.receive(|heard| {
                let at = *at.get_or_insert_with(Moment::now);
                let Some(reading) = speech.read(*version, *identifier, heard.message) else {
                    return;
                };
                let Reading {
                    number,
                    said,
                    far_end,
                    size_bytes,
                } = reading;
                events.push(ManyEvent::Answered {
                    number,
                    from: heard.from.ip(),
                    size_bytes,
                    answer: Answer {
                        kernel_ns: heard.kernel_ns,
                        said,
                        far_end,
                        hop_limit: heard.hop_limit,
                        drops: heard.drops,
                        ..Answer::at(at, number.value())
                    },
                });
            })?;
        }
        Ok(())
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let sockets: Vec<_> = self.families.iter().map(|f| f.socket.as_fd()).collect();
        wait::until(&sockets, until_ns)
    }
}

/// What the kernel reported of one of our packets.
fn take(told: Told<'_>, speech: &Speech, identifier: u16, sent: &Numbers) -> Option<ManyEvent> {
    let (to, kernel_ns, quoted, failure) = match told {
        Told::Departed { id, ns } => {
            let number = sent.get(id)?;
            return Some(ManyEvent::Departed { number, ns });
        }
        Told::Failed {
            to,
            kernel_ns,
            quoted,
            failure,
        } => (to, kernel_ns, quoted, failure),
    };
    let number = speech.quoted(identifier, quoted)?;
    let by_the_target = failure.why == Unreachable::Port && failure.by == Reporter::Host(to);
    Some(match speech.refusal().filter(|_| by_the_target) {
        Some(said) => ManyEvent::Answered {
            number,
            from: to,
            size_bytes: 0,
            answer: Answer {
                kernel_ns,
                said: Some(said),
                ..Answer::at(Moment::now(), number.value())
            },
        },
        None => ManyEvent::Failed {
            to,
            number,
            failure,
        },
    })
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
