//! The reverse path: a client asks the responder to trace the path towards it.
//!
//! The request names no address. The responder traces towards the address of the control connection,
//! which a TCP handshake has proved, and nowhere else. It reports every probe and its answer, so that the client reads
//! them like its own. The client trusts none of it before [`TraceReport::check`].

use std::collections::BTreeSet;
use std::net::IpAddr;

use plumb_model::protocol::Protocol;
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::native::spec::{MAX_TRACE_CYCLES, MAX_TRACE_HOPS, TRACE_PROBE_TIMEOUT, TRACE_TIME};

/// Longest mark of traceroute's: `!F-` and the MTU of IPv6, of ten digits.
const MAX_MARK_BYTES: usize = 13;

/// Asks for the path from the responder to this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// Comes back in the answer.
    pub id: u32,
    /// What probes are made of: ICMP or UDP; when absent, what gets through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The last hop that is probed, 1 to [`MAX_TRACE_HOPS`].
    pub max_hops: u8,
    /// Probes to each hop, 1 to [`MAX_TRACE_CYCLES`].
    pub cycles: u8,
}

impl TraceRequest {
    /// Whether a responder may do it.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), (Refusal, String)> {
        let malformed = |message: String| Err((Refusal::Malformed, message));
        if !(1..=MAX_TRACE_HOPS).contains(&self.max_hops) {
            malformed(format!(
                "{} hops, where 1 to {MAX_TRACE_HOPS} are traced",
                self.max_hops
            ))
        } else if !(1..=MAX_TRACE_CYCLES).contains(&self.cycles) {
            malformed(format!(
                "{} probes to each hop, where 1 to {MAX_TRACE_CYCLES} are sent",
                self.cycles
            ))
        } else if !matches!(self.protocol, None | Some(Protocol::Icmp | Protocol::Udp)) {
            malformed("clients are traced by ICMP and UDP only".to_owned())
        } else {
            Ok(())
        }
    }
}

/// What the responder's probes were sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceAccess {
    Raw,
    /// Sockets that every user may open.
    Unprivileged,
}

/// The path from the responder to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// The `id` of the request.
    pub id: u32,
    /// The target: the client's address as the responder sees it.
    pub towards: IpAddr,
    /// What the probes were made of.
    pub protocol: Protocol,
    /// Destination port of UDP.
    pub port: Option<u16>,
    /// What they were sent with.
    pub access: TraceAccess,
    /// Every probe, those beyond the client too, in the order of their departure.
    pub probes: Vec<TraceProbe>,
}

/// A probe whose time to live ends at a hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceProbe {
    /// The hop, from 1.
    pub hop: u8,
    /// Which of the probes to that hop, from 0.
    pub cycle: u8,
    /// When it was sent, from the start of the trace.
    pub at_s: f64,
    /// What came back in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TraceAnswer>,
}

/// What answered a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceAnswer {
    pub from: IpAddr,
    /// The round trip, from the responder.
    pub rtt_s: f64,
    /// Whether the probe arrived at the client.
    pub arrival: bool,
    /// Time to live that the answer had left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    /// traceroute's mark (`!H`, `!X`, `!<13>` …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// A report that cannot be true, or is no answer to what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what it reported of the path back cannot be: {0}")]
pub struct Implausible(pub &'static str);

impl TraceReport {
    /// Whether it can be an answer to `asked` by a responder that is spoken to by the family of `peer`:
    /// no more probes than were asked for, each once, in numbers that can be.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn check(&self, asked: &TraceRequest, peer: IpAddr) -> Result<(), Implausible> {
        let must = |holds: bool, otherwise| {
            if holds {
                Ok(())
            } else {
                Err(Implausible(otherwise))
            }
        };
        let v4 = peer.to_canonical().is_ipv4();
        must(self.id == asked.id, "another request's number")?;
        must(
            self.towards.is_ipv4() == v4,
            "an address of the other family",
        )?;
        must(
            matches!(self.protocol, Protocol::Icmp | Protocol::Udp),
            "probes that are neither ICMP nor UDP",
        )?;
        let most = usize::from(asked.max_hops) * usize::from(asked.cycles);
        must(self.probes.len() <= most, "more probes than were asked for")?;
        let mut seen = BTreeSet::new();
        for probe in &self.probes {
            let known = (1..=asked.max_hops).contains(&probe.hop) && probe.cycle < asked.cycles;
            must(known, "a probe that was not asked for")?;
            must(
                seen.insert((probe.hop, probe.cycle)),
                "a probe that came twice",
            )?;
            must(
                is_time(probe.at_s, TRACE_TIME.as_secs_f64()),
                "the time of a probe",
            )?;
            let Some(answer) = &probe.answer else {
                continue;
            };
            let longest = TRACE_PROBE_TIMEOUT.as_secs_f64();
            must(is_time(answer.rtt_s, longest), "a round trip")?;
            must(answer.from.is_ipv4() == v4, "an answer of the other family")?;
            must(
                answer.mark.as_deref().is_none_or(is_mark),
                "an unknown mark",
            )?;
        }
        Ok(())
    }
}

