//! What holds a path back, the evidence for it, and what to do about it.

mod cause;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::direction::OneDirection;
use crate::framing::{Cells, Framing};
use crate::grade::Grade;
use crate::need::LookedFor;
use crate::results::Direction;
use crate::vocabulary;

pub use self::cause::Cause;

/// One cause that limits the path, with its evidence and its fixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cause that the finding reports.
    pub cause: Cause,
    /// The place on the path that the cause is in.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much the cause matters.
    pub severity: Severity,
    /// How sure the rule is, a share from 0 to 1.
    pub confidence: f64,
    /// The uses that it matters for; empty where it matters for the path that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matters_for: Vec<PathKind>,
    /// One sentence with the numbers in it.
    pub summary: String,
    /// The measurements that the finding rests on.
    pub evidence: Vec<Evidence>,
    /// What to do about the cause, the best first.
    pub fixes: Vec<Fix>,
    /// Page of the knowledge base that explains it.
    pub kb: String,
}

impl Finding {
    /// The evidence that decided: rules put it before what else they mention.
    pub fn decisive(&self) -> Option<&Evidence> {
        self.evidence.first()
    }

    /// The evidence that is of a field, such as `result.loss_ratio`.
    pub fn evidence_of(&self, field: &str) -> Option<&Evidence> {
        self.evidence
            .iter()
            .find(|evidence| evidence.field == field)
    }
}

vocabulary! {
    /// What a host or a path is used for; a fault or a setting matters for some uses and not for others.
    pub enum PathKind {
        /// Transfers within a building: high rates, round trips below a millisecond.
        Lan = "lan",
        /// Transfers over tens of milliseconds and more.
        LongPath = "long-path",
        /// Many connections at once.
        BusyServer = "busy-server",
        /// Packets forwarded for others.
        Router = "router",
    }
}

impl PathKind {
    /// All kinds of use, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Lan, Self::LongPath, Self::BusyServer, Self::Router];
}

vocabulary! {
    /// Where a cause sits, as far as known.
    pub enum Place {
        /// The bottleneck away from this host.
        Uplink = "uplink",
        /// The bottleneck towards this host.
        Downlink = "downlink",
        /// Between this host and its gateway: Wi-Fi, or the local network.
        LocalSegment = "local-segment",
        /// A router or line on the way.
        Path = "path",
        /// The machine that plumb runs on.
        ThisHost = "this-host",
        /// The machine at the other end.
        FarHost = "far-host",
        /// The machine that opened a captured connection.
        Client = "client",
        /// The machine to which a captured connection was opened.
        Server = "server",
    }
}

impl Place {
    /// The bottleneck of a direction: downlink where it is not up.
    pub fn line(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Uplink,
            Direction::Down | Direction::Both => Self::Downlink,
        }
    }
}

vocabulary! {
    /// How much a finding matters; later is worse.
    pub enum Severity {
        /// It is worth knowing.
        Info = "info",
        /// It is worth fixing.
        Warning = "warning",
        /// It spoils the use of the path.
        Critical = "critical",
    }
}

/// What was measured, or what it was compared with: a number, or a word such as a clock's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Observed {
    /// A number, in the unit that the field's name says.
    Number(f64),
    /// A word, such as the name of a clock source.
    Word(String),
}

impl Observed {
    /// The number; `None` where it is a word.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(_) => None,
        }
    }
}

impl From<f64> for Observed {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Observed {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for Observed {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

/// What a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Identity of the measurement in this Run.
    pub measurement: String,
    /// Path to the value inside the measurement, such as `result.increase_s.p95`.
    pub field: String,
    /// Value that was measured, in the unit of its field.
    pub value: Observed,
    /// What the rule asks of the value, in words.
    pub rule: String,
    /// Value that it was compared with, in the unit of its field.
    pub threshold: Observed,
}

vocabulary! {
    /// Who has to act.
    pub enum Actor {
        /// The router between this host and the line.
        Router = "router",
        /// The machine that plumb runs on.
        ThisHost = "this-host",
        /// The machine at the other end.
        FarHost = "far-host",
        /// The provider of the line.
        Provider = "provider",
    }
}

/// Something to do about a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// The actor who has to make the change.
    pub on: Actor,
    /// What to do, in one sentence.
    pub summary: String,
    /// The change itself. Null where plumb does not know how to make it.
    pub action: Option<Action>,
    /// The change as commands that people read, rendered from the action.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Effect that should be seen after the change.
    pub expect: String,
}

impl Fix {
    /// Something that only people can do.
    pub fn advice(on: Actor, summary: impl Into<String>, expect: impl Into<String>) -> Self {
        Self {
            on,
            summary: summary.into(),
            action: None,
            commands: Vec::new(),
            expect: expect.into(),
        }
    }

