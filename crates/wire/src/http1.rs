//! HTTP/1.1 at the client (RFC 9112): one request after the other on a connection, without pipelining, and what answers
//! them: heads within bounds, bodies of a known length, in chunks, or up to the connection's end.

use crate::http_client::{Event, HttpError, Request};
use crate::http_head::{Head, MAX_HEAD_BYTES};
use crate::url::Url;

/// Interim answers before the final one: a server sends one or two (100, 103).
const MAX_INTERIM: u32 = 8;

/// The line before a chunk in bytes: sixteen digits at most, and extensions, of which none is in use.
const MAX_CHUNK_LINE_BYTES: usize = 256;

/// Fields behind the last chunk: they are as good as never used.
const MAX_TRAILERS: u32 = 64;

#[derive(Debug, Default)]
pub struct Client {
    state: State,
    /// What has come of a head, a chunk's line, or the trailer.
    line: Vec<u8>,
    out: Vec<u8>,
    /// The number of the latest request.
    stream: u32,
    /// Of the latest answer: whether something has come, and how many interim ones before it.
    began: bool,
    interim: u32,
    /// Fields behind its chunks.
    trailers: u32,
    /// Whether the connection can be used again after this answer.
    reusable: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Ready for a request.
    #[default]
    Idle,
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    ChunkLine,
    /// So many bytes of the chunk are to come.
    Chunk(u64),
    /// The line's end behind a chunk.
    ChunkEnd,
    Trailer,
    /// The body ends with the connection.
    UntilEnd,
    /// The connection is of no more use.
    Closed,
}

