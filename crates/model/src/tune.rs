//! The vocabulary of tuning: systems, kinds of knobs, and the plan, a document of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Action, Actor};
use crate::vocabulary;

vocabulary! {
    /// An operating system that has knobs.
    pub enum Os {
        /// A host that runs Linux.
        Linux = "linux",
        /// A host that runs macOS.
        Macos = "macos",
        /// A host that runs Windows.
        Windows = "windows",
        /// A host that runs FreeBSD.
        Freebsd = "freebsd",
        /// A host that runs OpenBSD.
        Openbsd = "openbsd",
        /// A host that runs NetBSD.
        Netbsd = "netbsd",
        /// A host that runs Solaris or illumos.
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
    /// The command netsh of Windows.
    Netsh,
    /// A value in the registry of Windows.
    Registry,
    /// The command ipadm(8) of Solaris.
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
    /// Version of the document, always `plumb.tune-plan/1`.
    pub schema: String,
    /// The path that it is for.
    pub path: PlannedPath,
    /// What should change on each host that the plan is for.
    pub hosts: Vec<HostPlan>,
}

/// The path that a plan is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPath {
    /// Rate that one connection is to reach, in bit/s.
    pub rate_bps: f64,
    /// Round-trip time of the idle path, in seconds.
    pub rtt_s: f64,
    /// Share of packets, 0 to 1, that the path loses without any load. Null where it is unknown.
    pub loss_ratio: Option<f64>,
    /// Bytes in flight that fill the path.
    pub bdp_bytes: f64,
    /// Where these figures are from: options, or a Run.
    pub from: String,
}

/// What should change on one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlan {
    /// The end of the path that the host is.
    pub on: Actor,
    /// Operating system of the host.
    pub os: Os,
    /// What the host is used for.
    pub role: Role,
    /// Where the host's present settings are known from.
    pub facts_from: String,
    /// What should change, in the order in which it is done.
    pub changes: Vec<PlannedChange>,
    /// What would help and belongs to the machine, of which this is a namespace: not done here.
    pub refused: Vec<Refused>,
    /// Settings that the catalogue looked at and leaves unchanged.
    pub left: Vec<Left>,
    /// Advice of others, judged; empty where none was given.
    pub judged: Vec<Judged>,
    /// Memory that one connection may take after the change, in bytes, send and receive buffer together. Null where no
    /// change sets a buffer.
    pub memory_bytes: Option<u64>,
    /// What else must be known of the plan.
    pub notes: Vec<String>,
}

/// One change of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedChange {
    /// Name of the setting to change.
    pub knob: String,
    /// How the setting is changed.
    pub kind: Kind,
    /// Value that the setting has at present. Null where it is unknown.
    pub from: Option<String>,
    /// Value that the setting should have.
    pub to: String,
    /// What the change reaches: the network namespace, or the whole machine.
    pub scope: Scope,
    /// Reason for the change, in a sentence.
    pub why: String,
    /// Effect that is to be seen after the change.
    pub effect: String,
    /// What may go wrong with the change.
    pub risk: String,
    /// Memory that one connection may take after the change, in bytes. Null where the change does not bear on it.
    pub memory_bytes: Option<u64>,
    /// The change itself. Null where plumb cannot make it.
    pub action: Option<Action>,
    /// Line of a file of udev(7) that makes the change again at boot. Absent for kernel variables, which plumb's
    /// drop-in file brings back, and where udev cannot make the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_boot: Option<String>,
    /// Where the rule for the value is from.
    pub source: String,
}

/// A change that would help and may not be made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Name of the setting.
    pub knob: String,
    /// Value that the setting should have.
    pub to: String,
    /// Reason why it may not be changed here.
    pub why: String,
}

/// A knob that stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// Name of the setting that stays.
    pub knob: String,
    /// Value that the setting has. Null where it is unknown.
    pub value: Option<String>,
    /// Reason why it stays, in a sentence.
    pub why: String,
}

vocabulary! {
    /// What advice is worth here.
    pub enum Worth {
        /// It does what this path needs.
        Helps = "helps",
        /// It goes the right way, and not far enough.
        TooLittle = "too-little" as "too little",
        /// The host has it already.
        Already = "already" as "is so already",
        /// It changes nothing that matters on this path.
        NoEffect = "no-effect" as "does nothing here",
        /// It makes things worse.
        Harmful = "harmful" as "HARMFUL",
        /// The system no longer has it, or no longer heeds it.
        Obsolete = "obsolete",
        /// The system would not take the value, or it may not be set there.
        Impossible = "impossible" as "IMPOSSIBLE",
        /// Not in the catalogue, or it depends on what is not known of the host.
        Unknown = "unknown",
    }
}

/// A setting from advice, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// Name of the setting that the advice is about.
    pub knob: String,
    /// The value that is advised.
    pub value: String,
    /// What it is worth on this path.
    pub worth: Worth,
    /// Reason for the judgement, in a sentence.
    pub why: String,
}

/// Version of the status document.
pub const STATUS_SCHEMA: &str = "plumb.tune-status/1";

/// What is applied on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneStatus {
    /// Version of the document, always `plumb.tune-status/1`.
    pub schema: String,
    /// Whether there is a journal of changes.
    pub applied: bool,
    /// Whether all changes of the journal were made.
    pub complete: bool,
    /// When the changes began, RFC 3339 in UTC. Null where nothing is applied.
    pub started: Option<String>,
    /// When the changes are to be undone without being asked, RFC 3339 in UTC. Null where they stay until they are
    /// undone.
    pub until: Option<String>,
    /// Each change with its values and its state.
    pub settings: Vec<AppliedSetting>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSetting {
    /// The setting or file that was changed.
    pub target: String,
    /// Value before the change. Null for a file that did not exist.
    pub old: Option<String>,
    /// Value that plumb set. Null for a file that was removed.
    pub new: Option<String>,
    /// State of the setting now: `as-set`, `as-before`, `changed` since by another program, `gone`, `unreadable`.
    pub standing: String,
}
