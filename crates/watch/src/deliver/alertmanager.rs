//! Alertmanager, which groups alarms and silences them, by its API of version 2. It takes an alert of which it hears nothing more
//! for resolved, so that all that stand are sent again and again, as Prometheus does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::delivery::{Delivery, NotTaken, within};
use super::message::Time;
use super::webhook::WebServer;

/// Where it takes alerts (Alertmanager's OpenAPI specification, `postAlerts`).
const PATH: &str = "/api/v2/alerts";

/// How often an alert that stands is sent, in seconds: Prometheus' `--rules.alert.resend-delay`.
const EVERY_S: i64 = 60;

/// For how many of these times an alert holds that is not sent again: Prometheus sends it four times before it ends.
const HOLDS: i64 = 4;

/// Labels that every alert has.
const OWN: [&str; 2] = ["alertname", "target"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    url: String,
    within: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Alertmanager {
    to: WebServer,
    labels: BTreeMap<String, String>,
}

/// What of a message counts here.
#[derive(Deserialize)]
struct Message {
    at: Time,
    alarms: Vec<Alarm>,
}

#[derive(Deserialize)]
struct Alarm {
    target: String,
    alarm: String,
    words: String,
    since: Time,
    cleared: Option<Time>,
    behind: Vec<String>,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Delivery>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let url = settings.url.trim_end_matches('/');
    let url = format!("{}{PATH}", url.strip_suffix(PATH).unwrap_or(url));
    for name in settings.labels.keys() {
        let mut letters = name.chars();
        let begins = letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "'{name}' is no name of a label: letters, digits and _, of which no digit is the first"
            ));
        }
        if OWN.contains(&name.as_str()) {
            return Err(format!(
                "every alert has a label '{name}' of its own: leave it out"
            ));
        }
    }
    let within = within(settings.within.as_deref())?;
    Ok(Box::new(Alertmanager {
        to: WebServer::read(&url, settings.ca, settings.insecure, within)?,
        labels: settings.labels,
    }))
}

impl Delivery for Alertmanager {
    fn send(&self, message: &str) -> Result<(), NotTaken> {
        let message: Message = serde_json::from_str(message).map_err(|error| error.to_string())?;
        Ok(self.to.send(&self.alerts(&message).to_string())?)
    }

    fn state_every_s(&self) -> Option<i64> {
        Some(EVERY_S)
    }
}

impl Alertmanager {
    fn alerts(&self, message: &Message) -> Value {
        let holds = SignedDuration::from_secs(EVERY_S * HOLDS);
        let until = message.at.0.checked_add(holds).unwrap_or(message.at.0);
        let alert = |alarm: &Alarm| {
            let mut labels: Map<String, Value> = self
                .labels
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect();
            labels.insert("alertname".to_owned(), alarm.alarm.as_str().into());
            labels.insert("target".to_owned(), alarm.target.as_str().into());
            let mut notes = Map::new();
            notes.insert(
                "summary".to_owned(),
                format!("{}: {}", alarm.target, alarm.words).into(),
            );
            if !alarm.behind.is_empty() {
                notes.insert("behind".to_owned(), alarm.behind.join(", ").into());
            }
            json!({
                "labels": labels,
                "annotations": notes,
                "startsAt": alarm.since.0.to_string(),
                "endsAt": alarm.cleared.map_or(until, |time| time.0).to_string(),
            })
        };
        message.alarms.iter().map(alert).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::record;
    use crate::deliver::message::message;

    fn settings(text: &str) -> Result<Box<dyn Delivery>, String> {
        read(text.parse().unwrap())
    }

    fn manager(labels: &[(&str, &str)]) -> Alertmanager {
        let within = within(None).unwrap();
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Alertmanager {
            to: WebServer::read("http://127.0.0.1:9093", None, false, within).unwrap(),
            labels: labels.collect(),
        }
    }

    #[test]
    fn what_stands_holds_for_four_minutes_and_what_is_over_has_ended() {
        let stands = record::Alarm {
            rule: "loss".to_owned(),
            target: "gateway".to_owned(),
            since_s: 540,
            raised_s: 600,
            cleared_s: None,
            words: "loss of 4.0 %".to_owned(),
            behind: vec!["a".to_owned(), "b".to_owned()],
        };
        let over = record::Alarm {
            cleared_s: Some(660),
            behind: Vec::new(),
            ..stands.clone()
        };
        let sent = message(&[stands, over], 720);
        let alerts = manager(&[("severity", "page")]).alerts(&serde_json::from_str(&sent).unwrap());
        let labels = json!({"alertname": "loss", "target": "gateway", "severity": "page"});
        let summary = "gateway: loss of 4.0 %";
        assert_eq!(
            alerts,
            json!([
                {
                    "labels": labels,
                    "annotations": {"summary": summary, "behind": "a, b"},
                    "startsAt": "1970-01-01T00:09:00Z",
                    "endsAt": "1970-01-01T00:16:00Z",
                },
                {
                    "labels": labels,
                    "annotations": {"summary": summary},
                    "startsAt": "1970-01-01T00:09:00Z",
                    "endsAt": "1970-01-01T00:11:00Z",
                },
            ])
        );
    }

    #[test]
    fn settings_that_are_wrong_are_refused_in_words() {
        assert!(settings("url = \"http://h:9093/prefix/\"").is_ok());
        for (text, words) in [
            ("", "missing field `url`"),
            ("url = \"h\"", ""),
            (
                "url = \"http://h/\"\ntoken = \"x\"",
                "unknown field `token`",
            ),
            ("url = \"http://h/\"\nca = \"/f\"", "for https alone"),
            (
                "url = \"https://h/\"\nca = \"f\"",
                "the whole path of a file",
            ),
            (
                "url = \"https://h/\"\nca = \"/f\"\ninsecure = true",
                "leave one of them out",
            ),
            (
                "url = \"http://h/\"\nlabels = { 1a = \"x\" }",
                "no name of a label",
            ),
            (
                "url = \"http://h/\"\nlabels = { target = \"x\" }",
                "of its own",
            ),
            (
                "url = \"http://h/\"\nwithin = \"1h\"",
                "within is a time from 1 s",
            ),
        ] {
            let why = settings(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
