//! What the rules of all causes find together, without what others of them account for.

use plumb_model::finding::{Cause, Finding, Place, Severity};

use crate::{Case, causes, host};

/// What became of what a rule found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    /// It is only worth knowing of a machine, or was counted since that booted, and holds back no path.
    OfMachineAlone,
    /// The same was seen while the path was measured.
    SeenMeanwhile,
    AccountedFor(Cause),
}

/// What all rules find.
pub(crate) fn found(case: &Case<'_>) -> Vec<Finding> {
    let all = with_fates(case).into_iter();
    let kept = all.filter(|(_, fate)| *fate == Fate::Kept);
    kept.map(|(finding, _)| finding).collect()
}

/// The same with what is no finding of its own.
pub(crate) fn with_fates(case: &Case<'_>) -> Vec<(Finding, Fate)> {
    let of_path = causes::by_file().flat_map(|(_, entry)| (entry.examine)(case));
    let of_path: Vec<Finding> = of_path.collect();
    let of_host = case
        .hosts()
        .flat_map(|(id, host)| host::audit(host, id).findings);
    let mut all: Vec<(Finding, Fate)> = Vec::new();
    for finding in of_host {
        // What is only worth knowing of a machine does not hold back a path; nor does what it counted since it booted.
        let bears_on_a_path = finding.severity > Severity::Info && !host::is_of_counters(&finding);
        // What a check saw itself says more than what the machine is set to, or has counted since it booted.
        let mut seen = of_path.iter();
        let seen = seen.any(|o| o.cause == finding.cause && o.place == finding.place);
        let fate = match (case.has_path() && !bears_on_a_path, seen) {
            (true, _) => Fate::OfMachineAlone,
            (false, true) => Fate::SeenMeanwhile,
            (false, false) => Fate::Kept,
        };
        all.push((finding, fate));
    }
    let of_path = of_path.into_iter().map(|finding| (finding, Fate::Kept));
    all.splice(0..0, of_path);
    let kept = all.iter().filter(|(_, fate)| *fate == Fate::Kept);
    let found: Vec<(Cause, Place)> = kept.map(|(f, _)| (f.cause, f.place)).collect();
    for (finding, fate) in all.iter_mut().filter(|(_, fate)| *fate == Fate::Kept) {
        let accounts_for = |(cause, place): &&(Cause, Place)| {
            let same = [place, &finding.place].contains(&&Place::Path) || *place == finding.place;
            same && causes::entry(finding.cause).yields_to.contains(cause)
        };
        if let Some((cause, _)) = found.iter().find(accounts_for) {
            *fate = Fate::AccountedFor(*cause);
        }
    }
    all
}
