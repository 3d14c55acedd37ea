//! What must be said beside the numbers of `plumb capacity`.

use plumb_model::hop_loss::{Count, Last, examine};
use plumb_model::protocol::Protocol;
use plumb_model::results::capacity::{CapacityEnd, CapacityResult, Doubt, RateStatus, TrainMethod};
use plumb_model::results::path::HopAnswers;
use plumb_model::units::si;

/// Single packets and trains contradict each other where the narrowest line is this much faster by single
/// packets than by trains.
const CONTRADICTION: f64 = 1.25;

/// A hop that answers less than this share gets a note; smaller losses are chance.
const SELDOM: f64 = 0.9;

/// What must be said beside what was found towards `name`; nothing where no hops were probed.
pub fn capacity_notes(name: &str, result: &CapacityResult) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(protocol) = result.protocol else {
        return notes;
    };
    if !result.reached {
        notes.push(format!(
            "{name} itself did not answer probes: the lines behind the last hop that did are not in the table."
        ));
    }
    notes.extend(unanswered(result, protocol));
    let elsewhere: u64 = result.hops.iter().map(|hop| hop.other_routers).sum();
    if elsewhere > 0 {
        notes.push(format!(
            "{elsewhere} answers came from other routers than at first and were left out: packets take several paths, or the \
             way changed (plumb path --all-paths)."
        ));
    }
    let open = result.hops.iter().any(|hop| {
        hop.rate.status != RateStatus::Measured && hop.rate.doubts.contains(&Doubt::Timing)
    });
    let ended = match result.ended {
        CapacityEnd::Time => Some("--time"),
        CapacityEnd::Bytes => Some("--bytes"),
        _ => None,
    };
    if let (true, Some(option)) = (open, ended) {
        notes.push(format!(
            "It ended before every line was known as well as it can be: more {option} narrows the bounds."
        ));
    }
    let train = result.train.as_ref();
    let by_train = train.and_then(|train| train.rate.bps);
    let both_ways = train.is_some_and(|train| train.method == TrainMethod::Echo);
    let least_known = (result.hops.iter())
        .filter_map(|hop| hop.rate.bps)
        .min_by(f64::total_cmp);
    if let (Some(line), Some(train)) = (least_known, by_train)
        && line > CONTRADICTION * train
    {
        let way_back = if both_ways {
            ", the reverse path is narrower,"
        } else {
            ""
        };
        notes.push(format!(
            "Trains get {} where single packets find no line slower than {}: a token bucket lets single packets pass \
             faster than it lets many{way_back} or other traffic has its share.",
            si(train, "bit/s"),
            si(line, "bit/s")
        ));
    }
    notes
}

/// What probes that were not answered say, by the rule of `plumb path`.
fn unanswered(result: &CapacityResult, protocol: Protocol) -> Vec<String> {
    let counts: Vec<Count> = result
        .hops
        .iter()
        .map(|hop| Count {
            ttl: hop.ttl,
            sent: hop.sent,
            lost: hop.sent.saturating_sub(hop.received + hop.other_routers),
        })
        .collect();
    let says = match protocol {
        Protocol::Icmp if result.reached => Last::Replies,
        _ => Last::Errors,
    };
    let (answers, loss) = examine(&counts, says);
    let seldom = |wanted: HopAnswers| {
        let hops = result.hops.iter().zip(&answers);
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
            "Some hops left probes unanswered, and no hop beyond shows whether packets are lost or they limit their ICMP: \
             {hops}. `plumb path --icmp` or `--tcp` may show it."
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn hop(ttl: u8, received: u64, rate: &Value) -> Value {
        json!({
            "ttl": ttl, "sent": 100, "received": received, "other_routers": 0, "lines": 1, "rate": rate, "sizes": []
        })
    }

    fn path(hops: &[Value]) -> Value {
        json!({
            "address": "192.0.2.1", "protocol": "icmp", "hops": hops, "reached": true, "ended": "sure",
            "sent": 300, "sent_bytes": 300_000
        })
    }

    fn notes(result: &Value) -> String {
        let result = plumb_model::json::from_value(result).unwrap();
        capacity_notes("server", &result).join("\n")
    }

    #[test]
    fn what_the_numbers_hide_is_said() {
        let measured = json!({ "status": "measured", "bps": 10e6, "doubts": [] });
        let sound = path(&[hop(1, 100, &measured), hop(2, 100, &measured)]);
        assert_eq!(notes(&sound), "");

        let mut other = sound.clone();
        other["hops"][0]["other_routers"] = 3.into();
        assert!(notes(&other).contains("3 answers came from other routers"));
        let mut unreached = sound.clone();
        unreached["reached"] = false.into();
        assert!(notes(&unreached).contains("server itself did not answer"));
        let mut trains = sound.clone();
        trains["train"] = json!({
            "method": "native", "rate": { "status": "measured", "bps": 5e6, "doubts": [] }, "packet_bytes": 1500,
            "longest_packets": 400, "trains": 20, "sent": 8000, "received": 8000
        });
        assert!(notes(&trains).contains("a token bucket lets single packets pass"));
        let mut unprobed = unreached;
        unprobed["protocol"] = Value::Null;
        assert_eq!(notes(&unprobed), "");

        let open = json!({ "status": "bounded", "at_least_bps": 4e8, "doubts": ["timing"] });
        let mut ended = path(&[hop(1, 100, &open)]);
        ended["ended"] = "time".into();
        assert!(notes(&ended).contains("more --time narrows the bounds"));
    }

    #[test]
    fn a_router_that_answers_seldom_is_told_from_loss() {
        let measured = json!({ "status": "measured", "bps": 10e6, "doubts": [] });
        let limits = notes(&path(&[hop(1, 20, &measured), hop(2, 100, &measured)]));
        assert!(limits.contains("1 (20 of 100 answered)") && !limits.contains("lost"));
        let lossy = notes(&path(&[hop(1, 100, &measured), hop(2, 60, &measured)]));
        assert!(lossy.contains("40 of 100 probes to hop 2"), "{lossy}");
    }
}
