//! A trace as a responder reports it to its client, and as the client reads it: every probe and its answer, so that
//! both ends find the same hops by the same code.

use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_model::results::TimestampSource;
use plumb_wire::native::control::trace::{
    TraceAccess, TraceAnswer, TraceProbe, TraceReport, TraceRequest,
};

use super::access::Access;
use super::target::{ProtocolAndPort, UDP_PORT};
use super::through::Through;
use super::trace::{Seen, Shot, TraceLog, TracePlan};

/// What a responder reports of a trace towards its client. Marked probes are left out.
pub fn tell(request: &TraceRequest, through: &Through) -> TraceReport {
    let log = &through.log;
    let (protocol, port) = through.protocol.named();
    let seconds = |ns: u64| ns.saturating_sub(log.started_ns) as f64 / 1e9;
    let answer = |seen: &Seen| TraceAnswer {
        from: seen.from,
        rtt_s: seen.rtt.as_secs_f64(),
        arrival: seen.arrival,
        hop_limit: seen.hop_limit,
        mark: seen.annotation.clone(),
    };
    let probe = |shot: &Shot| {
        Some(TraceProbe {
            hop: shot.hops,
            cycle: u8::try_from(shot.cycle?).ok()?,
            at_s: seconds(shot.sent_ns),
            answer: shot.seen.as_ref().map(answer),
        })
    };
    TraceReport {
        id: request.id,
        towards: log.plan.target,
        protocol,
        port,
        access: match through.access {
            Access::Raw => TraceAccess::Raw,
            Access::Ping | Access::Udp => TraceAccess::Unprivileged,
        },
        probes: log
            .shots
            .iter()
            .filter(|shot| shot.counts())
            .filter_map(probe)
            .collect(),
    }
}

/// What a client reads in a report that has passed its check.
pub fn read(request: &TraceRequest, report: &TraceReport) -> (ProtocolAndPort, TraceLog) {
    let protocol = match report.protocol {
        Protocol::Udp => ProtocolAndPort::Udp {
            port: report.port.unwrap_or(UDP_PORT),
        },
        _ => ProtocolAndPort::Icmp,
    };
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let seen = |answer: &TraceAnswer| Seen {
        from: answer.from,
        rtt: Duration::try_from_secs_f64(answer.rtt_s).unwrap_or_default(),
        timestamps: TimestampSource::User,
        arrival: answer.arrival,
        annotation: answer.mark.clone(),
        hop_limit: answer.hop_limit,
        labels: Vec::new(),
        quoted: false,
        differences: Vec::new(),
        syn_ack: None,
    };
    let shots: Vec<Shot> = report
        .probes
        .iter()
        .map(|probe| Shot {
            cycle: Some(probe.cycle.into()),
            hops: probe.hop,
            sent_ns: ns(probe.at_s),
            seen: probe.answer.as_ref().map(seen),
            cut_off: false,
        })
        .collect();
    let cycles = shots.iter().filter_map(|shot| shot.cycle).max();
    let log = TraceLog {
        plan: TracePlan {
            last_hop: request.max_hops,
            cycles: Some(request.cycles.into()),
            inspect: false,
            ..TracePlan::new(report.towards)
        },
        started_ns: 0,
        ended_ns: shots.iter().map(|shot| shot.sent_ns).max().unwrap_or(0),
        cycles: cycles.map_or(0, |last| last.saturating_add(1)),
        latest: None,
        refused: 0,
        notes: Vec::new(),
        shots,
    };
    (protocol, log)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    const ASKED: TraceRequest = TraceRequest {
        id: 5,
        protocol: None,
        max_hops: 30,
        cycles: 3,
    };

    fn seen() -> impl Strategy<Value = Option<Seen>> {
        let seen = (
            1..20_u8,
            0..900_000_u64,
            any::<bool>(),
            any::<Option<u8>>(),
            any::<bool>(),
        );
        proptest::option::of(
            seen.prop_map(|(last, us, arrival, hop_limit, refused)| Seen {
                from: IpAddr::from([10, 0, 0, last]),
                rtt: Duration::from_micros(us),
                timestamps: TimestampSource::User,
                arrival,
                annotation: (refused && !arrival).then(|| "!X".to_owned()),
                hop_limit,
                labels: Vec::new(),
                quoted: false,
                differences: Vec::new(),
                syn_ack: None,
            }),
        )
    }

    proptest! {
        /// The client comes to the hops that the responder would have come to.
        #[test]
        fn both_ends_see_the_same_hops(seen in proptest::collection::vec(seen(), 0..45)) {
            let shots = seen.into_iter().enumerate().map(|(index, seen)| Shot {
                cycle: Some((index / 15) as u32),
                hops: (index % 15) as u8 + 1,
                sent_ns: 1_000 + index as u64 * 1_000_000,
                seen,
                cut_off: false,
            });
            let log = TraceLog {
                plan: TracePlan { inspect: false, ..TracePlan::new(IpAddr::from([192, 0, 2, 1])) },
                started_ns: 1_000,
                ended_ns: 1_000_000_000,
                shots: shots.collect(),
                cycles: 3,
                refused: 0,
                latest: None,
                notes: Vec::new(),
            };
            let through = Through { protocol: ProtocolAndPort::Icmp, access: Access::Raw, log };
            let report = tell(&ASKED, &through);
            prop_assert_eq!(report.check(&ASKED, through.log.plan.target), Ok(()));
            let (protocol, read) = read(&ASKED, &report);
            let (here, there) = (read.result(protocol), through.log.result(ProtocolAndPort::Icmp));
            prop_assert_eq!(here.hops, there.hops);
            prop_assert_eq!((here.reached, here.loss), (there.reached, there.loss));
        }
    }
}
