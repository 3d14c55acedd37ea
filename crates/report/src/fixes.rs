//! What is done about several findings, each fix once.

use plumb_model::finding::{Actor, Cause, Finding, Fix};
use plumb_model::run::Run;

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

/// Advice with the host that was measured in place of HOST, the word of a command's help.
pub(crate) fn advice(run: &Run, text: &str) -> String {
    const ANY: &str = "HOST";
    let host = run.target.as_ref().map(|target| without_port(&target.name));
    let Some(host) = host.filter(|host| !host.is_empty()) else {
        return text.to_owned();
    };
    let mut parts = text.split(ANY);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Not a part of a longer word.
        let is_word = !whole.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !part.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        whole.push_str(if is_word { host } else { ANY });
        whole.push_str(part);
    }
    whole
}

/// A host as it was typed, without the port behind it.
fn without_port(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.contains(':') => host,
        Some((host, _)) if host.starts_with('[') && host.ends_with(']') => {
            host.trim_start_matches('[').trim_end_matches(']')
        }
        _ => name,
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
