//! A processor's backlog of received packets overflows.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer backlog, or more processors for it, leaves the counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::PathLoss, "there softnet_stat counts no drops")],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            // The backlogs are the whole machine's, and in a part of it others' packets count as well.
            if case.is_whole_machine() != Some(true) {
                return Vec::new();
            }
            let names = counted.result.grown.keys();
            let of_backlogs = names.filter(|name| name.starts_with("softnet."));
            let (dropped, processed): (Vec<_>, Vec<_>) = of_backlogs
                .filter(|name| name.ends_with(".dropped") || name.ends_with(".processed"))
                .partition(|name| name.ends_with(".dropped"));
            let carried = counted.sum(processed.into_iter().map(String::as_str));
            vec![Dropped::of(counted, dropped.into_iter().cloned(), carried)]
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::BacklogDrops,
    place: Place::ThisHost,
    what: "had no room in a processor's backlog for",
    warning_ratio: LOSS_WARNING,
    fix: "Let more packets wait (net.core.netdev_max_backlog), or spread them over more processors (RSS, RPS).",
    kb: "host",
};
