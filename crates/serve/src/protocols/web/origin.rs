//! Which requests of browsers are answered: those that a page of this responder makes.
//!
//! A browser sends requests for whatever page its user has open, so that a foreign page could drive tests by its visitors, spend
//! their attempts at the key, and, where its name is made to lead here (DNS rebinding), read what is for this network alone. The
//! rule, for all paths but the page's own files:
//!
//! 1. A request with `Origin` is answered where that is the host and port that the request was sent to, or its host is one of
//!    `--host-names`. One that the browser marks as made for another site (`Sec-Fetch-Site`) is not, but where the user follows a
//!    link to what is for people.
//! 2. Where a browser made the request, or its answer is for people and private (`/`, `/status`, `/metrics`), the host that it was
//!    sent to must be this responder's: an address, which no foreign page has for its name; a name without a dot or below
//!    `localhost` or `local`, which the Internet cannot give away; the name of this machine; or one of `--host-names`.
//!
//! Other clients send none of these fields, and may come by any name.

use hyper::header::{self, HeaderValue};
use hyper::{Request, Uri};

/// The longest name of a host, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES: usize = 253;

/// Says for whom the browser made a request (W3C Fetch Metadata, section 2.3).
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Says whether it shows what comes to the user (section 2.2).
const SEC_FETCH_MODE: &str = "sec-fetch-mode";

/// The names by which the responder is reached, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: Vec<String>,
    machine: String,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Foreign {
    #[error("a page of another site asked for this: only the responder's own page may")]
    Page,
    #[error(
        "this responder does not know the name {0} for itself: use its address, or start it with --host-names {0} (host_names in [web])"
    )]
    Name(String),
    #[error("the request names no host that could be this responder's")]
    NoName,
}

/// Host and port that a request was sent to, as its client writes them.
pub(super) fn authority<B>(request: &Request<B>) -> Option<&str> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    request.uri().authority().map(|to| to.as_str()).or(host)
}

impl Names {
    pub(super) fn new(given: &[String], machine: &str) -> Self {
        Self {
            given: given.iter().map(|name| plain(name)).collect(),
            machine: plain(machine),
        }
    }

    /// Whether a request is answered, whose answer is private or is not.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) fn check<B>(&self, request: &Request<B>, is_private: bool) -> Result<(), Foreign> {
        let fields = request.headers();
        let (origin, site) = (fields.get(header::ORIGIN), fields.get(SEC_FETCH_SITE));
        let is_followed = is_private && fields.get(SEC_FETCH_MODE).is_some_and(|m| m == "navigate");
        let to = authority(request);
        if let Some(origin) = origin
            && !self.is_own(origin, to)
        {
            return Err(Foreign::Page);
        }
        // Behind a proxy that changes the host, the origin has been compared with the names that were given.
        let is_foreign = site.is_some_and(|site| site != "same-origin" && site != "none");
        if is_foreign && !is_followed && origin.is_none() {
            return Err(Foreign::Page);
        }
        match to {
            Some(to) if is_private || origin.is_some() || site.is_some() => self.check_host(to),
            Some(_) => Ok(()),
            // Browsers always name the host, and HTTP/1.0 has no field for it.
            None if origin.is_some() || site.is_some() => Err(Foreign::NoName),
            None => Ok(()),
        }
    }

    /// Whether an origin is the one that the request was sent to, or has a name that was given.
    fn is_own(&self, origin: &HeaderValue, to: Option<&str>) -> bool {
        let Some((scheme, of)) = origin.to_str().ok().and_then(|text| text.split_once("://"))
        else {
            return false;
        };
        let is_web = matches!(scheme, "http" | "https");
        let is_same = to.is_some_and(|to| to.eq_ignore_ascii_case(of));
        let is_given = || host(of).is_some_and(|name| self.given.contains(&name));
        is_web && (is_same || is_given())
    }

    fn check_host(&self, authority: &str) -> Result<(), Foreign> {
        let name = host(authority).ok_or(Foreign::NoName)?;
        let is_address = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
        let is_near =
            !name.contains('.') || name.ends_with(".localhost") || name.ends_with(".local");
        if is_address || is_near || name == self.machine || self.given.contains(&name) {
            return Ok(());
        }
        Err(Foreign::Name(name))
    }
}

