//! mtr's report, JSON and CSV, with the fields that its `--order` chooses.

use std::fmt::Write as _;

use plumb_model::results::path::PathHop;
use serde_json::{Value, json};

use super::form::{Shown, Traced};
use super::order::Field;

/// A value in the form that mtr writes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Percent(f64),
    Count(u64),
    Milliseconds(f64),
    Nothing,
}

/// A hop, and the round trips of its probes in their order.
struct Hub<'a> {
    hop: &'a PathHop,
    rtts_ms: Vec<f64>,
}

impl<'a> Hub<'a> {
    fn all(traced: &'a Traced<'a>) -> impl Iterator<Item = Self> {
        traced.path.hops.iter().map(|hop| {
            let rtts_s = traced.round_trips(hop.ttl).iter().flatten();
            Self {
                hop,
                rtts_ms: rtts_s.map(|s| s * 1000.0).collect(),
            }
        })
    }

    fn host(&self, both: bool) -> String {
        match (self.hop.name.as_deref(), self.hop.address.as_deref()) {
            (Some(name), Some(address)) if both && name != address => format!("{name} ({address})"),
            (name, address) => name.or(address).unwrap_or("???").to_owned(),
        }
    }

    /// Its network, as mtr writes it.
    fn network(&self) -> String {
        let asn = self.hop.asn;
        asn.map_or_else(|| "AS???".to_owned(), |asn| format!("AS{asn}"))
    }

    /// Differences of the round trips of answers that follow each other.
    fn jitters(&self) -> impl Iterator<Item = f64> {
        let next = self.rtts_ms.iter().skip(1);
        self.rtts_ms.iter().zip(next).map(|(a, b)| (b - a).abs())
    }

    fn cell(&self, field: Field) -> Cell {
        let hop = self.hop;
        let rtt = |get: fn(&plumb_model::distribution::Distribution) -> f64| {
            hop.rtt_s.as_ref().map_or(0.0, get) * 1000.0
        };
        let ms = Cell::Milliseconds;
        match field {
            Field::Loss => Cell::Percent(hop.unanswered_ratio * 100.0),
            Field::Dropped => Cell::Count(hop.sent.saturating_sub(hop.received)),
            Field::Received => Cell::Count(hop.received),
            Field::Sent => Cell::Count(hop.sent),
            Field::Newest => ms(hop.last_rtt_s.unwrap_or(0.0) * 1000.0),
            Field::Best => ms(rtt(|d| d.min)),
            Field::Average => ms(rtt(|d| d.mean)),
            Field::Worst => ms(rtt(|d| d.max)),
            Field::Deviation => {
                // mtr divides by one less than the number of samples.
                let sample = hop.rtt_s.map_or(1.0, |d| match d.count {
                    0 | 1 => 1.0,
                    n => (n as f64 / (n - 1) as f64).sqrt(),
                });
                ms(rtt(|d| d.stddev) * sample)
            }
            Field::GeometricMean => {
                let above_zero = || self.rtts_ms.iter().filter(|ms| **ms > 0.0);
                let logarithms: f64 = above_zero().map(|ms| ms.ln()).sum();
                ms(match above_zero().count() {
                    0 => 0.0,
                    count => (logarithms / count as f64).exp(),
                })
            }
            Field::Jitter => ms(self.jitters().last().unwrap_or(0.0)),
            Field::JitterMean => {
                let sum: f64 = self.jitters().sum();
                ms(sum / self.jitters().count().max(1) as f64)
            }
            Field::JitterWorst => ms(self.jitters().fold(0.0, f64::max)),
            // RFC 3550, section 6.4.1.
            Field::JitterInterarrival => ms(self.jitters().fold(0.0, |j, d| j + (d - j) / 16.0)),
            Field::Space => Cell::Nothing,
        }
    }
}

/// `mtr --json`.
pub(super) fn json(traced: &Traced<'_>, shown: &Shown<'_>) -> Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let hub = |hub: Hub<'_>| {
        let mut fields = serde_json::Map::new();
        fields.insert("count".to_owned(), hub.hop.ttl.into());
        fields.insert("host".to_owned(), hub.host(shown.both).into());
        if shown.networks || hub.hop.asn.is_some() {
            fields.insert("ASN".to_owned(), hub.network().into());
        }
        for (name, field) in shown.order.fields() {
            let value = match hub.cell(*field) {
                Cell::Percent(value) | Cell::Milliseconds(value) => rounded(value).into(),
                Cell::Count(count) => count.into(),
                Cell::Nothing => continue,
            };
            fields.insert((*name).to_owned(), value);
        }
        Value::Object(fields)
    };
    let hubs: Vec<Value> = Hub::all(traced).map(hub).collect();
    let mut about = serde_json::Map::new();
    about.insert("src".to_owned(), shown.here.into());
    about.insert("dst".to_owned(), traced.target().into());
    about.insert("tos".to_owned(), shown.traffic_class.into());
    about.insert("tests".to_owned(), traced.path.cycles.into());
    // mtr writes it as text.
    let size = shown.size_bytes.map(|bytes| bytes.to_string().into());
    about.extend(size.map(|size: Value| ("psize".to_owned(), size)));
    let pattern = format!("0x{:02X}", shown.fill);
    about.insert("bitpattern".to_owned(), pattern.into());
    json!({ "report": { "mtr": about, "hubs": hubs } })
}

