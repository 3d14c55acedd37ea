//! What is sent, and what is taken.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use plumb_load::web::visited;

use super::activity::{Activity, Answering, SMALL_LONGEST};
use super::loads::{Load, NotNow};
use super::state::Counters;

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    payload: Payload,
    /// The connection is used as long as this is kept.
    _answering: Option<Answering>,
}

#[derive(Debug)]
enum Payload {
    /// All of a document.
    Whole(Option<Bytes>),
    /// Bytes that mean nothing.
    Large(Large),
}

#[derive(Debug)]
pub(super) struct Large {
    pub(super) left: u64,
    /// Sent again and again.
    pub(super) payload: Bytes,
    /// When it ends at the latest.
    pub(super) until: Instant,
    /// What it belongs to, if it is heavy.
    pub(super) test: Option<Arc<Load>>,
    /// Kept so that the connection is looked at, if a visit is to be judged by it.
    pub(super) _seen: Option<Arc<visited::Body>>,
    pub(super) counters: Arc<Counters>,
    /// What happens on its connection.
    pub(super) activity: Arc<Activity>,
}

/// Why a body ended too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    #[error("the test took longer, or carried more, than the responder allows")]
    Limit,
    #[error("the client ended it")]
    Client,
}

impl Answer {
    fn new(payload: Payload) -> Self {
        Self {
            payload,
            _answering: None,
        }
    }

    pub(super) fn of(document: impl Into<Bytes>) -> Self {
        Self::new(Payload::Whole(Some(document.into())))
    }

    pub(super) fn large(large: Large) -> Self {
        Self::new(Payload::Large(large))
    }

    /// Bytes of the body that wait for no turn, and that no load counts.
    pub(super) fn small_bytes(&self) -> u64 {
        match &self.payload {
            Payload::Large(Large { test: Some(_), .. }) => 0,
            _ => self.size_hint().exact().unwrap_or_default(),
        }
    }

    /// The same, for the request that is being answered by it.
    pub(super) fn to(self, answering: Answering) -> Self {
        Self {
            _answering: Some(answering),
            ..self
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let data = match &mut self.payload {
            Payload::Whole(document) => document.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Payload::Large(large) => large.next(),
        };
        Poll::Ready(data.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.payload {
            Payload::Whole(document) => document.as_ref().is_none_or(Bytes::is_empty),
            Payload::Large(large) => large.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match &self.payload {
            Payload::Whole(document) => document.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Payload::Large(large) => large.left,
        })
    }
}

impl Large {
    fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        if self.left == 0 {
            return None;
        }
        let piece = self.activity.piece().unwrap_or(usize::MAX);
        let count = self.left.min(self.payload.len().min(piece) as u64);
        let may_go_on = self.test.as_ref().is_none_or(|test| test.carried(count));
        if !may_go_on || Instant::now() >= self.until {
            return Some(Err(Cut::Limit));
        }
        self.left -= count;
        self.counters.sent(count);
        Some(Ok(self.payload.slice(..count as usize)))
    }
}

/// Why a body was not taken to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTaken {
    #[error(transparent)]
    Cut(#[from] Cut),
    #[error(transparent)]
    NotNow(#[from] NotNow),
}

/// The next frame of a body, which comes by `until`; nothing where it is whole.
async fn next_frame(from: &mut Incoming, until: Instant) -> Result<Option<Frame<Bytes>>, Cut> {
    // The connection's thread polls it ten times a second, whether or not something came.
    let next = std::future::poll_fn(|context| match Instant::now() >= until {
        true => Poll::Ready(Some(Err(Cut::Limit))),
        false => Pin::new(&mut *from)
            .poll_frame(context)
            .map_err(|_| Cut::Client),
    });
    next.await.transpose()
}

/// Takes all that a client sends; how much that was. What comes beyond `light` bytes belongs to the load that `join` gives, and
/// shows in what it gives beside: a client that announces much and sends nothing takes no turn. The load says when it ends.
pub(super) async fn drain(
    mut from: Incoming,
    light: u64,
    mut join: impl FnMut() -> Result<(Arc<Load>, Option<Arc<visited::Body>>), NotNow>,
    counters: &Counters,
) -> Result<u64, NotTaken> {
    let (mut taken, mut load, mut seen) = (0, None, None);
    let mut until = Instant::now() + SMALL_LONGEST;
    while let Some(frame) = next_frame(&mut from, until).await? {
        let count = frame.data_ref().map_or(0, |data| data.len() as u64);
        taken += count;
        counters.received(count);
        if taken > light && load.is_none() {
            let (joined, body) = join()?;
            until = joined.until();
            (load, seen) = (Some(joined), body);
        }
        if let Some(seen) = &seen {
            seen.came(count);
        }
        let may_go_on = load
            .as_ref()
            .is_none_or(|load: &Arc<Load>| load.carried(count));
        if !may_go_on {
            return Err(Cut::Limit.into());
        }
    }
    Ok(taken)
}

/// Takes a body of at most so many bytes; nothing where it is longer, late or cut short.
pub(super) async fn take_whole(mut from: Incoming, until: Instant, most: usize) -> Option<Vec<u8>> {
    let mut taken = Vec::new();
    while let Some(frame) = next_frame(&mut from, until).await.ok()? {
        let bytes = frame.into_data().unwrap_or_default();
        if taken.len() + bytes.len() > most {
            return None;
        }
        taken.extend_from_slice(&bytes);
    }
    Some(taken)
}
