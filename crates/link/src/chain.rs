//! A chain of named cells: one direction of a link.

use std::collections::{BTreeMap, VecDeque};

use plumb_wire::ip::IpPacket;
use plumb_wire::probe_key::ProbeKey;

use crate::cell::{Cell, Crossing, SetError};
use crate::delay::Delay;
use crate::grid::SumGrid;
use crate::packet::Packet;
use crate::record::Recorder;
use crate::shaper::Shaper;
use crate::spec::{CellSpec, ChainSpec};
use crate::stats::{CellStats, ChainStats, Count};
use crate::tally::Tally;
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
    payload: SumGrid,
    recorder: Recorder,
    removed: Removed,
}

struct Named {
    name: String,
    cell: Box<dyn Cell>,
}

/// What cells dropped and marked that are no longer there.
#[derive(Default)]
struct Removed {
    dropped: BTreeMap<String, u64>,
    dropped_bytes: u64,
    marked: u64,
}

/// A change of a chain that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No cell of this name.
    #[error("no cell '{name}' in this chain: {}", list(.cells))]
    NoCell {
        /// What was asked for.
        name: String,
        /// The names that there are.
        cells: Vec<String>,
    },
    /// Another cell has this name.
    #[error("there is a cell '{name}' already: give this one another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// The cell refused.
    #[error(transparent)]
    Set(#[from] SetError),
}

fn list(cells: &[String]) -> String {
    if cells.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has {}", cells.join(", "))
    }
}

/// Builds a chain whose time starts at zero; `seed` decides whatever is random in it.
///
/// # Errors
/// When two cells have one name.
pub fn build(spec: &ChainSpec, seed: u64) -> Result<Chain, ChainError> {
    let mut chain = Chain::new(seed);
    for cell in &spec.0 {
        chain.insert(Time::ZERO, None, cell)?;
    }
    Ok(chain)
}

impl Chain {
    /// A chain without cells.
    pub fn new(seed: u64) -> Self {
        Self {
            cells: Vec::new(),
            seed,
            out: VecDeque::new(),
            tally: Tally::new(),
            payload: SumGrid::new(PAYLOAD_GRID_NS),
            recorder: Recorder::default(),
            removed: Removed::default(),
        }
    }

