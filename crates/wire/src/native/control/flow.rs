//! What a phase is made of: groups of equal streams. Streams are numbered from 0 in each
//! direction, group after group.

mod dscp;
pub mod quic;
pub mod transactions;
pub mod udp;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::native::spec::{DEFAULT_CONGESTION_CONTROL, MAX_CC_NAME_BYTES};
pub use dscp::DSCP;
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Transport;
use quic::QuicFlow;
use transactions::TransactionFlow;
use udp::UdpFlow;

/// A number of equal streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    pub count: u32,
    /// The direction of their data.
    pub role: OneDirection,
    /// What each of them is.
    #[serde(flatten)]
    pub flow: Flow,
}

/// One stream, as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Flow {
    /// As much as TCP takes.
    Tcp(TcpFlow),
    /// Datagrams on a schedule.
    Udp(UdpFlow),
    /// As much as QUIC takes.
    Quic(QuicFlow),
    /// Requests and their answers; the direction is up.
    Transactions(TransactionFlow),
}

/// A TCP connection that carries as much as it can.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpFlow {
    /// Congestion control of the sender; CUBIC when absent, Reno below one that yields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// DSCP of both ends' packets, 0 to 63 (RFC 2474).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Send and receive buffer of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Largest segment of both directions, as the client announces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u16>,
    /// Most that the sender sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Bytes that the sender hands to the kernel at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u32>,
    /// The sender has its payload sent from where it lies (sendfile).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zero_copy: bool,
    /// The receiver drops its payload unseen (MSG_TRUNC).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
    /// The server's end of it is a file on its disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub far_disk: bool,
    /// Small segments leave at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_delay: bool,
    /// The SYN carries the first data (RFC 7413).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast_open: bool,
    /// The sender yields to all other traffic (LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Multipath TCP (RFC 8684).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mptcp: bool,
    /// ECN is wanted (RFC 3168). A program cannot request it from its kernel; it can only read whether the connection
    /// has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// Whether it is encrypted (TLS 1.3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// Requests of the client and their answers go between its payload
    /// ([`record`](crate::native::record)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
}

/// A connection that is probed while it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Its load begins so long after the phase, so that the number of loaded connections can grow
    /// without a word between the ends.
    pub starts_after_s: f64,
}

impl Flow {
    /// What it asks of TCP, if it is that.
    pub fn tcp(&self) -> Option<&TcpFlow> {
        match self {
            Self::Tcp(flow) => Some(flow),
            _ => None,
        }
    }

    /// What it asks of UDP, if it is that.
    pub fn udp(&self) -> Option<&UdpFlow> {
        match self {
            Self::Udp(flow) => Some(flow),
            _ => None,
        }
    }

    /// What it asks of QUIC, if it is that.
    pub fn quic(&self) -> Option<&QuicFlow> {
        match self {
            Self::Quic(flow) => Some(flow),
            _ => None,
        }
    }

    /// What it asks of transactions, if it is that.
    pub fn transactions(&self) -> Option<&TransactionFlow> {
        match self {
            Self::Transactions(flow) => Some(flow),
            _ => None,
        }
    }

    /// Whether its data connection is to be encrypted.
    pub fn is_tls(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.tls,
            // QUIC has a handshake of its own.
            Self::Udp(_) | Self::Quic(_) => false,
            Self::Transactions(flow) => flow.is_tls(),
        }
    }

    /// What carries a stream: over TCP a connection of its own that begins with a preamble, over UDP a pair of
    /// addresses, made known by datagrams.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) | Self::Transactions(_) => Transport::Tcp,
            Self::Udp(_) | Self::Quic(_) => Transport::Udp,
        }
    }
}

impl Flows {
    /// So many TCP connections.
    pub fn tcp(count: u32, role: OneDirection, flow: TcpFlow) -> Self {
        Self {
            count,
            role,
            flow: Flow::Tcp(flow),
        }
    }

    /// Whether a far end may be asked for it.
    ///
    /// # Errors
    /// The reason and the message for a client that asks for something impossible.
    pub fn check(&self) -> Result<(), (Refusal, String)> {
        match &self.flow {
            Flow::Tcp(flow) => flow.check(),
            Flow::Udp(flow) => flow.check(),
            Flow::Quic(flow) => flow.check(),
            Flow::Transactions(_) if self.role == OneDirection::Down => Err((
                Refusal::Malformed,
                "the client asks, so the direction of transactions is up".to_owned(),
            )),
            Flow::Transactions(flow) => flow.check(),
        }
    }
}

