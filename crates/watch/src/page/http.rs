//! The little HTTP/1.1 that the page needs (RFC 9112): GET and HEAD, one request a connection, within bounds.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The head of a request, in bytes.
const MOST_HEAD: usize = 8 * 1024;

/// A request has to be there in full, and its answer taken, within this each.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections at once; more are closed.
const MOST_CONNECTIONS: usize = 32;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The path, without its escapes.
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// Whether the head alone is wanted.
    head: bool,
}

#[cfg(test)]
impl Request {
    /// A request for that path, decoded.
    pub(super) fn asking(path: &str, query: Option<&str>) -> Self {
        Self {
            path: path.to_owned(),
            query: query.map(str::to_owned),
            head: false,
        }
    }
}

/// What is answered to it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    kind: &'static str,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn html(body: String) -> Self {
        Self {
            status: "200 OK",
            kind: "text/html; charset=utf-8",
            body,
        }
    }

    pub(super) fn text(body: String) -> Self {
        Self {
            kind: "text/plain; version=0.0.4; charset=utf-8",
            ..Self::html(body)
        }
    }

    pub(super) fn json(body: String) -> Self {
        Self {
            kind: "application/json",
            ..Self::html(body)
        }
    }

    pub(super) fn not_found() -> Self {
        Self {
            status: "404 Not Found",
            ..Self::text("there is no such page\n".to_owned())
        }
    }

    pub(super) fn failed(why: &str) -> Self {
        Self {
            status: "500 Internal Server Error",
            ..Self::text(format!("{why}\n"))
        }
    }
}

/// Answers connections in threads of their own until the process ends.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> io::Result<()> {
    /// Where connections cannot be accepted, this passes before the next try.
    const PAUSE: Duration = Duration::from_millis(100);
    let (answer, open) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    let accept = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(PAUSE);
                continue;
            };
            if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (answer, counted) = (Arc::clone(&answer), Arc::clone(&open));
            let work = move || {
                // A client that went away is no error of ours.
                let _ = converse(stream, &*answer);
                counted.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new()
                .name("page".into())
                .spawn(work)
                .is_err()
            {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    thread::Builder::new()
        .name("pages".into())
        .spawn(accept)
        .map(drop)
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() <= MOST_HEAD {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = stream.read(&mut piece)?;
        if count == 0 || left.is_zero() {
            return Ok(());
        }
        head.extend(piece.iter().take(count));
    }
    let (answer, bare) = match parse(&head) {
        Ok(request) => (answer(&request), request.head),
        Err(status) => {
            let refused = Answer::text(format!("{status}\n"));
            (Answer { status, ..refused }, false)
        }
    };
    let mut out = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    );
    if !bare {
        out += &answer.body;
    }
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(out.as_bytes())
}

/// Reads the head of a request; the status to answer where it is none.
fn parse(head: &[u8]) -> Result<Request, &'static str> {
    const BAD: &str = "400 Bad Request";
    if head.len() > MOST_HEAD {
        return Err("431 Request Header Fields Too Large");
    }
    let head = std::str::from_utf8(head).map_err(|_| BAD)?;
    let line = head.split("\r\n").next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(asked), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    if !matches!(method, "GET" | "HEAD") {
        return Err("405 Method Not Allowed");
    }
    let (path, query) = match asked.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (asked, None),
    };
    if !path.starts_with('/') {
        return Err(BAD);
    }
    Ok(Request {
        path: decoded(path).ok_or(BAD)?,
        query,
        head: method == "HEAD",
    })
}

/// A path without its escapes (RFC 3986, section 2.1).
fn decoded(path: &str) -> Option<String> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::words::in_path;

    #[test]
    fn takes_what_is_a_request_and_nothing_else() {
        let request = parse(b"GET /target/a%20b?range=1h HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(
            (request.path.as_str(), request.query.as_deref()),
            ("/target/a b", Some("range=1h"))
        );
        assert!(parse(b"HEAD / HTTP/1.1\r\n\r\n").unwrap().head);
        for (asked, status) in [
            ("POST / HTTP/1.1\r\n\r\n", "405"),
            ("GET / HTTP/2\r\n\r\n", "400"),
            ("GET  / HTTP/1.1\r\n\r\n", "400"),
            ("GET x HTTP/1.1\r\n\r\n", "400"),
            ("GET /%f HTTP/1.1\r\n\r\n", "400"),
            ("", "400"),
        ] {
            assert!(
                parse(asked.as_bytes()).unwrap_err().starts_with(status),
                "{asked}"
            );
        }
        assert!(
            parse(&vec![b'a'; MOST_HEAD + 1])
                .unwrap_err()
                .starts_with("431")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"GET /", bytes.as_slice(), b" HTTP/1.1\r\n\r\n"].concat());
        }

        #[test]
        fn names_come_back_from_addresses(name in "\\PC{1,40}") {
            prop_assert_eq!(decoded(&in_path(&name)), Some(name));
        }
    }
}
