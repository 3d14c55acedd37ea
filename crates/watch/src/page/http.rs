//! The little HTTP/1.1 that the page needs (RFC 9112): GET and HEAD, and POST of a form, one request a connection, within bounds.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The head of a request, in bytes.
const MOST_HEAD: usize = 8 * 1024;

/// The body of a request, in bytes: a form with a key.
const MOST_BODY: usize = 4096;

/// A request has to be there in full, and its answer taken, within this each.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections at once; more are closed.
const MOST_CONNECTIONS: usize = 32;

/// How something is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    /// The head of an answer to [`Self::Get`] alone.
    Head,
    Post,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The path, without its escapes.
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// The fields of the head, their names in lower case.
    pub(super) fields: Vec<(String, String)>,
    /// Where it comes from.
    pub(super) from: IpAddr,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The value of a field, by its name in lower case; `None` where it is not there once.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// The value of a cookie (RFC 6265, section 4.2).
    pub(super) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.field("cookie")?.split("; ");
        let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The value of a field of a form (`application/x-www-form-urlencoded`).
    pub(super) fn form(&self, name: &str) -> Option<String> {
        let body = std::str::from_utf8(&self.body).ok()?;
        let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        decoded(&value.replace('+', " "))
    }
}

#[cfg(test)]
impl Request {
    /// A request for that path, decoded.
    pub(super) fn asking(path: &str, query: Option<&str>) -> Self {
        Self {
            method: Method::Get,
            path: path.to_owned(),
            query: query.map(str::to_owned),
            fields: Vec::new(),
            from: std::net::Ipv4Addr::LOCALHOST.into(),
            body: Vec::new(),
        }
    }
}

