//! HTTP/2 at the client (RFC 9113): many requests at once on one connection, and their answers.
//!
//! It never sends a body, takes no push, and leaves the order of answers to the server. What a server sends is bounded in
//! every respect: the length of frames, the fields of an answer compressed and not, the frames that these are spread
//! over, the frames that carry nothing, and the acknowledgements of these that the server does not read.

pub mod frame;

use std::collections::BTreeMap;

use crate::hpack::{self, Decoder, Field};
use crate::http_client::{Event, HttpError, Request};
use crate::http_head::Head;
use frame::{HEADER_BYTES, Header, MAX_PAYLOAD_BYTES, PREFACE, flag, kind, setting};

/// The dynamic table of the server's fields in bytes: SETTINGS_HEADER_TABLE_SIZE's first value (RFC 9113, section 6.5.2).
const TABLE_BYTES: usize = 4096;

/// Fields of one answer, as section 6.5.2 counts them: four times what is taken of HTTP/1.1, since each field counts 32
/// bytes more.
const MAX_LIST_BYTES: usize = 64 * 1024;

/// The same fields as encoded in frames: an answer within [`MAX_LIST_BYTES`] is within this bound too.
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// Frames of one answer's fields: five of full size would do, and some servers send smaller ones.
const MAX_CONTINUATIONS: u32 = 64;

/// Interim answers before the final one, as over HTTP/1.1.
const MAX_INTERIM: u32 = 8;

/// Frames one after the other that bring no answer further: a server sends a few settings, pings and window updates for
/// a page.
const MAX_IDLE_FRAMES: u32 = 1000;

/// Acknowledgements that wait to be sent, in bytes: a server that keeps asking for them and reads none is hostile.
const MAX_UNSENT_BYTES: usize = 64 * 1024;

/// Requests at once, where the server does not say (section 6.5.2 recommends that it allows no fewer).
const DEFAULT_STREAMS: u32 = 100;

/// Flow-control windows of a stream and of the connection, in bytes: large enough never to limit a path that is
/// measured. Chromium's are 6 MiB and 15 MiB (net/http/http_network_session.cc, spdy).
const STREAM_WINDOW: u32 = 6 << 20;
/// The window of the connection.
const CONNECTION_WINDOW: u32 = 15 << 20;

/// Every connection begins with that (section 6.9.2).
const FIRST_WINDOW: u32 = 65_535;

/// The largest window (section 6.9.1).
const MAX_WINDOW: u32 = 0x7fff_ffff;

/// RST_STREAM's code for a request that was not looked at (section 7).
const REFUSED_STREAM: u32 = 7;

#[derive(Debug)]
pub struct Client {
    out: Vec<u8>,
    /// The beginning of a frame.
    input: Vec<u8>,
    decoder: Decoder,
    next_stream: u32,
    streams: BTreeMap<u32, Stream>,
    /// How many requests at once the server takes.
    max_streams: u32,
    /// How much the server may still send.
    window: u32,
    /// The fields that are being collected.
    block: Option<Block>,
    /// Frames since the last that brought an answer further.
    idle_frames: u32,
    /// Whether the server's first frame, its settings, has come.
    greeted: bool,
    /// It takes no more requests.
    closed: bool,
}

#[derive(Debug, Default)]
struct Stream {
    began: bool,
    head: bool,
    interim: u32,
    /// How much the server may still send on it.
    window: u32,
    /// The body's length as the head has it, and as it came.
    length: Option<u64>,
    received: u64,
}

#[derive(Debug)]
struct Block {
    stream: u32,
    bytes: Vec<u8>,
    frames: u32,
    ends_stream: bool,
}

impl Default for Client {
    fn default() -> Self {
        let mut out = PREFACE.to_vec();
        let settings = frame::settings(&[
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, MAX_LIST_BYTES as u32),
        ]);
        frame::write(&mut out, kind::SETTINGS, 0, 0, &settings);
        let more = CONNECTION_WINDOW - FIRST_WINDOW;
        frame::write(&mut out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        Self {
            out,
            input: Vec::new(),
            decoder: Decoder::new(TABLE_BYTES, MAX_LIST_BYTES),
            next_stream: 1,
            streams: BTreeMap::new(),
            max_streams: DEFAULT_STREAMS,
            window: CONNECTION_WINDOW,
            block: None,
            idle_frames: 0,
            greeted: false,
            closed: false,
        }
    }
}

