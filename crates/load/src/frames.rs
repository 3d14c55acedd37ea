//! Frames on a socket, each within a deadline for the whole frame: a peer that sends or takes
//! one byte now and then gains nothing by it.

use std::io::{self, ErrorKind as Kind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_wire::native::control::frame::{
    FrameError, decode_body, decode_packed_body, encode_frame, frame_length,
};
use plumb_wire::native::spec::FRAME_HEADER_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why no frame was read or written.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The peer closed or aborted the connection.
    #[error("the connection was closed")]
    Closed,
    /// The frame was not complete in time.
    #[error("no complete message came in time")]
    Silent,
    /// The bytes are not of this protocol.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The socket failed in another way.
    #[error("the connection failed ({0})")]
    Io(io::Error),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            Kind::UnexpectedEof
            | Kind::ConnectionReset
            | Kind::BrokenPipe
            | Kind::ConnectionAborted => Self::Closed,
            Kind::WouldBlock | Kind::TimedOut => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

/// Reads a frame of at most `max` bytes that is complete by `deadline`.
///
/// # Errors
/// When it is not, or is no message.
pub fn read_frame<M: DeserializeOwned>(
    stream: &TcpStream,
    max: usize,
    deadline: Instant,
) -> Result<M, LinkError> {
    read_frame_until(stream, max, &|| deadline)
}

/// The same where the deadline may move while it is waited for: whenever it seems to have passed, it is asked for again.
///
/// # Errors
/// Like [`read_frame`].
pub fn read_frame_until<M: DeserializeOwned>(
    stream: &TcpStream,
    max: usize,
    deadline: &dyn Fn() -> Instant,
) -> Result<M, LinkError> {
    let mut header = [0; FRAME_HEADER_BYTES];
    read_exact_until(stream, &mut header, deadline)?;
    let mut body = vec![0; frame_length(header, max)?];
    read_exact_until(stream, &mut body, deadline)?;
    Ok(decode_packed_body(&body, max)?)
}

/// Reads the body of a frame whose header was read before.
///
/// # Errors
/// Like [`read_frame`].
pub fn read_body<M: DeserializeOwned>(
    stream: &TcpStream,
    length: usize,
    deadline: Instant,
) -> Result<M, LinkError> {
    let mut body = vec![0; length];
    read_exact_by(stream, &mut body, deadline)?;
    Ok(decode_body(&body)?)
}

/// Writes a frame that the kernel has taken whole by `deadline`.
///
/// # Errors
/// When it has not; the connection is then of no more use.
pub fn write_frame(
    stream: &TcpStream,
    message: &impl Serialize,
    max: usize,
    deadline: Instant,
) -> Result<(), LinkError> {
    let frame = encode_frame(message, max)?;
    write_all_by(stream, &frame, deadline)?;
    Ok(())
}

/// Fills `buffer` by `deadline`.
///
/// # Errors
/// TimedOut or WouldBlock past the deadline, UnexpectedEof when the peer closed.
pub fn read_exact_by(stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    read_exact_until(stream, buffer, &|| deadline)
}

fn read_exact_until(
    mut stream: &TcpStream,
    mut buffer: &mut [u8],
    deadline: &dyn Fn() -> Instant,
) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(remaining(deadline())?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            // What is left of the time is looked at again.
            Err(error)
                if matches!(
                    error.kind(),
                    Kind::Interrupted | Kind::WouldBlock | Kind::TimedOut
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hands `bytes` to the kernel by `deadline`.
///
/// # Errors
/// TimedOut or WouldBlock past the deadline.
pub fn write_all_by(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(remaining(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Time left; a timeout of zero would mean "for ever" to the socket.
pub(crate) fn remaining(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(io::ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}