fn is_time(seconds: f64, longest_s: f64) -> bool {
    // Never true of what is no number.
    (0.0..=longest_s).contains(&seconds)
}

fn is_mark(text: &str) -> bool {
    text.len() <= MAX_MARK_BYTES
        && text.starts_with('!')
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::ServerMessage;
    use super::super::frame::{decode_body, encode_frame};
    use super::*;
    use crate::native::spec::{FRAME_HEADER_BYTES, MAX_SERVER_FRAME_BYTES};
    use proptest::prelude::*;

    const ASKED: TraceRequest = TraceRequest {
        id: 7,
        protocol: None,
        max_hops: 30,
        cycles: 3,
    };

    fn peer() -> IpAddr {
        IpAddr::from([192, 0, 2, 1])
    }

    fn report(probes: Vec<TraceProbe>) -> TraceReport {
        TraceReport {
            id: 7,
            towards: peer(),
            protocol: Protocol::Icmp,
            port: None,
            access: TraceAccess::Raw,
            probes,
        }
    }

    fn probe(hop: u8, cycle: u8) -> TraceProbe {
        TraceProbe {
            hop,
            cycle,
            at_s: 0.02,
            answer: Some(TraceAnswer {
                from: IpAddr::from([192, 0, 2, 9]),
                rtt_s: 0.01,
                arrival: false,
                hop_limit: Some(63),
                mark: Some("!X".to_owned()),
            }),
        }
    }

    #[test]
    fn the_largest_report_goes_into_a_frame() {
        let mut widest = report(Vec::new());
        for hop in 1..=MAX_TRACE_HOPS {
            for cycle in 0..MAX_TRACE_CYCLES {
                let mut probe = probe(hop, cycle);
                probe.at_s = 0.123_456_789_012_345_68;
                if let Some(answer) = &mut probe.answer {
                    answer.from = "fd00:1111:2222:3333:4444:5555:6666:7777".parse().unwrap();
                    answer.rtt_s = 0.123_456_789_012_345_68;
                    answer.mark = Some("!<255>".to_owned());
                }
                widest.probes.push(probe);
            }
        }
        widest.towards = "fd00::1".parse().unwrap();
        let asked = TraceRequest {
            max_hops: MAX_TRACE_HOPS,
            cycles: MAX_TRACE_CYCLES,
            ..ASKED
        };
        assert_eq!(widest.check(&asked, "fd00::2".parse().unwrap()), Ok(()));
        let message = ServerMessage::Traced(Box::new(widest));
        assert!(encode_frame(&message, MAX_SERVER_FRAME_BYTES / 4).is_ok());
    }

    #[test]
    fn a_responder_that_lies_is_not_believed() {
        let wrong = |change: &dyn Fn(&mut TraceReport)| {
            let mut report = report(vec![probe(1, 0), probe(2, 0)]);
            change(&mut report);
            report.check(&ASKED, peer()).map_err(|Implausible(why)| why)
        };
        let set = |change: fn(&mut TraceAnswer)| {
            wrong(&move |report| {
                if let Some(answer) = report.probes.get_mut(1).and_then(|p| p.answer.as_mut()) {
                    change(answer);
                }
            })
        };
        assert_eq!(wrong(&|_| ()), Ok(()));
        assert_eq!(wrong(&|r| r.id = 8), Err("another request's number"));
        assert!(wrong(&|r| r.towards = "::1".parse().unwrap()).is_err());
        assert!(wrong(&|r| r.protocol = Protocol::Tcp).is_err());
        assert!(wrong(&|r| r.protocol = Protocol::Dns).is_err());
        let many = |r: &mut TraceReport| r.probes = vec![probe(1, 0); 10_000];
        assert_eq!(wrong(&many), Err("more probes than were asked for"));
        assert!(wrong(&|r| r.probes.push(probe(31, 0))).is_err());
        assert!(wrong(&|r| r.probes.push(probe(0, 0))).is_err());
        assert!(wrong(&|r| r.probes.push(probe(1, 3))).is_err());
        assert_eq!(
            wrong(&|r| r.probes.push(probe(1, 0))),
            Err("a probe that came twice")
        );
        for at_s in [-0.1, 1e9, f64::NAN, f64::INFINITY] {
            assert!(wrong(&|r| r.probes.iter_mut().for_each(|p| p.at_s = at_s)).is_err());
        }
        for change in [
            (|a: &mut TraceAnswer| a.rtt_s = -0.001) as fn(&mut TraceAnswer),
            |a| a.rtt_s = f64::NAN,
            |a| a.rtt_s = 3600.0,
            |a| a.from = "::1".parse().unwrap(),
            |a| a.mark = Some("\u{1b}[2J".to_owned()),
            |a| a.mark = Some("!of no sense at all".to_owned()),
            |a| a.mark = Some(String::new()),
        ] {
            assert!(set(change).is_err());
        }
    }

    #[test]
    fn what_is_asked_is_bounded() {
        assert_eq!(ASKED.check(), Ok(()));
        for wrong in [
            TraceRequest {
                max_hops: 0,
                ..ASKED
            },
            TraceRequest {
                max_hops: MAX_TRACE_HOPS + 1,
                ..ASKED
            },
            TraceRequest { cycles: 0, ..ASKED },
            TraceRequest {
                cycles: MAX_TRACE_CYCLES + 1,
                ..ASKED
            },
            TraceRequest {
                protocol: Some(Protocol::Tcp),
                ..ASKED
            },
        ] {
            assert_eq!(
                wrong.check().unwrap_err().0,
                Refusal::Malformed,
                "{wrong:?}"
            );
        }
    }

    fn probes() -> impl Strategy<Value = TraceProbe> {
        let answer = (
            any::<IpAddr>(),
            any::<f64>(),
            any::<bool>(),
            any::<Option<u8>>(),
            any::<Option<String>>(),
        )
            .prop_map(|(from, rtt_s, arrival, hop_limit, mark)| TraceAnswer {
                from,
                rtt_s,
                arrival,
                hop_limit,
                mark,
            });
        (
            any::<u8>(),
            any::<u8>(),
            any::<f64>(),
            proptest::option::of(answer),
        )
            .prop_map(|(hop, cycle, at_s, answer)| TraceProbe {
                hop,
                cycle,
                at_s,
                answer,
            })
    }

    proptest! {
        /// Any report of a responder either fails the check, or keeps the bounds.
        #[test]
        fn what_passes_is_within_bounds(probes in proptest::collection::vec(probes(), 0..20)) {
            let report = report(probes);
            if report.check(&ASKED, peer()).is_ok() {
                prop_assert!(report.probes.iter().all(|p| p.hop >= 1 && p.hop <= 30 && p.cycle < 3));
            }
        }

        /// And what is true comes over as it was.
        #[test]
        fn a_true_report_survives_the_wire(hops in proptest::collection::btree_set((1..=30_u8, 0..3_u8), 0..60), rtt_s in 0.0..1.0_f64) {
            let probes = hops.into_iter().map(|(hop, cycle)| {
                let mut probe = probe(hop, cycle);
                if let Some(answer) = &mut probe.answer {
                    answer.rtt_s = rtt_s;
                }
                probe
            });
            let report = report(probes.collect());
            prop_assert_eq!(report.check(&ASKED, peer()), Ok(()));
            let message = ServerMessage::Traced(Box::new(report));
            let frame = encode_frame(&message, MAX_SERVER_FRAME_BYTES).unwrap();
            prop_assert_eq!(decode_body::<ServerMessage>(&frame[FRAME_HEADER_BYTES..]).unwrap(), message);
        }
    }
}
