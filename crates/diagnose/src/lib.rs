//! What the measurements mean: evidence in, findings with typed actions out.
//!
//! One cause a file, in `causes/`. Its rule looks at a [`Case`] and says what it found, with the numbers that it rests
//! on; it measures nothing and sends nothing, so that it can be tried on any saved Run. What several causes share
//! stands beside that folder. `evidence/` reads results, `signs/` says what is not healthy whatever the cause,
//! `verdict/` what it all comes to; `host/` audits a machine.

pub mod baseline;
mod capacity_notes;
mod captured;
mod case;
pub mod causes;
mod dropped_here;
mod drops_without_queue;
pub mod entry;
mod evidence;
mod excess;
pub mod experiment;
pub mod explanation;
pub mod facts;
pub mod goals;
pub mod host;
mod latency_grade;
pub mod lengths;
pub mod limit;
mod long_queue;
mod loss;
mod measured_again;
pub mod merge;
mod needs;
mod options;
pub mod outcomes;
pub mod path_to_prepare;
pub mod places;
mod queue_advice;
mod reading;
pub mod rehearsed;
mod relevance;
mod rules;
pub mod segments;
mod signs;
pub mod since_good;
#[cfg(test)]
mod testing;
pub mod tuned;
mod verdict;
pub mod weighing;
mod window;

use plumb_model::finding::{Finding, Verdict};
use plumb_model::order::sort_few;

use excess::excess;

pub use capacity_notes::capacity_notes;
pub use case::{Case, Scope};
pub use latency_grade::grade;
pub use measured_again::{Again, is_measured_again, measured_again};
pub use reading::STANDARD_INPUT;
pub use verdict::{local, without_load, without_responder};

/// Everything that holds the path back, worst first, and what it comes to.
pub fn diagnose(case: &Case<'_>, scope: Scope) -> (Vec<Finding>, Verdict) {
    let mut findings = verdict::with_unexplained(case, weighing::found(case));
    let rank = |finding: &Finding| causes::entry(finding.cause).rank;
    let bears_on = |finding: &Finding| relevance::bears_on(case.asked, finding.cause);
    sort_few(&mut findings, |a, b| {
        b.severity
            .cmp(&a.severity)
            .then(rank(a).cmp(&rank(b)))
            .then(bears_on(b).cmp(&bears_on(a)))
            .then(excess(b).total_cmp(&excess(a)))
    });
    goals::explain(&mut findings);
    queue_advice::join_directions(&mut findings);
    let verdict = verdict::verdict(case, scope, &findings);
    (findings, verdict)
}
