//! The manager's side of questions to one agent, of either version, as a state machine: it is asked for a datagram, and shown
//! what comes back. Of version 3 it finds the engine out and follows its clock (RFC 3414, sections 3 and 4).

use std::time::Duration;

use super::SnmpError;
use super::message::Message;
use super::pdu::{Kind, Pdu};
use super::usm::{Keys, Parameters, User};
use super::v3::{self, Incoming};

/// By so much an engine's time may differ from what is known of it, in seconds (RFC 3414, section 2.2.3).
const WINDOW_S: u64 = 150;

/// The counters of what an engine could not accept: one of these is in a report (RFC 3414, section 5, usmStats).
const STATISTICS: [u32; 10] = [1, 3, 6, 1, 6, 3, 15, 1, 1, 0];

/// As whom an agent is asked.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Of version 2c, which has nothing else.
    Community(String),
    /// Of version 3, by name and passwords.
    User(User),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Community(_) => f.write_str("Community"),
            Self::User(user) => user.fmt(f),
        }
    }
}

/// Why what came is no answer, though it is of the question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Message(#[from] SnmpError),
    #[error(
        "it is not authenticated as this user's answers are: is the authentication password right?"
    )]
    NotAuthentic,
    #[error("it is not encrypted, while the question was")]
    NotEncrypted,
    #[error("it cannot be decrypted: is the privacy password right?")]
    NotDecrypted,
    #[error("it is of an earlier time: an old answer that was sent again")]
    Replayed,
    #[error("the agent does not know the user")]
    UnknownUser,
    #[error("the agent refuses this level of security for the user")]
    SecurityLevel,
    #[error("the agent finds the authentication wrong: its password or its hash is another")]
    WrongDigest,
    #[error("the agent cannot decrypt the question: the privacy password or the cipher is another")]
    Undecipherable,
    #[error("the agent reports what is not known here")]
    Report,
}

impl SessionError {
    /// Whether the agent refused the question, so that no other answer is to come.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::UnknownUser
                | Self::SecurityLevel
                | Self::WrongDigest
                | Self::Undecipherable
                | Self::Report
        )
    }
}

/// What a datagram was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Answer(Pdu),
    /// The engine was found out, or its time: the same is to be asked once more.
    AskAgain,
    /// Nothing that belongs to the question.
    Other,
}

/// An engine that was found out.
#[derive(Debug)]
struct Engine {
    id: Vec<u8>,
    boots: u32,
    time_s: u32,
    /// When that was its time.
    at: Duration,
    keys: Keys,
}

impl Engine {
    fn time_at(&self, now: Duration) -> u32 {
        let since = now.saturating_sub(self.at).as_secs();
        self.time_s
            .saturating_add(u32::try_from(since).unwrap_or(u32::MAX))
    }

    /// Follows the clock of an authentic message; whether that is within the window (RFC 3414, section 3.2, 7b).
    fn follow(&mut self, parameters: &Parameters, now: Duration) -> bool {
        let (boots, time_s) = (parameters.boots, parameters.time_s);
        if (boots, time_s) > (self.boots, self.time_s) {
            (self.boots, self.time_s, self.at) = (boots, time_s, now);
        }
        boots == self.boots && u64::from(time_s) + WINDOW_S >= u64::from(self.time_at(now))
    }
}

/// What is known of an agent.
#[derive(Debug)]
pub struct Session {
    credentials: Credentials,
    engine: Option<Engine>,
    /// A number that is never used twice with a key.
    salt: u64,
}

impl Session {
    /// `random` is another in each process, so that no salt is used again.
    pub fn new(credentials: Credentials, random: u64) -> Self {
        Self {
            credentials,
            engine: None,
            salt: random,
        }
    }

    /// Has the engine be found out anew.
    pub fn forget(&mut self) {
        self.engine = None;
    }

    /// The datagram that asks this at that time, of a monotonic clock; `None` where a key does not fit its cipher.
    pub fn ask(&mut self, pdu: &Pdu, now: Duration) -> Option<Vec<u8>> {
        let user = match &self.credentials {
            Credentials::Community(community) => {
                let message = Message {
                    community: community.as_bytes().to_vec(),
                    pdu: pdu.clone(),
                };
                return Some(message.encoded());
            }
            Credentials::User(user) => user,
        };
        let Some(engine) = &self.engine else {
            // RFC 3414, section 4: what an engine that is not known answers with its name.
            let empty = Pdu::question(Kind::Get, pdu.request_id, []);
            return v3::encoded(pdu.request_id, Parameters::default(), None, 0, &empty);
        };
        self.salt = self.salt.wrapping_add(1);
        let parameters = Parameters {
            engine_id: engine.id.clone(),
            boots: engine.boots,
            time_s: engine.time_at(now),
            user: user.name.as_bytes().to_vec(),
            ..Parameters::default()
        };
        v3::encoded(
            pdu.request_id,
            parameters,
            Some(&engine.keys),
            self.salt,
            pdu,
        )
    }

