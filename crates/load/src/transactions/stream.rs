//! A stream of transactions, and how its bytes are read and written.

use std::io;
use std::net::TcpStream;

use plumb_wire::native::control::flow::transactions::TransactionFlow;

use crate::phase_state::{POLL_INTERVAL, Stage};
use crate::tls::TlsSession;

/// One stream of transactions with its data connection.
#[derive(Debug)]
pub struct TransactionStream {
    pub number: u32,
    pub flow: TransactionFlow,
    pub socket: TcpStream,
    /// Set when that is encrypted.
    pub tls: Option<TlsSession>,
}

/// Makes a data connection fit for requests and answers: they leave at once, and a thread that
/// waits for one sees within [`POLL_INTERVAL`] that it is to stop.
pub(super) fn ready(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    socket.set_write_timeout(Some(POLL_INTERVAL))
}

/// Why a transaction did not take place.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The phase ended meanwhile.
    Over,
    Failed(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Reads `left` bytes into nowhere.
pub(super) fn take(
    pipe: &mut impl io::Read,
    mut left: usize,
    scratch: &mut [u8],
    stage: &Stage,
) -> Result<(), Broken> {
    while left > 0 {
        let room = left.min(scratch.len());
        match pipe.read(scratch.get_mut(..room).unwrap_or_default()) {
            Ok(0) => {
                return Err(Broken::Failed(
                    "the far end closed the connection".to_owned(),
                ));
            }
            Ok(count) => left = left.saturating_sub(count),
            Err(error) => again(error, stage)?,
        }
    }
    Ok(())
}

/// Writes `left` bytes of `payload`, over and over.
pub(super) fn give(
    pipe: &mut impl io::Write,
    mut left: usize,
    payload: &[u8],
    stage: &Stage,
) -> Result<(), Broken> {
    while left > 0 {
        match pipe.write(payload.get(..left.min(payload.len())).unwrap_or_default()) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            Ok(count) => left = left.saturating_sub(count),
            Err(error) => again(error, stage)?,
        }
    }
    // What encryption may have kept back.
    loop {
        match pipe.flush() {
            Ok(()) => return Ok(()),
            Err(error) => again(error, stage)?,
        }
    }
}

/// Whether a call that did not succeed is to be made again.
fn again(error: io::Error, stage: &Stage) -> Result<(), Broken> {
    if !crate::phase_state::retry(&error) {
        Err(error.into())
    } else if stage.is_over() {
        Err(Broken::Over)
    } else {
        Ok(())
    }
}

/// Bytes that one call reads or writes at most.
pub(super) const SCRATCH_BYTES: usize = 64 * 1024;
