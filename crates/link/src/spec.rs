//! What scenarios and commands write about chains: an array of tables in TOML, or `KEY=VALUE`
//! pairs for a cell that is added or changed while it runs.

use std::net::IpAddr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::cell::filter::{Filter, Filtered};
use crate::cell::loss::{Loss, bernoulli, gilbert_elliott, index, markov4, periodic};
use crate::cell::medium::{self, Terms, duplex_mismatch, half_duplex};
use crate::cell::middlebox::{
    dscp_bleach, ecn_bleach, ecn_syn_drop, icmp_deprioritise, icmp_filter, icmp_limit, mss_clamp,
    mtu, nat, strip_tcp_options,
};
use crate::cell::timed::{Timed, Timing};
use crate::cell::{
    Adjust, Cell, corrupt, delay, duplicate, outage, packet_rate, policer, reorder, shaper, sleep,
    trace, wifi,
};
use crate::settings::{self, Difference, KindOf, SettingsError, TYPE, kinds};
use crate::time::Time;

kinds! {
    "cell",
    /// One cell: a table with a `type`.
    pub enum CellSpec {
        /// A rate with a queue.
        Shaper(shaper::ShaperSpec) = "shaper",
        /// The opportunities of a recorded line, with a queue.
        Trace(trace::TraceSpec) = "trace",
        /// A box that limits packets a second, with a queue.
        PacketRate(packet_rate::PacketRateSpec) = "packet_rate",
        /// A half-duplex Ethernet, which both directions share.
        HalfDuplex(half_duplex::HalfDuplexSpec) = "half_duplex",
        /// An Ethernet of which one end is half and the other full duplex.
        DuplexMismatch(duplex_mismatch::DuplexMismatchSpec) = "duplex_mismatch",
        Delay(delay::DelaySpec) = "delay",
        Bernoulli(bernoulli::BernoulliSpec) = "loss",
        /// Loss in bursts, by a channel of two states.
        GilbertElliott(gilbert_elliott::GilbertElliottSpec) = "gilbert_elliott",
        /// Loss in bursts, by a model of four states.
        Markov4(markov4::Markov4Spec) = "markov4",
        /// Loss of every nth packet.
        PeriodicLoss(periodic::PeriodicLossSpec) = "periodic_loss",
        /// Loss of packets by number.
        IndexLoss(index::IndexLossSpec) = "index_loss",
        /// Packets that come twice.
        Duplicate(duplicate::DuplicateSpec) = "duplicate",
        /// Bits that are wrong.
        Corrupt(corrupt::CorruptSpec) = "corrupt",
        /// Packets that are overtaken.
        Reorder(reorder::ReorderSpec) = "reorder",
        /// A rate without a queue.
        Policer(policer::PolicerSpec) = "policer",
        /// Times in which nothing passes.
        Outage(outage::OutageSpec) = "outage",
        /// A radio that sleeps when nothing passes.
        Sleep(sleep::SleepSpec) = "sleep",
        /// A radio that contends, aggregates and retries.
        Wifi(wifi::WifiSpec) = "wifi",
        /// A line that takes only small packets.
        Mtu(mtu::MtuSpec) = "mtu",
        /// A firewall that drops ICMP.
        IcmpFilter(icmp_filter::IcmpFilterSpec) = "icmp_filter",
        /// A box that limits how many ICMP messages pass.
        IcmpLimit(icmp_limit::IcmpLimitSpec) = "icmp_limit",
        /// A router that handles ICMP late.
        IcmpDeprioritise(icmp_deprioritise::IcmpDeprioritiseSpec) = "icmp_deprioritise",
        /// A box that takes options out of SYNs.
        StripTcpOptions(strip_tcp_options::StripTcpOptionsSpec) = "strip_tcp_options",
        /// A box that lowers the maximum segment size.
        MssClamp(mss_clamp::MssClampSpec) = "mss_clamp",
        /// A box that clears the ECN field.
        EcnBleach(ecn_bleach::EcnBleachSpec) = "ecn_bleach",
        /// A box that drops SYNs that ask for ECN.
        EcnSynDrop(ecn_syn_drop::EcnSynDropSpec) = "ecn_syn_drop",
        /// A box that sets the differentiated services codepoint.
        DscpBleach(dscp_bleach::DscpBleachSpec) = "dscp_bleach",
        /// Network address translation, for both directions.
        Nat(nat::NatSpec) = "nat",
    }
}

/// A cell of any of these kinds.
pub(crate) trait AnyCell: Cell {
    /// Takes new settings at `now`, if they are of its kind. They were checked.
    fn set(&mut self, now: Time, spec: &CellSpec);
}

