//! What a result shows, whatever kind it is of. Text, page, comparison and charts know results by
//! this trait alone; each kind implements it in one file of `kinds`, and `registry.rs` lists them.

use std::any::Any;

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::grade::Grade;
use plumb_model::order::sort_few;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};

use crate::carried::Carried;
use crate::compare::quantity::Quantity;
use crate::map::Map;
use crate::svg::canvas::Drawing;
use crate::table::Table;

/// What a result shows.
pub(crate) trait Show: Any {
    /// Adds the tables of all results of this kind that the Run has; called once a kind.
    fn tables(&self, run: &Run, tables: &mut Tables);

    /// What all results of this kind that the Run has come to, in sentences for everybody; called once a kind.
    fn sentences(&self, _run: &Run) -> Vec<String> {
        Vec::new()
    }

    /// What it was read from, and when that was recorded, in seconds since 1970; of what was not measured by this Run.
    fn recorded(&self) -> Option<(String, Option<f64>)> {
        None
    }

    /// The phase that the measurement belongs to where its context names none.
    fn phase(&self) -> Phase {
        Phase::Idle
    }

    /// What of both ends bears on it.
    fn bears(&self) -> Ends {
        Ends {
            tcp: true,
            clock_source: true,
            clock: true,
        }
    }

    /// Its row in the table of round trips, idle and loaded, where it has one.
    fn round_trips(&self) -> Option<RoundTrips<'_>> {
        None
    }

    /// What a direction of a load carried, where it was TCP or datagrams.
    fn carried(&self) -> Option<Carried<'_>> {
        None
    }

    /// The direction and the rate of a load phase.
    fn rate(&self) -> Option<(Direction, f64)> {
        None
    }

    /// The numbers for a comparison, besides the numbers in `round_trips`.
    fn quantities(&self, _phase: Phase) -> Vec<Quantity> {
        Vec::new()
    }

    /// What a series of the measurement is of in the chart over the time of the Run.
    fn trace(&self, _series: &str) -> Option<Trace> {
        None
    }

    /// A chart of its own.
    fn chart(&self, _measurement: &Measurement, _phase: Phase) -> Option<Chart> {
        None
    }

    /// All the charts of its own.
    fn charts(&self, measurement: &Measurement, phase: Phase) -> Vec<Chart> {
        self.chart(measurement, phase).into_iter().collect()
    }

    /// Whether the path was in the measurement's phase for as long as it took.
    fn fills_its_phase(&self) -> bool {
        true
    }

    /// Whether what it found hangs on how long it took, as under load, where queues take time to
    /// fill.
    fn hangs_on_length(&self) -> bool {
        false
    }

    /// What loaded the path, for a comparison of like with like.
    fn load(&self) -> Option<String> {
        None
    }

    /// What was asked for, for the same.
    fn asked(&self) -> Option<String> {
        None
    }

    /// Adds what it shows of the components of the path.
    fn on_map(&self, _map: &mut Map) {}

    /// A sentence for each part that ended early.
    fn ended_early(&self, _phase: Phase) -> Vec<String> {
        Vec::new()
    }
}

/// What of both ends bears on a measurement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    /// How their TCP is set.
    pub(crate) tcp: bool,
    /// By what their kernels count time.
    pub(crate) clock_source: bool,
    /// Whether their clocks are synchronised.
    pub(crate) clock: bool,
}

impl Ends {
    /// The kernel's clock alone, as for round trips.
    pub(crate) const CLOCK_SOURCE: Self = Self {
        tcp: false,
        clock_source: true,
        clock: false,
    };
}

/// Round trips of one measurement, idle or loaded.
pub(crate) struct RoundTrips<'a> {
    pub(crate) protocol: Protocol,
    /// Whom the probes were sent to. None where it is the far end.
    pub(crate) to: Option<&'a str>,
    /// How many were sent. None where that is not counted.
    pub(crate) sent: Option<u64>,
    pub(crate) rtt_s: Option<&'a Distribution>,
    pub(crate) increase_s: Option<&'a Distribution>,
    pub(crate) loss_ratio: Option<f64>,
    pub(crate) grade: Option<Grade>,
}

/// What a series over time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    Rate(Direction),
    /// What of UDP's packets never came.
    Loss(Direction),
    /// How much longer than the fastest UDP's packets took.
    Delay(Direction),
    /// Round trips of probes.
    RoundTrip {
        protocol: Protocol,
        /// Whether the path was loaded, so that the first seconds do not count.
        loaded: bool,
    },
}

/// A chart that a result has to itself.
pub(crate) struct Chart {
    pub(crate) group: ChartGroup,
    /// What it is of, where there may be several of its group.
    pub(crate) of: Option<String>,
    pub(crate) svg: Drawing,
}

/// The charts that stand together, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChartGroup {
    Classes,
    OneWayDelay,
    Hops,
    Connections,
    Traffic,
}

impl ChartGroup {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Classes => "Classes of traffic",
            Self::OneWayDelay => "Delay of each direction",
            Self::Hops => "Hops of the path",
            Self::Connections => "Connections over time",
            Self::Traffic => "Traffic over time",
        }
    }
}

/// Where tables stand on the page: the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Connections,
    Traffic,
    Path,
    Gateway,
    CounterRates,
    Files,
    Ciphers,
    Machine,
    Tuning,
    Shaping,
    Applications,
    AvailableBandwidth,
    Responsiveness,
    RoundTrips,
    LoadedLatency,
    Rates,
    Quic,
    Datagrams,
    Senders,
    Transactions,
    TcpWindows,
    Probes,
    Sweep,
    Ports,
    OneWayDelay,
    Mtu,
    Capacity,
}

/// Whom a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Everybody who asks the question that the verb answers.
    Answer,
    /// Who wants to know all that was measured.
    Detail,
}

/// The tables of a Run.
#[derive(Default)]
pub(crate) struct Tables {
    placed: Vec<(Place, Weight, Table)>,
    /// Details for the page alone, which folds them away.
    folded: Vec<Table>,
}

impl Tables {
    /// Adds those that have a row.
    pub(crate) fn add(&mut self, place: Place, tables: impl IntoIterator<Item = Table>) {
        self.weighed(place, Weight::Answer, tables);
    }

    /// The same of those that are left out where the text is short.
    pub(crate) fn detail(&mut self, place: Place, tables: impl IntoIterator<Item = Table>) {
        self.weighed(place, Weight::Detail, tables);
    }

    fn weighed(&mut self, place: Place, weight: Weight, tables: impl IntoIterator<Item = Table>) {
        let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
        self.placed
            .extend(tables.map(|table| (place, weight, table.without_empty_columns())));
    }

    /// Adds a detail, if it has a row.
    pub(crate) fn fold(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.folded.push(table);
        }
    }

    /// In the order of the page, and apart those that are folded away.
    pub(crate) fn into_order(mut self) -> (Vec<Table>, Vec<Table>) {
        sort_few(&mut self.placed, |(a, ..), (b, ..)| a.cmp(b));
        let placed = self.placed.into_iter().map(|(.., table)| table);
        (placed.collect(), self.folded)
    }

    /// The tables of a short text, in the same order.
    pub(crate) fn answers(mut self) -> Vec<Table> {
        self.placed
            .retain(|(_, weight, _)| *weight == Weight::Answer);
        self.into_order().0
    }
}