/// The host of an authority, in lower case; nothing where it is none.
fn host(authority: &str) -> Option<String> {
    let uri: Uri = authority.parse().ok()?;
    let name = plain(uri.authority()?.host());
    (!name.is_empty() && name.len() <= NAME_BYTES).then_some(name)
}

/// A name in the form that is compared: in lower case, and without the dot of the root, which adds nothing.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether what is at a path is for people and private.
pub(super) fn is_private(path: &str) -> bool {
    matches!(path, "/" | "/status" | "/metrics")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyper::HeaderMap;

    fn check(fields: &[(&str, &str)], is_private: bool) -> Result<(), Foreign> {
        let names = Names::new(&["Speed.example.".to_owned()], "box.example.org");
        let mut request = Request::new(());
        *request.headers_mut() = fields
            .iter()
            .map(|(name, value)| {
                let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect::<HeaderMap>();
        names.check(&request, is_private)
    }

    #[test]
    fn names_of_this_responder_are_addresses_near_names_and_those_that_were_given() {
        for own in [
            "192.0.2.1:4043",
            "[2001:db8::1]:4043",
            "[::1]",
            "localhost:4043",
            "a.localhost",
            "box",
            "BOX.local:4043",
            "box.example.org",
            "speed.example:4043",
            "SPEED.example.",
        ] {
            assert_eq!(check(&[("host", own)], true), Ok(()), "{own}");
        }
        for foreign in [
            "evil.example",
            "192.0.2.1.evil.example:4043",
            "evil.localhost.example",
            "evillocalhost.example",
            "speed.example.evil.example",
            "x.speed.example",
            "",
            "a b",
            "evil.example/localhost",
            "evil.example@localhost@x.example",
        ] {
            assert!(check(&[("host", foreign)], true).is_err(), "{foreign}");
            // No browser.
            assert_eq!(check(&[("host", foreign)], false), Ok(()), "{foreign}");
        }
        assert_eq!(check(&[], true), Ok(()));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let own = ("host", "192.0.2.1:4043");
        for origin in [
            "http://192.0.2.1:4043",
            "https://192.0.2.1:4043",
            "https://speed.example",
        ] {
            assert_eq!(check(&[own, ("origin", origin)], false), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://192.0.2.1",
            "http://192.0.2.1:80",
            "http://localhost:4043",
            "file://192.0.2.1:4043",
            "http://speed.example.evil.example",
        ] {
            let foreign = check(&[own, ("origin", origin)], false);
            assert_eq!(foreign, Err(Foreign::Page), "{origin}");
        }
        // A name that is made to lead here is the same origin, and not this responder's.
        let rebound = [
            ("host", "evil.example:4043"),
            ("origin", "http://evil.example:4043"),
        ];
        let named = Err(Foreign::Name("evil.example".to_owned()));
        assert_eq!(check(&rebound, false), named);
        assert_eq!(
            check(&[("origin", "http://evil.example")], false),
            Err(Foreign::Page)
        );
    }

    #[test]
    fn what_a_browser_fetches_for_another_site_is_refused_without_an_origin() {
        let own = ("host", "192.0.2.1:4043");
        for (site, is_answered) in [
            ("same-origin", true),
            ("none", true),
            ("same-site", false),
            ("cross-site", false),
        ] {
            let checked = check(&[own, (SEC_FETCH_SITE, site)], false);
            assert_eq!(checked.is_ok(), is_answered, "{site}");
            let followed = [own, (SEC_FETCH_SITE, site), (SEC_FETCH_MODE, "navigate")];
            assert_eq!(check(&followed, true), Ok(()), "{site}");
            assert_eq!(check(&followed, false).is_ok(), is_answered, "{site}");
        }
        let rebound = [("host", "evil.example"), (SEC_FETCH_SITE, "same-origin")];
        assert!(check(&rebound, false).is_err());
    }
}