impl<C> AnyCell for C
where
    C: Cell + Adjust,
    C::Spec: KindOf<CellSpec>,
{
    fn set(&mut self, now: Time, spec: &CellSpec) {
        if let Some(spec) = C::Spec::of(spec) {
            self.reconfigure(now, spec);
        }
    }
}

impl KindOf<CellSpec> for Terms {
    fn of(any: &CellSpec) -> Option<Self> {
        match any {
            CellSpec::HalfDuplex(spec) => Some(spec.terms()),
            CellSpec::DuplexMismatch(spec) => Some(spec.terms()),
            _ => None,
        }
    }
}

/// A cell that was built.
pub(crate) enum Built {
    Own(Box<dyn AnyCell>),
    /// The two ends of a cell that both directions of a link share.
    Shared([Box<dyn AnyCell>; 2]),
}

impl CellSpec {
    /// A cell with these settings that exists from `now` on; `seed` decides whatever is random
    /// in it.
    pub(crate) fn build(&self, seed: u64, now: Time) -> Built {
        match self {
            Self::Shaper(spec) => own(shaper::Shaper::new(spec.clone(), seed, now)),
            Self::Trace(spec) => own(trace::Trace::new(spec.clone(), seed, now)),
            Self::PacketRate(spec) => own(packet_rate::PacketRate::new(spec.clone(), seed, now)),
            Self::HalfDuplex(spec) => shared(medium::pair(spec.terms(), seed, now)),
            Self::DuplexMismatch(spec) => shared(medium::pair(spec.terms(), seed, now)),
            Self::Delay(spec) => timed(delay::Delay::new(spec.clone(), seed)),
            Self::Bernoulli(spec) => filter(Loss(bernoulli::Bernoulli::new(spec.clone(), seed))),
            Self::GilbertElliott(spec) => filter(Loss(gilbert_elliott::GilbertElliott::new(
                spec.clone(),
                seed,
            ))),
            Self::Markov4(spec) => filter(Loss(markov4::Markov4::new(spec.clone(), seed))),
            Self::PeriodicLoss(spec) => filter(Loss(periodic::PeriodicLoss::new(spec.clone()))),
            Self::IndexLoss(spec) => filter(Loss(index::IndexLoss::new(spec.clone()))),
            Self::Duplicate(spec) => filter(duplicate::Duplicate::new(spec.clone(), seed)),
            Self::Corrupt(spec) => filter(corrupt::Corrupt::new(spec.clone(), seed)),
            Self::Reorder(spec) => own(reorder::Reorder::new(spec.clone(), seed)),
            Self::Policer(spec) => filter(policer::Policer::new(spec.clone(), now)),
            Self::Outage(spec) => timed(outage::Outage::new(spec.clone(), seed, now)),
            Self::Sleep(spec) => timed(sleep::Sleep::new(spec.clone())),
            Self::Wifi(spec) => own(wifi::Wifi::new(spec.clone(), seed)),
            Self::Mtu(spec) => filter(mtu::Mtu::new(spec.clone())),
            Self::IcmpFilter(spec) => filter(icmp_filter::IcmpFilter::new(spec.clone())),
            Self::IcmpLimit(spec) => filter(icmp_limit::IcmpLimit::new(spec.clone(), now)),
            Self::IcmpDeprioritise(spec) => {
                timed(icmp_deprioritise::IcmpDeprioritise::new(spec.clone(), seed))
            }
            Self::StripTcpOptions(spec) => filter(strip_tcp_options::StripTcpOptions::new(spec)),
            Self::MssClamp(spec) => filter(mss_clamp::MssClamp::new(spec.clone())),
            Self::EcnBleach(spec) => filter(ecn_bleach::EcnBleach::new(spec.clone())),
            Self::EcnSynDrop(_) => filter(ecn_syn_drop::EcnSynDrop),
            Self::DscpBleach(spec) => filter(dscp_bleach::DscpBleach::new(spec.clone())),
            Self::Nat(spec) => shared(nat::pair(spec)),
        }
    }

    /// Fills in addresses of the link that this cell was not given: of the link's first end, and
    /// of the end that this direction goes to.
    fn settle(&mut self, first_end: &[IpAddr], far_end: &[IpAddr]) {
        match self {
            Self::Mtu(spec) => spec.settle(far_end),
            Self::Nat(spec) => spec.settle(first_end),
            _ => {}
        }
    }

