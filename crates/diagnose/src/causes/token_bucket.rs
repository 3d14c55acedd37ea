//! A token bucket lets the beginning of a transfer pass faster than the rest.

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::results::capacity::{Doubt, TrainMethod};
use plumb_model::units::si;

use crate::entry::{Entry, Family, no_sign};
use crate::evidence::{Lines, fact, of_lines};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "a transfer held below the lasting rate never empties the bucket",
    resembles: &[(
        Cause::NarrowestLine,
        "a line carries the same at the beginning and later",
    )],
    yields_to: &[],
    examine: |case| case.lines().filter_map(token_bucket).collect(),
    explains: no_sign,
};

fn token_bucket(lines: Lines<'_>) -> Option<Finding> {
    let train = lines.result.train.as_ref()?;
    let burst = train.burst?;
    // Bunches, and what others send, bend a train too.
    let doubted = [Doubt::Bunched, Doubt::CrossTraffic]
        .iter()
        .any(|doubt| train.rate.doubts.contains(doubt));
    if train.rate.bps.is_none() || doubted {
        return None;
    }
    let (place, way) = match train.method {
        TrainMethod::Native => (Place::Uplink, "on the way there"),
        TrainMethod::Echo => (Place::Path, "on the way there or back"),
    };
    Some(of_lines(
        Cause::TokenBucket,
        place,
        0.9,
        format!(
            "A token bucket {way} lets at least {} pass at {} and then {}: short transfers and short tests see the first rate, and the second is what lasts.",
            si(burst.bucket_bytes, "B"),
            si(burst.first_bps, "bit/s"),
            si(burst.later_bps, "bit/s")
        ),
        fact(
            lines.measurement,
            "train.burst.first_bps",
            burst.first_bps,
            "how fast trains arrived at first, against how fast they went on",
            burst.later_bps,
        ),
    ))
}
