//! The control connection of a test.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::iperf3::{LENGTH_BYTES, MAX_RESULTS_BYTES, Results, State, frame};

use super::server::{ANSWER, Iperf3, PROTOCOL};
use crate::control_client::ClientError;
use crate::frames::{read_exact_by, write_all_by};

/// The connection on which client and server agree.
pub(super) struct Control<'a> {
    pub(super) far: &'a Iperf3,
    pub(super) port: u16,
    pub(super) socket: TcpStream,
}

impl Control<'_> {
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), ClientError> {
        let written = write_all_by(&self.socket, bytes, Instant::now() + ANSWER);
        written.map_err(|error| self.lost(&error))
    }

    /// Whether the server has said something that was not read yet, or is gone.
    pub(super) fn has_word(&self) -> bool {
        tcp::wait_readable(&self.socket, Duration::ZERO).unwrap_or(true)
    }

    /// The shortest so far, in seconds; 0 where the kernel does not say.
    pub(super) fn round_trip_s(&self) -> f64 {
        let info = tcp::tcp_info(&self.socket).ok();
        let shortest = info.and_then(|info| info.min_rtt_us);
        shortest.map_or(0.0, |us| f64::from(us) / 1e6)
    }

    pub(super) fn write_json(&self, what: &impl serde::Serialize) -> Result<(), ClientError> {
        let json = serde_json::to_string(what).map_err(|error| self.far.local(&error))?;
        self.write(&frame(&json))
    }

    fn lost(&self, error: &io::Error) -> ClientError {
        self.far
            .broken(&format!("iperf3's control connection broke ({error})"))
    }

    /// What the server says within that time, if anything.
    ///
    /// # Errors
    /// When it ends the test, and says why, or is not iperf3.
    pub(super) fn state(&self, within: Duration) -> Result<Option<State>, ClientError> {
        if !tcp::wait_readable(&self.socket, within).map_err(|error| self.lost(&error))? {
            return Ok(None);
        }
        let mut byte = [0];
        read_exact_by(&self.socket, &mut byte, Instant::now() + ANSWER)
            .map_err(|error| self.lost(&error))?;
        let [byte] = byte;
        let ended = |message: String| ClientError::Ended {
            name: self.far.name.clone(),
            code: plumb_wire::native::control::ErrorCode::Full,
            message,
        };
        match State::of(byte) {
            Some(State::AccessDenied) => Err(ended(format!(
                "the iperf3 server on port {} is busy: try again later, or another port",
                self.port
            ))),
            Some(State::ServerTerminate) => Err(ended("the iperf3 server was stopped".to_owned())),
            Some(State::ServerError) => {
                let mut numbers = [0; 8];
                let read = read_exact_by(&self.socket, &mut numbers, Instant::now() + ANSWER);
                let [a, b, c, d, ..] = numbers;
                let code = i32::from_be_bytes([a, b, c, d]);
                Err(ended(match read {
                    Ok(()) => format!("the iperf3 server refused the test (its error {code})"),
                    Err(_) => "the iperf3 server refused the test".to_owned(),
                }))
            }
            Some(state) => Ok(Some(state)),
            None => Err(ClientError::NotProtocol {
                name: self.far.name.clone(),
                port: self.port,
                protocol: PROTOCOL,
            }),
        }
    }

    pub(super) fn expect(&self, wanted: State, within: Duration) -> Result<(), ClientError> {
        match self.state(within)? {
            Some(state) if state == wanted => Ok(()),
            Some(_) => Err(self.far.broken("the iperf3 server answered out of turn")),
            None => Err(self.far.broken("the iperf3 server did not answer")),
        }
    }

    /// Ends the test, and exchanges what both ends counted.
    pub(super) fn exchange(
        &self,
        ours: &Results,
        kept: &[(bool, TcpStream)],
    ) -> Result<Results, ClientError> {
        /// How often what still arrives is read.
        const TICK: Duration = Duration::from_millis(20);
        self.write(&[State::TestEnd.byte()])?;
        let until = Instant::now() + ANSWER;
        loop {
            // A server that cannot write does not hear of the end.
            for (_, socket) in kept.iter().filter(|(is_sent, _)| !is_sent) {
                drain(socket);
            }
            match self.state(TICK)? {
                Some(State::ExchangeResults) => break,
                Some(_) => return Err(self.far.broken("the iperf3 server answered out of turn")),
                None if Instant::now() < until => {}
                None => return Err(self.far.broken("the iperf3 server did not end the test")),
            }
        }
        self.write_json(ours)?;
        let theirs = self.read_results()?;
        // It has what it wants: whether it still says so, and hears this, changes nothing.
        if self.expect(State::DisplayResults, ANSWER).is_ok() {
            let _ = self.write(&[State::Done.byte()]);
        }
        Ok(theirs)
    }

    fn read_results(&self) -> Result<Results, ClientError> {
        let deadline = Instant::now() + ANSWER;
        let mut length = [0; LENGTH_BYTES];
        read_exact_by(&self.socket, &mut length, deadline).map_err(|error| self.lost(&error))?;
        let length = u32::from_be_bytes(length);
        if length > MAX_RESULTS_BYTES {
            return Err(self.far.broken("the iperf3 server's results are too long"));
        }
        let mut json = vec![0; length as usize];
        read_exact_by(&self.socket, &mut json, deadline).map_err(|error| self.lost(&error))?;
        serde_json::from_slice(&json).map_err(|_| {
            self.far
                .broken("the iperf3 server's results are not understood")
        })
    }
}

/// Reads what waits on a connection, and drops it: at most so much at once that the control connection is not forgotten.
fn drain(mut socket: &TcpStream) {
    /// Reads of one call.
    const MOST: u32 = 64;
    let mut buffer = [0; 64 * 1024];
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for _ in 0..MOST {
        match io::Read::read(&mut socket, &mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
