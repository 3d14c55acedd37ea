//! What loading a web page took, object by object.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::vocabulary;

/// One load of a page and of what is on it, as a browser begins it that has nothing cached and no connection open. No
/// script runs and nothing is drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageLoadResult {
    /// URL that was asked for.
    pub url: String,
    /// URL of the page after its redirects; null where the page was not reached.
    pub page_url: Option<String>,
    /// Redirects before the page was reached.
    pub redirects: u64,
    /// HTTP status of the page; null where none came.
    pub status: Option<u16>,
    /// HTTP version of the page; null where no connection was made.
    pub protocol: Option<HttpVersion>,
    /// Where the list of objects comes from.
    pub objects_from: ObjectSource,
    /// Requests allowed gzip. Bytes are counted as they were sent, so compressed ones where the server compresses. Objects
    /// cannot be found in a page that comes compressed, so pages are searched only where this is false.
    pub gzip_allowed: bool,
    /// The page and every object on it were loaded, with a status below 400, and nothing was left out.
    pub complete: bool,
    /// From the start of the navigation to the first byte of the page, in seconds; redirects, name, connection and TLS
    /// count. Null where no byte came.
    pub first_byte_s: Option<f64>,
    /// From the start to the last byte of the page's HTML, in seconds. Null where it was not complete.
    pub html_s: Option<f64>,
    /// Page load time: from the start to the last byte of the last object, in seconds. Null where the page itself was not
    /// complete. Where objects failed, of those that did not.
    pub load_s: Option<f64>,
    /// Content received, of all objects together, in bytes.
    pub bytes: u64,
    /// Objects asked for, the page and redirects included.
    pub requested: u64,
    /// Objects among them that did not arrive whole, or with a status of 400 or more.
    pub failed: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Fields of the page's answer that caches, proxies and edges of content networks add, by their names in lower case; each
    /// value cut to 100 characters. Empty where there are none, and in Runs of versions that did not keep them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cache_fields: BTreeMap<String, String>,
    /// What stands between the start and the last byte, one object after the other: each was found in the one before it. The
    /// times of all steps add up to the page load time.
    pub critical_path: Vec<CriticalStep>,
    /// How many round trips the critical path needs at the least; null where the page was not complete.
    pub round_trips: Option<RoundTrips>,
    /// Time of name look-ups in seconds, one for each origin; null where no name was looked up.
    pub dns_s: Option<Distribution>,
    /// Time from SYN to established in seconds, of each connection; null where none was made.
    pub connect_s: Option<Distribution>,
    /// Time of the TLS handshakes in seconds; null without TLS.
    pub tls_s: Option<Distribution>,
    /// Time from a request to the first byte of its answer in seconds, over all objects; null where none was answered.
    pub object_first_byte_s: Option<Distribution>,
    /// Time from the first to the last byte of an answer in seconds, over all objects; null where none was complete.
    pub object_body_s: Option<Distribution>,
    /// Servers that were asked.
    pub origins: Vec<PageOrigin>,
    /// Objects in the order in which they were found; the first is the one asked for.
    pub objects: Vec<PageObject>,
    /// What was not fetched and why, one sentence each.
    pub left_out: Vec<String>,
}

vocabulary! {
    /// Version of HTTP, by the name that ALPN has for it (RFC 7301).
    pub enum HttpVersion {
        /// HTTP/1.1: one request at a time on a connection.
        Http1 = "http/1.1",
        /// HTTP/2: many at once on one connection.
        Http2 = "h2",
    }
}

vocabulary! {
    /// Where the objects of a page are known from.
    pub enum ObjectSource default Page {
        /// They were found in the page and its style sheets.
        Page = "page",
        /// The user gave a list. Its objects are asked for when the page's HTML is complete.
        List = "list",
        /// Nothing but the page was loaded.
        None = "none",
    }
}

vocabulary! {
    /// What an object is on its page.
    pub enum ObjectKind {
        /// The page itself, its HTML.
        Page = "page",
        /// A style sheet in CSS.
        Style = "style",
        /// A script, which is loaded and not run.
        Script = "script",
        /// An image on the page.
        Image = "image",
        /// An icon of the page.
        Icon = "icon",
        /// What a link asks to be loaded ahead.
        Preload = "preload",
        /// What a style sheet names: an image of it, or a font.
        Resource = "resource",
        /// What a list of the user names.
        Listed = "listed",
    }
}

