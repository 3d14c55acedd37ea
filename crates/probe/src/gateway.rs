//! What the gateway itself reports of its line, by UPnP IGD: its rates, its counters, its address. It is only asked where
//! the user agreed, and nothing of it is changed.
//!
//! Whatever answers, each question ends within the time given for it, holds 64 kB at most, and goes to the gateway's own
//! address alone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_net::tcp::{TcpOptions, abort_on_close, connect, wait_readable, wait_writable};
use plumb_wire::http_client::{Event, HttpError, Request};
use plumb_wire::http1;
use plumb_wire::igd::description::{self, Description, Service};
use plumb_wire::igd::soap::{Answer, Line, Question, SoapError};
use plumb_wire::igd::{MAX_DOCUMENT_BYTES, XmlError, ssdp};
use plumb_wire::url::Url;

/// How often a search is sent: UDP may lose it (UPnP Device Architecture 1.1, section 1.3.2, asks for more than once).
const SEARCHES: u32 = 2;

/// How long answers to a search may take beyond the time over which devices spread them.
const SLACK: Duration = Duration::from_millis(500);

/// Datagrams that are looked at for an answer of the gateway: every device of a crowded network twice.
const MAX_DATAGRAMS: u32 = 500;

/// Why a gateway could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("this host cannot ask it ({0})")]
    Local(io::Error),
    #[error("it does not answer a search by UPnP, which may be switched off there")]
    Silent,
    #[error("it does not answer in time")]
    TimedOut,
    #[error("it cannot be connected to ({0})")]
    Connect(String),
    #[error("its answer is longer than {MAX_DOCUMENT_BYTES} bytes")]
    TooLong,
    #[error("it answers with HTTP status {0}")]
    Status(u16),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("its description cannot be read: {0}")]
    Description(#[from] XmlError),
    #[error(transparent)]
    Soap(#[from] SoapError),
    #[error("it reports nothing of its line")]
    NoLine,
}

/// A gateway that can be asked.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// Maker and model, as it reports them.
    pub model: Option<String>,
    line: Service,
    connection: Option<Service>,
}

impl Gateway {
    /// Searches for the gateway at that address, and reads what it offers; takes `within` at most.
    ///
    /// # Errors
    /// When it does not answer, or offers nothing that is read here.
    pub fn find(address: Ipv4Addr, within: Duration) -> Result<Self, GatewayError> {
        let until = Instant::now() + within;
        let url = search(address, until)?;
        let document = fetch(&url, None, until)?;
        let Description {
            model,
            line,
            connection,
        } = description::read(&document, &url, address.into())?;
        Ok(Self {
            model,
            line: line.ok_or(GatewayError::NoLine)?,
            connection,
        })
    }

    /// Kind, state and rates of the line.
    ///
    /// # Errors
    /// When it does not answer within the time, or refuses.
    pub fn line(&self, within: Duration) -> Result<Line, GatewayError> {
        Ok(ask(&self.line, Question::Line, within)?.line())
    }

    /// Bytes that the line has brought and taken since the gateway began to count; numbers of 32 bits begin anew.
    ///
    /// # Errors
    /// When it does not answer both within the time, or refuses.
    pub fn bytes(&self, within: Duration) -> Result<[u64; 2], GatewayError> {
        let until = Instant::now() + within;
        let count = |question| -> Result<u64, GatewayError> {
            let left = until.saturating_duration_since(Instant::now());
            Ok(ask(&self.line, question, left)?.bytes(question)?)
        };
        Ok([count(Question::BytesReceived)?, count(Question::BytesSent)?])
    }

    /// The address that the gateway has on the line; `None` where it reports none.
    ///
    /// # Errors
    /// When it does not answer within the time, or refuses.
    pub fn address(&self, within: Duration) -> Result<Option<Ipv4Addr>, GatewayError> {
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        Ok(ask(connection, Question::Address, within)?.address())
    }
}

