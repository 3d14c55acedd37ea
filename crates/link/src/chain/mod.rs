//! A chain of named cells: one direction of a link.

mod build;
mod error;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

#[cfg(test)]
pub(crate) use self::build::build;
pub use self::build::build_link;
pub use self::error::ChainError;
use self::error::check_complete;
use crate::flows::FlowTable;
use crate::grid::SumGrid;
use crate::outcome::{End, Outcome, Outcomes};
use crate::packet::Packet;
use crate::record::Recorder;
use crate::segment::Crossing;
use crate::spec::{AnyCell, Built, CellSpec, NamedCell};
use crate::stats::{CellStats, ChainStats, Count};
use crate::tally::{Loss, Tally};
use crate::time::Time;

/// Interval of the series of delivered payload, in nanoseconds.
const PAYLOAD_GRID_NS: u64 = 100_000_000;

/// Cells in the order in which packets pass them; without cells packets pass at once.
pub struct Chain {
    cells: Vec<Named>,
    seed: u64,
    /// What left the end and was not yet asked for.
    out: VecDeque<(Time, Packet)>,
    tally: Tally,
    flows: FlowTable,
    payload: SumGrid,
    recorder: Recorder,
    /// Packets that came so far.
    came: u64,
    outcomes: Outcomes,
}

struct Named {
    name: String,
    spec: CellSpec,
    cell: Box<dyn AnyCell>,
    /// Whether it is one of two ends, of which the other direction has the other.
    is_end: bool,
}

impl Named {
    fn own(spec: &NamedCell, cell: Box<dyn AnyCell>) -> Self {
        Self {
            name: spec.name.clone(),
            spec: spec.cell.clone(),
            cell,
            is_end: false,
        }
    }

    fn end(spec: &NamedCell, cell: Box<dyn AnyCell>) -> Self {
        Self {
            is_end: true,
            ..Self::own(spec, cell)
        }
    }
}

impl Chain {
    /// A chain without cells.
    pub fn new(seed: u64) -> Self {
        Self {
            cells: Vec::new(),
            seed,
            out: VecDeque::new(),
            tally: Tally::new(),
            flows: FlowTable::new(),
            payload: SumGrid::new(PAYLOAD_GRID_NS),
            recorder: Recorder::default(),
            came: 0,
            outcomes: Outcomes::default(),
        }
    }

    /// Takes a packet that comes in at `now`; times never go back.
    pub fn enqueue(&mut self, now: Time, mut packet: Packet) {
        packet.arrived = now;
        packet.number = self.came;
        self.came += 1;
        packet.record = packet.probe.map(|key| self.recorder.enter(key, now));
        packet.flow = self.flows.enter(&packet);
        self.tally.offer(&packet);
        match self.cells.first_mut() {
            Some(first) => first.cell.enqueue(now, packet),
            None => self.leave(now, packet),
        }
    }

