//! A stream of datagrams: their size, their marks, and the pattern in which they depart.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::dscp::DSCP;
use crate::native::control::refusal::Refusal;
use crate::native::datagram::HEADER_BYTES;

/// Largest payload of a UDP datagram over IPv4 (65,535 less headers of 20 and 8 bytes).
pub const MAX_PAYLOAD_BYTES: u16 = 65_507;

/// The fastest interface that is specified (IEEE 802.3dj, 1.6 Tbit/s).
pub const MAX_RATE_BPS: f64 = 1.6e12;

/// Segments of one send: what every kernel with UDP_SEGMENT takes (UDP_MAX_SEGMENTS was 64
/// before Linux 6.9).
pub const MAX_GSO_SEGMENTS: u16 = 64;

/// Departures of a trace: at the longest that one is written in JSON, so many fit a client's
/// frame ([`MAX_CLIENT_FRAME_BYTES`](crate::native::spec::MAX_CLIENT_FRAME_BYTES)).
pub const MAX_TRACE_PACKETS: usize = 8192;

/// Times of [`Pattern::OnOff`]: from what one system call takes, below which no host switches, to a
/// day, above which no phase lasts.
pub const TIMES_S: RangeInclusive<f64> = 1e-6..=86_400.0;

/// Datagrams of one sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UdpFlow {
    /// UDP payload of each datagram; a trace says its own sizes.
    pub payload_bytes: u16,
    pub pattern: Pattern,
    /// Seed of a pattern that is drawn.
    #[serde(default)]
    pub seed: u64,
    /// DSCP, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// ECN codepoint (RFC 3168); not ECN-capable when absent.
    pub ecn: Option<Ecn>,
    /// Datagrams handed to the kernel in one send, which cuts them late (UDP_SEGMENT); they
    /// depart together. One by one when absent.
    pub gso: Option<u16>,
    /// Whether the receiver takes trains of datagrams from the kernel as one (UDP_GRO): they
    /// then share the time at which the first came.
    #[serde(default)]
    pub gro: bool,
    /// Whether datagrams above the path's MTU are refused, not cut into fragments.
    #[serde(default)]
    pub dont_fragment: bool,
    /// Receive buffer to ask for; the receiver's own choice when absent.
    pub receive_buffer_bytes: Option<u32>,
}

/// ECN-capable transport, as its sender marks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// ECT(0): answers marks as losses (RFC 3168).
    Ect0,
    /// ECT(1): low latency, low loss and scalable throughput (RFC 9331).
    Ect1,
}

impl Ecn {
    pub fn bits(self) -> u8 {
        match self {
            Self::Ect1 => 1,
            Self::Ect0 => 2,
        }
    }
}

/// When datagrams depart, by a clock that does not wait for anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pattern {
    /// As fast as the host sends.
    Max,
    Constant {
        pps: f64,
    },
    /// At exponential intervals, one packet at a time.
    Poisson {
        /// Datagrams a second in the mean.
        pps: f64,
    },
    /// At equal intervals for a while, then not at all.
    OnOff {
        /// Datagrams a second while on.
        pps: f64,
        /// How long it is on.
        on_s: f64,
        /// How long it is off.
        off_s: f64,
        /// Whether the two are those times, or their means.
        times: Times,
    },
    /// As listed, from the beginning again when the list ends.
    Trace {
        /// Seconds since the departure before, and UDP payload in bytes.
        packets: Vec<(f64, u16)>,
    },
}

/// How long the times of [`Pattern::OnOff`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    Fixed,
    /// Exponentially distributed with that mean.
    Exponential,
}

impl Pattern {
    /// The word for it in Runs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Constant { .. } => "constant",
            Self::Poisson { .. } => "poisson",
            Self::OnOff { .. } => "on-off",
            Self::Trace { .. } => "trace",
        }
    }

    /// Datagrams a second in the mean; absent where the host decides.
    pub fn mean_pps(&self) -> Option<f64> {
        match self {
            Self::Max => None,
            Self::Constant { pps } | Self::Poisson { pps } => Some(*pps),
            Self::OnOff {
                pps, on_s, off_s, ..
            } => Some(pps * on_s / (on_s + off_s)),
            Self::Trace { packets } => Some(packets.len() as f64 / total_s(packets)),
        }
    }
}

impl UdpFlow {
    /// Datagrams one by one, unmarked.
    pub fn new(payload_bytes: u16, pattern: Pattern) -> Self {
        Self {
            payload_bytes,
            pattern,
            seed: 0,
            dscp: None,
            ecn: None,
            gso: None,
            gro: false,
            dont_fragment: false,
            receive_buffer_bytes: None,
        }
    }

