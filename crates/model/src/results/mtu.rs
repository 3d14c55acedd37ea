//! How large packets may be on a path.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of packets that a path takes whole. Sizes are of whole IP packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtuResult {
    /// IP address that was probed.
    pub address: String,
    /// Largest packet in bytes that reaches the far end. Null where the far end did not answer.
    pub path_mtu_bytes: Option<u32>,
    /// The path takes at least that, and may take more: larger packets, which the interface sends, were not tried.
    #[serde(default)]
    pub path_mtu_at_least: bool,
    /// Largest packet in bytes that the interface here sends. Null where it is unknown.
    pub interface_mtu_bytes: Option<u32>,
    /// Largest size that was tried, in bytes.
    pub largest_tried_bytes: u32,
    /// Whether it was stopped before it had ended: the sizes are those known by then.
    #[serde(default)]
    pub partial: bool,
    /// How the sizes are known.
    pub method: MtuMethod,
    /// Direction that `path_mtu_bytes` is of.
    pub direction: MtuDirection,
    /// Every hop to the far end. The last is the far end where it answered.
    pub hops: Vec<MtuHop>,
    /// The last hop that large packets were seen to reach where they vanish without a message: a black hole begins
    /// behind it. 0 means this host. Null where there is no black hole.
    pub black_hole_after: Option<u8>,
    /// Largest answer in bytes that came back, where larger ones vanished though larger packets reached the far end: the
    /// reverse path is the narrower one. Null where answers were as large as probes, or small.
    #[serde(default)]
    pub way_back_bytes: Option<u32>,
    /// Probes that left this host.
    pub sent: u64,
    /// What became of TCP's maximum segment size. Null without an answer over TCP.
    pub mss: Option<MssResult>,
    /// What TCP of this host does about packets that do not fit.
    pub tcp: TcpMtu,
}

impl MtuResult {
    /// Largest packet in bytes that passes in both directions, as far as known.
    pub fn narrowest_bytes(&self) -> Option<u32> {
        [self.path_mtu_bytes, self.way_back_bytes]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sizes in bytes between which packets vanish without a message: the largest that passes, and the largest tried.
    /// `None` where none vanished so.
    pub fn swallows(&self) -> Option<(u32, u32)> {
        let silent = self.black_hole_after.is_some() || self.way_back_bytes.is_some();
        let passes = self.narrowest_bytes().filter(|_| silent)?;
        (passes < self.largest_tried_bytes).then_some((passes, self.largest_tried_bytes))
    }

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
        Unlimited = "unlimited" as "the largest passed",
        /// Routers reported that packets were too big (RFC 1191, RFC 8201), and probes confirmed it.
        Told = "told" as "routers",
        /// By probes alone, which routers were silent about, or were not listened to (RFC 8899).
        Probed = "probed" as "silence",
        /// Partly by messages, partly by probes.
        Mixed = "mixed" as "routers and silence",
    }
}

vocabulary! {
    /// The direction that a size is of.
    pub enum MtuDirection {
        /// Towards the far end: the answers were small.
        Forward = "forward" as "the forward path",
        /// Both: the answers were as large as the probes.
        RoundTrip = "round_trip" as "both directions",
    }
}

/// A hop and the largest packet that reaches it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtuHop {
    /// Number of the hop; 1 is the first router.
    pub ttl: u8,
    /// Address that answered. Null without an answer.
    pub address: Option<String>,
    /// Largest packet in bytes that reaches the hop. Null where it is unknown.
    pub mtu_bytes: Option<u32>,
    /// MTU in bytes that this hop reported of the line behind it. Null where it reported none.
    pub told_mtu_bytes: Option<u32>,
}

/// TCP's maximum segment size along the path (RFC 9293, section 3.7.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MssResult {
    /// TCP port that was asked.
    pub port: u16,
    /// Maximum segment size in bytes that the SYN announced.
    pub sent_bytes: u32,
    /// What the SYN had become when it got to each hop that quoted it.
    pub hops: Vec<MssHop>,
    /// Maximum segment size in bytes that the answer (SYN and ACK) announced. Null where none came.
    pub answered_bytes: Option<u32>,
    /// The last hop that the SYN reached unchanged before its value was lowered. 0 means this host. Null where it was
    /// not seen to be lowered.
    pub clamped_after: Option<u8>,
    /// Maximum segment size in bytes to which it was lowered there. Null where it was not seen to be lowered.
    pub lowered_to_bytes: Option<u32>,
    /// Whether the answer announces less than the path carries: lowered on the path, or the far end's own setting. Null
    /// where either is unknown.
    pub answer_below_path: Option<bool>,
}

/// A hop and the maximum segment size that it saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MssHop {
    /// Number of the hop.
    pub ttl: u8,
    /// Address that quoted the SYN.
    pub address: String,
    /// Maximum segment size in bytes that the SYN announced there.
    pub mss_bytes: u32,
}

/// What TCP of this host does about packets that do not fit (Linux Documentation, ip-sysctl).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpMtu {
    /// net.ipv4.tcp_mtu_probing: 0 never probes (RFC 4821), 1 once a black hole is noticed, 2 always. Null where it
    /// could not be read.
    pub mtu_probing: Option<u8>,
    /// net.ipv4.tcp_base_mss: segment size in bytes that TCP falls back to when it probes. Null where it could not be
    /// read.
    pub base_mss_bytes: Option<u32>,
    /// net.ipv4.ip_no_pmtu_disc: 0 heeds the messages of routers, anything else does less. Null where it could not be
    /// read.
    pub no_pmtu_disc: Option<u8>,
    /// MTU of the path in bytes that the kernel had stored before it was probed. Null where it had none.
    pub known_mtu_bytes: Option<u32>,
}