impl TcpFlow {
    /// The congestion control that is asked for.
    pub fn congestion_control(&self) -> &str {
        self.cc.as_deref().unwrap_or(if self.background {
            BELOW_BACKGROUND
        } else {
            DEFAULT_CONGESTION_CONTROL
        })
    }

    fn check(&self) -> Result<(), (Refusal, String)> {
        let is_a_name = |cc: &str| {
            (1..=MAX_CC_NAME_BYTES).contains(&cc.len())
                && cc
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        if !self.cc.as_deref().is_none_or(is_a_name) {
            return Err((
                Refusal::Malformed,
                "no congestion control can have the name that was asked for".into(),
            ));
        }
        if self.tls && (self.zero_copy || self.discard) {
            return Err((
                Refusal::Malformed,
                "an encrypted stream is copied: it can be neither sent in place nor dropped unseen"
                    .into(),
            ));
        }
        if self.far_disk && (self.zero_copy || self.discard) {
            return Err((
                Refusal::Malformed,
                "what goes between a file and the network is copied".into(),
            ));
        }
        if let Some(probed) = &self.probed {
            if self.zero_copy || self.discard || self.far_disk || self.background {
                return Err((
                    Refusal::Malformed,
                    "a connection that is probed carries bytes from memory, copied, as fast as it can"
                        .into(),
                ));
            }
            if !STARTS_AFTER_S.contains(&probed.starts_after_s) {
                return Err((
                    Refusal::Malformed,
                    format!(
                        "a load begins {} to {} s after its phase, not {}",
                        STARTS_AFTER_S.start(),
                        STARTS_AFTER_S.end(),
                        probed.starts_after_s
                    ),
                ));
            }
        }
        let between = |what: &str, value: Option<u64>, range: &RangeInclusive<u64>| match value {
            Some(value) if !range.contains(&value) => Err((
                Refusal::Malformed,
                format!(
                    "{what} is {} to {}, not {value}",
                    range.start(),
                    range.end()
                ),
            )),
            _ => Ok(()),
        };
        between("a DSCP", self.dscp.map(u64::from), &DSCP)?;
        between(
            "a window in bytes",
            self.window_bytes.map(u64::from),
            &WINDOW_BYTES,
        )?;
        between(
            "a segment size in bytes",
            self.mss_bytes.map(u64::from),
            &MSS_BYTES,
        )?;
        between(
            "a write in bytes",
            self.write_bytes.map(u64::from),
            &WRITE_BYTES,
        )?;
        between("a pacing rate in bit/s", self.pacing_bps, &PACING_BPS)
    }
}

/// Congestion control that runs below a sender which yields: Reno halves its window where CUBIC
/// keeps 0.7 of it, every kernel has it, and any user may use it.
const BELOW_BACKGROUND: &str = "reno";

/// DSCP of traffic that may be starved: lower effort (RFC 8622).
pub const LOWER_EFFORT: u8 = 1;

/// Within the phase, however long that is: a day.
pub const STARTS_AFTER_S: RangeInclusive<f64> = 0.0..=86_400.0;

/// From half of what Linux makes of the smallest receive buffer (SOCK_MIN_RCVBUF, 2304 bytes) to
/// the largest window that RFC 7323 can announce.
pub const WINDOW_BYTES: RangeInclusive<u64> = 1152..=1 << 30;

/// TCP_MAXSEG of Linux, from TCP_MIN_MSS to MAX_TCP_WINDOW (`include/net/tcp.h`).
pub const MSS_BYTES: RangeInclusive<u64> = 88..=32_767;

/// From one byte to 4 MiB, the stock limit of a send buffer.
pub const WRITE_BYTES: RangeInclusive<u64> = 1..=4 << 20;

/// From a tenth of a modem's rate to 1.6 Tbit/s, the fastest Ethernet (IEEE 802.3dj).
pub const PACING_BPS: RangeInclusive<u64> = 1_000..=1_600_000_000_000;

/// The streams of one direction with their numbers.
pub fn streams(flows: &[Flows], role: OneDirection) -> impl Iterator<Item = (u32, &Flow)> {
    flows
        .iter()
        .filter(move |flows| flows.role == role)
        .flat_map(|flows| (0..flows.count).map(|_| &flows.flow))
        .zip(0..)
        .map(|(flow, number)| (number, flow))
}

/// One of them; `None` when there is no such.
pub fn stream(flows: &[Flows], role: OneDirection, number: u32) -> Option<&Flow> {
    streams(flows, role)
        .find(|(known, _)| *known == number)
        .map(|(_, flow)| flow)
}

/// How many streams there are in one direction.
pub fn count(flows: &[Flows], role: OneDirection) -> u64 {
    flows
        .iter()
        .filter(|flows| flows.role == role)
        .map(|flows| u64::from(flows.count))
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn streams_are_numbered_in_each_direction_group_after_group() {
        let cc = |name: &str| TcpFlow {
            cc: Some(name.into()),
            ..TcpFlow::default()
        };
        let flows = [
            Flows::tcp(2, OneDirection::Up, cc("cubic")),
            Flows::tcp(1, OneDirection::Down, cc("bbr")),
            Flows::tcp(1, OneDirection::Up, cc("reno")),
        ];
        let up: Vec<_> = streams(&flows, OneDirection::Up).collect();
        let [a, b, c] = up.as_slice() else {
            panic!("{up:?}")
        };
        assert_eq!((a.0, b.0, c.0), (0, 1, 2));
        assert_eq!((a.1, b.1), (c_of(&flows, 0), c_of(&flows, 0)));
        assert_eq!(c.1, c_of(&flows, 2));
        assert_eq!(
            (
                count(&flows, OneDirection::Up),
                count(&flows, OneDirection::Down)
            ),
            (3, 1)
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refusal = |flow: TcpFlow| Flows::tcp(1, OneDirection::Up, flow).check().err();
        let base = TcpFlow::default;
        assert_eq!(refusal(base()), None);
        let most = TcpFlow {
            pacing_bps: Some(*PACING_BPS.end()),
            mss_bytes: Some(88),
            window_bytes: Some(1 << 30),
            ..base()
        };
        assert_eq!(refusal(most), None);
        for (flow, what) in [
            (
                TcpFlow {
                    tls: true,
                    discard: true,
                    ..base()
                },
                "encrypted",
            ),
            (
                TcpFlow {
                    far_disk: true,
                    zero_copy: true,
                    ..base()
                },
                "file",
            ),
            (
                TcpFlow {
                    probed: Some(Probed {
                        starts_after_s: 0.0,
                    }),
                    discard: true,
                    ..base()
                },
                "copied",
            ),
            (
                TcpFlow {
                    probed: Some(Probed {
                        starts_after_s: f64::NAN,
                    }),
                    ..base()
                },
                "begins",
            ),
            (
                TcpFlow {
                    dscp: Some(64),
                    ..base()
                },
                "DSCP",
            ),
            (
                TcpFlow {
                    mss_bytes: Some(87),
                    ..base()
                },
                "segment",
            ),
            (
                TcpFlow {
                    window_bytes: Some(1),
                    ..base()
                },
                "window",
            ),
            (
                TcpFlow {
                    write_bytes: Some(0),
                    ..base()
                },
                "write",
            ),
            (
                TcpFlow {
                    pacing_bps: Some(u64::MAX),
                    ..base()
                },
                "pacing",
            ),
            (
                TcpFlow {
                    cc: Some("a b".into()),
                    ..base()
                },
                "congestion",
            ),
        ] {
            let (reason, message) = refusal(flow).unwrap();
            assert!(
                reason == Refusal::Malformed && message.contains(what),
                "{message}"
            );
        }
    }

    fn c_of(flows: &[Flows], group: usize) -> &Flow {
        &flows.get(group).unwrap().flow
    }

    #[test]
    fn flows_look_as_specified() {
        let flows = Flows::tcp(2, OneDirection::Down, TcpFlow::default());
        assert_eq!(
            serde_json::to_string(&flows).unwrap(),
            r#"{"count":2,"role":"down","protocol":"tcp"}"#
        );
        let short = r#"{"count":2,"role":"down","protocol":"tcp"}"#;
        assert_eq!(serde_json::from_str::<Flows>(short).unwrap(), flows);
    }
}
