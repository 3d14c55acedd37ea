//! Requests on one connection of HTTP/1.1 or HTTP/2, polled by the thread that has it.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, StatusCode};

use super::drive::{Driver, Wire};
use super::site::HTTP2;
use super::tasks::Tasks;
use crate::tls::TlsSession;

/// The body of a request: nothing, or what is put into it while it is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Feed(Arc<Mutex<Fed>>);

#[derive(Debug, Default)]
struct Fed {
    next: Option<Bytes>,
    /// How much is still to come.
    left: u64,
    /// Whether it is said beforehand how much that is.
    is_known: bool,
    waker: Option<Waker>,
}

impl Feed {
    /// One of so many bytes, which the request says beforehand or not.
    pub(super) fn of(bytes: u64, is_known: bool) -> Self {
        Self(Arc::new(Mutex::new(Fed {
            left: bytes,
            is_known,
            ..Fed::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Fed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the last that was put into it has been taken.
    pub(super) fn is_hungry(&self) -> bool {
        self.lock().next.is_none()
    }

    /// Whether all of it has been put into it.
    pub(super) fn is_full(&self) -> bool {
        self.lock().left == 0
    }

    /// Puts some of the bytes into it, once the last have been taken; how many.
    pub(super) fn put(&self, bytes: &[u8]) -> usize {
        let fed = &mut *self.lock();
        let count = fed.left.min(bytes.len() as u64) as usize;
        fed.next = Some(Bytes::copy_from_slice(bytes.get(..count).unwrap_or(bytes)));
        fed.left -= count as u64;
        if let Some(waker) = fed.waker.take() {
            waker.wake();
        }
        count
    }
}

impl Body for Feed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let fed = &mut *self.lock();
        match fed.next.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if fed.left == 0 => Poll::Ready(None),
            None => {
                fed.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let fed = self.lock();
        fed.left == 0 && fed.next.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let fed = self.lock();
        let left = fed.left + fed.next.as_ref().map_or(0, |bytes| bytes.len() as u64);
        match fed.is_known || left == 0 {
            true => SizeHint::with_exact(left),
            false => SizeHint::default(),
        }
    }
}

type Polled<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An answer that is waited for.
pub(super) type Answering = Polled<hyper::Result<Response<Incoming>>>;

/// Where requests go in.
pub(super) enum Sender {
    Http1(http1::SendRequest<Feed>),
    Http2(http2::SendRequest<Feed>),
}

impl Sender {
    /// Asks for something, once the last request is over where there can be only one.
    pub(super) fn poll_request(
        &mut self,
        context: &mut Context<'_>,
        make: impl FnOnce() -> Request<Feed>,
    ) -> Poll<io::Result<Answering>> {
        let ready = match self {
            Self::Http1(sender) => sender.poll_ready(context),
            Self::Http2(sender) => sender.poll_ready(context),
        };
        std::task::ready!(ready).map_err(other)?;
        Poll::Ready(Ok(match self {
            Self::Http1(sender) => Box::pin(sender.send_request(in_origin_form(make()))),
            Self::Http2(sender) => Box::pin(sender.send_request(make())),
        }))
    }
}

/// The same as HTTP/1.1 has it (RFC 9112, section 3.2.1): path and query alone, which some servers insist on.
fn in_origin_form(mut request: Request<Feed>) -> Request<Feed> {
    if let Some(path) = request.uri().path_and_query() {
        *request.uri_mut() = path.clone().into();
    }
    request
}

/// A connection for requests.
pub(super) struct Exchange {
    sender: Sender,
    connection: Option<Polled<hyper::Result<()>>>,
    tasks: Tasks,
    driver: Driver,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&self.driver).finish()
    }
}

fn other(error: hyper::Error) -> io::Error {
    io::Error::other(match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

impl Exchange {
    /// Begins on a connection after its handshake; takes no longer than `within`.
    ///
    /// # Errors
    /// When the far end does not speak HTTP.
    pub(super) fn begin(
        socket: TcpStream,
        tls: Option<TlsSession>,
        within: Duration,
    ) -> io::Result<Self> {
        let is_http2 = tls
            .as_ref()
            .is_some_and(|tls| tls.protocol() == Some(HTTP2));
        let _ = socket.set_nodelay(true);
        let (wire, driver) = Wire::new(Arc::new(socket), tls)?;
        let tasks = Tasks::default();
        let (sender, connection): (_, Polled<_>) = if is_http2 {
            let begun = http2::Builder::new(tasks.clone())
                // A window must not be what limits a long fat path.
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .handshake(wire);
            let begun = driver.run(within, begun)?.ok_or(io::ErrorKind::TimedOut)?;
            let (sender, connection) = begun.map_err(other)?;
            (Sender::Http2(sender), Box::pin(connection))
        } else {
            let begun = driver.run(within, http1::handshake(wire))?;
            let (sender, connection) = begun.ok_or(io::ErrorKind::TimedOut)?.map_err(other)?;
            (Sender::Http1(sender), Box::pin(connection))
        };
        Ok(Self {
            sender,
            connection: Some(connection),
            tasks,
            driver,
        })
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    pub(super) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Polls all that waits for the connection, and `poll`, until that is ready; `None` when `within` passed first.
    ///
    /// # Errors
    /// When the connection has ended, and `poll` is not ready nonetheless.
    pub(super) fn poll<T>(
        &mut self,
        within: Duration,
        mut poll: impl FnMut(&mut Sender, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<Option<T>> {
        let Self {
            sender,
            connection,
            tasks,
            driver,
        } = self;
        let done = driver.poll(within, |context| {
            let ended = connection.as_mut().map(|c| c.as_mut().poll(context));
            tasks.poll(context);
            if let Poll::Ready(done) = poll(sender, context) {
                return Poll::Ready(done);
            }
            match ended {
                Some(Poll::Pending) => Poll::Pending,
                Some(Poll::Ready(Err(error))) => Poll::Ready(Err(other(error))),
                Some(Poll::Ready(Ok(()))) | None => {
                    *connection = None;
                    let why = "the server closed the connection";
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, why)))
                }
            }
        })?;
        done.transpose()
    }
}

/// Bytes that may be on their way in HTTP/2: what 10 Gbit/s bring in 50 ms, as much as the kernel's largest buffer mostly is.
const WINDOW_BYTES: u32 = 64 * 1024 * 1024;

/// Polls for the head of an answer.
pub(super) fn answered(
    answering: &mut Answering,
    context: &mut Context<'_>,
) -> Poll<io::Result<Response<Incoming>>> {
    answering.as_mut().poll(context).map_err(other)
}

/// Polls the next bytes of a body; `None` at its end.
pub(super) fn next_bytes(
    body: &mut Incoming,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    loop {
        match Pin::new(&mut *body).poll_frame(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(other(error))),
            Poll::Ready(Some(Ok(frame))) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Ok(Some(bytes)));
                }
            }
        }
    }
}

/// That the server does not serve it.
pub(super) fn refused(answer: &Response<Incoming>) -> io::Error {
    let after = answer.headers().get(hyper::header::RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok());
    let again = after.map_or(String::new(), |s| {
        format!("; it says to come again in {s} s")
    });
    let status = answer.status();
    io::Error::other(match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            format!("the server is busy (HTTP {}){again}", status.as_u16())
        }
        _ => format!("the server answered HTTP {}", status.as_u16()),
    })
}