    /// Takes a packet that comes in at `now`; times never go back.
    pub fn enqueue(&mut self, now: Time, mut packet: Packet) {
        packet.arrived = now;
        let key = IpPacket::parse(&packet.data).and_then(|ip| ProbeKey::of(&ip));
        packet.record = key.map(|key| self.recorder.enter(key, now));
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

    /// When to call [`Self::dequeue`] next; not every event is a departure from the chain.
    pub fn next_event(&self) -> Option<Time> {
        let departed = self.out.front().map(|(at, _)| *at);
        let cells = self
            .cells
            .iter()
            .filter_map(|named| named.cell.next_event());
        cells.chain(departed).min()
    }

    /// What the chain and its cells did up to `now`.
    pub fn stats(&mut self, now: Time) -> ChainStats {
        self.pump(now);
        self.payload.reach(now);
        let cells: BTreeMap<String, CellStats> = self
            .cells
            .iter_mut()
            .map(|named| (named.name.clone(), named.cell.stats(now)))
            .collect();
        let mut stats = ChainStats {
            crossing: self.crossing(),
            offered: self.tally.offered,
            delivered: self.tally.delivered,
            delivered_tcp_payload_bytes: self.tally.tcp_payload_bytes,
            dropped: self.removed.dropped.clone(),
            dropped_bytes: self.removed.dropped_bytes,
            marked: self.removed.marked,
            backlog: Count::default(),
            transit_s: self.tally.sojourn.distribution(),
            payload: self.payload.series(),
            cells,
        };
        for cell in stats.cells.values() {
            add_all(&mut stats.dropped, &cell.dropped);
            stats.dropped_bytes += cell.dropped_bytes;
            stats.marked += cell.marked;
            stats.backlog.packets += cell.backlog.packets;
            stats.backlog.bytes += cell.backlog.bytes;
        }
        stats
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

    /// The names of the cells in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(|named| named.name.as_str())
    }

    /// Changes a setting of a cell.
    ///
    /// # Errors
    /// When there is no such cell, or it refuses.
    pub fn set(&mut self, now: Time, cell: &str, key: &str, value: &str) -> Result<(), ChainError> {
        let position = self.position(cell)?;
        self.pump(now);
        if let Some(named) = self.cells.get_mut(position) {
            named.cell.set(now, key, value)?;
        }
        Ok(())
    }

    /// Puts a cell before the one at `position`, or at the end.
    ///
    /// # Errors
    /// When another cell has its name.
    pub fn insert(
        &mut self,
        now: Time,
        position: Option<usize>,
        spec: &CellSpec,
    ) -> Result<(), ChainError> {
        let name = spec.name().to_owned();
        if self.position(&name).is_ok() {
            return Err(ChainError::Taken { name });
        }
        self.pump(now);
        let cell: Box<dyn Cell> = match spec {
            CellSpec::Shaper(spec) => {
                Box::new(Shaper::new(spec.clone(), seed_of(self.seed, &name), now))
            }
            CellSpec::Delay(spec) => Box::new(Delay::new(spec.delay)),
        };
        let position = position.unwrap_or(usize::MAX).min(self.cells.len());
        self.cells.insert(position, Named { name, cell });
        Ok(())
    }

    /// Takes a cell out; what is inside goes on at once, in order. Returns what it did.
    ///
    /// # Errors
    /// When there is no such cell.
    pub fn remove(&mut self, now: Time, cell: &str) -> Result<CellStats, ChainError> {
        let position = self.position(cell)?;
        self.pump(now);
        let mut removed = self.cells.remove(position);
        for (at, packet) in removed.cell.drain(now) {
            match self.cells.get_mut(position) {
                Some(next) => next.cell.enqueue(at, packet),
                None => self.leave(at, packet),
            }
        }
        let stats = removed.cell.stats(now);
        add_all(&mut self.removed.dropped, &stats.dropped);
        self.removed.dropped_bytes += stats.dropped_bytes;
        self.removed.marked += stats.marked;
        Ok(stats)
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
        for position in 0..self.cells.len() {
            let Some((cell, rest)) = self
                .cells
                .get_mut(position..)
                .and_then(|cells| cells.split_first_mut())
            else {
                return;
            };
            match rest.first_mut() {
                Some(next) => {
                    while let Some((at, packet)) = cell.cell.dequeue(now) {
                        next.cell.enqueue(at, packet);
                    }
                }
                None => {
                    while let Some((at, packet)) = self
                        .cells
                        .get_mut(position)
                        .and_then(|c| c.cell.dequeue(now))
                    {
                        self.leave(at, packet);
                    }
                }
            }
        }
    }

    fn leave(&mut self, at: Time, packet: Packet) {
        self.tally.deliver(&packet, packet.arrived, at);
        self.payload.add(at, packet.tcp_payload_bytes());
        if let Some(number) = packet.record {
            self.recorder.leave(number, at);
        }
        self.out.push_back((at, packet));
    }
}

fn add_all(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (cause, count) in more {
        *sums.entry(cause.clone()).or_default() += count;
    }
}

/// The seed of a cell, which its neighbours do not change (FNV-1a over its name).
fn seed_of(seed: u64, name: &str) -> u64 {
    name.bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, ipv4_header, tcp, udp};
    use plumb_wire::virtio::VirtioHeader;

    fn chain(text: &str) -> Chain {
        #[derive(serde::Deserialize)]
        struct File {
            chain: ChainSpec,
        }
        build(&toml::from_str::<File>(text).unwrap().chain, 1).unwrap()
    }

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn ping(seq: u8) -> Packet {
        let mut data = ipv4_header(84, 1, 0);
        data.extend([8, 0, 0, 0, 0x12, 0x34, 0, seq]);
        data.resize(84, 0);
        Packet::new(data, VirtioHeader::default(), Time::ZERO)
    }