    /// The next departure at or before `now`, with the time when it happened.
    pub fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.out.is_empty() {
            self.pump(now);
        }
        self.out.pop_front_if(|(at, _)| *at <= now)
    }

    /// Notes when a packet that was dequeued really went on, for the record of probes.
    pub fn departed(&mut self, packet: &Packet, at: Time) {
        if let Some(number) = packet.record {
            self.recorder.leave(number, at);
        }
    }

    /// When to call [`Self::dequeue`] next: nothing leaves before. What happens inside by then can
    /// wait, because every cell keeps exact times; not every event is a departure.
    pub fn next_event(&self) -> Option<Time> {
        let mut next = self.out.front().map(|(at, _)| *at);
        let mut beyond = Duration::ZERO;
        for named in self.cells.iter().rev() {
            if named.cell.replies() {
                beyond = Duration::ZERO;
            }
            let event = named.cell.next_event().map(|at| at + beyond);
            next = next.into_iter().chain(event).min();
            beyond = named.cell.keeps_for(beyond);
        }
        next
    }

    /// What the chain and its cells did up to `now`.
    pub fn stats(&mut self, now: Time) -> ChainStats {
        self.pump(now);
        self.payload.reach(now);
        let cells: BTreeMap<String, CellStats> = self
            .cells
            .iter_mut()
            .map(|named| (named.name.clone(), named.cell.stats(now, named.spec.kind())))
            .collect();
        let mut stats = ChainStats {
            crossing: self.crossing(),
            piece_error_s: self.piece_error().as_secs_f64(),
            offered: self.tally.offered,
            delivered: self.tally.delivered,
            delivered_tcp_payload_bytes: self.tally.tcp_payload_bytes,
            dropped: BTreeMap::new(),
            dropped_bytes: 0,
            marked: 0,
            duplicated: Count::default(),
            backlog: Count::default(),
            transit_s: self.tally.sojourn.distribution(),
            payload: self.payload.series(),
            cells,
            flows: self.flows.stats(),
            hosts: self.flows.hosts(),
        };
        for cell in stats.cells.values() {
            for (cause, packets) in &cell.dropped {
                *stats.dropped.entry(cause.clone()).or_default() += packets;
            }
            stats.dropped_bytes += cell.dropped_bytes;
            stats.marked += cell.marked;
            stats.duplicated += cell.duplicated;
            stats.backlog.packets += cell.backlog.packets;
            stats.backlog.bytes += cell.backlog.bytes;
        }
        stats
    }

    /// Begins or ends keeping what becomes of every packet, for [`Self::take_outcomes`].
    pub fn keep_outcomes(&mut self, wanted: bool) {
        self.outcomes.want(wanted);
    }

    /// The outcomes of packets since the last call, and the number of further ones that were not kept because the call
    /// came too late.
    pub fn take_outcomes(&mut self) -> (Vec<Outcome>, u64) {
        self.outcomes.take()
    }

    /// The passages of the latest probes up to the last [`Self::dequeue`] or [`Self::stats`].
    pub fn probes(&self) -> &Recorder {
        &self.recorder
    }

    /// How large segments pass: split when any cell splits them.
    pub fn crossing(&self) -> Crossing {
        let split = self
            .cells
            .iter()
            .any(|named| named.cell.crossing() == Crossing::Split);
        if split {
            Crossing::Split
        } else {
            Crossing::Whole
        }
    }

    /// The largest extra delay of a packet because of large segments.
    pub fn piece_error(&mut self) -> Duration {
        let cells = self.cells.iter_mut();
        cells.map(|named| named.cell.tally().longest_piece).sum()
    }

    /// The names of the cells in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(|named| named.name.as_str())
    }

    /// Whether both directions share the cell of this name: then [`Self::set`] is for both
    /// chains.
    pub fn is_shared(&self, name: &str) -> bool {
        let mut cells = self.cells.iter();
        let named = cells.find(|named| named.name == name);
        named.is_some_and(|named| named.is_end)
    }

    /// Changes settings of a cell, all or none.
    ///
    /// # Errors
    /// When there is no such cell, or it cannot have them.
    pub fn set(&mut self, now: Time, cell: &str, pairs: &[(&str, &str)]) -> Result<(), ChainError> {
        let position = self.position(cell)?;
        self.pump(now);
        if let Some(named) = self.cells.get_mut(position) {
            let spec = named.spec.with(pairs)?;
            check_complete(cell, &spec)?;
            named.cell.set(now, &spec);
            named.spec = spec;
        }
        self.collect_losses();
        Ok(())
    }

    /// Puts a cell before the one at `position`, or at the end.
    ///
    /// # Errors
    /// When another cell has its name, or it is one that both directions share.
    pub fn insert(
        &mut self,
        now: Time,
        position: Option<usize>,
        spec: &NamedCell,
    ) -> Result<(), ChainError> {
        match spec.cell.build(seed_of(self.seed, &spec.name), now) {
            Built::Own(cell) => self.put(now, position, Named::own(spec, cell)),
            Built::Shared(_) => Err(ChainError::unpaired(spec)),
        }
    }

    fn put(&mut self, now: Time, position: Option<usize>, named: Named) -> Result<(), ChainError> {
        if self.position(&named.name).is_ok() {
            return Err(ChainError::Taken { name: named.name });
        }
        check_complete(&named.name, &named.spec)?;
        self.pump(now);
        let position = position.unwrap_or(usize::MAX).min(self.cells.len());
        self.cells.insert(position, named);
        Ok(())
    }

    fn position(&self, name: &str) -> Result<usize, ChainError> {
        self.cells
            .iter()
            .position(|named| named.name == name)
            .ok_or_else(|| ChainError::NoCell {
                name: name.to_owned(),
                cells: self.names().map(str::to_owned).collect(),
            })
    }

    /// Moves packets on from cell to cell and out of the last, as far as they get by `now`.
    fn pump(&mut self, now: Time) {
        let mut sent_back = false;
        for position in 0..self.cells.len() {
            while let Some((at, packet)) = self
                .cells
                .get_mut(position)
                .and_then(|named| named.cell.dequeue(now))
            {
                if packet.back {
                    self.out.push_back((at, packet));
                    sent_back = true;
                    continue;
                }
                match self.cells.get_mut(position + 1) {
                    Some(next) => next.cell.enqueue(at, packet),
                    None => self.leave(at, packet),
                }
            }
        }
        if sent_back {
            // They came out before what reached the end of the chain earlier.
            self.out.make_contiguous().sort_by_key(|(at, _)| *at);
        }
        self.collect_losses();
    }

    fn collect_losses(&mut self) {
        for named in &mut self.cells {
            for loss in named.cell.tally().losses.drain(..) {
                count_loss(&mut self.flows, &mut self.outcomes, &named.name, loss);
            }
        }
    }

    fn leave(&mut self, at: Time, packet: Packet) {
        self.tally.deliver(&packet, packet.arrived, at);
        self.flows.leave(&packet, at.nanos_since(packet.arrived));
        self.payload.add(at, packet.tcp_payload_bytes());
        self.outcomes.keep(|| Outcome {
            number: packet.number,
            arrived: packet.arrived,
            flow: self.flows.key(packet.flow),
            what: Count::of(&packet),
            end: End::Left {
                at,
                marked: packet.marked,
            },
        });
        if let Some(number) = packet.record {
            self.recorder.leave(number, at);
        }
        self.out.push_back((at, packet));
    }
}

/// The seed of a cell, which its neighbours do not change (FNV-1a over its name).
fn seed_of(seed: u64, name: &str) -> u64 {
    name.bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

fn count_loss(flows: &mut FlowTable, outcomes: &mut Outcomes, cell: &str, loss: Loss) {
    flows.lose(loss.flow, loss.cause, loss.what.packets);
    outcomes.keep(|| Outcome {
        number: loss.number,
        arrived: loss.arrived,
        flow: flows.key(loss.flow),
        what: loss.what,
        end: End::Dropped {
            cell: cell.to_owned(),
            cause: loss.cause,
        },
    });
}
