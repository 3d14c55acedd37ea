//! Many small files take a round trip each, whatever the line carries.
//!
//! A copy that sends one file, waits until the far end has it, and sends the next, carries a file in each round trip. Looked at
//! where a check is for transfers or backups; large files are not slowed by it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::facts::bps;
use crate::signs::percent;

/// Objects that carry less than this share of what a stream does wait longer than they are sent.
const WAITS_RATIO: f64 = 0.5;

/// Both rates were measured on this path.
const CONFIDENCE: f64 = 0.95;

/// The most copies at once that are advised: servers limit connections to about so many (OpenSSH's MaxStartups begins to drop at
/// 10, and HTTP/2 offers 100 streams).
const MOST_AT_ONCE: f64 = 32.0;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same bytes in one archive arrive at the rate of one stream",
    needs: &[Need::SmallObjects, Need::Upload],
    resembles: &[
        (
            Cause::DiskSlow,
            "there one large file is as slow, and a transfer from memory is not",
        ),
        (
            Cause::SshWindow,
            "there one large file is slowed, too, by the window of the program that copies",
        ),
    ],
    examine: |case| found(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn found(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let objects = facts.known("small objects one after another", case.small_objects())?;
    let stream = case.single_stream(Direction::Up);
    let stream = stream.or_else(|| case.full_load(Direction::Up))?;
    let (objects_bps, stream_bps) = (objects.bps(), stream.bps());
    let at_once = (stream_bps / objects_bps.max(1.0)).ceil().min(MOST_AT_ONCE);
    let size = si(objects.bytes, "B");
    let limit = WAITS_RATIO * stream_bps;
    let name = "rate of small objects";
    facts.below(name, bps(objects_bps), limit).then(|| Finding {
        cause: Cause::SmallFiles,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Files of {size} one after another carry {} of the {} that this path does: each takes {}, and of that {} is waiting for the answer.",
            si(objects_bps, "bit/s"),
            si(stream_bps, "bit/s"),
            human_seconds(objects.each_s.p50),
            percent((1.0 - objects_bps / stream_bps).clamp(0.0, 1.0)),
        ),
        evidence: vec![fact(
            objects.measurement,
            "rate_tps",
            objects.per_s,
            format!("objects of {size} a second, against half of those that a stream carries in the same time"),
            limit / (objects.bytes * 8.0),
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            format!(
                "Where there are many small files, send them as one stream (tar through ssh, an archive, rsync, which does not wait for each), or about {at_once:.0} at once (rclone --transfers, several copies side by side)."
            ),
            format!("They arrive at up to {}.", si(stream_bps, "bit/s")),
        )],
        kb: "copies".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{carrying, found_in, objects};

    /// What is found where so many objects of 10 kB went a second beside an upload of 100 Mbit/s.
    fn at(rate_tps: f64) -> Vec<Finding> {
        let load = carrying(Direction::Up, 1e8);
        found_in(CAUSE.examine, &[load, objects(rate_tps)])
    }

    #[test]
    fn round_trips_that_take_most_of_the_time_are_found() {
        let [found] = at(20.0).try_into().unwrap();
        assert!(
            found
                .summary
                .contains("10.0 kB one after another carry 1.60 Mbit/s of the 100 Mbit/s"),
            "{}",
            found.summary
        );
        assert!(
            found
                .fixes
                .first()
                .unwrap()
                .summary
                .contains("about 32 at once")
        );
        assert_eq!(at(1000.0), [], "80 Mbit/s of 100: a short path");
    }

    #[test]
    fn without_a_stream_to_compare_with_nothing_is_said() {
        assert_eq!(found_in(CAUSE.examine, &[objects(20.0)]), []);
    }
}
