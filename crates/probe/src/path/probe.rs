//! A probe, what answers it, and the network between: the seam of everything that explores paths.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_wire::icmp::Version;
use plumb_wire::icmp_report::{MplsLabel, Report};
use plumb_wire::ip::IpPacket;

/// A probe to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// How many hops it lives: the router at which it ends answers.
    pub hops: u8,
    /// Which flow, from 0: probes of one flow take one way where routers share traffic by flow.
    pub flow: u16,
    /// Size of the whole IP packet in bytes; zero for the smallest.
    pub size_bytes: u16,
    /// Whether routers must not cut it (IPv4).
    pub dont_fragment: bool,
    /// Type of service, or traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Whether a TCP probe asks for ECN.
    pub ask_ecn: bool,
    /// What fills ICMP and UDP probes that are larger than the smallest.
    pub fill: u8,
}

impl Probe {
    /// The smallest probe that lives for so many hops.
    pub fn to(hops: u8) -> Self {
        Self {
            hops,
            flow: 0,
            size_bytes: 0,
            dont_fragment: false,
            traffic_class: 0,
            ask_ecn: false,
            fill: 0,
        }
    }
}

/// Names a probe that was sent, the same for as long as the network is used; from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerKind {
    Icmp(Report),
    /// The target's echo reply.
    EchoReply,
    /// The target takes connections on that port (SYN and ACK).
    SynAck,
    /// The target refuses connections on that port (RST).
    Reset,
    /// A program at the target answered by UDP.
    Datagram,
}

/// An answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub from: IpAddr,
    pub kind: AnswerKind,
    /// Time to live, or hop limit, that was left when it came in.
    pub hop_limit: Option<u8>,
    /// The beginning of the probe as the answerer received it, from the IP header on; empty where
    /// none is quoted or the sockets of this access do not show it.
    pub quote: Vec<u8>,
    /// MPLS labels that the probe bore when it ended, the outermost first.
    pub labels: Vec<MplsLabel>,
    /// The TCP segment of a [`AnswerKind::SynAck`], from its header on; otherwise empty.
    pub segment: Vec<u8>,
}

impl Answer {
    /// An answer that quotes nothing.
    pub fn plain(from: IpAddr, kind: AnswerKind, hop_limit: Option<u8>) -> Self {
        Self {
            from,
            kind,
            hop_limit,
            quote: Vec::new(),
            labels: Vec::new(),
            segment: Vec::new(),
        }
    }

    /// The quoted packet, where enough of it is there.
    pub fn quoted(&self) -> Option<IpPacket<'_>> {
        IpPacket::parse(&self.quote)
    }

    /// The version of ICMP that is spoken.
    pub fn version(&self) -> Version {
        if self.from.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        }
    }

    /// Whether the probe got to its end: the target itself answered, for whatever reason. An error from a router that
    /// has the target's address is no arrival, nor is an error that only reports a packet too large or an expired time
    /// to live.
    pub fn is_arrival(&self, target: IpAddr) -> bool {
        match self.kind {
            AnswerKind::Icmp(report) => {
                report.is_port_unreachable(self.version())
                    || (self.from == target && matches!(report, Report::Unreachable(_)))
            }
            _ => true,
        }
    }

    /// The MTU of the next line, where the answer says that the probe was too large for it.
    pub fn mtu_bytes(&self) -> Option<u32> {
        match self.kind {
            AnswerKind::Icmp(Report::TooBig { mtu_bytes }) => Some(mtu_bytes),
            _ => None,
        }
    }

    /// Set where a router or this host reports that the target cannot be reached. A target that a filter prohibits may
    /// be there.
    pub fn nowhere(&self, target: IpAddr) -> Option<Nowhere> {
        let mark = self.annotation().filter(|_| !self.is_arrival(target))?;
        (mark == "!N" || mark == "!H").then_some(Nowhere {
            from: self.from,
            mark,
        })
    }

    /// traceroute's mark for it (`!H`, `!N` …), where it has one.
    pub fn annotation(&self) -> Option<String> {
        match self.kind {
            AnswerKind::Icmp(report) => report.annotation(self.version()),
            _ => None,
        }
    }
}

/// No host is there: a router, or this host, finds no route or no such host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{from} answers {mark}")]
pub struct Nowhere {
    pub from: IpAddr,
    /// traceroute's mark for it.
    pub mark: String,
}

/// The first answer to a probe, with its round trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub id: ProbeId,
    pub probe: Probe,
    /// From the probe's departure to the arrival of the answer.
    pub rtt: Duration,
    /// Whose stamps the round trip is made of.
    pub timestamps: TimestampSource,
    pub answer: Answer,
}

/// Sends probes, reports what answered, and knows the time.
pub trait HopNetwork {
    fn now_ns(&mut self) -> u64;

    /// Sends a probe.
    ///
    /// # Errors
    /// When our own machine does not send it: `EMSGSIZE` where it is larger than our own
    /// interface's MTU, no route, our own queue full.
    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId>;

    /// The next answer, or `None` when there is none until CLOCK_MONOTONIC reaches `until_ns`, or
    /// sooner; a time in the past means not to wait. Each probe is answered once at most; what comes
    /// again is left out, as is what belongs to no probe.
    ///
    /// # Errors
    /// Errors of the kernel.
    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>>;

    /// Answers that this host dropped because its own receive buffer was full, since the network was opened.
    fn dropped_here(&self) -> u64 {
        0
    }

    /// A probe as it left, from the IP header on, to hold what was quoted of it against; empty where
    /// our packets are not our own to write.
    fn as_sent(&self, _id: ProbeId, _probe: &Probe) -> Vec<u8> {
        Vec::new()
    }
}
