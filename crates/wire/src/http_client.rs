//! What a client asks a web server for and what comes of it, in whichever version of HTTP: over [`http1`](crate::http1)
//! one answer after the other, over [`http2`](crate::http2) many at once. Both are state machines: bytes and the end of
//! the connection go in, bytes and events come out; the clock is the caller's.

use crate::hpack::HpackError;
use crate::http_head::Head;
use crate::url::Url;

/// A request for a page or for something on it (GET).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub url: Url,
    /// Whether the body may come compressed with gzip; else it is requested uncompressed.
    pub gzip: bool,
}

impl Request {
    /// Its fields, beside the host that it asks.
    pub fn fields(&self) -> [(&'static str, &'static str); 3] {
        [
            ("user-agent", concat!("plumb/", env!("CARGO_PKG_VERSION"))),
            ("accept", "*/*"),
            (
                "accept-encoding",
                if self.gzip { "gzip" } else { "identity" },
            ),
        ]
    }
}

/// An event of a request, which is identified by its stream on the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first of the answer.
    Began {
        stream: u32,
    },
    Head {
        stream: u32,
        head: Head,
    },
    /// Some of its body.
    Data {
        stream: u32,
        /// Content, without what frames it.
        bytes: Vec<u8>,
    },
    /// All of it was there.
    End {
        stream: u32,
    },
    /// It will not come, or not all of it.
    Failed {
        stream: u32,
        error: HttpError,
        /// Whether the server has not begun with it, so that asking again on another connection is right (RFC 9110,
        /// section 9.2.2; RFC 9113, section 8.7).
        again: bool,
    },
}

/// What a server did against the rules or beyond the bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// It speaks something else.
    #[error("what came is not HTTP/{0}")]
    NotHttp(&'static str),
    /// The head of an answer is too long.
    #[error("the head of the answer is longer than {0} bytes")]
    HeadTooLong(usize),
    /// The length of a body contradicts itself or is no number.
    #[error("the length of the body is not readable")]
    Length,
    /// A chunked body cannot be read.
    #[error("the chunks of the body are not readable")]
    Chunk,
    /// Interim answers (1xx) do not end.
    #[error("more than {0} interim answers (1xx)")]
    Interim(u32),
    /// Bytes came that were not requested.
    #[error("bytes came that answer no request")]
    Unsolicited,
    /// The connection or the stream ended before the answer did.
    #[error("the connection ended before the answer was complete")]
    CutShort,
    /// The frames of HTTP/2 violate the protocol.
    #[error("HTTP/2 was violated: {0}")]
    Protocol(&'static str),
    /// The fields of HTTP/2 cannot be read.
    #[error("the fields of the answer cannot be read: {0}")]
    Hpack(#[from] HpackError),
    /// Frames come that carry nothing.
    #[error("a flood of HTTP/2 frames that carry nothing")]
    Flood,
    /// The server gave a stream up.
    #[error("the server reset the stream (HTTP/2 error {0})")]
    Reset(u32),
    /// The server takes no more requests.
    #[error("the server closes the connection (HTTP/2 GOAWAY, error {0})")]
    GoAway(u32),
}
