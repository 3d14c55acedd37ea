//! What is sent: all alarms that were raised or cleared at one time, as one JSON object.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::alarm::record::Alarm;
use crate::page::words::clock;

/// The form of the message, as documents of plumb name theirs.
const SCHEMA: &str = "plumb.alarms/1";

/// A time of a message, as a delivery reads it again.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Time(pub(super) Timestamp);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("'{text}' is no time"))
    }
}

/// A message of what changed at that time, s since 1970.
pub fn message(changed: &[Alarm], now_s: i64) -> String {
    let time = |at_s: i64| {
        Timestamp::from_second(at_s)
            .ok()
            .map(|time| time.to_string())
    };
    let of = |alarm: &Alarm| -> Value {
        json!({
            "state": match alarm.cleared_s { None => "raised", Some(_) => "cleared" },
            "target": alarm.target,
            "alarm": alarm.rule,
            "words": alarm.words,
            "since": time(alarm.since_s),
            "raised": time(alarm.raised_s),
            "cleared": alarm.cleared_s.and_then(time),
            "behind": alarm.behind,
        })
    };
    let lines: Vec<String> = changed.iter().map(|alarm| line(alarm, now_s)).collect();
    json!({
        "schema": SCHEMA,
        "at": time(now_s),
        "text": lines.join("\n"),
        "alarms": changed.iter().map(of).collect::<Vec<_>>(),
    })
    .to_string()
}

/// An alarm that was raised or cleared, for people.
pub fn line(alarm: &Alarm, now_s: i64) -> String {
    let (target, words) = (&alarm.target, alarm.in_words());
    let since = clock(alarm.since_s, now_s);
    match alarm.cleared_s {
        None => format!("{target}: {words} since {since} UTC ({})", alarm.rule),
        Some(_) => format!("{target}: over: {words} since {since} UTC ({})", alarm.rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_what_changed_for_people_and_for_programs() {
        let raised = Alarm {
            rule: "loss".to_owned(),
            target: "gateway".to_owned(),
            since_s: 50_580,
            raised_s: 50_640,
            cleared_s: None,
            words: "loss of 4.0 %".to_owned(),
            behind: vec!["\"a\"".to_owned()],
        };
        let cleared = Alarm {
            cleared_s: Some(50_700),
            ..raised.clone()
        };
        let read: Value = serde_json::from_str(&message(&[raised, cleared], 50_700)).unwrap();
        assert_eq!(
            read["text"],
            "gateway: loss of 4.0 %, with 1 target behind it since 14:03 UTC (loss)\n\
             gateway: over: loss of 4.0 %, with 1 target behind it since 14:03 UTC (loss)"
        );
        assert_eq!(read["alarms"][0]["state"], "raised");
        assert_eq!(read["alarms"][0]["behind"][0], "\"a\"");
        assert_eq!(read["alarms"][1]["cleared"], "1970-01-01T14:05:00Z");
    }
}
