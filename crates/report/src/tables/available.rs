//! The highest UDP rate at which no more than 1 % is lost, and what it says.

use plumb_model::results::LimitedTime;
use plumb_model::results::available_bandwidth::{
    AvailableBandwidthResult, RateLimit, RateStep, SearchEnd, StepVerdict,
};
use plumb_model::run::Run;
use plumb_model::units::capital;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view;

/// The rates of application, TCP and UDP beside each other.
pub(super) fn rates(run: &Run) -> Table {
    let mut table = Table::new(
        "UDP rate at 1 % loss",
        &[
            ("", Text),
            ("UDP", Number),
            ("but not", Number),
            ("TCP", Number),
            ("application", Number),
            ("the narrow one", Text),
        ],
    );
    let rate = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), number::rate);
    let mut notes = vec![
        "Payload. Not the available bandwidth of RFC 5136: UDP at this rate takes its share of what others had."
            .to_owned(),
    ];
    for (_, result) in view::available(run) {
        let flow = view::flow(result.direction);
        table.row([
            flow.to_owned(),
            match result.at_least_bps {
                Some(bps) => format!("at least {}", number::rate(bps)),
                None => rate(result.bps),
            },
            rate(result.above_bps),
            number::rate(result.tcp_bps),
            result
                .application_bps
                .map_or_else(String::new, number::rate),
            narrow(result.limit).to_owned(),
        ]);
        notes.push(format!("{flow}: {}", advice(result)));
    }
    table.note = Some(notes.join(" "));
    table
}

/// Each step of the search.
pub(super) fn steps(run: &Run) -> Table {
    let mut table = Table::new(
        "Steps of UDP",
        &[
            ("", Text),
            ("asked", Number),
            ("for", Number),
            ("received", Number),
            ("lost", Number),
            ("held back", Number),
            ("here", Number),
            ("", Text),
        ],
    );
    for (_, result) in view::available(run) {
        for step in &result.steps {
            table.row(row(view::flow(result.direction), step));
        }
    }
    table.note = (!table.rows.is_empty()).then(|| {
        "Held back: by how much the delay grew; a longer step would have lost as much. Here: dropped by the receiving socket."
            .to_owned()
    });
    table
}

fn row(flow: &str, step: &RateStep) -> [String; 8] {
    let verdict = match step.verdict {
        StepVerdict::Passed => "passed",
        StepVerdict::Lost => "too much",
        StepVerdict::SenderTooSlow => "sender too slow",
        StepVerdict::ReceiverTooSlow => "receiver too slow",
    };
    [
        flow.to_owned(),
        number::rate(step.asked_bps),
        number::seconds(step.duration_s),
        number::rate(step.received_bps),
        number::percent(step.loss_ratio),
        number::percent(step.queued_ratio),
        number::percent(step.dropped_here_ratio),
        verdict.to_owned(),
    ]
}

fn narrow(limit: RateLimit) -> &'static str {
    match limit {
        RateLimit::Application => "application or host",
        RateLimit::TcpReceiveWindow => "TCP: receive window",
        RateLimit::TcpSendBuffer => "TCP: send buffer",
        RateLimit::TcpCongestionControl => "TCP: congestion control",
        RateLimit::Path => "path",
        RateLimit::Unknown => "not known",
    }
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
