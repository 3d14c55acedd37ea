//! Questions to one agent, and walks of its tables.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_net::tcp::wait_readable;
use plumb_wire::snmp::MAX_MESSAGE_BYTES;
use plumb_wire::snmp::oid::Oid;
use plumb_wire::snmp::pdu::{ErrorStatus, Kind, Pdu};
use plumb_wire::snmp::session::{Credentials, Heard, Session, SessionError};
use plumb_wire::snmp::value::{Binding, Value};

/// How long an answer may take before the question is sent again, and how often it is sent: net-snmp's usual second, and one
/// try less than its six.
const TRY: Duration = Duration::from_secs(1);
const TRIES: u32 = 5;

/// How often one question is asked anew because the engine, or its time, was found out: once each, and once where it booted
/// meanwhile.
const MOST_AGAIN: u32 = 3;

/// Datagrams that are looked at for one answer; more are a flood.
const MOST_DATAGRAMS: u32 = 100;

/// The shortest wait that poll(2) knows.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Rows that one question of a walk asks for: of 50 bytes each they fit a datagram that is not fragmented.
const ROWS_A_TIME: i32 = 20;

/// What one look at an agent may bring at most: ten columns of a chassis of 2,000 ports, in rows and bytes.
const MOST_ROWS: usize = 20_000;
const MOST_BYTES: usize = 4_000_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It says nothing of the agent.
    #[error("this machine cannot ask it: {0}")]
    Local(io::Error),
    #[error("a password makes too short a key for the cipher: AES-256 takes SHA-256 or longer")]
    Key,
    #[error("nothing listens at its port")]
    Refused,
    #[error(
        "it does not answer: it is off, or the community, the privacy password or its list of managers is another"
    )]
    Silent,
    #[error("what comes back is no answer: {0}")]
    NoAnswer(SessionError),
    #[error(transparent)]
    Refusal(SessionError),
    #[error("it did not answer all within {} s", .0.as_secs())]
    Late(Duration),
    #[error("it sends more than {MOST_ROWS} rows or {MOST_BYTES} bytes")]
    Endless,
    #[error("it floods: more than {MOST_DATAGRAMS} datagrams came, and none is the answer")]
    Flood,
    #[error("its table goes back from {0} to {1}, and would never end")]
    Loop(Oid, Oid),
    #[error("it answers {}", .0.words())]
    Status(ErrorStatus),
    #[error("it answers for other objects than those asked for")]
    Other,
    #[error("its {0} has the type {1}, where {2} should be")]
    Type(Oid, &'static str, &'static str),
}

impl AskError {
    /// Whether it is of what was asked for alone, so that other questions may still be answered.
    pub(crate) fn is_of_question(&self) -> bool {
        matches!(
            self,
            Self::Status(_) | Self::Other | Self::Type(..) | Self::Loop(..)
        )
    }
}

/// Values, and when the agent read them: midway between the question and its answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) values: Vec<Value>,
    pub(crate) at: Instant,
}

/// The rows of a column, by their index.
pub(crate) type Column = Vec<(Vec<u32>, Value)>;

/// An agent that is asked.
#[derive(Debug)]
pub(crate) struct Client {
    socket: UdpSocket,
    session: Session,
    begun: Instant,
    request_id: i32,
    within: Duration,
    until: Instant,
    rows_left: usize,
    bytes_left: usize,
}

