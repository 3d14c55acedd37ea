//! What a proof makes of the findings that it began with: what was tried is no advice any more; and what it comes to.

use plumb_model::finding::{Action, Actor, Finding, Fix, Severity, Verdict};
use plumb_model::order::sort_few;
use plumb_model::results::tune::{TuneDecision, TuneResult};

/// Adds the outcome to each finding for which a part of the plan was tried, and takes away the fix: what was kept is
/// done, and what was undone does not help. Findings whose outcome is undecided stay unchanged.
pub fn settle(findings: &mut [Finding], results: &[TuneResult]) {
    for finding in findings.iter_mut() {
        let decided = results
            .iter()
            .filter(|r| matches!(r.decision, TuneDecision::Kept | TuneDecision::TooLittle));
        for result in decided {
            let fixes = finding.fixes.len();
            finding.fixes.retain(|fix| !tries(result, fix));
            if finding.fixes.len() < fixes {
                // What was undone leaves the cause as it was, to be fixed by the other fixes.
                if result.decision == TuneDecision::Kept || finding.fixes.is_empty() {
                    finding.severity = Severity::Info;
                }
                finding.summary += &format!(
                    " Tried since: {} {} ({:+.0} %).",
                    result.part,
                    result.words(),
                    result.effect_ratio * 100.0
                );
            }
        }
    }
    // Worst first, as ever.
    sort_few(findings, |a, b| b.severity.cmp(&a.severity));
}

/// What came of all that was tried on this host, of a path that `ends` limit.
pub fn verdict(results: &[TuneResult], ends: &[Actor]) -> Verdict {
    let said: Vec<_> = results
        .iter()
        .map(|result| {
            format!(
                "{} {} ({:+.0} % in {} runs)",
                result.part,
                result.words(),
                result.effect_ratio * 100.0,
                result.runs
            )
        })
        .collect();
    let headline = match (said.as_slice(), ends) {
        ([], [Actor::FarHost]) => {
            "The far host limits this path; nothing on this one helps.".to_owned()
        }
        ([], _) => "Nothing needs to change on this host for this path.".to_owned(),
        _ if results.iter().any(|r| r.decision == TuneDecision::Kept) => {
            format!("Tuned: {}.", said.join("; "))
        }
        _ => format!("Nothing that was tried helps: {}.", said.join("; ")),
    };
    Verdict::of_a_part(headline)
}

/// Whether a fix is of what was tried.
fn tries(result: &TuneResult, fix: &Fix) -> bool {
    match &fix.action {
        Some(Action::Sysctl(set)) if fix.on == Actor::ThisHost => {
            result.settings.iter().any(|tried| tried.knob == set.key)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use plumb_model::finding::{Cause, Place, SysctlAction};
    use plumb_model::results::Direction;
    use plumb_model::results::tune::TunedSetting;

    use super::*;

    fn finding(on: Actor, key: &str) -> Finding {
        Finding {
            cause: Cause::SendBufferSmall,
            place: Place::ThisHost,
            severity: Severity::Critical,
            confidence: 0.95,
            matters_for: Vec::new(),
            summary: "Small.".to_owned(),
            evidence: Vec::new(),
            fixes: vec![Fix {
                on,
                summary: String::new(),
                action: Some(Action::Sysctl(SysctlAction {
                    key: key.to_owned(),
                    value: "1".to_owned(),
                })),
                commands: Vec::new(),
                expect: String::new(),
            }],
            kb: String::new(),
        }
    }

    fn result(knob: &str, decision: TuneDecision) -> TuneResult {
        TuneResult {
            part: "send buffer".to_owned(),
            settings: vec![TunedSetting {
                knob: knob.to_owned(),
                from: None,
                to: "1".to_owned(),
            }],
            direction: Direction::Up,
            decision,
            effect_ratio: 7.95,
            noise_ratio: None,
            least_seen_ratio: None,
            without_bps: None,
            with_bps: None,
            runs: 4,
            most_runs: 24,
        }
    }

    #[test]
    fn what_was_tried_is_no_advice_any_more() {
        let here = || finding(Actor::ThisHost, "wmem");
        let mut findings = vec![here(), finding(Actor::FarHost, "wmem")];
        settle(&mut findings, &[result("wmem", TuneDecision::Kept)]);
        assert_eq!(findings[0].fixes[0].on, Actor::FarHost, "worst first");
        assert_eq!(findings[1].severity, Severity::Info);
        assert!(findings[1].fixes.is_empty());
        assert_eq!(
            findings[1].summary,
            "Small. Tried since: send buffer kept (+795 %)."
        );
        for untold in [TuneDecision::CannotTell, TuneDecision::OutOfBudget] {
            let mut findings = vec![here()];
            settle(&mut findings, &[result("wmem", untold)]);
            assert_eq!(findings, [here()]);
        }
        // Undone, and another fix is left.
        let mut findings = vec![here()];
        let other = finding(Actor::FarHost, "rmem").fixes;
        findings[0].fixes.extend(other.clone());
        settle(&mut findings, &[result("wmem", TuneDecision::TooLittle)]);
        assert_eq!(findings[0].severity, Severity::Critical);
        assert_eq!(findings[0].fixes, other);
        let mut findings = vec![here()];
        settle(&mut findings, &[result("wmem", TuneDecision::TooLittle)]);
        assert_eq!(findings[0].severity, Severity::Info);
        let mut findings = vec![here()];
        settle(&mut findings, &[result("rmem", TuneDecision::Kept)]);
        assert_eq!(findings, [here()]);
    }
}