    #[test]
    fn times_add_up_along_the_chain() {
        let mut c = chain(
            r#"chain = [
                { type = "shaper", rate = "20mbit", framing = "docsis" },
                { type = "delay", delay = "9ms" },
            ]"#,
        );
        c.enqueue(us(0), udp(1500, 1, 0));
        c.enqueue(us(0), udp(1500, 1, 0));
        assert_eq!(c.next_event(), Some(Time::from_nanos(607_200)));
        assert!(c.dequeue(us(9_000)).is_none());
        assert_eq!(c.next_event(), Some(Time::from_nanos(9_607_200)));
        let out: Vec<u64> = std::iter::from_fn(|| c.dequeue(us(20_000)))
            .map(|(at, _)| at.as_nanos())
            .collect();
        assert_eq!(out, [9_607_200, 10_214_400]);
        assert_eq!(c.next_event(), None);
    }

    #[test]
    fn without_cells_packets_pass_at_once() {
        let mut c = Chain::new(1);
        c.enqueue(us(7), udp(100, 1, 0));
        assert_eq!(c.next_event(), Some(us(7)));
        assert_eq!(c.dequeue(us(7)).unwrap().0, us(7));
        assert_eq!(c.crossing(), Crossing::Whole);
    }

    #[test]
    fn what_is_in_a_removed_cell_goes_on_in_order() {
        let mut c = chain(
            r#"chain = [{ type = "shaper", rate = "8mbit" }, { type = "delay", delay = "10ms" }]"#,
        );
        for port in 1..=4 {
            c.enqueue(us(0), udp(1000, port, 0));
        }
        let stats = c.remove(us(2_500), "shaper").unwrap();
        assert_eq!(stats.delivered.packets, 4);
        assert_eq!(c.names().collect::<Vec<_>>(), ["delay"]);
        let out: Vec<_> = std::iter::from_fn(|| c.dequeue(us(99_000)))
            .map(|(at, p)| (at, p.data[21]))
            .collect();
        assert_eq!(
            out,
            [
                (us(11_000), 1),
                (us(12_000), 2),
                (us(12_500), 3),
                (us(12_500), 4)
            ]
        );
    }

    #[test]
    fn probes_are_recorded_with_their_exact_times() {
        let mut c = chain(
            r#"chain = [{ type = "shaper", rate = "8mbit", queue = { type = "fifo", limit = "2p" } }, { type = "delay", delay = "5ms" }]"#,
        );
        c.enqueue(us(10), ping(1));
        c.enqueue(us(20), udp(100, 1, 0));
        c.enqueue(us(30), ping(2)); // the buffer is full
        let stats = c.stats(us(100_000));
        assert_eq!((stats.delivered.packets, stats.dropped["overflow"]), (2, 1));
        let records: Vec<_> = c.probes().records().copied().collect();
        assert_eq!(records.len(), 2);
        assert_eq!(
            (records[0].key, records[0].entered),
            (ProbeKey::Icmp { id: 0x1234, seq: 1 }, us(10))
        );
        assert_eq!((records[0].left, records[1].left), (Some(us(5_094)), None));
    }

    #[test]
    fn delivered_payload_over_time() {
        let mut c = chain(r#"chain = [{ type = "delay", delay = "150ms" }]"#);
        c.enqueue(us(0), tcp(false, 10_000, 1448, ACK));
        c.enqueue(us(60_000), tcp(false, 500, 1448, ACK));
        c.enqueue(us(60_000), udp(500, 1, 0));
        let stats = c.stats(us(350_000));
        let bytes: Vec<f64> = stats.payload.points().map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, [0.0, 10_000.0, 500.0, 0.0]);
        assert_eq!(stats.delivered_tcp_payload_bytes, 10_500);
        assert_eq!(stats.delivered.packets, 7 + 1 + 1);
    }

    #[test]
    fn mistakes_name_what_there_is() {
        let mut c = chain(r#"chain = [{ type = "delay", delay = "1ms" }]"#);
        let error = c
            .set(us(0), "shaper", "rate", "1mbit")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "no cell 'shaper' in this chain: it has delay");
        let twice = ChainSpec(vec![
            toml::from_str("type = 'delay'\ndelay = '1ms'").unwrap();
            2
        ]);
        assert!(matches!(build(&twice, 1), Err(ChainError::Taken { .. })));
    }
}
