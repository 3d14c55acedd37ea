//! A web server for tests, over HTTP/1.1 and HTTP/2, without sockets: bytes in, bytes out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use plumb_model::results::page_load::HttpVersion;
use plumb_wire::hpack::{self, Decoder};
use plumb_wire::http2::frame::{
    self, HEADER_BYTES, Header, MAX_PAYLOAD_BYTES, PREFACE, flag, kind,
};

/// What a server has.
#[derive(Debug, Clone, Default)]
pub(super) struct Site {
    pages: BTreeMap<String, Page>,
    /// Answers on one connection of HTTP/1.1 before the server closes it; for ever where there is none.
    pub(super) answers: Option<u64>,
    /// Whether it says before that it will.
    pub(super) silent_close: bool,
}

#[derive(Debug, Clone)]
struct Page {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Site {
    /// A page or an object of it.
    pub(super) fn with(mut self, path: &str, media: &str, body: impl AsRef<[u8]>) -> Self {
        let page = Page {
            status: 200,
            fields: vec![("content-type".to_owned(), media.to_owned())],
            body: body.as_ref().to_vec(),
        };
        self.pages.insert(path.to_owned(), page);
        self
    }

    /// The same with a field more in the answer of a page that it has.
    pub(super) fn with_field(mut self, path: &str, name: &str, value: &str) -> Self {
        if let Some(page) = self.pages.get_mut(path) {
            page.fields.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Objects of so many bytes.
    pub(super) fn with_images(self, count: usize, bytes: usize) -> Self {
        let paths = (0..count).map(|number| format!("/{number}.png"));
        paths.fold(self, |site, path| {
            site.with(&path, "image/png", vec![b'x'; bytes])
        })
    }

    pub(super) fn with_redirect(mut self, path: &str, status: u16, to: &str) -> Self {
        let page = Page {
            status,
            fields: vec![("location".to_owned(), to.to_owned())],
            body: b"moved".to_vec(),
        };
        self.pages.insert(path.to_owned(), page);
        self
    }

    fn page(&self, path: &str) -> Page {
        let missing = || Page {
            status: 404,
            fields: Vec::new(),
            body: b"no".to_vec(),
        };
        self.pages.get(path).cloned().unwrap_or_else(missing)
    }
}

/// A page that names so many images.
pub(super) fn page_of_images(count: usize) -> String {
    let images = (0..count).map(|number| format!("<img src=/{number}.png>"));
    format!("<!DOCTYPE html><body>{}</body>", images.collect::<String>())
}

/// The server's end of a connection.
pub(super) struct Speaker {
    site: Site,
    version: HttpVersion,
    input: Vec<u8>,
    greeted: bool,
    decoder: Decoder,
    answers: u64,
    /// It has closed the connection.
    pub(super) closed: bool,
}

impl Speaker {
    pub(super) fn new(site: Site, version: HttpVersion) -> Self {
        Self {
            site,
            version,
            input: Vec::new(),
            greeted: false,
            decoder: Decoder::new(4096, 1 << 16),
            answers: 0,
            closed: false,
        }
    }

    /// What it answers to these bytes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        match self.version {
            HttpVersion::Http1 => self.receive_text(),
            HttpVersion::Http2 => self.receive_frames(),
        }
    }

    fn receive_text(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(end) = self.input.windows(4).position(|w| w == b"\r\n\r\n") {
            let head: Vec<u8> = self.input.drain(..end + 4).collect();
            let head = String::from_utf8(head).unwrap();
            if self.site.answers.is_some_and(|most| self.answers >= most) {
                self.closed = true;
                return out;
            }
            self.answers += 1;
            let page = self.site.page(head.split(' ').nth(1).unwrap());
            let mut text = format!(
                "HTTP/1.1 {} x\r\ncontent-length: {}\r\n",
                page.status,
                page.body.len()
            );
            for (name, value) in &page.fields {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            if self.site.answers == Some(self.answers) && !self.site.silent_close {
                text.push_str("connection: close\r\n");
                self.closed = true;
            }
            out.extend([text.as_bytes(), b"\r\n", &page.body].concat());
        }
        out
    }

    fn receive_frames(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.greeted && self.input.len() >= PREFACE.len() {
            assert!(self.input.starts_with(PREFACE));
            self.input.drain(..PREFACE.len());
            self.greeted = true;
            frame::write(&mut out, kind::SETTINGS, 0, 0, &[]);
        }
        while self.greeted
            && let Some((header, rest)) = self.input.split_first_chunk::<HEADER_BYTES>()
        {
            let header = Header::parse(header);
            let Some((payload, _)) = rest.split_at_checked(header.length) else {
                break;
            };
            let payload = payload.to_vec();
            self.input.drain(..HEADER_BYTES + header.length);
            if header.kind == kind::HEADERS {
                self.answer(header.stream, &payload, &mut out);
            }
        }
        out
    }

    fn answer(&mut self, stream: u32, block: &[u8], out: &mut Vec<u8>) {
        let fields = self.decoder.decode(block).unwrap();
        let path = fields.iter().find(|(name, _)| name == b":path").unwrap();
        let page = self.site.page(std::str::from_utf8(&path.1).unwrap());
        let status = page.status.to_string();
        let fields = page.fields.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let block = hpack::encode([(":status", status.as_str())].into_iter().chain(fields));
        frame::write(out, kind::HEADERS, flag::END_HEADERS, stream, &block);
        // It ignores flow control: the client's windows are larger than what tests ask for at once.
        let mut chunks = page.body.chunks(MAX_PAYLOAD_BYTES).peekable();
        if page.body.is_empty() {
            frame::write(out, kind::DATA, flag::END_STREAM, stream, &[]);
        }
        while let Some(chunk) = chunks.next() {
            let last = chunks.peek().is_none();
            let flags = if last { flag::END_STREAM } else { 0 };
            frame::write(out, kind::DATA, flags, stream, chunk);
        }
    }
}
