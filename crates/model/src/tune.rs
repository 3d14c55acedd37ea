//! The vocabulary of tuning: systems, kinds of knobs, and the plan, a document of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Action, Actor};
use crate::vocabulary;

vocabulary! {
    /// An operating system that has knobs.
    pub enum Os {
        /// Linux.
        Linux = "linux",
        /// macOS.
        Macos = "macos",
        /// Windows.
        Windows = "windows",
        /// FreeBSD.
        Freebsd = "freebsd",
        /// OpenBSD.
        Openbsd = "openbsd",
        /// NetBSD.
        Netbsd = "netbsd",
        /// Solaris and illumos.
        Solaris = "solaris",
    }
}

/// How a knob is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A kernel variable, by sysctl(8).
    #[default]
    Sysctl,
    /// A setting of an interface: tc(8), ip(8), ethtool(8).
    Interface,
    /// Windows' netsh.
    Netsh,
    /// Windows' registry.
    Registry,
    /// Solaris' ipadm(8).
    Ipadm,
}

vocabulary! {
    /// What a change of a knob reaches.
    pub enum Scope {
        /// The network namespace that it is made in.
        Namespace = "namespace",
        /// The whole machine, with everything that runs on it.
        Machine = "machine",
    }
}

vocabulary! {
    /// What the host does.
    pub enum Role {
        /// A few connections of its own at a time.
        Client = "client",
        /// Very many connections of others.
        Server = "server",
        /// It passes on packets of others.
        Router = "router",
    }
}

/// Version of the document.
pub const SCHEMA: &str = "plumb.tune-plan/1";

/// Where lines of udev(7) may go that bring settings of interfaces back at boot. plumb does not write there.
pub const UDEV_RULES: &str = "/etc/udev/rules.d/90-plumb-tune.rules";

/// What should change for a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunePlan {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The path that it is for.
    pub path: PlannedPath,
    /// What should change on each host that the plan is for.
    pub hosts: Vec<HostPlan>,
}

/// The path that a plan is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPath {
    /// Rate that one connection is to reach.
    pub rate_bps: f64,
    /// Round-trip time of the empty path.
    pub rtt_s: f64,
    /// Share of packets that the path loses of itself, where it is known.
    pub loss_ratio: Option<f64>,
    /// Bytes in flight that fill it.
    pub bdp_bytes: f64,
    /// Where these are from: options, or a Run.
    pub from: String,
}

/// What should change on one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlan {
    /// Which end it is.
    pub on: Actor,
    /// Its system.
    pub os: Os,
    /// What it does.
    pub role: Role,
    /// Where what it has at present is from.
    pub facts_from: String,
    /// What should change, in the order in which it is done.
    pub changes: Vec<PlannedChange>,
    /// What would help and belongs to the machine, of which this is a namespace: not done here.
    pub refused: Vec<Refused>,
    /// What the catalogue looked at and leaves as it is.
    pub left: Vec<Left>,
    /// Somebody's advice, judged; empty where none was given.
    pub judged: Vec<Judged>,
    /// Memory that one connection may hold after it, send and receive buffer together.
    pub memory_bytes: Option<u64>,
    /// What else must be known.
    pub notes: Vec<String>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedChange {
    /// The knob.
    pub knob: String,
    /// How it is set.
    pub kind: Kind,
    /// What it has at present, where that is known.
    pub from: Option<String>,
    /// What it should have.
    pub to: String,
    /// What the change reaches.
    pub scope: Scope,
    /// Why.
    pub why: String,
    /// What is to be seen then.
    pub effect: String,
    /// What may go wrong.
    pub risk: String,
    /// Memory that one connection may hold then.
    pub memory_bytes: Option<u64>,
    /// The change itself, where plumb can make it.
    pub action: Option<Action>,
    /// The line of a file of udev(7) that makes it again at boot, where plumb's drop-in file does not: that has kernel
    /// variables alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_boot: Option<String>,
    /// Where this is from.
    pub source: String,
}

/// A change that would help and may not be made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The knob.
    pub knob: String,
    /// What it should have.
    pub to: String,
    /// Why not.
    pub why: String,
}

/// A knob that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// The knob.
    pub knob: String,
    /// What it has, where that is known.
    pub value: Option<String>,
    /// Why it stays.
    pub why: String,
}

/// What advice is worth here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Worth {
    /// It does what this path needs.
    Helps,
    /// It goes the right way, and not far enough.
    TooLittle,
    /// It is so already.
    Already,
    /// It changes nothing that matters on this path.
    NoEffect,
    /// It makes things worse.
    Harmful,
    /// The system no longer has it, or no longer heeds it.
    Obsolete,
    /// The system would not take the value, or it may not be set there.
    Impossible,
    /// Not in the catalogue, or it depends on what is not known of the host.
    Unknown,
}

impl Worth {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::TooLittle => "too little",
            Self::Already => "is so already",
            Self::NoEffect => "does nothing here",
            Self::Harmful => "HARMFUL",
            Self::Obsolete => "obsolete",
            Self::Impossible => "IMPOSSIBLE",
            Self::Unknown => "unknown",
        }
    }
}

/// A setting that somebody advises, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The knob.
    pub knob: String,
    /// The value that is advised.
    pub value: String,
    /// What it is worth on this path.
    pub worth: Worth,
    /// Why.
    pub why: String,
}

/// Version of the status document.
pub const STATUS_SCHEMA: &str = "plumb.tune-status/1";

/// What is applied on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneStatus {
    /// Always [`STATUS_SCHEMA`].
    pub schema: String,
    /// Whether there is a journal of changes.
    pub applied: bool,
    /// Whether all of them were made.
    pub complete: bool,
    /// When that began, RFC 3339 in UTC.
    pub started: Option<String>,
    /// When it is to be undone by itself, RFC 3339 in UTC.
    pub until: Option<String>,
    /// Each change.
    pub settings: Vec<AppliedSetting>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSetting {
    /// What was changed.
    pub target: String,
    /// What it was; absent for a file that was not there.
    pub old: Option<String>,
    /// What plumb gave it.
    pub new: Option<String>,
    /// How it is: `as-set`, `as-before`, `changed` by somebody since, `unreadable`.
    pub standing: String,
}
