//! The hops of a traced path as components of the map.

use plumb_model::results::path::{HopAnswers, PathHop, PathLoss};

use crate::map::{Map, note};
use crate::number;

pub(super) fn of(hops: &[PathHop], loss: Option<&PathLoss>, reached: bool, map: &mut Map) {
    for hop in hops {
        let on_map = map.hop(hop.ttl);
        on_map.is(hop.address.as_deref(), hop.name.as_deref());
        let rtt = hop.rtt_s.map(|rtt| number::seconds(rtt.p50));
        if on_map.facts.is_empty() {
            note(
                &mut on_map.facts,
                rtt.map(|rtt| format!("answers in {rtt}")),
            );
        }
        let answers = match hop.answers {
            HopAnswers::Silent => Some("never answers"),
            HopAnswers::Sparing => Some("declines to answer some probes"),
            HopAnswers::Well | HopAnswers::TooFew | HopAnswers::Unclear => None,
        };
        note(&mut on_map.facts, answers.map(str::to_owned));
        note(&mut on_map.facts, hop.as_name.clone());
    }
    if let Some(loss) = loss {
        let where_ = match loss.earliest_ttl == loss.latest_ttl {
            true => "begins here".to_owned(),
            false => format!(
                "begins between hop {} and hop {}",
                loss.earliest_ttl, loss.latest_ttl
            ),
        };
        let lost = format!("loss of {} {where_}", number::percent(loss.ratio));
        note(&mut map.hop(loss.begins_at_ttl).line, lost);
    }
    if reached {
        let last = hops.last().map(|hop| hop.ttl);
        map.far_ttl = map.far_ttl.or(last);
    }
}
