//! What the responder has done, for people and for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gate::Standing;

/// Counted over HTTP since the responder was started.
#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    refused: AtomicU64,
    sent_bytes: AtomicU64,
    small_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// One whose turn it was not, or that is not served.
    pub(super) fn refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The body of an answer that waited for no turn.
    pub(super) fn took_no_turn(&self, bytes: u64) {
        self.small_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All of it by name and kind, with what it is.
    fn metrics(&self, standing: Standing) -> [(&'static str, &'static str, &'static str, u64); 8] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            (
                "plumb_serve_sessions",
                "gauge",
                "Sessions of plumb's own clients.",
                standing.sessions,
            ),
            (
                "plumb_serve_clients",
                "gauge",
                "Clients of other protocols.",
                standing.visits,
            ),
            (
                "plumb_serve_loads",
                "gauge",
                "Loads that run, of all protocols.",
                standing.loads,
            ),
            (
                "plumb_serve_http_requests_total",
                "counter",
                "Requests over HTTP.",
                of(&self.requests),
            ),
            (
                "plumb_serve_http_refused_total",
                "counter",
                "Requests over HTTP that were refused.",
                of(&self.refused),
            ),
            (
                "plumb_serve_http_sent_bytes_total",
                "counter",
                "Payload sent over HTTP and WebSocket.",
                of(&self.sent_bytes),
            ),
            (
                "plumb_serve_http_small_bytes_total",
                "counter",
                "Bytes of answers over HTTP that took no turn, such as pages.",
                of(&self.small_bytes),
            ),
            (
                "plumb_serve_http_received_bytes_total",
                "counter",
                "Payload received over HTTP and WebSocket.",
                of(&self.received_bytes),
            ),
        ]
    }

    /// In Prometheus' text format, version 0.0.4.
    pub(super) fn prometheus(&self, standing: Standing) -> String {
        let mut text = String::new();
        for (name, kind, help, value) in self.metrics(standing) {
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        }
        text
    }

    /// The same as a page.
    pub(super) fn page(&self, standing: Standing) -> String {
        let mut rows = String::new();
        for (_, _, help, value) in self.metrics(standing) {
            let what = help.trim_end_matches('.');
            let _ = write!(rows, "<tr><td>{what}<td>{value}");
        }
        format!(
            "<!doctype html><html lang=en><meta charset=utf-8>\
             <meta name=viewport content='width=device-width'><title>plumb serve</title>\
             <h1>plumb serve</h1><p>This is a responder for measurements. From another machine: \
             <code>plumb check THIS-HOST</code>.<table>{rows}</table>\
             <p>Metrics for Prometheus are at <a href=/metrics>/metrics</a>.\n"
        )
    }
}