/// A server that was asked for objects of the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageOrigin {
    /// Scheme, host and port of the server.
    pub origin: String,
    /// Address that was connected to; null where no connection was made.
    pub address: Option<String>,
    /// HTTP version in use; null where no connection was made.
    pub protocol: Option<HttpVersion>,
    /// TLS version in use; null without TLS.
    pub tls: Option<String>,
    /// Time of the name look-up in seconds; null where the URL has an address in place of a name.
    pub dns_s: Option<f64>,
    /// Round-trip time of TCP's handshake in seconds, the smallest of its connections; null where none was made.
    pub rtt_s: Option<f64>,
    /// Connections that were opened.
    pub connections: u64,
    /// Objects that it was asked for.
    pub objects: u64,
    /// Content received in bytes.
    pub bytes: u64,
    /// Why it was not reached; null where it was.
    pub error: Option<String>,
}

/// One object: an answer, or the want of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageObject {
    /// URL of the object.
    pub url: String,
    /// What it is on the page.
    pub kind: ObjectKind,
    /// Number of the object, from 0, that named it or led to it by a redirect; null for the one asked for.
    pub found_in: Option<u64>,
    /// Number of its origin, from 0, in the list of origins.
    pub origin: u64,
    /// HTTP version; null where it was not asked for.
    pub protocol: Option<HttpVersion>,
    /// Number of its connection, from 0, in the order of opening; null where it was not asked for.
    pub connection: Option<u64>,
    /// Whether its connection had carried a request before; null where it was not asked for.
    pub reused_connection: Option<bool>,
    /// When it became known, in seconds from the start.
    pub found_s: f64,
    /// Time of the look-up of its origin's name in seconds, for the first object of the origin; null for others.
    pub dns_s: Option<f64>,
    /// Time of TCP's handshake in seconds, for the first object of a connection; null for others.
    pub connect_s: Option<f64>,
    /// Time of the TLS handshake in seconds, for the first object of a connection; null for others and without TLS.
    pub tls_s: Option<f64>,
    /// When its request was sent, in seconds from the start; null where it was not.
    pub sent_s: Option<f64>,
    /// From there to the first byte of the answer, in seconds; null where none came.
    pub first_byte_s: Option<f64>,
    /// From there to the last byte, in seconds; null where the answer did not come whole.
    pub body_s: Option<f64>,
    /// Content received in bytes.
    pub bytes: u64,
    /// HTTP status; null where none came.
    pub status: Option<u16>,
    /// What went wrong; null where nothing did.
    pub error: Option<String>,
}

/// A step of the critical path: an object, from when it became known to when it named the next one, or to its end. Its six
/// times add up to that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalStep {
    /// Number of the object, from 0.
    pub object: u64,
    /// Time in seconds in which its request waited for a free connection or for this host.
    pub blocked_s: f64,
    /// Time in seconds in which it waited for its origin's name.
    pub dns_s: f64,
    /// Time in seconds in which it waited for TCP's handshake.
    pub connect_s: f64,
    /// Time in seconds in which it waited for the TLS handshake.
    pub tls_s: f64,
    /// Time in seconds from its request to the first byte.
    pub first_byte_s: f64,
    /// Time in seconds from the first byte to the one that named the next object, or to the last.
    pub body_s: f64,
}

/// Round trips that the critical path needs at the least: one for each of TCP's handshakes, one for each of TLS 1.3 (two
/// before it, RFC 8446 section 2), one for each request, and those in which slow start grows from ten segments (RFC
/// 6928). Name look-ups are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// How many round trips they are.
    pub count: u64,
    /// What they take in seconds, each as long as TCP's handshake with its server.
    pub time_s: f64,
    /// Share of the page load time that they take; the rest is what servers take to answer, look-ups, bytes at the path's
    /// rate, queues and losses. More than 1 where slow start began with more than ten segments.
    pub load_ratio: f64,
}
