//! An edge of a content network or a cache answers for the page, and the origin is behind it.
//!
//! Round trips and rates are then those to the edge, which is near; what it has to fetch takes the path behind it.

use std::collections::BTreeMap;

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::page_load::{PageObject, PageOrigin};
use plumb_model::run::Measurement;
use plumb_model::units::human_seconds;

use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// Fields that only a cache, a proxy or an edge adds to an answer: RFC 9110 (Via), RFC 9111 (Age), RFC 9211 (Cache-Status),
/// and what operators document of their own. The first that is there is named.
const SIGNS: &[&str] = &[
    "cf-ray",
    "x-amz-cf-pop",
    "x-served-by",
    "x-azure-ref",
    "x-vercel-id",
    "cache-status",
    "cf-cache-status",
    "x-cache",
    "via",
    "age",
];

/// Fields whose value says whether the edge had the page.
const STATES: &[&str] = &["cache-status", "cf-cache-status", "x-cache"];

/// The first byte takes so much longer than a round trip, in seconds, where the edge asks a host behind it.
const BEHIND_S: f64 = 0.02;

/// The fields say so themselves; the server may have put them there.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "by the address of the origin itself, answers come without the field and after the round trip of a longer path",
    needs: &[Need::Page],
    resembles: &[
        (
            Cause::TransparentProxy,
            "there a machine on the path answers for addresses that are not its own",
        ),
        (
            Cause::ManyRoundTrips,
            "there each of many round trips is as long as the path, whichever host answers",
        ),
    ],
    examine: |case| case.measurements.iter().filter_map(edge).take(1).collect(),
    ..Entry::PLAIN
};

fn edge(measurement: &Measurement) -> Option<Finding> {
    let page = measurement.outcome.page_load()?;
    let field = |name: &&&str| page.cache_fields.contains_key(**name);
    let sign = *SIGNS.iter().find(field)?;
    let value = page.cache_fields.get(sign)?;
    let url = page.page_url.as_deref();
    let object = page
        .objects
        .iter()
        .find(|object| Some(object.url.as_str()) == url);
    let times = object.map_or_else(String::new, |object| times(object, &page.origins));
    Some(Finding {
        cause: Cause::CdnEdge,
        place: Place::FarHost,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "An edge or a cache answers for the page (its field {sign}: {value}){}{times}: what is measured is the path to it, not to the origin.",
            state(&page.cache_fields).unwrap_or_default(),
        ),
        evidence: vec![fact(
            measurement,
            format_args!("cache_fields.{sign}"),
            value.as_str(),
            "a field of the answer that caches and edges add",
            "absent",
        )],
        fixes: vec![Fix::advice(
            Actor::FarHost,
            "Judge the path by this far end as that to the edge. Where the page is slow, see whether the edge has it (a miss asks the origin) and how long it may keep it (Cache-Control).",
            "The first byte comes after one round trip to the edge.",
        )],
        kb: "page".to_owned(),
    })
}

/// Whether the edge had the page, by its own word.
fn state(fields: &BTreeMap<String, String>) -> Option<&'static str> {
    let mut values = STATES.iter().filter_map(|name| fields.get(*name));
    values.find_map(|value| {
        let value = value.to_ascii_lowercase();
        let known = [
            ("hit", ", which had it"),
            ("miss", ", which had to fetch it"),
        ];
        let mut known = known.into_iter();
        known.find_map(|(word, words)| value.contains(word).then_some(words))
    })
}

/// How long a round trip to it takes, and how long what is behind it.
fn times(page: &PageObject, origins: &[PageOrigin]) -> String {
    let origin = usize::try_from(page.origin).ok();
    let origin = origin.and_then(|number| origins.get(number));
    let rtt_s = origin.and_then(|origin| origin.rtt_s);
    let first_byte_s = page.first_byte_s;
    match (rtt_s, first_byte_s) {
        (Some(rtt_s), Some(first_s)) if first_s - rtt_s >= BEHIND_S => format!(
            ", {} away, and the answer begins {} after a round trip",
            human_seconds(rtt_s),
            human_seconds(first_s - rtt_s)
        ),
        (Some(rtt_s), _) => format!(", {} away", human_seconds(rtt_s)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::found;
    use plumb_model::results::{Outcome, PageLoadResult};

    /// The summaries where the answer has these fields and begins so long after the request, over a path of 8 ms.
    fn summaries(fields: &[(&str, &str)], first_byte_s: f64) -> Vec<String> {
        let origin = serde_json::json!({
            "origin": "https://a.example", "address": "192.0.2.9", "protocol": "h2", "tls": null, "dns_s": null,
            "rtt_s": 0.008, "connections": 1, "objects": 1, "bytes": 1000, "error": null,
        });
        let object = serde_json::json!({
            "url": "https://a.example/", "kind": "page", "found_in": null, "origin": 0, "protocol": "h2", "connection": 0,
            "reused_connection": false, "found_s": 0.0, "dns_s": null, "connect_s": 0.008, "tls_s": 0.01, "sent_s": 0.03,
            "first_byte_s": first_byte_s, "body_s": 0.001, "bytes": 1000, "status": 200, "error": null,
        });
        let fields = fields.iter();
        let page = PageLoadResult {
            page_url: Some("https://a.example/".to_owned()),
            cache_fields: fields.map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            origins: vec![serde_json::from_value(origin).unwrap()],
            objects: vec![serde_json::from_value(object).unwrap()],
            ..PageLoadResult::default()
        };
        let outcome = Outcome::PageLoad(Box::new(page));
        let found = found(CAUSE.examine, outcome).into_iter();
        found.map(|finding| finding.summary).collect()
    }

    #[test]
    fn an_edge_is_named_by_what_it_adds() {
        let [near] = summaries(&[("x-cache", "Hit from cloudfront")], 0.009)
            .try_into()
            .unwrap();
        assert!(near.contains("had it, 8.0 ms away:"), "{near}");
        let [miss] = summaries(&[("via", "1.1 varnish"), ("x-cache", "MISS")], 0.308)
            .try_into()
            .unwrap();
        let says = ["fetch it", "300 ms after a round trip"];
        assert!(says.iter().all(|words| miss.contains(words)), "{miss}");
        let none: [String; 0] = [];
        assert_eq!(summaries(&[], 0.308), none, "a slow server");
        let own = [("server-timing", "db;dur=280")];
        assert_eq!(summaries(&own, 0.308), none, "a server's own times");
    }
}