    /// The file that the settings name and that is still to be read.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Delay(spec) => spec.file(),
            Self::Trace(spec) => spec.file.as_deref(),
            _ => None,
        }
    }

    /// Takes what the text of that file says.
    ///
    /// # Errors
    /// When it does not say what it should, with the line.
    pub fn take_file(&mut self, text: &str) -> Result<(), SettingsError> {
        let taken = match self {
            Self::Delay(spec) => spec.distribution.take_samples(text),
            Self::Trace(spec) => spec.take_opportunities(text),
            _ => Ok(()),
        };
        taken.map_err(SettingsError)
    }

    /// The settings with some changed: `KEY=VALUE` pairs, all or none.
    ///
    /// # Errors
    /// When a key or value is not possible.
    pub fn with(&self, pairs: &[(&str, &str)]) -> Result<Self, SettingsError> {
        settings::with_pairs(&self.to_table(), pairs, Self::from_table, Self::to_table)
    }

    /// The settings that differ from `before`.
    pub fn differences(&self, before: &Self) -> Vec<Difference> {
        settings::differences(&before.to_table(), &self.to_table())
    }

    /// A cell of this kind from `KEY=VALUE` pairs, such as `rate=19mbit queue=fq_codel`.
    ///
    /// # Errors
    /// When a key or value is not possible, or one is missing.
    pub fn from_pairs(kind: &str, pairs: &[(&str, &str)]) -> Result<Self, SettingsError> {
        let table = Table::from_iter([(TYPE.to_owned(), Value::String(kind.to_owned()))]);
        settings::with_pairs(&table, pairs, Self::from_table, Self::to_table)
    }
}

fn own(cell: impl AnyCell + 'static) -> Built {
    Built::Own(Box::new(cell))
}

fn shared(ends: [impl AnyCell + 'static; 2]) -> Built {
    Built::Shared(ends.map(|end| -> Box<dyn AnyCell> { Box::new(end) }))
}

fn filter<F>(filter: F) -> Built
where
    F: Filter<Spec: KindOf<CellSpec>> + 'static,
{
    own(Filtered::new(filter))
}

fn timed<T>(timing: T) -> Built
where
    T: Timing<Spec: KindOf<CellSpec>> + 'static,
{
    own(Timed::new(timing))
}

#[cfg(test)]
impl Built {
    /// One direction's own cell.
    pub(crate) fn own(self) -> Box<dyn AnyCell> {
        match self {
            Self::Own(cell) => cell,
            Self::Shared(_) => panic!("both directions share it"),
        }
    }

    /// The ends of a shared cell.
    pub(crate) fn ends(self) -> [Box<dyn AnyCell>; 2] {
        match self {
            Self::Own(_) => panic!("it is one direction's own"),
            Self::Shared(ends) => ends,
        }
    }
}

/// A chain: its cells in the order in which packets pass them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainSpec(pub Vec<NamedCell>);

impl ChainSpec {
    /// The chain on a link whose ends have these addresses, for the cells that need some and
    /// were not given them.
    #[must_use]
    pub fn with_addresses(&self, first_end: &[IpAddr], far_end: &[IpAddr]) -> Self {
        let mut chain = self.clone();
        for named in &mut chain.0 {
            named.cell.settle(first_end, far_end);
        }
        chain
    }
}

/// A cell and what it is called: its `name`, or else its type.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCell {
    /// What it is called.
    pub name: String,
    pub cell: CellSpec,
}

impl From<CellSpec> for NamedCell {
    /// A cell called by its type.
    fn from(cell: CellSpec) -> Self {
        Self {
            name: cell.kind().to_owned(),
            cell,
        }
    }
}

const NAME: &str = "name";

impl Serialize for NamedCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = self.cell.to_table();
        table.insert(NAME.to_owned(), Value::String(self.name.clone()));
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NamedCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// An error inside a visitor is reported at the line of its table.
        struct InTable;
        impl<'de> Visitor<'de> for InTable {
            type Value = NamedCell;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a cell such as { type = \"delay\", delay = \"9ms\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NamedCell, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                NamedCell::from_table(table).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_map(InTable)
    }
}

impl NamedCell {
    fn from_table(mut table: Table) -> Result<Self, SettingsError> {
        let name = match table.remove(NAME) {
            None => None,
            Some(Value::String(name)) if is_name(&name) => Some(name),
            Some(other) => {
                return Err(SettingsError(format!(
                    "{other} cannot name a cell: use a-z, 0-9, - and _"
                )));
            }
        };
        let cell = CellSpec::from_table(table)?;
        let name = name.unwrap_or_else(|| cell.kind().to_owned());
        Ok(Self { name, cell })
    }
}

/// Whether commands can name a cell so.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}