impl Client {
    /// Whether it takes a request now.
    pub fn can_request(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether it will take no request any more.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Asks; the stream by which events name this request, or `None` while it takes none.
    pub fn request(&mut self, request: &Request) -> Option<u32> {
        self.begin("GET", &request.url, &request.fields(), b"")
    }

    /// Asks with a body, as SOAP does; `fields` are beside the host and the body's length.
    pub fn post(&mut self, url: &Url, fields: &[(&str, &str)], body: &[u8]) -> Option<u32> {
        let length = body.len().to_string();
        let fields = [fields, &[("Content-Length", length.as_str())]].concat();
        self.begin("POST", url, &fields, body)
    }

    fn begin(
        &mut self,
        method: &str,
        url: &Url,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Option<u32> {
        if !self.can_request() {
            return None;
        }
        let authority = url.origin.authority();
        let mut text = format!("{method} {} HTTP/1.1\r\nhost: {authority}\r\n", url.target);
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(body);
        self.line.clear();
        self.stream = self.stream.wrapping_add(1);
        (self.state, self.began) = (State::Head, false);
        (self.interim, self.trailers) = (0, 0);
        Some(self.stream)
    }

    /// What is to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes what came.
    ///
    /// # Errors
    /// When the server cannot be understood; the connection is of no use then.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), HttpError> {
        let result = self.read(bytes, events);
        if result.is_err() {
            self.state = State::Closed;
        }
        result
    }

    /// The connection has ended.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        let stream = self.stream;
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Idle | State::Closed => {}
            State::UntilEnd => events.push(Event::End { stream }),
            _ => events.push(Event::Failed {
                stream,
                error: HttpError::CutShort,
                again: !self.began,
            }),
        }
    }

    fn read(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), HttpError> {
        let stream = self.stream;
        while !bytes.is_empty() {
            match self.state {
                State::Idle | State::Closed => return Err(HttpError::Unsolicited),
                State::Head => {
                    if !self.began {
                        self.began = true;
                        events.push(Event::Began { stream });
                    }
                    let head = self.until(b"\r\n\r\n", MAX_HEAD_BYTES, &mut bytes);
                    match head.map_err(|()| self.not_head())? {
                        Some(head) => self.head(&head, events)?,
                        // No server of HTTP/1 begins otherwise (RFC 9112, section 4).
                        None if !looks_like_http(&self.line) => {
                            return Err(HttpError::NotHttp("1.1"));
                        }
                        None => {}
                    }
                }
                State::Length(left) => {
                    let left = left - self.body(left, &mut bytes, events);
                    match left {
                        0 => self.answered(events),
                        _ => self.state = State::Length(left),
                    }
                }
                State::UntilEnd => {
                    self.body(u64::MAX, &mut bytes, events);
                }
                State::ChunkLine => {
                    let line = self.until(b"\r\n", MAX_CHUNK_LINE_BYTES, &mut bytes);
                    if let Some(line) = line.map_err(|()| HttpError::Chunk)? {
                        self.state = match chunk_bytes(&line).ok_or(HttpError::Chunk)? {
                            0 => State::Trailer,
                            size => State::Chunk(size),
                        };
                    }
                }
                State::Chunk(left) => {
                    let left = left - self.body(left, &mut bytes, events);
                    self.state = match left {
                        0 => State::ChunkEnd,
                        _ => State::Chunk(left),
                    };
                }
                State::ChunkEnd => {
                    let line = self.until(b"\r\n", 2, &mut bytes);
                    match line.map_err(|()| HttpError::Chunk)? {
                        Some(line) if line == b"\r\n" => self.state = State::ChunkLine,
                        None if self.line == b"\r" => {}
                        _ => return Err(HttpError::Chunk),
                    }
                }
                State::Trailer => {
                    let line = self.until(b"\r\n", MAX_HEAD_BYTES, &mut bytes);
                    let too_long = |()| HttpError::HeadTooLong(MAX_HEAD_BYTES);
                    match line.map_err(too_long)? {
                        Some(line) if line == b"\r\n" => self.answered(events),
                        Some(_) if self.trailers == MAX_TRAILERS => return Err(HttpError::Chunk),
                        Some(_) => self.trailers += 1,
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// What has come up to that ending, ending included, once it has come; an error where that is longer than allowed.
    fn until(
        &mut self,
        ending: &[u8],
        most_bytes: usize,
        bytes: &mut &[u8],
    ) -> Result<Option<Vec<u8>>, ()> {
        let held = self.line.len();
        // What is longer than allowed need not be looked at.
        let (look, _) = bytes.split_at(bytes.len().min((most_bytes + 1).saturating_sub(held)));
        self.line.extend_from_slice(look);
        // The ending may have begun in what was held.
        let from = held.saturating_sub(ending.len() - 1);
        let found = self.line.get(from..).and_then(|tail| {
            tail.windows(ending.len())
                .position(|window| window == ending)
        });
        match found {
            Some(at) => {
                let end = from + at + ending.len();
                *bytes = bytes.get(end - held..).unwrap_or_default();
                self.line.truncate(end);
                Ok(Some(std::mem::take(&mut self.line)))
            }
            None if self.line.len() > most_bytes => Err(()),
            None => {
                *bytes = &[];
                Ok(None)
            }
        }
    }

    fn not_head(&self) -> HttpError {
        match looks_like_http(&self.line) {
            true => HttpError::HeadTooLong(MAX_HEAD_BYTES),
            false => HttpError::NotHttp("1.1"),
        }
    }

    fn head(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), HttpError> {
        let stream = self.stream;
        let head = Head::parse(bytes).ok_or(HttpError::NotHttp("1.1"))?;
        match head.status {
            // Another protocol, which was not requested.
            101 => return Err(HttpError::Unsolicited),
            100..=199 => {
                self.interim += 1;
                return match self.interim > MAX_INTERIM {
                    true => Err(HttpError::Interim(MAX_INTERIM)),
                    false => Ok(()),
                };
            }
            _ => {}
        }
        let listed = |name: &str, token: &str| {
            values(&head, name).any(|value| value.eq_ignore_ascii_case(token))
        };
        self.reusable = match bytes.starts_with(b"HTTP/1.0") {
            true => listed("connection", "keep-alive"),
            false => !listed("connection", "close"),
        };
        // RFC 9112, section 6.3.
        let coded = head.field("transfer-encoding").is_some();
        let chunked = values(&head, "transfer-encoding")
            .last()
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length = length(&head)?;
        self.reusable &= !(coded && length.is_some());
        let empty = matches!(head.status, 204 | 304);
        events.push(Event::Head { stream, head });
        self.state = match (empty, coded, length) {
            (true, ..) | (_, false, Some(0)) => {
                self.answered(events);
                return Ok(());
            }
            (_, true, _) if chunked => State::ChunkLine,
            (_, false, Some(length)) => State::Length(length),
            _ => State::UntilEnd,
        };
        Ok(())
    }

    /// Hands on up to `most` bytes of the body; how many these are.
    fn body(&self, most: u64, bytes: &mut &[u8], events: &mut Vec<Event>) -> u64 {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (body, rest) = bytes.split_at(bytes.len().min(most));
        *bytes = rest;
        events.push(Event::Data {
            stream: self.stream,
            bytes: body.to_vec(),
        });
        body.len() as u64
    }

    fn answered(&mut self, events: &mut Vec<Event>) {
        let stream = self.stream;
        events.push(Event::End { stream });
        self.state = match self.reusable {
            true => State::Idle,
            false => State::Closed,
        };
    }
}

/// Whether a head may begin so.
fn looks_like_http(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .zip(b"HTTP/1.")
        .all(|(came, wanted)| came == wanted)
}

/// The members of a field that is a list (RFC 9110, section 5.6.1), whichever lines it is spread over.
fn values<'a>(head: &'a Head, name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = head.fields.iter().filter(move |(field, _)| field == name);
    named.flat_map(|(_, value)| value.split(',').map(str::trim))
}

/// The length of the body, where the head has one; the same one several times is one (RFC 9110, section 8.6).
fn length(head: &Head) -> Result<Option<u64>, HttpError> {
    let mut length = None;
    for value in values(head, "content-length") {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let this: u64 = digits
            .then(|| value.parse().ok())
            .flatten()
            .ok_or(HttpError::Length)?;
        if length.is_some_and(|length| length != this) {
            return Err(HttpError::Length);
        }
        length = Some(this);
    }
    Ok(length)
}

/// The size in the line before a chunk.
fn chunk_bytes(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let digits = text.split(';').next()?.trim_end();
    let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn request(target: &str) -> Request {
        Request {
            url: format!("http://example.net:8080{target}").parse().unwrap(),
            gzip: false,
        }
    }

    /// What comes of an answer that arrives in pieces of that size, and the body.
    fn answered(bytes: &[u8], piece: usize) -> (Client, Result<Vec<Event>, HttpError>, Vec<u8>) {
        let mut client = Client::default();
        client.request(&request("/"));
        let mut events = Vec::new();
        let mut error = None;
        for piece in bytes.chunks(piece) {
            if let Err(why) = client.receive(piece, &mut events) {
                error = Some(why);
                break;
            }
        }
        let mut body = Vec::new();
        events.retain(|event| match event {
            Event::Data { bytes, .. } => {
                body.extend_from_slice(bytes);
                false
            }
            _ => true,
        });
        (client, error.map_or(Ok(events), Err), body)
    }

    #[test]
    fn a_request_is_one_message() {
        let mut client = Client::default();
        assert_eq!(client.request(&request("/a?b")), Some(1));
        let text = String::from_utf8(client.take_output()).unwrap();
        assert!(
            text.starts_with("GET /a?b HTTP/1.1\r\nhost: example.net:8080\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\naccept-encoding: identity\r\n\r\n"));
        assert_eq!(
            (client.request(&request("/")), client.can_request()),
            (None, false)
        );
    }

    #[test]
    fn a_body_follows_its_length() {
        let mut client = Client::default();
        let url = request("/ctl").url;
        assert_eq!(
            client.post(&url, &[("SOAPACTION", "\"x\"")], b"<a/>"),
            Some(1)
        );
        assert_eq!(
            String::from_utf8_lossy(&client.take_output()),
            "POST /ctl HTTP/1.1\r\nhost: example.net:8080\r\nSOAPACTION: \"x\"\r\nContent-Length: 4\r\n\r\n<a/>"
        );
        assert_eq!(client.post(&url, &[], b""), None, "one after the other");
    }

    #[test]
    fn bodies_end_as_their_heads_say() {
        for (answer, body, reusable) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                "hello",
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
                "hello",
                true,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true),
            ("HTTP/1.1 204 No\r\n\r\n", "", true),
            ("HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n", "", true),
            (
                "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na",
                "a",
                false,
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "a", false),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
                "a",
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n there\r\n0\r\nT: u\r\n\r\n",
                "hello there",
                true,
            ),
            // A proxy may have read the other length: no second answer is believed (RFC 9112, section 6.3).
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\na\r\n0\r\n\r\n",
                "a",
                false,
            ),
            (
                "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
                "a",
                true,
            ),
        ] {
            for piece in [1, 3, 1000] {
                let (mut client, events, got) = answered(answer.as_bytes(), piece);
                let events = events.unwrap();
                assert_eq!(String::from_utf8(got).unwrap(), body, "{answer}");
                assert_eq!(events[0], Event::Began { stream: 1 });
                assert_eq!(events.last(), Some(&Event::End { stream: 1 }), "{answer}");
                assert_eq!(client.can_request(), reusable, "{answer}");
                assert_eq!(client.is_closed(), !reusable);
                let mut after = Vec::new();
                client.end(&mut after);
                assert_eq!(after, []);
            }
        }
    }

    #[test]
    fn the_end_of_the_connection_ends_what_has_no_length_and_cuts_what_has() {
        let (mut client, events, body) = answered(b"HTTP/1.1 200 OK\r\n\r\nabc", 2);
        assert!(events.is_ok() && body == b"abc");
        let mut after = Vec::new();
        client.end(&mut after);
        assert_eq!(after, [Event::End { stream: 1 }]);
        for (answer, again) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", false),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                false,
            ),
            ("H", false),
            ("", true),
        ] {
            let (mut client, _, _) = answered(answer.as_bytes(), 1000);
            let mut after = Vec::new();
            client.end(&mut after);
            let failed = Event::Failed {
                stream: 1,
                error: HttpError::CutShort,
                again,
            };
            assert_eq!(after, [failed], "{answer}");
        }
    }

    #[test]
    fn what_is_against_the_rules_is_named() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(MAX_HEAD_BYTES));
        let interim = "HTTP/1.1 100 Go\r\n\r\n".repeat(9);
        for (answer, error) in [
            ("SSH-2.0-OpenSSH\r\n", HttpError::NotHttp("1.1")),
            ("HTTP/1.1 abc\r\n\r\n", HttpError::NotHttp("1.1")),
            (long.as_str(), HttpError::HeadTooLong(MAX_HEAD_BYTES)),
            (interim.as_str(), HttpError::Interim(8)),
            ("HTTP/1.1 101 Other\r\n\r\n", HttpError::Unsolicited),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                HttpError::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                HttpError::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                HttpError::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                HttpError::Chunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                HttpError::Chunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
                HttpError::Chunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
                HttpError::Unsolicited,
            ),
        ] {
            for piece in [1, 7, 100_000] {
                let (client, events, _) = answered(answer.as_bytes(), piece);
                assert_eq!(events, Err(error.clone()), "{answer}");
                assert!(client.is_closed());
            }
        }
        let line = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}",
            "a".repeat(MAX_CHUNK_LINE_BYTES)
        );
        assert_eq!(answered(line.as_bytes(), 50).1, Err(HttpError::Chunk));
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes: Vec<u8>, piece in 1..9_usize) {
            for before in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let answer = [before.as_bytes(), &bytes].concat();
                let (client, _, body) = answered(&answer, piece);
                prop_assert!(body.len() <= bytes.len());
                prop_assert!(client.line.len() <= MAX_HEAD_BYTES + 1);
            }
        }

        #[test]
        fn pieces_make_no_difference(sizes in proptest::collection::vec(0..300_usize, 0..6), piece in 1..40_usize) {
            let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for size in sizes.iter().filter(|size| **size > 0) {
                answer.extend(format!("{size:x}\r\n{}\r\n", "z".repeat(*size)).bytes());
            }
            answer.extend(b"0\r\n\r\n");
            let (client, events, body) = answered(&answer, piece);
            let events = events.unwrap();
            prop_assert_eq!(events.last(), Some(&Event::End { stream: 1 }));
            prop_assert_eq!(body.len(), sizes.iter().sum::<usize>());
            prop_assert!(client.can_request());
        }
    }
}
