//! A message sent to a web server by HTTP POST (RFC 9110, section 9.3.3), within a time, on a connection of its own.

use std::fmt;
use std::time::{Duration, Instant};

use plumb_wire::http_head::{Head, MAX_HEAD_BYTES};
use plumb_wire::url::{Scheme, Url};

use crate::deadline::Connection;
use crate::root_store::Trust;

/// Where messages are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    url: Url,
}

impl Post {
    /// To that URL, http or https.
    ///
    /// # Errors
    /// When it is no such URL: why, in words.
    pub fn to(url: &str) -> Result<Self, String> {
        let url = url.parse::<Url>().map_err(|error| error.to_string())?;
        Ok(Self { url })
    }

    /// Whether it is sent by TLS.
    pub fn is_https(&self) -> bool {
        self.url.origin.scheme == Scheme::Https
    }

    /// Sends JSON, over TLS to whom `trust` believes. It is done where a status of 2xx comes back; what is said beyond that
    /// is not read. Looking up the name takes what the resolver takes.
    ///
    /// # Errors
    /// When that does not happen within `timeout`: why, in words.
    pub fn send(&self, json: &str, trust: Option<&Trust>, timeout: Duration) -> Result<(), String> {
        let fields = [("Content-Type", "application/json")];
        let answer = self.exchange(&fields, json.as_bytes(), trust, timeout)?;
        match answer.head.status {
            200..=299 => Ok(()),
            status => Err(format!("{} answers {status}", self.url.origin)),
        }
    }

