//! What the rules of all causes find together, without what others of them account for.

use plumb_model::finding::{Cause, Finding, Place, Severity};

use crate::{Case, causes, host};

/// What all rules find.
pub(crate) fn found(case: &Case<'_>) -> Vec<Finding> {
    let all = causes::by_file().flat_map(|(_, entry)| (entry.examine)(case));
    let mut all: Vec<Finding> = all.collect();
    let audits = case.hosts().map(|(id, host)| host::audit(host, id));
    let mut of_host: Vec<Finding> = audits.flat_map(|audit| audit.findings).collect();
    // What is only worth knowing of a machine does not hold back a path; nor does what it counted since it booted.
    let bears_on_a_path =
        |finding: &Finding| finding.severity > Severity::Info && !host::is_of_counters(finding);
    of_host.retain(|finding| !case.has_path() || bears_on_a_path(finding));
    // What a check saw itself says more than what the machine is set to, or has counted since it booted.
    let seen = |other: &Finding| {
        let mut all = all.iter();
        all.any(|finding| finding.cause == other.cause && finding.place == other.place)
    };
    of_host.retain(|finding| !seen(finding));
    all.extend(of_host);
    let causes: Vec<(Cause, Place)> = all.iter().map(|f| (f.cause, f.place)).collect();
    all.retain(|finding| {
        let accounts_for = |(cause, place): &(Cause, Place)| {
            let same = [place, &finding.place].contains(&&Place::Path) || *place == finding.place;
            same && causes::entry(finding.cause).yields_to.contains(cause)
        };
        !causes.iter().any(accounts_for)
    });
    all
}