/// `mtr --csv`.
pub(super) fn csv(traced: &Traced<'_>, shown: &Shown<'_>) -> String {
    let mut text = "Mtr_Version,Start_Time,Status,Host,Hop,Ip".to_owned();
    if shown.networks {
        text.push_str(",Asn");
    }
    for (name, _) in shown.order.fields() {
        let _ = write!(text, ",{name}");
    }
    text.push_str(",\n");
    let began = traced
        .run
        .started
        .parse::<jiff::Timestamp>()
        .map_or(0, jiff::Timestamp::as_second);
    let field = |text: &str| text.replace([',', '\n', '"'], " ");
    for hub in Hub::all(traced) {
        let _ = write!(
            text,
            "plumb.{},{began},OK,{},{},{}",
            traced.run.plumb,
            field(traced.target()),
            hub.hop.ttl,
            field(&hub.host(shown.both)),
        );
        if shown.networks {
            let _ = write!(text, ",{}", hub.network());
        }
        for (_, field) in shown.order.fields() {
            let _ = match hub.cell(*field) {
                Cell::Percent(value) | Cell::Milliseconds(value) => write!(text, ",{value:.2}"),
                Cell::Count(count) => write!(text, ",{count}"),
                Cell::Nothing => write!(text, ",0"),
            };
        }
        text.push('\n');
    }
    text
}

/// `mtr --report`.
pub(super) fn report(traced: &Traced<'_>, shown: &Shown<'_>) -> String {
    /// Before the name of each hop stand its number and three marks.
    const NUMBER: usize = 8;
    let host = |hub: &Hub<'_>| match shown.networks {
        true => format!("{:<8} {}", hub.network(), hub.host(shown.both)),
        false => hub.host(shown.both),
    };
    let widest = Hub::all(traced).map(|hub| host(&hub).chars().count());
    let width = widest.max().unwrap_or(0).max(24);
    let mut text = format!("Start: {}\n", traced.run.started);
    let head = format!("HOST: {}", shown.here);
    let _ = write!(text, "{head:<pad$}", pad = width + NUMBER);
    for (name, field) in shown.order.fields() {
        let _ = match field {
            Field::Space => write!(text, " "),
            Field::Loss => write!(text, " {name:>6}"),
            _ => write!(text, " {name:>5}"),
        };
    }
    text.push('\n');
    for hub in Hub::all(traced) {
        let _ = write!(text, "{:>3}.|-- {:<width$}", hub.hop.ttl, host(&hub));
        for (_, field) in shown.order.fields() {
            let _ = match hub.cell(*field) {
                Cell::Percent(value) => write!(text, " {value:>5.1}%"),
                Cell::Milliseconds(value) => write!(text, " {value:>5.1}"),
                Cell::Count(count) => write!(text, " {count:>5}"),
                Cell::Nothing => write!(text, " "),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::order::of_letter;
    use super::*;
    use plumb_model::distribution::Distribution;
    use plumb_model::results::path::HopAnswers;

    fn hop() -> PathHop {
        let rtts = [0.010, 0.014, 0.012];
        PathHop {
            ttl: 1,
            address: Some("192.0.2.1".to_owned()),
            addresses: vec![],
            name: None,
            asn: None,
            as_name: None,
            place: None,
            sent: 4,
            received: 3,
            unanswered_ratio: 0.25,
            answers: HopAnswers::Well,
            rtt_s: Distribution::of(rtts),
            last_rtt_s: Some(0.012),
            annotation: None,
            this_host: false,
            mpls: vec![],
            return_hops: None,
            notes: vec![],
        }
    }

    #[test]
    fn every_field_is_what_mtr_means_by_it() {
        let hop = hop();
        let hub = Hub {
            hop: &hop,
            rtts_ms: vec![10.0, 14.0, 12.0],
        };
        let is = |letter: char| match hub.cell(of_letter(letter).unwrap().1) {
            Cell::Percent(v) | Cell::Milliseconds(v) => (v * 1000.0).round() / 1000.0,
            Cell::Count(n) => n as f64,
            Cell::Nothing => f64::NAN,
        };
        let all: Vec<f64> = "LDRSNBAWVGJMXI".chars().map(is).collect();
        // The geometric mean is the cube root of 1680; Jint 4/16 and then 15/16 of it and 2/16.
        let wanted = [
            25.0, 1.0, 3.0, 4.0, 12.0, 10.0, 12.0, 14.0, 2.0, 11.888, 2.0, 3.0, 4.0, 0.359,
        ];
        assert_eq!(all, wanted);
    }
}
