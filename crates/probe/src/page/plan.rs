//! What to load and how, and why that may not work.

use std::time::Duration;

use plumb_model::results::page_load::HttpVersion;
use plumb_net::egress::Outlet;
use plumb_wire::url::Url;

use crate::root_store::Trust;

/// What to load and how.
#[derive(Debug, Clone)]
pub struct PagePlan {
    pub url: Url,
    /// What is loaded with it.
    pub objects: Objects,
    /// The version of HTTP; `None` for HTTP/2 where a server offers it with TLS (ALPN), else HTTP/1.1.
    pub version: Option<HttpVersion>,
    /// Whether answers may come compressed with gzip; only where objects are not searched for.
    pub gzip: bool,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// Version of IP; `None` for the one that the resolver prefers.
    pub ipv6: Option<bool>,
    /// By which interface or address packets leave this host.
    pub outlet: Outlet,
    pub limits: Limits,
}

impl PagePlan {
    /// The page with all that it names, as a browser that was never there loads it.
    pub fn new(url: Url, trust: Trust) -> Self {
        Self {
            url,
            objects: Objects::Found,
            version: None,
            gzip: false,
            trust,
            ipv6: None,
            outlet: Outlet::default(),
            limits: Limits::default(),
        }
    }
}

/// Which objects are loaded with a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objects {
    /// Those that it and its style sheets name.
    Found,
    Listed(Vec<Url>),
    None,
}

/// Bounds of a load, so that no page and no server makes it endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// How much may come, in bytes, fields and TLS included.
    pub bytes: u64,
    /// How many objects are asked for, redirects included.
    pub objects: usize,
    /// How many origins are asked.
    pub origins: usize,
    /// Connections of HTTP/1.1 to one origin at once.
    pub connections_per_origin: usize,
    pub connections: usize,
    /// Redirects one after the other.
    pub redirects: u32,
}

impl Default for Limits {
    /// The limit of redirects is from WHATWG Fetch ("HTTP-redirect fetch", step 4). Six connections to an origin and
    /// 256 in all are what Chromium has (net/http: `max_sockets_per_group`, `max_sockets`); Firefox has six too
    /// (network.http.max-persistent-connections-per-server). The others are some ten times what a large page needs
    /// (HTTP Archive, 2024: 70 requests and 2.7 MB are the median).
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            bytes: 100 << 20,
            objects: 1000,
            origins: 100,
            connections_per_origin: 6,
            connections: 256,
            redirects: 20,
        }
    }
}

/// Why a load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// This host lacks what is needed.
    #[error("{what} failed: {why}")]
    Local {
        what: &'static str,
        /// What the kernel says.
        why: std::io::Error,
    },
}
