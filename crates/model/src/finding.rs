//! What holds a path back, the evidence for it, and what to do about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grade::Grade;

/// One thing that holds the path back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// Where it is.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much it matters.
    pub severity: Severity,
    /// How sure the rule is, 0…1.
    pub confidence: f64,
    /// One sentence with the numbers in it.
    pub summary: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do, best first.
    pub fixes: Vec<Fix>,
    /// Page of the knowledge base that explains it.
    pub kb: String,
}

/// The causes that plumb can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A queue that uploads fill delays everything else.
    BufferbloatUp,
    /// A queue that downloads fill delays everything else.
    BufferbloatDown,
    /// The receiver's window is smaller than the path.
    ReceiveBufferSmall,
    /// The sender's buffer is smaller than the path.
    SendBufferSmall,
}

impl Cause {
    /// The name used in Runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::BufferbloatUp => "bufferbloat-up",
            Self::BufferbloatDown => "bufferbloat-down",
            Self::ReceiveBufferSmall => "receive-buffer-small",
            Self::SendBufferSmall => "send-buffer-small",
        }
    }
}

/// Where a cause sits, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The bottleneck away from this host.
    Uplink,
    /// The bottleneck towards this host.
    Downlink,
    /// Between this host and its gateway: Wi-Fi, or the local network.
    LocalSegment,
    /// The machine that plumb runs on.
    ThisHost,
    /// The machine at the other end.
    FarHost,
}

impl Place {
    /// The name used in Runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uplink => "uplink",
            Self::Downlink => "downlink",
            Self::LocalSegment => "local-segment",
            Self::ThisHost => "this-host",
            Self::FarHost => "far-host",
        }
    }
}

/// How much a finding matters; later is worse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth mending.
    Warning,
    /// It spoils the use of the path.
    Critical,
}

impl Severity {
    /// The name used in Runs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A number that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The measurement's id.
    pub measurement: String,
    /// Path to the number inside the measurement, such as `result.increase_s.p95`.
    pub field: String,
    /// The number.
    pub value: f64,
    /// What was asked of it, in words.
    pub rule: String,
    /// The number it was held against.
    pub threshold: f64,
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// The router between this host and the line.
    Router,
    /// The machine that plumb runs on.
    ThisHost,
    /// The machine at the other end.
    FarHost,
    /// The provider of the line.
    Provider,
}

impl Actor {
    /// The name used in Runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::ThisHost => "this-host",
            Self::FarHost => "far-host",
            Self::Provider => "provider",
        }
    }
}

/// Something to do about a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// Who has to act.
    pub on: Actor,
    /// One sentence.
    pub summary: String,
    /// The change itself, where plumb knows how to make it.
    pub action: Option<Action>,
    /// The same change as commands that people read, rendered from the action.
    #[serde(default)]
    pub commands: Vec<String>,
    /// What should be seen afterwards.
    pub expect: String,
}

/// A change that plumb can render, make and undo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Shape a direction of the line below its rate and manage the queue that forms there.
    Shaper(ShaperAction),
    /// Set a kernel variable.
    Sysctl(SysctlAction),
}

/// Direction of the traffic to shape, from the client's side of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LineDirection {
    /// Towards the provider.
    Up,
    /// From the provider.
    Down,
}

impl LineDirection {
    /// The word used in Runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// A shaper with a managed queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShaperAction {
    /// Direction of the traffic.
    pub direction: LineDirection,
    /// Rate of the shaper, counting `overhead_bytes` on every packet.
    pub rate_bps: u64,
    /// Bytes that the line adds to each IP packet.
    pub overhead_bytes: i16,
    /// Smallest size that a packet takes on the line.
    pub mpu_bytes: u16,
    /// Queue discipline, by its kernel name.
    pub qdisc: String,
}

/// A kernel variable and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SysctlAction {
    /// Name, with dots.
    pub key: String,
    /// Value, as written to /proc/sys.
    pub value: String,
}

/// What a Run says in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// One sentence.
    pub headline: String,
    /// The worst grade measured, where one was.
    pub grade: Option<Grade>,
}
