//! The samples of one time: what `/metrics` has, with labels of the file, and marks of what it has no more. Pure.

use std::collections::{BTreeMap, BTreeSet};

use plumb_wire::remote_write::{Kind, NAME, STALE, Sample};

use super::queue::Labels;
use crate::metrics::Family;

/// A clock that was set back by no more than this is waited for, in ms: samples of a series have to be in the order of time,
/// and a receiver refuses others. One that was set back further had been wrong.
const MOST_BACK_MS: i64 = 3_600_000;

/// Whether samples of that time may follow the last ones.
pub(super) fn may_follow(at_ms: i64, last_ms: Option<i64>) -> bool {
    last_ms.is_none_or(|last_ms| at_ms > last_ms || last_ms - at_ms > MOST_BACK_MS)
}

/// The samples of that time, and the series that they are of. Series of `before` that are there no more are marked.
pub(super) fn samples(
    families: &[Family],
    own: &BTreeMap<String, String>,
    at_ms: i64,
    before: &BTreeSet<Labels>,
) -> (Vec<Sample>, BTreeSet<Labels>) {
    let (mut samples, mut series) = (Vec::new(), BTreeSet::new());
    for family in families {
        for point in &family.points {
            let name = (NAME.to_owned(), family.name.clone());
            let labels = point
                .labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()));
            let own = own
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            let mut labels: Labels = labels.chain(own).chain([name]).collect();
            labels.sort();
            if point.value.is_finite() && series.insert(labels.clone()) {
                samples.push(Sample {
                    labels,
                    kind: family.kind,
                    help: family.help,
                    value: point.value,
                    at_ms,
                });
            }
        }
    }
    samples.extend(before.difference(&series).map(|labels| Sample {
        labels: labels.clone(),
        kind: Kind::Unspecified,
        help: "",
        value: STALE,
        at_ms,
    }));
    (samples, series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Point;

    fn family(name: &str, targets: &[(&str, f64)]) -> Family {
        let points = targets.iter().map(|(target, value)| Point {
            labels: vec![("target", (*target).to_owned()), ("probe", "icmp".into())],
            value: *value,
        });
        Family {
            name: name.to_owned(),
            kind: Kind::Gauge,
            help: "h",
            points: points.collect(),
        }
    }

    #[test]
    fn what_is_gone_is_marked_once() {
        let own = BTreeMap::from([("site".to_owned(), "x".to_owned())]);
        let round = |families: &[Family], before: &_| samples(families, &own, 5, before);
        let both = [family("m", &[("a", 1.0), ("b", 2.0)])];
        let (first, series) = round(&both, &BTreeSet::new());
        let labels = [
            ("__name__", "m"),
            ("probe", "icmp"),
            ("site", "x"),
            ("target", "a"),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((first.len(), first[0].value, first[0].at_ms), (2, 1.0, 5));
        assert_eq!(first[0].labels, labels);
        // A value that is no number is none.
        let one = [family("m", &[("a", f64::NAN), ("b", 2.0)])];
        let (second, left) = round(&one, &series);
        assert_eq!((second.len(), left.len()), (2, 1));
        assert_eq!(second[1].labels, labels);
        assert_eq!(second[1].value.to_bits(), 0x7ff0_0000_0000_0002);
        assert_eq!(round(&one, &left).0.len(), 1);
    }

    #[test]
    fn a_clock_that_was_set_back_is_waited_for_an_hour_at_most() {
        assert!(may_follow(1, None) && may_follow(2, Some(1)));
        assert!(!may_follow(1, Some(1)) && !may_follow(0, Some(MOST_BACK_MS)));
        assert!(may_follow(0, Some(MOST_BACK_MS + 1)));
    }
}
