//! Many targets: who they are, and what is printed while they are probed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use plumb_measure::sweep::Targets;
use plumb_model::printable;
use plumb_probe::sweep::ManySeen;
use plumb_probe::sweep::targets::{MOST, Word, addresses, lines};
use serde_json::json;

use super::fping::{self, Format};
use super::live::answered;
use crate::charset;
use crate::output;
use crate::target::{Family, Target};
use crate::usage::wrong;

/// Names looked up at the same time: a server that answers slowly, or not at all, holds up only as
/// many.
const LOOKING: usize = 32;

/// Reads the words of a file, or of standard input where it is called `-`.
pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        return io::read_to_string(io::stdin()).context("cannot read standard input");
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The targets that words name. A name that cannot be looked up does not stop the others.
pub(crate) fn resolve(
    words: &[String],
    file: Option<&str>,
    family: Family,
) -> anyhow::Result<Targets> {
    let mut found: Vec<(String, Option<SocketAddr>)> = Vec::new();
    if words.iter().any(|word| word.trim().is_empty()) {
        return Err(wrong("the name of a host is empty: leave it out"));
    }
    for word in words
        .iter()
        .map(String::as_str)
        .chain(file.into_iter().flat_map(lines))
    {
        match Word::parse(word).map_err(|why| wrong(why.to_string()))? {
            Word::Network(first, last) => {
                let all = addresses(first, last).take(MOST + 1);
                found.extend(all.map(|a| (a.to_string(), Some(SocketAddr::new(a, 0)))));
            }
            Word::Host(name) => {
                let address = name.parse::<IpAddr>().ok();
                let plain = address.filter(|a| match family {
                    // A link-local address needs its interface, which looking up says.
                    Family::Any => !matches!(a, IpAddr::V6(v6) if v6.is_unicast_link_local()),
                    Family::V4 => a.is_ipv4(),
                    Family::V6 => a.is_ipv6(),
                });
                found.push((name.to_owned(), plain.map(|a| SocketAddr::new(a, 0))));
            }
        }
        if found.len() > MOST {
            return Err(wrong(format!(
                "more than {MOST} targets: probe a part of them"
            )));
        }
    }
    Ok(look_up(found, family))
}

fn look_up(named: Vec<(String, Option<SocketAddr>)>, family: Family) -> Targets {
    let next = AtomicUsize::new(0);
    let open: Vec<(usize, String)> = named
        .iter()
        .enumerate()
        .filter(|(_, (_, address))| address.is_none())
        .map(|(place, (name, _))| (place, name.clone()))
        .collect();
    let answers = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..LOOKING.min(open.len()) {
            scope.spawn(|| {
                while let Some((place, name)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Ok(target) = Target::resolve_as(name, family) {
                        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                        answers.insert(*place, target.address);
                    }
                }
            });
        }
    });
    let answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut targets = Targets::default();
    for (place, (name, address)) in named.into_iter().enumerate() {
        match address.or_else(|| answers.get(&place).copied()) {
            Some(address) => targets.found.push((name, address)),
            None => targets.unresolved.push(name),
        }
    }
    targets
}

/// What is printed of each probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A line of text for each answer and loss.
    Text,
    /// An object in JSON.
    Json,
    /// A line as fping has it, if any; with the time of day where asked for.
    Fping {
        /// Which of fping's outputs.
        format: Format,
        /// Whether there is a line for each probe.
        each: bool,
        /// Whether ICMP errors are reported, on standard error.
        errors: bool,
        /// Whether it begins with the time of day.
        stamped: bool,
    },
}

/// Prints what becomes of probes to standard output.
pub(crate) struct Printer {
    shown: Shown,
    names: Vec<String>,
    width: usize,
    seen: Vec<fping::Seen>,
    out: io::BufWriter<io::Stdout>,
}

impl Printer {
    /// For targets of these names.
    pub(crate) fn new(shown: Shown, targets: &Targets) -> Self {
        let names: Vec<String> = targets.found.iter().map(|(name, _)| name.clone()).collect();
        let seen = match shown {
            Shown::Fping { .. } => vec![fping::Seen::default(); names.len()],
            _ => Vec::new(),
        };
        Self {
            shown,
            width: names
                .iter()
                .map(|name| name.chars().count())
                .max()
                .unwrap_or(0),
            names,
            seen,
            out: io::BufWriter::new(io::stdout()),
        }
    }

    /// Prints what was seen, if that has a line.
    pub(crate) fn tell(&mut self, seen: ManySeen) {
        let line = match self.shown {
            Shown::Text => self.text(seen),
            Shown::Json => Some(self.json(seen)),
            Shown::Fping { errors: false, .. } if matches!(seen, ManySeen::Failed { .. }) => None,
            Shown::Fping { each, stamped, .. } => self.fping(seen, each, stamped),
        };
        if let Some(line) = line {
            let line = printable::lines(&line);
            let line = match self.shown {
                // JSON is UTF-8 in every locale (RFC 8259).
                Shown::Json => line,
                _ => charset::shown(&line).into_owned().into(),
            };
            // Where standard output fails, what is printed at the end says so.
            let _ = self
                .out
                .write_all(line.as_bytes())
                .and_then(|()| self.out.flush());
        }
    }

