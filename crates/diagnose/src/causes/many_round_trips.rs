//! A page takes long because it takes many round trips, one after the other.
//!
//! Each thing that is found only in another, and each connection, waits for the path; more rate does not help.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::run::Measurement;
use plumb_model::units::human_seconds;

use crate::captured;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::signs::percent;

/// Share of the load time that is more than all else together.
const MOST_RATIO: f64 = 0.5;

/// A page that is there sooner hardly interrupts anybody, in seconds (Nielsen, Usability Engineering, chapter 5).
const SLOW_S: f64 = 1.0;

/// They follow from the times of the objects by arithmetic.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a far end at a part of the distance, or a page of fewer steps, loads in as much less time",
    needs: &[Need::Page],
    resembles: &[(
        Cause::BufferbloatDown,
        "a queue makes each round trip longer while something fills it; here each is as long as the path",
    )],
    examine: |case| {
        let pages = case.measurements.iter().filter_map(page).take(1);
        pages.chain(captured::turns(case)).collect()
    },
    ..Entry::PLAIN
};

fn page(measurement: &Measurement) -> Option<Finding> {
    let page = measurement.outcome.page_load()?;
    let (load_s, trips) = (page.load_s?, page.round_trips?);
    (load_s >= SLOW_S && trips.load_ratio >= MOST_RATIO).then(|| Finding {
        cause: Cause::ManyRoundTrips,
        place: Place::FarHost,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The page takes {}, of which {} round trips, one after the other, are {} ({}): a faster line would not load it sooner.",
            human_seconds(load_s),
            trips.count,
            human_seconds(trips.time_s),
            percent(trips.load_ratio.min(1.0))
        ),
        evidence: vec![fact(
            measurement,
            "round_trips.load_ratio",
            trips.load_ratio,
            "share of the load time that the round trips of the critical path take, against half",
            MOST_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::FarHost,
            "Serve it from nearer (an edge), with HTTP/2 or HTTP/3 and TLS 1.3, and have the page name early what it needs late (preload), from few origins.",
            "Fewer round trips on the critical path: `plumb page` shows it step by step.",
        )],
        kb: "page".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::found;
    use plumb_model::results::page_load::RoundTrips;
    use plumb_model::results::{Outcome, PageLoadResult};

    #[test]
    fn a_slow_page_of_many_steps_is_told_from_a_large_one() {
        let of = |load_s: f64, load_ratio: f64| {
            let page = PageLoadResult {
                load_s: Some(load_s),
                round_trips: Some(RoundTrips {
                    count: 9,
                    time_s: load_s * load_ratio,
                    load_ratio,
                }),
                ..PageLoadResult::default()
            };
            found(CAUSE.examine, Outcome::PageLoad(Box::new(page))).len()
        };
        assert_eq!(of(1.8, 0.9), 1);
        assert_eq!(of(1.8, 0.2), 0, "the rate, or the server");
        assert_eq!(of(0.3, 0.9), 0, "fast enough");
    }
}
