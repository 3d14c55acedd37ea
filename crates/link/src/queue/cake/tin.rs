//! A tin: flows in queues of their own, each under COBALT, served by deficit round robin with
//! sparse flows first (sch_cake.c).

use std::collections::VecDeque;
use std::time::Duration;

use rand::RngExt;

use super::cobalt::{Cobalt, MTU, Parameters};
use super::hosts::{Hosts, Places, QUEUES, ways};
use super::isolation::{Hashes, Isolation};
use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::queue::list::PacketList;
use crate::random::Random;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// The smallest quantum of a flow, in bytes.
const LEAST_QUANTUM: u64 = 300;

/// The settings of a tin.
#[derive(Debug, Clone, Copy)]
pub(super) struct TinSettings {
    isolation: Isolation,
    /// Bytes a second below which the tin has priority, at least one.
    rate: u64,
    /// Bytes that a flow sends in a round.
    quantum: u64,
    parameters: Parameters,
}

impl TinSettings {
    /// For `rate` bytes a second, with COBALT for flows of this round trip.
    pub(super) fn new(isolation: Isolation, rate: u64, rtt: Duration) -> Self {
        let rate = rate.max(1);
        Self {
            isolation,
            rate,
            quantum: (rate >> 12).clamp(LEAST_QUANTUM, MTU),
            parameters: Parameters::new(rate, rtt),
        }
    }
}

/// A tin. Deficits, the quantum and the schedule count bytes on the line.
pub(super) struct Tin {
    flows: Vec<Flow>,
    hosts: Hosts,
    /// Indices into `flows`: sparse flows; flows that had a turn; and empty ones whose COBALT
    /// has not come to rest.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    decaying_flows: VecDeque<usize>,
    backlog: Backlog,
    settings: TinSettings,
    /// When the tin may send again without exceeding its rate.
    next_packet: Time,
}

#[derive(Default)]
struct Flow {
    list: PacketList,
    cobalt: Cobalt,
    /// Bytes that the flow may still send in this round.
    deficit: i64,
    state: State,
    /// The hash of the flow that the queue is reserved for.
    hash: u32,
    hosts: Places,
}

/// The state of a flow; the names are from sch_cake.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    None,
    Sparse,
    /// Sparse, but waits in the rotation of the bulk flows until its deficit is paid.
    SparseWait,
    Bulk,
    Decaying,
}

/// What all tins use while one packet is looked for.
pub(super) struct Service<'a> {
    pub(super) now: Time,
    pub(super) random: &'a mut Random,
    pub(super) tally: &'a mut Tally,
    /// One decaying flow is looked after before the others are served.
    pub(super) look_after_decaying: bool,
}

impl Tin {
    pub(super) fn new(settings: TinSettings) -> Self {
        Self {
            flows: (0..QUEUES).map(|_| Flow::default()).collect(),
            hosts: Hosts::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            decaying_flows: VecDeque::new(),
            backlog: Backlog::default(),
            settings,
            next_packet: Time::ZERO,
        }
    }

    pub(super) fn configure(&mut self, settings: TinSettings) {
        self.settings = settings;
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whether a flow waits for a turn, be it to find out that it is empty.
    pub(super) fn is_active(&self) -> bool {
        !self.new_flows.is_empty() || !self.old_flows.is_empty()
    }

    /// When the tin may send again without exceeding its rate.
    pub(super) fn next_packet(&self) -> Time {
        self.next_packet
    }

    /// Takes a packet; `superseded` looks in the packet's queue for one that it makes
    /// superfluous, and that one is returned.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        hashes: Hashes,
        superseded: impl Fn(&PacketList) -> Option<usize>,
        random: &mut Random,
    ) -> Option<Packet> {
        if self.backlog.packets == 0 {
            self.next_packet = self.next_packet.max(now);
        }
        let index = self.place(hashes);
        let flow = self.flows.get_mut(index)?;
        self.backlog += packet.backlog();
        flow.list.push(packet);
        let removed = superseded(&flow.list).and_then(|at| flow.list.remove(at));
        if let Some(removed) = &removed {
            self.backlog -= removed.backlog();
        }
        match flow.state {
            State::None | State::Decaying => {
                if flow.state == State::Decaying {
                    self.decaying_flows.retain(|other| *other != index);
                }
                self.new_flows.push_back(index);
                flow.state = State::Sparse;
                let load = self.hosts.load(flow.hosts, self.settings.isolation);
                flow.deficit = share(self.settings.quantum, load, random);
            }
            State::SparseWait => {
                flow.state = State::Bulk;
                self.hosts.add_bulk_flow(flow.hosts);
            }
            State::Sparse | State::Bulk => {}
        }
        removed
    }

