//! URLs of pages and of what is on them: `http` and `https` alone, and references relative to them (RFC 3986), read as
//! leniently as browsers do where that changes nothing (WHATWG URL: tabs and line ends dropped, `\` for `/`).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use plumb_model::vocabulary;
use plumb_model::vocabulary::Vocabulary as _;

/// The longest URL in bytes: the length that RFC 9110, section 4.1, recommends to support.
pub const MAX_URL_BYTES: usize = 8000;

/// The longest name of a host in bytes (RFC 1035, section 2.3.4).
const MAX_HOST_BYTES: usize = 255;

vocabulary! {
    /// How a page is asked for.
    pub enum Scheme {
        /// HTTP over plain TCP, without encryption.
        Http = "http",
        /// HTTP over TLS, as most pages are.
        Https = "https",
    }
}

impl Scheme {
    /// The port where a URL names none (RFC 9110, section 4.2).
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where connections go and what they may be used for (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub scheme: Scheme,
    /// Name or address of the host, in lower case; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// Host and port as a request names them (RFC 9110, section 7.2): the port where it is not the scheme's.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port == self.scheme.port() {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.authority())
    }
}

/// A URL without its fragment, which no server sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Url {
    /// Scheme, host and port.
    pub origin: Origin,
    /// Path and query: printable ASCII, begins with `/`.
    pub target: String,
}

/// Why a text is no URL that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It has another scheme.
    #[error("only http and https are fetched, and this is {0}:")]
    Scheme(String),
    /// It has no scheme.
    #[error("a URL begins with http:// or https://")]
    NoScheme,
    /// Its host is none.
    #[error(
        "it names no host: a name of letters, digits, '-', '_' and '.', or an address; write others as xn-- (RFC 5891)"
    )]
    Host,
    /// Its port is none.
    #[error("its port is not from 1 to 65535")]
    Port,
    /// It has a user's name or a password.
    #[error("it carries a user name or a password, which are not sent")]
    Credentials,
    /// It is too long.
    #[error("it is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = cleaned(text)?;
        let (scheme, rest) = split_scheme(&text).ok_or(UrlError::NoScheme)?;
        let rest = rest.strip_prefix("//").ok_or(UrlError::Host)?;
        absolute(scheme_of(scheme)?, rest)
    }
}

impl Url {
    /// What a reference on the page of this URL means (RFC 3986, section 5.2).
    ///
    /// # Errors
    /// When that is nothing to be fetched.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = cleaned(reference)?;
        if let Some((scheme, rest)) = split_scheme(&reference) {
            let scheme = scheme_of(scheme)?;
            return absolute(scheme, rest.strip_prefix("//").ok_or(UrlError::Host)?);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return absolute(self.origin.scheme, rest);
        }
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.target.as_str(), None),
        };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let target = match reference.chars().next() {
            None => with_query(path, query),
            Some('?') => format!("{path}{reference}"),
            Some('/') => reference,
            Some(_) => format!("{folder}/{reference}"),
        };
        Self::of(self.origin.clone(), &target)
    }

    fn of(origin: Origin, target: &str) -> Result<Self, UrlError> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let target = escaped(&with_query(&without_dots(path), query));
        match target.len() <= MAX_URL_BYTES {
            true => Ok(Self { origin, target }),
            false => Err(UrlError::TooLong),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.target)
    }
}

/// Without space around it, tabs, line ends and the fragment.
fn cleaned(text: &str) -> Result<String, UrlError> {
    if text.len() > 2 * MAX_URL_BYTES {
        return Err(UrlError::TooLong);
    }
    let text = text.trim_matches(|c: char| c <= ' ');
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let before_query = text.find('?').unwrap_or(text.len());
    let cleaned = text.char_indices().filter_map(|(at, c)| match c {
        '\t' | '\r' | '\n' => None,
        '\\' if at < before_query => Some('/'),
        c => Some(c),
    });
    Ok(cleaned.collect())
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let follows = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (begins && scheme.chars().all(follows)).then_some((scheme, rest))
}