impl Client {
    /// A client of the agent there. Nothing is sent yet.
    pub(crate) fn new(to: SocketAddr, credentials: Credentials) -> Result<Self, AskError> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // A connected socket takes from this address and port alone.
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(to)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let random = || getrandom::u64().map_err(io::Error::from);
        let (salt, first) = match (random(), random()) {
            (Ok(salt), Ok(first)) => (salt, first),
            (Err(error), _) | (_, Err(error)) => return Err(AskError::Local(error)),
        };
        let now = Instant::now();
        Ok(Self {
            socket: socket.map_err(AskError::Local)?,
            session: Session::new(credentials, salt),
            begun: now,
            // A number of 31 bits, which is not guessed.
            request_id: (first >> 33) as i32,
            within: Duration::ZERO,
            until: now,
            rows_left: 0,
            bytes_left: 0,
        })
    }

    /// Begins a look: all questions until the next one share this time, and what they may bring.
    pub(crate) fn begin(&mut self, within: Duration) {
        self.within = within;
        self.until = Instant::now() + within;
        (self.rows_left, self.bytes_left) = (MOST_ROWS, MOST_BYTES);
    }

    /// The values of these objects, in their order. Where they do not fit one answer they are asked for by halves, and the
    /// time is of the last one.
    pub(crate) fn get(&mut self, objects: &[Oid]) -> Result<Answered, AskError> {
        let (answer, at) = self.ask(Kind::Get, objects)?;
        let Kind::Response { error, .. } = answer.kind else {
            return Err(AskError::Other);
        };
        match error {
            ErrorStatus::NONE => {}
            ErrorStatus::TOO_BIG if objects.len() > 1 => {
                let (first, second) = objects.split_at(objects.len() / 2);
                let mut values = self.get(first)?.values;
                let rest = self.get(second)?;
                values.extend(rest.values);
                return Ok(Answered {
                    values,
                    at: rest.at,
                });
            }
            error => return Err(AskError::Status(error)),
        }
        let asked = objects
            .iter()
            .eq(answer.bindings.iter().map(|(oid, _)| oid));
        match asked {
            true => Ok(Answered {
                values: answer
                    .bindings
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect(),
                at,
            }),
            false => Err(AskError::Other),
        }
    }

    /// All rows of a column; none where the agent does not have it.
    pub(crate) fn walk(&mut self, column: &Oid) -> Result<Column, AskError> {
        let mut found = Vec::new();
        let mut last = column.clone();
        let mut rows = ROWS_A_TIME;
        loop {
            let kind = Kind::GetBulk {
                non_repeaters: 0,
                max_repetitions: rows,
            };
            let (answer, _) = self.ask(kind, std::slice::from_ref(&last))?;
            match answer.kind {
                Kind::Response {
                    error: ErrorStatus::NONE,
                    ..
                } => {}
                Kind::Response {
                    error: ErrorStatus::TOO_BIG,
                    ..
                } if rows > 1 => {
                    rows /= 2;
                    continue;
                }
                Kind::Response { error, .. } => return Err(AskError::Status(error)),
                _ => return Err(AskError::Other),
            }
            if answer.bindings.is_empty() {
                return Err(AskError::Other);
            }
            for (oid, value) in answer.bindings {
                let Some(index) = oid.beneath(column).filter(|_| value.is_there()) else {
                    return Ok(found);
                };
                if oid <= last {
                    return Err(AskError::Loop(last, oid));
                }
                self.rows_left = self.rows_left.checked_sub(1).ok_or(AskError::Endless)?;
                found.push((index.to_vec(), value));
                last = oid;
            }
        }
    }

    /// Asks once, and again where no answer comes; the answer, and when the agent gave it.
    fn ask(&mut self, kind: Kind, objects: &[Oid]) -> Result<(Pdu, Instant), AskError> {
        self.request_id = self.request_id.checked_add(1).unwrap_or(1);
        let question = Pdu::question(kind, self.request_id, objects.iter().cloned());
        let mut why = None;
        let (mut again, mut datagrams) = (0, 0);
        let mut tries = 0;
        while tries < TRIES {
            tries += 1;
            let sent = Instant::now();
            if sent >= self.until {
                return Err(AskError::Late(self.within));
            }
            let datagram = self.session.ask(&question, self.begun.elapsed());
            self.send(&datagram.ok_or(AskError::Key)?)?;
            let end = self.until.min(sent + TRY);
            while let Some(datagram) = self.receive(end)? {
                datagrams += 1;
                if datagrams > MOST_DATAGRAMS {
                    return Err(AskError::Flood);
                }
                self.bytes_left = self
                    .bytes_left
                    .checked_sub(datagram.len())
                    .ok_or(AskError::Endless)?;
                let heard = self
                    .session
                    .hear(&datagram, self.request_id, self.begun.elapsed());
                match heard {
                    Ok(Heard::Answer(pdu)) => return Ok((pdu, sent + sent.elapsed() / 2)),
                    Ok(Heard::AskAgain) if again < MOST_AGAIN => {
                        again += 1;
                        // It answered, so that this was no try.
                        tries -= 1;
                        break;
                    }
                    Ok(Heard::AskAgain) => return Err(AskError::Other),
                    // It may be late, or of another sender: what is asked for may still come.
                    Ok(Heard::Other) => {}
                    Err(refusal) if refusal.is_refusal() => return Err(AskError::Refusal(refusal)),
                    Err(wrong) => why = Some(wrong),
                }
            }
        }
        // It may be another engine now, behind the same address.
        self.session.forget();
        Err(why.map_or(AskError::Silent, AskError::NoAnswer))
    }

    fn send(&self, datagram: &[u8]) -> Result<(), AskError> {
        match self.socket.send(datagram) {
            // A refusal of the datagram before is reported with the next one, and takes its place (ip(7)).
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(AskError::Refused),
            Err(error) => Err(AskError::Local(error)),
            Ok(_) => Ok(()),
        }
    }

    /// The next datagram until then.
    fn receive(&self, end: Instant) -> Result<Option<Vec<u8>>, AskError> {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // A shorter wait would be none, and the question be sent again at once.
            let wait = left.max(LEAST_WAIT);
            if !wait_readable(&self.socket, wait).map_err(AskError::Local)? {
                continue;
            }
            match self.socket.recv(&mut bytes) {
                Ok(length) => {
                    bytes.truncate(length);
                    return Ok(Some(bytes));
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Err(AskError::Refused);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(AskError::Local(error)),
            }
        }
    }
}