    /// Sends any body with these fields, beside the ones that every request has, and returns what is answered.
    ///
    /// # Errors
    /// When nothing is answered within `timeout`: why, in words.
    pub fn exchange(
        &self,
        fields: &[(&str, &str)],
        body: &[u8],
        trust: Option<&Trust>,
        timeout: Duration,
    ) -> Result<Answer, String> {
        let origin = &self.url.origin;
        let mut request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: plumb/{}\r\nContent-Length: {}\r\nAccept: */*\r\nConnection: close\r\n",
            self.url.target,
            origin.authority(),
            env!("CARGO_PKG_VERSION"),
            body.len()
        );
        for (name, value) in fields {
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
        let mut connection = Connection::to(&origin.host, origin.port, Instant::now() + timeout)?;
        match (self.is_https(), trust) {
            (false, _) => {}
            (true, Some(trust)) => connection.begin_tls(&origin.host, trust)?,
            (true, None) => return Err("no server is believed over TLS".to_owned()),
        }
        connection.send(&[request.as_bytes(), body].concat())?;
        answer(&mut connection)
    }
}

impl fmt::Display for Post {
    /// Scheme, host and port: what else a URL has may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.origin.fmt(f)
    }
}

/// What a server answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub head: Head,
    /// The first line of the body, shortened, where the status is none of success.
    pub words: String,
}

/// Of a body so many bytes are read: a sentence that says what is wrong.
const MOST_WORDS: usize = 1024;

/// The same as people are shown it, in characters.
const MOST_SHOWN: usize = 200;

/// Reads an answer. Its head ends with an empty line, with the connection, or with the deadline.
fn answer(connection: &mut Connection) -> Result<Answer, String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 2048]);
    let end_of = |bytes: &[u8]| bytes.windows(4).position(|end| end == b"\r\n\r\n");
    while end_of(&bytes).is_none() && bytes.len() <= MAX_HEAD_BYTES {
        match connection.receive(&mut buffer)? {
            0 => break,
            count => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
    let head = Head::parse(&bytes).ok_or("what came back is not HTTP/1")?;
    let mut words = String::new();
    if let (false, Some(end)) = ((200..=299).contains(&head.status), end_of(&bytes)) {
        let mut body = bytes.split_off(end + 4);
        let length = head
            .field("content-length")
            .and_then(|text| text.parse().ok());
        let length: usize = length.unwrap_or(MOST_WORDS);
        while body.len() < length.min(MOST_WORDS) {
            // The status counts, whatever becomes of its words.
            match connection.receive(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => body.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
        let text = String::from_utf8_lossy(&body);
        let mut lines = text.lines();
        if head.field("transfer-encoding").is_some() {
            // The length of the first chunk.
            lines.next();
        }
        let line = lines.next().unwrap_or_default().trim();
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        words = line.chars().take(MOST_SHOWN).map(clean).collect();
    }
    Ok(Answer { head, words })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What a server that answers so is sent, and what the sender makes of it.
    fn sent(answer: &'static str) -> (String, Result<(), String>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut seen, mut buffer) = (Vec::new(), [0; 512]);
            while !seen.ends_with(b"}") {
                let count = stream.read(&mut buffer).unwrap();
                seen.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(seen).unwrap()
        });
        let post = Post::to(&format!("http://127.0.0.1:{port}/hook?a=b")).unwrap();
        let done = post.send("{\"a\":1}", None, Duration::from_secs(5));
        (server.join().unwrap(), done)
    }

    #[test]
    fn a_message_is_sent_and_its_status_counts() {
        let (seen, done) = sent("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(done, Ok(()));
        assert!(
            seen.starts_with("POST /hook?a=b HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{seen}"
        );
        assert!(
            seen.contains("\r\nContent-Length: 7\r\n") && seen.ends_with("\r\n\r\n{\"a\":1}"),
            "{seen}"
        );
        let (_, done) = sent("HTTP/1.1 503 Busy\r\n\r\n");
        assert!(
            done.clone().unwrap_err().ends_with("answers 503"),
            "{done:?}"
        );
        let (_, done) = sent("HTTP/1.1 400 No\r\nContent-Length: 9\r\n\r\nno\x1b way\n.");
        assert!(done.unwrap_err().ends_with("answers 400"));
        let (_, done) = sent("hello");
        assert_eq!(done, Err("what came back is not HTTP/1".to_owned()));
    }

    #[test]
    fn nobody_there_is_said_in_time() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let post = Post::to(&format!("http://127.0.0.1:{port}/")).unwrap();
        // It accepts, and says nothing.
        let begun = Instant::now();
        assert!(post.send("{}", None, Duration::from_millis(200)).is_err());
        assert!(begun.elapsed() < Duration::from_secs(30));
        drop(listener);
        let refused = post.send("{}", None, Duration::from_secs(5)).unwrap_err();
        assert!(
            refused.starts_with("no connection to 127.0.0.1:"),
            "{refused}"
        );
        assert!(Post::to("ftp://example.net/").is_err());
    }

    /// What a server with a certificate that signed itself is sent by those who believe so.
    fn sent_by_tls(trust: impl FnOnce(Trust) -> Trust) -> (Option<String>, Result<(), String>) {
        let (config, own) = crate::mail::tests::certified("127.0.0.1");
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let session = rustls::ServerConnection::new(config).unwrap();
            let mut tls = rustls::StreamOwned::new(session, stream);
            let (mut seen, mut buffer) = (Vec::new(), [0; 512]);
            while !seen.ends_with(b"}") {
                // Who does not believe it, sends nothing.
                let count = tls.read(&mut buffer).ok().filter(|count| *count > 0)?;
                seen.extend_from_slice(&buffer[..count]);
            }
            tls.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            String::from_utf8(seen).ok()
        });
        let post = Post::to(&format!("https://127.0.0.1:{port}/hook")).unwrap();
        let done = post.send("{\"a\":1}", Some(&trust(own)), Duration::from_secs(5));
        (server.join().unwrap(), done)
    }

    #[test]
    fn a_certificate_is_checked_before_anything_is_sent() {
        let (_, other) = crate::mail::tests::certified("127.0.0.1");
        let (seen, done) = sent_by_tls(|_| other);
        let why = done.unwrap_err();
        assert!(why.contains("the certificate is not believed"), "{why}");
        assert!(
            why.contains("ca = \"/FILE\" names who may sign it"),
            "{why}"
        );
        assert_eq!(seen, None);
        for believed in [|own| own, |_| Trust::anyone().unwrap()] {
            let (seen, done) = sent_by_tls(believed);
            assert_eq!(done, Ok(()));
            assert!(seen.unwrap().starts_with("POST /hook HTTP/1.1\r\n"));
        }
    }
}
