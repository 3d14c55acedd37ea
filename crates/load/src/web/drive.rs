//! Futures that wait for one connection, polled by the thread that has it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use hyper::rt::ReadBufCursor;
use plumb_net::tcp;

use crate::tls::{Pipe, TlsSession};

/// Bytes of one read.
const READ_BYTES: usize = 128 * 1024;

/// A connection for hyper: it never blocks, and notes what it waits for.
#[derive(Debug)]
pub struct Wire {
    socket: Arc<TcpStream>,
    tls: Option<TlsSession>,
    waits: Arc<Waits>,
    buffer: Vec<u8>,
}

/// Polls what waits for a connection.
#[derive(Debug)]
pub struct Driver {
    socket: Arc<TcpStream>,
    waits: Arc<Waits>,
}

/// What a connection was last found to wait for, whether a task asked to be polled again, and how much may wait to
/// leave.
#[derive(Debug, Default)]
struct Waits {
    to_read: AtomicBool,
    to_write: AtomicBool,
    woken: AtomicBool,
    /// Bytes that may wait in front of the socket; 0 where nothing limits them.
    unsent: AtomicUsize,
}

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
    }
}

impl Wire {
    /// The connection after its handshake, if it has one, and what polls it.
    ///
    /// # Errors
    /// Errors of fcntl(2).
    pub fn new(socket: Arc<TcpStream>, tls: Option<TlsSession>) -> io::Result<(Self, Driver)> {
        socket.set_nonblocking(true)?;
        let waits = Arc::<Waits>::default();
        let driver = Driver {
            socket: Arc::clone(&socket),
            waits: Arc::clone(&waits),
        };
        let wire = Self {
            socket,
            tls,
            waits,
            buffer: vec![0; READ_BYTES],
        };
        Ok((wire, driver))
    }

    /// Its parts, for another protocol that continues on the connection.
    pub fn into_parts(self) -> (Arc<TcpStream>, Option<TlsSession>) {
        (self.socket, self.tls)
    }

    fn pipe(&mut self) -> Pipe<'_> {
        Pipe::new(&self.socket, self.tls.as_mut())
    }

    fn settle<T>(
        &self,
        done: io::Result<T>,
        waits_for: &AtomicBool,
        context: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                waits_for.store(true, Ordering::Relaxed);
                Poll::Pending
            }
            // A part of a record came.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            done => Poll::Ready(done),
        }
    }
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let room = to.remaining().min(this.buffer.len());
        let buffer = this.buffer.get_mut(..room).unwrap_or_default();
        let read = Pipe::new(&this.socket, this.tls.as_mut()).read(buffer);
        let read = match read {
            // An end without TLS's own farewell is an end: HTTP says how long its messages are.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        };
        let waits = Arc::clone(&this.waits);
        let settled = this.settle(read, &waits.to_read, context);
        settled.map_ok(|count| to.put_slice(this.buffer.get(..count).unwrap_or_default()))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let waits = Arc::clone(&self.waits);
        let written = match waits.unsent.load(Ordering::Relaxed) {
            0 => self.pipe().write(bytes),
            most => {
                let some = bytes.get(..most).unwrap_or(bytes);
                let mut pipe = self.pipe();
                pipe.flush().and_then(|()| pipe.write(some))
            }
        };
        self.settle(written, &waits.to_write, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.pipe().flush();
        let waits = Arc::clone(&self.waits);
        self.settle(flushed, &waits.to_write, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What is left to write goes first; an end that cannot be announced is one all the same.
        match self.poll_flush(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => Poll::Ready(Ok(())),
        }
    }
}

impl Driver {
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Lets no more bytes than that wait in front of the socket, such as in TLS, from now on.
    pub fn limit_unsent(&self, bytes: usize) {
        self.waits.unsent.store(bytes, Ordering::Relaxed);
    }

    /// Polls until that is ready, or so much time has passed, which gives `None`. What is polled must poll all that waits
    /// for this connection.
    ///
    /// # Errors
    /// Errors of poll(2).
    pub fn poll<T>(
        &self,
        within: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> io::Result<Option<T>> {
        let until = Instant::now() + within;
        let waker = Waker::from(Arc::clone(&self.waits));
        let context = &mut Context::from_waker(&waker);
        loop {
            for flag in [&self.waits.to_read, &self.waits.to_write, &self.waits.woken] {
                flag.store(false, Ordering::Relaxed);
            }
            if let Poll::Ready(value) = poll(context) {
                return Ok(Some(value));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if !self.waits.woken.load(Ordering::Relaxed) {
                self.wait(left)?;
            }
        }
    }

    /// The same of a future.
    ///
    /// # Errors
    /// Errors of poll(2).
    pub fn run<T>(
        &self,
        within: Duration,
        future: impl Future<Output = T>,
    ) -> io::Result<Option<T>> {
        let mut future = pin!(future);
        self.poll(within, |context| future.as_mut().poll(context))
    }

    fn wait(&self, longest: Duration) -> io::Result<()> {
        let to_write = self.waits.to_write.load(Ordering::Relaxed);
        let to_read = self.waits.to_read.load(Ordering::Relaxed);
        match (to_read, to_write) {
            (true, true) => tcp::wait_readable_or_writable(&self.socket, longest)?,
            (true, false) => tcp::wait_readable(&self.socket, longest)?,
            (false, true) => tcp::wait_writable(&self.socket, longest)?,
            (false, false) => {
                std::thread::sleep(longest);
                false
            }
        };
        Ok(())
    }
}