    /// Takes a datagram that came from the agent after the question with that number.
    ///
    /// # Errors
    /// When it is no answer, though it may be of the question: why.
    pub fn hear(
        &mut self,
        datagram: &[u8],
        request_id: i32,
        now: Duration,
    ) -> Result<Heard, SessionError> {
        match self.credentials.clone() {
            Credentials::Community(community) => {
                let message = Message::read(datagram)?;
                Ok(match message.community == community.as_bytes() {
                    true => answer(message.pdu, request_id),
                    false => Heard::Other,
                })
            }
            Credentials::User(user) => self.hear_v3(datagram, &user, request_id, now),
        }
    }

    fn hear_v3(
        &mut self,
        datagram: &[u8],
        user: &User,
        request_id: i32,
        now: Duration,
    ) -> Result<Heard, SessionError> {
        let incoming = Incoming::read(datagram)?;
        if incoming.message_id != request_id {
            return Ok(Heard::Other);
        }
        let parameters = &incoming.parameters;
        let engine = self
            .engine
            .as_mut()
            .filter(|engine| engine.id == parameters.engine_id);
        if incoming.says_authentic() {
            let Some(engine) = engine else {
                return Err(SessionError::NotAuthentic);
            };
            if parameters.user != user.name.as_bytes() || !incoming.is_authentic(&engine.keys) {
                return Err(SessionError::NotAuthentic);
            }
            if !engine.follow(parameters, now) {
                return Err(SessionError::Replayed);
            }
        }
        let keys = self.engine.as_ref().map(|engine| &engine.keys);
        let pdu = incoming.pdu(keys).ok_or(SessionError::NotDecrypted)?;
        let pdu = match (pdu, incoming.is_encrypted()) {
            (Ok(pdu), _) => pdu,
            (Err(_), true) => return Err(SessionError::NotDecrypted),
            (Err(why), false) => return Err(why.into()),
        };
        if pdu.kind == Kind::Report {
            return self.take_report(&pdu, &incoming, user, now);
        }
        if user.authentication.is_some() && !incoming.says_authentic() {
            return Err(SessionError::NotAuthentic);
        }
        if user.privacy.is_some() && !incoming.is_encrypted() {
            return Err(SessionError::NotEncrypted);
        }
        Ok(answer(pdu, request_id))
    }

    /// What an engine could not accept. Such reports are not authenticated but for one, as the user may be unknown there: none
    /// is more than a reason, or another engine, which has to prove itself with its answer.
    fn take_report(
        &mut self,
        pdu: &Pdu,
        incoming: &Incoming<'_>,
        user: &User,
        now: Duration,
    ) -> Result<Heard, SessionError> {
        let counter = pdu.bindings.first().and_then(|(oid, _)| {
            let numbers = oid.numbers();
            let [rest @ .., of, _] = numbers else {
                return None;
            };
            STATISTICS.starts_with(rest).then_some(*of)
        });
        match counter {
            Some(1) => Err(SessionError::SecurityLevel),
            // Its clock was followed above where the report is authentic.
            Some(2) if incoming.says_authentic() => Ok(Heard::AskAgain),
            Some(2) => Err(SessionError::NotAuthentic),
            Some(3) => Err(SessionError::UnknownUser),
            Some(4) => {
                let parameters = &incoming.parameters;
                let is_known = self
                    .engine
                    .as_ref()
                    .is_some_and(|e| e.id == parameters.engine_id);
                if parameters.engine_id.is_empty() || is_known {
                    return Err(SessionError::Report);
                }
                self.engine = Some(Engine {
                    keys: user.keys(&parameters.engine_id),
                    id: parameters.engine_id.clone(),
                    boots: parameters.boots,
                    time_s: parameters.time_s,
                    at: now,
                });
                Ok(Heard::AskAgain)
            }
            Some(5) => Err(SessionError::WrongDigest),
            Some(6) => Err(SessionError::Undecipherable),
            _ => Err(SessionError::Report),
        }
    }
}

/// An answer, where it is of that question.
fn answer(pdu: Pdu, request_id: i32) -> Heard {
    match pdu.kind {
        Kind::Response { .. } if pdu.request_id == request_id => Heard::Answer(pdu),
        _ => Heard::Other,
    }
}

#[cfg(test)]
mod tests;