    /// The same as a change that plumb can make.
    #[must_use]
    pub fn by(self, action: Action) -> Self {
        Self {
            action: Some(action),
            ..self
        }
    }
}

/// A change that plumb can render, make and undo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Shape a direction of the line below its rate and manage the queue that forms there.
    Shaper(ShaperAction),
    /// Set a kernel variable.
    Sysctl(SysctlAction),
    /// Change a setting of an interface.
    Interface(InterfaceAction),
}

/// A shaper with a managed queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShaperAction {
    /// Direction of the traffic, from the client's side of the line.
    pub direction: OneDirection,
    /// Rate of the shaper, counting `overhead_bytes` on every packet.
    pub rate_bps: u64,
    /// Bytes that the line adds to each IP packet.
    pub overhead_bytes: i16,
    /// Smallest size that a packet takes on the line, in bytes.
    pub mpu_bytes: u16,
    /// Cells that the line cuts packets into. Absent where it cuts them into none.
    #[serde(default, skip_serializing_if = "Cells::is_none")]
    pub cells: Cells,
    /// Queue discipline, by its kernel name.
    pub qdisc: String,
}

impl ShaperAction {
    /// What the line adds to each packet.
    pub fn framing(&self) -> Framing {
        Framing {
            overhead_bytes: self.overhead_bytes,
            mpu_bytes: self.mpu_bytes,
            cells: self.cells,
        }
    }
}

/// A kernel variable and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SysctlAction {
    /// Name of the kernel variable, with dots.
    pub key: String,
    /// Value, as written to /proc/sys.
    pub value: String,
}

/// A change of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceAction {
    /// Name of the interface to change.
    pub interface: String,
    /// The setting to change and its value.
    pub change: InterfaceChange,
}

/// What can be changed of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceChange {
    /// Set the largest IP packet, in bytes.
    MtuBytes(u32),
    /// Switch an offload, by the kernel's name.
    Offload {
        /// The kernel's name of the offload, as `ethtool -k` prints it, such as `rx-gro`.
        feature: String,
        /// Whether it is to be on.
        on: bool,
    },
    /// Set the number of descriptors for received packets.
    ReceiveRingPackets(u32),
    /// Set the packets that a queueing discipline without a limit of its own may queue (txqueuelen).
    TransmitQueuePackets(u32),
    /// Let the driver fit its interrupts to what arrives.
    AdaptiveReceive(bool),
    /// Set the most bytes that each of the driver's own queues may have in flight (BQL).
    DriverQueueMostBytes {
        /// How many queues there are: `tx-0` and those after it.
        queues: u32,
        /// The most bytes of each.
        bytes: u64,
    },
    /// Let the link sleep between frames (IEEE 802.3az).
    EnergyEfficient(bool),
    /// Set the queueing discipline for what the interface sends, by its kernel name.
    Qdisc(String),
    /// Let both ends negotiate speed and duplex.
    Autonegotiation(bool),
    /// Let the radio sleep between frames.
    WifiPowerSave(bool),
    /// Set the processors that share the packets of a receiving queue (RPS).
    ReceiveProcessors {
        /// Name of the queue, such as `rx-0`.
        queue: String,
        /// Processors as a hexadecimal mask.
        cpus: String,
    },
}

/// What a Run says in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// One sentence, and a second one where something was not measured.
    pub headline: String,
    /// What is known of the whole path; null where the verb judges only a part of it.
    pub clearance: Option<Clearance>,
    /// The worst grade of latency under load, by the increase of the round-trip time. It says nothing
    /// of rate or loss. Null where it was not measured, or could be worse than what was measured.
    pub latency_grade: Option<Grade>,
    /// What an all-clear needs and was not measured; empty where all of it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<NotMeasured>,
    /// Which causes were looked for. Null where only a part of the path was judged, and in Runs of versions that did not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_for: Option<LookedFor>,
}

impl Verdict {
    /// The verdict of a verb that judges a part of the path, or something else than a path.
    pub fn of_a_part(headline: impl Into<String>) -> Self {
        Self {
            headline: headline.into(),
            clearance: None,
            latency_grade: None,
            not_measured: Vec::new(),
            looked_for: None,
        }
    }
}

vocabulary! {
    /// Whether a path is known to be healthy.
    pub enum Clearance {
        /// Everything that an all-clear needs was measured and is healthy.
        Cleared = "cleared",
        /// Findings say what is wrong.
        Found = "found",
        /// Something is wrong, and no finding explains it.
        Unexplained = "unexplained",
        /// Nothing wrong was seen, but not everything that an all-clear needs was measured.
        NotMeasured = "not-measured",
    }
}

/// Something that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// What, as a noun: `rates and latency under load`.
    pub what: String,
    /// Why, as a clause that follows "because".
    pub why: String,
    /// The option that helps, in the form of the command line; null where none does.
    pub option: Option<String>,
}

impl NotMeasured {
    /// What each of several is, separated by commas.
    pub fn names(all: &[Self]) -> String {
        let names: Vec<&str> = all.iter().map(|one| one.what.as_str()).collect();
        names.join(", ")
    }
}