/// What is answered to it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    kind: &'static str,
    /// Fields of its head beside those that all have.
    pub(super) more: Vec<(&'static str, String)>,
    /// Whether it has a form that is sent to this page.
    pub(super) has_form: bool,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn html(body: String) -> Self {
        Self {
            status: "200 OK",
            kind: "text/html; charset=utf-8",
            more: Vec::new(),
            has_form: false,
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

    /// That what is wanted is at that path of this page.
    pub(super) fn elsewhere(path: &str) -> Self {
        Self {
            status: "303 See Other",
            more: vec![("Location", path.to_owned())],
            ..Self::text(String::new())
        }
    }

    pub(super) fn not_so() -> Self {
        Self {
            status: "405 Method Not Allowed",
            ..Self::text("405 Method Not Allowed\n".to_owned())
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
    let from = stream.peer_addr()?.ip();
    let mut read = Vec::new();
    let mut more = |read: &mut Vec<u8>| {
        let mut piece = [0; 1024];
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = stream.read(&mut piece)?;
        read.extend(piece.iter().take(count));
        io::Result::Ok(count > 0 && !left.is_zero())
    };
    let end = loop {
        let end = read.windows(4).position(|end| end == b"\r\n\r\n");
        if end.is_some() || read.len() > MOST_HEAD {
            break end.map_or(read.len(), |end| end + 4);
        }
        if !more(&mut read)? {
            return Ok(());
        }
    };
    let mut body = read.split_off(end);
    let parsed = parse(&read, from).and_then(|request| {
        let length = length_of(&request)?;
        Ok((request, length))
    });
    let (answer, bare) = match parsed {
        Ok((mut request, length)) => {
            while body.len() < length {
                if !more(&mut body)? {
                    return Ok(());
                }
            }
            body.truncate(length);
            request.body = body;
            (answer(&request), request.method == Method::Head)
        }
        Err(status) => {
            let refused = Answer::text(format!("{status}\n"));
            (Answer { status, ..refused }, false)
        }
    };
    let mut out = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action {}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n",
        answer.status,
        answer.kind,
        answer.body.len(),
        match answer.has_form {
            true => "'self'",
            false => "'none'",
        }
    );
    for (name, value) in &answer.more {
        out += &format!("{name}: {value}\r\n");
    }
    out += "\r\n";
    if !bare {
        out += &answer.body;
    }
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(out.as_bytes())
}

const BAD: &str = "400 Bad Request";

/// How long the body of a request is, in bytes; the status to answer where that cannot be.
fn length_of(request: &Request) -> Result<usize, &'static str> {
    if request.method != Method::Post {
        return Ok(0);
    }
    if request.field("transfer-encoding").is_some() {
        return Err(BAD);
    }
    match request.field("content-length").map(str::parse::<usize>) {
        Some(Ok(length)) if length <= MOST_BODY => Ok(length),
        Some(Ok(_)) => Err("413 Content Too Large"),
        Some(Err(_)) => Err(BAD),
        None => Err("411 Length Required"),
    }
}

/// Reads the head of a request; the status to answer where it is none.
fn parse(head: &[u8], from: IpAddr) -> Result<Request, &'static str> {
    if head.len() > MOST_HEAD {
        return Err("431 Request Header Fields Too Large");
    }
    let head = std::str::from_utf8(head).map_err(|_| BAD)?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(asked), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => return Err("405 Method Not Allowed"),
    };
    let (path, query) = match asked.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (asked, None),
    };
    if !path.starts_with('/') {
        return Err(BAD);
    }
    let fields = lines.take_while(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':').ok_or(BAD)?;
        // A blank before the colon may make another field of it on the way (RFC 9112, section 5.1).
        match name.is_empty() || name.contains(char::is_whitespace) {
            true => Err(BAD),
            false => Ok((name.to_ascii_lowercase(), value.trim().to_owned())),
        }
    });
    Ok(Request {
        method,
        path: decoded(path).ok_or(BAD)?,
        query,
        fields: fields.collect::<Result<_, _>>()?,
        from,
        body: Vec::new(),
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
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::page::words::in_path;

    #[test]
    fn a_form_is_read_within_its_length() {
        let request = |fields: &str| {
            let head = format!("POST /login HTTP/1.1\r\n{fields}\r\n\r\n");
            parse(head.as_bytes(), Ipv4Addr::LOCALHOST.into()).unwrap()
        };
        let of = |fields: &str| length_of(&request(fields));
        assert_eq!(of("Content-Length: 12"), Ok(12));
        assert_eq!(of("A: b"), Err("411 Length Required"));
        assert_eq!(of("Content-Length: 4097"), Err("413 Content Too Large"));
        for fields in [
            "Content-Length: -1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
        ] {
            assert_eq!(of(fields), Err(BAD), "{fields}");
        }
        // Said twice it is not said.
        let twice = "Content-Length: 1\r\nContent-Length: 2";
        assert_eq!(of(twice), Err("411 Length Required"));
        let mut form = request("Cookie: a=1; b=2=3; c=\r\nX: y\r\nX: z");
        form.body = b"a=x+y%2b&b=%zz".to_vec();
        let cookies = ["a", "b", "c", "d"].map(|name| form.cookie(name));
        assert_eq!(cookies, [Some("1"), Some("2=3"), Some(""), None]);
        assert_eq!(form.form("a").as_deref(), Some("x y+"));
        assert_eq!((form.form("b"), form.form("c")), (None, None));
        assert_eq!(form.field("x"), None);
    }

    #[test]
    fn takes_what_is_a_request_and_nothing_else() {
        let parse = |head: &[u8]| parse(head, Ipv4Addr::LOCALHOST.into());
        let request = parse(b"GET /target/a%20b?range=1h HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(
            (request.path.as_str(), request.query.as_deref()),
            ("/target/a b", Some("range=1h"))
        );
        assert_eq!(request.field("host"), Some("x"));
        let head = parse(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(head.method, Method::Head);
        for (asked, status) in [
            ("PUT / HTTP/1.1\r\n\r\n", "405"),
            ("GET / HTTP/1.1\r\nHost\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400"),
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

    /// What is answered to bytes that come in these pieces, over a connection.
    fn answered(pieces: &[&[u8]]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        serve(listener, |request| {
            let mut answer = Answer::text(format!("{:?} {:?}", request.method, request.form("a")));
            answer.more.push(("Set-Cookie", "b=c".to_owned()));
            answer.has_form = true;
            answer
        })
        .unwrap();
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in pieces {
            stream.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        let mut out = String::new();
        stream.read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn a_form_comes_in_pieces_and_ends_with_its_length() {
        let head = b"POST /login HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
        let out = answered(&[
            &head[..30],
            &[&head[30..], b"a=".as_slice()].concat(),
            b"bcd&a",
        ]);
        assert!(out.ends_with("\r\n\r\nPost Some(\"bcd\")"), "{out}");
        assert!(out.contains("\r\nSet-Cookie: b=c\r\n") && out.contains("form-action 'self'"));
        let none = answered(&[b"POST / HTTP/1.1\r\n\r\n"]);
        assert!(none.starts_with("HTTP/1.1 411 "), "{none}");
        assert!(none.contains("form-action 'none'"), "{none}");
        let head = answered(&[b"HEAD / HTTP/1.1\r\n\r\n"]);
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let from = Ipv4Addr::LOCALHOST.into();
            let _ = parse(&bytes, from);
            let _ = parse(&[b"GET /", bytes.as_slice(), b" HTTP/1.1\r\n\r\n"].concat(), from);
            let head = [b"POST / HTTP/1.1\r\n", bytes.as_slice(), b"\r\n\r\n"].concat();
            if let Ok(request) = parse(&head, from) {
                let _ = (length_of(&request), request.cookie("a"));
            }
            let form = Request { body: bytes, ..Request::asking("/", None) };
            let _ = form.form("a");
        }

        #[test]
        fn names_come_back_from_addresses(name in "\\PC{1,40}") {
            prop_assert_eq!(decoded(&in_path(&name)), Some(name));
        }
    }
}