/// A binding's object and value by the type it should have; `None` where the agent does not have it.
macro_rules! typed {
    ($(#[$doc:meta])* $name:ident, $type:ty, $words:literal, $($pattern:pat => $value:expr),+) => {
        $(#[$doc])*
        pub(crate) fn $name((oid, value): &Binding) -> Result<Option<$type>, AskError> {
            match value {
                $($pattern => Ok(Some($value)),)+
                absent if !absent.is_there() => Ok(None),
                other => Err(AskError::Type(oid.clone(), other.type_words(), $words)),
            }
        }
    };
}

typed!(
    /// A number with a sign.
    integer, i64, "INTEGER", Value::Integer(value) => i64::from(*value)
);
typed!(
    /// A number that goes up and down, of either kind: agents take one for the other.
    gauge, u64, "Gauge32",
    Value::Gauge32(value) => u64::from(*value),
    Value::Integer(value @ 0..) => value.unsigned_abs().into()
);
typed!(
    /// A counter of 32 bits.
    counter32, u64, "Counter32", Value::Counter32(value) => u64::from(*value)
);
typed!(
    /// A counter of 64 bits.
    counter64, u64, "Counter64", Value::Counter64(value) => *value
);
typed!(
    /// Hundredths of a second.
    ticks, u32, "TimeTicks", Value::TimeTicks(value) => *value
);
typed!(
    /// Text of an agent: on one line, and not longer than a name may be.
    text, String, "OCTET STRING", Value::Bytes(bytes) => shown(bytes)
);
typed!(
    /// An object identifier, such as a type.
    identifier, Oid, "OBJECT IDENTIFIER", Value::Oid(oid) => oid.clone()
);

/// The longest text of an agent that is kept, in characters.
const MOST_TEXT: usize = 60;

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let clean: String = clean.take(MOST_TEXT).collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests;
