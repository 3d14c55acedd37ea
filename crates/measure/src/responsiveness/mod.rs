//! Responsiveness under working conditions in round trips a minute, after
//! draft-ietf-ippm-responsiveness: which streams that takes, and the result. When what happens is
//! decided in [`mod@controller`], the arithmetic is in [`formula`].
//!
//! The draft's carrier is HTTP/2 over TLS, and with servers of the web that is what carries it. With a responder it is plumb's
//! own protocol over TLS 1.3: the same handshakes, and records between the payload where HTTP/2 has frames. So that method
//! has another name than the draft's.

pub mod controller;
pub mod formula;
pub(crate) mod limits;

use std::time::Duration;

use plumb_load::phase_controller::Looked;
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::results::responsiveness::ResponsivenessResult;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::{Flow, Flows, Probed, TcpFlow};

use controller::{Controller, Found};

/// Most loaded connections (MNP).
pub const CONNECTIONS: u32 = 16;

/// Default length of an interval (ID): from the draft until version 08; version 09 has five seconds.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Intervals that a direction may take: the draft wants to be done within 20 s.
pub const MOST_INTERVALS: u32 = 20;

/// The loaded connections of one direction: one at first, and another one at each interval (INP,
/// INC).
pub fn flows(
    role: OneDirection,
    connections: u32,
    tcp: &TcpFlow,
    interval: Duration,
) -> Vec<Flows> {
    (0..connections)
        .map(|number| {
            let probed = Probed {
                starts_after_s: interval.as_secs_f64() * f64::from(number),
            };
            let tcp = TcpFlow {
                tls: true,
                probed: Some(probed),
                ..tcp.clone()
            };
            Flows::tcp(1, role, tcp)
        })
        .collect()
}

/// The stream in whose name connections are made that carry nothing but one request, as small as
/// can be, and its answer.
pub fn foreign() -> Flows {
    Flows {
        count: 1,
        role: OneDirection::Up,
        flow: Flow::Transactions(TransactionFlow {
            transport: Protocol::Tls,
            connect: true,
            request_bytes: 1,
            response_bytes: 1,
            rate_tps: None,
            on_demand: true,
        }),
    }
}

/// Who conducts a measurement of that direction.
pub fn controller(direction: Direction, interval: Duration) -> Controller {
    let carried: fn(&Looked) -> u64 = match direction {
        Direction::Down => |looked| looked.received_bytes,
        Direction::Up => |looked| looked.acked_bytes,
        Direction::Both => |looked| looked.received_bytes + looked.acked_bytes,
    };
    Controller::new(interval, carried)
}

/// What was found, for the Run; all of it where the far end was not lost meanwhile.
pub fn result(
    direction: Direction,
    found: &Found,
    method: &str,
    (connections, interval): (u32, Duration),
    duration_s: f64,
) -> ResponsivenessResult {
    let begun = (duration_s / interval.as_secs_f64()) as u64 + 1;
    ResponsivenessResult {
        direction,
        rpm: found.rpm.both(),
        rpm_method: method.to_owned(),
        confidence: found.confidence,
        spread_ratio: found.spread_ratio,
        foreign_rpm: found.rpm.foreign,
        in_band_rpm: found.rpm.in_band,
        goodput_bps: found.goodput_bps,
        goodput_confidence: found.goodput_confidence,
        goodput_stable_after_s: found.goodput_stable_after_s,
        connections: begun.min(connections.into()),
        interval_s: interval.as_secs_f64(),
        trimmed_mean_s: found.trimmed_mean_s,
        times_s: found.times_s,
        probes: found.probes.clone(),
        lost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_more_is_loaded_at_each_interval() {
        let flows = flows(
            OneDirection::Down,
            3,
            &TcpFlow::default(),
            Duration::from_secs(5),
        );
        let tcp = flows.iter().filter_map(|flows| flows.flow.tcp());
        let starts = tcp.filter_map(|tcp| Some(tcp.probed?.starts_after_s));
        assert_eq!(starts.collect::<Vec<_>>(), [0.0, 5.0, 10.0]);
        for flows in flows.iter().chain([&foreign()]) {
            assert_eq!(flows.check(), Ok(()));
        }
    }
}
