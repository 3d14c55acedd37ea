//! Mail, handed to a server as RFC 6409 has it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use plumb_probe::mail::{Address, Letter, Login, Outgoing, Refusal, Security, Server, Submission};
use serde::Deserialize;

use super::delivery::{Delivery, NotTaken, within};
use super::message::Time;
use super::trust::{Believed, absolute};

/// For submission (RFC 6409, section 3.1), and for that within TLS (RFC 8314, section 7.3).
const SUBMISSION: u16 = 587;
const SUBMISSIONS: u16 = 465;

/// More recipients than this want a list of their own: servers take 100 at least (RFC 5321, section 4.5.3.1.8).
const MOST_RECIPIENTS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    server: String,
    port: Option<u16>,
    #[serde(default)]
    tls: Tls,
    from: String,
    to: Vec<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
    within: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tls {
    /// By STARTTLS where the server offers it.
    #[default]
    Offered,
    /// By STARTTLS, or not at all.
    Required,
    /// From the connection's beginning, without STARTTLS.
    Always,
    Never,
}

#[derive(Debug)]
struct Mail {
    server: Server,
    tls: Tls,
    from: Address,
    to: Vec<Address>,
    /// A user, and the file that has the password.
    login: Option<(String, PathBuf)>,
    believed: Believed,
    within: Duration,
    /// Which message was taken for some of the recipients, and who is left.
    left: Mutex<Option<(u64, Vec<Address>)>>,
}

/// What of a message counts here.
#[derive(Deserialize)]
struct Message {
    at: Time,
    text: String,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Delivery>, String> {
    Mail::read(settings).map(|mail| Box::new(mail) as Box<dyn Delivery>)
}

impl Mail {
    fn read(settings: toml::Table) -> Result<Self, String> {
        let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
        let host = settings.server.trim();
        let has_port = host.matches(':').count() == 1;
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '/') || has_port {
            return Err(
                "server is the name or the address of a mail server; its port is port = 587"
                    .to_owned(),
            );
        }
        let tls = settings.tls;
        if tls == Tls::Never && (settings.insecure || settings.ca.is_some()) {
            return Err("insecure and ca are for TLS alone: leave them out".to_owned());
        }
        let login = match (settings.user, settings.password_file) {
            (None, None) => None,
            (Some(_), Some(_)) if tls == Tls::Never => {
                return Err("a password goes by TLS alone: leave tls = \"never\" out".to_owned());
            }
            (Some(user), _) if user.is_empty() || user.contains('\0') => {
                return Err("the user is empty".to_owned());
            }
            (Some(user), Some(file)) => Some((user, absolute("password_file", file)?)),
            _ => return Err("user and password_file belong together".to_owned()),
        };
        let to: Vec<Address> = settings
            .to
            .iter()
            .map(|to| to.parse())
            .collect::<Result<_, _>>()?;
        if to.is_empty() || to.len() > MOST_RECIPIENTS {
            return Err(format!("to has 1 to {MOST_RECIPIENTS} addresses"));
        }
        let usual = match tls {
            Tls::Always => SUBMISSIONS,
            _ => SUBMISSION,
        };
        Ok(Self {
            server: Server {
                host: host.to_owned(),
                port: settings.port.unwrap_or(usual),
            },
            tls,
            from: settings.from.parse()?,
            to,
            login,
            believed: Believed::read(settings.ca, settings.insecure)?,
            within: within(settings.within.as_deref())?,
            left: Mutex::new(None),
        })
    }

    /// The login, with the current password.
    fn login(&self) -> Result<Option<Login>, String> {
        let Some((user, file)) = &self.login else {
            return Ok(None);
        };
        let name = file.display();
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| format!("cannot read {name}: {error}"))?;
        let password = text.trim_end_matches(['\r', '\n']);
        match password.is_empty() || password.contains('\0') {
            true => Err(format!("{name} has no password")),
            false => Ok(Some(Login {
                user: user.clone(),
                password: password.to_owned(),
            })),
        }
    }

    /// Who is to get a message of that hash: all, unless it was taken for some.
    fn recipients(&self, hash: u64) -> Vec<Address> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match &*left {
            Some((of, left)) if *of == hash => left.clone(),
            _ => self.to.clone(),
        }
    }

    /// What to do about those for whom it was not taken, while it was for others.
    fn refused(&self, hash: u64, refused: Vec<Refusal>) -> Result<(), NotTaken> {
        let words: Vec<String> = refused
            .iter()
            .map(|refusal| format!("{} ({})", refusal.to, refusal.reply))
            .collect();
        let left: Vec<Address> = refused
            .into_iter()
            .filter(|refusal| refusal.reply.is_transient())
            .map(|refusal| refusal.to)
            .collect();
        let again = !left.is_empty();
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = again.then_some((hash, left));
        match words.is_empty() {
            true => Ok(()),
            false => Err(NotTaken {
                why: format!(
                    "{} did not take it for {}; the others have it",
                    self.server.host,
                    words.join(", ")
                ),
                again,
            }),
        }
    }
}

impl Delivery for Mail {
    fn send(&self, message: &str) -> Result<(), NotTaken> {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let hash = hasher.finish();
        let read: Message = serde_json::from_str(message).map_err(|error| error.to_string())?;
        let date = rfc2822::to_string(&read.at.0.to_zoned(TimeZone::UTC));
        let letter = Letter {
            from: self.from.clone(),
            // All of them, also where only some are left to get it.
            to: self.to.clone(),
            subject: subject(&read.text),
            text: read.text,
            date: date.map_err(|error| error.to_string())?,
            // The same message is the same letter, so that who gets it twice sees it once.
            id: format!("{}.{hash:016x}", read.at.0.as_second()),
        };
        let submission = Submission {
            client: String::new(),
            security: match self.tls {
                Tls::Offered => Security::WhereOffered,
                Tls::Required => Security::Required,
                Tls::Always => Security::Wrapped,
                Tls::Never => Security::Never,
            },
            login: self.login()?,
            from: self.from.clone(),
            to: self.recipients(hash),
            letter: letter.bytes(),
        };
        let trust = match self.tls {
            Tls::Never => plumb_probe::Trust::nobody().map_err(|error| error.to_string())?,
            _ => self.believed.trust()?,
        };
        let refused = self
            .server
            .hand(Outgoing { submission, trust }, self.within)?;
        self.refused(hash, refused)
    }
}

/// The first alarm, and how many more there are.
fn subject(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match text.lines().count().saturating_sub(1) {
        0 => first.to_owned(),
        more => format!("{first}, and {more} more"),
    }
}

#[cfg(test)]
mod tests;