    /// The number of the queue for a flow: the one that is reserved for it, or an idle one, or,
    /// when all its ways are taken, one that it has to share.
    fn place(&mut self, hashes: Hashes) -> usize {
        let find = |wanted: fn(&Flow, u32) -> bool| {
            ways(hashes.flow).find(|place| {
                let flow = self.flows.get(*place);
                flow.is_some_and(|flow| wanted(flow, hashes.flow))
            })
        };
        let own = find(|flow, hash| flow.hash == hash);
        let place = own
            .or_else(|| find(|flow, _| flow.state == State::None))
            .unwrap_or(hashes.flow as usize % QUEUES);
        if let Some(flow) = self.flows.get_mut(place)
            && (own.is_none() || flow.state == State::None)
        {
            // A bulk flow's queue that is taken over counts for its new hosts.
            let bulk = flow.state == State::Bulk;
            if bulk {
                self.hosts.remove_bulk_flow(flow.hosts);
            }
            flow.hash = hashes.flow;
            flow.hosts = self.hosts.place(hashes);
            if bulk {
                self.hosts.add_bulk_flow(flow.hosts);
            }
        }
        place
    }

    /// The packet to send next; `None` when a flow was found empty, and is no longer active.
    pub(super) fn dequeue(&mut self, service: &mut Service<'_>) -> Option<Packet> {
        let index = loop {
            let decaying_first = std::mem::take(&mut service.look_after_decaying);
            let list = if decaying_first && !self.decaying_flows.is_empty() {
                &mut self.decaying_flows
            } else if !self.new_flows.is_empty() {
                &mut self.new_flows
            } else if !self.old_flows.is_empty() {
                &mut self.old_flows
            } else {
                &mut self.decaying_flows
            };
            let index = *list.front()?;
            let flow = self.flows.get_mut(index)?;
            if flow.deficit > 0 {
                break index;
            }
            if flow.state == State::Sparse {
                // The deficit is paid among the bulk flows.
                if flow.list.backlog().packets > 0 {
                    flow.state = State::Bulk;
                    self.hosts.add_bulk_flow(flow.hosts);
                } else {
                    flow.state = State::SparseWait;
                }
            }
            let load = self.hosts.load(flow.hosts, self.settings.isolation);
            flow.deficit += share(self.settings.quantum, load, service.random);
            list.pop_front();
            self.old_flows.push_back(index);
        };
        let packet = self.dequeue_from(index, service);
        if packet.is_none() {
            self.retire(index, service.now);
        }
        packet
    }

    /// The first packet of a queue that COBALT does not drop.
    fn dequeue_from(&mut self, index: usize, service: &mut Service<'_>) -> Option<Packet> {
        let flow = self.flows.get_mut(index)?;
        loop {
            let mut packet = flow.list.pop()?;
            self.backlog -= packet.backlog();
            let verdict = flow.cobalt.judge(
                service.now,
                &self.settings.parameters,
                &mut packet,
                service.random,
            );
            // The last packet of a queue may be marked and is never dropped.
            let last = flow.list.backlog().packets == 0;
            if let Some(cause) = verdict.drop.filter(|_| !last) {
                service.tally.drop(cause, &packet);
                continue;
            }
            service.tally.marked += u64::from(verdict.marked);
            flow.deficit -= packet.wire.total as i64;
            self.charge(service.now, packet.wire.total);
            return Some(packet);
        }
    }

    /// Moves the tin's schedule on by what it sends.
    fn charge(&mut self, now: Time, bytes: u64) {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.settings.rate);
        let duration = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        self.next_packet = if self.next_packet < now {
            self.next_packet + duration
        } else {
            self.next_packet.max(now + duration)
        };
    }

    /// Takes an empty flow at the head of its list out of service.
    fn retire(&mut self, index: usize, now: Time) {
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.cobalt.queue_empty(now, &self.settings.parameters);
        let list = match flow.state {
            State::Sparse => &mut self.new_flows,
            State::Decaying => &mut self.decaying_flows,
            State::Bulk | State::SparseWait | State::None => &mut self.old_flows,
        };
        list.pop_front();
        if flow.state == State::Bulk {
            self.hosts.remove_bulk_flow(flow.hosts);
        }
        flow.state = if flow.cobalt.is_decaying(now) {
            self.decaying_flows.push_back(index);
            State::Decaying
        } else {
            State::None
        };
    }

    /// The number and IP bytes of the fattest flow.
    pub(super) fn fattest(&self) -> Option<(usize, u64)> {
        let active = self.new_flows.iter().chain(&self.old_flows);
        active
            .filter_map(|index| Some((*index, self.flows.get(*index)?.list.backlog().ip_bytes)))
            .max_by_key(|(_, ip_bytes)| *ip_bytes)
    }

    /// Drops the packet at the head of a flow because the buffer is full.
    pub(super) fn drop_from(&mut self, now: Time, index: usize, tally: &mut Tally) {
        let flow = self.flows.get_mut(index);
        if let Some(flow) = flow
            && let Some(packet) = flow.list.pop()
        {
            self.backlog -= packet.backlog();
            flow.cobalt.queue_full(now, &self.settings.parameters);
            tally.drop(DropCause::Overflow, &packet);
        }
    }

    /// Gives up what waits, flow by flow.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.backlog = Backlog::default();
        self.flows.iter_mut().flat_map(|flow| flow.list.drain())
    }
}

/// A flow's part of the quantum when `load` flows share it, in bytes; random rounding keeps the
/// shares exact over time.
fn share(quantum: u64, load: u16, random: &mut Random) -> i64 {
    let part = quantum * (65_535 / u64::from(load.max(1)));
    ((part + u64::from(random.generator().random::<u16>())) >> 16) as i64
}

#[cfg(test)]
mod tests;
