//! Measures what distinguishes the causes that are left, one experiment after the other.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use plumb_diagnose::Case;
use plumb_diagnose::experiment::{self, Wanted};
use plumb_model::context::{Experiment, SMALL_SEGMENT_BYTES};
use plumb_net::egress::Outlet;
use plumb_probe::path::Target;
use plumb_wire::native::control::flow::Flow;
use plumb_wire::native::control::flow::udp::{Ecn, Pattern, UdpFlow};

use crate::conductor::{Conductor, Went};
use crate::host::counted::Counted;
use crate::mtu::{self, PathMtu};
use crate::phase::{Group, LoadPhase, PhaseSpec};
use crate::session::Session;
use crate::traffic_classes::Shape;
use crate::within::Within;

/// One of so many parts of the budget is kept for experiments: two seconds each at up to 1.4 times the rate are a
/// twentieth of a check.
pub(crate) const BUDGET_PARTS: u64 = 10;

/// An experiment may use as much as one of so many parts of what is to be measured afterwards.
const LATER_PARTS: u64 = 2;

/// More than all that can be asked for (two directions, each once below the rate, four times above it, with small packets, with
/// several flows and with one connection, and sizes once); ends the loop whatever a step yields.
const MOST: usize = 20;

/// How long datagrams are sent: at 1.4 times the rate of a line, a queue of 600 ms fills in 1.5 s.
const STREAM: Duration = Duration::from_secs(2);

/// The least time that is left for another one: in 1.5 s a queue of 600 ms fills, and a phase takes 700 ms around its datagrams.
const LEAST: Duration = Duration::from_millis(2400);

/// The longest queue that is waited for: what empties later is not known to empty at all.
const LONGEST_QUEUE: Duration = Duration::from_secs(3);

/// How often the request to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long it takes, and the least time that must be left for it.
fn times(wanted: &Wanted) -> (Duration, Duration) {
    match wanted {
        // A connection that was cut short would not show its rate.
        Wanted::SingleStream(_, seconds) => {
            let lasts = Duration::from_secs_f64(*seconds);
            (lasts, lasts)
        }
        Wanted::PacketSizes | Wanted::Stream(_) | Wanted::SmallSegments(_) => (STREAM, LEAST),
    }
}

