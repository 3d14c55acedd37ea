//! What became of the datagrams of a phase, and which of the losses were our own.

use plumb_load::UdpOutcome;
use plumb_model::distribution::Distribution;
use plumb_model::formula::clocks::{Comparison, Incomparable};
use plumb_model::results::Outcome;
use plumb_model::results::udp::{OneWayDelay, UdpReceiver, UdpResult};
use plumb_model::units::si;

use super::Phase;
use crate::clocks::delay_by;
use crate::one_way::OneWay;
use crate::probes::Window;
use crate::profiles;
use crate::yields::Yield;

impl Phase {
    /// Adds what became of its datagrams, with their delays where the clocks could be compared; `probe_wait_s` is what probes
    /// beside them waited.
    pub(super) fn record_udp(
        &self,
        found: &mut Yield,
        clocks: Result<Comparison, Incomparable>,
        probes: Option<OneWay>,
        probe_wait_s: Option<Distribution>,
    ) {
        for udp in &self.outcome.udp {
            let mut result = udp.result.clone();
            let fastest = udp.min_delay_ns.filter(|_| !udp.clock_stepped).zip(probes);
            result.standing_s = fastest.map(|(min_ns, probes)| {
                probes.standing_s(result.direction, self.window(), self.apart_ns, min_ns)
            });
            let reports = |receiver: &UdpReceiver| receiver.pdv_s.is_some();
            let reports = result.receiver.as_ref().is_some_and(reports);
            result.probe_wait_s = probe_wait_s.filter(|_| !reports);
            match one_way_delay(udp, clocks, self.window(), self.apart_ns) {
                Ok(delay) => result.one_way_delay = delay,
                Err(why) => found.note(format!("One-way delay was not measured: {why}.")),
            }
            note_own_losses(found, &result);
            let outcome = match self.spec.application(result.direction, result.stream) {
                Some((profile, stream)) => {
                    Outcome::App(Box::new(profiles::result(profile, stream, &result)))
                }
                None => Outcome::Udp(Box::new(result)),
            };
            found.add(self.measured(outcome, udp.series.clone()));
        }
    }
}

/// The delay of one direction by two hosts' clocks; nothing where nothing came.
fn one_way_delay(
    udp: &UdpOutcome,
    clocks: Result<Comparison, Incomparable>,
    phase: Window,
    apart_ns: i64,
) -> Result<Option<OneWayDelay>, Incomparable> {
    let above = udp.result.receiver.as_ref().and_then(|r| r.pdv_s);
    let Some((min_ns, above)) = udp.min_delay_ns.zip(above) else {
        return Ok(None);
    };
    if udp.clock_stepped {
        return Err(Incomparable::Stepped);
    }
    let direction = udp.result.direction;
    clocks.map(|clocks| {
        Some(delay_by(
            &clocks, direction, phase, apart_ns, min_ns, &above,
        ))
    })
}

/// Says what of the losses was our own doing.
fn note_own_losses(found: &mut Yield, udp: &UdpResult) {
    let Some(receiver) = udp.receiver.as_ref() else {
        return;
    };
    note_host_losses(found, udp, receiver);
    if receiver.dropped_here == 0 {
        return;
    }
    let what = if udp.gro {
        "trains of packets"
    } else {
        "packets"
    };
    found.note(format!(
        "The receiving host of the {}load dropped {} {what} itself: its receive buffer of {} was full. They are not lost on the path; a larger net.core.rmem_max, CAP_NET_ADMIN there, or a lower rate helps.",
        udp.direction.name(),
        receiver.dropped_here,
        receiver
            .receive_buffer_bytes
            .map_or_else(|| "unknown size".to_owned(), |bytes| si(bytes as f64, "B"))
    ));
}

