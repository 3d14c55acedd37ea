//! Something on the path lowers TCP's maximum segment size.
//!
//! Routers before a tunnel do so to keep out of black holes.

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::evidence::{Sizes, fact};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "hops before the one that lowers it quote it as it was sent",
    needs: &[Need::SegmentSize],
    examine: |case| {
        let facts = case.facts(None);
        let sizes = || case.sizes().filter(|sizes| sizes.result.mss.is_some());
        let known = facts.known(
            "the maximum segment size at hops and in answers",
            sizes().next(),
        );
        let found: Vec<Finding> = sizes().filter_map(clamped).collect();
        if known.is_some() {
            facts.is(
                "it is lowered, or comes back below what the path takes",
                !found.is_empty(),
            );
        }
        found
    },
    ..Entry::PLAIN
};

fn clamped(sizes: Sizes<'_>) -> Option<Finding> {
    let mtu = sizes.result;
    let mss = mtu.mss.as_ref()?;
    let (summary, field, value, threshold, confidence) = match (
        mss.lowered_to_bytes,
        mss.clamped_after,
    ) {
        (Some(bytes), Some(after)) => {
            let place = match after {
                0 => "before the first hop that reports it".to_owned(),
                hop => format!("behind hop {hop}"),
            };
            let summary = format!(
                "A router {place} lowers TCP's maximum segment size from {} to {bytes} bytes.",
                mss.sent_bytes
            );
            let field = "mss.lowered_to_bytes";
            (summary, field, bytes, mss.sent_bytes, 0.99)
        }
        _ if mss.answer_below_path == Some(true) => {
            let (answered, path) = (mss.answered_bytes?, mtu.path_mtu_bytes?);
            let fits = path.saturating_sub(sizes.headers_bytes());
            let summary = format!(
                "TCP's maximum segment size came back as {answered} bytes where the path takes {fits}: lowered on the path, or set so at the far end."
            );
            // The measurement does not show which of the two it is.
            (summary, "mss.answered_bytes", answered, fits, 0.6)
        }
        _ => return None,
    };
    Some(Finding {
        cause: Cause::MssClamped,
        place: Place::Path,
        severity: Severity::Info,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence: vec![fact(
            sizes.measurement,
            field,
            value,
            "bytes of the maximum segment size, against what was sent or fits",
            threshold,
        )],
        fixes: Vec::new(),
        kb: "mtu".to_owned(),
    })
}
