//! The control connection: states, and JSON with its length before it.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_load::frames::{read_exact_by, write_all_by};
use plumb_net::tcp;
use plumb_wire::iperf3::{ErrorCode, LENGTH_BYTES, State, frame, server_error};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::gate::Gate;
use crate::shared::STOP_INTERVAL;

/// How long a client has to answer, and to take what it is sent: several round trips of the longest path.
const ANSWER: Duration = Duration::from_secs(10);

/// Why a test ends early.
#[derive(Debug)]
pub(super) enum Ended {
    /// The connection broke, or the client broke the protocol.
    Link,
    /// What the client asked for is not done, for that reason.
    Refused(ErrorCode, i32),
    /// Others are served, for longer than a client waits.
    Busy,
    Closed,
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Link
    }
}

pub(super) struct Control<'a> {
    pub(super) socket: &'a TcpStream,
    pub(super) gate: &'a Gate,
}

impl Control<'_> {
    pub(super) fn send(&self, state: State) -> Result<(), Ended> {
        self.write(&[state.byte()])
    }

    /// Reports why the test ended to a client that may still be there.
    pub(super) fn report(&self, ended: &Ended) {
        let _ = match ended {
            Ended::Link => Ok(()),
            Ended::Refused(code, system) => self.write(&server_error(*code, *system)),
            Ended::Busy => self.send(State::AccessDenied),
            Ended::Closed => self.send(State::ServerTerminate),
        };
    }

    /// The next state, if one comes within that time.
    pub(super) fn state(&self, within: Duration) -> Result<Option<State>, Ended> {
        if !tcp::wait_readable(self.socket, within).unwrap_or(true) {
            return Ok(None);
        }
        let mut byte = [0];
        read_exact_by(self.socket, &mut byte, Instant::now() + ANSWER)?;
        State::of(byte[0]).map(Some).ok_or(Ended::Link)
    }

    /// Whether the client has gone, or says something although it is to wait.
    pub(super) fn is_over(&self) -> bool {
        tcp::wait_readable(self.socket, Duration::ZERO).unwrap_or(true)
    }

    pub(super) fn read<T: DeserializeOwned>(&self, most: u32) -> Result<T, Ended> {
        self.read_within(most, ANSWER)
    }

    /// The same, where that is to come sooner.
    pub(super) fn read_within<T: DeserializeOwned>(
        &self,
        most: u32,
        within: Duration,
    ) -> Result<T, Ended> {
        let deadline = Instant::now() + within;
        let mut length = [0; LENGTH_BYTES];
        read_exact_by(self.socket, &mut length, deadline)?;
        let length = u32::from_be_bytes(length);
        let refused = Ended::Refused(ErrorCode::ReceiveParameters, 0);
        if length > most {
            return Err(refused);
        }
        let mut json = vec![0; length as usize];
        read_exact_by(self.socket, &mut json, deadline)?;
        serde_json::from_slice(&json).map_err(|_| refused)
    }

    pub(super) fn write_json(&self, what: &impl Serialize) -> Result<(), Ended> {
        let json = serde_json::to_string(what).map_err(|_| Ended::Link)?;
        self.write(&frame(&json))
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Ended> {
        Ok(write_all_by(self.socket, bytes, Instant::now() + ANSWER)?)
    }

    /// Lets the others go on for a moment; breaks where the responder stops.
    pub(super) fn pause(&self) -> Result<(), Ended> {
        std::thread::sleep(STOP_INTERVAL);
        match self.gate.is_closed() {
            true => Err(Ended::Closed),
            false => Ok(()),
        }
    }
}
