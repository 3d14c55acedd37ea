//! Load by requests, one after the other on one connection: large objects down, or large bodies up.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::Request;
use hyper::body::{Bytes, Incoming};

use super::exchange::{Answering, Exchange, Feed, answered, next_bytes, refused};
use super::in_band::InBand;
use crate::framing::Framing;
use crate::loaded::Loaded;
use crate::phase_state::POLL_INTERVAL;
use crate::tcp::unsent::UnsentLimit;

/// Makes the next request.
type Next = Box<dyn Fn() -> Request<Feed> + Send>;

/// How far a request is.
enum State {
    Idle,
    /// It is sent, or its answer is waited for.
    Asked(Answering),
    Answered(Incoming),
}

/// A connection that carries load by requests.
pub(super) struct HttpLoad {
    exchange: Exchange,
    next: Next,
    state: State,
    /// What came and was not read yet.
    came: Bytes,
    /// The body of the request that is being sent.
    feed: Feed,
    /// Requests beside the load, where some are to be made.
    in_band: Option<InBand>,
    unsent: UnsentLimit,
}

impl std::fmt::Debug for HttpLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HttpLoad").field(&self.exchange).finish()
    }
}

impl HttpLoad {
    pub(super) fn new(exchange: Exchange, next: Next, in_band: Option<InBand>) -> Self {
        Self {
            exchange,
            next,
            state: State::Idle,
            came: Bytes::new(),
            feed: Feed::default(),
            in_band,
            unsent: UnsentLimit::default(),
        }
    }

    /// Asks, if nothing is asked, and continues until something came, which may be what a server says of an upload,
    /// until `enough`, or until [`POLL_INTERVAL`] has passed.
    fn go_on(&mut self, enough: impl Fn(&Feed) -> bool) -> io::Result<Option<Bytes>> {
        let Self {
            exchange,
            next,
            state,
            feed,
            in_band,
            unsent,
            ..
        } = self;
        if in_band.is_some() {
            let driver = exchange.driver();
            driver.limit_unsent(unsent.follow(driver.socket())?);
        }
        let done = exchange.poll(POLL_INTERVAL, |sender, context| {
            if let Some(in_band) = in_band {
                if let Err(error) = in_band.poll(sender, context) {
                    return Poll::Ready(Err(error));
                }
                if !in_band.may_load() {
                    return Poll::Pending;
                }
            }
            if matches!(state, State::Idle) {
                let make = || {
                    let request = next();
                    *feed = request.body().clone();
                    request
                };
                *state = State::Asked(ready!(sender.poll_request(context, make))?);
            }
            match step(state, context) {
                Poll::Pending if enough(feed) => Poll::Ready(Ok(Bytes::new())),
                done => done,
            }
        });
        if let (Err(_), Some(in_band)) = (&done, in_band) {
            in_band.failed();
        }
        done
    }
}

/// What comes next of a request: bytes of its answer, or none at its end.
fn step(state: &mut State, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
    if let State::Asked(answering) = state {
        let answer = ready!(answered(answering, context))?;
        if !answer.status().is_success() {
            return Poll::Ready(Err(refused(&answer)));
        }
        *state = State::Answered(answer.into_body());
    }
    let State::Answered(body) = state else {
        return Poll::Ready(Ok(Bytes::new()));
    };
    let bytes = ready!(next_bytes(body, context))?;
    Poll::Ready(Ok(bytes.unwrap_or_else(|| {
        *state = State::Idle;
        Bytes::new()
    })))
}

impl Framing for HttpLoad {
    fn asks(&self) -> Option<Arc<dyn Loaded>> {
        let asks: Arc<dyn Loaded> = self.in_band.as_ref()?.asks();
        Some(asks)
    }
}

impl Read for HttpLoad {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.came.is_empty() {
            self.came = self.go_on(|_| false)?.unwrap_or_default();
        }
        if self.came.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.came.len().min(buffer.len());
        let bytes = self.came.split_to(count);
        buffer
            .get_mut(..count)
            .unwrap_or_default()
            .copy_from_slice(&bytes);
        Ok(count)
    }
}

impl Write for HttpLoad {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What an answer says comes to its end, and another request follows.
        self.go_on(|feed| feed.is_hungry() && !feed.is_full())?;
        let is_open = !matches!(self.state, State::Idle);
        if is_open && self.feed.is_hungry() && !self.feed.is_full() {
            // One frame, which the next request waits for.
            let frame = match self.in_band {
                Some(_) => bytes.get(..self.unsent.bytes()).unwrap_or(bytes),
                None => bytes,
            };
            let count = self.feed.put(frame);
            self.go_on(Feed::is_hungry)?;
            return Ok(count);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.go_on(Feed::is_hungry).map(|_| ())
    }
}
