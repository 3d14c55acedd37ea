//! The head of an HTTP/1 message (RFC 9112): a request for nothing but a head, and the status and
//! fields of its answer.

/// Of a head so many bytes are looked at: servers send some hundred, few more than 8 kB.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A request for the head of a page that leaves the connection to be closed.
pub fn head_request(host: &str, path: &str) -> Vec<u8> {
    // A line's end would begin another field.
    let clean = |text: &str| text.replace(|c: char| c.is_control() || c == ' ', "");
    let (host, path) = (clean(host), clean(path));
    format!(
        "HEAD {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: plumb/{}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    )
    .into_bytes()
}

/// The head of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// The fields, their names in lower case.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Reads the head that `bytes` begin with, as far as it has come; `None` when it is no HTTP/1.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes.get(..MAX_HEAD_BYTES).unwrap_or(bytes));
        let mut lines = text.split("\r\n");
        let first = lines.next()?;
        let status = first.strip_prefix("HTTP/1.")?.get(1..)?.trim_start();
        let status = status.get(..3)?.parse().ok()?;
        let fields = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            });
        Some(Self {
            status,
            fields: fields.collect(),
        })
    }

    /// The first field of that name, which is in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(field, _)| field == name)?;
        Some(&found.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_head_is_read() {
        let head = Head::parse(
            b"HTTP/1.1 301 Moved\r\nServer: cloudflare\r\nCF-RAY: 8-FRA\r\n\r\nbody: no",
        )
        .unwrap();
        assert_eq!(
            (head.status, head.field("cf-ray"), head.field("body")),
            (301, Some("8-FRA"), None)
        );
        assert_eq!(Head::parse(b"HTTP/1.0 200").unwrap().status, 200);
        for wrong in [
            b"SSH-2.0-OpenSSH".as_slice(),
            b"",
            b"HTTP/1.1",
            b"HTTP/1.1 abc",
            b"HTTP/2 200",
        ] {
            assert_eq!(Head::parse(wrong), None);
        }
    }

    #[test]
    fn a_request_is_one_message() {
        let text = String::from_utf8(head_request("a\r\nX: b", "/ x")).unwrap();
        assert!(
            text.starts_with("HEAD /x HTTP/1.1\r\nHost: aX:b\r\n") && text.ends_with("\r\n\r\n")
        );
        assert_eq!(text.matches("\r\n\r\n").count(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Head::parse(&bytes);
            let _ = Head::parse(&[b"HTTP/1.1 200 ".as_slice(), &bytes].concat());
        }
    }
}
