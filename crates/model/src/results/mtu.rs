//! How large packets may be on a path.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of packets that a path takes whole. Sizes are of whole IP packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtuResult {
    /// Address probed.
    pub address: String,
    /// The largest packet that gets to the far end; absent where the far end did not answer.
    pub path_mtu_bytes: Option<u32>,
    /// The path takes at least that, and may take more: larger packets, which the interface sends, were not tried.
    #[serde(default)]
    pub path_mtu_at_least: bool,
    /// The largest packet that the interface here sends.
    pub interface_mtu_bytes: Option<u32>,
    /// The largest size that was tried.
    pub largest_tried_bytes: u32,
    /// Whether it was stopped before it had ended: the sizes are those known by then.
    #[serde(default)]
    pub partial: bool,
    /// How the sizes are known.
    pub method: MtuMethod,
    /// Which way `path_mtu_bytes` is of.
    pub direction: MtuDirection,
    /// Every hop to the far end, which is the last where it answered.
    pub hops: Vec<MtuHop>,
    /// The last hop that large packets were seen to reach where they vanish without a message:
    /// a black hole begins behind it. Zero stands for this host.
    pub black_hole_after: Option<u8>,
    /// Probes sent.
    pub sent: u64,
    /// What became of TCP's maximum segment size; absent where nobody answered over TCP.
    pub mss: Option<MssResult>,
    /// What TCP of this host does about packets that do not fit.
    pub tcp: TcpMtu,
}

impl MtuResult {
    /// Whether a size that gets through is only the largest that was tried of what may be sent.
    pub fn is_bound(&self, bytes: u32) -> bool {
        let largest = self.largest_tried_bytes;
        bytes == largest && self.interface_mtu_bytes.is_none_or(|sends| sends > largest)
    }
}

vocabulary! {
    /// How the sizes of a path are known.
    pub enum MtuMethod {
        /// The largest packet that was tried got through.
        Unlimited = "unlimited",
        /// Routers told that packets were too big (RFC 1191, RFC 8201), and probes confirmed it.
        Told = "told",
        /// By probes alone, which routers were silent about, or were not listened to (RFC 8899).
        Probed = "probed",
        /// Partly by messages, partly by probes.
        Mixed = "mixed",
    }
}

/// Which way a size is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MtuDirection {
    /// Towards the far end: the answers were small.
    Forward,
    /// Both: the answers were as large as the probes.
    RoundTrip,
}

/// A hop and what gets to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtuHop {
    /// Number of the hop; 1 is the first router.
    pub ttl: u8,
    /// Who answered; absent where nobody did.
    pub address: Option<String>,
    /// The largest packet that gets there; absent where it is not known.
    pub mtu_bytes: Option<u32>,
    /// What this hop told of the line behind it; absent where it told nothing.
    pub told_mtu_bytes: Option<u32>,
}

/// TCP's maximum segment size on its way (RFC 9293, section 3.7.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MssResult {
    /// TCP port that was asked.
    pub port: u16,
    /// What the SYN announced.
    pub sent_bytes: u32,
    /// What the SYN had become when it got to each hop that quoted it.
    pub hops: Vec<MssHop>,
    /// What the answer (SYN and ACK) announced; absent where none came.
    pub answered_bytes: Option<u32>,
    /// The last hop that the SYN reached unchanged before it was lowered; zero stands for this
    /// host. Absent where it was not seen to be lowered.
    pub clamped_after: Option<u8>,
    /// What it was lowered to there.
    pub lowered_to_bytes: Option<u32>,
    /// The answer announces less than the path carries: lowered on the way, or the far end's own
    /// setting. Absent where either is not known.
    pub answer_below_path: Option<bool>,
}

/// A hop and the maximum segment size that it saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MssHop {
    /// Number of the hop.
    pub ttl: u8,
    /// Who quoted the SYN.
    pub address: String,
    /// What it announced there.
    pub mss_bytes: u32,
}

/// What TCP of this host does about packets that do not fit (Linux Documentation, ip-sysctl).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpMtu {
    /// net.ipv4.tcp_mtu_probing: 0 never probes (RFC 4821), 1 once a black hole is noticed, 2
    /// always.
    pub mtu_probing: Option<u8>,
    /// net.ipv4.tcp_base_mss: what it goes down to when it probes.
    pub base_mss_bytes: Option<u32>,
    /// net.ipv4.ip_no_pmtu_disc: 0 listens to routers' messages, anything else does less.
    pub no_pmtu_disc: Option<u8>,
    /// What the kernel held of the path's MTU before it was probed.
    pub known_mtu_bytes: Option<u32>,
}