impl Client {
    /// Whether it takes a request now.
    pub fn can_request(&self) -> bool {
        let open = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        !self.closed && open < self.max_streams.min(DEFAULT_STREAMS)
    }

    /// Whether it will take no request any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Asks; the stream by which events name this request, or `None` while it takes none.
    pub fn request(&mut self, request: &Request) -> Option<u32> {
        if !self.can_request() {
            return None;
        }
        let stream = self.next_stream;
        let authority = request.url.origin.authority();
        let pseudo = [
            (":method", "GET"),
            (":scheme", request.url.origin.scheme.name()),
            (":authority", &authority),
            (":path", &request.url.target),
        ];
        let block = hpack::encode(pseudo.into_iter().chain(request.fields()));
        // URLs are bounded, so that it is one frame.
        let flags = flag::END_HEADERS | flag::END_STREAM;
        frame::write(&mut self.out, kind::HEADERS, flags, stream, &block);
        let opened = Stream {
            window: STREAM_WINDOW,
            ..Stream::default()
        };
        self.streams.insert(stream, opened);
        match stream.checked_add(2).filter(|next| *next <= MAX_WINDOW) {
            Some(next) => self.next_stream = next,
            // Numbers of streams are used up (section 5.1.1).
            None => self.closed = true,
        }
        Some(stream)
    }

