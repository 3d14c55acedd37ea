//! A letter of plain text (RFC 5322, with MIME for what is not ASCII), as it stands behind DATA.

use std::fmt::Write as _;

use super::address::Address;
use data_encoding::BASE64;

/// The longest line that servers have to take, in bytes without its end (RFC 5322, section 2.1.1).
const MOST_LINE_BYTES: usize = 998;

/// A subject is cut after so many characters: longer ones are not read.
const MOST_SUBJECT: usize = 200;

/// Bytes in an encoded word, which has 75 characters at most (RFC 2047, section 2): 45 are 60 of Base64.
const MOST_WORD_BYTES: usize = 45;

/// Bytes in a line of Base64, which has 76 characters at most (RFC 2045, section 6.8).
const BASE64_LINE_BYTES: usize = 57;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub from: Address,
    pub to: Vec<Address>,
    pub subject: String,
    pub text: String,
    /// When it was written, as RFC 5322, section 3.3, has it.
    pub date: String,
    /// By what a server knows it again when it comes twice; of letters, digits, dots and hyphens.
    pub id: String,
}

impl Letter {
    /// The letter in its form on the wire, with its end.
    pub fn bytes(&self) -> Vec<u8> {
        let to: Vec<String> = self.to.iter().map(ToString::to_string).collect();
        let (encoding, body) = body(&self.text);
        // RFC 3834, section 5: no program answers it.
        let letter = format!(
            "Date: {}\r\nFrom: {}\r\nTo: {}\r\nSubject: {}\r\nMessage-ID: <{}@{}>\r\nAuto-Submitted: auto-generated\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{body}",
            self.date,
            self.from,
            to.join(",\r\n "),
            subject(&self.subject),
            self.id,
            self.from.domain(),
        );
        // A dot at the beginning of a line is doubled (RFC 5321, section 4.5.2).
        let mut sent = letter.replace("\r\n.", "\r\n..");
        sent.push_str(".\r\n");
        sent.into_bytes()
    }
}

/// A subject in one line, in encoded words where it is not ASCII.
fn subject(text: &str) -> String {
    let clean = text.replace(char::is_control, " ");
    let short: String = clean.chars().take(MOST_SUBJECT).collect();
    if short.is_ascii() {
        return short;
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for c in short.chars() {
        // A character is not cut in two.
        if word.len() + c.len_utf8() > MOST_WORD_BYTES {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    let words = words
        .iter()
        .map(|word| format!("=?utf-8?B?{}?=", BASE64.encode(word.as_bytes())));
    words.collect::<Vec<_>>().join("\r\n ")
}

/// The name of an encoding, and the text in it, which ends with the end of a line.
fn body(text: &str) -> (&'static str, String) {
    let plain = |line: &str| {
        line.len() <= MOST_LINE_BYTES
            && line
                .bytes()
                .all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
    };
    let mut out = String::new();
    if text.lines().all(plain) {
        for line in text.lines() {
            // Writing to text does not fail.
            let _ = write!(out, "{line}\r\n");
        }
        return ("7bit", out);
    }
    let text: Vec<&str> = text.lines().collect();
    let text = text.join("\r\n") + "\r\n";
    for line in text.as_bytes().chunks(BASE64_LINE_BYTES) {
        let _ = write!(out, "{}\r\n", BASE64.encode(line));
    }
    ("base64", out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letter(subject: &str, text: &str) -> String {
        let letter = Letter {
            from: "plumb@example.net".parse().unwrap(),
            to: vec![
                "a@example.net".parse().unwrap(),
                "b@example.org".parse().unwrap(),
            ],
            subject: subject.to_owned(),
            text: text.to_owned(),
            date: "Sat, 28 Nov 2026 12:00:00 +0000".to_owned(),
            id: "1.2".to_owned(),
        };
        String::from_utf8(letter.bytes()).unwrap()
    }

    #[test]
    fn a_letter_of_ascii_is_readable_as_it_is() {
        let sent = letter("gateway: loss", "first\n.second\n");
        assert_eq!(
            sent,
            "Date: Sat, 28 Nov 2026 12:00:00 +0000\r\nFrom: plumb@example.net\r\nTo: a@example.net,\r\n b@example.org\r\n\
             Subject: gateway: loss\r\nMessage-ID: <1.2@example.net>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\nfirst\r\n..second\r\n.\r\n"
        );
    }

    #[test]
    fn what_is_not_ascii_is_encoded() {
        let sent = letter("Büro: Verlust", "Büro\n");
        assert!(
            sent.contains("\r\nSubject: =?utf-8?B?QsO8cm86IFZlcmx1c3Q=?=\r\n"),
            "{sent}"
        );
        assert!(
            sent.ends_with("base64\r\n\r\nQsO8cm8NCg==\r\n.\r\n"),
            "{sent}"
        );
    }

    proptest! {
        /// No text ends the letter early, begins a header, or makes a line too long.
        #[test]
        fn any_text_stays_within_the_letter(subject in any::<String>(), text in any::<String>()) {
            let sent = letter(&subject, &text);
            let (inside, end) = sent.split_at(sent.len() - 5);
            prop_assert_eq!(end, "\r\n.\r\n");
            prop_assert!(!inside.contains("\r\n.\r\n"));
            prop_assert!(inside.split("\r\n").all(|line| line.len() <= 1000 && !line.contains(['\r', '\n'])));
            let (head, _) = sent.split_once("\r\n\r\n").unwrap();
            let fields = head.split("\r\n").filter(|line| !line.starts_with(' '));
            prop_assert_eq!(fields.count(), 9);
        }
    }
}