/// Conducts experiments towards a responder at that address, until no cause is left to distinguish or the time is over, which
/// `until` says by whether each direction alone left nothing open; lasts at most 20 times what one does. A connection alone is such as `tcp`
/// says, and what is measured besides afterwards weighs `later`.
pub(crate) fn conduct(
    conductor: &mut Conductor<'_>,
    name: &str,
    address: SocketAddr,
    tcp: Option<&Flow>,
    later: u64,
    until: &dyn Fn(bool) -> Instant,
) {
    let far_end = conductor.session().far_end.as_ref();
    let datagrams = far_end.is_some_and(|far_end| far_end.carries().datagrams);
    // Others do not report how packets were marked that came.
    let marks = far_end.is_some_and(|far_end| far_end.responder().is_some());
    let mut asked = Vec::new();
    for _ in 0..MOST {
        let run = conductor.run();
        let case = Case::of(run);
        let Some(wanted) = experiment::wanted(&case, datagrams) else {
            return;
        };
        // What left nothing in the Run would leave nothing again.
        if asked.contains(&wanted) {
            return;
        }
        asked.push(wanted);
        let settled =
            experiment::is_settled(&case, datagrams) || experiment::may_wait(&case, &wanted);
        conductor.session().deadline = Some(until(settled));
        let (lasts, least) = times(&wanted);
        let time_left = conductor.session().time_left();
        if time_left.is_some_and(|left| left < least) {
            // What is to be measured yet leaves time for it, or not.
            if later == 0 {
                conductor.note(format!(
                    "Not found out, because the time was over: {}. `plumb check --thorough` has more time.",
                    wanted.why()
                ));
            }
            return;
        }
        conductor.session().watcher.step(wanted.why(), lasts);
        let phase = |experiment, direction, streams, flow| {
            let spec = PhaseSpec {
                direction,
                groups: vec![Group { streams, flow }],
                shape: Shape::BestEffort,
                experiment: Some(experiment),
                applications: Vec::new(),
                duration: lasts,
                byte_limit: None,
                bytes_are_the_goal: false,
                until_steady: false,
                from: None,
                to: None,
            };
            LoadPhase::new(spec, (later / LATER_PARTS).max(1), 1.0)
        };
        let went = match &wanted {
            Wanted::PacketSizes => {
                let target = Target {
                    name: name.to_owned(),
                    address,
                    outlet: Outlet::default(),
                };
                let wanted = mtu::Wanted::of(target);
                let mut step = PathMtu { wanted: &wanted };
                let time = Duration::MAX;
                let step = &mut step;
                conductor.step(&mut Within { step, time }, later)
            }
            Wanted::Stream(stream) => {
                let packets = Pattern::Constant { pps: stream.pps };
                let mut flow = UdpFlow::new(stream.payload_bytes, packets);
                // Nothing marks packets below the rate, and whether the field arrives is known of both directions then.
                let of_few_bits = [Experiment::Paced, Experiment::SmallPackets];
                let bears = marks && of_few_bits.contains(&stream.experiment);
                flow.ecn = bears.then_some(Ecn::Ect0);
                let flow = Flow::Udp(flow);
                let mut phase = phase(stream.experiment, stream.direction, stream.flows, flow);
                conductor.step(&mut Counted(&mut phase), later)
            }
            Wanted::SingleStream(direction, _) => {
                let Some(flow @ Flow::Tcp(_)) = tcp.cloned() else {
                    return;
                };
                let fits = mtu::segment_that_fits(conductor.run());
                let mut phase = phase(Experiment::SingleStream, *direction, 1, flow);
                fits.into_iter()
                    .for_each(|bytes| phase.limit_segments(bytes));
                conductor.step(&mut Counted(&mut phase), later)
            }
            Wanted::SmallSegments(direction) => {
                let Some(flow @ Flow::Tcp(_)) = tcp.cloned() else {
                    return;
                };
                let mut phase = phase(Experiment::SmallSegments, *direction, 1, flow);
                phase.limit_segments(SMALL_SEGMENT_BYTES);
                conductor.step(&mut Counted(&mut phase), later)
            }
        };
        if went != Went::Recorded {
            return;
        }
        let queue_s = experiment::left_in_queue_s(&Case::of(conductor.run()), &wanted);
        let_it_empty(conductor.session(), queue_s);
    }
}

/// Waits for a queue to empty, or until all is to end.
fn let_it_empty(session: &Session<'_>, queue_s: f64) {
    let empties_at = Instant::now() + emptying(queue_s, session.time_left());
    while Instant::now() < empties_at && !session.is_stopped() {
        thread::sleep(LOOK_EVERY);
    }
}

/// How long a queue is waited for that a far end may have reported, so that it may be any number, where so much time is left.
fn emptying(queue_s: f64, left: Option<Duration>) -> Duration {
    let queue = Duration::try_from_secs_f64(queue_s).unwrap_or(LONGEST_QUEUE);
    queue.min(LONGEST_QUEUE).min(left.unwrap_or(LONGEST_QUEUE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_waited_for_within_bounds_whatever_was_reported() {
        let seconds = Duration::from_secs_f64;
        assert_eq!(emptying(0.7, None), seconds(0.7));
        assert_eq!(emptying(0.7, Some(seconds(0.2))), seconds(0.2));
        assert_eq!(emptying(0.7, Some(Duration::ZERO)), Duration::ZERO);
        for absurd in [1e300, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(emptying(absurd, None), LONGEST_QUEUE);
            assert_eq!(emptying(absurd, Some(seconds(1.0))), seconds(1.0));
        }
    }
}
