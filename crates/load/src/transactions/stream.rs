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

/// Reads `left` bytes into nowhere, until the stage is over at the latest: a far end that always sends
/// something never makes a call wait.
pub(super) fn take(
    pipe: &mut impl io::Read,
    mut left: usize,
    scratch: &mut [u8],
    stage: &Stage,
) -> Result<(), Broken> {
    while left > 0 {
        under_way(stage)?;
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

/// Writes `left` bytes of `payload`, over and over, until the stage is over at the latest.
pub(super) fn give(
    pipe: &mut impl io::Write,
    mut left: usize,
    payload: &[u8],
    stage: &Stage,
) -> Result<(), Broken> {
    while left > 0 {
        under_way(stage)?;
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

fn under_way(stage: &Stage) -> Result<(), Broken> {
    if stage.is_over() {
        Err(Broken::Over)
    } else {
        Ok(())
    }
}

/// Whether a call that did not succeed is to be made again.
fn again(error: io::Error, stage: &Stage) -> Result<(), Broken> {
    if crate::phase_state::retry(&error) {
        under_way(stage)
    } else {
        Err(error.into())
    }
}

/// Bytes that one call reads or writes at most.
pub(super) const SCRATCH_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A far end that has always sent a byte more and taken a byte more, and ends the stage after some.
    struct Eager<'a> {
        stage: &'a Stage,
        calls: usize,
    }

    impl Eager<'_> {
        fn call(&mut self) -> io::Result<usize> {
            self.calls += 1;
            if self.calls == 3 {
                self.stage.stop();
            }
            Ok(1)
        }
    }

    impl io::Read for Eager<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.call()
        }
    }

    impl io::Write for Eager<'_> {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.call()
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_far_end_that_never_makes_a_call_wait_is_left_when_the_stage_is_over() {
        for takes in [true, false] {
            let stage = Stage::begin(Duration::from_secs(60), None);
            let mut pipe = Eager {
                stage: &stage,
                calls: 0,
            };
            let done = if takes {
                take(&mut pipe, 1000, &mut [0; 10], &stage)
            } else {
                give(&mut pipe, 1000, &[0; 10], &stage)
            };
            assert!(matches!(done, Err(Broken::Over)), "{done:?}");
            assert_eq!(pipe.calls, 3);
        }
    }
}
