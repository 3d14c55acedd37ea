//! An object on its way.

use std::collections::BTreeMap;

use plumb_model::results::page_load::ObjectKind;
use plumb_wire::page::{Found, css, html};
use plumb_wire::url::Url;

/// What is known of an object; times are of CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) url: Url,
    pub(super) kind: ObjectKind,
    /// The object that named it or led to it.
    pub(super) found_in: Option<usize>,
    pub(super) server: usize,
    pub(super) redirects: u32,
    /// How many style sheets it was found in, one in the other.
    pub(super) depth: u32,
    /// How often it was asked for.
    pub(super) attempts: u32,
    pub(super) connection: Option<usize>,
    /// Its connection had carried a request before.
    pub(super) reused: bool,
    /// Content that its connection had carried before, in bytes.
    pub(super) carried_bytes: u64,
    pub(super) found_ns: u64,
    pub(super) sent_ns: Option<u64>,
    pub(super) first_byte_ns: Option<u64>,
    pub(super) end_ns: Option<u64>,
    pub(super) bytes: u64,
    pub(super) status: Option<u16>,
    /// What caches and edges added to its answer.
    pub(super) cache_fields: BTreeMap<String, String>,
    pub(super) redirected: bool,
    pub(super) error: Option<String>,
    pub(super) scanner: Scanner,
    /// Nothing more is expected of it.
    pub(super) over: bool,
}

impl Object {
    pub(super) fn new(url: Url, kind: ObjectKind, server: usize, found_ns: u64) -> Self {
        Self {
            url,
            kind,
            found_in: None,
            server,
            redirects: 0,
            depth: 0,
            attempts: 0,
            connection: None,
            reused: false,
            carried_bytes: 0,
            found_ns,
            sent_ns: None,
            first_byte_ns: None,
            end_ns: None,
            bytes: 0,
            status: None,
            cache_fields: BTreeMap::new(),
            redirected: false,
            error: None,
            scanner: Scanner::None,
            over: false,
        }
    }

    /// Forgets an answer that did not come, before it is asked for again.
    pub(super) fn reset(&mut self) {
        (self.connection, self.reused, self.status) = (None, false, None);
        (self.sent_ns, self.first_byte_ns, self.bytes) = (None, None, 0);
        self.cache_fields.clear();
    }

    /// It will not come, unless it has.
    pub(super) fn fail(&mut self, why: &str) {
        if !self.over {
            self.error = Some(why.to_owned());
            self.over = true;
        }
    }
}

/// What looks for objects in an answer.
#[derive(Debug)]
pub(super) enum Scanner {
    None,
    Html(Box<html::Scanner>),
    Css(css::Scanner),
}

impl Scanner {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        match self {
            Self::None => {}
            Self::Html(scanner) => scanner.push(bytes, &mut found),
            Self::Css(scanner) => scanner.push(bytes, &mut found),
        }
        found
    }
}
