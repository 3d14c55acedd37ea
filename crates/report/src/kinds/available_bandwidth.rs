//! The highest UDP rate at which no more than 1 % is lost, and what it says.

use plumb_model::context::Phase;
use plumb_model::results::LimitedTime;
use plumb_model::results::available_bandwidth::{AvailableBandwidthResult, RateLimit, SearchEnd};
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::number;
use crate::phase::flow;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for AvailableBandwidthResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::AvailableBandwidth, [rates(&all)]);
        tables.detail(Place::AvailableBandwidth, [steps(&all)]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        Quantities::of(phase, "UDP below 1 % of loss".to_owned())
            .direction(self.direction)
            .number("bps", ChangeUnit::Bps, self.bps)
            .found
    }
}

/// The rates of application, TCP and UDP beside each other.
fn rates(all: &[&AvailableBandwidthResult]) -> Table {
    let advice = all
        .iter()
        .map(|result| format!("{}: {}", flow(result.direction), advice(result)));
    let about = "Payload. Not the available bandwidth of RFC 5136: UDP at this rate takes its share of what others had.";
    Table::of("UDP rate at 1 % loss", all)
        .text("", |r| flow(r.direction))
        .num("UDP", |r| match r.at_least_bps {
            Some(bps) => Some(format!("at least {}", number::rate(bps))),
            None => r.bps.map(number::rate),
        })
        .num("but not", |r| r.above_bps.map(number::rate))
        .num("TCP", |r| number::rate(r.tcp_bps))
        .num("application", |r| {
            blank(r.application_bps.map(number::rate))
        })
        .text("limited by", |r| r.limit.shown())
        .noting([about.to_owned()].into_iter().chain(advice))
}

/// Each step of the search.
fn steps(all: &[&AvailableBandwidthResult]) -> Table {
    let steps = all
        .iter()
        .flat_map(|result| result.steps.iter().map(|step| (result.direction, step)));
    const NOTE: &str = "Delayed: share by which the delay grew; a longer step would have lost as much. Here: dropped by the receiving socket.";
    Table::of("Steps of UDP", steps)
        .text("", |(direction, _)| flow(*direction))
        .num("asked", |(_, step)| number::rate(step.asked_bps))
        .num("for", |(_, step)| number::seconds(step.duration_s))
        .num("received", |(_, step)| number::rate(step.received_bps))
        .num("lost", |(_, step)| number::percent(step.loss_ratio))
        .num("delayed", |(_, step)| number::percent(step.queued_ratio))
        .num("here", |(_, step)| number::percent(step.dropped_here_ratio))
        .text("", |(_, step)| step.verdict.shown())
        .noted(NOTE)
}

/// Where the problem lies, and where to look.
fn advice(result: &AvailableBandwidthResult) -> String {
    let ended = match result.ended {
        SearchEnd::Found => "",
        SearchEnd::SenderTooSlow => {
            "The sending host goes no faster; the path carries at least this. "
        }
        SearchEnd::ReceiverTooSlow => {
            "The receiving host takes no more than about this; the path carries at least as much. "
        }
        SearchEnd::LossAtAnyRate => {
            "More than 1 % is lost at any rate: the loss does not come from the rate; look for a bad link or a radio. "
        }
        SearchEnd::OutOfBudget => {
            "What was left of the budget was less than a step takes, before the rate was known closely; --budget allows more. "
        }
        SearchEnd::OutOfSteps => {
            "As many steps as a search may have did not show the rate closely: it changes, or a host is busy. "
        }
        SearchEnd::Cancelled => "The search was stopped before the rate was known closely. ",
        SearchEnd::FarEndLost => "The far end went away before the rate was known closely. ",
        SearchEnd::StepFailed => "A step could not be made, and the rate is not known closely. ",
    };
    let share = |of: fn(&LimitedTime) -> f64| number::percent(of(&result.tcp_limited));
    let where_to_look = match result.limit {
        RateLimit::Application if result.application_bps.is_some() => {
            "TCP carries more than the application gets: look at the application and its host.".to_owned()
        }
        RateLimit::Application => format!(
            "the path carries more than TCP, whose sender had nothing to send {} of the time: look at the sending host.",
            share(|l| l.app_ratio)
        ),
        RateLimit::TcpReceiveWindow => format!(
            "the path carries more than TCP, whose receiver's window was full {} of the time: raise the receive buffers ('plumb explain tcp-buffers').",
            share(|l| l.rwnd_ratio)
        ),
        RateLimit::TcpSendBuffer => format!(
            "the path carries more than TCP, whose send buffer was full {} of the time: raise the send buffers ('plumb explain tcp-buffers').",
            share(|l| l.sndbuf_ratio)
        ),
        RateLimit::TcpCongestionControl => {
            "the path carries more than TCP, which backs off: look for losses that are not of the rate, for a queue too short for its bursts, or take more streams.".to_owned()
        }
        RateLimit::Path => "TCP carries what the path does.".to_owned(),
        RateLimit::Unknown => "what was measured does not say where the problem lies.".to_owned(),
    };
    match ended {
        "" => where_to_look,
        ended => format!("{ended}{}", capital(&where_to_look)),
    }
}
