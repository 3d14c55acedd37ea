//! Transactions over UDP: the echo of the native protocol answers them, with as much as it is asked for.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::echo::{Cookie, Datagram, Kind, MIN_BYTES};

use super::stream::Broken;
use crate::phase_state::{POLL_INTERVAL, Stage, retry};
use crate::streams::FarEnd;

/// After so long an answer counts as lost: the first timeout of TCP (RFC 6298, section 2).
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Larger than any datagram.
const BUFFER_BYTES: usize = 65_536;

/// A socket that asks the echo, and the cookie that the echo wants to see.
pub(super) struct Datagrams {
    socket: UdpSocket,
    session: u32,
    sequence: u32,
    cookie: Option<Cookie>,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// For the stream of that number.
    pub(super) fn open(far: &FarEnd, number: u32) -> io::Result<Self> {
        let any: SocketAddr = if far.address.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(far.address)?;
        socket.set_read_timeout(Some(POLL_INTERVAL))?;
        let [a, b, c, d, ..] = far.token.0;
        Ok(Self {
            socket,
            // Random, and another one for each stream.
            session: u32::from_be_bytes([a, b, c, d]).wrapping_add(number),
            sequence: 0,
            cookie: None,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// One request and its answer; fetches a cookie before, if there is none, which does not count. An
    /// answer of another size than was asked for is none.
    pub(super) fn exchange(
        &mut self,
        flow: &TransactionFlow,
        stage: &Stage,
    ) -> Result<Duration, Broken> {
        let cookie = match self.cookie {
            Some(cookie) => cookie,
            None => self.fetch_cookie(stage)?,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let (session, sequence) = (self.session, self.sequence);
        let answer_bytes = flow.response_bytes as usize;
        let request = Datagram {
            answer_bytes: u16::try_from(answer_bytes).unwrap_or(u16::MAX),
            ..Datagram::probe(cookie, session, sequence, 0)
        };
        let request = request.write(flow.request_bytes as usize);
        let asked = Instant::now();
        self.send(&request)?;
        let is_it = |answer: &Datagram, length: usize| {
            length == answer_bytes
                && answer.kind == Kind::Reply
                && answer.session == session
                && answer.client_sequence == sequence
        };
        match self.receive(asked + ANSWER_WITHIN, is_it, stage)? {
            Some(_) => Ok(asked.elapsed()),
            None => {
                // It may have been for want of a good cookie: the far end may have been started anew.
                self.cookie = None;
                Err(Broken::Failed("no answer came within 1 s".to_owned()))
            }
        }
    }

    fn fetch_cookie(&mut self, stage: &Stage) -> Result<Cookie, Broken> {
        let session = self.session;
        self.send(&Datagram::cookie_request(session).write(MIN_BYTES))?;
        let is_it =
            |answer: &Datagram, _| answer.kind == Kind::CookieReply && answer.session == session;
        match self.receive(Instant::now() + ANSWER_WITHIN, is_it, stage)? {
            Some(answer) => {
                self.cookie = Some(answer.cookie);
                Ok(answer.cookie)
            }
            None => Err(Broken::Failed(
                "the UDP echo does not answer: a firewall may drop it".to_owned(),
            )),
        }
    }

    fn send(&self, datagram: &[u8]) -> Result<(), Broken> {
        match self.socket.send(datagram) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The datagram that `is_it`, if it comes in time; others are passed over.
    fn receive(
        &mut self,
        until: Instant,
        is_it: impl Fn(&Datagram, usize) -> bool,
        stage: &Stage,
    ) -> Result<Option<Datagram>, Broken> {
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    let datagram = Datagram::parse(bytes);
                    if let Some(datagram) = datagram.filter(|d| is_it(d, length)) {
                        return Ok(Some(datagram));
                    }
                }
                Err(error) if retry(&error) => (),
                Err(error) => return Err(error.into()),
            }
            if stage.is_over() {
                return Err(Broken::Over);
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }
}
