//! A connection for programs that block: every call ends within a time, as if it would block.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::tls::{Pipe, TlsSession};

/// A socket, encrypted or not.
#[derive(Debug)]
pub struct Channel {
    socket: Arc<TcpStream>,
    tls: Option<TlsSession>,
}

impl Channel {
    /// One whose calls take at most so long.
    ///
    /// # Errors
    /// Errors of fcntl(2) and setsockopt(2).
    pub fn new(
        socket: Arc<TcpStream>,
        tls: Option<TlsSession>,
        longest: Duration,
    ) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(longest))?;
        socket.set_write_timeout(Some(longest))?;
        Ok(Self { socket, tls })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn pipe(&mut self) -> Pipe<'_> {
        Pipe::new(&self.socket, self.tls.as_mut())
    }
}

/// What came was a part of a record: it is asked for again, as when nothing came.
fn whole<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        whole(self.pipe().read(buffer))
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        whole(self.pipe().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        whole(self.pipe().flush())
    }
}