    /// Payload a second in the mean; absent where the host decides.
    pub fn mean_bps(&self) -> Option<f64> {
        let mean_bytes = match &self.pattern {
            Pattern::Trace { packets } => {
                packets
                    .iter()
                    .map(|(_, size)| f64::from(*size))
                    .sum::<f64>()
                    / packets.len() as f64
            }
            _ => f64::from(self.payload_bytes),
        };
        self.pattern.mean_pps().map(|pps| pps * mean_bytes * 8.0)
    }

    pub fn largest_bytes(&self) -> u16 {
        match &self.pattern {
            Pattern::Trace { packets } => packets.iter().map(|(_, size)| *size).max().unwrap_or(0),
            _ => self.payload_bytes,
        }
    }

    pub(super) fn check(&self) -> Result<(), (Refusal, String)> {
        self.fault()
            .map_or(Ok(()), |fault| Err((Refusal::Malformed, fault)))
    }

    fn fault(&self) -> Option<String> {
        if self.dscp.is_some_and(|dscp| !DSCP.contains(&dscp.into())) {
            return Some(format!("a DSCP is {} to {}", DSCP.start(), DSCP.end()));
        }
        let mut sizes: Box<dyn Iterator<Item = u16>> = match &self.pattern {
            Pattern::Trace { packets } => Box::new(packets.iter().map(|(_, size)| *size)),
            _ => Box::new(std::iter::once(self.payload_bytes)),
        };
        let smallest = HEADER_BYTES as u16;
        if let Some(size) = sizes.find(|size| !(smallest..=MAX_PAYLOAD_BYTES).contains(size)) {
            return Some(format!(
                "datagrams of {size} bytes, where {smallest} (what plumb writes into each) to {MAX_PAYLOAD_BYTES} are possible"
            ));
        }
        pattern_fault(&self.pattern)
            .or_else(|| self.gso_fault())
            .or_else(|| self.rate_fault())
    }

    fn gso_fault(&self) -> Option<String> {
        let segments = self.gso?;
        let whole = u32::from(segments) * u32::from(self.payload_bytes);
        if !(2..=MAX_GSO_SEGMENTS).contains(&segments) {
            Some(format!(
                "{segments} segments a send, where 2 to {MAX_GSO_SEGMENTS} are possible"
            ))
        } else if whole > u32::from(MAX_PAYLOAD_BYTES) {
            Some(format!(
                "{segments} segments of {} bytes, where one send takes {MAX_PAYLOAD_BYTES} bytes in all",
                self.payload_bytes
            ))
        } else if matches!(self.pattern, Pattern::Trace { .. }) {
            Some("segments of one send are of one size, and segments of a trace are not".to_owned())
        } else {
            None
        }
    }

    fn rate_fault(&self) -> Option<String> {
        // While it is on, and not in the mean, is what an interface has to carry.
        let pps = match self.pattern {
            Pattern::OnOff { pps, .. } => Some(pps),
            _ => self.pattern.mean_pps(),
        }?;
        let bps = pps * f64::from(self.largest_bytes()) * 8.0;
        (bps > MAX_RATE_BPS).then(|| {
            format!(
                "a rate of {bps:.3e} bit/s, which no interface has: the fastest has {MAX_RATE_BPS:.1e}"
            )
        })
    }
}

fn total_s(packets: &[(f64, u16)]) -> f64 {
    packets.iter().map(|(interval_s, _)| interval_s).sum()
}

