//! What is done about several findings, each fix once.

use plumb_model::finding::{Actor, Cause, Finding, Fix};

/// The fixes of a finding.
pub(crate) struct Fixes<'a> {
    /// Those that no finding before it has in the same words.
    pub(crate) own: Vec<&'a Fix>,
    /// The findings before it that have the others.
    pub(crate) as_for: Vec<Cause>,
}

/// The fixes of each finding, in their order.
pub(crate) fn once(findings: &[Finding]) -> Vec<Fixes<'_>> {
    let mut seen: Vec<(Cause, &Fix)> = Vec::new();
    let mut all = Vec::new();
    for finding in findings {
        let mut fixes = Fixes {
            own: Vec::new(),
            as_for: Vec::new(),
        };
        for fix in &finding.fixes {
            let before = seen.iter().find(|(_, other)| {
                (other.on, &other.summary, &other.commands) == (fix.on, &fix.summary, &fix.commands)
            });
            match before {
                Some((cause, _)) if fixes.as_for.contains(cause) => {}
                Some((cause, _)) => fixes.as_for.push(*cause),
                None => {
                    seen.push((finding.cause, fix));
                    fixes.own.push(fix);
                }
            }
        }
        all.push(fixes);
    }
    all
}

impl Fixes<'_> {
    /// Where the fixes stand that are not repeated, as a sentence.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        let names: Vec<&str> = self.as_for.iter().map(|cause| cause.name()).collect();
        let opening = if self.own.is_empty() {
            "Fix"
        } else {
            "Another fix"
        };
        (!names.is_empty()).then(|| format!("{opening}: as for {}.", names.join(" and ")))
    }
}

/// What is to be done and who does it: a fix, or the next measurement where no cause is known.
pub(crate) fn opening(finding: &Finding, fix: &Fix) -> String {
    let what = match finding.cause {
        Cause::Unexplained => "Next",
        _ => "Fix",
    };
    format!("{what} on {}", actor(fix.on))
}

/// Who has to act, with the article.
fn actor(actor: Actor) -> &'static str {
    match actor {
        Actor::ThisHost => "this host",
        Actor::Router => "the router",
        Actor::FarHost => "the far host",
        Actor::Provider => "the provider",
    }
}