fn scheme_of(text: &str) -> Result<Scheme, UrlError> {
    Scheme::of_word(&text.to_ascii_lowercase())
        // The page chose the name, so no more of it than is needed to recognise it.
        .ok_or_else(|| UrlError::Scheme(text.chars().take(20).collect()))
}

fn absolute(scheme: Scheme, rest: &str) -> Result<Url, UrlError> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (address, port) = inside.split_once(']').ok_or(UrlError::Host)?;
            let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host)?;
            (address.to_string(), port)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.chars().all(allowed) {
                return Err(UrlError::Host);
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => scheme.port(),
        None => return Err(UrlError::Host),
        Some("") => scheme.port(),
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            let port = digits.parse().ok().filter(|port| *port > 0);
            port.ok_or(UrlError::Port)?
        }
        Some(_) => return Err(UrlError::Port),
    };
    Url::of(Origin { scheme, host, port }, target)
}

fn with_query(path: &str, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// RFC 3986, section 5.2.4.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let last = segments.len().saturating_sub(1);
    for (at, segment) in segments.into_iter().enumerate() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // What ends with a dot segment is a folder.
                if at == last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// What a request line cannot carry, percent-encoded (RFC 3986, section 2.1).
fn escaped(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'"' | b'<' | b'>' | b'`') => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_has_an_origin_and_a_target() {
        for (text, written) in [
            ("http://Example.NET", "http://example.net/"),
            (
                "https://example.net:443/a?b=/../c#d",
                "https://example.net/a?b=/../c",
            ),
            ("HTTP://example.net:8080?q", "http://example.net:8080/?q"),
            ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443/"),
            (" https://example.net/a b\n", "https://example.net/a%20b"),
            ("https:\\\\example.net\\ä", "https://example.net/%C3%A4"),
        ] {
            assert_eq!(url(text).to_string(), written);
        }
        for (text, error) in [
            ("example.net", UrlError::NoScheme),
            ("ftp://example.net/", UrlError::Scheme("ftp".to_owned())),
            (
                "javascript:alert(1)",
                UrlError::Scheme("javascript".to_owned()),
            ),
            ("http:///a", UrlError::Host),
            ("http:a", UrlError::Host),
            ("http://bücher.example/", UrlError::Host),
            ("http://[::1", UrlError::Host),
            ("http://[::1]x/", UrlError::Host),
            ("http://a:0/", UrlError::Port),
            ("http://a:65536/", UrlError::Port),
            ("http://a:+80/", UrlError::Port),
            ("http://user:word@a/", UrlError::Credentials),
        ] {
            let parsed = text.parse::<Url>();
            match error {
                UrlError::Scheme(_) if !text.contains("//") => assert!(parsed.is_err()),
                error => assert_eq!(parsed, Err(error), "{text}"),
            }
        }
        let long = format!("http://a/{}", "b".repeat(MAX_URL_BYTES));
        assert_eq!(long.parse::<Url>(), Err(UrlError::TooLong));
    }

    /// The examples of RFC 3986, section 5.4, as far as they are of this scheme.
    #[test]
    fn references_are_resolved_as_the_rfc_does() {
        let base = url("http://a/b/c/d;p?q");
        for (reference, wanted) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://h/i", "https://h/i"),
        ] {
            assert_eq!(
                base.join(reference).unwrap().to_string(),
                wanted,
                "{reference}"
            );
        }
        for other in [
            "data:image/png;base64,AA",
            "mailto:a@b",
            "blob:x",
            "file:///etc/passwd",
        ] {
            assert!(
                matches!(base.join(other), Err(UrlError::Scheme(_))),
                "{other}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_joined_can_be_requested(reference in "(//)?[a-z./:?#\\\\@ \r\n\t\u{e4}\u{0}]{0,40}") {
            let base = url("https://example.net/a/b?c");
            if let Ok(joined) = base.join(&reference) {
                prop_assert!(joined.target.starts_with('/'));
                prop_assert!(joined.target.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(&url(&joined.to_string()), &joined);
            }
        }
    }
}