    /// Prints which names could not be looked up, where there is no Run to say so.
    pub(crate) fn unresolved(&mut self, names: &[String]) {
        for name in names {
            let line = match self.shown {
                Shown::Text => continue,
                Shown::Json => output::json(&json!({"event": "unresolved", "target": name}))
                    .unwrap_or_default(),
                Shown::Fping { .. } => {
                    output::prompt(&format!("{name}: the name was not found\n"));
                    continue;
                }
            };
            // Where standard output fails, what is printed at the end says so.
            let _ = self.out.write_all(line.as_bytes());
        }
    }

    fn name(&self, target: u32) -> &str {
        self.names.get(target as usize).map_or("", String::as_str)
    }

    fn text(&self, seen: ManySeen) -> Option<String> {
        Some(match seen {
            ManySeen::Answered {
                target,
                round,
                rtt,
                size_bytes,
                hop_limit,
                said,
                ..
            } => {
                let what = answered(said, size_bytes);
                let ttl = hop_limit.map_or_else(String::new, |hops| format!(" ttl={hops}"));
                format!(
                    "{what} from {}: seq={round}{ttl} time={:.3} ms\n",
                    self.name(target),
                    rtt.as_secs_f64() * 1e3
                )
            }
            ManySeen::Again { target, round } => {
                format!("{}: seq={round} answered again (DUP!)\n", self.name(target))
            }
            ManySeen::Lost { target, round, .. } => {
                format!("no answer from {}: seq={round}\n", self.name(target))
            }
            ManySeen::Failed { target, why, .. } => {
                format!("{}: {why}\n", self.name(target))
            }
        })
    }

    fn json(&self, seen: ManySeen) -> String {
        let event = match seen {
            ManySeen::Answered {
                target,
                round,
                rtt,
                size_bytes,
                hop_limit,
                said,
                at_ns,
                exchange: _,
            } => json!({
                "event": "answer", "target": self.name(target), "sequence": round,
                "size_bytes": size_bytes, "rtt_s": rtt.as_secs_f64(), "hop_limit": hop_limit,
                "answer": said.map(|said| said.to_string()), "unix_s": at_ns as f64 / 1e9,
            }),
            ManySeen::Again { target, round } => {
                json!({"event": "duplicate", "target": self.name(target), "sequence": round})
            }
            ManySeen::Lost { target, round, .. } => {
                json!({"event": "lost", "target": self.name(target), "sequence": round})
            }
            ManySeen::Failed { target, why, .. } => {
                json!({"event": "told", "target": self.name(target), "what": why})
            }
        };
        // A value always has a form in JSON.
        output::json(&event).unwrap_or_default()
    }

    fn fping(&mut self, seen: ManySeen, each: bool, stamped: bool) -> Option<String> {
        let (target, round, answer, at_ns) = match seen {
            ManySeen::Answered {
                target,
                round,
                rtt,
                size_bytes,
                at_ns,
                ..
            } => (target, round, Some((rtt, size_bytes)), at_ns),
            ManySeen::Lost { target, round, .. } => {
                (target, round, None, plumb_net::clock::realtime_ns())
            }
            ManySeen::Failed {
                target, failure, ..
            } => {
                let name = self.name(target);
                if let Some(line) = failure.and_then(|failure| fping::error_line(&failure, name)) {
                    output::prompt(&line);
                }
                return None;
            }
            ManySeen::Again { .. } => return None,
        };
        let settled = self.seen.get_mut(target as usize)?;
        settled.settle(round, answer.map(|(rtt, _)| rtt));
        let settled = self.seen.get(target as usize)?;
        each.then(|| {
            let line = settled.probe_line(self.name(target), self.width, round, answer);
            match stamped {
                true => format!("[{:.5}] {line}", at_ns as f64 / 1e9),
                false => line,
            }
        })
    }

    /// Prints what fping says at the end: of who is alive on standard output, all else on standard
    /// error.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let Shown::Fping { format, each, .. } = self.shown else {
            return Ok(());
        };
        let mut text = String::new();
        if each && format != Format::Alive {
            text.push('\n');
        }
        for (seen, name) in self.seen.iter().zip(&self.names) {
            text.push_str(&seen.last_line(format, name, self.width));
        }
        self.out
            .flush()
            .context("cannot write to standard output")?;
        if format == Format::Alive {
            output::print(&text)
        } else {
            output::prompt(&text);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_bad_name_does_not_stop_the_rest() {
        let words = ["127.0.0.1", "no-such-host.invalid", "10.0.0.0/30"].map(str::to_owned);
        let targets = resolve(&words, Some("::1 # here\n\n"), Family::Any).unwrap();
        let names: Vec<_> = targets
            .found
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["127.0.0.1", "10.0.0.1", "10.0.0.2", "::1"]);
        assert_eq!(targets.unresolved, ["no-such-host.invalid"]);
        let v4 = resolve(&words, Some("::1"), Family::V4).unwrap();
        assert_eq!(v4.unresolved, ["no-such-host.invalid", "::1"]);
        assert!(resolve(&["1.2.3.4/x".to_owned()], None, Family::Any).is_err());
    }
}
