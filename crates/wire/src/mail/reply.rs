//! What a mail server answers: a code, and lines of text (RFC 5321, section 4.2).

use std::fmt;

/// A line, with its end, has 512 bytes at most (RFC 5321, section 4.5.3.1.5); some servers write longer ones.
const MOST_LINE_BYTES: usize = 2048;

/// Lines of one reply: servers list a dozen extensions.
const MOST_LINES: usize = 100;

/// Characters of a reply that are shown.
const MOST_SHOWN: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub code: u16,
    /// Without the code; one at least.
    pub lines: Vec<String>,
}

impl Reply {
    /// Whether it is a 2xx.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether another try may do better (RFC 5321, section 4.2.1: 4yz).
    pub fn is_transient(&self) -> bool {
        (400..500).contains(&self.code)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.lines.join(" ").replace(char::is_control, " ");
        let text: String = text.trim().chars().take(MOST_SHOWN).collect();
        match text.as_str() {
            "" => write!(f, "{}", self.code),
            text => write!(f, "{} {text}", self.code),
        }
    }
}

/// Replies out of bytes, as they come.
#[derive(Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    lines: Vec<String>,
}

impl Replies {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether something came that no reply was made of.
    pub fn has_more(&self) -> bool {
        !self.bytes.is_empty() || !self.lines.is_empty()
    }

    /// The next reply; `None` while it is not whole.
    ///
    /// # Errors
    /// When what came is no reply: why, in words.
    pub fn take(&mut self) -> Result<Option<Reply>, String> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let rest = self.bytes.split_off(end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            let (code, text) = line.split_at_checked(3).ok_or_else(no_reply)?;
            let code = code
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then_some(code);
            let code: u16 = code
                .and_then(|code| code.parse().ok())
                .ok_or_else(no_reply)?;
            let goes_on = text.starts_with('-');
            if !goes_on && !text.is_empty() && !text.starts_with(' ') {
                return Err(no_reply());
            }
            self.lines
                .push(text.get(1..).unwrap_or_default().to_owned());
            if self.lines.len() > MOST_LINES {
                return Err("its reply has no end".to_owned());
            }
            if !goes_on {
                let lines = std::mem::take(&mut self.lines);
                return Ok(Some(Reply { code, lines }));
            }
        }
        match self.bytes.len() > MOST_LINE_BYTES {
            true => Err("its reply has no end".to_owned()),
            false => Ok(None),
        }
    }
}

fn no_reply() -> String {
    "what came back is no mail server's".to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reply_has_one_line_or_more() {
        let mut replies = Replies::default();
        replies.push(b"250-mail.example.net\r\n250-STARTTLS\r\n250");
        assert_eq!(replies.take(), Ok(None));
        replies.push(b" 8BITMIME\r\n354\r\n");
        let first = replies.take().unwrap().unwrap();
        assert_eq!(first.lines, ["mail.example.net", "STARTTLS", "8BITMIME"]);
        assert_eq!(
            (first.code, first.is_good(), first.is_transient()),
            (250, true, false)
        );
        assert_eq!(replies.take().unwrap().unwrap().to_string(), "354");
        assert!(!replies.has_more());
        for wrong in [
            &b"HTTP/1.1 400 Bad\r\n"[..],
            b"25\r\n",
            b"250x\r\n",
            "25\u{663} a\r\n".as_bytes(),
            b"\n",
        ] {
            let mut replies = Replies::default();
            replies.push(wrong);
            assert!(replies.take().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_reply_without_an_end_is_given_up() {
        let mut replies = Replies::default();
        replies.push(&b"250-x\r\n".repeat(MOST_LINES + 1));
        assert!(replies.take().is_err());
        let mut replies = Replies::default();
        replies.push(&vec![b'2'; MOST_LINE_BYTES + 1]);
        assert!(replies.take().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..5)) {
            let mut replies = Replies::default();
            for piece in pieces {
                replies.push(&piece);
                while let Ok(Some(reply)) = replies.take() {
                    prop_assert!(!reply.to_string().contains(char::is_control));
                }
            }
        }
    }
}
