//! What must be said beside the numbers of `plumb capacity`.

use plumb_model::protocol::Protocol;
use plumb_model::results::capacity::{CapacityEnd, CapacityResult, Doubt, RateStatus, TrainMethod};
use plumb_model::results::path::HopAnswers;
use plumb_model::units::si;
use plumb_probe::capacity::hops::HopsFound;
use plumb_probe::path::loss::{Count, Last, examine};

use crate::yields::Yield;

/// Single packets and trains contradict each other where the narrowest line is this much faster by single
/// packets than by trains.
const CONTRADICTION: f64 = 1.25;

/// A hop that answers less than this share is told of; more are lost by chance.
const SELDOM: f64 = 0.9;

/// What must be said beside the numbers.
pub(super) fn notes(
    name: &str,
    found: &HopsFound,
    result: &CapacityResult,
    narrowest: Option<(u8, f64)>,
    out: &mut Yield,
) {
    if !found.reached {
        out.note(format!(
            "{name} itself did not answer probes: the lines behind the last hop that did are not in the table."
        ));
    }
    for note in unanswered(found, result.protocol) {
        out.note(note);
    }
    let elsewhere: u64 = found.hops.iter().map(|hop| hop.others).sum();
    if elsewhere > 0 {
        out.note(format!(
            "{elsewhere} answers came from other routers than at first and were left out: packets take several ways, or the \
             way changed (plumb path --all-paths)."
        ));
    }
    let open = result.hops.iter().any(|hop| {
        hop.rate.status != RateStatus::Measured && hop.rate.doubts.contains(&Doubt::Timing)
    });
    let ended = match found.ended {
        CapacityEnd::Time => Some("--time"),
        CapacityEnd::Bytes => Some("--bytes"),
        _ => None,
    };
    if let (true, Some(option)) = (open, ended) {
        out.note(format!(
            "It ended before every line was known as well as it can be: more {option} narrows the bounds."
        ));
    }
    let train = result.train.as_ref();
    let by_train = train.and_then(|train| train.rate.bps);
    let both_ways = train.is_some_and(|train| train.method == TrainMethod::Echo);
    let least_known = narrowest.map(|(_, bps)| bps);
    if let (Some(line), Some(train)) = (least_known, by_train)
        && line > CONTRADICTION * train
    {
        let way_back = if both_ways {
            ", the way back is narrower,"
        } else {
            ""
        };
        out.note(format!(
            "Trains get {} where single packets find no line slower than {}: a token bucket lets single packets pass \
             faster than it lets many{way_back} or other traffic has its share.",
            si(train, "bit/s"),
            si(line, "bit/s")
        ));
    }
}

/// What probes that were not answered say, by the rule of `plumb path`.
fn unanswered(found: &HopsFound, protocol: Option<Protocol>) -> Vec<String> {
    let counts: Vec<Count> = found
        .hops
        .iter()
        .map(|hop| Count {
            ttl: hop.ttl,
            sent: hop.sent,
            lost: hop.sent.saturating_sub(hop.received + hop.others),
        })
        .collect();
    let says = match protocol {
        Some(Protocol::Icmp) if found.reached => Last::Replies,
        _ => Last::Errors,
    };
    let (answers, loss) = examine(&counts, says);
    let seldom = |wanted: HopAnswers| {
        let hops = found.hops.iter().zip(&answers);
        let of_kind = hops.filter(|(hop, how)| {
            **how == wanted && (hop.received as f64) < SELDOM * hop.sent as f64
        });
        let words: Vec<String> = of_kind
            .map(|(hop, _)| format!("{} ({} of {} answered)", hop.ttl, hop.received, hop.sent))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    let limited = seldom(HopAnswers::Sparing).map(|hops| {
        format!("Some hops limit how many probes they answer: {hops}. More --time makes them sure.")
    });
    let unclear = seldom(HopAnswers::Unclear).map(|hops| {
        format!(
            "Some hops left probes unanswered, and nobody beyond tells whether packets are lost or they limit their ICMP: \
             {hops}. `plumb path --icmp` or `--tcp` may tell."
        )
    });
    let lost = loss.map(|loss| {
        format!(
            "Packets are lost: {} of {} probes to hop {} and beyond ({:.1} %).",
            loss.lost_beyond,
            loss.sent_beyond,
            loss.begins_at_ttl,
            loss.ratio * 100.0
        )
    });
    [limited, unclear, lost].into_iter().flatten().collect()
}