/// Says what the receiving host lost beyond what the stream's own socket knows of.
fn note_host_losses(found: &mut Yield, udp: &UdpResult, receiver: &UdpReceiver) {
    let Some(host) = receiver.host.filter(|_| receiver.lost > 0) else {
        return;
    };
    let direction = udp.direction.name();
    let beyond = host.in_errors.saturating_sub(host.csum_errors);
    let beyond = beyond.saturating_sub(receiver.dropped_here);
    if beyond > 0 {
        found.note(format!(
            "UDP of the receiving host of the {direction}load failed to deliver {beyond} datagrams more than its socket dropped ({} for want of room, {} for want of memory): some of the losses may be that host's and not the path's.",
            host.rcvbuf_errors,
            host.mem_errors
        ));
    }
    if host.csum_errors > 0 {
        found.note(format!(
            "{} datagrams came to the receiving host of the {direction}load with a wrong checksum: the path corrupts packets, which count as lost on it.",
            host.csum_errors
        ));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::{CpuUse, Direction};
    use plumb_probe::{Exchange, FarEnd};
    use std::collections::BTreeMap;

    const MS: i64 = 1_000_000;

    /// A stream whose packets took 12 ms and more by the two hosts' clocks.
    fn stream(clock_stepped: bool) -> UdpOutcome {
        UdpOutcome {
            result: UdpResult {
                direction: Direction::Up,
                stream: 0,
                pattern: "constant".to_owned(),
                payload_bytes: 100,
                asked_bps: None,
                gso_segments: 1,
                gro: false,
                bps: Some(1e6),
                sender: None,
                receiver: Some(UdpReceiver {
                    received: 50,
                    pdv_s: Distribution::of([0.0, 0.003]),
                    ..UdpReceiver::default()
                }),
                one_way_delay: None,
                standing_s: None,
                probe_wait_s: None,
                cpu: CpuUse {
                    local_ratio: Some(0.0),
                    remote_ratio: None,
                    local_s_per_gb: None,
                    remote_s_per_gb: None,
                },
                error: None,
            },
            series: BTreeMap::new(),
            min_delay_ns: Some(12 * MS),
            clock_stepped,
        }
    }

    /// Clocks that agree, over a path of 10 ms each way.
    fn clocks() -> Result<Comparison, Incomparable> {
        let exchange = |n: i64| Exchange {
            departed_ns: n * 100 * MS,
            far: FarEnd {
                received_ns: n * 100 * MS + 10 * MS,
                sent_ns: n * 100 * MS + 10 * MS,
                count: None,
                hop_limit: None,
            },
            arrived_ns: n * 100 * MS + 20 * MS,
        };
        let exchanges: Vec<_> = (0..50).map(exchange).collect();
        crate::clocks::by_probes(&exchanges)
    }

    fn delay(clock_stepped: bool) -> Result<Option<OneWayDelay>, Incomparable> {
        let phase = Window {
            from_ns: 1_000_000_000,
            to_ns: 4_000_000_000,
        };
        one_way_delay(&stream(clock_stepped), clocks(), phase, 0)
    }

    #[test]
    fn a_clock_that_was_stepped_costs_the_one_way_delay_and_nothing_else() {
        let known = delay(false).unwrap().unwrap();
        assert!((known.delay_s.min - 0.012).abs() < 1e-6, "{known:?}");
        assert_eq!(delay(true), Err(Incomparable::Stepped));
        // What is reported then, with all that does not rest on the clocks.
        let words = Incomparable::Stepped.to_string();
        assert!(
            words.contains("clock of one of the hosts was stepped"),
            "{words}"
        );
        // Nor is there a delay by clocks that were stepped between phases.
        let phase = Window {
            from_ns: 0,
            to_ns: 1,
        };
        let stepped = one_way_delay(&stream(false), Err(Incomparable::Stepped), phase, 0);
        assert_eq!(stepped, Err(Incomparable::Stepped));
    }

    #[test]
    fn where_nothing_came_there_is_no_delay_and_nothing_to_say() {
        let silent = UdpOutcome {
            min_delay_ns: None,
            ..stream(false)
        };
        let phase = Window {
            from_ns: 0,
            to_ns: 1,
        };
        assert_eq!(one_way_delay(&silent, clocks(), phase, 0), Ok(None));
    }
}