/// Where the description of the gateway at that address is, by its answer to a search: one to it alone, and one to all
/// devices of the network, because some listen only to those.
fn search(gateway: Ipv4Addr, until: Instant) -> Result<Url, GatewayError> {
    let local = GatewayError::Local;
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(local)?;
    any.connect((gateway, ssdp::PORT)).map_err(local)?;
    // From this address on, the kernel sends to a group by the interface that has it (ip(7)).
    let own = any.local_addr().map_err(local)?.ip();
    let socket = UdpSocket::bind((own, 0)).map_err(local)?;
    socket
        .set_multicast_ttl_v4(ssdp::TIME_TO_LIVE)
        .map_err(local)?;
    let each = Duration::from_secs(ssdp::SPREAD_S) + SLACK;
    let mut datagrams = 0;
    let mut bytes = [0; ssdp::MAX_ANSWER_BYTES];
    for _ in 0..SEARCHES {
        let to = [gateway, ssdp::GROUP].map(|to| socket.send_to(&ssdp::search(), (to, ssdp::PORT)));
        if let [Err(error), Err(_)] = to {
            return Err(GatewayError::Local(error));
        }
        let end = until.min(Instant::now() + each);
        while datagrams < MAX_DATAGRAMS {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !wait_readable(&socket, left).map_err(local)? {
                break;
            }
            // A refusal of the search to the gateway alone (ICMP) is an error here; the other one may be answered.
            let Ok((length, from)) = socket.recv_from(&mut bytes) else {
                continue;
            };
            datagrams += 1;
            let answer = bytes.get(..length).unwrap_or_default();
            if from.ip() == IpAddr::V4(gateway)
                && let Some(url) = ssdp::description_url(answer, from.ip())
            {
                return Ok(url);
            }
        }
    }
    Err(GatewayError::Silent)
}

fn ask(service: &Service, question: Question, within: Duration) -> Result<Answer, GatewayError> {
    let document = fetch(
        &service.control,
        Some((question, &service.kind)),
        Instant::now() + within,
    )?;
    Ok(Answer::read(&document)?)
}

/// Gets a document, or puts a question to a service, on a connection of its own, which ends with it: gateways keep few.
fn fetch(
    url: &Url,
    question: Option<(Question, &str)>,
    until: Instant,
) -> Result<Vec<u8>, GatewayError> {
    let mut client = http1::Client::default();
    match question {
        Some((question, service)) => {
            let action = question.soap_action(service);
            let fields = [
                ("Content-Type", "text/xml; charset=\"utf-8\""),
                ("SOAPACTION", action.as_str()),
                ("Connection", "close"),
            ];
            client.post(url, &fields, question.body(service).as_bytes());
        }
        None => {
            client.request(&Request {
                url: url.clone(),
                gzip: false,
            });
        }
    }
    let address: IpAddr = url.origin.host.parse().map_err(|_| GatewayError::NoLine)?;
    let mut talk = Talk::connect(SocketAddr::new(address, url.origin.port), until)?;
    talk.write(&client.take_output())?;
    talk.read(&mut client)
}

/// A connection that is over at an instant whatever comes.
struct Talk {
    stream: std::net::TcpStream,
    until: Instant,
}

impl Talk {
    fn connect(to: SocketAddr, until: Instant) -> Result<Self, GatewayError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(GatewayError::TimedOut);
        }
        let stream = connect(to, left, &TcpOptions::default());
        let stream = stream.map_err(|error| GatewayError::Connect(error.to_string()))?;
        let _ = abort_on_close(&stream);
        stream.set_nonblocking(true).map_err(GatewayError::Local)?;
        Ok(Self { stream, until })
    }

    fn left(&self) -> Result<Duration, GatewayError> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(GatewayError::TimedOut),
            false => Ok(left),
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), GatewayError> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => {
                    return Err(GatewayError::Connect(
                        "the connection takes nothing".to_owned(),
                    ));
                }
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_writable(&self.stream, self.left()?).map_err(GatewayError::Local)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(GatewayError::Connect(error.to_string())),
            }
        }
        Ok(())
    }

    /// The body of the answer. A refusal (500) has one, too: it gives the reason (UPnP Device Architecture 1.1, 3.2.3).
    fn read(&mut self, client: &mut http1::Client) -> Result<Vec<u8>, GatewayError> {
        let mut body = Vec::new();
        let mut taken = 0;
        let mut chunk = [0; 4096];
        loop {
            let left = self.left()?;
            let mut events = Vec::new();
            match self.stream.read(&mut chunk) {
                Ok(0) => client.end(&mut events),
                Ok(count) => {
                    taken += count;
                    client.receive(chunk.get(..count).unwrap_or_default(), &mut events)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_readable(&self.stream, left).map_err(GatewayError::Local)?;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(GatewayError::Connect(error.to_string())),
            }
            for event in events {
                match event {
                    Event::Head { head, .. } if !matches!(head.status, 200 | 500) => {
                        return Err(GatewayError::Status(head.status));
                    }
                    Event::Data { bytes, .. } => body.extend_from_slice(&bytes),
                    Event::End { .. } => return Ok(body),
                    Event::Failed { error, .. } => return Err(error.into()),
                    Event::Began { .. } | Event::Head { .. } => {}
                }
            }
            // Heads and what frames a body count, too, so that nothing is endless.
            if body.len() > MAX_DOCUMENT_BYTES || taken > 2 * MAX_DOCUMENT_BYTES {
                return Err(GatewayError::TooLong);
            }
        }
    }
}

#[cfg(test)]
mod tests;