fn pattern_fault(pattern: &Pattern) -> Option<String> {
    let positive = |value: f64| value > 0.0 && value.is_finite();
    match pattern {
        Pattern::Max => None,
        Pattern::Constant { pps } | Pattern::Poisson { pps } => {
            (!positive(*pps)).then(|| "a rate above zero is needed".to_owned())
        }
        Pattern::OnOff {
            pps, on_s, off_s, ..
        } => {
            let time = |seconds| TIMES_S.contains(seconds);
            (!(positive(*pps) && time(on_s) && time(off_s))).then(|| {
                format!(
                    "a rate above zero is needed, and times on and off of {:e} to {} s",
                    TIMES_S.start(),
                    TIMES_S.end()
                )
            })
        }
        Pattern::Trace { packets } => {
            let sound = packets.iter().all(|(s, _)| *s >= 0.0 && s.is_finite());
            (packets.len() > MAX_TRACE_PACKETS || !sound || !positive(total_s(packets))).then(
                || {
                    format!(
                        "a trace has 1 to {MAX_TRACE_PACKETS} departures, none before the one before, and takes some time"
                    )
                },
            )
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::native::control::frame::encode_frame;
    use crate::native::control::{ClientMessage, Start, flow::Flow, flow::Flows};
    use crate::native::spec::MAX_CLIENT_FRAME_BYTES;
    use plumb_model::direction::OneDirection;

    fn fault(change: impl FnOnce(&mut UdpFlow)) -> Option<String> {
        let mut flow = UdpFlow::new(1400, Pattern::Constant { pps: 1000.0 });
        change(&mut flow);
        flow.check().err().map(|(_, why)| why)
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let says = |fault: Option<String>, words: &str| {
            let text = fault.unwrap_or_default();
            assert!(text.contains(words), "{words}: {text}");
        };
        assert_eq!(fault(|_| ()), None);
        says(fault(|f| f.payload_bytes = 31), "where 32 (");
        says(fault(|f| f.payload_bytes = 65_508), "to 65507 are possible");
        says(fault(|f| f.dscp = Some(64)), "0 to 63");
        says(fault(|f| f.gso = Some(1)), "2 to 64");
        says(fault(|f| f.gso = Some(50)), "65507 bytes in all");
        assert_eq!(fault(|f| f.gso = Some(46)), None);
        for pps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            says(
                fault(|f| f.pattern = Pattern::Poisson { pps }),
                "above zero",
            );
        }
        says(
            fault(|f| f.pattern = Pattern::Constant { pps: 2e8 }),
            "no interface has",
        );
        for odd in [0.0, 1e-300, 5e-324, 1e300, f64::NAN, f64::INFINITY, -1.0] {
            for (on_s, off_s) in [(odd, 1.0), (1.0, odd)] {
                let times = Times::Fixed;
                let pattern = Pattern::OnOff {
                    pps: 100.0,
                    on_s,
                    off_s,
                    times,
                };
                says(fault(|f| f.pattern = pattern), "1e-6 to 86400 s");
            }
        }
        let trace = |packets: Vec<(f64, u16)>| fault(|f| f.pattern = Pattern::Trace { packets });
        says(trace(vec![]), "takes some time");
        says(trace(vec![(0.0, 100)]), "takes some time");
        says(trace(vec![(1.0, 100), (-0.1, 100)]), "takes some time");
        says(trace(vec![(1.0, 10)]), "datagrams of 10 bytes");
        assert_eq!(trace(vec![(0.02, 160), (0.0, 1400)]), None);
    }

    #[test]
    fn the_mean_rate_counts_payload() {
        let mut flow = UdpFlow::new(1250, Pattern::Poisson { pps: 100.0 });
        assert_eq!(flow.mean_bps(), Some(1e6));
        flow.pattern = Pattern::OnOff {
            pps: 100.0,
            on_s: 1.0,
            off_s: 3.0,
            times: Times::Fixed,
        };
        assert_eq!(flow.mean_bps(), Some(2.5e5));
        flow.pattern = Pattern::Trace {
            packets: vec![(0.5, 1000), (1.5, 250)],
        };
        assert_eq!(
            (flow.mean_bps(), flow.largest_bytes()),
            (Some(5000.0), 1000)
        );
        flow.pattern = Pattern::Max;
        assert_eq!(flow.mean_bps(), None);
    }

    #[test]
    fn the_longest_trace_fits_a_frame() {
        let packets = vec![(119.999_999_999_999_9, MAX_PAYLOAD_BYTES); MAX_TRACE_PACKETS];
        let start = ClientMessage::Start(Start {
            phase: u32::MAX,
            flows: vec![Flows {
                count: 128,
                role: OneDirection::Down,
                flow: Flow::Udp(UdpFlow::new(1400, Pattern::Trace { packets })),
            }],
            duration_s: 119.999,
            byte_limit: Some(u64::MAX),
        });
        encode_frame(&start, MAX_CLIENT_FRAME_BYTES).unwrap();
    }

    #[test]
    fn flows_look_as_specified() {
        let flow = Flow::Udp(UdpFlow::new(
            160,
            Pattern::Trace {
                packets: vec![(0.02, 160)],
            },
        ));
        let json = serde_json::to_string(&flow).unwrap();
        assert_eq!(
            json,
            r#"{"protocol":"udp","payload_bytes":160,"pattern":{"kind":"trace","packets":[[0.02,160]]},"seed":0,"dscp":null,"ecn":null,"gso":null,"gro":false,"dont_fragment":false,"receive_buffer_bytes":null}"#
        );
        let short = r#"{"protocol":"udp","payload_bytes":160,"pattern":{"kind":"max"}}"#;
        assert_eq!(
            serde_json::from_str::<Flow>(short).unwrap(),
            Flow::Udp(UdpFlow::new(160, Pattern::Max))
        );
    }
}
