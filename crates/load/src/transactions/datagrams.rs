//! Transactions over UDP: the echo of the native protocol answers them, with as many bytes as the request says.

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

    /// One request and its answer; fetches a cookie before, if there is none, which does not count. A responder
    /// that bounds longer answers answers with as many bytes as it got: then the transaction failed.
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
        let is_it = |answer: &Datagram| {
            answer.kind == Kind::Reply
                && answer.session == session
                && answer.client_sequence == sequence
        };
        match self.receive(asked + ANSWER_WITHIN, is_it, stage)? {
            Some((_, length)) if length == answer_bytes => Ok(asked.elapsed()),
            Some((_, length)) => Err(Broken::Failed(format!(
                "it answered with {length} bytes instead of {answer_bytes}: a responder bounds answers that are longer \
                 than their requests, to 1 Gbit/s"
            ))),
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
            |answer: &Datagram| answer.kind == Kind::CookieReply && answer.session == session;
        match self.receive(Instant::now() + ANSWER_WITHIN, is_it, stage)? {
            Some((answer, _)) => {
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

    /// The datagram that `is_it` and its length, if it comes in time; others are passed over.
    fn receive(
        &mut self,
        until: Instant,
        is_it: impl Fn(&Datagram) -> bool,
        stage: &Stage,
    ) -> Result<Option<(Datagram, usize)>, Broken> {
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    let datagram = Datagram::parse(bytes);
                    if let Some(datagram) = datagram.filter(&is_it) {
                        return Ok(Some((datagram, length)));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tls::Trust;
    use plumb_model::protocol::Protocol;
    use plumb_wire::native::control::{Fingerprint, Token};

    #[test]
    fn an_answer_that_is_shorter_than_asked_for_is_named_at_once() {
        let echo = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let far = FarEnd {
            address: echo.local_addr().unwrap(),
            token: Token([1; 16]),
            phase: 1,
            trust: Trust::in_certificate(Fingerprint([0; 32])).unwrap(),
        };
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 100];
            for kind in [Kind::CookieReply, Kind::Reply] {
                let (length, from) = echo.recv_from(&mut buffer).unwrap();
                let asked = Datagram::parse(buffer.get(..length).unwrap()).unwrap();
                let answer = Datagram { kind, ..asked };
                echo.send_to(&answer.write(length), from).unwrap();
            }
        });
        let flow = TransactionFlow {
            transport: Protocol::Udp,
            connect: false,
            request_bytes: 64,
            response_bytes: 1400,
            rate_tps: None,
            on_demand: false,
        };
        let stage = Stage::begin(Duration::from_secs(60), None);
        let mut datagrams = Datagrams::open(&far, 0).unwrap();
        let Err(Broken::Failed(why)) = datagrams.exchange(&flow, &stage) else {
            panic!("it was taken for an answer")
        };
        assert!(why.contains("64 bytes instead of 1400"), "{why}");
        answering.join().unwrap();
    }
}
