//! A document of a web server by HTTP GET (RFC 9110, section 9.3.1), within a time and a size, on a connection of its own.

use std::time::{Duration, Instant};

use plumb_wire::http_head::{Head, MAX_HEAD_BYTES};
use plumb_wire::url::{Scheme, Url};

use crate::deadline::Connection;
use crate::root_store::Trust;

/// What is asked for, and how much of it is taken.
#[derive(Debug, Clone, Copy)]
pub struct Get<'a> {
    pub url: &'a Url,
    /// Fields beside the ones that every request has.
    pub fields: &'a [(&'a str, &'a str)],
    /// Whose certificates HTTPS believes.
    pub trust: Option<&'a Trust>,
    pub timeout: Duration,
    /// The longest body, in bytes.
    pub most_bytes: usize,
}

/// What a server answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Get<'_> {
    /// Asks once. No redirection is followed, and a body in chunks is not taken: HTTP/1.0 has none (RFC 9112, section 7.1).
    ///
    /// # Errors
    /// When no whole answer is there within the time and the size: why, in words.
    pub fn fetch(&self) -> Result<Document, String> {
        let origin = &self.url.origin;
        let mut request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: plumb/{}\r\nAccept: */*\r\nConnection: close\r\n",
            self.url.target,
            origin.authority(),
            env!("CARGO_PKG_VERSION"),
        );
        for (name, value) in self.fields {
            // The end of a line would begin another field.
            if name.contains(char::is_control) || value.contains(char::is_control) {
                return Err(format!(
                    "the field {} has a control character",
                    name.escape_debug()
                ));
            }
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let deadline = Instant::now() + self.timeout;
        let mut connection = Connection::to(&origin.host, origin.port, deadline)?;
        match (origin.scheme, self.trust) {
            (Scheme::Http, _) => {}
            (Scheme::Https, Some(trust)) => connection.begin_tls(&origin.host, trust)?,
            (Scheme::Https, None) => return Err("no server is believed over TLS".to_owned()),
        }
        connection.send(request.as_bytes())?;
        self.answer(&mut connection)
    }

    fn answer(&self, connection: &mut Connection) -> Result<Document, String> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
        let end = loop {
            let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
            if bytes.len() > MAX_HEAD_BYTES || !more(connection, &mut bytes, &mut buffer)? {
                return Err("what came back is not HTTP/1".to_owned());
            }
        };
        let head = Head::parse(&bytes).ok_or("what came back is not HTTP/1")?;
        if head.field("transfer-encoding").is_some() {
            return Err("it answers in chunks, which HTTP/1.0 has not".to_owned());
        }
        let length = head.field("content-length").map(str::parse::<usize>);
        let length = length
            .transpose()
            .map_err(|_| "the length that it says is no number".to_owned())?;
        let too_long = || format!("it answers more than {} bytes", self.most_bytes);
        if length.is_some_and(|length| length > self.most_bytes) {
            return Err(too_long());
        }
        let mut body = bytes.split_off(end);
        // Without a length the end of the connection is the end of the body.
        while length.is_none_or(|length| body.len() < length) {
            if !more(connection, &mut body, &mut buffer)? {
                break;
            }
            if body.len() > self.most_bytes {
                return Err(too_long());
            }
        }
        match length {
            Some(length) if body.len() < length => {
                return Err("the connection ended within the answer".to_owned());
            }
            Some(length) => body.truncate(length),
            // It may have come with the head.
            None if body.len() > self.most_bytes => return Err(too_long()),
            None => {}
        }
        Ok(Document {
            status: head.status,
            body,
        })
    }
}

/// Adds what came; `false` where the connection ended.
fn more(
    connection: &mut Connection,
    bytes: &mut Vec<u8>,
    buffer: &mut [u8],
) -> Result<bool, String> {
    let count = connection.receive(buffer)?;
    bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What is made of such an answer.
    fn fetched(answer: &'static str) -> Result<Document, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut seen, mut buffer) = (Vec::new(), [0; 512]);
            while !seen.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                seen.extend_from_slice(&buffer[..count]);
            }
            // A client that has read enough goes away.
            let _ = stream.write_all(answer.as_bytes());
            String::from_utf8(seen).unwrap()
        });
        let url = format!("http://127.0.0.1:{port}/a?b").parse().unwrap();
        let get = Get {
            url: &url,
            fields: &[("Authorization", "Bearer k")],
            trust: None,
            timeout: Duration::from_secs(30),
            most_bytes: 20,
        };
        let done = get.fetch();
        let seen = server.join().unwrap();
        assert!(
            seen.starts_with("GET /a?b HTTP/1.0\r\nHost: 127.0.0.1:"),
            "{seen}"
        );
        assert!(seen.contains("\r\nAuthorization: Bearer k\r\n"), "{seen}");
        done
    }

    #[test]
    fn a_document_is_taken_whole_or_not() {
        let whole = |status, body: &str| {
            let body = body.as_bytes().to_vec();
            Ok(Document { status, body })
        };
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(fetched(ok), whole(200, "abc"));
        assert_eq!(fetched("HTTP/1.0 401 No\r\n\r\nno"), whole(401, "no"));
        for (answer, words) in [
            ("hello", "not HTTP/1"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                "within the answer",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n",
                "more than 20 bytes",
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no number"),
            (
                "HTTP/1.1 200 OK\r\n\r\n123456789012345678901",
                "more than 20 bytes",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na",
                "in chunks",
            ),
        ] {
            let why = fetched(answer).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