    /// What is to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes what came.
    ///
    /// # Errors
    /// When the server violates the protocol or a bound; the connection is of no use then.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), HttpError> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        let result = self.frames(&mut rest, events);
        match result {
            Ok(()) => self.input = rest.to_vec(),
            Err(_) => self.closed = true,
        }
        result
    }

    /// The connection has ended, or is given up.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        self.closed = true;
        for (stream, state) in std::mem::take(&mut self.streams) {
            events.push(Event::Failed {
                stream,
                error: HttpError::CutShort,
                again: !state.began,
            });
        }
    }

    fn frames(&mut self, rest: &mut &[u8], events: &mut Vec<Event>) -> Result<(), HttpError> {
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::parse(header);
            // Section 3.4: the server begins with its settings.
            let settings = header.kind == kind::SETTINGS && !header.has(flag::ACK);
            if !self.greeted && !settings {
                return Err(HttpError::NotHttp("2"));
            }
            if header.length > MAX_PAYLOAD_BYTES {
                return Err(HttpError::Protocol("a frame is larger than was allowed"));
            }
            let Some((payload, after)) = after.split_at_checked(header.length) else {
                break;
            };
            *rest = after;
            self.greeted = true;
            self.frame(header, payload, events)?;
            if self.idle_frames > MAX_IDLE_FRAMES || self.out.len() > MAX_UNSENT_BYTES {
                return Err(HttpError::Flood);
            }
        }
        Ok(())
    }

    fn frame(
        &mut self,
        header: Header,
        payload: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), HttpError> {
        // Section 6.10: nothing comes between the frames of an answer's fields.
        if self.block.is_some() != (header.kind == kind::CONTINUATION) {
            return Err(HttpError::Protocol(
                "fields are interrupted or out of place",
            ));
        }
        self.idle_frames += 1;
        match header.kind {
            kind::DATA => self.data(header, payload, events),
            kind::HEADERS => {
                self.known_stream(header.stream)?;
                let mut bytes = frame::unpadded(header, payload)
                    .ok_or(HttpError::Protocol("more padding than payload"))?;
                if header.has(flag::PRIORITY) {
                    bytes = bytes
                        .get(5..)
                        .ok_or(HttpError::Protocol("fields are too short"))?;
                }
                let block = Block {
                    stream: header.stream,
                    bytes: bytes.to_vec(),
                    frames: 0,
                    ends_stream: header.has(flag::END_STREAM),
                };
                if let Some(stream) = self.streams.get_mut(&header.stream)
                    && !stream.began
                {
                    stream.began = true;
                    let stream = header.stream;
                    events.push(Event::Began { stream });
                }
                self.collected(block, header.has(flag::END_HEADERS), events)
            }
            kind::CONTINUATION => {
                let Some(mut block) = self.block.take().filter(|b| b.stream == header.stream)
                else {
                    return Err(HttpError::Protocol("fields continue on another stream"));
                };
                block.bytes.extend_from_slice(payload);
                block.frames += 1;
                if block.frames > MAX_CONTINUATIONS || block.bytes.len() > MAX_BLOCK_BYTES {
                    return Err(HttpError::HeadTooLong(MAX_BLOCK_BYTES));
                }
                self.collected(block, header.has(flag::END_HEADERS), events)
            }
            kind::RST_STREAM => {
                self.known_stream(header.stream)?;
                let code = number(payload)?;
                if let Some(stream) = self.streams.remove(&header.stream) {
                    events.push(Event::Failed {
                        stream: header.stream,
                        error: HttpError::Reset(code),
                        again: code == REFUSED_STREAM && !stream.began,
                    });
                }
                Ok(())
            }
            kind::SETTINGS => self.settings(header, payload),
            kind::PING => {
                if header.stream != 0 || payload.len() != 8 {
                    return Err(HttpError::Protocol("a ping is malformed"));
                }
                if !header.has(flag::ACK) {
                    frame::write(&mut self.out, kind::PING, flag::ACK, 0, payload);
                }
                Ok(())
            }
            kind::GOAWAY => self.go_away(header, payload, events),
            kind::WINDOW_UPDATE => {
                // Nothing is sent that a window would hold back.
                if number(payload)? & MAX_WINDOW == 0 {
                    return Err(HttpError::Protocol("a window grows by nothing"));
                }
                Ok(())
            }
            // It was not allowed (section 8.4).
            kind::PUSH_PROMISE => Err(HttpError::Protocol("the server pushes")),
            // PRIORITY is obsolete; frames of unknown types are ignored (section 4.1).
            _ => Ok(()),
        }
    }

    /// Frames that answer come on a stream that was opened.
    fn known_stream(&self, stream: u32) -> Result<(), HttpError> {
        match stream % 2 == 1 && stream < self.next_stream {
            true => Ok(()),
            false => Err(HttpError::Protocol(
                "a frame on a stream that was not opened",
            )),
        }
    }

    fn data(
        &mut self,
        header: Header,
        payload: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), HttpError> {
        self.known_stream(header.stream)?;
        let body = frame::unpadded(header, payload)
            .ok_or(HttpError::Protocol("more padding than payload"))?;
        // Padding counts (section 6.9.1).
        let length = payload.len() as u32;
        // A window is opened again when half of it is used, so that no frame is larger than what is left.
        self.window = self.window.saturating_sub(length);
        if self.window < CONNECTION_WINDOW / 2 {
            let more = CONNECTION_WINDOW - self.window;
            frame::write(
                &mut self.out,
                kind::WINDOW_UPDATE,
                0,
                0,
                &more.to_be_bytes(),
            );
            self.window = CONNECTION_WINDOW;
        }
        // One that is over may still be under way.
        let Some(stream) = self.streams.get_mut(&header.stream) else {
            return Ok(());
        };
        stream.window = stream.window.saturating_sub(length);
        if !stream.head {
            return Err(HttpError::Protocol("a body before its head"));
        }
        stream.received += body.len() as u64;
        if !body.is_empty() {
            self.idle_frames = 0;
            let (stream, bytes) = (header.stream, body.to_vec());
            events.push(Event::Data { stream, bytes });
        }
        if header.has(flag::END_STREAM) {
            self.answered(header.stream, events);
        } else if stream.window < STREAM_WINDOW / 2 {
            let more = STREAM_WINDOW - stream.window;
            stream.window = STREAM_WINDOW;
            let update = kind::WINDOW_UPDATE;
            frame::write(&mut self.out, update, 0, header.stream, &more.to_be_bytes());
        }
        Ok(())
    }

    fn collected(
        &mut self,
        block: Block,
        complete: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), HttpError> {
        if !complete {
            self.block = Some(block);
            return Ok(());
        }
        // It is decoded even where no request waits for it, to keep the table in step (section 4.3).
        let fields = self.decoder.decode(&block.bytes)?;
        let Some(stream) = self.streams.get_mut(&block.stream) else {
            return Ok(());
        };
        self.idle_frames = 0;
        if stream.head {
            // Fields behind the body, which they end (section 8.1).
            return match block.ends_stream {
                true => {
                    self.answered(block.stream, events);
                    Ok(())
                }
                false => Err(HttpError::Protocol("a second head")),
            };
        }
        let head = head(fields)?;
        if matches!(head.status, 100..=199) {
            stream.interim += 1;
            return match (stream.interim > MAX_INTERIM, block.ends_stream) {
                (true, _) => Err(HttpError::Interim(MAX_INTERIM)),
                (_, true) => Err(HttpError::Protocol("an interim answer ends the stream")),
                _ => Ok(()),
            };
        }
        stream.head = true;
        stream.length = head.field("content-length").and_then(|v| v.parse().ok());
        // Without a body the length belongs to another answer (RFC 9110, section 8.6).
        if matches!(head.status, 204 | 304) {
            stream.length = None;
        }
        let stream = block.stream;
        events.push(Event::Head { stream, head });
        if block.ends_stream {
            self.answered(stream, events);
        }
        Ok(())
    }

    fn answered(&mut self, number: u32, events: &mut Vec<Event>) {
        let Some(stream) = self.streams.remove(&number) else {
            return;
        };
        // Section 8.1.1.
        let whole = stream.length.is_none_or(|length| length == stream.received);
        events.push(match whole {
            true => Event::End { stream: number },
            false => Event::Failed {
                stream: number,
                error: HttpError::CutShort,
                again: false,
            },
        });
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), HttpError> {
        let malformed = HttpError::Protocol("settings are malformed");
        if header.stream != 0 || (header.has(flag::ACK) && !payload.is_empty()) {
            return Err(malformed);
        }
        for (parameter, value) in frame::parameters(payload).ok_or(malformed.clone())? {
            match parameter {
                setting::MAX_CONCURRENT_STREAMS => self.max_streams = value,
                // Section 6.5.2; what they set concerns bodies that are not sent.
                setting::ENABLE_PUSH if value != 0 => return Err(malformed),
                setting::INITIAL_WINDOW_SIZE if value > MAX_WINDOW => return Err(malformed),
                setting::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(malformed);
                }
                // Fields are sent without a table, whatever size it may have.
                _ => {}
            }
        }
        if !header.has(flag::ACK) {
            frame::write(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
        }
        Ok(())
    }

    fn go_away(
        &mut self,
        header: Header,
        payload: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), HttpError> {
        let malformed = HttpError::Protocol("GOAWAY is malformed");
        let Some((last, rest)) = payload.split_first_chunk::<4>() else {
            return Err(malformed);
        };
        let Some((code, _)) = rest.split_first_chunk::<4>().filter(|_| header.stream == 0) else {
            return Err(malformed);
        };
        let (last, code) = (
            u32::from_be_bytes(*last) & MAX_WINDOW,
            u32::from_be_bytes(*code),
        );
        self.closed = true;
        // Those above were not looked at (section 6.8).
        for (stream, _) in self.streams.split_off(&last.saturating_add(1)) {
            events.push(Event::Failed {
                stream,
                error: HttpError::GoAway(code),
                again: true,
            });
        }
        Ok(())
    }
}

/// The payload of a frame that is one number.
fn number(payload: &[u8]) -> Result<u32, HttpError> {
    let four = payload.try_into();
    four.map(u32::from_be_bytes)
        .map_err(|_| HttpError::Protocol("a frame of a wrong length"))
}

/// The head that these fields are (section 8.3.2).
fn head(fields: Vec<Field>) -> Result<Head, HttpError> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut head = Head::default();
    for (name, value) in fields {
        match name.as_slice() {
            b":status" => {
                let status = text(value).parse().ok();
                let status = status.filter(|status| (100..1000).contains(status));
                head.status = status.ok_or(HttpError::Protocol("the status is no number"))?;
            }
            // There is no other of an answer.
            [b':', ..] => return Err(HttpError::Protocol("an unknown pseudo-field")),
            _ => head.fields.push((text(name), text(value))),
        }
    }
    match head.status {
        0 => Err(HttpError::Protocol("an answer without a status")),
        _ => Ok(head),
    }
}

#[cfg(test)]
mod tests;
