//! A chain of named cells: one direction of a link.

use std::collections::{BTreeMap, VecDeque};

use crate::cell::{Cell, Crossing};
use crate::flows::FlowTable;
use crate::grid::SumGrid;
use crate::outcome::{End, Outcome, Outcomes};
use crate::packet::Packet;
use crate::record::Recorder;
use crate::settings::{SettingsError, nearest};
use crate::spec::{Built, CellSpec, ChainSpec, NamedCell};
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
    cell: Box<dyn Cell>,
    /// Whether it is one of two ends, of which the other direction has the other.
    is_end: bool,
}

impl Named {
    fn own(spec: &NamedCell, cell: Box<dyn Cell>) -> Self {
        Self {
            name: spec.name.clone(),
            spec: spec.cell.clone(),
            cell,
            is_end: false,
        }
    }

    fn end(spec: &NamedCell, cell: Box<dyn Cell>) -> Self {
        Self {
            is_end: true,
            ..Self::own(spec, cell)
        }
    }
}

/// A change of a chain that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No cell of this name.
    #[error("no cell '{name}' in this chain: {}", list(.name, .cells))]
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
    /// A cell that both directions share is in one only.
    #[error(
        "both directions share a {kind}: write the cell '{name}' in up and in down, with the same settings"
    )]
    Unpaired {
        /// The name of the cell.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// A file that nobody read.
    #[error(
        "the cell '{name}' would need the file '{file}', which is read only when a lab starts: give what is in it, as in distribution='{{ samples = [\"1ms\", \"3ms\"] }}'"
    )]
    File {
        /// The name of the cell.
        name: String,
        /// The file.
        file: String,
    },
    /// The cell refused.
    #[error(transparent)]
    Set(#[from] SettingsError),
}

fn list(name: &str, cells: &[String]) -> String {
    if cells.is_empty() {
        return "it has none".to_owned();
    }
    let hint = nearest(name, cells.iter().map(String::as_str))
        .map(|word| format!(" (did you mean '{word}'?)"));
    format!("it has {}{}", cells.join(", "), hint.unwrap_or_default())
}

/// Builds the two directions of a link, whose time starts at zero; the seeds decide whatever is
/// random in them. A kind of cell that both directions share is written in both, with the same
/// name and settings.
///
/// # Errors
/// When two cells of a direction have one name, or a shared cell is not in both.
pub fn build_link(
    up: &ChainSpec,
    down: &ChainSpec,
    [up_seed, down_seed]: [u64; 2],
) -> Result<[Chain; 2], ChainError> {
    let mut other_ends = BTreeMap::new();
    let mut up_chain = Chain::new(up_seed);
    for named in &up.0 {
        match named.cell.build(seed_of(up_seed, &named.name), Time::ZERO) {
            Built::Own(cell) => up_chain.put(Time::ZERO, None, Named::own(named, cell))?,
            Built::Shared([this, other]) if down.0.contains(named) => {
                up_chain.put(Time::ZERO, None, Named::end(named, this))?;
                other_ends.insert(&named.name, other);
            }
            Built::Shared(_) => return Err(ChainError::unpaired(named)),
        }
    }
    let mut down_chain = Chain::new(down_seed);
    for named in &down.0 {
        if let Some(end) = other_ends.remove(&named.name) {
            down_chain.put(Time::ZERO, None, Named::end(named, end))?;
        } else {
            down_chain.insert(Time::ZERO, None, named)?;
        }
    }
    Ok([up_chain, down_chain])
}

/// Builds a chain by itself.
#[cfg(test)]
pub(crate) fn build(spec: &ChainSpec, seed: u64) -> Result<Chain, ChainError> {
    build_link(spec, &ChainSpec::default(), [seed, 0]).map(|[chain, _]| chain)
}

impl ChainError {
    fn unpaired(named: &NamedCell) -> Self {
        Self::Unpaired {
            name: named.name.clone(),
            kind: named.cell.kind(),
        }
    }
}

/// Whether a cell has all that its settings name.
fn check_complete(name: &str, cell: &CellSpec) -> Result<(), ChainError> {
    match cell.file() {
        None => Ok(()),
        Some(file) => Err(ChainError::File {
            name: name.to_owned(),
            file: file.to_owned(),
        }),
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
        packet.record = packet.probe_key().map(|key| self.recorder.enter(key, now));
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
            .map(|named| (named.name.clone(), named.cell.stats(now, named.spec.kind())))
            .collect();
        let mut stats = ChainStats {
            crossing: self.crossing(),
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

    /// What became of packets since the last call, and of how many more that were not kept
    /// because nobody asked in time.
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
            named.cell.reconfigure(now, &spec);
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
    use crate::stats::DropCause;
    use plumb_wire::probe_key::ProbeKey;
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
    fn a_shared_cell_is_set_in_both_directions() {
        let cell = CellSpec::from_pairs("half_duplex", &[("rate", "10mbit")]).unwrap();
        let spec = ChainSpec(vec![cell.into()]);
        let mut ends = build_link(&spec, &spec, [1, 2]).unwrap();
        for end in &mut ends {
            assert!(end.is_shared("half_duplex") && !end.is_shared("delay"));
            let pairs = [("rate", "100mbit"), ("propagation", "500ns")];
            end.set(us(0), "half_duplex", &pairs).unwrap();
        }
        ends[1].enqueue(us(0), udp(1500, 1, 0));
        let (at, _) = ends[1].dequeue(us(200)).unwrap();
        assert_eq!(at, Time::from_nanos((1500 + 18 + 8) * 80 + 500));
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
    fn what_becomes_of_each_packet_is_kept_when_asked_for() {
        let mut c = chain(
            r#"chain = [{ type = "shaper", rate = "8mbit", queue = { type = "fifo", limit = "2p" } }]"#,
        );
        c.enqueue(us(0), udp(1000, 1, 0)); // nobody asked yet
        c.keep_outcomes(true);
        c.enqueue(us(10), udp(1000, 2, 0));
        c.enqueue(us(20), udp(500, 3, 0)); // the buffer is full
        while c.dequeue(us(5_000)).is_some() {}
        let (outcomes, missed) = c.take_outcomes();
        let brief: Vec<_> = outcomes
            .iter()
            .map(|o| (o.number, o.flow.unwrap().source_port, o.end.clone()))
            .collect();
        let left = |at| End::Left { at, marked: false };
        let dropped = End::Dropped {
            cell: "shaper".to_owned(),
            cause: DropCause::Overflow,
        };
        assert_eq!(missed, 0);
        assert_eq!(
            brief,
            [
                (0, 1, left(us(1_000))),
                (1, 2, left(us(2_000))),
                (2, 3, dropped)
            ]
        );
        assert!(c.take_outcomes().0.is_empty());
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
            .set(us(0), "shaper", &[("rate", "1mbit")])
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
